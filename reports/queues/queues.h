/* queues.h: a model of CUDA's streams: what each wait of the host had to wait for.
 *
 * It is fed with a trace's calls in order of time and follows what CUDA's documentation states of
 * them ("Stream synchronization behavior" and "API synchronization behavior" in the runtime's and
 * the driver's manual, the pages of the functions, "Implicit Synchronization" in the programming
 * guide). It knows of no device: an operation is *pending* from its call on until a wait or a
 * query has shown that it is complete. So what is reported as complete surely was, and what is
 * reported as pending may have been complete too: a wait is *redundant* where nothing can have
 * been pending.
 *
 * Where the documentation leaves it open, or calls of two threads overlap, both readings hold:
 * what may be waited for is pending, and what may not have been waited for stays so. A process of
 * which calls are missing (dropped events, a damaged spool) is not judged; nor is a wait for what
 * was not seen: an event of another process's, one recorded inside a graph.
 *
 * Words: work: what a device has to do: kernels, copies, memsets, host functions, graphs, memory
 * taken and given in stream order. Records and waits of events are none. */
#ifndef WEIR_REPORTS_QUEUES_H
#define WEIR_REPORTS_QUEUES_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "reports/queues/points.h"

typedef enum wr_act {
  WR_ACT_NONE,
  WR_ACT_WORK,           /* in `stream`, `handle`: bytes it moves or sets */
  WR_ACT_PEER_WORK,      /* and all later work of the process's may wait for it, and it for all */
  WR_ACT_RECORD,         /* event `handle` in `stream` */
  WR_ACT_RECORD_CONTEXT, /* event `handle`: all of the context */
  WR_ACT_STREAM_WAIT,    /* `stream` for event `handle` */
  WR_ACT_CONTEXT_WAIT,   /* all of the context for an event */
  WR_ACT_SYNC_EVENT,
  WR_ACT_SYNC_STREAM,
  WR_ACT_SYNC_CONTEXT,
  WR_ACT_EVENT_DONE,  /* a query of event `handle` answered that it is complete */
  WR_ACT_STREAM_DONE, /* a query of `stream` */
  WR_ACT_FREE,        /* that may wait for the device */
  WR_ACT_STREAM_CREATE,
  WR_ACT_STREAM_DESTROY,
  WR_ACT_EVENT_CREATE,
  WR_ACT_EVENT_DESTROY,
  WR_ACT_EVENTS_UNSEEN, /* graphs of the process may record events */
  WR_ACT_RESET_DEVICE,
  WR_ACT_RESET_CONTEXT
} wr_act;

enum {                           /* wr_queue_call.how */
       WR_HOW_WAITS = 1,         /* work: the host may wait in it */
       WR_HOW_WAITS_BEFORE = 2,  /* it returns after the stream's earlier work */
       WR_HOW_WAITS_ALL = 4,     /* it returns when the work is complete */
       WR_HOW_UNSURE = 8,        /* it may be no work at all: nothing is to be moved */
       WR_HOW_NON_BLOCKING = 16, /* a stream created so */
       WR_HOW_UNSEEN = 32,       /* an event of several processes, or recorded in a graph */
       WR_HOW_TIMED = 64,        /* work: when the device did it is known */
       WR_HOW_HOST_ONLY = 128    /* work that no device does: there is no such time */
};

enum {                     /* wr_queue_call.host, wr_wait_row.host */
       WR_HOST_RESULT = 1, /* work after which the host may have something to look at */
       WR_HOST_SOURCE = 2  /* work that reads host memory, which the host may change after it */
};

#define WR_QUEUE_LEGACY     UINT64_C(1) /* `stream`: default streams */
#define WR_QUEUE_PER_THREAD UINT64_C(2)

typedef struct wr_queue_call {
  int64_t id, start, end; /* row; ns */
  uint64_t stream, handle;
  int32_t process, thread; /* rows */
  uint32_t caller; /* calls of one number have the same process, thread, context, stream; 0: none */
  uint8_t act;     /* wr_act */
  uint8_t how;
  uint8_t context; /* number in the process; 0 unknown, 255 several */
  uint8_t device;
  uint8_t host; /* of work: WR_HOST_* */
} wr_queue_call;

enum { WR_NARROWER_NONE = 0, WR_NARROWER_STREAM = 3 /* as wait_kind */ };

/* What a call had to wait for in which the host waits, or may wait. */
typedef struct wr_wait_row {  /* of one that is not known all but the id is 0 */
  int64_t id;                 /* row of the call */
  uint64_t operations, bytes; /* of work that may have been pending; that they move or set */
  uint64_t stream;            /* handle of the one in which they are, else 0 */
  int64_t other;              /* pending: row of the operation that was called last; else of the
                                    wait or query that showed all to be complete before, 0: no work */
  uint32_t streams;           /* in which they are */
  bool known, pending;        /* pending: something it waits for may have been; else redundant */
  bool before_legacy;         /* pending: all of it comes before what the thread's context is
                                    given next in the legacy default stream */
  uint8_t narrower;           /* a wait_kind that had been enough: WR_NARROWER_* */
  uint8_t host;               /* WR_HOST_* of any of what may have been pending */
} wr_wait_row;

typedef struct wr_wait_verdict {
  wr_wait_row row; /* where it is not known, the id alone counts */
  const wr_queue_call *call;
  /* where somebody watches: */
  const wr_points *points; /* known: what may have been pending */
  uint32_t own_queue;      /* from 1: the call is work as well, there; 0: it is none */
  uint64_t own_number;     /* of its operation */
} wr_wait_verdict;

typedef struct wr_queues wr_queues;

typedef weir_status (*wr_verdict_fn)(void *context, const wr_wait_verdict *verdict);

/* Who follows the queues themselves: operation `number` of a queue was called for; a queue is
 * complete up to a number, as was known at that time. */
typedef struct wr_queue_watch {
  void (*work)(void *context, const wr_queue_call *call, uint32_t queue, uint64_t number);
  void (*done)(void *context, uint32_t queue, uint64_t number, int64_t time);
  void *context;
} wr_queue_watch;

/* New; NULL: out of memory. */
wr_queues *wr_queues_open(wr_verdict_fn verdict, void *context);
void wr_queues_close(wr_queues *m);

/* `watch` is borrowed; NULL: nothing watches. */
void wr_queues_watch(wr_queues *m, const wr_queue_watch *watch);

/* Ordinal of the device that a queue is of; 255 not known. */
uint8_t wr_queues_device(const wr_queues *m, uint32_t queue);

/* Its calls before some time are missing: a wait for what no call before it was for may have been
 * for work of those. Returns false: out of memory. */
bool wr_queues_cut(wr_queues *m, int64_t process);

/* Calls of that process are missing: none of its waits is judged. Before its first call. */
bool wr_queues_incomplete(wr_queues *m, int64_t process);

/* Takes the next call, in order of start and row; `verdict` is called for those that wait.
 * Errors: ENOMEM, those of `verdict`. */
weir_status wr_queues_take(wr_queues *m, const wr_queue_call *c);

#endif
