/* test_layers.c: the layers (row 26), on the cpu (loop 0) and on cuda:0 of the software device (1),
 * against sums written out here in double. */
#include <math.h>
#include "tests/nn/rig.h"

static double *read(const weir_tensor *t)
{
  size_t bytes = (size_t)weir_tensor_numel(t) * sizeof(double);
  double *v = malloc(bytes + 1);
  weir_ok(weir_tensor_read(v, bytes, WEIR_FLOAT64, t));
  return v;
}

/* ---- the layers' own sums -------------------------------------------------------------------- */

START_TEST(linear_is_x_times_weight_transposed_plus_bias)
{
  weir_device there = device_of_case(_i);
  weir_module *m;
  weir_tensor *y;
  weir_ok(weir_module_linear(&m, 10, 5, &(weir_layer_options){.tensor.device = there}));
  WEIR_TENSOR x = rig_tensor(weir_shape(4, 10), there, 1);
  weir_ok(weir_module_call(&y, m, x));
  ck_assert(rig_on(y, there));
  ck_assert(weir_tensor_size(y, 0) == 4 && weir_tensor_size(y, 1) == 5);
  double *in = read(x), *out = read(y), *w = read(weir_module_parameter(m, "weight")),
         *b = read(weir_module_parameter(m, "bias"));
  for (int i = 0; i < 4; i++)
    for (int o = 0; o < 5; o++) {
      double sum = b[o];
      for (int k = 0; k < 10; k++)
        sum += in[i * 10 + k] * w[o * 10 + k];
      ck_assert_double_eq_tol(out[i * 5 + o], sum, 1e-5);
    }
  free(in), free(out), free(w), free(b);
  weir_tensor_release(y);
  weir_module_release(m);
}
END_TEST

/* out[n][o][y][x], in double; kernel k, stride s, padding p, dilation d, groups g. */
static double convolved(const double *in, const double *w, const double *b, const int64_t *c,
                        int64_t n, int64_t o, int64_t y, int64_t x)
{
  int64_t ci = c[0], h = c[1], co = c[2], k = c[3], s = c[4], p = c[5], d = c[6], g = c[7];
  int64_t first = o / (co / g) * (ci / g);
  double sum = b ? b[o] : 0;
  for (int64_t i = 0; i < ci / g; i++)
    for (int64_t r = 0; r < k; r++)
      for (int64_t q = 0; q < k; q++) {
        int64_t iy = y * s - p + r * d, ix = x * s - p + q * d;
        if (iy < 0 || ix < 0 || iy >= h || ix >= h) continue;
        sum +=
            in[((n * ci + first + i) * h + iy) * h + ix] * w[((o * (ci / g) + i) * k + r) * k + q];
      }
  return sum;
}

START_TEST(conv2d_is_the_sum_it_is_defined_by)
{
  /* channels in, side, channels out, kernel, stride, padding, dilation, groups, bias */
  static const int64_t cases[][9] = {{1, 12, 20, 5, 1, 0, 1, 1, 1},
                                     {20, 8, 20, 5, 1, 0, 1, 1, 1},
                                     {4, 9, 6, 3, 2, 1, 1, 2, 1},
                                     {2, 11, 3, 3, 1, 2, 2, 1, 0},
                                     {6, 7, 6, 1, 3, 0, 1, 6, 1}};
  weir_device there = device_of_case(_i);
  for (size_t n = 0; n < sizeof cases / sizeof *cases; n++) {
    const int64_t *c = cases[n];
    weir_layer_options o = {.tensor.device = there, .no_bias = !c[8]};
    o.conv = (weir_conv2d_options){{c[4], c[4]}, {c[5], c[5]}, {c[6], c[6]}, c[7]};
    weir_module *m;
    weir_tensor *y;
    weir_ok(weir_module_conv2d(&m, c[0], c[2], c[3], &o));
    WEIR_TENSOR x = rig_tensor(weir_shape(2, c[0], c[1], c[1]), there, (unsigned)n);
    weir_ok(weir_module_call(&y, m, x));
    int64_t side = (c[1] + 2 * c[5] - c[6] * (c[3] - 1) - 1) / c[4] + 1;
    weir_shape s = weir_tensor_shape(y);
    ck_assert(s.count == 4 && s.size[0] == 2 && s.size[1] == c[2] && s.size[2] == side);
    double *in = read(x), *out = read(y), *w = read(weir_module_parameter(m, "weight"));
    double *b = c[8] ? read(weir_module_parameter(m, "bias")) : NULL;
    for (int64_t i = 0; i < weir_tensor_numel(y); i++)
      ck_assert_double_eq_tol(out[i],
                              convolved(in, w, b, c, i / (side * side * c[2]),
                                        i / (side * side) % c[2], i / side % side, i % side),
                              1e-4);
    free(in), free(out), free(w), free(b);
    weir_tensor_release(y);
    weir_module_release(m);
  }
}
END_TEST

START_TEST(layers_without_parameters_do_what_they_are_called)
{
  weir_device there = device_of_case(_i);
  weir_module *relu, *flat, *pool;
  weir_tensor *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(2, 3, 4, 4), there, 3);
  weir_ok(weir_module_relu(&relu));
  weir_ok(weir_module_flatten(&flat, 1, -1));
  weir_ok(weir_module_max_pool2d(&pool, &(weir_pool2d_options){.kernel = {2, 2}}));
  double *in = read(x);
  weir_ok(weir_module_call(&y, relu, x));
  double *out = read(y);
  for (int i = 0; i < 96; i++)
    ck_assert_double_eq(out[i], in[i] > 0 ? in[i] : 0);
  free(out);
  weir_tensor_release(y);
  weir_ok(weir_module_call(&y, flat, x));
  ck_assert(weir_tensor_dim(y) == 2 && weir_tensor_size(y, 1) == 48);
  weir_tensor_release(y);
  weir_ok(weir_module_call(&y, pool, x));
  out = read(y);
  ck_assert_int_eq(weir_tensor_numel(y), 24);
  ck_assert_double_eq(out[0], fmax(fmax(in[0], in[1]), fmax(in[4], in[5])));
  free(out), free(in);
  weir_tensor_release(y);
  weir_module_release(relu);
  weir_module_release(flat);
  weir_module_release(pool);
}
END_TEST

/* ---- parameters at first --------------------------------------------------------------------- */

static void check_uniform(const weir_tensor *t, double bound)
{
  double *v = read(t), low = 0, high = 0, sum = 0;
  int64_t n = weir_tensor_numel(t);
  for (int64_t i = 0; i < n; i++) {
    low = fmin(low, v[i]), high = fmax(high, v[i]);
    sum += v[i];
  }
  ck_assert(low >= -bound && high <= bound);
  if (n >= 500) { /* all of the range, evenly: 6 deviations of the mean */
    ck_assert(low < -0.97 * bound && high > 0.97 * bound);
    ck_assert(fabs(sum / (double)n) < 6 * bound / sqrt(3.0 * (double)n));
  }
  free(v);
}

START_TEST(parameters_are_uniform_within_one_over_the_root_of_the_inputs)
{
  weir_module *conv, *linear;
  weir_ok(weir_module_conv2d(&conv, 20, 20, 5, NULL));
  weir_ok(weir_module_linear(&linear, 100, 50, NULL));
  check_uniform(weir_module_parameter(conv, "weight"), 1 / sqrt(500));
  check_uniform(weir_module_parameter(conv, "bias"), 1 / sqrt(500));
  check_uniform(weir_module_parameter(linear, "weight"), 0.1);
  check_uniform(weir_module_parameter(linear, "bias"), 0.1);
  weir_module_release(conv);
  weir_module_release(linear);
}
END_TEST

START_TEST(a_seed_gives_the_same_parameters_on_the_cpu_and_on_cuda)
{
  rig_devices(1);
  weir_module *a, *b;
  weir_manual_seed(3);
  weir_ok(weir_module_linear(&a, 10, 5, NULL));
  weir_manual_seed(3);
  weir_ok(weir_module_linear(&b, 10, 5, &(weir_layer_options){.tensor.device = CUDA(0)}));
  ck_assert(rig_on(weir_module_parameter(b, "weight"), CUDA(0)));
  rig_same(weir_module_parameter(a, "weight"), weir_module_parameter(b, "weight"), 0);
  rig_same(weir_module_parameter(a, "bias"), weir_module_parameter(b, "bias"), 0);
  weir_module_release(a);
  weir_module_release(b);
}
END_TEST

START_TEST(layers_have_the_dtype_asked_for_and_no_bias_where_none_is_wanted)
{
  weir_module *m;
  weir_layer_options o = {.tensor.dtype = WEIR_FLOAT64, .no_bias = true};
  weir_ok(weir_module_linear(&m, 3, 2, &o));
  ck_assert_int_eq(weir_tensor_dtype(weir_module_parameter(m, "weight")), WEIR_FLOAT64);
  ck_assert_ptr_null(weir_module_parameter(m, "bias"));
  int64_t count;
  weir_ok(weir_module_count_parameters(&count, m));
  ck_assert_int_eq(count, 6);
  weir_module_release(m);
}
END_TEST

/* ---- models ---------------------------------------------------------------------------------- */

/* The notes' Model: relu(conv1), relu(conv2). */
static weir_status model_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                 int count)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  (void)count;
  weir_status st = weir_module_call(&a, weir_module_child(self, "conv1"), in[0]);
  if (!st) st = weir_relu(&b, a);
  if (!st) st = weir_module_call(&c, weir_module_child(self, "conv2"), b);
  return st ? st : weir_relu(out, c);
}

static weir_module *make_two_conv_model(void)
{
  static const weir_module_class kind = {.name = "Model", .forward = model_forward};
  weir_module *m, *conv1, *conv2;
  weir_manual_seed(1);
  weir_ok(weir_module_new(&m, &kind, NULL));
  weir_ok(weir_module_conv2d(&conv1, 1, 20, 5, NULL));
  weir_ok(weir_module_conv2d(&conv2, 20, 20, 5, NULL));
  weir_ok(weir_module_add(m, "conv1", conv1));
  weir_ok(weir_module_add(m, "conv2", conv2));
  return m;
}

START_TEST(the_notes_model_gives_equal_results_on_the_cpu_and_on_cuda)
{
  rig_devices(1);
  WEIR_MODULE m = make_two_conv_model();
  WEIR_TENSOR x = rig_tensor(weir_shape(3, 1, 16, 16), CPU, 7);
  WEIR_TENSOR there = NULL;
  weir_tensor *host, *device;
  weir_ok(weir_module_call(&host, m, x));
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_ok(weir_cuda(&there, x, CUDA(0), false));
  weir_ok(weir_module_call(&device, m, there));
  ck_assert(rig_on(device, CUDA(0)));
  ck_assert_int_eq(weir_tensor_size(host, 2), 8);
  rig_same(host, device, 1e-5);
  int64_t count;
  weir_ok(weir_module_count_parameters(&count, m));
  ck_assert_int_eq(count, 20 * 25 + 20 + 20 * 20 * 25 + 20);
  weir_tensor_release(host);
  weir_tensor_release(device);
}
END_TEST

static weir_module *chain(void)
{
  weir_module *c[4], *m;
  weir_ok(weir_module_conv2d(&c[0], 1, 4, 3, NULL));
  weir_ok(weir_module_relu(&c[1]));
  weir_ok(weir_module_flatten(&c[2], 1, -1));
  weir_ok(weir_module_linear(&c[3], 4 * 36, 5, NULL));
  weir_ok(weir_module_sequential(&m, c, 4));
  return m;
}

START_TEST(a_sequential_calls_its_children_in_turn)
{
  weir_device there = device_of_case(_i);
  WEIR_MODULE m = chain();
  weir_ok(weir_module_to(m, &(weir_options){.device = there}));
  WEIR_TENSOR x = rig_tensor(weir_shape(2, 1, 8, 8), there, 7);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  weir_tensor *all, *step;
  weir_ok(weir_module_call(&all, m, x));
  weir_ok(weir_module_call(&a, weir_module_child(m, "0"), x));
  weir_ok(weir_relu(&b, a));
  weir_ok(weir_flatten(&c, b, 1, -1));
  weir_ok(weir_module_call(&step, weir_module_child(m, "3"), c));
  rig_same(all, step, 0);
  weir_tensor_release(all);
  weir_tensor_release(step);
  ck_assert_ptr_nonnull(weir_module_parameter(m, "3.weight"));
}
END_TEST

START_TEST(an_empty_sequential_gives_its_input_and_can_be_appended_to)
{
  weir_module *m, *relu;
  weir_tensor *y;
  WEIR_TENSOR x = rig_tensor(weir_shape(3), CPU, 1);
  weir_ok(weir_module_sequential(&m, NULL, 0));
  weir_ok(weir_module_call(&y, m, x));
  ck_assert_ptr_eq(y, x);
  weir_tensor_release(y);
  weir_ok(weir_module_relu(&relu));
  weir_ok(weir_module_append(m, relu));
  weir_ok(weir_module_call(&y, m, x));
  ck_assert(rig_number(y, 0) >= 0);
  weir_tensor_release(y);
  weir_not(WEIR_EINVAL, "only a Sequential or a ModuleList can be appended to, not a ReLU",
           weir_module_append(relu, weir_module_retain(m)));
  weir_not(WEIR_EINVAL, "weir_module_append: module '1' is NULL", weir_module_append(m, NULL));
  weir_module *with_none[2] = {weir_module_retain(relu), NULL}, *none;
  weir_not(WEIR_EINVAL, "weir_module_sequential: module '1' is NULL",
           weir_module_sequential(&none, with_none, 2));
  ck_assert_ptr_null(none);
  weir_module_release(m);
}
END_TEST

START_TEST(layers_print_as_torch_prints_them)
{
  weir_module *m, *c[6];
  weir_layer_options o = {.no_bias = true, .conv = {{2, 2}, {1, 1}, {3, 3}, 2}};
  char *text;
  weir_ok(weir_module_conv2d(&c[0], 1, 20, 5, NULL));
  weir_ok(weir_module_conv2d(&c[1], 4, 6, 3, &o));
  weir_ok(weir_module_relu(&c[2]));
  weir_ok(weir_module_flatten(&c[3], 1, -1));
  weir_ok(weir_module_max_pool2d(&c[4], &(weir_pool2d_options){.kernel = {2, 2}}));
  weir_ok(weir_module_linear(&c[5], 10, 5, NULL));
  weir_ok(weir_module_sequential(&m, c, 6));
  weir_ok(weir_module_to_string(&text, m));
  ck_assert_str_eq(
      text,
      "Sequential(\n"
      "  (0): Conv2d(1, 20, kernel_size=(5, 5), stride=(1, 1))\n"
      "  (1): Conv2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(3, 3), "
      "groups=2, bias=False)\n"
      "  (2): ReLU()\n"
      "  (3): Flatten(start_dim=1, end_dim=-1)\n"
      "  (4): MaxPool2d(kernel_size=2, stride=2, padding=0, dilation=1, ceil_mode=False)\n"
      "  (5): Linear(in_features=10, out_features=5, bias=True)\n"
      ")");
  free(text);
  weir_module_release(m);
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

START_TEST(a_model_and_its_input_on_two_devices_are_told_apart_in_torchs_words)
{
  rig_devices(1);
  WEIR_MODULE m = make_two_conv_model();
  WEIR_TENSOR host = rig_tensor(weir_shape(1, 1, 16, 16), CPU, 7);
  WEIR_TENSOR there = rig_tensor(weir_shape(1, 1, 16, 16), CUDA(0), 7);
  weir_tensor *out;
  weir_not(WEIR_EINVAL,
           "Input type (weir.cuda.FloatTensor) and weight type (weir.FloatTensor) should be the "
           "same",
           weir_module_call(&out, m, there));
  ck_assert_ptr_null(out);
  weir_ok(weir_module_cuda(m, CUDA(0)));
  weir_not(WEIR_EINVAL,
           "Input type (weir.FloatTensor) and weight type (weir.cuda.FloatTensor) should be the "
           "same",
           weir_module_call(&out, m, host));
}
END_TEST

START_TEST(layers_that_cannot_be_are_refused)
{
  weir_module *m;
  weir_tensor *out;
  weir_layer_options o = {.conv.groups = 3};
  weir_not(WEIR_EINVAL, "in_channels must be divisible by groups",
           weir_module_conv2d(&m, 4, 6, 3, &o));
  weir_not(WEIR_EINVAL, "out_channels must be divisible by groups",
           weir_module_conv2d(&m, 6, 4, 3, &o));
  o.conv.groups = -1;
  weir_not(WEIR_EINVAL, "groups must be a positive integer", weir_module_conv2d(&m, 6, 6, 3, &o));
  ck_assert_int_eq(weir_module_linear(&m, -1, 5, NULL), WEIR_EINVAL);
  ck_assert_ptr_null(m);
  weir_ok(weir_module_relu(&m));
  weir_tensor *two[2] = {rig_tensor(weir_shape(1), CPU, 1), rig_tensor(weir_shape(1), CPU, 2)};
  weir_not(WEIR_EINVAL, "ReLU.forward() takes 1 tensor but 2 were given",
           weir_module_call_many(&out, m, two, 2));
  weir_tensor_release(two[0]);
  weir_tensor_release(two[1]);
  weir_module_release(m);
}
END_TEST

/* A model made, called and gone. */
static weir_status made_and_called(void)
{
  weir_module *c[3] = {NULL, NULL, NULL}, *m = NULL;
  weir_tensor *x = NULL, *y = NULL;
  weir_status st = weir_module_linear(&c[0], 6, 4, NULL), all = st;
  if (!st) all = weir_module_relu(&c[1]);
  if (!all) all = weir_module_linear(&c[2], 4, 2, NULL);
  if (all)
    for (int i = 0; i < 3; i++)
      weir_module_release(c[i]);
  else
    all = weir_module_sequential(&m, c, 3);
  if (!all) all = weir_ones(&x, weir_shape(3, 6), NULL);
  if (!all) all = weir_module_call(&y, m, x);
  weir_module_release(m);
  weir_tensor_release(x);
  weir_tensor_release(y);
  return all;
}

START_TEST(every_request_of_host_memory_for_a_model_may_fail)
{
  weir_ok(made_and_called());
  int64_t nth = 0;
  for (bool failed = true; failed;) {
    rig_fail_host(++nth);
    weir_status st = made_and_called();
    failed = rig_failed_host();
    rig_fail_host(0);
    ck_assert(!st || failed);
  }
  ck_assert_int_gt(nth, 10);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("layers");
  TCase *c = rig_case(suite);
  tcase_add_loop_test(c, linear_is_x_times_weight_transposed_plus_bias, 0, 2);
  tcase_add_loop_test(c, conv2d_is_the_sum_it_is_defined_by, 0, 2);
  tcase_add_loop_test(c, layers_without_parameters_do_what_they_are_called, 0, 2);
  tcase_add_test(c, parameters_are_uniform_within_one_over_the_root_of_the_inputs);
  tcase_add_test(c, a_seed_gives_the_same_parameters_on_the_cpu_and_on_cuda);
  tcase_add_test(c, layers_have_the_dtype_asked_for_and_no_bias_where_none_is_wanted);
  tcase_add_test(c, the_notes_model_gives_equal_results_on_the_cpu_and_on_cuda);
  tcase_add_loop_test(c, a_sequential_calls_its_children_in_turn, 0, 2);
  tcase_add_test(c, an_empty_sequential_gives_its_input_and_can_be_appended_to);
  tcase_add_test(c, layers_print_as_torch_prints_them);
  tcase_add_test(c, a_model_and_its_input_on_two_devices_are_told_apart_in_torchs_words);
  tcase_add_test(c, layers_that_cannot_be_are_refused);
  tcase_add_test(c, every_request_of_host_memory_for_a_model_may_fail);
  return rig_run(suite);
}
