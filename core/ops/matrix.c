/* matrix.c: triangles and diagonals of matrices, and numbers at equal distances. */
#include <math.h>
#include "core/ops/ops.h"
#include "core/tensor/create.h"

/* ---- triangles ------------------------------------------------------------------------------- */

/* Where column <= row + diagonal (low), or >=: bool, of the last two dimensions' sizes. */
static weir_status make_triangle(weir_tensor **out, const weir_tensor *t, int64_t diagonal,
                                 bool low)
{
  CALC(c);
  WEIR_TENSOR rows = NULL;
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(t)};
  int64_t height = t->size[t->dims - 2], width = t->size[t->dims - 1];
  if (diagonal < -height) diagonal = -height; /* nothing more changes, and nothing overflows */
  if (diagonal > width) diagonal = width;
  c->st = weir_arange(&rows, weir_int(diagonal), weir_int(diagonal + height), weir_int(1), &o);
  weir_tensor *column = c_unsqueeze(c, rows, 1);
  weir_tensor *columns = c_call(c, weir_arange, weir_int(0), weir_int(width), weir_int(1), &o);
  if (c->st) return c->st;
  return low ? weir_ge(out, column, columns) : weir_le(out, column, columns);
}

/* out is t where the triangle is, else 0. */
static weir_status keep_triangle(const weir_tensor *out, const weir_tensor *t, int64_t diagonal,
                                 bool low)
{
  CALC(c);
  weir_loop l;
  weir_tensor *truth = c_call(c, make_triangle, t, diagonal, low);
  if (c->st) return c->st;
  loop_begin(&l, WEIR_OP_WHERE, out);
  l.in[0] = operand_of(truth, &l);
  l.in[1] = operand_of(t, &l);
  l.in[2] = (weir_operand){.dtype = WEIR_INT64, .number = weir_int(0)};
  return loop_run(device_of_tensor(t), &l);
}

static weir_status check_matrix(const weir_tensor *t, const char *name)
{
  if (t->dims >= 2) return WEIR_OK;
  return fail_invalid("%s: input tensor must have at least 2 dimensions", name);
}

static weir_status triangle_in_place(weir_tensor *t, int64_t diagonal, bool low)
{
  grad_node *node = NULL;
  bool records = recorded(t);
  weir_status st = WEIR_OK;
  if (records) {
    record r = {.kind = RECORD_TRIANGLE, .in_place = true, .inputs = 1, .out = {t}};
    r.in = (const weir_tensor *[]){t};
    r.n[0] = diagonal, r.n[1] = low;
    st = tensor_recorder->before(&node, &r);
  }
  if (st) return st;
  if (t->numel) st = keep_triangle(t, t, diagonal, low);
  if (!st) tensor_changes(t);
  if (records) tensor_recorder->after(node, t, !st);
  return st;
}

#define TRIANGLE(name, low)                                                                        \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *t, int64_t diagonal)               \
  {                                                                                                \
    WEIR_OP(out, t);                                                                               \
    weir_status st = check_matrix(t, #name);                                                       \
    if (!st) st = tensor_new_beside(out, t, shape_of_tensor(t));                                   \
    if (!st && t->numel) st = keep_triangle(*out, t, diagonal, low);                               \
    if (st) weir_tensor_drop(out);                                                                 \
    return st || !recorded(t) ? st : record_of(out, t, RECORD_TRIANGLE, diagonal, low, 0, 0);      \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *t, int64_t diagonal)                                     \
  {                                                                                                \
    WEIR_OP_ON(t);                                                                                 \
    bool unused;                                                                                   \
    weir_status st = check_matrix(t, #name);                                                       \
    if (!st) st = overlap_check(&unused, t, NULL);                                                 \
    return st ? st : triangle_in_place(t, diagonal, low);                                          \
  }
TRIANGLE(tril, true)
TRIANGLE(triu, false)

/* ---- diagonals ------------------------------------------------------------------------------- */

static weir_status zeros_of(weir_tensor **out, const weir_tensor *t, weir_shape shape)
{
  return weir_zeros(out, shape, OPTIONS_ON(t, t->dtype));
}

static weir_status distance_of(int64_t *out, int64_t offset, int64_t size)
{
  if (offset != INT64_MIN && !__builtin_add_overflow(offset < 0 ? -offset : offset, size, out))
    return WEIR_OK;
  return fail_invalid("a diagonal %lld beside the main one overflows", (long long)offset);
}

weir_status weir_diag_embed(weir_tensor **out, const weir_tensor *t, int64_t offset, int dim1,
                            int dim2)
{
  WEIR_OP(out, t);
  CALC(c);
  weir_tensor *diagonal = NULL;
  int one, two, from = 0;
  int64_t side = 0;
  weir_shape shape = {.count = t->dims + 1};
  c->st = dim_resolve(&one, dim1, t->dims + 1);
  c_do(c, dim_resolve(&two, dim2, t->dims + 1));
  if (c->st) return c->st;
  if (one == two) return fail_invalid("diagonal dimensions cannot be identical %d, %d", dim1, dim2);
  if (check_dim_count(shape.count)) return WEIR_EINVAL;
  c->st = distance_of(&side, offset, t->size[t->dims - 1]);
  for (int d = 0; d < shape.count; d++)
    shape.size[d] = d == one || d == two ? side : t->size[from++];
  c_do(c, zeros_of(out, t, shape));
  diagonal = c_call(c, weir_diagonal, *out, offset, one, two);
  c_do(c, loop_copy(diagonal, t));
  if (c->st) weir_tensor_drop(out);
  return c->st || !recorded(t) ? c->st : record_of(out, t, RECORD_DIAG_EMBED, offset, one, two, 0);
}

weir_status weir_diag(weir_tensor **out, const weir_tensor *t, int64_t diagonal)
{
  WEIR_OP(out, t);
  CALC(c);
  if (t->dims == 1) return weir_diag_embed(out, t, diagonal, 0, 1);
  if (t->dims != 2) return fail_invalid("diag(): Supports 1D or 2D tensors. Got %dD", (int)t->dims);
  weir_tensor *view = c_diagonal(c, t, diagonal, 0, 1);
  c_do(c, tensor_new_beside(out, view, shape_of_tensor(view)));
  if (!c->st && (c->st = weir_copy_(*out, view, false))) weir_tensor_drop(out);
  return c->st;
}

weir_status weir_trace(weir_tensor **out, const weir_tensor *t)
{
  WEIR_OP(out, t);
  WEIR_CASTS(QUANTILE, t);
  CALC(c);
  if (t->dtype == WEIR_BOOL && device_of_tensor(t).type == WEIR_DEVICE_CPU)
    return not_implemented("trace", device_of_tensor(t), WEIR_BOOL);
  if (t->dims != 2)
    return fail_invalid("trace: expected a matrix, but got tensor with dim %d", (int)t->dims);
  return calc_give(c, out, c_sum(c, c_diagonal(c, t, 0, 0, 1)));
}

weir_status weir_eye(weir_tensor **out, int64_t n, int64_t m, const weir_options *options)
{
  WEIR_OP(out);
  CALC(c);
  if (n < 0) return fail_invalid("n must be greater or equal to 0, got %lld", (long long)n);
  if (m < 0) return fail_invalid("m must be greater or equal to 0, got %lld", (long long)m);
  c->st = weir_zeros(out, weir_shape(n, m), options);
  weir_tensor *diagonal = c_diagonal(c, *out, 0, 0, 1);
  c_do(c, weir_fill_(diagonal, weir_int(1)));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* start + i step into `count` elements of t from place `at` on, `way` apart. */
static weir_status fill_part(const weir_tensor *t, int64_t at, int way, int64_t count, double start,
                             double step)
{
  weir_loop l;
  l.op = WEIR_OP_RANGE;
  l.compute = WEIR_FLOAT64;
  l.has_alpha = false;
  l.p[0] = weir_float(start);
  l.p[1] = weir_float(step);
  l.p[2] = weir_bool(false);
  l.dims = 1;
  l.size[0] = count;
  l.out = operand_of(t, &l);
  l.out.stride[0] = way;
  l.out.data = t->data + at * (int64_t)itemsize(t->dtype);
  return loop_run(device_of_tensor(t), &l);
}

/* An end as it is once stored: of integers without what is after the point. */
static weir_status end_of(double *out, weir_scalar v, weir_dtype dtype)
{
  weir_scalar stored;
  if (v.dtype == WEIR_COMPLEX64)
    return fail_invalid("value cannot be converted to type double without overflow");
  weir_status st = scalar_for(&stored, v, dtype == WEIR_COMPLEX64 ? WEIR_FLOAT64 : dtype);
  if (!st) *out = stored.dtype == WEIR_FLOAT64 ? stored.f : (double)stored.i;
  return st;
}

/* At least two: half from each end, so that both are met. */
static weir_status fill_between(const weir_tensor *t, double start, double end)
{
  int64_t n = t->numel, half = n / 2;
  double step = (end - start) / (double)(n - 1);
  weir_status st = fill_part(t, 0, 1, half, start, step);
  return st ? st : fill_part(t, n - 1, -1, n - half, end, -step);
}

/* The element of a range of one, which must fit, but where a short floating point dtype has an
 * infinity for it. */
static weir_status fill_one(weir_tensor *t, weir_scalar v)
{
  double number = v.dtype == WEIR_FLOAT64 ? v.f : (double)v.i;
  if (t->dtype == WEIR_FLOAT16 || t->dtype == WEIR_BFLOAT16)
    return fill_part(t, 0, 1, 1, number, 0);
  return weir_fill_(t, v);
}

/* What the result is to be, and its ends. */
static weir_status check_ends(tensor_spec *s, double ends[2], const weir_scalar given[2],
                              int64_t steps, const weir_options *options, const char *kernel)
{
  weir_status st = tensor_spec_of(s, options, weir_get_default_dtype());
  if (!st && steps < 0) st = fail_invalid("number of steps must be non-negative");
  if (st || !steps) return st;
  if (s->dtype == WEIR_BOOL && steps > 1) return not_implemented(kernel, s->device, s->dtype);
  for (int i = 0; i < 2 && !st; i++)
    st = end_of(&ends[i], given[i], steps == 1 ? WEIR_FLOAT64 : s->dtype);
  return st;
}

weir_status weir_linspace(weir_tensor **out, weir_scalar start, weir_scalar end, int64_t steps,
                          const weir_options *options)
{
  WEIR_OP(out);
  tensor_spec s;
  double ends[2];
  weir_status st =
      check_ends(&s, ends, (const weir_scalar[]){start, end}, steps, options, "linspace_%s");
  if (!st) st = tensor_new_by(out, &s, weir_shape(steps));
  if (!st && steps) st = steps == 1 ? fill_one(*out, start) : fill_between(*out, ends[0], ends[1]);
  if (st) weir_tensor_drop(out);
  return st;
}

weir_status weir_logspace(weir_tensor **out, weir_scalar start, weir_scalar end, int64_t steps,
                          double base, const weir_options *options)
{
  WEIR_OP(out);
  CALC(c);
  tensor_spec s;
  double ends[2];
  c->st = check_ends(&s, ends, (const weir_scalar[]){start, end}, steps, options, "logspace_%s");
  c_do(c, tensor_new_by(out, &s, weir_shape(steps)));
  if (c->st || !steps) return c->st;
  if (steps == 1) { /* a number by itself, which must fit */
    c->st = fill_one(*out, weir_float(pow(base, ends[0])));
    if (c->st) weir_tensor_drop(out);
    return c->st;
  }
  weir_tensor *exponents = c_call(c, tensor_new, WEIR_FLOAT64, s.device, false, weir_shape(steps));
  c_do(c, fill_between(exponents, ends[0], ends[1]));
  weir_tensor *powers = c_scalar_pow(c, weir_float(base), exponents);
  c_do(c, loop_copy(*out, powers));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}
