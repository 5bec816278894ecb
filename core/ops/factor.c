/* factor.c: determinants, inverses, solutions, factorisations, and norms of matrices.
 *
 * A device factorises what lies column by column (weir_factor), in the operands' dtype or in
 * float64, as it likes best: operands are copied into that form, and results, views that turn it,
 * are copied from it. Whether a matrix could be factorised is read back (info), for torch reports
 * it as an error: these functions wait for the device.
 *
 * Words. columns: matrices as a device factorises them: a tensor of the turned shape. thin: of a
 * factorisation as small as it can be. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/ops/ops.h"

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_matrices(const weir_tensor *a, const char *name, const char *argument)
{
  if (a->dims >= 2) return WEIR_OK;
  return fail_invalid("%s: The input tensor %s must have at least 2 dimensions.", name, argument);
}

static weir_status check_square(const weir_tensor *a, const char *name)
{
  weir_status st = check_matrices(a, name, "A");
  if (st || a->size[a->dims - 2] == a->size[a->dims - 1]) return st;
  return fail_invalid(
      "%s: A must be batches of square matrices, but they are %lld by %lld matrices", name,
      (long long)a->size[a->dims - 2], (long long)a->size[a->dims - 1]);
}

static weir_status check_real(const weir_tensor *a, const char *name)
{
  weir_dtype d = a->dtype;
  if (d == WEIR_FLOAT32 || d == WEIR_FLOAT64) return WEIR_OK;
  if (d == WEIR_FLOAT16 || d == WEIR_BFLOAT16)
    return fail_unsupported("%s: Low precision dtypes not supported. Got %s", name, dtype_title(d));
  if (d == WEIR_COMPLEX64) return fail_unsupported("%s: complex64 is not supported", name);
  return fail_unsupported("%s: Expected a floating point or complex tensor as input. Got %s", name,
                          dtype_title(d));
}

/* What all factorisations ask of an operand, in torch's order. */
static weir_status check_factors(const weir_tensor *a, const char *name, bool square)
{
  weir_status st = square ? check_square(a, name) : check_matrices(a, name, "A");
  return st ? st : check_real(a, name);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int64_t count_matrices(const weir_tensor *a)
{
  return sizes_product(a->size, 0, a->dims - 2);
}

static int64_t rows_of(const weir_tensor *a)
{
  return a->size[a->dims - 2];
}

static int64_t columns_of(const weir_tensor *a)
{
  return a->size[a->dims - 1];
}

/* A request of a's matrices, in the dtype that a's device does it in. */
static weir_factor request_of(enum weir_factor_op op, const weir_tensor *a, int64_t m, int64_t n,
                              int64_t k)
{
  compute_target t;
  weir_factor f = {.op = op, .dtype = WEIR_FLOAT64, .m = m, .n = n, .k = k};
  f.batch = count_matrices(a);
  if (a->dtype == WEIR_FLOAT64 || compute_target_of(&t, device_of_tensor(a))) return f;
  if (t.compute->factor_narrow && t.compute->factor_narrow(t.self, &f)) f.dtype = WEIR_FLOAT32;
  return f;
}

/* Room for m x n matrices as columns, or for n numbers (m -1), for each of a's. */
static weir_status new_columns(weir_tensor **out, const weir_tensor *a, weir_dtype dtype, int64_t m,
                               int64_t n)
{
  weir_shape shape = weir_shape_of(a->dims - 2, a->size);
  shape.size[shape.count++] = n;
  if (m >= 0) shape.size[shape.count++] = m;
  return tensor_new(out, dtype, device_of_tensor(a), false, shape);
}

static weir_status copy_as(weir_tensor **out, const weir_tensor *a, weir_dtype dtype)
{
  weir_status st = tensor_new(out, dtype, device_of_tensor(a), false, shape_of_tensor(a));
  if (!st) st = loop_copy(*out, a);
  if (st) weir_tensor_drop(out);
  return st;
}

/* A copy of a's matrices as columns; turned: of the transposed ones, which is a row by row. */
static weir_status copy_columns(weir_tensor **out, const weir_tensor *a, weir_dtype dtype,
                                bool turned)
{
  CALC(c);
  if (turned) return copy_as(out, a, dtype);
  weir_tensor *view = c_transpose(c, a, -2, -1);
  return c->st ? c->st : copy_as(out, view, dtype);
}

/* The tensors of a request; NULL: the operation has none. */
typedef struct factor_parts {
  const weir_tensor *a, *b, *c, *pivots;
} factor_parts;

static weir_status read_infos(const weir_tensor *info, const char *name, int64_t *first,
                              int64_t *at)
{
  size_t bytes = (size_t)info->numel * sizeof(int64_t);
  int64_t *infos = malloc(bytes);
  if (!infos) return weir_fail(WEIR_ENOMEM, "%s: no host memory for its outcome", name);
  weir_status st = weir_tensor_read(infos, bytes, WEIR_INT64, info);
  for (int64_t i = 0; !st && i < info->numel && !*first; i++)
    if (infos[i]) *first = infos[i], *at = i;
  free(infos);
  return st;
}

/* Runs f in the matrices of the parts. *first: the first info that is not 0, and *at its place in
 * the batch. */
static weir_status run_factor(weir_factor *f, const factor_parts *p, const char *name,
                              int64_t *first, int64_t *at)
{
  CALC(c);
  compute_target t;
  *first = *at = 0;
  if (!f->batch || !p->a->numel || (p->b && !p->b->numel)) return WEIR_OK;
  TRY(compute_target_of(&t, device_of_tensor(p->a)));
  if (!t.compute->factor) return compute_target_lacks(&t, name);
  weir_tensor *info =
      c_call(c, tensor_new, WEIR_INT64, device_of_tensor(p->a), false, weir_shape(f->batch));
  c_do(c, weir_zero_(info));
  if (c->st) return c->st;
  f->a = p->a->data;
  f->b = p->b ? p->b->data : NULL;
  f->c = p->c ? p->c->data : NULL;
  f->pivots = p->pivots ? (int64_t *)(void *)p->pivots->data : NULL;
  f->info = (int64_t *)(void *)info->data;
  c->st = compute_target_done(&t, t.compute->factor(t.self, t.stream, f), name);
  return c->st ? c->st : read_infos(info, name, first, at);
}

/* "(Batch element 2): ", where there is a batch. */
static const char *batch_element(char text[48], const weir_tensor *a, int64_t at)
{
  text[0] = 0;
  if (a->dims > 2) (void)snprintf(text, 48, "(Batch element %lld): ", (long long)at);
  return text;
}

/* t, a view of what a device has made, in the dtype of `like`, row by row. */
static weir_status narrowed(weir_tensor **out, const weir_tensor *t, const weir_tensor *like)
{
  return copy_as(out, t, like->dtype);
}

/* The same of columns. */
static weir_status narrowed_columns(weir_tensor **out, const weir_tensor *t,
                                    const weir_tensor *like)
{
  CALC(c);
  weir_tensor *view = c_transpose(c, t, -2, -1);
  return c->st ? c->st : narrowed(out, view, like);
}

/* Records what was made of a and b, or NULL, where one of them requires a gradient. */
static weir_status record_matrix(weir_tensor **out, weir_status st, enum record_kind kind,
                                 const weir_tensor *a, const weir_tensor *b, const bool how[3])
{
  const weir_tensor *in[2] = {a, b};
  if (st || !recorded_any(in, 2)) return st;
  record r = {.kind = kind, .inputs = b ? 2 : 1, .in = in, .n = {how[0], how[1], how[2]}};
  return record_made(out, &r, st);
}

/* The same of a factorisation of a, of which there are up to three results (NULL: fewer). Dropped
 * where it fails, or `st` is an error. */
static weir_status record_factors(weir_status st, enum record_kind kind, const weir_tensor *a,
                                  int how, weir_tensor **out[3])
{
  record r = {.kind = kind, .inputs = 1, .in = &a, .n = {how}};
  for (int i = 0; i < RECORD_OUTS; i++)
    r.out[i] = out[i] ? *out[i] : NULL;
  if (!st && recorded(a)) st = tensor_recorder->made(&r);
  for (int i = 0; i < RECORD_OUTS && st; i++)
    if (out[i]) weir_tensor_drop(out[i]);
  return st;
}

/* ---- determinants ---------------------------------------------------------------------------- */

/* -1 of an odd number of exchanges, else 1, in that dtype: of pivots (..., n), (...). */
static weir_status exchange_signs(weir_tensor **out, const weir_tensor *pivots, weir_dtype dtype)
{
  CALC(c);
  int64_t n = pivots->size[pivots->dims - 1];
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(pivots)};
  weir_tensor *places = c_call(c, weir_arange, weir_int(1), weir_int(n + 1), weir_int(1), &o);
  weir_tensor *count = c_sum_dim(c, c_ne(c, pivots, places), -1, false);
  weir_tensor *odd = c_bitwise_and_scalar(c, count, weir_int(1));
  c_do(c, weir_mul_scalar_(odd, weir_int(-2)));
  return calc_give(c, out, c_to_dtype(c, c_add_scalar(c, odd, weir_int(1)), dtype));
}

/* U's diagonals (..., n) and the signs of the exchanges (...). */
static weir_status lu_diagonal(weir_tensor **diagonal, weir_tensor **sign, const weir_tensor *a,
                               const char *name)
{
  CALC(c);
  int64_t first, at, n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_LU, a, n, n, 0);
  weir_tensor *lu = c_call(c, copy_columns, a, f.dtype, false);
  weir_tensor *pivots = c_call(c, new_columns, a, WEIR_INT64, -1, n);
  factor_parts p = {.a = lu, .pivots = pivots};
  c_do(c, run_factor(&f, &p, name, &first, &at));
  c_do(c, exchange_signs(sign, pivots, f.dtype));
  return c->st ? c->st : weir_diagonal(diagonal, lu, 0, -2, -1);
}

weir_status weir_det(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  static const char name[] = "linalg.det";
  CALC(c);
  WEIR_TENSOR diagonal = NULL, sign = NULL;
  c->st = check_factors(a, name, true);
  c_do(c, lu_diagonal(&diagonal, &sign, a, name));
  weir_tensor *wide = c_mul(c, c_prod_dim(c, diagonal, -1, false), sign);
  c_do(c, narrowed(out, wide, a));
  return record_matrix(out, c->st, RECORD_DET, a, NULL, (const bool[3]){false});
}

/* 1, 0 or -1 of each; NaN of NaN. */
static weir_status signs_of(weir_tensor **out, const weir_tensor *t)
{
  CALC(c);
  weir_tensor *quotient = c_div(c, t, c_abs(c, t));
  return calc_give(c, out, c_where(c, c_eq_scalar(c, t, weir_int(0)), t, quotient));
}

weir_status weir_slogdet(weir_tensor **sign, weir_tensor **logabsdet, const weir_tensor *a)
{
  WEIR_OP_BOTH(sign, logabsdet, a);
  static const char name[] = "linalg.slogdet";
  CALC(c);
  WEIR_TENSOR diagonal = NULL, exchanges = NULL;
  c->st = check_factors(a, name, true);
  c_do(c, lu_diagonal(&diagonal, &exchanges, a, name));
  weir_tensor *wide = c_mul(c, c_prod_dim(c, c_call(c, signs_of, diagonal), -1, false), exchanges);
  if (c->st) return c->st;
  weir_tensor *sum = c_sum_dim(c, c_log(c, c_abs(c, diagonal)), -1, false);
  c_do(c, narrowed(sign, wide, a));
  c_do(c, narrowed(logabsdet, sum, a));
  return record_factors(c->st, RECORD_SLOGDET, a, 0, (weir_tensor * *[]){sign, logabsdet, NULL});
}

/* ---- solutions ------------------------------------------------------------------------------- */

/* The identity for each of a's matrices. */
static weir_status batch_identity(weir_tensor **out, const weir_tensor *a, weir_dtype dtype)
{
  CALC(c);
  c->st = new_columns(out, a, dtype, columns_of(a), columns_of(a));
  c_do(c, weir_zero_(*out));
  weir_tensor *diagonal = c_diagonal(c, *out, 0, -2, -1);
  c_do(c, weir_fill_(diagonal, weir_int(1)));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* x, columns, of a x = b, columns, which it is at first. */
static weir_status solve_columns(weir_factor *f, const weir_tensor *a, weir_tensor *b,
                                 const char *name, int64_t *first, int64_t *at)
{
  CALC(c);
  weir_tensor *lu = c_call(c, copy_columns, a, f->dtype, false);
  weir_tensor *pivots = c_call(c, new_columns, a, WEIR_INT64, -1, f->n);
  factor_parts p = {.a = lu, .b = b, .pivots = pivots};
  return c->st ? c->st : run_factor(f, &p, name, first, at);
}

weir_status weir_inv(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.inv";
  CALC(c);
  char batch[48];
  int64_t first = 0, at = 0;
  TRY(check_factors(a, name, true));
  int64_t n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_SOLVE, a, n, n, n);
  weir_tensor *wide = c_call(c, batch_identity, a, f.dtype);
  c_do(c, solve_columns(&f, a, wide, name, &first, &at));
  if (!c->st && first)
    c->st = fail_invalid("linalg.inv: %sThe diagonal element %lld is zero, the inversion could not "
                         "be completed because the input matrix is singular.",
                         batch_element(batch, a, at), (long long)first);
  c_do(c, narrowed_columns(out, wide, a));
  return record_matrix(out, c->st, RECORD_INV, a, NULL, (const bool[3]){false});
}

/* b as matrices: a vector, or a batch of them, as columns. */
static weir_status matrices_of(weir_tensor **out, bool *vector, const weir_tensor *a,
                               const weir_tensor *b, const char *name)
{
  *vector = b->dims == 1 || (b->dims == a->dims - 1 &&
                             !memcmp(a->size, b->size, (size_t)b->dims * sizeof *b->size));
  if (*vector) return weir_unsqueeze(out, b, -1);
  *out = weir_tensor_retain((weir_tensor *)b);
  weir_status st = check_matrices(b, name, "B");
  if (st) weir_tensor_drop(out);
  return st;
}

/* a and b in the batch that both broadcast to. */
static weir_status broadcast_batches(weir_tensor **wide_a, weir_tensor **wide_b,
                                     const weir_tensor *a, const weir_tensor *b)
{
  weir_shape batch = weir_shape_of(b->dims - 2, b->size), shape;
  weir_status st = shape_broadcast(&batch, a->size, a->dims - 2);
  for (int i = 0; i < 2 && !st; i++) {
    const weir_tensor *t = i ? b : a;
    shape = batch;
    shape.size[shape.count++] = t->size[t->dims - 2];
    shape.size[shape.count++] = t->size[t->dims - 1];
    st = weir_expand(i ? wide_b : wide_a, t, shape);
  }
  return st;
}

static weir_status check_equation(const weir_tensor *a, const weir_tensor *b, bool left,
                                  const char *name)
{
  int64_t n = a->size[a->dims - 1], rows = b->size[b->dims - 2], columns = b->size[b->dims - 1];
  if (n == (left ? rows : columns)) return WEIR_OK;
  return fail_invalid(
      "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)", name,
      left ? "AX" : "XA", (long long)n, (long long)n, (long long)rows, (long long)columns);
}

static weir_status check_dtypes(const weir_tensor *a, const weir_tensor *b, const char *name)
{
  if (a->dtype == b->dtype) return WEIR_OK;
  return fail_invalid("%s: Expected A and B to have the same dtype, but found A of type %s and B "
                      "of type %s instead",
                      name, dtype_title(a->dtype), dtype_title(b->dtype));
}

/* solve() refuses dtypes before shapes, solve_triangular() shapes before dtypes: as torch's. */
static weir_status check_operands(const weir_tensor *a, const weir_tensor *b, const char *name,
                                  bool dtypes_first)
{
  weir_status st = check_same_device(a, b);
  if (!st && dtypes_first) st = check_real(a, name);
  if (!st && dtypes_first) st = check_dtypes(a, b, name);
  if (!st) st = check_factors(a, name, true);
  return st ? st : check_dtypes(a, b, name);
}

weir_status weir_solve(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(FACTOR, a, b);
  static const char name[] = "linalg.solve";
  CALC(c);
  WEIR_TENSOR many_a = NULL, many_b = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  bool vector = false;
  c->st = check_operands(a, b, name, true);
  weir_tensor *columns = c_call(c, matrices_of, &vector, a, b, name);
  c_do(c, check_equation(a, columns, true, name));
  c_do(c, broadcast_batches(&many_a, &many_b, a, columns));
  if (c->st) return c->st;
  int64_t n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_SOLVE, many_a, n, n, columns_of(columns));
  weir_tensor *wide = c_call(c, copy_columns, many_b, f.dtype, false);
  c_do(c, solve_columns(&f, many_a, wide, name, &first, &at));
  if (!c->st && first)
    c->st =
        fail_invalid("weir.linalg.solve: %sThe solver failed because the input matrix is singular.",
                     batch_element(batch, many_a, at));
  weir_tensor *result = c_call(c, narrowed_columns, wide, a);
  c_do(c, vector ? weir_squeeze(out, result, -1) : weir_contiguous(out, result));
  return record_matrix(out, c->st, RECORD_SOLVE, a, b, (const bool[3]){vector});
}

weir_status weir_solve_triangular(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                  bool upper, bool left, bool unitriangular)
{
  WEIR_OP(out, a, b);
  static const char name[] = "linalg.solve_triangular";
  CALC(c);
  WEIR_TENSOR many_a = NULL, many_b = NULL;
  int64_t first, at;
  c->st = check_operands(a, b, name, false);
  c_do(c, check_matrices(b, name, "B"));
  c_do(c, check_equation(a, b, left, name));
  c_do(c, broadcast_batches(&many_a, &many_b, a, b));
  if (c->st) return c->st;
  int64_t n = columns_of(a), k = left ? columns_of(b) : rows_of(b);
  weir_factor f = request_of(WEIR_FACTOR_TRIANGULAR, many_a, n, n, k);
  f.upper = upper == left;
  f.unit = unitriangular;
  weir_tensor *triangle = c_call(c, copy_columns, many_a, f.dtype, !left);
  weir_tensor *wide = c_call(c, copy_columns, many_b, f.dtype, !left);
  factor_parts p = {.a = triangle, .b = wide};
  c_do(c, run_factor(&f, &p, name, &first, &at));
  c_do(c, left ? narrowed_columns(out, wide, a) : narrowed(out, wide, a));
  const bool how[3] = {upper, left, unitriangular};
  return record_matrix(out, c->st, RECORD_SOLVE_TRIANGULAR, a, b, how);
}

/* ---- factorisations -------------------------------------------------------------------------- */

/* U of a = U^T U by columns is L of a = L L^T row by row. */
weir_status weir_cholesky(weir_tensor **out, const weir_tensor *a, bool upper)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.cholesky";
  CALC(c);
  char batch[48];
  int64_t first = 0, at = 0;
  TRY(check_factors(a, name, true));
  weir_factor f = request_of(WEIR_FACTOR_CHOLESKY, a, columns_of(a), columns_of(a), 0);
  weir_tensor *wide = c_call(c, copy_columns, a, f.dtype, !upper);
  factor_parts p = {.a = wide};
  c_do(c, run_factor(&f, &p, name, &first, &at));
  if (!c->st && first)
    c->st = fail_invalid(
        "linalg.cholesky: %sThe factorization could not be completed because the input is not "
        "positive-definite (the leading minor of order %lld is not positive-definite).",
        batch_element(batch, a, at), (long long)first);
  weir_tensor *low = c_tril(c, wide, 0);
  c_do(c, upper ? narrowed_columns(out, low, a) : narrowed(out, low, a));
  return record_matrix(out, c->st, RECORD_CHOLESKY, a, NULL, (const bool[3]){upper});
}

/* ---- LU -------------------------------------------------------------------------------------- */

static weir_status check_lu(const weir_tensor *a, bool pivot, const char *name)
{
  text_buffer t;
  if (!pivot) return fail_unsupported("linalg.lu_factor: LU without pivoting is not implemented");
  if (a->dims < 2)
    return fail_invalid("%s: Expected tensor with 2 or more dimensions. Got size: %s instead", name,
                        shape_format(&t, shape_of_tensor(a)));
  if (!a->numel || a->dtype == WEIR_FLOAT32 || a->dtype == WEIR_FLOAT64) return WEIR_OK;
  return not_implemented("lu_%s", device_of_tensor(a), a->dtype);
}

/* a's L and U in one, and its pivots in int32, recorded; *first and *at as run_factor()'s. */
static weir_status factor_lu(weir_tensor **lu, weir_tensor **pivots, const weir_tensor *a,
                             const char *name, int64_t *first, int64_t *at)
{
  CALC(c);
  int64_t m = rows_of(a), n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_LU, a, m, n, 0);
  weir_tensor *wide = c_call(c, copy_columns, a, f.dtype, false);
  weir_tensor *places = c_call(c, new_columns, a, WEIR_INT64, -1, m < n ? m : n);
  factor_parts p = {.a = wide, .pivots = places};
  c_do(c, run_factor(&f, &p, name, first, at));
  c_do(c, narrowed_columns(lu, wide, a));
  c_do(c, weir_to_dtype(pivots, places, WEIR_INT32));
  return record_factors(c->st, RECORD_LU, a, 0, (weir_tensor * *[]){lu, pivots, NULL});
}

weir_status weir_lu_factor(weir_tensor **lu, weir_tensor **pivots, const weir_tensor *a, bool pivot)
{
  WEIR_OP_BOTH(lu, pivots, a);
  static const char name[] = "weir.lu_factor";
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_lu(a, pivot, name);
  if (!st) st = factor_lu(lu, pivots, a, name, &first, &at);
  if (st || !first) return st;
  weir_tensor_drop(lu);
  weir_tensor_drop(pivots);
  return fail_invalid(
      "weir.linalg.lu_factor: %sU[%lld,%lld] is zero and using it on lu_solve would result in a "
      "division by zero. If you still want to perform the factorization, consider calling "
      "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
      batch_element(batch, a, at), (long long)first, (long long)first);
}

/* Row i of P^T A is row order[i] of A: exchanged as `count` pivots of each of `batch` state. */
static weir_status exchange_rows(int64_t *order, const int32_t *pivots, int64_t batch,
                                 int64_t count, int64_t rows)
{
  for (int64_t b = 0; b < batch; b++, order += rows, pivots += count) {
    for (int64_t i = 0; i < rows; i++)
      order[i] = i;
    for (int64_t i = 0; i < count; i++) {
      if (pivots[i] < 1 || pivots[i] > rows)
        return fail_invalid("Pivots given to lu_solve must all be %s. Did you properly pass the "
                            "result of lu_factor?",
                            pivots[i] < 1 ? "greater or equal to 1"
                                          : "smaller or equal to LU.size(-2)");
      int64_t with = pivots[i] - 1, was = order[i];
      order[i] = order[with];
      order[with] = was;
    }
  }
  return WEIR_OK;
}

/* Which row of A each row of P^T A is, int64 (..., rows): of pivots, which are read. */
static weir_status row_order(weir_tensor **out, const weir_tensor *pivots, int64_t rows)
{
  weir_shape shape = shape_of_tensor(pivots);
  int64_t count = shape.size[shape.count - 1],
          batch = sizes_product(shape.size, 0, shape.count - 1);
  shape.size[shape.count - 1] = rows;
  size_t bytes = (size_t)pivots->numel * sizeof(int32_t);
  int32_t *numbers = malloc(bytes + 1);
  int64_t *order = malloc((size_t)(batch * rows) * sizeof *order + 1);
  weir_status st = numbers && order ? WEIR_OK : fail_memory("pivots");
  if (!st && bytes) st = weir_tensor_read(numbers, bytes, WEIR_INT32, pivots);
  if (!st) st = exchange_rows(order, numbers, batch, count, rows);
  if (!st) st = weir_tensor_from(out, order, WEIR_INT64, shape, OPTIONS_ON(pivots, WEIR_INT64));
  free(numbers);
  free(order);
  return st;
}

/* P (..., rows, rows), in that dtype: 1 where its column is the order's place of its row. */
static weir_status exchange_matrix(weir_tensor **out, const weir_tensor *order, weir_dtype dtype)
{
  CALC(c);
  int64_t rows = order->size[order->dims - 1];
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(order)};
  weir_tensor *row = c_unsqueeze(c, order, -2);
  weir_tensor *places = c_call(c, weir_arange, weir_int(0), weir_int(rows), weir_int(1), &o);
  return calc_give(c, out, c_to_dtype(c, c_eq(c, row, c_unsqueeze(c, places, -1)), dtype));
}

/* L, with 1s as its diagonal, and U of what is both. */
static weir_status split_lu(weir_tensor **l, weir_tensor **u, const weir_tensor *lu)
{
  CALC(c);
  int64_t m = rows_of(lu), n = columns_of(lu), least = m < n ? m : n;
  weir_tensor *low = c_tril(c, c_narrow(c, lu, -1, 0, least), -1);
  weir_tensor *one = c_call(c, weir_eye, m, least, OPTIONS_ON(lu, lu->dtype));
  c_do(c, weir_add(l, low, one));
  weir_tensor *top = c_narrow(c, lu, -2, 0, least);
  return c->st ? c->st : weir_triu(u, top, 0);
}

weir_status weir_lu_unpack(weir_tensor **p, weir_tensor **l, weir_tensor **u, const weir_tensor *lu,
                           const weir_tensor *pivots)
{
  WEIR_OP_BOTH(p, l);
  WEIR_REQUIRE_OUT(u, lu, pivots);
  CALC(c);
  c->st = check_matrices(lu, "weir.lu_unpack", "LU");
  if (lu->numel) c_do(c, check_real(lu, "weir.lu_unpack"));
  if (pivots->dtype != WEIR_INT32)
    c_do(c, fail_invalid("weir.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
                         "weir.int32 dtype.\nNote: this function is intended to be used with the "
                         "output produced by weir.linalg.lu_factor"));
  if (!pivots->dims) c_do(c, fail_invalid("weir.lu_unpack: LU_pivots has no dimension"));
  weir_tensor *order = c_call(c, row_order, pivots, rows_of(lu));
  c_do(c, exchange_matrix(p, order, lu->dtype));
  c_do(c, split_lu(l, u, lu));
  if (!c->st) return c->st;
  weir_tensor_drop(p);
  weir_tensor_drop(l);
  weir_tensor_drop(u);
  return c->st;
}

weir_status weir_lu(weir_tensor **p, weir_tensor **l, weir_tensor **u, const weir_tensor *a,
                    bool pivot)
{
  WEIR_OP_BOTH(p, l);
  WEIR_REQUIRE_OUT(u, a);
  static const char name[] = "linalg.lu";
  WEIR_TENSOR lu = NULL, pivots = NULL;
  int64_t first, at;
  weir_status st = check_lu(a, pivot, name);
  if (!st) st = factor_lu(&lu, &pivots, a, name, &first, &at);
  return st ? st : weir_lu_unpack(p, l, u, lu, pivots);
}

/* t with as many dimensions as `dims`, if it has fewer: of size 1, before its own. */
static weir_status with_dims(weir_tensor **out, const weir_tensor *t, int dims)
{
  weir_shape shape = {0, {0}};
  while (shape.count < dims - t->dims)
    shape.size[shape.count++] = 1;
  for (int d = 0; d < t->dims; d++)
    shape.size[shape.count++] = t->size[d];
  return weir_expand(out, t, shape);
}

/* x with its rows in that order, or `back`: with the rows that were in order in their places. */
static weir_status order_rows(weir_tensor **out, const weir_tensor *x, const weir_tensor *order,
                              bool back)
{
  CALC(c);
  if (!x->numel || !order->numel) return weir_clone(out, x);
  weir_tensor *places = back ? c_call(c, weir_argsort, order, -1, false) : c_clone(c, order);
  weir_tensor *column = c_unsqueeze(c, places, -1);
  weir_tensor *many = c_call(c, with_dims, column, x->dims);
  weir_tensor *wide = c_call(c, with_dims, x, column->dims);
  return c->st ? c->st : weir_take_along_dim(out, wide, many, -2);
}

/* x of P L U x = b, or, turned, of U^T L^T P^T x = b. */
static weir_status solve_with_factors(weir_tensor **out, const weir_tensor *lu,
                                      const weir_tensor *order, const weir_tensor *b, bool turned)
{
  CALC(c);
  WEIR_TENSOR half = NULL, rows = NULL;
  if (!turned) {
    c->st = order_rows(&rows, b, order, false);
    c_do(c, weir_solve_triangular(&half, lu, rows, false, true, true));
    return c->st ? c->st : weir_solve_triangular(out, lu, half, true, true, false);
  }
  weir_tensor *view = c_transpose(c, lu, -2, -1);
  c_do(c, weir_solve_triangular(&half, view, b, false, true, false));
  c_do(c, weir_solve_triangular(&rows, view, half, true, true, true));
  return c->st ? c->st : order_rows(out, rows, order, true);
}

static weir_status check_lu_solve(const weir_tensor *lu, const weir_tensor *pivots,
                                  const weir_tensor *b, bool left)
{
  static const char name[] = "linalg.lu_solve";
  text_buffer t;
  weir_status st = check_same_device(lu, b);
  if (!st) st = check_same_device(lu, pivots);
  if (!st) st = check_real(lu, "weir.linalg.lu_solve");
  if (!st && lu->dtype != b->dtype)
    st = fail_invalid("%s: Expected LU and B to have the same dtype, but found LU of type %s and B "
                      "of type %s instead",
                      name, dtype_title(lu->dtype), dtype_title(b->dtype));
  if (!st && pivots->dtype != WEIR_INT32)
    st = fail_invalid("%s: pivots should be a Tensor of scalar type weir.int32", name);
  if (!st) st = check_square(lu, "weir.linalg.lu_solve");
  if (!st) st = check_matrices(b, name, "B");
  if (!st) st = check_equation(lu, b, left, name);
  if (st) return st;
  if (!pivots->dims || pivots->size[pivots->dims - 1] != columns_of(lu))
    return fail_invalid(
        "%s: Number of pivots per batch should be same as the dimension of the matrix", name);
  if (pivots->dims == lu->dims - 1 &&
      !memcmp(pivots->size, lu->size, (size_t)pivots->dims * sizeof *lu->size))
    return WEIR_OK;
  return fail_invalid("%s: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots "
                      "with shape %s instead",
                      name, shape_format(&t, shape_of_tensor(pivots)));
}

weir_status weir_lu_solve(weir_tensor **out, const weir_tensor *lu, const weir_tensor *pivots,
                          const weir_tensor *b, bool left, bool adjoint)
{
  WEIR_OP(out, lu, pivots, b);
  CALC(c);
  c->st = check_lu_solve(lu, pivots, b, left);
  weir_tensor *order = b->numel ? c_call(c, row_order, pivots, rows_of(lu)) : NULL;
  if (!c->st && left) return solve_with_factors(out, lu, order, b, adjoint);
  weir_tensor *turned = c_transpose(c, b, -2, -1);
  weir_tensor *x = c_call(c, solve_with_factors, lu, order, turned, !adjoint);
  return c->st ? c->st : weir_transpose(out, x, -2, -1);
}

/* ---- with Cholesky's triangle ---------------------------------------------------------------- */

/* x of L L^T x = b; upper: of L^T L x = b. */
static weir_status solve_both_triangles(weir_tensor **out, const weir_tensor *l,
                                        const weir_tensor *b, bool upper)
{
  WEIR_UNRECORDED;
  CALC(c);
  weir_tensor *turned = c_transpose(c, l, -2, -1);
  weir_tensor *half = c_call(c, weir_solve_triangular, upper ? turned : l, b, false, true, false);
  return c->st ? c->st : weir_solve_triangular(out, upper ? l : turned, half, true, true, false);
}

static weir_status check_cholesky_solve(const weir_tensor *b, const weir_tensor *l)
{
  if (b->dims < 2 || l->dims < 2)
    return fail_invalid("%s should have at least 2 dimensions, but has %d dimensions instead",
                        b->dims < 2 ? "b" : "u", b->dims < 2 ? b->dims : l->dims);
  TRY(check_same_device(b, l));
  if (b->dtype != l->dtype)
    return fail_invalid(
        "Expected b and A to have the same dtype, but found b of type %s and A of type %s instead.",
        dtype_title(b->dtype), dtype_title(l->dtype));
  if (rows_of(l) != columns_of(l))
    return fail_invalid("A must be batches of square matrices, but they are %lld by %lld matrices",
                        (long long)rows_of(l), (long long)columns_of(l));
  if (rows_of(l) != rows_of(b))
    return fail_invalid("Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by "
                        "%lld but each b matrix is %lld by %lld",
                        (long long)rows_of(l), (long long)rows_of(l), (long long)rows_of(b),
                        (long long)columns_of(b));
  if (l->dtype == WEIR_FLOAT32 || l->dtype == WEIR_FLOAT64) return WEIR_OK;
  return not_implemented("cholesky_solve_%s", device_of_tensor(l), l->dtype);
}

weir_status weir_cholesky_solve(weir_tensor **out, const weir_tensor *b, const weir_tensor *l,
                                bool upper)
{
  WEIR_OP(out, b, l);
  WEIR_CASTS(FACTOR, b, l);
  weir_status st = check_cholesky_solve(b, l);
  if (!st) st = solve_both_triangles(out, l, b, upper);
  return record_matrix(out, st, RECORD_CHOLESKY_SOLVE, b, l, (const bool[3]){upper});
}

/* Where a diagonal has a 0, torch's error of the first. */
static weir_status check_diagonal(const weir_tensor *l, const char *name)
{
  WEIR_UNRECORDED;
  CALC(c);
  weir_scalar at = {.dtype = WEIR_INT64};
  char batch[48];
  weir_tensor *diagonal = c_diagonal(c, l, 0, -2, -1);
  weir_tensor *zero = c_eq_scalar(c, diagonal, weir_int(0));
  weir_tensor *flat = c_reshape(c, zero, weir_shape(-1));
  weir_tensor *places = c_call(c, weir_nonzero, flat);
  if (c->st || !places->numel) return c->st;
  weir_tensor *first = c_select(c, places, 0, 0);
  c_do(c, weir_item(&at, first));
  if (c->st) return c->st;
  return fail_invalid("%s: %sThe diagonal element %lld is zero, the inversion could not be "
                      "completed because the input matrix is singular.",
                      name, batch_element(batch, l, at.i / columns_of(l)),
                      (long long)at.i % columns_of(l) + 1);
}

weir_status weir_cholesky_inverse(weir_tensor **out, const weir_tensor *l, bool upper)
{
  WEIR_OP(out, l);
  WEIR_CASTS(FACTOR, l);
  static const char name[] = "cholesky_inverse";
  CALC(c);
  c->st = check_square(l, name);
  if (l->dtype != WEIR_FLOAT32 && l->dtype != WEIR_FLOAT64)
    c_do(c, not_implemented("cholesky_inverse_out_%s", device_of_tensor(l), l->dtype));
  if (l->numel) c_do(c, check_diagonal(l, name));
  weir_tensor *one = c_call(c, batch_identity, l, l->dtype);
  c_do(c, solve_both_triangles(out, l, one, upper));
  return record_matrix(out, c->st, RECORD_CHOLESKY_INVERSE, l, NULL, (const bool[3]){upper});
}

/* ---- other factorisations -------------------------------------------------------------------- */

/* Of a matrix without elements Q is the first k columns of the identity. */
static weir_status empty_q(weir_tensor **q, const weir_tensor *a, weir_dtype dtype, int64_t k)
{
  CALC(c);
  weir_shape square = shape_of_tensor(a);
  if (k != rows_of(a)) return new_columns(q, a, dtype, rows_of(a), k);
  square.size[a->dims - 2] = square.size[a->dims - 1] = k;
  weir_tensor *like = c_call(c, tensor_new, dtype, device_of_tensor(a), false, square);
  return c->st ? c->st : batch_identity(q, like, dtype);
}

/* Q (m x k) as columns and R (k x n), a view of what has other things below its diagonal. */
static weir_status qr_columns(weir_tensor **q, weir_tensor **r, const weir_tensor *a, bool complete,
                              const char *name)
{
  CALC(c);
  int64_t m = rows_of(a), n = columns_of(a), least = m < n ? m : n;
  int64_t first, at, k = complete ? m : least;
  weir_factor f = request_of(WEIR_FACTOR_QR, a, m, n, k);
  weir_tensor *whole = c_call(c, copy_columns, a, f.dtype, false);
  c_do(c, least ? new_columns(q, a, f.dtype, m, k) : empty_q(q, a, f.dtype, k));
  weir_tensor *room = c_call(c, new_columns, a, f.dtype, -1, least);
  factor_parts p = {.a = whole, .b = c->st ? NULL : *q, .c = room};
  c_do(c, run_factor(&f, &p, name, &first, &at));
  weir_tensor *rows = c_narrow(c, whole, -1, 0, k);
  return c->st ? c->st : weir_transpose(r, rows, -2, -1);
}

weir_status weir_qr(weir_tensor **q, weir_tensor **r, const weir_tensor *a, const char *mode)
{
  WEIR_OP_BOTH(q, r, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.qr";
  CALC(c);
  WEIR_TENSOR wide_q = NULL, wide_r = NULL;
  bool alone = mode && !strcmp(mode, "r"), complete = mode && !strcmp(mode, "complete");
  c->st = check_factors(a, name, false);
  if (!c->st && mode && !alone && !complete && strcmp(mode, "reduced") != 0)
    c->st = fail_invalid("qr received unrecognized mode '%s' but expected one of 'reduced' "
                         "(default), 'r', or 'complete'",
                         mode);
  c_do(c, qr_columns(&wide_q, &wide_r, a, complete, name));
  weir_tensor *up = c_triu(c, wide_r, 0);
  if (alone) c_do(c, tensor_new_beside(q, a, weir_shape(0)));
  if (!alone) c_do(c, narrowed_columns(q, wide_q, a));
  c_do(c, narrowed(r, up, a));
  int how = alone ? RECORD_QR_R_ALONE : complete ? RECORD_QR_COMPLETE : RECORD_QR_REDUCED;
  return record_factors(c->st, RECORD_QR, a, how, (weir_tensor * *[]){q, r, NULL});
}

/* Eigenvalues, and eigenvectors as columns. */
static weir_status eigh_columns(weir_tensor **values, weir_tensor **vectors, const weir_tensor *a,
                                bool upper)
{
  static const char name[] = "linalg.eigh";
  CALC(c);
  char batch[48];
  int64_t first = 0, at = 0;
  TRY(check_factors(a, name, true));
  int64_t n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_EIGH, a, n, n, 0);
  f.upper = upper;
  c->st = copy_columns(vectors, a, f.dtype, false);
  c_do(c, new_columns(values, a, f.dtype, -1, n));
  weir_tensor *room = c_call(c, new_columns, a, f.dtype, n, n);
  factor_parts p = {.a = *vectors, .b = *values, .c = room};
  c_do(c, run_factor(&f, &p, name, &first, &at));
  if (!c->st && first)
    c->st =
        fail_invalid("linalg.eigh: %sThe algorithm failed to converge because the input matrix is "
                     "ill-conditioned or has too many repeated eigenvalues (error code: %lld).",
                     batch_element(batch, a, at), (long long)(first < 0 ? n - 1 : first));
  return c->st;
}

weir_status weir_eigh(weir_tensor **values, weir_tensor **vectors, const weir_tensor *a, bool upper)
{
  WEIR_OP_BOTH(values, vectors, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_TENSOR wide_values = NULL, wide_vectors = NULL;
  weir_status st = eigh_columns(&wide_values, &wide_vectors, a, upper);
  if (!st) st = narrowed(values, wide_values, a);
  if (!st) st = narrowed_columns(vectors, wide_vectors, a);
  return record_factors(st, RECORD_EIGH, a, 0, (weir_tensor * *[]){values, vectors, NULL});
}

weir_status weir_eigvalsh(weir_tensor **out, const weir_tensor *a, bool upper)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_TENSOR wide_values = NULL, wide_vectors = NULL;
  if (recorded(a)) return weir_eigh(out, &wide_vectors, a, upper);
  weir_status st = eigh_columns(&wide_values, &wide_vectors, a, upper);
  return st ? st : narrowed(out, wide_values, a);
}

/* A thin singular value decomposition as a device made it: u (m x k), s (k), vh (k x n). */
typedef struct svd_parts {
  weir_tensor *u, *s, *vh; /* owned */
} svd_parts;

static void drop_svd(svd_parts *p)
{
  weir_tensor_drop(&p->u);
  weir_tensor_drop(&p->s);
  weir_tensor_drop(&p->vh);
}

/* Of a wide matrix that of the transposed one, U and V exchanged. */
static weir_status svd_thin(svd_parts *out, const weir_tensor *a, const char *name)
{
  CALC(c);
  char batch[48];
  int64_t first = 0, at = 0;
  TRY(check_factors(a, name, false));
  int64_t m = rows_of(a), n = columns_of(a);
  bool tall = m >= n;
  int64_t least = tall ? n : m, most = tall ? m : n;
  weir_factor f = request_of(WEIR_FACTOR_SVD, a, most, least, 0);
  weir_tensor *u = c_call(c, copy_columns, a, f.dtype, !tall);
  c_do(c, new_columns(&out->s, a, f.dtype, -1, least));
  weir_tensor *vt = c_call(c, new_columns, a, f.dtype, least, least);
  factor_parts p = {.a = u, .b = out->s, .c = vt};
  c_do(c, run_factor(&f, &p, name, &first, &at));
  if (!c->st && first < 0)
    c->st = fail_invalid("linalg.svd: %sThe algorithm failed to converge because the input matrix "
                         "contained non-finite values.",
                         batch_element(batch, a, at));
  if (!c->st && first)
    c->st =
        fail_invalid("linalg.svd: %sThe algorithm failed to converge because the input matrix is "
                     "ill-conditioned or has too many repeated singular values (error code: %lld).",
                     batch_element(batch, a, at), (long long)first);
  if (!c->st && !tall) {
    out->u = weir_tensor_retain(vt);
    out->vh = weir_tensor_retain(u);
  }
  if (tall) c_do(c, weir_transpose(&out->u, u, -2, -1));
  if (tall) c_do(c, weir_transpose(&out->vh, vt, -2, -1));
  if (c->st) drop_svd(out);
  return c->st;
}

/* Columns of t (..., m, k), which are orthonormal, and those that are missing to m. */
static weir_status complete_columns(weir_tensor **out, const weir_tensor *t)
{
  CALC(c);
  WEIR_TENSOR q = NULL, r = NULL;
  int64_t m = rows_of(t), k = columns_of(t);
  if (m == k) return weir_contiguous(out, t);
  c->st = qr_columns(&q, &r, t, true, "linalg.svd");
  weir_tensor *rest = c_narrow(c, c_transpose(c, q, -2, -1), -1, k, m - k);
  return c->st ? c->st : weir_cat(out, (const weir_tensor *[]){t, rest}, 2, -1);
}

static weir_status complete_svd(svd_parts *p)
{
  CALC(c);
  weir_tensor *u = NULL, *vh = NULL;
  c->st = complete_columns(&u, p->u);
  weir_tensor *turned = c_call(c, weir_transpose, p->vh, -2, -1);
  weir_tensor *columns = c_call(c, complete_columns, turned);
  c_do(c, weir_transpose(&vh, columns, -2, -1));
  if (c->st) {
    weir_tensor_release(u);
    return c->st;
  }
  weir_tensor_release(p->u);
  weir_tensor_release(p->vh);
  p->u = u;
  p->vh = vh;
  return WEIR_OK;
}

weir_status weir_svd(weir_tensor **u, weir_tensor **s, weir_tensor **vh, const weir_tensor *a,
                     bool full_matrices)
{
  WEIR_OP_BOTH(u, s);
  WEIR_REQUIRE_OUT(vh, a);
  WEIR_CASTS(FACTOR, a);
  svd_parts p = {NULL, NULL, NULL};
  weir_status st = svd_thin(&p, a, "linalg.svd");
  if (!st && full_matrices) st = complete_svd(&p);
  if (!st) st = narrowed(u, p.u, a);
  if (!st) st = narrowed(s, p.s, a);
  if (!st) st = narrowed(vh, p.vh, a);
  drop_svd(&p);
  return record_factors(st, RECORD_SVD, a, full_matrices, (weir_tensor * *[]){u, s, vh});
}

/* `name` checks a. */
static weir_status singular_values(weir_tensor **out, const weir_tensor *a, const char *name)
{
  WEIR_TENSOR u = NULL, vh = NULL;
  svd_parts p = {NULL, NULL, NULL};
  weir_status st = check_factors(a, name, false);
  if (!st && recorded(a)) return weir_svd(&u, out, &vh, a, false);
  if (!st) st = svd_thin(&p, a, name);
  if (!st) st = narrowed(out, p.s, a);
  drop_svd(&p);
  return st;
}

weir_status weir_svdvals(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FACTOR, a);
  return singular_values(out, a, "linalg.svd");
}

/* ---- made of singular values ----------------------------------------------------------------- */

/* torch's: the dtype's epsilon times the larger of m and n. */
static double usual_rtol(const weir_tensor *a)
{
  int64_t m = a->size[a->dims - 2], n = a->size[a->dims - 1];
  double epsilon = a->dtype == WEIR_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON;
  return epsilon * (double)(m > n ? m : n);
}

/* rtol times the largest of s, (..., 1); rtol below 0: torch's. */
static weir_status singular_cutoff(weir_tensor **out, const svd_parts *p, const weir_tensor *a,
                                   double rtol)
{
  CALC(c);
  if (rtol < 0) rtol = usual_rtol(a);
  return calc_give(c, out, c_mul_s(c, c_amax_dim(c, p->s, -1, true), rtol));
}

/* V S^+ U^T. */
static weir_status pinv_wide(weir_tensor **out, const svd_parts *p, const weir_tensor *a,
                             double rtol)
{
  CALC(c);
  weir_tensor *real = c_gt(c, p->s, c_call(c, singular_cutoff, p, a, rtol));
  weir_tensor *inverse = c_scalar_div(c, weir_int(1), p->s);
  weir_tensor *row = c_unsqueeze(c, c_where(c, real, inverse, c_zeros_like(c, inverse, NULL)), -2);
  weir_tensor *scaled = c_mul(c, c_transpose(c, p->vh, -2, -1), row);
  return calc_give(c, out, c_matmul(c, scaled, c_transpose(c, p->u, -2, -1)));
}

weir_status weir_pinv(weir_tensor **out, const weir_tensor *a, double rtol)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FACTOR, a);
  CALC(c);
  text_buffer t;
  svd_parts p = {NULL, NULL, NULL};
  weir_dtype d = a->dtype;
  if (a->dims < 2 || !(dtype_is_floating(d) || d == WEIR_COMPLEX64))
    return fail_invalid("linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of "
                        "float, double, cfloat or cdouble types",
                        dtype_title(d), shape_format(&t, shape_of_tensor(a)));
  int64_t m = a->size[a->dims - 2], n = a->size[a->dims - 1];
  if (!a->numel) {
    weir_shape shape = shape_of_tensor(a);
    shape.size[a->dims - 2] = n;
    shape.size[a->dims - 1] = m;
    c->st = tensor_new_beside(out, a, shape);
    return record_matrix(out, c->st, RECORD_PINV, a, NULL, (const bool[3]){false});
  }
  c->st = svd_thin(&p, a, "linalg.pinv");
  weir_tensor *wide = c_call(c, pinv_wide, &p, a, rtol);
  c_do(c, narrowed(out, wide, a));
  drop_svd(&p);
  return record_matrix(out, c->st, RECORD_PINV, a, NULL, (const bool[3]){false});
}

weir_status weir_matrix_rank(weir_tensor **out, const weir_tensor *a, double rtol)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_UNRECORDED;
  static const char name[] = "weir.linalg.matrix_rank";
  CALC(c);
  svd_parts p = {NULL, NULL, NULL};
  c->st = check_matrices(a, name, "input");
  if (a->dtype != WEIR_FLOAT32 && a->dtype != WEIR_FLOAT64)
    c_do(c, fail_unsupported("This function doesn't handle types other than float and double"));
  if (c->st) return c->st;
  if (!a->numel) {
    return weir_zeros(out, weir_shape_of(a->dims - 2, a->size), OPTIONS_ON(a, WEIR_INT64));
  }
  c->st = svd_thin(&p, a, name);
  weir_tensor *cutoff = c_call(c, singular_cutoff, &p, a, rtol);
  weir_tensor *real = c_call(c, weir_gt, p.s, cutoff);
  c_do(c, weir_sum_dim(out, real, -1, false));
  drop_svd(&p);
  return c->st;
}

weir_status weir_lstsq(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(FACTOR, a, b);
  static const char name[] = "weir.linalg.lstsq";
  CALC(c);
  WEIR_TENSOR columns = NULL;
  c->st = check_same_device(a, b);
  if (a->dims < 2) c_do(c, fail_invalid("%s: input must have at least 2 dimensions.", name));
  if (!b->dims) c_do(c, fail_invalid("%s: other must have at least 1 dimension.", name));
  if (a->dtype != b->dtype)
    c_do(c, fail_invalid("%s: Expected input and other to have the same dtype", name));
  if (c->st) return c->st;
  bool vector = b->dims == a->dims - 1;
  if (!vector && b->dims < 2)
    return fail_invalid("%s: input.dim() must be greater or equal to other.dim()", name);
  if (a->size[a->dims - 2] != b->size[b->dims - (vector ? 1 : 2)])
    return fail_invalid("%s: input.size(-2) should match other.size(%d)", name, vector ? -1 : -2);
  if (vector)
    c->st = weir_unsqueeze(&columns, b, -1);
  else
    columns = weir_tensor_retain((weir_tensor *)b);
  c_do(c, check_real(a, name));
  weir_tensor *wide_a = c_to_dtype(c, a, WEIR_FLOAT64);
  weir_tensor *inverse = c_call(c, weir_pinv, wide_a, usual_rtol(a));
  weir_tensor *product = c_matmul(c, inverse, c_to_dtype(c, columns, WEIR_FLOAT64));
  weir_tensor *result = c_to_dtype(c, product, a->dtype);
  c_do(c, vector ? weir_squeeze(out, result, -1) : weir_contiguous(out, result));
  return c->st;
}

/* ---- powers and norms ------------------------------------------------------------------------ */

/* *t becomes *t times `by`. */
static weir_status multiply_by(weir_tensor **t, const weir_tensor *by)
{
  weir_tensor *product = NULL;
  TRY(weir_matmul(&product, *t, by));
  weir_tensor_release(*t);
  *t = product;
  return WEIR_OK;
}

/* a to the power n, above 0, by squares: n's digits of 2 from the highest on. */
static weir_status positive_power(weir_tensor **out, const weir_tensor *a, uint64_t n)
{
  int digit = 63;
  while (!(n >> digit & 1))
    digit--;
  weir_status st = weir_clone(out, a);
  while (!st && digit-- > 0) {
    st = multiply_by(out, *out);
    if (!st && n >> digit & 1) st = multiply_by(out, a);
  }
  if (st) weir_tensor_drop(out);
  return st;
}

weir_status weir_matrix_power(weir_tensor **out, const weir_tensor *a, int64_t n)
{
  WEIR_OP(out, a);
  CALC(c);
  TRY(check_square(a, "linalg.matrix_power"));
  if (n > 0) {
    WEIR_CASTS_WHERE(n > 1 ? AUTOCAST_MATMUL : AUTOCAST_NONE, a);
    return positive_power(out, a, (uint64_t)n);
  }
  if (n == 0) return batch_identity(out, a, a->dtype);
  weir_tensor *inverse = c_call(c, weir_inv, a);
  return c->st ? c->st : positive_power(out, inverse, -(uint64_t)n);
}

/* The largest, or the smallest, sum of |x| along the last dimension but one, or the last. */
static weir_status norm_of_sums(weir_tensor **out, const weir_tensor *a, bool columns, bool most)
{
  CALC(c);
  weir_tensor *size = c_abs(c, a);
  weir_tensor *sums = c_sum_dim(c, size, columns ? -2 : -1, true);
  if (c->st) return c->st;
  if (most && !sums->numel) { /* of nothing: 0 */
    weir_shape shape = shape_of_tensor(a);
    shape.size[a->dims - 2] = shape.size[a->dims - 1] = 1;
    return weir_zeros(out, shape, OPTIONS_ON(a, sums->dtype));
  }
  return most ? weir_amax_dim(out, sums, columns ? -1 : -2, true)
              : weir_amin_dim(out, sums, columns ? -1 : -2, true);
}

/* By singular values: their sum (0), the largest (2) or the smallest (-2). */
static weir_status norm_of_values(weir_tensor **out, const weir_tensor *a, int which)
{
  CALC(c);
  weir_tensor *row = c_unsqueeze(c, c_call(c, singular_values, a, "linalg.matrix_norm"), -2);
  c_do(c, which == 0 || (which == 2 && !row->numel) ? weir_sum_dim(out, row, -1, true)
          : which == 2                              ? weir_amax_dim(out, row, -1, true)
                                                    : weir_amin_dim(out, row, -1, true));
  return c->st;
}

/* "fro" and "nuc" are 0 and 3 here; others are their number. Errors: torch's, of any other. */
static weir_status norm_order(double *out, const char *ord)
{
  char *end = NULL;
  double p = strtod(ord, &end);
  bool number = end != ord && !*end && (fabs(p) == 1 || fabs(p) == 2 || isinf(p));
  *out = number ? p : !strcmp(ord, "fro") ? 0 : 3;
  if (number || !strcmp(ord, "fro") || !strcmp(ord, "nuc")) return WEIR_OK;
  return fail_invalid("linalg.matrix_norm: Order %s not supported.", ord);
}

/* The norm of the last two dimensions, which stay with size 1. */
static weir_status norm_by_order(weir_tensor **out, const weir_tensor *a, double order)
{
  static const int both[] = {-2, -1};
  if (order == 0) return weir_norm_dims(out, a, 2, both, 2, true);
  if (order == 3) return norm_of_values(out, a, 0);
  if (fabs(order) == 1) return norm_of_sums(out, a, true, order > 0);
  if (isinf(order)) return norm_of_sums(out, a, false, order > 0);
  return norm_of_values(out, a, (int)order);
}

static weir_status check_floating_matrices(const weir_tensor *a)
{
  weir_dtype d = a->dtype;
  if (dtype_is_floating(d) || d == WEIR_COMPLEX64) return WEIR_OK;
  return fail_unsupported(
      "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got %s",
      dtype_title(d));
}

static weir_status norm_places(const weir_tensor *a, const int *dims, int at[2])
{
  static const int last[] = {-2, -1};
  const int *asked = dims ? dims : last;
  weir_status st = WEIR_OK;
  for (int i = 0; i < 2 && !st; i++)
    st = dim_resolve(&at[i], asked[i], a->dims);
  if (!st && at[0] == at[1])
    st = fail_invalid("linalg.matrix_norm: dims must be different. Got (%d, %d)", at[0], at[1]);
  return st;
}

weir_status weir_matrix_norm(weir_tensor **out, const weir_tensor *a, const char *ord,
                             const int *dims, bool keepdim)
{
  WEIR_OP(out, a, ord);
  WEIR_CASTS(NORM, a);
  static const int last[] = {-2, -1};
  CALC(c);
  int at[2] = {0};
  double order;
  c->st = norm_order(&order, ord);
  c_do(c, check_matrices(a, "linalg.matrix_norm", "A"));
  c_do(c, check_floating_matrices(a));
  c_do(c, norm_places(a, dims, at));
  weir_tensor *moved = c_call(c, weir_movedim, a, at, last, 2);
  weir_tensor *norm = c_call(c, norm_by_order, moved, order);
  if (c->st) return c->st;
  weir_shape shape = {0, {0}};
  for (int d = 0; d < a->dims; d++)
    if (d != at[0] && d != at[1])
      shape.size[shape.count++] = a->size[d];
    else if (keepdim)
      shape.size[shape.count++] = 1;
  return weir_reshape(out, norm, shape);
}

/* ---- condition ------------------------------------------------------------------------------- */

/* Whether LU finds each of a's matrices singular. */
static weir_status which_singular(weir_tensor **out, const weir_tensor *a)
{
  WEIR_UNRECORDED;
  CALC(c);
  WEIR_TENSOR diagonal = NULL, sign = NULL;
  c->st = lu_diagonal(&diagonal, &sign, a, "linalg.inv");
  return calc_give(c, out, c_any_dim(c, c_eq_scalar(c, diagonal, weir_int(0)), -1, false));
}

/* a's inverse; where `singular` it is the identity, which is not used. */
static weir_status inverse_of_any(weir_tensor **out, const weir_tensor *a, weir_tensor **singular)
{
  CALC(c);
  c->st = which_singular(singular, a);
  weir_tensor *mask = c_unsqueeze(c, c_call(c, weir_unsqueeze, *singular, -1), -1);
  weir_tensor *whole = c_where(c, mask, c_call(c, batch_identity, a, a->dtype), a);
  return c->st ? c->st : weir_inv(out, whole);
}

/* |a| |a^-1| by a norm; infinite of what is singular. */
static weir_status condition_by_norm(weir_tensor **out, const weir_tensor *a, const char *ord)
{
  CALC(c);
  WEIR_TENSOR inverse = NULL, singular = NULL;
  const double infinite = INFINITY;
  c->st = check_factors(a, "linalg.inv", true);
  c_do(c, inverse_of_any(&inverse, a, &singular));
  weir_tensor *norm = c_call(c, weir_matrix_norm, a, ord, NULL, false);
  weir_tensor *product = c_mul(c, norm, c_call(c, weir_matrix_norm, inverse, ord, NULL, false));
  weir_tensor *whole = c_call(c, weir_nan_to_num, product, INFINITY, &infinite, NULL);
  return c->st ? c->st : weir_masked_fill(out, whole, singular, weir_float(INFINITY));
}

/* By singular values s: order 2 (-2): the largest through the smallest (or the reverse); 3: sums of
 * s and of reciprocals. */
static weir_status condition_by_values(weir_tensor **out, const weir_tensor *a, double order)
{
  CALC(c);
  WEIR_TENSOR most = NULL, least = NULL;
  weir_tensor *over = NULL;
  weir_tensor *s = c_call(c, singular_values, a, "linalg.svd");
  if (c->st) return c->st;
  int64_t count = s->size[s->dims - 1];
  if (order == 3) {
    c->st = weir_sum_dim(&most, s, -1, false);
    over = c_reciprocal(c, s);
    c_do(c, weir_sum_dim(&least, over, -1, false));
    return c->st ? c->st : weir_mul(out, most, least);
  }
  c->st = weir_select(&most, s, -1, 0);
  c_do(c, weir_select(&least, s, -1, count - 1));
  if (c->st) return c->st;
  return order > 0 ? weir_div(out, most, least) : weir_div(out, least, most);
}

weir_status weir_cond(weir_tensor **out, const weir_tensor *a, const char *p)
{
  WEIR_OP(out, a);
  WEIR_CASTS(FACTOR, a);
  char name[48], *end = NULL;
  double order;
  weir_status st = WEIR_OK;
  if (!p) p = "2";
  (void)snprintf(name, sizeof name, "linalg.cond(ord=%s)", p);
  (void)strtod(p, &end);
  bool known = !norm_order(&order, p), text = end == p || *end;
  if (text) st = check_square(a, name);
  if (!st && a->dims < 2)
    st = fail_invalid("linalg.cond: The input tensor must have at least 2 dimensions.");
  if (!st && !known) st = fail_invalid("linalg.cond got an invalid norm type: %s", p);
  if (!st && !a->numel) {
    return weir_zeros(out, weir_shape_of(a->dims - 2, a->size), OPTIONS_ON(a, a->dtype));
  }
  if (!st && fabs(order) != 2) st = check_square(a, name);
  if (st) return st;
  return fabs(order) == 2 || order == 3 ? condition_by_values(out, a, order)
                                        : condition_by_norm(out, a, p);
}
