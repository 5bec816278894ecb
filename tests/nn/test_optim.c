/* test_optim.c: optimizers: their formulas in double, groups, states, failures. Those with a
 * loop run for the cpu (0) and cuda:0 of the software device (1). */
#include <math.h>
#include "core/weir/grad.h"
#include "core/weir/optim.h"
#include "core/weir/schedule.h"
#include "tests/nn/rig.h"

enum { N = 1000, STEPS = 5 };

static weir_tensor *parameter_of(const double *values, int64_t n, weir_dtype dtype,
                                 weir_device device)
{
  weir_tensor *t;
  weir_options o = {.dtype = dtype, .device = device};
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, weir_shape_of(1, &n), &o));
  weir_ok(weir_requires_grad_(t, true));
  return t;
}

static void set_gradient(weir_tensor *p, const double *values)
{
  WEIR_TENSOR g = NULL;
  weir_options o = {.dtype = weir_tensor_dtype(p), .device = weir_tensor_device(p)};
  weir_ok(weir_tensor_from(&g, values, WEIR_FLOAT64, weir_tensor_shape(p), &o));
  weir_ok(weir_tensor_set_grad(p, g));
}

static double start_of(int i)
{
  return sin(i * 0.37) * 2;
}

static double gradient_of(int i, int step)
{
  return cos(i * 0.11 + step * 1.7) * (1 + step);
}

/* One element through `steps` steps, as the papers have it. */
static double follow(weir_optim kind, const weir_optim_options *o, int i)
{
  double p = start_of(i), a = 0, b = 0, c = 0;
  if (kind == WEIR_ADAGRAD) a = o->initial_accumulator_value;
  for (int step = 1; step <= STEPS; step++) {
    double g = gradient_of(i, step) * (o->maximize ? -1 : 1);
    if (kind == WEIR_ADAMW)
      p -= o->lr * o->weight_decay * p;
    else
      g += o->weight_decay * p;
    switch (kind) {
    case WEIR_SGD:
      a = step == 1 ? g : o->momentum * a + (1 - o->dampening) * g;
      if (o->momentum != 0) g = o->nesterov ? g + o->momentum * a : a;
      p -= o->lr * g;
      break;
    case WEIR_ADAM:
    case WEIR_ADAMW:
      a = o->beta1 * a + (1 - o->beta1) * g;
      b = o->beta2 * b + (1 - o->beta2) * g * g;
      c = fmax(b, c);
      p -= o->lr * (a / (1 - pow(o->beta1, step))) /
           (sqrt((o->amsgrad ? c : b) / (1 - pow(o->beta2, step))) + o->eps);
      break;
    case WEIR_RMSPROP:
      a = o->alpha * a + (1 - o->alpha) * g * g;
      c = o->alpha * c + (1 - o->alpha) * g;
      g /= sqrt(o->centered ? a - c * c : a) + o->eps;
      b = o->momentum * b + g;
      p -= o->lr * (o->momentum != 0 ? b : g);
      break;
    case WEIR_ADAGRAD:
      a += g * g;
      p -= o->lr / (1 + (step - 1) * o->lr_decay) * g / (sqrt(a) + o->eps);
      break;
    }
  }
  return p;
}

static void check_formula(weir_optim kind, const weir_optim_options *o, weir_dtype dtype,
                          weir_device device, double tolerance)
{
  double values[N], got[N];
  WEIR_TENSOR p = NULL;
  WEIR_OPTIMIZER optimizer = NULL;
  for (int i = 0; i < N; i++)
    values[i] = start_of(i);
  p = parameter_of(values, N, dtype, device);
  weir_ok(weir_optimizer_create(&optimizer, kind, &p, 1, o));
  for (int step = 1; step <= STEPS; step++) {
    for (int i = 0; i < N; i++)
      values[i] = gradient_of(i, step);
    set_gradient(p, values);
    weir_ok(weir_optimizer_step(optimizer));
  }
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, p));
  for (int i = 0; i < N; i++)
    ck_assert_double_eq_tol(got[i], follow(kind, o, i), tolerance);
}

START_TEST(steps_are_the_formulas_in_every_dtype)
{
  static const struct {
    weir_dtype dtype;
    double tolerance;
  } of[] = {
      {WEIR_FLOAT64, 1e-12}, {WEIR_FLOAT32, 1e-5}, {WEIR_FLOAT16, 4e-2}, {WEIR_BFLOAT16, 0.3}};
  weir_device device = device_of_case(_i);
  for (int kind = WEIR_SGD; kind <= WEIR_ADAGRAD; kind++)
    for (int variant = 0; variant < 4; variant++)
      for (int d = 0; d < 4; d++) {
        weir_optim_options o = weir_optim_defaults((weir_optim)kind);
        o.lr = 0.01;
        if (d >= 2) o.eps = 1e-3;
        o.maximize = variant == 1;
        o.weight_decay = variant ? 0.1 : 0;
        o.momentum = variant == 2 || variant == 3 ? 0.9 : 0;
        o.nesterov = variant == 3 && kind == WEIR_SGD;
        o.dampening = variant == 2 ? 0.25 : 0;
        o.amsgrad = o.centered = variant == 2;
        o.lr_decay = variant * 0.1;
        o.initial_accumulator_value = variant == 3 ? 0.5 : 0;
        check_formula((weir_optim)kind, &o, of[d].dtype, device, of[d].tolerance);
      }
}
END_TEST

START_TEST(a_parameter_of_any_strides_follows)
{
  double values[6] = {1, 2, 3, 4, 5, 6}, got[6];
  WEIR_TENSOR base = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR g = NULL;
  WEIR_OPTIMIZER o = NULL;
  weir_options there = {.device = device_of_case(_i)};
  weir_ok(weir_tensor_from(&base, values, WEIR_FLOAT64, weir_shape(2, 3), &there));
  weir_ok(weir_t(&turned, base));
  weir_ok(weir_requires_grad_(turned, true));
  weir_ok(weir_tensor_from(&g, values, WEIR_FLOAT64, weir_shape(3, 2), &there));
  weir_ok(weir_tensor_set_grad(turned, g));
  weir_ok(weir_optimizer_create(&o, WEIR_SGD, &turned, 1, &(weir_optim_options){.lr = 1}));
  weir_ok(weir_optimizer_step(o));
  weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, base));
  const double want[6] = {1 - 1, 2 - 3, 3 - 5, 4 - 2, 5 - 4, 6 - 6};
  for (int i = 0; i < 6; i++)
    ck_assert_double_eq(got[i], want[i]);
}
END_TEST

START_TEST(groups_have_options_of_their_own)
{
  double one = 1;
  WEIR_TENSOR a = parameter_of(&one, 1, WEIR_FLOAT64, CPU);
  WEIR_TENSOR b = parameter_of(&one, 1, WEIR_FLOAT64, CPU);
  WEIR_TENSOR c = parameter_of(&one, 1, WEIR_FLOAT64, CPU);
  WEIR_OPTIMIZER o = NULL;
  weir_optim_options options;
  weir_ok(weir_optimizer_create(&o, WEIR_SGD, &a, 1, &(weir_optim_options){.lr = 0.5}));
  weir_ok(
      weir_optimizer_add_group(o, (weir_tensor *[]){b, c}, 2, &(weir_optim_options){.lr = 0.25}));
  ck_assert_int_eq(weir_optimizer_groups(o), 2);
  set_gradient(a, &one);
  set_gradient(b, &one);
  weir_ok(weir_optimizer_step(o));
  ck_assert_double_eq(rig_number(a, 0), 0.5);
  ck_assert_double_eq(rig_number(b, 0), 0.75);
  ck_assert_double_eq(rig_number(c, 0), 1); /* has no gradient */
  weir_ok(weir_optimizer_get_options(&options, o, 1));
  ck_assert_double_eq(options.lr, 0.25);
  options.lr = 2;
  weir_ok(weir_optimizer_set_options(o, 1, &options));
  weir_optimizer_zero_grad(o);
  ck_assert_ptr_null(weir_tensor_grad(a));
  set_gradient(c, &one);
  weir_ok(weir_optimizer_step(o));
  ck_assert_double_eq(rig_number(c, 0), -1);
  weir_not(WEIR_EINVAL, "group 2 of an optimizer that has 2",
           weir_optimizer_get_options(&options, o, 2));
}
END_TEST

START_TEST(what_torch_refuses_is_refused_in_its_words)
{
  double one = 1;
  WEIR_TENSOR a = parameter_of(&one, 1, WEIR_FLOAT32, CPU);
  WEIR_TENSOR made = NULL;
  WEIR_OPTIMIZER o = NULL;
  weir_ok(weir_mul_scalar(&made, a, weir_int(2)));
  weir_not(WEIR_EINVAL, "optimizer got an empty parameter list",
           weir_optimizer_create(&o, WEIR_ADAM, &a, 0, NULL));
  weir_not(WEIR_EINVAL, "can't optimize a non-leaf Tensor",
           weir_optimizer_create(&o, WEIR_ADAM, &made, 1, NULL));
  weir_not(WEIR_EINVAL, "some parameters appear in more than one parameter group",
           weir_optimizer_create(&o, WEIR_ADAM, (weir_tensor *[]){a, a}, 2, NULL));
  weir_not(WEIR_EINVAL, "Invalid learning rate: -0.5",
           weir_optimizer_create(&o, WEIR_SGD, &a, 1, &(weir_optim_options){.lr = -0.5}));
  weir_not(WEIR_EINVAL, "Nesterov momentum requires a momentum and zero dampening",
           weir_optimizer_create(&o, WEIR_SGD, &a, 1, &(weir_optim_options){.nesterov = true}));
  weir_not(WEIR_EINVAL, "Invalid beta parameter at index 1: 1",
           weir_optimizer_create(&o, WEIR_ADAM, &a, 1, &(weir_optim_options){.beta2 = 1}));
  ck_assert_ptr_null(o);
}
END_TEST

START_TEST(a_state_goes_on_where_it_was_taken)
{
  double values[3] = {1, -2, 3}, grads[3] = {.5, .25, -1};
  WEIR_TENSOR a = parameter_of(values, 3, WEIR_FLOAT32, CPU);
  WEIR_TENSOR b = parameter_of(values, 3, WEIR_FLOAT32, CPU);
  WEIR_OPTIMIZER one = NULL;
  WEIR_OPTIMIZER two = NULL;
  WEIR_TENSORS state = NULL;
  weir_ok(weir_optimizer_create(
      &one, WEIR_ADAM, &a, 1,
      &(weir_optim_options){.lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .amsgrad = true}));
  weir_ok(weir_optimizer_create(&two, WEIR_ADAM, &b, 1, NULL));
  for (int step = 0; step < 3; step++) {
    set_gradient(a, grads);
    weir_ok(weir_optimizer_step(one));
  }
  weir_ok(weir_optimizer_state(&state, one));
  ck_assert_double_eq(rig_number(weir_tensors_get(state, "state.0.step"), 0), 3);
  ck_assert_ptr_nonnull(weir_tensors_get(state, "state.0.max_exp_avg_sq"));
  ck_assert_double_eq(rig_number(weir_tensors_get(state, "param_groups.0.lr"), 0), 0.1);
  weir_ok(weir_optimizer_load_state(two, state));
  WEIR_NO_GRAD weir_ok(weir_copy_(b, a, false));
  set_gradient(a, grads);
  set_gradient(b, grads);
  weir_ok(weir_optimizer_step(one));
  weir_ok(weir_optimizer_step(two));
  rig_same(a, b, 0);
}
END_TEST

START_TEST(a_state_of_another_is_refused_and_changes_nothing)
{
  double values[3] = {1, -2, 3};
  WEIR_TENSOR a = parameter_of(values, 3, WEIR_FLOAT32, CPU);
  WEIR_TENSOR small = parameter_of(values, 2, WEIR_FLOAT32, CPU);
  WEIR_OPTIMIZER o = NULL;
  WEIR_TENSORS state = NULL;
  weir_optim_options options;
  weir_ok(weir_optimizer_create(&o, WEIR_ADAM, &a, 1, NULL));
  weir_ok(weir_tensors_create(&state));
  weir_ok(weir_tensors_put(state, "param_groups.0.lr", small));
  weir_not(WEIR_EINVAL, "", weir_optimizer_load_state(o, state));
  weir_tensors_drop(&state);
  weir_ok(weir_tensors_create(&state));
  weir_ok(weir_tensors_put(state, "state.0.exp_avg", small));
  weir_not(WEIR_EINVAL, "state.0.exp_avg has the shape [2], its parameter [3]",
           weir_optimizer_load_state(o, state));
  weir_tensors_drop(&state);
  weir_ok(weir_tensors_create(&state));
  weir_ok(weir_tensors_put(state, "state.7.exp_avg", a));
  weir_not(WEIR_EINVAL, "a parameter that this optimizer of 1 has not",
           weir_optimizer_load_state(o, state));
  weir_ok(weir_optimizer_get_options(&options, o, 0));
  ck_assert_double_eq(options.lr, 1e-3);
}
END_TEST

/* A step of two parameters with every request of host memory refused in turn. */
START_TEST(a_step_that_lacks_memory_changes_nothing)
{
  double values[3] = {1, -2, 3}, got[3];
  weir_device device = device_of_case(_i);
  for (int nth = 1;; nth++) {
    weir_tensor *p[2] = {parameter_of(values, 3, WEIR_FLOAT64, device),
                         parameter_of(values, 3, WEIR_FLOAT64, device)};
    WEIR_OPTIMIZER o = NULL;
    weir_ok(weir_optimizer_create(&o, WEIR_ADAM, p, 2, NULL));
    set_gradient(p[0], values);
    set_gradient(p[1], values);
    rig_fail_host(nth);
    weir_status st = weir_optimizer_step(o);
    bool failed = rig_failed_host();
    rig_fail_host(0);
    if (!failed) weir_ok(st);
    for (int k = 0; k < 2 && st; k++) {
      weir_ok(weir_tensor_read(got, sizeof got, WEIR_FLOAT64, p[k]));
      for (int i = 0; i < 3; i++)
        ck_assert_double_eq(got[i], values[i]);
    }
    weir_tensor_drop(&p[0]);
    weir_tensor_drop(&p[1]);
    if (!failed) break;
  }
}
END_TEST

START_TEST(gradients_are_clipped_by_their_common_norm)
{
  double zero[2] = {0, 0}, three[2] = {3, 0}, four[2] = {0, 4};
  weir_device device = device_of_case(_i);
  WEIR_TENSOR a = parameter_of(zero, 2, WEIR_FLOAT32, device);
  WEIR_TENSOR b = parameter_of(zero, 2, WEIR_FLOAT32, device);
  WEIR_TENSOR none = parameter_of(zero, 2, WEIR_FLOAT32, device);
  WEIR_TENSOR total = NULL;
  set_gradient(a, three);
  set_gradient(b, four);
  weir_tensor *list[] = {a, none, b};
  weir_ok(weir_clip_grad_norm_(&total, list, 3, 10, 2));
  ck_assert_double_eq(rig_number(total, 0), 5);
  ck_assert_double_eq(rig_number(weir_tensor_grad(b), 1), 4); /* within the bound */
  weir_tensor_drop(&total);
  weir_ok(weir_clip_grad_norm_(&total, list, 3, 1, 2));
  ck_assert_double_eq_tol(rig_number(weir_tensor_grad(a), 0), 0.6, 1e-6);
  ck_assert_double_eq_tol(rig_number(weir_tensor_grad(b), 1), 0.8, 1e-6);
  weir_ok(weir_clip_grad_value_(list, 3, 0.7));
  ck_assert_double_eq_tol(rig_number(weir_tensor_grad(a), 0), 0.6, 1e-6);
  ck_assert_double_eq_tol(rig_number(weir_tensor_grad(b), 1), 0.7, 1e-6);
  weir_tensor_drop(&total);
  weir_ok(weir_clip_grad_norm_(&total, &none, 1, 1, 2));
  ck_assert_double_eq(rig_number(total, 0), 0);
}
END_TEST

/* ---- schedules ------------------------------------------------------------------------------- */

static double rate_of(const weir_optimizer *o)
{
  weir_optim_options options;
  weir_ok(weir_optimizer_get_options(&options, o, 0));
  return options.lr;
}

static double halved(int64_t epoch, void *context)
{
  (void)context;
  return pow(0.5, (double)epoch);
}

START_TEST(rates_follow_their_formulas)
{
  enum { EPOCHS = 9 };
  static const int64_t stones[] = {2, 5, 5};
  const struct {
    weir_schedule_kind kind;
    weir_schedule_options o;
    double want[EPOCHS]; /* of a first lr of 1 */
  } rows[] = {
      {WEIR_STEP_LR, {.step_size = 3, .gamma = 0.5}, {1, 1, 1, .5, .5, .5, .25, .25, .25}},
      {WEIR_MULTI_STEP_LR,
       {.milestones = stones, .milestone_count = 3, .gamma = 0.5},
       {1, 1, .5, .5, .5, .125, .125, .125, .125}},
      {WEIR_CONSTANT_LR, {.factor = 0.25, .total_iters = 3}, {.25, .25, .25, 1, 1, 1, 1, 1, 1}},
      {WEIR_LINEAR_LR,
       {.start_factor = 0.5, .end_factor = 1, .total_iters = 4},
       {.5, .625, .75, .875, 1, 1, 1, 1, 1}},
      {WEIR_EXPONENTIAL_LR,
       {.gamma = 0.5},
       {1, .5, .25, .125, .0625, .03125, .015625, .0078125, .00390625}},
      {WEIR_POLYNOMIAL_LR, {.total_iters = 4, .power = 1}, {1, .75, .5, .25, 0, 0, 0, 0, 0}},
      {WEIR_COSINE_LR,
       {.t_max = 4},
       {1, .853553391, .5, .146446609, 0, .146446609, .5, .853553391, 1}},
      {WEIR_COSINE_WARM_RESTARTS_LR,
       {.t_0 = 2, .t_mult = 2},
       {1, .5, 1, .853553391, .5, .146446609, 1, .961939766, .853553391}},
      {WEIR_LAMBDA_LR,
       {.lambda = halved},
       {1, .5, .25, .125, .0625, .03125, .015625, .0078125, .00390625}},
  };
  double one = 1;
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    WEIR_TENSOR p = parameter_of(&one, 1, WEIR_FLOAT32, CPU);
    WEIR_OPTIMIZER o = NULL;
    WEIR_SCHEDULE s = NULL;
    weir_ok(weir_optimizer_create(&o, WEIR_SGD, &p, 1, &(weir_optim_options){.lr = 1}));
    weir_ok(weir_schedule_create(&s, o, rows[k].kind, &rows[k].o));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
      ck_assert_int_eq(weir_schedule_epoch(s), epoch);
      ck_assert_double_eq_tol(rate_of(o), rows[k].want[epoch], 1e-9);
      weir_ok(weir_schedule_step(s));
    }
  }
}
END_TEST

START_TEST(a_cycle_goes_up_then_down_and_ends)
{
  double one = 1;
  WEIR_TENSOR p = parameter_of(&one, 1, WEIR_FLOAT32, CPU);
  WEIR_OPTIMIZER o = NULL;
  WEIR_SCHEDULE s = NULL;
  weir_optim_options options;
  weir_schedule_options of = weir_schedule_defaults(WEIR_ONE_CYCLE_LR);
  weir_ok(weir_optimizer_create(&o, WEIR_ADAM, &p, 1, NULL));
  of.max_lr = 1;
  of.total_steps = 10;
  weir_ok(weir_schedule_create(&s, o, WEIR_ONE_CYCLE_LR, &of));
  ck_assert_double_eq_tol(rate_of(o), 1.0 / 25, 1e-12);
  weir_ok(weir_schedule_step(s));
  weir_ok(weir_schedule_step(s));
  ck_assert_double_eq_tol(rate_of(o), 1, 1e-12);
  weir_ok(weir_optimizer_get_options(&options, o, 0));
  ck_assert_double_eq_tol(options.beta1, 0.85, 1e-12);
  for (int step = 2; step < 9; step++)
    weir_ok(weir_schedule_step(s));
  ck_assert_double_eq_tol(rate_of(o), 1.0 / 25 / 1e4, 1e-12);
  weir_ok(weir_schedule_step(s));
  weir_not(WEIR_EINVAL, "Tried to step 11 times. The specified number of total steps is 10",
           weir_schedule_step(s));
  ck_assert_int_eq(weir_schedule_epoch(s), 10);
}
END_TEST

START_TEST(a_plateau_lowers_the_rate_after_patience)
{
  double one = 1;
  WEIR_TENSOR p = parameter_of(&one, 1, WEIR_FLOAT32, CPU);
  WEIR_OPTIMIZER o = NULL;
  WEIR_SCHEDULE s = NULL;
  weir_schedule_options of = weir_schedule_defaults(WEIR_PLATEAU_LR);
  static const double measures[] = {5, 4, 4, 4, 4, 4, 4, 3, 3, 3};
  static const double want[] = {1, 1, 1, 1, .5, .5, .5, .5, .5, .5};
  of.factor = 0.5;
  of.patience = 2;
  of.cooldown = 2;
  weir_ok(weir_optimizer_create(&o, WEIR_SGD, &p, 1, &(weir_optim_options){.lr = 1}));
  weir_ok(weir_schedule_create(&s, o, WEIR_PLATEAU_LR, &of));
  for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
    weir_ok(weir_schedule_step_measure(s, measures[i]));
    ck_assert_double_eq(rate_of(o), want[i]);
  }
  weir_not(WEIR_EINVAL, "weir_schedule_step_measure", weir_schedule_step(s));
}
END_TEST

START_TEST(a_schedules_state_goes_on_where_it_was_taken)
{
  double one = 1;
  WEIR_TENSOR p = parameter_of(&one, 1, WEIR_FLOAT32, CPU);
  WEIR_OPTIMIZER o = NULL;
  WEIR_SCHEDULE a = NULL;
  WEIR_SCHEDULE b = NULL;
  WEIR_TENSORS state = NULL;
  weir_schedule_options of = {.t_0 = 2, .t_mult = 2};
  weir_ok(weir_optimizer_create(&o, WEIR_SGD, &p, 1, &(weir_optim_options){.lr = 1}));
  weir_ok(weir_schedule_create(&a, o, WEIR_COSINE_WARM_RESTARTS_LR, &of));
  for (int i = 0; i < 3; i++)
    weir_ok(weir_schedule_step(a));
  weir_ok(weir_schedule_state(&state, a));
  weir_ok(weir_schedule_step(a));
  double want = rate_of(o);
  weir_ok(weir_schedule_create(&b, o, WEIR_COSINE_WARM_RESTARTS_LR, &of));
  weir_ok(weir_schedule_load_state(b, state));
  ck_assert_int_eq(weir_schedule_epoch(b), 3);
  weir_ok(weir_schedule_step(b));
  ck_assert_double_eq(rate_of(o), want);
  weir_tensors_drop(&state);
  weir_ok(weir_tensors_create(&state));
  weir_not(WEIR_EINVAL, "the state of a schedule has no last_epoch",
           weir_schedule_load_state(b, state));
  ck_assert_int_eq(weir_schedule_epoch(b), 4);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("nn/optim");
  TCase *t = rig_case(suite);
  tcase_add_loop_test(t, steps_are_the_formulas_in_every_dtype, 0, 2);
  tcase_add_loop_test(t, a_parameter_of_any_strides_follows, 0, 2);
  tcase_add_test(t, groups_have_options_of_their_own);
  tcase_add_test(t, what_torch_refuses_is_refused_in_its_words);
  tcase_add_test(t, a_state_goes_on_where_it_was_taken);
  tcase_add_test(t, a_state_of_another_is_refused_and_changes_nothing);
  tcase_add_loop_test(t, a_step_that_lacks_memory_changes_nothing, 0, 2);
  tcase_add_loop_test(t, gradients_are_clipped_by_their_common_norm, 0, 2);
  tcase_add_test(t, rates_follow_their_formulas);
  tcase_add_test(t, a_cycle_goes_up_then_down_and_ends);
  tcase_add_test(t, a_plateau_lowers_the_rate_after_patience);
  tcase_add_test(t, a_schedules_state_goes_on_where_it_was_taken);
  return rig_run(suite);
}
