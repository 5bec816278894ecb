/* test_select.c: programs that run with a GPU and without one (row 30), and what the library says
 * beside its results. */
#include "core/nn/log.h"
#include "tests/nn/rig.h"

START_TEST(the_device_is_cuda_where_there_is_one_and_it_is_not_disabled)
{
  rig_devices(_i);
  weir_device d = weir_device_select(false);
  ck_assert_int_eq(d.type, _i ? WEIR_DEVICE_CUDA : WEIR_DEVICE_CPU);
  ck_assert_int_eq(weir_device_index(d), -1);
  d = weir_device_select(true);
  ck_assert_int_eq(d.type, WEIR_DEVICE_CPU);
}
END_TEST

START_TEST(a_log_callback_gets_the_sentence_and_none_gets_nothing)
{
  rig_log log = {0};
  log_message(WEIR_LOG_WARNING, "nobody hears %d", 1);
  weir_set_log_callback(rig_logged, &log);
  log_message(WEIR_LOG_WARNING, "%s %d", "heard", 2);
  ck_assert_int_eq(log.count, 1);
  ck_assert_int_eq(log.level, WEIR_LOG_WARNING);
  ck_assert_str_eq(log.text, "heard 2");
  weir_set_log_callback(NULL, NULL);
  log_message(WEIR_LOG_WARNING, "nobody hears %d", 3);
  ck_assert_int_eq(log.count, 1);
}
END_TEST

START_TEST(a_sentence_too_long_for_the_log_is_cut)
{
  char text[1000];
  rig_log log = {0};
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  weir_set_log_callback(rig_logged, &log);
  log_message(WEIR_LOG_INFO, "%s", text);
  ck_assert_uint_eq(strlen(log.text), 511);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("select");
  TCase *c = rig_case(suite);
  tcase_add_loop_test(c, the_device_is_cuda_where_there_is_one_and_it_is_not_disabled, 0, 3);
  tcase_add_test(c, a_log_callback_gets_the_sentence_and_none_gets_nothing);
  tcase_add_test(c, a_sentence_too_long_for_the_log_is_cut);
  return rig_run(suite);
}
