/* cpu/kernels.c: the cpu's loops for any processor of the architecture, and which of the levels
 * this machine has. */
#define CPU_LEVEL cpu_level_base
#include "core/backend/cpu/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Not every compiler knows it by name. */
static bool has_f16c(void)
{
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

int cpu_level_most = 2;

const cpu_level *cpu_level_in_use(void)
{
#if defined(__x86_64__)
  static _Atomic(int) found = -1;
  int level = atomic_load_explicit(&found, memory_order_relaxed);
  if (level < 0) {
    level = __builtin_cpu_supports("avx2") && has_f16c();
    level += level && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    atomic_store_explicit(&found, level, memory_order_relaxed);
  }
  if (level > cpu_level_most) level = cpu_level_most;
  if (level > 1) return &cpu_level_avx512;
  if (level > 0) return &cpu_level_avx2;
#endif
  return &cpu_level_base;
}
