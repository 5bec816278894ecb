/* queues.c: see queues.h.
 *
 * A queue's operations are complete up to `done`: a wait has shown that. What its next operation
 * waits for in other queues is the set `after`; an operation's number and `after` together are all
 * that an event captures, and completing it completes these. Points at or below `done` are dropped
 * wherever they are met, so that the sets hold what may be pending and are small.
 *
 * A call is *open* from its start until the pass has come by its end. What other threads' open
 * calls do may come before or after what a call does: `may` has it, `sure` has not. What a wait
 * shows is known at its end. */
#include "reports/queues/queues.h"
#include <stdlib.h>
#include "core/base/map.h"
#include "reports/base/util.h"
#include "reports/queues/points.h"

enum { OPEN_MOST = 512, NO_NUMBER = 255 };

typedef struct queue {
  uint64_t handle;
  uint32_t context; /* place */
  bool legacy;
  bool blocking;           /* surely waits for, and is waited for by, the legacy default stream */
  bool may_block;          /* or it may: it was not seen created */
  uint64_t last, bytes;    /* work so far; what it moves or sets */
  int64_t youngest;        /* row of `last` */
  uint64_t result, source; /* last operation of WR_HOST_RESULT, of WR_HOST_SOURCE */
  uint64_t done, done_bytes;
  int64_t done_by; /* row of the wait that showed it */
  wr_points after;
  uint64_t followed; /* changes on the other side of the default stream's rule that `after` has */
  uint32_t open;     /* open calls that change it */
  size_t active;     /* place in its context's list, from 1; 0: nothing is pending */
} queue;

typedef struct context {
  uint32_t legacy;  /* its queue, from 1 */
  uint32_t *active; /* queues in which something may be pending */
  size_t count, capacity;
  uint64_t legacy_changes, blocking_changes; /* from 1 */
  int64_t done_by;                           /* the latest of its queues */
  uint8_t device;                            /* 255: not known */
} context;

typedef struct event {
  wr_points at;
  bool unseen;        /* what it captured is not known */
  uint32_t queue;     /* in which it was recorded, from 1; 0: not yet, or a whole context */
  int64_t busy_until; /* end of the call that recorded it last */
} event;

typedef struct open_call {
  int64_t end, id;
  int32_t thread;
  uint32_t queue;  /* that it changes, from 1 */
  uint32_t event;  /* that it asks, from 1 */
  uint64_t number; /* of its operation; UINT64_MAX: it is none */
  uint64_t bytes_before;
  uint64_t calls;                      /* taken so far, with it */
  wr_points says;                      /* what is complete at its end */
  uint32_t clear_queue, clear_context; /* of which it covers all, from 1 */
} open_call;

typedef struct process {
  bool incomplete, events_unseen;
  uint32_t peer_queue; /* of the last WR_ACT_PEER_WORK, from 1 */
  uint64_t peer_number;
} process;

struct wr_queues {
  wr_verdict_fn verdict;
  void *verdict_context;
  const wr_queue_watch *watch; /* borrowed, or NULL */
  hash_map queue_of, context_of, event_of, process_of;
  queue *queues;
  context *contexts;
  event *events;
  process *processes;
  size_t queue_count, queue_capacity, context_count, context_capacity;
  size_t event_count, event_capacity, process_count, process_capacity;
  uint32_t *unused; /* places of destroyed events */
  size_t unused_count, unused_capacity;
  open_call open[OPEN_MOST];
  size_t open_count;
  int64_t next_end; /* the earliest of the open calls */
  uint64_t calls;
  wr_points set;           /* for one call */
  wr_queue_call last_call; /* whose queue is `last_queue` */
  uint32_t last_queue;
};

static weir_status no_memory_to_judge(void)
{
  return weir_fail(WEIR_ENOMEM, "judging waits: out of host memory");
}

/* ---- what there is --------------------------------------------------------------------------- */

/* The place of `key` in an array, made where it is new. False: out of memory. */
static bool find_or_add(hash_map *map, uint64_t key, void *array, size_t *count, size_t *capacity,
                        size_t size, uint32_t *place, bool *made)
{
  uint64_t *at = hash_map_place(map, key, made);
  if (!at) return false;
  if (*made) {
    if (*count >= UINT32_MAX - 1 || !wr_grow(array, capacity, *count + 1, size)) {
      hash_map_remove(map, key);
      return false;
    }
    *at = (*count)++;
  }
  *place = (uint32_t)*at;
  return true;
}

static uint64_t key_of_object(int64_t kind, int64_t process, uint64_t what, uint64_t thread)
{
  return hash_mix(hash_mix(hash_mix((uint64_t)kind, (uint64_t)process), what), thread);
}

static process *process_of(wr_queues *m, int64_t row)
{
  uint32_t place = 0;
  bool made;
  if (!find_or_add(&m->process_of, (uint64_t)row, &m->processes, &m->process_count,
                   &m->process_capacity, sizeof(process), &place, &made))
    return NULL;
  if (made) m->processes[place] = (process){0};
  return &m->processes[place];
}

static bool find_context(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (!find_or_add(&m->context_of, key_of_object(0, c->process, c->context, 0), &m->contexts,
                   &m->context_count, &m->context_capacity, sizeof(context), place, &made))
    return false;
  if (made)
    m->contexts[*place] =
        (context){.legacy_changes = 1, .blocking_changes = 1, .device = NO_NUMBER};
  if (c->act != WR_ACT_WORK && c->act != WR_ACT_PEER_WORK && c->device != NO_NUMBER)
    m->contexts[*place].device = c->device;
  return true;
}

static uint64_t queue_key(const wr_queue_call *c)
{
  if (c->stream == WR_QUEUE_LEGACY) return key_of_object(2, c->process, c->context, 0);
  if (c->stream == WR_QUEUE_PER_THREAD)
    return key_of_object(3, c->process, c->context, (uint64_t)c->thread);
  return key_of_object(1, c->process, c->stream, 0);
}

static bool same_queue(const wr_queue_call *a, const wr_queue_call *b)
{
  return a->stream == b->stream && a->process == b->process && a->thread == b->thread &&
         a->context == b->context;
}

static bool init_queue(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  uint32_t of = 0;
  if (!find_context(m, c, &of)) return false;
  bool legacy = c->stream == WR_QUEUE_LEGACY, created = c->act == WR_ACT_STREAM_CREATE;
  bool non_blocking = created && c->how & WR_HOW_NON_BLOCKING;
  m->queues[place] =
      (queue){.handle = c->stream,
              .context = of,
              .legacy = legacy,
              .blocking = !legacy && !non_blocking && (created || c->stream == WR_QUEUE_PER_THREAD),
              .may_block = !legacy && !non_blocking};
  if (legacy) m->contexts[of].legacy = place + 1;
  return true;
}

/* The queue of the call's stream, made where it is new. */
static bool queue_of(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (m->queue_count && same_queue(c, &m->last_call)) {
    *place = m->last_queue;
    return true;
  }
  if (!find_or_add(&m->queue_of, queue_key(c), &m->queues, &m->queue_count, &m->queue_capacity,
                   sizeof(queue), place, &made))
    return false;
  if (made && !init_queue(m, c, *place)) return false;
  m->last_call = *c;
  m->last_queue = *place;
  return true;
}

static event *event_of(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  uint64_t key = key_of_object(4, c->process, c->handle, 0);
  bool made;
  uint64_t *at = hash_map_place(&m->event_of, key, &made);
  if (!at) return NULL;
  if (made && m->unused_count) {
    *at = m->unused[--m->unused_count];
  } else if (made) {
    if (!wr_grow(&m->events, &m->event_capacity, m->event_count + 1, sizeof(event))) {
      hash_map_remove(&m->event_of, key);
      return NULL;
    }
    *at = m->event_count++;
  }
  *place = (uint32_t)*at;
  event *e = &m->events[*place];
  if (made) *e = (event){.unseen = true, .busy_until = INT64_MIN};
  return e;
}

/* ---- what is pending ------------------------------------------------------------------------- */

static void activate(wr_queues *m, uint32_t place, bool *worked)
{
  queue *q = &m->queues[place];
  context *x = &m->contexts[q->context];
  if (q->active) return;
  if (!wr_grow(&x->active, &x->capacity, x->count + 1, sizeof(*x->active))) {
    *worked = false;
    return;
  }
  x->active[x->count++] = place;
  q->active = x->count;
}

/* Drops what is complete of what the queue waits for. */
static void prune(wr_queues *m, queue *q)
{
  size_t kept = 0;
  for (size_t i = 0; i < q->after.count; i++)
    if (q->after.at[i].may > m->queues[q->after.at[i].queue].done)
      q->after.at[kept++] = q->after.at[i];
  q->after.count = kept;
}

static bool queue_is_idle(wr_queues *m, queue *q)
{
  if (q->last > q->done || q->after.any) return false;
  prune(m, q);
  return !q->after.count;
}

/* Takes the queue off its context's list where nothing is pending in it. */
static bool retire_queue(wr_queues *m, uint32_t place)
{
  queue *q = &m->queues[place];
  context *x = &m->contexts[q->context];
  if (!q->active || !queue_is_idle(m, q)) return false;
  uint32_t moved = x->active[--x->count];
  x->active[q->active - 1] = moved;
  m->queues[moved].active = q->active;
  q->active = 0;
  return true;
}

/* Other threads' open calls change it. */
static bool contended(const wr_queues *m, uint32_t place, int32_t thread)
{
  if (!m->queues[place].open) return false;
  for (size_t i = 0; i < m->open_count; i++)
    if (m->open[i].queue == place + 1 && m->open[i].thread != thread) return true;
  return false;
}

/* All of a queue: the operations up to the first that another thread's open call may not have put
 * there yet are sure. */
static wr_point whole_queue(const wr_queues *m, uint32_t place, int32_t thread)
{
  const queue *q = &m->queues[place];
  wr_point p = {place, q->last, q->last, q->bytes, q->bytes, q->youngest, q->result, q->source};
  for (size_t i = 0; q->open && i < m->open_count; i++) {
    const open_call *o = &m->open[i];
    if (o->queue != place + 1 || o->thread == thread || o->number > p.sure) continue;
    p.sure = o->number - 1;
    p.sure_bytes = o->bytes_before;
  }
  return p;
}

static bool add_point(wr_queues *m, wr_point p, bool sure)
{
  const queue *q = &m->queues[p.queue];
  if (p.may <= q->done) return true;
  if (!sure || p.sure < q->done) {
    p.sure = q->done < p.may ? q->done : p.may;
    p.sure_bytes = q->done_bytes;
  }
  return wr_points_add(&m->set, &p);
}

/* Adds what waits in a queue, and for what. */
static bool add_queue(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  bool alone = !contended(m, place, thread);
  queue *q = &m->queues[place];
  if (!add_point(m, whole_queue(m, place, thread), sure)) return false;
  prune(m, q);
  for (size_t i = 0; i < q->after.count; i++)
    if (!add_point(m, q->after.at[i], sure && alone)) return false;
  m->set.any |= q->after.any;
  return true;
}

static void empty_set(wr_queues *m)
{
  m->set.count = 0;
  m->set.any = false;
}

/* All that is pending in a context; `blocking`: in the streams that the legacy default stream waits
 * for. */
static bool add_context(wr_queues *m, uint32_t of, int32_t thread, bool sure, bool blocking)
{
  context *x = &m->contexts[of];
  for (size_t i = 0; i < x->count;) {
    uint32_t place = x->active[i];
    if (retire_queue(m, place)) continue;
    const queue *q = &m->queues[place];
    i++;
    if (blocking && !q->may_block) continue;
    if (!add_queue(m, place, thread, sure && (!blocking || q->blocking))) return false;
    if (blocking && m->set.count > 4 * WR_POINTS_MOST) {
      m->set.any = true;
      return true;
    }
  }
  return true;
}

/* ---- default streams ----------------------------------------------------------------------------
 *
 * "When an action is taken in the legacy stream such as a kernel launch or cudaStreamWaitEvent(),
 * the legacy stream first waits on all blocking streams, the action is queued in the legacy
 * stream, and then all blocking streams wait on the legacy stream." (Runtime API, "Stream
 * synchronization behavior".) When a blocking stream begins to wait is not documented: at its own
 * next action it surely does. */

/* The set: what the other side of the rule makes an action in this queue wait for. */
static bool add_other_side(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  const queue *q = &m->queues[place];
  const context *x = &m->contexts[q->context];
  if (q->legacy) return add_context(m, q->context, thread, sure, true);
  if (!q->may_block || !x->legacy || !m->queues[x->legacy - 1].active) return true;
  return add_queue(m, x->legacy - 1, thread, sure && q->blocking);
}

static bool nothing_on_other_side(const wr_queues *m, const queue *q)
{
  const context *x = &m->contexts[q->context];
  if (q->legacy) return x->count <= (q->active ? 1u : 0u);
  return !q->may_block || !x->legacy || !m->queues[x->legacy - 1].active;
}

/* What the set has besides becomes what the queue waits for. */
static bool keep_after(wr_queues *m, uint32_t place)
{
  bool worked = true;
  size_t kept = 0;
  wr_points_order(&m->set);
  for (size_t i = 0; i < m->set.count; i++)
    if (m->set.at[i].queue != place) m->set.at[kept++] = m->set.at[i];
  m->set.count = kept;
  if (!wr_points_keep(&m->queues[place].after, &m->set)) return false;
  if (kept || m->set.any) activate(m, place, &worked);
  return worked;
}

/* An action in the queue waits for the other side. */
static bool follow_rule(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  queue *q = &m->queues[place];
  const context *x = &m->contexts[q->context];
  uint64_t changes = q->legacy ? x->blocking_changes : x->legacy_changes;
  if (nothing_on_other_side(m, q) || q->followed == changes) return true;
  empty_set(m);
  if (!add_queue(m, place, thread, true) || !add_other_side(m, place, thread, sure)) return false;
  if (!keep_after(m, place)) return false;
  m->queues[place].followed = sure && !m->open_count ? changes : 0;
  return true;
}

static void note_change(wr_queues *m, uint32_t place)
{
  const queue *q = &m->queues[place];
  context *x = &m->contexts[q->context];
  if (q->legacy)
    x->legacy_changes++;
  else if (q->may_block)
    x->blocking_changes++;
}

/* ---- open calls ------------------------------------------------------------------------------ */

static void watch_done(const wr_queues *m, uint32_t place, int64_t time)
{
  if (m->watch) m->watch->done(m->watch->context, place, m->queues[place].done, time);
}

static void say_complete(wr_queues *m, const wr_points *says, const open_call *by)
{
  for (size_t i = 0; i < says->count; i++) {
    const wr_point *p = &says->at[i];
    queue *q = &m->queues[p->queue];
    if (p->sure <= q->done) continue;
    q->done = p->sure;
    q->done_bytes = p->sure_bytes;
    q->done_by = m->contexts[q->context].done_by = by->id;
    watch_done(m, p->queue, by->end);
    retire_queue(m, p->queue);
  }
}

/* What the queue waited for and was not seen is complete, too. */
static void clear_any(wr_queues *m, uint32_t place)
{
  m->queues[place].after.any = false;
  retire_queue(m, place);
}

static void close_call(wr_queues *m, open_call *o)
{
  if (o->queue) m->queues[o->queue - 1].open--;
  say_complete(m, &o->says, o);
  if (o->calls != m->calls) return; /* something was called meanwhile */
  if (o->clear_queue) clear_any(m, o->clear_queue - 1);
  for (size_t i = 0; o->clear_context && i < m->contexts[o->clear_context - 1].count; i++) {
    queue *q = &m->queues[m->contexts[o->clear_context - 1].active[i]];
    if (q->last == q->done) q->after.any = false;
  }
}

static void close_at(wr_queues *m, size_t i)
{
  close_call(m, &m->open[i]);
  open_call moved = m->open[i];
  m->open[i] = m->open[--m->open_count];
  m->open[m->open_count] = moved; /* its set's room serves again */
}

/* Closes the calls that ended by then. */
static void close_until(wr_queues *m, int64_t time)
{
  if (!m->open_count || m->next_end > time) return;
  m->next_end = INT64_MAX;
  for (size_t i = 0; i < m->open_count;) {
    if (m->open[i].end <= time) {
      close_at(m, i);
      continue;
    }
    if (m->open[i].end < m->next_end) m->next_end = m->open[i].end;
    i++;
  }
}

static open_call *begin_call(wr_queues *m, const wr_queue_call *c)
{
  size_t first = 0;
  if (m->open_count == OPEN_MOST) { /* more threads at once: the one to end first has ended */
    for (size_t i = 1; i < m->open_count; i++)
      if (m->open[i].end < m->open[first].end) first = i;
    close_at(m, first);
  }
  if (!m->open_count || c->end < m->next_end) m->next_end = c->end;
  open_call *o = &m->open[m->open_count++];
  wr_points says = o->says;
  says.count = 0;
  *o = (open_call){.end = c->end,
                   .id = c->id,
                   .thread = c->thread,
                   .number = UINT64_MAX,
                   .calls = m->calls,
                   .says = says};
  return o;
}

static open_call *begin_change(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  open_call *o = begin_call(m, c);
  o->queue = place + 1;
  m->queues[place].open++;
  return o;
}

/* The set is what the call shows to be complete at its end. */
static bool begin_saying(wr_queues *m, open_call *o)
{
  wr_points_order(&m->set);
  for (size_t i = 0; i < m->set.count; i++)
    if (m->set.at[i].sure > m->queues[m->set.at[i].queue].done &&
        !wr_points_add(&o->says, &m->set.at[i]))
      return false;
  return true;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The place of the call's context, from 1; 0: nothing was called in it yet. */
static uint32_t context_place(const wr_queues *m, const wr_queue_call *c)
{
  const uint64_t *at = hash_map_get(&m->context_of, key_of_object(0, c->process, c->context, 0));
  return at ? (uint32_t)*at + 1 : 0;
}

static void count_point(const wr_queues *m, const wr_point *p, uint32_t own, wr_wait_verdict *v)
{
  const queue *q = &m->queues[p->queue];
  if (p->may <= q->done) return;
  v->pending = true;
  v->operations += p->may - q->done;
  v->bytes += p->may_bytes > q->done_bytes ? p->may_bytes - q->done_bytes : 0;
  v->stream = v->streams++ ? 0 : q->handle;
  if (p->youngest > v->youngest) v->youngest = p->youngest;
  if (p->result > q->done) v->host |= WR_HOST_RESULT;
  if (p->source > q->done) v->host |= WR_HOST_SOURCE;
  v->before_legacy &= (q->legacy || q->blocking) && q->context + 1 == own;
}

/* Of the set, which is what the call waits for. */
static weir_status judge(wr_queues *m, const wr_queue_call *c, int64_t done_by, wr_wait_verdict v)
{
  const process *p = process_of(m, c->process);
  if (!p) return no_memory_to_judge();
  v.id = c->id;
  v.call = c;
  v.points = &m->set;
  v.known = !p->incomplete && !m->set.any;
  if (p->peer_queue && m->queues[p->peer_queue - 1].done < p->peer_number) v.known = false;
  wr_points_order(&m->set);
  uint32_t own = m->set.count ? context_place(m, c) : 0;
  v.before_legacy = true;
  for (size_t i = 0; v.known && i < m->set.count; i++)
    count_point(m, &m->set.at[i], own, &v);
  if (v.known && !v.pending) v.covered_by = done_by;
  if (c->act == WR_ACT_SYNC_CONTEXT && v.streams == 1) v.narrower = WR_NARROWER_STREAM;
  return m->verdict(m->verdict_context, &v);
}

static weir_status sync_stream(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  if (!queue_of(m, c, &place)) return no_memory_to_judge();
  empty_set(m);
  if (!add_queue(m, place, c->thread, true) || !add_other_side(m, place, c->thread, false))
    return no_memory_to_judge();
  weir_status st = c->act == WR_ACT_SYNC_STREAM
                       ? judge(m, c, m->queues[place].done_by, (wr_wait_verdict){0})
                       : WEIR_OK;
  open_call *o = begin_call(m, c);
  o->clear_queue = place + 1;
  return st ? st : begin_saying(m, o) ? WEIR_OK : no_memory_to_judge();
}

static weir_status sync_context(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  empty_set(m);
  if (!find_context(m, c, &of) || !add_context(m, of, c->thread, true, false))
    return no_memory_to_judge();
  weir_status st = judge(m, c, m->contexts[of].done_by, (wr_wait_verdict){0});
  open_call *o = begin_call(m, c);
  o->clear_context = of + 1;
  return st ? st : begin_saying(m, o) ? WEIR_OK : no_memory_to_judge();
}

/* The set: what the event captured. */
static bool add_event(wr_queues *m, const wr_queue_call *c, const event *e)
{
  const process *p = process_of(m, c->process);
  bool sure = !e->unseen && c->start >= e->busy_until;
  for (size_t i = 0; i < e->at.count; i++)
    if (!add_point(m, e->at.at[i], sure)) return false;
  m->set.any |= e->at.any || !sure || !p || p->events_unseen;
  return p != NULL;
}

static weir_status sync_event(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  const event *e = event_of(m, c, &place);
  empty_set(m);
  if (!e || !add_event(m, c, e)) return no_memory_to_judge();
  int64_t by = e->queue ? m->queues[e->queue - 1].done_by : 0;
  weir_status st = c->act == WR_ACT_SYNC_EVENT ? judge(m, c, by, (wr_wait_verdict){0}) : WEIR_OK;
  open_call *o = begin_call(m, c);
  o->event = place + 1;
  return st ? st : begin_saying(m, o) ? WEIR_OK : no_memory_to_judge();
}

/* cudaFree: "may perform implicit synchronization": of what, is not documented. */
static weir_status free_memory(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  empty_set(m);
  if (!find_context(m, c, &of) || !add_context(m, of, c->thread, false, false))
    return no_memory_to_judge();
  return judge(m, c, m->contexts[of].done_by, (wr_wait_verdict){0});
}

/* ---- work ------------------------------------------------------------------------------------ */

/* What a call that does work waits for before it; *o NULL: it shows nothing of that at its end. */
static weir_status wait_before(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  empty_set(m);
  if (!add_queue(m, place, c->thread, true) || !add_other_side(m, place, c->thread, false))
    return no_memory_to_judge();
  wr_wait_verdict own = {.own_queue = place + 1, .own_number = m->queues[place].last + 1};
  return judge(m, c, m->queues[place].done_by, own);
}

static bool queue_work(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  bool worked = true;
  if (!follow_rule(m, place, c->thread, !(c->how & WR_HOW_UNSURE))) return false;
  open_call *o = begin_change(m, c, place);
  queue *q = &m->queues[place];
  o->number = ++q->last;
  o->bytes_before = q->bytes;
  q->bytes += c->handle;
  q->youngest = c->id;
  if (c->host & WR_HOST_RESULT) q->result = q->last;
  if (c->host & WR_HOST_SOURCE) q->source = q->last;
  activate(m, place, &worked);
  note_change(m, place);
  if (m->watch) m->watch->work(m->watch->context, c, place, o->number);
  return worked;
}

static weir_status take_queued_work(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  weir_status st = WEIR_OK;
  if (!queue_of(m, c, &place)) return no_memory_to_judge();
  if (c->how & WR_HOW_WAITS) st = wait_before(m, c, place);
  if (st) return st;
  if (c->how & WR_HOW_WAITS_BEFORE) {
    empty_set(m);
    if (!add_queue(m, place, c->thread, true) || !begin_saying(m, begin_call(m, c)))
      return no_memory_to_judge();
  }
  if (!queue_work(m, c, place)) return no_memory_to_judge();
  if (c->how & WR_HOW_WAITS_ALL) {
    empty_set(m);
    if (!add_queue(m, place, c->thread, true) || !begin_saying(m, begin_call(m, c)))
      return no_memory_to_judge();
  }
  if (c->act != WR_ACT_PEER_WORK) return WEIR_OK;
  process *p = process_of(m, c->process);
  if (!p) return no_memory_to_judge();
  m->queues[place].after.any = true;
  p->peer_queue = place + 1;
  p->peer_number = m->queues[place].last;
  return WEIR_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Calls that ask for the event at this moment may mean the earlier recording or this one. */
static void upset_askers(wr_queues *m, uint32_t place)
{
  for (size_t i = 0; i < m->open_count; i++) {
    open_call *o = &m->open[i];
    if (o->event != place + 1) continue;
    o->says.count = 0;
    if (!o->queue) continue;
    queue *q = &m->queues[o->queue - 1];
    q->after.any = true;
    for (size_t k = 0; k < q->after.count; k++)
      q->after.at[k].sure = 0, q->after.at[k].sure_bytes = 0;
  }
}

/* The event has captured the set. */
static bool capture_in_event(wr_queues *m, const wr_queue_call *c, uint32_t queue)
{
  uint32_t place = 0;
  event *e = event_of(m, c, &place);
  if (!e) return false;
  upset_askers(m, place);
  wr_points_order(&m->set);
  if (!wr_points_keep(&e->at, &m->set)) return false;
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
  if (!add_queue(m, place, c->thread, true)) return false;
  begin_change(m, c, place);
  if (m->set.count) note_change(m, place);
  return capture_in_event(m, c, place + 1);
}

static bool record_context(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  empty_set(m);
  return find_context(m, c, &of) && add_context(m, of, c->thread, true, false) &&
         capture_in_event(m, c, 0);
}

/* "Makes all future work submitted to stream wait for all work captured in event." Of an event that
 * was never recorded, or in the same stream, it may be no action. */
static bool stream_wait(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0, at = 0;
  const event *e = event_of(m, c, &at);
  if (!e || !queue_of(m, c, &place)) return false;
  bool action = !e->unseen && e->queue && e->queue != place + 1;
  if (!follow_rule(m, place, c->thread, action)) return false;
  empty_set(m);
  if (!add_queue(m, place, c->thread, true) || !add_event(m, c, &m->events[at])) return false;
  if (!keep_after(m, place)) return false;
  begin_change(m, c, place)->event = at + 1;
  note_change(m, place);
  return true;
}

static bool create_event_object(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  event *e = event_of(m, c, &place);
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
  upset_askers(m, (uint32_t)*at);
  m->unused[m->unused_count++] = (uint32_t)*at;
  hash_map_remove(&m->event_of, key);
  return true;
}

/* ---- streams, contexts ----------------------------------------------------------------------- */

/* The handle is another stream's from now on; what is queued in the old one goes on. */
static bool forget_stream(wr_queues *m, const wr_queue_call *c)
{
  m->last_call = (wr_queue_call){.process = -1};
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
    queue *q = &m->queues[place];
    q->active = 0;
    q->done = q->last;
    q->done_bytes = q->bytes;
    q->done_by = x->done_by = c->id;
    q->after.count = 0;
    q->after.any = false;
    watch_done(m, place, c->end);
  }
}

static bool reset(wr_queues *m, const wr_queue_call *c)
{
  for (unsigned number = 1; number < NO_NUMBER; number++) {
    const uint64_t *at = hash_map_get(&m->context_of, key_of_object(0, c->process, number, 0));
    if (!at) continue;
    context *x = &m->contexts[*at];
    bool hit = c->act == WR_ACT_RESET_CONTEXT ? number == c->context : x->device == c->device;
    if (hit) end_context(m, x, c);
  }
  return true;
}

static bool give_up_queues(wr_queues *m, int64_t row)
{
  process *p = process_of(m, row);
  if (p) p->incomplete = true;
  return p != NULL;
}

static bool events_unseen(wr_queues *m, int64_t row)
{
  process *p = process_of(m, row);
  if (p) p->events_unseen = true;
  return p != NULL;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool take_context_change(wr_queues *m, const wr_queue_call *c)
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

weir_status wr_queues_take(wr_queues *m, const wr_queue_call *c)
{
  close_until(m, c->start);
  m->calls++;
  if (lost_context(c) && !give_up_queues(m, c->process)) return no_memory_to_judge();
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
  return m->contexts[m->queues[queue].context].device;
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
  m->last_call.process = -1;
  return m;
}

void wr_queues_close(wr_queues *m)
{
  if (!m) return;
  for (size_t i = 0; i < m->queue_count; i++)
    wr_points_free(&m->queues[i].after);
  for (size_t i = 0; i < m->context_count; i++)
    free(m->contexts[i].active);
  for (size_t i = 0; i < m->event_count; i++)
    wr_points_free(&m->events[i].at);
  for (size_t i = 0; i < OPEN_MOST; i++)
    wr_points_free(&m->open[i].says);
  hash_map_free(&m->queue_of);
  hash_map_free(&m->context_of);
  hash_map_free(&m->event_of);
  hash_map_free(&m->process_of);
  free(m->queues);
  free(m->contexts);
  free(m->events);
  free(m->processes);
  free(m->unused);
  wr_points_free(&m->set);
  free(m);
}
