/* op.h: the operations of WEIR_OPS on what is calculated in (number.h).
 *
 * apply() does one operation, the same for all threads, on N elements at once. What is long or slow
 * is a function of its own (WEIR_FAR), so that the code of a kernel stays small. Signed overflow
 * wraps: integers are added as unsigned ones. Integer division by 0 gives 0, as nothing else is
 * promised.
 */
#ifndef WEIR_CUDA_KERNELS_OP_H
#define WEIR_CUDA_KERNELS_OP_H

#include "cuda/kernels/number.h"

template <typename M> constexpr bool integral = std::is_integral<M>::value;
template <typename M> constexpr bool complex = std::is_same<M, c64>::value;

/* ---- + - * / ----------------------------------------------------------------------------------
 */

template <typename M> WEIR_FN M plus(M x, M y)
{
  if constexpr (integral<M>)
    return (M)((uint64_t)x + (uint64_t)y);
  else
    return x + y;
}
WEIR_FN c64 plus(c64 x, c64 y)
{
  return c64{x.re + y.re, x.im + y.im};
}

template <typename M> WEIR_FN M minus(M x, M y)
{
  if constexpr (integral<M>)
    return (M)((uint64_t)x - (uint64_t)y);
  else
    return x - y;
}
WEIR_FN c64 minus(c64 x, c64 y)
{
  return c64{x.re - y.re, x.im - y.im};
}

/* Of 0 that is -0: not 0 - x. */
template <typename M> WEIR_FN M negated(M x)
{
  if constexpr (integral<M>)
    return minus<M>(0, x);
  else
    return -x;
}
WEIR_FN c64 negated(c64 x)
{
  return c64{-x.re, -x.im};
}

template <typename M> WEIR_FN M times(M x, M y)
{
  if constexpr (integral<M>)
    return (M)((uint64_t)x * (uint64_t)y);
  else
    return x * y;
}
WEIR_FN c64 times(c64 x, c64 y)
{
  return c64{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
}

template <typename M> WEIR_FN M over(M x, M y)
{
  if constexpr (integral<M>)
    return y == 0 ? 0 : y == -1 ? minus<M>(0, x) : x / y;
  else
    return x / y;
}
/* Smith's: the divisor is scaled by its larger part. */
WEIR_FAR c64 over(c64 x, c64 y)
{
  if (y.re == 0 && y.im == 0) return c64{x.re / fabsf(y.re), x.im / fabsf(y.re)};
  if (fabsf(y.re) >= fabsf(y.im)) {
    float ratio = y.im / y.re, scale = 1 / (y.re + y.im * ratio);
    return c64{(x.re + x.im * ratio) * scale, (x.im - x.re * ratio) * scale};
  }
  float ratio = y.re / y.im, scale = 1 / (y.im + y.re * ratio);
  return c64{(x.re * ratio + x.im) * scale, (x.im * ratio - x.re) * scale};
}

/* ---- floating point ---------------------------------------------------------------------------
 */

#define WEIR_K_MATH(how, name, of_float)                                                           \
  how float name##_of(float x)                                                                     \
  {                                                                                                \
    return of_float(x);                                                                            \
  }                                                                                                \
  WEIR_FAR double name##_of(double x)                                                              \
  {                                                                                                \
    return name(x);                                                                                \
  }
WEIR_K_MATH(WEIR_FN, exp, expf)
WEIR_K_MATH(WEIR_FN, log, logf)
WEIR_K_MATH(WEIR_FN, sqrt, sqrtf)
WEIR_K_MATH(WEIR_FAR, sin, sinf)
WEIR_K_MATH(WEIR_FAR, cos, cosf)
WEIR_K_MATH(WEIR_FAR, tanh, tanhf)

WEIR_FAR float power(float x, float y)
{
  return powf(x, y);
}
WEIR_FAR double power(double x, double y)
{
  return pow(x, y);
}
/* A negative exponent gives 0, but for 1 and -1. */
template <typename M> WEIR_FAR M power(M x, M y)
{
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  M result = 1;
  for (; y; y >>= 1, x = times(x, x))
    if (y & 1) result = times(result, x);
  return result;
}

WEIR_FN float rest_of(float x, float y)
{
  return fmodf(x, y);
}
WEIR_FN double rest_of(double x, double y)
{
  return fmod(x, y);
}

/* Python's: towards minus infinity, exact where x / y is not. */
template <typename M> WEIR_FAR M floor_over(M x, M y)
{
  if constexpr (integral<M>) {
    M q = over(x, y);
    return y != 0 && times(q, y) != x && (x < 0) != (y < 0) ? q - 1 : q;
  } else {
    if (y == 0) return x / y;
    M rest = rest_of(x, y), q = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0)) q -= 1;
    if (q == 0) return (M)copysign((double)0, (double)(x / y));
    M whole = (M)floor((double)q);
    return q - whole > (M)0.5 ? whole + 1 : whole;
  }
}

/* ---- complex ----------------------------------------------------------------------------------
 */

WEIR_FAR c64 exp_of(c64 z)
{
  float r = expf(z.re);
  if (z.im == 0) return c64{r, z.im};
  return c64{r * cosf(z.im), r * sinf(z.im)};
}
WEIR_FAR c64 log_of(c64 z)
{
  return c64{logf(hypotf(z.re, z.im)), atan2f(z.im, z.re)};
}
WEIR_FAR c64 sqrt_of(c64 z)
{
  float size = hypotf(z.re, z.im), a = sqrtf((size + fabsf(z.re)) / 2);
  if (isinf(z.im)) return c64{size, z.im};
  if (a == 0) return c64{0, z.im};
  float b = fabsf(z.im) / (2 * a);
  return z.re >= 0 ? c64{a, copysignf(b, z.im)} : c64{b, copysignf(a, z.im)};
}
WEIR_FAR c64 sin_of(c64 z)
{
  return c64{sinf(z.re) * coshf(z.im), cosf(z.re) * sinhf(z.im)};
}
WEIR_FAR c64 cos_of(c64 z)
{
  return c64{cosf(z.re) * coshf(z.im), -sinf(z.re) * sinhf(z.im)};
}
WEIR_FAR c64 tanh_of(c64 z)
{
  if (fabsf(z.re) > 20) return c64{copysignf(1, z.re), copysignf(0, sinf(2 * z.im))};
  float low = coshf(2 * z.re) + cosf(2 * z.im);
  return c64{sinhf(2 * z.re) / low, sinf(2 * z.im) / low};
}
WEIR_FAR c64 power(c64 x, c64 y)
{
  if (y.re == 0 && y.im == 0) return c64{1, 0};
  if (x.re == 0 && x.im == 0) return y.re > 0 ? c64{0, 0} : c64{NAN, NAN};
  return exp_of(times(y, log_of(x)));
}

/* ---- one of each ------------------------------------------------------------------------------
 */

template <typename M> WEIR_FN M size_of(M x)
{
  if constexpr (complex<M>)
    return c64{hypotf(x.re, x.im), 0};
  else
    return x < 0 ? minus<M>(0, x) : x == 0 ? (M)0 : x;
}

template <typename M> WEIR_FN M one()
{
  return to<M>(1);
}

template <typename M> WEIR_FN M rsqrt_of(M x)
{
  return over(one<M>(), sqrt_of(x));
}
#ifdef __CUDA_ARCH__
WEIR_FN float rsqrt_of(float x)
{
  return rsqrtf(x);
}
#endif

template <typename M> WEIR_FN M sigmoid_of(M x)
{
  return over(one<M>(), plus(one<M>(), exp_of(minus(to<M>(0), x))));
}

template <typename M> WEIR_FN bool is_finite(M x)
{
  if constexpr (complex<M>)
    return isfinite(x.re) && isfinite(x.im);
  else if constexpr (integral<M>)
    return true;
  else
    return isfinite(x);
}

template <typename M> WEIR_FN bool equal(M x, M y)
{
  if constexpr (complex<M>)
    return x.re == y.re && x.im == y.im;
  else
    return x == y;
}

template <typename M> WEIR_FN bool is_nan(M x)
{
  return !equal(x, x);
}

/* |x - y| in double, whatever M is. */
template <typename M> WEIR_FN double distance_of(M x, M y)
{
  if constexpr (complex<M>)
    return hypot((double)x.re - y.re, (double)x.im - y.im);
  else
    return fabs((double)x - (double)y);
}

/* p: relative and absolute tolerance, whether NaN equals NaN. */
template <typename M> WEIR_FAR bool close(M x, M y, double relative, double absolute, bool nan_too)
{
  if (equal(x, y)) return true;
  if (is_nan(x) || is_nan(y)) return nan_too && is_nan(x) && is_nan(y);
  if (integral<M> && relative == 0 && absolute == 0) return false;
  if (!is_finite(x) || !is_finite(y)) return false;
  return distance_of(x, y) <= absolute + fabs(relative) * distance_of(y, to<M>(0));
}

/* ---- all of them ------------------------------------------------------------------------------
 */

#define WEIR_K_CASE(name, expression)                                                              \
  case WEIR_OP_##name:                                                                             \
    WEIR_UNROLL for (int j = 0; j < N; j++) r[j] = expression;                                     \
    return;
#define WEIR_K_BOOL(name, condition) WEIR_K_CASE(name, to<M>((int32_t)(condition)))

template <typename M, int N> WEIR_FN void apply_real(int op, M *r, const M *x, const M *y)
{
  switch (op) {
    WEIR_K_CASE(RELU, x[j] <= 0 ? 0 : x[j])
    WEIR_K_CASE(MAXIMUM, x[j] > y[j] || is_nan(x[j]) ? x[j] : y[j])
    WEIR_K_CASE(MINIMUM, x[j] < y[j] || is_nan(x[j]) ? x[j] : y[j])
    WEIR_K_CASE(FLOOR_DIV, floor_over(x[j], y[j]))
    WEIR_K_BOOL(LT, x[j] < y[j])
    WEIR_K_BOOL(LE, x[j] <= y[j])
    WEIR_K_BOOL(GT, x[j] > y[j])
    WEIR_K_BOOL(GE, x[j] >= y[j])
  default:
    return;
  }
}

template <typename M, int N> WEIR_FN void apply_smooth(int op, M *r, const M *x, const M *y)
{
  switch (op) {
    WEIR_K_CASE(EXP, exp_of(x[j]))
    WEIR_K_CASE(LOG, log_of(x[j]))
    WEIR_K_CASE(SQRT, sqrt_of(x[j]))
    WEIR_K_CASE(RSQRT, rsqrt_of(x[j]))
    WEIR_K_CASE(SIN, sin_of(x[j]))
    WEIR_K_CASE(COS, cos_of(x[j]))
    WEIR_K_CASE(TANH, tanh_of(x[j]))
    WEIR_K_CASE(SIGMOID, sigmoid_of(x[j]))
    WEIR_K_CASE(DIV, over(x[j], y[j]))
  default:
    return;
  }
}

/* r[j] = op(x[j], y[j]), alpha and p from the launch's argument; r may be x or y. RANGE and WHERE
 * are the caller's. */
template <typename M, int N, typename A>
WEIR_FN void apply(const A &a, M *r, const M *x, const M *y)
{
  M alpha = given<M>(a.alpha);
  int op = a.op;
  switch (op) {
    WEIR_K_CASE(COPY, x[j])
    WEIR_K_CASE(NEG, negated(x[j]))
    WEIR_K_CASE(ABS, size_of(x[j]))
    WEIR_K_BOOL(LOGICAL_NOT, !is_true(x[j]))
    WEIR_K_BOOL(ISFINITE, is_finite(x[j]))
    WEIR_K_CASE(ADD, plus(x[j], a.has_alpha ? times(alpha, y[j]) : y[j]))
    WEIR_K_CASE(SUB, minus(x[j], a.has_alpha ? times(alpha, y[j]) : y[j]))
    WEIR_K_CASE(MUL, times(x[j], y[j]))
    WEIR_K_CASE(POW, power(x[j], y[j]))
    WEIR_K_BOOL(EQ, equal(x[j], y[j]))
    WEIR_K_BOOL(NE, !equal(x[j], y[j]))
    WEIR_K_BOOL(LOGICAL_AND, is_true(x[j]) && is_true(y[j]))
    WEIR_K_BOOL(LOGICAL_OR, is_true(x[j]) || is_true(y[j]))
    WEIR_K_BOOL(CLOSE, close(x[j], y[j], a.p[0].d, a.p[1].d, a.p[2].d != 0))
  default:
    if constexpr (!complex<M>) apply_real<M, N>(op, r, x, y);
    if constexpr (!integral<M>) apply_smooth<M, N>(op, r, x, y);
    return;
  }
}

/* Element `at` of a range. In double for all floating point: rounded once, alike on all devices. */
template <typename M, typename A> WEIR_FN M ranged(const A &a, int64_t at)
{
  if constexpr (integral<M>) return (M)((uint64_t)a.p[0].i + (uint64_t)at * (uint64_t)a.p[1].i);
#ifdef __CUDA_ARCH__
  double x = __dadd_rn(a.p[0].d, __dmul_rn((double)at, a.p[1].d));
#else
  double x = a.p[0].d + (double)at * a.p[1].d;
#endif
  return to<M>(x);
}

#endif
