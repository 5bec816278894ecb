/* loss.c: losses: made of other operations, so that they run wherever those do and have derivatives
 * where those have.
 *
 * Words. class dimension: the one that has a place for each class: 1, or 0 of a single result. valid:
 * a target that counts. */
#include <math.h>
#include <string.h>
#include "core/base/require.h"
#include "core/stream/async_error.h"
#include "core/ops/ops.h"
#include "core/tensor/autocast.h"

/* *out (new) is what the reduction makes of all. */
static weir_status reduced(weir_tensor **out, const weir_tensor *all, weir_reduction reduction)
{
  WEIR_TENSOR sum = NULL;
  if (reduction == WEIR_REDUCTION_SUM) return weir_sum(out, all);
  if (reduction == WEIR_REDUCTION_MEAN) return weir_mean(out, all);
  if (reduction == WEIR_REDUCTION_BATCH_MEAN && all->dims) {
    weir_status st = weir_sum(&sum, all);
    return st ? st : weir_div_scalar(out, sum, weir_int(all->size[0]));
  }
  *out = weir_tensor_retain((weir_tensor *)all);
  return WEIR_OK;
}

static weir_status check_reduction(weir_reduction r)
{
  if ((unsigned)r <= WEIR_REDUCTION_BATCH_MEAN) return WEIR_OK;
  return weir_fail(WEIR_EINVAL, "%d is not a valid value for reduction", (int)r);
}

/* ---- classes ---------------------------------------------------------------------------------- */

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
  return weir_fail(WEIR_EINVAL, "size mismatch (got input: %s , target: %s",
                   shape_format(&a, weir_shape_of(c->a->dims, c->a->size)),
                   shape_format(&t, weir_shape_of(c->target->dims, c->target->size)));
}

/* Results of more than one target: all behind the class dimension is as in the targets. */
static weir_status check_places(const class_loss *c)
{
  const weir_tensor *a = c->a, *t = c->target;
  text_buffer expected, got;
  weir_shape s = {.count = a->dims - 1, .size = {a->size[0]}};
  size_t rest = (size_t)(a->dims - 2) * sizeof *a->size;
  if (t->dims == a->dims - 1 && !memcmp(t->size + 1, a->size + 2, rest)) return WEIR_OK;
  if (a->dims == 4 && t->dims != 3)
    return weir_fail(WEIR_EINVAL,
                     "only batches of spatial targets supported (3D tensors) but got targets of "
                     "dimension: %d",
                     t->dims);
  if (a->dims == 4) return size_mismatch(c);
  memcpy(s.size + 1, a->size + 2, rest);
  return weir_fail(WEIR_EINVAL, "Expected target size %s, got %s", shape_format(&expected, s),
                   shape_format(&got, weir_shape_of(t->dims, t->size)));
}

static weir_status check_targets(const class_loss *c)
{
  const weir_tensor *a = c->a, *t = c->target;
  if (!a->dims) return weir_fail(WEIR_EINVAL, "Expected 1 or more dimensions (got %d)", a->dims);
  if (a->dims > 1 && (!t->dims || a->size[0] != t->size[0]))
    return weir_fail(WEIR_EINVAL,
                     "Expected input batch_size (%lld) to match target batch_size (%lld).",
                     (long long)a->size[0], (long long)(t->dims ? t->size[0] : 0));
  if (a->dims > 2) return check_places(c);
  if (t->dims > 1)
    return weir_fail(WEIR_EINVAL, "0D or 1D target tensor expected, multi-target not supported");
  if (a->dims == 1 && t->dims == 1 && t->size[0] != 1)
    return weir_fail(WEIR_EINVAL,
                     "For 1D input, 1D target must have size 1, but got target size: %lld",
                     (long long)t->size[0]);
  return WEIR_OK;
}

static weir_status check_class_weight(const class_loss *c, const char *prefix)
{
  text_buffer text;
  const weir_tensor *w = c->weight;
  if (!w || (w->dims == 1 && w->size[0] == c->classes)) return WEIR_OK;
  if (!*prefix && c->a->dims > 2)
    return weir_fail(WEIR_EINVAL, "weight tensor should be defined either for all or no classes");
  return weir_fail(WEIR_EINVAL,
                   "%sweight tensor should be defined either for all %lld classes or no classes "
                   "but got weight tensor of shape: %s",
                   prefix, (long long)c->classes,
                   shape_format(&text, weir_shape_of(w->dims, w->size)));
}

static weir_status check_target_dtype(const class_loss *c)
{
  weir_dtype t = (weir_dtype)c->target->dtype;
  if (t == WEIR_INT64 || t == WEIR_UINT8) return WEIR_OK;
  return weir_fail(WEIR_EINVAL, "expected target dtype to be Long or Byte, but got %s",
                   dtype_title(t));
}

static weir_status check_class_dtypes(const class_loss *c)
{
  weir_dtype a = (weir_dtype)c->a->dtype;
  if (!dtype_is_floating(a))
    return not_implemented("nll_loss_out_frame", device_of_tensor(c->a), a);
  if (c->weight && c->weight->dtype != a)
    return weir_fail(WEIR_EINVAL, "expected scalar type %s but found %s", dtype_title(a),
                     dtype_title((weir_dtype)c->weight->dtype));
  return check_same_device(c->a, c->target);
}

/* On the cpu; elsewhere weir_gather() says what is wrong. */
static weir_status check_bounds(const class_loss *c, const weir_tensor *dense)
{
  const int64_t *t = (const int64_t *)(const void *)dense->data;
  if (device_of_tensor(dense).type != WEIR_DEVICE_CPU) return WEIR_OK;
  for (int64_t i = 0; i < dense->numel; i++)
    if (t[i] != c->ignored && (t[i] < 0 || t[i] >= c->classes))
      return weir_fail(WEIR_EINVAL, "Target %lld is out of bounds.", (long long)t[i]);
  return WEIR_OK;
}

/* The targets, int64 and without a dimension of their own for one: which of them are valid, and each
 * as a place to look at. */
static weir_status valid_targets(weir_tensor **valid, weir_tensor **safe, const class_loss *c)
{
  WEIR_TENSOR whole = NULL;
  WEIR_TENSOR dense = NULL;
  WEIR_TENSOR zero = NULL;
  weir_status st = weir_to_dtype(&whole, c->target, WEIR_INT64);
  if (!st) st = weir_contiguous(&dense, whole);
  if (!st) st = check_bounds(c, dense);
  if (!st) st = weir_ne_scalar(valid, dense, weir_int(c->ignored));
  if (!st) st = weir_zeros_like(&zero, dense, NULL);
  return st ? st : weir_where(safe, *valid, dense, zero);
}

/* *out (new) is x where valid, 0 elsewhere. */
static weir_status where_valid(weir_tensor **out, const weir_tensor *valid, const weir_tensor *x)
{
  WEIR_TENSOR zero = NULL;
  weir_status st = weir_zeros_like(&zero, x, NULL);
  return st ? st : weir_where(out, valid, x, zero);
}

/* Of each target a's element of its class. */
static weir_status picked_of(weir_tensor **out, const class_loss *c, const weir_tensor *safe)
{
  WEIR_TENSOR place = NULL;
  WEIR_TENSOR flat = NULL;
  WEIR_TENSOR picked = NULL;
  if (c->a->dims == 1) {
    weir_status one = weir_reshape(&flat, safe, weir_shape(1));
    if (!one) one = weir_gather(&picked, c->a, 0, flat);
    return one ? one : weir_reshape(out, picked, weir_shape_of(c->target->dims, c->target->size));
  }
  weir_status st = weir_unsqueeze(&place, safe, 1);
  if (!st) st = weir_gather(&picked, c->a, 1, place);
  return st ? st : weir_squeeze(out, picked, 1);
}

/* The weight of each target that is valid, 0 of the others. */
static weir_status weights_of(weir_tensor **out, const class_loss *c, const weir_tensor *valid,
                              const weir_tensor *safe)
{
  WEIR_TENSOR flat = NULL;
  WEIR_TENSOR each = NULL;
  WEIR_TENSOR shaped = NULL;
  if (!c->weight) return weir_to_dtype(out, valid, (weir_dtype)c->a->dtype);
  weir_status st = weir_reshape(&flat, safe, weir_shape(safe->numel));
  if (!st) st = weir_gather(&each, c->weight, 0, flat);
  if (!st) st = weir_reshape(&shaped, each, weir_shape_of(safe->dims, safe->size));
  return st ? st : where_valid(out, valid, shaped);
}

/* *out (new): the sum of losses through the sum of weights. */
static weir_status weighted_mean(weir_tensor **out, const weir_tensor *losses,
                                 const weir_tensor *weights)
{
  WEIR_TENSOR sum = NULL;
  WEIR_TENSOR all = NULL;
  weir_status st = weir_sum(&sum, losses);
  if (!st) st = weir_sum(&all, weights);
  return st ? st : weir_div(out, sum, all);
}

/* All has been checked. smooth: every class's loss in place of the target's. */
static weir_status losses_of_classes(weir_tensor **out, const class_loss *c, bool smooth)
{
  WEIR_TENSOR valid = NULL;
  WEIR_TENSOR safe = NULL;
  WEIR_TENSOR picked = NULL;
  WEIR_TENSOR weights = NULL;
  WEIR_TENSOR each = NULL;
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR losses = NULL;
  WEIR_TENSOR beside = NULL;
  WEIR_TENSOR weighted = NULL;
  weir_status st = valid_targets(&valid, &safe, c);
  if (!st) st = weights_of(&weights, c, valid, safe);
  if (!st && !smooth) st = picked_of(&picked, c, safe);
  if (!st && !smooth) st = weir_mul(&each, picked, weights);
  if (!st && smooth && c->weight) {
    weir_shape s = {.count = c->a->dims - c->dim, .size = {c->classes, 1, 1, 1, 1, 1, 1, 1}};
    st = weir_reshape(&beside, c->weight, s);
    if (!st) st = weir_mul(&weighted, c->a, beside);
  }
  if (!st && smooth) st = weir_sum_dim(&each, weighted ? weighted : c->a, c->dim, false);
  if (!st) st = weir_neg(&negative, each);
  if (!st) st = where_valid(&losses, valid, negative);
  if (st) return st;
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
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, target);
  const weir_tensor *weight = options ? options->weight : NULL;
  WEIR_CASTS(LOSS, a, weight);
  class_loss c = class_loss_of(a, target, options);
  c.weight = weight;
  weir_status st = check_nll(&c);
  return st ? st : losses_of_classes(out, &c, false);
}

/* ---- cross_entropy ---------------------------------------------------------------------------- */

static weir_status check_probabilities(const class_loss *c, const weir_class_options *o)
{
  if (!dtype_is_floating((weir_dtype)c->target->dtype))
    return weir_fail(WEIR_EINVAL,
                     "Expected floating point type for target with class probabilities, got %s",
                     dtype_title((weir_dtype)c->target->dtype));
  if (o && o->ignore && o->ignore_index >= 0)
    return weir_fail(WEIR_EINVAL, "ignore_index is not supported for floating point target");
  return check_class_weight(c, "cross_entropy: ");
}

/* target, smoothed and weighted, times the logarithms `a`. */
static weir_status probable_losses(weir_tensor **out, const class_loss *c, const weir_tensor *a)
{
  WEIR_TENSOR less = NULL;
  WEIR_TENSOR smooth = NULL;
  WEIR_TENSOR beside = NULL;
  WEIR_TENSOR weighted = NULL;
  WEIR_TENSOR product = NULL;
  const weir_tensor *t = c->target;
  weir_status st = WEIR_OK;
  if (c->smoothing > 0) {
    st = weir_mul_scalar(&less, t, weir_float(1 - c->smoothing));
    if (!st) st = weir_add_scalar(&smooth, less, weir_float(c->smoothing / (double)c->classes));
    t = smooth;
  }
  if (!st && c->weight) {
    weir_shape s = {.count = c->a->dims - c->dim, .size = {c->classes, 1, 1, 1, 1, 1, 1, 1}};
    st = weir_reshape(&beside, c->weight, s);
    if (!st) st = weir_mul(&weighted, a, beside);
  }
  if (!st) st = weir_mul(&product, weighted ? weighted : a, t);
  return st ? st : weir_neg(out, product);
}

static weir_status entropy_of_probabilities(weir_tensor **out, const class_loss *c)
{
  WEIR_TENSOR logs = NULL;
  WEIR_TENSOR losses = NULL;
  WEIR_TENSOR sum = NULL;
  weir_status st = weir_log_softmax(&logs, c->a, c->dim);
  if (!st) st = probable_losses(&losses, c, logs);
  if (!st && c->reduction == WEIR_REDUCTION_NONE)
    return weir_sum_dim(out, losses, c->a->dims ? c->dim : 0, false);
  if (!st) st = weir_sum(&sum, losses);
  if (!st && c->reduction == WEIR_REDUCTION_MEAN)
    st = weir_div_scalar_(sum, weir_float((double)c->a->numel / (double)c->classes));
  if (!st) *out = weir_tensor_retain(sum);
  return st;
}

/* What every class would lose has the share `smoothing`. */
static weir_status smoothed_entropy(weir_tensor **out, const class_loss *c)
{
  WEIR_TENSOR losses = NULL;
  WEIR_TENSOR all = NULL;
  WEIR_TENSOR part = NULL;
  WEIR_TENSOR rest = NULL;
  weir_status st = losses_of_classes(&losses, c, false);
  if (!st) st = losses_of_classes(&all, c, true);
  if (!st) st = weir_mul_scalar(&part, all, weir_float(c->smoothing / (double)c->classes));
  if (!st) st = weir_mul_scalar(&rest, losses, weir_float(1 - c->smoothing));
  return st ? st : weir_add(out, part, rest);
}

weir_status weir_cross_entropy(weir_tensor **out, const weir_tensor *a, const weir_tensor *target,
                               const weir_class_options *options)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, target);
  WEIR_TENSOR logs = NULL;
  const weir_tensor *weight = options ? options->weight : NULL;
  WEIR_CASTS(LOSS, a, target, weight);
  class_loss c = class_loss_of(a, target, options);
  c.weight = weight;
  bool same =
      a->dims == target->dims && !memcmp(a->size, target->size, (size_t)a->dims * sizeof *a->size);
  weir_status st = check_reduction(c.reduction);
  if (!st && !(c.smoothing >= 0 && c.smoothing <= 1))
    st =
        weir_fail(WEIR_EINVAL, "label_smoothing must be between 0.0 and 1.0. Got: %g", c.smoothing);
  if (!st && same) {
    st = check_probabilities(&c, options);
    return st ? st : entropy_of_probabilities(out, &c);
  }
  if (!st) st = weir_log_softmax(&logs, a, c.dim);
  if (st) return st;
  c.a = logs;
  st = check_nll(&c);
  if (st) return st;
  return c.smoothing > 0 ? smoothed_entropy(out, &c) : losses_of_classes(out, &c, false);
}

/* ---- differences ------------------------------------------------------------------------------ */

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
  weir_shape shape = weir_shape_of(a->dims, a->size);
  if (!st) st = shape_broadcast(&shape, b->size, b->dims);
  if (!st && !dtype_is_floating(d)) st = not_implemented(kernel, device_of_tensor(a), d);
  return st ? st : weir_sub(out, a, b);
}

weir_status weir_mse_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                          weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  WEIR_TENSOR off = NULL;
  WEIR_TENSOR square = NULL;
  weir_status st = check_reduction(reduction);
  if (!st) st = difference(&off, a, b, "mse_%s");
  if (!st) st = weir_mul(&square, off, off);
  return st ? st : reduced(out, square, reduction);
}

weir_status weir_l1_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                         weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  WEIR_TENSOR off = NULL;
  WEIR_TENSOR size = NULL;
  weir_status st = check_reduction(reduction);
  if (!st) st = weir_sub(&off, a, b);
  if (!st) st = weir_abs(&size, off);
  return st ? st : reduced(out, size, reduction);
}

/* size^2 * curve where size is within the bound (at: where it is the bound, too), size * slope -
 * shift beyond. */
static weir_status bent(weir_tensor **out, const weir_tensor *size, double bound, bool at,
                        double curve, double slope, double shift)
{
  WEIR_TENSOR within = NULL;
  WEIR_TENSOR square = NULL;
  WEIR_TENSOR low = NULL;
  WEIR_TENSOR line = NULL;
  WEIR_TENSOR high = NULL;
  weir_status st = at ? weir_le_scalar(&within, size, weir_float(bound))
                      : weir_lt_scalar(&within, size, weir_float(bound));
  if (!st) st = weir_mul(&square, size, size);
  if (!st) st = weir_mul_scalar(&low, square, weir_float(curve));
  if (!st) st = weir_mul_scalar(&line, size, weir_float(slope));
  if (!st) st = weir_sub_scalar(&high, line, weir_float(shift));
  return st ? st : weir_where(out, within, low, high);
}

weir_status weir_smooth_l1_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                weir_reduction reduction, double beta)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  WEIR_TENSOR off = NULL;
  WEIR_TENSOR size = NULL;
  WEIR_TENSOR losses = NULL;
  if (beta == 0) return weir_l1_loss(out, a, b, reduction);
  if (beta < 0)
    return weir_fail(WEIR_EINVAL, "smooth_l1_loss does not support negative values for beta.");
  weir_status st = check_reduction(reduction);
  if (!st) st = difference(&off, a, b, "smooth_l1_%s");
  if (!st) st = weir_abs(&size, off);
  if (!st) st = bent(&losses, size, beta, false, .5 / beta, 1, .5 * beta);
  return st ? st : reduced(out, losses, reduction);
}

weir_status weir_huber_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                            weir_reduction reduction, double delta)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  WEIR_CASTS(LOSS, a, b);
  WEIR_TENSOR off = NULL;
  WEIR_TENSOR size = NULL;
  WEIR_TENSOR losses = NULL;
  if (!(delta > 0))
    return weir_fail(WEIR_EINVAL, "huber_loss does not support non-positive values for delta.");
  weir_status st = check_reduction(reduction);
  if (!st) st = difference(&off, a, b, "huber_%s");
  if (!st) st = weir_abs(&size, off);
  if (!st) st = bent(&losses, size, delta, true, .5, delta, .5 * delta * delta);
  return st ? st : reduced(out, losses, reduction);
}

/* ---- probabilities ---------------------------------------------------------------------------- */

static bool same_sizes(const weir_tensor *a, const weir_tensor *b)
{
  return a->dims == b->dims && !memcmp(a->size, b->size, (size_t)a->dims * sizeof *a->size);
}

/* On the cpu, where asking costs no wait. */
static weir_status check_unit(const weir_tensor *a, const char *name)
{
  WEIR_TENSOR least = NULL;
  WEIR_TENSOR most = NULL;
  weir_scalar low, high;
  if (device_of_tensor(a).type != WEIR_DEVICE_CPU || !a->numel) return WEIR_OK;
  weir_status st = weir_aminmax(&least, &most, a);
  if (!st) st = weir_item(&low, least);
  if (!st) st = weir_item(&high, most);
  if (!st && !(low.f >= 0 && high.f <= 1))
    st = weir_fail(WEIR_EINVAL, "all elements of %s should be between 0 and 1", name);
  return st;
}

static weir_status check_binary(const weir_tensor *a, const weir_tensor *target,
                                const weir_tensor *weight)
{
  const weir_tensor *other[2] = {target, weight};
  text_buffer x, y;
  if (!same_sizes(a, target))
    return weir_fail(WEIR_EINVAL,
                     "Using a target size (weir.Size(%s)) that is different to the input size "
                     "(weir.Size(%s)) is deprecated. Please ensure they have the same size.",
                     shape_format(&x, weir_shape_of(target->dims, target->size)),
                     shape_format(&y, weir_shape_of(a->dims, a->size)));
  for (int i = 0; i < 2; i++)
    if (other[i] && other[i]->dtype != a->dtype)
      return weir_fail(WEIR_EINVAL, "Found dtype %s but expected %s",
                       dtype_title((weir_dtype)other[i]->dtype), dtype_title((weir_dtype)a->dtype));
  if (!dtype_is_floating((weir_dtype)a->dtype))
    return not_implemented("binary_cross_entropy", device_of_tensor(a), (weir_dtype)a->dtype);
  weir_status st = check_unit(a, "input");
  return st ? st : check_unit(target, "target");
}

/* Losses times weight, which may be NULL, reduced. */
static weir_status weighted_reduced(weir_tensor **out, const weir_tensor *losses,
                                    const weir_tensor *weight, weir_reduction reduction)
{
  WEIR_TENSOR weighted = NULL;
  if (!weight) return reduced(out, losses, reduction);
  weir_status st = weir_mul(&weighted, losses, weight);
  return st ? st : reduced(out, weighted, reduction);
}

/* *out (new) is max(ln x, -100); less: of 1 - x. */
static weir_status bounded_log(weir_tensor **out, const weir_tensor *x, bool less)
{
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR logs = NULL;
  weir_scalar least = weir_float(-100);
  weir_status st = less ? weir_neg(&negative, x) : WEIR_OK;
  if (!st) st = less ? weir_log1p(&logs, negative) : weir_log(&logs, x);
  return st ? st : weir_clamp(out, logs, &least, NULL);
}

weir_status weir_binary_cross_entropy(weir_tensor **out, const weir_tensor *a,
                                      const weir_tensor *target, const weir_tensor *weight,
                                      weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, target);
  if (__builtin_expect(thread_autocast.on, 0) && !op_before_ && autocast_is_on(a) &&
      device_of_tensor(a).type == WEIR_DEVICE_CUDA)
    return weir_fail(WEIR_ENOTSUP, "weir.nn.functional.binary_cross_entropy and weir.nn.BCELoss "
                                   "are unsafe to autocast.");
  WEIR_CASTS(BCE, a, target, weight);
  WEIR_TENSOR yes = NULL;
  WEIR_TENSOR no = NULL;
  WEIR_TENSOR off = NULL;
  WEIR_TENSOR first = NULL;
  WEIR_TENSOR second = NULL;
  WEIR_TENSOR losses = NULL;
  weir_status st = check_reduction(reduction);
  if (!st) st = check_binary(a, target, weight);
  if (!st) st = bounded_log(&yes, a, false);
  if (!st) st = bounded_log(&no, a, true);
  if (!st) st = weir_sub_scalar(&off, target, weir_int(1));
  if (!st) st = weir_mul(&first, off, no);
  if (!st) st = weir_mul(&second, target, yes);
  if (!st) st = weir_sub(&losses, first, second);
  return st ? st : weighted_reduced(out, losses, weight, reduction);
}

/* *out (new) is ln sigmoid(x) = min(x, 0) - ln(1 + exp(-|x|)). */
static weir_status log_of_sigmoid(weir_tensor **out, const weir_tensor *x)
{
  WEIR_TENSOR low = NULL;
  WEIR_TENSOR size = NULL;
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR power = NULL;
  WEIR_TENSOR logs = NULL;
  weir_scalar zero = weir_int(0);
  weir_status st = weir_clamp(&low, x, NULL, &zero);
  if (!st) st = weir_abs(&size, x);
  if (!st) st = weir_neg(&negative, size);
  if (!st) st = weir_exp(&power, negative);
  if (!st) st = weir_log1p(&logs, power);
  return st ? st : weir_sub(out, low, logs);
}

/* target's part: ln sigmoid, times 1 + (pos_weight - 1) target. */
static weir_status positive_part(weir_tensor **out, const weir_tensor *a, const weir_tensor *target,
                                 const weir_tensor *pos_weight)
{
  WEIR_TENSOR less = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR factor = NULL;
  WEIR_TENSOR logs = NULL;
  if (!pos_weight) return log_of_sigmoid(out, a);
  weir_status st = weir_sub_scalar(&less, pos_weight, weir_int(1));
  if (!st) st = weir_mul(&product, less, target);
  if (!st) st = weir_add_scalar(&factor, product, weir_int(1));
  if (!st) st = log_of_sigmoid(&logs, a);
  return st ? st : weir_mul(out, factor, logs);
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
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, target);
  if (__builtin_expect(thread_autocast.on, 0) && !op_before_)
    return logits_cast(out, (const weir_tensor *[]){a, target, weight, pos_weight}, reduction);
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR first = NULL;
  WEIR_TENSOR second = NULL;
  WEIR_TENSOR losses = NULL;
  text_buffer x, y;
  if (!same_sizes(a, target))
    return weir_fail(WEIR_EINVAL,
                     "Target size (weir.Size(%s)) must be the same as input size (weir.Size(%s))",
                     shape_format(&x, weir_shape_of(target->dims, target->size)),
                     shape_format(&y, weir_shape_of(a->dims, a->size)));
  if (!dtype_is_floating((weir_dtype)a->dtype))
    return not_implemented("log_sigmoid_%s", device_of_tensor(a), (weir_dtype)a->dtype);
  weir_status st = check_reduction(reduction);
  if (!st) st = weir_neg(&negative, target);
  if (!st) st = weir_add_scalar_(negative, weir_int(1));
  if (!st) st = weir_mul(&first, negative, a);
  if (!st) st = positive_part(&second, a, target, pos_weight);
  if (!st) st = weir_sub(&losses, first, second);
  return st ? st : weighted_reduced(out, losses, weight, reduction);
}

weir_status weir_kl_div(weir_tensor **out, const weir_tensor *a, const weir_tensor *target,
                        weir_reduction reduction, bool log_target)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, target);
  WEIR_CASTS(LOSS, a, target);
  WEIR_TENSOR own = NULL;
  WEIR_TENSOR cross = NULL;
  WEIR_TENSOR losses = NULL;
  weir_status st = check_reduction(reduction);
  if (!st &&
      (!dtype_is_floating((weir_dtype)a->dtype) || !dtype_is_floating((weir_dtype)target->dtype)))
    st = weir_fail(WEIR_EINVAL, "kl_div: Integral inputs not supported.");
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

/* ---- pairs ------------------------------------------------------------------------------------ */

/* *out (new) is max(0, x). */
static weir_status positive(weir_tensor **out, const weir_tensor *x)
{
  weir_scalar zero = weir_int(0);
  return weir_clamp(out, x, &zero, NULL);
}

/* *out (new) is x where target is `value`, 0 elsewhere. */
static weir_status where_target(weir_tensor **out, const weir_tensor *target, int value,
                                const weir_tensor *x)
{
  WEIR_TENSOR is = NULL;
  WEIR_TENSOR zero = NULL;
  weir_status st = weir_eq_scalar(&is, target, weir_int(value));
  if (!st) st = weir_zeros_like(&zero, x, NULL);
  return st ? st : weir_where(out, is, x, zero);
}

static weir_status check_cosine_target(const weir_tensor *a, const weir_tensor *b,
                                       const weir_tensor *target)
{
  text_buffer x, y;
  if (target->dims > 1)
    return weir_fail(WEIR_EINVAL, "0D or 1D target tensor expected, multi-target not supported");
  if (target->dims ? a->dims == 2 && b->dims == 2 : a->dims == 1 && b->dims == 1) return WEIR_OK;
  return weir_fail(WEIR_EINVAL,
                   "%dD target tensor expects %dD input tensors, but found inputs with sizes %s "
                   "and %s.",
                   target->dims, target->dims + 1,
                   shape_format(&x, weir_shape_of(a->dims, a->size)),
                   shape_format(&y, weir_shape_of(b->dims, b->size)));
}

/* Products of rows of a and b, summed, and `more`. */
static weir_status row_products(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                double more)
{
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR sum = NULL;
  weir_status st = weir_mul(&product, a, b);
  if (!st) st = weir_sum_dim(&sum, product, -1, false);
  return st ? st : weir_add_scalar(out, sum, weir_float(more));
}

/* torch's own: not cosine_similarity(), but squares with 1e-12 more. */
static weir_status row_cosines(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR squares_a = NULL;
  WEIR_TENSOR squares_b = NULL;
  WEIR_TENSOR both = NULL;
  WEIR_TENSOR lengths = NULL;
  weir_status st = row_products(&product, a, b, 0);
  if (!st) st = row_products(&squares_a, a, a, 1e-12);
  if (!st) st = row_products(&squares_b, b, b, 1e-12);
  if (!st) st = weir_mul(&both, squares_a, squares_b);
  if (!st) st = weir_sqrt(&lengths, both);
  return st ? st : weir_div(out, product, lengths);
}

weir_status weir_cosine_embedding_loss(weir_tensor **out, const weir_tensor *a,
                                       const weir_tensor *b, const weir_tensor *target,
                                       double margin, weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b, target);
  WEIR_CASTS(LOSS, a, b, target);
  WEIR_TENSOR cosine = NULL;
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR above = NULL;
  WEIR_TENSOR beyond = NULL;
  WEIR_TENSOR first = NULL;
  WEIR_TENSOR second = NULL;
  WEIR_TENSOR losses = NULL;
  weir_status st = check_reduction(reduction);
  if (!st) st = check_cosine_target(a, b, target);
  if (!st) st = row_cosines(&cosine, a, b);
  if (!st) st = weir_neg(&negative, cosine);
  if (!st) st = weir_add_scalar_(negative, weir_int(1));
  if (!st) st = weir_sub_scalar(&above, cosine, weir_float(margin));
  if (!st) st = positive(&beyond, above);
  if (!st) st = where_target(&first, target, 1, negative);
  if (!st) st = where_target(&second, target, -1, beyond);
  if (!st) st = weir_add(&losses, first, second);
  return st ? st : reduced(out, losses, reduction);
}

weir_status weir_margin_ranking_loss(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                     const weir_tensor *target, double margin,
                                     weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b, target);
  WEIR_CASTS(LOSS, a, b, target);
  WEIR_TENSOR off = NULL;
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR sum = NULL;
  WEIR_TENSOR losses = NULL;
  text_buffer x, y, z;
  if (a->dims != b->dims || a->dims != target->dims)
    return weir_fail(WEIR_EINVAL,
                     "margin_ranking_loss : All input tensors should have same dimension but got "
                     "sizes: input1: weir.Size(%s), input2: weir.Size(%s), target: weir.Size(%s) ",
                     shape_format(&x, weir_shape_of(a->dims, a->size)),
                     shape_format(&y, weir_shape_of(b->dims, b->size)),
                     shape_format(&z, weir_shape_of(target->dims, target->size)));
  weir_status st = check_reduction(reduction);
  if (!st) st = weir_sub(&off, a, b);
  if (!st) st = weir_neg(&negative, target);
  if (!st) st = weir_mul(&product, negative, off);
  if (!st) st = weir_add_scalar(&sum, product, weir_float(margin));
  if (!st) st = positive(&losses, sum);
  return st ? st : reduced(out, losses, reduction);
}

weir_status weir_hinge_embedding_loss(weir_tensor **out, const weir_tensor *a,
                                      const weir_tensor *target, double margin,
                                      weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, target);
  WEIR_CASTS(LOSS, a, target);
  WEIR_TENSOR rest = NULL;
  WEIR_TENSOR below = NULL;
  WEIR_TENSOR zero = NULL;
  WEIR_TENSOR first = NULL;
  WEIR_TENSOR second = NULL;
  WEIR_TENSOR not_one = NULL;
  WEIR_TENSOR not_minus = NULL;
  WEIR_TENSOR losses = NULL;
  weir_status st = check_reduction(reduction);
  if (!st) st = weir_scalar_sub(&rest, weir_float(margin), a);
  if (!st) st = positive(&below, rest);
  if (!st) st = weir_zeros_like(&zero, a, NULL);
  if (!st) st = weir_ne_scalar(&not_one, target, weir_int(1));
  if (!st) st = weir_ne_scalar(&not_minus, target, weir_int(-1));
  if (!st) st = weir_where(&first, not_one, below, zero);
  if (!st) st = weir_where(&second, not_minus, a, zero);
  if (!st) st = weir_add(&losses, first, second);
  return st ? st : reduced(out, losses, reduction);
}

weir_status weir_soft_margin_loss(weir_tensor **out, const weir_tensor *a,
                                  const weir_tensor *target, weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, target);
  WEIR_CASTS(LOSS, a, target);
  WEIR_TENSOR negative = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR power = NULL;
  WEIR_TENSOR losses = NULL;
  weir_status st = check_reduction(reduction);
  if (!st) st = weir_neg(&negative, target);
  if (!st) st = weir_mul(&product, negative, a);
  if (!st) st = weir_exp(&power, product);
  if (!st) st = weir_log1p(&losses, power);
  return st ? st : reduced(out, losses, reduction);
}

weir_status weir_triplet_margin_loss(weir_tensor **out, const weir_tensor *a,
                                     const weir_tensor *positive_one,
                                     const weir_tensor *negative_one, double margin, double p,
                                     weir_reduction reduction)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, positive_one, negative_one);
  WEIR_CASTS(LOSS, a, positive_one, negative_one);
  WEIR_TENSOR near = NULL;
  WEIR_TENSOR far = NULL;
  WEIR_TENSOR off = NULL;
  WEIR_TENSOR sum = NULL;
  WEIR_TENSOR losses = NULL;
  weir_status st = check_reduction(reduction);
  if (!st) st = weir_pairwise_distance(&near, a, positive_one, p, 1e-6, false);
  if (!st) st = weir_pairwise_distance(&far, a, negative_one, p, 1e-6, false);
  if (!st) st = weir_sub(&off, near, far);
  if (!st) st = weir_add_scalar(&sum, off, weir_float(margin));
  if (!st) st = positive(&losses, sum);
  return st ? st : reduced(out, losses, reduction);
}
