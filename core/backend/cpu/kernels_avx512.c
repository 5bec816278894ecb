/* cpu/kernels_avx512.c: the cpu's loops for x86-64 processors that have AVX-512 with its byte,
 * doubleword and short-vector parts (core/rules.mk). */
#if defined(__x86_64__)
#define CPU_LEVEL cpu_level_avx512
#include "core/backend/cpu/kernels.h"
#else
typedef int no_avx512_loops;
#endif
