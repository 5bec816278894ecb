/* bench.c: `make bench`: runs the rows, prints a table, and writes the same as JSON.
 *
 *   bench BUILD JSON [ROW...]
 */
#include "tools/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "tools/weir/base/output_file.h"

static const row *const tables[] = {rows_calls,    rows_trace,  rows_report,
                                    rows_findings, rows_memory, rows_tensor,
                                    rows_gpu,      rows_watch,  NULL};

/* NULL: there are fewer. */
static const row *row_at(size_t n)
{
  for (const row *const *table = tables; *table; table++)
    for (const row *r = *table; r->name; r++)
      if (!n--) return r;
  return NULL;
}

/* ---- output ---------------------------------------------------------------------------------- */

static bool meets_target(const row *r, const measured *m)
{
  return r->at_least ? m->value >= r->target : m->value <= r->target;
}

static const char *value_text(double value)
{
  return value >= 1000 ? bench_text("%.0f", value) : bench_text("%.3g", value);
}

static void print_result(const row *r, const measured *m)
{
  const char *goal = bench_text("%s %s", r->at_least ? ">=" : "<=", value_text(r->target));
  const char *verdict = m->absent            ? "-"
                        : m->failed          ? "FAILED"
                        : meets_target(r, m) ? "met"
                                             : "NOT MET";
  printf("%-38s %-9s %10s %10s  %-7s", r->what, r->unit, goal,
         m->failed || m->absent ? "-" : value_text(m->value), verdict);
  if (m->without > 0)
    printf("  %s -> %s (x %.3f)", value_text(m->without), value_text(m->with),
           m->with / m->without);
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
    (void)fprintf(f, "\"measured\": %.6g, \"met\": %s, ", m->value,
                  meets_target(r, m) ? "true" : "false");
  if (m->without > 0) (void)fprintf(f, "\"without\": %.6g, \"with\": %.6g, ", m->without, m->with);
  (void)fprintf(f, "\"how\": \"%s\"}", m->note);
}

static bool is_asked_for(const char *name, int count, char **names)
{
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return true;
  return count == 0;
}

static int names_known(int count, char **names)
{
  const row *r;
  for (int i = 0; i < count; i++) {
    for (size_t n = 0; (r = row_at(n)) && strcmp(r->name, names[i]) != 0;)
      n++;
    if (r) continue;
    (void)fprintf(stderr, "bench: there is no row '%s'; rows:", names[i]);
    for (size_t n = 0; (r = row_at(n)); n++)
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
  clock_init();
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t x = 0;
    double start = bench_now();
    for (int k = 0; k < ADDS; k++) {
      x += (uint64_t)k;
      __asm__ volatile("" : "+r"(x));
    }
    double middle = bench_now();
    for (int k = 0; k < READS; k++)
      x += clock_ticks();
    adds[i] = (middle - start) / ADDS * 1e9;
    reads[i] = (bench_now() - middle) / READS * 1e9;
    __asm__ volatile("" ::"r"(x));
  }
  *add_ns = bench_median(adds, ROUNDS);
  *clock_ns = bench_median(reads, ROUNDS);
}

static void print_machine(FILE *json)
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
  const row *r;
  (void)fprintf(json, "{\"schema\": \"weir-bench/1\", ");
  print_machine(json);
  printf("%-38s %-9s %10s %10s\n", "what", "unit", "target", "measured");
  (void)fprintf(json, "\"rows\": [");
  for (size_t n = 0; (r = row_at(n)); n++) {
    measured m = {0};
    if (!is_asked_for(r->name, count, names)) continue;
    r->measure(&m, r);
    if (!*m.note)
      (void)snprintf(m.note, sizeof m.note, "%s",
                     m.failed  ? *bench_failure ? bench_failure : "a child failed"
                     : r->note ? r->note
                               : "");
    print_result(r, &m);
    print_json(json, r, &m, first);
    failed += m.failed;
    first = false;
  }
  (void)fprintf(json, "\n]}\n");
  return failed;
}

/* The rows that are asked for. */
typedef struct asked {
  int count;
  char **names;
  int *failed; /* how many did */
} asked;

static weir_status write_rows(FILE *json, const void *context)
{
  const asked *a = context;
  *a->failed = run_rows(json, a->count, a->names);
  return WEIR_OK;
}

int main(int argc, char **argv)
{
  char scratch[] = "/tmp/weir-bench-XXXXXX";
  if (argc < 3) {
    (void)fprintf(stderr, "usage: bench BUILD JSON [ROW]...\n");
    return 2;
  }
  bench_build = argv[1];
  if (!names_known(argc - 3, argv + 3)) return 2;
  bench_asked = argc > 3;
  bench_scratch = mkdtemp(scratch);
  if (!bench_scratch) {
    perror("bench");
    return 1;
  }
  int failed = 0;
  weir_status st = output_write(argv[2], 0666, write_rows, &(asked){argc - 3, argv + 3, &failed});
  if (st) (void)fprintf(stderr, "bench: %s.\n", weir_error_message());
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", bench_scratch, NULL});
  return st || failed;
}
