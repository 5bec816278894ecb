/* rig.c: see rig.h. */
#include "tests/nn/rig.h"

void rig_devices(int count)
{
  char text[16];
  (void)snprintf(text, sizeof text, "%d", count);
  ck_assert_int_eq(setenv("WEIR_SIM_DEVICES", text, 1), 0);
}

void rig_logged(weir_log_level level, const char *text, void *user)
{
  rig_log *log = user;
  log->count++;
  log->level = level;
  (void)snprintf(log->text, sizeof log->text, "%s", text);
}

TCase *rig_case(Suite *suite)
{
  TCase *c = tcase_create("all");
  tcase_set_timeout(c, 0);
  suite_add_tcase(suite, c);
  return c;
}

int rig_run(Suite *suite)
{
  static const char *const of_the_user[] = {
      "CUDA_VISIBLE_DEVICES", "WEIR_SIM_FAIL",   "WEIR_SIM_LINK",  "WEIR_SIM_COUNTS",
      "CUDA_LAUNCH_BLOCKING", "WEIR_SIM_MEMORY", "WEIR_ALLOC_CONF"};
  for (size_t i = 0; i < sizeof of_the_user / sizeof *of_the_user; i++)
    (void)unsetenv(of_the_user[i]);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
