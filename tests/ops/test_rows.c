/* test_rows.c: what comes back through softmax, on every device, beside the formula in double. */
#include <math.h>
#include "tests/tensor/rig.h"

#ifdef CPU_ONLY
enum { TRIED = 1 };
#else
enum { TRIED = DEVICES_TRIED };
#endif

enum { OUTER = 3, EACH = 7, INNER = 4, ALL = OUTER * EACH * INNER };

/* grad and result over the middle dimension. */
static void want_back(double *want, const double *grad, const double *y, bool logarithm)
{
  for (int o = 0; o < OUTER; o++)
    for (int i = 0; i < INNER; i++) {
      double sum = 0;
      for (int k = 0; k < EACH; k++) {
        int at = (o * EACH + k) * INNER + i;
        sum += logarithm ? grad[at] : grad[at] * y[at];
      }
      for (int k = 0; k < EACH; k++) {
        int at = (o * EACH + k) * INNER + i;
        want[at] = logarithm ? grad[at] - exp(y[at]) * sum : y[at] * (grad[at] - sum);
      }
    }
}

START_TEST(softmax_back_is_the_formulas)
{
  static const weir_dtype dtypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_BFLOAT16};
  double a[ALL], g[ALL], y[ALL], want[ALL], got[ALL];
  devices(2);
  for (int k = 0; k < 6; k++) {
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR grad = NULL;
    WEIR_TENSOR result = NULL;
    WEIR_TENSOR back = NULL;
    bool logarithm = k % 2;
    weir_options o = as(dtypes[k / 2], device(_i));
    for (int i = 0; i < ALL; i++)
      a[i] = (i * 37 % 11) * 0.25 - 1, g[i] = (i * 53 % 13) * 0.125 - 0.5;
    weir_ok(weir_tensor_from(&x, a, WEIR_FLOAT64, weir_shape(OUTER, EACH, INNER), &o));
    weir_ok(weir_tensor_from(&grad, g, WEIR_FLOAT64, weir_shape(OUTER, EACH, INNER), &o));
    weir_ok(logarithm ? weir_log_softmax(&result, x, 1) : weir_softmax(&result, x, 1));
    weir_ok(softmax_backward(&back, grad, result, -2, logarithm));
    weir_ok(weir_tensor_read(y, sizeof y, WEIR_FLOAT64, result));
    weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, back));
    is_on(back, device(_i));
    ck_assert_int_eq(weir_tensor_dtype(back), dtypes[k / 2]);
    want_back(want, g, y, logarithm);
    for (int i = 0; i < ALL; i++)
      ck_assert_double_eq_tol(got[i], want[i], dtypes[k / 2] == WEIR_BFLOAT16 ? 1e-2 : 1e-6);
  }
}
END_TEST

/* Strides of any kind, and nothing at all. */
START_TEST(softmax_back_takes_any_strides)
{
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR straight = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR grad = NULL;
  WEIR_TENSOR from_turned = NULL;
  WEIR_TENSOR from_straight = NULL;
  WEIR_TENSOR none = NULL;
  WEIR_TENSOR nothing = NULL;
  bool equal = false;
  devices(2);
  weir_options o = as(WEIR_FLOAT32, device(_i));
  x = counting(weir_shape(5, 6), WEIR_FLOAT32, device(_i));
  weir_ok(weir_mul_scalar_(x, weir_float(1.0 / 32)));
  weir_ok(weir_t(&turned, x));
  weir_ok(weir_contiguous(&straight, turned));
  weir_ok(weir_ones(&one, weir_shape(1), &o));
  weir_ok(weir_expand(&grad, one, weir_shape(6, 5)));
  weir_ok(softmax_backward(&from_turned, grad, turned, 1, false));
  weir_ok(softmax_backward(&from_straight, grad, straight, 1, false));
  weir_ok(weir_equal(&equal, from_turned, from_straight));
  ck_assert(equal);
  weir_ok(weir_empty(&none, weir_shape(0, 3), &o));
  weir_ok(softmax_backward(&nothing, none, none, 1, true));
  shape_is(nothing, weir_shape(0, 3));
}
END_TEST

/* x on the device and on the cpu: softmax and its logarithm over `dim` are the same, what is no
 * number included. */
static void same_as_on_the_cpu(const weir_tensor *host, int dim, int number, double tolerance)
{
  for (int logarithm = 0; logarithm < 2; logarithm++) {
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR got = NULL;
    WEIR_TENSOR back = NULL;
    WEIR_TENSOR want = NULL;
    bool same = false;
    weir_ok(weir_to(&x, host, &(weir_options){.device = device(number)}));
    weir_ok(logarithm ? weir_log_softmax(&got, x, dim) : weir_softmax(&got, x, dim));
    is_on(got, device(number));
    weir_ok(logarithm ? weir_log_softmax(&want, host, dim) : weir_softmax(&want, host, dim));
    weir_ok(weir_cpu(&back, got));
    weir_ok(weir_allclose(&same, back, want, tolerance, tolerance, true));
    ck_assert_msg(same, "%s over %d", logarithm ? "log_softmax" : "softmax", dim);
  }
}

START_TEST(softmax_of_any_shape_is_the_cpus)
{
  static const weir_dtype dtypes[] = {WEIR_FLOAT32, WEIR_FLOAT64, WEIR_FLOAT16, WEIR_BFLOAT16};
  const struct {
    weir_shape shape;
    int dim;
  } rows[] = {{weir_shape(1, 5000), 1},    {weir_shape(300, 3), 1}, {weir_shape(700, 2), 0},
              {weir_shape(3, 129, 33), 1}, {weir_shape(1, 1), 1},   {weir_shape(9, 40, 2), -2}};
  devices(2);
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
      WEIR_TENSOR wide = NULL;
      WEIR_TENSOR x = NULL;
      weir_options o = as(WEIR_FLOAT32, WEIR_CPU);
      weir_ok(weir_randn(&wide, rows[k].shape, &o));
      weir_ok(weir_mul_scalar_(wide, weir_float(4)));
      weir_ok(weir_to_dtype(&x, wide, dtypes[d]));
      same_as_on_the_cpu(x, rows[k].dim, _i, d < 2 ? 1e-5 : d == 2 ? 2e-3 : 2e-2);
    }
}
END_TEST

/* Rows of infinities and of what is no number, at the places of several threads. */
START_TEST(softmax_of_infinities_is_the_cpus)
{
  enum { ROWS = 6, EACH_OF = 40 };
  double a[ROWS * EACH_OF];
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR turned = NULL;
  devices(2);
  for (int i = 0; i < ROWS * EACH_OF; i++)
    a[i] = i % 7;
  for (int i = 0; i < EACH_OF; i++) {
    a[1 * EACH_OF + i] = -INFINITY;
    if (i % 3) a[2 * EACH_OF + i] = -INFINITY;
  }
  a[3 * EACH_OF + 17] = INFINITY;
  a[4 * EACH_OF + 30] = NAN;
  a[5 * EACH_OF + 1] = a[5 * EACH_OF + 33] = INFINITY;
  weir_options o = as(WEIR_FLOAT32, WEIR_CPU);
  weir_ok(weir_tensor_from(&x, a, WEIR_FLOAT64, weir_shape(ROWS, EACH_OF), &o));
  same_as_on_the_cpu(x, 1, _i, 1e-6);
  weir_ok(weir_t(&turned, x));
  same_as_on_the_cpu(turned, 0, _i, 1e-6);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {softmax_back_is_the_formulas, softmax_back_takes_any_strides,
                                softmax_of_any_shape_is_the_cpus, softmax_of_infinities_is_the_cpus,
                                NULL};
  return rig_run("ops/rows", tests, TRIED);
}
