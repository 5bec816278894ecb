/* decoder.h: a transformer decoder as GPT-2: places are learned, attention sees what came
 * before, the output's weight is that of wte. Tokens are (N, L) of int64, outputs (N, L,
 * vocabulary): the logits of the next one. Names are GPT-2's: wte, wpe, h.0.ln_1,
 * h.0.attn.c_attn, ...; weights are (out, in), as those of Linear. (Radford et al.: "Language
 * models are unsupervised multitask learners", 2019) */
#ifndef WEIR_TOOLS_EXAMPLES_DECODER_H
#define WEIR_TOOLS_EXAMPLES_DECODER_H

#include "transformer.h"

/* ---- a block's parts ------------------------------------------------------------------------- */

/* Third `place` of all (N, L, 3 features), as (N, heads, L, features / heads). */
static inline weir_status head_part(weir_tensor **out, const weir_tensor *all, int place,
                                    int64_t heads)
{
  WEIR_TENSOR part = NULL;
  WEIR_TENSOR split = NULL;
  int64_t e = weir_tensor_size(all, 2) / 3, n = weir_tensor_size(all, 0);
  TRY(weir_narrow(&part, all, 2, place * e, e));
  TRY(weir_reshape(&split, part, weir_shape(n, weir_tensor_size(all, 1), heads, e / heads)));
  return weir_transpose(out, split, 1, 2);
}

static inline weir_status causal_forward(weir_tensor **out, weir_module *self,
                                         weir_tensor *const *in, int count)
{
  const model_size *s = weir_module_data(self);
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR q = NULL;
  WEIR_TENSOR k = NULL;
  WEIR_TENSOR v = NULL;
  WEIR_TENSOR seen = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR flat = NULL;
  if (count != 1) return weir_fail(WEIR_EINVAL, "CausalAttention takes 1 tensor, not %d", count);
  x = weir_tensor_retain(in[0]);
  TRY(run_child(self, "c_attn", &x));
  TRY(head_part(&q, x, 0, s->heads));
  TRY(head_part(&k, x, 1, s->heads));
  TRY(head_part(&v, x, 2, s->heads));
  TRY(weir_scaled_dot_product_attention(&seen, q, k, v,
                                        &(weir_attention_options){.is_causal = true}));
  TRY(weir_transpose(&turned, seen, 1, 2));
  TRY(weir_reshape(&flat, turned, weir_tensor_shape(in[0])));
  return weir_module_call(out, weir_module_child(self, "c_proj"), flat);
}

/* x and what `part` makes of it, normalised. */
static inline weir_status block_part(weir_module *self, const char *norm, const char *part,
                                     weir_tensor **x)
{
  WEIR_TENSOR y = NULL;
  weir_tensor *sum;
  y = weir_tensor_retain(*x);
  TRY(run_child(self, norm, &y));
  TRY(run_child(self, part, &y));
  TRY(weir_add(&sum, *x, y));
  weir_tensor_release(*x);
  *x = sum;
  return WEIR_OK;
}

static inline weir_status decoder_block_forward(weir_tensor **out, weir_module *self,
                                                weir_tensor *const *in, int count)
{
  WEIR_TENSOR x = NULL;
  if (count != 1) return weir_fail(WEIR_EINVAL, "Block takes 1 tensor, not %d", count);
  x = weir_tensor_retain(in[0]);
  TRY(block_part(self, "ln_1", "attn", &x));
  TRY(block_part(self, "ln_2", "mlp", &x));
  *out = weir_tensor_retain(x);
  return WEIR_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static inline weir_status make_attention(weir_module **out, const model_size *s)
{
  static const weir_module_class kind = {.name = "CausalAttention", .forward = causal_forward};
  WEIR_MODULE m = NULL;
  TRY(weir_module_new(&m, &kind, (void *)s));
  TRY(add_linear(m, "c_attn", s->features, 3 * s->features));
  TRY(add_linear(m, "c_proj", s->features, s->features));
  *out = weir_module_retain(m);
  return WEIR_OK;
}

/* A Sequential whose layers have names. */
static inline weir_status make_mlp(weir_module **out, const model_size *s)
{
  WEIR_MODULE m = NULL;
  weir_module *gelu;
  TRY(weir_module_sequential(&m, NULL, 0));
  TRY(add_linear(m, "c_fc", s->features, 4 * s->features));
  TRY(weir_module_gelu(&gelu, "tanh"));
  TRY(weir_module_add(m, "gelu", gelu));
  TRY(add_linear(m, "c_proj", 4 * s->features, s->features));
  *out = weir_module_retain(m);
  return WEIR_OK;
}

static inline weir_status make_decoder_block(weir_module **out, const model_size *s)
{
  static const weir_module_class kind = {.name = "Block", .forward = decoder_block_forward};
  WEIR_MODULE m = NULL;
  weir_module *child;
  TRY(weir_module_new(&m, &kind, NULL));
  TRY(add_norm(m, "ln_1", s->features, 1e-5));
  TRY(make_attention(&child, s));
  TRY(weir_module_add(m, "attn", child));
  TRY(add_norm(m, "ln_2", s->features, 1e-5));
  TRY(make_mlp(&child, s));
  TRY(weir_module_add(m, "mlp", child));
  *out = weir_module_retain(m);
  return WEIR_OK;
}

static inline weir_status gpt_forward(weir_tensor **out, weir_module *self, weir_tensor *const *in,
                                      int count)
{
  WEIR_TENSOR x = NULL;
  weir_module *blocks = weir_module_child(self, "h");
  if (count != 1) return weir_fail(WEIR_EINVAL, "Gpt takes 1 tensor, not %d", count);
  x = weir_tensor_retain(in[0]);
  TRY(run_child(self, "wte", &x));
  TRY(add_places(self, "wpe", &x));
  for (size_t i = 0; i < weir_module_children(blocks); i++) {
    const char *name;
    (void)weir_module_child_at(blocks, i, &name);
    TRY(run_child(blocks, name, &x));
  }
  TRY(run_child(self, "ln_f", &x));
  return weir_linear(out, x, weir_module_parameter(self, "wte.weight"), NULL);
}

/* s lives as long as the model. */
static inline weir_status make_gpt(weir_module **out, const model_size *s)
{
  static const weir_module_class kind = {.name = "Gpt", .forward = gpt_forward};
  WEIR_MODULE m = NULL;
  weir_module *blocks, *block;
  TRY(weir_module_new(&m, &kind, NULL));
  TRY(add_embedding(m, "wte", s->vocabulary, s->features));
  TRY(add_embedding(m, "wpe", s->places, s->features));
  TRY(weir_module_list(&blocks, NULL, 0));
  TRY(weir_module_add(m, "h", blocks));
  for (int64_t i = 0; i < s->layers; i++) {
    TRY(make_decoder_block(&block, s));
    TRY(weir_module_append(blocks, block));
  }
  TRY(add_norm(m, "ln_f", s->features, 1e-5));
  *out = weir_module_retain(m);
  return WEIR_OK;
}

#endif
