/* search.c: places in what is in order: searchsorted and its kin; and who is among others. */
#include "core/ops/ops.h"

/* ---- the request ----------------------------------------------------------------------------- */

/* Both row-major and of one dtype; out has values' shape. */
static weir_status search_enqueue(weir_tensor *out, const weir_tensor *sorted,
                                  const weir_tensor *values, bool right, bool nan_last)
{
  compute_target t;
  int64_t length = sorted->size[sorted->dims - 1];
  bool shared = sorted->dims == 1;
  int64_t rows = shared || !length ? 1 : sorted->numel / length;
  weir_search s = {.dtype = sorted->dtype,
                   .sequence = sorted->data,
                   .values = values->data,
                   .out = out->data,
                   .rows = rows,
                   .length = length,
                   .each = values->numel / (rows ? rows : 1),
                   .shared = shared,
                   .right = right,
                   .nan_last = nan_last,
                   .out_int32 = out->dtype == WEIR_INT32};
  if (!out->numel) return WEIR_OK;
  if (!length) return weir_zero_(out);
  TRY(compute_target_of(&t, device_of_tensor(out)));
  if (!t.compute->search) return compute_target_lacks(&t, "searchsorted");
  return compute_target_done(&t, t.compute->search(t.self, t.stream, &s), "searchsorted");
}

/* Both in the dtype they have in common. */
static weir_status search_run(weir_tensor **out, const weir_tensor *sorted,
                              const weir_tensor *values, bool right, bool nan_last, bool out_int32)
{
  CALC(c);
  weir_dtype d = sorted->dtype;
  c->st = check_same_device(sorted, values);
  if (!c->st && d != values->dtype) c->st = weir_result_type(&d, sorted, values, weir_int(0));
  if (!c->st && values->numel && (d == WEIR_BOOL || d == WEIR_COMPLEX64))
    c->st = not_implemented("searchsorted_out_%s", device_of_tensor(sorted), d);
  weir_tensor *cast_sorted = c_call(c, weir_to_dtype, sorted, d);
  weir_tensor *cast_values = c_call(c, weir_to_dtype, values, d);
  weir_tensor *sorted_rows = c_contiguous(c, cast_sorted);
  weir_tensor *value_rows = c_contiguous(c, cast_values);
  c_do(c, tensor_new(out, out_int32 ? WEIR_INT32 : WEIR_INT64, device_of_tensor(values), false,
                     weir_tensor_shape(values)));
  c_do(c, search_enqueue(*out, sorted_rows, value_rows, right, nan_last));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* ---- searchsorted ---------------------------------------------------------------------------- */

static bool rows_match(const weir_tensor *sorted, const weir_tensor *values)
{
  if (sorted->dims != values->dims) return false;
  for (int d = 0; d < sorted->dims - 1; d++)
    if (sorted->size[d] != values->size[d]) return false;
  return true;
}

static weir_status check_search(const weir_tensor *sorted, const weir_tensor *values)
{
  static const char name[] = "weir.searchsorted():";
  text_buffer of_sorted, of_values;
  if (!values->dims && sorted->dims != 1)
    return fail_invalid("%s input value can be a scalar only when boundaries tensor dimension is "
                        "1, but we got boundaries tensor dim(%d) and input value's dim(0) numel(1)",
                        name, sorted->dims);
  if (!sorted->dims)
    return fail_invalid("%s boundaries tensor should have positive dimension, but got 0 dimension",
                        name);
  if (sorted->dims == 1 || rows_match(sorted, values)) return WEIR_OK;
  return fail_invalid("%s boundaries tensor should be 1 dimension or the first N-1 dimensions of "
                      "boundaries tensor and input value tensor must match, but we got boundaries "
                      "tensor %s and input value tensor %s",
                      name, shape_format(&of_sorted, weir_tensor_shape(sorted)),
                      shape_format(&of_values, weir_tensor_shape(values)));
}

weir_status weir_searchsorted(weir_tensor **out, const weir_tensor *sorted,
                              const weir_tensor *values, bool right, bool out_int32)
{
  WEIR_OP(out, sorted, values);
  weir_status st = check_search(sorted, values);
  return st ? st : search_run(out, sorted, values, right, false, out_int32);
}

weir_status weir_bucketize(weir_tensor **out, const weir_tensor *a, const weir_tensor *boundaries,
                           bool right, bool out_int32)
{
  WEIR_OP(out, a, boundaries);
  if (boundaries->dims != 1)
    return fail_invalid("boundaries tensor must be 1 dimension, but got dim(%d)", boundaries->dims);
  return search_run(out, boundaries, a, right, false, out_int32);
}

/* ---- isin ------------------------------------------------------------------------------------ */

static weir_status check_isin(const weir_tensor *a)
{
  if (a->dtype != WEIR_BOOL && a->dtype != WEIR_COMPLEX64) return WEIR_OK;
  return fail_unsupported("Unsupported input type encountered for isin(): %s",
                          dtype_title(a->dtype));
}

weir_status weir_isin(weir_tensor **out, const weir_tensor *elements, const weir_tensor *test,
                      bool invert)
{
  WEIR_OP(out, elements, test);
  CALC(c);
  WEIR_TENSOR sorted = NULL, places = NULL;
  c->st = check_isin(elements);
  c_do(c, check_isin(test));
  c_do(c, check_same_device(elements, test));
  weir_tensor *flat = c_reshape(c, test, weir_shape(-1));
  c_do(c, weir_sort(&sorted, &places, flat, 0, false));
  weir_tensor *left = c_call(c, search_run, sorted, elements, false, true, false);
  weir_tensor *right = c_call(c, search_run, sorted, elements, true, true, false);
  if (c->st) return c->st;
  return invert ? weir_eq(out, left, right) : weir_ne(out, left, right);
}
