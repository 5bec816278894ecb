/* embedding.c: Embedding: rows of its weight by index. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include "core/base/require.h"
#include "core/nn/plain.h"
#include "core/weir/indexing.h"

/* An Embedding's data. */
typedef struct embedding_data {
  bool padded;         /* it has a row of padding */
  int64_t padding_idx; /* that row; not negative */
} embedding_data;

static weir_status embedding_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                     int count)
{
  weir_status st = plain_input(m, count);
  return st ? st : weir_embedding(out, in[0], m->slot[0].t);
}

static void embedding_describe(char *out, size_t room, const weir_module *m)
{
  const embedding_data *e = m->data;
  const weir_tensor *w = m->slot[0].t;
  char padding[48] = "";
  if (e->padded) (void)snprintf(padding, sizeof padding, ", padding_idx=%" PRId64, e->padding_idx);
  (void)snprintf(out, room, "%" PRId64 ", %" PRId64 "%s", weir_tensor_size(w, 0),
                 weir_tensor_size(w, 1), padding);
}

/* Normal, as torch's; the row of padding 0. */
static weir_status add_rows(weir_module *m, int64_t count, int64_t size,
                            const weir_embedding_options *o)
{
  const embedding_data *e = m->data;
  WEIR_TENSOR weight = NULL;
  WEIR_TENSOR row = NULL;
  weir_status st = weir_empty(&weight, weir_shape(count, size), &o->tensor);
  if (!st) st = weir_normal_(weight, 0, 1, NULL);
  if (!st && e->padded) st = weir_select(&row, weight, 0, e->padding_idx);
  if (!st && e->padded) st = weir_zero_(row);
  return st ? st : weir_module_add_parameter(m, "weight", weir_tensor_retain(weight));
}

static weir_status check_padding(embedding_data *out, int64_t count,
                                 const weir_embedding_options *o)
{
  *out = (embedding_data){o->has_padding, o->padding_idx};
  if (!o->has_padding) return WEIR_OK;
  if (o->padding_idx >= count || o->padding_idx < -count)
    return weir_fail(WEIR_EINVAL, "Padding_idx must be within num_embeddings");
  if (o->padding_idx < 0) out->padding_idx += count;
  return WEIR_OK;
}

weir_status weir_module_embedding(weir_module **out, int64_t num_embeddings, int64_t embedding_dim,
                                  const weir_embedding_options *options)
{
  WEIR_REQUIRE_OUT(out);
  static const weir_module_class kind = {.name = "Embedding",
                                         .forward = embedding_forward,
                                         .destroy = free,
                                         .describe = embedding_describe};
  static const weir_embedding_options none = {0};
  const weir_embedding_options *o = options ? options : &none;
  embedding_data e;
  WEIR_MODULE m = NULL;
  weir_status st = check_padding(&e, num_embeddings, o);
  if (st) return st;
  embedding_data *copy = malloc(sizeof *copy);
  if (!copy) return weir_fail(WEIR_ENOMEM, "no host memory for a module Embedding");
  *copy = e;
  st = weir_module_new(&m, &kind, copy);
  if (!st) st = add_rows(m, num_embeddings, embedding_dim, o);
  if (!st) *out = weir_module_retain(m);
  return st;
}
