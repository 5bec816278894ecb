/* optim.c: optimizers: see core/weir/optim.h.
 *
 * A parameter's step is one request to its device (weir_update): the formulas are in
 * core/backend/update.h, what is the same for all elements is worked out here in double. A step has
 * two halves. First, everything that needs memory, for all parameters: states that are not there
 * yet, and dense copies of what does not lie densely. Then the requests, which need none; so that a
 * step that fails for want of memory has changed nothing. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/nn/optim.h"
#include "core/stream/async_error.h"
#include "core/tensor/calc.h"
#include "core/tensor/loop.h"

enum { STATES = WEIR_UPDATE_STATES };

/* What a kind's states are called, in the order of update.h. */
static const struct optim_kind {
  weir_update_rule rule;
  const char *state[STATES]; /* NULL: none */
} kinds[] = {
    [WEIR_SGD] = {WEIR_UPDATE_SGD, {"momentum_buffer"}},
    [WEIR_ADAM] = {WEIR_UPDATE_ADAM, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
    [WEIR_ADAMW] = {WEIR_UPDATE_ADAM, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}},
    [WEIR_RMSPROP] = {WEIR_UPDATE_RMSPROP, {"square_avg", "momentum_buffer", "grad_avg"}},
    [WEIR_ADAGRAD] = {WEIR_UPDATE_ADAGRAD, {"sum"}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* A parameter and what is known of it. */
typedef struct optim_slot {
  weir_tensor *p; /* a count of its own */
  weir_tensor
      *state[STATES]; /* owned: dense, of p's shape, dtype and device; NULL: not there yet */
  int64_t steps;      /* made so far */
  int group;
} optim_slot;

struct weir_optimizer {
  weir_optim kind;
  optim_slot *slot; /* owned */
  int slots;
  weir_optim_options *group; /* owned */
  double *initial; /* owned: each group's lr before its first schedule; NAN: has had none */
  int groups;
};

/* ---- options --------------------------------------------------------------------------------- */

weir_optim_options weir_optim_defaults(weir_optim kind)
{
  weir_optim_options o = {.lr = kind == WEIR_RMSPROP || kind == WEIR_ADAGRAD ? 1e-2 : 1e-3,
                          .weight_decay = kind == WEIR_ADAMW ? 1e-2 : 0,
                          .beta1 = 0.9,
                          .beta2 = 0.999,
                          .eps = kind == WEIR_ADAGRAD ? 1e-10 : 1e-8,
                          .alpha = 0.99};
  return o;
}

/* The numbers and switches of options, by torch's names. */
#define OPTION_NUMBERS(X)                                                                          \
  X(lr)                                                                                            \
  X(weight_decay)                                                                                  \
  X(momentum)                                                                                      \
  X(dampening)                                                                                     \
  X(beta1)                                                                                         \
  X(beta2)                                                                                         \
  X(eps)                                                                                           \
  X(alpha)                                                                                         \
  X(lr_decay)                                                                                      \
  X(initial_accumulator_value)
#define OPTION_SWITCHES(X)                                                                         \
  X(maximize)                                                                                      \
  X(nesterov)                                                                                      \
  X(amsgrad)                                                                                       \
  X(centered)

static const struct option_field {
  const char *name;
  size_t offset;
  bool is_switch;
} fields[] = {
#define NUMBER(name) {#name, offsetof(weir_optim_options, name), false},
#define SWITCH(name) {#name, offsetof(weir_optim_options, name), true},
    OPTION_NUMBERS(NUMBER) OPTION_SWITCHES(SWITCH)
#undef NUMBER
#undef SWITCH
};
enum { FIELDS = sizeof fields / sizeof *fields };

static weir_status check_least(const char *what, double value, double least, double below)
{
  if (value >= least && value < below) return WEIR_OK;
  return fail_invalid("Invalid %s: %g", what, value);
}

static weir_status check_options(weir_optim kind, const weir_optim_options *o)
{
  bool adam = kind == WEIR_ADAM || kind == WEIR_ADAMW;
  weir_status st = check_least("learning rate", o->lr, 0, INFINITY);
  if (!st && kind != WEIR_SGD) st = check_least("epsilon value", o->eps, 0, INFINITY);
  if (!st) st = check_least("weight_decay value", o->weight_decay, 0, INFINITY);
  if (!st && adam) st = check_least("beta parameter at index 0", o->beta1, 0, 1);
  if (!st && adam) st = check_least("beta parameter at index 1", o->beta2, 0, 1);
  if (!st && (kind == WEIR_SGD || kind == WEIR_RMSPROP))
    st = check_least("momentum value", o->momentum, 0, INFINITY);
  if (!st && kind == WEIR_RMSPROP) st = check_least("alpha value", o->alpha, 0, INFINITY);
  if (!st && kind == WEIR_ADAGRAD) st = check_least("lr_decay value", o->lr_decay, 0, INFINITY);
  if (!st && kind == WEIR_ADAGRAD)
    st = check_least("initial_accumulator_value value", o->initial_accumulator_value, 0, INFINITY);
  if (!st && kind == WEIR_SGD && o->nesterov && (o->momentum <= 0 || o->dampening != 0))
    st = fail_invalid("Nesterov momentum requires a momentum and zero dampening");
  return st;
}

/* ---- making one ------------------------------------------------------------------------------ */

static weir_status check_parameter(const weir_optimizer *o, const weir_tensor *p,
                                   weir_tensor *const *before, int count)
{
  if (!p) return fail_invalid("optimizer can only optimize Tensors, but one of the params is NULL");
  if (!weir_tensor_is_leaf(p)) return fail_invalid("can't optimize a non-leaf Tensor");
  bool twice = false;
  for (int i = 0; i < o->slots; i++)
    twice |= o->slot[i].p == p;
  for (int i = 0; i < count; i++)
    twice |= before[i] == p;
  if (twice) return fail_invalid("some parameters appear in more than one parameter group");
  return WEIR_OK;
}

weir_status weir_optimizer_add_group(weir_optimizer *o, weir_tensor *const *parameters, int count,
                                     const weir_optim_options *options)
{
  WEIR_REQUIRE(o, parameters);
  weir_optim_options mine = options ? *options : weir_optim_defaults(o->kind);
  weir_status st = check_options(o->kind, &mine);
  if (!st && count <= 0) st = fail_invalid("optimizer got an empty parameter list");
  for (int i = 0; i < count && !st; i++)
    st = check_parameter(o, parameters[i], parameters, i);
  if (st) return st;
  weir_optim_options *group = realloc(o->group, (size_t)(o->groups + 1) * sizeof *group);
  if (group) o->group = group;
  double *initial = group ? realloc(o->initial, (size_t)(o->groups + 1) * sizeof *initial) : NULL;
  if (initial) o->initial = initial;
  optim_slot *slot = initial ? realloc(o->slot, (size_t)(o->slots + count) * sizeof *slot) : NULL;
  if (!slot) return fail_memory("%d parameters", count);
  o->slot = slot;
  for (int i = 0; i < count; i++)
    slot[o->slots++] = (optim_slot){.p = weir_tensor_retain(parameters[i]), .group = o->groups};
  initial[o->groups] = NAN;
  group[o->groups++] = mine;
  return WEIR_OK;
}

weir_status weir_optimizer_create(weir_optimizer **out, weir_optim kind,
                                  weir_tensor *const *parameters, int count,
                                  const weir_optim_options *options)
{
  WEIR_REQUIRE_OUT(out, parameters);
  if ((unsigned)kind >= KINDS) return fail_invalid("%d is no kind of optimizer", (int)kind);
  weir_optimizer *o = calloc(1, sizeof *o);
  if (!o) return fail_memory("an optimizer");
  o->kind = kind;
  weir_status st = weir_optimizer_add_group(o, parameters, count, options);
  if (st)
    weir_optimizer_release(o);
  else
    *out = o;
  return st;
}

void weir_optimizer_release(weir_optimizer *o)
{
  if (!o) return;
  for (int i = 0; i < o->slots; i++) {
    weir_tensor_release(o->slot[i].p);
    for (int k = 0; k < STATES; k++)
      weir_tensor_release(o->slot[i].state[k]);
  }
  free(o->slot);
  free(o->group);
  free(o->initial);
  free(o);
}

int weir_optimizer_groups(const weir_optimizer *o)
{
  return o ? o->groups : 0;
}

double optimizer_initial_rate(weir_optimizer *o, int group, double first)
{
  if (isnan(o->initial[group])) o->initial[group] = o->group[group].lr;
  if (!isnan(first)) o->initial[group] = first;
  return o->initial[group];
}

void optimizer_set_rate(weir_optimizer *o, int group, double lr, double momentum)
{
  o->group[group].lr = lr;
  if (!isnan(momentum)) o->group[group].momentum = o->group[group].beta1 = momentum;
}

static weir_status check_group(const weir_optimizer *o, int group)
{
  if (group >= 0 && group < o->groups) return WEIR_OK;
  return fail_invalid("group %d of an optimizer that has %d", group, o->groups);
}

weir_status weir_optimizer_get_options(weir_optim_options *out, const weir_optimizer *o, int group)
{
  WEIR_REQUIRE(out, o);
  weir_status st = check_group(o, group);
  if (!st) *out = o->group[group];
  return st;
}

weir_status weir_optimizer_set_options(weir_optimizer *o, int group,
                                       const weir_optim_options *options)
{
  WEIR_REQUIRE(o, options);
  weir_status st = check_group(o, group);
  if (!st) st = check_options(o->kind, options);
  if (!st) o->group[group] = *options;
  return st;
}

void weir_optimizer_zero_grad(weir_optimizer *o)
{
  for (int i = 0; o && i < o->slots; i++)
    if (weir_tensor_grad(o->slot[i].p)) (void)weir_tensor_set_grad(o->slot[i].p, NULL);
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* A parameter's part of a step. */
typedef struct slot_update {
  optim_slot *slot;
  weir_tensor *p, *grad;      /* counts: dense ones */
  weir_tensor *state[STATES]; /* counts: NULL: not used */
  compute_target target;
} slot_update;

/* Whether state `k` is used with these options. */
static bool uses_state(weir_optim kind, const weir_optim_options *o, int k)
{
  switch (kinds[kind].rule) {
  case WEIR_UPDATE_SGD:
    return k == 0 && o->momentum != 0;
  case WEIR_UPDATE_ADAM:
    return k < 2 || o->amsgrad;
  case WEIR_UPDATE_RMSPROP:
    return k == 0 || (k == 1 ? o->momentum != 0 : o->centered);
  default:
    return k == 0;
  }
}

static weir_status new_state(weir_tensor **out, const weir_optimizer *o, const optim_slot *s)
{
  const weir_optim_options *g = &o->group[s->group];
  double value = o->kind == WEIR_ADAGRAD ? g->initial_accumulator_value : 0;
  weir_status st = tensor_new_beside(out, s->p, weir_tensor_shape(s->p));
  if (!st) st = weir_fill_(*out, weir_float(value));
  if (st) weir_tensor_drop(out);
  return st;
}

static weir_status prepare_update(slot_update *u, const weir_optimizer *o, optim_slot *s)
{
  const weir_tensor *grad = weir_tensor_grad(s->p);
  u->slot = s;
  weir_status st = weir_contiguous(&u->p, s->p);
  if (!st) st = weir_contiguous(&u->grad, grad);
  if (!st) st = compute_target_of(&u->target, device_of_tensor(s->p));
  if (!st && !u->target.compute->update) st = compute_target_lacks(&u->target, "optimizer");
  for (int k = 0; k < STATES && !st; k++) {
    if (!uses_state(o->kind, &o->group[s->group], k)) continue;
    if (s->state[k])
      u->state[k] = weir_tensor_retain(s->state[k]);
    else
      st = new_state(&u->state[k], o, s);
  }
  return st;
}

/* What is the same for all elements. */
static weir_update numbers_of(const weir_optimizer *o, const optim_slot *s)
{
  const weir_optim_options *g = &o->group[s->group];
  double t = (double)(s->steps + 1);
  weir_update u = {.rule = kinds[o->kind].rule,
                   .lr = g->lr,
                   .step = g->lr,
                   .weight_decay = g->weight_decay,
                   .momentum = g->momentum,
                   .dampening = g->dampening,
                   .beta1 = g->beta1,
                   .beta2 = g->beta2,
                   .eps = g->eps,
                   .root = 1,
                   .decoupled = o->kind == WEIR_ADAMW,
                   .first = !s->state[0],
                   .maximize = g->maximize,
                   .nesterov = g->nesterov,
                   .amsgrad = g->amsgrad,
                   .centered = g->centered};
  if (u.rule == WEIR_UPDATE_ADAM) {
    u.step = g->lr / (1 - pow(g->beta1, t));
    u.root = sqrt(1 - pow(g->beta2, t));
  }
  if (u.rule == WEIR_UPDATE_RMSPROP) u.beta2 = g->alpha;
  if (u.rule == WEIR_UPDATE_ADAGRAD) u.step = g->lr / (1 + (t - 1) * g->lr_decay);
  return u;
}

/* Needs no memory. */
static weir_status run_update(const weir_optimizer *o, slot_update *s)
{
  weir_update u = numbers_of(o, s->slot);
  u.dtype = s->p->dtype;
  u.p = s->p->data;
  u.grad = s->grad->data;
  u.count = s->p->numel;
  for (int k = 0; k < STATES; k++)
    u.state[k] = s->state[k] ? s->state[k]->data : NULL;
  weir_status st = WEIR_OK;
  if (u.count)
    st = compute_target_done(
        &s->target, s->target.compute->update(s->target.self, s->target.stream, &u), "optimizer");
  if (!st && s->p != s->slot->p) st = loop_copy(s->slot->p, s->p);
  if (st) return st;
  tensor_changes(s->slot->p);
  s->slot->steps++;
  for (int k = 0; k < STATES; k++) {
    if (!s->state[k] || s->slot->state[k]) continue;
    s->slot->state[k] = s->state[k];
    s->state[k] = NULL;
  }
  return WEIR_OK;
}

static void drop_updates(slot_update *u, int count)
{
  for (int i = 0; i < count; i++) {
    weir_tensor_release(u[i].p);
    weir_tensor_release(u[i].grad);
    for (int k = 0; k < STATES; k++)
      weir_tensor_release(u[i].state[k]);
  }
  free(u);
}

weir_status weir_optimizer_step(weir_optimizer *o)
{
  WEIR_OP_ON(o);
  int count = 0;
  weir_status st = WEIR_OK;
  slot_update *u = calloc((size_t)o->slots, sizeof *u);
  if (!u) return fail_memory("a step of %d parameters", o->slots);
  bool was = weir_set_grad_enabled(false);
  for (int i = 0; i < o->slots && !st; i++)
    if (weir_tensor_grad(o->slot[i].p)) st = prepare_update(&u[count++], o, &o->slot[i]);
  for (int i = 0; i < count && !st; i++)
    st = run_update(o, &u[i]);
  (void)weir_set_grad_enabled(was);
  drop_updates(u, count);
  return st;
}

/* ---- state ----------------------------------------------------------------------------------- */

weir_status optim_put_number(weir_tensors *set, const char *name, double value, weir_dtype dtype)
{
  CALC(c);
  weir_options o = {.dtype = dtype, .device = WEIR_CPU};
  weir_tensor *t = c_call(c, weir_full, weir_shape_of(0, NULL), weir_float(value), &o);
  return c->st ? c->st : weir_tensors_put(set, name, t);
}

static weir_status put_slot(weir_tensors *set, const weir_optimizer *o, int number)
{
  char name[64];
  const optim_slot *s = &o->slot[number];
  weir_status st = WEIR_OK;
  for (int k = 0; k < STATES && !st; k++) {
    if (!s->state[k]) continue;
    (void)snprintf(name, sizeof name, "state.%d.%s", number, kinds[o->kind].state[k]);
    st = weir_tensors_put(set, name, s->state[k]);
  }
  (void)snprintf(name, sizeof name, "state.%d.step", number);
  if (!st && s->steps && o->kind != WEIR_SGD)
    st = optim_put_number(set, name, (double)s->steps, WEIR_FLOAT32);
  return st;
}

static weir_status put_group(weir_tensors *set, const weir_optim_options *g, int number)
{
  char name[64];
  weir_status st = WEIR_OK;
  for (int f = 0; f < FIELDS && !st; f++) {
    const char *at = (const char *)g + fields[f].offset;
    bool is_switch = fields[f].is_switch;
    (void)snprintf(name, sizeof name, "param_groups.%d.%s", number, fields[f].name);
    st = optim_put_number(set, name, is_switch ? *(const bool *)at : *(const double *)at,
                          is_switch ? WEIR_BOOL : WEIR_FLOAT64);
  }
  return st;
}

weir_status weir_optimizer_state(weir_tensors **out, const weir_optimizer *o)
{
  WEIR_REQUIRE_OUT(out, o);
  weir_status st = weir_tensors_create(out);
  for (int i = 0; i < o->slots && !st; i++)
    st = put_slot(*out, o, i);
  for (int i = 0; i < o->groups && !st; i++)
    st = put_group(*out, &o->group[i], i);
  if (st) weir_tensors_drop(out);
  return st;
}

/* What is loaded, until all of it is there. */
typedef struct loaded_state {
  weir_optimizer *o;
  optim_slot *slot;          /* owned; p is borrowed */
  weir_optim_options *group; /* owned */
} loaded_state;

static weir_status load_tensor(loaded_state *l, const char *name, int number, int k,
                               const weir_tensor *from)
{
  const weir_tensor *p = l->o->slot[number].p;
  text_buffer a, b;
  if (from->dims != p->dims || memcmp(from->size, p->size, (size_t)p->dims * sizeof *p->size) != 0)
    return fail_invalid("%s has the shape %s, its parameter %s", name,
                        shape_format(&a, weir_tensor_shape(from)),
                        shape_format(&b, weir_tensor_shape(p)));
  weir_tensor **to = &l->slot[number].state[k];
  weir_status st = tensor_new_beside(to, p, weir_tensor_shape(p));
  return st ? st : weir_copy_(*to, from, false);
}

static weir_status load_slot(loaded_state *l, const char *name, int number, const char *what,
                             const weir_tensor *from)
{
  weir_scalar value;
  if (number >= l->o->slots)
    return fail_invalid("%s is of a parameter that this optimizer of %d has not", name,
                        l->o->slots);
  if (strcmp(what, "step") == 0) {
    weir_status st = weir_item(&value, from);
    if (!st)
      l->slot[number].steps = (int64_t)(value.dtype == WEIR_INT64 ? (double)value.i : value.f);
    return st;
  }
  for (int k = 0; k < STATES; k++)
    if (kinds[l->o->kind].state[k] && strcmp(what, kinds[l->o->kind].state[k]) == 0)
      return load_tensor(l, name, number, k, from);
  return fail_invalid("%s is nothing that this optimizer has", name);
}

static weir_status load_option(loaded_state *l, const char *name, int number, const char *what,
                               const weir_tensor *from)
{
  weir_scalar value;
  for (int f = 0; f < FIELDS && number < l->o->groups; f++) {
    if (strcmp(what, fields[f].name) != 0) continue;
    TRY(weir_item(&value, from));
    double x = value.dtype == WEIR_FLOAT64 ? value.f : (double)value.i;
    char *at = (char *)&l->group[number] + fields[f].offset;
    if (fields[f].is_switch)
      *(bool *)at = x != 0;
    else
      *(double *)at = x;
    return WEIR_OK;
  }
  return fail_invalid("%s is nothing that this optimizer of %d groups has", name, l->o->groups);
}

static weir_status load_one(loaded_state *l, const char *name, const weir_tensor *t)
{
  int number, end = 0;
  if (sscanf(name, "state.%9d.%n", &number, &end) == 1 && end && number >= 0)
    return load_slot(l, name, number, name + end, t);
  if (sscanf(name, "param_groups.%9d.%n", &number, &end) == 1 && end && number >= 0)
    return load_option(l, name, number, name + end, t);
  return fail_invalid("%s is nothing of an optimizer's", name);
}

/* Exchanges what was loaded with what was there. */
static void accept_state(loaded_state *l)
{
  for (int i = 0; i < l->o->slots; i++) {
    optim_slot was = l->o->slot[i];
    l->o->slot[i] = l->slot[i];
    l->slot[i] = was;
  }
  memcpy(l->o->group, l->group, (size_t)l->o->groups * sizeof *l->group);
}

static weir_status begin_load(loaded_state *l, weir_optimizer *o)
{
  *l = (loaded_state){.o = o,
                      .slot = calloc((size_t)o->slots, sizeof *l->slot),
                      .group = malloc((size_t)o->groups * sizeof *l->group)};
  if (!l->slot || !l->group) return fail_memory("the state of %d parameters", o->slots);
  memcpy(l->group, o->group, (size_t)o->groups * sizeof *l->group);
  for (int i = 0; i < o->slots; i++)
    l->slot[i] = (optim_slot){.p = o->slot[i].p, .group = o->slot[i].group};
  return WEIR_OK;
}

weir_status weir_optimizer_load_state(weir_optimizer *o, const weir_tensors *state)
{
  WEIR_REQUIRE(o, state);
  loaded_state l;
  bool was = weir_set_grad_enabled(false);
  weir_status st = begin_load(&l, o);
  for (size_t i = 0; i < weir_tensors_count(state) && !st; i++)
    st = load_one(&l, weir_tensors_name(state, i), weir_tensors_at(state, i));
  for (int i = 0; i < o->groups && !st; i++)
    st = check_options(o->kind, &l.group[i]);
  if (!st) accept_state(&l);
  (void)weir_set_grad_enabled(was);
  for (int i = 0; i < o->slots && l.slot; i++)
    for (int k = 0; k < STATES; k++)
      weir_tensor_release(l.slot[i].state[k]);
  free(l.slot);
  free(l.group);
  return st;
}

weir_tensor *optimizer_parameter(const weir_optimizer *o, int i)
{
  return i < o->slots ? o->slot[i].p : NULL;
}

/* ---- gradients ------------------------------------------------------------------------------- */

/* The gradients that are there, borrowed; *count of them, into room for as many as parameters. */
static weir_status list_gradients(weir_tensor **out, int *count, weir_tensor *const *parameters,
                                  int of)
{
  *count = 0;
  for (int i = 0; i < of; i++) {
    if (!parameters[i]) return fail_invalid("parameter %d is NULL", i);
    weir_tensor *grad = weir_tensor_grad(parameters[i]);
    if (grad) out[(*count)++] = grad;
  }
  return WEIR_OK;
}

/* The norm of all, and what they are to be multiplied by. */
static weir_status total_norm(weir_tensor **total, weir_tensor **scale, weir_tensor *const *grads,
                              weir_tensor **norms, int count, double max_norm, double norm_type)
{
  CALC(c);
  weir_options there = {.device = device_of_tensor(grads[0])};
  weir_scalar one = weir_float(1);
  for (int i = 0; i < count && !c->st; i++) {
    WEIR_TENSOR mine = NULL;
    c->st = weir_norm(&mine, grads[i], norm_type);
    c_do(c, weir_to(&norms[i], mine, &there));
  }
  weir_tensor *all = c_call(c, weir_stack, (const weir_tensor *const *)norms, count, 0);
  c_do(c, weir_norm(total, all, norm_type));
  weir_tensor *shifted = c_call(c, weir_add_scalar, *total, weir_float(1e-6));
  weir_tensor *ratio = c_scalar_div(c, weir_float(max_norm), shifted);
  return c->st ? c->st : weir_clamp(scale, ratio, NULL, &one);
}

/* scale on each gradient's device, all before the first is changed. */
static weir_status scale_gradients(weir_tensor *const *grads, weir_tensor **scales, int count,
                                   const weir_tensor *scale)
{
  weir_status st = WEIR_OK;
  for (int i = 0; i < count && !st; i++) {
    weir_tensor_drop(&scales[i]);
    st = weir_to(&scales[i], scale, &(weir_options){.device = device_of_tensor(grads[i])});
  }
  for (int i = 0; i < count && !st; i++)
    st = weir_mul_(grads[i], scales[i]);
  return st;
}

weir_status weir_clip_grad_norm_(weir_tensor **total, weir_tensor *const *parameters, int count,
                                 double max_norm, double norm_type)
{
  WEIR_OP_HERE;
  if (total) *total = NULL;
  if (count > 0) WEIR_REQUIRE(parameters);
  int some = 0, room = count > 0 ? count : 1;
  WEIR_TENSOR norm = NULL, scale = NULL;
  weir_tensor **list = calloc(2 * (size_t)room, sizeof(weir_tensor *));
  if (!list) return fail_memory("%d gradients", count);
  bool was = weir_set_grad_enabled(false);
  weir_status st = list_gradients(list, &some, parameters, count);
  if (!st && some) st = total_norm(&norm, &scale, list, list + room, some, max_norm, norm_type);
  if (!st && some) st = scale_gradients(list, list + room, some, scale);
  if (!st && !some) st = weir_zeros(&norm, weir_shape_of(0, NULL), NULL);
  (void)weir_set_grad_enabled(was);
  for (int i = 0; i < room; i++)
    weir_tensor_release(list[room + i]);
  free(list);
  if (!st && total) {
    *total = norm;
    norm = NULL;
  }
  return st;
}

weir_status weir_clip_grad_value_(weir_tensor *const *parameters, int count, double clip_value)
{
  WEIR_OP_HERE;
  if (count > 0) WEIR_REQUIRE(parameters);
  bool was = weir_set_grad_enabled(false);
  weir_status st = WEIR_OK;
  for (int i = 0; i < count && !st; i++) {
    if (!parameters[i]) st = fail_invalid("parameter %d is NULL", i);
    weir_tensor *grad = st ? NULL : weir_tensor_grad(parameters[i]);
    if (grad) st = weir_maximum_scalar_(grad, weir_float(-clip_value));
    if (grad && !st) st = weir_minimum_scalar_(grad, weir_float(clip_value));
  }
  (void)weir_set_grad_enabled(was);
  return st;
}
