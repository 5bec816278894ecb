/* test_export.c: what weir export makes of a whole trace, read by other parsers (exports.py), and held
 * against the report and the trace's own views. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/command.h"

#define RUN "$WEIR run --force --sim --device-times=all -o t.db -- "
#define PROFILES                                                                                   \
  "for w in calls host-time allocated copied live-at-peak; do"                                     \
  " $WEIR export -f folded -w $w -o folded.$w t.db || exit; done;"                                 \
  " for f in speedscope pprof; do $WEIR export -f $f -o $f t.db || exit; done;"                    \
  " python3 $WEIR_SOURCE/tests/tools/exports.py profiles . >sums"
#define TOTALS                                                                                     \
  "$WEIR report --format json t.db | python3 -c 'import json, sys;"                                \
  "t = json.load(sys.stdin)[\"totals\"]; print(\"allocated\", t[\"alloc_bytes\"]);"                \
  "print(\"copied\", sum(t[d + \"_bytes\"] for d in"                                               \
  " (\"h2d\", \"d2h\", \"d2d\", \"p2p\", \"h2h\", \"other_copy\")));"                              \
  "print(\"live-at-peak\", t[\"peak_bytes\"])' >totals; grep -v '^[ch][ao][ls]' sums | cmp - "     \
  "totals"

static long long sum_named(const char *name)
{
  return atoll(sh_status(0, "sed -n 's/^%s //p' sums", name)->out);
}

START_TEST(profiles_agree_with_each_other_and_with_the_report)
{
  sh_status(0, RUN "$BUILD/tests/e2e/graph_caller random %d", _i + 1);
  sh_status(0, PROFILES);
  sh_status(0, TOTALS);
  ck_assert_int_eq(sum_named("calls"), ask("t.db", "SELECT sum(count) FROM call"));
  ck_assert_int_eq(sum_named("host-time"), ask("t.db", "SELECT sum(duration_ns) FROM call"));
  ck_assert_int_gt(sum_named("copied"), 0);
  ck_assert_int_gt(sum_named("live-at-peak"), 0);
  sh_status(0, "grep -q '^.*;main;cudaMalloc [0-9]*$' folded.allocated");
}
END_TEST

/* A name is whatever who made the file wrote: signs of each format, of terminals, no UTF-8. */
START_TEST(profiles_have_names_of_any_bytes)
{
  sh_status(0, RUN "$VICTIM repeat 3");
  sh_status(0, "sqlite3 t.db \"UPDATE api SET name = 'a;b\\\"' || char(10, 27, 92) || '<&'"
               " || CAST(x'ff41' AS TEXT) WHERE id IN (SELECT api FROM event)\"");
  sh_status(0, PROFILES);
  sh_status(0, "grep -c 'a:b\"??\\\\<&?A [0-9]*$' folded.calls");
}
END_TEST

START_TEST(csv_is_the_list_of_all_calls)
{
  sh_status(0, RUN "$VICTIM repeat 40");
  sh_status(0, "$WEIR export --format csv -o a t.db && $WEIR trace -f csv t.db | cmp - a");
}
END_TEST

/* What a trace of a killed collector has, and a spool without one. */
START_TEST(an_unfinished_trace_has_the_same_profile)
{
  sh_status(0, RUN "$BUILD/tests/e2e/graph_caller blocks 4");
  sh_status(0, PROFILES " && cp sums finished");
  sh_status(0,
            "sqlite3 t.db \"UPDATE meta SET value = 0 WHERE key = 'finished'; DELETE FROM"
            " block_row; DELETE FROM memory; DELETE FROM graph_launch; DELETE FROM graph_work\"");
  sh_status(0, PROFILES " && cmp sums finished");
}
END_TEST

static void refuse(const char *format, const char *words)
{
  outcome *o = sh_status(1, "$WEIR export --format %s -o out t.db", format);
  ck_assert_msg(strstr(o->err, words) && strstr(o->err, "t.db"), "%s: %s", format, o->err);
  ck_assert_str_eq(sh_status(0, "ls | grep -c out; true")->out, "0\n");
}

static const char *const formats[] = {"folded", "speedscope", "pprof"};
#define FORMATS (int)(sizeof formats / sizeof formats[0])

/* A view can be without an end; so none of the file's is asked. */
START_TEST(a_view_in_a_table_s_place_is_refused)
{
  const char *format = formats[_i];
  sh_status(0, RUN "$VICTIM repeat 3");
  sh_status(0, "sqlite3 t.db 'DROP TABLE block_row; CREATE VIEW block_row AS WITH RECURSIVE"
               " n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n'");
  refuse(format, "damaged trace");
  sh_status(0, "echo text >t.db");
  refuse(format, "neither a trace nor a spool");
}
END_TEST

START_TEST(wrong_options_are_one_sentence)
{
  outcome *o = sh_status(2, "$WEIR export --format nothing -o x t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "no format 'nothing'"));
  o = sh_status(2, "$WEIR export -f folded --weight nothing -o x t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "no weight 'nothing'"));
  o = sh_status(2, "$WEIR export -f pprof --weight calls -o x t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "--weight"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/export");
  TCase *t = tcase_create("export");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, profiles_agree_with_each_other_and_with_the_report, 0, 2);
  tcase_add_test(t, profiles_have_names_of_any_bytes);
  tcase_add_test(t, csv_is_the_list_of_all_calls);
  tcase_add_test(t, an_unfinished_trace_has_the_same_profile);
  tcase_add_loop_test(t, a_view_in_a_table_s_place_is_refused, 0, FORMATS);
  tcase_add_test(t, wrong_options_are_one_sentence);
  suite_add_tcase(s, t);
  return run_suite(s);
}
