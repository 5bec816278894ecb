/* test_schedules.c: whichever way the steps of a program and of its collector fall together, and
 * wherever the program is killed, every call that had returned is in a trace, and no folder stays.
 *
 * A search, not an example: programs of a few steps, stopped before each system call by which they
 * could meet the collector; there the collector is let run to each of its own; then the program
 * goes on to its end with the collector held, or is killed. (A preemption bound of two, as in
 * systematic testing of threads.) Each suite tries a sample of them, always the same one;
 * WEIR_SCHEDULES says how many, WEIR_SEED another sample. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/trace/spool.h"
#include "tests/level.h"
#include "tests/tools/command.h"
#include "tests/tools/scheduler.h"

static unsigned failed, uncollected;

/* How many there are; removed. One that never had a collector, since the program, or what was to be
 * the collector, was killed before, is what the next run finds: it becomes a trace. */
static unsigned folders_left(bool killed)
{
  unsigned n = 0, known = uncollected;
  char path[512];
  DIR *d = opendir("place");
  for (struct dirent *e; d && (e = readdir(d));) {
    if (e->d_name[0] == '.') continue;
    (void)snprintf(path, sizeof path, "place/%s/" WEIR_SPOOL_COLLECTOR, e->d_name);
    if (!killed || access(path, F_OK) == 0)
      n++;
    else
      (void)sh("$WEIR import place/%s -o left%u.db", e->d_name, ++uncollected);
  }
  if (d) (void)closedir(d);
  if (n || uncollected > known) (void)sh_status(0, "rm -rf place");
  return n;
}

/* In all traces there are; removed. */
static uint64_t calls_held(void)
{
  uint64_t held = 0;
  DIR *d = opendir(".");
  for (struct dirent *e; d && (e = readdir(d));) {
    size_t n = strlen(e->d_name);
    if (n < 4 || strcmp(e->d_name + n - 3, ".db") != 0) continue;
    held += (uint64_t)ask(e->d_name, "SELECT count(*) FROM event WHERE kind = 1");
    (void)unlink(e->d_name);
  }
  if (d) (void)closedir(d);
  return held;
}

static const char *describe_schedule(const schedule *s)
{
  static char text[256];
  static const char *const ends[] = {"all go on", "all are killed", "one is killed"};
  (void)snprintf(text, sizeof text,
                 "'%s'%s%s: program %u to %u, collector to %u, program to %d, %s%s", s->steps,
                 s->preloaded ? " preloaded" : "", s->turns_before ? " with turns" : "", s->of,
                 s->program_at, s->collector_at, (int)s->program_to, ends[s->then],
                 s->turns_after ? " with turns" : "");
  return text;
}

static walked try(const schedule *s)
{
  walked w;
  if (getenv("WEIR_SCHEDULES")) (void)fprintf(stderr, "%s\n", describe_schedule(s));
  if (!scheduler_run(s, &w)) return w;
  unsigned left = folders_left(s->then != GO_ON);
  uint64_t held = calls_held();
  if (held >= w.done && held <= w.begun && !left) return w;
  failed++;
  (void)fprintf(
      stderr,
      "FAILED %s (%s ): %llu to %llu calls were made, the traces hold %llu; %u folders left\n",
      describe_schedule(s), w.trail, (unsigned long long)w.done, (unsigned long long)w.begun,
      (unsigned long long)held, left);
  return w;
}

/* ---- the search ------------------------------------------------------------------------------ */

enum { QUICK = 2, ALL = 60, LONGER = 3000, COLLECTOR_STEPS = 48, NEAR = 12 };

static const char *const lives[] = {"3",          "2 exec 2",         "2 fork 2",
                                    "2 orphan 3", "2 exec exec 2",    "2 fork exec 1",
                                    "2 spawn 2",  "1 orphan spawn 2", "1 child exec exec 2"};
enum { LIVES = sizeof lives / sizeof *lives };
/* Of the lives, alone and under `weir run`: those in which all kills are tried. */
enum {
  FIRST_KILLED = AT_LEVEL(1, 2 * (LIVES - 1), 0),
  LAST_KILLED = AT_LEVEL(0, 2 * (LIVES - 1), 2 * LIVES - 1)
};

static uint64_t seed;

static unsigned draw_below(unsigned n)
{
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)((seed >> 33) % n);
}

static unsigned number_of(const char *name, unsigned otherwise)
{
  const char *text = getenv(name);
  return text ? (unsigned)strtoul(text, NULL, 10) : otherwise;
}

/* The steps of a life, counted once. */
static unsigned length_of(unsigned life, bool preloaded)
{
  static unsigned lengths[LIVES][2];
  unsigned *length = &lengths[life][preloaded];
  if (!*length) {
    schedule s = {.steps = lives[life], .preloaded = preloaded, .program_at = UNTIL_END};
    *length = try(&s).steps;
  }
  return *length;
}

static schedule draw_schedule(void)
{
  unsigned life = draw_below(LIVES);
  schedule s = {.steps = lives[life],
                .preloaded = draw_below(2),
                .turns_before = draw_below(2),
                .turns_after = draw_below(2)};
  s.program_at = 1 + draw_below(length_of(life, s.preloaded) + 1);
  s.collector_at = draw_below(COLLECTOR_STEPS);
  static const unsigned to[] = {0, UNTIL_END, 1};
  s.program_to = to[draw_below(3)];
  if (s.program_to == 1) s.program_to += draw_below(NEAR);
  s.then = draw_below(3);
  return s;
}

static bool allowed(void)
{
  schedule first = {.steps = "1"};
  walked w;
  if (scheduler_run(&first, &w)) {
    ck_assert_uint_eq(calls_held(), 1);
    return true;
  }
  (void)fprintf(stderr, "nobody may be traced here: no schedule was tried\n");
  return false;
}

START_TEST(nothing_is_lost_and_nothing_left_however_the_steps_fall)
{
  if (!allowed()) return;
  seed = number_of("WEIR_SEED", 1);
  for (unsigned n = number_of("WEIR_SCHEDULES", AT_LEVEL(QUICK, ALL, LONGER)); n > 0; n--) {
    schedule s = draw_schedule();
    (void)try(&s);
  }
  if (getenv("WEIR_SCHEDULES"))
    (void)fprintf(stderr, "%u folders without a collector\n", uncollected);
  ck_assert_uint_eq(failed, 0);
}
END_TEST

/* One process, or all, killed at every step of a life, the collector following each of them. */
static bool kill_at(unsigned process, unsigned step, bool preloaded, const char *life)
{
  schedule s = {.steps = life,
                .preloaded = preloaded,
                .turns_before = true,
                .of = process,
                .program_at = step,
                .then = KILL_ALL,
                .turns_after = true};
  if (!try(&s).reached_program) return false;
  s.then = KILL_ONE;
  return try(&s).reached_program;
}

START_TEST(a_kill_at_any_step_loses_nothing)
{
  if (!allowed()) return;
  for (unsigned process = 1, step = 0; step != 1; process++)
    for (step = 1; kill_at(process, step, _i % 2, lives[_i / 2]); step++)
      continue;
  ck_assert_uint_eq(failed, 0);
}
END_TEST

/* It opens its spool when the collector, which waits for nobody any more, has begun to finish. */
START_TEST(a_late_comer_is_followed_to_its_end)
{
  enum { COMER = 5, FIRST = 8, LAST = 9 }; /* of the looks into the folder */
  if (!allowed()) return;
  for (unsigned look = FIRST; look <= LAST; look++)
    for (unsigned opened = 8; opened <= 12; opened += 2) {
      schedule s = {.steps = "1 orphan spawn 2",
                    .preloaded = true,
                    .of = COMER,
                    .program_at = 1,
                    .collector_at = look,
                    .program_to = opened,
                    .turns_after = true};
      (void)try(&s);
    }
  ck_assert_uint_eq(failed, 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/schedules");
  TCase *t = tcase_create("search");
  tcase_set_timeout(t, 7200);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, nothing_is_lost_and_nothing_left_however_the_steps_fall);
  tcase_add_test(t, a_late_comer_is_followed_to_its_end);
  tcase_add_loop_test(t, a_kill_at_any_step_loses_nothing, FIRST_KILLED, LAST_KILLED + 1);
  suite_add_tcase(s, t);
  return run_suite(s);
}
