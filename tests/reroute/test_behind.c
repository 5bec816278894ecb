/* test_behind.c: behind us another interposer, whose table is empty until the program initialises
 * the driver (interposer.c): whatever a program calls first (behind.c) answers as it does without
 * us, and so does all that follows. */
#include <string.h>
#include "tests/tools/command.h"

static const char *const modes[] = {"observe", "strict", "relaxed"};

START_TEST(no_first_call_asks_a_driver_that_is_not_initialised)
{
  const outcome *o =
      sh_status(0,
                "export LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_MODE=%s WEIR_SPOOL_DIR=$PWD/spools\n"
                "T=$BUILD/tests/reroute; mkdir -m 700 spools\n"
                "for name in $($T/behind first); do\n"
                "  LD_PRELOAD=$T/libinterposer.so $T/behind first $name >bare\n"
                "  LD_PRELOAD=\"$BUILD/lib/libweir-preload.so $T/libinterposer.so\" "
                "$T/behind first $name >with || echo $name ended with $?\n"
                "  cmp -s bare with || { echo $name differs; cat bare with; }\n"
                "  echo tried >>tried\n"
                "done\n"
                "[ $(wc -l <tried) -gt 20 ]",
                modes[_i]);
  ck_assert_str_eq(o->out, "");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/behind");
  TCase *c = tcase_create("behind");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, no_first_call_asks_a_driver_that_is_not_initialised, 0, 2);
  suite_add_tcase(s, c);
  return run_suite(s);
}
