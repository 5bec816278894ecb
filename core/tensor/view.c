/* view.c: tensors that share another's storage: other sizes, strides and a first element.
 *
 * Each function checks its arguments in PyTorch's order and with its sentences, and then makes one
 * tensor_view(). Only weir_reshape() and weir_flatten() may copy, where no strides can show
 * the elements in the new shape. */
#include "core/stream/async_error.h"
#include "core/tensor/calc.h"
#include "core/tensor/record.h"

/* Sizes and strides of a view that is being made. */
typedef struct view {
  weir_shape shape;
  int64_t stride[WEIR_MAX_DIMS];
} view;

/* Of t's dimensions; the others are not set. */
static inline void view_of(view *v, const weir_tensor *t)
{
  v->shape.count = t->dims;
  for (int i = 0; i < t->dims; i++) {
    v->shape.size[i] = t->size[i];
    v->stride[i] = t->stride[i];
  }
}

static inline weir_status finish_view(weir_tensor **out, const weir_tensor *t, const view *v,
                                      int64_t offset)
{
  return tensor_part(out, t, v->shape.count, v->shape.size, v->stride, offset);
}

/* The same of a view whose derivative is `kind`'s, with up to three arguments. */
static inline weir_status finish_as(weir_tensor **out, const weir_tensor *t, const view *v,
                                    int64_t offset, enum record_kind kind, int64_t a, int64_t b,
                                    int64_t c)
{
  weir_status st = finish_view(out, t, v, offset);
  return st || !recorded(t) ? st : record_of(out, t, kind, a, b, c, 0);
}

static void take_out(view *v, int dim)
{
  v->shape.count--;
  for (int i = dim; i < v->shape.count; i++) {
    v->shape.size[i] = v->shape.size[i + 1];
    v->stride[i] = v->stride[i + 1];
  }
}

/* ---- other shapes ---------------------------------------------------------------------------- */

static __attribute__((cold)) weir_status bad_shape(const weir_tensor *t, weir_shape s)
{
  text_buffer text;
  return fail_invalid("shape '%s' is invalid for input of size %lld", shape_format(&text, s),
                      (long long)t->numel);
}

/* The one size that is -1 becomes what is left; then as many elements as t has. */
static weir_status infer_size(weir_shape *s, const weir_tensor *t)
{
  text_buffer text;
  int at = -1;
  int64_t known = 1;
  bool over = false;
  TRY(check_dim_count(s->count));
  for (int i = 0; i < s->count; i++) {
    if (s->size[i] >= 0) {
      over |= __builtin_mul_overflow(known, s->size[i], &known);
      continue;
    }
    if (s->size[i] < -1)
      return fail_invalid("invalid shape dimension %lld at index %d of shape %s",
                          (long long)s->size[i], i, shape_format(&text, *s));
    if (at >= 0) return fail_invalid("only one dimension can be inferred");
    at = i;
  }
  if (at < 0) return !over && known == t->numel ? WEIR_OK : bad_shape(t, *s);
  if (over || (known ? t->numel % known : t->numel)) return bad_shape(t, *s);
  if (!known)
    return fail_invalid("cannot reshape tensor of 0 elements into shape %s because the unspecified "
                        "dimension size -1 can be any value and is ambiguous",
                        shape_format(&text, *s));
  s->size[at] = t->numel / known;
  return WEIR_OK;
}

/* Strides that show t's elements, in order, in the shape; false: there are none. t has elements.
 * Runs of t's dimensions that lie after each other are filled with the new dimensions, from the
 * last on. */
static bool strides_for(const weir_tensor *t, view *v)
{
  int at = v->shape.count - 1;
  int64_t base = t->dims ? t->stride[t->dims - 1] : 1, run = 1, filled = 1;
  for (int d = t->dims - 1; d >= 0; d--) {
    run *= t->size[d];
    if (d && (t->size[d - 1] == 1 || t->stride[d - 1] == run * base)) continue;
    for (; at >= 0 && (filled < run || v->shape.size[at] == 1); at--) {
      v->stride[at] = filled * base;
      filled *= v->shape.size[at];
    }
    if (filled != run) return false;
    if (d) base = t->stride[d - 1];
    run = filled = 1;
  }
  for (; at >= 0; at--) /* t has no dimensions */
    v->stride[at] = 1;
  return true;
}

/* *out NULL and no error: no strides show it. */
static inline weir_status try_view(weir_tensor **out, const weir_tensor *t, weir_shape *shape)
{
  *out = NULL;
  weir_status st = infer_size(shape, t);
  if (st) return st;
  if (__builtin_expect(t->dense, 1)) {
    st = tensor_part(out, t, shape->count, shape->size, NULL, 0);
    return st || !recorded(t) ? st : record_of(out, t, RECORD_SHAPE, 0, 0, 0, 0);
  }
  view v = {.shape = *shape};
  return strides_for(t, &v) ? finish_as(out, t, &v, 0, RECORD_SHAPE, 0, 0, 0) : WEIR_OK;
}

weir_status weir_view(weir_tensor **out, const weir_tensor *t, weir_shape shape)
{
  WEIR_REQUIRE_OUT(out, t);
  weir_status st = try_view(out, t, &shape);
  if (st || *out) return st;
  return fail_invalid(
      "view size is not compatible with input tensor's size and stride (at least one dimension "
      "spans across two contiguous subspaces). Use .reshape(...) instead.");
}

weir_status weir_reshape(weir_tensor **out, const weir_tensor *t, weir_shape shape)
{
  WEIR_OP(out, t);
  CALC(c);
  c->st = try_view(out, t, &shape);
  if (c->st || *out) return c->st;
  weir_tensor *copy = c_contiguous(c, t);
  return c->st ? c->st : weir_view(out, copy, shape);
}

weir_status weir_flatten(weir_tensor **out, const weir_tensor *t, int from, int to)
{
  WEIR_OP(out, t);
  weir_shape s = {0};
  TRY(dim_resolve(&from, from, t->dims));
  TRY(dim_resolve(&to, to, t->dims));
  if (from > to)
    return fail_invalid("flatten() has invalid args: start_dim cannot come after end_dim");
  if (!t->dims) return weir_view(out, t, weir_shape(1));
  if (from == to) { /* torch: itself, and no view of it */
    *out = weir_tensor_retain((weir_tensor *)t);
    return WEIR_OK;
  }
  for (int i = 0; i < t->dims; i++)
    if (i > from && i <= to)
      s.size[from] *= t->size[i];
    else
      s.size[s.count++] = t->size[i];
  return weir_reshape(out, t, s);
}

weir_status weir_unsqueeze(weir_tensor **out, const weir_tensor *t, int dim)
{
  WEIR_REQUIRE_OUT(out, t);
  view v;
  view_of(&v, t);
  TRY(dim_resolve(&dim, dim, t->dims + 1));
  TRY(check_dim_count(t->dims + 1));
  for (int i = v.shape.count++; i > dim; i--) {
    v.shape.size[i] = v.shape.size[i - 1];
    v.stride[i] = v.stride[i - 1];
  }
  v.stride[dim] = dim < t->dims ? t->size[dim] * t->stride[dim] : 1;
  v.shape.size[dim] = 1;
  return finish_as(out, t, &v, 0, RECORD_SHAPE, 0, 0, 0);
}

weir_status weir_squeeze(weir_tensor **out, const weir_tensor *t, int dim)
{
  WEIR_REQUIRE_OUT(out, t);
  view v;
  view_of(&v, t);
  TRY(dim_resolve(&dim, dim, t->dims));
  if (t->dims && t->size[dim] == 1) take_out(&v, dim);
  return finish_as(out, t, &v, 0, RECORD_SHAPE, 0, 0, 0);
}

static __attribute__((cold)) weir_status bad_expand(const weir_tensor *t, weir_shape s, int i,
                                                    int64_t size)
{
  text_buffer to, from;
  return fail_invalid("The expanded size of the tensor (%lld) must match the existing size (%lld) "
                      "at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                      (long long)s.size[i], (long long)size, i, shape_format(&to, s),
                      shape_format(&from, weir_tensor_shape(t)));
}

weir_status weir_expand(weir_tensor **out, const weir_tensor *t, weir_shape shape)
{
  WEIR_REQUIRE_OUT(out, t);
  text_buffer to, from;
  int64_t numel;
  view v = {.shape = shape};
  int more = shape.count - t->dims;
  TRY(check_dim_count(shape.count));
  if (more < 0)
    return fail_invalid("expand(%s{%s}, size=%s): the number of sizes provided (%d) must be "
                        "greater or equal to the number of dimensions in the tensor (%d)",
                        weir_tensor_type(t), shape_format(&from, weir_tensor_shape(t)),
                        shape_format(&to, shape), shape.count, (int)t->dims);
  for (int i = shape.count - 1; i >= 0; i--) {
    int64_t size = i < more ? 1 : t->size[i - more];
    int64_t stride = i >= more ? t->stride[i - more] : 0;
    if (i < more && t->dims) stride = v.shape.size[i + 1] * v.stride[i + 1];
    if (shape.size[i] == -1 && i < more)
      return fail_invalid("The expanded size of the tensor (-1) isn't allowed in a leading, "
                          "non-existing dimension %d",
                          i);
    if (shape.size[i] == -1) v.shape.size[i] = size;
    if (v.shape.size[i] != size && (size != 1 || shape.size[i] < 0))
      return bad_expand(t, shape, i, size);
    v.stride[i] = v.shape.size[i] == size ? stride : 0;
  }
  weir_status st = shape_numel(&numel, v.shape, t->dtype);
  return st ? st : finish_as(out, t, &v, 0, RECORD_EXPAND, 0, 0, 0);
}

/* ---- other orders ---------------------------------------------------------------------------- */

static __attribute__((cold)) weir_status record_order(weir_tensor **out, const weir_tensor *t,
                                                      const int *order)
{
  record r = {.kind = RECORD_PERMUTE, .inputs = 1, .in = &t};
  for (int i = 0; i < t->dims; i++)
    r.n[i] = order[i] < 0 ? order[i] + t->dims : order[i];
  return record_made(out, &r, WEIR_OK);
}

static __attribute__((cold)) weir_status record_transpose(weir_tensor **out, const weir_tensor *t,
                                                          int a, int b)
{
  int order[WEIR_MAX_DIMS];
  for (int i = 0; i < t->dims; i++)
    order[i] = i == a ? b : i == b ? a : i;
  return record_order(out, t, order);
}

weir_status weir_transpose(weir_tensor **out, const weir_tensor *t, int a, int b)
{
  WEIR_REQUIRE_OUT(out, t);
  view v;
  view_of(&v, t);
  TRY(dim_resolve(&a, a, t->dims));
  TRY(dim_resolve(&b, b, t->dims));
  if (t->dims) {
    v.shape.size[a] = t->size[b];
    v.shape.size[b] = t->size[a];
    v.stride[a] = t->stride[b];
    v.stride[b] = t->stride[a];
  }
  weir_status st = finish_view(out, t, &v, 0);
  return st || !recorded(t) ? st : record_transpose(out, t, a, b);
}

weir_status weir_t(weir_tensor **out, const weir_tensor *t)
{
  WEIR_REQUIRE_OUT(out, t);
  if (t->dims > 2)
    return fail_invalid("t() expects a tensor with <= 2 dimensions, but self is %dD", (int)t->dims);
  return weir_transpose(out, t, 0, t->dims == 2 ? 1 : 0);
}

weir_status weir_permute(weir_tensor **out, const weir_tensor *t, const int *order)
{
  WEIR_REQUIRE_OUT(out, t);
  if (t->dims) WEIR_REQUIRE(order);
  view v = {.shape = {.count = t->dims}};
  unsigned seen = 0;
  for (int i = 0; i < t->dims; i++) {
    int d;
    TRY(dim_resolve(&d, order[i], t->dims));
    if (seen >> d & 1) return fail_invalid("permute(): duplicate dims are not allowed.");
    seen |= 1u << d;
    v.shape.size[i] = t->size[d];
    v.stride[i] = t->stride[d];
  }
  weir_status st = finish_view(out, t, &v, 0);
  return st || !recorded(t) ? st : record_order(out, t, order);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static weir_status out_of_range(const char *what, int64_t least, int64_t most, int64_t got)
{
  return fail_invalid("%s out of range (expected to be in range of [%lld, %lld], but got %lld)",
                      what, (long long)least, (long long)most, (long long)got);
}

/* Elements `start` to start + length step of a dimension; all checked. */
static weir_status slice_dim(weir_tensor **out, const weir_tensor *t, int dim, int64_t start,
                             int64_t length, int64_t step)
{
  view v;
  view_of(&v, t);
  v.shape.size[dim] = length;
  if (__builtin_mul_overflow(v.stride[dim], step, &v.stride[dim]))
    v.stride[dim] = t->stride[dim]; /* of one element or none: it is never used */
  return finish_as(out, t, &v, start * t->stride[dim], RECORD_SLICE, dim, start, step);
}

static int64_t clamp_index(int64_t place, int64_t low, int64_t high)
{
  return place < low ? low : place > high ? high : place;
}

weir_status weir_slice(weir_tensor **out, const weir_tensor *t, int dim, int64_t start, int64_t end,
                       int64_t step)
{
  WEIR_REQUIRE_OUT(out, t);
  if (!t->dims) return fail_invalid("slice() cannot be applied to a 0-dim tensor.");
  TRY(dim_resolve(&dim, dim, t->dims));
  if (step <= 0) return fail_invalid("slice step must be positive");
  int64_t size = t->size[dim];
  start = clamp_index(start < 0 ? start + size : start, 0, size);
  end = clamp_index(end < 0 ? end + size : end, start, size);
  int64_t length = step == 1 ? end - start : (end - start) / step + ((end - start) % step != 0);
  return slice_dim(out, t, dim, start, length, step);
}

weir_status weir_narrow(weir_tensor **out, const weir_tensor *t, int dim, int64_t start,
                        int64_t length)
{
  WEIR_REQUIRE_OUT(out, t);
  if (!t->dims) return fail_invalid("narrow() cannot be applied to a 0-dim tensor.");
  if (length < 0) return fail_invalid("narrow(): length must be non-negative.");
  TRY(dim_resolve(&dim, dim, t->dims));
  int64_t size = t->size[dim];
  if (start < -size || start > size) return out_of_range("start", -size, size, start);
  if (start < 0) start += size;
  if (length > size - start)
    return fail_invalid("start (%lld) + length (%lld) exceeds dimension size (%lld).",
                        (long long)start, (long long)length, (long long)size);
  return slice_dim(out, t, dim, start, length, 1);
}

weir_status weir_select(weir_tensor **out, const weir_tensor *t, int dim, int64_t index)
{
  WEIR_REQUIRE_OUT(out, t);
  text_buffer text;
  view v;
  view_of(&v, t);
  if (!t->dims) return fail_invalid("select() cannot be applied to a 0-dim tensor.");
  TRY(dim_resolve(&dim, dim, t->dims));
  int64_t size = t->size[dim];
  if (index < -size || index >= size)
    return fail_invalid("select(): index %lld out of range for tensor of size %s at dimension %d",
                        (long long)index, shape_format(&text, weir_tensor_shape(t)), dim);
  if (index < 0) index += size;
  take_out(&v, dim);
  return finish_as(out, t, &v, index * t->stride[dim], RECORD_SELECT, dim, index, 0);
}

/* `count` pieces of `each` along a dimension, the last of what is left. All or none. */
static weir_status pieces(weir_tensor **out, int *count, const weir_tensor *t, int dim,
                          int64_t each, int64_t number)
{
  weir_status st = WEIR_OK;
  int i = 0;
  for (; i < number && !st; i++) {
    int64_t left = t->size[dim] - i * each;
    st = slice_dim(&out[i], t, dim, i * each, left < each ? left : each, 1);
  }
  if (!st) *count = (int)number;
  if (!st) number_parts(out, i, VIEW_SPLIT);
  return drop_parts(out, i, st);
}

weir_status weir_chunk(weir_tensor **out, int *count, const weir_tensor *t, int chunks, int dim)
{
  WEIR_REQUIRE(out, count, t);
  *count = 0;
  if (!t->dims) return fail_invalid("chunk expects at least a 1-dimensional tensor");
  if (chunks <= 0)
    return fail_invalid("chunk expects `chunks` to be greater than 0, got: %d", chunks);
  TRY(dim_resolve(&dim, dim, t->dims));
  int64_t size = t->size[dim], each = size / chunks + (size % chunks != 0);
  return pieces(out, count, t, dim, each, each ? size / each + (size % each != 0) : chunks);
}

weir_status weir_split(weir_tensor **out, int *count, int room, const weir_tensor *t, int64_t size,
                       int dim)
{
  WEIR_REQUIRE(out, count, t);
  *count = 0;
  if (!t->dims) return fail_invalid("split expects at least a 1-dimensional tensor");
  if (size < 0)
    return fail_invalid("split expects split_size be non-negative, but got split_size=%lld",
                        (long long)size);
  TRY(dim_resolve(&dim, dim, t->dims));
  int64_t whole = t->size[dim];
  if (!size && whole)
    return fail_invalid(
        "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
        (long long)whole);
  int64_t number = whole ? whole / size + (whole % size != 0) : 1;
  if (number > room)
    return fail_invalid("there is room for %d tensors, and split makes %lld", room,
                        (long long)number);
  return pieces(out, count, t, dim, size, number);
}
