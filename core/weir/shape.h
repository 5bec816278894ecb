/* shape.h: tensors cut, turned, repeated and padded. Included by weir.h.
 *
 * Names, arguments, shapes and errors are PyTorch's. Dimensions may be negative: -1 is the last.
 * Where it states "view" the result shares t's storage; all other results are new. Of functions
 * that give several tensors all are made or none. A function that failed leaves *out NULL. Errors
 * of all: EINVAL, "Dimension out of range (expected to be in range of [-2, 1], but got 2)" and
 * torch's others; ENOMEM, EOOM and those of the device. */
#ifndef WEIR_SHAPE_H
#define WEIR_SHAPE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- parts ------------------------------------------------------------------------------------
 * Views. */

/* All t[i] of dimension `dim`; out has room for `room`, *count states how many there are. Errors:
 * "Dimension specified as 0 but tensor has no dimensions". */
WEIR_PUBLIC weir_status weir_unbind(weir_tensor **out, int *count, int room, const weir_tensor *t,
                                    int dim);
/* Pieces of the given sizes (borrowed), one after the other; out has room for `count`. Errors:
 * "split_with_sizes expects split_sizes to sum exactly to 4 (input tensor's size at dimension 1),
 * but got split_sizes=[1, 2]". */
WEIR_PUBLIC weir_status weir_split_with_sizes(weir_tensor **out, const weir_tensor *t,
                                              const int64_t *sizes, int count, int dim);
/* `sections` pieces whose sizes differ by at most one, the larger ones first; out has room for as
 * many. Errors: "number of sections must be larger than 0, got 0". */
WEIR_PUBLIC weir_status weir_tensor_split(weir_tensor **out, const weir_tensor *t, int sections,
                                          int dim);
/* t[:places[0]], t[places[0]:places[1]], ...; out has room for `count` + 1. Places are a slice's.
 */
WEIR_PUBLIC weir_status weir_tensor_split_at(weir_tensor **out, const weir_tensor *t,
                                             const int64_t *places, int count, int dim);
/* Windows of `size` places, `step` apart, along `dim`; a new last dimension goes through a window.
 * Errors: "maximum size for tensor at dimension 1 is 4 but size is 5". */
WEIR_PUBLIC weir_status weir_unfold(weir_tensor **out, const weir_tensor *t, int dim, int64_t size,
                                    int64_t step);
/* The diagonal of dimensions dim1 and dim2, `offset` above the main one (negative: below), as a new
 * last dimension. Errors: "diagonal dimensions cannot be identical 0, 0". */
WEIR_PUBLIC weir_status weir_diagonal(weir_tensor **out, const weir_tensor *t, int64_t offset,
                                      int dim1, int dim2);

/* ---- dimensions -------------------------------------------------------------------------------
 * Views. */

/* Dimension source[i] becomes destination[i], the others keep their order. Errors: "movedim:
 * repeated dim in `source` ([0, 0])". */
WEIR_PUBLIC weir_status weir_movedim(weir_tensor **out, const weir_tensor *t, const int *source,
                                     const int *destination, int count);
/* Complex numbers as pairs of real ones in a last dimension of size 2, and the reverse: views of t.
 * Of complex64; of float32. Errors: "view_as_real is only supported for complex tensors"; "Tensor
 * must have a last dimension of size 2", its stride other than 1, other strides or the offset odd;
 * ENOTSUP (float16 and float64, whose complex numbers are not here). */
WEIR_PUBLIC weir_status weir_view_as_real(weir_tensor **out, const weir_tensor *t);
WEIR_PUBLIC weir_status weir_view_as_complex(weir_tensor **out, const weir_tensor *t);
/* The parts of complex numbers: views of t; the real part of other tensors is t itself. Errors:
 * "imag is not implemented for tensors with non-complex dtypes." */
WEIR_PUBLIC weir_status weir_real(weir_tensor **out, const weir_tensor *t);
WEIR_PUBLIC weir_status weir_imag(weir_tensor **out, const weir_tensor *t);
/* With the imaginary parts negated: a new tensor (torch's is one that is read so); of tensors that
 * are not complex t itself. */
WEIR_PUBLIC weir_status weir_conj(weir_tensor **out, const weir_tensor *t);
/* Dimensions a and b exchanged: weir_transpose() by another name. */
WEIR_PUBLIC weir_status weir_swapaxes(weir_tensor **out, const weir_tensor *t, int a, int b);
/* Dimension `dim` as several, one of whose sizes may be -1. Errors: "unflatten: Provided sizes [3,
 * 2] don't multiply up to the size of dim 1 (4) in the input tensor". */
WEIR_PUBLIC weir_status weir_unflatten(weir_tensor **out, const weir_tensor *t, int dim,
                                       weir_shape sizes);
/* weir_expand() to the shape; to that of `other`. */
WEIR_PUBLIC weir_status weir_broadcast_to(weir_tensor **out, const weir_tensor *t,
                                          weir_shape shape);
WEIR_PUBLIC weir_status weir_expand_as(weir_tensor **out, const weir_tensor *t,
                                       const weir_tensor *other);
/* `count` grids of as many dimensions: out[i] has tensors[i], of at most one dimension, along
 * dimension i and repeats it along the others; xy: the first two dimensions exchanged. Errors:
 * "meshgrid expects all tensors to have the same dtype". */
WEIR_PUBLIC weir_status weir_meshgrid(weir_tensor **out, const weir_tensor *const *tensors,
                                      int count, bool xy);

/* All rows of one element from each of `count` vectors (at most 7), the last one's first to change;
 * of one vector, itself. Errors: "Expect a 1D vector, but got shape [2, 2]",
 * "meshgrid expects all tensors to have the same dtype". */
WEIR_PUBLIC weir_status weir_cartesian_prod(weir_tensor **out, const weir_tensor *const *tensors,
                                            int count);

enum { WEIR_BLOCKS_MAX = 64 }; /* matrices that weir_block_diag() takes */

/* Matrices one after the other along a diagonal, 0 elsewhere; dtypes are promoted; a vector is a
 * row. Errors: "weir.block_diag: Input tensors must have 2 or fewer dimensions. Input 0 has 3
 * dimensions". */
WEIR_PUBLIC weir_status weir_block_diag(weir_tensor **out, const weir_tensor *const *tensors,
                                        int count);

/* ---- joining ----------------------------------------------------------------------------------
 * weir_cat() along columns, along rows, along depth: tensors of fewer dimensions get what they
 * lack. Errors: "hstack expects a non-empty TensorList", and weir_cat()'s. */
WEIR_PUBLIC weir_status weir_hstack(weir_tensor **out, const weir_tensor *const *tensors,
                                    int count);
WEIR_PUBLIC weir_status weir_vstack(weir_tensor **out, const weir_tensor *const *tensors,
                                    int count);
WEIR_PUBLIC weir_status weir_dstack(weir_tensor **out, const weir_tensor *const *tensors,
                                    int count);

/* ---- other orders ---------------------------------------------------------------------------- */

/* Backwards along the dimensions. Errors: "dim 0 appears multiple times in the list of dims". */
WEIR_PUBLIC weir_status weir_flip(weir_tensor **out, const weir_tensor *t, const int *dims,
                                  int count);
/* Along dimension 1; along dimension 0. Errors: "Input must be >= 2-d.". */
WEIR_PUBLIC weir_status weir_fliplr(weir_tensor **out, const weir_tensor *t);
WEIR_PUBLIC weir_status weir_flipud(weir_tensor **out, const weir_tensor *t);
/* k quarters of a turn from dim0 towards dim1. Errors: "expected rotation dims to be different, but
 * got dim0 = 0 and dim1 = 0". */
WEIR_PUBLIC weir_status weir_rot90(weir_tensor **out, const weir_tensor *t, int k, int dim0,
                                   int dim1);
/* Moved on by shifts[i] places along dims[i]; what leaves at the end comes back at the start. dims
 * NULL: along the elements in their order, by shifts[0]. Errors: "`shifts` required". */
WEIR_PUBLIC weir_status weir_roll(weir_tensor **out, const weir_tensor *t, const int64_t *shifts,
                                  const int *dims, int count);

/* ---- repeated, padded ------------------------------------------------------------------------ */

/* repeats.size[i] times along dimension i; new dimensions come first. tile() takes fewer repeats
 * than dimensions, too. Errors: "Number of dimensions of repeat dims can not be smaller than number
 * of dimensions of tensor". */
WEIR_PUBLIC weir_status weir_repeat(weir_tensor **out, const weir_tensor *t, weir_shape repeats);
WEIR_PUBLIC weir_status weir_tile(weir_tensor **out, const weir_tensor *t, weir_shape repeats);

/* What stands in the border: a number; what lies after the edge, mirrored at it; the edge; what
 * lies at the opposite edge. */
typedef enum weir_pad_mode {
  WEIR_PAD_CONSTANT,
  WEIR_PAD_REFLECT,
  WEIR_PAD_REPLICATE,
  WEIR_PAD_CIRCULAR
} weir_pad_mode;

/* torch.nn.functional.pad: padding[0] places before and padding[1] after the last dimension, [2]
 * and [3] the one before it, ...; `count` of them; negative ones cut. Modes but CONSTANT pad the
 * last one to three dimensions, after one or two others. `value` is CONSTANT's. Errors: "Padding
 * length must be divisible by 2"; "Argument #4: Padding size should be less than the corresponding
 * input dimension, but got: padding (4, 1) at dimension 1 of input [3, 4]". */
WEIR_PUBLIC weir_status weir_pad(weir_tensor **out, const weir_tensor *t, const int64_t *padding,
                                 int count, weir_pad_mode mode, weir_scalar value);

/* ---- matrices -------------------------------------------------------------------------------- */

/* What is on and below (tril), or on and above (triu), the diagonal number `diagonal` (0 the main
 * one, negative below) of each matrix, and 0 elsewhere. Errors: "tril: input tensor must have at
 * least 2 dimensions". */
WEIR_PUBLIC weir_status weir_tril(weir_tensor **out, const weir_tensor *t, int64_t diagonal);
WEIR_PUBLIC weir_status weir_triu(weir_tensor **out, const weir_tensor *t, int64_t diagonal);
WEIR_PUBLIC weir_status weir_tril_(weir_tensor *t, int64_t diagonal);
WEIR_PUBLIC weir_status weir_triu_(weir_tensor *t, int64_t diagonal);
/* Of a row the matrix with it on that diagonal, of a matrix that diagonal, copied. Errors:
 * "diag(): Supports 1D or 2D tensors. Got 3D". */
WEIR_PUBLIC weir_status weir_diag(weir_tensor **out, const weir_tensor *t, int64_t diagonal);
/* t's last dimension on the diagonal of new matrices, whose dimensions are dim1 and dim2 of the
 * result. */
WEIR_PUBLIC weir_status weir_diag_embed(weir_tensor **out, const weir_tensor *t, int64_t offset,
                                        int dim1, int dim2);
/* The sum of a matrix's main diagonal; of integers int64. Errors: "trace: expected a matrix, but
 * got tensor with dim 1"; of bool on the cpu ENOTSUP. */
WEIR_PUBLIC weir_status weir_trace(weir_tensor **out, const weir_tensor *t);
/* n x m, 1 on the main diagonal. Errors: "n must be greater or equal to 0, got -1". */
WEIR_PUBLIC weir_status weir_eye(weir_tensor **out, int64_t n, int64_t m,
                                 const weir_options *options);

/* ---- ranges ----------------------------------------------------------------------------------
 * `steps` numbers from start to end, both included; logspace: base to the power of these. dtype not
 * given: the default one; of integers what lies between is cut towards zero. Calculated in float64
 * and rounded once, alike on all devices. Errors: "number of steps must be non-negative"; of bool
 * ENOTSUP. */
WEIR_PUBLIC weir_status weir_linspace(weir_tensor **out, weir_scalar start, weir_scalar end,
                                      int64_t steps, const weir_options *options);
WEIR_PUBLIC weir_status weir_logspace(weir_tensor **out, weir_scalar start, weir_scalar end,
                                      int64_t steps, double base, const weir_options *options);

#ifdef __cplusplus
}
#endif

#endif
