/* test_inlines.c: reports and exports of a C++ program, optimised, with debug information. */
#include <stdlib.h>

#include "tests/tools/command.h"

#define CHECK                                                                                      \
  "$WEIR report --depth 8 --width 0 t.db >text && $WEIR report -f json/1 t.db >json &&"            \
  " $WEIR export -f folded --weight calls -o folded t.db &&"                                       \
  " python3 $WEIR_SOURCE/tests/tools/inlines.py $WEIR_SOURCE/tests/tools/inlines.cc text json "    \
  "folded"

static void run_and_check(const char *program)
{
  sh_status(0, "cp %s program && $WEIR run --force --sim -o t.db -- ./program", program);
  sh_status(0, CHECK);
}

START_TEST(functions_that_are_inlined_have_frames_with_whole_names)
{
  run_and_check("$BUILD/tests/tools/inlines");
}
END_TEST

/* As Clang writes it: no table of addresses, functions inside their namespaces. */
START_TEST(what_clang_writes_of_a_program_is_read_too)
{
  if (sh("test -e $BUILD/tests/tools/inlines_clang")->status) return;
  run_and_check("$BUILD/tests/tools/inlines_clang");
}
END_TEST

START_TEST(a_program_without_a_table_of_addresses_has_the_same_frames)
{
  sh_status(0, "objcopy -R .debug_aranges $BUILD/tests/tools/inlines bare");
  run_and_check("./bare");
}
END_TEST

START_TEST(a_resolved_trace_has_the_same_frames_without_the_program)
{
  sh_status(0, "cp $BUILD/tests/tools/inlines program &&"
               " $WEIR run --force --sim -o t.db -- ./program && $WEIR resolve t.db && rm program");
  sh_status(0, CHECK);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/inlines");
  TCase *t = tcase_create("inlines");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, functions_that_are_inlined_have_frames_with_whole_names);
  tcase_add_test(t, what_clang_writes_of_a_program_is_read_too);
  tcase_add_test(t, a_program_without_a_table_of_addresses_has_the_same_frames);
  tcase_add_test(t, a_resolved_trace_has_the_same_frames_without_the_program);
  suite_add_tcase(s, t);
  return run_suite(s);
}
