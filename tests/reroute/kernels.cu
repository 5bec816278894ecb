// kernels.cu: what the trap programs launch.
#include "cuda/sim/weir_kernel.h"

// Every element set, after some turns of doing nothing in the first thread.
WEIR_KERNEL(trap_fill, unsigned *p, unsigned n, unsigned value, unsigned turns)
{
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0)
    for (volatile unsigned t = 0; t < turns;)
      t = t + 1;
  if (i < n) p[i] = value;
}

// *sum is the number of elements that are not `value`.
WEIR_KERNEL(trap_count, const unsigned *p, unsigned n, unsigned value, unsigned *sum)
{
  if (blockIdx.x || threadIdx.x) return;
  unsigned wrong = 0;
  for (unsigned i = 0; i < n; i++)
    wrong += p[i] != value;
  *sum = wrong;
}

extern "C" {
int trap_launch_fill(cudaStream_t s, unsigned *p, unsigned n, unsigned value, unsigned turns)
{
  trap_fill<<<(n + 127) / 128, 128, 0, s>>>(p, n, value, turns);
  return cudaPeekAtLastError();
}

int trap_launch_count(cudaStream_t s, const unsigned *p, unsigned n, unsigned value, unsigned *sum)
{
  trap_count<<<1, 1, 0, s>>>(p, n, value, sum);
  return cudaPeekAtLastError();
}
}
