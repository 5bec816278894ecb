/* test_stats.c: weir stats: its numbers are those of the trace's tables (stats.py), the report's
 * and each other's; headings are Nsight Systems'. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tools/command.h"

#define RUN     "$WEIR run --force --sim -o t.db "
#define COMPARE "python3 $WEIR_SOURCE/tests/tools/stats.py t.db $WEIR >rows"

static long long rows_of(const char *name)
{
  return atoll(sh_status(0, "sed -n 's/^%s //p' rows", name)->out);
}

START_TEST(numbers_are_those_of_the_tables_and_of_the_report)
{
  static const char *const programs[] = {"graph_caller random 1", "random_caller 5 2 300 counts"};
  sh_status(0, RUN "--device-times=all -- $BUILD/tests/e2e/%s", programs[_i]);
  sh_status(0, COMPARE);
  ck_assert_int_gt(rows_of("cuda_api_sum"), 5);
  ck_assert_int_gt(rows_of("cuda_gpu_kern_sum"), 0);
  ck_assert_int_gt(rows_of("cuda_gpu_mem_time_sum"), 1);
  ck_assert_int_gt(rows_of("cuda_kern_exec_sum"), 0);
  ck_assert_int_eq(rows_of("cuda_memcpy_async") > 0, _i);
  ck_assert_int_eq(rows_of("cuda_memcpy_sync") > 0, _i);
}
END_TEST

START_TEST(ranges_are_summed_by_domain_and_text)
{
  sh_status(0, RUN "-- $BUILD/tests/victims/nvtx/nests 3 3 500");
  sh_status(0, COMPARE);
  ck_assert_int_gt(rows_of("nvtx_pushpop_sum"), 1);
  ck_assert_int_gt(rows_of("nvtx_startend_sum"), 0);
}
END_TEST

/* The last of them are counted behind the last record that the collector has read before the
 * end. */
START_TEST(ranges_too_deep_to_be_recorded_are_all_counted)
{
  sh_status(0, RUN "-- $BUILD/tests/victims/nvtx/edges deep");
  ck_assert_int_eq(ask("t.db", "SELECT deep_ranges FROM process"), 5000 - 256);
}
END_TEST

/* Of a program that ends by itself; of one that is killed nobody asks. */
START_TEST(what_other_work_did_to_a_process_is_recorded_at_its_end)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE end_reason = 'exit' AND"
                               " preempted >= 0 AND starved_ns >= 0"),
                   1);
  sh_status(0, RUN "-- $VICTIM call raise 9 || true");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE starved_ns IS NULL"), 1);
}
END_TEST

/* No time of a call stands in for one of a device. */
START_TEST(what_the_trace_has_nothing_for_is_one_sentence)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  outcome *o = sh_status(1, "$WEIR stats cuda_gpu_kern_sum t.db");
  ck_assert_str_eq(o->out, "");
  ck_assert_ptr_nonnull(strstr(o->err, "--device-times"));
  o = sh_status(1, "$WEIR stats gpu_gaps -o out t.db; s=$?; ls | grep out; exit $s");
  ck_assert_str_eq(o->out, "");
  o = sh_status(1, "$WEIR stats osrt_sum t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "does not record"));
  sh_status(0, "$WEIR stats cuda_gpu_mem_size_sum -f csv t.db | grep -q '^Total (MB),Count'");
  o = sh_status(2, "$WEIR stats nothing t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "no report 'nothing'"));
  o = sh_status(2, "$WEIR stats cuda_api_sum");
  ck_assert_ptr_nonnull(strstr(o->err, "FILE is missing"));
  o = sh_status(2, "$WEIR stats cuda_api_sum -f xml t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "no format 'xml'"));
  sh_status(0, "$WEIR stats | grep -q '^  cuda_api_sum  *CUDA API Summary$'");
}
END_TEST

/* Synchronous copies and memsets, waits, long gaps, little use: what each rule is for, and a
 * twin. */
START_TEST(rules_find_what_they_are_for)
{
  sh_status(0, RUN "--device-times=all -- $BUILD/tests/e2e/graph_caller random 1");
  sh_status(
      0, "sqlite3 t.db 'DELETE FROM device_work; INSERT INTO device_work(id, process, kind, copy,"
         " device, context, stream, start, \"end\", bytes) VALUES(1, 1, 1, 1, 0, 1, 7, 0, 1000, 8),"
         " (2, 1, 1, 1, 0, 1, 7, 500000999, 500001000, 8),"
         " (3, 1, 1, 1, 0, 1, 7, 1000002000, 1500000000, 8), (4, 1, 1, 1, 1, 1, 7, 0, 9, 8)'");
  ck_assert_str_eq(sh_status(0, "$WEIR stats gpu_gaps -f csv t.db | cut -d, -f1-3,5-")->out,
                   "Row#,Duration (ns),Start (ns),Device ID,Context ID\n"
                   "1,500001000,500001000,0,1\n");
  ck_assert_str_eq(sh_status(0, "$WEIR stats gpu_time_util -f csv t.db | cut -d, -f1-4,6-")->out,
                   "Row#,In-Use (%),Duration (ns),Start (ns),Device ID,Context ID\n"
                   "1,0.0,1000000000,0,0,1\n");
}
END_TEST

START_TEST(names_of_any_bytes_stay_in_their_cells)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  sh_status(0,
            "sqlite3 t.db \"UPDATE api SET name = 'a,\\\"<b>' || char(10, 27, 9) ||"
            " CAST(x'ff41' AS TEXT) || substr(name, 1, 3) || replace(hex(zeroblob(300)), '0', 'x')"
            " WHERE id IN (SELECT api FROM event)\"");
  sh_status(
      0, "for f in column table tsv csv json; do $WEIR stats cuda_api_sum -f $f t.db >$f || exit 1;"
         " ! grep -q \"$(printf '\\033')\" $f || exit 1; done; python3 -c 'import csv, json;"
         "rows = list(csv.reader(open(\"csv\", encoding=\"utf-8\")));"
         "assert all(len(r) == 9 for r in rows) and rows[1][8].startswith(\"a,\\\"<b>????A\");"
         "assert json.load(open(\"json\"))[0][\"Name\"].startswith(\"a,\\\"<b>\\n\\x1b\\t\");"
         "lines = open(\"table\", encoding=\"utf-8\").read().split(\"\\n\")[3:-2];"
         "assert len({len(l) for l in lines}) == 1 and any(\"\\u2026\" in l for l in lines)'");
}
END_TEST

/* As nsys prints it: scripts read this. */
START_TEST(columns_are_as_wide_as_what_is_in_them)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  sh_status(0, "sqlite3 t.db 'DELETE FROM event_row WHERE id > 2; UPDATE event_row SET start = 5,"
               " duration = 1234567 * id, template = (SELECT min(template) FROM event_row)'");
  ck_assert_str_eq(
      sh_status(0, "$WEIR stats cuda_api_sum t.db | sed '6s/  *[^ ]*$//; 4s/ *Name *$//;"
                   " 5s/  -*$//'")
          ->out,
      "\n ** CUDA API Summary (cuda_api_sum):\n\n"
      " Time (%)  Total Time (ns)  Num Calls   Avg (ns)     Med (ns)    Min (ns)   Max (ns)"
      "   StdDev (ns)\n"
      " --------  ---------------  ---------  -----------  -----------  ---------  ---------"
      "  -----------\n"
      "    100.0        3,703,701          2  1,851,850.5  1,851,850.5  1,234,567  2,469,134"
      "    872,970.7\n\n");
}
END_TEST

/* As scripts call nsys stats. */
START_TEST(several_reports_are_made_in_one_call)
{
  sh_status(0, RUN "--device-times=all -- $BUILD/tests/e2e/graph_caller random 1");
  sh_status(0, "$WEIR stats cuda_api_sum -f csv t.db >a && $WEIR stats nvtx_sum -f csv t.db >b &&"
               " (cat a; echo; cat b) >both");
  sh_status(
      0, "$WEIR stats -r cuda_api_sum,nvtx_sum --format csv --force-export=true t.db | cmp - both");
  sh_status(0, "$WEIR stats cuda_api_sum,nvtx_sum -f csv -o - t.db | cmp - both");
  sh_status(0, "$WEIR stats -q -r cuda_api_sum --report nvtx_sum -f csv -o base t.db &&"
               " cmp base_cuda_api_sum.csv a && cmp base_nvtx_sum.csv b && rm base_*");
  sh_status(0, "$WEIR stats -r cuda_api_trace:rows=2 -o base t.db && ls base_*");
  ck_assert_str_eq(sh_status(0, "ls base_*; rm base_*")->out, "base_cuda_api_trace_rows=2.csv\n");
  outcome *o = sh_status(1, "$WEIR stats -r osrt_sum,cuda_api_sum -f csv t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "Num Calls"));
  ck_assert_ptr_nonnull(strstr(o->err, "does not record calls of the operating system"));
  sh_status(
      0,
      "$WEIR stats t.db >all && grep -q '(nvtx_sum):' all && grep -q '(cuda_gpu_kern_sum):' all");
  sh_status(0, RUN
            "-- $VICTIM repeat 3; $WEIR stats t.db 2>said | grep -q '(cuda_gpu_mem_size_sum):'");
  sh_status(0, "test $(grep -c device-times said) = 2");
}
END_TEST

/* Lists of formats and outputs stand beside that of reports; of a shorter one the last is meant
 * again. */
START_TEST(formats_and_outputs_are_lists)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  sh_status(0, "$WEIR stats cuda_api_sum -f csv t.db >a; $WEIR stats nvtx_sum t.db >b;"
               " $WEIR stats cuda_api_trace t.db >c; $WEIR stats cuda_api_sum -f tsv t.db >d");
  sh_status(0,
            "$WEIR stats -r cuda_api_sum -r nvtx_sum,cuda_api_trace -f csv,column -o base,-"
            " t.db >out && cmp base_cuda_api_sum.csv a && cat b c | cmp - out && test $(ls base_* |"
            " wc -l) = 1 && rm base_*");
  sh_status(
      0, "$WEIR stats -r cuda_api_sum -f csv -f . -o base -o - t.db >out &&"
         " cmp base_cuda_api_sum.csv a && $WEIR stats cuda_api_sum t.db | cmp - out && rm base_*");
  sh_status(0,
            "$WEIR stats -r cuda_api_sum -f csv,tsv -o one,two t.db && cmp one_cuda_api_sum.csv a"
            " && cmp two_cuda_api_sum.tsv d && rm one_* two_*");
  sh_status(
      0, "mkdir a.b && cp t.db a.b/ && $WEIR stats -r cuda_api_sum -o . a.b/t.db &&"
         " cmp a.b/t_cuda_api_sum.csv a && cp t.db a.b/t && $WEIR stats -r nvtx_sum -o . a.b/t &&"
         " ls a.b/t_nvtx_sum.csv");
  sh_status(0, "$WEIR stats cuda_api_sum -f csv -o one,two t.db && cmp one,two a");
  outcome *o = sh_status(2, "$WEIR stats -r cuda_api_sum -o @sort t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "runs no command"));
  sh_status(2, "$WEIR stats -r cuda_api_sum -f csv,nothing t.db");
  sh_status(2, "$WEIR stats -r cuda_api_sum -o base, t.db");
}
END_TEST

/* Every digit of a time is there in each unit; what is no time stays. */
START_TEST(times_have_the_unit_that_is_asked_for)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  sh_status(0, "sqlite3 t.db 'DELETE FROM event_row WHERE id > 2; UPDATE event_row SET start = 5,"
               " duration = 1234567 * id, template = (SELECT min(template) FROM event_row)'");
  const char *row = "$WEIR stats cuda_api_sum -f csv --timeunit %s t.db | cut -d, -f1-8";
  ck_assert_str_eq(sh_status(0, row, "nsec")->out,
                   "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),"
                   "StdDev (ns)\n"
                   "100.0,3703701,2,1851850.5,1851850.5,1234567,2469134,872970.7\n");
  ck_assert_str_eq(sh_status(0, row, "usec")->out,
                   "Time (%),Total Time (us),Num Calls,Avg (us),Med (us),Min (us),Max (us),"
                   "StdDev (us)\n"
                   "100.0,3703.701,2,1851.851,1851.851,1234.567,2469.134,872.971\n");
  ck_assert_str_eq(sh_status(0, row, "mil")->out, sh_status(0, row, "msec")->out);
  ck_assert_ptr_nonnull(strstr(sh_status(0, row, "msec")->out, ",3.703701,2,"));
  ck_assert_ptr_nonnull(strstr(sh_status(0, row, "seconds")->out, "Total Time (s)"));
  ck_assert_ptr_nonnull(strstr(sh_status(0, row, "s")->out, ",0.003703701,2,"));
  sh_status(0, "$WEIR stats cuda_api_trace -f csv --timeunit=ms t.db | sed -n 2p | grep -q"
               " '^0.000005,1.234567,'");
  sh_status(2, "$WEIR stats cuda_api_sum --timeunit m t.db");
  sh_status(2, "$WEIR stats cuda_api_sum --timeunit minutes t.db");
  sh_status(2, "$WEIR stats cuda_api_sum --timeunit= t.db");
}
END_TEST

/* As nsys stats has it of a file without them. */
START_TEST(what_no_trace_has_is_skipped)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  outcome *o =
      sh_status(0, "$WEIR stats -r um_sum,um_total_sum,um_cpu_page_faults_sum -f csv t.db");
  ck_assert_str_eq(o->out, "");
  const char *line = "SKIPPED: t.db does not contain CUDA Unified Memory CPU page faults data.\n";
  char three[300];
  (void)snprintf(three, sizeof(three), "%s%s%s", line, line, line);
  ck_assert_str_eq(o->err, three);
  o = sh_status(0, "$WEIR stats -r um_sum,cuda_api_sum -f csv -o base t.db; ls base_*");
  ck_assert_str_eq(o->out, "base_cuda_api_sum.csv\n");
  sh_status(1, "$WEIR stats um_sum nothing.db");
  sh_status(1, "$WEIR stats um_sum $WEIR");
}
END_TEST

/* ":nvtx-name": the innermost range of the call, and a slash. */
START_TEST(kernels_are_named_by_their_range)
{
  sh_status(0, RUN "--device-times=all -- $BUILD/tests/e2e/random_caller 5 2 300 counts");
  sh_status(
      0,
      "sqlite3 t.db \"DELETE FROM name WHERE kind = 'kernel';"
      "INSERT INTO name(process, kind, handle, name) SELECT id, 'kernel', 1,"
      " '_ZN1a3addIiEEvPT_' FROM process; UPDATE event_row SET a = 1 WHERE template IN"
      " (SELECT id FROM template WHERE kind = 6); DELETE FROM event_range;"
      " DELETE FROM range_row; DELETE FROM range_name; INSERT INTO range_name(id, text, domain_id,"
      " domain) VALUES (1, 'a::b(c) step', 0, ''), (2, 'inner', 0, '');"
      " INSERT INTO range_row(id, process, thread, kind, name, start) SELECT 1, min(id), 1, 1, 1, 0"
      " FROM process UNION ALL SELECT 2, min(id), 1, 1, 2, 0 FROM process;"
      " INSERT INTO event_range SELECT id, 1 + id %% 3 FROM event_row WHERE id %% 3 < 2\"");
  const char *names =
      "$WEIR stats cuda_gpu_kern_sum%s -f csv t.db | sed 1d | grep add | cut -d, -f9- |"
      " sort";
  ck_assert_str_eq(sh_status(0, names, ":nvtx-name:base")->out,
                   "a::b(c) step/add\nadd\ninner/add\n");
  ck_assert_str_eq(sh_status(0, names, ":nvtx-name")->out,
                   "a::b(c) step/void a::add<int>(int*)\ninner/void a::add<int>(int*)\n"
                   "void a::add<int>(int*)\n");
  ck_assert_ptr_nonnull(
      strstr(sh_status(0, names, ":nvtx-name:mangled")->out, "inner/_ZN1a3addIiEEvPT_\n"));
  const char *sum = "$WEIR stats cuda_gpu_kern_sum%s -f csv t.db | sed 1d | awk -F, '{ n += $3;"
                    " ns += $2 } END { print n, ns }'";
  char *all = strdup(sh_status(0, sum, "")->out);
  ck_assert_str_eq(sh_status(0, sum, ":nvtx-name")->out, all);
  free(all);
  sh_status(
      0, "for r in cuda_gpu_trace cuda_gpu_sum cuda_api_gpu_sum cuda_kern_exec_sum; do"
         " $WEIR stats $r:nvtx-name -f csv t.db | grep -q 'inner/void a::add<int>' || exit; done");
  sh_status(2, "$WEIR stats cuda_api_sum:nvtx-name t.db");
  sh_status(0, "$WEIR stats -r cuda_gpu_kern_sum:nvtx-name:base -o x t.db && ls"
               " x_cuda_gpu_kern_sum_nvtx-name_base.csv");
}
END_TEST

/* ":base" adds up the kernels of one name; ":mangled" is the program's. */
START_TEST(kernels_have_the_names_that_are_asked_for)
{
  sh_status(0, RUN "--device-times=all -- $BUILD/tests/e2e/random_caller 5 2 300 counts");
  sh_status(
      0, "sqlite3 t.db \"DELETE FROM name WHERE kind = 'kernel';"
         "INSERT INTO name(process, kind, handle, name) SELECT id, 'kernel', 1,"
         " '_ZN12_GLOBAL__N_13addIiEEvPT_' FROM process UNION ALL SELECT id, 'kernel', 2,"
         " '_ZN1a3addIfEEvPT_' FROM process; UPDATE event_row SET a = 1 + (id & 1) WHERE template"
         " IN (SELECT id FROM template WHERE kind = 6)\"");
  const char *names =
      "$WEIR stats cuda_gpu_kern_sum%s -f csv t.db | sed 1d | grep add | cut -d, -f9- | sort";
  ck_assert_str_eq(sh_status(0, names, ":base")->out, "add\n");
  outcome *whole = sh_status(0, names, "");
  ck_assert_ptr_nonnull(strstr(whole->out, "void (anonymous namespace)::add<int>(int*)"));
  ck_assert_ptr_nonnull(strstr(whole->out, "void a::add<float>(float*)"));
  ck_assert_ptr_nonnull(strstr(sh_status(0, names, ":mangled")->out, "_ZN1a3addIfEEvPT_\n"));
  const char *sum =
      "$WEIR stats cuda_gpu_kern_sum%s -f csv t.db | sed 1d | grep add | awk -F, '{ n += $3 }"
      " END { print n }'";
  char *of_base = strdup(sh_status(0, sum, ":base")->out);
  ck_assert_str_eq(sh_status(0, sum, ":mangled")->out, of_base);
  free(of_base);
}
END_TEST

START_TEST(what_cannot_be_written_is_said)
{
  sh_status(0, RUN "-- $VICTIM repeat 3");
  sh_status(1, "$WEIR stats cuda_api_sum t.db >/dev/full");
  sh_status(1, "$WEIR stats cuda_api_sum -o nowhere/x t.db");
  outcome *o = sh_status(2, "$WEIR stats cuda_api_sum -o ./t.db t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "is the trace itself"));
  sh_status(0, "$WEIR report t.db");
  sh_status(0, "$WEIR stats cuda_api_trace -n 2 -f csv -o x t.db && test $(wc -l <x) = 3");
  ck_assert_str_eq(sh_status(0, "ls | grep -c part; true")->out, "0\n");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/stats");
  TCase *t = tcase_create("stats");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, numbers_are_those_of_the_tables_and_of_the_report, 0, 2);
  tcase_add_test(t, ranges_are_summed_by_domain_and_text);
  tcase_add_test(t, ranges_too_deep_to_be_recorded_are_all_counted);
  tcase_add_test(t, what_other_work_did_to_a_process_is_recorded_at_its_end);
  tcase_add_test(t, what_the_trace_has_nothing_for_is_one_sentence);
  tcase_add_test(t, rules_find_what_they_are_for);
  tcase_add_test(t, names_of_any_bytes_stay_in_their_cells);
  tcase_add_test(t, columns_are_as_wide_as_what_is_in_them);
  tcase_add_test(t, several_reports_are_made_in_one_call);
  tcase_add_test(t, formats_and_outputs_are_lists);
  tcase_add_test(t, times_have_the_unit_that_is_asked_for);
  tcase_add_test(t, what_no_trace_has_is_skipped);
  tcase_add_test(t, kernels_are_named_by_their_range);
  tcase_add_test(t, kernels_have_the_names_that_are_asked_for);
  tcase_add_test(t, what_cannot_be_written_is_said);
  suite_add_tcase(s, t);
  return run_suite(s);
}
