/* check.h: what every example does with CUDA's answers: print which call failed, where, and
 * stop. */
#ifndef WEIR_TOOLS_EXAMPLES_CHECK_H
#define WEIR_TOOLS_EXAMPLES_CHECK_H

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    cudaError_t e_ = (call);                                                                       \
    if (e_ != cudaSuccess) {                                                                       \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(e_));       \
      exit(2);                                                                                     \
    }                                                                                              \
  } while (0)

/* The first argument as a positive number, or `otherwise`. */
static inline int argument(int argc, char **argv, int otherwise)
{
  int n = argc > 1 ? atoi(argv[1]) : 0;
  return n > 0 ? n : otherwise;
}

#endif
