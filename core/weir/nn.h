/* nn.h: what neural networks are made of: pooling, normalisation, dropout, convolutions of other
 * dimensions, interpolation, distances, losses. Included by weir.h.
 *
 * Names, arguments, shapes, dtypes and errors are those of torch.nn.functional. What ops.h states
 * of all operations holds here, too: a result is new, on the device of the operands; a function
 * that failed leaves *out NULL. Images are (n, channels, ...) or, without a batch, (channels,
 * ...). */
#ifndef WEIR_NN_H
#define WEIR_NN_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/ops.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pooling ----------------------------------------------------------------------------------
 * One axis (1d: n, channels, length), two or three, of which options name the first, the second,
 * the third. Errors: "stride should not be zero"; "pad should be at most half of effective kernel
 * size, but got pad=2, kernel_size=2 and dilation=1"; "Given input size: (3x8x8). Calculated output
 * size: (3x0x0). Output size is too small". */
typedef struct weir_pool_options {
  int64_t kernel[3];        /* elements */
  int64_t stride[3];        /* elements; 0: kernel */
  int64_t padding[3];       /* elements on each side, at most half of kernel */
  int64_t dilation[3];      /* elements; 0: 1; of max_pool */
  bool ceil_mode;           /* a last window may reach beyond the padding */
  bool exclude_pad;         /* count_include_pad=False; of avg_pool */
  int64_t divisor_override; /* what a sum is divided by; 0: its window's places; of avg_pool */
} weir_pool_options;

/* The average of each window. */
WEIR_PUBLIC weir_status weir_avg_pool1d(weir_tensor **out, const weir_tensor *a,
                                        const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_avg_pool2d(weir_tensor **out, const weir_tensor *a,
                                        const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_avg_pool3d(weir_tensor **out, const weir_tensor *a,
                                        const weir_pool_options *options);

/* The largest of each window: max_pool2d() stands in ops.h. */
WEIR_PUBLIC weir_status weir_max_pool1d(weir_tensor **out, const weir_tensor *a,
                                        const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_max_pool3d(weir_tensor **out, const weir_tensor *a,
                                        const weir_pool_options *options);

/* The same with its place in the input's last dimensions, counted row by row: int64. */
WEIR_PUBLIC weir_status weir_max_pool1d_with_indices(weir_tensor **out, weir_tensor **indices,
                                                     const weir_tensor *a,
                                                     const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_max_pool2d_with_indices(weir_tensor **out, weir_tensor **indices,
                                                     const weir_tensor *a,
                                                     const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_max_pool3d_with_indices(weir_tensor **out, weir_tensor **indices,
                                                     const weir_tensor *a,
                                                     const weir_pool_options *options);

/* Windows of such sizes that the output has size[0], size[1], size[2] places (as many as axes;
 * borrowed); -1: as many as the input. */
WEIR_PUBLIC weir_status weir_adaptive_avg_pool1d(weir_tensor **out, const weir_tensor *a,
                                                 const int64_t *size);
WEIR_PUBLIC weir_status weir_adaptive_avg_pool2d(weir_tensor **out, const weir_tensor *a,
                                                 const int64_t *size);
WEIR_PUBLIC weir_status weir_adaptive_avg_pool3d(weir_tensor **out, const weir_tensor *a,
                                                 const int64_t *size);
WEIR_PUBLIC weir_status weir_adaptive_max_pool1d(weir_tensor **out, const weir_tensor *a,
                                                 const int64_t *size);
WEIR_PUBLIC weir_status weir_adaptive_max_pool2d(weir_tensor **out, const weir_tensor *a,
                                                 const int64_t *size);
WEIR_PUBLIC weir_status weir_adaptive_max_pool3d(weir_tensor **out, const weir_tensor *a,
                                                 const int64_t *size);

/* ---- normalisation ----------------------------------------------------------------------------
 * Calculated in float32 where the dtype is shorter; parameters are of the input's dtype, or float32
 * next to a shorter one ("mixed dtype (CPU): expect parameter to have scalar type of Float").
 * weight and bias may be NULL: 1 and 0. */

/* Over the last dimensions, which are `shape`, as weight and bias are: (x - mean) / sqrt(var + eps)
 * weight + bias. Errors: "Given normalized_shape=[4], expected input with shape [*, 4], but got
 * input of size[2, 3]". */
WEIR_PUBLIC weir_status weir_layer_norm(weir_tensor **out, const weir_tensor *a, weir_shape shape,
                                        const weir_tensor *weight, const weir_tensor *bias,
                                        double eps);
/* x / sqrt(mean of squares + eps) weight; eps below 0: the epsilon of the dtype that is calculated
 * in. */
WEIR_PUBLIC weir_status weir_rms_norm(weir_tensor **out, const weir_tensor *a, weir_shape shape,
                                      const weir_tensor *weight, double eps);

typedef struct weir_batch_norm_options {
  bool training;   /* by the batch's own mean and variance, which the running ones follow */
  double momentum; /* how far they do: running = (1 - momentum) running + momentum of the batch */
  double eps;
} weir_batch_norm_options;

/* Over all but dimension 1, the channels: a (n, channels, ...). Running statistics (channels; NULL:
 * none) are changed where it trains, the variance's with Bessel's correction. Errors: "Expected
 * more than 1 value per channel when training, got input size weir.Size([1, 3])"; "running_mean
 * should contain 3 elements not 2"; "running_mean must be defined in evaluation mode". */
WEIR_PUBLIC weir_status weir_batch_norm(weir_tensor **out, const weir_tensor *a,
                                        weir_tensor *running_mean, weir_tensor *running_var,
                                        const weir_tensor *weight, const weir_tensor *bias,
                                        const weir_batch_norm_options *options);
/* The same for each image by itself; running statistics follow the average. training: torch's
 * use_input_stats. */
WEIR_PUBLIC weir_status weir_instance_norm(weir_tensor **out, const weir_tensor *a,
                                           weir_tensor *running_mean, weir_tensor *running_var,
                                           const weir_tensor *weight, const weir_tensor *bias,
                                           const weir_batch_norm_options *options);
/* Over groups of channels of an image: a (n, channels, ...), weight and bias (channels). Errors:
 * "Expected number of channels in input to be divisible by num_groups, but got input of shape [2,
 * 3, 4] and num_groups=2". */
WEIR_PUBLIC weir_status weir_group_norm(weir_tensor **out, const weir_tensor *a, int64_t groups,
                                        const weir_tensor *weight, const weir_tensor *bias,
                                        double eps);

/* ---- dropout ----------------------------------------------------------------------------------
 * Elements are 0 with probability p and the others larger by 1 / (1 - p); g (borrowed) NULL: the
 * default generator of the device. Not training, or p 0: a itself once more. Which are 0 is the
 * same on every device, and not as in torch. Errors: "dropout probability has to be between 0 and
 * 1, but got 1.5". */
WEIR_PUBLIC weir_status weir_dropout(weir_tensor **out, const weir_tensor *a, double p,
                                     bool training, weir_generator *g);
/* Whole channels: torch's dropout1d, dropout2d, dropout3d of (n, channels, ...). */
WEIR_PUBLIC weir_status weir_feature_dropout(weir_tensor **out, const weir_tensor *a, double p,
                                             bool training, weir_generator *g);

/* ---- distances ------------------------------------------------------------------------------- */

/* Vectors along dim through their p-norm, at least eps. torch's usual ones: 2, 1, 1e-12. */
WEIR_PUBLIC weir_status weir_normalize(weir_tensor **out, const weir_tensor *a, double p, int dim,
                                       double eps);
/* The cosine of the angle between vectors along dim, lengths at least eps: usual 1, 1e-8. */
WEIR_PUBLIC weir_status weir_cosine_similarity(weir_tensor **out, const weir_tensor *a,
                                               const weir_tensor *b, int dim, double eps);
/* The p-norm of a - b + eps along the last dimension: usual 2, 1e-6. */
WEIR_PUBLIC weir_status weir_pairwise_distance(weir_tensor **out, const weir_tensor *a,
                                               const weir_tensor *b, double p, double eps,
                                               bool keepdim);

/* ---- convolutions -----------------------------------------------------------------------------
 * conv2d() stands in ops.h. Numbers are of the first, the second, the third axis; zeros are the
 * defaults. */
typedef struct weir_conv_options {
  int64_t stride[3];         /* elements; 0: 1; of transposed ones at most 64 */
  int64_t padding[3];        /* elements on each side */
  int64_t dilation[3];       /* elements; 0: 1 */
  int64_t output_padding[3]; /* elements more on one side of the result; of transposed ones */
  int64_t groups;            /* 0: 1 */
  bool same; /* padding='same': as many places as the input; not of transposed ones */
} weir_conv_options;

/* Cross-correlation: a (n, channels, ...) or (channels, ...), weight (out, channels / groups, ...),
 * bias (out) or NULL; options NULL: the defaults. Errors: those of weir_conv2d(); "padding='same'
 * is not supported for strided convolutions". */
WEIR_PUBLIC weir_status weir_conv1d(weir_tensor **out, const weir_tensor *a,
                                    const weir_tensor *weight, const weir_tensor *bias,
                                    const weir_conv_options *options);
WEIR_PUBLIC weir_status weir_conv3d(weir_tensor **out, const weir_tensor *a,
                                    const weir_tensor *weight, const weir_tensor *bias,
                                    const weir_conv_options *options);
/* What a convolution gives back: weight (channels, out / groups, ...). Errors: "output padding must
 * be smaller than either stride or dilation, but got ..."; "Given transposed=1, weight of size [2,
 * 4, 3], expected input[1, 3, 8] to have 2 channels, but got 3 channels instead"; "... Output size
 * is too small", also of float32, of which torch's cpu sometimes makes an empty result. */
WEIR_PUBLIC weir_status weir_conv_transpose1d(weir_tensor **out, const weir_tensor *a,
                                              const weir_tensor *weight, const weir_tensor *bias,
                                              const weir_conv_options *options);
WEIR_PUBLIC weir_status weir_conv_transpose2d(weir_tensor **out, const weir_tensor *a,
                                              const weir_tensor *weight, const weir_tensor *bias,
                                              const weir_conv_options *options);
WEIR_PUBLIC weir_status weir_conv_transpose3d(weir_tensor **out, const weir_tensor *a,
                                              const weir_tensor *weight, const weir_tensor *bias,
                                              const weir_conv_options *options);

/* ---- interpolation --------------------------------------------------------------------------- */

typedef enum weir_interpolate_mode {
  WEIR_INTERPOLATE_NEAREST,
  WEIR_INTERPOLATE_NEAREST_EXACT,
  WEIR_INTERPOLATE_LINEAR,    /* (n, channels, length) */
  WEIR_INTERPOLATE_BILINEAR,  /* (n, channels, h, w) */
  WEIR_INTERPOLATE_BICUBIC,   /* (n, channels, h, w) */
  WEIR_INTERPOLATE_TRILINEAR, /* (n, channels, d, h, w) */
  WEIR_INTERPOLATE_AREA       /* averages */
} weir_interpolate_mode;

/* One of size and scale, for as many axes as the input has, which has a batch. */
typedef struct weir_interpolate_options {
  int64_t size[3]; /* elements of the result */
  double scale[3]; /* elements of the result to one of the input */
  weir_interpolate_mode mode;
  bool align_corners;          /* outermost elements stay outermost */
  bool recompute_scale_factor; /* the scale is that of the sizes */
} weir_interpolate_options;

/* a in another size; floating point, of the nearest modes also uint8. Errors: "Got 3D input, but
 * bilinear mode needs 4D input"; "only one of size or scale_factor should be defined". */
WEIR_PUBLIC weir_status weir_interpolate(weir_tensor **out, const weir_tensor *a,
                                         const weir_interpolate_options *options);

/* ---- pixels -----------------------------------------------------------------------------------
 * (..., channels f f, h, w) as (..., channels, h f, w f), and back. Errors: "pixel_shuffle expects
 * its input's 'channel' dimension to be divisible by the square of upscale_factor, but
 * input.size(-3)=3 is not divisible by 4". */
WEIR_PUBLIC weir_status weir_pixel_shuffle(weir_tensor **out, const weir_tensor *a, int64_t factor);
WEIR_PUBLIC weir_status weir_pixel_unshuffle(weir_tensor **out, const weir_tensor *a,
                                             int64_t factor);
/* Channels (dimension 1 of at least three) dealt out to `groups` in turn. Errors: "Number of
 * channels must be divisible by groups. Got 3 channels and 2 groups." */
WEIR_PUBLIC weir_status weir_channel_shuffle(weir_tensor **out, const weir_tensor *a,
                                             int64_t groups);

/* ---- sliding blocks ---------------------------------------------------------------------------
 * torch.nn.functional.unfold() and fold(). */
typedef struct weir_unfold_options {
  int64_t kernel[2];   /* rows, columns, as all pairs */
  int64_t dilation[2]; /* elements; 0: 1 */
  int64_t padding[2];  /* elements of 0 on each side */
  int64_t stride[2];   /* elements; 0: 1 */
} weir_unfold_options;

/* Blocks of ([n,] channels, h, w) as columns: [n,] channels kernel[0] kernel[1], blocks. Floating
 * point, complex64 and bool, as torch. Errors: "Given input with spatial size (2, 2),
 * kernel_size=(3, 3), ..., calculated shape of the array of sliding blocks as (0, 0), but its
 * components must be at least one."; "kernel size should be greater than zero, but got
 * kernel_height: 0 kernel_width: 1". */
WEIR_PUBLIC weir_status weir_unfold_blocks(weir_tensor **out, const weir_tensor *a,
                                           const weir_unfold_options *options);
/* The sums of those columns where their blocks were: [n,] channels, output_size[0], output_size[1].
 * Errors: "Expected size of input's dimension 1 to be divisible by the product of kernel_size,
 * ..."; "... expected size of input's dimension 2 to match the calculated number of sliding blocks
 * ...". */
WEIR_PUBLIC weir_status weir_fold(weir_tensor **out, const weir_tensor *a,
                                  const int64_t *output_size, const weir_unfold_options *options);

/* ---- pools of powers --------------------------------------------------------------------------
 * The norm_type-th root of the sum of each window's powers; of the options kernel, stride and
 * ceil_mode. Errors: those of avg_pool. */
WEIR_PUBLIC weir_status weir_lp_pool1d(weir_tensor **out, const weir_tensor *a, double norm_type,
                                       const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_lp_pool2d(weir_tensor **out, const weir_tensor *a, double norm_type,
                                       const weir_pool_options *options);
WEIR_PUBLIC weir_status weir_lp_pool3d(weir_tensor **out, const weir_tensor *a, double norm_type,
                                       const weir_pool_options *options);

#ifdef __cplusplus
}
#endif

#endif
