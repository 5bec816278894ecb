/* cpu/tile.c: tiles of matrix products for any processor of the architecture. */
#define TILE_LEVEL cpu_tile_base
#define TILE_BYTES 16
#define TILE_ROWS  6
#include "core/backend/cpu/tile.h"

const cpu_tile_level *cpu_tile_in_use(void)
{
#if defined(__x86_64__)
  int most = cpu_level_most;
  if (most > 1 && __builtin_cpu_supports("avx512f")) return &cpu_tile_avx512;
  if (most > 0 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return &cpu_tile_avx2;
#endif
  return &cpu_tile_base;
}
