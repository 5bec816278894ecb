/* arrange.c: elements in another order, or several times: copies to places.
 *
 * Every function makes its result and copies parts of its operand into parts of it, one request a
 * part. A part read backwards is one with a negative stride: no tensor has one, a request may. */
#include <stdlib.h>
#include <string.h>
#include "core/ops/ops.h"

weir_status copy_run(const weir_tensor *out, int64_t to, const weir_tensor *in, int64_t from,
                     int dim, int64_t length, int step)
{
  weir_loop l;
  if (length <= 0) return WEIR_OK;
  l.op = WEIR_OP_COPY;
  l.compute = out->dtype;
  l.has_alpha = false;
  l.dims = out->dims;
  memcpy(l.size, out->size, (size_t)out->dims * sizeof *l.size);
  l.size[dim] = length;
  l.out = operand_of(out, &l);
  l.in[0] = operand_of(in, &l);
  l.out.stride[dim] = out->stride[dim];
  l.in[0].stride[dim] = in->stride[dim] * step;
  l.out.data = out->data + to * out->stride[dim] * (int64_t)itemsize(out->dtype);
  l.in[0].data = in->data + from * in->stride[dim] * (int64_t)itemsize(in->dtype);
  return loop_run(device_of_tensor(out), &l);
}

/* ---- joining --------------------------------------------------------------------------------- */

/* t with at least `dims` dimensions: new ones where torch's atleast_2d() and atleast_3d() put them.
 */
static weir_status at_least(weir_tensor **out, const weir_tensor *t, int dims)
{
  weir_shape s = weir_tensor_shape(t);
  if (t->dims >= dims) return weir_view(out, t, s);
  if (dims == 1) return weir_reshape(out, t, weir_shape(1));
  if (dims == 2) return weir_reshape(out, t, weir_shape(1, s.count ? s.size[0] : 1));
  return weir_reshape(out, t,
                      s.count < 2 ? weir_shape(1, s.count ? s.size[0] : 1, 1)
                                  : weir_shape(s.size[0], s.size[1], 1));
}

/* at_least() and cat of one or more: along `dim`, or where that is -1 as hstack() has it. */
static weir_status join_at_least(weir_tensor **out, const weir_tensor *const *tensors, int count,
                                 int dims, int dim)
{
  for (int i = 0; i < count; i++)
    if (!tensors[i]) return fail_invalid("tensor %d of the list is NULL", i);
  if (dim < 0) dim = tensors[0]->dims > 1;
  weir_tensor **parts = calloc((size_t)count, sizeof(weir_tensor *));
  if (!parts) return fail_memory("%d views", count);
  weir_status st = WEIR_OK;
  for (int i = 0; i < count && !st; i++)
    st = at_least(&parts[i], tensors[i], dims);
  if (!st) st = weir_cat(out, (const weir_tensor *const *)parts, count, dim);
  for (int i = 0; i < count; i++)
    weir_tensor_release(parts[i]);
  free(parts);
  return st;
}

#define STACK(name, dims, dim)                                                                     \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *const *tensors, int count)         \
  {                                                                                                \
    WEIR_OP(out, tensors);                                                                         \
    WEIR_CASTS_LIST(CAT, tensors, count);                                                          \
    if (count < 1) return fail_invalid(#name " expects a non-empty TensorList");                   \
    return join_at_least(out, tensors, count, dims, dim);                                          \
  }
STACK(hstack, 1, -1)
STACK(vstack, 2, 0)
STACK(dstack, 3, 2)

/* ---- backwards ------------------------------------------------------------------------------- */

weir_status weir_flip(weir_tensor **out, const weir_tensor *t, const int *dims, int count)
{
  WEIR_OP(out, t);
  if (count > 0) WEIR_REQUIRE(dims);
  uint32_t flipped = 0;
  weir_loop l;
  TRY(count > 0 ? reduction_mask(&flipped, t, dims, count) : WEIR_OK);
  TRY(tensor_new_like(out, t, t->dtype, device_of_tensor(t), false));
  loop_begin(&l, WEIR_OP_COPY, *out);
  l.in[0] = operand_of(t, &l);
  for (int d = 0; d < t->dims && t->numel; d++) {
    if (!(flipped >> d & 1)) continue;
    l.in[0].data =
        (char *)l.in[0].data + (t->size[d] - 1) * t->stride[d] * (int64_t)itemsize(t->dtype);
    l.in[0].stride[d] = -t->stride[d];
  }
  weir_status st = loop_run(device_of_tensor(t), &l);
  if (st) weir_tensor_drop(out);
  return st || !recorded(t) ? st : record_of(out, t, RECORD_FLIP, flipped, 0, 0, 0);
}

weir_status weir_fliplr(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  if (t->dims < 2) return fail_invalid("Input must be >= 2-d.");
  return weir_flip(out, t, (const int[]){1}, 1);
}

weir_status weir_flipud(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  if (t->dims < 1) return fail_invalid("Input must be >= 1-d.");
  return weir_flip(out, t, (const int[]){0}, 1);
}

static weir_status check_turn(const weir_tensor *t, int *one, int *two)
{
  int a = *one, b = *two;
  if (t->dims < 2)
    return fail_invalid("expected total dims >= 2, but got total dims = %d", (int)t->dims);
  weir_status st = dim_resolve(one, a, t->dims);
  if (!st) st = dim_resolve(two, b, t->dims);
  if (st || *one != *two) return st;
  return fail_invalid("expected rotation dims to be different, but got dim0 = %d and dim1 = %d", a,
                      b);
}

weir_status weir_rot90(weir_tensor **out, const weir_tensor *t, int k, int dim0, int dim1)
{
  WEIR_OP(out, t);
  WEIR_TENSOR turned = NULL;
  weir_status st = check_turn(t, &dim0, &dim1);
  if (st) return st;
  switch ((k % 4 + 4) % 4) {
  case 1:
    st = weir_flip(&turned, t, &dim1, 1);
    return st ? st : weir_transpose(out, turned, dim0, dim1);
  case 2:
    return weir_flip(out, t, (const int[]){dim0, dim1}, 2);
  case 3:
    st = weir_flip(&turned, t, &dim0, 1);
    return st ? st : weir_transpose(out, turned, dim0, dim1);
  default:
    return weir_clone(out, t);
  }
}

/* ---- moved on -------------------------------------------------------------------------------- */

static weir_status roll_dim(weir_tensor **out, const weir_tensor *t, int64_t shift, int dim)
{
  int64_t size = t->dims ? t->size[dim] : 1;
  weir_status st = tensor_new_beside(out, t, shape_of_tensor(t));
  if (st || !t->numel)
    return st || !recorded(t) ? st : record_of(out, t, RECORD_ROLL, 0, dim, 0, 0);
  int64_t by = shift % size + (shift % size < 0 ? size : 0);
  st = copy_run(*out, by, t, 0, dim, size - by, 1);
  if (!st) st = copy_run(*out, 0, t, size - by, dim, by, 1);
  if (st) weir_tensor_drop(out);
  return st || !recorded(t) ? st : record_of(out, t, RECORD_ROLL, by, dim, 0, 0);
}

/* Along the elements in their order. */
static weir_status roll_all(weir_tensor **out, const weir_tensor *t, int64_t shift)
{
  CALC(c);
  weir_tensor *flat = c_reshape(c, t, weir_shape(t->numel));
  weir_tensor *rolled = c_call(c, roll_dim, flat, shift, 0);
  return c->st ? c->st : weir_view(out, rolled, shape_of_tensor(t));
}

weir_status weir_roll(weir_tensor **out, const weir_tensor *t, const int64_t *shifts,
                      const int *dims, int count)
{
  WEIR_OP(out, t);
  if (count < 1) return fail_invalid("`shifts` required");
  WEIR_REQUIRE(shifts);
  if (!dims && count != 1)
    return fail_invalid("shifts and dimensions must align. shifts: %d, dims:0", count);
  if (!dims) return roll_all(out, t, shifts[0]);
  if (!t->numel) return weir_clone(out, t); /* torch does not look at the dimensions */
  WEIR_TENSOR now = NULL;
  weir_status st = WEIR_OK;
  for (int i = 0; i < count && !st; i++) {
    int dim = 0;
    weir_tensor *next = NULL;
    st = t->dims ? dim_resolve(&dim, dims[i], t->dims)
                 : fail_invalid("Dimension specified as %d but tensor has no dimensions", dims[i]);
    if (!st) st = roll_dim(&next, now ? now : t, shifts[i], dim);
    weir_tensor_release(now);
    now = next;
  }
  if (st) return st;
  *out = now;
  now = NULL;
  return WEIR_OK;
}

/* ---- repeated -------------------------------------------------------------------------------- */

/* A loop of up to twice as many dimensions as tensors have: what a request has no room for is gone
 * through here. */
typedef struct repeat_loop {
  int dims;
  int64_t size[2 * WEIR_MAX_DIMS], out[2 * WEIR_MAX_DIMS], in[2 * WEIR_MAX_DIMS];
} repeat_loop;

static void add_dim(repeat_loop *r, int64_t size, int64_t out, int64_t in)
{
  if (size == 1) return;
  r->size[r->dims] = size;
  r->out[r->dims] = out;
  r->in[r->dims++] = in;
}

/* The dimensions from `from` on as one request. */
static weir_status repeat_inner(const repeat_loop *r, int from, const weir_tensor *out,
                                const weir_tensor *in, int64_t to)
{
  weir_loop l;
  l.op = WEIR_OP_COPY;
  l.compute = out->dtype;
  l.has_alpha = false;
  l.dims = r->dims - from;
  l.out.data = out->data + to * (int64_t)itemsize(out->dtype);
  l.in[0].data = in->data;
  l.out.dtype = l.in[0].dtype = out->dtype;
  for (int d = 0; d < l.dims; d++) {
    l.size[d] = r->size[from + d];
    l.out.stride[d] = r->out[from + d];
    l.in[0].stride[d] = r->in[from + d];
  }
  return loop_run(device_of_tensor(out), &l);
}

/* Repeats first, so that those gone through here copy the same elements again. */
static weir_status repeat_outer(const repeat_loop *r, int from, const weir_tensor *out,
                                const weir_tensor *in, int64_t to)
{
  if (r->dims - from <= WEIR_MAX_DIMS) return repeat_inner(r, from, out, in, to);
  weir_status st = WEIR_OK;
  for (int64_t i = 0; i < r->size[from] && !st; i++)
    st = repeat_outer(r, from + 1, out, in, to + i * r->out[from]);
  return st;
}

static weir_status repeat_into(const weir_tensor *out, const weir_tensor *in, weir_shape repeats)
{
  repeat_loop r = {0};
  int lead = repeats.count - in->dims;
  for (int d = 0; d < repeats.count; d++)
    add_dim(&r, repeats.size[d], out->stride[d] * (d < lead ? 1 : in->size[d - lead]), 0);
  for (int d = lead; d < repeats.count; d++)
    add_dim(&r, in->size[d - lead], out->stride[d], in->stride[d - lead]);
  return repeat_outer(&r, 0, out, in, 0);
}

weir_status weir_repeat(weir_tensor **out, const weir_tensor *t, weir_shape repeats)
{
  WEIR_OP(out, t);
  weir_shape shape = repeats;
  int lead = repeats.count - t->dims;
  if (lead < 0)
    return fail_invalid("Number of dimensions of repeat dims can not be smaller than number of "
                        "dimensions of tensor");
  if (check_dim_count(repeats.count)) return WEIR_EINVAL;
  for (int d = lead; d < repeats.count; d++)
    if (__builtin_mul_overflow(shape.size[d], t->size[d - lead], &shape.size[d]))
      shape.size[d] = INT64_MAX;
  weir_status st = tensor_new_beside(out, t, shape);
  if (!st && (*out)->numel) st = repeat_into(*out, t, repeats);
  if (st) weir_tensor_drop(out);
  if (st || !recorded(t)) return st;
  record r = {.kind = RECORD_REPEAT, .inputs = 1, .in = &t};
  for (int d = 0; d < repeats.count; d++)
    r.n[d] = repeats.size[d];
  return record_made(out, &r, WEIR_OK);
}

weir_status weir_tile(weir_tensor **out, const weir_tensor *t, weir_shape repeats)
{
  WEIR_OP(out, t);
  weir_shape all = repeats;
  int lead = t->dims - repeats.count;
  if (lead > 0) {
    all.count = t->dims;
    for (int d = 0; d < t->dims; d++)
      all.size[d] = d < lead ? 1 : repeats.size[d - lead];
  }
  return weir_repeat(out, t, all);
}
