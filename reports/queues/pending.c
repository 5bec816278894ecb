/* pending.c: what may be pending in queues, and the sets of it. See queues.c. */
#include "reports/queues/private.h"

bool wr_queues_begin_active(wr_queues *m, uint32_t place)
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

void wr_queues_prune_all(const wr_queues *m, queue *q)
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

bool wr_queues_legacy_waits(const wr_queues *m, const queue *legacy)
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
  return !q->after.count && !(q->legacy && wr_queues_legacy_waits(m, q));
}

bool wr_queues_retire_queue(wr_queues *m, uint32_t place)
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

bool wr_queues_others_change(const wr_queues *m, uint16_t at, int32_t thread)
{
  for (; at; at = m->open[at - 1].next)
    if (m->open[at - 1].thread != thread) return true;
  return false;
}

void wr_queues_lessen_sure(const wr_queues *m, done_point *p, uint16_t at, int32_t thread)
{
  for (; at; at = m->open[at - 1].next) {
    const open_call *o = &m->open[at - 1];
    if (o->thread == thread || o->number > p->number) continue;
    p->number = o->number - 1;
    p->bytes = o->bytes_before;
  }
}

static bool join_new(wr_queues *m, wr_points *set, const wr_point *from, uint64_t done, bool sure)
{
  if (sure && from->sure >= done) return wr_points_join(set, from, &m->hint);
  wr_point p = *from;
  p.sure = done;
  p.sure_bytes = m->queues[from->queue]->done_bytes;
  return wr_points_join(set, &p, &m->hint);
}

bool wr_queues_join_point(wr_queues *m, wr_points *set, const wr_point *from, bool sure)
{
  uint64_t done = m->queues[from->queue]->done;
  if (from->may <= done) return true;
  m->joined++;
  uint64_t surely = sure && from->sure > done ? from->sure : done;
  return wr_points_have(set, from->queue, surely, from->may, &m->hint) ||
         join_new(m, set, from, done, sure);
}

bool wr_queues_join_queue(wr_queues *m, wr_points *set, uint32_t place, int32_t thread, bool sure,
                          uint32_t but)
{
  queue *q = m->queues[place];
  set->any |= q->after.any;
  if (q->now.last > q->done && place != but) {
    wr_point whole = whole_queue(m, place, thread);
    if (!wr_queues_join_point(m, set, &whole, sure)) return false;
  }
  prune(m, q);
  sure = sure && q->after.count && !contended(m, place, thread);
  for (size_t i = 0; i < q->after.count; i++)
    if (q->after.at[i].queue != but && !wr_queues_join_point(m, set, &q->after.at[i], sure))
      return false;
  return true;
}

bool wr_queues_add_queue(wr_queues *m, uint32_t place, int32_t thread, bool sure)
{
  return wr_queues_join_queue(m, &m->set, place, thread, sure, NO_QUEUE);
}

bool wr_queues_join_rule(wr_queues *m, wr_points *set, uint32_t legacy)
{
  const context *x = m->queues[legacy]->home;
  for (size_t i = 0; i < x->count; i++) {
    const queue *q = m->queues[x->active[i]];
    const reach *r = reach_for_legacy(x, q);
    if (!q->may_block || r->last <= q->done) continue;
    wr_point p = {x->active[i], q->done,     r->last,   q->done_bytes,
                  r->bytes,     r->youngest, r->result, r->source};
    if (!wr_queues_join_point(m, set, &p, false)) return false;
  }
  return true;
}

bool wr_queues_look_whether_whole(wr_queues *m, uint32_t of, uint32_t legacy)
{
  context *x = m->contexts[of];
  const queue *l = legacy ? m->queues[legacy - 1] : NULL;
  bool outside = false, aside = false, whole = !l || !(l->outside || l->aside);
  size_t points = l ? 1 + l->after.count : 0;
  for (size_t i = 0; i < x->count;) {
    uint32_t place = x->active[i];
    if (wr_queues_retire_queue(m, place)) continue;
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

bool wr_queues_add_context(wr_queues *m, uint32_t of, int32_t thread, bool sure, bool blocking)
{
  context *x = m->contexts[of];
  for (size_t i = 0; i < x->count;) {
    uint32_t place = x->active[i];
    if (wr_queues_retire_queue(m, place)) continue;
    const queue *q = m->queues[place];
    i++;
    if (blocking && !q->may_block) continue;
    if (!wr_queues_add_queue(m, place, thread, sure && (!blocking || q->blocking))) return false;
    if (blocking && m->joined > 4 * WR_POINTS_MOST) {
      m->set.any = true;
      return true;
    }
  }
  return true;
}
