/* activity.h: what a run did, summed up once for all reports in tables.
 *
 * One pass over the events adds what is in the scope to *cells*: all that is alike in what a
 * template says (function, stack, stream, thread, device, memory, ...), and in the range where
 * ranges are asked for. There are few of them, so that grouping by anything costs next to nothing.
 * What counts is what the summary counts (SCHEMA.md, "What the report counts"), by the same rules:
 * a test compares the two. What launches of graphs ran is in cells of its own, of the launch's
 * place. */
#ifndef WEIR_REPORTS_ACTIVITY_H
#define WEIR_REPORTS_ACTIVITY_H

#include "core/base/map.h"
#include "reports/events/events.h"
#include "reports/import/schema.h"
#include "reports/tables/scope.h"

/* clang-format off */
/* Sums, by name. Host time is the calls'; `timed`, of copies: calls that last until the copy is
 * done. */
#define WR_ACTIVITY_MAP(X)                                                                         \
  X(calls) X(bytes) X(host_ns) X(async_calls)                                                      \
  X(timed_bytes) X(timed_ns)                                                                       \
  X(device_operations) X(device_bytes) X(device_ns)                                                \
  X(explicit_calls) X(explicit_ns) X(implicit_calls) X(implicit_ns)                                \
  X(redundant_calls) X(redundant_ns) X(wider_calls) X(wider_ns)                                    \
  X(working_ns) X(other_ns) X(idle_ns) X(unknown_ns)
/* clang-format on */

#define WR_ACTIVITY_FIELD(name) uint64_t name;
typedef struct wr_activity_sums {
  WR_ACTIVITY_MAP(WR_ACTIVITY_FIELD)
  uint64_t longest_ns;           /* a wait */
  double best_host, best_device; /* bytes per ns of a single copy of 1 MiB or more */
} wr_activity_sums;
#undef WR_ACTIVITY_FIELD

typedef struct wr_activity_cell {
  wr_template
      common;    /* of the call; of what a graph ran kind, copy, memory, devices are the node's */
  int64_t range; /* row of range_name, 0 none */
  bool graph;
  wr_activity_sums sums;
} wr_activity_cell;

typedef struct wr_long_wait {
  wr_template common;
  int64_t start;
  uint64_t ns;
  bool implicit;
} wr_long_wait;

enum { WR_DIRECTIONS = 6, WR_SIZES = 65 /* 0, then by powers of two */ };

typedef struct wr_activity {
  wr_activity_cell *cell; /* owned */
  size_t count, capacity;
  uint64_t size_calls[WR_DIRECTIONS][WR_SIZES], size_bytes[WR_DIRECTIONS][WR_SIZES];
  wr_long_wait *wait; /* owned; the longest first */
  size_t waits, most_waits;
  uint64_t init_calls, init_ns;
  uint64_t unknown_launches; /* of graphs */
  uint64_t conditional; /* nodes in bodies of conditional nodes: how often they ran is not known */
  bool device_times;    /* some of it has any */
  bool judged, divided; /* waits; host time in them */
  uint64_t unjudged_calls; /* of which it is not known what they had to wait for */
} wr_activity;

typedef struct wr_activity_wants {
  bool ranges; /* cells by range */
  bool waits;  /* what they had to wait for */
  int longest; /* single waits to keep */
} wr_activity_wants;

/* Of a trace of version 2. */
weir_status wr_activity_load(wr_activity *a, const wr_db *db, const wr_scope *scope,
                             const wr_activity_wants *wants);
void wr_activity_free(wr_activity *a);
void wr_activity_add(wr_activity_sums *to, const wr_activity_sums *from);

/* h2d, d2h, d2d, p2p, h2h, other: 0 to WR_DIRECTIONS - 1. */
int wr_direction_index(int64_t copy);
extern const char *const wr_direction_names[WR_DIRECTIONS];

/* Whether this connection has made a temporary table of that name. */
bool wr_temporary_table(const wr_db *db, const char *name);

#endif
