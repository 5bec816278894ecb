/* queues.c: see queues.h.
 *
 * A queue's operations are complete up to `done`: a wait has shown that. What its next operation
 * waits for in other queues is the set `after`; an operation's number and `after` together are all
 * that an event captures, and completing it completes these. Points at or below `done` are dropped
 * wherever they are met, so that the sets hold what may be pending and are small.
 *
 * Points are joined: of two in one queue the further one has it all. So what may be pending in a
 * whole context is all of its queues, whatever these wait for, as long as that is in the context
 * too: `outside` and `aside` mark the queues of which it need not be, and the contexts that have
 * such queues. Nearly all waits are judged so, by the context's two *tallies* of what may be
 * pending: each operation adds itself to one, and one is made again after operations were shown to
 * be complete.
 *
 * What the default stream's rule makes an action wait for is not kept where nothing of it is sure.
 * The legacy stream waits for its context's other queues as far as they had come at its last action:
 * a queue's first operation after that action stores how far (`marked`). Any other queue waits for
 * the legacy stream and for what that waits for, of which there is never less later: whoever looks
 * at the queue looks at the legacy stream as well.
 *
 * A call is *open* from its start until the pass has come by its end. What other threads' open
 * calls do may come before or after what a call does: `may` has it, `sure` has not. What a wait
 * shows is known at its end: calls are closed in order of their ends. */
#include "reports/queues/queues.h"
#include "reports/queues/private.h"

/* ---- waits ----------------------------------------------------------------------------------- */

static __attribute__((noinline)) weir_status sync_stream(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  if (!queue_of(m, c, &place)) return no_memory_to_judge();
  weir_status st = c->act == WR_ACT_SYNC_STREAM ? wr_queues_judge_queue(m, c, place, 0) : WEIR_OK;
  open_call *o = begin_call(m, c);
  o->clear_queue = place + 1;
  return st ? st : wr_queues_begin_showing_queue(m, o, place) ? WEIR_OK : no_memory_to_judge();
}

/* Some queue of the context waits for what it has been kept of, so that a set has to be made. */
static bool any_points(const wr_queues *m, const context *x)
{
  for (size_t i = 0; i < x->count; i++)
    if (m->queues[x->active[i]]->after.count) return true;
  return false;
}

static __attribute__((noinline)) weir_status sync_context(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  if (!find_context(m, c, &of)) return no_memory_to_judge();
  context *x = m->contexts[of];
  bool whole = !m->watch && is_whole(m, of, 0), alone = whole && (!x->open || !any_points(m, x));
  empty_set(m);
  if (!alone && !wr_queues_add_context(m, of, c->thread, true, false)) return no_memory_to_judge();
  int64_t by = x->done_by;
  weir_status st = whole ? wr_queues_judge_whole(m, c, x, false, by) : wr_queues_judge(m, c, by, 0);
  open_call *o = begin_call(m, c);
  o->clear_context = of + 1;
  if (st) return st;
  bool shown = alone ? wr_queues_begin_showing_whole(m, o, of) : wr_queues_begin_showing(m, o);
  return shown ? WEIR_OK : no_memory_to_judge();
}

/* Joins what the event captured, but for points in queue `but`. */
static bool join_event(wr_queues *m, wr_points *set, const wr_queue_call *c, const event *e,
                       uint32_t but)
{
  const process *p = calling_process(m);
  bool sure = !e->unseen && c->start >= e->busy_until;
  m->hint = 0;
  for (size_t i = 0; i < e->at.count; i++)
    if (e->at.at[i].queue != but && !wr_queues_join_point(m, set, &e->at.at[i], sure)) return false;
  set->any |= e->at.any || !sure || p->events_unseen;
  return true;
}

static __attribute__((noinline)) weir_status sync_event(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  const event *e = wr_queues_event_of(m, c, &place);
  empty_set(m);
  if (!e || !join_event(m, &m->set, c, e, NO_QUEUE)) return no_memory_to_judge();
  int64_t by = e->queue ? m->queues[e->queue - 1]->done_by : 0;
  weir_status st = c->act == WR_ACT_SYNC_EVENT ? wr_queues_judge(m, c, by, 0) : WEIR_OK;
  open_call *o = begin_call(m, c);
  ask_event(m, o, place);
  return st ? st : wr_queues_begin_showing(m, o) ? WEIR_OK : no_memory_to_judge();
}

/* cudaFree: "may perform implicit synchronization": of what, is not documented. */
static __attribute__((noinline)) weir_status free_memory(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  if (!find_context(m, c, &of)) return no_memory_to_judge();
  context *x = m->contexts[of];
  int64_t by = x->done_by;
  if (!m->watch && is_whole(m, of, 0)) return wr_queues_judge_whole(m, c, x, false, by);
  empty_set(m);
  if (!wr_queues_add_context(m, of, c->thread, false, false)) return no_memory_to_judge();
  return wr_queues_judge(m, c, by, 0);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* *at: the open call, made where it is NULL. */
static inline bool queue_work(wr_queues *m, const wr_queue_call *c, uint32_t place, open_call **at)
{
  if (!follow_rule(m, place, c->thread, !(c->how & WR_HOW_UNSURE))) return false;
  open_call *o = *at ? *at : begin_call(m, c);
  *at = o;
  change_queue(m, o, place);
  queue *q = m->queues[place];
  context *x = q->home;
  if (q->marked_at != x->legacy_actions) q->marked = q->now, q->marked_at = x->legacy_actions;
  count_operation(q, c);
  uint64_t number = ++q->now.last;
  o->number = number;
  o->bytes_before = q->now.bytes;
  q->now.bytes += c->handle;
  q->now.youngest = c->id;
  if (c->host & WR_HOST_RESULT) q->now.result = number;
  if (c->host & WR_HOST_SOURCE) q->now.source = number;
  note_change(m, place);
  if (m->watch) m->watch->work(m->watch->context, c, place, number);
  return activate(m, place);
}

static __attribute__((noinline)) weir_status take_queued_work(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  weir_status st = WEIR_OK;
  open_call *o = NULL;
  if (!queue_of(m, c, &place)) return no_memory_to_judge();
  if (c->how & WR_HOW_WAITS) st = wr_queues_judge_queue(m, c, place, place + 1);
  if (st) return st;
  if (c->how & WR_HOW_WAITS_BEFORE) {
    o = begin_call(m, c);
    if (!wr_queues_begin_showing_queue(m, o, place)) return no_memory_to_judge();
  }
  if (!queue_work(m, c, place, &o)) return no_memory_to_judge();
  if (c->how & WR_HOW_WAITS_ALL && !wr_queues_begin_showing_queue(m, o, place))
    return no_memory_to_judge();
  if (c->act != WR_ACT_PEER_WORK) return WEIR_OK;
  process *p = calling_process(m);
  queue *q = m->queues[place];
  q->after.any = q->home->any = true;
  p->peer_queue = place + 1;
  p->peer_number = q->now.last;
  return WEIR_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Calls that ask for the event at this moment may mean the earlier recording or this one. */
static bool upset_askers(wr_queues *m, uint32_t place)
{
  bool worked = true;
  for (uint32_t i = m->open_first; m->events[place].askers && i < m->open_end; i++) {
    open_call *o = &m->open[m->opened[i]];
    if (o->event != place + 1) continue;
    o->shown = 0;
    if (!o->queue) continue;
    queue *q = m->queues[o->queue - 1];
    q->after.any = q->home->any = true;
    q->has_surely = 0;
    for (size_t k = 0; k < q->after.count; k++)
      q->after.at[k].sure = 0, q->after.at[k].sure_bytes = 0;
    worked &= activate(m, o->queue - 1);
  }
  return worked;
}

/* The event has captured the set. */
static bool capture_in_event(wr_queues *m, const wr_queue_call *c, uint32_t queue)
{
  uint32_t place = 0;
  event *e = wr_queues_event_of(m, c, &place);
  if (!e) return false;
  if (!upset_askers(m, place) || !wr_points_keep(&e->at, &m->set)) return false;
  e->queue = queue;
  e->busy_until = c->end;
  e->unseen = c->how & WR_HOW_UNSEEN;
  return true;
}

static bool record_event(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  if (!queue_of(m, c, &place) || !follow_rule(m, place, c->thread, true)) return false;
  empty_set(m);
  if (!wr_queues_add_followed(m, place, c->thread)) return false;
  begin_change(m, c, place);
  if (m->set.count) note_change(m, place);
  return capture_in_event(m, c, place + 1);
}

static bool record_context(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  empty_set(m);
  return find_context(m, c, &of) && wr_queues_add_context(m, of, c->thread, true, false) &&
         capture_in_event(m, c, 0);
}

/* "Makes all future work submitted to stream wait for all work captured in event." Of an event that
 * was never recorded, or in the same stream, it may be no action. */
static bool stream_wait(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0, at = 0;
  const event *e = wr_queues_event_of(m, c, &at);
  if (!e || !queue_of(m, c, &place)) return false;
  bool action = !e->unseen && e->queue && e->queue != place + 1;
  if (!follow_rule(m, place, c->thread, action)) return false;
  wr_queues_begin_after(m, place, c->thread);
  e = &m->events[at];
  queue *q = m->queues[place];
  wr_queues_note_places(m, q, &e->at);
  if (!join_event(m, &q->after, c, e, place) || !wr_queues_end_after(m, place)) return false;
  ask_event(m, begin_change(m, c, place), at);
  note_change(m, place);
  return true;
}

static bool create_event_object(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  event *e = wr_queues_event_of(m, c, &place);
  if (!e) return false;
  e->at.count = 0;
  e->at.any = false;
  e->queue = 0;
  e->busy_until = INT64_MIN;
  e->unseen = c->how & WR_HOW_UNSEEN;
  return true;
}

static bool destroy_event(wr_queues *m, const wr_queue_call *c)
{
  uint64_t key = key_of_object(4, c->process, c->handle, 0);
  const uint64_t *at = hash_map_get(&m->event_of, key);
  if (!at) return true;
  if (!wr_grow(&m->unused, &m->unused_capacity, m->unused_count + 1, sizeof(*m->unused)))
    return false;
  wr_points_free(&m->events[*at].at);
  if (!upset_askers(m, (uint32_t)*at)) return false;
  m->unused[m->unused_count++] = (uint32_t)*at;
  hash_map_remove(&m->event_of, key);
  return true;
}

/* ---- streams, contexts ----------------------------------------------------------------------- */

/* The handle is another stream's from now on; what is queued in the old one goes on. */
static bool forget_stream(wr_queues *m, const wr_queue_call *c)
{
  m->streams++;
  hash_map_remove(&m->queue_of, key_of_object(1, c->process, c->stream, 0));
  return true;
}

static bool create_stream(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  return c->stream <= WR_QUEUE_PER_THREAD || (forget_stream(m, c) && queue_of(m, c, &place));
}

/* All that was pending in the context is gone. */
static void end_context(wr_queues *m, context *x, const wr_queue_call *c)
{
  while (x->count) {
    uint32_t place = x->active[--x->count];
    queue *q = m->queues[place];
    bool pending = q->now.last > q->done;
    note_retired(x, q);
    m->shown++;
    q->done = q->now.last;
    q->done_bytes = q->now.bytes;
    if (pending) q->done_by = x->done_by = c->id;
    q->tally->stale = true;
    q->after.count = 0;
    q->after.any = q->outside = q->aside = false;
    if (pending) watch_done(m, place, c->end);
  }
}

static bool reset(wr_queues *m, const wr_queue_call *c)
{
  for (unsigned number = 1; number < NO_NUMBER; number++) {
    const uint64_t *at = hash_map_get(&m->context_of, key_of_object(0, c->process, number, 0));
    if (!at) continue;
    context *x = m->contexts[*at];
    bool hit = c->act == WR_ACT_RESET_CONTEXT ? number == c->context : x->device == c->device;
    if (hit) end_context(m, x, c);
  }
  return true;
}

static bool give_up_queues(wr_queues *m, int64_t row)
{
  process *p = wr_queues_find_process(m, row);
  if (p) p->incomplete = true;
  return p != NULL;
}

static bool events_unseen(wr_queues *m, int64_t row)
{
  process *p = wr_queues_find_process(m, row);
  if (p) p->events_unseen = true;
  return p != NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

static __attribute__((noinline)) bool take_context_change(wr_queues *m, const wr_queue_call *c)
{
  switch ((wr_act)c->act) {
  case WR_ACT_RECORD:
    return record_event(m, c);
  case WR_ACT_RECORD_CONTEXT:
    return record_context(m, c);
  case WR_ACT_STREAM_WAIT:
    return stream_wait(m, c);
  case WR_ACT_STREAM_CREATE:
    return create_stream(m, c);
  case WR_ACT_STREAM_DESTROY:
    return forget_stream(m, c);
  case WR_ACT_EVENT_CREATE:
    return create_event_object(m, c);
  case WR_ACT_EVENT_DESTROY:
    return destroy_event(m, c);
  case WR_ACT_EVENTS_UNSEEN:
    return events_unseen(m, c->process);
  case WR_ACT_CONTEXT_WAIT:
    return give_up_queues(m, c->process);
  case WR_ACT_RESET_DEVICE:
  case WR_ACT_RESET_CONTEXT:
    return reset(m, c);
  default:
    return true;
  }
}

/* Its context has a number that others have too, or none, and it is that which counts. */
static bool lost_context(const wr_queue_call *c)
{
  if (c->context == NO_NUMBER) return true;
  bool whole = c->act == WR_ACT_SYNC_CONTEXT || c->act == WR_ACT_RECORD_CONTEXT;
  bool named = c->stream == WR_QUEUE_LEGACY || c->stream == WR_QUEUE_PER_THREAD;
  return !c->context && (whole || named);
}

/* Of a process that is not judged it counts that there was a wait. */
static weir_status take_unjudged(wr_queues *m, const wr_queue_call *c)
{
  bool work = c->act == WR_ACT_WORK || c->act == WR_ACT_PEER_WORK;
  bool waits = work ? c->how & WR_HOW_WAITS
                    : c->act == WR_ACT_FREE || c->act == WR_ACT_SYNC_STREAM ||
                          c->act == WR_ACT_SYNC_CONTEXT || c->act == WR_ACT_SYNC_EVENT;
  wr_wait_verdict v = {.row = {.id = c->id}, .call = c};
  return waits ? m->verdict(m->verdict_context, &v) : WEIR_OK;
}

weir_status wr_queues_take(wr_queues *m, const wr_queue_call *c)
{
  close_until(m, c->start);
  m->calls++;
  m->caller = find_caller(m, c);
  if ((uint8_t)(c->context - 1) >= NO_NUMBER - 1 && lost_context(c) &&
      !give_up_queues(m, c->process))
    return no_memory_to_judge();
  if (!find_calling_process(m, c)) return no_memory_to_judge();
  if (calling_process(m)->incomplete && !m->watch) return take_unjudged(m, c);
  switch ((wr_act)c->act) {
  case WR_ACT_WORK:
  case WR_ACT_PEER_WORK:
    return take_queued_work(m, c);
  case WR_ACT_SYNC_STREAM:
  case WR_ACT_STREAM_DONE:
    return sync_stream(m, c);
  case WR_ACT_SYNC_CONTEXT:
    return sync_context(m, c);
  case WR_ACT_SYNC_EVENT:
  case WR_ACT_EVENT_DONE:
    return sync_event(m, c);
  case WR_ACT_FREE:
    return free_memory(m, c);
  default:
    return take_context_change(m, c) ? WEIR_OK : no_memory_to_judge();
  }
}

void wr_queues_watch(wr_queues *m, const wr_queue_watch *watch)
{
  m->watch = watch;
}

uint8_t wr_queues_device(const wr_queues *m, uint32_t queue)
{
  return m->queues[queue]->home->device;
}

bool wr_queues_cut(wr_queues *m, int64_t row)
{
  process *p = wr_queues_find_process(m, row);
  if (p) p->cut = true;
  return p != NULL;
}

bool wr_queues_incomplete(wr_queues *m, int64_t process)
{
  return give_up_queues(m, process);
}

wr_queues *wr_queues_open(wr_verdict_fn verdict, void *context)
{
  wr_queues *m = calloc(1, sizeof(*m));
  if (!m) return NULL;
  m->verdict = verdict;
  m->verdict_context = context;
  for (unsigned i = 0; i < OPEN_MOST; i++)
    m->unopened[i] = (uint16_t)(OPEN_MOST - 1 - i);
  m->unopened_count = OPEN_MOST;
  return m;
}

void wr_queues_close(wr_queues *m)
{
  if (!m) return;
  for (size_t i = 0; i < m->queue_count; i++)
    if (m->queues[i]) wr_points_free(&m->queues[i]->after), free(m->queues[i]);
  for (size_t i = 0; i < m->context_count; i++)
    if (m->contexts[i]) free(m->contexts[i]->active), free(m->contexts[i]);
  for (size_t i = 0; i < m->event_count; i++)
    wr_points_free(&m->events[i].at);
  for (size_t i = 0; i < OPEN_MOST; i++)
    free(m->open[i].shows);
  hash_map_free(&m->queue_of);
  hash_map_free(&m->context_of);
  hash_map_free(&m->event_of);
  hash_map_free(&m->process_of);
  free(m->queues);
  free(m->contexts);
  free(m->events);
  for (size_t i = 0; i < m->process_count; i++)
    free(m->processes[i]);
  free(m->processes);
  free(m->unused);
  free(m->callers);
  wr_points_free(&m->set);
  free(m);
}
