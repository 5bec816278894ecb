/* cpu_gemm.h: matrix products on the cpu: what does them. */
#ifndef WEIR_DEVICE_CPU_GEMM_H
#define WEIR_DEVICE_CPU_GEMM_H

#include "core/backend/cpu.h"
#include "core/weir/blas.h"

enum { CPU_TILE_ROWS = 16, CPU_TILE_BYTES = 128 }; /* the largest of all levels */

typedef struct cpu_tile_level {
  int rows;  /* of a tile */
  int bytes; /* of a row of a tile */
  void (*tile[WEIR_DTYPES])(int64_t k, const void *a_panel, const void *b_panel, double alpha,
                            void *c_tile, int64_t ldc, bool add); /* FLOAT32, FLOAT64 */
  void (*pack[WEIR_DTYPES])(void *panel, int64_t width, int64_t has, int64_t k, const void *matrix,
                            int64_t across, int64_t along); /* by the matrix's dtype */
} cpu_tile_level;

extern const cpu_tile_level cpu_tile_base, cpu_tile_avx2, cpu_tile_avx512;

/* Integers, and nothing else. */
weir_status cpu_gemm_int(const weir_gemm *g);
/* One product by a BLAS library; not done: there is none, it is not wanted, or not for this.
 * Errors: ENOTSUP (it was asked for, and there is none). */
weir_status cpu_gemm_blas(const weir_gemm *g, bool *done);

#endif
