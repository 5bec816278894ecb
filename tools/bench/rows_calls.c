/* rows_calls.c: what Weir costs the program: calls, stacks, a whole program, dlsym. */
#include <stdio.h>
#include <string.h>

#include "core/base/clock.h"
#include "tools/bench/bench.h"
#include "tools/bench/timing.h"

enum { PAIRS = 9 }; /* the rows' notes have it, too */
#if defined(__has_include) && __has_include(<cupti.h>)
enum { HAS_CUPTI = 1 };
#else
enum { HAS_CUPTI = 0 };
#endif

static const char *const *extra; /* NAME=VALUE words that children run with; NULL ends */

#define UNREAD  "unread"  /* observe, with --access=off */
#define DORMANT "dormant" /* observe, with --dormant */
#define KEPT    "kept"    /* observe, with --keep */

/* The mode that a row's word means: what device times are recorded in is observe. */
static const char *weir_mode_of(const char *word)
{
  bool observes = strcmp(word, "copies") == 0 || strcmp(word, "all") == 0 ||
#define HASHED "hash-auto"
                  !strcmp(word, UNREAD) || !strcmp(word, HASHED) || !strcmp(word, DORMANT) ||
                  !strcmp(word, KEPT);
  return observes ? "observe" : word;
}

/* The options of `weir run` that a row chooses, from argv[n] on; where they end. `stacks` NULL:
 * as a user has them, who names at most another mode. */
static int add_options(const char **argv, int n, const char *mode, const char *stacks)
{
  if (!stacks && strcmp(mode, "default") == 0) return n;
  argv[n++] = bench_text("--mode=%s", weir_mode_of(mode));
  if (!stacks) return n;
  argv[n++] = bench_text("--stacks=%s", stacks);
  bool unread = !strcmp(mode, UNREAD), hashed = !strcmp(mode, HASHED);
  if (!strcmp(mode, DORMANT)) argv[n++] = "--dormant";
  if (!strcmp(mode, KEPT)) argv[n++] = "--keep";
  argv[n++] = bench_text("--access=%s", unread ? "off" : "on");
  bool times = !strcmp(mode, "copies") || !strcmp(mode, "all");
  argv[n++] = bench_text("--device-times=%s", times ? mode : "off");
  argv[n++] = hashed ? "--hash=auto" : "--hash=off";
  return n;
}

/* Fixes at a place that no program has: each call asks whether it is there. NULL: the file cannot be
 * written. */
static const char *fixes_elsewhere(void)
{
  const char *path = bench_text("%s/elsewhere.fixes", bench_scratch);
  FILE *f = fopen(path, "we");
  bool good = f && fputs("proof\n"
                         "fix device at=00ff+0x10\nfix pinned at=00ff+0x20\n"
                         "fix staging at=00ff+0x30\nfix relaxed at=00ff+0x40\nend\n",
                         f) >= 0;
  return f && fclose(f) == 0 && good ? path : NULL;
}

/* One child that runs `calls` with three or four arguments, under weir run in a mode (or with these
 * device times) or plainly (NULL). */
static bool run_calls(double *value, const char *mode, const char *stacks, const char *const *args)
{
  const char *argv[30];
  int n = 0;
  argv[n++] = "env";
  for (int i = 0; extra && extra[i]; i++)
    argv[n++] = extra[i];
  if (mode && !strcmp(mode, "apply")) {
    argv[n++] = bench_text("%s/bin/weir", bench_build);
    argv[n++] = "run";
    argv[n++] = "--sim";
    argv[n++] = "--apply";
    if (!(argv[n++] = fixes_elsewhere())) return false;
    argv[n++] = "--";
  } else if (mode) {
    argv[n++] = bench_text("%s/bin/weir", bench_build);
    argv[n++] = "run";
    argv[n++] = "--sim";
    n = add_options(argv, n, mode, stacks);
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

/* Interleaved pairs, in `mode` and in `base` (NULL: plainly); medians, and the median of the pairs'
 * differences. */
static bool compare_with_base(measured *m, const char *base, const char *mode, const char *stacks,
                              const char *const *args, double *difference)
{
  double without[PAIRS], with[PAIRS], added[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    bool first = i & 1; /* who goes first alternates too */
    if (!run_calls(first ? &with[i] : &without[i], first ? mode : base, stacks, args) ||
        !run_calls(first ? &without[i] : &with[i], first ? base : mode, stacks, args)) {
      m->failed = true;
      return false;
    }
    added[i] = with[i] - without[i];
  }
  m->without = bench_median(without, PAIRS);
  m->with = bench_median(with, PAIRS);
  *difference = bench_median(added, PAIRS);
  return true;
}

static void measure_added(measured *m, const row *r)
{
  (void)compare_with_base(m, NULL, "observe", "off", r->args, &m->value);
}

/* What a call takes more that is left out and counted, of what a recorded one takes more. */
static void left_out(measured *m, const row *r)
{
  double counted, recorded;
  if (!compare_with_base(m, NULL, DORMANT, "32", r->args, &counted)) return;
  const double with = m->with;
  if (!compare_with_base(m, NULL, "observe", "32", r->args, &recorded)) return;
  m->value = counted / recorded;
  (void)snprintf(
      m->note, sizeof m->note,
      "ns a cuEventQuery, bursts of 2000: plainly %.1f, left out %.1f, recorded %.1f with "
      "its stack; %d pairs each",
      m->without, with, m->with, PAIRS);
}

/* Fixes are applied, nothing is recorded, and none concerns the calls. */
static void measure_applied(measured *m, const row *r)
{
  (void)compare_with_base(m, NULL, "apply", NULL, r->args, &m->value);
}

static void added_with_stacks(measured *m, const row *r)
{
  (void)compare_with_base(m, NULL, "observe", "32", r->args, &m->value);
}

/* The least that two reads of the clock take. */
static double two_clock_reads(void)
{
  enum { READS = 100000 };
  double least = 1e9;
  uint64_t sum = 0;
  for (int i = 0; i < 20; i++) {
    double begin = now_ns();
    for (int k = 0; k < READS; k++)
      sum += clock_ticks();
    __asm__ volatile("" ::"r"(sum));
    double each = (now_ns() - begin) / READS;
    if (each < least) least = each;
  }
  return 2 * least;
}

/* A range reads the clock when it is pushed and when it is popped; the rest is Weir's. */
static void measure_range(measured *m, const row *r)
{
  double added, reads = two_clock_reads();
  if (!compare_with_base(m, NULL, "observe", "off", r->args, &added)) return;
  m->value = added - reads;
  (void)snprintf(m->note, sizeof m->note,
                 "ns a push and its pop of a text of 23 bytes, %d pairs; two clock reads %.1f",
                 PAIRS, reads);
}

/* A call of the runtime's with the options that a user has who gives none, stacks among them; two
 * reads of the clock are in every event. */
static void runtime_sustained(measured *m, const row *r)
{
  double added, reads = two_clock_reads();
  if (!compare_with_base(m, NULL, "default", NULL, r->args, &added)) return;
  m->value = added - reads;
  (void)snprintf(m->note, sizeof m->note,
                 "ns of processor time a cudaEventQuery, 1 M at once, default options, collector "
                 "beside, %d pairs; two clock reads %.1f",
                 PAIRS, reads);
}

/* A call that is counted, and no event, with the options that a user has who gives none. */
static void runtime_asked(measured *m, const row *r)
{
  (void)compare_with_base(m, NULL, "default", NULL, r->args, &m->value);
}

/* All that a pair served from a cache takes, its two events included: the default mode is
 * strict. */
static void runtime_hit(measured *m, const row *r)
{
  double difference, reads = two_clock_reads();
  if (!compare_with_base(m, NULL, "default", NULL, r->args, &difference)) return;
  m->value = m->with / reads;
  (void)snprintf(m->note, sizeof m->note,
                 "ns of processor time a cudaMalloc with its cudaFree, 1 MiB, default options, "
                 "bursts, %d pairs; two clock reads %.1f; the software device's own beside",
                 PAIRS, reads);
}

static void runtime_pair(measured *m, const row *r)
{
  if (compare_with_base(m, NULL, "observe", NULL, r->args, &m->value))
    (void)snprintf(m->note, sizeof m->note,
                   "ns of processor time a cudaMalloc with its cudaFree, less two cudaEventQuery, "
                   "observe, stacks on, bursts, %d pairs",
                   PAIRS);
}

/* What an allocation with its free takes more than two calls: what is remembered of the block, and
 * which context it is in. */
static void measure_alloc_pair(measured *m, const row *r)
{
  const char *const args[] = {"pair", "120", "3000", r->args[0], NULL};
  if (compare_with_base(m, NULL, "observe", "off", args, &m->value))
    (void)snprintf(m->note, sizeof m->note,
                   "ns a cuMemAlloc with its cuMemFree, less two cuEventQuery, %d pairs", PAIRS);
}

/* The call's whole time when it is served from a cache, and what the device below takes. */
static void rerouted(measured *m, const row *r)
{
  const char *const args[] = {r->args[0], "100", "10000", NULL};
  double difference;
  if (compare_with_base(m, NULL, r->args[1], "off", args, &difference)) {
    m->value = m->with;
    (void)snprintf(m->note, sizeof m->note,
                   "ns a call, all of it, event included; %s; the software device's own beside",
                   r->args[1]);
  }
}

/* What the access set of a launch adds to its event. */
static void access_set(measured *m, const row *r)
{
  if (compare_with_base(m, UNREAD, "observe", "off", r->args, &m->value))
    (void)snprintf(m->note, sizeof m->note,
                   "ns of processor time a launch of eight parameters, of which three point into "
                   "blocks, --access=off and on, the least of bursts, %d pairs",
                   PAIRS);
}

/* What a mode adds to a call that queues work against observe: all of it is the tracking. */
static void tracked(measured *m, const row *r)
{
  const char *const args[] = {"work", "100", "2000", "20000", NULL};
  double strict, relaxed;
  (void)r;
  if (!compare_with_base(m, "observe", "strict", "off", args, &strict) ||
      !compare_with_base(m, "observe", "relaxed", "off", args, &relaxed))
    return;
  m->value = strict > relaxed ? strict : relaxed;
  (void)snprintf(m->note, sizeof m->note,
                 "ns a call that queues nothing in a stream: observe, relaxed; added: strict %.1f, "
                 "relaxed %.1f",
                 strict, relaxed);
}

/* Copies in `strict` on links of that kind. */
static void staged(measured *m, const row *r, const char *const *links)
{
  double difference;
  extra = links;
  if (compare_with_base(m, NULL, "strict", "off", r->args, &difference))
    m->value = m->with / m->without;
  extra = NULL;
}

/* A link as PCIe 4's of a host that copies slowly. */
static void staging(measured *m, const row *r)
{
  static const char *const slow[] = {"WEIR_SIM_LINK=h2d:25G,pageable:1500M", "WEIR_STAGING=on",
                                     NULL};
  staged(m, r, slow);
}

/* Two links alike, of which a driver that cannot reach from one device to the other uses one after
 * the other: half their speed. Slow ones, so that they are what takes the time, and not the memory
 * of this machine, where the software device's memory is. */
static void staging_peer(measured *m, const row *r)
{
  static const char *const slow[] = {"WEIR_SIM_LINK=h2d:800M,d2h:800M,p2p:400M",
                                     "WEIR_SIM_DEVICES=2", "WEIR_STAGING=on", NULL};
  staged(m, r, slow);
}

/* What copies take more whose first ones are hashed, in % of observe. */
static void hash_auto(measured *m, const row *r)
{
  double without[PAIRS] = {0}, with[PAIRS] = {0}, more[PAIRS] = {0};
  for (int i = 0; i < PAIRS && !m->failed; i++) {
    bool first = i % 2;
    m->failed = (first && !run_calls(&with[i], HASHED, "32", r->args)) ||
                !run_calls(&without[i], "observe", "32", r->args) ||
                (!first && !run_calls(&with[i], HASHED, "32", r->args));
    if (!m->failed) more[i] = 100 * (without[i] / with[i] - 1);
  }
  if (m->failed) return;
  m->without = bench_median(without, PAIRS);
  m->with = bench_median(with, PAIRS);
  m->value = bench_median(more, PAIRS);
}

/* Rounds of work that take 10 us, as an argument: of a buffer, which lives through all pairs as a
 * bench_text() would not. */
static bool calibrate(measured *m, char *text, size_t bytes)
{
  double rounds;
  const char *const ask[] = {bench_text("%s/bench/calls", bench_build), "rounds", "10000", NULL};
  bool ok = bench_run(&rounds, NULL, NULL, ask);
  if (ok)
    (void)snprintf(text, bytes, "%.0f", rounds);
  else
    bench_give_up(m, "calibration failed");
  return ok;
}

/* Recorded into a trace, or by a recorder. */
static void whole_program(measured *m, const row *r)
{
  double difference;
  char rounds[32];
  if (!calibrate(m, rounds, sizeof rounds)) return;
  const char *const args[] = {"program", "100000", rounds, NULL};
  if (compare_with_base(m, NULL, r->args[0], "32", args, &difference))
    m->value = 100 * difference / m->without;
}

/* The whole program, each tenth call of it a copy: in observe; in observe and a client of CUPTI's
 * itself, which wants as much as Weir's and throws it away; and with Weir's device times. Between
 * the first two is what CUPTI costs, here the software device's, which is not NVIDIA's; the rest is
 * Weir's. */
enum { COPYING, COPYING_CLIENT, COPYING_WEIR, COPYING_RUNS };

static bool run_copying(double *took, int which, const char *kinds, const char *rounds)
{
  const char *client = which == COPYING_CLIENT ? kinds : NULL;
  const char *const args[] = {"copying", "100000", rounds, client, NULL};
  return run_calls(took, which == COPYING_WEIR ? kinds : "observe", "32", args);
}

/* What the second took more than the first, in % of the program without device times. */
static double percent_more(double took[][PAIRS], int first, int second)
{
  double more[PAIRS];
  for (int i = 0; i < PAIRS; i++)
    more[i] = 100 * (took[second][i] - took[first][i]) / took[COPYING][i];
  return bench_median(more, PAIRS);
}

static void device_times(measured *m, const row *r)
{
  const char *kinds = r->args[0];
  double took[COPYING_RUNS][PAIRS];
  char rounds[32];
  m->absent = !HAS_CUPTI;
  if (m->absent) (void)snprintf(m->note, sizeof m->note, "built without CUPTI's headers");
  if (m->absent || !calibrate(m, rounds, sizeof rounds)) return;
  for (int i = 0; i < PAIRS * COPYING_RUNS && !m->failed; i++) {
    int turn = i / COPYING_RUNS, which = (turn + i) % COPYING_RUNS; /* who goes first alternates */
    m->failed = !run_copying(&took[which][turn], which, kinds, rounds);
  }
  if (m->failed) return;
  m->value = percent_more(took, COPYING, COPYING_WEIR);
  m->without = bench_median(took[COPYING], PAIRS);
  m->with = bench_median(took[COPYING_WEIR], PAIRS);
  (void)snprintf(m->note, sizeof m->note,
                 "s for 100 k calls, each tenth a copy: observe, --device-times=%s; of it Weir's "
                 "%.2f %%, the software device's CUPTI's %.2f %%; %d in turns",
                 kinds, percent_more(took, COPYING_CLIENT, COPYING_WEIR),
                 percent_more(took, COPYING, COPYING_CLIENT), PAIRS);
}

/* ---- processes ------------------------------------------------------------------------------- */

enum { FORKS = 3000, FORK_PAIRS = 7 };

/* What one process costs: time, from the command's start to its end, and processor time, in ms. */
typedef struct fork_cost {
  double wall, cpu;
} fork_cost;

static bool measure_forks(fork_cost *cost, bool under, const row *r)
{
  const char *at_once = r->args[1]; /* NULL: of a mode that has no such argument */
  const char *const args[] = {r->args[0], bench_text("%d", FORKS), at_once, NULL};
  double begin = bench_now(), in_program;
  bool runtime = at_once == NULL;
  if (!run_calls(&in_program,
                 !under    ? NULL
                 : runtime ? "default"
                           : "observe",
                 runtime ? NULL : "32", args))
    return false;
  cost->wall = (bench_now() - begin) * 1e3 / FORKS;
  cost->cpu = bench_cpu_seconds * 1e3 / FORKS;
  return true;
}

/* Forked children that call CUDA and are gone: each has a spool of its own, which is opened,
 * imported and removed. What is more than twice the time without Weir. */
static void forks(measured *m, const row *r)
{
  const char *at_once = r->args[1] ? r->args[1] : "1";
  double without[FORK_PAIRS], with[FORK_PAIRS], over[FORK_PAIRS], cpu[2][FORK_PAIRS];
  for (int i = 0; i < FORK_PAIRS; i++)
    for (int k = 0; k < 2; k++) {
      bool under = (i ^ k) & 1; /* who goes first alternates */
      fork_cost cost;
      if (!measure_forks(&cost, under, r)) {
        m->failed = true;
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

const row rows_calls[] = {
    AT_MOST("call", "observed call, no stack, in bursts", "ns added", 40, measure_added,
            "ns a cuEventQuery, bursts of 2000, 9 pairs", "query", "100", "2000", "0", "20000"),
    /* with the collector at work at the same time, on a core of its own where there is one */
    AT_MOST("call-sustained", "observed call, no stack, 1 M at once", "ns added", 40, measure_added,
            "ns a cuEventQuery, 3 times 1 M, collector beside, 9 pairs", "query", "3", "1000000",
            "0", "0"),
    /* 32 frames: main, run_query, deep x 28 and what is below main */
    AT_MOST("stack", "observed call, 32-frame cached stack", "ns added", 400, added_with_stacks,
            "the same from 32 frames down, 9 pairs", "query", "100", "2000", "28", "20000"),
    AT_MOST("call-left-out", "call left out / recorded", "x added", 0.1, left_out, NULL, "query",
            "100", "2000", "0", "5000"),
    AT_MOST("apply", "call that no fix concerns, no trace", "ns added", 20, measure_applied,
            "ns a cuEventQuery, 3 times 1 M, 9 pairs", "query", "3", "1000000", "0", "0"),
    AT_MOST("apply-work", "work that no fix concerns, no trace", "ns added", 20, measure_applied,
            "ns a cuMemsetD8Async of no bytes, bursts of 2000, 9 pairs", "work", "100", "2000",
            "20000"),
    AT_MOST("apply-pair", "malloc + free that no fix concerns, no trace", "ns added", 120,
            measure_applied, "ns of the two beside two calls, 64 KiB, 9 pairs", "pair", "120",
            "3000", "65536"),
    AT_MOST("pair-4k", "malloc + free beside two calls, 4 KiB", "ns added", 120, measure_alloc_pair,
            NULL, "4096"),
    AT_MOST("pair-1m", "malloc + free beside two calls, 1 MiB", "ns added", 120, measure_alloc_pair,
            NULL, "1048576"),
    AT_MOST("pair-64m", "malloc + free beside two calls, 64 MiB", "ns added", 120,
            measure_alloc_pair, NULL, "67108864"),
    AT_MOST("pair-1g", "malloc + free beside two calls, 1 GiB", "ns added", 120, measure_alloc_pair,
            NULL, "1073741824"),
    AT_MOST("range", "a range of NVTX beside two reads of the clock", "ns added", 30, measure_range,
            NULL, "range", "100", "1000", "20000"),
    AT_MOST("program", "whole program, 100 k calls/s", "% added", 1, whole_program,
            "s for 100 k calls, 10 us of work after each, stacks on, collector beside, 9 pairs",
            "observe"),
    AT_MOST("keep", "whole program, 100 k calls/s, --keep", "% added", 1, whole_program,
            "the same, with a recorder in place of the importer", KEPT),
    AT_MOST("device-copies", "copies' device times, whole program", "% added", 2, device_times,
            NULL, "copies"),
    AT_MOST("device-all", "all device times, whole program", "% added", 5, device_times, NULL,
            "all"),
    AT_MOST("hash-auto", "--hash=auto, loop of copies", "% added", 2, hash_auto,
            "GB/s of 40000 pageable copies of 16 KiB, none alike", "copy", "40000", "16384"),
    AT_MOST("hash-alike", "--hash=auto, loop of copies of the same", "% added", 2, hash_auto,
            "GB/s of 2 M pageable copies of 16 KiB, all alike", "copy", "2000000", "16384",
            "alike"),
    AT_MOST("forks", "a fork, 1 at once, over 2 x bare", "ms", 0.2, forks, NULL, "forks", "1"),
    AT_MOST("forks-64", "a fork, 64 at once, over 2 x bare", "ms", 0.2, forks, NULL, "forks", "64"),
    AT_MOST("rt-forks", "a fork with a runtime, over 2 x bare", "ms", 0.2, forks, NULL, "rt-forks"),
    AT_MOST("rt-call", "runtime call beyond two clock reads", "ns added", 40, runtime_sustained,
            NULL, "rt-query", "3", "1000000"),
    AT_MOST("asked", "runtime call that only asks", "ns added", 5, runtime_asked,
            "ns of processor time a cudaGetDevice, 5 times 1 M, default options, 9 pairs",
            "rt-asked", "5", "1000000"),
    AT_MOST("rt-hit", "rerouted runtime pair, 1 MiB", "x two clock reads", 5, runtime_hit, NULL,
            "rt-pair", "200", "5000", "1048576"),
    AT_MOST("rt-pair", "observed runtime pair beside two calls", "ns added", 120, runtime_pair,
            NULL, "rt-pair-over", "120", "5000", "1048576"),
    AT_MOST("dlsym", "dlsym of a name that isn't ours", "ns added", 20, measure_added,
            "ns a dlsym of qsort, printf, cuserid, getpid, 9 pairs", "dlsym", "200", "5000"),
    AT_MOST("reroute-alloc", "rerouted hit: malloc", "ns", 60, rerouted, NULL, "alloc", "relaxed"),
    AT_MOST("reroute-free", "rerouted hit: free, relaxed", "ns", 80, rerouted, NULL, "free",
            "relaxed"),
    /* what is left of a strict free when there is nothing to wait for: the driver is asked to
     * wait */
    AT_MOST("reroute-strict", "rerouted hit: free, strict, idle device", "ns", 80, rerouted, NULL,
            "free", "strict"),
    AT_MOST("launch-access", "a launch with its access set", "ns added", 25, access_set, NULL,
            "launch", "200", "500", "5000"),
    AT_MOST("launch-track", "launch tracking: strict, relaxed", "ns added", 5, tracked, NULL, NULL),
    AT_LEAST("staging", "staged / pageable copy, slow host", "x", 2, staging,
             "GB/s staged / the software device's pageable copy, whose host copies 1.5 GB/s",
             "copy", "9", "67108864"),
    AT_LEAST("staging-peer", "staged / the driver's copy between devices", "x", 1.6, staging_peer,
             "GB/s staged, both links of 0.8 GB/s at once / one after the other", "peer", "3",
             "134217728"),
    {0},
};
