/* async_error.c: see async_error.h.
 *
 * Notes are one ring a device, written by any thread without a lock: an error is the whole
 * device's, and which stream an operation went to is noted with it. A reader may meet a note that
 * is being replaced; the list is a help, not a proof. Each stream knows up to where its notes are
 * complete (mem_heap.good). */
#include "core/stream/async_error.h"
#include "core/base/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/plugin.h"
#include "core/weir/stream.h"

enum { NOTES = 64, LIST = 200 };

typedef struct note {
  _Atomic(const char *) op;
  _Atomic uint64_t stream; /* its heap's serial */
} note;

static struct ring {
  _Atomic uint64_t count; /* notes made; the next goes to count % NOTES */
  note notes[NOTES];
  char first[LIST + 100]; /* the asynchronous error's first words. Pool's lock */
  uint64_t first_of;      /* birth of the pool it was met in; 0: none was met */
} rings[WEIR_DEVICES];

__thread const char *op_called __attribute__((tls_model("initial-exec")));

static _Atomic int blocking = -1; /* -1: the environment has not been asked yet */

static const char *called(const char *op)
{
  return op_called ? op_called : op;
}

static const mem_heap *heap_of(const weir_stream *stream)
{
  return (const mem_heap *)stream;
}

static struct ring *ring_of(const mem_heap *h)
{
  return &rings[h->pool->backend->index];
}

/* ---- launch blocking ------------------------------------------------------------------------- */

bool weir_launch_blocking(void)
{
  int now = atomic_load_explicit(&blocking, memory_order_relaxed);
  if (__builtin_expect(now >= 0, 1)) return now;
  const char *text = getenv("CUDA_LAUNCH_BLOCKING");
  int asked = text && *text && strcmp(text, "0") != 0, unset = -1;
  (void)atomic_compare_exchange_strong(&blocking, &unset, asked);
  return atomic_load(&blocking);
}

void weir_set_launch_blocking(bool on)
{
  atomic_store(&blocking, on);
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void note_op(const mem_heap *h, const char *op)
{
  struct ring *r = ring_of(h);
  note *n = &r->notes[atomic_fetch_add_explicit(&r->count, 1, memory_order_relaxed) % NOTES];
  atomic_store_explicit(&n->op, op, memory_order_relaxed);
  atomic_store_explicit(&n->stream, h->serial, memory_order_relaxed);
}

uint64_t async_count(weir_stream *stream)
{
  return atomic_load_explicit(&ring_of(heap_of(stream))->count, memory_order_relaxed);
}

void async_complete(weir_stream *stream, uint64_t count)
{
  mem_heap *h = (mem_heap *)stream;
  uint64_t before = atomic_load_explicit(&h->good, memory_order_relaxed);
  while (before < count && !atomic_compare_exchange_weak(&h->good, &before, count))
    ;
}

/* The pool is one backend's time as the device: what was noted before it is of another. */
static uint64_t birth_of(const mem_pool *p)
{
  return p->common[HEAP_IDLE].serial;
}

/* Whether the note's operation may not be complete. Pool's lock held. */
static bool open_note(const mem_pool *p, const note *n, uint64_t number)
{
  uint64_t serial = atomic_load_explicit(&n->stream, memory_order_relaxed);
  if (serial < birth_of(p)) return false;
  for (unsigned i = 0; i < p->heap_count; i++) {
    const mem_heap *h = heap_table[p->numbers[i]];
    if (h->serial == serial) return number >= atomic_load(&h->good);
  }
  return true;
}

/* ", add x3" after what is in `text`, which has room for LIST. False: no room. */
static bool add_name(char *text, const char *op, unsigned times)
{
  char one[80];
  size_t used = strlen(text);
  int n = times > 1 ? snprintf(one, sizeof one, "%s%s x%u", used ? ", " : "", op, times)
                    : snprintf(one, sizeof one, "%s%s", used ? ", " : "", op);
  if (n < 0 || used + (size_t)n + sizeof ", ..." >= LIST) {
    memcpy(text + used, ", ...", sizeof ", ...");
    return false;
  }
  memcpy(text + used, one, (size_t)n + 1);
  return true;
}

/* The operations that may not be complete, in their order, equal neighbours as one. Lock held. */
static void list_notes(char *text, const mem_pool *p)
{
  struct ring *r = &rings[p->backend->index];
  uint64_t end = atomic_load(&r->count), i = end > NOTES ? end - NOTES : 0;
  const char *last = NULL;
  unsigned times = 0;
  for (text[0] = 0; i < end; i++) {
    const note *n = &r->notes[i % NOTES];
    const char *op = atomic_load_explicit(&n->op, memory_order_relaxed);
    if (!op || !open_note(p, n, i)) continue;
    if (last && strcmp(op, last) == 0) {
      times++;
      continue;
    }
    if (last && !add_name(text, last, times)) return;
    last = op;
    times = 1;
  }
  if (last) (void)add_name(text, last, times);
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* Whether the error stays: then the stream, asked again, has it too. A captured stream may not be
 * asked. The sentence is lost. */
static bool error_stays(const mem_heap *h)
{
  const weir_backend *b = h->pool->backend;
  bool complete;
  if (!b->stream_query || epoch_capturing(h)) return false;
  return b->stream_query(b->self, h->stream, &complete) == WEIR_ECUDA;
}

/* What was first known of it. */
static void word_first(char *out, size_t room, mem_pool *p, const char *where)
{
  char list[LIST];
  HOLD_LOCK(&p->lock);
  struct ring *r = &rings[p->backend->index];
  if (r->first_of != birth_of(p)) {
    list_notes(list, p);
    (void)snprintf(r->first, sizeof r->first, "first seen at %s%s%s", where,
                   list[0] ? "; work enqueued since the last sync: " : "", list);
    r->first_of = birth_of(p);
  }
  (void)snprintf(out, room, "%s", r->first);
}

weir_status async_error(weir_stream *stream, const char *where, weir_status st)
{
  const mem_heap *h = heap_of(stream);
  char sentence[200], first[sizeof rings[0].first];
  where = called(where);
  if (st != WEIR_ECUDA || !h || device_forked()) return st;
  (void)snprintf(sentence, sizeof sentence, "%s", weir_error_message());
  if (!error_stays(h)) return weir_fail(st, "%s", sentence);
  word_first(first, sizeof first, h->pool, where);
  return weir_fail(st, "%s (asynchronous error, %s; CUDA_LAUNCH_BLOCKING=1 makes it local)",
                   sentence, first);
}

static weir_status sync_now(const mem_heap *h)
{
  const weir_backend *b = h->pool->backend;
  uint64_t count = atomic_load_explicit(&ring_of(h)->count, memory_order_relaxed);
  weir_status st = b->stream_sync ? b->stream_sync(b->self, h->stream)
                                  : fail_unsupported("the %s backend waits for no stream", b->name);
  if (!st) async_complete((weir_stream *)h, count);
  return st;
}

/* Whether the host may wait for the stream. */
static weir_status may_wait(const mem_heap *h, const char *where)
{
  if (device_forked()) return WEIR_ECUDA;
  if (epoch_capturing(h))
    return fail_invalid("%s: operation not permitted when stream is capturing", where);
  return WEIR_OK;
}

weir_status async_sync(weir_stream *stream, const char *where)
{
  const mem_heap *h = heap_of(stream);
  if (!h) return WEIR_OK;
  where = called(where);
  weir_status st = may_wait(h, where);
  return st ? st : async_error(stream, where, sync_now(h));
}

/* Under launch blocking all before the operation is known to be good: the error is its own. */
static weir_status word_local(const char *op, weir_status st)
{
  return weir_fail(st, "%s: %s (launch blocking: the error is of this operation)", op,
                   weir_error_message());
}

static weir_status wait_for_heap(const mem_heap *h, const char *op)
{
  weir_status st = epoch_capturing(h) ? WEIR_OK : sync_now(h);
  return st ? word_local(op, st) : WEIR_OK;
}

weir_status async_copy(weir_stream *stream, const char *op, enum weir_copy_way way, void *to,
                       const void *from, uint64_t bytes)
{
  const mem_heap *h = heap_of(stream);
  const weir_backend *b = h->pool->backend;
  op = called(op);
  TRY(may_wait(h, op));
  uint64_t count = async_count(stream);
  weir_status st = b->copy_done(b->self, h->stream, way, to, from, bytes);
  if (st) return op_note(stream, op, st);
  async_complete(stream, count);
  return WEIR_OK;
}

weir_status op_note(weir_stream *stream, const char *op, weir_status st)
{
  const mem_heap *h = heap_of(stream);
  bool wait = weir_launch_blocking();
  op = called(op);
  if (__builtin_expect(st != WEIR_OK, 0))
    return wait && st == WEIR_ECUDA ? word_local(op, st) : async_error(stream, op, st);
  if (__builtin_expect(wait, 0)) return wait_for_heap(h, op);
  note_op(h, op);
  return WEIR_OK;
}
