/* cpu_kernels.c: the cpu's loops for any processor of the architecture, and which of the levels
 * this machine has. */
#define CPU_LEVEL cpu_level_base
#include "core/backend/cpu_kernels.h"

int cpu_level_most = 2;

const cpu_level *cpu_level_in_use(void)
{
#if defined(__x86_64__)
  if (cpu_level_most > 0 && __builtin_cpu_supports("avx2")) return &cpu_level_avx2;
#endif
  return &cpu_level_base;
}
