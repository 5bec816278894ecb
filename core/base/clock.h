/* clock.h: what an event's time is counted in, and how ticks become nanoseconds.
 *
 * Ticks are the TSC where the CPU states it is invariant (CPUID 80000007h EDX bit 8), the kernel's
 * virtual counter on aarch64, and CLOCK_MONOTONIC nanoseconds elsewhere. A hot path reads ticks and
 * nothing else. The conversion needs two (tick, CLOCK_MONOTONIC) pairs far enough apart; the writer
 * takes one when it opens its spool and later ones whenever it is on a slow path, and any process
 * of the same boot can take one more, so nobody ever spins to calibrate. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum clock_source {
  WEIR_CLOCK_MONOTONIC = 0, /* ticks are CLOCK_MONOTONIC ns */
  WEIR_CLOCK_TSC = 1,       /* x86 invariant TSC */
  WEIR_CLOCK_CNTVCT = 2     /* aarch64 virtual counter */
};

typedef struct clock_pair {
  uint64_t ticks;   /* clock_ticks() */
  uint64_t mono_ns; /* CLOCK_MONOTONIC, ns, read between two tick reads */
} clock_pair;

typedef struct clock_map {
  clock_pair base;    /* origin */
  double ns_per_tick; /* slope */
} clock_map;

/* Which clock clock_ticks() reads; decided once by clock_init(), MONOTONIC before. */
extern int clock_source_in_use;

/* Decides the clock. Idempotent, any thread. */
void clock_init(void);

/* CLOCK_MONOTONIC in ms, as fine as the kernel's tick and cheap to read. Wraps: compare
 * differences. */
static inline uint32_t clock_coarse_ms(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
  return (uint32_t)((uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000);
}

static inline uint64_t clock_monotonic_ns(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The event clock. 13-26 ns on x86 under virtualisation. */
static inline __attribute__((always_inline)) uint64_t clock_ticks(void)
{
#if defined(__x86_64__)
  if (__builtin_expect(clock_source_in_use == WEIR_CLOCK_TSC, 1)) return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(clock_source_in_use == WEIR_CLOCK_CNTVCT, 1)) {
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
  }
#endif
  return clock_monotonic_ns();
}

/* One pair, the tightest of a few tries. */
clock_pair clock_now(void);

/* How long a read of the event clock takes, in ticks: what a call that is timed by two takes longer. Found in
 * some us; 0: the clock stands still. */
double clock_cost_ticks(void);

/* Builds the map from two pairs; `hint_hz` (0: none) serves when they are less than 1 ms apart. */
clock_map clock_map_make(clock_pair first, clock_pair last, uint64_t hint_hz);

/* CLOCK_MONOTONIC ns of a tick value. Any input is safe: a damaged tick value gives a far-off time.
 */
static inline int64_t clock_to_mono_ns(const clock_map *m, uint64_t ticks)
{
  const double far = 4e18; /* ns; keeps the conversion and the sum inside 64 bits */
  double delta = (double)(int64_t)(ticks - m->base.ticks) * m->ns_per_tick;
  if (!(delta > -far)) delta = -far;
  if (delta > far) delta = far;
  return (int64_t)(m->base.mono_ns & (UINT64_MAX >> 2)) + (int64_t)delta;
}

/* Nominal tick rate in Hz if the CPU reports it (CPUID 15h, cntfrq_el0, 1e9 for MONOTONIC), else
 * 0. */
uint64_t clock_read_hint_hz(void);

#endif
