/* spread.c: see spread.h. */
#include "reports/findings/spread.h"
#include <stdlib.h>

enum { FIRST_BIT = 6, PARTS = 4 };
#define MOST_NS (UINT64_C(1) << 36) /* 69 s: no sum of a rule's rows runs over */

static size_t bucket_of(uint64_t ns)
{
  if (ns >> FIRST_BIT == 0) return 0;
  unsigned bit = 63 - (unsigned)__builtin_clzll(ns);
  size_t at = (bit - FIRST_BIT) * PARTS + (ns >> (bit - 2) & (PARTS - 1)) + 1;
  return at < WR_SPREAD_BUCKETS ? at : WR_SPREAD_BUCKETS - 1;
}

bool wr_spread_add(wr_spread *s, uint64_t ns, uint64_t bytes)
{
  if (!s->bucket) s->bucket = calloc(WR_SPREAD_BUCKETS, sizeof(*s->bucket));
  if (!s->bucket) return false;
  if (ns > MOST_NS) ns = MOST_NS;
  wr_spread_bucket *b = &s->bucket[bucket_of(ns)];
  s->count++, b->count++;
  b->ns += ns, b->bytes += bytes < MOST_NS ? bytes : MOST_NS;
  return true;
}

/* The least ns of a bucket. */
static uint64_t bucket_begin(size_t at)
{
  size_t bit = (at - 1) / PARTS + FIRST_BIT;
  return at ? (PARTS + (at - 1) % PARTS) << (bit - 2) : 0;
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
