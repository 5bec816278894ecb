/* rows_trace.c: what becomes of events: kept through SIGKILL, imported, reported, a page.
 *
 * Spools for import and report are written here with the writer that programs use: a training-like
 * mix of copies, launches, waits, allocations and frees from 200 call sites. What comes of them is
 * measured at 1, 10 and, when asked for, 30 M events: each row's value is a million's. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/trace/api.h"
#include "core/trace/spool.h"
#include "tools/bench/bench.h"

enum { KILLS = 20, SITES = 200, SPOOL_EVENTS = 1000000 };

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

/* ---- spools ---------------------------------------------------------------------------------- */

static uint16_t api_of(const char *name)
{
  for (uint32_t i = 1; i < api_total; i++)
    if (!strcmp(api_row(i)->name, name)) return (uint16_t)i;
  return 0;
}

static void write_stacks(spool_writer *w)
{
  for (uint32_t id = 1; id <= SITES; id++) {
    uint64_t frames[16];
    trace_event head = {.a = id, .bytes = 16};
    for (int k = 0; k < 16; k++)
      frames[k] = UINT64_C(0x400000) + id * 64u + (unsigned)k * 4096u;
    (void)spool_writer_extended(w, WEIR_EV_STACK, &head, frames, sizeof frames);
  }
}

typedef struct mix {
  uint16_t alloc, release, copy, sync, launch; /* api numbers */
} mix;

/* The n-th event of the mix, into a slot. */
static void make_event(trace_event *e, uint64_t n, const mix *x)
{
  uint64_t step = n / 10, pointer = UINT64_C(0x10000000000) + step % 4096 * 65536;
  static const uint8_t kinds[10] = {WEIR_EV_ALLOC, WEIR_EV_COPY,   WEIR_EV_LAUNCH, WEIR_EV_LAUNCH,
                                    WEIR_EV_SYNC,  WEIR_EV_LAUNCH, WEIR_EV_COPY,   WEIR_EV_SYNC,
                                    WEIR_EV_COPY,  WEIR_EV_FREE};
  const uint16_t apis[13] = {[WEIR_EV_ALLOC] = x->alloc,
                             [WEIR_EV_FREE] = x->release,
                             [WEIR_EV_COPY] = x->copy,
                             [WEIR_EV_SYNC] = x->sync,
                             [WEIR_EV_LAUNCH] = x->launch};
  memset(e, 0, sizeof *e);
  e->kind = kinds[n % 10];
  e->api = apis[e->kind];
  e->start = clock_ticks();
  e->stack = (uint32_t)(n % SITES) + 1;
  e->src_device = WEIR_DEVICE_NONE;
  e->a = pointer;
  e->bytes = e->kind == WEIR_EV_SYNC ? 0 : 65536;
  e->stream = WEIR_STREAM_LEGACY;
  e->mem = WEIR_MEM_DEVICE;
  event_set_duration(e, 2000);
  if (e->kind == WEIR_EV_COPY) {
    e->copy_kind = WEIR_COPY_HTOD;
    e->mem = WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4;
    e->b = UINT64_C(0x7f0000000000) + n % 1024 * 4096;
  } else if (e->kind == WEIR_EV_SYNC) {
    e->sync_type = WEIR_SYNC_CONTEXT;
    e->mem = 0;
  }
}

/* In a child of its own, since a process has one spool. */
static int write_spool(const char *folder, uint64_t events)
{
  clock_init();
  spool_options o = {.directory = folder,
                     .limit_bytes = UINT64_C(2) << 30,
                     .api_count = api_total,
                     .api_hash = api_table_hash(api_total)};
  mix x = {api_of("cuMemAlloc_v2"), api_of("cuMemFree_v2"), api_of("cuMemcpyHtoD_v2"),
           api_of("cuCtxSynchronize"), api_of("cuLaunchKernel")};
  spool_writer w = {0};
  if (spool_open(&o) != WEIR_OK) return 1;
  write_stacks(&w);
  for (uint64_t n = 0; n < events; n++) {
    trace_event *e = spool_writer_slots(&w, 1);
    if (!e) return 1;
    make_event(e, n, &x);
    spool_writer_commit(&w, 1);
  }
  spool_writer_release(&w);
  spool_close();
  return 0;
}

static bool write_spools(const char *folder, int count)
{
  if (mkdir(folder, 0700) < 0 && errno != EEXIST) return false;
  for (int i = 0; i < count; i++) {
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(write_spool(folder, SPOOL_EVENTS));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status) return false;
  }
  return true;
}

/* ---- import ---------------------------------------------------------------------------------- */

static void import(measured *m, const row *r)
{
  (void)r;
  const char *folder = bench_text("%s/spools", bench_scratch),
             *trace = bench_text("%s/import.db", bench_scratch);
  double rates[3], wall[3];
  if (!write_spools(folder, 2)) {
    bench_give_up(m, "the spools could not be written");
    return;
  }
  const char *const argv[] = {"taskset", "-c",      "0",    bench_text("%s/bin/weir", bench_build),
                              "import",  "--force", folder, "-o",
                              trace,     NULL};
  for (int i = 0; i < 3; i++) {
    if (!bench_run(NULL, &wall[i], NULL, argv)) {
      bench_give_up(m, "weir import failed");
      return;
    }
    rates[i] = 2.0 * SPOOL_EVENTS / bench_cpu_seconds; /* one core's time, whoever else has it */
  }
  m->value = bench_median(rates, 3);
  (void)snprintf(m->note, sizeof m->note,
                 "a processor second; 2 M events, lifetimes included, %.2f s wall",
                 bench_median(wall, 3));
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", folder, trace, NULL});
}

/* ---- by size --------------------------------------------------------------------------------- */

/* A trace of so many processes, 1 M events each. */
typedef struct sized_trace {
  int millions;
  bool made;
  double cpu_seconds, seconds; /* of its import */
  long kib;
} sized_trace;

static bool make_sized(measured *m, sized_trace *t, const char *trace)
{
  const char *folder = bench_text("%s/spools-%d", bench_scratch, t->millions);
  const char *const argv[] = {
      bench_text("%s/bin/weir", bench_build), "import", "--force", folder, "-o", trace, NULL};
  if (t->made) return true;
  t->made = write_spools(folder, t->millions) && bench_run(NULL, &t->seconds, &t->kib, argv);
  t->cpu_seconds = bench_cpu_seconds;
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", folder, NULL});
  if (!t->made) bench_give_up(m, "the trace could not be made");
  return t->made;
}

/* What the row does with the trace; false: it failed. *written: its file. */
static bool run_sized(const row *r, const char *trace, sized_trace *t, const char **written)
{
  const char *weir = bench_text("%s/bin/weir", bench_build), *what = r->args[0],
             *out = bench_text("%s/out", bench_scratch);
  const char *const report[] = {weir, "report", trace, NULL},
                    *const findings[] = {weir, "report", "findings", trace, NULL},
                    *const page[] = {weir, "report", "--html", "-o", out, trace, NULL},
                    *const export[] = {weir, "export", "--format", what, "-o", out, trace, NULL};
  const char *const *argv = !strcmp(what, "report")     ? report
                            : !strcmp(what, "findings") ? findings
                            : !strcmp(what, "page")     ? page
                                                        : export;
  *written = argv == page || argv == export ? out : NULL;
  bool good = bench_run(NULL, &t->seconds, &t->kib, argv);
  t->cpu_seconds = bench_cpu_seconds;
  return good;
}

/* Processor seconds for each 1 M events, whoever else has the machine. */
static void measure_sized(measured *m, const row *r)
{
  static sized_trace traces[] = {{.millions = 1}, {.millions = 10}, {.millions = 30}};
  int at = 0;
  while (traces[at].millions != atoi(r->args[1]))
    at++;
  if (traces[at].millions == 30 && !bench_asked) {
    m->absent = true;
    (void)snprintf(m->note, sizeof m->note, "ROWS=%s measures it, with 4 GiB of disk", r->name);
    return;
  }
  char trace[256];
  struct stat file = {0};
  (void)snprintf(trace, sizeof trace, "%s/%d.db", bench_scratch, traces[at].millions);
  if (!make_sized(m, &traces[at], trace)) return;
  sized_trace t = traces[at];
  const char *written = trace;
  if (strcmp(r->args[0], "import") != 0 && !run_sized(r, trace, &t, &written)) {
    bench_give_up(m, "weir failed");
    return;
  }
  m->value = t.cpu_seconds / t.millions;
  int n = snprintf(m->note, sizeof m->note, "%.1f s of a processor, %.1f s wall; %ld MiB resident",
                   t.cpu_seconds, t.seconds, t.kib / 1024);
  if (written && !stat(written, &file))
    (void)snprintf(m->note + n, sizeof m->note - (size_t)n, "; a file of %.1f MiB, %.2f a million",
                   (double)file.st_size / (1 << 20), (double)file.st_size / (1 << 20) / t.millions);
  if (written && written != trace) (void)unlink(written);
}

#define SIZED(name, args, title, target)                                                           \
  AT_MOST(name "-1m", title " of 1 M events", "s/M", target, measure_sized, NULL, args, "1"),      \
      AT_MOST(name "-10m", title " of 10 M events", "s/M", target, measure_sized, NULL, args,      \
              "10"),                                                                               \
      AT_MOST(name "-30m", title " of 30 M events", "s/M", target, measure_sized, NULL, args,      \
              "30")

const row rows_trace[] = {
    AT_MOST("sigkill", "committed events lost by SIGKILL", "events", 0, sigkill,
            "20 programs killed in full flight, each counting its own calls", NULL),
    AT_LEAST("import", "import, one core", "events/s", 700e3, import, NULL, NULL),
    SIZED("import", "import", "import", 1.5),
    SIZED("report", "report", "report", 3),
    SIZED("findings", "findings", "findings", 3),
    SIZED("page", "page", "page", 5),
    SIZED("export-perfetto", "perfetto", "timeline", 30),
    SIZED("export-pprof", "pprof", "profile", 10),
    {0},
};
