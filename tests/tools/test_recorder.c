/* test_recorder.c: weir run --keep: the last records of a program are kept, no more of them than was
 * asked for, and become a trace when something happens, whoever is killed; what needs no trace
 * leaves none. ringer's allocations are numbered: what a dump lacks shows. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/level.h"
#include "tests/tools/command.h"

#define MIB    (UINT64_C(1) << 20)
#define RINGER "$BUILD/tests/tools/ringer made "
#define PLACE  "WEIR_SPOOL_ROOT=$PWD/place WEIR_STACKS=off "
#define KEEP   PLACE "$WEIR run --sim --keep=2M -o t.db "

enum {
  WORDS = 16,                  /* of ringer's file; the last is its pid */
  FAST = 9000,                 /* allocations that fill most of 2 MiB with their frees */
  KILLS = AT_LEVEL(4, 20, 200) /* in each way */
};

static volatile _Atomic unsigned long long *made;

static void enter_output(void)
{
  enter_scratch();
  ck_assert_int_eq(mkdir("place", 0700), 0);
  int fd = open("made", O_RDWR | O_CREAT | O_EXCL, 0600);
  ck_assert_int_eq(ftruncate(fd, WORDS * sizeof *made), 0);
  made = mmap(NULL, WORDS * sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ck_assert(made != MAP_FAILED);
  (void)close(fd);
}

static void leave(void)
{
  (void)munmap((void *)(uintptr_t)made, WORDS * sizeof *made);
  leave_scratch();
}

static bool is_there(const char *path)
{
  struct stat file;
  return lstat(path, &file) == 0;
}

/* What of a name is in a folder; 0: the folder is empty or not there. */
static unsigned count_in(const char *folder, const char *part)
{
  unsigned n = 0;
  DIR *d = opendir(folder);
  for (struct dirent *e; d && (e = readdir(d));)
    n += e->d_name[0] != '.' && strstr(e->d_name, part) != NULL;
  if (d) (void)closedir(d);
  return n;
}

static unsigned dumps(void)
{
  ck_assert_uint_eq(count_in(".", ".dump-"), 0);
  return count_in(".", "t.0");
}

static void wait_until_made(int thread, unsigned long long count)
{
  while (made[thread] < count)
    (void)usleep(1000);
}

static long long ask_thread(const char *trace, const char *what, long long thread)
{
  char query[512];
  (void)snprintf(query, sizeof query,
                 "SELECT %s FROM event WHERE kind = (SELECT id FROM event_kind WHERE name = "
                 "'alloc') AND bytes < 1048576 AND thread = %lld",
                 what, thread);
  return ask(trace, query);
}

/* Of each thread the dump has allocations without a gap, to the last that the program knew of. */
static void expect_no_gap(const char *trace, unsigned threads, unsigned long long least)
{
  char query[256];
  unsigned long long last = 0;
  ck_assert_int_eq(ask(trace, "SELECT sum(dropped + damaged_chunks) FROM process"), 0);
  /* A kill may come in the middle of a record, which was not committed then. */
  ck_assert_int_le(ask(trace, "SELECT sum(torn) FROM process"), threads);
  for (unsigned i = 0; i < threads; i++) {
    (void)snprintf(query, sizeof query,
                   "SELECT thread FROM event WHERE kind = (SELECT id FROM event_kind WHERE name = "
                   "'alloc') AND bytes < 1048576 GROUP BY thread ORDER BY thread LIMIT 1 OFFSET %u",
                   i);
    const long long thread = ask(trace, query);
    const long long first = ask_thread(trace, "min(bytes)", thread);
    const long long end = ask_thread(trace, "max(bytes)", thread);
    ck_assert_int_eq(ask_thread(trace, "count(*)", thread), end - first + 1);
    if ((unsigned long long)end > last) last = (unsigned long long)end;
  }
  ck_assert_uint_ge(last, least);
}

static unsigned long long most_made(unsigned threads)
{
  unsigned long long most = 0;
  for (unsigned i = 0; i < threads; i++)
    if (made[i] > most) most = made[i];
  return most;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static uint64_t most_in_place(void)
{
  uint64_t bytes = 0;
  DIR *d = opendir("place"), *in;
  for (struct dirent *e; d && (e = readdir(d));) {
    char path[4096];
    (void)snprintf(path, sizeof path, "place/%s", e->d_name);
    if (e->d_name[0] == '.' || !(in = opendir(path))) continue;
    for (struct dirent *f; (f = readdir(in));) {
      struct stat file;
      if (strstr(f->d_name, ".spool") && fstatat(dirfd(in), f->d_name, &file, 0) == 0)
        bytes += (uint64_t)file.st_blocks * 512;
    }
    (void)closedir(in);
  }
  if (d) (void)closedir(d);
  return bytes;
}

START_TEST(a_ring_is_never_larger_than_asked_for)
{
  enum { CHUNK = 2 << 20 >> 7, THREADS = 3 };
  int status;
  uint64_t most = 0;
  pid_t weir = start(-1, -1, "exec env " KEEP "-- " RINGER "3 20000 3000 exit 2>log");
  while (waitpid(weir, &status, WNOHANG) == 0) {
    const uint64_t now = most_in_place();
    if (now > most) most = now;
    (void)usleep(1000);
  }
  ck_assert_int_eq(WEXITSTATUS(status), 3);
  ck_assert_uint_le(most, 2 * MIB + 2 * CHUNK * (THREADS + 2) + 65536);
  ck_assert_uint_gt(most, MIB);
  ck_assert_uint_eq(dumps(), 1);
  expect_no_gap("t.0001.db", THREADS, 20000);
  ck_assert_int_gt(ask("t.0001.db", "SELECT count(*) FROM event"), 10000);
  ck_assert_int_lt(ask("t.0001.db", "SELECT count(*) FROM event"),
                   2 * (int)MIB / 64 + 4 * CHUNK / 64);
}
END_TEST

START_TEST(a_time_is_kept_within_the_size)
{
  sh_status(3, PLACE "$WEIR run --sim --keep=64M,300ms -o t.db -- " RINGER "1 25000 15000 exit");
  ck_assert_uint_eq(dumps(), 1);
  expect_no_gap("t.0001.db", 1, 25000);
  ck_assert_int_lt(ask("t.0001.db", "SELECT count(*) FROM event"), 45000);
}
END_TEST

START_TEST(the_live_set_is_that_of_the_whole_run)
{
  sh_status(3, "WEIR_SIM_MEMORY=300M " KEEP "-- " RINGER "1 20000 9000 exit");
  ck_assert_int_gt(ask("t.0001.db", "SELECT sum(count) FROM before_window"), 0);
  ck_assert_int_eq(ask("t.0001.db",
                       "SELECT (SELECT count(*) FROM event WHERE kind = (SELECT id FROM "
                       "event_kind WHERE name = 'alloc')) + (SELECT sum(count) FROM "
                       "before_window WHERE kind = (SELECT id FROM event_kind WHERE "
                       "name = 'alloc'))"),
                   20000);
}
END_TEST

/* ---- what is dumped, and what is not --------------------------------------------------------- */

START_TEST(a_normal_end_leaves_nothing)
{
  outcome *o = sh_status(0, KEEP "-- " RINGER "2 3000 3000");
  ck_assert_str_eq(o->err, "");
  ck_assert_uint_eq(dumps(), 0);
  ck_assert_uint_eq(count_in("place", ""), 0);
  ck_assert(!is_there("t.db"));
}
END_TEST

START_TEST(a_normal_end_is_dumped_where_that_is_asked_for)
{
  sh_status(0, KEEP "--dump-at=exit -- " RINGER "2 3000 3000");
  ck_assert_uint_eq(dumps(), 1);
  expect_no_gap("t.0001.db", 2, 3000);
  ck_assert_int_eq(ask("t.0001.db",
                       "SELECT count(*) FROM meta WHERE key = 'window_reason' AND value "
                       "= 'exit 0'"),
                   1);
}
END_TEST

START_TEST(a_signal_and_a_failure_are_dumped)
{
  (void)sh("ulimit -c 0; " KEEP "-- " RINGER "1 3000 3000 abort");
  ck_assert_uint_eq(dumps(), 1);
  ck_assert_int_eq(ask("t.0001.db",
                       "SELECT count(*) FROM meta WHERE key = 'window_reason' AND value "
                       "= 'signal 6'"),
                   1);
  sh_status(3, KEEP "-- " RINGER "1 3000 3000 exit"); /* of the same name: nothing is replaced */
  ck_assert_uint_eq(dumps(), 2);
  ck_assert_int_eq(ask("t.0002.db",
                       "SELECT count(*) FROM meta WHERE key = 'window_reason' AND value "
                       "= 'exit 3'"),
                   1);
  ck_assert_uint_eq(count_in("place", ""), 0);
}
END_TEST

#define SMALL_DEVICE "WEIR_SIM_MEMORY=300M " KEEP

START_TEST(a_failed_allocation_that_is_mended_is_no_accident)
{
  sh_status(0, SMALL_DEVICE "--mode=observe -- " RINGER "1 1000 1000 mend");
  ck_assert_uint_eq(dumps(), 0);
}
END_TEST

START_TEST(a_failed_allocation_that_ends_the_program_is_dumped_once)
{
  static const char *const ends[] = {"exit", "abort", "mend fail exit", "fail"};
  for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
    (void)sh("ulimit -c 0; " SMALL_DEVICE "--mode=observe -- " RINGER "1 1000 1000 fail %s",
             ends[i]);
    ck_assert_uint_eq(dumps(), i + 1);
  }
  ck_assert_int_eq(ask("t.0001.db",
                       "SELECT count(*) FROM meta WHERE key = 'window_reason' AND value "
                       "= 'allocation of 262144000 bytes failed'"),
                   1);
}
END_TEST

START_TEST(a_failed_allocation_is_dumped_while_the_program_goes_on)
{
  int hold[2];
  ck_assert_int_eq(pipe2(hold, O_CLOEXEC), 0);
  pid_t weir = start(hold[0], -1,
                     "exec env " SMALL_DEVICE "--mode=observe -- " RINGER "1 1000 1000 fail wait");
  (void)close(hold[0]);
  while (!is_there("t.0001.db") || count_in(".", ".dump-"))
    (void)usleep(10000);
  (void)close(hold[1]);
  int status;
  ck_assert_int_eq(waitpid(weir, &status, 0), weir);
  ck_assert_int_eq(WEXITSTATUS(status), 0);
  ck_assert_uint_eq(dumps(), 1);
  expect_no_gap("t.0001.db", 1, 1000);
}
END_TEST

START_TEST(no_more_dumps_are_made_than_asked_for)
{
  outcome *o = sh_status(3, KEEP "--dumps=0 -- " RINGER "1 1000 1000 exit");
  ck_assert_uint_eq(dumps(), 0);
  ck_assert_ptr_nonnull(strstr(o->err, "1 dump was not made, the newest for: exit 3"));
  ck_assert_uint_eq(count_in("place", ""), 0);
}
END_TEST

START_TEST(a_dump_that_is_asked_for_is_made_while_the_program_goes_on)
{
  int hold[2], status;
  ck_assert_int_eq(pipe2(hold, O_CLOEXEC), 0);
  pid_t weir =
      start(hold[0], -1, "exec env " KEEP "--metrics=unix:page -- " RINGER "1 3000 3000 wait");
  (void)close(hold[0]);
  wait_until_made(0, 3000);
  for (unsigned i = 1; i <= 2; i++) {
    outcome *o = sh_status(0, PLACE "$WEIR dump %d", (int)made[WORDS - 1]);
    ck_assert_ptr_nonnull(strstr(o->out, i == 1 ? "/t.0001.db\n" : "/t.0002.db\n"));
    ck_assert_uint_eq(dumps(), i); /* it is complete by then */
    expect_no_gap(i == 1 ? "t.0001.db" : "t.0002.db", 1, 3000);
  }
  sh_status(0, "python3 -c 'import socket\n"
               "s = socket.socket(socket.AF_UNIX); s.connect(\"page\")\n"
               "s.sendall(b\"GET /metrics HTTP/1.0\\r\\n\\r\\n\"); page = b\"\"\n"
               "while data := s.recv(65536): page += data\n"
               "assert b\"\\nweir_dumps_total 2\\n\" in page, page'");
  (void)close(hold[1]);
  ck_assert_int_eq(waitpid(weir, &status, 0), weir);
  ck_assert_int_eq(WEXITSTATUS(status), 0);
  ck_assert_uint_eq(dumps(), 2);
  expect_no_gap("t.0001.db", 1, 3000);
  expect_no_gap("t.0002.db", 1, 3000);
  sh_status(1, PLACE "$WEIR dump %d", (int)made[WORDS - 1]);
}
END_TEST

/* ---- kills ----------------------------------------------------------------------------------- */

enum way { PROGRAM, COLLECTOR, BOTH, WAYS };

static void end_program(pid_t weir, pid_t program, enum way way)
{
  int status;
  if (way == PROGRAM) (void)kill(program, SIGKILL);
  if (way != PROGRAM) (void)kill(weir, SIGKILL);
  if (way == BOTH) (void)kill(program, SIGKILL);
  ck_assert_int_eq(waitpid(weir, &status, 0), weir);
  if (way == COLLECTOR) (void)kill(program, SIGKILL);
  if (way != PROGRAM) (void)waitpid(program, NULL, 0); /* it is ours now: adopt_collectors() */
}

/* Kills when the ring has turned by some more records each time. */
static void kill_once(enum way way, unsigned i)
{
  enum { THREADS = 2 };
  memset((void *)(uintptr_t)made, 0, WORDS * sizeof *made);
  pid_t weir = start(-1, -1, "exec env " KEEP "-- " RINGER "2 0 4500 2>>log");
  const unsigned long long at = 500 + (unsigned long long)i * 1700 % 9000;
  wait_until_made(0, at);
  wait_until_made(1, at);
  const unsigned long long known = most_made(THREADS);
  end_program(weir, (pid_t)made[WORDS - 1], way);
  if (way != PROGRAM) sh_status(0, PLACE "$WEIR recover place/*");
  ck_assert_uint_eq(dumps(), 1);
  expect_no_gap("t.0001.db", THREADS, known);
  ck_assert_uint_eq(count_in("place", ""), 0);
  ck_assert_int_eq(unlink("t.0001.db"), 0);
}

START_TEST(who_is_killed_leaves_all_that_was_kept)
{
  adopt_collectors();
  for (unsigned i = 0; i < KILLS; i++)
    kill_once((enum way)_i, i);
}
END_TEST

START_TEST(the_next_run_recovers_what_a_killed_recorder_kept)
{
  adopt_collectors();
  pid_t weir = start(-1, -1, "exec env " KEEP "-- " RINGER "1 0 4500 2>>log");
  wait_until_made(0, 5000);
  end_program(weir, (pid_t)made[WORDS - 1], BOTH);
  sh_status(0, "for d in place/*; do : >$d/1-0.tally.new; done"); /* killed in a commit */
  ck_assert_uint_eq(dumps(), 0);
  outcome *o = sh_status(0, KEEP "-- $VICTIM repeat 3");
  ck_assert_uint_eq(dumps(), 1);
  ck_assert_ptr_nonnull(strstr(o->err, "whose collector was killed"));
  expect_no_gap("t.0001.db", 1, 5000);
  ck_assert_uint_eq(count_in("place", ""), 0);
}
END_TEST

/* ---- other ways ------------------------------------------------------------------------------ */

START_TEST(a_preloaded_program_is_kept_too)
{
  adopt_collectors();
  (void)sh("ulimit -c 0; WEIR_KEEP=2M WEIR_OUTPUT=$PWD/t.db " PLACE
           "LD_PRELOAD=$BUILD/lib/libweir-preload.so LD_LIBRARY_PATH=$BUILD/lib/sim " RINGER
           "2 9000 4000 abort");
  wait_for_collectors();
  ck_assert_uint_eq(dumps(), 1);
  ck_assert(!is_there("t.db"));
  expect_no_gap("t.0001.db", 2, 9000);
}
END_TEST

START_TEST(a_dump_that_has_no_room_leaves_the_ring_for_the_next)
{
  ck_assert_int_eq(mkdir("out", 0700), 0);
  outcome *o = sh_status(3, PLACE "$WEIR run --sim --keep=2M -o out/t.db -- sh -c '" RINGER
                                  "1 3000 3000; rm -rf out; exec " RINGER "1 3000 3000 exit'");
  ck_assert_ptr_nonnull(strstr(o->err, "no dump was made: cannot make "));
  ck_assert_ptr_nonnull(strstr(o->err, "weir recover"));
  ck_assert_uint_eq(count_in("place", ""), 1);
  ck_assert_int_eq(mkdir("out", 0700), 0);
  sh_status(0, PLACE "$WEIR recover place/*");
  expect_no_gap("out/t.0001.db", 1, 3000);
  ck_assert_uint_eq(count_in("place", ""), 0);
}
END_TEST

START_TEST(what_cannot_be_kept_is_refused_in_a_sentence)
{
  static const struct {
    const char *options, *why;
  } wrong[] = {{"--keep=5m", "give 5M or 5min"},
               {"--keep=10", "the least is"},
               {"--dump-at=90%", "--dump-at goes with --keep"},
               {"--dumps=3", "--dumps goes with --keep"},
               {"--keep --dump-at=0%", "is not a part of a device's memory"},
               {"--keep --dump-at=exit,", "is not a part of a device's memory"}};
  for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    outcome *o = sh_status(2, "$WEIR run --sim %s -- true", wrong[i].options);
    ck_assert_msg(strstr(o->err, wrong[i].why) != NULL, "%s: %s", wrong[i].options, o->err);
  }
  outcome *o = sh_status(125, "$WEIR run --sim --keep -o nowhere/t.db -- true");
  ck_assert_ptr_nonnull(strstr(o->err, "cannot write dumps as nowhere/t.db"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("recorder");
  TCase *t = tcase_create("recorder");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_output, leave);
  tcase_add_test(t, a_ring_is_never_larger_than_asked_for);
  tcase_add_test(t, a_time_is_kept_within_the_size);
  tcase_add_test(t, the_live_set_is_that_of_the_whole_run);
  tcase_add_test(t, a_normal_end_leaves_nothing);
  tcase_add_test(t, a_normal_end_is_dumped_where_that_is_asked_for);
  tcase_add_test(t, a_signal_and_a_failure_are_dumped);
  tcase_add_test(t, a_failed_allocation_that_is_mended_is_no_accident);
  tcase_add_test(t, a_failed_allocation_that_ends_the_program_is_dumped_once);
  tcase_add_test(t, a_failed_allocation_is_dumped_while_the_program_goes_on);
  tcase_add_test(t, no_more_dumps_are_made_than_asked_for);
  tcase_add_test(t, a_dump_that_is_asked_for_is_made_while_the_program_goes_on);
  tcase_add_loop_test(t, who_is_killed_leaves_all_that_was_kept, 0, WAYS);
  tcase_add_test(t, the_next_run_recovers_what_a_killed_recorder_kept);
  tcase_add_test(t, a_preloaded_program_is_kept_too);
  tcase_add_test(t, a_dump_that_has_no_room_leaves_the_ring_for_the_next);
  tcase_add_test(t, what_cannot_be_kept_is_refused_in_a_sentence);
  suite_add_tcase(s, t);
  return run_suite(s);
}
