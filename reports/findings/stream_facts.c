/* stream_facts.c: see stream_facts.h. Of each stream the events of its last thousand operations are
 * remembered where a trace has device times; where that are more than MOST_RINGS in all, they are forgotten,
 * and less is found. */
#include "reports/findings/stream_facts.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum {
  MOST_RINGS = 1 << 20,
  SLOW_LAUNCH_NS = 20000,
  NEAR = 4 /* operations between slow launches */
};

/* `in_stream` of a template, besides WR_STREAM_LOOKS and WR_STREAM_QUEUES. */
enum {
  OPERATION = 1 << 2, /* of a stream */
  FURTHER = 1 << 3,   /* a further one of a batch */
  RUNS_ALONE = 1 << 4 /* an asynchronous copy between a device and page-locked memory */
};

enum { MOST_PLACES = 4096 /* that are named in a context */ };

static weir_status out_of_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "finding facts of streams: out of host memory");
}

/* The place of the template's context, `mixed_count` where there is none. */
static size_t mixed_of(const wr_stream_facts *f, const wr_common *t)
{
  size_t i = 0;
  while (i < f->mixed_count &&
         (f->mixed[i].process != t->process || f->mixed[i].context != t->context))
    i++;
  return i;
}

/* The common part knows the place, once it has been searched for. NULL: out of memory. */
static wr_stream_state *stream_of(wr_stream_facts *f, wr_common *t)
{
  bool added;
  if (t->stream_index != UINT32_MAX) return &f->stream[t->stream_index];
  uint64_t key = hash_mix(hash_mix(17, (uint64_t)t->process), (uint64_t)t->context);
  uint64_t *at = hash_map_place(&f->at, hash_mix(key, t->stream), &added);
  if (!at) return NULL;
  if (added) {
    if (!wr_grow(&f->stream, &f->capacity, f->count + 1, sizeof(*f->stream))) return NULL;
    f->stream[f->count] = (wr_stream_state){.context = mixed_of(f, t)};
    *at = f->count++;
  }
  t->stream_index = (uint32_t)*at;
  return &f->stream[*at];
}

/* ---- copies that turn ------------------------------------------------------------------------ */

static bool apart(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
  return a >= b ? a - b >= b_bytes : b - a >= a_bytes;
}

/* A copy right after one in the other direction, of other memory: the host has waited for nothing between, or no second
 * stream would have them run at one time. */
static weir_status see_turn(wr_stream_facts *f, const wr_stream_state *q, const wr_common *t,
                            const wr_fact_call *c, uint64_t waits)
{
  bool alone = q->last && t->in_stream & q->last->in_stream & RUNS_ALONE && waits == q->last_waits;
  if (!alone || t->copy == q->last->copy) return WEIR_OK;
  bool large = c->bytes > WR_SMALL_BYTES && q->last_bytes > WR_SMALL_BYTES;
  if (large && apart(c->a, c->bytes, q->last_b, q->last_bytes) &&
      apart(c->b, c->bytes, q->last_a, q->last_bytes))
    return wr_fact_add(
        f->tables, WR_FACT_TURNED_COPY,
        (const int64_t[]){c->id, q->last_event, t->id, (int64_t)c->bytes, (int64_t)q->last_bytes});
  return WEIR_OK;
}

/* ---- the default stream between others ------------------------------------------------------- */

/* Address 0: there are more than are remembered. */
static weir_status name_place(wr_stream_facts *f, wr_mixed_context *x, const wr_common *t,
                              uint64_t address)
{
  bool added;
  if (x->places > MOST_PLACES || !address) return WEIR_OK;
  uint64_t key = hash_mix(hash_mix(37, (uint64_t)t->id), address);
  if (!hash_map_place(&f->named, key, &added)) return out_of_memory();
  if (!added) return WEIR_OK;
  if (++x->places > MOST_PLACES) address = 0;
  return wr_fact_add(f->tables, WR_FACT_PLACE_NAMED, (const int64_t[]){t->id, (int64_t)address});
}

static void add_pending(wr_mixed_context *x, const wr_common *t, const wr_fact_call *c)
{
  if (t->in_stream & WR_STREAM_LOOKS) return; /* it is done when it returns */
  if (x->pending[0].event && x->pending[0].stream != t->stream) x->pending[1] = x->pending[0];
  x->pending[0] = (wr_stream_work){c->id, t->stream};
}

void wr_stream_wait(wr_stream_facts *f, const wr_common *t)
{
  bool one = t->stream > WEIR_STREAM_PER_THREAD &&
             (t->kind == WEIR_EV_COPY || t->copy == WEIR_SYNC_STREAM);
  for (size_t i = 0; i < f->mixed_count; i++) {
    wr_mixed_context *x = &f->mixed[i];
    if (x->process != t->process) continue;
    if (!one || x->pending[1].stream == t->stream) x->pending[1] = (wr_stream_work){0};
    if (one && x->pending[0].stream != t->stream) continue;
    x->pending[0] = x->pending[1];
    x->pending[1] = (wr_stream_work){0};
  }
}

/* `waits`: of the process before the call. */
static weir_status see_mixed(wr_stream_facts *f, const wr_stream_state *q, const wr_common *t,
                             const wr_fact_call *c, uint64_t waits)
{
  weir_status st = WEIR_OK;
  wr_mixed_context *x = &f->mixed[q->context];
  bool legacy = t->stream == WEIR_STREAM_LEGACY;
  if (legacy && x->work && x->waits == waits)
    st = wr_fact_add(f->tables, WR_FACT_LEGACY_WORK,
                     (const int64_t[]){c->id, x->work, t->id, c->duration, x->pending[1].event});
  if (legacy)
    x->pending[0] = x->pending[1] = (wr_stream_work){0};
  else
    add_pending(x, t, c), x->work = c->id, x->waits = waits;
  if (!st && t->what & WR_MOVES) st = name_place(f, x, t, c->a);
  return !st && t->kind == WEIR_EV_COPY ? name_place(f, x, t, c->b) : st;
}

/* Work of a stream: the legacy default stream, or one that a program made. */
static bool is_work(const wr_common *t, bool legacy)
{
  bool runs = t->device_work && t->in_stream & WR_STREAM_QUEUES && t->what & WR_SUCCEEDED;
  return runs && (legacy ? t->stream == WEIR_STREAM_LEGACY : t->stream > WEIR_STREAM_PER_THREAD);
}

enum { LEGACY_WORK = 1, STREAM_WORK = 2, BOTH = 3, PLACE_AT = 2 /* bits, before the place */ };

static uint64_t context_key(const wr_common *t)
{
  return hash_mix(hash_mix(41, (uint64_t)t->process), (uint64_t)(int64_t)t->context);
}

static uint64_t work_of(const wr_common *t)
{
  return is_work(t, true) ? LEGACY_WORK : is_work(t, false) ? STREAM_WORK : 0;
}

/* What work each context has. */
static weir_status find_works(hash_map *works, const wr_common common[], size_t count)
{
  for (size_t i = 0; i < count; i++) {
    uint64_t work = work_of(&common[i]), *of = NULL;
    if (work && !(of = hash_map_place(works, context_key(&common[i]), NULL)))
      return out_of_memory();
    if (work) *of |= work;
  }
  return WEIR_OK;
}

/* A context that has both: it is looked at. */
static weir_status add_mixed(wr_stream_facts *f, const wr_common *t, uint64_t *work)
{
  if (!wr_grow(&f->mixed, &f->mixed_capacity, f->mixed_count + 1, sizeof(*f->mixed)))
    return out_of_memory();
  f->mixed[f->mixed_count++] = (wr_mixed_context){.process = t->process, .context = t->context};
  *work |= (uint64_t)f->mixed_count << PLACE_AT;
  return WEIR_OK;
}

weir_status wr_stream_choose(wr_stream_facts *f, wr_common common[], size_t count)
{
  hash_map works = {0};
  weir_status st = find_works(&works, common, count);
  for (size_t i = 0; !st && i < count; i++) {
    wr_common *t = &common[i];
    uint64_t *work = work_of(t) ? hash_map_get(&works, context_key(t)) : NULL;
    if (!work || (*work & BOTH) != BOTH) continue;
    t->in_stream |= WR_STREAM_MIXED;
    if (!(*work >> PLACE_AT)) st = add_mixed(f, t, work);
  }
  hash_map_free(&works);
  return st;
}

/* ---- full queues ----------------------------------------------------------------------------- */

static void forget_rings(wr_stream_facts *f)
{
  for (size_t i = 0; i < f->count; i++) {
    free(f->stream[i].ring);
    f->stream[i].ring = NULL;
    f->stream[i].kept = f->stream[i].ring_capacity = 0;
  }
  f->rings = 0;
}

/* *before: the event of the operation that many before this one; 0: it is not known. */
static weir_status keep_event(wr_stream_facts *f, wr_stream_state *q, int64_t event,
                              int64_t *before)
{
  *before = 0;
  if (!f->timed) return WEIR_OK;
  if (q->kept < WR_QUEUE_DEPTH && f->rings >= MOST_RINGS) forget_rings(f);
  if (q->kept < WR_QUEUE_DEPTH) {
    if (!wr_grow(&q->ring, &q->ring_capacity, (size_t)q->kept + 1, sizeof(*q->ring)))
      return out_of_memory();
    f->rings++;
  } else {
    *before = q->ring[q->kept % WR_QUEUE_DEPTH];
  }
  q->ring[q->kept++ % WR_QUEUE_DEPTH] = event;
  return WEIR_OK;
}

/* A launch with as many operations before it that keeps the host. `quiet`: the host has not waited since the
 * first of them, and two of the last few were such launches. */
static weir_status see_deep(wr_stream_facts *f, wr_stream_state *q, const wr_common *t,
                            const wr_fact_call *c, int64_t before)
{
  if (t->kind != WEIR_EV_LAUNCH || c->duration < SLOW_LAUNCH_NS || q->operations < WR_QUEUE_DEPTH)
    return WEIR_OK;
  bool again = q->slow[0] && q->slow[0] + NEAR >= q->operations;
  bool quiet = q->since >= WR_QUEUE_DEPTH && again;
  q->slow[0] = q->slow[1];
  q->slow[1] = q->operations;
  if (!quiet && !before) return WEIR_OK;
  const int64_t v[] = {c->id, before, t->id, c->duration, quiet};
  return wr_fact_add_either(f->tables, WR_FACT_DEEP_LAUNCH, v, !before);
}

static weir_status see_operation(wr_stream_facts *f, wr_stream_state *q, const wr_common *t,
                                 const wr_fact_call *c, uint64_t waits)
{
  int64_t before = 0;
  if (q->waits != waits) q->since = 0, q->waits = waits;
  weir_status s = keep_event(f, q, c->id, &before);
  if (!s) s = see_deep(f, q, t, c, before);
  q->operations++;
  q->since++;
  return s;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static bool looks(const wr_common *t)
{
  bool async = t->flags & WEIR_EVF_ASYNC, waits = t->flags & WEIR_EVF_IMPLICIT_SYNC;
  if (t->kind == WEIR_EV_SYNC) return t->copy != WEIR_SYNC_STREAM_WAIT;
  if (t->kind != WEIR_EV_COPY || t->flags & WEIR_EVF_CAPTURE || !waits) return false;
  return t->copy == WEIR_COPY_DTOH || (t->copy == WEIR_COPY_HTOD && !async);
}

uint16_t wr_stream_kind(const wr_common *t)
{
  bool copy = t->kind == WEIR_EV_COPY, call = t->kind == WEIR_EV_CALL;
  bool crosses = copy && (t->copy == WEIR_COPY_HTOD || t->copy == WEIR_COPY_DTOH);
  bool locked = t->mem == WEIR_MEM_PINNED || t->src_mem == WEIR_MEM_PINNED;
  bool queues = copy || t->kind == WEIR_EV_MEMSET || t->kind == WEIR_EV_LAUNCH || call;
  unsigned in = looks(t) ? WR_STREAM_LOOKS : 0;
  if (queues && !(t->flags & WEIR_EVF_CAPTURE)) in |= WR_STREAM_QUEUES;
  if (!call || t->stream) in |= OPERATION;
  if (t->flags & WEIR_EVF_BATCH) in |= FURTHER;
  if (crosses && locked && t->flags & WEIR_EVF_ASYNC) in |= RUNS_ALONE;
  return (uint16_t)in;
}

weir_status wr_stream_queue(wr_stream_facts *f, wr_common *t, const wr_fact_call *c, uint64_t waits)
{
  weir_status s = WEIR_OK;
  unsigned in = t->in_stream;
  wr_stream_state *q = stream_of(f, t);
  if (!q) return out_of_memory();
  if (in & OPERATION) s = see_operation(f, q, t, c, waits);
  if (!s && in & WR_STREAM_MIXED && f->any_blocking)
    s = see_mixed(f, q, t, c, waits - (in & WR_STREAM_LOOKS));
  if (s || in & FURTHER) return s;
  s = see_turn(f, q, t, c, waits);
  q->last = t, q->last_waits = waits;
  q->last_event = c->id, q->last_a = c->a, q->last_b = c->b, q->last_bytes = c->bytes;
  return s;
}

void wr_stream_facts_free(wr_stream_facts *f)
{
  forget_rings(f);
  hash_map_free(&f->at);
  hash_map_free(&f->named);
  free(f->mixed);
  free(f->stream);
  *f = (wr_stream_facts){.tables = f->tables, .timed = f->timed};
}
