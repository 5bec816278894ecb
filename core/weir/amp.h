/* amp.h: mixed precision: operations in float16 or bfloat16 where that is safe, losses scaled so
 * that small gradients stay. Included by weir.h.
 *
 * As torch.amp. While autocast is on for a kind of device, in a thread, operations choose the dtype
 * of their operands there: products and convolutions the scope's dtype, what needs range or
 * precision float32, what takes several tensors the widest of them; which is which are torch's
 * lists of 2.15, one for each kind of device (core/tensor/autocast.h). float64 and what is no
 * floating point stays. Everything else promotes as ever. Casts are recorded, so that gradients
 * arrive in the dtype of the parameters. What is in place is never cast.
 *
 *   WEIR_AUTOCAST(st, WEIR_DEVICE_CUDA, WEIR_FLOAT16) {
 *     st = forward(&loss, model, x);
 *   }
 *   if (!st) st = weir_grad_scaler_scale(&scaled, scaler, loss);
 *   if (!st) st = weir_backward(scaled, NULL, false);
 *   if (!st) st = weir_grad_scaler_step(scaler, optimizer);
 *   if (!st) st = weir_grad_scaler_update(scaler); */
#ifndef WEIR_AMP_H
#define WEIR_AMP_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/dtype.h"
#include "core/weir/optim.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- autocast -------------------------------------------------------------------------------- */

/* Zero-initialised: torch's defaults. */
typedef struct weir_autocast_options {
  weir_dtype
      dtype;     /* WEIR_DTYPE_NONE: the thread's: at first bfloat16 on the cpu, float16 on CUDA */
  bool disabled; /* torch's enabled=False: operations are as without autocast */
  bool uncached; /* torch's cache_enabled=False */
} weir_autocast_options;

/* What was before a scope was entered. The program's memory, for the thread that entered it. */
typedef struct weir_autocast {
  bool enabled[2];     /* cpu, CUDA */
  weir_dtype dtype[2]; /* the same */
  bool uncached;
  bool open; /* entered, and not yet left */
  bool todo; /* of WEIR_AUTOCAST: the block has not run */
} weir_autocast;

/* Autocast for one kind of device in the calling thread, until weir_autocast_exit(); scopes nest.
 * options may be NULL. While scopes are open, parameters (leaves of float32 that require a
 * gradient) are cast once: the results are kept until the thread's outermost scope is left, and
 * made anew where the parameter has changed. Threads that weir_parallel_apply() starts do as the
 * caller's. Derivatives are calculated as if it was off. Errors: EINVAL: "In CPU autocast, but the
 * target dtype is not supported. CPU Autocast only supports dtype of weir.bfloat16, weir.float16
 * currently.", what is no kind of device; *out then is what weir_autocast_exit() takes for
 * nothing. */
WEIR_PUBLIC weir_status weir_autocast_enter(weir_autocast *out, weir_device_type device_type,
                                            const weir_autocast_options *options);
/* The reverse, the latest first. */
WEIR_PUBLIC void weir_autocast_exit(weir_autocast *scope);
/* Of the calling thread. */
WEIR_PUBLIC bool weir_is_autocast_enabled(weir_device_type device_type);
WEIR_PUBLIC weir_dtype weir_get_autocast_dtype(weir_device_type device_type);
/* Gives back what casts of parameters are kept. */
WEIR_PUBLIC void weir_clear_autocast_cache(void);

#define WEIR_AUTOCAST_LOOP_(name, st, device_type, kind)                                           \
  for (weir_autocast name __attribute__((cleanup(weir_autocast_exit))) = {.todo = true};           \
       name.todo && !((st) = weir_autocast_enter(&name, (device_type),                             \
                                                 &(weir_autocast_options){.dtype = (kind)}));      \
       name.todo = false)
#define WEIR_AUTOCAST_JOIN_(a, b) a##b
#define WEIR_AUTOCAST_NAME_(line) WEIR_AUTOCAST_JOIN_(weir_autocast_at_, line)

/* WEIR_AUTOCAST(st, WEIR_DEVICE_CUDA, WEIR_FLOAT16) { ... }: the block under autocast, however it
 * is left (its end, break, return, goto); not run where st, what entering it returned, is an
 * error. */
#define WEIR_AUTOCAST(st, device_type, dtype)                                                      \
  WEIR_AUTOCAST_LOOP_(WEIR_AUTOCAST_NAME_(__LINE__), st, device_type, dtype)

/* ---- gradients ------------------------------------------------------------------------------- */

/* torch.amp.GradScaler: multiplies losses so that gradients of float16 do not vanish, divides
 * gradients before a step, leaves out steps whose gradients are infinite or NaN, and follows with
 * the scale: down at once, up after growth_interval steps without. For one thread at a time. */
typedef struct weir_grad_scaler weir_grad_scaler;

/* torch's arguments; also what state_dict() has. */
typedef struct weir_grad_scaler_options {
  double init_scale;       /* 65536 */
  double growth_factor;    /* 2 */
  double backoff_factor;   /* 0.5 */
  int64_t growth_interval; /* 2000 */
  bool disabled;           /* scale, unscale_ and update do nothing, step is the optimizer's */
} weir_grad_scaler_options;

WEIR_PUBLIC weir_grad_scaler_options weir_grad_scaler_defaults(void);

/* *out is new; options NULL: the defaults. Errors: EINVAL: "The growth factor must be > 1.0.", "The
 * backoff factor must be < 1.0."; ENOMEM. */
WEIR_PUBLIC weir_status weir_grad_scaler_new(weir_grad_scaler **out,
                                             const weir_grad_scaler_options *options);
/* Steals it; NULL is nothing. */
WEIR_PUBLIC void weir_grad_scaler_release(weir_grad_scaler *s);
/* WEIR_GRAD_SCALER s = NULL; is released at the end of its block. */
typedef weir_grad_scaler *weir_grad_scaler_owned;
static inline void weir_grad_scaler_drop(weir_grad_scaler **s)
{
  weir_grad_scaler_release(*s);
  *s = NULL;
}
#define WEIR_GRAD_SCALER __attribute__((cleanup(weir_grad_scaler_drop))) weir_grad_scaler_owned

/* t times the scale, as torch multiplies by a float32 tensor without dimensions; recorded. */
WEIR_PUBLIC weir_status weir_grad_scaler_scale(weir_tensor **out, weir_grad_scaler *s,
                                               const weir_tensor *t);
/* Divides the gradients of an optimizer's parameters by the scale, in place, and notes whether one
 * is infinite or NaN, on its device: nothing waits. step() does it where it was not done: it is for
 * who clips gradients between. Errors: EINVAL: "Attempting to unscale FP16 gradients.", "unscale_()
 * has already been called on this optimizer since the last update().", "unscale_() is being called
 * after step()."; "Attempted unscale_ but _scale is None.  This may indicate your script did not
 * use scaler.scale(loss or outputs) earlier in the iteration."; ENOMEM, EOOM. */
WEIR_PUBLIC weir_status weir_grad_scaler_unscale_(weir_grad_scaler *s, weir_optimizer *o);
/* The optimizer's step, unless a gradient is infinite or NaN: the host reads one number a device.
 * Errors: as unscale_; "step() has already been called since the last update()."; "No inf checks
 * were recorded for this optimizer."; those of weir_optimizer_step(). */
WEIR_PUBLIC weir_status weir_grad_scaler_step(weir_grad_scaler *s, weir_optimizer *o);
/* Ends the iteration: the next scale. Errors: EINVAL: "No inf checks were recorded prior to
 * update.", "Attempted update but _scale is None.  ...". */
WEIR_PUBLIC weir_status weir_grad_scaler_update(weir_grad_scaler *s);
/* The same, with a new scale instead. */
WEIR_PUBLIC weir_status weir_grad_scaler_update_to(weir_grad_scaler *s, double new_scale);

/* torch's get_scale(): 1 where it is disabled. */
WEIR_PUBLIC double weir_grad_scaler_get_scale(const weir_grad_scaler *s);
/* What state_dict() has: options with the scale as it is now in init_scale, and how many steps in a
 * row were without infinite gradients. Either may be NULL. */
WEIR_PUBLIC void weir_grad_scaler_state(weir_grad_scaler_options *out, int64_t *growth_tracker,
                                        const weir_grad_scaler *s);
/* The reverse; `disabled` is not looked at. As torch, it refuses no value. */
WEIR_PUBLIC weir_status weir_grad_scaler_load_state(weir_grad_scaler *s,
                                                    const weir_grad_scaler_options *options,
                                                    int64_t growth_tracker);

#ifdef __cplusplus
}
#endif

#endif
