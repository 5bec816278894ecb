/* elementwise.c: rules of arithmetic and choices; functions.c and activation.c have the other rows
 * of WEIR_OPS.
 *
 * A rule gives the gradient as the result has it; backward.c sums what was broadcast and converts
 * back what was converted. */
#include <math.h>
#include "core/grad/tape.h"
#include "core/ops/ops.h"

#define G (k->g[0])

static const weir_tensor *a_of(rule_run *k)
{
  return operand(k, 0);
}

static const weir_tensor *b_of(rule_run *k)
{
  return operand(k, 1);
}

static const weir_tensor *result_of(rule_run *k)
{
  return outcome(k, 0);
}

static weir_scalar conjugate(weir_scalar s)
{
  if (s.dtype == WEIR_COMPLEX64) s.imag = -s.imag;
  return s;
}

/* t times, and through, operand i, which may be a number. */
static const weir_tensor *times_operand(rule_run *k, const weir_tensor *t, int i)
{
  if (!is_number(k, i)) return c_mul(k->c, t, c_conj(k->c, operand(k, i)));
  weir_scalar by = conjugate(k->n->r.number[i]);
  return c_mul_scalar(k->c, t, by);
}

static const weir_tensor *through(rule_run *k, const weir_tensor *t, int i)
{
  if (!is_number(k, i)) return c_div(k->c, t, c_conj(k->c, operand(k, i)));
  weir_scalar by = conjugate(k->n->r.number[i]);
  return c_div_scalar(k->c, t, by);
}

/* G times the slope that the device has an operation for, of t. */
static void slope_of(rule_run *k, weir_op op, const weir_tensor *t, const weir_scalar p[3])
{
  if (k->c->st) return;
  elementwise_call e = {.op = op, .count = 2, .has_p = weir_op_has_p(op)};
  e.t[0] = G, e.t[1] = t;
  for (int i = 0; i < 3; i++)
    e.p[i] = p[i];
  give(k, 0, c_call(k->c, elementwise_run, &e));
}

/* ---- one operand ------------------------------------------------------------------------------
 * Where the gradient needs a derivative itself, it is made of operations that have one; else the
 * device has one operation for it, without temporaries. */

GIVES(neg, c_neg(k->c, G))

void abs_back(rule_run *k)
{
  const weir_tensor *a = a_of(k);
  if (k->c->st || a->dtype != WEIR_COMPLEX64) {
    give(k, 0, c_mul(k->c, G, c_sign(k->c, a)));
    return;
  }
  const weir_tensor *r = c_abs(k->c, a); /* the direction; 0 has none */
  give(k, 0, c_mul(k->c, G, c_masked(k->c, c_ne_s(k->c, r, 0), c_div(k->c, a, r))));
}

void relu_back(rule_run *k)
{
  static const weir_scalar bound[3] = {{.dtype = WEIR_FLOAT64}};
  if (k->create_graph)
    give(k, 0, c_masked(k->c, c_gt_s(k->c, result_of(k), 0), G));
  else
    slope_of(k, WEIR_OP_THRESHOLD_BACKWARD, result_of(k), bound);
}

GIVES(exp, c_mul(k->c, G, c_conj(k->c, result_of(k))))
GIVES(log, c_div(k->c, G, c_conj(k->c, a_of(k))))
GIVES(sqrt, c_div(k->c, G, c_mul_s(k->c, c_conj(k->c, result_of(k)), 2)))
GIVES(rsqrt, c_mul(k->c, c_mul_s(k->c, G, -0.5), c_pow_s(k->c, c_conj(k->c, result_of(k)), 3)))
GIVES(sin, c_mul(k->c, G, c_conj(k->c, c_cos(k->c, a_of(k)))))
GIVES(cos, c_mul(k->c, G, c_conj(k->c, c_neg(k->c, c_sin(k->c, a_of(k))))))

/* g (1 - t t) */
void tanh_back(rule_run *k)
{
  const weir_tensor *t = c_conj(k->c, result_of(k));
  if (k->create_graph || k->n->of[0].dtype == WEIR_COMPLEX64)
    give(k, 0, c_sub(k->c, G, c_mul(k->c, G, c_mul(k->c, t, t))));
  else
    slope_of(k, WEIR_OP_TANH_BACKWARD, t, k->n->r.number);
}

void sigmoid_back(rule_run *k)
{
  const weir_tensor *s = c_conj(k->c, result_of(k)), *part;
  if (!k->create_graph && k->n->of[0].dtype != WEIR_COMPLEX64) {
    slope_of(k, WEIR_OP_SIGMOID_BACKWARD, s, k->n->r.number);
    return;
  }
  part = c_mul(k->c, G, s);
  give(k, 0, c_sub(k->c, part, c_mul(k->c, part, s)));
}

/* ---- two operands ---------------------------------------------------------------------------- */

/* alpha t, or -alpha t. */
static const weir_tensor *scaled_by_alpha(rule_run *k, const weir_tensor *t, bool minus)
{
  weir_scalar alpha = k->n->r.alpha;
  if (scalar_real(alpha) == 1) return minus ? c_neg(k->c, t) : t;
  if (alpha.dtype == WEIR_FLOAT64)
    alpha.f = minus ? -alpha.f : alpha.f;
  else
    alpha = weir_float(minus ? -scalar_real(alpha) : scalar_real(alpha));
  return c_mul_scalar(k->c, t, alpha);
}

GIVES_BOTH(add, G, scaled_by_alpha(k, G, false))
GIVES_BOTH(sub, G, scaled_by_alpha(k, G, true))
GIVES_BOTH(mul, times_operand(k, G, 1), times_operand(k, G, 0))

/* The number, or what was kept, as a tensor that broadcasts. */
static const weir_tensor *quotient(rule_run *k)
{
  if (!is_number(k, 0)) return c_div(k->c, a_of(k), b_of(k));
  const weir_tensor *b = b_of(k);
  return c_scalar_div(k->c, k->n->r.number[0], b);
}

GIVES_BOTH(div, through(k, G, 1),
           c_neg(k->c, c_mul(k->c, G, c_conj(k->c, c_div(k->c, quotient(k), b_of(k))))))

/* ---- powers ---------------------------------------------------------------------------------- */

/* g b a^(b - 1), 0 where b is. */
static void pow_base(rule_run *k)
{
  const weir_tensor *a = a_of(k);
  if (is_number(k, 1)) {
    double b = scalar_real(k->n->r.number[1]);
    if (b == 0)
      give(k, 0, k->c->st ? NULL : zeros_of(k, &k->n->of[0]));
    else
      give(k, 0, c_mul(k->c, G, c_conj(k->c, c_mul_s(k->c, c_pow_s(k->c, a, b - 1), b))));
    return;
  }
  const weir_tensor *b = b_of(k), *part = c_mul(k->c, b, c_pow(k->c, a, c_sub_s(k->c, b, 1)));
  give(k, 0, c_masked(k->c, c_ne_s(k->c, b, 0), c_mul(k->c, G, part)));
}

/* g a^b log(a), 0 where a is and b is not negative. */
static void pow_exponent(rule_run *k)
{
  const weir_tensor *r = result_of(k), *b = b_of(k);
  if (is_number(k, 0)) {
    double a = scalar_real(k->n->r.number[0]);
    const weir_tensor *part = c_mul(k->c, G, c_mul_s(k->c, r, log(a)));
    give(k, 1, a != 0 ? part : c_masked(k->c, c_lt_s(k->c, b, 0), part));
    return;
  }
  const weir_tensor *a = a_of(k), *part = c_mul(k->c, G, c_mul(k->c, r, c_log(k->c, a)));
  const weir_tensor *still = c_logical_and(k->c, c_eq_s(k->c, a, 0), c_ge_s(k->c, b, 0));
  give(k, 1, c_masked(k->c, c_logical_not(k->c, still), part));
}

void pow_back(rule_run *k)
{
  if (wants_gradient(k, 0)) pow_base(k);
  if (wants_gradient(k, 1)) pow_exponent(k);
}

/* ---- choices --------------------------------------------------------------------------------- */

/* Half to each of equals; next to a number, which is a bound, none: so torch's clamp since 2.15. */
static void extreme_back(rule_run *k, bool largest)
{
  const weir_tensor *half, *a, *b;
  if (is_number(k, 0) || is_number(k, 1)) {
    int at = is_number(k, 0);
    double bound = scalar_real(k->n->r.number[!at]);
    const weir_tensor *t = operand(k, at);
    give(k, at, c_masked(k->c, largest ? c_gt_s(k->c, t, bound) : c_lt_s(k->c, t, bound), G));
    return;
  }
  a = a_of(k), b = b_of(k);
  half = c_where(k->c, c_eq(k->c, a, b), c_div_s(k->c, G, 2), G);
  const weir_tensor *above = c_gt(k->c, a, b), *below = c_lt(k->c, a, b);
  if (wants_gradient(k, 0))
    give(k, 0, c_masked(k->c, c_logical_not(k->c, largest ? below : above), half));
  if (wants_gradient(k, 1))
    give(k, 1, c_masked(k->c, c_logical_not(k->c, largest ? above : below), half));
}

void maximum_back(rule_run *k)
{
  extreme_back(k, true);
}

void minimum_back(rule_run *k)
{
  extreme_back(k, false);
}

void where_back(rule_run *k)
{
  const weir_tensor *truth = a_of(k);
  if (wants_gradient(k, 1)) give(k, 1, c_masked(k->c, truth, G));
  if (wants_gradient(k, 2)) give(k, 2, c_masked(k->c, c_logical_not(k->c, truth), G));
}
