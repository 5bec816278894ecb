/* cpu/functions.h: what WEIR_FUNCTION_OPS and WEIR_PARAMETER_OPS do with an element, as tables of
 * cpu/kernels.h, which includes this: a part of it, for one level of processor. */
#include "core/backend/special.h"

#define PI          3.14159265358979323846
#define LN_2        0.693147180559945309417
#define LOG2_E      1.44269504088896340736
#define LOG10_E     0.434294481903251827651
#define ROOT_HALF   0.707106781186547524401
#define NORMAL_PEAK 0.398942280401432677940 /* 1 / sqrt(2 pi) */

/* rint, trunc, ... of floats as floats. */
#define ROUNDED(T, function, x) _Generic((T)0, float : function##f, default : function)(x)
#define BITS_OF(T)              ((int64_t)(8 * sizeof(T)))
#define SIGN_OF(x)                                                                                 \
  _Generic((x), float : float_bits((float)(x)) >> 31, default : cpu_bits((double)(x)) >> 63)

/* NaN, in either place, passes. */
/* Of two zeros the first, whatever their signs, as torch's clamp_min() and clamp_max() have it. */
#define LARGER(x, y)          ((((x) >= (y)) | ((x) != (x))) ? (x) : (y))
#define LESSER(x, y)          ((((x) <= (y)) | ((x) != (x))) ? (x) : (y))
#define BETWEEN(x, low, high) ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))

#define FINITE_OF(x, nan, high, low)                                                               \
  ((x) != (x) ? (nan) : (x) == INFINITY ? (high) : (x) == -INFINITY ? (low) : (x))

/* x / (1 - x), x brought between eps and 1 - eps, in x's type, first where eps is not below 0. */
#define AWAY_OF(x, eps) ((eps) < 0 ? (x) : (x) < (eps) ? (eps) : (x) > 1 - (eps) ? 1 - (eps) : (x))
#define ODDS_OF(x, eps) ((double)AWAY_OF(x, eps) / (1 - (double)AWAY_OF(x, eps)))

/* sqrt(8 / pi) (x + 0.044715 x^3): gelu's approximation is x sigmoid of it. */
#define GELU_INNER(x) (1.59576912160573071176 * ((x) + 0.044715 * (x) * (x) * (x)))

#define VALUE_OF(s) CMPLX((s)->p[0].f, (s)->p[0].imag)

/* Of floats what overflows on the way does not in double. */
#define HYPOT_OF(x, y)                                                                             \
  _Generic((x), float : float_hypot((double)(x), (double)(y)), default : hypot(x, y))

CPU_INLINE double float_hypot(double x, double y)
{
  double r = sqrt(x * x + y * y);
  return ((fabs(x) == INFINITY) | (fabs(y) == INFINITY)) ? (double)INFINITY : r;
}

static inline bool is_negative(int64_t x)
{
  return x < 0;
}

/* By less than 0 as by what leaves nothing. */
static inline uint64_t left_shift(uint64_t x, int64_t y, int64_t bits)
{
  return y < 0 || y >= bits ? 0 : x << y;
}

static inline int64_t right_shift(int64_t x, int64_t y)
{
  return x >> (y < 0 || y > 63 ? 63 : y);
}

static inline void say_by_zero(const cpu_args *s)
{
  atomic_store_explicit(s->by_zero, true, memory_order_relaxed);
}

static inline int64_t int_fmod(int64_t x, int64_t y, const cpu_args *s)
{
  if (y == 0) say_by_zero(s);
  return y == 0 || y == -1 ? 0 : x % y;
}

/* Has y's sign. */
static inline int64_t int_remainder(int64_t x, int64_t y, const cpu_args *s)
{
  int64_t rest = int_fmod(x, y, s);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

static inline int64_t int_trunc_div(int64_t x, int64_t y, const cpu_args *s)
{
  if (y == 0) say_by_zero(s);
  return y == 0 ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

/* What is too large wraps; without its sign where elements are as wide as C's int, as torch's. */
static inline int64_t int_lcm(int64_t x, int64_t y, size_t bytes)
{
  uint64_t divisor = special_gcd(special_size(x), special_size(y));
  if (!divisor) return 0;
  int64_t r = (int64_t)(special_size(x) / divisor * special_size(y));
  if (bytes == 4) r = (int32_t)r;
  return bytes >= 4 ? (int64_t)special_size(r) : r;
}

static inline double float_remainder(double x, double y)
{
  double rest = fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

/* Not lgamma(), which writes a variable of the process. */
static inline double log_gamma(double x)
{
  int sign;
  return x == -INFINITY ? (double)INFINITY : lgamma_r(x, &sign);
}

static inline double float_sinc(double x)
{
  double whole = rint(x), half = whole * 0.5, y = sin((x - whole) * PI) / (x * PI);
  return x == 0 ? 1 : rint(half) != half ? -y : y;
}

static inline double float_sigmoid(double x)
{
  return 1 / (1 + exp(-x));
}

static inline double float_mish_gate(double x)
{
  double e = exp(x), n = e * (e + 2);
  return x > 40 ? 1 : n / (n + 2);
}

static inline float next_float(float x, float y, weir_dtype compute)
{
  if (compute == WEIR_FLOAT16)
    return float16_to_float(special_next(float_to_float16(x), float_to_float16(y), 0x7c00));
  if (compute == WEIR_BFLOAT16)
    return bfloat16_to_float(special_next(float_to_bfloat16(x), float_to_bfloat16(y), 0x7f80));
  return nextafterf(x, y);
}

CPU_INLINE double silu_slope(double gradient, double x, double sigmoid)
{
  return gradient * sigmoid * (1 + x * (1 - sigmoid));
}

CPU_INLINE double mish_slope(double gradient, double x, double gate, double sigmoid)
{
  return gradient * (gate + x * sigmoid * (1 - gate * gate));
}

/* sigmoid: of GELU_INNER. */
CPU_INLINE double gelu_tanh_slope(double gradient, double x, double sigmoid)
{
  double inner = 1.59576912160573071176 * (1 + 3 * 0.044715 * x * x);
  return gradient * (sigmoid + x * sigmoid * (1 - sigmoid) * inner);
}

/* Near 1 the size less 1 is calculated from what is off 1. */
static inline complex128 complex_log1p(complex128 z)
{
  double x = creal(z), y = cimag(z), off = x * (2 + x) + y * y;
  double size = off < 1 && off > -0.75 ? 0.5 * log1p(off) : log(hypot(1 + x, y));
  return CMPLX(size, atan2(y, 1 + x));
}

static inline complex128 complex_expm1(complex128 z)
{
  double x = creal(z), y = cimag(z), half = sin(y / 2);
  if (y == 0) return CMPLX(expm1(x), y);
  return CMPLX(expm1(x) * cos(y) - 2 * half * half, exp(x) * sin(y));
}

/* ---- tables ---------------------------------------------------------------------------------- */

#define INT_FUNCTIONS(X, E)                                                                        \
  X(E, FLOOR, T, x)                                                                                \
  X(E, CEIL, T, x)                                                                                 \
  X(E, ROUND, T, x)                                                                                \
  X(E, TRUNC, T, x)                                                                                \
  X(E, SIGN, T, (T)((x > 0) - is_negative(x)))                                                     \
  X(E, SGN, T, (T)((x > 0) - is_negative(x)))                                                      \
  X(E, BITWISE_NOT, T, (T)~x)                                                                      \
  X(E, ISNAN, bool, ((void)x, false))                                                              \
  X(E, ISINF, bool, ((void)x, false))                                                              \
  X(E, SIGNBIT, bool, is_negative(x))                                                              \
  X(E, REMAINDER, T, (T)int_remainder(x, y, s))                                                    \
  X(E, FMOD, T, (T)int_fmod(x, y, s))                                                              \
  X(E, TRUNC_DIV, T, (T)int_trunc_div(x, y, s))                                                    \
  X(E, FMAX, T, x > y ? x : y)                                                                     \
  X(E, FMIN, T, x < y ? x : y)                                                                     \
  X(E, HEAVISIDE, T, x == 0 ? y : (T)(x > 0))                                                      \
  X(E, GCD, T, (T)special_gcd_signed((T)special_size(x), (T)special_size(y)))                      \
  X(E, LCM, T, (T)int_lcm(x, y, sizeof(T)))                                                        \
  X(E, BITWISE_AND, T, (T)(x & y))                                                                 \
  X(E, BITWISE_OR, T, (T)(x | y))                                                                  \
  X(E, BITWISE_XOR, T, (T)(x ^ y))                                                                 \
  X(E, LSHIFT, T, (T)left_shift((uint64_t)x, y, BITS_OF(T)))                                       \
  X(E, RSHIFT, T, (T)right_shift(x, y))                                                            \
  X(E, LOGICAL_XOR, bool, (x != 0) ^ (y != 0))                                                     \
  X(E, CLAMP, T, LESSER(LARGER(x, y), z))                                                          \
  X(E, ADDCMUL, T, (T)((W)x + (W)s->p[0].i * (W)y * (W)z))                                         \
  X(E, THRESHOLD, T, (int64_t)x <= s->p[0].i ? (T)s->p[1].i : x)

#define BOOL_FUNCTIONS(X, E)                                                                       \
  X(E, SIGN, T, x)                                                                                 \
  X(E, SGN, T, x)                                                                                  \
  X(E, BITWISE_NOT, T, x ^ 1)                                                                      \
  X(E, ISNAN, bool, ((void)x, false))                                                              \
  X(E, ISINF, bool, ((void)x, false))                                                              \
  X(E, SIGNBIT, bool, ((void)x, false))                                                            \
  X(E, FMAX, T, x | y)                                                                             \
  X(E, FMIN, T, x &y)                                                                              \
  X(E, HEAVISIDE, T, x | y)                                                                        \
  X(E, BITWISE_AND, T, x &y)                                                                       \
  X(E, BITWISE_OR, T, x | y)                                                                       \
  X(E, BITWISE_XOR, T, x ^ y)                                                                      \
  X(E, LOGICAL_XOR, bool, x ^ y)

#define FLOAT_FUNCTIONS(X, E)                                                                      \
  X(E, RECIPROCAL, T, 1 / x)                                                                       \
  X(E, FLOOR, T, (T)floor(x))                                                                      \
  X(E, CEIL, T, (T)ceil(x))                                                                        \
  X(E, ROUND, T, (T)rint(x))                                                                       \
  X(E, TRUNC, T, (T)trunc(x))                                                                      \
  X(E, FRAC, T, x - (T)trunc(x))                                                                   \
  X(E, SIGN, T, (T)((x > 0) - (x < 0)))                                                            \
  X(E, SGN, T, (T)((x > 0) - (x < 0)))                                                             \
  X(E, ISNAN, bool, x != x)                                                                        \
  X(E, ISINF, bool, fabs(x) == (T)INFINITY)                                                        \
  X(E, SIGNBIT, bool, SIGN_OF(x))                                                                  \
  X(E, ERFINV, T, (T)special_erfinv(x))                                                            \
  X(E, LGAMMA, T, (T)log_gamma(x))                                                                 \
  X(E, DIGAMMA, T, (T)special_digamma(x))                                                          \
  X(E, HARDSIGMOID, T, (T)(BETWEEN((double)x + 3, 0, 6) / 6))                                      \
  X(E, HARDSWISH, T, (T)(x * BETWEEN((double)x + 3, 0, 6) / 6))                                    \
  X(E, TRUNC_DIV, T, ROUNDED(T, trunc, x / y))                                                     \
  X(E, COPYSIGN, T, (T)copysign(x, y))                                                             \
  X(E, HYPOT, T, (T)HYPOT_OF(x, y))                                                                \
  X(E, FMAX, T, ((x >= y) | (y != y)) ? x : y)                                                     \
  X(E, FMIN, T, ((x <= y) | (y != y)) ? x : y)                                                     \
  X(E, HEAVISIDE, T, x == 0 ? y : (T)(x > 0))                                                      \
  X(E, LOGICAL_XOR, bool, (x != 0) ^ (y != 0))                                                     \
  X(E, PRELU, T, x > 0 ? x : x * y)                                                                \
  X(E, SIGMOID_BACKWARD, T, x *(1 - y) * y)                                                        \
  X(E, TANH_BACKWARD, T, x *(1 - y * y))                                                           \
  X(E, HARDSIGMOID_BACKWARD, T, ((y > -3) & (y < 3)) ? x / 6 : 0)                                  \
  X(E, HARDSWISH_BACKWARD, T, y <= -3 ? 0 : y < 3 ? x * (y / 3 + (T)0.5) : x)                      \
  X(E, LERP, T, fabs(z) < (T)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z))                        \
  X(E, ADDCMUL, T, x + (T)s->p[0].f * y * z)                                                       \
  X(E, ADDCDIV, T, x + (T)s->p[0].f * y / z)                                                       \
  X(E, NAN_TO_NUM, T, FINITE_OF(x, (T)s->p[0].f, (T)s->p[1].f, (T)s->p[2].f))                      \
  X(E, ROUND_DECIMALS, T,                                                                          \
    s->p[1].f != 0 ? ROUNDED(T, rint, x / (T)s->p[0].f) * (T)s->p[0].f                             \
                   : ROUNDED(T, rint, x * (T)s->p[0].f) / (T)s->p[0].f)                            \
  X(E, LEAKY_RELU, T, x > 0 ? x : x * (T)s->p[0].f)                                                \
  X(E, SOFTSHRINK, T,                                                                              \
    x > (T)s->p[0].f    ? x - (T)s->p[0].f                                                         \
    : x < -(T)s->p[0].f ? x + (T)s->p[0].f                                                         \
    : x != x            ? x                                                                        \
                        : 0)                                                                                  \
  X(E, HARDSHRINK, T, ((x >= -(T)s->p[0].f) & (x <= (T)s->p[0].f)) ? 0 : x)                        \
  X(E, THRESHOLD, T, x <= (T)s->p[0].f ? (T)s->p[1].f : x)                                         \
  X(E, LEAKY_RELU_BACKWARD, T, y > 0 ? x : x * (T)s->p[0].f)                                       \
  X(E, SHRINK_BACKWARD, T, ((y >= -(T)s->p[0].f) & (y <= (T)s->p[0].f)) ? 0 : x)                   \
  X(E, THRESHOLD_BACKWARD, T, y <= (T)s->p[0].f ? 0 : x)                                           \
  X(E, HARDTANH_BACKWARD, T, ((y <= (T)s->p[0].f) | (y >= (T)s->p[1].f)) ? 0 : x)

#define FLOAT32_FUNCTIONS(X, E)                                                                    \
  X(E, ERF, T, (T)cpu_erf(x))                                                                      \
  X(E, ERFC, T, (T)cpu_erfc(x))                                                                    \
  X(E, LOG1P, T, (T)cpu_log1p(x))                                                                  \
  X(E, EXPM1, T, (T)cpu_expm1(x))                                                                  \
  X(E, LOG2, T, (T)(cpu_log(x) * LOG2_E))                                                          \
  X(E, LOG10, T, (T)(cpu_log(x) * LOG10_E))                                                        \
  X(E, EXP2, T, (T)cpu_exp(x *LN_2))                                                               \
  X(E, ASIN, T, (T)cpu_asin(x))                                                                    \
  X(E, ACOS, T, (T)cpu_acos(x))                                                                    \
  X(E, ATAN, T, (T)cpu_atan(x))                                                                    \
  X(E, SINH, T, (T)cpu_sinh(x))                                                                    \
  X(E, COSH, T, (T)cpu_cosh(x))                                                                    \
  X(E, ASINH, T, (T)cpu_asinh(x))                                                                  \
  X(E, ACOSH, T, (T)cpu_acosh(x))                                                                  \
  X(E, ATANH, T, (T)cpu_atanh(x))                                                                  \
  X(E, SINC, T, (T)cpu_sinc(x))                                                                    \
  X(E, SILU, T, cpu_short_sigmoid(x, x))                                                           \
  X(E, GELU, T, cpu_short_gelu(x))                                                                 \
  X(E, GELU_TANH, T, (T)(x * cpu_sigmoid(GELU_INNER((double)x))))                                  \
  X(E, MISH, T, (T)(x * cpu_mish_gate(x)))                                                         \
  X(E, LOG_SIGMOID, T, (T)((x < 0 ? x : 0) - cpu_log1p(cpu_exp(-fabs(x)))) + 0)                    \
  X(E, ATAN2, T, (T)cpu_atan2(x, y))                                                               \
  X(E, XLOGY, T, y != y ? y : x == 0 ? 0 : (T)(x * cpu_log(y)))                                    \
  X(E, NEXTAFTER, T, next_float(x, y, s->compute))                                                 \
  X(E, LOGADDEXP, T,                                                                               \
    ((fabsf(x) == INFINITY) & (x == y))                                                            \
        ? x                                                                                        \
        : (T)((x > y ? x : y) + cpu_log1p(cpu_exp(-fabs((double)x - y)))))                         \
  X(E, LOGADDEXP2, T,                                                                              \
    ((fabsf(x) == INFINITY) & (x == y))                                                            \
        ? x                                                                                        \
        : (T)((x > y ? x : y) + LOG2_E * cpu_log1p(cpu_exp(-LN_2 * fabs((double)x - y)))))         \
  X(E, GLU, T, (T)(x * cpu_sigmoid(y)))                                                            \
  X(E, SILU_BACKWARD, T, (T)silu_slope(x, y, cpu_sigmoid(y)))                                      \
  X(E, GELU_BACKWARD, T,                                                                           \
    (T)(x * (0.5 * cpu_erfc(y * -ROOT_HALF) + y * (cpu_exp(y * (double)y * -0.5) * NORMAL_PEAK)))) \
  X(E, GELU_TANH_BACKWARD, T, (T)gelu_tanh_slope(x, y, cpu_sigmoid(GELU_INNER((double)y))))        \
  X(E, MISH_BACKWARD, T, (T)mish_slope(x, y, cpu_mish_gate(y), cpu_sigmoid(y)))                    \
  X(E, LOG_SIGMOID_BACKWARD, T, (T)(x * cpu_sigmoid(-y)))                                          \
  X(E, LOGIT, T, (T)cpu_log(ODDS_OF(x, (T)s->p[0].f)))                                             \
  X(E, ELU, T, (T)(x <= 0 ? cpu_expm1(x * s->p[2].f) * s->p[0].f : x * s->p[1].f))                 \
  X(E, SOFTPLUS, T, x * s->p[0].f > s->p[1].f ? x : (T)(cpu_softplus(x * s->p[0].f) / s->p[0].f))  \
  X(E, ELU_BACKWARD, T,                                                                            \
    (T)(y <= 0 ? x * s->p[2].f * s->p[0].f * cpu_exp(y * s->p[2].f) : x * s->p[1].f))              \
  X(E, SOFTPLUS_BACKWARD, T, y * s->p[0].f > s->p[1].f ? x : (T)(x * cpu_sigmoid(y * s->p[0].f)))

#define FLOAT64_FUNCTIONS(X, E)                                                                    \
  X(E, ERF, T, erf(x))                                                                             \
  X(E, ERFC, T, erfc(x))                                                                           \
  X(E, LOG1P, T, log1p(x))                                                                         \
  X(E, EXPM1, T, expm1(x))                                                                         \
  X(E, LOG2, T, log2(x))                                                                           \
  X(E, LOG10, T, log10(x))                                                                         \
  X(E, EXP2, T, exp2(x))                                                                           \
  X(E, TAN, T, tan(x))                                                                             \
  X(E, ASIN, T, asin(x))                                                                           \
  X(E, ACOS, T, acos(x))                                                                           \
  X(E, ATAN, T, atan(x))                                                                           \
  X(E, SINH, T, sinh(x))                                                                           \
  X(E, COSH, T, cosh(x))                                                                           \
  X(E, ASINH, T, asinh(x))                                                                         \
  X(E, ACOSH, T, acosh(x))                                                                         \
  X(E, ATANH, T, atanh(x))                                                                         \
  X(E, SINC, T, float_sinc(x))                                                                     \
  X(E, SILU, T, x / (1 + exp(-x)))                                                                 \
  X(E, GELU, T, x * 0.5 * erfc(x * -ROOT_HALF))                                                    \
  X(E, GELU_TANH, T, x *float_sigmoid(GELU_INNER(x)))                                              \
  X(E, MISH, T, x *float_mish_gate(x))                                                             \
  X(E, LOG_SIGMOID, T, (x < 0 ? x : 0) - log1p(exp(-fabs(x))))                                     \
  X(E, CLAMP, T, LESSER(LARGER(x, y), z))                                                          \
  X(E, REMAINDER, T, (T)float_remainder(x, y))                                                     \
  X(E, FMOD, T, (T)fmod(x, y))                                                                     \
  X(E, ATAN2, T, atan2(x, y))                                                                      \
  X(E, XLOGY, T, y != y ? y : x == 0 ? 0 : x * log(y))                                             \
  X(E, NEXTAFTER, T, nextafter(x, y))                                                              \
  X(E, LOGADDEXP, T, isinf(x) && x == y ? x : (x > y ? x : y) + log1p(exp(-fabs(x - y))))          \
  X(E, LOGADDEXP2, T,                                                                              \
    isinf(x) && x == y ? x : (x > y ? x : y) + LOG2_E * log1p(exp2(-fabs(x - y))))                 \
  X(E, GLU, T, x *float_sigmoid(y))                                                                \
  X(E, SILU_BACKWARD, T, silu_slope(x, y, float_sigmoid(y)))                                       \
  X(E, GELU_BACKWARD, T, x *(0.5 * erfc(y * -ROOT_HALF) + y * (exp(y * y * -0.5) * NORMAL_PEAK)))  \
  X(E, GELU_TANH_BACKWARD, T, gelu_tanh_slope(x, y, float_sigmoid(GELU_INNER(y))))                 \
  X(E, MISH_BACKWARD, T, mish_slope(x, y, float_mish_gate(y), float_sigmoid(y)))                   \
  X(E, LOG_SIGMOID_BACKWARD, T, x *float_sigmoid(-y))                                              \
  X(E, LOGIT, T, log(ODDS_OF(x, s->p[0].f)))                                                       \
  X(E, ELU, T, x <= 0 ? expm1(x * s->p[2].f) * s->p[0].f : x * s->p[1].f)                          \
  X(E, SOFTPLUS, T, x * s->p[0].f > s->p[1].f ? x : log1p(exp(x * s->p[0].f)) / s->p[0].f)         \
  X(E, ELU_BACKWARD, T, y <= 0 ? x * s->p[2].f * s->p[0].f * exp(y * s->p[2].f) : x * s->p[1].f)   \
  X(E, SOFTPLUS_BACKWARD, T, y * s->p[0].f > s->p[1].f ? x : x * float_sigmoid(y * s->p[0].f))

#define COMPLEX_FUNCTIONS(X, E)                                                                    \
  X(E, LOG1P, T, (T)complex_log1p(x))                                                              \
  X(E, EXPM1, T, (T)complex_expm1(x))                                                              \
  X(E, LOG2, T, (T)(clog(x) * LOG2_E))                                                             \
  X(E, LOG10, T, (T)(clog(x) * LOG10_E))                                                           \
  X(E, EXP2, T, (T)cexp(x *LN_2))                                                                  \
  X(E, TAN, T, (T)ctan(x))                                                                         \
  X(E, ASIN, T, (T)casin(x))                                                                       \
  X(E, ACOS, T, (T)cacos(x))                                                                       \
  X(E, ATAN, T, (T)catan(x))                                                                       \
  X(E, SINH, T, (T)csinh(x))                                                                       \
  X(E, COSH, T, (T)ccosh(x))                                                                       \
  X(E, ASINH, T, (T)casinh(x))                                                                     \
  X(E, ACOSH, T, (T)cacosh(x))                                                                     \
  X(E, ATANH, T, (T)catanh(x))                                                                     \
  X(E, RECIPROCAL, T, (T)complex_divide(1, x))                                                     \
  X(E, SINC, T, (T)(x == 0 ? 1 : complex_divide(csin(x * PI), x * PI)))                            \
  X(E, SGN, T, (T)(x == 0 ? 0 : x / cabs(x)))                                                      \
  X(E, ISNAN, bool, isnan(creal(x)) || isnan(cimag(x)))                                            \
  X(E, ISINF, bool, isinf(creal(x)) || isinf(cimag(x)))                                            \
  X(E, SILU, T, (T)complex_divide(x, 1 + cexp(-x)))                                                \
  X(E, LOGICAL_XOR, bool, (x != 0) ^ (y != 0))                                                     \
  X(E, LERP, T,                                                                                    \
    (T)(cabs(z) < 0.5 ? x + complex_multiply(z, y - x) : y - complex_multiply(y - x, 1 - z)))      \
  X(E, ADDCMUL, T, (T)(x + complex_multiply(complex_multiply(VALUE_OF(s), y), z)))                 \
  X(E, ADDCDIV, T, (T)(x + complex_divide(complex_multiply(VALUE_OF(s), y), z)))                   \
  X(E, NAN_TO_NUM, T,                                                                              \
    (T)CMPLX(FINITE_OF(creal(x), s->p[0].f, s->p[1].f, s->p[2].f),                                 \
             FINITE_OF(cimag(x), s->p[0].f, s->p[1].f, s->p[2].f)))
