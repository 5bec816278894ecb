/* ranges.h: what a program did within its ranges (NVTX), by domain and text.
 *
 * A call counts for every range that its thread had pushed, once for each name: sums of a name hold
 * what is nested in its ranges, of other names too. Calls that count are totals' (succeeded and not
 * captured). What a launch of a graph ran counts where the launch is, and is no call. */
#ifndef WEIR_REPORTS_MODEL_RANGES_H
#define WEIR_REPORTS_MODEL_RANGES_H

#include "reports/base/util.h"
#include "reports/import/schema.h"
#include "reports/model/first.h"

typedef struct wr_range_sum {
  char *domain, *text; /* owned; "" the default domain */
  uint64_t ranges, ns; /* how many; their time, of nested ones of the same name only the outer */
  uint64_t open;       /* of them, never ended */
  uint64_t hashing_ns; /* of Weir's own within them (--hash), which `ns` is less */
  uint64_t calls, copies, copy_bytes, waits, wait_ns, launches, allocs, alloc_bytes;
  uint64_t device_ns; /* that devices took for what was called within, each operation's summed */
  uint64_t live_bytes, peak_bytes; /* device-side, allocated within: now, while summing; the most */
  uint64_t seen;                   /* the last pass over a chain of ranges that met it */
} wr_range_sum;

typedef struct wr_named_ranges {
  wr_range_sum *sum; /* owned; the longest first */
  size_t count;
  bool device_times; /* some of the work has any */
} wr_named_ranges;

/* `firsts`: of the whole trace; `end`: its last moment. A trace from before there were ranges has
 * none. */
weir_status wr_ranges_load(wr_named_ranges *r, const wr_db *db, const wr_firsts *firsts,
                           int64_t end);
void wr_ranges_free(wr_named_ranges *r);

#endif
