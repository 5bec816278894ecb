/* layers.h: the layers of torch.nn beside those of module.h: normalisation, dropout, pooling, and
 * what has no parameters. Included by weir.h.
 *
 * What module.h says of all modules holds here, too. Names of parameters and buffers, their order,
 * first values and what weir_module_to_string() prints are torch's. Options that are NULL are
 * torch's usual ones, as is each that is 0. */
#ifndef WEIR_LAYERS_H
#define WEIR_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/module.h"
#include "core/weir/nn.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation ---------------------------------------------------------------------------- */

typedef struct weir_norm_layer_options {
  weir_options tensor;  /* dtype and device of parameters and buffers */
  double eps;           /* 0: 1e-5; of RMSNorm the dtype's epsilon */
  double momentum;      /* 0: 0.1 */
  bool cumulative;      /* momentum=None: running statistics are averages of all batches */
  bool no_affine;       /* without weight and bias; InstanceNorm has none unless `affine` */
  bool no_bias;         /* without bias */
  bool no_running;      /* without running statistics; InstanceNorm has none unless `running` */
  bool affine, running; /* of InstanceNorm */
} weir_norm_layer_options;

/* weight, bias (channels); running_mean, running_var, num_batches_tracked. Training it follows the
 * batch, else it uses what it has followed. Inputs are (n, channels) or (n, channels, length), (n,
 * channels, h, w), (n, channels, d, h, w). Errors of a call: "expected 4D input (got 3D input)",
 * those of weir_batch_norm(). */
WEIR_PUBLIC weir_status weir_module_batch_norm1d(weir_module **out, int64_t channels,
                                                 const weir_norm_layer_options *options);
WEIR_PUBLIC weir_status weir_module_batch_norm2d(weir_module **out, int64_t channels,
                                                 const weir_norm_layer_options *options);
WEIR_PUBLIC weir_status weir_module_batch_norm3d(weir_module **out, int64_t channels,
                                                 const weir_norm_layer_options *options);
/* The same for each image by itself; the batch's dimension may be missing. */
WEIR_PUBLIC weir_status weir_module_instance_norm1d(weir_module **out, int64_t channels,
                                                    const weir_norm_layer_options *options);
WEIR_PUBLIC weir_status weir_module_instance_norm2d(weir_module **out, int64_t channels,
                                                    const weir_norm_layer_options *options);
WEIR_PUBLIC weir_status weir_module_instance_norm3d(weir_module **out, int64_t channels,
                                                    const weir_norm_layer_options *options);
/* weight, bias of the shape, that of the last dimensions. */
WEIR_PUBLIC weir_status weir_module_layer_norm(weir_module **out, weir_shape shape,
                                               const weir_norm_layer_options *options);
/* weight of the shape. */
WEIR_PUBLIC weir_status weir_module_rms_norm(weir_module **out, weir_shape shape,
                                             const weir_norm_layer_options *options);
/* weight, bias (channels). Errors: "num_channels (3) must be divisible by num_groups (2)". */
WEIR_PUBLIC weir_status weir_module_group_norm(weir_module **out, int64_t groups, int64_t channels,
                                               const weir_norm_layer_options *options);

/* ---- convolution ------------------------------------------------------------------------------ */

typedef struct weir_conv_layer_options {
  weir_options tensor;    /* dtype and device of the parameters */
  bool no_bias;           /* without bias */
  weir_conv_options conv; /* stride, padding, dilation, groups, output_padding */
} weir_conv_layer_options;

/* weight (out, in / groups, kernel...), of transposed ones (in, out / groups, kernel...); bias (out);
 * first values as module.h says. kernel: a size an axis. Errors: EINVAL "in_channels must be
 * divisible by groups"; those of weir_conv1d() and its kin. Conv2d is in module.h. */
WEIR_PUBLIC weir_status weir_module_conv1d(weir_module **out, int64_t in_channels,
                                           int64_t out_channels, const int64_t *kernel,
                                           const weir_conv_layer_options *options);
WEIR_PUBLIC weir_status weir_module_conv3d(weir_module **out, int64_t in_channels,
                                           int64_t out_channels, const int64_t *kernel,
                                           const weir_conv_layer_options *options);
WEIR_PUBLIC weir_status weir_module_conv_transpose1d(weir_module **out, int64_t in_channels,
                                                     int64_t out_channels, const int64_t *kernel,
                                                     const weir_conv_layer_options *options);
WEIR_PUBLIC weir_status weir_module_conv_transpose2d(weir_module **out, int64_t in_channels,
                                                     int64_t out_channels, const int64_t *kernel,
                                                     const weir_conv_layer_options *options);
WEIR_PUBLIC weir_status weir_module_conv_transpose3d(weir_module **out, int64_t in_channels,
                                                     int64_t out_channels, const int64_t *kernel,
                                                     const weir_conv_layer_options *options);

/* ---- without parameters ----------------------------------------------------------------------- */

/* While it trains; by the default generator of the input's device. Errors: "dropout probability has
 * to be between 0 and 1, but got 1.5". */
WEIR_PUBLIC weir_status weir_module_dropout(weir_module **out, double p);
/* Whole channels: Dropout1d, Dropout2d, Dropout3d. */
WEIR_PUBLIC weir_status weir_module_dropout1d(weir_module **out, double p);
WEIR_PUBLIC weir_status weir_module_dropout2d(weir_module **out, double p);
WEIR_PUBLIC weir_status weir_module_dropout3d(weir_module **out, double p);

/* options are copied. */
WEIR_PUBLIC weir_status weir_module_avg_pool1d(weir_module **out, const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_module_avg_pool2d(weir_module **out, const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_module_avg_pool3d(weir_module **out, const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_module_max_pool1d(weir_module **out, const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_module_max_pool3d(weir_module **out, const weir_pool_options *options);
/* size: as many as axes (copied). */
WEIR_PUBLIC weir_status weir_module_adaptive_avg_pool1d(weir_module **out, const int64_t *size);
WEIR_PUBLIC weir_status weir_module_adaptive_avg_pool2d(weir_module **out, const int64_t *size);
WEIR_PUBLIC weir_status weir_module_adaptive_avg_pool3d(weir_module **out, const int64_t *size);
WEIR_PUBLIC weir_status weir_module_adaptive_max_pool1d(weir_module **out, const int64_t *size);
WEIR_PUBLIC weir_status weir_module_adaptive_max_pool2d(weir_module **out, const int64_t *size);
WEIR_PUBLIC weir_status weir_module_adaptive_max_pool3d(weir_module **out, const int64_t *size);

/* Its input once more. */
WEIR_PUBLIC weir_status weir_module_identity(weir_module **out);
WEIR_PUBLIC weir_status weir_module_sigmoid(weir_module **out);
WEIR_PUBLIC weir_status weir_module_tanh(weir_module **out);
WEIR_PUBLIC weir_status weir_module_softmax(weir_module **out, int dim);
WEIR_PUBLIC weir_status weir_module_log_softmax(weir_module **out, int dim);
/* Dimension dim as several. */
WEIR_PUBLIC weir_status weir_module_unflatten(weir_module **out, int dim, weir_shape sizes);
WEIR_PUBLIC weir_status weir_module_pixel_shuffle(weir_module **out, int64_t factor);
WEIR_PUBLIC weir_status weir_module_pixel_unshuffle(weir_module **out, int64_t factor);

/* ---- activations ------------------------------------------------------------------------------
 * Those of functions.h: weir_module_silu(&m). */
#define WEIR_PLAIN_ACTIVATIONS(X)                                                                  \
  X(silu, "SiLU")                                                                                  \
  X(mish, "Mish")                                                                                  \
  X(hardsigmoid, "Hardsigmoid")                                                                    \
  X(hardswish, "Hardswish")                                                                        \
  X(logsigmoid, "LogSigmoid")                                                                      \
  X(selu, "SELU")                                                                                  \
  X(relu6, "ReLU6")                                                                                \
  X(softsign, "Softsign")                                                                          \
  X(tanhshrink, "Tanhshrink")
#define WEIR_ACTIVATION_DECLARE(name, title)                                                       \
  WEIR_PUBLIC weir_status weir_module_##name(weir_module **out);
WEIR_PLAIN_ACTIVATIONS(WEIR_ACTIVATION_DECLARE)
#undef WEIR_ACTIVATION_DECLARE

/* approximate "none" or "tanh". Errors: "approximate argument must be either none or tanh." */
WEIR_PUBLIC weir_status weir_module_gelu(weir_module **out, const char *approximate);
WEIR_PUBLIC weir_status weir_module_leaky_relu(weir_module **out, double negative_slope);
WEIR_PUBLIC weir_status weir_module_elu(weir_module **out, double alpha);
WEIR_PUBLIC weir_status weir_module_celu(weir_module **out, double alpha);
WEIR_PUBLIC weir_status weir_module_softshrink(weir_module **out, double lambd);
WEIR_PUBLIC weir_status weir_module_hardshrink(weir_module **out, double lambd);
WEIR_PUBLIC weir_status weir_module_softplus(weir_module **out, double beta, double threshold);
WEIR_PUBLIC weir_status weir_module_hardtanh(weir_module **out, double min_val, double max_val);
WEIR_PUBLIC weir_status weir_module_threshold(weir_module **out, double threshold, double value);
WEIR_PUBLIC weir_status weir_module_glu(weir_module **out, int dim);
/* weight (num_parameters), `init` each at first (torch's usual: 1, 0.25); options NULL: the default
 * dtype, the cpu. */
WEIR_PUBLIC weir_status weir_module_prelu(weir_module **out, int64_t num_parameters, double init,
                                          const weir_options *options);

/* ---- embedding -------------------------------------------------------------------------------- */

typedef struct weir_embedding_options {
  weir_options tensor; /* dtype and device of the weight */
  bool has_padding;    /* row padding_idx is 0 at first */
  int64_t padding_idx; /* negative ones count from the end */
} weir_embedding_options;

/* weight (num_embeddings, embedding_dim), normal at first; called with indices (int64 or int32).
 * Errors: EINVAL "Padding_idx must be within num_embeddings"; those of weir_embedding(). */
WEIR_PUBLIC weir_status weir_module_embedding(weir_module **out, int64_t num_embeddings,
                                              int64_t embedding_dim,
                                              const weir_embedding_options *options);

/* ---- containers -------------------------------------------------------------------------------- */

/* Modules named "0", "1", ... and modules by name, which the program calls itself. Both steal the
 * modules, also where they fail; more come by weir_module_append() and weir_module_add(). */
WEIR_PUBLIC weir_status weir_module_list(weir_module **out, weir_module *const *children,
                                         size_t count);
WEIR_PUBLIC weir_status weir_module_dict(weir_module **out);

#ifdef __cplusplus
}
#endif

#endif
