/* cpu_kernels.c: the cpu's loops for any processor of the architecture, and which of the levels
 * this machine has. */
#define CPU_LEVEL weir_cpu_level_base
#include "core/backend/cpu_kernels.h"

int weir_cpu_level_most = 2;

const cpu_level *weir_cpu_level(void)
{
#if defined(__x86_64__)
  if (weir_cpu_level_most > 0 && __builtin_cpu_supports("avx2")) return &weir_cpu_level_avx2;
#endif
  return &weir_cpu_level_base;
}
