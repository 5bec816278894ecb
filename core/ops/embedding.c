/* embedding.c: rows of a table by index, their gradient; one_hot; indices of triangles. */
#include "core/ops/indexing.h"
#include "core/tensor/create.h"

/* ---- embedding ------------------------------------------------------------------------------- */

static weir_status check_embedding(const weir_tensor *indices, const weir_tensor *weight)
{
  if (weight->dims != 2) return fail_invalid("'weight' must be 2-D");
  if (!is_index(indices))
    return fail_invalid(
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
        "Long, Int; but got %s instead (while checking arguments for embedding)",
        weir_tensor_type(indices));
  return check_same_device(weight, indices);
}

weir_status weir_embedding(weir_tensor **out, const weir_tensor *indices, const weir_tensor *weight)
{
  WEIR_OP(out, indices, weight);
  CALC(c);
  weir_shape shape = weir_tensor_shape(indices);
  TRY(check_embedding(indices, weight));
  if (shape.count == WEIR_MAX_DIMS)
    return fail_invalid("embedding: indices of %d dimensions leave no room for one more",
                        WEIR_MAX_DIMS);
  if (indices->dims == 1) return weir_index_select(out, weight, 0, indices);
  shape.size[shape.count++] = weight->size[1];
  weir_tensor *row = c_reshape(c, indices, weir_shape(indices->numel));
  weir_tensor *rows = c_index_select(c, weight, 0, row);
  c_do(c, weir_view(out, rows, shape));
  if (!c->st) (*out)->created = VIEW_PLAIN; /* its memory is its own */
  return c->st;
}

/* The row of padding, -1: none, is not negative afterwards. */
static weir_status padding_row(int64_t *out, const weir_embedding_with_options *o, int64_t rows)
{
  *out = -1;
  if (!o->has_padding) return WEIR_OK;
  if (o->padding_idx >= rows || o->padding_idx < -rows)
    return fail_invalid("Padding_idx must be within num_embeddings");
  *out = o->padding_idx < 0 ? o->padding_idx + rows : o->padding_idx;
  return WEIR_OK;
}

static weir_status embedding_unrecorded(weir_tensor **out, const weir_tensor *indices,
                                        const weir_tensor *weight)
{
  WEIR_UNRECORDED;
  return weir_embedding(out, indices, weight);
}

weir_status weir_embedding_with(weir_tensor **out, const weir_tensor *indices, weir_tensor *weight,
                                const weir_embedding_with_options *options)
{
  WEIR_OP(out, indices, weight);
  static const weir_embedding_with_options none = {0};
  const weir_embedding_with_options *o = options ? options : &none;
  int64_t padding;
  weir_status st = check_embedding(indices, weight);
  if (!st) st = padding_row(&padding, o, weight->size[0]);
  if (!st && o->max_norm != 0)
    st = weir_embedding_renorm_(weight, indices, o->max_norm, o->norm_type != 0 ? o->norm_type : 2);
  if (st) return st;
  if (!recorded(weight) || (padding < 0 && !o->scale_grad_by_freq))
    return weir_embedding(out, indices, weight);
  st = embedding_unrecorded(out, indices, weight);
  const weir_tensor *in[3] = {weight, NULL, indices};
  record r = {.kind = RECORD_EMBEDDING,
              .inputs = 3,
              .in = in,
              .n = {weight->size[0], padding, o->scale_grad_by_freq}};
  return record_made(out, &r, st);
}

/* Each of grad's rows through how often its index is there. */
static weir_status scale_rows(weir_tensor **out, const weir_tensor *grad, const weir_tensor *row,
                              int64_t weights)
{
  CALC(c);
  weir_options o = {.dtype = WEIR_FLOAT32, .device = device_of_tensor(grad)};
  if (grad->dtype == WEIR_FLOAT64) o.dtype = WEIR_FLOAT64;
  weir_tensor *counts = c_call(c, weir_zeros, weir_shape(weights), &o);
  weir_tensor *ones = c_expand(c, c_call(c, weir_ones, weir_shape(1), &o), weir_shape(row->numel));
  c_do(c, weir_index_add_(counts, 0, row, ones));
  weir_tensor *column = c_unsqueeze(c, c_index_select(c, counts, 0, row), 1);
  if (c->st) return c->st;
  return calc_give(c, out, c_to_dtype(c, c_div(c, grad, column), grad->dtype));
}

static weir_status check_gradient(const weir_tensor *grad, const weir_tensor *indices,
                                  int64_t weights)
{
  if (!is_index(indices))
    return fail_invalid(
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: "
        "Long, Int; but got %s instead (while checking arguments for embedding_backward)",
        weir_tensor_type(indices));
  if (weights < 0)
    return fail_invalid("embedding_dense_backward: num_weights is %lld", (long long)weights);
  bool good = grad->dims == indices->dims + 1;
  for (int d = 0; d < indices->dims && good; d++)
    good = grad->size[d] == indices->size[d];
  if (!good)
    return fail_invalid(
        "embedding_dense_backward: grad must have the sizes of indices, and one more dimension");
  return check_same_device(grad, indices);
}

weir_status weir_embedding_dense_backward(weir_tensor **out, const weir_tensor *grad,
                                          const weir_tensor *indices, int64_t num_weights,
                                          int64_t padding_idx, bool scale_grad_by_freq)
{
  WEIR_OP(out, grad, indices);
  CALC(c);
  TRY(check_gradient(grad, indices, num_weights));
  int64_t size = grad->size[grad->dims - 1];
  weir_tensor *row = c_reshape(c, indices, weir_shape(indices->numel));
  weir_tensor *rows = c_reshape(c, grad, weir_shape(indices->numel, size));
  weir_tensor *scaled = scale_grad_by_freq ? c_call(c, scale_rows, rows, row, num_weights) : NULL;
  c_do(c, weir_zeros(out, weir_shape(num_weights, size), OPTIONS_ON(grad, grad->dtype)));
  c_do(c, weir_index_add_(*out, 0, row, scaled ? scaled : rows));
  if (!c->st && padding_idx >= 0 && padding_idx < num_weights) {
    WEIR_TENSOR left = NULL;
    c->st = weir_select(&left, *out, 0, padding_idx);
    c_do(c, weir_zero_(left));
  }
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* ---- one_hot --------------------------------------------------------------------------------- */

/* The least and the largest class; waits. */
static weir_status class_range(int64_t *least, int64_t *most, const weir_tensor *a)
{
  WEIR_TENSOR low = NULL, high = NULL;
  weir_scalar x, y;
  TRY(weir_aminmax(&low, &high, a));
  TRY(weir_item(&x, low));
  TRY(weir_item(&y, high));
  *least = x.i;
  *most = y.i;
  return WEIR_OK;
}

static weir_status count_classes(int64_t *classes, const weir_tensor *a)
{
  int64_t least, most;
  if (!a->numel)
    return *classes > 0 ? WEIR_OK
                        : fail_invalid("Can not infer total number of classes from empty tensor.");
  TRY(class_range(&least, &most, a));
  if (least < 0) return fail_invalid("Class values must be non-negative.");
  if (*classes == -1) *classes = most + 1;
  if (most >= *classes) return fail_invalid("Class values must be smaller than num_classes.");
  return WEIR_OK;
}

weir_status weir_one_hot(weir_tensor **out, const weir_tensor *a, int64_t num_classes)
{
  WEIR_OP(out, a);
  CALC(c);
  weir_shape shape = weir_tensor_shape(a);
  if (a->dtype != WEIR_INT64)
    return fail_invalid("one_hot is only applicable to index tensor of type LongTensor.");
  if (shape.count == WEIR_MAX_DIMS)
    return fail_invalid("one_hot: a tensor of %d dimensions has no room for one more",
                        WEIR_MAX_DIMS);
  TRY(count_classes(&num_classes, a));
  shape.size[shape.count++] = num_classes;
  c->st = weir_zeros(out, shape, OPTIONS_ON(a, WEIR_INT64));
  weir_tensor *column = c_unsqueeze(c, a, -1);
  c_do(c, weir_scatter_value_(*out, -1, column, weir_int(1)));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* ---- triangles ------------------------------------------------------------------------------- */

/* Elements on and below diagonal `offset` of row x col. */
static int64_t triangle_size(int64_t row, int64_t col, int64_t offset)
{
  int64_t sum = 0;
  for (int64_t i = 0; i < row; i++) {
    int64_t n = i + offset + 1;
    sum += n < 0 ? 0 : n > col ? col : n;
  }
  return sum;
}

static weir_status check_triangle(tensor_spec *s, int64_t row, int64_t col,
                                  const weir_options *options, const char *name)
{
  TRY(tensor_spec_of(s, options, WEIR_INT64));
  if (row < 0) return fail_invalid("row must be non-negative, got%lld", (long long)row);
  if (col < 0) return fail_invalid("col must be non-negative, got%lld", (long long)col);
  return is_index(&(weir_tensor){.dtype = (uint8_t)s->dtype})
             ? WEIR_OK
             : not_implemented(name, s->device, s->dtype);
}

static weir_status triangle_indices(weir_tensor **out, int64_t row, int64_t col, int64_t offset,
                                    const weir_options *options, bool low)
{
  CALC(c);
  weir_tensor *places = NULL;
  tensor_spec s;
  TRY(check_triangle(&s, row, col, options, low ? "tril_indices" : "triu_indices"));
  if (offset < -row) offset = -row;
  if (offset > col) offset = col;
  int64_t total = triangle_size(row, col, low ? offset : offset - 1);
  weir_options truth = {.dtype = WEIR_BOOL, .device = s.device};
  weir_tensor *all = c_call(c, weir_ones, weir_shape(row, col), &truth);
  weir_tensor *part = low ? c_tril(c, all, offset) : c_triu(c, all, offset);
  if (!c->st)
    places = c_call(c, places_of, part, false, weir_shape(row, col),
                    low ? total : row * col - total, "tril_indices");
  return c->st ? c->st : weir_to_dtype(out, places, s.dtype);
}

weir_status weir_tril_indices(weir_tensor **out, int64_t row, int64_t col, int64_t offset,
                              const weir_options *options)
{
  WEIR_OP(out);
  return triangle_indices(out, row, col, offset, options, true);
}

weir_status weir_triu_indices(weir_tensor **out, int64_t row, int64_t col, int64_t offset,
                              const weir_options *options)
{
  WEIR_OP(out);
  return triangle_indices(out, row, col, offset, options, false);
}
