/* ops.h: what the files of operations are to each other, and the headers that nearly all of them
 * need. */
#ifndef WEIR_OPS_OPS_H
#define WEIR_OPS_OPS_H

#include "core/tensor/autocast.h"
#include "core/tensor/calc.h"
#include "core/tensor/loop.h"
#include "core/tensor/record.h"
#include "core/weir/sequence.h"

/* ---- elementwise.c --------------------------------------------------------------------------- */

/* One operation on up to three operands, some of them numbers. */
typedef struct elementwise_call {
  weir_op op;
  uint8_t count;           /* of operands */
  uint8_t numbers;         /* bit i: operand i is number[i] */
  bool has_alpha, has_p;   /* alpha, p are filled */
  weir_tensor *self;       /* borrowed; in place, t[0] is it; NULL: out of place */
  const weir_tensor *t[3]; /* borrowed */
  weir_scalar number[3], alpha, p[3];
} elementwise_call;

/* out is not touched in place. */
weir_status elementwise_run(weir_tensor **out, const elementwise_call *e);

/* Tensors alone. self NULL: a new tensor, else it is t[0], too. p: three numbers or NULL. */
static inline weir_status elementwise_tensors(weir_op op, weir_tensor **out, weir_tensor *self,
                                              int count, const weir_tensor *const *t,
                                              const weir_scalar *p)
{
  elementwise_call e;
  e.op = op, e.count = (uint8_t)count, e.numbers = 0, e.has_alpha = false, e.has_p = p != NULL;
  e.self = self;
  for (int i = 0; i < count; i++)
    e.t[i] = t[i];
  for (int i = 0; i < 3 && p; i++)
    e.p[i] = p[i];
  return elementwise_run(out, &e);
}
#define ELEMENTWISE(op, out, self, ...)                                                            \
  elementwise_tensors((op), (out), (self),                                                         \
                      (int)(sizeof((const weir_tensor *const[]){__VA_ARGS__}) / sizeof(void *)),   \
                      (const weir_tensor *const[]){__VA_ARGS__}, NULL)

/* Both public forms of what run(out, self, a, ...) does: weir_NAME makes *out (self NULL),
 * weir_NAME_ changes self, which is a (out NULL). needs: the pointers that may not be NULL;
 * parameters: those after a, as they are declared. */
#define BOTH_FORMS(name, needs, parameters, run, ...)                                              \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, BARE parameters)                \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, BARE needs);                                                             \
    return run(out, NULL, a, __VA_ARGS__);                                                         \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *a, BARE parameters)                                      \
  {                                                                                                \
    WEIR_REQUIRE(BARE needs);                                                                      \
    return run(NULL, a, a, __VA_ARGS__);                                                           \
  }
#define BARE(...) __VA_ARGS__
/* The same of an operation by element without numbers of its own. */
#define ELEMENTWISE_NEW(name, op)                                                                  \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a)                                 \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return ELEMENTWISE(WEIR_OP_##op, out, NULL, a);                                                \
  }
#define ELEMENTWISE_FORMS(name, op)                                                                \
  ELEMENTWISE_NEW(name, op)                                                                        \
  weir_status weir_##name##_(weir_tensor *a)                                                       \
  {                                                                                                \
    WEIR_REQUIRE(a);                                                                               \
    return ELEMENTWISE(WEIR_OP_##op, NULL, a, a);                                                  \
  }

/* ---- reduce.c -------------------------------------------------------------------------------- */

/* One reduction: op over the dimensions of `mask`. */
typedef struct reduction {
  weir_reduce_op op;
  const char *name;     /* torch's, for messages */
  const weir_tensor *a; /* borrowed */
  uint32_t mask;
  bool keepdim, whole; /* whole: no dimensions were named */
  const int *dims;     /* borrowed; as they were named */
  int count;
  double p; /* VAR, STD, NORM */
} reduction;

/* Bit d: dimension d is reduced; count 0: all. Errors: EINVAL. */
weir_status reduction_mask(uint32_t *out, const weir_tensor *a, const int *dims, int count);
/* other NULL: only one result is asked for; places (int64), or the mean of VAR and STD. */
weir_status reduction_run(weir_tensor **out, weir_tensor **other, const reduction *r);

/* What comes back through softmax over `dim` (logarithm: log_softmax): `result` is what it gave,
 * `grad` what came for that, of the same shape, dtype and device. *out is new. */
weir_status softmax_backward(weir_tensor **out, const weir_tensor *grad, const weir_tensor *result,
                             int dim, bool logarithm);

/* ---- scan.c, order.c ------------------------------------------------------------------------- */

/* How the lines of a dimension lie in a tensor without holes: element i of line (o, j) is number
 * (o length + i) inner + j of its memory. */
typedef struct dim_lines {
  int64_t outer, length, inner;
} dim_lines;

/* dim counts from 0; t may have no dimension. */
dim_lines lines_of(const weir_tensor *t, int dim);

/* ---- arrange.c ------------------------------------------------------------------------------- */

/* Copies `length` places of dimension `dim` of `in`, from `from` on, to those of `out` from `to`
 * on; their other sizes are the same. step: 1; -1: backwards; 0: the one at `from` again and
 * again. */
weir_status copy_run(const weir_tensor *out, int64_t to, const weir_tensor *in, int64_t from,
                     int dim, int64_t length, int step);

/* ---- conv.c ---------------------------------------------------------------------------------- */

/* What comes back to the weights (of this shape) of a conv2d of `a`, 4D, grad being its
 * result's. */
weir_status conv2d_weight_backward(weir_tensor **out, const weir_tensor *a, const weir_tensor *grad,
                                   weir_shape weight, const weir_conv2d_options *o);

/* ---- conv_library.c -------------------------------------------------------------------------- */

/* A request without tensors; `axes` numbers each. */
weir_convolution conv_request(weir_conv_pass pass, int axes, const int64_t *stride,
                              const int64_t *pad, const int64_t *dilation, int64_t groups);
/* *out (new, of `shape`) by the device's library, and the bias (or NULL) added; NULL: not by it. a,
 * b: with a batch; x and w of FORWARD, w and y's gradient of BACKWARD_INPUT, x and y's gradient of
 * BACKWARD_WEIGHT. Fills the rest of q. Not recorded by itself. */
weir_status conv_by_library(weir_tensor **out, weir_convolution *q, const weir_tensor *a,
                            const weir_tensor *b, const weir_tensor *bias, weir_shape shape);
/* What comes back to the input (of this shape) of a conv2d, grad being its result's; *out NULL: no
 * library does it. All numbers of o are filled. */
weir_status conv2d_input_backward(weir_tensor **out, const weir_tensor *grad,
                                  const weir_tensor *weight, weir_shape input,
                                  const weir_conv2d_options *o);

/* ---- norm.c ---------------------------------------------------------------------------------- */

/* Of a RECORD_NORM, n and eps being its numbers: what comes back to its operand `a`; what a becomes
 * without weight and bias. */
weir_status norm_back(weir_tensor **out, const weir_tensor *grad, const weir_tensor *a,
                      const weir_tensor *weight, const int64_t *n, double eps);
weir_status norm_alone(weir_tensor **out, const weir_tensor *a, const int64_t *n, double eps);

/* ---- pool.c ---------------------------------------------------------------------------------- */

/* Windows over the last `axes` dimensions; axis[3 - axes] is the first of them, those before have
 * one place. */
typedef struct pooling {
  const char *name, *kernel_name; /* torch's, for messages */
  int axes;
  int text_axes; /* as many as torch's messages speak of */
  bool max, adaptive, count_pad;
  int64_t divisor;
  weir_axis axis[3];
} pooling;

/* *out (new) is a's windows, all of which has been checked; indices: the places of MAX, NULL: are
 * not asked for. */
weir_status pool_run(weir_tensor **out, weir_tensor **indices, const weir_tensor *a,
                     const pooling *p);
/* *out (new) is the gradient of a's elements from that of the windows, `grad`; indices: what
 * pool_run() gave there, of MAX. */
weir_status pool_back(weir_tensor **out, const weir_tensor *grad, const weir_tensor *indices,
                      const pooling *p);

/* p from the numbers of its record. */
void pool_of_record(pooling *p, const int64_t *n);

/* Refuses an average of these sizes (depth, height, width), one of which is below 0, of an input of
 * `dims` dimensions with its batch: EINVAL, as torch has it. */
weir_status refused_average_size(const int64_t size[3], int dims);

/* ---- interpolate.c --------------------------------------------------------------------------- */

/* *out (new) is a's last `axes` dimensions in other sizes; r: kind, sizes, scale, align, back. */
weir_status resample_run(weir_tensor **out, const weir_tensor *a, weir_resample *r, int axes);
/* r from the numbers of its record; returns the axes. */
int resample_of_record(weir_resample *r, const int64_t *n);

/* ---- matmul.c -------------------------------------------------------------------------------- */

/* Sets tf32, reduced_precision and deterministic as they are set for the process, and runs it. */
weir_status gemm_run(const compute_target *t, weir_gemm *g);

/* ---- attention.c ----------------------------------------------------------------------------- */

/* weir_scaled_dot_product_attention(); weights (new) not NULL: also what values are weighed by, in
 * which a row that sees nothing is NaN. */
weir_status attention_run(weir_tensor **out, weir_tensor **weights, const weir_tensor *query,
                          const weir_tensor *key, const weir_tensor *value,
                          const weir_attention_options *options);
/* What its derivative needs. */
typedef struct attention_saved {
  const weir_tensor *in[3]; /* query, key, value, whose dimensions but the two last are the same */
  const weir_tensor *mask;  /* NULL: none */
  bool causal;
  double scale, dropout;
  weir_generator_state drawn; /* where the numbers of dropout begin */
} attention_saved;
/* What comes back through attention: `grad` came for the result. out: new, one of each of in.
 * graph: made of operations that have a derivative. */
weir_status attention_backward(weir_tensor *out[3], const weir_tensor *grad,
                               const attention_saved *saved, bool graph);
/* Elements of *t, which is exchanged, become 0 with probability p, the others are scaled by 1 / (1
 * - p). */
weir_status drop_elements(weir_tensor **t, double p);

/* ---- random.c -------------------------------------------------------------------------------- */

/* The next `blocks` blocks (core/backend/philox.h) of the default generator of device are the
 * caller's: the state that they begin with. Errors: EINVAL. */
weir_status reserve_numbers(weir_generator_state *out, weir_device device, uint64_t blocks);

#endif
