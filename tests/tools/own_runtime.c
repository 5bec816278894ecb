/* own_runtime.c: a program with a libcudart of its own, found by its RPATH, and, with OWN_RUNTIME,
 * that libcudart: one of 99 devices. */
#ifdef OWN_RUNTIME
__attribute__((visibility("default"))) int cudaGetDeviceCount(int *count);
__attribute__((visibility("default"))) int cudaMalloc(void **p, unsigned long bytes);

int cudaGetDeviceCount(int *count)
{
  *count = 99;
  return 0;
}

int cudaMalloc(void **p, unsigned long bytes)
{
  (void)p;
  (void)bytes;
  return 9;
}
#else
#include <stdio.h>

int cudaGetDeviceCount(int *count);
int cudaMalloc(void **p, unsigned long bytes);

int main(void)
{
  int count = 0;
  void *p;
  int error = cudaGetDeviceCount(&count);
  (void)printf("%d devices\n", count);
  return error ? error : cudaMalloc(&p, 1 << 20);
}
#endif
