/* number.c: numbers into tensors, and elements as numbers.
 *
 * A number that a dtype cannot hold is refused as torch refuses it (c10's checked conversion):
 * integers by their range, except that negative ones wrap in uint8; floating point beyond the
 * greatest of the dtype, infinity excepted; complex numbers with an imaginary part for what is not
 * complex. */
#include <math.h>
#include <string.h>
#include "core/backend/half.h"
#include "core/stream/async_error.h"
#include "core/tensor/loop.h"
#include "core/tensor/record.h"

/* Whether an integer, or the digits before a number's point, fit. */
static bool integer_fits(weir_scalar v, weir_dtype dtype)
{
  int bits = (int)itemsize(dtype) * 8;
  bool sign = dtype != WEIR_UINT8;
  if (v.dtype == WEIR_INT64 || v.dtype == WEIR_BOOL) {
    if (!sign) return v.i >= -255 && v.i <= 255; /* negative ones wrap, as in C++ */
    return bits == 64 || (v.i >= -(INT64_C(1) << (bits - 1)) && v.i < INT64_C(1) << (bits - 1));
  }
  double most = sign ? 0x1p62 * 2 : 256; /* the first that does not fit */
  if (sign && bits < 64) most = (double)(INT64_C(1) << (bits - 1));
  return sign && bits == 64 ? v.f >= -most && v.f <= most
                            : v.f >= (sign ? -most : 0) && v.f <= most - 1;
}

/* torch's name of a dtype where a number does not fit. */
static const char *type_of_number(weir_dtype dtype)
{
  static const char *const names[WEIR_DTYPES] = {
      [WEIR_UINT8] = "uint8_t", [WEIR_INT8] = "int8_t",   [WEIR_INT16] = "int16_t",
      [WEIR_INT32] = "int",     [WEIR_INT64] = "int64_t", [WEIR_FLOAT16] = "c10::Half"};
  return names[dtype] ? names[dtype] : dtype_cxx(dtype);
}

static bool is_complex(weir_scalar v)
{
  return v.dtype == WEIR_COMPLEX64;
}

/* Whether it is not beyond the dtype's greatest number. Infinity and NaN are not. */
static bool float_fits(double f, weir_dtype dtype)
{
  double most = dtype == WEIR_FLOAT16    ? 65504
                : dtype == WEIR_BFLOAT16 ? 0x1.fep127
                : dtype == WEIR_FLOAT64  ? INFINITY
                                         : 0x1.fffffep127;
  return !isfinite(f) || fabs(f) <= most;
}

weir_status scalar_for(weir_scalar *out, weir_scalar v, weir_dtype dtype)
{
  double f = scalar_real(v);
  bool fits = true;
  if (dtype == WEIR_BOOL) {
    *out = weir_bool(f != 0 || (is_complex(v) && v.imag != 0));
    return WEIR_OK;
  }
  if (is_complex(v) && v.imag != 0 && dtype != WEIR_COMPLEX64)
    fits = false;
  else if (dtype_is_integral(dtype))
    fits = integer_fits(v, dtype);
  else
    fits = float_fits(f, dtype) && (!is_complex(v) || float_fits(v.imag, dtype));
  if (!fits)
    return fail_invalid("value cannot be converted to type %s without overflow",
                        type_of_number(dtype));
  if (dtype_is_integral(dtype))
    *out = weir_int(v.dtype == WEIR_INT64 || v.dtype == WEIR_BOOL ? v.i
                    : f >= 0x1p63                                 ? INT64_MAX
                                                                  : (int64_t)f);
  else if (dtype == WEIR_COMPLEX64)
    *out = weir_complex(f, is_complex(v) ? v.imag : 0);
  else
    *out = weir_float(f);
  return WEIR_OK;
}

static weir_status fill_with(const weir_tensor *t, weir_scalar value)
{
  weir_loop l;
  loop_begin(&l, WEIR_OP_COPY, t);
  l.in[0].data = NULL;
  l.in[0].dtype = value.dtype;
  l.in[0].number = value;
  return loop_run(device_of_tensor(t), &l);
}

static weir_status fill_zero(const weir_tensor *t)
{
  if (t->dense && t->storage->device.type == WEIR_DEVICE_CPU) {
    if (t->numel) memset(t->data, 0, (size_t)t->numel * itemsize(t->dtype));
    return WEIR_OK;
  }
  return fill_with(t, weir_int(0));
}

/* number NULL: 0. */
static weir_status fill_recorded(weir_tensor *t, const weir_scalar *number)
{
  grad_node *node = NULL;
  bool records = recorded(t);
  weir_status st = WEIR_OK;
  if (records) {
    record r = {.kind = RECORD_FILL, .in_place = true, .inputs = 1, .out = {t}};
    r.in = (const weir_tensor *[]){t};
    st = tensor_recorder->before(&node, &r);
  }
  if (st) return st;
  st = number ? fill_with(t, *number) : fill_zero(t);
  if (!st) tensor_changes(t);
  if (records) tensor_recorder->after(node, t, !st);
  return st;
}

weir_status weir_fill_(weir_tensor *t, weir_scalar value)
{
  WEIR_OP_ON(t);
  weir_status st = scalar_for(&value, value, t->dtype);
  return st ? st : fill_recorded(t, &value);
}

weir_status weir_zero_(weir_tensor *t)
{
  WEIR_OP_ON(t);
  return fill_recorded(t, NULL);
}

weir_scalar scalar_at(const void *at, weir_dtype dtype)
{
  union {
    uint8_t u8;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    uint16_t half;
    float f[2];
    double d;
  } v;
  memcpy(&v, at, itemsize(dtype));
  switch (dtype) {
  case WEIR_UINT8:
    return weir_int(v.u8);
  case WEIR_INT8:
    return weir_int(v.i8);
  case WEIR_INT16:
    return weir_int(v.i16);
  case WEIR_INT32:
    return weir_int(v.i32);
  case WEIR_INT64:
    return weir_int(v.i64);
  case WEIR_FLOAT16:
    return weir_float(float16_to_float(v.half));
  case WEIR_BFLOAT16:
    return weir_float(bfloat16_to_float(v.half));
  case WEIR_FLOAT32:
    return weir_float(v.f[0]);
  case WEIR_FLOAT64:
    return weir_float(v.d);
  case WEIR_COMPLEX64:
    return weir_complex(v.f[0], v.f[1]);
  default:
    return weir_bool(v.u8 != 0);
  }
}

weir_status scalar_of(weir_scalar *out, const weir_tensor *t)
{
  char bytes[8];
  device_place p;
  weir_dtype dtype = t->dtype;
  *out = weir_bool(false);
  if (t->storage->device.type == WEIR_DEVICE_CPU) {
    *out = scalar_at(t->data, dtype);
    return WEIR_OK;
  }
  weir_status st = device_place_of(&p, device_of_tensor(t));
  if (!st) st = async_copy(p.stream, "item", WEIR_COPY_TO_HOST, bytes, t->data, itemsize(dtype));
  if (!st) *out = scalar_at(bytes, dtype);
  return st;
}

weir_status weir_item(weir_scalar *out, const weir_tensor *t)
{
  WEIR_REQUIRE(out, t);
  *out = weir_bool(false);
  if (t->numel == 1) return scalar_of(out, t);
  return fail_invalid("a Tensor with %lld elements cannot be converted to Scalar",
                      (long long)t->numel);
}
