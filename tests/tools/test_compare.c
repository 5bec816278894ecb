/* test_compare.c: weir compare, and weir report cache of programs that were really rerouted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define COMPARE "TMPDIR=$PWD $WEIR compare --sim "
#define TRAP    "$BUILD/tests/reroute/trap "

static void nothing_is_left(void)
{
  ck_assert_str_eq(sh_status(0, "ls -d weir-compare-* 2>/dev/null | wc -l")->out, "0\n");
}

START_TEST(a_program_that_cannot_tell_agrees_in_all_modes)
{
  sh_status(0,
            COMPARE "--runs 2 --format json -- " TRAP "sizes | python3 -c '"
                    "import json, sys; c = json.load(sys.stdin)[\"compare\"];"
                    "m = c[\"modes\"];"
                    "assert c[\"agree\"] and c[\"runs\"] == 2, c;"
                    "assert c[\"difference\"] is None and c[\"varies\"] is None, c;"
                    "assert [x[\"mode\"] for x in m] == "
                    "[\"bare\", \"observe\", \"strict\", \"relaxed\"], m;"
                    "b = m.pop(0);"
                    "assert sorted(b) == [\"least_ns\", \"median_ns\", \"mode\", \"most_ns\"], b;"
                    "assert 0 < b[\"least_ns\"] <= b[\"median_ns\"] <= b[\"most_ns\"], b;"
                    "assert m[0][\"hits\"] == 0 and m[0][\"hit_rate\"] is None, m;"
                    "assert m[1][\"hits\"] > 0 and m[1][\"misses\"] > 0, m;"
                    "assert m[0][\"least_ns\"] <= m[0][\"median_ns\"] <= m[0][\"most_ns\"], m;"
                    "assert m[2][\"waits\"] < m[0][\"waits\"], m;"
                    "assert m[1][\"peak_bytes\"] >= m[0][\"peak_bytes\"] > 0, m'");
  nothing_is_left();
}
END_TEST

START_TEST(the_table_has_a_line_a_mode_and_a_verdict_last)
{
  outcome *o = sh_status(0, COMPARE "--runs 1 -- " TRAP "sizes");
  ck_assert_str_eq(o->err, "");
  char *bare = strstr(o->out, "\n  bare "), *observe = strstr(o->out, "\n  observe ");
  char *strict = strstr(o->out, "\n  strict "), *relaxed = strstr(o->out, "\n  relaxed ");
  ck_assert_msg(bare && observe && strict && relaxed, "%s", o->out);
  ck_assert(bare < observe && observe < strict && strict < relaxed);
  ck_assert_ptr_nonnull(strstr(relaxed, "output and exit status are the same in all runs\n"));
}
END_TEST

START_TEST(where_outputs_differ_is_said_first_and_is_a_failure)
{
  outcome *o = sh_status(
      1, COMPARE "--runs 2 -- sh -c 'echo same; echo \"mode $WEIR_MODE\" | sed s/observe//'");
  ck_assert_msg(!strncmp(o->out, "The runs do not agree:\n", 23), "%s", o->out);
  ck_assert_ptr_nonnull(strstr(o->out, "at byte 10, in line 2:\n    bare: mode \n"
                                       "    strict: mode strict\n"));
  ck_assert_ptr_nonnull(strstr(o->out, "strict is not what the bare program is"));
  nothing_is_left();
}
END_TEST

START_TEST(a_shorter_output_differs_too)
{
  outcome *o = sh_status(
      1, COMPARE "--runs 1 -- sh -c 'echo same; [ \"$WEIR_MODE\" = relaxed ] || echo more'");
  ck_assert_ptr_nonnull(strstr(o->out, "    bare: more\n    relaxed: (nothing)\n"));
}
END_TEST

START_TEST(another_end_differs_and_its_stderr_is_shown)
{
  outcome *o = sh_status(1, COMPARE "--runs 1 -- sh -c '[ \"$WEIR_MODE\" != strict ] ||"
                                    " { echo oh no >&2; exit 3; }'");
  ck_assert_ptr_nonnull(strstr(o->out, "bare ended with exit status 0, strict with exit status 3"));
  ck_assert_ptr_nonnull(strstr(o->err, "oh no"));
  o = sh_status(1, COMPARE "--runs 1 -- sh -c '[ \"$WEIR_MODE\" != relaxed ] || kill -9 $$'");
  ck_assert_ptr_nonnull(strstr(o->out, "relaxed with signal 9"));
}
END_TEST

START_TEST(an_output_that_varies_by_itself_is_no_witness)
{
  outcome *o = sh_status(0, COMPARE "--runs 2 -- sh -c 'echo x >>count; wc -l <count'");
  ck_assert_msg(!strncmp(o->out, "The program's own output varies from run to run:\n", 49), "%s",
                o->out);
  ck_assert_ptr_nonnull(strstr(o->out, "its output varies by itself and was not compared"));
}
END_TEST

START_TEST(what_cannot_run_ends_as_weir_run_does)
{
  outcome *o = sh_status(127, COMPARE "./nothing");
  ck_assert_str_eq(o->out, "");
  ck_assert_str_eq(o->err, "weir: cannot run './nothing': No such file or directory.\n");
  sh_status(126, ": >file; " COMPARE "-- ./file");
  nothing_is_left();
}
END_TEST

START_TEST(a_program_that_fails_alike_agrees_and_its_end_is_said)
{
  outcome *o = sh_status(1, COMPARE "--runs 2 -- sh -c 'exit 4'");
  ck_assert_ptr_nonnull(strstr(o->out, "The program ended with exit status 4.\n"));
  ck_assert_ptr_nonnull(strstr(o->out, "the program fails by itself (exit status 4)"));
}
END_TEST

/* Its output is no witness, but that a mode kills it is. */
START_TEST(an_end_counts_though_the_output_varies)
{
  outcome *o = sh_status(1, COMPARE "--runs 2 -- sh -c 'echo x >>count; wc -l <count;"
                                    " [ \"$WEIR_MODE\" != strict ] || exit 3'");
  ck_assert_msg(strstr(o->out, "strict is not what the bare program is") != NULL, "%s", o->out);
}
END_TEST

START_TEST(one_run_gives_no_verdict)
{
  outcome *o = sh_status(0, COMPARE "--runs 1 -- " TRAP "sizes");
  ck_assert_msg(strstr(o->out, "one run each gives no verdict") != NULL, "%s", o->out);
  o = sh_status(0, COMPARE "--runs 1 --format json -- " TRAP "sizes");
  ck_assert_msg(strstr(o->out, "\"verdict\": null") != NULL, "%s", o->out);
  o = sh_status(1, COMPARE "--runs 1 -- sh -c 'echo $WEIR_MODE'");
  ck_assert_msg(!strstr(o->out, "do not use it"), "%s", o->out);
}
END_TEST

/* Whatever the machine does meanwhile: between the extremes of the times that it is the ratio of.
 * Sleeps keep those apart where nothing does. */
START_TEST(a_ratio_has_an_interval_and_its_confidence)
{
  sh_status(0, COMPARE "--runs 3 --format json -- sh -c '[ -n \"$WEIR_MODE\" ] && sleep 0.2; "
                       "exec $BUILD/tests/reroute/trap sizes' | python3 -c '"
                       "import json, sys; b, *m = json.load(sys.stdin)[\"compare\"][\"modes\"];"
                       "assert all(x[\"of_bare_low\"] <= x[\"of_bare\"] <= x[\"of_bare_high\"]"
                       " for x in m), m;"
                       "assert all(x[\"confidence\"] == 0.75 for x in m), m;"
                       "assert all(x[\"least_ns\"] / b[\"most_ns\"] - 1e-6 <= x[\"of_bare\"] <="
                       " x[\"most_ns\"] / b[\"least_ns\"] + 1e-6 for x in m), m'");
}
END_TEST

/* Where half of the machine cannot be kept busy from here, what is said follows from what was
 * measured all the same. */
START_TEST(a_loaded_machine_is_said)
{
  const outcome *o = sh_status(
      0,
      "p=; for i in $(seq $(($(nproc) * 2))); do (while :; do :; done) & p=\"$p $!\"; done;"
      " export TRAP=" TRAP "; " COMPARE "--format json --runs 2 -- sh -c 'sleep 0.05; exec $TRAP "
      "sizes' >json; s=$?; " COMPARE "--runs 2 -- sh -c 'sleep 0.05; exec $TRAP sizes' >text;"
      " t=$?; kill $p; [ $s$t = 00 ] || exit 1; python3 -c '"
      "import json; c = json.load(open(\"json\"))[\"compare\"]; share = c[\"others_share\"] or 0;"
      "assert c[\"loaded\"] == (share > 0.1), c;"
      "print(share < 0.4 or \"the machine was loaded: others had \" in open(\"text\").read())'");
  ck_assert_str_eq(o->out, "True\n");
}
END_TEST

/* 0: while the program runs bare; 1: while it is observed. */
START_TEST(an_interrupt_ends_it_and_leaves_nothing)
{
  int out[2];
  ck_assert_int_eq(pipe(out), 0);
  pid_t pid =
      start(-1, out[1],
            "WHO=$$ exec env TMPDIR=$PWD $WEIR compare --runs 9 -- sh -c '"
            "[ %d = 1 ] && [ -z \"$WEIR_MODE\" ] && exit; kill -TERM $WHO; exec sleep 1000'",
            _i);
  int status;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "%#x", (unsigned)status);
  nothing_is_left();
}
END_TEST

static const char *const examples[] = {"memory", "driver", "stencil 30", "train 3", "pipeline 8"};

START_TEST(every_example_agrees)
{
  sh_status(0, COMPARE "--runs 1 -- $BUILD/examples/%s", examples[_i]);
}
END_TEST

/* ---- report cache ---------------------------------------------------------------------------- */

static void run_trap_in_mode(const char *environment, const char *mode, const char *trap)
{
  sh_status(0,
            "XDG_CACHE_HOME=$PWD WEIR_SIM_MEMORY=1G %s $WEIR run --force -o t.db --sim=2 --mode=%s "
            "-- " TRAP "%s",
            environment, mode, trap);
}

/* Python about `c`, the report on the last run. */
static void expect(const char *python)
{
  sh_status(0,
            "$WEIR report cache --format json t.db | python3 -c 'import json, sys;"
            "r = json.load(sys.stdin); c = r[\"cache\"]; device = r[\"caches\"][0];"
            "n = lambda what, reason: sum(x[\"count\"] for x in r[\"reasons\"]"
            " if x[\"what\"] == what and x[\"reason\"] in (reason or x[\"reason\"],));%s'",
            python);
}

#define CACHED "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64"

START_TEST(the_report_counts_what_the_trace_has)
{
  char python[128];
  run_trap_in_mode("", "strict", "sizes");
  long long hits = ask("t.db", CACHED);
  (void)snprintf(python, sizeof python, "assert c[\"hits\"] == %lld > 0, c", hits);
  expect(python);
  expect("assert c[\"mode\"] == \"strict\" and c[\"waits_kept\"] > 0 == c[\"waits_avoided\"], c");
  expect("assert n(\"allocation missed\", None) == c[\"misses\"] > 0, c");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE mode = 'strict'"), 1);
  run_trap_in_mode("", "relaxed", "sizes");
  expect("assert c[\"mode\"] == \"relaxed\" and c[\"waits_kept\"] == 0, c");
  run_trap_in_mode("", "observe", "sizes");
  expect("assert c[\"mode\"] == \"observe\" and c[\"hits\"] == c[\"misses\"] == 0, c");
}
END_TEST

/* A wait is a part of its call: in ticks it would be longer on most machines. */
START_TEST(the_wait_of_a_free_is_no_longer_than_the_free)
{
  run_trap_in_mode("", "strict", "reuse");
  ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM event WHERE kind = 2 AND b > 1000000"), 0);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM event WHERE kind = 2 AND b > \"end\" - start + 1"), 0);
}
END_TEST

START_TEST(relaxed_frees_with_work_under_way_avoid_their_waits)
{
  run_trap_in_mode("", "relaxed", "reuse");
  expect("assert c[\"waits_avoided\"] > 0, c");
  expect("assert n(\"allocation missed\", \"waiting\") > 0, c");
}
END_TEST

START_TEST(what_a_graph_may_use_is_told_with_its_frees)
{
  run_trap_in_mode("", "strict", "graph_after_free");
  expect("assert n(\"never cached\", \"graph\") > 0"
         " and n(\"free left to the driver\", \"graph\") > 0, c");
}
END_TEST

START_TEST(memory_given_back_is_told_by_reason)
{
  run_trap_in_mode("WEIR_CACHE_LIMIT=1M", "strict", "sizes");
  expect("assert n(\"given back\", \"limit\") > 0, c");
  expect("assert device[\"cached_end_bytes\"] <= 1 << 20, c");
  run_trap_in_mode("WEIR_SIM_MEMORY=128M", "strict", "out_of_memory");
  expect("assert n(\"given back\", \"out_of_memory\") > 0, c");
  /* a tenth of the device, whatever passed through */
  expect("assert 0 < device[\"cached_peak_bytes\"] <= 128 * (1 << 20) // 10, c");
}
END_TEST

START_TEST(staging_is_told_and_who_measured_it)
{
  run_trap_in_mode("WEIR_STAGING=on", "strict", "pageable_copies");
  expect("assert all(s[\"copies\"] > 0 and s[\"share_of_driver\"] is None for s in "
         "r[\"staging\"][:2]), c");
  run_trap_in_mode("", "strict", "pageable_copies");
  expect("assert all(s[\"measured_by\"] == \"this program\" for s in r[\"staging\"][:2]), c");
  run_trap_in_mode("", "strict", "pageable_copies");
  expect("assert all(s[\"measured_by\"] == \"an earlier program\" and s[\"share_of_driver\"] > 0"
         " for s in r[\"staging\"][:2]), c");
  run_trap_in_mode("WEIR_STAGING=on", "strict", "peer_order");
  expect("s = r[\"staging\"][2]; assert s[\"direction\"] == \"p2p\" and s[\"copies\"] == 20, c");
  const outcome *o = sh_status(0, "$WEIR report cache t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "device → device: 20 staged (450 MiB), 0 by the driver"));
}
END_TEST

START_TEST(the_text_says_it_in_words)
{
  run_trap_in_mode("", "strict", "graph_after_free");
  outcome *o = sh_status(0, "$WEIR report cache t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "Caches, strict\n"));
  ck_assert_ptr_nonnull(strstr(o->out, "a graph may use it"));
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "Caches, strict\n"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/compare");
  TCase *t = tcase_create("compare");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, a_program_that_cannot_tell_agrees_in_all_modes);
  tcase_add_test(t, the_table_has_a_line_a_mode_and_a_verdict_last);
  tcase_add_test(t, where_outputs_differ_is_said_first_and_is_a_failure);
  tcase_add_test(t, a_shorter_output_differs_too);
  tcase_add_test(t, another_end_differs_and_its_stderr_is_shown);
  tcase_add_test(t, an_output_that_varies_by_itself_is_no_witness);
  tcase_add_test(t, what_cannot_run_ends_as_weir_run_does);
  tcase_add_test(t, a_program_that_fails_alike_agrees_and_its_end_is_said);
  tcase_add_test(t, an_end_counts_though_the_output_varies);
  tcase_add_test(t, one_run_gives_no_verdict);
  tcase_add_test(t, a_ratio_has_an_interval_and_its_confidence);
  tcase_add_test(t, a_loaded_machine_is_said);
  tcase_add_loop_test(t, an_interrupt_ends_it_and_leaves_nothing, 0, 2);
  tcase_add_loop_test(t, every_example_agrees, 0, sizeof examples / sizeof *examples);
  tcase_add_test(t, the_report_counts_what_the_trace_has);
  tcase_add_test(t, the_wait_of_a_free_is_no_longer_than_the_free);
  tcase_add_test(t, relaxed_frees_with_work_under_way_avoid_their_waits);
  tcase_add_test(t, what_a_graph_may_use_is_told_with_its_frees);
  tcase_add_test(t, memory_given_back_is_told_by_reason);
  tcase_add_test(t, staging_is_told_and_who_measured_it);
  tcase_add_test(t, the_text_says_it_in_words);
  suite_add_tcase(s, t);
  return run_suite(s);
}
