/* run_log.h: records in order of time, of which there may be more than memory holds.
 *
 * A record is any structure that begins with its row and its time (wr_logged). They are kept as
 * they come: up to a limit in memory, beyond it as sorted runs in a file without a name next to
 * the trace, which are merged as they are read. So a pass in order of time need not have SQLite
 * join, sort and hand over rows that were here a moment ago. Records of one time and row stay in the
 * order in which they were kept. Where there is no room, nothing is kept. */
#ifndef WEIR_REPORTS_RUN_LOG_H
#define WEIR_REPORTS_RUN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct wr_logged { /* what each record begins with */
  int64_t id, time;
} wr_logged;

/* Times are as the records' rows had them when they were taken. */
typedef struct wr_run_log {
  const char *trace; /* the path of the trace; borrowed */
  size_t size;       /* bytes of a record */
  size_t most;       /* records in memory; 0: as many as 64 MiB hold */
  char *event;       /* the last run, in memory */
  size_t count, capacity;
  size_t *runs; /* records of each run in the file */
  size_t run_count, run_capacity;
  int file;         /* while there are runs */
  uint64_t in_file; /* bytes */
  bool unsorted;    /* the last run is not in order of time */
  size_t ordered;   /* unsorted: but for its first records */
  bool incomplete;  /* no room, or some were there before: nothing is kept */
} wr_run_log;

/* Keeps a record of log->size bytes. Where there is no room the log is dropped. */
void wr_run_keep(wr_run_log *log, const wr_logged *record);

/* Calls `take` for each, in order of time, then of rows. Errors: ENOMEM, EIO, those of `take`. */
weir_status wr_run_each(wr_run_log *log, weir_status (*take)(void *context, const void *record),
                        void *context);

/* `trace` of a log for a report, which writes nothing next to the trace: in TMPDIR. The caller
 * frees it; NULL: out of memory. */
char *wr_run_path(void);

/* A new file that goes with its descriptor; -1: there can be none. */
int wr_run_file(const char *trace);
/* Write and read all of `bytes` at a place of such a file. Return 0 or an errno: ENOSPC where
 * nothing was written, EIO where the file ended. */
int wr_run_write(int file, const void *data, size_t bytes, uint64_t at);
int wr_run_read(int file, void *data, size_t bytes, uint64_t at);

/* Forgets all, for good. */
void wr_run_drop(wr_run_log *log);

#endif
