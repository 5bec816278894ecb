/* run.c: weir run: the parent of a program, and the collector of its trace.
 *
 * The program is to notice nothing. It stays in our process group and on our terminal, with its own
 * stdin, stdout and stderr; weir prints only when stderr is a terminal, and only after the program
 * has ended, or when weir itself fails. The order of things: the program's process is made and held
 * at a gate, the trace is created (it is named after that process), the gate opens, the program is
 * exec'd. So neither runs without the other.
 *
 * The tree. We are its subreaper: what the program leaves (a daemon, an orphan) becomes our
 * child, and the trace is complete when we have no child left, unless --no-wait or an interrupt
 * after the program's end changes that.
 *
 * Signals: see signals.c. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/image.h"
#include "core/base/options.h"
#include "core/base/rank.h"
#include "core/base/reroutes.h"
#include "core/base/trace_name.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/environment.h"
#include "tools/weir/base/figures.h"
#include "tools/weir/collect/job.h"
#include "tools/weir/collect/output.h"
#include "tools/weir/collect/process.h"
#include "tools/weir/collect/recover.h"
#include "tools/weir/run/signals.h"

typedef struct reaped {
  pid_t pid;
  int code, status;    /* CLD_EXITED and the status, or CLD_KILLED, CLD_DUMPED and the signal */
  uint64_t start_time; /* as in /proc/PID/stat: pids come again */
} reaped;

typedef struct run {
  environment env;
  const char *output; /* -o, NULL: default */
  bool no_wait, list_unsupported, force;
  char **argv;       /* the program and its arguments */
  pid_t child;       /* the program */
  int gate, hung;    /* write: the program may start; read: errno of a failed exec */
  bool ended, alone; /* the program was reaped; no child is left */
  reaped end;        /* of the program */
  reaped *others;    /* all that were reaped: a spool may be found after its process is gone */
  unsigned count, room;
  bool printed_waiting;
  metrics_place metrics_at; /* where NULL: nowhere */
  metrics *metrics;         /* until the collector has it */
  int dumps;                /* --dumps, -1: not given */
  bool keeps;               /* --keep, or WEIR_KEEP */
  recorder_options keeping; /* how much, and when it is dumped */
  job job;
} run;

/* ---- options --------------------------------------------------------------------------------- */

static bool take_hash(const cmd *c, environment *e, const char *value)
{
  uint64_t most;
  bool on;
  e->hash = value ? value : "on";
  if (!strcmp(e->hash, "auto")) return true;
  if (option_bool(&on, "--hash", e->hash) == WEIR_OK) return true;
  if (option_size(&most, "--hash", e->hash, 64) == WEIR_OK) return true;
  cmd_usage(c, "%s", weir_error_message());
  return false;
}

static bool take_reroute(const cmd *c, environment *e, const char *value)
{
  unsigned ignored;
  e->reroute = value;
  if (reroutes_read(&ignored, "--reroute", value) == WEIR_OK) return true;
  cmd_usage(c, "%s", weir_error_message());
  return false;
}

static bool take_stacks(const cmd *c, environment *e, const char *value)
{
  long frames;
  e->stacks = value;
  if (!strcmp(value, "off") || cmd_number(value, 1, 128, &frames)) return true;
  cmd_usage(c, "--stacks takes off or a number of frames from 1 to 128, not '%s'", value);
  return false;
}

static bool take_python(const cmd *c, environment *e, const char *value)
{
  bool on;
  e->python = value ? value : "on";
  if (!strcmp(e->python, "auto")) return true;
  if (option_bool(&on, "--python", e->python) == WEIR_OK) return true;
  cmd_usage(c, "--python takes auto, on or off, not '%s'", value);
  return false;
}

static bool take_time(const cmd *c, cmd_option_id option, uint64_t *ns, const char *value)
{
  if (option_time(ns, cmd_options[option].name, value) == WEIR_OK) return true;
  cmd_usage(c, "--%s takes a time as 500ms, 30s, 5min or 2h, not '%s'", cmd_options[option].name,
            value);
  return false;
}

static bool take_capture(const cmd *c, environment *e, const char *value)
{
  e->capture = value;
  if (!strcmp(value, "profiler") || (!strncmp(value, "range:", 6) && value[6])) return true;
  cmd_usage(c, "--capture takes range:NAME or profiler, not '%s'", value);
  return false;
}

static bool take_keep(const cmd *c, environment *e, const char *value)
{
  keep_size keep;
  e->keep = value ? value : "64M";
  if (keep_read(&keep, "--keep", e->keep) == WEIR_OK) return true;
  cmd_usage(c, "%s", weir_error_message());
  return false;
}

static bool take_dump_at(const cmd *c, environment *e, const char *value)
{
  recorder_options o = {0};
  e->dump_at = value;
  if (recorder_read_dump_at(&o, "--dump-at", value) == WEIR_OK) return true;
  cmd_usage(c, "%s", weir_error_message());
  return false;
}

static bool read_run_option(const cmd *c, cmd_option_id option, const char *value, void *context)
{
  environment *e = context;
  switch (option) {
  case OPT_KEEP:
    return take_keep(c, e, value);
  case OPT_DUMP_AT:
    return take_dump_at(c, e, value);
  case OPT_SIM:
    return environment_read_sim(c, option, value, e);
  case OPT_REROUTE:
    return take_reroute(c, e, value);
  case OPT_HASH:
    return take_hash(c, e, value);
  case OPT_PYTHON:
    return take_python(c, e, value);
  case OPT_DELAY:
    return take_time(c, option, &e->delay_ns, value);
  case OPT_DURATION:
    return take_time(c, option, &e->duration_ns, value);
  case OPT_CAPTURE:
    return take_capture(c, e, value);
  default:
    return take_stacks(c, e, value);
  }
}

/* Takes the options that read_run_option() does not read. */
static void take_run_options(run *r, const cmd_line *line)
{
  r->output = line->value[OPT_RUN_OUTPUT].text;
  r->force = line->value[OPT_RUN_FORCE].given;
  r->no_wait = line->value[OPT_NO_WAIT].given;
  r->list_unsupported = line->value[OPT_LIST_UNSUPPORTED].given;
  r->env.mode = line->value[OPT_MODE].text;
  r->env.device_times = line->value[OPT_DEVICE_TIMES].text;
  r->env.access = line->value[OPT_ACCESS].text;
  r->env.rules = line->value[OPT_CACHE_RULES].text;
  r->env.apply = line->value[OPT_APPLY].text;
  r->env.zero = line->value[OPT_ZERO].given;
  r->env.poison = line->value[OPT_POISON].given;
  r->env.redact = line->value[OPT_REDACT].given;
  r->metrics_at = (metrics_place){line->value[OPT_METRICS].text, line->value[OPT_METRICS_MODE].text,
                                  line->value[OPT_METRICS_TOKEN].text};
  r->env.dormant = line->value[OPT_DORMANT].given || r->env.delay_ns;
  if ((r->env.dormant || r->env.capture || r->env.duration_ns) && !r->env.mode && !r->env.apply)
    r->env.mode = "observe";
  r->dumps = cmd_number_of(line, OPT_DUMPS, -1);
  figures_ask(line);
  if (r->env.redact && !line->value[OPT_FIGURES].given) figures_later();
}

/* ---- starting -------------------------------------------------------------------------------- */

/* Searches for a program as execvp() does, before anything is created. Returns 0 or the errno that
 * execvp() would end with. */
static int find_program(const char *name)
{
  const char *path = getenv("PATH");
  int error = ENOENT;
  if (!*name) return ENOENT;
  if (strchr(name, '/')) return access(name, X_OK) == 0 ? 0 : errno;
  for (const char *at = path ? path : "/bin:/usr/bin"; at;) {
    size_t n = strcspn(at, ":");
    char *full = cmd_format("%.*s%s%s", (int)n, at, n ? "/" : "", name);
    int result = access(full, X_OK) == 0 ? 0 : errno;
    free(full);
    if (!result) return 0;
    if (result == EACCES) error = EACCES;
    at = at[n] ? at + n + 1 : NULL;
  }
  return error;
}

/* Runs in the program's process, up to its exec. */
__attribute__((noreturn)) static void become_program(run *r, int gate, int hung)
{
  char go;
  signals_in_child();
  if (read(gate, &go, 1) != 1) _exit(CMD_RUN_FAILED); /* weir gave up, with a message */
  environment_apply(&r->env);
  int error = cmd_exec(r->argv);
  ssize_t written = write(hung, &error, sizeof error);
  _exit(written == sizeof error && error == ENOENT ? CMD_NOT_FOUND : CMD_CANNOT_RUN);
}

static bool fork_program(run *r)
{
  int gate[2], hung[2];
  if (pipe2(gate, O_CLOEXEC) < 0 || pipe2(hung, O_CLOEXEC) < 0) {
    cmd_message("cannot make a pipe: %s.", strerror(errno));
    return false;
  }
  signals_hold();
  r->child = fork();
  if (r->child == 0) {
    (void)close(gate[1]);
    become_program(r, gate[0], hung[1]);
  }
  int error = errno;
  (void)close(gate[0]);
  (void)close(hung[1]);
  r->gate = gate[1];
  r->hung = hung[0];
  if (r->child > 0) return signals_begin(r->child);
  cmd_message("cannot fork: %s.", strerror(error));
  return false;
}

/* Lets the program go. Returns 0, or the errno its exec failed with. */
static int open_gate(run *r)
{
  int error = 0;
  ssize_t n;
  (void)!write(r->gate, "g", 1);
  do {
    n = read(r->hung, &error, sizeof error);
  } while (n < 0 && errno == EINTR);
  (void)close(r->gate);
  (void)close(r->hung);
  return n == sizeof error ? error : 0;
}

static void abandon_child(run *r)
{
  (void)close(r->gate); /* the child reads its end */
  (void)waitpid(r->child, NULL, 0);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void note_reaped(run *r, const siginfo_t *si, uint64_t start_time)
{
  reaped e = {si->si_pid, si->si_code, si->si_status, start_time};
  if (e.pid == r->child) {
    r->ended = true;
    r->end = e;
  }
  r->others = cmd_grow(r->others, &r->room, r->count, sizeof *r->others);
  r->others[r->count++] = e;
}

/* Reaps one child (0: any that ended or stopped). Returns false when there is none to reap. */
static bool reap_one(run *r, pid_t pid)
{
  siginfo_t si = {0};
  int flags = WEXITED | WNOHANG | (pid ? 0 : WSTOPPED);
  signals_pause(); /* a signal must not be sent on to a pid that is being given back */
  int rc = waitid(pid ? P_PID : P_ALL, (id_t)pid, &si, flags | WNOWAIT);
  if (rc < 0 && errno == ECHILD && !pid) r->alone = true;
  bool got = rc == 0 && si.si_pid != 0;
  bool stopped = got && si.si_code == CLD_STOPPED;
  if (got && !stopped) note_reaped(r, &si, process_start_time(si.si_pid));
  if (got) (void)waitid(P_PID, (id_t)si.si_pid, &(siginfo_t){0}, flags);
  if (r->ended) signals_program_ended();
  signals_resume();
  if (stopped && si.si_pid == r->child) signals_stop_too(si.si_status);
  return got;
}

static bool on_reap(void *context, pid_t pid, uint64_t start_time, importer_end_reason *reason,
                    int *detail)
{
  run *r = context;
  for (int look = 0; look < 2; look++) {
    for (unsigned i = r->count; i-- > 0;) {
      if (r->others[i].pid != pid || r->others[i].start_time != start_time) continue;
      *reason = r->others[i].code == CLD_EXITED ? WEIR_END_EXIT : WEIR_END_SIGNAL;
      *detail = r->others[i].status;
      return true;
    }
    if (look || !reap_one(r, pid)) break;
  }
  return false;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Whether processes that outlive the program are not waited for. */
static bool stops_waiting(const run *r)
{
  return r->no_wait || signals_interrupts();
}

static bool is_run_over(run *r)
{
  if (!r->ended) return false;
  if (stops_waiting(r)) return true;
  if (r->alone && !collector_live(r->job.collector)) return true;
  if (r->keeps && recorder_busy(r->job.recorder)) return false; /* it is waited for alone */
  if (!r->printed_waiting && cmd_chatty())
    cmd_message("waiting for processes that '%s' left behind; interrupt to finish without them.",
                r->argv[0]);
  r->printed_waiting = true;
  return false;
}

static void follow_processes(run *r)
{
  do {
    collector_wait(r->job.collector, signals_fd(), -1);
    signals_handled();
    collector_scan(r->job.collector); /* while the ended can still be found in /proc */
    while (reap_one(r, 0)) {
    }
    r->job.progress.allowed = r->ended && r->alone; /* nobody else's terminal now */
    collector_turn(r->job.collector);
  } while (!is_run_over(r));
}

static void print_result(const run *r, uint64_t events, const char *no_gpu)
{
  char text[32];
  if (!cmd_chatty()) return;
  if (no_gpu)
    cmd_message("no GPU was found; 'weir run --sim -- %s' needs none (%s).", r->argv[0], no_gpu);
  if (events)
    cmd_message("%s: %s events; see 'weir report %s'.", r->job.output, cmd_grouped(text, events),
                r->job.output);
  else
    cmd_message("%s: no CUDA calls were seen; see 'weir report %s'.", r->job.output, r->job.output);
}

static bool drain_spools(run *r)
{
  bool more = true;
  for (int try = 0; try < 3 && more; try++) {
    if (job_drain(&r->job, stops_waiting(r), &more)) return true;
    if (more && !stops_waiting(r)) follow_processes(r);
  }
  return false;
}

static void finish_run(run *r)
{
  signals_finishing();
  r->job.progress.allowed = true;
  bool drained = drain_spools(r);
  if (r->keeps) {
    if (job_close(&r->job, drained)) recover_left(r->job.output);
    return;
  }
  uint64_t events = importer_events(r->job.importer);
  if (!r->env.sim) job_look_for_driver(&r->job);
  char *no_gpu = r->env.sim ? NULL : importer_no_gpu(r->job.importer);
  bool complete = job_close(&r->job, drained);
  if (complete) print_result(r, events, no_gpu);
  free(no_gpu);
  if (complete) recover_left(r->job.output); /* else what is left is our own */
}

/* Ends as the program did: the same status, or the same signal without a second core dump. */
static int end_like(const reaped *end)
{
  struct rlimit none = {0, 0};
  if (end->code == CLD_EXITED) return end->status;
  (void)setrlimit(RLIMIT_CORE, &none);
  (void)prctl(PR_SET_DUMPABLE, 0);
  signals_die_of(end->status);
  return 128 + end->status; /* pid 1 of a container cannot kill itself */
}

/* ---- the command ----------------------------------------------------------------------------- */

static char *command_line(char **argv, bool redact)
{
  size_t bytes = 0;
  if (redact) return cmd_format("%s", argv[0]);
  for (char **a = argv; *a; a++)
    bytes += strlen(*a) + 1;
  char *line = cmd_alloc(bytes), *at = line;
  for (char **a = argv; *a; a++)
    at = stpcpy(stpcpy(at, a == argv ? "" : " "), *a);
  return line;
}

/* Opens the trace of that name (owned) or, where several were launched together and another has it,
 * the one with our rank in its name. Returns its name; NULL after a message. */
static char *open_named(run *r, char *output, const char *command)
{
  uint32_t rank = launched_rank();
  bool shared, refused = false;
  bool may = output_may_share(output, r->force, rank, &shared);
  if (may && !shared &&
      job_open(&r->job, output, r->force, r->env.spool_dir, command, on_reap, r,
               rank ? &refused : NULL))
    return output;
  shared |= refused; /* by another rank, just now */
  char *own = may && shared ? output_of_rank(output, rank) : NULL;
  free(output);
  if (own && job_open(&r->job, own, r->force, r->env.spool_dir, command, on_reap, r, NULL))
    return own;
  free(own);
  return NULL;
}

/* Opens a trace under a name that weir chooses. Returns the name (new); NULL after a message. */
static char *open_unnamed(run *r, const char *command)
{
  char *wanted = cmd_format("weir.%d.db", (int)r->child), *output = output_reserve(wanted);
  free(wanted);
  if (output && job_open(&r->job, output, false, r->env.spool_dir, command, on_reap, r, NULL))
    return output;
  free(output);
  return NULL;
}

/* Returns -o's name with its placeholders filled in (new), for a program of that pid; NULL without a
 * message, but with a sentence (weir_error_message()). */
static char *name_trace(const run *r, pid_t pid)
{
  char name[PATH_MAX];
  if (trace_name_expand(name, sizeof name, r->output, (uint32_t)pid) != WEIR_OK) return NULL;
  return cmd_format("%s", name);
}

/* Opens the trace that -o names. Returns its name (new); NULL after a message. */
static char *open_wanted(run *r, const char *command)
{
  char *output = name_trace(r, r->child);
  if (output) return open_named(r, output, command);
  cmd_message("%s.", weir_error_message());
  return NULL;
}

/* Begins to keep records. Returns what dumps are named after (new); NULL after a message. */
static char *open_recorder(run *r)
{
  char *name = r->output ? name_trace(r, r->child) : cmd_format("weir.%d.db", (int)r->child);
  char *output = name ? output_for_dumps(name) : NULL;
  if (!name) cmd_message("%s.", weir_error_message());
  free(name);
  if (output && job_keep(&r->job, output, &r->keeping, r->env.spool_dir, on_reap, r)) return output;
  free(output);
  return NULL;
}

/* Names and makes the trace, with the program at the gate. Returns its name (new); NULL after a
 * message. */
static char *open_trace(run *r)
{
  char *command = command_line(r->argv, r->env.redact || environment_redacts());
  char *output = r->keeps    ? open_recorder(r)
                 : r->output ? open_wanted(r, command)
                             : open_unnamed(r, command);
  if (output) collector_serve(r->job.collector, getpid());
  if (output && (r->env.dormant || r->env.capture)) watch_begin(r->job.watch);
  if (output && r->metrics) watch_metrics(r->job.watch, r->metrics);
  if (output) r->metrics = NULL;
  if (output && !r->env.sim) collector_ask_nvml(r->job.collector);
  free(command);
  return output;
}

/* Looks whether Weir will be in the program at all, and notes in the trace why not. */
static void look_at_program(run *r)
{
  char path[4096];
  if (!image_find(path, sizeof path, r->argv[0], getenv("PATH"))) return;
  unseen_reason why = image_look(path);
  if (!why) return;
  if (cmd_chatty())
    cmd_message("'%s' runs without Weir (%s): what it does is not in the trace.", r->argv[0],
                unseen_words(why));
  if (!r->keeps && importer_unseen(r->job.importer, path, unseen_words(why)) != WEIR_OK)
    cmd_message("%s.", weir_error_message());
}

/* Opens the place of metrics, if there is one; its name may have the placeholders of a trace's.
 * Returns false after a message. */
static bool open_metrics(run *r)
{
  char where[4096];
  if (!r->metrics_at.where) return true;
  if (trace_name_expand(where, sizeof where, r->metrics_at.where, (uint32_t)r->child) != WEIR_OK) {
    cmd_message("%s.", weir_error_message());
    return false;
  }
  r->metrics_at.where = where;
  r->metrics = metrics_open(&r->metrics_at);
  r->metrics_at.where = NULL;
  return r->metrics != NULL;
}

static int run_to_the_end(run *r)
{
  (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (!fork_program(r)) return CMD_RUN_FAILED;
  char *output = open_metrics(r) ? open_trace(r) : NULL;
  if (!output) {
    abandon_child(r);
    (void)rmdir(r->env.spool_dir);
    return CMD_RUN_FAILED;
  }
  look_at_program(r);
  int error = open_gate(r);
  int status;
  if (error) {
    (void)waitpid(r->child, NULL, 0);
    job_discard(&r->job);
    status = cmd_cannot_run(r->argv[0], error);
  } else {
    if (r->env.delay_ns || r->env.duration_ns)
      steer_window(collector_steer(r->job.collector), r->env.delay_ns, r->env.duration_ns);
    follow_processes(r);
    finish_run(r);
    status = -1;
  }
  free(output);
  free(r->others);
  return status < 0 ? end_like(&r->end) : status;
}

/* Becomes the program, with fixes and without a trace, or as it is where they cannot be read. Returns
 * an exit status where that fails. */
static int run_unrecorded(const run *r)
{
  if (r->env.apply_path)
    environment_apply(&r->env);
  else
    environment_apply_bare(&r->env);
  return cmd_cannot_run(r->argv[0], cmd_exec(r->argv));
}

/* Returns false after a message about an option that does not go with fixes. */
static bool goes_with_fixes(const cmd *c, const run *r)
{
  const environment *e = &r->env;
  const struct {
    const char *name;
    bool given;
  } never[] = {{"--mode", e->mode}, {"--reroute", e->reroute}, {"--cache-rules", e->rules}},
    recorded[] = {{"--stacks", e->stacks},   {"--device-times", e->device_times},
                  {"--hash", e->hash},       {"--python", e->python},
                  {"--redact", e->redact},   {"--dormant", e->dormant},
                  {"--no-wait", r->no_wait}, {"--metrics", r->metrics_at.where}};
  if (!e->apply) return true;
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    if (never[i].given)
      return cmd_usage(c, "%s and --apply exclude each other", never[i].name), false;
  for (size_t i = 0; i < sizeof recorded / sizeof *recorded && !r->output; i++)
    if (recorded[i].given)
      return cmd_usage(c, "with --apply, %s needs -o: nothing is recorded", recorded[i].name),
             false;
  if (!e->stacks || strcmp(e->stacks, "off") != 0) return true;
  return cmd_usage(c, "--apply needs stacks: --stacks=off does not go with it"), false;
}

/* Whether the trace may be had: a look before anything is made; the pid of the program is not known
 * so far. Returns 0, or an exit status after a message. */
static int look_at_output(const cmd *c, const run *r)
{
  bool shared;
  if (!r->output) return 0;
  char *name = name_trace(r, getpid());
  if (!name) return cmd_usage(c, "%s", weir_error_message());
  bool may = output_may_share(name, r->force, launched_rank(), &shared);
  free(name);
  return may ? 0 : CMD_RUN_FAILED;
}

/* How much is kept, and when it is dumped, by options and by the environment. Returns false after a
 * message. */
static bool read_keeping(const cmd *c, run *r)
{
  r->keeps = recorder_asked(&r->keeping, r->env.keep, r->dumps, r->env.dump_at);
  r->env.keep_bytes = r->keeping.keep.bytes;
  if (!r->keeps && (r->dumps >= 0 || r->env.dump_at))
    return cmd_usage(c, "--%s goes with --keep", r->env.dump_at ? "dump-at" : "dumps"), false;
  if (r->keeps && r->env.apply) return cmd_usage(c, "--keep and --apply exclude each other"), false;
  return true;
}

/* Does everything after the options. Returns an exit status. */
static int prepare_and_run(const cmd *c, run *r)
{
  if (!environment_siblings(&r->env) || !environment_rules(&r->env)) return CMD_RUN_FAILED;
  if (r->list_unsupported) return environment_list_unsupported(&r->env);
  if (!r->argv[0]) return cmd_usage(c, "which program? PROGRAM is missing");
  int error = find_program(r->argv[0]);
  if (error) return cmd_cannot_run(r->argv[0], error);
  environment_fixes(&r->env);
  if (r->env.apply && !r->output) return run_unrecorded(r);
  int status = r->keeps ? 0 : look_at_output(c, r);
  if (status) return status;
  if (!environment_spool_dir(&r->env)) return CMD_RUN_FAILED;
  return run_to_the_end(r);
}

int run_main(const cmd *c, int argc, char **argv)
{
  run r = {0};
  cmd_line line = {.read = read_run_option, .context = &r.env, .stops = true};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  take_run_options(&r, &line);
  if (r.list_unsupported && !r.env.sim) return cmd_usage(c, "--list-unsupported goes with --sim");
  if (r.env.zero && r.env.poison) return cmd_usage(c, "--zero and --poison exclude each other");
  if ((r.env.zero || r.env.poison) && r.env.mode && !strcmp(r.env.mode, "observe"))
    return cmd_usage(c, "--%s is for the modes strict and relaxed", r.env.zero ? "zero" : "poison");
  if (!goes_with_fixes(c, &r) || !read_keeping(c, &r)) return CMD_USAGE;
  if (r.env.capture && (r.env.delay_ns || r.env.duration_ns))
    return cmd_usage(c, "--capture and --%s exclude each other",
                     r.env.delay_ns ? "delay" : "duration");
  r.argv = argv + at; /* NULL-terminated, as argv is */
  int status = prepare_and_run(c, &r);
  metrics_close(r.metrics);
  environment_clear(&r.env);
  return status;
}
