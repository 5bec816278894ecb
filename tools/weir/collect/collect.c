/* collect.c: weir collect: the collector of programs that run without `weir run`.
 *
 * The preload library starts it before a process tree's first event, detached, with its standard
 * streams on /dev/null. It ends when nobody is left who writes a spool in its folder: the process
 * that started it, every process with a spool, and forks of those that are about to open one.
 * Whoever comes after the folder is gone makes a new one, with a collector and a trace of its own.
 * What it has to complain about goes to FILE.log. */
#include <stdlib.h>
#include <unistd.h>

#include "tools/weir/base/commands.h"
#include "tools/weir/base/figures.h"
#include "tools/weir/collect/job.h"
#include "tools/weir/collect/output.h"
#include "tools/weir/collect/process.h"
#include "tools/weir/collect/recover.h"
#include "tools/weir/collect/spool_list.h"

enum { FORK_WAIT_MS = 50 };

typedef struct collect {
  const char *dir, *output;
  pid_t starter;
  uint64_t starter_time; /* its start time */
} collect;

static bool read_collect_option(const cmd *c, cmd_option_id option, const char *value,
                                void *context)
{
  long pid;
  (void)option; /* --pid */
  if (!cmd_number(value, 1, INT32_MAX, &pid)) {
    cmd_usage(c, "--pid takes a process id, not '%s'", value);
    return false;
  }
  *(pid_t *)context = (pid_t)pid;
  return true;
}

/* The folder is going to be removed with its spools, so it must be one of ours. */
static bool is_spool_folder(const char *dir)
{
  if (*dir == '/' && spool_folder_is_ours(dir)) return true;
  cmd_message("%s is no folder of spools: an absolute path, owned by you, mode 0700.", dir);
  return false;
}

static bool is_job_over(const collect *o, const job *j)
{
  return !collector_live(j->collector) && !collector_expects_forks(j->collector) &&
         !(o->starter && process_alive(o->starter, o->starter_time));
}

static bool follow_run(const collect *o, job *j)
{
  bool more = true, drained = false;
  while (more) {
    do {
      collector_wait(j->collector, -1, FORK_WAIT_MS); /* there is no event for the starter's end */
      collector_turn(j->collector);
    } while (!is_job_over(o, j));
    drained = job_drain(j, false, &more);
  }
  return drained;
}

static bool follow_job(collect *o, job *j)
{
  if (o->starter) collector_serve(j->collector, o->starter);
  collector_ask_nvml(j->collector);
  bool drained = follow_run(o, j);
  job_look_for_driver(j);
  return job_close(j, drained);
}

/* The same where records are kept: there is no trace but of dumps. */
static bool collect_dumps(collect *o, const char *wanted, const recorder_options *keeping)
{
  job j;
  char *output = output_for_dumps(wanted);
  bool complete = output && job_keep(&j, output, keeping, o->dir, NULL, NULL);
  if (complete) complete = follow_job(o, &j);
  if (complete) recover_left(output);
  free(output);
  return complete;
}

/* Collects until all processes have ended. Returns whether the trace is complete. */
static bool collect_into(collect *o, const char *wanted)
{
  job j;
  recorder_options keeping;
  if (!is_spool_folder(o->dir)) return false;
  if (o->starter) o->starter_time = process_start_time(o->starter);
  if (recorder_asked(&keeping, NULL, -1, NULL)) return collect_dumps(o, wanted, &keeping);
  char *reserved = output_reserve(wanted);
  char *output = reserved ? realpath(reserved, NULL) : NULL;
  bool complete = output && job_open(&j, output, false, o->dir, NULL, NULL, NULL, NULL);
  if (complete) complete = follow_job(o, &j);
  if (complete) recover_left(output);
  free(reserved);
  free(output);
  return complete;
}

int collect_main(const cmd *c, int argc, char **argv)
{
  collect o = {0};
  cmd_line line = {.read = read_collect_option, .context = &o.starter};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  figures_ask(&line);
  o.dir = line.value[OPT_SPOOL_DIR].text;
  o.output = line.value[OPT_COLLECT_OUTPUT].text;
  if (at < argc) return cmd_usage(c, "weir collect takes options only, not '%s'", argv[at]);
  if (!o.dir) return cmd_usage(c, "--spool-dir is missing");
  if (!o.output && !o.starter) return cmd_usage(c, "--output or --pid is missing");
  char *wanted = o.output ? cmd_format("%s", o.output) : cmd_format("weir.%d.db", (int)o.starter);
  char *log = cmd_format("%s.log", wanted);
  if (!cmd_chatty()) cmd_log_to(log);
  int status = collect_into(&o, wanted) ? 0 : CMD_FAILED;
  cmd_log_to(NULL);
  free(log);
  free(wanted);
  return status;
}
