/* shim.c: a library that puts itself before cudaMalloc, as people do, and asks for one byte more.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **p, size_t bytes)
{
  int (*next)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");

  printf("shim\n");
  return next ? next(p, bytes + 1) : 999;
}
