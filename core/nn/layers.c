/* layers.c: the layers of torch.nn the notes name: Linear, Conv2d, ReLU, Flatten, MaxPool2d and
 * Sequential. A layer's parameters are its slots WEIGHT and BIAS, so that a call looks up no
 * name. */
#include "core/nn/plain.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WEIGHT, BIAS };

/* ---- parameters ------------------------------------------------------------------------------ */

static weir_status add_uniform(weir_module *m, const char *name, weir_shape shape, double bound,
                               const weir_options *o)
{
  weir_tensor *t;
  weir_status st = weir_empty(&t, shape, o);
  if (!st && weir_tensor_numel(t)) st = weir_uniform_(t, -bound, bound, NULL);
  if (!st) return weir_module_add_parameter(m, name, t);
  weir_tensor_release(t);
  return st;
}

weir_status layer_parameters(weir_module **out, weir_module *m, weir_shape weight, int64_t outputs,
                             double fan_in, const weir_options *tensor, bool no_bias)
{
  double bound = fan_in > 0 ? 1 / sqrt(fan_in) : 0;
  weir_status st = add_uniform(m, "weight", weight, bound, tensor);
  if (!st)
    st = no_bias ? weir_module_add_parameter(m, "bias", NULL)
                 : add_uniform(m, "bias", weir_shape(outputs), bound, tensor);
  if (st)
    weir_module_release(m);
  else
    *out = m;
  return st;
}

static weir_status with_parameters(weir_module **out, weir_module *m, weir_shape weight,
                                   double fan_in, const weir_layer_options *o)
{
  static const weir_layer_options none = {0};
  if (!o) o = &none;
  return layer_parameters(out, m, weight, weight.size[0], fan_in, &o->tensor, o->no_bias);
}

/* ---- Linear ---------------------------------------------------------------------------------- */

LAYER_FORWARD(void, linear, weir_linear(out, x, m->slot[WEIGHT].t, m->slot[BIAS].t))

static void linear_describe(char *out, size_t room, const weir_module *m)
{
  const weir_tensor *w = m->slot[WEIGHT].t;
  (void)snprintf(out, room, "in_features=%" PRId64 ", out_features=%" PRId64 ", bias=%s",
                 weir_tensor_size(w, 1), weir_tensor_size(w, 0),
                 m->slot[BIAS].t ? "True" : "False");
}

weir_status weir_module_linear(weir_module **out, int64_t in_features, int64_t out_features,
                               const weir_layer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  static const weir_module_class kind = {
      .name = "Linear", .forward = linear_forward, .describe = linear_describe};
  weir_module *m;
  weir_status st = weir_module_new(&m, &kind, NULL);
  return st ? st
            : with_parameters(out, m, weir_shape(out_features, in_features), (double)in_features,
                              options);
}

/* ---- Conv2d ---------------------------------------------------------------------------------- */

LAYER_FORWARD(weir_conv2d_options, conv2d,
              weir_conv2d(out, x, m->slot[WEIGHT].t, m->slot[BIAS].t, d))

/* ", padding=(1, 1)", where it is not the default. */
static size_t pair(char *out, size_t room, const char *name, const int64_t v[2], int64_t usual)
{
  if (v[0] == usual && v[1] == usual) return 0;
  int n = snprintf(out, room, ", %s=(%" PRId64 ", %" PRId64 ")", name, v[0], v[1]);
  return n > 0 && (size_t)n < room ? (size_t)n : room;
}

static void conv2d_describe(char *out, size_t room, const weir_module *m)
{
  const weir_conv2d_options *c = m->data;
  const weir_tensor *w = m->slot[WEIGHT].t;
  char text[256];
  int n = snprintf(text, sizeof text,
                   "%" PRId64 ", %" PRId64 ", kernel_size=(%" PRId64 ", %" PRId64
                   "), stride=(%" PRId64 ", %" PRId64 ")",
                   weir_tensor_size(w, 1) * c->groups, weir_tensor_size(w, 0),
                   weir_tensor_size(w, 2), weir_tensor_size(w, 3), c->stride[0], c->stride[1]);
  size_t at = n > 0 ? (size_t)n : 0;
  at += pair(text + at, sizeof text - at, "padding", c->padding, 0);
  (void)pair(text + at, sizeof text - at, "dilation", c->dilation, 1);
  char groups[32] = "";
  if (c->groups != 1) (void)snprintf(groups, sizeof groups, ", groups=%" PRId64, c->groups);
  (void)snprintf(out, room, "%s%s%s", text, groups, m->slot[BIAS].t ? "" : ", bias=False");
}

/* Zeros are the defaults. */
static weir_conv2d_options conv2d_defaults(const weir_layer_options *o)
{
  weir_conv2d_options c = o ? o->conv : (weir_conv2d_options){0};
  for (int i = 0; i < 2; i++) {
    if (!c.stride[i]) c.stride[i] = 1;
    if (!c.dilation[i]) c.dilation[i] = 1;
  }
  if (!c.groups) c.groups = 1;
  return c;
}

PLAIN_CLASS("Conv2d", conv2d, conv2d_describe)

weir_status weir_module_conv2d(weir_module **out, int64_t in_channels, int64_t out_channels,
                               int64_t kernel, const weir_layer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  weir_conv2d_options c = conv2d_defaults(options);
  weir_module *m;
  if (c.groups < 1) return fail_invalid("groups must be a positive integer");
  if (in_channels % c.groups) return fail_invalid("in_channels must be divisible by groups");
  if (out_channels % c.groups) return fail_invalid("out_channels must be divisible by groups");
  TRY(layer_with(&m, &conv2d_class, &c, sizeof c));
  int64_t inputs = in_channels / c.groups;
  return with_parameters(out, m, weir_shape(out_channels, inputs, kernel, kernel),
                         (double)inputs * (double)kernel * (double)kernel, options);
}

/* ---- layers without parameters --------------------------------------------------------------- */

LAYER_FORWARD(void, relu, weir_relu(out, x))

weir_status weir_module_relu(weir_module **out)
{
  WEIR_REQUIRE(out);
  static const weir_module_class kind = {.name = "ReLU", .forward = relu_forward};
  return weir_module_new(out, &kind, NULL);
}

LAYER_FORWARD(int, flatten, weir_flatten(out, x, d[0], d[1]))

static void flatten_describe(char *out, size_t room, const weir_module *m)
{
  const int *dims = m->data;
  (void)snprintf(out, room, "start_dim=%d, end_dim=%d", dims[0], dims[1]);
}

PLAIN_CLASS("Flatten", flatten, flatten_describe)

weir_status weir_module_flatten(weir_module **out, int from, int to)
{
  WEIR_REQUIRE(out);
  int dims[2] = {from, to};
  return layer_with(out, &flatten_class, dims, sizeof dims);
}

LAYER_FORWARD(weir_pool2d_options, max_pool2d, weir_max_pool2d(out, x, d))

/* "2", or "(2, 3)" where the two differ. */
static const char *layer_number(char *out, size_t room, const int64_t v[2], int64_t if_zero)
{
  int64_t a = v[0] ? v[0] : if_zero, b = v[1] ? v[1] : if_zero;
  (void)snprintf(out, room, a == b ? "%" PRId64 : "(%" PRId64 ", %" PRId64 ")", a, b);
  return out;
}

static void max_pool2d_describe(char *out, size_t room, const weir_module *m)
{
  const weir_pool2d_options *p = m->data;
  char text[4][48];
  (void)snprintf(out, room, "kernel_size=%s, stride=%s, padding=%s, dilation=%s, ceil_mode=False",
                 layer_number(text[0], sizeof text[0], p->kernel, 0),
                 layer_number(text[1], sizeof text[1], p->stride, 0),
                 layer_number(text[2], sizeof text[2], p->padding, 0),
                 layer_number(text[3], sizeof text[3], p->dilation, 1));
}

PLAIN_CLASS("MaxPool2d", max_pool2d, max_pool2d_describe)

weir_status weir_module_max_pool2d(weir_module **out, const weir_pool2d_options *options)
{
  WEIR_REQUIRE_OUT(out, options);
  weir_pool2d_options p = *options;
  for (int i = 0; i < 2; i++)
    if (!p.stride[i]) p.stride[i] = p.kernel[i];
  return layer_with(out, &max_pool2d_class, &p, sizeof p);
}

/* ---- Sequential ------------------------------------------------------------------------------ */

static weir_status sequential_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                      int count)
{
  weir_status st = plain_input(m, count);
  weir_tensor *x = st ? NULL : weir_tensor_retain(in[0]);
  for (size_t i = 0; !st && i < m->children; i++) {
    weir_tensor *y = NULL;
    st = weir_module_call(&y, m->child[i].m, x);
    weir_tensor_release(x);
    x = y;
  }
  *out = x;
  return st;
}

static const weir_module_class sequential = {.name = "Sequential", .forward = sequential_forward};

/* The first of children that is NULL: an error of `function`. */
static weir_status no_child(const char *function, size_t place)
{
  return fail_invalid("%s: module '%zu' is NULL", function, place);
}

weir_status weir_module_append(weir_module *m, weir_module *child)
{
  char name[24];
  if (!m) weir_module_release(child);
  WEIR_REQUIRE(m);
  if (m->kind != &sequential && m->kind != &module_list_class) {
    weir_module_release(child);
    return fail_invalid("only a Sequential or a ModuleList can be appended to, not a %s",
                        m->kind->name);
  }
  if (!child) return no_child(__func__, m->children);
  (void)snprintf(name, sizeof name, "%zu", m->children);
  return weir_module_add(m, name, child);
}

weir_status layer_of_children(weir_module **out, const weir_module_class *kind,
                              weir_module *const *children, size_t count, const char *function)
{
  WEIR_MODULE m = NULL;
  weir_status st = weir_module_new(&m, kind, NULL);
  for (size_t i = 0; i < count; i++)
    if (st)
      weir_module_release(children[i]);
    else
      st = children[i] ? weir_module_append(m, children[i]) : no_child(function, i);
  if (!st) *out = weir_module_retain(m);
  return st;
}

weir_status weir_module_sequential(weir_module **out, weir_module *const *children, size_t count)
{
  WEIR_REQUIRE_OUT(out);
  if (count) WEIR_REQUIRE(children);
  return layer_of_children(out, &sequential, children, count, __func__);
}
