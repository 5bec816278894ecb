/* rows_memory.c: the device allocator on the scripted device: bench/alloc, in children. */
#include <stdio.h>

#include "tools/bench/bench.h"

enum { CHILDREN = 9 };

/* The median of some children's numbers. */
static bool median_of(double *value, const char *what, const char *argument, const char *how)
{
  double each[CHILDREN];
  const char *argv[5] = {bench_text("%s/bench/alloc", bench_build), what};
  int n = 2;
  if (argument) argv[n++] = argument;
  if (how) argv[n++] = how;
  for (int i = 0; i < CHILDREN; i++)
    if (!bench_run(&each[i], NULL, NULL, argv)) return false;
  *value = bench_median(each, CHILDREN);
  return true;
}

static void note(measured *m, const char *text)
{
  (void)snprintf(m->note, sizeof m->note, "%s", m->failed ? "a child failed" : text);
}

static void one(measured *m, const char *what, const char *argument, const char *text)
{
  m->failed = !median_of(&m->value, what, argument, NULL);
  note(m, text);
}

/* The quotient of two children that take turns. */
static bool quotient(measured *m, const char *what, const char *above, const char *below,
                     const char *how)
{
  double with[CHILDREN], without[CHILDREN], ratio[CHILDREN];
  const char *const a[] = {bench_text("%s/bench/alloc", bench_build), what, above, how, NULL};
  const char *const b[] = {a[0], what, below, how, NULL};
  for (int i = 0; i < CHILDREN; i++) {
    if (!bench_run(&with[i], NULL, NULL, a) || !bench_run(&without[i], NULL, NULL, b)) return false;
    ratio[i] = with[i] / without[i];
  }
  m->with = bench_median(with, CHILDREN);
  m->without = bench_median(without, CHILDREN);
  m->value = bench_median(ratio, CHILDREN);
  return true;
}

void measure_alloc_hit(measured *m)
{
  one(m, "hit", NULL, "ns a pair of 1 KiB, bursts of 64, median of 9 children");
}

void measure_stream_guard(measured *m)
{
  one(m, "guard", NULL, "ns a stream guard, the current stream asked for, and back; bursts of 64");
}

void measure_alloc_ratio(measured *m)
{
  m->failed = !median_of(&m->value, "hit", "ratio", NULL);
  note(m, "Weir / mimalloc, a pair of 1 KiB, bursts of 64 in turn in one process");
}

void measure_alloc_p99(measured *m)
{
  one(m, "p99", NULL, "ns a pair, 99th percentile of bursts of 16");
}

void measure_alloc_pinned(measured *m)
{
  one(m, "pinned", NULL, "ns a pair of 1 KiB of pinned host memory, bursts of 64");
}

void measure_alloc_remote(measured *m)
{
  one(m, "remote", NULL, "ns a free of what another thread allocated, batches of 512");
}

void measure_alloc_random(measured *m)
{
  one(m, "random", "500", "ns a free + malloc, 16 B to 64 KiB, bursts of 64");
}

void measure_alloc_random_tail(measured *m)
{
  one(m, "random", "999", "mean of the burst of 64 at the 99.9th percentile");
}

void measure_alloc_random_ratio(measured *m)
{
  m->failed = !median_of(&m->value, "random", "500", "ratio");
  note(m, "Weir / mimalloc, the medians of bursts in turn in one process");
}

void measure_alloc_flat(measured *m)
{
  m->failed = !quotient(m, "churn", "1000000", "1000", NULL);
  note(m, "1 k -> 1 M blocks at rest; ns a free + malloc among 1000 more, of 16 sizes");
}

/* At random among all blocks an operation meets a record that no cache holds, in any allocator. */
void measure_alloc_victims(measured *m)
{
  measured theirs = {0};
  m->failed = !quotient(m, "victims", "1000000", "1000", NULL) ||
              !quotient(&theirs, "victims", "1000000", "1000", "mimalloc");
  if (m->failed) {
    note(m, "");
    return;
  }
  (void)snprintf(
      m->note, sizeof m->note,
      "1 k -> 1 M live, ns a free + malloc at random among all: grows x %.2f; mimalloc's "
      "%.0f -> %.0f, x %.2f",
      m->value, theirs.without, theirs.with, theirs.value);
  m->value /= theirs.value;
}
