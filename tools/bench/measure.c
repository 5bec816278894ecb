/* measure.c: what rows measure with: programs that run to their end, medians, texts. */
#include "tools/bench/bench.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/bench/timing.h"

enum { CANNOT_RUN = 127 }; /* the status of a child whose program could not be started */

const char *bench_build, *bench_scratch;
bool bench_asked;

double bench_median(double *values, size_t count)
{
  qsort(values, count, sizeof *values, ascending_doubles);
  return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

double bench_now(void)
{
  return now_ns() / 1e9;
}

const char *bench_text(const char *format, ...)
{
  static char texts[16][4096];
  static unsigned at;
  char *text = texts[at++ % 16];
  va_list args;
  va_start(args, format);
  (void)vsnprintf(text, sizeof texts[0], format, args);
  va_end(args);
  return text;
}

double bench_cpu_seconds;
char bench_failure[160];

/* What a program's end means for the row that ran it. */
static bool ended_well(const char *program, int status)
{
  const char *name = strrchr(program, '/');
  name = name ? name + 1 : program;
  *bench_failure = 0;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_RUN)
    (void)snprintf(bench_failure, sizeof bench_failure, "%s cannot be run: is it built?", program);
  else if (WIFEXITED(status))
    (void)snprintf(bench_failure, sizeof bench_failure, "%s ended with status %d", name,
                   WEXITSTATUS(status));
  else
    (void)snprintf(bench_failure, sizeof bench_failure, "%s was ended by signal %d", name,
                   WTERMSIG(status));
  return false;
}

static double seconds_of(struct timeval t)
{
  return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

bool bench_run(double *number, double *seconds, long *kib, const char *const *argv)
{
  int out[2], status;
  char text[256] = "";
  struct rusage use;
  if (pipe2(out, O_CLOEXEC) < 0) return false;
  double begin = bench_now();
  pid_t pid = fork();
  if (pid == 0) {
    (void)dup2(out[1], 1);
    (void)execvp(argv[0], (char *const *)argv);
    _exit(CANNOT_RUN);
  }
  (void)close(out[1]);
  size_t used = 0;
  char spill[4096];
  for (ssize_t n; (n = read(out[0], spill, sizeof spill)) > 0;) {
    size_t room = sizeof text - 1 - used, take = (size_t)n < room ? (size_t)n : room;
    memcpy(text + used, spill, take);
    used += take;
  }
  (void)close(out[0]);
  if (pid < 0 || wait4(pid, &status, 0, &use) != pid) return false;
  if (seconds) *seconds = bench_now() - begin;
  bench_cpu_seconds = seconds_of(use.ru_utime) + seconds_of(use.ru_stime);
  if (kib) *kib = use.ru_maxrss;
  if (number) *number = strtod(text, NULL);
  return ended_well(argv[0], status);
}

bool bench_children(measured *m, size_t count, const char *const *argv)
{
  double *each = calloc(count, sizeof *each);
  m->failed = !each;
  for (size_t i = 0; i < count && !m->failed; i++)
    m->failed = !bench_run(&each[i], NULL, NULL, argv);
  if (!m->failed) m->value = bench_median(each, count);
  free(each);
  return !m->failed;
}

bool bench_turns(measured *m, size_t count, const char *const *with, const char *const *without)
{
  double *each = calloc(3 * count, sizeof *each);
  m->failed = !each;
  if (!each) return false;
  double *other = each + count, *ratio = other + count;
  for (size_t i = 0; i < count && !m->failed; i++) {
    m->failed =
        !bench_run(&each[i], NULL, NULL, with) || !bench_run(&other[i], NULL, NULL, without);
    ratio[i] = m->failed ? 0 : each[i] / other[i];
  }
  if (!m->failed) {
    m->with = bench_median(each, count);
    m->without = bench_median(other, count);
    m->value = bench_median(ratio, count);
  }
  free(each);
  return !m->failed;
}

void bench_give_up(measured *m, const char *why)
{
  m->failed = true;
  (void)snprintf(m->note, sizeof m->note, "%s", why);
}
