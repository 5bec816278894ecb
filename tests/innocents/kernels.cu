// kernels.cu: what the innocents launch.
#include "cuda/sim/weir_kernel.h"

WEIR_KERNEL(innocent_add, const float *a, const float *b, float *c, int n)
{
  for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += (int)(gridDim.x * blockDim.x))
    c[i] = a[i] + b[i];
}

// Each element from its neighbours.
WEIR_KERNEL(innocent_step, const float *in, float *out, int n)
{
  for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n;
       i += (int)(gridDim.x * blockDim.x))
    out[i] = (in[i ? i - 1 : 0] + in[i] + in[i < n - 1 ? i + 1 : i]) / 3;
}

WEIR_KERNEL(innocent_sum, const float *in, float *out, int n)
{
  float sum = 0;
  if (blockIdx.x || threadIdx.x) return;
  for (int i = 0; i < n; i++)
    sum += in[i];
  *out = sum;
}

extern "C" {
int innocent_launch_add(cudaStream_t s, const float *a, const float *b, float *c, int n)
{
  innocent_add<<<4, 64, 0, s>>>(a, b, c, n);
  return cudaPeekAtLastError();
}

int innocent_launch_step(cudaStream_t s, const float *in, float *out, int n)
{
  innocent_step<<<4, 64, 0, s>>>(in, out, n);
  return cudaPeekAtLastError();
}

int innocent_launch_sum(cudaStream_t s, const float *in, float *out, int n)
{
  innocent_sum<<<1, 1, 0, s>>>(in, out, n);
  return cudaPeekAtLastError();
}

const void *innocent_step_kernel(void)
{
  return (const void *)innocent_step;
}

// For cuModuleLoadData: kernels of these names.
extern const char innocent_ptx[];
const char innocent_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry innocent_add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)\n"
    "{\n  ret;\n}\n"
    ".visible .entry innocent_step(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n  ret;\n}\n"
    ".visible .entry innocent_sum(.param .u64 a, .param .u64 b, .param .u32 n)\n{\n  ret;\n}\n";
}
