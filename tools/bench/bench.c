/* bench.c: `make bench`: runs the rows, prints a table, and writes the same as JSON.
 *
 *   bench BUILD JSON [ROW...]
 */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "core/base/clock.h"

const char *bench_build, *bench_scratch;

const row bench_rows[] = {
    {"call", "observed call, no stack, in bursts", "ns added", 40, false, measure_call},
    {"call-sustained", "observed call, no stack, 1 M at once", "ns added", 40, false,
     measure_call_sustained},
    {"stack", "observed call, 32-frame cached stack", "ns added", 400, false, measure_call_stack},
    {"pair-4k", "malloc + free beside two calls, 4 KiB", "ns added", 120, false, measure_pair_4k},
    {"pair-1m", "malloc + free beside two calls, 1 MiB", "ns added", 120, false, measure_pair_1m},
    {"pair-64m", "malloc + free beside two calls, 64 MiB", "ns added", 120, false,
     measure_pair_64m},
    {"pair-1g", "malloc + free beside two calls, 1 GiB", "ns added", 120, false, measure_pair_1g},
    {"program", "whole program, 100 k calls/s", "% added", 1, false, measure_program},
    {"forks", "a fork, 1 at once, over 2 x bare", "ms", 0.2, false, measure_forks},
    {"forks-64", "a fork, 64 at once, over 2 x bare", "ms", 0.2, false, measure_forks_64},
    {"dlsym", "dlsym of a name that isn't ours", "ns added", 20, false, measure_dlsym},
    {"reroute-alloc", "rerouted hit: malloc", "ns", 60, false, measure_reroute_alloc},
    {"reroute-free", "rerouted hit: free, relaxed", "ns", 80, false, measure_reroute_free},
    {"reroute-strict", "rerouted hit: free, strict, idle device", "ns", 80, false,
     measure_reroute_free_strict},
    {"launch-track", "launch tracking: strict, relaxed", "ns added", 5, false,
     measure_launch_track},
    {"staging", "staged / pageable copy, slow host", "x", 2, true, measure_staging},
    {"staging-peer", "staged / the driver's copy between devices", "x", 1.6, true,
     measure_staging_peer},
    {"sigkill", "committed events lost by SIGKILL", "events", 0, false, measure_sigkill},
    {"import", "import, one core", "events/s", 700e3, true, measure_import},
    {"report", "report on 10 M events", "s", 30, false, measure_report_time},
    {"report-rss", "report on 10 M events", "GiB", 2, false, measure_report_memory},
    {"alloc-hit", "allocator hit, malloc + free", "ns", 15, false, measure_alloc_hit},
    {"alloc-ratio", "the same / mimalloc's", "x", 1.5, false, measure_alloc_ratio},
    {"alloc-p99", "allocator hit, 99th percentile", "ns", 100, false, measure_alloc_p99},
    {"alloc-pinned", "pinned hit, malloc + free", "ns", 30, false, measure_alloc_pinned},
    {"alloc-remote", "free on another thread", "ns", 60, false, measure_alloc_remote},
    {"alloc-random", "100 k live blocks, random sizes", "ns", 120, false, measure_alloc_random},
    {"alloc-tail", "the same, 99.9th percentile", "ns", 1000, false, measure_alloc_random_tail},
    {"alloc-random-ratio", "100 k live: median / mimalloc's", "x", 1, false,
     measure_alloc_random_ratio},
    {"alloc-flat", "1 M live blocks / 1 k live blocks", "x", 1.3, false, measure_alloc_flat},
    {"alloc-victims", "its growth at random / mimalloc's", "x", 1, false, measure_alloc_victims},
    {"stream-guard", "a stream guard, there and back", "ns", 50, false, measure_stream_guard},
    {"tensor-add", "add of one element, cpu", "ns", 100, false, measure_tensor_add},
    {"tensor-view", "a view", "ns", 50, false, measure_tensor_view},
    {"tensor-copy", "copy_ of 64 MiB / memcpy", "x", 0.9, true, measure_tensor_copy},
    {"tensor-stream", "add of 64 MiB / a loop in C", "x", 0.9, true, measure_tensor_stream},
    {"tensor-blas", "matmul / OpenBLAS called directly", "x", 0.95, true, measure_tensor_blas},
    {"tensor-builtin", "matmul, built in / OpenBLAS", "x", 0.4, true, measure_tensor_builtin},
    {"tensor-first", "a program's first tensor", "ms", 5, false, measure_tensor_first},
    {"tensor-size", "the library", "MiB", 2, false, measure_tensor_size},
    {"gpu-hit", "GPU: hit, malloc + free", "ns", 15, false, measure_gpu_hit},
    {"gpu-async", "GPU: hit / cudaMallocAsync + FreeAsync", "x", 1, false, measure_gpu_async},
    {"gpu-malloc", "GPU: 32 MiB / cudaMalloc + cudaFree", "x", 1, false, measure_gpu_malloc},
    {"gpu-pinned", "GPU: pinned hit, malloc + free", "ns", 30, false, measure_gpu_pinned},
    {"gpu-dispatch", "GPU: add of 1 element / a launch", "x", 1.5, false, measure_gpu_dispatch},
    {"gpu-add", "GPU: add of 64 MiB / copy there", "x", 0.9, true, measure_gpu_add},
    {"gpu-sum", "GPU: sum of 64 MiB / copy there", "x", 0.9, true, measure_gpu_sum},
    {"gpu-gemm", "GPU: matmul, built in / cuBLAS", "x", 0.4, true, measure_gpu_gemm},
    {"gpu-gemv", "GPU: vector-matrix, built in / copy", "x", 0.5, true, measure_gpu_gemv},
    {NULL, NULL, NULL, 0, false, NULL},
};

/* ---- helpers --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_median(double *values, size_t count)
{
  qsort(values, count, sizeof *values, by_value);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_now(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

const char *bench_text(const char *format, ...)
{
  static char texts[16][4096];
  static unsigned at;
  char *text = texts[at++ % 16];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof texts[0], format, args);
  va_end(args);
  return text;
}

double bench_cpu_seconds;

static double seconds_of(struct timeval t)
{
  return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

bool bench_run(double *number, double *seconds, long *kib, const char *const *argv)
{
  int out[2], status;
  char text[256] = "";
  struct rusage use;
  if (pipe2(out, O_CLOEXEC) < 0) return false;
  double begin = bench_now();
  pid_t pid = fork();
  if (pid == 0) {
    (void)dup2(out[1], 1);
    (void)execvp(argv[0], (char *const *)argv);
    _exit(127);
  }
  (void)close(out[1]);
  size_t used = 0;
  char spill[4096];
  for (ssize_t n; (n = read(out[0], spill, sizeof spill)) > 0;) {
    size_t room = sizeof text - 1 - used, take = (size_t)n < room ? (size_t)n : room;
    memcpy(text + used, spill, take);
    used += take;
  }
  (void)close(out[0]);
  if (pid < 0 || wait4(pid, &status, 0, &use) != pid) return false;
  if (seconds) *seconds = bench_now() - begin;
  bench_cpu_seconds = seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
  if (kib) *kib = use.ru_maxrss;
  if (number) *number = strtod(text, NULL);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- output ---------------------------------------------------------------------------------- */

static bool met(const row *r, const measured *m)
{
  return r->at_least ? m->value >= r->target : m->value <= r->target;
}

static const char *shown(double value)
{
  return value >= 1000 ? bench_text("%.0f", value) : bench_text("%.3g", value);
}

static void print_row(const row *r, const measured *m)
{
  const char *goal = bench_text("%s %s", r->at_least ? ">=" : "<=", shown(r->target));
  const char *verdict = m->absent ? "-" : m->failed ? "FAILED" : met(r, m) ? "met" : "NOT MET";
  printf("%-38s %-9s %10s %10s  %-7s", r->what, r->unit, goal,
         m->failed || m->absent ? "-" : shown(m->value), verdict);
  if (m->without > 0)
    printf("  %s -> %s (x %.3f)", shown(m->without), shown(m->with), m->with / m->without);
  printf("\n%40s%s\n", "", m->note);
  (void)fflush(stdout);
}

static void print_json(FILE *f, const row *r, const measured *m, bool first)
{
  (void)fprintf(f,
                "%s\n  {\"row\": \"%s\", \"what\": \"%s\", \"unit\": \"%s\", \"target\": %g, "
                "\"bound\": \"%s\", ",
                first ? "" : ",", r->name, r->what, r->unit, r->target,
                r->at_least ? "min" : "max");
  if (m->failed || m->absent)
    (void)fprintf(f, "\"measured\": null, \"met\": null, ");
  else
    (void)fprintf(f, "\"measured\": %.6g, \"met\": %s, ", m->value, met(r, m) ? "true" : "false");
  if (m->without > 0) (void)fprintf(f, "\"without\": %.6g, \"with\": %.6g, ", m->without, m->with);
  (void)fprintf(f, "\"how\": \"%s\"}", m->note);
}

static bool asked(const char *name, int count, char **names)
{
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return true;
  return count == 0;
}

static int known(int count, char **names)
{
  for (int i = 0; i < count; i++) {
    const row *r = bench_rows;
    while (r->name && strcmp(r->name, names[i]) != 0)
      r++;
    if (r->name) continue;
    (void)fprintf(stderr, "bench: there is no row '%s'; rows:", names[i]);
    for (r = bench_rows; r->name; r++)
      (void)fprintf(stderr, " %s", r->name);
    (void)fprintf(stderr, "\n");
    return 0;
  }
  return 1;
}

/* Two things no program can change: how long an addition that waits for the one before takes, and a
 * read of the clock that every event needs two of. Shared machines differ by a factor of two from
 * hour to hour; targets in ns are for a processor of some 4 GHz. */
static void measure_machine(double *add_ns, double *clock_ns)
{
  enum { ADDS = 4000000, READS = 200000, ROUNDS = 9 };
  double adds[ROUNDS], reads[ROUNDS];
  weir_clock_init();
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t x = 0;
    double start = bench_now();
    for (int k = 0; k < ADDS; k++) {
      x += (uint64_t)k;
      __asm__ volatile("" : "+r"(x));
    }
    double middle = bench_now();
    for (int k = 0; k < READS; k++)
      x += weir_ticks();
    adds[i] = (middle - start) / ADDS * 1e9;
    reads[i] = (bench_now() - middle) / READS * 1e9;
    __asm__ volatile("" ::"r"(x));
  }
  *add_ns = bench_median(adds, ROUNDS);
  *clock_ns = bench_median(reads, ROUNDS);
}

static void say_machine(FILE *json)
{
  double add, clock;
  measure_machine(&add, &clock);
  printf("this machine, now: %.2f ns an addition, %.1f ns a read of the clock events use\n", add,
         clock);
  (void)fprintf(json, "\"machine\": {\"addition_ns\": %.3g, \"clock_read_ns\": %.3g}, ", add,
                clock);
}

static int run_rows(FILE *json, int count, char **names)
{
  bool first = true;
  int failed = 0;
  (void)fprintf(json, "{\"schema\": \"weir-bench/1\", ");
  say_machine(json);
  printf("%-38s %-9s %10s %10s\n", "what", "unit", "target", "measured");
  (void)fprintf(json, "\"rows\": [");
  for (const row *r = bench_rows; r->name; r++) {
    measured m = {0};
    if (!asked(r->name, count, names)) continue;
    r->measure(&m);
    print_row(r, &m);
    print_json(json, r, &m, first);
    failed += m.failed;
    first = false;
  }
  (void)fprintf(json, "\n]}\n");
  return failed;
}

int main(int argc, char **argv)
{
  char scratch[] = "/tmp/weir-bench-XXXXXX";
  if (argc < 3) {
    (void)fprintf(stderr, "usage: bench BUILD JSON [ROW]...\n");
    return 2;
  }
  bench_build = argv[1];
  if (!known(argc - 3, argv + 3)) return 2;
  bench_scratch = mkdtemp(scratch);
  FILE *json = fopen(argv[2], "w");
  if (!bench_scratch || !json) {
    perror("bench");
    return 1;
  }
  int failed = run_rows(json, argc - 3, argv + 3);
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", bench_scratch, NULL});
  return fclose(json) != 0 || failed;
}
