/* trace_file.h: the files of a trace that is to be written: made safely, locked, known to be ours.
 */
#ifndef WEIR_REPORTS_TRACE_FILE_H
#define WEIR_REPORTS_TRACE_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include "core/base/status.h"
#include "reports/import/schema.h"

enum { WR_COMPANIONS = 3 }; /* -wal, -shm, -journal */

/* What a name on the disk is to somebody who wants to write a trace there. */
typedef enum wr_trace_state {
  WR_TRACE_FREE,    /* nothing, or an empty file of ours */
  WR_TRACE_KEPT,    /* a trace of ours, finished or not, that nobody writes */
  WR_TRACE_LIVE,    /* a trace that is being written */
  WR_TRACE_FOREIGN, /* somebody else's file */
  WR_TRACE_OTHER    /* anything else */
} wr_trace_state;

typedef enum wr_trace_use {
  WR_TRACE_NEW,     /* the name must be free */
  WR_TRACE_REPLACE, /* what is there is removed, unless it is live or not ours */
  WR_TRACE_EXTEND,  /* the trace that is there, which must be ours, is written on */
  WR_TRACE_CHANGE   /* the same, complete: SQLite makes the companions, while it has no reader */
} wr_trace_use;

typedef struct wr_trace_file {
  char *path;                 /* owned */
  int fd;                     /* of the trace: holds the lock; -1: not taken */
  bool made;                  /* by this call: to be removed if nothing comes of it */
  ino_t inode[WR_COMPANIONS]; /* of the companions when we saw that they are ours */
} wr_trace_file;

/* Errors: EIO (with the path and the reason), ENOENT. */
weir_status wr_trace_file_look(const char *path, wr_trace_state *state);

/* Makes or takes the trace and its companions, and locks it until wr_trace_file_leave(). To be
 * left only when this succeeded. Errors: EIO, ENOSPC, ENOMEM. */
weir_status wr_trace_file_take(wr_trace_file *t, const char *path, wr_trace_use use);

/* Whether the names still mean the files that were taken: asked once SQLite has opened them. */
weir_status wr_trace_file_check(const wr_trace_file *t);

/* To be called once SQLite has closed the trace: closing the lock's descriptor before would take
 * SQLite's own locks away. `remove`: the trace too. */
void wr_trace_file_leave(wr_trace_file *t, bool remove);

/* From the next time that it is opened, the trace is in WAL mode. It must have no reader: else EIO,
 * after the busy timeout. *entered: it was not yet, and is to leave it. */
weir_status wr_trace_file_enter_wal(const wr_db *db, bool *entered);

/* Leaves WAL mode, when nothing in the WAL is to be kept. */
void wr_trace_file_leave_wal(const wr_db *db);

/* Puts the WAL into the file, and `for_good` leaves WAL mode. Somebody who reads the trace just now
 * keeps it: that is no failure. */
void wr_trace_file_fold(const wr_db *db, bool for_good);

#endif
