/* rows_report.c: what the time and memory of reports are by SQLite's own scan of the trace.
 *
 * The scan reads each event's narrow row once (rows of event_row), and its processor time is the
 * unit: a report that is twice that has decoded what it needs and little more. Page, diff and
 * check are compared with a report, or the scan. All are of one run and take turns.
 *
 * The trace is as weir import leaves it: with what reports show computed and kept (reports/whole),
 * which the row of the import pays for. Each command works on a copy of it, so that nothing a
 * command may have kept of an earlier one serves it. What the same takes that is computed of the
 * events, of a trace that has changed since, say, or with other settings, are the rows `anew`: diff
 * and check are compared with such a report. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/bench/sized.h"

enum { TURNS = 3 /* fewer where the trace is large */ };

static double processor_seconds(const struct rusage *use)
{
  return (double)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) +
         (double)(use->ru_utime.tv_usec + use->ru_stime.tv_usec) / 1e6;
}

/* Runs the scan in a child of its own; processor seconds of it, or -1. */
static double scan_seconds(const char *trace)
{
  static const char query[] =
      "SELECT count(*), sum(duration), sum(bytes), sum(start) FROM event_row";
  struct rusage use;
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    sqlite3 *db = NULL;
    sqlite3_stmt *s = NULL;
    bool good = sqlite3_open_v2(trace, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, query, -1, &s, NULL) == SQLITE_OK &&
                sqlite3_step(s) == SQLITE_ROW && sqlite3_column_int64(s, 0) > 0;
    _exit(!good);
  }
  if (pid < 0 || wait4(pid, &status, 0, &use) != pid || status) return -1;
  return processor_seconds(&use);
}

/* A command over a copy of the trace, or two of them; false: it failed. */
static bool run_command(const char *what, const char *trace, double *wall, long *kib, double *cpu)
{
  static const char *const lines[][2] = {
      {"report", "exec \"$0\" report a.db"},
      {"findings", "exec \"$0\" report findings a.db"},
      {"page", "exec \"$0\" report --html -o page.html a.db"},
      {"diff", "exec \"$0\" diff a.db b.db"},
      {"check", "exec \"$0\" check --budget budget a.db"},
      {"report-anew", "exec \"$0\" report --anew a.db"},
      {"findings-anew", "exec \"$0\" report findings --anew a.db"},
      {"page-anew", "exec \"$0\" report --anew --html -o page.html a.db"},
  };
  const char *line = NULL;
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    if (!strcmp(what, lines[i][0])) line = lines[i][1];
  const char *make = "mkdir $0/copy && cd $0/copy && cp $1 a.db &&"
                     " { [ $2 != diff ] || cp $1 b.db; } && echo 'peak <= 1000 GiB' >budget";
  const char *run = bench_text("cd %s/copy && %s >out", bench_scratch, line);
  const char *weir = bench_text("%s/bin/weir", bench_build);
  bool good = bench_run(NULL, NULL, NULL,
                        (const char *[]){"sh", "-c", make, bench_scratch, trace, what, NULL}) &&
              bench_run(NULL, wall, kib, (const char *[]){"sh", "-c", run, weir, NULL});
  *cpu = bench_cpu_seconds;
  return bench_run(NULL, NULL, NULL,
                   (const char *[]){"rm", "-rf", bench_text("%s/copy", bench_scratch), NULL}) &&
         good;
}

static const sized_trace *trace_of(measured *m, const row *r)
{
  return sized_trace_of(m, r, atoi(r->args[2]), r->args[3] ? MIX_STEPS : MIX_HALF);
}

/* Processor time of a command by that of another, or of the scan. */
static void measure_report(measured *m, const row *r)
{
  const sized_trace *t = trace_of(m, r);
  if (!t) return;
  double with[TURNS], without[TURNS], ratio[TURNS], wall = 0, ignored;
  int turns = t->millions == 1 ? TURNS : 1;
  long kib = 0, other;
  bool good = scan_seconds(t->path) >= 0; /* now it lies in memory */
  for (int i = 0; i < turns && good; i++) {
    without[i] = scan_seconds(t->path);
    good = without[i] > 0 &&
           (!strcmp(r->args[1], "scan") ||
            run_command(r->args[1], t->path, &ignored, &other, &without[i])) &&
           run_command(r->args[0], t->path, &wall, &kib, &with[i]);
    ratio[i] = good ? with[i] / without[i] : 0;
  }
  if (!good) {
    bench_give_up(m, *bench_failure ? bench_failure : "the trace cannot be read");
    return;
  }
  m->value = bench_median(ratio, (size_t)turns);
  (void)snprintf(m->note, sizeof m->note,
                 "%.2f s of a processor, %.2f s wall, %ld MiB resident; the %s %.3f s",
                 bench_median(with, (size_t)turns), wall, kib / 1024, r->args[1],
                 bench_median(without, (size_t)turns));
}

static void measure_report_memory(measured *m, const row *r)
{
  const sized_trace *t = trace_of(m, r);
  double wall, cpu;
  long kib;
  if (!t) return;
  if (!run_command(r->args[0], t->path, &wall, &kib, &cpu)) {
    bench_give_up(m, bench_failure);
    return;
  }
  m->value = (double)kib / 1024;
  (void)snprintf(m->note, sizeof m->note, "most of it resident, at %d M events", t->millions);
}

/* Of each size; the larger where they are asked for. */
#define BY_SIZE(ROW) ROW("1"), ROW("10"), ROW("30")
#define RATIO(name, what, by, target, millions)                                                    \
  AT_MOST(name "-" millions "m", name " of " millions " M events", "x " by, target,                \
          measure_report, NULL, what, by, millions)
#define REPORT(millions)   RATIO("report", "report", "scan", 2, millions)
#define FINDINGS(millions) RATIO("findings", "findings", "scan", 2, millions)
#define PAGE(millions)     RATIO("page", "page", "scan", 4, millions)
#define DIFF(millions)     RATIO("diff", "diff", "report-anew", 2, millions)
#define CHECK(millions)    RATIO("check", "check", "report-anew", 2, millions)
#define ANEW(what, target) RATIO(what "-anew", what "-anew", "scan", target, "1")
#define MEMORY(millions)                                                                           \
  AT_MOST("report-memory-" millions "m", "memory of a report of " millions " M", "MiB", 250,       \
          measure_report_memory, NULL, "report", "", millions)
/* The loop of one thread, as `import` and the exports have it. */
#define STEPS(name, target)                                                                        \
  AT_MOST(name "-steps-1m", name " of 1 M events of one loop", "x scan", target, measure_report,   \
          NULL, name, "scan", "1", "steps")

const row rows_report[] = {
    BY_SIZE(REPORT),     REPORT("100"),
    ANEW("report", 2),   BY_SIZE(FINDINGS),
    ANEW("findings", 2), BY_SIZE(PAGE),
    ANEW("page", 4),     BY_SIZE(DIFF),
    BY_SIZE(CHECK),      BY_SIZE(MEMORY),
    STEPS("report", 2),  STEPS("findings", 2),
    STEPS("page", 4),    {0},
};
