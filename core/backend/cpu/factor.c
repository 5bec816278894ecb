/* cpu/factor.c: factorisations of matrices on the cpu, where no LAPACK does them (cpu/lapack.c).
 *
 * Of float64, whatever the tensors' dtype: so results of float32 are right to its rounding.
 * Textbook algorithms (Golub and Van Loan, "Matrix Computations"), whose inner loops go along
 * columns, as matrices lie: LU with partial pivoting, Cholesky, Householder's QR with LAPACK's
 * signs, Jacobi's rotations for eigenvalues and, from one side, for singular values, which finds
 * small ones to high relative accuracy. Batches are shared among the threads matrix by matrix; a
 * large LU by columns.
 *
 * The sums of a matrix are in the same order whoever calculates them.
 *
 * Words. line: consecutive elements: a column, of the transposed matrix a row. */
#include <float.h>
#include <math.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/threads.h"

enum {
  SWEEPS = 60,          /* at most: each makes what is left quadratically smaller */
  ELIMINATION = 1 << 14 /* multiplications that a thread takes at a time */
};

static void swap_lines(double *x, double *y, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    double t = x[i];
    x[i] = y[i];
    y[i] = t;
  }
}

static double dot_lines(const double *x, const double *y, int64_t n)
{
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += x[i] * y[i];
  return sum;
}

/* y -= f x. */
static void take_column(double *y, const double *x, double f, int64_t n)
{
  for (int64_t i = 0; i < n; i++)
    y[i] -= f * x[i];
}

/* ---- LU -------------------------------------------------------------------------------------- */

/* Column `at` of m x n matrices, taken off the columns after it. */
typedef struct elimination {
  double *a;
  int64_t m, at, pivot;
} elimination;

static void eliminate(void *arg, int64_t from, int64_t to)
{
  const elimination *e = arg;
  int64_t m = e->m, at = e->at;
  const double *low = e->a + at * m;
  for (int64_t j = at + 1 + from; j < at + 1 + to; j++) {
    double *column = e->a + j * m;
    swap_lines(column + at, column + e->pivot, 1);
    take_column(column + at + 1, low + at + 1, column[at], m - at - 1);
  }
}

static int64_t pivot_of(const double *column, int64_t m, int64_t at)
{
  int64_t best = at;
  for (int64_t i = at + 1; i < m; i++)
    if (fabs(column[i]) > fabs(column[best])) best = i;
  return best;
}

/* Returns info. */
static int64_t lu(double *a, int64_t *pivots, int64_t m, int64_t n)
{
  int64_t info = 0, least = m < n ? m : n;
  for (int64_t at = 0; at < least; at++) {
    double *column = a + at * m;
    int64_t pivot = pivot_of(column, m, at), left = n - at - 1;
    pivots[at] = pivot + 1;
    if (column[pivot] == 0) {
      if (!info) info = at + 1;
      continue;
    }
    for (int64_t j = 0; j <= at && pivot != at; j++)
      swap_lines(a + j * m + at, a + j * m + pivot, 1);
    for (int64_t i = at + 1; i < m; i++)
      column[i] /= column[at];
    elimination e = {a, m, at, pivot};
    if (left) parallel_for(left, ELIMINATION / (m - at) + 1, eliminate, &e);
  }
  return info;
}

/* Solutions with a triangle of a. */
typedef struct substitution {
  const double *a;
  double *b;
  int64_t n;
  bool upper, unit;
} substitution;

static void substitute_columns(void *arg, int64_t from, int64_t to)
{
  const substitution *s = arg;
  int64_t n = s->n;
  for (int64_t x = from; x < to; x++)
    for (int64_t step = 0; step < n; step++) {
      int64_t i = s->upper ? n - 1 - step : step;
      const double *column = s->a + i * n;
      double *b = s->b + x * n;
      if (!s->unit) b[i] /= column[i];
      if (s->upper)
        take_column(b, column, b[i], i);
      else
        take_column(b + i + 1, column + i + 1, b[i], n - i - 1);
    }
}

/* b becomes the solution with the triangle of a. */
static void substitute(const double *a, double *b, int64_t n, int64_t k, bool upper, bool unit)
{
  substitution s = {a, b, n, upper, unit};
  parallel_for(k, ELIMINATION / (n * n) + 1, substitute_columns, &s);
}

static void solve_with_lu(const double *a, const int64_t *pivots, double *b, int64_t n, int64_t k)
{
  for (int64_t x = 0; x < k; x++)
    for (int64_t i = 0; i < n; i++)
      if (pivots[i] != i + 1) swap_lines(b + x * n + i, b + x * n + pivots[i] - 1, 1);
  substitute(a, b, n, k, false, true);
  substitute(a, b, n, k, true, false);
}

static int64_t solve_one(double *a, int64_t *pivots, double *b, int64_t n, int64_t k)
{
  int64_t info = lu(a, pivots, n, n);
  if (!info) solve_with_lu(a, pivots, b, n, k);
  return info;
}

/* ---- Cholesky -------------------------------------------------------------------------------- */

static int64_t cholesky_one(double *a, int64_t n)
{
  for (int64_t i = 0; i < n; i++) {
    double *column = a + i * n;
    for (int64_t j = 0; j < i; j++)
      column[j] = (column[j] - dot_lines(column, a + j * n, j)) / a[j * n + j];
    double left = column[i] - dot_lines(column, column, i);
    if (!(left > 0)) return i + 1;
    column[i] = sqrt(left);
  }
  return 0;
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* Columns of x (m x n) from `column` on become, from row `from` on, x - tau v (v^T x): v is 1, and
 * below it what lies below a's diagonal in its column `from`. */
static void reflect(double *x, int64_t m, int64_t n, int64_t column, const double *a, int64_t from,
                    double tau)
{
  const double *v = a + from * m + from + 1;
  int64_t below = m - from - 1;
  for (int64_t j = column; j < n; j++) {
    double *at = x + j * m + from;
    double sum = tau * (at[0] + dot_lines(v, at + 1, below));
    at[0] -= sum;
    take_column(at + 1, v, sum, below);
  }
}

/* The reflection that makes column `at` 0 below the diagonal: v in its place, tau returned; the
 * signs are LAPACK's dlarfg's: of a column that is 0 already there is none. */
static double reflection(double *a, int64_t m, int64_t at)
{
  double *column = a + at * m, first = column[at], most = 0, sum = 0;
  for (int64_t i = at + 1; i < m; i++)
    most = fmax(most, fabs(column[i]));
  if (most == 0) return 0;
  most = fmax(most, fabs(first));
  for (int64_t i = at; i < m; i++)
    sum += column[i] / most * (column[i] / most);
  double norm = most * sqrt(sum), beta = first < 0 ? norm : -norm;
  for (int64_t i = at + 1; i < m; i++)
    column[i] /= first - beta;
  column[at] = beta;
  return (beta - first) / beta;
}

static void qr_one(double *a, double *q, double *tau, int64_t m, int64_t n, int64_t k)
{
  int64_t least = m < n ? m : n;
  for (int64_t at = 0; at < least; at++) {
    tau[at] = reflection(a, m, at);
    if (tau[at] != 0) reflect(a, m, n, at + 1, a, at, tau[at]);
  }
  memset(q, 0, (size_t)(m * k) * sizeof *q);
  for (int64_t i = 0; i < k; i++)
    q[i * m + i] = 1;
  for (int64_t at = least - 1; at >= 0; at--)
    if (tau[at] != 0) reflect(q, m, k, at, a, at, tau[at]);
}

/* ---- Jacobi's rotations ---------------------------------------------------------------------- */

typedef struct rotation {
  double cosine, sine, tangent;
} rotation;

/* Of [[p, off], [off, q]]: off becomes 0 by the smaller of the two angles. */
static rotation rotation_of(double p, double q, double off)
{
  double theta = (q - p) / (2 * off);
  double t = (theta < 0 ? -1 : 1) / (fabs(theta) + sqrt(theta * theta + 1));
  double c = 1 / sqrt(t * t + 1);
  return (rotation){c, t * c, t};
}

/* x = c x - s y, y = s x + c y; elements `step` apart. */
static void rotate(double *x, double *y, int64_t n, int64_t step, const rotation *r)
{
  for (int64_t i = 0; i < n; i++) {
    double u = x[i * step], v = y[i * step];
    x[i * step] = r->cosine * u - r->sine * v;
    y[i * step] = r->sine * u + r->cosine * v;
  }
}

/* Elements of `count`; false: one is infinite or NaN. */
static bool all_finite(const double *x, int64_t count)
{
  for (int64_t i = 0; i < count; i++)
    if (!isfinite(x[i])) return false;
  return true;
}

static void set_identity(double *x, int64_t n)
{
  memset(x, 0, (size_t)(n * n) * sizeof *x);
  for (int64_t i = 0; i < n; i++)
    x[i * n + i] = 1;
}

/* values in order, and with them the rows of both (b NULL: of a). */
static void sort_lines(double *values, int64_t n, bool descending, double *a, int64_t width_a,
                       double *b, int64_t width_b)
{
  for (int64_t i = 0; i < n; i++) {
    int64_t best = i;
    for (int64_t j = i + 1; j < n; j++)
      if (descending ? values[j] > values[best] : values[j] < values[best]) best = j;
    if (best == i) continue;
    swap_lines(values + i, values + best, 1);
    swap_lines(a + i * width_a, a + best * width_a, width_a);
    if (b) swap_lines(b + i * width_b, b + best * width_b, width_b);
  }
}

/* Makes a[p][q] 0, if it counts in comparison with the diagonal. */
static bool rotate_symmetric(double *a, double *vectors, int64_t n, int64_t p, int64_t q)
{
  double off = a[p * n + q];
  double size = sqrt(fabs(a[p * n + p])) * sqrt(fabs(a[q * n + q]));
  if (off == 0 || fabs(off) < DBL_MIN || fabs(off) <= DBL_EPSILON / 4 * size) return false;
  rotation r = rotation_of(a[p * n + p], a[q * n + q], off);
  rotate(a + p * n, a + q * n, n, 1, &r);
  rotate(a + p, a + q, n, n, &r);
  a[p * n + q] = a[q * n + p] = 0;
  rotate(vectors + p * n, vectors + q * n, n, 1, &r);
  return true;
}

/* What lies next to the diagonal is negligible to the whole. */
static bool is_diagonal(const double *a, int64_t n)
{
  double beside = 0, all = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < n; j++) {
      double x = fabs(a[i * n + j]);
      all = fmax(all, x);
      if (i != j) beside = fmax(beside, x);
    }
  return beside <= all * DBL_EPSILON * 1e-3;
}

static int64_t eigh_one(double *a, double *values, double *vectors, int64_t n, bool upper)
{
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++)
      if (upper)
        a[i * n + j] = a[j * n + i];
      else
        a[j * n + i] = a[i * n + j];
  set_identity(vectors, n);
  bool finite = all_finite(a, n * n), turned = finite;
  for (int sweep = 0; sweep < SWEEPS && turned && !is_diagonal(a, n); sweep++) {
    turned = false;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++)
        turned |= rotate_symmetric(a, vectors, n, p, q);
  }
  for (int64_t i = 0; i < n; i++)
    values[i] = finite ? a[i * n + i] : NAN;
  sort_lines(values, n, false, vectors, n, NULL, 0);
  memcpy(a, vectors, (size_t)(n * n) * sizeof *a);
  return finite ? 0 : -1;
}

/* Makes rows p and q of u orthogonal, if they are not. */
static bool rotate_rows(double *u, double *v, int64_t m, int64_t n, int64_t p, int64_t q)
{
  double *x = u + p * m, *y = u + q * m;
  double xx = dot_lines(x, x, m), yy = dot_lines(y, y, m), xy = dot_lines(x, y, m);
  if (fabs(xy) <= DBL_EPSILON * sqrt(xx) * sqrt(yy) || fabs(xy) < DBL_MIN) return false;
  rotation r = rotation_of(xx, yy, xy);
  rotate(x, y, m, 1, &r);
  rotate(v + p * n, v + q * n, n, 1, &r);
  return true;
}

/* Row `at` of u becomes a unit that is orthogonal to those before it: the first axis of which
 * enough is left. */
static void complete_row(double *u, int64_t m, int64_t at)
{
  double *row = u + at * m, norm = 0;
  for (int64_t axis = 0; axis < m && norm < 0.5 / (double)m; axis++) {
    memset(row, 0, (size_t)m * sizeof *row);
    row[axis] = 1;
    for (int twice = 0; twice < 2; twice++)
      for (int64_t i = 0; i < at; i++)
        take_column(row, u + i * m, dot_lines(row, u + i * m, m), m);
    norm = dot_lines(row, row, m);
  }
  norm = sqrt(norm);
  for (int64_t i = 0; i < m; i++)
    row[i] /= norm;
}

static int64_t svd_one(double *u, double *values, double *v, int64_t m, int64_t n)
{
  double largest = 0;
  set_identity(v, n);
  if (!all_finite(u, m * n)) return -1;
  for (int64_t i = 0; i < m * n; i++)
    largest = fmax(largest, fabs(u[i]));
  double scale = largest > 0 ? largest : 1; /* so that squares neither overflow nor vanish */
  for (int64_t i = 0; i < m * n; i++)
    u[i] /= scale;
  bool turned = true;
  for (int sweep = 0; sweep < SWEEPS && turned; sweep++) {
    turned = false;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++)
        turned |= rotate_rows(u, v, m, n, p, q);
  }
  for (int64_t i = 0; i < n; i++)
    values[i] = sqrt(dot_lines(u + i * m, u + i * m, m));
  sort_lines(values, n, true, u, m, v, n);
  for (int64_t i = 0; i < n; i++) {
    bool real = values[i] > 0 && values[i] > values[0] * DBL_EPSILON;
    for (int64_t j = 0; j < m && real; j++)
      u[i * m + j] /= values[i];
    if (!real) complete_row(u, m, i);
    values[i] *= scale;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = i + 1; j < n; j++)
      swap_lines(v + i * n + j, v + j * n + i, 1);
  return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int64_t factor_one(const weir_factor *f, int64_t at)
{
  int64_t m = f->m, n = f->n, k = f->k, least = m < n ? m : n;
  double *a = (double *)f->a + at * m * n, *b = f->b, *c = f->c;
  switch (f->op) {
  case WEIR_FACTOR_LU:
    return lu(a, f->pivots + at * least, m, n);
  case WEIR_FACTOR_SOLVE:
    return solve_one(a, f->pivots + at * least, b + at * n * k, n, k);
  case WEIR_FACTOR_LU_SOLVE:
    solve_with_lu(a, f->pivots + at * least, b + at * n * k, n, k);
    return 0;
  case WEIR_FACTOR_TRIANGULAR:
    substitute(a, b + at * n * k, n, k, f->upper, f->unit);
    return 0;
  case WEIR_FACTOR_CHOLESKY:
    return cholesky_one(a, n);
  case WEIR_FACTOR_QR:
    qr_one(a, b + at * m * k, c + at * least, m, n, k);
    return 0;
  case WEIR_FACTOR_EIGH:
    return eigh_one(a, b + at * n, c + at * n * n, n, f->upper);
  default:
    return svd_one(a, b + at * n, c + at * n * n, m, n);
  }
}

static void some_factors(void *arg, int64_t from, int64_t to)
{
  const weir_factor *f = arg;
  for (int64_t i = from; i < to; i++)
    f->info[i] = factor_one(f, i);
}

bool cpu_factor_narrow(void *self, const weir_factor *f)
{
  (void)self;
  return cpu_lapack_wanted(f);
}

weir_status cpu_factor(void *self, void *stream, const weir_factor *f)
{
  (void)self, (void)stream;
  /* in float32 it was promised */
  if (f->dtype == WEIR_FLOAT32 || cpu_lapack_wanted(f)) return cpu_lapack(f);
  double each = (double)f->n * (double)f->n * (double)(f->m > f->n ? f->m : f->n);
  int64_t grain = each < ELIMINATION ? (int64_t)(ELIMINATION / (each + 1)) + 1 : 1;
  if (f->batch > 1)
    parallel_for(f->batch, grain, some_factors, (void *)f);
  else
    some_factors((void *)f, 0, 1);
  return WEIR_OK;
}
