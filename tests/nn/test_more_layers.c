/* test_more_layers.c: layers of normalisation, dropout, pooling and the like, and containers: what
 * they print, what they have, what they calculate, on the cpu (loop 0) and on cuda:0 of the
 * software device (1). */
#include <math.h>
#include "core/weir/layers.h"
#include "tests/nn/rig.h"

static weir_device there(int i)
{
  if (i) rig_devices(1);
  return i ? CUDA(0) : CPU;
}

static void prints(weir_module *m, const char *text)
{
  char *printed;
  weir_ok(weir_module_to_string(&printed, m));
  ck_assert_str_eq(printed, text);
  free(printed);
  weir_module_release(m);
}

/* Makes a layer, which must print as torch's. */
#define PRINTS(text, function, ...)                                                                \
  do {                                                                                             \
    weir_module *made_;                                                                            \
    weir_ok(weir_module_##function(&made_, ##__VA_ARGS__));                                        \
    prints(made_, text);                                                                           \
  } while (0)

START_TEST(layers_of_normalisation_print_as_torchs)
{
  weir_norm_layer_options bare = {.eps = 1e-3, .cumulative = true, .no_affine = true};
  weir_norm_layer_options all = {.affine = true, .running = true}, fine = {.eps = 1e-6};
  PRINTS(
      "BatchNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)",
      batch_norm1d, 3, NULL);
  PRINTS("BatchNorm2d(3, eps=0.001, momentum=None, affine=False, bias=False, "
         "track_running_stats=True)",
         batch_norm2d, 3, &bare);
  PRINTS(
      "BatchNorm3d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=False)",
      batch_norm3d, 3, &(weir_norm_layer_options){.no_running = true});
  PRINTS("InstanceNorm1d(3, eps=1e-05, momentum=0.1, affine=True, bias=True, "
         "track_running_stats=True)",
         instance_norm1d, 3, &all);
  PRINTS("InstanceNorm2d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, "
         "track_running_stats=False)",
         instance_norm2d, 3, NULL);
  PRINTS("InstanceNorm3d(3, eps=1e-05, momentum=0.1, affine=False, bias=False, "
         "track_running_stats=False)",
         instance_norm3d, 3, NULL);
  PRINTS("LayerNorm((2, 3), eps=1e-05, elementwise_affine=True, bias=True)", layer_norm,
         weir_shape(2, 3), NULL);
  PRINTS("LayerNorm((4,), eps=1e-06, elementwise_affine=True, bias=True)", layer_norm,
         weir_shape(4), &fine);
  PRINTS("RMSNorm((4,), eps=None, elementwise_affine=True)", rms_norm, weir_shape(4), NULL);
  PRINTS("GroupNorm(2, 4, eps=1e-05, affine=True, bias=True)", group_norm, 2, 4, NULL);
}
END_TEST

START_TEST(layers_without_parameters_print_as_torchs)
{
  weir_pool_options two = {.kernel = {2, 2, 2}},
                    odd = {.kernel = {2, 3}, .stride = {1, 2}, .padding = {1, 1}},
                    three = {.kernel = {3, 3, 3}, .stride = {2, 2, 2}, .padding = {1, 1, 1}};
  const int64_t one[] = {1, 1, 1};
  PRINTS("Dropout(p=0.5, inplace=False)", dropout, .5);
  PRINTS("Dropout1d(p=0.1, inplace=False)", dropout1d, .1);
  PRINTS("Dropout2d(p=0.2, inplace=False)", dropout2d, .2);
  PRINTS("Dropout3d(p=0.5, inplace=False)", dropout3d, .5);
  PRINTS("AvgPool1d(kernel_size=(2,), stride=(2,), padding=(0,))", avg_pool1d, &two);
  PRINTS("AvgPool2d(kernel_size=(2, 3), stride=(1, 2), padding=1)", avg_pool2d, &odd);
  PRINTS("AvgPool3d(kernel_size=2, stride=2, padding=0)", avg_pool3d, &two);
  PRINTS("MaxPool1d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)", max_pool1d,
         &three);
  PRINTS("MaxPool3d(kernel_size=3, stride=2, padding=1, dilation=1, ceil_mode=False)", max_pool3d,
         &three);
  PRINTS("AdaptiveAvgPool1d(output_size=1)", adaptive_avg_pool1d, one);
  PRINTS("AdaptiveAvgPool2d(output_size=(1, 1))", adaptive_avg_pool2d, one);
  PRINTS("AdaptiveAvgPool3d(output_size=(1, 1, 1))", adaptive_avg_pool3d, one);
  PRINTS("AdaptiveMaxPool1d(output_size=1)", adaptive_max_pool1d, one);
  PRINTS("AdaptiveMaxPool2d(output_size=(1, 1))", adaptive_max_pool2d, one);
  PRINTS("AdaptiveMaxPool3d(output_size=(1, 1, 1))", adaptive_max_pool3d, one);
  PRINTS("Identity()", identity);
  PRINTS("Sigmoid()", sigmoid);
  PRINTS("Tanh()", tanh);
  PRINTS("Softmax(dim=1)", softmax, 1);
  PRINTS("LogSoftmax(dim=-1)", log_softmax, -1);
  PRINTS("Unflatten(dim=1, unflattened_size=(2, 3))", unflatten, 1, weir_shape(2, 3));
  PRINTS("PixelShuffle(upscale_factor=2)", pixel_shuffle, 2);
  PRINTS("PixelUnshuffle(downscale_factor=2)", pixel_unshuffle, 2);
}
END_TEST

START_TEST(activations_print_as_torchs)
{
  weir_embedding_options padded = {.has_padding = true, .padding_idx = -1};
  weir_embedding_options bounded = {.max_norm = 1.5, .norm_type = 1, .scale_grad_by_freq = true};
  PRINTS("SiLU()", silu);
  PRINTS("Mish()", mish);
  PRINTS("Hardsigmoid()", hardsigmoid);
  PRINTS("Hardswish()", hardswish);
  PRINTS("LogSigmoid()", logsigmoid);
  PRINTS("SELU()", selu);
  PRINTS("ReLU6()", relu6);
  PRINTS("Softsign()", softsign);
  PRINTS("Tanhshrink()", tanhshrink);
  PRINTS("GELU(approximate='none')", gelu, "none");
  PRINTS("GELU(approximate='tanh')", gelu, "tanh");
  PRINTS("LeakyReLU(negative_slope=0.01)", leaky_relu, .01);
  PRINTS("ELU(alpha=1.0)", elu, 1);
  PRINTS("CELU(alpha=1.5)", celu, 1.5);
  PRINTS("Softshrink(0.5)", softshrink, .5);
  PRINTS("Hardshrink(0.25)", hardshrink, .25);
  PRINTS("Softplus(beta=1.0, threshold=20.0)", softplus, 1, 20);
  PRINTS("Hardtanh(min_val=-1.0, max_val=1.0)", hardtanh, -1, 1);
  PRINTS("Threshold(threshold=0.1, value=20.0)", threshold, .1, 20);
  PRINTS("GLU(dim=-1)", glu, -1);
  PRINTS("PReLU(num_parameters=3)", prelu, 3, .25, NULL);
  PRINTS("Embedding(3, 4)", embedding, 3, 4, NULL);
  PRINTS("Embedding(3, 4, padding_idx=2)", embedding, 3, 4, &padded);
  PRINTS("Embedding(3, 4, max_norm=1.5, norm_type=1.0, scale_grad_by_freq=True)", embedding, 3, 4,
         &bounded);
}
END_TEST

START_TEST(convolutions_print_as_torchs)
{
  const int64_t three[] = {3, 3, 3};
  weir_conv_layer_options thin = {.no_bias = true, .conv = {.padding = {1}, .groups = 2}},
                          wide = {.conv = {.stride = {2, 2, 2},
                                           .padding = {1, 1, 1},
                                           .dilation = {2, 2, 2}}},
                          same = {.conv = {.same = true}}, all = wide;
  all.no_bias = true;
  all.conv.groups = 2;
  all.conv.output_padding[0] = all.conv.output_padding[1] = 1;
  PRINTS("Conv1d(4, 6, kernel_size=(3,), stride=(1,), padding=(1,), groups=2, bias=False)", conv1d,
         4, 6, three, &thin);
  PRINTS("Conv1d(4, 6, kernel_size=(3,), stride=(1,), padding=same)", conv1d, 4, 6, three, &same);
  PRINTS("Conv3d(4, 6, kernel_size=(3, 3, 3), stride=(2, 2, 2), padding=(1, 1, 1), dilation=(2, 2, "
         "2))",
         conv3d, 4, 6, three, &wide);
  PRINTS("ConvTranspose1d(4, 6, kernel_size=(3,), stride=(1,))", conv_transpose1d, 4, 6, three,
         NULL);
  PRINTS(
      "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), dilation=(2, 2), "
      "output_padding=(1, 1), groups=2, bias=False)",
      conv_transpose2d, 4, 6, three, &all);
  PRINTS("ConvTranspose3d(4, 6, kernel_size=(3, 3, 3), stride=(1, 1, 1))", conv_transpose3d, 4, 6,
         three, NULL);
}
END_TEST

/* ---- what they calculate --------------------------------------------------------------------- */

static bool alike(const weir_tensor *a, const weir_tensor *b)
{
  bool same;
  weir_ok(weir_allclose(&same, a, b, 1e-6, 1e-6, false));
  return same;
}

/* m of x is what the function gives. */
static void gives(weir_module *m, weir_tensor *x, const weir_tensor *expected)
{
  WEIR_TENSOR y = NULL;
  weir_ok(weir_module_call(&y, m, x));
  ck_assert_msg(alike(y, expected), "%s", weir_module_name(m));
  weir_module_release(m);
}

#define GIVES(x, layer, function, ...)                                                             \
  do {                                                                                             \
    weir_module *layer_;                                                                           \
    WEIR_TENSOR expected_ = NULL;                                                                  \
    weir_ok(weir_module_##layer);                                                                  \
    weir_ok(weir_##function(&expected_, (x), ##__VA_ARGS__));                                      \
    gives(layer_, (x), expected_);                                                                 \
  } while (0)

START_TEST(layers_calculate_what_their_functions_do)
{
  weir_device d = there(_i);
  WEIR_TENSOR image = NULL;
  WEIR_TENSOR line = NULL;
  WEIR_TENSOR cube = NULL;
  weir_norm_layer_options o = {.tensor.device = d};
  weir_pool_options two = {.kernel = {2, 2, 2}};
  const int64_t size[] = {2, 3, 1};
  image = rig_tensor(weir_shape(2, 4, 6, 6), d, 1);
  line = rig_tensor(weir_shape(2, 4, 9), d, 2);
  cube = rig_tensor(weir_shape(1, 4, 4, 4, 4), d, 3);
  GIVES(image, layer_norm(&layer_, weir_shape(6), &o), layer_norm, weir_shape(6), NULL, NULL, 1e-5);
  GIVES(image, rms_norm(&layer_, weir_shape(6), &o), rms_norm, weir_shape(6), NULL, -1);
  GIVES(image, group_norm(&layer_, 2, 4, &o), group_norm, 2, NULL, NULL, 1e-5);
  GIVES(line, avg_pool1d(&layer_, &two), avg_pool1d, &two);
  GIVES(image, avg_pool2d(&layer_, &two), avg_pool2d, &two);
  GIVES(cube, avg_pool3d(&layer_, &two), avg_pool3d, &two);
  GIVES(line, max_pool1d(&layer_, &two), max_pool1d, &two);
  GIVES(cube, max_pool3d(&layer_, &two), max_pool3d, &two);
  GIVES(line, adaptive_avg_pool1d(&layer_, size), adaptive_avg_pool1d, size);
  GIVES(image, adaptive_avg_pool2d(&layer_, size), adaptive_avg_pool2d, size);
  GIVES(cube, adaptive_avg_pool3d(&layer_, size), adaptive_avg_pool3d, size);
  GIVES(line, adaptive_max_pool1d(&layer_, size), adaptive_max_pool1d, size);
  GIVES(image, adaptive_max_pool2d(&layer_, size), adaptive_max_pool2d, size);
  GIVES(cube, adaptive_max_pool3d(&layer_, size), adaptive_max_pool3d, size);
  GIVES(image, softmax(&layer_, 1), softmax, 1);
  GIVES(image, log_softmax(&layer_, 1), log_softmax, 1);
  GIVES(image, sigmoid(&layer_), sigmoid);
  GIVES(image, tanh(&layer_), tanh);
  GIVES(image, pixel_shuffle(&layer_, 2), pixel_shuffle, 2);
  GIVES(image, pixel_unshuffle(&layer_, 3), pixel_unshuffle, 3);
  GIVES(image, unflatten(&layer_, 1, weir_shape(2, 2)), unflatten, 1, weir_shape(2, 2));
}
END_TEST

START_TEST(activations_calculate_what_their_functions_do)
{
  weir_device d = there(_i);
  WEIR_TENSOR x = NULL;
  x = rig_tensor(weir_shape(2, 4, 6), d, 1);
  GIVES(x, silu(&layer_), silu);
  GIVES(x, mish(&layer_), mish);
  GIVES(x, hardsigmoid(&layer_), hardsigmoid);
  GIVES(x, hardswish(&layer_), hardswish);
  GIVES(x, logsigmoid(&layer_), logsigmoid);
  GIVES(x, selu(&layer_), selu);
  GIVES(x, relu6(&layer_), relu6);
  GIVES(x, softsign(&layer_), softsign);
  GIVES(x, tanhshrink(&layer_), tanhshrink);
  GIVES(x, gelu(&layer_, "tanh"), gelu, "tanh");
  GIVES(x, leaky_relu(&layer_, .3), leaky_relu, .3);
  GIVES(x, elu(&layer_, .7), elu, .7);
  GIVES(x, celu(&layer_, .7), celu, .7);
  GIVES(x, softshrink(&layer_, .25), softshrink, .25);
  GIVES(x, hardshrink(&layer_, .25), hardshrink, .25);
  GIVES(x, softplus(&layer_, 2, .5), softplus, 2, .5);
  GIVES(x, hardtanh(&layer_, -.25, .5), hardtanh, -.25, .5);
  GIVES(x, threshold(&layer_, .1, .7), threshold, .1, .7);
  GIVES(x, glu(&layer_, 1), glu, 1);
}
END_TEST

/* m of (-1, 0, 1, 2). */
static void known(weir_module *m, weir_device d, const double expected[4])
{
  const float numbers[] = {-1, 0, 1, 2};
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR there = NULL;
  WEIR_TENSOR y = NULL;
  weir_ok(weir_tensor_from(&x, numbers, WEIR_FLOAT32, weir_shape(1, 4), NULL));
  weir_ok(weir_to(&there, x, &(weir_options){.device = d}));
  weir_ok(weir_module_call(&y, m, there));
  for (int i = 0; i < 4; i++)
    ck_assert_double_eq_tol(rig_number(y, i), expected[i], 1e-6);
  weir_module_release(m);
}

/* By their definitions, in double precision. */
START_TEST(activations_give_known_numbers)
{
  weir_device d = there(_i);
  weir_module *m;
  weir_ok(weir_module_gelu(&m, "none"));
  known(m, d, (const double[]){-0.15865525393145707, 0, 0.8413447460685429, 1.9544997361036416});
  weir_ok(weir_module_silu(&m));
  known(m, d, (const double[]){-0.2689414213699951, 0, 0.7310585786300049, 1.7615941559557649});
  weir_ok(weir_module_mish(&m));
  known(m, d, (const double[]){-0.30340146, 0, 0.86509839, 1.94395896});
  weir_ok(weir_module_prelu(&m, 1, .25, &(weir_options){.device = d}));
  known(m, d, (const double[]){-.25, 0, 1, 2});
  weir_ok(weir_module_prelu(&m, 4, .5, &(weir_options){.device = d}));
  known(m, d, (const double[]){-.5, 0, 1, 2});
}
END_TEST

START_TEST(embedding_gives_rows_of_which_padding_is_0)
{
  weir_device d = there(_i);
  weir_embedding_options o = {.tensor.device = d, .has_padding = true, .padding_idx = -2};
  WEIR_MODULE m = NULL;
  WEIR_TENSOR count = NULL;
  WEIR_TENSOR indices = NULL;
  WEIR_TENSOR rows = NULL;
  weir_ok(weir_module_embedding(&m, 4, 3, &o));
  weir_tensor *weight = weir_module_parameter(m, "weight");
  count = rig_count(0, weir_shape(2, 2));
  weir_ok(weir_to(&indices, count, &(weir_options){.device = d}));
  weir_ok(weir_module_call(&rows, m, indices));
  ck_assert_int_eq(weir_tensor_dim(rows), 3);
  for (int i = 0; i < 12; i++) {
    ck_assert_double_eq(rig_number(rows, i), rig_number(weight, i));
    ck_assert((i / 3 == 2) == (rig_number(rows, i) == 0));
  }
}
END_TEST

/* Rows of norm above 1 are made smaller in the weight; a row's gradient is the mean of those
 * that name it, the row of padding has none. */
START_TEST(embedding_bounds_norms_or_scales_gradients)
{
  weir_device d = there(_i);
  weir_embedding_options o = {.tensor.device = d,
                              .has_padding = true,
                              .padding_idx = 3,
                              .max_norm = 1,
                              .norm_type = 1,
                              .scale_grad_by_freq = true};
  WEIR_MODULE m = NULL;
  WEIR_TENSOR host = NULL;
  WEIR_TENSOR indices = NULL;
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR sum = NULL;
  weir_ok(weir_module_embedding(&m, 4, 2, &o));
  weir_tensor *weight = weir_module_parameter(m, "weight");
  bool was = weir_set_grad_enabled(false);
  weir_ok(weir_fill_(weight, weir_float(2)));
  (void)weir_set_grad_enabled(was);
  weir_ok(
      weir_tensor_from(&host, (const int64_t[]){1, 3, 1, 0}, WEIR_INT64, weir_shape(2, 2), NULL));
  weir_ok(weir_to(&indices, host, &(weir_options){.device = d}));
  weir_ok(weir_module_call(&rows, m, indices));
  weir_ok(weir_sum(&sum, rows));
  weir_ok(weir_backward(sum, NULL, false));
  const weir_tensor *grad = weir_tensor_grad(weight);
  static const double gradients[] = {1, 1, 0, 0}, norms[] = {.5, .5, 2, .5};
  for (int i = 0; i < 8; i++) {
    ck_assert_double_eq(rig_number(grad, i), gradients[i / 2]);
    ck_assert_double_eq_tol(rig_number(weight, i), norms[i / 2], 1e-6);
  }
}
END_TEST

/* m is what `function` is by its parameters, weight of `sizes`; first values below `bound`. */
#define CONVOLVES(function, x, sizes, bound, options)                                              \
  do {                                                                                             \
    WEIR_MODULE conv_ = NULL;                                                                      \
    WEIR_TENSOR expected_ = NULL;                                                                  \
    weir_ok(weir_module_##function(&conv_, 4, 6, (const int64_t[]){2, 3, 2}, (options)));          \
    weir_tensor *w_ = weir_module_parameter(conv_, "weight");                                      \
    weir_shape shape_ = weir_tensor_shape(w_), wanted_ = sizes;                                    \
    ck_assert_int_eq(shape_.count, wanted_.count);                                                 \
    for (int i_ = 0; i_ < shape_.count; i_++)                                                      \
      ck_assert_int_eq(shape_.size[i_], wanted_.size[i_]);                                         \
    for (int64_t i_ = 0; i_ < weir_tensor_numel(w_); i_++)                                         \
      ck_assert_double_le(fabs(rig_number(w_, i_)), (bound));                                      \
    weir_ok(weir_##function(&expected_, (x), w_, weir_module_parameter(conv_, "bias"),             \
                            &(options)->conv));                                                    \
    gives(weir_module_retain(conv_), (x), expected_);                                              \
  } while (0)

START_TEST(convolutions_calculate_what_their_functions_do)
{
  weir_device d = there(_i);
  weir_conv_layer_options o = {.tensor.device = d,
                               .conv = {.stride = {2, 2, 1}, .padding = {1, 1, 1}, .groups = 2}};
  WEIR_TENSOR line = NULL;
  WEIR_TENSOR image = NULL;
  WEIR_TENSOR cube = NULL;
  line = rig_tensor(weir_shape(2, 4, 9), d, 2);
  image = rig_tensor(weir_shape(2, 4, 5, 6), d, 1);
  cube = rig_tensor(weir_shape(1, 4, 4, 4, 4), d, 3);
  CONVOLVES(conv1d, line, weir_shape(6, 2, 2), 1 / sqrt(4), &o);
  CONVOLVES(conv3d, cube, weir_shape(6, 2, 2, 3, 2), 1 / sqrt(24), &o);
  CONVOLVES(conv_transpose1d, line, weir_shape(4, 3, 2), 1 / sqrt(6), &o);
  CONVOLVES(conv_transpose2d, image, weir_shape(4, 3, 2, 3), 1 / sqrt(18), &o);
  CONVOLVES(conv_transpose3d, cube, weir_shape(4, 3, 2, 3, 2), 1 / sqrt(36), &o);
}
END_TEST

START_TEST(batch_norm_follows_batches_in_training_and_uses_them_after)
{
  weir_device d = there(_i);
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR mean = NULL;
  WEIR_TENSOR z = NULL;
  WEIR_TENSOR expected = NULL;
  weir_scalar tracked;
  weir_norm_layer_options o = {.tensor.device = d, .cumulative = true};
  weir_ok(weir_module_batch_norm2d(&m, 3, &o));
  for (int i = 0; i < 4; i++) { /* the average of four batches */
    weir_tensor_drop(&x);
    weir_tensor_drop(&y);
    x = rig_tensor(weir_shape(2, 3, 4, 4), d, 1);
    weir_ok(weir_module_call(&y, m, x));
  }
  weir_ok(weir_item(&tracked, weir_module_buffer(m, "num_batches_tracked")));
  ck_assert_int_eq(tracked.i, 4);
  weir_ok(weir_mean_dims(&mean, x, (const int[]){0, 2, 3}, 3, false));
  ck_assert(alike(mean, weir_module_buffer(m, "running_mean")));
  weir_module_train(m, false);
  weir_ok(weir_module_call(&z, m, x));
  weir_ok(weir_batch_norm(&expected, x, weir_module_buffer(m, "running_mean"),
                          weir_module_buffer(m, "running_var"), NULL, NULL,
                          &(weir_batch_norm_options){.eps = 1e-5}));
  ck_assert(alike(z, expected));
  weir_ok(weir_item(&tracked, weir_module_buffer(m, "num_batches_tracked")));
  ck_assert_int_eq(tracked.i, 4);
}
END_TEST

START_TEST(instance_norm_takes_images_without_a_batch)
{
  weir_device d = there(_i);
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR batch = NULL;
  WEIR_TENSOR z = NULL;
  WEIR_TENSOR first = NULL;
  weir_ok(weir_module_instance_norm2d(&m, 3, NULL));
  x = rig_tensor(weir_shape(3, 4, 4), d, 1);
  weir_ok(weir_module_call(&y, m, x));
  ck_assert_int_eq(weir_tensor_dim(y), 3);
  weir_ok(weir_unsqueeze(&batch, x, 0));
  weir_ok(weir_module_call(&z, m, batch));
  weir_ok(weir_squeeze(&first, z, 0));
  ck_assert(alike(y, first));
}
END_TEST

START_TEST(states_have_torchs_names_in_torchs_order)
{
  static const char *const names[] = {"weight", "bias", "running_mean", "running_var",
                                      "num_batches_tracked"};
  WEIR_MODULE m = NULL;
  WEIR_MODULE bare = NULL;
  WEIR_TENSORS state = NULL;
  WEIR_TENSORS none = NULL;
  weir_ok(weir_module_batch_norm1d(&m, 3, NULL));
  weir_ok(weir_module_state(&state, m));
  ck_assert_uint_eq(weir_tensors_count(state), 5);
  for (size_t i = 0; i < 5; i++)
    ck_assert_str_eq(weir_tensors_name(state, i), names[i]);
  weir_ok(weir_module_instance_norm3d(&bare, 3, NULL));
  weir_ok(weir_module_state(&none, bare));
  ck_assert_uint_eq(weir_tensors_count(none), 0);
}
END_TEST

START_TEST(dropout_is_for_training_alone)
{
  weir_status (*const makes[])(weir_module **, double) = {
      weir_module_dropout, weir_module_dropout1d, weir_module_dropout2d, weir_module_dropout3d};
  weir_device d = there(_i);
  for (int i = 0; i < 4; i++) {
    WEIR_MODULE m = NULL;
    WEIR_TENSOR x = NULL;
    WEIR_TENSOR y = NULL;
    WEIR_TENSOR z = NULL;
    weir_ok(makes[i](&m, .5));
    x = rig_tensor(weir_shape(8, 8, 4), d, 1);
    weir_ok(weir_module_call(&y, m, x));
    ck_assert(!alike(x, y));
    weir_module_train(m, false);
    weir_ok(weir_module_call(&z, m, x));
    ck_assert_ptr_eq(z, x);
  }
}
END_TEST

START_TEST(containers_hold_modules_by_place_and_by_name)
{
  WEIR_MODULE list = NULL;
  WEIR_MODULE dict = NULL;
  weir_module *parts[2], *more;
  weir_tensor *y = NULL;
  weir_ok(weir_module_relu(&parts[0]));
  weir_ok(weir_module_identity(&parts[1]));
  weir_ok(weir_module_list(&list, parts, 2));
  weir_ok(weir_module_tanh(&more));
  weir_ok(weir_module_append(list, more));
  ck_assert_uint_eq(weir_module_children(list), 3);
  ck_assert_ptr_eq(weir_module_child(list, "2"), more);
  weir_ok(weir_module_dict(&dict));
  weir_ok(weir_module_linear(&more, 2, 3, NULL));
  weir_ok(weir_module_add(dict, "b", more));
  ck_assert_ptr_nonnull(weir_module_parameter(dict, "b.weight"));
  WEIR_TENSOR x = NULL;
  x = rig_tensor(weir_shape(2, 2), CPU, 1);
  ck_assert_int_eq(weir_module_call(&y, list, x), WEIR_ENOTSUP);
  ck_assert_str_eq(weir_error_message(),
                   "Module [ModuleList] is missing the required \"forward\" function");
}
END_TEST

START_TEST(layers_refuse_what_torchs_do)
{
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  weir_tensor *y = NULL;
  WEIR_MODULE affine = NULL;
  weir_module *n;
  x = rig_tensor(weir_shape(3, 4, 4), CPU, 1);
  weir_ok(weir_module_batch_norm2d(&m, 3, NULL));
  ck_assert_int_eq(weir_module_call(&y, m, x), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "expected 4D input (got 3D input)");
  weir_ok(weir_module_instance_norm2d(&affine, 2, &(weir_norm_layer_options){.affine = true}));
  ck_assert_int_eq(weir_module_call(&y, affine, x), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(),
                   "expected input's size at dim=0 to match num_features (2), but got: 3.");
  ck_assert_int_eq(weir_module_group_norm(&n, 2, 3, NULL), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "num_channels (3) must be divisible by num_groups (2)");
  ck_assert_int_eq(weir_module_dropout(&n, 1.5), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(),
                   "dropout probability has to be between 0 and 1, but got 1.5");
  ck_assert_int_eq(weir_module_gelu(&n, "fast"), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "approximate argument must be either none or tanh.");
  weir_embedding_options beyond = {.has_padding = true, .padding_idx = 3};
  ck_assert_int_eq(weir_module_embedding(&n, 3, 4, &beyond), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "Padding_idx must be within num_embeddings");
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("more layers");
  TCase *c = rig_case(suite);
  tcase_add_test(c, layers_of_normalisation_print_as_torchs);
  tcase_add_test(c, layers_without_parameters_print_as_torchs);
  tcase_add_test(c, activations_print_as_torchs);
  tcase_add_test(c, convolutions_print_as_torchs);
  tcase_add_loop_test(c, convolutions_calculate_what_their_functions_do, 0, 2);
  tcase_add_test(c, states_have_torchs_names_in_torchs_order);
  tcase_add_test(c, containers_hold_modules_by_place_and_by_name);
  tcase_add_test(c, layers_refuse_what_torchs_do);
  tcase_add_loop_test(c, layers_calculate_what_their_functions_do, 0, 2);
  tcase_add_loop_test(c, activations_calculate_what_their_functions_do, 0, 2);
  tcase_add_loop_test(c, activations_give_known_numbers, 0, 2);
  tcase_add_loop_test(c, embedding_gives_rows_of_which_padding_is_0, 0, 2);
  tcase_add_loop_test(c, embedding_bounds_norms_or_scales_gradients, 0, 2);
  tcase_add_loop_test(c, batch_norm_follows_batches_in_training_and_uses_them_after, 0, 2);
  tcase_add_loop_test(c, instance_norm_takes_images_without_a_batch, 0, 2);
  tcase_add_loop_test(c, dropout_is_for_training_alone, 0, 2);
  return rig_run(suite);
}
