/* test_transformer.c: TransformerEncoderLayer, TransformerEncoder, their decoding kin,
 * Transformer: beside numbers that PyTorch 2.15 gave in float64, their names, texts and masks;
 * on the cpu (loop 0) and on cuda:0 of the software device (1). */
#include <math.h>
#include "core/weir/layers.h"
#include "core/weir/sequence.h"
#include "tests/nn/rig.h"

enum { L = 3, N = 2, E = 4, WIDE = 6, HEADS = 2, COUNT = L * N * E };

static weir_device encoder_device(int i)
{
  if (i) rig_devices(1);
  return i ? CUDA(0) : CPU;
}

/* Numbers that repeat late, in [-1, 1). */
static weir_tensor *numbers_from(int first, weir_shape shape, weir_device d)
{
  double values[COUNT * 4];
  int count = 1;
  weir_tensor *t;
  weir_options o = {.dtype = WEIR_FLOAT64, .device = d};
  for (int i = 0; i < shape.count; i++)
    count *= (int)shape.size[i];
  ck_assert_int_le(count, COUNT * 4);
  for (int i = 0; i < count; i++)
    values[i] = (double)(((i + first) * 7919 + 13) % 101) / 50.5 - 1;
  weir_ok(weir_tensor_from(&t, values, WEIR_FLOAT64, shape, &o));
  return t;
}

static weir_status fill_parameter(void *user, const char *path, weir_tensor *t)
{
  WEIR_TENSOR values = NULL;
  (void)path;
  values = numbers_from((*(int *)user)++, weir_tensor_shape(t), weir_tensor_device(t));
  weir_status st = WEIR_OK;
  WEIR_NO_GRAD st = weir_copy_(t, values, false);
  return st;
}

static weir_transformer_options float64_on(weir_device d)
{
  return (weir_transformer_options){
      .tensor = {.dtype = WEIR_FLOAT64, .device = d}, .dim_feedforward = WIDE, .no_dropout = true};
}

/* A layer whose parameters begin with the number of their place. */
static weir_module *layer_of(weir_transformer_options o)
{
  weir_module *m;
  int at = 0;
  weir_ok(weir_module_transformer_encoder_layer(&m, E, HEADS, &o));
  weir_ok(weir_module_visit(m, WEIR_PARAMETERS, fill_parameter, &at));
  return m;
}

/* The first eight, and the sum of all times their places. */
static void output_is(const weir_tensor *y, const double first[8], double sum)
{
  double got = 0;
  for (int i = 0; i < COUNT; i++)
    got += i * rig_number(y, i);
  for (int i = 0; i < 8; i++)
    ck_assert_double_eq_tol(rig_number(y, i), first[i], 1e-8);
  ck_assert_double_eq_tol(got, sum, 1e-7);
}

START_TEST(a_layer_gives_torchs_numbers)
{
  static const double after[8] = {-0.581076114, -1.280672722, -0.649010254, 0.661771427,
                                  -0.568969885, -1.286191599, -0.629158425, 0.648866962};
  static const double before[8] = {0.407846863, -1.902705967, 0.895615443,  -1.358853397,
                                   1.529041344, -0.456955651, -0.840680002, -0.734957838};
  weir_device d = encoder_device(_i);
  weir_transformer_options o = float64_on(d);
  weir_transformer_encode_options causal = {.is_causal = true};
  WEIR_MODULE m = NULL;
  WEIR_MODULE n = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR z = NULL;
  x = numbers_from(5, weir_shape(L, N, E), d);
  m = layer_of(o);
  weir_ok(weir_module_call(&y, m, x));
  output_is(y, after, -115.909477441);
  ck_assert(rig_on(y, d));
  o.norm_first = true;
  o.activation = "gelu";
  n = layer_of(o);
  weir_ok(weir_transformer_encode(&z, n, x, &causal));
  output_is(z, before, -75.669514343);
}
END_TEST

START_TEST(an_encoder_is_its_layer_again_and_again_then_norm)
{
  weir_device d = encoder_device(_i);
  weir_norm_layer_options n = {.tensor = {.dtype = WEIR_FLOAT64, .device = d}};
  weir_transformer_encode_options causal = {.is_causal = true};
  WEIR_MODULE layer = NULL;
  WEIR_MODULE norm = NULL;
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR plain = NULL;
  WEIR_TENSOR once = NULL;
  WEIR_TENSOR twice = NULL;
  WEIR_TENSOR expected = NULL;
  layer = layer_of(float64_on(d));
  weir_ok(weir_module_layer_norm(&norm, weir_shape(E), &n));
  weir_ok(
      weir_module_transformer_encoder(&m, weir_module_retain(layer), 2, weir_module_retain(norm)));
  x = numbers_from(5, weir_shape(L, N, E), d);
  weir_ok(weir_transformer_encode(&y, m, x, &causal));
  weir_ok(weir_transformer_encode(&once, layer, x, &causal));
  weir_ok(weir_transformer_encode(&twice, layer, once, &causal));
  weir_ok(weir_module_call(&expected, norm, twice));
  rig_same(y, expected, 0);
  /* What a call took is not taken by the next one. */
  weir_ok(weir_module_call(&plain, m, x));
  ck_assert_double_gt(fabs(rig_number(plain, 0) - rig_number(y, 0)), 1e-6);
  /* Copies: their tensors are their own. */
  ck_assert_ptr_ne(weir_module_parameter(m, "layers.0.norm1.weight"),
                   weir_module_parameter(m, "layers.1.norm1.weight"));
}
END_TEST

START_TEST(masks_say_what_is_seen)
{
  static const bool later[L * L] = {0, 1, 1, 0, 0, 1, 0, 0, 0}, padded[N * L] = {0, 0, 1, 0, 0, 0};
  weir_device d = encoder_device(_i);
  weir_options on = {.dtype = WEIR_BOOL, .device = d};
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR mask = NULL;
  WEIR_TENSOR padding = NULL;
  WEIR_TENSOR causal = NULL;
  WEIR_TENSOR masked = NULL;
  WEIR_TENSOR whole = NULL;
  WEIR_TENSOR less = NULL;
  m = layer_of(float64_on(d));
  x = numbers_from(5, weir_shape(L, N, E), d);
  weir_ok(weir_tensor_from(&mask, later, WEIR_BOOL, weir_shape(L, L), &on));
  weir_ok(weir_tensor_from(&padding, padded, WEIR_BOOL, weir_shape(N, L), &on));
  weir_ok(weir_transformer_encode(&causal, m, x,
                                  &(weir_transformer_encode_options){.is_causal = true}));
  weir_ok(weir_transformer_encode(&masked, m, x, &(weir_transformer_encode_options){.mask = mask}));
  rig_same(causal, masked, 0);
  weir_ok(weir_module_call(&whole, m, x));
  weir_ok(weir_transformer_encode(
      &less, m, x, &(weir_transformer_encode_options){.src_key_padding_mask = padding}));
  for (int i = 0; i < COUNT; i++) /* of the second sequence all is seen */
    ck_assert((fabs(rig_number(whole, i) - rig_number(less, i)) < 1e-12) == (i / E % N == 1));
}
END_TEST

START_TEST(names_have_torchs_order_and_text)
{
  static const char *const names[] = {"layers.0.self_attn.in_proj_weight",
                                      "layers.0.self_attn.in_proj_bias",
                                      "layers.0.self_attn.out_proj.weight",
                                      "layers.0.self_attn.out_proj.bias",
                                      "layers.0.linear1.weight",
                                      "layers.0.linear1.bias",
                                      "layers.0.linear2.weight",
                                      "layers.0.linear2.bias",
                                      "layers.0.norm1.weight",
                                      "layers.0.norm1.bias",
                                      "layers.0.norm2.weight",
                                      "layers.0.norm2.bias",
                                      "layers.1.self_attn.in_proj_weight"};
  static const char text[] =
      "TransformerEncoder(\n"
      "  (layers): ModuleList(\n"
      "    (0-1): 2 x TransformerEncoderLayer(\n"
      "      (self_attn): MultiheadAttention(\n"
      "        (out_proj): Linear(in_features=8, out_features=8, bias=True)\n"
      "      )\n"
      "      (linear1): Linear(in_features=8, out_features=2048, bias=True)\n"
      "      (dropout): Dropout(p=0.1, inplace=False)\n"
      "      (linear2): Linear(in_features=2048, out_features=8, bias=True)\n"
      "      (norm1): LayerNorm((8,), eps=1e-05, elementwise_affine=True, bias=True)\n"
      "      (norm2): LayerNorm((8,), eps=1e-05, elementwise_affine=True, bias=True)\n"
      "      (dropout1): Dropout(p=0.1, inplace=False)\n"
      "      (dropout2): Dropout(p=0.1, inplace=False)\n"
      "    )\n"
      "  )\n"
      "  (norm): LayerNorm((8,), eps=1e-05, elementwise_affine=True, bias=True)\n"
      ")";
  WEIR_MODULE m = NULL;
  WEIR_TENSORS state = NULL;
  weir_module *layer, *norm;
  char *printed;
  weir_ok(weir_module_transformer_encoder_layer(&layer, 8, 2, NULL));
  weir_ok(weir_module_layer_norm(&norm, weir_shape(8), NULL));
  weir_ok(weir_module_transformer_encoder(&m, layer, 2, norm));
  weir_ok(weir_module_state(&state, m));
  ck_assert_uint_eq(weir_tensors_count(state), 26);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    ck_assert_str_eq(weir_tensors_name(state, i), names[i]);
  weir_ok(weir_module_to_string(&printed, m));
  ck_assert_str_eq(printed, text);
  free(printed);
}
END_TEST

START_TEST(dropout_is_active_in_training_alone)
{
  weir_device d = encoder_device(_i);
  weir_transformer_options o = float64_on(d);
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR z = NULL;
  o.no_dropout = false;
  o.dropout = .5;
  m = layer_of(o);
  x = numbers_from(5, weir_shape(L, N, E), d);
  weir_ok(weir_module_call(&y, m, x));
  ck_assert_double_gt(fabs(rig_number(y, 0) + 0.581076114), 1e-6);
  weir_module_train(m, false);
  weir_ok(weir_module_call(&z, m, x));
  ck_assert_double_eq_tol(rig_number(z, 0), -0.581076114, 1e-8);
}
END_TEST

/* A decoder's layer whose parameters begin with the number of their place. */
static weir_module *decoder_layer_of(weir_transformer_options o)
{
  weir_module *m;
  int at = 0;
  weir_ok(weir_module_transformer_decoder_layer(&m, E, HEADS, &o));
  weir_ok(weir_module_visit(m, WEIR_PARAMETERS, fill_parameter, &at));
  return m;
}

START_TEST(a_decoder_gives_torchs_numbers)
{
  static const double after[8] = {-1.137179915, -0.359723154, 0.809610796, 0.540957821,
                                  -1.197063425, -0.232832374, 0.767109897, 0.572817394};
  static const double before[8] = {1.189486742, -1.856258001, 0.991345168,  1.219343809,
                                   5.218623112, -3.438972223, -3.433118916, 4.560457232};
  weir_device d = encoder_device(_i);
  weir_transformer_options o = float64_on(d);
  weir_transformer_decode_options causal = {.tgt_is_causal = true};
  WEIR_MODULE m = NULL;
  WEIR_MODULE n = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR memory = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR z = NULL;
  x = numbers_from(5, weir_shape(L, N, E), d);
  memory = numbers_from(40, weir_shape(L + 1, N, E), d);
  m = decoder_layer_of(o);
  weir_ok(weir_module_call_many(&y, m, (weir_tensor *[]){x, memory}, 2));
  output_is(y, after, 12.701938957);
  o.norm_first = true;
  o.activation = "gelu";
  n = decoder_layer_of(o);
  weir_ok(weir_transformer_decode(&z, n, x, memory, &causal));
  output_is(z, before, 83.514186406);
}
END_TEST

START_TEST(a_transformer_is_its_encoder_then_its_decoder)
{
  weir_device d = encoder_device(_i);
  weir_transformer_options o = float64_on(d);
  weir_options on = o.tensor;
  weir_transformer_encode_options see = {.is_causal = true};
  weir_transformer_decode_options back = {.memory_is_causal = true};
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR memory = NULL;
  WEIR_TENSOR expected = NULL;
  WEIR_TENSOR mask = NULL;
  weir_ok(weir_module_transformer(&m, E, HEADS, 2, 1, &o));
  ck_assert_ptr_nonnull(weir_module_parameter(m, "encoder.layers.1.norm2.bias"));
  ck_assert_ptr_nonnull(weir_module_parameter(m, "decoder.layers.0.multihead_attn.in_proj_bias"));
  ck_assert_ptr_nonnull(weir_module_parameter(m, "decoder.norm.weight"));
  x = numbers_from(5, weir_shape(L + 1, N, E), d);
  t = numbers_from(9, weir_shape(L, N, E), d);
  weir_ok(weir_generate_square_subsequent_mask(&mask, L, &on));
  back.tgt_mask = mask;
  weir_ok(weir_transformer(&y, m, x, t, &see, &back));
  weir_ok(weir_transformer_encode(&memory, weir_module_child(m, "encoder"), x, &see));
  back.tgt_mask = NULL;
  back.tgt_is_causal = true; /* which is what the mask says */
  weir_ok(weir_transformer_decode(&expected, weir_module_child(m, "decoder"), t, memory, &back));
  rig_same(y, expected, 1e-12);
}
END_TEST

START_TEST(what_is_no_decoder_is_refused)
{
  WEIR_MODULE relu = NULL;
  WEIR_MODULE m = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR more = NULL;
  weir_tensor *y;
  weir_module *other, *layer;
  weir_ok(weir_module_relu(&relu));
  x = rig_tensor(weir_shape(2, 3, 4), CPU, 1);
  wide = rig_tensor(weir_shape(2, 3, 5), CPU, 1);
  more = rig_tensor(weir_shape(2, 2, 4), CPU, 1);
  weir_ok(weir_module_transformer_encoder_layer(&layer, 4, 2, NULL));
  weir_not(WEIR_EINVAL, "the layer is TransformerEncoderLayer, no TransformerDecoderLayer",
           weir_module_transformer_decoder(&other, layer, 2, NULL));
  weir_not(WEIR_EINVAL, "a ReLU is no TransformerDecoder",
           weir_transformer_decode(&y, relu, x, x, NULL));
  weir_not(WEIR_EINVAL, "a ReLU is no Transformer", weir_transformer(&y, relu, x, x, NULL, NULL));
  weir_ok(weir_module_transformer(&m, 4, 2, 1, 1, NULL));
  weir_not(WEIR_EINVAL, "the batch number of src and tgt must be equal",
           weir_transformer(&y, m, x, more, NULL, NULL));
  weir_not(WEIR_EINVAL, "the feature number of src and tgt must be equal to d_model",
           weir_transformer(&y, m, x, wide, NULL, NULL));
  weir_not(WEIR_EINVAL, "Transformer.forward() takes 2 tensors but 1 were passed",
           weir_module_call(&y, m, x));
}
END_TEST

START_TEST(what_is_no_encoder_is_refused)
{
  WEIR_MODULE relu = NULL;
  WEIR_TENSOR x = NULL;
  weir_tensor *y;
  weir_module *m, *other;
  weir_transformer_options tanh = {.activation = "tanh"};
  weir_not(WEIR_EINVAL, "activation should be relu/gelu, not tanh",
           weir_module_transformer_encoder_layer(&m, 4, 2, &tanh));
  weir_not(WEIR_EINVAL, "embed_dim must be divisible by num_heads",
           weir_module_transformer_encoder_layer(&m, 4, 3, NULL));
  weir_ok(weir_module_relu(&other));
  weir_not(WEIR_EINVAL, "the layer is ReLU, no TransformerEncoderLayer",
           weir_module_transformer_encoder(&m, other, 2, NULL));
  weir_ok(weir_module_relu(&relu));
  x = rig_tensor(weir_shape(2, 4), CPU, 1);
  weir_not(WEIR_EINVAL, "a ReLU is no TransformerEncoder",
           weir_transformer_encode(&y, relu, x, NULL));
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("transformer");
  TCase *c = rig_case(suite);
  tcase_add_test(c, names_have_torchs_order_and_text);
  tcase_add_test(c, what_is_no_encoder_is_refused);
  tcase_add_test(c, what_is_no_decoder_is_refused);
  tcase_add_loop_test(c, a_decoder_gives_torchs_numbers, 0, 2);
  tcase_add_loop_test(c, a_transformer_is_its_encoder_then_its_decoder, 0, 2);
  tcase_add_loop_test(c, a_layer_gives_torchs_numbers, 0, 2);
  tcase_add_loop_test(c, an_encoder_is_its_layer_again_and_again_then_norm, 0, 2);
  tcase_add_loop_test(c, masks_say_what_is_seen, 0, 2);
  tcase_add_loop_test(c, dropout_is_active_in_training_alone, 0, 2);
  return rig_run(suite);
}
