/* select.c: operations made of others: where, clamp, and whether tensors are equal or close. */
#include <math.h>
#include "core/ops/ops.h"

weir_status weir_where(weir_tensor **out, const weir_tensor *condition, const weir_tensor *a,
                       const weir_tensor *b)
{
  WEIR_OP(out, condition, a, b);
  WEIR_TENSOR truth = NULL;
  elementwise_call e;
  if (condition->dtype == WEIR_UINT8) { /* as torch, which warns that it will not be so forever */
    TRY(weir_ne_scalar(&truth, condition, weir_int(0)));
    condition = truth;
  }
  if (condition->dtype != WEIR_BOOL)
    return fail_invalid(
        "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
        dtype_title(condition->dtype));
  e.op = WEIR_OP_WHERE, e.count = 3, e.numbers = 0, e.has_alpha = e.has_p = false;
  e.self = NULL, e.t[0] = condition, e.t[1] = a, e.t[2] = b;
  return elementwise_run(out, &e);
}

/* The dtype of a and both bounds. */
static weir_status clamp_dtype(weir_dtype *out, const weir_tensor *a, const weir_scalar *low,
                               const weir_scalar *high)
{
  categories c = {0};
  weir_status st = categories_tensor(&c, a);
  if (!st && low) st = categories_number(&c, *low);
  if (!st && high) st = categories_number(&c, *high);
  if (!st) st = categories_result(out, &c);
  if (!st && *out == WEIR_COMPLEX64)
    st = fail_unsupported("clamp is not supported for complex types");
  if (!st && *out == WEIR_BOOL) {
    bool one = device_of_tensor(a).type == WEIR_DEVICE_CPU && !(low && high);
    st = not_implemented(!one  ? "clamp_scalar_%s"
                         : low ? "clamp_min_scalar_%s"
                               : "clamp_max_scalar_%s",
                         device_of_tensor(a), WEIR_BOOL);
  }
  return st;
}

/* A bound beyond what the dtype holds: *skip, where it bounds nothing. */
static weir_status check_range(bool *skip, weir_dtype d, weir_scalar bound, bool low)
{
  double v = bound.dtype == WEIR_FLOAT64 ? bound.f : (double)bound.i, least, most;
  dtype_range(d, &least, &most);
  *skip = false;
  if (isnan(v) || (v >= least && v <= most)) return WEIR_OK;
  if (dtype_is_floating(d))
    return isinf(v) ? WEIR_OK
                    : fail_invalid("value cannot be converted to type %s without overflow",
                                   dtype_cxx(d));
  *skip = low ? v < least : v > most;
  return *skip ? WEIR_OK
               : fail_invalid("Clamp %s value %g is outside the representable range of %s",
                              low ? "min" : "max", v, dtype_title(d));
}

/* a, of the result's dtype, with the bounds that count. */
static weir_status clamp_tensor(weir_tensor **out, const weir_tensor *a, const weir_scalar *low,
                                const weir_scalar *high)
{
  bool skip = false;
  weir_status st = low ? check_range(&skip, a->dtype, *low, true) : WEIR_OK;
  if (skip) low = NULL;
  skip = false;
  if (!st && high) st = check_range(&skip, a->dtype, *high, false);
  if (skip) high = NULL;
  if (st) return st;
  if (!low && !high) return weir_clone(out, a);
  if (!high) return weir_maximum_scalar(out, a, *low);
  if (!low) return weir_minimum_scalar(out, a, *high);
  elementwise_call e = {.op = WEIR_OP_CLAMP, .count = 3, .numbers = 6};
  e.t[0] = a, e.number[1] = *low, e.number[2] = *high;
  return elementwise_run(out, &e);
}

weir_status weir_clamp(weir_tensor **out, const weir_tensor *a, const weir_scalar *low,
                       const weir_scalar *high)
{
  WEIR_OP(out, a);
  CALC(c);
  weir_tensor *wide = NULL;
  weir_dtype dtype;
  if (!low && !high)
    return fail_invalid("weir.clamp: At least one of 'min' or 'max' must not be None");
  c->st = clamp_dtype(&dtype, a, low, high);
  if (!c->st && dtype != a->dtype) {
    wide = c_call(c, weir_to_dtype, a, dtype);
    a = wide;
  }
  c_do(c, clamp_tensor(out, a, low, high));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

static weir_status check_bound(const char *name, double bound)
{
  return bound >= 0
             ? WEIR_OK
             : fail_invalid("%s must be greater than or equal to zero, but got %g", name, bound);
}

weir_status weir_isclose(weir_tensor **out, const weir_tensor *a, const weir_tensor *b, double rtol,
                         double atol, bool equal_nan)
{
  WEIR_OP(out, a, b);
  elementwise_call e;
  if (a->dtype != b->dtype)
    return fail_invalid("%s did not match %s", dtype_title(a->dtype), dtype_title(b->dtype));
  TRY(check_bound("rtol", rtol));
  TRY(check_bound("atol", atol));
  e.op = WEIR_OP_CLOSE, e.count = 2, e.numbers = 0, e.has_alpha = false, e.has_p = true;
  e.self = NULL, e.t[0] = a, e.t[1] = b;
  e.p[0] = weir_float(rtol), e.p[1] = weir_float(atol), e.p[2] = weir_bool(equal_nan);
  return elementwise_run(out, &e);
}

/* Whether all of `truth` (stolen) is so; waits. */
static weir_status all_of(bool *out, weir_tensor *truth)
{
  CALC(c);
  weir_scalar value;
  weir_tensor *one = c_all(c, truth);
  c_do(c, weir_item(&value, one));
  if (!c->st) *out = value.i != 0;
  weir_tensor_release(truth);
  return c->st;
}

weir_status weir_allclose(bool *out, const weir_tensor *a, const weir_tensor *b, double rtol,
                          double atol, bool equal_nan)
{
  WEIR_OP_ON(out, a, b);
  weir_tensor *close = NULL;
  *out = false;
  weir_status st = weir_isclose(&close, a, b, rtol, atol, equal_nan);
  return st ? st : all_of(out, close);
}

weir_status weir_equal(bool *out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP_ON(out, a, b);
  weir_tensor *same = NULL;
  *out = false;
  weir_status st = check_same_device(a, b);
  if (st || a->dims != b->dims) return st;
  for (int i = 0; i < a->dims; i++)
    if (a->size[i] != b->size[i]) return WEIR_OK;
  st = weir_eq(&same, a, b);
  return st ? st : all_of(out, same);
}
