/* fold.c: sliding blocks of images as columns, and back; pools of powers.
 *
 * A block's places in the padded plane, counted row by row, are the same for all planes: a row of
 * indices, in the order in which columns hold them. Columns are what index_select() reads there,
 * and to fold is to add them up there again: each is the other's derivative.
 *
 * Words. block: what a kernel covers at one place. column: a block of all channels. */
#include "core/ops/ops.h"

typedef struct blocks {
  int64_t kernel[2], dilation[2], padding[2], stride[2]; /* rows, columns, as all pairs */
  int64_t size[2];                                       /* of the image */
  int64_t count[2];                                      /* blocks there are */
} blocks;

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_pair(const char *what, const char *each, const int64_t *v, bool zero)
{
  if (v[0] >= !zero && v[1] >= !zero) return WEIR_OK;
  return fail_invalid("%s should be %s, but got %s_height: %lld %s_width: %lld", what,
                      zero ? "non-negative" : "greater than zero", each, (long long)v[0], each,
                      (long long)v[1]);
}

static weir_status fill_blocks(blocks *b, const weir_unfold_options *o)
{
  for (int i = 0; i < 2; i++) {
    b->kernel[i] = o->kernel[i], b->padding[i] = o->padding[i];
    b->dilation[i] = o->dilation[i] ? o->dilation[i] : 1;
    b->stride[i] = o->stride[i] ? o->stride[i] : 1;
  }
  weir_status st = check_pair("kernel size", "kernel", b->kernel, false);
  if (!st) st = check_pair("stride", "stride", b->stride, false);
  if (!st) st = check_pair("dilation", "dilation", b->dilation, false);
  return st ? st : check_pair("padding", "pad", b->padding, true);
}

/* Errors: EINVAL: a size overflows. */
static weir_status count_blocks(blocks *b)
{
  for (int i = 0; i < 2; i++) {
    int64_t span, room;
    if (__builtin_mul_overflow(b->kernel[i] - 1, b->dilation[i], &span) ||
        __builtin_mul_overflow(b->padding[i], (int64_t)2, &room) ||
        __builtin_add_overflow(room, b->size[i], &room) || span == INT64_MAX)
      return fail_invalid("unfold: kernel_size=%lld, padding=%lld and dilation=%lld are too large: "
                          "a size overflows",
                          (long long)b->kernel[i], (long long)b->padding[i],
                          (long long)b->dilation[i]);
    room -= span + 1;
    b->count[i] = room / b->stride[i] - (room % b->stride[i] < 0) + 1; /* rounded down */
  }
  return WEIR_OK;
}

#define PAIR(v) (long long)(v)[0], (long long)(v)[1]

/* Whether all but a first dimension of `batched` have elements, and there are that many or one
 * less. */
static bool filled_images(const weir_tensor *a, int batched)
{
  bool good = a->dims == batched || a->dims == batched - 1;
  for (int d = a->dims == batched; d < a->dims; d++)
    good = good && a->size[d];
  return good;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* 0, step, ... of `count` as dimension `dim` of four. */
static weir_status steps_along(weir_tensor **out, int64_t count, int64_t step, int dim,
                               const weir_options *o)
{
  CALC(c);
  weir_shape shape = weir_shape(1, 1, 1, 1);
  shape.size[dim] = count;
  weir_tensor *row = c_call(c, weir_arange, weir_int(0), weir_int(count), weir_int(1), o);
  return calc_give(c, out, c_reshape(c, c_mul_scalar(c, row, weir_int(step)), shape));
}

/* A row: kernel rows, kernel columns, block rows, block columns. */
static weir_status block_places(weir_tensor **out, const blocks *b, weir_device device)
{
  WEIR_TENSOR sum = NULL;
  weir_options o = {.dtype = WEIR_INT64, .device = device};
  int64_t width = b->size[1] + 2 * b->padding[1];
  const int64_t count[4] = {b->kernel[0], b->kernel[1], b->count[0], b->count[1]};
  const int64_t step[4] = {b->dilation[0] * width, b->dilation[1], b->stride[0] * width,
                           b->stride[1]};
  weir_status st = steps_along(&sum, count[0], step[0], 0, &o);
  for (int i = 1; i < 4 && !st; i++) {
    WEIR_TENSOR was = sum;
    WEIR_TENSOR more = NULL;
    sum = NULL;
    st = steps_along(&more, count[i], step[i], i, &o);
    if (!st) st = weir_add(&sum, was, more);
  }
  return st ? st : weir_reshape(out, sum, weir_shape(-1));
}

/* ---- the functions --------------------------------------------------------------------------- */

static weir_status check_unfold(blocks *b, const weir_tensor *a)
{
  text_buffer text;
  if (!filled_images(a, 4))
    return fail_invalid("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and "
                        "other non-zero dimensions for input, but got: %s",
                        shape_format(&text, weir_tensor_shape(a)));
  b->size[0] = a->size[a->dims - 2], b->size[1] = a->size[a->dims - 1];
  TRY(count_blocks(b));
  if (b->count[0] < 1 || b->count[1] < 1)
    return fail_invalid(
        "Given input with spatial size (%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, "
        "%lld), padding=(%lld, %lld), calculated shape of the array of sliding blocks as (%lld, "
        "%lld), but its components must be at least one.",
        PAIR(b->size), PAIR(b->kernel), PAIR(b->dilation), PAIR(b->padding), PAIR(b->count));
  weir_dtype d = a->dtype;
  return dtype_is_integral(d) ? not_implemented("im2col_out_%s", device_of_tensor(a), d) : WEIR_OK;
}

weir_status weir_unfold_blocks(weir_tensor **out, const weir_tensor *a,
                               const weir_unfold_options *options)
{
  WEIR_OP(out, a, options);
  CALC(c);
  blocks b;
  c->st = fill_blocks(&b, options);
  c_do(c, check_unfold(&b, a));
  if (c->st) return c->st;
  const int64_t border[4] = {b.padding[1], b.padding[1], b.padding[0], b.padding[0]};
  int64_t images = a->dims == 4 ? a->size[0] : 1, channels = a->size[a->dims - 3];
  weir_shape shape =
      weir_shape(images, channels * b.kernel[0] * b.kernel[1], b.count[0] * b.count[1]);
  if (a->dims == 3) shape = weir_shape(shape.size[1], shape.size[2]);
  if (!images) return tensor_new_beside(out, a, shape);
  weir_tensor *wide = c_call(c, weir_pad, a, border, 4, WEIR_PAD_CONSTANT, weir_int(0));
  weir_tensor *planes = c_reshape(c, wide, weir_shape(images, channels, -1));
  weir_tensor *places = c_call(c, block_places, &b, device_of_tensor(a));
  return calc_give(c, out, c_reshape(c, c_index_select(c, planes, 2, places), shape));
}

static weir_status check_fold(blocks *b, const weir_tensor *a, const int64_t *size)
{
  text_buffer text;
  if (!filled_images(a, 3))
    return fail_invalid("Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch "
                        "size and non-zero dimensions for input, but got: %s",
                        shape_format(&text, weir_tensor_shape(a)));
  int64_t rows = a->size[a->dims - 2], columns = a->size[a->dims - 1], area;
  b->size[0] = size[0], b->size[1] = size[1];
  if (__builtin_mul_overflow(b->kernel[0], b->kernel[1], &area) || rows % area)
    return fail_invalid("Expected size of input's dimension 1 to be divisible by the product of "
                        "kernel_size, but got input.size(1)=%lld and kernel_size=(%lld, %lld).",
                        (long long)rows, PAIR(b->kernel));
  TRY(count_blocks(b));
  long long all = (long long)b->count[0] * b->count[1];
  if (all != columns || b->count[0] < 1 || b->count[1] < 1)
    return fail_invalid(
        "Given output_size=(%lld, %lld), kernel_size=(%lld, %lld), dilation=(%lld, %lld), "
        "padding=(%lld, %lld), stride=(%lld, %lld), expected size of input's dimension 2 to match "
        "the calculated number of sliding blocks %lld * %lld = %lld, but got input.size(2)=%lld.",
        PAIR(b->size), PAIR(b->kernel), PAIR(b->dilation), PAIR(b->padding), PAIR(b->stride),
        PAIR(b->count), all, (long long)columns);
  weir_dtype d = a->dtype;
  return dtype_is_integral(d) ? not_implemented("col2im_out_%s", device_of_tensor(a), d) : WEIR_OK;
}

weir_status weir_fold(weir_tensor **out, const weir_tensor *a, const int64_t *output_size,
                      const weir_unfold_options *options)
{
  WEIR_OP(out, a, output_size, options);
  CALC(c);
  blocks b;
  c->st = fill_blocks(&b, options);
  c_do(c, check_fold(&b, a, output_size));
  if (c->st) return c->st;
  const int64_t border[4] = {-b.padding[1], -b.padding[1], -b.padding[0], -b.padding[0]};
  int64_t images = a->dims == 3 ? a->size[0] : 1;
  int64_t channels = a->size[a->dims - 2] / (b.kernel[0] * b.kernel[1]);
  int64_t height = b.size[0] + 2 * b.padding[0], width = b.size[1] + 2 * b.padding[1];
  weir_shape shape = weir_shape(images, channels, height, width);
  if (!images) return tensor_new_beside(out, a, weir_shape(0, channels, b.size[0], b.size[1]));
  weir_tensor *columns = c_reshape(c, a, weir_shape(images, channels, -1));
  weir_tensor *none =
      c_call(c, weir_new_zeros, a, weir_shape(images, channels, height * width), NULL);
  weir_tensor *places = c_call(c, block_places, &b, device_of_tensor(a));
  weir_tensor *sums = c_call(c, weir_index_add, none, 2, places, columns);
  if (a->dims == 2) shape = weir_shape(channels, height, width);
  weir_tensor *planes = c_reshape(c, sums, shape);
  return c->st ? c->st : weir_pad(out, planes, border, 4, WEIR_PAD_CONSTANT, weir_int(0));
}

/* ---- pools of powers ------------------------------------------------------------------------- */

typedef weir_status (*average_fn)(weir_tensor **out, const weir_tensor *a,
                                  const weir_pool_options *options);

/* As torch composes it: the average of powers times how many there are, its root; sums below 0 stay
 * below 0. */
static weir_status pool_powers(weir_tensor **out, const weir_tensor *a, double p,
                               const weir_pool_options *options, int axes, average_fn average)
{
  CALC(c);
  weir_pool_options o = {.ceil_mode = options->ceil_mode};
  double places = 1;
  for (int i = 0; i < axes; i++) {
    o.kernel[i] = options->kernel[i], o.stride[i] = options->stride[i];
    places *= (double)o.kernel[i];
  }
  weir_tensor *powers = c_pow_s(c, a, p);
  weir_tensor *mean = c_call(c, average, powers, &o);
  weir_tensor *sign = c_call(c, weir_sign, mean);
  weir_tensor *sum = c_mul_s(c, c_mul(c, sign, c_relu(c, c_abs(c, mean))), places);
  return c->st ? c->st : weir_pow_scalar(out, sum, weir_float(1 / p));
}

#define LP_POOL(n)                                                                                 \
  weir_status weir_lp_pool##n##d(weir_tensor **out, const weir_tensor *a, double norm_type,        \
                                 const weir_pool_options *options)                                 \
  {                                                                                                \
    WEIR_OP(out, a, options);                                                                      \
    return pool_powers(out, a, norm_type, options, n, weir_avg_pool##n##d);                        \
  }
LP_POOL(1)
LP_POOL(2)
LP_POOL(3)
