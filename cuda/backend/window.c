/* window.c: pooling and interpolation (weir_pool, weir_resample) on CUDA devices: planes, as many
 * at a time as have less than 2^31 elements of what is written. */
#include "cuda/backend/launch.h"
#include "core/backend/window.h"

/* Elements of a plane of these sizes; 0: 2^31 or more. */
static int64_t plane_of(const int64_t *size)
{
  int64_t all = 1;
  for (int d = 0; d < 3; d++)
    if (size[d] > INT32_MAX || (all *= size[d]) > INT32_MAX) return 0;
  return all;
}

static weir_status too_many(const char *what)
{
  return cuda_unsupported("%s: a plane has 2^31 elements or more", what);
}

static enum kernel_id kernel_of_float(weir_dtype dtype, enum kernel_id first)
{
  int at = dtype == WEIR_FLOAT16 ? 1 : dtype == WEIR_BFLOAT16 ? 2 : dtype == WEIR_FLOAT32 ? 3 : 4;
  return (enum kernel_id)((int)first + (k_is_real(dtype) ? at : 0));
}

weir_status cuda_pool(void *self, void *stream, const weir_pool *p)
{
  bool back = p->kind >= WEIR_POOL_AVERAGE_BACK;
  bool integer = !k_is_real(p->dtype);
  if (!(WEIR_DTYPES_REAL >> p->dtype & 1) ||
      (integer && (back || (p->kind == WEIR_POOL_AVERAGE && p->dtype != WEIR_INT64))))
    return cuda_no_kernel("pool", p->dtype);
  int64_t in[3], out[3], bytes = k_bytes(p->dtype);
  for (int d = 0; d < 3; d++) {
    in[d] = p->axis[d].in;
    out[d] = p->axis[d].out;
  }
  const int64_t *to = back ? in : out, *from = back ? out : in;
  int64_t written = plane_of(to), read = plane_of(from);
  if (!written || !read) return too_many("pool");
  k_pool a = {.of = *p};
  a.x = k_divisor_of(to[2]), a.y = k_divisor_of(to[1]), a.z = k_divisor_of(to[0]);
  int64_t some = INT32_MAX / written;
  weir_status st = WEIR_OK;
  for (int64_t first = 0; first < p->planes && !st; first += some) {
    int64_t count = p->planes - first < some ? p->planes - first : some;
    a.count = (uint32_t)(count * written);
    a.of.from = (const char *)p->from + first * read * bytes;
    a.of.to = (char *)p->to + first * written * bytes;
    if (p->index) a.of.index = p->index + first * (back ? read : written);
    st = cuda_launch(self, stream, kernel_of_float(p->dtype, WEIR_KERNEL_pool_integer),
                     cuda_blocks(self, a.count, WEIR_THREADS), &a, "pool");
  }
  return st;
}

weir_status cuda_resample(void *self, void *stream, const weir_resample *r)
{
  bool nearest = r->kind == WEIR_RESAMPLE_NEAREST || r->kind == WEIR_RESAMPLE_EXACT;
  if (!k_is_real(r->dtype) && (r->dtype != WEIR_UINT8 || !nearest || r->back))
    return cuda_no_kernel("upsample", r->dtype);
  const int64_t *to = r->back ? r->in : r->out, *from = r->back ? r->out : r->in;
  int64_t written = plane_of(to), read = plane_of(from), bytes = k_bytes(r->dtype);
  if (!written || !read) return too_many("upsample");
  k_resample a = {.of = *r};
  a.x = k_divisor_of(to[2]), a.y = k_divisor_of(to[1]), a.z = k_divisor_of(to[0]);
  for (int d = 0; d < 3; d++)
    a.scale[d] = resample_scale(r, d);
  int64_t some = INT32_MAX / written;
  weir_status st = WEIR_OK;
  for (int64_t first = 0; first < r->planes && !st; first += some) {
    int64_t count = r->planes - first < some ? r->planes - first : some;
    a.count = (uint32_t)(count * written);
    a.of.from = (const char *)r->from + first * read * bytes;
    a.of.to = (char *)r->to + first * written * bytes;
    st = cuda_launch(self, stream, kernel_of_float(r->dtype, WEIR_KERNEL_resample_uint8),
                     cuda_blocks(self, a.count, WEIR_THREADS), &a, "upsample");
  }
  return st;
}
