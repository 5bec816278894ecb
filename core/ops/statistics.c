/* statistics.c: reductions that have an argument, or are made of others: variances, norms, counts,
 * extremes of both kinds, log-sum-exp.
 *
 * A variance and a norm of floating point is one request. Of complex64 both are those of absolute
 * values: of elements, and of what they are off their mean. */
#include <math.h>
#include "core/ops/ops.h"

/* ---- variance -------------------------------------------------------------------------------- */

/* An asked-for variance. */
typedef struct variance {
  const weir_tensor *a; /* borrowed */
  const int *dims;      /* borrowed */
  int count;
  double correction;
  bool keepdim, root;
} variance;

static weir_status check_variance(const variance *v, uint32_t *mask, bool mean)
{
  weir_dtype d = v->a->dtype;
  if (v->count < 0)
    return fail_invalid("%s: %d dimensions are asked for", v->root ? "std" : "var", v->count);
  if (!dtype_is_floating(d) && d != WEIR_COMPLEX64)
    return fail_unsupported("%s only support floating point and complex dtypes",
                            !mean     ? "std and var"
                            : v->root ? "std_mean"
                                      : "var_mean");
  return reduction_mask(mask, v->a, v->dims, v->count);
}

/* How many elements become one. */
static double reduced_count(const weir_tensor *a, uint32_t mask)
{
  double n = 1;
  for (int d = 0; d < a->dims; d++)
    if (mask >> d & 1) n *= (double)a->size[d];
  return n;
}

/* Of complex64: the sum of |x - mean|^2 through what is left of the count. */
static weir_status complex_variance(weir_tensor **out, weir_tensor **mean, const variance *v,
                                    uint32_t mask)
{
  CALC(c);
  double n = reduced_count(v->a, mask), left = n - v->correction;
  weir_tensor *off = c_sub(c, v->a, c_call(c, weir_mean_dims, v->a, v->dims, v->count, true));
  weir_tensor *size = c_abs(c, off);
  c_do(c, weir_mul_(size, size));
  c_do(c, weir_sum_dims(out, size, v->dims, v->count, v->keepdim));
  c_do(c, weir_div_scalar_(*out, weir_float(n == 0 ? NAN : left > 0 ? left : 0)));
  if (v->root) c_do(c, weir_sqrt_(*out));
  if (mean) c_do(c, weir_mean_dims(mean, v->a, v->dims, v->count, v->keepdim));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

static weir_status run_variance(weir_tensor **out, weir_tensor **mean, const variance *v)
{
  uint32_t mask;
  TRY(check_variance(v, &mask, mean != NULL));
  if (v->a->dtype == WEIR_COMPLEX64) return complex_variance(out, mean, v, mask);
  reduction r = {.op = v->root ? WEIR_REDUCE_STD : WEIR_REDUCE_VAR,
                 .name = v->root ? "std" : "var",
                 .a = v->a,
                 .mask = mask,
                 .keepdim = v->keepdim,
                 .p = v->correction};
  return reduction_run(out, mean, &r);
}

#define VARIANCE(name, op)                                                                         \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, double correction)              \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    variance v = {a, NULL, 0, correction, false, WEIR_REDUCE_##op == WEIR_REDUCE_STD};             \
    return run_variance(out, NULL, &v);                                                            \
  }                                                                                                \
  weir_status weir_##name##_dim(weir_tensor **out, const weir_tensor *a, int dim,                  \
                                double correction, bool keepdim)                                   \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    variance v = {a, &dim, 1, correction, keepdim, WEIR_REDUCE_##op == WEIR_REDUCE_STD};           \
    return run_variance(out, NULL, &v);                                                            \
  }                                                                                                \
  weir_status weir_##name##_dims(weir_tensor **out, const weir_tensor *a, const int *dims,         \
                                 int count, double correction, bool keepdim)                       \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    if (count > 0) WEIR_REQUIRE(dims);                                                             \
    variance v = {a, dims, count, correction, keepdim, WEIR_REDUCE_##op == WEIR_REDUCE_STD};       \
    return run_variance(out, NULL, &v);                                                            \
  }                                                                                                \
  weir_status weir_##name##_mean(weir_tensor **out, weir_tensor **mean, const weir_tensor *a,      \
                                 double correction)                                                \
  {                                                                                                \
    WEIR_OP_BOTH(out, mean, a);                                                                    \
    variance v = {a, NULL, 0, correction, false, WEIR_REDUCE_##op == WEIR_REDUCE_STD};             \
    return run_variance(out, mean, &v);                                                            \
  }                                                                                                \
  weir_status weir_##name##_mean_dim(weir_tensor **out, weir_tensor **mean, const weir_tensor *a,  \
                                     int dim, double correction, bool keepdim)                     \
  {                                                                                                \
    WEIR_OP_BOTH(out, mean, a);                                                                    \
    variance v = {a, &dim, 1, correction, keepdim, WEIR_REDUCE_##op == WEIR_REDUCE_STD};           \
    return run_variance(out, mean, &v);                                                            \
  }                                                                                                \
  weir_status weir_##name##_mean_dims(weir_tensor **out, weir_tensor **mean, const weir_tensor *a, \
                                      const int *dims, int count, double correction, bool keepdim) \
  {                                                                                                \
    WEIR_OP_BOTH(out, mean, a);                                                                    \
    if (count > 0) WEIR_REQUIRE(dims);                                                             \
    variance v = {a, dims, count, correction, keepdim, WEIR_REDUCE_##op == WEIR_REDUCE_STD};       \
    return run_variance(out, mean, &v);                                                            \
  }
WEIR_VARIANCE_MAP(VARIANCE)

/* ---- norms ----------------------------------------------------------------------------------- */

/* p below 0, and infinite ones, have no value for nothing. */
static weir_status check_identity(const weir_tensor *a, double p, const int *dims, int count)
{
  static const char vector[] = "linalg.vector_norm cannot compute the";
  static const char none[] = "empty and the operation does not have an identity";
  if (a->numel || (p >= 0 && !isinf(p))) return WEIR_OK;
  if (!count)
    return fail_invalid(
        "%s %g norm on an empty tensor because the operation does not have an identity", vector, p);
  for (int i = 0; i < count; i++) {
    int d;
    TRY(dim_resolve(&d, dims[i], a->dims));
    if (!a->size[d])
      return fail_invalid("%s %g norm on the dimension %dbecause this dimension is %s", vector, p,
                          dims[i], none);
  }
  return WEIR_OK;
}

static weir_status run_norm(weir_tensor **out, const weir_tensor *a, double p, const int *dims,
                            int count, bool keepdim)
{
  CALC(c);
  weir_dtype d = a->dtype;
  bool complex = d == WEIR_COMPLEX64;
  reduction r = {.op = WEIR_REDUCE_NORM, .name = "norm", .a = a, .keepdim = keepdim, .p = p};
  if (count < 0) return fail_invalid("norm: %d dimensions are asked for", count);
  if (!dtype_is_floating(d) && !complex)
    return fail_unsupported(
        "linalg.vector_norm: Expected a floating point or complex tensor as input. Got %s",
        dtype_title(d));
  c->st = check_identity(a, p, dims, count);
  c_do(c, reduction_mask(&r.mask, a, dims, count));
  if (c->st || !(complex || isinf(p))) return c->st ? c->st : reduction_run(out, NULL, &r);
  weir_tensor *size = c_abs(c, a);
  if (c->st) return c->st;
  r.a = size;
  if (isinf(p)) r.op = p > 0 ? WEIR_REDUCE_MAX : WEIR_REDUCE_MIN;
  return reduction_run(out, NULL, &r);
}

weir_status weir_norm(weir_tensor **out, const weir_tensor *a, double p)
{
  WEIR_OP(out, a);
  WEIR_CASTS(NORM, a);
  return run_norm(out, a, p, NULL, 0, false);
}

weir_status weir_norm_dim(weir_tensor **out, const weir_tensor *a, double p, int dim, bool keepdim)
{
  WEIR_OP(out, a);
  WEIR_CASTS(NORM, a);
  return run_norm(out, a, p, &dim, 1, keepdim);
}

weir_status weir_norm_dims(weir_tensor **out, const weir_tensor *a, double p, const int *dims,
                           int count, bool keepdim)
{
  WEIR_OP(out, a);
  if (count > 0) WEIR_REQUIRE(dims);
  WEIR_CASTS(NORM, a);
  return run_norm(out, a, p, dims, count, keepdim);
}

/* ---- counts and extremes --------------------------------------------------------------------- */

static weir_status count_over(weir_tensor **out, const weir_tensor *a, const int *dims, int count)
{
  reduction r = {.op = WEIR_REDUCE_NONZERO, .name = "count_nonzero", .a = a};
  if (count < 0) return fail_invalid("count_nonzero: %d dimensions are asked for", count);
  weir_status st = reduction_mask(&r.mask, a, dims, count);
  return st ? st : reduction_run(out, NULL, &r);
}

weir_status weir_count_nonzero(weir_tensor **out, const weir_tensor *a)
{
  WEIR_REQUIRE_OUT(out, a);
  return count_over(out, a, NULL, 0);
}

weir_status weir_count_nonzero_dim(weir_tensor **out, const weir_tensor *a, int dim)
{
  WEIR_REQUIRE_OUT(out, a);
  return count_over(out, a, &dim, 1);
}

weir_status weir_count_nonzero_dims(weir_tensor **out, const weir_tensor *a, const int *dims,
                                    int count)
{
  WEIR_REQUIRE_OUT(out, a);
  if (count > 0) WEIR_REQUIRE(dims);
  return count_over(out, a, dims, count);
}

static weir_status both_extremes(weir_tensor **least, weir_tensor **most, const weir_tensor *a,
                                 const int *dims, int count, bool keepdim)
{
  reduction r = {.op = WEIR_REDUCE_MIN, .name = "aminmax", .a = a, .keepdim = keepdim};
  if (a->dtype == WEIR_COMPLEX64)
    return fail_unsupported("aminmax not implemented for %s", dtype_title(WEIR_COMPLEX64));
  TRY(reduction_mask(&r.mask, a, dims, count));
  if (!count && !a->numel)
    return fail_invalid("aminmax(): cannot compute aminmax over an empty dimension as the "
                        "operation has no identity.");
  if (count && reduced_count(a, r.mask) == 0)
    return fail_invalid("aminmax: Expected reduction dim %d to have non-zero size.",
                        dims[0] < 0 ? dims[0] + a->dims : dims[0]);
  weir_status st = reduction_run(least, NULL, &r);
  r.op = WEIR_REDUCE_MAX;
  if (!st && (st = reduction_run(most, NULL, &r))) weir_tensor_drop(least);
  return st;
}

weir_status weir_aminmax(weir_tensor **least, weir_tensor **most, const weir_tensor *a)
{
  WEIR_OP_BOTH(least, most, a);
  return both_extremes(least, most, a, NULL, 0, false);
}

weir_status weir_aminmax_dim(weir_tensor **least, weir_tensor **most, const weir_tensor *a, int dim,
                             bool keepdim)
{
  WEIR_OP_BOTH(least, most, a);
  return both_extremes(least, most, a, &dim, 1, keepdim);
}

/* ---- log-sum-exp ----------------------------------------------------------------------------- */

/* What is taken from each element first, dimensions kept: the largest, or 0 where that is not
 * finite. */
static weir_status finite_largest(weir_tensor **out, const weir_tensor *a, const int *dims,
                                  int count)
{
  CALC(c);
  WEIR_TENSOR real = NULL;
  c->st = weir_to_dtype(&real, a, a->dtype == WEIR_COMPLEX64 ? WEIR_FLOAT32 : a->dtype);
  weir_tensor *most = c_call(c, weir_amax_dims, real, dims, count, true);
  weir_tensor *finite = c_isfinite(c, most);
  return calc_give(c, out, c_where(c, finite, most, c_zeros_like(c, most, NULL)));
}

/* Of what is calculated with: dimensions kept, new. */
static weir_status log_of_sums(weir_tensor **out, const weir_tensor *a, const int *dims, int count)
{
  CALC(c);
  WEIR_TENSOR most = NULL, x = NULL;
  c->st = a->numel ? finite_largest(&most, a, dims, count) : WEIR_OK;
  c_do(c, most ? weir_sub(&x, a, most) : weir_clone(&x, a));
  c_do(c, weir_exp_(x));
  weir_tensor *sums = c_call(c, weir_sum_dims, x, dims, count, true);
  c_do(c, weir_log_(sums));
  if (!c->st && most) c->st = weir_add_(sums, most);
  return calc_give(c, out, sums);
}

static weir_status run_logsumexp(weir_tensor **out, const weir_tensor *a, const int *dims,
                                 int count, bool keepdim)
{
  CALC(c);
  weir_shape shape = {0, {0}};
  uint32_t mask;
  weir_dtype d = a->dtype, gives = dtype_is_integral_or_bool(d) ? weir_get_default_dtype() : d;
  bool narrow = gives == WEIR_FLOAT16 || gives == WEIR_BFLOAT16;
  bool records = recorded(a) && dtype_is_floating(d);
  if (count < 0) return fail_invalid("logsumexp: %d dimensions are asked for", count);
  WEIR_UNRECORDED;
  c->st = reduction_mask(&mask, a, dims, count);
  weir_tensor *wide = c_to_dtype(c, a, narrow ? WEIR_FLOAT32 : gives);
  weir_tensor *result = c_call(c, log_of_sums, wide, dims, count);
  if (c->st) return c->st;
  for (int i = 0; i < a->dims; i++)
    if (keepdim || !(mask >> i & 1)) shape.size[shape.count++] = result->size[i];
  weir_tensor *shaped = c_call(c, weir_view, result, shape);
  c_do(c, weir_to_dtype(out, shaped, gives));
  if (!c->st) (*out)->created = VIEW_PLAIN; /* its memory is its own */
  return c->st || !records ? c->st : record_of(out, a, RECORD_LOGSUMEXP, mask, keepdim, 0, 0);
}

weir_status weir_logsumexp(weir_tensor **out, const weir_tensor *a, int dim, bool keepdim)
{
  WEIR_OP(out, a);
  WEIR_CASTS(SOFTMAX, a);
  return run_logsumexp(out, a, &dim, 1, keepdim);
}

weir_status weir_logsumexp_dims(weir_tensor **out, const weir_tensor *a, const int *dims, int count,
                                bool keepdim)
{
  WEIR_OP(out, a);
  if (count > 0) WEIR_REQUIRE(dims);
  WEIR_CASTS(SOFTMAX, a);
  return run_logsumexp(out, a, dims, count, keepdim);
}
