/* cpu/rows_avx2.c: kernels of rows for x86-64 processors that have AVX2 (core/rules.mk). */
#if defined(__x86_64__)
#define ROW_LEVEL cpu_rows_avx2
#include "core/backend/cpu/rows_kernels.h"
#else
typedef int no_avx2_rows;
#endif
