/* job.h: one trace being collected: the importer, the collector and their folder, opened and
 * finished the same way by `weir run` and `weir collect`. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_JOB_H
#define WEIR_TOOLS_WEIR_COLLECT_JOB_H

#include <stdbool.h>

#include "reports/import/import.h"
#include "tools/weir/collect/collector.h"
#include "tools/weir/collect/recorder.h"
#include "tools/weir/collect/watch.h"
#include "tools/weir/base/progress.h"

typedef struct job {
  const char *output;       /* the trace; borrowed */
  const char *dir;          /* the spools' folder; borrowed */
  trace_importer *importer; /* NULL: */
  recorder *recorder;       /* records are kept, and no trace is written but of dumps */
  collector *collector;
  watch *watch;
  progress progress;
} job;

/* Makes the trace (with `force` replacing what is there: output_may_write() comes first) and the
 * collector. Returns false after a message, with nothing left. `command`: for the trace, or NULL.
 * Where the trace cannot be had and `refused` is not NULL, *refused is set, without a message. */
bool job_open(job *j, const char *output, bool force, const char *dir, const char *command,
              collector_reap reap, void *context, bool *refused);

/* The same with a recorder in the place of a trace; `output`, absolute: what its dumps are named
 * after. */
bool job_keep(job *j, const char *output, const recorder_options *o, const char *dir,
              collector_reap reap, void *context);

/* Imports the rest and removes the folder. Returns false with *more when a spool came meanwhile, of
 * a process that lives, unless that is abandoned: nothing is lost, and the caller carries on. */
bool job_drain(job *j, bool abandon, bool *more);

/* Notes in the trace whether there is a driver, where the programs reached no device. */
void job_look_for_driver(job *j);

/* Completes the trace after job_drain() and closes it. `drained`: what job_drain() returned; if
 * false, there is a message about what is missing and where it is kept. Returns whether the trace
 * is complete. */
bool job_close(job *j, bool drained);

/* Closes and removes the trace and the folder: nothing was run. */
void job_discard(job *j);

#endif
