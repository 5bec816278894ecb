/* factor.c: determinants, inverses, solutions, factorisations, and norms of matrices.
 *
 * A device factorises what lies column by column (weir_factor), in the operands' dtype or in
 * float64, as it likes best: operands are copied into that form, and results, views that turn it,
 * are copied from it. Whether a matrix could be factorised is read back (info), for torch says it as
 * an error: these functions wait for the device.
 *
 * Words. columns: matrices as a device factorises them: a tensor of the turned shape. thin: of a
 * factorisation as small as it can be. */
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

/* What all factorisations ask of an operand, in torch's order. */
static weir_status check_factors(const weir_tensor *a, const char *name, bool square)
{
  weir_status st = square ? check_square(a, name) : check_matrices(a, name, "A");
  return st ? st : check_real(a, name);
}

/* ---- requests -------------------------------------------------------------------------------- */

static int64_t count_matrices(const weir_tensor *a)
{
  int64_t count = 1;
  for (int i = 0; i < a->dims - 2; i++)
    count *= a->size[i];
  return count;
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
  weir_status st =
      tensor_new(out, dtype, device_of_tensor(a), false, weir_shape_of(a->dims, a->size));
  if (!st) st = loop_copy(*out, a);
  if (st) weir_tensor_drop(out);
  return st;
}

/* A copy of a's matrices as columns; turned: of the transposed ones, which is a row by row. */
static weir_status copy_columns(weir_tensor **out, const weir_tensor *a, weir_dtype dtype,
                                bool turned)
{
  WEIR_TENSOR view = NULL;
  if (turned) return copy_as(out, a, dtype);
  weir_status st = weir_transpose(&view, a, -2, -1);
  return st ? st : copy_as(out, view, dtype);
}

/* The tensors of a request; NULL: the operation has none. */
typedef struct factor_parts {
  const weir_tensor *a, *b, *c, *pivots;
} factor_parts;

static weir_status read_infos(const weir_tensor *info, const char *name, int64_t *first,
                              int64_t *at)
{
  size_t bytes = (size_t)info->numel * sizeof(int64_t);
  int64_t *said = malloc(bytes);
  if (!said) return weir_fail(WEIR_ENOMEM, "%s: no host memory for its outcome", name);
  weir_status st = weir_tensor_read(said, bytes, WEIR_INT64, info);
  for (int64_t i = 0; !st && i < info->numel && !*first; i++)
    if (said[i]) *first = said[i], *at = i;
  free(said);
  return st;
}

/* Runs f in the matrices of the parts. *first: the first info that is not 0, and *at its place in
 * the batch. */
static weir_status run_factor(weir_factor *f, const factor_parts *p, const char *name,
                              int64_t *first, int64_t *at)
{
  WEIR_TENSOR info = NULL;
  compute_target t;
  *first = *at = 0;
  if (!f->batch || !p->a->numel || (p->b && !p->b->numel)) return WEIR_OK;
  weir_status st = compute_target_of(&t, device_of_tensor(p->a));
  if (st) return st;
  if (!t.compute->factor) return compute_target_lacks(&t, name);
  st = tensor_new(&info, WEIR_INT64, device_of_tensor(p->a), false, weir_shape(f->batch));
  if (!st) st = weir_zero_(info);
  if (st) return st;
  f->a = p->a->data;
  f->b = p->b ? p->b->data : NULL;
  f->c = p->c ? p->c->data : NULL;
  f->pivots = p->pivots ? (int64_t *)(void *)p->pivots->data : NULL;
  f->info = (int64_t *)(void *)info->data;
  st = compute_target_done(&t, t.compute->factor(t.self, t.stream, f), name);
  return st ? st : read_infos(info, name, first, at);
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
  return copy_as(out, t, (weir_dtype)like->dtype);
}

/* The same of columns. */
static weir_status narrowed_columns(weir_tensor **out, const weir_tensor *t,
                                    const weir_tensor *like)
{
  WEIR_TENSOR view = NULL;
  weir_status st = weir_transpose(&view, t, -2, -1);
  return st ? st : narrowed(out, view, like);
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

/* -1 of an odd number of exchanges, else 1, in that dtype: of pivots (..., n), (...). */
static weir_status exchange_signs(weir_tensor **out, const weir_tensor *pivots, weir_dtype dtype)
{
  WEIR_TENSOR places = NULL;
  WEIR_TENSOR moved = NULL;
  WEIR_TENSOR count = NULL;
  WEIR_TENSOR odd = NULL;
  WEIR_TENSOR sign = NULL;
  int64_t n = pivots->size[pivots->dims - 1];
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(pivots)};
  weir_status st = weir_arange(&places, weir_int(1), weir_int(n + 1), weir_int(1), &o);
  if (!st) st = weir_ne(&moved, pivots, places);
  if (!st) st = weir_sum_dim(&count, moved, -1, false);
  if (!st) st = weir_bitwise_and_scalar(&odd, count, weir_int(1));
  if (!st) st = weir_mul_scalar_(odd, weir_int(-2));
  if (!st) st = weir_add_scalar(&sign, odd, weir_int(1));
  return st ? st : weir_to_dtype(out, sign, dtype);
}

/* U's diagonals (..., n) and the signs of the exchanges (...). */
static weir_status lu_diagonal(weir_tensor **diagonal, weir_tensor **sign, const weir_tensor *a,
                               const char *name)
{
  WEIR_TENSOR lu = NULL;
  WEIR_TENSOR pivots = NULL;
  int64_t first, at, n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_LU, a, n, n, 0);
  weir_status st = copy_columns(&lu, a, f.dtype, false);
  if (!st) st = new_columns(&pivots, a, WEIR_INT64, -1, n);
  factor_parts p = {.a = lu, .pivots = pivots};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st) st = exchange_signs(sign, pivots, f.dtype);
  return st ? st : weir_diagonal(diagonal, lu, 0, -2, -1);
}

weir_status weir_det(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  static const char name[] = "linalg.det";
  WEIR_TENSOR diagonal = NULL;
  WEIR_TENSOR sign = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR wide = NULL;
  weir_status st = check_factors(a, name, true);
  if (!st) st = lu_diagonal(&diagonal, &sign, a, name);
  if (!st) st = weir_prod_dim(&product, diagonal, -1, false);
  if (!st) st = weir_mul(&wide, product, sign);
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
  WEIR_TENSOR each = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR wide = NULL;
  weir_status st = check_factors(a, name, true);
  if (!st) st = lu_diagonal(&diagonal, &exchanges, a, name);
  if (!st) st = signs_of(&each, diagonal);
  if (!st) st = weir_prod_dim(&product, each, -1, false);
  if (!st) st = weir_mul(&wide, product, exchanges);
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

/* The identity for each of a's matrices. */
static weir_status batch_identity(weir_tensor **out, const weir_tensor *a, weir_dtype dtype)
{
  WEIR_TENSOR diagonal = NULL;
  weir_status st = new_columns(out, a, dtype, columns_of(a), columns_of(a));
  if (!st) st = weir_zero_(*out);
  if (!st) st = weir_diagonal(&diagonal, *out, 0, -2, -1);
  if (!st) st = weir_fill_(diagonal, weir_int(1));
  if (st) weir_tensor_drop(out);
  return st;
}

/* x, columns, of a x = b, columns, which it is at first. */
static weir_status solve_columns(weir_factor *f, const weir_tensor *a, weir_tensor *b,
                                 const char *name, int64_t *first, int64_t *at)
{
  WEIR_TENSOR lu = NULL;
  WEIR_TENSOR pivots = NULL;
  weir_status st = copy_columns(&lu, a, f->dtype, false);
  if (!st) st = new_columns(&pivots, a, WEIR_INT64, -1, f->n);
  factor_parts p = {.a = lu, .b = b, .pivots = pivots};
  return st ? st : run_factor(f, &p, name, first, at);
}

weir_status weir_inv(weir_tensor **out, const weir_tensor *a)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.inv";
  WEIR_TENSOR wide = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_factors(a, name, true);
  if (st) return st;
  int64_t n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_SOLVE, a, n, n, n);
  st = batch_identity(&wide, a, f.dtype);
  if (!st) st = solve_columns(&f, a, wide, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.inv: %sThe diagonal element %lld is zero, the inversion could not be "
                   "completed because the input matrix is singular.",
                   batch_element(batch, a, at), (long long)first);
  if (!st) st = narrowed_columns(out, wide, a);
  return record_matrix(out, st, RECORD_INV, a, NULL, (const bool[3]){false});
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
  return weir_fail(
      WEIR_EINVAL,
      "%s: Incompatible shapes of A and B for the equation %s = B (%lldx%lld and %lldx%lld)", name,
      left ? "AX" : "XA", (long long)n, (long long)n, (long long)rows, (long long)columns);
}

static weir_status check_dtypes(const weir_tensor *a, const weir_tensor *b, const char *name)
{
  if (a->dtype == b->dtype) return WEIR_OK;
  return weir_fail(WEIR_EINVAL,
                   "%s: Expected A and B to have the same dtype, but found A of type %s and B of "
                   "type %s instead",
                   name, dtype_title((weir_dtype)a->dtype), dtype_title((weir_dtype)b->dtype));
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
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, b);
  WEIR_CASTS(FACTOR, a, b);
  static const char name[] = "linalg.solve";
  WEIR_TENSOR columns = NULL;
  WEIR_TENSOR many_a = NULL;
  WEIR_TENSOR many_b = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR result = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  bool vector;
  weir_status st = check_operands(a, b, name, true);
  if (!st) st = matrices_of(&columns, &vector, a, b, name);
  if (!st) st = check_equation(a, columns, true, name);
  if (!st) st = broadcast_batches(&many_a, &many_b, a, columns);
  if (st) return st;
  int64_t n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_SOLVE, many_a, n, n, columns_of(columns));
  st = copy_columns(&wide, many_b, f.dtype, false);
  if (!st) st = solve_columns(&f, many_a, wide, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "weir.linalg.solve: %sThe solver failed because the input matrix is singular.",
                   batch_element(batch, many_a, at));
  if (!st) st = narrowed_columns(&result, wide, a);
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
  int64_t first, at;
  weir_status st = check_operands(a, b, name, false);
  if (!st) st = check_matrices(b, name, "B");
  if (!st) st = check_equation(a, b, left, name);
  if (!st) st = broadcast_batches(&many_a, &many_b, a, b);
  if (st) return st;
  int64_t n = columns_of(a), k = left ? columns_of(b) : rows_of(b);
  weir_factor f = request_of(WEIR_FACTOR_TRIANGULAR, many_a, n, n, k);
  f.upper = upper == left;
  f.unit = unitriangular;
  st = copy_columns(&triangle, many_a, f.dtype, !left);
  if (!st) st = copy_columns(&wide, many_b, f.dtype, !left);
  factor_parts p = {.a = triangle, .b = wide};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st) st = left ? narrowed_columns(out, wide, a) : narrowed(out, wide, a);
  const bool how[3] = {upper, left, unitriangular};
  return record_matrix(out, st, RECORD_SOLVE_TRIANGULAR, a, b, how);
}

/* ---- factorisations -------------------------------------------------------------------------- */

/* U of a = U^T U by columns is L of a = L L^T row by row. */
weir_status weir_cholesky(weir_tensor **out, const weir_tensor *a, bool upper)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
  WEIR_CASTS(FACTOR, a);
  static const char name[] = "linalg.cholesky";
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR low = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_factors(a, name, true);
  if (st) return st;
  weir_factor f = request_of(WEIR_FACTOR_CHOLESKY, a, columns_of(a), columns_of(a), 0);
  st = copy_columns(&wide, a, f.dtype, !upper);
  factor_parts p = {.a = wide};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.cholesky: %sThe factorization could not be completed because the input "
                   "is not positive-definite (the leading minor of order %lld is not "
                   "positive-definite).",
                   batch_element(batch, a, at), (long long)first);
  if (!st) st = weir_tril(&low, wide, 0);
  if (!st) st = upper ? narrowed_columns(out, low, a) : narrowed(out, low, a);
  return record_matrix(out, st, RECORD_CHOLESKY, a, NULL, (const bool[3]){upper});
}

/* ---- LU -------------------------------------------------------------------------------------- */

static weir_status check_lu(const weir_tensor *a, bool pivot, const char *name)
{
  text_buffer t;
  if (!pivot)
    return weir_fail(WEIR_ENOTSUP, "linalg.lu_factor: LU without pivoting is not implemented");
  if (a->dims < 2)
    return weir_fail(WEIR_EINVAL,
                     "%s: Expected tensor with 2 or more dimensions. Got size: %s instead", name,
                     shape_format(&t, weir_shape_of(a->dims, a->size)));
  if (!a->numel || a->dtype == WEIR_FLOAT32 || a->dtype == WEIR_FLOAT64) return WEIR_OK;
  return not_implemented("lu_%s", device_of_tensor(a), (weir_dtype)a->dtype);
}

/* a's L and U in one, and its pivots in int32, recorded; *first and *at as run_factor()'s. */
static weir_status factor_lu(weir_tensor **lu, weir_tensor **pivots, const weir_tensor *a,
                             const char *name, int64_t *first, int64_t *at)
{
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR places = NULL;
  int64_t m = rows_of(a), n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_LU, a, m, n, 0);
  weir_status st = copy_columns(&wide, a, f.dtype, false);
  if (!st) st = new_columns(&places, a, WEIR_INT64, -1, m < n ? m : n);
  factor_parts p = {.a = wide, .pivots = places};
  if (!st) st = run_factor(&f, &p, name, first, at);
  if (!st) st = narrowed_columns(lu, wide, a);
  if (!st) st = weir_to_dtype(pivots, places, WEIR_INT32);
  return record_factors(st, RECORD_LU, a, 0, (weir_tensor * *[]){lu, pivots, NULL});
}

weir_status weir_lu_factor(weir_tensor **lu, weir_tensor **pivots, const weir_tensor *a, bool pivot)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(lu);
  WEIR_REQUIRE_OUT(pivots, a);
  static const char name[] = "weir.lu_factor";
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_lu(a, pivot, name);
  if (!st) st = factor_lu(lu, pivots, a, name, &first, &at);
  if (st || !first) return st;
  weir_tensor_drop(lu);
  weir_tensor_drop(pivots);
  return weir_fail(WEIR_EINVAL,
                   "weir.linalg.lu_factor: %sU[%lld,%lld] is zero and using it on lu_solve would "
                   "result in a division by zero. If you still want to perform the factorization, "
                   "consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
                   batch_element(batch, a, at), (long long)first, (long long)first);
}

/* Row i of P^T A is row order[i] of A: exchanged as `count` pivots of each of `batch` say. */
static weir_status exchange_rows(int64_t *order, const int32_t *pivots, int64_t batch,
                                 int64_t count, int64_t rows)
{
  for (int64_t b = 0; b < batch; b++, order += rows, pivots += count) {
    for (int64_t i = 0; i < rows; i++)
      order[i] = i;
    for (int64_t i = 0; i < count; i++) {
      if (pivots[i] < 1 || pivots[i] > rows)
        return weir_fail(WEIR_EINVAL,
                         "Pivots given to lu_solve must all be %s. Did you properly pass the "
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
  weir_shape shape = weir_shape_of(pivots->dims, pivots->size);
  int64_t count = shape.size[shape.count - 1], batch = 1;
  for (int i = 0; i < shape.count - 1; i++)
    batch *= shape.size[i];
  shape.size[shape.count - 1] = rows;
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(pivots)};
  size_t bytes = (size_t)pivots->numel * sizeof(int32_t);
  int32_t *said = malloc(bytes + 1);
  int64_t *order = malloc((size_t)(batch * rows) * sizeof *order + 1);
  weir_status st = said && order ? WEIR_OK : weir_fail(WEIR_ENOMEM, "no host memory for pivots");
  if (!st && bytes) st = weir_tensor_read(said, bytes, WEIR_INT32, pivots);
  if (!st) st = exchange_rows(order, said, batch, count, rows);
  if (!st) st = weir_tensor_from(out, order, WEIR_INT64, shape, &o);
  free(said);
  free(order);
  return st;
}

/* P (..., rows, rows), in that dtype: 1 where its column is the order's place of its row. */
static weir_status exchange_matrix(weir_tensor **out, const weir_tensor *order, weir_dtype dtype)
{
  WEIR_TENSOR row = NULL;
  WEIR_TENSOR places = NULL;
  WEIR_TENSOR column = NULL;
  WEIR_TENSOR is = NULL;
  int64_t rows = order->size[order->dims - 1];
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(order)};
  weir_status st = weir_unsqueeze(&row, order, -2);
  if (!st) st = weir_arange(&places, weir_int(0), weir_int(rows), weir_int(1), &o);
  if (!st) st = weir_unsqueeze(&column, places, -1);
  if (!st) st = weir_eq(&is, row, column);
  return st ? st : weir_to_dtype(out, is, dtype);
}

/* L, with 1s as its diagonal, and U of what is both. */
static weir_status split_lu(weir_tensor **l, weir_tensor **u, const weir_tensor *lu)
{
  WEIR_TENSOR left = NULL;
  WEIR_TENSOR top = NULL;
  WEIR_TENSOR low = NULL;
  WEIR_TENSOR one = NULL;
  int64_t m = rows_of(lu), n = columns_of(lu), least = m < n ? m : n;
  weir_options o = {.dtype = (weir_dtype)lu->dtype, .device = device_of_tensor(lu)};
  weir_status st = weir_narrow(&left, lu, -1, 0, least);
  if (!st) st = weir_tril(&low, left, -1);
  if (!st) st = weir_eye(&one, m, least, &o);
  if (!st) st = weir_add(l, low, one);
  if (!st) st = weir_narrow(&top, lu, -2, 0, least);
  return st ? st : weir_triu(u, top, 0);
}

weir_status weir_lu_unpack(weir_tensor **p, weir_tensor **l, weir_tensor **u, const weir_tensor *lu,
                           const weir_tensor *pivots)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(p);
  WEIR_REQUIRE_OUT(l);
  WEIR_REQUIRE_OUT(u, lu, pivots);
  WEIR_TENSOR order = NULL;
  weir_status st = check_matrices(lu, "weir.lu_unpack", "LU");
  if (!st && lu->numel) st = check_real(lu, "weir.lu_unpack");
  if (!st && pivots->dtype != WEIR_INT32)
    st = weir_fail(WEIR_EINVAL,
                   "weir.lu_unpack: LU_pivots is expected to be a contiguous tensor of weir.int32 "
                   "dtype.\nNote: this function is intended to be used with the output produced by "
                   "weir.linalg.lu_factor");
  if (!st && !pivots->dims)
    st = weir_fail(WEIR_EINVAL, "weir.lu_unpack: LU_pivots has no dimension");
  if (!st) st = row_order(&order, pivots, rows_of(lu));
  if (!st) st = exchange_matrix(p, order, (weir_dtype)lu->dtype);
  if (!st) st = split_lu(l, u, lu);
  if (!st) return st;
  weir_tensor_drop(p);
  weir_tensor_drop(l);
  weir_tensor_drop(u);
  return st;
}

weir_status weir_lu(weir_tensor **p, weir_tensor **l, weir_tensor **u, const weir_tensor *a,
                    bool pivot)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(p);
  WEIR_REQUIRE_OUT(l);
  WEIR_REQUIRE_OUT(u, a);
  static const char name[] = "linalg.lu";
  WEIR_TENSOR lu = NULL;
  WEIR_TENSOR pivots = NULL;
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
  WEIR_TENSOR places = NULL;
  WEIR_TENSOR column = NULL;
  WEIR_TENSOR many = NULL;
  WEIR_TENSOR wide = NULL;
  if (!x->numel || !order->numel) return weir_clone(out, x);
  weir_status st = back ? weir_argsort(&places, order, -1, false) : weir_clone(&places, order);
  if (!st) st = weir_unsqueeze(&column, places, -1);
  if (!st) st = with_dims(&many, column, x->dims);
  if (!st) st = with_dims(&wide, x, column->dims);
  return st ? st : weir_take_along_dim(out, wide, many, -2);
}

/* x of P L U x = b, or, turned, of U^T L^T P^T x = b. */
static weir_status solve_with_factors(weir_tensor **out, const weir_tensor *lu,
                                      const weir_tensor *order, const weir_tensor *b, bool turned)
{
  WEIR_TENSOR half = NULL;
  WEIR_TENSOR view = NULL;
  WEIR_TENSOR rows = NULL;
  weir_status st;
  if (!turned) {
    st = order_rows(&rows, b, order, false);
    if (!st) st = weir_solve_triangular(&half, lu, rows, false, true, true);
    return st ? st : weir_solve_triangular(out, lu, half, true, true, false);
  }
  st = weir_transpose(&view, lu, -2, -1);
  if (!st) st = weir_solve_triangular(&half, view, b, false, true, false);
  if (!st) st = weir_solve_triangular(&rows, view, half, true, true, true);
  return st ? st : order_rows(out, rows, order, true);
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
    st = weir_fail(WEIR_EINVAL,
                   "%s: Expected LU and B to have the same dtype, but found LU of type %s and B of "
                   "type %s instead",
                   name, dtype_title((weir_dtype)lu->dtype), dtype_title((weir_dtype)b->dtype));
  if (!st && pivots->dtype != WEIR_INT32)
    st = weir_fail(WEIR_EINVAL, "%s: pivots should be a Tensor of scalar type weir.int32", name);
  if (!st) st = check_square(lu, "weir.linalg.lu_solve");
  if (!st) st = check_matrices(b, name, "B");
  if (!st) st = check_equation(lu, b, left, name);
  if (st) return st;
  if (!pivots->dims || pivots->size[pivots->dims - 1] != columns_of(lu))
    return weir_fail(WEIR_EINVAL,
                     "%s: Number of pivots per batch should be same as the dimension of the matrix",
                     name);
  if (pivots->dims == lu->dims - 1 &&
      !memcmp(pivots->size, lu->size, (size_t)pivots->dims * sizeof *lu->size))
    return WEIR_OK;
  return weir_fail(
      WEIR_EINVAL,
      "%s: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with "
      "shape %s instead",
      name, shape_format(&t, weir_shape_of(pivots->dims, pivots->size)));
}

weir_status weir_lu_solve(weir_tensor **out, const weir_tensor *lu, const weir_tensor *pivots,
                          const weir_tensor *b, bool left, bool adjoint)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, lu, pivots, b);
  WEIR_TENSOR order = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR x = NULL;
  weir_status st = check_lu_solve(lu, pivots, b, left);
  if (!st && b->numel) st = row_order(&order, pivots, rows_of(lu));
  if (!st && left) return solve_with_factors(out, lu, order, b, adjoint);
  if (!st) st = weir_transpose(&turned, b, -2, -1);
  if (!st) st = solve_with_factors(&x, lu, order, turned, !adjoint);
  return st ? st : weir_transpose(out, x, -2, -1);
}

/* ---- with Cholesky's triangle ---------------------------------------------------------------- */

/* x of L L^T x = b; upper: of L^T L x = b. */
static weir_status solve_both_triangles(weir_tensor **out, const weir_tensor *l,
                                        const weir_tensor *b, bool upper)
{
  WEIR_UNRECORDED;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR half = NULL;
  weir_status st = weir_transpose(&turned, l, -2, -1);
  if (!st) st = weir_solve_triangular(&half, upper ? turned : l, b, false, true, false);
  return st ? st : weir_solve_triangular(out, upper ? l : turned, half, true, true, false);
}

static weir_status check_cholesky_solve(const weir_tensor *b, const weir_tensor *l)
{
  if (b->dims < 2 || l->dims < 2)
    return weir_fail(WEIR_EINVAL,
                     "%s should have at least 2 dimensions, but has %d dimensions instead",
                     b->dims < 2 ? "b" : "u", b->dims < 2 ? b->dims : l->dims);
  weir_status st = check_same_device(b, l);
  if (st) return st;
  if (b->dtype != l->dtype)
    return weir_fail(
        WEIR_EINVAL,
        "Expected b and A to have the same dtype, but found b of type %s and A of type "
        "%s instead.",
        dtype_title((weir_dtype)b->dtype), dtype_title((weir_dtype)l->dtype));
  if (rows_of(l) != columns_of(l))
    return weir_fail(WEIR_EINVAL,
                     "A must be batches of square matrices, but they are %lld by %lld matrices",
                     (long long)rows_of(l), (long long)columns_of(l));
  if (rows_of(l) != rows_of(b))
    return weir_fail(WEIR_EINVAL,
                     "Incompatible matrix sizes for cholesky_solve: each A matrix is %lld by %lld "
                     "but each b matrix is %lld by %lld",
                     (long long)rows_of(l), (long long)rows_of(l), (long long)rows_of(b),
                     (long long)columns_of(b));
  if (l->dtype == WEIR_FLOAT32 || l->dtype == WEIR_FLOAT64) return WEIR_OK;
  return not_implemented("cholesky_solve_%s", device_of_tensor(l), (weir_dtype)l->dtype);
}

weir_status weir_cholesky_solve(weir_tensor **out, const weir_tensor *b, const weir_tensor *l,
                                bool upper)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, b, l);
  WEIR_CASTS(FACTOR, b, l);
  weir_status st = check_cholesky_solve(b, l);
  if (!st) st = solve_both_triangles(out, l, b, upper);
  return record_matrix(out, st, RECORD_CHOLESKY_SOLVE, b, l, (const bool[3]){upper});
}

/* Where a diagonal has a 0, torch's error of the first. */
static weir_status check_diagonal(const weir_tensor *l, const char *name)
{
  WEIR_UNRECORDED;
  WEIR_TENSOR diagonal = NULL;
  WEIR_TENSOR zero = NULL;
  WEIR_TENSOR flat = NULL;
  WEIR_TENSOR places = NULL;
  WEIR_TENSOR first = NULL;
  weir_scalar at = {.dtype = WEIR_INT64};
  char batch[48];
  weir_status st = weir_diagonal(&diagonal, l, 0, -2, -1);
  if (!st) st = weir_eq_scalar(&zero, diagonal, weir_int(0));
  if (!st) st = weir_reshape(&flat, zero, weir_shape(-1));
  if (!st) st = weir_nonzero(&places, flat);
  if (st || !places->numel) return st;
  st = weir_select(&first, places, 0, 0);
  if (!st) st = weir_item(&at, first);
  if (st) return st;
  return weir_fail(WEIR_EINVAL,
                   "%s: %sThe diagonal element %lld is zero, the inversion could not be completed "
                   "because the input matrix is singular.",
                   name, batch_element(batch, l, at.i / columns_of(l)),
                   (long long)at.i % columns_of(l) + 1);
}

weir_status weir_cholesky_inverse(weir_tensor **out, const weir_tensor *l, bool upper)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, l);
  WEIR_CASTS(FACTOR, l);
  static const char name[] = "cholesky_inverse";
  WEIR_TENSOR one = NULL;
  weir_status st = check_square(l, name);
  if (!st && l->dtype != WEIR_FLOAT32 && l->dtype != WEIR_FLOAT64)
    st = not_implemented("cholesky_inverse_out_%s", device_of_tensor(l), (weir_dtype)l->dtype);
  if (!st && l->numel) st = check_diagonal(l, name);
  if (!st) st = batch_identity(&one, l, (weir_dtype)l->dtype);
  if (!st) st = solve_both_triangles(out, l, one, upper);
  return record_matrix(out, st, RECORD_CHOLESKY_INVERSE, l, NULL, (const bool[3]){upper});
}

/* ---- other factorisations -------------------------------------------------------------------- */

/* Of a matrix without elements Q is the first k columns of the identity. */
static weir_status empty_q(weir_tensor **q, const weir_tensor *a, weir_dtype dtype, int64_t k)
{
  WEIR_TENSOR like = NULL;
  weir_shape square = weir_shape_of(a->dims, a->size);
  if (k != rows_of(a)) return new_columns(q, a, dtype, rows_of(a), k);
  square.size[a->dims - 2] = square.size[a->dims - 1] = k;
  weir_status st = tensor_new(&like, dtype, device_of_tensor(a), false, square);
  return st ? st : batch_identity(q, like, dtype);
}

/* Q (m x k) as columns and R (k x n), a view of what has other things below its diagonal. */
static weir_status qr_columns(weir_tensor **q, weir_tensor **r, const weir_tensor *a, bool complete,
                              const char *name)
{
  WEIR_TENSOR room = NULL;
  WEIR_TENSOR whole = NULL;
  WEIR_TENSOR rows = NULL;
  int64_t m = rows_of(a), n = columns_of(a), least = m < n ? m : n;
  int64_t first, at, k = complete ? m : least;
  weir_factor f = request_of(WEIR_FACTOR_QR, a, m, n, k);
  weir_status st = copy_columns(&whole, a, f.dtype, false);
  if (!st) st = least ? new_columns(q, a, f.dtype, m, k) : empty_q(q, a, f.dtype, k);
  if (!st) st = new_columns(&room, a, f.dtype, -1, least);
  factor_parts p = {.a = whole, .b = st ? NULL : *q, .c = room};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st) st = weir_narrow(&rows, whole, -1, 0, k);
  return st ? st : weir_transpose(r, rows, -2, -1);
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
  WEIR_TENSOR up = NULL;
  bool alone = mode && !strcmp(mode, "r"), complete = mode && !strcmp(mode, "complete");
  weir_status st = check_factors(a, name, false);
  if (!st && mode && !alone && !complete && strcmp(mode, "reduced") != 0)
    st = weir_fail(WEIR_EINVAL,
                   "qr received unrecognized mode '%s' but expected one of 'reduced' (default), "
                   "'r', or 'complete'",
                   mode);
  if (!st) st = qr_columns(&wide_q, &wide_r, a, complete, name);
  if (!st) st = weir_triu(&up, wide_r, 0);
  if (!st && alone) st = tensor_new_beside(q, a, weir_shape(0));
  if (!st && !alone) st = narrowed_columns(q, wide_q, a);
  if (!st) st = narrowed(r, up, a);
  int how = alone ? RECORD_QR_R_ALONE : complete ? RECORD_QR_COMPLETE : RECORD_QR_REDUCED;
  return record_factors(st, RECORD_QR, a, how, (weir_tensor * *[]){q, r, NULL});
}

/* Eigenvalues, and eigenvectors as columns. */
static weir_status eigh_columns(weir_tensor **values, weir_tensor **vectors, const weir_tensor *a,
                                bool upper)
{
  static const char name[] = "linalg.eigh";
  WEIR_TENSOR room = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_factors(a, name, true);
  if (st) return st;
  int64_t n = columns_of(a);
  weir_factor f = request_of(WEIR_FACTOR_EIGH, a, n, n, 0);
  f.upper = upper;
  st = copy_columns(vectors, a, f.dtype, false);
  if (!st) st = new_columns(values, a, f.dtype, -1, n);
  if (!st) st = new_columns(&room, a, f.dtype, n, n);
  factor_parts p = {.a = *vectors, .b = *values, .c = room};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.eigh: %sThe algorithm failed to converge because the input matrix is "
                   "ill-conditioned or has too many repeated eigenvalues (error code: %lld).",
                   batch_element(batch, a, at), (long long)(first < 0 ? n - 1 : first));
  return st;
}

weir_status weir_eigh(weir_tensor **values, weir_tensor **vectors, const weir_tensor *a, bool upper)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(values);
  WEIR_REQUIRE_OUT(vectors, a);
  WEIR_CASTS(FACTOR, a);
  WEIR_TENSOR wide_values = NULL;
  WEIR_TENSOR wide_vectors = NULL;
  weir_status st = eigh_columns(&wide_values, &wide_vectors, a, upper);
  if (!st) st = narrowed(values, wide_values, a);
  if (!st) st = narrowed_columns(vectors, wide_vectors, a);
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
  WEIR_TENSOR u = NULL;
  WEIR_TENSOR vt = NULL;
  char batch[48];
  int64_t first = 0, at = 0;
  weir_status st = check_factors(a, name, false);
  if (st) return st;
  int64_t m = rows_of(a), n = columns_of(a);
  bool tall = m >= n;
  int64_t least = tall ? n : m, most = tall ? m : n;
  weir_factor f = request_of(WEIR_FACTOR_SVD, a, most, least, 0);
  st = copy_columns(&u, a, f.dtype, !tall);
  if (!st) st = new_columns(&out->s, a, f.dtype, -1, least);
  if (!st) st = new_columns(&vt, a, f.dtype, least, least);
  factor_parts p = {.a = u, .b = out->s, .c = vt};
  if (!st) st = run_factor(&f, &p, name, &first, &at);
  if (!st && first < 0)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.svd: %sThe algorithm failed to converge because the input matrix "
                   "contained non-finite values.",
                   batch_element(batch, a, at));
  if (!st && first)
    st = weir_fail(WEIR_EINVAL,
                   "linalg.svd: %sThe algorithm failed to converge because the input matrix is "
                   "ill-conditioned or has too many repeated singular values (error code: %lld).",
                   batch_element(batch, a, at), (long long)first);
  if (!st && !tall) {
    out->u = weir_tensor_retain(vt);
    out->vh = weir_tensor_retain(u);
  }
  if (!st && tall) st = weir_transpose(&out->u, u, -2, -1);
  if (!st && tall) st = weir_transpose(&out->vh, vt, -2, -1);
  if (st) drop_svd(out);
  return st;
}

/* Columns of t (..., m, k), which are orthonormal, and those that are missing to m. */
static weir_status complete_columns(weir_tensor **out, const weir_tensor *t)
{
  WEIR_TENSOR q = NULL;
  WEIR_TENSOR r = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR rest = NULL;
  int64_t m = rows_of(t), k = columns_of(t);
  if (m == k) return weir_contiguous(out, t);
  weir_status st = qr_columns(&q, &r, t, true, "linalg.svd");
  if (!st) st = weir_transpose(&turned, q, -2, -1);
  if (!st) st = weir_narrow(&rest, turned, -1, k, m - k);
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
  WEIR_TENSOR u = NULL;
  WEIR_TENSOR vh = NULL;
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

/* V S^+ U^T. */
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
  st = svd_thin(&p, a, "linalg.pinv");
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
  st = svd_thin(&p, a, name);
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
  if (!st) st = weir_to_dtype(&result, product, (weir_dtype)a->dtype);
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
  WEIR_TENSOR inverse = NULL;
  weir_status st = check_square(a, "linalg.matrix_power");
  if (st) return st;
  if (n > 0) {
    WEIR_CASTS_WHERE(n > 1 ? AUTOCAST_MATMUL : AUTOCAST_NONE, a);
    return positive_power(out, a, (uint64_t)n);
  }
  if (n == 0) return batch_identity(out, a, (weir_dtype)a->dtype);
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
  weir_status st = norm_order(&order, ord);
  if (!st) st = check_matrices(a, "linalg.matrix_norm", "A");
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

/* ---- condition ------------------------------------------------------------------------------- */

/* Whether LU finds each of a's matrices singular. */
static weir_status which_singular(weir_tensor **out, const weir_tensor *a)
{
  WEIR_UNRECORDED;
  WEIR_TENSOR diagonal = NULL;
  WEIR_TENSOR sign = NULL;
  WEIR_TENSOR zero = NULL;
  weir_status st = lu_diagonal(&diagonal, &sign, a, "linalg.inv");
  if (!st) st = weir_eq_scalar(&zero, diagonal, weir_int(0));
  return st ? st : weir_any_dim(out, zero, -1, false);
}

/* a's inverse; where `singular` it is the identity, which is not used. */
static weir_status inverse_of_any(weir_tensor **out, const weir_tensor *a, weir_tensor **singular)
{
  WEIR_TENSOR column = NULL;
  WEIR_TENSOR mask = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR whole = NULL;
  weir_status st = which_singular(singular, a);
  if (!st) st = weir_unsqueeze(&column, *singular, -1);
  if (!st) st = weir_unsqueeze(&mask, column, -1);
  if (!st) st = batch_identity(&one, a, (weir_dtype)a->dtype);
  if (!st) st = weir_where(&whole, mask, one, a);
  return st ? st : weir_inv(out, whole);
}

/* |a| |a^-1| by a norm; infinite of what is singular. */
static weir_status condition_by_norm(weir_tensor **out, const weir_tensor *a, const char *ord)
{
  WEIR_TENSOR inverse = NULL;
  WEIR_TENSOR singular = NULL;
  WEIR_TENSOR norm = NULL;
  WEIR_TENSOR other = NULL;
  WEIR_TENSOR product = NULL;
  WEIR_TENSOR whole = NULL;
  const double infinite = INFINITY;
  weir_status st = check_factors(a, "linalg.inv", true);
  if (!st) st = inverse_of_any(&inverse, a, &singular);
  if (!st) st = weir_matrix_norm(&norm, a, ord, NULL, false);
  if (!st) st = weir_matrix_norm(&other, inverse, ord, NULL, false);
  if (!st) st = weir_mul(&product, norm, other);
  if (!st) st = weir_nan_to_num(&whole, product, INFINITY, &infinite, NULL);
  return st ? st : weir_masked_fill(out, whole, singular, weir_float(INFINITY));
}

/* By singular values s: order 2 (-2): the largest through the smallest (or the reverse); 3: sums of s and of
 * reciprocals. */
static weir_status condition_by_values(weir_tensor **out, const weir_tensor *a, double order)
{
  WEIR_TENSOR s = NULL;
  WEIR_TENSOR most = NULL;
  WEIR_TENSOR least = NULL;
  WEIR_TENSOR over = NULL;
  weir_status st = singular_values(&s, a, "linalg.svd");
  if (st) return st;
  int64_t count = s->size[s->dims - 1];
  if (order == 3) {
    st = weir_sum_dim(&most, s, -1, false);
    if (!st) st = weir_reciprocal(&over, s);
    if (!st) st = weir_sum_dim(&least, over, -1, false);
    return st ? st : weir_mul(out, most, least);
  }
  st = weir_select(&most, s, -1, 0);
  if (!st) st = weir_select(&least, s, -1, count - 1);
  if (st) return st;
  return order > 0 ? weir_div(out, most, least) : weir_div(out, least, most);
}

weir_status weir_cond(weir_tensor **out, const weir_tensor *a, const char *p)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a);
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
    st = weir_fail(WEIR_EINVAL, "linalg.cond: The input tensor must have at least 2 dimensions.");
  if (!st && !known) st = weir_fail(WEIR_EINVAL, "linalg.cond got an invalid norm type: %s", p);
  if (!st && !a->numel) {
    weir_options o = {.dtype = (weir_dtype)a->dtype, .device = device_of_tensor(a)};
    return weir_zeros(out, weir_shape_of(a->dims - 2, a->size), &o);
  }
  if (!st && fabs(order) != 2) st = check_square(a, name);
  if (st) return st;
  return fabs(order) == 2 || order == 3 ? condition_by_values(out, a, order)
                                        : condition_by_norm(out, a, p);
}
