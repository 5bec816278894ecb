/* driver_kernels.cu: the kernels of driver.c. nvcc makes of it the image that the program carries;
 * a C++ compiler makes of the same file the host twins for the software device. */
#include "cuda/sim/weir_kernel.h"

/* c = a * b, square matrices of n rows; rows of c are `pitch` floats apart. */
WEIR_KERNEL(multiply, const float *a, const float *b, float *c, int n, int pitch)
{
  int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++)
    sum += a[row * n + k] * b[k * n + column];
  c[row * pitch + column] = sum;
}

/* sums[row] = the sum of a row of c. */
WEIR_KERNEL(sum_rows, const float *c, int n, int pitch, float *sums)
{
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= n) return;
  float sum = 0;
  for (int k = 0; k < n; k++)
    sum += c[row * pitch + k];
  sums[row] = sum;
}
