/* rows_findings.c: the saving that findings estimate, compared with what the same work takes
 * without the waste.
 *
 * A victim wastes so many rounds, and does the same work without the waste (waste_fixed.c), on the
 * software device with an H100's costs, bare: the difference is what the fix gains. The
 * finding's saving is of a run of the first under Weir. The three take turns, TURNS each. Of the
 * bare runs the least counts, since what else the machine does only adds to them; of the
 * predictions the median, as a user has any of them. Links are slowed where a copy of this
 * machine's own would hide what they take.
 *
 * Where it may, a run that is to be quiet goes by a real-time policy, before all other work of the
 * machine: next to ten builds the same program took 55 to 150 ms without it, and 54 to 56 with it.
 *
 * `savings` and `savings-busy` are how many of all wastes are within 25 %, and none may be beyond
 * twice. For the second, BUSY loops run next to the runs under Weir; what the fix gains is that of
 * the first. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/bench.h"

enum { TURNS = 5, BUSY = 3 };

typedef struct saving {
  const char *row, *what; /* "saving-hidden_wait" and what it is */
  const char *rule, *rounds, *link, *option, *devices;
} saving;

static const saving savings[] = {
#define SAVING(work, rule, rounds, link, option, devices)                                          \
  {"saving-" #work, #work, rule, #rounds, link, option, #devices},
#define UNMEASURED(work, rule)
#include "tools/bench/savings.def"
};

enum { SAVINGS = sizeof savings / sizeof *savings };

/* ns of each waste: what the fix gains, 0 while it is not known; what is predicted, quiet and busy. */
static double gained[SAVINGS], unfixed[SAVINGS], predicted[2][SAVINGS];

/* ---- the runs -------------------------------------------------------------------------------- */

/* The begin of a command: it runs before the machine's other work if it may, and unless it is to run busy. */
static const char *const *begin_of(bool busy)
{
  static const char *const first[] = {"chrt", "-r", "1"}, *const plain[] = {"nice", "-n", "0"},
                           *const attempt[] = {"chrt", "-r", "1", "true", NULL};
  static int may = -1;
  if (may < 0) may = bench_run(NULL, NULL, NULL, attempt);
  return may && !busy ? first : plain;
}

/* ns that the part takes which wastes, or does not. */
static bool time_bare(const saving *s, const char *how, double *ns)
{
  const char *const *by = begin_of(false);
  const char *const argv[] = {by[0],
                              by[1],
                              by[2],
                              "env",
                              bench_text("LD_LIBRARY_PATH=%s/lib/sim", bench_build),
                              "WEIR_SIM_CARD=h100",
                              bench_text("WEIR_SIM_DEVICES=%s", s->devices),
                              bench_text("WEIR_SIM_LINK=%s", s->link),
                              bench_text("%s/tests/findings/waster", bench_build),
                              s->what,
                              how,
                              s->rounds,
                              NULL};
  return bench_run(ns, NULL, NULL, argv);
}

/* Returns the saving that findings of the rule estimate, ns. */
static bool predict(const saving *s, bool busy, double *ns)
{
  const char *const *by = begin_of(busy);
  const char *weir = bench_text("%s/bin/weir", bench_build),
             *trace = bench_text("%s/waste.db", bench_scratch);
  const char *const record[] = {by[0],
                                by[1],
                                by[2],
                                "env",
                                bench_text("WEIR_SIM_LINK=%s", s->link),
                                weir,
                                "run",
                                "--force",
                                "--mode=observe",
                                *s->option ? s->option : "--hash=off",
                                bench_text("--sim=%s,h100", s->devices),
                                "-o",
                                trace,
                                "--",
                                bench_text("%s/tests/findings/waster", bench_build),
                                s->what,
                                "unfixed",
                                s->rounds,
                                NULL};
  const char *sum = "\"$0\" report findings --format csv --min-cost 0ns \"$1\" |"
                    " awk -F, -v id=\"$2\" '$1 == id { ns += $3 } END { printf \"%.0f\\n\", ns }'";
  const char *const report[] = {"sh", "-c", sum, weir, trace, s->rule, NULL};
  double rounds;
  return bench_run(&rounds, NULL, NULL, record) && bench_run(ns, NULL, NULL, report);
}

static bool find_gain(size_t i)
{
  double least = INFINITY, fixed = INFINITY, with, without;
  for (int turn = 0; turn < TURNS; turn++) {
    if (!time_bare(&savings[i], "unfixed", &with) || !time_bare(&savings[i], "fixed", &without))
      return false;
    least = fmin(least, with);
    fixed = fmin(fixed, without);
  }
  unfixed[i] = least;
  gained[i] = least - fixed;
  return true;
}

static bool find_prediction(size_t i, bool busy)
{
  double ns[TURNS];
  for (int turn = 0; turn < TURNS; turn++)
    if (!predict(&savings[i], busy, &ns[turn])) return false;
  predicted[busy][i] = bench_median(ns, TURNS);
  return true;
}

/* Once each. */
static bool compare(size_t i, bool busy)
{
  if (unfixed[i] == 0 && !find_gain(i)) return false;
  return predicted[busy][i] > 0 || find_prediction(i, busy);
}

/* ---- one waste ------------------------------------------------------------------------------- */

static size_t saving_of(const row *r)
{
  size_t i = 0;
  while (i < SAVINGS && strcmp(savings[i].row, r->name) != 0)
    i++;
  return i;
}

/* How far from what is gained the prediction is, in %. */
static void measure_saving(measured *m, const row *r)
{
  size_t i = saving_of(r);
  if (!compare(i, false)) {
    bench_give_up(m, "a run failed");
    return;
  }
  double quotient = predicted[0][i] / gained[i];
  m->value = 100 * fabs(quotient - 1);
  (void)snprintf(m->note, sizeof m->note,
                 "predicted %.1f ms, gained %.1f ms of %.1f: x %.2f; %s rounds, %d runs",
                 predicted[0][i] / 1e6, gained[i] / 1e6, unfixed[i] / 1e6, quotient,
                 savings[i].rounds, TURNS);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void start_loops(pid_t loops[BUSY])
{
  for (int i = 0; i < BUSY; i++) {
    loops[i] = fork();
    volatile unsigned spin = 0;
    while (!loops[i])
      spin = spin + 1;
  }
}

static void end_loops(const pid_t loops[BUSY])
{
  for (int i = 0; i < BUSY; i++)
    if (loops[i] > 0 && !kill(loops[i], SIGKILL)) (void)waitpid(loops[i], NULL, 0);
}

/* Compares all; what is off is in the note. */
static void measure_all(measured *m, bool busy)
{
  size_t within = 0, used = 0, far = 0;
  for (size_t i = 0; i < SAVINGS; i++) {
    if (!compare(i, busy)) {
      bench_give_up(m, "a run failed");
      return;
    }
    double quotient = predicted[busy][i] / gained[i];
    bool is_far = !(quotient <= 2);
    within += fabs(quotient - 1) <= 0.25;
    far += is_far;
    if (fabs(quotient - 1) <= 0.25 || used >= sizeof m->note - 32) continue;
    used += (size_t)snprintf(m->note + used, sizeof m->note - used, "%s%s %.2f", used ? ", " : "",
                             savings[i].what, quotient);
  }
  m->value = 100.0 * (double)within / SAVINGS;
  if (used < sizeof m->note)
    (void)snprintf(m->note + used, sizeof m->note - used, "%s%zu of %d; over 2: %zu",
                   used ? "; " : "", within, SAVINGS, far);
}

static void measure_quiet(measured *m, const row *r)
{
  (void)r;
  measure_all(m, false);
}

static void measure_busy(measured *m, const row *r)
{
  (void)r;
  pid_t loops[BUSY];
  bool failed = false;
  for (size_t i = 0; i < SAVINGS && !failed; i++)
    failed = unfixed[i] == 0 && !find_gain(i);
  start_loops(loops);
  if (failed)
    bench_give_up(m, "a run failed");
  else
    measure_all(m, true);
  end_loops(loops);
}

const row rows_findings[] = {
#define SAVING(work, rule, ...)                                                                    \
  AT_MOST("saving-" #work, "saving of " #work, "% off", 25, measure_saving, NULL, NULL),
#define UNMEASURED(work, rule)
#include "tools/bench/savings.def"
    AT_LEAST("savings", "savings within 25 %", "%", 80, measure_quiet, NULL, NULL),
    AT_LEAST("savings-busy", "the same next to three loops", "%", 80, measure_busy, NULL, NULL),
    {0},
};
