/* normal.c: layers of normalisation. Their parameters and buffers are slots at fixed places, so
 * that a call looks up no name; what a layer does not have is a slot without a tensor. */
#include <string.h>
#include "core/nn/plain.h"
#include "core/nn/text.h"

enum { WEIGHT, BIAS, MEAN, VAR, TRACKED };

/* What a layer of normalisation has in addition to its tensors. */
typedef struct normal_data {
  double eps, momentum;
  bool cumulative, affine, bias, running;
  int axes;         /* of BatchNorm, InstanceNorm */
  int64_t channels; /* of BatchNorm, InstanceNorm, GroupNorm */
  int64_t groups;   /* of GroupNorm */
  weir_shape shape; /* of LayerNorm, RMSNorm */
} normal_data;

/* ---- making ---------------------------------------------------------------------------------- */

typedef weir_status (*filled)(weir_tensor **out, weir_shape shape, const weir_options *o);

/* Slots are added in the order of the enumeration. */
static weir_status add_filled(weir_module *m, const char *name, bool there, filled fill,
                              weir_shape shape, const weir_options *o)
{
  weir_tensor *t = NULL;
  weir_status st = there ? fill(&t, shape, o) : WEIR_OK;
  return st ? st : weir_module_add_parameter(m, name, t);
}

static weir_status add_statistic(weir_module *m, const char *name, filled fill, weir_shape shape,
                                 const weir_options *o)
{
  const normal_data *d = m->data;
  weir_tensor *t = NULL;
  weir_status st = d->running ? fill(&t, shape, o) : WEIR_OK;
  return st ? st : weir_module_add_buffer(m, name, t, true);
}

static weir_status add_statistics(weir_module *m, const weir_options *o)
{
  const normal_data *d = m->data;
  weir_options whole = *o;
  whole.dtype = WEIR_INT64;
  weir_status st = add_statistic(m, "running_mean", weir_zeros, weir_shape(d->channels), o);
  if (!st) st = add_statistic(m, "running_var", weir_ones, weir_shape(d->channels), o);
  return st ? st
            : add_statistic(m, "num_batches_tracked", weir_zeros, (weir_shape){0, {0}}, &whole);
}

static normal_data normal_of(const weir_norm_layer_options *o)
{
  static const weir_norm_layer_options none = {.eps = 0};
  if (!o) o = &none;
  return (normal_data){.eps = o->eps != 0 ? o->eps : 1e-5,
                       .momentum = o->momentum != 0 ? o->momentum : .1,
                       .cumulative = o->cumulative,
                       .affine = !o->no_affine,
                       .bias = !o->no_affine && !o->no_bias,
                       .running = !o->no_running};
}

static weir_status normal_layer(weir_module **out, const weir_module_class *kind,
                                const normal_data *d, weir_shape shape,
                                const weir_norm_layer_options *o)
{
  static const weir_options none = {0};
  const weir_options *tensor = o ? &o->tensor : &none;
  WEIR_MODULE m = NULL;
  weir_status st = layer_with(&m, kind, d, sizeof *d);
  if (!st) st = add_filled(m, "weight", d->affine, weir_ones, shape, tensor);
  if (!st && strcmp(kind->name, "RMSNorm") != 0)
    st = add_filled(m, "bias", d->bias, weir_zeros, shape, tensor);
  if (!st && d->axes) st = add_statistics(m, tensor);
  if (!st) *out = weir_module_retain(m);
  return st;
}

/* ---- BatchNorm, InstanceNorm ----------------------------------------------------------------- */

/* Inputs of the dimensions `least` and `most`. */
static weir_status check_dims(const weir_tensor *in, int least, int most)
{
  int dims = weir_tensor_dim(in);
  if (dims >= least && dims <= most) return WEIR_OK;
  if (least == most) return fail_invalid("expected %dD input (got %dD input)", least, dims);
  return fail_invalid("expected %dD or %dD input (got %dD input)", least, most, dims);
}

/* One batch more was tracked; *momentum is what it counts. */
static weir_status track(const weir_module *m, double *momentum)
{
  const normal_data *d = m->data;
  weir_tensor *tracked = m->slot[TRACKED].t;
  weir_scalar count;
  *momentum = d->cumulative ? 0 : d->momentum;
  if (!tracked) return WEIR_OK;
  weir_status st = weir_add_scalar_(tracked, weir_int(1));
  if (st || !d->cumulative) return st;
  st = weir_item(&count, tracked);
  *momentum = st || count.i < 1 ? 0 : 1 / (double)count.i;
  return st;
}

static weir_status batch_norm_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                      int count)
{
  const normal_data *d = m->data;
  const module_slot *s = m->slot;
  weir_batch_norm_options o = {.eps = d->eps};
  weir_status st = plain_input(m, count);
  if (!st) st = check_dims(in[0], d->axes + 2 - (d->axes == 1), d->axes + 2);
  if (st) return st;
  bool training = weir_module_is_training(m);
  o.training = training || (!s[MEAN].t && !s[VAR].t);
  if (training && d->running) st = track(m, &o.momentum);
  return st ? st : weir_batch_norm(out, in[0], s[MEAN].t, s[VAR].t, s[WEIGHT].t, s[BIAS].t, &o);
}

/* As torch's InstanceNorm: without parameters any number of channels will do. */
static weir_status check_channels(const normal_data *d, const weir_tensor *in)
{
  int at = weir_tensor_dim(in) == d->axes + 2;
  int64_t there = weir_tensor_size(in, at);
  if (!d->affine || there == d->channels) return WEIR_OK;
  return fail_invalid("expected input's size at dim=%d to match num_features (%" PRId64
                      "), but got: %" PRId64 ".",
                      at, d->channels, there);
}

static weir_status instance_norm_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,
                                         int count)
{
  const normal_data *d = m->data;
  const module_slot *s = m->slot;
  WEIR_TENSOR batch = NULL, normal = NULL;
  weir_batch_norm_options o = {.eps = d->eps, .momentum = d->momentum};
  weir_status st = plain_input(m, count);
  if (!st) st = check_dims(in[0], d->axes + 1, d->axes + 2);
  if (!st) st = check_channels(d, in[0]);
  if (st) return st;
  bool alone = weir_tensor_dim(in[0]) == d->axes + 1;
  o.training = weir_module_is_training(m) || !d->running;
  if (alone) st = weir_unsqueeze(&batch, in[0], 0);
  if (!st)
    st = weir_instance_norm(alone ? &normal : out, alone ? batch : in[0], s[MEAN].t, s[VAR].t,
                            s[WEIGHT].t, s[BIAS].t, &o);
  return st || !alone ? st : weir_squeeze(out, normal, 0);
}

static void statistics_describe(char *out, size_t room, const weir_module *m)
{
  const normal_data *d = m->data;
  layer_text eps, momentum;
  (void)snprintf(out, room,
                 "%" PRId64 ", eps=%s, momentum=%s, affine=%s, bias=%s, track_running_stats=%s",
                 d->channels, float_text(&eps, d->eps),
                 d->cumulative ? "None" : float_text(&momentum, d->momentum), bool_text(d->affine),
                 bool_text(d->bias), bool_text(d->running));
}

/* Of InstanceNorm, which has parameters and statistics where they are asked for. */
static normal_data instance_of(const weir_norm_layer_options *o)
{
  normal_data d = normal_of(o);
  d.affine = o && o->affine;
  d.bias = d.affine && !o->no_bias;
  d.running = o && o->running;
  return d;
}

#define STATISTICS_NORM(fn, title, n, data_of)                                                     \
  weir_status weir_module_##fn##n##d(weir_module **out, int64_t channels,                          \
                                     const weir_norm_layer_options *options)                       \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out);                                                                         \
    static const weir_module_class kind = {.name = title #n "d",                                   \
                                           .forward = fn##_forward,                                \
                                           .destroy = free,                                        \
                                           .describe = statistics_describe};                       \
    normal_data d = data_of(options);                                                              \
    d.axes = n;                                                                                    \
    d.channels = channels;                                                                         \
    return normal_layer(out, &kind, &d, weir_shape(channels), options);                            \
  }
STATISTICS_NORM(batch_norm, "BatchNorm", 1, normal_of)
STATISTICS_NORM(batch_norm, "BatchNorm", 2, normal_of)
STATISTICS_NORM(batch_norm, "BatchNorm", 3, normal_of)
STATISTICS_NORM(instance_norm, "InstanceNorm", 1, instance_of)
STATISTICS_NORM(instance_norm, "InstanceNorm", 2, instance_of)
STATISTICS_NORM(instance_norm, "InstanceNorm", 3, instance_of)

/* ---- LayerNorm, RMSNorm, GroupNorm ----------------------------------------------------------- */

LAYER_FORWARD(normal_data, layer_norm,
              weir_layer_norm(out, x, d->shape, m->slot[WEIGHT].t, m->slot[BIAS].t, d->eps))

static void layer_norm_describe(char *out, size_t room, const weir_module *m)
{
  const normal_data *d = m->data;
  layer_text shape, eps;
  (void)snprintf(out, room, "%s, eps=%s, elementwise_affine=%s, bias=%s",
                 tuple_text(&shape, d->shape.size, d->shape.count), float_text(&eps, d->eps),
                 bool_text(d->affine), bool_text(d->bias));
}

PLAIN_CLASS("LayerNorm", layer_norm, layer_norm_describe)

weir_status weir_module_layer_norm(weir_module **out, weir_shape shape,
                                   const weir_norm_layer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  normal_data d = normal_of(options);
  d.shape = shape;
  return normal_layer(out, &layer_norm_class, &d, shape, options);
}

LAYER_FORWARD(normal_data, rms_norm, weir_rms_norm(out, x, d->shape, m->slot[WEIGHT].t, d->eps))

static void rms_norm_describe(char *out, size_t room, const weir_module *m)
{
  const normal_data *d = m->data;
  layer_text shape, eps;
  (void)snprintf(out, room, "%s, eps=%s, elementwise_affine=%s",
                 tuple_text(&shape, d->shape.size, d->shape.count),
                 d->eps < 0 ? "None" : float_text(&eps, d->eps), bool_text(d->affine));
}

PLAIN_CLASS("RMSNorm", rms_norm, rms_norm_describe)

weir_status weir_module_rms_norm(weir_module **out, weir_shape shape,
                                 const weir_norm_layer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  normal_data d = normal_of(options);
  d.shape = shape;
  if (!options || options->eps == 0) d.eps = -1;
  return normal_layer(out, &rms_norm_class, &d, shape, options);
}

LAYER_FORWARD(normal_data, group_norm,
              weir_group_norm(out, x, d->groups, m->slot[WEIGHT].t, m->slot[BIAS].t, d->eps))

static void group_norm_describe(char *out, size_t room, const weir_module *m)
{
  const normal_data *d = m->data;
  layer_text eps;
  (void)snprintf(out, room, "%" PRId64 ", %" PRId64 ", eps=%s, affine=%s, bias=%s", d->groups,
                 d->channels, float_text(&eps, d->eps), bool_text(d->affine), bool_text(d->bias));
}

PLAIN_CLASS("GroupNorm", group_norm, group_norm_describe)

weir_status weir_module_group_norm(weir_module **out, int64_t groups, int64_t channels,
                                   const weir_norm_layer_options *options)
{
  WEIR_REQUIRE_OUT(out);
  normal_data d = normal_of(options);
  d.groups = groups;
  d.channels = channels;
  if (groups < 1 || channels % groups)
    return fail_invalid("num_channels (%lld) must be divisible by num_groups (%lld)",
                        (long long)channels, (long long)groups);
  return normal_layer(out, &group_norm_class, &d, weir_shape(channels), options);
}
