// kernels.cu: what the victims launch, and copy to and from.
#include <sched.h>
#include "cuda/sim/weir_kernel.h"
#include "cuda/sim/weir_texture.h"

__device__ char victim_bytes[4096];

WEIR_KERNEL(victim_touch, float *p, int n)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = (float)i;
}

WEIR_KERNEL(victim_double_to_float, const double *from, float *p, int n)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = (float)from[i];
}

WEIR_KERNEL(victim_halve, const float *from, float *p, int n)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = from[2 * i] + from[2 * i + 1];
}

WEIR_KERNEL(victim_fetch, cudaTextureObject_t from, float *p, int n)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = weir_tex1Dfetch<float>(from, i);
}

WEIR_KERNEL(victim_follow, float *const *table, int n)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) table[0][i] += 1;
}

// Says in flags[0] that it runs, until flags[1] is set.
WEIR_KERNEL(victim_gate, volatile int *flags)
{
  flags[0] = 1;
  while (!flags[1]) {
#ifndef __CUDA_ARCH__
    (void)sched_yield();
#endif
  }
}

extern "C" {
// For cuModuleLoadData: a kernel of the same name that does nothing.
extern const char victim_ptx[];
const char victim_ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry victim_touch(.param .u64 p, .param .u32 n)\n"
                          "{\n  ret;\n}\n";

const void *victim_symbol(void)
{
  return victim_bytes;
}

int victim_launch(cudaStream_t s, float *p, int n)
{
  victim_touch<<<2, 64, 0, s>>>(p, n);
  return cudaPeekAtLastError();
}

int victim_narrow_launch(cudaStream_t s, const double *from, float *p, int n)
{
  victim_double_to_float<<<2, 64, 0, s>>>(from, p, n);
  return cudaPeekAtLastError();
}

int victim_halve_launch(cudaStream_t s, const float *from, float *p, int n)
{
  victim_halve<<<2, 64, 0, s>>>(from, p, n);
  return cudaPeekAtLastError();
}

int victim_fetch_launch(cudaStream_t s, cudaTextureObject_t from, float *p, int n)
{
  victim_fetch<<<2, 64, 0, s>>>(from, p, n);
  return cudaPeekAtLastError();
}

int victim_follow_launch(cudaStream_t s, float *const *table, int n)
{
  victim_follow<<<2, 64, 0, s>>>(table, n);
  return cudaPeekAtLastError();
}

int victim_gate_launch(cudaStream_t s, volatile int *flags)
{
  victim_gate<<<1, 1, 0, s>>>(flags);
  return cudaPeekAtLastError();
}

const void *victim_halve_kernel(void)
{
  return (const void *)victim_halve;
}

const void *victim_kernel(void)
{
  return (const void *)victim_touch;
}
}
