/* layers.h: the layers of torch.nn in addition to those of module.h: normalisation, dropout,
 * pooling, and what has no parameters. Included by weir.h.
 *
 * What module.h states of all modules holds here, too. Names of parameters and buffers, their
 * order, first values and what weir_module_to_string() prints are torch's. Options that are NULL
 * are torch's usual ones, as is each that is 0. */
#ifndef WEIR_LAYERS_H
#define WEIR_LAYERS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/indexing.h"
#include "core/weir/losses.h"
#include "core/weir/module.h"
#include "core/weir/nn.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- normalisation --------------------------------------------------------------------------- */

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

/* ---- convolution ----------------------------------------------------------------------------- */

typedef struct weir_conv_layer_options {
  weir_options tensor;    /* dtype and device of the parameters */
  bool no_bias;           /* without bias */
  weir_conv_options conv; /* stride, padding, dilation, groups, output_padding */
} weir_conv_layer_options;

/* weight (out, in / groups, kernel...), of transposed ones (in, out / groups, kernel...); bias
 * (out); first values as module.h states. kernel: a size an axis. Errors: EINVAL "in_channels must
 * be divisible by groups"; those of weir_conv1d() and its kin. Conv2d is in module.h. */
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

/* ---- without parameters ---------------------------------------------------------------------- */

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
WEIR_PUBLIC weir_status weir_module_channel_shuffle(weir_module **out, int64_t groups);
/* The softmax of the negative; the softmax over the channels of an image. Errors: "Softmax2d:
 * expected input to be 3D or 4D, got 2D instead". */
WEIR_PUBLIC weir_status weir_module_softmin(weir_module **out, int dim);
WEIR_PUBLIC weir_status weir_module_softmax2d(weir_module **out);
/* Of two tensors (weir_module_call_many()); usual: 1, 1e-8; 2, 1e-6. Errors: EINVAL
 * "PairwiseDistance.forward() takes 2 tensors but 1 were passed". */
WEIR_PUBLIC weir_status weir_module_cosine_similarity(weir_module **out, int dim, double eps);
WEIR_PUBLIC weir_status weir_module_pairwise_distance(weir_module **out, double p, double eps,
                                                      bool keepdim);

/* ---- other sizes ------------------------------------------------------------------------------
 * padding (copied): left, right, then of the last dimension but one top, bottom, then front, back:
 * weir_module_reflection_pad2d(&m, (const int64_t[]){1, 1, 2, 2}). A CircularPad wants an image
 * with as many axes as its name states ("expected 3D or 4D input (got 2D input)"). */
#define WEIR_PAD_LAYERS(X)                                                                         \
  X(reflection_pad1d, "ReflectionPad1d", 1, REFLECT)                                               \
  X(reflection_pad2d, "ReflectionPad2d", 2, REFLECT)                                               \
  X(reflection_pad3d, "ReflectionPad3d", 3, REFLECT)                                               \
  X(replication_pad1d, "ReplicationPad1d", 1, REPLICATE)                                           \
  X(replication_pad2d, "ReplicationPad2d", 2, REPLICATE)                                           \
  X(replication_pad3d, "ReplicationPad3d", 3, REPLICATE)                                           \
  X(circular_pad1d, "CircularPad1d", 1, CIRCULAR)                                                  \
  X(circular_pad2d, "CircularPad2d", 2, CIRCULAR)                                                  \
  X(circular_pad3d, "CircularPad3d", 3, CIRCULAR)                                                  \
  X(zero_pad1d, "ZeroPad1d", 1, CONSTANT)                                                          \
  X(zero_pad2d, "ZeroPad2d", 2, CONSTANT)                                                          \
  X(zero_pad3d, "ZeroPad3d", 3, CONSTANT)
#define WEIR_PAD_DECLARE(name, title, axes, mode)                                                  \
  WEIR_PUBLIC weir_status weir_module_##name(weir_module **out, const int64_t *padding);
WEIR_PAD_LAYERS(WEIR_PAD_DECLARE)
#undef WEIR_PAD_DECLARE
WEIR_PUBLIC weir_status weir_module_constant_pad1d(weir_module **out, const int64_t *padding,
                                                   weir_scalar value);
WEIR_PUBLIC weir_status weir_module_constant_pad2d(weir_module **out, const int64_t *padding,
                                                   weir_scalar value);
WEIR_PUBLIC weir_status weir_module_constant_pad3d(weir_module **out, const int64_t *padding,
                                                   weir_scalar value);

/* options are copied; a size or a scale alone in its array is that of all axes. Errors of a call:
 * those of weir_interpolate(). */
WEIR_PUBLIC weir_status weir_module_upsample(weir_module **out,
                                             const weir_interpolate_options *options);
/* Upsample with mode nearest; with bilinear and align_corners: of options size and scale count. */
WEIR_PUBLIC weir_status weir_module_upsampling_nearest2d(weir_module **out,
                                                         const weir_interpolate_options *options);
WEIR_PUBLIC weir_status weir_module_upsampling_bilinear2d(weir_module **out,
                                                          const weir_interpolate_options *options);

/* ---- losses -----------------------------------------------------------------------------------
 * Those of losses.h, by torch.nn's names; called with weir_module_call_many(): what a model makes
 * and what it should be (CosineEmbeddingLoss, MarginRankingLoss: two and a target;
 * TripletMarginLoss: anchor, positive, negative). */
WEIR_PUBLIC weir_status weir_module_l1_loss(weir_module **out, weir_reduction reduction);
WEIR_PUBLIC weir_status weir_module_mse_loss(weir_module **out, weir_reduction reduction);
WEIR_PUBLIC weir_status weir_module_smooth_l1_loss(weir_module **out, weir_reduction reduction,
                                                   double beta);
WEIR_PUBLIC weir_status weir_module_huber_loss(weir_module **out, weir_reduction reduction,
                                               double delta);
WEIR_PUBLIC weir_status weir_module_kl_div_loss(weir_module **out, weir_reduction reduction,
                                                bool log_target);
WEIR_PUBLIC weir_status weir_module_soft_margin_loss(weir_module **out, weir_reduction reduction);
WEIR_PUBLIC weir_status weir_module_hinge_embedding_loss(weir_module **out, double margin,
                                                         weir_reduction reduction);
WEIR_PUBLIC weir_status weir_module_margin_ranking_loss(weir_module **out, double margin,
                                                        weir_reduction reduction);
WEIR_PUBLIC weir_status weir_module_cosine_embedding_loss(weir_module **out, double margin,
                                                          weir_reduction reduction);
/* Errors: EINVAL "TripletMarginLoss: expected margin to be greater than 0, got -1.0 instead". */
WEIR_PUBLIC weir_status weir_module_triplet_margin_loss(weir_module **out, double margin, double p,
                                                        weir_reduction reduction);
/* Weights (borrowed for the call; the module counts them) are buffers `weight`, `pos_weight`, which
 * move with it and are saved; NULL: none. options are copied; NULL: the defaults. */
WEIR_PUBLIC weir_status weir_module_nll_loss(weir_module **out, const weir_class_options *options);
WEIR_PUBLIC weir_status weir_module_cross_entropy_loss(weir_module **out,
                                                       const weir_class_options *options);
WEIR_PUBLIC weir_status weir_module_bce_loss(weir_module **out, const weir_tensor *weight,
                                             weir_reduction reduction);
WEIR_PUBLIC weir_status weir_module_bce_with_logits_loss(weir_module **out,
                                                         const weir_tensor *weight,
                                                         const weir_tensor *pos_weight,
                                                         weir_reduction reduction);

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

/* ---- embedding ------------------------------------------------------------------------------- */

typedef struct weir_embedding_options {
  weir_options tensor; /* dtype and device of the weight */
  bool has_padding;    /* row padding_idx is 0 at first, and has no gradient */
  int64_t padding_idx; /* negative ones count from the end */
  double max_norm;     /* these as weir_embedding_with()'s */
  double norm_type;
  bool scale_grad_by_freq;
} weir_embedding_options;

/* weight (num_embeddings, embedding_dim), normal at first; called with indices (int64 or int32).
 * Errors: EINVAL "Padding_idx must be within num_embeddings"; those of weir_embedding(). */
WEIR_PUBLIC weir_status weir_module_embedding(weir_module **out, int64_t num_embeddings,
                                              int64_t embedding_dim,
                                              const weir_embedding_options *options);

typedef struct weir_embedding_bag_layer_options {
  weir_options tensor;            /* dtype and device of the weight */
  weir_embedding_bag_options bag; /* mode, include_last_offset, padding */
} weir_embedding_bag_layer_options;

/* weight (num_embeddings, embedding_dim), normal at first; called with indices, after them
 * offsets (or NULL), after these per_sample_weights: weir_embedding_bag(). options NULL: the mean.
 * Errors: EINVAL "padding_idx must be within num_embeddings". */
WEIR_PUBLIC weir_status weir_module_embedding_bag(weir_module **out, int64_t num_embeddings,
                                                  int64_t embedding_dim,
                                                  const weir_embedding_bag_layer_options *options);

/* ---- containers ------------------------------------------------------------------------------ */

/* Modules named "0", "1", ... and modules by name, which the program calls itself. Both steal the
 * modules, also where they fail; more come by weir_module_append() and weir_module_add(). */
WEIR_PUBLIC weir_status weir_module_list(weir_module **out, weir_module *const *children,
                                         size_t count);
WEIR_PUBLIC weir_status weir_module_dict(weir_module **out);

#ifdef __cplusplus
}
#endif

#endif
