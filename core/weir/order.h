/* order.h: running reductions; elements in order, the largest, the middle ones; places in what is
 * in order. Included by weir.h.
 *
 * What ops.h states of all operations holds here, too. Dimensions that are negative count from the
 * end. NaN is larger than all else. Where a function has two results, the second is int64: places
 * in the dimension. Functions without `dim` are of all elements. Of equals their order is kept
 * wherever there is one, on every device: places are those of torch's stable sort, which its
 * topk(), kthvalue() and median() do not promise. Errors, in addition to those that are named:
 * "Dimension out of range (expected to be in range of [-2, 1], but got 2)"; "\"kthvalue_cpu\" not
 * implemented for 'Bool'"; out of memory. */
#ifndef WEIR_ORDER_H
#define WEIR_ORDER_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- running reductions -----------------------------------------------------------------------
 * Element i is what elements 0 to i of its dimension come to; a's shape, row-major. Floating point
 * is accumulated in float64. */

/* Of bool and integers int64. In place a's dtype stays. Errors: "\"cumsum_out_cpu\" not implemented
 * for 'Bool'" (in place). */
WEIR_PUBLIC weir_status weir_cumsum(weir_tensor **out, const weir_tensor *a, int dim);
WEIR_PUBLIC weir_status weir_cumsum_(weir_tensor *a, int dim);
WEIR_PUBLIC weir_status weir_cumprod(weir_tensor **out, const weir_tensor *a, int dim);
WEIR_PUBLIC weir_status weir_cumprod_(weir_tensor *a, int dim);

/* log(sum(exp(x))), which may each be too large. Of floating point; torch has it of complex
 * numbers, too. */
WEIR_PUBLIC weir_status weir_logcumsumexp(weir_tensor **out, const weir_tensor *a, int dim);

/* The largest, or the smallest, so far, and the place of the last of equals; NaN stays. */
WEIR_PUBLIC weir_status weir_cummax(weir_tensor **values, weir_tensor **indices,
                                    const weir_tensor *a, int dim);
WEIR_PUBLIC weir_status weir_cummin(weir_tensor **values, weir_tensor **indices,
                                    const weir_tensor *a, int dim);

/* ---- elements in order ------------------------------------------------------------------------
 */

/* In order, the least first or, descending, the largest, and where each was; always stable. Strides
 * are a's where it has no holes. Errors: " Sort does not support complex dtypes on CPU". */
WEIR_PUBLIC weir_status weir_sort(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                                  int dim, bool descending);
/* The places alone. */
WEIR_PUBLIC weir_status weir_argsort(weir_tensor **out, const weir_tensor *a, int dim,
                                     bool descending);

/* The k largest or, largest false, the k smallest, these first of all; torch's sorted=True. Errors:
 * "selected index k out of range", " topk does not support complex dtypes on CPU", "topk does not
 * support bool dtypes on CPU". */
WEIR_PUBLIC weir_status weir_topk(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                                  int64_t k, int dim, bool largest);

/* The k-th smallest, counted from 1. Errors: "kthvalue(): selected number k out of range for
 * dimension 1", "kthvalue(): Expected reduction dim 0 to have non-zero size." */
WEIR_PUBLIC weir_status weir_kthvalue(weir_tensor **values, weir_tensor **indices,
                                      const weir_tensor *a, int64_t k, int dim, bool keepdim);

/* The middle one, of an even number the smaller of both; NaN where there is one, its first. Of all
 * of nothing NaN, or the least integer. Errors: "median(): Expected reduction dim 0 to have
 * non-zero size.", "\"median_cpu\" not implemented for 'Bool'", of a dimension "median_out". */
WEIR_PUBLIC weir_status weir_median(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_median_dim(weir_tensor **values, weir_tensor **indices,
                                        const weir_tensor *a, int dim, bool keepdim);
/* The same of those that are not NaN; of nothing but NaN it. */
WEIR_PUBLIC weir_status weir_nanmedian(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_nanmedian_dim(weir_tensor **values, weir_tensor **indices,
                                           const weir_tensor *a, int dim, bool keepdim);

/* What lies q of the way, 0 to 1, from the smallest to the largest, between two in proportion
 * (torch's interpolation "linear"); NaN where there is one. Of float32 and float64. Errors:
 * "quantile() input tensor must be either float or double dtype", "quantile() input tensor must be
 * non-empty", "quantile() q must be in the range [0, 1] but got 1.5". */
WEIR_PUBLIC weir_status weir_quantile(weir_tensor **out, const weir_tensor *a, double q);
WEIR_PUBLIC weir_status weir_quantile_dim(weir_tensor **out, const weir_tensor *a, double q,
                                          int dim, bool keepdim);

/* The same of those that are not NaN; of nothing but NaN it. */
WEIR_PUBLIC weir_status weir_nanquantile(weir_tensor **out, const weir_tensor *a, double q);
WEIR_PUBLIC weir_status weir_nanquantile_dim(weir_tensor **out, const weir_tensor *a, double q,
                                             int dim, bool keepdim);

/* Each less the one before it in its dimension, n times over; of bool whether they differ. Errors:
 * "order must be non-negative but got -1", "diff expects input to be at least one-dimensional". */
WEIR_PUBLIC weir_status weir_diff(weir_tensor **out, const weir_tensor *a, int64_t n, int dim);

/* ---- places in what is in order ---------------------------------------------------------------
 */

/* Where each value would go into the last dimension of `sorted`, which is in order: before the
 * first that is not less or, right, before the first that is greater; NaN at the end. sorted has
 * one dimension, or values' dimensions but for the last. int64, or int32. Errors:
 * "weir.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of
 * boundaries tensor and input value tensor must match, but we got boundaries tensor [2, 3] and
 * input value tensor [3]", and its like for tensors without dimensions. */
WEIR_PUBLIC weir_status weir_searchsorted(weir_tensor **out, const weir_tensor *sorted,
                                          const weir_tensor *values, bool right, bool out_int32);
/* The same with boundaries of one dimension. Errors: "boundaries tensor must be 1 dimension, but
 * got dim(2)". */
WEIR_PUBLIC weir_status weir_bucketize(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *boundaries, bool right, bool out_int32);

/* Which elements are among those of `test`, or invert: are not; NaN never is. bool. Errors:
 * "Unsupported input type encountered for isin(): Bool". */
WEIR_PUBLIC weir_status weir_isin(weir_tensor **out, const weir_tensor *elements,
                                  const weir_tensor *test, bool invert);

/* ---- what is there, how often -----------------------------------------------------------------
 * Functions whose result has as many elements as there are different ones, or as the largest
 * states, wait for the device; while it is captured they fail. */

/* The different elements, in order: of one dimension; of each NaN all. inverse, of a's shape: which
 * of them each element is; counts: how many are alike. Both int64; NULL: not asked for. torch's
 * unique() without `dim`. Errors: "\"unique\" not implemented for 'ComplexFloat'". */
WEIR_PUBLIC weir_status weir_unique(weir_tensor **out, weir_tensor **inverse, weir_tensor **counts,
                                    const weir_tensor *a);
/* The same of neighbours, row by row, in their order. */
WEIR_PUBLIC weir_status weir_unique_consecutive(weir_tensor **out, weir_tensor **inverse,
                                                weir_tensor **counts, const weir_tensor *a);

/* torch's unique() with `dim`: a's different parts along it, in the order of their elements, the
 * first foremost, with a's other sizes; inverse: which of them each part is, in one dimension;
 * counts. Parts with NaN are each unlike all. Errors: "There are 0 sized dimensions, and they
 * aren't selected, so unique cannot be applied", "\"unique_dim\" not implemented for
 * 'ComplexFloat'". */
WEIR_PUBLIC weir_status weir_unique_dim(weir_tensor **out, weir_tensor **inverse,
                                        weir_tensor **counts, const weir_tensor *a, int dim);
/* The same of neighbours, in their order. */
WEIR_PUBLIC weir_status weir_unique_consecutive_dim(weir_tensor **out, weir_tensor **inverse,
                                                    weir_tensor **counts, const weir_tensor *a,
                                                    int dim);

/* The most frequent, of several the smallest, and the last place of it. Errors: "mode(): Expected
 * reduction dim 0 to have non-zero size.", "\"mode_cpu\" not implemented for 'ComplexFloat'". */
WEIR_PUBLIC weir_status weir_mode(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                                  int dim, bool keepdim);

/* How often each of 0, 1, ... is there, to the largest or to minlength - 1: int64; weights: the
 * sums of theirs, float32 or else float64. a has one dimension. Errors: "bincount only supports 1-d
 * non-negative integral inputs.", "minlength should be >= 0", "weights should be 1-d and have the
 * same length as input", "\"bincount_cpu\" not implemented for 'Float'". */
WEIR_PUBLIC weir_status weir_bincount(weir_tensor **out, const weir_tensor *a,
                                      const weir_tensor *weights, int64_t minlength);

/* How many elements lie in each of `bins` equal parts of min to max, the last part's end included;
 * both alike: of the smallest to the largest. Of a's dtype, floating point. Errors:
 * "weir.histogram(): bins must be > 0, but got 0 for dimension 0", "weir.histc: max must be larger
 * than min", "weir.histc: range of [0, inf] is not finite", "\"histogram_cpu\" not implemented for
 * 'Long'". */
WEIR_PUBLIC weir_status weir_histc(weir_tensor **out, const weir_tensor *a, int64_t bins,
                                   double min, double max);

#ifdef __cplusplus
}
#endif

#endif
