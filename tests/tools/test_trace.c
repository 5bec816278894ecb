/* test_trace.c: weir trace as a command: its files and pipes, other readers of its formats, traces
 * that are still written. What it lists is held by tests/reports/test_listing.c. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define RUN "$WEIR run --force --sim -o t.db -- $VICTIM repeat 40"

START_TEST(python_reads_both_formats_and_finds_the_same_calls)
{
  char line[32];
  sh_status(0, RUN);
  outcome *o =
      sh_status(0, "$WEIR trace -f csv t.db >t.csv && $WEIR trace --format=jsonl t.db >t.jsonl &&"
                   " python3 -c 'import csv, json;"
                   "c = list(csv.DictReader(open(\"t.csv\", newline=\"\")));"
                   "j = [json.loads(l) for l in open(\"t.jsonl\")];"
                   "assert [r[\"id\"] for r in c] == [str(r[\"id\"]) for r in j];"
                   "assert all(str(r.get(k, \"\")) == v for k in c[0] for r, v in"
                   " ((a, b[k]) for a, b in zip(j, c)));"
                   "t = [r[\"start_ns\"] for r in j]; assert t == sorted(t);"
                   "print(sum(r[\"kind\"] != \"cache\" and \"call\" not in r for r in j))'");
  (void)snprintf(line, sizeof line, "%lld\n", ask("t.db", "SELECT count(*) FROM call"));
  ck_assert_str_eq(o->out, line);
}
END_TEST

START_TEST(filters_of_the_command_line_reach_the_list)
{
  static const struct {
    const char *filter, *sql;
  } pairs[] = {
      {"--kind alloc", "SELECT count(*) FROM allocation"},
      {"-k allocation,release", "SELECT count(*) FROM event WHERE kind IN (1, 2)"},
      {"--function 'cuMem*'", "SELECT count(*) FROM call WHERE function GLOB 'cuMem*'"},
      {"--device 0", "SELECT count(*) FROM event WHERE device = 0 OR src_device = 0"},
      {"--device 3", "SELECT 0"},
      {"--stream legacy", "SELECT count(*) FROM event WHERE stream = 1"},
      {"--stream 0x7", "SELECT 0"},
      {"--process $(sqlite3 t.db 'SELECT pid FROM process')", "SELECT count(*) FROM event"},
      {"--thread $(sqlite3 t.db 'SELECT tid FROM thread LIMIT 1')",
       "SELECT count(*) FROM event WHERE thread = 1"},
      {"--min-bytes 4K",
       "SELECT count(*) FROM event WHERE kind IN (1, 3, 4, 11, 13) AND bytes >= 4096"},
      {"--min-bytes 8T", "SELECT 0"},
      {"--min-ns 5us", "SELECT count(*) FROM event WHERE duration >= 5000"},
      {"--from 1ms", "SELECT count(*) FROM event WHERE start >= 1000000"},
      {"--from 0.5us --to 0.05s",
       "SELECT count(*) FROM event WHERE start >= 500 AND start < 50000000"},
      {"--to 0", "SELECT 0"},
  };
  sh_status(0, RUN);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    long long n = ask("t.db", pairs[i].sql);
    outcome *o = sh_status(0, "$WEIR trace -f jsonl %s t.db | wc -l", pairs[i].filter);
    ck_assert_msg(atoll(o->out) == n, "%s: %s, not %lld", pairs[i].filter, o->out, n);
  }
}
END_TEST

START_TEST(a_file_is_written_whole_or_not_at_all)
{
  sh_status(0, RUN);
  sh_status(0, "$WEIR trace -f csv t.db >one && echo old >two && $WEIR trace -f csv -o two t.db &&"
               " cmp one two");
  outcome *o = sh_status(2, "cp t.db before && ln -s t.db link && $WEIR trace -o link t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "the trace itself"));
  sh_status(0, "cmp t.db before");
  o = sh_status(1, "$WEIR trace -o nowhere/x t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "nowhere/x"));
  o = sh_status(1, "echo text >text; $WEIR trace -o three text");
  ck_assert_ptr_nonnull(strstr(o->err, "neither a trace nor a spool"));
  o = sh_status(1, "$WEIR trace --function cudaNothing -o three t.db");
  ck_assert_ptr_nonnull(strstr(o->err, "'cudaNothing'"));
  ck_assert_str_eq(sh_status(0, "ls | grep -c -e three -e part; true")->out, "0\n");
}
END_TEST

START_TEST(a_full_stdout_is_one_sentence)
{
  sh_status(0, RUN);
  if (access("/dev/full", W_OK) != 0) return;
  ck_assert_str_eq(sh_status(1, "$WEIR trace t.db >/dev/full")->err,
                   "weir: cannot write to stdout.\n");
}
END_TEST

/* As with any other program in a pipe: no word, and what was made for it is gone. */
START_TEST(a_reader_that_goes_early_ends_it_quietly)
{
  sh_status(0, "mkdir -m 700 spools tmp && WEIR_SPOOL_DIR=$PWD/spools"
               " LD_PRELOAD=$BUILD/lib/libweir-preload.so LD_LIBRARY_PATH=$BUILD/lib/sim"
               " $VICTIM repeat 2000");
  outcome *o =
      sh_status(0, "export TMPDIR=$PWD/tmp; { $WEIR trace spools/*.spool; echo $? >status; } |"
                   " head -1 && cat status");
  ck_assert_str_eq(o->err, "");
  ck_assert_msg(strstr(o->out, "141\n") != NULL, "%s", o->out); /* 128 + SIGPIPE */
  ck_assert_str_eq(sh_status(0, "ls tmp")->out, "");
}
END_TEST

/* What is there at that moment, of a program that runs. */
START_TEST(a_trace_that_is_still_written_is_listed)
{
  int in[2], out[2];
  ck_assert_int_eq(pipe2(in, O_CLOEXEC), 0);
  ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
  pid_t pid = start(in[0], out[1], "$WEIR run --sim -o t.db -- $VICTIM repeat 40 cat");
  ck_assert_int_eq(write(in[1], "ready\n", 6), 6);
  read_until(out[0], "ready\n");
  sh_status(0, "until [ -s t.db ] && $WEIR trace -f jsonl t.db >list && [ $(wc -l <list) -ge 80 ];"
               " do :; done");
  ck_assert_int_eq(ask("t.db", "SELECT value FROM meta WHERE key = 'finished'"), 0);
  (void)close(in[0]);
  (void)close(in[1]);
  int status;
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  (void)close(out[0]);
  (void)close(out[1]);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/trace");
  TCase *t = tcase_create("trace");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, python_reads_both_formats_and_finds_the_same_calls);
  tcase_add_test(t, filters_of_the_command_line_reach_the_list);
  tcase_add_test(t, a_file_is_written_whole_or_not_at_all);
  tcase_add_test(t, a_full_stdout_is_one_sentence);
  tcase_add_test(t, a_reader_that_goes_early_ends_it_quietly);
  tcase_add_test(t, a_trace_that_is_still_written_is_listed);
  suite_add_tcase(s, t);
  return run_suite(s);
}
