/* convolution.c: Conv1d, Conv3d and the transposed convolutions: a row each. Conv2d is in
 * layers.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/nn/plain.h"
#include "core/nn/text.h"

/* What such a layer is. */
typedef struct convolution {
  int axes;
  bool transposed;
  weir_conv_options how; /* whole: no zero stands for a default */
} convolution;

/* ", padding=(1, 1)", where it is not what it mostly is. */
static void add_sizes(char *out, size_t room, const char *name, const int64_t *v, int count,
                      int64_t usual)
{
  layer_text sizes;
  bool same = true;
  size_t at = strlen(out);
  for (int i = 0; i < count; i++)
    same = same && v[i] == usual;
  if (!same) (void)snprintf(out + at, room - at, ", %s=%s", name, tuple_text(&sizes, v, count));
}

static void convolution_describe(char *out, size_t room, const weir_module *m)
{
  const convolution *c = m->data;
  const weir_tensor *w = m->slot[0].t;
  layer_text kernel, stride;
  weir_shape shape = weir_tensor_shape(w);
  int64_t in = shape.size[!c->transposed], to = shape.size[c->transposed];
  (void)snprintf(out, room, "%" PRId64 ", %" PRId64 ", kernel_size=%s, stride=%s",
                 c->transposed ? in : in * c->how.groups, c->transposed ? to * c->how.groups : to,
                 tuple_text(&kernel, shape.size + 2, c->axes),
                 tuple_text(&stride, c->how.stride, c->axes));
  if (c->how.same)
    strncat(out, ", padding=same", room - strlen(out) - 1);
  else
    add_sizes(out, room, "padding", c->how.padding, c->axes, 0);
  add_sizes(out, room, "dilation", c->how.dilation, c->axes, 1);
  add_sizes(out, room, "output_padding", c->how.output_padding, c->axes, 0);
  size_t at = strlen(out);
  if (c->how.groups != 1) (void)snprintf(out + at, room - at, ", groups=%" PRId64, c->how.groups);
  if (!m->slot[1].t) strncat(out, ", bias=False", room - strlen(out) - 1);
}

static weir_status check_groups(int64_t in, int64_t to, int64_t groups)
{
  if (groups < 1) return fail_invalid("groups must be a positive integer");
  if (in % groups) return fail_invalid("in_channels must be divisible by groups");
  if (to % groups) return fail_invalid("out_channels must be divisible by groups");
  return WEIR_OK;
}

static weir_status convolution_layer(weir_module **out, const weir_module_class *kind,
                                     convolution c, const int64_t channels[2],
                                     const int64_t *kernel, const weir_conv_layer_options *o)
{
  static const weir_conv_layer_options none = {0};
  weir_module *m;
  if (!o) o = &none;
  c.how = o->conv;
  for (int i = 0; i < c.axes; i++) {
    if (!c.how.stride[i]) c.how.stride[i] = 1;
    if (!c.how.dilation[i]) c.how.dilation[i] = 1;
  }
  if (!c.how.groups) c.how.groups = 1;
  TRY(check_groups(channels[0], channels[1], c.how.groups));
  weir_shape weight = {.count = 2 + c.axes};
  weight.size[0] = channels[!c.transposed];
  weight.size[1] = channels[c.transposed] / c.how.groups;
  double fan_in = (double)weight.size[1];
  for (int i = 0; i < c.axes; i++) {
    weight.size[2 + i] = kernel[i];
    fan_in *= (double)kernel[i];
  }
  weir_status st = layer_with(&m, kind, &c, sizeof c);
  return st ? st : layer_parameters(out, m, weight, channels[1], fan_in, &o->tensor, o->no_bias);
}

#define CONVOLUTION(fn, title, axis_count, turned)                                                 \
  LAYER_FORWARD(convolution, fn, weir_##fn(out, x, m->slot[0].t, m->slot[1].t, &d->how))           \
  PLAIN_CLASS(title, fn, convolution_describe)                                                     \
  weir_status weir_module_##fn(weir_module **out, int64_t in_channels, int64_t out_channels,       \
                               const int64_t *kernel, const weir_conv_layer_options *options)      \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, kernel);                                                                 \
    return convolution_layer(out, &fn##_class,                                                     \
                             (convolution){.axes = axis_count, .transposed = turned},              \
                             (const int64_t[]){in_channels, out_channels}, kernel, options);       \
  }
CONVOLUTION(conv1d, "Conv1d", 1, false)
CONVOLUTION(conv3d, "Conv3d", 3, false)
CONVOLUTION(conv_transpose1d, "ConvTranspose1d", 1, true)
CONVOLUTION(conv_transpose2d, "ConvTranspose2d", 2, true)
CONVOLUTION(conv_transpose3d, "ConvTranspose3d", 3, true)
