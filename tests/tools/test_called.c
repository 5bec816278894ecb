/* test_called.c: whatever the library exports is called by a test. Looks at the objects of all
 * suites, so it is one of make test-all. */
#include <string.h>
#include "tests/tools/command.h"

START_TEST(every_public_function_is_called_by_a_test)
{
  ck_assert_str_eq(sh_status(0, "$WEIR_SOURCE/tests/tools/called.sh $BUILD $WEIR_SOURCE")->out, "");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/called");
  TCase *t = tcase_create("called");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, every_public_function_is_called_by_a_test);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
