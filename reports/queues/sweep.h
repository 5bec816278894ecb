/* sweep.h: what devices did while the host waited, and what the host did while a device was idle.
 *
 * It is fed with moments in order of time: calls, waits with what they wait for (queues.h), and
 * what devices did by their own clocks. Between two moments nothing changes, and the time that
 * lies there is added where it counts. So the parts of a wait are its duration exactly, and the
 * causes of a device's idle time are that time exactly: from the start of its first operation to
 * the end of its last one, less what is busy.
 *
 * Devices are distinguished by ordinal, over all processes. Work of which the device's times are
 * not known (an *untimed* operation: not observed, lost, without usable times) may be under way
 * from its call until a wait showed that it is complete, or a later operation of its queue has
 * begun: of that time it is not known that a device did nothing. */
#ifndef WEIR_REPORTS_SWEEP_H
#define WEIR_REPORTS_SWEEP_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

typedef enum wr_sweep_moment_kind {
  WR_MOMENT_CALL,          /* [time, end): the host is in a call of `api` */
  WR_MOMENT_WAITING_CALL,  /* and waits there */
  WR_MOMENT_QUEUEING_CALL, /* and puts work into a queue */
  WR_MOMENT_WAIT,          /* wait `id`, [time, end): for `queue` up to `number`; one a queue */
  WR_MOMENT_WORK,    /* [time, end): a device does operation `number`; `id`: row of device_work */
  WR_MOMENT_QUEUED,  /* [time, end): the operation is called for, and has not begun */
  WR_MOMENT_UNTIMED, /* operation `number` is called for, and has no device times */
  WR_MOMENT_DONE     /* a queue is complete up to `number` */
} wr_sweep_moment_kind;

#define WR_NO_QUEUE UINT32_MAX /* WAIT: for nothing; WORK: of no known call */

typedef struct wr_sweep_moment {
  int64_t id, time, end; /* ns */
  uint64_t number;
  uint32_t queue;
  uint16_t api;
  uint8_t device; /* ordinal; 255 not known */
  uint8_t kind;   /* wr_sweep_moment_kind */
} wr_sweep_moment;

/* How the time of a wait divides; the parts add up to its duration. */
typedef struct wr_wait_time {
  int64_t id;
  uint64_t working; /* a device did what was waited for */
  uint64_t other;   /* not that, but other work on the wait's devices */
  uint64_t idle;    /* nothing */
  uint64_t unknown;
} wr_wait_time;

/* Why a device was idle, the first that holds: identifier, name. Append only. */
#define WR_IDLE_MAP(X)                                                                             \
  X(UNKNOWN, 0, "unknown")          /* untimed work may have been under way */                     \
  X(QUEUED, 1, "queued")            /* work was called for and had not begun */                    \
  X(WAITING, 2, "host_waiting")     /* a thread waited, in a function */                           \
  X(ELSEWHERE, 3, "host_elsewhere") /* a thread was in another function */                         \
  X(NO_CALL, 4, "no_call")          /* no thread was in any */                                     \
  X(FULL, 5, "queue_full") /* checked before ELSEWHERE: it put work into one, and one was full */

typedef enum wr_idle_cause {
#define WR_IDLE_ENUM(id, value, name) WR_IDLE_##id = value,
  WR_IDLE_MAP(WR_IDLE_ENUM)
#undef WR_IDLE_ENUM
      WR_IDLE_CAUSES
} wr_idle_cause;

typedef struct wr_gap { /* a time in which a device was idle; the parts add up to it */
  int device;
  int64_t start, end;
  uint64_t ns[WR_IDLE_CAUSES];
  uint32_t api; /* in which function it was the longest; 0: in none, or that is not why */
  int64_t work; /* row of the operation that ended it */
} wr_gap;

/* Sums over a device's gaps: of one cause, in one function (0: the cause has none). */
typedef struct wr_idle_sum {
  int device;
  wr_idle_cause cause;
  uint32_t api;
  uint64_t ns;
} wr_idle_sum;

/* Time in which a device had a queue that was full, and a thread was in a function that puts work
 * into one. A queue is *full* that has many operations which have not begun: such calls wait for
 * room in it. */
typedef struct wr_full_sum {
  int device;
  uint32_t api;
  uint64_t ns;
} wr_full_sum;

typedef struct wr_sweep_taker {
  weir_status (*wait)(void *context, const wr_wait_time *wait);
  weir_status (*gap)(void *context, const wr_gap *gap);
  weir_status (*idle)(void *context, const wr_idle_sum *sum); /* at the end, by device */
  weir_status (*full)(void *context, const wr_full_sum *sum); /* at the end, by device */
  void *context;
} wr_sweep_taker;

enum {
  WR_SWEEP_WAITS = 512, /* at once; more are not known */
  WR_SWEEP_WORKS = 1024 /* operations at once; of more it is not known what was waited for */
};

typedef struct wr_sweep wr_sweep;

/* New; `apis`: functions there are; `room`: operations of which a queue is full. NULL: out of
 * memory. */
wr_sweep *wr_sweep_open(const wr_sweep_taker *taker, uint32_t apis, uint32_t room);
void wr_sweep_close(wr_sweep *s);

/* Takes the next moment, in order of time. Errors: ENOMEM, those of the taker. */
weir_status wr_sweep_take(wr_sweep *s, const wr_sweep_moment *m);

/* There are no more. */
weir_status wr_sweep_finish(wr_sweep *s);

#endif
