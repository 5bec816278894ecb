/* activation.c: activations: elementwise operations with numbers of their own, and a few made of
 * others. */
#include <string.h>
#include "core/ops/ops.h"

#define ACTIVATION(name, op) ELEMENTWISE_FORMS(name, op)
WEIR_ACTIVATION_MAP(ACTIVATION)

/* One operand and numbers. */
static weir_status activated(weir_tensor **out, weir_tensor *self, const weir_tensor *a, weir_op op,
                             double p0, double p1, double p2)
{
  weir_scalar p[3] = {weir_float(p0), weir_float(p1), weir_float(p2)};
  return elementwise_tensors(op, out, self, 1, &a, p);
}

static weir_status gelu_op(weir_op *op, const char *approximate)
{
  bool tanh = !strcmp(approximate, "tanh");
  *op = tanh ? WEIR_OP_GELU_TANH : WEIR_OP_GELU;
  return tanh || !strcmp(approximate, "none")
             ? WEIR_OK
             : fail_invalid("approximate argument must be either none or tanh.");
}

static weir_status gelu_run(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                            const char *approximate)
{
  weir_op op;
  weir_status st = gelu_op(&op, approximate);
  return st ? st : ELEMENTWISE(op, out, self, a);
}
BOTH_FORMS(gelu, (a, approximate), (const char *approximate), gelu_run, approximate)
BOTH_FORMS(leaky_relu, (a), (double negative_slope), activated, WEIR_OP_LEAKY_RELU, negative_slope,
           0, 0)
BOTH_FORMS(threshold, (a), (double threshold, double value), activated, WEIR_OP_THRESHOLD,
           threshold, value, 0)

static weir_status elu_run(weir_tensor **out, weir_tensor *self, const weir_tensor *a, double alpha,
                           double scale, double input_scale)
{
  return activated(out, self, a, WEIR_OP_ELU, alpha * scale, scale, input_scale);
}
BOTH_FORMS(elu, (a), (double alpha), elu_run, alpha, 1, 1)

static weir_status celu_run(weir_tensor **out, weir_tensor *self, const weir_tensor *a,
                            double alpha)
{
  if (alpha == 0) return fail_invalid("ZeroDivisionError: alpha cannot be 0 for CELU");
  return elu_run(out, self, a, alpha, 1, 1 / alpha);
}
BOTH_FORMS(celu, (a), (double alpha), celu_run, alpha)

/* Klambauer et al., "Self-normalizing neural networks" (2017): mean 0 and variance 1 stay. */
static const double selu_alpha = 1.6732632423543772848170429916717;
static const double selu_scale = 1.0507009873554804934193349852946;

weir_status weir_selu(weir_tensor **out, const weir_tensor *a)
{
  WEIR_REQUIRE_OUT(out, a);
  return elu_run(out, NULL, a, selu_alpha, selu_scale, 1);
}

weir_status weir_selu_(weir_tensor *a)
{
  WEIR_REQUIRE(a);
  return elu_run(NULL, a, a, selu_alpha, selu_scale, 1);
}

weir_status weir_softplus(weir_tensor **out, const weir_tensor *a, double beta, double threshold)
{
  WEIR_REQUIRE_OUT(out, a);
  return activated(out, NULL, a, WEIR_OP_SOFTPLUS, beta, threshold, 0);
}

/* ---- with bounds ----------------------------------------------------------------------------- */

/* Cut to an integer, the nearest there is. */
static int64_t whole_of(double bound)
{
  if (bound >= 0x1p63) return INT64_MAX;
  return bound > -0x1p63 ? (int64_t)bound : INT64_MIN;
}

/* The bounds of integers are cut to integers. */
static weir_status hardtanh_bounds(weir_scalar bounds[2], const weir_tensor *a, double min_val,
                                   double max_val)
{
  weir_dtype dtype = a->dtype;
  bool whole = dtype_is_integral(dtype);
  if (dtype == WEIR_BOOL) return fail_unsupported("Bool inputs not supported for hardtanh");
  if (min_val > max_val) return fail_invalid("min_val cannot be greater than max_val");
  bounds[0] = whole ? weir_int(whole_of(min_val)) : weir_float(min_val);
  bounds[1] = whole ? weir_int(whole_of(max_val)) : weir_float(max_val);
  return WEIR_OK;
}

weir_status weir_hardtanh(weir_tensor **out, const weir_tensor *a, double min_val, double max_val)
{
  WEIR_OP(out, a);
  weir_scalar bounds[2];
  weir_status st = hardtanh_bounds(bounds, a, min_val, max_val);
  return st ? st : weir_clamp(out, a, &bounds[0], &bounds[1]);
}

weir_status weir_hardtanh_(weir_tensor *a, double min_val, double max_val)
{
  WEIR_OP_ON(a);
  weir_scalar bounds[2];
  weir_status st = hardtanh_bounds(bounds, a, min_val, max_val);
  return st ? st : weir_clamp_(a, &bounds[0], &bounds[1]);
}

weir_status weir_relu6(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  return weir_hardtanh(out, a, 0, 6);
}

weir_status weir_relu6_(weir_tensor *a)
{
  WEIR_OP_ON(a);
  return weir_hardtanh_(a, 0, 6);
}

weir_status weir_softshrink(weir_tensor **out, const weir_tensor *a, double lambd)
{
  WEIR_REQUIRE_OUT(out, a);
  weir_dtype dtype = a->dtype;
  double least, most;
  if (!dtype_is_floating(dtype))
    return not_implemented("softshrink_check", device_of_tensor(a), dtype);
  dtype_range(dtype, &least, &most);
  if (!(lambd >= 0 && lambd <= most))
    return fail_invalid("lambda must be in range [0, %g] for input dtype %s, but found %g", most,
                        dtype_title(dtype), lambd);
  return activated(out, NULL, a, WEIR_OP_SOFTSHRINK, lambd, 0, 0);
}

weir_status weir_hardshrink(weir_tensor **out, const weir_tensor *a, double lambd)
{
  WEIR_REQUIRE_OUT(out, a);
  return activated(out, NULL, a, WEIR_OP_HARDSHRINK, lambd, 0, 0);
}

/* ---- of others, and of two ------------------------------------------------------------------- */

weir_status weir_softsign(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  CALC(c);
  if (a->dtype == WEIR_BOOL) return not_implemented("abs_%s", device_of_tensor(a), WEIR_BOOL);
  weir_tensor *size = c_abs(c, a);
  c_do(c, weir_add_scalar_(size, weir_int(1)));
  return c->st ? c->st : weir_div(out, a, size);
}

weir_status weir_tanhshrink(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  CALC(c);
  return calc_give(c, out, c_sub(c, a, c_tanh(c, a)));
}

static weir_status check_prelu(const weir_tensor *a, const weir_tensor *weight)
{
  int64_t channels = a->dims > 1 ? a->size[1] : 1;
  if (a->dtype != weight->dtype)
    return fail_invalid("prelu: Type promoting not supported. Got %s and %s", dtype_title(a->dtype),
                        dtype_title(weight->dtype));
  if (weight->numel != 1 && !a->dims) return fail_invalid("Not allow zero-dim input tensor.");
  if (weight->numel != 1 && weight->numel != channels)
    return fail_invalid("Mismatch of parameter numbers and input channel size. Found parameter "
                        "numbers = %lld and channel size = %lld.",
                        (long long)weight->numel, (long long)channels);
  if (weight->dims > 1)
    return fail_invalid("prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = %d",
                        weight->dims);
  return WEIR_OK;
}

weir_status weir_prelu(weir_tensor **out, const weir_tensor *a, const weir_tensor *weight)
{
  WEIR_OP(out, a, weight);
  WEIR_CASTS(PRELU, a, weight);
  CALC(c);
  weir_shape shape = {.count = a->dims > 1 ? a->dims : a->dims == 1};
  c->st = check_prelu(a, weight);
  for (int i = 0; i < shape.count; i++)
    shape.size[i] = 1;
  if (shape.count) shape.size[shape.count > 1] = weight->numel;
  weir_tensor *channels = c_reshape(c, weight, shape);
  return c->st ? c->st : ELEMENTWISE(WEIR_OP_PRELU, out, NULL, a, channels);
}

weir_status weir_glu(weir_tensor **out, const weir_tensor *a, int dim)
{
  WEIR_OP(out, a);
  CALC(c);
  if (!a->dims)
    return fail_invalid("glu does not support scalars because halving size must be even");
  TRY(dim_resolve(&dim, dim, a->dims));
  int64_t size = a->size[dim];
  if (size % 2)
    return fail_invalid("Halving dimension must be even, but dimension %d is size %lld", dim,
                        (long long)size);
  weir_tensor *value = c_call(c, weir_narrow, a, dim, 0, size / 2);
  weir_tensor *gate = c_call(c, weir_narrow, a, dim, size / 2, size / 2);
  return c->st ? c->st : ELEMENTWISE(WEIR_OP_GLU, out, NULL, value, gate);
}
