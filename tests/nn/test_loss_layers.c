/* test_loss_layers.c: losses as modules, pads, Upsample, distances, EmbeddingBag, casts: they
 * print as torch's and are what their functions are, on the cpu (loop 0) and on cuda:0 of the
 * software device (1). */
#include "core/weir/layers.h"
#include "core/weir/shape.h"
#include "tests/nn/rig.h"

static weir_device layer_device(int i)
{
  if (i) rig_devices(1);
  return i ? CUDA(0) : CPU;
}

/* m prints as `text`, and of `count` tensors it gives `expected`, which is released with it. */
static void is_like(weir_module *m, const char *text, weir_tensor *const *in, int count,
                    weir_tensor *expected)
{
  WEIR_TENSOR y = NULL;
  char *printed;
  bool same;
  weir_ok(weir_module_to_string(&printed, m));
  ck_assert_str_eq(printed, text);
  weir_ok(weir_module_call_many(&y, m, in, count));
  weir_ok(weir_allclose(&same, y, expected, 1e-6, 1e-7, false));
  ck_assert_msg(same, "%s", text);
  free(printed);
  weir_tensor_release(expected);
  weir_module_release(m);
}

/* The layer (its arguments behind out), and its function (behind out, too). */
#define LIKE(text, in, count, layer, function)                                                     \
  do {                                                                                             \
    weir_module *m_;                                                                               \
    weir_tensor *t_;                                                                               \
    weir_ok(weir_module_##layer);                                                                  \
    weir_ok(weir_##function);                                                                      \
    is_like(m_, text, in, count, t_);                                                              \
  } while (0)

START_TEST(losses_without_weights_are_their_functions)
{
  weir_device d = layer_device(_i);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR c = NULL;
  WEIR_TENSOR sign = NULL;
  const weir_reduction total = WEIR_REDUCTION_SUM, mean = WEIR_REDUCTION_MEAN,
                       each = WEIR_REDUCTION_NONE;
  a = rig_tensor(weir_shape(3, 4), d, 1);
  b = rig_tensor(weir_shape(3, 4), d, 2);
  c = rig_tensor(weir_shape(3), d, 3);
  weir_ok(weir_sign(&sign, c));
  weir_tensor *in[] = {a, b, sign}, *three[] = {a, b, b};
  LIKE("L1Loss()", in, 2, l1_loss(&m_, total), l1_loss(&t_, a, b, total));
  LIKE("MSELoss()", in, 2, mse_loss(&m_, mean), mse_loss(&t_, a, b, mean));
  LIKE("SmoothL1Loss()", in, 2, smooth_l1_loss(&m_, each, .5), smooth_l1_loss(&t_, a, b, each, .5));
  LIKE("HuberLoss()", in, 2, huber_loss(&m_, mean, .3), huber_loss(&t_, a, b, mean, .3));
  LIKE("KLDivLoss()", in, 2, kl_div_loss(&m_, total, true), kl_div(&t_, a, b, total, true));
  LIKE("SoftMarginLoss()", in, 2, soft_margin_loss(&m_, mean), soft_margin_loss(&t_, a, b, mean));
  LIKE("HingeEmbeddingLoss()", in, 2, hinge_embedding_loss(&m_, .7, each),
       hinge_embedding_loss(&t_, a, b, .7, each));
  LIKE("CosineEmbeddingLoss()", in, 3, cosine_embedding_loss(&m_, .1, each),
       cosine_embedding_loss(&t_, a, b, sign, .1, each));
  LIKE("TripletMarginLoss()", three, 3, triplet_margin_loss(&m_, .6, 1, total),
       triplet_margin_loss(&t_, a, b, b, .6, 1, total));
  in[0] = in[1] = c;
  LIKE("MarginRankingLoss()", in, 3, margin_ranking_loss(&m_, .2, total),
       margin_ranking_loss(&t_, c, c, sign, .2, total));
}
END_TEST

START_TEST(losses_keep_their_weights_as_buffers_that_move)
{
  weir_device d = layer_device(_i);
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR p = NULL;
  WEIR_TENSOR classes = NULL;
  WEIR_TENSOR target = NULL;
  WEIR_TENSOR weight = NULL;
  WEIR_TENSOR there = NULL;
  x = rig_tensor(weir_shape(3, 4), d, 1);
  weir_ok(weir_sigmoid(&p, x));
  classes = rig_count(0, weir_shape(3));
  weir_ok(weir_to(&target, classes, &(weir_options){.device = d}));
  WEIR_TENSOR numbers = rig_tensor(weir_shape(4), CPU, 5);
  weir_ok(weir_abs(&weight, numbers));
  weir_ok(weir_to(&there, weight, &(weir_options){.device = d}));
  weir_class_options o = {.weight = weight, .ignore = true, .ignore_index = 1}, now = o;
  weir_module *m;
  weir_tensor *y, *of_classes[] = {x, target}, *of_numbers[] = {x, p}, *of_parts[] = {p, p};
  now.weight = there;
  weir_status (*const makes[])(weir_module **, const weir_class_options *) = {
      weir_module_nll_loss, weir_module_cross_entropy_loss};
  weir_status (*const functions[])(weir_tensor **, const weir_tensor *, const weir_tensor *,
                                   const weir_class_options *) = {weir_nll_loss,
                                                                  weir_cross_entropy};
  for (int i = 0; i < 2; i++) {
    weir_ok(makes[i](&m, &o));
    weir_ok(weir_module_to(m, &(weir_options){.device = d}));
    ck_assert(rig_on(weir_module_buffer(m, "weight"), d));
    weir_ok(functions[i](&y, x, target, &now));
    is_like(m, i ? "CrossEntropyLoss()" : "NLLLoss()", of_classes, 2, y);
  }
  weir_ok(weir_module_bce_loss(&m, there, WEIR_REDUCTION_SUM));
  weir_ok(weir_binary_cross_entropy(&y, p, p, there, WEIR_REDUCTION_SUM));
  is_like(m, "BCELoss()", of_parts, 2, y);
  weir_ok(weir_module_bce_with_logits_loss(&m, NULL, there, WEIR_REDUCTION_MEAN));
  ck_assert_ptr_null(weir_module_buffer(m, "weight"));
  ck_assert_ptr_eq(weir_module_buffer(m, "pos_weight"), there);
  weir_ok(weir_binary_cross_entropy_with_logits(&y, x, p, NULL, there, WEIR_REDUCTION_MEAN));
  is_like(m, "BCEWithLogitsLoss()", of_numbers, 2, y);
}
END_TEST

typedef weir_status (*pad_make)(weir_module **out, const int64_t *padding);

START_TEST(pads_are_pad)
{
  static const struct {
    pad_make make;
    const char *text;
    int axes;
    weir_pad_mode mode;
  } rows[] = {
#define ROW(name, title, axes, mode) {weir_module_##name, title "((%s))", axes, WEIR_PAD_##mode},
      WEIR_PAD_LAYERS(ROW)};
  static const int64_t padding[] = {1, 2, 1, 0, 2, 1};
  static const char *const numbers[] = {"1, 2", "1, 2, 1, 0", "1, 2, 1, 0, 2, 1"};
  weir_device d = layer_device(_i);
  WEIR_TENSOR cube = NULL;
  cube = rig_tensor(weir_shape(2, 3, 3, 4, 5), d, 1);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int axes = rows[i].axes;
    weir_module *m;
    weir_tensor *y;
    WEIR_TENSOR x = NULL;
    char text[64];
    weir_ok(weir_reshape(&x, cube,
                         axes == 1   ? weir_shape(2, 36, 5)
                         : axes == 2 ? weir_shape(2, 9, 4, 5)
                                     : weir_shape(2, 3, 3, 4, 5)));
    weir_ok(rows[i].make(&m, padding));
    weir_ok(weir_pad(&y, x, padding, 2 * axes, rows[i].mode, weir_int(0)));
    (void)snprintf(text, sizeof text, rows[i].text, numbers[axes - 1]);
    is_like(m, text, (weir_tensor *[]){x}, 1, y);
    if (i == 0) {
      weir_tensor *z;
      weir_ok(weir_module_circular_pad1d(&m, padding));
      weir_not(WEIR_EINVAL, "expected 2D or 3D input (got 5D input)",
               weir_module_call(&z, m, cube));
      weir_module_release(m);
    }
  }
}
END_TEST

START_TEST(constant_pads_say_their_value)
{
  static const int64_t p[] = {1, 2, 1, 0, 2, 1};
  weir_device d = layer_device(_i);
  WEIR_TENSOR x = NULL;
  x = rig_tensor(weir_shape(2, 3, 3, 4, 5), d, 1);
  weir_tensor *in[] = {x};
  LIKE("ConstantPad1d(padding=(1, 2), value=3)", in, 1, constant_pad1d(&m_, p, weir_int(3)),
       pad(&t_, x, p, 2, WEIR_PAD_CONSTANT, weir_int(3)));
  LIKE("ConstantPad2d(padding=(1, 2, 1, 0), value=3.5)", in, 1,
       constant_pad2d(&m_, p, weir_float(3.5)),
       pad(&t_, x, p, 4, WEIR_PAD_CONSTANT, weir_float(3.5)));
  LIKE("ConstantPad3d(padding=(1, 2, 1, 0, 2, 1), value=True)", in, 1,
       constant_pad3d(&m_, p, weir_bool(true)), pad(&t_, x, p, 6, WEIR_PAD_CONSTANT, weir_int(1)));
}
END_TEST

START_TEST(upsample_is_interpolate_and_one_number_is_of_all_axes)
{
  weir_device d = layer_device(_i);
  WEIR_TENSOR x = NULL;
  x = rig_tensor(weir_shape(2, 3, 4, 5), d, 1);
  weir_tensor *in[] = {x};
  weir_interpolate_options size = {.size = {7}}, sizes = {.size = {7, 7}},
                           scale = {.scale = {2, 1.5}, .mode = WEIR_INTERPOLATE_BICUBIC},
                           twice = {.scale = {2}},
                           both = {.scale = {2, 2},
                                   .mode = WEIR_INTERPOLATE_BILINEAR,
                                   .align_corners = true};
  LIKE("Upsample(size=7, mode='nearest')", in, 1, upsample(&m_, &size),
       interpolate(&t_, x, &sizes));
  LIKE("Upsample(scale_factor=(2.0, 1.5), mode='bicubic')", in, 1, upsample(&m_, &scale),
       interpolate(&t_, x, &scale));
  LIKE("UpsamplingNearest2d(size=(7, 7), mode='nearest')", in, 1, upsampling_nearest2d(&m_, &sizes),
       interpolate(&t_, x, &sizes));
  LIKE("UpsamplingBilinear2d(scale_factor=2.0, mode='bilinear')", in, 1,
       upsampling_bilinear2d(&m_, &twice), interpolate(&t_, x, &both));
}
END_TEST

START_TEST(more_layers_are_their_functions)
{
  weir_device d = layer_device(_i);
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR split = NULL;
  WEIR_TENSOR turned = NULL;
  x = rig_tensor(weir_shape(2, 6, 4, 5), d, 1);
  y = rig_tensor(weir_shape(2, 6, 4, 5), d, 2);
  weir_tensor *in[] = {x, y};
  weir_ok(weir_neg(&negative, x));
  LIKE("Softmin(dim=1)", in, 1, softmin(&m_, 1), softmax(&t_, negative, 1));
  LIKE("Softmax2d()", in, 1, softmax2d(&m_), softmax(&t_, x, 1));
  LIKE("CosineSimilarity()", in, 2, cosine_similarity(&m_, 2, .1),
       cosine_similarity(&t_, x, y, 2, .1));
  LIKE("PairwiseDistance()", in, 2, pairwise_distance(&m_, 1, .1, true),
       pairwise_distance(&t_, x, y, 1, .1, true));
  /* Channel c of 2 groups of 3 is channel c / 2 of group c % 2. */
  weir_ok(weir_reshape(&split, x, weir_shape(2, 2, 3, 20)));
  weir_ok(weir_transpose(&turned, split, 1, 2));
  LIKE("ChannelShuffle(groups=2)", in, 1, channel_shuffle(&m_, 2),
       reshape(&t_, turned, weir_shape(2, 6, 4, 5)));
  WEIR_TENSOR shuffled = NULL;
  weir_ok(weir_channel_shuffle(&shuffled, x, 2));
  ck_assert_double_eq(rig_number(shuffled, 20), rig_number(x, 60));
}
END_TEST

START_TEST(a_bag_sums_rows_by_its_options)
{
  weir_device d = layer_device(_i);
  weir_embedding_bag_layer_options o = {
      .tensor.device = d, .bag = {.mode = WEIR_BAG_SUM, .has_padding = true, .padding_idx = -1}};
  WEIR_TENSOR count = NULL;
  WEIR_TENSOR indices = NULL;
  WEIR_TENSOR weights = NULL;
  weir_module *m;
  weir_tensor *y;
  count = rig_count(0, weir_shape(2, 2));
  weir_ok(weir_to(&indices, count, &(weir_options){.device = d}));
  weights = rig_tensor(weir_shape(2, 2), d, 3);
  weir_ok(weir_module_embedding_bag(&m, 4, 3, &o));
  weir_tensor *rows = weir_module_parameter(m, "weight");
  for (int i = 9; i < 12; i++)
    ck_assert_double_eq(rig_number(rows, i), 0);
  weir_ok(weir_embedding_bag(&y, indices, rows, NULL, weights, &o.bag));
  is_like(m, "EmbeddingBag(4, 3, mode='sum', padding_idx=3)",
          (weir_tensor *[]){indices, NULL, weights}, 3, y);
  o.bag.padding_idx = 4;
  weir_not(WEIR_EINVAL, "padding_idx must be within num_embeddings",
           weir_module_embedding_bag(&m, 4, 3, &o));
}
END_TEST

START_TEST(a_module_is_cast_by_name_where_it_is_floating_point)
{
  weir_status (*const casts[])(weir_module *) = {weir_module_half, weir_module_bfloat16,
                                                 weir_module_double, weir_module_float};
  static const weir_dtype dtypes[] = {WEIR_FLOAT16, WEIR_BFLOAT16, WEIR_FLOAT64, WEIR_FLOAT32};
  weir_device d = layer_device(_i);
  WEIR_MODULE m = NULL;
  weir_tensor *number;
  weir_norm_layer_options o = {.tensor.device = d};
  weir_options complex = {.dtype = WEIR_COMPLEX64, .device = d};
  weir_ok(weir_module_batch_norm1d(&m, 3, &o));
  weir_ok(weir_zeros(&number, weir_shape(2), &complex));
  weir_ok(weir_module_add_buffer(m, "complex", number, true));
  for (int i = 0; i < 4; i++) {
    weir_ok(casts[i](m));
    ck_assert_int_eq(weir_tensor_dtype(weir_module_parameter(m, "weight")), dtypes[i]);
    ck_assert_int_eq(weir_tensor_dtype(weir_module_buffer(m, "running_var")), dtypes[i]);
    ck_assert_int_eq(weir_tensor_dtype(weir_module_buffer(m, "num_batches_tracked")), WEIR_INT64);
    ck_assert_int_eq(weir_tensor_dtype(weir_module_buffer(m, "complex")), WEIR_COMPLEX64);
    ck_assert(rig_on(weir_module_parameter(m, "weight"), d));
  }
  weir_module_eval(m);
  ck_assert(!weir_module_is_training(m));
}
END_TEST

START_TEST(what_torch_refuses_is_refused)
{
  WEIR_TENSOR x = NULL;
  WEIR_MODULE loss = NULL;
  WEIR_MODULE soft = NULL;
  WEIR_MODULE shuffle = NULL;
  weir_module *m;
  weir_tensor *y;
  x = rig_tensor(weir_shape(2, 4), CPU, 1);
  weir_not(WEIR_EINVAL, "TripletMarginLoss: expected margin to be greater than 0, got -1.0 instead",
           weir_module_triplet_margin_loss(&m, -1, 2, WEIR_REDUCTION_MEAN));
  weir_ok(weir_module_mse_loss(&loss, WEIR_REDUCTION_MEAN));
  weir_not(WEIR_EINVAL, "MSELoss.forward() takes 2 tensors but 1 were passed",
           weir_module_call(&y, loss, x));
  weir_ok(weir_module_softmax2d(&soft));
  weir_not(WEIR_EINVAL, "Softmax2d: expected input to be 3D or 4D, got 2D instead",
           weir_module_call(&y, soft, x));
  weir_ok(weir_module_channel_shuffle(&shuffle, 3));
  weir_not(WEIR_EINVAL, "channel_shuffle expects input with > 2 dims",
           weir_module_call(&y, shuffle, x));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("loss layers");
  TCase *c = rig_case(suite);
  tcase_add_loop_test(c, losses_without_weights_are_their_functions, 0, 2);
  tcase_add_loop_test(c, losses_keep_their_weights_as_buffers_that_move, 0, 2);
  tcase_add_loop_test(c, pads_are_pad, 0, 2);
  tcase_add_loop_test(c, constant_pads_say_their_value, 0, 2);
  tcase_add_loop_test(c, upsample_is_interpolate_and_one_number_is_of_all_axes, 0, 2);
  tcase_add_loop_test(c, more_layers_are_their_functions, 0, 2);
  tcase_add_loop_test(c, a_bag_sums_rows_by_its_options, 0, 2);
  tcase_add_loop_test(c, a_module_is_cast_by_name_where_it_is_floating_point, 0, 2);
  tcase_add_test(c, what_torch_refuses_is_refused);
  return rig_run(suite);
}
