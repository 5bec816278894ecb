/* rule.c: what actions in default streams wait for, and what waits for these. See queues.c.
 *
 * "When an action is taken in the legacy stream such as a kernel launch or cudaStreamWaitEvent(),
 * the legacy stream first waits on all blocking streams, the action is queued in the legacy
 * stream, and then all blocking streams wait on the legacy stream." (Runtime API, "Stream
 * synchronization behavior".) When a blocking stream begins to wait is not documented: at its own
 * next action it surely does. */
#include "reports/queues/private.h"

bool wr_queues_add_other_side(wr_queues *m, uint32_t place, int32_t thread)
{
  const queue *q = m->queues[place], *l = legacy_before(m, q);
  if (q->legacy) return wr_queues_add_context(m, q->context, thread, false, true);
  if (!l) return true;
  uint32_t legacy = q->home->legacy - 1;
  return wr_queues_add_queue(m, legacy, thread, false) && wr_queues_join_rule(m, &m->set, legacy);
}

bool wr_queues_add_followed(wr_queues *m, uint32_t place, int32_t thread)
{
  if (!wr_queues_add_queue(m, place, thread, true)) return false;
  if (m->queues[place]->legacy) return wr_queues_join_rule(m, &m->set, place);
  bool any = m->set.any, added = wr_queues_add_other_side(m, place, thread);
  m->set.any = any;
  return added;
}

void wr_queues_begin_after(wr_queues *m, uint32_t place, int32_t thread)
{
  queue *q = m->queues[place];
  if (!q->after.count) return;
  prune(m, q);
  if (!q->after.count || !contended(m, place, thread)) return;
  q->has_surely = 0;
  for (size_t i = 0; i < q->after.count; i++)
    q->after.at[i].sure = 0, q->after.at[i].sure_bytes = 0;
}

bool wr_queues_end_after(wr_queues *m, uint32_t place)
{
  queue *q = m->queues[place];
  context *x = q->home;
  if (q->after.count > WR_POINTS_MOST) wr_points_cut(&q->after);
  x->outside |= q->outside;
  x->aside |= q->aside;
  x->any |= q->after.any;
  return !(q->after.count || q->after.any) || activate(m, place);
}

void wr_queues_note_places(wr_queues *m, queue *q, const wr_points *points)
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
    if (y->now.last <= y->done && wr_queues_retire_queue(m, place)) continue;
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
  wr_queues_begin_after(m, place, thread);
  if (whole && !surely) {
    if (x->any) follow_any(m, q);
    return q->active || !(q->after.any || wr_queues_legacy_waits(m, q)) || activate(m, place);
  }
  if (whole && !x->maybe && !x->open) return follow_whole(m, q) && wr_queues_end_after(m, place);
  empty_set(m);
  m->joined = q->after.count + (q->now.last > q->done);
  if (!wr_queues_add_context(m, q->context, thread, sure, true)) return false;
  wr_queues_note_places(m, q, &m->set);
  m->hint = 0;
  for (size_t i = 0; i < m->set.count; i++)
    if (m->set.at[i].queue != place && !wr_points_join(&q->after, &m->set.at[i], &m->hint))
      return false;
  q->after.any |= m->set.any;
  return wr_queues_end_after(m, place);
}

/* An action of a queue that waits for the legacy stream. What it may wait for, that stream has from
 * now on, and whoever looks at the one looks at the other: only what is sure is kept here. */
static bool follow_legacy(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  queue *q = m->queues[place];
  uint32_t legacy = q->home->legacy - 1;
  const queue *l = m->queues[legacy];
  wr_queues_begin_after(m, place, thread);
  if (!sure || !q->blocking) {
    q->after.any |= l->after.any;
    q->home->any |= q->after.any;
    return !q->after.any || activate(m, place);
  }
  m->hint = 0;
  if (!wr_queues_join_queue(m, &q->after, legacy, thread, true, place)) return false;
  q->outside |= l->outside;
  q->aside |= l->aside;
  return wr_queues_end_after(m, place);
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

bool wr_queues_follow_changes(wr_queues *m, uint32_t place, int32_t thread, bool sure,
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
