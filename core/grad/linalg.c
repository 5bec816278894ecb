/* linalg.c: derivatives of determinants, inverses, solutions and factorisations.
 *
 * X' A = G stands for what is solved on the way back: the matrix turned, its triangle the other.
 *
 * Of factorisations: J. Townsend, "Differentiating the Singular Value Decomposition" (2016); S. F.
 * Walter, L. Lehmann, "Algorithmic differentiation of linear algebra functions" (2012, section 3,
 * QR, the symmetric eigenproblem); M. Seeger et al., "Auto-Differentiating Linear Algebra" (2017);
 * G. H. Golub, V. Pereyra, "The Differentiation of Pseudo-Inverses" (1973). Eigenvectors and
 * singular vectors are free in sign, and among equal values altogether: there a derivative through
 * them is infinite or NaN, as PyTorch's; of values alone it is not.
 *
 * Words. skew(X): X - X^T. E: differences of values, l_j - l_i, with 1s as the diagonal. */
#include "core/grad/tape.h"
#include "core/weir/linalg.h"

#define G (k->g[0])
#define N (k->n->r.n)

static const weir_tensor *turned_matrix(rule_run *k, const weir_tensor *t)
{
  return c_transpose(k->c, t, -2, -1);
}

static const weir_tensor *more_dims(rule_run *k, const weir_tensor *t, int count)
{
  for (int i = 0; i < count && !k->c->st; i++) {
    t = c_unsqueeze(k->c, t, -1);
  }
  return k->c->st ? NULL : t;
}

/* (..., n) as rows: (..., 1, n). */
static const weir_tensor *as_row(rule_run *k, const weir_tensor *t)
{
  return c_unsqueeze(k->c, t, -2);
}

static const weir_tensor *triangle(rule_run *k, const weir_tensor *t, int64_t diagonal, bool upper)
{
  return upper ? c_triu(k->c, t, diagonal) : c_tril(k->c, t, diagonal);
}

static const weir_tensor *narrow_to(rule_run *k, const weir_tensor *t, int dim, int64_t length)
{
  if (!t || k->c->st || t->size[t->dims + dim] == length) return t;
  return c_narrow(k->c, t, dim, 0, length);
}

/* The inverse, turned. */
static const weir_tensor *turned_inverse(rule_run *k, const weir_tensor *a)
{
  return turned_matrix(k, c_call(k->c, weir_inv, a));
}

void inv_back(rule_run *k)
{
  const weir_tensor *x = turned_matrix(k, outcome(k, 0));
  give(k, 0, c_neg(k->c, c_matmul(k->c, c_matmul(k->c, x, G), x)));
}

/* Whether an element is 0: read from the device. */
static bool has_zero(rule_run *k, const weir_tensor *t)
{
  weir_scalar truth = {.dtype = WEIR_BOOL};
  const weir_tensor *is = c_eq_s(k->c, t, 0);
  is = c_any(k->c, is);
  c_do(k->c, weir_item(&truth, is));
  return !k->c->st && truth.i;
}

static const weir_tensor *c_det(rule_run *k, const weir_tensor *t)
{
  return c_call(k->c, weir_det, t);
}

/* The product of all other elements along the last dimension. */
static const weir_tensor *others_product(rule_run *k, const weir_tensor *s)
{
  const weir_tensor *zero = c_eq_s(k->c, s, 0), *zeros = NULL;
  const weir_tensor *one = c_ones_like(k->c, s, NULL);
  if (k->c->st) return NULL;
  zeros = c_sum_mask(k->c, zero, 1u << (s->dims - 1), true);
  const weir_tensor *rest = c_where(k->c, zero, one, s);
  const weir_tensor *all = c_prod_dim(k->c, rest, -1, true);
  const weir_tensor *counts = c_where(k->c, zero, c_eq_s(k->c, zeros, 1), c_eq_s(k->c, zeros, 0));
  return c_masked(k->c, counts, c_div(k->c, all, rest));
}

/* The derivative of a determinant by the adjugate: det(U) det(V^T) U diag(products of others)
 * V^T. */
static const weir_tensor *adjugate(rule_run *k, const weir_tensor *a)
{
  weir_tensor *u = NULL, *s = NULL, *vh = NULL;
  c_do(k->c, weir_svd(&u, &s, &vh, a, true));
  if (k->c->st) return NULL;
  (void)calc_keep(k->c, WEIR_OK, &u);
  (void)calc_keep(k->c, WEIR_OK, &s);
  (void)calc_keep(k->c, WEIR_OK, &vh);
  const weir_tensor *sign = c_mul(k->c, c_det(k, u), c_det(k, vh));
  const weir_tensor *d = c_mul(k->c, more_dims(k, sign, 1), others_product(k, s));
  return c_matmul(k->c, c_mul(k->c, u, as_row(k, d)), vh);
}

/* det(A) A^-T, which a singular matrix has, too. */
void det_back(rule_run *k)
{
  const weir_tensor *a = operand(k, 0), *det = outcome(k, 0);
  if (has_zero(k, det)) {
    give(k, 0, c_mul(k->c, more_dims(k, G, 2), adjugate(k, a)));
    return;
  }
  give(k, 0, c_mul(k->c, more_dims(k, c_mul(k->c, G, det), 2), turned_inverse(k, a)));
}

/* Of the sign nothing comes back. */
void slogdet_back(rule_run *k)
{
  const weir_tensor *g = k->g[1];
  if (!g) return;
  give(k, 0, c_mul(k->c, more_dims(k, g, 2), turned_inverse(k, operand(k, 0))));
}

/* n[0]: b was a vector, or a batch of them. */
void solve_back(rule_run *k)
{
  const weir_tensor *a = turned_matrix(k, operand(k, 0)), *g = more_dims(k, G, (int)N[0]);
  const weir_tensor *b = c_call(k->c, weir_solve, a, g);
  if (wants_gradient(k, 0)) {
    const weir_tensor *x = more_dims(k, outcome(k, 0), (int)N[0]);
    give(k, 0, c_neg(k->c, c_matmul(k->c, b, turned_matrix(k, x))));
  }
  if (!wants_gradient(k, 1) || k->c->st) return;
  if (N[0]) b = c_squeeze(k->c, b, -1);
  give(k, 1, b);
}

/* n: upper, left, unitriangular. */
void solve_triangular_back(rule_run *k)
{
  bool upper = N[0], left = N[1], unit = N[2];
  const weir_tensor *a = turned_matrix(k, operand(k, 0));
  const weir_tensor *b = c_call(k->c, weir_solve_triangular, a, G, !upper, left, unit);
  if (wants_gradient(k, 0)) {
    const weir_tensor *x = turned_matrix(k, outcome(k, 0));
    const weir_tensor *whole = left ? c_matmul(k->c, b, x) : c_matmul(k->c, x, b);
    give(k, 0, c_neg(k->c, triangle(k, whole, upper ? unit : -(int64_t)unit, upper)));
  }
  if (wants_gradient(k, 1)) give(k, 1, b);
}

/* n[0]: upper. */
void cholesky_back(rule_run *k)
{
  const weir_tensor *l = outcome(k, 0), *g = G;
  if (N[0]) l = turned_matrix(k, l), g = turned_matrix(k, g);
  const weir_tensor *p = c_matmul(k->c, turned_matrix(k, l), g);
  p = c_mul_s(k->c, c_add(k->c, triangle(k, p, 0, false), triangle(k, p, -1, false)), 0.5);
  const weir_tensor *up = turned_matrix(k, l);
  p = c_call(k->c, weir_solve_triangular, up, p, true, true, false);
  p = c_call(k->c, weir_solve_triangular, l, p, false, false, false);
  give(k, 0, c_mul_s(k->c, c_add(k->c, p, turned_matrix(k, p)), 0.5));
}

/* n[0]: upper. As torch's: of all of L, of which one triangle is read. */
void cholesky_solve_back(rule_run *k)
{
  const weir_tensor *l = operand(k, 1), *x = outcome(k, 0);
  const weir_tensor *b = c_call(k->c, weir_cholesky_solve, G, l, N[0]);
  give(k, 0, b);
  if (!wants_gradient(k, 1)) return;
  const weir_tensor *both = c_matmul(k->c, b, turned_matrix(k, x));
  both = c_neg(k->c, c_add(k->c, both, turned_matrix(k, both)));
  give(k, 1, N[0] ? c_matmul(k->c, l, both) : c_matmul(k->c, both, l));
}

void cholesky_inverse_back(rule_run *k)
{
  const weir_tensor *l = operand(k, 0), *x = outcome(k, 0);
  const weir_tensor *both =
      c_matmul(k->c, x, c_matmul(k->c, c_add(k->c, G, turned_matrix(k, G)), x));
  both = c_neg(k->c, both);
  give(k, 0, N[0] ? c_matmul(k->c, l, both) : c_matmul(k->c, both, l));
}

/* ---- LU -------------------------------------------------------------------------------------- */

/* x of t^T x = b, or of x t^T = b; upper, unit: of t^T. */
static const weir_tensor *solve_turned(rule_run *k, const weir_tensor *t, const weir_tensor *b,
                                       bool left)
{
  const weir_tensor *low = turned_matrix(k, t);
  return c_call(k->c, weir_solve_triangular, low, b, left, left, left);
}

static const weir_tensor *matrix_part(rule_run *k, const weir_tensor *t, int dim, int64_t from,
                                      int64_t length)
{
  return c_narrow(k->c, t, dim, from, length);
}

static const weir_tensor *join_parts(rule_run *k, const weir_tensor *a, const weir_tensor *b,
                                     int dim)
{
  return c_call(k->c, weir_cat, (const weir_tensor *[]){a, b}, 2, dim);
}

/* G has L's gradient below the diagonal and U's in the rest. Square: P L^-T (the lower triangle of
 * L^T gL + the upper one of gU U^T) U^-T. Of more rows, or columns, what is beyond the square is
 * solved with, and what it makes of the other factor taken off. (torch's linalg_lu_backward) */
void lu_back(rule_run *k)
{
  weir_tensor *p = NULL, *l = NULL, *u = NULL;
  const weir_tensor *lu = outcome(k, 0), *pivots = outcome(k, 1), *g = G, *x;
  c_do(k->c, weir_lu_unpack(&p, &l, &u, lu, pivots));
  if (k->c->st) return;
  (void)calc_keep(k->c, WEIR_OK, &p);
  (void)calc_keep(k->c, WEIR_OK, &l);
  (void)calc_keep(k->c, WEIR_OK, &u);
  int64_t m = lu->size[lu->dims - 2], n = lu->size[lu->dims - 1], least = m < n ? m : n;
  const weir_tensor *gl = triangle(k, narrow_to(k, g, -1, least), -1, false);
  const weir_tensor *gu = triangle(k, narrow_to(k, g, -2, least), 0, true);
  const weir_tensor *low = c_matmul(k->c, turned_matrix(k, l), gl),
                    *up = c_matmul(k->c, gu, turned_matrix(k, u));
  if (m == n) {
    x = c_add(k->c, triangle(k, low, -1, false), triangle(k, up, 0, true));
    x = solve_turned(k, l, solve_turned(k, u, x, false), true);
  } else if (m < n) {
    x = solve_turned(k, narrow_to(k, u, -1, m), triangle(k, c_sub(k->c, low, up), -1, false),
                     false);
    x = c_add(k->c, x, matrix_part(k, gu, -1, 0, m));
    x = solve_turned(k, l, join_parts(k, x, matrix_part(k, gu, -1, m, n - m), -1), true);
  } else {
    x = solve_turned(k, narrow_to(k, l, -2, n), triangle(k, c_sub(k->c, up, low), 0, true), true);
    x = c_add(k->c, x, matrix_part(k, gl, -2, 0, n));
    x = solve_turned(k, u, join_parts(k, x, matrix_part(k, gl, -2, n, m - n), -2), false);
  }
  give(k, 0, c_matmul(k->c, p, x));
}

/* ---- other factorisations -------------------------------------------------------------------- */

static const weir_tensor *diagonal_matrix(rule_run *k, const weir_tensor *t)
{
  return c_call(k->c, weir_diag_embed, t, 0, -2, -1);
}

/* a + b, where one may be nothing. */
static const weir_tensor *add_either(rule_run *k, const weir_tensor *a, const weir_tensor *b)
{
  return !a ? b : !b ? a : c_add(k->c, a, b);
}

static const weir_tensor *take_either(rule_run *k, const weir_tensor *a, const weir_tensor *b)
{
  return !b ? a : !a ? c_neg(k->c, b) : c_sub(k->c, a, b);
}

static const weir_tensor *skew(rule_run *k, const weir_tensor *t)
{
  return c_sub(k->c, t, turned_matrix(k, t));
}

/* E of values. */
static const weir_tensor *differences(rule_run *k, const weir_tensor *l)
{
  if (k->c->st) return NULL;
  int64_t n = l->size[l->dims - 1];
  const weir_tensor *one = c_call(k->c, weir_eye, n, n, OPTIONS_ON(l, l->dtype));
  return c_add(k->c, c_sub(k->c, as_row(k, l), more_dims(k, l, 1)), one);
}

/* V (diag(gL) + skew(V^T gV) / 2 / E) V^T. */
void eigh_back(rule_run *k)
{
  const weir_tensor *v = outcome(k, 1), *gl = k->g[0], *gv = k->g[1], *middle = NULL;
  if (gv) {
    const weir_tensor *half = c_mul_s(k->c, skew(k, c_matmul(k->c, turned_matrix(k, v), gv)), 0.5);
    middle = c_div(k->c, half, differences(k, outcome(k, 0)));
  } else {
    give(k, 0, c_matmul(k->c, c_mul(k->c, v, as_row(k, gl)), turned_matrix(k, v)));
    return;
  }
  if (gl) middle = c_add(k->c, middle, diagonal_matrix(k, gl));
  give(k, 0, c_matmul(k->c, v, c_matmul(k->c, middle, turned_matrix(k, v))));
}

/* t - x (x^T t): what of t is orthogonal to x's columns. */
static const weir_tensor *outside(rule_run *k, const weir_tensor *t, const weir_tensor *x)
{
  return c_sub(k->c, t, c_matmul(k->c, x, c_matmul(k->c, turned_matrix(k, x), t)));
}

/* What stands between U and V^T of the gradient; NULL: none of U, S, V has one. */
static const weir_tensor *svd_middle(rule_run *k, const weir_tensor *u, const weir_tensor *s,
                                     const weir_tensor *vh, const weir_tensor *gu,
                                     const weir_tensor *gvh)
{
  const weir_tensor *left = NULL, *right = NULL, *gs = k->g[1];
  if (gu) left = c_mul(k->c, skew(k, c_matmul(k->c, turned_matrix(k, u), gu)), as_row(k, s));
  if (gvh)
    right = c_mul(k->c, skew(k, c_matmul(k->c, vh, turned_matrix(k, gvh))), more_dims(k, s, 1));
  const weir_tensor *both = add_either(k, left, right);
  if (both) both = c_div(k->c, both, differences(k, c_mul(k->c, s, s)));
  return add_either(k, both, gs ? diagonal_matrix(k, gs) : NULL);
}

/* n[0]: u and vh are square; of what they have beyond the thin ones nothing comes back. */
void svd_back(rule_run *k)
{
  const weir_tensor *u = outcome(k, 0), *s = outcome(k, 1), *vh = outcome(k, 2);
  if (k->c->st) return;
  int64_t m = u->size[u->dims - 2], n = vh->size[vh->dims - 1], least = s->size[s->dims - 1];
  u = narrow_to(k, u, -1, least), vh = narrow_to(k, vh, -2, least);
  const weir_tensor *gu = narrow_to(k, k->g[0], -1, least);
  const weir_tensor *gvh = narrow_to(k, k->g[2], -2, least);
  if (!gu && !gvh) {
    give(k, 0, c_matmul(k->c, c_mul(k->c, u, as_row(k, k->g[1])), vh));
    return;
  }
  const weir_tensor *inner = c_matmul(k->c, u, svd_middle(k, u, s, vh, gu, gvh));
  if (m > least && gu) inner = c_add(k->c, inner, outside(k, c_div(k->c, gu, as_row(k, s)), u));
  const weir_tensor *whole = c_matmul(k->c, inner, vh);
  if (n > least && gvh) {
    const weir_tensor *rows = turned_matrix(k, c_div(k->c, gvh, more_dims(k, s, 1)));
    const weir_tensor *rest = turned_matrix(k, outside(k, rows, turned_matrix(k, vh)));
    whole = c_add(k->c, whole, c_matmul(k->c, u, rest));
  }
  give(k, 0, whole);
}

/* x of x r^T = t, r upper. */
static const weir_tensor *solve_right(rule_run *k, const weir_tensor *r, const weir_tensor *t)
{
  const weir_tensor *low = turned_matrix(k, r);
  return c_call(k->c, weir_solve_triangular, low, t, false, false, false);
}

/* (gQ + Q copyltu(gR R^T - Q^T gQ)) R^-T: of the upper triangle, to which its transpose is
 * added. */
static void qr_back_tall(rule_run *k, const weir_tensor *q, const weir_tensor *r)
{
  const weir_tensor *gq = k->g[0], *gr = k->g[1];
  const weir_tensor *up = take_either(k, gr ? c_matmul(k->c, gr, turned_matrix(k, r)) : NULL,
                                      gq ? c_matmul(k->c, turned_matrix(k, q), gq) : NULL);
  const weir_tensor *both =
      c_add(k->c, triangle(k, up, 0, true), turned_matrix(k, triangle(k, up, 1, true)));
  give(k, 0, solve_right(k, r, add_either(k, gq, c_matmul(k->c, q, both))));
}

/* Of more columns than rows, A = (X | Y) and R = (T | Q^T Y): Q gR, and to X's part Q (the lower
 * triangle of skew(Q^T gQ - gR R^T)) T^-T. */
static void qr_back_wide(rule_run *k, const weir_tensor *q, const weir_tensor *r)
{
  const weir_tensor *gq = k->g[0], *gr = k->g[1];
  const weir_tensor *m = take_either(k, gq ? c_matmul(k->c, turned_matrix(k, q), gq) : NULL,
                                     gr ? c_matmul(k->c, gr, turned_matrix(k, r)) : NULL);
  if (k->c->st) return;
  int64_t rows = r->size[r->dims - 2], columns = r->size[r->dims - 1];
  const weir_tensor *first = narrow_to(k, r, -1, rows);
  const weir_tensor *part = solve_right(k, first, triangle(k, skew(k, m), -1, false));
  const int64_t border[] = {0, columns - rows};
  part = c_call(k->c, weir_pad, part, border, 2, WEIR_PAD_CONSTANT, weir_int(0));
  give(k, 0, c_matmul(k->c, q, add_either(k, gr, part)));
}

void qr_back(rule_run *k)
{
  const weir_tensor *q = outcome(k, 0), *r = outcome(k, 1);
  if (k->c->st) return;
  const grad_meta *a = &k->n->of[0];
  int64_t m = a->shape.size[a->shape.count - 2], n = a->shape.size[a->shape.count - 1];
  if (N[0] == RECORD_QR_R_ALONE)
    k->c->st = fail_unsupported(
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
        "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.");
  else if (N[0] == RECORD_QR_COMPLETE && m > n)
    k->c->st = fail_unsupported(
        "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
  else if (m < n)
    qr_back_wide(k, q, r);
  else
    qr_back_tall(k, q, r);
}

/* With P the pseudoinverse: -(P G P)^T turned as A is, and what lies outside of its rows and
 * columns: (I - A P) G^T P P^T + P^T P G^T (I - P A). */
void pinv_back(rule_run *k)
{
  const weir_tensor *a = operand(k, 0), *p = outcome(k, 0), *g = turned_matrix(k, G),
                    *pt = turned_matrix(k, p);
  const weir_tensor *gp = c_matmul(k->c, g, p), *pg = c_matmul(k->c, p, g);
  const weir_tensor *gpp = c_matmul(k->c, gp, pt), *ppg = c_matmul(k->c, pt, pg);
  const weir_tensor *columns = c_sub(k->c, gpp, c_matmul(k->c, a, c_matmul(k->c, p, gpp)));
  const weir_tensor *rows = c_sub(k->c, ppg, c_matmul(k->c, c_matmul(k->c, ppg, p), a));
  const weir_tensor *inner = c_neg(k->c, turned_matrix(k, c_matmul(k->c, p, gp)));
  give(k, 0, c_add(k->c, inner, c_add(k->c, columns, rows)));
}
