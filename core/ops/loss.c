/* loss.c: losses: made of other operations, so that they run wherever those do and have derivatives
 * where those have.
 *
 * Words. class dimension: the one that has a place for each class: 1, or 0 of a single result.
 * valid: a target that counts. */
#include <math.h>
#include <string.h>
#include "core/ops/ops.h"

/* *out (new) is what the reduction makes of all. */
static weir_status reduced(weir_tensor **out, const weir_tensor *all, weir_reduction reduction)
{
  CALC(c);
  if (reduction == WEIR_REDUCTION_SUM) return weir_sum(out, all);
  if (reduction == WEIR_REDUCTION_MEAN) return weir_mean(out, all);
  if (reduction != WEIR_REDUCTION_BATCH_MEAN || !all->dims) return calc_give(c, out, all);
  return calc_give(c, out, c_div_scalar(c, c_sum(c, all), weir_int(all->size[0])));
}

static weir_status check_reduction(weir_reduction r)
{
  if ((unsigned)r <= WEIR_REDUCTION_BATCH_MEAN) return WEIR_OK;
  return fail_invalid("%d is not a valid value for reduction", (int)r);
}

/* ---- classes --------------------------------------------------------------------------------- */

/* What is asked for, with the defaults in their places. */
typedef struct class_loss {
  const weir_tensor *a, *target, *weight; /* borrowed */
  int64_t ignored;
  weir_reduction reduction;
  double smoothing;
  int dim;         /* the class dimension */
  int64_t classes; /* its size */
} class_loss;

static class_loss class_loss_of(const weir_tensor *a, const weir_tensor *target,
                                const weir_class_options *o)
{
  static const weir_class_options none = {.reduction = WEIR_REDUCTION_MEAN};
  if (!o) o = &none;
  int dim = a->dims > 1;
  return (class_loss){.a = a,
                      .target = target,
                      .weight = o->weight,
                      .ignored = o->ignore ? o->ignore_index : -100,
                      .reduction = o->reduction,
                      .smoothing = o->label_smoothing,
                      .dim = dim,
                      .classes = a->dims ? a->size[dim] : 1};
}

static weir_status size_mismatch(const class_loss *c)
{
  text_buffer a, t;
  return fail_invalid("size mismatch (got input: %s , target: %s",
                      shape_format(&a, shape_of_tensor(c->a)),
                      shape_format(&t, shape_of_tensor(c->target)));
}

/* Results of more than one target: all after the class dimension is as in the targets. */
static weir_status check_places(const class_loss *c)
{
  const weir_tensor *a = c->a, *t = c->target;
  text_buffer expected, got;
  weir_shape s = {.count = a->dims - 1, .size = {a->size[0]}};
  size_t rest = (size_t)(a->dims - 2) * sizeof *a->size;
  if (t->dims == a->dims - 1 && !memcmp(t->size + 1, a->size + 2, rest)) return WEIR_OK;
  if (a->dims == 4 && t->dims != 3)
    return fail_invalid(
        "only batches of spatial targets supported (3D tensors) but got targets of dimension: %d",
        t->dims);
  if (a->dims == 4) return size_mismatch(c);
  memcpy(s.size + 1, a->size + 2, rest);
  return fail_invalid("Expected target size %s, got %s", shape_format(&expected, s),
                      shape_format(&got, shape_of_tensor(t)));
}

static weir_status check_targets(const class_loss *c)
{
  const weir_tensor *a = c->a, *t = c->target;
  if (!a->dims) return fail_invalid("Expected 1 or more dimensions (got %d)", a->dims);
  if (a->dims > 1 && (!t->dims || a->size[0] != t->size[0]))
    return fail_invalid("Expected input batch_size (%lld) to match target batch_size (%lld).",
                        (long long)a->size[0], (long long)(t->dims ? t->size[0] : 0));
  if (a->dims > 2) return check_places(c);
  if (t->dims > 1)
    return fail_invalid("0D or 1D target tensor expected, multi-target not supported");
  if (a->dims == 1 && t->dims == 1 && t->size[0] != 1)
    return fail_invalid("For 1D input, 1D target must have size 1, but got target size: %lld",
                        (long long)t->size[0]);
  return WEIR_OK;
}

static weir_status check_class_weight(const class_loss *c, const char *prefix)
{
  text_buffer text;
  const weir_tensor *w = c->weight;
  if (!w || (w->dims == 1 && w->size[0] == c->classes)) return WEIR_OK;
  if (!*prefix && c->a->dims > 2)
    return fail_invalid("weight tensor should be defined either for all or no classes");
  return fail_invalid("%sweight tensor should be defined either for all %lld classes or no classes "
                      "but got weight tensor of shape: %s",
                      prefix, (long long)c->classes, shape_format(&text, shape_of_tensor(w)));
}

static weir_status check_target_dtype(const class_loss *c)
{
  weir_dtype t = c->target->dtype;
  if (t == WEIR_INT64 || t == WEIR_UINT8) return WEIR_OK;
  return fail_invalid("expected target dtype to be Long or Byte, but got %s", dtype_title(t));
}

static weir_status check_class_dtypes(const class_loss *c)
{
  weir_dtype a = c->a->dtype;
  if (!dtype_is_floating(a))
    return not_implemented("nll_loss_out_frame", device_of_tensor(c->a), a);
  if (c->weight && c->weight->dtype != a)
    return fail_invalid("expected scalar type %s but found %s", dtype_title(a),
                        dtype_title(c->weight->dtype));
  return check_same_device(c->a, c->target);
}

/* On the cpu; elsewhere weir_gather() states what is wrong. */
static weir_status check_bounds(const class_loss *c, const weir_tensor *dense)
{
  const int64_t *t = (const int64_t *)(const void *)dense->data;
  if (device_of_tensor(dense).type != WEIR_DEVICE_CPU) return WEIR_OK;
  for (int64_t i = 0; i < dense->numel; i++)
    if (t[i] != c->ignored && (t[i] < 0 || t[i] >= c->classes))
      return fail_invalid("Target %lld is out of bounds.", (long long)t[i]);
  return WEIR_OK;
}

/* The targets, int64 and without a dimension of their own for one: which of them are valid, and
 * each as a place to look at. */
static weir_status valid_targets(weir_tensor **valid, weir_tensor **safe, const class_loss *c)
{
  CALC(k);
  weir_tensor *dense = c_contiguous(k, c_to_dtype(k, c->target, WEIR_INT64));
  c_do(k, check_bounds(c, dense));
  c_do(k, weir_ne_scalar(valid, dense, weir_int(c->ignored)));
  weir_tensor *zero = c_zeros_like(k, dense, NULL);
  return k->st ? k->st : weir_where(safe, *valid, dense, zero);
}

/* *out (new) is x where valid, 0 elsewhere. */
static weir_status where_valid(weir_tensor **out, const weir_tensor *valid, const weir_tensor *x)
{
  CALC(c);
  return calc_give(c, out, c_where(c, valid, x, c_zeros_like(c, x, NULL)));
}

/* a's element of each target's class. */
static weir_status picked_of(weir_tensor **out, const class_loss *c, const weir_tensor *safe)
{
  CALC(k);
  if (c->a->dims != 1) {
    const weir_tensor *places = c_unsqueeze(k, safe, 1);
    return calc_give(k, out, c_squeeze(k, c_gather(k, c->a, 1, places), 1));
  }
  const weir_tensor *picked = c_gather(k, c->a, 0, c_reshape(k, safe, weir_shape(1)));
  return calc_give(k, out, c_reshape(k, picked, weir_tensor_shape(c->target)));
}

/* The weight of each target that is valid, 0 of the others. */
static weir_status weights_of(weir_tensor **out, const class_loss *c, const weir_tensor *valid,
                              const weir_tensor *safe)
{
  CALC(k);
  if (!c->weight) return weir_to_dtype(out, valid, c->a->dtype);
  weir_tensor *each = c_gather(k, c->weight, 0, c_reshape(k, safe, weir_shape(safe->numel)));
  weir_tensor *shaped = c_call(k, weir_reshape, each, shape_of_tensor(safe));
  return k->st ? k->st : where_valid(out, valid, shaped);
}

/* *out (new): the sum of losses through the sum of weights. */
static weir_status weighted_mean(weir_tensor **out, const weir_tensor *losses,
                                 const weir_tensor *weights)
{
  CALC(c);
  weir_tensor *sum = c_sum(c, losses);
  return calc_give(c, out, c_div(c, sum, c_sum(c, weights)));
}

/* t times the weight of each class, where there are weights. */
static const weir_tensor *times_class_weights(calc *k, const class_loss *c, const weir_tensor *t)
{
  weir_shape s = {.count = c->a->dims - c->dim, .size = {c->classes, 1, 1, 1, 1, 1, 1, 1}};
  return c->weight ? c_mul(k, t, c_reshape(k, c->weight, s)) : t;
}

/* All has been checked. smooth: every class's loss in place of the target's. */
static weir_status losses_of_classes(weir_tensor **out, const class_loss *c, bool smooth)
{
  CALC(k);
  WEIR_TENSOR safe = NULL;
  const weir_tensor *valid = c_call(k, valid_targets, &safe, c);
  const weir_tensor *weights = c_call(k, weights_of, c, valid, safe);
  const weir_tensor *each = smooth ? c_sum_dim(k, times_class_weights(k, c, c->a), c->dim, false)
                                   : c_mul(k, c_call(k, picked_of, c, safe), weights);
  const weir_tensor *negative = c_neg(k, each);
  const weir_tensor *losses = c_call(k, where_valid, valid, negative);
  if (k->st) return k->st;
  return c->reduction == WEIR_REDUCTION_MEAN ? weighted_mean(out, losses, weights)
                                             : reduced(out, losses, c->reduction);
}

static weir_status check_nll(const class_loss *c)
{
  weir_status st = check_reduction(c->reduction);
  if (!st) st = check_targets(c);
  if (!st) st = check_target_dtype(c);
  if (!st) st = check_class_weight(c, "");
  return st ? st : check_class_dtypes(c);
}

weir_status weir_nll_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *target,
                          const weir_class_options *options)
{
  WEIR_OP(out, a, target);
  const weir_tensor *weight = options ? options->weight : NULL;
  WEIR_CASTS(LOSS, a, weight);
  class_loss c = class_loss_of(a, target, options);
  c.weight = weight;
  weir_status st = check_nll(&c);
  return st ? st : losses_of_classes(out, &c, false);
}

/* ---- cross_entropy --------------------------------------------------------------------------- */

static weir_status check_probabilities(const class_loss *c, const weir_class_options *o)
{
  if (!dtype_is_floating(c->target->dtype))
    return fail_invalid("Expected floating point type for target with class probabilities, got %s",
                        dtype_title(c->target->dtype));
  if (o && o->ignore && o->ignore_index >= 0)
    return fail_invalid("ignore_index is not supported for floating point target");
  return check_class_weight(c, "cross_entropy: ");
}

/* target, smoothed and weighted, times the logarithms `a`. */
static weir_status probable_losses(weir_tensor **out, const class_loss *c, const weir_tensor *a)
{
  CALC(k);
  const weir_tensor *t = c->target;
  double share = c->smoothing;
  if (share > 0) t = c_add_s(k, c_mul_s(k, t, 1 - share), share / (double)c->classes);
  return calc_give(k, out, c_neg(k, c_mul(k, times_class_weights(k, c, a), t)));
}

static weir_status entropy_of_probabilities(weir_tensor **out, const class_loss *c)
{
  CALC(k);
  weir_tensor *logs = c_log_softmax(k, c->a, c->dim);
  weir_tensor *losses = c_call(k, probable_losses, c, logs);
  if (!k->st && c->reduction == WEIR_REDUCTION_NONE)
    return weir_sum_dim(out, losses, c->a->dims ? c->dim : 0, false);
  weir_tensor *sum = c_sum(k, losses);
  if (c->reduction == WEIR_REDUCTION_MEAN)
    c_do(k, weir_div_scalar_(sum, weir_float((double)c->a->numel / (double)c->classes)));
  return calc_give(k, out, sum);
}

/* What every class would lose has the share `smoothing`. */
static weir_status smoothed_entropy(weir_tensor **out, const class_loss *c)
{
  CALC(k);
  weir_tensor *losses = c_call(k, losses_of_classes, c, false);
  weir_tensor *all = c_call(k, losses_of_classes, c, true);
  weir_tensor *part = c_mul_s(k, all, c->smoothing / (double)c->classes);
  return calc_give(k, out, c_add(k, part, c_mul_s(k, losses, 1 - c->smoothing)));
}

weir_status weir_cross_entropy(weir_tensor **out, const weir_tensor *a, const weir_tensor *target,
                               const weir_class_options *options)
{
  WEIR_OP(out, a, target);
  CALC(k);
  const weir_tensor *weight = options ? options->weight : NULL;
  WEIR_CASTS(LOSS, a, target, weight);
  class_loss c = class_loss_of(a, target, options);
  c.weight = weight;
  bool same =
      a->dims == target->dims && !memcmp(a->size, target->size, (size_t)a->dims * sizeof *a->size);
  k->st = check_reduction(c.reduction);
  if (!k->st && !(c.smoothing >= 0 && c.smoothing <= 1))
    k->st = fail_invalid("label_smoothing must be between 0.0 and 1.0. Got: %g", c.smoothing);
  if (!k->st && same) {
    k->st = check_probabilities(&c, options);
    return k->st ? k->st : entropy_of_probabilities(out, &c);
  }
  weir_tensor *logs = c_call(k, weir_log_softmax, a, c.dim);
  if (k->st) return k->st;
  c.a = logs;
  k->st = check_nll(&c);
  if (k->st) return k->st;
  return c.smoothing > 0 ? smoothed_entropy(out, &c) : losses_of_classes(out, &c, false);
}

/* ---- differences ----------------------------------------------------------------------------- */

/* a - b, of floating point. */
static weir_status difference(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                              const char *kernel)
{
  categories c = {0};
  weir_dtype d = WEIR_DTYPE_NONE;
  weir_status st = check_same_device(a, b);
  if (!st) st = categories_tensor(&c, a);
  if (!st) st = categories_tensor(&c, b);
  if (!st) st = categories_result(&d, &c);
  weir_shape shape = shape_of_tensor(a);
  if (!st) st = shape_broadcast(&shape, b->size, b->dims);
  if (!st && !dtype_is_floating(d)) st = not_implemented(kernel, device_of_tensor(a), d);
  return st ? st : weir_sub(out, a, b);
}

weir_status weir_mse_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                          weir_reduction reduction)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  CALC(c);
  c->st = check_reduction(reduction);
  weir_tensor *off = c_call(c, difference, a, b, "mse_%s");
  weir_tensor *square = c_mul(c, off, off);
  return c->st ? c->st : reduced(out, square, reduction);
}

weir_status weir_l1_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                         weir_reduction reduction)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  CALC(c);
  c->st = check_reduction(reduction);
  weir_tensor *size = c_abs(c, c_sub(c, a, b));
  return c->st ? c->st : reduced(out, size, reduction);
}

/* size^2 * curve where size is within the bound (at: where it is the bound, too), size * slope -
 * shift beyond. */
static weir_status bent(weir_tensor **out, const weir_tensor *size, double bound, bool at,
                        double curve, double slope, double shift)
{
  CALC(c);
  weir_tensor *within = at ? c_le_s(c, size, bound) : c_lt_s(c, size, bound);
  weir_tensor *square = c_mul(c, size, size);
  weir_tensor *low = c_mul_s(c, square, curve);
  weir_tensor *high = c_sub_s(c, c_mul_scalar(c, size, weir_float(slope)), shift);
  return c->st ? c->st : weir_where(out, within, low, high);
}

weir_status weir_smooth_l1_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                weir_reduction reduction, double beta)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  CALC(c);
  if (beta == 0) return weir_l1_loss(out, a, b, reduction);
  if (beta < 0) return fail_invalid("smooth_l1_loss does not support negative values for beta.");
  c->st = check_reduction(reduction);
  weir_tensor *size = c_abs(c, c_call(c, difference, a, b, "smooth_l1_%s"));
  weir_tensor *losses = c_call(c, bent, size, beta, false, .5 / beta, 1, .5 * beta);
  return c->st ? c->st : reduced(out, losses, reduction);
}

weir_status weir_huber_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                            weir_reduction reduction, double delta)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  CALC(c);
  if (!(delta > 0))
    return fail_invalid("huber_loss does not support non-positive values for delta.");
  c->st = check_reduction(reduction);
  weir_tensor *size = c_abs(c, c_call(c, difference, a, b, "huber_%s"));
  weir_tensor *losses = c_call(c, bent, size, delta, true, .5, delta, .5 * delta * delta);
  return c->st ? c->st : reduced(out, losses, reduction);
}

/* ---- probabilities --------------------------------------------------------------------------- */

static bool same_sizes(const weir_tensor *a, const weir_tensor *b)
{
  return a->dims == b->dims && !memcmp(a->size, b->size, (size_t)a->dims * sizeof *a->size);
}

/* On the cpu, where asking costs no wait. */
static weir_status check_unit(const weir_tensor *a, const char *name)
{
  WEIR_TENSOR least = NULL, most = NULL;
  weir_scalar low, high;
  if (device_of_tensor(a).type != WEIR_DEVICE_CPU || !a->numel) return WEIR_OK;
  weir_status st = weir_aminmax(&least, &most, a);
  if (!st) st = weir_item(&low, least);
  if (!st) st = weir_item(&high, most);
  if (!st && !(low.f >= 0 && high.f <= 1))
    st = fail_invalid("all elements of %s should be between 0 and 1", name);
  return st;
}

static weir_status check_binary(const weir_tensor *a, const weir_tensor *target,
                                const weir_tensor *weight)
{
  const weir_tensor *other[2] = {target, weight};
  text_buffer x, y;
  if (!same_sizes(a, target))
    return fail_invalid("Using a target size (weir.Size(%s)) that is different to the input size "
                        "(weir.Size(%s)) is deprecated. Please ensure they have the same size.",
                        shape_format(&x, shape_of_tensor(target)),
                        shape_format(&y, shape_of_tensor(a)));
  for (int i = 0; i < 2; i++)
    if (other[i] && other[i]->dtype != a->dtype)
      return fail_invalid("Found dtype %s but expected %s", dtype_title(other[i]->dtype),
                          dtype_title(a->dtype));
  if (!dtype_is_floating(a->dtype))
    return not_implemented("binary_cross_entropy", device_of_tensor(a), a->dtype);
  weir_status st = check_unit(a, "input");
  return st ? st : check_unit(target, "target");
}

/* Losses times weight, which may be NULL, reduced. */
static weir_status weighted_reduced(weir_tensor **out, const weir_tensor *losses,
                                    const weir_tensor *weight, weir_reduction reduction)
{
  CALC(c);
  if (!weight) return reduced(out, losses, reduction);
  weir_tensor *weighted = c_mul(c, losses, weight);
  return c->st ? c->st : reduced(out, weighted, reduction);
}

/* *out (new) is max(ln x, -100); less: of 1 - x. */
static weir_status bounded_log(weir_tensor **out, const weir_tensor *x, bool less)
{
  CALC(c);
  WEIR_TENSOR negative = NULL;
  weir_scalar least = weir_float(-100);
  c->st = less ? weir_neg(&negative, x) : WEIR_OK;
  weir_tensor *logs = less ? c_log1p(c, negative) : c_log(c, x);
  return c->st ? c->st : weir_clamp(out, logs, &least, NULL);
}

weir_status weir_binary_cross_entropy(weir_tensor **out, const weir_tensor *a,
                                      const weir_tensor *target, const weir_tensor *weight,
                                      weir_reduction reduction)
{
  WEIR_OP(out, a, target);
  if (__builtin_expect(thread_autocast.on, 0) && !op_before_ && autocast_is_on(a) &&
      device_of_tensor(a).type == WEIR_DEVICE_CUDA)
    return fail_unsupported(
        "weir.nn.functional.binary_cross_entropy and weir.nn.BCELoss are unsafe to autocast.");
  WEIR_CASTS(BCE, a, target, weight);
  CALC(c);
  c->st = check_reduction(reduction);
  c_do(c, check_binary(a, target, weight));
  weir_tensor *yes = c_call(c, bounded_log, a, false);
  weir_tensor *no = c_call(c, bounded_log, a, true);
  weir_tensor *first = c_mul(c, c_sub_scalar(c, target, weir_int(1)), no);
  weir_tensor *losses = c_sub(c, first, c_mul(c, target, yes));
  return c->st ? c->st : weighted_reduced(out, losses, weight, reduction);
}

/* *out (new) is ln sigmoid(x) = min(x, 0) - ln(1 + exp(-|x|)). */
static weir_status log_of_sigmoid(weir_tensor **out, const weir_tensor *x)
{
  CALC(c);
  weir_scalar zero = weir_int(0);
  weir_tensor *low = c_call(c, weir_clamp, x, NULL, &zero);
  weir_tensor *logs = c_log1p(c, c_exp(c, c_neg(c, c_abs(c, x))));
  return c->st ? c->st : weir_sub(out, low, logs);
}

/* target's part: ln sigmoid, times 1 + (pos_weight - 1) target. */
static weir_status positive_part(weir_tensor **out, const weir_tensor *a, const weir_tensor *target,
                                 const weir_tensor *pos_weight)
{
  CALC(c);
  if (!pos_weight) return log_of_sigmoid(out, a);
  weir_tensor *product = c_mul(c, c_sub_scalar(c, pos_weight, weir_int(1)), target);
  weir_tensor *factor = c_add_scalar(c, product, weir_int(1));
  return calc_give(c, out, c_mul(c, factor, c_call(c, log_of_sigmoid, a)));
}

/* Of operands in the order of the function's; under autocast. */
static __attribute__((cold)) weir_status
logits_cast(weir_tensor **out, const weir_tensor **operands, weir_reduction reduction)
{
  autocast_held held __attribute__((cleanup(autocast_end))) = {0};
  const weir_tensor *const *t = operands;
  weir_status st = autocast_list(&held, AUTOCAST_LOSS, &t, 4);
  return st ? st : weir_binary_cross_entropy_with_logits(out, t[0], t[1], t[2], t[3], reduction);
}

weir_status weir_binary_cross_entropy_with_logits(weir_tensor **out, const weir_tensor *a,
                                                  const weir_tensor *target,
                                                  const weir_tensor *weight,
                                                  const weir_tensor *pos_weight,
                                                  weir_reduction reduction)
{
  WEIR_OP(out, a, target);
  if (__builtin_expect(thread_autocast.on, 0) && !op_before_)
    return logits_cast(out, (const weir_tensor *[]){a, target, weight, pos_weight}, reduction);
  CALC(c);
  text_buffer x, y;
  if (!same_sizes(a, target))
    return fail_invalid(
        "Target size (weir.Size(%s)) must be the same as input size (weir.Size(%s))",
        shape_format(&x, shape_of_tensor(target)), shape_format(&y, shape_of_tensor(a)));
  if (!dtype_is_floating(a->dtype))
    return not_implemented("log_sigmoid_%s", device_of_tensor(a), a->dtype);
  c->st = check_reduction(reduction);
  weir_tensor *negative = c_neg(c, target);
  c_do(c, weir_add_scalar_(negative, weir_int(1)));
  weir_tensor *first = c_mul(c, negative, a);
  weir_tensor *losses = c_sub(c, first, c_call(c, positive_part, a, target, pos_weight));
  return c->st ? c->st : weighted_reduced(out, losses, weight, reduction);
}

weir_status weir_kl_div(weir_tensor **out, const weir_tensor *a, const weir_tensor *target,
                        weir_reduction reduction, bool log_target)
{
  WEIR_OP(out, a, target);
  WEIR_CASTS(LOSS, a, target);
  WEIR_TENSOR own = NULL, cross = NULL, losses = NULL;
  weir_status st = check_reduction(reduction);
  if (!st && (!dtype_is_floating(a->dtype) || !dtype_is_floating(target->dtype)))
    st = fail_invalid("kl_div: Integral inputs not supported.");
  if (!st && log_target) {
    st = weir_exp(&own, target);
    if (!st) st = weir_sub(&cross, target, a);
    if (!st) st = weir_mul(&losses, own, cross);
  } else if (!st) {
    st = weir_xlogy(&own, target, target);
    if (!st) st = weir_mul(&cross, target, a);
    if (!st) st = weir_sub(&losses, own, cross);
  }
  return st ? st : reduced(out, losses, reduction);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* *out (new) is max(0, x). */
static weir_status clamp_positive(weir_tensor **out, const weir_tensor *x)
{
  weir_scalar zero = weir_int(0);
  return weir_clamp(out, x, &zero, NULL);
}

/* *out (new) is x where target is `value`, 0 elsewhere. */
static weir_status where_target(weir_tensor **out, const weir_tensor *target, int value,
                                const weir_tensor *x)
{
  CALC(c);
  weir_tensor *is = c_eq_scalar(c, target, weir_int(value));
  return calc_give(c, out, c_where(c, is, x, c_zeros_like(c, x, NULL)));
}

static weir_status check_cosine_target(const weir_tensor *a, const weir_tensor *b,
                                       const weir_tensor *target)
{
  text_buffer x, y;
  if (target->dims > 1)
    return fail_invalid("0D or 1D target tensor expected, multi-target not supported");
  if (target->dims ? a->dims == 2 && b->dims == 2 : a->dims == 1 && b->dims == 1) return WEIR_OK;
  return fail_invalid(
      "%dD target tensor expects %dD input tensors, but found inputs with sizes %s and %s.",
      target->dims, target->dims + 1, shape_format(&x, shape_of_tensor(a)),
      shape_format(&y, shape_of_tensor(b)));
}

/* Products of rows of a and b, summed, and `more`. */
static weir_status row_products(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                double more)
{
  CALC(c);
  weir_tensor *sum = c_sum_dim(c, c_mul(c, a, b), -1, false);
  return c->st ? c->st : weir_add_scalar(out, sum, weir_float(more));
}

/* torch's own: not cosine_similarity(), but squares with 1e-12 more. */
static weir_status row_cosines(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  CALC(c);
  weir_tensor *product = c_call(c, row_products, a, b, 0);
  weir_tensor *squares_a = c_call(c, row_products, a, a, 1e-12);
  weir_tensor *lengths = c_sqrt(c, c_mul(c, squares_a, c_call(c, row_products, b, b, 1e-12)));
  return c->st ? c->st : weir_div(out, product, lengths);
}

weir_status weir_cosine_embedding_loss(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *b, const weir_tensor *target,
                                       double margin, weir_reduction reduction)
{
  WEIR_OP(out, a, b, target);
  WEIR_CASTS(LOSS, a, b, target);
  CALC(c);
  c->st = check_reduction(reduction);
  c_do(c, check_cosine_target(a, b, target));
  weir_tensor *cosine = c_call(c, row_cosines, a, b);
  weir_tensor *negative = c_neg(c, cosine);
  c_do(c, weir_add_scalar_(negative, weir_int(1)));
  weir_tensor *above = c_sub_s(c, cosine, margin);
  weir_tensor *beyond = c_call(c, clamp_positive, above);
  weir_tensor *first = c_call(c, where_target, target, 1, negative);
  weir_tensor *losses = c_add(c, first, c_call(c, where_target, target, -1, beyond));
  return c->st ? c->st : reduced(out, losses, reduction);
}

weir_status weir_margin_ranking_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                     const weir_tensor *target, double margin,
                                     weir_reduction reduction)
{
  WEIR_OP(out, a, b, target);
  WEIR_CASTS(LOSS, a, b, target);
  CALC(c);
  text_buffer x, y, z;
  if (a->dims != b->dims || a->dims != target->dims)
    return fail_invalid(
        "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
        "weir.Size(%s), input2: weir.Size(%s), target: weir.Size(%s) ",
        shape_format(&x, shape_of_tensor(a)), shape_format(&y, shape_of_tensor(b)),
        shape_format(&z, shape_of_tensor(target)));
  c->st = check_reduction(reduction);
  weir_tensor *off = c_sub(c, a, b);
  weir_tensor *sum = c_add_s(c, c_mul(c, c_neg(c, target), off), margin);
  weir_tensor *losses = c_call(c, clamp_positive, sum);
  return c->st ? c->st : reduced(out, losses, reduction);
}

weir_status weir_hinge_embedding_loss(weir_tensor **out, const weir_tensor *a,
                                      const weir_tensor *target, double margin,
                                      weir_reduction reduction)
{
  WEIR_OP(out, a, target);
  WEIR_CASTS(LOSS, a, target);
  CALC(c);
  c->st = check_reduction(reduction);
  weir_tensor *rest = c_call(c, weir_scalar_sub, weir_float(margin), a);
  weir_tensor *below = c_call(c, clamp_positive, rest);
  weir_tensor *zero = c_zeros_like(c, a, NULL);
  weir_tensor *not_one = c_ne_scalar(c, target, weir_int(1));
  weir_tensor *not_minus = c_ne_scalar(c, target, weir_int(-1));
  weir_tensor *first = c_where(c, not_one, below, zero);
  weir_tensor *losses = c_add(c, first, c_where(c, not_minus, a, zero));
  return c->st ? c->st : reduced(out, losses, reduction);
}

weir_status weir_soft_margin_loss(weir_tensor **out, const weir_tensor *a,
                                  const weir_tensor *target, weir_reduction reduction)
{
  WEIR_OP(out, a, target);
  WEIR_CASTS(LOSS, a, target);
  CALC(c);
  c->st = check_reduction(reduction);
  weir_tensor *losses = c_log1p(c, c_exp(c, c_mul(c, c_neg(c, target), a)));
  return c->st ? c->st : reduced(out, losses, reduction);
}

weir_status weir_triplet_margin_loss(weir_tensor **out, const weir_tensor *a,
                                     const weir_tensor *positive_one,
                                     const weir_tensor *negative_one, double margin, double p,
                                     weir_reduction reduction)
{
  WEIR_OP(out, a, positive_one, negative_one);
  WEIR_CASTS(LOSS, a, positive_one, negative_one);
  CALC(c);
  c->st = check_reduction(reduction);
  weir_tensor *near = c_call(c, weir_pairwise_distance, a, positive_one, p, 1e-6, false);
  weir_tensor *far = c_call(c, weir_pairwise_distance, a, negative_one, p, 1e-6, false);
  weir_tensor *sum = c_add_s(c, c_sub(c, near, far), margin);
  weir_tensor *losses = c_call(c, clamp_positive, sum);
  return c->st ? c->st : reduced(out, losses, reduction);
}
