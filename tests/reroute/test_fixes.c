/* test_fixes.c: what Weir does for a program only where it is named (core/base/reroutes.def), one
 * action at a time: no trap (trap.c) and no random program can tell, and the trace has how often it
 * was done, and where. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/level.h"
#include "tests/tools/command.h"

#ifndef SEEDS
#define SEEDS AT_LEVEL(4, 40, 250)
#endif

/* Calls that were answered without the original, of functions whose names begin so. */
#define KEPT                                                                                       \
  "select count(*) from event e where e.flags & 64 and e.stack is not null and e.api in (select "  \
  "id "                                                                                            \
  "from api where name like '%s%%')"

static const struct fix {
  const char *name;  /* of the action */
  const char *trap;  /* one that it must have served */
  const char *begin; /* of the names of functions that it answers */
  const char *loop;  /* a program that wastes what it removes, */
  const char *rule;  /* the rule that finds that, */
  const char *place; /* and where it is */
} fixes[] = {
    {"properties", "properties", "cudaGetDeviceProperties", "$BUILD/tests/e2e/asker loop 100",
     "(asked-in-a-loop), 98 times", "ask_each  asker.c:"},
    {"events", "events", "cudaEvent", "$BUILD/tests/reroute/trap event_loop",
     "(handle-churn), 38 times", "event_loop  trap_fixes.c:"},
    {"streams", "streams", "cudaStream", "$BUILD/tests/reroute/trap stream_loop",
     "(handle-churn), 38 times", "stream_loop  trap_fixes.c:"},
};
enum { FIXES = sizeof fixes / sizeof *fixes };

static const char *const modes[] = {"strict", "relaxed"};

/* Traps without a wait that only strict keeps. */
static const char *const traps[] = {"properties",
                                    "events",
                                    "streams",
                                    "reuse",
                                    "stream_ends_busy",
                                    "per_thread_streams",
                                    "reset",
                                    "two_contexts",
                                    "two_devices",
                                    "sticky_error",
                                    "fork_child",
                                    "capture",
                                    "forbidden_in_capture",
                                    "threads",
                                    "graph_after_free",
                                    "graph_of_nodes",
                                    "ipc_events",
                                    "streams_of_others",
                                    "all_at_once"};
enum { TRAPS = sizeof traps / sizeof *traps };

static char bare[65536];

static void run_bare(const char *program)
{
  outcome *o =
      sh("WEIR_SIM_DEVICES=2 WEIR_SIM_MEMORY=1G LD_LIBRARY_PATH=$BUILD/lib/sim %s", program);
  ck_assert_msg(o->status == 0, "%s alone ended with %x: %s", program, o->status, o->err);
  memcpy(bare, o->out, sizeof bare);
  ck_assert_int_ne(bare[0], 0);
}

static void compare_fixed(const struct fix *f, const char *mode, const char *program)
{
  outcome *o =
      sh("WEIR_SIM_MEMORY=1G $WEIR run --force -o t.db --sim=2 --mode=%s --reroute=%s -- %s", mode,
         f->name, program);
  ck_assert_msg(o->status == 0, "%s, %s, %s ended with %x: %s", program, f->name, mode, o->status,
                o->err);
  ck_assert_msg(strcmp(o->out, bare) == 0, "%s, bare:\n%s\n%s, %s:\n%s", program, bare, f->name,
                mode, o->out);
}

static long long kept_calls(const struct fix *f)
{
  char query[256];
  (void)snprintf(query, sizeof query, KEPT, f->begin);
  return ask("t.db", query);
}

START_TEST(no_trap_tells_that_an_action_is_done)
{
  char program[128];
  (void)snprintf(program, sizeof program, "$BUILD/tests/reroute/trap %s", traps[_i]);
  run_bare(program);
  for (int i = 0; i < FIXES; i++)
    for (int m = 0; m < 2; m++)
      compare_fixed(&fixes[i], modes[m], program);
}
END_TEST

START_TEST(an_action_is_done_and_the_trace_has_it)
{
  const struct fix *f = &fixes[_i];
  char program[128];
  (void)snprintf(program, sizeof program, "$BUILD/tests/reroute/trap %s", f->trap);
  run_bare(program);
  for (int m = 0; m < 2; m++) {
    compare_fixed(f, modes[m], program);
    ck_assert_int_gt(kept_calls(f), 0);
  }
}
END_TEST

START_TEST(the_report_has_what_an_action_removed_with_its_place)
{
  const struct fix *f = &fixes[_i];
  sh_status(0, "$WEIR run --force -o t.db --sim --reroute=%s -- %s", f->name, f->loop);
  const outcome *o = sh_status(0, "$WEIR report findings t.db | grep -A1 'Removed by Weir'");
  ck_assert_ptr_nonnull(strstr(o->out, f->rule));
  ck_assert_ptr_nonnull(strstr(o->out, f->place));
}
END_TEST

START_TEST(an_action_that_is_not_named_is_not_done)
{
  const struct fix *f = &fixes[_i];
  sh_status(0,
            "WEIR_SIM_MEMORY=1G $WEIR run --force -o t.db --sim=2 -- $BUILD/tests/reroute/trap %s",
            f->trap);
  ck_assert_int_eq(kept_calls(f), 0);
}
END_TEST

START_TEST(a_random_program_gives_the_same_bytes_and_codes_with_each_action)
{
  static const int threads[] = {1, 2, 5};
  char program[128];
  int n = threads[_i % 3];
  (void)snprintf(program, sizeof program, "$BUILD/tests/reroute/differ %d %d %d", 5000 + _i, n,
                 120 / n);
  run_bare(program);
  for (int i = 0; i < FIXES; i++)
    compare_fixed(&fixes[i], modes[_i % 2], program);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/fixes");
  TCase *c = tcase_create("fixes");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, no_trap_tells_that_an_action_is_done, 0, TRAPS);
  tcase_add_loop_test(c, an_action_is_done_and_the_trace_has_it, 0, FIXES);
  tcase_add_loop_test(c, the_report_has_what_an_action_removed_with_its_place, 0, FIXES);
  tcase_add_loop_test(c, an_action_that_is_not_named_is_not_done, 0, FIXES);
  tcase_add_loop_test(c, a_random_program_gives_the_same_bytes_and_codes_with_each_action, 0,
                      SEEDS);
  suite_add_tcase(s, c);
  return run_suite(s);
}
