/* clock.c: choosing the event clock and turning its ticks into nanoseconds. */
#include "core/base/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

int weir_clock_kind_in_use = WEIR_CLOCK_MONOTONIC;

#if defined(__x86_64__)
static int best_kind(void)
{
  unsigned a, b, c, d;
  if (!__get_cpuid(0x80000007u, &a, &b, &c, &d)) return WEIR_CLOCK_MONOTONIC;
  return d & 1u << 8 ? WEIR_CLOCK_TSC : WEIR_CLOCK_MONOTONIC;
}

/* CPUID 15h: TSC = crystal (ECX, Hz) * EBX / EAX; zeros mean "not told", as under most hypervisors.
 */
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

void weir_clock_init(void)
{
  int kind = best_kind();
  if (weir_clock_kind_in_use != kind) weir_clock_kind_in_use = kind;
}

uint64_t weir_clock_hint_hz(void)
{
  return weir_clock_kind_in_use == WEIR_CLOCK_MONOTONIC ? 1000000000u : counter_hz();
}

weir_clock_pair weir_clock_now(void)
{
  weir_clock_pair best = {0, 0};
  uint64_t width = UINT64_MAX;
  for (int i = 0; i < 5; i++) {
    uint64_t before = weir_ticks(), mono = weir_clock_monotonic_ns(), after = weir_ticks();
    if (after - before >= width) continue;
    width = after - before;
    best = (weir_clock_pair){before + width / 2, mono};
  }
  return best;
}

weir_clock_map weir_clock_map_make(weir_clock_pair first, weir_clock_pair last, uint64_t hint_hz)
{
  const double slowest = 1e3,
               fastest = 1e-3; /* ns a tick: no clock of ours is outside (1 MHz, 1 THz) */
  uint64_t ticks = last.ticks - first.ticks, ns = last.mono_ns - first.mono_ns;
  bool usable = last.ticks > first.ticks && last.mono_ns > first.mono_ns;
  weir_clock_map map = {first, 1.0};
  if (usable && (ns >= 1000000 || !hint_hz))
    map.ns_per_tick = (double)ns / (double)ticks;
  else if (hint_hz)
    map.ns_per_tick = 1e9 / (double)hint_hz;
  if (!(map.ns_per_tick >= fastest && map.ns_per_tick <= slowest)) map.ns_per_tick = 1.0;
  return map;
}
