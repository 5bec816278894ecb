/* transformer.c: TransformerEncoderLayer, TransformerEncoder (Vaswani et al., "Attention is all you
 * need", NIPS 2017; with norm_first Xiong et al., ICML 2020).
 *
 * A layer finds its parts by place, PART_*, in the order of torch's names. What a call takes beside
 * its tensor goes by the thread (`encode_options_of_call`), as in attention.c. The layers of an
 * encoder are copies of one another at first: of its layer's options, then of its elements. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/require.h"
#include "core/nn/plain.h"
#include "core/weir/functions.h"
#include "core/weir/sequence.h"

enum {
  PART_ATTENTION,
  PART_LINEAR1,
  PART_DROPOUT,
  PART_LINEAR2,
  PART_NORM1,
  PART_NORM2,
  PART_DROPOUT1,
  PART_DROPOUT2
};

enum { PART_LAYERS, PART_NORM }; /* of an encoder */

/* A TransformerEncoderLayer's data. */
typedef struct encoder_layer {
  int64_t features, heads;
  weir_transformer_options options; /* whole: no zero stands for a usual value, activation NULL */
  bool gelu;
} encoder_layer;

static __thread const weir_transformer_encode_options *encode_options_of_call;

/* ---- a layer's forward ----------------------------------------------------------------------- */

static weir_status part_call(weir_tensor **out, const weir_module *m, int part, weir_tensor *in)
{
  return weir_module_call(out, m->child[part].m, in);
}

static weir_status self_attention(weir_tensor **out, const weir_module *m, weir_tensor *x,
                                  const weir_transformer_encode_options *o)
{
  WEIR_TENSOR attended = NULL;
  weir_multihead_options how = {
      .attn_mask = o->mask, .key_padding_mask = o->src_key_padding_mask, .is_causal = o->is_causal};
  weir_status st =
      weir_multihead_attention(&attended, NULL, m->child[PART_ATTENTION].m, x, x, x, &how);
  return st ? st : part_call(out, m, PART_DROPOUT1, attended);
}

static weir_status feed_forward(weir_tensor **out, const weir_module *m, weir_tensor *x)
{
  const encoder_layer *e = m->data;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR active = NULL;
  WEIR_TENSOR kept = NULL;
  WEIR_TENSOR narrow = NULL;
  weir_status st = part_call(&wide, m, PART_LINEAR1, x);
  if (!st) st = e->gelu ? weir_gelu(&active, wide, "none") : weir_relu(&active, wide);
  if (!st) st = part_call(&kept, m, PART_DROPOUT, active);
  if (!st) st = part_call(&narrow, m, PART_LINEAR2, kept);
  return st ? st : part_call(out, m, PART_DROPOUT2, narrow);
}

/* x and what a part (o: attention; NULL: the other) makes of it, normalised before or after. */
static weir_status residual(weir_tensor **out, const weir_module *m, weir_tensor *x,
                            const weir_transformer_encode_options *o)
{
  const encoder_layer *e = m->data;
  int norm = o ? PART_NORM1 : PART_NORM2;
  WEIR_TENSOR in = NULL;
  WEIR_TENSOR made = NULL;
  WEIR_TENSOR sum = NULL;
  weir_status st = WEIR_OK;
  if (e->options.norm_first)
    st = part_call(&in, m, norm, x);
  else
    in = weir_tensor_retain(x);
  if (!st) st = o ? self_attention(&made, m, in, o) : feed_forward(&made, m, in);
  if (!st && e->options.norm_first) return weir_add(out, x, made);
  if (!st) st = weir_add(&sum, x, made);
  return st ? st : part_call(out, m, norm, sum);
}

static const weir_transformer_encode_options *take_encode_options(void)
{
  static const weir_transformer_encode_options none = {0};
  const weir_transformer_encode_options *o = encode_options_of_call;
  encode_options_of_call = NULL;
  return o ? o : &none;
}

static weir_status encoder_layer_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                         int count)
{
  const weir_transformer_encode_options *o = take_encode_options();
  WEIR_TENSOR attended = NULL;
  weir_status st = plain_input(m, count);
  if (!st) st = residual(&attended, m, in[0], o);
  return st ? st : residual(out, m, attended, NULL);
}

static weir_status copy_encoder_layer(void **out, const void *data)
{
  *out = malloc(sizeof(encoder_layer));
  if (!*out) return weir_fail(WEIR_ENOMEM, "no host memory for a module TransformerEncoderLayer");
  memcpy(*out, data, sizeof(encoder_layer));
  return WEIR_OK;
}

static const weir_module_class encoder_layer_class = {.name = "TransformerEncoderLayer",
                                                      .forward = encoder_layer_forward,
                                                      .destroy = free,
                                                      .clone = copy_encoder_layer};

/* ---- a layer's parts ------------------------------------------------------------------------- */

static weir_status make_part(weir_module **out, const encoder_layer *e, int part)
{
  const weir_transformer_options *o = &e->options;
  weir_layer_options linear = {.tensor = o->tensor, .no_bias = o->no_bias};
  weir_norm_layer_options norm = {
      .tensor = o->tensor, .eps = o->layer_norm_eps, .no_bias = o->no_bias};
  weir_multihead_attention_options attention = {.tensor = o->tensor,
                                                .no_bias = o->no_bias,
                                                .batch_first = o->batch_first,
                                                .dropout = o->dropout};
  switch (part) {
  case PART_ATTENTION:
    return weir_module_multihead_attention(out, e->features, e->heads, &attention);
  case PART_LINEAR1:
    return weir_module_linear(out, e->features, o->dim_feedforward, &linear);
  case PART_LINEAR2:
    return weir_module_linear(out, o->dim_feedforward, e->features, &linear);
  case PART_NORM1:
  case PART_NORM2:
    return weir_module_layer_norm(out, weir_shape(e->features), &norm);
  default:
    return weir_module_dropout(out, o->dropout);
  }
}

static weir_status make_encoder_layer(weir_module **out, const encoder_layer *e)
{
  static const char *const names[] = {"self_attn", "linear1", "dropout",  "linear2",
                                      "norm1",     "norm2",   "dropout1", "dropout2"};
  void *data = NULL;
  WEIR_MODULE m = NULL;
  weir_status st = copy_encoder_layer(&data, e);
  if (!st) st = weir_module_new(&m, &encoder_layer_class, data);
  for (int i = PART_ATTENTION; !st && i <= PART_DROPOUT2; i++) {
    weir_module *part = NULL;
    st = make_part(&part, e, i);
    if (!st) st = weir_module_add(m, names[i], part);
  }
  if (!st) *out = weir_module_retain(m);
  return st;
}

weir_status weir_module_transformer_encoder_layer(weir_module **out, int64_t d_model, int64_t nhead,
                                                  const weir_transformer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  encoder_layer e = {.features = d_model, .heads = nhead};
  weir_transformer_options *o = &e.options;
  if (options) *o = *options;
  if (o->activation) e.gelu = !strcmp(o->activation, "gelu");
  if (o->activation && !e.gelu && strcmp(o->activation, "relu") != 0)
    return weir_fail(WEIR_EINVAL, "activation should be relu/gelu, not %s", o->activation);
  o->activation = NULL; /* borrowed for the call alone */
  if (!o->dim_feedforward) o->dim_feedforward = 2048;
  if (o->no_dropout || o->dropout == 0) o->dropout = o->no_dropout ? 0 : .1;
  if (o->layer_norm_eps == 0) o->layer_norm_eps = 1e-5;
  return make_encoder_layer(out, &e);
}

/* ---- TransformerEncoder ---------------------------------------------------------------------- */

static weir_status encoder_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                   int count)
{
  const weir_transformer_encode_options *o = take_encode_options();
  const weir_module *layers = m->child[PART_LAYERS].m;
  weir_status st = plain_input(m, count);
  weir_tensor *x = st ? NULL : weir_tensor_retain(in[0]);
  for (size_t i = 0; !st && i < layers->children + m->children - 1; i++) {
    bool norm = i == layers->children;
    weir_tensor *y = NULL;
    encode_options_of_call = norm ? NULL : o;
    st = weir_module_call(&y, norm ? m->child[PART_NORM].m : layers->child[i].m, x);
    encode_options_of_call = NULL;
    weir_tensor_release(x);
    x = y;
  }
  *out = x;
  return st;
}

static const weir_module_class encoder_class = {.name = "TransformerEncoder",
                                                .forward = encoder_forward};

/* Another layer of the same options and elements. */
static weir_status copy_of_layer(weir_module **out, const weir_module *layer)
{
  WEIR_MODULE copy = NULL;
  WEIR_TENSORS state = NULL;
  weir_status st = make_encoder_layer(&copy, layer->data);
  if (!st) st = weir_module_state(&state, layer);
  if (!st) st = weir_module_load_state(copy, state, true);
  if (!st) *out = weir_module_retain(copy);
  return st;
}

/* layer and its copies. */
static weir_status list_layers(weir_module **out, weir_module *layer, int64_t count)
{
  WEIR_MODULE list = NULL;
  weir_status st = weir_module_list(&list, NULL, 0);
  for (int64_t i = 0; !st && i < count; i++) {
    weir_module *next = i ? NULL : weir_module_retain(layer);
    if (i) st = copy_of_layer(&next, layer);
    if (!st) st = weir_module_append(list, next);
  }
  if (!st) *out = weir_module_retain(list);
  return st;
}

static weir_status make_encoder(weir_module **out, weir_module *layer, int64_t num_layers,
                                weir_module *norm)
{
  WEIR_MODULE m = NULL;
  weir_module *list;
  if (!layer || layer->kind != &encoder_layer_class)
    return weir_fail(WEIR_EINVAL,
                     "weir_module_transformer_encoder: the layer is %s, no TransformerEncoderLayer",
                     layer ? layer->kind->name : "NULL");
  if (num_layers < 0)
    return weir_fail(WEIR_EINVAL, "weir_module_transformer_encoder: num_layers is %" PRId64,
                     num_layers);
  weir_status st = weir_module_new(&m, &encoder_class, NULL);
  if (!st) st = list_layers(&list, layer, num_layers);
  if (!st) st = weir_module_add(m, "layers", list);
  if (!st && norm) st = weir_module_add(m, "norm", weir_module_retain(norm));
  if (!st) *out = weir_module_retain(m);
  return st;
}

weir_status weir_module_transformer_encoder(weir_module **out, weir_module *layer,
                                            int64_t num_layers, weir_module *norm)
{
  WEIR_MODULE stolen = layer;
  WEIR_MODULE last = norm;
  WEIR_REQUIRE_OUT(out);
  return make_encoder(out, stolen, num_layers, last);
}

weir_status weir_transformer_encode(weir_tensor **out, weir_module *m, weir_tensor *src,
                                    const weir_transformer_encode_options *options)
{
  WEIR_REQUIRE_OUT(out, m, src);
  if (m->kind != &encoder_class && m->kind != &encoder_layer_class)
    return weir_fail(WEIR_EINVAL,
                     "weir_transformer_encode: a %s is no TransformerEncoder, and no layer of one",
                     m->kind->name);
  encode_options_of_call = options;
  weir_status st = weir_module_call(out, m, src);
  encode_options_of_call = NULL;
  return st;
}
