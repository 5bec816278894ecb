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

int main(void)
{
  const TTest *const tests[] = {softmax_back_is_the_formulas, softmax_back_takes_any_strides, NULL};
  return rig_run("ops/rows", tests, TRIED);
}
