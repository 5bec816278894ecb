/* test_cpu_rows.c: what the cpu calculates of whole rows (softmax), against long double; the same
 * bits by any number of threads and at every level of processor. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/cpu.h"
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

int main(void)
{
  Suite *s = suite_create("cpu rows");
  TCase *t = tcase_create("rows");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, softmax_of_every_dtype_and_shape_is_that_of_long_double, 0, DTYPES);
  tcase_add_loop_test(t, threads_and_levels_change_no_bit_of_softmax, 0, DTYPES);
  tcase_add_loop_test(t, softmax_may_be_in_the_place_of_its_input, 0, DTYPES);
  tcase_add_test(t, infinities_of_softmax_are_as_torchs);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
