/* cpu/gemm.h: matrix products on the cpu: what does them. */
#ifndef WEIR_BACKEND_CPU_GEMM_H
#define WEIR_BACKEND_CPU_GEMM_H

#include "core/backend/cpu/cpu.h"
#include "core/weir/blas.h"

enum {
  CPU_TILE_ROWS = 16, /* the largest of all levels */
  CPU_TILE_BYTES = 128,
  CPU_THIN_TILES = 2
};

enum { CPU_SMALL_STEPS = 128 }; /* of a small product, at most */

/* C = alpha A B, or that added to it; distances in elements. */
typedef struct cpu_small {
  int64_t m, n, k;
  const void *a, *b;
  void *c;
  int64_t a_row, a_step, b_step, b_column, ldc;
  double alpha;
  bool add;
} cpu_small;

typedef void (*cpu_virtual_tile)(int64_t k, const void *a_panel, const void *b,
                                 const int64_t *offset, void *c_tile, int64_t ldc, bool add);

typedef struct cpu_tile_level {
  int rows;                  /* of a tile */
  int bytes;                 /* of a row of a tile */
  int wide_rows, wide_bytes; /* of one of wide_tile */
  void (*tile[WEIR_DTYPES])(int64_t k, const void *a_panel, const void *b_panel, double alpha,
                            void *c_tile, int64_t ldc, bool add); /* FLOAT32, FLOAT64 */
  void (*pack[WEIR_DTYPES])(void *panel, int64_t width, int64_t has, int64_t k, const void *matrix,
                            int64_t across, int64_t along); /* by the matrix's dtype */
  /* The same where row p of B is at `b` + offset[p]; of fewer rows, which are longer; one row of A,
   * CPU_THIN_TILES tiles wide. */
  cpu_virtual_tile virtual_tile[WEIR_DTYPES], wide_tile[WEIR_DTYPES];
  void (*thin_tile[WEIR_DTYPES])(int64_t k, const void *a_row, const void *b, const int64_t *offset,
                                 void *c_row, bool add);
  void (*small[WEIR_DTYPES])(const cpu_small *s);
  double (*dot[WEIR_DTYPES])(int64_t n, const void *x, const void *y);
} cpu_tile_level;

extern const cpu_tile_level cpu_tile_base, cpu_tile_avx2, cpu_tile_avx512;
const cpu_tile_level *cpu_tile_in_use(void); /* of this machine (borrowed, static) */

/* cpu/room.c: room for panels, kept for the next who asks. *out is cpu_room_give()'s; NULL: no
 * memory. */
typedef struct cpu_room {
  size_t bytes; /* of data */
  _Alignas(64) char data[];
} cpu_room;
cpu_room *cpu_room_take(size_t bytes);
void cpu_room_give(cpu_room *r); /* steals it */

/* Integers, and nothing else. */
weir_status cpu_gemm_int(const weir_gemm *g);
/* A product with a vector, of floats: true, it is done. C has been scaled by beta. */
bool cpu_gemm_thin(const weir_gemm *g);
/* One product by a BLAS library; not done: there is none, it is not wanted, or not for this.
 * Errors: ENOTSUP (it was asked for, and there is none). */
weir_status cpu_gemm_blas(const weir_gemm *g, bool *done);
/* The library that is used now, as it was opened (*name; NULL: it is not asked for); NULL: none. */
void *cpu_blas_library(const char **name);
/* How many threads its next calls may take. */
void cpu_blas_threads(int n);

#endif
