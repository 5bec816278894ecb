/* test_reduce.c: variances, norms, counts, log-sum-exp, beside sums in double that are made
 * here. */
#include <math.h>
#include "tests/tensor/rig.h"

/* CPU_ONLY: the suite once more without a CUDA device. */
#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

enum { ROWS = 37, COLUMNS = 700 };

static double plain[ROWS * COLUMNS]; /* what the tensors here are made of */

/* Numbers about `middle`, the same in every run; exact in float32. */
static weir_tensor *numbers(weir_shape shape, weir_dtype dtype, double middle, weir_device d)
{
  weir_tensor *out;
  weir_options o = as(dtype, d);
  uint32_t x = 12345;
  int64_t n = 1;
  for (int i = 0; i < shape.count; i++)
    n *= shape.size[i];
  for (int64_t i = 0; i < n; i++) {
    x = x * 1664525u + 1013904223u;
    plain[i] = (double)(float)(middle + ((double)(x >> 16) - 32768) / 4096);
  }
  weir_ok(weir_tensor_from(&out, plain, WEIR_FLOAT64, shape, &o));
  return out;
}

static void is_near(const weir_tensor *t, int64_t count, const double *want, double allowed)
{
  double got[COLUMNS];
  ck_assert_int_eq(weir_tensor_numel(t), count);
  weir_ok(weir_tensor_read(got, sizeof *got * (size_t)count, WEIR_FLOAT64, t));
  for (int64_t i = 0; i < count; i++)
    ck_assert_msg(fabs(got[i] - want[i]) <= allowed * fabs(want[i]), "%d: %.17g, not %.17g", (int)i,
                  got[i], want[i]);
}

/* Mean and variance of n numbers, `step` apart. */
static double variance_of(const double *x, int n, int step, double correction, double *mean)
{
  long double sum = 0, squares = 0;
  for (int i = 0; i < n; i++)
    sum += x[i * step];
  for (int i = 0; i < n; i++)
    squares += (x[i * step] - sum / n) * (x[i * step] - sum / n);
  *mean = (double)(sum / n);
  return (double)(squares / (n - correction));
}

START_TEST(variances_of_numbers_far_from_0_keep_their_digits)
{
  const double middles[] = {0, 5e3};
  for (int k = 0; k < 2; k++) {
    WEIR_TENSOR a = NULL;
    weir_tensor *r[6] = {NULL};
    double var[COLUMNS], mean[COLUMNS], root[COLUMNS], all, middle;
    devices(2);
    a = numbers(weir_shape(ROWS, COLUMNS), WEIR_FLOAT32, middles[k], device(_i));
    all = variance_of(plain, ROWS * COLUMNS, 1, 1, &middle);
    weir_ok(weir_var(&r[0], a, 1));
    is_near(r[0], 1, &all, 1e-7);
    ck_assert_int_eq(weir_tensor_dim(r[0]), 0);
    for (int i = 0; i < ROWS; i++) {
      var[i] = variance_of(plain + i * COLUMNS, COLUMNS, 1, 0, &mean[i]);
      root[i] = sqrt(var[i]);
    }
    weir_ok(weir_var_mean_dim(&r[1], &r[2], a, 1, 0, true));
    is_near(r[1], ROWS, var, 1e-7);
    is_near(r[2], ROWS, mean, 1e-6);
    shape_is(r[2], weir_shape(ROWS, 1));
    is_on(r[2], device(_i));
    weir_ok(weir_std_dim(&r[3], a, -1, 0, false));
    is_near(r[3], ROWS, root, 1e-7);
    weir_tensor_drop(&r[3]);
    weir_ok(weir_std_dims(&r[3], a, (const int[]){1}, 1, 0, false));
    is_near(r[3], ROWS, root, 1e-7);
    for (int i = 1; i < 4; i++)
      weir_tensor_drop(&r[i]);
    weir_ok(weir_std_mean_dim(&r[3], &r[2], a, 1, 0, false));
    is_near(r[3], ROWS, root, 1e-7);
    is_near(r[2], ROWS, mean, 1e-6);
    weir_tensor_drop(&r[2]);
    weir_ok(weir_var_mean_dims(&r[1], &r[2], a, (const int[]){-1}, 1, 0, false));
    is_near(r[1], ROWS, var, 1e-7);
    is_near(r[2], ROWS, mean, 1e-6);
    for (int i = 0; i < COLUMNS; i++)
      root[i] = sqrt(variance_of(plain + i, ROWS, COLUMNS, 2.5, &mean[i]));
    weir_ok(weir_std_mean_dims(&r[4], &r[5], a, (const int[]){0}, 1, 2.5, false));
    is_near(r[4], COLUMNS, root, 1e-7);
    is_near(r[5], COLUMNS, mean, 1e-6);
    for (int i = 0; i < 6; i++)
      weir_tensor_drop(&r[i]);
  }
}
END_TEST

START_TEST(a_variance_of_too_few_is_torchs)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR e = NULL;
  weir_tensor *r[5] = {NULL}, *none = NULL;
  weir_scalar v;
  devices(2);
  weir_options o = as(WEIR_COMPLEX64, device(_i));
  a = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  e = counting(weir_shape(0, 3), WEIR_FLOAT32, device(_i));
  const float parts[] = {1, 2, 3, -4, 5, 0};
  weir_ok(weir_tensor_from(&c, parts, WEIR_COMPLEX64, weir_shape(3), &o));
  weir_ok(weir_var(&r[0], a, 9));
  weir_ok(weir_item(&v, r[0]));
  ck_assert(isinf(v.f));
  weir_ok(weir_var_dim(&r[1], e, 0, 0, false));
  shape_is(r[1], weir_shape(3));
  weir_ok(weir_select(&r[2], r[1], 0, 1));
  weir_ok(weir_item(&v, r[2]));
  ck_assert(isnan(v.f));
  weir_ok(weir_var_mean(&r[3], &r[4], c, 1)); /* (4 + 0 + 4 + 64/9 ...): of parts apart */
  ck_assert_int_eq(weir_tensor_dtype(r[3]), WEIR_FLOAT32);
  ck_assert_int_eq(weir_tensor_dtype(r[4]), WEIR_COMPLEX64);
  double want = 4 + 28.0 / 3;
  is_near(r[3], 1, &want, 1e-6);
  weir_tensor_drop(&r[0]);
  WEIR_TENSOR l = counting(weir_shape(3), WEIR_INT64, device(_i));
  refused(WEIR_ENOTSUP, "std and var only support floating point and complex dtypes",
          weir_std(&none, l, 1));
  refused(WEIR_ENOTSUP, "std_mean only support floating point and complex dtypes",
          weir_std_mean(&none, &r[0], l, 1));
  refused(WEIR_EINVAL, "dim 0 appears multiple times in the list of dims",
          weir_var_dims(&none, a, (const int[]){0, -1}, 2, 1, false));
  ck_assert_ptr_null(none);
  for (int i = 0; i < 5; i++)
    weir_tensor_drop(&r[i]);
}
END_TEST

START_TEST(norms_of_all_kinds)
{
  static const double kinds[] = {2, 1, 0, 3, 0.5, -1, INFINITY, -INFINITY};
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    WEIR_TENSOR a = NULL;
    WEIR_TENSOR turned = NULL;
    weir_tensor *r[3] = {NULL};
    double rows[ROWS], p = kinds[k];
    long double sum = 0, most = 0, least = INFINITY;
    devices(2);
    a = numbers(weir_shape(ROWS, COLUMNS), WEIR_FLOAT32, 0.03125, device(_i));
    for (int i = 0; i < ROWS * COLUMNS; i++) {
      long double x = fabsl((long double)plain[i]);
      sum += p == 0 ? x != 0 : isinf(p) ? 0 : powl(x, p);
      most = x > most ? x : most;
      least = x < least ? x : least;
      if (i % COLUMNS < COLUMNS - 1) continue;
      rows[i / COLUMNS] = (double)(p == 0              ? sum
                                   : p > 0 && isinf(p) ? most
                                   : isinf(p)          ? least
                                                       : powl(sum, 1 / (long double)p));
      sum = most = 0;
      least = INFINITY;
    }
    weir_ok(weir_norm_dim(&r[0], a, p, 1, false));
    is_near(r[0], ROWS, rows, 1e-6);
    weir_ok(weir_transpose(&turned, a, 0, 1));
    weir_ok(weir_norm_dims(&r[1], turned, p, (const int[]){0}, 1, true));
    is_near(r[1], ROWS, rows, 1e-6);
    shape_is(r[1], weir_shape(1, ROWS));
    weir_ok(weir_norm(&r[2], r[1], p == 0 ? INFINITY : p)); /* the norm of norms is the norm */
    if (p == 2) {
      double whole = 0;
      for (int i = 0; i < ROWS; i++)
        whole += rows[i] * rows[i];
      whole = sqrt(whole);
      is_near(r[2], 1, &whole, 1e-6);
    }
    for (int i = 0; i < 3; i++)
      weir_tensor_drop(&r[i]);
  }
}
END_TEST

START_TEST(norms_refuse_what_torchs_do)
{
  weir_tensor *none = NULL, *two = NULL;
  devices(2);
  WEIR_TENSOR l = counting(weir_shape(3), WEIR_INT64, device(_i));
  WEIR_TENSOR e = counting(weir_shape(0, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR c = counting(weir_shape(3), WEIR_COMPLEX64, device(_i));
  refused(WEIR_ENOTSUP,
          "linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long",
          weir_norm(&none, l, 2));
  refused(WEIR_EINVAL,
          "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation "
          "does not have an identity",
          weir_norm(&none, e, INFINITY));
  refused(WEIR_EINVAL,
          "linalg.vector_norm cannot compute the -1 norm on the dimension 0because this dimension "
          "is empty and the operation does not have an identity",
          weir_norm_dim(&none, e, -1, 0, false));
  refused(WEIR_EINVAL,
          "aminmax(): cannot compute aminmax over an empty dimension as the operation has no "
          "identity.",
          weir_aminmax(&none, &two, e));
  refused(WEIR_EINVAL, "aminmax: Expected reduction dim 0 to have non-zero size.",
          weir_aminmax_dim(&none, &two, e, -2, false));
  refused(WEIR_ENOTSUP, "aminmax not implemented for ComplexFloat", weir_aminmax(&none, &two, c));
  refused(WEIR_ENOTSUP,
          _i ? "nansum on CUDA does not support complex inputs"
             : "nansum on CPU does not support complex inputs",
          weir_nansum(&none, c));
  ck_assert_ptr_null(none);
  ck_assert_ptr_null(two);
}
END_TEST

START_TEST(counts_sums_without_nan_and_both_extremes)
{
  const float values[] = {0, NAN, 3, -0.0f, 0.25f, -7};
  weir_tensor *r[8] = {NULL};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_scalar v;
  devices(2);
  weir_options o = as(WEIR_FLOAT32, device(_i));
  weir_ok(weir_tensor_from(&a, values, WEIR_FLOAT32, weir_shape(2, 3), &o));
  b = counting(weir_shape(2, 3), WEIR_BOOL, device(_i));
  weir_ok(weir_count_nonzero(&r[0], a));
  EXPECT(r[0], 4); /* NaN is not 0 */
  ck_assert_int_eq(weir_tensor_dtype(r[0]), WEIR_INT64);
  weir_ok(weir_count_nonzero_dim(&r[1], a, 0));
  EXPECT(r[1], 0, 2, 2);
  weir_ok(weir_count_nonzero_dims(&r[2], b, (const int[]){0, 1}, 2));
  EXPECT(r[2], 5);
  weir_ok(weir_nansum(&r[3], a));
  EXPECT(r[3], -3.75);
  weir_ok(weir_nansum_dim(&r[4], a, 0, true));
  EXPECT(r[4], 0, 0.25, -4);
  weir_ok(weir_nansum_dims(&r[5], b, (const int[]){1}, 1, false));
  EXPECT(r[5], 2, 3);
  ck_assert_int_eq(weir_tensor_dtype(r[5]), WEIR_INT64);
  weir_ok(weir_aminmax(&r[6], &r[7], a));
  weir_ok(weir_item(&v, r[6]));
  ck_assert(isnan(v.f));
  weir_tensor_drop(&r[6]);
  weir_tensor_drop(&r[7]);
  WEIR_TENSOR i = counting(weir_shape(2, 3), WEIR_INT32, device(_i));
  weir_ok(weir_aminmax_dim(&r[6], &r[7], i, 0, false));
  EXPECT(r[6], 0, 1, 2);
  EXPECT(r[7], 3, 4, 5);
  for (int k = 0; k < 8; k++)
    weir_tensor_drop(&r[k]);
}
END_TEST

START_TEST(exponentials_too_large_have_the_logarithm_of_their_sum)
{
  const float values[] = {1000, 1000, -INFINITY, -INFINITY, INFINITY, 0};
  weir_tensor *r[4] = {NULL};
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR h = NULL;
  WEIR_TENSOR e = NULL;
  double got[3];
  devices(2);
  weir_options o = as(WEIR_FLOAT32, device(_i));
  weir_ok(weir_tensor_from(&a, values, WEIR_FLOAT32, weir_shape(3, 2), &o));
  weir_ok(weir_logsumexp(&r[0], a, 1, false));
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, r[0]));
  ck_assert_double_eq_tol(got[0], 1000 + log(2), 1e-4);
  ck_assert(isinf(got[1]) && got[1] < 0);
  ck_assert(isinf(got[2]) && got[2] > 0);
  h = counting(weir_shape(2, 3), WEIR_INT32, device(_i));
  weir_ok(weir_logsumexp_dims(&r[1], h, (const int[]){0, 1}, 2, true));
  shape_is(r[1], weir_shape(1, 1));
  ck_assert_int_eq(weir_tensor_dtype(r[1]), WEIR_FLOAT32);
  double sum = log(exp(0) + exp(1) + exp(2) + exp(3) + exp(4) + exp(5));
  is_near(r[1], 1, &sum, 1e-6);
  e = counting(weir_shape(0, 2), WEIR_FLOAT16, device(_i));
  weir_ok(weir_logsumexp(&r[2], e, 0, false));
  weir_ok(weir_tensor_read(got, 2 * sizeof *got, WEIR_FLOAT64, r[2]));
  ck_assert(isinf(got[0]) && got[0] < 0);
  ck_assert_int_eq(weir_tensor_dtype(r[2]), WEIR_FLOAT16);
  refused(WEIR_EINVAL, "Dimension out of range (expected to be in range of [-2, 1], but got 3)",
          weir_logsumexp(&r[3], a, 3, false));
  for (int k = 0; k < 4; k++)
    weir_tensor_drop(&r[k]);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {variances_of_numbers_far_from_0_keep_their_digits,
                                a_variance_of_too_few_is_torchs,
                                norms_of_all_kinds,
                                norms_refuse_what_torchs_do,
                                counts_sums_without_nan_and_both_extremes,
                                exponentials_too_large_have_the_logarithm_of_their_sum,
                                NULL};
  return rig_run("ops/reduce", tests, TRIED);
}
