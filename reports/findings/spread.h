/* spread.h: how what is saved is spread over the operations of a place, so that a few which the
 * machine's other work has stretched do not stand for all: one call that was interrupted can be
 * nine tenths of a sum. */
#ifndef WEIR_REPORTS_SPREAD_H
#define WEIR_REPORTS_SPREAD_H

#include <stdbool.h>
#include <stdint.h>

enum {
  WR_SPREAD_BUCKETS = 128, /* four for each doubling, from 64 ns on */
  WR_SPREAD_LEAST = 8,     /* operations, of fewer none is set apart */
  WR_SPREAD_TIMES = 8,     /* the median: what takes longer may be set apart */
  WR_SPREAD_STARVED = 2    /* the same, of a run that waited for processors */
};

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

/* False: out of memory. */
bool wr_spread_add(wr_spread *s, uint64_t ns, uint64_t bytes);

/* At most one operation in a hundred, or one of fewer, that took WR_SPREAD_TIMES the median and
 * longer while it moved no more than the others do; none where there are more, which is then how
 * long they take. `starved`: ns that threads of the run waited for a processor, which the machine's
 * other work had: where the slowest together took no longer than that beyond the median, these are
 * set apart as well, from WR_SPREAD_STARVED the median on, however many there are. */
wr_slow wr_spread_slow(const wr_spread *s, uint64_t starved);
void wr_spread_free(wr_spread *s);

#endif
