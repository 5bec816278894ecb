/* loop.h: what a request to a device is made of: the dtype, the shape and the place that operands
 * have in common, and the request itself.
 *
 * Words. category: tensors with dimensions, tensors without, numbers: in this order they decide the
 * dtype of a result. common dtype: what operands are converted to before they are combined. */
#ifndef WEIR_TENSOR_LOOP_H
#define WEIR_TENSOR_LOOP_H

#include "core/tensor/tensor.h"

/* ---- promote.c ------------------------------------------------------------------------------- */

/* The dtype of each category so far, WEIR_DTYPE_NONE: nothing of it yet. */
typedef struct categories {
  weir_dtype dims, zero, number;
} categories;

/* Errors: ENOTSUP (complex128). */
weir_status categories_tensor(categories *c, const weir_tensor *t);
weir_status categories_number(categories *c, weir_scalar number);
weir_status categories_result(weir_dtype *out, const categories *c);

static inline bool dtype_is_integral(weir_dtype d) /* without bool */
{
  return d >= WEIR_UINT8 && d <= WEIR_INT64;
}

static inline bool dtype_is_integral_or_bool(weir_dtype d)
{
  return dtype_is_integral(d) || d == WEIR_BOOL;
}

static inline bool dtype_is_floating(weir_dtype d)
{
  return (d >= WEIR_FLOAT16 && d <= WEIR_FLOAT64) || d == WEIR_BFLOAT16;
}

/* Whether a result of dtype `from` may be stored in place as `to`: torch.can_cast(). */
bool dtype_can_cast(weir_dtype from, weir_dtype to);
/* The least and the most number a dtype holds; of floating point the finite ones. */
void dtype_range(weir_dtype d, double *least, double *most);
/* "Float", "Long": torch's name of a scalar type; "float", "long int", "c10::Half": C++'s. */
const char *dtype_title(weir_dtype dtype);
const char *dtype_cxx(weir_dtype dtype);
/* "\"abs_cpu\" not implemented for 'Bool'", ENOTSUP. */
weir_status not_implemented(const char *kernel, weir_device device, weir_dtype dtype);

/* ---- broadcast.c ----------------------------------------------------------------------------- */

/* *shape becomes what it and `size` broadcast to. Errors: EINVAL, "The size of tensor a (3) must
 * match the size of tensor b (4) at non-singleton dimension 0". */
weir_status shape_broadcast(weir_shape *shape, const int64_t *size, int dims);
/* Errors: EINVAL, "Expected all tensors to be on the same device, but found at least two devices,
 * cuda:0 and cuda:1!". */
weir_status check_same_device(const weir_tensor *a, const weir_tensor *b);
/* "cuda:0" in `text`; text. */
enum { WEIR_DEVICE_TEXT = 32 };
const char *device_format(char text[WEIR_DEVICE_TEXT], weir_device device);

/* ---- loop.c ---------------------------------------------------------------------------------- */

/* Where requests go: the functions and their first two arguments. */
typedef struct compute_target {
  const weir_compute *compute;
  void *self, *stream;
  device_place place; /* CUDA; for the report of asynchronous errors */
} compute_target;

/* Errors: those of device_place_of(); ENOTSUP: a device that cannot calculate. */
weir_status compute_target_of(compute_target *out, weir_device device);
/* ENOTSUP: the device has no function for `op`. */
weir_status compute_target_lacks(const compute_target *t, const char *op) __attribute__((cold));
/* After work was enqueued: names it for asynchronous errors. */
weir_status compute_target_done(const compute_target *t, weir_status st, const char *op);
/* A new tensor for the result of a loop whose dims, sizes and inputs are filled: its dimensions lie
 * in memory in the order in which they do in the inputs, as torch's results do; l->out is it. */
weir_status loop_out(weir_tensor **out, weir_loop *l, weir_dtype dtype, weir_device device);

/* l becomes a request that writes every element of `out`, calculated in its dtype; its inputs and
 * what else its operation reads are the caller's to fill. */
static inline void loop_begin(weir_loop *l, weir_op op, const weir_tensor *out)
{
  l->op = op;
  l->compute = out->dtype;
  l->has_alpha = false;
  l->dims = out->dims;
  for (int i = 0; i < out->dims; i++)
    l->size[i] = out->size[i];
  l->out = operand_of(out, l);
}

/* Copies `from`, broadcast and cast, into `to` on the same device; they share no memory. */
weir_status loop_copy(const weir_tensor *to, const weir_tensor *from);
/* A copy that is dense. */
weir_status loop_dense(weir_tensor **out, const weir_tensor *t);

#endif
