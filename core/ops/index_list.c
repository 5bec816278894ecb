/* index_list.c: a[i, :, mask]: elements chosen by a list of index tensors, one a dimension.
 *
 * Masks become the places where they are true; what remains are integer tensors, which are
 * broadcast. The request is a loop over the result's dimensions: those that no index chooses keep
 * their own strides, in the others every index has its own.
 *
 * Words. list: the indices, one for each dimension of the tensor that has one. together: the shape
 * that the indices broadcast to. */
#include <stdio.h>
#include <string.h>
#include "core/ops/indexing.h"

typedef struct index_list {
  weir_tensor *of[WEIR_MAX_DIMS]; /* by dimension, owned; NULL: all of it */
  int64_t stride[WEIR_MAX_DIMS];  /* room */
  int count;                      /* dimensions so far */
  weir_shape together;
  int first, last, chosen; /* the first and the last dimension that has one; how many have */
} index_list;

static void index_list_drop(index_list *l)
{
  for (int d = 0; d < l->count; d++)
    weir_tensor_release(l->of[d]);
}

#define INDEX_LIST __attribute__((cleanup(index_list_drop))) index_list

/* ---- the list -------------------------------------------------------------------------------- */

static weir_status too_many(const weir_tensor *t, int count)
{
  return fail_invalid("too many indices for tensor of dimension %d (got %d)", (int)t->dims, count);
}

static bool is_mask(const weir_tensor *t)
{
  return t->dtype == WEIR_BOOL || t->dtype == WEIR_UINT8;
}

static weir_status check_mask(const index_list *l, const weir_tensor *t, const weir_tensor *mask)
{
  text_buffer one, two;
  for (int d = 0; d < mask->dims; d++)
    if (mask->size[d] != t->size[l->count + d])
      return fail_invalid("The shape of the mask %s at index %d does not match the shape of the "
                          "indexed tensor %s at index %d",
                          shape_format(&one, weir_tensor_shape(mask)), d,
                          shape_format(&two, weir_tensor_shape(t)), l->count + d);
  return WEIR_OK;
}

static weir_status add_mask(index_list *l, const weir_tensor *t, const weir_tensor *mask)
{
  CALC(c);
  if (!mask->dims)
    return fail_unsupported("a mask without dimensions is no index: unsqueeze() both");
  c->st = check_mask(l, t, mask);
  weir_tensor *places = c_call(c, places_of, mask, false, weir_tensor_shape(mask), -1, "index");
  for (int d = 0; d < mask->dims && !c->st; d++) {
    c->st = weir_select(&l->of[l->count], places, 0, d);
    if (!c->st) l->count++;
  }
  return c->st;
}

/* How many dimensions it stands for. */
static int dims_of(const weir_tensor *index)
{
  return index && is_mask(index) ? index->dims : 1;
}

static weir_status add_index(index_list *l, const weir_tensor *t, const weir_tensor *index)
{
  if (index && is_mask(index)) return add_mask(l, t, index);
  l->of[l->count++] = weir_tensor_retain((weir_tensor *)index);
  return WEIR_OK;
}

static weir_status check_list(const weir_tensor *t, const weir_tensor *const *indices, int count)
{
  int dims = 0;
  bool any = false;
  for (int i = 0; i < count; i++) {
    if (!indices[i]) continue;
    any = true;
    if (!is_mask(indices[i]) && !is_index(indices[i]))
      return fail_invalid("tensors used as indices must be long, int, byte or bool tensors");
    TRY(check_same_device(t, indices[i]));
  }
  if (!any) return fail_invalid("at least one index must be provided");
  for (int i = 0; i < count; i++)
    dims += dims_of(indices[i]);
  return dims > t->dims ? too_many(t, dims) : WEIR_OK;
}

/* "[2], [3]" of all. */
static weir_status not_together(const index_list *l)
{
  char text[512] = "";
  size_t used = 0;
  for (int d = 0; d < l->count; d++) {
    text_buffer one;
    if (!l->of[d]) continue;
    int n = snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                     shape_format(&one, weir_tensor_shape(l->of[d])));
    if (n > 0 && used + (size_t)n < sizeof text) used += (size_t)n;
  }
  return fail_invalid(
      "shape mismatch: indexing tensors could not be broadcast together with shapes %s", text);
}

static weir_status find_together(index_list *l)
{
  l->together = weir_shape_of(0, NULL);
  l->first = -1;
  for (int d = 0; d < l->count; d++) {
    if (!l->of[d]) continue;
    if (l->first < 0) l->first = d;
    l->last = d;
    l->chosen++;
    if (shape_broadcast(&l->together, l->of[d]->size, l->of[d]->dims)) return not_together(l);
  }
  return WEIR_OK;
}

static int64_t list_numel(const index_list *l)
{
  return sizes_product(l->together.size, 0, l->together.count);
}

static weir_status make_list(index_list *l, const weir_tensor *t, const weir_tensor *const *indices,
                             int count)
{
  if (!indices) count = 0;
  while (count > 0 && !indices[count - 1])
    count--; /* the rest is whole anyway */
  weir_status st = check_list(t, indices, count);
  for (int i = 0; i < count && !st; i++)
    st = add_index(l, t, indices[i]);
  if (!st) st = find_together(l);
  if (st) return st;
  if (l->together.count + t->dims - l->chosen > WEIR_MAX_DIMS)
    return fail_invalid("a tensor has 0 to %d dimensions, not %d", WEIR_MAX_DIMS,
                        l->together.count + t->dims - l->chosen);
  for (int d = 0; d < l->count; d++)
    if (l->of[d] && !t->size[d] && list_numel(l))
      return fail_invalid("index is out of bounds for dimension with size 0");
  return WEIR_OK;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void add_own(weir_indexing *r, const index_list *l, const weir_tensor *t, int from, int to)
{
  for (int d = from; d < to; d++)
    if (d >= l->count || !l->of[d]) indexing_dim(r, t->size[d], t->stride[d], 0);
}

/* The dimensions that the indices have together. */
static void add_together(weir_indexing *r, const index_list *l, const weir_tensor *t)
{
  int start = r->dims, number = 0;
  for (int d = 0; d < l->together.count; d++)
    indexing_dim(r, l->together.size[d], 0, 0);
  for (int d = 0; d < l->count; d++) {
    const weir_tensor *index = l->of[d];
    if (!index) continue;
    weir_operand *at = indexing_index(r, index, t, d);
    r->index[r->indices - 1].dim = number++; /* as torch counts them */
    for (int i = 0; i < index->dims; i++)
      if (index->size[i] != 1)
        at->stride[start + l->together.count - index->dims + i] = index->stride[i];
  }
}

/* The dimensions of the result. */
static void list_loop(weir_indexing *r, weir_index_op op, const index_list *l, const weir_tensor *t)
{
  bool neighbours = l->last - l->first + 1 == l->chosen;
  indexing_begin(r, op, t);
  r->wrap = true;
  if (neighbours) add_own(r, l, t, 0, l->first);
  add_together(r, l, t);
  add_own(r, l, t, neighbours ? l->first : 0, t->dims);
}

/* ---- recorded: by the numbers of elements ---------------------------------------------------- */

/* The numbers of the elements of a that the list chooses, in the result's shape. */
static weir_status list_places(weir_tensor **out, const weir_tensor *a,
                               const weir_tensor *const *indices, int count)
{
  CALC(c);
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(a)};
  weir_tensor *row = c_call(c, weir_arange, weir_int(0), weir_int(a->numel), weir_int(1), &o);
  weir_tensor *all = c_call(c, weir_view, row, weir_tensor_shape(a));
  return c->st ? c->st : weir_index(out, all, indices, count);
}

static weir_status index_recorded(weir_tensor **out, const weir_tensor *a,
                                  const weir_tensor *const *indices, int count)
{
  CALC(c);
  weir_tensor *places = c_call(c, list_places, a, indices, count);
  return c->st ? c->st : weir_take(out, a, places);
}

/* And the values, one for each. */
static weir_status put_places(weir_tensor **places, weir_tensor **wide, const weir_tensor *a,
                              const weir_tensor *const *indices, int count,
                              const weir_tensor *values)
{
  text_buffer one, two;
  TRY(list_places(places, a, indices, count));
  weir_shape shape = weir_tensor_shape(*places), both = shape;
  weir_status st = shape_broadcast(&both, values->size, values->dims);
  bool fits = !st && both.count == shape.count;
  for (int d = 0; d < shape.count && fits; d++)
    fits = both.size[d] == shape.size[d];
  if (!fits)
    return fail_invalid("shape mismatch: value tensor of shape %s cannot be broadcast to indexing "
                        "result of shape %s",
                        shape_format(&one, weir_tensor_shape(values)), shape_format(&two, shape));
  return weir_expand(wide, values, shape);
}

/* ---- index ----------------------------------------------------------------------------------- */

weir_status weir_index(weir_tensor **out, const weir_tensor *a, const weir_tensor *const *indices,
                       int count)
{
  WEIR_OP(out, a);
  if (recorded(a)) return index_recorded(out, a, indices, count);
  if (count > 0) WEIR_REQUIRE(indices);
  INDEX_LIST l = {.count = 0};
  weir_indexing r;
  TRY(make_list(&l, a, indices, count));
  list_loop(&r, WEIR_INDEX_READ, &l, a);
  TRY(tensor_new_beside(out, a, weir_shape_of(r.dims, r.size)));
  r.values.data = (*out)->data;
  memcpy(r.values.stride, (*out)->stride, (size_t)r.dims * sizeof *r.values.stride);
  weir_status st = indexing_run(&r, a, "index");
  if (st) weir_tensor_drop(out);
  return st;
}

/* ---- index_put ------------------------------------------------------------------------------- */

static weir_status check_values(const weir_tensor *t, const weir_tensor *values)
{
  if (values->dtype != t->dtype)
    return fail_invalid("Index put requires the source and destination dtypes match, got %s for "
                        "the destination and %s for the source.",
                        dtype_title(t->dtype), dtype_title(values->dtype));
  return check_same_device(t, values);
}

/* values along the loop's dimensions. */
static weir_status broadcast_values(weir_indexing *r, const weir_tensor *values)
{
  text_buffer one, two;
  int lead = r->dims - values->dims;
  bool fits = lead >= 0;
  for (int d = 0; d < values->dims && fits; d++)
    fits = values->size[d] == 1 || values->size[d] == r->size[lead + d];
  if (!fits)
    return fail_invalid("shape mismatch: value tensor of shape %s cannot be broadcast to indexing "
                        "result of shape %s",
                        shape_format(&one, weir_tensor_shape(values)),
                        shape_format(&two, weir_shape_of(r->dims, r->size)));
  for (int d = 0; d < values->dims; d++)
    if (values->size[d] != 1) r->values.stride[lead + d] = values->stride[d];
  r->values.data = values->data;
  return WEIR_OK;
}

/* Checks all and writes to `to`, t or a copy of it. */
static weir_status run_index_put(const weir_tensor *to, const index_list *l,
                                 const weir_tensor *values, bool accumulate)
{
  weir_indexing r;
  list_loop(&r, accumulate ? WEIR_INDEX_ADD : WEIR_INDEX_SET, l, to);
  weir_status st = broadcast_values(&r, values);
  if (!st) st = check_values(to, values);
  return st ? st : indexing_run(&r, to, "index_put_");
}

weir_status weir_index_put(weir_tensor **out, const weir_tensor *a,
                           const weir_tensor *const *indices, int count, const weir_tensor *values,
                           bool accumulate)
{
  WEIR_OP(out, a, values);
  WEIR_CASTS(INDEX_PUT, a, values);
  if (recorded(a) || recorded(values)) {
    WEIR_TENSOR places = NULL, wide = NULL;
    weir_status put = put_places(&places, &wide, a, indices, count, values);
    return put ? put : weir_put(out, a, places, wide, accumulate);
  }
  if (count > 0) WEIR_REQUIRE(indices);
  INDEX_LIST l = {.count = 0};
  weir_status st = make_list(&l, a, indices, count);
  if (!st) st = weir_clone(out, a);
  if (!st) st = run_index_put(*out, &l, values, accumulate);
  if (st) weir_tensor_drop(out);
  return st;
}

weir_status weir_index_put_(weir_tensor *t, const weir_tensor *const *indices, int count,
                            const weir_tensor *values, bool accumulate)
{
  WEIR_OP_ON(t, values);
  if (recorded(t) || recorded(values)) {
    WEIR_TENSOR places = NULL, wide = NULL;
    weir_status put = put_places(&places, &wide, t, indices, count, values);
    return put ? put : weir_put_(t, places, wide, accumulate);
  }
  if (count > 0) WEIR_REQUIRE(indices);
  INDEX_LIST l = {.count = 0};
  weir_status st = make_list(&l, t, indices, count);
  for (int d = 0; d < l.count && !st; d++)
    if (l.of[d]) st = indexing_apart(t, values, l.of[d]);
  return st ? st : change_end(NULL, t, run_index_put(t, &l, values, accumulate));
}
