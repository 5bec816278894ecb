/* test_amp.c: autocast: lists, scopes, kept casts, derivatives, threads; gradient scalers. Those
 * with a loop run for the cpu (0) and cuda:0 of the software device (1). */
#include <math.h>
#include <pthread.h>
#include "core/weir/amp.h"
#include "core/weir/grad.h"
#include "tests/nn/rig.h"

static weir_device_type type_of_case(int i)
{
  return i ? WEIR_DEVICE_CUDA : WEIR_DEVICE_CPU;
}

static void has_dtype(weir_tensor *t, weir_dtype dtype)
{
  ck_assert_str_eq(weir_dtype_name(weir_tensor_dtype(t)), weir_dtype_name(dtype));
  weir_tensor_release(t);
}
#define GIVES(dtype, name, ...)                                                                    \
  do {                                                                                             \
    weir_tensor *made_ = NULL;                                                                     \
    weir_ok(weir_##name(&made_, __VA_ARGS__));                                                     \
    has_dtype(made_, dtype);                                                                       \
  } while (0)

/* ---- lists ----------------------------------------------------------------------------------- */

START_TEST(operations_choose_their_dtype_by_the_lists_of_the_device)
{
  weir_dtype lower = _i ? WEIR_FLOAT16 : WEIR_BFLOAT16, wide = WEIR_FLOAT32;
  WEIR_TENSOR a = rig_tensor(weir_shape(4, 4), device_of_case(_i), 1);
  WEIR_TENSOR low = NULL;
  WEIR_TENSOR wider = NULL;
  WEIR_TENSOR line = NULL;
  weir_status st;
  weir_ok(weir_to_dtype(&low, a, lower));
  weir_ok(weir_to_dtype(&wider, a, WEIR_FLOAT64));
  weir_ok(weir_select(&line, a, 0, 0));
  WEIR_AUTOCAST(st, type_of_case(_i), WEIR_DTYPE_NONE)
  {
    ck_assert(weir_is_autocast_enabled(type_of_case(_i)));
    ck_assert(!weir_is_autocast_enabled(type_of_case(!_i)));
    GIVES(lower, mm, a, a);
    GIVES(lower, matmul, a, low);
    GIVES(lower, linear, a, a, NULL);
    GIVES(lower, addmm, a, low, a, 1, 1);
    GIVES(_i ? lower : wide, mv, a, line);
    GIVES(WEIR_FLOAT64, mm, wider, wider);
    GIVES(_i ? wide : lower, exp, low);
    GIVES(_i ? wide : lower, softmax, low, 1);
    GIVES(_i ? wide : lower, sum, low);
    GIVES(wide, prod, low);
    GIVES(wide, mse_loss, low, low, WEIR_REDUCTION_MEAN);
    GIVES(lower, add, low, low);
    GIVES(wide, add, low, a);
    GIVES(lower, sqrt, low);
    GIVES(wide, cat, ((const weir_tensor *[]){low, a}), 2, 0);
    GIVES(lower, cat, ((const weir_tensor *[]){low, low}), 2, 0);
    GIVES(wide, addcmul, low, low, a, weir_int(1));
  }
  weir_ok(st);
  GIVES(wide, mm, a, a);
  GIVES(lower, exp, low);
}
END_TEST

/* torch's LSTM is of oneDNN or cuDNN, in the lower dtype whole; its GRU on the cpu is made of
 * products. */
START_TEST(recurrent_layers_take_and_give_the_lower_dtype)
{
  WEIR_TENSOR x = rig_tensor(weir_shape(2, 3, 4), device_of_case(_i), 1);
  WEIR_MODULE lstm = NULL;
  WEIR_MODULE gru = NULL;
  weir_tensor *out = NULL, *h = NULL, *c = NULL;
  weir_status st;
  weir_ok(weir_module_lstm(&lstm, 4, 4, NULL));
  weir_ok(weir_module_gru(&gru, 4, 4, NULL));
  weir_ok(weir_module_to(lstm, &(weir_options){.device = device_of_case(_i)}));
  weir_ok(weir_module_to(gru, &(weir_options){.device = device_of_case(_i)}));
  WEIR_AUTOCAST(st, type_of_case(_i), WEIR_BFLOAT16)
  {
    WEIR_TENSOR y = NULL;
    weir_ok(weir_recurrent(&y, &h, &c, lstm, x, NULL, NULL));
    ck_assert_int_eq(weir_tensor_dtype(y), WEIR_BFLOAT16);
    has_dtype(h, WEIR_BFLOAT16);
    has_dtype(c, WEIR_BFLOAT16);
    weir_ok(weir_recurrent(&out, NULL, NULL, gru, x, NULL, NULL));
    has_dtype(out, _i ? WEIR_BFLOAT16 : WEIR_FLOAT32);
    weir_ok(weir_recurrent(&out, NULL, NULL, lstm, y, NULL, NULL)); /* of what a layer gave */
    has_dtype(out, WEIR_BFLOAT16);
  }
  weir_ok(st);
}
END_TEST

START_TEST(cross_entropy_on_a_probability_is_refused_on_cuda_alone)
{
  WEIR_TENSOR a = rig_tensor(weir_shape(4), device_of_case(_i), 1);
  WEIR_TENSOR p = NULL;
  weir_tensor *loss = NULL;
  weir_status st;
  weir_ok(weir_sigmoid(&p, a));
  WEIR_AUTOCAST(st, type_of_case(_i), WEIR_DTYPE_NONE)
  {
    if (_i)
      weir_not(WEIR_ENOTSUP, "are unsafe to autocast",
               weir_binary_cross_entropy(&loss, p, p, NULL, WEIR_REDUCTION_MEAN));
    else
      weir_ok(weir_binary_cross_entropy(&loss, p, p, NULL, WEIR_REDUCTION_MEAN));
  }
  weir_ok(st);
  weir_tensor_release(loss);
}
END_TEST

/* ---- scopes ---------------------------------------------------------------------------------- */

START_TEST(scopes_nest_and_restore_however_they_are_left)
{
  WEIR_TENSOR a = rig_tensor(weir_shape(2, 2), CPU, 1);
  weir_autocast outer, inner;
  weir_status st;
  weir_ok(weir_autocast_enter(&outer, WEIR_DEVICE_CPU, NULL));
  weir_ok(weir_autocast_enter(&inner, WEIR_DEVICE_CPU,
                              &(weir_autocast_options){.dtype = WEIR_FLOAT16}));
  ck_assert_int_eq(weir_get_autocast_dtype(WEIR_DEVICE_CPU), WEIR_FLOAT16);
  GIVES(WEIR_FLOAT16, mm, a, a);
  for (int i = 0; i < 2; i++) {
    WEIR_AUTOCAST(st, WEIR_DEVICE_CPU, WEIR_BFLOAT16)
    {
      GIVES(WEIR_BFLOAT16, mm, a, a);
      if (i) break;
    }
    weir_ok(st);
    GIVES(WEIR_FLOAT16, mm, a, a);
  }
  weir_autocast off;
  weir_ok(weir_autocast_enter(&off, WEIR_DEVICE_CPU, &(weir_autocast_options){.disabled = true}));
  GIVES(WEIR_FLOAT32, mm, a, a);
  weir_autocast_exit(&off);
  weir_autocast_exit(&inner);
  GIVES(WEIR_BFLOAT16, mm, a, a);
  weir_autocast_exit(&outer);
  weir_autocast_exit(&outer);
  GIVES(WEIR_FLOAT32, mm, a, a);
  WEIR_AUTOCAST(st, WEIR_DEVICE_CPU, WEIR_FLOAT32)
  {
    ck_abort_msg("a dtype that is refused");
  }
  ck_assert_int_eq(st, WEIR_EINVAL);
  ck_assert(!weir_is_autocast_enabled(WEIR_DEVICE_CPU));
}
END_TEST

static void *multiplies(void *a)
{
  weir_tensor *made = NULL;
  weir_ok(weir_mm(&made, a, a));
  has_dtype(made, WEIR_FLOAT32);
  return NULL;
}

START_TEST(other_threads_are_as_they_were_but_for_replicas)
{
  rig_devices(2);
  WEIR_TENSOR a = rig_tensor(weir_shape(2, 2), CUDA(0), 1);
  WEIR_TENSOR b = rig_tensor(weir_shape(2, 2), CUDA(1), 1);
  WEIR_MODULE layer = NULL;
  WEIR_MODULE other = NULL;
  weir_tensor *out[2], *in[] = {a, b};
  weir_device there[] = {CUDA(0), CUDA(1)};
  pthread_t thread;
  weir_status st;
  weir_ok(weir_module_linear(&layer, 2, 2, NULL));
  weir_ok(weir_module_linear(&other, 2, 2, NULL));
  weir_ok(weir_module_to(layer, &(weir_options){.device = CUDA(0)}));
  weir_ok(weir_module_to(other, &(weir_options){.device = CUDA(1)}));
  WEIR_AUTOCAST(st, WEIR_DEVICE_CUDA, WEIR_BFLOAT16)
  {
    ck_assert(!pthread_create(&thread, NULL, multiplies, a));
    ck_assert(!pthread_join(thread, NULL));
    weir_ok(weir_parallel_apply(out, (weir_module *[]){layer, other}, in, 1, there, 2));
    has_dtype(out[0], WEIR_BFLOAT16);
    has_dtype(out[1], WEIR_BFLOAT16);
  }
  weir_ok(st);
}
END_TEST

/* ---- kept casts and derivatives -------------------------------------------------------------- */

START_TEST(gradients_arrive_in_the_parameters_dtype_through_a_kept_cast)
{
  WEIR_TENSOR x = rig_tensor(weir_shape(3, 4), device_of_case(_i), 1);
  WEIR_TENSOR w = rig_tensor(weir_shape(5, 4), device_of_case(_i), 2);
  WEIR_TENSOR want = NULL;
  weir_status st;
  weir_ok(weir_requires_grad_(w, true));
  WEIR_AUTOCAST(st, type_of_case(_i), WEIR_FLOAT16)
  {
    for (int i = 0; i < 2; i++) {
      WEIR_TENSOR y = NULL;
      WEIR_TENSOR sum = NULL;
      weir_ok(weir_linear(&y, x, w, NULL));
      weir_ok(weir_sum(&sum, y));
      weir_ok(weir_backward(sum, NULL, false));
    }
  }
  weir_ok(st);
  weir_tensor *grad = weir_tensor_grad(w);
  ck_assert_int_eq(weir_tensor_dtype(grad), WEIR_FLOAT32);
  weir_ok(weir_sum_dim(&want, x, 0, false));
  for (int i = 0; i < 4; i++)
    ck_assert_double_eq_tol(rig_number(grad, i), 2 * rig_number(want, i), 0.01);
}
END_TEST

/* A product by a parameter of ones, w times as much as its elements. */
static double product_by(weir_tensor *w)
{
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR y = NULL;
  weir_ok(weir_ones(&one, weir_shape(1, 1), NULL));
  weir_ok(weir_mm(&y, one, w));
  return rig_number(y, 0);
}

START_TEST(a_parameter_that_changes_is_cast_again_and_so_is_one_cast_unrecorded)
{
  WEIR_TENSOR w = NULL;
  WEIR_TENSOR y = NULL;
  weir_autocast scope;
  weir_ok(weir_ones(&w, weir_shape(1, 1), NULL));
  weir_ok(weir_requires_grad_(w, true));
  weir_ok(weir_autocast_enter(&scope, WEIR_DEVICE_CPU, NULL));
  bool was = weir_set_grad_enabled(false);
  ck_assert_double_eq(product_by(w), 1);
  weir_ok(weir_add_scalar_(w, weir_int(1)));
  ck_assert_double_eq(product_by(w), 2);
  (void)weir_set_grad_enabled(was);
  weir_ok(weir_mm(&y, w, w));
  ck_assert(weir_tensor_requires_grad(y));
  weir_clear_autocast_cache();
  ck_assert_double_eq(product_by(w), 2);
  weir_autocast_exit(&scope);
}
END_TEST

/* Every request of host memory refused in turn: an error, and what was before. */
START_TEST(a_call_that_lacks_memory_leaves_everything_as_it_was)
{
  for (int nth = 1;; nth++) {
    WEIR_TENSOR x = rig_tensor(weir_shape(30, 40), CPU, 1);
    WEIR_TENSOR w = rig_tensor(weir_shape(50, 40), CPU, 2);
    WEIR_TENSOR y = NULL;
    WEIR_TENSOR all = NULL;
    weir_autocast scope;
    weir_ok(weir_requires_grad_(w, true));
    weir_ok(weir_autocast_enter(&scope, WEIR_DEVICE_CPU, NULL));
    rig_fail_host(nth);
    weir_status st = weir_linear(&y, x, w, NULL);
    if (!st) st = weir_cat(&all, (const weir_tensor *[]){y, x}, 1, 0);
    bool failed = rig_failed_host();
    rig_fail_host(0);
    weir_autocast_exit(&scope);
    if (st) ck_assert_int_eq(st, WEIR_ENOMEM);
    ck_assert_int_eq(weir_tensor_dtype(w), WEIR_FLOAT32);
    if (!failed) {
      weir_ok(st);
      ck_assert_int_gt(nth, 3);
      break;
    }
  }
}
END_TEST

/* ---- scalers --------------------------------------------------------------------------------- */

typedef struct training {
  weir_device device;
  weir_tensor *p;
  weir_optimizer *optimizer;
  weir_grad_scaler *scaler;
} training;

static training training_on(weir_device device)
{
  training t = {.device = device};
  float ones[] = {1, 1};
  weir_optim_options o = weir_optim_defaults(WEIR_SGD);
  weir_grad_scaler_options s = weir_grad_scaler_defaults();
  o.lr = 1;
  s.init_scale = 8;
  s.growth_interval = 2;
  weir_ok(
      weir_tensor_from(&t.p, ones, WEIR_FLOAT32, weir_shape(2), &(weir_options){.device = device}));
  weir_ok(weir_requires_grad_(t.p, true));
  weir_ok(weir_optimizer_create(&t.optimizer, WEIR_SGD, &t.p, 1, &o));
  weir_ok(weir_grad_scaler_new(&t.scaler, &s));
  return t;
}

static void end_training(training *t)
{
  weir_grad_scaler_drop(&t->scaler);
  weir_optimizer_drop(&t->optimizer);
  weir_tensor_drop(&t->p);
}

/* Gradients are `of` and 1 times the scale. */
static void put_gradient(training *t, float of)
{
  WEIR_TENSOR loss = NULL;
  WEIR_TENSOR scaled = NULL;
  WEIR_TENSOR grad = NULL;
  float scale = (float)weir_grad_scaler_get_scale(t->scaler), values[] = {of * scale, scale};
  weir_ok(weir_ones(&loss, weir_shape(1), &(weir_options){.device = t->device}));
  weir_ok(weir_grad_scaler_scale(&scaled, t->scaler, loss));
  ck_assert_double_eq(rig_number(scaled, 0), scale);
  weir_ok(weir_tensor_from(&grad, values, WEIR_FLOAT32, weir_shape(2),
                           &(weir_options){.device = t->device}));
  weir_ok(weir_tensor_set_grad(t->p, grad));
}

START_TEST(a_step_with_an_infinite_gradient_is_left_out_and_the_scale_falls)
{
  const float bad[] = {INFINITY, -INFINITY, NAN};
  training t = training_on(device_of_case(_i));
  int64_t steps = -1;
  for (int i = 0; i < 3; i++) {
    put_gradient(&t, bad[i]);
    weir_ok(weir_grad_scaler_step(t.scaler, t.optimizer));
    weir_ok(weir_grad_scaler_update(t.scaler));
    ck_assert_double_eq(rig_number(t.p, 1), 1);
    ck_assert_double_eq(weir_grad_scaler_get_scale(t.scaler), 8 / exp2(i + 1));
  }
  put_gradient(&t, .25f);
  weir_ok(weir_grad_scaler_step(t.scaler, t.optimizer));
  weir_ok(weir_grad_scaler_update(t.scaler));
  ck_assert_double_eq(rig_number(t.p, 0), .75);
  ck_assert_double_eq(rig_number(t.p, 1), 0);
  weir_grad_scaler_state(NULL, &steps, t.scaler);
  ck_assert_int_eq(steps, 1);
  put_gradient(&t, 1);
  weir_ok(weir_grad_scaler_unscale_(t.scaler, t.optimizer));
  ck_assert_double_eq(rig_number(weir_tensor_grad(t.p), 0), 1);
  weir_ok(weir_grad_scaler_update(t.scaler)); /* no step: the flag is read here */
  ck_assert_double_eq(weir_grad_scaler_get_scale(t.scaler), 2);
  end_training(&t);
}
END_TEST

START_TEST(calls_out_of_order_are_refused_in_torchs_words)
{
  training t = training_on(CPU);
  weir_not(WEIR_EINVAL, "Attempted step but _scale is None.  This may indicate",
           weir_grad_scaler_step(t.scaler, t.optimizer));
  put_gradient(&t, 1);
  weir_ok(weir_grad_scaler_unscale_(t.scaler, t.optimizer));
  weir_not(WEIR_EINVAL, "unscale_() has already been called on this optimizer",
           weir_grad_scaler_unscale_(t.scaler, t.optimizer));
  weir_ok(weir_grad_scaler_step(t.scaler, t.optimizer));
  weir_not(WEIR_EINVAL, "unscale_() is being called after step().",
           weir_grad_scaler_unscale_(t.scaler, t.optimizer));
  weir_not(WEIR_EINVAL, "step() has already been called since the last update().",
           weir_grad_scaler_step(t.scaler, t.optimizer));
  weir_ok(weir_grad_scaler_update(t.scaler));
  weir_not(WEIR_EINVAL, "No inf checks were recorded prior to update.",
           weir_grad_scaler_update(t.scaler));
  weir_optimizer_zero_grad(t.optimizer);
  weir_not(WEIR_EINVAL, "No inf checks were recorded for this optimizer.",
           weir_grad_scaler_step(t.scaler, t.optimizer));
  weir_grad_scaler *none = NULL;
  weir_grad_scaler_options o = weir_grad_scaler_defaults();
  o.growth_factor = 1;
  weir_not(WEIR_EINVAL, "The growth factor must be > 1.0.", weir_grad_scaler_new(&none, &o));
  end_training(&t);
}
END_TEST

START_TEST(a_scalers_state_goes_on_where_it_was_taken)
{
  training t = training_on(CPU);
  WEIR_GRAD_SCALER other = NULL;
  weir_grad_scaler_options state;
  int64_t steps;
  put_gradient(&t, 1);
  weir_ok(weir_grad_scaler_step(t.scaler, t.optimizer));
  weir_ok(weir_grad_scaler_update(t.scaler));
  weir_ok(weir_grad_scaler_update_to(t.scaler, 32));
  weir_grad_scaler_state(&state, &steps, t.scaler);
  weir_ok(weir_grad_scaler_new(&other, NULL));
  ck_assert_double_eq(weir_grad_scaler_get_scale(other), 65536);
  weir_ok(weir_grad_scaler_load_state(other, &state, steps));
  weir_grad_scaler_release(t.scaler);
  t.scaler = other;
  other = NULL;
  put_gradient(&t, 1);
  weir_ok(weir_grad_scaler_step(t.scaler, t.optimizer));
  weir_ok(weir_grad_scaler_update(t.scaler));
  ck_assert_double_eq(weir_grad_scaler_get_scale(t.scaler), 64); /* the second step in a row */
  end_training(&t);
}
END_TEST

START_TEST(an_unscaling_that_lacks_memory_leaves_gradients_as_they_were)
{
  for (int nth = 1;; nth++) {
    training t = training_on(CPU);
    put_gradient(&t, 3);
    rig_fail_host(nth);
    weir_status st = weir_grad_scaler_unscale_(t.scaler, t.optimizer);
    bool failed = rig_failed_host();
    rig_fail_host(0);
    ck_assert_double_eq(rig_number(weir_tensor_grad(t.p), 0), st ? 24 : 3);
    if (st) weir_ok(weir_grad_scaler_step(t.scaler, t.optimizer));
    end_training(&t);
    if (failed) continue;
    weir_ok(st);
    ck_assert_int_gt(nth, 2);
    break;
  }
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("nn/amp");
  TCase *t = rig_case(suite);
  tcase_add_loop_test(t, operations_choose_their_dtype_by_the_lists_of_the_device, 0, 2);
  tcase_add_loop_test(t, recurrent_layers_take_and_give_the_lower_dtype, 0, 2);
  tcase_add_loop_test(t, cross_entropy_on_a_probability_is_refused_on_cuda_alone, 0, 2);
  tcase_add_test(t, scopes_nest_and_restore_however_they_are_left);
  tcase_add_test(t, other_threads_are_as_they_were_but_for_replicas);
  tcase_add_loop_test(t, gradients_arrive_in_the_parameters_dtype_through_a_kept_cast, 0, 2);
  tcase_add_test(t, a_parameter_that_changes_is_cast_again_and_so_is_one_cast_unrecorded);
  tcase_add_test(t, a_call_that_lacks_memory_leaves_everything_as_it_was);
  tcase_add_loop_test(t, a_step_with_an_infinite_gradient_is_left_out_and_the_scale_falls, 0, 2);
  tcase_add_test(t, calls_out_of_order_are_refused_in_torchs_words);
  tcase_add_test(t, a_scalers_state_goes_on_where_it_was_taken);
  tcase_add_test(t, an_unscaling_that_lacks_memory_leaves_gradients_as_they_were);
  return rig_run(suite);
}
