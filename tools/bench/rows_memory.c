/* rows_memory.c: the device allocator on the scripted device: bench/alloc, in children. */
#include <stdio.h>

#include "tools/bench/bench.h"

enum { CHILDREN = 9 };

static void child(measured *m, const row *r)
{
  const char *const argv[] = {bench_text("%s/bench/alloc", bench_build), r->args[0], r->args[1],
                              r->args[2], NULL};
  (void)bench_children(m, CHILDREN, argv);
}

/* A million blocks against a thousand, in turns. */
static bool growth(measured *m, const char *what, const char *how)
{
  const char *const many[] = {bench_text("%s/bench/alloc", bench_build), what, "1000000", how,
                              NULL};
  const char *const few[] = {many[0], what, "1000", how, NULL};
  return bench_turns(m, CHILDREN, many, few);
}

static void flat(measured *m, const row *r)
{
  (void)growth(m, r->args[0], NULL);
}

/* At random among all blocks an operation meets a record that no cache holds, in any allocator. */
static void victims(measured *m, const row *r)
{
  measured theirs = {0};
  m->failed = !growth(m, r->args[0], NULL) || !growth(&theirs, r->args[0], "mimalloc");
  if (m->failed) return;
  (void)snprintf(
      m->note, sizeof m->note,
      "1 k -> 1 M live, ns a free + malloc at random among all: grows x %.2f; mimalloc's "
      "%.0f -> %.0f, x %.2f",
      m->value, theirs.without, theirs.with, theirs.value);
  m->value /= theirs.value;
}

const row rows_memory[] = {
    AT_MOST("alloc-hit", "allocator hit, malloc + free", "ns", 15, child,
            "ns a pair of 1 KiB, bursts of 64, median of 9 children", "hit"),
    AT_MOST("alloc-ratio", "the same / mimalloc's", "x", 1.5, child,
            "Weir / mimalloc, a pair of 1 KiB, bursts of 64 in turn in one process", "hit",
            "ratio"),
    AT_MOST("alloc-p99", "allocator hit, 99th percentile", "ns", 100, child,
            "ns a pair, 99th percentile of bursts of 16", "p99"),
    AT_MOST("alloc-pinned", "pinned hit, malloc + free", "ns", 30, child,
            "ns a pair of 1 KiB of pinned host memory, bursts of 64", "pinned"),
    AT_MOST("alloc-remote", "free on another thread", "ns", 60, child,
            "ns a free of what another thread allocated, batches of 512", "remote"),
    AT_MOST("alloc-random", "100 k live blocks, random sizes", "ns", 120, child,
            "ns a free + malloc, 16 B to 64 KiB, bursts of 64", "random", "500"),
    AT_MOST("alloc-tail", "the same, 99.9th percentile", "ns", 1000, child,
            "mean of the burst of 64 at the 99.9th percentile", "random", "999"),
    AT_MOST("alloc-random-ratio", "100 k live: median / mimalloc's", "x", 1, child,
            "Weir / mimalloc, the medians of bursts in turn in one process", "random", "500",
            "ratio"),
    AT_MOST("alloc-flat", "1 M live blocks / 1 k live blocks", "x", 1.3, flat,
            "1 k -> 1 M blocks at rest; ns a free + malloc among 1000 more, of 16 sizes", "churn"),
    AT_MOST("alloc-victims", "its growth at random / mimalloc's", "x", 1, victims, NULL, "victims"),
    AT_MOST("stream-guard", "a stream guard, there and back", "ns", 50, child,
            "ns a stream guard, the current stream asked for, and back; bursts of 64", "guard"),
    {0},
};
