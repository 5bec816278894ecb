/* take.c: an event is counted: what is done for every record, without allocating (make_room() of
 * tally.c has made room for a turn of the reader). */
#include "reports/tally/private.h"
#include "reports/tally/probe.h"

static uint64_t find_stack(wr_tally *t, const wr_tally_thread *thread, const trace_event *e)
{
  const uint32_t id = e->stack & 0xffffff;
  if (!id) return 0;
  wr_local_stack *local = wr_find(&t->s.local, wr_key_of_small(thread->serial, id));
  if (!local) {
    wr_facts(t)->lost_stacks++;
    t->stacks_went = true;
  }
  if (local) local->sweep = wr_facts(t)->sweeps;
  return local ? local->stack : WR_STACK_FORGOTTEN;
}

wr_tally_thread *wr_tally_thread_of(wr_tally *t, uint32_t serial, uint32_t tid)
{
  bool added;
  if (t->last) {
    wr_tally_thread *last = wr_table_at(&t->s.thread, t->last - 1);
    if (last->serial == serial) return last;
  }
  wr_tally_thread *thread =
      wr_table_place(&t->s.thread, wr_key_of_one(WR_OF_THREAD, serial), &added);
  if (!thread) return NULL;
  if (added) thread->serial = serial;
  if (!thread->tid) thread->tid = tid;
  t->last = (uint32_t)(thread - (wr_tally_thread *)(void *)t->s.thread.entry) + 1;
  return thread;
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void describe(wr_tally_total *x, const trace_event *e, uint64_t stack)
{
  const bool launch = e->kind == WEIR_EV_LAUNCH; /* its access set is in these bytes */
  *x = (wr_tally_total){.stack = stack,
                        .api = e->api,
                        .status = e->status,
                        .kind = e->kind,
                        .flags = e->flags & WR_TOTAL_FLAGS,
                        .detail = launch ? 0 : e->detail,
                        .mem = launch ? 0 : e->mem,
                        .device = e->device,
                        .src_device = launch ? WEIR_DEVICE_NONE : e->src_device};
}

/* The stack's key is a hash already, or a small number, which must not change the others' bits. */
uint64_t wr_total_key(const wr_tally_total *x)
{
  uint64_t what = (uint64_t)x->api << 48 | (uint64_t)x->status << 32 | (uint64_t)x->kind << 24 |
                  (uint64_t)x->flags << 16 | (uint64_t)x->detail << 8 | x->mem;
  uint64_t where = (uint64_t)x->device << 8 | x->src_device;
  return wr_key(hash_mix(what, (x->stack + (where << 40)) * UINT64_C(0x9fb21c651e98df25)));
}

static bool add_to_total(wr_tally *t, const trace_event *e, uint64_t stack)
{
  wr_tally_total x;
  bool added;
  describe(&x, e, stack);
  wr_tally_total *total = wr_place(&t->s.total, wr_total_key(&x), &added);
  if (!total) return false;
  if (added) {
    x.key = total->key;
    *total = x;
  }
  const uint64_t ticks = event_duration(e);
  total->count++;
  total->bytes += e->bytes;
  total->ticks += ticks;
  if (ticks > total->longest) total->longest = ticks;
  if (e->start > total->last) total->last = e->start;
  return true;
}

/* ---- what waits ------------------------------------------------------------------------------ */

static wr_pending *unused_pending(wr_tally *t)
{
  wr_pending *all = (wr_pending *)(void *)t->s.pending.entry, *p;
  if (t->unused) {
    p = &all[t->unused - 1];
    t->unused = p->after;
    return p;
  }
  return t->s.pending.count < t->s.pending.room ? &all[t->s.pending.count++] : NULL;
}

wr_pending *wr_pending_add(wr_tally *t, wr_tally_thread *thread, uint64_t time)
{
  wr_pending *p = unused_pending(t), *all = (wr_pending *)(void *)t->s.pending.entry;
  uint32_t before = thread->newest;
  if (!p) return NULL;
  while (before && all[before - 1].time > time)
    before = all[before - 1].before;
  const uint32_t at = (uint32_t)(p - all) + 1,
                 after = before ? all[before - 1].after : thread->first;
  *p = (wr_pending){.time = time, .thread = thread->serial, .before = before, .after = after};
  *(before ? &all[before - 1].after : &thread->first) = at;
  *(after ? &all[after - 1].before : &thread->newest) = at;
  t->waiting++;
  return p;
}

void wr_pending_drop(wr_tally *t, wr_tally_thread *thread, wr_pending *p)
{
  wr_pending *all = (wr_pending *)(void *)t->s.pending.entry;
  *(p->before ? &all[p->before - 1].after : &thread->first) = p->after;
  *(p->after ? &all[p->after - 1].before : &thread->newest) = p->before;
  *p = (wr_pending){.after = t->unused};
  t->unused = (uint32_t)(p - all) + 1;
  if (--t->waiting) return;
  t->unused = 0;
  t->s.pending.count = 0;
}

/* The end of a call, where it is no damaged number. */
static uint64_t end_of(const trace_event *e)
{
  uint64_t end = e->start + event_duration(e);
  return end < e->start ? e->start : end;
}

static weir_status keep_waiting(wr_tally *t, wr_tally_thread *thread, const trace_event *e,
                                uint64_t stack, unsigned call)
{
  const bool begins = e->kind == WEIR_EV_ALLOC || (e->kind == WEIR_EV_HOSTREG && e->bytes) ||
                      call == WR_GRAPH_LAUNCHED;
  const uint8_t mem = e->mem & 15;
  if (e->status || e->flags & WEIR_EVF_CAPTURE) return WEIR_OK;
  wr_pending *p = wr_pending_add(t, thread, begins ? end_of(e) : e->start);
  if (!p) return wr_tally_no_room(t);
  p->start = e->start;
  p->address = e->a;
  p->bytes = e->bytes;
  p->stack = stack;
  p->api = e->api;
  p->kind = e->kind;
  p->device = e->device;
  p->mem = mem <= WEIR_MEM_IMPORTED ? mem : WEIR_MEM_UNKNOWN;
  p->context = (uint8_t)(e->stack >> 24);
  p->detail = (uint8_t)call;
  p->flags = e->flags;
  p->reason = e->detail;
  p->src_device = e->src_device;
  p->about = e->b;
  p->stream = e->stream;
  p->ticks = event_duration(e);
  return WEIR_OK;
}

/* ---- contexts, streams, names ---------------------------------------------------------------- */

static wr_call call_of(const wr_tally_thread *thread, const trace_event *e, uint64_t stack)
{
  return (wr_call){.start = e->start,
                   .ticks = event_duration(e),
                   .a = e->a,
                   .b = e->b,
                   .bytes = e->bytes,
                   .stream = e->stream,
                   .stack = stack,
                   .thread = thread->serial,
                   .api = e->api,
                   .kind = e->kind,
                   .flags = e->flags,
                   .device = e->device,
                   .src_device = e->src_device,
                   .detail = e->detail,
                   .mem = e->mem,
                   .context = (uint8_t)(e->stack >> 24)};
}

static weir_status take_stream(wr_tally *t, const wr_tally_thread *thread, const trace_event *e,
                               uint64_t stack)
{
  const uint64_t key = wr_key_of_one(WR_OF_STREAM, e->stream);
  wr_tally_stream *x = wr_table_find(&t->s.stream, key);
  bool added;
  if (e->status) return WEIR_OK;
  if (!e->a) {
    if (x) wr_table_remove(&t->s.stream, x);
    return WEIR_OK;
  }
  x = wr_table_place(&t->s.stream, key, &added);
  if (!x) return wr_tally_no_room(t);
  x->handle = e->stream;
  x->call = call_of(thread, e, stack);
  return WEIR_OK;
}

/* A context is there from its first CONTEXT event on, until its reset. */
static weir_status take_context(wr_tally *t, const wr_tally_thread *thread, const trace_event *e,
                                uint64_t stack)
{
  const uint64_t key = wr_key_of_one(WR_OF_CONTEXT, e->a);
  wr_tally_context *x = wr_table_find(&t->s.context, key);
  bool added = false;
  if (e->status || !e->a) return WEIR_OK;
  if (e->kind == WEIR_EV_RESET) {
    if (x && e->bytes == 1) wr_table_remove(&t->s.context, x);
    return WEIR_OK;
  }
  if (!x) x = wr_table_place(&t->s.context, key, &added);
  if (!x) return wr_tally_no_room(t);
  if (added) x->call = call_of(thread, e, stack);
  x->handle = e->a;
  x->number = (uint8_t)(e->stack >> 24);
  x->device = e->device;
  return WEIR_OK;
}

static void use_name(wr_tally *t, const trace_event *e)
{
  wr_tally_name *name = wr_find(&t->s.name, wr_name_key(WEIR_NAME_KERNEL, e->a));
  if (name && e->start > name->used) name->used = e->start;
}

static uint64_t gauge_key(const trace_event *e, uint8_t fact)
{
  const bool of_pool = fact == WEIR_CACHE_POOL || fact == WEIR_CACHE_POOL_PEAK;
  const uint64_t of = (uint64_t)fact << 16 | (uint64_t)e->device << 8 | (e->mem & 15);
  return wr_key_of(WR_OF_GAUGE, of_pool ? e->a : 0, of);
}

static void end_gauge(wr_tally *t, const trace_event *e, uint8_t fact)
{
  wr_tally_gauge *x = wr_table_find(&t->s.gauge, gauge_key(e, fact));
  if (x) wr_table_remove(&t->s.gauge, x);
}

/* A pool that the program destroyed is no more: another may get its handle. */
static weir_status take_gauge(wr_tally *t, const wr_tally_thread *thread, const trace_event *e,
                              uint64_t stack)
{
  const uint8_t fact = e->cache_fact;
  bool added;
  if (fact == WEIR_CACHE_POOL_ENDED) {
    end_gauge(t, e, WEIR_CACHE_POOL);
    end_gauge(t, e, WEIR_CACHE_POOL_PEAK);
    return WEIR_OK;
  }
  if (fact != WEIR_CACHE_RESERVED && fact != WEIR_CACHE_POOL && fact != WEIR_CACHE_POOL_PEAK &&
      fact != WEIR_CACHE_DEVICE && fact != WEIR_CACHE_GRAPHS)
    return WEIR_OK;
  wr_tally_gauge *x = wr_place(&t->s.gauge, gauge_key(e, fact), &added);
  if (!x) return wr_tally_no_room(t);
  if (e->start < x->time) return WEIR_OK;
  *x = (wr_tally_gauge){.key = x->key,
                        .call = call_of(thread, e, stack),
                        .a = e->a,
                        .b = e->b,
                        .bytes = e->bytes,
                        .time = e->start,
                        .fact = fact,
                        .device = e->device,
                        .mem = e->mem & 15};
  return WEIR_OK;
}

weir_status wr_tally_event(void *context, uint32_t serial, uint32_t tid, const trace_event *e)
{
  wr_tally *t = context;
  wr_tally_thread *thread = wr_tally_thread_of(t, serial, tid);
  if (!thread) return wr_tally_no_room(t);
  if (e->kind == WEIR_EV_RANGE) return wr_tally_range(t, thread, e);
  const uint64_t stack = find_stack(t, thread, e);
  if (!add_to_total(t, e, stack)) return wr_tally_no_room(t);
  wr_facts(t)->events++;
  switch (e->kind) {
  case WEIR_EV_ALLOC:
  case WEIR_EV_FREE:
  case WEIR_EV_HOSTREG:
    return keep_waiting(t, thread, e, stack, 0);
  case WEIR_EV_RESET: {
    weir_status st = take_context(t, thread, e, stack);
    return st ? st : keep_waiting(t, thread, e, stack, 0);
  }
  case WEIR_EV_CALL:
    return t->roles[e->api] ? keep_waiting(t, thread, e, stack, t->roles[e->api]) : WEIR_OK;
  case WEIR_EV_LAUNCH:
    use_name(t, e);
    return WEIR_OK;
  case WEIR_EV_STREAM:
    return take_stream(t, thread, e, stack);
  case WEIR_EV_CONTEXT:
    return take_context(t, thread, e, stack);
  case WEIR_EV_CACHE:
    return take_gauge(t, thread, e, stack);
  default:
    return WEIR_OK;
  }
}
