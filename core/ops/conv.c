/* conv.c: two-dimensional convolution and pooling.
 *
 * A convolution is a product: the weights of a group (out x (channels, kh, kw)) times a matrix
 * whose columns are the windows of one image (weir_im2col). As many images as some bytes hold
 * are unfolded at a time; a kernel of one element and stride 1 needs no unfolding. The bias is what
 * the product is added to.
 *
 * Pooling takes, for each place of the window that sees an element of some window, the elements it
 * covers as a strided view, and the larger of them and what is there: exact, whatever the device.
 * Where it is recorded it is the request of pool.c, which states where the largest are.
 *
 * The gradient of the weights is, summed over the images, that of the output times the image's
 * columns.
 *
 * Words. image: one element of the batch. window: what one output element sees. columns: the
 * unfolded windows. */
#include <math.h>
#include <string.h>
#include "core/ops/ops.h"
#include "core/tensor/format.h"

/* Bytes of columns at a time, where more than one image fits: as many as half of input and output
 * have, and from LEAST to MOST. */
enum { WINDOWS_LEAST = 256 << 10, WINDOWS_MOST = 32 << 20 };

typedef struct conv {
  const weir_tensor *a, *weight; /* borrowed, dense */
  weir_tensor *out;              /* borrowed */
  int64_t n, channels, groups;
  int64_t outs; /* channels of the output */
  int64_t stride[2], pad[2], dilation[2];
  int64_t in[2], kernel[2], size[2]; /* of an image, of the weights, of the output */
} conv;

static int64_t at_least_1(int64_t x)
{
  return x ? x : 1;
}

/* *out is a + b * times; false: it overflows. */
static bool add_times(int64_t *out, int64_t a, int64_t b, int64_t times)
{
  int64_t product;
  return !__builtin_mul_overflow(b, times, &product) && !__builtin_add_overflow(a, product, out);
}

/* What a kernel covers of the input, in one direction; false: it overflows. */
static bool span_of(int64_t *out, int64_t kernel, int64_t dilation)
{
  return !__builtin_sub_overflow(kernel, 1, out) && add_times(out, 1, dilation, *out);
}

static weir_status too_large(const char *op, int64_t kernel, int64_t padding, int64_t dilation)
{
  return fail_invalid(
      "%s: kernel_size=%lld, padding=%lld and dilation=%lld are too large: a size overflows", op,
      (long long)kernel, (long long)padding, (long long)dilation);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_options(const conv *c)
{
  if (c->pad[0] < 0 || c->pad[1] < 0) return fail_invalid("negative padding is not supported");
  if (c->stride[0] < 1 || c->stride[1] < 1)
    return fail_invalid("non-positive stride is not supported");
  if (c->dilation[0] < 1 || c->dilation[1] < 1)
    return fail_invalid("dilation should be greater than zero");
  if (c->groups < 1) return fail_invalid("non-positive groups is not supported");
  return WEIR_OK;
}

/* The input as torch prints it: with a batch. */
static const char *input_text(text_buffer *text, const conv *c)
{
  return shape_format(text, weir_shape(c->n, c->channels, c->in[0], c->in[1]));
}

static weir_status check_channels(const conv *c, const weir_tensor *weight)
{
  text_buffer w, x;
  const char *shape = shape_format(&w, shape_of_tensor(weight));
  long long groups = (long long)c->groups;
  int64_t channels;
  if (weight->size[0] < c->groups)
    return fail_invalid("Given groups=%lld, expected weight to be at least %lld at dimension 0, "
                        "but got weight of size %s instead",
                        groups, groups, shape);
  if (weight->size[0] % c->groups)
    return fail_invalid("Given groups=%lld, expected weight to be divisible by %lld at dimension "
                        "0, but got weight of size [%s] instead",
                        groups, groups, shape);
  if (__builtin_mul_overflow(weight->size[1], c->groups, &channels))
    return fail_invalid("conv2d: groups=%lld and weight of size %s: channels overflow", groups,
                        shape);
  if (c->channels != channels)
    return fail_invalid("Given groups=%lld, weight of size %s, expected input%s to have %lld "
                        "channels, but got %lld channels instead",
                        groups, shape, input_text(&x, c), (long long)channels,
                        (long long)c->channels);
  return WEIR_OK;
}

static weir_status check_bias(const weir_tensor *weight, const weir_tensor *bias)
{
  text_buffer w, x;
  if (!bias || (bias->dims == 1 && bias->size[0] == weight->size[0])) return WEIR_OK;
  return fail_invalid("Given weight of size %s, expected bias to be 1-dimensional with %lld "
                      "elements, but got bias of size %s instead",
                      shape_format(&w, shape_of_tensor(weight)), (long long)weight->size[0],
                      shape_format(&x, shape_of_tensor(bias)));
}

static weir_status check_kernel(const conv *c)
{
  int64_t padded[2], span[2];
  for (int i = 0; i < 2; i++)
    if (!add_times(&padded[i], c->in[i], c->pad[i], 2) ||
        !span_of(&span[i], c->kernel[i], c->dilation[i]))
      return too_large("conv2d", c->kernel[i], c->pad[i], c->dilation[i]);
  if (padded[0] >= span[0] && padded[1] >= span[1]) return WEIR_OK;
  return fail_invalid("Calculated padded input size per channel: (%lld x %lld). Kernel size: (%lld "
                      "x %lld). Kernel size can't be greater than actual input size",
                      (long long)padded[0], (long long)padded[1], (long long)span[0],
                      (long long)span[1]);
}

/* Row 25's sentence: a type is a dtype on a kind of device. */
static weir_status check_types(const weir_tensor *a, const weir_tensor *weight,
                               const weir_tensor *bias)
{
  const weir_tensor *other[2] = {weight, bias};
  for (int i = 0; i < 2; i++)
    if (other[i] && (other[i]->dtype != a->dtype ||
                     device_of_tensor(other[i]).type != device_of_tensor(a).type))
      return fail_invalid("Input type (%s) and %s type (%s) should be the same",
                          weir_tensor_type(a), i ? "bias" : "weight", weir_tensor_type(other[i]));
  weir_status st = check_same_device(a, weight);
  if (!st && bias) st = check_same_device(a, bias);
  return st;
}

/* Last: a dtype that cannot be multiplied here. */
static weir_status check_kind(const conv *c, const weir_tensor *a)
{
  weir_dtype d = a->dtype;
  bool cpu = device_of_tensor(a).type == WEIR_DEVICE_CPU,
       dilated = c->dilation[0] > 1 || c->dilation[1] > 1;
  if (d != WEIR_BOOL && (!dtype_is_integral(d) || cpu)) return WEIR_OK;
  return not_implemented(dilated ? "slow_conv_dilated<>" : "slow_conv2d_%s", device_of_tensor(a),
                         d);
}

static void describe_conv(conv *c, const weir_tensor *a, const weir_tensor *weight,
                          const weir_conv2d_options *o)
{
  static const weir_conv2d_options defaults = {0};
  int lead = a->dims - 3; /* 1: a has a batch */
  if (!o) o = &defaults;
  c->n = lead ? a->size[0] : 1;
  c->channels = a->size[lead];
  c->groups = at_least_1(o->groups);
  c->outs = weight->size[0];
  for (int i = 0; i < 2; i++) {
    c->stride[i] = at_least_1(o->stride[i]);
    c->dilation[i] = at_least_1(o->dilation[i]);
    c->pad[i] = o->padding[i];
    c->in[i] = a->size[lead + 1 + i];
    c->kernel[i] = weight->size[2 + i];
  }
}

static weir_status check_conv(conv *c, const weir_tensor *a, const weir_tensor *weight,
                              const weir_tensor *bias, const weir_conv2d_options *o)
{
  text_buffer text;
  if (a->dims != 3 && a->dims != 4)
    return fail_invalid(
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: %s",
        shape_format(&text, shape_of_tensor(a)));
  if (weight->dims != 4)
    return fail_invalid("conv2d: weight must have 4 dimensions, but it has %d", weight->dims);
  describe_conv(c, a, weight, o);
  weir_status st = check_types(a, weight, bias);
  if (!st) st = check_options(c);
  if (!st) st = check_channels(c, weight);
  if (!st) st = check_bias(weight, bias);
  if (!st) st = check_kernel(c);
  if (!st && a->numel) st = check_kind(c, a);
  for (int i = 0; i < 2; i++)
    c->size[i] =
        st ? 0
           : (c->in[i] + 2 * c->pad[i] - c->dilation[i] * (c->kernel[i] - 1) - 1) / c->stride[i] +
                 1;
  return st;
}

/* ---- the work -------------------------------------------------------------------------------- */

static char *data_at(const weir_tensor *t, int64_t elements)
{
  return t->data + elements * (int64_t)itemsize(t->dtype);
}

/* Images from `first` on, `count` of them, whose columns lie at `columns`: for each group one
 * request over the images, or for each image one over the groups. */
static weir_status multiply_columns(const compute_target *t, const conv *c, const char *columns,
                                    int64_t first, int64_t count, double beta)
{
  size_t item = itemsize(c->a->dtype);
  int64_t rows = c->channels / c->groups * c->kernel[0] * c->kernel[1], outs = c->outs / c->groups;
  int64_t area = c->size[0] * c->size[1];
  bool by_group = count >= c->groups;
  weir_gemm g = {.dtype = c->a->dtype, .alpha = 1, .beta = beta};
  g.m = outs, g.n = area, g.k = rows;
  g.lda = at_least_1(rows), g.ldb = g.ldc = area;
  g.batch = by_group ? count : c->groups;
  g.stepa = by_group ? 0 : outs * rows;
  g.stepb = by_group ? rows * c->groups * area : rows * area;
  g.stepc = by_group ? c->outs * area : outs * area;
  weir_status st = WEIR_OK;
  for (int64_t i = 0; i < (by_group ? c->groups : count) && !st; i++) {
    int64_t group = by_group ? i : 0, image = by_group ? 0 : i;
    g.a = data_at(c->weight, group * outs * rows);
    g.b = columns + (size_t)((image * c->groups + group) * rows * area) * item;
    g.c = data_at(c->out, ((first + image) * c->outs + group * outs) * area);
    st = gemm_run(t, &g);
  }
  return st;
}

static bool needs_columns(const conv *c)
{
  for (int i = 0; i < 2; i++)
    if (c->kernel[i] != 1 || c->stride[i] != 1 || c->pad[i]) return true;
  return false;
}

static weir_status unfold(const compute_target *t, const conv *c, weir_tensor *columns,
                          int64_t first, int64_t count)
{
  weir_im2col q = {.dtype = c->a->dtype,
                   .in = data_at(c->a, first * c->channels * c->in[0] * c->in[1]),
                   .out = columns->data,
                   .n = count,
                   .c = c->channels,
                   .h = c->in[0],
                   .w = c->in[1],
                   .oh = c->size[0],
                   .ow = c->size[1]};
  memcpy(q.kernel, c->kernel, sizeof q.kernel);
  memcpy(q.stride, c->stride, sizeof q.stride);
  memcpy(q.pad, c->pad, sizeof q.pad);
  memcpy(q.dilation, c->dilation, sizeof q.dilation);
  if (!t->compute->im2col) return compute_target_lacks(t, "conv2d");
  return compute_target_done(t, t->compute->im2col(t->self, t->stream, &q), "conv2d");
}

/* Of an image's windows; false: they overflow. */
static bool elements_of(int64_t *out, const conv *c)
{
  const int64_t sizes[] = {c->channels, c->kernel[0], c->kernel[1], c->size[0], c->size[1]};
  *out = 1;
  for (int i = 0; i < 5; i++)
    if (__builtin_mul_overflow(*out, sizes[i], out)) return false;
  return true;
}

static int64_t column_bytes(const conv *c)
{
  int64_t half = (c->a->numel + c->out->numel) / 2, item = (int64_t)itemsize(c->a->dtype);
  if (half > WINDOWS_MOST / item) return WINDOWS_MOST;
  return half * item > WINDOWS_LEAST ? half * item : WINDOWS_LEAST;
}

static weir_status run_images(const compute_target *t, const conv *c, double beta)
{
  int64_t each = 0, bytes = 0;
  CALC(k);
  bool fits = elements_of(&each, c) &&
              !__builtin_mul_overflow(each, (int64_t)itemsize(c->a->dtype), &bytes);
  int64_t windows = column_bytes(c);
  int64_t chunk = bytes && windows / bytes < c->n ? windows / bytes : c->n;
  if (!chunk) chunk = 1;
  if (!needs_columns(c) || (fits && !each))
    return multiply_columns(t, c, c->a->data, 0, c->n, beta);
  if (!fits) return weir_fail(WEIR_ENOMEM, "conv2d: the windows of an image overflow in bytes");
  weir_tensor *columns = c_call(k, tensor_new_beside, c->a, weir_shape(chunk, each));
  for (int64_t i = 0; i < c->n && !k->st; i += chunk) {
    int64_t count = c->n - i < chunk ? c->n - i : chunk;
    k->st = unfold(t, c, columns, i, count);
    c_do(k, multiply_columns(t, c, columns->data, i, count, beta));
  }
  return k->st;
}

/* ---- by one request -------------------------------------------------------------------------- */

/* Whether the device convolves what is asked for: in floating point, with windows to unfold, and
 * padding in proportion. */
static bool is_request(const compute_target *t, const conv *c)
{
  if (!t->compute->conv || !dtype_is_floating(c->a->dtype)) return false;
  int64_t padded = 1, area = 1;
  for (int i = 0; i < 2; i++)
    if (__builtin_mul_overflow(padded, c->in[i] + 2 * c->pad[i] + c->stride[i], &padded) ||
        __builtin_mul_overflow(area, c->in[i] + c->size[i] + c->kernel[i], &area))
      return false;
  return needs_columns(c) && c->channels && c->outs && padded / 4 <= area + 4096;
}

static weir_status request_conv(const compute_target *t, const conv *c, const weir_tensor *bias)
{
  weir_conv q = {.dtype = c->a->dtype,
                 .in = c->a->data,
                 .weight = c->weight->data,
                 .bias = bias ? bias->data : NULL,
                 .out = c->out->data,
                 .n = c->n,
                 .groups = c->groups,
                 .channels = c->channels / c->groups,
                 .outs = c->outs / c->groups};
  memcpy(q.size, c->in, sizeof q.size);
  memcpy(q.kernel, c->kernel, sizeof q.kernel);
  memcpy(q.stride, c->stride, sizeof q.stride);
  memcpy(q.pad, c->pad, sizeof q.pad);
  memcpy(q.dilation, c->dilation, sizeof q.dilation);
  memcpy(q.result, c->size, sizeof q.result);
  return compute_target_done(t, t->compute->conv(t->self, t->stream, &q), "conv2d");
}

/* Every output channel filled with its bias. */
static weir_status fill_bias(const conv *c, const weir_tensor *bias)
{
  CALC(k);
  weir_tensor *column = c_call(k, weir_reshape, bias, weir_shape(bias->size[0], 1, 1));
  return k->st ? k->st : loop_copy(c->out, column);
}

/* t itself, counted, or a dense copy. */
static weir_status dense(weir_tensor **out, const weir_tensor *t)
{
  if (!t->dense) return loop_dense(out, t);
  *out = weir_tensor_retain((weir_tensor *)t);
  return WEIR_OK;
}

/* Into c->out, which has elements; bias: any strides, or NULL. */
static weir_status convolve(const compute_target *t, const conv *c, const weir_tensor *bias)
{
  WEIR_TENSOR row = NULL;
  weir_status st = bias ? weir_contiguous(&row, bias) : WEIR_OK;
  if (!st && is_request(t, c)) return request_conv(t, c, row);
  if (!st && bias) st = fill_bias(c, row);
  return st ? st : run_images(t, c, bias ? 1 : 0);
}

/* *out (new) by the device's library, of a with its batch; NULL: not by it. */
static weir_status library_conv(weir_tensor **out, const conv *c, const weir_tensor *a,
                                const weir_tensor *weight, const weir_tensor *bias)
{
  CALC(k);
  weir_convolution q =
      conv_request(WEIR_CONV_FORWARD, 2, c->stride, c->pad, c->dilation, c->groups);
  weir_shape shape = weir_shape(c->n, c->outs, c->size[0], c->size[1]);
  *out = NULL;
  if (!a->numel || !weight->numel || !c->n) return WEIR_OK;
  if (a->dims == 4) return conv_by_library(out, &q, a, weight, bias, shape);
  weir_tensor *batch = c_unsqueeze(k, a, 0);
  c_do(k, conv_by_library(out, &q, batch, weight, bias, shape));
  if (!*out) return k->st;
  weir_tensor *image = *out; /* new: without its batch it is no view of another */
  image->dims = 3;
  memmove(image->size, image->size + 1, 3 * sizeof *image->size);
  memmove(image->stride, image->stride + 1, 3 * sizeof *image->stride);
  return k->st;
}

/* The result's: channels last where either has them so. */
static weir_memory_format format_of_conv(const weir_tensor *a, const weir_tensor *weight)
{
  weir_memory_format format = format_of(a);
  return format == WEIR_CONTIGUOUS_FORMAT && a->dims == 4 ? format_of(weight) : format;
}

static __attribute__((cold)) weir_status record_conv(weir_tensor **out, const conv *c,
                                                     const weir_tensor *a,
                                                     const weir_tensor *weight,
                                                     const weir_tensor *bias)
{
  record r = {.kind = RECORD_CONV2D, .inputs = 3, .in = (const weir_tensor *[]){a, weight, bias}};
  for (int i = 0; i < 2; i++)
    r.n[i] = c->stride[i], r.n[2 + i] = c->pad[i], r.n[4 + i] = c->dilation[i];
  r.n[6] = c->groups;
  return record_made(out, &r, WEIR_OK);
}

weir_status weir_conv2d(weir_tensor **out, const weir_tensor *a, const weir_tensor *weight,
                        const weir_tensor *bias, const weir_conv2d_options *options)
{
  WEIR_OP(out, a, weight);
  WEIR_CASTS(CONVOLUTION, a, weight, bias);
  conv c = {.groups = 1};
  compute_target t;
  CALC(k);
  TRY(check_conv(&c, a, weight, bias, options));
  bool records = recorded_any((const weir_tensor *[]){a, weight, bias}, 3);
  WEIR_UNRECORDED;
  weir_shape batched = weir_shape(c.n, c.outs, c.size[0], c.size[1]);
  weir_shape shape = a->dims == 4 ? batched : weir_shape(c.outs, c.size[0], c.size[1]);
  k->st = library_conv(out, &c, a, weight, bias);
  if (k->st || *out) return k->st || !records ? k->st : record_conv(out, &c, a, weight, bias);
  k->st = tensor_new_beside(out, a, shape);
  c_do(k, compute_target_of(&t, device_of_tensor(a)));
  weir_tensor *input = c_call(k, dense, a);
  weir_tensor *kernel = c_call(k, dense, weight);
  c.a = input, c.weight = kernel, c.out = *out;
  if (!k->st && c.out->numel) k->st = convolve(&t, &c, bias);
  c_do(k, format_settle(out, format_of_conv(a, weight)));
  if (k->st) weir_tensor_drop(out);
  return k->st || !records ? k->st : record_conv(out, &c, a, weight, bias);
}

/* ---- the gradient of the weights ------------------------------------------------------------- */

/* Of images `first` on, `count` of them: part (count, outs, rows) is the gradient (outs, area) of
 * each times its columns, transposed. */
static weir_status weigh_images(const compute_target *t, const conv *c, const weir_tensor *part,
                                const char *columns, int64_t first, int64_t count)
{
  size_t item = itemsize(c->a->dtype);
  int64_t rows = c->channels / c->groups * c->kernel[0] * c->kernel[1], outs = c->outs / c->groups;
  int64_t area = c->size[0] * c->size[1];
  weir_gemm g = {.dtype = c->a->dtype, .alpha = 1, .transb = true, .batch = count};
  g.m = outs, g.n = rows, g.k = area;
  g.lda = g.ldb = area, g.ldc = rows;
  g.stepa = c->outs * area, g.stepb = rows * c->groups * area, g.stepc = c->outs * rows;
  weir_status st = WEIR_OK;
  for (int64_t group = 0; group < c->groups && !st; group++) {
    g.a = data_at(c->out, (first * c->outs + group * outs) * area);
    g.b = columns + (size_t)(group * rows * area) * item;
    g.c = data_at(part, group * outs * rows);
    st = gemm_run(t, &g);
  }
  return st;
}

/* *sum (new, or NULL before the first) becomes itself and the images' parts. */
static weir_status add_images(weir_tensor **sum, const compute_target *t, const conv *c,
                              const char *columns, int64_t first, int64_t count, weir_shape weight)
{
  CALC(k);
  weir_shape shape = {.count = 5, .size = {count}};
  memcpy(shape.size + 1, weight.size, 4 * sizeof *shape.size);
  weir_tensor *part = c_call(k, tensor_new_beside, c->a, shape);
  c_do(k, weigh_images(t, c, part, columns, first, count));
  weir_tensor *all = c_sum_dim(k, part, 0, false);
  if (k->st) return k->st;
  if (*sum) return weir_add_(*sum, all);
  *sum = weir_tensor_retain(all);
  return WEIR_OK;
}

static weir_status weigh_all(weir_tensor **sum, const compute_target *t, const conv *c,
                             weir_shape weight)
{
  CALC(k);
  int64_t each, bytes;
  if (!elements_of(&each, c) ||
      __builtin_mul_overflow(each, (int64_t)itemsize(c->a->dtype), &bytes))
    return weir_fail(WEIR_ENOMEM, "conv2d: the windows of an image overflow in bytes");
  if (!needs_columns(c)) return add_images(sum, t, c, c->a->data, 0, c->n, weight);
  int64_t windows = column_bytes(c);
  int64_t chunk = windows / bytes < c->n ? windows / bytes : c->n;
  if (!chunk) chunk = 1;
  weir_tensor *columns = c_call(k, tensor_new_beside, c->a, weir_shape(chunk, each));
  for (int64_t i = 0; i < c->n && !k->st; i += chunk) {
    int64_t count = c->n - i < chunk ? c->n - i : chunk;
    k->st = unfold(t, c, columns, i, count);
    c_do(k, add_images(sum, t, c, columns->data, i, count, weight));
  }
  return k->st;
}

/* Of operands in float32 or float64, with elements. */
static weir_status weigh(weir_tensor **out, const weir_tensor *a, const weir_tensor *grad,
                         weir_shape weight, const weir_conv2d_options *o)
{
  CALC(k);
  weir_tensor kernel = {.dims = 4};
  compute_target t;
  conv c = {.groups = 1};
  memcpy(kernel.size, weight.size, 4 * sizeof *kernel.size);
  describe_conv(&c, a, &kernel, o);
  memcpy(c.size, grad->size + 2, sizeof c.size);
  k->st = compute_target_of(&t, device_of_tensor(a));
  weir_tensor *input = c_call(k, dense, a);
  weir_tensor *back = c_call(k, dense, grad);
  c.a = input, c.out = back;
  return k->st ? k->st : weigh_all(out, &t, &c, weight);
}

/* By the device's library; *out NULL: not by it. */
static weir_status library_weigh(weir_tensor **out, const weir_tensor *a, const weir_tensor *grad,
                                 weir_shape weight, const weir_conv2d_options *o)
{
  weir_tensor kernel = {.dims = 4};
  conv c = {.groups = 1};
  memcpy(kernel.size, weight.size, 4 * sizeof *kernel.size);
  describe_conv(&c, a, &kernel, o);
  weir_convolution q =
      conv_request(WEIR_CONV_BACKWARD_WEIGHT, 2, c.stride, c.pad, c.dilation, c.groups);
  return conv_by_library(out, &q, a, grad, NULL, weight);
}

/* The images' parts are summed: shorter dtypes go through float32. */
weir_status conv2d_weight_backward(weir_tensor **out, const weir_tensor *a, const weir_tensor *grad,
                                   weir_shape weight, const weir_conv2d_options *o)
{
  CALC(c);
  weir_dtype d = a->dtype, arithmetic = d == WEIR_FLOAT64 ? d : WEIR_FLOAT32;
  *out = NULL;
  if (!a->numel || !grad->numel) {
    c->st = tensor_new_beside(out, a, weight);
    return c->st ? c->st : weir_zero_(*out);
  }
  c->st = library_weigh(out, a, grad, weight, o);
  if (c->st || *out) return c->st;
  weir_tensor *wide = c_to_dtype(c, a, arithmetic);
  weir_tensor *wide_grad = c_to_dtype(c, grad, arithmetic);
  return calc_give(c, out, c_to_dtype(c, c_call(c, weigh, wide, wide_grad, weight, o), d));
}
