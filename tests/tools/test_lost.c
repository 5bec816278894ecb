/* test_lost.c: what a trace lacks is said in one line, whether stderr is a terminal (it is none
 * here) or not. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define PRELOADED "LD_PRELOAD=$BUILD/lib/libweir-preload.so LD_LIBRARY_PATH=$BUILD/lib/sim "
#define SMALL     "WEIR_STACKS=off WEIR_SPOOL_LIMIT=1M "

static unsigned lines_with(const char *text, const char *part)
{
  unsigned n = 0;
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
    n++;
  return n;
}

/* The collector is stopped until the program has filled the spool. */
START_TEST(weir_run_says_that_events_were_dropped)
{
  outcome *o = sh_status(0, SMALL "$WEIR run --sim -o t.db -- sh -c 'kill -STOP $PPID;"
                                  " $VICTIM repeat 40000; kill -CONT $PPID'");
  ck_assert_msg(lines_with(o->err, "\n") == 1, "%s", o->err);
  ck_assert_ptr_nonnull(strstr(o->err, "weir: t.db: "));
  ck_assert_ptr_nonnull(
      strstr(o->err, " events were dropped (the spools reached their limit, WEIR_SPOOL_LIMIT)"));
  ck_assert_int_gt(ask("t.db", "SELECT sum(dropped) FROM process"), 0);
}
END_TEST

/* The collector is stopped until the program has ended. */
START_TEST(a_long_import_after_the_end_is_announced_once)
{
  outcome *o = sh_status(0, "mkdir place; export WEIR_SPOOL_ROOT=$PWD/place WEIR_STACKS=off;"
                            " $WEIR run --sim --figures=later -o t.db -- sh -c 'kill -STOP $PPID;"
                            " echo $$ >pid; exec $VICTIM repeat 110000' & run=$!;"
                            " until grep -q ') Z ' /proc/$(cat pid)/stat; do sleep 0.01; done"
                            " 2>/dev/null; kill -CONT $run; wait $run");
  ck_assert_msg(lines_with(o->err, "\n") == 1, "%s", o->err);
  ck_assert_ptr_nonnull(strstr(o->err, "weir: t.db: about 4"));
  ck_assert_ptr_nonnull(strstr(o->err, " events still to import.\n"));
  ck_assert_int_gt(ask("t.db", "SELECT count(*) FROM event"), 400000);
}
END_TEST

START_TEST(a_process_that_no_run_watches_says_it_itself)
{
  outcome *o = sh_status(0, "mkdir spools; " SMALL "WEIR_SPOOL_DIR=$PWD/spools " PRELOADED
                            "$VICTIM repeat 40000");
  ck_assert_msg(lines_with(o->err, "\n") == 1, "%s", o->err);
  ck_assert_ptr_nonnull(strstr(o->err, " events of this process were dropped"));
}
END_TEST

START_TEST(a_run_that_lost_nothing_says_nothing)
{
  outcome *o = sh_status(0, "$WEIR run --sim -o t.db -- $VICTIM repeat 100");
  ck_assert_str_eq(o->err, "");
}
END_TEST

START_TEST(a_collector_that_was_killed_is_missed_once_a_tree)
{
  adopt_collectors();
  outcome *o =
      sh("$WEIR run --sim -o t.db -- sh -c 'kill -KILL $PPID; while kill -0 $PPID; do :; done "
         "2>/dev/null; $VICTIM call; $VICTIM call;"
         " echo $WEIR_SPOOL_DIR >dir' 2>err; while ! test -s dir; do sleep 0.1; done; cat err");
  wait_for_collectors();
  ck_assert_msg(lines_with(o->out, "the collector of this trace is gone") == 1, "%s", o->out);
  sh_status(0, "$WEIR import $(cat dir) -o rest.db && rm -r $(cat dir)");
  ck_assert_int_eq(ask("rest.db", "SELECT count(*) FROM event WHERE kind = 1"), 2);
}
END_TEST

START_TEST(a_folder_that_is_not_there_is_said_once_a_process)
{
  outcome *o = sh_status(0, "WEIR_SPOOL_DIR=$PWD/nowhere " PRELOADED "$VICTIM call repeat 3");
  ck_assert_msg(lines_with(o->err, "\n") == 1, "%s", o->err);
  ck_assert_ptr_nonnull(strstr(o->err, "weir: nothing is recorded: "));
  ck_assert_ptr_nonnull(strstr(o->err, "/nowhere: No such file"));
}
END_TEST

/* A daemon that outlives `weir run --no-wait`. */
START_TEST(a_run_that_is_over_is_no_mistake)
{
  outcome *o =
      sh_status(0, "WEIR_SPOOL_DIR=/dev/shm/weir-$(id -u)-gone00 " PRELOADED "$VICTIM call");
  ck_assert_str_eq(o->err, "");
}
END_TEST

/* ---- what a killed collector leaves behind --------------------------------------------------- */

/* In a place of the test's own, since other suites leave spools behind too. */
#define PLACE  "mkdir -p place; export WEIR_SPOOL_ROOT=$PWD/place WEIR_RECOVER=on; "
#define KILLED "kill -KILL $PPID; while kill -0 $PPID; do :; done 2>/dev/null; "

/* A program whose collector is killed after `before` calls, and that makes `after` more. `first`:
 * what it does ahead of them. */
static void leave_spools_of(const char *first, int before, int after)
{
  adopt_collectors();
  (void)sh(PLACE "$WEIR run --sim -o t.db -- sh -c '%s $VICTIM repeat %d; " KILLED
                 "$VICTIM repeat %d'",
           first, before, after);
  wait_for_collectors();
}

static void leave_spools(int before, int after)
{
  leave_spools_of("", before, after);
}

#define ALLOCS "SELECT count(*) FROM event WHERE kind = 1"

START_TEST(the_next_run_gives_a_trace_what_its_killed_collector_left)
{
  leave_spools(5, 7);
  ck_assert_str_ne(sh_status(0, "ls place")->out, "");
  outcome *o = sh_status(0, PLACE "$WEIR run --sim -o next.db -- $VICTIM call");
  ck_assert_msg(strstr(o->err, "t.db, whose collector was killed, has now the "), "%s", o->err);
  ck_assert_int_eq((int)lines_with(o->err, "\n"), 1);
  ck_assert_int_eq(ask("t.db", ALLOCS), 12);
  ck_assert_int_eq(ask("next.db", ALLOCS), 1);
  ck_assert_str_eq(sh_status(0, "ls -A place")->out, "");
  ck_assert_str_eq(sh_status(0, PLACE "$WEIR run --sim -o third.db -- $VICTIM call")->err, "");
}
END_TEST

/* The collector is stopped first: a spool that it has taken in whole would be gone with the trace.
 */
START_TEST(where_the_trace_is_gone_there_is_a_new_one)
{
  leave_spools_of("kill -STOP $PPID;", 5, 7);
  outcome *o = sh_status(0, "rm t.db*; " PLACE "$WEIR run --sim -o next.db -- $VICTIM call");
  ck_assert_msg(strstr(o->err, ".recovered.db: "), "%s", o->err);
  sh_status(0, "mv weir.*.recovered.db r.db");
  ck_assert_int_eq(ask("r.db", ALLOCS), 12);
  ck_assert_str_eq(sh_status(0, "ls -A place")->out, "");
}
END_TEST

START_TEST(what_a_finished_trace_holds_is_only_removed)
{
  leave_spools(5, 7);
  sh_status(0, "$WEIR import place/* -o t.db");
  outcome *o = sh_status(0, PLACE "$WEIR run --sim -o next.db -- $VICTIM call");
  ck_assert_msg(strstr(o->err, "holds it already"), "%s", o->err);
  ck_assert_int_eq(ask("t.db", ALLOCS), 12);
  ck_assert_str_eq(sh_status(0, "ls -A place")->out, "");
}
END_TEST

START_TEST(a_run_that_lives_is_let_alone)
{
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid = start(-1, -1, PLACE "exec $WEIR run --sim -o t.db -- $VICTIM call await go call");
  int go = open("go", O_WRONLY);
  outcome *o = sh_status(0, PLACE "$WEIR run --sim -o next.db -- $VICTIM call");
  ck_assert_str_eq(o->err, "");
  (void)close(go);
  int status;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(ask("t.db", ALLOCS), 2);
}
END_TEST

/* Its collector is dead, its program is not. */
START_TEST(a_program_that_lives_is_let_alone)
{
  int status;
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  adopt_collectors();
  pid_t pid =
      start(-1, -1, PLACE "exec $WEIR run --sim -o t.db -- $VICTIM call await go call 2>/dev/null");
  int go = open("go", O_WRONLY);
  ck_assert_int_eq(kill(pid, SIGKILL), 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  outcome *o = sh_status(0, PLACE "$WEIR run --sim -o next.db -- $VICTIM call");
  ck_assert_str_eq(o->err, "");
  (void)close(go);
  wait_for_collectors();
  o = sh_status(0, PLACE "$WEIR run --sim -o third.db -- $VICTIM call");
  ck_assert_msg(strstr(o->err, "whose collector was killed"), "%s", o->err);
  ck_assert_int_eq(ask("t.db", ALLOCS), 2);
}
END_TEST

START_TEST(recovery_can_be_switched_off)
{
  leave_spools(1, 1);
  outcome *o = sh_status(0, PLACE "WEIR_RECOVER=off $WEIR run --sim -o next.db -- $VICTIM call");
  ck_assert_str_eq(o->err, "");
  ck_assert_str_ne(sh_status(0, "ls place")->out, "");
}
END_TEST

/* Another job of the same user, on the same machine. */
START_TEST(a_run_leaves_alone_what_another_folders_run_left)
{
  leave_spools(5, 7);
  outcome *o =
      sh_status(0, PLACE "mkdir other; cd other; $WEIR run --sim -o next.db -- $VICTIM call;"
                         " ls >&2");
  ck_assert_str_eq(o->err, "next.db\n");
  ck_assert_str_ne(sh_status(0, "ls place")->out, "");
}
END_TEST

START_TEST(a_folder_that_names_no_trace_is_left_to_weir_recover)
{
  leave_spools(5, 7);
  sh_status(0, "rm place/*/.collector; touch -d 1970-01-02 place/*");
  outcome *o = sh_status(0, PLACE "$WEIR run --sim -o next.db -- $VICTIM call");
  ck_assert_str_eq(o->err, "");
  sh_status(0, PLACE "rm t.db*; $WEIR recover place/*; mv weir.*.recovered.db r.db");
  ck_assert_int_gt(ask("r.db", ALLOCS), 6);
  ck_assert_str_eq(sh_status(0, "ls -A place")->out, "");
}
END_TEST

START_TEST(weir_recover_lists_what_lies_there_and_takes_it_up)
{
  ck_assert_str_eq(sh_status(0, PLACE "$WEIR recover")->out, "no run left anything behind\n");
  leave_spools(5, 7);
  outcome *o = sh_status(0, PLACE "$WEIR recover");
  ck_assert_int_eq((int)lines_with(o->out, "\n"), 1);
  ck_assert_msg(strstr(o->out, "/place/weir-") && strstr(o->out, ": left behind; "), "%s", o->out);
  ck_assert_msg(strstr(o->out, "/t.db\n"), "%s", o->out);
  o = sh_status(0, PLACE "mkdir other; cd other; $WEIR recover ../place/*; ls");
  ck_assert_msg(strstr(o->err, "t.db, whose collector was killed, has now the "), "%s", o->err);
  ck_assert_str_eq(o->out, "");
  ck_assert_int_eq(ask("t.db", ALLOCS), 12);
  ck_assert_str_eq(sh_status(0, "ls -A place")->out, "");
  o = sh_status(1, "mkdir -m 700 empty; $WEIR recover empty nothing .");
  ck_assert_int_eq((int)lines_with(o->err, "\n"), 3);
}
END_TEST

START_TEST(weir_recover_leaves_a_run_that_lives_alone)
{
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid = start(-1, -1, PLACE "exec $WEIR run --sim -o t.db -- $VICTIM call await go call");
  int go = open("go", O_WRONLY), status;
  outcome *o = sh_status(0, PLACE "$WEIR recover");
  ck_assert_msg(strstr(o->out, ": its collector lives"), "%s", o->out);
  o = sh_status(1, PLACE "$WEIR recover place/*");
  ck_assert_msg(strstr(o->err, "it is left alone"), "%s", o->err);
  (void)close(go);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(ask("t.db", ALLOCS), 2);
}
END_TEST

START_TEST(a_terminal_is_told_once_of_what_lies_there)
{
  if (!has_terminals()) return;
  leave_spools(5, 7);
  outcome *o = sh_status(
      0, PLACE
      "rm -f place/*/.said; mkdir other; cd other; for i in 1 2; do python3 -c 'import pty, sys;"
      " pty.spawn(sys.argv[1:])' $WEIR run --sim -o $i.db -- true; done");
  ck_assert_int_eq((int)lines_with(o->out, "see 'weir recover'"), 1);
  ck_assert_str_ne(sh_status(0, "ls place")->out, "");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/lost");
  TCase *t = tcase_create("said");
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, weir_run_says_that_events_were_dropped);
  tcase_add_test(t, a_long_import_after_the_end_is_announced_once);
  tcase_add_test(t, a_process_that_no_run_watches_says_it_itself);
  tcase_add_test(t, a_run_that_lost_nothing_says_nothing);
  tcase_add_test(t, a_collector_that_was_killed_is_missed_once_a_tree);
  tcase_add_test(t, a_folder_that_is_not_there_is_said_once_a_process);
  tcase_add_test(t, a_run_that_is_over_is_no_mistake);
  suite_add_tcase(s, t);
  t = tcase_create("left behind");
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, the_next_run_gives_a_trace_what_its_killed_collector_left);
  tcase_add_test(t, where_the_trace_is_gone_there_is_a_new_one);
  tcase_add_test(t, what_a_finished_trace_holds_is_only_removed);
  tcase_add_test(t, a_run_that_lives_is_let_alone);
  tcase_add_test(t, a_program_that_lives_is_let_alone);
  tcase_add_test(t, recovery_can_be_switched_off);
  tcase_add_test(t, a_run_leaves_alone_what_another_folders_run_left);
  tcase_add_test(t, a_folder_that_names_no_trace_is_left_to_weir_recover);
  tcase_add_test(t, weir_recover_lists_what_lies_there_and_takes_it_up);
  tcase_add_test(t, weir_recover_leaves_a_run_that_lives_alone);
  tcase_add_test(t, a_terminal_is_told_once_of_what_lies_there);
  suite_add_tcase(s, t);
  return run_suite(s);
}
