/* rows_memory.c: the device allocator on the scripted device: bench/alloc, in children. */
#include <stdio.h>

#include "tools/bench/bench.h"

enum { CHILDREN = 9 };

/* The median of some children's numbers. */
static bool median_of(double *value, const char *what, const char *argument)
{
  double each[CHILDREN];
  const char *const argv[] = {bench_text("%s/bench/alloc", bench_build), what, argument, NULL};
  for (int i = 0; i < CHILDREN; i++)
    if (!bench_run(&each[i], NULL, NULL, argv)) return false;
  *value = bench_median(each, CHILDREN);
  return true;
}

static void one(measured *m, const char *what, const char *argument, const char *how)
{
  m->failed = !median_of(&m->value, what, argument);
  (void)snprintf(m->note, sizeof m->note, "%s", m->failed ? "a child failed" : how);
}

/* The quotient of two programs that take turns. */
static void quotient(measured *m, const char *const *above, const char *const *below,
                     const char *how)
{
  double with[CHILDREN] = {0}, without[CHILDREN] = {0}, ratio[CHILDREN];
  const char *const a[] = {bench_text("%s/bench/alloc", bench_build), above[0], above[1], NULL};
  const char *const b[] = {a[0], below[0], below[1], NULL};
  for (int i = 0; i < CHILDREN && !m->failed; i++) {
    m->failed = !bench_run(&with[i], NULL, NULL, a) || !bench_run(&without[i], NULL, NULL, b);
    ratio[i] = m->failed ? 0 : with[i] / without[i];
  }
  (void)snprintf(m->note, sizeof m->note, "%s", m->failed ? "a child failed" : how);
  if (m->failed) return;
  m->with = bench_median(with, CHILDREN);
  m->without = bench_median(without, CHILDREN);
  m->value = bench_median(ratio, CHILDREN);
}

void measure_alloc_hit(measured *m)
{
  one(m, "hit", NULL, "ns a pair of 1 KiB, bursts of 64, median of 9 children");
}

void measure_alloc_ratio(measured *m)
{
  const char *const ours[] = {"hit", NULL}, *const theirs[] = {"mimalloc", NULL};
  quotient(m, ours, theirs, "mimalloc -> Weir, ns a pair of 1 KiB, children in turn");
}

void measure_alloc_p99(measured *m)
{
  one(m, "p99", NULL, "ns a pair, 99th percentile of bursts of 16");
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

void measure_alloc_flat(measured *m)
{
  const char *const large[] = {"flat", "1000000"}, *const small[] = {"flat", "1000"};
  quotient(m, large, small, "1 k -> 1 M live, ns a free + malloc of one of 16 sizes, at random");
}
