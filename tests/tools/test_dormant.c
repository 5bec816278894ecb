/* test_dormant.c: weir run --dormant, weir start, weir stop: whatever is recorded when, what the
 * program holds is known, each of its calls is either in the trace or counted, and nothing is
 * concluded from calls that are not there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

#define SPELLS    "$BUILD/tests/tools/spells "
#define IS_SPELLS "exe LIKE '%/spells'"
#define RUN       "$WEIR run --sim --force -o t.db "
/* Events of the calls that spells counts. */
#define WORK "(SELECT count(*) FROM event WHERE kind IN (3, 4, 5, 8))"

static void set_up(void)
{
  enter_scratch();
  set_names();
}

typedef struct told {
  long calls;
  long held;
} told;

/* What the program printed last. */
static told told_by(const outcome *o)
{
  told t = {-1, -1};
  const char *at = strstr(o->out, "calls ");
  ck_assert_ptr_nonnull(at);
  ck_assert_int_eq(sscanf(at, "calls %ld held %ld", &t.calls, &t.held), 2);
  return t;
}

static long long left_out(void)
{
  return ask("t.db", "SELECT sum(unrecorded_calls) FROM process");
}

static void check_live_set(told t, long more)
{
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM block WHERE how = 0 AND mem = 3 AND bytes = 4096"), t.held);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block WHERE how = 0"), t.held + more);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block WHERE stack IS NULL"), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM block WHERE how NOT IN (0, 1)"), 0);
}

static void check_nothing_is_found(void)
{
  const char *out = sh_status(0, "$WEIR report findings --format json/1 t.db")->out;
  ck_assert_ptr_nonnull(strstr(out, "\"findings\": []"));
  ck_assert_ptr_nonnull(strstr(out, "it needs all calls of the run"));
  out = sh_status(0, "$WEIR report t.db")->out;
  ck_assert_ptr_nonnull(strstr(out, "not all calls were recorded"));
  ck_assert_ptr_nonnull(strstr(out, "rules were not looked for"));
}

START_TEST(a_dormant_program_records_what_is_live_and_counts_the_rest)
{
  told t = told_by(
      sh_status(0, RUN "--dormant -- " SPELLS "work 1000 hold 50 drop 20 pinned 3 work 500"));
  ck_assert_int_eq(t.calls, 6001);
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 0);
  ck_assert_int_eq(left_out(), t.calls);
  check_live_set(t, 1 + 3);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM recording WHERE recorded = 'memory'"), 1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM recording"), 1);
  ck_assert_int_eq(ask("t.db", "SELECT unrecorded_spans FROM process"), 1);
  check_nothing_is_found();
}
END_TEST

START_TEST(a_program_is_recorded_between_start_and_stop)
{
  told t =
      told_by(sh_status(0, RUN "--dormant -- " SPELLS
                               "work 100 hold 9 start work 200 drop 2 stop work 300 hold 5 start "
                               "work 40 stop work 7"));
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 4 * 240);
  ck_assert_int_eq(left_out(), t.calls - 4 * 240);
  check_live_set(t, 1);
  ck_assert_int_eq(ask("t.db", "SELECT group_concat(recorded, ' ') = 'memory all memory all memory'"
                               " FROM (SELECT recorded FROM recording ORDER BY time)"),
                   1);
  /* Each event is in a window, and has its stack. */
  ck_assert_int_eq(
      ask("t.db",
          "SELECT count(*) FROM event e WHERE kind IN (3, 4, 5, 8) AND (SELECT recorded FROM"
          " recording r WHERE r.time <= e.start ORDER BY r.time DESC LIMIT 1) = 'all'"),
      4 * 240);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM event WHERE kind IN (3, 4, 5, 8) AND stack IS NULL"), 0);
  check_nothing_is_found();
}
END_TEST

START_TEST(starting_and_stopping_go_on_as_often_as_one_likes)
{
  enum { TIMES = 20 };
  char line[2048] = "";
  for (int i = 0; i < TIMES; i++)
    (void)snprintf(line + strlen(line), sizeof line - strlen(line),
                   "start work 3 hold 1 stop work 5 ");
  told t = told_by(sh_status(0, RUN "--dormant -- " SPELLS "%s", line));
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 4 * 3 * TIMES + 1);
  ck_assert_int_eq(left_out(), t.calls - 4 * 3 * TIMES - 1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM recording"),
                   2 * TIMES - 1); /* no call was before */
  check_live_set(t, 1);
}
END_TEST

/* In the modes that reroute calls take the same way as ever, and their events are left out. */
START_TEST(a_program_that_records_all_can_be_stopped)
{
  static const char *const modes[] = {"observe", "strict", "relaxed"};
  told t = told_by(
      sh_status(0, RUN "--mode=%s -- " SPELLS "work 100 hold 5 stop work 200 hold 5 start work 50",
                modes[_i]));
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 4 * 150 + 1);
  ck_assert_int_eq(left_out(), 4 * 200);
  ck_assert_int_eq(t.held, 10);
  check_live_set(t, 1);
  check_nothing_is_found();
}
END_TEST

START_TEST(a_program_that_is_never_stopped_has_all_its_calls)
{
  told t = told_by(sh_status(0, RUN "-- " SPELLS "work 100 start work 100"));
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), t.calls);
  ck_assert_int_eq(left_out(), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM recording"), 0);
  ck_assert_ptr_null(strstr(sh_status(0, "$WEIR report t.db")->out, "not all calls"));
  ck_assert_ptr_null(
      strstr(sh_status(0, "$WEIR report findings --format json/1 t.db")->out, "needs all calls"));
}
END_TEST

START_TEST(threads_count_what_they_leave_out)
{
  told t = told_by(sh_status(0, RUN "--dormant -- " SPELLS
                                    "threads 16 1500 work 1 start threads 4 30 stop threads 8 7"));
  ck_assert_int_eq(left_out() + ask("t.db", "SELECT " WORK), t.calls);
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 4 * (4 * 30 + 1));
}
END_TEST

/* A thread that lives on at the end has counted up to a batch that nobody heard of. */
START_TEST(threads_that_outlive_the_program_lose_little)
{
  told t = told_by(sh_status(0, RUN "--dormant -- " SPELLS "stay 6 5000"));
  ck_assert_int_le(left_out(), t.calls);
  ck_assert_int_gt(left_out(), t.calls - 6 * 4096);
}
END_TEST

START_TEST(children_are_as_their_parents_were)
{
  static const char *const children[] = {"fork", "past"};
  sh_status(0, RUN "--dormant -- " SPELLS "work 10 %s 300 start work 5 %s 20", children[_i],
            children[_i]);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE " IS_SPELLS), 3);
  ck_assert_int_eq(ask("t.db", "SELECT max(unrecorded_calls) FROM process WHERE id > 1"), 300);
  ck_assert_int_eq(
      ask("t.db", "SELECT sum(unrecorded_spans) FROM process WHERE id > 1 AND " IS_SPELLS), 1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 5 AND process > 1"), 20);
}
END_TEST

START_TEST(what_is_executed_begins_dormant_again)
{
  told t = told_by(sh_status(0, RUN "--dormant -- " SPELLS "start work 5 exec hold 3 work 10"));
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE " IS_SPELLS), 2);
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 4 * 5 + 1);
  ck_assert_int_eq(left_out(), t.calls);
}
END_TEST

/* A range that began before goes on to its end; one that begins meanwhile is left out. */
START_TEST(ranges_begin_where_calls_are_recorded)
{
  sh_status(
      0,
      RUN "--dormant -- " SPELLS
          "push before work 1 start push in work 5 stop push between pop pop work 2 pop start push "
          "after work 1 pop");
  if (ask("t.db", "SELECT count(*) FROM range_row") == 0) return; /* built without NVTX's headers */
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM range_row"), 2);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM range WHERE text IN ('in', 'after')"), 2);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM range WHERE \"end\" IS NULL"), 0);
}
END_TEST

/* ---- windows --------------------------------------------------------------------------------- */

START_TEST(calls_are_recorded_from_a_time_on_for_a_time)
{
  static const char *const options[] = {"--delay=20ms --duration=20ms", "--delay=20ms",
                                        "--duration=20ms"};
  static const char *const lives[] = {"work 5 await all work 7 await memory work 9",
                                      "work 5 await all work 7", "work 5 await memory work 9"};
  static const char *const recorded[] = {"memory all memory", "memory all", "memory"};
  told t = told_by(sh_status(0, RUN "%s -- " SPELLS "%s", options[_i], lives[_i]));
  ck_assert_int_eq(left_out() + ask("t.db", "SELECT " WORK), t.calls);
  ck_assert_int_gt(left_out(), 0);
  ck_assert_int_gt(ask("t.db", "SELECT " WORK), 0);
  char query[256];
  (void)snprintf(query, sizeof query,
                 "SELECT group_concat(recorded, ' ') = '%s' FROM (SELECT recorded FROM recording"
                 " ORDER BY time)",
                 recorded[_i]);
  ck_assert_int_eq(ask("t.db", query), 1);
  check_nothing_is_found();
}
END_TEST

START_TEST(calls_are_recorded_while_the_profiler_runs)
{
  told t =
      told_by(sh_status(0, RUN "--capture=profiler -- " SPELLS
                               "work 10 profiler 1 work 20 profiler 1 hold 2 profiler 0 work 30 "
                               "profiler 0 profiler 1 work 4 profiler 0 work 5"));
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 4 * 24);
  ck_assert_int_eq(left_out() + 4 * 24, t.calls);
  check_live_set(t, 1);
}
END_TEST

START_TEST(calls_are_recorded_in_ranges_of_a_name)
{
  told t =
      told_by(sh_status(0, RUN "--capture='range:a step' -- " SPELLS
                               "push other work 10 push 'a step' work 20 push 'a step' work 3 pop "
                               "push in work 1 pop work 2 pop work 30 pop push 'a step' work 4 pop "
                               "push 'a step too' work 5"));
  if (ask("t.db", "SELECT count(*) FROM range_row") == 0) return; /* built without NVTX's headers */
  ck_assert_int_eq(ask("t.db", "SELECT " WORK), 4 * (20 + 3 + 1 + 2 + 4));
  ck_assert_int_eq(left_out() + 4 * 30, t.calls);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM range WHERE text = 'a step'"), 3);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM range"), 4);
}
END_TEST

START_TEST(options_that_do_not_go_together_are_refused)
{
  static const char *const bad[] = {"--delay=5",
                                    "--duration=5m",
                                    "--capture=x",
                                    "--capture=range:",
                                    "--capture=profiler --delay=1s",
                                    "--delay=0s"};
  sh_status(2, "$WEIR run %s -- true", bad[_i]);
}
END_TEST

START_TEST(who_runs_without_weir_cannot_be_started)
{
  outcome *o = sh("$WEIR start $$");
  ck_assert_int_ne(o->status, 0);
  ck_assert_ptr_nonnull(strstr(o->err, "does not run under Weir"));
  o = sh("$WEIR stop nowhere.db");
  ck_assert_int_ne(o->status, 0);
  ck_assert_ptr_nonnull(strstr(o->err, "nowhere.db"));
  sh_status(2, "$WEIR start");
  sh_status(2, "$WEIR stop 1 2");
}
END_TEST

/* The trace that is being written stands for all of its programs, also those that come later. */
START_TEST(all_programs_of_a_trace_are_started)
{
  sh_status(0, RUN "--dormant -- sh -c '" SPELLS "work 10 >1 && \"$WEIR\" start t.db && " SPELLS
                   "work 10 start work 20 >2'");
  ck_assert_int_eq(left_out() + ask("t.db", "SELECT " WORK), 2 * 41 + 80);
  ck_assert_int_ge(ask("t.db", "SELECT " WORK), 80);
}
END_TEST

/* A rule of the user's own judges such a trace where it says that it may. */
START_TEST(a_rule_judges_what_it_says_it_can)
{
  sh_status(0,
            "mkdir rules && for how in '-- partial: judged' ''; do printf '%%s\\n' '-- number: 0'"
            " \"-- id: blocks${how:+-too}\" '-- title: Blocks' '-- severity: low'"
            " '-- certainty: certain' '-- fix: None.' ${how:+\"$how\"}"
            " 'SELECT alloc AS event, 2000000 AS cost_ns FROM block WHERE mem = 3'"
            " > rules/blocks${how:+-too}.sql; done");
  sh_status(0, RUN "--dormant -- " SPELLS "hold 3 work 10");
  const char *out = sh_status(0, "$WEIR report findings --rules rules --format json/1 t.db")->out;
  ck_assert_ptr_nonnull(strstr(out, "blocks-too"));
  ck_assert_ptr_null(strstr(out, "\"findings\": []"));
}
END_TEST

/* That nothing was looked for is no proof that nothing is there. */
START_TEST(a_budget_for_findings_is_not_met_without_them)
{
  sh_status(0, RUN "--dormant -- " SPELLS "hold 3 work 10");
  sh_status(0, "printf 'peak <= 1 GiB\\n' > memory; printf 'finding certain == 0\\n' > findings");
  sh_status(0, "$WEIR check --budget memory t.db");
  outcome *o = sh("$WEIR check --budget findings t.db");
  ck_assert_int_ne(o->status, 0);
  ck_assert_ptr_nonnull(strstr(o->out, "were not recorded"));
  ck_assert_int_ne(sh("$WEIR diff --fail-on 'waits.redundant.count>0' t.db t.db")->status, 0);
}
END_TEST

/* Programs that waste, of which most calls are not there. */
START_TEST(nothing_is_found_in_a_program_that_wastes)
{
  static const char *const wastes[] = {"pinned-churn", "repeated-allocation", "redundant-wait",
                                       "duplicate-transfer", "unused-transfer"};
  sh_status(0, RUN "--dormant -- $BUILD/tests/findings/waster %s", wastes[_i]);
  check_nothing_is_found();
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/dormant");
  TCase *t = tcase_create("dormant");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, set_up, leave_scratch);
  tcase_add_test(t, a_dormant_program_records_what_is_live_and_counts_the_rest);
  tcase_add_test(t, a_program_is_recorded_between_start_and_stop);
  tcase_add_test(t, starting_and_stopping_go_on_as_often_as_one_likes);
  tcase_add_loop_test(t, a_program_that_records_all_can_be_stopped, 0, 3);
  tcase_add_test(t, a_program_that_is_never_stopped_has_all_its_calls);
  tcase_add_test(t, threads_count_what_they_leave_out);
  tcase_add_test(t, threads_that_outlive_the_program_lose_little);
  tcase_add_loop_test(t, children_are_as_their_parents_were, 0, 2);
  tcase_add_test(t, what_is_executed_begins_dormant_again);
  tcase_add_test(t, ranges_begin_where_calls_are_recorded);
  tcase_add_loop_test(t, calls_are_recorded_from_a_time_on_for_a_time, 0, 3);
  tcase_add_test(t, calls_are_recorded_while_the_profiler_runs);
  tcase_add_test(t, calls_are_recorded_in_ranges_of_a_name);
  tcase_add_loop_test(t, options_that_do_not_go_together_are_refused, 0, 6);
  tcase_add_test(t, who_runs_without_weir_cannot_be_started);
  tcase_add_test(t, all_programs_of_a_trace_are_started);
  tcase_add_test(t, a_rule_judges_what_it_says_it_can);
  tcase_add_test(t, a_budget_for_findings_is_not_met_without_them);
  tcase_add_loop_test(t, nothing_is_found_in_a_program_that_wastes, 0, 5);
  suite_add_tcase(s, t);
  return run_suite(s);
}
