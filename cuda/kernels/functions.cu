/* functions.cu: functions of each element: the rows of WEIR_OPS whose device is `function`.
 *
 * A thread has one element at a time, neighbours side by side, whatever dtypes and strides: what is
 * calculated takes longer than finding an element, and every function stands in the code once for
 * each kind of arithmetic. In float32 (float16 and bfloat16, too), float64, int64, complex64; this
 * last calculates in double. Integer division by 0 gives 0.
 */
#include "core/backend/special.h"
#include "cuda/kernels/op.h"

/* ---- floating point ---------------------------------------------------------------------------
 */

WEIR_K_MATH(WEIR_FAR, erf, erff)
WEIR_K_MATH(WEIR_FAR, erfc, erfcf)
WEIR_K_MATH(WEIR_FAR, log1p, log1pf)
WEIR_K_MATH(WEIR_FAR, expm1, expm1f)
WEIR_K_MATH(WEIR_FAR, log2, log2f)
WEIR_K_MATH(WEIR_FAR, log10, log10f)
WEIR_K_MATH(WEIR_FAR, exp2, exp2f)
WEIR_K_MATH(WEIR_FAR, tan, tanf)
WEIR_K_MATH(WEIR_FAR, asin, asinf)
WEIR_K_MATH(WEIR_FAR, acos, acosf)
WEIR_K_MATH(WEIR_FAR, atan, atanf)
WEIR_K_MATH(WEIR_FAR, sinh, sinhf)
WEIR_K_MATH(WEIR_FAR, cosh, coshf)
WEIR_K_MATH(WEIR_FAR, asinh, asinhf)
WEIR_K_MATH(WEIR_FAR, acosh, acoshf)
WEIR_K_MATH(WEIR_FAR, atanh, atanhf)
WEIR_K_MATH(WEIR_FN, floor, floorf)
WEIR_K_MATH(WEIR_FN, ceil, ceilf)
WEIR_K_MATH(WEIR_FN, rint, rintf)
WEIR_K_MATH(WEIR_FN, trunc, truncf)
WEIR_K_MATH(WEIR_FN, fabs, fabsf)

#define WEIR_K_MATH2(name, of_float)                                                               \
  WEIR_FAR float name##_of(float x, float y)                                                       \
  {                                                                                                \
    return of_float(x, y);                                                                         \
  }                                                                                                \
  WEIR_FAR double name##_of(double x, double y)                                                    \
  {                                                                                                \
    return name(x, y);                                                                             \
  }
WEIR_K_MATH2(atan2, atan2f)
WEIR_K_MATH2(hypot, hypotf)
WEIR_K_MATH2(nextafter, nextafterf)
WEIR_K_MATH2(copysign, copysignf)

WEIR_FAR double log_gamma(double x)
{
#ifdef __CUDA_ARCH__
  return lgamma(x);
#else
  int sign;
  return x == -INFINITY ? (double)INFINITY : lgamma_r(x, &sign);
#endif
}

WEIR_FAR double sine_over(double x)
{
  const double pi = 3.14159265358979323846;
  double whole = rint(x), half = whole * 0.5, y = sin((x - whole) * pi) / (x * pi);
  return x == 0 ? 1 : rint(half) != half ? -y : y;
}

/* The share of the normal distribution that is below x. */
WEIR_FAR float normal_below(float x)
{
#ifdef __CUDA_ARCH__
  return normcdff(x);
#else
  return (float)(0.5 * erfc(x * -0.707106781186547524401));
#endif
}
WEIR_FAR double normal_below(double x)
{
  return 0.5 * erfc(x * -0.707106781186547524401);
}

template <typename M> WEIR_FAR M logistic(M x)
{
  return 1 / (1 + exp_of(-x));
}

/* tanh(ln(1 + e^x)). */
template <typename M> WEIR_FAR M mish_gate(M x)
{
  M e = exp_of(x), n = e * (e + 2);
  return x > 20 ? 1 : n / (n + 2);
}

/* gelu's approximation is x times the logistic of this. */
template <typename M> WEIR_FN M gelu_inner(M x)
{
  return (M)1.59576912160573071176 * (x + (M)0.044715 * x * x * x);
}

template <typename M> WEIR_FAR M gelu_slope(M x)
{
  return normal_below(x) + x * exp_of(x * x * (M)-0.5) * (M)0.398942280401432677940;
}

template <typename M> WEIR_FAR M gelu_tanh_slope(M x)
{
  M s = logistic(gelu_inner(x));
  M inner = (M)1.59576912160573071176 * (1 + (M)(3 * 0.044715) * x * x);
  return s + x * s * (1 - s) * inner;
}

template <typename M> WEIR_FN M silu_slope(M x)
{
  M s = logistic(x);
  return s * (1 + x * (1 - s));
}

template <typename M> WEIR_FN M mish_slope(M x)
{
  M gate = mish_gate(x);
  return gate + x * logistic(x) * (1 - gate * gate);
}

template <typename M> WEIR_FN M log_sum(M x, M y, M unit)
{
  if (isinf(x) && x == y) return x;
  return (x > y ? x : y) + unit * log1p_of(exp_of(-fabs_of(x - y) / unit));
}

/* x / (1 - x), x between eps and 1 - eps where eps is not below 0. */
template <typename M> WEIR_FN M odds_of(M x, M eps)
{
  if (eps >= 0) x = x < eps ? eps : x > 1 - eps ? 1 - eps : x;
  return x / (1 - x);
}

template <typename M> WEIR_FN M finite_of(M x, M nan, M high, M low)
{
  return x != x ? nan : !isinf(x) ? x : x > 0 ? high : low;
}

template <typename M> WEIR_FN M next_of(M x, M y, int compute)
{
  if (compute == WEIR_FLOAT16)
    return (M)plain(f16{special_next(to_f16((float)x).bits, to_f16((float)y).bits, 0x7c00)});
  if (compute == WEIR_BFLOAT16)
    return (M)plain(bf16{special_next(to_bf16((float)x).bits, to_bf16((float)y).bits, 0x7f80)});
  return nextafter_of(x, y);
}

template <typename M> WEIR_FAR M float_rest(M x, M y, bool floored)
{
  M rest = rest_of(x, y);
  return floored && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/* ---- integers ---------------------------------------------------------------------------------
 */

WEIR_FAR int64_t common_divisor(int64_t x, int64_t y, int compute)
{
  return special_gcd_signed(narrowed((int64_t)special_size(x), compute),
                            narrowed((int64_t)special_size(y), compute));
}

/* Without its sign, where elements are as wide as C's int. */
WEIR_FAR int64_t common_multiple(int64_t x, int64_t y, int compute)
{
  uint64_t divisor = special_gcd(special_size(x), special_size(y));
  if (!divisor) return 0;
  int64_t r = (int64_t)(special_size(x) / divisor * special_size(y));
  if (compute == WEIR_INT32) r = (int32_t)r;
  bool wide = compute == WEIR_INT32 || compute == WEIR_INT64;
  return wide ? (int64_t)special_size(r) : r;
}

WEIR_FAR int64_t int_rest(int64_t x, int64_t y, bool floored)
{
  int64_t rest = y == 0 || y == -1 ? 0 : x % y;
  return floored && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

WEIR_FN int64_t shifted_left(int64_t x, int64_t y)
{
  return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
}

WEIR_FN int64_t shifted_right(int64_t x, int64_t y)
{
  return x >> (y < 0 || y > 63 ? 63 : y);
}

/* ---- complex ----------------------------------------------------------------------------------
 * Kahan, "Branch cuts for complex elementary functions" (1987). */

WEIR_FN c128 wide_times(c128 x, c128 y)
{
  return c128{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}
/* i z, and -i z of a result: functions of one axis from those of the other. */
WEIR_FN c64 turned(c64 z)
{
  return c64{-z.im, z.re};
}
WEIR_FN c64 turned_back(c64 z)
{
  return c64{z.im, -z.re};
}

WEIR_FAR c64 asin_of(c64 z)
{
  c128 r = wide_sqrt(c128{1 - (double)z.re, -(double)z.im});
  c128 q = wide_sqrt(c128{1 + (double)z.re, (double)z.im});
  double along = r.re * q.re - r.im * q.im, across = r.re * q.im - r.im * q.re;
  return c64{(float)atan2((double)z.re, along), (float)asinh(across)};
}
WEIR_FAR c64 acos_of(c64 z)
{
  c128 r = wide_sqrt(c128{1 - (double)z.re, -(double)z.im});
  c128 q = wide_sqrt(c128{1 + (double)z.re, (double)z.im});
  return c64{(float)(2 * atan2(r.re, q.re)), (float)asinh(q.re * r.im - q.im * r.re)};
}
WEIR_FAR c64 acosh_of(c64 z)
{
  c128 p = wide_sqrt(c128{(double)z.re - 1, (double)z.im});
  c128 q = wide_sqrt(c128{(double)z.re + 1, (double)z.im});
  return c64{(float)asinh(p.re * q.re + p.im * q.im), (float)(2 * atan2(p.im, q.re))};
}
WEIR_FAR c64 atanh_of(c64 z)
{
  double sign = z.re < 0 || (z.re == 0 && 1 / z.re < 0) ? -1 : 1, x = sign * z.re, y = sign * z.im;
  double re = 0.25 * log1p(4 * x / ((1 - x) * (1 - x) + y * y));
  double im = 0.5 * atan2(2 * y, (1 - x) * (1 + x) - y * y);
  return c64{(float)(sign * re), (float)(sign * im)};
}
WEIR_FAR c64 asinh_of(c64 z)
{
  return turned_back(asin_of(turned(z)));
}
WEIR_FAR c64 atan_of(c64 z)
{
  return turned_back(atanh_of(turned(z)));
}
WEIR_FAR c64 tan_of(c64 z)
{
  return turned_back(tanh_of(turned(z)));
}
WEIR_FAR c64 sinh_of(c64 z)
{
  return turned_back(sin_of(turned(z)));
}
WEIR_FAR c64 cosh_of(c64 z)
{
  return cos_of(turned(z));
}
/* Near 1 the size less 1 is calculated from what is off 1. */
WEIR_FAR c64 log1p_of(c64 z)
{
  double x = z.re, y = z.im, off = x * (2 + x) + y * y;
  double size = off < 1 && off > -0.75 ? 0.5 * log1p(off) : log(hypot(1 + x, y));
  return c64{(float)size, (float)atan2(y, 1 + x)};
}
WEIR_FAR c64 expm1_of(c64 z)
{
  double x = z.re, y = z.im, half = sin(y / 2);
  if (y == 0) return c64{(float)expm1(x), z.im};
  return c64{(float)(expm1(x) * cos(y) - 2 * half * half), (float)(exp(x) * sin(y))};
}
WEIR_FN c64 scaled(c128 z, double by)
{
  return c64{(float)(z.re * by), (float)(z.im * by)};
}
WEIR_FAR c64 log2_of(c64 z)
{
  return scaled(wide_log(wide(z)), 1.44269504088896340736);
}
WEIR_FAR c64 log10_of(c64 z)
{
  return scaled(wide_log(wide(z)), 0.434294481903251827651);
}
WEIR_FAR c64 exp2_of(c64 z)
{
  const double ln2 = 0.693147180559945309417;
  return rounded(wide_exp(c128{z.re * ln2, z.im * ln2}));
}
WEIR_FAR c64 complex_sinc(c64 z)
{
  const double pi = 3.14159265358979323846;
  double x = z.re * pi, y = z.im * pi;
  if (z.re == 0 && z.im == 0) return c64{1, 0};
  return rounded(wide_over(c128{sin(x) * cosh(y), cos(x) * sinh(y)}, c128{x, y}));
}
WEIR_FAR c64 complex_sign(c64 z)
{
  double size = hypot((double)z.re, (double)z.im);
  if (z.re == 0 && z.im == 0) return c64{0, 0};
  return c64{(float)(z.re / size), (float)(z.im / size)};
}
WEIR_FAR c64 complex_silu(c64 z)
{
  c128 e = wide_exp(c128{-(double)z.re, -(double)z.im});
  return rounded(wide_over(wide(z), c128{1 + e.re, e.im}));
}
WEIR_FAR c64 complex_lerp(c64 x, c64 y, c64 z)
{
  c128 step = {(double)y.re - x.re, (double)y.im - x.im};
  bool near = hypot((double)z.re, (double)z.im) < 0.5;
  c128 part = wide_times(step, near ? wide(z) : c128{1 - (double)z.re, -(double)z.im});
  return near ? c64{(float)(x.re + part.re), (float)(x.im + part.im)}
              : c64{(float)(y.re - part.re), (float)(y.im - part.im)};
}
WEIR_FAR c64 complex_added(c64 x, c64 y, c64 z, c64 value, bool over)
{
  c128 b = wide_times(wide(value), wide(y)),
       part = over ? wide_over(b, wide(z)) : wide_times(b, wide(z));
  return c64{(float)(x.re + part.re), (float)(x.im + part.im)};
}

/* ---- of any numbers ---------------------------------------------------------------------------
 * What differs between integers, floating point and complex numbers, in one place. */

#define WEIR_K_BY(M, whole, real, complex_one)                                                     \
  do {                                                                                             \
    if constexpr (integral<M>)                                                                     \
      return whole;                                                                                \
    else if constexpr (complex<M>)                                                                 \
      return complex_one;                                                                          \
    else                                                                                           \
      return real;                                                                                 \
  } while (0)

template <typename M> WEIR_FN M sign_of(M x)
{
  WEIR_K_BY(M, (x > 0) - (x < 0), (M)((x > 0) - (x < 0)), complex_sign(x));
}
template <typename M> WEIR_FN bool is_infinite(M x)
{
  WEIR_K_BY(M, false, isinf(x), isinf(x.re) || isinf(x.im));
}
template <typename M> WEIR_FN bool has_sign(M x)
{
  WEIR_K_BY(M, x < 0, signbit(x) != 0, false);
}
template <typename M> WEIR_FN M sinc_of(M x)
{
  WEIR_K_BY(M, x, (M)sine_over(x), complex_sinc(x));
}
template <typename M> WEIR_FN M silu_of(M x)
{
  WEIR_K_BY(M, x, x / (1 + exp_of(-x)), complex_silu(x));
}
template <typename M> WEIR_FN M lerp_of(M x, M y, M z)
{
  WEIR_K_BY(M, x, fabs_of(z) < (M)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z),
            complex_lerp(x, y, z));
}
template <typename M> WEIR_FN M product_added(M x, M y, M z, M value)
{
  WEIR_K_BY(M, plus(x, times(times(value, y), z)), x + value * y * z,
            complex_added(x, y, z, value, false));
}
template <typename M> WEIR_FN M quotient_added(M x, M y, M z, M value)
{
  WEIR_K_BY(M, x, x + value * y / z, complex_added(x, y, z, value, true));
}
template <typename M> WEIR_FN M rest_by(M x, M y, bool floored)
{
  WEIR_K_BY(M, int_rest(x, y, floored), float_rest(x, y, floored), x);
}
template <typename M> WEIR_FN M cut_over(M x, M y)
{
  WEIR_K_BY(M, over(x, y), trunc_of(x / y), x);
}
template <typename M> WEIR_FN M rounded_by(M x, int op)
{
  WEIR_K_BY(M, x,
            op == WEIR_OP_FLOOR   ? floor_of(x)
            : op == WEIR_OP_CEIL  ? ceil_of(x)
            : op == WEIR_OP_TRUNC ? trunc_of(x)
                                  : rint_of(x),
            x);
}
/* NaN, in either place, passes. */
template <typename M> WEIR_FN M larger(M x, M y)
{
  return x > y || x != x ? x : y;
}
template <typename M> WEIR_FN M lesser(M x, M y)
{
  return x < y || x != x ? x : y;
}
template <typename M> WEIR_FN M finite_parts(M x, const k_number *p)
{
  WEIR_K_BY(M, x, finite_of(x, (M)p[0].d, (M)p[1].d, (M)p[2].d),
            (c64{finite_of(x.re, p[0].c[0], p[1].c[0], p[2].c[0]),
                 finite_of(x.im, p[0].c[0], p[1].c[0], p[2].c[0])}));
}

/* ---- all of them ------------------------------------------------------------------------------
 * What each does with x, y and z; p0 to p2: the parameters. */

#define WEIR_K_DOES_ERF         erf_of(x)
#define WEIR_K_DOES_ERFC        erfc_of(x)
#define WEIR_K_DOES_ERFINV      (M) special_erfinv((double)x)
#define WEIR_K_DOES_LGAMMA      (M) log_gamma((double)x)
#define WEIR_K_DOES_DIGAMMA     (M) special_digamma((double)x)
#define WEIR_K_DOES_LOG1P       log1p_of(x)
#define WEIR_K_DOES_EXPM1       expm1_of(x)
#define WEIR_K_DOES_LOG2        log2_of(x)
#define WEIR_K_DOES_LOG10       log10_of(x)
#define WEIR_K_DOES_EXP2        exp2_of(x)
#define WEIR_K_DOES_TAN         tan_of(x)
#define WEIR_K_DOES_ASIN        asin_of(x)
#define WEIR_K_DOES_ACOS        acos_of(x)
#define WEIR_K_DOES_ATAN        atan_of(x)
#define WEIR_K_DOES_SINH        sinh_of(x)
#define WEIR_K_DOES_COSH        cosh_of(x)
#define WEIR_K_DOES_ASINH       asinh_of(x)
#define WEIR_K_DOES_ACOSH       acosh_of(x)
#define WEIR_K_DOES_ATANH       atanh_of(x)
#define WEIR_K_DOES_RECIPROCAL  over(one<M>(), x)
#define WEIR_K_DOES_SINC        sinc_of(x)
#define WEIR_K_DOES_FLOOR       rounded_by(x, a.op)
#define WEIR_K_DOES_CEIL        rounded_by(x, a.op)
#define WEIR_K_DOES_ROUND       rounded_by(x, a.op)
#define WEIR_K_DOES_TRUNC       rounded_by(x, a.op)
#define WEIR_K_DOES_FRAC        x - trunc_of(x)
#define WEIR_K_DOES_SIGN        sign_of(x)
#define WEIR_K_DOES_SGN         sign_of(x)
#define WEIR_K_DOES_BITWISE_NOT a.compute == WEIR_BOOL ? x == 0 : ~x
#define WEIR_K_DOES_ISNAN       is_nan(x)
#define WEIR_K_DOES_ISINF       is_infinite(x)
#define WEIR_K_DOES_SIGNBIT     has_sign(x)
#define WEIR_K_DOES_SILU        silu_of(x)
#define WEIR_K_DOES_GELU        x *normal_below(x)
#define WEIR_K_DOES_GELU_TANH   x *logistic(gelu_inner(x))
#define WEIR_K_DOES_MISH        x *mish_gate(x)
#define WEIR_K_DOES_HARDSIGMOID lesser(larger(x + 3, (M)0), (M)6) / 6
#define WEIR_K_DOES_HARDSWISH   x *lesser(larger(x + 3, (M)0), (M)6) / 6
#define WEIR_K_DOES_LOG_SIGMOID (x < 0 ? x : 0) - log1p_of(exp_of(-fabs_of(x)))
#define WEIR_K_DOES_REMAINDER   rest_by(x, y, true)
#define WEIR_K_DOES_FMOD        rest_by(x, y, false)
#define WEIR_K_DOES_TRUNC_DIV   cut_over(x, y)
#define WEIR_K_DOES_ATAN2       atan2_of(x, y)
#define WEIR_K_DOES_COPYSIGN    copysign_of(x, y)
#define WEIR_K_DOES_XLOGY       y != y ? y : x == 0 ? 0 : x *log_of(y)
#define WEIR_K_DOES_HYPOT       hypot_of(x, y)
#define WEIR_K_DOES_NEXTAFTER   next_of(x, y, a.compute)
#define WEIR_K_DOES_LOGADDEXP   log_sum(x, y, (M)1)
#define WEIR_K_DOES_LOGADDEXP2  log_sum(x, y, (M)1.44269504088896340736)
#define WEIR_K_DOES_FMAX        x >= y || y != y ? x : y
#define WEIR_K_DOES_FMIN        x <= y || y != y ? x : y
#define WEIR_K_DOES_HEAVISIDE   x == 0 ? y : (M)(x > 0)
#define WEIR_K_DOES_GCD         common_divisor(x, y, a.compute)
#define WEIR_K_DOES_LCM         common_multiple(x, y, a.compute)
#define WEIR_K_DOES_BITWISE_AND x &y
#define WEIR_K_DOES_BITWISE_OR  x | y
#define WEIR_K_DOES_BITWISE_XOR x ^ y
#define WEIR_K_DOES_LSHIFT      shifted_left(x, y)
#define WEIR_K_DOES_RSHIFT      shifted_right(x, y)
#define WEIR_K_DOES_LOGICAL_XOR is_true(x) != is_true(y)
#define WEIR_K_DOES_PRELU       x > 0 ? x : x *y
#define WEIR_K_DOES_GLU         x *logistic(y)
#define WEIR_K_DOES_CLAMP       lesser(larger(x, y), z)
#define WEIR_K_DOES_LERP        lerp_of(x, y, z)

#define WEIR_K_DOES_SIGMOID_BACKWARD     x *(1 - y) * y
#define WEIR_K_DOES_TANH_BACKWARD        x *(1 - y * y)
#define WEIR_K_DOES_SILU_BACKWARD        x *silu_slope(y)
#define WEIR_K_DOES_GELU_BACKWARD        x *gelu_slope(y)
#define WEIR_K_DOES_GELU_TANH_BACKWARD   x *gelu_tanh_slope(y)
#define WEIR_K_DOES_MISH_BACKWARD        x *mish_slope(y)
#define WEIR_K_DOES_HARDSIGMOID_BACKWARD y > -3 && y < 3 ? x / 6 : 0
#define WEIR_K_DOES_HARDSWISH_BACKWARD   y <= -3 ? 0 : y < 3 ? x *(y / 3 + (M)0.5) : x
#define WEIR_K_DOES_LOG_SIGMOID_BACKWARD x *logistic(-y)

#define WEIR_K_DOES_ADDCMUL        product_added(x, y, z, p0)
#define WEIR_K_DOES_ADDCDIV        quotient_added(x, y, z, p0)
#define WEIR_K_DOES_LOGIT          log_of(odds_of(x, p0))
#define WEIR_K_DOES_NAN_TO_NUM     finite_parts(x, a.p)
#define WEIR_K_DOES_ROUND_DECIMALS p1 != 0 ? rint_of(x / p0) * p0 : rint_of(x *p0) / p0
#define WEIR_K_DOES_LEAKY_RELU     x > 0 ? x : x *p0
#define WEIR_K_DOES_ELU            x <= 0 ? expm1_of(x *p2) * p0 : x *p1
#define WEIR_K_DOES_SOFTPLUS       x *p0 > p1 ? x : log1p_of(exp_of(x *p0)) / p0
#define WEIR_K_DOES_SOFTSHRINK     x > p0 ? x - p0 : x < -p0 ? x + p0 : x != x ? x : 0
#define WEIR_K_DOES_HARDSHRINK     x >= -p0 &&x <= p0 ? 0 : x
#define WEIR_K_DOES_THRESHOLD      x <= p0 ? p1 : x

#define WEIR_K_DOES_LEAKY_RELU_BACKWARD y > 0 ? x : x *p0
#define WEIR_K_DOES_ELU_BACKWARD        y <= 0 ? x *p2 *p0 *exp_of(y *p2) : x *p1
#define WEIR_K_DOES_SOFTPLUS_BACKWARD   y *p0 > p1 ? x : x *logistic(y *p0)
#define WEIR_K_DOES_SHRINK_BACKWARD     y >= -p0 &&y <= p0 ? 0 : x
#define WEIR_K_DOES_THRESHOLD_BACKWARD  y <= p0 ? 0 : x
#define WEIR_K_DOES_HARDTANH_BACKWARD   y <= p0 || y >= p1 ? 0 : x

template <typename M, unsigned set>
constexpr bool is_in = (set & (integral<M>  ? WEIR_DTYPE_BIT(INT64)
                               : complex<M> ? WEIR_DTYPE_BIT(COMPLEX64)
                                            : WEIR_DTYPE_BIT(FLOAT32))) != 0;

#define WEIR_K_FUNCTION(name, text, inputs, gives, takes, computes, ...)                           \
  case WEIR_OP_##name:                                                                             \
    if constexpr (is_in<M, WEIR_DTYPES_##computes>)                                                \
      return WEIR_K_GIVES_##gives(WEIR_K_DOES_##name);                                             \
    break;

template <typename M> WEIR_FN M function_of(const k_function &a, M x, M y, M z)
{
  M p0 = given<M>(a.p[0]), p1 = given<M>(a.p[1]), p2 = given<M>(a.p[2]);
  (void)p0, (void)p1, (void)p2;
  switch (a.op) {
    WEIR_FUNCTION_OPS(WEIR_K_FUNCTION)
    WEIR_PARAMETER_OPS(WEIR_K_FUNCTION)
  default:
    break;
  }
  return x;
}

/* ---- elements ---------------------------------------------------------------------------------
 */

template <typename M>
WEIR_FN M operand_at(const k_operand &o, const k_number &number, int32_t at, int compute)
{
  M x = given<M>(number);
  if (!o.data) return x;
  if (std::is_same<M, int64_t>::value && compute == WEIR_BOOL) {
    b8 truth; /* a half is not 0, though cut to an integer it is */
    gather<b8, 1>(&truth, o.data, o.dtype, &at, 1);
    return to<M>(truth);
  }
  gather<M, 1>(&x, o.data, o.dtype, &at, 1);
  return o.dtype == compute ? x : narrowed(x, compute);
}

template <typename M> WEIR_FN void function_element(const k_function &a, uint32_t i)
{
  int32_t at[4] = {0, 0, 0, 0};
  for (int d = a.dims - 1; d >= 0; d--) {
    uint32_t k = i;
    if (d) i = divided(i, a.size[d], &k);
    at[0] += (int32_t)k * a.in[0].stride[d];
    at[1] += (int32_t)k * a.in[1].stride[d];
    at[2] += (int32_t)k * a.in[2].stride[d];
    at[3] += (int32_t)k * a.out.stride[d];
  }
  M x = operand_at<M>(a.in[0], a.number[0], at[0], a.compute);
  M y = operand_at<M>(a.in[1], a.number[1], at[1], a.compute);
  M z = operand_at<M>(a.in[2], a.number[2], at[2], a.compute);
  M r = narrowed(function_of(a, x, y, z), a.compute);
  scatter<M, 1>(a.out.data, a.out.dtype, &at[3], 1, &r);
}

#define WEIR_K_FUNCTIONS(name, type)                                                               \
  WEIR_BLOCK_KERNEL(weir_function_##name, WEIR_THREADS, WEIR_GIVEN k_function a)                   \
  {                                                                                                \
    WEIR_EACH_THREAD                                                                               \
    {                                                                                              \
      uint32_t step = gridDim.x * WEIR_THREADS, i = blockIdx.x * WEIR_THREADS + threadIdx.x;       \
      for (; i < a.count; i = i + step < i ? a.count : i + step)                                   \
        function_element<type>(a, i);                                                              \
    }                                                                                              \
  }
WEIR_K_FUNCTIONS(integer, int64_t)
WEIR_K_FUNCTIONS(float32, float)
WEIR_K_FUNCTIONS(float64, double)
WEIR_K_FUNCTIONS(complex64, c64)
