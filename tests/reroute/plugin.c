/* plugin.c: a library that a program opens and that allocates for itself: a module of its own. */
#include <cuda_runtime_api.h>

__attribute__((visibility("default"))) int churn_there(void);

int churn_there(void)
{
  for (int i = 0; i < 3; i++) {
    void *p;
    if (cudaMalloc(&p, 3 << 20) || cudaFree(p)) return 1;
  }
  return 0;
}
