/* starts.c: see starts.h. */
#include "reports/findings/starts.h"
#include <stdlib.h>

enum { TOGETHER = 64 /* events that have one `first` */ };

bool wr_starts_open(wr_starts *x, int64_t last)
{
  *x = (wr_starts){0};
  if (last < 1 || last >= WR_STARTS_MOST) return true;
  x->count = (size_t)last + 1;
  x->first = calloc(x->count / TOGETHER + 1, sizeof(*x->first));
  x->from = calloc(x->count, sizeof(*x->from));
  return x->first && x->from;
}

void wr_starts_close(wr_starts *x)
{
  free(x->first);
  free(x->from);
  *x = (wr_starts){0};
}

/* The first that comes is the earliest; 0: none has come. What began at 0 or before is looked
 * for elsewhere. */
void wr_starts_add(wr_starts *x, int64_t event, int64_t start)
{
  if ((uint64_t)event >= x->count || start <= 0) return;
  int64_t *first = &x->first[event / TOGETHER];
  if (!*first) *first = start;
  uint64_t from = (uint64_t)start - (uint64_t)*first + 1;
  if (from <= UINT32_MAX) x->from[event] = (uint32_t)from;
}

bool wr_starts_find(const wr_starts *x, int64_t event, int64_t *start)
{
  if ((uint64_t)event >= x->count || !x->from[event]) return false;
  *start = x->first[event / TOGETHER] + (int64_t)(x->from[event] - 1);
  return true;
}
