/* clock.c: choosing the event clock and turning its ticks into nanoseconds.
 *
 * The processor is asked once: a hypervisor answers for it, which takes microseconds, and each
 * forked child, and whoever reads its spool, wants to know again. */
#include "core/base/clock.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int clock_source_in_use = WEIR_CLOCK_MONOTONIC;

#if defined(__x86_64__)
static int best_kind(void)
{
  unsigned a, b, c, d;
  if (!__get_cpuid(0x80000007u, &a, &b, &c, &d)) return WEIR_CLOCK_MONOTONIC;
  return d & 1u << 8 ? WEIR_CLOCK_TSC : WEIR_CLOCK_MONOTONIC;
}

/* CPUID 15h: TSC = crystal (ECX, Hz) * EBX / EAX; zeros mean "not given", as under most
 * hypervisors. */
static uint64_t counter_hz(void)
{
  unsigned a, b, c, d;
  if (!__get_cpuid(0x15, &a, &b, &c, &d) || !a || !b || !c) return 0;
  return (uint64_t)c * b / a;
}
#elif defined(__aarch64__)
static int best_kind(void)
{
  return WEIR_CLOCK_CNTVCT;
}

static uint64_t counter_hz(void)
{
  uint64_t v;
  __asm__("mrs %0, cntfrq_el0" : "=r"(v));
  return v;
}
#else
static int best_kind(void)
{
  return WEIR_CLOCK_MONOTONIC;
}
static uint64_t counter_hz(void)
{
  return 0;
}
#endif

/* Plus one: 0 is what was not asked yet. */
static _Atomic int known_kind;
static _Atomic uint64_t known_hz;

void clock_init(void)
{
  int kind = atomic_load_explicit(&known_kind, memory_order_relaxed) - 1;
  if (kind < 0) {
    kind = best_kind();
    atomic_store_explicit(&known_kind, kind + 1, memory_order_relaxed);
  }
  if (clock_source_in_use != kind) clock_source_in_use = kind;
}

uint64_t clock_read_hint_hz(void)
{
  if (clock_source_in_use == WEIR_CLOCK_MONOTONIC) return 1000000000u;
  uint64_t hz = atomic_load_explicit(&known_hz, memory_order_relaxed);
  if (!hz) {
    hz = counter_hz() + 1;
    atomic_store_explicit(&known_hz, hz, memory_order_relaxed);
  }
  return hz - 1;
}

clock_pair clock_now(void)
{
  clock_pair best = {0, 0};
  uint64_t width = UINT64_MAX;
  for (int i = 0; i < 5; i++) {
    uint64_t before = clock_ticks(), mono = clock_monotonic_ns(), after = clock_ticks();
    if (after - before >= width) continue;
    width = after - before;
    best = (clock_pair){before + width / 2, mono};
  }
  return best;
}

/* Counters go up in steps on some machines, by 26 or by 1 from one read to the next: so many reads
 * are measured at once, and of several such runs the shortest counts, in which nothing came between. */
double clock_cost_ticks(void)
{
  enum { RUNS = 16, READS = 32 };
  uint64_t least = UINT64_MAX;
  for (int run = 0; run < RUNS; run++) {
    const uint64_t before = clock_ticks();
    uint64_t after = before;
    for (int i = 0; i < READS; i++)
      after = clock_ticks();
    if (after > before && after - before < least) least = after - before;
  }
  return least < UINT64_MAX ? (double)least / READS : 0;
}

clock_map clock_map_make(clock_pair first, clock_pair last, uint64_t hint_hz)
{
  const double slowest = 1e3,
               fastest = 1e-3; /* ns a tick: no clock of ours is outside (1 MHz, 1 THz) */
  uint64_t ticks = last.ticks - first.ticks, ns = last.mono_ns - first.mono_ns;
  bool usable = last.ticks > first.ticks && last.mono_ns > first.mono_ns;
  clock_map map = {first, 1.0};
  if (usable && (ns >= 1000000 || !hint_hz))
    map.ns_per_tick = (double)ns / (double)ticks;
  else if (hint_hz)
    map.ns_per_tick = 1e9 / (double)hint_hz;
  if (!(map.ns_per_tick >= fastest && map.ns_per_tick <= slowest)) map.ns_per_tick = 1.0;
  return map;
}
