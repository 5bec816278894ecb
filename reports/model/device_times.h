/* device_times.h: what devices did and when, where that was observed (`weir run --device-times`).
 *
 * Times are of the device, not of the host's calls. Time in which operations overlap counts once in
 * each sum but the operations' own. */
#ifndef WEIR_REPORTS_DEVICE_TIMES_H
#define WEIR_REPORTS_DEVICE_TIMES_H

#include "reports/import/schema.h"
#include "reports/queues/sweep.h"
#include "reports/model/wait_log.h"
#include "reports/base/util.h"

/* What is summed up by itself: identifier, name in JSON, words. */
#define WR_WORK_MAP(X)                                                                             \
  X(OTHER_COPY, "other_copy", "other copies")                                                      \
  X(H2D, "h2d", "host → device")                                                                   \
  X(D2H, "d2h", "device → host")                                                                   \
  X(D2D, "d2d", "device → device")                                                                 \
  X(P2P, "p2p", "peer → peer")                                                                     \
  X(MEMSET, "memset", "memset")                                                                    \
  X(KERNEL, "kernel", "kernels")                                                                   \
  X(GRAPH, "graph", "graphs")

typedef enum wr_work {
#define WR_WORK_ENUM(id, name, words) WR_WORK_##id,
  WR_WORK_MAP(WR_WORK_ENUM)
#undef WR_WORK_ENUM
      WR_WORKS
} wr_work;

typedef struct wr_work_sum {
  uint64_t operations, timed, bytes, timed_bytes; /* timed: with times */
  uint64_t busy_ns;                               /* at least one was under way */
} wr_work_sum;

/* Idle time of one cause, in one function; and a time in which the device was idle. */
typedef struct wr_idle_part {
  wr_idle_cause cause;
  char *function; /* owned; NULL: the cause has none, or it is not known */
  uint64_t ns;
} wr_idle_part;

typedef struct wr_idle_gap {
  int64_t start, end;
  uint64_t ns[WR_IDLE_CAUSES];
  char *function; /* owned; in which the host was the longest of it, or NULL */
} wr_idle_gap;

enum { WR_GAPS = 5 /* the longest that are kept */ };

typedef struct wr_device_time {
  int device;
  wr_work_sum work[WR_WORKS];
  uint64_t span_ns; /* from the first operation's start to the last one's end */
  uint64_t busy_ns, copy_ns, kernel_ns, overlap_ns; /* any; copies; kernels; both at once */
  wr_idle_part *idle;                               /* owned; the largest first */
  size_t idle_count, idle_capacity;
  uint64_t full_ns;         /* that calls waited for room in its queues, or seem to have */
  char *full_function;      /* owned; in which the most, or NULL */
  wr_idle_gap gap[WR_GAPS]; /* the longest first */
  size_t gap_count;
} wr_device_time;

typedef struct wr_device_times {
  wr_device_time *device; /* owned; by ordinal */
  size_t count;
  char *observed, *unavailable;          /* owned, or NULL: what by which CUPTI; why it was not */
  uint64_t yields, yielded_ns;           /* to clients in programs */
  uint64_t dropped, untimed, incomplete; /* operations; processes whose last are not there */
  uint64_t lost_calls; /* of these processes: calls none of whose operations is there */
  uint64_t unmatched;  /* operations of no event */
  bool no_kernels;     /* a process had but its copies observed */
} wr_device_times;

/* A trace from before there were device times has none. */
weir_status wr_device_times_load(wr_device_times *t, const wr_db *db);

void wr_device_times_free(wr_device_times *t);

/* Of a run without device times, why, as "device times were ...", without a stop: it names the option
 * only where that was not given. Owned; NULL: out of memory. */
char *wr_device_times_none(const wr_device_times *t);

/* Of any run; *none is NULL where there are times, or else that text. */
weir_status wr_device_times_find_none(char **none, const wr_db *db);

/* Whether the run was asked for them. */
static inline bool wr_device_times_asked(const wr_device_times *t)
{
  return t->observed || t->unavailable || t->yields;
}

/* idle.c: why devices were idle, by the tables of a resolved trace, or temporary ones. */
weir_status wr_idle_load(wr_device_times *t, const wr_db *db);
void wr_idle_free(wr_device_time *d);

#endif
