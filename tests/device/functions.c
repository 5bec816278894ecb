/* functions.c: the operations of WEIR_FUNCTION_OPS and WEIR_PARAMETER_OPS, said once more by long
 * double's functions of the C library. */
#include <complex.h>
#include <math.h>
#include "tests/device/reference.h"

#ifndef CMPLXL /* glibc defines it for gcc alone */
#define CMPLXL(re, im) __builtin_complex((long double)(re), (long double)(im))
#endif

typedef long double real;
typedef long double complex wide;

static const real pi = 3.14159265358979323846264338327950288L;

/* ---- what the C library lacks ---------------------------------------------------------------- */

static real erfinv_of(real x)
{
  real a = fabsl(x), low = 0, high = 7;
  if (!(a < 1)) return a == 1 ? copysignl(INFINITY, x) : (real)NAN;
  for (int i = 0; i < 14; i++) {
    real y = (low + high) / 2;
    if (erfcl(y) > 1 - a)
      low = y;
    else
      high = y;
  }
  real y = a < 0.01L ? a * sqrtl(pi) / 2 : low;
  for (int i = 0; i < 5; i++) {
    real off = a > 0.5L ? (1 - a) - erfcl(y) : erfl(y) - a;
    y -= off / (2 / sqrtl(pi) * expl(-y * y));
  }
  return copysignl(y, x);
}

static real digamma_of(real x)
{
  real sum = 0;
  if (x == 0) return copysignl(INFINITY, -x);
  if (isinf(x)) return x > 0 ? x : (real)NAN;
  if (x < 0) {
    real part = x - rintl(x);
    return part == 0 ? (real)NAN : digamma_of(1 - x) - pi / tanl(pi * part);
  }
  for (; x < 60; x += 1)
    sum -= 1 / x;
  real z = 1 / (x * x);
  return sum + logl(x) - 1 / (2 * x) - z * (1 / 12.0L - z * (1 / 120.0L - z * (1 / 252.0L)));
}

static real log_gamma_of(real x)
{
  int sign;
  return isinf(x) ? (real)INFINITY : lgammal_r(x, &sign);
}

static real rest_of(real x, real y)
{
  real rest = fmodl(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

static real sinc_of(real x)
{
  real whole = rintl(x), y = sinl(pi * (x - whole)) / (pi * x);
  return x == 0 ? 1 : fmodl(whole, 2) != 0 ? -y : y;
}

static real sigmoid_of(real x)
{
  return 1 / (1 + expl(-x));
}

static real below_of(real x) /* the normal distribution's share below x */
{
  return erfcl(-x / sqrtl(2)) / 2;
}

static real inner_of(real x)
{
  return sqrtl(8 / pi) * (x + 0.044715L * x * x * x);
}

static real mish_gate_of(real x)
{
  return tanhl(x > 50 ? x : log1pl(expl(x)));
}

static real next_of(real x, real y, weir_dtype dtype)
{
  if (isnan(x) || isnan(y)) return NAN;
  if (dtype == WEIR_FLOAT64) return nextafter((double)x, (double)y);
  if (dtype == WEIR_FLOAT32) return nextafterf((float)x, (float)y);
  if (x == y) return y;
  real least = ref_ulp(0, dtype), most = dtype == WEIR_FLOAT16 ? 65504 : 0x1.fep127L;
  if (isinf(x)) return copysignl(most, x);
  if (x == 0) return copysignl(least, y);
  bool away = (y > x) == (x > 0);
  real step = ref_ulp(x, dtype), inside = x - copysignl(step / 2, x);
  if (!away && ref_round(inside, dtype) == inside) return inside; /* x is a power of 2 */
  return ref_round(x + (y > x ? step : -step), dtype);
}

/* ---- floating point -------------------------------------------------------------------------- */

/* What is one function of its own. */
static real (*const function_of[])(real) = {
    [WEIR_OP_ERF] = erfl,           [WEIR_OP_ERFC] = erfcl,
    [WEIR_OP_ERFINV] = erfinv_of,   [WEIR_OP_LGAMMA] = log_gamma_of,
    [WEIR_OP_DIGAMMA] = digamma_of, [WEIR_OP_LOG1P] = log1pl,
    [WEIR_OP_EXPM1] = expm1l,       [WEIR_OP_LOG2] = log2l,
    [WEIR_OP_LOG10] = log10l,       [WEIR_OP_EXP2] = exp2l,
    [WEIR_OP_TAN] = tanl,           [WEIR_OP_ASIN] = asinl,
    [WEIR_OP_ACOS] = acosl,         [WEIR_OP_ATAN] = atanl,
    [WEIR_OP_SINH] = sinhl,         [WEIR_OP_COSH] = coshl,
    [WEIR_OP_ASINH] = asinhl,       [WEIR_OP_ACOSH] = acoshl,
    [WEIR_OP_ATANH] = atanhl,       [WEIR_OP_SINC] = sinc_of,
    [WEIR_OP_FLOOR] = floorl,       [WEIR_OP_CEIL] = ceill,
    [WEIR_OP_ROUND] = rintl,        [WEIR_OP_TRUNC] = truncl};

static real one_of(const weir_loop *l, real x)
{
  if ((size_t)l->op < sizeof function_of / sizeof *function_of && function_of[l->op])
    return function_of[l->op](x);
  switch (l->op) {
  case WEIR_OP_RECIPROCAL:
    return 1 / x;
  case WEIR_OP_FRAC:
    return x - truncl(x);
  case WEIR_OP_SIGN:
  case WEIR_OP_SGN:
    return x > 0 ? 1 : x < 0 ? -1 : 0;
  case WEIR_OP_ISNAN:
    return isnan(x) != 0;
  case WEIR_OP_ISINF:
    return isinf(x) != 0;
  case WEIR_OP_SIGNBIT:
    return signbit(x) != 0;
  case WEIR_OP_SILU:
    return x * sigmoid_of(x);
  case WEIR_OP_GELU:
    return x * below_of(x);
  case WEIR_OP_GELU_TANH:
    return x * sigmoid_of(inner_of(x));
  case WEIR_OP_MISH:
    return x * mish_gate_of(x);
  case WEIR_OP_HARDSIGMOID:
    return isnan(x) ? x : fminl(fmaxl(x + 3, 0), 6) / 6;
  case WEIR_OP_HARDSWISH:
    return isnan(x) ? x : x * fminl(fmaxl(x + 3, 0), 6) / 6;
  default:
    return fminl(x, 0) - log1pl(expl(-fabsl(x))) + 0 * x; /* LOG_SIGMOID */
  }
}

static real larger(real x, real y)
{
  return isnan(x) || isnan(y) ? (real)NAN : fmaxl(x, y);
}

static real lesser(real x, real y)
{
  return isnan(x) || isnan(y) ? (real)NAN : fminl(x, y);
}

static real slope_of(const weir_loop *l, real x)
{
  real p0 = l->p[0].f, p1 = l->p[1].f, p2 = l->p[2].f, s = sigmoid_of(x), gate = mish_gate_of(x);
  real t = sigmoid_of(inner_of(x));
  switch (l->op) {
  case WEIR_OP_SIGMOID_BACKWARD:
    return x * (1 - x);
  case WEIR_OP_TANH_BACKWARD:
    return 1 - x * x;
  case WEIR_OP_SILU_BACKWARD:
    return s * (1 + x * (1 - s));
  case WEIR_OP_GELU_BACKWARD:
    return below_of(x) + x * expl(-x * x / 2) / sqrtl(2 * pi);
  case WEIR_OP_GELU_TANH_BACKWARD:
    return t + x * t * (1 - t) * sqrtl(8 / pi) * (1 + 3 * 0.044715L * x * x);
  case WEIR_OP_MISH_BACKWARD:
    return gate + x * s * (1 - gate * gate);
  case WEIR_OP_HARDSIGMOID_BACKWARD:
    return x > -3 && x < 3 ? 1 / 6.0L : 0;
  case WEIR_OP_HARDSWISH_BACKWARD:
    return x <= -3 ? 0 : x < 3 ? x / 3 + 0.5L : 1;
  case WEIR_OP_LOG_SIGMOID_BACKWARD:
    return sigmoid_of(-x);
  case WEIR_OP_LEAKY_RELU_BACKWARD:
    return x > 0 ? 1 : p0;
  case WEIR_OP_ELU_BACKWARD:
    return x <= 0 ? p2 * p0 * expl(x * p2) : p1;
  case WEIR_OP_SOFTPLUS_BACKWARD:
    return x * p0 > p1 ? 1 : sigmoid_of(x * p0);
  case WEIR_OP_SHRINK_BACKWARD:
    return x >= -p0 && x <= p0 ? 0 : 1;
  case WEIR_OP_THRESHOLD_BACKWARD:
    return x <= p0 ? 0 : 1;
  default:
    return x <= p0 || x >= p1 ? 0 : 1; /* HARDTANH_BACKWARD */
  }
}

/* Where a slope is 0 by a bound: so is the product, whatever the gradient. */
static bool is_cut(const weir_loop *l, long double x)
{
  bool bound = l->op == WEIR_OP_HARDSIGMOID_BACKWARD || l->op >= WEIR_OP_SHRINK_BACKWARD ||
               (l->op == WEIR_OP_HARDSWISH_BACKWARD && x <= -3); /* at -1.5 it is a calculated 0 */
  return bound && slope_of(l, x) == 0;
}

static real two_of(const weir_loop *l, real x, real y)
{
  real unit = l->op == WEIR_OP_LOGADDEXP2 ? 1 / logl(2) : 1;
  switch (l->op) {
  case WEIR_OP_REMAINDER:
    return rest_of(x, y);
  case WEIR_OP_FMOD:
    return fmodl(x, y);
  case WEIR_OP_TRUNC_DIV:
    return truncl(ref_round(x / y, l->compute == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32));
  case WEIR_OP_ATAN2:
    return atan2l(x, y);
  case WEIR_OP_COPYSIGN:
    return copysignl(x, y);
  case WEIR_OP_XLOGY:
    return isnan(y) ? y : x == 0 ? 0 : x * logl(y);
  case WEIR_OP_HYPOT:
    return hypotl(x, y);
  case WEIR_OP_NEXTAFTER:
    return next_of(x, y, l->compute);
  case WEIR_OP_LOGADDEXP:
  case WEIR_OP_LOGADDEXP2:
    if (isinf(x) && x == y) return x;
    return larger(x, y) + unit * log1pl(expl(-fabsl(x - y) / unit));
  case WEIR_OP_FMAX:
    return fmaxl(x, y);
  case WEIR_OP_FMIN:
    return fminl(x, y);
  case WEIR_OP_HEAVISIDE:
    return x == 0 ? y : x > 0;
  case WEIR_OP_LOGICAL_XOR:
    return (x != 0) != (y != 0);
  case WEIR_OP_PRELU:
    return x > 0 ? x : x * y;
  case WEIR_OP_GLU:
    return x * sigmoid_of(y);
  default:
    return x;
  }
}

static real numbered_of(const weir_loop *l, real x)
{
  bool wide_type = l->compute == WEIR_FLOAT64;
  real p0 = l->p[0].f, p1 = l->p[1].f, p2 = l->p[2].f;
  real end = ref_round(1 - p0, wide_type ? WEIR_FLOAT64 : WEIR_FLOAT32);
  switch (l->op) {
  case WEIR_OP_LOGIT:
    x = p0 < 0 || isnan(x) ? x : fminl(fmaxl(x, p0), end);
    return logl(x / (1 - x));
  case WEIR_OP_NAN_TO_NUM:
    return isnan(x) ? p0 : !isinf(x) ? x : x > 0 ? p1 : p2;
  case WEIR_OP_ROUND_DECIMALS:
    return p1 != 0 ? rintl(x / p0) * p0 : rintl(x * p0) / p0;
  case WEIR_OP_LEAKY_RELU:
    return x > 0 ? x : x * p0;
  case WEIR_OP_ELU:
    return x <= 0 ? expm1l(x * p2) * p0 : x * p1;
  case WEIR_OP_SOFTPLUS:
    return x * p0 > p1 ? x : log1pl(expl(x * p0)) / p0;
  case WEIR_OP_SOFTSHRINK:
    return isnan(x) ? x : x > p0 ? x - p0 : x < -p0 ? x + p0 : 0;
  case WEIR_OP_HARDSHRINK:
    return x >= -p0 && x <= p0 ? 0 : x;
  default:
    return x <= p0 ? p1 : x; /* THRESHOLD */
  }
}

static real real_function(const weir_loop *l, real x, real y, real z)
{
  bool backward = (l->op >= WEIR_OP_SIGMOID_BACKWARD && l->op <= WEIR_OP_LOG_SIGMOID_BACKWARD) ||
                  l->op >= WEIR_OP_LEAKY_RELU_BACKWARD;
  if (backward) return is_cut(l, y) ? 0 : x * slope_of(l, y);
  if (l->op <= WEIR_OP_LOG_SIGMOID) return one_of(l, x);
  if (l->op < WEIR_OP_CLAMP) return two_of(l, x, y);
  if (l->op == WEIR_OP_CLAMP) return lesser(larger(x, y), z);
  if (l->op == WEIR_OP_LERP) return x + z * (y - x);
  if (l->op == WEIR_OP_ADDCMUL) return x + l->p[0].f * y * z;
  if (l->op == WEIR_OP_ADDCDIV) return x + l->p[0].f * y / z;
  return numbered_of(l, x);
}

/* ---- integers -------------------------------------------------------------------------------- */

static int64_t without_sign(int64_t x)
{
  return x < 0 ? (int64_t)(0 - (uint64_t)x) : x;
}

static uint64_t divisor_of(uint64_t a, uint64_t b)
{
  return b ? divisor_of(b, a % b) : a;
}

static int64_t size_in(weir_dtype dtype, int64_t x)
{
  int64_t size = without_sign(x);
  return dtype == WEIR_INT8    ? (int8_t)size
         : dtype == WEIR_INT16 ? (int16_t)size
         : dtype == WEIR_INT32 ? (int32_t)size
                               : size;
}

/* As torch's: abs() of the least integer is that integer, and what remains has its sign. */
static int64_t common_divisor(weir_dtype dtype, int64_t x, int64_t y)
{
  int64_t a = size_in(dtype, x), b = size_in(dtype, y);
  while (a) {
    int64_t rest = a == -1 ? 0 : b % a;
    b = a;
    a = rest;
  }
  return b;
}

static int64_t multiple_of(const weir_loop *l, int64_t x, int64_t y)
{
  uint64_t a = (uint64_t)without_sign(x), b = (uint64_t)without_sign(y), d = divisor_of(a, b);
  int64_t r = d ? (int64_t)(a / d * b) : 0;
  if (l->compute == WEIR_INT32) r = (int32_t)r;
  return l->compute == WEIR_INT32 || l->compute == WEIR_INT64 ? without_sign(r) : r;
}

static int64_t int_rest(int64_t x, int64_t y, bool floored)
{
  int64_t rest = y == 0 || y == -1 ? 0 : x % y;
  return floored && rest && (rest < 0) != (y < 0) ? rest + y : rest;
}

static int64_t int_function(const weir_loop *l, int64_t x, int64_t y, int64_t z)
{
  bool truth = l->compute == WEIR_BOOL;
  int64_t low = x > y ? x : y;
  switch (l->op) {
  case WEIR_OP_SIGN:
  case WEIR_OP_SGN:
    return (x > 0) - (x < 0);
  case WEIR_OP_BITWISE_NOT:
    return truth ? !x : ~x;
  case WEIR_OP_ISNAN:
  case WEIR_OP_ISINF:
    return 0;
  case WEIR_OP_SIGNBIT:
    return x < 0;
  case WEIR_OP_REMAINDER:
    return int_rest(x, y, true);
  case WEIR_OP_FMOD:
    return int_rest(x, y, false);
  case WEIR_OP_TRUNC_DIV:
    return y == -1 ? (int64_t)(0 - (uint64_t)x) : y ? x / y : 0;
  case WEIR_OP_FMAX:
    return low;
  case WEIR_OP_FMIN:
    return x < y ? x : y;
  case WEIR_OP_HEAVISIDE:
    return x ? x > 0 : y;
  case WEIR_OP_GCD:
    return common_divisor(l->compute, x, y);
  case WEIR_OP_LCM:
    return multiple_of(l, x, y);
  case WEIR_OP_BITWISE_AND:
    return x & y;
  case WEIR_OP_BITWISE_OR:
    return x | y;
  case WEIR_OP_BITWISE_XOR:
    return x ^ y;
  case WEIR_OP_LSHIFT:
    return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
  case WEIR_OP_RSHIFT:
    return y < 0 || y > 63 ? (x < 0 ? -1 : 0) : x >> y;
  case WEIR_OP_LOGICAL_XOR:
    return (x != 0) != (y != 0);
  case WEIR_OP_CLAMP:
    return low < z ? low : z;
  case WEIR_OP_ADDCMUL:
    return (int64_t)((uint64_t)x + (uint64_t)l->p[0].i * (uint64_t)y * (uint64_t)z);
  case WEIR_OP_THRESHOLD:
    return x <= l->p[0].i ? l->p[1].i : x;
  default:
    return x;
  }
}

/* ---- complex --------------------------------------------------------------------------------- */

/* Where 1 + x would lose what x has. */
static wide complex_log1p(wide x)
{
  real a = creall(x), b = cimagl(x);
  if (cabsl(x) > 0.5L) return clogl(1 + x);
  return CMPLXL(log1pl(2 * a + a * a + b * b) / 2, atan2l(b, 1 + a));
}

static wide complex_expm1(wide x)
{
  real a = creall(x), b = cimagl(x), half = sinl(b / 2);
  return CMPLXL(expm1l(a) * cosl(b) - 2 * half * half, expl(a) * sinl(b));
}

/* By 0 of any sign, torch's: each part by 0. */
static wide complex_quotient(wide x, wide y)
{
  return y == 0 ? CMPLXL(creall(x) / 0.0L, cimagl(x) / 0.0L) : x / y;
}

static wide complex_function(const weir_loop *l, wide x, wide y, wide z)
{
  wide value = CMPLXL(l->p[0].f, l->p[0].dtype == WEIR_COMPLEX64 ? l->p[0].imag : 0);
  switch (l->op) {
  case WEIR_OP_LOG1P:
    return complex_log1p(x);
  case WEIR_OP_EXPM1:
    return complex_expm1(x);
  case WEIR_OP_LOG2:
    return clogl(x) / logl(2);
  case WEIR_OP_LOG10:
    return clogl(x) / logl(10);
  case WEIR_OP_EXP2:
    return cexpl(x * logl(2));
  case WEIR_OP_TAN:
    return ctanl(x);
  case WEIR_OP_ASIN:
    return casinl(x);
  case WEIR_OP_ACOS:
    return cacosl(x);
  case WEIR_OP_ATAN:
    return catanl(x);
  case WEIR_OP_SINH:
    return csinhl(x);
  case WEIR_OP_COSH:
    return ccoshl(x);
  case WEIR_OP_ASINH:
    return casinhl(x);
  case WEIR_OP_ACOSH:
    return cacoshl(x);
  case WEIR_OP_ATANH:
    return catanhl(x);
  case WEIR_OP_RECIPROCAL:
    return 1 / x;
  case WEIR_OP_SINC:
    return x == 0 ? 1 : csinl(x * pi) / (x * pi);
  case WEIR_OP_SGN:
    return x == 0 ? 0 : x / cabsl(x);
  case WEIR_OP_ISNAN:
    return isnan(creall(x)) || isnan(cimagl(x));
  case WEIR_OP_ISINF:
    return isinf(creall(x)) || isinf(cimagl(x));
  case WEIR_OP_SILU:
    return x / (1 + cexpl(-x));
  case WEIR_OP_LOGICAL_XOR:
    return (x != 0) != (y != 0);
  case WEIR_OP_LERP:
    return x + z * (y - x);
  case WEIR_OP_ADDCMUL:
    return x + value * y * z;
  case WEIR_OP_ADDCDIV:
    return x + complex_quotient(value * y, z);
  default:
    return x; /* NAN_TO_NUM of what is finite */
  }
}

/* ---- all ------------------------------------------------------------------------------------- */

element ref_function(const weir_loop *l, element x, element y, element z)
{
  if (ref_is_int(l->compute)) {
    int64_t i = int_function(l, x.i, y.i, z.i);
    return ref_convert((element){.i = i, .re = (real)i}, WEIR_INT64, l->compute);
  }
  if (l->compute != WEIR_COMPLEX64) {
    real r = real_function(l, x.re, y.re, z.re);
    return (element){.re = r, .i = r == 1};
  }
  wide c = complex_function(l, CMPLXL(x.re, x.im), CMPLXL(y.re, y.im), CMPLXL(z.re, z.im));
  return (element){.re = creall(c), .im = cimagl(c), .i = creall(c) != 0};
}

/* What roundings on the way to a result are measured by: the largest of what is added. */
long double ref_function_size(const weir_loop *l, element x, element y, element z, long double want)
{
  real size = fabsl(want), a = fabsl(x.re), b = fabsl(y.re), c = fabsl(z.re),
       p = fabsl((real)l->p[0].f);
  bool backward = (l->op >= WEIR_OP_SIGMOID_BACKWARD && l->op <= WEIR_OP_LOG_SIGMOID_BACKWARD) ||
                  l->op >= WEIR_OP_LEAKY_RELU_BACKWARD;
  if (l->op == WEIR_OP_LERP) size = fmaxl(size, fmaxl(fmaxl(a, b), c * fmaxl(a, b)));
  if (l->op == WEIR_OP_ADDCMUL) size = fmaxl(size, fmaxl(a, p * b * c));
  if (l->op == WEIR_OP_ADDCDIV) size = fmaxl(size, fmaxl(a, p * b / c));
  if (backward) size = fmaxl(size, a * fmaxl(1, l->op <= WEIR_OP_TANH_BACKWARD ? b * b : 1));
  if (l->op == WEIR_OP_LGAMMA || l->op == WEIR_OP_DIGAMMA || l->op == WEIR_OP_LOGADDEXP ||
      l->op == WEIR_OP_LOGADDEXP2 || l->op == WEIR_OP_LOGIT)
    size = fmaxl(size, 1);
  if (l->op == WEIR_OP_REMAINDER || l->op == WEIR_OP_SOFTSHRINK)
    size = fmaxl(size, fminl(fmaxl(b, p), 1e300L));
  if (l->op == WEIR_OP_ROUND_DECIMALS) size = fmaxl(size, a + p);
  return size;
}
