/* starts.h: when events began, by their numbers: what a walk in order of time has passed by.
 *
 * Events whose numbers are near each other began near each other, so that four bytes each are
 * enough: ns from the first of some dozens on. */
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
  int64_t *first; /* owned: of some events the earliest start */
  uint32_t *from; /* owned: of each event the ns from there, plus 1; 0: not known */
  size_t count;   /* of events, from number 0 */
} wr_starts;

/* Of events up to number `last`. False: out of memory. */
bool wr_starts_open(wr_starts *x, int64_t last);
void wr_starts_close(wr_starts *x);

/* Events come in order of their start: the first that comes is the earliest. What began at 0 or before is looked for
 * elsewhere. */
static inline void wr_starts_add(wr_starts *x, int64_t event, int64_t start)
{
  if ((uint64_t)event >= x->count || start <= 0) return;
  int64_t *first = &x->first[(uint64_t)event / WR_STARTS_TOGETHER];
  if (!*first) *first = start; /* 0: none has come */
  uint64_t from = (uint64_t)start - (uint64_t)*first + 1;
  if (from <= UINT32_MAX) x->from[event] = (uint32_t)from;
}

/* False: it is not known here. */
bool wr_starts_find(const wr_starts *x, int64_t event, int64_t *start);

#endif
