/* private.h: what the sources of this folder's model share: what it knows of queues, contexts, events and open calls, and the
 * short functions that most calls take. See queues.c. */
#ifndef WEIR_REPORTS_QUEUES_PRIVATE_H
#define WEIR_REPORTS_QUEUES_PRIVATE_H

#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "reports/base/util.h"
#include "reports/queues/points.h"
#include "reports/queues/queues.h"

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
  bool cut;            /* its first calls are not there */
  uint32_t peer_queue; /* of the last WR_ACT_PEER_WORK, from 1 */
  uint64_t peer_number;
} process;

/* What calls of one number have in common; NULL, 0: not looked for. */
typedef struct caller {
  struct process *process;
  uint32_t context, queue; /* places from 1 */
  uint64_t streams;        /* wr_queues.streams at which `queue` was found */
} caller;

struct wr_queues {
  wr_verdict_fn verdict;
  void *verdict_context;
  const wr_queue_watch *watch; /* borrowed, or NULL */
  hash_map queue_of, context_of, event_of, process_of;
  queue **queues; /* owned, and so is each of them, which stays where it is */
  context **contexts;
  event *events;
  process **processes;
  size_t queue_count, queue_capacity, context_count, context_capacity;
  size_t event_count, event_capacity, process_count, process_capacity;
  uint32_t *unused; /* places of destroyed events */
  size_t unused_count, unused_capacity;
  caller *callers;  /* by number */
  caller *caller;   /* of the call that is taken; NULL: it has no number */
  process *calling; /* its process */
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

static inline weir_status no_memory_to_judge(void)
{
  return weir_fail(WEIR_ENOMEM, "judging waits: out of host memory");
}

/* ---- what there is: objects.c ---------------------------------------------------------------- */

caller *wr_queues_new_caller(wr_queues *m, uint32_t number);
process *wr_queues_find_process(wr_queues *m, int64_t row);
bool wr_queues_look_for_process(wr_queues *m, const wr_queue_call *c);
bool wr_queues_look_for_context(wr_queues *m, const wr_queue_call *c, uint32_t *place);
bool wr_queues_find_queue(wr_queues *m, const wr_queue_call *c, uint32_t *place);
event *wr_queues_event_of(wr_queues *m, const wr_queue_call *c, uint32_t *place);

/* The place of the call's context, from 1; 0: nothing was called in it yet. */
uint32_t wr_queues_context_place(wr_queues *m, const wr_queue_call *c);

static inline uint64_t key_of_object(int64_t kind, int64_t process, uint64_t what, uint64_t thread)
{
  return hash_mix(hash_mix(hash_mix((uint64_t)kind, (uint64_t)process), what), thread);
}

/* Who calls; NULL: the call has no number, or it is out of memory. */
static inline caller *find_caller(wr_queues *m, const wr_queue_call *c)
{
  if (!c->caller) return NULL;
  return c->caller < m->caller_count ? &m->callers[c->caller] : wr_queues_new_caller(m, c->caller);
}

/* The process of the call that is taken. */
static inline process *calling_process(const wr_queues *m)
{
  return m->calling;
}

static inline bool find_calling_process(wr_queues *m, const wr_queue_call *c)
{
  if (!m->caller || !m->caller->process) return wr_queues_look_for_process(m, c);
  m->calling = m->caller->process;
  return true;
}

static inline bool find_context(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  caller *known = m->caller;
  if (known && known->context)
    *place = known->context - 1;
  else if (!wr_queues_look_for_context(m, c, place))
    return false;
  if (known) known->context = *place + 1;
  if (c->device != NO_NUMBER && c->act != WR_ACT_WORK && c->act != WR_ACT_PEER_WORK)
    m->contexts[*place]->device = c->device;
  return true;
}

/* The queue of the call's stream, made where it is new. */
static inline bool queue_of(wr_queues *m, const wr_queue_call *c, uint32_t *place)
{
  const caller *known = m->caller;
  if (!known || !known->queue || known->streams != m->streams)
    return wr_queues_find_queue(m, c, place);
  *place = known->queue - 1;
  return true;
}

/* ---- what is pending: pending.c -------------------------------------------------------------- */

/* Puts the queue, which is on no list, on its context's. False: out of memory. */
bool wr_queues_begin_active(wr_queues *m, uint32_t place);

/* Drops what is complete of what the queue waits for. */
void wr_queues_prune_all(const wr_queues *m, queue *q);

/* Something may be pending that the legacy stream, which is that, waits for by the rule. */
bool wr_queues_legacy_waits(const wr_queues *m, const queue *legacy);

/* Takes the queue off its context's list where nothing is pending in it. */
bool wr_queues_retire_queue(wr_queues *m, uint32_t place);

/* An open call of another thread, from that one on, of those that change the same queue. */
bool wr_queues_others_change(const wr_queues *m, uint16_t at, int32_t thread);

/* The operations up to the first that another thread's open call may not have put there yet are
 * sure. */
void wr_queues_lessen_sure(const wr_queues *m, done_point *p, uint16_t at, int32_t thread);
/* Joins what of a point is not complete. `sure`: else nothing of it is. */
bool wr_queues_join_point(wr_queues *m, wr_points *set, const wr_point *from, bool sure);

/* Joins what waits in a queue, and for what, but for points in queue `but`. */
bool wr_queues_join_queue(wr_queues *m, wr_points *set, uint32_t place, int32_t thread, bool sure,
                          uint32_t but);
/* The set: what waits in a queue, and for what. */
bool wr_queues_add_queue(wr_queues *m, uint32_t place, int32_t thread, bool sure);

/* Joins what a legacy stream waits for by the rule, and nothing of it surely. */
bool wr_queues_join_rule(wr_queues *m, wr_points *set, uint32_t legacy);

/* Of each of the context's queues, where some may wait for others outside. */
bool wr_queues_look_whether_whole(wr_queues *m, uint32_t of, uint32_t legacy);

/* All that is pending in a context; `blocking`: in the streams that the legacy default stream waits
 * for. */
bool wr_queues_add_context(wr_queues *m, uint32_t of, int32_t thread, bool sure, bool blocking);

/* Something may be pending in the queue. False: out of memory. */
static inline bool activate(wr_queues *m, uint32_t place)
{
  return m->queues[place]->active || wr_queues_begin_active(m, place);
}

/* Of a queue that leaves its context's list. */
static inline void note_retired(context *x, queue *q)
{
  x->surely -= q->blocking;
  x->maybe -= q->may_block && !q->blocking;
  q->active = 0;
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

static inline void prune(const wr_queues *m, queue *q)
{
  if (q->after.count && q->pruned != m->shown) wr_queues_prune_all(m, q);
}

/* How far a queue had come when its context's legacy stream, which waits for it, last acted. */
static inline const reach *reach_for_legacy(const context *x, const queue *q)
{
  return q->marked_at == x->legacy_actions ? &q->marked : &q->now;
}

static inline bool any_open(const wr_queues *m)
{
  return m->open_first < m->open_end;
}

/* Other threads' open calls change it. */
static inline bool contended(const wr_queues *m, uint32_t place, int32_t thread)
{
  uint16_t at = m->queues[place]->open_call;
  return at && wr_queues_others_change(m, at, thread);
}

/* What of a queue is sure. */
static inline done_point sure_queue(const wr_queues *m, uint32_t place, int32_t thread)
{
  const queue *q = m->queues[place];
  done_point p = {place, q->now.last, q->now.bytes};
  if (q->open_call) wr_queues_lessen_sure(m, &p, q->open_call, thread);
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

static inline void empty_set(wr_queues *m)
{
  m->set.count = 0;
  m->set.any = false;
  m->joined = m->hint = 0;
}

/* Whether what is pending in a context is all of its queues, and nothing besides. `legacy`: the
 * place, from 1, of its legacy default stream, where it is about that and what it waits for. If
 * not, a set has to be made, as wr_queues_add_context() does it. */
static inline bool is_whole(wr_queues *m, uint32_t of, uint32_t legacy)
{
  const context *x = m->contexts[of];
  const queue *l = legacy ? m->queues[legacy - 1] : NULL;
  if (!x->outside && !l) return true;
  if (!x->outside && !x->aside && x->count <= FEW_QUEUES && !l->outside && !l->aside) return true;
  return wr_queues_look_whether_whole(m, of, legacy);
}

/* ---- default streams: rule.c ----------------------------------------------------------------- */

/* The set: what the other side of the rule makes an action in this queue wait for. */
bool wr_queues_add_other_side(wr_queues *m, uint32_t place, int32_t thread);

/* The set: what an action in the queue waits for that has just followed the rule. */
bool wr_queues_add_followed(wr_queues *m, uint32_t place, int32_t thread);

/* What the queue waits for is about to grow. Where other threads' open calls change it, too,
 * nothing of it is sure. */
void wr_queues_begin_after(wr_queues *m, uint32_t place, int32_t thread);
bool wr_queues_end_after(wr_queues *m, uint32_t place);

/* Where the points lie that a queue has come to wait for. */
void wr_queues_note_places(wr_queues *m, queue *q, const wr_points *points);
bool wr_queues_follow_changes(wr_queues *m, uint32_t place, int32_t thread, bool sure,
                              uint64_t changes);

/* The legacy stream, for which an action in the queue waits; NULL: for nothing that is pending. */
static inline const queue *legacy_before(const wr_queues *m, const queue *q)
{
  const context *x = q->home;
  const queue *l = q->may_block && x->legacy ? m->queues[x->legacy - 1] : NULL;
  return l && l->active ? l : NULL;
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
    if (!follows_marks(x, q, sure))
      return wr_queues_follow_changes(m, place, thread, sure, changes);
    x->legacy_actions++;
  } else {
    const queue *l = legacy_before(m, q);
    if (!l) return true;
    if (q->blocking | (q->after.count > 0) | l->after.any)
      return wr_queues_follow_changes(m, place, thread, sure, changes);
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

/* ---- open calls: open_calls.c ---------------------------------------------------------------- */

/* Closes the calls that ended by then, of which there is one, in order of their ends. */
void wr_queues_close_some(wr_queues *m, int64_t time);

/* There is no place: the open calls are moved to the front. Of too many at once the one that ends
 * first has ended. */
void wr_queues_make_place(wr_queues *m);

/* The call shows that a queue is complete, and what it waits for. */
bool wr_queues_begin_showing_queue(wr_queues *m, open_call *o, uint32_t place);

/* The set is what the call shows to be complete at its end. */
bool wr_queues_begin_showing(wr_queues *m, open_call *o);

/* The call shows that a whole context is complete. */
bool wr_queues_begin_showing_whole(wr_queues *m, open_call *o, uint32_t of);

static inline void watch_done(const wr_queues *m, uint32_t place, int64_t time)
{
  if (m->watch) m->watch->done(m->watch->context, place, m->queues[place]->done, time);
}

static inline void close_until(wr_queues *m, int64_t time)
{
  if (any_open(m) && m->ends[m->open_first] <= time) wr_queues_close_some(m, time);
}

/* A place for a call that ends then, after those that end no later. */
static inline open_call *open_place(wr_queues *m, int64_t end)
{
  if (!m->unopened_count || m->open_end == 2 * OPEN_MOST) wr_queues_make_place(m);
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

static inline void ask_event(wr_queues *m, open_call *o, uint32_t place)
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

/* ---- verdicts: verdicts.c -------------------------------------------------------------------- */

/* Of the set, which is what the call waits for. */
weir_status wr_queues_judge(wr_queues *m, const wr_queue_call *c, int64_t done_by,
                            uint32_t own_queue);

/* Of a whole context, which is the call's. `rule`: of its legacy default stream, and of what that
 * waits for. */
weir_status wr_queues_judge_whole(wr_queues *m, const wr_queue_call *c, context *x, bool rule,
                                  int64_t done_by);

/* What a wait for a stream has to wait for. `own_queue`: the call is work in it, from 1. */
weir_status wr_queues_judge_queue(wr_queues *m, const wr_queue_call *c, uint32_t place,
                                  uint32_t own_queue);

#endif
