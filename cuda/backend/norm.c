/* norm.c: normalised rows and what comes back through them: how their kernel (cuda/kernels/norm.cu)
 * is spread over a device. */
#include "cuda/backend/launch.h"

/* Threads of a row, a power of two: some 4 elements each. */
static int32_t lanes_of(const weir_norm_request *q)
{
  int32_t lanes = 1;
  while (lanes < WEIR_THREADS && (int64_t)lanes * 4 < q->each)
    lanes *= 2;
  return lanes;
}

weir_status cuda_norm(void *self, void *stream, const weir_norm_request *q)
{
  k_norm a = {.of = *q, .lanes = lanes_of(q)};
  int64_t group = WEIR_THREADS / a.lanes, blocks = (q->rows + group - 1) / group;
  int k = k_float_kernel(WEIR_KERNEL_rows_norm_float16, q->dtype);
  if (k < 0) return cuda_no_kernel("norm", q->dtype);
  if (blocks > INT32_MAX)
    return cuda_unsupported("norm: %lld rows of %lld elements are more than a launch takes",
                            (long long)q->rows, (long long)q->each);
  return cuda_launch(self, stream, (enum kernel_id)k, (launch_grid){(uint32_t)blocks, 1, 1}, &a,
                     "norm");
}
