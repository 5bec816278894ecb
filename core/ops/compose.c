/* compose.c: small things made of other operations: covariances, integrals by trapezoids, bounded
 * norms, matrices along a diagonal, products of sets, channels dealt out. They have derivatives
 * where those have. */
#include "core/ops/ops.h"

/* ---- covariance ------------------------------------------------------------------------------ */

static weir_status check_observations(const char *name, const weir_tensor *a)
{
  if (a->dims > 2)
    return fail_invalid(
        "%s(): expected input to have two or fewer dimensions but got an input with %d dimensions",
        name, (int)a->dims);
  if (a->dtype == WEIR_BOOL)
    return fail_unsupported("cov(): bool dtype is not supported for input");
  return WEIR_OK;
}

/* Of rows of floating point. */
static weir_status covariance(weir_tensor **out, const weir_tensor *rows, int64_t correction)
{
  CALC(c);
  int64_t left = rows->size[1] - correction;
  weir_tensor *off = c_sub(c, rows, c_mean_dim(c, rows, 1, true));
  weir_tensor *turned = c_t(c, off);
  weir_tensor *product = c_call(c, weir_mm, off, turned);
  weir_tensor *quotient = c_div_s(c, product, left > 0 ? (double)left : 0);
  if (c->st) return c->st;
  return weir_reshape(out, quotient,
                      rows->size[0] == 1 ? weir_shape_of(0, NULL) : weir_tensor_shape(quotient));
}

static weir_status covariance_of(weir_tensor **out, const weir_tensor *a, int64_t correction)
{
  CALC(c);
  bool whole = dtype_is_integral_or_bool(a->dtype);
  weir_shape shape = a->dims < 2 ? weir_shape(1, a->numel) : weir_tensor_shape(a);
  weir_tensor *rows = c_reshape(c, a, shape);
  weir_tensor *wide = c_call(c, weir_to_dtype, rows, whole ? weir_get_default_dtype() : a->dtype);
  return c->st ? c->st : covariance(out, wide, correction);
}

weir_status weir_cov(weir_tensor **out, const weir_tensor *a, int64_t correction)
{
  WEIR_OP(out, a);
  weir_status st = check_observations("cov", a);
  return st ? st : covariance_of(out, a, correction);
}

weir_status weir_corrcoef(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  CALC(c);
  weir_scalar least = weir_int(-1), most = weir_int(1);
  c->st = check_observations("corrcoef", a);
  weir_tensor *cov = c_call(c, covariance_of, a, 1);
  if (c->st) return c->st;
  if (!cov->dims) return weir_div(out, cov, cov);
  weir_tensor *deviation = c_sqrt(c, c_diagonal(c, cov, 0, 0, 1));
  weir_tensor *both = c_div(c, c_div(c, cov, c_unsqueeze(c, deviation, 1)), deviation);
  return c->st ? c->st : weir_clamp(out, both, &least, &most);
}

/* ---- trapezoids ------------------------------------------------------------------------------ */

/* Sums of neighbours along a dimension that is not empty. */
static weir_status neighbours_of(weir_tensor **out, const weir_tensor *y, int dim)
{
  CALC(c);
  weir_tensor *left = c_call(c, weir_narrow, y, dim, 0, y->size[dim] - 1);
  return calc_give(c, out, c_add(c, left, c_call(c, weir_narrow, y, dim, 1, y->size[dim] - 1)));
}

static weir_status refuse_bool_curve(const char *name, const weir_tensor *y)
{
  if (y->dtype != WEIR_BOOL) return WEIR_OK;
  return fail_unsupported("%s: received a bool input for `y`, but bool is not supported", name);
}

weir_status weir_trapezoid(weir_tensor **out, const weir_tensor *y, double dx, int dim)
{
  WEIR_OP(out, y);
  CALC(c);
  weir_shape shape = {0, {0}};
  int at;
  if (!y->dims) return fail_invalid("Dimension specified as %d but tensor has no dimensions", dim);
  TRY(dim_resolve(&at, dim, y->dims));
  for (int d = 0; d < y->dims; d++)
    if (d != at) shape.size[shape.count++] = y->size[d];
  if (!y->size[at]) return weir_new_zeros(out, y, shape, NULL);
  c->st = refuse_bool_curve("trapezoid", y);
  weir_tensor *pairs = c_call(c, neighbours_of, y, at);
  weir_tensor *sum = c_call(c, weir_sum_dim, pairs, at, false);
  return c->st ? c->st : weir_mul_scalar(out, sum, weir_float(dx / 2));
}

weir_status weir_cumulative_trapezoid(weir_tensor **out, const weir_tensor *y, double dx, int dim)
{
  WEIR_OP(out, y);
  CALC(c);
  int at;
  c->st = refuse_bool_curve("cumulative_trapezoid", y);
  if (!y->dims) c_do(c, fail_invalid("slice() cannot be applied to a 0-dim tensor."));
  c_do(c, dim_resolve(&at, dim, y->dims));
  if (c->st) return c->st;
  if (!y->size[at]) return weir_clone(out, y);
  weir_tensor *pairs = c_call(c, neighbours_of, y, at);
  return calc_give(c, out, c_mul_s(c, c_call(c, weir_cumsum, pairs, at), dx / 2));
}

/* ---- bounded norms --------------------------------------------------------------------------- */

/* What parts of a have to be multiplied with, so that none of their norms over dims is larger. */
static weir_status norm_factors(weir_tensor **out, const weir_tensor *a, double p, const int *dims,
                                int count, double maxnorm)
{
  CALC(c);
  weir_tensor *norm = c_call(c, weir_norm_dims, a, p, dims, count, true);
  weir_tensor *above = c_gt_s(c, norm, maxnorm);
  weir_tensor *more = c_add_s(c, norm, 1e-7);
  weir_tensor *scale = c_scalar_div(c, weir_float(maxnorm), more);
  return calc_give(c, out, c_where(c, above, scale, c_ones_like(c, scale, NULL)));
}

static weir_status check_renorm(const weir_tensor *a, double p, double maxnorm)
{
  if (p <= 0) return fail_invalid("renorm: non-positive-norm not supported");
  if (maxnorm < 0) return fail_invalid("renorm: expected maxnorm to be >= 0 but got %g", maxnorm);
  if (a->dims < 2)
    return fail_invalid("renorm: input needs at least 2 dimensions, got %d dimensions",
                        (int)a->dims);
  return WEIR_OK;
}

weir_status weir_renorm(weir_tensor **out, const weir_tensor *a, double p, int dim, double maxnorm)
{
  WEIR_OP(out, a);
  CALC(c);
  int dims[WEIR_MAX_DIMS], count = 0, at;
  c->st = check_renorm(a, p, maxnorm);
  c_do(c, dim_resolve(&at, dim, a->dims));
  if (c->st) return c->st;
  for (int d = 0; d < a->dims; d++)
    if (d != at) dims[count++] = d;
  return calc_give(c, out, c_mul(c, a, c_call(c, norm_factors, a, p, dims, count, maxnorm)));
}

/* Rows that are looked up more than once are written as often, with the same elements. */
weir_status weir_embedding_renorm_(weir_tensor *weight, const weir_tensor *indices, double max_norm,
                                   double norm_type)
{
  WEIR_OP_ON(weight, indices);
  CALC(c);
  if (weight->dims != 2) return fail_invalid("'weight' must be 2-D");
  WEIR_UNRECORDED;
  weir_tensor *row = c_reshape(c, indices, weir_shape(indices->numel));
  weir_tensor *rows = c_index_select(c, weight, 0, row);
  weir_tensor *factors = c_call(c, norm_factors, rows, norm_type, (const int[]){1}, 1, max_norm);
  weir_tensor *bounded = c_mul(c, rows, factors);
  weir_tensor *places = c_to_dtype(c, row, WEIR_INT64);
  return c->st ? c->st : weir_index_copy_(weight, 0, places, bounded);
}

/* ---- matrices, sets, channels ---------------------------------------------------------------- */

/* One of the matrices with 0s on both sides of its columns. */
static weir_status widened_block(weir_tensor **out, const weir_tensor *t, int64_t before,
                                 int64_t columns, weir_dtype dtype)
{
  CALC(c);
  int64_t width = t->dims ? t->size[t->dims - 1] : 1;
  const int64_t border[2] = {before, columns - before - width};
  weir_tensor *matrix =
      c_call(c, weir_reshape, t, weir_shape(t->dims == 2 ? t->size[0] : 1, width));
  weir_tensor *same = c_to_dtype(c, matrix, dtype);
  return c->st ? c->st : weir_pad(out, same, border, 2, WEIR_PAD_CONSTANT, weir_int(0));
}

weir_status weir_block_diag(weir_tensor **out, const weir_tensor *const *tensors, int count)
{
  WEIR_OP(out, tensors);
  weir_tensor *part[WEIR_BLOCKS_MAX] = {NULL};
  int64_t columns = 0, at = 0;
  categories c = {0};
  weir_dtype dtype;
  weir_status st = WEIR_OK;
  if (count < 1 || count > WEIR_BLOCKS_MAX)
    return fail_invalid("block_diag: 1 to %d tensors, not %d", WEIR_BLOCKS_MAX, count);
  for (int i = 0; i < count && !st; i++) {
    if (!tensors[i]) return fail_invalid("block_diag: tensors[%d] is NULL", i);
    if (tensors[i]->dims > 2)
      return fail_invalid("weir.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                          "%d has %d dimensions",
                          i, (int)tensors[i]->dims);
    columns += tensors[i]->dims ? tensors[i]->size[tensors[i]->dims - 1] : 1;
    st = categories_tensor(&c, tensors[i]);
  }
  if (!st) st = categories_result(&dtype, &c);
  for (int i = 0; i < count && !st; i++) {
    st = widened_block(&part[i], tensors[i], at, columns, dtype);
    at += tensors[i]->dims ? tensors[i]->size[tensors[i]->dims - 1] : 1;
  }
  if (!st) st = weir_cat(out, (const weir_tensor *const *)part, count, 0);
  for (int i = 0; i < count; i++)
    weir_tensor_release(part[i]);
  return st;
}

weir_status weir_cartesian_prod(weir_tensor **out, const weir_tensor *const *tensors, int count)
{
  WEIR_OP(out, tensors);
  weir_tensor *grid[WEIR_MAX_DIMS] = {NULL};
  CALC(c);
  text_buffer text;
  if (count < 1 || count > WEIR_MAX_DIMS - 1)
    return fail_invalid("cartesian_prod: 1 to %d tensors, not %d", WEIR_MAX_DIMS - 1, count);
  for (int i = 0; i < count; i++) {
    if (!tensors[i]) return fail_invalid("cartesian_prod: tensors[%d] is NULL", i);
    if (tensors[i]->dims != 1)
      return fail_invalid("Expect a 1D vector, but got shape %s",
                          shape_format(&text, weir_tensor_shape(tensors[i])));
  }
  if (count == 1) {
    *out = weir_tensor_retain((weir_tensor *)tensors[0]);
    return WEIR_OK;
  }
  c->st = weir_meshgrid(grid, tensors, count, false);
  int64_t rows = 1;
  for (int i = 0; i < count; i++)
    rows *= tensors[i]->numel;
  weir_tensor *stacked = c_call(c, weir_stack, (const weir_tensor *const *)grid, count, count);
  for (int i = 0; i < count; i++)
    weir_tensor_release(grid[i]);
  return c->st ? c->st : weir_reshape(out, stacked, weir_shape(rows, count));
}
