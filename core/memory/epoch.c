/* epoch.c: which freed memory no work may touch any more.
 *
 * A heap's epoch stamps what is freed on its stream. One marker (an event) recorded in the stream
 * closes the epoch and covers every free before it, so a marker serves a batch of frees; it is
 * recorded when somebody needs to know, never at every free. When it is complete, `done` moves up.
 * A stream has a few markers on their way, so that a burst of frees is learnt of in steps.
 *
 * Somebody who is short now needs to know of the work before, and a marker recorded now shows it
 * later. So while memory is short (alert: somebody grew, or found memory only by asking, less than
 * a turnover of the pool ago) markers are recorded in advance, 64 a turnover. A program that
 * repeats itself is not short, and records none.
 *
 * known[n] of a heap is the same for order instead of completion: its stream runs after heap n's
 * work of those epochs, because a wait was inserted.
 *
 * Host memory is in no stream's order: only the work that was recorded (USE) gates it, in heaps of
 * devices' pools, whose locks are taken one by one while the host pool's is held. */
#include <string.h>
#include "core/memory/history.h"
#include "core/base/lock.h"

enum { BATCHES = 64 }; /* markers for as many bytes of frees as are reserved */

/* Whether nothing may be recorded. A stream that allocates to a private pool is left alone from
 * then on, since its capture may begin at any moment; so is the default stream, which other streams
 * wait for, while any does. */
static bool closed(const mem_heap *h)
{
  return h->diverted || (!h->stream && h->pool->capture_count) || epoch_capturing(h);
}

/* Records a marker. Where all are on their way, the latest is recorded again: it is complete later
 * then, but the one before it shows it meanwhile. */
static weir_status record_epoch(mem_heap *h)
{
  const weir_backend *b = h->pool->backend;
  weir_status st = WEIR_OK;
  unsigned next = h->flying < MARKERS ? h->flying : MARKERS - 1;
  epoch_marker *m = &h->markers[(h->oldest + next) % MARKERS];
  if (!m->event) st = b->event_create(b->self, &m->event);
  if (!st) st = b->event_record(b->self, m->event, h->stream);
  if (st) return st;
  h->flying = next + 1;
  h->marked = m->epoch = h->epoch++;
  return WEIR_OK;
}

/* The event that covers all that is marked. */
static void *latest(const mem_heap *h)
{
  return h->markers[(h->oldest + h->flying + MARKERS - 1) % MARKERS].event;
}

static void query_markers(mem_heap *h)
{
  const weir_backend *b = h->pool->backend;
  while (h->flying) {
    const epoch_marker *m = &h->markers[h->oldest];
    bool complete = false;
    if (b->event_query(b->self, m->event, &complete) || !complete) return;
    h->done = m->epoch;
    h->retirable = true;
    h->oldest = (h->oldest + 1) % MARKERS;
    h->flying--;
  }
}

/* Closes the epoch: a marker now. Fails without a change. ENOTSUP has no sentence: whoever marks
 * for somebody else's sake leaves theirs. */
static weir_status mark_epoch(mem_heap *h)
{
  return closed(h) ? WEIR_ENOTSUP : record_epoch(h);
}

static void poll_heap(mem_heap *h, bool may_mark)
{
  query_markers(h);
  if (may_mark && h->dirty > h->marked && !mark_epoch(h)) query_markers(h);
}

void epoch_poll(mem_pool *p, bool may_mark, const mem_heap *except)
{
  for (unsigned i = 0; i < p->heap_count; i++) {
    mem_heap *h = heap_table[p->numbers[i]];
    if (h != except) poll_heap(h, may_mark);
  }
}

static weir_status sync_heap(mem_heap *h)
{
  const weir_backend *b = h->pool->backend;
  if (h->dirty <= h->done) return WEIR_OK;
  weir_status st = h->dirty > h->marked ? mark_epoch(h) : WEIR_OK;
  if (!st) st = b->event_sync(b->self, latest(h));
  if (st) return st == WEIR_ENOTSUP ? WEIR_OK : st;
  h->done = h->marked;
  h->retirable = true;
  h->flying = 0;
  h->pool->syncs++;
  return WEIR_OK;
}

static weir_status poll_and_mark(mem_heap *h)
{
  poll_heap(h, true);
  return WEIR_OK;
}

/* Calls `one` for every heap that pending blocks of a host pool name, once. */
static weir_status each_used(mem_pool *p, weir_status (*one)(mem_heap *h))
{
  uint64_t seen[HEAPS / 64] = {0};
  weir_status first = WEIR_OK;
  for (block_id id = p->pending; id; id = block(id)->next)
    for (block_id u = block(id)->uses; u; u = block(u)->next) {
      if (block(u)->class != USE_STREAM) continue;
      uint16_t n = block(u)->heap;
      if (seen[n / 64] >> n % 64 & 1) continue;
      seen[n / 64] |= UINT64_C(1) << n % 64;
      mem_heap *h = heap_table[n];
      pthread_mutex_lock(&h->pool->lock);
      weir_status st = one(h);
      pthread_mutex_unlock(&h->pool->lock);
      if (!first) first = st;
    }
  return first;
}

weir_status epoch_sync(mem_pool *p)
{
  weir_status first = p->host ? each_used(p, sync_heap) : WEIR_OK;
  for (unsigned i = 0; i < p->heap_count; i++) {
    weir_status st = sync_heap(heap_table[p->numbers[i]]);
    if (!first) first = st;
  }
  return first;
}

static void retire_bin(mem_heap *h, block_id id)
{
  mem_heap *idle = &h->pool->common[HEAP_IDLE];
  for (block_id next; id; id = next) {
    next = block(id)->next;
    if (block(id)->stamp > h->done) continue;
    heap_remove(h, id);
    block(id)->stamp = 0;
    block_give(idle, id);
  }
}

void epoch_retire(mem_pool *p, const mem_heap *except)
{
  for (unsigned i = 0; i < p->heap_count; i++) {
    mem_heap *h = heap_table[p->numbers[i]];
    if (h == except || !h->retirable) continue;
    h->retirable = false;
    for (int f = 0; f < TLSF_FIRST; f++)
      for (uint32_t in = h->second[f]; in; in &= in - 1)
        retire_bin(h, h->bins[f][__builtin_ctz(in)]);
  }
  graph_retire(p);
}

/* After a wait on `waited` up to and including `epoch`. */
static void learn_epochs(mem_heap *waiter, const mem_heap *waited, uint64_t epoch)
{
  for (unsigned i = 0; i < HEAPS; i++)
    if (waited->known[i] > waiter->known[i]) waiter->known[i] = waited->known[i];
  if (epoch > waiter->known[waited->number]) waiter->known[waited->number] = epoch;
}

weir_status epoch_wait(mem_heap *waiter, mem_heap *waited)
{
  const weir_backend *b = waiter->pool->backend;
  if (closed(waiter) || closed(waited)) return fail_unsupported("the stream is being captured");
  TRY(record_epoch(waited));
  TRY(b->event_wait(b->self, waiter->stream, latest(waited)));
  learn_epochs(waiter, waited, waited->marked);
  waiter->pool->waits++;
  return WEIR_OK;
}

uint64_t epoch_close(mem_heap *h)
{
  return h->left ? h->marked : h->epoch++;
}

void epoch_learn(mem_heap *waiter, const mem_heap *waited, uint64_t epoch, bool ordered)
{
  uint64_t *known = &waiter->known[waited->number];
  if (ordered) learn_epochs(waiter, waited, epoch);
  if (epoch > *known) *known = epoch;
}

void epoch_depend(mem_heap *waiter, mem_heap *waited)
{
  learn_epochs(waiter, waited, epoch_close(waited));
}

void epoch_use(mem_pool *p, block_id use)
{
  mem_heap *h = heap_table[block(use)->heap];
  if (h->pool != p) pthread_mutex_lock(&h->pool->lock);
  block(use)->stamp = h->dirty = h->epoch;
  if (h->pool != p) pthread_mutex_unlock(&h->pool->lock);
}

static bool use_complete(const mem_pool *p, block_id use)
{
  mem_heap *h = heap_table[block(use)->heap];
  if (h->pool == p) return block(use)->stamp <= h->done;
  HOLD_LOCK(&h->pool->lock);
  return block(use)->stamp <= h->done;
}

/* Whether a freed block's other streams are through with it, at least before anything that its own
 * stream does from now on. *complete: they have finished. */
static bool uses_over(block_id id, bool *complete)
{
  const mem_heap *own = heap_table[block(id)->heap]->clock;
  *complete = true;
  for (block_id u = block(id)->uses; u; u = block(u)->next) {
    uint16_t n = block(u)->heap;
    if (block(u)->class == USE_PAUSE) continue;
    if (block(u)->class == USE_EXPORT) return false;
    if (use_complete(own->pool, u)) continue;
    if (own->pool->host || block(u)->stamp > own->known[n]) return false;
    *complete = false;
  }
  return true;
}

void epoch_pending(mem_pool *p)
{
  block_id id = p->pending;
  if (p->host) (void)each_used(p, poll_and_mark);
  p->pending = 0;
  for (block_id next; id; id = next) {
    mem_block *b = block(id);
    next = b->next;
    bool complete;
    if (!uses_over(id, &complete)) {
      b->next = p->pending;
      p->pending = id;
      continue;
    }
    for (block_id u = b->uses, after; u; u = after) {
      after = block(u)->next;
      if (block(u)->class == USE_STREAM) block_use_drop(b, u);
    }
    history_free(p, id, true);
    pool_count_pending(p, b, -1);
    /* Only ordered, not complete: then it is the own stream's next marker that shows it. */
    const mem_heap *own = heap_table[b->heap]->clock;
    pool_release_at(id, complete ? b->stamp : own->epoch);
  }
}

void epoch_collect(mem_pool *p)
{
  epoch_poll(p, true, NULL);
  epoch_pending(p);
  epoch_retire(p, NULL);
}

void epoch_alert(mem_pool *p)
{
  if (!p->alert) p->unmarked = 0;
  p->alert = p->reserved;
}

void epoch_after_frees(mem_pool *p)
{
  if (p->heap_count < 2) p->unmarked = 0;
  if (!p->alert || p->unmarked <= p->reserved / BATCHES) return;
  p->alert -= p->unmarked < p->alert ? p->unmarked : p->alert;
  epoch_poll(p, true, NULL);
  epoch_pending(p);
  p->unmarked = 0;
}

/* ---- streams that come and go ------------------------------------------------------------------
 * A stream that is left gets its last marker, and its heap stays, with its thread caches stopped:
 * live blocks still belong to it, and what is freed is covered by that marker. When it is complete
 * the heap serves the next new stream, blocks and all: nothing of the old stream is in flight, so
 * what is freed on the heap from now on may follow the new one. Only what the old one was known to
 * run after is forgotten. */

weir_status epoch_leave(mem_heap *h)
{
  mem_pool *p = h->pool;
  if (h->left) return fail_invalid("the stream has been released before");
  if (h->diverted || epoch_capturing(h))
    return fail_invalid("the stream is being captured, or allocates to a private pool");
  tcache_divert(p, h, 1);
  tcache_reclaim(p);
  weir_status st = record_epoch(h);
  if (st) {
    tcache_divert(p, h, -1);
    return st;
  }
  h->dirty = h->epoch = h->marked; /* what is freed later is covered, too */
  h->left = true;
  return WEIR_OK;
}

bool epoch_return(mem_heap *h, void *stream)
{
  if (!h->left || h->own) return false;
  poll_heap(h, false);
  if (h->done < h->marked) return false;
  h->left = false;
  h->stream = stream;
  h->serial = heap_serial();
  h->epoch = h->marked + 1;
  memset(h->known, 0, HEAPS * sizeof *h->known);
  tcache_divert(h->pool, h, -1);
  return true;
}
