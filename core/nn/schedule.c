/* schedule.c: learning-rate schedules: see core/weir/schedule.h.
 *
 * A kind is one function from what a schedule knows to a group's next lr. Most know nothing but the
 * epoch and the lr as it is. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/require.h"
#include "core/nn/optim.h"
#include "core/weir/schedule.h"

static const double pi = 3.14159265358979323846;

/* What changes from step to step. */
typedef struct schedule_state {
  double epoch;              /* last_epoch */
  double t_cur, t_i;         /* COSINE_WARM_RESTARTS */
  double best, bad, cooling; /* PLATEAU */
} schedule_state;

struct weir_schedule {
  weir_schedule_kind kind;
  weir_optimizer *optimizer; /* borrowed */
  weir_schedule_options o;
  int64_t *milestones; /* owned */
  int groups;
  double *first; /* owned: each group's initial_lr */
  schedule_state now;
};

static const struct state_field {
  const char *name;
  size_t offset;
} state_fields[] = {
    {"last_epoch", offsetof(schedule_state, epoch)},
    {"T_cur", offsetof(schedule_state, t_cur)},
    {"T_i", offsetof(schedule_state, t_i)},
    {"best", offsetof(schedule_state, best)},
    {"num_bad_epochs", offsetof(schedule_state, bad)},
    {"cooldown_counter", offsetof(schedule_state, cooling)},
};
enum { STATE_FIELDS = sizeof state_fields / sizeof *state_fields };

weir_schedule_options weir_schedule_defaults(weir_schedule_kind kind)
{
  weir_schedule_options o = {.gamma = 0.1,
                             .factor = kind == WEIR_PLATEAU_LR ? 0.1 : 1.0 / 3,
                             .total_iters = 5,
                             .start_factor = 1.0 / 3,
                             .end_factor = 1,
                             .power = 1,
                             .t_mult = 1,
                             .pct_start = 0.3,
                             .div_factor = 25,
                             .final_div_factor = 1e4,
                             .base_momentum = 0.85,
                             .max_momentum = 0.95,
                             .patience = 10,
                             .threshold = 1e-4,
                             .eps = 1e-8};
  return o;
}

/* ---- a group's next lr ----------------------------------------------------------------------- */

/* lr: as it is; first: as it was before the schedule. */
typedef double (*next_lr)(const weir_schedule *s, double lr, double first);

static double step_lr(const weir_schedule *s, double lr, double first)
{
  (void)first;
  int64_t epoch = (int64_t)s->now.epoch;
  return epoch == 0 || epoch % s->o.step_size ? lr : lr * s->o.gamma;
}

static double multi_step_lr(const weir_schedule *s, double lr, double first)
{
  (void)first;
  for (int i = 0; i < s->o.milestone_count; i++)
    if (s->milestones[i] == (int64_t)s->now.epoch) lr *= s->o.gamma;
  return lr;
}

static double constant_lr(const weir_schedule *s, double lr, double first)
{
  (void)first;
  if (s->now.epoch == 0) return lr * s->o.factor;
  return s->now.epoch == (double)s->o.total_iters ? lr * (1 / s->o.factor) : lr;
}

static double linear_lr(const weir_schedule *s, double lr, double first)
{
  (void)first;
  double start = s->o.start_factor, rise = s->o.end_factor - start, all = (double)s->o.total_iters;
  if (s->now.epoch == 0) return lr * start;
  if (s->now.epoch > all) return lr;
  return lr * (1 + rise / (all * start + (s->now.epoch - 1) * rise));
}

static double exponential_lr(const weir_schedule *s, double lr, double first)
{
  (void)first;
  return s->now.epoch == 0 ? lr : lr * s->o.gamma;
}

static double polynomial_lr(const weir_schedule *s, double lr, double first)
{
  (void)first;
  double all = (double)s->o.total_iters, epoch = s->now.epoch;
  if (epoch == 0 || epoch > all) return lr;
  return lr * pow((1 - epoch / all) / (1 - (epoch - 1) / all), s->o.power);
}

static double cosine_lr(const weir_schedule *s, double lr, double first)
{
  int64_t epoch = (int64_t)s->now.epoch, half = s->o.t_max;
  double least = s->o.eta_min, t = (double)half;
  if (!epoch) return lr;
  if ((epoch - 1 - half) % (2 * half) == 0) return lr + (first - least) * (1 - cos(pi / t)) / 2;
  return (1 + cos(pi * (double)epoch / t)) / (1 + cos(pi * (double)(epoch - 1) / t)) *
             (lr - least) +
         least;
}

static double warm_restarts_lr(const weir_schedule *s, double lr, double first)
{
  (void)lr;
  double least = s->o.eta_min;
  return least + (first - least) * (1 + cos(pi * s->now.t_cur / s->now.t_i)) / 2;
}

static double lambda_lr(const weir_schedule *s, double lr, double first)
{
  (void)lr;
  return first * s->o.lambda((int64_t)s->now.epoch, s->o.context);
}

/* Of ONE_CYCLE: where it is: from 0 to 1 through phase *phase. */
static double cycle_place(const weir_schedule *s, int *phase)
{
  double all = (double)s->o.total_steps, up = s->o.pct_start * all;
  double end[3] = {up - 1, s->o.three_phase ? 2 * up - 2 : all - 1, all - 1}, start = 0;
  int last = s->o.three_phase ? 2 : 1;
  for (*phase = 0; *phase < last && s->now.epoch > end[*phase]; (*phase)++)
    start = end[*phase];
  return (s->now.epoch - start) / (end[*phase] - start);
}

static double anneal(const weir_schedule *s, double from, double to, double part)
{
  if (s->o.linear) return (to - from) * part + from;
  return to + (from - to) / 2 * (cos(pi * part) + 1);
}

static double one_cycle_lr(const weir_schedule *s, double lr, double first)
{
  (void)lr, (void)first;
  int phase;
  double part = cycle_place(s, &phase), low = s->o.max_lr / s->o.div_factor;
  double least = low / s->o.final_div_factor;
  double at[4] = {low, s->o.max_lr, s->o.three_phase ? low : least, least};
  return anneal(s, at[phase], at[phase + 1], part);
}

static double one_cycle_momentum(const weir_schedule *s)
{
  int phase;
  double part = cycle_place(s, &phase), most = s->o.max_momentum;
  const double at[4] = {most, s->o.base_momentum, most, most};
  return anneal(s, at[phase], at[phase + 1], part);
}

static double plateau_lr(const weir_schedule *s, double lr, double first)
{
  (void)first;
  double next = lr * s->o.factor < s->o.min_lr ? s->o.min_lr : lr * s->o.factor;
  return lr - next > s->o.eps ? next : lr;
}

static const next_lr kinds[] = {
    [WEIR_STEP_LR] = step_lr,
    [WEIR_MULTI_STEP_LR] = multi_step_lr,
    [WEIR_CONSTANT_LR] = constant_lr,
    [WEIR_LINEAR_LR] = linear_lr,
    [WEIR_EXPONENTIAL_LR] = exponential_lr,
    [WEIR_POLYNOMIAL_LR] = polynomial_lr,
    [WEIR_COSINE_LR] = cosine_lr,
    [WEIR_COSINE_WARM_RESTARTS_LR] = warm_restarts_lr,
    [WEIR_ONE_CYCLE_LR] = one_cycle_lr,
    [WEIR_LAMBDA_LR] = lambda_lr,
    [WEIR_PLATEAU_LR] = plateau_lr,
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- making one ------------------------------------------------------------------------------ */

static weir_status check_positive(const char *name, int64_t value)
{
  if (value >= 1) return WEIR_OK;
  return fail_invalid("Expected positive integer %s, but got %lld", name, (long long)value);
}

static weir_status check_one_cycle(const weir_schedule_options *o)
{
  TRY(check_positive("total_steps", o->total_steps));
  if (!(o->pct_start >= 0 && o->pct_start <= 1))
    return fail_invalid("Expected float between 0 and 1 pct_start, but got %g", o->pct_start);
  return WEIR_OK;
}

static weir_status check_schedule(weir_schedule_kind kind, const weir_schedule_options *o)
{
  switch (kind) {
  case WEIR_STEP_LR:
    return check_positive("step_size", o->step_size);
  case WEIR_COSINE_LR:
    return check_positive("T_max", o->t_max);
  case WEIR_COSINE_WARM_RESTARTS_LR: {
    weir_status st = check_positive("T_0", o->t_0);
    return st ? st : check_positive("T_mult", o->t_mult);
  }
  case WEIR_CONSTANT_LR:
    if (o->factor > 0 && o->factor <= 1) return WEIR_OK;
    return fail_invalid("Constant multiplicative factor expected to be between 0 and 1.");
  case WEIR_LINEAR_LR:
    if (!(o->start_factor > 0 && o->start_factor <= 1))
      return fail_invalid(
          "Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
    if (o->end_factor >= 0 && o->end_factor <= 1) return WEIR_OK;
    return fail_invalid("Ending multiplicative factor expected to be between 0 and 1.");
  case WEIR_ONE_CYCLE_LR:
    return check_one_cycle(o);
  case WEIR_LAMBDA_LR:
    if (o->lambda) return WEIR_OK;
    return fail_invalid("weir_schedule_create: lambda is NULL");
  case WEIR_PLATEAU_LR:
    if (o->factor < 1) return WEIR_OK;
    return fail_invalid("Factor should be < 1.0.");
  default:
    return WEIR_OK;
  }
}

/* Every group's lr for the epoch that it is now. */
static weir_status set_rates(weir_schedule *s)
{
  bool cycles = s->kind == WEIR_ONE_CYCLE_LR && !s->o.keep_momentum;
  for (int g = 0; g < s->groups; g++) {
    weir_optim_options o;
    TRY(weir_optimizer_get_options(&o, s->optimizer, g));
    optimizer_set_rate(s->optimizer, g, kinds[s->kind](s, o.lr, s->first[g]),
                       cycles ? one_cycle_momentum(s) : NAN);
  }
  return WEIR_OK;
}

static weir_status fill_schedule(weir_schedule *s, const weir_schedule_options *o)
{
  size_t stones = o->milestone_count > 0 ? (size_t)o->milestone_count : 0;
  s->o = *o;
  s->o.milestone_count = (int)stones;
  s->o.milestones = NULL;
  s->groups = weir_optimizer_groups(s->optimizer);
  s->first = calloc((size_t)s->groups + 1, sizeof *s->first);
  s->milestones = calloc(stones + 1, sizeof *s->milestones);
  if (!s->first || !s->milestones) return fail_memory("a schedule of %d groups", s->groups);
  if (stones) memcpy(s->milestones, o->milestones, stones * sizeof *s->milestones);
  s->now = (schedule_state){.t_i = (double)o->t_0, .best = o->largest ? -INFINITY : INFINITY};
  double own = s->kind == WEIR_ONE_CYCLE_LR ? o->max_lr / o->div_factor : NAN;
  for (int g = 0; g < s->groups; g++)
    s->first[g] = optimizer_initial_rate(s->optimizer, g, own);
  return s->kind == WEIR_PLATEAU_LR ? WEIR_OK : set_rates(s);
}

weir_status weir_schedule_create(weir_schedule **out, weir_optimizer *optimizer,
                                 weir_schedule_kind kind, const weir_schedule_options *options)
{
  WEIR_REQUIRE_OUT(out, optimizer);
  if ((unsigned)kind >= KINDS) return fail_invalid("%d is no kind of schedule", (int)kind);
  weir_schedule_options o = options ? *options : weir_schedule_defaults(kind);
  if (o.milestone_count > 0) WEIR_REQUIRE(o.milestones);
  TRY(check_schedule(kind, &o));
  weir_schedule *s = calloc(1, sizeof *s);
  if (!s) return fail_memory("a schedule");
  s->kind = kind;
  s->optimizer = optimizer;
  weir_status st = fill_schedule(s, &o);
  if (st)
    weir_schedule_release(s);
  else
    *out = s;
  return st;
}

void weir_schedule_release(weir_schedule *s)
{
  if (!s) return;
  free(s->milestones);
  free(s->first);
  free(s);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void turn_warm_restart(weir_schedule *s)
{
  s->now.t_cur++;
  if (s->now.t_cur < s->now.t_i) return;
  s->now.t_cur -= s->now.t_i;
  s->now.t_i *= (double)s->o.t_mult;
}

weir_status weir_schedule_step(weir_schedule *s)
{
  WEIR_REQUIRE(s);
  if (s->kind == WEIR_PLATEAU_LR)
    return fail_invalid("a plateau is found by a measure: weir_schedule_step_measure()");
  schedule_state before = s->now;
  s->now.epoch++;
  if (s->kind == WEIR_ONE_CYCLE_LR && s->now.epoch > (double)s->o.total_steps) {
    s->now = before;
    return fail_invalid("Tried to step %lld times. The specified number of total steps is %lld",
                        (long long)before.epoch + 1, (long long)s->o.total_steps);
  }
  if (s->kind == WEIR_COSINE_WARM_RESTARTS_LR) turn_warm_restart(s);
  weir_status st = set_rates(s);
  if (st) s->now = before;
  return st;
}

static bool is_better(const weir_schedule *s, double measure)
{
  double by = s->o.threshold, best = s->now.best;
  if (s->o.largest) return measure > (s->o.absolute ? best + by : best * (1 + by));
  return measure < (s->o.absolute ? best - by : best * (1 - by));
}

weir_status weir_schedule_step_measure(weir_schedule *s, double measure)
{
  WEIR_REQUIRE(s);
  if (s->kind != WEIR_PLATEAU_LR)
    return fail_invalid("only a plateau is found by a measure: weir_schedule_step()");
  schedule_state *now = &s->now;
  now->epoch++;
  if (is_better(s, measure)) {
    now->best = measure;
    now->bad = 0;
  } else {
    now->bad++;
  }
  if (now->cooling > 0) {
    now->cooling--;
    now->bad = 0;
  }
  if (now->bad <= (double)s->o.patience) return WEIR_OK;
  now->cooling = (double)s->o.cooldown;
  now->bad = 0;
  return set_rates(s);
}

int64_t weir_schedule_epoch(const weir_schedule *s)
{
  return s ? (int64_t)s->now.epoch : 0;
}

/* ---- state ----------------------------------------------------------------------------------- */

weir_status weir_schedule_state(weir_tensors **out, const weir_schedule *s)
{
  WEIR_REQUIRE_OUT(out, s);
  char name[32];
  weir_status st = weir_tensors_create(out);
  for (int f = 0; f < STATE_FIELDS && !st; f++)
    st = optim_put_number(*out, state_fields[f].name,
                          *(const double *)((const char *)&s->now + state_fields[f].offset),
                          WEIR_FLOAT64);
  for (int g = 0; g < s->groups && !st; g++) {
    (void)snprintf(name, sizeof name, "base_lrs.%d", g);
    st = optim_put_number(*out, name, s->first[g], WEIR_FLOAT64);
  }
  if (st) weir_tensors_drop(out);
  return st;
}

static weir_status get_state(double *out, const weir_tensors *set, const char *name)
{
  weir_scalar value;
  const weir_tensor *t = weir_tensors_get(set, name);
  if (!t) return fail_invalid("the state of a schedule has no %s", name);
  weir_status st = weir_item(&value, t);
  if (!st) *out = value.dtype == WEIR_FLOAT64 ? value.f : (double)value.i;
  return st;
}

weir_status weir_schedule_load_state(weir_schedule *s, const weir_tensors *state)
{
  WEIR_REQUIRE(s, state);
  char name[32];
  schedule_state now;
  double *first = calloc((size_t)s->groups + 1, sizeof *first);
  weir_status st = first ? WEIR_OK : fail_memory("%d groups", s->groups);
  for (int f = 0; f < STATE_FIELDS && !st; f++)
    st = get_state((double *)((char *)&now + state_fields[f].offset), state, state_fields[f].name);
  for (int g = 0; g < s->groups && !st; g++) {
    (void)snprintf(name, sizeof name, "base_lrs.%d", g);
    st = get_state(&first[g], state, name);
  }
  if (!st) {
    s->now = now;
    memcpy(s->first, first, (size_t)s->groups * sizeof *first);
  }
  free(first);
  return st;
}
