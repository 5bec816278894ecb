/* test_sources.c: which lines of source a report quotes. A trace names the files, and who made
 * it may have had any in mind: each test has the trace name one of the test's own, and looks for
 * its line in the text, the JSON and the page. Files and links of other users are made where
 * that is allowed; elsewhere those pass. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define SECRET "the line that may not be quoted"

/* A resolved trace whose places are all line 1 of one file in the test's folder. */
static void make_trace(void)
{
  enter_scratch();
  sh_status(0,
            "$WEIR run -o t.db --sim -- $BUILD/tests/findings/waster leak && $WEIR resolve t.db");
  sh_status(0, "sqlite3 t.db \"UPDATE source_line SET line = 1, file = '$PWD/planted.py'\"");
  sh_status(0, "echo '" SECRET
               "' >private && cp private private.py && touch -d '1 Jan 2020' private*");
}

static void quoted(bool is, const char *options)
{
  static const char *const reports[] = {"findings", "findings --format json", "--html -o page"};
  sh_status(0, "echo >page");
  for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) {
    sh_status(0, "$WEIR report %s --min-cost 0ns %s t.db >out", reports[i], options);
    bool there = !sh("cat out page | tr -s ' \\n' ' ' | grep -q '" SECRET "'")->status;
    ck_assert_msg(there == is, "%s %s: %s", reports[i], options, there ? "quoted" : "not quoted");
  }
}

START_TEST(a_file_as_the_run_had_it_is_quoted)
{
  sh_status(0, "cp -p private.py planted.py");
  quoted(true, "");
  sh_status(0, "grep -q 'source files are quoted' page");
}
END_TEST

START_TEST(a_link_is_what_it_leads_to)
{
  sh_status(0, "ln -s private planted.py");
  quoted(false, "");
  sh_status(0, "ln -sf private.py planted.py");
  quoted(true, "");
}
END_TEST

START_TEST(a_link_of_another_users_is_not_followed)
{
  sh_status(0, "ln -s private.py planted.py");
  if (lchown("planted.py", 65534, 65534)) return;
  quoted(false, "");
  sh_status(0, "rm planted.py; ln -s \"$PWD\" there; mkdir over; mv there over;"
               " sqlite3 t.db \"UPDATE source_line SET file = '$PWD/over/there/private.py'\"");
  quoted(true, "");
  ck_assert_int_eq(lchown("over/there", 65534, 65534), 0);
  quoted(false, "");
}
END_TEST

START_TEST(a_file_that_has_changed_since_is_not_quoted)
{
  sh_status(0, "cp private.py planted.py");
  sh_status(0, "touch -d '+1 day' planted.py");
  quoted(false, ""); /* than the run began */
  sh_status(0, "touch -d '2 Jan 2020' planted.py");
  quoted(true, "");
  sh_status(0, "sqlite3 t.db \"UPDATE module SET mtime = 1577836800000000000\""); /* 1 Jan 2020 */
  quoted(false, "");
}
END_TEST

START_TEST(what_is_no_text_is_not_quoted)
{
  sh_status(0, "printf '" SECRET "\\0\\n' >planted.py; touch -d '1 Jan 2020' planted.py");
  quoted(false, "");
}
END_TEST

START_TEST(sources_are_quoted_as_asked)
{
  sh_status(0, "cp -p private.py planted.py");
  quoted(false, "--sources=off");
  quoted(true, "--sources=on");
  sh_status(2, "$WEIR report --sources=all t.db");
}
END_TEST

START_TEST(a_trace_of_another_users_quotes_when_asked)
{
  sh_status(0, "cp -p private.py planted.py");
  sh_status(0, "sqlite3 t.db 'UPDATE process SET uid = %u'", (unsigned)geteuid() + 1);
  quoted(false, "");
  quoted(true, "--sources=on");
  sh_status(0, "sqlite3 t.db 'UPDATE process SET uid = %u'", (unsigned)geteuid());
  quoted(true, "");
  if (chown("t.db", 65534, 65534)) return;
  quoted(false, "");
  quoted(true, "--sources=on");
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("sources");
  TCase *tc = tcase_create("sources");
  tcase_set_timeout(tc, 0);
  tcase_add_checked_fixture(tc, make_trace, leave_scratch);
  tcase_add_test(tc, a_file_as_the_run_had_it_is_quoted);
  tcase_add_test(tc, a_link_is_what_it_leads_to);
  tcase_add_test(tc, a_link_of_another_users_is_not_followed);
  tcase_add_test(tc, a_file_that_has_changed_since_is_not_quoted);
  tcase_add_test(tc, what_is_no_text_is_not_quoted);
  tcase_add_test(tc, sources_are_quoted_as_asked);
  tcase_add_test(tc, a_trace_of_another_users_quotes_when_asked);
  suite_add_tcase(suite, tc);
  return run_suite(suite);
}
