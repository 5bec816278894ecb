/* schedule.h: learning rates that follow the epochs. Included by weir.h.
 *
 * As torch.optim.lr_scheduler: a schedule changes the lr of every group of an optimizer, once as it
 * is created (for epoch 0) and then with each step. Formulas are torch's of 2.15, in their
 * recursive form: several schedules of one optimizer multiply. Options are torch's arguments. */
#ifndef WEIR_SCHEDULE_H
#define WEIR_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/optim.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_schedule_kind {
  WEIR_STEP_LR,       /* by gamma every step_size epochs */
  WEIR_MULTI_STEP_LR, /* by gamma at each of the milestones */
  WEIR_CONSTANT_LR,   /* by factor until total_iters */
  WEIR_LINEAR_LR,     /* by start_factor, then evenly to end_factor at total_iters */
  WEIR_EXPONENTIAL_LR,
  WEIR_POLYNOMIAL_LR,
  WEIR_COSINE_LR,               /* to eta_min in t_max epochs, as half a cosine, and back */
  WEIR_COSINE_WARM_RESTARTS_LR, /* the same, from the top each time; t_0, then t_mult as long */
  WEIR_ONE_CYCLE_LR,            /* up to max_lr, then down to almost nothing; steps are batches */
  WEIR_LAMBDA_LR,               /* the first lr by lambda(epoch) */
  WEIR_PLATEAU_LR               /* by factor when a measure has not improved for long */
} weir_schedule_kind;

typedef double (*weir_lr_lambda)(int64_t epoch, void *context);

/* Those that a kind has not are not looked at. */
typedef struct weir_schedule_options {
  int64_t step_size;          /* STEP */
  double gamma;               /* STEP, MULTI_STEP 0.1; EXPONENTIAL */
  const int64_t *milestones;  /* MULTI_STEP: epochs, copied */
  int milestone_count;        /* of them */
  double factor;              /* CONSTANT 1/3; PLATEAU 0.1 */
  int64_t total_iters;        /* CONSTANT, LINEAR, POLYNOMIAL: 5 */
  double start_factor;        /* LINEAR: 1/3 */
  double end_factor;          /* LINEAR: 1 */
  double power;               /* POLYNOMIAL: 1 */
  int64_t t_max;              /* COSINE */
  int64_t t_0, t_mult;        /* COSINE_WARM_RESTARTS; t_mult 1 */
  double eta_min;             /* COSINE, COSINE_WARM_RESTARTS */
  double max_lr;              /* ONE_CYCLE, of every group */
  int64_t total_steps;        /* ONE_CYCLE */
  double pct_start;           /* ONE_CYCLE: 0.3, the part that goes up */
  double div_factor;          /* ONE_CYCLE: 25, max_lr through the first lr */
  double final_div_factor;    /* ONE_CYCLE: 1e4, the first lr through the last */
  bool linear, three_phase;   /* ONE_CYCLE: not along a cosine; down as far as up, then the rest */
  bool keep_momentum;         /* ONE_CYCLE: momentum, or beta1, does not go the other way */
  double base_momentum;       /* ONE_CYCLE: 0.85 */
  double max_momentum;        /* ONE_CYCLE: 0.95 */
  weir_lr_lambda lambda;      /* LAMBDA */
  void *context;              /* lambda's; borrowed */
  bool largest;               /* PLATEAU: more is better */
  bool absolute;              /* PLATEAU: threshold is a difference, not a ratio */
  int64_t patience, cooldown; /* PLATEAU: 10, 0 epochs */
  double threshold;           /* PLATEAU: 1e-4 */
  double min_lr, eps;         /* PLATEAU: 0, 1e-8: changes that are less are not made */
} weir_schedule_options;

WEIR_PUBLIC weir_schedule_options weir_schedule_defaults(weir_schedule_kind kind);

typedef struct weir_schedule weir_schedule;

/* *out is new. The optimizer is borrowed, and outlives it; groups that are added to it later are
 * none of the schedule's. options NULL: the defaults. Errors: EINVAL: an option that has no value
 * for its kind (step_size, t_max, total_steps, ... below 1); ENOMEM. */
WEIR_PUBLIC weir_status weir_schedule_create(weir_schedule **out, weir_optimizer *optimizer,
                                             weir_schedule_kind kind,
                                             const weir_schedule_options *options);
/* Steals it; NULL is nothing. */
WEIR_PUBLIC void weir_schedule_release(weir_schedule *s);
/* WEIR_SCHEDULE s = NULL; is released at the end of its block. */
typedef weir_schedule *weir_schedule_owned;
static inline void weir_schedule_drop(weir_schedule **s)
{
  weir_schedule_release(*s);
  *s = NULL;
}
#define WEIR_SCHEDULE __attribute__((cleanup(weir_schedule_drop))) weir_schedule_owned

/* The next epoch. Errors: EINVAL: of PLATEAU, which takes a measure; "Tried to step 11 times. The
 * specified number of total steps is 10". */
WEIR_PUBLIC weir_status weir_schedule_step(weir_schedule *s);
/* The next epoch, with what is to be the least (or largest): of PLATEAU alone. */
WEIR_PUBLIC weir_status weir_schedule_step_measure(weir_schedule *s, double measure);
/* Steps made so far. */
WEIR_PUBLIC int64_t weir_schedule_epoch(const weir_schedule *s);

/* What it knows, as numbers by name; what was saved goes on in another one of the same kind and
 * options. *out is new. Errors of load: EINVAL (a name that is not there), and nothing has
 * changed. The optimizer's own state has the learning rates. */
WEIR_PUBLIC weir_status weir_schedule_state(weir_tensors **out, const weir_schedule *s);
WEIR_PUBLIC weir_status weir_schedule_load_state(weir_schedule *s, const weir_tensors *state);

#ifdef __cplusplus
}
#endif

#endif
