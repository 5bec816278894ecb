/* points.c: see points.h. */
#include "reports/queues/points.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { NEAR = 4 /* places that are looked at one by one */ };

/* The first place whose queue is no lower. */
static size_t search_place(const wr_points *set, uint32_t queue)
{
  size_t low = 0, high = set->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (set->at[middle].queue < queue)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static size_t place_of(const wr_points *set, uint32_t queue, size_t hint)
{
  if (!set->count || set->at[set->count - 1].queue < queue) return set->count;
  if (hint > set->count || (hint && set->at[hint - 1].queue >= queue)) hint = 0;
  for (size_t at = hint; at < hint + NEAR; at++) /* the last one is no lower */
    if (set->at[at].queue >= queue) return at;
  return search_place(set, queue);
}

static void take_in(wr_point *to, const wr_point *p)
{
  if (p->sure > to->sure) to->sure = p->sure, to->sure_bytes = p->sure_bytes;
  if (p->may <= to->may) return;
  to->may = p->may, to->may_bytes = p->may_bytes, to->youngest = p->youngest;
  to->result = p->result, to->source = p->source;
}

bool wr_points_join(wr_points *set, const wr_point *p, size_t *hint)
{
  if (wr_points_have(set, p->queue, p->sure, p->may, hint)) return true;
  size_t at = *hint = place_of(set, p->queue, *hint);
  if (at < set->count && set->at[at].queue == p->queue) {
    take_in(&set->at[at], p);
    return true;
  }
  if (!wr_grow(&set->at, &set->capacity, set->count + 1, sizeof(wr_point))) return false;
  if (at < set->count)
    memmove(&set->at[at + 1], &set->at[at], (set->count - at) * sizeof(wr_point));
  set->at[at] = *p;
  set->count++;
  return true;
}

void wr_points_cut(wr_points *set)
{
  if (set->count <= WR_POINTS_MOST) return;
  set->count = WR_POINTS_MOST;
  set->any = true;
}

bool wr_points_keep(wr_points *to, const wr_points *from)
{
  if (!wr_grow(&to->at, &to->capacity, from->count, sizeof(wr_point))) return false;
  if (from->count) memcpy(to->at, from->at, from->count * sizeof(wr_point));
  to->count = from->count;
  to->any = from->any;
  wr_points_cut(to);
  return true;
}

void wr_points_free(wr_points *set)
{
  free(set->at);
  *set = (wr_points){0};
}
