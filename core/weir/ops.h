/* ops.h: what is calculated with tensors. Included by weir.h.
 *
 * Names, shapes, dtypes of results and errors are PyTorch's. Operands broadcast; dtypes are
 * promoted as torch.result_type() does; all operands are on one device, which is the result's (the
 * exception: a tensor without dimensions on the cpu may join CUDA operands, as a number). On a CUDA
 * device an operation is enqueued in the current stream and the function returns.
 *
 * Every *out is new; tensors that are arguments are borrowed. Names that end in _ change their
 * first argument and cast the result to its dtype. Errors of all, worded as PyTorch's: EINVAL for
 * arguments, also for dtypes that do not go together; ENOTSUP for a dtype that an operation has
 * not, or that Weir has not; ENOMEM, EOOM and those of the device. A function that failed has
 * changed nothing and leaves *out NULL. */
#ifndef WEIR_OPS_H
#define WEIR_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/dtype.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The dtype of the result of an operation with both; b NULL: with `number`. As torch.result_type():
 * tensors with dimensions outweigh those without, these outweigh numbers, within a kind (bool,
 * integers, floating point, complex). Errors: ENOTSUP (a result torch has a dtype for and Weir
 * has not: complex128). */
WEIR_PUBLIC weir_status weir_result_type(weir_dtype *out, const weir_tensor *a,
                                         const weir_tensor *b, weir_scalar number);

/* ---- elementwise, one operand -----------------------------------------------------------------
 * weir_exp(&out, a) and weir_exp_(a). exp log sqrt rsqrt sin cos tanh sigmoid of integers have the
 * default dtype. isfinite and logical_not give bool. */
#define WEIR_UNARY_MAP(X)                                                                          \
  X(neg, NEG)                                                                                      \
  X(abs, ABS)                                                                                      \
  X(relu, RELU)                                                                                    \
  X(exp, EXP)                                                                                      \
  X(log, LOG)                                                                                      \
  X(sqrt, SQRT)                                                                                    \
  X(rsqrt, RSQRT)                                                                                  \
  X(sin, SIN)                                                                                      \
  X(cos, COS)                                                                                      \
  X(tanh, TANH)                                                                                    \
  X(sigmoid, SIGMOID)                                                                              \
  X(logical_not, LOGICAL_NOT)

#define WEIR_UNARY_DECLARE(name, op)                                                               \
  WEIR_PUBLIC weir_status weir_##name(weir_tensor **out, const weir_tensor *a);                    \
  WEIR_PUBLIC weir_status weir_##name##_(weir_tensor *a);
WEIR_UNARY_MAP(WEIR_UNARY_DECLARE)
#undef WEIR_UNARY_DECLARE
WEIR_PUBLIC weir_status weir_isfinite(weir_tensor **out, const weir_tensor *a);

/* ---- elementwise, two operands ----------------------------------------------------------------
 * weir_add(&out, a, b), weir_add_scalar(&out, a, weir_float(2)), weir_scalar_add(&out, weir_int(1),
 * b), weir_add_(a, b), weir_add_scalar_(a, weir_float(2)). div is true division: of integers it has
 * the default dtype; floor_divide rounds towards minus infinity. Integers by zero: on the cpu
 * EINVAL "ZeroDivisionError"; a CUDA device does not wait to find out, the element becomes 0.
 * Comparisons and logical_and, logical_or give bool. maximum and minimum pass NaN on. Errors: "The
 * size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0"; "Expected
 * all tensors to be on the same device, but found at least two devices, cuda:0 and cuda:1!"; of the
 * forms in place: "output with shape [3] doesn't match the broadcast shape [2, 3]", "result type
 * Float can't be cast to the desired output type Long". */
#define WEIR_BINARY_MAP(X)                                                                         \
  X(add, ADD)                                                                                      \
  X(sub, SUB)                                                                                      \
  X(mul, MUL)                                                                                      \
  X(div, DIV)                                                                                      \
  X(floor_divide, FLOOR_DIV)                                                                       \
  X(pow, POW)                                                                                      \
  X(maximum, MAXIMUM)                                                                              \
  X(minimum, MINIMUM)                                                                              \
  X(eq, EQ)                                                                                        \
  X(ne, NE)                                                                                        \
  X(lt, LT)                                                                                        \
  X(le, LE)                                                                                        \
  X(gt, GT)                                                                                        \
  X(ge, GE)                                                                                        \
  X(logical_and, LOGICAL_AND)                                                                      \
  X(logical_or, LOGICAL_OR)

#define WEIR_BINARY_DECLARE(name, op)                                                              \
  WEIR_PUBLIC weir_status weir_##name(weir_tensor **out, const weir_tensor *a,                     \
                                      const weir_tensor *b);                                       \
  WEIR_PUBLIC weir_status weir_##name##_scalar(weir_tensor **out, const weir_tensor *a,            \
                                               weir_scalar b);                                     \
  WEIR_PUBLIC weir_status weir_scalar_##name(weir_tensor **out, weir_scalar a,                     \
                                             const weir_tensor *b);                                \
  WEIR_PUBLIC weir_status weir_##name##_(weir_tensor *a, const weir_tensor *b);                    \
  WEIR_PUBLIC weir_status weir_##name##_scalar_(weir_tensor *a, weir_scalar b);
WEIR_BINARY_MAP(WEIR_BINARY_DECLARE)
#undef WEIR_BINARY_DECLARE

/* a + alpha b, a - alpha b. Errors: "For integral input tensors, argument alpha must not be a
 * floating point number." */
WEIR_PUBLIC weir_status weir_add_alpha(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *b, weir_scalar alpha);
WEIR_PUBLIC weir_status weir_sub_alpha(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *b, weir_scalar alpha);
WEIR_PUBLIC weir_status weir_add_alpha_(weir_tensor *a, const weir_tensor *b, weir_scalar alpha);
WEIR_PUBLIC weir_status weir_sub_alpha_(weir_tensor *a, const weir_tensor *b, weir_scalar alpha);

/* a where condition (bool), else b. Errors: "where expected condition to be a boolean tensor, but
 * got a tensor with dtype Float". */
WEIR_PUBLIC weir_status weir_where(weir_tensor **out, const weir_tensor *condition,
                                   const weir_tensor *a, const weir_tensor *b);
/* Not below low, not above high; NULL: no bound there. Errors: "weir.clamp: At least one of 'min'
 * or 'max' must not be None". */
WEIR_PUBLIC weir_status weir_clamp(weir_tensor **out, const weir_tensor *a, const weir_scalar *low,
                                   const weir_scalar *high);

/* |a - b| <= atol + rtol |b|, elementwise: bool. torch's usual bounds: 1e-5, 1e-8. */
WEIR_PUBLIC weir_status weir_isclose(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                     double rtol, double atol, bool equal_nan);
/* The same of all elements; waits for the device. */
WEIR_PUBLIC weir_status weir_allclose(bool *out, const weir_tensor *a, const weir_tensor *b,
                                      double rtol, double atol, bool equal_nan);
/* Same shape and same elements; waits for the device. */
WEIR_PUBLIC weir_status weir_equal(bool *out, const weir_tensor *a, const weir_tensor *b);

/* ---- reductions -------------------------------------------------------------------------------
 * Of all elements, to a tensor without dimensions; or over `count` dimensions `dims` (negative ones
 * count from the end, none: all), which disappear or, keepdim, have size 1 in the result. sum and
 * prod of integers and bool are int64; nansum counts NaN as 0. argmax and argmin give places
 * (int64), the first of equals; max_dim and min_dim values and places; amax and amin values only.
 * Errors: "Dimension out of range (expected to be in range of [-2, 1], but got 2)", "dim 0 appears
 * multiple times in the list of dims", mean of integers, an empty max. */
#define WEIR_REDUCE_MAP(X)                                                                         \
  X(sum, SUM)                                                                                      \
  X(mean, MEAN)                                                                                    \
  X(prod, PROD)                                                                                    \
  X(amax, MAX)                                                                                     \
  X(amin, MIN)                                                                                     \
  X(all, ALL)                                                                                      \
  X(any, ANY)                                                                                      \
  X(nansum, NANSUM)

#define WEIR_REDUCE_DECLARE(name, op)                                                              \
  WEIR_PUBLIC weir_status weir_##name(weir_tensor **out, const weir_tensor *a);                    \
  WEIR_PUBLIC weir_status weir_##name##_dim(weir_tensor **out, const weir_tensor *a, int dim,      \
                                            bool keepdim);                                         \
  WEIR_PUBLIC weir_status weir_##name##_dims(weir_tensor **out, const weir_tensor *a,              \
                                             const int *dims, int count, bool keepdim);
WEIR_REDUCE_MAP(WEIR_REDUCE_DECLARE)
#undef WEIR_REDUCE_DECLARE

WEIR_PUBLIC weir_status weir_max(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_min(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_argmax(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_argmin(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_argmax_dim(weir_tensor **out, const weir_tensor *a, int dim,
                                        bool keepdim);
WEIR_PUBLIC weir_status weir_argmin_dim(weir_tensor **out, const weir_tensor *a, int dim,
                                        bool keepdim);
WEIR_PUBLIC weir_status weir_max_dim(weir_tensor **values, weir_tensor **indices,
                                     const weir_tensor *a, int dim, bool keepdim);
WEIR_PUBLIC weir_status weir_min_dim(weir_tensor **values, weir_tensor **indices,
                                     const weir_tensor *a, int dim, bool keepdim);
WEIR_PUBLIC weir_status weir_softmax(weir_tensor **out, const weir_tensor *a, int dim);
WEIR_PUBLIC weir_status weir_log_softmax(weir_tensor **out, const weir_tensor *a, int dim);

/* ---- linear algebra ---------------------------------------------------------------------------
 * Of one dtype: nothing is promoted ("expected m1 and m2 to have the same dtype, but got: float !=
 * double"). Floating point, and integers on the cpu. Errors: "mat1 and mat2 shapes cannot be
 * multiplied (2x3 and 4x5)". */

/* (k)(k), (m,k)(k), (k)(k,n), (m,k)(k,n), and batches of matrices, which broadcast. */
WEIR_PUBLIC weir_status weir_matmul(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
WEIR_PUBLIC weir_status weir_dot(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
WEIR_PUBLIC weir_status weir_mv(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
WEIR_PUBLIC weir_status weir_mm(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
WEIR_PUBLIC weir_status weir_bmm(weir_tensor **out, const weir_tensor *a, const weir_tensor *b);
/* beta c + alpha (a b); c broadcasts. */
WEIR_PUBLIC weir_status weir_addmm(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                                   const weir_tensor *b, double beta, double alpha);
/* a weight^T + bias: a (..., in), weight (out, in), bias (out) or NULL. */
WEIR_PUBLIC weir_status weir_linear(weir_tensor **out, const weir_tensor *a,
                                    const weir_tensor *weight, const weir_tensor *bias);

/* Rows, columns. Zeros are the defaults. */
typedef struct weir_conv2d_options {
  int64_t stride[2];   /* elements; 0: 1 */
  int64_t padding[2];  /* elements on each side */
  int64_t dilation[2]; /* elements; 0: 1 */
  int64_t groups;      /* 0: 1 */
} weir_conv2d_options;

/* Cross-correlation: a (n, channels, h, w) or (channels, h, w), weight (out, channels / groups, kh,
 * kw), bias (out) or NULL; options NULL: the defaults. Errors: "Given groups=1, weight of size [20,
 * 1, 5, 5], expected input[1, 3, 8, 8] to have 1 channels, but got 3 channels instead"; "Input type
 * (weir.cuda.FloatTensor) and weight type (weir.FloatTensor) should be the same". */
WEIR_PUBLIC weir_status weir_conv2d(weir_tensor **out, const weir_tensor *a,
                                    const weir_tensor *weight, const weir_tensor *bias,
                                    const weir_conv2d_options *options);

typedef struct weir_pool2d_options {
  int64_t kernel[2];   /* elements */
  int64_t stride[2];   /* elements; 0: kernel */
  int64_t padding[2];  /* elements on each side, at most half of kernel */
  int64_t dilation[2]; /* elements; 0: 1 */
} weir_pool2d_options;

/* The largest of each window: a (n, channels, h, w) or (channels, h, w). */
WEIR_PUBLIC weir_status weir_max_pool2d(weir_tensor **out, const weir_tensor *a,
                                        const weir_pool2d_options *options);

/* ---- joining ----------------------------------------------------------------------------------
 * Errors: "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for
 * tensor number 1 in the list." */

/* One after the other along `dim`; dtypes are promoted. */
WEIR_PUBLIC weir_status weir_cat(weir_tensor **out, const weir_tensor *const *tensors, int count,
                                 int dim);
/* Along a new dimension. */
WEIR_PUBLIC weir_status weir_stack(weir_tensor **out, const weir_tensor *const *tensors, int count,
                                   int dim);

/* ---- random numbers ---------------------------------------------------------------------------
 * Philox4x32-10: a seed gives the same numbers on every device and with any number of threads. A
 * generator is a seed and a place in its stream; each device has a default one, which NULL means.
 * Replays of a graph draw on (graph.h), and a graph keeps the generators it draws from. */

typedef struct weir_generator weir_generator;

typedef struct weir_generator_state {
  uint64_t seed;
  uint64_t offset; /* blocks of four 32-bit words that are used up */
} weir_generator_state;

/* new: give it back with weir_generator_release(). The seed is at first that of weir_manual_seed(),
 * or PyTorch's first one. */
WEIR_PUBLIC weir_status weir_generator_new(weir_generator **out, weir_device device);
WEIR_PUBLIC void weir_generator_release(weir_generator *g); /* NULL and default ones: nothing */
/* WEIR_GENERATOR generator = NULL; is released at the end of its block. */
typedef weir_generator *weir_generator_owned;
static inline void weir_generator_drop(weir_generator **generator)
{
  weir_generator_release(*generator);
  *generator = NULL;
}
#define WEIR_GENERATOR __attribute__((cleanup(weir_generator_drop))) weir_generator_owned
/* The device's default generator (borrowed, as long as the process). */
WEIR_PUBLIC weir_status weir_default_generator(weir_generator **out, weir_device device);
WEIR_PUBLIC void weir_generator_manual_seed(weir_generator *g, uint64_t seed);
WEIR_PUBLIC uint64_t weir_generator_initial_seed(const weir_generator *g);
WEIR_PUBLIC weir_device weir_generator_device(const weir_generator *g);
WEIR_PUBLIC weir_generator_state weir_generator_get_state(const weir_generator *g);
WEIR_PUBLIC void weir_generator_set_state(weir_generator *g, weir_generator_state state);
/* Seeds the default generators of all devices, also of those not yet used. */
WEIR_PUBLIC void weir_manual_seed(uint64_t seed);
/* Seeds that of one device; cuda without an index: of the current one. */
WEIR_PUBLIC weir_status weir_manual_seed_device(weir_device device, uint64_t seed);

/* Fill t; generator (borrowed) NULL: the default one of t's device. Errors: "normal expects std >=
 * 0.0, but found std -1", "Expected a 'cuda' device type for generator but found 'cpu'". */
WEIR_PUBLIC weir_status weir_normal_(weir_tensor *t, double mean, double std, weir_generator *g);
WEIR_PUBLIC weir_status weir_uniform_(weir_tensor *t, double from, double to, weir_generator *g);
/* Integers from `from` to `to` - 1. */
WEIR_PUBLIC weir_status weir_random_(weir_tensor *t, int64_t from, int64_t to, weir_generator *g);
/* 1 with probability p, else 0. */
WEIR_PUBLIC weir_status weir_bernoulli_(weir_tensor *t, double p, weir_generator *g);
/* num_samples categories, drawn by their probabilities (up to a factor): (categories) or (rows,
 * categories) to int64 of (num_samples) or (rows, num_samples). Without replacement no category
 * comes twice. In float64, on the device of the probabilities; the host reads three numbers of it.
 * The numbers drawn are not torch's. Errors: "prob_dist must be 1 or 2 dim", "cannot sample
 * n_sample > prob_dist.size(-1) samples without replacement", "probability tensor contains either
 * `inf`, `nan` or element < 0", "invalid multinomial distribution (sum of probabilities <= 0)". */
WEIR_PUBLIC weir_status weir_multinomial(weir_tensor **out, const weir_tensor *probabilities,
                                         int64_t num_samples, bool replacement, weir_generator *g);

/* ---- precision --------------------------------------------------------------------------------
 * Of the process. Matrix products of float32 may be rounded to TF32 (at first not); partial sums of
 * float16 and bfloat16 products may be rounded to their dtype (at first they may); only algorithms
 * that give the same bits every time (at first others, too). As torch.backends.cuda.matmul and
 * torch.use_deterministic_algorithms(). TF32 of convolutions by cuDNN goes by the same: at first
 * not, where torch.backends.cudnn.allow_tf32 is True at first. */
WEIR_PUBLIC void weir_set_allow_tf32(bool allow);
WEIR_PUBLIC bool weir_get_allow_tf32(void);
WEIR_PUBLIC void weir_set_allow_reduced_precision(bool allow);
WEIR_PUBLIC bool weir_get_allow_reduced_precision(void);
WEIR_PUBLIC void weir_set_deterministic(bool on);
WEIR_PUBLIC bool weir_get_deterministic(void);

#ifdef __cplusplus
}
#endif

#endif
