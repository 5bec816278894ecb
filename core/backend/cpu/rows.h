/* cpu/rows.h: kernels of the cpu that see more than an element: whole rows.
 *
 * cpu/rows_kernels.h is compiled once for each level of processor, as cpu/kernels.h is, and fills a
 * cpu_row_level. A row lies in memory without holes. Sums run in lanes whose number is the same at
 * all levels, so results are the same to the bit; `out` may be the same memory as an input. */
#ifndef WEIR_BACKEND_CPU_ROWS_H
#define WEIR_BACKEND_CPU_ROWS_H

#include "core/backend/cpu/cpu.h"

enum {
  CPU_COLUMNS = 128, /* columns that are worked on side by side, at most */
  CPU_FLOATS = 2     /* types that rows are calculated in: float, double */
};

/* softmax of n elements; of `width` columns (at most CPU_COLUMNS) of n elements each, `stride`
 * elements from one row to the next. back: what comes back through it, y being its result. */
typedef struct cpu_softmax_kernels {
  void (*row)(void *out, const void *x, int64_t n, bool logarithm);
  void (*columns)(void *out, const void *x, int64_t n, int64_t width, int64_t stride,
                  bool logarithm);
  void (*row_back)(void *out, const void *grad, const void *y, int64_t n, bool logarithm);
  void (*columns_back)(void *out, const void *grad, const void *y, int64_t n, int64_t width,
                       int64_t stride, bool logarithm);
} cpu_softmax_kernels;

/* A row of n elements, of weir_norm_request's kind; weight and bias (NULL: 1, 0) are the row's.
 * back: out is not x. affine: rows whose elements have one weight and one bias, of `groups` after
 * each other, the first row being number `first`. */
typedef struct cpu_norm_row {
  int64_t n, inner; /* elements; those that have the same weight */
  const void *weight, *bias;
  double eps;
  int32_t kind; /* enum weir_norm_kind */
} cpu_norm_row;
typedef struct cpu_norm_kernels {
  void (*row)(void *out, const void *x, const cpu_norm_row *r);
  void (*row_back)(void *out, const void *grad, const void *x, const cpu_norm_row *r);
  void (*affine)(void *out, const void *x, const weir_norm_request *q, int64_t first, int64_t rows);
} cpu_norm_kernels;

/* to[i] becomes itself and from[i] added; sums of rows of n elements, through `by`. */
typedef struct cpu_line_kernels {
  void (*add)(void *to, const void *from, int64_t n);
  void (*means)(void *to, const void *x, int64_t rows, int64_t n, double by);
} cpu_line_kernels;

typedef struct cpu_row_level {
  cpu_softmax_kernels softmax[CPU_FLOATS];
  cpu_norm_kernels norm[CPU_FLOATS];
  cpu_line_kernels line[CPU_FLOATS];
} cpu_row_level;

extern const cpu_row_level cpu_rows_base, cpu_rows_avx2, cpu_rows_avx512;
const cpu_row_level *cpu_rows_in_use(void); /* of this machine (borrowed, static) */

#endif
