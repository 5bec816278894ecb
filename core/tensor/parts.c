/* parts.c: views that are parts of a tensor, or show its dimensions in other ways.
 *
 * In addition to view.c, which has what a shape alone decides. Checks are PyTorch's, in its
 * order. */
#include "core/base/least.h"
#include "core/stream/async_error.h"
#include "core/tensor/calc.h"
#include "core/tensor/loop.h"
#include "core/tensor/record.h"

/* ---- several parts --------------------------------------------------------------------------- */

/* torch wraps no dimension of a tensor that has none. */
static weir_status dim_of(int *out, int dim, const weir_tensor *t)
{
  weir_status st = dim_resolve(out, dim, t->dims);
  if (st || t->dims) return st;
  return fail_invalid("Dimension specified as 0 but tensor has no dimensions");
}

weir_status weir_unbind(weir_tensor **out, int *count, int room, const weir_tensor *t, int dim)
{
  WEIR_REQUIRE(out, count, t);
  *count = 0;
  weir_status st = dim_of(&dim, dim, t);
  if (st) return st;
  if (t->size[dim] > room)
    return fail_invalid("there is room for %d tensors, and unbind makes %lld", room,
                        (long long)t->size[dim]);
  int i = 0;
  for (; i < t->size[dim] && !st; i++)
    st = weir_select(&out[i], t, dim, i);
  if (!st) *count = i;
  if (!st) number_parts(out, i, VIEW_UNBIND);
  return drop_parts(out, i, st);
}

/* named: the dimension as the caller counts it, for the sentence. */
static weir_status check_splits(const int64_t *sizes, int count, const weir_tensor *t, int named,
                                int dim)
{
  text_buffer text;
  weir_shape shown = weir_shape_of(count < WEIR_MAX_DIMS ? count : WEIR_MAX_DIMS, sizes);
  int64_t sum = 0;
  for (int i = 0; i < count; i++) {
    if (sizes[i] < 0)
      return fail_invalid("split_with_sizes expects split_sizes have only non-negative entries, "
                          "but got split_sizes=%s",
                          shape_format(&text, shown));
    if (__builtin_add_overflow(sum, sizes[i], &sum)) sum = INT64_MAX;
  }
  return sum == t->size[dim]
             ? WEIR_OK
             : fail_invalid("split_with_sizes expects split_sizes to sum exactly to %lld (input "
                            "tensor's size at dimension %d), but got split_sizes=%s",
                            (long long)t->size[dim], named, shape_format(&text, shown));
}

weir_status weir_split_with_sizes(weir_tensor **out, const weir_tensor *t, const int64_t *sizes,
                                  int count, int dim)
{
  WEIR_REQUIRE(out, t);
  if (count > 0) WEIR_REQUIRE(sizes);
  if (!t->dims) return fail_invalid("split expects at least a 1-dimensional tensor");
  int named = dim;
  weir_status st = dim_resolve(&dim, dim, t->dims);
  if (!st) st = check_splits(sizes, count, t, named, dim);
  if (st) return st;
  int i = 0;
  for (int64_t from = 0; i < count && !st; from += sizes[i++])
    st = weir_narrow(&out[i], t, dim, from, sizes[i]);
  if (!st) number_parts(out, i, VIEW_SPLIT_SIZES);
  return drop_parts(out, i, st);
}

static weir_status check_split(const weir_tensor *t, int *dim)
{
  if (!t->dims)
    return fail_invalid(
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
  return dim_resolve(dim, *dim, t->dims);
}

weir_status weir_tensor_split(weir_tensor **out, const weir_tensor *t, int sections, int dim)
{
  WEIR_REQUIRE(out, t);
  weir_status st = check_split(t, &dim);
  if (st) return st;
  if (sections <= 0)
    return fail_invalid("number of sections must be larger than 0, got %d", sections);
  int64_t each = t->size[dim] / sections, more = t->size[dim] % sections, from = 0;
  int i = 0;
  for (; i < sections && !st; i++) {
    int64_t length = each + (i < more);
    st = weir_narrow(&out[i], t, dim, from, length);
    from += length;
  }
  return drop_parts(out, i, st);
}

weir_status weir_tensor_split_at(weir_tensor **out, const weir_tensor *t, const int64_t *places,
                                 int count, int dim)
{
  WEIR_REQUIRE(out, t);
  if (count > 0) WEIR_REQUIRE(places);
  weir_status st = check_split(t, &dim);
  if (!st && count < 0) st = fail_invalid("a tensor is not split at %d places", count);
  if (st) return st;
  int i = 0;
  int64_t from = 0;
  for (; i <= count && !st; i++) {
    int64_t to = i < count ? places[i] : t->size[dim];
    st = weir_slice(&out[i], t, dim, from, to, 1);
    from = to;
  }
  return drop_parts(out, i, st);
}

/* ---- windows, diagonals ---------------------------------------------------------------------- */

static weir_status check_window(int64_t whole, int dim, int64_t size, int64_t step)
{
  if (size < 0) return fail_invalid("size is %lld but must be >= 0", (long long)size);
  if (size > whole)
    return fail_invalid("maximum size for tensor at dimension %d is %lld but size is %lld", dim,
                        (long long)whole, (long long)size);
  if (step <= 0) return fail_invalid("step is %lld but must be > 0", (long long)step);
  return WEIR_OK;
}

weir_status weir_unfold(weir_tensor **out, const weir_tensor *t, int dim, int64_t size,
                        int64_t step)
{
  WEIR_REQUIRE_OUT(out, t);
  weir_shape shape = shape_of_tensor(t);
  int64_t stride[WEIR_MAX_DIMS + 1] = {0};
  TRY(dim_resolve(&dim, dim, t->dims));
  TRY(check_window(t->dims ? t->size[dim] : 1, dim, size, step));
  TRY(check_dim_count(t->dims + 1));
  for (int i = 0; i < t->dims; i++)
    stride[i] = t->stride[i];
  shape.size[t->dims] = size;
  stride[t->dims] = t->dims ? t->stride[dim] : 1;
  shape.count++;
  if (t->dims) {
    shape.size[dim] = (t->size[dim] - size) / step + 1;
    if (__builtin_mul_overflow(stride[dim], step, &stride[dim])) stride[dim] = t->stride[dim];
  }
  weir_status st = tensor_view(out, t, shape, stride, 0);
  return st || !recorded(t) ? st : record_of(out, t, RECORD_UNFOLD, dim, size, step, 0);
}

weir_status weir_diagonal(weir_tensor **out, const weir_tensor *t, int64_t offset, int dim1,
                          int dim2)
{
  WEIR_REQUIRE_OUT(out, t);
  weir_shape shape = {0, {0}};
  int64_t stride[WEIR_MAX_DIMS] = {0}, at = 0;
  int one, two;
  TRY(dim_resolve(&one, dim1, t->dims));
  TRY(dim_resolve(&two, dim2, t->dims));
  if (one == two) return fail_invalid("diagonal dimensions cannot be identical %d, %d", dim1, dim2);
  for (int i = 0; i < t->dims; i++) {
    if (i == one || i == two) continue;
    stride[shape.count] = t->stride[i];
    shape.size[shape.count++] = t->size[i];
  }
  int64_t rows = t->size[one], columns = t->size[two];
  if (offset >= 0)
    columns = offset > columns ? 0 : columns - offset;
  else
    rows = -rows > offset ? 0 : rows + offset;
  int64_t length = least(rows, columns);
  if (length > 0) at = offset >= 0 ? offset * t->stride[two] : -offset * t->stride[one];
  shape.size[shape.count] = length > 0 ? length : 0;
  stride[shape.count++] = t->stride[one] + t->stride[two];
  weir_status st = tensor_view(out, t, shape, stride, at);
  return st || !recorded(t) ? st : record_of(out, t, RECORD_DIAGONAL, offset, one, two, 0);
}

/* ---- complex numbers ------------------------------------------------------------------------- */

static weir_status finish_numbers(weir_tensor **out, const weir_tensor *t, int dims,
                                  const int64_t *sizes, const int64_t *strides, weir_dtype dtype)
{
  bool real = dtype != WEIR_COMPLEX64;
  TRY(tensor_part(out, t, dims, sizes, strides, 0));
  (*out)->dtype = (uint8_t)dtype;
  if ((*out)->created != VIEW_NO_GRAD) (*out)->created = VIEW_AS_OTHER;
  if (!recorded(t)) return WEIR_OK;
  return record_of(out, t, real ? RECORD_VIEW_AS_REAL : RECORD_VIEW_AS_COMPLEX, 0, 0, 0, 0);
}

weir_status weir_view_as_real(weir_tensor **out, const weir_tensor *t)
{
  WEIR_REQUIRE_OUT(out, t);
  int64_t sizes[WEIR_MAX_DIMS + 1], strides[WEIR_MAX_DIMS + 1];
  if (t->dtype != WEIR_COMPLEX64)
    return fail_invalid("view_as_real is only supported for complex tensors");
  TRY(check_dim_count(t->dims + 1));
  for (int d = 0; d < t->dims; d++) {
    sizes[d] = t->size[d];
    strides[d] = 2 * t->stride[d];
  }
  sizes[t->dims] = 2;
  strides[t->dims] = 1;
  return finish_numbers(out, t, t->dims + 1, sizes, strides, WEIR_FLOAT32);
}

static weir_status check_pairs(const weir_tensor *t)
{
  int last = t->dims - 1;
  if (!t->dims) return fail_invalid("Input tensor must have one or more dimensions");
  if (t->size[last] != 2) return fail_invalid("Tensor must have a last dimension of size 2");
  if (t->stride[last] != 1) return fail_invalid("Tensor must have a last dimension with stride 1");
  for (int d = 0; d < last; d++)
    if (t->size[d] != 1 && t->stride[d] % 2)
      return fail_invalid("Tensor must have a stride divisible by 2 for all but last dimension");
  return (t->data - (char *)t->storage->data) % (int64_t)itemsize(WEIR_COMPLEX64)
             ? fail_invalid("Tensor must have a storage_offset divisible by 2")
             : WEIR_OK;
}

weir_status weir_view_as_complex(weir_tensor **out, const weir_tensor *t)
{
  WEIR_REQUIRE_OUT(out, t);
  int64_t strides[WEIR_MAX_DIMS];
  if (t->dtype == WEIR_FLOAT16 || t->dtype == WEIR_FLOAT64)
    return fail_unsupported("view_as_complex: there are no complex numbers of %s here",
                            weir_dtype_name(t->dtype));
  if (t->dtype != WEIR_FLOAT32)
    return fail_invalid("view_as_complex is only supported for half, float and double tensors, but "
                        "got a tensor of scalar type: %s",
                        dtype_title(t->dtype));
  TRY(check_pairs(t));
  for (int d = 0; d < t->dims - 1; d++)
    strides[d] = t->stride[d] / 2;
  return finish_numbers(out, t, t->dims - 1, t->size, strides, WEIR_COMPLEX64);
}

static weir_status part_of_numbers(weir_tensor **out, const weir_tensor *t, int64_t which)
{
  CALC(c);
  return calc_give(c, out, c_select(c, c_call(c, weir_view_as_real, t), -1, which));
}

weir_status weir_real(weir_tensor **out, const weir_tensor *t)
{
  WEIR_REQUIRE_OUT(out, t);
  if (t->dtype == WEIR_COMPLEX64) return part_of_numbers(out, t, 0);
  *out = weir_tensor_retain((weir_tensor *)t);
  return WEIR_OK;
}

weir_status weir_imag(weir_tensor **out, const weir_tensor *t)
{
  WEIR_REQUIRE_OUT(out, t);
  if (t->dtype == WEIR_COMPLEX64) return part_of_numbers(out, t, 1);
  return fail_invalid("imag is not implemented for tensors with non-complex dtypes.");
}

/* ---- dimensions ------------------------------------------------------------------------------ */

weir_status weir_swapaxes(weir_tensor **out, const weir_tensor *t, int a, int b)
{
  WEIR_REQUIRE_OUT(out, t);
  return weir_transpose(out, t, a, b);
}

/* The dimensions of `list` counted from the front. */
static weir_status resolve_dims(int *to, const int *list, int count, int dims)
{
  weir_status st = WEIR_OK;
  for (int i = 0; i < count && !st; i++)
    st = dim_resolve(&to[i], list[i], dims);
  return st;
}

/* *seen: them as bits. */
static weir_status check_moved(unsigned *seen, const int *dims, const int *list, int count,
                               const char *name)
{
  text_buffer text;
  weir_shape shown = {.count = count};
  *seen = 0;
  for (int i = 0; i < count; i++)
    shown.size[i] = list[i];
  for (int i = 0; i < count; i++) {
    if (*seen >> dims[i] & 1)
      return fail_invalid("movedim: repeated dim in `%s` (%s)", name, shape_format(&text, shown));
    *seen |= 1U << dims[i];
  }
  return WEIR_OK;
}

weir_status weir_movedim(weir_tensor **out, const weir_tensor *t, const int *source,
                         const int *destination, int count)
{
  WEIR_REQUIRE_OUT(out, t);
  if (count > 0) WEIR_REQUIRE(source, destination);
  int from[WEIR_MAX_DIMS], to[WEIR_MAX_DIMS], order[WEIR_MAX_DIMS], next = 0;
  unsigned taken, placed;
  if (count < 0 || count > (t->dims ? t->dims : 1))
    return fail_invalid("movedim: a tensor of %d dimensions has no %d to move", (int)t->dims,
                        count);
  TRY(resolve_dims(from, source, count, t->dims));
  TRY(resolve_dims(to, destination, count, t->dims));
  TRY(check_moved(&taken, from, source, count, "source"));
  TRY(check_moved(&placed, to, destination, count, "destination"));
  for (int i = 0; i < count && t->dims; i++)
    order[to[i]] = from[i];
  for (int i = 0; i < t->dims; i++) {
    if (placed >> i & 1) continue;
    while (taken >> next & 1)
      next++;
    order[i] = next++;
  }
  return weir_permute(out, t, order);
}

/* What a dimension of `whole` becomes; the size that is -1 is filled in. */
static weir_status infer_part(weir_shape *s, int64_t whole, int dim)
{
  text_buffer text;
  int64_t known = 1;
  int at = -1;
  for (int i = 0; i < s->count; i++) {
    if (s->size[i] == -1) {
      if (at >= 0)
        return fail_invalid(
            "unflatten got an unexpected error: only one dimension can be inferred");
      at = i;
    } else if (s->size[i] < 0) {
      return fail_invalid(
          "unflatten got an unexpected error: invalid shape dimension %lld at index %d of shape %s",
          (long long)s->size[i], i, shape_format(&text, *s));
    } else if (__builtin_mul_overflow(known, s->size[i], &known)) {
      known = -1;
      break;
    }
  }
  bool fits = at < 0 ? known == whole : known > 0 && whole % known == 0;
  if (!fits)
    return fail_invalid("unflatten: Provided sizes %s don't multiply up to the size of dim %d "
                        "(%lld) in the input tensor",
                        shape_format(&text, *s), dim, (long long)whole);
  if (at >= 0) s->size[at] = whole / known;
  return WEIR_OK;
}

weir_status weir_unflatten(weir_tensor **out, const weir_tensor *t, int dim, weir_shape sizes)
{
  WEIR_REQUIRE_OUT(out, t);
  weir_shape shape = {0, {0}};
  TRY(dim_resolve(&dim, dim, t->dims));
  if (sizes.count <= 0) return fail_invalid("unflatten: sizes must be non-empty");
  if (!t->dims)
    return fail_invalid("unflatten got an unexpected error: the tensor has no dimensions");
  TRY(check_dim_count(t->dims - 1 + sizes.count));
  TRY(infer_part(&sizes, t->size[dim], dim));
  for (int i = 0; i < t->dims; i++)
    for (int k = 0; k < (i == dim ? sizes.count : 1); k++)
      shape.size[shape.count++] = i == dim ? sizes.size[k] : t->size[i];
  return weir_view(out, t, shape);
}

weir_status weir_broadcast_to(weir_tensor **out, const weir_tensor *t, weir_shape shape)
{
  WEIR_REQUIRE_OUT(out, t);
  return weir_expand(out, t, shape);
}

weir_status weir_expand_as(weir_tensor **out, const weir_tensor *t, const weir_tensor *other)
{
  WEIR_REQUIRE_OUT(out, t, other);
  return weir_expand(out, t, shape_of_tensor(other));
}

/* ---- grids ----------------------------------------------------------------------------------- */

static weir_status check_grid(const weir_tensor *const *tensors, int count)
{
  text_buffer text;
  if (count < 1) return fail_invalid("meshgrid expects a non-empty TensorList");
  for (int i = 0; i < count; i++) {
    const weir_tensor *t = tensors[i];
    if (!t) return fail_invalid("tensor %d of the list is NULL", i);
    if (t->dims > 1)
      return fail_invalid("weir.meshgrid: Expected 0D or 1D tensor in the tensor list but got: a "
                          "tensor of shape %s",
                          shape_format(&text, shape_of_tensor(t)));
  }
  for (int i = 1; i < count; i++) {
    if (tensors[i]->dtype != tensors[0]->dtype)
      return fail_invalid("meshgrid expects all tensors to have the same dtype");
    if (!weir_device_equal(device_of_tensor(tensors[i]), device_of_tensor(tensors[0])))
      return fail_invalid("meshgrid expects all tensors to have the same device");
  }
  return check_dim_count(count);
}

weir_status weir_meshgrid(weir_tensor **out, const weir_tensor *const *tensors, int count, bool xy)
{
  WEIR_REQUIRE(out, tensors);
  weir_shape shape = {.count = count};
  weir_status st = check_grid(tensors, count);
  if (st) return st;
  xy = xy && count > 1;
  for (int i = 0; i < count; i++) { /* dimension i is that of tensor `of` */
    int of = xy && i < 2 ? 1 - i : i;
    shape.size[i] = tensors[of]->dims ? tensors[of]->size[0] : 1;
  }
  int i = 0;
  for (; i < count && !st; i++) {
    WEIR_TENSOR line = NULL;
    weir_shape lies = {.count = count};
    int dim = xy && i < 2 ? 1 - i : i;
    for (int d = 0; d < count; d++)
      lies.size[d] = d == dim ? shape.size[dim] : 1;
    st = weir_view(&line, tensors[i], lies);
    if (!st) st = weir_expand(&out[i], line, shape);
  }
  return drop_parts(out, i, st);
}
