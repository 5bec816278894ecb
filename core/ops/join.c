/* join.c: tensors one after the other: cat and stack. */
#include "core/ops/ops.h"

/* torch skips these: a tensor of shape [0] goes with any other. */
static bool skipped(const weir_tensor *t)
{
  return t->dims == 1 && !t->size[0];
}

static weir_status check_list(const weir_tensor *const *tensors, int count, const char *none)
{
  if (count < 1) return fail_invalid("%s", none);
  for (int i = 0; i < count; i++)
    if (!tensors[i]) return fail_invalid("tensor %d of the list is NULL", i);
  for (int i = 1; i < count; i++) {
    TRY(check_same_device(tensors[0], tensors[i]));
  }
  return WEIR_OK;
}

static weir_status check_joined_sizes(const weir_tensor *first, const weir_tensor *t, int at,
                                      int dim)
{
  if (t->dims != first->dims)
    return fail_invalid("Tensors must have same number of dimensions: got %d and %d", first->dims,
                        t->dims);
  for (int d = 0; d < t->dims; d++)
    if (d != dim && t->size[d] != first->size[d])
      return fail_invalid("Sizes of tensors must match except in dimension %d. Expected size %lld "
                          "but got size %lld for tensor number %d in the list.",
                          dim, (long long)first->size[d], (long long)t->size[d], at);
  return WEIR_OK;
}

/* The result's shape and dtype; *dim counted from the front. */
static weir_status cat_shape(weir_shape *shape, weir_dtype *dtype, int *dim,
                             const weir_tensor *const *tensors, int count)
{
  categories c = {0};
  const weir_tensor *first = tensors[0];
  weir_status st = WEIR_OK;
  for (int i = 0; i < count && !st; i++) {
    if (!tensors[i]->dims)
      return fail_invalid("zero-dimensional tensor (at position %d) cannot be concatenated", i);
    if (skipped(first)) first = tensors[i];
    st = categories_tensor(&c, tensors[i]);
  }
  if (!st) st = categories_result(dtype, &c);
  if (skipped(first)) *dim = 0; /* nothing to join: torch does not look */
  if (!st) st = dim_resolve(dim, *dim, first->dims);
  if (st) return st;
  *shape = shape_of_tensor(first);
  shape->size[*dim] = 0;
  for (int i = 0; i < count && !st; i++) {
    if (skipped(tensors[i])) continue;
    st = check_joined_sizes(first, tensors[i], i, *dim);
    if (!st) shape->size[*dim] += tensors[i]->size[*dim];
  }
  return st;
}

/* Copies t to the part of `out` that starts at `from` along `dim`. */
static weir_status copy_to_part(const weir_tensor *out, const weir_tensor *t, int dim, int64_t from)
{
  CALC(c);
  weir_tensor *part =
      c_call(c, tensor_view, out, shape_of_tensor(t), out->stride, from * out->stride[dim]);
  return c->st ? c->st : loop_copy(part, t);
}

static __attribute__((cold)) weir_status record_join(weir_tensor **out,
                                                     const weir_tensor *const *tensors, int count,
                                                     enum record_kind kind, int dim)
{
  record r = {.kind = kind, .inputs = count, .in = tensors, .n = {dim}};
  return record_made(out, &r, WEIR_OK);
}

weir_status weir_cat(weir_tensor **out, const weir_tensor *const *tensors, int count, int dim)
{
  WEIR_OP(out, tensors);
  WEIR_CASTS_LIST(CAT, tensors, count);
  weir_shape shape = {0, {0}};
  weir_dtype dtype = WEIR_DTYPE_NONE;
  int64_t from = 0;
  weir_status st = check_list(tensors, count, "weir.cat(): expected a non-empty list of Tensors");
  if (!st) st = cat_shape(&shape, &dtype, &dim, tensors, count);
  if (!st) st = tensor_new(out, dtype, device_of_tensor(tensors[0]), false, shape);
  for (int i = 0; i < count && !st; i++) {
    if (skipped(tensors[i])) continue;
    if (tensors[i]->numel) st = copy_to_part(*out, tensors[i], dim, from);
    from += tensors[i]->size[dim];
  }
  if (st) weir_tensor_drop(out);
  return st || !recorded_any(tensors, count) ? st
                                             : record_join(out, tensors, count, RECORD_CAT, dim);
}

static weir_status check_equal(const weir_tensor *const *tensors, int count)
{
  text_buffer one, two;
  for (int i = 1; i < count; i++) {
    const weir_tensor *a = tensors[0], *b = tensors[i];
    bool same = a->dims == b->dims;
    for (int d = 0; same && d < a->dims; d++)
      same = a->size[d] == b->size[d];
    if (!same)
      return fail_invalid(
          "stack expects each tensor to be equal size, but got %s at entry 0 and %s at entry %d",
          shape_format(&one, shape_of_tensor(a)), shape_format(&two, shape_of_tensor(b)), i);
  }
  return WEIR_OK;
}

weir_status weir_stack(weir_tensor **out, const weir_tensor *const *tensors, int count, int dim)
{
  WEIR_OP(out, tensors);
  WEIR_CASTS_LIST(CAT, tensors, count);
  categories c = {0};
  weir_dtype dtype = WEIR_DTYPE_NONE;
  weir_shape shape = {0, {0}};
  weir_status st = check_list(tensors, count, "stack expects a non-empty TensorList");
  if (!st) st = dim_resolve(&dim, dim, tensors[0]->dims + 1);
  if (!st) st = check_equal(tensors, count);
  for (int i = 0; i < count && !st; i++)
    st = categories_tensor(&c, tensors[i]);
  if (!st) st = categories_result(&dtype, &c);
  if (st) return st;
  const weir_tensor *a = tensors[0];
  if (check_dim_count(a->dims + 1)) return WEIR_EINVAL;
  for (int d = 0; d <= a->dims; d++)
    shape.size[shape.count++] = d == dim ? count : a->size[d - (d > dim)];
  st = tensor_new(out, dtype, device_of_tensor(a), false, shape);
  for (int i = 0; i < count && !st && (*out)->numel; i++) {
    weir_tensor *part = NULL;
    st = weir_select(&part, *out, dim, i);
    if (!st) st = loop_copy(part, tensors[i]);
    weir_tensor_release(part);
  }
  if (st) weir_tensor_drop(out);
  return st || !recorded_any(tensors, count) ? st
                                             : record_join(out, tensors, count, RECORD_STACK, dim);
}
