/* fake_cuda.c: a driver of nothing, built as libcuda.so.1. */
#include <stddef.h>

int cuInit(unsigned flags)
{
  return flags ? 1 : 0;
}

int cuMemAlloc_v2(unsigned long long *p, size_t bytes)
{
  if (!p) return 1;
  *p = 0xc0000000u + bytes;
  return 0;
}
