/* loss.c: losses as layers: a row each, of the function (losses.h) and what it keeps of torch's
 * arguments. Weights are buffers, slots WEIGHT and POS_WEIGHT, so that they move with the
 * module. */
#include "core/nn/plain.h"
#include "core/nn/text.h"

enum { WEIGHT, POS_WEIGHT };

/* ---- without weights ------------------------------------------------------------------------- */

PLAIN_OF(2, l1_loss, "L1Loss", NULL, (weir_module * *out, weir_reduction reduction),
         DATA(.reduction = reduction), weir_l1_loss(out, in[0], in[1], d->reduction))
PLAIN_OF(2, mse_loss, "MSELoss", NULL, (weir_module * *out, weir_reduction reduction),
         DATA(.reduction = reduction), weir_mse_loss(out, in[0], in[1], d->reduction))
PLAIN_OF(2, soft_margin_loss, "SoftMarginLoss", NULL,
         (weir_module * *out, weir_reduction reduction), DATA(.reduction = reduction),
         weir_soft_margin_loss(out, in[0], in[1], d->reduction))
PLAIN_OF(2, kl_div_loss, "KLDivLoss", NULL,
         (weir_module * *out, weir_reduction reduction, bool log_target),
         DATA(.reduction = reduction, .flag = log_target),
         weir_kl_div(out, in[0], in[1], d->reduction, d->flag))

/* One number, before or after the reduction. */
#define BY_NUMBER(function, name, title, argument)                                                 \
  PLAIN_OF(2, name, title, NULL, (weir_module * *out, weir_reduction reduction, double argument),  \
           DATA(.reduction = reduction, .number = {argument}),                                     \
           weir_##function(out, in[0], in[1], d->reduction, d->number[0]))
BY_NUMBER(smooth_l1_loss, smooth_l1_loss, "SmoothL1Loss", beta)
BY_NUMBER(huber_loss, huber_loss, "HuberLoss", delta)

#define BY_MARGIN(inputs, name, title, ...)                                                        \
  PLAIN_OF(inputs, name, title, NULL,                                                              \
           (weir_module * *out, double margin, weir_reduction reduction),                          \
           DATA(.reduction = reduction, .number = {margin}),                                       \
           weir_##name(out, __VA_ARGS__, d->number[0], d->reduction))
BY_MARGIN(2, hinge_embedding_loss, "HingeEmbeddingLoss", in[0], in[1])
BY_MARGIN(3, margin_ranking_loss, "MarginRankingLoss", in[0], in[1], in[2])
BY_MARGIN(3, cosine_embedding_loss, "CosineEmbeddingLoss", in[0], in[1], in[2])

PLAIN_FORWARD_OF(3, triplet_margin_loss,
                 weir_triplet_margin_loss(out, in[0], in[1], in[2], d->number[0], d->number[1],
                                          d->reduction))
PLAIN_CLASS("TripletMarginLoss", triplet_margin_loss, NULL)

weir_status weir_module_triplet_margin_loss(weir_module **out, double margin, double p,
                                            weir_reduction reduction)
{
  WEIR_REQUIRE_OUT(out);
  layer_text t;
  plain_data d = {.reduction = reduction, .number = {margin, p}};
  if (margin <= 0)
    return fail_invalid("TripletMarginLoss: expected margin to be greater than 0, got %s instead",
                        float_text(&t, margin));
  return plain_layer(out, &triplet_margin_loss_class, &d);
}

/* ---- with weights ---------------------------------------------------------------------------- */

static weir_status add_weight(weir_module *m, const char *name, const weir_tensor *weight)
{
  return weir_module_add_buffer(m, name, weir_tensor_retain((weir_tensor *)weight), true);
}

/* pos_weight NULL: without that slot's tensor. */
static weir_status weighted_loss(weir_module **out, const weir_module_class *kind,
                                 const plain_data *d, const weir_tensor *weight,
                                 const weir_tensor *pos_weight)
{
  WEIR_MODULE m = NULL;
  weir_status st = plain_layer(&m, kind, d);
  if (!st) st = add_weight(m, "weight", weight);
  if (!st) st = add_weight(m, "pos_weight", pos_weight);
  if (!st) *out = weir_module_retain(m);
  return st;
}

/* The options of a call: those of the module, whose weight may have moved. */
static const weir_class_options *classes_of(weir_class_options *out, const weir_module *m)
{
  *out = ((const plain_data *)m->data)->classes;
  out->weight = m->slot[WEIGHT].t;
  return out;
}

#define OF_CLASSES(name, title, function)                                                          \
  PLAIN_FORWARD_OF(2, name,                                                                        \
                   weir_##function(out, in[0], in[1], classes_of(&(weir_class_options){0}, m)))    \
  PLAIN_CLASS(title, name, NULL)                                                                   \
  weir_status weir_module_##name(weir_module **out, const weir_class_options *options)             \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out);                                                                         \
    plain_data d = {.classes = options ? *options : (weir_class_options){0}};                      \
    return weighted_loss(out, &name##_class, &d, d.classes.weight, NULL);                          \
  }
OF_CLASSES(nll_loss, "NLLLoss", nll_loss)
OF_CLASSES(cross_entropy_loss, "CrossEntropyLoss", cross_entropy)

PLAIN_FORWARD_OF(2, bce_loss,
                 weir_binary_cross_entropy(out, in[0], in[1], m->slot[WEIGHT].t, d->reduction))
PLAIN_CLASS("BCELoss", bce_loss, NULL)

weir_status weir_module_bce_loss(weir_module **out, const weir_tensor *weight,
                                 weir_reduction reduction)
{
  WEIR_REQUIRE_OUT(out);
  plain_data d = {.reduction = reduction};
  return weighted_loss(out, &bce_loss_class, &d, weight, NULL);
}

PLAIN_FORWARD_OF(2, bce_with_logits_loss,
                 weir_binary_cross_entropy_with_logits(out, in[0], in[1], m->slot[WEIGHT].t,
                                                       m->slot[POS_WEIGHT].t, d->reduction))
PLAIN_CLASS("BCEWithLogitsLoss", bce_with_logits_loss, NULL)

weir_status weir_module_bce_with_logits_loss(weir_module **out, const weir_tensor *weight,
                                             const weir_tensor *pos_weight,
                                             weir_reduction reduction)
{
  WEIR_REQUIRE_OUT(out);
  plain_data d = {.reduction = reduction};
  return weighted_loss(out, &bce_with_logits_loss_class, &d, weight, pos_weight);
}
