/* timing.h: what the measured programs time themselves with; a program each, of one file. */
#ifndef WEIR_TOOLS_BENCH_TIMING_H
#define WEIR_TOOLS_BENCH_TIMING_H

#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static inline double now_ns(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int ascending_doubles(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Sorts them. */
static inline double median_of(double *values, size_t count)
{
  qsort(values, count, sizeof *values, ascending_doubles);
  return values[count / 2];
}

/* Times this thread had to make room for another. */
static inline long interruptions(void)
{
  struct rusage u;
  return getrusage(RUSAGE_THREAD, &u) ? 0 : u.ru_nivcsw;
}

#endif
