/* embedding.c: Embedding, EmbeddingBag: rows of their weight by index, and sums of such. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/nn/plain.h"
#include "core/nn/text.h"

/* An Embedding's data; an EmbeddingBag's, too. */
typedef struct embedding_data {
  bool padded;                     /* it has a row of padding */
  int64_t padding_idx;             /* that row; not negative */
  weir_embedding_bag_options bag;  /* of an EmbeddingBag */
  weir_embedding_with_options how; /* of an Embedding */
} embedding_data;

LAYER_FORWARD(embedding_data, embedding, weir_embedding_with(out, x, m->slot[0].t, &d->how))

static void embedding_describe(char *out, size_t room, const weir_module *m)
{
  const embedding_data *e = m->data;
  const weir_tensor *w = m->slot[0].t;
  layer_text text;
  char padding[48] = "", most[64] = "", norm[64] = "";
  if (e->padded) (void)snprintf(padding, sizeof padding, ", padding_idx=%" PRId64, e->padding_idx);
  if (e->how.max_norm != 0)
    (void)snprintf(most, sizeof most, ", max_norm=%.40s", float_text(&text, e->how.max_norm));
  if (e->how.norm_type != 2)
    (void)snprintf(norm, sizeof norm, ", norm_type=%.40s", float_text(&text, e->how.norm_type));
  (void)snprintf(out, room, "%" PRId64 ", %" PRId64 "%s%s%s%s", weir_tensor_size(w, 0),
                 weir_tensor_size(w, 1), padding, most, norm,
                 e->how.scale_grad_by_freq ? ", scale_grad_by_freq=True" : "");
}

/* Normal, as torch's; the row of padding 0. */
static weir_status add_embedding_rows(weir_module *m, int64_t count, int64_t size,
                                      const weir_options *o)
{
  const embedding_data *e = m->data;
  CALC(c);
  weir_tensor *weight = c_call(c, weir_empty, weir_shape(count, size), o);
  c_do(c, weir_normal_(weight, 0, 1, NULL));
  weir_tensor *row = e->padded ? c_select(c, weight, 0, e->padding_idx) : NULL;
  if (e->padded) c_do(c, weir_zero_(row));
  return c->st ? c->st : weir_module_add_parameter(m, "weight", weir_tensor_retain(weight));
}

/* A padding_idx that is negative counts from the end; refusal: the error for one beyond it. */
static weir_status check_padding(embedding_data *out, int64_t count, const char *refusal)
{
  if (!out->padded) return WEIR_OK;
  if (out->padding_idx >= count || out->padding_idx < -count)
    return fail_invalid("%s must be within num_embeddings", refusal);
  if (out->padding_idx < 0) out->padding_idx += count;
  return WEIR_OK;
}

static weir_status rows_layer(weir_module **out, const weir_module_class *kind,
                              const embedding_data *e, int64_t count, int64_t size,
                              const weir_options *o)
{
  WEIR_MODULE m = NULL;
  weir_status st = layer_with(&m, kind, e, sizeof *e);
  if (!st) st = add_embedding_rows(m, count, size, o);
  if (!st) *out = weir_module_retain(m);
  return st;
}

PLAIN_CLASS("Embedding", embedding, embedding_describe)

weir_status weir_module_embedding(weir_module **out, int64_t num_embeddings, int64_t embedding_dim,
                                  const weir_embedding_options *options)
{
  WEIR_REQUIRE_OUT(out);
  static const weir_embedding_options none = {0};
  const weir_embedding_options *o = options ? options : &none;
  embedding_data e = {.padded = o->has_padding, .padding_idx = o->padding_idx};
  weir_status st = check_padding(&e, num_embeddings, "Padding_idx");
  e.how =
      (weir_embedding_with_options){e.padded, e.padding_idx, o->max_norm,
                                    o->norm_type != 0 ? o->norm_type : 2, o->scale_grad_by_freq};
  return st ? st : rows_layer(out, &embedding_class, &e, num_embeddings, embedding_dim, &o->tensor);
}

/* ---- EmbeddingBag ---------------------------------------------------------------------------- */

/* Indices, offsets (may be NULL), weights of samples. */
static weir_status embedding_bag_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                         int count)
{
  const embedding_data *e = m->data;
  if (count < 1 || count > 3 || !in[0])
    return fail_invalid("EmbeddingBag.forward() takes from 1 to 3 tensors but %d were passed",
                        count);
  return weir_embedding_bag(out, in[0], m->slot[0].t, count > 1 ? in[1] : NULL,
                            count > 2 ? in[2] : NULL, &e->bag);
}

static void embedding_bag_describe(char *out, size_t room, const weir_module *m)
{
  static const char *const modes[] = {"mean", "sum", "max"};
  const embedding_data *e = m->data;
  const weir_tensor *w = m->slot[0].t;
  char padding[48] = "";
  if (e->padded) (void)snprintf(padding, sizeof padding, ", padding_idx=%" PRId64, e->padding_idx);
  (void)snprintf(out, room, "%" PRId64 ", %" PRId64 ", mode='%s'%s", weir_tensor_size(w, 0),
                 weir_tensor_size(w, 1), modes[e->bag.mode], padding);
}

PLAIN_CLASS("EmbeddingBag", embedding_bag, embedding_bag_describe)

weir_status weir_module_embedding_bag(weir_module **out, int64_t num_embeddings,
                                      int64_t embedding_dim,
                                      const weir_embedding_bag_layer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  static const weir_embedding_bag_layer_options none = {0};
  const weir_embedding_bag_layer_options *o = options ? options : &none;
  embedding_data e = {
      .padded = o->bag.has_padding, .padding_idx = o->bag.padding_idx, .bag = o->bag};
  if ((unsigned)e.bag.mode > WEIR_BAG_MAX)
    return fail_invalid("mode has to be one of sum, mean or max");
  weir_status st = check_padding(&e, num_embeddings, "padding_idx");
  e.bag.padding_idx = e.padding_idx;
  return st ? st
            : rows_layer(out, &embedding_bag_class, &e, num_embeddings, embedding_dim, &o->tensor);
}
