/* test_polls.c: polls that repeat are one event, and none of them is lost. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/e2e/killed.h"
#include "tests/level.h"
#include "tests/tools/command.h"

#define KILLS AT_LEVEL(10, 30, 300)

#define CALLS_OF "SELECT ifnull(sum(count), 0) FROM call WHERE function = "

static void run_poller(const char *arguments)
{
  unsigned long events = 0, streams = 0;
  outcome *o =
      sh_status(0, "$WEIR run --force -o t.db --sim -- $BUILD/tests/e2e/poller %s", arguments);
  ck_assert_int_eq(sscanf(o->out, "cudaEventQuery %lu\ncudaStreamQuery %lu\n", &events, &streams),
                   2);
  ck_assert_int_eq(ask("t.db", CALLS_OF "'cudaEventQuery'"), (long long)events);
  ck_assert_int_eq(ask("t.db", CALLS_OF "'cudaStreamQuery'"), (long long)streams);
  ck_assert_int_eq(ask("t.db", "SELECT sum(torn) + sum(dropped) FROM process"), 0);
}

START_TEST(polls_in_a_row_are_one_event_whose_count_is_theirs)
{
  run_poller("count 150000");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM wait WHERE count = 150000"), 2);
  /* by turns each is its own; the last of the event's was told that it is ready */
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM wait WHERE waits_for = 'query'"), 2 + 20 + 1);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM wait WHERE count > 1 AND"
                               " last_end_ns < start_ns + duration_ns"),
                   0);
  outcome *o = sh_status(0, "$WEIR report --format json t.db");
  ck_assert_ptr_nonnull(strstr(o->out, "150011"));
  ck_assert_ptr_nonnull(strstr(o->out, "150010"));
}
END_TEST

START_TEST(a_thread_that_never_ends_has_its_polls_in_the_trace)
{
  run_poller("exit 5000");
  ck_assert_int_eq(ask("t.db", "SELECT count FROM wait WHERE waits_for = 'query'"), 5000);
}
END_TEST

START_TEST(a_program_killed_while_it_polls_has_every_finished_poll_in_its_trace)
{
  srand(1);
  for (int i = 0; i < KILLS; i++) {
    ticker_page x;
    kill_at_random("poller forever counters", i % 2 == 0, 20000, &x);
    check_held(i, &x, (uint64_t)ask("t.db", CALLS_OF "'cudaEventQuery'"), 0);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("polls");
  TCase *t = tcase_create("repeated");
  tcase_set_timeout(t, 600);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, polls_in_a_row_are_one_event_whose_count_is_theirs);
  tcase_add_test(t, a_thread_that_never_ends_has_its_polls_in_the_trace);
  tcase_add_test(t, a_program_killed_while_it_polls_has_every_finished_poll_in_its_trace);
  suite_add_tcase(s, t);
  return run_suite(s);
}
