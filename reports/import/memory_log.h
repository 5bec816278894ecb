/* memory_log.h: the memory events of a trace in the order in which the program can have seen them.
 *
 * An allocation counts from its return, a free from its call. An importer keeps each as it takes
 * it: up to a limit in memory, beyond it as sorted runs in a file without a name beside the trace,
 * which are merged as they are read. So lifetimes need not have SQLite join, sort and hand over
 * rows that were here a moment ago. Where there is no room, nothing is kept and the rows are read.
 */
#ifndef WEIR_REPORTS_MEMORY_LOG_H
#define WEIR_REPORTS_MEMORY_LOG_H

#include "reports/import/template.h"

enum { WR_NO_DEVICE = WEIR_DEVICE_NONE, WR_MEM_KINDS = 9 };

typedef struct wr_memory_event {
  int64_t id, time, pointer, bytes;
  int32_t process, thread; /* rows */
  uint8_t kind;            /* event_kind */
  uint8_t context;         /* number in the process */
  uint8_t mem;             /* memory_kind */
  uint8_t device;          /* WR_NO_DEVICE: none */
} wr_memory_event;

/* Those of a trace; times as its rows had them when they were taken. */
typedef struct wr_memory_log {
  const char *beside;     /* the path of the trace; borrowed */
  size_t most;            /* events in memory; 0: as many as 64 MiB hold */
  wr_memory_event *event; /* the last run, in memory */
  size_t count, capacity;
  size_t *runs; /* events of each run in the file */
  size_t run_count, run_capacity;
  int file;        /* while there are runs */
  bool unsorted;   /* the last run is not in order of time */
  bool incomplete; /* no room, or some were there before: nothing is kept */
} wr_memory_log;

/* An event as it is taken: its row, who called, and when; its record. */
typedef struct wr_taken {
  int64_t id, start, end;
  wr_caller who;
  const trace_event *e;
} wr_taken;

/* Keeps it if it is a memory event. */
void wr_memory_keep(wr_memory_log *log, const wr_taken *x);

/* Calls `take` for each, in order of time, then of rows. Errors: ENOMEM, EIO, those of `take`. */
weir_status wr_memory_each(wr_memory_log *log,
                           weir_status (*take)(void *context, const wr_memory_event *e),
                           void *context);

/* Forgets all, for good. */
void wr_memory_drop(wr_memory_log *log);

#endif
