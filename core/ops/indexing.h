/* indexing.h: what the operations that choose elements by index tensors share: the request
 * (weir_indexing) built and run, and places of elements. */
#ifndef WEIR_OPS_INDEXING_H
#define WEIR_OPS_INDEXING_H

#include "core/ops/ops.h"

/* A request of t's elements at no dimensions yet. `op` writes to t, or reads it. */
void indexing_begin(weir_indexing *r, weir_index_op op, const weir_tensor *t);
/* A dimension more, the innermost so far; strides in elements. */
void indexing_dim(weir_indexing *r, int64_t size, int64_t self_stride, int64_t values_stride);
/* An index more: of places of t's dimension `dim`; its strides along the loop's dimensions are to
 * be set, they are 0. */
weir_operand *indexing_index(weir_indexing *r, const weir_tensor *index, const weir_tensor *t,
                             int dim);
/* Runs it on t's device. `name`: torch's. An empty loop is nothing. */
weir_status indexing_run(weir_indexing *r, const weir_tensor *t, const char *name);

/* Before t is written to, chosen by `index`: refuses a t elements of which share memory, and a
 * `values` (NULL: none) or `index` that shares memory with t. */
weir_status indexing_apart(const weir_tensor *t, const weir_tensor *values,
                           const weir_tensor *index);
static inline int64_t indexing_size(const weir_tensor *t, int d) /* without dimensions: 1 */
{
  return t->dims ? t->size[d] : 1;
}
static inline int64_t indexing_stride(const weir_tensor *t, int d)
{
  return t->dims ? t->stride[d] : 1;
}
/* Whether it can be an index: int64 or int32. */
static inline bool is_index(const weir_tensor *t)
{
  return t->dtype == WEIR_INT64 || t->dtype == WEIR_INT32;
}
/* A dimension of t, which counts as having one. */
static inline weir_status index_dim(int *out, int dim, const weir_tensor *t)
{
  return dim_resolve(out, dim, t->dims);
}

/* dst and what `fill` does to it: a new tensor that is a dense copy of a. */
weir_status indexing_copy(weir_tensor **out, const weir_tensor *a);

/* Places of elements of `a` that are not 0, or, times, each as often as it says: int64 [dims, n],
 * of which total is n; shape: what coordinates are of, count 0: numbers. total -1: is not known,
 * and is waited for. */
weir_status places_of(weir_tensor **out, const weir_tensor *a, bool times, weir_shape shape,
                      int64_t total, const char *name);

#endif
