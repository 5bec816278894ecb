/* test_order.c: running reductions, elements in order, places in what is in order (order.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

static const weir_dtype ordered[] = {WEIR_UINT8,   WEIR_INT8,    WEIR_INT16,    WEIR_INT32,
                                     WEIR_INT64,   WEIR_BOOL,    WEIR_FLOAT16,  WEIR_BFLOAT16,
                                     WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64};
enum { ORDERED = sizeof ordered / sizeof *ordered - 1 }; /* all but complex64 */

static weir_tensor *tensor_of(const double *values, weir_shape shape, weir_dtype dtype,
                              weir_device d)
{
  weir_tensor *t = NULL;
  weir_options o = as(dtype, d);
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, shape, &o));
  return t;
}
#define TENSOR(shape, dtype, d, ...) tensor_of((const double[]){__VA_ARGS__}, shape, dtype, d)

static void drop_all(weir_tensor **t, int count)
{
  for (int i = 0; i < count; i++)
    weir_tensor_drop(&t[i]);
}

/* Its elements are these, some of them NaN. */
static void numbers_are(const weir_tensor *t, int count, const double *values)
{
  WEIR_TENSOR host = NULL;
  WEIR_TENSOR wide = NULL;
  weir_ok(weir_cpu(&host, t));
  WEIR_TENSOR rows = NULL;
  weir_ok(weir_contiguous(&rows, host));
  weir_ok(weir_to_dtype(&wide, rows, WEIR_FLOAT64));
  const double *x = (const double *)(void *)wide->data;
  ck_assert_int_eq(wide->numel, count);
  for (int i = 0; i < count; i++)
    ck_assert_msg(x[i] == values[i] || (isnan(x[i]) && isnan(values[i])),
                  "element %d is %g, not %g", i, x[i], values[i]);
}
#define NUMBERS(t, ...)                                                                            \
  numbers_are((t), (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),                  \
              (const double[]){__VA_ARGS__})

/* A pair of results is these. */
static void pair_is(weir_tensor *r[2], int count, const double *values, const double *places)
{
  numbers_are(r[0], count, values);
  elements_are(r[1], count, places);
  ck_assert_int_eq(weir_tensor_dtype(r[1]), WEIR_INT64);
  drop_all(r, 2);
}
#define PAIR(r, count, ...)                                                                        \
  pair_is((r), (count), ((const double[2][count])__VA_ARGS__)[0],                                  \
          ((const double[2][count])__VA_ARGS__)[1])

/* ---- small ones ------------------------------------------------------------------------------ */

START_TEST(running_reductions_go_on_from_element_to_element)
{
  weir_tensor *r[2] = {NULL};
  devices(2);
  WEIR_TENSOR a = TENSOR(weir_shape(2, 3), WEIR_FLOAT32, device(_i), 3, 1, 3, 5, NAN, 4);
  WEIR_TENSOR i = TENSOR(weir_shape(2, 3), WEIR_INT32, device(_i), 3, 1, 2, 3, 3, 1);
  WEIR_TENSOR b = TENSOR(weir_shape(3), WEIR_BOOL, device(_i), 1, 0, 1);
  weir_ok(weir_cumsum(&r[0], i, 0));
  ck_assert_int_eq(weir_tensor_dtype(r[0]), WEIR_INT64);
  EXPECT(r[0], 3, 1, 2, 6, 4, 3);
  weir_ok(weir_cumprod(&r[1], i, -1));
  EXPECT(r[1], 3, 3, 6, 3, 9, 9);
  drop_all(r, 2);
  weir_ok(weir_cumsum(r, b, 0));
  EXPECT(r[0], 1, 1, 2);
  drop_all(r, 1);
  weir_ok(weir_cummax(&r[0], &r[1], a, 1));
  PAIR(r, 6, {{3, 3, 3, 5, NAN, NAN}, {0, 0, 2, 0, 1, 1}});
  weir_ok(weir_cummin(&r[0], &r[1], i, 1));
  PAIR(r, 6, {{3, 1, 1, 3, 3, 1}, {0, 1, 1, 0, 1, 2}});
  weir_ok(weir_cumsum_(i, 1));
  ck_assert_int_eq(weir_tensor_dtype(i), WEIR_INT32);
  EXPECT(i, 3, 4, 6, 3, 6, 7);
  weir_ok(weir_cumprod_(i, 0));
  EXPECT(i, 3, 4, 6, 9, 24, 42);
  WEIR_TENSOR x = TENSOR(weir_shape(6), WEIR_FLOAT64, device(_i), -INFINITY, -INFINITY, 1000, 1000,
                         INFINITY, 2);
  weir_ok(weir_logcumsumexp(r, x, 0));
  NUMBERS(r[0], -INFINITY, -INFINITY, 1000, 1000 + log(2), INFINITY, INFINITY);
  drop_all(r, 1);
  refused_with(WEIR_ENOTSUP, "not implemented for 'Bool'", weir_cumsum_(b, 0));
  refused_with(WEIR_ENOTSUP, "not implemented for 'Int'", weir_logcumsumexp(r, i, 0));
  refused(WEIR_EINVAL, "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
          weir_cummax(&r[0], &r[1], a, 2));
  ck_assert_ptr_null(r[0]);
}
END_TEST

START_TEST(elements_in_order_keep_equals_in_theirs)
{
  weir_tensor *r[2] = {NULL};
  devices(2);
  WEIR_TENSOR a = TENSOR(weir_shape(2, 4), WEIR_FLOAT32, device(_i), 3, 1, NAN, 1, 0, -0.0, 0, -1);
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR c = NULL;
  weir_ok(weir_sort(&r[0], &r[1], a, 1, false));
  PAIR(r, 8, {{1, 1, 3, NAN, -1, 0, -0.0, 0}, {1, 3, 0, 2, 3, 0, 1, 2}});
  weir_ok(weir_sort(&r[0], &r[1], a, -1, true));
  PAIR(r, 8, {{NAN, 3, 1, 1, 0, -0.0, 0, -1}, {2, 0, 1, 3, 0, 1, 2, 3}});
  weir_ok(weir_transpose(&t, a, 0, 1));
  weir_ok(weir_sort(&r[0], &r[1], t, 1, false));
  strides_are(r[0], weir_shape(1, 4));
  PAIR(r, 8, {{0, 3, -0.0, 1, 0, NAN, -1, 1}, {1, 0, 1, 0, 1, 0, 1, 0}});
  weir_ok(weir_argsort(r, a, 0, false));
  EXPECT(r[0], 1, 1, 1, 1, 0, 0, 0, 0);
  drop_all(r, 1);
  weir_ok(weir_topk(&r[0], &r[1], a, 2, 1, true));
  PAIR(r, 4, {{NAN, 3, 0, -0.0}, {2, 0, 0, 1}});
  weir_ok(weir_topk(&r[0], &r[1], a, 1, 0, false));
  PAIR(r, 4, {{0, -0.0, 0, -1}, {1, 1, 1, 1}});
  weir_ok(weir_kthvalue(&r[0], &r[1], a, 3, 1, true));
  shape_is(r[0], weir_shape(2, 1));
  PAIR(r, 2, {{3, -0.0}, {0, 1}});
  refused(WEIR_EINVAL, "selected index k out of range", weir_topk(&r[0], &r[1], a, 5, 1, true));
  refused(WEIR_EINVAL, "kthvalue(): selected number k out of range for dimension 1",
          weir_kthvalue(&r[0], &r[1], a, 0, 1, true));
  weir_ok(weir_to_dtype(&c, a, WEIR_COMPLEX64));
  refused(WEIR_ENOTSUP, " Sort does not support complex dtypes on CPU",
          weir_sort(&r[0], &r[1], c, 0, false));
}
END_TEST

START_TEST(the_middle_is_the_smaller_of_two_and_nan_where_there_is_one)
{
  weir_tensor *r[2] = {NULL};
  devices(2);
  WEIR_TENSOR a = TENSOR(weir_shape(2, 4), WEIR_FLOAT32, device(_i), 3, 1, 2, 4, 5, NAN, 4, NAN);
  WEIR_TENSOR e = TENSOR(weir_shape(0, 2), WEIR_INT32, device(_i), 0);
  weir_ok(weir_median_dim(&r[0], &r[1], a, 1, false));
  PAIR(r, 2, {{2, NAN}, {2, 1}});
  weir_ok(weir_nanmedian_dim(&r[0], &r[1], a, 1, true));
  shape_is(r[0], weir_shape(2, 1));
  PAIR(r, 2, {{2, 4}, {2, 2}});
  weir_ok(weir_median(&r[0], a));
  weir_ok(weir_nanmedian(&r[1], a));
  NUMBERS(r[0], NAN);
  EXPECT(r[1], 3);
  drop_all(r, 2);
  weir_ok(weir_median(&r[0], e));
  EXPECT(r[0], INT32_MIN);
  drop_all(r, 1);
  weir_ok(weir_quantile_dim(&r[0], a, 0.25, 1, false));
  NUMBERS(r[0], 1.75, NAN);
  drop_all(r, 1);
  weir_ok(weir_nanquantile_dim(&r[0], a, 0.25, 1, true));
  shape_is(r[0], weir_shape(2, 1));
  NUMBERS(r[0], 1.75, 4.25);
  drop_all(r, 1);
  weir_ok(weir_nanquantile(&r[0], a, 0.5));
  NUMBERS(r[0], 3.5);
  drop_all(r, 1);
  WEIR_TENSOR row = NULL;
  weir_ok(weir_select(&row, a, 0, 0));
  weir_ok(weir_quantile(&r[0], row, 0.9));
  weir_scalar v;
  weir_ok(weir_item(&v, r[0]));
  ck_assert_double_eq_tol(v.f, 3.7, 1e-6);
  drop_all(r, 1);
  WEIR_TENSOR whole = TENSOR(weir_shape(1), WEIR_INT32, device(_i), 0);
  refused(WEIR_EINVAL, "quantile() q must be in the range [0, 1] but got 1.5",
          weir_quantile(r, a, 1.5));
  refused(WEIR_ENOTSUP, "quantile() input tensor must be either float or double dtype",
          weir_quantile(r, whole, 1));
  refused(WEIR_EINVAL, "median(): Expected reduction dim 0 to have non-zero size.",
          weir_median_dim(&r[0], &r[1], e, 0, false));
}
END_TEST

START_TEST(places_in_what_is_in_order)
{
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR s = TENSOR(weir_shape(4), WEIR_FLOAT32, device(_i), 1, 2, 2, 5);
  WEIR_TENSOR v = TENSOR(weir_shape(2, 3), WEIR_INT32, device(_i), 2, 9, 0, 1, 5, 3);
  WEIR_TENSOR rows = TENSOR(weir_shape(2, 2), WEIR_INT32, device(_i), 1, 5, 2, 3);
  WEIR_TENSOR nan = TENSOR(weir_shape(2), WEIR_FLOAT32, device(_i), NAN, 2);
  weir_ok(weir_searchsorted(&r, s, v, false, false));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_INT64);
  EXPECT(r, 1, 4, 0, 0, 3, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_bucketize(&r, v, s, true, true));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_INT32);
  EXPECT(r, 3, 4, 0, 1, 4, 3);
  weir_tensor_drop(&r);
  weir_ok(weir_searchsorted(&r, rows, v, true, false));
  EXPECT(r, 1, 2, 0, 0, 2, 2);
  weir_tensor_drop(&r);
  weir_ok(weir_searchsorted(&r, s, nan, false, false));
  EXPECT(r, 4, 1);
  weir_tensor_drop(&r);
  weir_ok(weir_isin(&r, v, s, false));
  EXPECT(r, 1, 0, 0, 1, 1, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_isin(&r, nan, nan, true));
  EXPECT(r, 1, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_diff(&r, v, 1, 1));
  EXPECT(r, 7, -9, 4, -2);
  weir_tensor_drop(&r);
  weir_ok(weir_diff(&r, v, 2, -1));
  EXPECT(r, -16, -6);
  weir_tensor_drop(&r);
  refused(WEIR_EINVAL, "order must be non-negative but got -1", weir_diff(&r, v, -1, 0));
  refused(WEIR_EINVAL, "boundaries tensor must be 1 dimension, but got dim(2)",
          weir_bucketize(&r, v, rows, false, false));
  refused_with(WEIR_EINVAL, "but we got boundaries tensor [2, 2] and input value tensor [2]",
               weir_searchsorted(&r, rows, nan, false, false));
}
END_TEST

/* ---- beside plain loops ---------------------------------------------------------------------- */

/* For each of many elements: an assertion of Check writes to a file even where it holds. */
#define HOLDS(x) ((x) ? (void)0 : ck_abort_msg("%s", #x))

/* A line's elements at a distance, as doubles; host memory. */
static double *line_of(const weir_tensor *t, int64_t row, int64_t column)
{
  WEIR_TENSOR host = NULL;
  WEIR_TENSOR wide = NULL;
  weir_ok(weir_cpu(&host, t));
  weir_ok(weir_to_dtype(&wide, host, WEIR_FLOAT64));
  int64_t n = wide->size[1], inner = wide->size[2];
  double *x = malloc((size_t)n * sizeof *x);
  for (int64_t i = 0; i < n; i++)
    x[i] = ((const double *)(void *)wide->data)[(row * n + i) * inner + column];
  return x;
}

/* rows x n x inner numbers, many of them alike; of floating point some are NaN. */
static weir_tensor *many(weir_shape shape, weir_dtype dtype, weir_device d)
{
  int64_t n = shape.size[0] * shape.size[1] * shape.size[2];
  double *x = malloc((size_t)n * sizeof *x);
  bool real = dtype_is_floating(dtype);
  uint64_t state = 88172645463325252U + (uint64_t)n;
  for (int64_t i = 0; i < n; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    x[i] = (double)(state >> 40 & 127) - (dtype == WEIR_UINT8 ? 0 : 64);
    if (real && state % 1001 == 0) x[i] = NAN;
  }
  weir_tensor *t = tensor_of(x, shape, dtype, d);
  free(x);
  return t;
}

static bool goes_before(double a, double b, bool descending)
{
  double x = descending ? b : a, y = descending ? a : b;
  return isnan(y) ? !isnan(x) : x < y;
}

/* What stands at `at` of `line` in order. */
static void line_is_sorted(const double *line, const double *sorted, const double *at, int64_t n,
                           bool descending)
{
  bool *seen = calloc((size_t)n, 1);
  for (int64_t i = 0; i < n; i++) {
    int64_t place = (int64_t)at[i];
    HOLDS(place >= 0 && place < n && !seen[place]);
    seen[place] = true;
    HOLDS(line[place] == sorted[i] || (isnan(line[place]) && isnan(sorted[i])));
    if (!i) continue;
    HOLDS(!goes_before(sorted[i], sorted[i - 1], descending));
    if (!goes_before(sorted[i - 1], sorted[i], descending)) HOLDS(at[i - 1] < at[i]);
  }
  free(seen);
}

static const int64_t shapes[][3] = {{3, 1, 2},    {2, 7, 3},    {70, 24, 1},  {2, 25, 1},
                                    {1, 1024, 1}, {1, 1025, 1}, {2, 2049, 3}, {1, 9000, 1}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void sorted_lines_are_right(weir_dtype dtype, const int64_t *size, weir_device d)
{
  weir_tensor *r[2] = {NULL};
  WEIR_TENSOR a = many(weir_shape_of(3, size), dtype, d);
  for (int down = 0; down < 2; down++) {
    weir_ok(weir_sort(&r[0], &r[1], a, 1, down));
    int64_t row = size[0] - 1, column = size[2] - 1;
    double *line = line_of(a, row, column), *sorted = line_of(r[0], row, column),
           *at = line_of(r[1], row, column);
    line_is_sorted(line, sorted, at, size[1], down);
    free(line), free(sorted), free(at);
    drop_all(r, 2);
  }
}

START_TEST(lines_of_any_length_and_dtype_come_in_order)
{
  devices(2);
  for (int s = 0; s < SHAPES; s++)
    for (int t = 0; t < ORDERED; t++)
      if (s < 3 || ordered[t] == WEIR_FLOAT32 || ordered[t] == WEIR_INT64)
        sorted_lines_are_right(ordered[t], shapes[s], device(_i));
}
END_TEST

/* Both tensors have the same bytes, wherever they are. */
static void bytes_are_alike(const weir_tensor *a, const weir_tensor *b)
{
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  weir_ok(weir_cpu(&x, a));
  weir_ok(weir_cpu(&y, b));
  ck_assert_int_eq(x->numel, y->numel);
  ck_assert_int_eq(memcmp(x->data, y->data, (size_t)x->numel * itemsize((weir_dtype)x->dtype)), 0);
}

static weir_status part_of(weir_tensor *r[2], const weir_tensor *a, int what)
{
  switch (what) {
  case 0:
    return weir_topk(&r[0], &r[1], a, 3 < a->size[1] ? 3 : 1, 1, true);
  case 1:
    return weir_kthvalue(&r[0], &r[1], a, (a->size[1] + 1) / 2, 1, true);
  case 2:
    return weir_cummax(&r[0], &r[1], a, 1);
  default:
    return weir_cummin(&r[0], &r[1], a, 1);
  }
}

/* Part of what is in order is that part of all. */
START_TEST(the_first_and_the_middle_are_those_of_all_in_order)
{
  devices(2);
  for (int s = 0; s < SHAPES; s++) {
    weir_tensor *r[2] = {NULL}, *all[2] = {NULL};
    WEIR_TENSOR a = many(weir_shape_of(3, shapes[s]), WEIR_BFLOAT16, device(_i));
    for (int what = 0; what < 2; what++) {
      WEIR_TENSOR values = NULL;
      WEIR_TENSOR places = NULL;
      weir_ok(part_of(r, a, what));
      weir_ok(weir_sort(&all[0], &all[1], a, 1, !what));
      int64_t from = what ? (shapes[s][1] + 1) / 2 - 1 : 0, keep = r[0]->size[1];
      weir_ok(weir_narrow(&values, all[0], 1, from, keep));
      weir_ok(weir_narrow(&places, all[1], 1, from, keep));
      WEIR_TENSOR packed = NULL;
      weir_ok(weir_contiguous(&packed, places));
      bytes_are_alike(r[1], packed);
      weir_tensor_drop(&packed);
      weir_ok(weir_contiguous(&packed, values));
      bytes_are_alike(r[0], packed);
      drop_all(r, 2);
      drop_all(all, 2);
    }
  }
}
END_TEST

/* ---- beside the cpu, and beside other numbers of threads ------------------------------------- */

START_TEST(running_extremes_of_every_dtype_are_those_of_plain_loops)
{
  devices(2);
  for (int s = 0; s < SHAPES; s++)
    for (int t = 0; t < ORDERED; t++) {
      weir_tensor *r[2] = {NULL};
      WEIR_TENSOR a = many(weir_shape_of(3, shapes[s]), ordered[t], device(_i));
      for (int least = 0; least < 2; least++) {
        weir_ok(part_of(r, a, 2 + least));
        double *x = line_of(a, 0, 0), *value = line_of(r[0], 0, 0), *at = line_of(r[1], 0, 0);
        int64_t best = 0;
        for (int64_t i = 0; i < shapes[s][1]; i++) {
          if (isnan(x[i]) || (!isnan(x[best]) && (least ? x[i] <= x[best] : x[i] >= x[best])))
            best = i;
          HOLDS((int64_t)at[i] == best);
          HOLDS(value[i] == x[best] || (isnan(value[i]) && isnan(x[best])));
        }
        free(x), free(value), free(at);
        drop_all(r, 2);
      }
    }
}
END_TEST

static void sums_are_right(weir_dtype dtype, const int64_t *size, weir_device d)
{
  weir_tensor *r[3] = {NULL};
  WEIR_TENSOR whole = many(weir_shape_of(3, size), WEIR_INT32, d);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR small = NULL;
  weir_ok(weir_to_dtype(&a, whole, dtype));
  weir_ok(weir_mul_scalar(&small, a, weir_float(1.0 / 64)));
  weir_ok(weir_cumsum(&r[0], a, 1));
  weir_ok(weir_logcumsumexp(&r[1], a, 1));
  weir_ok(weir_exp_(small));
  weir_ok(weir_cumprod(&r[2], small, 1));
  double *x = line_of(a, 0, 0), *sum = line_of(r[0], 0, 0), *log_sum = line_of(r[1], 0, 0),
         *factor = line_of(small, 0, 0), *product = line_of(r[2], 0, 0);
  long double running = 0, exps = 0, all = 1;
  double unit = dtype == WEIR_FLOAT64 ? 0x1p-52 : 0x1p-23;
  for (int64_t i = 0; i < size[1]; i++) {
    running += (long double)x[i];
    exps += expl((long double)x[i]);
    all *= (long double)factor[i];
    double most = (double)(fabsl(running) + 64 * 1024);
    HOLDS(fabs(sum[i] - (double)running) <= unit * most);
    HOLDS(fabs(log_sum[i] - (double)logl(exps)) <= 64 * unit * (1 + fabs(log_sum[i])));
    HOLDS(fabs(product[i] / (double)all - 1) <= 4 * unit + 1e-11);
  }
  free(x), free(sum), free(log_sum), free(factor), free(product);
  drop_all(r, 3);
}

START_TEST(running_sums_and_products_are_those_of_plain_loops)
{
  devices(2);
  for (int s = 0; s < SHAPES; s++) {
    sums_are_right(WEIR_FLOAT32, shapes[s], device(_i));
    sums_are_right(WEIR_FLOAT64, shapes[s], device(_i));
  }
}
END_TEST

START_TEST(complex_numbers_are_summed_and_multiplied)
{
  weir_tensor *r[2] = {NULL};
  devices(2);
  WEIR_TENSOR host = NULL;
  WEIR_TENSOR a = NULL;
  float turn[2 * 9] = {0};
  for (int i = 0; i < 9; i++)
    turn[2 * i + 1] = 1;
  weir_options o = on(cpu), there = on(device(_i));
  weir_ok(weir_tensor_from(&host, turn, WEIR_COMPLEX64, weir_shape(9), &o));
  weir_ok(weir_to(&a, host, &there));
  weir_ok(weir_cumsum(&r[0], a, 0));
  weir_ok(weir_cumprod(&r[1], a, 0));
  for (int i = 0; i < 2; i++) {
    WEIR_TENSOR back = NULL;
    weir_ok(weir_cpu(&back, r[i]));
    const float *z = (const float *)(void *)back->data;
    ck_assert(z[2 * 8] == 0 && z[2 * 8 + 1] == (i ? 1.0F : 9.0F));
    ck_assert(!i || (z[2 * 1] == -1 && z[2 * 1 + 1] == 0));
  }
  drop_all(r, 2);
}
END_TEST

START_TEST(no_bit_depends_on_the_number_of_threads)
{
  int before = weir_get_num_threads();
  devices(2);
  WEIR_TENSOR whole = many(weir_shape(1, 200001, 1), WEIR_INT32, cpu);
  for (int t = 0; t < ORDERED; t++) {
    WEIR_TENSOR a = NULL;
    weir_tensor *r[3][6] = {{NULL}};
    weir_ok(weir_to_dtype(&a, whole, ordered[t]));
    if (dtype_is_floating(ordered[t])) weir_ok(weir_mul_scalar_(a, weir_float(0.3)));
    for (int k = 0; k < 3; k++) {
      weir_ok(weir_set_num_threads(1 + 2 * k));
      weir_ok(weir_sort(&r[k][0], &r[k][1], a, 1, true));
      weir_ok(part_of(&r[k][2], a, 2));
      weir_ok(weir_cumsum(&r[k][4], a, 1));
      weir_ok(weir_cumprod(&r[k][5], a, 1));
    }
    for (int i = 0; i < 6; i++) {
      bytes_are_alike(r[0][i], r[1][i]);
      bytes_are_alike(r[0][i], r[2][i]);
    }
    for (int k = 0; k < 3; k++)
      drop_all(r[k], 6);
  }
  weir_ok(weir_set_num_threads(before));
}
END_TEST

START_TEST(different_elements_are_counted)
{
  weir_tensor *r[3] = {NULL};
  devices(2);
  WEIR_TENSOR a = TENSOR(weir_shape(2, 4), WEIR_FLOAT32, device(_i), 3, 1, 3, 3, NAN, 1, NAN, 0);
  WEIR_TENSOR e = TENSOR(weir_shape(0, 4), WEIR_INT32, device(_i), 0);
  weir_ok(weir_unique(&r[0], &r[1], &r[2], a));
  numbers_are(r[0], 5, (const double[]){0, 1, 3, NAN, NAN});
  EXPECT(r[1], 2, 1, 2, 2, 3, 1, 4, 0);
  shape_is(r[1], weir_shape(2, 4));
  EXPECT(r[2], 1, 2, 3, 1, 1);
  drop_all(r, 3);
  weir_ok(weir_unique_consecutive(&r[0], &r[1], &r[2], a));
  numbers_are(r[0], 7, (const double[]){3, 1, 3, NAN, 1, NAN, 0});
  EXPECT(r[1], 0, 1, 2, 2, 3, 4, 5, 6);
  EXPECT(r[2], 1, 1, 2, 1, 1, 1, 1);
  drop_all(r, 3);
  weir_ok(weir_unique(&r[0], NULL, &r[2], e));
  shape_is(r[0], weir_shape(0));
  shape_is(r[2], weir_shape(0));
  drop_all(r, 3);
  WEIR_TENSOR parts =
      TENSOR(weir_shape(5, 2), WEIR_FLOAT32, device(_i), 3, 1, 3, 0, 3, 1, 0, 9, 0, 9);
  weir_ok(weir_unique_dim(&r[0], &r[1], &r[2], parts, 0));
  shape_is(r[0], weir_shape(3, 2));
  EXPECT(r[0], 0, 9, 3, 0, 3, 1);
  EXPECT(r[1], 2, 1, 2, 0, 0);
  EXPECT(r[2], 2, 1, 2);
  drop_all(r, 3);
  weir_ok(weir_unique_consecutive_dim(&r[0], &r[1], &r[2], parts, -2));
  EXPECT(r[0], 3, 1, 3, 0, 3, 1, 0, 9);
  EXPECT(r[1], 0, 1, 2, 3, 3);
  EXPECT(r[2], 1, 1, 1, 2);
  drop_all(r, 3);
  weir_ok(weir_unique_dim(&r[0], NULL, NULL, parts, 1));
  EXPECT(r[0], 1, 3, 0, 3, 1, 3, 9, 0, 9, 0);
  drop_all(r, 1);
  refused(WEIR_EINVAL,
          "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
          weir_unique_dim(&r[0], NULL, NULL, e, 1));
  WEIR_TENSOR twice = NULL;
  weir_ok(weir_empty(&twice, weir_shape(0, 0, 2), NULL));
  refused(WEIR_EINVAL,
          "Number of zero sized dimensions is more than one, so unique cannot be applied ",
          weir_unique_dim(&r[0], NULL, NULL, twice, 0));
  WEIR_TENSOR i = TENSOR(weir_shape(2, 5), WEIR_INT16, device(_i), 2, 1, 2, 1, 3, 7, 7, 7, 0, 0);
  weir_ok(weir_mode(&r[0], &r[1], i, 1, false));
  PAIR(r, 2, {{1, 7}, {3, 2}});
  weir_ok(weir_mode(&r[0], &r[1], i, 0, true));
  shape_is(r[0], weir_shape(1, 5));
  PAIR(r, 5, {{2, 1, 2, 0, 0}, {0, 0, 0, 1, 1}});
  refused(WEIR_EINVAL, "mode(): Expected reduction dim 0 to have non-zero size.",
          weir_mode(&r[0], &r[1], e, 0, false));
}
END_TEST

START_TEST(values_and_parts_of_a_range_are_counted)
{
  weir_tensor *r = NULL;
  devices(2);
  WEIR_TENSOR a = TENSOR(weir_shape(5), WEIR_INT32, device(_i), 3, 1, 3, 0, 1);
  WEIR_TENSOR w = TENSOR(weir_shape(5), WEIR_FLOAT32, device(_i), 0.5, 1, 2, 4, 8);
  WEIR_TENSOR x = TENSOR(weir_shape(2, 3), WEIR_FLOAT32, device(_i), 0, 1, 2.5, 4, 5, NAN);
  weir_ok(weir_bincount(&r, a, NULL, 6));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_INT64);
  EXPECT(r, 1, 2, 0, 2, 0, 0);
  weir_tensor_drop(&r);
  weir_ok(weir_bincount(&r, a, w, 0));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_FLOAT32);
  EXPECT(r, 4, 9, 0, 2.5);
  weir_tensor_drop(&r);
  weir_ok(weir_histc(&r, x, 2, 0, 4));
  ck_assert_int_eq(weir_tensor_dtype(r), WEIR_FLOAT32);
  EXPECT(r, 2, 2);
  weir_tensor_drop(&r);
  weir_ok(weir_histc(&r, w, 3, 0, 0));
  EXPECT(r, 3, 1, 1);
  weir_tensor_drop(&r);
  weir_ok(weir_neg_(a));
  refused(WEIR_EINVAL, "bincount only supports 1-d non-negative integral inputs.",
          weir_bincount(&r, a, NULL, 0));
  refused(WEIR_EINVAL, "minlength should be >= 0", weir_bincount(&r, a, NULL, -1));
  refused(WEIR_EINVAL, "weir.histc: max must be larger than min", weir_histc(&r, x, 3, 2, 1));
  refused_with(WEIR_EINVAL, "is not finite", weir_histc(&r, x, 3, 0, 0));
}
END_TEST

START_TEST(nothing_has_an_order_and_a_number_is_alone)
{
  weir_tensor *r[2] = {NULL};
  devices(2);
  WEIR_TENSOR e = TENSOR(weir_shape(0, 3), WEIR_FLOAT32, device(_i), 0);
  WEIR_TENSOR z = TENSOR(weir_shape_of(0, NULL), WEIR_INT16, device(_i), 5);
  for (int dim = 0; dim < 2; dim++) {
    weir_ok(weir_sort(&r[0], &r[1], e, dim, false));
    shape_is(r[1], weir_shape(0, 3));
    drop_all(r, 2);
    weir_ok(weir_cummax(&r[0], &r[1], e, dim));
    drop_all(r, 2);
    weir_ok(weir_cumsum(&r[0], e, dim));
    shape_is(r[0], weir_shape(0, 3));
    drop_all(r, 1);
  }
  weir_ok(weir_topk(&r[0], &r[1], e, 0, 0, true));
  shape_is(r[0], weir_shape(0, 3));
  drop_all(r, 2);
  weir_ok(weir_sort(&r[0], &r[1], z, -1, true));
  PAIR(r, 1, {{5}, {0}});
  weir_ok(weir_kthvalue(&r[0], &r[1], z, 1, 0, true));
  PAIR(r, 1, {{5}, {0}});
  weir_ok(weir_cummin(&r[0], &r[1], z, 0));
  PAIR(r, 1, {{5}, {0}});
  weir_ok(weir_cumprod(&r[0], z, 0));
  EXPECT(r[0], 5);
  drop_all(r, 1);
  WEIR_TENSOR none = TENSOR(weir_shape(0), WEIR_INT16, device(_i), 0);
  weir_ok(weir_searchsorted(&r[0], none, z, true, false));
  EXPECT(r[0], 0);
  drop_all(r, 1);
  weir_ok(weir_median_dim(&r[0], &r[1], z, 0, false));
  PAIR(r, 1, {{5}, {0}});
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {running_reductions_go_on_from_element_to_element,
                                elements_in_order_keep_equals_in_theirs,
                                the_middle_is_the_smaller_of_two_and_nan_where_there_is_one,
                                places_in_what_is_in_order,
                                lines_of_any_length_and_dtype_come_in_order,
                                the_first_and_the_middle_are_those_of_all_in_order,
                                running_extremes_of_every_dtype_are_those_of_plain_loops,
                                running_sums_and_products_are_those_of_plain_loops,
                                complex_numbers_are_summed_and_multiplied,
                                no_bit_depends_on_the_number_of_threads,
                                different_elements_are_counted,
                                values_and_parts_of_a_range_are_counted,
                                nothing_has_an_order_and_a_number_is_alone,
                                NULL};
  return rig_run("ops/order", tests, TRIED);
}
