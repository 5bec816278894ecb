/* compute.c: what a CUDA device calculates (core/backend/compute.h), and its smaller parts: random
 * numbers and im2col. */
#include "cuda/backend/launch.h"

static weir_status fill_random(void *self, void *stream, const weir_random *r)
{
  cuda_device_state *d = self;
  k_random a = {.of = *r};
  return cuda_launch(d, stream, WEIR_KERNEL_random_any,
                     cuda_blocks(d, (r->count + 1) / 2, WEIR_THREADS), &a, "random");
}

weir_status cuda_update(void *self, void *stream, const weir_update *u)
{
  k_update a = {.of = *u};
  int k = k_float_kernel(WEIR_KERNEL_update_float16, u->dtype);
  if (k < 0) return cuda_no_kernel("optimizer", u->dtype);
  return cuda_launch(self, stream, (enum kernel_id)k, cuda_blocks(self, u->count, WEIR_THREADS), &a,
                     "optimizer");
}

/* Some of the planes (an image's channel each). */
static weir_status planes(cuda_device_state *d, void *stream, const weir_im2col *c, int64_t first,
                          int64_t count)
{
  int64_t bytes = k_bytes(c->dtype), plane = c->h * c->w;
  int64_t each = c->kernel[0] * c->kernel[1] * c->oh * c->ow;
  k_im2col a = {.in = (const char *)c->in + first * plane * bytes,
                .out = (char *)c->out + first * each * bytes,
                .count = (uint32_t)(count * each),
                .h = (int32_t)c->h,
                .w = (int32_t)c->w,
                .plane = plane,
                .ox = k_divisor_of(c->ow),
                .oy = k_divisor_of(c->oh),
                .s = k_divisor_of(c->kernel[1]),
                .r = k_divisor_of(c->kernel[0])};
  for (int i = 0; i < 2; i++) {
    a.stride[i] = (int32_t)c->stride[i];
    a.pad[i] = (int32_t)c->pad[i];
    a.dilation[i] = (int32_t)c->dilation[i];
  }
  enum kernel_id k = bytes == 1   ? WEIR_KERNEL_im2col_1
                     : bytes == 2 ? WEIR_KERNEL_im2col_2
                     : bytes == 4 ? WEIR_KERNEL_im2col_4
                                  : WEIR_KERNEL_im2col_8;
  return cuda_launch(d, stream, k, cuda_blocks(d, a.count, WEIR_THREADS), &a, "conv2d");
}

static weir_status im2col(void *self, void *stream, const weir_im2col *c)
{
  int64_t each = c->kernel[0] * c->kernel[1] * c->oh * c->ow, all = c->n * c->c;
  if (!each || !all) return WEIR_OK;
  if (each > INT32_MAX || c->h > INT32_MAX || c->w > INT32_MAX)
    return cuda_unsupported("conv2d: a channel of an image gives %lld elements, more than 2^31",
                            (long long)each);
  int64_t some = INT32_MAX / each;
  weir_status st = WEIR_OK;
  for (int64_t first = 0; first < all && !st; first += some)
    st = planes(self, stream, c, first, all - first < some ? all - first : some);
  return st;
}

const weir_compute cuda_compute = {.map = cuda_map,
                                   .reduce = cuda_reduce,
                                   .softmax = cuda_softmax,
                                   .norm = cuda_norm,
                                   .update = cuda_update,
                                   .scan = cuda_scan,
                                   .sort_rows = cuda_sort_rows,
                                   .search = cuda_search,
                                   .random = fill_random,
                                   .gemm = cuda_gemm,
                                   .factor = cuda_factor,
                                   .factor_narrow = cuda_factor_narrow,
                                   .im2col = im2col,
                                   .convolves = cuda_convolves,
                                   .convolve = cuda_convolve,
                                   .index = cuda_index,
                                   .places = cuda_places,
                                   .pool = cuda_pool,
                                   .resample = cuda_resample};
