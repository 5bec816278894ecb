/* reduce.c: derivatives of the rows of WEIR_REDUCE_OPS. */
#include "core/grad/tape.h"

#define G (k->g[0])

static uint32_t mask_of(const rule_run *k)
{
  return (uint32_t)k->n->r.n[0];
}

/* The operand's sizes, those that were reduced 1. */
static weir_shape kept_shape(const rule_run *k)
{
  weir_shape s = k->n->of[0].shape;
  for (int d = 0; d < s.count; d++)
    if (mask_of(k) >> d & 1) s.size[d] = 1;
  return s;
}

static const weir_tensor *restored(rule_run *k, const weir_tensor *t)
{
  return c_reshape(k->c, t, kept_shape(k));
}

static const weir_tensor *spread_gradient(rule_run *k, const weir_tensor *t)
{
  return c_expand(k->c, restored(k, t), k->n->of[0].shape);
}

/* How many elements became one. */
static double count_of(const rule_run *k)
{
  double n = 1;
  for (int d = 0; d < k->n->of[0].shape.count; d++)
    if (mask_of(k) >> d & 1) n *= (double)k->n->of[0].shape.size[d];
  return n;
}

GIVES(sum, spread_gradient(k, G))
GIVES(mean, spread_gradient(k, c_div_s(k->c, G, count_of(k))))

void nansum_back(rule_run *k)
{
  const weir_tensor *a = operand(k, 0);
  give(k, 0, c_masked(k->c, c_eq(k->c, a, a), spread_gradient(k, G)));
}

/* The product of all others: through the element, or, of the one 0 there is, the product of the
 * rest. */
void prod_back(rule_run *k)
{
  const weir_tensor *a = operand(k, 0), *zero = c_eq_s(k->c, a, 0), *one = NULL, *rest = NULL;
  if (k->c->st) return;
  one = c_ones_like(k->c, a, NULL);
  const weir_tensor *filled = c_where(k->c, zero, one, a);
  const weir_tensor *zeros = c_sum_mask(k->c, zero, mask_of(k), true);
  int dims[WEIR_MAX_DIMS], count = 0;
  for (int d = 0; d < k->n->of[0].shape.count; d++)
    if (mask_of(k) >> d & 1) dims[count++] = d;
  if (k->c->st) return;
  rest = filled;
  if (count) rest = c_call(k->c, weir_prod_dims, filled, dims, count, true);
  const weir_tensor *none = c_masked(k->c, c_eq_s(k->c, zeros, 0), c_div(k->c, rest, filled));
  const weir_tensor *single = c_logical_and(k->c, zero, c_eq_s(k->c, zeros, 1));
  const weir_tensor *others = c_where(k->c, single, rest, none);
  give(k, 0, c_mul(k->c, restored(k, G), others));
}

/* Shared by all that are equal to it. */
void extremum_back(rule_run *k)
{
  const weir_tensor *is = c_eq(k->c, operand(k, 0), restored(k, outcome(k, 0)));
  const weir_tensor *count = c_sum_mask(k->c, is, mask_of(k), true);
  give(k, 0, c_masked(k->c, is, c_div(k->c, restored(k, G), count)));
}

/* The places along the reduced dimension, with it alone. */
static const weir_tensor *places(rule_run *k, int dim)
{
  weir_shape s = k->n->of[0].shape;
  weir_options options = {.dtype = WEIR_INT64, .device = k->n->of[0].device};
  if (k->c->st) return NULL;
  const weir_tensor *t = c_call(k->c, weir_arange, weir_int(0), weir_int(s.count ? s.size[dim] : 1),
                                weir_int(1), &options);
  for (int d = 0; d < s.count; d++)
    if (d != dim) s.size[d] = 1;
  return c_reshape(k->c, t, s);
}

/* To the one that was chosen. */
void index_back(rule_run *k)
{
  int dim = 0;
  while (dim < k->n->of[0].shape.count - 1 && !(mask_of(k) >> dim & 1))
    dim++;
  if (!G) return;
  const weir_tensor *is = c_eq(k->c, places(k, dim), restored(k, outcome(k, 1)));
  give(k, 0, c_masked(k->c, is, spread_gradient(k, G)));
}

/* g 2 (a - mean) / (n - correction), and what the mean adds. */
static const weir_tensor *variance_part(rule_run *k, const weir_tensor *g)
{
  double n = count_of(k), left = n - k->n->r.p[0];
  const weir_tensor *a = operand(k, 0);
  if (k->c->st) return NULL;
  const weir_tensor *sum = c_sum_mask(k->c, a, mask_of(k), true);
  if (k->c->st) return NULL;
  const weir_tensor *middle = c_div_s(k->c, sum, n);
  return c_mul(k->c, c_mul_s(k->c, restored(k, g), 2 / left), c_sub(k->c, a, middle));
}

void var_back(rule_run *k)
{
  const weir_tensor *both = G ? variance_part(k, G) : NULL;
  if (k->g[1]) {
    const weir_tensor *mean = spread_gradient(k, c_div_s(k->c, k->g[1], count_of(k)));
    both = both ? c_add(k->c, both, mean) : mean;
  }
  give(k, 0, both);
}

void std_back(rule_run *k)
{
  const weir_tensor *both = NULL;
  if (G) {
    const weir_tensor *r = outcome(k, 0);
    const weir_tensor *part =
        c_masked(k->c, c_ne_s(k->c, r, 0), c_div(k->c, G, c_mul_s(k->c, r, 2)));
    both = variance_part(k, part);
  }
  if (k->g[1]) {
    const weir_tensor *mean = spread_gradient(k, c_div_s(k->c, k->g[1], count_of(k)));
    both = both ? c_add(k->c, both, mean) : mean;
  }
  give(k, 0, both);
}

/* A count has no gradient. */
void vector_norm_back(rule_run *k)
{
  double p = k->n->r.p[0];
  const weir_tensor *a = operand(k, 0), *norm = restored(k, outcome(k, 0)), *g = restored(k, G);
  if (p == 0) return;
  if (p == 1) {
    give(k, 0, c_mul(k->c, c_sign(k->c, a), g));
    return;
  }
  const weir_tensor *whole = c_ne_s(k->c, norm, 0);
  if (p == 2) {
    give(k, 0, c_mul(k->c, a, c_masked(k->c, whole, c_div(k->c, g, norm))));
    return;
  }
  const weir_tensor *scale = c_masked(k->c, whole, c_div(k->c, g, c_pow_s(k->c, norm, p - 1)));
  const weir_tensor *size = c_pow_s(k->c, c_abs(k->c, a), p - 1);
  if (p < 2) size = c_masked(k->c, c_ne_s(k->c, a, 0), size);
  give(k, 0, c_mul(k->c, c_mul(k->c, c_sign(k->c, a), size), scale));
}
