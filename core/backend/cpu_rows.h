/* cpu_rows.h: kernels of the cpu that see more than an element: whole rows.
 *
 * cpu_rows_kernels.h is compiled once for each level of processor, as cpu_kernels.h is, and fills a
 * cpu_row_level. A row lies in memory without holes. Sums run in lanes whose number is the same at
 * all levels, so results are the same to the bit; `out` may be the same memory as an input. */
#ifndef WEIR_DEVICE_CPU_ROWS_H
#define WEIR_DEVICE_CPU_ROWS_H

#include "core/backend/cpu.h"

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

typedef struct cpu_row_level {
  cpu_softmax_kernels softmax[CPU_FLOATS];
} cpu_row_level;

extern const cpu_row_level cpu_rows_base, cpu_rows_avx2, cpu_rows_avx512;
const cpu_row_level *cpu_rows_in_use(void); /* of this machine (borrowed, static) */

#endif
