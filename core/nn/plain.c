/* plain.c: layers without parameters: a function and its arguments; and containers of modules that
 * the program calls itself. */
#include <string.h>
#include "core/nn/plain.h"
#include "core/nn/text.h"

weir_status layer_with(weir_module **out, const weir_module_class *kind, const void *data,
                       size_t bytes)
{
  void *copy = malloc(bytes);
  *out = NULL;
  if (!copy) return fail_memory("a module %s", kind->name);
  memcpy(copy, data, bytes);
  return weir_module_new(out, kind, copy);
}

weir_status plain_layer(weir_module **out, const weir_module_class *kind, const plain_data *d)
{
  return layer_with(out, kind, d, sizeof *d);
}

weir_status plain_input(const weir_module *m, int count)
{
  return count == 1
             ? WEIR_OK
             : fail_invalid("%s.forward() takes 1 tensor but %d were given", m->kind->name, count);
}

weir_status plain_inputs(const weir_module *m, int count, int wanted)
{
  return count == wanted ? WEIR_OK
                         : fail_invalid("%s.forward() takes %d tensors but %d were passed",
                                        m->kind->name, wanted, count);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static void dropout_describe(char *out, size_t room, const weir_module *m)
{
  const plain_data *d = m->data;
  layer_text p;
  const char *text = float_text(&p, d->p);
  if (d->p == 0 || d->p == 1) text = d->p == 1 ? "1" : "0"; /* as they are mostly written */
  (void)snprintf(out, room, "p=%s, inplace=False", text);
}

static weir_status dropout_layer(weir_module **out, const weir_module_class *kind, double p)
{
  if (!(p >= 0 && p <= 1))
    return fail_invalid("dropout probability has to be between 0 and 1, but got %g", p);
  return plain_layer(out, kind, &(plain_data){.p = p});
}

PLAIN_FORWARD(dropout, weir_dropout(out, x, d->p, weir_module_is_training(m), NULL))
PLAIN_FORWARD(feature_dropout, weir_feature_dropout(out, x, d->p, weir_module_is_training(m), NULL))

#define DROPOUT(fn, title, function)                                                               \
  weir_status weir_module_##fn(weir_module **out, double p)                                        \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out);                                                                         \
    static const weir_module_class kind = {.name = title,                                          \
                                           .forward = function##_forward,                          \
                                           .destroy = free,                                        \
                                           .describe = dropout_describe};                          \
    return dropout_layer(out, &kind, p);                                                           \
  }
DROPOUT(dropout, "Dropout", dropout)
DROPOUT(dropout1d, "Dropout1d", feature_dropout)
DROPOUT(dropout2d, "Dropout2d", feature_dropout)
DROPOUT(dropout3d, "Dropout3d", feature_dropout)

/* ---- pooling --------------------------------------------------------------------------------- */

static void avg_pool_describe(char *out, size_t room, const weir_module *m)
{
  const plain_data *d = m->data;
  layer_text kernel, stride, padding;
  const char *(*text)(layer_text *, const int64_t *, int) = d->axes == 1 ? tuple_text : sizes_text;
  (void)snprintf(out, room, "kernel_size=%s, stride=%s, padding=%s",
                 text(&kernel, d->pool.kernel, d->axes), text(&stride, d->pool.stride, d->axes),
                 text(&padding, d->pool.padding, d->axes));
}

static void max_pool_describe(char *out, size_t room, const weir_module *m)
{
  const plain_data *d = m->data;
  layer_text kernel, stride, padding, dilation;
  (void)snprintf(out, room, "kernel_size=%s, stride=%s, padding=%s, dilation=%s, ceil_mode=%s",
                 sizes_text(&kernel, d->pool.kernel, d->axes),
                 sizes_text(&stride, d->pool.stride, d->axes),
                 sizes_text(&padding, d->pool.padding, d->axes),
                 sizes_text(&dilation, d->pool.dilation, d->axes), bool_text(d->pool.ceil_mode));
}

static weir_status pool_layer(weir_module **out, const weir_module_class *kind, int axes,
                              const weir_pool_options *o)
{
  plain_data d = {.axes = axes, .pool = *o};
  for (int i = 0; i < axes; i++) {
    if (!d.pool.stride[i]) d.pool.stride[i] = d.pool.kernel[i];
    if (!d.pool.dilation[i]) d.pool.dilation[i] = 1;
  }
  return plain_layer(out, kind, &d);
}

#define POOL(n, kind, title)                                                                       \
  PLAIN_FORWARD(kind##_pool##n##d, weir_##kind##_pool##n##d(out, x, &d->pool))                     \
  PLAIN_CLASS(title, kind##_pool##n##d, kind##_pool_describe)                                      \
  weir_status weir_module_##kind##_pool##n##d(weir_module **out, const weir_pool_options *options) \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, options);                                                                \
    return pool_layer(out, &kind##_pool##n##d_class, n, options);                                  \
  }
POOL(1, avg, "AvgPool1d")
POOL(2, avg, "AvgPool2d")
POOL(3, avg, "AvgPool3d")
POOL(1, max, "MaxPool1d")
POOL(3, max, "MaxPool3d")

static void adaptive_describe(char *out, size_t room, const weir_module *m)
{
  const plain_data *d = m->data;
  layer_text size;
  (void)snprintf(out, room, "output_size=%s",
                 d->axes == 1 ? sizes_text(&size, d->size, 1)
                              : tuple_text(&size, d->size, d->axes));
}

#define ADAPTIVE(n, kind, title)                                                                   \
  PLAIN_FORWARD(adaptive_##kind##_pool##n##d, weir_adaptive_##kind##_pool##n##d(out, x, d->size))  \
  PLAIN_CLASS(title, adaptive_##kind##_pool##n##d, adaptive_describe)                              \
  weir_status weir_module_adaptive_##kind##_pool##n##d(weir_module **out, const int64_t *size)     \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, size);                                                                   \
    plain_data d = {.axes = n};                                                                    \
    memcpy(d.size, size, n * sizeof *size);                                                        \
    return plain_layer(out, &adaptive_##kind##_pool##n##d_class, &d);                              \
  }
ADAPTIVE(1, avg, "AdaptiveAvgPool1d")
ADAPTIVE(2, avg, "AdaptiveAvgPool2d")
ADAPTIVE(3, avg, "AdaptiveAvgPool3d")
ADAPTIVE(1, max, "AdaptiveMaxPool1d")
ADAPTIVE(2, max, "AdaptiveMaxPool2d")
ADAPTIVE(3, max, "AdaptiveMaxPool3d")

/* ---- functions of one tensor ----------------------------------------------------------------- */

void dim_describe(char *out, size_t room, const weir_module *m)
{
  (void)snprintf(out, room, "dim=%d", ((const plain_data *)m->data)->dim);
}

static void up_describe(char *out, size_t room, const weir_module *m)
{
  (void)snprintf(out, room, "upscale_factor=%" PRId64, ((const plain_data *)m->data)->factor);
}

static void down_describe(char *out, size_t room, const weir_module *m)
{
  (void)snprintf(out, room, "downscale_factor=%" PRId64, ((const plain_data *)m->data)->factor);
}

static void groups_describe(char *out, size_t room, const weir_module *m)
{
  (void)snprintf(out, room, "groups=%" PRId64, ((const plain_data *)m->data)->factor);
}

static void unflatten_describe(char *out, size_t room, const weir_module *m)
{
  const plain_data *d = m->data;
  layer_text sizes;
  (void)snprintf(out, room, "dim=%d, unflattened_size=%s", d->dim,
                 tuple_text(&sizes, d->shape.size, d->shape.count));
}

PLAIN(identity, "Identity", NULL, (weir_module * *out), DATA(.dim = 0),
      (*out = weir_tensor_retain(x), WEIR_OK))
PLAIN(sigmoid, "Sigmoid", NULL, (weir_module * *out), DATA(.dim = 0), weir_sigmoid(out, x))
PLAIN(tanh, "Tanh", NULL, (weir_module * *out), DATA(.dim = 0), weir_tanh(out, x))
PLAIN(softmax, "Softmax", dim_describe, (weir_module * *out, int dim), DATA(.dim = dim),
      weir_softmax(out, x, d->dim))
PLAIN(log_softmax, "LogSoftmax", dim_describe, (weir_module * *out, int dim), DATA(.dim = dim),
      weir_log_softmax(out, x, d->dim))

static weir_status softmax_of_negative(weir_tensor **out, const weir_tensor *x, int dim)
{
  CALC(c);
  return calc_give(c, out, c_softmax(c, c_neg(c, x), dim));
}

static weir_status softmax_of_channels(weir_tensor **out, const weir_tensor *x)
{
  int dims = weir_tensor_dim(x);
  if (dims == 3 || dims == 4) return weir_softmax(out, x, -3);
  return fail_invalid("Softmax2d: expected input to be 3D or 4D, got %dD instead", dims);
}

PLAIN(softmin, "Softmin", dim_describe, (weir_module * *out, int dim), DATA(.dim = dim),
      softmax_of_negative(out, x, d->dim))
PLAIN(softmax2d, "Softmax2d", NULL, (weir_module * *out), DATA(.dim = 0),
      softmax_of_channels(out, x))
PLAIN_OF(2, cosine_similarity, "CosineSimilarity", NULL, (weir_module * *out, int dim, double eps),
         DATA(.dim = dim, .number = {eps}),
         weir_cosine_similarity(out, in[0], in[1], d->dim, d->number[0]))
PLAIN_OF(2, pairwise_distance, "PairwiseDistance", NULL,
         (weir_module * *out, double p, double eps, bool keepdim),
         DATA(.number = {p, eps}, .flag = keepdim),
         weir_pairwise_distance(out, in[0], in[1], d->number[0], d->number[1], d->flag))
PLAIN(unflatten, "Unflatten", unflatten_describe, (weir_module * *out, int dim, weir_shape sizes),
      DATA(.dim = dim, .shape = sizes), weir_unflatten(out, x, d->dim, d->shape))
PLAIN(pixel_shuffle, "PixelShuffle", up_describe, (weir_module * *out, int64_t factor),
      DATA(.factor = factor), weir_pixel_shuffle(out, x, d->factor))
PLAIN(pixel_unshuffle, "PixelUnshuffle", down_describe, (weir_module * *out, int64_t factor),
      DATA(.factor = factor), weir_pixel_unshuffle(out, x, d->factor))
PLAIN(channel_shuffle, "ChannelShuffle", groups_describe, (weir_module * *out, int64_t groups),
      DATA(.factor = groups), weir_channel_shuffle(out, x, d->factor))

/* ---- containers ------------------------------------------------------------------------------ */

static const weir_module_class module_dict_class = {.name = "ModuleDict"};

weir_status weir_module_list(weir_module **out, weir_module *const *children, size_t count)
{
  WEIR_REQUIRE_OUT(out);
  if (count) WEIR_REQUIRE(children);
  return layer_of_children(out, &module_list_class, children, count, __func__);
}

weir_status weir_module_dict(weir_module **out)
{
  WEIR_REQUIRE_OUT(out);
  return weir_module_new(out, &module_dict_class, NULL);
}
