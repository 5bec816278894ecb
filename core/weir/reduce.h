/* reduce.h: what is made of many elements, in addition to sum, mean and their like (ops.h).
 * Included by weir.h.
 *
 * What ops.h states of all operations holds here, too. A function is of all elements, its _dim of
 * one dimension and its _dims of `count` dimensions `dims` (none: all); negative ones count from
 * the end, and what is reduced disappears or, keepdim, has size 1 in the result. Errors: "Dimension
 * out of range (expected to be in range of [-2, 1], but got 2)", "dim 0 appears multiple times in
 * the list of dims". */
#ifndef WEIR_REDUCE_H
#define WEIR_REDUCE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- variance ---------------------------------------------------------------------------------
 * The sum of squares of what elements are off their mean, through max(0, their number -
 * correction); correction 1 (Bessel's) is torch's usual one. std is its root. The _mean forms give
 * the mean, too, for one reading of the elements. Calculated in float64, whatever the dtype. Of
 * floating point; of complex64 the result is float32, the mean complex64. Errors: "std and var only
 * support floating point and complex dtypes", "var_mean only support floating point and complex
 * dtypes". */
#define WEIR_VARIANCE_MAP(X)                                                                       \
  X(var, VAR)                                                                                      \
  X(std, STD)

#define WEIR_VARIANCE_DECLARE(name, op)                                                            \
  WEIR_PUBLIC weir_status weir_##name(weir_tensor **out, const weir_tensor *a, double correction); \
  WEIR_PUBLIC weir_status weir_##name##_dim(weir_tensor **out, const weir_tensor *a, int dim,      \
                                            double correction, bool keepdim);                      \
  WEIR_PUBLIC weir_status weir_##name##_dims(weir_tensor **out, const weir_tensor *a,              \
                                             const int *dims, int count, double correction,        \
                                             bool keepdim);                                        \
  WEIR_PUBLIC weir_status weir_##name##_mean(weir_tensor **out, weir_tensor **mean,                \
                                             const weir_tensor *a, double correction);             \
  WEIR_PUBLIC weir_status weir_##name##_mean_dim(weir_tensor **out, weir_tensor **mean,            \
                                                 const weir_tensor *a, int dim, double correction, \
                                                 bool keepdim);                                    \
  WEIR_PUBLIC weir_status weir_##name##_mean_dims(weir_tensor **out, weir_tensor **mean,           \
                                                  const weir_tensor *a, const int *dims,           \
                                                  int count, double correction, bool keepdim);
WEIR_VARIANCE_MAP(WEIR_VARIANCE_DECLARE)
#undef WEIR_VARIANCE_DECLARE

/* ---- norms, counts, extremes ------------------------------------------------------------------
 */

/* Of vectors, torch.linalg.vector_norm(): the p-th root of the sum of |x|^p; p INFINITY: the
 * largest |x|, -INFINITY: the smallest, 0: how many are not 0. torch.norm()'s "fro" is p 2 over its
 * two dimensions; matrices' own norms are not here. Of floating point; of complex64 the result is
 * float32. Errors: "linalg.vector_norm: Expected a floating point or complex tensor as input. Got
 * Long"; for a p that has no value for nothing, "linalg.vector_norm cannot compute the inf norm on
 * an empty tensor because the operation does not have an identity". */
WEIR_PUBLIC weir_status weir_norm(weir_tensor **out, const weir_tensor *a, double p);
WEIR_PUBLIC weir_status weir_norm_dim(weir_tensor **out, const weir_tensor *a, double p, int dim,
                                      bool keepdim);
WEIR_PUBLIC weir_status weir_norm_dims(weir_tensor **out, const weir_tensor *a, double p,
                                       const int *dims, int count, bool keepdim);

/* How many elements are not 0 (NaN is not): int64. As torch's, it keeps no dimension. */
WEIR_PUBLIC weir_status weir_count_nonzero(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_count_nonzero_dim(weir_tensor **out, const weir_tensor *a, int dim);
WEIR_PUBLIC weir_status weir_count_nonzero_dims(weir_tensor **out, const weir_tensor *a,
                                                const int *dims, int count);

/* The smallest and the largest; NaN is both. Errors: "aminmax(): cannot compute aminmax over an
 * empty dimension as the operation has no identity."; "aminmax not implemented for ComplexFloat".
 */
WEIR_PUBLIC weir_status weir_aminmax(weir_tensor **least, weir_tensor **most, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_aminmax_dim(weir_tensor **least, weir_tensor **most,
                                         const weir_tensor *a, int dim, bool keepdim);

/* The logarithm of the sum of exponentials, which may each be too large: of integers and bool in
 * the default dtype, float16 and bfloat16 in float32. -INFINITY of nothing. */
WEIR_PUBLIC weir_status weir_logsumexp(weir_tensor **out, const weir_tensor *a, int dim,
                                       bool keepdim);
WEIR_PUBLIC weir_status weir_logsumexp_dims(weir_tensor **out, const weir_tensor *a,
                                            const int *dims, int count, bool keepdim);

#ifdef __cplusplus
}
#endif

#endif
