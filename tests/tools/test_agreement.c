/* test_agreement.c: what several outputs of weir print of one trace is one number: tests/reports/agreement.py over
 * traces of random programs. */
#include "tests/tools/command.h"

START_TEST(every_output_prints_one_number)
{
  static const char *const programs[] = {"random_caller 5 2 300 counts", "graph_caller random 1"};
  sh_status(0, "$WEIR run --force --sim -o t.db --device-times=all -- $BUILD/tests/e2e/%s",
            programs[_i]);
  sh_status(0, "python3 $WEIR_SOURCE/tests/reports/agreement.py t.db $WEIR");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/agreement");
  TCase *t = tcase_create("agreement");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, every_output_prints_one_number, 0, 2);
  suite_add_tcase(s, t);
  return run_suite(s);
}
