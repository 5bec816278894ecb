/* activation.c: derivatives of activations.
 *
 * Devices have an operation for the gradient times the slope, one pass; where the derivative is to
 * have one itself the same slope is written as an expression of operations that have. */
#include <math.h>
#include "core/grad/tape.h"
#include "core/ops/ops.h"

#define G (k->g[0])

/* Number i among what the activation was asked for with. */
static double setting(const rule_run *k, int i)
{
  return scalar_real(k->n->r.number[i]);
}

/* 1 where condition, else 0. */
static const weir_tensor *ones_where(rule_run *k, const weir_tensor *condition)
{
  return c_to_dtype(k->c, condition, k->n->meta[0].dtype);
}

/* ---- slopes as expressions ------------------------------------------------------------------- */

/* s (1 + x (1 - s)), s: the sigmoid. */
static const weir_tensor *silu_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *s = c_sigmoid(k->c, x);
  const weir_tensor *rest = c_mul(k->c, x, c_add_s(k->c, c_neg(k->c, s), 1));
  return c_mul(k->c, s, c_add_s(k->c, rest, 1));
}

/* The normal distribution's area up to x, and x times its density. */
static const weir_tensor *gelu_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *area =
      c_mul_s(k->c, c_add_s(k->c, c_erf(k->c, c_mul_s(k->c, x, M_SQRT1_2)), 1), 0.5);
  const weir_tensor *bell = c_exp(k->c, c_mul_s(k->c, c_mul(k->c, x, x), -0.5));
  return c_add(k->c, area, c_mul_s(k->c, c_mul(k->c, x, bell), M_SQRT1_2 * M_2_SQRTPI / 2));
}

static const weir_tensor *gelu_tanh_slope(rule_run *k, const weir_tensor *x)
{
  const double scale = M_SQRT2 * M_2_SQRTPI / 2, cube = 0.044715;
  const weir_tensor *square = c_mul(k->c, x, x);
  const weir_tensor *inner = c_mul(k->c, x, c_add_s(k->c, c_mul_s(k->c, square, cube), 1));
  const weir_tensor *t = c_tanh(k->c, c_mul_s(k->c, inner, scale));
  const weir_tensor *steep =
      c_mul_s(k->c, c_add_s(k->c, c_mul_s(k->c, square, 3 * cube), 1), scale);
  const weir_tensor *rest =
      c_mul(k->c, c_add_s(k->c, c_neg(k->c, c_mul(k->c, t, t)), 1), c_mul(k->c, x, steep));
  return c_mul_s(k->c, c_add(k->c, c_add_s(k->c, t, 1), rest), 0.5);
}

static const weir_tensor *log_one_plus_exp(rule_run *k, const weir_tensor *x)
{
  return c_call(k->c, weir_softplus, x, 1, 20);
}

/* t + x s (1 - t^2), t: tanh of log(1 + e^x), s: the sigmoid. */
static const weir_tensor *mish_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *t = c_tanh(k->c, log_one_plus_exp(k, x)), *s = c_sigmoid(k->c, x);
  const weir_tensor *rest = c_add_s(k->c, c_neg(k->c, c_mul(k->c, t, t)), 1);
  return c_add(k->c, t, c_mul(k->c, c_mul(k->c, x, s), rest));
}

static const weir_tensor *hardsigmoid_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *in = c_logical_and(k->c, c_gt_s(k->c, x, -3), c_lt_s(k->c, x, 3));
  return c_mul_s(k->c, ones_where(k, in), 1.0 / 6);
}

static const weir_tensor *hardswish_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *above = c_ge_s(k->c, x, 3), *low = c_le_s(k->c, x, -3);
  const weir_tensor *in = c_logical_not(k->c, c_logical_or(k->c, above, low));
  const weir_tensor *part = c_masked(k->c, in, c_add_s(k->c, c_div_s(k->c, x, 3), 0.5));
  return c_add(k->c, part, ones_where(k, above));
}

static const weir_tensor *log_sigmoid_slope(rule_run *k, const weir_tensor *x)
{
  return c_sigmoid(k->c, c_neg(k->c, x));
}

static const weir_tensor *leaky_relu_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *above = ones_where(k, c_gt_s(k->c, x, 0));
  return c_add_s(k->c, c_mul_s(k->c, above, 1 - setting(k, 0)), setting(k, 0));
}

/* number[1] above 0, else number[0] number[2] e^(number[2] x). */
static const weir_tensor *elu_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *above = c_gt_s(k->c, x, 0), *below = c_minimum_s(k->c, x, 0);
  const weir_tensor *e = c_exp(k->c, c_mul_s(k->c, below, setting(k, 2)));
  const weir_tensor *line = c_mul_s(k->c, ones_where(k, above), setting(k, 1));
  return c_add(
      k->c, line,
      c_masked(k->c, c_logical_not(k->c, above), c_mul_s(k->c, e, setting(k, 0) * setting(k, 2))));
}

static const weir_tensor *softplus_slope(rule_run *k, const weir_tensor *x)
{
  const weir_tensor *z = c_mul_s(k->c, x, setting(k, 0)), *above = c_gt_s(k->c, z, setting(k, 1));
  const weir_tensor *bent = c_masked(k->c, c_logical_not(k->c, above), c_sigmoid(k->c, z));
  return c_add(k->c, bent, ones_where(k, above));
}

static const weir_tensor *shrink_slope(rule_run *k, const weir_tensor *x)
{
  double lambda = setting(k, 0);
  const weir_tensor *above = c_gt_s(k->c, x, lambda), *below = c_lt_s(k->c, x, -lambda);
  return ones_where(k, c_logical_or(k->c, above, below));
}

static const weir_tensor *threshold_slope(rule_run *k, const weir_tensor *x)
{
  return ones_where(k, c_gt_s(k->c, x, setting(k, 0)));
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* G times the slope: by the device's operation, or, to be differentiated, by the expression. */
static void slope_back(rule_run *k, weir_op op,
                       const weir_tensor *(*slope)(rule_run *k, const weir_tensor *x))
{
  const weir_tensor *a = operand(k, 0);
  if (k->c->st) return;
  if (k->create_graph) {
    give(k, 0, c_mul(k->c, G, slope(k, a)));
    return;
  }
  elementwise_call e = {.op = op, .count = 2, .has_p = weir_op_has_p(op)};
  e.t[0] = G, e.t[1] = a;
  for (int i = 0; i < 3; i++)
    e.p[i] = k->n->r.number[i];
  give(k, 0, c_call(k->c, elementwise_run, &e));
}

/* X(function, the device's row) */
#define SLOPES(X)                                                                                  \
  X(silu, SILU)                                                                                    \
  X(gelu, GELU)                                                                                    \
  X(gelu_tanh, GELU_TANH)                                                                          \
  X(mish, MISH)                                                                                    \
  X(hardsigmoid, HARDSIGMOID)                                                                      \
  X(hardswish, HARDSWISH)                                                                          \
  X(log_sigmoid, LOG_SIGMOID)                                                                      \
  X(leaky_relu, LEAKY_RELU)                                                                        \
  X(elu, ELU)                                                                                      \
  X(softplus, SOFTPLUS)                                                                            \
  X(shrink, SHRINK)                                                                                \
  X(threshold, THRESHOLD)
#define SLOPE(name, op)                                                                            \
  void name##_back(rule_run *k)                                                                    \
  {                                                                                                \
    slope_back(k, WEIR_OP_##op##_BACKWARD, name##_slope);                                          \
  }
SLOPES(SLOPE)

/* a sigmoid(b) */
void glu_back(rule_run *k)
{
  const weir_tensor *s = c_sigmoid(k->c, operand(k, 1)), *part = c_mul(k->c, G, s);
  if (wants_gradient(k, 0)) give(k, 0, part);
  if (!wants_gradient(k, 1)) return;
  const weir_tensor *rest = c_sub(k->c, part, c_mul(k->c, part, s));
  give(k, 1, c_mul(k->c, operand(k, 0), rest));
}

void prelu_back(rule_run *k)
{
  const weir_tensor *above = c_gt_s(k->c, operand(k, 0), 0);
  if (wants_gradient(k, 0))
    give(k, 0, c_where(k->c, above, G, c_mul(k->c, G, operand_or_number(k, 1))));
  if (wants_gradient(k, 1))
    give(k, 1, c_masked(k->c, c_logical_not(k->c, above), c_mul(k->c, G, operand(k, 0))));
}
