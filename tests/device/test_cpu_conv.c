/* test_cpu_conv.c: convolution on the cpu, against sums in long double (by oneDNN, too, where the
 * environment asks for it: WEIR_BLAS=vendor); the same bits of Weir's own by any number of
 * threads. */
#include <check.h>
#include <math.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/weir/blas.h"
#include "core/weir/threads.h"
#include "tests/device/reference.h"

enum { MOST = 1 << 18 };

static char in[MOST * 8], weight[MOST * 8], bias[4096 * 8], out[MOST * 8], again[MOST * 8];
static const weir_dtype dtypes[] = {WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_FLOAT64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static long double conv_value(const void *memory, weir_dtype d, int64_t i)
{
  return ref_load(d, (const char *)memory + (size_t)i * ref_bytes(d)).re;
}

static void fill_conv_values(void *memory, weir_dtype d, int64_t count)
{
  ck_assert_int_le(count, MOST);
  for (int64_t i = 0; i < count; i++) {
    long double x = (long double)ref_dice(2001) / 1000 - 1;
    ref_store(d, (char *)memory + (size_t)i * ref_bytes(d), (element){.re = ref_round(x, d)});
  }
}

/* Output element (y, x) of plane `plane` of image n; *size: what was added in magnitude. */
static long double convolved(const weir_conv *c, int64_t n, int64_t plane, int64_t y, int64_t x,
                             long double *size)
{
  int64_t group = plane / c->outs;
  long double sum = c->bias ? conv_value(c->bias, c->dtype, plane) : 0;
  *size = fabsl(sum);
  for (int64_t k = 0; k < c->channels * c->kernel[0] * c->kernel[1]; k++) {
    int64_t s = k % c->kernel[1], r = k / c->kernel[1] % c->kernel[0];
    int64_t channel = (n * c->groups + group) * c->channels + k / c->kernel[1] / c->kernel[0];
    int64_t row = y * c->stride[0] - c->pad[0] + r * c->dilation[0];
    int64_t column = x * c->stride[1] - c->pad[1] + s * c->dilation[1];
    if (row < 0 || row >= c->size[0] || column < 0 || column >= c->size[1]) continue;
    int64_t at = (channel * c->size[0] + row) * c->size[1] + column;
    int64_t taken = plane * c->channels * c->kernel[0] * c->kernel[1] + k;
    long double part = conv_value(c->in, c->dtype, at) * conv_value(c->weight, c->dtype, taken);
    sum += part;
    *size += fabsl(part);
  }
  return sum;
}

static void run_conv(const weir_conv *c)
{
  ck_assert_int_eq(weir_cpu_backend.compute->conv(weir_cpu_backend.self, NULL, c), WEIR_OK);
}

static void fill_conv(weir_conv *c)
{
  int64_t planes = c->groups * c->outs;
  for (int i = 0; i < 2; i++)
    c->result[i] =
        (c->size[i] + 2 * c->pad[i] - c->dilation[i] * (c->kernel[i] - 1) - 1) / c->stride[i] + 1;
  fill_conv_values(in, c->dtype, c->n * c->groups * c->channels * c->size[0] * c->size[1]);
  fill_conv_values(weight, c->dtype, planes * c->channels * c->kernel[0] * c->kernel[1]);
  fill_conv_values(bias, c->dtype, planes);
  ck_assert_int_le(c->n * planes * c->result[0] * c->result[1], MOST);
  c->in = in, c->weight = weight, c->out = out;
}

static void check_conv(const weir_conv *c, int level)
{
  int64_t planes = c->groups * c->outs, area = c->result[0] * c->result[1];
  weir_dtype wide = c->dtype == WEIR_FLOAT64 ? WEIR_FLOAT64 : WEIR_FLOAT32;
  for (int64_t i = 0; i < c->n * planes * area; i++) {
    long double size, got = conv_value(c->out, c->dtype, i);
    long double want = convolved(c, i / area / planes, i / area % planes, i % area / c->result[1],
                                 i % c->result[1], &size);
    long double room = ref_ulp(fabsl(want), c->dtype) + 16 * ref_ulp(size, wide);
    ck_assert_msg(
        fabsl(got - want) <= room,
        "dtype %d, level %d: %lldx%lldx%lldx(%lld, %lld) kernel (%lld, %lld) stride (%lld, "
        "%lld) pad (%lld, %lld) outs %lld: element %lld is %Lg, not %Lg",
        c->dtype, level, (long long)c->n, (long long)c->groups, (long long)c->channels,
        (long long)c->size[0], (long long)c->size[1], (long long)c->kernel[0],
        (long long)c->kernel[1], (long long)c->stride[0], (long long)c->stride[1],
        (long long)c->pad[0], (long long)c->pad[1], (long long)c->outs, (long long)i, got, want);
  }
}

static weir_conv random_conv(weir_dtype dtype)
{
  weir_conv c = {.dtype = dtype, .n = 1 + ref_dice(3), .groups = 1 + ref_dice(2) * ref_dice(4)};
  c.channels = 1 + ref_dice(4), c.outs = 1 + ref_dice(3) * ref_dice(9);
  for (int i = 0; i < 2; i++) {
    c.kernel[i] = 1 + ref_dice(4);
    c.stride[i] = 1 + ref_dice(2) * ref_dice(4);
    c.dilation[i] = 1 + ref_dice(2) * ref_dice(3);
    c.pad[i] = ref_dice(2) * ref_dice(4);
    int64_t span = (c.kernel[i] - 1) * c.dilation[i] + 1;
    c.size[i] = (span > 2 * c.pad[i] ? span - 2 * c.pad[i] : 1) + ref_dice(12);
  }
  c.bias = ref_dice(2) ? bias : NULL;
  return c;
}

START_TEST(convolutions_of_any_kind_are_their_sums)
{
  for (int round = 0; round < 60; round++) {
    weir_conv c = random_conv(dtypes[_i]);
    cpu_level_most = round % 3;
    ck_assert_int_eq(weir_set_num_threads(1 + round % 4), WEIR_OK);
    fill_conv(&c);
    run_conv(&c);
    check_conv(&c, cpu_level_most);
  }
}
END_TEST

/* More positions than a chunk has, more terms than are taken at a time, more panels than one,
 * images that go together; of many output planes those whose elements are calculated alone, by
 * rows that are short, longer, long. */
static const weir_conv large[] = {
    {.n = 1, .groups = 1, .channels = 1, .outs = 5, .size = {50, 60}, .kernel = {3, 3}},
    {.n = 7, .groups = 1, .channels = 60, .outs = 33, .size = {5, 4}, .kernel = {3, 3}},
    {.n = 2, .groups = 9, .channels = 1, .outs = 1, .size = {40, 33}, .kernel = {5, 5}},
    {.n = 1, .groups = 1, .channels = 2, .outs = 4, .size = {3, 2500}, .kernel = {2, 7}},
    {.n = 5, .groups = 2, .channels = 30, .outs = 112, .size = {5, 4}, .kernel = {3, 3}},
    {.n = 3, .groups = 1, .channels = 7, .outs = 112, .size = {3, 14}, .kernel = {5, 3}},
    {.n = 3, .groups = 1, .channels = 7, .outs = 112, .size = {3, 19}, .kernel = {5, 3}}};
enum { LARGE = sizeof large / sizeof *large };

static weir_conv large_conv(int which, weir_dtype dtype)
{
  weir_conv c = large[which];
  c.dtype = dtype, c.bias = bias;
  for (int i = 0; i < 2; i++)
    c.stride[i] = c.dilation[i] = c.pad[i] = 1;
  return c;
}

START_TEST(large_convolutions_are_put_together_from_parts)
{
  for (int which = 0; which < LARGE; which++) {
    weir_conv c = large_conv(which, dtypes[_i]);
    cpu_level_most = which % 3;
    fill_conv(&c);
    run_conv(&c);
    check_conv(&c, cpu_level_most);
  }
}
END_TEST

/* By strides of 2 along rows: of all lengths and paddings, so that either of two phases is the
 * longer. */
START_TEST(rows_are_split_by_strides_of_two)
{
  for (int round = 0; round < 64; round++) {
    weir_conv c = {.dtype = WEIR_FLOAT32, .n = 2, .groups = 2, .channels = 2, .outs = 2};
    c.size[0] = 7, c.size[1] = 6 + round / 4;
    c.stride[0] = 1 + round % 3, c.stride[1] = 2;
    for (int i = 0; i < 2; i++)
      c.kernel[i] = 3, c.dilation[i] = 1, c.pad[i] = round % 4;
    cpu_level_most = round % 3;
    fill_conv(&c);
    run_conv(&c);
    check_conv(&c, cpu_level_most);
  }
}
END_TEST

START_TEST(threads_change_no_bit_of_a_convolution)
{
  ck_assert_int_eq(weir_set_blas(WEIR_BLAS_BUILTIN), WEIR_OK);
  for (int which = 0; which < LARGE; which++) {
    weir_conv c = large_conv(which, WEIR_FLOAT32);
    fill_conv(&c);
    size_t bytes = (size_t)(c.n * c.groups * c.outs * c.result[0] * c.result[1]) * 4;
    ck_assert_int_eq(weir_set_num_threads(1), WEIR_OK);
    run_conv(&c);
    memcpy(again, out, bytes);
    memset(out, 0, bytes);
    ck_assert_int_eq(weir_set_num_threads(5), WEIR_OK);
    run_conv(&c);
    ck_assert(memcmp(out, again, bytes) == 0);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu conv");
  TCase *t = tcase_create("conv");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, convolutions_of_any_kind_are_their_sums, 0, DTYPES);
  tcase_add_loop_test(t, large_convolutions_are_put_together_from_parts, 0, DTYPES);
  tcase_add_test(t, rows_are_split_by_strides_of_two);
  tcase_add_test(t, threads_change_no_bit_of_a_convolution);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
