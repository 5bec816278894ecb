/* order.c: elements in order, and what lies at a place in that order: the largest, the k-th, the
 * middle one, quantiles.
 *
 * All are one request, which sorts lines and stores some of the places of each. */
#include <math.h>
#include "core/ops/ops.h"

/* What is asked for of each line. */
typedef struct ordering {
  const weir_tensor *a; /* borrowed; without holes, as values and indices lie */
  int dim;              /* from 0 */
  bool descending;
  int64_t from, keep;
  const char *name; /* torch's */
  enum record_kind kind;
} ordering;

/* values and indices have `keep` elements in the dimension, and a's order of dimensions. */
static weir_status order_enqueue(const ordering *o, weir_tensor *values, weir_tensor *indices)
{
  compute_target t;
  dim_lines l = lines_of(o->a, o->dim);
  weir_sort_rows s = {.dtype = o->a->dtype,
                      .descending = o->descending,
                      .in = o->a->data,
                      .values = values->data,
                      .index = (int64_t *)(void *)indices->data,
                      .outer = l.outer,
                      .length = l.length,
                      .inner = l.inner,
                      .from = o->from,
                      .keep = o->keep};
  if (!values->numel) return WEIR_OK;
  TRY(compute_target_of(&t, device_of_tensor(values)));
  if (!t.compute->sort_rows) return compute_target_lacks(&t, o->name);
  return compute_target_done(&t, t.compute->sort_rows(t.self, t.stream, &s), o->name);
}

static weir_status drop_both(weir_tensor **values, weir_tensor **indices, weir_status st)
{
  if (!st) return st;
  weir_tensor_drop(values);
  weir_tensor_drop(indices);
  return st;
}

/* ---- sort ------------------------------------------------------------------------------------ */

static weir_status no_complex(const char *name, const weir_tensor *a)
{
  if (a->dtype != WEIR_COMPLEX64) return WEIR_OK;
  return fail_unsupported(" %s does not support complex dtypes on CPU", name);
}

static bool same_strides(const weir_tensor *a, const weir_tensor *b)
{
  for (int d = 0; d < a->dims; d++)
    if (a->stride[d] != b->stride[d]) return false;
  return true;
}

weir_status weir_sort(weir_tensor **values, weir_tensor **indices, const weir_tensor *a, int dim,
                      bool descending)
{
  WEIR_OP_BOTH(values, indices, a);
  WEIR_TENSOR filled = NULL;
  ordering o = {.descending = descending, .name = "sort"};
  weir_status st = dim_resolve(&o.dim, dim, a->dims);
  if (!st) st = no_complex("Sort", a);
  if (!st) st = tensor_new_like(values, a, a->dtype, device_of_tensor(a), false);
  if (!st) st = tensor_new_like(indices, *values, WEIR_INT64, device_of_tensor(a), false);
  if (!st && same_strides(a, *values))
    filled = weir_tensor_retain((weir_tensor *)a);
  else if (!st)
    st = weir_clone(&filled, a);
  o.a = filled;
  o.keep = a->dims ? a->size[o.dim] : 1;
  if (!st) st = order_enqueue(&o, *values, *indices);
  if (!st) st = record_choice(values, st, RECORD_SORT, a, NULL, *indices, o.dim, false);
  return drop_both(values, indices, st);
}

weir_status weir_argsort(weir_tensor **out, const weir_tensor *a, int dim, bool descending)
{
  WEIR_OP(out, a);
  WEIR_TENSOR values = NULL;
  WEIR_UNRECORDED;
  return weir_sort(&values, out, a, dim, descending);
}

/* ---- some places of each line ---------------------------------------------------------------- */

/* Row-major results, with o->keep elements in the dimension or, `drops`, without it. */
static weir_status order_run(weir_tensor **values, weir_tensor **indices, ordering *o,
                             const weir_tensor *a, bool drops)
{
  CALC(c);
  weir_shape shape = {0, {0}};
  for (int d = 0; d < a->dims; d++)
    if (d != o->dim)
      shape.size[shape.count++] = a->size[d];
    else if (!drops)
      shape.size[shape.count++] = o->keep;
  weir_tensor *rows = c_contiguous(c, a);
  c_do(c, tensor_new_beside(values, a, shape));
  c_do(c, tensor_new(indices, WEIR_INT64, device_of_tensor(a), false, shape));
  o->a = rows;
  c_do(c, order_enqueue(o, *values, *indices));
  c_do(c, record_choice(values, c->st, o->kind, a, NULL, *indices, o->dim, drops));
  return drop_both(values, indices, c->st);
}

weir_status weir_topk(weir_tensor **values, weir_tensor **indices, const weir_tensor *a, int64_t k,
                      int dim, bool largest)
{
  WEIR_OP_BOTH(values, indices, a);
  ordering o = {.descending = largest, .keep = k, .name = "topk", .kind = RECORD_TOPK};
  TRY(dim_resolve(&o.dim, dim, a->dims));
  if (k < 0 || k > (a->dims ? a->size[o.dim] : 1))
    return fail_invalid("selected index k out of range");
  weir_status st = no_complex("topk", a);
  if (!st && a->dtype == WEIR_BOOL)
    st = fail_unsupported("topk does not support bool dtypes on CPU");
  if (!a->dims) o.keep = 1; /* as a scalar is: no dimension could have none */
  return st ? st : order_run(values, indices, &o, a, false);
}

/* Refuses a dimension without elements, where it is to become one. */
static weir_status check_reduced(const weir_tensor *a, int dim, const char *name)
{
  if (a->numel || !a->dims || a->size[dim]) return WEIR_OK;
  return fail_invalid("%s(): Expected reduction dim %d to have non-zero size.", name, dim);
}

static bool is_ordered_number(const weir_tensor *a)
{
  return a->dtype != WEIR_BOOL && a->dtype != WEIR_COMPLEX64;
}

weir_status weir_kthvalue(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                          int64_t k, int dim, bool keepdim)
{
  WEIR_OP_BOTH(values, indices, a);
  ordering o = {.from = k - 1, .keep = 1, .name = "kthvalue", .kind = RECORD_KTHVALUE};
  weir_status st = dim_resolve(&o.dim, dim, a->dims);
  if (!st) st = check_reduced(a, o.dim, "kthvalue");
  if (st) return st;
  if (k < 1 || k > (a->dims ? a->size[o.dim] : 1))
    return fail_invalid("kthvalue(): selected number k out of range for dimension %d", o.dim);
  if (!a->dims) { /* there torch asks for no kernel */
    st = weir_clone(values, a);
    if (!st)
      st = tensor_new(indices, WEIR_INT64, device_of_tensor(a), false, weir_shape_of(0, NULL));
    return drop_both(values, indices, st ? st : weir_zero_(*indices));
  }
  if (!is_ordered_number(a)) return not_implemented("kthvalue_%s", device_of_tensor(a), a->dtype);
  return order_run(values, indices, &o, a, !keepdim);
}

/* ---- the middle ------------------------------------------------------------------------------ */

/* Where a line has a NaN: it, and the place of its first. */
static weir_status take_nan(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                            int dim, bool keepdim)
{
  CALC(c);
  WEIR_TENSOR most = NULL, at = NULL, value = NULL, place = NULL;
  c->st = weir_max_dim(&most, &at, a, dim, keepdim);
  weir_tensor *nan = c_ne(c, most, most);
  c_do(c, weir_where(&value, nan, most, *values));
  c_do(c, weir_where(&place, nan, at, *indices));
  if (c->st) return c->st;
  weir_tensor *was[] = {*values, *indices};
  *values = value, *indices = place;
  value = was[0], place = was[1];
  return WEIR_OK;
}

/* Of each line the sum of those elements of x that stand at `places`: one each. */
static weir_status take_places(weir_tensor **out, const weir_tensor *x, const weir_tensor *places,
                               int dim)
{
  CALC(c);
  weir_shape shape = {x->dims, {0}};
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(x)};
  for (int d = 0; d < x->dims; d++)
    shape.size[d] = d == dim ? x->size[d] : 1;
  weir_tensor *count = c_call(c, weir_arange, weir_int(0), weir_int(x->size[dim]), weir_int(1), &o);
  weir_tensor *here = c_eq(c, c_reshape(c, count, shape), places);
  return calc_give(c, out, c_sum_dim(c, c_where(c, here, x, c_zeros_like(c, x, NULL)), dim, true));
}

/* Of a with dimensions: kept in both results. */
static weir_status nan_middle(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                              int dim)
{
  CALC(c);
  WEIR_TENSOR sorted = NULL, places = NULL;
  weir_scalar zero = weir_int(0);
  c->st = weir_sort(&sorted, &places, a, dim, false);
  weir_tensor *count = c_sum_dim(c, c_eq(c, a, a), dim, true);
  c_do(c, weir_sub_scalar_(count, weir_int(1)));
  weir_tensor *middle = c_call(c, weir_floor_divide_scalar, count, weir_int(2));
  weir_tensor *bounded = c_call(c, weir_clamp, middle, &zero, NULL);
  c_do(c, take_places(values, sorted, bounded, dim));
  c_do(c, take_places(indices, places, bounded, dim));
  return drop_both(values, indices, c->st);
}

static weir_status without_dim(weir_tensor **t, int dim)
{
  WEIR_TENSOR was = *t;
  *t = NULL;
  return weir_squeeze(t, was, dim);
}

static weir_status middle_of(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                             int dim, bool keepdim, bool no_nan)
{
  ordering o = {.keep = 1, .name = "median", .kind = RECORD_MEDIAN};
  weir_status st = dim_resolve(&o.dim, dim, a->dims);
  if (!st) st = check_reduced(a, o.dim, "median");
  if (st) return st;
  if (!is_ordered_number(a)) return not_implemented("median_out", device_of_tensor(a), a->dtype);
  bool nan = dtype_is_floating(a->dtype) && a->numel;
  if (no_nan && nan && a->dims) {
    st = nan_middle(values, indices, a, o.dim);
    if (!st && !keepdim) st = without_dim(values, o.dim);
    if (!st && !keepdim) st = without_dim(indices, o.dim);
    return drop_both(values, indices, st);
  }
  o.from = ((a->dims ? a->size[o.dim] : 1) - 1) / 2;
  st = order_run(values, indices, &o, a, !keepdim);
  if (!st && nan && !no_nan) st = take_nan(values, indices, a, o.dim, keepdim);
  return drop_both(values, indices, st);
}

/* Of nothing: NaN, as C's casts have it. */
static weir_status middle_of_nothing(weir_tensor **out, const weir_tensor *a)
{
  weir_dtype d = a->dtype;
  int64_t least = d == WEIR_INT64 ? INT64_MIN : d == WEIR_INT32 ? INT32_MIN : d == WEIR_BOOL;
  weir_scalar v = dtype_is_integral_or_bool(d) ? weir_int(least) : weir_float(NAN);
  return weir_full(out, weir_shape_of(0, NULL), v, OPTIONS_ON(a, d));
}

static weir_status middle_of_all(weir_tensor **out, const weir_tensor *a, bool no_nan)
{
  CALC(c);
  WEIR_TENSOR place = NULL;
  if (!a->numel) return middle_of_nothing(out, a);
  if (!is_ordered_number(a)) return not_implemented("median_%s", device_of_tensor(a), a->dtype);
  weir_tensor *flat = c_reshape(c, a, weir_shape(-1));
  return c->st ? c->st : middle_of(out, &place, flat, 0, false, no_nan);
}

#define MEDIAN(name, no_nan)                                                                       \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a)                                 \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    return middle_of_all(out, a, no_nan);                                                          \
  }                                                                                                \
  weir_status weir_##name##_dim(weir_tensor **values, weir_tensor **indices, const weir_tensor *a, \
                                int dim, bool keepdim)                                             \
  {                                                                                                \
    WEIR_OP_BOTH(values, indices, a);                                                              \
    return middle_of(values, indices, a, dim, keepdim, no_nan);                                    \
  }
MEDIAN(median, false)
MEDIAN(nanmedian, true)

/* ---- quantiles ------------------------------------------------------------------------------- */

static weir_status check_quantile(const weir_tensor *a, double q)
{
  if (!(q >= 0 && q <= 1))
    return fail_invalid("quantile() q must be in the range [0, 1] but got %g", q);
  if (!a->numel) return fail_invalid("quantile() input tensor must be non-empty");
  if (a->dtype != WEIR_FLOAT32 && a->dtype != WEIR_FLOAT64)
    return fail_unsupported("quantile() input tensor must be either float or double dtype");
  return WEIR_OK;
}

/* Between two, as torch.lerp() does it: from the nearer one. */
static weir_status between(weir_tensor **out, const weir_tensor *below, const weir_tensor *above,
                           double weight)
{
  CALC(c);
  weir_tensor *step = c_sub(c, above, below);
  c_do(c, weir_mul_scalar_(step, weir_float(weight < 0.5 ? weight : weight - 1)));
  return c->st ? c->st : weir_add(out, weight < 0.5 ? below : above, step);
}

/* Of `sorted`, its dimension kept. */
static weir_status quantile_of(weir_tensor **out, const weir_tensor *sorted, int dim, double q)
{
  CALC(c);
  int64_t n = sorted->size[dim];
  bool narrow = sorted->dtype == WEIR_FLOAT32; /* ranks are of the dtype, too */
  double rank = narrow ? (double)((float)q * (float)(n - 1)) : q * (double)(n - 1);
  weir_tensor *below = c_narrow(c, sorted, dim, (int64_t)rank, 1);
  weir_tensor *above = c_call(c, weir_narrow, sorted, dim, (int64_t)ceil(rank), 1);
  weir_tensor *last = c_narrow(c, sorted, dim, n - 1, 1);
  weir_tensor *value = c_call(c, between, below, above, rank - floor(rank));
  return calc_give(c, out, c_where(c, c_ne(c, last, last), last, value));
}

/* The same of those that are not NaN, which are first; of none NaN. */
static weir_status nanquantile_of(weir_tensor **out, const weir_tensor *sorted, int dim, double q)
{
  CALC(c);
  weir_tensor *count = c_sum_dim(c, c_eq(c, sorted, sorted), dim, true);
  weir_tensor *wide = c_to_dtype(c, count, sorted->dtype);
  c_do(c, weir_sub_scalar_(wide, weir_int(1)));
  c_do(c, weir_mul_scalar_(wide, weir_float(q)));
  weir_tensor *rank = c_call(c, weir_clamp_min, wide, weir_int(0));
  weir_tensor *low = c_floor(c, rank);
  weir_tensor *high = c_call(c, weir_ceil, rank);
  weir_tensor *weight = c_sub(c, rank, low);
  if (c->st) return c->st;
  weir_tensor *first = c_to_dtype(c, low, WEIR_INT64);
  weir_tensor *second = c_to_dtype(c, high, WEIR_INT64);
  weir_tensor *below = c_gather(c, sorted, dim, first);
  weir_tensor *above = c_gather(c, sorted, dim, second);
  return c->st ? c->st : weir_lerp(out, below, above, weight);
}

static weir_status run_quantile(weir_tensor **out, const weir_tensor *a, double q, int dim,
                                bool keepdim, bool no_nan)
{
  WEIR_TENSOR some = NULL, sorted = NULL, places = NULL;
  int at;
  weir_status st = dim_resolve(&at, dim, a->dims);
  if (!st && !a->dims)
    st = weir_unsqueeze(&some, a, 0);
  else if (!st)
    some = weir_tensor_retain((weir_tensor *)a);
  if (!st) st = weir_sort(&sorted, &places, some, at, false);
  if (!st) st = no_nan ? nanquantile_of(out, sorted, at, q) : quantile_of(out, sorted, at, q);
  if (!st && (!keepdim || !a->dims)) st = without_dim(out, at);
  if (st) weir_tensor_drop(out);
  return st;
}

#define QUANTILE(name, no_nan)                                                                     \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, double q)                       \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    WEIR_CASTS(QUANTILE, a);                                                                       \
    WEIR_TENSOR flat = NULL;                                                                       \
    weir_status st = check_quantile(a, q);                                                         \
    if (!st) st = weir_reshape(&flat, a, weir_shape(-1));                                          \
    return st ? st : run_quantile(out, flat, q, 0, false, no_nan);                                 \
  }                                                                                                \
  weir_status weir_##name##_dim(weir_tensor **out, const weir_tensor *a, double q, int dim,        \
                                bool keepdim)                                                      \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    WEIR_CASTS(QUANTILE, a);                                                                       \
    weir_status st = check_quantile(a, q);                                                         \
    return st ? st : run_quantile(out, a, q, dim, keepdim, no_nan);                                \
  }
QUANTILE(quantile, false)
QUANTILE(nanquantile, true)
