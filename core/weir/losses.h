/* losses.h: how far results are off what they should be. Included by weir.h.
 *
 * Names, arguments, shapes, dtypes and errors are those of torch.nn.functional. What ops.h states
 * of all operations holds here, too. A reduction states what becomes of the losses of single
 * elements. */
#ifndef WEIR_LOSSES_H
#define WEIR_LOSSES_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/module.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_reduction {
  WEIR_REDUCTION_MEAN,
  WEIR_REDUCTION_SUM,
  WEIR_REDUCTION_NONE,      /* as they are */
  WEIR_REDUCTION_BATCH_MEAN /* their sum through the size of dimension 0; of kl_div */
} weir_reduction;

/* ---- classes --------------------------------------------------------------------------------- */

typedef struct weir_class_options {
  const weir_tensor *weight; /* (classes), borrowed; NULL: 1 each */
  bool ignore;               /* targets that are ignore_index do not count; else those of -100 */
  int64_t ignore_index;
  weir_reduction reduction; /* MEAN: through the weights of the targets that count */
  double label_smoothing;   /* 0 to 1; of cross_entropy */
} weir_class_options;

/* a (n, classes, ...) or (classes), logarithms of probabilities; target (n, ...) or none: classes,
 * int64 or uint8. options NULL: the defaults. Errors: "Target 5 is out of bounds."; "Expected input
 * batch_size (2) to match target batch_size (3)."; "expected target dtype to be Long or Byte, but
 * got Int". */
WEIR_PUBLIC weir_status weir_nll_loss(weir_tensor **out, const weir_tensor *a,
                                      const weir_tensor *target, const weir_class_options *options);
/* The same of log_softmax(a); or target of a's shape, floating point: probabilities of the classes.
 * Errors: also "label_smoothing must be between 0.0 and 1.0. Got: 2". */
WEIR_PUBLIC weir_status weir_cross_entropy(weir_tensor **out, const weir_tensor *a,
                                           const weir_tensor *target,
                                           const weir_class_options *options);

/* ---- differences ------------------------------------------------------------------------------
 * a and b broadcast. */

/* (a - b)^2; |a - b|. */
WEIR_PUBLIC weir_status weir_mse_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                      weir_reduction reduction);
WEIR_PUBLIC weir_status weir_l1_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                     weir_reduction reduction);
/* (a - b)^2 / (2 beta) below beta, |a - b| - beta / 2 above; usual: 1. Errors: "smooth_l1_loss does
 * not support negative values for beta." */
WEIR_PUBLIC weir_status weir_smooth_l1_loss(weir_tensor **out, const weir_tensor *a,
                                            const weir_tensor *b, weir_reduction reduction,
                                            double beta);
/* (a - b)^2 / 2 up to delta, delta (|a - b| - delta / 2) above; usual: 1. Errors: "huber_loss does
 * not support non-positive values for delta." */
WEIR_PUBLIC weir_status weir_huber_loss(weir_tensor **out, const weir_tensor *a,
                                        const weir_tensor *b, weir_reduction reduction,
                                        double delta);

/* ---- probabilities --------------------------------------------------------------------------- */

/* -weight (target ln a + (1 - target) ln(1 - a)), logarithms at least -100; weight (broadcasts) may
 * be NULL. Errors: "all elements of input should be between 0 and 1" (on the cpu). */
WEIR_PUBLIC weir_status weir_binary_cross_entropy(weir_tensor **out, const weir_tensor *a,
                                                  const weir_tensor *target,
                                                  const weir_tensor *weight,
                                                  weir_reduction reduction);
/* The same of sigmoid(a), of any a; pos_weight (broadcasts; NULL: 1) multiplies target's part. */
WEIR_PUBLIC weir_status weir_binary_cross_entropy_with_logits(
    weir_tensor **out, const weir_tensor *a, const weir_tensor *target, const weir_tensor *weight,
    const weir_tensor *pos_weight, weir_reduction reduction);
/* target (ln target - a), a being logarithms; log_target: target's are, too. Errors: "kl_div:
 * Integral inputs not supported." */
WEIR_PUBLIC weir_status weir_kl_div(weir_tensor **out, const weir_tensor *a,
                                    const weir_tensor *target, weir_reduction reduction,
                                    bool log_target);

/* ---- pairs ----------------------------------------------------------------------------------- */

/* 1 - cosine where target is 1, max(0, cosine - margin) where it is -1; a, b (n, length) or
 * (length), target (n) or none; usual margin: 0. */
WEIR_PUBLIC weir_status weir_cosine_embedding_loss(weir_tensor **out, const weir_tensor *a,
                                                   const weir_tensor *b, const weir_tensor *target,
                                                   double margin, weir_reduction reduction);
/* max(0, -target (a - b) + margin); usual margin: 0. */
WEIR_PUBLIC weir_status weir_margin_ranking_loss(weir_tensor **out, const weir_tensor *a,
                                                 const weir_tensor *b, const weir_tensor *target,
                                                 double margin, weir_reduction reduction);
/* a where target is 1, max(0, margin - a) where it is -1; usual margin: 1. */
WEIR_PUBLIC weir_status weir_hinge_embedding_loss(weir_tensor **out, const weir_tensor *a,
                                                  const weir_tensor *target, double margin,
                                                  weir_reduction reduction);
/* ln(1 + exp(-target a)). */
WEIR_PUBLIC weir_status weir_soft_margin_loss(weir_tensor **out, const weir_tensor *a,
                                              const weir_tensor *target, weir_reduction reduction);
/* max(0, distance(a, positive) - distance(a, negative) + margin), p-norms along the last dimension;
 * usual: 1, 2. */
WEIR_PUBLIC weir_status weir_triplet_margin_loss(weir_tensor **out, const weir_tensor *a,
                                                 const weir_tensor *positive,
                                                 const weir_tensor *negative, double margin,
                                                 double p, weir_reduction reduction);

#ifdef __cplusplus
}
#endif

#endif
