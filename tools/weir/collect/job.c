/* job.c: one trace being collected: the importer, the collector and their folder. */
#include "tools/weir/collect/job.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/trace/spool.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/base/figures.h"
#include "tools/weir/collect/driver.h"

/* What is a limit for the program need not be one for us: each live process of its takes three
 * descriptors here, and a trace that is too long for a file is an error, not our end. */
static void widen_limits(void)
{
  static const __rlimit_resource_t limits[] = {RLIMIT_NOFILE, RLIMIT_FSIZE};
  struct rlimit l;
  for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
    if (getrlimit(limits[i], &l) != 0) continue;
    l.rlim_cur = l.rlim_max;
    (void)setrlimit(limits[i], &l);
  }
  (void)signal(SIGXFSZ, SIG_IGN);
}

bool job_open(job *j, const char *output, bool force, const char *dir, const char *command,
              collector_reap reap, void *context, bool *refused)
{
  importer_options o = {.overwrite = force, .command = command};
  *j = (job){.output = output, .dir = dir, .progress.trace = output};
  widen_limits();
  o.progress = progress_report;
  o.progress_context = &j->progress;
  if (importer_open(&j->importer, output, &o) != WEIR_OK) {
    if (refused)
      *refused = true;
    else
      cmd_message("%s.", weir_error_message());
    return false;
  }
  j->collector = collector_new(dir, output, j->importer, reap, context);
  if (!j->collector) {
    job_discard(j);
    return false;
  }
  j->watch = watch_new(j->collector, output);
  return true;
}

bool job_keep(job *j, const char *output, const recorder_options *o, const char *dir,
              collector_reap reap, void *context)
{
  *j = (job){.output = output, .dir = dir, .progress.trace = output};
  widen_limits();
  j->recorder = recorder_new(dir, output, o, reap, context);
  if (!j->recorder) return false;
  j->collector = collector_new(dir, output, NULL, reap, context);
  if (!j->collector) {
    job_discard(j);
    return false;
  }
  collector_record(j->collector, j->recorder);
  j->watch = watch_new(j->collector, output);
  return true;
}

void job_discard(job *j)
{
  watch_free(j->watch);
  collector_free(j->collector);
  recorder_free(j->recorder);
  importer_discard(j->importer);
  collector_discard(j->dir);
}

bool job_drain(job *j, bool abandon, bool *more)
{
  if (!collector_finish(j->collector, abandon, more)) return false;
  *more = !collector_remove(j->collector);
  return !*more;
}

void job_look_for_driver(job *j)
{
  if (j->recorder) return;
  char *why = importer_reached(j->importer) ? NULL : driver_missing();
  if (why) importer_no_driver(j->importer, why);
  free(why);
}

/* Printed without a terminal too: a trace that lacks events looks like any other. */
static void print_dropped(const job *j)
{
  int why = 0;
  char text[32];
  uint64_t dropped = importer_dropped(j->importer, &why);
  if (dropped)
    cmd_message("%s: %s events were dropped (%s): its report says which numbers are lower bounds.",
                j->output, cmd_grouped(text, dropped), spool_drop_reason(why));
}

static bool close_recorder(job *j, bool drained)
{
  watch_finish(j->watch);
  recorder_report(j->recorder);
  watch_free(j->watch);
  collector_free(j->collector);
  recorder_free(j->recorder);
  return drained;
}

bool job_close(job *j, bool drained)
{
  if (j->recorder) return close_recorder(j, drained);
  bool good = drained;
  watch_finish(j->watch);
  print_dropped(j);
  if (!drained)
    cmd_message("%s is incomplete; what it lacks is kept in %s: once there is room for it, run "
                "'weir import %s -o %s'.",
                j->output, j->dir, j->dir, j->output);
  if (importer_finish(j->importer) != WEIR_OK) {
    cmd_message("%s can be read, but could not be completed: %s.", j->output, weir_error_message());
    good = false;
  }
  progress_clear(&j->progress);
  watch_free(j->watch);
  collector_free(j->collector);
  importer_close(j->importer);
  if (good) figures_keep(j->output);
  return good;
}
