/* promote.c: which dtype a result has, as torch.result_type().
 *
 * Operands fall into three categories: tensors with dimensions, tensors without, numbers. Each has
 * the dtype its members promote to; a category then only matters where it is of a higher kind
 * (bool, integers, floating point, complex) than those before it. A number has the default dtype of
 * its kind: int64, the default floating-point dtype, complex64. */
#include <math.h>
#include <stdio.h>
#include "core/backend/scalar_type.h"
#include "core/tensor/loop.h"

static weir_status promote_to(weir_dtype *to, weir_dtype dtype)
{
  if (*to == dtype) return WEIR_OK;
  if (*to == WEIR_DTYPE_NONE) {
    *to = dtype;
    return WEIR_OK;
  }
  return weir_promote_types(to, *to, dtype);
}

weir_status categories_tensor(categories *c, const weir_tensor *t)
{
  return promote_to(t->dims ? &c->dims : &c->zero, t->dtype);
}

weir_status categories_number(categories *c, weir_scalar number)
{
  weir_dtype d = number.dtype;
  if (d != WEIR_BOOL && d != WEIR_INT64 && d != WEIR_FLOAT64 && d != WEIR_COMPLEX64)
    return fail_invalid("a weir_scalar is bool, int64, float64 or complex64, not %s",
                        weir_dtype_name(d));
  return promote_to(&c->number, d == WEIR_FLOAT64 ? weir_get_default_dtype() : d);
}

/* What `higher` becomes next to `lower`, which decides nothing but the kind. */
static weir_status combine(weir_dtype *out, weir_dtype higher, weir_dtype lower)
{
  *out = higher;
  if (lower == WEIR_DTYPE_NONE || higher == WEIR_COMPLEX64) return WEIR_OK;
  if (higher == WEIR_DTYPE_NONE) {
    *out = lower;
    return WEIR_OK;
  }
  if (dtype_is_floating(higher)) {
    if (lower != WEIR_COMPLEX64 || higher == WEIR_FLOAT32) {
      if (lower == WEIR_COMPLEX64) *out = WEIR_COMPLEX64;
      return WEIR_OK;
    }
    *out = WEIR_DTYPE_NONE;
    return fail_unsupported("%s and a complex number promote to %s, which is no dtype here",
                            weir_dtype_name(higher),
                            higher == WEIR_FLOAT64 ? "complex128" : "complex32");
  }
  if (higher == WEIR_BOOL || dtype_is_floating(lower) || lower == WEIR_COMPLEX64)
    return weir_promote_types(out, higher, lower);
  return WEIR_OK;
}

weir_status categories_result(weir_dtype *out, const categories *c)
{
  weir_status st = combine(out, c->dims, c->zero);
  return st ? st : combine(out, *out, c->number);
}

weir_status weir_result_type(weir_dtype *out, const weir_tensor *a, const weir_tensor *b,
                             weir_scalar number)
{
  WEIR_REQUIRE(out, a);
  categories c = {0};
  *out = WEIR_DTYPE_NONE;
  weir_status st = categories_tensor(&c, a);
  if (!st) st = b ? categories_tensor(&c, b) : categories_number(&c, number);
  return st ? st : categories_result(out, &c);
}

bool dtype_can_cast(weir_dtype from, weir_dtype to)
{
  if (from == to) return true;
  if (from == WEIR_COMPLEX64) return false;
  if (dtype_is_floating(from) && dtype_is_integral_or_bool(to)) return false;
  return to != WEIR_BOOL;
}

void dtype_range(weir_dtype d, double *least, double *most)
{
  switch (d) {
  case WEIR_BOOL:
    *most = 1;
    break;
  case WEIR_UINT8:
    *most = 255;
    break;
  case WEIR_FLOAT16:
    *most = 65504;
    break;
  case WEIR_BFLOAT16:
    *most = 0x1.fep127;
    break;
  case WEIR_FLOAT64:
    *most = 0x1.fffffffffffffp1023;
    break;
  default:
    *most = dtype_is_integral(d) ? ldexp(1, 8 * (int)itemsize(d) - 1) - 1 : 0x1.fffffep127;
  }
  *least = d == WEIR_BOOL || d == WEIR_UINT8 ? 0 : dtype_is_integral(d) ? -*most - 1 : -*most;
}

/* ---- torch's words --------------------------------------------------------------------------- */

const char *dtype_title(weir_dtype dtype)
{
  return scalar_type(dtype);
}

const char *dtype_cxx(weir_dtype dtype)
{
  static const char *const names[WEIR_DTYPES] = {[WEIR_UINT8] = "unsigned char",
                                                 [WEIR_INT8] = "signed char",
                                                 [WEIR_INT16] = "short int",
                                                 [WEIR_INT32] = "int",
                                                 [WEIR_INT64] = "long int",
                                                 [WEIR_FLOAT16] = "c10::Half",
                                                 [WEIR_FLOAT32] = "float",
                                                 [WEIR_FLOAT64] = "double",
                                                 [WEIR_COMPLEX64] = "c10::complex<float>",
                                                 [WEIR_BOOL] = "bool",
                                                 [WEIR_BFLOAT16] = "c10::BFloat16"};
  return names[dtype];
}

weir_status not_implemented(const char *kernel, weir_device device, weir_dtype dtype)
{
  char name[64];
  (void)snprintf(name, sizeof name, kernel, device.type == WEIR_DEVICE_CUDA ? "cuda" : "cpu");
  return fail_unsupported("\"%s\" not implemented for '%s'", name, dtype_title(dtype));
}
