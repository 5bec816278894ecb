/* stats.h: figures as stats.c finds them and summary.c shows them. */
#ifndef WEIR_MEMORY_STATS_H
#define WEIR_MEMORY_STATS_H

#include "core/memory/pool.h"

enum { ALL, SMALL, LARGE, POOLS };
enum { CURRENT, PEAK, ALLOCATED, FREED, KINDS };

enum metric {
#define METRIC(name) METRIC_##name,
  WEIR_MEMORY_METRICS(METRIC)
#undef METRIC
};

typedef int64_t sums[POOLS][KINDS];

/* All figures by name and as the array they are. */
typedef union figures_all {
  weir_memory_stats named;
  struct {
    sums metric[WEIR_METRICS];
    int64_t oversize[2][KINDS]; /* allocations, segments */
  };
} figures_all;

/* The figure of that name in s, NULL: there is none. */
const int64_t *stats_find(const weir_memory_stats *s, const char *name);
void pool_reset_sums(mem_pool *p); /* what adds up begins anew; lock held */

#endif
