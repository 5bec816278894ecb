/* resize.c: layers that change how large an image is: pads and Upsample; a row each. */
#include <string.h>
#include "core/nn/plain.h"
#include "core/nn/text.h"

/* ---- pads ------------------------------------------------------------------------------------ */

static void pad_describe(char *out, size_t room, const weir_module *m)
{
  const plain_data *d = m->data;
  layer_text padding;
  (void)snprintf(out, room, "%s", tuple_text(&padding, d->padding, 2 * d->axes));
}

static void constant_pad_describe(char *out, size_t room, const weir_module *m)
{
  const plain_data *d = m->data;
  layer_text padding, value;
  (void)snprintf(value.at, sizeof value.at, "%" PRId64, d->value.i);
  const char *number = d->value.dtype == WEIR_BOOL      ? bool_text(d->value.i)
                       : d->value.dtype == WEIR_FLOAT64 ? float_text(&value, d->value.f)
                                                        : value.at;
  (void)snprintf(out, room, "padding=%s, value=%s", tuple_text(&padding, d->padding, 2 * d->axes),
                 number);
}

/* torch's CircularPads check it themselves, the others leave it to pad(). */
static weir_status check_axes(const weir_tensor *x, const plain_data *d, weir_pad_mode mode)
{
  int dims = weir_tensor_dim(x);
  if (mode != WEIR_PAD_CIRCULAR || dims == d->axes + 1 || dims == d->axes + 2) return WEIR_OK;
  return fail_invalid("expected %dD or %dD input (got %dD input)", d->axes + 1, d->axes + 2, dims);
}

static weir_status pad_input(weir_tensor **out, const weir_tensor *x, const plain_data *d,
                             weir_pad_mode mode)
{
  weir_status st = check_axes(x, d, mode);
  return st ? st : weir_pad(out, x, d->padding, 2 * d->axes, mode, d->value);
}

static weir_status pad_layer(weir_module **out, const weir_module_class *kind, int axes,
                             const int64_t *padding, weir_scalar value)
{
  plain_data d = {.axes = axes, .value = value};
  memcpy(d.padding, padding, 2 * (size_t)axes * sizeof *padding);
  return plain_layer(out, kind, &d);
}

#define PAD(name, title, axes, mode)                                                               \
  PLAIN_FORWARD(name, pad_input(out, x, d, WEIR_PAD_##mode))                                       \
  PLAIN_CLASS(title, name, pad_describe)                                                           \
  weir_status weir_module_##name(weir_module **out, const int64_t *padding)                        \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, padding);                                                                \
    return pad_layer(out, &name##_class, axes, padding, weir_int(0));                              \
  }
WEIR_PAD_LAYERS(PAD)

#define CONSTANT_PAD(name, title, axes)                                                            \
  PLAIN_FORWARD(name, pad_input(out, x, d, WEIR_PAD_CONSTANT))                                     \
  PLAIN_CLASS(title, name, constant_pad_describe)                                                  \
  weir_status weir_module_##name(weir_module **out, const int64_t *padding, weir_scalar value)     \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, padding);                                                                \
    return pad_layer(out, &name##_class, axes, padding, value);                                    \
  }
CONSTANT_PAD(constant_pad1d, "ConstantPad1d", 1)
CONSTANT_PAD(constant_pad2d, "ConstantPad2d", 2)
CONSTANT_PAD(constant_pad3d, "ConstantPad3d", 3)

/* ---- Upsample -------------------------------------------------------------------------------- */

static void upsample_describe(char *out, size_t room, const weir_module *m)
{
  static const char *const modes[] = {"nearest", "nearest-exact", "linear", "bilinear",
                                      "bicubic", "trilinear",     "area"};
  const weir_interpolate_options *o = &((const plain_data *)m->data)->resize;
  layer_text size, scale[3];
  const char *mode = modes[o->mode];
  for (int i = 0; i < 3; i++)
    (void)float_text(&scale[i], o->scale[i]);
  if (o->scale[0] == 0)
    (void)snprintf(out, room, "size=%s, mode='%s'",
                   tuple_text(&size, o->size, 1 + !!o->size[1] + !!o->size[2]), mode);
  if (o->scale[0] == 0 && !o->size[1])
    (void)snprintf(out, room, "size=%" PRId64 ", mode='%s'", o->size[0], mode);
  if (o->scale[0] != 0 && o->scale[1] == 0)
    (void)snprintf(out, room, "scale_factor=%s, mode='%s'", scale[0].at, mode);
  if (o->scale[0] != 0 && o->scale[1] != 0)
    (void)snprintf(out, room, "scale_factor=(%s, %s%s%s), mode='%s'", scale[0].at, scale[1].at,
                   o->scale[2] != 0 ? ", " : "", o->scale[2] != 0 ? scale[2].at : "", mode);
}

/* A number alone is that of all axes. */
static weir_status resize_input(weir_tensor **out, const weir_tensor *x, const plain_data *d)
{
  weir_interpolate_options o = d->resize;
  if (!o.size[1]) o.size[1] = o.size[2] = o.size[0];
  if (o.scale[1] == 0) o.scale[1] = o.scale[2] = o.scale[0];
  return weir_interpolate(out, x, &o);
}

#define UPSAMPLE(name, title, ...)                                                                 \
  PLAIN_FORWARD(name, resize_input(out, x, d))                                                     \
  PLAIN_CLASS(title, name, upsample_describe)                                                      \
  weir_status weir_module_##name(weir_module **out, const weir_interpolate_options *options)       \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, options);                                                                \
    plain_data d = {.resize = *options};                                                           \
    if ((unsigned)d.resize.mode > WEIR_INTERPOLATE_AREA)                                           \
      return fail_invalid("%s: there is no mode %d", __func__, (int)d.resize.mode);                \
    __VA_ARGS__                                                                                    \
    return plain_layer(out, &name##_class, &d);                                                    \
  }
UPSAMPLE(upsample, "Upsample", )
UPSAMPLE(upsampling_nearest2d, "UpsamplingNearest2d", d.resize.mode = WEIR_INTERPOLATE_NEAREST;)
UPSAMPLE(upsampling_bilinear2d, "UpsamplingBilinear2d", d.resize.mode = WEIR_INTERPOLATE_BILINEAR;
         d.resize.align_corners = true;)
