/* metrics.h: what two traces are compared by, and what a budget limits: one table for both.
 *
 * A metric has a unit and is known of some *subjects*: the run, a device, a site (a function of the
 * program and its file), an NVTX range. Its values are those of `weir report --format json` and
 * `weir report findings --format json`, or sums of them; README.md says of which. */
#ifndef WEIR_REPORTS_METRICS_H
#define WEIR_REPORTS_METRICS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum wr_unit { WR_UNIT_BYTES, WR_UNIT_COUNT, WR_UNIT_TIME /* host time, ns */ } wr_unit;

/* Whose a metric is: R the run's, D a device's, S a site's, N a range's. */
enum { WR_OF_RUN = 1, WR_OF_DEVICE = 2, WR_OF_SITE = 4, WR_OF_RANGE = 8 };

/* clang-format off */
#define WR_METRIC_MAP(X)                                                                           \
  X(PEAK, "peak", "peak_bytes", BYTES, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE | WR_OF_RANGE)        \
  X(PINNED_PEAK, "peak.pinned", "pinned_peak_bytes", BYTES, WR_OF_RUN)                             \
  X(LEAK_BYTES, "leaks.bytes", "live_at_exit_bytes", BYTES, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE) \
  X(LEAKS, "leaks.count", "live_at_exit_blocks", COUNT, WR_OF_RUN | WR_OF_SITE)                    \
  X(PINNED_LEAK_BYTES, "leaks.pinned.bytes", "pinned_live_at_exit_bytes", BYTES, WR_OF_RUN)        \
  X(ALLOCS, "allocations.count", "alloc_calls", COUNT,                                             \
    WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE | WR_OF_RANGE)                                           \
  X(ALLOC_BYTES, "allocations.bytes", "alloc_bytes", BYTES,                                        \
    WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE | WR_OF_RANGE)                                           \
  X(COPIES, "transfers.count", "copies", COUNT, WR_OF_RUN | WR_OF_SITE | WR_OF_RANGE)              \
  X(COPY_BYTES, "transfers.bytes", "copy_bytes", BYTES, WR_OF_RUN | WR_OF_SITE | WR_OF_RANGE)      \
  X(H2D, "transfers.h2d.count", "h2d_calls", COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)         \
  X(H2D_BYTES, "transfers.h2d.bytes", "h2d_bytes", BYTES, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)   \
  X(D2H, "transfers.d2h.count", "d2h_calls", COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)         \
  X(D2H_BYTES, "transfers.d2h.bytes", "d2h_bytes", BYTES, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)   \
  X(D2D, "transfers.d2d.count", "d2d_calls", COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)         \
  X(D2D_BYTES, "transfers.d2d.bytes", "d2d_bytes", BYTES, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)   \
  X(P2P, "transfers.p2p.count", "p2p_calls", COUNT, WR_OF_RUN | WR_OF_SITE)                        \
  X(P2P_BYTES, "transfers.p2p.bytes", "p2p_bytes", BYTES, WR_OF_RUN | WR_OF_SITE)                  \
  X(H2H, "transfers.h2h.count", "h2h_calls", COUNT, WR_OF_RUN | WR_OF_SITE)                        \
  X(H2H_BYTES, "transfers.h2h.bytes", "h2h_bytes", BYTES, WR_OF_RUN | WR_OF_SITE)                  \
  X(PAGEABLE, "transfers.pageable.count", NULL, COUNT, WR_OF_RUN | WR_OF_SITE)                     \
  X(PAGEABLE_BYTES, "transfers.pageable.bytes", NULL, BYTES, WR_OF_RUN | WR_OF_SITE)               \
  X(MEMSETS, "memsets.count", "memset_calls", COUNT, WR_OF_RUN | WR_OF_DEVICE)                     \
  X(MEMSET_BYTES, "memsets.bytes", "memset_bytes", BYTES, WR_OF_RUN | WR_OF_DEVICE)                \
  X(WAITS, "waits.count", "waits", COUNT, WR_OF_RUN | WR_OF_SITE | WR_OF_RANGE)                    \
  X(WAIT_TIME, "waits.time", "wait_host_ns", TIME, WR_OF_RUN | WR_OF_SITE | WR_OF_RANGE)           \
  X(EXPLICIT, "waits.explicit.count", "sync_explicit_calls", COUNT, WR_OF_RUN | WR_OF_DEVICE)      \
  X(EXPLICIT_TIME, "waits.explicit.time", "sync_explicit_ns", TIME, WR_OF_RUN | WR_OF_DEVICE)      \
  X(IMPLICIT, "waits.implicit.count", "sync_implicit_calls", COUNT, WR_OF_RUN)                     \
  X(IMPLICIT_TIME, "waits.implicit.time", "sync_implicit_ns", TIME, WR_OF_RUN)                     \
  X(REDUNDANT, "waits.redundant.count", "redundant_calls", COUNT, WR_OF_RUN | WR_OF_SITE)          \
  X(REDUNDANT_TIME, "waits.redundant.time", "redundant_host_ns", TIME, WR_OF_RUN | WR_OF_SITE)     \
  X(WIDER, "waits.wider.count", "wider_calls", COUNT, WR_OF_RUN | WR_OF_SITE)                      \
  X(WIDER_TIME, "waits.wider.time", "wider_host_ns", TIME, WR_OF_RUN | WR_OF_SITE)                 \
  X(LAUNCHES, "launches.count", "launches", COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_RANGE)         \
  X(CACHE_HITS, "cache.hits.count", "cache.hits", COUNT, WR_OF_RUN)                                \
  X(CACHE_MISSES, "cache.misses.count", "cache.misses", COUNT, WR_OF_RUN)                          \
  X(CACHE_HELD, "cache.held.bytes", "cache.held_peak_bytes", BYTES, WR_OF_RUN)                     \
  X(CERTAIN, "finding:certain", NULL, COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)                \
  X(LIKELY, "finding:likely", NULL, COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)                  \
  X(POSSIBLE, "finding:possible", NULL, COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)              \
  X(FINDINGS, "findings.count", "findings", COUNT, WR_OF_RUN | WR_OF_DEVICE | WR_OF_SITE)          \
  X(DURATION, "duration", "duration_ns", TIME, WR_OF_RUN | WR_OF_RANGE)                            \
  X(ERRORS, "errors.count", "failed_calls", COUNT, WR_OF_RUN)                                      \
  X(DROPPED, "dropped.count", "dropped", COUNT, WR_OF_RUN)
/* clang-format on */

#define WR_METRIC_ID(id, name, member, unit, of) WR_METRIC_##id,
typedef enum wr_metric { WR_METRIC_MAP(WR_METRIC_ID) WR_METRICS } wr_metric;
#undef WR_METRIC_ID

typedef struct wr_metric_row {
  const char *name;
  const char *member; /* what JSON of reports calls it; NULL: it has no such member */
  wr_unit unit;
  int of; /* WR_OF_*, of which it is known */
} wr_metric_row;

extern const wr_metric_row wr_metric_rows[WR_METRICS];

/* The metric of this name, or whose member that is, where ".bytes", ".count" or ".time" may be
 * missing: the first of these that there is. False: there is none. */
bool wr_metric_find(const char *name, size_t bytes, wr_metric *out);

/* It counts findings, which take time to look for. */
bool wr_metric_is_of_findings(wr_metric m);

#endif
