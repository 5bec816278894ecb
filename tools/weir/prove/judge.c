/* judge.c: what the runs show of a fix. A pair is a run without and a run with it, of one round.
 *
 * What decides is the time of the steps around the calls that the fix changes, since a wait that is
 * gone here may come back there; where they are not made again and again, the calls' own time. A step
 * is a range of the program's that has the calls in it, or goes from a call to the next. The
 * steps are at the pace of their quickest quarter, which others on the machine hardly change; what
 * comes in fewer of them than that shows in the whole run, which must not be longer. What a fix
 * gains cannot be more than these calls took, and what looking at them took besides. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/reroutes.h"
#include "core/trace/event.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/prove/prove.h"

enum { FEWEST_PAIRS = 3, LEAST_PAIRS = 4 };
#define BESIDE 5000 /* ns that a recorded call takes at most on top of its own time */
#define SURE   1.5 /* intervals at 95 % by which a gain is off 0 where it is looked at repeatedly */
#define SURER  2.5 /* the same of the fewest pairs */
#define NARROW 0.002 /* of the run: half an interval that no more pairs are worth */

static int by_nanoseconds(const void *left, const void *right)
{
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

/* Of two the lower. */
static uint64_t median_of_runs(uint64_t *all, unsigned count)
{
  qsort(all, count, sizeof *all, by_nanoseconds);
  return count ? all[(count - 1) / 2] : 0;
}

uint64_t prove_unfixed_ns(const proving *p)
{
  uint64_t *all = cmd_alloc((p->r.runs + 1) * sizeof *all);
  unsigned count = 0;
  for (unsigned i = 0; i < p->r.runs; i++)
    if (p->r.figures[i].duration_ns) all[count++] = p->r.figures[i].duration_ns;
  uint64_t median = median_of_runs(all, count);
  free(all);
  return median;
}

const interval *proof_gain(const proof *x)
{
  return x->steps.known || x->before.steps_ns ? &x->steps : &x->calls;
}

static const spot_figures *figures_of(const proving *p, const proof *x, unsigned way, unsigned run)
{
  size_t at = x == &p->all ? p->count : (size_t)(x - p->proofs);
  return &p->figures[((size_t)way * p->r.runs + run) * (p->count + 1) + at];
}

typedef struct pair_values {
  double *calls, *steps, *run;
  uint64_t *words; /* for medians */
  bool repeats;    /* each run has steps */
} pair_values;

/* Few calls that take long, as those that fill a cache, are in few parts of the steps. */
static uint64_t steps_with(const spot_figures *f)
{
  return f->steps_ns && f->steps_ns < f->least_ns ? f->least_ns : f->steps_ns;
}

static void take_pair(pair_values *v, const proving *p, const proof *x, unsigned i, unsigned run)
{
  const spot_figures *a = figures_of(p, x, 0, run), *b = figures_of(p, x, x->way, run);
  const run_figures *f = p->r.figures;
  v->calls[i] = (double)a->ns - (double)b->ns;
  v->steps[i] = (double)a->steps_ns - (double)steps_with(b);
  v->run[i] = (double)f[run].duration_ns - (double)f[(size_t)x->way * p->r.runs + run].duration_ns;
  const char *range = figures_of(p, x, 0, run - i)->range; /* of the first pair */
  v->repeats &= a->steps_ns && b->steps_ns && !strcmp(a->range, range) && !strcmp(b->range, range);
}

#define MEDIAN(member, of)                                                                         \
  do {                                                                                             \
    for (unsigned i = 0; i < x->pairs; i++)                                                        \
      v.words[i] = figures_of(p, x, of, from + i)->member;                                         \
    *((of) ? &x->after.member : &x->before.member) = median_of_runs(v.words, x->pairs);            \
  } while (0)

static void measure_gain(const proving *p, proof *x, unsigned from)
{
  size_t bytes = (x->pairs + 1) * sizeof(double);
  pair_values v = {cmd_alloc(bytes), cmd_alloc(bytes), cmd_alloc(bytes), cmd_alloc(bytes), true};
  for (unsigned i = 0; i < x->pairs; i++)
    take_pair(&v, p, x, i, from + i);
  x->calls = interval_of(v.calls, x->pairs);
  x->run = interval_of(v.run, x->pairs);
  x->steps = v.repeats ? interval_of(v.steps, x->pairs) : (interval){0};
  for (unsigned side = 0; side < 2; side++) {
    unsigned of = side ? x->way : 0;
    MEDIAN(calls, of);
    MEDIAN(ns, of);
    MEDIAN(applied, of);
    MEDIAN(steps_ns, of);
    MEDIAN(least_ns, of);
  }
  x->after.steps_ns = steps_with(&x->after);
  (void)memcpy(x->before.range, figures_of(p, x, 0, from)->range, sizeof x->before.range);
  if (!v.repeats) x->before.steps_ns = x->after.steps_ns = 0, x->before.range[0] = '\0';
  free(v.calls), free(v.steps), free(v.run), free(v.words);
}

static bool is_decided(const proving *p, const proof *x)
{
  const interval *g = proof_gain(x);
  double half = (g->high - g->low) / 2;
  if (x->verdict == PROVE_DIFFERS || x->verdict == PROVE_UNUSED) return true;
  if (!g->known || x->pairs < FEWEST_PAIRS) return false;
  if (x->pairs < LEAST_PAIRS) return fabs(g->mean) > SURER * half;
  return fabs(g->mean) > SURE * half || half < NARROW * (double)prove_unfixed_ns(p);
}

/* What can be gained at most of the calls. */
static double most_of(const proof *x)
{
  return (double)x->before.ns + BESIDE * (double)x->before.calls;
}

void proof_judge(proving *p, proof *x)
{
  if (!x->pairs) return;
  measure_gain(p, x, x == &p->all ? p->from : 0);
  const interval *g = proof_gain(x);
  x->verdict = p->r.of[x->way].there            ? PROVE_DIFFERS
               : !x->after.applied              ? PROVE_UNUSED
               : !g->known                      ? PROVE_NO_GAIN
               : g->low > most_of(x)            ? PROVE_ODD
               : g->high < 0 || x->run.high < 0 ? PROVE_LOSS
               : g->low > 0 && x->run.mean > 0  ? PROVE_GAIN
                                                : PROVE_NO_GAIN;
  x->decided = is_decided(p, x);
}

/* Of pools and peers a trace has remarks, of no place. */
bool proof_line_is_done(const prove_line *l)
{
  static const struct {
    unsigned actions, kinds;
  } seen[] = {
      {REROUTE_DEVICE | REROUTE_PINNED, 1U << WEIR_EV_ALLOC | 1U << WEIR_EV_FREE},
      {REROUTE_RELAXED, 1U << WEIR_EV_FREE},
      {REROUTE_STAGING | REROUTE_PEER, 1U << WEIR_EV_COPY},
      {REROUTE_EVENTS, 1U << WEIR_EV_EVENT},
      {REROUTE_STREAMS, 1U << WEIR_EV_STREAM},
  };
  for (size_t i = 0; i < sizeof seen / sizeof *seen; i++)
    if (seen[i].actions & l->action) return l->done & seen[i].kinds;
  return true;
}
