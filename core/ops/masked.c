/* masked.c: elements chosen by masks, and the places of elements.
 *
 * How many elements a mask chooses the host must know before it makes what they go into: they are
 * counted, by chunks, the sum is waited for, and only then places are written. */
#include <string.h>
#include "core/ops/indexing.h"

/* ---- places ---------------------------------------------------------------------------------- */

/* The last of the sums; waits for the device. */
static weir_status read_sum(int64_t *total, const compute_target *target, const weir_tensor *sums,
                            const char *name)
{
  const int64_t *last = (const int64_t *)(const void *)sums->data + sums->numel - 1;
  if (target->place.stream)
    return async_copy(target->place.stream, name, WEIR_COPY_TO_HOST, total, last, sizeof *total);
  *total = *last;
  return WEIR_OK;
}

static weir_status run_places(weir_tensor **out, weir_places *p, const weir_tensor *dense,
                              int64_t total, const char *name)
{
  CALC(c);
  compute_target target;
  int64_t chunks = (p->count + WEIR_PLACES_CHUNK - 1) / WEIR_PLACES_CHUNK;
  weir_device device = device_of_tensor(dense);
  bool known = total >= 0;
  TRY(compute_target_of(&target, device));
  if (!target.compute->places) return compute_target_lacks(&target, name);
  weir_tensor *sums = c_call(c, tensor_new, WEIR_INT64, device, false, weir_shape(chunks + 1));
  if (c->st) return c->st;
  p->in = dense->data;
  p->sums = (int64_t *)(void *)sums->data;
  c->st = compute_target_done(&target, target.compute->places(target.self, target.stream, p), name);
  if (!c->st && total < 0) c->st = read_sum(&total, &target, sums, name);
  c_do(c, tensor_new(out, WEIR_INT64, device, false, weir_shape(p->dims, total)));
  if (known) c_do(c, weir_zero_(*out)); /* it may not be as it was stated */
  if (c->st || !total) return c->st;
  p->out = (int64_t *)(void *)(*out)->data;
  p->room = total;
  c->st = compute_target_done(&target, target.compute->places(target.self, target.stream, p), name);
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

weir_status places_of(weir_tensor **out, const weir_tensor *a, bool times, weir_shape shape,
                      int64_t total, const char *name)
{
  CALC(c);
  weir_places p = {.dtype = a->dtype, .count = a->numel, .times = times};
  p.dims = shape.count ? shape.count : 1;
  p.size[0] = a->numel;
  for (int d = 0; d < shape.count; d++)
    p.size[d] = shape.size[d];
  if (!a->numel)
    return tensor_new(out, WEIR_INT64, device_of_tensor(a), false, weir_shape(p.dims, 0));
  weir_tensor *dense = c_contiguous(c, a);
  return c->st ? c->st : run_places(out, &p, dense, total, name);
}

/* [dimensions, n], as it lies in memory. */
static weir_status nonzero_columns(weir_tensor **out, const weir_tensor *a)
{
  return places_of(out, a, false, weir_tensor_shape(a), -1, "nonzero");
}

static weir_status nonzero_rows(weir_tensor **out, const weir_tensor *a)
{
  CALC(c);
  weir_tensor *columns = c_call(c, nonzero_columns, a);
  if (c->st) return c->st;
  if (!a->dims) /* one row of no coordinates, or none */
    return tensor_new(out, WEIR_INT64, device_of_tensor(a), false, weir_shape(columns->size[1], 0));
  return weir_transpose(out, columns, 0, 1);
}

weir_status weir_nonzero(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  return nonzero_rows(out, a);
}

weir_status weir_argwhere(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  return nonzero_rows(out, a);
}

weir_status weir_nonzero_tuple(weir_tensor **out, int *count, int room, const weir_tensor *a)
{
  WEIR_OP_ON(out, count, a);
  CALC(c);
  *count = 0;
  weir_tensor *columns = c_call(c, nonzero_columns, a);
  return c->st ? c->st : weir_unbind(out, count, room, columns, 0);
}

/* ---- masked_fill ----------------------------------------------------------------------------- */

static weir_status check_fill_mask(const weir_tensor *a, const weir_tensor *mask)
{
  if (mask->dtype != WEIR_BOOL)
    return fail_invalid("masked_fill_ only supports boolean masks, but got mask with dtype %s",
                        mask->dtype == WEIR_UINT8 ? "unsigned char" : dtype_cxx(mask->dtype));
  return check_same_device(a, mask);
}

/* to = mask ? value : a; a may be `to`. */
static weir_status run_fill(const weir_tensor *to, const weir_tensor *a, const weir_tensor *mask,
                            const weir_tensor *value, weir_scalar number)
{
  weir_loop l;
  l.op = WEIR_OP_WHERE;
  l.compute = to->dtype;
  l.has_alpha = false;
  l.dims = to->dims;
  memcpy(l.size, to->size, (size_t)to->dims * sizeof *l.size);
  l.out = operand_of(to, &l);
  l.in[0] = operand_of(mask, &l);
  if (value)
    l.in[1] = operand_of(value, &l);
  else
    l.in[1] = (weir_operand){.dtype = number.dtype, .number = number};
  l.in[2] = operand_of(a, &l);
  return loop_run(device_of_tensor(to), &l);
}

/* value NULL: the number. */
static weir_status fill_new(weir_tensor **out, const weir_tensor *a, const weir_tensor *mask,
                            const weir_tensor *value, weir_scalar number)
{
  weir_shape shape = weir_tensor_shape(mask);
  weir_status st = shape_broadcast(&shape, a->size, a->dims);
  if (!st) st = check_fill_mask(a, mask);
  if (!st && !value) st = scalar_for(&number, number, a->dtype);
  if (!st) st = tensor_new_beside(out, a, shape);
  if (!st) st = run_fill(*out, a, mask, value, number);
  if (st) weir_tensor_drop(out);
  return st;
}

static weir_status check_fill_shape(const weir_tensor *t, const weir_tensor *mask)
{
  text_buffer one, two;
  weir_shape shape = weir_tensor_shape(t);
  TRY(shape_broadcast(&shape, mask->size, mask->dims));
  if (shape.count == t->dims && !memcmp(shape.size, t->size, (size_t)t->dims * sizeof *t->size))
    return WEIR_OK;
  return fail_invalid("output with shape %s doesn't match the broadcast shape %s",
                      shape_format(&one, weir_tensor_shape(t)), shape_format(&two, shape));
}

/* given: the value, if it is a tensor that may require a gradient. */
static weir_status fill_in_place(weir_tensor *t, const weir_tensor *mask, const weir_tensor *value,
                                 weir_scalar number, const weir_tensor *given)
{
  grad_node *node;
  CALC(c);
  weir_tensor *own = NULL;
  bool copy = false;
  c->st = check_fill_mask(t, mask);
  c_do(c, check_fill_shape(t, mask));
  if (!value) c_do(c, scalar_for(&number, number, t->dtype));
  c_do(c, overlap_check(&copy, t, mask));
  if (!c->st && copy) {
    own = c_clone(c, mask);
    mask = own;
  }
  c_do(c, change_begin(&node, RECORD_MASKED_FILL, t, given, mask, 0));
  return c->st ? c->st : change_end(node, t, run_fill(t, t, mask, value, number));
}

weir_status weir_masked_fill(weir_tensor **out, const weir_tensor *a, const weir_tensor *mask,
                             weir_scalar value)
{
  WEIR_OP(out, a, mask);
  weir_status st = fill_new(out, a, mask, NULL, value);
  return record_choice(out, st, RECORD_MASKED_FILL, a, NULL, mask, 0, 0);
}

weir_status weir_masked_fill_(weir_tensor *t, const weir_tensor *mask, weir_scalar value)
{
  WEIR_OP_ON(t, mask);
  return fill_in_place(t, mask, NULL, value, NULL);
}

/* A value on the cpu is a number like another. *value becomes NULL where it is one. */
static weir_status check_fill_value(const weir_tensor **value, weir_scalar *number,
                                    const weir_tensor *t)
{
  const weir_tensor *v = *value;
  *number = weir_int(0);
  if (v->dims)
    return fail_invalid("masked_fill_ only supports a 0-dimensional value tensor, but got tensor "
                        "with %d dimension(s).",
                        (int)v->dims);
  if (device_of_tensor(v).type != WEIR_DEVICE_CPU) return check_same_device(t, v);
  *value = NULL;
  return scalar_of(number, v);
}

weir_status weir_masked_fill_tensor(weir_tensor **out, const weir_tensor *a,
                                    const weir_tensor *mask, const weir_tensor *value)
{
  WEIR_OP(out, a, mask, value);
  weir_scalar number;
  const weir_tensor *given = value;
  weir_status st = check_fill_value(&value, &number, a);
  if (!st) st = fill_new(out, a, mask, value, number);
  return record_choice(out, st, RECORD_MASKED_FILL, a, given, mask, 0, 0);
}

weir_status weir_masked_fill_tensor_(weir_tensor *t, const weir_tensor *mask,
                                     const weir_tensor *value)
{
  WEIR_OP_ON(t, mask, value);
  CALC(c);
  weir_tensor *own = NULL;
  weir_scalar number;
  const weir_tensor *given = value;
  c->st = check_fill_value(&value, &number, t);
  if (!c->st && value) { /* it may be one of t's own */
    own = c_call(c, weir_clone, value);
    value = own;
  }
  return c->st ? c->st : fill_in_place(t, mask, value, number, given);
}

/* ---- masked_select, masked_scatter ----------------------------------------------------------- */

/* The numbers of elements of `shape` where mask, broadcast to it, is true: a row. */
static weir_status mask_places(weir_tensor **out, const weir_tensor *mask, weir_shape shape,
                               const char *name)
{
  CALC(c);
  weir_tensor *wide = c_expand(c, mask, shape);
  weir_tensor *places = c_call(c, places_of, wide, false, weir_shape_of(0, NULL), -1, name);
  return c->st ? c->st : weir_select(out, places, 0, 0);
}

weir_status weir_masked_select(weir_tensor **out, const weir_tensor *a, const weir_tensor *mask)
{
  WEIR_OP(out, a, mask);
  CALC(c);
  weir_shape shape = weir_tensor_shape(mask);
  if (mask->dtype != WEIR_BOOL) return fail_invalid("masked_select: expected BoolTensor for mask");
  c->st = check_same_device(a, mask);
  c_do(c, shape_broadcast(&shape, a->size, a->dims));
  weir_tensor *wide = c_call(c, weir_expand, a, shape);
  weir_tensor *places = c_call(c, mask_places, mask, shape, "masked_select");
  return c->st ? c->st : weir_take(out, wide, places);
}

static weir_status check_masked_scatter(const weir_tensor *t, const weir_tensor *mask,
                                        const weir_tensor *source)
{
  if (t->dtype != source->dtype)
    return fail_invalid(
        "masked_scatter: expected self and source to have same dtypes but got%s and %s",
        dtype_title(t->dtype), dtype_title(source->dtype));
  if (mask->dtype != WEIR_BOOL)
    return fail_invalid("masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                        dtype_title(mask->dtype));
  weir_status st = check_same_device(t, mask);
  return st ? st : check_same_device(t, source);
}

/* The numbers of t's elements that source goes to, and what goes there. */
static weir_status masked_part(weir_tensor **places, weir_tensor **part, const weir_tensor *t,
                               const weir_tensor *mask, const weir_tensor *source)
{
  CALC(c);
  TRY(mask_places(places, mask, weir_tensor_shape(t), "masked_scatter"));
  if (source->numel < (*places)->numel)
    return fail_invalid("Number of elements of source < number of ones in mask");
  weir_tensor *row = c_reshape(c, source, weir_shape(source->numel));
  return c->st ? c->st : weir_narrow(part, row, 0, 0, (*places)->numel);
}

weir_status weir_masked_scatter(weir_tensor **out, const weir_tensor *a, const weir_tensor *mask,
                                const weir_tensor *source)
{
  WEIR_OP(out, a, mask, source);
  CALC(c);
  WEIR_TENSOR places = NULL, part = NULL;
  weir_shape shape = weir_tensor_shape(mask);
  c->st = shape_broadcast(&shape, a->size, a->dims);
  c_do(c, check_masked_scatter(a, mask, source));
  weir_tensor *wide = c_call(c, weir_expand, a, shape);
  c_do(c, masked_part(&places, &part, wide, mask, source));
  return c->st ? c->st : weir_put(out, wide, places, part, false);
}

weir_status weir_masked_scatter_(weir_tensor *t, const weir_tensor *mask, const weir_tensor *source)
{
  WEIR_OP_ON(t, mask, source);
  WEIR_TENSOR places = NULL, part = NULL;
  weir_status st = check_masked_scatter(t, mask, source);
  if (!st) st = indexing_apart(t, source, mask);
  if (!st) st = masked_part(&places, &part, t, mask, source);
  if (st || (!places->numel && !recorded(t) && !recorded(source))) return st;
  return weir_put_(t, places, part, false);
}

/* ---- repeat_interleave ----------------------------------------------------------------------- */

weir_status weir_repeat_interleave(weir_tensor **out, const weir_tensor *a, int64_t repeats,
                                   int dim)
{
  WEIR_OP(out, a);
  CALC(c);
  WEIR_TENSOR more = NULL;
  int d;
  weir_shape shape = weir_tensor_shape(a), each = shape;
  if (repeats < 0) return fail_invalid("Repeats must be non-negative");
  TRY(dim_resolve(&d, dim, a->dims));
  if (!a->dims) each = shape = weir_shape(1);
  if (shape.count == WEIR_MAX_DIMS)
    return fail_invalid("repeat_interleave: a tensor of %d dimensions has no room for one more",
                        WEIR_MAX_DIMS);
  if (__builtin_mul_overflow(shape.size[d], repeats, &shape.size[d]))
    return fail_invalid("repeat_interleave: %lld times %lld places overflow", (long long)repeats,
                        (long long)each.size[d]);
  for (int i = each.count++; i > d + 1; i--)
    each.size[i] = each.size[i - 1];
  each.size[d + 1] = repeats;
  c->st = a->dims ? weir_unsqueeze(&more, a, d + 1) : weir_view(&more, a, weir_shape(1, 1));
  weir_tensor *wide = c_expand(c, more, each);
  if (c->st) return c->st;
  WEIR_TENSOR dense = NULL;
  c->st = wide->dense ? weir_clone(&dense, wide) : weir_contiguous(&dense, wide);
  return c->st ? c->st : weir_view(out, dense, shape);
}

static weir_status check_repeats(const weir_tensor *a, const weir_tensor *repeats, int dim,
                                 int asked)
{
  if (repeats->dims > 1) return fail_invalid("repeats must be 0-dim or 1-dim tensor");
  if (repeats->dims && repeats->numel != 1 && repeats->numel != indexing_size(a, dim))
    return fail_invalid("repeats must have the same size as input along dim, but got "
                        "repeats.size(0) = %lld and input.size(%d) = %lld",
                        (long long)repeats->numel, asked, (long long)indexing_size(a, dim));
  if (!is_index(repeats))
    return not_implemented("repeat_interleave_%s", device_of_tensor(repeats), repeats->dtype);
  return check_same_device(a, repeats);
}

weir_status weir_repeat_interleave_tensor(weir_tensor **out, const weir_tensor *a,
                                          const weir_tensor *repeats, int dim)
{
  WEIR_OP(out, a, repeats);
  CALC(c);
  WEIR_TENSOR row = NULL;
  weir_scalar lowest = weir_int(0);
  int d;
  c->st = dim_resolve(&d, dim, a->dims);
  c_do(c, check_repeats(a, repeats, d, dim));
  c_do(c, a->dims ? weir_view(&row, a, weir_tensor_shape(a)) : weir_view(&row, a, weir_shape(1)));
  weir_tensor *each = c_call(c, weir_expand, repeats, weir_shape(indexing_size(a, d)));
  weir_tensor *least = !c->st && each->numel ? c_call(c, weir_amin, each) : NULL;
  if (!c->st && each->numel) c->st = weir_item(&lowest, least);
  if (!c->st && lowest.i < 0) c->st = fail_invalid("repeats can not be negative");
  weir_tensor *places =
      c_call(c, places_of, each, true, weir_shape_of(0, NULL), -1, "repeat_interleave");
  weir_tensor *index = c_select(c, places, 0, 0);
  return c->st ? c->st : weir_index_select(out, row, d, index);
}
