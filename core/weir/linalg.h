/* linalg.h: linear algebra beyond single products of matrices (ops.h). Included by weir.h.
 *
 * Names, arguments, shapes and errors are those of torch and torch.linalg. Where batches are spoken
 * of, a tensor's last two dimensions are its matrices and those before are the batch. All results
 * are new. Products are of one dtype, floating point or, on the cpu, integers; functions that
 * multiply element by element (outer, kron) promote. Errors of all: EINVAL with torch's sentence,
 * ENOTSUP for a dtype or a device that lacks it, ENOMEM, EOOM and those of the device. */
#ifndef WEIR_LINALG_H
#define WEIR_LINALG_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sums of products ------------------------------------------------------------------------ */

/* torch.einsum(): "bij,bjk->bik" over `count` tensors (borrowed). Letters name dimensions; one that
 * is repeated within an operand takes its diagonal, one that the output lacks is summed over; "..."
 * stands for dimensions that broadcast; without "->" the output has "..." and then, sorted, the
 * letters that occur once. Operands are contracted two by two from left to right. Errors:
 * "einsum(): subscript i has size 3 for operand 1 which does not broadcast with previously seen
 * size 2"; more than WEIR_MAX_DIMS different dimensions. */
WEIR_PUBLIC weir_status weir_einsum(weir_tensor **out, const char *equation,
                                    const weir_tensor *const *tensors, int count);
/* The last `count` dimensions of a with the first of b: of the list dims_a with dims_b. Errors:
 * "contracted dimensions need to match, but first has size 2 in dim 0 and second has size 3 in dim
 * 0"; "both inputs should have same dtype". */
WEIR_PUBLIC weir_status weir_tensordot(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *b, int count);
WEIR_PUBLIC weir_status weir_tensordot_dims(weir_tensor **out, const weir_tensor *a,
                                            const weir_tensor *b, const int *dims_a,
                                            const int *dims_b, int count);
/* Over the last dimension of both; a tensor without dimensions multiplies. Errors: "inner() the
 * last dimension must match on both input tensors but got shapes [2] and [3]". */
WEIR_PUBLIC weir_status weir_inner(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
/* a[i] b[j] of two vectors. Errors: "outer: Expected 1-D argument self, but got 2-D". */
WEIR_PUBLIC weir_status weir_outer(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
/* torch.linalg.multi_dot(), torch.chain_matmul(): the product of `count` matrices (borrowed), of
 * which the first may be a row and the last a column without a dimension of 1, in the order that
 * takes the fewest multiplications. Errors: "multi_dot(): expected at least 2 tensors but got 1". */
WEIR_PUBLIC weir_status weir_multi_dot(weir_tensor **out, const weir_tensor *const *tensors,
                                       int count);

/* ---- added to something ----------------------------------------------------------------------
 * beta c + alpha (product); c broadcasts, and is not read where beta is 0. */

/* c (n), a (n, m), b (m). */
WEIR_PUBLIC weir_status weir_addmv(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                                   const weir_tensor *b, double beta, double alpha);
/* c (n, m), a (n), b (m): their outer product; dtypes are promoted. */
WEIR_PUBLIC weir_status weir_addr(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                                  const weir_tensor *b, weir_scalar beta, weir_scalar alpha);
/* c (n, p), a (b, n, m), b (b, m, p): the sum of the products of the batch. */
WEIR_PUBLIC weir_status weir_addbmm(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                                    const weir_tensor *b, double beta, double alpha);
/* c (b, n, p), a (b, n, m), b (b, m, p). */
WEIR_PUBLIC weir_status weir_baddbmm(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                                     const weir_tensor *b, double beta, double alpha);

/* ---- made of vectors ------------------------------------------------------------------------- */

/* p-norms (p from 0 to INFINITY) of a[..., i, :] - b[..., j, :]; the batches broadcast. p 2 of more
 * than 25 rows is made by a product of matrices, as torch's is, which is less exact near 0. Errors:
 * "cdist only supports floating-point dtypes, X1 got: Long", "X1 and X2 must have the same number
 * of columns. X1: 3 X2: 2". */
WEIR_PUBLIC weir_status weir_cdist(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                   double p);
/* Kronecker's product; dtypes are promoted. Of at most four dimensions. */
WEIR_PUBLIC weir_status weir_kron(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
/* torch.linalg.cross(): of vectors of three along `dim` (usual: -1). Errors: "linalg.cross: inputs
 * dimension -1 must have length 3. Got 2 and 2". */
WEIR_PUBLIC weir_status weir_cross(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                   int dim);
/* Powers of a vector's elements as rows of n columns, from n - 1 down to 0, or, increasing, from 0
 * up; integers in int64. Errors: "x must be a one-dimensional tensor.", "N must be non-negative."
 */
WEIR_PUBLIC weir_status weir_vander(weir_tensor **out, const weir_tensor *a, int64_t n,
                                    bool increasing);

#ifdef __cplusplus
}
#endif

#endif
