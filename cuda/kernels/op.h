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
 * In double, as on the cpu: what float32 can hold neither overflows nor is cancelled on the way,
 * and infinities come to what the C library's functions give.
 */

struct c128 {
  double re, im;
};

WEIR_FN c128 wide(c64 z)
{
  return c128{z.re, z.im};
}
WEIR_FN c64 rounded(c128 z)
{
  return c64{(float)z.re, (float)z.im};
}

/* Smith's: by the larger part of the divisor. */
WEIR_FN c128 wide_over(c128 x, c128 y)
{
  if (y.re == 0 && y.im == 0) return c128{x.re / fabs(y.re), x.im / fabs(y.re)};
  if (fabs(y.re) >= fabs(y.im)) {
    double ratio = y.im / y.re, size = y.re + y.im * ratio;
    return c128{(x.re + x.im * ratio) / size, (x.im - x.re * ratio) / size};
  }
  double ratio = y.re / y.im, size = y.im + y.re * ratio;
  return c128{(x.re * ratio + x.im) / size, (x.im * ratio - x.re) / size};
}
WEIR_FAR c64 over(c64 x, c64 y)
{
  return rounded(wide_over(wide(x), wide(y)));
}

WEIR_FN c128 wide_exp(c128 z)
{
  double r = exp_of(z.re);
  if (z.im == 0) return c128{r, z.im};
  if (!isfinite(z.im)) return c128{isinf(z.re) ? r : NAN, isinf(z.re) && r == 0 ? r : NAN};
  return c128{r * cos_of(z.im), r * sin_of(z.im)};
}
WEIR_FAR c64 exp_of(c64 z)
{
  return rounded(wide_exp(wide(z)));
}
/* Near 1 the square of the size, less 1, is exact. */
WEIR_FN c128 wide_log(c128 z)
{
  double size = hypot(z.re, z.im), x = fmax(fabs(z.re), fabs(z.im)),
         y = fmin(fabs(z.re), fabs(z.im));
  bool beside = size > 0.5 && size < 2;
  return c128{beside ? 0.5 * log1p((x - 1) * (x + 1) + y * y) : log_of(size), atan2(z.im, z.re)};
}
WEIR_FAR c64 log_of(c64 z)
{
  return rounded(wide_log(wide(z)));
}
WEIR_FN c128 wide_sqrt(c128 z)
{
  double size = hypot(z.re, z.im), a = sqrt((size + fabs(z.re)) / 2);
  if (isinf(z.im)) return c128{size, z.im};
  if (a == 0) return c128{0, z.im};
  double b = fabs(z.im) / (2 * a);
  return z.re >= 0 ? c128{a, copysign(b, z.im)} : c128{b, copysign(a, z.im)};
}
WEIR_FAR c64 sqrt_of(c64 z)
{
  return rounded(wide_sqrt(wide(z)));
}
/* 0 times infinity is 0 where the 0 is one of z's. */
WEIR_FAR c64 sin_of(c64 z)
{
  double x = z.re, y = z.im;
  if (x == 0) return c64{z.re, (float)sinh(y)};
  if (y == 0) return c64{(float)sin_of(x), isfinite(x) ? (float)(cos_of(x) * y) : z.im};
  return c64{(float)(sin_of(x) * cosh(y)), (float)(cos_of(x) * sinh(y))};
}
WEIR_FAR c64 cos_of(c64 z)
{
  double x = z.re, y = z.im;
  if (x == 0) return c64{(float)cosh(y), -z.re * copysignf(1, z.im)};
  if (y == 0) return c64{(float)cos_of(x), isfinite(x) ? (float)(-sin_of(x) * y) : z.im};
  return c64{(float)(cos_of(x) * cosh(y)), (float)(-sin_of(x) * sinh(y))};
}
/* Kahan, "Branch cuts for complex elementary functions" (1987): nothing is cancelled near the
 * poles. */
WEIR_FAR c64 tanh_of(c64 z)
{
  double x = z.re, y = z.im;
  if (isnan(x)) return c64{z.re, y == 0 ? z.im : z.re};
  if (!isfinite(y) && !isinf(x)) return c64{x == 0 ? z.re : NAN, NAN};
  if (fabs(x) > 22) {
    double small = isfinite(y) ? 4 * sin_of(y) * cos_of(y) * exp_of(-2 * fabs(x)) : 0;
    return c64{copysignf(1, z.re), (float)small};
  }
  double t = tan(y), s = sinh(x), beta = 1 + t * t, size = 1 + beta * s * s;
  return c64{(float)(beta * sqrt(1 + s * s) * s / size), (float)(t / size)};
}
WEIR_FAR c64 power(c64 x, c64 y)
{
  if (y.re == 0 && y.im == 0) return c64{1, 0};
  if (x.re == 0 && x.im == 0) return y.re > 0 ? c64{0, 0} : c64{y.re < 0 ? INFINITY : NAN, NAN};
  c128 log = wide_log(wide(x));
  return rounded(wide_exp(c128{y.re * log.re - y.im * log.im, y.re * log.im + y.im * log.re}));
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
WEIR_FAR c64 rsqrt_of(c64 x)
{
  return rounded(wide_over(c128{1, 0}, wide_sqrt(wide(x))));
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
WEIR_FAR c64 sigmoid_of(c64 x)
{
  c128 e = wide_exp(c128{-(double)x.re, -(double)x.im});
  return rounded(wide_over(c128{1, 0}, c128{1 + e.re, e.im}));
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
 * What each operation does with x[j] and y[j], in apply()'s words; a row of WEIR_OPS (compute.h)
 * states in which of the switches it stands, and whether it is a condition.
 */

#define WEIR_K_DOES_COPY        x[j]
#define WEIR_K_DOES_NEG         negated(x[j])
#define WEIR_K_DOES_ABS         size_of(x[j])
#define WEIR_K_DOES_RELU        x[j] < 0 ? 0 : x[j]
#define WEIR_K_DOES_EXP         exp_of(x[j])
#define WEIR_K_DOES_LOG         log_of(x[j])
#define WEIR_K_DOES_SQRT        sqrt_of(x[j])
#define WEIR_K_DOES_RSQRT       rsqrt_of(x[j])
#define WEIR_K_DOES_SIN         sin_of(x[j])
#define WEIR_K_DOES_COS         cos_of(x[j])
#define WEIR_K_DOES_TANH        tanh_of(x[j])
#define WEIR_K_DOES_SIGMOID     sigmoid_of(x[j])
#define WEIR_K_DOES_LOGICAL_NOT !is_true(x[j])
#define WEIR_K_DOES_ISFINITE    is_finite(x[j])
#define WEIR_K_DOES_ADD         plus(x[j], a.has_alpha ? times(alpha, y[j]) : y[j])
#define WEIR_K_DOES_SUB         minus(x[j], a.has_alpha ? times(alpha, y[j]) : y[j])
#define WEIR_K_DOES_MUL         times(x[j], y[j])
#define WEIR_K_DOES_DIV         over(x[j], y[j])
#define WEIR_K_DOES_FLOOR_DIV   floor_over(x[j], y[j])
#define WEIR_K_DOES_POW         power(x[j], y[j])
#define WEIR_K_DOES_MAXIMUM     x[j] >= y[j] || is_nan(x[j]) ? x[j] : y[j]
#define WEIR_K_DOES_MINIMUM     x[j] <= y[j] || is_nan(x[j]) ? x[j] : y[j]
#define WEIR_K_DOES_EQ          equal(x[j], y[j])
#define WEIR_K_DOES_NE          !equal(x[j], y[j])
#define WEIR_K_DOES_LT          x[j] < y[j]
#define WEIR_K_DOES_LE          x[j] <= y[j]
#define WEIR_K_DOES_GT          x[j] > y[j]
#define WEIR_K_DOES_GE          x[j] >= y[j]
#define WEIR_K_DOES_LOGICAL_AND is_true(x[j]) && is_true(y[j])
#define WEIR_K_DOES_LOGICAL_OR  is_true(x[j]) || is_true(y[j])
#define WEIR_K_DOES_CLOSE       close(x[j], y[j], a.p[0].d, a.p[1].d, a.p[2].d != 0)

#define WEIR_K_GIVES_SAME(expression)     expression
#define WEIR_K_GIVES_FLOATING(expression) expression
#define WEIR_K_GIVES_BOOL(condition)      to<M>((int32_t)(condition))
#define WEIR_K_CASE(name, gives)                                                                   \
  case WEIR_OP_##name:                                                                             \
    WEIR_UNROLL for (int j = 0; j < N; j++) r[j] = WEIR_K_GIVES_##gives(WEIR_K_DOES_##name);       \
    return;
#define WEIR_K_NOT_HERE(name, gives)

/* The rows whose `device` is the same: one of the three is WEIR_K_CASE at a time. */
#define WEIR_K_IN_caller   WEIR_K_NOT_HERE
#define WEIR_K_IN_function WEIR_K_NOT_HERE
#define WEIR_K_ROW(name, text, inputs, gives, takes, computes, keeps, host, device, ...)           \
  WEIR_K_IN_##device(name, gives)

#define WEIR_K_IN_any    WEIR_K_NOT_HERE
#define WEIR_K_IN_real   WEIR_K_CASE
#define WEIR_K_IN_smooth WEIR_K_NOT_HERE
template <typename M, int N> WEIR_FN void apply_real(int op, M *r, const M *x, const M *y)
{
  switch (op) {
    WEIR_OPS(WEIR_K_ROW)
  default:
    return;
  }
}

#undef WEIR_K_IN_real
#undef WEIR_K_IN_smooth
#define WEIR_K_IN_real   WEIR_K_NOT_HERE
#define WEIR_K_IN_smooth WEIR_K_CASE
template <typename M, int N> WEIR_FN void apply_smooth(int op, M *r, const M *x, const M *y)
{
  switch (op) {
    WEIR_OPS(WEIR_K_ROW)
  default:
    return;
  }
}

#undef WEIR_K_IN_any
#undef WEIR_K_IN_smooth
#define WEIR_K_IN_any    WEIR_K_CASE
#define WEIR_K_IN_smooth WEIR_K_NOT_HERE
/* r[j] = op(x[j], y[j]), alpha and p from the launch's argument; r may be x or y. RANGE and WHERE
 * are the caller's. */
template <typename M, int N, typename A>
WEIR_FN void apply(const A &a, M *r, const M *x, const M *y)
{
  M alpha = given<M>(a.alpha);
  int op = a.op;
  switch (op) {
    WEIR_OPS(WEIR_K_ROW)
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
