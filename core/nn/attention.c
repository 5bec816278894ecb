/* attention.c: MultiheadAttention.
 *
 * Weights and biases of the three inputs lie in one parameter each, one below the other, as
 * torch's: attention to itself is then one product. What a call takes and gives in addition to
 * tensors goes by the thread (`multihead_extra`), since a module's forward has room for inputs and
 * one output. */
#include "core/nn/module.h"
#include "core/tensor/calc.h"
#include "core/tensor/record.h"
#include "core/ops/ops.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IN_WEIGHT, Q_WEIGHT, K_WEIGHT, V_WEIGHT, IN_BIAS };

/* A MultiheadAttention's data. */
typedef struct multihead {
  int64_t features, heads, kdim, vdim;
  double dropout;
  bool batch_first, apart; /* apart: q, k and v have weights of their own */
} multihead;

/* What a call is given in addition to its inputs. */
typedef struct multihead_extra {
  const weir_multihead_options *options; /* borrowed; NULL: none */
  weir_tensor **weights;                 /* NULL: not asked for */
} multihead_extra;

static __thread const multihead_extra *extra_of_call;

/* ---- parameters ------------------------------------------------------------------------------ */

/* Uniform as torch's xavier_uniform_ (Glorot and Bengio 2010); rows 0: there is none. */
static weir_status add_xavier(weir_module *m, const char *name, int64_t rows, int64_t columns,
                              const weir_options *o)
{
  weir_tensor *t = NULL;
  if (!rows) return weir_module_add_parameter(m, name, NULL);
  weir_status st = weir_empty(&t, weir_shape(rows, columns), o);
  double bound = sqrt(6.0 / (double)(rows + columns));
  if (!st && weir_tensor_numel(t)) st = weir_uniform_(t, -bound, bound, NULL);
  if (!st) return weir_module_add_parameter(m, name, t);
  weir_tensor_release(t);
  return st;
}

static weir_status add_zeros(weir_module *m, const char *name, int64_t size, const weir_options *o)
{
  weir_tensor *t = NULL;
  weir_status st = size ? weir_zeros(&t, weir_shape(size), o) : WEIR_OK;
  return st ? st : weir_module_add_parameter(m, name, t);
}

static weir_status add_out_projection(weir_module *m, int64_t features,
                                      const weir_multihead_attention_options *o)
{
  weir_layer_options layer = {.tensor = o->tensor, .no_bias = o->no_bias};
  weir_module *linear = NULL;
  WEIR_UNRECORDED;
  weir_status st = weir_module_linear(&linear, features, features, &layer);
  if (!st && !o->no_bias) st = weir_zero_(weir_module_parameter(linear, "bias"));
  if (!st) return weir_module_add(m, "out_proj", linear);
  weir_module_release(linear);
  return st;
}

static weir_status add_multihead(weir_module *m, const multihead *h,
                                 const weir_multihead_attention_options *o)
{
  int64_t e = h->features, own = h->apart ? e : 0;
  weir_status st = add_xavier(m, "in_proj_weight", h->apart ? 0 : 3 * e, e, &o->tensor);
  if (!st) st = add_xavier(m, "q_proj_weight", own, e, &o->tensor);
  if (!st) st = add_xavier(m, "k_proj_weight", own, h->kdim, &o->tensor);
  if (!st) st = add_xavier(m, "v_proj_weight", own, h->vdim, &o->tensor);
  if (!st) st = add_zeros(m, "in_proj_bias", o->no_bias ? 0 : 3 * e, &o->tensor);
  return st ? st : add_out_projection(m, e, o);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_rank(const weir_tensor *q, const weir_tensor *k, const weir_tensor *v,
                              const weir_multihead_options *o, int64_t heads)
{
  bool batched = q->dims == 3;
  if (q->dims != 2 && q->dims != 3)
    return fail_invalid(
        "query should be unbatched 2D or batched 3D tensor but received %d-D query tensor",
        (int)q->dims);
  if (k->dims != q->dims || v->dims != q->dims)
    return fail_invalid("For %s (%d-D) `query`, expected `key` and `value` to be %d-D but found "
                        "%d-D and %d-D tensors respectively",
                        batched ? "batched" : "unbatched", (int)q->dims, (int)q->dims, (int)k->dims,
                        (int)v->dims);
  const weir_tensor *padding = o->key_padding_mask, *mask = o->attn_mask;
  if (padding && padding->dims != q->dims - 1)
    return fail_invalid("For %s (%d-D) `query`, expected `key_padding_mask` to be `None` or %d-D "
                        "but found %d-D tensor instead",
                        batched ? "batched" : "unbatched", (int)q->dims, q->dims - 1,
                        (int)padding->dims);
  if (mask && mask->dims != 2 && mask->dims != 3)
    return fail_invalid("For %s (%d-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but "
                        "found %d-D tensor instead",
                        batched ? "batched" : "unbatched", (int)q->dims, (int)mask->dims);
  text_buffer t;
  int64_t l = q->size[0], s = k->size[0];
  if (mask && mask->dims == 3 && !batched &&
      (mask->size[0] != heads || mask->size[1] != l || mask->size[2] != s))
    return fail_invalid("Expected `attn_mask` shape to be (%" PRId64 ", %" PRId64 ", %" PRId64
                        ") but got weir.Size(%s)",
                        heads, l, s, shape_format(&t, weir_shape_of(3, mask->size)));
  return WEIR_OK;
}

static weir_status check_mask(const weir_tensor *mask, const char *name)
{
  if (!mask || mask->dtype == WEIR_BOOL || dtype_is_floating(mask->dtype)) return WEIR_OK;
  return fail_invalid("only bool and floating types of %s are supported", name);
}

/* t's sizes as torch prints them: the first `count` of (length, N, features). */
static const char *sequence_shape(text_buffer *out, const weir_tensor *t, int count)
{
  weir_shape shape = weir_shape(t->size[1], t->size[0], t->size[2]);
  shape.count = count;
  return shape_format(out, shape);
}

/* Sizes of what is (N, length, features) now. */
static weir_status check_features(const multihead *h, const weir_tensor *q, const weir_tensor *k,
                                  const weir_tensor *v)
{
  text_buffer a, b;
  bool same = k->size[0] == v->size[0] && k->size[1] == v->size[1];
  if (q->size[2] != h->features)
    return fail_invalid("was expecting embedding dimension of %" PRId64 ", but got %" PRId64,
                        h->features, q->size[2]);
  if (h->apart && !same)
    return fail_invalid(
        "key's sequence and batch dims weir.Size(%s) do not match value's weir.Size(%s)",
        sequence_shape(&a, k, 2), sequence_shape(&b, v, 2));
  for (int i = 0; h->apart && i < 2; i++) {
    int64_t has = (i ? v : k)->size[2], wants = i ? h->vdim : h->kdim;
    if (has != wants)
      return fail_invalid("expecting %s weights shape of (%" PRId64 ", %" PRId64
                          "), but got weir.Size([%" PRId64 ", %" PRId64 "])",
                          i ? "value" : "key", h->features, has, h->features, wants);
  }
  if (!same || (!h->apart && k->size[2] != v->size[2]))
    return fail_invalid("key shape weir.Size(%s) does not match value shape weir.Size(%s)",
                        sequence_shape(&a, k, 3), sequence_shape(&b, v, 3));
  return WEIR_OK;
}

/* torch finds it when it takes the heads apart. */
static weir_status check_batches(const multihead *h, const weir_tensor *q, const weir_tensor *k)
{
  int64_t hd = h->features / h->heads;
  if (k->size[0] != q->size[0])
    return fail_invalid(
        "shape '[%" PRId64 ", %" PRId64 ", %" PRId64 "]' is invalid for input of size %" PRId64,
        k->size[1], q->size[0] * h->heads, hd, k->size[0] * k->size[1] * h->features);
  return WEIR_OK;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* What is added: -infinity where a bool is true. */
static weir_status left_out(weir_tensor **out, const weir_tensor *mask, weir_dtype dtype)
{
  CALC(c);
  weir_options o = {.dtype = dtype, .device = device_of_tensor(mask)};
  if (mask->dtype != WEIR_BOOL) return weir_to_dtype(out, mask, dtype);
  weir_tensor *none =
      c_call(c, weir_full, weir_shape_of(0, NULL), weir_float(-(double)INFINITY), &o);
  weir_tensor *all = c_call(c, weir_zeros, weir_shape_of(0, NULL), &o);
  return c->st ? c->st : weir_where(out, mask, none, all);
}

/* attn_mask as (1, 1, L, S) or (N, heads, L, S). */
static weir_status shaped_mask(weir_tensor **out, const weir_tensor *mask, weir_shape full)
{
  text_buffer t;
  int64_t n = full.size[0] * full.size[1], l = full.size[2], s = full.size[3];
  bool flat = mask->dims == 2;
  const int64_t *size = mask->size + !flat;
  if (size[0] != l || size[1] != s || (!flat && mask->size[0] != n)) {
    (void)shape_format(&t, shape_of_tensor(mask));
    if (flat)
      return fail_invalid("The shape of the 2D attn_mask is weir.Size(%s), but should be (%" PRId64
                          ", %" PRId64 ").",
                          t.at, l, s);
    return fail_invalid("The shape of the 3D attn_mask is weir.Size(%s), but should be (%" PRId64
                        ", %" PRId64 ", %" PRId64 ").",
                        t.at, n, l, s);
  }
  return weir_reshape(out, mask, flat ? weir_shape(1, 1, l, s) : full);
}

/* key_padding_mask as (N, 1, 1, S). */
static weir_status padding_mask(weir_tensor **out, const weir_tensor *mask, weir_shape full)
{
  int64_t n = full.size[0], s = full.size[3];
  int64_t rows = mask->dims == 1 ? 1 : mask->size[0], length = mask->size[mask->dims - 1];
  if (rows != n)
    return fail_invalid("Expected key_padded_mask.shape[0] to be %" PRId64 ", but got %" PRId64, n,
                        rows);
  if (length != s)
    return fail_invalid("Expected key_padded_mask.shape[1] to be %" PRId64 ", but got %" PRId64, s,
                        length);
  return weir_reshape(out, mask, weir_shape(n, 1, 1, s));
}

static weir_status later_places(weir_tensor **out, const weir_tensor *like, weir_shape full)
{
  CALC(c);
  weir_options o = {.dtype = WEIR_BOOL, .device = device_of_tensor(like)};
  weir_tensor *ones = c_call(c, weir_ones, weir_shape(1, 1, full.size[2], full.size[3]), &o);
  return c->st ? c->st : weir_triu(out, ones, 1);
}

/* Both masks as one that is added; *out NULL: there is none. */
static weir_status joined_mask(weir_tensor **out, const weir_multihead_options *o,
                               const multihead *h, const weir_tensor *like, const weir_tensor *key)
{
  weir_tensor *mask[2] = {NULL, NULL};
  weir_tensor *added[2] = {NULL, NULL};
  weir_dtype dtype = like->dtype;
  weir_shape full = weir_shape(like->size[0], h->heads, like->size[1], key->size[1]);
  weir_status st = check_mask(o->attn_mask, "attn_mask");
  if (!st) st = check_mask(o->key_padding_mask, "key_padding_mask");
  if (!st && o->attn_mask) st = shaped_mask(&mask[0], o->attn_mask, full);
  if (!st && o->is_causal && !o->attn_mask) st = later_places(&mask[0], like, full);
  if (!st) st = check_batches(h, like, key);
  if (!st && o->key_padding_mask) st = padding_mask(&mask[1], o->key_padding_mask, full);
  for (int i = 0; i < 2 && !st; i++)
    if (mask[i]) st = left_out(&added[i], mask[i], dtype);
  if (!st && added[0] && added[1])
    st = weir_add(out, added[0], added[1]);
  else if (!st)
    *out = weir_tensor_retain(added[0] ? added[0] : added[1]);
  for (int i = 0; i < 2; i++) {
    weir_tensor_drop(&mask[i]);
    weir_tensor_drop(&added[i]);
  }
  return st;
}

/* ---- forward --------------------------------------------------------------------------------- */

/* (N, length, features), from either order, or without N. */
static weir_status batch_first_of(weir_tensor **out, const multihead *h, const weir_tensor *t)
{
  if (t->dims == 2) return weir_unsqueeze(out, t, 0);
  if (!h->batch_first) return weir_transpose(out, t, 0, 1);
  *out = weir_tensor_retain((weir_tensor *)t);
  return WEIR_OK;
}

/* Rows `place` of three of the weight, and of the bias. */
static weir_status project(weir_tensor **out, const weir_module *m, const weir_tensor *t, int place)
{
  const multihead *h = m->data;
  CALC(c);
  WEIR_TENSOR weight = NULL;
  int64_t e = h->features;
  if (h->apart)
    weight = weir_tensor_retain(m->slot[Q_WEIGHT + place].t);
  else
    c->st = weir_narrow(&weight, m->slot[IN_WEIGHT].t, 0, place * e, e);
  weir_tensor *bias = !c->st && m->slot[IN_BIAS].t
                          ? c_call(c, weir_narrow, m->slot[IN_BIAS].t, 0, place * e, e)
                          : NULL;
  return c->st ? c->st : weir_linear(out, t, weight, bias);
}

/* (N, length, E) as (N, heads, length, E / heads). */
static weir_status by_heads(weir_tensor **out, const multihead *h, const weir_tensor *t)
{
  WEIR_TENSOR split = NULL;
  weir_status st =
      weir_reshape(&split, t, weir_shape(t->size[0], t->size[1], h->heads, h->features / h->heads));
  return st ? st : weir_transpose(out, split, 1, 2);
}

/* Rows `from` to `to` - 1 of three of the joined weight, at once: outs of them. */
static weir_status project_joined(weir_tensor *flat[3], const weir_module *m, const weir_tensor *t,
                                  int from, int to)
{
  const multihead *h = m->data;
  int64_t e = h->features;
  CALC(c);
  weir_tensor *b = m->slot[IN_BIAS].t;
  weir_tensor *weight = c_call(c, weir_narrow, m->slot[IN_WEIGHT].t, 0, from * e, (to - from) * e);
  weir_tensor *bias = b ? c_narrow(c, b, 0, from * e, (to - from) * e) : NULL;
  weir_tensor *all = c_call(c, weir_linear, t, weight, bias);
  for (int i = from; i < to && !c->st; i++)
    c->st = weir_narrow(&flat[i], all, -1, (i - from) * e, e);
  return c->st;
}

/* q, k, v by heads. One product for those that are of the same tensor. */
static weir_status project_all(weir_tensor *out[3], const weir_module *m, weir_tensor *const in[3])
{
  const multihead *h = m->data;
  weir_tensor *flat[3] = {NULL, NULL, NULL};
  int joined = h->apart || in[1] != in[2] ? 3 : in[0] == in[1] ? 0 : 1;
  weir_status st = WEIR_OK;
  for (int i = 0; i < joined && !st; i++)
    st = project(&flat[i], m, in[i], i);
  if (!st && joined < 3) st = project_joined(flat, m, in[joined], joined, 3);
  for (int i = 0; i < 3 && !st; i++)
    st = by_heads(&out[i], h, flat[i]);
  for (int i = 0; i < 3; i++)
    weir_tensor_drop(&flat[i]);
  return st;
}

/* (N, heads, L, S) as they are asked for: of a call without N without N. */
static weir_status weights_of(weir_tensor **out, const weir_tensor *weights, bool each,
                              bool batched)
{
  WEIR_TENSOR mean = NULL;
  weir_status st = each ? WEIR_OK : weir_mean_dim(&mean, weights, 1, false);
  const weir_tensor *of = each ? weights : mean;
  if (st || !batched) return st ? st : weir_squeeze(out, of, 0);
  *out = weir_tensor_retain((weir_tensor *)of);
  return WEIR_OK;
}

/* (N, heads, L, E / heads) through out_proj, in the order of the inputs. */
static weir_status project_out(weir_tensor **out, const weir_module *m, const weir_tensor *t,
                               bool batched)
{
  const multihead *h = m->data;
  CALC(c);
  weir_tensor *together = c_transpose(c, t, 1, 2);
  weir_tensor *flat =
      c_call(c, weir_reshape, together, weir_shape(t->size[0], t->size[2], h->features));
  weir_tensor *projected = c_call(c, weir_module_call, m->child[0].m, flat);
  if (!c->st && !batched) return weir_squeeze(out, projected, 0);
  if (!c->st && !h->batch_first) return weir_transpose(out, projected, 0, 1);
  return calc_give(c, out, projected);
}

/* in: (N, length, features) each. */
static weir_status attend_heads(weir_tensor **out, weir_tensor **weights, const weir_module *m,
                                weir_tensor *const in[3], const weir_multihead_options *o)
{
  const multihead *h = m->data;
  weir_tensor *part[3] = {NULL, NULL, NULL};
  CALC(c);
  c->st = check_features(h, in[0], in[1], in[2]);
  weir_tensor *mask = c_call(c, joined_mask, o, h, in[0], in[1]);
  weir_attention_options a = {.mask = mask, .dropout = m->training ? h->dropout : 0};
  c_do(c, project_all(part, m, in));
  c_do(c, attention_run(out, weights, part[0], part[1], part[2], &a));
  for (int i = 0; i < 3; i++)
    weir_tensor_drop(&part[i]);
  return c->st;
}

static weir_status multihead_call(weir_tensor **out, const weir_module *m, weir_tensor *const in[3],
                                  const multihead_extra *extra)
{
  static const weir_multihead_options none = {0};
  const weir_multihead_options *o = extra && extra->options ? extra->options : &none;
  weir_tensor *first[3] = {NULL, NULL, NULL};
  CALC(c);
  WEIR_TENSOR weights = NULL;
  const multihead *h = m->data;
  bool wanted = extra && extra->weights, batched = in[0]->dims == 3;
  c->st = check_rank(in[0], in[1], in[2], o, h->heads);
  for (int i = 0; i < 3 && !c->st; i++) {
    if (i && in[i] == in[i - 1])
      first[i] = weir_tensor_retain(first[i - 1]);
    else
      c->st = batch_first_of(&first[i], h, in[i]);
  }
  weir_tensor *attended = c_call(c, attend_heads, wanted ? &weights : NULL, m, first, o);
  c_do(c, project_out(out, m, attended, batched));
  if (wanted) c_do(c, weights_of(extra->weights, weights, o->each_head, batched));
  for (int i = 0; i < 3; i++)
    weir_tensor_drop(&first[i]);
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

static weir_status multihead_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                     int count)
{
  const multihead_extra *extra = extra_of_call;
  extra_of_call = NULL;
  if (count != 1 && count != 3)
    return fail_invalid("MultiheadAttention.forward() takes 1 or 3 tensors but %d were passed",
                        count);
  weir_tensor *all[3] = {in[0], in[count == 3], in[count == 3 ? 2 : 0]};
  return multihead_call(out, m, all, extra);
}

static weir_status copy_multihead(void **out, const void *data)
{
  *out = malloc(sizeof(multihead));
  if (!*out) return fail_memory("a module MultiheadAttention");
  memcpy(*out, data, sizeof(multihead));
  return WEIR_OK;
}

static const weir_module_class multihead_class = {.name = "MultiheadAttention",
                                                  .forward = multihead_forward,
                                                  .destroy = free,
                                                  .clone = copy_multihead};

weir_status weir_multihead_attention(weir_tensor **out, weir_tensor **weights, weir_module *m,
                                     weir_tensor *query, weir_tensor *key, weir_tensor *value,
                                     const weir_multihead_options *options)
{
  if (weights) *weights = NULL;
  WEIR_REQUIRE_OUT(out, m, query);
  WEIR_REQUIRE(key, value);
  if (m->kind != &multihead_class)
    return fail_invalid("weir_multihead_attention: a %s is no MultiheadAttention", m->kind->name);
  multihead_extra extra = {options, weights};
  extra_of_call = &extra;
  weir_status st = weir_module_call_many(out, m, (weir_tensor *[]){query, key, value}, 3);
  extra_of_call = NULL;
  return st;
}

weir_status weir_module_multihead_attention(weir_module **out, int64_t embed_dim, int64_t num_heads,
                                            const weir_multihead_attention_options *options)
{
  WEIR_REQUIRE_OUT(out);
  static const weir_multihead_attention_options none = {0};
  const weir_multihead_attention_options *o = options ? options : &none;
  void *data = NULL;
  weir_module *m = NULL;
  if (embed_dim <= 0 || num_heads <= 0)
    return fail_invalid("embed_dim and num_heads must be greater than 0, got embed_dim=%" PRId64
                        " and num_heads=%" PRId64 " instead",
                        embed_dim, num_heads);
  if (embed_dim % num_heads) return fail_invalid("embed_dim must be divisible by num_heads");
  multihead h = {embed_dim,
                 num_heads,
                 o->kdim ? o->kdim : embed_dim,
                 o->vdim ? o->vdim : embed_dim,
                 o->dropout,
                 o->batch_first,
                 false};
  h.apart = h.kdim != embed_dim || h.vdim != embed_dim;
  weir_status st = copy_multihead(&data, &h);
  if (!st) st = weir_module_new(&m, &multihead_class, data);
  if (!st) st = add_multihead(m, &h, o);
  if (st)
    weir_module_release(m);
  else
    *out = m;
  return st;
}
