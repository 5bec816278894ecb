/* command.c: running the weir command, and asking its traces. */
#include "tests/tools/command.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/base/rank.h"

enum { MOST_OUTCOMES = 1024 };

static char scratch[64];
static outcome *outcomes[MOST_OUTCOMES]; /* of this test, freed when it leaves */
static unsigned outcome_count;

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
  (void)st, (void)type, (void)at;
  return remove(path);
}

void enter_scratch(void)
{
  strcpy(scratch, "/tmp/weir-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(scratch));
  ck_assert_int_eq(chdir(scratch), 0);
  char cache[sizeof scratch + 8];
  (void)snprintf(cache, sizeof cache, "%s/.cache", scratch);
  (void)setenv("XDG_CACHE_HOME", cache, 1);          /* no verdict of another run's */
  (void)setenv("WEIR_CACHE_DECAY_MS", "3600000", 1); /* a hit is one however slow the machine */
  static const char *const ranks[] = {RANK_VARIABLES};
  for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
    (void)unsetenv(ranks[i]); /* of a launcher of the tests */
}

void leave_scratch(void)
{
  while (outcome_count)
    free(outcomes[--outcome_count]);
  ck_assert_int_eq(chdir("/"), 0);
  (void)nftw(scratch, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* The runner says where the build tree is; by hand, it is where the suite is. */
static const char *build_tree(void)
{
  static char path[4096];
  const char *build = getenv("WEIR_BUILD");
  if (build) return build;
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
  ck_assert_int_gt(n, 0);
  path[n] = 0;
  char *end = NULL; /* BUILD/tests/FOLDER/SUITE */
  for (char *at = path; (at = strstr(at, "/tests/")); at++)
    end = at;
  ck_assert_ptr_nonnull(end);
  *end = 0;
  return path;
}

const char *built(const char *relative)
{
  static char path[4096 + 64];
  (void)snprintf(path, sizeof path, "%s/%s", build_tree(), relative);
  return path;
}

void set_names(void)
{
  (void)setenv("BUILD", build_tree(), 1);
  (void)setenv("WEIR", built("bin/weir"), 1);
  (void)setenv("VICTIM", built("tests/tools/victim"), 1);
  (void)setenv("WEIR_SOURCE", built(".."), 0);
}

bool has_terminals(void)
{
  int fd = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  bool has = fd >= 0 && grantpt(fd) == 0 && unlockpt(fd) == 0 && ptsname(fd);
  if (fd >= 0) (void)close(fd);
  return has;
}

static pid_t spawn(const char *line, int in, int out, int err)
{
  set_names();
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid) return pid;
  if (in < 0) in = open("/dev/null", O_RDONLY | O_CLOEXEC);
  (void)dup2(in, 0);
  if (out >= 0) (void)dup2(out, 1);
  if (err >= 0) (void)dup2(err, 2);
  execl("/bin/sh", "sh", "-c", line, (char *)NULL);
  _exit(127);
}

static void collect_output(outcome *o, int out, int err)
{
  struct pollfd p[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
  char *to[2] = {o->out, o->err};
  size_t used[2] = {0, 0}, room = sizeof o->out - 1;
  while (p[0].fd >= 0 || p[1].fd >= 0) {
    ck_assert_int_gt(poll(p, 2, -1), 0);
    for (int i = 0; i < 2; i++) {
      if (p[i].fd < 0 || !p[i].revents) continue;
      ssize_t n = read(p[i].fd, to[i] + used[i], room - used[i]);
      if (n > 0) used[i] += (size_t)n;
      if (n <= 0) p[i].fd = -1;
    }
  }
}

static outcome *run_line(const char *line)
{
  outcome *o = calloc(1, sizeof *o);
  int out[2], err[2];
  ck_assert_ptr_nonnull(o);
  ck_assert_uint_lt(outcome_count, MOST_OUTCOMES);
  outcomes[outcome_count++] = o;
  ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
  ck_assert_int_eq(pipe2(err, O_CLOEXEC), 0);
  pid_t pid = spawn(line, -1, out[1], err[1]);
  (void)close(out[1]);
  (void)close(err[1]);
  collect_output(o, out[0], err[0]);
  ck_assert_int_eq(waitpid(pid, &o->status, 0), pid);
  (void)close(out[0]);
  (void)close(err[0]);
  return o;
}

outcome *sh(const char *format, ...)
{
  char line[4096];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(line, sizeof line, format, args);
  va_end(args);
  return run_line(line);
}

outcome *sh_status(int status, const char *format, ...)
{
  char line[4096];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(line, sizeof line, format, args);
  va_end(args);
  outcome *o = run_line(line);
  ck_assert_msg(WIFEXITED(o->status) && WEXITSTATUS(o->status) == status,
                "'%s' ended with wait status %#x, not exit status %d; stdout: %s; stderr: %s", line,
                (unsigned)o->status, status, o->out, o->err);
  return o;
}

pid_t start(int in, int out, const char *format, ...)
{
  char line[4096];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(line, sizeof line, format, args);
  va_end(args);
  return spawn(line, in, out, -1);
}

void adopt_collectors(void)
{
  ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

void wait_for_collectors(void)
{
  while (waitpid(-1, NULL, 0) > 0) {
  }
}

long long ask(const char *trace, const char *query)
{
  sqlite3 *db;
  sqlite3_stmt *s;
  ck_assert_int_eq(sqlite3_open_v2(trace, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  ck_assert_msg(sqlite3_prepare_v2(db, query, -1, &s, NULL) == SQLITE_OK, "%s: %s: %s", trace,
                query, sqlite3_errmsg(db));
  ck_assert_int_eq(sqlite3_step(s), SQLITE_ROW);
  long long n = sqlite3_column_int64(s, 0);
  sqlite3_finalize(s);
  sqlite3_close(db);
  return n;
}

void read_until(int fd, const char *text)
{
  char seen[8192] = "";
  size_t used = 0;
  while (!strstr(seen, text)) {
    ck_assert_msg(used + 1 < sizeof seen && read(fd, seen + used, 1) == 1,
                  "the output ended before '%s': %s", text, seen);
    seen[++used] = 0;
  }
}

int run_suite(Suite *suite)
{
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
