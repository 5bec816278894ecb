/* test_tensors.c: tensors in a trace, by `weir run` and by the library itself: the same figures. */
#include <stdio.h>
#include <string.h>
#include "tests/tools/command.h"

/* What the report says of a place: made, peak, live at exit; then its modules at the peak. */
static const char *figures(const char *trace, const char *device)
{
  return sh_status(0,
                   "$WEIR report --format json %s | python3 -c 'import json, sys\n"
                   "r = json.load(sys.stdin)\n"
                   "for p in r[\"tensor_places\"]:\n"
                   "  if p[\"where\"] == %s:\n"
                   "    print(p[\"made\"], p[\"peak_bytes\"], p[\"live_at_exit_bytes\"])\n"
                   "    for m in r[\"tensor_modules\"]:\n"
                   "      if m[\"where\"] == p[\"where\"]:\n"
                   "        print(m[\"module\"], m[\"tensors\"], m[\"bytes\"])'",
                   trace, device)
      ->out;
}

#define HOST "3 1572864 0\nnet.conv1 1 1048576\nnet.fc 2 524288\n"

START_TEST(a_run_has_the_tensors_of_the_program)
{
  sh_status(0, "$WEIR run --force -o t.db --sim -- $BUILD/tests/engine/tensors");
  ck_assert_str_eq(figures("t.db", "\"host\""), HOST);
  ck_assert_str_eq(figures("t.db", "0"), "1 2097152 0\n 1 2097152\n");
  const char *text = sh_status(0, "$WEIR report t.db")->out;
  ck_assert_ptr_nonnull(strstr(text, "Memory by tensor / module"));
  ck_assert_ptr_nonnull(strstr(text, "net.conv1.weight"));
  ck_assert_ptr_nonnull(strstr(text, "(made in net.fc)"));
  ck_assert_ptr_nonnull(strstr(text, "batch"));
}
END_TEST

START_TEST(the_library_writes_the_same_by_itself)
{
  sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim $BUILD/tests/engine/tensors own.spool");
  ck_assert_str_eq(figures("own.spool", "\"host\""), HOST);
  ck_assert_str_eq(figures("own.spool", "0"), "1 2097152 0\n 1 2097152\n");
  sh_status(0, "$WEIR import --force -o t.db own.spool");
  ck_assert_int_eq(ask("t.db", "select count(*) from event e join api a on a.id = e.api where "
                               "a.name = 'weir_malloc' and e.kind = 1 and e.bytes = 2097152"),
                   1);
  ck_assert_int_eq(ask("t.db", "select count(*) from event where kind = 2"), 1);
  ck_assert_str_eq(sh_status(0, "ls -A")->out, "own.spool\nt.db\n");
}
END_TEST

START_TEST(what_is_left_is_live_at_exit)
{
  sh_status(0, "$BUILD/tests/engine/tensors own.spool leave");
  ck_assert_ptr_nonnull(strstr(figures("own.spool", "\"host\""), "3 1572864 1048576\n"));
}
END_TEST

START_TEST(under_a_run_the_library_writes_nothing_of_its_own)
{
  sh_status(0, "$WEIR run --force -o t.db --sim -- $BUILD/tests/engine/tensors own.spool");
  ck_assert_str_eq(figures("t.db", "\"host\""), HOST);
  sh_status(0, "test ! -e own.spool");
}
END_TEST

START_TEST(a_trace_that_cannot_be_says_why)
{
  const outcome *o = sh_status(1, "$BUILD/tests/engine/tensors no/such/folder.spool");
  ck_assert_ptr_nonnull(strstr(o->err, "no/such/folder.spool"));
  o = sh_status(1, "echo old >t.spool; $BUILD/tests/engine/tensors t.spool");
  ck_assert_ptr_nonnull(strstr(o->err, "it exists"));
  ck_assert_str_eq(sh_status(0, "cat t.spool")->out, "old\n");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("engine/tensors");
  TCase *c = tcase_create("tensors");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_test(c, a_run_has_the_tensors_of_the_program);
  tcase_add_test(c, the_library_writes_the_same_by_itself);
  tcase_add_test(c, what_is_left_is_live_at_exit);
  tcase_add_test(c, under_a_run_the_library_writes_nothing_of_its_own);
  tcase_add_test(c, a_trace_that_cannot_be_says_why);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
