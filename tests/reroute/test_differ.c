/* test_differ.c: random programs give the same bytes and the same return codes, rerouted or not. */
#include <stdio.h>
#include <string.h>
#include "tests/tools/command.h"

#ifndef SEEDS
#define SEEDS 12
#endif

START_TEST(a_random_program_gives_the_same_bytes_and_codes_in_each_mode)
{
  static const int threads[] = {1, 2, 5};
  static const char *const limits[] = {"0", "3M", "64M", "1G"};
  char bare[4096];
  int n = threads[_i % 3], steps = (_i < 12 ? 400 : 120) / n;
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim $BUILD/tests/reroute/differ %d %d %d",
                         _i, n, steps);
  ck_assert_int_eq((int)strlen(o->out), 17 * n);
  (void)snprintf(bare, sizeof bare, "%s", o->out);
  static const char *const modes[] = {"strict", "relaxed"};
  for (int m = 0; m < 2; m++) {
    o = sh_status(
        0,
        "WEIR_STAGING=on WEIR_CACHE_LIMIT=%s $WEIR run -o t.db --sim --stacks=off --mode=%s -- "
        "$BUILD/tests/reroute/differ %d %d %d",
        limits[_i % 4], modes[m], _i, n, steps);
    ck_assert_msg(strcmp(o->out, bare) == 0, "seed %d, %s:\n%sbare:\n%s", _i, modes[m], o->out,
                  bare);
    if (_i % 4 == 3)
      ck_assert_int_gt(ask("t.db", "select count(*) from event where kind = 1 and flags & 64"), 0);
    if (_i < 3)
      ck_assert_int_gt(ask("t.db", "select count(*) from event where kind = 3 and flags & 128"), 0);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/differ");
  TCase *c = tcase_create("differ");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, a_random_program_gives_the_same_bytes_and_codes_in_each_mode, 0, SEEDS);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
