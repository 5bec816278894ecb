/* test_users.c: programs that are another user's than their run, or that leave its root folder, are
 * recorded; where they cannot be, that is said; and who is hostile among them, or outside of the
 * run, gets no spool that is not its own. What needs root passes without it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/trace/spool.h"
#include "tests/tools/command.h"

#define RUN     "$WEIR run --sim --force -o t.db "
#define ALLOCS  "SELECT count(*) FROM event WHERE kind = 1"
#define DROPPED "SELECT sum(dropped) FROM process"
#define OTHER   "setpriv --reuid 65534 --regid 65534 --clear-groups "

/* Whether there is another user here to be, who can run what we have built. */
static bool has_other_user(void)
{
  sh_status(0, "chmod 755 .");
  return geteuid() == 0 &&
         sh(OTHER "sh -c 'test -x $VICTIM && test -r $BUILD/lib/sim/libcuda.so.1 &&"
                  " test -r $BUILD/lib/libweir-preload.so'")
                 ->status == 0;
}

/* ---- what is recorded ------------------------------------------------------------------------ */

START_TEST(a_program_that_gives_up_root_is_recorded)
{
  static const struct {
    const char *life;
    long long allocs;
  } lives[] = {{"drop repeat 5", 5},
               /* more than it had a place for as root */
               {"call drop repeat 9000", 9001},
               {"fork drop call", 1},
               {"drop fork call", 1},
               {"call drop exec call", 2},
               {"drop daemon call", 1}};
  if (!has_other_user()) return;
  for (size_t i = 0; i < sizeof lives / sizeof *lives; i++) {
    outcome *o = sh_status(0, RUN "-- $VICTIM %s", lives[i].life);
    ck_assert_msg(o->err[0] == 0, "%s: %s", lives[i].life, o->err);
    long long allocs = ask("t.db", ALLOCS);
    ck_assert_msg(allocs == lives[i].allocs, "%s: %lld", lives[i].life, allocs);
    ck_assert_int_eq(ask("t.db", DROPPED), 0);
    ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen"), 0);
  }
}
END_TEST

START_TEST(a_program_started_as_another_user_is_recorded)
{
  if (!has_other_user()) return;
  outcome *o =
      sh_status(3, RUN "-- " OTHER "sh -c '$VICTIM repeat 9000 & $VICTIM fork call; wait; exit 3'");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", ALLOCS), 9001);
  ck_assert_int_eq(ask("t.db", DROPPED), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE end_reason = 'unknown'"), 0);
}
END_TEST

START_TEST(a_preloaded_program_that_gives_up_root_is_recorded)
{
  if (!has_other_user()) return;
  adopt_collectors();
  sh_status(0, "mkdir place; export WEIR_SPOOL_ROOT=$PWD/place WEIR_OUTPUT=t.db "
               "LD_LIBRARY_PATH=$BUILD/lib/sim"
               " LD_PRELOAD=$BUILD/lib/libweir-preload.so; $VICTIM call drop exec repeat 9000");
  wait_for_collectors();
  ck_assert_int_eq(ask("t.db", ALLOCS), 9001);
  ck_assert_int_eq(ask("t.db", DROPPED), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen"), 0);
}
END_TEST

/* ---- what cannot be -------------------------------------------------------------------------- */

START_TEST(a_program_that_reaches_no_collector_is_named)
{
  if (!has_other_user() || sh("unshare -n true")->status != 0) return;
  sh_status(0, RUN "-- unshare -n " OTHER "$VICTIM call");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen WHERE path LIKE '%/victim' AND"
                               " why = 'its user has no access to the spools'"),
                   1);
  const outcome *o = sh_status(0, "$WEIR report t.db");
  ck_assert_msg(strstr(o->out, "ran without Weir"), "%s", o->out);
}
END_TEST

START_TEST(a_program_whose_user_may_not_read_the_library_is_named)
{
  if (!has_other_user()) return;
  sh_status(0, "mkdir -m 700 w w/bin w/lib && cp $BUILD/bin/weir w/bin && cp -r"
               " $BUILD/lib/libweir-preload.so $BUILD/lib/sim w/lib");
  (void)sh("w/bin/weir run --sim --force -o t.db -- " OTHER "true");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM unseen WHERE path LIKE '%/true' AND"
                               " why = 'its user may not read the preload library'"),
                   1);
}
END_TEST

/* ---- who is hostile -------------------------------------------------------------------------- */

static int ask_for(const char *folder, const spool_request *r, spool_answer *answer,
                   int *connection)
{
  return spool_request_file(folder, strlen(folder), r, answer, connection);
}

/* The folder that the program of a run has written into `dir`. */
static void read_folder(char folder[256])
{
  outcome *o = sh_status(0, "cat dir");
  (void)snprintf(folder, 256, "%.*s", (int)strcspn(o->out, "\n"), o->out);
}

/* We are no process of the run. */
START_TEST(a_process_outside_of_the_run_gets_nothing)
{
  char folder[256];
  spool_answer answer;
  spool_request r = {REQUEST_VERSION, REQUEST_NEW, 0, 0, {0}};
  int status;
  ck_assert_int_eq(mkfifo("go", 0600), 0);
  pid_t pid =
      start(-1, -1, "exec " RUN "-- sh -c 'echo $WEIR_SPOOL_DIR >dir; exec $VICTIM call await go'");
  int go = open("go", O_WRONLY);
  read_folder(folder);
  ck_assert_int_eq(ask_for(folder, &r, &answer, NULL), -1);
  r.what = REQUEST_AGAIN;
  ck_assert_int_eq(ask_for(folder, &r, &answer, NULL), -1);
  (void)close(go);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
}
END_TEST

static void become_other(void)
{
  if (geteuid() == 0 &&
      (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534)))
    _exit(91);
}

/* Where somebody else holds the name that the collector would have, it is not believed. */
START_TEST(a_collector_of_another_user_is_not_believed)
{
  char theirs[64], ours[64];
  int ready[2], over[2], status;
  char c;
  (void)snprintf(theirs, sizeof theirs, "/dev/shm/weir-%u-%d", geteuid() + 1, (int)getpid());
  (void)snprintf(ours, sizeof ours, "/dev/shm/weir-%u-%d", geteuid(), (int)getpid());
  ck_assert_int_eq(pipe(ready) | pipe(over), 0);
  pid_t pid = fork();
  if (!pid) {
    struct sockaddr_un address;
    for (int i = 0; i < 2; i++) {
      const char *folder = i ? ours : theirs;
      socklen_t bytes = spool_request_address(&address, folder, strlen(folder));
      int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
      if (bind(fd, (struct sockaddr *)&address, bytes) || listen(fd, 4)) _exit(1);
    }
    (void)!write(ready[1], "r", 1);
    (void)close(over[1]);
    _exit(read(over[0], &c, 1) != 0);
  }
  ck_assert_int_eq(read(ready[0], &c, 1), 1);
  ck_assert(spool_request_possible(ours, strlen(ours)));
  ck_assert(!spool_request_possible(theirs, strlen(theirs)));
  ck_assert_int_eq(errno, EPERM);
  ck_assert(!spool_request_possible("/no/name/of/ours", 16));
  (void)close(over[1]);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
}
END_TEST

/* What this suite is when a run has started it: it asks for what is not its own, and leaves
 * nonsense in what it gets. Its exit status says which went wrong. */
static int attack(void)
{
  const char *folder = getenv("WEIR_SPOOL_DIR"), *others = getenv("OTHERS");
  spool_answer answer;
  spool_request again = {REQUEST_VERSION, REQUEST_AGAIN, (uint32_t)atoi(others), 0, {0}};
  spool_request new = {REQUEST_VERSION, REQUEST_NEW, (uint32_t)atoi(others), 0, {0}};
  int connection[2] = {-1, -1};
  become_other();
  if (ask_for(folder, &again, &answer, NULL) >= 0 || errno != EACCES) return 1;
  memset(again.key, 1, sizeof again.key);
  if (ask_for(folder, &again, &answer, NULL) >= 0 || errno != EACCES) return 2;
  int fd = ask_for(folder, &new, &answer, &connection[0]);
  if (fd < 0 || answer.pid != (uint32_t)getpid()) return 3;
  if (write(fd, "nonsense", 8) != 8) return 4;
  int second =
      ask_for(folder, &new, &answer, &connection[1]); /* a header that takes the others' name */
  static spool_header h = {.version = WEIR_SPOOL_VERSION,
                           .header_bytes = WEIR_SPOOL_HEADER,
                           .chunk_bytes = WEIR_SPOOL_CHUNK};
  memcpy(h.magic, WEIR_SPOOL_MAGIC, sizeof h.magic);
  h.pid = again.pid;
  h.start_time = spool_start_time(h.pid);
  h.clock_first = clock_now();
  atomic_store(&h.chunks, UINT32_MAX);
  if (second < 0 || write(second, &h, sizeof h) != sizeof h || ftruncate(second, 1 << 20)) return 5;
  (void)close(connection[0]);
  (void)close(connection[1]);
  spool_request wrong = {REQUEST_VERSION + 1, REQUEST_NEW, 0, 0, {0}};
  if (ask_for(folder, &wrong, &answer, NULL) >= 0 || errno != EINVAL) return 6;
  return 0;
}

START_TEST(a_hostile_program_of_another_user_harms_no_one_elses_events)
{
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n > 0 ? n : 0] = 0;
  outcome *o = sh("chmod 755 .; mkfifo go gone; " RUN
                  "-- sh -c '$VICTIM repeat 20 await go repeat 20 & pid=$!;"
                  " exec 3>go; OTHERS=$pid ATTACK=1 %s; echo $?; exec 3>&-; wait $pid; exit $?'",
                  self);
  ck_assert_msg(!strcmp(o->out, "0\n"), "%s%s", o->out, o->err);
  ck_assert_msg(o->status == 0, "%s", o->err);
  ck_assert_int_eq(ask("t.db", ALLOCS), 40);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM process WHERE exe LIKE '%/victim' AND end_reason = 'exit'"),
      1);
}
END_TEST

int main(void)
{
  if (getenv("ATTACK")) return attack();
  Suite *s = suite_create("tools/users");
  TCase *t = tcase_create("users");
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, a_program_that_gives_up_root_is_recorded);
  tcase_add_test(t, a_program_started_as_another_user_is_recorded);
  tcase_add_test(t, a_preloaded_program_that_gives_up_root_is_recorded);
  tcase_add_test(t, a_program_that_reaches_no_collector_is_named);
  tcase_add_test(t, a_program_whose_user_may_not_read_the_library_is_named);
  tcase_add_test(t, a_process_outside_of_the_run_gets_nothing);
  tcase_add_test(t, a_collector_of_another_user_is_not_believed);
  tcase_add_test(t, a_hostile_program_of_another_user_harms_no_one_elses_events);
  suite_add_tcase(s, t);
  return run_suite(s);
}
