/* optim.h: parameters that follow their gradients. Included by weir.h.
 *
 * As torch.optim: an optimizer has groups of parameters, each with options of its own, and makes a
 * step with the gradients that weir_backward() has left. Defaults, formulas and the order of their
 * operations are torch's of 2.15. Nothing here is recorded.
 *
 *   weir_optim_options o = weir_optim_defaults(WEIR_ADAMW);
 *   o.lr = 3e-4;
 *   st = weir_optimizer_create(&optimizer, WEIR_ADAMW, parameters, count, &o);
 *   ...
 *   weir_optimizer_zero_grad(optimizer);
 *   st = weir_backward(loss, NULL, false);
 *   if (!st) st = weir_optimizer_step(optimizer);
 */
#ifndef WEIR_OPTIM_H
#define WEIR_OPTIM_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/io.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_optim { WEIR_SGD, WEIR_ADAM, WEIR_ADAMW, WEIR_RMSPROP, WEIR_ADAGRAD } weir_optim;

/* What torch's arguments of these names are; those that a kind has not are not looked at. */
typedef struct weir_optim_options {
  double lr;           /* 1e-3; RMSPROP, ADAGRAD 1e-2 */
  double weight_decay; /* 0; ADAMW 1e-2, of the parameter itself, not through its gradient */
  bool maximize;       /* follows gradients upwards */
  double momentum;     /* SGD, RMSPROP */
  double dampening;    /* SGD: of momentum */
  bool nesterov;       /* SGD; needs a momentum, and no dampening */
  double beta1, beta2; /* ADAM, ADAMW: 0.9, 0.999 */
  double eps;          /* 1e-8; ADAGRAD 1e-10 */
  bool amsgrad;        /* ADAM, ADAMW: the largest of the second moments so far */
  double alpha;        /* RMSPROP: 0.99, how slowly squares are forgotten */
  bool centered;       /* RMSPROP: by the variance of gradients, not their squares */
  double lr_decay;     /* ADAGRAD */
  double initial_accumulator_value; /* ADAGRAD: of the sums of squares */
} weir_optim_options;

WEIR_PUBLIC weir_optim_options weir_optim_defaults(weir_optim kind);

/* For one thread at a time. */
typedef struct weir_optimizer weir_optimizer;

/* *out is new, with one group of `count` parameters (borrowed: counted once more). options NULL:
 * the defaults. Errors: EINVAL: torch's sentences, "optimizer got an empty parameter list",
 * "Invalid learning rate: -1.0", "Nesterov momentum requires a momentum and zero dampening", "can't
 * optimize a non-leaf Tensor", "some parameters appear in more than one parameter group";
 * ENOMEM. */
WEIR_PUBLIC weir_status weir_optimizer_create(weir_optimizer **out, weir_optim kind,
                                              weir_tensor *const *parameters, int count,
                                              const weir_optim_options *options);
/* Another group, with options of its own (NULL: the defaults). */
WEIR_PUBLIC weir_status weir_optimizer_add_group(weir_optimizer *o, weir_tensor *const *parameters,
                                                 int count, const weir_optim_options *options);
/* Steals it; NULL is nothing. */
WEIR_PUBLIC void weir_optimizer_release(weir_optimizer *o);
/* WEIR_OPTIMIZER o = NULL; is released at the end of its block. */
typedef weir_optimizer *weir_optimizer_owned;
static inline void weir_optimizer_drop(weir_optimizer **o)
{
  weir_optimizer_release(*o);
  *o = NULL;
}
#define WEIR_OPTIMIZER __attribute__((cleanup(weir_optimizer_drop))) weir_optimizer_owned

/* Changes every parameter that has a gradient. All that can fail for want of memory comes first:
 * after ENOMEM or EOOM no parameter has changed. */
WEIR_PUBLIC weir_status weir_optimizer_step(weir_optimizer *o);
/* Takes the gradients away, as torch's set_to_none=True. */
WEIR_PUBLIC void weir_optimizer_zero_grad(weir_optimizer *o);

WEIR_PUBLIC int weir_optimizer_groups(const weir_optimizer *o);
/* A group's options; what a learning-rate schedule changes. Errors of set: EINVAL, as of create. */
WEIR_PUBLIC weir_status weir_optimizer_get_options(weir_optim_options *out, const weir_optimizer *o,
                                                   int group);
WEIR_PUBLIC weir_status weir_optimizer_set_options(weir_optimizer *o, int group,
                                                   const weir_optim_options *options);

/* What an optimizer knows in addition to parameters, by torch's names: "state.0.exp_avg", with
 * parameters counted through all groups, "state.0.step", "param_groups.0.lr". *out is new; its
 * tensors are the optimizer's own, which the next step changes. Errors: ENOMEM. */
WEIR_PUBLIC weir_status weir_optimizer_state(weir_tensors **out, const weir_optimizer *o);
/* The reverse: elements are copied (any dtype, any device). A parameter that has none in `state`
 * has none then. Errors: EINVAL (a shape that is not the parameter's, a name nothing here has); the
 * optimizer is as it was. */
WEIR_PUBLIC weir_status weir_optimizer_load_state(weir_optimizer *o, const weir_tensors *state);

/* ---- gradients --------------------------------------------------------------------------------
 * Of parameters that have one; in place, nothing waits for a device. */

/* Scales all by one number so that their norm, taken together, is at most max_norm. norm_type: of
 * weir_norm(), 2 as usual, INFINITY: the largest. *total (may be NULL) is new: the norm before, 0
 * where there are no gradients; of the first one's device and dtype. */
WEIR_PUBLIC weir_status weir_clip_grad_norm_(weir_tensor **total, weir_tensor *const *parameters,
                                             int count, double max_norm, double norm_type);
/* Each element to [-clip_value, clip_value]. */
WEIR_PUBLIC weir_status weir_clip_grad_value_(weir_tensor *const *parameters, int count,
                                              double clip_value);

#ifdef __cplusplus
}
#endif

#endif
