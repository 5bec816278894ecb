/* points.c: see points.h. */
#include "reports/queues/points.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { FEW = 24 };

bool wr_points_add(wr_points *set, const wr_point *p)
{
  if (!wr_grow(&set->at, &set->capacity, set->count + 1, sizeof(wr_point))) return false;
  set->at[set->count++] = *p;
  return true;
}

static int by_queue(const void *left, const void *right)
{
  const wr_point *a = left, *b = right;
  return (a->queue > b->queue) - (a->queue < b->queue);
}

static bool in_order(const wr_points *set)
{
  for (size_t i = 1; i < set->count; i++)
    if (set->at[i - 1].queue >= set->at[i].queue) return false;
  return true;
}

/* Of a few points, as most sets have, without a call for each comparison. */
static void sort_points(wr_points *set)
{
  if (set->count > FEW) {
    qsort(set->at, set->count, sizeof(wr_point), by_queue);
    return;
  }
  for (size_t i = 1; i < set->count; i++) {
    wr_point p = set->at[i];
    size_t at = i;
    for (; at && set->at[at - 1].queue > p.queue; at--)
      set->at[at] = set->at[at - 1];
    set->at[at] = p;
  }
}

void wr_points_order(wr_points *set)
{
  if (in_order(set)) return;
  sort_points(set);
  size_t kept = 0;
  for (size_t i = 1; i < set->count; i++) {
    wr_point *to = &set->at[kept];
    const wr_point *p = &set->at[i];
    if (p->queue != to->queue) {
      set->at[++kept] = *p;
      continue;
    }
    if (p->sure > to->sure) to->sure = p->sure, to->sure_bytes = p->sure_bytes;
    if (p->may <= to->may) continue;
    to->may = p->may, to->may_bytes = p->may_bytes, to->youngest = p->youngest;
    to->result = p->result, to->source = p->source;
  }
  set->count = kept + 1;
}

bool wr_points_keep(wr_points *to, const wr_points *from)
{
  size_t count = from->count < WR_POINTS_MOST ? from->count : WR_POINTS_MOST;
  to->any = from->any || from->count > count;
  to->count = 0;
  if (!count) return true;
  if (!wr_grow(&to->at, &to->capacity, count, sizeof(wr_point))) return false;
  memcpy(to->at, from->at, count * sizeof(wr_point));
  to->count = count;
  return true;
}

void wr_points_free(wr_points *set)
{
  free(set->at);
  *set = (wr_points){0};
}
