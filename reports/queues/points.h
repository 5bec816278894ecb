/* points.h: places in queues.
 *
 * A *queue* is what a stream is in the model: its operations have numbers from 1. A *point* is a
 * number in a queue, twice: what surely has to be waited for, and what may have to be, where two
 * threads called at once or the documentation leaves it open. A *set* of points, at most one a
 * queue, is what an event has captured, or what a queue's operations wait for besides their own. */
#ifndef WEIR_REPORTS_POINTS_H
#define WEIR_REPORTS_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wr_point {
  uint32_t queue;
  uint64_t sure, may;             /* numbers of operations in it; sure <= may */
  uint64_t sure_bytes, may_bytes; /* that the operations up to there move or set, from the first */
  int64_t youngest;               /* row of the operation `may` */
  uint64_t result, source;        /* last operation up to `may` with WR_HOST_RESULT, with
                                     WR_HOST_SOURCE; 0 none */
} wr_point;

enum { WR_POINTS_MOST = 256 /* that an event or a queue keeps */ };

typedef struct wr_points {
  wr_point *at; /* owned; by queue */
  size_t count, capacity;
  bool any; /* it may be anything besides: there were too many, or it was not seen */
} wr_points;

/* Whether there is a point in that queue, as far on as these numbers. *hint: as below. */
static inline bool wr_points_have(const wr_points *set, uint32_t queue, uint64_t sure, uint64_t may,
                                  size_t *hint)
{
  size_t at = *hint;
  if (at < set->count && set->at[at].queue < queue) at++;
  if (at >= set->count || set->at[at].queue != queue) return false;
  *hint = at;
  return set->at[at].sure >= sure && set->at[at].may >= may;
}

/* Adds a point; one in the same queue takes in what is further on. *hint: from 0, as the point
 * before left it; quick where queues ascend. False: out of memory. */
bool wr_points_join(wr_points *set, const wr_point *p, size_t *hint);

/* Of more than WR_POINTS_MOST the rest becomes `any`. */
void wr_points_cut(wr_points *set);

/* Makes *to what *from is, and cuts it. False: out of memory. */
bool wr_points_keep(wr_points *to, const wr_points *from);

void wr_points_free(wr_points *set);

#endif
