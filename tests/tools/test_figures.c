/* test_figures.c: what reports show is kept in a trace by each command that completes one, and is what
 * they compute: of programs with device times, graphs, ranges, several processes, Python. */
#include <string.h>

#include "tests/tools/command.h"

#define KEPT "SELECT count(*) FROM sqlite_schema WHERE name = 'kept'"

static void expect_kept(const char *trace, bool kept)
{
  ck_assert_int_eq((int)ask(trace, KEPT), kept);
  if (kept) ck_assert_int_eq((int)ask(trace, "SELECT count(*) FROM kept"), 2);
}

/* Of every way to read it, with what is kept and without. */
static void expect_same(const char *trace)
{
  static const char *const ways[] = {"report",
                                     "report --top 1 --depth 5 --possible",
                                     "report findings --sources on",
                                     "report cache",
                                     "report --format json",
                                     "report findings --format json",
                                     "report --format json/1",
                                     "report --format csv",
                                     "report memory --format markdown",
                                     "report --html -o page",
                                     "diff"};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    sh_status(
        0,
        "other=; [ '%s' != diff ] || other=%s; : >page; $WEIR %s %s $other >now; cat page >>now;"
        " : >page; $WEIR %s --anew %s $other >anew; cat page >>anew; cmp now anew",
        ways[i], trace, ways[i], trace, ways[i], trace);
}

static const char *const programs[] = {
    "--sim --device-times=all -- $BUILD/tests/findings/waster serialised-copies",
    "--sim --mode=relaxed -- $BUILD/tests/findings/waster repeated-allocation",
    "--sim --hash -- $BUILD/tests/findings/waster repeated-upload",
    "--sim --device-times=all -- $BUILD/tests/e2e/graph_caller loop",
    "--sim -- $BUILD/tests/victims/nvtx/nests 3 3 500",
    "--sim --device-times=all -- $BUILD/examples/train",
    "--sim -- sh -c '$VICTIM repeat 100; $VICTIM repeat 50'",
    "--sim --python -- python3 $BUILD/examples/ranges.py 7"};

START_TEST(reports_of_programs_are_what_they_compute)
{
  sh_status(0, "$WEIR run -o t.db %s >out 2>&1 || { cat out >&2; exit 1; }", programs[_i]);
  expect_kept("t.db", true);
  expect_same("t.db");
}
END_TEST

START_TEST(each_command_that_completes_a_trace_keeps_it)
{
  sh_status(0, "$WEIR run --sim --figures=later -o later.db -- $VICTIM repeat 20");
  expect_kept("later.db", false);
  sh_status(0, "$WEIR resolve --figures=later later.db");
  expect_kept("later.db", false);
  sh_status(0, "$WEIR resolve later.db");
  expect_kept("later.db", true);
  expect_same("later.db");
  sh_status(0, "$WEIR run --sim --redact -o redacted.db -- $VICTIM repeat 20");
  expect_kept("redacted.db", false);
  sh_status(0, "$WEIR run --sim --redact --figures=now -o asked.db -- $VICTIM repeat 20");
  expect_kept("asked.db", true);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/figures");
  TCase *t = tcase_create("figures");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, reports_of_programs_are_what_they_compute, 0,
                      (int)(sizeof programs / sizeof *programs));
  tcase_add_test(t, each_command_that_completes_a_trace_keeps_it);
  suite_add_tcase(s, t);
  return run_suite(s);
}
