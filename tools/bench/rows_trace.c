/* rows_trace.c: what becomes of events: kept through SIGKILL, imported, exported.
 *
 * Imports and exports are measured at 1, 10 and, when asked for, 30 M events: each row's value is a
 * million's. What is reported of traces is in rows_report.c. */
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"
#include "tools/bench/sized.h"

enum { KILLS = 20 };

/* ---- SIGKILL --------------------------------------------------------------------------------- */

static long long query_number(const char *trace, const char *query)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  long long n = -1;
  if (sqlite3_open_v2(trace, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
      sqlite3_prepare_v2(db, query, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW)
    n = sqlite3_column_int64(s, 0);
  (void)sqlite3_finalize(s);
  (void)sqlite3_close(db);
  return n;
}

/* The number the victim had counted to, once it has begun; waits for that. */
static uint64_t read_count(const char *path, uint64_t at_least)
{
  uint64_t n = 0;
  for (int fd = -1; n < at_least;) {
    if (fd < 0) fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || pread(fd, &n, sizeof n, 0) != sizeof n || n < at_least)
      (void)usleep(200);
    else
      (void)close(fd);
  }
  return n;
}

/* Kills a program at a moment that differs from round to round; events missing, or -1. */
static long long kill_once(int round)
{
  const char *count = bench_text("%s/count", bench_scratch);
  const char *trace = bench_text("%s/kill.db", bench_scratch);
  (void)unlink(count);
  pid_t pid = fork();
  if (pid == 0) {
    (void)execl(bench_text("%s/bin/weir", bench_build), "weir", "run", "--sim", "--force", "-o",
                trace, "--", "sh", "-c",
                "exec 2>/dev/null; \"$0\" count \"$1\"& echo $! >\"$1.pid\"; wait $!",
                bench_text("%s/bench/calls", bench_build), count, (char *)NULL);
    _exit(127);
  }
  (void)read_count(count, 1000 + (uint64_t)round * 7919);
  FILE *f = fopen(bench_text("%s.pid", count), "r");
  int victim = 0, status;
  if (!f || fscanf(f, "%d", &victim) != 1 || kill(victim, SIGKILL) < 0) return -1;
  (void)fclose(f);
  if (waitpid(pid, &status, 0) != pid) return -1;
  long long committed = (long long)read_count(count, 1);
  long long seen = query_number(
      trace,
      "SELECT count(*) FROM event JOIN api ON api.id = event.api WHERE api.name = 'cuEventQuery'");
  if (seen < 0) return -1;
  return seen < committed ? committed - seen : 0;
}

static void sigkill(measured *m, const row *r)
{
  (void)r;
  for (int i = 0; i < KILLS; i++) {
    long long lost = kill_once(i);
    if (lost < 0) {
      bench_give_up(m, "a round failed");
      return;
    }
    m->value += (double)lost;
  }
}

/* ---- import ---------------------------------------------------------------------------------- */

/* On one processor; `figures`: "now", it computes what reports show, or "later". */
static bool run_import(const char *figures, const char *folder, const char *trace, double *wall)
{
  const char *weir = bench_text("%s/bin/weir", bench_build),
             *option = bench_text("--figures=%s", figures);
  const char *const argv[] = {"taskset", "-c",   "0",  weir,  "import", "--force",
                              option,    folder, "-o", trace, NULL};
  return bench_run(NULL, wall, NULL, argv);
}

static void import(measured *m, const row *r)
{
  (void)r;
  const char *folder = bench_text("%s/spools", bench_scratch),
             *trace = bench_text("%s/import.db", bench_scratch);
  double rates[3], wall[3];
  if (!sized_spools(folder, 2, MIX_STEPS)) {
    bench_give_up(m, "the spools could not be written");
    return;
  }
  for (int i = 0; i < 3; i++) {
    if (!run_import("now", folder, trace, &wall[i])) {
      bench_give_up(m, "weir import failed");
      return;
    }
    rates[i] = 2.0 * SIZED_EVENTS / bench_cpu_seconds; /* one core's time */
  }
  m->value = bench_median(rates, 3);
  if (!run_import("later", folder, trace, NULL)) {
    bench_give_up(m, "weir import failed");
    return;
  }
  (void)snprintf(m->note, sizeof m->note,
                 "a processor second; 2 M events, lifetimes included, %.2f s wall; %.0f a second"
                 " without what it keeps for reports (one run)",
                 bench_median(wall, 3), 2.0 * SIZED_EVENTS / bench_cpu_seconds);
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", folder, trace, NULL});
}

/* ---- tally ----------------------------------------------------------------------------------- */

enum { TALLY_TURNS = 5 };

/* A tally of a spool and its import, by turns: the quotient of their processor times. The resident
 * memory is that of the tally. */
static bool forget_tally(const char *folder)
{
  return bench_run(NULL, NULL, NULL,
                   (const char *[]){"sh", "-c", "rm -f \"$0\"/*.tally", folder, NULL});
}

static bool tally_once(const char *folder, double *tally, double *import_, long *kib)
{
  const char *trace = bench_text("%s/tally.db", bench_scratch);
  const char *const tallies[] = {
      "sh",   "-c", "exec \"$0\" \"$1\"/*.spool", bench_text("%s/bench/tally", bench_build),
      folder, NULL};
  const char *const imports[] = {bench_text("%s/bin/weir", bench_build),
                                 "import",
                                 "--force",
                                 "--figures=later",
                                 folder,
                                 "-o",
                                 trace,
                                 NULL};
  double events;
  if (!bench_run(&events, NULL, kib, tallies) || events < SIZED_EVENTS) return false;
  *tally = bench_cpu_seconds;
  if (!forget_tally(folder) || !bench_run(NULL, NULL, NULL, imports)) return false;
  *import_ = bench_cpu_seconds;
  (void)unlink(trace);
  return true;
}

static void measure_tally(measured *m, const row *r)
{
  const char *folder = bench_text("%s/tallied", bench_scratch);
  double tally[TALLY_TURNS], imports[TALLY_TURNS], ratio[TALLY_TURNS];
  long kib = 0;
  m->failed = !sized_spools(folder, 1, strcmp(r->args[0], "half") ? MIX_STEPS : MIX_HALF);
  for (int i = 0; i < TALLY_TURNS && !m->failed; i++) {
    m->failed = !tally_once(folder, &tally[i], &imports[i], &kib);
    if (!m->failed) ratio[i] = tally[i] / imports[i];
  }
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", folder, NULL});
  if (m->failed) {
    bench_give_up(m, "the spool could not be written, tallied or imported");
    return;
  }
  m->value = bench_median(ratio, TALLY_TURNS);
  m->with = bench_median(tally, TALLY_TURNS);
  m->without = bench_median(imports, TALLY_TURNS);
  (void)snprintf(m->note, sizeof m->note,
                 "processor seconds of import, of the tally; %ld KiB resident", kib);
}

/* A recorder that keeps half of a spool leaves a window, which is imported; by turns with the import
 * of the whole spool: the quotient of their processor times an event that is in the spool. */
static bool dump_once(const char *folder, double *dump, double *import_)
{
  const char *trace = bench_text("%s/dump.db", bench_scratch);
  const char *const tallies[] = {"sh",
                                 "-c",
                                 "exec \"$0\" -k 33554432 \"$1\"/*.spool",
                                 bench_text("%s/bench/tally", bench_build),
                                 folder,
                                 NULL};
  const char *const imports[] = {bench_text("%s/bin/weir", bench_build),
                                 "import",
                                 "--force",
                                 "--figures=later",
                                 folder,
                                 "-o",
                                 trace,
                                 NULL};
  double before = 0;
  bool good = bench_run(&before, NULL, NULL, tallies) && before > SIZED_EVENTS / 4.0 &&
              before < SIZED_EVENTS && bench_run(NULL, NULL, NULL, imports);
  *dump = bench_cpu_seconds / (SIZED_EVENTS - before) * 1e6;
  good = good && forget_tally(folder) && bench_run(NULL, NULL, NULL, imports);
  *import_ = bench_cpu_seconds / SIZED_EVENTS * 1e6;
  (void)unlink(trace);
  return good;
}

static void measure_dump(measured *m, const row *r)
{
  const char *folder = bench_text("%s/dumped", bench_scratch);
  double dump[TALLY_TURNS], imports[TALLY_TURNS], ratio[TALLY_TURNS];
  m->failed = !sized_spools(folder, 1, strcmp(r->args[0], "half") ? MIX_STEPS : MIX_HALF);
  for (int i = 0; i < TALLY_TURNS && !m->failed; i++) {
    m->failed = !dump_once(folder, &dump[i], &imports[i]);
    if (!m->failed) ratio[i] = dump[i] / imports[i];
  }
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", folder, NULL});
  if (m->failed) {
    bench_give_up(m, "the spool could not be written, cut or imported");
    return;
  }
  m->value = bench_median(ratio, TALLY_TURNS);
  m->with = bench_median(dump, TALLY_TURNS);
  m->without = bench_median(imports, TALLY_TURNS);
  (void)snprintf(m->note, sizeof m->note, "processor seconds of import, of a dump, of 1 M events");
}

/* ---- by size --------------------------------------------------------------------------------- */

/* Returns the processor seconds for 1 M events, without the time of other processes. */
static void measure_export(measured *m, const row *r)
{
  const char *out = bench_text("%s/out", bench_scratch);
  const sized_trace *t = sized_trace_of(m, r, atoi(r->args[1]), MIX_STEPS);
  struct stat file = {0};
  double cpu, wall;
  long kib;
  if (!t) return;
  const char *const argv[] = {bench_text("%s/bin/weir", bench_build),
                              "export",
                              "--format",
                              r->args[0],
                              "-o",
                              out,
                              t->path,
                              NULL};
  if (!strcmp(r->args[0], "import")) {
    out = t->path, cpu = t->import_cpu, wall = t->import_wall, kib = t->import_kib;
  } else if (bench_run(NULL, &wall, &kib, argv)) {
    cpu = bench_cpu_seconds;
  } else {
    bench_give_up(m, "weir failed");
    return;
  }
  m->value = cpu / t->millions;
  int n = snprintf(m->note, sizeof m->note, "%.1f s of a processor, %.1f s wall; %ld MiB resident",
                   cpu, wall, kib / 1024);
  if (!stat(out, &file))
    (void)snprintf(m->note + n, sizeof m->note - (size_t)n, "; a file of %.1f MiB, %.2f a million",
                   (double)file.st_size / (1 << 20),
                   (double)file.st_size / (1 << 20) / t->millions);
  if (out != t->path) (void)unlink(out);
}

#define SIZED(name, format, title, target)                                                         \
  AT_MOST(name "-1m", title " of 1 M events", "s/M", target, measure_export, NULL, format, "1"),   \
      AT_MOST(name "-10m", title " of 10 M events", "s/M", target, measure_export, NULL, format,   \
              "10"),                                                                               \
      AT_MOST(name "-30m", title " of 30 M events", "s/M", target, measure_export, NULL, format,   \
              "30")

const row rows_trace[] = {
    AT_MOST("sigkill", "committed events lost by SIGKILL", "events", 0, sigkill,
            "20 programs killed in full flight, each counting its own calls", NULL),
    AT_LEAST("import", "import, one core", "events/s", 700e3, import, NULL, NULL),
    AT_MOST("tally", "tally / import, a training loop", "ratio", 0.10, measure_tally, NULL,
            "steps"),
    AT_MOST("tally-half", "tally / import, 8 threads, half memory", "ratio", 0.10, measure_tally,
            NULL, "half"),
    AT_MOST("dump", "dump of 1 M events / import of 1 M", "ratio", 1.5, measure_dump, NULL,
            "steps"),
    AT_MOST("dump-half", "dump / import, 8 threads, half memory", "ratio", 1.5, measure_dump, NULL,
            "half"),
    SIZED("import", "import", "import", 1.5),
    SIZED("export-perfetto", "perfetto", "timeline", 30),
    SIZED("export-pprof", "pprof", "profile", 10),
    {0},
};
