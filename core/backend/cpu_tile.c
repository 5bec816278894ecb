/* cpu_tile.c: tiles of matrix products for any processor of the architecture. */
#define TILE_LEVEL cpu_tile_base
#define TILE_BYTES 16
#define TILE_ROWS  6
#include "core/backend/cpu_tile.h"
