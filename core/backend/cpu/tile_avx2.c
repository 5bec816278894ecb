/* cpu/tile_avx2.c: tiles of matrix products for x86-64 processors that have AVX2 and FMA
 * (core/rules.mk). */
#if defined(__x86_64__)
#define TILE_LEVEL cpu_tile_avx2
#define TILE_BYTES 32
#define TILE_ROWS  6
#include "core/backend/cpu/tile.h"
#else
typedef int no_avx2_tile;
#endif
