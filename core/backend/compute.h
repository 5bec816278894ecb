/* compute.h: what a device can calculate: the second half of the seam (backend.h).
 *
 * The tensor layer (core/tensor) checks arguments, promotes dtypes, broadcasts, allocates the
 * result, and describes what is to be done in one of the structs below; a device fills one struct
 * of functions and does it. The same request gives the same result on every device: exactly for
 * integers, copies and random numbers, to rounding for floating point.
 *
 * All functions enqueue in `stream` and return; what they point to stays valid until that work is
 * done (memory by stream order, the request itself only until the function returns). The cpu has no
 * streams and is done when it returns. Errors are the device's; nothing here is an argument check:
 * who asks has checked.
 *
 * Words. operand: memory, a dtype and strides in elements, one a dimension of the loop; a stride of
 * 0 repeats. An operand without memory is a number, the same everywhere. compute dtype: what inputs
 * are converted to before the operation; for float16 and bfloat16 the arithmetic itself is
 * float32's, rounded once at the end, as in PyTorch.
 */
#ifndef WEIR_DEVICE_COMPUTE_H
#define WEIR_DEVICE_COMPUTE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/blas.h"
#include "core/weir/dtype.h"

enum { WEIR_DIMS = 8 }; /* the most dimensions a tensor has: WEIR_MAX_DIMS */

typedef weir_scalar weir_number;

typedef struct weir_operand {
  void *data; /* the first element, device memory of this device; NULL: `number` */
  weir_dtype dtype;
  int64_t stride[WEIR_DIMS]; /* elements */
  weir_number number;        /* data is NULL */
} weir_operand;

/* ---- elementwise ------------------------------------------------------------------------------
 * X(identifier, torch's name, inputs). Comparisons, logical_not and isfinite give bool: what is
 * stored is out's dtype. Integer division DIV is true division and never has an integer compute
 * dtype; FLOOR_DIV rounds towards minus infinity. WHERE's first input is bool. Signed overflow
 * wraps. maximum and minimum pass NaN on. */
#define WEIR_OPS(X)                                                                                \
  X(COPY, "copy_", 1)                                                                              \
  X(NEG, "neg", 1)                                                                                 \
  X(ABS, "abs", 1)                                                                                 \
  X(RELU, "relu", 1)                                                                               \
  X(EXP, "exp", 1)                                                                                 \
  X(LOG, "log", 1)                                                                                 \
  X(SQRT, "sqrt", 1)                                                                               \
  X(RSQRT, "rsqrt", 1)                                                                             \
  X(SIN, "sin", 1)                                                                                 \
  X(COS, "cos", 1)                                                                                 \
  X(TANH, "tanh", 1)                                                                               \
  X(SIGMOID, "sigmoid", 1)                                                                         \
  X(LOGICAL_NOT, "logical_not", 1)                                                                 \
  X(ISFINITE, "isfinite", 1)                                                                       \
  X(ADD, "add", 2)                                                                                 \
  X(SUB, "sub", 2)                                                                                 \
  X(MUL, "mul", 2)                                                                                 \
  X(DIV, "div", 2)                                                                                 \
  X(FLOOR_DIV, "floor_divide", 2)                                                                  \
  X(POW, "pow", 2)                                                                                 \
  X(MAXIMUM, "maximum", 2)                                                                         \
  X(MINIMUM, "minimum", 2)                                                                         \
  X(EQ, "eq", 2)                                                                                   \
  X(NE, "ne", 2)                                                                                   \
  X(LT, "lt", 2)                                                                                   \
  X(LE, "le", 2)                                                                                   \
  X(GT, "gt", 2)                                                                                   \
  X(GE, "ge", 2)                                                                                   \
  X(LOGICAL_AND, "logical_and", 2)                                                                 \
  X(LOGICAL_OR, "logical_or", 2)                                                                   \
  X(CLOSE, "isclose", 2) /* |a - b| <= p[1] + p[0] |b|, or a == b; p[2]: NaN equals NaN */         \
  X(RANGE, "arange", 0)  /* p[0] + i p[1], i: the place in the loop; exact for integers */         \
  X(WHERE, "where", 3)

typedef enum weir_op {
#define WEIR_OP_ENUM(name, text, inputs) WEIR_OP_##name,
  WEIR_OPS(WEIR_OP_ENUM)
#undef WEIR_OP_ENUM
      WEIR_OP_COUNT
} weir_op;

/* out[i] = op(in[0][i], in[1][i], in[2][i]) for all i of the loop. ADD and SUB multiply their
 * second input by `alpha` first where has_alpha. out may be in[0] itself (same memory, same
 * strides), and else overlaps no input. The tensor layer has merged dimensions where strides allow:
 * a contiguous loop has one. */
typedef struct weir_loop {
  weir_op op;
  weir_dtype compute;
  int dims;                /* 0: one element */
  int64_t size[WEIR_DIMS]; /* outermost first; none is 0 */
  int64_t count;           /* their product, elements */
  weir_operand out, in[3];
  bool has_alpha;
  weir_number alpha, p[3];
} weir_loop;

/* ---- reductions -------------------------------------------------------------------------------
 * X(identifier, torch's name, identity is there for an empty reduction). ARGMAX and ARGMIN give the
 * place in the reduced dimensions, counted row by row, of the first of equals; NaN is larger and
 * smaller than all, as in torch. MAX_INDEX and MIN_INDEX store the value in out and the place in
 * index. Sums of integers and bool are int64's; floating point is summed so that the error grows at
 * most with the logarithm of the count (pairwise or in blocks), float16 and bfloat16 in float32. */
#define WEIR_REDUCE_OPS(X)                                                                         \
  X(SUM, "sum")                                                                                    \
  X(MEAN, "mean")                                                                                  \
  X(PROD, "prod")                                                                                  \
  X(MAX, "max")                                                                                    \
  X(MIN, "min")                                                                                    \
  X(ARGMAX, "argmax")                                                                              \
  X(ARGMIN, "argmin")                                                                              \
  X(MAX_INDEX, "max")                                                                              \
  X(MIN_INDEX, "min")                                                                              \
  X(ALL, "all")                                                                                    \
  X(ANY, "any")

typedef enum weir_reduce_op {
#define WEIR_REDUCE_ENUM(name, text) WEIR_REDUCE_##name,
  WEIR_REDUCE_OPS(WEIR_REDUCE_ENUM)
#undef WEIR_REDUCE_ENUM
      WEIR_REDUCE_COUNT
} weir_reduce_op;

/* The loop's first `kept` dimensions are the result's, the others are reduced; out's and index's
 * strides count for the kept ones only. Any size may be 0: an empty reduction stores the identity
 * (SUM 0, PROD 1, MEAN NaN, ALL true, ANY false; the others are never asked). */
typedef struct weir_reduce {
  weir_reduce_op op;
  weir_dtype compute;
  int kept, dims;
  int64_t size[WEIR_DIMS];
  int64_t outputs, each; /* products of the kept and of the reduced sizes */
  weir_operand out, in;
  weir_operand index; /* int64; MAX_INDEX and MIN_INDEX */
} weir_reduce;

/* ---- random numbers ---------------------------------------------------------------------------
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11). Which word of
 * the stream an element takes, and how it becomes a number, is core/backend/philox.h, which hosts
 * and devices compile alike: a seed gives the same numbers, bit for bit, on every device and with
 * any number of threads. */
typedef enum weir_random_kind {
  WEIR_RANDOM_UNIFORM,  /* a + (b - a) u, u in [0, 1) */
  WEIR_RANDOM_NORMAL,   /* mean a, standard deviation b */
  WEIR_RANDOM_INTEGER,  /* low a to high b - 1, integers exact to 2^53 */
  WEIR_RANDOM_BERNOULLI /* 1 with probability a, else 0 */
} weir_random_kind;

typedef struct weir_random {
  weir_random_kind kind;
  double a, b;
  uint64_t seed;
  uint64_t offset;      /* blocks of four 32-bit words that earlier calls have used up */
  uint64_t used;        /* blocks this call uses: weir_philox_blocks(count) */
  const uint64_t *base; /* of CUDA devices, in their memory, read when the work is done: the seed in
                         * place of `seed`, and what is added to `offset`; NULL: none */
  void *out;            /* contiguous */
  weir_dtype dtype;
  int64_t count; /* elements, not 0 */
} weir_random;

/* ---- linear algebra ---------------------------------------------------------------------------
 */

/* For each b: C = alpha op(A) op(B) + beta C, row-major: op(A) is m x k, op(B) k x n, C m x n.
 * A transposed operand is stored k x m (n x k). `ld`: elements from a row to the next of what is
 * stored; `step`: from a matrix of the batch to the next, 0 repeats. beta 0: C is not read. */
typedef struct weir_gemm {
  weir_dtype dtype;       /* of all three */
  int64_t m, n, k, batch; /* m, n, batch not 0; k 0 gives beta C */
  const void *a, *b;
  void *c;
  int64_t lda, ldb, ldc, stepa, stepb, stepc;
  bool transa, transb;
  double alpha, beta;
  bool tf32;              /* float32 may be rounded to TF32 where the device is quicker so */
  bool reduced_precision; /* float16, bfloat16: partial sums may be rounded to their dtype */
  bool deterministic;     /* the same bits every time */
  weir_blas blas;         /* who multiplies, on a device that has a choice */
} weir_gemm;

/* out[n][(c, r, s)][(y, x)] = in[n][c][y stride - pad + r dilation][...], 0 outside; both
 * contiguous. The matrix whose product with the weights is a convolution. */
typedef struct weir_im2col {
  weir_dtype dtype;
  const void *in;
  void *out;
  int64_t n, c, h, w; /* of the input */
  int64_t kernel[2];  /* rows, columns, as all pairs */
  int64_t stride[2], pad[2], dilation[2];
  int64_t oh, ow; /* of the output */
} weir_im2col;

/* map is there; the others are optional. Missing: ENOTSUP, for who asks. */
typedef struct weir_compute {
  weir_status (*map)(void *self, void *stream, const weir_loop *l);
  weir_status (*reduce)(void *self, void *stream, const weir_reduce *r);
  weir_status (*random)(void *self, void *stream, const weir_random *r);
  weir_status (*gemm)(void *self, void *stream, const weir_gemm *g);
  weir_status (*im2col)(void *self, void *stream, const weir_im2col *c);
} weir_compute;

#endif
