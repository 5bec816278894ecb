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

/* Each of two times four calls in the middle of another and four within none. What another
 * interposer and the runtime call within a call is neither. */
START_TEST(what_a_signal_handler_calls_within_a_call_is_counted)
{
  const outcome *o = sh_status(
      0,
      "mkdir -m 700 spools; WEIR_MODE=%s WEIR_SPOOL_DIR=$PWD/spools "
      "LD_LIBRARY_PATH=$BUILD/lib/sim "
      "LD_PRELOAD=\"$BUILD/lib/libweir-preload.so $BUILD/tests/reroute/libinterposer.so\" "
      "$BUILD/tests/reroute/behind signal && $WEIR import spools/*.spool -o t.db "
      ">import 2>&1 && $WEIR report t.db && $WEIR report --format json t.db >&2",
      modes[_i]);
  ck_assert_int_eq(ask("t.db", "SELECT nested_calls FROM process"), 8);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event e JOIN api a ON a.id = e.api"
                               " WHERE a.name IN ('cuMemAlloc_v2', 'cuMemFree_v2', 'cudaMalloc',"
                               " 'cudaFree')"),
                   1 + 8);
  ck_assert_ptr_nonnull(strstr(o->out, "8 CUDA calls were made within another, by a signal handler"
                                       " or a callback, and count nowhere"));
  ck_assert_ptr_nonnull(strstr(o->err, "\"nested_calls\": 8"));
  sh_status(0, "$WEIR run -o u.db --sim --mode=%s -- $BUILD/tests/reroute/behind first cudaMalloc",
            modes[_i]);
  ck_assert_int_eq(ask("u.db", "SELECT nested_calls FROM process"), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/behind");
  TCase *c = tcase_create("behind");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, no_first_call_asks_a_driver_that_is_not_initialised, 0, 2);
  tcase_add_loop_test(c, what_a_signal_handler_calls_within_a_call_is_counted, 0, 3);
  suite_add_tcase(s, c);
  return run_suite(s);
}
