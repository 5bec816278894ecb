/* matmul.c: products of matrices, all of them by one request (weir_gemm).
 *
 * A matrix can be handed to a device if one of its strides is 1 and the other spans a row (or, seen
 * transposed, a column); others are copied first. Batches need one step from matrix to matrix: the
 * batch dimensions of both operands and the result are merged as far as they lie one after the
 * other, and what is left outside is a loop of requests. Vectors are matrices of one row or column.
 *
 * Words. side: an operand as the request wants it. batch: the dimensions before the last two. */
#include "core/ops/ops.h"

static _Atomic bool tf32, reduced_precision = true, deterministic;

#define SETTING(name, variable)                                                                    \
  void weir_set_##name(bool on)                                                                    \
  {                                                                                                \
    variable = on;                                                                                 \
  }                                                                                                \
  bool weir_get_##name(void)                                                                       \
  {                                                                                                \
    return variable;                                                                               \
  }
SETTING(allow_tf32, tf32)
SETTING(allow_reduced_precision, reduced_precision)
SETTING(deterministic, deterministic)

weir_status gemm_run(const compute_target *t, weir_gemm *g)
{
  if (!t->compute->gemm) return compute_target_lacks(t, "matmul");
  g->tf32 = tf32;
  g->reduced_precision = reduced_precision;
  g->deterministic = deterministic;
  g->blas = weir_get_blas();
  return compute_target_done(t, t->compute->gemm(t->self, t->stream, g), "matmul");
}

/* ---- operands -------------------------------------------------------------------------------- */

typedef struct side {
  const weir_tensor *t; /* borrowed; the operand, or copy */
  weir_tensor *copy;    /* owned, or NULL */
  int64_t rows, columns, ld;
  bool trans;
  int batch; /* dimensions before the matrix */
  int64_t size[WEIR_DIMS], stride[WEIR_DIMS];
} side;

/* Whether rows of `n` elements lie `ld` apart, each without holes. */
static bool row_major(int64_t m, int64_t n, int64_t row, int64_t column, int64_t *ld)
{
  if (n > 1 && column != 1) return false;
  if (m > 1 && row < (n > 1 ? n : 1)) return false;
  *ld = m > 1 ? row : n > 1 ? n : 1;
  return true;
}

/* Vectors: as one row or, `right`, one column. */
static void describe_gemm(side *s, const weir_tensor *t, bool right, int64_t *row, int64_t *column)
{
  s->t = t;
  s->batch = t->dims > 2 ? t->dims - 2 : 0;
  if (t->dims == 1) {
    s->rows = right ? t->size[0] : 1;
    s->columns = right ? 1 : t->size[0];
    *row = right ? t->stride[0] : 0;
    *column = right ? 0 : t->stride[0];
  } else {
    s->rows = t->size[t->dims - 2];
    s->columns = t->size[t->dims - 1];
    *row = t->stride[t->dims - 2];
    *column = t->stride[t->dims - 1];
  }
  for (int i = 0; i < s->batch; i++) {
    s->size[i] = t->size[i];
    s->stride[i] = t->size[i] == 1 ? 0 : t->stride[i];
  }
}

static weir_status side_of(side *s, const weir_tensor *t, bool right)
{
  int64_t row, column;
  s->copy = NULL;
  describe_gemm(s, t, right, &row, &column);
  s->trans = !row_major(s->rows, s->columns, row, column, &s->ld);
  if (!s->trans || row_major(s->columns, s->rows, column, row, &s->ld)) return WEIR_OK;
  TRY(loop_dense(&s->copy, t));
  describe_gemm(s, s->copy, right, &row, &column);
  s->trans = !row_major(s->rows, s->columns, row, column, &s->ld);
  return WEIR_OK;
}

/* ---- batches --------------------------------------------------------------------------------- */

typedef struct product {
  side a, b;
  int dims; /* of the batch */
  int64_t size[WEIR_DIMS];
  int64_t step[3][WEIR_DIMS]; /* of a, b and the result, elements */
} product;

/* The batch's dimensions, outermost first, sizes of 1 taken out and neighbours merged. */
static void batch_of(product *p, const weir_shape *batch, int64_t matrix)
{
  int64_t out = matrix, outs[WEIR_DIMS];
  for (int i = batch->count - 1; i >= 0; i--) {
    outs[i] = out;
    out *= batch->size[i];
  }
  p->dims = 0;
  for (int i = 0; i < batch->count; i++) {
    int at = p->dims - 1, ia = i - (batch->count - p->a.batch),
        ib = i - (batch->count - p->b.batch);
    int64_t step[3] = {ia < 0 ? 0 : p->a.stride[ia], ib < 0 ? 0 : p->b.stride[ib], outs[i]};
    int64_t size = batch->size[i];
    if (size == 1) continue;
    bool join = at >= 0;
    for (int k = 0; k < 3 && join; k++)
      join = p->step[k][at] == step[k] * size;
    if (join) {
      p->size[at] *= size;
    } else {
      at = p->dims++;
      p->size[at] = size;
    }
    for (int k = 0; k < 3; k++)
      p->step[k][at] = step[k];
  }
}

static const char *offset(const weir_tensor *t, int64_t elements)
{
  return t->data + elements * (int64_t)itemsize(t->dtype);
}

/* One request for each place in the outer dimensions of the batch. */
static weir_status run_batches(const compute_target *t, const product *p, weir_gemm *g,
                               const weir_tensor *out)
{
  int inner = p->dims ? p->dims - 1 : 0;
  int64_t at[WEIR_DIMS] = {0}, from[3] = {0}, count = sizes_product(p->size, 0, inner);
  g->batch = p->dims ? p->size[inner] : 1;
  g->stepa = p->dims ? p->step[0][inner] : 0;
  g->stepb = p->dims ? p->step[1][inner] : 0;
  g->stepc = p->dims ? p->step[2][inner] : 0;
  weir_status st = WEIR_OK;
  for (int64_t n = 0; n < count && !st; n++) {
    g->a = offset(p->a.t, from[0]);
    g->b = offset(p->b.t, from[1]);
    g->c = (void *)offset(out, from[2]);
    st = gemm_run(t, g);
    for (int d = inner - 1; d >= 0; d--) {
      bool wrapped = ++at[d] == p->size[d];
      for (int k = 0; k < 3; k++)
        from[k] += wrapped ? p->step[k][d] * (1 - p->size[d]) : p->step[k][d];
      if (!wrapped) break;
      at[d] = 0;
    }
  }
  return st;
}

/* out (dense) = alpha a b + beta out. Shapes have been checked. */
static weir_status multiply_matrices(const weir_tensor *out, const weir_tensor *a,
                                     const weir_tensor *b, const weir_shape *batch, double alpha,
                                     double beta)
{
  product p;
  compute_target t;
  weir_gemm g;
  if (!out->numel) return WEIR_OK;
  TRY(side_of(&p.a, a, false));
  weir_status st = side_of(&p.b, b, true);
  if (!st) st = compute_target_of(&t, device_of_tensor(out));
  if (!st) {
    g.dtype = out->dtype;
    g.m = p.a.rows, g.n = p.b.columns, g.k = p.a.columns;
    g.lda = p.a.ld, g.ldb = p.b.ld, g.ldc = g.n;
    g.transa = p.a.trans, g.transb = p.b.trans;
    g.alpha = alpha, g.beta = beta;
    batch_of(&p, batch, g.m * g.n);
    st = run_batches(&t, &p, &g, out);
  }
  weir_tensor_release(p.a.copy);
  weir_tensor_release(p.b.copy);
  return st;
}

/* ---- what is refused ------------------------------------------------------------------------- */

static weir_status check_kind(const weir_tensor *a, const char *kernel)
{
  weir_dtype d = a->dtype;
  bool there = dtype_is_floating(d) || d == WEIR_COMPLEX64 ||
               (dtype_is_integral(d) && device_of_tensor(a).type == WEIR_DEVICE_CPU);
  return there ? WEIR_OK : not_implemented(kernel, device_of_tensor(a), d);
}

static weir_status check_mm_dtypes(const weir_tensor *a, const weir_tensor *b)
{
  if (a->dtype != b->dtype)
    return fail_invalid("expected m1 and m2 to have the same dtype, but got: %s != %s",
                        dtype_cxx(a->dtype), dtype_cxx(b->dtype));
  return check_kind(a,
                    device_of_tensor(a).type == WEIR_DEVICE_CPU ? "addmm_impl_cpu_" : "addmm_%s");
}

static weir_status cannot_multiply(int64_t m, int64_t k, int64_t k2, int64_t n)
{
  return fail_invalid("mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                      (long long)m, (long long)k, (long long)k2, (long long)n);
}

static weir_status check_mv(const weir_tensor *a, const weir_tensor *b, int64_t rows)
{
  int64_t k = a->size[a->dims - 1];
  if (k != b->size[0])
    return fail_invalid("size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                        (long long)rows, (long long)rows, (long long)k, (long long)b->size[0]);
  if (a->dtype != b->dtype)
    return fail_invalid("addmv input tensors must have the same dtype, but got %s, %s, and %s",
                        dtype_title(b->dtype), dtype_title(a->dtype), dtype_title(b->dtype));
  return check_kind(a, "addmv_impl_%s");
}

static weir_status check_dot(const weir_tensor *a, const weir_tensor *b)
{
  if (a->dims != 1 || b->dims != 1)
    return fail_invalid("1D tensors expected, but got %dD and %dD tensors", a->dims, b->dims);
  if (a->dtype != b->dtype)
    return fail_invalid("dot : expected both vectors to have same dtype, but found %s and %s",
                        dtype_title(a->dtype), dtype_title(b->dtype));
  if (a->size[0] != b->size[0])
    return fail_invalid("inconsistent tensor size, expected tensor [%lld] and src [%lld] to have "
                        "the same number of elements, but got %lld and %lld elements respectively",
                        (long long)a->size[0], (long long)b->size[0], (long long)a->size[0],
                        (long long)b->size[0]);
  return check_kind(a, "dot");
}

static weir_status check_bmm(const weir_shape *batch, const weir_tensor *a, const weir_tensor *b,
                             int64_t k, int64_t k2)
{
  int64_t count = sizes_product(batch->size, 0, batch->count);
  if (k != k2)
    return fail_invalid("Expected size for first two dimensions of batch2 tensor to be: [%lld, "
                        "%lld] but got: [%lld, %lld].",
                        (long long)count, (long long)k, (long long)count, (long long)k2);
  weir_status st = check_kind(a, device_of_tensor(a).type == WEIR_DEVICE_CPU ? "bmm" : "bmm_%s");
  if (!st && a->dtype != b->dtype)
    st = fail_invalid("expected scalar type %s but found %s", dtype_title(a->dtype),
                      dtype_title(b->dtype));
  return st;
}

/* ---- the functions --------------------------------------------------------------------------- */

/* A new result of `shape`; then the product in it. */
static weir_status product_of(weir_tensor **out, weir_shape shape, const weir_tensor *a,
                              const weir_tensor *b, const weir_shape *batch)
{
  weir_status st = tensor_new_beside(out, a, shape);
  if (!st) st = multiply_matrices(*out, a, b, batch, 1, 0);
  if (st) weir_tensor_drop(out);
  if (st || !(recorded(a) || recorded(b))) return st;
  record r = {.kind = RECORD_MATMUL, .inputs = 2, .in = (const weir_tensor *[]){a, b}};
  return record_made(out, &r, WEIR_OK);
}

static const weir_shape no_batch = {0, {0}};

weir_status weir_dot(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(DOT, a, b);
  weir_status st = check_same_device(a, b);
  if (!st) st = check_dot(a, b);
  return st ? st : product_of(out, no_batch, a, b, &no_batch);
}

weir_status weir_mv(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(MATVEC, a, b);
  weir_status st = check_same_device(a, b);
  if (!st && !a->dims) st = fail_invalid("Dimension specified as 0 but tensor has no dimensions");
  if (!st && (a->dims != 2 || b->dims != 1))
    st = fail_invalid("vector + matrix @ vector expected, got 1, %d, %d", a->dims, b->dims);
  if (!st) st = check_mv(a, b, a->size[0]);
  return st ? st : product_of(out, weir_shape_of(1, a->size), a, b, &no_batch);
}

static weir_status check_mm(const weir_tensor *a, const weir_tensor *b, const char *name)
{
  TRY(check_same_device(a, b));
  if (a->dims != 2)
    return fail_invalid("%s: self must be a matrix, got %d-D tensor", name, a->dims);
  if (b->dims != 2)
    return fail_invalid("%s: mat2 must be a matrix, got %d-D tensor", name, b->dims);
  if (a->size[1] != b->size[0])
    return cannot_multiply(a->size[0], a->size[1], b->size[0], b->size[1]);
  return WEIR_OK;
}

weir_status weir_mm(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(MATMUL, a, b);
  weir_status st = check_mm(a, b, "mm");
  if (!st) st = check_mm_dtypes(a, b);
  return st ? st : product_of(out, weir_shape(a->size[0], b->size[1]), a, b, &no_batch);
}

weir_status weir_bmm(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(MATMUL, a, b);
  TRY(check_same_device(a, b));
  if (a->dims != 3) return fail_invalid("batch1 must be a 3D tensor");
  if (b->dims != 3) return fail_invalid("batch2 must be a 3D tensor");
  if (a->size[0] != b->size[0])
    return fail_invalid("Expected size for first two dimensions of batch2 tensor to be: [%lld, "
                        "%lld] but got: [%lld, %lld].",
                        (long long)a->size[0], (long long)a->size[2], (long long)b->size[0],
                        (long long)b->size[1]);
  weir_shape batch = weir_shape_of(1, a->size);
  weir_status st = check_bmm(&batch, a, b, a->size[2], b->size[1]);
  return st ? st : product_of(out, weir_shape(a->size[0], a->size[1], b->size[2]), a, b, &batch);
}

/* beta c + alpha a b as a new tensor: c is of the result's shape (a view). */
static weir_status add_product(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                               const weir_tensor *b, const weir_shape *batch, double beta,
                               double alpha)
{
  weir_status st = tensor_new_beside(out, a, shape_of_tensor(c));
  if (!st && beta != 0) st = loop_copy(*out, c);
  if (!st && (*out)->numel) st = multiply_matrices(*out, a, b, batch, alpha, beta);
  if (st) weir_tensor_drop(out);
  if (st || !(recorded(a) || recorded(b) || recorded(c))) return st;
  record r = {.kind = RECORD_ADDMM,
              .inputs = 3,
              .in = (const weir_tensor *[]){c, a, b},
              .p = {beta, alpha}};
  return record_made(out, &r, WEIR_OK);
}

static weir_status check_addmm_dtypes(const weir_tensor *c, const weir_tensor *a,
                                      const weir_tensor *b)
{
  weir_status st = check_same_device(c, b);
  if (!st && c->dtype != b->dtype)
    st = fail_invalid("self and mat2 must have the same dtype, but got %s and %s",
                      dtype_title(c->dtype), dtype_title(b->dtype));
  if (!st && a->dtype != b->dtype)
    st = fail_invalid("mat1 and mat2 must have the same dtype, but got %s and %s",
                      dtype_title(a->dtype), dtype_title(b->dtype));
  return st;
}

weir_status weir_addmm(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                       const weir_tensor *b, double beta, double alpha)
{
  WEIR_OP(out, c, a, b);
  WEIR_CASTS(MATMUL, c, a, b);
  CALC(k);
  k->st = check_addmm_dtypes(c, a, b);
  c_do(k, check_mm(a, b, "addmm"));
  weir_tensor *wide = c_call(k, weir_expand, c, weir_shape(a->size[0], b->size[1]));
  c_do(k, check_mm_dtypes(a, b));
  return k->st ? k->st : add_product(out, wide, a, b, &no_batch, beta, alpha);
}

static weir_status check_addmv(const weir_tensor *c, const weir_tensor *a, const weir_tensor *b)
{
  int64_t has = c->dims ? c->size[0] : 1;
  if (a->dims != 2 || b->dims != 1 || c->dims > 1)
    return fail_invalid("vector + matrix @ vector expected, got %d, %d, %d", c->dims, a->dims,
                        b->dims);
  if (a->size[1] != b->size[0] || (has != a->size[0] && has != 1))
    return fail_invalid("size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                        (long long)has, (long long)a->size[0], (long long)a->size[1],
                        (long long)b->size[0]);
  if (a->dtype != b->dtype || c->dtype != a->dtype)
    return fail_invalid("addmv input tensors must have the same dtype, but got %s, %s, and %s",
                        dtype_title(c->dtype), dtype_title(a->dtype), dtype_title(b->dtype));
  return check_kind(a, "addmv_impl_%s");
}

weir_status weir_addmv(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                       const weir_tensor *b, double beta, double alpha)
{
  WEIR_OP(out, c, a, b);
  WEIR_CASTS(MATVEC, c, a, b);
  CALC(k);
  k->st = check_same_device(c, a);
  c_do(k, check_same_device(a, b));
  c_do(k, check_addmv(c, a, b));
  weir_tensor *wide = c_call(k, weir_expand, c, weir_shape(a->size[0]));
  return k->st ? k->st : add_product(out, wide, a, b, &no_batch, beta, alpha);
}

/* Size `dim` of t. Errors: torch's, where it has none. */
static weir_status size_at(int64_t *out, const weir_tensor *t, int dim)
{
  int at;
  weir_status st = dim_resolve(&at, dim, t->dims);
  if (!st) *out = t->dims ? t->size[at] : 1;
  return st;
}

static weir_status check_addbmm(const weir_tensor *a, const weir_tensor *b)
{
  if (a->dims != 3) return fail_invalid("batch1 must be a 3D tensor");
  if (b->dims != 3) return fail_invalid("batch2 must be a 3D tensor");
  if (a->size[0] != b->size[0])
    return fail_invalid("batch1 and batch2 must have same number of batches, got %lld and %lld",
                        (long long)a->size[0], (long long)b->size[0]);
  if (a->size[2] != b->size[1])
    return fail_invalid("Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)",
                        (long long)a->size[1], (long long)a->size[2], (long long)b->size[1],
                        (long long)b->size[2]);
  return WEIR_OK;
}

/* The sum over the batch is one product, of matrices side by side and one above the other. */
weir_status weir_addbmm(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                        const weir_tensor *b, double beta, double alpha)
{
  WEIR_OP(out, c, a, b);
  WEIR_CASTS(MATMUL, c, a, b);
  static const int rows_first[] = {1, 0, 2};
  CALC(e);
  weir_shape shape = weir_shape(0, 0);
  e->st = size_at(&shape.size[0], a, 1);
  c_do(e, size_at(&shape.size[1], b, 2));
  weir_tensor *wide = c_call(e, weir_expand, c, shape);
  c_do(e, check_addbmm(a, b));
  c_do(e, check_addmm_dtypes(c, a, b));
  c_do(e, check_same_device(a, b));
  c_do(e, check_mm_dtypes(a, b));
  if (e->st) return e->st;
  int64_t k = a->size[0] * a->size[2];
  weir_tensor *turned = c_permute(e, a, rows_first);
  weir_tensor *left = c_call(e, weir_reshape, turned, weir_shape(a->size[1], k));
  weir_tensor *right = c_call(e, weir_reshape, b, weir_shape(k, b->size[2]));
  return e->st ? e->st : add_product(out, wide, left, right, &no_batch, beta, alpha);
}

static weir_status check_baddbmm(const weir_tensor *c, const weir_tensor *a, const weir_tensor *b)
{
  weir_dtype d = a->dtype;
  if (c->dtype != a->dtype)
    return fail_invalid("Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                        dtype_cxx(c->dtype), dtype_cxx(d), dtype_cxx(b->dtype));
  if (a->dims != 3) return fail_invalid("batch1 must be a 3D tensor");
  if (b->dims != 3) return fail_invalid("batch2 must be a 3D tensor");
  if (a->size[0] != b->size[0] || a->size[2] != b->size[1])
    return fail_invalid("Expected size for first two dimensions of batch2 tensor to be: [%lld, "
                        "%lld] but got: [%lld, %lld].",
                        (long long)a->size[0], (long long)a->size[2], (long long)b->size[0],
                        (long long)b->size[1]);
  weir_status st =
      check_kind(a, device_of_tensor(a).type == WEIR_DEVICE_CPU ? "baddbmm" : "baddbmm_%s");
  if (!st && a->dtype != b->dtype)
    st =
        fail_invalid("expected scalar type %s but found %s", dtype_title(d), dtype_title(b->dtype));
  return st;
}

weir_status weir_baddbmm(weir_tensor **out, const weir_tensor *c, const weir_tensor *a,
                         const weir_tensor *b, double beta, double alpha)
{
  WEIR_OP(out, c, a, b);
  WEIR_CASTS(MATMUL, c, a, b);
  CALC(k);
  weir_shape shape = weir_shape(0, 0, 0);
  k->st = check_same_device(c, a);
  c_do(k, check_same_device(a, b));
  c_do(k, size_at(&shape.size[0], a, 0));
  c_do(k, size_at(&shape.size[1], a, 1));
  c_do(k, size_at(&shape.size[2], b, 2));
  weir_tensor *wide = c_call(k, weir_expand, c, shape);
  c_do(k, check_baddbmm(c, a, b));
  if (k->st) return k->st;
  weir_shape batch = weir_shape_of(1, a->size);
  return add_product(out, wide, a, b, &batch, beta, alpha);
}

/* ---- matmul ---------------------------------------------------------------------------------- */

/* a's leading dimensions as rows of one matrix: (..., k) times a matrix or vector. *out may be a
 * copy. */
static weir_status fold(weir_tensor **out, const weir_tensor *a)
{
  int64_t k = a->size[a->dims - 1], rows = sizes_product(a->size, 0, a->dims - 1);
  return weir_reshape(out, a, weir_shape(rows, k));
}

/* (..., m, k) and (k, n) or (k), as one product. */
static weir_status matmul_folded(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  CALC(c);
  weir_shape shape = shape_of_tensor(a);
  int64_t count = sizes_product(a->size, 0, a->dims - 1);
  if (b->dims == 1)
    c->st = check_mv(a, b, count);
  else if (a->size[a->dims - 1] != b->size[0])
    c->st = cannot_multiply(count, a->size[a->dims - 1], b->size[0], b->size[1]);
  else
    c->st = check_mm_dtypes(a, b);
  weir_tensor *rows = c_call(c, fold, a);
  if (c->st) return c->st;
  shape.count -= b->dims == 1;
  if (b->dims == 2) shape.size[a->dims - 1] = b->size[1];
  return product_of(out, shape, rows, b, &no_batch);
}

/* Whether the batch of a is one run of rows, so that folding copies nothing: as torch decides it.
 */
static bool folds(const weir_tensor *a)
{
  int64_t next = -1; /* the stride that the next dimension has to have */
  if (a->dims < 3) return false;
  for (int i = a->dims - 2; a->numel && i >= 0; i--) {
    if (a->size[i] == 1) continue;
    if (next >= 0 && a->stride[i] != next) return false;
    next = a->stride[i] * a->size[i];
  }
  return true;
}

/* A vector times matrices that fold when they are turned: the turned ones times the vector. */
static weir_status matmul_turned(weir_tensor **out, bool *done, const weir_tensor *a,
                                 const weir_tensor *b)
{
  CALC(c);
  weir_tensor *turned = c_transpose(c, b, -1, -2);
  *done = c->st || folds(turned);
  if (!c->st && *done) c->st = matmul_folded(out, turned, a);
  return c->st;
}

/* The batch of both, broadcast; and the sizes of the matrices. */
static weir_status matmul_shape(weir_shape *batch, const weir_tensor *a, const weir_tensor *b)
{
  *batch = weir_shape_of(a->dims > 2 ? a->dims - 2 : 0, a->size);
  return shape_broadcast(batch, b->size, b->dims > 2 ? b->dims - 2 : 0);
}

static weir_status matmul_batched(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  weir_shape batch;
  TRY(matmul_shape(&batch, a, b));
  int64_t k = a->size[a->dims - 1], k2 = b->size[b->dims == 1 ? 0 : b->dims - 2];
  TRY(check_bmm(&batch, a, b, k, k2));
  weir_shape shape = batch;
  if (a->dims > 1) shape.size[shape.count++] = a->size[a->dims - 2];
  if (b->dims > 1) shape.size[shape.count++] = b->size[b->dims - 1];
  return product_of(out, shape, a, b, &batch);
}

weir_status weir_matmul(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)
{
  WEIR_OP(out, a, b);
  WEIR_CASTS(MATMUL, a, b);
  weir_status st = check_same_device(a, b);
  if (st) return st;
  if (!a->dims || !b->dims)
    return fail_invalid("both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                        a->dims, b->dims);
  if (a->dims == 1 && b->dims == 1) return weir_dot(out, a, b);
  if (a->dims == 2 && b->dims == 1) return weir_mv(out, a, b);
  if (a->dims == 2 && b->dims == 2) return weir_mm(out, a, b);
  if (a->dims == 1 && b->dims == 2) {
    if (a->size[0] != b->size[0]) return cannot_multiply(1, a->size[0], b->size[0], b->size[1]);
    st = check_mm_dtypes(a, b);
    return st ? st : product_of(out, weir_shape(b->size[1]), a, b, &no_batch);
  }
  if (b->dims <= 2 && folds(a)) return matmul_folded(out, a, b);
  bool done = false;
  if (a->dims == 1) st = matmul_turned(out, &done, a, b);
  if (done) return st;
  return matmul_batched(out, a, b);
}

weir_status weir_linear(weir_tensor **out, const weir_tensor *a, const weir_tensor *weight,
                        const weir_tensor *bias)
{
  WEIR_OP(out, a, weight);
  WEIR_CASTS(MATMUL, a, weight, bias);
  CALC(c);
  TRY(check_same_device(a, weight));
  if (!a->dims || !weight->dims)
    return fail_invalid("both arguments to linear need to be at least 1D, but they are %dD and %dD",
                        a->dims, weight->dims);
  if (weight->dims > 2)
    return fail_invalid("t() expects a tensor with <= 2 dimensions, but self is %dD", weight->dims);
  weir_tensor *turned = c_t(c, weight);
  if (c->st) return c->st;
  if (!bias || weight->dims == 1 || (a->dims > 2 && !a->dense)) {
    c->st = weir_matmul(out, a, turned);
    if (bias) c_do(c, weir_add_(*out, bias));
    if (c->st) weir_tensor_drop(out);
    return c->st;
  }
  weir_shape shape = shape_of_tensor(a);
  shape.size[a->dims - 1] = weight->size[0];
  weir_tensor *rows = c_call(c, fold, a);
  weir_tensor *flat = c_call(c, weir_addmm, bias, rows, turned, 1, 1);
  return c->st ? c->st : weir_view(out, flat, shape);
}
