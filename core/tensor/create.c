/* create.c: new tensors.
 *
 * Every factory makes a spec of what is given, what is not, and whose (the process's defaults, or
 * another tensor's), makes the tensor, and fills it. A tensor whose filling failed is given back.
 */
#include <math.h>
#include <string.h>
#include "core/stream/async_error.h"
#include "core/tensor/calc.h"
#include "core/tensor/create.h"
#include "core/tensor/loop.h"

static const weir_options none;

weir_status tensor_spec_of(tensor_spec *out, const weir_options *options, weir_dtype dtype)
{
  const weir_options *o = options ? options : &none;
  *out = (tensor_spec){.dtype = o->dtype ? o->dtype : dtype,
                       .device = device_resolve(o->device),
                       .pinned = o->pin_memory};
  if ((unsigned)out->dtype >= WEIR_DTYPES)
    return fail_invalid("%d is not a dtype", (int)out->dtype);
  return format_from(&out->format, o);
}

weir_status tensor_spec_like(tensor_spec *out, const weir_options *options, const weir_tensor *of)
{
  weir_options o = options ? *options : none;
  if (!o.device.type) o.device = device_of_tensor(of);
  return tensor_spec_of(out, &o, of->dtype);
}

weir_status tensor_new_by(weir_tensor **out, const tensor_spec *s, weir_shape shape)
{
  return format_new(out, s->dtype, s->device, s->pinned, shape, s->format);
}

/* ---- from memory ----------------------------------------------------------------------------- */

/* A tensor on the cpu of a copy of memory of the caller's that is not aligned to its elements. */
static weir_status align(weir_tensor **out, const void *values, weir_dtype dtype, weir_shape shape)
{
  weir_status st = tensor_new(out, dtype, WEIR_CPU, false, shape);
  if (!st && values) memcpy((*out)->data, values, (size_t)(*out)->numel * itemsize(dtype));
  return st;
}

/* A tensor on the cpu that shows memory of the caller's. */
static weir_status view_values(weir_tensor **out, const void *values, weir_dtype dtype,
                               weir_shape shape, const char *function)
{
  tensor_storage *s;
  int64_t numel;
  weir_status st = shape_numel(&numel, shape, dtype);
  if (!st && numel && !values) st = fail_null(function, "values");
  if (!st && numel && (uintptr_t)values % host_alignment(dtype))
    return align(out, values, dtype, shape);
  if (!st)
    st = storage_over(&s, (void *)values, (uint64_t)numel * itemsize(dtype), WEIR_CPU, NULL, NULL);
  return st ? st : tensor_make(out, s, dtype, shape, NULL, 0);
}

static weir_status from_values(weir_tensor **out, const tensor_spec *s, const void *values,
                               weir_dtype of, weir_shape shape, const char *function)
{
  CALC(c);
  weir_tensor *shown = c_call(c, view_values, values, of, shape, function);
  c_do(c, tensor_new_by(out, s, shape));
  if (!c->st && (c->st = weir_copy_(*out, shown, false))) weir_tensor_drop(out);
  return c->st;
}

weir_status weir_tensor_from(weir_tensor **out, const void *values, weir_dtype of, weir_shape shape,
                             const weir_options *options)
{
  WEIR_OP(out);
  tensor_spec s;
  weir_status st = tensor_spec_of(&s, options, of);
  return st ? st : from_values(out, &s, values, of, shape, __func__);
}

weir_status weir_new_tensor(weir_tensor **out, const weir_tensor *self, const void *values,
                            weir_dtype of, weir_shape shape, const weir_options *options)
{
  WEIR_OP(out, self);
  tensor_spec s;
  weir_status st = tensor_spec_like(&s, options, self);
  return st ? st : from_values(out, &s, values, of, shape, __func__);
}

/* Bytes from the first element to the end of the last. */
static weir_status extent_of(uint64_t *out, weir_shape shape, const int64_t *strides,
                             weir_dtype dtype)
{
  text_buffer text;
  weir_shape by = {.count = shape.count};
  int64_t last = 0, reach;
  for (int i = 0; i < shape.count; i++)
    by.size[i] = strides[i];
  for (int i = 0; i < shape.count; i++) {
    if (strides[i] < 0)
      return fail_invalid("Negative strides are not supported at the moment, got strides: %s",
                          shape_format(&text, by));
    if (__builtin_mul_overflow(shape.size[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      last = INT64_MAX;
  }
  if (last >= INT64_MAX / (int64_t)itemsize(dtype) - 1)
    return fail_invalid("Storage size calculation overflowed with strides=%s",
                        shape_format(&text, by));
  *out = (uint64_t)(last + 1) * itemsize(dtype);
  return WEIR_OK;
}

/* What is not aligned no kernel can read, and the error would be the device's end; on the cpu, the
 * program's wherever a loop reads more than one element at a time. */
static weir_status check_aligned(const tensor_spec *s, const void *data)
{
  bool cuda = s->device.type == WEIR_DEVICE_CUDA;
  size_t align = cuda ? itemsize(s->dtype) : host_alignment(s->dtype);
  if (!((uintptr_t)data % align)) return WEIR_OK;
  return fail_invalid("the data at %p is not aligned to %zu bytes, and no %s could read it as %s",
                      data, align, cuda ? "CUDA device" : "loop on the cpu",
                      weir_dtype_name(s->dtype));
}

static weir_status check_over(uint64_t *bytes, const tensor_spec *s, const void *data,
                              weir_shape shape, const int64_t *strides)
{
  int64_t numel;
  device_place place;
  weir_status st = shape_numel(&numel, shape, s->dtype);
  if (st) return st;
  if (s->pinned) return fail_invalid("memory of somebody else's is not pinned by a tensor over it");
  if (numel && !data) return fail_null("weir_tensor_over", "data");
  *bytes = (uint64_t)numel * itemsize(s->dtype);
  if (numel) st = check_aligned(s, data);
  if (!st && numel && strides) st = extent_of(bytes, shape, strides, s->dtype);
  if (!st && s->device.type == WEIR_DEVICE_CUDA) st = device_place_of(&place, s->device);
  return st;
}

weir_status weir_tensor_over(weir_tensor **out, void *data, weir_shape shape,
                             const int64_t *strides, const weir_options *options,
                             void (*release)(void *context), void *context)
{
  WEIR_REQUIRE_OUT(out);
  weir_options o = options ? *options : none;
  tensor_spec s;
  uint64_t bytes = 0;
  tensor_storage *storage;
  if (!o.device.type) o.device = WEIR_CPU;
  TRY(tensor_spec_of(&s, &o, weir_get_default_dtype()));
  TRY(check_over(&bytes, &s, data, shape, strides));
  TRY(storage_over(&storage, data, bytes, s.device, NULL, NULL));
  TRY(tensor_make(out, storage, s.dtype, shape, strides, 0));
  storage->release = release; /* only now: a failure releases nothing */
  storage->context = context;
  return WEIR_OK;
}

/* ---- filled with one number ------------------------------------------------------------------ */

/* What a number has no dtype for is given by its kind. */
static weir_dtype dtype_of(weir_scalar value)
{
  return value.dtype == WEIR_FLOAT64 ? weir_get_default_dtype() : value.dtype;
}

static weir_status check_number(weir_scalar v)
{
  if (v.dtype == WEIR_BOOL || v.dtype == WEIR_INT64 || v.dtype == WEIR_FLOAT64 ||
      v.dtype == WEIR_COMPLEX64)
    return WEIR_OK;
  return fail_invalid("a weir_scalar is bool, int64, float64 or complex64, not %s",
                      weir_dtype_name(v.dtype));
}

static weir_status filled(weir_tensor **out, weir_scalar value)
{
  weir_status st = check_number(value);
  if (!st) st = value.dtype == WEIR_INT64 && !value.i ? weir_zero_(*out) : weir_fill_(*out, value);
  if (st) weir_tensor_drop(out);
  return st;
}

static weir_status filled_by(weir_tensor **out, const weir_options *options, weir_dtype dtype,
                             weir_shape shape, const weir_scalar *value)
{
  tensor_spec s;
  *out = NULL;
  weir_status st = tensor_spec_of(&s, options, dtype);
  if (!st) st = tensor_new_by(out, &s, shape);
  return st || !value ? st : filled(out, *value);
}

weir_status weir_empty(weir_tensor **out, weir_shape shape, const weir_options *options)
{
  WEIR_REQUIRE(out);
  return filled_by(out, options, weir_get_default_dtype(), shape, NULL);
}

weir_status weir_full(weir_tensor **out, weir_shape shape, weir_scalar value,
                      const weir_options *options)
{
  WEIR_OP_ON(out);
  return filled_by(out, options, dtype_of(value), shape, &value);
}

static weir_status filled_like(weir_tensor **out, const weir_tensor *like,
                               const weir_options *options, const weir_scalar *value)
{
  tensor_spec s;
  *out = NULL;
  weir_status st = tensor_spec_like(&s, options, like);
  if (!st) st = format_new_like(out, like, s.dtype, s.device, s.pinned, s.format);
  return st || !value ? st : filled(out, *value);
}

weir_status weir_empty_like(weir_tensor **out, const weir_tensor *like, const weir_options *options)
{
  WEIR_REQUIRE_OUT(out, like);
  return filled_like(out, like, options, NULL);
}

weir_status weir_full_like(weir_tensor **out, const weir_tensor *like, weir_scalar value,
                           const weir_options *options)
{
  WEIR_OP(out, like);
  return filled_like(out, like, options, &value);
}

static weir_status filled_new(weir_tensor **out, const weir_tensor *self, weir_shape shape,
                              const weir_options *options, const weir_scalar *value)
{
  tensor_spec s;
  *out = NULL;
  weir_status st = tensor_spec_like(&s, options, self);
  if (!st) st = tensor_new_by(out, &s, shape);
  return st || !value ? st : filled(out, *value);
}

weir_status weir_new_empty(weir_tensor **out, const weir_tensor *self, weir_shape shape,
                           const weir_options *options)
{
  WEIR_REQUIRE_OUT(out, self);
  return filled_new(out, self, shape, options, NULL);
}

weir_status weir_new_full(weir_tensor **out, const weir_tensor *self, weir_shape shape,
                          weir_scalar value, const weir_options *options)
{
  WEIR_OP(out, self);
  return filled_new(out, self, shape, options, &value);
}

#define CONSTANT(name, value)                                                                      \
  weir_status weir_##name(weir_tensor **out, weir_shape shape, const weir_options *options)        \
  {                                                                                                \
    WEIR_OP_ON(out);                                                                               \
    weir_scalar v = weir_int(value);                                                               \
    return filled_by(out, options, weir_get_default_dtype(), shape, &v);                           \
  }                                                                                                \
  weir_status weir_##name##_like(weir_tensor **out, const weir_tensor *like,                       \
                                 const weir_options *options)                                      \
  {                                                                                                \
    WEIR_OP(out, like);                                                                            \
    weir_scalar v = weir_int(value);                                                               \
    return filled_like(out, like, options, &v);                                                    \
  }                                                                                                \
  weir_status weir_new_##name(weir_tensor **out, const weir_tensor *self, weir_shape shape,        \
                              const weir_options *options)                                         \
  {                                                                                                \
    WEIR_OP(out, self);                                                                            \
    weir_scalar v = weir_int(value);                                                               \
    return filled_new(out, self, shape, options, &v);                                              \
  }
CONSTANT(zeros, 0)
CONSTANT(ones, 1)

/* ---- ranges ---------------------------------------------------------------------------------- */

static weir_status out_of_room(void)
{
  return fail_invalid("invalid size, possible overflow?");
}

static weir_status count_integers(int64_t *out, int64_t start, int64_t end, int64_t step)
{
  uint64_t by = step < 0 ? -(uint64_t)step : (uint64_t)step;
  uint64_t way = step < 0 ? (uint64_t)start - (uint64_t)end : (uint64_t)end - (uint64_t)start;
  uint64_t count = way / by + (way % by != 0);
  if (count > INT64_MAX) return out_of_room();
  *out = (int64_t)count;
  return WEIR_OK;
}

static weir_status count_range(int64_t *out, weir_scalar a, weir_scalar b, weir_scalar step,
                               bool integers)
{
  double from = scalar_real(a), to = scalar_real(b), by = scalar_real(step);
  if (!isfinite(by)) return fail_invalid("step must be finite but got %g", by);
  if (by == 0) return fail_invalid("step must be nonzero");
  if (!isfinite(from) || !isfinite(to))
    return fail_invalid("unsupported range: %g -> %g", from, to);
  if (by > 0 ? from > to : from < to)
    return fail_invalid("upper bound and lower bound inconsistent with step sign");
  if (integers) return count_integers(out, a.i, b.i, step.i);
  double count = ceil((to - from) / by);
  if (!(count >= 0 && count < 0x1p63)) return out_of_room();
  *out = (int64_t)count;
  return WEIR_OK;
}

/* Calculated in int64 or float64, whatever is stored, so that all devices agree. */
static weir_status fill_range(weir_tensor *t, weir_scalar start, weir_scalar step)
{
  weir_dtype wide = dtype_is_integral(t->dtype) ? WEIR_INT64 : WEIR_FLOAT64;
  weir_loop l;
  TRY(scalar_for(&start, start, wide));
  TRY(scalar_for(&step, step, wide));
  l.op = WEIR_OP_RANGE;
  l.compute = wide;
  l.has_alpha = false;
  l.p[0] = start;
  l.p[1] = step;
  l.p[2] = weir_bool(false);
  l.dims = 1;
  l.size[0] = t->numel;
  l.out = operand_of(t, &l);
  return loop_run(device_of_tensor(t), &l);
}

weir_status weir_arange(weir_tensor **out, weir_scalar start, weir_scalar end, weir_scalar step,
                        const weir_options *options)
{
  WEIR_OP(out);
  tensor_spec s;
  int64_t count = 0;
  const weir_scalar *three[] = {&start, &end, &step};
  bool integers = true;
  for (int i = 0; i < 3; i++) {
    TRY(check_number(*three[i]));
    if (three[i]->dtype == WEIR_COMPLEX64)
      return fail_invalid("value cannot be converted to type double without overflow");
    integers &= three[i]->dtype != WEIR_FLOAT64;
  }
  weir_status st = tensor_spec_of(&s, options, integers ? WEIR_INT64 : weir_get_default_dtype());
  if (!st && (s.dtype == WEIR_BOOL || s.dtype == WEIR_COMPLEX64))
    st = not_implemented("arange_%s", s.device, s.dtype);
  if (!st) st = count_range(&count, start, end, step, integers);
  if (!st) st = tensor_new_by(out, &s, weir_shape_of(1, &count));
  if (!st && (st = fill_range(*out, start, step))) weir_tensor_drop(out);
  return st;
}
