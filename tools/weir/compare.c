/* compare.c: weir compare: a program run bare and in each mode in turn, and what that changed.
 *
 * Bare is the program alone; each other run is a `weir run` of its own: observe, strict, relaxed,
 * and again, so that what else the machine does falls on all of them. stdout and the end of every
 * run are compared with those of the first bare one; when other bare runs differ from it too, the
 * program's output says something else each time, and is no witness. stdin is empty, as it could be
 * read only once. A bare run leaves no trace: all that is known of it is its time. How much
 * of the processors others had meanwhile is known from /proc/stat, less what our runs had. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "tools/weir/commands.h"
#include "tools/weir/compare.h"
#include "tools/weir/environment.h"

enum { OPT_RUNS, OPT_FORMAT, OPT_SIM };

const cmd_option compare_options[] = {
    [OPT_RUNS] = {"runs", 'n', CMD_ARG_REQUIRED, "N", "runs in each mode (default 3)", 0},
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT", "text (default) or json", 0},
    [OPT_SIM] = {"sim", 0, CMD_ARG_OPTIONAL, "N[,CARD]",
                 "run on N software devices (default 1) instead of GPUs; CARD: with the costs of "
                 "an a100 or h100",
                 0},
    {0},
};

const char *const compare_modes[COMPARE_MODES] = {"bare", "observe", "strict", "relaxed"};

typedef struct work {
  comparison c;
  bool json;
  char *folder;     /* of traces and outputs; owned */
  environment bare; /* what the bare program needs of it: the software device, or nothing */
} work;

static volatile sig_atomic_t stopped;   /* the signal that ends us */
static volatile sig_atomic_t under_way; /* process of the run, 0: none */

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  work *w = context;
  long n = 0;
  switch (at) {
  case OPT_RUNS:
    if (!cmd_number(value, 1, COMPARE_MOST_RUNS, &n)) {
      cmd_usage(c, "--runs takes a number from 1 to %d, not '%s'", COMPARE_MOST_RUNS, value);
      return false;
    }
    w->c.runs = (unsigned)n;
    return true;
  case OPT_FORMAT:
    return cmd_take_format(c, value, &w->json);
  default:
    return environment_take_sim(c, &w->bare, value);
  }
}

/* ---- one run --------------------------------------------------------------------------------- */

static const int ends[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

static void on_signal(int number)
{
  stopped = number;
  /* What a terminal sends, the run has too. */
  if (under_way && (number == SIGTERM || number == SIGHUP)) (void)kill((pid_t)under_way, number);
}

/* What is ignored stays so. */
static void on_signals(void (*handler)(int))
{
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    struct sigaction now, then = {.sa_handler = handler, .sa_flags = SA_RESTART};
    if (!sigaction(ends[i], NULL, &now) && now.sa_handler != SIG_IGN)
      (void)sigaction(ends[i], &then, NULL);
  }
}

static char *in_folder(const work *w, const char *name)
{
  return cmd_format("%s/%s", w->folder, name);
}

static bool take_over(int fd, const char *path, int flags)
{
  int got = open(path, flags | O_CLOEXEC, 0600);
  return got >= 0 && dup2(got, fd) == fd;
}

static bool take_over_all(const char *out, const char *err)
{
  return take_over(0, "/dev/null", O_RDONLY) && take_over(1, out, O_WRONLY | O_CREAT | O_TRUNC) &&
         take_over(2, err, O_WRONLY | O_CREAT | O_TRUNC);
}

/* The program itself; `hung` is told the errno that its exec failed with. */
__attribute__((noreturn)) static void become_bare(const work *w, const char *out, const char *err,
                                                  int hung)
{
  if (!take_over_all(out, err)) _exit(CMD_RUN_FAILED);
  environment_apply_bare(&w->bare);
  (void)execvp(w->c.argv[0], w->c.argv);
  int error = errno;
  (void)!write(hung, &error, sizeof error);
  _exit(CMD_RUN_FAILED);
}

__attribute__((noreturn)) static void become_run(const work *w, unsigned mode, const char *out,
                                                 const char *err)
{
  size_t count = 0, at = 0;
  while (w->c.argv[count])
    count++;
  char **argv = cmd_alloc((count + 9) * sizeof *argv);
  argv[at++] = cmd_format("weir");
  argv[at++] = cmd_format("run");
  argv[at++] = cmd_format("--output=%s/trace.db", w->folder);
  argv[at++] = cmd_format("--mode=%s", compare_modes[mode]);
  argv[at++] = cmd_format("--stacks=off");
  if (w->bare.sim)
    argv[at++] =
        w->bare.sim_asked ? cmd_format("--sim=%s", w->bare.sim_asked) : cmd_format("--sim");
  argv[at++] = cmd_format("--");
  memcpy(argv + at, w->c.argv, count * sizeof *argv);
  if (take_over_all(out, err)) (void)execv("/proc/self/exe", argv);
  _exit(CMD_RUN_FAILED);
}

typedef struct end {
  int status;  /* as waitpid() has it; -1: no run could be made, and why was said */
  int error;   /* a bare run: errno its exec failed with, 0: it ran */
  uint64_t ns; /* from its start to its end */
} end;

/* Starts a run, unless we are to end: a signal comes before, or when the run can be told of it. */
static pid_t start_run(const work *w, unsigned mode, const char *out, const char *err, int hung)
{
  sigset_t ours, before;
  (void)sigemptyset(&ours);
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
    (void)sigaddset(&ours, ends[i]);
  (void)fflush(NULL);
  (void)sigprocmask(SIG_BLOCK, &ours, &before);
  pid_t pid = stopped ? -1 : fork();
  under_way = pid > 0 ? pid : 0;
  if (!pid) on_signals(SIG_DFL); /* what comes before its exec is meant for it as well */
  (void)sigprocmask(SIG_SETMASK, &before, NULL);
  if (pid < 0 && !stopped) cmd_say("cannot fork: %s.", strerror(errno));
  if (!pid && mode == COMPARE_BARE) become_bare(w, out, err, hung);
  if (!pid) become_run(w, mode, out, err);
  return pid;
}

/* Until the run ends. Signals are handled meanwhile: waitpid() alone would do, but for tools that
 * hand them on only within calls they know to block (ThreadSanitizer). */
static int wait_for_run(pid_t pid)
{
  int status = -1;
  struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
  while (p.fd >= 0 && poll(&p, 1, -1) < 0 && errno == EINTR) {
  }
  if (p.fd >= 0) (void)close(p.fd);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static end run_once(const work *w, unsigned mode, const char *out, const char *err)
{
  end e = {.status = -1};
  int hung[2];
  uint64_t start = clock_monotonic_ns();
  if (pipe2(hung, O_CLOEXEC)) {
    cmd_say("cannot make a pipe: %s.", strerror(errno));
    return e;
  }
  pid_t pid = start_run(w, mode, out, err, hung[1]);
  (void)close(hung[1]);
  while (read(hung[0], &e.error, sizeof e.error) < 0 && errno == EINTR) {
  }
  (void)close(hung[0]);
  if (pid < 0) return e;
  e.status = wait_for_run(pid);
  under_way = 0;
  e.ns = clock_monotonic_ns() - start;
  return e;
}

/* What a run wrote, on our stderr. */
static void show_output(const char *path)
{
  char text[4096];
  FILE *f = fopen(path, "re");
  size_t n;
  while (f && (n = fread(text, 1, sizeof text, f)) > 0)
    (void)fwrite(text, 1, n, stderr);
  if (f) (void)fclose(f);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static void copy_line(char out[80], FILE *f, long start)
{
  size_t n = 0;
  int c;
  if (fseek(f, start, SEEK_SET)) return;
  while (n < 79 && (c = getc(f)) != EOF && c != '\n')
    out[n++] = (char)(c >= ' ' && c < 127 ? c : '?');
  out[n] = 0;
}

/* Where two files first differ; false: nowhere. */
static bool outputs_differ(const char *expected, const char *found, difference *d)
{
  FILE *a = fopen(expected, "re"), *b = fopen(found, "re");
  long at = 0, line_start = 0;
  int x = a ? 0 : EOF, y = b ? 0 : EOF;
  d->line = 1;
  while (a && b && (x = getc(a)) == (y = getc(b)) && x != EOF) {
    at++;
    if (x == '\n') d->line++, line_start = at;
  }
  bool there = x != y;
  d->offset = (uint64_t)at;
  if (there && a) copy_line(d->expected, a, line_start);
  if (there && b) copy_line(d->found, b, line_start);
  if (a) (void)fclose(a);
  if (b) (void)fclose(b);
  return there;
}

/* Compares a run with the first; the first difference of a kind is kept. */
static void compare_run(work *w, unsigned mode, unsigned run, int end, const char *first,
                        const char *out)
{
  difference d = {.mode = mode, .run = run + 1, .expected_end = w->c.end, .found_end = end};
  difference *kept = mode ? &w->c.differs : &w->c.varies;
  d.status = end != w->c.end;
  d.there = outputs_differ(first, out, &d) || d.status;
  if (d.there && (!kept->there || (d.status && !kept->status))) *kept = d; /* an end weighs more */
}

/* ---- all runs -------------------------------------------------------------------------------- */

/* A run that left no trace was none: weir's status and sentence are passed on. 0: go on. */
static int judge_run(const work *w, unsigned mode, const end *e, const char *trace, const char *err)
{
  int status = e->status;
  if (stopped) return 128 + stopped;
  if (status == -1) return CMD_FAILED;
  if (e->error) return cmd_cannot_run(w->c.argv[0], e->error);
  if (mode == COMPARE_BARE || access(trace, R_OK) == 0) return 0;
  show_output(err);
  if (WIFEXITED(status) && WEXITSTATUS(status)) return WEXITSTATUS(status);
  cmd_say("a run of '%s' left no trace.", w->c.argv[0]);
  return CMD_FAILED;
}

/* The run `run` of a mode: 0, or the status to end with. */
static int run_mode(work *w, unsigned mode, unsigned run)
{
  bool is_first = !mode && !run;
  char *first = in_folder(w, "first"), *trace = in_folder(w, "trace.db");
  char *out = is_first ? cmd_format("%s", first) : in_folder(w, "out"), *err = in_folder(w, "err");
  (void)unlink(trace);
  end e = run_once(w, mode, out, err);
  int status = judge_run(w, mode, &e, trace, err);
  run_figures *f = &w->c.figures[mode * w->c.runs + run];
  *f = (run_figures){.duration_ns = e.ns};
  if (!status && mode != COMPARE_BARE && report_figures(f, trace) != WEIR_OK) {
    cmd_say("%s.", weir_error_message());
    status = CMD_FAILED;
  }
  if (!status && is_first) w->c.end = e.status;
  if (!status && !is_first) compare_run(w, mode, run, e.status, first, out);
  if (!status && ((is_first && e.status) || e.status != w->c.end)) show_output(err);
  free(first), free(trace), free(out), free(err);
  return status;
}

static int run_all(work *w)
{
  int status = 0;
  for (unsigned run = 0; run < w->c.runs && !status; run++)
    for (unsigned mode = 0; mode < COMPARE_MODES && !status; mode++) {
      if (cmd_chatty()) cmd_say("%s, run %u of %u ...", compare_modes[mode], run + 1, w->c.runs);
      status = run_mode(w, mode, run);
    }
  return status;
}

/* ---- who else was there ---------------------------------------------------------------------- */

typedef struct load {
  double all, busy; /* of all processors, s; 0: unknown */
  double own;       /* of ours and of our children, s */
} load;

static double seconds(struct timeval t)
{
  return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static load load_now(void)
{
  unsigned long long part[8] = {0}; /* user nice system idle iowait irq softirq steal */
  double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
  struct rusage self, children;
  load l = {0};
  FILE *f = fopen("/proc/stat", "re");
  int n = f ? fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &part[0], &part[1], &part[2],
                     &part[3], &part[4], &part[5], &part[6], &part[7])
            : 0;
  if (f) (void)fclose(f);
  for (int i = 0; i < n; i++) {
    l.all += (double)part[i] * tick;
    if (i != 3 && i != 4) l.busy += (double)part[i] * tick;
  }
  if (getrusage(RUSAGE_SELF, &self) || getrusage(RUSAGE_CHILDREN, &children)) return l;
  l.own = seconds(self.ru_utime) + seconds(self.ru_stime) + seconds(children.ru_utime) +
          seconds(children.ru_stime);
  return l;
}

static double share_of_others(load from)
{
  load to = load_now();
  double all = to.all - from.all, others = to.busy - from.busy - (to.own - from.own);
  if (all < 0.1) return -1; /* too short for the kernel's ticks */
  return others > 0 ? others / all : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
  (void)st, (void)type, (void)at;
  return remove(path);
}

static bool make_folder(work *w)
{
  const char *tmp = getenv("TMPDIR");
  w->folder = cmd_format("%s/weir-compare-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
  if (mkdtemp(w->folder)) return true;
  cmd_say("cannot make a folder %s: %s.", w->folder, strerror(errno));
  return false;
}

static int compare_and_say(work *w)
{
  if (!environment_siblings(&w->bare) || !make_folder(w)) return CMD_FAILED;
  w->c.figures = cmd_alloc((size_t)COMPARE_MODES * w->c.runs * sizeof *w->c.figures);
  on_signals(on_signal);
  load before = load_now();
  int status = run_all(w);
  w->c.others = share_of_others(before);
  (void)nftw(w->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  if (stopped) {
    (void)signal(stopped, SIG_DFL);
    (void)raise(stopped);
  }
  if (status) return status;
  if (!w->json) {
    compare_print_text(&w->c);
  } else if (!compare_print_json(&w->c)) {
    cmd_say("cannot print the comparison.");
    return CMD_FAILED;
  }
  return compare_good(&w->c) ? 0 : CMD_FAILED;
}

int compare_main(const cmd *c, int argc, char **argv)
{
  work w = {.c.runs = 3};
  int at = cmd_parse(c, argc, argv, true, on_option, &w);
  if (at < 1) return at ? CMD_USAGE : 0;
  w.c.argv = argv + at; /* NULL-terminated, as argv is */
  if (!argv[at]) return cmd_usage(c, "which program? PROGRAM is missing");
  int status = compare_and_say(&w);
  environment_clear(&w.bare);
  free(w.c.figures);
  free(w.folder);
  return status;
}
