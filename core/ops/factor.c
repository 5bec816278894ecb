/* factor.c: determinants, inverses, solutions, factorisations, and norms of matrices.
 *
 * A device factorises in float64 what lies row by row (weir_factor): operands are copied into that
 * form, and results are cast back and turned as they are asked for. Whether a matrix could be
 * factorised is read back (info), for torch says it as an error: these functions wait for the
 * device.
 *
 * Words. wide: float64. thin: of a factorisation as small as it can be. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/require.h"
#include "core/stream/async_error.h"
#include "core/ops/ops.h"
#include "core/tensor/record.h"
#include "core/tensor/autocast.h"

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_matrices(const weir_tensor *a, const char *name, const char *argument)
{
  if (a->dims >= 2) return WEIR_OK;
  return weir_fail(WEIR_EINVAL, "%s: The input tensor %s must have at least 2 dimensions.", name,
                   argument);
}

static weir_status check_square(const weir_tensor *a, const char *name)
{
  weir_status st = check_matrices(a, name, "A");
  if (st || a->size[a->dims - 2] == a->size[a->dims - 1]) return st;
  return weir_fail(WEIR_EINVAL,
                   "%s: A must be batches of square matrices, but they are %lld by %lld matrices",
                   name, (long long)a->size[a->dims - 2], (long long)a->size[a->dims - 1]);
}

static weir_status check_real(const weir_tensor *a, const char *name)
{
  weir_dtype d = (weir_dtype)a->dtype;
  if (d == WEIR_FLOAT32 || d == WEIR_FLOAT64) return WEIR_OK;
  if (d == WEIR_FLOAT16 || d == WEIR_BFLOAT16)
    return weir_fail(WEIR_ENOTSUP, "%s: Low precision dtypes not supported. Got %s", name,
                     dtype_title(d));
  if (d == WEIR_COMPLEX64) return weir_fail(WEIR_ENOTSUP, "%s: complex64 is not supported", name);
  return weir_fail(WEIR_ENOTSUP, "%s: Expected a floating point or complex tensor as input. Got %s",
                   name, dtype_title(d));
}

/* ---- requests -------------------------------------------------------------------------------- */

static int64_t count_matrices(const weir_tensor *a)
{
  int64_t count = 1;
  for (int i = 0; i < a->dims - 2; i++)
    count *= a->size[i];
  return count;
}

/* A new tensor of float64: a's batch, then `rows` and `columns`; rows -1: as many as columns, as
 * one dimension. */
static weir_status new_wide(weir_tensor **out, const weir_tensor *a, int64_t rows, int64_t columns)
{
  weir_shape shape = weir_shape_of(a->dims - 2, a->size);
  if (rows >= 0) shape.size[shape.count++] = rows;
  shape.size[shape.count++] = columns;
  return tensor_new(out, WEIR_FLOAT64, device_of_tensor(a), false, shape);
}

/* A copy of a, or of its matrices turned, in float64 and row by row. */
static weir_status copy_wide(weir_tensor **out, const weir_tensor *a, bool turned)
{
  WEIR_TENSOR view = NULL;
  weir_status st = WEIR_OK;
  if (turned) st = weir_transpose(&view, a, -2, -1);
  const weir_tensor *from = turned ? view : a;
  if (!st)
    st = tensor_new(out, WEIR_FLOAT64, device_of_tensor(a), false,
                    weir_shape_of(from->dims, from->size));
  if (!st) st = loop_copy(*out, from);
  if (st) weir_tensor_drop(out);
  return st;
}

/* The tensors of a request; NULL: the operation has none. */
typedef struct factor_parts {
  const weir_tensor *a, *b, *c;
} factor_parts;

/* Runs f, of which op, m, n, k, upper and unit are filled, in the matrices of the parts. *first:
 * the first info that is not 0, and *at its place in the batch. */
static weir_status run_factor(weir_factor *f, const factor_parts *p, const char *name,
                              int64_t *first, int64_t *at)
{
  WEIR_TENSOR info = NULL;
  compute_target t;
  *first = *at = 0;
  f->batch = count_matrices(p->a);
  if (!f->batch || !p->a->numel || (p->b && !p->b->numel)) return WEIR_OK;
  weir_status st = compute_target_of(&t, device_of_tensor(p->a));
  if (st) return st;
  if (!t.compute->factor) return compute_target_lacks(&t, name);
  st = tensor_new(&info, WEIR_INT64, device_of_tensor(p->a), false, weir_shape(f->batch));
  if (st) return st;
  f->a = (double *)(void *)p->a->data;
  f->b = p->b ? (double *)(void *)p->b->data : NULL;
  f->c = p->c ? (double *)(void *)p->c->data : NULL;
  f->info = (int64_t *)(void *)info->data;
  st = compute_target_done(&t, t.compute->factor(t.self, t.stream, f), name);
  if (st) return st;
  size_t bytes = (size_t)f->batch * sizeof(int64_t);
  int64_t *said = malloc(bytes);
  if (!said) return weir_fail(WEIR_ENOMEM, "%s: no host memory for its outcome", name);
  st = weir_tensor_read(said, bytes, WEIR_INT64, info);
  for (int64_t i = 0; !st && i < f->batch && !*first; i++)
    if (said[i]) *first = said[i], *at = i;
  free(said);
  return st;
}

/* "(Batch element 2): ", where there is a batch. */
static const char *batch_element(char text[48], const weir_tensor *a, int64_t at)
{
  text[0] = 0;
  if (a->dims > 2) (void)snprintf(text, 48, "(Batch element %lld): ", (long long)at);
  return text;
}

/* t (stolen, where st is 0) in the dtype of `like`. */
static weir_status narrowed(weir_tensor **out, const weir_tensor *t, const weir_tensor *like)
{
  WEIR_TENSOR cast = NULL;
  weir_status st = weir_to_dtype(&cast, t, (weir_dtype)like->dtype);
  return st ? st : weir_contiguous(out, cast);
}

/* Says what was made of a and b, or NULL, where one of them requires a gradient. */
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

/* U's diagonals (..., n) and the signs of the exchanges (...). */
static weir_status lu_diagonal(weir_tensor **diagonal, weir_tensor **sign, const weir_tensor *a,
                               const char *name)
{
  WEIR_TENSOR lu = NULL;
  int64_t first, at, n = a->size[a->dims - 1];
  weir_factor f = {.op = WEIR_FACTOR_LU, .m = n, .n = n};
  weir_status st = copy_wide(&lu, a, false);
  if (!st) st = new_wide(sign, a, -1, 1);
  if (!st) st = weir_fill_(*sign, weir_int(1));
  factor_parts p = {lu, *sign, NULL};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  return st ? st : weir_diagonal(diagonal, lu, 0, -2, -1);
}

weir_status weir_det(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  static const char name[] = "linalg.det";
  WEIR_TENSOR diagonal = NULL;
  WEIR_TENSOR sign = NULL;
  WEIR_TENSOR flat = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR wide = NULL;
  weir_status st = check_square(a, name);
  if (!st) st = check_real(a, name);
  if (!st) st = lu_diagonal(&diagonal, &sign, a, name);
  if (!st) st = weir_squeeze(&flat, sign, -1);
  if (!st) st = weir_prod_dim(&product, diagonal, -1, false);
  if (!st) st = weir_mul(&wide, product, flat);
  if (!st) st = narrowed(out, wide, a);
  return record_matrix(out, st, RECORD_DET, a, NULL, (const bool[3]){false});
}

/* 1, 0 or -1 of each; NaN of NaN. */
static weir_status signs_of(weir_tensor **out, const weir_tensor *t)
{
  WEIR_TENSOR size = NULL;
  WEIR_TENSOR quotient = NULL;
  WEIR_TENSOR zero = NULL;
  weir_status st = weir_abs(&size, t);
  if (!st) st = weir_div(&quotient, t, size);
  if (!st) st = weir_eq_scalar(&zero, t, weir_int(0));
  return st ? st : weir_where(out, zero, t, quotient);
}

weir_status weir_slogdet(weir_tensor **sign, weir_tensor **logabsdet, const weir_tensor *a)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(sign);
  WEIR_REQUIRE_OUT(logabsdet, a);
  static const char name[] = "linalg.slogdet";
  WEIR_TENSOR diagonal = NULL;
  WEIR_TENSOR exchanges = NULL;
  WEIR_TENSOR flat = NULL;
  WEIR_TENSOR each = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR wide = NULL;
  weir_status st = check_square(a, name);
  if (!st) st = check_real(a, name);
  if (!st) st = lu_diagonal(&diagonal, &exchanges, a, name);
  if (!st) st = weir_squeeze(&flat, exchanges, -1);
  if (!st) st = signs_of(&each, diagonal);
  if (!st) st = weir_prod_dim(&product, each, -1, false);
  if (!st) st = weir_mul(&wide, product, flat);
  if (st) return st;
  WEIR_TENSOR size = NULL;
  WEIR_TENSOR logs = NULL;
  WEIR_TENSOR sum = NULL;
  st = weir_abs(&size, diagonal);
  if (!st) st = weir_log(&logs, size);
  if (!st) st = weir_sum_dim(&sum, logs, -1, false);
  if (!st) st = narrowed(sign, wide, a);
  if (!st) st = narrowed(logabsdet, sum, a);
  return record_factors(st, RECORD_SLOGDET, a, 0, (weir_tensor * *[]){sign, logabsdet, NULL});
}

/* ---- solutions ------------------------------------------------------------------------------- */

/* The identity for each of a's matrices, in float64. */
static weir_status wide_identity(weir_tensor **out, const weir_tensor *a)
{
  WEIR_TENSOR diagonal = NULL;
  int64_t n = a->size[a->dims - 1];
  weir_status st = new_wide(out, a, n, n);
  if (!st) st = weir_zero_(*out);
  if (!st) st = weir_diagonal(&diagonal, *out, 0, -2, -1);
  if (!st) st = weir_fill_(diagonal, weir_int(1));
  if (st) weir_tensor_drop(out);
  return st;
}

weir_status weir_inv(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.inv";
  WEIR_TENSOR lu = NULL;
  WEIR_TENSOR wide = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_square(a, name);
  if (!st) st = check_real(a, name);
  if (!st) st = copy_wide(&lu, a, false);
  if (!st) st = wide_identity(&wide, a);
  int64_t n = st ? 0 : a->size[a->dims - 1];
  weir_factor f = {.op = WEIR_FACTOR_SOLVE, .m = n, .n = n, .k = n};
  factor_parts p = {lu, wide, NULL};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.inv: %sThe diagonal element %lld is zero, the inversion could not be "
                   "completed because the input matrix is singular.",
                   batch_element(batch, a, at), (long long)first);
  if (!st) st = narrowed(out, wide, a);
  return record_matrix(out, st, RECORD_INV, a, NULL, (const bool[3]){false});
}

/* b as matrices: a vector, or a batch of them, as columns. */
static weir_status columns_of(weir_tensor **out, bool *vector, const weir_tensor *a,
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
  return weir_fail(
      WEIR_EINVAL,
      "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)", name,
      left ? "AX" : "XA", (long long)n, (long long)n, (long long)rows, (long long)columns);
}

static weir_status check_operands(const weir_tensor *a, const weir_tensor *b, const char *name)
{
  weir_status st = check_same_device(a, b);
  if (!st) st = check_square(a, name);
  if (!st) st = check_real(a, name);
  if (!st && a->dtype != b->dtype)
    st = weir_fail(WEIR_EINVAL,
                   "%s: Expected A and B to have the same dtype, but found A of type %s and B of "
                   "type %s instead",
                   name, dtype_title((weir_dtype)a->dtype), dtype_title((weir_dtype)b->dtype));
  return st;
}

weir_status weir_solve(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  WEIR_CASTS(FACTOR, a, b);
  static const char name[] = "linalg.solve";
  WEIR_TENSOR columns = NULL;
  WEIR_TENSOR many_a = NULL;
  WEIR_TENSOR many_b = NULL;
  WEIR_TENSOR lu = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR result = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  bool vector;
  weir_status st = check_operands(a, b, name);
  if (!st) st = columns_of(&columns, &vector, a, b, name);
  if (!st) st = check_equation(a, columns, true, name);
  if (!st) st = broadcast_batches(&many_a, &many_b, a, columns);
  if (!st) st = copy_wide(&lu, many_a, false);
  if (!st) st = copy_wide(&wide, many_b, false);
  if (st) return st;
  int64_t n = a->size[a->dims - 1], k = columns->size[columns->dims - 1];
  weir_factor f = {.op = WEIR_FACTOR_SOLVE, .m = n, .n = n, .k = k};
  factor_parts p = {lu, wide, NULL};
  st = run_factor(&f, &p, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "weir.linalg.solve: %sThe solver failed because the input matrix is singular.",
                   batch_element(batch, many_a, at));
  if (!st) st = narrowed(&result, wide, a);
  if (!st) st = vector ? weir_squeeze(out, result, -1) : weir_contiguous(out, result);
  return record_matrix(out, st, RECORD_SOLVE, a, b, (const bool[3]){vector});
}

weir_status weir_solve_triangular(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                  bool upper, bool left, bool unitriangular)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  static const char name[] = "linalg.solve_triangular";
  WEIR_TENSOR many_a = NULL;
  WEIR_TENSOR many_b = NULL;
  WEIR_TENSOR triangle = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR turned = NULL;
  int64_t first, at;
  weir_status st = check_operands(a, b, name);
  if (!st) st = check_matrices(b, name, "B");
  if (!st) st = check_equation(a, b, left, name);
  if (!st) st = broadcast_batches(&many_a, &many_b, a, b);
  if (!st) st = copy_wide(&triangle, many_a, !left);
  if (!st) st = copy_wide(&wide, many_b, !left);
  if (st) return st;
  int64_t n = a->size[a->dims - 1], k = wide->size[wide->dims - 1];
  weir_factor f = {.op = WEIR_FACTOR_TRIANGULAR, .m = n, .n = n, .k = k};
  f.upper = upper == left;
  f.unit = unitriangular;
  factor_parts p = {triangle, wide, NULL};
  st = run_factor(&f, &p, name, &first, &at);
  if (!st && !left) st = weir_transpose(&turned, wide, -2, -1);
  if (!st) st = narrowed(out, left ? wide : turned, a);
  const bool how[3] = {upper, left, unitriangular};
  return record_matrix(out, st, RECORD_SOLVE_TRIANGULAR, a, b, how);
}

/* ---- factorisations -------------------------------------------------------------------------- */

weir_status weir_cholesky(weir_tensor **out, const weir_tensor *a, bool upper)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.cholesky";
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR turned = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_square(a, name);
  if (!st) st = check_real(a, name);
  if (!st) st = copy_wide(&wide, a, upper);
  if (st) return st;
  int64_t n = a->size[a->dims - 1];
  weir_factor f = {.op = WEIR_FACTOR_CHOLESKY, .m = n, .n = n};
  factor_parts p = {wide, NULL, NULL};
  st = run_factor(&f, &p, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.cholesky: %sThe factorization could not be completed because the input "
                   "is not positive-definite (the leading minor of order %lld is not "
                   "positive-definite).",
                   batch_element(batch, a, at), (long long)first);
  if (!st && upper) st = weir_transpose(&turned, wide, -2, -1);
  if (!st) st = narrowed(out, upper ? turned : wide, a);
  return record_matrix(out, st, RECORD_CHOLESKY, a, NULL, (const bool[3]){upper});
}

/* Q (m x k) and R (k x n) in float64. */
static weir_status qr_wide(weir_tensor **q, weir_tensor **r, const weir_tensor *a, bool complete,
                           const char *name)
{
  WEIR_TENSOR room = NULL;
  WEIR_TENSOR whole = NULL;
  int64_t m = a->size[a->dims - 2], n = a->size[a->dims - 1], least = m < n ? m : n;
  int64_t first, at, k = complete ? m : least;
  weir_status st = copy_wide(&whole, a, false);
  if (!st) st = least ? new_wide(q, a, m, k) : WEIR_OK;
  if (!st && !least) {
    WEIR_TENSOR like = NULL;
    weir_shape square = weir_shape_of(a->dims, a->size);
    square.size[a->dims - 2] = square.size[a->dims - 1] = k;
    st = tensor_new(&like, WEIR_FLOAT64, device_of_tensor(a), false, square);
    if (!st) st = k == m ? wide_identity(q, like) : new_wide(q, a, m, k);
  }
  if (!st) st = new_wide(&room, a, -1, least);
  weir_factor f = {.op = WEIR_FACTOR_QR, .m = m, .n = n, .k = k};
  factor_parts p = {whole, st ? NULL : *q, room};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  return st ? st : weir_narrow(r, whole, -2, 0, k);
}

weir_status weir_qr(weir_tensor **q, weir_tensor **r, const weir_tensor *a, const char *mode)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(q);
  WEIR_REQUIRE_OUT(r, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.qr";
  WEIR_TENSOR wide_q = NULL;
  WEIR_TENSOR wide_r = NULL;
  bool alone = mode && !strcmp(mode, "r"), complete = mode && !strcmp(mode, "complete");
  weir_status st = check_matrices(a, name, "A");
  if (!st) st = check_real(a, name);
  if (!st && mode && !alone && !complete && strcmp(mode, "reduced") != 0)
    st = weir_fail(WEIR_EINVAL,
                   "qr received unrecognized mode '%s' but expected one of 'reduced' (default), "
                   "'r', or 'complete'",
                   mode);
  if (!st) st = qr_wide(&wide_q, &wide_r, a, complete, name);
  if (!st && alone) st = tensor_new_beside(q, a, weir_shape(0));
  if (!st && !alone) st = narrowed(q, wide_q, a);
  if (!st) st = narrowed(r, wide_r, a);
  int how = alone ? RECORD_QR_R_ALONE : complete ? RECORD_QR_COMPLETE : RECORD_QR_REDUCED;
  return record_factors(st, RECORD_QR, a, how, (weir_tensor * *[]){q, r, NULL});
}

/* Eigenvalues and, as columns, eigenvectors in float64. */
static weir_status eigh_wide(weir_tensor **values, weir_tensor **vectors, const weir_tensor *a,
                             bool upper, const char *name)
{
  WEIR_TENSOR whole = NULL;
  WEIR_TENSOR rows = NULL;
  int64_t first = 0, at = 0;
  weir_status st = check_square(a, name);
  if (!st) st = check_real(a, name);
  if (!st) st = copy_wide(&whole, a, upper);
  if (st) return st;
  int64_t n = a->size[a->dims - 1];
  st = new_wide(values, a, -1, n);
  if (!st) st = new_wide(&rows, a, n, n);
  weir_factor f = {.op = WEIR_FACTOR_EIGH, .m = n, .n = n};
  factor_parts p = {whole, *values, rows};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  return st ? st : weir_transpose(vectors, rows, -2, -1);
}

weir_status weir_eigh(weir_tensor **values, weir_tensor **vectors, const weir_tensor *a, bool upper)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(values);
  WEIR_REQUIRE_OUT(vectors, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_TENSOR wide_values = NULL;
  WEIR_TENSOR wide_vectors = NULL;
  weir_status st = eigh_wide(&wide_values, &wide_vectors, a, upper, "linalg.eigh");
  if (!st) st = narrowed(values, wide_values, a);
  if (!st) st = narrowed(vectors, wide_vectors, a);
  return record_factors(st, RECORD_EIGH, a, 0, (weir_tensor * *[]){values, vectors, NULL});
}

weir_status weir_eigvalsh(weir_tensor **out, const weir_tensor *a, bool upper)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_TENSOR wide_values = NULL;
  WEIR_TENSOR wide_vectors = NULL;
  if (recorded(a)) return weir_eigh(out, &wide_vectors, a, upper);
  weir_status st = eigh_wide(&wide_values, &wide_vectors, a, upper, "linalg.eigh");
  return st ? st : narrowed(out, wide_values, a);
}

/* A thin singular value decomposition in float64: u (m x k), s (k), vh (k x n). */
typedef struct svd_parts {
  weir_tensor *u, *s, *vh; /* owned */
} svd_parts;

static void drop_svd(svd_parts *p)
{
  weir_tensor_drop(&p->u);
  weir_tensor_drop(&p->s);
  weir_tensor_drop(&p->vh);
}

static weir_status svd_wide(svd_parts *out, const weir_tensor *a, const char *name)
{
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR other = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_matrices(a, name, "A");
  if (!st) st = check_real(a, name);
  if (st) return st;
  int64_t m = a->size[a->dims - 2], n = a->size[a->dims - 1];
  bool tall = m >= n;
  int64_t least = tall ? n : m, most = tall ? m : n;
  st = copy_wide(&rows, a, tall);
  if (!st) st = new_wide(&out->s, a, -1, least);
  if (!st) st = new_wide(&other, a, least, least);
  weir_factor f = {.op = WEIR_FACTOR_SVD, .m = most, .n = least};
  factor_parts p = {rows, out->s, other};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.svd: %sThe algorithm failed to converge because the input matrix "
                   "contained non-finite values.",
                   batch_element(batch, a, at));
  if (!st) st = weir_transpose(&out->u, tall ? rows : other, -2, -1);
  if (!st) out->vh = weir_tensor_retain(tall ? other : rows);
  if (st) drop_svd(out);
  return st;
}

/* Columns of t (..., m, k), which are orthonormal, and those that are missing to m. */
static weir_status complete_columns(weir_tensor **out, const weir_tensor *t)
{
  WEIR_TENSOR q = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR rest = NULL;
  int64_t m = t->size[t->dims - 2], k = t->size[t->dims - 1];
  if (m == k) return weir_contiguous(out, t);
  weir_status st = qr_wide(&q, &r, t, true, "linalg.svd");
  if (!st) st = weir_narrow(&rest, q, -1, k, m - k);
  return st ? st : weir_cat(out, (const weir_tensor *[]){t, rest}, 2, -1);
}

static weir_status complete_svd(svd_parts *p)
{
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR columns = NULL;
  weir_tensor *u = NULL, *vh = NULL;
  weir_status st = complete_columns(&u, p->u);
  if (!st) st = weir_transpose(&turned, p->vh, -2, -1);
  if (!st) st = complete_columns(&columns, turned);
  if (!st) st = weir_transpose(&vh, columns, -2, -1);
  if (st) {
    weir_tensor_release(u);
    return st;
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
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(u);
  WEIR_REQUIRE_OUT(s);
  WEIR_REQUIRE_OUT(vh, a);
  WEIR_CASTS(FACTOR, a);
  svd_parts p = {NULL, NULL, NULL};
  weir_status st = svd_wide(&p, a, "linalg.svd");
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
  WEIR_TENSOR u = NULL;
  WEIR_TENSOR vh = NULL;
  svd_parts p = {NULL, NULL, NULL};
  weir_status st = check_matrices(a, name, "A");
  if (!st) st = check_real(a, name);
  if (!st && recorded(a)) return weir_svd(&u, out, &vh, a, false);
  if (!st) st = svd_wide(&p, a, name);
  if (!st) st = narrowed(out, p.s, a);
  drop_svd(&p);
  return st;
}

weir_status weir_svdvals(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
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
  WEIR_TENSOR most = NULL;
  if (rtol < 0) rtol = usual_rtol(a);
  weir_status st = weir_amax_dim(&most, p->s, -1, true);
  return st ? st : weir_mul_scalar(out, most, weir_float(rtol));
}

/* V S^+ U^T in float64. */
static weir_status pinv_wide(weir_tensor **out, const svd_parts *p, const weir_tensor *a,
                             double rtol)
{
  WEIR_TENSOR cutoff = NULL;
  WEIR_TENSOR real = NULL;
  WEIR_TENSOR inverse = NULL;
  WEIR_TENSOR zero = NULL;
  WEIR_TENSOR kept = NULL;
  WEIR_TENSOR row = NULL;
  WEIR_TENSOR v = NULL;
  WEIR_TENSOR scaled = NULL;
  WEIR_TENSOR turned = NULL;
  weir_status st = singular_cutoff(&cutoff, p, a, rtol);
  if (!st) st = weir_gt(&real, p->s, cutoff);
  if (!st) st = weir_scalar_div(&inverse, weir_int(1), p->s);
  if (!st) st = weir_zeros_like(&zero, inverse, NULL);
  if (!st) st = weir_where(&kept, real, inverse, zero);
  if (!st) st = weir_unsqueeze(&row, kept, -2);
  if (!st) st = weir_transpose(&v, p->vh, -2, -1);
  if (!st) st = weir_mul(&scaled, v, row);
  if (!st) st = weir_transpose(&turned, p->u, -2, -1);
  return st ? st : weir_matmul(out, scaled, turned);
}

weir_status weir_pinv(weir_tensor **out, const weir_tensor *a, double rtol)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_TENSOR wide = NULL;
  text_buffer t;
  svd_parts p = {NULL, NULL, NULL};
  weir_dtype d = (weir_dtype)a->dtype;
  if (a->dims < 2 || !(dtype_is_floating(d) || d == WEIR_COMPLEX64))
    return weir_fail(WEIR_EINVAL,
                     "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, "
                     "double, cfloat or cdouble types",
                     dtype_title(d), shape_format(&t, weir_shape_of(a->dims, a->size)));
  int64_t m = a->size[a->dims - 2], n = a->size[a->dims - 1];
  weir_status st = WEIR_OK;
  if (!a->numel) {
    weir_shape shape = weir_shape_of(a->dims, a->size);
    shape.size[a->dims - 2] = n;
    shape.size[a->dims - 1] = m;
    st = tensor_new_beside(out, a, shape);
    return record_matrix(out, st, RECORD_PINV, a, NULL, (const bool[3]){false});
  }
  st = svd_wide(&p, a, "linalg.pinv");
  if (!st) st = pinv_wide(&wide, &p, a, rtol);
  if (!st) st = narrowed(out, wide, a);
  drop_svd(&p);
  return record_matrix(out, st, RECORD_PINV, a, NULL, (const bool[3]){false});
}

weir_status weir_matrix_rank(weir_tensor **out, const weir_tensor *a, double rtol)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_UNRECORDED;
  static const char name[] = "weir.linalg.matrix_rank";
  WEIR_TENSOR cutoff = NULL;
  WEIR_TENSOR real = NULL;
  svd_parts p = {NULL, NULL, NULL};
  weir_status st = check_matrices(a, name, "input");
  if (!st && a->dtype != WEIR_FLOAT32 && a->dtype != WEIR_FLOAT64)
    st = weir_fail(WEIR_ENOTSUP, "This function doesn't handle types other than float and double");
  if (st) return st;
  if (!a->numel) {
    weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(a)};
    return weir_zeros(out, weir_shape_of(a->dims - 2, a->size), &o);
  }
  st = svd_wide(&p, a, name);
  if (!st) st = singular_cutoff(&cutoff, &p, a, rtol);
  if (!st) st = weir_gt(&real, p.s, cutoff);
  if (!st) st = weir_sum_dim(out, real, -1, false);
  drop_svd(&p);
  return st;
}

weir_status weir_lstsq(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  WEIR_CASTS(FACTOR, a, b);
  static const char name[] = "weir.linalg.lstsq";
  WEIR_TENSOR columns = NULL;
  WEIR_TENSOR inverse = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR wide_a = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR result = NULL;
  weir_status st = check_same_device(a, b);
  if (!st && a->dims < 2)
    st = weir_fail(WEIR_EINVAL, "%s: input must have at least 2 dimensions.", name);
  if (!st && !b->dims)
    st = weir_fail(WEIR_EINVAL, "%s: other must have at least 1 dimension.", name);
  if (!st && a->dtype != b->dtype)
    st = weir_fail(WEIR_EINVAL, "%s: Expected input and other to have the same dtype", name);
  if (st) return st;
  bool vector = b->dims == a->dims - 1;
  if (!vector && b->dims < 2)
    return weir_fail(WEIR_EINVAL, "%s: input.dim() must be greater or equal to other.dim()", name);
  if (a->size[a->dims - 2] != b->size[b->dims - (vector ? 1 : 2)])
    return weir_fail(WEIR_EINVAL, "%s: input.size(-2) should match other.size(%d)", name,
                     vector ? -1 : -2);
  if (vector)
    st = weir_unsqueeze(&columns, b, -1);
  else
    columns = weir_tensor_retain((weir_tensor *)b);
  if (!st) st = check_real(a, name);
  if (!st) st = weir_to_dtype(&wide_a, a, WEIR_FLOAT64);
  if (!st) st = weir_pinv(&inverse, wide_a, usual_rtol(a));
  if (!st) st = weir_to_dtype(&wide, columns, WEIR_FLOAT64);
  if (!st) st = weir_matmul(&product, inverse, wide);
  if (!st) st = narrowed(&result, product, a);
  if (!st) st = vector ? weir_squeeze(out, result, -1) : weir_contiguous(out, result);
  return st;
}

/* ---- powers and norms ------------------------------------------------------------------------ */

/* *t becomes *t times `by`. */
static weir_status multiply_by(weir_tensor **t, const weir_tensor *by)
{
  weir_tensor *product = NULL;
  weir_status st = weir_matmul(&product, *t, by);
  if (st) return st;
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
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR inverse = NULL;
  weir_status st = check_square(a, "linalg.matrix_power");
  if (st) return st;
  if (n > 0) {
    WEIR_CASTS_WHERE(n > 1 ? AUTOCAST_MATMUL : AUTOCAST_NONE, a);
    return positive_power(out, a, (uint64_t)n);
  }
  if (n == 0) {
    st = wide_identity(&one, a);
    return st ? st : weir_to_dtype(out, one, (weir_dtype)a->dtype);
  }
  st = weir_inv(&inverse, a);
  return st ? st : positive_power(out, inverse, -(uint64_t)n);
}

/* The largest, or the smallest, sum of |x| along the last dimension but one, or the last. */
static weir_status norm_of_sums(weir_tensor **out, const weir_tensor *a, bool columns, bool most)
{
  WEIR_TENSOR size = NULL;
  WEIR_TENSOR sums = NULL;
  weir_status st = weir_abs(&size, a);
  if (!st) st = weir_sum_dim(&sums, size, columns ? -2 : -1, true);
  if (st) return st;
  if (most && !sums->numel) { /* of nothing: 0 */
    weir_shape shape = weir_shape_of(a->dims, a->size);
    shape.size[a->dims - 2] = shape.size[a->dims - 1] = 1;
    weir_options o = {.dtype = (weir_dtype)sums->dtype, .device = device_of_tensor(a)};
    return weir_zeros(out, shape, &o);
  }
  return most ? weir_amax_dim(out, sums, columns ? -1 : -2, true)
              : weir_amin_dim(out, sums, columns ? -1 : -2, true);
}

/* By singular values: their sum (0), the largest (2) or the smallest (-2). */
static weir_status norm_of_values(weir_tensor **out, const weir_tensor *a, int which)
{
  WEIR_TENSOR values = NULL;
  WEIR_TENSOR row = NULL;
  weir_status st = singular_values(&values, a, "linalg.matrix_norm");
  if (!st) st = weir_unsqueeze(&row, values, -2);
  if (!st)
    st = which == 0 || (which == 2 && !row->numel) ? weir_sum_dim(out, row, -1, true)
         : which == 2                              ? weir_amax_dim(out, row, -1, true)
                                                   : weir_amin_dim(out, row, -1, true);
  return st;
}

/* "fro" and "nuc" are 0 and 3 here; others are their number. Errors: torch's, of any other. */
static weir_status norm_order(double *out, const char *ord)
{
  char *end = NULL;
  double p = strtod(ord, &end);
  bool number = end != ord && !*end && (fabs(p) == 1 || fabs(p) == 2 || isinf(p));
  *out = number ? p : !strcmp(ord, "fro") ? 0 : 3;
  if (number || !strcmp(ord, "fro") || !strcmp(ord, "nuc")) return WEIR_OK;
  return weir_fail(WEIR_EINVAL, "linalg.matrix_norm: Order %s not supported.", ord);
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
  weir_dtype d = (weir_dtype)a->dtype;
  if (dtype_is_floating(d) || d == WEIR_COMPLEX64) return WEIR_OK;
  return weir_fail(WEIR_ENOTSUP,
                   "linalg.matrix_norm: Expected a floating point or complex tensor as input. Got "
                   "%s",
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
    st = weir_fail(WEIR_EINVAL, "linalg.matrix_norm: dims must be different. Got (%d, %d)", at[0],
                   at[1]);
  return st;
}

weir_status weir_matrix_norm(weir_tensor **out, const weir_tensor *a, const char *ord,
                             const int *dims, bool keepdim)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, ord);
  WEIR_CASTS(NORM, a);
  static const int last[] = {-2, -1};
  WEIR_TENSOR moved = NULL;
  WEIR_TENSOR norm = NULL;
  int at[2];
  double order;
  weir_status st = check_matrices(a, "linalg.matrix_norm", "A");
  if (!st) st = norm_order(&order, ord);
  if (!st) st = check_floating_matrices(a);
  if (!st) st = norm_places(a, dims, at);
  if (!st) st = weir_movedim(&moved, a, at, last, 2);
  if (!st) st = norm_by_order(&norm, moved, order);
  if (st) return st;
  weir_shape shape = {0, {0}};
  for (int d = 0; d < a->dims; d++)
    if (d != at[0] && d != at[1])
      shape.size[shape.count++] = a->size[d];
    else if (keepdim)
      shape.size[shape.count++] = 1;
  return weir_reshape(out, norm, shape);
}
