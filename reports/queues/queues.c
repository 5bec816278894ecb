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
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "reports/base/util.h"
#include "reports/queues/points.h"

enum {
  OPEN_MOST = 512,
  NO_NUMBER = 255,
  FEW_QUEUES = 30 /* which wait for no more than 4 * WR_POINTS_MOST points of each other */
};
#define NO_QUEUE UINT32_MAX

/* How far a queue has come. */
typedef struct reach {
  uint64_t last, bytes;    /* work so far; what it moves or sets */
  int64_t youngest;        /* row of `last` */
  uint64_t result, source; /* last operation of WR_HOST_RESULT, of WR_HOST_SOURCE */
} reach;

typedef struct queue {
  uint64_t handle;
  uint32_t context;     /* place */
  struct context *home; /* the same */
  struct tally *tally;  /* the one of that context which it adds to */
  bool legacy;
  bool blocking;  /* surely waits for, and is waited for by, the legacy default stream */
  bool may_block; /* or it may: it was not seen created */
  reach now;
  reach marked; /* before its first work after the legacy stream's action `marked_at` */
  uint64_t marked_at;
  uint64_t done, done_bytes;
  int64_t done_by; /* row of the wait that showed it */
  wr_points after;
  bool outside;        /* `after` may have points in queues of other contexts */
  bool aside;          /* ... in queues on neither side of the default stream's rule */
  uint64_t followed;   /* changes on the other side of the default stream's rule that `after` has */
  uint64_t has_surely; /* the same, as sure ones, where `after` has not lost any of it since */
  uint64_t changed;    /* the context's blocking_changes at its own last one */
  uint64_t pruned;     /* wr_queues.shown when nothing in `after` was complete */
  uint16_t open_call;  /* the first of the open calls that change it, from 1 */
  size_t active;       /* place in its context's list, from 1; 0: nothing is pending */
} queue;

/* Of some queues what may be pending in them. */
typedef struct tally {
  uint64_t operations, bytes;
  uint64_t stream; /* handle of one */
  int64_t youngest;
  uint32_t streams;
  uint8_t host;       /* WR_HOST_* */
  bool before_legacy; /* all of them are on a side of the default stream's rule for sure */
  bool stale;         /* it has to be made again */
} tally;

typedef struct context {
  uint32_t legacy;  /* its queue, from 1 */
  uint32_t *active; /* queues in which something may be pending */
  size_t count, capacity;
  uint64_t legacy_changes, blocking_changes; /* from 1 */
  int64_t done_by;                           /* the latest of its queues */
  uint32_t open;                             /* open calls that change any of its queues */
  uint32_t surely, maybe;  /* queues in `active` for which its legacy queue waits, or may wait */
  uint64_t legacy_actions; /* of its legacy queue, for which that has waited for others */
  tally rule, beside;      /* of the queues on a side of the default stream's rule; of all others */
  bool outside, aside;     /* a queue in `active` may have that; false: surely none has */
  bool any;                /* ... may wait for anything besides */
  uint8_t device;          /* 255: not known */
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
  int64_t id;
  uint64_t number; /* of its operation; UINT64_MAX: it is none */
  uint64_t bytes_before;
  uint64_t calls;       /* taken so far, with it */
  uint32_t queue;       /* that it changes, from 1 */
  uint32_t event;       /* that it asks, from 1 */
  uint32_t clear_queue; /* of which it covers all, from 1 */
  uint32_t clear_context;
  uint16_t next, before; /* open calls that change the same queue, from 1 */
  int32_t thread;
  uint32_t shown;
  done_point *shows; /* what is complete at its end; owned, its room serves again */
  size_t capacity;
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

struct wr_queues {
  wr_verdict_fn verdict;
  void *verdict_context;
  const wr_queue_watch *watch; /* borrowed, or NULL */
  hash_map queue_of, context_of, event_of, process_of;
  queue **queues; /* owned, and so is each of them, which stays where it is */
  context **contexts;
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
  uint64_t shown;   /* how often operations have been shown to be complete */
  open_call open[OPEN_MOST];
  int64_t ends[2 * OPEN_MOST];    /* of the open calls, in order, from open_first to open_end */
  uint16_t opened[2 * OPEN_MOST]; /* the places in `open` of the same calls */
  uint32_t open_first, open_end;
  uint16_t unopened[OPEN_MOST]; /* the other places */
  uint32_t unopened_count;
  uint64_t calls;
  wr_wait_verdict judged; /* of the call that is taken */
  wr_points set;          /* for one call */
  size_t hint;            /* of what was joined to it last */
  size_t joined;          /* points that were, more than one a queue */
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

static caller *new_caller(wr_queues *m, uint32_t number)
{
  if (!wr_grow(&m->callers, &m->caller_capacity, (size_t)number + 1, sizeof(caller))) return NULL;
  memset(m->callers + m->caller_count, 0, (m->caller_capacity - m->caller_count) * sizeof(caller));
  m->caller_count = m->caller_capacity;
  return &m->callers[number];
}

/* Who calls; NULL: the call has no number, or it is out of memory. */
static inline caller *find_caller(wr_queues *m, const wr_queue_call *c)
{
  if (!c->caller) return NULL;
  return c->caller < m->caller_count ? &m->callers[c->caller] : new_caller(m, c->caller);
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
  if (known && known->process) {
    m->calling = known->process - 1;
    return true;
  }
  const process *p = find_process(m, c->process);
  if (!p) return false;
  m->calling = (size_t)(p - m->processes);
  if (known) known->process = (uint32_t)m->calling + 1;
  return true;
}

static bool look_for_context(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (!find_or_add(&m->context_of, key_of_object(0, c->process, c->context, 0), &m->contexts,
                   &m->context_count, &m->context_capacity, sizeof(context *), place, &made))
    return false;
  context *x = made ? malloc(sizeof(*x)) : m->contexts[*place];
  m->contexts[*place] = x;
  if (!x) return false;
  if (made)
    *x = (context){.legacy_changes = 1,
                   .blocking_changes = 1,
                   .device = NO_NUMBER,
                   .rule = {.stale = true},
                   .beside = {.stale = true}};
  return true;
}

static inline bool find_context(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  caller *known = m->caller;
  if (known && known->context)
    *place = known->context - 1;
  else if (!look_for_context(m, c, place))
    return false;
  if (known) known->context = *place + 1;
  if (c->device != NO_NUMBER && c->act != WR_ACT_WORK && c->act != WR_ACT_PEER_WORK)
    m->contexts[*place]->device = c->device;
  return true;
}

static uint64_t queue_key(const wr_queue_call *c)
{
  if (c->stream == WR_QUEUE_LEGACY) return key_of_object(2, c->process, c->context, 0);
  if (c->stream == WR_QUEUE_PER_THREAD)
    return key_of_object(3, c->process, c->context, (uint64_t)c->thread);
  return key_of_object(1, c->process, c->stream, 0);
}

static bool make_queue(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  uint32_t of = 0;
  queue *q = m->queues[place] = malloc(sizeof(*q));
  if (!q) return false;
  *q = (queue){0};
  if (!find_context(m, c, &of)) return false;
  context *x = m->contexts[of];
  bool legacy = c->stream == WR_QUEUE_LEGACY, created = c->act == WR_ACT_STREAM_CREATE;
  bool blocks = !legacy && !(created && c->how & WR_HOW_NON_BLOCKING);
  *q = (queue){.handle = c->stream,
               .context = of,
               .home = x,
               .tally = legacy || blocks ? &x->rule : &x->beside,
               .legacy = legacy,
               .blocking = blocks && (created || c->stream == WR_QUEUE_PER_THREAD),
               .may_block = blocks};
  if (legacy) x->legacy = place + 1;
  return true;
}

static bool look_for_queue(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  bool made;
  if (!find_or_add(&m->queue_of, queue_key(c), &m->queues, &m->queue_count, &m->queue_capacity,
                   sizeof(queue *), place, &made))
    return false;
  return !made || make_queue(m, c, *place);
}

static bool find_queue(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  caller *known = m->caller;
  if (!look_for_queue(m, c, place)) return false;
  if (known) known->queue = *place + 1, known->streams = m->streams;
  return true;
}

/* The queue of the call's stream, made where it is new. */
static inline bool queue_of(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  const caller *known = m->caller;
  if (!known || !known->queue || known->streams != m->streams) return find_queue(m, c, place);
  *place = known->queue - 1;
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

static bool begin_active(wr_queues *m, uint32_t place)
{
  queue *q = m->queues[place];
  context *x = q->home;
  if (!wr_grow(&x->active, &x->capacity, x->count + 1, sizeof(*x->active))) return false;
  x->active[x->count++] = place;
  q->active = x->count;
  x->outside |= q->outside;
  x->aside |= q->aside;
  x->any |= q->after.any;
  x->surely += q->blocking;
  x->maybe += q->may_block && !q->blocking;
  return true;
}

/* Something may be pending in the queue. False: out of memory. */
static inline bool activate(wr_queues *m, uint32_t place)
{
  return m->queues[place]->active || begin_active(m, place);
}

/* Of a queue that leaves its context's list. */
static void note_retired(context *x, queue *q)
{
  x->surely -= q->blocking;
  x->maybe -= q->may_block && !q->blocking;
  q->active = 0;
}

/* All of a queue may be pending. */
static inline void count_queue(const queue *q, tally *t)
{
  t->operations += q->now.last - q->done;
  t->bytes += q->now.bytes - q->done_bytes;
  t->streams++;
  t->stream = q->handle;
  if (q->now.youngest > t->youngest) t->youngest = q->now.youngest;
  if (q->now.result > q->done) t->host |= WR_HOST_RESULT;
  if (q->now.source > q->done) t->host |= WR_HOST_SOURCE;
  t->before_legacy &= q->legacy | q->blocking;
}

/* The queue is about to have one operation more, which is that call. Where the tally's youngest row
 * is the queue's and the call's is lower, the tally is made again: rows of several threads are not
 * in order of time. */
static inline void count_operation(const queue *q, const wr_queue_call *c)
{
  tally *t = q->tally;
  if (t->stale) return;
  if (q->now.last <= q->done) {
    t->stream = q->handle;
    t->streams++;
    t->before_legacy &= q->legacy | q->blocking;
  } else if (q->now.youngest == t->youngest && c->id < t->youngest) {
    t->stale = true;
  }
  t->operations++;
  t->bytes += c->handle;
  if (c->id > t->youngest) t->youngest = c->id;
  t->host |= c->host;
}

/* Drops what is complete of what the queue waits for. */
static void prune_all(const wr_queues *m, queue *q)
{
  size_t kept = 0;
  q->pruned = m->shown;
  for (size_t i = 0; i < q->after.count; i++) {
    if (q->after.at[i].may <= m->queues[q->after.at[i].queue]->done) continue;
    if (kept != i) q->after.at[kept] = q->after.at[i];
    kept++;
  }
  q->after.count = kept;
  if (!kept) q->outside = q->aside = false;
}

static inline void prune(const wr_queues *m, queue *q)
{
  if (q->after.count && q->pruned != m->shown) prune_all(m, q);
}

/* How far a queue had come when its context's legacy stream, which waits for it, last acted. */
static inline const reach *reach_for_legacy(const context *x, const queue *q)
{
  return q->marked_at == x->legacy_actions ? &q->marked : &q->now;
}

/* Something may be pending that the legacy stream, which is that, waits for by the rule. */
static bool legacy_waits(const wr_queues *m, const queue *legacy)
{
  const context *x = legacy->home;
  for (size_t i = 0; i < x->count; i++) {
    const queue *q = m->queues[x->active[i]];
    if (q->may_block && reach_for_legacy(x, q)->last > q->done) return true;
  }
  return false;
}

static bool queue_is_idle(wr_queues *m, queue *q)
{
  if (q->now.last > q->done || q->after.any) return false;
  prune(m, q);
  return !q->after.count && !(q->legacy && legacy_waits(m, q));
}

/* Takes the queue off its context's list where nothing is pending in it. */
static bool retire_queue(wr_queues *m, uint32_t place)
{
  queue *q = m->queues[place];
  context *x = q->home;
  if (!q->active || !queue_is_idle(m, q)) return false;
  uint32_t moved = x->active[--x->count];
  x->active[q->active - 1] = moved;
  m->queues[moved]->active = q->active;
  note_retired(x, q);
  return true;
}

static inline bool any_open(const wr_queues *m)
{
  return m->open_first < m->open_end;
}

/* An open call of another thread, from that one on, of those that change the same queue. */
static bool others_change(const wr_queues *m, uint16_t at, int32_t thread)
{
  for (; at; at = m->open[at - 1].next)
    if (m->open[at - 1].thread != thread) return true;
  return false;
}

/* Other threads' open calls change it. */
static inline bool contended(const wr_queues *m, uint32_t place, int32_t thread)
{
  uint16_t at = m->queues[place]->open_call;
  return at && others_change(m, at, thread);
}

/* The operations up to the first that another thread's open call may not have put there yet are
 * sure. */
static void lessen_sure(const wr_queues *m, done_point *p, uint16_t at, int32_t thread)
{
  for (; at; at = m->open[at - 1].next) {
    const open_call *o = &m->open[at - 1];
    if (o->thread == thread || o->number > p->number) continue;
    p->number = o->number - 1;
    p->bytes = o->bytes_before;
  }
}

/* What of a queue is sure. */
static inline done_point sure_queue(const wr_queues *m, uint32_t place, int32_t thread)
{
  const queue *q = m->queues[place];
  done_point p = {place, q->now.last, q->now.bytes};
  if (q->open_call) lessen_sure(m, &p, q->open_call, thread);
  return p;
}

/* All of a queue. */
static inline wr_point whole_queue(const wr_queues *m, uint32_t place, int32_t thread)
{
  const reach *r = &m->queues[place]->now;
  done_point sure = sure_queue(m, place, thread);
  return (wr_point){place,    sure.number, r->last,   sure.bytes,
                    r->bytes, r->youngest, r->result, r->source};
}

static bool join_new(wr_queues *m, wr_points *set, const wr_point *from, uint64_t done, bool sure)
{
  if (sure && from->sure >= done) return wr_points_join(set, from, &m->hint);
  wr_point p = *from;
  p.sure = done;
  p.sure_bytes = m->queues[from->queue]->done_bytes;
  return wr_points_join(set, &p, &m->hint);
}

static inline bool join_point(wr_queues *m, wr_points *set, const wr_point *from, bool sure)
{
  uint64_t done = m->queues[from->queue]->done;
  if (from->may <= done) return true;
  m->joined++;
  uint64_t surely = sure && from->sure > done ? from->sure : done;
  return wr_points_have(set, from->queue, surely, from->may, &m->hint) ||
         join_new(m, set, from, done, sure);
}

/* Joins what waits in a queue, and for what, but for points in queue `but`. */
static bool join_queue(wr_queues *m, wr_points *set, uint32_t place, int32_t thread, bool sure,
                       uint32_t but)
{
  queue *q = m->queues[place];
  set->any |= q->after.any;
  if (q->now.last > q->done && place != but) {
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

/* Joins what a legacy stream waits for by the rule, and nothing of it surely. */
static bool join_rule(wr_queues *m, wr_points *set, uint32_t legacy)
{
  const context *x = m->queues[legacy]->home;
  for (size_t i = 0; i < x->count; i++) {
    const queue *q = m->queues[x->active[i]];
    const reach *r = reach_for_legacy(x, q);
    if (!q->may_block || r->last <= q->done) continue;
    wr_point p = {x->active[i], q->done,     r->last,   q->done_bytes,
                  r->bytes,     r->youngest, r->result, r->source};
    if (!join_point(m, set, &p, false)) return false;
  }
  return true;
}

static void empty_set(wr_queues *m)
{
  m->set.count = 0;
  m->set.any = false;
  m->joined = m->hint = 0;
}

/* Of each of the context's queues, where some may wait for others outside. */
static bool look_whether_whole(wr_queues *m, uint32_t of, uint32_t legacy)
{
  context *x = m->contexts[of];
  const queue *l = legacy ? m->queues[legacy - 1] : NULL;
  bool outside = false, aside = false, whole = !l || !(l->outside || l->aside);
  size_t points = l ? 1 + l->after.count : 0;
  for (size_t i = 0; i < x->count;) {
    uint32_t place = x->active[i];
    if (retire_queue(m, place)) continue;
    const queue *q = m->queues[place];
    i++;
    outside |= q->outside;
    aside |= q->aside;
    if (l && !q->may_block && q != l) continue;
    whole &= !q->outside && !(l && q->aside);
    if (q != l) points += 1 + q->after.count;
  }
  x->outside = outside;
  x->aside = aside;
  return whole && !(l && points > 4 * WR_POINTS_MOST);
}

/* Whether what is pending in a context is all of its queues, and nothing besides. `legacy`: the
 * place, from 1, of its legacy default stream, where it is about that and what it waits for. If
 * not, a set has to be made, as add_context() does it. */
static inline bool is_whole(wr_queues *m, uint32_t of, uint32_t legacy)
{
  const context *x = m->contexts[of];
  const queue *l = legacy ? m->queues[legacy - 1] : NULL;
  if (!x->outside && !l) return true;
  if (!x->outside && !x->aside && x->count <= FEW_QUEUES && !l->outside && !l->aside) return true;
  return look_whether_whole(m, of, legacy);
}

/* All that is pending in a context; `blocking`: in the streams that the legacy default stream waits
 * for. */
static bool add_context(wr_queues *m, uint32_t of, int32_t thread, bool sure, bool blocking)
{
  context *x = m->contexts[of];
  for (size_t i = 0; i < x->count;) {
    uint32_t place = x->active[i];
    if (retire_queue(m, place)) continue;
    const queue *q = m->queues[place];
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

/* The legacy stream, for which an action in the queue waits; NULL: for nothing that is pending. */
static const queue *legacy_before(const wr_queues *m, const queue *q)
{
  const context *x = q->home;
  const queue *l = q->may_block && x->legacy ? m->queues[x->legacy - 1] : NULL;
  return l && l->active ? l : NULL;
}

/* The set: what the other side of the rule makes an action in this queue wait for. */
static bool add_other_side(wr_queues *m, uint32_t place, int32_t thread)
{
  const queue *q = m->queues[place], *l = legacy_before(m, q);
  if (q->legacy) return add_context(m, q->context, thread, false, true);
  if (!l) return true;
  uint32_t legacy = q->home->legacy - 1;
  return add_queue(m, legacy, thread, false) && join_rule(m, &m->set, legacy);
}

/* The set: what an action in the queue waits for that has just followed the rule. */
static bool add_followed(wr_queues *m, uint32_t place, int32_t thread)
{
  if (!add_queue(m, place, thread, true)) return false;
  if (m->queues[place]->legacy) return join_rule(m, &m->set, place);
  bool any = m->set.any, added = add_other_side(m, place, thread);
  m->set.any = any;
  return added;
}

/* What the queue waits for is about to grow. Where other threads' open calls change it, too,
 * nothing of it is sure. */
static void begin_after(wr_queues *m, uint32_t place, int32_t thread)
{
  queue *q = m->queues[place];
  if (!q->after.count) return;
  prune(m, q);
  if (!q->after.count || !contended(m, place, thread)) return;
  q->has_surely = 0;
  for (size_t i = 0; i < q->after.count; i++)
    q->after.at[i].sure = 0, q->after.at[i].sure_bytes = 0;
}

static bool end_after(wr_queues *m, uint32_t place)
{
  queue *q = m->queues[place];
  context *x = q->home;
  if (q->after.count > WR_POINTS_MOST) wr_points_cut(&q->after);
  x->outside |= q->outside;
  x->aside |= q->aside;
  x->any |= q->after.any;
  return !(q->after.count || q->after.any) || activate(m, place);
}

/* Where the points lie that a queue has come to wait for. */
static void note_places(wr_queues *m, queue *q, const wr_points *points)
{
  for (size_t i = 0; i < points->count; i++) {
    const queue *in = m->queues[points->at[i].queue];
    q->outside |= in->context != q->context;
    q->aside |= !in->legacy && !in->may_block;
  }
}

/* All of the queues that the legacy stream waits for surely, as they are. */
static bool follow_whole(wr_queues *m, queue *q)
{
  context *x = q->home;
  bool any = q->after.any;
  size_t hint = 0;
  for (size_t i = 0; i < x->count;) {
    uint32_t place = x->active[i];
    const queue *y = m->queues[place];
    if (y->now.last <= y->done && retire_queue(m, place)) continue;
    i++;
    any |= y->after.any;
    if (!y->may_block) continue;
    q->after.any |= y->after.any;
    if (!y->blocking || y->now.last <= y->done || y->changed <= q->has_surely) continue;
    wr_point p = {place,        y->now.last,     y->now.last,   y->now.bytes,
                  y->now.bytes, y->now.youngest, y->now.result, y->now.source};
    if (!wr_points_join(&q->after, &p, &hint)) return false;
  }
  x->any = any;
  return true;
}

/* What was not seen is waited for, too, in the queues that the legacy stream waits for. */
static void follow_any(wr_queues *m, queue *q)
{
  context *x = q->home;
  bool any = q->after.any;
  for (size_t i = 0; i < x->count; i++) {
    const queue *y = m->queues[x->active[i]];
    any |= y->after.any;
    q->after.any |= y->may_block && y->after.any;
  }
  x->any = any;
}

/* An action of the legacy stream waits for all streams that may block. Where nothing of it is sure,
 * what there is to know of it is how far they had come: see `marked`. */
static bool follow_blocking(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  queue *q = m->queues[place];
  context *x = q->home;
  bool whole = is_whole(m, q->context, place + 1), surely = sure && x->surely;
  x->legacy_actions++;
  begin_after(m, place, thread);
  if (whole && !surely) {
    if (x->any) follow_any(m, q);
    return q->active || !(q->after.any || legacy_waits(m, q)) || activate(m, place);
  }
  if (whole && !x->maybe && !x->open) return follow_whole(m, q) && end_after(m, place);
  empty_set(m);
  m->joined = q->after.count + (q->now.last > q->done);
  if (!add_context(m, q->context, thread, sure, true)) return false;
  note_places(m, q, &m->set);
  m->hint = 0;
  for (size_t i = 0; i < m->set.count; i++)
    if (m->set.at[i].queue != place && !wr_points_join(&q->after, &m->set.at[i], &m->hint))
      return false;
  q->after.any |= m->set.any;
  return end_after(m, place);
}

/* An action of a queue that waits for the legacy stream. What it may wait for, that stream has from
 * now on, and whoever looks at the one looks at the other: only what is sure is kept here. */
static bool follow_legacy(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  queue *q = m->queues[place];
  uint32_t legacy = q->home->legacy - 1;
  const queue *l = m->queues[legacy];
  begin_after(m, place, thread);
  if (!sure || !q->blocking) {
    q->after.any |= l->after.any;
    q->home->any |= q->after.any;
    return !q->after.any || activate(m, place);
  }
  m->hint = 0;
  if (!join_queue(m, &q->after, legacy, thread, true, place)) return false;
  q->outside |= l->outside;
  q->aside |= l->aside;
  return end_after(m, place);
}

/* The same has been followed before, and nothing has changed: it would make no difference. */
static bool has_followed(const wr_queues *m, uint32_t place, int32_t thread, uint64_t changes)
{
  const queue *q = m->queues[place];
  const context *x = q->home;
  if (q->has_surely != changes) return false;
  bool any = q->legacy ? x->any : m->queues[x->legacy - 1]->after.any;
  return !any && !contended(m, place, thread);
}

static bool follow_changes(wr_queues *m, uint32_t place, int32_t thread, bool sure,
                           uint64_t changes)
{
  bool worked = true;
  queue *q = m->queues[place];
  const context *x = q->home;
  if (!has_followed(m, place, thread, changes)) {
    worked =
        q->legacy ? follow_blocking(m, place, thread, sure) : follow_legacy(m, place, thread, sure);
    if (sure && !x->open) q->has_surely = q->after.any ? 0 : changes;
  }
  q->followed = sure && !any_open(m) ? changes : 0;
  return worked;
}

/* Of what an action of the legacy stream waits for nothing is sure, and nothing has to be kept
 * but how far the others have come. */
static inline bool follows_marks(const context *x, const queue *legacy, bool sure)
{
  return legacy->active && !legacy->after.count && !(sure && x->surely) && !x->any && !x->outside &&
         !x->aside && x->count <= FEW_QUEUES;
}

/* An action in the queue waits for the other side. */
static inline bool follow_rule(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  queue *q = m->queues[place];
  context *x = q->home;
  uint64_t changes = q->legacy ? x->blocking_changes : x->legacy_changes;
  if (q->followed == changes) return true;
  if (q->legacy) {
    if (x->count <= (q->active ? 1u : 0u)) return true;
    if (!follows_marks(x, q, sure)) return follow_changes(m, place, thread, sure, changes);
    x->legacy_actions++;
  } else {
    const queue *l = legacy_before(m, q);
    if (!l) return true;
    if (q->blocking | (q->after.count > 0) | l->after.any)
      return follow_changes(m, place, thread, sure, changes);
  }
  q->followed = sure && !any_open(m) ? changes : 0;
  return true;
}

static inline void note_change(wr_queues *m, uint32_t place)
{
  queue *q = m->queues[place];
  context *x = q->home;
  if (q->legacy)
    x->legacy_changes++;
  else if (q->may_block)
    q->changed = ++x->blocking_changes;
}

/* ---- open calls ------------------------------------------------------------------------------ */

static void watch_done(const wr_queues *m, uint32_t place, int64_t time)
{
  if (m->watch) m->watch->done(m->watch->context, place, m->queues[place]->done, time);
}

static inline void complete_shown(wr_queues *m, const open_call *o, int64_t end)
{
  for (size_t i = 0; i < o->shown; i++) {
    const done_point *p = &o->shows[i];
    queue *q = m->queues[p->queue];
    if (p->number <= q->done) continue;
    m->shown++;
    q->done = p->number;
    q->done_bytes = p->bytes;
    q->done_by = q->home->done_by = o->id;
    q->tally->stale = true;
    watch_done(m, p->queue, end);
    if (q->now.last == q->done) retire_queue(m, p->queue);
  }
}

static void clear_any(wr_queues *m, uint32_t place)
{
  m->queues[place]->after.any = false;
  retire_queue(m, place);
}

/* It changes its queue no more. */
static inline void leave_queue(wr_queues *m, open_call *o)
{
  queue *q = m->queues[o->queue - 1];
  q->home->open--;
  if (o->before)
    m->open[o->before - 1].next = o->next;
  else
    q->open_call = o->next;
  if (o->next) m->open[o->next - 1].before = o->before;
}

/* What the queue or the context that it covers waited for and was not seen is complete, too. */
static void clear_covered(wr_queues *m, const open_call *o)
{
  if (o->clear_queue) clear_any(m, o->clear_queue - 1);
  for (size_t i = 0; o->clear_context && i < m->contexts[o->clear_context - 1]->count; i++) {
    queue *q = m->queues[m->contexts[o->clear_context - 1]->active[i]];
    if (q->now.last == q->done) q->after.any = false;
  }
}

/* What else than the queue that it changes the call is about. */
static void end_call(wr_queues *m, open_call *o, int64_t end)
{
  if (o->event) m->events[o->event - 1].askers--;
  complete_shown(m, o, end);
  if (o->calls == m->calls) clear_covered(m, o); /* nothing was called meanwhile */
}

/* Closes the call that ends first. */
static inline void close_first(wr_queues *m)
{
  int64_t end = m->ends[m->open_first];
  uint16_t closed = m->opened[m->open_first++];
  open_call *o = &m->open[closed];
  if (o->queue) leave_queue(m, o);
  if (o->shown | o->event | o->clear_queue | o->clear_context) end_call(m, o, end);
  m->unopened[m->unopened_count++] = closed;
}

/* Closes the calls that ended by then, of which there is one, in order of their ends. */
static __attribute__((noinline)) void close_some(wr_queues *m, int64_t time)
{
  do
    close_first(m);
  while (any_open(m) && m->ends[m->open_first] <= time);
  if (!any_open(m)) m->open_first = m->open_end = 0;
}

static inline void close_until(wr_queues *m, int64_t time)
{
  if (any_open(m) && m->ends[m->open_first] <= time) close_some(m, time);
}

/* There is no place: the open calls are moved to the front. Of too many at once the one that ends
 * first has ended. */
static __attribute__((noinline)) void make_place(wr_queues *m)
{
  if (!m->unopened_count) close_first(m);
  uint32_t count = m->open_end - m->open_first;
  memmove(m->opened, m->opened + m->open_first, count * sizeof(*m->opened));
  memmove(m->ends, m->ends + m->open_first, count * sizeof(*m->ends));
  m->open_first = 0;
  m->open_end = count;
}

/* A place for a call that ends then, after those that end no later. */
static inline open_call *open_place(wr_queues *m, int64_t end)
{
  if (!m->unopened_count || m->open_end == 2 * OPEN_MOST) make_place(m);
  uint16_t place = m->unopened[--m->unopened_count];
  uint32_t at = m->open_end++;
  for (; at > m->open_first && m->ends[at - 1] > end; at--) {
    m->ends[at] = m->ends[at - 1];
    m->opened[at] = m->opened[at - 1];
  }
  m->ends[at] = end;
  m->opened[at] = place;
  return &m->open[place];
}

static inline open_call *begin_call(wr_queues *m, const wr_queue_call *c)
{
  open_call *o = open_place(m, c->end);
  o->id = c->id;
  o->thread = c->thread;
  o->queue = o->event = o->clear_queue = o->clear_context = 0;
  o->calls = m->calls;
  o->shown = 0;
  return o;
}

/* The call changes the queue. */
static inline void change_queue(wr_queues *m, open_call *o, uint32_t place)
{
  queue *q = m->queues[place];
  o->queue = place + 1;
  o->before = 0;
  o->next = q->open_call;
  q->open_call = (uint16_t)(o - m->open + 1);
  if (o->next) m->open[o->next - 1].before = q->open_call;
  q->home->open++;
}

static inline open_call *begin_change(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  open_call *o = begin_call(m, c);
  o->number = UINT64_MAX;
  change_queue(m, o, place);
  return o;
}

static void ask_event(wr_queues *m, open_call *o, uint32_t place)
{
  o->event = place + 1;
  m->events[place].askers++;
}

static inline bool show_point(wr_queues *m, open_call *o, uint32_t place, uint64_t number,
                              uint64_t bytes)
{
  if (number <= m->queues[place]->done) return true;
  if (o->shown == o->capacity && !wr_grow(&o->shows, &o->capacity, o->shown + 1, sizeof(*o->shows)))
    return false;
  o->shows[o->shown++] = (done_point){place, number, bytes};
  return true;
}

/* The call shows that a queue is complete, and what it waits for. */
static bool begin_showing_queue(wr_queues *m, open_call *o, uint32_t place)
{
  const queue *q = m->queues[place];
  done_point own = sure_queue(m, place, o->thread);
  size_t count = q->after.count && !contended(m, place, o->thread) ? q->after.count : 0, i = 0;
  for (; i < count && q->after.at[i].queue < place; i++)
    if (!show_point(m, o, q->after.at[i].queue, q->after.at[i].sure, q->after.at[i].sure_bytes))
      return false;
  if (!show_point(m, o, place, own.number, own.bytes)) return false;
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
  caller *known = m->caller;
  if (known && known->context) return known->context;
  const uint64_t *at = hash_map_get(&m->context_of, key_of_object(0, c->process, c->context, 0));
  uint32_t place = at ? (uint32_t)*at + 1 : 0;
  if (known) known->context = place;
  return place;
}

/* Of operations of the queue so far, those that may be pending. `own`: place of the caller's
 * context, from 1. */
static inline void count_reach(const queue *q, const reach *r, uint32_t own, wr_wait_row *v)
{
  if (r->last <= q->done) return;
  v->pending = true;
  v->operations += r->last - q->done;
  v->bytes += r->bytes > q->done_bytes ? r->bytes - q->done_bytes : 0;
  v->stream = v->streams++ ? 0 : q->handle;
  if (r->youngest > v->other) v->other = r->youngest;
  if (r->result > q->done) v->host |= WR_HOST_RESULT;
  if (r->source > q->done) v->host |= WR_HOST_SOURCE;
  v->before_legacy &= (q->legacy || q->blocking) && q->context + 1 == own;
}

static void count_point(const wr_queues *m, const wr_point *p, uint32_t own, wr_wait_row *v)
{
  const reach r = {p->may, p->may_bytes, p->youngest, p->result, p->source};
  count_reach(m->queues[p->queue], &r, own, v);
}

static const tally none = {.before_legacy = true};

static inline void take_tally(wr_wait_row *v, const tally *t)
{
  v->pending = t->streams > 0;
  v->operations = t->operations;
  v->bytes = t->bytes;
  v->streams = t->streams;
  v->stream = t->streams == 1 ? t->stream : 0;
  v->other = t->youngest;
  v->host = t->host;
  v->before_legacy = t->before_legacy;
}

/* Known: the process's waits can be judged. `own`: the queue that the call is work in, from 1. */
static inline wr_wait_row *begin_verdict(wr_queues *m, const wr_queue_call *c)
{
  const process *p = calling_process(m);
  wr_wait_row *v = &m->judged.row;
  v->id = c->id;
  v->known = !p->incomplete;
  if (p->peer_queue && m->queues[p->peer_queue - 1]->done < p->peer_number) v->known = false;
  return v;
}

/* `done_by`: row of the call that showed it, where nothing is pending. */
static inline weir_status end_verdict(wr_queues *m, const wr_queue_call *c, int64_t done_by)
{
  wr_wait_row *v = &m->judged.row;
  if (!v->pending) v->other = done_by;
  bool wide = c->act == WR_ACT_SYNC_CONTEXT && v->streams == 1;
  v->narrower = wide ? WR_NARROWER_STREAM : WR_NARROWER_NONE;
  m->judged.call = c;
  return m->verdict(m->verdict_context, &m->judged);
}

/* Of the set, which is what the call waits for. */
static weir_status judge(wr_queues *m, const wr_queue_call *c, int64_t done_by, uint32_t own_queue)
{
  wr_wait_row *v = begin_verdict(m, c);
  take_tally(v, &none);
  v->known = v->known && !m->set.any;
  uint32_t own = v->known && m->set.count ? context_place(m, c) : 0;
  for (size_t i = 0; v->known && i < m->set.count; i++)
    count_point(m, &m->set.at[i], own, v);
  m->judged.points = &m->set;
  m->judged.own_queue = own_queue;
  m->judged.own_number = own_queue ? m->queues[own_queue - 1]->now.last + 1 : 0;
  return end_verdict(m, c, done_by);
}

/* Both tallies of a context anew. */
static void tally_up(wr_queues *m, context *x)
{
  x->rule = x->beside = (tally){.before_legacy = true};
  for (size_t i = 0; i < x->count;) {
    uint32_t place = x->active[i];
    const queue *q = m->queues[place];
    bool pending = q->now.last > q->done;
    if (!pending && retire_queue(m, place)) continue;
    i++;
    if (pending) count_queue(q, q->tally);
  }
}

static void add_tally(wr_wait_row *v, const tally *t)
{
  v->stream = v->pending ? 0 : t->streams == 1 ? t->stream : 0;
  v->pending = true;
  v->operations += t->operations;
  v->bytes += t->bytes;
  v->streams += t->streams;
  if (t->youngest > v->other) v->other = t->youngest;
  v->host |= t->host;
  v->before_legacy &= t->before_legacy;
}

/* Whether nothing is unseen in the context's queues; in those for which its legacy stream waits. */
static bool all_seen(const wr_queues *m, const context *x, bool rule)
{
  for (size_t i = 0; i < x->count; i++) {
    const queue *q = m->queues[x->active[i]];
    if (q->after.any && (!rule || q->legacy || q->may_block)) return false;
  }
  return true;
}

/* Of a whole context whose tallies are stale, or of which the one of `rule` is not all. */
static __attribute__((noinline)) weir_status judge_context(wr_queues *m, const wr_queue_call *c,
                                                           context *x, bool rule, int64_t done_by)
{
  if (x->rule.stale | x->beside.stale) tally_up(m, x);
  wr_wait_row *v = begin_verdict(m, c);
  take_tally(v, &x->rule);
  if (!rule && x->beside.streams) add_tally(v, &x->beside);
  if (x->any) v->known = v->known && all_seen(m, x, rule);
  return end_verdict(m, c, done_by);
}

/* Of a whole context, which is the call's. `rule`: of its legacy default stream, and of what that
 * waits for. */
static inline weir_status judge_whole(wr_queues *m, const wr_queue_call *c, context *x, bool rule,
                                      int64_t done_by)
{
  if (x->rule.stale | x->beside.stale | x->any | (x->beside.streams > 0))
    return judge_context(m, c, x, rule, done_by);
  take_tally(begin_verdict(m, c), &x->rule);
  return end_verdict(m, c, done_by);
}

/* Of a stream, and of what its context's legacy stream makes it wait for, where these wait for
 * nothing besides. */
static weir_status judge_stream(wr_queues *m, const wr_queue_call *c, uint32_t place)
{
  const queue *q = m->queues[place], *l = legacy_before(m, q);
  const context *x = q->home;
  wr_wait_row *v = begin_verdict(m, c);
  uint32_t own = context_place(m, c);
  take_tally(v, &none);
  v->known = v->known && !q->after.any && !(l && l->after.any);
  count_reach(q, &q->now, own, v);
  if (l) count_reach(l, &l->now, own, v);
  for (size_t i = 0; l && i < x->count; i++) {
    const queue *y = m->queues[x->active[i]];
    if (y->may_block && y != q) count_reach(y, reach_for_legacy(x, y), own, v);
  }
  return end_verdict(m, c, q->done_by);
}

/* What a wait for a stream has to wait for. `own_queue`: the call is work in it, from 1. */
static weir_status judge_queue(wr_queues *m, const wr_queue_call *c, uint32_t place,
                               uint32_t own_queue)
{
  const queue *q = m->queues[place], *l = legacy_before(m, q);
  if (q->legacy && !m->watch && is_whole(m, q->context, place + 1))
    return judge_whole(m, c, q->home, true, q->done_by);
  if (!q->legacy && !m->watch && !q->after.count && !(l && l->after.count))
    return judge_stream(m, c, place);
  empty_set(m);
  if (!add_queue(m, place, c->thread, true) || !add_other_side(m, place, c->thread))
    return no_memory_to_judge();
  return judge(m, c, q->done_by, own_queue);
}

static __attribute__((noinline)) weir_status sync_stream(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  if (!queue_of(m, c, &place)) return no_memory_to_judge();
  weir_status st = c->act == WR_ACT_SYNC_STREAM ? judge_queue(m, c, place, 0) : WEIR_OK;
  open_call *o = begin_call(m, c);
  o->clear_queue = place + 1;
  return st ? st : begin_showing_queue(m, o, place) ? WEIR_OK : no_memory_to_judge();
}

/* Some queue of the context waits for what it has been kept of, so that a set has to be made. */
static bool any_points(const wr_queues *m, const context *x)
{
  for (size_t i = 0; i < x->count; i++)
    if (m->queues[x->active[i]]->after.count) return true;
  return false;
}

static int by_queue(const void *left, const void *right)
{
  const done_point *a = left, *b = right;
  return (a->queue > b->queue) - (a->queue < b->queue);
}

static void order_shown(open_call *o)
{
  if (o->shown > FEW_QUEUES) qsort(o->shows, o->shown, sizeof(*o->shows), by_queue);
  for (size_t i = 1; i < o->shown; i++) {
    done_point p = o->shows[i];
    size_t k = i;
    for (; k && o->shows[k - 1].queue > p.queue; k--)
      o->shows[k] = o->shows[k - 1];
    o->shows[k] = p;
  }
}

/* The call shows that a whole context is complete. */
static bool begin_showing_whole(wr_queues *m, open_call *o, uint32_t of)
{
  const context *x = m->contexts[of];
  for (size_t i = 0; i < x->count; i++) {
    done_point p = sure_queue(m, x->active[i], o->thread);
    if (!show_point(m, o, p.queue, p.number, p.bytes)) return false;
  }
  order_shown(o);
  return true;
}

static __attribute__((noinline)) weir_status sync_context(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  if (!find_context(m, c, &of)) return no_memory_to_judge();
  context *x = m->contexts[of];
  bool whole = !m->watch && is_whole(m, of, 0), alone = whole && (!x->open || !any_points(m, x));
  empty_set(m);
  if (!alone && !add_context(m, of, c->thread, true, false)) return no_memory_to_judge();
  int64_t by = x->done_by;
  weir_status st = whole ? judge_whole(m, c, x, false, by) : judge(m, c, by, 0);
  open_call *o = begin_call(m, c);
  o->clear_context = of + 1;
  if (st) return st;
  bool shown = alone ? begin_showing_whole(m, o, of) : begin_showing(m, o);
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

static __attribute__((noinline)) weir_status sync_event(wr_queues *m, const wr_queue_call *c)
{
  uint32_t place = 0;
  const event *e = event_of(m, c, &place);
  empty_set(m);
  if (!e || !join_event(m, &m->set, c, e, NO_QUEUE)) return no_memory_to_judge();
  int64_t by = e->queue ? m->queues[e->queue - 1]->done_by : 0;
  weir_status st = c->act == WR_ACT_SYNC_EVENT ? judge(m, c, by, 0) : WEIR_OK;
  open_call *o = begin_call(m, c);
  ask_event(m, o, place);
  return st ? st : begin_showing(m, o) ? WEIR_OK : no_memory_to_judge();
}

/* cudaFree: "may perform implicit synchronization": of what, is not documented. */
static __attribute__((noinline)) weir_status free_memory(wr_queues *m, const wr_queue_call *c)
{
  uint32_t of = 0;
  if (!find_context(m, c, &of)) return no_memory_to_judge();
  context *x = m->contexts[of];
  int64_t by = x->done_by;
  if (!m->watch && is_whole(m, of, 0)) return judge_whole(m, c, x, false, by);
  empty_set(m);
  if (!add_context(m, of, c->thread, false, false)) return no_memory_to_judge();
  return judge(m, c, by, 0);
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
  if (c->how & WR_HOW_WAITS) st = judge_queue(m, c, place, place + 1);
  if (st) return st;
  if (c->how & WR_HOW_WAITS_BEFORE) {
    o = begin_call(m, c);
    if (!begin_showing_queue(m, o, place)) return no_memory_to_judge();
  }
  if (!queue_work(m, c, place, &o)) return no_memory_to_judge();
  if (c->how & WR_HOW_WAITS_ALL && !begin_showing_queue(m, o, place)) return no_memory_to_judge();
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
  if (!add_followed(m, place, c->thread)) return false;
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
  queue *q = m->queues[place];
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
  free(m->processes);
  free(m->unused);
  free(m->callers);
  wr_points_free(&m->set);
  free(m);
}
