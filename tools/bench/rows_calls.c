/* rows_calls.c: what Weir costs the program: calls, stacks, a whole program, dlsym. */
#include <stdio.h>
#include <stdlib.h>

#include "tools/bench/bench.h"

enum { PAIRS = 9 };

/* What children run with beside their arguments. */
static const char *mode = "observe", *const *extra; /* extra: NAME=VALUE words, NULL ends */

/* One child that runs `calls` with three or four arguments, under weir run or plainly. */
static bool run_calls(double *value, bool under, const char *stacks, const char *const *args)
{
  const char *argv[29];
  int n = 0;
  argv[n++] = "env";
  for (int i = 0; extra && extra[i]; i++)
    argv[n++] = extra[i];
  if (under) {
    argv[n++] = bench_text("%s/bin/weir", bench_build);
    argv[n++] = "run";
    argv[n++] = "--sim";
    argv[n++] = bench_text("--stacks=%s", stacks);
    argv[n++] = bench_text("--mode=%s", mode);
    argv[n++] = "--force";
    argv[n++] = "-o";
    argv[n++] = bench_text("%s/calls.db", bench_scratch);
    argv[n++] = "--";
  } else {
    argv[n++] = bench_text("LD_LIBRARY_PATH=%s/lib/sim", bench_build);
  }
  argv[n++] = bench_text("%s/bench/calls", bench_build);
  for (int i = 0; args[i]; i++)
    argv[n++] = args[i];
  argv[n] = NULL;
  return bench_run(value, NULL, NULL, argv);
}

/* Interleaved pairs; medians, and the median of the pairs' differences. */
static bool compare(measured *m, const char *stacks, const char *const *args, double *difference)
{
  double without[PAIRS], with[PAIRS], added[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    bool first = i & 1; /* who goes first alternates too */
    if (!run_calls(first ? &with[i] : &without[i], first, stacks, args) ||
        !run_calls(first ? &without[i] : &with[i], !first, stacks, args)) {
      m->failed = true;
      (void)snprintf(m->note, sizeof m->note, "a child failed");
      return false;
    }
    added[i] = with[i] - without[i];
  }
  m->without = bench_median(without, PAIRS);
  m->with = bench_median(with, PAIRS);
  *difference = bench_median(added, PAIRS);
  return true;
}

void measure_call(measured *m)
{
  const char *const args[] = {"query", "100", "2000", "0", "20000", NULL};
  if (compare(m, "off", args, &m->value))
    (void)snprintf(m->note, sizeof m->note, "ns a cuEventQuery, bursts of 2000, %d pairs", PAIRS);
}

/* With the collector at work at the same time, on a core of its own where there is one. */
void measure_call_sustained(measured *m)
{
  const char *const args[] = {"query", "3", "1000000", "0", "0", NULL};
  if (compare(m, "off", args, &m->value))
    (void)snprintf(m->note, sizeof m->note,
                   "ns a cuEventQuery, 3 times 1 M, collector beside, %d pairs", PAIRS);
}

/* What an allocation with its free takes more than two calls: what is remembered of the block, and
 * which context it is in. */
static void measure_pair(measured *m, const char *bytes)
{
  const char *const call[] = {"query", "60", "2000", "0", "3000", NULL};
  const char *const pair[] = {"pair", "60", "3000", bytes, NULL};
  measured calls = *m;
  double each, both;
  m->failed = !compare(&calls, "off", call, &each);
  if (m->failed || !compare(m, "off", pair, &both)) return;
  m->value = both - 2 * each;
  (void)snprintf(m->note, sizeof m->note,
                 "ns a cuMemAlloc with its cuMemFree; an observed call adds %.0f, %d pairs", each,
                 PAIRS);
}

void measure_pair_4k(measured *m)
{
  measure_pair(m, "4096");
}

void measure_pair_1m(measured *m)
{
  measure_pair(m, "1048576");
}

void measure_pair_64m(measured *m)
{
  measure_pair(m, "67108864");
}

void measure_pair_1g(measured *m)
{
  measure_pair(m, "1073741824");
}

void measure_call_stack(measured *m)
{
  /* 32 frames: main, run_query, deep x 28 and what is below main */
  const char *const args[] = {"query", "100", "2000", "28", "20000", NULL};
  if (compare(m, "32", args, &m->value))
    (void)snprintf(m->note, sizeof m->note, "the same from 32 frames down, %d pairs", PAIRS);
}

/* The call's whole time when it is served from a cache, and what the device below takes. */
static void rerouted(measured *m, const char *what, const char *how)
{
  const char *const args[] = {what, "100", "10000", NULL};
  double added;
  mode = how;
  if (compare(m, "off", args, &added)) {
    m->value = m->with;
    (void)snprintf(m->note, sizeof m->note,
                   "ns a call, all of it, event included; %s; the software device's own beside",
                   how);
  }
  mode = "observe";
}

void measure_reroute_alloc(measured *m)
{
  rerouted(m, "alloc", "relaxed");
}

void measure_reroute_free(measured *m)
{
  rerouted(m, "free", "relaxed");
}

/* What is left of a strict free when there is nothing to wait for: the driver is asked to wait. */
void measure_reroute_free_strict(measured *m)
{
  rerouted(m, "free", "strict");
}

/* What `other` adds to a call that queues work against observe: all of it is the tracking. */
static bool tracked(measured *m, const char *other, double *added)
{
  const char *const args[] = {"work", "100", "2000", "20000", NULL};
  double without[PAIRS], with[PAIRS], each[PAIRS];
  for (int i = 0; i < PAIRS; i++)
    for (int k = 0; k < 2; k++) {
      bool observe = (i ^ k) & 1; /* who goes first alternates */
      mode = observe ? "observe" : other;
      m->failed |= !run_calls(observe ? &without[i] : &with[i], true, "off", args);
    }
  mode = "observe";
  for (int i = 0; i < PAIRS && !m->failed; i++)
    each[i] = with[i] - without[i];
  if (m->failed) {
    (void)snprintf(m->note, sizeof m->note, "a child failed");
    return false;
  }
  m->without = bench_median(without, PAIRS);
  m->with = bench_median(with, PAIRS);
  *added = bench_median(each, PAIRS);
  return true;
}

void measure_launch_track(measured *m)
{
  double strict, relaxed;
  if (!tracked(m, "strict", &strict) || !tracked(m, "relaxed", &relaxed)) return;
  m->value = strict > relaxed ? strict : relaxed;
  (void)snprintf(m->note, sizeof m->note,
                 "ns a call that queues nothing in a stream: observe, relaxed; added: strict %.1f, "
                 "relaxed %.1f",
                 strict, relaxed);
}

/* A link as PCIe 4's behind a host that copies slowly. */
void measure_staging(measured *m)
{
  static const char *const slow[] = {"WEIR_SIM_LINK=h2d:25G,pageable:1500M", "WEIR_STAGING=on",
                                     NULL};
  const char *const args[] = {"copy", "9", "67108864", NULL};
  double added;
  mode = "strict";
  extra = slow;
  if (compare(m, "off", args, &added)) {
    m->value = m->with / m->without;
    (void)snprintf(m->note, sizeof m->note,
                   "GB/s staged / the software device's pageable copy, whose host copies 1.5 GB/s");
  }
  extra = NULL;
  mode = "observe";
}

/* Two links alike, of which a driver that cannot reach from one device to the other uses one after
 * the other: half their speed. Slow ones, so that they are what takes the time, and not the memory
 * of this machine, where the software device's memory is. */
void measure_staging_peer(measured *m)
{
  static const char *const slow[] = {"WEIR_SIM_LINK=h2d:800M,d2h:800M,p2p:400M",
                                     "WEIR_SIM_DEVICES=2", "WEIR_STAGING=on", NULL};
  const char *const args[] = {"peer", "3", "134217728", NULL};
  double added;
  mode = "strict";
  extra = slow;
  if (compare(m, "off", args, &added)) {
    m->value = m->with / m->without;
    (void)snprintf(m->note, sizeof m->note,
                   "GB/s staged, both links of 0.8 GB/s at once / one after the other");
  }
  extra = NULL;
  mode = "observe";
}

void measure_program(measured *m)
{
  double rounds;
  const char *const ask[] = {bench_text("%s/bench/calls", bench_build), "rounds", "10000", NULL};
  if (!bench_run(&rounds, NULL, NULL, ask)) {
    m->failed = true;
    (void)snprintf(m->note, sizeof m->note, "calibration failed");
    return;
  }
  char rounds_text[32]; /* lives through all pairs, which a bench_text() would not */
  (void)snprintf(rounds_text, sizeof rounds_text, "%.0f", rounds);
  const char *const args[] = {"program", "100000", rounds_text, NULL};
  double added;
  if (!compare(m, "32", args, &added)) return;
  m->value = 100 * added / m->without;
  (void)snprintf(
      m->note, sizeof m->note,
      "s for 100 k calls, 10 us of work after each, stacks on, collector beside, %d pairs", PAIRS);
}

/* ---- processes ------------------------------------------------------------------------------- */

enum { FORKS = 3000, FORK_PAIRS = 7 };

/* What one process costs: time, from the command's start to its end, and processor time, in ms. */
typedef struct fork_cost {
  double wall, cpu;
} fork_cost;

static bool run_forks(fork_cost *cost, bool under, const char *at_once)
{
  const char *const args[] = {"forks", bench_text("%d", FORKS), at_once, NULL};
  double begin = bench_now(), in_program;
  if (!run_calls(&in_program, under, "32", args)) return false;
  cost->wall = (bench_now() - begin) * 1e3 / FORKS;
  cost->cpu = bench_cpu_seconds * 1e3 / FORKS;
  return true;
}

/* Forked children that call CUDA and are gone: each has a spool of its own, which is opened,
 * imported and removed. What is more than twice the time without Weir. */
static void measure_forks_at_once(measured *m, const char *at_once)
{
  double without[FORK_PAIRS], with[FORK_PAIRS], over[FORK_PAIRS], cpu[2][FORK_PAIRS];
  for (int i = 0; i < FORK_PAIRS; i++)
    for (int k = 0; k < 2; k++) {
      bool under = (i ^ k) & 1; /* who goes first alternates */
      fork_cost cost;
      if (!run_forks(&cost, under, at_once)) {
        m->failed = true;
        (void)snprintf(m->note, sizeof m->note, "a child failed");
        return;
      }
      (under ? with : without)[i] = cost.wall;
      cpu[under][i] = cost.cpu;
    }
  for (int i = 0; i < FORK_PAIRS; i++)
    over[i] = with[i] - 2 * without[i];
  m->value = bench_median(over, FORK_PAIRS);
  m->without = bench_median(without, FORK_PAIRS);
  m->with = bench_median(with, FORK_PAIRS);
  (void)snprintf(m->note, sizeof m->note,
                 "ms a forked child with 4 calls, %s at once, %d of them, the collector's end "
                 "included; processor time %.3f -> %.3f; %d pairs",
                 at_once, FORKS, bench_median(cpu[0], FORK_PAIRS), bench_median(cpu[1], FORK_PAIRS),
                 FORK_PAIRS);
}

void measure_forks(measured *m)
{
  measure_forks_at_once(m, "1");
}

void measure_forks_64(measured *m)
{
  measure_forks_at_once(m, "64");
}

void measure_dlsym(measured *m)
{
  const char *const args[] = {"dlsym", "200", "5000", NULL};
  if (compare(m, "off", args, &m->value))
    (void)snprintf(m->note, sizeof m->note,
                   "ns a dlsym of qsort, printf, cuserid, getpid, %d pairs", PAIRS);
}
