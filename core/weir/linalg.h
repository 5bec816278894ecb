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
 * takes the fewest multiplications. Errors: "multi_dot(): expected at least 2 tensors but got
 * 1". */
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
/* Covariances of rows, whose columns are observations, each sum of products through observations -
 * correction (usual: 1); of integers the default dtype. weir_corrcoef(): through both deviations.
 * Errors: "cov(): expected input to have two or fewer dimensions but got an input with 3
 * dimensions". */
WEIR_PUBLIC weir_status weir_cov(weir_tensor **out, const weir_tensor *a, int64_t correction);
WEIR_PUBLIC weir_status weir_corrcoef(weir_tensor **out, const weir_tensor *a);
/* Areas below y along `dim` (usual: -1) by trapezoids that are dx wide (usual: 1): the whole one,
 * or up to each place but the first. Errors: "trapezoid: received a bool input for `y`, but bool is
 * not supported". */
WEIR_PUBLIC weir_status weir_trapezoid(weir_tensor **out, const weir_tensor *y, double dx, int dim);
WEIR_PUBLIC weir_status weir_cumulative_trapezoid(weir_tensor **out, const weir_tensor *y,
                                                  double dx, int dim);
/* a, its parts along `dim` made smaller whose p-norm is above maxnorm. Errors: "renorm: input needs
 * at least 2 dimensions, got 1 dimensions", "renorm: non-positive-norm not supported". */
WEIR_PUBLIC weir_status weir_renorm(weir_tensor **out, const weir_tensor *a, double p, int dim,
                                    double maxnorm);
/* Powers of a vector's elements as rows of n columns, from n - 1 down to 0, or, increasing, from 0
 * up; integers in int64. Errors: "x must be a one-dimensional tensor.", "N must be non-negative."
 */
WEIR_PUBLIC weir_status weir_vander(weir_tensor **out, const weir_tensor *a, int64_t n,
                                    bool increasing);

/* ---- factorisations ---------------------------------------------------------------------------
 * Of float32 and float64, batched over the dimensions before the last two. On the cpu by LAPACK
 * where OpenBLAS or MKL is installed and matrices are large enough to gain (from 16 to 40 rows;
 * weir_set_blas(), weir_cpu_lapack_name()), else by the engine's own algorithms in float64; on a
 * CUDA device by cuSOLVER (triangles by cuBLAS), opened at run time: where it is missing ENOTSUP
 * reports it, and nothing moves unasked. They wait for the device, as torch's do. Results lie row
 * by row, where torch's lie column by column; signs of vectors are as free as they are in torch.
 * Derivatives go through all but matrix_rank, where torch's do; through vectors of equal values
 * they are NaN or infinite, as torch's. Errors of all: "linalg.inv: A must be batches of square
 * matrices, but they are 3 by 2 matrices", "linalg.inv: Expected a floating point or complex tensor
 * as input. Got Long"; of complex64 ENOTSUP. */

/* torch.linalg.det(); the sign and the logarithm of the size of it. Where the determinant is 0 its
 * derivative is that of the cofactors (torch's only with create_graph, else 0), and that of the
 * logarithm an error. */
WEIR_PUBLIC weir_status weir_det(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_slogdet(weir_tensor **sign, weir_tensor **logabsdet,
                                     const weir_tensor *a);
/* Errors: EINVAL "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed
 * because the input matrix is singular." */
WEIR_PUBLIC weir_status weir_inv(weir_tensor **out, const weir_tensor *a);
/* x of a x = b: b (..., n, k), or a vector (n), or one for each matrix. Errors: EINVAL
 * "weir.linalg.solve: The solver failed because the input matrix is singular." */
WEIR_PUBLIC weir_status weir_solve(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
/* The same with a triangle of a (upper, or lower), left; or else x of x a = b; unitriangular: a's
 * diagonal is taken for 1s. */
WEIR_PUBLIC weir_status weir_solve_triangular(weir_tensor **out, const weir_tensor *a,
                                              const weir_tensor *b, bool upper, bool left,
                                              bool unitriangular);
/* L of a = L L^T, of whose lower triangle it is made, or, upper, L^T of the upper one. Errors:
 * EINVAL "linalg.cholesky: The factorization could not be completed because the input is not
 * positive-definite (the leading minor of order 1 is not positive-definite)." */
WEIR_PUBLIC weir_status weir_cholesky(weir_tensor **out, const weir_tensor *a, bool upper);
/* x of a x = b, b (..., n, k), where l is a's triangle from weir_cholesky(); and a's inverse. One
 * triangle of l is read; its gradient is of all of it, as torch's. Errors: "Incompatible matrix
 * sizes for cholesky_solve: each A matrix is 3 by 3 but each b matrix is 4 by 2";
 * "cholesky_inverse: The diagonal element 1 is zero, the inversion could not be completed because
 * the input matrix is singular." */
WEIR_PUBLIC weir_status weir_cholesky_solve(weir_tensor **out, const weir_tensor *b,
                                            const weir_tensor *l, bool upper);
WEIR_PUBLIC weir_status weir_cholesky_inverse(weir_tensor **out, const weir_tensor *l, bool upper);
/* L below the diagonal, where it has 1s, and U, (..., m, n) in one, of a = P L U, and pivots, int32
 * (..., min(m, n)): with which row, from 1, each was exchanged in turn. pivot false: ENOTSUP, as on
 * torch's cpu. Errors: EINVAL "weir.linalg.lu_factor: U[2,2] is zero and using it on lu_solve would
 * result in a division by zero. ..." */
WEIR_PUBLIC weir_status weir_lu_factor(weir_tensor **lu, weir_tensor **pivots, const weir_tensor *a,
                                       bool pivot);
/* torch.lu_unpack(): P (m, m), L (m, k) and U (k, n), k the smaller of m and n. weir_lu():
 * torch.linalg.lu(): of a itself, which may be singular. */
WEIR_PUBLIC weir_status weir_lu_unpack(weir_tensor **p, weir_tensor **l, weir_tensor **u,
                                       const weir_tensor *lu, const weir_tensor *pivots);
WEIR_PUBLIC weir_status weir_lu(weir_tensor **p, weir_tensor **l, weir_tensor **u,
                                const weir_tensor *a, bool pivot);
/* x of a x = b by what weir_lu_factor() has made of a: b (..., n, k); left false: of x a = b, b
 * (..., k, n); adjoint: of a transposed. Batches broadcast. Errors: "linalg.lu_solve: pivots should
 * be a Tensor of scalar type weir.int32". */
WEIR_PUBLIC weir_status weir_lu_solve(weir_tensor **out, const weir_tensor *lu,
                                      const weir_tensor *pivots, const weir_tensor *b, bool left,
                                      bool adjoint);
/* a = q r: mode "reduced" (NULL): q (m, k), r (k, n), k the smaller of m and n; "complete": k is m;
 * "r": q is empty. */
WEIR_PUBLIC weir_status weir_qr(weir_tensor **q, weir_tensor **r, const weir_tensor *a,
                                const char *mode);
/* Of a symmetric matrix, of which one triangle is read: eigenvalues, ascending, and eigenvectors as
 * columns. */
WEIR_PUBLIC weir_status weir_eigh(weir_tensor **values, weir_tensor **vectors, const weir_tensor *a,
                                  bool upper);
WEIR_PUBLIC weir_status weir_eigvalsh(weir_tensor **out, const weir_tensor *a, bool upper);
/* a = u diag(s) vh, s descending; full_matrices: u (m, m) and vh (n, n), else (m, k) and (k, n), k
 * the smaller of m and n. Errors: EINVAL "linalg.svd: The algorithm failed to converge because the
 * input matrix contained non-finite values." */
WEIR_PUBLIC weir_status weir_svd(weir_tensor **u, weir_tensor **s, weir_tensor **vh,
                                 const weir_tensor *a, bool full_matrices);
WEIR_PUBLIC weir_status weir_svdvals(weir_tensor **out, const weir_tensor *a);
/* The pseudoinverse, and how many singular values there are: those above rtol times the largest;
 * rtol below 0: torch's, the dtype's epsilon times the larger of m and n. */
WEIR_PUBLIC weir_status weir_pinv(weir_tensor **out, const weir_tensor *a, double rtol);
WEIR_PUBLIC weir_status weir_matrix_rank(weir_tensor **out, const weir_tensor *a, double rtol);
/* The x of least norm among those for which a x - b is shortest: torch.linalg.lstsq().solution. */
WEIR_PUBLIC weir_status weir_lstsq(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
/* Of square matrices of any dtype that multiplies: a to the power n; of negative n the
 * inverse's. */
WEIR_PUBLIC weir_status weir_matrix_power(weir_tensor **out, const weir_tensor *a, int64_t n);
/* Of the matrices of dimensions dims[0] and dims[1] (NULL: the last two): ord "fro", "nuc", "1",
 * "-1", "inf", "-inf", "2" or "-2"; of the first of these of all floating point and complex64.
 * Errors: "linalg.matrix_norm: Order 3 not supported." */
WEIR_PUBLIC weir_status weir_matrix_norm(weir_tensor **out, const weir_tensor *a, const char *ord,
                                         const int *dims, bool keepdim);
/* How much of a's relative errors its inverse has at most, by a norm: p NULL: "2"; "-2", of which a
 * may have any shape; "fro", "nuc", "1", "-1", "inf", "-inf", of square ones. Infinite of singular
 * matrices; 0 of matrices without elements. Errors: "linalg.cond got an invalid norm type: 3". */
WEIR_PUBLIC weir_status weir_cond(weir_tensor **out, const weir_tensor *a, const char *p);

#ifdef __cplusplus
}
#endif

#endif
