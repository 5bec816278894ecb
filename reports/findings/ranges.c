/* ranges.c: see ranges.h. */
#include "reports/findings/ranges.h"
#include <search.h>
#include <stdlib.h>

/* Ranges that overlap are the same to the tree: in it none do. */
static int by_range(const void *left, const void *right)
{
  const wr_range *a = left, *b = right;
  return a->end <= b->begin ? -1 : a->begin >= b->end;
}

static wr_range range_of(uint64_t begin, uint64_t bytes)
{
  wr_range r = {begin, begin + bytes < begin ? UINT64_MAX : begin + bytes, 0};
  if (r.end == begin) r.end += r.end != UINT64_MAX;
  return r;
}

const wr_range *wr_ranges_find(const wr_ranges *r, uint64_t begin, uint64_t bytes)
{
  wr_range wanted = range_of(begin, bytes);
  void *at = r->root ? tfind(&wanted, &r->root, by_range) : NULL;
  return at ? *(wr_range **)at : NULL;
}

void wr_ranges_drop(wr_ranges *r, uint64_t begin, uint64_t bytes)
{
  for (const wr_range *found; (found = wr_ranges_find(r, begin, bytes)) != NULL;) {
    (void)tdelete(found, &r->root, by_range);
    free((void *)found);
  }
}

bool wr_ranges_put(wr_ranges *r, uint64_t begin, uint64_t bytes, int64_t value)
{
  wr_ranges_drop(r, begin, bytes);
  if (!bytes) return true;
  wr_range *own = malloc(sizeof(*own));
  if (!own) return false;
  *own = range_of(begin, bytes);
  own->value = value;
  if (tsearch(own, &r->root, by_range)) return true;
  free(own);
  return false;
}

const wr_range *wr_ranges_any(const wr_ranges *r)
{
  return r->root ? *(wr_range **)r->root : NULL;
}

void wr_ranges_clear(wr_ranges *r)
{
  if (r->root) tdestroy(r->root, free);
  r->root = NULL;
}
