/* histogram.c: how many elements have each value, or lie in each part of a range. */
#include <math.h>
#include "core/ops/ops.h"

/* The least and the largest element of a tensor that has some; waits for the device. */
static weir_status extremes_of(weir_scalar *least, weir_scalar *most, const weir_tensor *a)
{
  WEIR_TENSOR low = NULL, high = NULL;
  weir_status st = weir_aminmax(&low, &high, a);
  if (!st) st = scalar_of(least, low);
  return st ? st : scalar_of(most, high);
}

/* For each place below `count` the sum of the weights (borrowed; of one dimension, `out`'s dtype)
 * whose place it is. */
static weir_status sums_by_place(weir_tensor **out, const weir_tensor *places, int64_t count,
                                 const weir_tensor *weights)
{
  WEIR_TENSOR ones = NULL;
  weir_dtype d = weights ? weights->dtype : WEIR_INT64;
  weir_options o = {.dtype = d, .device = device_of_tensor(places)};
  weir_status st = weights ? WEIR_OK : weir_ones(&ones, weir_tensor_shape(places), &o);
  if (!st) st = weir_zeros(out, weir_shape(count), &o);
  if (!st) st = weir_scatter_add_(*out, 0, places, weights ? weights : ones);
  if (st) weir_tensor_drop(out);
  return st;
}

/* ---- bincount -------------------------------------------------------------------------------- */

static weir_status check_bincount(const weir_tensor *a, const weir_tensor *weights,
                                  int64_t minlength)
{
  if (!dtype_is_integral(a->dtype))
    return not_implemented("bincount_%s", device_of_tensor(a), a->dtype);
  if (minlength < 0) return fail_invalid("minlength should be >= 0");
  if (a->dims != 1) return fail_invalid("bincount only supports 1-d non-negative integral inputs.");
  if (!a->numel || !weights) return WEIR_OK;
  if (weights->dims != 1 || weights->numel != a->numel)
    return fail_invalid("weights should be 1-d and have the same length as input");
  return check_same_device(a, weights);
}

weir_status weir_bincount(weir_tensor **out, const weir_tensor *a, const weir_tensor *weights,
                          int64_t minlength)
{
  WEIR_OP(out, a);
  CALC(c);
  weir_scalar least, most;
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(a)};
  c->st = check_bincount(a, weights, minlength);
  if (!c->st && !a->numel) return weir_zeros(out, weir_shape(minlength), &o);
  c_do(c, extremes_of(&least, &most, a));
  if (c->st) return c->st;
  if (least.i < 0) return fail_invalid("bincount only supports 1-d non-negative integral inputs.");
  weir_tensor *places = c_to_dtype(c, a, WEIR_INT64);
  weir_tensor *cast =
      weights ? c_to_dtype(c, weights, weights->dtype == WEIR_FLOAT32 ? WEIR_FLOAT32 : WEIR_FLOAT64)
              : NULL;
  int64_t count = most.i + 1 > minlength ? most.i + 1 : minlength;
  return c->st ? c->st : sums_by_place(out, places, count, cast);
}

/* ---- histc ----------------------------------------------------------------------------------- */

/* The range that is meant by both ends being alike: that of the elements; of one value, 1 to each
 * side. */
static weir_status range_of_elements(double *least, double *most, const weir_tensor *a)
{
  weir_scalar low, high;
  if (*least == *most && a->numel) {
    TRY(extremes_of(&low, &high, a));
    *least = low.dtype == WEIR_FLOAT64 ? low.f : (double)low.i;
    *most = high.dtype == WEIR_FLOAT64 ? high.f : (double)high.i;
  }
  if (*least == *most) *least -= 1, *most += 1;
  if (!isfinite(*least) || !isfinite(*most))
    return fail_invalid("weir.histc: range of [%g, %g] is not finite", *least, *most);
  if (*least > *most) return fail_invalid("weir.histc: max must be larger than min");
  return WEIR_OK;
}

/* Which part each element lies in; `bins`: none. */
static weir_status parts_of_range(weir_tensor **out, const weir_tensor *flat, int64_t bins,
                                  double least, double most)
{
  CALC(c);
  weir_scalar last = weir_int(bins - 1);
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(flat)};
  weir_tensor *low = c_ge_s(c, flat, least);
  weir_tensor *inside = c_logical_and(c, low, c_le_s(c, flat, most));
  weir_tensor *x = c_sub_s(c, flat, least);
  c_do(c, weir_mul_scalar_(x, weir_float((double)bins)));
  c_do(c, weir_div_scalar_(x, weir_float(most - least)));
  weir_tensor *part = c_to_dtype(c, x, WEIR_INT64);
  weir_tensor *bounded = c_call(c, weir_clamp, part, NULL, &last);
  weir_tensor *none = c_call(c, weir_full, weir_shape_of(0, NULL), weir_int(bins), &o);
  return c->st ? c->st : weir_where(out, inside, bounded, none);
}

static weir_status check_histc(const weir_tensor *a, int64_t bins, double *min, double *max)
{
  weir_dtype d = a->dtype;
  if (bins < 1)
    return fail_invalid("weir.histogram(): bins must be > 0, but got %lld for dimension 0",
                        (long long)bins);
  weir_status st = range_of_elements(min, max, a);
  if (!st && !dtype_is_floating(d)) st = not_implemented("histogram_%s", device_of_tensor(a), d);
  return st;
}

weir_status weir_histc(weir_tensor **out, const weir_tensor *a, int64_t bins, double min,
                       double max)
{
  WEIR_OP(out, a);
  WEIR_UNRECORDED; /* counts have no derivative */
  CALC(c);
  weir_tensor *counts = NULL;
  c->st = check_histc(a, bins, &min, &max);
  if (!c->st && !a->numel) return weir_zeros(out, weir_shape(bins), OPTIONS_ON(a, a->dtype));
  weir_tensor *flat = c_reshape(c, a, weir_shape(-1));
  weir_tensor *places = c_call(c, parts_of_range, flat, bins, min, max);
  counts = c_call(c, sums_by_place, places, bins + 1, NULL);
  return calc_give(c, out, c_to_dtype(c, c_narrow(c, counts, 0, 0, bins), a->dtype));
}
