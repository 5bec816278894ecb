/* spread.c: see spread.h. */
#include "reports/findings/spread.h"
#include <stdlib.h>

/* The least ns of a bucket. */
static uint64_t bucket_begin(size_t at)
{
  size_t bit = (at - 1) / WR_SPREAD_PARTS + WR_SPREAD_FIRST;
  return at ? (WR_SPREAD_PARTS + (at - 1) % WR_SPREAD_PARTS) << (bit - 2) : 0;
}

/* The bucket with the median. */
static size_t median_of(const wr_spread *s)
{
  uint64_t before = 0;
  size_t at = 0;
  while (at + 1 < WR_SPREAD_BUCKETS && (before += s->bucket[at].count) * 2 < s->count)
    at++;
  return at;
}

/* Those from so many times the median on, that moved no more than the others do. */
static wr_slow slow_from(const wr_spread *s, uint64_t median, uint64_t times)
{
  wr_slow slow = {.median = median};
  uint64_t bytes = 0, slow_bytes = 0, ns = 0;
  for (size_t i = 0; i < WR_SPREAD_BUCKETS; i++) {
    const wr_spread_bucket *b = &s->bucket[i];
    if (!b->count) continue;
    uint64_t mean = b->ns / b->count;
    bool apart = mean > median && mean / times >= median;
    *(apart ? &slow_bytes : &bytes) += b->bytes;
    if (apart && !slow.count) slow.least = bucket_begin(i);
    if (apart) slow.count += b->count, ns += b->ns;
  }
  bool large = slow.count && slow_bytes / slow.count > 2 * (bytes / (s->count - slow.count) + 1);
  if (!slow.count || large) return (wr_slow){0};
  slow.ns = ns - slow.count * median;
  return slow;
}

wr_slow wr_spread_slow(const wr_spread *s, uint64_t starved)
{
  if (s->count < WR_SPREAD_LEAST) return (wr_slow){0};
  const wr_spread_bucket *middle = &s->bucket[median_of(s)];
  uint64_t median = middle->ns / middle->count, most = s->count < 200 ? 1 : s->count / 100;
  for (uint64_t times = WR_SPREAD_STARVED; starved && times < WR_SPREAD_TIMES; times++) {
    wr_slow slow = slow_from(s, median, times);
    if (slow.count && slow.ns <= starved) return slow;
  }
  wr_slow slow = slow_from(s, median, WR_SPREAD_TIMES);
  return slow.count <= most || (starved && slow.ns <= starved) ? slow : (wr_slow){0};
}

void wr_spread_free(wr_spread *s)
{
  free(s->bucket);
  *s = (wr_spread){0};
}
