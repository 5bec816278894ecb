/* test_asked.c: calls that ask are counted by place, in programs that end, fork and are killed, and
 * the program does not notice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/e2e/killed.h"
#include "tests/level.h"
#include "tests/tools/command.h"

#define KILLS AT_LEVEL(10, 30, 300)

static const char *const modes[] = {"observe", "strict", "relaxed"};

/* "calls of FUNCTION": how many there were, and the rows that they are in. */
#define OF(function)    " FROM asked JOIN api a ON a.id = asked.api WHERE a.name = '" function "'"
#define CALLS(function) "SELECT ifnull(sum(calls), 0)" OF(function)
#define ROWS(function)  "SELECT count(*)" OF(function)

static void run_asker(const char *program, const char *mode, const char *arguments)
{
  (void)sh_status(0, "$WEIR run --force -o t.db --sim --mode=%s -- $BUILD/tests/e2e/%s %s", mode,
                  program, arguments);
}

static void check_function(const char *name, long long calls, long long rows)
{
  char sql[256];
  (void)snprintf(sql, sizeof sql, CALLS("%s"), name);
  ck_assert_msg(ask("t.db", sql) == calls, "%s: %lld calls, not %lld", name, ask("t.db", sql),
                calls);
  (void)snprintf(sql, sizeof sql, ROWS("%s"), name);
  ck_assert_int_eq(ask("t.db", sql), rows);
}

static const char *const questions[] = {"cudaMemGetInfo", "cudaGetDeviceProperties",
                                        "cudaDeviceGetAttribute", "cudaPointerGetAttributes",
                                        "cudaGetDevice"};
enum { QUESTIONS = sizeof questions / sizeof *questions };

/* What is true of each row that has no calls of other places. */
static void check_rows(void)
{
  ck_assert_int_eq(ask("t.db",
                       "SELECT count(*) FROM asked WHERE api AND (timed < 8 OR timed_ns <= 0"
                       " OR about_ns <= 0 OR timed > 8 + calls / 64 + 1)"),
                   0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM asked s LEFT JOIN event e ON e.id = s.event"
                               " WHERE s.api AND (e.api IS NOT s.api OR e.stack IS NULL"
                               " OR e.thread <> s.thread)"),
                   0);
  ck_assert_int_eq(ask("t.db", "SELECT sum(torn) + sum(dropped) FROM process"), 0);
}

START_TEST(each_call_of_a_place_is_counted_once)
{
  for (int i = 0; i < 3; i++) {
    run_asker("asker", modes[i], "loop 10000");
    for (int q = 0; q < QUESTIONS; q++)
      check_function(questions[q], 10000, 1);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM asked"), QUESTIONS);
    check_rows();
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM call WHERE function = 'cudaMemGetInfo'"), 1);
    ck_assert_int_eq(ask("t.db", "SELECT min(launches) / 64 FROM asked"), 9984 / 64 - 1);
    ck_assert_int_eq(ask("t.db", "SELECT sum(timed - followed) FROM asked"), QUESTIONS);
  }
}
END_TEST

START_TEST(the_report_has_each_place_with_its_calls)
{
  run_asker("asker", "strict", "loop 1000");
  outcome *o = sh_status(0, "$WEIR report t.db");
  const char *asked = strstr(o->out, "Asked again and again");
  ck_assert_ptr_nonnull(asked);
  for (int q = 0; q < QUESTIONS; q++)
    ck_assert_ptr_nonnull(strstr(asked, questions[q]));
  ck_assert_ptr_nonnull(strstr(asked, "ask_each"));
  ck_assert_ptr_nonnull(strstr(asked, "ask_in_a_loop")); /* who called it */
  ck_assert_ptr_nonnull(strstr(asked, "1,000"));
  o = sh_status(0, "$WEIR report --format json t.db | python3 -c 'import json, sys\n"
                   "asked = json.load(sys.stdin)[\"asked_places\"]\n"
                   "print(len(asked), sum(x[\"calls\"] for x in asked),"
                   " min(x[\"host_ns\"] for x in asked) > 0)'");
  ck_assert_str_eq(o->out, "5 5000 True\n");
  run_asker("asker", "strict", "loop 63");
  o = sh_status(0, "$WEIR report t.db");
  ck_assert_ptr_null(strstr(o->out, "Asked again"));
}
END_TEST

START_TEST(a_place_that_asks_less_than_64_times_leaves_nothing)
{
  run_asker("asker", "strict", "loop 63");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM asked"), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event e JOIN api a ON a.id = e.api"
                               " WHERE a.category = 'query'"),
                   0);
  run_asker("asker", "strict", "loop 64");
  for (int q = 0; q < QUESTIONS; q++)
    check_function(questions[q], 64, 1);
  check_rows();
}
END_TEST

START_TEST(places_for_which_there_is_no_room_are_one)
{
  run_asker("asker", "strict", "few 10");
  ck_assert_int_eq(ask("t.db", "SELECT sum(calls) FROM asked"), 30000);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM asked WHERE api = 0 AND address = 0 AND"
                               " event IS NULL AND calls >= 100 * 100"),
                   1);
  ck_assert_int_ge(ask("t.db", ROWS("cudaGetDeviceCount")), 100);
  check_rows();
}
END_TEST

START_TEST(each_thread_has_its_own_counts)
{
  run_asker("asker", "strict", "threads 5000");
  for (int q = 0; q < QUESTIONS; q++)
    check_function(questions[q], 4 * 5000, 4);
  check_rows();
}
END_TEST

START_TEST(a_forked_child_counts_its_own_calls)
{
  run_asker("asker", "strict", "fork 1000");
  ck_assert_int_eq(ask("t.db", CALLS("cudaGetDeviceCount") " AND thread IN (SELECT t.id FROM thread"
                                                           " t JOIN process p ON p.id = t.process"
                                                           " WHERE p.ppid NOT IN (SELECT pid FROM"
                                                           " process))"),
                   2000);
  /* what it asks until it has been noticed counts for neither */
  long long calls = ask("t.db", CALLS("cudaGetDeviceCount"));
  ck_assert_int_ge(calls, 2000 + 4000 - 64);
  ck_assert_int_le(calls, 2000 + 4000);
}
END_TEST

/* The runtime that is linked in is not seen; what it asks of the driver is. */
START_TEST(what_a_linked_in_runtime_asks_is_counted_below_it)
{
  run_asker("asker_static", "strict", "loop 1000");
  check_function("cudaMemGetInfo", 0, 0);
  check_function("cuMemGetInfo_v2", 1000, 1);
  check_rows();
}
END_TEST

START_TEST(functions_that_were_looked_up_are_counted)
{
  run_asker("asker", "observe", "driver 1000");
  check_function("cuMemGetInfo_v2", 1000, 1);
  check_function("cuDeviceGetAttribute", 1000, 1);
  check_rows();
}
END_TEST

START_TEST(the_program_gets_the_same_answers)
{
  const char *const programs[] = {"asker", "asker_static"};
  for (int p = 0; p < 2; p++) {
    outcome *o =
        sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim $BUILD/tests/e2e/%s errors 100", programs[p]);
    char *bare = strdup(o->out);
    ck_assert_ptr_nonnull(strstr(bare, "done"));
    for (int i = 0; i < 3; i++) {
      o = sh_status(0,
                    "$WEIR run --force -o t.db --sim --mode=%s -- $BUILD/tests/e2e/%s errors 100",
                    modes[i], programs[p]);
      ck_assert_str_eq(o->out, bare);
    }
    free(bare);
  }
}
END_TEST

START_TEST(a_program_killed_while_it_asks_has_most_of_it_in_its_trace)
{
  srand(1);
  for (int i = 0; i < KILLS; i++) {
    ticker_page x;
    kill_at_random("asker forever counters", i % 2 == 0, 100000, &x);
    uint64_t lost = x.done / 8 + 64 < 4096 + 64 ? x.done / 8 + 64 : 4096 + 64;
    check_held(i, &x, (uint64_t)ask("t.db", CALLS("cudaMemGetInfo")), lost);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("asked");
  TCase *t = tcase_create("counted");
  tcase_set_timeout(t, 600);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, each_call_of_a_place_is_counted_once);
  tcase_add_test(t, the_report_has_each_place_with_its_calls);
  tcase_add_test(t, a_place_that_asks_less_than_64_times_leaves_nothing);
  tcase_add_test(t, places_for_which_there_is_no_room_are_one);
  tcase_add_test(t, each_thread_has_its_own_counts);
  tcase_add_test(t, a_forked_child_counts_its_own_calls);
  tcase_add_test(t, what_a_linked_in_runtime_asks_is_counted_below_it);
  tcase_add_test(t, functions_that_were_looked_up_are_counted);
  tcase_add_test(t, the_program_gets_the_same_answers);
  tcase_add_test(t, a_program_killed_while_it_asks_has_most_of_it_in_its_trace);
  suite_add_tcase(s, t);
  return run_suite(s);
}
