/* test_cpu_map.c: elementwise work on the cpu against a reference that shares nothing with it:
 * every operation in every dtype, operands strided, repeated, reversed, of other dtypes, numbers,
 * in place; tails of blocks and pieces of threads. test_cpu_map_long compares levels of
 * processor over more elements. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/compiler.h"
#include "core/backend/cpu/cpu.h"
#include "core/weir/threads.h"
#include "tests/device/reference.h"
#include "tests/level.h"

static const weir_dtype dtypes[] = {WEIR_UINT8,   WEIR_INT8,    WEIR_INT16,    WEIR_INT32,
                                    WEIR_INT64,   WEIR_BOOL,    WEIR_FLOAT16,  WEIR_BFLOAT16,
                                    WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static const struct row {
  const char *name;
  int inputs;
  bool truth; /* gives bool */
  unsigned computes, keeps;
} ops[] = {
#define ROW(name, text, inputs, gives, takes, computes, keeps, ...)                                \
  {text, inputs, WEIR_GIVES_##gives == WEIR_GIVES_BOOL, WEIR_DTYPES_##computes, keeps},
    WEIR_OPS(ROW)
#undef ROW
};

static weir_status run_cpu_map(const weir_loop *l)
{
  return weir_cpu_backend.compute->map(weir_cpu_backend.self, NULL, l);
}

/* ---- operands: memory of their own, filled, at most four of a loop --------------------------- */

enum { MOST = 200000 };
static char memory[4][MOST * 8], before[4][MOST * 8];

static void fill_random_operand(weir_operand *o, int64_t elements)
{
  for (int64_t i = 0; i < elements; i++)
    ref_store(o->dtype, (char *)o->data + (size_t)i * ref_bytes(o->dtype), ref_random(o->dtype));
}

/* Any order of dimensions, holes, dimensions that repeat or run backwards. */
static void lay_out(weir_operand *o, int slot, const weir_loop *l, bool may_repeat)
{
  int64_t next = ref_dice(3) ? 1 : 2, first = 0;
  bool dense = ref_dice(3) == 0;
  int order[WEIR_DIMS];
  for (int d = 0; d < l->dims; d++)
    order[d] = l->dims - 1 - d;
  for (int d = l->dims - 1; d > 0 && !dense; d--) {
    int with = (int)ref_dice((uint32_t)d + 1), kept = order[d];
    order[d] = order[with], order[with] = kept;
  }
  if (dense) next = 1;
  for (int i = 0; i < l->dims; i++) {
    int d = order[i];
    o->stride[d] = next;
    next *= l->size[d] + (dense ? 0 : ref_dice(2));
    if (dense) continue;
    if (may_repeat && ref_dice(5) == 0) o->stride[d] = 0;
    if (ref_dice(6) == 0) {
      first += o->stride[d] * (l->size[d] - 1);
      o->stride[d] = -o->stride[d];
    }
  }
  ck_assert_int_le(next, MOST);
  o->data = memory[slot];
  fill_random_operand(o, next);
  memcpy(before[slot], memory[slot], (size_t)next * ref_bytes(o->dtype));
  o->data = memory[slot] + (size_t)first * ref_bytes(o->dtype);
}

static int64_t offset_of(const weir_operand *o, const weir_loop *l, int64_t i)
{
  int64_t elements = 0;
  for (int d = l->dims - 1; d >= 0; d--) {
    elements += i % l->size[d] * o->stride[d];
    i /= l->size[d];
  }
  return elements;
}

static element element_at(const weir_operand *o, const weir_loop *l, int64_t i, const char *base)
{
  const char *at = base + (size_t)offset_of(o, l, i) * ref_bytes(o->dtype);
  return ref_load(o->dtype, at);
}

static void random_number(weir_operand *o, weir_dtype compute)
{
  o->data = NULL;
  o->number = (weir_number){.dtype = WEIR_INT64, .i = (int64_t)ref_dice(9) - 4};
  if (compute == WEIR_BOOL) o->number = (weir_number){.dtype = WEIR_BOOL, .i = ref_dice(2)};
  if (!ref_is_int(compute) && ref_dice(2))
    o->number = (weir_number){.dtype = WEIR_FLOAT64, .f = (double)ref_dice(1000) / 96 - 3};
  if (compute == WEIR_COMPLEX64 && ref_dice(2))
    o->number = (weir_number){WEIR_COMPLEX64, 0, 1.5, (double)ref_dice(100) / 16};
}

static void random_shape(weir_loop *l)
{
  static const int64_t lengths[] = {1, 2, 3, 5, 7, 8, 31, 64, 129, 511, 512, 513, 1300};
  l->dims = (int)ref_dice(4);
  l->count = 1;
  for (int d = 0; d < l->dims; d++) {
    l->size[d] = lengths[ref_dice(13)];
    if (l->count * l->size[d] > 3000) l->size[d] = 2;
    l->count *= l->size[d];
  }
}

/* ---- what a result may be -------------------------------------------------------------------- */

static bool gives_bool(weir_op op)
{
  return ops[op].truth;
}

static bool keeps_number(weir_op op, int input)
{
  return ops[op].keeps >> input & 1;
}

/* Units in the last place. float64's functions are the C library's. */
static double tolerance(const weir_loop *l)
{
  if (l->compute == WEIR_COMPLEX64) return l->op >= WEIR_OP_ADD && l->op <= WEIR_OP_MUL ? 3 : 16;
  if (l->compute == WEIR_FLOAT32 && l->op == WEIR_OP_SIGMOID) return 2.6;
  if (l->compute == WEIR_FLOAT32 && l->op == WEIR_OP_RSQRT) return 1.6;
  bool function = l->op == WEIR_OP_EXP || l->op == WEIR_OP_LOG || l->op == WEIR_OP_SIN ||
                  l->op == WEIR_OP_COS || l->op == WEIR_OP_TANH || l->op == WEIR_OP_SIGMOID ||
                  l->op == WEIR_OP_POW || l->op == WEIR_OP_RSQRT;
  bool twice = l->has_alpha || l->op == WEIR_OP_RANGE || l->op == WEIR_OP_FLOOR_DIV;
  return l->compute == WEIR_FLOAT64 && function ? 2.5 : twice ? 1.5 : 0.51;
}

/* Sums with an alpha can cancel: the error is the larger operand's. */
static bool cancels(const weir_loop *l, element got, element want, element x, element y)
{
  if (!l->has_alpha || !ref_is_real(l->compute)) return false;
  long double most = fmaxl(fabsl(x.re), fabsl((long double)l->alpha.f * y.re));
  if (!isfinite(most) || !(fabsl(got.re - want.re) > 0)) return !isfinite(most);
  return fabsl(got.re - want.re) <= 2 * ref_ulp(most, l->compute) ||
         most > (l->compute == WEIR_FLOAT64 ? 1e307L : 1e37L);
}

/* Complex numbers are tried where the C standard leaves nothing open. */
static bool is_open(const weir_loop *l, element x, element y)
{
  if (l->compute != WEIR_COMPLEX64 || l->op == WEIR_OP_COPY || l->op == WEIR_OP_WHERE) return false;
  long double most = fmaxl(fmaxl(fabsl(x.re), fabsl(x.im)), fmaxl(fabsl(y.re), fabsl(y.im)));
  bool zero = l->op == WEIR_OP_DIV || l->op == WEIR_OP_POW ? y.re == 0 && y.im == 0
              : l->op == WEIR_OP_LOG || l->op == WEIR_OP_RSQRT || l->op == WEIR_OP_LOG2 ||
                      l->op == WEIR_OP_LOG10 || l->op == WEIR_OP_RECIPROCAL
                  ? x.re == 0 && x.im == 0
                  : false;
  zero |= l->op == WEIR_OP_SINC && x.im == 0; /* where the sine is 0 */
  return zero || !isfinite(x.re) || !isfinite(y.re) || most > 16;
}

/* Most functions of float32 are calculated in double and rounded once; what is made of sums and
 * products of the dtype is off by a few roundings of what is added; float64's are the C
 * library's, whose arguments are rounded. What overflows on the way is not measured; of slopes,
 * whose factors multiply what was rounded to a subnormal, neither is that. */
static bool is_near_function(const weir_loop *l, element got, element want, element x, element y,
                             element z)
{
  if (l->op < WEIR_OP_ERF || !ref_is_real(l->compute)) return false;
  bool wide = l->compute == WEIR_FLOAT64, slope = strstr(ops[l->op].name, "_backward");
  bool tail = strstr(ops[l->op].name, "gelu");
  long double most = wide ? 1e300L : l->compute == WEIR_FLOAT16 ? 3e4L : 1e34L;
  long double size = ref_function_size(l, x, y, z, want.re);
  long double by = fmaxl(fabsl(x.re), fmaxl(fabsl(y.re), fabsl(z.re)));
  if (!(size < most) || !(by < (slope ? fminl(most, 1e12L) : most))) return true;
  if (l->op == WEIR_OP_ADDCMUL || l->op == WEIR_OP_ADDCDIV)
    if (fabsl(y.re) < 1e-36L || fabsl(z.re) < 1e-36L) return true;
  if (tail && fabsl(want.re) < 1e-290L) return fabsl(got.re) < 1e-289L;
  if (l->op == WEIR_OP_GELU && l->compute == WEIR_FLOAT32) size = fabsl(x.re); /* cpu/math.h */
  long double units = !wide ? 3 : tail ? 4096 : slope ? 128 : 16;
  bool of_result = size == fabsl(want.re) && l->op != WEIR_OP_ROUND_DECIMALS;
  weir_dtype as = wide || of_result ? l->compute : WEIR_FLOAT32;
  long double vanished = slope ? (1 + by * by) * (wide ? 0x1p-1074L : 0x1p-149L) : 0;
  return fabsl(got.re - want.re) <=
         units * ref_ulp(size, as) + ref_ulp(want.re, l->compute) + vanished;
}

static element input_at(const weir_loop *l, int k, int64_t i)
{
  const weir_operand *o = &l->in[k];
  weir_dtype as = l->op == WEIR_OP_WHERE && k == 0 ? WEIR_BOOL : l->compute;
  if (k >= ops[l->op].inputs) return (element){0};
  if (o->data) {
    const char *base = before[k] + ((char *)o->data - memory[k]);
    return ref_convert(element_at(o, l, i, base), o->dtype, as);
  }
  if (keeps_number(l->op, k) && (as == WEIR_FLOAT16 || as == WEIR_BFLOAT16)) as = WEIR_FLOAT32;
  return ref_convert(ref_number(&o->number), o->number.dtype, as);
}

/* An assertion of Check writes to a file even where it holds: there is none for each element. */
static void check_loop_result(const weir_loop *l, const char *what)
{
  weir_dtype result = gives_bool(l->op) ? WEIR_BOOL : l->compute;
  for (int64_t i = 0; i < l->count; i++) {
    element x = input_at(l, 0, i), y = input_at(l, 1, i), z = input_at(l, 2, i);
    if (is_open(l, x, y)) continue;
    element want = ref_op(l, x, y, z, i);
    element got = element_at(&l->out, l, i, l->out.data);
    bool exact = ref_is_int(result) || l->op == WEIR_OP_COPY;
    weir_dtype measure = exact ? l->out.dtype : result;
    if (exact) want = ref_convert(want, result, l->out.dtype);
    if (ref_near(got, want, measure, exact ? 0 : tolerance(l)) ||
        (!exact && (cancels(l, got, want, x, y) || is_near_function(l, got, want, x, y, z))))
      continue;
    ck_abort_msg("%s(%s) of dtype %d, out %d, element %lld of %lld: x %.20Lg%+.20Lgi (%lld) y "
                 "%.20Lg%+.20Lgi (%lld): %.20Lg%+.20Lgi (%lld) is not %.20Lg%+.20Lgi (%lld)",
                 ops[l->op].name, what, l->compute, l->out.dtype, (long long)i, (long long)l->count,
                 x.re, x.im, (long long)x.i, y.re, y.im, (long long)y.i, got.re, got.im,
                 (long long)got.i, want.re, want.im, (long long)want.i);
  }
}

/* ---- cases ----------------------------------------------------------------------------------- */

static bool is_there(weir_op op, weir_dtype d)
{
  return ops[op].computes >> d & 1;
}

static void parameters(weir_loop *l)
{
  bool whole = ref_is_int(l->compute);
  weir_number none = {.dtype = WEIR_FLOAT64};
  l->has_alpha = (l->op == WEIR_OP_ADD || l->op == WEIR_OP_SUB) && ref_dice(2);
  l->alpha = whole ? (weir_number){.dtype = WEIR_INT64, .i = (int64_t)ref_dice(5) - 2}
                   : (weir_number){.dtype = WEIR_FLOAT64, .f = (double)ref_dice(9) / 4 - 1};
  l->p[0] = l->p[1] = l->p[2] = none;
  for (int i = 0; i < 3 && l->op >= WEIR_OP_ADDCMUL; i++)
    l->p[i] = whole ? (weir_number){.dtype = WEIR_INT64, .i = (int64_t)ref_dice(7) - 3}
                    : (weir_number){.dtype = WEIR_FLOAT64, .f = (double)(1 + ref_dice(4)) / 8};
  if (l->op == WEIR_OP_CLOSE) {
    l->p[0].f = ref_dice(2) ? 0.125 : 0;
    l->p[1].f = ref_dice(2) ? 0.5 : 0;
    l->p[2] = (weir_number){.dtype = WEIR_BOOL, .i = ref_dice(2)};
  }
  if (l->op == WEIR_OP_RANGE) {
    l->p[0] = whole ? (weir_number){.dtype = WEIR_INT64, .i = -7}
                    : (weir_number){.dtype = WEIR_FLOAT64, .f = -3.5};
    l->p[1] = whole ? (weir_number){.dtype = WEIR_INT64, .i = 3}
                    : (weir_number){.dtype = WEIR_FLOAT64, .f = 0.25};
  }
}

static weir_dtype any_dtype(weir_dtype likely)
{
  return ref_dice(3) ? likely : dtypes[ref_dice(DTYPES)];
}

/* Integers divide by what is not zero. */
static void no_zeros(weir_loop *l)
{
  bool divides = l->op == WEIR_OP_FLOOR_DIV || l->op == WEIR_OP_REMAINDER ||
                 l->op == WEIR_OP_FMOD || l->op == WEIR_OP_TRUNC_DIV;
  if (!divides || !ref_is_int(l->compute)) return;
  weir_operand *o = &l->in[1];
  o->dtype = l->compute;
  o->data = memory[1];
  memset(o->stride, 0, sizeof o->stride);
  static const int64_t divisors[] = {1, -1, 2, -3, 7};
  ref_store(o->dtype, o->data,
            ref_convert((element){.i = divisors[ref_dice(5)]}, WEIR_INT64, l->compute));
  memcpy(before[1], memory[1], ref_bytes(o->dtype));
}

static void random_case(weir_loop *l, bool in_place)
{
  weir_dtype result = gives_bool(l->op) ? WEIR_BOOL : l->compute;
  for (int k = 0; k < ops[l->op].inputs; k++) {
    weir_dtype as = l->op == WEIR_OP_WHERE && k == 0 ? WEIR_BOOL : l->compute;
    l->in[k].dtype = in_place || as != l->compute || l->op == WEIR_OP_CLOSE ? as : any_dtype(as);
    lay_out(&l->in[k], k, l, !(in_place && k == 0));
    if (!in_place && !(l->op == WEIR_OP_WHERE && k == 0) && ref_dice(6) == 0)
      random_number(&l->in[k], l->compute);
  }
  no_zeros(l);
  l->out.dtype = result;
  if (l->op == WEIR_OP_COPY || ref_is_int(result)) l->out.dtype = any_dtype(result);
  if (ref_is_int(result) && l->out.dtype == WEIR_COMPLEX64) l->out.dtype = WEIR_FLOAT64;
  if (in_place)
    l->out = l->in[0];
  else
    lay_out(&l->out, 3, l, false);
}

/* Where conversions have made a zero divisor, or a complex number for a real one, it is another
 * case's turn. */
START_TEST(every_op_in_every_dtype_is_its_exact_result_rounded)
{
  weir_op op = (weir_op)_i;
  /* It is slow there; threads: see below. */
  const int rounds = WEIR_ASAN || WEIR_TSAN ? 4 : AT_LEVEL(16, 16, 128);
  for (int d = 0; d < DTYPES; d++)
    for (int round = 0; round < rounds && is_there(op, dtypes[d]); round++) {
      weir_loop l = {.op = op, .compute = dtypes[d]};
      bool in_place =
          round % 4 == 3 && ops[op].inputs > 0 && !gives_bool(op) && op != WEIR_OP_WHERE;
      cpu_level_most = round % 3 ? 2 : 0;
      random_shape(&l);
      parameters(&l);
      random_case(&l, in_place);
      ck_assert_msg(run_cpu_map(&l) == WEIR_OK, "%s: %s", ops[op].name, weir_error_message());
      check_loop_result(&l, in_place ? "in place" : "");
    }
}
END_TEST

START_TEST(what_is_not_there_says_so)
{
  int refused = 0;
  for (int op = 0; op < WEIR_OP_COUNT; op++)
    for (int d = 0; d < DTYPES; d++) {
      if (is_there((weir_op)op, dtypes[d])) continue;
      weir_loop l = {.op = (weir_op)op, .compute = dtypes[d], .count = 1};
      for (int k = 0; k < 3; k++)
        l.in[k] = (weir_operand){.data = memory[k], .dtype = dtypes[d]};
      l.out = (weir_operand){.data = memory[3], .dtype = dtypes[d]};
      ck_assert_int_eq(run_cpu_map(&l), WEIR_ENOTSUP);
      refused++;
    }
  weir_loop l = {.op = WEIR_OP_RELU, .compute = WEIR_COMPLEX64, .count = 1};
  ck_assert_int_eq(run_cpu_map(&l), WEIR_ENOTSUP);
  ck_assert_str_eq(weir_error_message(), "\"relu_cpu\" not implemented for 'ComplexFloat'");
  ck_assert_int_gt(refused, 9 + 11 + 5 * 9);
}
END_TEST

START_TEST(an_integer_divided_by_zero_is_an_error)
{
  int32_t x[3] = {7, -7, INT32_MIN}, y[3] = {2, 0, -1}, r[3];
  weir_loop l = {
      .op = WEIR_OP_FLOOR_DIV, .compute = WEIR_INT32, .dims = 1, .size = {3}, .count = 3};
  l.in[0] = (weir_operand){.data = x, .dtype = WEIR_INT32, .stride = {1}};
  l.in[1] = (weir_operand){.data = y, .dtype = WEIR_INT32, .stride = {1}};
  l.out = (weir_operand){.data = r, .dtype = WEIR_INT32, .stride = {1}};
  ck_assert_int_eq(run_cpu_map(&l), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "ZeroDivisionError");
  ck_assert_int_eq(r[0], 3);
  ck_assert_int_eq(r[1], 0);
  ck_assert_int_eq(r[2], INT32_MIN);
}
END_TEST

/* Powers by one number have loops of their own for some. */
START_TEST(a_power_by_one_number_is_as_exact)
{
  static const double exponents[] = {2, 3, -1, -2, 0.5, 1, 0, -3};
  enum { N = 3000 };
  for (int e = 0; e < (int)(sizeof exponents / sizeof *exponents); e++)
    for (int d = 0; d < 2; d++) {
      weir_dtype dtype = d ? WEIR_FLOAT16 : WEIR_FLOAT32;
      weir_loop l = {.op = WEIR_OP_POW, .compute = dtype, .dims = 1, .size = {N}, .count = N};
      l.in[0] = l.out = (weir_operand){.data = memory[0], .dtype = dtype, .stride = {1}};
      l.out.data = memory[3];
      fill_random_operand(&l.in[0], N);
      ref_store(dtype, memory[0], (element){.re = -0.0L});
      ref_store(dtype, memory[0] + ref_bytes(dtype), (element){.re = -INFINITY});
      memcpy(before[0], memory[0], sizeof before[0]);
      l.in[1].number = (weir_number){.dtype = WEIR_FLOAT64, .f = exponents[e]};
      ck_assert_int_eq(run_cpu_map(&l), WEIR_OK);
      check_loop_result(&l, "by one number");
    }
}
END_TEST

/* Long enough for several threads, and cut at places that are no multiples of a block. */
START_TEST(the_number_of_threads_changes_no_bit)
{
  enum { N = 150001 };
  float *x = (float *)memory[0], *one = (float *)memory[1], *more = (float *)memory[2];
  static const weir_op some[] = {WEIR_OP_EXP, WEIR_OP_SIN, WEIR_OP_TANH, WEIR_OP_RANGE};
  for (int i = 0; i < N; i++)
    x[i] = (float)ref_random(WEIR_FLOAT32).re;
  for (int k = 0; k < 4; k++) {
    weir_loop l = {.op = some[k], .compute = WEIR_FLOAT32, .dims = 1, .size = {N}, .count = N};
    parameters(&l);
    l.in[0] = (weir_operand){.data = x, .dtype = WEIR_FLOAT32, .stride = {1}};
    l.out = (weir_operand){.data = one, .dtype = WEIR_FLOAT32, .stride = {1}};
    ck_assert_int_eq(weir_set_num_threads(1), WEIR_OK);
    ck_assert_int_eq(run_cpu_map(&l), WEIR_OK);
    l.out.data = more;
    ck_assert_int_eq(weir_set_num_threads(5), WEIR_OK);
    ck_assert_int_eq(run_cpu_map(&l), WEIR_OK);
    ck_assert_int_eq(memcmp(memory[1], memory[2], N * sizeof *x), 0);
  }
}
END_TEST

/* Whatever an element is, but for which NaN it is. */
static void levels_agree(const weir_loop *l, int64_t n)
{
  size_t bytes = (size_t)n * ref_bytes(l->out.dtype);
  for (cpu_level_most = 0; cpu_level_most < 3; cpu_level_most++) {
    ck_assert_int_eq(run_cpu_map(l), WEIR_OK);
    if (!cpu_level_most) memcpy(before[3], memory[3], bytes);
    for (int64_t i = 0; i < n && memcmp(before[3], memory[3], bytes) != 0; i++) {
      size_t at = (size_t)i * ref_bytes(l->out.dtype);
      element one = ref_load(l->out.dtype, before[3] + at),
              more = ref_load(l->out.dtype, memory[3] + at);
      bool none = isnan(one.re) && isnan(more.re);
      if (none || !memcmp(before[3] + at, memory[3] + at, ref_bytes(l->out.dtype))) continue;
      ck_abort_msg("%s of dtype %d, element %lld: %.9Lg at level 0, %.9Lg at level %d",
                   ops[l->op].name, l->compute, (long long)i, one.re, more.re, cpu_level_most);
    }
  }
  cpu_level_most = 2;
}

START_TEST(every_level_of_processor_gives_the_same_bits)
{
  enum { N = AT_LEVEL(3003, 10003, 20003) };
  weir_op op = (weir_op)_i;
  for (int round = 0; round < AT_LEVEL(1, 2, 3) && is_there(op, WEIR_FLOAT32); round++) {
    weir_loop l = {.op = op, .compute = WEIR_FLOAT32, .dims = 1, .size = {N}, .count = N};
    parameters(&l);
    l.has_alpha = false;
    for (int k = 0; k < 4; k++) {
      weir_operand *o = k < 3 ? &l.in[k] : &l.out;
      o->dtype = op == WEIR_OP_WHERE && k == 0 ? WEIR_BOOL : WEIR_FLOAT32;
      o->data = memory[k];
      o->stride[0] = 1;
      fill_random_operand(o, N);
    }
    if (gives_bool(op)) l.out.dtype = WEIR_BOOL;
    levels_agree(&l, N);
  }
}
END_TEST

/* All float16 numbers as float32, and float32 numbers as float16, of which each exponent has
 * some. */
START_TEST(halves_are_the_same_at_every_level)
{
  enum { N = 65536 };
  weir_loop l = {.op = WEIR_OP_COPY, .dims = 1, .size = {N}, .count = N};
  for (int up = 0; up < 2; up++) {
    l.compute = l.out.dtype = up ? WEIR_FLOAT32 : WEIR_FLOAT16;
    l.in[0] =
        (weir_operand){.data = memory[0], .dtype = up ? WEIR_FLOAT16 : WEIR_FLOAT32, .stride = {1}};
    l.out.data = memory[3], l.out.stride[0] = 1;
    for (uint32_t i = 0; i < N; i++) {
      uint16_t half = (uint16_t)i;
      uint32_t single = i << 16 | ref_dice(65536);
      memcpy(memory[0] + i * (up ? sizeof half : sizeof single),
             up ? (void *)&half : (void *)&single, up ? sizeof half : sizeof single);
    }
    levels_agree(&l, N);
  }
}
END_TEST

/* All numbers of float16 and bfloat16, through kernels that take them as they are, by a tensor
 * or by one number, through those that blocks of float32 go through, and at every level. */
static void check_halves(weir_op op, weir_dtype dtype, bool number)
{
  enum { N = 65536 };
  weir_loop l = {.op = op, .compute = dtype, .dims = 1, .size = {N}, .count = N};
  parameters(&l);
  for (int k = 0; k < 4; k++) {
    weir_operand *o = k < 3 ? &l.in[k] : &l.out;
    *o = (weir_operand){.data = memory[k], .dtype = dtype, .stride = {1}};
    fill_random_operand(o, N);
  }
  for (uint32_t i = 0; i < N; i++)
    memcpy(memory[0] + 2 * (size_t)i, &(uint16_t){(uint16_t)i}, 2);
  memcpy(before, memory, sizeof before);
  if (number) random_number(&l.in[1], dtype);
  levels_agree(&l, N);
  check_loop_result(&l, "halves");
  memcpy(before[3], memory[3], 2 * (size_t)N);
  l.out.stride[0] = 2;
  ck_assert_int_eq(run_cpu_map(&l), WEIR_OK);
  for (size_t i = 0; i < N; i++) {
    bool same = !memcmp(before[3] + 2 * i, memory[3] + 4 * i, 2);
    if (same || isnan(ref_load(dtype, before[3] + 2 * i).re)) continue;
    ck_abort_msg("%s of dtype %d, element %zu in a block", ops[op].name, dtype, i);
  }
}

START_TEST(every_half_is_as_exact_at_every_level)
{
  static const weir_op some[] = {WEIR_OP_RELU, WEIR_OP_SQRT, WEIR_OP_ADD,     WEIR_OP_SUB,
                                 WEIR_OP_MUL,  WEIR_OP_DIV,  WEIR_OP_MAXIMUM, WEIR_OP_MINIMUM,
                                 WEIR_OP_EXP,  WEIR_OP_LOG,  WEIR_OP_SIGMOID, WEIR_OP_SIN,
                                 WEIR_OP_COS,  WEIR_OP_SILU, WEIR_OP_GELU};
  ck_assert_uint_lt((unsigned)_i / 4, sizeof some / sizeof *some);
  check_halves(some[_i / 4], _i % 2 ? WEIR_FLOAT16 : WEIR_BFLOAT16,
               _i / 2 % 2 && ops[some[_i / 4]].inputs > 1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu map");
  TCase *c = tcase_create("map");
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, every_op_in_every_dtype_is_its_exact_result_rounded, 0, WEIR_OP_COUNT);
  tcase_add_test(c, what_is_not_there_says_so);
  tcase_add_test(c, an_integer_divided_by_zero_is_an_error);
  tcase_add_test(c, a_power_by_one_number_is_as_exact);
  tcase_add_test(c, the_number_of_threads_changes_no_bit);
  tcase_add_loop_test(c, every_level_of_processor_gives_the_same_bits, 0, WEIR_OP_COUNT);
  tcase_add_test(c, halves_are_the_same_at_every_level);
  tcase_add_loop_test(c, every_half_is_as_exact_at_every_level, 0, 4 * 15);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
