/* starts.c: see starts.h. */
#include "reports/findings/starts.h"
#include <stdlib.h>

bool wr_starts_open(wr_starts *x, int64_t last)
{
  *x = (wr_starts){.last = -1};
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
  free(x->order);
  *x = (wr_starts){0};
}

void wr_starts_begin_order(wr_starts *x)
{
  x->order = malloc((x->count + 1) * sizeof(*x->order)); /* one more is written, and not kept */
  if (!x->order) x->count = 0;
  for (int64_t event = 0; x->order && event <= x->last; event++)
    if (x->from[event]) x->order[x->ordered++] = (uint32_t)event;
}
