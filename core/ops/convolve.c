/* convolve.c: convolutions of one and three axes, and transposed ones of one to three: made of
 * two-dimensional ones (conv.c), so that they run wherever those do and have derivatives where
 * those have.
 *
 * One axis is two of which the first has one place. Three: the places of the first axis that a
 * window sees become channels. A transposed convolution writes, for each place of the input, a
 * window of the output: output places that lie a multiple of the stride apart (a phase) see the
 * same part of the kernel, backwards, so that each phase is a convolution of stride 1, and the
 * output their places taken in turns.
 *
 * Words. axes: of a window; spatial dimensions. phase: an output place modulo the stride. */
#include <stdio.h>
#include <string.h>
#include "core/ops/ops.h"

enum { MOST_AXES = 3 }; /* of an image: a volume's */

/* A convolution that is asked for. */
typedef struct convolution {
  const char *name; /* torch's */
  int axes;
  bool transposed, same;
  const weir_tensor *a, *weight, *bias; /* borrowed */
  int64_t groups;
  int64_t stride[MOST_AXES], pad[MOST_AXES], dilation[MOST_AXES],
      more[MOST_AXES]; /* more: output_padding */
} convolution;

static int64_t or_one(int64_t x)
{
  return x ? x : 1;
}

static convolution convolution_of(const char *name, int axes, const weir_tensor *a,
                                  const weir_tensor *weight, const weir_tensor *bias,
                                  const weir_conv_options *o)
{
  static const weir_conv_options none = {.same = false};
  if (!o) o = &none;
  convolution c = {.name = name,
                   .axes = axes,
                   .a = a,
                   .weight = weight,
                   .bias = bias,
                   .groups = or_one(o->groups),
                   .same = o->same};
  for (int i = 0; i < axes; i++) {
    c.stride[i] = or_one(o->stride[i]);
    c.dilation[i] = or_one(o->dilation[i]);
    c.pad[i] = o->padding[i];
    c.more[i] = o->output_padding[i];
  }
  return c;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_convolution_dims(const convolution *c)
{
  text_buffer text;
  int n = c->axes + 1;
  if (c->a->dims != n && c->a->dims != n + 1)
    return fail_invalid(
        "Expected %dD (unbatched) or %dD (batched) input to %s, but got input of size: %s", n,
        n + 1, c->name, shape_format(&text, shape_of_tensor(c->a)));
  if (c->weight->dims != n + 1)
    return fail_invalid(c->weight->dims < 3 ? "weight should have at least three dimensions"
                                            : "%s: weight must have %d dimensions, but it has %d",
                        c->name, n + 1, c->weight->dims);
  return WEIR_OK;
}

static weir_status check_numbers(const convolution *c)
{
  for (int i = 0; i < c->axes; i++)
    if (c->pad[i] < 0 && !c->same) return fail_invalid("negative padding is not supported");
  for (int i = 0; i < c->axes; i++)
    if (c->more[i] < 0) return fail_invalid("negative output_padding is not supported");
  for (int i = 0; i < c->axes; i++)
    if (c->stride[i] < 1) return fail_invalid("non-positive stride is not supported");
  for (int i = 0; i < c->axes; i++)
    if (c->dilation[i] < 1) return fail_invalid("dilation should be greater than zero");
  if (c->groups < 1) return fail_invalid("non-positive groups is not supported");
  for (int i = 0; i < c->axes; i++)
    if (c->same && c->stride[i] != 1)
      return fail_invalid("padding='same' is not supported for strided convolutions");
  return WEIR_OK;
}

/* The input as torch prints it: with a batch. */
static const char *batched_text(text_buffer *out, const convolution *c)
{
  weir_shape s = shape_of_tensor(c->a);
  if (s.count == c->axes + 1) {
    memmove(s.size + 1, s.size, (size_t)s.count * sizeof *s.size);
    s.size[0] = 1;
    s.count++;
  }
  return shape_format(out, s);
}

static weir_status check_conv_groups(const convolution *c)
{
  const weir_tensor *w = c->weight;
  text_buffer text;
  const char *shape = shape_format(&text, shape_of_tensor(w));
  long long groups = (long long)c->groups;
  if (w->size[0] < c->groups)
    return fail_invalid("Given groups=%lld, expected weight to be at least %lld at dimension 0, "
                        "but got weight of size %s instead",
                        groups, groups, shape);
  if (w->size[0] % c->groups)
    return fail_invalid("Given groups=%lld, expected weight to be divisible by %lld at dimension "
                        "0, but got weight of size [%s] instead",
                        groups, groups, shape);
  return WEIR_OK;
}

static weir_status check_conv_channels(const convolution *c)
{
  const weir_tensor *w = c->weight, *b = c->bias;
  text_buffer text, input, other;
  const char *shape = shape_format(&text, shape_of_tensor(w));
  int64_t given = c->a->size[c->a->dims - c->axes - 1], expected = w->size[0], outs = w->size[0];
  char prefix[40];
  (void)snprintf(prefix, sizeof prefix, c->transposed ? "transposed=1" : "groups=%lld",
                 (long long)c->groups);
  if (__builtin_mul_overflow(w->size[1], c->groups, c->transposed ? &outs : &expected))
    return fail_invalid("%s: groups=%lld and weight of size %s: channels overflow", c->name,
                        (long long)c->groups, shape);
  if (given != expected)
    return fail_invalid("Given %s, weight of size %s, expected input%s to have %lld channels, but "
                        "got %lld channels instead",
                        prefix, shape, batched_text(&input, c), (long long)expected,
                        (long long)given);
  if (b && (b->dims != 1 || b->size[0] != outs))
    return fail_invalid("Given %sweight of size %s, expected bias to be 1-dimensional with %lld "
                        "elements, but got bias of size %s instead",
                        c->transposed ? "transposed=1, " : "", shape, (long long)outs,
                        shape_format(&other, shape_of_tensor(b)));
  return WEIR_OK;
}

/* What a kernel covers of the axis i; false: it overflows. */
static bool cover(int64_t *out, const convolution *c, int i)
{
  int64_t kernel = c->weight->size[2 + i];
  return !__builtin_mul_overflow(kernel - 1, c->dilation[i], out) &&
         !__builtin_add_overflow(*out, 1, out) && *out < INT64_MAX / 8 &&
         c->pad[i] < INT64_MAX / 16 && c->stride[i] < INT64_MAX / 8;
}

/* "8 x 8". */
static const char *times_text(text_buffer *out, const int64_t *v, int count)
{
  size_t at = 0;
  for (int i = 0; i < count; i++) {
    int n = snprintf(out->at + at, sizeof out->at - at, "%s%lld", i ? " x " : "", (long long)v[i]);
    at += n > 0 ? (size_t)n : 0;
  }
  return out->at;
}

static weir_status check_reach_of(const convolution *c)
{
  text_buffer x, y;
  int64_t padded[MOST_AXES], covers[MOST_AXES];
  bool good = true;
  for (int i = 0; i < c->axes; i++) {
    if (!cover(&covers[i], c, i))
      return fail_invalid(
          "%s: kernel_size, padding, stride or dilation is too large: a size overflows", c->name);
    padded[i] = c->a->size[c->a->dims - c->axes + i] + 2 * c->pad[i];
    good = good && (c->same || padded[i] >= covers[i]);
  }
  if (good || c->transposed) return WEIR_OK;
  return fail_invalid("Calculated padded input size per channel: (%s). Kernel size: (%s). Kernel "
                      "size can't be greater than actual input size",
                      times_text(&x, padded, c->axes), times_text(&y, covers, c->axes));
}

/* conv2d states it of a kind of device and a dtype. */
static weir_status check_conv_types(const convolution *c)
{
  const weir_tensor *other[2] = {c->weight, c->bias};
  for (int i = 0; i < 2; i++)
    if (other[i] && (other[i]->dtype != c->a->dtype ||
                     device_of_tensor(other[i]).type != device_of_tensor(c->a).type))
      return fail_invalid("Input type (%s) and %s type (%s) should be the same",
                          weir_tensor_type(c->a), i ? "bias" : "weight",
                          weir_tensor_type(other[i]));
  weir_status st = check_same_device(c->a, c->weight);
  if (!st && c->bias) st = check_same_device(c->a, c->bias);
  return st;
}

static weir_status check_convolution(const convolution *c)
{
  weir_status st = check_convolution_dims(c);
  if (!st) st = check_conv_types(c);
  if (!st) st = check_numbers(c);
  if (!st) st = check_conv_groups(c);
  if (!st) st = check_conv_channels(c);
  return st ? st : check_reach_of(c);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/* *out (new) is t with `before` and `after` places more, or fewer, along its last dimensions. */
static weir_status padded_by(weir_tensor **out, const weir_tensor *t, const int64_t *before,
                             const int64_t *after, int axes)
{
  int64_t pads[6];
  bool none = true;
  for (int i = 0; i < axes; i++) {
    pads[2 * i] = before[axes - 1 - i];
    pads[2 * i + 1] = after[axes - 1 - i];
    none = none && !before[i] && !after[i];
  }
  if (!none) return weir_pad(out, t, pads, 2 * axes, WEIR_PAD_CONSTANT, weir_int(0));
  *out = weir_tensor_retain((weir_tensor *)t);
  return WEIR_OK;
}

/* padding='same': what there is before and after. */
static weir_status same_padded(weir_tensor **out, convolution *c)
{
  int64_t before[MOST_AXES], after[MOST_AXES];
  for (int i = 0; i < c->axes; i++) {
    int64_t all = c->dilation[i] * (c->weight->size[2 + i] - 1);
    before[i] = all / 2;
    after[i] = all - before[i];
    c->pad[i] = 0;
  }
  return padded_by(out, c->a, before, after, c->axes);
}

static weir_status conv_of_line(weir_tensor **out, const weir_tensor *a, const weir_tensor *weight,
                                const weir_tensor *bias, const convolution *c)
{
  CALC(k);
  weir_conv2d_options o = {{1, c->stride[0]}, {0, c->pad[0]}, {1, c->dilation[0]}, c->groups};
  weir_tensor *image = c_unsqueeze(k, a, -2);
  weir_tensor *kernel = c_unsqueeze(k, weight, -2);
  return calc_give(k, out, c_squeeze(k, c_call(k, weir_conv2d, image, kernel, bias, &o), -2));
}

/* Of (n, channels, d, h, w): images (n places of the output, channels depths, h, w). */
static weir_status slabs_of(weir_tensor **out, const weir_tensor *a, const convolution *c)
{
  CALC(k);
  int64_t depths = c->weight->size[2], all = c->dilation[0] * (depths - 1) + 1;
  weir_tensor *deep = c_call(k, padded_by, a, (const int64_t[]){c->pad[0], 0, 0},
                             (const int64_t[]){c->pad[0], 0, 0}, 3);
  weir_tensor *windows = c_call(k, weir_unfold, deep, 2, all, c->stride[0]);
  weir_tensor *seen = c_call(k, weir_slice, windows, 5, 0, INT64_MAX, c->dilation[0]);
  weir_tensor *turned = c_permute(k, seen, (const int[]){0, 2, 1, 5, 3, 4});
  if (k->st) return k->st;
  const int64_t *s = turned->size;
  return weir_reshape(out, turned, weir_shape(s[0] * s[1], s[2] * s[3], s[4], s[5]));
}

static weir_status conv_of_volume(weir_tensor **out, const weir_tensor *a,
                                  const weir_tensor *weight, const weir_tensor *bias,
                                  const convolution *c)
{
  CALC(e);
  WEIR_TENSOR batch = NULL;
  const int64_t *k = weight->size;
  bool alone = a->dims == 4;
  weir_conv2d_options o = {{c->stride[1], c->stride[2]},
                           {c->pad[1], c->pad[2]},
                           {c->dilation[1], c->dilation[2]},
                           c->groups};
  e->st = alone ? weir_unsqueeze(&batch, a, 0) : WEIR_OK;
  const weir_tensor *x = alone ? batch : a;
  weir_tensor *slabs = c_call(e, slabs_of, x, c);
  weir_tensor *kernel = c_call(e, weir_reshape, weight, weir_shape(k[0], k[1] * k[2], k[3], k[4]));
  weir_tensor *images = c_call(e, weir_conv2d, slabs, kernel, bias, &o);
  if (e->st) return e->st;
  const int64_t *s = images->size;
  int64_t depth = (x->size[2] + 2 * c->pad[0] - c->dilation[0] * (k[2] - 1) - 1) / c->stride[0] + 1;
  weir_tensor *parts =
      c_call(e, weir_reshape, images, weir_shape(x->size[0], depth, s[1], s[2], s[3]));
  weir_tensor *whole = c_contiguous(e, c_permute(e, parts, (const int[]){0, 2, 1, 3, 4}));
  if (!e->st && alone) return weir_squeeze(out, whole, 0);
  return calc_give(e, out, whole);
}

/* *out (new) by the device's library, of an image or a batch; NULL: not by it. places: the
 * result's. What is recorded has its derivative from the parts it is made of. */
static weir_status library_convolution(weir_tensor **out, const convolution *c,
                                       const weir_tensor *a, const int64_t *places)
{
  CALC(k);
  WEIR_TENSOR batch = NULL;
  weir_shape shape = {.count = c->axes + 2};
  bool alone = a->dims == c->axes + 1;
  weir_convolution q = conv_request(c->transposed ? WEIR_CONV_BACKWARD_INPUT : WEIR_CONV_FORWARD,
                                    c->axes, c->stride, c->pad, c->dilation, c->groups);
  *out = NULL;
  if (recorded_any((const weir_tensor *[]){a, c->weight, c->bias}, 3) || !a->numel ||
      !c->weight->numel)
    return WEIR_OK;
  TRY(alone ? weir_unsqueeze(&batch, a, 0) : WEIR_OK);
  const weir_tensor *x = alone ? batch : a;
  shape.size[0] = x->size[0];
  shape.size[1] = c->transposed ? c->weight->size[1] * c->groups : c->weight->size[0];
  for (int i = 0; i < c->axes; i++)
    shape.size[2 + i] = places[i];
  weir_tensor *made = c_call(k, conv_by_library, &q, c->transposed ? c->weight : x,
                             c->transposed ? x : c->weight, c->bias, shape);
  if (k->st || !made) return k->st;
  if (alone) return weir_squeeze(out, made, 0);
  *out = weir_tensor_retain(made);
  return WEIR_OK;
}

static weir_status run_convolution(weir_tensor **out, convolution *c)
{
  CALC(k);
  int64_t places[MOST_AXES] = {0};
  k->st = check_convolution(c);
  weir_tensor *padded = c->same ? c_call(k, same_padded, c) : NULL;
  if (k->st) return k->st;
  const weir_tensor *a = padded ? padded : c->a;
  for (int i = 0; i < c->axes; i++)
    places[i] = (a->size[a->dims - c->axes + i] + 2 * c->pad[i] -
                 c->dilation[i] * (c->weight->size[2 + i] - 1) - 1) /
                    c->stride[i] +
                1;
  if (c->axes == 3) k->st = library_convolution(out, c, a, places);
  if (k->st || (c->axes == 3 && *out)) return k->st;
  return c->axes == 1 ? conv_of_line(out, a, c->weight, c->bias, c)
                      : conv_of_volume(out, a, c->weight, c->bias, c);
}

#define CONVOLUTION(n)                                                                             \
  weir_status weir_conv##n##d(weir_tensor **out, const weir_tensor *a, const weir_tensor *weight,  \
                              const weir_tensor *bias, const weir_conv_options *options)           \
  {                                                                                                \
    WEIR_OP(out, a, weight);                                                                       \
    WEIR_CASTS(CONVOLUTION, a, weight, bias);                                                      \
    convolution c = convolution_of("conv" #n "d", n, a, weight, bias, options);                    \
    return run_convolution(out, &c);                                                               \
  }
CONVOLUTION(1)
CONVOLUTION(3)

/* ---- transposed convolutions ----------------------------------------------------------------- */

/* One axis of a phase: kernel places first, first + step, ..., count of them, seen `shift` places
 * before. */
typedef struct phase_axis {
  int64_t first, step, count, dilation, shift;
} phase_axis;

static int64_t greatest_divisor(int64_t a, int64_t b)
{
  while (b) {
    int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static phase_axis phase_of(const convolution *c, int i, int64_t phase)
{
  int64_t s = c->stride[i], d = c->dilation[i], common = greatest_divisor(s, d);
  phase_axis p = {.step = s / common, .dilation = d / common};
  while (p.first < c->weight->size[2 + i] && p.first < p.step && p.first * d % s != phase)
    p.first++;
  if (p.first >= p.step || p.first >= c->weight->size[2 + i]) return p; /* sees nothing */
  p.count = (c->weight->size[2 + i] - 1 - p.first) / p.step + 1;
  p.shift = (p.first * d - phase) / s;
  return p;
}

/* The kernel's part of a phase, backwards, as a convolution has it: (out, in / groups, ...). */
static weir_status phase_kernel(weir_tensor **out, const convolution *c, const phase_axis *p)
{
  CALC(k);
  weir_tensor *groups = NULL;
  WEIR_TENSOR kernel = NULL;
  const weir_tensor *w = c->weight;
  weir_shape shape = {.count = c->axes + 3,
                      .size = {c->groups, w->size[0] / c->groups, w->size[1]}};
  weir_shape flat = {.count = c->axes + 2,
                     .size = {w->size[1] * c->groups, w->size[0] / c->groups}};
  int backwards[3];
  for (int i = 0; i < c->axes; i++) {
    shape.size[3 + i] = flat.size[2 + i] = w->size[2 + i];
    backwards[i] = 2 + i;
  }
  groups = c_reshape(k, w, shape);
  weir_tensor *turned = c_transpose(k, groups, 1, 2);
  c_do(k, weir_reshape(&kernel, turned, flat));
  for (int i = 0; i < c->axes && !k->st; i++) {
    weir_tensor *part;
    k->st = weir_slice(&part, kernel, 2 + i, p[i].first, INT64_MAX, p[i].step);
    if (k->st) break;
    weir_tensor_release(kernel);
    kernel = part;
  }
  return k->st ? k->st : weir_flip(out, kernel, backwards, c->axes);
}

/* *out (new): `places` of a phase along each axis, of x, which has a batch. */
static weir_status phase_run(weir_tensor **out, const convolution *c, const weir_tensor *x,
                             const phase_axis *p, const int64_t *places)
{
  CALC(k);
  int64_t before[MOST_AXES], after[MOST_AXES];
  bool nothing = false;
  weir_shape shape = {.count = c->axes + 2, .size = {x->size[0], c->weight->size[1] * c->groups}};
  convolution one = {.axes = c->axes, .groups = c->groups, .stride = {1, 1, 1}};
  for (int i = 0; i < c->axes; i++) {
    shape.size[2 + i] = places[i];
    one.dilation[i] = p[i].dilation;
    before[i] = p[i].shift + (p[i].count - 1) * p[i].dilation;
    after[i] = places[i] - p[i].shift - x->size[2 + i];
    nothing = nothing || !p[i].count;
  }
  if (nothing) return weir_zeros(out, shape, OPTIONS_ON(x, x->dtype));
  weir_tensor *kernel = c_call(k, phase_kernel, c, p);
  weir_tensor *padded = c_call(k, padded_by, x, before, after, c->axes);
  if (k->st) return k->st;
  one.weight = kernel;
  if (c->axes == 3) return conv_of_volume(out, padded, kernel, NULL, &one);
  return weir_conv2d(
      out, padded, kernel, NULL,
      &(weir_conv2d_options){{1, 1}, {0, 0}, {one.dilation[0], one.dilation[1]}, c->groups});
}

/* The phases of the axes from `axis` on, their places taken in turns. */
static weir_status phases_from(weir_tensor **out, const convolution *c, const weir_tensor *x,
                               int axis, phase_axis *p, const int64_t *places)
{
  if (axis >= c->axes || axis == MOST_AXES) return phase_run(out, c, x, p, places);
  enum { MOST = 64 };
  weir_tensor *part[MOST] = {NULL};
  CALC(k);
  int64_t s = c->stride[axis];
  if (s > MOST)
    return fail_unsupported("%s: stride %lld is more than %d", c->name, (long long)s, MOST);
  for (int64_t phase = 0; phase < s && !k->st; phase++) {
    p[axis] = phase_of(c, axis, phase);
    k->st = phases_from(&part[phase], c, x, axis + 1, p, places);
  }
  if (!k->st && s == 1) {
    *out = part[0];
    return WEIR_OK;
  }
  weir_tensor *stacked = c_call(k, weir_stack, (const weir_tensor *const *)part, (int)s, 3 + axis);
  c_do(k, weir_flatten(out, stacked, 2 + axis, 3 + axis));
  for (int64_t i = 0; i < s; i++)
    weir_tensor_release(part[i]);
  return k->st;
}

/* Refused as torch does it, which has no result where an image of some batch has no places. */
static weir_status check_places_there(const convolution *c)
{
  text_buffer text;
  weir_shape seen = {.count = 2};
  int lead = c->a->dims - c->axes;
  bool good = true;
  seen.size[0] = lead == 2 ? c->a->size[0] : 1;
  seen.size[1] = c->a->size[lead - 1];
  if (c->axes == 1) seen.size[seen.count++] = 1;
  for (int i = 0; i < c->axes; i++) {
    good = good && c->a->size[lead + i];
    seen.size[seen.count++] = c->a->size[lead + i];
  }
  if (good || !seen.size[0] || !seen.size[1]) return WEIR_OK;
  return fail_invalid(
      "Only zero batch or zero channel inputs are supported, but got input shape: %s",
      shape_format(&text, seen));
}

static weir_status transposed_sizes(int64_t *size, int64_t *places, const convolution *c)
{
  text_buffer x, y;
  bool good = true;
  const int64_t *in = c->a->size + c->a->dims - c->axes;
  for (int i = 0; i < c->axes; i++) {
    int64_t whole = 0;
    if (!cover(&whole, c, i) || __builtin_mul_overflow(in[i] - 1, c->stride[i], &size[i]) ||
        __builtin_add_overflow(size[i], whole + c->more[i] - 2 * c->pad[i], &size[i]))
      return fail_invalid("%s: a size overflows", c->name);
    places[i] = (size[i] + c->pad[i] + c->stride[i] - 1) / c->stride[i];
    good = good && size[i] > 0;
  }
  if (good) return check_places_there(c);
  const char *row = c->axes == 1 ? "1 x " : ""; /* one axis is torch's second of two */
  return fail_invalid("Given input size per channel: (%s%s). Calculated output size per channel: "
                      "(%s%s). Output size is too small",
                      row, times_text(&x, in, c->axes), row, times_text(&y, size, c->axes));
}

/* torch speaks of rows and columns also where there is one axis. */
static weir_status check_more(const convolution *c)
{
  static const char *const names[3] = {"depth", "height", "width"};
  bool good = true, line = c->axes == 1;
  char text[512];
  size_t at = 0;
  for (int i = 0; i < c->axes; i++)
    good = good && (c->more[i] < c->stride[i] || c->more[i] < c->dilation[i]);
  if (good) return WEIR_OK;
  const struct {
    const char *name;
    const int64_t *of;
    int64_t first;
  } rows[] = {
      {"output_padding", c->more, 0}, {"stride", c->stride, 1}, {"dilation", c->dilation, 1}};
  for (int k = 0; k < 3; k++)
    for (int i = line ? -1 : 0; i < c->axes; i++) {
      int n = snprintf(text + at, sizeof text - at, " %s_%s: %lld", rows[k].name,
                       names[3 - c->axes + i], (long long)(i < 0 ? rows[k].first : rows[k].of[i]));
      at += n > 0 ? (size_t)n : 0;
    }
  return fail_invalid("output padding must be smaller than either stride or dilation, but got%s",
                      text);
}

/* The places from `pad` on, and the bias. */
static weir_status cropped(weir_tensor **out, const convolution *c, const weir_tensor *all,
                           const int64_t *size)
{
  CALC(k);
  WEIR_TENSOR part = NULL;
  weir_tensor *column = NULL;
  weir_shape beside = {.count = c->axes + 1, .size = {0, 1, 1, 1}};
  part = weir_tensor_retain((weir_tensor *)all);
  for (int i = 0; i < c->axes && !k->st; i++) {
    weir_tensor *less;
    k->st = weir_narrow(&less, part, 2 + i, c->pad[i], size[i]);
    if (k->st) break;
    weir_tensor_release(part);
    part = less;
  }
  if (!k->st && !c->bias) return weir_contiguous(out, part);
  if (!k->st) {
    beside.size[0] = c->bias->size[0];
    column = c_reshape(k, c->bias, beside);
  }
  return calc_give(k, out, c_contiguous(k, c_add(k, part, column)));
}

static weir_status run_transposed(weir_tensor **out, convolution *c)
{
  CALC(k);
  WEIR_TENSOR batch = NULL;
  int64_t size[3], places[3];
  phase_axis p[MOST_AXES];
  c->transposed = true;
  k->st = check_convolution(c);
  c_do(k, check_more(c));
  c_do(k, transposed_sizes(size, places, c));
  if (k->st) return k->st;
  bool alone = c->a->dims == c->axes + 1, whole = true;
  for (int i = 0; i < c->axes; i++) /* else a convolution of the result has more places */
    whole = whole && c->more[i] < c->stride[i];
  if (whole) k->st = library_convolution(out, c, c->a, size);
  if (k->st || (whole && *out)) return k->st;
  if (alone) k->st = weir_unsqueeze(&batch, c->a, 0);
  weir_tensor *phases = c_call(k, phases_from, c, alone ? batch : c->a, 0, p, places);
  weir_tensor *y = c_call(k, cropped, c, phases, size);
  if (!k->st && alone) return weir_squeeze(out, y, 0);
  return calc_give(k, out, y);
}

#define TRANSPOSED(n)                                                                              \
  weir_status weir_conv_transpose##n##d(weir_tensor **out, const weir_tensor *a,                   \
                                        const weir_tensor *weight, const weir_tensor *bias,        \
                                        const weir_conv_options *options)                          \
  {                                                                                                \
    WEIR_OP(out, a, weight);                                                                       \
    WEIR_CASTS(CONVOLUTION, a, weight, bias);                                                      \
    convolution c = convolution_of("conv_transpose" #n "d", n, a, weight, bias, options);          \
    return run_transposed(out, &c);                                                                \
  }
TRANSPOSED(2)
TRANSPOSED(3)

/* A line is an image of one row. */
weir_status weir_conv_transpose1d(weir_tensor **out, const weir_tensor *a,
                                  const weir_tensor *weight, const weir_tensor *bias,
                                  const weir_conv_options *options)
{
  WEIR_OP(out, a, weight);
  WEIR_CASTS(CONVOLUTION, a, weight, bias);
  CALC(k);
  int64_t size[3], places[3];
  convolution c = convolution_of("conv_transpose1d", 1, a, weight, bias, options);
  c.transposed = true;
  k->st = check_convolution(&c);
  c_do(k, check_more(&c));
  c_do(k, transposed_sizes(size, places, &c));
  weir_tensor *image = c_unsqueeze(k, a, -2);
  weir_tensor *kernel = c_unsqueeze(k, weight, -2);
  weir_conv_options o = {.stride = {1, c.stride[0]},
                         .padding = {0, c.pad[0]},
                         .dilation = {1, c.dilation[0]},
                         .output_padding = {0, c.more[0]},
                         .groups = c.groups};
  weir_tensor *y = c_call(k, weir_conv_transpose2d, image, kernel, bias, &o);
  return k->st ? k->st : weir_squeeze(out, y, -2);
}
