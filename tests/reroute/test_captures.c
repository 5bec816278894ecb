/* test_captures.c: what Weir does of its own breaks no capture of the program's: threads that
 * capture beside threads that allocate (capturer.c), and the moments at which it could, one by one
 * (behind.c, interposer.c). */
#include <stdio.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#define CAPTURES AT_LEVEL(600, 3200, 100000) /* a run, of all its threads */

enum { CAPTURE_MODES = 3, WEIR_MODES = 2 };
static const char *const capture_modes[] = {"global", "local", "relaxed"};
static const char *const modes[] = {"strict", "relaxed"};
#if TEST_LEVEL
static const int threads[] = {1, 4, 16};
#else
static const int threads[] = {4};
#endif
enum { COUNTS = sizeof threads / sizeof *threads, RUNS = COUNTS * CAPTURE_MODES * WEIR_MODES };

START_TEST(captures_beside_allocations_are_whole)
{
  int n = threads[_i % COUNTS];
  const char *kind = capture_modes[_i / COUNTS % CAPTURE_MODES];
  const char *mode = modes[_i / COUNTS / CAPTURE_MODES];
  long captures = 0, broken = -1, wrong = -1, allocations = 0, failed = -1;
  const outcome *o = sh_status(0,
                               "$WEIR run --force -o t.db --sim --stacks=off --mode=%s -- "
                               "$BUILD/tests/reroute/capturer %d 4 %s %d",
                               mode, n, kind, CAPTURES / n);
  ck_assert_int_eq(sscanf(o->out, "captures %ld broken %ld wrong %ld allocations %ld failed %ld",
                          &captures, &broken, &wrong, &allocations, &failed),
                   5);
  ck_assert_msg(!broken && !wrong && !failed, "%d threads, %s, captures %s: %s%s", n, mode, kind,
                o->out, o->err);
  ck_assert_int_eq((int)captures, CAPTURES / n * n);
  ck_assert_int_gt((int)allocations, 0);
}
END_TEST

#if !TEST_LEVEL

static const char *const cases[] = {"capture", "wait"};

/* The last run of the two is under Weir in the mode; its trace is t.db. */
START_TEST(a_capture_is_whole_at_each_moment_that_could_break_it)
{
  const char *name = cases[_i / WEIR_MODES], *mode = modes[_i % WEIR_MODES];
  static char bare[65536];
  outcome *o = sh_status(0,
                         "LD_LIBRARY_PATH=$BUILD/lib/sim "
                         "LD_PRELOAD=$BUILD/tests/reroute/libinterposer.so "
                         "$BUILD/tests/reroute/behind %s",
                         name);
  memcpy(bare, o->out, sizeof bare);
  ck_assert_ptr_nonnull(strstr(bare, "cuStreamEndCapture(stream, &graph) 0\n"));
  o = sh_status(
      0,
      "mkdir -m 700 spools; WEIR_MODE=%s WEIR_SPOOL_DIR=$PWD/spools "
      "LD_LIBRARY_PATH=$BUILD/lib/sim "
      "LD_PRELOAD=\"$BUILD/lib/libweir-preload.so $BUILD/tests/reroute/libinterposer.so\" "
      "$BUILD/tests/reroute/behind %s && $WEIR import spools/*.spool -o t.db >import 2>&1",
      mode, name);
  ck_assert_msg(strcmp(o->out, bare) == 0, "%s, bare:\n%s\n%s:\n%s", name, bare, mode, o->out);
  /* what was freed between captures was kept, which took a wait beside them */
  if (_i / WEIR_MODES == 0)
    ck_assert_int_eq(ask("t.db", "select count(*) from event where kind = 1 and flags & 64"), 2);
}
END_TEST

/* Without cuCtxRecordEvent what is freed once there was a capture is the driver's. */
START_TEST(behind_an_older_driver_frees_go_to_it)
{
  const outcome *o = sh_status(
      0, "mkdir -m 700 spools; export INTERPOSER_OLD=1 WEIR_MODE=strict "
         "WEIR_SPOOL_DIR=$PWD/spools LD_LIBRARY_PATH=$BUILD/lib/sim\n"
         "LD_PRELOAD=$BUILD/tests/reroute/libinterposer.so $BUILD/tests/reroute/behind "
         "capture >bare\n"
         "LD_PRELOAD=\"$BUILD/lib/libweir-preload.so $BUILD/tests/reroute/libinterposer.so\" "
         "$BUILD/tests/reroute/behind capture >with; cmp bare with && "
         "$WEIR import spools/*.spool -o t.db >import 2>&1");
  ck_assert_str_eq(o->out, "");
  ck_assert_int_eq(ask("t.db", "select count(*) from event where kind = 1 and flags & 64"), 1);
}
END_TEST

#endif

int main(void)
{
  Suite *s = suite_create("reroute/captures");
  TCase *c = tcase_create("captures");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, captures_beside_allocations_are_whole, 0, RUNS);
#if !TEST_LEVEL
  tcase_add_test(c, behind_an_older_driver_frees_go_to_it);
  tcase_add_loop_test(c, a_capture_is_whole_at_each_moment_that_could_break_it, 0, 2 * WEIR_MODES);
#endif
  suite_add_tcase(s, c);
  return run_suite(s);
}
