/* test_cpu_rows.c: what the cpu calculates of whole rows (softmax, norms), against long double;
 * the same bits by any number of threads and at every level of processor. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/weir/threads.h"
#include "tests/device/reference.h"

enum { MOST = 1 << 18 };

static char in[MOST * 8], grad[MOST * 8], out[MOST * 8], again[MOST * 8];
static const weir_dtype dtypes[] = {WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static long double row_value(const void *memory, weir_dtype d, int64_t i)
{
  return ref_load(d, (const char *)memory + (size_t)i * ref_bytes(d)).re;
}

static void fill_row_values(void *memory, weir_dtype d, int64_t count, double low, double high)
{
  ck_assert_int_le(count, MOST);
  for (int64_t i = 0; i < count; i++) {
    long double x = low + (high - low) * (long double)ref_dice(4001) / 4000;
    ref_store(d, (char *)memory + (size_t)i * ref_bytes(d), (element){.re = ref_round(x, d)});
  }
}

static void run_softmax(const weir_softmax_request *s)
{
  ck_assert_int_eq(weir_cpu_backend.compute->softmax(weir_cpu_backend.self, NULL, s), WEIR_OK);
}

/* Element `at` of a row that begins at `base`; `sum` is the row's. */
static long double softmax_of(const weir_softmax_request *s, int64_t base, int64_t at,
                              long double most, long double sum)
{
  int64_t i = base + at * s->inner;
  long double x = row_value(s->in, s->dtype, i);
  if (!s->grad) return s->logarithm ? x - most - logl(sum) : expl(x - most) / sum;
  long double g = row_value(s->grad, s->dtype, i);
  return s->logarithm ? g - expl(x) * sum : x * (g - sum);
}

static void check_row(const weir_softmax_request *s, int64_t base, double scale)
{
  long double most = -HUGE_VALL, sum = 0;
  for (int64_t k = 0; k < s->each; k++)
    most = fmaxl(most, row_value(s->in, s->dtype, base + k * s->inner));
  for (int64_t k = 0; k < s->each; k++) {
    long double x = row_value(s->in, s->dtype, base + k * s->inner);
    long double g = s->grad ? row_value(s->grad, s->dtype, base + k * s->inner) : 0;
    sum += !s->grad ? expl(x - most) : s->logarithm ? g : g * x;
  }
  for (int64_t k = 0; k < s->each; k++) {
    long double want = softmax_of(s, base, k, most, sum);
    long double got = row_value(s->out, s->dtype, base + k * s->inner);
    long double room = 4 * ref_ulp(fabsl(want) + (s->grad || s->logarithm ? scale : 0), s->dtype);
    /* the difference from the largest is rounded before its exponential is taken */
    if (!s->grad && !s->logarithm) room += fabsl(want) * 20 * ref_ulp(1, s->dtype);
    ck_assert_msg(fabsl(got - want) <= room, "%d of dtype %d, %lld by %lld by %lld: %Lg, not %Lg",
                  (int)k, s->dtype, (long long)s->outer, (long long)s->each, (long long)s->inner,
                  got, want);
  }
}

static void check_softmax(weir_softmax_request *s, double scale)
{
  int64_t count = s->outer * s->each * s->inner;
  fill_row_values(in, s->dtype, count, s->grad ? (s->logarithm ? -9 : 0) : -9, s->grad ? 0.5 : 9);
  fill_row_values(grad, s->dtype, count, -1, 1);
  s->in = in, s->out = out;
  run_softmax(s);
  for (int64_t o = 0; o < s->outer; o++)
    for (int64_t i = 0; i < s->inner; i++)
      check_row(s, o * s->each * s->inner + i, scale);
}

/* A row, columns of all widths, few columns; short and long. */
static const int64_t shapes[][3] = {
    {1, 1, 1}, {3, 5, 1},     {2, 31, 1},   {5, 1000, 1}, {1, 20000, 1}, {2, 7, 3},   {1, 2500, 7},
    {2, 9, 8}, {1, 100, 129}, {3, 130, 17}, {1, 1, 300},  {4, 2, 2},     {1, 64, 256}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

START_TEST(softmax_of_every_dtype_and_shape_is_that_of_long_double)
{
  for (int k = 0; k < SHAPES; k++)
    for (int kind = 0; kind < 4; kind++) {
      cpu_level_most = (k + kind) % 3;
      weir_softmax_request s = {
          .dtype = dtypes[_i], .logarithm = kind & 1, .grad = kind & 2 ? grad : NULL};
      s.outer = shapes[k][0], s.each = shapes[k][1], s.inner = shapes[k][2];
      check_softmax(&s, s.grad ? (double)s.each : 30);
    }
}
END_TEST

START_TEST(threads_and_levels_change_no_bit_of_softmax)
{
  for (int kind = 0; kind < 8; kind++) {
    weir_softmax_request s = {
        .dtype = dtypes[_i], .logarithm = kind & 1, .grad = kind & 2 ? grad : NULL};
    s.in = in, s.out = out;
    s.outer = kind & 4 ? 4 : 100, s.each = 1077, s.inner = kind & 4 ? 50 : 1;
    int64_t count = s.outer * s.each * s.inner;
    size_t bytes = (size_t)count * ref_bytes(s.dtype);
    fill_row_values(in, s.dtype, count, -9, 0);
    fill_row_values(grad, s.dtype, count, -1, 1);
    cpu_level_most = 0;
    ck_assert_int_eq(weir_set_num_threads(1), WEIR_OK);
    run_softmax(&s);
    memcpy(again, out, bytes);
    for (int level = 1; level < 3; level++) {
      cpu_level_most = level;
      ck_assert_int_eq(weir_set_num_threads(level * 2), WEIR_OK);
      memset(out, 0, bytes);
      run_softmax(&s);
      ck_assert_msg(!memcmp(out, again, bytes), "kind %d at level %d", kind, level);
    }
  }
}
END_TEST

START_TEST(softmax_may_be_in_the_place_of_its_input)
{
  weir_softmax_request s = {.dtype = dtypes[_i], .in = in, .out = out, .inner = 1};
  for (s.inner = 1; s.inner < 40; s.inner += 13) {
    s.outer = 7, s.each = 90;
    int64_t count = s.outer * s.each * s.inner;
    fill_row_values(in, s.dtype, count, -4, 4);
    run_softmax(&s);
    weir_softmax_request here = s;
    here.out = in;
    run_softmax(&here);
    ck_assert(!memcmp(in, out, (size_t)count * ref_bytes(s.dtype)));
  }
}
END_TEST

/* Nothing but -infinity, an infinity, a NaN: the row is NaN; -infinity beside numbers is 0. */
START_TEST(infinities_of_softmax_are_as_torchs)
{
  static const float rows[4][3] = {
      {-INFINITY, -INFINITY, -INFINITY}, {0, INFINITY, 1}, {0, NAN, 1}, {-INFINITY, 0, -200}};
  float result[4][3];
  weir_softmax_request s = {
      .dtype = WEIR_FLOAT32, .in = rows, .out = result, .outer = 4, .each = 3, .inner = 1};
  run_softmax(&s);
  for (int i = 0; i < 3; i++)
    ck_assert(isnan(result[0][i]) && isnan(result[2][i]));
  ck_assert(isnan(result[1][1]));
  ck_assert(result[3][0] == 0 && result[3][1] == 1 && result[3][2] == 0);
}
END_TEST

/* ---- norms ----------------------------------------------------------------------------------- */

static char weight[MOST * 8], bias[MOST * 8];

static void run_norm(const weir_norm_request *q)
{
  ck_assert_int_eq(weir_cpu_backend.compute->norm(weir_cpu_backend.self, NULL, q), WEIR_OK);
}

/* The weight, or the bias, of element i of a row. */
static long double parameter_of(const weir_norm_request *q, const void *memory, int64_t row,
                                int64_t i, double none)
{
  weir_dtype wide = q->dtype == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32;
  int64_t at = row % q->groups * (q->each / q->inner) + i / q->inner;
  return memory ? row_value(memory, wide, at) : (long double)none;
}

typedef struct norm_sums {
  long double mean, times, grads, products; /* the last two: means of what comes back */
} norm_sums;

static norm_sums sums_of(const weir_norm_request *q, int64_t row)
{
  norm_sums s = {.times = 1};
  int64_t base = row * q->each;
  long double square = 0;
  for (int64_t i = 0; i < q->each && q->kind == WEIR_NORM_LAYER; i++)
    s.mean += row_value(q->in, q->dtype, base + i) / (long double)q->each;
  for (int64_t i = 0; i < q->each; i++) {
    long double x = row_value(q->in, q->dtype, base + i) - s.mean;
    square += x * x / (long double)q->each;
  }
  if (q->kind != WEIR_NORM_AFFINE) s.times = 1 / sqrtl(square + q->eps);
  for (int64_t i = 0; i < q->each && q->grad; i++) {
    long double x = (row_value(q->in, q->dtype, base + i) - s.mean) * s.times;
    long double g = row_value(q->grad, q->dtype, base + i) * parameter_of(q, q->weight, row, i, 1);
    if (q->kind == WEIR_NORM_LAYER) s.grads += g / (long double)q->each;
    s.products += g * x / (long double)q->each;
  }
  return s;
}

static void check_norm(const weir_norm_request *q)
{
  for (int64_t row = 0; row < q->rows; row++) {
    norm_sums s = sums_of(q, row);
    for (int64_t i = 0; i < q->each; i++) {
      int64_t at = row * q->each + i;
      long double x = (row_value(q->in, q->dtype, at) - s.mean) * s.times;
      long double w = parameter_of(q, q->weight, row, i, 1), want;
      want = x * w + parameter_of(q, q->bias, row, i, 0);
      if (q->grad)
        want = s.times * (row_value(q->grad, q->dtype, at) * w - s.grads - x * s.products);
      long double got = row_value(q->out, q->dtype, at);
      long double wide = ref_ulp(16 + fabsl(s.mean * s.times) * 4,
                                 q->dtype == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32);
      ck_assert_msg(fabsl(got - want) <= ref_ulp(fabsl(want), q->dtype) + 8 * wide,
                    "kind %d dtype %d, %lld of %lld by %lld: %Lg, not %Lg", q->kind, q->dtype,
                    (long long)i, (long long)q->rows, (long long)q->each, got, want);
    }
  }
}

/* rows, each, groups, inner */
static const int64_t norm_shapes[][4] = {{1, 1, 1, 1},    {3, 31, 1, 1},   {7, 1500, 1, 1},
                                         {6, 12, 3, 4},   {8, 49, 4, 49},  {4, 640, 2, 64},
                                         {10, 33, 5, 33}, {2, 20000, 1, 1}};
enum { NORM_SHAPES = sizeof norm_shapes / sizeof *norm_shapes, NORM_KINDS = 5 };

/* kind 0 to 2: forward; 3, 4: what comes back through LAYER, RMS. */
static weir_norm_request norm_request(weir_dtype d, int shape, int kind, bool parameters)
{
  weir_norm_request q = {.dtype = d, .kind = kind % 3, .in = in, .out = out, .eps = 0.01};
  weir_dtype wide = d == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32;
  q.rows = norm_shapes[shape][0], q.each = norm_shapes[shape][1];
  q.groups = norm_shapes[shape][2], q.inner = norm_shapes[shape][3];
  int64_t count = q.rows * q.each, has = q.groups * (q.each / q.inner);
  fill_row_values(in, d, count, -2, 4);
  fill_row_values(grad, d, count, -1, 1);
  fill_row_values(weight, wide, has, 0.5, 2);
  fill_row_values(bias, wide, has, -1, 1);
  if (kind > 2) q.grad = grad;
  if (parameters) q.weight = weight, q.bias = bias;
  return q;
}

START_TEST(norms_of_every_dtype_and_shape_are_those_of_long_double)
{
  for (int k = 0; k < NORM_SHAPES; k++)
    for (int kind = 0; kind < NORM_KINDS; kind++)
      for (int parameters = 0; parameters < 2; parameters++) {
        cpu_level_most = (k + kind) % 3;
        weir_norm_request q = norm_request(dtypes[_i], k, kind, parameters);
        run_norm(&q);
        check_norm(&q);
      }
}
END_TEST

START_TEST(threads_and_levels_change_no_bit_of_norms)
{
  for (int k = 0; k < NORM_SHAPES; k++)
    for (int kind = 0; kind < NORM_KINDS; kind++) {
      weir_norm_request q = norm_request(dtypes[_i], k, kind, true);
      size_t bytes = (size_t)(q.rows * q.each) * ref_bytes(q.dtype);
      cpu_level_most = 0;
      ck_assert_int_eq(weir_set_num_threads(1), WEIR_OK);
      run_norm(&q);
      memcpy(again, out, bytes);
      for (int level = 1; level < 3; level++) {
        cpu_level_most = level;
        ck_assert_int_eq(weir_set_num_threads(level * 2), WEIR_OK);
        memset(out, 0, bytes);
        run_norm(&q);
        ck_assert_msg(!memcmp(out, again, bytes), "kind %d at level %d", kind, level);
      }
    }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu rows");
  TCase *t = tcase_create("rows");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, softmax_of_every_dtype_and_shape_is_that_of_long_double, 0, DTYPES);
  tcase_add_loop_test(t, threads_and_levels_change_no_bit_of_softmax, 0, DTYPES);
  tcase_add_loop_test(t, softmax_may_be_in_the_place_of_its_input, 0, DTYPES);
  tcase_add_test(t, infinities_of_softmax_are_as_torchs);
  tcase_add_loop_test(t, norms_of_every_dtype_and_shape_are_those_of_long_double, 0, DTYPES);
  tcase_add_loop_test(t, threads_and_levels_change_no_bit_of_norms, 0, DTYPES);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
