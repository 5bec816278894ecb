/* address_set.c: see address_set.h. */
#include "reports/findings/address_set.h"
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

/* Of `near` the first from `at` on that overlaps; `nears`: none. */
static size_t find_near(const wr_ranges *r, const wr_range *wanted, size_t at)
{
  while (at < r->nears && by_range(&r->near[at], wanted))
    at++;
  return at;
}

static wr_range *find_far(const wr_ranges *r, const wr_range *wanted)
{
  void *at = r->root ? tfind(wanted, &r->root, by_range) : NULL;
  return at ? *(wr_range **)at : NULL;
}

const wr_range *wr_ranges_find(const wr_ranges *r, uint64_t begin, uint64_t bytes)
{
  if (!r->count) return NULL;
  wr_range wanted = range_of(begin, bytes);
  size_t at = find_near(r, &wanted, 0);
  return at < r->nears ? &r->near[at] : find_far(r, &wanted);
}

void wr_ranges_drop(wr_ranges *r, uint64_t begin, uint64_t bytes)
{
  if (!r->count) return;
  wr_range wanted = range_of(begin, bytes);
  for (size_t at = 0; (at = find_near(r, &wanted, at)) < r->nears; r->count--)
    r->near[at] = r->near[--r->nears];
  for (wr_range *far; (far = find_far(r, &wanted)) != NULL; r->count--) {
    (void)tdelete(far, &r->root, by_range);
    free(far);
  }
}

/* Makes room in `near`. */
static bool move_far(wr_ranges *r)
{
  while (r->nears) {
    wr_range *own = malloc(sizeof(*own));
    if (!own) return false;
    *own = r->near[r->nears - 1];
    if (!tsearch(own, &r->root, by_range)) {
      free(own);
      return false;
    }
    r->nears--;
  }
  return true;
}

bool wr_ranges_put(wr_ranges *r, uint64_t begin, uint64_t bytes, int64_t value)
{
  wr_ranges_drop(r, begin, bytes);
  if (!bytes) return true;
  if (r->nears == WR_RANGES_NEAR && !move_far(r)) return false;
  wr_range *own = &r->near[r->nears++];
  *own = range_of(begin, bytes);
  own->value = value;
  r->count++;
  return true;
}

const wr_range *wr_ranges_any(const wr_ranges *r)
{
  if (r->nears) return &r->near[0];
  return r->root ? *(wr_range **)r->root : NULL;
}

void wr_ranges_clear(wr_ranges *r)
{
  if (r->root) tdestroy(r->root, free);
  r->count = r->nears = 0;
  r->root = NULL;
}
