/* plugin.cu: a library with a kernel and a variable of its own, which test_launch loads and
 * unloads. */
#include <cuda_runtime.h>
#include "cuda/sim/weir_kernel.h"

__device__ int plugin_number;

WEIR_KERNEL(plugin_add, int *p, int n)
{
  p[threadIdx.x] += n;
}

/* Runs the kernel once on two numbers and sets and reads the variable; the first error, or -1 for a
 * wrong result. */
extern "C" __attribute__((visibility("default"))) int plugin_run(int n)
{
  int *p, h[2] = {10, 20}, read = 0;
  cudaError_t e = cudaMalloc(&p, sizeof h);
  if (!e) e = cudaMemcpy(p, h, sizeof h, cudaMemcpyHostToDevice);
  plugin_add<<<1, 2>>>(p, n);
  if (!e) e = cudaGetLastError();
  if (!e) e = cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost);
  if (!e) e = cudaMemcpyToSymbol(plugin_number, &n, sizeof n);
  if (!e) e = cudaMemcpyFromSymbol(&read, plugin_number, sizeof read);
  if (!e) e = cudaFree(p);
  if (e) return e;
  return h[0] == 10 + n && h[1] == 20 + n && read == n ? 0 : -1;
}
