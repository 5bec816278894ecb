/* bag.c: rows of a table by index, summed by bag.
 *
 * Which bag an index is of follows from where bags begin: their lengths, each number as often as
 * its bag is long. Rows are then summed, or their largest taken, by that. */
#include <math.h>
#include "core/ops/indexing.h"

/* What is asked for, all of it checked. */
typedef struct bags {
  const weir_tensor *weight, *offsets, *weights; /* borrowed; weights NULL: 1 each */
  weir_embedding_bag_options how;
  int64_t count; /* of bags that are the result */
  int64_t all;   /* with what lies after the last offset */
} bags;

/* ---- arguments ------------------------------------------------------------------------------- */

static weir_status check_bag_input(const bags *b, const weir_tensor *indices)
{
  if (indices->dims == 2 && b->offsets)
    return fail_invalid("if input is 2D, then offsets has to be None, as input is treated is a "
                        "mini-batch of fixed length sequences. However, found offsets of type %s",
                        weir_tensor_type(b->offsets));
  if (indices->dims != 1 && indices->dims != 2)
    return fail_invalid("input has to be 1D or 2D Tensor, but got Tensor of dimension %d",
                        (int)indices->dims);
  if (indices->dims == 1 && !b->offsets)
    return fail_invalid("offsets has to be a 1D Tensor but got None");
  if (b->offsets && b->offsets->dims != 1) return fail_invalid("offsets has to be a 1D Tensor");
  if (!is_index(indices) || (b->offsets && !is_index(b->offsets)))
    return fail_invalid("embedding_bag: indices and offsets are Long or Int, not %s",
                        weir_tensor_type(is_index(indices) ? b->offsets : indices));
  if (b->weight->dims != 2) return fail_invalid("'weight' must be 2-D");
  return WEIR_OK;
}

static weir_status check_bag_weight(const bags *b, const weir_tensor *indices)
{
  text_buffer one, two;
  weir_dtype d = b->weight->dtype;
  if (!dtype_is_floating(d))
    return fail_invalid(
        "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, "
        "BFloat16, Float, Double; but got %s instead (while checking arguments for embedding_bag)",
        weir_tensor_type(b->weight));
  if ((unsigned)b->how.mode > WEIR_BAG_MAX)
    return fail_invalid("mode has to be one of sum or mean or max");
  if (!b->weights) return WEIR_OK;
  bool same = b->weights->dims == indices->dims;
  for (int i = 0; i < indices->dims && same; i++)
    same = b->weights->size[i] == indices->size[i];
  if (!same)
    return fail_invalid("embedding_bag: If per_sample_weights (weir.Size(%s)) is not None, then it "
                        "must have the same shape as the input (weir.Size(%s))",
                        shape_format(&one, weir_tensor_shape(b->weights)),
                        shape_format(&two, weir_tensor_shape(indices)));
  if (b->how.mode != WEIR_BAG_SUM)
    return fail_unsupported("embedding_bag: per_sample_weights was not None. per_sample_weights is "
                            "only supported for mode='sum' (got mode='%s').",
                            b->how.mode == WEIR_BAG_MEAN ? "mean" : "max");
  return b->weights->dtype == b->weight->dtype
             ? WEIR_OK
             : fail_invalid(
                   "expected per_sample_weights to have the same type as weight: %s, got %s",
                   dtype_title(d), dtype_title(b->weights->dtype));
}

static int64_t offset_at(const weir_tensor *offsets, int64_t i)
{
  const char *at = offsets->data + i * offsets->stride[0] * (offsets->dtype == WEIR_INT32 ? 4 : 8);
  return scalar_at(at, offsets->dtype).i;
}

/* On the cpu, where they can be looked at. */
static weir_status check_offsets(const weir_tensor *offsets, int64_t length)
{
  int64_t last = 0;
  if (!offsets || !offsets->numel || device_of_tensor(offsets).type != WEIR_DEVICE_CPU)
    return WEIR_OK;
  if (offset_at(offsets, 0))
    return fail_invalid("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to "
                        "start from position 0. However, got %lld",
                        (long long)offset_at(offsets, 0));
  for (int64_t i = 0; i < offsets->numel; i++) {
    int64_t now = offset_at(offsets, i);
    if (now < last)
      return fail_invalid("offsets[%lld] is %lld, less than the one before it, %lld", (long long)i,
                          (long long)now, (long long)last);
    last = now;
  }
  if (last <= length) return WEIR_OK;
  return fail_invalid(
      "offsets[-1] can not be greater than input's length %lld but got offsets[-1] of %lld",
      (long long)length, (long long)last);
}

static weir_status check_bags(bags *b, const weir_tensor *indices)
{
  weir_status st = check_bag_input(b, indices);
  if (!st) st = check_bag_weight(b, indices);
  if (!st) st = check_same_device(b->weight, indices);
  if (!st && b->offsets) st = check_same_device(b->weight, b->offsets);
  if (!st && b->weights) st = check_same_device(b->weight, b->weights);
  if (!st) st = check_offsets(b->offsets, indices->numel);
  if (st) return st;
  b->all = b->offsets ? b->offsets->numel : indices->size[0];
  b->count = b->all - (b->offsets && b->how.include_last_offset);
  if (b->count >= 0) return WEIR_OK;
  return fail_invalid("include_last_offset: numOffsets must be at least 1");
}

/* ---- which bag ------------------------------------------------------------------------------- */

/* From where each begins to where the next one does, the last to `length`. */
static weir_status bag_lengths(weir_tensor **out, const weir_tensor *offsets, int64_t length)
{
  CALC(c);
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(offsets)};
  weir_tensor *starts = c_to_dtype(c, offsets, WEIR_INT64);
  weir_tensor *others = c_call(c, weir_narrow, starts, 0, 1, starts->numel - 1);
  weir_tensor *end = c_call(c, weir_full, weir_shape(1), weir_int(length), &o);
  weir_tensor *ends = c_call(c, weir_cat, (const weir_tensor *[]){others, end}, 2, 0);
  return c->st ? c->st : weir_sub(out, ends, starts);
}

/* The bag of each index: a row. */
static weir_status bag_numbers(weir_tensor **out, const bags *b, const weir_tensor *indices)
{
  CALC(c);
  WEIR_TENSOR row = NULL;
  weir_tensor *lengths = NULL;
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(indices)};
  if (b->offsets) {
    if (!b->all) return weir_zeros(out, weir_shape(indices->numel), &o);
    lengths = c_call(c, bag_lengths, b->offsets, indices->numel);
    c_do(c,
         places_of(&row, lengths, true, weir_shape_of(0, NULL), indices->numel, "embedding_bag"));
    return c->st ? c->st : weir_select(out, row, 0, 0);
  }
  c->st = weir_arange(&row, weir_int(0), weir_int(b->all), weir_int(1), &o);
  weir_tensor *wide = c_unsqueeze(c, row, 1);
  weir_tensor *all = NULL;
  all = c_call(c, weir_expand, wide, weir_tensor_shape(indices));
  return c->st ? c->st : weir_reshape(out, all, weir_shape(indices->numel));
}

/* ---- sums and extremes ----------------------------------------------------------------------- */

/* Where an index is padding_idx: a column; NULL: nothing is left out. */
static weir_status padding_column(weir_tensor **out, const bags *b, const weir_tensor *row)
{
  CALC(c);
  int64_t pad = b->how.padding_idx;
  if (!b->how.has_padding) return WEIR_OK;
  if (pad < 0) pad += b->weight->size[0];
  if (pad < 0 || pad >= b->weight->size[0])
    return fail_invalid("padding_idx must be within the number of embeddings");
  return calc_give(c, out, c_unsqueeze(c, c_eq_scalar(c, row, weir_int(pad)), 1));
}

/* How many indices each bag has, at least 1: a column of dtype. */
static weir_status bag_counts(weir_tensor **out, const bags *b, const weir_tensor *number,
                              const weir_tensor *padding, weir_dtype dtype)
{
  CALC(c);
  weir_options o = {.dtype = dtype, .device = device_of_tensor(number)};
  weir_tensor *counts = c_call(c, weir_zeros, weir_shape(b->all, 1), &o);
  weir_tensor *ones = c_call(c, weir_ones, weir_shape(number->numel, 1), &o);
  if (padding) c_do(c, weir_masked_fill_(ones, padding, weir_int(0)));
  c_do(c, weir_index_add_(counts, 0, number, ones));
  return c->st ? c->st : weir_maximum_scalar(out, counts, weir_int(1));
}

static weir_status sum_bags(weir_tensor **out, const bags *b, const weir_tensor *number,
                            weir_tensor *rows, const weir_tensor *padding)
{
  CALC(c);
  if (padding) c->st = weir_masked_fill_(rows, padding, weir_int(0));
  c_do(c, weir_new_zeros(out, rows, weir_shape(b->all, rows->size[1]), NULL));
  c_do(c, weir_index_add_(*out, 0, number, rows));
  if (c->st || b->how.mode != WEIR_BAG_MEAN) return c->st;
  weir_tensor *counts = c_call(c, bag_counts, b, number, padding, rows->dtype);
  return c->st ? c->st : weir_div_(*out, counts);
}

/* The largest of each bag, each column by itself; index: the bag of each element of rows. */
static weir_status bag_extremes(weir_tensor **out, const bags *b, const weir_tensor *rows,
                                const weir_tensor *index, weir_scatter_op op)
{
  CALC(c);
  weir_tensor *none = c_call(c, weir_new_zeros, rows, weir_shape(b->all, rows->size[1]), NULL);
  return c->st ? c->st : weir_scatter_reduce(out, none, 0, index, rows, op, false);
}

/* Which row the largest of each bag is in, the first of equals; 0 for a bag of nothing. */
static weir_status bag_places(weir_tensor **out, const bags *b, const weir_tensor *rows,
                              const weir_tensor *index, const weir_tensor *most)
{
  CALC(c);
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(rows)};
  weir_scalar end = weir_int(rows->size[0] - 1);
  weir_tensor *own = c_gather(c, most, 0, index);
  weir_tensor *is = c_call(c, weir_isclose, rows, own, 0, 0, true);
  weir_tensor *place =
      c_call(c, weir_arange, weir_int(0), weir_int(rows->size[0]), weir_int(1), &o);
  weir_tensor *column = c_unsqueeze(c, place, 1);
  weir_tensor *rank = c_where(c, is, column, c_call(c, weir_full, weir_shape_of(0, NULL), end, &o));
  return c->st ? c->st : bag_extremes(out, b, rank, index, WEIR_SCATTER_AMIN);
}

/* The elements of rows at those places, 0 where a bag has no row. */
static weir_status taken_rows(weir_tensor **out, const bags *b, const weir_tensor *rows,
                              const weir_tensor *places, const weir_tensor *number)
{
  CALC(c);
  weir_tensor *none = c_call(c, weir_ones, weir_shape(b->all), OPTIONS_ON(rows, WEIR_BOOL));
  c_do(c, weir_index_fill_(none, 0, number, weir_bool(false)));
  weir_tensor *column = c_unsqueeze(c, none, 1);
  c_do(c, weir_gather(out, rows, 0, places));
  return c->st ? c->st : weir_masked_fill_(*out, column, weir_int(0));
}

/* 0 in a bag of nothing. To be differentiated it is the elements themselves that are taken: of
 * equals one has the gradient, as in torch. */
static weir_status largest_of_bags(weir_tensor **out, const bags *b, const weir_tensor *number,
                                   weir_tensor *rows, const weir_tensor *padding)
{
  CALC(c);
  weir_tensor *most = NULL;
  weir_tensor *places = NULL;
  if (padding) c->st = weir_masked_fill_(rows, padding, weir_float(-INFINITY));
  weir_tensor *column = c_unsqueeze(c, number, 1);
  weir_tensor *index = c_call(c, weir_expand, column, weir_tensor_shape(rows));
  if (!c->st && recorded(rows) && rows->numel) {
    WEIR_UNRECORDED;
    most = c_call(c, bag_extremes, b, rows, index, WEIR_SCATTER_AMAX);
    places = c_call(c, bag_places, b, rows, index, most);
  }
  c_do(c, places ? taken_rows(out, b, rows, places, number)
                 : bag_extremes(out, b, rows, index, WEIR_SCATTER_AMAX));
  if (c->st || !padding) return c->st;
  weir_tensor *empty = c_eq_s(c, *out, -INFINITY);
  return c->st ? c->st : weir_masked_fill_(*out, empty, weir_int(0));
}

/* The rows, to be written to; short dtypes in float32, which sums are rounded in. */
static weir_status bag_rows(weir_tensor **out, const bags *b, const weir_tensor *row)
{
  CALC(c);
  weir_dtype d = b->weight->dtype;
  if (d == WEIR_FLOAT16 || d == WEIR_BFLOAT16) d = WEIR_FLOAT32;
  weir_tensor *wide = c_to_dtype(c, c_index_select(c, b->weight, 0, row), d);
  weir_tensor *times = b->weights ? c_reshape(c, b->weights, weir_shape(row->numel)) : NULL;
  weir_tensor *column = b->weights ? c_unsqueeze(c, times, 1) : NULL;
  if (b->weights) c_do(c, weir_mul_(wide, column));
  return calc_give(c, out, wide);
}

weir_status weir_embedding_bag(weir_tensor **out, const weir_tensor *indices,
                               const weir_tensor *weight, const weir_tensor *offsets,
                               const weir_tensor *per_sample_weights,
                               const weir_embedding_bag_options *options)
{
  WEIR_OP(out, indices, weight);
  CALC(c);
  WEIR_TENSOR made = NULL;
  bags b = {.weight = weight, .offsets = offsets, .weights = per_sample_weights};
  if (options) b.how = *options;
  c->st = check_bags(&b, indices);
  weir_tensor *row = c_reshape(c, indices, weir_shape(indices->numel));
  weir_tensor *number = c_call(c, bag_numbers, &b, indices);
  weir_tensor *padding = c_call(c, padding_column, &b, row);
  weir_tensor *rows = c_call(c, bag_rows, &b, row);
  c_do(c, b.how.mode == WEIR_BAG_MAX ? largest_of_bags(&made, &b, number, rows, padding)
                                     : sum_bags(&made, &b, number, rows, padding));
  weir_tensor *part = c_call(c, weir_narrow, made, 0, 0, b.count);
  return c->st ? c->st : weir_to_dtype(out, part, weight->dtype);
}
