/* attention.c: scaled dot products, their softmax, and what it weighs.
 *
 * Rows of the query are taken in blocks: the products of a block with all keys are the largest
 * thing that lies in memory, and stay in the second cache on the cpu. A causal block leaves out the
 * keys that none of its rows sees. All is made of public operations, so that devices need nothing
 * more.
 *
 * It is one operation to the tape, which keeps query, key, value, the mask and where the
 * generator's numbers for dropout began: the way back makes the weights of each block again, and
 * draws the same numbers again. Where the mask itself requires a gradient, weights are asked for or
 * the work is captured in a graph with dropout, derivatives are those of its parts. */
#include <math.h>
#include <stdlib.h>
#include "core/backend/philox.h"
#include "core/ops/ops.h"

enum {
  PRODUCTS_CPU = 1 << 20,  /* of a block, elements */
  PRODUCTS_CUDA = 1 << 26, /* the same on a CUDA device */
};

/* What is attended with. */
typedef struct attention {
  const weir_tensor *query, *turned, *value; /* borrowed; query scaled, key turned */
  const weir_tensor *mask;                   /* borrowed; is added; NULL: none */
  const weir_tensor *unseen;                 /* borrowed; rows that are to be 0; NULL: none */
  bool causal;
  double dropout;
  weir_generator *drawn; /* borrowed; of dropout, of one operation; NULL: the default one */
} attention;

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_attention(const weir_tensor *q, const weir_tensor *k, const weir_tensor *v,
                                   const weir_attention_options *o)
{
  weir_dtype d = q->dtype;
  TRY(check_same_device(q, k));
  TRY(check_same_device(q, v));
  if (k->dtype != d || v->dtype != d)
    return fail_invalid("Expected query, key, and value to have the same dtype, but got "
                        "query.dtype: %s key.dtype: %s and value.dtype: %s instead.",
                        dtype_cxx(d), dtype_cxx(k->dtype), dtype_cxx(v->dtype));
  if (q->dims < 2 || k->dims < 2 || v->dims < 2)
    return fail_invalid("Expected query, key, and value to all be  at least 2 dimensional, but got "
                        "query.dim: %d key.dim: %d and value.dim: %d instead.",
                        q->dims, k->dims, v->dims);
  if (o->mask && o->is_causal)
    return fail_invalid(
        "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  if (o->mask && o->mask->dtype != d && o->mask->dtype != WEIR_BOOL &&
      o->mask->dtype != WEIR_FLOAT32)
    return fail_invalid("Expected attn_mask dtype to be bool or float or to match query dtype, but "
                        "got attn_mask.dtype: %s and  query.dtype: %s instead.",
                        dtype_cxx(o->mask->dtype), dtype_cxx(d));
  if (!dtype_is_floating(d))
    return fail_invalid("expected scalar type Float but found %s", dtype_title(d));
  return WEIR_OK;
}

/* Of the weights: a row of keys for each query. */
static weir_status weights_shape(weir_shape *shape, const weir_tensor *q, const weir_tensor *turned)
{
  *shape = weir_shape_of(q->dims - 2, q->size);
  TRY(shape_broadcast(shape, turned->size, turned->dims - 2));
  shape->size[shape->count++] = q->size[q->dims - 2];
  shape->size[shape->count++] = turned->size[turned->dims - 1];
  return WEIR_OK;
}

/* A mask must not make the products larger. */
static weir_status check_attention_mask(const weir_tensor *q, const weir_tensor *turned,
                                        const weir_tensor *mask)
{
  text_buffer a, b;
  weir_shape shape;
  weir_status st = weights_shape(&shape, q, turned);
  if (st || !mask) return st;
  weir_shape with = shape;
  st = shape_broadcast(&with, mask->size, mask->dims);
  for (int i = 0; !st && i < with.count; i++)
    if (with.count != shape.count || with.size[i] != shape.size[i])
      return fail_invalid("output with shape %s doesn't match the broadcast shape %s",
                          shape_format(&a, shape), shape_format(&b, with));
  return st;
}

/* The products' own refusals, before any is made. */
static weir_status check_attention_sizes(const weir_tensor *q, const weir_tensor *turned,
                                         const weir_tensor *v, const weir_tensor *mask,
                                         double dropout)
{
  CALC(c);
  WEIR_TENSOR refused = NULL;
  weir_shape shape;
  if (q->size[q->dims - 1] != turned->size[turned->dims - 2])
    return weir_matmul(&refused, q, turned);
  TRY(check_attention_mask(q, turned, mask));
  if (!(dropout >= 0 && dropout <= 1))
    return fail_invalid("dropout probability has to be between 0 and 1, but got %g", dropout);
  if (turned->size[turned->dims - 1] == v->size[v->dims - 2]) return WEIR_OK;
  c->st = weights_shape(&shape, q, turned);
  weir_tensor *number = c_call(c, tensor_new_beside, q, weir_shape_of(0, NULL));
  weir_tensor *weights = c_call(c, weir_expand, number, shape);
  return c->st ? c->st : weir_matmul(&refused, weights, v);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* 0 where a bool is true, else -infinity, of `dtype`. */
static weir_status added_mask(weir_tensor **out, const weir_tensor *mask, weir_dtype dtype)
{
  CALC(c);
  weir_options o = {.dtype = dtype, .device = device_of_tensor(mask)};
  if (mask->dtype != WEIR_BOOL) return weir_to_dtype(out, mask, dtype);
  weir_tensor *none =
      c_call(c, weir_full, weir_shape_of(0, NULL), weir_float(-(double)INFINITY), &o);
  weir_tensor *all = c_call(c, weir_zeros, weir_shape_of(0, NULL), &o);
  return c->st ? c->st : weir_where(out, mask, all, none);
}

/* Rows from `from` on of `keys` keys: -infinity after the diagonal. */
static weir_status causal_mask(weir_tensor **out, const weir_tensor *like, int64_t from,
                               int64_t rows, int64_t keys)
{
  CALC(c);
  weir_options o = {.dtype = WEIR_BOOL, .device = device_of_tensor(like)};
  weir_tensor *seen = c_tril(c, c_call(c, weir_ones, weir_shape(rows, keys), &o), from);
  return c->st ? c->st : added_mask(out, seen, like->dtype);
}

/* Which rows of a mask that is added are -infinity alone; NULL: none, or on a device those that may
 * be. */
static weir_status unseen_rows(weir_tensor **out, const weir_tensor *mask)
{
  CALC(c);
  weir_tensor *any = NULL;
  weir_scalar found = weir_bool(true);
  *out = NULL;
  if (!mask->numel) return WEIR_OK;
  weir_tensor *rows = c_eq_s(c, c_amax_dim(c, mask, -1, true), -(double)INFINITY);
  if (!c->st && device_of_tensor(mask).type == WEIR_DEVICE_CPU) {
    any = c_any(c, rows);
    c_do(c, weir_item(&found, any));
  }
  if (!c->st && found.i) *out = weir_tensor_retain(rows);
  return c->st;
}

/* What is added for a mask. Rows that see nothing are *unseen, and see all: their softmax is of
 * numbers, and its derivative. unseen NULL: they remain -infinity. */
static weir_status prepare_mask(weir_tensor **out, weir_tensor **unseen, const weir_tensor *mask,
                                weir_dtype dtype)
{
  CALC(c);
  weir_tensor *added = c_call(c, added_mask, mask, dtype);
  if (!c->st && unseen) {
    WEIR_UNRECORDED;
    c->st = unseen_rows(unseen, added);
  }
  if (!c->st && unseen && *unseen) return weir_masked_fill(out, added, *unseen, weir_float(0));
  return calc_give(c, out, added);
}

weir_status drop_elements(weir_tensor **t, double p)
{
  CALC(c);
  weir_tensor *scaled = NULL;
  if (p == 0) return WEIR_OK;
  weir_tensor *keep = c_call(c, tensor_new_beside, *t, weir_shape_of((*t)->dims, (*t)->size));
  if (!c->st && keep->numel) c->st = weir_bernoulli_(keep, 1 - p, NULL);
  weir_tensor *left = c_call(c, weir_mul, *t, keep);
  c_do(c, weir_mul_scalar(&scaled, left, weir_float(p < 1 ? 1 / (1 - p) : 0)));
  if (c->st) return c->st;
  weir_tensor_release(*t);
  *t = scaled;
  return WEIR_OK;
}

/* ---- a block of rows ------------------------------------------------------------------------- */

/* A mask of other rows than the query's goes on as it is: to be repeated, or refused. */
static weir_status mask_rows(weir_tensor **out, const attention *a, const weir_tensor *mask,
                             int64_t from, int64_t rows)
{
  if (mask->dims >= 2 && mask->size[mask->dims - 2] == a->query->size[a->query->dims - 2])
    return weir_narrow(out, mask, -2, from, rows);
  *out = weir_tensor_retain((weir_tensor *)mask);
  return WEIR_OK;
}

/* The products of rows `from` to `from + rows` with the keys that they see, masked. */
static weir_status block_products(weir_tensor **out, const attention *a, int64_t from, int64_t rows,
                                  int64_t keys)
{
  CALC(c);
  WEIR_TENSOR mask = NULL;
  weir_tensor *query = c_call(c, weir_narrow, a->query, -2, from, rows);
  weir_tensor *products = c_matmul(c, query, c_narrow(c, a->turned, -1, 0, keys));
  if (!c->st && a->mask) c->st = mask_rows(&mask, a, a->mask, from, rows);
  if (a->causal) c_do(c, causal_mask(&mask, query, from, rows, keys));
  if (!c->st && mask) return weir_add(out, products, mask);
  return calc_give(c, out, products);
}

/* How many rows a block has. */
static int64_t block_rows(const attention *a)
{
  int64_t rows = a->query->size[a->query->dims - 2];
  int64_t each = a->turned->size[a->turned->dims - 1];
  bool cuda = device_of_tensor(a->query).type == WEIR_DEVICE_CUDA;
  int dims = a->query->dims > a->turned->dims ? a->query->dims : a->turned->dims;
  for (int d = 3; d <= dims; d++) {
    int64_t x = d <= a->query->dims ? a->query->size[a->query->dims - d] : 1;
    int64_t y = d <= a->turned->dims ? a->turned->size[a->turned->dims - d] : 1;
    each *= x > y ? x : y;
  }
  int64_t most = (cuda ? PRODUCTS_CUDA : PRODUCTS_CPU) / (each > 0 ? each : 1);
  if (most < 16) most = 16;
  return most < rows ? most : rows;
}

/* The softmax of products of rows `from` on; 0 in those that see nothing. */
static weir_status weights_of_block(weir_tensor **out, const attention *a,
                                    const weir_tensor *products, int64_t from)
{
  CALC(c);
  if (!a->unseen) return weir_softmax(out, products, -1);
  weir_tensor *weight = c_softmax(c, products, -1);
  weir_tensor *rows = c_call(c, mask_rows, a, a->unseen, from, products->size[products->dims - 2]);
  return c->st ? c->st : weir_masked_fill(out, weight, rows, weir_float(0));
}

/* 1 where dropout leaves a weight of rows `from` on, else 0: drawn by blocks, of the keys that each
 * sees. */
static weir_status draw_kept(weir_tensor **out, const attention *a, const weir_tensor *weights,
                             int64_t from)
{
  int64_t rows = weights->size[weights->dims - 2], keys = weights->size[weights->dims - 1];
  int64_t block = block_rows(a);
  WEIR_UNRECORDED;
  bool all = rows <= block && !(a->causal && keys > from + rows); /* are drawn at once */
  weir_status st = all ? tensor_new_beside(out, weights, shape_of_tensor(weights))
                       : weir_zeros_like(out, weights, NULL);
  for (int64_t at = 0; at < rows && !st; at += block) {
    WEIR_TENSOR part = NULL, seen = NULL;
    int64_t some = rows - at < block ? rows - at : block, end = from + at + some;
    st = weir_narrow(&part, *out, -2, at, some);
    if (!st) st = weir_narrow(&seen, part, -1, 0, a->causal && end < keys ? end : keys);
    if (!st) st = weir_bernoulli_(seen, 1 - a->dropout, a->drawn);
  }
  return st;
}

/* What remains is to be multiplied by. */
static weir_scalar kept_scale(const attention *a)
{
  return weir_float(a->dropout < 1 ? 1 / (1 - a->dropout) : 0);
}

/* weights NULL: not asked for; else they are what remains of dropout. */
static weir_status attend_block(weir_tensor **out, weir_tensor **weights, const attention *a,
                                int64_t from, int64_t rows)
{
  CALC(c);
  WEIR_TENSOR products = NULL, weight = NULL;
  weir_tensor *value = NULL;
  WEIR_TENSOR keep = NULL;
  int64_t keys = a->value->size[a->value->dims - 2];
  if (a->causal && keys > from + rows) keys = from + rows;
  c->st = block_products(&products, a, from, rows, keys);
  c_do(c, weights_of_block(&weight, a, products, from));
  weir_tensor_drop(&products);
  if (!a->drawn) c_do(c, drop_elements(&weight, a->dropout));
  if (a->drawn) c_do(c, draw_kept(&keep, a, weight, from));
  if (a->drawn) c_do(c, weir_mul_(weight, keep));
  weir_tensor_drop(&keep);
  value = c_call(c, weir_narrow, a->value, -2, 0, keys);
  c_do(c, weir_matmul(out, weight, value));
  if (a->drawn) c_do(c, weir_mul_scalar_(*out, kept_scale(a)));
  if (!c->st && weights) *weights = weir_tensor_retain(weight);
  return c->st;
}

static weir_status attend(weir_tensor **out, weir_tensor **weights, const attention *a)
{
  int64_t rows = a->query->size[a->query->dims - 2], block = weights ? rows : block_rows(a);
  if (block == rows) return attend_block(out, weights, a, 0, rows);
  int64_t count = (rows + block - 1) / block;
  weir_tensor **part = count > INT32_MAX ? NULL : calloc((size_t)count, sizeof(weir_tensor *));
  if (!part) return fail_memory("the parts of attention");
  weir_status st = WEIR_OK;
  for (int64_t i = 0; i < count && !st; i++) {
    int64_t left = rows - i * block;
    st = attend_block(&part[i], NULL, a, i * block, left < block ? left : block);
  }
  if (!st) st = weir_cat(out, (const weir_tensor *const *)part, (int)count, -2);
  for (int64_t i = 0; i < count; i++)
    weir_tensor_release(part[i]);
  free(part);
  return st;
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* t's heads (dimension -3), each repeated so that there are `heads`. */
static weir_status repeat_heads(weir_tensor **out, const weir_tensor *t, int64_t heads)
{
  CALC(c);
  weir_shape shape = shape_of_tensor(t);
  int at = t->dims - 3;
  weir_tensor *one = c_unsqueeze(c, t, at + 1);
  if (c->st) return c->st;
  weir_shape wide = shape_of_tensor(one);
  wide.size[at + 1] = heads / t->size[at];
  weir_tensor *many = c_expand(c, one, wide);
  shape.size[at] = heads;
  return c->st ? c->st : weir_reshape(out, many, shape);
}

static weir_status same_heads(weir_tensor **key, weir_tensor **value, const weir_tensor *q,
                              const weir_tensor *k, const weir_tensor *v)
{
  int at;
  TRY(dim_resolve(&at, -3, q->dims));
  TRY(dim_resolve(&at, -3, k->dims));
  TRY(dim_resolve(&at, -3, v->dims));
  int64_t heads = q->size[q->dims - 3], a = k->size[k->dims - 3], b = v->size[v->dims - 3];
  if (!a || !b || heads % a || heads % b)
    return fail_invalid(
        "Number of heads in key and value must divide the number of heads in query");
  weir_status st = repeat_heads(key, k, heads);
  return st ? st : repeat_heads(value, v, heads);
}

/* ---- the way back ---------------------------------------------------------------------------- */

/* What a block adds to the gradients. */
typedef struct block_gradients {
  weir_tensor *query, *key, *value; /* owned */
} block_gradients;

/* The gradient of products, of weights (their softmax) and the gradient of those. */
static weir_status products_back(weir_tensor **out, const weir_tensor *weight,
                                 const weir_tensor *grad, bool graph)
{
  CALC(c);
  if (!graph) return softmax_backward(out, grad, weight, -1, false);
  weir_tensor *less = c_sub(c, grad, c_sum_dim(c, c_mul(c, grad, weight), -1, true));
  return c->st ? c->st : weir_mul(out, less, weight);
}

/* t is a's transposed matrices times b's. */
static weir_status turned_product(weir_tensor **t, const weir_tensor *a, const weir_tensor *b)
{
  CALC(c);
  weir_tensor *turned = c_transpose(c, a, -1, -2);
  return c->st ? c->st : weir_matmul(t, turned, b);
}

/* The same of what dropout left of weights; *grad, which is exchanged, becomes that of what
 * remains, scaled. */
static weir_status kept_back(weir_tensor **keep, weir_tensor **kept, weir_tensor **grad,
                             const attention *a, const weir_tensor *weight, int64_t from)
{
  weir_tensor *scaled = NULL;
  if (!a->drawn) {
    *kept = weir_tensor_retain((weir_tensor *)weight);
    return WEIR_OK;
  }
  TRY(draw_kept(keep, a, weight, from));
  TRY(weir_mul(kept, weight, *keep));
  TRY(weir_mul_scalar(&scaled, *grad, kept_scale(a)));
  weir_tensor_release(*grad);
  *grad = scaled;
  return WEIR_OK;
}

/* What dropout took has no gradient. */
static weir_status mask_kept(weir_tensor **t, const weir_tensor *keep, bool graph)
{
  weir_tensor *kept = NULL;
  if (!keep) return WEIR_OK;
  if (!graph) return weir_mul_(*t, keep);
  TRY(weir_mul(&kept, *t, keep));
  weir_tensor_release(*t);
  *t = kept;
  return WEIR_OK;
}

/* Of rows `from` to `from + rows`, which see the first `keys` keys; a's query is scaled. */
static weir_status block_back(block_gradients *out, const attention *a, const weir_tensor *grad,
                              int64_t from, int64_t rows, int64_t keys, bool graph)
{
  CALC(c);
  WEIR_TENSOR products = NULL, weight = NULL, g = NULL;
  weir_tensor *value = NULL;
  WEIR_TENSOR turned = NULL;
  weir_tensor *query = NULL;
  WEIR_TENSOR part = NULL, keep = NULL, kept = NULL;
  c->st = block_products(&products, a, from, rows, keys);
  c_do(c, weights_of_block(&weight, a, products, from));
  weir_tensor_drop(&products);
  c_do(c, weir_narrow(&g, grad, -2, from, rows));
  c_do(c, kept_back(&keep, &kept, &g, a, weight, from));
  c_do(c, turned_product(&out->value, kept, g));
  weir_tensor_drop(&kept);
  value = c_call(c, weir_narrow, a->value, -2, 0, keys);
  c_do(c, weir_transpose(&turned, value, -1, -2));
  c_do(c, weir_matmul(&part, g, turned));
  c_do(c, mask_kept(&part, keep, graph));
  weir_tensor_drop(&keep);
  weir_tensor *back = c_call(c, products_back, weight, part, graph);
  weir_tensor_drop(&part);
  weir_tensor_drop(&weight);
  weir_tensor_drop(&turned);
  c_do(c, weir_narrow(&turned, a->turned, -1, 0, keys));
  weir_tensor *key = c_transpose(c, turned, -1, -2);
  c_do(c, weir_matmul(&out->query, back, key));
  query = c_call(c, weir_narrow, a->query, -2, from, rows);
  return c->st ? c->st : turned_product(&out->key, back, query);
}

static void drop_gradients(block_gradients *g)
{
  weir_tensor_drop(&g->query);
  weir_tensor_drop(&g->key);
  weir_tensor_drop(&g->value);
}

/* Adds `part` to the first rows of sum. */
static weir_status add_query_rows(weir_tensor *sum, const weir_tensor *part)
{
  CALC(c);
  weir_tensor *rows = c_call(c, weir_narrow, sum, -2, 0, part->size[part->dims - 2]);
  return c->st ? c->st : weir_add_(rows, part);
}

/* Block by block into out, whose tensors are zeros. */
static weir_status blocks_back(weir_tensor *const out[3], const attention *a,
                               const weir_tensor *grad, int64_t block)
{
  int64_t all = grad->size[grad->dims - 2], most = a->value->size[a->value->dims - 2];
  weir_status st = WEIR_OK;
  for (int64_t from = 0; from < all && !st; from += block) {
    WEIR_TENSOR place = NULL;
    block_gradients g = {.query = NULL};
    int64_t rows = all - from < block ? all - from : block;
    int64_t keys = a->causal && most > from + rows ? from + rows : most;
    st = block_back(&g, a, grad, from, rows, keys, false);
    if (!st) st = weir_narrow(&place, out[0], -2, from, rows);
    if (!st) st = weir_copy_(place, g.query, false);
    if (!st) st = add_query_rows(out[1], g.key);
    if (!st) st = add_query_rows(out[2], g.value);
    drop_gradients(&g);
  }
  return st;
}

/* Into out: a block at a time; where a graph is wanted, all rows at once. */
static weir_status gradients_of(weir_tensor *out[3], const attention *a, const weir_tensor *grad,
                                const attention_saved *saved, bool graph)
{
  block_gradients g = {.query = NULL};
  int64_t rows = a->query->size[a->query->dims - 2], block = graph ? rows : block_rows(a);
  weir_status st = WEIR_OK;
  if (block == rows) {
    st = block_back(&g, a, grad, 0, rows, a->value->size[a->value->dims - 2], graph);
    out[0] = g.query, out[1] = g.key, out[2] = g.value;
    return st;
  }
  for (int i = 0; i < 3 && !st; i++)
    st = weir_zeros_like(&out[i], saved->in[i], NULL);
  return st ? st : blocks_back(out, a, grad, block);
}

/* A generator that begins where `state` states. */
static weir_status generator_at(weir_generator **out, const weir_tensor *t,
                                weir_generator_state state)
{
  weir_status st = weir_generator_new(out, device_of_tensor(t));
  if (!st) weir_generator_set_state(*out, state);
  return st;
}

weir_status attention_backward(weir_tensor *out[3], const weir_tensor *grad,
                               const attention_saved *saved, bool graph)
{
  CALC(c);
  WEIR_TENSOR unscaled = NULL, mask = NULL, unseen = NULL;
  weir_scalar scale = weir_float(saved->scale);
  weir_generator *drawn = NULL;
  out[0] = out[1] = out[2] = NULL;
  weir_tensor *query = c_call(c, weir_mul_scalar, saved->in[0], scale);
  weir_tensor *turned = c_call(c, weir_transpose, saved->in[1], -2, -1);
  if (!c->st && saved->mask) c->st = prepare_mask(&mask, &unseen, saved->mask, saved->in[0]->dtype);
  if (saved->dropout != 0) c_do(c, generator_at(&drawn, query, saved->drawn));
  attention a = {query, turned, saved->in[2], mask, unseen, saved->causal, saved->dropout, drawn};
  c_do(c, gradients_of(out, &a, grad, saved, graph));
  weir_generator_release(drawn);
  if (!graph) c_do(c, weir_mul_scalar_(out[0], scale));
  if (!c->st && graph) {
    unscaled = out[0];
    out[0] = NULL;
    c->st = weir_mul_scalar(&out[0], unscaled, scale);
  }
  for (int i = 0; i < 3 && c->st; i++)
    weir_tensor_drop(&out[i]);
  return c->st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Numbers drawn while work is captured are those of its replays, and have no state to begin at. */
static bool can_draw_again(const weir_tensor *t)
{
  weir_stream *stream;
  bool captured = false;
  if (device_of_tensor(t).type != WEIR_DEVICE_CUDA) return true;
  weir_status st = weir_current_stream(&stream, device_of_tensor(t));
  if (!st) st = weir_stream_is_capturing(&captured, stream);
  return !st && !captured;
}

/* Whether the tape takes it as one operation. */
static bool is_one_attention(const weir_tensor *const in[3], const weir_attention_options *o)
{
  const weir_tensor *q = in[0];
  if (!recorded_any(in, 3) || (o->mask && recorded(o->mask))) return false;
  for (int i = 0; i < 3; i++) {
    if (in[i]->dims != q->dims || !in[i]->numel) return false;
    for (int d = 0; d < q->dims - 2; d++)
      if (in[i]->size[d] != q->size[d]) return false;
  }
  return o->dropout == 0 || can_draw_again(q);
}

static double scale_of(const weir_tensor *query, const weir_attention_options *o)
{
  return o->scale != 0 ? o->scale : 1 / sqrt((double)query->size[query->dims - 1]);
}

/* Sizes have been checked. drawn: for dropout; NULL: the default one. */
static weir_status attention_made(weir_tensor **out, weir_tensor **weights,
                                  const weir_tensor *const in[3], const weir_tensor *turned,
                                  const weir_attention_options *o, weir_generator *drawn)
{
  CALC(c);
  weir_tensor *mask = NULL;
  WEIR_TENSOR unseen = NULL;
  weir_tensor *query = c_call(c, weir_mul_scalar, in[0], weir_float(scale_of(in[0], o)));
  if (!c->st && o->mask)
    mask = c_call(c, prepare_mask, weights ? NULL : &unseen, o->mask, in[0]->dtype);
  attention a = {query, turned, in[2], mask, unseen, o->is_causal, o->dropout, drawn};
  return c->st ? c->st : attend(out, weights, &a);
}

/* The default generator's numbers for all blocks of rows. */
static weir_status reserve_dropout(weir_generator **out, const weir_tensor *const in[3],
                                   const weir_tensor *turned, const weir_attention_options *o,
                                   weir_generator_state *state)
{
  attention a = {.query = in[0], .turned = turned, .value = in[2]};
  int64_t rows = in[0]->size[in[0]->dims - 2], keys = turned->size[turned->dims - 1];
  int64_t block = block_rows(&a), each = in[0]->numel / in[0]->size[in[0]->dims - 1] / rows;
  uint64_t blocks = 0;
  for (int64_t from = 0; from < rows; from += block) {
    int64_t some = rows - from < block ? rows - from : block;
    int64_t seen = o->is_causal && from + some < keys ? from + some : keys;
    blocks += philox_blocks(each * some * seen);
  }
  weir_status st = reserve_numbers(state, device_of_tensor(in[0]), blocks);
  return st ? st : generator_at(out, in[0], *state);
}

static weir_status record_attention(weir_tensor **out, const weir_tensor *const in[3],
                                    const weir_tensor *turned, const weir_attention_options *o)
{
  WEIR_TENSOR mask = NULL;
  weir_generator *drawn = NULL;
  weir_generator_state state = {0, 0};
  weir_status st = WEIR_OK;
  if (o->dropout != 0) st = reserve_dropout(&drawn, in, turned, o, &state);
  if (!st) {
    WEIR_UNRECORDED;
    st = attention_made(out, NULL, in, turned, o, drawn);
    /* torch keeps what it makes of a bool mask, which may be changed later */
    if (!st && o->mask && o->mask->dtype == WEIR_BOOL)
      st = weir_clone(&mask, o->mask);
    else if (!st)
      mask = weir_tensor_retain((weir_tensor *)o->mask);
  }
  weir_generator_release(drawn);
  if (st) {
    weir_tensor_drop(out);
    return st;
  }
  record r = {.kind = RECORD_ATTENTION,
              .inputs = 4,
              .in = (const weir_tensor *[]){in[0], in[1], in[2], mask},
              .n = {o->is_causal, (int64_t)state.seed, (int64_t)state.offset},
              .p = {scale_of(in[0], o), o->dropout}};
  return record_made(out, &r, st);
}

weir_status attention_run(weir_tensor **out, weir_tensor **weights, const weir_tensor *q,
                          const weir_tensor *k, const weir_tensor *v,
                          const weir_attention_options *options)
{
  static const weir_attention_options none = {0};
  const weir_attention_options *o = options ? options : &none;
  CALC(c);
  WEIR_TENSOR key = NULL, value = NULL;
  c->st = check_attention(q, k, v, o);
  if (o->enable_gqa) c_do(c, same_heads(&key, &value, q, k, v));
  if (key) k = key;
  if (value) v = value;
  weir_tensor *turned = c_transpose(c, k, -2, -1);
  c_do(c, check_attention_sizes(q, turned, v, o->mask, o->dropout));
  if (c->st) return c->st;
  const weir_tensor *in[3] = {q, k, v};
  if (!weights && is_one_attention(in, o)) return record_attention(out, in, turned, o);
  return attention_made(out, weights, in, turned, o, NULL);
}

weir_status weir_scaled_dot_product_attention(weir_tensor **out, const weir_tensor *query,
                                              const weir_tensor *key, const weir_tensor *value,
                                              const weir_attention_options *options)
{
  WEIR_OP(out, query, key, value);
  static const weir_attention_options none = {0};
  weir_attention_options o = options ? *options : none;
  const weir_tensor *mask = o.mask;
  WEIR_CASTS(ATTENTION, query, key, value);
  WEIR_CASTS_MORE(ATTENTION, mask);
  o.mask = mask;
  return attention_run(out, NULL, query, key, value, &o);
}
