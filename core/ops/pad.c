/* pad.c: tensors with a border: torch.nn.functional.pad.
 *
 * A constant border is filled and the operand copied between. The other borders are made one
 * dimension after the other, each from the one before, so that corners are right by themselves.
 *
 * Words. place: along a dimension, counted from the operand's first element: negative before it. */
#include "core/base/least.h"
#include "core/ops/ops.h"

typedef struct border {
  int dims;                                            /* that are padded, the last ones */
  int64_t before[WEIR_MAX_DIMS], after[WEIR_MAX_DIMS]; /* of the tensor's dimension i */
} border;

static weir_status border_of(border *b, const weir_tensor *t, const int64_t *padding, int count)
{
  if (count < 0 || count % 2) return fail_invalid("Padding length must be divisible by 2");
  if (count / 2 > t->dims)
    return fail_invalid("Padding length should be less than or equal to two times the input "
                        "dimension but got padding length %d and input of dimension %d",
                        count, (int)t->dims);
  *b = (border){.dims = count / 2};
  for (int i = 0; i < b->dims; i++) {
    b->before[t->dims - 1 - i] = padding[2 * i];
    b->after[t->dims - 1 - i] = padding[2 * i + 1];
  }
  return WEIR_OK;
}

static weir_status size_with(int64_t *out, int64_t size, int64_t before, int64_t after)
{
  if (!__builtin_add_overflow(size, before, out) && !__builtin_add_overflow(*out, after, out))
    return WEIR_OK;
  return fail_invalid("a padding of %lld and %lld overflows", (long long)before, (long long)after);
}

/* ---- a constant ------------------------------------------------------------------------------ */

/* t without what negative paddings cut off. */
static weir_status cut(weir_tensor **out, const weir_tensor *t, const border *b)
{
  WEIR_TENSOR now = NULL;
  weir_status st = tensor_part(&now, t, t->dims, t->size, t->stride, 0);
  if (!st && recorded(t)) st = record_of(&now, t, RECORD_SHAPE, 0, 0, 0, 0);
  for (int d = 0; d < t->dims && !st; d++) {
    int64_t ends[2] = {b->before[d], b->after[d]};
    for (int end = 0; end < 2 && !st; end++) {
      weir_tensor *next = NULL;
      if (ends[end] >= 0) continue;
      st = weir_narrow(&next, now, d, end ? 0 : -ends[0], now->size[d] + ends[end]);
      weir_tensor_release(now);
      now = next;
    }
  }
  if (st) return st;
  *out = now;
  now = NULL;
  return WEIR_OK;
}

static weir_status pad_constant(weir_tensor **out, const weir_tensor *t, const border *b,
                                weir_scalar value)
{
  CALC(c);
  weir_tensor *middle = NULL;
  weir_shape shape = {.count = t->dims};
  int64_t at = 0;
  bool grows = false;
  weir_tensor *inner = c_call(c, cut, t, b);
  for (int d = 0; d < t->dims && !c->st; d++) {
    int64_t before = b->before[d] > 0 ? b->before[d] : 0, after = b->after[d] > 0 ? b->after[d] : 0;
    grows |= before || after;
    c->st = size_with(&shape.size[d], inner->size[d], before, after);
  }
  if (c->st) return c->st;
  if (!grows) return weir_clone(out, inner);
  bool records = recorded(t);
  WEIR_UNRECORDED;
  c->st = tensor_new_beside(out, t, shape);
  c_do(c, weir_fill_(*out, value));
  for (int d = 0; d < t->dims && !c->st; d++)
    at += (b->before[d] > 0 ? b->before[d] : 0) * (*out)->stride[d];
  if (!c->st && inner->numel)
    middle = c_call(c, tensor_part, *out, inner->dims, inner->size, (*out)->stride, at);
  if (!c->st && inner->numel) c->st = loop_copy(middle, inner);
  if (c->st) weir_tensor_drop(out);
  if (c->st || !records) return c->st;
  record r = {.kind = RECORD_PAD, .inputs = 1, .in = &t};
  for (int d = 0; d < t->dims; d++)
    r.n[2 * d] = b->before[d], r.n[2 * d + 1] = b->after[d];
  return record_made(out, &r, WEIR_OK);
}

/* ---- the others ------------------------------------------------------------------------------ */

/* Places `from` to `to` of the border: inside they are the operand's own. */
static weir_status fill_places(const weir_tensor *out, const weir_tensor *t, int dim, int64_t first,
                               int64_t from, int64_t to, weir_pad_mode mode)
{
  int64_t size = t->size[dim];
  if (from >= to) return WEIR_OK;
  if (from >= 0 && to <= size) return copy_run(out, from - first, t, from, dim, to - from, 1);
  bool below = from < 0;
  if (mode == WEIR_PAD_REPLICATE)
    return copy_run(out, from - first, t, below ? 0 : size - 1, dim, to - from, 0);
  if (mode == WEIR_PAD_REFLECT)
    return copy_run(out, from - first, t, below ? -from : 2 * size - 2 - from, dim, to - from, -1);
  return copy_run(out, from - first, t, below ? from + size : from - size, dim, to - from, 1);
}

static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

static weir_status pad_dim(weir_tensor **out, const weir_tensor *t, int dim, int64_t before,
                           int64_t after, weir_pad_mode mode)
{
  weir_shape shape = shape_of_tensor(t);
  int64_t size = t->size[dim], first = -before, end = size + after;
  shape.size[dim] = end - first;
  weir_status st = tensor_new_beside(out, t, shape);
  if (st) return st;
  if (!(*out)->numel)
    return recorded(t) ? record_of(out, t, RECORD_PAD_EDGE, dim, before, after, mode) : st;
  st = fill_places(*out, t, dim, first, first, least(end, 0), mode);
  if (!st) st = fill_places(*out, t, dim, first, most(first, 0), least(end, size), mode);
  if (!st) st = fill_places(*out, t, dim, first, most(first, size), end, mode);
  if (st) weir_tensor_drop(out);
  return st || !recorded(t) ? st : record_of(out, t, RECORD_PAD_EDGE, dim, before, after, mode);
}

static weir_status check_dims(const weir_tensor *t, const border *b, int count, weir_pad_mode mode)
{
  text_buffer text;
  int n = b->dims;
  if (n < 1 || n > 3 || (t->dims != n + 1 && t->dims != n + 2))
    return fail_unsupported("Padding size %d is not supported for %dD input tensor.", count,
                            (int)t->dims);
  if (mode == WEIR_PAD_CIRCULAR) return WEIR_OK;
  for (int d = t->dims == n + 2; d < t->dims; d++)
    if (!t->size[d])
      return fail_invalid("Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and "
                          "other non-zero dimensions for input, but got: %s",
                          n + 1, n + 2, shape_format(&text, shape_of_tensor(t)));
  return WEIR_OK;
}

/* How far a border may go, from the last dimension on. */
static weir_status check_reach(const weir_tensor *t, const border *b, int d, weir_pad_mode mode)
{
  text_buffer text;
  int64_t size = t->size[d], before = b->before[d], after = b->after[d], with;
  TRY(size_with(&with, size, before, after));
  if (mode == WEIR_PAD_REFLECT && (before >= size || after >= size))
    return fail_invalid("Argument #%d: Padding size should be less than the corresponding input "
                        "dimension, but got: padding (%lld, %lld) at dimension %d of input %s",
                        4 + 2 * (t->dims - 1 - d), (long long)before, (long long)after, d,
                        shape_format(&text, shape_of_tensor(t)));
  if (mode == WEIR_PAD_CIRCULAR) {
    if (before > size || after > size)
      return fail_invalid("Padding value causes wrapping around more than once.");
    if (with < 0) return fail_invalid("Negative padding value is resulting in an empty dimension");
  }
  return WEIR_OK;
}

/* That what check_reach() let through leaves something: of all dimensions, after all their
 * reach. */
static weir_status check_rest(const weir_tensor *t, const border *b, int d)
{
  text_buffer text;
  if (t->size[d] + b->before[d] + b->after[d] > 0) return WEIR_OK;
  return fail_invalid("padding (%lld, %lld) leaves nothing of dimension %d of input %s",
                      (long long)b->before[d], (long long)b->after[d], d,
                      shape_format(&text, shape_of_tensor(t)));
}

static weir_status pad_by_edges(weir_tensor **out, const weir_tensor *t, border *b, int count,
                                weir_pad_mode mode)
{
  WEIR_TENSOR now = NULL;
  weir_status st = check_dims(t, b, count, mode);
  for (int d = t->dims - 1; d >= t->dims - b->dims && !st; d--)
    st = check_reach(t, b, d, mode);
  for (int d = t->dims - 1; d >= t->dims - b->dims && !st && mode != WEIR_PAD_CIRCULAR; d--)
    st = check_rest(t, b, d);
  if (!st && mode == WEIR_PAD_CIRCULAR) { /* what is cut off is no edge */
    st = cut(&now, t, b);
    for (int d = 0; d < t->dims && !st; d++) {
      b->before[d] = most(b->before[d], 0);
      b->after[d] = most(b->after[d], 0);
      st = check_reach(now, b, d, mode);
    }
  }
  for (int d = t->dims - 1; d >= t->dims - b->dims && !st; d--) {
    weir_tensor *next = NULL;
    st = pad_dim(&next, now ? now : t, d, b->before[d], b->after[d], mode);
    weir_tensor_release(now);
    now = next;
  }
  if (st) return st;
  *out = now;
  now = NULL;
  return WEIR_OK;
}

/* torch lists reflection over one and two dimensions, and replication. */
static enum autocast_row pad_row(weir_pad_mode mode, int count)
{
  bool listed = mode == WEIR_PAD_REPLICATE || (mode == WEIR_PAD_REFLECT && count < 6);
  return listed ? AUTOCAST_PAD_EDGE : AUTOCAST_NONE;
}

weir_status weir_pad(weir_tensor **out, const weir_tensor *t, const int64_t *padding, int count,
                     weir_pad_mode mode, weir_scalar value)
{
  WEIR_OP(out, t);
  if (count > 0) WEIR_REQUIRE(padding);
  border b;
  TRY(border_of(&b, t, padding, count));
  switch (mode) {
  case WEIR_PAD_CONSTANT:
    return pad_constant(out, t, &b, value);
  case WEIR_PAD_REFLECT:
  case WEIR_PAD_REPLICATE:
  case WEIR_PAD_CIRCULAR:;
    WEIR_CASTS_WHERE(pad_row(mode, count), t);
    return pad_by_edges(out, t, &b, count, mode);
  }
  return fail_unsupported("Unrecognised padding mode %d", (int)mode);
}
