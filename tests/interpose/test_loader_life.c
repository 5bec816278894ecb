/* test_loader_life.c: whatever a process does with itself, its calls are in a spool, and it can't
 * tell that anything else happened. */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/interpose/loader_run.h"

/* What a mode of life.c ends with and calls, image by image. */
static const struct life {
  const char *mode;
  int status;
  unsigned spools, processes, closed;
  unsigned calls[5]; /* of each spool in order of opening */
  unsigned threads;  /* that called */
} lives[] = {
    {"none", 0, 1, 1, 1, {0}, 0},
    {"five", 5, 1, 1, 1, {5}, 1},
    {"fork", 0, 3, 3, 3, {3, 3, 4}, 3},
    {"fork-first", 0, 2, 2, 1, {3, 3}, 2},
    {"clone", 0, 2, 2, 1, {3, 3}, 2},
    {"fork-exec", 0, 3, 2, 2, {2, 1, 5}, 3},
    {"exec", 5, 2, 1, 1, {2, 5}, 2},
    {"vfork", 0, 2, 2, 2, {3, 5}, 2},
    {"spawn", 0, 2, 2, 2, {3, 5}, 2},
    {"_exit", 7, 1, 1, 0, {3}, 1},
    {"abort", 100 + 6, 1, 1, 0, {3}, 1},
    {"killed", 100 + 9, 1, 1, 0, {3}, 1},
    {"exit-in-thread", 6, 1, 1, 1, {5}, 2},
    {"thread-exit", 0, 1, 1, 1, {7}, 2},
    {"threads", 0, 1, 1, 1, {600}, 300},
    {"late", 0, 1, 1, 1, {7}, 2},
    {"clean-environment", 0, 1, 1, 1, {3}, 1},
    {"closes-all", 0, 1, 1, 1, {20003}, 1},
    {"crowd", 0, 1, 1, 1, {640}, 64},
    {"cancel", 0, 1, 1, 1, {6}, 2},
};

static outcome run_life_victim(enum preload how, const char *mode, const char *const *env)
{
  const char *const argv[] = {built("tests/victims/loader/life"), mode, NULL};

  return run(how, argv, env);
}

START_TEST(test_every_image_has_its_events)
{
  const struct life *l = &lives[_i];
  outcome plain = run_life_victim(WITHOUT, l->mode, NULL), o = run_life_victim(WITH, l->mode, NULL);
  tally t = count_spools("cudaMalloc");

  ck_assert_msg(o.status == l->status && plain.status == l->status,
                "%s ended with %d, %d without us", l->mode, o.status, plain.status);
  ck_assert_str_eq(o.out, plain.out);
  ck_assert_str_eq(o.err, plain.err);
  for (unsigned i = 0; i < 5; i++)
    ck_assert_msg(t.of[i] == l->calls[i], "%s: spool %u has %u calls, not %u", l->mode, i, t.of[i],
                  l->calls[i]);
  ck_assert_uint_eq(t.spools, l->spools);
  ck_assert_uint_eq(t.processes, l->processes);
  ck_assert_uint_eq(t.closed, l->closed);
  ck_assert_uint_eq(t.threads, l->threads);
  ck_assert_uint_eq(t.other + t.dropped + t.damage, 0);
  ck_assert_uint_eq(t.forks_begun, t.forks_done);
}
END_TEST

START_TEST(test_a_daemon_without_descriptors_or_parent_goes_on_recording)
{
  int pipes[2];
  char byte;
  tally t;

  ck_assert_int_eq(pipe(pipes), 0);
  ck_assert_int_eq(dup2(pipes[1], 9), 9); /* inherited by the daemon; read ends when it has ended */
  close(pipes[1]);
  ck_assert_int_eq(run_life_victim(WITH, "daemon", NULL).status, 0);
  close(9);
  ck_assert_int_eq((int)read(pipes[0], &byte, 1), 0);
  close(pipes[0]);
  t = count_spools("cudaMalloc");
  ck_assert_uint_eq(t.spools, 2); /* the child in between made no call */
  ck_assert_uint_eq(t.of[0], 1);
  ck_assert_uint_eq(t.of[1], 20002);
  ck_assert_uint_eq(t.dropped + t.damage, 0);
}
END_TEST

START_TEST(test_forks_amid_starting_threads_lose_nothing)
{
  tally t;

  ck_assert_int_eq(run_life_victim(WITH, "fork-storm", NULL).status, 0);
  t = count_spools("cudaMalloc");
  ck_assert_uint_eq(t.events, 8 * 2000 + 20 * 3);
  ck_assert_uint_eq(t.of[0], 8 * 2000);
  ck_assert_uint_eq(t.spools, 21);
  ck_assert_uint_eq(t.dropped + t.damage, 0);
  ck_assert_uint_eq(t.forks_done, 20);
}
END_TEST

/* The child has the loader's lock as held by a thread that it does not have. */
START_TEST(test_a_child_forked_amid_a_walk_over_objects_records_its_calls)
{
  tally t;

  ck_assert_int_eq(run_life_victim(WITH, "fork-amid-walk", NULL).status, 3);
  t = count_spools("cudaMalloc");
  ck_assert_uint_eq(t.spools, 3);
  ck_assert_uint_eq(t.of[0], 5);
  ck_assert_uint_eq(t.events, 5 + 3 + 2);
  ck_assert_uint_eq(t.dropped + t.damage, 0);
}
END_TEST

static const char *const out_of_reach[] = {"chroot", "setuid"};

/* Without its file a spool can't grow: what no longer fits is counted, and the program goes on. */
START_TEST(test_a_spool_out_of_reach_counts_what_it_drops)
{
  outcome o = run_life_victim(WITH, out_of_reach[_i], NULL);
  tally t = count_spools("cudaMalloc");

  if (o.status == 9) return; /* both take root */
  ck_assert_int_eq(o.status, 0);
  ck_assert_uint_ge(t.events, 3);
  ck_assert_uint_gt(t.dropped, 0);
  ck_assert_uint_eq(t.events + t.dropped, 40003);
  ck_assert_uint_eq(t.damage, 0);
}
END_TEST

START_TEST(test_errno_is_left_alone)
{
  outcome o = run_life_victim(WITH, "errno", NULL);

  ck_assert_str_eq(o.out, "errno 0 77\n");
}
END_TEST

START_TEST(test_a_call_left_by_longjmp_is_counted_and_the_next_recorded)
{
  tally t;

  ck_assert_int_eq(run_life_victim(WITH, "jump", NULL).status, 0);
  t = count_spools("cudaMalloc");
  ck_assert_uint_eq(t.events, 5);
  ck_assert_uint_eq(t.dropped, 1);
}
END_TEST

START_TEST(test_a_programs_note_is_in_its_spool)
{
  ck_assert_int_eq(run_life_victim(WITH, "note", NULL).status, 0);
  ck_assert_uint_eq(count_spools("cudaMalloc").notes, 1);
}
END_TEST

START_TEST(test_a_wrong_option_is_said_and_the_default_used)
{
  static const char *const wrong[] = {"WEIR_MODE=stern", "WEIR_STACKS=many", "WEIR_SPOOL_LIMIT=-3",
                                      "WEIR_DEEPBIND=perhaps"};
  const char *const env[] = {wrong[_i], NULL};
  outcome o = run_life_victim(WITH, "fork-exec", env);

  ck_assert_int_eq(o.status, 0);
  ck_assert_ptr_nonnull(strstr(o.err, "weir: "));
  ck_assert_ptr_eq(strchr(o.err, '\n'),
                   o.err + o.err_bytes - 1); /* one line, whatever was forked */
  ck_assert_uint_eq(count_spools("cudaMalloc").events, 8);
}
END_TEST

START_TEST(test_a_folder_that_is_gone_is_said_and_no_trouble)
{
  outcome o;

  ck_assert_int_eq(rmdir(scratch("spools")), 0);
  o = run_life_victim(WITH, "fork", NULL);
  ck_assert_int_eq(o.status, 0);
  ck_assert_ptr_nonnull(strstr(o.err, "weir: nothing is recorded"));
}
END_TEST

START_TEST(test_a_folder_that_cannot_be_written_is_said)
{
  outcome o;

  ck_assert_int_eq(rmdir(scratch("spools")), 0);
  ck_assert_int_eq(symlink("/sys/kernel", scratch("spools")), 0);
  o = run_life_victim(WITH, "five", NULL);
  ck_assert_int_eq(o.status, 5);
  ck_assert_ptr_nonnull(strstr(o.err, "weir: nothing is recorded"));
}
END_TEST

START_TEST(test_who_makes_no_call_is_told_nothing)
{
  outcome o;

  ck_assert_int_eq(rmdir(scratch("spools")), 0);
  ck_assert_int_eq(symlink("/sys/kernel", scratch("spools")), 0);
  o = run_life_victim(WITH, "none", NULL);
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.err, "");
}
END_TEST

START_TEST(test_nothing_is_said_to_what_took_the_place_of_stderr)
{
  outcome o;

  ck_assert_int_eq(rmdir(scratch("spools")), 0);
  ck_assert_int_eq(symlink("/sys/kernel", scratch("spools")), 0);
  o = run_life_victim(WITH, "own-stderr", NULL);
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.out, "-1\n");
}
END_TEST

/* ---- plain LD_PRELOAD ---- */

/* Stands for the collector: says on the FIFO named by --output how it was started. */
static const char collector[] =
    "#!/bin/sh\n"
    "exec 3>\"$7\"\n"
    "stat=$(cat /proc/$$/stat)\n"
    "set -- $* -- ${stat##*) }\n"
    "echo \"arguments $1 $2 $4 $6\" >&3\n"
    "echo \"spool-dir $3\" >&3\n"
    "echo \"pid $5\" >&3\n"
    "echo \"preload ${LD_PRELOAD-none}\" >&3\n"
    "echo \"kept ${KEPT-none}\" >&3\n"
    "for fd in 0 1 2; do echo \"fd $fd $(readlink /proc/$$/fd/$fd)\" >&3; done\n"
    "echo \"fd 9 $([ -e /proc/$$/fd/9 ] && echo open || echo closed)\" >&3\n"
    "echo \"parent ${10}\" >&3\n"
    "echo \"session $([ ${12} = $$ ] && echo own || echo foreign ${12})\" >&3\n"
    "echo \"cwd $(pwd)\" >&3\n";

/* A copy, not a link: what is installed beside the library is looked for where a link leads. */
static void put_copy(const char *from, const char *to)
{
  struct stat have;
  int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0700);

  ck_assert_int_ge(in, 0);
  ck_assert_int_ge(out, 0);
  ck_assert_int_eq(fstat(in, &have), 0);
  ck_assert_int_eq(sendfile(out, in, NULL, (size_t)have.st_size), have.st_size);
  (void)close(in);
  ck_assert_int_eq(close(out), 0);
}

static void install(const char *script)
{
  FILE *f;

  ck_assert_int_eq(mkdir(scratch("lib"), 0700), 0);
  put_copy(built("lib/libweir-preload.so"), scratch("lib/libweir-preload.so"));
  ck_assert_int_eq(mkdir(scratch("shm"), 0700), 0);
  if (!script) return;
  ck_assert_int_eq(mkdir(scratch("bin"), 0700), 0);
  f = fopen(scratch("bin/weir"), "w");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_ge(fputs(script, f), 0);
  ck_assert_int_eq(fclose(f), 0);
  ck_assert_int_eq(chmod(scratch("bin/weir"), 0700), 0);
  ck_assert_int_eq(mkfifo(scratch("trace.db"), 0600), 0);
}

/* Everything the collector says, until it ends. */
static const char *collector_says(void)
{
  static char text[4096];
  size_t used = 0;
  ssize_t n;
  int fd = open(scratch("trace.db"), O_RDONLY);

  ck_assert_int_ge(fd, 0);
  while ((n = read(fd, text + used, sizeof text - 1 - used)) > 0)
    used += (size_t)n;
  close(fd);
  text[used] = 0;
  return text;
}

/* The value of a line of the collector's, or "". */
static const char *collector_value(const char *text, const char *key)
{
  static char values[16][256];
  static unsigned next;
  char *value = values[next++ % 16], line[64];
  const char *at;

  (void)snprintf(line, sizeof line, "%s ", key);
  value[0] = 0;
  for (at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
    if (strncmp(at, line, strlen(line)) == 0)
      (void)snprintf(value, sizeof values[0], "%.*s", (int)strcspn(at + strlen(line), "\n"),
                     at + strlen(line));
  return value;
}

static const char *const *by_itself(void)
{
  static char output[256], kept[] = "KEPT=kept";
  static const char *const env[] = {output, kept, NULL};

  (void)snprintf(output, sizeof output, "WEIR_OUTPUT=%s", scratch("trace.db"));
  return env;
}

static const char *const waits[] = {"waits", "waits-as-reaper"};

START_TEST(test_the_collector_is_started_and_nobody_notices)
{
  const char *text, *directory;
  char expected[64];
  outcome o, plain;
  tally t;

  install(collector);
  plain = run_life_victim(WITHOUT, waits[_i], NULL);
  ck_assert_int_eq(dup2(1, 9), 9); /* a descriptor of the program's */
  o = run_life_victim(BY_ITSELF, waits[_i], by_itself());
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.out, plain.out);
  ck_assert_str_eq(o.err, "");
  text = collector_says();
  directory = collector_value(text, "spool-dir");
  (void)snprintf(expected, sizeof expected, "%d", (int)o.pid);
  ck_assert_str_eq(collector_value(text, "arguments"), "collect --spool-dir --pid --output");
  ck_assert_str_eq(collector_value(text, "pid"), expected);
  ck_assert_str_eq(collector_value(text, "preload"), "none");
  ck_assert_str_eq(collector_value(text, "kept"), "kept");
  ck_assert_str_eq(collector_value(text, "fd 0"), "/dev/null");
  ck_assert_str_eq(collector_value(text, "fd 1"), "/dev/null");
  ck_assert_str_eq(collector_value(text, "fd 2"), "/dev/null");
  ck_assert_str_eq(collector_value(text, "fd 9"), "closed");
  close(9);
  ck_assert_str_ne(collector_value(text, "parent"), expected);
  t = count(directory, "cudaMalloc");
  ck_assert_uint_eq(t.spools, 1);
  ck_assert_uint_eq(t.events, 3);
  ck_assert_int_eq(remove_folder(directory), 0);
}
END_TEST

START_TEST(test_placeholders_of_the_trace_s_name_are_filled_in)
{
  char output[256];
  const char *const env[] = {output, "NAMED=trace", NULL};

  install(collector);
  (void)snprintf(output, sizeof output, "WEIR_OUTPUT=%s", scratch("%q{NAMED}.db"));
  outcome o = run_life_victim(BY_ITSELF, "five", env);
  ck_assert_int_eq(o.status, 5);
  ck_assert_str_eq(o.err, "");
  const char *directory = collector_value(collector_says(), "spool-dir");
  ck_assert_uint_eq(count(directory, "cudaMalloc").events, 5);
  ck_assert_int_eq(remove_folder(directory), 0);
}
END_TEST

START_TEST(test_a_name_that_cannot_be_made_is_reported_once)
{
  char output[256], wanted[128];
  const char *const env[] = {output, NULL};

  install(NULL);
  (void)snprintf(output, sizeof output, "WEIR_OUTPUT=%s", scratch("%x.db"));
  outcome o = run_life_victim(BY_ITSELF, "five", env);
  (void)snprintf(wanted, sizeof wanted, "/weir.%d.db.", (int)o.pid);
  ck_assert_int_eq(o.status, 5);
  const char *said = strstr(o.err, "'%x' in the name of the trace is not known");
  ck_assert_ptr_nonnull(said);
  ck_assert_ptr_nonnull(strstr(said, wanted));
  ck_assert_ptr_null(strstr(said + 1, "'%x'"));
  o = run_life_victim(BY_ITSELF, "none", env); /* of a program without CUDA there is no trace */
  ck_assert_str_eq(o.err, "");
}
END_TEST

START_TEST(test_children_join_the_folder_of_the_first)
{
  const char *text, *directory;
  tally t;

  install(collector);
  ck_assert_int_eq(run_life_victim(BY_ITSELF, "fork-exec", by_itself()).status, 0);
  text = collector_says();
  directory = collector_value(text, "spool-dir");
  t = count(directory, "cudaMalloc");
  ck_assert_uint_eq(t.spools, 3);
  ck_assert_uint_eq(t.events, 8);
  ck_assert_int_eq(remove_folder(directory), 0);
}
END_TEST

START_TEST(test_a_program_without_cuda_makes_nothing)
{
  outcome o;

  install(NULL);
  o = run_life_victim(BY_ITSELF, "none", by_itself());
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.err, "");
  ck_assert_int_ne(access(scratch("trace.db"), F_OK), 0);
}
END_TEST

START_TEST(test_a_missing_collector_is_said_and_the_spool_stays)
{
  char directory[256] = "";
  const char *at;
  outcome o;
  tally t;

  install(NULL);
  o = run_life_victim(BY_ITSELF, "five", by_itself());
  ck_assert_int_eq(o.status, 5);
  ck_assert_ptr_nonnull(strstr(o.err, "weir import"));
  at = strstr(o.err, "stay in ");
  ck_assert_ptr_nonnull(at);
  ck_assert_int_eq(sscanf(at, "stay in %255[^;]", directory), 1);
  t = count(directory, "cudaMalloc");
  ck_assert_uint_eq(t.events, 5);
  ck_assert_int_eq(remove_folder(directory), 0);
}
END_TEST

static Suite *loader_life_suite(void)
{
  Suite *s = suite_create("loader: life");
  TCase *t = tcase_create("life");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_loop_test(t, test_every_image_has_its_events, 0, sizeof lives / sizeof *lives);
  tcase_add_test(t, test_a_daemon_without_descriptors_or_parent_goes_on_recording);
  tcase_add_test(t, test_a_child_forked_amid_a_walk_over_objects_records_its_calls);
  tcase_add_test(t, test_forks_amid_starting_threads_lose_nothing);
  tcase_add_loop_test(t, test_a_spool_out_of_reach_counts_what_it_drops, 0, 2);
  tcase_add_test(t, test_errno_is_left_alone);
  tcase_add_test(t, test_a_call_left_by_longjmp_is_counted_and_the_next_recorded);
  tcase_add_test(t, test_a_programs_note_is_in_its_spool);
  tcase_add_loop_test(t, test_a_wrong_option_is_said_and_the_default_used, 0, 4);
  tcase_add_test(t, test_a_folder_that_is_gone_is_said_and_no_trouble);
  tcase_add_test(t, test_a_folder_that_cannot_be_written_is_said);
  tcase_add_test(t, test_who_makes_no_call_is_told_nothing);
  tcase_add_test(t, test_nothing_is_said_to_what_took_the_place_of_stderr);
  tcase_add_loop_test(t, test_the_collector_is_started_and_nobody_notices, 0, 2);
  tcase_add_test(t, test_placeholders_of_the_trace_s_name_are_filled_in);
  tcase_add_test(t, test_a_name_that_cannot_be_made_is_reported_once);
  tcase_add_test(t, test_children_join_the_folder_of_the_first);
  tcase_add_test(t, test_a_program_without_cuda_makes_nothing);
  tcase_add_test(t, test_a_missing_collector_is_said_and_the_spool_stays);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  SRunner *r = srunner_create(loader_life_suite());
  int failed;

  srunner_run_all(r, CK_ENV);
  failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
