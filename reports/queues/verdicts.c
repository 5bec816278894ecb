/* verdicts.c: what a wait has to wait for. See queues.c. */
#include "reports/queues/private.h"

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
  if (!v->pending && !done_by && calling_process(m)->cut)
    v->known = false; /* the first of its work */
  bool wide = c->act == WR_ACT_SYNC_CONTEXT && v->streams == 1;
  v->narrower = wide ? WR_NARROWER_STREAM : WR_NARROWER_NONE;
  m->judged.call = c;
  return m->verdict(m->verdict_context, &m->judged);
}

weir_status wr_queues_judge(wr_queues *m, const wr_queue_call *c, int64_t done_by,
                            uint32_t own_queue)
{
  wr_wait_row *v = begin_verdict(m, c);
  take_tally(v, &none);
  v->known = v->known && !m->set.any;
  uint32_t own = v->known && m->set.count ? wr_queues_context_place(m, c) : 0;
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
    if (!pending && wr_queues_retire_queue(m, place)) continue;
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

weir_status wr_queues_judge_whole(wr_queues *m, const wr_queue_call *c, context *x, bool rule,
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
  uint32_t own = wr_queues_context_place(m, c);
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

weir_status wr_queues_judge_queue(wr_queues *m, const wr_queue_call *c, uint32_t place,
                                  uint32_t own_queue)
{
  const queue *q = m->queues[place], *l = legacy_before(m, q);
  if (q->legacy && !m->watch && is_whole(m, q->context, place + 1))
    return wr_queues_judge_whole(m, c, q->home, true, q->done_by);
  if (!q->legacy && !m->watch && !q->after.count && !(l && l->after.count))
    return judge_stream(m, c, place);
  empty_set(m);
  if (!wr_queues_add_queue(m, place, c->thread, true) ||
      !wr_queues_add_other_side(m, place, c->thread))
    return no_memory_to_judge();
  return wr_queues_judge(m, c, q->done_by, own_queue);
}
