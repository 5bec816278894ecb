/* indexing.h: elements chosen by index tensors and by masks. Included by weir.h.
 *
 * Names, arguments, shapes and errors are PyTorch's. What ops.h states of all operations holds
 * here, too; a function whose name ends in _ writes to its first argument, the others make new
 * tensors. Dimensions may be negative: -1 is the last. `index` is int64, or int32 where it is
 * stated; negative indices count from the end only where it is stated. A tensor without dimensions
 * counts as one of one element.
 *
 * Bounds. On the cpu an index that is out of bounds is the call's error, EINVAL: "index 5 is out of
 * bounds for dimension 0 with size 3", and nothing is written. On a CUDA device the call has
 * returned before anybody looks: what is read there is 0, what would be written there is not, all
 * else is done, and the sentence is the error of the next call that waits for the device
 * (weir_stream_synchronize(), weir_item(), weir_tensor_read(), ...), once; the context stays whole,
 * unlike under PyTorch, where it is lost. Under launch blocking it is the call's own.
 *
 * Order. On the cpu elements that are written more than once meet their values in order, with any
 * number of threads; so they do on CUDA devices after weir_set_deterministic(true), more slowly.
 * Else one of several values is the one that is set, and sums are rounded in any order there. */
#ifndef WEIR_INDEXING_H
#define WEIR_INDEXING_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- along a dimension ------------------------------------------------------------------------
 * `index` (int64 or int32) is a row of places of dimension `dim`, or one place without dimensions.
 */

/* out's place i of dim is a's place index[i]. Errors: "index_select(): Index is supposed to be a
 * vector"; "index out of range in self" (cpu). */
WEIR_PUBLIC weir_status weir_index_select(weir_tensor **out, const weir_tensor *a, int dim,
                                          const weir_tensor *index);
/* To a's place index[i] is added, into it is copied, source's place i, which has a's other sizes
 * and its dtype; alpha: times it. index_copy takes int64 alone. Errors: "index_add_(): self (Float)
 * and source (Int) must have the same scalar type"; "index_copy_(): Number of indices (3) should be
 * equal to source.size(dim) (2)". */
WEIR_PUBLIC weir_status weir_index_add(weir_tensor **out, const weir_tensor *a, int dim,
                                       const weir_tensor *index, const weir_tensor *source);
WEIR_PUBLIC weir_status weir_index_add_(weir_tensor *t, int dim, const weir_tensor *index,
                                        const weir_tensor *source);
WEIR_PUBLIC weir_status weir_index_add_alpha(weir_tensor **out, const weir_tensor *a, int dim,
                                             const weir_tensor *index, const weir_tensor *source,
                                             weir_scalar alpha);
WEIR_PUBLIC weir_status weir_index_add_alpha_(weir_tensor *t, int dim, const weir_tensor *index,
                                              const weir_tensor *source, weir_scalar alpha);
WEIR_PUBLIC weir_status weir_index_copy(weir_tensor **out, const weir_tensor *a, int dim,
                                        const weir_tensor *index, const weir_tensor *source);
WEIR_PUBLIC weir_status weir_index_copy_(weir_tensor *t, int dim, const weir_tensor *index,
                                         const weir_tensor *source);
/* a's places index[i] (int64; negative ones count from the end) become `value`. */
WEIR_PUBLIC weir_status weir_index_fill(weir_tensor **out, const weir_tensor *a, int dim,
                                        const weir_tensor *index, weir_scalar value);
WEIR_PUBLIC weir_status weir_index_fill_(weir_tensor *t, int dim, const weir_tensor *index,
                                         weir_scalar value);

/* ---- element by element -----------------------------------------------------------------------
 * `index` (int64 or int32) has a's number of dimensions, and no larger sizes but along `dim`; it
 * stands for a's element at its own coordinates, with what it states in place of the one of `dim`.
 * Errors: "gather(): Expected dtype int32/int64 for index"; "Index tensor must have the same number
 * of dimensions as self tensor"; "Expected index [3, 1] to be no larger than self [2, 3] apart from
 * dimension 1 and to be no larger size than src [2, 3]"; "scatter(): Expected self.dtype to be
 * equal to src.dtype". */

/* out, of index's shape, is those elements. */
WEIR_PUBLIC weir_status weir_gather(weir_tensor **out, const weir_tensor *a, int dim,
                                    const weir_tensor *index);
/* Those elements become what stands in src (of a's dtype, no smaller than index) at index's
 * coordinates; `value`; themselves plus src's. */
WEIR_PUBLIC weir_status weir_scatter(weir_tensor **out, const weir_tensor *a, int dim,
                                     const weir_tensor *index, const weir_tensor *src);
WEIR_PUBLIC weir_status weir_scatter_(weir_tensor *t, int dim, const weir_tensor *index,
                                      const weir_tensor *src);
WEIR_PUBLIC weir_status weir_scatter_value(weir_tensor **out, const weir_tensor *a, int dim,
                                           const weir_tensor *index, weir_scalar value);
WEIR_PUBLIC weir_status weir_scatter_value_(weir_tensor *t, int dim, const weir_tensor *index,
                                            weir_scalar value);
WEIR_PUBLIC weir_status weir_scatter_add(weir_tensor **out, const weir_tensor *a, int dim,
                                         const weir_tensor *index, const weir_tensor *src);
WEIR_PUBLIC weir_status weir_scatter_add_(weir_tensor *t, int dim, const weir_tensor *index,
                                          const weir_tensor *src);

typedef enum weir_scatter_op {
  WEIR_SCATTER_SUM,
  WEIR_SCATTER_PROD,
  WEIR_SCATTER_MEAN,
  WEIR_SCATTER_AMAX,
  WEIR_SCATTER_AMIN
} weir_scatter_op;

/* Those elements become what is made of src's at all indices that stand for them and, include_self,
 * of themselves; others stay. mean and prod of integers wrap, mean is rounded down. Errors also
 * "\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'". */
WEIR_PUBLIC weir_status weir_scatter_reduce(weir_tensor **out, const weir_tensor *a, int dim,
                                            const weir_tensor *index, const weir_tensor *src,
                                            weir_scatter_op op, bool include_self);
WEIR_PUBLIC weir_status weir_scatter_reduce_(weir_tensor *t, int dim, const weir_tensor *index,
                                             const weir_tensor *src, weir_scatter_op op,
                                             bool include_self);
/* a's elements by `indices` (int64, negative ones count from the end), broadcast with a but along
 * dim: what argmax and argsort give. weir_take() by itself is torch's form without `dim`. Errors:
 * "take_along_dim(): input and indices should have the same number of dimensions, ...". */
WEIR_PUBLIC weir_status weir_take_along_dim(weir_tensor **out, const weir_tensor *a,
                                            const weir_tensor *indices, int dim);

/* ---- by element number ------------------------------------------------------------------------
 * Elements counted row by row; negative numbers (int64) count from the end. */

/* Of index's shape. Errors: "out of range: tried to access index 10 on a tensor of 6 elements.";
 * "take(): tried to take from an empty tensor". */
WEIR_PUBLIC weir_status weir_take(weir_tensor **out, const weir_tensor *a,
                                  const weir_tensor *index);
/* Those elements become, or `accumulate` are added, source's (t's dtype, as many as index has).
 * Errors: "put_(): Expected source and index to have the same number of elements, but got
 * source.numel() = 3, index.numel() = 2". */
WEIR_PUBLIC weir_status weir_put(weir_tensor **out, const weir_tensor *a, const weir_tensor *index,
                                 const weir_tensor *source, bool accumulate);
WEIR_PUBLIC weir_status weir_put_(weir_tensor *t, const weir_tensor *index,
                                  const weir_tensor *source, bool accumulate);

/* ---- a[i, :, mask] ----------------------------------------------------------------------------
 * indices[d] is for a's dimension d: NULL, all of it; int64 or int32, places (negative ones count
 * from the end); bool (or uint8), a mask for as many dimensions as it has, which is as
 * weir_nonzero() of it, and waits for the device as that does. Those that are tensors are
 * broadcast; the result has their dimensions where the first of them stands or, where a NULL stands
 * between them, before all others. There may be fewer indices than dimensions. Errors: "too many
 * indices for tensor of dimension 2 (got 3)"; "shape mismatch: indexing tensors could not be
 * broadcast together with shapes [2], [3]"; "The shape of the mask [2, 2] at index 1 does not match
 * the shape of the indexed tensor [2, 3] at index 1"; "tensors used as indices must be long, int,
 * byte or bool tensors". */

WEIR_PUBLIC weir_status weir_index(weir_tensor **out, const weir_tensor *a,
                                   const weir_tensor *const *indices, int count);
/* What weir_index() gives becomes, or `accumulate` grows by, values (a's dtype), broadcast. Errors
 * also "shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape
 * [2, 4]"; "Index put requires the source and destination dtypes match, got Float for the
 * destination and Long for the source." */
WEIR_PUBLIC weir_status weir_index_put(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *const *indices, int count,
                                       const weir_tensor *values, bool accumulate);
WEIR_PUBLIC weir_status weir_index_put_(weir_tensor *t, const weir_tensor *const *indices,
                                        int count, const weir_tensor *values, bool accumulate);

/* ---- masks and places -------------------------------------------------------------------------
 * Masks are of bool, and broadcast. Functions whose result's size depends on elements wait for the
 * device; while it is captured they fail, EINVAL. */

/* Where mask is true, `value`; the one element of `value`. Errors: "masked_fill_ only supports
 * boolean masks, but got mask with dtype float". */
WEIR_PUBLIC weir_status weir_masked_fill(weir_tensor **out, const weir_tensor *a,
                                         const weir_tensor *mask, weir_scalar value);
WEIR_PUBLIC weir_status weir_masked_fill_(weir_tensor *t, const weir_tensor *mask,
                                          weir_scalar value);
WEIR_PUBLIC weir_status weir_masked_fill_tensor(weir_tensor **out, const weir_tensor *a,
                                                const weir_tensor *mask, const weir_tensor *value);
WEIR_PUBLIC weir_status weir_masked_fill_tensor_(weir_tensor *t, const weir_tensor *mask,
                                                 const weir_tensor *value);
/* The elements where mask is true, in order: one dimension. Waits. */
WEIR_PUBLIC weir_status weir_masked_select(weir_tensor **out, const weir_tensor *a,
                                           const weir_tensor *mask);
/* Where mask is true, source's elements in their order. Waits. Errors: "Number of elements of
 * source < number of ones in mask". */
WEIR_PUBLIC weir_status weir_masked_scatter(weir_tensor **out, const weir_tensor *a,
                                            const weir_tensor *mask, const weir_tensor *source);
WEIR_PUBLIC weir_status weir_masked_scatter_(weir_tensor *t, const weir_tensor *mask,
                                             const weir_tensor *source);
/* Coordinates of elements that are not 0, a row each: int64, [n, dimensions], which lies in memory
 * column by column. Waits. argwhere is the same. */
WEIR_PUBLIC weir_status weir_nonzero(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_argwhere(weir_tensor **out, const weir_tensor *a);
/* torch.where(condition): the same by dimension, out[d] [n]; out has room for `room`, *count states
 * how many there are. */
WEIR_PUBLIC weir_status weir_nonzero_tuple(weir_tensor **out, int *count, int room,
                                           const weir_tensor *a);
/* Every place of dimension `dim` `repeats` times; repeats[i] times (int64 or int32; one element: of
 * each; waits). Errors: "repeats can not be negative"; "repeats must have the same size as input
 * along dim, but got repeats.size(0) = 3 and input.size(0) = 2". */
WEIR_PUBLIC weir_status weir_repeat_interleave(weir_tensor **out, const weir_tensor *a,
                                               int64_t repeats, int dim);
WEIR_PUBLIC weir_status weir_repeat_interleave_tensor(weir_tensor **out, const weir_tensor *a,
                                                      const weir_tensor *repeats, int dim);

/* ---- made of numbers ------------------------------------------------------------------------- */

/* 1 in a new last dimension of num_classes at what a (int64) states, 0 elsewhere; num_classes -1:
 * as many as there are. Waits. Errors: "Class values must be smaller than num_classes." */
WEIR_PUBLIC weir_status weir_one_hot(weir_tensor **out, const weir_tensor *a, int64_t num_classes);
/* Coordinates of the triangle on and below (above) diagonal `offset` of a matrix: int64 (or what
 * options give) [2, n], row by row. Errors: "row must be non-negative, got-1". */
WEIR_PUBLIC weir_status weir_tril_indices(weir_tensor **out, int64_t row, int64_t col,
                                          int64_t offset, const weir_options *options);
WEIR_PUBLIC weir_status weir_triu_indices(weir_tensor **out, int64_t row, int64_t col,
                                          int64_t offset, const weir_options *options);

/* 0 to n - 1 in an order that the device's generator decides, the same on every device for a seed:
 * int64, or the dtype options give. Errors: "\"randperm\" not implemented for 'Bool'"; "n cannot be
 * greater than 2049 for Half type." */
WEIR_PUBLIC weir_status weir_randperm(weir_tensor **out, int64_t n, const weir_options *options);

/* ---- embeddings -------------------------------------------------------------------------------
 * weight is [num_embeddings, size], indices int64 or int32. */

/* weight's rows: indices' shape and size after it. Errors: "'weight' must be 2-D"; "index out of
 * range in self" (cpu). */
WEIR_PUBLIC weir_status weir_embedding(weir_tensor **out, const weir_tensor *indices,
                                       const weir_tensor *weight);

typedef struct weir_embedding_with_options {
  bool has_padding;        /* of row padding_idx there is no gradient */
  int64_t padding_idx;     /* negative ones count from the end */
  double max_norm;         /* 0: none; else weir_embedding_renorm_() of weight first */
  double norm_type;        /* 0: 2 */
  bool scale_grad_by_freq; /* gradients of rows are through how often they are named */
} weir_embedding_with_options;

/* torch.nn.functional.embedding() with its arguments; NULL: none. Errors also "Padding_idx must be
 * within num_embeddings". */
WEIR_PUBLIC weir_status weir_embedding_with(weir_tensor **out, const weir_tensor *indices,
                                            weir_tensor *weight,
                                            const weir_embedding_with_options *options);
/* In place, unrecorded: rows of weight that indices name are made smaller where their
 * norm_type-norm is above max_norm: what torch.nn.functional.embedding() does first where it has a
 * max_norm. */
WEIR_PUBLIC weir_status weir_embedding_renorm_(weir_tensor *weight, const weir_tensor *indices,
                                               double max_norm, double norm_type);
/* The gradient of weight [num_weights, size]: sums of grad's rows by index; those of padding_idx
 * (-1: none) are left out; scale_grad_by_freq: through how often the index is there. */
WEIR_PUBLIC weir_status weir_embedding_dense_backward(weir_tensor **out, const weir_tensor *grad,
                                                      const weir_tensor *indices,
                                                      int64_t num_weights, int64_t padding_idx,
                                                      bool scale_grad_by_freq);

typedef enum weir_bag_mode { WEIR_BAG_MEAN, WEIR_BAG_SUM, WEIR_BAG_MAX } weir_bag_mode;

typedef struct weir_embedding_bag_options {
  weir_bag_mode mode;
  bool include_last_offset; /* the last offset is where the last bag ends */
  bool has_padding;         /* what is padding_idx is left out */
  int64_t padding_idx;      /* a row of weight; negative ones count from the end */
} weir_embedding_bag_options;

/* Rows of weight (floating point), the mean (sum, largest) of each bag; of a bag of nothing 0.
 * indices [bags, n], each row a bag; or a row, whose bags begin at `offsets` (a row of indices'
 * kind that begins with 0 and grows), else NULL. per_sample_weights (NULL: none): what each row is
 * multiplied with first, for sums. options NULL: the mean. float16 and bfloat16 are summed in
 * float32. Errors: "offsets[0] has to be 0, ..." (cpu); "input has to be 1D or 2D Tensor, but got
 * Tensor of dimension 3"; "per_sample_weights is only supported for mode='sum'". */
WEIR_PUBLIC weir_status weir_embedding_bag(weir_tensor **out, const weir_tensor *indices,
                                           const weir_tensor *weight, const weir_tensor *offsets,
                                           const weir_tensor *per_sample_weights,
                                           const weir_embedding_bag_options *options);

/* ---- parts replaced --------------------------------------------------------------------------- A
 * copy of `a` in which a part (weir_diagonal(), weir_select(), weir_slice() state which) is src,
 * cast to a's dtype. Errors: "expected src to have a size equal to the slice of self. src size =
 * [2], slice size = [3]". */
WEIR_PUBLIC weir_status weir_diagonal_scatter(weir_tensor **out, const weir_tensor *a,
                                              const weir_tensor *src, int64_t offset, int dim1,
                                              int dim2);
WEIR_PUBLIC weir_status weir_select_scatter(weir_tensor **out, const weir_tensor *a,
                                            const weir_tensor *src, int dim, int64_t index);
WEIR_PUBLIC weir_status weir_slice_scatter(weir_tensor **out, const weir_tensor *a,
                                           const weir_tensor *src, int dim, int64_t start,
                                           int64_t end, int64_t step);

#ifdef __cplusplus
}
#endif

#endif
