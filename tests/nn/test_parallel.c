/* test_parallel.c: data parallelism (row 27), on 0, 1, 2 and 8 devices of the software device. */
#include <pthread.h>
#include "core/tensor/announce.h"
#include "tests/nn/rig.h"

enum { MOST = 8 };

static weir_device devices[MOST];

/* So many devices, and the rest of `devices` is not asked for. */
static void with(int count)
{
  rig_devices(count);
  for (int i = 0; i < MOST; i++)
    devices[i] = CUDA(i);
}

static weir_tensor *scalar(float value, weir_device device)
{
  weir_tensor *t;
  weir_ok(weir_tensor_from(&t, &value, WEIR_FLOAT32, weir_shape_of(0, NULL),
                           &(weir_options){.device = device}));
  return t;
}

static void drop_all(weir_tensor **t, int count)
{
  for (int i = 0; i < count; i++)
    weir_tensor_drop(&t[i]);
}

/* Conv2d(1, 4, 3), ReLU, Flatten, Linear(4 * 36, 5). */
static weir_module *make_conv_linear_model(void)
{
  weir_module *c[4], *m;
  weir_manual_seed(1);
  weir_ok(weir_module_conv2d(&c[0], 1, 4, 3, NULL));
  weir_ok(weir_module_relu(&c[1]));
  weir_ok(weir_module_flatten(&c[2], 1, -1));
  weir_ok(weir_module_linear(&c[3], 4 * 36, 5, NULL));
  weir_ok(weir_module_sequential(&m, c, 4));
  return m;
}

/* ---- the parts ------------------------------------------------------------------------------- */

START_TEST(a_tensor_is_scattered_as_torch_chunks_it)
{
  static const struct {
    int64_t rows;
    int devices, parts;
    int64_t size[MOST];
  } cases[] = {{10, 4, 4, {3, 3, 3, 1}},
               {10, 2, 2, {5, 5}},
               {3, 8, 3, {1, 1, 1}},
               {9, 8, 5, {2, 2, 2, 2, 1}},
               {8, 8, 8, {1, 1, 1, 1, 1, 1, 1, 1}},
               {7, 1, 1, {7}}};
  with(MOST);
  for (int from = 0; from < 2; from++)
    for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
      WEIR_TENSOR x = rig_tensor(weir_shape(cases[n].rows, 3), from ? CUDA(0) : CPU, (unsigned)n);
      weir_tensor *out[MOST];
      int parts;
      int64_t at = 0;
      weir_ok(weir_parallel_scatter(out, &parts, x, devices, cases[n].devices));
      ck_assert_int_eq(parts, cases[n].parts);
      for (int i = 0; i < parts; i++) {
        WEIR_TENSOR rows = NULL;
        ck_assert(rig_on(out[i], devices[i]));
        weir_ok(weir_narrow(&rows, x, 0, at, cases[n].size[i]));
        rig_same(out[i], rows, 0);
        at += cases[n].size[i];
      }
      ck_assert_int_eq(at, cases[n].rows);
      drop_all(out, parts);
    }
}
END_TEST

START_TEST(a_tensor_without_dimensions_cannot_be_scattered)
{
  with(2);
  WEIR_TENSOR x = scalar(1, CPU);
  weir_tensor *out[2];
  int parts;
  weir_not(WEIR_EINVAL, "chunk expects at least a 1-dimensional tensor",
           weir_parallel_scatter(out, &parts, x, devices, 2));
  ck_assert_int_eq(parts, 0);
}
END_TEST

START_TEST(tensors_are_gathered_in_order_where_they_shall_be)
{
  with(3);
  WEIR_TENSOR x = rig_tensor(weir_shape(7, 2, 3), CPU, 1);
  weir_tensor *parts[3], *all;
  int count;
  weir_ok(weir_parallel_scatter(parts, &count, x, devices, 3));
  for (int where = -1; where < 3; where++) {
    weir_ok(weir_parallel_gather(&all, parts, count, where < 0 ? CPU : CUDA(where)));
    ck_assert(rig_on(all, where < 0 ? CPU : CUDA(where)));
    rig_same(all, x, 0);
    weir_tensor_release(all);
  }
  drop_all(parts, count);
}
END_TEST

START_TEST(numbers_are_gathered_to_a_row_with_a_warning)
{
  rig_log log = {0};
  with(2);
  weir_set_log_callback(rig_logged, &log);
  weir_tensor *t[2] = {scalar(3, CUDA(0)), scalar(4, CUDA(1))}, *all;
  weir_ok(weir_parallel_gather(&all, t, 2, CUDA(1)));
  ck_assert(weir_tensor_dim(all) == 1 && weir_tensor_size(all, 0) == 2);
  ck_assert(rig_number(all, 0) == 3 && rig_number(all, 1) == 4);
  ck_assert_int_eq(log.count, 1);
  ck_assert_ptr_nonnull(strstr(log.text, "all input tensors were scalars"));
  weir_tensor_release(all);
  drop_all(t, 2);
}
END_TEST

START_TEST(what_does_not_fit_together_is_not_gathered)
{
  with(2);
  weir_tensor *t[2] = {rig_tensor(weir_shape(2, 4), CUDA(0), 1),
                       rig_tensor(weir_shape(2, 3), CUDA(1), 2)},
              *all;
  weir_not(WEIR_EINVAL, "Input tensor at index 1 has invalid shape [2, 3], but expected [2, 4]",
           weir_parallel_gather(&all, t, 2, CUDA(0)));
  ck_assert_ptr_null(all);
  weir_tensor_release(t[1]);
  weir_ok(
      weir_zeros(&t[1], weir_shape(2, 4), &(weir_options){.dtype = WEIR_INT64, .device = CUDA(1)}));
  weir_not(WEIR_EINVAL, "Input tensor at index 1 has dtype weir.int64, but expected weir.float32",
           weir_parallel_gather(&all, t, 2, CUDA(0)));
  weir_not(WEIR_EINVAL, "nothing", weir_parallel_gather(&all, t, 0, CUDA(0)));
  drop_all(t, 2);
}
END_TEST

typedef struct data {
  int *clones, *ended; /* counted in the test */
} data;

static weir_status data_clone(void **out, const void *of)
{
  data *copy = malloc(sizeof *copy);
  ck_assert_ptr_nonnull(copy);
  *copy = *(const data *)of;
  ++*copy->clones;
  *out = copy;
  return WEIR_OK;
}

static void data_destroy(void *of)
{
  ++*((data *)of)->ended;
  free(of);
}

START_TEST(a_replica_has_its_own_tensors_and_the_structure_of_the_module)
{
  static const weir_module_class kind = {
      .name = "Own", .clone = data_clone, .destroy = data_destroy};
  int clones = 0, ended = 0;
  void *own = NULL;
  with(2);
  weir_ok(data_clone(&own, &(data){&clones, &ended}));
  weir_module *m, *part = make_conv_linear_model(), *out[2];
  weir_ok(weir_module_new(&m, &kind, own));
  weir_ok(weir_module_add(m, "a", weir_module_retain(part)));
  weir_ok(weir_module_add(m, "b", part)); /* the same once more */
  weir_ok(weir_module_add_parameter(m, "tied",
                                    weir_tensor_retain(weir_module_parameter(part, "3.weight"))));
  weir_ok(weir_module_add_buffer(m, "steps", rig_count(4, weir_shape(1)), false));
  weir_module_train(m, false);
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_replicate(out, m, devices, 2));
  ck_assert_int_eq(clones, 3);
  for (int i = 0; i < 2; i++) {
    const weir_tensor *w = weir_module_parameter(out[i], "a.3.weight");
    ck_assert(rig_on(w, devices[i]));
    ck_assert_ptr_eq(weir_module_parameter(out[i], "tied"), w);
    ck_assert_ptr_eq(weir_module_child(out[i], "a"), weir_module_child(out[i], "b"));
    rig_same(w, weir_module_parameter(m, "a.3.weight"), 0);
    ck_assert(rig_number(weir_module_buffer(out[i], "steps"), 0) == 4);
    ck_assert(!weir_module_is_training(weir_module_child(out[i], "a.1")));
  }
  /* What is there already is shared. */
  ck_assert_ptr_eq(weir_module_parameter(out[0], "tied"), weir_module_parameter(m, "tied"));
  weir_module_release(m);
  ck_assert(rig_on(weir_module_parameter(out[1], "b.0.bias"), CUDA(1)));
  weir_module_release(out[0]);
  weir_module_release(out[1]);
  ck_assert_int_eq(ended, 3);
}
END_TEST

/* ---- a thread a device ----------------------------------------------------------------------- */

typedef struct meeting {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int here, wanted, fails_from; /* devices from this index on fail */
} meeting;

/* Goes on when `wanted` threads are here, each with its device current. */
static weir_status meet_replicas(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                 int count)
{
  meeting *m = weir_module_data(self);
  weir_device now;
  char path[WEIR_TENSOR_TEXT];
  (void)count;
  pthread_mutex_lock(&m->lock);
  m->here++;
  pthread_cond_broadcast(&m->changed);
  while (m->here < m->wanted)
    pthread_cond_wait(&m->changed, &m->lock);
  pthread_mutex_unlock(&m->lock);
  weir_status st = weir_current_device(&now);
  module_path_text(path);
  if (strcmp(path, "DataParallel.module") != 0) return weir_fail(WEIR_EINTERNAL, "in %s", path);
  if (st || !weir_device_equal(now, weir_tensor_device(in[0]))) return WEIR_EINTERNAL;
  int index = weir_device_index(now);
  if (index >= m->fails_from) return weir_fail(WEIR_ELIMIT, "not on cuda:%d", index);
  return weir_add_scalar(out, in[0], weir_float(index));
}

static const weir_module_class meeting_kind = {.name = "Meeting", .forward = meet_replicas};

START_TEST(all_devices_calculate_at_once_each_current_in_its_thread)
{
  with(4);
  meeting at = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 4, MOST};
  weir_module *m, *p;
  weir_tensor *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(8, 2), CPU, 1);
  weir_ok(weir_module_new(&m, &meeting_kind, &at));
  weir_ok(weir_data_parallel(&p, m, NULL));
  weir_ok(weir_module_call(&y, p, x)); /* hangs unless all four are there */
  ck_assert(rig_on(y, CUDA(0)));
  for (int i = 0; i < 16; i++)
    ck_assert_double_eq_tol(rig_number(y, i), rig_number(x, i) + (i >> 2), 1e-6);
  weir_device now;
  weir_ok(weir_current_device(&now));
  ck_assert_int_eq(weir_device_index(now), 0);
  weir_tensor_release(y);
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

START_TEST(modules_are_applied_to_their_own_inputs_or_none_gives_a_result)
{
  weir_module *m[2];
  weir_tensor *in[2] = {rig_tensor(weir_shape(3), CPU, 1), rig_tensor(weir_shape(5), CPU, 2)};
  weir_tensor *out[2];
  const weir_device here[2] = {CPU, CPU};
  weir_ok(weir_module_relu(&m[0]));
  weir_ok(weir_module_linear(&m[1], 5, 2, NULL));
  weir_ok(weir_parallel_apply(out, m, in, 1, here, 2));
  ck_assert_int_eq(weir_tensor_numel(out[0]), 3);
  ck_assert_int_eq(weir_tensor_numel(out[1]), 2);
  ck_assert(rig_number(out[0], 0) >= 0);
  drop_all(out, 2);
  weir_tensor *swapped[2] = {in[1], in[0]};
  ck_assert_int_eq(weir_parallel_apply(out, m, swapped, 1, here, 2), WEIR_EINVAL);
  ck_assert(!out[0] && !out[1]);
  drop_all(in, 2);
  weir_module_release(m[0]);
  weir_module_release(m[1]);
}
END_TEST

START_TEST(the_first_devices_error_is_returned_with_its_sentence)
{
  with(4);
  meeting at = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 4, 2};
  weir_module *m, *p;
  weir_tensor *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(8, 2), CPU, 1);
  weir_ok(weir_module_new(&m, &meeting_kind, &at));
  weir_ok(weir_data_parallel(&p, m, NULL));
  ck_assert_int_eq(weir_module_call(&y, p, x), WEIR_ELIMIT);
  ck_assert_str_eq(weir_error_message(), "not on cuda:2");
  ck_assert_ptr_null(y);
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

/* ---- the module ------------------------------------------------------------------------------ */

START_TEST(the_result_is_that_of_one_device)
{
  static const int counts[] = {0, 1, 2, 8};
  int n = counts[_i];
  with(n);
  weir_module *m = make_conv_linear_model(), *p;
  weir_tensor *alone, *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(11, 1, 8, 8), CPU, 5);
  weir_ok(weir_module_call(&alone, m, x));
  if (n) weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_data_parallel(&p, m, NULL));
  for (int again = 0; again < 3; again++) {
    WEIR_TENSOR in = NULL;
    weir_ok(weir_to(&in, x, &(weir_options){.device = again == 1 && n ? CUDA(n - 1) : CPU}));
    weir_ok(weir_module_call(&y, p, in));
    ck_assert(rig_on(y, n ? CUDA(0) : CPU));
    rig_same(y, alone, 1e-5);
    weir_tensor_release(y);
  }
  ck_assert_str_eq(weir_module_name(weir_module_child(p, "module")), "Sequential");
  weir_module_release(p);
  weir_module_release(m);
  weir_tensor_release(alone);
}
END_TEST

/* The gradients of the mean of squares of what m makes of x: of the first and the last
 * parameter. */
static void go_back(weir_tensor *grads[2], weir_module *m, weir_module *caller, weir_tensor *x)
{
  static const char *const paths[] = {"0.weight", "3.bias"};
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR square = NULL;
  WEIR_TENSOR loss = NULL;
  weir_ok(weir_module_call(&y, caller, x));
  weir_ok(weir_mul(&square, y, y));
  weir_ok(weir_mean(&loss, square));
  weir_ok(weir_backward(loss, NULL, false));
  for (int i = 0; i < 2; i++)
    weir_ok(weir_clone(&grads[i], weir_tensor_grad(weir_module_parameter(m, paths[i]))));
  weir_module_zero_grad(m);
}

START_TEST(gradients_of_all_parts_add_up_in_the_modules_parameters)
{
  static const int counts[] = {1, 2, 8};
  with(counts[_i]);
  weir_module *m = make_conv_linear_model(), *p;
  weir_tensor *alone[2], *parts[2], *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(11, 1, 8, 8), CPU, 5);
  go_back(alone, m, m, x);
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_data_parallel(&p, m, NULL));
  for (int again = 0; again < 2; again++) {
    go_back(parts, m, p, x);
    for (int i = 0; i < 2; i++) {
      ck_assert(rig_on(parts[i], CUDA(0)));
      rig_same(parts[i], alone[i], 1e-5);
    }
    drop_all(parts, 2);
  }
  WEIR_NO_GRAD weir_ok(weir_module_call(&y, p, x)); /* in its threads, too */
  ck_assert(!weir_tensor_requires_grad(y));
  weir_tensor_release(y);
  drop_all(alone, 2);
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

START_TEST(a_batch_smaller_than_the_devices_uses_fewer)
{
  with(8);
  weir_module *m = make_conv_linear_model(), *p;
  weir_tensor *alone, *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(3, 1, 8, 8), CPU, 5);
  weir_ok(weir_module_call(&alone, m, x));
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_data_parallel(&p, m, NULL));
  weir_ok(weir_module_call(&y, p, x));
  rig_same(y, alone, 1e-5);
  weir_tensor_release(y);
  weir_tensor_release(alone);
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

START_TEST(devices_and_output_are_those_asked_for)
{
  static const int ids[] = {2, 0};
  with(3);
  weir_module *m = make_conv_linear_model(), *p;
  weir_tensor *alone, *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(6, 1, 8, 8), CPU, 5);
  weir_ok(weir_module_call(&alone, m, x));
  weir_ok(weir_module_cuda(m, CUDA(2)));
  weir_ok(weir_data_parallel(&p, m, &(weir_parallel_options){.device_ids = ids, .devices = 2}));
  weir_ok(weir_module_call(&y, p, x));
  ck_assert(rig_on(y, CUDA(2)));
  rig_same(y, alone, 1e-5);
  weir_tensor_release(y);
  weir_module_release(p);
  weir_ok(weir_data_parallel(&p, m, &(weir_parallel_options){ids, 2, CPU}));
  weir_ok(weir_module_call(&y, p, x));
  ck_assert(rig_on(y, CPU));
  rig_same(y, alone, 1e-5);
  weir_tensor_release(y);
  weir_module_release(p);
  weir_ok(weir_data_parallel(&p, m, &(weir_parallel_options){ids + 1, 1, CPU}));
  ck_assert(rig_on(weir_module_parameter(m, "0.weight"), CUDA(0))); /* moved there */
  weir_ok(weir_module_call(&y, p, x));
  ck_assert(rig_on(y, CUDA(0)));
  rig_same(y, alone, 1e-5);
  weir_tensor_release(y);
  weir_module_release(p);
  weir_module_release(m);
  weir_tensor_release(alone);
}
END_TEST

START_TEST(a_module_that_is_elsewhere_is_refused_in_torchs_words)
{
  with(2);
  weir_module *m = make_conv_linear_model(), *p;
  weir_tensor *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(6, 1, 8, 8), CPU, 5);
  weir_ok(weir_data_parallel(&p, m, NULL));
  weir_not(WEIR_EINVAL,
           "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found "
           "one of them on device: cpu",
           weir_module_call(&y, p, x));
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_module_add_buffer(m, "stray", rig_tensor(weir_shape(1), CUDA(1), 1), true));
  weir_not(WEIR_EINVAL,
           "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found "
           "one of them on device: cuda:1",
           weir_module_call(&y, p, x));
  weir_not(WEIR_EINVAL, "at least one tensor", weir_module_call_many(&y, p, NULL, 0));
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

START_TEST(devices_that_are_not_there_are_refused)
{
  static const int ids[] = {0, 5};
  with(2);
  weir_module *m = make_conv_linear_model(), *p;
  weir_not(WEIR_EINVAL, "invalid device ordinal: device_ids[1] is cuda:5, there are 2",
           weir_data_parallel(&p, m, &(weir_parallel_options){.device_ids = ids, .devices = 2}));
  ck_assert_ptr_null(p);
  weir_module_release(m);
}
END_TEST

static weir_status sum_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                               int count)
{
  (void)self;
  return count == 2 ? weir_add(out, in[0], in[1]) : weir_fail(WEIR_EINVAL, "%d tensors", count);
}

START_TEST(several_inputs_are_scattered_alike)
{
  static const weir_module_class kind = {.name = "Sum", .forward = sum_forward};
  with(4);
  weir_module *m, *p;
  weir_tensor *y, *wanted;
  weir_ok(weir_module_new(&m, &kind, NULL));
  weir_ok(weir_data_parallel(&p, m, NULL));
  WEIR_TENSOR a = rig_tensor(weir_shape(9, 2), CPU, 1);
  WEIR_TENSOR b = rig_tensor(weir_shape(9, 2), CPU, 2);
  weir_tensor *in[2] = {a, b};
  weir_ok(weir_module_call_many(&y, p, in, 2));
  weir_ok(weir_add(&wanted, a, b));
  rig_same(y, wanted, 0);
  weir_tensor_release(y);
  weir_tensor_release(wanted);
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

/* ---- order on the devices -------------------------------------------------------------------- */

/* The input is still being made when the call is: nothing waits for it on the host, and all that
 * is made of it on both devices does. */
START_TEST(work_is_in_the_order_of_the_callers_streams_and_the_host_waits_for_nothing)
{
  with(2);
  weir_module *m = make_conv_linear_model(), *p;
  weir_tensor *y = NULL, *before;
  weir_stream *mine;
  WEIR_TENSOR host = rig_tensor(weir_shape(6, 1, 8, 8), CPU, 5);
  WEIR_TENSOR ready = NULL;
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_data_parallel(&p, m, NULL));
  weir_ok(weir_module_call(&before, p, host));
  weir_ok(weir_cuda(&ready, host, CUDA(0), false));
  weir_ok(weir_stream_create(&mine, CUDA(0)));
  WEIR_WITH_STREAM(mine)
  {
    WEIR_TENSOR x = NULL;
    weir_ok(weir_zeros(&x, weir_shape(6, 1, 8, 8), &(weir_options){.device = CUDA(0)}));
    rig_hold(mine);
    weir_ok(weir_copy_(x, ready, true));
    weir_ok(weir_module_call(&y, p, x)); /* hangs if somebody waits for it */
    rig_release(mine);
    weir_ok(weir_stream_synchronize(mine));
  }
  rig_same(y, before, 1e-5);
  weir_tensor_release(y);
  weir_tensor_release(before);
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

/* ---- want of memory -------------------------------------------------------------------------- */

/* The nth copy to a device, or between two, fails. */
START_TEST(a_copy_that_fails_fails_the_call_and_the_next_succeeds)
{
  char list[96];
  with(2);
  weir_module *m = make_conv_linear_model(), *p;
  weir_tensor *y, *right;
  WEIR_TENSOR x = rig_tensor(weir_shape(4, 1, 8, 8), CPU, 5);
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_data_parallel(&p, m, NULL));
  weir_ok(weir_module_call(&right, p, x));
  int failures = 0;
  for (weir_status st = WEIR_ECUDA; st; failures += st != WEIR_OK) {
    int n = failures + 1;
    (void)snprintf(list, sizeof list, "cuMemcpyHtoDAsync_v2:%d=1,cuMemcpyPeerAsync:%d=1", n, n);
    rig_fail_driver(list);
    st = weir_module_call(&y, p, x);
    rig_fail_driver(NULL);
    ck_assert(!st || (st == WEIR_ECUDA && !y));
  }
  ck_assert_int_ge(failures, 4); /* 4 parameters are replicated */
  rig_same(y, right, 1e-6);
  weir_tensor_release(y);
  weir_tensor_release(right);
  weir_module_release(p);
  weir_module_release(m);
}
END_TEST

START_TEST(every_request_of_host_memory_may_fail)
{
  with(2);
  weir_module *m = make_conv_linear_model(), *p = NULL;
  weir_tensor *y = NULL;
  WEIR_TENSOR x = rig_tensor(weir_shape(4, 1, 8, 8), CPU, 5);
  weir_ok(weir_module_cuda(m, CUDA(0)));
  int64_t nth = 0;
  for (bool failed = true; failed;) {
    rig_fail_host(++nth);
    bool was = weir_set_grad_enabled(_i);
    weir_status st = weir_data_parallel(&p, m, NULL);
    if (!st) st = weir_module_call(&y, p, x);
    (void)weir_set_grad_enabled(was);
    failed = rig_failed_host();
    rig_fail_host(0);
    ck_assert(!st || failed);
    weir_tensor_drop(&y);
    weir_module_drop(&p);
  }
  ck_assert_int_gt(nth, 50);
  weir_module_release(m);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("parallel");
  TCase *c = rig_case(suite);
  tcase_add_test(c, a_tensor_is_scattered_as_torch_chunks_it);
  tcase_add_test(c, a_tensor_without_dimensions_cannot_be_scattered);
  tcase_add_test(c, tensors_are_gathered_in_order_where_they_shall_be);
  tcase_add_test(c, numbers_are_gathered_to_a_row_with_a_warning);
  tcase_add_test(c, what_does_not_fit_together_is_not_gathered);
  tcase_add_test(c, a_replica_has_its_own_tensors_and_the_structure_of_the_module);
  tcase_add_test(c, all_devices_calculate_at_once_each_current_in_its_thread);
  tcase_add_test(c, modules_are_applied_to_their_own_inputs_or_none_gives_a_result);
  tcase_add_test(c, the_first_devices_error_is_returned_with_its_sentence);
  tcase_add_loop_test(c, the_result_is_that_of_one_device, 0, 4);
  tcase_add_loop_test(c, gradients_of_all_parts_add_up_in_the_modules_parameters, 0, 3);
  tcase_add_test(c, a_batch_smaller_than_the_devices_uses_fewer);
  tcase_add_test(c, devices_and_output_are_those_asked_for);
  tcase_add_test(c, a_module_that_is_elsewhere_is_refused_in_torchs_words);
  tcase_add_test(c, devices_that_are_not_there_are_refused);
  tcase_add_test(c, several_inputs_are_scattered_alike);
  tcase_add_test(c, work_is_in_the_order_of_the_callers_streams_and_the_host_waits_for_nothing);
  tcase_add_test(c, a_copy_that_fails_fails_the_call_and_the_next_succeeds);
  tcase_add_loop_test(c, every_request_of_host_memory_may_fail, 0, 2);
  return rig_run(suite);
}
