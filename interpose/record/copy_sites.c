/* copy_sites.c: see copy_sites.h. */
#include "interpose/record/copy_sites.h"

copy_watcher *copies_watched_by;
copy_place copy_places[COPY_SITES];

static copy_span all_unseen; /* around all of them: most questions are answered by it */

static void raise_bound(_Atomic uint64_t *bound, uint64_t to)
{
  uint64_t was = atomic_load(bound);
  while (was < to && !atomic_compare_exchange_weak(bound, &was, to)) {
  }
}

static void widen_span(copy_span *s, uint64_t low, uint64_t high)
{
  raise_bound(&s->above, ~low);
  raise_bound(&s->high, high);
}

void copy_goes_unseen(unsigned site, uint64_t at, uint64_t bytes)
{
  widen_span(&all_unseen, at, at + bytes);
  widen_span(&copy_places[site].unseen, at, at + bytes);
}

static bool span_overlaps(const copy_span *s, uint64_t at, uint64_t bytes)
{
  return at < atomic_load(&s->high) && ~atomic_load(&s->above) < at + bytes;
}

bool copy_unseen_may_write(uint64_t at, uint64_t bytes)
{
  if (!span_overlaps(&all_unseen, at, bytes)) return false;
  for (unsigned i = 0; i < COPY_SITES; i++)
    if (span_overlaps(&copy_places[i].unseen, at, bytes)) return true;
  return false;
}
