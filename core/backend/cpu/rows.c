/* cpu/rows.c: kernels of rows for any processor of the architecture, and which of the levels this
 * machine has. */
#define ROW_LEVEL cpu_rows_base
#include "core/backend/cpu/rows_kernels.h"

const cpu_row_level *cpu_rows_in_use(void)
{
#if defined(__x86_64__)
  if (cpu_level_most > 1 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return &cpu_rows_avx512;
  if (cpu_level_most > 0 && __builtin_cpu_supports("avx2")) return &cpu_rows_avx2;
#endif
  return &cpu_rows_base;
}
