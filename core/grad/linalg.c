/* linalg.c: derivatives of determinants, inverses, solutions, and Cholesky's factor.
 *
 * X' A = G stands for what is solved on the way back: the matrix turned, its triangle the other. */
#include "core/grad/tape.h"
#include "core/weir/linalg.h"

#define G (k->g[0])
#define N (k->n->r.n)

static const weir_tensor *turned(rule_run *k, const weir_tensor *t)
{
  return c_transpose(k, t, -2, -1);
}

static const weir_tensor *more_dims(rule_run *k, const weir_tensor *t, int count)
{
  for (int i = 0; i < count && !k->c.st; i++) {
    weir_tensor *o = NULL;
    t = calc_keep(&k->c, weir_unsqueeze(&o, t, -1), &o);
  }
  return k->c.st ? NULL : t;
}

static const weir_tensor *triangle(rule_run *k, const weir_tensor *t, int64_t diagonal, bool upper)
{
  weir_tensor *o = NULL;
  if (k->c.st) return NULL;
  return calc_keep(&k->c, upper ? weir_triu(&o, t, diagonal) : weir_tril(&o, t, diagonal), &o);
}

/* The inverse, turned. */
static const weir_tensor *turned_inverse(rule_run *k, const weir_tensor *a)
{
  weir_tensor *o = NULL;
  return turned(k, calc_keep(&k->c, k->c.st ? k->c.st : weir_inv(&o, a), &o));
}

static void inv_back(rule_run *k)
{
  const weir_tensor *x = turned(k, outcome(k, 0));
  give(k, 0, c_neg(k, c_matmul(k, c_matmul(k, x, G), x)));
}

static void det_back(rule_run *k)
{
  const weir_tensor *scale = c_mul(k, G, outcome(k, 0));
  give(k, 0, c_mul(k, more_dims(k, scale, 2), turned_inverse(k, operand(k, 0))));
}

/* Of the sign nothing comes back. */
static void slogdet_back(rule_run *k)
{
  const weir_tensor *g = k->g[1];
  if (!g) return;
  give(k, 0, c_mul(k, more_dims(k, g, 2), turned_inverse(k, operand(k, 0))));
}

/* n[0]: b was a vector, or a batch of them. */
static void solve_back(rule_run *k)
{
  weir_tensor *o = NULL, *flat = NULL;
  const weir_tensor *a = turned(k, operand(k, 0)), *g = more_dims(k, G, (int)N[0]);
  const weir_tensor *b = calc_keep(&k->c, k->c.st ? k->c.st : weir_solve(&o, a, g), &o);
  if (wants_gradient(k, 0)) {
    const weir_tensor *x = more_dims(k, outcome(k, 0), (int)N[0]);
    give(k, 0, c_neg(k, c_matmul(k, b, turned(k, x))));
  }
  if (!wants_gradient(k, 1) || k->c.st) return;
  if (N[0]) b = calc_keep(&k->c, weir_squeeze(&flat, b, -1), &flat);
  give(k, 1, b);
}

/* n: upper, left, unitriangular. */
static void solve_triangular_back(rule_run *k)
{
  weir_tensor *o = NULL;
  bool upper = N[0], left = N[1], unit = N[2];
  const weir_tensor *a = turned(k, operand(k, 0));
  weir_status st = k->c.st;
  if (!st) st = weir_solve_triangular(&o, a, G, !upper, left, unit);
  const weir_tensor *b = calc_keep(&k->c, st, &o);
  if (wants_gradient(k, 0)) {
    const weir_tensor *x = turned(k, outcome(k, 0));
    const weir_tensor *whole = left ? c_matmul(k, b, x) : c_matmul(k, x, b);
    give(k, 0, c_neg(k, triangle(k, whole, upper ? unit : -(int64_t)unit, upper)));
  }
  if (wants_gradient(k, 1)) give(k, 1, b);
}

/* n[0]: upper. */
static void cholesky_back(rule_run *k)
{
  weir_tensor *one = NULL, *two = NULL;
  const weir_tensor *l = outcome(k, 0), *g = G;
  if (N[0]) l = turned(k, l), g = turned(k, g);
  const weir_tensor *p = c_matmul(k, turned(k, l), g);
  p = c_mul_s(k, c_add(k, triangle(k, p, 0, false), triangle(k, p, -1, false)), 0.5);
  const weir_tensor *up = turned(k, l);
  weir_status st = k->c.st;
  if (!st) st = weir_solve_triangular(&one, up, p, true, true, false);
  p = calc_keep(&k->c, st, &one);
  if (!st && p) st = weir_solve_triangular(&two, l, p, false, false, false);
  p = p ? calc_keep(&k->c, st, &two) : NULL;
  give(k, 0, c_mul_s(k, c_add(k, p, turned(k, p)), 0.5));
}

static const grad_rule rules[RECORD_KINDS] = {
    [RECORD_INV] = {"LinalgInvExBackward0", inv_back, {KEEP_OUT}},
    [RECORD_DET] = {"LinalgDetBackward0", det_back, {KEEP_A | KEEP_OUT}},
    [RECORD_SLOGDET] = {"LinalgSlogdetBackward0", slogdet_back, {KEEP_A}},
    [RECORD_SOLVE] = {"LinalgSolveExBackward0", solve_back, {KEEP_A | KEEP_OUT, KEEP_A}},
    [RECORD_SOLVE_TRIANGULAR] = {"LinalgSolveTriangularBackward0",
                                 solve_triangular_back,
                                 {KEEP_A | KEEP_OUT, KEEP_A}},
    [RECORD_CHOLESKY] = {"LinalgCholeskyExBackward0", cholesky_back, {KEEP_OUT}},
};

const grad_rule *linalg_rule(const record *r)
{
  const grad_rule *rule = &rules[r->kind];
  return rule->name ? rule : NULL;
}
