/* starts.c: see starts.h. */
#include "reports/findings/starts.h"
#include <stdlib.h>

bool wr_starts_open(wr_starts *x, int64_t last)
{
  *x = (wr_starts){0};
  if (last < 1 || last >= WR_STARTS_MOST) return true;
  x->count = (size_t)last + 1;
  x->first = calloc(x->count / WR_STARTS_TOGETHER + 1, sizeof(*x->first));
  x->from = calloc(x->count, sizeof(*x->from));
  return x->first && x->from;
}

void wr_starts_close(wr_starts *x)
{
  free(x->first);
  free(x->from);
  *x = (wr_starts){0};
}

bool wr_starts_find(const wr_starts *x, int64_t event, int64_t *start)
{
  if ((uint64_t)event >= x->count || !x->from[event]) return false;
  *start = x->first[event / WR_STARTS_TOGETHER] + (int64_t)(x->from[event] - 1);
  return true;
}
