/* transformer.c: TransformerEncoderLayer, TransformerDecoderLayer, stacks of them, and Transformer
 * (Vaswani et al., "Attention is all you need", NIPS 2017; with norm_first Xiong et al., ICML
 * 2020).
 *
 * A layer is a row of blocks: attention to itself, of a decoder attention to memory, and the two
 * Linears; block b has norm b and dropout b. Parts are found by place, in the order of torch's
 * names: attentions, linear1, dropout, linear2, norms, dropouts. What a call takes in addition to
 * its tensors goes by the thread (`masks_of_call`) to the module that it names, as in attention.c.
 * The layers of a stack are copies of one another at first: of its layer's options, then of its
 * elements. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/nn/plain.h"
#include "core/tensor/record.h"

enum { OF_ENCODER = 2, OF_DECODER = 3 }; /* blocks of a layer */
enum { TO_ITSELF, TO_MEMORY };           /* attentions, and blocks */
enum { STACK_LAYERS, STACK_NORM };       /* parts of an encoder or a decoder */
enum { WHOLE_ENCODER, WHOLE_DECODER };   /* parts of a Transformer */

/* A layer's data. */
typedef struct transformer_layer {
  int64_t features, heads;
  weir_transformer_options options; /* whole: no zero stands for a usual value, activation NULL */
  bool gelu;
  int blocks; /* OF_ENCODER or OF_DECODER */
} transformer_layer;

/* What a call takes in addition to its tensors, by attention. All borrowed. */
typedef struct attention_masks {
  const weir_module *of; /* who takes it */
  const weir_tensor *mask[2], *padding[2];
  bool causal[2];
  const struct attention_masks *decoder; /* of a Transformer, whose own are its encoder's */
} attention_masks;

static __thread const attention_masks *masks_of_call;

/* Those of this call of m; without any where it has none. */
static attention_masks take_masks(const weir_module *m)
{
  const attention_masks *o = masks_of_call;
  if (!o || o->of != m) return (attention_masks){.of = m};
  masks_of_call = NULL;
  return *o;
}

/* Calls m with masks. */
static weir_status call_masked(weir_tensor **out, weir_module *m, weir_tensor *const *in, int count,
                               attention_masks masks)
{
  const attention_masks *before = masks_of_call;
  masks.of = m;
  masks_of_call = &masks;
  weir_status st = weir_module_call_many(out, m, in, count);
  masks_of_call = before;
  return st;
}

/* ---- a layer's forward ----------------------------------------------------------------------- */

static int linear1_of(const transformer_layer *e)
{
  return e->blocks - 1;
}

static int norm_of(const transformer_layer *e, int block)
{
  return e->blocks + 2 + block;
}

static int dropout_of(const transformer_layer *e, int block)
{
  return 2 * e->blocks + 2 + block;
}

static weir_status part_call(weir_tensor **out, const weir_module *m, int part, weir_tensor *in)
{
  return weir_module_call(out, m->child[part].m, in);
}

static weir_status attend_to(weir_tensor **out, const weir_module *m, weir_tensor *x,
                             weir_tensor *memory, int which, const attention_masks *o)
{
  WEIR_TENSOR attended = NULL;
  weir_multihead_options how = {.attn_mask = o->mask[which],
                                .key_padding_mask = o->padding[which],
                                .is_causal = o->causal[which]};
  weir_status st =
      weir_multihead_attention(&attended, NULL, m->child[which].m, x, memory, memory, &how);
  return st ? st : part_call(out, m, dropout_of(m->data, which), attended);
}

static weir_status feed_forward(weir_tensor **out, const weir_module *m, weir_tensor *x)
{
  const transformer_layer *e = m->data;
  int linear1 = linear1_of(e);
  CALC(c);
  weir_tensor *wide = c_call(c, part_call, m, linear1, x);
  weir_tensor *active = e->gelu ? c_call(c, weir_gelu, wide, "none") : c_relu(c, wide);
  weir_tensor *kept = c_call(c, part_call, m, linear1 + 1, active);
  weir_tensor *narrow = c_call(c, part_call, m, linear1 + 2, kept);
  return c->st ? c->st : part_call(out, m, dropout_of(e, e->blocks - 1), narrow);
}

/* x and what a block makes of it, normalised before or after. memory: of a decoder. */
static weir_status residual(weir_tensor **out, const weir_module *m, weir_tensor *x,
                            weir_tensor *memory, int block, const attention_masks *o)
{
  const transformer_layer *e = m->data;
  int norm = norm_of(e, block);
  CALC(c);
  WEIR_TENSOR in = NULL, made = NULL;
  if (e->options.norm_first)
    c->st = part_call(&in, m, norm, x);
  else
    in = weir_tensor_retain(x);
  if (block < e->blocks - 1)
    c_do(c, attend_to(&made, m, in, block == TO_MEMORY ? memory : in, block, o));
  else
    c_do(c, feed_forward(&made, m, in));
  if (!c->st && e->options.norm_first) return weir_add(out, x, made);
  weir_tensor *sum = c_add(c, x, made);
  return c->st ? c->st : part_call(out, m, norm, sum);
}

static weir_status layer_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                 int count)
{
  const transformer_layer *e = m->data;
  attention_masks o = take_masks(m);
  bool decoder = e->blocks == OF_DECODER;
  weir_status st = decoder ? plain_inputs(m, count, 2) : plain_input(m, count);
  weir_tensor *x = st ? NULL : weir_tensor_retain(in[0]);
  for (int i = 0; !st && i < e->blocks; i++) {
    weir_tensor *y = NULL;
    st = residual(&y, m, x, decoder ? in[1] : NULL, i, &o);
    weir_tensor_release(x);
    x = y;
  }
  *out = x;
  return st;
}

static weir_status copy_transformer_layer(void **out, const void *data)
{
  *out = malloc(sizeof(transformer_layer));
  if (!*out) return fail_memory("a module Transformer");
  memcpy(*out, data, sizeof(transformer_layer));
  return WEIR_OK;
}

static const weir_module_class encoder_layer_class = {.name = "TransformerEncoderLayer",
                                                      .forward = layer_forward,
                                                      .destroy = free,
                                                      .clone = copy_transformer_layer};
static const weir_module_class decoder_layer_class = {.name = "TransformerDecoderLayer",
                                                      .forward = layer_forward,
                                                      .destroy = free,
                                                      .clone = copy_transformer_layer};

/* ---- a layer's parts ------------------------------------------------------------------------- */

static weir_norm_layer_options norm_options(const weir_transformer_options *o)
{
  return (weir_norm_layer_options){
      .tensor = o->tensor, .eps = o->layer_norm_eps, .no_bias = o->no_bias};
}

static weir_status make_part(weir_module **out, const transformer_layer *e, int part)
{
  const weir_transformer_options *o = &e->options;
  int linear1 = linear1_of(e);
  weir_layer_options linear = {.tensor = o->tensor, .no_bias = o->no_bias};
  weir_norm_layer_options norm = norm_options(o);
  weir_multihead_attention_options attention = {.tensor = o->tensor,
                                                .no_bias = o->no_bias,
                                                .batch_first = o->batch_first,
                                                .dropout = o->dropout};
  if (part < linear1)
    return weir_module_multihead_attention(out, e->features, e->heads, &attention);
  if (part == linear1) return weir_module_linear(out, e->features, o->dim_feedforward, &linear);
  if (part == linear1 + 2) return weir_module_linear(out, o->dim_feedforward, e->features, &linear);
  if (part >= norm_of(e, 0) && part < dropout_of(e, 0))
    return weir_module_layer_norm(out, weir_shape(e->features), &norm);
  return weir_module_dropout(out, o->dropout);
}

static weir_status make_transformer_layer(weir_module **out, const transformer_layer *e)
{
  static const char *const of_encoder[] = {"self_attn", "linear1", "dropout",  "linear2",
                                           "norm1",     "norm2",   "dropout1", "dropout2"};
  static const char *const of_decoder[] = {"self_attn", "multihead_attn", "linear1", "dropout",
                                           "linear2",   "norm1",          "norm2",   "norm3",
                                           "dropout1",  "dropout2",       "dropout3"};
  bool decoder = e->blocks == OF_DECODER;
  void *data = NULL;
  WEIR_MODULE m = NULL;
  weir_status st = copy_transformer_layer(&data, e);
  if (!st) st = weir_module_new(&m, decoder ? &decoder_layer_class : &encoder_layer_class, data);
  for (int i = 0; !st && i < dropout_of(e, e->blocks); i++) {
    weir_module *part = NULL;
    st = make_part(&part, e, i);
    if (!st) st = weir_module_add(m, decoder ? of_decoder[i] : of_encoder[i], part);
  }
  if (!st) *out = weir_module_retain(m);
  return st;
}

/* What is 0 is usual. */
static weir_status layer_of_options(transformer_layer *e, const weir_transformer_options *options)
{
  weir_transformer_options *o = &e->options;
  if (options) *o = *options;
  if (o->activation) e->gelu = !strcmp(o->activation, "gelu");
  if (o->activation && !e->gelu && strcmp(o->activation, "relu") != 0)
    return fail_invalid("activation should be relu/gelu, not %s", o->activation);
  o->activation = NULL; /* borrowed for the call alone */
  if (!o->dim_feedforward) o->dim_feedforward = 2048;
  if (o->no_dropout || o->dropout == 0) o->dropout = o->no_dropout ? 0 : .1;
  if (o->layer_norm_eps == 0) o->layer_norm_eps = 1e-5;
  return WEIR_OK;
}

#define TRANSFORMER_LAYER(name, count)                                                             \
  weir_status weir_module_##name(weir_module **out, int64_t d_model, int64_t nhead,                \
                                 const weir_transformer_options *options)                          \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out);                                                                         \
    transformer_layer e = {.features = d_model, .heads = nhead, .blocks = count};                  \
    weir_status st = layer_of_options(&e, options);                                                \
    return st ? st : make_transformer_layer(out, &e);                                              \
  }
TRANSFORMER_LAYER(transformer_encoder_layer, OF_ENCODER)
TRANSFORMER_LAYER(transformer_decoder_layer, OF_DECODER)

/* ---- TransformerEncoder, TransformerDecoder -------------------------------------------------- */

static weir_status stack_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                 int count)
{
  attention_masks o = take_masks(m);
  const weir_module *layers = m->child[STACK_LAYERS].m;
  weir_tensor *x = weir_tensor_retain(in[0]);
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < layers->children + m->children - 1; i++) {
    weir_tensor *y = NULL, *all[] = {x, count > 1 ? in[1] : NULL};
    st = i == layers->children ? weir_module_call(&y, m->child[STACK_NORM].m, x)
                               : call_masked(&y, layers->child[i].m, all, count, o);
    weir_tensor_release(x);
    x = y;
  }
  *out = x;
  return st;
}

static weir_status encoder_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                   int count)
{
  weir_status st = plain_input(m, count);
  return st ? st : stack_forward(out, m, in, count);
}

static weir_status decoder_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                   int count)
{
  weir_status st = plain_inputs(m, count, 2);
  return st ? st : stack_forward(out, m, in, count);
}

static const weir_module_class encoder_class = {.name = "TransformerEncoder",
                                                .forward = encoder_forward};
static const weir_module_class decoder_class = {.name = "TransformerDecoder",
                                                .forward = decoder_forward};

/* Another layer of the same options and elements. */
static weir_status copy_of_layer(weir_module **out, const weir_module *layer)
{
  WEIR_MODULE copy = NULL;
  WEIR_TENSORS state = NULL;
  weir_status st = make_transformer_layer(&copy, layer->data);
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

/* Of `kind`, from a layer of `of`; in the words of `function`. */
static weir_status make_stack(weir_module **out, const weir_module_class *kind,
                              const weir_module_class *of, const char *function, weir_module *layer,
                              int64_t num_layers, weir_module *norm)
{
  WEIR_MODULE m = NULL;
  weir_module *list;
  if (!layer || layer->kind != of)
    return fail_invalid("%s: the layer is %s, no %s", function, layer ? layer->kind->name : "NULL",
                        of->name);
  if (num_layers < 0) return fail_invalid("%s: num_layers is %" PRId64, function, num_layers);
  weir_status st = weir_module_new(&m, kind, NULL);
  if (!st) st = list_layers(&list, layer, num_layers);
  if (!st) st = weir_module_add(m, "layers", list);
  if (!st && norm) st = weir_module_add(m, "norm", weir_module_retain(norm));
  if (!st) *out = weir_module_retain(m);
  return st;
}

#define TRANSFORMER_STACK(name, kind, of)                                                          \
  weir_status weir_module_##name(weir_module **out, weir_module *layer, int64_t num_layers,        \
                                 weir_module *norm)                                                \
  {                                                                                                \
    WEIR_MODULE stolen = layer;                                                                    \
    WEIR_MODULE last = norm;                                                                       \
    WEIR_REQUIRE_OUT(out);                                                                         \
    return make_stack(out, kind, of, __func__, stolen, num_layers, last);                          \
  }
TRANSFORMER_STACK(transformer_encoder, &encoder_class, &encoder_layer_class)
TRANSFORMER_STACK(transformer_decoder, &decoder_class, &decoder_layer_class)

/* ---- calls with masks ------------------------------------------------------------------------ */

static attention_masks encoder_masks(const weir_transformer_encode_options *o)
{
  if (!o) return (attention_masks){0};
  return (attention_masks){
      .mask = {o->mask}, .padding = {o->src_key_padding_mask}, .causal = {o->is_causal}};
}

static attention_masks decoder_masks(const weir_transformer_decode_options *o)
{
  if (!o) return (attention_masks){0};
  return (attention_masks){.mask = {o->tgt_mask, o->memory_mask},
                           .padding = {o->tgt_key_padding_mask, o->memory_key_padding_mask},
                           .causal = {o->tgt_is_causal, o->memory_is_causal}};
}

weir_status weir_transformer_encode(weir_tensor **out, weir_module *m, weir_tensor *src,
                                    const weir_transformer_encode_options *options)
{
  WEIR_REQUIRE_OUT(out, m, src);
  if (m->kind != &encoder_class && m->kind != &encoder_layer_class)
    return fail_invalid(
        "weir_transformer_encode: a %s is no TransformerEncoder, and no layer of one",
        m->kind->name);
  return call_masked(out, m, &src, 1, encoder_masks(options));
}

weir_status weir_transformer_decode(weir_tensor **out, weir_module *m, weir_tensor *tgt,
                                    weir_tensor *memory,
                                    const weir_transformer_decode_options *options)
{
  WEIR_REQUIRE_OUT(out, m, tgt, memory);
  if (m->kind != &decoder_class && m->kind != &decoder_layer_class)
    return fail_invalid(
        "weir_transformer_decode: a %s is no TransformerDecoder, and no layer of one",
        m->kind->name);
  return call_masked(out, m, (weir_tensor *[]){tgt, memory}, 2, decoder_masks(options));
}

/* ---- Transformer ----------------------------------------------------------------------------- */

/* torch's words; sizes of a tensor that has too few dimensions are 0. */
static weir_status check_transformer(const transformer_layer *e, const weir_tensor *src,
                                     const weir_tensor *tgt)
{
  int dims = weir_tensor_dim(src), of = weir_tensor_dim(tgt),
      batch = e->options.batch_first ? 0 : 1;
  if (dims < 2 || of < 2)
    return fail_invalid("Transformer: src and tgt have %d and %d dimensions, not 2 or 3", dims, of);
  if (dims == 3 && weir_tensor_size(src, batch) != weir_tensor_size(tgt, batch))
    return fail_invalid("the batch number of src and tgt must be equal");
  if (weir_tensor_size(src, -1) != e->features || weir_tensor_size(tgt, -1) != e->features)
    return fail_invalid("the feature number of src and tgt must be equal to d_model");
  return WEIR_OK;
}

static weir_status transformer_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                       int count)
{
  static const attention_masks none = {0};
  attention_masks o = take_masks(m);
  CALC(c);
  c->st = plain_inputs(m, count, 2);
  c_do(c, check_transformer(m->data, in[0], in[1]));
  weir_tensor *memory = c_call(c, call_masked, m->child[WHOLE_ENCODER].m, in, 1, o);
  return c->st ? c->st
               : call_masked(out, m->child[WHOLE_DECODER].m, (weir_tensor *[]){in[1], memory}, 2,
                             o.decoder ? *o.decoder : none);
}

static const weir_module_class transformer_class = {.name = "Transformer",
                                                    .forward = transformer_forward,
                                                    .destroy = free,
                                                    .clone = copy_transformer_layer};

/* A stack of `count` layers and a LayerNorm. */
static weir_status add_stack(weir_module *m, const char *name, int blocks, int64_t count)
{
  transformer_layer e = *(const transformer_layer *)m->data;
  weir_norm_layer_options normal = norm_options(&e.options);
  weir_module *layer = NULL, *norm = NULL, *stack = NULL;
  e.blocks = blocks;
  weir_status st = make_transformer_layer(&layer, &e);
  if (!st) st = weir_module_layer_norm(&norm, weir_shape(e.features), &normal);
  if (st) {
    weir_module_release(layer);
    return st;
  }
  st = blocks == OF_DECODER ? weir_module_transformer_decoder(&stack, layer, count, norm)
                            : weir_module_transformer_encoder(&stack, layer, count, norm);
  return st ? st : weir_module_add(m, name, stack);
}

/* xavier_uniform_ (Glorot and Bengio 2010) of what has two dimensions. */
static weir_status fill_by_xavier(void *user, const char *path, weir_tensor *t)
{
  (void)user;
  (void)path;
  if (weir_tensor_dim(t) < 2) return WEIR_OK;
  double bound = sqrt(6.0 / (double)(weir_tensor_size(t, 0) + weir_tensor_size(t, 1)));
  return weir_uniform_(t, -bound, bound, NULL);
}

weir_status weir_module_transformer(weir_module **out, int64_t d_model, int64_t nhead,
                                    int64_t num_encoder_layers, int64_t num_decoder_layers,
                                    const weir_transformer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  WEIR_UNRECORDED;
  transformer_layer e = {.features = d_model, .heads = nhead};
  WEIR_MODULE m = NULL;
  void *data = NULL;
  weir_status st = layer_of_options(&e, options);
  if (!st) st = copy_transformer_layer(&data, &e);
  if (!st) st = weir_module_new(&m, &transformer_class, data);
  if (!st) st = add_stack(m, "encoder", OF_ENCODER, num_encoder_layers);
  if (!st) st = add_stack(m, "decoder", OF_DECODER, num_decoder_layers);
  if (!st) st = weir_module_visit(m, WEIR_PARAMETERS, fill_by_xavier, NULL);
  if (!st) *out = weir_module_retain(m);
  return st;
}

weir_status weir_transformer(weir_tensor **out, weir_module *m, weir_tensor *src, weir_tensor *tgt,
                             const weir_transformer_encode_options *encode,
                             const weir_transformer_decode_options *decode)
{
  WEIR_REQUIRE_OUT(out, m, src, tgt);
  if (m->kind != &transformer_class)
    return fail_invalid("weir_transformer: a %s is no Transformer", m->kind->name);
  attention_masks masks = encoder_masks(encode), of_decoder = decoder_masks(decode);
  masks.decoder = &of_decoder;
  return call_masked(out, m, (weir_tensor *[]){src, tgt}, 2, masks);
}

weir_status weir_generate_square_subsequent_mask(weir_tensor **out, int64_t size,
                                                 const weir_options *options)
{
  WEIR_REQUIRE_OUT(out);
  CALC(c);
  weir_options o = options ? *options : (weir_options){0};
  if (!o.dtype) o.dtype = weir_get_default_dtype();
  weir_tensor *all = c_call(c, weir_full, weir_shape(size, size), weir_float(-INFINITY), &o);
  return c->st ? c->st : weir_triu(out, all, 1);
}
