/* norm.c: normalisation; dropout, distances, pixels, which are made of other operations.
 *
 * layer_norm, rms_norm and group_norm are rows, contiguous, and one request (weir_norm_request),
 * whose derivative is in core/grad/product.c. batch_norm's channels are no rows: what its mean and
 * variance are found by other operations, in float32 where the dtype is shorter, and then is x *
 * scale + shift, scale and shift being small: the request again, or where it is recorded
 * operations, too.
 *
 * Words. wide: the dtype that is calculated in. affine: weight and bias, which may be missing. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/ops/ops.h"

/* ---- what they share ------------------------------------------------------------------------- */

static weir_dtype wide_dtype(const weir_tensor *t)
{
  weir_dtype d = t->dtype;
  return d == WEIR_FLOAT16 || d == WEIR_BFLOAT16 ? WEIR_FLOAT32 : d;
}

/* t viewed by `shape` in the wide dtype of a; NULL is NULL. */
static weir_status widened(weir_tensor **out, const weir_tensor *t, weir_shape shape,
                           weir_dtype wide)
{
  CALC(c);
  *out = NULL;
  if (!t) return WEIR_OK;
  return calc_give(c, out, c_to_dtype(c, c_reshape(c, t, shape), wide));
}

/* torch's rule for the dtypes of parameters: all as the input, or float32 next to a shorter one. */
static weir_status check_mixed(const weir_tensor *a, const weir_tensor *const *parameter, int count)
{
  int first = 0;
  while (first < count && !parameter[first])
    first++;
  if (first == count) return WEIR_OK;
  bool same = parameter[first]->dtype == a->dtype;
  for (int i = first; i < count && same; i++)
    if (parameter[i] && parameter[i]->dtype != a->dtype)
      return fail_invalid("expected scalar type %s but found %s", dtype_title(a->dtype),
                          dtype_title(parameter[i]->dtype));
  if (same) return WEIR_OK;
  for (int i = first; i < count; i++)
    if (parameter[i] && parameter[i]->dtype != WEIR_FLOAT32)
      return fail_invalid("mixed dtype (CPU): expect parameter to have scalar type of Float");
  if (wide_dtype(a) == a->dtype)
    return fail_invalid("mixed dtype (CPU): all inputs must share same datatype.");
  return WEIR_OK;
}

/* scale = rstd weight, shift = bias - mean scale; what is missing is 1 or 0. */
static weir_status scale_and_shift(weir_tensor **scale, weir_tensor **shift,
                                   const weir_tensor *rstd, const weir_tensor *mean,
                                   const weir_tensor *weight, const weir_tensor *bias)
{
  CALC(c);
  c->st = weight ? weir_mul(scale, rstd, weight) : weir_clone(scale, rstd);
  weir_tensor *product = c_call(c, weir_mul, mean, *scale);
  c_do(c, bias ? weir_sub(shift, bias, product) : weir_neg(shift, product));
  return c->st;
}

/* *out (new) is x scale + shift, of `dtype` and viewed by the shape. */
static weir_status apply_scale(weir_tensor **out, const weir_tensor *x, const weir_tensor *scale,
                               const weir_tensor *shift, weir_shape shape, weir_dtype dtype)
{
  CALC(c);
  weir_tensor *y = c_mul(c, x, scale);
  c_do(c, weir_add_(y, shift));
  return calc_give(c, out, c_to_dtype(c, c_reshape(c, y, shape), dtype));
}

/* ---- the request ----------------------------------------------------------------------------- */

/* t in the wide dtype, dense; NULL is NULL. */
static weir_status wide_dense(weir_tensor **out, const weir_tensor *t, weir_dtype wide)
{
  CALC(c);
  *out = NULL;
  if (!t) return WEIR_OK;
  return calc_give(c, out, c_contiguous(c, c_to_dtype(c, t, wide)));
}

/* q: kind, sizes, eps. grad NULL: forward. *out is new, of a's shape and dtype. */
static weir_status run_norm(weir_tensor **out, weir_norm_request *q, const weir_tensor *a,
                            const weir_tensor *grad, const weir_tensor *weight,
                            const weir_tensor *bias)
{
  CALC(c);
  compute_target t;
  TRY(compute_target_of(&t, device_of_tensor(a)));
  if (!t.compute->norm) return compute_target_lacks(&t, "norm");
  weir_tensor *x = c_contiguous(c, a);
  weir_tensor *g = grad ? c_contiguous(c, grad) : NULL;
  weir_tensor *w = c_call(c, wide_dense, weight, wide_dtype(a));
  weir_tensor *b = c_call(c, wide_dense, bias, wide_dtype(a));
  c_do(c, tensor_new_beside(out, x, shape_of_tensor(a)));
  if (c->st) return c->st;
  q->dtype = x->dtype;
  q->in = x->data;
  q->grad = g ? g->data : NULL;
  q->weight = w ? w->data : NULL;
  q->bias = b ? b->data : NULL;
  q->out = (*out)->data;
  c->st = compute_target_done(&t, t.compute->norm(t.self, t.stream, q), "norm");
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* The rows of a, which has elements: kind, groups, inner and eps are q's. */
static weir_status norm_rows(weir_tensor **out, weir_norm_request *q, const weir_tensor *a,
                             const weir_tensor *weight, const weir_tensor *bias)
{
  const weir_tensor *in[3] = {a, weight, bias};
  bool records = recorded_any(in, 3);
  weir_status st;
  q->rows = a->numel / q->each;
  {
    WEIR_UNRECORDED;
    st = run_norm(out, q, a, NULL, weight, bias);
  }
  if (st || !records) return st;
  record r = {.kind = RECORD_NORM, .inputs = 3, .in = in, .p = {q->eps}};
  r.n[0] = q->kind, r.n[1] = q->rows, r.n[2] = q->each, r.n[3] = q->groups, r.n[4] = q->inner;
  return record_made(out, &r, WEIR_OK);
}

static weir_norm_request norm_of_record(const int64_t *n, double eps)
{
  return (weir_norm_request){
      .kind = (int32_t)n[0], .rows = n[1], .each = n[2], .groups = n[3], .inner = n[4], .eps = eps};
}

weir_status norm_back(weir_tensor **out, const weir_tensor *grad, const weir_tensor *a,
                      const weir_tensor *weight, const int64_t *n, double eps)
{
  weir_norm_request q = norm_of_record(n, eps);
  return run_norm(out, &q, a, grad, weight, NULL);
}

weir_status norm_alone(weir_tensor **out, const weir_tensor *a, const int64_t *n, double eps)
{
  weir_norm_request q = norm_of_record(n, eps);
  return run_norm(out, &q, a, NULL, NULL, NULL);
}

/* ---- layer_norm, rms_norm -------------------------------------------------------------------- */

static bool ends_with(const weir_tensor *a, weir_shape shape)
{
  int lead = a->dims - shape.count;
  return lead >= 0 && !memcmp(a->size + lead, shape.size, (size_t)shape.count * sizeof *a->size);
}

static bool has_shape(const weir_tensor *t, weir_shape shape)
{
  return t->dims == shape.count && ends_with(t, shape);
}

static weir_status check_rows(const weir_tensor *a, weir_shape shape, const weir_tensor *weight,
                              const weir_tensor *bias, const char *star)
{
  text_buffer x, y;
  const weir_tensor *parameter[2] = {weight, bias};
  if (shape.count < 1)
    return fail_invalid("Expected normalized_shape to be at least 1-dimensional, i.e., containing "
                        "at least one element, but got normalized_shape = []");
  if (shape.count > WEIR_MAX_DIMS)
    return fail_invalid("normalized_shape has %d dimensions", shape.count);
  for (int i = 0; i < 2; i++)
    if (parameter[i] && !has_shape(parameter[i], shape))
      return fail_invalid("Expected %s to be of same shape as normalized_shape, but got %s of "
                          "shape %s and normalized_shape = %s",
                          i ? "bias" : "weight", i ? "bias" : "weight",
                          shape_format(&x, shape_of_tensor(parameter[i])), shape_format(&y, shape));
  if (!ends_with(a, shape))
    return fail_invalid(
        "Given normalized_shape=%s, expected input with shape [*%s%s, but got input of size%s",
        shape_format(&x, shape), star, shape_format(&y, shape) + 1,
        shape_format(&(text_buffer){{0}}, shape_of_tensor(a)));
  return WEIR_OK;
}

static int64_t elements_in(weir_shape shape)
{
  return sizes_product(shape.size, 0, shape.count);
}

weir_status weir_layer_norm(weir_tensor **out, const weir_tensor *a, weir_shape shape,
                            const weir_tensor *weight, const weir_tensor *bias, double eps)
{
  WEIR_OP(out, a);
  WEIR_CASTS(NORMALISATION, a, weight, bias);
  const weir_tensor *parameter[2] = {weight, bias};
  weir_status st = dtype_is_floating(a->dtype) ? check_mixed(a, parameter, 2) : WEIR_OK;
  if (!st) st = check_rows(a, shape, weight, bias, ", ");
  if (!st && !dtype_is_floating(a->dtype))
    st = not_implemented("LayerNormKernelImpl", device_of_tensor(a), a->dtype);
  if (!st && !a->numel) return tensor_new_beside(out, a, shape_of_tensor(a));
  weir_norm_request q = {
      .kind = WEIR_NORM_LAYER, .each = elements_in(shape), .groups = 1, .inner = 1, .eps = eps};
  return st ? st : norm_rows(out, &q, a, weight, bias);
}

static double epsilon_of(weir_dtype d)
{
  return d == WEIR_FLOAT64 ? DBL_EPSILON : FLT_EPSILON;
}

weir_status weir_rms_norm(weir_tensor **out, const weir_tensor *a, weir_shape shape,
                          const weir_tensor *weight, double eps)
{
  WEIR_OP(out, a);
  WEIR_CASTS(NORMALISATION, a, weight);
  weir_status st = check_rows(a, shape, weight, NULL, "");
  if (!st && !dtype_is_floating(a->dtype))
    st = not_implemented("rms_norm", device_of_tensor(a), a->dtype);
  if (st) return st;
  if (!a->numel) return tensor_new_beside(out, a, shape_of_tensor(a));
  weir_norm_request q = {
      .kind = WEIR_NORM_RMS, .each = elements_in(shape), .groups = 1, .inner = 1, .eps = eps};
  if (eps < 0) q.eps = epsilon_of(wide_dtype(a));
  return norm_rows(out, &q, a, weight, NULL);
}

/* ---- batch_norm ------------------------------------------------------------------------------ */

/* All but the channels. */
static int64_t values_of_channel(const weir_tensor *a)
{
  int64_t values = 1;
  for (int d = 0; d < a->dims; d++)
    if (d != 1) values *= a->size[d];
  return values;
}

/* One number for each channel, next to an input of `dims` dimensions: (channels, 1, 1, ...). */
static weir_shape beside_channels(int64_t channels, int dims)
{
  weir_shape s = {.count = dims > 1 ? dims - 1 : 1};
  for (int i = 0; i < s.count; i++)
    s.size[i] = 1;
  s.size[0] = channels;
  return s;
}

static weir_status check_count(const char *name, const weir_tensor *t, int64_t channels)
{
  if (!t || t->numel == channels) return WEIR_OK;
  return fail_invalid("%s should contain %lld elements not %lld", name, (long long)channels,
                      (long long)t->numel);
}

static weir_status check_batch_norm(const weir_tensor *a, const weir_batch_norm_options *o,
                                    const weir_tensor *mean, const weir_tensor *var,
                                    const weir_tensor *weight, const weir_tensor *bias)
{
  const weir_tensor *parameter[4] = {weight, bias, mean, var};
  int64_t channels = a->dims > 1 ? a->size[1] : 0;
  if (!o->training && !mean) return fail_invalid("running_mean must be defined in evaluation mode");
  weir_status st = check_count("running_mean", mean, channels);
  if (!st && !o->training && !var)
    st = fail_invalid("running_var must be defined in evaluation mode");
  if (!st) st = check_count("running_var", var, channels);
  if (!st) st = check_count("weight", weight, channels);
  if (!st) st = check_count("bias", bias, channels);
  if (!st && !dtype_is_floating(a->dtype))
    st = not_implemented("batch_norm", device_of_tensor(a), a->dtype);
  if (!st && a->dims < 2)
    st = fail_invalid("batch_norm: expected at least 2 dimensions, but got %d", a->dims);
  return st ? st : check_mixed(a, parameter, 4);
}

/* *out (new; NULL where there is no running) is (1 - momentum) running + momentum now times
 * `more`. */
static weir_status moved(weir_tensor **out, const weir_tensor *running, const weir_tensor *now,
                         double momentum, double more)
{
  CALC(c);
  if (!running) return WEIR_OK;
  weir_tensor *row = c_call(c, weir_reshape, now, shape_of_tensor(running));
  weir_tensor *part = c_mul_s(c, row, momentum * more);
  return calc_give(c, out, c_add(c, c_mul_s(c, running, 1 - momentum), part));
}

/* Running statistics follow the batch's: both or none. */
static weir_status follow(weir_tensor *running_mean, weir_tensor *running_var,
                          const weir_tensor *mean, const weir_tensor *var, double n,
                          double momentum)
{
  CALC(c);
  weir_tensor *new_mean = c_call(c, moved, running_mean, mean, momentum, 1);
  weir_tensor *new_var = c_call(c, moved, running_var, var, momentum, n / (n - 1));
  if (running_mean) c_do(c, weir_copy_(running_mean, new_mean, false));
  if (running_var) c_do(c, weir_copy_(running_var, new_var, false));
  return c->st;
}

/* x scale + shift, one each for a channel, by the request. */
static weir_status scale_channels(weir_tensor **out, const weir_tensor *a, const weir_tensor *scale,
                                  const weir_tensor *shift)
{
  int64_t channels = a->size[1], area = a->numel / a->size[0] / channels;
  weir_norm_request q = {.kind = WEIR_NORM_AFFINE, .each = area, .groups = channels, .inner = area};
  if (area == 1) q.each = channels, q.groups = 1;
  q.rows = a->numel / q.each;
  return run_norm(out, &q, a, NULL, scale, shift);
}

/* Statistics of the batch. */
static weir_status batch_statistics(weir_tensor **rstd, weir_tensor **mean, weir_tensor **var,
                                    const weir_tensor *x, double eps)
{
  CALC(c);
  int dims[WEIR_MAX_DIMS], count = 0;
  for (int i = 0; i < x->dims; i++)
    if (i != 1) dims[count++] = i;
  c->st = weir_var_mean_dims(var, mean, x, dims, count, 0, true);
  weir_tensor *more = c_call(c, weir_add_scalar, *var, weir_float(eps));
  return c->st ? c->st : weir_rsqrt(rstd, more);
}

static weir_status running_statistics(weir_tensor **rstd, weir_tensor **mean, const weir_tensor *m,
                                      const weir_tensor *v, weir_shape shape, weir_dtype wide,
                                      double eps)
{
  CALC(c);
  c->st = widened(mean, m, shape, wide);
  weir_tensor *more = c_add_s(c, c_call(c, widened, v, shape, wide), eps);
  return c->st ? c->st : weir_rsqrt(rstd, more);
}

static weir_status run_batch_norm(weir_tensor **out, const weir_tensor *a,
                                  weir_tensor *running_mean, weir_tensor *running_var,
                                  const weir_tensor *weight, const weir_tensor *bias,
                                  const weir_batch_norm_options *o)
{
  CALC(c);
  WEIR_TENSOR x = NULL, rstd = NULL, mean = NULL, scale = NULL, shift = NULL, var = NULL;
  weir_dtype wide = wide_dtype(a);
  weir_shape shape = beside_channels(a->size[1], a->dims);
  bool records = recorded_any((const weir_tensor *[]){a, weight, bias}, 3);
  c->st = o->training || records ? weir_to_dtype(&x, a, wide) : WEIR_OK;
  c_do(c, o->training
              ? batch_statistics(&rstd, &mean, &var, x, o->eps)
              : running_statistics(&rstd, &mean, running_mean, running_var, shape, wide, o->eps));
  weir_tensor *w = c_call(c, widened, weight, shape, wide);
  weir_tensor *b = c_call(c, widened, bias, shape, wide);
  c_do(c, scale_and_shift(&scale, &shift, rstd, mean, w, b));
  if (!records)
    c_do(c, scale_channels(out, a, scale, shift));
  else
    c_do(c, apply_scale(out, x, scale, shift, shape_of_tensor(a), a->dtype));
  if (!c->st && var)
    c->st = follow(running_mean, running_var, mean, var, (double)values_of_channel(a), o->momentum);
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* "weir.Size([1, 3])". */
static weir_status too_few(const char *what, const weir_tensor *a)
{
  text_buffer text;
  return fail_invalid("Expected more than 1 %s when training, got input size weir.Size(%s)", what,
                      shape_format(&text, shape_of_tensor(a)));
}

weir_status weir_batch_norm(weir_tensor **out, const weir_tensor *a, weir_tensor *running_mean,
                            weir_tensor *running_var, const weir_tensor *weight,
                            const weir_tensor *bias, const weir_batch_norm_options *options)
{
  WEIR_OP(out, a, options);
  if (options->training && values_of_channel(a) == 1) return too_few("value per channel", a);
  weir_status st = check_batch_norm(a, options, running_mean, running_var, weight, bias);
  if (!st && !a->numel) return tensor_new_beside(out, a, shape_of_tensor(a));
  return st ? st : run_batch_norm(out, a, running_mean, running_var, weight, bias, options);
}

/* ---- group_norm, instance_norm --------------------------------------------------------------- */

/* Groups as channels of a batch: whether each has more than one value. */
static weir_status check_group_values(const weir_tensor *a, int64_t groups)
{
  text_buffer text;
  weir_shape seen = shape_of_tensor(a);
  int64_t values = seen.size[0] = a->size[0] * a->size[1] / groups;
  seen.size[1] = groups;
  values *= sizes_product(a->size, 2, a->dims);
  if (values == 1)
    return fail_invalid("Expected more than 1 value per channel when training, got input size %s",
                        shape_format(&text, seen));
  return WEIR_OK;
}

static weir_status check_channels_of(const weir_tensor *a, const char *name, const weir_tensor *t)
{
  text_buffer x, y;
  if (!t || (t->dims == 1 && t->numel == a->size[1])) return WEIR_OK;
  return fail_invalid("Expected %s to be a vector of size equal to the number of channels in "
                      "input, but got %s of shape %s and input of shape %s",
                      name, name, shape_format(&x, shape_of_tensor(t)),
                      shape_format(&y, shape_of_tensor(a)));
}

static weir_status check_group_norm(const weir_tensor *a, int64_t groups, const weir_tensor *weight,
                                    const weir_tensor *bias)
{
  text_buffer x;
  const weir_tensor *parameter[2] = {weight, bias};
  if (a->dims < 2)
    return fail_invalid("Expected at least 2 dimensions for input tensor but received %d", a->dims);
  if (groups < 1)
    return fail_invalid("Expected num groups to be greater than 0, got %lld", (long long)groups);
  weir_status st = check_group_values(a, groups);
  if (!st && !a->size[1])
    st = fail_invalid("Expected number of channels to be greater than 0, got 0");
  for (int d = 2; d < a->dims && !st; d++)
    if (!a->size[d]) st = fail_invalid("Expected HxW to be greater than 0, got 0");
  if (!st && a->size[1] % groups)
    st = fail_invalid("Expected number of channels in input to be divisible by num_groups, but got "
                      "input of shape %s and num_groups=%lld",
                      shape_format(&x, shape_of_tensor(a)), (long long)groups);
  if (!st) st = check_channels_of(a, "weight", weight);
  if (!st) st = check_channels_of(a, "bias", bias);
  if (!st && a->numel && !dtype_is_floating(a->dtype))
    st = not_implemented("GroupNormKernelImpl", device_of_tensor(a), a->dtype);
  if (st) return st;
  /* Of no images torch looks only at the first parameter. */
  return check_mixed(a, parameter, a->numel || !weight || weight->dtype != a->dtype ? 2 : 1);
}

weir_status weir_group_norm(weir_tensor **out, const weir_tensor *a, int64_t groups,
                            const weir_tensor *weight, const weir_tensor *bias, double eps)
{
  WEIR_OP(out, a);
  WEIR_CASTS(NORMALISATION, a, weight, bias);
  TRY(check_group_norm(a, groups, weight, bias));
  if (!a->numel) return tensor_new_beside(out, a, shape_of_tensor(a));
  int64_t area = a->numel / a->size[0] / a->size[1];
  weir_norm_request q = {.kind = WEIR_NORM_LAYER,
                         .each = a->size[1] / groups * area,
                         .groups = groups,
                         .inner = area,
                         .eps = eps};
  return norm_rows(out, &q, a, weight, bias);
}

/* (n channels) of (channels), repeated; NULL is NULL. */
static weir_status repeated(weir_tensor **out, const weir_tensor *t, int64_t n)
{
  *out = NULL;
  return t ? weir_repeat(out, t, weir_shape(n)) : WEIR_OK;
}

/* What became of the repeats, averaged, is t's. */
static weir_status averaged(weir_tensor *t, const weir_tensor *all, int64_t n)
{
  CALC(c);
  if (!t) return WEIR_OK;
  weir_tensor *mean = c_mean_dim(c, c_reshape(c, all, weir_shape(n, t->numel)), 0, false);
  return c->st ? c->st : weir_copy_(t, mean, false);
}

/* Each image's channel by itself: a batch of one image with n times the channels. */
static weir_status run_instance_norm(weir_tensor **out, const weir_tensor *a,
                                     weir_tensor *running_mean, weir_tensor *running_var,
                                     const weir_tensor *weight, const weir_tensor *bias,
                                     const weir_batch_norm_options *o)
{
  CALC(c);
  int64_t n = a->size[0];
  weir_shape shape = shape_of_tensor(a);
  shape.size[0] = 1;
  shape.size[1] *= n;
  weir_tensor *one = c_reshape(c, a, shape);
  weir_tensor *mean = c_call(c, repeated, running_mean, n);
  weir_tensor *var = c_call(c, repeated, running_var, n);
  weir_tensor *w = c_call(c, repeated, weight, n);
  weir_tensor *b = c_call(c, repeated, bias, n);
  weir_tensor *y = c_call(c, weir_batch_norm, one, mean, var, w, b, o);
  if (o->training) c_do(c, averaged(running_mean, mean, n));
  if (o->training) c_do(c, averaged(running_var, var, n));
  return c->st ? c->st : weir_view(out, y, shape_of_tensor(a));
}

weir_status weir_instance_norm(weir_tensor **out, const weir_tensor *a, weir_tensor *running_mean,
                               weir_tensor *running_var, const weir_tensor *weight,
                               const weir_tensor *bias, const weir_batch_norm_options *options)
{
  WEIR_OP(out, a, options);
  int64_t spatial = sizes_product(a->size, 2, a->dims);
  if (options->training && spatial == 1) return too_few("spatial element", a);
  if (!options->training && (!running_mean || !running_var))
    return fail_invalid(
        "Expected running_mean and running_var to be defined when use_input_stats is false");
  if (a->dims < 2)
    return fail_invalid("instance_norm: expected at least 2 dimensions, but got %d", a->dims);
  return run_instance_norm(out, a, running_mean, running_var, weight, bias, options);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static weir_status run_dropout(weir_tensor **out, const weir_tensor *a, double p, weir_shape mask,
                               weir_generator *g)
{
  WEIR_TENSOR keep = NULL;
  if (p == 1) { /* nothing is divided */
    weir_status none = weir_zeros_like(&keep, a, NULL);
    return none ? none : weir_mul(out, a, keep);
  }
  if (!dtype_is_floating(a->dtype))
    return fail_invalid("result type Float can't be cast to the desired output type %s",
                        dtype_title(a->dtype));
  weir_status st = tensor_new_beside(&keep, a, mask);
  if (!st && keep->numel) st = weir_bernoulli_(keep, 1 - p, g);
  if (!st) st = weir_div_scalar_(keep, weir_float(1 - p));
  return st ? st : weir_mul(out, a, keep);
}

static weir_status check_probability(double p)
{
  if (p >= 0 && p <= 1) return WEIR_OK;
  return fail_invalid("dropout probability has to be between 0 and 1, but got %g", p);
}

weir_status weir_dropout(weir_tensor **out, const weir_tensor *a, double p, bool training,
                         weir_generator *g)
{
  WEIR_OP(out, a);
  TRY(check_probability(p));
  if (training && p > 0 && a->numel) return run_dropout(out, a, p, shape_of_tensor(a), g);
  *out = weir_tensor_retain((weir_tensor *)a);
  return WEIR_OK;
}

weir_status weir_feature_dropout(weir_tensor **out, const weir_tensor *a, double p, bool training,
                                 weir_generator *g)
{
  WEIR_OP(out, a);
  weir_shape mask = shape_of_tensor(a);
  weir_status st = check_probability(p);
  if (!st && a->dims < 2)
    st = fail_invalid("Feature dropout requires at least 2 dimensions in the input");
  if (st) return st;
  for (int d = 2; d < a->dims; d++)
    mask.size[d] = 1;
  if (training && p > 0 && a->numel) return run_dropout(out, a, p, mask, g);
  *out = weir_tensor_retain((weir_tensor *)a);
  return WEIR_OK;
}

/* ---- distances ------------------------------------------------------------------------------- */

/* What a's vectors along dim are divided by: their length, at least eps. */
static weir_status lengths(weir_tensor **out, const weir_tensor *a, double p, int dim, double eps)
{
  CALC(c);
  weir_scalar least = weir_float(eps);
  weir_tensor *norm = c_call(c, weir_norm_dim, a, p, dim, true);
  return c->st ? c->st : weir_clamp(out, norm, &least, NULL);
}

weir_status weir_normalize(weir_tensor **out, const weir_tensor *a, double p, int dim, double eps)
{
  WEIR_OP(out, a);
  WEIR_CASTS(NORM, a);
  CALC(c);
  return calc_give(c, out, c_div(c, a, c_call(c, lengths, a, p, dim, eps)));
}

/* t's dtype, or for integers another. */
static weir_dtype floating_or(const weir_tensor *t, weir_dtype other)
{
  weir_dtype d = t->dtype;
  return dtype_is_integral_or_bool(d) ? other : d;
}

weir_status weir_cosine_similarity(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                   int dim, double eps)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(SIMILARITY, a, b);
  CALC(k);
  weir_dtype d = WEIR_DTYPE_NONE;
  weir_shape shape = shape_of_tensor(a);
  categories c = {0};
  k->st = categories_tensor(&c, a);
  c_do(k, categories_tensor(&c, b));
  c_do(k, categories_result(&d, &c));
  if (!k->st && !dtype_is_floating(d) && d != WEIR_COMPLEX64)
    k->st = fail_invalid("expected common dtype to be floating point, yet common dtype is %s",
                         dtype_title(d));
  c_do(k, shape_broadcast(&shape, b->size, b->dims));
  weir_tensor *px = c_call(k, weir_to_dtype, a, floating_or(a, d));
  weir_tensor *py = c_call(k, weir_to_dtype, b, floating_or(b, d));
  weir_tensor *x = c_call(k, weir_expand, px, shape);
  weir_tensor *y = c_call(k, weir_expand, py, shape);
  weir_tensor *lx = c_call(k, lengths, x, 2, dim, eps);
  weir_tensor *ly = c_call(k, lengths, y, 2, dim, eps);
  weir_tensor *ux = c_div(k, x, lx);
  return calc_give(k, out, c_sum_dim(k, c_mul(k, ux, c_div(k, y, ly)), dim, false));
}

weir_status weir_pairwise_distance(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                   double p, double eps, bool keepdim)
{
  WEIR_OP(out, a, b);
  CALC(c);
  weir_tensor *more = c_add_s(c, c_sub(c, a, b), eps);
  if (c->st) return c->st;
  const weir_tensor *sum = more;
  WEIR_CASTS(NORM, sum);
  return weir_norm_dim(out, sum, p, -1, keepdim);
}

/* ---- pixels ---------------------------------------------------------------------------------- */

weir_status weir_pixel_shuffle(weir_tensor **out, const weir_tensor *a, int64_t factor)
{
  WEIR_OP(out, a);
  CALC(c);
  WEIR_TENSOR parts = NULL;
  int64_t square;
  if (a->dims < 3)
    return fail_invalid("pixel_shuffle expects input to have at least 3 dimensions, but got input "
                        "with %d dimension(s)",
                        a->dims);
  if (factor < 1)
    return fail_invalid("pixel_shuffle expects a positive upscale_factor, but got %lld",
                        (long long)factor);
  const int64_t *s = a->size + a->dims - 3;
  if (__builtin_mul_overflow(factor, factor, &square) || s[0] % square)
    return fail_invalid(
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
        "upscale_factor, but input.size(-3)=%lld is not divisible by %lld",
        (long long)s[0], (long long)square);
  int64_t n = sizes_product(a->size, 0, a->dims - 3);
  weir_shape shape = shape_of_tensor(a);
  shape.size[a->dims - 3] = s[0] / square;
  shape.size[a->dims - 2] = s[1] * factor;
  shape.size[a->dims - 1] = s[2] * factor;
  c->st = weir_reshape(&parts, a, weir_shape(n, s[0] / square, factor, factor, s[1], s[2]));
  weir_tensor *turned = c_permute(c, parts, (const int[]){0, 1, 4, 2, 5, 3});
  return c->st ? c->st : weir_reshape(out, turned, shape);
}

weir_status weir_pixel_unshuffle(weir_tensor **out, const weir_tensor *a, int64_t factor)
{
  WEIR_OP(out, a);
  CALC(c);
  WEIR_TENSOR parts = NULL;
  if (a->dims < 3)
    return fail_invalid("pixel_unshuffle expects input to have at least 3 dimensions, but got "
                        "input with %d dimension(s)",
                        a->dims);
  if (factor < 1)
    return fail_invalid("pixel_unshuffle expects a positive downscale_factor, but got %lld",
                        (long long)factor);
  const int64_t *s = a->size + a->dims - 3;
  for (int i = 1; i < 3; i++)
    if (s[i] % factor)
      return fail_invalid("pixel_unshuffle expects %s to be divisible by downscale_factor, but "
                          "input.size(%d)=%lld is not divisible by %lld",
                          i == 1 ? "height" : "width", i - 3, (long long)s[i], (long long)factor);
  int64_t n = sizes_product(a->size, 0, a->dims - 3);
  weir_shape shape = shape_of_tensor(a);
  shape.size[a->dims - 3] = s[0] * factor * factor;
  shape.size[a->dims - 2] = s[1] / factor;
  shape.size[a->dims - 1] = s[2] / factor;
  c->st =
      weir_reshape(&parts, a, weir_shape(n, s[0], s[1] / factor, factor, s[2] / factor, factor));
  weir_tensor *turned = c_permute(c, parts, (const int[]){0, 1, 3, 5, 2, 4});
  return c->st ? c->st : weir_reshape(out, turned, shape);
}

weir_status weir_channel_shuffle(weir_tensor **out, const weir_tensor *a, int64_t groups)
{
  WEIR_OP(out, a);
  CALC(c);
  text_buffer t;
  weir_shape shape = shape_of_tensor(a);
  if (a->dims < 3)
    return fail_invalid("channel_shuffle expects input with > 2 dims, but got input with sizes %s",
                        shape_format(&t, shape));
  if (groups < 1)
    return fail_invalid(
        "Number of groups to divide channels in must be positive. Value of groups:%lld",
        (long long)groups);
  int64_t n = a->size[0], channels = a->size[1], rest = 1;
  if (channels % groups)
    return fail_invalid(
        "Number of channels must be divisible by groups. Got %lld channels and %lld groups.",
        (long long)channels, (long long)groups);
  rest *= sizes_product(a->size, 2, a->dims);
  weir_tensor *parts = c_reshape(c, a, weir_shape(n, groups, channels / groups, rest));
  return calc_give(c, out, c_reshape(c, c_transpose(c, parts, 1, 2), shape));
}
