/* cpu/kernels.h: the loops of the cpu, for one level of processor.
 *
 * Not a header in the usual sense: cpu/kernels.c and cpu/kernels_avx2.c include it once each,
 * compiled for different processors, with CPU_LEVEL naming the table it fills. C has no templates:
 * a row of a table below is one kernel, its expression is written in x, y, z (elements) and `s`
 * (cpu_args), and the macros make a function and an entry of it. Loops do not branch where that can
 * be helped, so that the compiler makes vectors of them; `out` may be the same memory as an input
 * (hence ivdep), element by element.
 *
 * Groups of types: integers (wrap: sums and products are calculated unsigned, in W), bool (as bytes
 * that are 0 or 1), float32 (functions in double, cpu/math.h; float16 and bfloat16 come as
 * float32), float64 (functions are the C library's), complex64 (calculated in double). */
#include <complex.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/base/compiler.h"
#include "core/backend/cpu/cpu.h"
#include "core/backend/cpu/math.h"
#include "core/backend/philox.h"

#ifndef CPU_LEVEL
#error "a file of one level says which (CPU_LEVEL): every other one includes cpu/cpu.h"
#endif

#ifdef __F16C__
#include <immintrin.h>
#endif

#define LOOP WEIR_IVDEP for (int64_t i = 0; i < n; i++)

typedef float _Complex complex64;
typedef double _Complex complex128;

/* T_: what an element is, V_: what x and y are, W_: what sums and products are calculated in. */
#define TYPES(name, T, V, W)                                                                       \
  typedef T T_##name;                                                                              \
  typedef V V_##name;                                                                              \
  typedef W W_##name;
TYPES(UINT8, uint8_t, uint8_t, uint32_t)
TYPES(INT8, int8_t, int8_t, uint32_t)
TYPES(INT16, int16_t, int16_t, uint32_t)
TYPES(INT32, int32_t, int32_t, uint32_t)
TYPES(INT64, int64_t, int64_t, uint64_t)
TYPES(BOOL, uint8_t, uint8_t, uint8_t)
TYPES(FLOAT32, float, float, float)
TYPES(FLOAT64, double, double, double)
TYPES(COMPLEX64, complex64, complex128, complex128)
TYPES(SHORT, float, float, float) /* float16 and bfloat16 as float32 */
TYPES(FLOAT16, uint16_t, float, float)
TYPES(BFLOAT16, uint16_t, float, float)

/* ---- what integers need ---------------------------------------------------------------------- */

/* Rounds towards minus infinity. By zero: 0, and reports it. The most negative by -1 wraps. */
static inline int64_t floor_div(int64_t x, int64_t y, const cpu_args *s)
{
  if (y == 0) atomic_store_explicit(s->by_zero, true, memory_order_relaxed);
  if (y == 0 || y == -1) return y ? (int64_t)(0 - (uint64_t)x) : 0;
  int64_t q = x / y;
  return q - (x % y != 0 && (x < 0) != (y < 0));
}

/* Wraps; a negative power is that of the real number, cut: 0 unless x is 1 or -1. */
static inline int64_t int_pow(int64_t x, int64_t y)
{
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  uint64_t r = 1;
  for (uint64_t b = (uint64_t)x; y; y >>= 1, b *= b)
    if (y & 1) r *= b;
  return (int64_t)r;
}

/* Python's and torch's: the quotient without the remainder, which has y's sign. */
static inline double float_floor_div(double x, double y)
{
  if (y == 0) return x / y;
  double rest = fmod(x, y), q = (x - rest) / y;
  if (rest != 0 && (y < 0) != (rest < 0)) q -= 1;
  if (q == 0) return copysign(0.0, x / y);
  double whole = floor(q);
  return q - whole > 0.5 ? whole + 1 : whole;
}

static inline double float_pow(double x, double y)
{
  return y == 2 ? x * x : pow(x, y);
}

/* |a - b| <= p[1] + p[0] |b|, or a == b; what is not finite is close to its equal only. */
static inline bool float_close(double x, double y, const cpu_args *s)
{
  bool near = fabs(x - y) <= s->p[1].f + fabs(s->p[0].f * y) && isfinite(x) && isfinite(y);
  return x == y || near || (s->p[2].i && x != x && y != y);
}

static inline bool complex_close(complex128 x, complex128 y, const cpu_args *s)
{
  bool nan_x = isnan(creal(x)) || isnan(cimag(x)), nan_y = isnan(creal(y)) || isnan(cimag(y));
  bool finite = isfinite(cabs(x)) && isfinite(cabs(y));
  bool near = finite && cabs(x - y) <= s->p[1].f + cabs(s->p[0].f * y);
  return x == y || near || (s->p[2].i && nan_x && nan_y);
}

/* Of floats, in double: nothing overflows on the way, and infinities come to what the formulas
 * give. */
static inline complex128 complex_multiply(complex128 x, complex128 y)
{
  return CMPLX(creal(x) * creal(y) - cimag(x) * cimag(y),
               creal(x) * cimag(y) + cimag(x) * creal(y));
}

/* Smith's, without a branch: by the larger part of the divisor, so that what is divided by infinity
 * is 0. */
static inline complex128 complex_divide(complex128 x, complex128 y)
{
  bool first = fabs(creal(y)) >= fabs(cimag(y)), none = y == 0;
  double most = first ? creal(y) : cimag(y), least = first ? cimag(y) : creal(y);
  double ratio = none ? 0 : least / most, size = none ? 0 : most + least * ratio;
  double a = creal(x), b = cimag(x);
  double re = first ? a + b * ratio : a * ratio + b, im = first ? b - a * ratio : b * ratio - a;
  return CMPLX((none ? a : re) / size, (none ? b : im) / size);
}

/* Large angles are the C library's. */
static inline double any_sine(double x, uint64_t quarter)
{
  return fabs(x) > 0x1p20 ? (quarter ? cos(x) : sin(x)) : cpu_sine(x, quarter);
}

static inline double any_tan(double x)
{
  return fabs(x) > 0x1p20 ? tan(x) : cpu_tan(x);
}

#include "core/backend/cpu/functions.h"

/* ---- tables: X(extra, op, type of the result: T or bool, expression) ------------------------- */

#define INT_OPS(X, E)                                                                              \
  X(E, NEG, T, (T)(0 - (W)x))                                                                      \
  X(E, ABS, T, (T)(x > 0 ? (W)x : 0 - (W)x))                                                       \
  X(E, RELU, T, (T)(x > 0 ? x : 0))                                                                \
  X(E, LOGICAL_NOT, bool, x == 0)                                                                  \
  X(E, ISFINITE, bool, ((void)x, true))                                                            \
  X(E, ADD, T, (T)((W)x + (W)y))                                                                   \
  X(E, SUB, T, (T)((W)x - (W)y))                                                                   \
  X(E, ADD_ALPHA, T, (T)((W)x + (W)y * (W)s->alpha.i))                                             \
  X(E, SUB_ALPHA, T, (T)((W)x - (W)y * (W)s->alpha.i))                                             \
  X(E, MUL, T, (T)((W)x * (W)y))                                                                   \
  X(E, FLOOR_DIV, T, (T)floor_div(x, y, s))                                                        \
  X(E, POW, T, (T)int_pow(x, y))                                                                   \
  X(E, MAXIMUM, T, x > y ? x : y)                                                                  \
  X(E, MINIMUM, T, x < y ? x : y)                                                                  \
  X(E, CLOSE, bool, float_close((double)x, (double)y, s) && (x == y || s->p[0].f || s->p[1].f))    \
  X(E, RANGE, T, (T)((W)s->p[0].i + (W)(s->first + i) * (W)s->p[1].i))                             \
  COMPARISONS(X, E)

#define COMPARISONS(X, E)                                                                          \
  X(E, EQ, bool, x == y)                                                                           \
  X(E, NE, bool, x != y)                                                                           \
  X(E, LT, bool, x < y)                                                                            \
  X(E, LE, bool, x <= y)                                                                           \
  X(E, GT, bool, x > y)                                                                            \
  X(E, GE, bool, x >= y)                                                                           \
  X(E, LOGICAL_AND, bool, (x != 0) & (y != 0))                                                     \
  X(E, LOGICAL_OR, bool, (x != 0) | (y != 0))

#define BOOL_OPS(X, E)                                                                             \
  X(E, ABS, T, x)                                                                                  \
  X(E, RELU, T, x)                                                                                 \
  X(E, LOGICAL_NOT, bool, x ^ 1)                                                                   \
  X(E, ISFINITE, bool, ((void)x, true))                                                            \
  X(E, ADD, T, x | y)                                                                              \
  X(E, SUB, T, x ^ y)                                                                              \
  X(E, ADD_ALPHA, T, x | (y & (s->alpha.i != 0)))                                                  \
  X(E, SUB_ALPHA, T, x ^ (y & (s->alpha.i != 0)))                                                  \
  X(E, MUL, T, x &y)                                                                               \
  X(E, POW, T, x | (y ^ 1))                                                                        \
  X(E, MAXIMUM, T, x | y)                                                                          \
  X(E, MINIMUM, T, x &y)                                                                           \
  X(E, CLOSE, bool, float_close(x, y, s))                                                          \
  X(E, RANGE, T, s->p[0].i + (s->first + i) * s->p[1].i != 0)                                      \
  COMPARISONS(X, E)

#define FLOAT_OPS(X, E)                                                                            \
  X(E, NEG, T, -x)                                                                                 \
  X(E, ABS, T, (T)fabs(x))                                                                         \
  X(E, RELU, T, x < 0 ? 0 : x)                                                                     \
  X(E, SQRT, T, (T)sqrt((double)x))                                                                \
  X(E, RSQRT, T, 1 / (T)sqrt((double)x))                                                           \
  X(E, LOGICAL_NOT, bool, x == 0)                                                                  \
  X(E, ISFINITE, bool, fabs(x) < (T)INFINITY)                                                      \
  X(E, ADD, T, x + y)                                                                              \
  X(E, SUB, T, x - y)                                                                              \
  X(E, ADD_ALPHA, T, x + y * (T)s->alpha.f)                                                        \
  X(E, SUB_ALPHA, T, x - y * (T)s->alpha.f)                                                        \
  X(E, MUL, T, x *y)                                                                               \
  X(E, DIV, T, x / y)                                                                              \
  X(E, MAXIMUM, T, LARGER(x, y))                                                                   \
  X(E, MINIMUM, T, LESSER(x, y))                                                                   \
  X(E, CLOSE, bool, float_close(x, y, s))                                                          \
  X(E, RANGE, T, (T)(s->p[0].f + (double)(s->first + i) * s->p[1].f))                              \
  COMPARISONS(X, E)

#define FLOAT32_OPS(X, E)                                                                          \
  X(E, EXP, T, (T)cpu_exp(x))                                                                      \
  X(E, LOG, T, (T)cpu_log(x))                                                                      \
  X(E, TANH, T, (T)cpu_tanh(x))                                                                    \
  X(E, SIGMOID, T, cpu_short_sigmoid(x, 1))

#define FLOAT64_OPS(X, E)                                                                          \
  X(E, FLOOR_DIV, T, (T)float_floor_div(x, y))                                                     \
  X(E, POW, T, (T)float_pow(x, y))                                                                 \
  X(E, EXP, T, exp(x))                                                                             \
  X(E, LOG, T, log(x))                                                                             \
  X(E, SIN, T, sin(x))                                                                             \
  X(E, COS, T, cos(x))                                                                             \
  X(E, TANH, T, tanh(x))                                                                           \
  X(E, SIGMOID, T, 1 / (1 + exp(-x)))

#define COMPLEX_OPS(X, E)                                                                          \
  X(E, NEG, T, (T)-x)                                                                              \
  X(E, ABS, T, (T)cabs(x))                                                                         \
  X(E, EXP, T, (T)cexp(x))                                                                         \
  X(E, LOG, T, (T)clog(x))                                                                         \
  X(E, SQRT, T, (T)csqrt(x))                                                                       \
  X(E, RSQRT, T, (T)complex_divide(1, csqrt(x)))                                                   \
  X(E, SIN, T, (T)csin(x))                                                                         \
  X(E, COS, T, (T)ccos(x))                                                                         \
  X(E, TANH, T, (T)ctanh(x))                                                                       \
  X(E, SIGMOID, T, (T)complex_divide(1, 1 + cexp(-x)))                                             \
  X(E, LOGICAL_NOT, bool, x == 0)                                                                  \
  X(E, ISFINITE, bool, isfinite(creal(x)) && isfinite(cimag(x)))                                   \
  X(E, ADD, T, (T)(x + y))                                                                         \
  X(E, SUB, T, (T)(x - y))                                                                         \
  X(E, ADD_ALPHA, T, (T)(x + complex_multiply(y, CMPLX(s->alpha.f, s->alpha.imag))))               \
  X(E, SUB_ALPHA, T, (T)(x - complex_multiply(y, CMPLX(s->alpha.f, s->alpha.imag))))               \
  X(E, MUL, T, (T)complex_multiply(x, y))                                                          \
  X(E, DIV, T, (T)complex_divide(x, y))                                                            \
  X(E, POW, T, (T)cpow(x, y))                                                                      \
  X(E, EQ, bool, x == y)                                                                           \
  X(E, NE, bool, x != y)                                                                           \
  X(E, LOGICAL_AND, bool, x != 0 && y != 0)                                                        \
  X(E, LOGICAL_OR, bool, x != 0 || y != 0)                                                         \
  X(E, CLOSE, bool, complex_close(x, y, s))

/* ---- tables made functions ------------------------------------------------------------------- */

enum {
#define OP_ROW(name, text, inputs, ...) CPU_OP_##name = WEIR_OP_##name, INPUTS_##name = inputs,
  WEIR_OPS(OP_ROW)
#undef OP_ROW
      INPUTS_ADD_ALPHA = 2,
  INPUTS_SUB_ALPHA = 2
};

/* n elements of out from those of up to three operands. */
#define MAP_KERNEL(name)                                                                           \
  static void name(void *out, const void *in, const void *in2 UNUSED, const void *in3 UNUSED,      \
                   int64_t n, const cpu_args *s UNUSED)
#define UNUSED __attribute__((unused))

#define KERNEL(type, op, result, ...)                                                              \
  MAP_KERNEL(type##_##op)                                                                          \
  {                                                                                                \
    typedef T_##type T;                                                                            \
    typedef V_##type V;                                                                            \
    typedef W_##type W __attribute__((unused));                                                    \
    const T *a = in, *b = in2, *c = in3;                                                           \
    result *r = out;                                                                               \
    (void)a, (void)b, (void)c;                                                                     \
    LOOP                                                                                           \
    {                                                                                              \
      V x = INPUTS_##op > 0 ? (V)a[i] : (V)0, y = INPUTS_##op > 1 ? (V)b[i] : (V)0;                \
      V z = INPUTS_##op > 2 ? (V)c[i] : (V)0;                                                      \
      (void)x, (void)y, (void)z;                                                                   \
      r[i] = (__VA_ARGS__);                                                                        \
    }                                                                                              \
  }

/* A row of WEIR_OPS as entries of the table: one for each type it computes with. */
#define ENTRY(type, op) [CPU_OP_##op][WEIR_##type] = type##_##op,
#define ENTRIES_INTEGERS(op)                                                                       \
  ENTRY(UINT8, op) ENTRY(INT8, op) ENTRY(INT16, op) ENTRY(INT32, op) ENTRY(INT64, op)
#define ENTRIES_REAL(op)        ENTRIES_INTEGERS(op) ENTRY(FLOAT32, op) ENTRY(FLOAT64, op)
#define ENTRIES_BITS(op)        ENTRIES_INTEGERS(op) ENTRY(BOOL, op)
#define ENTRIES_FLOATS(op)      ENTRY(FLOAT32, op) ENTRY(FLOAT64, op)
#define ENTRIES_FLOATING(op)    ENTRY(FLOAT32, op) ENTRY(FLOAT64, op) ENTRY(COMPLEX64, op)
#define ENTRIES_NUMBERS(op)     ENTRIES_REAL(op) ENTRY(COMPLEX64, op)
#define ENTRIES_ORDERED(op)     ENTRIES_REAL(op) ENTRY(BOOL, op)
#define ENTRIES_EVERY(op)       ENTRIES_ORDERED(op) ENTRY(COMPLEX64, op)
#define SHORT_ENTRY(E, op, ...) [CPU_OP_##op] = SHORT_##op,
#define HOST_LOOP(op, set)      ENTRIES_##set(op)
#define HOST_CAST(op, set)
#define OP_ENTRIES(name, text, inputs, gives, takes, computes, keeps, host, ...)                   \
  HOST_##host(name, computes)

/* Where x, y or both are one number each (cpu_args.same), which is after its pointer once. */
#define NUMBER_OPS(X, E)                                                                           \
  X(E, ADD, x + y)                                                                                 \
  X(E, SUB, x - y)                                                                                 \
  X(E, ADD_ALPHA, x + y * (T)s->alpha.f)                                                           \
  X(E, SUB_ALPHA, x - y * (T)s->alpha.f)                                                           \
  X(E, MUL, x *y)                                                                                  \
  X(E, DIV, x / y)                                                                                 \
  X(E, MAXIMUM, LARGER(x, y))                                                                      \
  X(E, MINIMUM, LESSER(x, y))

#define NUMBER_LOOP(first, second, ...)                                                            \
  LOOP                                                                                             \
  {                                                                                                \
    T x = (first), y = (second);                                                                   \
    r[i] = (__VA_ARGS__);                                                                          \
  }
#define NUMBER_KERNEL(type, op, ...)                                                               \
  MAP_KERNEL(type##_##op##_NUMBER)                                                                 \
  {                                                                                                \
    typedef T_##type T;                                                                            \
    const T *a = in, *b = in2, one = a[0], two = b[0];                                             \
    T *r = out;                                                                                    \
    if ((s->same & 3) == 3)                                                                        \
      NUMBER_LOOP(one, two, __VA_ARGS__)                                                           \
    else if (s->same & 1)                                                                          \
      NUMBER_LOOP(one, b[i], __VA_ARGS__)                                                          \
    else                                                                                           \
      NUMBER_LOOP(a[i], two, __VA_ARGS__)                                                          \
  }
#define NUMBER_ENTRY(type, op, ...) [CPU_OP_##op] = type##_##op##_NUMBER,

#define WHERE(type)                                                                                \
  MAP_KERNEL(type##_WHERE)                                                                         \
  {                                                                                                \
    const uint8_t *c = in;                                                                         \
    const T_##type *a = in2, *b = in3;                                                             \
    T_##type *r = out;                                                                             \
    LOOP r[i] = c[i] ? a[i] : b[i];                                                                \
  }

static bool is_any_large(const float *a, int64_t n)
{
  int large = 0;
  for (int64_t i = 0; i < n; i++)
    large |= fabsf(a[i]) > 0x1p20f;
  return large;
}

static void sine(float *r, const float *a, int64_t n, uint64_t quarter)
{
  if (is_any_large(a, n))
    for (int64_t i = 0; i < n; i++)
      r[i] = (float)any_sine(a[i], quarter);
  else
    LOOP r[i] = (float)cpu_sine(a[i], quarter);
}

#define SINE(op, quarter)                                                                          \
  MAP_KERNEL(FLOAT32_##op)                                                                         \
  {                                                                                                \
    sine(out, in, n, quarter);                                                                     \
  }

MAP_KERNEL(FLOAT32_TAN)
{
  const float *a = in;
  float *r = out;
  if (is_any_large(a, n))
    for (int64_t i = 0; i < n; i++)
      r[i] = (float)any_tan(a[i]);
  else
    LOOP r[i] = (float)cpu_tan(a[i]);
}

/* Whether quotients of float32 are so small that double has each exactly enough: its distance from
 * an integer is 0 or above 2^-25. */
static bool are_small_quotients(const float *a, const float *b, int64_t n)
{
  int large = 0;
  for (int64_t i = 0; i < n; i++)
    large |= !(fabsf(a[i]) < 0x1p28f * fabsf(b[i])) | !(fabsf(b[i]) < 0x1p99f);
  return !large;
}

/* Of small quotients. floor() without the instruction for it. */
CPU_INLINE float small_floor_div(float x, float y)
{
  double q = (double)x / y, whole = (q + CPU_MAGIC) - CPU_MAGIC;
  return (float)copysign(whole - (whole > q ? 1 : 0), q);
}

CPU_INLINE double small_fmod(double x, double y)
{
  double q = fabs(x / y), whole = (q + CPU_MAGIC) - CPU_MAGIC;
  return copysign(fabs(x) - (whole - (whole > q ? 1 : 0)) * fabs(y), x);
}

CPU_INLINE float small_remainder(double x, double y)
{
  double rest = small_fmod(x, y);
  return (float)(((rest != 0) & ((y < 0) != (rest < 0))) ? rest + y : rest);
}

/* Some elements at a time: the C library's function where a quotient of them is large. */
#define QUOTIENT(op, small, any)                                                                   \
  MAP_KERNEL(FLOAT32_##op)                                                                         \
  {                                                                                                \
    for (int64_t part = 256, from = 0; from < n; from += part) {                                   \
      const float *a = (const float *)in + from, *b = (const float *)in2 + from;                   \
      float *r = (float *)out + from;                                                              \
      int64_t left = n - from < part ? n - from : part;                                            \
      if (are_small_quotients(a, b, left))                                                         \
        WEIR_IVDEP for (int64_t i = 0; i < left; i++) r[i] = (float)small(a[i], b[i]);             \
      else                                                                                         \
        for (int64_t i = 0; i < left; i++)                                                         \
          r[i] = (float)any(a[i], b[i]);                                                           \
    }                                                                                              \
  }

MAP_KERNEL(FLOAT32_POW)
{
  const float *a = in, *b = in2;
  float *r = out, exponent = s->same & 2 ? b[0] : 1;
  if (exponent == 2)
    LOOP r[i] = a[i] * a[i];
  else if (exponent == 3)
    LOOP r[i] = (float)((double)a[i] * a[i] * a[i]);
  else if (exponent == -1)
    LOOP r[i] = 1 / a[i];
  else if (exponent == -2)
    LOOP r[i] = (float)(1 / ((double)a[i] * a[i]));
  else if (exponent == 0.5F) /* of -0 it is 0, of -infinity infinity */
    LOOP r[i] = a[i] == -INFINITY ? INFINITY : (float)sqrt((double)a[i]) + 0.0F;
  else
    LOOP r[i] = (float)cpu_pow(a[i], b[i]);
}

/* Between two numbers, neither of which is NaN, most often. */
MAP_KERNEL(FLOAT32_CLAMP)
{
  const float *a = in, *b = in2, *c = in3;
  float *r = out;
  if ((s->same & 6) == 6 && b[0] == b[0] && c[0] == c[0]) {
    float low = b[0], high = c[0];
    LOOP
    {
      float x = low > a[i] ? low : a[i];
      r[i] = high < x ? high : x;
    }
  } else
    LOOP r[i] = LESSER(LARGER(a[i], b[i]), c[i]);
}

/* float16 and bfloat16 as they are. */
#define SIGN_KERNEL(type, op, expression)                                                          \
  MAP_KERNEL(type##_##op)                                                                          \
  {                                                                                                \
    const uint16_t *a = in;                                                                        \
    uint16_t *r = out;                                                                             \
    LOOP                                                                                           \
    {                                                                                              \
      uint16_t x = a[i];                                                                           \
      r[i] = (uint16_t)(expression);                                                               \
    }                                                                                              \
  }

#define ALL_KERNELS(X)                                                                             \
  INT_OPS(X, UINT8)                                                                                \
  INT_OPS(X, INT8)                                                                                 \
  INT_OPS(X, INT16)                                                                                \
  INT_OPS(X, INT32)                                                                                \
  INT_OPS(X, INT64)                                                                                \
  BOOL_OPS(X, BOOL)                                                                                \
  FLOAT_OPS(X, FLOAT32)                                                                            \
  FLOAT32_OPS(X, FLOAT32)                                                                          \
  FLOAT_OPS(X, FLOAT64)                                                                            \
  FLOAT64_OPS(X, FLOAT64)                                                                          \
  COMPLEX_OPS(X, COMPLEX64)                                                                        \
  INT_FUNCTIONS(X, UINT8)                                                                          \
  INT_FUNCTIONS(X, INT8)                                                                           \
  INT_FUNCTIONS(X, INT16)                                                                          \
  INT_FUNCTIONS(X, INT32)                                                                          \
  INT_FUNCTIONS(X, INT64)                                                                          \
  BOOL_FUNCTIONS(X, BOOL)                                                                          \
  FLOAT_FUNCTIONS(X, FLOAT32)                                                                      \
  FLOAT32_FUNCTIONS(X, FLOAT32)                                                                    \
  FLOAT_FUNCTIONS(X, FLOAT64)                                                                      \
  FLOAT64_FUNCTIONS(X, FLOAT64)                                                                    \
  COMPLEX_FUNCTIONS(X, COMPLEX64)
#define ALL_WHERE(X)                                                                               \
  X(UINT8) X(INT8) X(INT16) X(INT32) X(INT64) X(BOOL) X(FLOAT32) X(FLOAT64) X(COMPLEX64)

ALL_KERNELS(KERNEL)
ALL_WHERE(WHERE)
NUMBER_OPS(NUMBER_KERNEL, FLOAT32)
SINE(SIN, 0)
SINE(COS, 1)
QUOTIENT(FLOOR_DIV, small_floor_div, float_floor_div)
QUOTIENT(REMAINDER, small_remainder, float_remainder)
QUOTIENT(FMOD, small_fmod, fmodf)
SIGN_KERNEL(FLOAT16, NEG, x ^ 0x8000)
SIGN_KERNEL(FLOAT16, ABS, x & 0x7fff)
#define BFLOAT16_NEG FLOAT16_NEG
#define BFLOAT16_ABS FLOAT16_ABS

/* ---- conversions ------------------------------------------------------------------------------
 * Floating point to integers cuts towards zero; the int64 that gives is wrapped to what is shorter.
 * What is no int64 (NaN too) is the most negative one. Complex numbers give their real part. */

#define GET_UINT8(v)     (v)
#define GET_INT8(v)      (v)
#define GET_INT16(v)     (v)
#define GET_INT32(v)     (v)
#define GET_INT64(v)     (v)
#define GET_BOOL(v)      (v)
#define GET_FLOAT32(v)   (v)
#define GET_FLOAT64(v)   (v)
#define GET_COMPLEX64(v) (v)
#define GET_FLOAT16(v)   float16_to_float(v)
#define GET_BFLOAT16(v)  bfloat16_to_float(v)

#define REAL_OF(v) _Generic((v), complex64 : crealf(v), default : (v))
#define WHOLE_OF(v)                                                                                \
  _Generic((v), complex64                                                                          \
           : double_to_int64(crealf(v)), float                                                     \
           : double_to_int64(v), double                                                            \
           : double_to_int64(v), default                                                           \
           : (v))
#define PUT_UINT8(v)     (uint8_t) WHOLE_OF(v)
#define PUT_INT8(v)      (int8_t) WHOLE_OF(v)
#define PUT_INT16(v)     (int16_t) WHOLE_OF(v)
#define PUT_INT32(v)     (int32_t) WHOLE_OF(v)
#define PUT_INT64(v)     (int64_t) WHOLE_OF(v)
#define PUT_BOOL(v)      ((v) != 0)
#define PUT_FLOAT32(v)   (float)REAL_OF(v)
#define PUT_FLOAT64(v)   (double)REAL_OF(v)
#define PUT_COMPLEX64(v) (complex64)(v)
#define PUT_FLOAT16(v)   float_to_float16((float)REAL_OF(v))
#define PUT_BFLOAT16(v)  float_to_bfloat16((float)REAL_OF(v))

#define CAST(to, from)                                                                             \
  static void from##_to_##to(void *out, const void *in, int64_t n)                                 \
  {                                                                                                \
    const T_##from *a = in;                                                                        \
    T_##to *r = out;                                                                               \
    LOOP r[i] = PUT_##to(GET_##from(a[i]));                                                        \
  }
#define CAST_ENTRY(to, from) [WEIR_##to][WEIR_##from] = from##_to_##to,
#define CASTS_TO(X, to)                                                                            \
  X(to, UINT8)                                                                                     \
  X(to, INT8)                                                                                      \
  X(to, INT16)                                                                                     \
  X(to, INT32)                                                                                     \
  X(to, INT64)                                                                                     \
  X(to, BOOL)                                                                                      \
  X(to, FLOAT16)                                                                                   \
  X(to, BFLOAT16)                                                                                  \
  X(to, FLOAT32)                                                                                   \
  X(to, FLOAT64)                                                                                   \
  X(to, COMPLEX64)
#define CAST_ROW(to, ...)         CASTS_TO(CAST, to)
#define CAST_ENTRIES_ROW(to, ...) CASTS_TO(CAST_ENTRY, to)

WEIR_DTYPE_MAP(CAST_ROW)

#ifdef __F16C__
/* By the processor's instructions; NaN as half.h has it. */
#ifdef __AVX512BW__
enum { HALVES_AT_ONCE = 16 };

CPU_INLINE void widen_some(float *r, const uint16_t *a)
{
  _mm512_storeu_ps(r, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)a)));
}

CPU_INLINE void narrow_some(uint16_t *r, const float *a)
{
  __m512 x = _mm512_loadu_ps(a);
  __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  __m512i sign = _mm512_set1_epi32((int)0xff800000), quiet = _mm512_set1_epi32(0x00400000);
  /* of NaN the sign: x & sign | quiet */
  __m512i bits = _mm512_castps_si512(x);
  bits = _mm512_mask_ternarylogic_epi32(bits, nan, sign, quiet, 0xea);
  __m256i half = _mm512_cvtps_ph(_mm512_castsi512_ps(bits), _MM_FROUND_TO_NEAREST_INT);
  _mm256_storeu_si256((__m256i *)(void *)r, half);
}
#else
enum { HALVES_AT_ONCE = 8 };

CPU_INLINE void widen_some(float *r, const uint16_t *a)
{
  _mm256_storeu_ps(r, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)a)));
}

CPU_INLINE void narrow_some(uint16_t *r, const float *a)
{
  __m256 x = _mm256_loadu_ps(a), nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
  __m256 sign = _mm256_castsi256_ps(_mm256_set1_epi32((int)0xff800000));
  __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x00400000));
  x = _mm256_blendv_ps(x, _mm256_or_ps(_mm256_and_ps(x, sign), quiet), nan);
  __m128i half = _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  _mm_storeu_si128((__m128i *)(void *)r, half);
}
#endif

static void widen_halves(void *out, const void *in, int64_t n)
{
  const uint16_t *a = in;
  float *r = out;
  int64_t i = 0;
  for (; i + HALVES_AT_ONCE <= n; i += HALVES_AT_ONCE)
    widen_some(r + i, a + i);
  FLOAT16_to_FLOAT32(r + i, a + i, n - i);
}

static void narrow_halves(void *out, const void *in, int64_t n)
{
  const float *a = in;
  uint16_t *r = out;
  int64_t i = 0;
  for (; i + HALVES_AT_ONCE <= n; i += HALVES_AT_ONCE)
    narrow_some(r + i, a + i);
  FLOAT32_to_FLOAT16(r + i, a + i, n - i);
}
#define FLOAT16_to_FLOAT32 widen_halves
#define FLOAT32_to_FLOAT16 narrow_halves
#endif

#include "core/backend/cpu/half.h"

/* ---- folds -------------------------------------------------------------------------------------
 * Real sums are compensated (Moller, Knuth): what an addition loses is exact and summed separately,
 * so the error does not grow with the count. LANES sums go side by side. */

enum { LANES = 16 };

CPU_INLINE void add_exactly(double *sum, double *lost, double x)
{
  double t = *sum + x, part = t - *sum;
  *lost += (*sum - (t - part)) + (x - part);
  *sum = t;
}

/* Takes n elements of `in`, the first of which is number `first`, into s. */
#define FOLD_KERNEL(name)                                                                          \
  static void name(cpu_sum *s, const void *in, int64_t n, int64_t first UNUSED)

/* The sum of an expression in each element, v. */
#define REAL_SUM_OF(name, ...)                                                                     \
  FOLD_KERNEL(name)                                                                                \
  {                                                                                                \
    const double *x = in;                                                                          \
    double sum[LANES] = {0}, lost[LANES] = {0};                                                    \
    int64_t i = 0;                                                                                 \
    for (; i + LANES <= n; i += LANES)                                                             \
      for (int k = 0; k < LANES; k++) {                                                            \
        double v = x[i + k];                                                                       \
        add_exactly(&sum[k], &lost[k], (__VA_ARGS__));                                             \
      }                                                                                            \
    for (; i < n; i++) {                                                                           \
      double v = x[i];                                                                             \
      add_exactly(&s->f[0], &s->c[0], (__VA_ARGS__));                                              \
    }                                                                                              \
    for (int k = 0; k < LANES && n >= LANES; k++) {                                                \
      add_exactly(&s->f[0], &s->c[0], sum[k]);                                                     \
      s->c[0] += lost[k];                                                                          \
    }                                                                                              \
  }

REAL_SUM_OF(real_sum, v)
REAL_SUM_OF(real_nansum, v == v ? v : 0)
REAL_SUM_OF(real_norm_0, v != 0 ? 1 : 0)
REAL_SUM_OF(real_norm_1, fabs(v))
REAL_SUM_OF(real_norm_2, v *v)
REAL_SUM_OF(real_norm_p, pow(fabs(v), s->p))

FOLD_KERNEL(real_norm)
{
  cpu_fold fold = s->p == 2   ? real_norm_2
                  : s->p == 1 ? real_norm_1
                  : s->p == 0 ? real_norm_0
                              : real_norm_p;
  fold(s, in, n, first);
}

/* f[0], f[1]: the sums of v and v v, where v is an element less p. */
FOLD_KERNEL(real_var)
{
  const double *x = in;
  double sum[2][LANES] = {{0}}, lost[2][LANES] = {{0}};
  for (int64_t i = 0; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++) {
      double v = x[i + k] - s->p;
      add_exactly(&sum[0][k], &lost[0][k], v);
      add_exactly(&sum[1][k], &lost[1][k], v * v);
    }
  for (int64_t i = n / LANES * LANES; i < n; i++) {
    double v = x[i] - s->p;
    add_exactly(&s->f[0], &s->c[0], v);
    add_exactly(&s->f[1], &s->c[1], v * v);
  }
  for (int k = 0; k < LANES && n >= LANES; k++)
    for (int j = 0; j < 2; j++) {
      add_exactly(&s->f[j], &s->c[j], sum[j][k]);
      s->c[j] += lost[j][k];
    }
}

static void add_sum_row(double *sum, double *lost, const double *x, int64_t n)
{
  LOOP add_exactly(&sum[i], &lost[i], x[i]);
}

FOLD_KERNEL(complex_sum)
{
  const float *x = in;
  for (int64_t i = 0; i < n; i++)
    for (int k = 0; k < 2; k++)
      add_exactly(&s->f[k], &s->c[k], x[2 * i + k]);
}

FOLD_KERNEL(int_sum)
{
  const uint64_t *x = in;
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += x[i];
  s->i = (int64_t)((uint64_t)s->i + sum);
}

#define int_nansum int_sum /* no integer is NaN */

FOLD_KERNEL(real_prod)
{
  const double *x = in;
  double p[LANES];
  int64_t i = 0;
  for (int k = 0; k < LANES; k++)
    p[k] = 1;
  for (; i + LANES <= n; i += LANES)
    for (int k = 0; k < LANES; k++)
      p[k] *= x[i + k];
  for (; i < n; i++)
    s->f[0] *= x[i];
  for (int k = 0; k < LANES; k++)
    s->f[0] *= p[k];
}

FOLD_KERNEL(complex_prod)
{
  const complex64 *x = in;
  complex128 p = CMPLX(s->f[0], s->f[1]);
  for (int64_t i = 0; i < n; i++)
    p = complex_multiply(p, x[i]);
  s->f[0] = creal(p), s->f[1] = cimag(p);
}

FOLD_KERNEL(int_prod)
{
  const uint64_t *x = in;
  uint64_t p = (uint64_t)s->i;
  for (int64_t i = 0; i < n; i++)
    p *= x[i];
  s->i = (int64_t)p;
}

/* Extremes: the block's, then, where it is better than what there was, its first place. NaN is
 * better than all. */
#define EXTREME(name, T, field, better)                                                            \
  FOLD_KERNEL(name)                                                                                \
  {                                                                                                \
    enum { LANES = 128 / sizeof(T) };                                                              \
    const T *x = in;                                                                               \
    T best[LANES];                                                                                 \
    int64_t i = 0, at = 0;                                                                         \
    for (int k = 0; k < LANES; k++)                                                                \
      best[k] = x[k < n ? k : 0];                                                                  \
    for (; i + LANES <= n; i += LANES)                                                             \
      for (int k = 0; k < LANES; k++)                                                              \
        best[k] = ((x[i + k] better best[k]) | (x[i + k] != x[i + k])) ? x[i + k] : best[k];       \
    T e = best[0];                                                                                 \
    for (int k = 1; k < LANES; k++)                                                                \
      e = ((best[k] better e) | (best[k] != best[k])) ? best[k] : e;                               \
    for (; i < n; i++)                                                                             \
      e = ((x[i] better e) | (x[i] != x[i])) ? x[i] : e;                                           \
    if (s->at >= 0 && !(e better s->field) && !(e != e && s->field == s->field)) return;           \
    while (x[at] != e && !(e != e && x[at] != x[at]))                                              \
      at++;                                                                                        \
    s->field = e;                                                                                  \
    s->at = first + at;                                                                            \
  }

EXTREME(real_max, double, f[0], >)
EXTREME(real_min, double, f[0], <)
EXTREME(int_max, int64_t, i, >)
EXTREME(int_min, int64_t, i, <)

FOLD_KERNEL(int_all)
{
  const int64_t *x = in;
  int64_t none = 0;
  for (int64_t i = 0; i < n; i++)
    none |= x[i] == 0;
  s->i &= !none;
}

FOLD_KERNEL(int_any)
{
  const int64_t *x = in;
  int64_t some = 0;
  for (int64_t i = 0; i < n; i++)
    some |= x[i] != 0;
  s->i |= some;
}

/* ---- folds of float32 --------------------------------------------------------------------------
 * Of what fits into float32 double holds every sum of a block but for a part of its last place that
 * float32 never sees: NARROW_LANES sums go side by side without what they lose, and are added
 * exactly to those of other blocks. */

enum { NARROW_LANES = 32 };

#define NARROW_SUM_OF(name, ...)                                                                   \
  FOLD_KERNEL(name)                                                                                \
  {                                                                                                \
    const float *x = in;                                                                           \
    double sum[NARROW_LANES] = {0}, rest = 0;                                                      \
    int64_t i = 0;                                                                                 \
    for (; i + NARROW_LANES <= n; i += NARROW_LANES)                                               \
      for (int k = 0; k < NARROW_LANES; k++) {                                                     \
        double v = (double)x[i + k];                                                               \
        sum[k] += (__VA_ARGS__);                                                                   \
      }                                                                                            \
    for (; i < n; i++) {                                                                           \
      double v = (double)x[i];                                                                     \
      rest += (__VA_ARGS__);                                                                       \
    }                                                                                              \
    for (int half = NARROW_LANES / 2; half; half /= 2)                                             \
      for (int k = 0; k < half; k++)                                                               \
        sum[k] += sum[k + half];                                                                   \
    add_exactly(&s->f[0], &s->c[0], sum[0] + rest);                                                \
  }

/* Four neighbours of a lane are added in float32 first: what that rounds is at most 2 units of the
 * last place of their sum. */
CPU_INLINE void add_four_lanes(double sum[NARROW_LANES / 2], const float *x)
{
  enum { L = NARROW_LANES / 2 };
  for (int k = 0; k < L; k++)
    sum[k] += (double)((x[k] + x[L + k]) + (x[2 * L + k] + x[3 * L + k]));
}

/* Of 16 sums the one; in this order whatever the level. */
CPU_INLINE double sum_of_lanes(const double sum[NARROW_LANES / 2])
{
  double four[4];
  for (int k = 0; k < 4; k++)
    four[k] = (sum[k] + sum[k + 8]) + (sum[k + 4] + sum[k + 12]);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

FOLD_KERNEL(narrow_sum)
{
  enum { L = NARROW_LANES / 2 };
  const float *x = in;
  double sum[L] = {0}, rest = 0;
  int64_t i = 0;
  for (; i + 4 * L <= n; i += 4 * L)
    add_four_lanes(sum, x + i);
  for (; i + L <= n; i += L)
    for (int k = 0; k < L; k++)
      sum[k] += (double)x[i + k];
  for (; i < n; i++)
    rest += (double)x[i];
  add_exactly(&s->f[0], &s->c[0], sum_of_lanes(sum) + rest);
}

/* n sums and four rows. */
static void add_four_rows(double *sum, const float *const x[4], int64_t n)
{
  const float *a = x[0], *b = x[1], *c = x[2], *d = x[3];
  LOOP sum[i] += (double)((a[i] + b[i]) + (c[i] + d[i]));
}

static void add_narrow_row(double *sum, const float *x, int64_t n)
{
  LOOP sum[i] += (double)x[i];
}

/* What n elements of each of `rows` rows, four at most, are more than p[i], and its squares. */
static void add_rows_off(double *sum, double *squares, const double *p, const float *const x[4],
                         int rows, int64_t n)
{
  const float *a = x[0], *b = x[1], *c = x[2], *d = x[3];
  for (int k = 0; k < rows && rows < 4; k++) {
    const float *row = x[k];
    LOOP
    {
      double off = (double)row[i] - p[i];
      sum[i] += off;
      squares[i] += off * off;
    }
  }
  if (rows < 4) return;
  LOOP
  {
    double e = (double)a[i] - p[i], f = (double)b[i] - p[i], g = (double)c[i] - p[i],
           h = (double)d[i] - p[i];
    sum[i] += (e + f) + (g + h);
    squares[i] += (e * e + f * f) + (g * g + h * h);
  }
}

/* float16 and bfloat16 as they are, eight of a lane added in float32 first: what that rounds is far
 * below their last place. */
#define HALF_SUMS(type, widened)                                                                   \
  CPU_INLINE void add_eight_##type(double sum[HALVES], const uint16_t *const x[8], int64_t from)   \
  {                                                                                                \
    float v[8][HALVES];                                                                            \
    for (int k = 0; k < 8; k++)                                                                    \
      widen_##type(v[k], x[k] + from);                                                             \
    for (int k = 0; k < HALVES; k++)                                                               \
      sum[k] += (double)(((v[0][k] + v[1][k]) + (v[2][k] + v[3][k])) +                             \
                         ((v[4][k] + v[5][k]) + (v[6][k] + v[7][k])));                             \
  }                                                                                                \
                                                                                                   \
  FOLD_KERNEL(type##_sum)                                                                          \
  {                                                                                                \
    const uint16_t *x = in, *at[8];                                                                \
    double sum[HALVES] = {0};                                                                      \
    uint16_t last[2][HALVES] = {{0}};                                                              \
    int64_t i = 0;                                                                                 \
    for (int k = 0; k < 8; k++)                                                                    \
      at[k] = x + k * HALVES;                                                                      \
    for (; i + 8 * HALVES <= n; i += 8 * HALVES)                                                   \
      add_eight_##type(sum, at, i);                                                                \
    int64_t left = n - i, part = left % HALVES;                                                    \
    memcpy(last[0], x + n - part, (size_t)part * sizeof *x);                                       \
    for (int k = 0; k < 8; k++)                                                                    \
      at[k] = k < left / HALVES ? x + i + k * HALVES : last[k > left / HALVES];                    \
    if (left) add_eight_##type(sum, at, 0);                                                        \
    for (int half = HALVES / 2; half; half /= 2)                                                   \
      for (int k = 0; k < half; k++)                                                               \
        sum[k] += sum[k + half];                                                                   \
    add_exactly(&s->f[0], &s->c[0], sum[0]);                                                       \
  }                                                                                                \
                                                                                                   \
  /* n sums and eight rows. */                                                                     \
  static void type##_rows(double *sum, const uint16_t *const x[8], int64_t n)                      \
  {                                                                                                \
    int64_t i = 0;                                                                                 \
    for (; i + HALVES <= n; i += HALVES)                                                           \
      add_eight_##type(sum + i, x, i);                                                             \
    for (; i < n; i++) {                                                                           \
      float v[8];                                                                                  \
      for (int k = 0; k < 8; k++)                                                                  \
        v[k] = widened(x[k][i]);                                                                   \
      sum[i] += (double)(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])));       \
    }                                                                                              \
  }
HALF_SUMS(FLOAT16, float16_to_float)
HALF_SUMS(BFLOAT16, bfloat16_to_float)

/* best[i], or x[i] where that is better. */
static void best_of_rows(float *best, const float *x, int64_t n, bool least)
{
  if (least)
    LOOP best[i] = ((x[i] < best[i]) | (x[i] != x[i])) ? x[i] : best[i];
  else
    LOOP best[i] = ((x[i] > best[i]) | (x[i] != x[i])) ? x[i] : best[i];
}

FOLD_KERNEL(narrow_prod)
{
  const float *x = in;
  double p[NARROW_LANES];
  int64_t i = 0;
  for (int k = 0; k < NARROW_LANES; k++)
    p[k] = 1;
  for (; i + NARROW_LANES <= n; i += NARROW_LANES)
    for (int k = 0; k < NARROW_LANES; k++)
      p[k] *= (double)x[i + k];
  for (; i < n; i++)
    s->f[0] *= (double)x[i];
  for (int half = NARROW_LANES / 2; half; half /= 2)
    for (int k = 0; k < half; k++)
      p[k] *= p[k + half];
  s->f[0] *= p[0];
}

NARROW_SUM_OF(narrow_nansum, v == v ? v : 0)
NARROW_SUM_OF(narrow_norm_0, v != 0 ? 1 : 0)
NARROW_SUM_OF(narrow_norm_1, fabs(v))
NARROW_SUM_OF(narrow_norm_2, v *v)
NARROW_SUM_OF(narrow_norm_p, pow(fabs(v), s->p))
NARROW_SUM_OF(narrow_more, v - s->p)
NARROW_SUM_OF(narrow_squares, (v - s->p) * (v - s->p))

FOLD_KERNEL(narrow_norm)
{
  cpu_fold fold = s->p == 2   ? narrow_norm_2
                  : s->p == 1 ? narrow_norm_1
                  : s->p == 0 ? narrow_norm_0
                              : narrow_norm_p;
  fold(s, in, n, first);
}

FOLD_KERNEL(narrow_var)
{
  cpu_sum squares = {.f = {s->f[1]}, .c = {s->c[1]}, .p = s->p};
  narrow_more(s, in, n, first);
  narrow_squares(&squares, in, n, first);
  s->f[1] = squares.f[0];
  s->c[1] = squares.c[0];
}

EXTREME(careful_max, float, f[0], >)
EXTREME(careful_min, float, f[0], <)

/* Whether one of n elements, a number known where this is expanded, is e. */
CPU_INLINE bool has_float(const float *x, int n, float e)
{
  int32_t found = 0;
  for (int k = 0; k < n; k++)
    found |= -(int32_t)(x[k] == e);
  return found;
}

/* Of a block without NaN, which is looked for separately. The last elements may be taken twice. */
#define NARROW_EXTREME(name, careful, better)                                                      \
  FOLD_KERNEL(name)                                                                                \
  {                                                                                                \
    enum { L = 32 };                                                                               \
    const float *x = in;                                                                           \
    float best[L], e;                                                                              \
    int32_t nan[L] = {0}, any = 0;                                                                 \
    int64_t i = 0, at = 0;                                                                         \
    for (int k = 0; k < L; k++)                                                                    \
      best[k] = x[0];                                                                              \
    for (; i < n && n >= 2 * L; i += 2 * L) {                                                      \
      if (i > n - 2 * L) i = n - 2 * L;                                                            \
      for (int k = 0; k < L; k++) {                                                                \
        float a = x[i + k], b = x[i + L + k];                                                      \
        nan[k] |= -(int32_t)__builtin_isunordered(a, b);                                           \
        a = a better b ? a : b;                                                                    \
        best[k] = a better best[k] ? a : best[k];                                                  \
      }                                                                                            \
    }                                                                                              \
    for (; i < n; i++) {                                                                           \
      any |= x[i] != x[i];                                                                         \
      best[0] = x[i] better best[0] ? x[i] : best[0];                                              \
    }                                                                                              \
    e = best[0];                                                                                   \
    for (int k = 0; k < L; k++) {                                                                  \
      any |= nan[k];                                                                               \
      e = best[k] better e ? best[k] : e;                                                          \
    }                                                                                              \
    if (any || e != e) {                                                                           \
      careful(s, in, n, first);                                                                    \
      return;                                                                                      \
    }                                                                                              \
    if (s->at >= 0 && !(e better s->f[0])) return;                                                 \
    while (!s->anywhere && at + 2 * L <= n && !has_float(x + at, 2 * L, e))                        \
      at += 2 * L;                                                                                 \
    while (!s->anywhere && x[at] != e)                                                             \
      at++;                                                                                        \
    s->f[0] = e;                                                                                   \
    s->at = first + at;                                                                            \
  }
NARROW_EXTREME(narrow_max, careful_max, >)
NARROW_EXTREME(narrow_min, careful_min, <)

#define REPEAT(T)                                                                                  \
  static void repeat_##T(T *to, const T *element, int64_t n)                                       \
  {                                                                                                \
    T e = element[0];                                                                              \
    LOOP to[i] = e;                                                                                \
  }
REPEAT(uint8_t)
REPEAT(uint16_t)
REPEAT(uint32_t)
REPEAT(uint64_t)

static void repeat_element(void *to, const void *element, size_t bytes, int64_t n)
{
  if (bytes == 1)
    repeat_uint8_t(to, element, n);
  else if (bytes == 2)
    repeat_uint16_t(to, element, n);
  else if (bytes == 4)
    repeat_uint32_t(to, element, n);
  else
    repeat_uint64_t(to, element, n);
}

/* ---- random numbers -------------------------------------------------------------------------- */

enum { PAIRS = CPU_BLOCK / 2 };

/* The words of `blocks` blocks, each where its number needs it. */
static void random_words(uint32_t words[4][PAIRS], uint64_t seed, uint64_t first, int64_t blocks)
{
  for (int64_t i = 0; i < blocks; i++) {
    philox_block b = philox(seed, first + (uint64_t)i);
    words[0][i] = b.word[0];
    words[1][i] = b.word[1];
    words[2][i] = b.word[2];
    words[3][i] = b.word[3];
  }
}

/* One of the two numbers of each block; kind and dtype are known where this is expanded. */
CPU_INLINE void random_numbers(double *out, const weir_random *r, weir_random_kind kind,
                               weir_dtype dtype, const uint32_t *w0, const uint32_t *w1, int64_t n)
{
  double a = r->a, b = r->b;
  LOOP out[i] = philox_number(kind, dtype, a, b, w0[i], w1[i]);
}

#define RANDOM_OF(kind, dtype)                                                                     \
  static void random_##kind##_##dtype(double *out, const weir_random *r, const uint32_t *w0,       \
                                      const uint32_t *w1, int64_t n)                               \
  {                                                                                                \
    random_numbers(out, r, WEIR_RANDOM_##kind, WEIR_##dtype, w0, w1, n);                           \
  }
RANDOM_OF(UNIFORM, FLOAT32)
RANDOM_OF(UNIFORM, FLOAT16)
RANDOM_OF(UNIFORM, BFLOAT16)
RANDOM_OF(UNIFORM, FLOAT64)
RANDOM_OF(NORMAL, FLOAT32)
RANDOM_OF(NORMAL, FLOAT16)
RANDOM_OF(NORMAL, BFLOAT16)
RANDOM_OF(NORMAL, FLOAT64)
RANDOM_OF(INTEGER, FLOAT64)
RANDOM_OF(BERNOULLI, FLOAT64)

typedef void (*random_loop)(double *out, const weir_random *r, const uint32_t *w0,
                            const uint32_t *w1, int64_t n);

static random_loop random_loop_of(const weir_random *r)
{
  bool normal = r->kind == WEIR_RANDOM_NORMAL;
  if (r->kind == WEIR_RANDOM_INTEGER) return random_INTEGER_FLOAT64;
  if (r->kind == WEIR_RANDOM_BERNOULLI) return random_BERNOULLI_FLOAT64;
  switch (r->dtype) {
  case WEIR_FLOAT32:
    return normal ? random_NORMAL_FLOAT32 : random_UNIFORM_FLOAT32;
  case WEIR_FLOAT16:
    return normal ? random_NORMAL_FLOAT16 : random_UNIFORM_FLOAT16;
  case WEIR_BFLOAT16:
    return normal ? random_NORMAL_BFLOAT16 : random_UNIFORM_BFLOAT16;
  default:
    return normal ? random_NORMAL_FLOAT64 : random_UNIFORM_FLOAT64;
  }
}

/* At most a block of elements. */
static void random_block(double *out, const weir_random *r, int64_t from, int64_t n)
{
  uint32_t words[4][PAIRS] = {{0}};
  double even[PAIRS], odd[PAIRS];
  int64_t blocks = (n + 1) / 2;
  random_loop loop = random_loop_of(r);
  random_words(words, r->seed, r->offset + (uint64_t)from / 2, blocks);
  loop(even, r, words[0], words[1], blocks);
  loop(odd, r, words[2], words[3], blocks);
  for (int64_t i = 0; i < n; i++)
    out[i] = i % 2 ? odd[i / 2] : even[i / 2];
}

/* ---- the table ------------------------------------------------------------------------------- */

/* The folds of a row of WEIR_REDUCE_OPS: of int64, double and complex64. */
#define FOLDS_EVERY(fold)    int_##fold, real_##fold, complex_##fold
#define FOLDS_FLOATING(fold) NULL, real_##fold, complex_##fold
#define FOLDS_ORDERED(fold)  int_##fold, real_##fold, NULL
#define FOLDS_TRUTH(fold)    int_##fold, NULL, NULL
#define FOLDS_FLOATS(fold)   NULL, real_##fold, NULL
#define FOLD_ENTRY(name, text, gives, computes, order, empty, host, ...)                           \
  [WEIR_REDUCE_##name] = {FOLDS_##computes(host)},

/* Its fold of float32; NULL: it is of double alone. */
#define NARROW_sum    narrow_sum
#define NARROW_nansum narrow_nansum
#define NARROW_norm   narrow_norm
#define NARROW_var    narrow_var
#define NARROW_max    narrow_max
#define NARROW_min    narrow_min
#define NARROW_prod   narrow_prod
#define NARROW_all    NULL
#define NARROW_any    NULL
#define NARROW_ENTRY(name, text, gives, computes, order, empty, host, ...)                         \
  [WEIR_REDUCE_##name] = NARROW_##host,

const cpu_level CPU_LEVEL = {
    .op = {WEIR_OPS(OP_ENTRIES) ENTRIES_EVERY(ADD_ALPHA) ENTRIES_EVERY(SUB_ALPHA)
               ENTRY(FLOAT16, NEG) ENTRY(FLOAT16, ABS) ENTRY(BFLOAT16, NEG) ENTRY(BFLOAT16, ABS)
                   HALF_ENTRIES(FLOAT16) HALF_ENTRIES(BFLOAT16)},
    .short_op = {SHORT_OPS(SHORT_ENTRY, 0) SHORT_ENTRY(0, SIN, T) SHORT_ENTRY(0, COS, T)},
    .number_op = {NUMBER_OPS(NUMBER_ENTRY, FLOAT32)},
    .cast = {WEIR_DTYPE_MAP(CAST_ENTRIES_ROW)},
    .fold = {WEIR_REDUCE_OPS(FOLD_ENTRY)},
    .narrow_fold = {WEIR_REDUCE_OPS(NARROW_ENTRY)},
    .repeat = repeat_element,
    .add_row = add_sum_row,
    .add_narrow_row = add_narrow_row,
    .add_four_rows = add_four_rows,
    .add_rows_off = add_rows_off,
    .half_sum = {FLOAT16_sum, BFLOAT16_sum},
    .add_half_rows = {FLOAT16_rows, BFLOAT16_rows},
    .best_of_rows = best_of_rows,
    .random = random_block};
