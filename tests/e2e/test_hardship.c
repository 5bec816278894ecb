/* test_hardship.c: what a trace holds when the program or the disk came to a bad end. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/e2e/killed.h"
#include "tests/tools/command.h"

#ifndef KILLS
#define KILLS 100
#endif

#define MEMSETS "select count(*) from event where kind = 4"

START_TEST(a_program_killed_at_any_moment_has_every_finished_call_in_its_trace)
{
  srand(1);
  for (int i = 0; i < KILLS; i++) {
    ticker_page x;
    kill_at_random("ticker counters 0", i % 2 == 0, 20000, &x);
    check_held(i, &x, (uint64_t)ask("t.db", MEMSETS), 0);
  }
}
END_TEST

/* A tmpfs of our own, in a mount namespace of our own: false where the machine forbids it. */
static bool small_disk(const char *size)
{
  ck_assert_int_eq(mkdir("disk", 0700), 0);
  if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    return false;
  return mount("tmpfs", "disk", "tmpfs", 0, size) == 0;
}

START_TEST(on_a_full_disk_the_program_ends_as_it_would_and_every_event_is_held_or_counted)
{
  enum { CALLS = 100000 };
  (void)new_counters();
  if (!small_disk("size=3m")) {
    (void)fprintf(stderr, "no mount namespace here: the full disk was not tried\n");
    return;
  }
  outcome *o = sh_status(0,
                         "LD_LIBRARY_PATH=$BUILD/lib/sim LD_PRELOAD=$BUILD/lib/libweir-preload.so "
                         "WEIR_STACKS=off WEIR_SPOOL_DIR=$PWD/disk "
                         "$BUILD/tests/e2e/ticker counters %d",
                         (int)CALLS);
  ck_assert_str_eq(o->out, "400000\n");
  ck_assert_ptr_nonnull(strstr(o->err, "dropped (No space left on device)"));
  ck_assert_ptr_eq(strchr(o->err, '\n'), o->err + strlen(o->err) - 1); /* in one line */
  (void)sh_status(0, "$WEIR import disk/*.spool --force -o t.db");
  long long held = ask("t.db", "select count(*) from event");
  long long dropped = ask("t.db", "select sum(dropped) from process");
  ck_assert_int_gt(held, 10000);
  ck_assert_int_gt(dropped, 10000);
  long long others = ask("t.db", "select count(*) from event where kind <> 4");
  ck_assert_int_eq(held - others + dropped, 4 * CALLS);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("hardship");
  TCase *t = tcase_create("killed");
  tcase_set_timeout(t, 600);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, a_program_killed_at_any_moment_has_every_finished_call_in_its_trace);
  tcase_add_test(t, on_a_full_disk_the_program_ends_as_it_would_and_every_event_is_held_or_counted);
  suite_add_tcase(s, t);
  return run_suite(s);
}
