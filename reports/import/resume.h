/* resume.h: what an importer must know to go on with a trace that another began. It is kept in the
 * table `resume` of the trace, written in the transaction of the rows it speaks of. */
#ifndef WEIR_REPORTS_RESUME_H
#define WEIR_REPORTS_RESUME_H

#include "reports/import/importer.h"

/* Column `what`; `key` and `value` by it. */
enum {
  WR_RESUME_FACT = 0,      /* one number of the process: enum below */
  WR_RESUME_POSITION = 1,  /* thread serial: first record that is not in the trace */
  WR_RESUME_STACK = 2,     /* thread serial << 32 | the thread's id of it: row of stack */
  WR_RESUME_MODULE = 3,    /* keys and values of wr_spool.modules */
  WR_RESUME_RANGE_NAME = 4 /* and of wr_spool.range_names */
};

enum {
  WR_FACT_IDENTITY = 0,    /* hash of boot, pid, start and opening */
  WR_FACT_UNLOADS = 1,     /* wr_spool.unloads */
  WR_FACT_FRAMES_FROM = 2, /* rows of frame and stack up to these are of modules since unloaded */
  WR_FACT_STACKS_FROM = 3,
  WR_FACT_ASKED = 4, /* of the timeline: the latest tick, and its ns */
  WR_FACT_ASKED_NS = 5,
  WR_FACT_BOOT = 6 /* two, of process 0: the first spool's boot id */
};

/* Queues a row; and the removal of one. */
weir_status wr_resume_keep(wr_spool *s, int what, uint64_t key, uint64_t value);
weir_status wr_resume_drop(wr_spool *s, int what, uint64_t key);

/* Queues what identifies the spool (and, of the first, its boot). */
weir_status wr_resume_begin(wr_spool *s);

/* Queues where all spools are now. Before each flush. */
weir_status wr_resume_positions(trace_importer *im);

/* Takes back what finish() did to a trace that is written on. Before each flush. */
weir_status wr_resume_write(trace_importer *im);

/* A trace whose collector was killed before it had made the tables is made as a new one. */
weir_status wr_resume_begun(trace_importer *im);

/* Readies `im` for the trace it has opened: finds its counters.
 * Errors: EVERSION where the trace has no such table or is of another schema. */
weir_status wr_resume_trace(trace_importer *im);

/* Finds the process that spool `s` is known as and goes on where it was left; *known: there is one.
 */
weir_status wr_resume_spool(wr_spool *s, bool *known);

#endif
