/* indexing.c: elements of one dimension chosen by an index tensor: whole slices (index_select and
 * its kin), element by element (gather and its kin), and by their number (take, put_).
 *
 * All of it is one request: a loop over the index's elements, and over what it does not choose.
 * Functions that write check everything first, so that an error leaves what they write to as it
 * was. */
#include <math.h>
#include <string.h>
#include "core/ops/indexing.h"

/* ---- the request ----------------------------------------------------------------------------- */

void indexing_begin(weir_indexing *r, weir_index_op op, const weir_tensor *t)
{
  memset(r, 0, sizeof *r);
  r->op = op;
  r->dtype = t->dtype;
  r->count = 1;
  r->self.data = t->data;
  r->self.dtype = r->values.dtype = r->dtype;
  r->ordered = weir_get_deterministic();
}

void indexing_dim(weir_indexing *r, int64_t size, int64_t self_stride, int64_t values_stride)
{
  r->size[r->dims] = size;
  r->self.stride[r->dims] = self_stride;
  r->values.stride[r->dims++] = values_stride;
  r->count *= size;
}

weir_operand *indexing_index(weir_indexing *r, const weir_tensor *index, const weir_tensor *t,
                             int dim)
{
  weir_indices *i = &r->index[r->indices++];
  i->at.data = index->data;
  i->at.dtype = index->dtype;
  i->size = indexing_size(t, dim);
  i->step = indexing_stride(t, dim);
  i->dim = dim;
  return &i->at;
}

weir_status indexing_run(weir_indexing *r, const weir_tensor *t, const char *name)
{
  compute_target target;
  if (!r->count) return WEIR_OK;
  TRY(compute_target_of(&target, device_of_tensor(t)));
  if (!target.compute->index) return compute_target_lacks(&target, name);
  return compute_target_done(&target, target.compute->index(target.self, target.stream, r), name);
}

static weir_status index_shared(void)
{
  return fail_invalid(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to "
      "a single memory location. Please clone() the tensor before performing the operation.");
}

weir_status indexing_apart(const weir_tensor *t, const weir_tensor *values,
                           const weir_tensor *index)
{
  bool copy;
  weir_status st = overlap_check(&copy, t, values);
  if (!st && (copy || (values && values->numel && t->numel && values->data == t->data)))
    st = index_shared();
  if (!st) st = overlap_check(&copy, t, index);
  if (!st && (copy || (index && index->numel && t->numel && index->data == t->data)))
    st = index_shared();
  return st;
}

weir_status indexing_copy(weir_tensor **out, const weir_tensor *a)
{
  return loop_dense(out, a);
}

/* What was made of a copy of a failed. */
static weir_status drop_failed(weir_tensor **out, weir_status st)
{
  if (st) weir_tensor_drop(out);
  return st;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Slices of t by a row of places: with `values`, whose dimension `dim` goes with the index; one
 * that has no dimensions goes with no other. */
static void slice_loop(weir_indexing *r, const weir_tensor *t, int dim, const weir_tensor *index,
                       const weir_tensor *values)
{
  int dims = t->dims ? t->dims : 1;
  weir_operand *at = indexing_index(r, index, t, dim);
  for (int d = 0; d < dims; d++) {
    int64_t stride = values && values->dims ? values->stride[d] : 0;
    if (d == dim) at->stride[d] = index->dims ? index->stride[0] : 0;
    indexing_dim(r, d == dim ? index->numel : t->size[d], d == dim ? 0 : t->stride[d], stride);
  }
  if (values) r->values.data = values->data;
}

static weir_status check_select(const weir_tensor *a, int dim, const weir_tensor *index)
{
  TRY(check_same_device(a, index));
  if (index->dims > 1) return fail_invalid("index_select(): Index is supposed to be a vector");
  if (!is_index(index))
    return fail_invalid("index_select(): Expected dtype int32 or int64 for index");
  if (!a->dims && index->numel != 1)
    return fail_invalid("index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                        (long long)index->numel);
  if (index->numel && !indexing_size(a, dim))
    return fail_invalid("index_select(): self indexing axis dim should be positive");
  return WEIR_OK;
}

static weir_status select_slices(weir_tensor **out, const weir_tensor *a, int dim,
                                 const weir_tensor *index, const char *name)
{
  weir_indexing r;
  int64_t bad;
  weir_shape shape = weir_tensor_shape(a);
  if (a->dims) shape.size[dim] = index->numel;
  TRY(tensor_new_beside(out, a, shape));
  indexing_begin(&r, WEIR_INDEX_READ, a);
  slice_loop(&r, a, dim, index, *out);
  r.bad = &bad;
  weir_status st = indexing_run(&r, a, name);
  if (st == WEIR_EINVAL && device_of_tensor(a).type == WEIR_DEVICE_CPU)
    st = weir_fail(st, "index out of range in self");
  return drop_failed(out, st);
}

weir_status weir_index_select(weir_tensor **out, const weir_tensor *a, int dim,
                              const weir_tensor *index)
{
  WEIR_REQUIRE_OUT(out, a, index);
  int d;
  weir_status st = index_dim(&d, dim, a);
  if (!st) st = check_select(a, d, index);
  if (!st) st = select_slices(out, a, d, index, "index_select");
  return record_choice(out, st, RECORD_INDEX_SELECT, a, NULL, index, d, 0);
}

/* Whether source has t's sizes but that of `dim`. */
static bool same_slices(const weir_tensor *t, const weir_tensor *source, int dim)
{
  if (t->dims != source->dims) return false;
  for (int d = 0; d < t->dims; d++)
    if (d != dim && t->size[d] != source->size[d]) return false;
  return true;
}

static weir_status check_add(const weir_tensor *t, int dim, const weir_tensor *index,
                             const weir_tensor *source)
{
  text_buffer one, two;
  if (index->dims > 1)
    return fail_invalid("index_add_(): Index is supposed to be a vector, but got dim: %d with "
                        "type: %s and size: %s",
                        (int)index->dims, dtype_title(index->dtype),
                        shape_format(&one, weir_tensor_shape(index)));
  if (!is_index(index))
    return fail_invalid("index_add_(): Expected dtype int32/int64 for index but got: %s",
                        dtype_title(index->dtype));
  if (t->dtype != source->dtype)
    return fail_invalid("index_add_(): self (%s) and source (%s) must have the same scalar type",
                        dtype_title(t->dtype), dtype_title(source->dtype));
  if (dim && dim >= source->dims)
    return fail_invalid(
        "index_add_(): Indexing dim %d is out of bounds of the source tensor with dim %d", dim,
        (int)source->dims);
  if (index->numel != indexing_size(source, dim))
    return fail_invalid("index_add_(): Number of indices (%lld) should be equal to "
                        "source.size(dim): (%lld), for dim: %d",
                        (long long)index->numel, (long long)indexing_size(source, dim), dim);
  if (same_slices(t, source, dim)) return WEIR_OK;
  return fail_invalid("source tensor shape must match self tensor shape, excluding the specified "
                      "dimension. Got self.shape = %s source.shape = %s",
                      shape_format(&one, weir_tensor_shape(t)),
                      shape_format(&two, weir_tensor_shape(source)));
}

static weir_status check_copy_dims(const weir_tensor *t, const weir_tensor *index,
                                   const weir_tensor *source)
{
  if (index->dims > 1)
    return fail_invalid("index_copy_(): Index should have dimension 1 or 0 (got %d)",
                        (int)index->dims);
  if (!source->dims && index->numel != 1)
    return fail_invalid(
        "index_copy_(): When source is scalar, index should have one element (got %lld)",
        (long long)index->numel);
  if (source->dims && t->dims && source->dims != t->dims)
    return fail_invalid(
        "index_copy_(): When source and destination are not scalars, their dimensionality must "
        "match. Source dimensionality (%d), destination dimensionality (%d)",
        (int)source->dims, (int)t->dims);
  return WEIR_OK;
}

static weir_status check_copy_sizes(const weir_tensor *t, int dim, const weir_tensor *index,
                                    const weir_tensor *source)
{
  text_buffer one, two;
  bool number = !source->dims && t->numel == indexing_size(t, dim);
  bool row = !t->dims && source->dims == 1;
  if (!number && !row && !same_slices(t, source, dim))
    return fail_invalid("index_copy_(): Source/destination tensor must have same slice shapes. "
                        "Destination shape: %s at dimension %d and source shape: %s.",
                        shape_format(&one, weir_tensor_shape(t)), dim,
                        shape_format(&two, weir_tensor_shape(source)));
  if (!source->dims || index->numel == source->size[dim]) return WEIR_OK;
  return fail_invalid(
      "index_copy_(): Number of indices (%lld) should be equal to source.size(dim) (%lld)",
      (long long)index->numel, (long long)source->size[dim]);
}

static weir_status check_copy(const weir_tensor *t, int dim, const weir_tensor *index,
                              const weir_tensor *source)
{
  TRY(check_copy_dims(t, index, source));
  if (index->dtype != WEIR_INT64)
    return fail_invalid("index_copy_(): Expected a long tensor for index, but got %s",
                        dtype_title(index->dtype));
  if (t->dtype != source->dtype)
    return fail_invalid("index_copy_(): self and source expected to have the same dtype, but got "
                        "(self) %s and (source) %s",
                        dtype_title(t->dtype), dtype_title(source->dtype));
  return check_copy_sizes(t, dim, index, source);
}

/* index_add and index_copy. */
static weir_status check_slices(weir_index_op op, const weir_tensor *t, int *dim,
                                const weir_tensor *index, const weir_tensor *source)
{
  weir_status st = index_dim(dim, *dim, t);
  if (!st)
    st = op == WEIR_INDEX_ADD ? check_add(t, *dim, index, source)
                              : check_copy(t, *dim, index, source);
  if (!st) st = check_same_device(t, index);
  return st ? st : check_same_device(t, source);
}

static weir_status write_slices(weir_index_op op, const weir_tensor *t, int dim,
                                const weir_tensor *index, const weir_tensor *source)
{
  weir_indexing r;
  int64_t bad = 0;
  bool copies = op == WEIR_INDEX_SET;
  indexing_begin(&r, op, t);
  slice_loop(&r, t, dim, index, source);
  if (!t->dims && source->dims) r.values.stride[0] = source->stride[0];
  r.bad = &bad;
  weir_status st = indexing_run(&r, t, copies ? "index_copy_" : "index_add_");
  if (st == WEIR_EINVAL && copies && device_of_tensor(t).type == WEIR_DEVICE_CPU)
    st = weir_fail(st, "index_copy_(): index %lld is out of bounds for dimension %d with size %lld",
                   (long long)bad, dim, (long long)indexing_size(t, dim));
  return st;
}

static enum record_kind slices_kind(weir_index_op op)
{
  return op == WEIR_INDEX_ADD ? RECORD_INDEX_ADD : RECORD_INDEX_COPY;
}

static weir_status slices_new(weir_tensor **out, weir_index_op op, const weir_tensor *a, int dim,
                              const weir_tensor *index, const weir_tensor *source)
{
  weir_status st = check_slices(op, a, &dim, index, source);
  if (!st) st = indexing_copy(out, a);
  if (!st) st = write_slices(op, *out, dim, index, source);
  if (st) weir_tensor_drop(out);
  return record_choice(out, st, slices_kind(op), a, source, index, dim, 0);
}

static weir_status slices_in_place(weir_index_op op, weir_tensor *t, int dim,
                                   const weir_tensor *index, const weir_tensor *source)
{
  grad_node *node;
  weir_status st = check_slices(op, t, &dim, index, source);
  if (!st) st = indexing_apart(t, source, index);
  if (!st) st = change_begin(&node, slices_kind(op), t, source, index, dim);
  return st ? st : change_end(node, t, write_slices(op, t, dim, index, source));
}

/* source times alpha as source's dtype has it; source itself where that is 1. */
static weir_status times_alpha(weir_tensor **out, const weir_tensor *source, weir_scalar alpha)
{
  weir_scalar as;
  TRY(scalar_for(&as, alpha, source->dtype));
  bool one = as.dtype == WEIR_FLOAT64 ? as.f == 1 : as.dtype != WEIR_COMPLEX64 && as.i == 1;
  if (!one) return weir_mul_scalar(out, source, as);
  *out = weir_tensor_retain((weir_tensor *)source);
  return WEIR_OK;
}

#define SLICES(name, op, row)                                                                      \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, int dim,                        \
                          const weir_tensor *index, const weir_tensor *source)                     \
  {                                                                                                \
    WEIR_OP(out, a, index, source);                                                                \
    WEIR_CASTS(row, a, source);                                                                    \
    return slices_new(out, WEIR_INDEX_##op, a, dim, index, source);                                \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *t, int dim, const weir_tensor *index,                    \
                             const weir_tensor *source)                                            \
  {                                                                                                \
    WEIR_OP_ON(t, index, source);                                                                  \
    return slices_in_place(WEIR_INDEX_##op, t, dim, index, source);                                \
  }
SLICES(index_add, ADD, NONE)
SLICES(index_copy, SET, INDEX_COPY)

weir_status weir_index_add_alpha(weir_tensor **out, const weir_tensor *a, int dim,
                                 const weir_tensor *index, const weir_tensor *source,
                                 weir_scalar alpha)
{
  WEIR_OP(out, a, index, source);
  CALC(c);
  c->st = check_slices(WEIR_INDEX_ADD, a, &dim, index, source);
  weir_tensor *times = c_call(c, times_alpha, source, alpha);
  return c->st ? c->st : slices_new(out, WEIR_INDEX_ADD, a, dim, index, times);
}

weir_status weir_index_add_alpha_(weir_tensor *t, int dim, const weir_tensor *index,
                                  const weir_tensor *source, weir_scalar alpha)
{
  WEIR_OP_ON(t, index, source);
  CALC(c);
  c->st = check_slices(WEIR_INDEX_ADD, t, &dim, index, source);
  c_do(c, indexing_apart(t, source, index));
  weir_tensor *times = c_call(c, times_alpha, source, alpha);
  return c->st ? c->st : slices_in_place(WEIR_INDEX_ADD, t, dim, index, times);
}

/* ---- index_fill ------------------------------------------------------------------------------ */

static weir_status check_fill(const weir_tensor *t, int *dim, const weir_tensor *index,
                              weir_scalar *value)
{
  bool complex = value->dtype == WEIR_COMPLEX64 && t->dtype != WEIR_COMPLEX64;
  if (index->dtype != WEIR_INT64)
    return fail_invalid("index_fill_(): Expected dtype int64 for index.");
  if (complex)
    return fail_invalid(
        "index_fill_(): Converting complex Scalar to non-complex type is not supported");
  if (index->dims > 1) return fail_invalid("Index has to be a vector/scalar");
  weir_status st = index_dim(dim, *dim, t);
  if (!st) st = scalar_for(value, *value, t->dtype);
  return st ? st : check_same_device(t, index);
}

static weir_status fill_slices(const weir_tensor *t, int dim, const weir_tensor *index,
                               weir_scalar value)
{
  weir_indexing r;
  indexing_begin(&r, WEIR_INDEX_SET, t);
  slice_loop(&r, t, dim, index, NULL);
  r.values.number = value;
  r.wrap = true;
  r.ordered = false;
  return indexing_run(&r, t, "index_fill_");
}

weir_status weir_index_fill(weir_tensor **out, const weir_tensor *a, int dim,
                            const weir_tensor *index, weir_scalar value)
{
  WEIR_OP(out, a, index);
  weir_status st = check_fill(a, &dim, index, &value);
  if (!st) st = weir_clone(out, a);
  if (!st) st = fill_slices(*out, dim, index, value);
  if (st) weir_tensor_drop(out);
  return record_choice(out, st, RECORD_INDEX_FILL, a, NULL, index, dim, 0);
}

weir_status weir_index_fill_(weir_tensor *t, int dim, const weir_tensor *index, weir_scalar value)
{
  WEIR_REQUIRE(t, index);
  bool copy;
  grad_node *node;
  weir_status st = check_fill(t, &dim, index, &value);
  if (!st) st = overlap_check(&copy, t, NULL);
  if (!st) st = change_begin(&node, RECORD_INDEX_FILL, t, NULL, index, dim);
  return st ? st : change_end(node, t, fill_slices(t, dim, index, value));
}

/* ---- gather and scatter ---------------------------------------------------------------------- */

static int at_least_one(int dims)
{
  return dims ? dims : 1;
}

static weir_status check_gather(const weir_tensor *a, int dim, const weir_tensor *index)
{
  text_buffer one, two;
  if (!is_index(index)) return fail_invalid("gather(): Expected dtype int32/int64 for index");
  if (at_least_one(a->dims) != at_least_one(index->dims))
    return fail_invalid("Index tensor must have the same number of dimensions as input tensor");
  for (int d = 0; d < at_least_one(a->dims); d++)
    if (d != dim && indexing_size(index, d) > indexing_size(a, d))
      return fail_invalid("Size does not match at dimension %d expected index %s to be no larger "
                          "than self %s apart from dimension %d",
                          d, shape_format(&one, weir_tensor_shape(index)),
                          shape_format(&two, weir_tensor_shape(a)), dim);
  return check_same_device(a, index);
}

/* Elements of t by an index of as many dimensions; strides of `values` NULL: a number. */
static void element_loop(weir_indexing *r, const weir_tensor *t, int dim, const weir_tensor *index,
                         const weir_tensor *values)
{
  weir_operand *at = indexing_index(r, index, t, dim);
  for (int d = 0; d < at_least_one(index->dims); d++) {
    at->stride[d] = indexing_stride(index, d);
    indexing_dim(r, indexing_size(index, d), d == dim ? 0 : indexing_stride(t, d),
                 values ? indexing_stride(values, d) : 0);
  }
  if (values) r->values.data = values->data;
}

static weir_status gather_elements(weir_tensor **out, const weir_tensor *a, int dim,
                                   const weir_tensor *index, bool wrap)
{
  weir_indexing r;
  weir_status st = tensor_new_beside(out, a, weir_tensor_shape(index));
  if (st) return st;
  if (index->numel) {
    indexing_begin(&r, WEIR_INDEX_READ, a);
    element_loop(&r, a, dim, index, *out);
    r.wrap = wrap;
    st = drop_failed(out, indexing_run(&r, a, "gather"));
  }
  if (st || !recorded(a)) return st;
  record done = {.kind = RECORD_GATHER, .inputs = 3, .n = {dim, false, wrap}};
  done.in = (const weir_tensor *[]){a, NULL, index};
  return record_made(out, &done, st);
}

weir_status weir_gather(weir_tensor **out, const weir_tensor *a, int dim, const weir_tensor *index)
{
  WEIR_REQUIRE_OUT(out, a, index);
  weir_status st = index_dim(&dim, dim, a);
  if (!st && index->numel) st = check_gather(a, dim, index);
  return st ? st : gather_elements(out, a, dim, index, false);
}

/* src NULL: a number. */
static weir_status check_scatter_sizes(const weir_tensor *t, int dim, const weir_tensor *index,
                                       const weir_tensor *src)
{
  text_buffer one, two, three;
  bool wrong = false;
  int dims = at_least_one(index->dims);
  if (at_least_one(t->dims) != dims)
    return fail_invalid("Index tensor must have the same number of dimensions as self tensor");
  if (src && at_least_one(src->dims) != dims)
    return fail_invalid("Index tensor must have the same number of dimensions as src tensor");
  for (int d = 0; d < dims; d++) {
    wrong |= d != dim && indexing_size(index, d) > indexing_size(t, d);
    wrong |= src && indexing_size(index, d) > indexing_size(src, d);
  }
  if (!wrong) return WEIR_OK;
  (void)shape_format(&one, weir_tensor_shape(index));
  (void)shape_format(&two, weir_tensor_shape(t));
  if (src) (void)shape_format(&three, weir_tensor_shape(src));
  return fail_invalid("Expected index %s to be no larger than self %s apart from dimension %d%s%s",
                      one.at, two.at, dim, src ? " and to be no larger size than src " : "",
                      src ? three.at : "");
}

/* What is scattered. */
typedef struct scattering {
  weir_index_op op;
  const char *name; /* torch's, for messages */
  int dim;
  const weir_tensor *index, *src; /* borrowed; src NULL: the number */
  weir_scalar number;
} scattering;

static weir_status check_scatter(scattering *s, const weir_tensor *t)
{
  weir_status st = index_dim(&s->dim, s->dim, t);
  if (st) return st;
  if (s->index->numel && !is_index(s->index))
    return fail_invalid("%s(): Expected dtype int32/int64 for index", s->name);
  if (s->src && s->src->dtype != t->dtype)
    return fail_invalid("%s(): Expected self.dtype to be equal to src.dtype", s->name);
  if (s->index->numel) st = check_scatter_sizes(t, s->dim, s->index, s->src);
  if (!st && !s->src && s->index->numel) st = scalar_for(&s->number, s->number, t->dtype);
  if (!st) st = check_same_device(t, s->index);
  return st || !s->src ? st : check_same_device(t, s->src);
}

static weir_status run_scatter(const scattering *s, const weir_tensor *t)
{
  weir_indexing r;
  if (!s->index->numel) return WEIR_OK;
  indexing_begin(&r, s->op, t);
  element_loop(&r, t, s->dim, s->index, s->src);
  r.values.number = s->number;
  if (!s->src && s->op == WEIR_INDEX_SET) r.ordered = false;
  return indexing_run(&r, t, s->name);
}

static enum record_kind scatter_kind(const scattering *s)
{
  return s->op == WEIR_INDEX_ADD ? RECORD_SCATTER_ADD : RECORD_SCATTER;
}

static weir_status scatter_new(weir_tensor **out, scattering *s, const weir_tensor *a)
{
  weir_status st = check_scatter(s, a);
  if (!st) st = indexing_copy(out, a);
  if (!st) st = run_scatter(s, *out);
  if (st) weir_tensor_drop(out);
  return record_choice(out, st, scatter_kind(s), a, s->src, s->index, s->dim, 0);
}

static weir_status scatter_in_place(scattering *s, weir_tensor *t)
{
  grad_node *node;
  weir_status st = check_scatter(s, t);
  if (!st) st = indexing_apart(t, s->src, s->index);
  if (!st) st = change_begin(&node, scatter_kind(s), t, s->src, s->index, s->dim);
  return st ? st : change_end(node, t, run_scatter(s, t));
}

#define SCATTER(function, op, row)                                                                 \
  weir_status weir_##function(weir_tensor **out, const weir_tensor *a, int dim,                    \
                              const weir_tensor *index, const weir_tensor *src)                    \
  {                                                                                                \
    WEIR_OP(out, a, index, src);                                                                   \
    WEIR_CASTS(row, a, src);                                                                       \
    scattering s = {WEIR_INDEX_##op, "scatter", dim, index, src, {0}};                             \
    return scatter_new(out, &s, a);                                                                \
  }                                                                                                \
  weir_status weir_##function##_(weir_tensor *t, int dim, const weir_tensor *index,                \
                                 const weir_tensor *src)                                           \
  {                                                                                                \
    WEIR_OP_ON(t, index, src);                                                                     \
    scattering s = {WEIR_INDEX_##op, "scatter", dim, index, src, {0}};                             \
    return scatter_in_place(&s, t);                                                                \
  }
SCATTER(scatter, SET, NONE)
SCATTER(scatter_add, ADD, INDEX_PUT)

weir_status weir_scatter_value(weir_tensor **out, const weir_tensor *a, int dim,
                               const weir_tensor *index, weir_scalar value)
{
  WEIR_OP(out, a, index);
  scattering s = {WEIR_INDEX_SET, "scatter", dim, index, NULL, value};
  return scatter_new(out, &s, a);
}

weir_status weir_scatter_value_(weir_tensor *t, int dim, const weir_tensor *index,
                                weir_scalar value)
{
  WEIR_OP_ON(t, index);
  scattering s = {WEIR_INDEX_SET, "scatter", dim, index, NULL, value};
  return scatter_in_place(&s, t);
}

/* ---- scatter_reduce -------------------------------------------------------------------------- */

static const struct scatter_rule {
  weir_index_op op;
  const char *absent; /* the kernel that not all dtypes have */
} scatter_rules[] = {
    [WEIR_SCATTER_SUM] = {WEIR_INDEX_ADD, NULL},
    [WEIR_SCATTER_PROD] = {WEIR_INDEX_MUL, NULL},
    [WEIR_SCATTER_MEAN] = {WEIR_INDEX_ADD, "scatter_gather_tensor_%s_reduce_mean"},
    [WEIR_SCATTER_AMAX] = {WEIR_INDEX_MAX, "scatter_gather_tensor_%s_reduce_amax"},
    [WEIR_SCATTER_AMIN] = {WEIR_INDEX_MIN, "scatter_gather_tensor_%s_reduce_amin"}};

/* What changes nothing. */
static weir_scalar scatter_identity(weir_scatter_op op, weir_dtype dtype)
{
  double least, most;
  if (op == WEIR_SCATTER_SUM || op == WEIR_SCATTER_MEAN) return weir_int(0);
  if (op == WEIR_SCATTER_PROD) return weir_int(1);
  bool most_first = op == WEIR_SCATTER_AMIN;
  if (dtype_is_floating(dtype)) return weir_float(most_first ? INFINITY : -INFINITY);
  if (dtype == WEIR_BOOL) return weir_bool(most_first);
  if (dtype == WEIR_INT64) return weir_int(most_first ? INT64_MAX : INT64_MIN);
  dtype_range(dtype, &least, &most);
  return weir_int((int64_t)(most_first ? most : least));
}

static weir_status check_scatter_op(const weir_tensor *t, weir_scatter_op op)
{
  weir_dtype d = t->dtype;
  if ((unsigned)op > WEIR_SCATTER_AMIN)
    return fail_invalid("reduce argument must be either sum, prod, mean, amax or amin, got %d",
                        (int)op);
  bool extreme = op == WEIR_SCATTER_AMAX || op == WEIR_SCATTER_AMIN;
  if ((extreme && d == WEIR_COMPLEX64) || (op == WEIR_SCATTER_MEAN && d == WEIR_BOOL))
    return not_implemented(scatter_rules[op].absent, device_of_tensor(t), d);
  return WEIR_OK;
}

/* How many values each element is made of, at least 1. */
static weir_status scatter_counts(weir_tensor **out, const weir_tensor *t, const scattering *s,
                                  bool include_self)
{
  CALC(c);
  c->st = include_self ? weir_ones_like(out, t, NULL) : weir_zeros_like(out, t, NULL);
  weir_tensor *one = c_call(c, weir_new_ones, t, weir_shape_of(0, NULL), NULL);
  weir_tensor *ones = c_call(c, weir_expand, one, weir_tensor_shape(s->index));
  scattering counting = {WEIR_INDEX_ADD, "scatter_reduce", s->dim, s->index, ones, {0}};
  c_do(c, run_scatter(&counting, *out));
  if (!c->st && !include_self) {
    WEIR_TENSOR none = NULL;
    c->st = weir_eq_scalar(&none, *out, weir_int(0));
    c_do(c, weir_masked_fill_(*out, none, weir_int(1)));
  }
  return c->st;
}

static weir_status run_scatter_reduce(const weir_tensor *t, const scattering *s, weir_scatter_op op,
                                      bool include_self)
{
  WEIR_TENSOR counts = NULL;
  weir_status st = WEIR_OK;
  if (!s->index->numel) return WEIR_OK;
  if (op == WEIR_SCATTER_MEAN) st = scatter_counts(&counts, t, s, include_self);
  if (!st && !include_self) {
    scattering cleared = {
        WEIR_INDEX_SET, "scatter_reduce", s->dim, s->index, NULL, scatter_identity(op, t->dtype)};
    st = run_scatter(&cleared, t);
  }
  if (!st) st = run_scatter(s, t);
  if (st || !counts) return st;
  weir_dtype d = t->dtype;
  return dtype_is_integral(d) ? weir_floor_divide_((weir_tensor *)t, counts)
                              : weir_div_((weir_tensor *)t, counts);
}

weir_status weir_scatter_reduce(weir_tensor **out, const weir_tensor *a, int dim,
                                const weir_tensor *index, const weir_tensor *src,
                                weir_scatter_op op, bool include_self)
{
  WEIR_OP(out, a, index, src);
  const weir_tensor *in[3] = {a, src, index};
  scattering s = {WEIR_INDEX_ADD, "scatter", dim, index, src, {0}};
  weir_status st = check_scatter(&s, a);
  if (!st && index->numel) st = check_scatter_op(a, op);
  if (!st) st = indexing_copy(out, a);
  if (!st) s.op = scatter_rules[op].op;
  bool records = recorded_any(in, 2);
  {
    WEIR_UNRECORDED;
    if (!st) st = run_scatter_reduce(*out, &s, op, include_self);
    st = drop_failed(out, st);
  }
  if (st || !records) return st;
  record r = {.kind = RECORD_SCATTER_REDUCE, .inputs = 3, .in = in, .n = {s.dim, op, include_self}};
  return record_made(out, &r, st);
}

/* In place several requests follow each other, any of which may fail: they are done to a copy. */
weir_status weir_scatter_reduce_(weir_tensor *t, int dim, const weir_tensor *index,
                                 const weir_tensor *src, weir_scatter_op op, bool include_self)
{
  WEIR_OP_ON(t, index, src);
  CALC(c);
  c->st = indexing_apart(t, src, index);
  weir_tensor *before =
      !c->st && recorded_any((const weir_tensor *[]){t, src}, 2) ? c_clone(c, t) : NULL;
  const weir_tensor *self = before ? before : t;
  weir_tensor *whole = c_call(c, weir_scatter_reduce, self, dim, index, src, op, include_self);
  return c->st ? c->st : weir_copy_(t, whole, false);
}

/* ---- take_along_dim -------------------------------------------------------------------------- */

weir_status weir_take_along_dim(weir_tensor **out, const weir_tensor *a, const weir_tensor *indices,
                                int dim)
{
  WEIR_OP(out, a, indices);
  CALC(c);
  weir_shape shape = weir_tensor_shape(a), other;
  if (a->dims != indices->dims)
    return fail_invalid(
        "weir.take_along_dim(): input and indices should have the same number of dimensions, but "
        "got %d dimensions for input, and %d dimensions for indices",
        (int)a->dims, (int)indices->dims);
  if (indices->dtype != WEIR_INT64)
    return fail_invalid("weir.take_along_dim(): dtype of indices should be Long but got %s",
                        dtype_title(indices->dtype));
  c->st = index_dim(&dim, dim, a);
  if (!a->dims)
    c_do(c, fail_invalid("Dimension specified as %d but tensor has no dimensions", dim));
  c_do(c, check_same_device(a, indices));
  if (c->st) return c->st;
  shape.size[dim] = indices->size[dim];
  c->st = shape_broadcast(&shape, indices->size, indices->dims);
  other = shape;
  other.size[dim] = a->size[dim];
  weir_tensor *wide = c_expand(c, a, other);
  weir_tensor *places = c_call(c, weir_expand, indices, shape);
  return c->st ? c->st : gather_elements(out, wide, dim, places, true);
}

/* ---- by number ------------------------------------------------------------------------------- */

static weir_status out_of_range(weir_status st, const weir_tensor *t, int64_t bad)
{
  if (st != WEIR_EINVAL || device_of_tensor(t).type != WEIR_DEVICE_CPU) return st;
  return weir_fail(st, "out of range: tried to access index %lld on a tensor of %lld elements.",
                   (long long)bad, (long long)t->numel);
}

/* t, dense, by an index of any shape; values NULL: none yet. */
static void number_loop(weir_indexing *r, weir_index_op op, const weir_tensor *t,
                        const weir_tensor *index)
{
  indexing_begin(r, op, t);
  r->indices = 1;
  r->index[0] = (weir_indices){
      .at = {.data = index->data, .dtype = index->dtype}, .size = t->numel, .step = 1};
  r->wrap = true;
  for (int d = 0; d < index->dims; d++) {
    r->index[0].at.stride[d] = index->stride[d];
    indexing_dim(r, index->size[d], 0, 0);
  }
}

weir_status weir_take(weir_tensor **out, const weir_tensor *a, const weir_tensor *index)
{
  WEIR_OP(out, a, index);
  CALC(c);
  weir_indexing r;
  int64_t bad = 0;
  if (index->dtype != WEIR_INT64)
    return fail_invalid("take(): Expected a long tensor for index, but got %s",
                        dtype_title(index->dtype));
  if (!a->numel && index->numel) return fail_invalid("take(): tried to take from an empty tensor");
  c->st = check_same_device(a, index);
  weir_tensor *dense = c_contiguous(c, a);
  c_do(c, tensor_new_beside(out, a, weir_tensor_shape(index)));
  if (c->st) return c->st;
  number_loop(&r, WEIR_INDEX_READ, dense, index);
  r.values.data = (*out)->data;
  memcpy(r.values.stride, (*out)->stride, (size_t)index->dims * sizeof *r.values.stride);
  r.bad = &bad;
  c->st = indexing_run(&r, a, "take");
  c->st = drop_failed(out, out_of_range(c->st, a, bad));
  return record_choice(out, c->st, RECORD_TAKE, a, NULL, index, 0, 0);
}

static weir_status check_put(const weir_tensor *t, const weir_tensor *index,
                             const weir_tensor *source)
{
  if (index->dtype != WEIR_INT64)
    return fail_invalid("put_(): Expected a long tensor for index, but got %s",
                        dtype_title(index->dtype));
  if (t->dtype != source->dtype)
    return fail_invalid("put_(): self and source expected to have the same dtype, but got "
                        "self.dtype = %s and source.dtype = %s",
                        dtype_title(t->dtype), dtype_title(source->dtype));
  if (index->numel != source->numel)
    return fail_invalid("put_(): Expected source and index to have the same number of elements, "
                        "but got source.numel() = %lld, index.numel() = %lld",
                        (long long)source->numel, (long long)index->numel);
  if (!t->numel && index->numel)
    return fail_invalid("put_(): Tried to put elements into an empty tensor");
  weir_status st = check_same_device(t, index);
  return st ? st : check_same_device(t, source);
}

/* t is dense. */
static weir_status run_put(const weir_tensor *t, const weir_tensor *index,
                           const weir_tensor *source, bool accumulate)
{
  CALC(c);
  weir_indexing r;
  int64_t bad = 0;
  weir_tensor *row = c_reshape(c, source, weir_shape(source->numel));
  weir_tensor *places = c_reshape(c, index, weir_shape(index->numel));
  if (c->st) return c->st;
  number_loop(&r, accumulate ? WEIR_INDEX_ADD : WEIR_INDEX_SET, t, places);
  r.values.data = row->data;
  r.values.stride[0] = row->stride[0];
  r.bad = &bad;
  c->st = indexing_run(&r, t, "put_");
  return out_of_range(c->st, t, bad);
}

weir_status weir_put(weir_tensor **out, const weir_tensor *a, const weir_tensor *index,
                     const weir_tensor *source, bool accumulate)
{
  WEIR_OP(out, a, index, source);
  weir_status st = check_put(a, index, source);
  if (!st) st = indexing_copy(out, a);
  if (!st) st = run_put(*out, index, source, accumulate);
  if (st) weir_tensor_drop(out);
  return record_choice(out, st, RECORD_PUT, a, source, index, accumulate, 0);
}

/* Checked. */
static weir_status put_elements(const weir_tensor *t, const weir_tensor *index,
                                const weir_tensor *source, bool accumulate)
{
  CALC(c);
  if (t->dense) return run_put(t, index, source, accumulate);
  weir_tensor *whole = c_call(c, indexing_copy, t);
  c_do(c, run_put(whole, index, source, accumulate));
  return c->st ? c->st : loop_copy(t, whole);
}

weir_status weir_put_(weir_tensor *t, const weir_tensor *index, const weir_tensor *source,
                      bool accumulate)
{
  WEIR_OP_ON(t, index, source);
  grad_node *node;
  weir_status st = check_put(t, index, source);
  if (!st) st = indexing_apart(t, source, index);
  if (!st) st = change_begin(&node, RECORD_PUT, t, source, index, accumulate);
  return st ? st : change_end(node, t, put_elements(t, index, source, accumulate));
}
