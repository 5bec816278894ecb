/* test_functions.c: functions.h: every form of every function, activations, and derivatives, which
 * are beside differences of what they are the derivatives of. */
#include <math.h>
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

typedef weir_status unary(weir_tensor **out, const weir_tensor *a);
typedef weir_status unary_in_place(weir_tensor *a);
typedef weir_status binary(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
typedef weir_status in_place(weir_tensor *a, const weir_tensor *b);
typedef weir_status binary_number(weir_tensor **out, const weir_tensor *a, weir_scalar b);
typedef weir_status number_binary(weir_tensor **out, weir_scalar a, const weir_tensor *b);
typedef weir_status in_place_number(weir_tensor *a, weir_scalar b);

enum { COUNT = 6 };
static const double xs[COUNT] = {-2.75, -0.5, 0.25, 0.5, 0.875, 3};
static const double ys[COUNT] = {2, -0.25, 0.5, 1.5, -3, 0.75};

static weir_tensor *doubles_in(const double *values, int count, weir_dtype dtype, int place)
{
  weir_tensor *t;
  weir_options o = as(dtype, device(place));
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, weir_shape(count), &o));
  return t;
}

static void near_to(const char *name, const weir_tensor *t, const double *want, double within)
{
  double got[COUNT];
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, t));
  for (int i = 0; i < COUNT; i++)
    ck_assert_msg(got[i] == want[i] || (isnan(got[i]) && isnan(want[i])) ||
                      fabs(got[i] - want[i]) <= within * fmax(fabs(want[i]), 1e-3),
                  "%s: element %d is %.17g, not %.17g", name, i, got[i], want[i]);
}

/* ---- one operand ----------------------------------------------------------------------------- */

static double erfinv_by_halves(double x)
{
  double low = -6, high = 6;
  if (!(fabs(x) < 1)) return NAN;
  for (int i = 0; i < 100; i++)
    *(erf((low + high) / 2) < x ? &low : &high) = (low + high) / 2;
  return low;
}

/* The slope of ln gamma, by differences. */
static double digamma_by_steps(double x)
{
  double h = 1e-4;
  return (8 * (lgamma(x + h) - lgamma(x - h)) - (lgamma(x + 2 * h) - lgamma(x - 2 * h))) / (12 * h);
}

static double reciprocal_of(double x)
{
  return 1 / x;
}
static double sinc_of(double x)
{
  return sin(acos(-1) * x) / (acos(-1) * x);
}
static double frac_of(double x)
{
  return x - trunc(x);
}
static double sign_of(double x)
{
  return x > 0 ? 1 : -1;
}
static double square_of(double x)
{
  return x * x;
}
static double radians_of(double x)
{
  return x * acos(-1) / 180;
}
static double degrees_of(double x)
{
  return x / acos(-1) * 180;
}
static double silu_of(double x)
{
  return x / (1 + exp(-x));
}
static double mish_of(double x)
{
  return x * tanh(log1p(exp(x)));
}
static double hardsigmoid_of(double x)
{
  return fmin(fmax(x + 3, 0), 6) / 6;
}
static double hardswish_of(double x)
{
  return x * hardsigmoid_of(x);
}
static double logsigmoid_of(double x)
{
  return -log1p(exp(-x));
}
static double selu_of(double x)
{
  return 1.0507009873554804934 * (x > 0 ? x : 1.6732632423543772848 * expm1(x));
}
static double relu6_of(double x)
{
  return fmin(fmax(x, 0), 6);
}

/* Functions, what they are in double, and how near they come. */
static const struct one_operand_row {
  const char *name;
  unary *call;
  unary_in_place *change;
  double (*reference)(double x);
  double within;
} one_operand[] = {
#define ROW(name, reference, within)                                                               \
  {                                                                                                \
#name, weir_##name, weir_##name##_, reference, within                                          \
  }
    ROW(erf, erf, 3e-7),
    ROW(erfc, erfc, 3e-7),
    ROW(erfinv, erfinv_by_halves, 3e-7),
    ROW(lgamma, lgamma, 1e-6),
    ROW(digamma, digamma_by_steps, 1e-6),
    ROW(log1p, log1p, 3e-7),
    ROW(expm1, expm1, 3e-7),
    ROW(log2, log2, 3e-7),
    ROW(log10, log10, 3e-7),
    ROW(exp2, exp2, 3e-7),
    ROW(tan, tan, 3e-7),
    ROW(asin, asin, 3e-7),
    ROW(acos, acos, 3e-7),
    ROW(atan, atan, 3e-7),
    ROW(sinh, sinh, 3e-7),
    ROW(cosh, cosh, 3e-7),
    ROW(asinh, asinh, 3e-7),
    ROW(acosh, acosh, 3e-7),
    ROW(atanh, atanh, 3e-7),
    ROW(reciprocal, reciprocal_of, 1e-7),
    ROW(sinc, sinc_of, 3e-7),
    ROW(floor, floor, 0),
    ROW(ceil, ceil, 0),
    ROW(round, rint, 0),
    ROW(trunc, trunc, 0),
    ROW(frac, frac_of, 0),
    ROW(sign, sign_of, 0),
    ROW(sgn, sign_of, 0),
    ROW(square, square_of, 0),
    ROW(deg2rad, radians_of, 3e-7),
    ROW(rad2deg, degrees_of, 3e-7),
    ROW(silu, silu_of, 3e-7),
    ROW(mish, mish_of, 1e-6),
    ROW(hardsigmoid, hardsigmoid_of, 3e-7),
    ROW(hardswish, hardswish_of, 3e-7),
    ROW(logsigmoid, logsigmoid_of, 3e-7),
    ROW(selu, selu_of, 3e-7),
    ROW(relu6, relu6_of, 0),
#undef ROW
};

START_TEST(functions_of_one_operand)
{
  devices(2);
  for (size_t k = 0; k < sizeof one_operand / sizeof *one_operand; k++)
    for (int wide = 0; wide < 2; wide++) {
      double want[COUNT];
      weir_dtype dtype = wide ? WEIR_FLOAT64 : WEIR_FLOAT32;
      WEIR_TENSOR a = doubles_in(xs, COUNT, dtype, _i);
      WEIR_TENSOR b = NULL;
      for (int i = 0; i < COUNT; i++)
        want[i] = one_operand[k].reference(xs[i]);
      weir_ok(one_operand[k].call(&b, a));
      near_to(one_operand[k].name, b, want, one_operand[k].within);
      is_on(b, device(_i));
      ck_assert_int_eq(weir_tensor_dtype(b), dtype);
      weir_ok(one_operand[k].change(a));
      near_to(one_operand[k].name, a, want, one_operand[k].within);
    }
}
END_TEST

START_TEST(what_numbers_are_is_bool)
{
  const double values[] = {-1, NAN, -0.0, INFINITY, -INFINITY, 2};
  devices(2);
  WEIR_TENSOR a = doubles_in(values, 6, WEIR_FLOAT16, _i);
  WEIR_TENSOR nan = NULL;
  WEIR_TENSOR inf = NULL;
  WEIR_TENSOR sign = NULL;
  weir_ok(weir_isnan(&nan, a));
  EXPECT(nan, 0, 1, 0, 0, 0, 0);
  weir_ok(weir_isinf(&inf, a));
  EXPECT(inf, 0, 0, 0, 1, 1, 0);
  weir_ok(weir_nan_to_num_(a, 7, NULL, &(double){-3}));
  weir_ok(weir_signbit(&sign, a));
  EXPECT(sign, 1, 0, 1, 0, 1, 0);
  EXPECT(a, -1, 7, 0, 65504, -3, 2);
  ck_assert_int_eq(weir_tensor_dtype(sign), WEIR_BOOL);
}
END_TEST

START_TEST(functions_with_numbers)
{
  const double values[] = {0.125, 0.5, 0, 1, 0.75, -0.25};
  devices(2);
  WEIR_TENSOR a = doubles_in(values, COUNT, WEIR_FLOAT32, _i);
  WEIR_TENSOR r = NULL;
  weir_ok(weir_logit(&r, a, 0.25));
  near_to("logit", r, (double[]){-log(3), 0, -log(3), log(3), log(3), -log(3)}, 3e-7);
  weir_ok(weir_logit_(r, -1));
  weir_tensor_drop(&r);
  weir_ok(weir_logit(&r, a, -1));
  near_to("logit", r, (double[]){-log(7), 0, -INFINITY, INFINITY, log(3), NAN}, 3e-7);
  weir_tensor_drop(&r);
  weir_ok(weir_round_decimals(&r, a, 1));
  near_to("round", r, (double[]){0.1, 0.5, 0, 1, 0.8, -0.2}, 3e-7);
  weir_tensor_drop(&r);
  weir_ok(weir_mul_scalar_(a, weir_int(100)));
  weir_ok(weir_round_decimals_(a, -2));
  EXPECT(a, 0, 0, 0, 100, 100, 0);
  weir_ok(weir_nan_to_num(&r, a, 0, NULL, NULL));
  EXPECT(r, 0, 0, 0, 100, 100, 0);
}
END_TEST

/* ---- two operands ---------------------------------------------------------------------------- */

static double remainder_of(double x, double y)
{
  return x - y * floor(x / y);
}
static double xlogy_of(double x, double y)
{
  return y < 0 ? (double)NAN : x * log(y);
}
static double logaddexp_of(double x, double y)
{
  return log(exp(x) + exp(y));
}
static double logaddexp2_of(double x, double y)
{
  return log2(exp2(x) + exp2(y));
}
static double nextafter_of(double x, double y)
{
  return (double)nextafterf((float)x, (float)y);
}
static double xor_of(double x, double y)
{
  return (x != 0) != (y != 0);
}
static double heaviside_of(double x, double y)
{
  return x == 0 ? y : x > 0;
}
static double ldexp_of(double x, double y)
{
  return x * exp2(y);
}

/* Functions and their forms; NULL: there is none. */
static const struct two_operand_row {
  const char *name;
  binary *call;
  binary_number *number;
  number_binary *reversed;
  in_place *change;
  in_place_number *change_number;
  double (*reference)(double x, double y);
} two_operands[] = {
#define ROW(name, reference)                                                                       \
  {                                                                                                \
#name, weir_##name, weir_##name##_scalar, weir_scalar_##name, weir_##name##_,                  \
        weir_##name##_scalar_, reference                                                           \
  }
    ROW(remainder, remainder_of),
    ROW(fmod, fmod),
    ROW(xlogy, xlogy_of),
    ROW(copysign, copysign),
#undef ROW
#define ROW(name, reference)                                                                       \
  {                                                                                                \
#name, weir_##name, NULL, NULL, weir_##name##_, NULL, reference                                \
  }
    ROW(atan2, atan2),
    ROW(hypot, hypot),
    ROW(nextafter, nextafter_of),
    ROW(logaddexp, logaddexp_of),
    ROW(logaddexp2, logaddexp2_of),
    ROW(fmax, fmax),
    ROW(fmin, fmin),
    ROW(logical_xor, xor_of),
    ROW(heaviside, heaviside_of),
    ROW(ldexp, ldexp_of),
#undef ROW
};

START_TEST(all_forms_of_two_operands)
{
  devices(2);
  for (size_t k = 0; k < sizeof two_operands / sizeof *two_operands; k++) {
    double both[COUNT], with[COUNT], from[COUNT];
    WEIR_TENSOR a = doubles_in(xs, COUNT, WEIR_FLOAT32, _i);
    WEIR_TENSOR b = doubles_in(ys, COUNT, WEIR_FLOAT32, _i);
    WEIR_TENSOR c = NULL;
    WEIR_TENSOR r = NULL;
    for (int i = 0; i < COUNT; i++) {
      both[i] = two_operands[k].reference(xs[i], ys[i]);
      with[i] = two_operands[k].reference(xs[i], 2);
      from[i] = two_operands[k].reference(2, ys[i]);
    }
    weir_ok(two_operands[k].call(&r, a, b));
    near_to(two_operands[k].name, r, both, 4e-7);
    weir_ok(weir_clone(&c, a));
    weir_ok(two_operands[k].change(c, b));
    near_to(two_operands[k].name, c, both, 4e-7);
    if (!two_operands[k].number) continue;
    weir_tensor_drop(&r);
    weir_ok(two_operands[k].number(&r, a, weir_float(2)));
    near_to(two_operands[k].name, r, with, 4e-7);
    weir_tensor_drop(&r);
    weir_ok(two_operands[k].reversed(&r, weir_int(2), b));
    near_to(two_operands[k].name, r, from, 4e-7);
    weir_ok(two_operands[k].change_number(a, weir_int(2)));
    near_to(two_operands[k].name, a, with, 4e-7);
  }
}
END_TEST

/* Each with what it gives for 12 and -10 first, 2 and 9 first, and 12 with 3. */
/* Of 12 and -10, 2 and 9: all forms; NULL: there is none. */
static const struct whole_row {
  binary *call;
  in_place *change;
  binary_number *number;
  in_place_number *change_number;
  number_binary *reversed;
  double both[2], with, from; /* (12, -10), (2, 9); (12, 3); (3, 9) */
} of_integers[] = {
#define ALL(name)                                                                                  \
  weir_##name, weir_##name##_, weir_##name##_scalar, weir_##name##_scalar_, weir_scalar_##name
    {ALL(bitwise_and), {4, 0}, 0, 1},
    {ALL(bitwise_or), {-2, 11}, 15, 11},
    {ALL(bitwise_xor), {-6, 11}, 15, 10},
    {ALL(bitwise_left_shift), {0, 1024}, 96, 1536},
    {ALL(bitwise_right_shift), {0, 0}, 1, 0},
    {ALL(remainder), {-8, 2}, 0, 3},
    {ALL(fmod), {2, 2}, 0, 3},
#undef ALL
    {weir_gcd, weir_gcd_, NULL, NULL, NULL, {2, 1}, 0, 0},
    {weir_lcm, weir_lcm_, NULL, NULL, NULL, {60, 18}, 0, 0},
};

START_TEST(functions_of_integers)
{
  static const weir_dtype dtypes[] = {WEIR_INT16, WEIR_INT32, WEIR_INT64};
  const double x[] = {12, 2}, y[] = {-10, 9};
  devices(2);
  for (size_t k = 0; k < 3 * sizeof of_integers / sizeof *of_integers; k++) {
    const struct whole_row *row = &of_integers[k / 3];
    WEIR_TENSOR a = doubles_in(x, 2, dtypes[k % 3], _i);
    WEIR_TENSOR b = doubles_in(y, 2, dtypes[k % 3], _i);
    WEIR_TENSOR c = NULL;
    weir_tensor *r[3] = {NULL, NULL, NULL};
    double got[2];
    weir_ok(row->call(&r[0], a, b));
    elements_are(r[0], 2, row->both);
    weir_ok(weir_clone(&c, a));
    weir_ok(row->change(c, b));
    elements_are(c, 2, row->both);
    ck_assert_int_eq(weir_tensor_dtype(r[0]), dtypes[k % 3]);
    if (!row->number) {
      weir_tensor_drop(&r[0]);
      continue;
    }
    weir_ok(row->number(&r[1], a, weir_int(3)));
    weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, r[1]));
    ck_assert(got[0] == row->with);
    weir_ok(row->change_number(a, weir_int(3)));
    weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, a));
    ck_assert(got[0] == row->with);
    weir_ok(row->reversed(&r[2], weir_int(3), b));
    weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, r[2]));
    ck_assert(got[1] == row->from);
    for (int i = 0; i < 3; i++)
      weir_tensor_drop(&r[i]);
  }
  WEIR_TENSOR truth = counting(weir_shape(2), WEIR_BOOL, device(_i));
  WEIR_TENSOR not = NULL;
  weir_ok(weir_bitwise_not(&not, truth));
  EXPECT(not, 1, 0);
  weir_ok(weir_bitwise_not_(not ));
  EXPECT(not, 0, 1);
}
END_TEST

START_TEST(quotients_are_rounded_as_asked)
{
  const double x[] = {7, -7, 7}, y[] = {2, 2, -2};
  devices(2);
  WEIR_TENSOR a = doubles_in(x, 3, WEIR_INT32, _i);
  WEIR_TENSOR b = doubles_in(y, 3, WEIR_INT32, _i);
  weir_tensor *r = NULL;
  weir_ok(weir_div_rounding(&r, a, b, "trunc"));
  EXPECT(r, 3, -3, -3);
  weir_ok(weir_div_rounding_(r, b, "floor"));
  EXPECT(r, 1, -2, 1);
  weir_tensor_drop(&r);
  weir_ok(weir_div_rounding_scalar(&r, a, weir_int(2), NULL));
  EXPECT(r, 3.5, -3.5, 3.5);
  weir_ok(weir_div_rounding_scalar_(r, weir_int(2), "trunc"));
  EXPECT(r, 1, -1, 1);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL,
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
          weir_div_rounding(&r, a, b, "up"));
  weir_ok(weir_float_power_scalar(&r, a, weir_int(2)));
  EXPECT(r, 49, 49, 49);
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_FLOAT64);
  weir_tensor_drop(&r);
  weir_ok(weir_float_power(&r, b, b));
  EXPECT(r, 4, 4, 0.25);
  weir_tensor_drop(&r);
}
END_TEST

/* On the cpu it is torch's error, and nothing has changed; a device does not wait to find out. */
START_TEST(integers_by_zero_are_an_error_or_zero)
{
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(3), WEIR_INT32, device(_i));
  WEIR_TENSOR b = counting(weir_shape(3), WEIR_INT32, device(_i));
  weir_tensor *r = NULL;
  if (_i) {
    weir_ok(weir_remainder_(a, b));
    EXPECT(a, 0, 0, 0);
    return;
  }
  refused(WEIR_EINVAL, "ZeroDivisionError", weir_remainder(&r, a, b));
  refused(WEIR_EINVAL, "ZeroDivisionError", weir_fmod_(a, b));
  refused(WEIR_EINVAL, "ZeroDivisionError", weir_div_rounding_(a, b, "trunc"));
  EXPECT(a, 0, 1, 2);
}
END_TEST

/* ---- three operands -------------------------------------------------------------------------- */

START_TEST(three_operands_are_combined_at_once)
{
  const double x[] = {1, 2, 3}, y[] = {4, -6, 8}, z[] = {0.5, 0.25, 2};
  devices(2);
  WEIR_TENSOR a = doubles_in(x, 3, WEIR_FLOAT32, _i);
  WEIR_TENSOR b = doubles_in(y, 3, WEIR_FLOAT32, _i);
  WEIR_TENSOR c = doubles_in(z, 3, WEIR_FLOAT32, _i);
  WEIR_TENSOR row = counting(weir_shape(2, 1), WEIR_FLOAT32, device(_i));
  weir_tensor *r = NULL;
  weir_ok(weir_lerp(&r, a, b, c));
  EXPECT(r, 2.5, 0, 13);
  weir_ok(weir_lerp_scalar_(r, b, weir_float(0.5)));
  EXPECT(r, 3.25, -3, 10.5);
  weir_ok(weir_lerp_(r, a, c));
  EXPECT(r, 2.125, -1.75, -4.5);
  weir_tensor_drop(&r);
  weir_ok(weir_lerp_scalar(&r, a, b, weir_int(1)));
  EXPECT(r, 4, -6, 8);
  weir_tensor_drop(&r);
  weir_ok(weir_addcmul(&r, row, b, c, weir_int(2)));
  EXPECT(r, 4, -3, 32, 5, -2, 33);
  weir_tensor_drop(&r);
  weir_ok(weir_addcdiv(&r, a, b, c, weir_float(0.5)));
  EXPECT(r, 5, -10, 5);
  weir_ok(weir_addcmul_(r, a, a, weir_int(-1)));
  EXPECT(r, 4, -14, -4);
  weir_ok(weir_addcdiv_(r, a, a, weir_int(1)));
  EXPECT(r, 5, -13, -3);
  weir_tensor_drop(&r);
  WEIR_TENSOR whole = doubles_in(x, 3, WEIR_INT16, _i);
  weir_ok(weir_addcmul(&r, whole, whole, whole, weir_int(3)));
  EXPECT(r, 4, 14, 30);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "expected dtype float for `end` but got dtype short int",
          weir_lerp(&r, a, whole, c));
  refused_with(WEIR_EINVAL, "Integer division with addcdiv is no longer supported",
               weir_addcdiv(&r, a, whole, whole, weir_int(1)));
}
END_TEST

START_TEST(bounds_may_be_tensors)
{
  const double x[] = {-5, 0.5, 9}, low[] = {-1, 1, 0}, high[] = {1, 2, 3};
  devices(2);
  WEIR_TENSOR a = doubles_in(x, 3, WEIR_FLOAT16, _i);
  WEIR_TENSOR b = doubles_in(low, 3, WEIR_FLOAT16, _i);
  WEIR_TENSOR c = doubles_in(high, 3, WEIR_FLOAT16, _i);
  weir_tensor *r = NULL;
  weir_ok(weir_clamp_tensor(&r, a, b, c));
  EXPECT(r, -1, 1, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_clamp_tensor(&r, a, NULL, c));
  EXPECT(r, -5, 0.5, 3);
  weir_ok(weir_clamp_tensor_(r, b, NULL));
  EXPECT(r, -1, 1, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_clamp_min(&r, a, weir_int(0)));
  EXPECT(r, 0, 0.5, 9);
  weir_ok(weir_clamp_max_(r, weir_int(2)));
  EXPECT(r, 0, 0.5, 2);
  weir_ok(weir_clamp_min_(r, weir_float(0.25)));
  EXPECT(r, 0.25, 0.5, 2);
  weir_ok(weir_clamp_(r, NULL, &(weir_scalar){.dtype = WEIR_INT64, .i = 1}));
  EXPECT(r, 0.25, 0.5, 1);
  weir_tensor_drop(&r);
  weir_ok(weir_clamp_max(&r, a, weir_int(3)));
  EXPECT(r, -5, 0.5, 3);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "weir.clamp: At least one of 'min' or 'max' must not be None",
          weir_clamp_tensor(&r, a, NULL, NULL));
}
END_TEST

/* ---- activations ----------------------------------------------------------------------------- */

/* An activation, and the device's operation for its derivative with the numbers that it takes. */
typedef struct activation {
  const char *name;
  weir_status (*call)(weir_tensor **out, const weir_tensor *a);
  weir_op slope;
  double p[3];
  bool of_result; /* the derivative is a function of the result */
} activation;

#define FORM(name, ...)                                                                            \
  static weir_status name##_form(weir_tensor **out, const weir_tensor *a)                          \
  {                                                                                                \
    return weir_##name(out, a, __VA_ARGS__);                                                       \
  }
FORM(gelu, "none")
FORM(leaky_relu, 0.25)
FORM(elu, 1.5)
FORM(celu, 2)
FORM(softplus, 2, 3)
FORM(softshrink, 0.5)
FORM(hardshrink, 0.5)
FORM(threshold, 0.3, 7)
FORM(hardtanh, -1, 0.75)

static weir_status gelu_tanh_form(weir_tensor **out, const weir_tensor *a)
{
  return weir_gelu(out, a, "tanh");
}

#define SELU_SCALE 1.0507009873554804934

static const activation activations[] = {
    {"sigmoid", weir_sigmoid, WEIR_OP_SIGMOID_BACKWARD, {0}, true},
    {"tanh", weir_tanh, WEIR_OP_TANH_BACKWARD, {0}, true},
    {"silu", weir_silu, WEIR_OP_SILU_BACKWARD, {0}, false},
    {"mish", weir_mish, WEIR_OP_MISH_BACKWARD, {0}, false},
    {"hardsigmoid", weir_hardsigmoid, WEIR_OP_HARDSIGMOID_BACKWARD, {0}, false},
    {"hardswish", weir_hardswish, WEIR_OP_HARDSWISH_BACKWARD, {0}, false},
    {"logsigmoid", weir_logsigmoid, WEIR_OP_LOG_SIGMOID_BACKWARD, {0}, false},
    {"selu",
     weir_selu,
     WEIR_OP_ELU_BACKWARD,
     {1.6732632423543772848 * SELU_SCALE, SELU_SCALE, 1},
     false},
    {"gelu", gelu_form, WEIR_OP_GELU_BACKWARD, {0}, false},
    {"gelu tanh", gelu_tanh_form, WEIR_OP_GELU_TANH_BACKWARD, {0}, false},
    {"leaky_relu", leaky_relu_form, WEIR_OP_LEAKY_RELU_BACKWARD, {0.25}, false},
    {"elu", elu_form, WEIR_OP_ELU_BACKWARD, {1.5, 1, 1}, false},
    {"celu", celu_form, WEIR_OP_ELU_BACKWARD, {2, 1, 0.5}, false},
    {"softplus", softplus_form, WEIR_OP_SOFTPLUS_BACKWARD, {2, 3}, false},
    {"softshrink", softshrink_form, WEIR_OP_SHRINK_BACKWARD, {0.5}, false},
    {"hardshrink", hardshrink_form, WEIR_OP_SHRINK_BACKWARD, {0.5}, false},
    {"threshold", threshold_form, WEIR_OP_THRESHOLD_BACKWARD, {0.3}, false},
    {"hardtanh", hardtanh_form, WEIR_OP_HARDTANH_BACKWARD, {-1, 0.75}, false},
};

enum { POINTS = 9 };
static const double points[POINTS] = {-4.1, -2.2, -0.8, -0.3, 0.1, 0.4, 0.7, 1.6, 3.4};

static void values_of(const activation *f, double off, int place, double *out)
{
  double at[POINTS];
  WEIR_TENSOR r = NULL;
  for (int i = 0; i < POINTS; i++)
    at[i] = points[i] + off;
  WEIR_TENSOR a = doubles_in(at, POINTS, WEIR_FLOAT64, place);
  weir_ok(f->call(&r, a));
  weir_ok(weir_tensor_read(out, POINTS * sizeof *out, WEIR_FLOAT64, r));
}

START_TEST(a_derivative_is_the_slope_of_what_it_is_the_derivative_of)
{
  const double h = 1e-5;
  devices(2);
  for (size_t k = 0; k < sizeof activations / sizeof *activations; k++) {
    const activation *f = &activations[k];
    double above[POINTS], below[POINTS], got[POINTS];
    WEIR_TENSOR a = doubles_in(points, POINTS, WEIR_FLOAT64, _i);
    WEIR_TENSOR gradient = NULL;
    WEIR_TENSOR result = NULL;
    WEIR_TENSOR slope = NULL;
    values_of(f, h, _i, above);
    values_of(f, -h, _i, below);
    weir_ok(weir_full_like(&gradient, a, weir_float(3), NULL));
    weir_ok(f->call(&result, a));
    const weir_tensor *of[2] = {gradient, f->of_result ? result : a};
    const weir_scalar p[3] = {weir_float(f->p[0]), weir_float(f->p[1]), weir_float(f->p[2])};
    weir_ok(elementwise_tensors(f->slope, &slope, NULL, 2, of, weir_op_has_p(f->slope) ? p : NULL));
    weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, slope));
    for (int i = 0; i < POINTS; i++)
      ck_assert_msg(fabs(got[i] - 3 * (above[i] - below[i]) / (2 * h)) < 1e-7,
                    "%s at %g: %.12g is not %.12g", f->name, points[i], got[i],
                    3 * (above[i] - below[i]) / (2 * h));
  }
}
END_TEST

START_TEST(activations_in_place_are_those_out_of_place)
{
  devices(2);
  for (int k = 0; k < 7; k++) {
    WEIR_TENSOR a = doubles_in(xs, COUNT, WEIR_FLOAT32, _i);
    WEIR_TENSOR r = NULL;
    double want[COUNT];
    weir_ok(k == 0   ? weir_gelu(&r, a, "tanh")
            : k == 1 ? weir_leaky_relu(&r, a, 0.5)
            : k == 2 ? weir_elu(&r, a, 2)
            : k == 3 ? weir_celu(&r, a, 2)
            : k == 4 ? weir_hardtanh(&r, a, -1, 2)
            : k == 5 ? weir_threshold(&r, a, 0.3, 5)
                     : weir_gelu(&r, a, "none"));
    weir_ok(weir_tensor_read(want, sizeof want, WEIR_FLOAT64, r));
    weir_ok(k == 0   ? weir_gelu_(a, "tanh")
            : k == 1 ? weir_leaky_relu_(a, 0.5)
            : k == 2 ? weir_elu_(a, 2)
            : k == 3 ? weir_celu_(a, 2)
            : k == 4 ? weir_hardtanh_(a, -1, 2)
            : k == 5 ? weir_threshold_(a, 0.3, 5)
                     : weir_gelu_(a, "none"));
    elements_are(a, COUNT, want);
  }
}
END_TEST

START_TEST(activations_of_two_halves_and_of_channels)
{
  const double x[] = {-2, 4, 0, -1, 1, -3};
  devices(2);
  WEIR_TENSOR flat = doubles_in(x, 6, WEIR_FLOAT32, _i);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR weight = doubles_in((double[]){0.5, 0.25, 2}, 3, WEIR_FLOAT32, _i);
  weir_tensor *r = NULL;
  weir_ok(weir_reshape(&a, flat, weir_shape(2, 3)));
  weir_ok(weir_prelu(&r, a, weight));
  EXPECT(r, -1, 4, 0, -0.5, 1, -6);
  weir_tensor_drop(&r);
  weir_ok(weir_glu(&r, a, -2));
  double want[COUNT] = {-2 / (1 + exp(1)), 4 / (1 + exp(-1)), 0};
  double got[3];
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, r));
  for (int i = 0; i < 3; i++)
    ck_assert(fabs(got[i] - want[i]) < 1e-6);
  weir_tensor_drop(&r);
  WEIR_TENSOR whole = doubles_in(x, 6, WEIR_INT64, _i);
  weir_ok(weir_hardtanh(&r, whole, -1.5, (double)INFINITY));
  EXPECT(r, -1, 4, 0, -1, 1, -1);
  weir_tensor_drop(&r);
  weir_ok(weir_softsign(&r, a));
  near_to("softsign", r, (double[]){-2 / 3.0, 0.8, 0, -0.5, 0.5, -0.75}, 3e-7);
  weir_tensor_drop(&r);
  weir_ok(weir_tanhshrink(&r, flat));
  near_to("tanhshrink", r,
          (double[]){tanh(2) - 2, 4 - tanh(4), 0, tanh(1) - 1, 1 - tanh(1), tanh(3) - 3}, 1e-6);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "Halving dimension must be even, but dimension 1 is size 3",
          weir_glu(&r, a, 1));
  refused(WEIR_EINVAL,
          "Mismatch of parameter numbers and input channel size. Found parameter numbers = 3 and "
          "channel size = 1.",
          weir_prelu(&r, flat, weight));
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

START_TEST(what_torch_refuses_is_refused_in_its_words)
{
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(2), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR c = counting(weir_shape(2), WEIR_COMPLEX64, device(_i));
  WEIR_TENSOR truth = counting(weir_shape(2), WEIR_BOOL, device(_i));
  weir_tensor *r = NULL;
  refused(WEIR_ENOTSUP, "floor is not supported for complex inputs", weir_floor(&r, c));
  refused(WEIR_ENOTSUP, "signbit is not implemented for complex tensors.", weir_signbit(&r, c));
  refused(WEIR_ENOTSUP, "deg2rad is not supported for complex tensors.", weir_deg2rad(&r, c));
  refused(WEIR_ENOTSUP, "rad2deg is not supported for complex tensors.", weir_rad2deg_(c));
  refused(WEIR_ENOTSUP, "Bool inputs not supported for hardtanh", weir_relu6_(truth));
  refused_with(WEIR_ENOTSUP, "not implemented for 'Float'", weir_gcd(&r, a, a));
  refused_with(WEIR_ENOTSUP, "not implemented for 'Bool'", weir_gelu(&r, truth, "none"));
  refused(WEIR_EINVAL, "approximate argument must be either none or tanh.",
          weir_gelu(&r, a, "fast"));
  refused(WEIR_EINVAL, "min_val cannot be greater than max_val", weir_hardtanh(&r, a, 2, 1));
  refused(WEIR_EINVAL, "ZeroDivisionError: alpha cannot be 0 for CELU", weir_celu_(a, 0));
  refused(WEIR_EINVAL,
          "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -1",
          weir_softshrink(&r, a, -1));
  refused(WEIR_EINVAL, "heaviside is not yet implemented for tensors with different dtypes.",
          weir_heaviside(&r, a, truth));
  refused(WEIR_EINVAL, "result type Float can't be cast to the desired output type Bool",
          weir_erf_(truth));
  refused_with(WEIR_ENOTSUP, "complex128", weir_float_power(&r, c, c));
  refused(WEIR_EINVAL, "ldexp can't be cast to the desired output type Bool",
          weir_ldexp_(truth, a));
  ck_assert_ptr_null(r);
  EXPECT(a, 0, 1);
}
END_TEST

/* In steps that do not overflow, in the dtype of what is scaled. */
START_TEST(numbers_are_scaled_by_powers_of_two)
{
  static const double small[] = {0.0009765625, 3, 0, 1};
  static const int64_t by[] = {20, -1, 5000, -5000};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR r = NULL;
  devices(2);
  weir_options o = as(WEIR_FLOAT16, device(_i)), whole = as(WEIR_INT64, device(_i));
  weir_ok(weir_tensor_from(&a, small, WEIR_FLOAT64, weir_shape(4), &o));
  weir_ok(weir_tensor_from(&b, by, WEIR_INT64, weir_shape(4), &whole));
  weir_ok(weir_ldexp(&r, a, b));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_FLOAT16);
  EXPECT(r, 1024, 1.5, 0, 0);
  weir_ok(weir_ldexp_(a, b));
  EXPECT(a, 1024, 1.5, 0, 0);
}
END_TEST

/* ---- corners where torch's word decides ------------------------------------------------------ */

enum { LONG = 37 }; /* more than one vector, and a rest */

static weir_tensor *long_of(double value, weir_dtype dtype, int place)
{
  weir_tensor *t;
  weir_options o = as(dtype, device(place));
  weir_ok(weir_full(&t, weir_shape(LONG), weir_float(value), &o));
  return t;
}

static void all_are_zero(const char *name, const weir_tensor *t, bool negative)
{
  double got[LONG];
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, t));
  for (int i = 0; i < LONG; i++)
    ck_assert_msg(got[i] == 0 && !!signbit(got[i]) == negative, "%s of %s: element %d is %g", name,
                  weir_dtype_name(weir_tensor_dtype(t)), i, got[i]);
}

START_TEST(a_zero_keeps_its_sign_within_bounds_of_zero)
{
  static const weir_dtype dtypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16};
  devices(2);
  for (int i = 0; i < 4; i++) {
    WEIR_TENSOR zero = long_of(-0.0, dtypes[i], _i);
    WEIR_TENSOR large = long_of(104, dtypes[i], _i);
    WEIR_TENSOR r = NULL;
    weir_ok(weir_relu(&r, zero));
    all_are_zero("relu", r, true);
    weir_tensor_drop(&r);
    weir_ok(weir_clamp_min(&r, zero, weir_int(0)));
    all_are_zero("clamp_min", r, true);
    weir_ok(weir_relu_(zero));
    all_are_zero("relu_", zero, true);
    weir_tensor_drop(&r);
    weir_ok(weir_logsigmoid(&r, large));
    if (dtypes[i] != WEIR_FLOAT64) all_are_zero("logsigmoid", r, false);
  }
}
END_TEST

/* abs() leaves the least integer as it is, and remainders take its sign. */
START_TEST(common_divisors_of_the_least_integer_are_torchs)
{
  static const weir_dtype dtypes[] = {WEIR_INT8, WEIR_INT16, WEIR_INT32, WEIR_INT64};
  static const int64_t least[] = {INT8_MIN, INT16_MIN, INT32_MIN, INT64_MIN};
  devices(2);
  for (int i = 0; i < 4; i++) {
    int64_t m = least[i], x[] = {m, m, m, 0, 6, m, m, 6}, y[] = {m, 0, 1, m, m, 6, -1, -4};
    const int64_t want[] = {m, m, 1, m, -2, -2, 1, 2};
    int64_t got[8];
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR b = NULL;
    WEIR_TENSOR r = NULL;
    weir_options o = as(dtypes[i], device(_i));
    weir_ok(weir_tensor_from(&a, x, WEIR_INT64, weir_shape(8), &o));
    weir_ok(weir_tensor_from(&b, y, WEIR_INT64, weir_shape(8), &o));
    weir_ok(weir_gcd(&r, a, b));
    weir_ok(weir_tensor_read(got, sizeof got, WEIR_INT64, r));
    for (int k = 0; k < 8; k++)
      ck_assert_msg(got[k] == want[k], "%s: gcd(%lld, %lld) is %lld, not %lld",
                    weir_dtype_name(dtypes[i]), (long long)x[k], (long long)y[k], (long long)got[k],
                    (long long)want[k]);
  }
}
END_TEST

static void all_are(const weir_tensor *t, float re, float im)
{
  float got[2 * LONG];
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_COMPLEX64, t));
  for (int i = 0; i < 2 * LONG; i++)
    ck_assert_msg(got[i] == (i % 2 ? im : re), "part %d is %g", i, (double)got[i]);
}

START_TEST(a_number_as_exponent_of_0_makes_1_and_of_1_changes_nothing)
{
  devices(2);
  WEIR_TENSOR zero = long_of(0, WEIR_COMPLEX64, _i);
  WEIR_TENSOR infinite = long_of(INFINITY, WEIR_COMPLEX64, _i);
  WEIR_TENSOR r = NULL;
  const weir_scalar nothing[] = {weir_float(-0.0), weir_float(0), weir_int(0), weir_bool(false),
                                 weir_complex(-0.0, -0.0)};
  const weir_scalar one[] = {weir_float(1), weir_int(1), weir_bool(true), weir_complex(1, 0)};
  for (int i = 0; i < 5; i++) {
    weir_tensor_drop(&r);
    weir_ok(weir_pow_scalar(&r, zero, nothing[i]));
    all_are(r, 1, 0);
  }
  for (int i = 0; i < 4; i++) {
    weir_tensor_drop(&r);
    weir_ok(weir_pow_scalar(&r, infinite, one[i]));
    all_are(r, INFINITY, 0);
  }
  weir_ok(weir_pow_scalar_(zero, weir_float(-0.0)));
  all_are(zero, 1, 0);
}
END_TEST

START_TEST(bools_have_powers_of_bool_numbers)
{
  bool truth[4] = {true, false, true, false}, got[4];
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR r = NULL;
  devices(2);
  weir_options o = as(WEIR_BOOL, device(_i));
  weir_ok(weir_tensor_from(&t, truth, WEIR_BOOL, weir_shape(4), &o));
  weir_ok(weir_pow_scalar(&r, t, weir_bool(true)));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_BOOL);
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_BOOL, r));
  ck_assert(got[0] && !got[1] && got[2] && !got[3]);
  weir_tensor_drop(&r);
  weir_ok(weir_pow_scalar(&r, t, weir_bool(false)));
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_BOOL, r));
  ck_assert(got[0] && got[1] && got[2] && got[3]);
  weir_tensor_drop(&r);
  refused_with(WEIR_ENOTSUP, "\"pow\" not implemented for 'Bool'", weir_pow(&r, t, t));
}
END_TEST

START_TEST(a_derivative_that_is_not_there_is_named)
{
  weir_tensor *none = NULL;
  devices(2);
  WEIR_TENSOR a = long_of(1, WEIR_FLOAT32, _i);
  weir_ok(weir_requires_grad_(a, true));
  refused(WEIR_ENOTSUP, "derivative for weir_heaviside is not implemented",
          weir_heaviside(&none, a, a));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {functions_of_one_operand,
                                a_zero_keeps_its_sign_within_bounds_of_zero,
                                common_divisors_of_the_least_integer_are_torchs,
                                a_number_as_exponent_of_0_makes_1_and_of_1_changes_nothing,
                                bools_have_powers_of_bool_numbers,
                                a_derivative_that_is_not_there_is_named,
                                numbers_are_scaled_by_powers_of_two,
                                what_numbers_are_is_bool,
                                functions_with_numbers,
                                all_forms_of_two_operands,
                                functions_of_integers,
                                quotients_are_rounded_as_asked,
                                integers_by_zero_are_an_error_or_zero,
                                three_operands_are_combined_at_once,
                                bounds_may_be_tensors,
                                a_derivative_is_the_slope_of_what_it_is_the_derivative_of,
                                activations_in_place_are_those_out_of_place,
                                activations_of_two_halves_and_of_channels,
                                what_torch_refuses_is_refused_in_its_words,
                                NULL};
  return rig_run("ops/functions", tests, TRIED);
}
