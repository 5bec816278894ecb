/* spread.h: how what is saved is spread over the operations of a place, so that a few which the
 * machine's other work has stretched do not stand for all: one call that was interrupted can be
 * nine tenths of a sum. */
#ifndef WEIR_REPORTS_SPREAD_H
#define WEIR_REPORTS_SPREAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

enum {
  WR_SPREAD_BUCKETS = 128, /* WR_SPREAD_PARTS for each doubling, */
  WR_SPREAD_PARTS = 4,
  WR_SPREAD_FIRST = 6,  /* from 64 ns on */
  WR_SPREAD_LEAST = 8,  /* operations, of fewer none is set apart */
  WR_SPREAD_TIMES = 8,  /* the median: what takes longer may be set apart */
  WR_SPREAD_STARVED = 2 /* the same, of a run that waited for processors */
};

#define WR_SPREAD_MOST_NS (UINT64_C(1) << 36) /* 69 s: no sum of a rule's rows runs over */

typedef struct wr_spread_bucket {
  uint64_t count, ns, bytes;
} wr_spread_bucket;

/* Zero-initialised it has no operations. */
typedef struct wr_spread {
  uint64_t count;
  wr_spread_bucket *bucket; /* owned; NULL: none yet */
} wr_spread;

/* The operations that were set apart. */
typedef struct wr_slow {
  uint64_t count, ns;     /* of theirs beyond what the median of all would be */
  uint64_t least, median; /* what each took at least; what it is taken for */
} wr_slow;

static inline size_t wr_spread_bucket_of(uint64_t ns)
{
  if (ns >> WR_SPREAD_FIRST == 0) return 0;
  const unsigned bit = 63 - (unsigned)__builtin_clzll(ns);
  size_t at =
      (bit - WR_SPREAD_FIRST) * WR_SPREAD_PARTS + (ns >> (bit - 2) & (WR_SPREAD_PARTS - 1)) + 1;
  return at < WR_SPREAD_BUCKETS ? at : WR_SPREAD_BUCKETS - 1;
}

/* False: out of memory. */
static inline bool wr_spread_add(wr_spread *s, uint64_t ns, uint64_t bytes)
{
  const uint64_t most = WR_SPREAD_MOST_NS;
  if (!s->bucket) s->bucket = calloc(WR_SPREAD_BUCKETS, sizeof(*s->bucket));
  if (!s->bucket) return false;
  if (ns > most) ns = most;
  wr_spread_bucket *b = &s->bucket[wr_spread_bucket_of(ns)];
  s->count++, b->count++;
  b->ns += ns, b->bytes += bytes < most ? bytes : most;
  return true;
}

/* At most one operation in a hundred, or one of fewer, that took WR_SPREAD_TIMES the median and
 * longer while it moved no more than the others do; none where there are more, which is then how
 * long they take. `starved`: ns that threads of the run waited for a processor, which the machine's
 * other work had: where the slowest together took no longer than that beyond the median, these are
 * set apart as well, from WR_SPREAD_STARVED the median on, however many there are. */
wr_slow wr_spread_slow(const wr_spread *s, uint64_t starved);
void wr_spread_free(wr_spread *s);

#endif
