/* softmax.c: softmax and what comes back through it: how its kernel (cuda/kernels/softmax.cu) is
 * spread over a device. */
#include "cuda/backend/launch.h"

/* Threads of a row, a power of two: some 4 elements each. Rows side by side keep 32 neighbours, the
 * elements of a whole line of memory. */
static int32_t lanes_of(const weir_softmax_request *s)
{
  int32_t lanes = 1, most = s->inner > 1 ? WEIR_THREADS / 32 : WEIR_THREADS;
  while (lanes < most && (int64_t)lanes * 4 < s->each)
    lanes *= 2;
  return lanes;
}

weir_status cuda_softmax(void *self, void *stream, const weir_softmax_request *s)
{
  const char *name = s->logarithm ? "log_softmax" : "softmax";
  k_softmax a = {.of = *s, .lanes = lanes_of(s)};
  int64_t group = WEIR_THREADS / a.lanes, rows = s->outer * s->inner;
  int64_t blocks = (rows + group - 1) / group;
  int k = k_float_kernel(WEIR_KERNEL_softmax_float16, s->dtype);
  if (k < 0) return cuda_no_kernel(name, s->dtype);
  if (blocks > INT32_MAX)
    return cuda_unsupported("%s: %lld rows of %lld elements are more than a launch takes", name,
                            (long long)rows, (long long)s->each);
  return cuda_launch(self, stream, (enum kernel_id)k, (launch_grid){(uint32_t)blocks, 1, 1}, &a,
                     name);
}
