/* queues.c: see queues.h.
 *
 * A queue's operations are complete up to `done`: a wait has shown that. What its next operation
 * waits for in other queues is the set `after`; an operation's number and `after` together are all
 * that an event captures, and completing it completes these. Points at or below `done` are dropped
 * wherever they are met, so that the sets hold what may be pending and are small.
 *
 * Points are joined: of two in one queue the further one has it all. So what may be pending in a
 * whole context is all of its queues, whatever these wait for, as long as that is in the context
 * too: `outside` and `aside` mark the queues of which it need not be. Nearly all waits are judged
 * so, by one look at each queue in which something may be pending.
 *
 * A call is *open* from its start until the pass has come by its end. What other threads' open
 * calls do may come before or after what a call does: `may` has it, `sure` has not. What a wait
 * shows is known at its end. */
#include "reports/queues/queues.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "reports/base/util.h"
#include "reports/queues/points.h"

enum { OPEN_MOST = 512, NO_NUMBER = 255 };
#define NO_QUEUE UINT32_MAX

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
  bool outside;       /* `after` may have points in queues of other contexts */
  bool aside;         /* ... in queues on neither side of the default stream's rule */
  uint64_t followed;  /* changes on the other side of the default stream's rule that `after` has */
  uint16_t open_call; /* the first of the open calls that change it, from 1 */
  size_t active;      /* place in its context's list, from 1; 0: nothing is pending */
} queue;

typedef struct context {
  uint32_t legacy;  /* its queue, from 1 */
  uint32_t *active; /* queues in which something may be pending */
  size_t count, capacity;
  uint64_t legacy_changes, blocking_changes; /* from 1 */
  int64_t done_by;                           /* the latest of its queues */
  uint32_t open;                             /* open calls that change any of its queues */
  uint8_t device;                            /* 255: not known */
} context;

typedef struct event {
  wr_points at;
  bool unseen;        /* what it captured is not known */
  uint32_t queue;     /* in which it was recorded, from 1; 0: not yet, or a whole context */
  uint32_t askers;    /* open calls that ask an event at this place */
  int64_t busy_until; /* end of the call that recorded it last */
} event;

typedef struct done_point {
  uint32_t queue;
  uint64_t number, bytes; /* of its last operation that is complete; as of a point */
} done_point;

typedef struct open_call {
  int64_t end, id;
  int32_t thread;
  uint32_t queue;        /* that it changes, from 1 */
  uint16_t next, before; /* open calls that change the same, from 1 */
  uint32_t event;        /* that it asks, from 1 */
  uint64_t number;       /* of its operation; UINT64_MAX: it is none */
  uint64_t bytes_before;
  uint64_t calls;    /* taken so far, with it */
  done_point *shows; /* what is complete at its end; owned, its room serves again */
  size_t shown, capacity;
  uint32_t clear_queue, clear_context; /* of which it covers all, from 1 */
} open_call;

typedef struct process {
  bool incomplete, events_unseen;
  uint32_t peer_queue; /* of the last WR_ACT_PEER_WORK, from 1 */
  uint64_t peer_number;
} process;

typedef struct
    caller { /* what calls of one number have in common; places from 1, 0: not looked for */
  uint32_t process, context, queue;
  uint64_t streams; /* wr_queues.streams at which `queue` was found */
} caller;

typedef struct context_sum { /* of the queues of a context in which something may be pending */
  uint64_t calls;            /* wr_queues.calls at which it was made; 0: it has changed since */
  uint32_t context;
  uint32_t legacy;    /* from 1, not 0: only of this queue, and those that it waits for */
  bool whole;         /* what is pending is all of these queues, and nothing besides */
  bool any;           /* as of a set */
  bool surely, maybe; /* some of what `legacy` waits for it surely waits for; some it may */
} context_sum;

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
  caller *callers; /* by number */
  caller *caller;  /* of the call that is taken; NULL: it has no number */
  size_t calling;  /* place of its process */
  size_t caller_count, caller_capacity;
  uint64_t streams; /* how often a stream's handle has become another's */
  open_call open[OPEN_MOST];
  uint16_t opened[OPEN_MOST]; /* places in `open`; those after the first open_count are free */
  int64_t ends[OPEN_MOST];    /* of the first open_count of them */
  size_t open_count;
  int64_t next_end; /* the earliest of the open calls */
  uint64_t calls;
  context_sum sum;
  wr_points set; /* for one call */
  size_t hint;   /* of what was joined to it last */
  size_t joined; /* points that were, more than one a queue */
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

/* Who calls; NULL: the call has no number, or it is out of memory. */
static caller *find_caller(wr_queues *m, const wr_queue_call *c)
{
  if (!c->caller) return NULL;
  if (c->caller >= m->caller_count) {
    if (!wr_grow(&m->callers, &m->caller_capacity, (size_t)c->caller + 1, sizeof(caller)))
      return NULL;
    memset(m->callers + m->caller_count, 0,
           (m->caller_capacity - m->caller_count) * sizeof(caller));
    m->caller_count = m->caller_capacity;
  }
  return &m->callers[c->caller];
}

static process *find_process(wr_queues *m, int64_t row)
{
  uint32_t place = 0;
  bool made;
  if (!find_or_add(&m->process_of, (uint64_t)row, &m->processes, &m->process_count,
                   &m->process_capacity, sizeof(process), &place, &made))
    return NULL;
  if (made) m->processes[place] = (process){0};
  return &m->processes[place];
}

/* The process of the call that is taken. */
static process *calling_process(const wr_queues *m)
{
  return &m->processes[m->calling];
}

static bool find_calling_process(wr_queues *m, const wr_queue_call *c)
{
  caller *known = m->caller;
  const process *p =
      known && known->process ? &m->processes[known->process - 1] : find_process(m, c->process);
  if (!p) return false;
  m->calling = (size_t)(p - m->processes);
  if (known) known->process = (uint32_t)m->calling + 1;
  return true;
}

static bool look_for_context(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (!find_or_add(&m->context_of, key_of_object(0, c->process, c->context, 0), &m->contexts,
                   &m->context_count, &m->context_capacity, sizeof(context), place, &made))
    return false;
  if (made)
    m->contexts[*place] =
        (context){.legacy_changes = 1, .blocking_changes = 1, .device = NO_NUMBER};
  return true;
}

static bool find_context(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  caller *known = m->caller;
  if (known && known->context)
    *place = known->context - 1;
  else if (!look_for_context(m, c, place))
    return false;
  if (known) known->context = *place + 1;
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

static bool look_for_queue(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (!find_or_add(&m->queue_of, queue_key(c), &m->queues, &m->queue_count, &m->queue_capacity,
                   sizeof(queue), place, &made))
    return false;
  return !made || init_queue(m, c, *place);
}

/* The queue of the call's stream, made where it is new. */
static bool queue_of(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  caller *known = m->caller;
  if (known && known->queue && known->streams == m->streams) {
    *place = known->queue - 1;
    return true;
  }
  if (!look_for_queue(m, c, place)) return false;
  if (known) known->queue = *place + 1, known->streams = m->streams;
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
    m->events[m->event_count] = (event){0};
    *at = m->event_count++;
  }
  *place = (uint32_t)*at;
  event *e = &m->events[*place];
  if (made) *e = (event){.unseen = true, .busy_until = INT64_MIN, .askers = e->askers};
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
  for (size_t i = 0; i < q->after.count; i++) {
    if (q->after.at[i].may <= m->queues[q->after.at[i].queue].done) continue;
    if (kept != i) q->after.at[kept] = q->after.at[i];
    kept++;
  }
  q->after.count = kept;
  if (!kept) q->outside = q->aside = false;
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
  for (uint16_t at = m->queues[place].open_call; at; at = m->open[at - 1].next)
    if (m->open[at - 1].thread != thread) return true;
  return false;
}

/* All of a queue: the operations up to the first that another thread's open call may not have put
 * there yet are sure. */
static wr_point whole_queue(const wr_queues *m, uint32_t place, int32_t thread)
{
  const queue *q = &m->queues[place];
  wr_point p = {place, q->last, q->last, q->bytes, q->bytes, q->youngest, q->result, q->source};
  for (uint16_t at = q->open_call; at; at = m->open[at - 1].next) {
    const open_call *o = &m->open[at - 1];
    if (o->thread == thread || o->number > p.sure) continue;
    p.sure = o->number - 1;
    p.sure_bytes = o->bytes_before;
  }
  return p;
}

static bool join_point(wr_queues *m, wr_points *set, const wr_point *from, bool sure)
{
  const queue *q = &m->queues[from->queue];
  if (from->may <= q->done) return true;
  m->joined++;
  if (sure && from->sure >= q->done) return wr_points_join(set, from, &m->hint);
  wr_point p = *from;
  p.sure = q->done;
  p.sure_bytes = q->done_bytes;
  return wr_points_join(set, &p, &m->hint);
}

/* Joins what waits in a queue, and for what, but for points in queue `but`. */
static bool join_queue(wr_queues *m, wr_points *set, uint32_t place, int32_t thread, bool sure,
                       uint32_t but)
{
  queue *q = &m->queues[place];
  set->any |= q->after.any;
  if (q->last > q->done && place != but) {
    wr_point whole = whole_queue(m, place, thread);
    if (!join_point(m, set, &whole, sure)) return false;
  }
  prune(m, q);
  sure = sure && q->after.count && !contended(m, place, thread);
  for (size_t i = 0; i < q->after.count; i++)
    if (q->after.at[i].queue != but && !join_point(m, set, &q->after.at[i], sure)) return false;
  return true;
}

static bool add_queue(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  return join_queue(m, &m->set, place, thread, sure, NO_QUEUE);
}

static void empty_set(wr_queues *m)
{
  m->set.count = 0;
  m->set.any = false;
  m->joined = m->hint = 0;
}

static void sum_queue(const queue *q, context_sum *to, size_t *points)
{
  to->any |= q->after.any;
  to->whole &= !q->outside && !(to->legacy && q->aside);
  *points += 1 + q->after.count;
}

/* `legacy`: the place, from 1, of the context's legacy default stream, where it is about that and
 * what it waits for. Where the sum is not whole a set has to be made, as add_context() does it. */
static const context_sum *sum_context(wr_queues *m, uint32_t of, uint32_t legacy)
{
  context *x = &m->contexts[of];
  context_sum *sum = &m->sum;
  size_t points = 0;
  if (sum->calls == m->calls && sum->context == of && sum->legacy == legacy) return sum;
  *sum = (context_sum){.calls = m->calls, .context = of, .legacy = legacy, .whole = true};
  if (legacy) sum_queue(&m->queues[legacy - 1], sum, &points);
  for (size_t i = 0; sum->whole && i < x->count;) {
    uint32_t place = x->active[i];
    if (retire_queue(m, place)) continue;
    const queue *q = &m->queues[place];
    i++;
    if (legacy && (!q->may_block || place + 1 == legacy)) continue;
    sum_queue(q, sum, &points);
    sum->surely |= q->blocking;
    sum->maybe |= !q->blocking;
  }
  sum->whole &= !(legacy && points > 4 * WR_POINTS_MOST);
  return sum;
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
    if (blocking && m->joined > 4 * WR_POINTS_MOST) {
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

/* What the queue waits for is about to grow. Where other threads' open calls change it, too,
 * nothing of it is sure. */
static void begin_after(wr_queues *m, uint32_t place, int32_t thread)
{
  queue *q = &m->queues[place];
  prune(m, q);
  if (!q->after.count || !contended(m, place, thread)) return;
  for (size_t i = 0; i < q->after.count; i++)
    q->after.at[i].sure = 0, q->after.at[i].sure_bytes = 0;
}

static bool end_after(wr_queues *m, uint32_t place)
{
  bool worked = true;
  queue *q = &m->queues[place];
  wr_points_cut(&q->after);
  if (q->after.count || q->after.any) activate(m, place, &worked);
  return worked;
}

/* Where the points lie that a queue has come to wait for. */
static void note_places(wr_queues *m, queue *q, const wr_points *points)
{
  for (size_t i = 0; i < points->count; i++) {
    const queue *in = &m->queues[points->at[i].queue];
    q->outside |= in->context != q->context;
    q->aside |= !in->legacy && !in->may_block;
  }
}

/* All of the queues that the legacy stream waits for, as they are. */
static bool follow_whole(wr_queues *m, const context_sum *sum, uint32_t place, bool sure)
{
  const context *x = &m->contexts[sum->context];
  queue *q = &m->queues[place];
  m->hint = 0;
  for (size_t i = 0; i < x->count; i++) {
    const queue *y = &m->queues[x->active[i]];
    if (!y->may_block || y->last <= y->done) continue;
    bool surely = sure && y->blocking;
    wr_point p = {x->active[i], surely ? y->last : y->done,
                  y->last,      surely ? y->bytes : y->done_bytes,
                  y->bytes,     y->youngest,
                  y->result,    y->source};
    if (!wr_points_join(&q->after, &p, &m->hint)) return false;
  }
  q->after.any |= sum->any;
  return end_after(m, place);
}

/* An action of the legacy stream waits for all streams that may block. */
static bool follow_blocking(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  queue *q = &m->queues[place];
  const context_sum *sum = sum_context(m, q->context, place + 1);
  bool alike = !sure || !sum->surely || (!sum->maybe && !m->contexts[q->context].open);
  begin_after(m, place, thread);
  if (sum->whole && alike) return follow_whole(m, sum, place, sure);
  empty_set(m);
  m->joined = q->after.count + (q->last > q->done);
  if (!add_context(m, q->context, thread, sure, true)) return false;
  note_places(m, q, &m->set);
  m->hint = 0;
  for (size_t i = 0; i < m->set.count; i++)
    if (m->set.at[i].queue != place && !wr_points_join(&q->after, &m->set.at[i], &m->hint))
      return false;
  q->after.any |= m->set.any;
  return end_after(m, place);
}

static bool follow_legacy(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  uint32_t legacy = m->contexts[m->queues[place].context].legacy - 1;
  begin_after(m, place, thread);
  queue *q = &m->queues[place];
  m->hint = 0;
  if (!join_queue(m, &q->after, legacy, thread, sure && q->blocking, place)) return false;
  q->outside |= m->queues[legacy].outside;
  q->aside |= m->queues[legacy].aside;
  return end_after(m, place);
}

/* An action in the queue waits for the other side. */
static bool follow_rule(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  queue *q = &m->queues[place];
  const context *x = &m->contexts[q->context];
  uint64_t changes = q->legacy ? x->blocking_changes : x->legacy_changes;
  if (nothing_on_other_side(m, q) || q->followed == changes) return true;
  bool worked =
      q->legacy ? follow_blocking(m, place, thread, sure) : follow_legacy(m, place, thread, sure);
  q->followed = sure && !m->open_count ? changes : 0;
  return worked;
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

static void complete_shown(wr_queues *m, const open_call *o)
{
  for (size_t i = 0; i < o->shown; i++) {
    const done_point *p = &o->shows[i];
    queue *q = &m->queues[p->queue];
    if (p->number <= q->done) continue;
    q->done = p->number;
    q->done_bytes = p->bytes;
    q->done_by = m->contexts[q->context].done_by = o->id;
    watch_done(m, p->queue, o->end);
    retire_queue(m, p->queue);
  }
}

/* What the queue waited for and was not seen is complete, too. */
static void clear_any(wr_queues *m, uint32_t place)
{
  m->queues[place].after.any = false;
  retire_queue(m, place);
}

/* It changes its queue no more. */
static void leave_queue(wr_queues *m, open_call *o)
{
  queue *q = &m->queues[o->queue - 1];
  m->contexts[q->context].open--;
  if (o->before)
    m->open[o->before - 1].next = o->next;
  else
    q->open_call = o->next;
  if (o->next) m->open[o->next - 1].before = o->before;
}

static void close_call(wr_queues *m, open_call *o)
{
  m->sum.calls = 0;
  if (o->queue) leave_queue(m, o);
  if (o->event) m->events[o->event - 1].askers--;
  complete_shown(m, o);
  if (o->calls != m->calls) return; /* something was called meanwhile */
  if (o->clear_queue) clear_any(m, o->clear_queue - 1);
  for (size_t i = 0; o->clear_context && i < m->contexts[o->clear_context - 1].count; i++) {
    queue *q = &m->queues[m->contexts[o->clear_context - 1].active[i]];
    if (q->last == q->done) q->after.any = false;
  }
}

static void close_at(wr_queues *m, size_t i)
{
  uint16_t closed = m->opened[i];
  close_call(m, &m->open[closed]);
  size_t last = --m->open_count;
  m->opened[i] = m->opened[last];
  m->ends[i] = m->ends[last];
  m->opened[last] = closed;
}

/* A bit for each of the first open calls, up to 64, that ended by then. */
static uint64_t ended_calls(const wr_queues *m, int64_t time)
{
  uint64_t ended = 0;
  for (size_t i = 0; i < m->open_count && i < 64; i++)
    ended |= (uint64_t)(m->ends[i] <= time) << i;
  return ended;
}

/* ... where there are no more than 64. The last call takes the place of one that is closed. */
static void close_few(wr_queues *m, int64_t time)
{
  for (uint64_t ended = ended_calls(m, time); ended;) {
    int at = __builtin_ctzll(ended);
    uint64_t last = UINT64_C(1) << (m->open_count - 1);
    bool last_ended = ended & last;
    close_at(m, (size_t)at);
    ended &= ended - 1;
    if (last_ended && m->open_count > (size_t)at) ended = (ended & ~last) | UINT64_C(1) << at;
  }
}

static void close_many(wr_queues *m, int64_t time)
{
  for (size_t i = 0; i < m->open_count;)
    if (m->ends[i] <= time)
      close_at(m, i);
    else
      i++;
}

/* Closes the calls that ended by then. */
static void close_until(wr_queues *m, int64_t time)
{
  int64_t next = INT64_MAX;
  if (!m->open_count || m->next_end > time) return;
  if (m->open_count <= 64)
    close_few(m, time);
  else
    close_many(m, time);
  for (size_t i = 0; i < m->open_count; i++)
    next = m->ends[i] < next ? m->ends[i] : next;
  m->next_end = next;
}

static open_call *begin_call(wr_queues *m, const wr_queue_call *c)
{
  size_t first = 0;
  if (m->open_count == OPEN_MOST) { /* more threads at once: the one to end first has ended */
    for (size_t i = 1; i < m->open_count; i++)
      if (m->ends[i] < m->ends[first]) first = i;
    close_at(m, first);
  }
  if (!m->open_count || c->end < m->next_end) m->next_end = c->end;
  m->ends[m->open_count] = c->end;
  open_call *o = &m->open[m->opened[m->open_count++]];
  o->end = c->end;
  o->id = c->id;
  o->thread = c->thread;
  o->queue = o->event = o->clear_queue = o->clear_context = 0;
  o->next = o->before = 0;
  o->number = UINT64_MAX;
  o->bytes_before = 0;
  o->calls = m->calls;
  o->shown = 0;
  return o;
}

static open_call *begin_change(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  open_call *o = begin_call(m, c);
  queue *q = &m->queues[place];
  uint16_t number = (uint16_t)(o - m->open + 1);
  o->queue = place + 1;
  o->next = q->open_call;
  if (o->next) m->open[o->next - 1].before = number;
  q->open_call = number;
  m->contexts[q->context].open++;
  return o;
}

static void ask_event(wr_queues *m, open_call *o, uint32_t place)
{
  o->event = place + 1;
  m->events[place].askers++;
}

static bool show_point(wr_queues *m, open_call *o, uint32_t place, uint64_t number, uint64_t bytes)
{
  if (number <= m->queues[place].done) return true;
  if (!wr_grow(&o->shows, &o->capacity, o->shown + 1, sizeof(*o->shows))) return false;
  o->shows[o->shown++] = (done_point){place, number, bytes};
  return true;
}

/* The call shows that a queue is complete, and what it waits for. */
static bool begin_showing_queue(wr_queues *m, open_call *o, uint32_t place)
{
  const queue *q = &m->queues[place];
  wr_point whole = whole_queue(m, place, o->thread);
  size_t count = contended(m, place, o->thread) ? 0 : q->after.count, i = 0;
  for (; i < count && q->after.at[i].queue < place; i++)
    if (!show_point(m, o, q->after.at[i].queue, q->after.at[i].sure, q->after.at[i].sure_bytes))
      return false;
  if (!show_point(m, o, place, whole.sure, whole.sure_bytes)) return false;
  for (; i < count; i++)
    if (!show_point(m, o, q->after.at[i].queue, q->after.at[i].sure, q->after.at[i].sure_bytes))
      return false;
  return true;
}

/* The set is what the call shows to be complete at its end. */
static bool begin_showing(wr_queues *m, open_call *o)
{
  for (size_t i = 0; i < m->set.count; i++) {
    const wr_point *p = &m->set.at[i];
    if (!show_point(m, o, p->queue, p->sure, p->sure_bytes)) return false;
  }
  return true;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* The place of the call's context, from 1; 0: nothing was called in it yet. */
static uint32_t context_place(wr_queues *m, const wr_queue_call *c)
{
  const caller *known = m->caller;
  if (known && known->context) return known->context;
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

static void count_queue(const wr_queues *m, uint32_t place, uint32_t own, wr_wait_verdict *v)
{
  const queue *q = &m->queues[place];
  wr_point whole = {.queue = place,
                    .may = q->last,
                    .may_bytes = q->bytes,
                    .youngest = q->youngest,
                    .result = q->result,
                    .source = q->source};
  count_point(m, &whole, own, v);
}

/* Known: the process's waits can be judged. */
static void begin_verdict(const wr_queues *m, const wr_queue_call *c, wr_wait_verdict *v)
{
  const process *p = calling_process(m);
  v->id = c->id;
  v->call = c;
  v->known = !p->incomplete;
  if (p->peer_queue && m->queues[p->peer_queue - 1].done < p->peer_number) v->known = false;
  v->before_legacy = true;
}

static weir_status end_verdict(wr_queues *m, const wr_queue_call *c, int64_t done_by,
                               wr_wait_verdict *v)
{
  if (v->known && !v->pending) v->covered_by = done_by;
  if (c->act == WR_ACT_SYNC_CONTEXT && v->streams == 1) v->narrower = WR_NARROWER_STREAM;
  return m->verdict(m->verdict_context, v);
}

/* Of the set, which is what the call waits for. */
static weir_status judge(wr_queues *m, const wr_queue_call *c, int64_t done_by, wr_wait_verdict v)
{
  begin_verdict(m, c, &v);
  v.points = &m->set;
  v.known = v.known && !m->set.any;
  uint32_t own = v.known && m->set.count ? context_place(m, c) : 0;
  for (size_t i = 0; v.known && i < m->set.count; i++)
    count_point(m, &m->set.at[i], own, &v);
  return end_verdict(m, c, done_by, &v);
}

/* Of a whole context, which is the call's. */
static weir_status judge_whole(wr_queues *m, const wr_queue_call *c, const context_sum *sum,
                               int64_t done_by, wr_wait_verdict v)
{
  const context *x = &m->contexts[sum->context];
  uint32_t of = sum->context, legacy = sum->legacy;
  begin_verdict(m, c, &v);
  v.known = v.known && !sum->any;
  for (size_t i = 0; v.known && i < x->count; i++) {
    uint32_t place = x->active[i];
    if (!legacy || m->queues[place].may_block || place + 1 == legacy)
      count_queue(m, place, of + 1, &v);
  }
  return end_verdict(m, c, done_by, &v);
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
  return st ? st : begin_showing(m, o) ? WEIR_OK : no_memory_to_judge();
}

static int by_queue(const void *left, const void *right)
{
  const done_point *a = left, *b = right;
  return (a->queue > b->queue) - (a->queue < b->queue);
}

/* The call shows that a whole context is complete. */
static bool begin_showing_whole(wr_queues *m, open_call *o, uint32_t of)
{
  const context *x = &m->contexts[of];
  bool ordered = true;
  for (size_t i = 0; i < x->count; i++) {
    const queue *q = &m->queues[x->active[i]];
    ordered &= !i || x->active[i - 1] < x->active[i];
    if (!show_point(m, o, x->active[i], q->last, q->bytes)) return false;
  }
  if (!ordered && o->shown) qsort(o->shows, o->shown, sizeof(*o->shows), by_queue);
  return true;
}

static weir_status sync_context(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  if (!find_context(m, c, &of)) return no_memory_to_judge();
  const context_sum *sum = sum_context(m, of, 0);
  bool whole = sum->whole && !m->watch, sure = whole && !m->contexts[of].open;
  empty_set(m);
  if (!sure && !add_context(m, of, c->thread, true, false)) return no_memory_to_judge();
  int64_t by = m->contexts[of].done_by;
  weir_status st = whole ? judge_whole(m, c, sum, by, (wr_wait_verdict){0})
                         : judge(m, c, by, (wr_wait_verdict){0});
  open_call *o = begin_call(m, c);
  o->clear_context = of + 1;
  if (st) return st;
  bool shown = sure ? begin_showing_whole(m, o, of) : begin_showing(m, o);
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
    if (e->at.at[i].queue != but && !join_point(m, set, &e->at.at[i], sure)) return false;
  set->any |= e->at.any || !sure || p->events_unseen;
  return true;
}

static weir_status sync_event(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  const event *e = event_of(m, c, &place);
  empty_set(m);
  if (!e || !join_event(m, &m->set, c, e, NO_QUEUE)) return no_memory_to_judge();
  int64_t by = e->queue ? m->queues[e->queue - 1].done_by : 0;
  weir_status st = c->act == WR_ACT_SYNC_EVENT ? judge(m, c, by, (wr_wait_verdict){0}) : WEIR_OK;
  open_call *o = begin_call(m, c);
  ask_event(m, o, place);
  return st ? st : begin_showing(m, o) ? WEIR_OK : no_memory_to_judge();
}

/* cudaFree: "may perform implicit synchronization": of what, is not documented. */
static weir_status free_memory(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  if (!find_context(m, c, &of)) return no_memory_to_judge();
  int64_t by = m->contexts[of].done_by;
  const context_sum *sum = sum_context(m, of, 0);
  if (sum->whole && !m->watch) return judge_whole(m, c, sum, by, (wr_wait_verdict){0});
  empty_set(m);
  if (!add_context(m, of, c->thread, false, false)) return no_memory_to_judge();
  return judge(m, c, by, (wr_wait_verdict){0});
}

/* ---- work ------------------------------------------------------------------------------------ */

/* What a call that does work waits for before it; *o NULL: it shows nothing of that at its end. */
static weir_status wait_before(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  const queue *q = &m->queues[place];
  wr_wait_verdict own = {.own_queue = place + 1, .own_number = q->last + 1};
  const context_sum *sum = q->legacy && !m->watch ? sum_context(m, q->context, place + 1) : NULL;
  if (sum && sum->whole) return judge_whole(m, c, sum, q->done_by, own);
  empty_set(m);
  if (!add_queue(m, place, c->thread, true) || !add_other_side(m, place, c->thread, false))
    return no_memory_to_judge();
  return judge(m, c, q->done_by, own);
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
  if (c->how & WR_HOW_WAITS_BEFORE && !begin_showing_queue(m, begin_call(m, c), place))
    return no_memory_to_judge();
  if (!queue_work(m, c, place)) return no_memory_to_judge();
  if (c->how & WR_HOW_WAITS_ALL && !begin_showing_queue(m, begin_call(m, c), place))
    return no_memory_to_judge();
  if (c->act != WR_ACT_PEER_WORK) return WEIR_OK;
  process *p = calling_process(m);
  m->queues[place].after.any = true;
  p->peer_queue = place + 1;
  p->peer_number = m->queues[place].last;
  return WEIR_OK;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Calls that ask for the event at this moment may mean the earlier recording or this one. */
static bool upset_askers(wr_queues *m, uint32_t place)
{
  bool worked = true;
  for (size_t i = 0; m->events[place].askers && i < m->open_count; i++) {
    open_call *o = &m->open[m->opened[i]];
    if (o->event != place + 1) continue;
    o->shown = 0;
    if (!o->queue) continue;
    queue *q = &m->queues[o->queue - 1];
    q->after.any = true;
    for (size_t k = 0; k < q->after.count; k++)
      q->after.at[k].sure = 0, q->after.at[k].sure_bytes = 0;
    activate(m, o->queue - 1, &worked);
  }
  return worked;
}

/* The event has captured the set. */
static bool capture_in_event(wr_queues *m, const wr_queue_call *c, uint32_t queue)
{
  uint32_t place = 0;
  event *e = event_of(m, c, &place);
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
  begin_after(m, place, c->thread);
  e = &m->events[at];
  queue *q = &m->queues[place];
  note_places(m, q, &e->at);
  if (!join_event(m, &q->after, c, e, place) || !end_after(m, place)) return false;
  ask_event(m, begin_change(m, c, place), at);
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
    queue *q = &m->queues[place];
    bool pending = q->last > q->done;
    q->active = 0;
    q->done = q->last;
    q->done_bytes = q->bytes;
    if (pending) q->done_by = x->done_by = c->id;
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
    context *x = &m->contexts[*at];
    bool hit = c->act == WR_ACT_RESET_CONTEXT ? number == c->context : x->device == c->device;
    if (hit) end_context(m, x, c);
  }
  return true;
}

static bool give_up_queues(wr_queues *m, int64_t row)
{
  process *p = find_process(m, row);
  if (p) p->incomplete = true;
  return p != NULL;
}

static bool events_unseen(wr_queues *m, int64_t row)
{
  process *p = find_process(m, row);
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

/* Of a process that is not judged it counts that there was a wait. */
static weir_status take_unjudged(wr_queues *m, const wr_queue_call *c)
{
  bool work = c->act == WR_ACT_WORK || c->act == WR_ACT_PEER_WORK;
  bool waits = work ? c->how & WR_HOW_WAITS
                    : c->act == WR_ACT_FREE || c->act == WR_ACT_SYNC_STREAM ||
                          c->act == WR_ACT_SYNC_CONTEXT || c->act == WR_ACT_SYNC_EVENT;
  wr_wait_verdict v = {.id = c->id, .call = c};
  return waits ? m->verdict(m->verdict_context, &v) : WEIR_OK;
}

weir_status wr_queues_take(wr_queues *m, const wr_queue_call *c)
{
  close_until(m, c->start);
  m->calls++;
  m->caller = find_caller(m, c);
  if (lost_context(c) && !give_up_queues(m, c->process)) return no_memory_to_judge();
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
  for (unsigned i = 0; i < OPEN_MOST; i++)
    m->opened[i] = (uint16_t)i;
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
    free(m->open[i].shows);
  hash_map_free(&m->queue_of);
  hash_map_free(&m->context_of);
  hash_map_free(&m->event_of);
  hash_map_free(&m->process_of);
  free(m->queues);
  free(m->contexts);
  free(m->events);
  free(m->processes);
  free(m->unused);
  free(m->callers);
  wr_points_free(&m->set);
  free(m);
}
