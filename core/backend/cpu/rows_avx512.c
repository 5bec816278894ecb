/* cpu/rows_avx512.c: kernels of rows for x86-64 processors that have AVX-512 (core/rules.mk). */
#if defined(__x86_64__)
#define ROW_LEVEL cpu_rows_avx512
#include "core/backend/cpu/rows_kernels.h"
#else
typedef int no_avx512_rows;
#endif
