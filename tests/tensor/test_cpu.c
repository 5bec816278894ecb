/* test_cpu.c: tensors of a program that links libweir.so and has no driver: all of the cpu works,
 * and what needs a device says so. With a driver the second half is not tried. */
#include <check.h>
#include <string.h>
#include "core/weir.h"

#define weir_ok(call) ck_assert_msg((call) == WEIR_OK, "%s", weir_error_message())

START_TEST(the_cpu_needs_no_driver)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_scalar v;
  weir_ok(weir_arange(&a, weir_int(0), weir_int(6), weir_int(1), NULL));
  weir_ok(weir_view(&b, a, weir_shape(2, -1)));
  weir_tensor_drop(&a);
  weir_ok(weir_select(&a, b, 0, 1));
  weir_tensor_drop(&b);
  weir_ok(weir_select(&b, a, 0, 2));
  weir_ok(weir_item(&v, b));
  ck_assert_int_eq(v.i, 5);
}
END_TEST

START_TEST(what_needs_a_device_says_that_there_is_none)
{
  WEIR_TENSOR t = NULL;
  weir_tensor *out = NULL;
  weir_options there = {.device = WEIR_CUDA}, pin = {.pin_memory = true};
  weir_ok(weir_ones(&t, weir_shape(3), NULL));
  ck_assert(!weir_tensor_is_pinned(t));
  if (weir_cuda_is_available()) return;
#define TOLD(call)                                                                                 \
  do {                                                                                             \
    ck_assert_int_eq(call, WEIR_ENOTSUP);                                                          \
    ck_assert_ptr_null(out);                                                                       \
    ck_assert_ptr_nonnull(strstr(weir_error_message(), "Found no NVIDIA driver on your system"));  \
  } while (0)
  TOLD(weir_cuda(&out, t, (weir_device){0}, false));
  TOLD(weir_to(&out, t, &there));
  TOLD(weir_to_type(&out, t, "weir.cuda.FloatTensor", false));
  TOLD(weir_zeros(&out, weir_shape(2), &there));
  TOLD(weir_zeros(&out, weir_shape(2), &pin));
  TOLD(weir_pin_memory(&out, t));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tensor/cpu");
  TCase *c = tcase_create("cpu");
  tcase_set_timeout(c, 0);
  tcase_add_test(c, the_cpu_needs_no_driver);
  tcase_add_test(c, what_needs_a_device_says_that_there_is_none);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
