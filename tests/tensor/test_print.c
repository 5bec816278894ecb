/* test_print.c: the printed form. What is expected here is what PyTorch 2.15 prints, weir. in the
 * dtypes' names; tests/peers/tensors.py compares many more with a PyTorch at hand. */
#include <locale.h>
#include <math.h>
#include "tests/tensor/rig.h"

static void prints(const weir_tensor *t, const char *want)
{
  char *got;
  weir_ok(weir_tensor_to_string(&got, t));
  ck_assert_str_eq(got, want);
  free(got);
}

static weir_tensor *tensor_of_shape(weir_dtype dtype, weir_shape shape, const double *values)
{
  weir_tensor *t;
  weir_options o = {.dtype = dtype};
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, shape, &o));
  return t;
}

static void prints_values(const char *want, weir_dtype dtype, weir_shape shape,
                          const double *values)
{
  WEIR_TENSOR t = tensor_of_shape(dtype, shape, values);
  prints(t, want);
}
#define PRINTS(want, dtype, ...)                                                                   \
  prints_values(want, dtype, weir_shape(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),   \
                (const double[]){__VA_ARGS__})

START_TEST(floating_point_is_as_wide_as_its_widest)
{
  prints_values("tensor([[  0.3000,   0.3000],\n"
                "        [ -1.2500, 100.0000]])",
                WEIR_FLOAT32, weir_shape(2, 2), (const double[]){0.3, 0.3, -1.25, 100});
  PRINTS("tensor([ 1., -2., 30.])", WEIR_FLOAT32, 1, -2, 30);
  PRINTS("tensor([-0., 0., 1.])", WEIR_FLOAT32, -0.0, 0, 1);
  PRINTS("tensor([0.1001], dtype=weir.bfloat16)", WEIR_BFLOAT16, 0.1);
  PRINTS("tensor([0.5000], dtype=weir.float64)", WEIR_FLOAT64, 0.5);
}
END_TEST

START_TEST(exponents_where_torch_writes_them)
{
  PRINTS("tensor([1.0000e+00, 1.0005e+03, 1.0000e-03])", WEIR_FLOAT32, 1, 1000.5, 1e-3);
  PRINTS("tensor([1.0000e+09, 1.0000e+08])", WEIR_FLOAT32, 1e9, 1e8);
  PRINTS("tensor([1.0000e-05, 2.0000e-05])", WEIR_FLOAT32, 1e-5, 2e-5);
  PRINTS("tensor([9.9976e-02, 6.5504e+04], dtype=weir.float16)", WEIR_FLOAT16, 0.1, 65504);
}
END_TEST

START_TEST(what_is_not_finite)
{
  PRINTS("tensor([1.5000,    nan,    inf,   -inf, 0.0000])", WEIR_FLOAT32, 1.5, -NAN, INFINITY,
         -INFINITY, 0);
  PRINTS("tensor([1., nan, -inf])", WEIR_FLOAT32, 1, NAN, -INFINITY);
  PRINTS("tensor([nan, 0.])", WEIR_FLOAT32, NAN, 0);
}
END_TEST

START_TEST(integers_and_bool)
{
  prints_values("tensor([[  1, -20],\n"
                "        [300,   4]])",
                WEIR_INT64, weir_shape(2, 2), (const double[]){1, -20, 300, 4});
  PRINTS("tensor([  1, -20], dtype=weir.int8)", WEIR_INT8, 1, -20);
  PRINTS("tensor([ True, False])", WEIR_BOOL, 1, 0);
}
END_TEST

START_TEST(complex_numbers)
{
  const float values[] = {1, 2, -0.5F, -3};
  WEIR_TENSOR t = NULL;
  weir_ok(weir_tensor_from(&t, values, WEIR_COMPLEX64, weir_shape(2), NULL));
  prints(t, "tensor([ 1.0000+2.j, -0.5000-3.j])");
  weir_ok(weir_set_default_dtype(WEIR_FLOAT64));
  prints(t, "tensor([ 1.0000+2.j, -0.5000-3.j], dtype=weir.complex64)");
}
END_TEST

START_TEST(one_number_and_none)
{
  const double value = 3.5;
  prints_values("tensor(3.5000)", WEIR_FLOAT32, weir_shape_of(0, NULL), &value);
  prints_values("tensor(3)", WEIR_INT64, weir_shape_of(0, NULL), &value);
  prints_values("tensor([])", WEIR_FLOAT32, weir_shape(0), &value);
  prints_values("tensor([], size=(0, 3))", WEIR_FLOAT32, weir_shape(0, 3), &value);
  prints_values("tensor([], size=(2, 0), dtype=weir.int64)", WEIR_INT64, weir_shape(2, 0), &value);
}
END_TEST

START_TEST(lines_are_broken_and_dimensions_indented)
{
  WEIR_TENSOR a = counting(weir_shape(25), WEIR_INT64, cpu);
  WEIR_TENSOR b = counting(weir_shape(2, 2, 2), WEIR_INT64, cpu);
  WEIR_TENSOR turned = NULL;
  prints(a, "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
            "        18, 19, 20, 21, 22, 23, 24])");
  prints(b, "tensor([[[0, 1],\n"
            "         [2, 3]],\n"
            "\n"
            "        [[4, 5],\n"
            "         [6, 7]]])");
  weir_ok(weir_transpose(&turned, b, 0, 2));
  prints(turned, "tensor([[[0, 4],\n"
                 "         [2, 6]],\n"
                 "\n"
                 "        [[1, 5],\n"
                 "         [3, 7]]])");
}
END_TEST

START_TEST(more_than_a_thousand_are_summarised)
{
  WEIR_TENSOR a = counting(weir_shape(1001), WEIR_INT64, cpu);
  WEIR_TENSOR b = counting(weir_shape(100, 100), WEIR_FLOAT32, cpu);
  prints(a, "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  prints(b, "tensor([[0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 9.7000e+01, 9.8000e+01,\n"
            "         9.9000e+01],\n"
            "        [1.0000e+02, 1.0100e+02, 1.0200e+02,  ..., 1.9700e+02, 1.9800e+02,\n"
            "         1.9900e+02],\n"
            "        [2.0000e+02, 2.0100e+02, 2.0200e+02,  ..., 2.9700e+02, 2.9800e+02,\n"
            "         2.9900e+02],\n"
            "        ...,\n"
            "        [9.7000e+03, 9.7010e+03, 9.7020e+03,  ..., 9.7970e+03, 9.7980e+03,\n"
            "         9.7990e+03],\n"
            "        [9.8000e+03, 9.8010e+03, 9.8020e+03,  ..., 9.8970e+03, 9.8980e+03,\n"
            "         9.8990e+03],\n"
            "        [9.9000e+03, 9.9010e+03, 9.9020e+03,  ..., 9.9970e+03, 9.9980e+03,\n"
            "         9.9990e+03]])");
}
END_TEST

START_TEST(options_are_obeyed)
{
  WEIR_TENSOR a = tensor_of_shape(WEIR_FLOAT32, weir_shape(2), (const double[]){1.23456, 2});
  WEIR_TENSOR big = tensor_of_shape(WEIR_FLOAT32, weir_shape(2), (const double[]){1e9, 1.5});
  WEIR_TENSOR ten = counting(weir_shape(10), WEIR_INT64, cpu);
  WEIR_TENSOR twelve = counting(weir_shape(3, 4), WEIR_INT64, cpu);
  weir_ok(weir_set_print_options(&(weir_print_options){2, 1000, 3, 80, 0}));
  prints(a, "tensor([1.23, 2.00])");
  weir_ok(weir_set_print_options(&(weir_print_options){4, 1000, 3, 80, 1}));
  prints(a, "tensor([1.2346e+00, 2.0000e+00])");
  weir_ok(weir_set_print_options(&(weir_print_options){4, 1000, 3, 80, -1}));
  prints(big, "tensor([1000000000.0000,          1.5000])");
  weir_ok(weir_set_print_options(&(weir_print_options){4, 5, 2, 80, 0}));
  prints(ten, "tensor([0, 1,  ..., 8, 9])");
  weir_ok(weir_set_print_options(&(weir_print_options){4, 5, 0, 80, 0}));
  prints(ten, "tensor([...], size=(10,))");
  prints(twelve, "tensor([...], size=(3, 4))");
  weir_ok(weir_set_print_options(&(weir_print_options){4, 1000, 3, 20, 0}));
  prints(ten, "tensor([0, 1, 2, 3,\n"
              "        4, 5, 6, 7,\n"
              "        8, 9])");
  weir_ok(weir_set_print_options(NULL));
  prints(a, "tensor([1.2346, 2.0000])");
}
END_TEST

START_TEST(options_that_are_none_are_refused)
{
  refused(WEIR_EINVAL,
          "print options: precision is 0 to 100, threshold and edgeitems from 0, linewidth from 1, "
          "sci_mode -1, 0 or 1; got 101, 1000, 3, 80, 0",
          weir_set_print_options(&(weir_print_options){101, 1000, 3, 80, 0}));
  ck_assert_int_eq(weir_set_print_options(&(weir_print_options){4, -1, 3, 80, 0}), WEIR_EINVAL);
  ck_assert_int_eq(weir_set_print_options(&(weir_print_options){4, 1, -3, 80, 0}), WEIR_EINVAL);
  ck_assert_int_eq(weir_set_print_options(&(weir_print_options){4, 1, 3, 0, 0}), WEIR_EINVAL);
  ck_assert_int_eq(weir_set_print_options(&(weir_print_options){4, 1, 3, 80, 2}), WEIR_EINVAL);
}
END_TEST

START_TEST(the_longest_numbers_have_room)
{
  weir_ok(weir_set_print_options(&(weir_print_options){100, 1000, 3, 80, -1}));
  WEIR_TENSOR t = tensor_of_shape(WEIR_FLOAT64, weir_shape(1), (const double[]){-1.5e308});
  WEIR_TENSOR u = tensor_of_shape(WEIR_FLOAT64, weir_shape(1), (const double[]){-0x1.8p-1});
  char *text;
  weir_ok(weir_tensor_to_string(&text, t));
  ck_assert_uint_gt(strlen(text), 308);
  free(text);
  weir_ok(weir_tensor_to_string(&text, u));
  ck_assert_uint_eq(strlen(text), strlen("tensor([-0.], dtype=weir.float64)") + 100 + 7);
  free(text);
}
END_TEST

START_TEST(a_device_shows_where_it_is_not_the_current_default)
{
  devices(2);
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR far = NULL;
  WEIR_TENSOR home = counting(weir_shape(1), WEIR_INT64, cpu);
  const float values[] = {0.25F, -0.25F};
  weir_options o = on(cuda0), there = on(cuda1);
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT32, weir_shape(1, 2), &o));
  weir_ok(weir_to(&far, t, &there));
  prints(t, "tensor([[ 0.2500, -0.2500]], device='cuda:0')");
  weir_ok(weir_set_default_device(cuda_any));
  prints(t, "tensor([[ 0.2500, -0.2500]])");
  prints(far, "tensor([[ 0.2500, -0.2500]], device='cuda:1')");
  prints(home, "tensor([0], device='cpu')");
  WEIR_WITH_DEVICE(cuda1) prints(far, "tensor([[ 0.2500, -0.2500]])");
}
END_TEST

START_TEST(a_device_sends_only_what_is_shown)
{
  devices(1);
  WEIR_TENSOR t = NULL;
  weir_options o = as(WEIR_INT64, cuda0);
  int64_t *values = calloc(1 << 20, sizeof *values);
  ck_assert_ptr_nonnull(values);
  weir_ok(weir_tensor_from(&t, values, WEIR_INT64, weir_shape(1 << 20), &o));
  free(values);
  prints(t, "tensor([0, 0, 0,  ..., 0, 0, 0], device='cuda:0')");
  if (!rig_simulated()) return;
  uint64_t before = rig_calls("cuMemcpyDtoHAsync_v2");
  prints(t, "tensor([0, 0, 0,  ..., 0, 0, 0], device='cuda:0')");
  ck_assert_uint_eq(rig_calls("cuMemcpyDtoHAsync_v2") - before, 2);
}
END_TEST

START_TEST(a_decimal_comma_is_the_programs_own)
{
  static const char *const comma[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "C.UTF-8"};
  for (int i = 0; i < 4; i++)
    if (setlocale(LC_ALL, comma[i])) break;
  PRINTS("tensor([1.5000, 1.2500])", WEIR_FLOAT32, 1.5, 1.25);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {floating_point_is_as_wide_as_its_widest,
                                exponents_where_torch_writes_them,
                                what_is_not_finite,
                                integers_and_bool,
                                complex_numbers,
                                one_number_and_none,
                                lines_are_broken_and_dimensions_indented,
                                more_than_a_thousand_are_summarised,
                                options_are_obeyed,
                                options_that_are_none_are_refused,
                                the_longest_numbers_have_room,
                                a_device_shows_where_it_is_not_the_current_default,
                                a_device_sends_only_what_is_shown,
                                a_decimal_comma_is_the_programs_own,
                                NULL};
  return rig_run("tensor/print", tests, 1);
}
