/* cpu/kernels_avx2.c: the cpu's loops for x86-64 processors that have AVX2 (core/rules.mk). */
#if defined(__x86_64__)
#define CPU_LEVEL cpu_level_avx2
#include "core/backend/cpu/kernels.h"
#else
typedef int no_avx2;
#endif
