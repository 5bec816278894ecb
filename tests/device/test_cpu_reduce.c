/* test_cpu_reduce.c: reductions, random numbers and im2col on the cpu, against plain loops in long
 * double and int64. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/philox.h"
#include "core/backend/cpu/cpu.h"
#include "core/weir/threads.h"
#include "tests/device/reference.h"

static const weir_dtype dtypes[] = {WEIR_UINT8,   WEIR_INT8,    WEIR_INT16,    WEIR_INT32,
                                    WEIR_INT64,   WEIR_BOOL,    WEIR_FLOAT16,  WEIR_BFLOAT16,
                                    WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, MOST = 400000 };

static char in[MOST * 8], out[MOST * 8];
static int64_t places[MOST], elements; /* of `in` */

static weir_status reduce(const weir_reduce *r)
{
  return weir_cpu_backend.compute->reduce(weir_cpu_backend.self, NULL, r);
}

static const char *const names[] = {
#define NAME(name, text, ...) #name,
    WEIR_REDUCE_OPS(NAME)
#undef NAME
};

/* ---- the reference --------------------------------------------------------------------------- */

typedef struct result {
  element value;
  int64_t place;
  long double magnitude; /* sum of the absolute values, for sums' errors */
} result;

static bool is_min(weir_reduce_op op)
{
  return op == WEIR_REDUCE_MIN || op == WEIR_REDUCE_ARGMIN || op == WEIR_REDUCE_MIN_INDEX;
}

static bool better(const weir_reduce *r, element a, element b)
{
  if (ref_is_int(r->compute)) return is_min(r->op) ? a.i < b.i : a.i > b.i;
  if (isnan(b.re)) return false;
  return isnan(a.re) || (is_min(r->op) ? a.re < b.re : a.re > b.re);
}

static void reduce_element(result *s, const weir_reduce *r, element e, int64_t place)
{
  bool truth = ref_is_int(r->compute) ? e.i != 0 : e.re != 0 || e.im != 0;
  element v = s->value;
  switch (r->op) {
  case WEIR_REDUCE_NANSUM:
    if (!ref_is_int(r->compute) && isnan(e.re)) break;
    /* fall through */
  case WEIR_REDUCE_SUM:
  case WEIR_REDUCE_MEAN:
    s->value = (element){v.re + e.re, v.im + e.im, (int64_t)((uint64_t)v.i + (uint64_t)e.i)};
    s->magnitude += fabsl(e.re) + fabsl(e.im);
    break;
  case WEIR_REDUCE_PROD:
    s->value.re = v.re * e.re - v.im * e.im;
    s->value.im = v.re * e.im + v.im * e.re;
    s->value.i = (int64_t)((uint64_t)v.i * (uint64_t)e.i);
    break;
  case WEIR_REDUCE_ALL:
    s->value.i &= truth;
    break;
  case WEIR_REDUCE_ANY:
    s->value.i |= truth;
    break;
  case WEIR_REDUCE_NONZERO:
    s->value.i += truth;
    break;
  default:
    if (place > 0 && !better(r, e, v)) return;
    s->value = e;
    s->place = place;
  }
}

static int64_t offset_of_element(const weir_reduce *r, const weir_operand *o, int from, int to,
                                 int64_t i)
{
  int64_t elements = 0;
  for (int d = to - 1; d >= from; d--) {
    elements += i % r->size[d] * o->stride[d];
    i /= r->size[d];
  }
  return elements;
}

/* Element i of those that become one, as it is calculated with. */
static element element_of(const weir_reduce *r, int64_t output, int64_t i)
{
  int64_t e = offset_of_element(r, &r->in, 0, r->kept, output) +
              offset_of_element(r, &r->in, r->kept, r->dims, i);
  element x = ref_load(r->in.dtype, (char *)r->in.data + (size_t)e * ref_bytes(r->in.dtype));
  return ref_convert(x, r->in.dtype, r->compute);
}

static bool is_variance(weir_reduce_op op)
{
  return op == WEIR_REDUCE_VAR || op == WEIR_REDUCE_STD;
}

/* In two passes; `magnitude` is what the rounding of one pass is a part of. */
static result expected_variance(const weir_reduce *r, int64_t output)
{
  long double sum = 0, squares = 0, off_first = 0;
  long double left = (long double)r->each - r->p > 0 ? (long double)r->each - r->p : 0;
  for (int64_t i = 0; i < r->each; i++)
    sum += element_of(r, output, i).re;
  for (int64_t i = 0; i < r->each; i++) {
    long double x = element_of(r, output, i).re, off = x - sum / (long double)r->each;
    squares += off * off;
    x -= element_of(r, output, 0).re;
    off_first += x * x;
  }
  long double v = squares / left, root = sqrtl(v);
  if (r->op == WEIR_REDUCE_VAR) return (result){{.re = v}, 0, 4 * off_first / left};
  return (result){{.re = root}, 0, v > 0 ? 4 * off_first / left / root : 0};
}

static result expected_norm(const weir_reduce *r, int64_t output)
{
  long double sum = 0;
  for (int64_t i = 0; i < r->each; i++) {
    long double x = fabsl(element_of(r, output, i).re);
    sum += r->p == 0 ? x != 0 : powl(x, r->p);
  }
  if (r->p != 0) sum = powl(sum, 1 / (long double)r->p);
  return (result){{.re = sum}, 0, 16 * sum};
}

static result expected(const weir_reduce *r, int64_t output)
{
  if (is_variance(r->op)) return expected_variance(r, output);
  if (r->op == WEIR_REDUCE_NORM) return expected_norm(r, output);
  bool one = r->op == WEIR_REDUCE_PROD || r->op == WEIR_REDUCE_ALL;
  result s = {.value = {.re = one, .i = one}};
  for (int64_t i = 0; i < r->each; i++)
    reduce_element(&s, r, element_of(r, output, i), i);
  if (r->op == WEIR_REDUCE_MEAN) {
    s.value.re /= (long double)r->each;
    s.value.im /= (long double)r->each;
    s.magnitude /= (long double)r->each;
  }
  return s;
}

/* A sum's error: the result's rounding, and 2^-50 of what was added. */
static bool reduction_is_near(const weir_reduce *r, element got, const result *want)
{
  weir_dtype d = r->out.dtype;
  bool sum = r->op == WEIR_REDUCE_SUM || r->op == WEIR_REDUCE_MEAN || r->op == WEIR_REDUCE_NANSUM ||
             is_variance(r->op) || r->op == WEIR_REDUCE_NORM;
  if (ref_near(got, want->value, d, r->compute == WEIR_COMPLEX64 ? 4 : 0.51)) return true;
  if (ref_is_int(d)) return false;
  if (sum) {
    long double error = fabsl(got.re - want->value.re) + fabsl(got.im - want->value.im);
    return error <= want->magnitude * 0x1p-50L + 1.1L * ref_ulp(want->value.re, d) +
                        1.1L * ref_ulp(want->value.im, d);
  }
  return r->op == WEIR_REDUCE_PROD &&
         ref_near(got, want->value, d, 2 + (double)r->each * (d == WEIR_FLOAT64));
}

static void check_reduction(const weir_reduce *r)
{
  bool place = r->op == WEIR_REDUCE_ARGMAX || r->op == WEIR_REDUCE_ARGMIN;
  bool both = r->op == WEIR_REDUCE_MAX_INDEX || r->op == WEIR_REDUCE_MIN_INDEX;
  for (int64_t o = 0; o < r->outputs; o++) {
    result want = expected(r, o);
    size_t e = (size_t)offset_of_element(r, &r->out, 0, r->kept, o) * ref_bytes(r->out.dtype);
    element got = ref_load(r->out.dtype, (char *)r->out.data + e);
    int64_t found = both ? places[offset_of_element(r, &r->index, 0, r->kept, o)] : got.i;
    if (place || both)
      ck_assert_msg(found == want.place, "%s of %d: place %lld is not %lld", names[r->op],
                    r->compute, (long long)found, (long long)want.place);
    if (ref_is_int(r->compute) && !place)
      want.value = ref_convert(want.value, WEIR_INT64, r->out.dtype);
    if (!place)
      ck_assert_msg(reduction_is_near(r, got, &want),
                    "%s of %d into %d, %lld each: %.20Lg%+.20Lgi (%lld) is not %.20Lg%+.20Lgi "
                    "(%lld)",
                    names[r->op], r->compute, r->out.dtype, (long long)r->each, got.re, got.im,
                    (long long)got.i, want.value.re, want.value.im, (long long)want.value.i);
  }
}

/* ---- cases ----------------------------------------------------------------------------------- */

static bool is_there(weir_reduce_op op, weir_dtype d)
{
  bool extreme = op >= WEIR_REDUCE_MAX && op <= WEIR_REDUCE_MIN_INDEX;
  if (op == WEIR_REDUCE_MEAN) return !ref_is_int(d);
  if (is_variance(op) || op == WEIR_REDUCE_NORM) return !ref_is_int(d) && d != WEIR_COMPLEX64;
  if (op == WEIR_REDUCE_NANSUM) return d != WEIR_COMPLEX64;
  return d != WEIR_COMPLEX64 || !extreme;
}

static weir_dtype out_dtype(weir_reduce_op op, weir_dtype compute)
{
  if (op == WEIR_REDUCE_ARGMAX || op == WEIR_REDUCE_ARGMIN || op == WEIR_REDUCE_NONZERO)
    return WEIR_INT64;
  return op == WEIR_REDUCE_ALL || op == WEIR_REDUCE_ANY ? WEIR_BOOL : compute;
}

/* Sizes in a random order of memory; the first `kept` are the result's. */
static void lay_out(weir_reduce *r)
{
  static const int64_t lengths[] = {1, 2, 3, 5, 16, 17, 100, 513, 700};
  int64_t in_next = 1, out_next = 1;
  r->dims = (int)ref_dice(5);
  r->kept = (int)ref_dice((uint32_t)r->dims + 1);
  r->outputs = r->each = 1;
  for (int d = 0; d < r->dims; d++) {
    r->size[d] = lengths[ref_dice(9)];
    if (r->outputs * r->each * r->size[d] > 6000) r->size[d] = 2;
    *(d < r->kept ? &r->outputs : &r->each) *= r->size[d];
  }
  bool upward = ref_dice(2);
  for (int i = 0; i < r->dims; i++) {
    int d = upward ? i : r->dims - 1 - i;
    r->in.stride[d] = in_next;
    r->out.stride[d] = r->index.stride[d] = out_next;
    in_next *= r->size[d] + ref_dice(2);
    if (d < r->kept) out_next *= r->size[d] + ref_dice(2);
  }
  elements = in_next;
  for (int64_t i = 0; i < in_next; i++)
    ref_store(r->in.dtype, in + (size_t)i * ref_bytes(r->in.dtype), ref_random(r->in.dtype));
}

/* Sums of numbers of all magnitudes overflow on the way in a long double too: tame them. */
static void tame(weir_reduce *r)
{
  bool sum = r->op == WEIR_REDUCE_SUM || r->op == WEIR_REDUCE_MEAN || r->op == WEIR_REDUCE_PROD ||
             r->op == WEIR_REDUCE_NANSUM || is_variance(r->op) || r->op == WEIR_REDUCE_NORM;
  size_t bytes = ref_bytes(r->in.dtype);
  for (size_t i = 0; sum && i < (size_t)elements && ref_is_real(r->in.dtype); i++) {
    element e = {.re = r->op == WEIR_REDUCE_PROD
                           ? (ref_dice(2) ? 1 : -1) * (1 + ref_dice(3) / 64.0L)
                           : (long double)ref_dice(4001) / 128 - 15};
    e.re = ref_round(e.re, r->in.dtype);
    if (r->op == WEIR_REDUCE_NANSUM && !ref_dice(20)) e.re = NAN;
    ref_store(r->in.dtype, in + i * bytes, e);
  }
}

START_TEST(every_reduction_in_every_dtype_is_that_of_a_plain_loop)
{
  for (int d = 0; d < DTYPES; d++)
    for (int round = 0; round < 16 && is_there((weir_reduce_op)_i, dtypes[d]); round++) {
      weir_reduce r = {.op = (weir_reduce_op)_i, .compute = dtypes[d]};
      r.in = (weir_operand){.data = in, .dtype = ref_dice(3) ? dtypes[d] : WEIR_UINT8};
      r.out = (weir_operand){.data = out, .dtype = out_dtype(r.op, dtypes[d])};
      r.index = (weir_operand){.data = places, .dtype = WEIR_INT64};
      r.p = r.op == WEIR_REDUCE_NORM ? ref_dice(7) / 2.0 : ref_dice(3);
      lay_out(&r);
      tame(&r);
      cpu_level_most = round % 2 ? 2 : 0;
      ck_assert_msg(reduce(&r) == WEIR_OK, "%s: %s", names[r.op], weir_error_message());
      if (r.op == WEIR_REDUCE_PROD && r.compute == WEIR_COMPLEX64 && r.each > 50) continue;
      check_reduction(&r);
    }
}
END_TEST

START_TEST(an_empty_reduction_is_the_identity)
{
  static const struct {
    weir_reduce_op op;
    double is;
  } rows[] = {
      {WEIR_REDUCE_SUM, 0}, {WEIR_REDUCE_PROD, 1}, {WEIR_REDUCE_ALL, 1}, {WEIR_REDUCE_ANY, 0}};
  for (int k = 0; k < 4; k++) {
    float got[3] = {7, 7, 7};
    weir_reduce r = {.op = rows[k].op, .compute = WEIR_FLOAT32, .kept = 1, .dims = 2};
    r.size[0] = r.outputs = 3;
    r.in = (weir_operand){.data = in, .dtype = WEIR_FLOAT32, .stride = {1, 1}};
    r.out = (weir_operand){.data = got, .dtype = WEIR_FLOAT32, .stride = {1}};
    ck_assert_int_eq(reduce(&r), WEIR_OK);
    for (int i = 0; i < 3; i++)
      ck_assert_double_eq(got[i], rows[k].is);
    r.op = WEIR_REDUCE_MEAN;
    ck_assert_int_eq(reduce(&r), WEIR_OK);
    ck_assert(isnan(got[2]));
  }
}
END_TEST

START_TEST(what_is_not_there_says_so)
{
  weir_reduce r = {.op = WEIR_REDUCE_ARGMAX, .compute = WEIR_COMPLEX64, .outputs = 1, .each = 1};
  r.in = r.out = (weir_operand){.data = in, .dtype = WEIR_COMPLEX64};
  ck_assert_int_eq(reduce(&r), WEIR_ENOTSUP);
  ck_assert_str_eq(weir_error_message(), "\"argmax_cpu\" not implemented for 'ComplexFloat'");
  r.op = WEIR_REDUCE_MEAN;
  r.compute = WEIR_INT64;
  ck_assert_int_eq(reduce(&r), WEIR_ENOTSUP);
}
END_TEST

START_TEST(a_large_sum_is_exact_to_its_last_place_with_any_threads)
{
  enum { N = 300007 };
  double *x = (double *)in, sum[2];
  int64_t units = 0; /* 2^-30: the sum is exact */
  for (int i = 0; i < N; i++) {
    int64_t k = ref_dice(UINT32_MAX);
    units += k;
    x[i] = (double)k * 0x1p-30;
  }
  for (int k = 0; k < 2; k++) {
    weir_reduce r = {.op = WEIR_REDUCE_SUM, .compute = WEIR_FLOAT64, .dims = 1};
    r.size[0] = r.each = N;
    r.outputs = 1;
    r.in = (weir_operand){.data = x, .dtype = WEIR_FLOAT64, .stride = {1}};
    r.out = (weir_operand){.data = &sum[k], .dtype = WEIR_FLOAT64};
    ck_assert_int_eq(weir_set_num_threads(k ? 4 : 1), WEIR_OK);
    ck_assert_int_eq(reduce(&r), WEIR_OK);
  }
  ck_assert_double_eq(sum[0], sum[1]);
  ck_assert_double_eq(sum[0], (double)units * 0x1p-30);
}
END_TEST

/* ---- random numbers -------------------------------------------------------------------------- */

/* Random123's kat_vectors (github.com/DEShawResearch/random123, tests/kat_vectors), philox4x32 10.
 */
START_TEST(philox_gives_the_published_vectors)
{
  static const uint32_t rows[][10] = {
      {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
      {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
      {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
       0x94fdcceb, 0x5001e420, 0x24126ea1}};
  for (int k = 0; k < 3; k++) {
    const uint32_t *r = rows[k];
    philox_block b = philox_of(r[0], r[1], r[2], r[3], r[4], r[5]);
    ck_assert(memcmp(b.word, r + 6, sizeof b.word) == 0);
  }
}
END_TEST

static void run_cpu_random(weir_random *r, weir_random_kind kind, double a, double b,
                           weir_dtype dtype, int64_t count)
{
  *r = (weir_random){.kind = kind,
                     .a = a,
                     .b = b,
                     .seed = 42,
                     .offset = 1000,
                     .used = philox_blocks(count),
                     .out = out,
                     .dtype = dtype,
                     .count = count};
  ck_assert_int_eq(weir_cpu_backend.compute->random(weir_cpu_backend.self, NULL, r), WEIR_OK);
}

START_TEST(random_numbers_are_the_header_s_whatever_the_threads)
{
  for (int kind = 0; kind < 4; kind++)
    for (int d = 0; d < DTYPES; d++)
      for (int threads = 1; threads < 4; threads += 2) {
        weir_random r;
        ck_assert_int_eq(weir_set_num_threads(threads), WEIR_OK);
        cpu_level_most = threads == 1 ? 0 : 2;
        run_cpu_random(&r, (weir_random_kind)kind, kind == 3 ? 0.25 : 2, 90, dtypes[d], 70001);
        for (int64_t i = 0; i < r.count; i += i % 1000 < 3 ? 1 : 331) {
          element got = ref_load(r.dtype, out + (size_t)i * ref_bytes(r.dtype));
          element want = {.re = philox_element(&r, i)};
          ck_assert(ref_near(got, ref_convert(want, WEIR_FLOAT64, r.dtype), r.dtype, 0));
        }
      }
}
END_TEST

static int by_value(const void *a, const void *b)
{
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The largest distance between what was drawn and its distribution, times sqrt(n): beyond 1.95 once
 * in a thousand (Kolmogorov); the seed is fixed. */
static double distance(double (*cdf)(double), int n)
{
  double most = 0, *x = (double *)out;
  qsort(x, (size_t)n, sizeof *x, by_value);
  for (int i = 0; i < n; i++) {
    double f = cdf(x[i]);
    most = fmax(most, fmax(f - (double)i / n, (double)(i + 1) / n - f));
  }
  return most * sqrt(n);
}

static double uniform(double x)
{
  return x;
}

static double normal(double x)
{
  return erfc(-x / sqrt(2)) / 2;
}

START_TEST(random_numbers_are_distributed_as_they_should)
{
  enum { N = 200000 };
  weir_random r;
  double *x = (double *)out, mean = 0, squares = 0;
  int64_t *i64 = (int64_t *)out, counts[7] = {0};
  run_cpu_random(&r, WEIR_RANDOM_UNIFORM, 0, 1, WEIR_FLOAT64, N);
  ck_assert_double_lt(distance(uniform, N), 1.95);
  run_cpu_random(&r, WEIR_RANDOM_NORMAL, 0, 1, WEIR_FLOAT64, N);
  for (int i = 0; i < N; i++)
    mean += x[i] / N, squares += x[i] * x[i] / N;
  ck_assert_double_lt(fabs(mean), 4 / sqrt(N));
  ck_assert_double_lt(fabs(squares - 1), 4 * sqrt(2.0 / N));
  ck_assert_double_lt(distance(normal, N), 1.95);
  run_cpu_random(&r, WEIR_RANDOM_INTEGER, -3, 4, WEIR_INT64, N);
  for (int i = 0; i < N; i++) {
    ck_assert(i64[i] >= -3 && i64[i] < 4);
    counts[i64[i] + 3]++;
  }
  for (int k = 0; k < 7; k++)
    ck_assert_double_lt(fabs((double)counts[k] - N / 7.0), 4 * sqrt(N / 7.0));
  run_cpu_random(&r, WEIR_RANDOM_BERNOULLI, 0.3, 0, WEIR_UINT8, N);
  for (int i = 0; i < N; i++)
    mean += (uint8_t)out[i];
  ck_assert_double_lt(fabs(mean / N - 0.3), 4 * sqrt(0.21 / N) + 1e-4);
}
END_TEST

START_TEST(uniform_numbers_never_reach_the_upper_bound)
{
  static const weir_dtype real[] = {WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_FLOAT64};
  for (int d = 0; d < 4; d++)
    for (int k = 0; k < 2; k++) {
      weir_random r;
      double a = k ? 3 : 0, b = k ? 3.125 : 1;
      run_cpu_random(&r, WEIR_RANDOM_UNIFORM, a, b, real[d], 60000);
      for (size_t i = 0; i < 60000; i++) {
        long double x = ref_load(real[d], out + i * ref_bytes(real[d])).re;
        ck_assert(x >= a && x < b);
      }
    }
}
END_TEST

/* ---- im2col ---------------------------------------------------------------------------------- */

START_TEST(im2col_gathers_what_each_weight_meets)
{
  for (int round = 0; round < 60; round++) {
    weir_dtype dtype = dtypes[ref_dice(DTYPES)];
    weir_im2col c = {
        .dtype = dtype, .in = in, .out = out, .n = 1 + ref_dice(2), .c = 1 + ref_dice(3)};
    c.h = 5 + ref_dice(6), c.w = 5 + ref_dice(6);
    for (int k = 0; k < 2; k++) {
      c.kernel[k] = 1 + ref_dice(3), c.stride[k] = 1 + ref_dice(2);
      c.pad[k] = ref_dice(3), c.dilation[k] = 1 + ref_dice(2);
    }
    c.oh = (c.h + 2 * c.pad[0] - c.dilation[0] * (c.kernel[0] - 1) - 1) / c.stride[0] + 1;
    c.ow = (c.w + 2 * c.pad[1] - c.dilation[1] * (c.kernel[1] - 1) - 1) / c.stride[1] + 1;
    size_t bytes = ref_bytes(dtype), at = 0;
    for (size_t i = 0; i < (size_t)(c.n * c.c * c.h * c.w) * bytes; i++)
      in[i] = (char)ref_dice(256);
    ck_assert_int_eq(weir_cpu_backend.compute->im2col(weir_cpu_backend.self, NULL, &c), WEIR_OK);
    for (int64_t p = 0; p < c.n * c.c; p++)
      for (int64_t q = 0; q < c.kernel[0] * c.kernel[1] * c.oh * c.ow; q++, at++) {
        int64_t rs = q / (c.oh * c.ow), yx = q % (c.oh * c.ow);
        int64_t y = yx / c.ow * c.stride[0] - c.pad[0] + rs / c.kernel[1] * c.dilation[0];
        int64_t x = yx % c.ow * c.stride[1] - c.pad[1] + rs % c.kernel[1] * c.dilation[1];
        static const char zero[8];
        bool inside = y >= 0 && y < c.h && x >= 0 && x < c.w;
        const char *want = inside ? in + (size_t)((p * c.h + y) * c.w + x) * bytes : zero;
        ck_assert(memcmp(out + at * bytes, want, bytes) == 0);
      }
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu reduce");
  TCase *c = tcase_create("reduce");
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, every_reduction_in_every_dtype_is_that_of_a_plain_loop, 0,
                      WEIR_REDUCE_COUNT);
  tcase_add_test(c, an_empty_reduction_is_the_identity);
  tcase_add_test(c, what_is_not_there_says_so);
  tcase_add_test(c, a_large_sum_is_exact_to_its_last_place_with_any_threads);
  tcase_add_test(c, philox_gives_the_published_vectors);
  tcase_add_test(c, random_numbers_are_the_header_s_whatever_the_threads);
  tcase_add_test(c, random_numbers_are_distributed_as_they_should);
  tcase_add_test(c, uniform_numbers_never_reach_the_upper_bound);
  tcase_add_test(c, im2col_gathers_what_each_weight_meets);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
