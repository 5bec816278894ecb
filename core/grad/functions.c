/* functions.c: derivatives of mathematical functions, roundings and remainders: the rows of
 * WEIR_FUNCTION_OPS that are no activations.
 *
 * Where a slope is infinite or none, at the ends of a domain, a rule gives what torch's does. What
 * is left out by a condition is left out of what it is divided by, too, so that a second derivative
 * has no 0 / 0. */
#include <math.h>
#include "core/grad/tape.h"
#include "core/ops/ops.h"

#define G (k->g[0])

static const weir_tensor *function_input(rule_run *k)
{
  return operand(k, 0);
}

static const weir_tensor *square(rule_run *k, const weir_tensor *t)
{
  return c_mul(k->c, t, t);
}

/* Gives G times slope. */
static void give_times(rule_run *k, const weir_tensor *slope)
{
  give(k, 0, c_mul(k->c, G, slope));
}

/* ---- steps ----------------------------------------------------------------------------------- */

GIVES(zero, k->c->st ? NULL : zeros_of(k, &k->n->of[0]))

/* Of two operands. */
void steps_back(rule_run *k)
{
  for (int i = 0; i < 2; i++)
    if (wants_gradient(k, i)) give(k, i, zeros_of(k, &k->n->of[i]));
}

/* Of the first operand what the result has; of a second, which states where to, 0. */
void same_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (k->n->inputs > 1 && wants_gradient(k, 1)) give(k, 1, zeros_of(k, &k->n->of[1]));
}

/* ---- error functions, gamma ------------------------------------------------------------------ */

static const weir_tensor *bell(rule_run *k, double height)
{
  return c_mul_s(k->c, c_exp(k->c, c_neg(k->c, square(k, function_input(k)))), height);
}

GIVES(erf, c_mul(k->c, G, bell(k, M_2_SQRTPI)))
GIVES(erfc, c_mul(k->c, G, bell(k, -M_2_SQRTPI)))

/* As torch, calculated again: its result may be changed in place. */
void erfinv_back(rule_run *k)
{
  const weir_tensor *r = c_erfinv(k->c, function_input(k));
  give_times(k, c_mul_s(k->c, c_exp(k->c, square(k, r)), 1 / M_2_SQRTPI));
}

GIVES(lgamma, c_mul(k->c, G, c_digamma(k->c, function_input(k))))

/* The second derivative of log gamma, the sum of 1 / (x + i)^2 for all i: of the first 8, and of
 * the others from 9 on by Euler and Maclaurin: 1 / y + 1 / 2y^2 + 1 / 6y^3 - 1 / 30y^5 + ..., to
 * 1e-14 of it (Abramowitz and Stegun, 6.4.12). x is above 0. */
static const weir_tensor *trigamma_above(rule_run *k, const weir_tensor *x)
{
  static const double terms[] = {7.0 / 6,  -691.0 / 2730, 5.0 / 66, -1.0 / 30,
                                 1.0 / 42, -1.0 / 30,     1.0 / 6};
  const weir_tensor *sum = NULL, *y = c_add_s(k->c, x, 8);
  for (int i = 0; i < 8; i++) {
    const weir_tensor *r = c_reciprocal(k->c, c_add_s(k->c, x, i)), *s = square(k, r);
    sum = sum ? c_add(k->c, sum, s) : s;
  }
  const weir_tensor *r = c_reciprocal(k->c, y), *s = square(k, r),
                    *tail = c_mul_s(k->c, s, terms[0]);
  for (int i = 1; i < 7; i++)
    tail = c_mul(k->c, c_add_s(k->c, tail, terms[i]), s);
  tail = c_mul(k->c, tail, r);
  return c_add(k->c, sum, c_add(k->c, r, c_add(k->c, c_mul_s(k->c, s, 0.5), tail)));
}

/* Below 0 by reflection: pi^2 / sin^2(pi x) - trigamma(1 - x). */
void digamma_back(rule_run *k)
{
  const weir_tensor *x = function_input(k), *below = c_lt_s(k->c, x, 0);
  const weir_tensor *turned = c_where(k->c, below, c_add_s(k->c, c_neg(k->c, x), 1), x);
  const weir_tensor *part = trigamma_above(k, turned), *sine = c_sin(k->c, c_mul_s(k->c, x, M_PI));
  if (k->c->st) return;
  const weir_tensor *ones = c_ones_like(k->c, x, NULL);
  const weir_tensor *ratio = c_div_s(k->c, c_where(k->c, below, sine, ones), M_PI);
  const weir_tensor *mirrored = c_sub(k->c, c_reciprocal(k->c, square(k, ratio)), part);
  give_times(k, c_where(k->c, below, mirrored, part));
}

/* ---- exponentials, logarithms ---------------------------------------------------------------- */

GIVES(log1p, c_div(k->c, G, c_add_s(k->c, function_input(k), 1)))
GIVES(expm1, c_mul(k->c, G, c_add_s(k->c, outcome(k, 0), 1)))
GIVES(log2, c_div(k->c, G, c_mul_s(k->c, function_input(k), M_LN2)))
GIVES(log10, c_div(k->c, G, c_mul_s(k->c, function_input(k), M_LN10)))
GIVES(exp2, c_mul(k->c, c_mul_s(k->c, G, M_LN2), outcome(k, 0)))
GIVES(reciprocal, c_neg(k->c, c_mul(k->c, G, square(k, c_conj(k->c, outcome(k, 0))))))

/* number[0]: how far from 0 and 1 x is brought; below 0: it is not, and beyond them there is
 * none. */
void logit_back(rule_run *k)
{
  double eps = scalar_real(k->n->r.number[0]), least = eps < 0 ? 0 : eps;
  const weir_tensor *x = function_input(k);
  const weir_tensor *in = c_logical_and(k->c, c_ge_s(k->c, x, least), c_le_s(k->c, x, 1 - least));
  if (k->c->st) return;
  weir_scalar beyond = weir_float(eps < 0 ? NAN : 0.5);
  const weir_tensor *other = c_call(k->c, weir_full_like, x, beyond, NULL);
  if (eps >= 0) x = c_where(k->c, in, x, other); /* of 0 and 1 the second derivative were NaN */
  const weir_tensor *part = c_div(k->c, G, c_mul(k->c, x, c_add_s(k->c, c_neg(k->c, x), 1)));
  give(k, 0, eps >= 0 ? c_masked(k->c, in, part) : c_where(k->c, in, part, other));
}

/* a log b, 0 where a is: of a the logarithm, which is left out where both would make a NaN. */
void xlogy_back(rule_run *k)
{
  if (wants_gradient(k, 0)) {
    const weir_tensor *b = operand_or_number(k, 1), *a = function_input(k);
    const weir_tensor *still = c_logical_and(k->c, c_eq_s(k->c, a, 0), c_le_s(k->c, b, 0));
    give(k, 0, c_masked(k->c, c_logical_not(k->c, still), c_xlogy(k->c, G, b)));
  }
  if (wants_gradient(k, 1))
    give(k, 1, c_div(k->c, c_mul(k->c, G, operand_or_number(k, 0)), operand(k, 1)));
}

/* g / (1 + base^(other - own)) */
static void log_sum_back(rule_run *k, double base)
{
  const weir_tensor *a = function_input(k), *b = operand(k, 1);
  for (int i = 0; i < 2; i++) {
    if (!wants_gradient(k, i)) continue;
    const weir_tensor *off = i ? c_sub(k->c, b, a) : c_sub(k->c, a, b);
    give(k, i, c_mul(k->c, G, c_sigmoid(k->c, c_mul_s(k->c, off, log(base)))));
  }
}

void logaddexp_back(rule_run *k)
{
  log_sum_back(k, M_E);
}

void logaddexp2_back(rule_run *k)
{
  log_sum_back(k, 2);
}

/* ---- angles ---------------------------------------------------------------------------------- */

GIVES(tan, c_mul(k->c, G, c_add_s(k->c, square(k, outcome(k, 0)), 1)))

/* 1 / sqrt(sign x^2 + plus) */
static const weir_tensor *root_slope(rule_run *k, double sign, double plus)
{
  return c_rsqrt(k->c, c_add_s(k->c, c_mul_s(k->c, square(k, function_input(k)), sign), plus));
}

GIVES(asin, c_mul(k->c, G, root_slope(k, -1, 1)))
GIVES(acos, c_neg(k->c, c_mul(k->c, G, root_slope(k, -1, 1))))
GIVES(asinh, c_mul(k->c, G, root_slope(k, 1, 1)))
GIVES(acosh, c_mul(k->c, G, root_slope(k, 1, -1)))
GIVES(atan, c_div(k->c, G, c_add_s(k->c, square(k, function_input(k)), 1)))
GIVES(atanh, c_div(k->c, G, c_add_s(k->c, c_neg(k->c, square(k, function_input(k))), 1)))
GIVES(sinh, c_mul(k->c, G, c_cosh(k->c, function_input(k))))
GIVES(cosh, c_mul(k->c, G, c_sinh(k->c, function_input(k))))

/* (y cos y - sin y) / (y x), y: pi x; 0 at 0. */
void sinc_back(rule_run *k)
{
  const weir_tensor *x = function_input(k), *none = c_eq_s(k->c, x, 0);
  if (k->c->st) return;
  const weir_tensor *ones = c_ones_like(k->c, x, NULL);
  const weir_tensor *safe = c_where(k->c, none, ones, x), *y = c_mul_s(k->c, safe, M_PI);
  const weir_tensor *up = c_sub(k->c, c_mul(k->c, y, c_cos(k->c, y)), c_sin(k->c, y));
  const weir_tensor *slope = c_div(k->c, up, c_mul(k->c, y, safe));
  give(k, 0, c_masked(k->c, c_logical_not(k->c, none), c_mul(k->c, G, slope)));
}

/* a / (a^2 + b^2), 0 where both are. */
void atan2_back(rule_run *k)
{
  const weir_tensor *a = function_input(k), *b = operand(k, 1);
  const weir_tensor *all = c_add(k->c, square(k, a), square(k, b)), *some = c_ne_s(k->c, all, 0);
  const weir_tensor *part = c_masked(k->c, some, c_div(k->c, G, all));
  if (wants_gradient(k, 0)) give(k, 0, c_mul(k->c, part, b));
  if (wants_gradient(k, 1)) give(k, 1, c_neg(k->c, c_mul(k->c, part, a)));
}

void hypot_back(rule_run *k)
{
  const weir_tensor *r = outcome(k, 0);
  for (int i = 0; i < 2; i++)
    if (wants_gradient(k, i)) give(k, i, c_mul(k->c, G, c_div(k->c, operand(k, i), r)));
}

/* ---- remainders, signs, the larger ----------------------------------------------------------- */

/* Of the divisor: as often as it was taken off. */
void remainder_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (wants_gradient(k, 1)) {
    const weir_tensor *times = c_floor(k->c, c_div(k->c, operand_or_number(k, 0), operand(k, 1)));
    give(k, 1, c_neg(k->c, c_mul(k->c, G, times)));
  }
}

void fmod_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (wants_gradient(k, 1)) {
    const weir_tensor *times = c_trunc(k->c, c_div(k->c, operand_or_number(k, 0), operand(k, 1)));
    give(k, 1, c_neg(k->c, c_mul(k->c, G, times)));
  }
}

/* Whether the sign was exchanged; 0 at 0. */
GIVES_BOTH(copysign,
           c_mul(k->c, G,
                 c_mul(k->c, c_sign(k->c, function_input(k)), c_sign(k->c, outcome(k, 0)))),
           zeros_of(k, &k->n->of[1]))
GIVES(nan_to_num, c_masked(k->c, c_isfinite(k->c, function_input(k)), G))

/* Half to each of equals, all to a number next to NaN. */
static void finite_extreme_back(rule_run *k, bool largest)
{
  const weir_tensor *t[2] = {function_input(k), operand(k, 1)};
  const weir_tensor *half = c_where(k->c, c_eq(k->c, t[0], t[1]), c_div_s(k->c, G, 2), G);
  for (int i = 0; i < 2; i++) {
    if (!wants_gradient(k, i)) continue;
    const weir_tensor *own = t[i], *other = t[!i];
    const weir_tensor *better = largest ? c_ge(k->c, own, other) : c_le(k->c, own, other);
    if (i)
      better = c_logical_or(
          k->c, better,
          c_logical_and(k->c, c_isnan(k->c, other), c_logical_not(k->c, c_isnan(k->c, own))));
    else
      better = c_logical_or(k->c, better, c_isnan(k->c, other));
    give(k, i, c_masked(k->c, better, half));
  }
}

void fmax_back(rule_run *k)
{
  finite_extreme_back(k, true);
}

void fmin_back(rule_run *k)
{
  finite_extreme_back(k, false);
}

/* ---- three operands -------------------------------------------------------------------------- */

void lerp_back(rule_run *k)
{
  if (wants_gradient(k, 0) || wants_gradient(k, 1)) {
    const weir_tensor *part = c_mul(k->c, G, operand_or_number(k, 2));
    if (wants_gradient(k, 0)) give(k, 0, c_sub(k->c, G, part));
    if (wants_gradient(k, 1)) give(k, 1, part);
  }
  if (wants_gradient(k, 2))
    give(k, 2, c_mul(k->c, G, c_sub(k->c, operand(k, 1), function_input(k))));
}

/* Next to tensors half to each of equals; a bound that the other one crosses has none, and of equal
 * bounds neither has what the operand gives alone. */
static void clamp_tensors_back(rule_run *k)
{
  const weir_tensor *x = function_input(k), *low = operand_or_number(k, 1),
                    *high = operand_or_number(k, 2);
  const weir_tensor *below = c_lt(k->c, x, low), *above = c_gt(k->c, x, high),
                    *apart = c_lt(k->c, low, high);
  const weir_tensor *on_low = c_logical_and(k->c, apart, c_eq(k->c, x, low));
  const weir_tensor *on_high = c_logical_and(k->c, apart, c_eq(k->c, x, high));
  const weir_tensor *half =
      c_where(k->c, c_logical_or(k->c, on_low, on_high), c_div_s(k->c, G, 2), G);
  if (wants_gradient(k, 0))
    give(k, 0, c_masked(k->c, c_logical_not(k->c, c_logical_or(k->c, below, above)), half));
  if (wants_gradient(k, 1)) {
    const weir_tensor *lifts = c_logical_and(k->c, below, c_le(k->c, low, high));
    give(k, 1, c_masked(k->c, c_logical_or(k->c, lifts, on_low), half));
  }
  if (wants_gradient(k, 2)) {
    const weir_tensor *lowers = c_logical_or(k->c, above, c_gt(k->c, low, high));
    give(k, 2, c_masked(k->c, c_logical_or(k->c, lowers, on_high), half));
  }
}

/* Between numbers, and not on them. */
void clamp_back(rule_run *k)
{
  if (!is_number(k, 1) || !is_number(k, 2)) {
    clamp_tensors_back(k);
    return;
  }
  double low = scalar_real(k->n->r.number[1]), high = scalar_real(k->n->r.number[2]);
  const weir_tensor *x = function_input(k);
  give(k, 0, c_masked(k->c, c_logical_and(k->c, c_gt_s(k->c, x, low), c_lt_s(k->c, x, high)), G));
}

static const weir_tensor *valued(rule_run *k)
{
  return c_mul_scalar(k->c, G, k->n->r.alpha);
}

void addcmul_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (wants_gradient(k, 1)) give(k, 1, c_mul(k->c, valued(k), operand(k, 2)));
  if (wants_gradient(k, 2)) give(k, 2, c_mul(k->c, valued(k), operand(k, 1)));
}

void addcdiv_back(rule_run *k)
{
  if (wants_gradient(k, 0)) give(k, 0, G);
  if (!wants_gradient(k, 1) && !wants_gradient(k, 2)) return;
  const weir_tensor *c = operand(k, 2), *part = c_div(k->c, valued(k), c);
  if (wants_gradient(k, 1)) give(k, 1, part);
  if (wants_gradient(k, 2))
    give(k, 2, c_neg(k->c, c_div(k->c, c_mul(k->c, part, operand(k, 1)), c)));
}
