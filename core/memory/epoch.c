/* epoch.c: which freed memory no work may touch any more.
 *
 * A heap's epoch stamps what is freed on its stream. One marker (an event) recorded in the stream
 * closes the epoch and covers every free before it, so a marker serves a batch of frees; it is
 * recorded only when somebody needs to know, never at a free. When it is complete, `done` moves up.
 * known[n] of a heap is the same for order instead of completion: its stream runs after heap n's
 * work of those epochs, because a wait was inserted.
 */
#include <string.h>
#include "core/memory/pool.h"

enum { BATCHES = 64 }; /* markers for as many bytes of frees as are reserved */

static bool capturing(const weir_heap *h)
{
  const weir_backend *b = h->pool->backend;
  return b->stream_capturing && b->stream_capturing(b->self, h->stream);
}

/* Closes the epoch: a marker now. Fails without a change. */
static weir_status mark(weir_heap *h)
{
  const weir_backend *b = h->pool->backend;
  weir_status st = WEIR_OK;
  if (capturing(h)) return weir_fail(WEIR_ENOTSUP, "the stream is being captured");
  if (!h->marker) st = b->event_create(b->self, &h->marker);
  if (!st) st = b->event_record(b->self, h->marker, h->stream);
  if (!st) h->marked = h->epoch++;
  return st;
}

static void poll(weir_heap *h, bool may_mark)
{
  const weir_backend *b = h->pool->backend;
  bool complete = false;
  if (h->dirty <= h->done) return;
  for (int i = 0; i < 2; i++) {
    if (h->marked > h->done) {
      if (b->event_query(b->self, h->marker, &complete) || !complete) return;
      h->done = h->marked;
    }
    if (h->dirty <= h->done || !may_mark || i || mark(h)) return;
  }
}

void weir_epoch_poll(weir_pool *p, bool may_mark, const weir_heap *except)
{
  for (unsigned i = 0; i < p->heap_count; i++) {
    weir_heap *h = weir_heaps[p->numbers[i]];
    if (h != except) poll(h, may_mark);
  }
}

weir_status weir_epoch_sync(weir_pool *p)
{
  const weir_backend *b = p->backend;
  weir_status first = WEIR_OK;
  for (unsigned i = 0; i < p->heap_count; i++) {
    weir_heap *h = weir_heaps[p->numbers[i]];
    if (h->dirty <= h->done) continue;
    weir_status st = h->dirty > h->marked ? mark(h) : WEIR_OK;
    if (!st) st = b->event_sync(b->self, h->marker);
    if (!st) {
      h->done = h->marked;
      p->syncs++;
    }
    if (st && st != WEIR_ENOTSUP && !first) first = st;
  }
  return first;
}

static void retire_bin(weir_heap *h, block_id id)
{
  weir_heap *idle = &h->pool->common[HEAP_IDLE];
  for (block_id next; id; id = next) {
    next = block(id)->next;
    if (block(id)->stamp > h->done) continue;
    weir_heap_remove(h, id);
    block(id)->stamp = 0;
    weir_block_give(idle, id);
  }
}

void weir_epoch_retire(weir_pool *p, const weir_heap *except)
{
  for (unsigned i = 0; i < p->heap_count; i++) {
    weir_heap *h = weir_heaps[p->numbers[i]];
    if (h == except || !h->free_blocks) continue;
    for (int f = 0; f < TLSF_FIRST; f++)
      for (uint32_t in = h->second[f]; in; in &= in - 1)
        retire_bin(h, h->bins[f][__builtin_ctz(in)]);
  }
}

/* After a wait on `waited` up to and including `epoch`. */
static void learn(weir_heap *waiter, const weir_heap *waited, uint64_t epoch)
{
  for (unsigned i = 0; i < HEAPS; i++)
    if (waited->known[i] > waiter->known[i]) waiter->known[i] = waited->known[i];
  if (epoch > waiter->known[waited->number]) waiter->known[waited->number] = epoch;
}

weir_status weir_epoch_wait(weir_heap *waiter, weir_heap *waited)
{
  const weir_backend *b = waiter->pool->backend;
  if (capturing(waiter)) return weir_fail(WEIR_ENOTSUP, "the stream is being captured");
  weir_status st = mark(waited);
  if (!st) st = b->event_wait(b->self, waiter->stream, waited->marker);
  if (st) return st;
  learn(waiter, waited, waited->marked);
  waiter->pool->waits++;
  return WEIR_OK;
}

void weir_epoch_depend(weir_heap *waiter, weir_heap *waited)
{
  learn(waiter, waited, waited->epoch++);
}

/* Whether a freed block's other streams are through with it, at least before anything that its own
 * stream does from now on. *complete: they have finished. */
static bool uses_over(block_id id, bool *complete)
{
  const weir_heap *own = weir_heaps[block(id)->heap];
  *complete = true;
  for (block_id u = block(id)->uses; u; u = block(u)->next) {
    uint16_t n = block(u)->heap;
    if (block(u)->stamp <= weir_heaps[n]->done) continue;
    if (block(u)->stamp > own->known[n]) return false;
    *complete = false;
  }
  return true;
}

void weir_epoch_pending(weir_pool *p)
{
  block_id id = p->pending, kept = 0;
  for (block_id next; id; id = next) {
    next = block(id)->next;
    bool complete;
    if (!uses_over(id, &complete)) {
      block(id)->next = kept;
      kept = id;
      continue;
    }
    for (block_id u = block(id)->uses, after; u; u = after) {
      after = block(u)->next;
      weir_block_drop(u);
    }
    block(id)->uses = 0;
    p->pending_blocks--;
    p->pending_bytes -= (int64_t)block(id)->bytes;
    /* Only ordered, not complete: then it is the own stream's next marker that tells. */
    const weir_heap *own = weir_heaps[block(id)->heap];
    weir_pool_release_at(id, complete ? block(id)->stamp : own->epoch);
  }
  p->pending = kept;
}

void weir_epoch_alert(weir_pool *p)
{
  p->alert = p->reserved;
}

void weir_epoch_breathe(weir_pool *p)
{
  if (p->heap_count < 2 || !p->alert || p->unmarked <= p->reserved / BATCHES) return;
  p->alert -= p->unmarked < p->alert ? p->unmarked : p->alert;
  weir_epoch_poll(p, true, NULL);
  weir_epoch_pending(p);
  p->unmarked = 0;
}
