/* linalg.c: products that are made of others: of tensors over chosen dimensions, of chains of
 * matrices, of vectors.
 *
 * All of it is composed of public operations, so that devices and derivatives need nothing more. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/ops/ops.h"

/* ---- tensordot, inner, outer ----------------------------------------------------------------- */

/* Sums a dimension whose counterpart has size 1; a's dtype stays. *a is exchanged. */
static weir_status sum_broadcast(weir_tensor **a, int dim)
{
  CALC(c);
  weir_tensor *same = NULL;
  weir_tensor *sum = c_call(c, weir_sum_dim, *a, dim, true);
  c_do(c, weir_to_dtype(&same, sum, (*a)->dtype));
  if (c->st) return c->st;
  weir_tensor_release(*a);
  *a = same;
  return WEIR_OK;
}

/* An operand of tensordot: its dimensions, contracted ones first or last, as a matrix. */
typedef struct contracted {
  weir_tensor *t; /* owned */
  int dims[WEIR_DIMS], count;
  const int *asked; /* borrowed; dims as they were asked for */
} contracted;

static weir_status contract_sizes(contracted *x, contracted *y, int64_t *csize)
{
  *csize = 1;
  for (int i = 0; i < x->count; i++) {
    int64_t sx = x->t->size[x->dims[i]], sy = y->t->size[y->dims[i]];
    weir_status st = WEIR_OK;
    if (sy == 1)
      st = sum_broadcast(&x->t, x->dims[i]);
    else if (sx == 1)
      st = sum_broadcast(&y->t, y->dims[i]);
    else if (sx != sy)
      st = fail_invalid("contracted dimensions need to match, but first has size %lld in dim %d "
                        "and second has size %lld in dim %d",
                        (long long)sx, x->asked[i], (long long)sy, y->asked[i]);
    else
      *csize *= sx;
    if (st) return st;
  }
  return WEIR_OK;
}

/* (free, csize) or, `first`, (csize, free); the free sizes go after those of `shape`. */
static weir_status contract_matrix(weir_tensor **out, const contracted *x, bool first,
                                   int64_t csize, int64_t shape[2 * WEIR_DIMS], int *count)
{
  CALC(c);
  int order[WEIR_DIMS], n = 0;
  bool in[WEIR_DIMS] = {false};
  int64_t size = 1;
  for (int i = 0; i < x->count; i++)
    in[x->dims[i]] = true;
  for (int i = 0; first && i < x->count; i++)
    order[n++] = x->dims[i];
  for (int d = 0; d < x->t->dims; d++) {
    if (in[d]) continue;
    order[n++] = d;
    size *= x->t->size[d];
    shape[(*count)++] = x->t->size[d];
  }
  for (int i = 0; !first && i < x->count; i++)
    order[n++] = x->dims[i];
  weir_tensor *turned = c_permute(c, x->t, order);
  return c->st
             ? c->st
             : weir_reshape(out, turned, first ? weir_shape(csize, size) : weir_shape(size, csize));
}

/* Each of them once. */
static weir_status contract_once(const contracted *x)
{
  uint32_t mask = 0;
  for (int i = 0; i < x->count; i++) {
    if (mask >> x->dims[i] & 1)
      return fail_invalid("dim %d appears multiple times in the list of dims", x->dims[i]);
    mask |= 1u << x->dims[i];
  }
  return WEIR_OK;
}

static weir_status contract(weir_tensor **out, contracted *x, contracted *y)
{
  CALC(c);
  int64_t csize, sizes[2 * WEIR_DIMS];
  int count = 0;
  c->st = contract_sizes(x, y, &csize);
  c_do(c, contract_once(x));
  c_do(c, contract_once(y));
  weir_tensor *left = c_call(c, contract_matrix, x, false, csize, sizes, &count);
  weir_tensor *right = c_call(c, contract_matrix, y, true, csize, sizes, &count);
  weir_tensor *product = c_call(c, weir_mm, left, right);
  return c->st ? c->st : weir_reshape(out, product, weir_shape_of(count, sizes));
}

/* Dimensions counted from the start. */
static weir_status contract_dims(contracted *x, const weir_tensor *t, const int *dims, int count)
{
  x->count = count;
  x->asked = dims;
  for (int i = 0; i < count; i++) {
    TRY(dim_resolve(&x->dims[i], dims[i], t->dims));
  }
  return WEIR_OK;
}

static weir_status run_tensordot(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                 const int *dims_a, const int *dims_b, int count)
{
  contracted x, y;
  weir_status st = check_same_device(a, b);
  if (!st && a->dtype != b->dtype) st = fail_invalid("both inputs should have same dtype");
  if (!st && (count < 0 || count > WEIR_DIMS))
    st = fail_invalid("tensordot: %d dimensions are contracted", count);
  if (!st) st = contract_dims(&x, a, dims_a, count);
  if (!st) st = contract_dims(&y, b, dims_b, count);
  if (st) return st;
  x.t = weir_tensor_retain((weir_tensor *)a);
  y.t = weir_tensor_retain((weir_tensor *)b);
  st = contract(out, &x, &y);
  weir_tensor_release(x.t);
  weir_tensor_release(y.t);
  return st;
}

weir_status weir_tensordot_dims(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                const int *dims_a, const int *dims_b, int count)
{
  WEIR_OP(out, a, b);
  if (count > 0) WEIR_REQUIRE(dims_a, dims_b);
  WEIR_CASTS(TENSORDOT, a, b);
  return run_tensordot(out, a, b, dims_a, dims_b, count);
}

weir_status weir_tensordot(weir_tensor **out, const weir_tensor *a, const weir_tensor *b, int count)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(TENSORDOT, a, b);
  int dims_a[WEIR_DIMS], dims_b[WEIR_DIMS];
  if (count < 0) return fail_invalid("tensordot expects dims >= 0, but got dims=%d", count);
  if (count > a->dims || count > b->dims)
    return fail_invalid("tensordot expects dims < ndim_a or ndim_b, but got dims=%d", count);
  for (int i = 0; i < count; i++) {
    dims_a[i] = i - count;
    dims_b[i] = i;
  }
  return run_tensordot(out, a, b, dims_a, dims_b, count);
}

weir_status weir_inner(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  static const int last = -1;
  text_buffer ta, tb;
  if (!a->dims || !b->dims) return weir_mul(out, a, b);
  WEIR_CASTS(TENSORDOT, a, b);
  if (a->size[a->dims - 1] != b->size[b->dims - 1])
    return fail_invalid(
        "inner() the last dimension must match on both input tensors but got shapes %s and %s",
        shape_format(&ta, shape_of_tensor(a)), shape_format(&tb, shape_of_tensor(b)));
  return run_tensordot(out, a, b, &last, &last, 1);
}

static weir_status check_vector(const weir_tensor *t, const char *name, const char *argument)
{
  if (t->dims == 1) return WEIR_OK;
  return fail_invalid("%s: Expected 1-D argument %s, but got %d-D", name, argument, (int)t->dims);
}

weir_status weir_outer(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  CALC(c);
  c->st = check_vector(a, "outer", "self");
  c_do(c, check_vector(b, "outer", "vec2"));
  return calc_give(c, out, c_mul(c, c_unsqueeze(c, a, 1), b));
}

/* ---- addr ------------------------------------------------------------------------------------ */

static weir_status check_factor(weir_dtype d, weir_scalar v, const char *name)
{
  if (dtype_is_integral_or_bool(d) && v.dtype != WEIR_INT64 && v.dtype != WEIR_BOOL)
    return fail_invalid(
        "For integral input tensors, argument %s must not be a floating point number.", name);
  return WEIR_OK;
}

static bool equals_integer(weir_scalar v, int64_t n)
{
  return v.dtype == WEIR_FLOAT64 ? v.f == (double)n : v.dtype != WEIR_COMPLEX64 && v.i == n;
}

/* *t (exchanged) times v, in `dtype`. */
static weir_status scale_by(weir_tensor **t, weir_scalar v, weir_dtype dtype)
{
  CALC(c);
  weir_tensor *scaled = NULL;
  weir_tensor *wide = c_call(c, weir_to_dtype, *t, dtype);
  if (!c->st && !equals_integer(v, 1)) {
    c->st =
        weir_mul_scalar(&scaled, wide, dtype == WEIR_BOOL ? weir_bool(!equals_integer(v, 0)) : v);
  } else if (!c->st) {
    scaled = weir_tensor_retain(wide);
  }
  if (c->st) return c->st;
  weir_tensor_release(*t);
  *t = scaled;
  return WEIR_OK;
}

weir_status weir_addr(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                      const weir_tensor *b, weir_scalar beta, weir_scalar alpha)
{
  WEIR_OP(out, c, a, b);
  WEIR_CASTS(MATVEC, c, a, b);
  CALC(k);
  WEIR_TENSOR product = NULL, wide = NULL;
  categories common = {0};
  weir_dtype dtype = WEIR_DTYPE_NONE;
  k->st = check_vector(a, "addr", "vec1");
  c_do(k, check_vector(b, "addr", "vec2"));
  c_do(k, weir_expand(&wide, c, weir_shape(a->size[0], b->size[0])));
  c_do(k, categories_tensor(&common, a));
  c_do(k, categories_tensor(&common, b));
  c_do(k, categories_tensor(&common, c));
  c_do(k, categories_result(&dtype, &common));
  c_do(k, check_factor(dtype, beta, "beta"));
  c_do(k, check_factor(dtype, alpha, "alpha"));
  weir_tensor *first = c_call(k, weir_to_dtype, a, dtype);
  c_do(k, weir_outer(&product, first, b));
  c_do(k, scale_by(&product, alpha, dtype));
  if (!k->st && equals_integer(beta, 0)) return weir_contiguous(out, product);
  c_do(k, scale_by(&wide, beta, dtype));
  return k->st ? k->st : weir_add(out, wide, product);
}

/* ---- chains and powers of matrices ----------------------------------------------------------- */

/* A chain, matrices all: cut[i][j] is where the product of i to j is best cut. */
typedef struct chain {
  const weir_tensor **matrix; /* owned, what it points to borrowed */
  int *cut;                   /* owned, count x count */
  int count;
} chain;

/* Cormen et al., "Introduction to Algorithms", matrix-chain multiplication. Errors: ENOMEM. */
static weir_status chain_plan(chain *c)
{
  size_t n = (size_t)c->count;
  double *cost = calloc(n * n, sizeof *cost);
  c->cut = calloc(n * n, sizeof *c->cut);
  if (!cost || !c->cut) {
    free(cost);
    return fail_memory("the order of a product of %zu matrices", n);
  }
  for (size_t length = 2; length <= n; length++)
    for (size_t i = 0; i + length <= n; i++) {
      size_t j = i + length - 1;
      double rows = (double)c->matrix[i]->size[0], columns = (double)c->matrix[j]->size[1];
      for (size_t k = i; k < j; k++) {
        double all = cost[i * n + k] + cost[(k + 1) * n + j] +
                     rows * (double)c->matrix[k]->size[1] * columns;
        if (k > i && all >= cost[i * n + j]) continue;
        cost[i * n + j] = all;
        c->cut[i * n + j] = (int)k;
      }
    }
  free(cost);
  return WEIR_OK;
}

static weir_status chain_product(weir_tensor **out, const chain *c, int from, int to)
{
  CALC(k);
  if (from == to) {
    *out = weir_tensor_retain((weir_tensor *)c->matrix[from]);
    return WEIR_OK;
  }
  int cut = c->cut[from * c->count + to];
  weir_tensor *left = c_call(k, chain_product, c, from, cut);
  weir_tensor *right = c_call(k, chain_product, c, cut + 1, to);
  return k->st ? k->st : weir_mm(out, left, right);
}

static weir_status check_chain_place(const weir_tensor *const *t, int i, int count)
{
  bool first = i == 0, last = i == count - 1;
  if ((first || last) && t[i]->dims != 1 && t[i]->dims != 2)
    return fail_invalid("multi_dot(): the %s tensor must be 1D or 2D but got %dD",
                        first ? "first" : "last", (int)t[i]->dims);
  if (!first && !last && t[i]->dims != 2)
    return fail_invalid("multi_dot(): tensor %d must be 2D but got %dD", i, (int)t[i]->dims);
  return WEIR_OK;
}

static weir_status check_chain(const weir_tensor *const *t, int count)
{
  text_buffer a, b;
  weir_status st = check_chain_place(t, 0, count);
  if (!st) st = check_chain_place(t, count - 1, count);
  for (int i = 1; !st && i < count - 1; i++)
    st = check_chain_place(t, i, count);
  for (int i = 1; !st && i < count; i++)
    if (t[i]->dtype != t[0]->dtype)
      st = fail_invalid("multi_dot(): all tensors must have be the same dtype but tensor 0 is %s "
                        "and tensor %d %s",
                        dtype_cxx(t[0]->dtype), i, dtype_cxx(t[i]->dtype));
  for (int i = 1; !st && i < count; i++) {
    int64_t k = t[i - 1]->size[t[i - 1]->dims - 1];
    if (t[i]->size[0] != k)
      st = fail_invalid("multi_dot(): tensors %d and %d with shapes %s and %s cannot be multiplied",
                        i - 1, i, shape_format(&a, shape_of_tensor(t[i - 1])),
                        shape_format(&b, shape_of_tensor(t[i])));
  }
  return st;
}

static weir_status run_chain(weir_tensor **out, chain *c)
{
  CALC(k);
  WEIR_TENSOR row = NULL;
  weir_shape shape = {0, {0}};
  const weir_tensor *first = c->matrix[0], *last = c->matrix[c->count - 1];
  k->st = first->dims == 1 ? weir_unsqueeze(&row, first, 0) : WEIR_OK;
  weir_tensor *column = last->dims == 1 ? c_unsqueeze(k, last, 1) : NULL;
  if (row) c->matrix[0] = row;
  if (column) c->matrix[c->count - 1] = column;
  c_do(k, chain_plan(c));
  weir_tensor *product = c_call(k, chain_product, c, 0, c->count - 1);
  if (k->st) return k->st;
  if (!row) shape.size[shape.count++] = product->size[0];
  if (!column) shape.size[shape.count++] = product->size[1];
  return weir_view(out, product, shape);
}

weir_status weir_multi_dot(weir_tensor **out, const weir_tensor *const *tensors, int count)
{
  WEIR_OP(out, tensors);
  WEIR_CASTS_LIST(MULTI_DOT, tensors, count);
  if (count < 2) return fail_invalid("multi_dot(): expected at least 2 tensors but got %d", count);
  for (int i = 0; i < count; i++)
    if (!tensors[i]) return fail_invalid("%s: tensors[%d] is NULL", __func__, i);
  TRY(check_chain(tensors, count));
  chain c = {.matrix = malloc((size_t)count * sizeof(weir_tensor *)), .count = count};
  if (!c.matrix) return fail_memory("%d matrices", count);
  memcpy(c.matrix, tensors, (size_t)count * sizeof(weir_tensor *));
  weir_status st = run_chain(out, &c);
  free(c.matrix);
  free(c.cut);
  return st;
}

/* ---- distances ------------------------------------------------------------------------------- */

enum {
  CDIST_FEW = 25,        /* rows that are subtracted one from the other where p is 2: torch's */
  CDIST_BLOCK = 1 << 20, /* differences that are held at a time */
};

static weir_status check_rows(const weir_tensor *a, const weir_tensor *b)
{
  for (int i = 0; i < 2; i++)
    if ((i ? b : a)->dims < 2)
      return fail_invalid("cdist only supports at least 2D tensors, X%d got: %dD", i + 1,
                          (int)(i ? b : a)->dims);
  int64_t columns = a->size[a->dims - 1], others = b->size[b->dims - 1];
  if (columns != others)
    return fail_invalid("X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                        (long long)columns, (long long)others);
  return WEIR_OK;
}

static weir_status check_distance(const weir_tensor *a, const weir_tensor *b, double p)
{
  weir_dtype d = a->dtype, e = b->dtype;
  TRY(check_same_device(a, b));
  TRY(check_rows(a, b));
  if (!dtype_is_floating(d) || !dtype_is_floating(e))
    return fail_invalid("cdist only supports floating-point dtypes, X%d got: %s",
                        dtype_is_floating(d) ? 2 : 1, dtype_title(dtype_is_floating(d) ? e : d));
  if (!(p >= 0)) return fail_invalid("cdist only supports non-negative p values");
  return WEIR_OK;
}

/* Of what has elements, and is subtracted. */
static weir_status check_distance_dtypes(const weir_tensor *a, const weir_tensor *b)
{
  weir_dtype d = a->dtype;
  if (d != WEIR_FLOAT32 && d != WEIR_FLOAT64)
    return not_implemented("cdist", device_of_tensor(a), d);
  if (a->dtype != b->dtype)
    return fail_invalid("expected scalar type %s but found %s", dtype_title(d),
                        dtype_title(b->dtype));
  return WEIR_OK;
}

/* ||x||^2 + ||y||^2 - 2 x y as one product: rows [-2 x, ||x||^2, 1] and [y, 1, ||y||^2]. */
static weir_status extended_rows(weir_tensor **out, const weir_tensor *x, bool left)
{
  CALC(c);
  weir_tensor *norm = c_sum_dim(c, c_mul(c, x, x), -1, true);
  weir_tensor *one = c_ones_like(c, norm, NULL);
  weir_tensor *scaled = c_mul_scalar(c, x, weir_int(left ? -2 : 1));
  if (c->st) return c->st;
  const weir_tensor *parts[] = {scaled, left ? norm : one, left ? one : norm};
  return weir_cat(out, parts, 3, -1);
}

static weir_status distance_by_product(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *b)
{
  CALC(c);
  weir_scalar zero = weir_int(0);
  weir_tensor *left = c_call(c, extended_rows, a, true);
  weir_tensor *turned = c_transpose(c, c_call(c, extended_rows, b, false), -1, -2);
  weir_tensor *square = c_matmul(c, left, turned);
  return calc_give(c, out, c_sqrt(c, c_call(c, weir_clamp, square, &zero, NULL)));
}

/* Rows `from` to `from + rows` of a against all of b. */
static weir_status distance_block(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                  int64_t from, int64_t rows, double p)
{
  CALC(c);
  weir_tensor *left = c_unsqueeze(c, c_narrow(c, a, -2, from, rows), -2);
  weir_tensor *difference = c_sub(c, left, c_unsqueeze(c, b, -3));
  return c->st ? c->st : weir_norm_dim(out, difference, p, -1, false);
}

/* By differences, some rows at a time, so that memory stays bounded. */
static weir_status distance_by_rows(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                    weir_shape shape, double p)
{
  int64_t rows = a->size[a->dims - 2], each = b->size[b->dims - 2] * a->size[a->dims - 1];
  each *= sizes_product(shape.size, 0, shape.count - 2);
  int64_t block = each < CDIST_BLOCK ? CDIST_BLOCK / each : 1, count = (rows + block - 1) / block;
  if (count == 1) return distance_block(out, a, b, 0, rows, p);
  weir_tensor **part = calloc((size_t)count, sizeof(weir_tensor *));
  if (!part) return fail_memory("the parts of cdist");
  weir_status st = WEIR_OK;
  for (int64_t i = 0; i < count && !st; i++) {
    int64_t left = rows - i * block;
    st = distance_block(&part[i], a, b, i * block, left < block ? left : block, p);
  }
  if (!st) st = weir_cat(out, (const weir_tensor *const *)part, (int)count, -2);
  for (int64_t i = 0; i < count; i++)
    weir_tensor_release(part[i]);
  free(part);
  return st;
}

weir_status weir_cdist(weir_tensor **out, const weir_tensor *a, const weir_tensor *b, double p)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(CDIST, a, b);
  TRY(check_distance(a, b, p));
  weir_shape shape = weir_shape_of(a->dims - 2, a->size);
  TRY(shape_broadcast(&shape, b->size, b->dims - 2));
  if (shape.count + 3 > WEIR_DIMS)
    return fail_unsupported("cdist: more than %d dimensions of batch", WEIR_DIMS - 3);
  int64_t m = a->size[a->dims - 2], n = b->size[b->dims - 2], k = a->size[a->dims - 1], all = m * n;
  all *= sizes_product(shape.size, 0, shape.count);
  shape.size[shape.count++] = m;
  shape.size[shape.count++] = n;
  if (!all || !k) {
    return weir_zeros(out, shape, OPTIONS_ON(a, a->dtype));
  }
  if (p == 2 && (m > CDIST_FEW || n > CDIST_FEW)) return distance_by_product(out, a, b);
  weir_status st = check_distance_dtypes(a, b);
  return st ? st : distance_by_rows(out, a, b, shape, p);
}

/* ---- kron, cross, vander --------------------------------------------------------------------- */

/* t's sizes at every second of 2 n dimensions, from `at` on; 1 elsewhere. */
static weir_status spread_operand(weir_tensor **out, const weir_tensor *t, int n, int at)
{
  weir_shape shape = {2 * n, {1, 1, 1, 1, 1, 1, 1, 1}};
  for (int d = 0; d < t->dims; d++)
    shape.size[2 * (n - t->dims + d) + at] = t->size[d];
  return weir_reshape(out, t, shape);
}

weir_status weir_kron(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  CALC(c);
  int n = a->dims > b->dims ? a->dims : b->dims;
  weir_shape shape = {n, {0}};
  if (2 * n > WEIR_DIMS)
    return fail_unsupported("kron: tensors of more than %d dimensions", WEIR_DIMS / 2);
  weir_tensor *left = c_call(c, spread_operand, a, n, 0);
  weir_tensor *product = c_mul(c, left, c_call(c, spread_operand, b, n, 1));
  for (int d = 0; !c->st && d < n; d++)
    shape.size[d] = product->size[2 * d] * product->size[2 * d + 1];
  return c->st ? c->st : weir_reshape(out, product, shape);
}

static weir_status check_cross(const weir_tensor *a, const weir_tensor *b, int dim, int *at)
{
  weir_shape shape = shape_of_tensor(a);
  TRY(check_same_device(a, b));
  if (a->dims != b->dims)
    return fail_invalid("linalg.cross: inputs must have the same number of dimensions.");
  weir_status st = dim_resolve(at, dim, a->dims);
  if (!st && (!a->dims || a->size[*at] != 3 || b->size[*at] != 3))
    st = fail_invalid("linalg.cross: inputs dimension %d must have length 3. Got %lld and %lld",
                      dim, (long long)(a->dims ? a->size[*at] : 1),
                      (long long)(a->dims ? b->size[*at] : 1));
  if (!st) st = shape_broadcast(&shape, b->size, b->dims);
  if (!st && a->dtype == WEIR_BOOL) st = not_implemented("cross", device_of_tensor(a), WEIR_BOOL);
  if (!st && a->dtype != b->dtype)
    st = fail_invalid("expected scalar type %s but found %s", dtype_title(a->dtype),
                      dtype_title(b->dtype));
  return st;
}

/* Places moved down by `x` in a, by `y` in b, multiplied. */
static weir_status turned_product(weir_tensor **out, const weir_tensor *a, int64_t x,
                                  const weir_tensor *b, int64_t y, int dim)
{
  CALC(c);
  weir_tensor *left = c_call(c, weir_roll, a, &x, &dim, 1);
  return calc_give(c, out, c_mul(c, left, c_call(c, weir_roll, b, &y, &dim, 1)));
}

weir_status weir_cross(weir_tensor **out, const weir_tensor *a, const weir_tensor *b, int dim)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(CROSS, a, b);
  CALC(c);
  int at;
  c->st = check_cross(a, b, dim, &at);
  weir_tensor *plus = c_call(c, turned_product, a, -1, b, -2, at);
  return calc_give(c, out, c_sub(c, plus, c_call(c, turned_product, a, -2, b, -1, at)));
}

/* The n columns of powers of x, each the one before times x. */
static weir_status powers_of(weir_tensor **column, const weir_tensor *x, int64_t n, bool increasing)
{
  weir_status st = WEIR_OK;
  for (int64_t i = 0; i < n && !st; i++) {
    int64_t at = increasing ? i : n - 1 - i, before = increasing ? i - 1 : n - i;
    st = i ? weir_mul(&column[at], column[before], x) : weir_ones_like(&column[at], x, NULL);
  }
  return st;
}

weir_status weir_vander(weir_tensor **out, const weir_tensor *a, int64_t n, bool increasing)
{
  WEIR_OP(out, a);
  CALC(c);
  weir_tensor *x = NULL;
  weir_dtype d = a->dtype;
  if (a->dims != 1) return fail_invalid("x must be a one-dimensional tensor.");
  if (n < 0) return fail_invalid("N must be non-negative.");
  x = c_call(c, weir_to_dtype, a, dtype_is_integral_or_bool(d) ? WEIR_INT64 : d);
  if (c->st || !n) return c->st ? c->st : tensor_new_beside(out, x, weir_shape(a->size[0], 0));
  weir_tensor **column = n > INT32_MAX ? NULL : calloc((size_t)n, sizeof(weir_tensor *));
  if (!column) return fail_memory("%lld columns", (long long)n);
  c->st = powers_of(column, x, n, increasing);
  c_do(c, weir_stack(out, (const weir_tensor *const *)column, (int)n, 1));
  for (int64_t i = 0; i < n; i++)
    weir_tensor_release(column[i]);
  free(column);
  return c->st;
}
