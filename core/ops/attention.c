/* attention.c: scaled dot products, their softmax, and what it weighs.
 *
 * Rows of the query are taken in blocks: the products of a block with all keys are the largest thing
 * that lies in memory, and stay in the second cache on the cpu. A causal block leaves out the keys
 * that none of its rows sees. All is made of public operations, so that devices and derivatives
 * need nothing more. */
#include <math.h>
#include <stdlib.h>
#include "core/base/require.h"
#include "core/stream/async_error.h"
#include "core/ops/ops.h"
#include "core/tensor/autocast.h"

enum {
  PRODUCTS_CPU = 1 << 20,  /* of a block, elements */
  PRODUCTS_CUDA = 1 << 26, /* the same on a CUDA device */
};

/* What is attended with. */
typedef struct attention {
  const weir_tensor *query, *turned, *value; /* borrowed; query scaled, key turned */
  const weir_tensor *mask;                   /* borrowed; is added; NULL: none */
  bool causal, safe;                         /* safe: a row that sees nothing is 0 */
  double dropout;
} attention;

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_attention(const weir_tensor *q, const weir_tensor *k, const weir_tensor *v,
                                   const weir_attention_options *o)
{
  weir_dtype d = (weir_dtype)q->dtype;
  weir_status st = check_same_device(q, k);
  if (!st) st = check_same_device(q, v);
  if (st) return st;
  if (k->dtype != d || v->dtype != d)
    return weir_fail(WEIR_EINVAL,
                     "Expected query, key, and value to have the same dtype, but got query.dtype: "
                     "%s key.dtype: %s and value.dtype: %s instead.",
                     dtype_cxx(d), dtype_cxx((weir_dtype)k->dtype),
                     dtype_cxx((weir_dtype)v->dtype));
  if (q->dims < 2 || k->dims < 2 || v->dims < 2)
    return weir_fail(WEIR_EINVAL,
                     "Expected query, key, and value to all be  at least 2 dimensional, but got "
                     "query.dim: %d key.dim: %d and value.dim: %d instead.",
                     q->dims, k->dims, v->dims);
  if (o->mask && o->is_causal)
    return weir_fail(WEIR_EINVAL, "_scaled_dot_product_attention: Explicit attn_mask should not "
                                  "be set when is_causal=True");
  if (o->mask && o->mask->dtype != d && o->mask->dtype != WEIR_BOOL &&
      o->mask->dtype != WEIR_FLOAT32)
    return weir_fail(WEIR_EINVAL,
                     "Expected attn_mask dtype to be bool or float or to match query dtype, but "
                     "got attn_mask.dtype: %s and  query.dtype: %s instead.",
                     dtype_cxx((weir_dtype)o->mask->dtype), dtype_cxx(d));
  if (!dtype_is_floating(d))
    return weir_fail(WEIR_EINVAL, "expected scalar type Float but found %s", dtype_title(d));
  return WEIR_OK;
}

/* A mask must not make the products larger. */
static weir_status check_attention_mask(const weir_tensor *q, const weir_tensor *turned,
                                        const weir_tensor *mask)
{
  text_buffer a, b;
  weir_shape shape = weir_shape_of(q->dims - 2, q->size);
  weir_status st = shape_broadcast(&shape, turned->size, turned->dims - 2);
  if (st || !mask) return st;
  shape.size[shape.count++] = q->size[q->dims - 2];
  shape.size[shape.count++] = turned->size[turned->dims - 1];
  weir_shape with = shape;
  st = shape_broadcast(&with, mask->size, mask->dims);
  for (int i = 0; !st && i < with.count; i++)
    if (with.count != shape.count || with.size[i] != shape.size[i])
      return weir_fail(WEIR_EINVAL, "output with shape %s doesn't match the broadcast shape %s",
                       shape_format(&a, shape), shape_format(&b, with));
  return st;
}

/* The products' own refusals, before any is made. */
static weir_status check_attention_sizes(const weir_tensor *q, const weir_tensor *turned,
                                         const weir_tensor *v, const weir_tensor *mask,
                                         double dropout)
{
  WEIR_TENSOR refused = NULL;
  WEIR_TENSOR number = NULL;
  WEIR_TENSOR weights = NULL;
  weir_shape shape = weir_shape_of(q->dims, q->size);
  int64_t keys = turned->size[turned->dims - 1];
  if (q->size[q->dims - 1] != turned->size[turned->dims - 2])
    return weir_matmul(&refused, q, turned);
  weir_status st = check_attention_mask(q, turned, mask);
  if (st) return st;
  if (!(dropout >= 0 && dropout <= 1))
    return weir_fail(WEIR_EINVAL, "dropout probability has to be between 0 and 1, but got %g",
                     dropout);
  if (keys == v->size[v->dims - 2]) return WEIR_OK;
  shape.size[q->dims - 1] = keys;
  st = tensor_new_beside(&number, q, weir_shape_of(0, NULL));
  if (!st) st = weir_expand(&weights, number, shape);
  return st ? st : weir_matmul(&refused, weights, v);
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* 0 where a bool is true, else -infinity, of `dtype`. */
static weir_status added_mask(weir_tensor **out, const weir_tensor *mask, weir_dtype dtype)
{
  WEIR_TENSOR none = NULL;
  WEIR_TENSOR all = NULL;
  weir_options o = {.dtype = dtype, .device = device_of_tensor(mask)};
  if (mask->dtype != WEIR_BOOL) return weir_to_dtype(out, mask, dtype);
  weir_status st = weir_full(&none, weir_shape_of(0, NULL), weir_float(-(double)INFINITY), &o);
  if (!st) st = weir_zeros(&all, weir_shape_of(0, NULL), &o);
  return st ? st : weir_where(out, mask, all, none);
}

/* Rows from `from` on of `keys` keys: -infinity behind the diagonal. */
static weir_status causal_mask(weir_tensor **out, const weir_tensor *like, int64_t from,
                               int64_t rows, int64_t keys)
{
  WEIR_TENSOR ones = NULL;
  WEIR_TENSOR seen = NULL;
  weir_options o = {.dtype = WEIR_BOOL, .device = device_of_tensor(like)};
  weir_status st = weir_ones(&ones, weir_shape(rows, keys), &o);
  if (!st) st = weir_tril(&seen, ones, from);
  return st ? st : added_mask(out, seen, (weir_dtype)like->dtype);
}

/* A row of -infinity alone becomes 0s, whatever the softmax made of it. */
static weir_status zero_unseen(weir_tensor **weights, const weir_tensor *products)
{
  WEIR_TENSOR unseen = NULL;
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR zero = NULL;
  weir_tensor *kept = NULL;
  weir_options o = {.dtype = (weir_dtype)products->dtype, .device = device_of_tensor(products)};
  weir_status st = weir_eq_scalar(&unseen, products, weir_float(-(double)INFINITY));
  if (!st) st = weir_all_dim(&rows, unseen, -1, true);
  if (!st) st = weir_zeros(&zero, weir_shape_of(0, NULL), &o);
  if (!st) st = weir_where(&kept, rows, zero, *weights);
  if (st) return st;
  weir_tensor_release(*weights);
  *weights = kept;
  return WEIR_OK;
}

weir_status drop_elements(weir_tensor **t, double p)
{
  WEIR_TENSOR keep = NULL;
  WEIR_TENSOR left = NULL;
  weir_tensor *scaled = NULL;
  if (p == 0) return WEIR_OK;
  weir_status st = tensor_new_beside(&keep, *t, weir_shape_of((*t)->dims, (*t)->size));
  if (!st && keep->numel) st = weir_bernoulli_(keep, 1 - p, NULL);
  if (!st) st = weir_mul(&left, *t, keep);
  if (!st) st = weir_mul_scalar(&scaled, left, weir_float(p < 1 ? 1 / (1 - p) : 0));
  if (st) return st;
  weir_tensor_release(*t);
  *t = scaled;
  return WEIR_OK;
}

/* ---- a block of rows ------------------------------------------------------------------------- */

/* A mask of other rows than the query's goes on as it is: to be repeated, or refused. */
static weir_status mask_rows(weir_tensor **out, const attention *a, int64_t from, int64_t rows)
{
  const weir_tensor *mask = a->mask;
  if (mask->dims >= 2 && mask->size[mask->dims - 2] == a->query->size[a->query->dims - 2])
    return weir_narrow(out, mask, -2, from, rows);
  *out = weir_tensor_retain((weir_tensor *)mask);
  return WEIR_OK;
}

/* The products of rows `from` to `from + rows` with the keys that they see, masked. */
static weir_status block_products(weir_tensor **out, const attention *a, int64_t from, int64_t rows,
                                  int64_t keys)
{
  WEIR_TENSOR query = NULL;
  WEIR_TENSOR key = NULL;
  WEIR_TENSOR products = NULL;
  WEIR_TENSOR mask = NULL;
  weir_status st = weir_narrow(&query, a->query, -2, from, rows);
  if (!st) st = weir_narrow(&key, a->turned, -1, 0, keys);
  if (!st) st = weir_matmul(&products, query, key);
  if (!st && a->mask) st = mask_rows(&mask, a, from, rows);
  if (!st && a->causal) st = causal_mask(&mask, query, from, rows, keys);
  if (!st && mask) return weir_add(out, products, mask);
  if (!st) *out = weir_tensor_retain(products);
  return st;
}

/* weights NULL: not asked for; else they are what remains of dropout. */
static weir_status attend_block(weir_tensor **out, weir_tensor **weights, const attention *a,
                                int64_t from, int64_t rows)
{
  WEIR_TENSOR products = NULL;
  WEIR_TENSOR weight = NULL;
  WEIR_TENSOR value = NULL;
  int64_t keys = a->value->size[a->value->dims - 2];
  if (a->causal && keys > from + rows) keys = from + rows;
  weir_status st = block_products(&products, a, from, rows, keys);
  if (!st) st = weir_softmax(&weight, products, -1);
  if (!st && a->safe && a->mask) st = zero_unseen(&weight, products);
  weir_tensor_drop(&products);
  if (!st) st = drop_elements(&weight, a->dropout);
  if (!st) st = weir_narrow(&value, a->value, -2, 0, keys);
  if (!st) st = weir_matmul(out, weight, value);
  if (!st && weights) *weights = weir_tensor_retain(weight);
  return st;
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

static weir_status attend(weir_tensor **out, weir_tensor **weights, const attention *a)
{
  int64_t rows = a->query->size[a->query->dims - 2], block = weights ? rows : block_rows(a);
  if (block == rows) return attend_block(out, weights, a, 0, rows);
  int64_t count = (rows + block - 1) / block;
  weir_tensor **part = count > INT32_MAX ? NULL : calloc((size_t)count, sizeof(weir_tensor *));
  if (!part) return weir_fail(WEIR_ENOMEM, "no host memory for the parts of attention");
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
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR many = NULL;
  weir_shape shape = weir_shape_of(t->dims, t->size);
  int at = t->dims - 3;
  weir_status st = weir_unsqueeze(&one, t, at + 1);
  if (st) return st;
  weir_shape wide = weir_shape_of(one->dims, one->size);
  wide.size[at + 1] = heads / t->size[at];
  st = weir_expand(&many, one, wide);
  shape.size[at] = heads;
  return st ? st : weir_reshape(out, many, shape);
}

static weir_status same_heads(weir_tensor **key, weir_tensor **value, const weir_tensor *q,
                              const weir_tensor *k, const weir_tensor *v)
{
  int at;
  weir_status st = dim_resolve(&at, -3, q->dims);
  if (!st) st = dim_resolve(&at, -3, k->dims);
  if (!st) st = dim_resolve(&at, -3, v->dims);
  if (st) return st;
  int64_t heads = q->size[q->dims - 3], a = k->size[k->dims - 3], b = v->size[v->dims - 3];
  if (!a || !b || heads % a || heads % b)
    return weir_fail(WEIR_EINVAL,
                     "Number of heads in key and value must divide the number of heads in query");
  st = repeat_heads(key, k, heads);
  return st ? st : repeat_heads(value, v, heads);
}

weir_status attention_run(weir_tensor **out, weir_tensor **weights, const weir_tensor *q,
                          const weir_tensor *k, const weir_tensor *v,
                          const weir_attention_options *options)
{
  static const weir_attention_options none = {0};
  const weir_attention_options *o = options ? options : &none;
  WEIR_TENSOR key = NULL;
  WEIR_TENSOR value = NULL;
  WEIR_TENSOR query = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR mask = NULL;
  weir_status st = check_attention(q, k, v, o);
  if (!st && o->enable_gqa) st = same_heads(&key, &value, q, k, v);
  if (key) k = key;
  if (value) v = value;
  if (!st) st = weir_transpose(&turned, k, -2, -1);
  if (!st) st = check_attention_sizes(q, turned, v, o->mask, o->dropout);
  if (st) return st;
  double width = (double)q->size[q->dims - 1];
  double scale = o->scale != 0 ? o->scale : 1 / sqrt(width);
  st = weir_mul_scalar(&query, q, weir_float(scale));
  if (!st && o->mask) st = added_mask(&mask, o->mask, (weir_dtype)q->dtype);
  attention a = {query, turned, v, mask, o->is_causal, !weights, o->dropout};
  return st ? st : attend(out, weights, &a);
}

weir_status weir_scaled_dot_product_attention(weir_tensor **out, const weir_tensor *query,
                                              const weir_tensor *key, const weir_tensor *value,
                                              const weir_attention_options *options)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, query, key, value);
  static const weir_attention_options none = {0};
  weir_attention_options o = options ? *options : none;
  const weir_tensor *mask = o.mask;
  WEIR_CASTS(ATTENTION, query, key, value);
  WEIR_CASTS_MORE(ATTENTION, mask);
  o.mask = mask;
  return attention_run(out, NULL, query, key, value, &o);
}
