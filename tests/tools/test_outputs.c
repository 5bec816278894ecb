/* test_outputs.c: tests/reports/outputs.py, which compares two builds of weir by what they print
 * of traces: of a build and itself it finds nothing, of one that prints something else it finds
 * that, and what is meant can be allowed. */
#include <string.h>
#include "tests/tools/command.h"

/* In each folder a bin/weir that is weir, but for what `sed` makes of its answers. */
static void make_build(const char *folder, const char *sed)
{
  sh_status(0, "mkdir -p %s/bin", folder);
  sh_status(0,
            "printf '%%s\\n' '#!/bin/sh' \"out=\\$('$WEIR' \\\"\\$@\\\"; echo \\$?)\""
            " 'printf \"%%s\\n\" \"$out\" | sed -e \\$d -e \"%s\"' 'exit \"${out##*[!0-9]}\"'"
            " >%s/bin/weir; chmod +x %s/bin/weir",
            sed, folder, folder);
}

static void make_all(void)
{
  enter_scratch();
  sh_status(0, "python3 $WEIR_SOURCE/tests/reports/make_traces.py --count 9 $BUILD traces");
  make_build("same", "");
  make_build("wrong", "s/h2d_calls/h2d_times/");
  sh_status(0, "echo '{}' >none.json");
}

static outcome *compare(int status, const char *build, const char *allow, const char *more)
{
  return sh_status(status,
                   "python3 $WEIR_SOURCE/tests/reports/outputs.py --allow %s --all 9 %s"
                   " $WEIR %s $(find traces -name '*.db' -o -name '*.spool')",
                   allow, more, build);
}

START_TEST(a_build_and_itself_do_not_differ)
{
  const outcome *o = compare(0, "same", "none.json", "--all 0 --sample 40");
  ck_assert_msg(strstr(o->out, ", 0 outputs differ"), "%s", o->out);
}
END_TEST

START_TEST(what_differs_is_found_and_named)
{
  const outcome *o =
      compare(1, "wrong", "none.json", "--only '^report (summary|devices)? ?-f json' --all 3");
  ck_assert_msg(strstr(o->out, "weir report -f json ") &&
                    strstr(o->out, "    - totals.h2d_calls: ") &&
                    strstr(o->out, "    + totals.h2d_times: "),
                "%s", o->out);
}
END_TEST

START_TEST(what_is_meant_can_be_allowed)
{
  sh_status(0, "echo '{\"names\": [{\"command\": \"^report\", \"why\": \"\", \"paths\":"
               " {\"totals.h2d_calls\": \"totals.h2d_times\","
               " \"devices.h2d_calls\": \"devices.h2d_times\"}}], \"differences\":"
               " [{\"command\": \"^report\", \"line\": \"tables.*h2d_(calls|times)\","
               " \"why\": \"\"}]}' >meant.json");
  const outcome *o =
      compare(0, "wrong", "meant.json", "--only '^report (summary|devices)? ?-f json' --all 3");
  ck_assert_msg(strstr(o->out, ", 0 outputs differ"), "%s", o->out);
}
END_TEST

/* Another exit status, a file that is not written, a limit that was asked for by another word. */
START_TEST(statuses_and_files_count)
{
  sh_status(0, "mkdir -p silent/bin; printf '%%s\\n' '#!/bin/sh' 'exit 0' >silent/bin/weir;"
               " chmod +x silent/bin/weir");
  const outcome *o = compare(1, "silent", "none.json", "--only '^export -f (csv|nsys)|no_such'");
  ck_assert_msg(strstr(o->out, "+ exit status 0") && strstr(o->out, " > out.csv: ") &&
                    strstr(o->out, " > out.db: "),
                "%s", o->out);
}
END_TEST

START_TEST(a_command_may_have_other_words)
{
  sh_status(0, "echo '{\"commands\": [{\"match\": \"^trace -f text\", \"old\": \"-f text\","
               " \"new\": \"--format=csv\", \"why\": \"\"}]}' >words.json");
  const outcome *o = compare(1, "same", "words.json", "--only '^trace -f text @TRACE'");
  ck_assert_msg(strstr(o->out, "+ "), "%s", o->out);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/outputs");
  TCase *t = tcase_create("outputs");
  tcase_set_timeout(t, 0);
  tcase_add_unchecked_fixture(t, make_all, leave_scratch);
  tcase_add_test(t, a_build_and_itself_do_not_differ);
  tcase_add_test(t, what_differs_is_found_and_named);
  tcase_add_test(t, what_is_meant_can_be_allowed);
  tcase_add_test(t, statuses_and_files_count);
  tcase_add_test(t, a_command_may_have_other_words);
  suite_add_tcase(s, t);
  return run_suite(s);
}
