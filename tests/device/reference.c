/* reference.c: elements and operations, plainly. */
#include "tests/device/reference.h"

#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/base/compiler.h"

typedef long double real;

static const struct format {
  int bytes, digits, least, most; /* exponents of the smallest and largest normal number */
  int bits;                       /* of an integer; negative: signed */
} formats[WEIR_DTYPES] = {
    [WEIR_UINT8] = {.bytes = 1, .bits = 8},   [WEIR_INT8] = {.bytes = 1, .bits = -8},
    [WEIR_INT16] = {.bytes = 2, .bits = -16}, [WEIR_INT32] = {.bytes = 4, .bits = -32},
    [WEIR_INT64] = {.bytes = 8, .bits = -64}, [WEIR_BOOL] = {.bytes = 1, .bits = 1},
    [WEIR_FLOAT16] = {2, 11, -14, 15, 0},     [WEIR_BFLOAT16] = {2, 8, -126, 127, 0},
    [WEIR_FLOAT32] = {4, 24, -126, 127, 0},   [WEIR_COMPLEX64] = {8, 24, -126, 127, 0},
    [WEIR_FLOAT64] = {8, 53, -1022, 1023, 0}};

bool ref_is_int(weir_dtype dtype)
{
  return formats[dtype].bits != 0;
}

bool ref_is_real(weir_dtype dtype)
{
  return !ref_is_int(dtype) && dtype != WEIR_COMPLEX64;
}

size_t ref_bytes(weir_dtype dtype)
{
  return (size_t)formats[dtype].bytes;
}

static int last_place(real x, weir_dtype dtype)
{
  int e;
  (void)frexpl(x, &e);
  int place = e - formats[dtype].digits, least = formats[dtype].least - formats[dtype].digits + 1;
  return x == 0 || place < least ? least : place;
}

real ref_ulp(real x, weir_dtype dtype)
{
  return ldexpl(1, last_place(x, dtype));
}

real ref_round(real x, weir_dtype dtype)
{
  if (!isfinite(x) || x == 0) return x;
  if (dtype == WEIR_FLOAT64) return (double)x; /* the compiler's conversions round once */
  if (formats[dtype].bytes == 4 || dtype == WEIR_COMPLEX64) return (float)x;
  int place = last_place(x, dtype);
  real y = ldexpl(rintl(ldexpl(x, -place)), place);
  return fabsl(y) >= ldexpl(1, formats[dtype].most + 1) ? copysignl(INFINITY, x) : y;
}

static element whole_number(int64_t i)
{
  return (element){.i = i, .re = (real)i};
}

static int64_t wrap_integer(int64_t i, weir_dtype dtype)
{
  switch (formats[dtype].bits) {
  case 1:
    return i != 0;
  case 8:
    return (uint8_t)i;
  case -8:
    return (int8_t)(uint8_t)i;
  case -16:
    return (int16_t)(uint16_t)i;
  case -32:
    return (int32_t)(uint32_t)i;
  default:
    return i;
  }
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* float16 and bfloat16: sign, exponent, fraction. */
static real decode(uint16_t u, const struct format *f)
{
  int fraction_bits = f->digits - 1, e = (u & 0x7fff) >> fraction_bits;
  int all = (0x8000 >> fraction_bits) - 1, fraction = u & ((1 << fraction_bits) - 1);
  real x = e == all ? (fraction ? (real)NAN : (real)INFINITY)
           : e      ? ldexpl((1 << fraction_bits) + fraction, e - 1 + f->least - fraction_bits)
                    : ldexpl(fraction, f->least - fraction_bits);
  return u & 0x8000 ? -x : x;
}

static uint16_t encode(real x, const struct format *f)
{
  int fraction_bits = f->digits - 1, e;
  uint16_t sign = signbit(x) ? 0x8000 : 0, all = (uint16_t)(0x8000 - (1 << fraction_bits));
  x = fabsl(x);
  if (isnan(x)) return (uint16_t)(sign | all | 1 << (fraction_bits - 1));
  if (isinf(x)) return sign | all;
  (void)frexpl(x, &e);
  e = x == 0 || e - 1 < f->least ? f->least : e - 1;
  int scaled = (int)ldexpl(x, fraction_bits - e); /* the leading bit adds one to the exponent */
  return (uint16_t)(sign | (((e - f->least) << fraction_bits) + scaled));
}

element ref_load(weir_dtype dtype, const void *at)
{
  uint8_t u8;
  uint16_t u16;
  int32_t i32;
  int64_t i64;
  float f[2];
  double d;
  switch (dtype) {
  case WEIR_UINT8:
  case WEIR_INT8:
  case WEIR_BOOL:
    memcpy(&u8, at, 1);
    return whole_number(dtype == WEIR_BOOL ? u8 : wrap_integer(u8, dtype));
  case WEIR_INT16:
    memcpy(&u16, at, 2);
    return whole_number(wrap_integer(u16, dtype));
  case WEIR_INT32:
    memcpy(&i32, at, 4);
    return whole_number(i32);
  case WEIR_INT64:
    memcpy(&i64, at, 8);
    return whole_number(i64);
  case WEIR_FLOAT16:
  case WEIR_BFLOAT16:
    memcpy(&u16, at, 2);
    return (element){.re = decode(u16, &formats[dtype])};
  case WEIR_FLOAT32:
    memcpy(f, at, 4);
    return (element){.re = f[0]};
  case WEIR_COMPLEX64:
    memcpy(f, at, 8);
    return (element){.re = f[0], .im = f[1]};
  default:
    memcpy(&d, at, 8);
    return (element){.re = d};
  }
}

void ref_store(weir_dtype dtype, void *at, element e)
{
  uint16_t half;
  float f[2] = {(float)e.re, (float)e.im};
  double d = (double)e.re;
  switch (dtype) {
  case WEIR_FLOAT16:
  case WEIR_BFLOAT16:
    half = encode(e.re, &formats[dtype]);
    memcpy(at, &half, 2);
    break;
  case WEIR_FLOAT32:
  case WEIR_COMPLEX64:
    memcpy(at, f, ref_bytes(dtype));
    break;
  case WEIR_FLOAT64:
    memcpy(at, &d, 8);
    break;
  default:
    memcpy(at, &e.i, ref_bytes(dtype)); /* little endian */
  }
}

element ref_number(const weir_number *n)
{
  if (n->dtype == WEIR_BOOL || n->dtype == WEIR_INT64) return whole_number(n->i);
  return (element){.re = n->f, .im = n->dtype == WEIR_COMPLEX64 ? n->imag : 0};
}

element ref_convert(element e, weir_dtype from, weir_dtype to)
{
  if (from == to) return e;
  bool nonzero = ref_is_int(from) ? e.i != 0 : e.re != 0 || e.im != 0;
  if (to == WEIR_BOOL) return whole_number(nonzero);
  if (ref_is_int(to)) {
    if (ref_is_int(from)) return whole_number(wrap_integer(e.i, to));
    bool fits = e.re > -0x1p63L && e.re < 0x1p63L;
    return whole_number(wrap_integer(fits ? (int64_t)e.re : INT64_MIN, to));
  }
  real x = to == WEIR_FLOAT64 ? e.re : ref_round(e.re, WEIR_FLOAT32); /* on the way to all others */
  element r = {.re = ref_round(x, to)};
  if (to == WEIR_COMPLEX64 && from == WEIR_COMPLEX64) r.im = e.im;
  return r;
}

/* ---- dice ------------------------------------------------------------------------------------ */

uint32_t ref_dice(uint32_t n)
{
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)((state >> 32) * n >> 32);
}

static int64_t random_int(weir_dtype dtype)
{
  static const int64_t special[] = {0,         1,         -1,        2,   INT64_MAX,
                                    INT64_MIN, INT32_MAX, INT32_MIN, 127, -128};
  int64_t any = (int64_t)((uint64_t)ref_dice(UINT32_MAX) << 32 | ref_dice(UINT32_MAX));
  int64_t i = ref_dice(6) == 0   ? special[ref_dice(10)]
              : ref_dice(3) == 0 ? any
                                 : (int64_t)ref_dice(21) - 10;
  return wrap_integer(dtype == WEIR_BOOL ? i & 1 : i, dtype);
}

static real random_real(weir_dtype dtype)
{
  const struct format *f = &formats[dtype];
  const real special[] = {0,
                          -0.0L,
                          1,
                          -1,
                          INFINITY,
                          -INFINITY,
                          NAN,
                          ldexpl(1, f->least - f->digits + 1), /* the smallest */
                          ldexpl(1, f->least) - ldexpl(1, f->least - f->digits + 1),
                          ldexpl(2 - ldexpl(1, 1 - f->digits), f->most)}; /* the largest */
  if (ref_dice(12) == 0) return special[ref_dice(10)];
  real m = (real)(int32_t)ref_dice(UINT32_MAX) / 0x1p31L;
  int e = ref_dice(4) ? (int)ref_dice(6) : (int)ref_dice((uint32_t)(f->most - f->least)) + f->least;
  return ref_round(ldexpl(m, e), dtype);
}

element ref_random(weir_dtype dtype)
{
  if (ref_is_int(dtype)) return whole_number(random_int(dtype));
  if (dtype != WEIR_COMPLEX64) return (element){.re = random_real(dtype)};
  return (element){.re = ref_round((real)(int32_t)ref_dice(UINT32_MAX) / 0x1p30L, WEIR_FLOAT32),
                   .im = ref_round((real)(int32_t)ref_dice(UINT32_MAX) / 0x1p30L, WEIR_FLOAT32)};
}

/* ---- operations ------------------------------------------------------------------------------ */

static int64_t int_power(int64_t x, int64_t y)
{
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 ? -1 : 1) : 0;
  uint64_t r = 1, b = (uint64_t)x;
  for (uint64_t bits = (uint64_t)y; bits; bits /= 2, b *= b)
    if (bits % 2) r *= b;
  return (int64_t)r;
}

static int64_t int_floor_div(int64_t x, int64_t y)
{
  if (y == 0) return 0;
  if (y == -1) return (int64_t)(0 - (uint64_t)x);
  int64_t q = x / y, rest = x % y;
  return q - (rest != 0 && (rest < 0) != (y < 0));
}

static bool is_close(real x, real y, const weir_loop *l)
{
  bool near = isfinite(x) && isfinite(y) && fabsl(x - y) <= l->p[1].f + fabsl(l->p[0].f * y);
  return x == y || near || (l->p[2].i && isnan(x) && isnan(y));
}

static int64_t compare(weir_op op, real x, real y)
{
  switch (op) {
  case WEIR_OP_EQ:
    return x == y;
  case WEIR_OP_NE:
    return x != y;
  case WEIR_OP_LT:
    return x < y;
  case WEIR_OP_LE:
    return x <= y;
  case WEIR_OP_GT:
    return x > y;
  case WEIR_OP_GE:
    return x >= y;
  case WEIR_OP_LOGICAL_AND:
    return x != 0 && y != 0;
  case WEIR_OP_LOGICAL_OR:
    return x != 0 || y != 0;
  default:
    return x == 0; /* LOGICAL_NOT */
  }
}

static int64_t int_op(const weir_loop *l, int64_t x, int64_t y, int64_t i)
{
  uint64_t a = (uint64_t)x, b = (uint64_t)y, scale = l->has_alpha ? (uint64_t)l->alpha.i : 1;
  bool truth = l->compute == WEIR_BOOL;
  switch (l->op) {
  case WEIR_OP_NEG:
    return (int64_t)(0 - a);
  case WEIR_OP_ABS:
    return x < 0 ? (int64_t)(0 - a) : x;
  case WEIR_OP_RELU:
    return x < 0 ? 0 : x;
  case WEIR_OP_ISFINITE:
    return 1;
  case WEIR_OP_ADD:
    return truth ? x || (y && scale) : (int64_t)(a + b * scale);
  case WEIR_OP_SUB:
    return truth ? (x != 0) != (y && scale) : (int64_t)(a - b * scale);
  case WEIR_OP_MUL:
    return (int64_t)(a * b);
  case WEIR_OP_FLOOR_DIV:
    return int_floor_div(x, y);
  case WEIR_OP_POW:
    return int_power(x, y);
  case WEIR_OP_MAXIMUM:
    return x > y ? x : y;
  case WEIR_OP_MINIMUM:
    return x < y ? x : y;
  case WEIR_OP_CLOSE:
    return is_close((real)x, (real)y, l);
  case WEIR_OP_RANGE:
    return (int64_t)((uint64_t)l->p[0].i + (uint64_t)i * (uint64_t)l->p[1].i);
  default:
    return compare(l->op, (real)x, (real)y);
  }
}

static real real_floor_div(real x, real y)
{
  if (y == 0) return x / y;
  if (isnan(x) || isnan(y) || isinf(x)) return NAN;
  if (isinf(y)) return x != 0 && (x < 0) != (y < 0) ? -1 : 0;
  real rest = fmodl(x, y);
  if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
  real q = (x - rest) / y;
  return fabsl(q) < 0x1p60L ? rintl(q) : q;
}

static real real_op(const weir_loop *l, real x, real y, int64_t i)
{
  real scale = l->has_alpha ? l->alpha.f : 1;
  switch (l->op) {
  case WEIR_OP_NEG:
    return -x;
  case WEIR_OP_ABS:
    return fabsl(x);
  case WEIR_OP_RELU:
    return isnan(x) ? x : fmaxl(x, 0);
  case WEIR_OP_EXP:
    return expl(x);
  case WEIR_OP_LOG:
    return logl(x);
  case WEIR_OP_SQRT:
    return sqrtl(x);
  case WEIR_OP_RSQRT:
    return 1 / sqrtl(x);
  case WEIR_OP_SIN:
    return sinl(x);
  case WEIR_OP_COS:
    return cosl(x);
  case WEIR_OP_TANH:
    return tanhl(x);
  case WEIR_OP_SIGMOID:
    return 1 / (1 + expl(-x));
  case WEIR_OP_ISFINITE:
    return isfinite(x);
  case WEIR_OP_ADD:
    return x + scale * y;
  case WEIR_OP_SUB:
    return x - scale * y;
  case WEIR_OP_MUL:
    return x * y;
  case WEIR_OP_DIV:
    return x / y;
  case WEIR_OP_FLOOR_DIV:
    return real_floor_div(x, y);
  case WEIR_OP_POW:
    if (isinf(x) && y == -0x1p63L) return 0; /* glibc's x87 powl: infinity */
    return powl(x, y);
  case WEIR_OP_MAXIMUM:
    return isnan(x) || isnan(y) ? (real)NAN : fmaxl(x, y);
  case WEIR_OP_MINIMUM:
    return isnan(x) || isnan(y) ? (real)NAN : fminl(x, y);
  case WEIR_OP_CLOSE:
    return is_close(x, y, l);
  case WEIR_OP_RANGE:
    return l->p[0].f + (real)i * l->p[1].f;
  default:
    return (real)compare(l->op, x, y);
  }
}

static long double complex complex_op(const weir_loop *l, long double complex x,
                                      long double complex y)
{
  long double complex scale = l->has_alpha ? CMPLXL(l->alpha.f, l->alpha.imag) : 1;
  switch (l->op) {
  case WEIR_OP_NEG:
    return -x;
  case WEIR_OP_ABS:
    return cabsl(x);
  case WEIR_OP_EXP:
    return cexpl(x);
  case WEIR_OP_LOG:
    return clogl(x);
  case WEIR_OP_SQRT:
    return csqrtl(x);
  case WEIR_OP_RSQRT:
    return 1 / csqrtl(x);
  case WEIR_OP_SIN:
    return csinl(x);
  case WEIR_OP_COS:
    return ccosl(x);
  case WEIR_OP_TANH:
    return ctanhl(x);
  case WEIR_OP_SIGMOID:
    return 1 / (1 + cexpl(-x));
  case WEIR_OP_LOGICAL_NOT:
    return x == 0;
  case WEIR_OP_ISFINITE:
    return isfinite(creall(x)) && isfinite(cimagl(x));
  case WEIR_OP_ADD:
    return x + scale * y;
  case WEIR_OP_SUB:
    return x - scale * y;
  case WEIR_OP_MUL:
    return x * y;
  case WEIR_OP_DIV:
    return x / y;
  case WEIR_OP_POW:
    return cpowl(x, y);
  case WEIR_OP_EQ:
    return x == y;
  case WEIR_OP_NE:
    return x != y;
  case WEIR_OP_LOGICAL_AND:
    return x != 0 && y != 0;
  case WEIR_OP_LOGICAL_OR:
    return x != 0 || y != 0;
  default: /* CLOSE */
    return x == y || cabsl(x - y) <= l->p[1].f + cabsl(l->p[0].f * y);
  }
}

element ref_op(const weir_loop *l, element x, element y, element z, int64_t i)
{
  if (l->op == WEIR_OP_WHERE) return x.i ? y : z;
  if (l->op == WEIR_OP_COPY) return x;
  if (l->op >= WEIR_OP_ERF) return ref_function(l, x, y, z);
  if (ref_is_int(l->compute)) return whole_number(wrap_integer(int_op(l, x.i, y.i, i), l->compute));
  if (l->compute != WEIR_COMPLEX64) {
    real r = real_op(l, x.re, y.re, i);
    return (element){.re = r, .i = r == 1};
  }
  long double complex c = complex_op(l, CMPLXL(x.re, x.im), CMPLXL(y.re, y.im));
  return (element){.re = creall(c), .im = cimagl(c), .i = creall(c) != 0};
}

static bool real_near(real got, real want, weir_dtype dtype, real ulps)
{
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
  if (got == want) return true;
  real largest = ldexpl(2 - ldexpl(1, 1 - formats[dtype].digits), formats[dtype].most);
  if (isinf(got) && isfinite(want))
    return fabsl(want) + ulps * ref_ulp(largest, dtype) > largest && (got > 0) == (want > 0);
  return isfinite(got) && fabsl(got - want) <= ulps * ref_ulp(want, dtype);
}

/* A part of a complex number of size `size`, which is to be rounded to float32. */
static bool part_near(real got, real want, real size, double ulps)
{
  real error = ulps * 0x1p-24L * (isfinite(size) ? size : 0);
  if (isinf(got) && isfinite(want))
    return fabsl(want) + error > (real)FLT_MAX && (got > 0) == (want > 0);
  return real_near(got, want, WEIR_FLOAT32, ulps) || fabsl(got - want) <= error;
}

bool ref_near(element got, element want, weir_dtype dtype, double ulps)
{
  if (ref_is_int(dtype)) return got.i == want.i;
  if (dtype != WEIR_COMPLEX64) return real_near(got.re, want.re, dtype, ulps);
  real size = cabsl(CMPLXL(want.re, want.im));
  if (!isfinite(want.re) || !isfinite(want.im) || !isfinite(got.re) || !isfinite(got.im))
    return part_near(got.re, want.re, size, ulps) && part_near(got.im, want.im, size, ulps);
  real error = cabsl(CMPLXL(got.re - want.re, got.im - want.im));
  return error <= 0x1p-148L + ulps * 0x1p-24L * size || (isnan(error) && isnan(want.re));
}
