// kernels.cu: what the random caller launches, and copies to and from.
#include "cuda/sim/weir_kernel.h"

__device__ char victim_bytes[4096];

WEIR_KERNEL(victim_touch, float *p, int n)
{
  int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) p[i] = (float)i;
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

const void *victim_kernel(void)
{
  return (const void *)victim_touch;
}
}
