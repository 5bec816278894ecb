/* test_traps.c: a program cannot tell that its memory is rerouted. Each trap (trap.c) is run bare,
 * observed, strict and relaxed: what it prints and how it ends must be the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

static const struct trap {
  const char *name;
  const char *memory; /* of the software device */
  bool relaxed;       /* the documents promise what it relies on: relaxed keeps it too */
  bool cached;        /* it must have been served from a cache, or the test is none */
  int staged; /* copies between devices that go by way of our ring, until peer access is enabled */
} traps[] = {
    {"free_waits", "1G", false, true, 0},
    {"reuse", "1G", true, false, 0},
    {"stream_ends_busy", "1G", true, false, 0},
    {"per_thread_streams", "1G", true, true, 0},
    {"bad_frees", "1G", true, false, 0},
    {"sizes", "1G", true, true, 0},
    {"address_ranges", "1G", true, true, 0},
    {"pitches", "1G", true, true, 0},
    {"memory_info", "1G", true, true, 0},
    {"memory_info_small", "1G", true, true, 0},
    {"memory_info_contexts", "1G", true, false, 0},
    {"out_of_memory", "128M", true, false, 0},
    {"out_of_memory_in_capture", "128M", true, false, 0},
    {"other_allocators", "128M", true, false, 0},
    {"reset", "1G", true, false, 0},
    {"two_contexts", "1G", true, false, 0},
    {"two_devices", "1G", true, true, 0},
    {"sticky_error", "1G", true, false, 0},
    {"error_found_by_free", "1G", false, false, 0},
    {"fork_child", "1G", true, true, 0},
    {"capture", "1G", true, false, 0},
    {"forbidden_in_capture", "1G", true, false, 0},
    {"threads", "1G", true, false, 0},
    {"free_elsewhere", "1G", true, true, 0},
    {"layers_mixed", "1G", true, true, 0},
    {"pinned", "1G", true, true, 0},
    {"pageable_copies", "1G", true, false, 0},
    {"graph_after_free", "1G", true, true, 0},
    {"graph_of_nodes", "1G", true, false, 0},
    {"ipc_memory", "1G", true, true, 0},
    {"ipc_events", "1G", true, true, 0},
    {"attributes", "1G", true, false, 0},
    {"registrations", "1G", true, true, 0},
    {"managed_waits", "1G", false, true, 0},
    {"peer_copies", "1G", true, true, 28},
    {"peer_order", "1G", true, true, 20},
    {"pinned_elsewhere", "1G", true, false, 0},
    {"streams_of_others", "1G", true, true, 0},
    {"all_at_once", "1G", true, true, 0},
    {"bounds", "1G", true, true, 0},
    {"bounds_shared", "1G", true, true, 0},
    {"bounds_pinned", "1G", true, true, 0},
    {"bounds_in_capture", "1G", true, false, 0},
    {"closed_memory", "1G", true, false, 0},
    {"properties", "1G", true, false, 0},
    {"events", "1G", true, false, 0},
    {"streams", "1G", true, false, 0},
    {"event_loop", "1G", true, false, 0},
    {"stream_loop", "1G", true, false, 0},
};

enum { TRAPS = sizeof traps / sizeof *traps };

#define STAGED "select count(*) from event where kind = 3 and copy = 10 and flags & 128"

static char bare[65536];

static void compare(const struct trap *t, const char *mode)
{
  outcome *o =
      sh("WEIR_STAGING=on WEIR_SIM_MEMORY=%s $WEIR run --force -o t.db --sim=2 --mode=%s -- "
         "$BUILD/tests/reroute/trap %s",
         t->memory, mode, t->name);
  ck_assert_msg(o->status == 0, "%s, %s ended with %x: %s", t->name, mode, o->status, o->err);
  ck_assert_msg(strcmp(o->out, bare) == 0, "%s, bare:\n%s\n%s:\n%s", t->name, bare, mode, o->out);
  long long cached = ask("t.db", "select count(*) from event where kind = 1 and flags & 64");
  if (strcmp(mode, "observe") == 0) ck_assert_int_eq(cached, 0);
  if (strcmp(mode, "strict") == 0 && t->cached) ck_assert_int_gt(cached, 0);
  if (strcmp(mode, "strict") == 0 && t->staged) ck_assert_int_eq(ask("t.db", STAGED), t->staged);
}

START_TEST(a_program_that_relies_on_it_sees_no_difference)
{
  const struct trap *t = &traps[_i];
  outcome *o = sh("WEIR_SIM_DEVICES=2 WEIR_SIM_MEMORY=%s LD_LIBRARY_PATH=$BUILD/lib/sim "
                  "$BUILD/tests/reroute/trap %s",
                  t->memory, t->name);
  ck_assert_msg(o->status == 0, "%s alone ended with %x: %s", t->name, o->status, o->err);
  memcpy(bare, o->out, sizeof bare);
  ck_assert_int_ne(bare[0], 0);
  compare(t, "observe");
  compare(t, "strict");
  if (t->relaxed) compare(t, "relaxed");
}
END_TEST

/* That they are where it is on is in the table. */
START_TEST(copies_between_devices_are_the_drivers_where_staging_is_off)
{
  static const char *const names[] = {"peer_copies", "peer_order"};
  sh_status(0,
            "WEIR_STAGING=off WEIR_SIM_MEMORY=1G $WEIR run --force -o t.db --sim=2 --mode=strict --"
            " $BUILD/tests/reroute/trap %s",
            names[_i]);
  ck_assert_int_eq(ask("t.db", STAGED), 0);
}
END_TEST

/* From one to the other: measured by the first program, and known to the next. */
START_TEST(whether_it_is_worth_it_between_devices_is_kept_for_the_next_program)
{
#define VERDICTS "select count(*) from event where kind = 13 and copy = 3 and a = 10 and bytes "
  for (int m = 0; m < 2; m++) {
    sh_status(
        0,
        "XDG_CACHE_HOME=$PWD WEIR_SIM_MEMORY=1G $WEIR run --force -o t.db --sim=2 --mode=strict --"
        " $BUILD/tests/reroute/trap peer_order");
    ck_assert_int_eq(ask("t.db", VERDICTS "> 0"), m ? 0 : 1);
    ck_assert_int_eq(ask("t.db", VERDICTS "= 0"), m);
  }
  sh_status(0, "test $(ls weir/staging-*-to-* | wc -l) = 1");
}
END_TEST

START_TEST(every_trap_of_the_program_is_in_the_table)
{
  const outcome *o =
      sh_status(0, "LD_LIBRARY_PATH=$BUILD/lib/sim $BUILD/tests/reroute/trap | wc -l");
  ck_assert_int_eq(atoi(o->out), TRAPS);
}
END_TEST

START_TEST(the_readme_says_of_every_trap_what_it_proves)
{
  sh_status(0, "grep -q '`%s`' \"$WEIR_SOURCE/tools/doc/modes.md\"", traps[_i].name);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/traps");
  TCase *c = tcase_create("traps");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, a_program_that_relies_on_it_sees_no_difference, 0, TRAPS);
  tcase_add_loop_test(c, the_readme_says_of_every_trap_what_it_proves, 0, TRAPS);
  tcase_add_loop_test(c, copies_between_devices_are_the_drivers_where_staging_is_off, 0, 2);
  tcase_add_test(c, whether_it_is_worth_it_between_devices_is_kept_for_the_next_program);
  tcase_add_test(c, every_trap_of_the_program_is_in_the_table);
  suite_add_tcase(s, c);
  return run_suite(s);
}
