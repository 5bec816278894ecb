/* conv_library.c: convolutions and their gradients by a library that the device has (cuDNN on CUDA
 * devices), where it is there and takes the request; else by conv.c and convolve.c.
 *
 * Operands go in the result's format: contiguous, or channels last where an operand has its
 * channels there, and are copied where they lie otherwise. */
#include <stdint.h>
#include <string.h>
#include "core/ops/ops.h"
#include "core/tensor/format.h"

enum { OPERAND_ALIGNMENT = 16 }; /* bytes; what libraries read at a time */

weir_convolution conv_request(weir_conv_pass pass, int axes, const int64_t *stride,
                              const int64_t *pad, const int64_t *dilation, int64_t groups)
{
  weir_convolution q = {.pass = pass, .axes = axes, .groups = groups};
  memcpy(q.stride, stride, (size_t)axes * sizeof *stride);
  memcpy(q.pad, pad, (size_t)axes * sizeof *pad);
  memcpy(q.dilation, dilation, (size_t)axes * sizeof *dilation);
  return q;
}

/* t itself, counted, or a copy that lies as a library takes it. */
static weir_status laid(weir_tensor **out, const weir_tensor *t, weir_memory_format format)
{
  if (format_holds(t, format) && !((uintptr_t)t->data % OPERAND_ALIGNMENT)) {
    *out = weir_tensor_retain((weir_tensor *)t);
    return WEIR_OK;
  }
  weir_status st =
      format_new(out, t->dtype, device_of_tensor(t), false, weir_tensor_shape(t), format);
  if (!st && (st = weir_copy_(*out, t, false))) weir_tensor_drop(out);
  return st;
}

static weir_memory_format format_of_two(const weir_tensor *a, const weir_tensor *b, int axes)
{
  weir_memory_format last = axes == 2 ? WEIR_CHANNELS_LAST : WEIR_CHANNELS_LAST_3D;
  return format_of(a) == last || format_of(b) == last ? last : WEIR_CONTIGUOUS_FORMAT;
}

/* Sizes from the shapes of x, w and y. */
static void measure_request(weir_convolution *q, weir_shape x, weir_shape w, weir_shape y)
{
  q->n = x.size[0];
  q->channels = w.size[1];
  q->outs = w.size[0] / q->groups;
  for (int i = 0; i < q->axes; i++) {
    q->size[i] = x.size[2 + i];
    q->kernel[i] = w.size[2 + i];
    q->result[i] = y.size[2 + i];
  }
}

/* Every channel of t and its bias. */
static weir_status add_channel_bias(weir_tensor *t, const weir_tensor *bias)
{
  CALC(c);
  weir_shape shape = {.count = t->dims - 1, .size = {bias->size[0]}};
  for (int i = 1; i < shape.count; i++)
    shape.size[i] = 1;
  weir_tensor *column = c_reshape(c, bias, shape);
  return c->st ? c->st : weir_add_(t, column);
}

static weir_status run_request(weir_tensor **out, const compute_target *t, weir_convolution *q,
                               const weir_tensor *a, const weir_tensor *b, weir_shape shape)
{
  CALC(c);
  bool done = false;
  weir_memory_format format = format_of_two(a, b, q->axes);
  c->st = format_new(out, a->dtype, device_of_tensor(a), false, shape, format);
  weir_tensor *first = c_call(c, laid, a, format);
  weir_tensor *second = c_call(c, laid, b, format);
  if (!c->st) {
    bool forward = q->pass == WEIR_CONV_FORWARD, input = q->pass == WEIR_CONV_BACKWARD_INPUT;
    q->channels_last = format != WEIR_CONTIGUOUS_FORMAT;
    q->x = input ? (*out)->data : first->data;
    q->w = forward ? second->data : input ? first->data : (*out)->data;
    q->y = forward ? (*out)->data : second->data;
    c->st =
        compute_target_done(t, t->compute->convolve(t->self, t->stream, q, &done), "convolution");
  }
  if (c->st || !done) weir_tensor_drop(out);
  return c->st;
}

weir_status conv_by_library(weir_tensor **out, weir_convolution *q, const weir_tensor *a,
                            const weir_tensor *b, const weir_tensor *bias, weir_shape shape)
{
  compute_target t;
  weir_shape first = weir_tensor_shape(a), second = weir_tensor_shape(b);
  bool forward = q->pass == WEIR_CONV_FORWARD, input = q->pass == WEIR_CONV_BACKWARD_INPUT;
  *out = NULL;
  weir_status st = compute_target_of(&t, device_of_tensor(a));
  if (st || !t.compute->convolve || !dtype_is_floating(a->dtype)) return st;
  measure_request(q, input ? shape : first,
                  forward ? second
                  : input ? first
                          : shape,
                  forward ? shape : second);
  q->dtype = a->dtype;
  q->tf32 = weir_get_allow_tf32();
  q->deterministic = weir_get_deterministic();
  q->blas = weir_get_blas();
  if (!t.compute->convolves(t.self, q)) return WEIR_OK;
  st = run_request(out, &t, q, a, b, shape);
  if (!st && *out && bias && (st = add_channel_bias(*out, bias))) weir_tensor_drop(out);
  return st;
}

weir_status conv2d_input_backward(weir_tensor **out, const weir_tensor *grad,
                                  const weir_tensor *weight, weir_shape input,
                                  const weir_conv2d_options *o)
{
  weir_convolution q =
      conv_request(WEIR_CONV_BACKWARD_INPUT, 2, o->stride, o->padding, o->dilation, o->groups);
  return conv_by_library(out, &q, weight, grad, NULL, input);
}
