/* starts.h: when events began, by their numbers: what a walk in order of time has passed by, and in
 * which order.
 *
 * Events whose numbers are near each other began near each other, so that four bytes each are
 * enough: ns from the first of some dozens on. Their order is kept, in four bytes more, where it is
 * not that of their numbers. */
#ifndef WEIR_REPORTS_FINDINGS_STARTS_H
#define WEIR_REPORTS_FINDINGS_STARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WR_STARTS_MOST = 1 << 25, /* events of which it is kept; of a larger trace of none */
  WR_STARTS_TOGETHER = 64   /* events that have one `first` */
};

typedef struct wr_starts {
  int64_t *first;  /* owned: of some events the earliest start */
  uint32_t *from;  /* owned: of each event the ns from there, plus 1; 0: not known */
  size_t count;    /* of events, from number 0 */
  int64_t last;    /* the highest number that has come, while there is no order */
  uint32_t *order; /* owned; NULL: by number. Else those whose start is known, in order of time */
  size_t ordered;
} wr_starts;

/* Of events up to number `last`. False: out of memory. */
bool wr_starts_open(wr_starts *x, int64_t last);
void wr_starts_close(wr_starts *x);

/* A lower number comes than one before it: from now on there is an order. Where there is no memory for one, no start is known
 * any more. */
void wr_starts_begin_order(wr_starts *x);

/* Events come in order of their start: the first that comes is the earliest. What began at 0 or before is looked for
 * elsewhere. */
static inline void wr_starts_add(wr_starts *x, int64_t event, int64_t start)
{
  if ((uint64_t)event >= x->count || start <= 0) return;
  int64_t *first = &x->first[(uint64_t)event / WR_STARTS_TOGETHER];
  if (!*first) *first = start; /* 0: none has come */
  uint64_t from = (uint64_t)start - (uint64_t)*first + 1;
  if (from > UINT32_MAX) return;
  uint32_t *known = &x->from[event];
  if (!x->order && event < x->last) wr_starts_begin_order(x);
  if (!x->order) x->last = event;
  if (x->order) x->order[x->ordered] = (uint32_t)event, x->ordered += !*known;
  *known = (uint32_t)from;
}

static inline bool wr_starts_know(const wr_starts *x, int64_t event)
{
  return (uint64_t)event < x->count && x->from[event];
}

/* False: it is not known here. */
static inline bool wr_starts_find(const wr_starts *x, int64_t event, int64_t *start)
{
  if (!wr_starts_know(x, event)) return false;
  *start = x->first[event / WR_STARTS_TOGETHER] + (int64_t)(x->from[event] - 1);
  return true;
}

/* Of places from 0 up to this number, each is one event's or none's, in order of time. */
static inline size_t wr_starts_places(const wr_starts *x)
{
  return x->order ? x->ordered : x->count;
}
static inline int64_t wr_starts_at(const wr_starts *x, size_t place)
{
  return x->order ? (int64_t)x->order[place] : (int64_t)place;
}

#endif
