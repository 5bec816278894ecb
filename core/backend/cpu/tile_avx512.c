/* cpu/tile_avx512.c: tiles of matrix products for x86-64 processors that have AVX-512F
 * (core/rules.mk). */
#if defined(__x86_64__)
#define TILE_LEVEL cpu_tile_avx512
#define TILE_BYTES 64
#define TILE_ROWS  14
#include "core/backend/cpu/tile.h"
#else
typedef int no_avx512_tile;
#endif
