/* memory_log.h: the memory events of a trace in the order in which the program can have seen them.
 *
 * An allocation counts from its return, a free from its call. An importer keeps each as it takes
 * it (run_log.h); where there is no room, the rows are read.
 */
#ifndef WEIR_REPORTS_MEMORY_LOG_H
#define WEIR_REPORTS_MEMORY_LOG_H

#include "reports/import/run_log.h"
#include "reports/import/template.h"

enum { WR_NO_DEVICE = WEIR_DEVICE_NONE, WR_MEM_KINDS = 11 };

typedef struct wr_memory_event {
  int64_t id, time, pointer, bytes;
  int32_t process, thread; /* rows */
  uint8_t kind;            /* event_kind */
  uint8_t context;         /* number in the process */
  uint8_t mem;             /* memory_kind */
  uint8_t device;          /* WR_NO_DEVICE: none */
  int32_t work;            /* of a graph's launch: graph_work.position + 1; 0: of its own */
} wr_memory_event;

typedef wr_run_log wr_memory_log; /* of wr_memory_event */

/* An event as it is taken: its row, who called, and when; its record. */
typedef struct wr_taken {
  int64_t id, start, end;
  wr_caller who;
  const trace_event *e;
} wr_taken;

/* Keeps it if it is a memory event. */
void wr_memory_keep(wr_memory_log *log, const wr_taken *x);

/* Calls `take` for each wr_memory_event, in order of time, then of rows. Errors: ENOMEM, EIO, those
 * of `take`. */
weir_status wr_memory_each(wr_memory_log *log,
                           weir_status (*take)(void *context, const void *event), void *context);

/* Forgets all, for good. */
void wr_memory_drop(wr_memory_log *log);

#endif
