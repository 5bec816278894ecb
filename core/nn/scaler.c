/* scaler.c: losses scaled for gradients of float16: see core/weir/amp.h.
 *
 * The scale is a number of the host's, rounded to float32 as torch's tensor is. What is on devices
 * is a flag for each that an optimizer has gradients on: 0, or NaN once a gradient was infinite or
 * NaN. It comes of the largest magnitudes, which such an element makes infinite or NaN: times 0
 * they are 0 or NaN. step() reads the flags; update() those alone that no step has read, so that an
 * iteration has one read a device.
 *
 * Words. stage: what was done for an optimizer since the last update. flag: as above. found: a
 * gradient was infinite or NaN. */
#include <math.h>
#include <stdlib.h>
#include "core/nn/optim.h"
#include "core/stream/async_error.h"
#include "core/tensor/calc.h"

enum scaler_stage { SCALER_READY, SCALER_UNSCALED, SCALER_STEPPED };

/* An optimizer since the last update. */
typedef struct scaler_entry {
  const weir_optimizer *optimizer; /* borrowed: an address alone */
  enum scaler_stage stage;
  weir_tensor *
      *flag; /* owned, each of them, too: float32 without dimensions, on different devices */
  int flags;
  bool read, found; /* the flags have been read, and what they state */
} scaler_entry;

struct weir_grad_scaler {
  weir_grad_scaler_options options;
  double scale;        /* a float32 */
  bool begun;          /* something was scaled */
  int64_t steps;       /* in a row in which nothing was found */
  scaler_entry *entry; /* owned */
  int entries;
};

/* ---- making one ------------------------------------------------------------------------------ */

weir_grad_scaler_options weir_grad_scaler_defaults(void)
{
  return (weir_grad_scaler_options){
      .init_scale = 65536, .growth_factor = 2, .backoff_factor = .5, .growth_interval = 2000};
}

weir_status weir_grad_scaler_new(weir_grad_scaler **out, const weir_grad_scaler_options *options)
{
  WEIR_REQUIRE_OUT(out);
  weir_grad_scaler_options o = options ? *options : weir_grad_scaler_defaults();
  if (!o.disabled && !(o.growth_factor > 1))
    return fail_invalid("The growth factor must be > 1.0.");
  if (!o.disabled && !(o.backoff_factor < 1))
    return fail_invalid("The backoff factor must be < 1.0.");
  weir_grad_scaler *s = calloc(1, sizeof *s);
  if (!s) return fail_memory("a gradient scaler");
  s->options = o;
  s->scale = (double)(float)o.init_scale;
  *out = s;
  return WEIR_OK;
}

static void drop_flags(scaler_entry *e)
{
  for (int i = 0; i < e->flags; i++)
    weir_tensor_release(e->flag[i]);
  free(e->flag);
  e->flag = NULL;
  e->flags = 0;
}

static void forget_entries(weir_grad_scaler *s)
{
  for (int i = 0; i < s->entries; i++)
    drop_flags(&s->entry[i]);
  free(s->entry);
  s->entry = NULL;
  s->entries = 0;
}

void weir_grad_scaler_release(weir_grad_scaler *s)
{
  if (!s) return;
  forget_entries(s);
  free(s);
}

/* ---- losses ---------------------------------------------------------------------------------- */

weir_status weir_grad_scaler_scale(weir_tensor **out, weir_grad_scaler *s, const weir_tensor *t)
{
  WEIR_OP(out, s, t);
  CALC(c);
  if (s->options.disabled) {
    *out = weir_tensor_retain((weir_tensor *)t);
    return WEIR_OK;
  }
  weir_options single = {.dtype = WEIR_FLOAT32, .device = device_of_tensor(t)};
  weir_tensor *scale = c_call(c, weir_full, weir_shape_of(0, NULL), weir_float(s->scale), &single);
  c_do(c, weir_mul(out, t, scale));
  if (!c->st) s->begun = true;
  return c->st;
}

/* ---- gradients ------------------------------------------------------------------------------- */

static weir_status check_begun(const weir_grad_scaler *s, const char *function)
{
  if (s->begun) return WEIR_OK;
  return fail_invalid("Attempted %s but _scale is None.  This may indicate your script did not use "
                      "scaler.scale(loss or outputs) earlier in the iteration.",
                      function);
}

static weir_status scaler_entry_of(scaler_entry **out, weir_grad_scaler *s, const weir_optimizer *o)
{
  for (int i = 0; i < s->entries; i++)
    if (s->entry[i].optimizer == o) {
      *out = &s->entry[i];
      return WEIR_OK;
    }
  scaler_entry *all = realloc(s->entry, ((size_t)s->entries + 1) * sizeof *all);
  if (!all) return fail_memory("an optimizer's flags");
  s->entry = all;
  all[s->entries] = (scaler_entry){.optimizer = o};
  *out = &all[s->entries++];
  return WEIR_OK;
}

/* The flag of a device; a new one is 0. */
static weir_status flag_on(weir_tensor **out, scaler_entry *e, weir_device device)
{
  for (int i = 0; i < e->flags; i++)
    if (weir_device_equal(device_of_tensor(e->flag[i]), device)) {
      *out = e->flag[i];
      return WEIR_OK;
    }
  weir_tensor **all = realloc(e->flag, ((size_t)e->flags + 1) * sizeof(weir_tensor *));
  if (!all) return fail_memory("a device's flag");
  e->flag = all;
  weir_options single = {.dtype = WEIR_FLOAT32, .device = device};
  weir_status st = weir_zeros(&all[e->flags], weir_shape_of(0, NULL), &single);
  if (!st) *out = all[e->flags++];
  return st;
}

static weir_status note_gradient(scaler_entry *e, const weir_tensor *grad)
{
  CALC(c);
  weir_tensor *flag = NULL;
  c->st = flag_on(&flag, e, device_of_tensor(grad));
  if (c->st || !grad->numel) return c->st;
  weir_tensor *largest = c_call(c, weir_norm, grad, INFINITY);
  c_do(c, weir_mul_scalar_(largest, weir_int(0)));
  return c->st ? c->st : weir_add_(flag, largest);
}

/* First everything that needs memory; what fails leaves the gradients as they were. */
static weir_status unscale(scaler_entry *e, const weir_grad_scaler *s, const weir_optimizer *o)
{
  weir_tensor *p;
  weir_status st = WEIR_OK;
  double inverse = (double)(float)(1 / s->scale);
  for (int i = 0; (p = optimizer_parameter(o, i)) && !st; i++) {
    const weir_tensor *grad = weir_tensor_grad(p);
    if (grad && grad->dtype == WEIR_FLOAT16)
      st = fail_invalid("Attempting to unscale FP16 gradients.");
  }
  for (int i = 0; !st && (p = optimizer_parameter(o, i)); i++) {
    const weir_tensor *grad = weir_tensor_grad(p);
    if (grad) st = note_gradient(e, grad);
  }
  for (int i = 0; !st && (p = optimizer_parameter(o, i)); i++) {
    weir_tensor *grad = weir_tensor_grad(p);
    if (grad) st = weir_mul_scalar_(grad, weir_float(inverse));
  }
  if (st) drop_flags(e);
  return st;
}

static weir_status unscale_entry(scaler_entry *e, weir_grad_scaler *s, const weir_optimizer *o)
{
  bool was = weir_set_grad_enabled(false);
  weir_status st = unscale(e, s, o);
  (void)weir_set_grad_enabled(was);
  if (!st) e->stage = SCALER_UNSCALED;
  return st;
}

weir_status weir_grad_scaler_unscale_(weir_grad_scaler *s, weir_optimizer *o)
{
  WEIR_OP_ON(s, o);
  scaler_entry *e = NULL;
  if (s->options.disabled) return WEIR_OK;
  TRY(check_begun(s, "unscale_"));
  TRY(scaler_entry_of(&e, s, o));
  if (e->stage == SCALER_UNSCALED)
    return fail_invalid(
        "unscale_() has already been called on this optimizer since the last update().");
  if (e->stage == SCALER_STEPPED) return fail_invalid("unscale_() is being called after step().");
  return unscale_entry(e, s, o);
}

/* What the flags state; once an iteration. */
static weir_status read_flags(scaler_entry *e)
{
  weir_status st = WEIR_OK;
  bool found = false;
  for (int i = 0; i < e->flags && !st && !e->read; i++) {
    weir_scalar flag = {0};
    st = weir_item(&flag, e->flag[i]);
    found |= flag.f != 0;
  }
  if (st || e->read) return st;
  e->found = found;
  e->read = true;
  return WEIR_OK;
}

weir_status weir_grad_scaler_step(weir_grad_scaler *s, weir_optimizer *o)
{
  WEIR_OP_ON(s, o);
  scaler_entry *e = NULL;
  if (s->options.disabled) return weir_optimizer_step(o);
  weir_status st = check_begun(s, "step");
  if (!st) st = scaler_entry_of(&e, s, o);
  if (st) return st;
  if (e->stage == SCALER_STEPPED)
    return fail_invalid("step() has already been called since the last update().");
  if (e->stage == SCALER_READY) st = unscale_entry(e, s, o);
  if (!st && !e->flags) st = fail_invalid("No inf checks were recorded for this optimizer.");
  if (!st) st = read_flags(e);
  if (!st && !e->found) st = weir_optimizer_step(o);
  if (!st) e->stage = SCALER_STEPPED;
  return st;
}

/* ---- the scale ------------------------------------------------------------------------------- */

static void next_scale(weir_grad_scaler *s, bool found)
{
  const weir_grad_scaler_options *o = &s->options;
  if (found) {
    s->scale = (double)(float)(s->scale * o->backoff_factor);
    s->steps = 0;
  } else if (++s->steps == o->growth_interval) {
    float more = (float)(s->scale * o->growth_factor);
    if (isfinite(more)) s->scale = (double)more;
    s->steps = 0;
  }
}

weir_status weir_grad_scaler_update(weir_grad_scaler *s)
{
  WEIR_OP_ON(s);
  bool found = false, any = false;
  if (s->options.disabled) return WEIR_OK;
  weir_status st = check_begun(s, "update");
  for (int i = 0; i < s->entries && !st; i++) {
    st = read_flags(&s->entry[i]);
    any |= s->entry[i].flags > 0;
    found |= s->entry[i].found;
  }
  if (!st && !any) st = fail_invalid("No inf checks were recorded prior to update.");
  if (st) return st;
  next_scale(s, found);
  forget_entries(s);
  return WEIR_OK;
}

weir_status weir_grad_scaler_update_to(weir_grad_scaler *s, double new_scale)
{
  WEIR_REQUIRE(s);
  if (s->options.disabled) return WEIR_OK;
  TRY(check_begun(s, "update"));
  s->scale = (double)(float)new_scale;
  forget_entries(s);
  return WEIR_OK;
}

double weir_grad_scaler_get_scale(const weir_grad_scaler *s)
{
  return s && !s->options.disabled ? s->scale : 1;
}

void weir_grad_scaler_state(weir_grad_scaler_options *out, int64_t *growth_tracker,
                            const weir_grad_scaler *s)
{
  if (out) *out = s ? s->options : weir_grad_scaler_defaults();
  if (out && s) out->init_scale = s->scale;
  if (growth_tracker) *growth_tracker = s ? s->steps : 0;
}

weir_status weir_grad_scaler_load_state(weir_grad_scaler *s,
                                        const weir_grad_scaler_options *options,
                                        int64_t growth_tracker)
{
  WEIR_REQUIRE(s, options);
  if (s->options.disabled) return WEIR_OK;
  s->options = *options;
  s->options.disabled = false;
  s->scale = (double)(float)options->init_scale;
  s->steps = growth_tracker;
  return WEIR_OK;
}
