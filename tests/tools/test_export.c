/* test_export.c: what weir export makes of a whole trace, read by other parsers (exports.py),
 * and held against the report and the trace's own views. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/command.h"

#define RUN "$WEIR run --force --sim --device-times=all -o t.db -- "
#define PROFILES                                                                                   \
  "for w in calls host-time allocated copied live-at-peak; do"                                     \
  " $WEIR export -f folded --weight $w -o folded.$w t.db || exit; done;"                           \
  " for f in speedscope pprof firefox; do $WEIR export -f $f -o $f t.db || exit; done;"            \
  " python3 $WEIR_SOURCE/tests/tools/exports.py profiles . >sums"
#define TOTALS                                                                                     \
  "$WEIR report --format json t.db | python3 -c 'import json, sys;"                                \
  "t = json.load(sys.stdin)[\"totals\"]; print(\"allocated\", t[\"alloc_bytes\"]);"                \
  "print(\"copied\", sum(t[d + \"_bytes\"] for d in"                                               \
  " (\"h2d\", \"d2h\", \"d2d\", \"p2p\", \"h2h\", \"other_copy\")));"                              \
  "print(\"live-at-peak\", t[\"peak_bytes\"])' >totals; grep -v '^[ch][ao][ls]' sums | cmp - "     \
  "totals"

#define TIMELINES                                                                                  \
  "for f in perfetto chrome; do $WEIR export -f $f -o $f t.db || exit; done;"                      \
  " python3 $WEIR_SOURCE/tests/tools/exports.py timelines . >sums"

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
START_TEST(an_unfinished_trace_exports_the_same)
{
  sh_status(0, RUN "$BUILD/tests/e2e/graph_caller blocks 4");
  sh_status(0, PROFILES " && cp sums finished");
  sh_status(0, TIMELINES " && cp sums timelines");
  sh_status(0,
            "sqlite3 t.db \"UPDATE meta SET value = 0 WHERE key = 'finished'; DELETE FROM"
            " block_row; DELETE FROM memory; DELETE FROM graph_launch; DELETE FROM graph_work\"");
  sh_status(0, PROFILES " && cmp sums finished");
  sh_status(0, TIMELINES " && cmp sums timelines");
}
END_TEST

START_TEST(timelines_agree_with_each_other_and_with_the_trace)
{
  static const struct {
    const char *name, *sql;
  } same[] = {
      {"calls", "SELECT count(*) FROM call"},
      {"calls-time", "SELECT sum(duration_ns) FROM call"},
      {"failed", "SELECT count(*) FROM call WHERE status <> 0"},
      {"copied", "SELECT ifnull(sum(bytes), 0) FROM copy WHERE NOT by_graph"},
      {"kernels", "SELECT count(*) FROM launch WHERE NOT by_graph AND kernel IS NOT NULL"},
      {"works", "SELECT count(*) FROM device_work WHERE kind < 5"},
      {"works-time", "SELECT sum(\"end\" - start) FROM device_work WHERE kind < 5"},
      {"work-bytes", "SELECT sum(bytes) FROM device_work WHERE kind < 3"},
      {"flows", "SELECT count(event) FROM device_work WHERE kind < 5"},
      {"live", "SELECT peak FROM memory WHERE device = 0 AND mem IS NULL"},
  };
  sh_status(0, RUN "$BUILD/tests/e2e/graph_caller random %d", _i + 1);
  sh_status(0, TIMELINES);
  for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
    long long was = sum_named(same[i].name), is = ask("t.db", same[i].sql);
    ck_assert_msg(was == is, "%s: %lld, not %lld", same[i].name, was, is);
  }
  ck_assert_int_gt(sum_named("flows"), 0);
  ck_assert_int_gt(sum_named("deepest"), 3);
}
END_TEST

/* Nested ones, those of domains that do not nest, and those that never ended. */
START_TEST(timelines_have_the_ranges_of_each_thread)
{
  sh_status(0, RUN "$BUILD/tests/victims/nvtx/nests 3 3 500");
  sh_status(0, TIMELINES);
  ck_assert_int_eq(sum_named("ranges"), ask("t.db", "SELECT count(*) FROM range"));
  ck_assert_int_eq(sum_named("ranges-time"),
                   ask("t.db", "SELECT sum(ifnull(r.end_ns, p.\"end\") - r.start_ns) FROM range r"
                               " JOIN process p ON p.id = r.process"));
  ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM range WHERE end_ns IS NULL"), 0);
  sh_status(0, "grep -q '\"name\":\"gro\xc3\x9f\",\"cat\":\"nvtx\"' chrome");
}
END_TEST

/* exports.py refuses what overlaps on a track. */
START_TEST(work_of_a_stream_at_once_is_on_tracks_of_its_own)
{
  sh_status(0, RUN "$BUILD/tests/e2e/graph_caller explicit");
  long long works = ask("t.db", "SELECT count(*) FROM device_work");
  sh_status(0, "sqlite3 t.db 'UPDATE device_work SET start = 1000 + id %% 3, \"end\" = 5000'");
  sh_status(0, TIMELINES);
  ck_assert_int_eq(sum_named("works"), works);
  sh_status(0, "sqlite3 t.db 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
               " LIMIT 1100) INSERT INTO device_work(process, kind, copy, device, context, stream,"
               " start, \"end\") SELECT 1, 1, 1, 0, 1, 7, 1000, 5000 FROM n'");
  outcome *o = sh_status(1, "$WEIR export -f perfetto -o out t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "of one stream at once"));
}
END_TEST

START_TEST(timelines_have_names_of_any_bytes_and_times_of_any_value)
{
  sh_status(0, RUN "$VICTIM repeat 3");
  sh_status(0, "sqlite3 t.db \"UPDATE api SET name = 'a;b\\\"' || char(10, 27, 92) || '<&'"
               " || CAST(x'4d' AS TEXT) WHERE id IN (SELECT api FROM event);"
               " UPDATE thread SET name = 'a' || char(34, 7, 39)\"");
  sh_status(0, TIMELINES);
  sh_status(0,
            "python3 -c 'import json; e = json.load(open(\"chrome\"))[\"traceEvents\"];"
            "assert any(x.get(\"name\", \"\").startswith(\"a;b\\\"\\n\\x1b\\\\<&M\") for x in e);"
            "assert any(x[\"ph\"] == \"M\" and x[\"args\"][\"name\"] == \"a\\\"\\x07\\x27\""
            " for x in e)'");
  sh_status(0, "sqlite3 t.db 'UPDATE event_row SET start = -9000000000000000000 WHERE id = 1;"
               " UPDATE event_row SET duration = 9223372036854775807 WHERE id = 2;"
               " UPDATE event_row SET duration = -5 WHERE id = 3'");
  sh_status(0, "for f in perfetto chrome; do $WEIR export -f $f -o $f t.db || exit; done;"
               " python3 -m json.tool chrome >indented");
}
END_TEST

static void refuse_all(const char *words)
{
  static const char *const formats[] = {"perfetto",   "chrome", "folded",
                                        "speedscope", "pprof",  "firefox"};
  for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
    outcome *o = sh_status(1, "$WEIR export --format %s -o out t.db", formats[i]);
    ck_assert_msg(strstr(o->err, words) && strstr(o->err, "t.db"), "%s: %s", formats[i], o->err);
  }
  ck_assert_str_eq(sh_status(0, "ls | grep -c out; true")->out, "0\n");
}

/* A view can be without an end; so none of the file's is asked. */
START_TEST(a_view_in_a_table_s_place_is_refused)
{
  sh_status(0, RUN "$VICTIM repeat 3");
  sh_status(0, "sqlite3 t.db 'DROP TABLE block_row; CREATE VIEW block_row AS WITH RECURSIVE"
               " n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n'");
  refuse_all("damaged trace");
  sh_status(0, "echo text >t.db");
  refuse_all("neither a trace nor a spool");
}
END_TEST

/* The file is at its largest before the export is whole: SIGXFSZ, as SIGINT would. */
START_TEST(a_signal_leaves_no_half_file)
{
  sh_status(0, RUN "$VICTIM repeat 40");
  outcome *o =
      sh("(ulimit -f 4; exec $WEIR export -f chrome -o out t.db); echo $?; ls | grep -c out");
  ck_assert_str_eq(o->out, "153\n0\n");
  o = sh("(ulimit -f 4; exec $WEIR report --html -o out t.db); echo $?; ls | grep -c out");
  ck_assert_str_eq(o->out, "153\n0\n");
  o = sh("(ulimit -f 4; exec $WEIR stats -f json -o out cuda_api_trace t.db); echo $?; ls | grep "
         "-c out");
  ck_assert_str_eq(o->out, "153\n0\n");
}
END_TEST

/* What it replaces stays until it is whole. */
START_TEST(a_page_is_one_file_that_is_whole_or_not_there)
{
  sh_status(0, RUN "$VICTIM repeat 40");
  sh_status(0, "$WEIR report --html -o page.html t.db && test $(stat -c %%a page.html) = 600 &&"
               " tail -c 8 page.html | grep -q '</html>' && ! ls | grep part");
  sh_status(0, "$WEIR report --format json t.db >r.json &&"
               " python3 $WEIR_SOURCE/tests/reports/page.py page.html r.json");
  sh_status(0, "echo mine >page.html; echo text >none.db");
  sh_status(1, "$WEIR report --html -o page.html none.db");
  sh_status(1, "$WEIR report --html -o nowhere/page.html t.db");
  ck_assert_str_eq(sh("cat page.html; ls | grep part")->out, "mine\n");
  ck_assert_ptr_nonnull(strstr(sh_status(2, "$WEIR report --html t.db")->err, "-o FILE"));
  ck_assert_ptr_nonnull(strstr(sh_status(2, "$WEIR report -o x t.db")->err, "--html"));
  ck_assert_ptr_nonnull(
      strstr(sh_status(2, "$WEIR report --html -o x --format json t.db")->err, "--format"));
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
  tcase_add_loop_test(t, profiles_agree_with_each_other_and_with_the_report, 0, 1);
  tcase_add_test(t, profiles_have_names_of_any_bytes);
  tcase_add_test(t, csv_is_the_list_of_all_calls);
  tcase_add_test(t, an_unfinished_trace_exports_the_same);
  tcase_add_loop_test(t, timelines_agree_with_each_other_and_with_the_trace, 1, 2);
  tcase_add_test(t, timelines_have_the_ranges_of_each_thread);
  tcase_add_test(t, work_of_a_stream_at_once_is_on_tracks_of_its_own);
  tcase_add_test(t, timelines_have_names_of_any_bytes_and_times_of_any_value);
  tcase_add_test(t, a_view_in_a_table_s_place_is_refused);
  tcase_add_test(t, a_signal_leaves_no_half_file);
  tcase_add_test(t, a_page_is_one_file_that_is_whole_or_not_there);
  tcase_add_test(t, wrong_options_are_one_sentence);
  suite_add_tcase(s, t);
  return run_suite(s);
}
