/* functions.c: functions of each element: the public forms of what WEIR_FUNCTION_OPS calculates,
 * and the few that are made of others. */
#include <math.h>
#include <string.h>
#include "core/ops/ops.h"

/* ---- one operand ----------------------------------------------------------------------------- */

WEIR_FUNCTION_MAP(ELEMENTWISE_FORMS)
ELEMENTWISE_NEW(isnan, ISNAN)
ELEMENTWISE_NEW(isinf, ISINF)
ELEMENTWISE_NEW(signbit, SIGNBIT)

weir_status weir_square(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FUNCTION, a);
  return weir_pow_scalar(out, a, weir_int(2));
}

weir_status weir_square_(weir_tensor *a)
{
  WEIR_OP_ON(a);
  return weir_pow_scalar_(a, weir_int(2));
}

#define ANGLE(name, factor)                                                                        \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a)                                 \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    if (a->dtype == WEIR_COMPLEX64)                                                                \
      return fail_unsupported(#name " is not supported for complex tensors.");                     \
    return weir_mul_scalar(out, a, weir_float(factor));                                            \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *a)                                                       \
  {                                                                                                \
    WEIR_OP_ON(a);                                                                                 \
    if (a->dtype == WEIR_COMPLEX64)                                                                \
      return fail_unsupported(#name " is not supported for complex tensors.");                     \
    return weir_mul_scalar_(a, weir_float(factor));                                                \
  }
ANGLE(deg2rad, 0.017453292519943295769)
ANGLE(rad2deg, 57.295779513082320877)

static weir_status rounded_decimals(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                                    int decimals)
{
  double power = pow(10, fabs((double)decimals));
  weir_scalar p[3] = {weir_float(power), weir_float(decimals < 0), weir_float(0)};
  return elementwise_tensors(WEIR_OP_ROUND_DECIMALS, out, self, 1, &a, p);
}

BOTH_FORMS(round_decimals, (a), (int decimals), rounded_decimals, decimals)

static weir_status logits(weir_tensor **out, weir_tensor *self, const weir_tensor *a, double eps)
{
  weir_scalar p[3] = {weir_float(eps), weir_float(0), weir_float(0)};
  return elementwise_tensors(WEIR_OP_LOGIT, out, self, 1, &a, p);
}

BOTH_FORMS(logit, (a), (double eps), logits, eps)

/* Integers are what they are. */
static weir_status finite_numbers(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                                  double nan, const double *posinf, const double *neginf)
{
  double least = 0, most = 0;
  weir_dtype dtype = a->dtype;
  if (dtype_is_integral_or_bool(dtype)) return self ? WEIR_OK : weir_clone(out, a);
  dtype_range(dtype == WEIR_COMPLEX64 ? WEIR_FLOAT32 : dtype, &least, &most);
  weir_scalar p[3] = {weir_float(nan), weir_float(posinf ? *posinf : most),
                      weir_float(neginf ? *neginf : least)};
  return elementwise_tensors(WEIR_OP_NAN_TO_NUM, out, self, 1, &a, p);
}

BOTH_FORMS(nan_to_num, (a), (double nan, const double *posinf, const double *neginf),
           finite_numbers, nan, posinf, neginf)

/* ---- two operands ---------------------------------------------------------------------------- */

/* a and b, one of which may be NULL: then it is the number. */
static weir_status two(weir_op op, weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                       const weir_tensor *b, weir_scalar number)
{
  elementwise_call e;
  e.op = op, e.count = 2, e.numbers = (uint8_t)((a ? 0 : 1) + (b ? 0 : 2)),
  e.has_alpha = e.has_p = false;
  e.self = self, e.t[0] = a, e.t[1] = b, e.number[0] = e.number[1] = number;
  return elementwise_run(out, &e);
}

#define PAIR(name, op)                                                                             \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)           \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a, b);                                                                   \
    return ELEMENTWISE(WEIR_OP_##op, out, NULL, a, b);                                             \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *a, const weir_tensor *b)                                 \
  {                                                                                                \
    WEIR_REQUIRE(a, b);                                                                            \
    return ELEMENTWISE(WEIR_OP_##op, NULL, a, a, b);                                               \
  }
WEIR_PAIR_MAP(PAIR)

#define TWO(name, op)                                                                              \
  PAIR(name, op)                                                                                   \
  weir_status weir_##name##_scalar(weir_tensor **out, const weir_tensor *a, weir_scalar b)         \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return two(WEIR_OP_##op, out, NULL, a, NULL, b);                                               \
  }                                                                                                \
  weir_status weir_scalar_##name(weir_tensor **out, weir_scalar a, const weir_tensor *b)           \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, b);                                                                      \
    return two(WEIR_OP_##op, out, NULL, NULL, b, a);                                               \
  }                                                                                                \
  weir_status weir_##name##_scalar_(weir_tensor *a, weir_scalar b)                                 \
  {                                                                                                \
    WEIR_REQUIRE(a);                                                                               \
    return two(WEIR_OP_##op, NULL, a, a, NULL, b);                                                 \
  }
WEIR_FUNCTION2_MAP(TWO)

static weir_status heaviside(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                             const weir_tensor *b)
{
  if (a->dtype == WEIR_COMPLEX64 || b->dtype == WEIR_COMPLEX64)
    return fail_unsupported("heaviside is not yet implemented for complex tensors.");
  if (a->dtype != b->dtype)
    return fail_invalid("heaviside is not yet implemented for tensors with different dtypes.");
  return ELEMENTWISE(WEIR_OP_HEAVISIDE, out, self, a, b);
}
BOTH_FORMS(heaviside, (a, b), (const weir_tensor *b), heaviside, b)

/* a 2^b of floating point and whole numbers, as C's ldexp(): in double, in three steps, so that no
 * power overflows before the product does. What is beyond 2100 either way makes 0 or infinity. */
static weir_status scale_by_power(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  CALC(c);
  weir_scalar least = weir_float(-2100), most = weir_float(2100);
  if (b->dtype == WEIR_BOOL) return not_implemented("ldexp_%s_exp", device_of_tensor(b), WEIR_BOOL);
  weir_tensor *whole = c_to_dtype(c, b, WEIR_FLOAT64);
  weir_tensor *near = c_call(c, weir_clamp, whole, &least, &most);
  weir_tensor *third = c_call(c, weir_div_rounding_scalar, near, weir_int(3), "trunc");
  weir_tensor *rest = c_sub(c, near, c_mul_scalar(c, third, weir_int(2)));
  weir_tensor *step = c_exp2(c, third);
  weir_tensor *last = c_exp2(c, rest);
  weir_tensor *all = c_mul(c, c_mul(c, c_mul(c, c_to_dtype(c, a, WEIR_FLOAT64), step), step), last);
  return c->st ? c->st : weir_to_dtype(out, all, a->dtype);
}

static bool is_scaling(const weir_tensor *a, const weir_tensor *b)
{
  return dtype_is_floating(a->dtype) && dtype_is_integral_or_bool(b->dtype);
}

weir_status weir_ldexp(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  CALC(c);
  if (is_scaling(a, b)) return scale_by_power(out, a, b);
  return calc_give(c, out, c_mul(c, a, c_scalar_pow(c, weir_float(2), b)));
}

weir_status weir_ldexp_(weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP_ON(a, b);
  WEIR_TENSOR power = NULL;
  weir_dtype result = WEIR_FLOAT32;
  if (is_scaling(a, b)) {
    weir_status scaled = scale_by_power(&power, a, b);
    if (!scaled && (power->dims != a->dims ||
                    memcmp(power->size, a->size, (size_t)a->dims * sizeof *a->size) != 0))
      scaled = fail_invalid("output with shape %s doesn't match the broadcast shape %s",
                            shape_format(&(text_buffer){{0}}, weir_tensor_shape(a)),
                            shape_format(&(text_buffer){{0}}, weir_tensor_shape(power)));
    return scaled ? scaled : weir_copy_(a, power, false);
  }
  weir_status st = weir_scalar_pow(&power, weir_float(2), b);
  if (!st) st = weir_result_type(&result, a, power, weir_int(0));
  if (!st && !dtype_can_cast(result, a->dtype))
    st = fail_invalid("ldexp can't be cast to the desired output type %s", dtype_title(a->dtype));
  return st ? st : weir_mul_(a, power);
}

static weir_status check_float_power(bool complex)
{
  return complex ? fail_unsupported("float_power of complex numbers is complex128, and there is no "
                                    "dtype here for it")
                 : WEIR_OK;
}

weir_status weir_float_power(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  CALC(c);
  c->st = check_float_power(a->dtype == WEIR_COMPLEX64 || b->dtype == WEIR_COMPLEX64);
  weir_tensor *x = c_to_dtype(c, a, WEIR_FLOAT64);
  return calc_give(c, out, c_pow(c, x, c_to_dtype(c, b, WEIR_FLOAT64)));
}

weir_status weir_float_power_scalar(weir_tensor **out, const weir_tensor *a, weir_scalar b)
{
  WEIR_OP(out, a);
  CALC(c);
  c->st = check_float_power(a->dtype == WEIR_COMPLEX64 || b.dtype == WEIR_COMPLEX64);
  return calc_give(c, out, c_pow_scalar(c, c_to_dtype(c, a, WEIR_FLOAT64), b));
}

static weir_status rounding_op(weir_op *op, const char *mode)
{
  *op = WEIR_OP_DIV;
  if (mode && !strcmp(mode, "trunc")) *op = WEIR_OP_TRUNC_DIV;
  if (mode && !strcmp(mode, "floor")) *op = WEIR_OP_FLOOR_DIV;
  if (!mode || *op != WEIR_OP_DIV) return WEIR_OK;
  return fail_invalid(
      "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '%s'", mode);
}

static weir_status divided(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                           const weir_tensor *b, const char *rounding_mode)
{
  weir_op op;
  weir_status st = rounding_op(&op, rounding_mode);
  return st ? st : ELEMENTWISE(op, out, self, a, b);
}
BOTH_FORMS(div_rounding, (a, b), (const weir_tensor *b, const char *rounding_mode), divided, b,
           rounding_mode)

static weir_status divided_by_number(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                                     weir_scalar b, const char *rounding_mode)
{
  weir_op op;
  weir_status st = rounding_op(&op, rounding_mode);
  return st ? st : two(op, out, self, a, NULL, b);
}
BOTH_FORMS(div_rounding_scalar, (a), (weir_scalar b, const char *rounding_mode), divided_by_number,
           b, rounding_mode)

/* ---- three operands -------------------------------------------------------------------------- */

static weir_status check_lerp(const weir_tensor *a, const weir_tensor *other, const char *name)
{
  if (a->dtype == other->dtype) return WEIR_OK;
  return fail_invalid("expected dtype %s for `%s` but got dtype %s", dtype_cxx(a->dtype), name,
                      dtype_cxx(other->dtype));
}

static weir_status lerp_tensor(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                               const weir_tensor *end, const weir_tensor *weight)
{
  weir_status st = check_lerp(a, end, "end");
  if (!st) st = check_lerp(a, weight, "weight");
  return st ? st : ELEMENTWISE(WEIR_OP_LERP, out, self, a, end, weight);
}
BOTH_FORMS(lerp, (a, end, weight), (const weir_tensor *end, const weir_tensor *weight), lerp_tensor,
           end, weight)

static weir_status lerp_number(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                               const weir_tensor *end, weir_scalar weight)
{
  weir_dtype dtype = a->dtype;
  elementwise_call e;
  weir_status st = check_lerp(a, end, "end");
  if (dtype_is_integral_or_bool(dtype)) weight = weir_bool(false); /* which it will not come to */
  if (!st) st = scalar_for(&weight, weight, dtype_is_floating(dtype) ? WEIR_FLOAT64 : dtype);
  if (st) return st;
  e.op = WEIR_OP_LERP, e.count = 3, e.numbers = 4, e.has_alpha = e.has_p = false;
  e.self = self, e.t[0] = a, e.t[1] = end, e.t[2] = NULL, e.number[2] = weight;
  return elementwise_run(out, &e);
}
BOTH_FORMS(lerp_scalar, (a, end), (const weir_tensor *end, weir_scalar weight), lerp_number, end,
           weight)

static weir_status check_addcdiv(const weir_tensor *b, const weir_tensor *c)
{
  if (!dtype_is_integral_or_bool(b->dtype) || !dtype_is_integral_or_bool(c->dtype)) return WEIR_OK;
  return fail_invalid(
      "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
      "perform a true division of tensor1 and tensor2. The historic addcdiv behavior can be "
      "implemented as (input + value * weir.trunc(tensor1 / tensor2)).to(input.dtype) for integer "
      "inputs and as (input + value * tensor1 / tensor2) for float inputs. The future addcdiv "
      "behavior is just the latter implementation: (input + value * tensor1 / tensor2), for all "
      "dtypes.");
}

static weir_status sum_with_product(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                                    weir_op op, const weir_tensor *b, const weir_tensor *c,
                                    weir_scalar value)
{
  weir_scalar p[3] = {value, weir_float(0), weir_float(0)};
  weir_status st = op == WEIR_OP_ADDCDIV ? check_addcdiv(b, c) : WEIR_OK;
  return st ? st : elementwise_tensors(op, out, self, 3, (const weir_tensor *const[]){a, b, c}, p);
}

#define ADDED(name, op)                                                                            \
  BOTH_FORMS(name, (a, b, c), (const weir_tensor *b, const weir_tensor *c, weir_scalar value),     \
             sum_with_product, WEIR_OP_##op, b, c, value)
ADDED(addcmul, ADDCMUL)
ADDED(addcdiv, ADDCDIV)

/* ---- bounds ---------------------------------------------------------------------------------- */

static weir_status check_bounds(const void *low, const void *high)
{
  return low || high ? WEIR_OK
                     : fail_invalid("weir.clamp: At least one of 'min' or 'max' must not be None");
}

static weir_status clamp_to(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                            const weir_tensor *low, const weir_tensor *high)
{
  weir_status st = check_bounds(low, high);
  bool complex = a->dtype == WEIR_COMPLEX64 || (low && low->dtype == WEIR_COMPLEX64) ||
                 (high && high->dtype == WEIR_COMPLEX64);
  if (!st && complex) st = fail_unsupported("clamp is not supported for complex types");
  if (st) return st;
  if (low && high) return ELEMENTWISE(WEIR_OP_CLAMP, out, self, a, low, high);
  return low ? ELEMENTWISE(WEIR_OP_MAXIMUM, out, self, a, low)
             : ELEMENTWISE(WEIR_OP_MINIMUM, out, self, a, high);
}
BOTH_FORMS(clamp_tensor, (a), (const weir_tensor *low, const weir_tensor *high), clamp_to, low,
           high)

/* In place what out of place gives is copied, where that may be cast. */
static weir_status clamp_in_place(weir_tensor *a, const weir_scalar *low, const weir_scalar *high)
{
  CALC(c);
  weir_tensor *apart = c_call(c, weir_clamp, a, low, high);
  if (!c->st && !dtype_can_cast(apart->dtype, a->dtype))
    c->st = fail_invalid("result type %s can't be cast to the desired output type %s",
                         dtype_title(apart->dtype), dtype_cxx(a->dtype));
  return c->st ? c->st : weir_copy_(a, apart, false);
}

weir_status weir_clamp_(weir_tensor *a, const weir_scalar *low, const weir_scalar *high)
{
  WEIR_OP_ON(a);
  return clamp_in_place(a, low, high);
}

#define BOUND(name, low, high)                                                                     \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, weir_scalar bound)              \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    return weir_clamp(out, a, low, high);                                                          \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *a, weir_scalar bound)                                    \
  {                                                                                                \
    WEIR_OP_ON(a);                                                                                 \
    return clamp_in_place(a, low, high);                                                           \
  }
BOUND(clamp_min, &bound, NULL)
BOUND(clamp_max, NULL, &bound)

/* ---- complex numbers ------------------------------------------------------------------------- */

weir_status weir_conj(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  CALC(c);
  if (t->dtype != WEIR_COMPLEX64) {
    *out = weir_tensor_retain((weir_tensor *)t);
    return WEIR_OK;
  }
  weir_tensor *real = c_call(c, weir_real, t);
  weir_tensor *turned = c_neg(c, c_call(c, weir_imag, t));
  weir_tensor *pairs = c_call(c, weir_stack, (const weir_tensor *const[]){real, turned}, 2, -1);
  c_do(c, weir_view_as_complex(out, pairs));
  if (!c->st) (*out)->created = VIEW_PLAIN; /* its memory is its own */
  return c->st;
}
