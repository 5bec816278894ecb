/* test_thrash.c: who never has more than there is never runs out of memory: threads that share a
 * device of 300 MB between them (thrash.c), in both modes, by many schedules. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

enum { SEEDS = AT_LEVEL(1, 2, 25), OPERATIONS = TEST_LEVEL ? 4000 : 1500 };
enum { WEIR_MODES = 2, COUNTS = 2 };

static const char *const modes[WEIR_MODES] = {"strict", "relaxed"};
static const int counts[COUNTS] = {3, 10};

START_TEST(no_allocation_fails_for_what_was_freed_before)
{
  const char *mode = modes[_i % WEIR_MODES];
  int threads = counts[_i / WEIR_MODES % COUNTS], seed = _i / WEIR_MODES / COUNTS;
  const outcome *o = sh_status(0,
                               "WEIR_SIM_MEMORY=300M $WEIR run -o t.db --sim --mode=%s -- "
                               "$BUILD/tests/reroute/thrash %d %d %d 300",
                               mode, threads, OPERATIONS, seed);
  ck_assert_msg(!strcmp(o->out, "0 failed, 0 wrong, 0 errors\n"), "%s, %d threads, seed %d: %s",
                mode, threads, seed, o->out);
  ck_assert_int_gt(ask("t.db", "select count(*) from event where kind = 1 and flags & 64"), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/thrash");
  TCase *c = tcase_create("thrash");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, no_allocation_fails_for_what_was_freed_before, 0,
                      SEEDS * WEIR_MODES * COUNTS);
  suite_add_tcase(s, c);
  return run_suite(s);
}
