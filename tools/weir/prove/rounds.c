/* rounds.c: a program run in several ways in turn, and what that changes: see rounds.h.
 *
 * Each round runs every way once, so that what else the machine does falls on all of them. Where
 * Weir is to be in the program a run is a `weir run` of its own; a bare one leaves no trace, and
 * all that is known of it is its time. stdout and the end of every run are compared with those
 * of the first run; when others of the first way differ from it too, the program's output shows
 * something else each time, and is no witness. stdin is empty, as it could be read only once.
 * How much of the processors others had meanwhile is known from /proc/stat, less what our runs
 * had. */
#include "tools/weir/prove/rounds.h"

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
#include <unistd.h>

#include "core/base/clock.h"

static volatile sig_atomic_t stopped;   /* the signal that ends us */
static volatile sig_atomic_t under_way; /* process of the run, 0: none */

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

static char *in_folder(const rounds *w, const char *name)
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

/* Becomes the program. `hung` takes the errno that its exec failed with. */
__attribute__((noreturn)) static void become_bare(const rounds *w, const char *out, const char *err,
                                                  int hung)
{
  if (!take_over_all(out, err)) _exit(CMD_RUN_FAILED);
  environment_apply_bare(&w->sim);
  int error = cmd_exec(w->argv);
  (void)!write(hung, &error, sizeof error);
  _exit(CMD_RUN_FAILED);
}

__attribute__((noreturn)) static void become_run(const rounds *w, unsigned way, const char *out,
                                                 const char *err)
{
  const rounds_way *y = &w->ways[way];
  size_t count = 0, at = 0;
  while (w->argv[count])
    count++;
  char **argv = cmd_alloc((count + 10) * sizeof *argv);
  argv[at++] = cmd_format("weir");
  argv[at++] = cmd_format("run");
  argv[at++] = cmd_format("--output=%s/trace.db", w->folder);
  argv[at++] = y->apply ? cmd_format("--apply=%s", y->apply) : cmd_format("--mode=%s", y->mode);
  argv[at++] = cmd_format("--figures=later");
  argv[at++] = cmd_format("--python=off"); /* places of fixes are addresses of code */
  if (!w->recording) argv[at++] = cmd_format("--stacks=off");
  if (w->sim.sim)
    argv[at++] = w->sim.sim_asked ? cmd_format("--sim=%s", w->sim.sim_asked) : cmd_format("--sim");
  argv[at++] = cmd_format("--");
  memcpy(argv + at, w->argv, count * sizeof *argv);
  if (take_over_all(out, err)) (void)execv("/proc/self/exe", argv);
  _exit(CMD_RUN_FAILED);
}

typedef struct end {
  int status;  /* as waitpid() has it; -1: no run could be made; there was a message */
  int error;   /* a bare run: errno its exec failed with, 0: it ran */
  uint64_t ns; /* from its start to its end */
} end;

/* Starts a run, unless we are to end: a signal comes before, or when it can be passed on to the
 * run. */
static pid_t start_run(const rounds *w, unsigned way, const char *out, const char *err, int hung)
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
  if (pid < 0 && !stopped) cmd_message("cannot fork: %s.", strerror(errno));
  if (!pid && !w->ways[way].mode) become_bare(w, out, err, hung);
  if (!pid) become_run(w, way, out, err);
  return pid;
}

/* Waits until the run ends. Signals are handled meanwhile: waitpid() alone would do, but for tools
 * that hand them on only within calls they know to block (ThreadSanitizer). */
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

static end run_once(const rounds *w, unsigned way, const char *out, const char *err)
{
  end e = {.status = -1};
  int hung[2];
  uint64_t start = clock_monotonic_ns();
  if (pipe2(hung, O_CLOEXEC)) {
    cmd_message("cannot make a pipe: %s.", strerror(errno));
    return e;
  }
  pid_t pid = start_run(w, way, out, err, hung[1]);
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

/* Copies what a run wrote to our stderr. */
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

/* Finds where two files first differ. Returns false when they do not. */
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
static void keep_difference(difference *kept, const difference *d)
{
  if (d->there && (!kept->there || (d->status && !kept->status)))
    *kept = *d; /* an end weighs more */
}

static void compare_run(rounds *w, unsigned way, unsigned run, int end, const char *first,
                        const char *out)
{
  difference d = {.mode = way, .run = run + 1, .expected_end = w->end, .found_end = end};
  d.status = end != w->end;
  d.there = outputs_differ(first, out, &d) || d.status;
  keep_difference(&w->of[way], &d);
  keep_difference(way ? &w->differs : &w->varies, &d);
}

/* ---- all runs -------------------------------------------------------------------------------- */

/* Passes on weir's status and message where a run left no trace: it was none. Returns 0 to go
 * on. */
static int judge_run(const rounds *w, unsigned way, const end *e, const char *trace,
                     const char *err)
{
  int status = e->status;
  if (stopped) return 128 + stopped;
  if (status == -1) return CMD_FAILED;
  if (e->error) return cmd_cannot_run(w->argv[0], e->error);
  if (!w->ways[way].mode || access(trace, R_OK) == 0) return 0;
  show_output(err);
  if (WIFEXITED(status) && WEXITSTATUS(status)) return WEXITSTATUS(status);
  cmd_message("a run of '%s' left no trace.", w->argv[0]);
  return CMD_FAILED;
}

/* Makes one run of a way and notes what is known of it. Returns 0, or the status to end with. */
static int run_way(rounds *w, unsigned way, unsigned run, run_figures *f)
{
  bool is_first = !w->begun;
  char *first = in_folder(w, "first"), *trace = in_folder(w, "trace.db");
  char *out = is_first ? cmd_format("%s", first) : in_folder(w, "out"), *err = in_folder(w, "err");
  (void)unlink(trace);
  end e = run_once(w, way, out, err);
  int status = judge_run(w, way, &e, trace, err);
  *f = (run_figures){.duration_ns = e.ns};
  if (!status && w->ways[way].mode && !w->light && report_figures(f, trace) != WEIR_OK) {
    cmd_message("%s.", weir_error_message());
    status = CMD_FAILED;
  }
  if (!status && w->look && w->ways[way].mode && !w->look(w->context, way, run, trace))
    status = CMD_FAILED;
  if (!status && is_first) w->end = e.status;
  if (!status && !is_first) compare_run(w, way, run, e.status, first, out);
  if (!status && ((is_first && e.status) || e.status != w->end)) show_output(err);
  w->begun = true;
  free(first), free(trace), free(out), free(err);
  return status;
}

static int run_every_round(rounds *w)
{
  int status = 0;
  for (unsigned run = 0; run < w->runs && !status; run++)
    for (unsigned way = 0; way < w->count && !status; way++) {
      if (w->steady && w->varies.there) return 0;
      if (cmd_chatty()) cmd_message("%s, run %u of %u ...", w->ways[way].name, run + 1, w->runs);
      status = run_way(w, way, run, &w->figures[way * w->runs + run]);
    }
  return status;
}

/* ---- who else was there ---------------------------------------------------------------------- */

typedef struct load {
  double all, busy; /* of all processors, s; 0: unknown */
  double own;       /* of ours and of our children, s */
} load;

static double clock_seconds(struct timeval t)
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
  l.own = clock_seconds(self.ru_utime) + clock_seconds(self.ru_stime) +
          clock_seconds(children.ru_utime) + clock_seconds(children.ru_stime);
  return l;
}

static double share_of_others(const rounds *w)
{
  load to = load_now();
  double all = to.all - w->load_all, others = to.busy - to.own - w->load_others;
  if (all < 0.1) return -1; /* too short for the kernel's ticks */
  return others > 0 ? others / all : 0;
}

static int remove_visited(const char *path, const struct stat *info, int type, struct FTW *at)
{
  (void)info, (void)type, (void)at;
  return remove(path);
}

static bool make_folder(rounds *w)
{
  const char *tmp = getenv("TMPDIR");
  w->folder = cmd_format("%s/weir-%s-XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp", w->command);
  if (mkdtemp(w->folder)) return true;
  cmd_message("cannot make a folder %s: %s.", w->folder, strerror(errno));
  return false;
}

/* ---- from begin to end ----------------------------------------------------------------------- */

bool rounds_begin(rounds *w)
{
  if (!environment_siblings(&w->sim) || !make_folder(w)) return false;
  on_signals(on_signal);
  return true;
}

int rounds_record(rounds *w, char **trace)
{
  run_figures ignored;
  w->recording = true;
  if (cmd_chatty()) cmd_message("%s, recorded ...", w->ways[0].name);
  int status = run_way(w, 0, 0, &ignored);
  char *made = in_folder(w, "trace.db");
  *trace = in_folder(w, "recorded.db");
  if (!status && rename(made, *trace)) {
    cmd_message("cannot rename %s: %s.", made, strerror(errno));
    status = CMD_FAILED;
  }
  free(made);
  return status;
}

void rounds_start(rounds *w)
{
  load now = load_now();
  w->load_all = now.all, w->load_others = now.busy - now.own;
  w->figures = cmd_alloc((size_t)w->count * w->runs * sizeof *w->figures);
  w->of = cmd_alloc(w->count * sizeof *w->of);
  w->drawn = clock_monotonic_ns();
}

void rounds_over(rounds *w)
{
  w->others = share_of_others(w);
}

int rounds_run(rounds *w)
{
  rounds_start(w);
  int status = run_every_round(w);
  rounds_over(w);
  return status;
}

static unsigned draw_below(rounds *w, unsigned n)
{
  w->drawn = w->drawn * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)((w->drawn >> 33) % n);
}

int rounds_round(rounds *w, unsigned run, const bool *wanted)
{
  unsigned *order = cmd_alloc(w->count * sizeof *order), left = 0;
  int status = 0;
  for (unsigned i = 0; i < w->count; i++)
    if (wanted[i]) order[left++] = i;
  while (left && !status && !(w->steady && w->varies.there)) {
    unsigned at = draw_below(w, left), way = order[at];
    order[at] = order[--left];
    if (cmd_chatty()) cmd_message("%s, run %u ...", w->ways[way].name, run + 1);
    status = run_way(w, way, run, &w->figures[(size_t)way * w->runs + run]);
  }
  free(order);
  return status;
}

char *rounds_file(const rounds *w, const char *name)
{
  return in_folder(w, name);
}

void rounds_end(rounds *w)
{
  if (w->folder) (void)nftw(w->folder, remove_visited, 16, FTW_DEPTH | FTW_PHYS);
  environment_clear(&w->sim);
  free(w->figures);
  free(w->of);
  free(w->folder);
  w->folder = NULL;
  if (stopped) {
    (void)signal(stopped, SIG_DFL);
    (void)raise(stopped);
  }
}

/* ---- words ----------------------------------------------------------------------------------- */

void run_end_words(int status, char out[64])
{
  if (WIFEXITED(status))
    (void)snprintf(out, 64, "exit status %d", WEXITSTATUS(status));
  else
    (void)snprintf(out, 64, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
}

const char *run_line_words(const char *line)
{
  return *line ? line : "(nothing)";
}

json_t *run_difference_json(const difference *d, const char *mode)
{
  if (!d->there) return json_null();
  json_t *o = json_object();
  char expected[64], found[64];
  run_end_words(d->expected_end, expected);
  run_end_words(d->found_end, found);
  if (mode) json_object_set_new(o, "mode", json_string(mode));
  json_object_set_new(o, "run", json_integer(d->run));
  json_object_set_new(o, "expected_end", json_string(expected));
  json_object_set_new(o, "found_end", json_string(found));
  json_object_set_new(o, "offset", json_integer((json_int_t)d->offset));
  json_object_set_new(o, "line", json_integer((json_int_t)d->line));
  json_object_set_new(o, "expected", json_string(d->expected));
  json_object_set_new(o, "found", json_string(d->found));
  return o;
}
