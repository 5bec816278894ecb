/* reduce.c: operations that make one element of many.
 *
 * A request's loop has the kept dimensions first, then the reduced ones; neighbours within each
 * part that lie one after the other become one, so that sums over whole tensors or over leading or
 * trailing dimensions are loops of one or two dimensions. Where the place of an element counts
 * (argmax), reduced dimensions stay in their order.
 *
 * Words. mask: bit d: dimension d is reduced. */
#include <string.h>
#include "core/ops/ops.h"

static const struct rule {
  const char *name;   /* torch's, for messages */
  const char *kernel; /* what is not there for complex64 */
  uint8_t gives;      /* the dtype of the result: WEIR_GIVES_* */
  bool order;         /* the order of reduced dimensions counts */
  bool empty;         /* nothing has a result */
} rules[WEIR_REDUCE_COUNT] = {
#define ROW(name, text, gives, computes, order, empty, host, device, function, absent)             \
  {function, absent, WEIR_GIVES_##gives, order, empty},
    WEIR_REDUCE_OPS(ROW)
#undef ROW
};

/* ---- arguments ------------------------------------------------------------------------------- */

weir_status reduction_mask(uint32_t *out, const weir_tensor *a, const int *dims, int count)
{
  uint32_t mask = 0;
  for (int i = 0; i < count; i++) {
    int d;
    TRY(dim_resolve(&d, dims[i], a->dims));
    if (mask >> d & 1) return fail_invalid("dim %d appears multiple times in the list of dims", d);
    mask |= 1u << d;
  }
  *out = count ? mask : (1u << a->dims) - 1;
  return WEIR_OK;
}

static weir_status check_empty(const reduction *r)
{
  bool value = r->op == WEIR_REDUCE_MAX || r->op == WEIR_REDUCE_MIN;
  if (r->whole && !r->a->numel)
    return fail_invalid("%s(): Expected reduction dim to be specified for input.numel() == 0.%s",
                        r->name,
                        value ? " Specify the reduction dim with the 'dim' argument." : "");
  for (int i = 0; i < r->count; i++) {
    int d = r->dims[i], at = d < 0 ? d + r->a->dims : d;
    bool there = at >= 0 && at < r->a->dims;
    if (there && !r->a->size[at]) /* torch prints them as they came, one it counts */
      return fail_invalid("%s(): Expected reduction dim %d to have non-zero size.", r->name,
                          value ? d : at);
  }
  return WEIR_OK;
}

/* What is refused before dimensions are looked at. */
static weir_status check_dtype(const reduction *r)
{
  weir_dtype d = r->a->dtype;
  bool arg = r->op == WEIR_REDUCE_ARGMAX || r->op == WEIR_REDUCE_ARGMIN;
  if (r->op == WEIR_REDUCE_MEAN && dtype_is_integral_or_bool(d))
    return fail_unsupported("mean(): could not infer output dtype. Input dtype must be either a "
                            "floating point or complex dtype. Got: %s",
                            dtype_title(d));
  if (arg && (d == WEIR_BOOL || d == WEIR_COMPLEX64))
    return fail_unsupported("%s(): does not support %s input", r->name,
                            d == WEIR_BOOL ? "bool" : "complex");
  return WEIR_OK;
}

/* What is refused after, and the dtypes of the work and of the result. */
static weir_status dtypes(const reduction *r, weir_dtype *compute, weir_dtype *result)
{
  const struct rule *rule = &rules[r->op];
  weir_dtype d = r->a->dtype;
  bool index = r->op == WEIR_REDUCE_MAX_INDEX || r->op == WEIR_REDUCE_MIN_INDEX;
  TRY(rule->empty ? WEIR_OK : check_empty(r));
  if (index && d == WEIR_COMPLEX64)
    return fail_unsupported("%s(): does not support complex input", r->name);
  if (r->op == WEIR_REDUCE_NANSUM && d == WEIR_COMPLEX64)
    return fail_unsupported("nansum on %s does not support complex inputs",
                            device_of_tensor(r->a).type == WEIR_DEVICE_CPU ? "CPU" : "CUDA");
  if (rule->kernel && d == WEIR_COMPLEX64 && r->a->numel)
    return not_implemented(rule->kernel, device_of_tensor(r->a), d);
  *compute = rule->gives == WEIR_GIVES_WIDE && dtype_is_integral_or_bool(d) ? WEIR_INT64 : d;
  *result = *compute;
  if (rule->gives == WEIR_GIVES_BOOL) *result = d == WEIR_UINT8 ? WEIR_UINT8 : WEIR_BOOL;
  if (rule->gives == WEIR_GIVES_PLACE || rule->gives == WEIR_GIVES_COUNT) *result = WEIR_INT64;
  return WEIR_OK;
}

/* ---- the request ----------------------------------------------------------------------------- */

static weir_shape result_shape(const reduction *r)
{
  weir_shape s = {0, {0}};
  for (int d = 0; d < r->a->dims; d++) {
    bool reduced = r->mask >> d & 1;
    if (!reduced || r->keepdim) s.size[s.count++] = reduced ? 1 : r->a->size[d];
  }
  return s;
}

/* Adds dimension d of a after those that are there since `from`, or to the last of them. */
static int append(weir_reduce *q, int from, int to, const reduction *r, int d, int64_t out)
{
  const weir_tensor *a = r->a;
  int64_t size = a->size[d], in = a->stride[d];
  if (size == 1) return to;
  int last = to - 1;
  if (to > from && q->in.stride[last] == in * size && q->out.stride[last] == out * size) {
    q->size[last] *= size;
  } else {
    q->size[to] = size;
    last = to++;
  }
  q->in.stride[last] = in;
  q->out.stride[last] = out;
  return to;
}

/* Reduced dimensions by falling strides, where their order does not count. */
static int reduced_dims(int list[WEIR_DIMS], const reduction *r)
{
  int count = 0;
  for (int d = 0; d < r->a->dims; d++) {
    if (!(r->mask >> d & 1)) continue;
    int at = count++;
    if (!rules[r->op].order)
      for (; at && r->a->stride[list[at - 1]] < r->a->stride[d]; at--)
        list[at] = list[at - 1];
    list[at] = d;
  }
  return count;
}

static void fill_reduce(weir_reduce *q, const reduction *r, const weir_tensor *out)
{
  const weir_tensor *a = r->a;
  int list[WEIR_DIMS], at = 0;
  q->outputs = out->numel;
  q->each = 1;
  q->kept = 0;
  for (int d = 0; d < a->dims; d++) {
    bool reduced = r->mask >> d & 1;
    if (reduced)
      q->each *= a->size[d];
    else
      q->kept = append(q, 0, q->kept, r, d, out->stride[at]);
    at += !reduced || r->keepdim;
  }
  q->dims = q->kept;
  int count = reduced_dims(list, r);
  for (int i = 0; i < count; i++)
    q->dims = append(q, q->kept, q->dims, r, list[i], 0);
}

/* The other result: places, or the mean. */
static bool gives_mean(weir_reduce_op op)
{
  return op == WEIR_REDUCE_VAR || op == WEIR_REDUCE_STD;
}

static void fill_other(weir_reduce *q, const weir_tensor *other)
{
  weir_operand *o = gives_mean(q->op) ? &q->mean : &q->index;
  q->index.data = q->mean.data = NULL;
  if (!other) return;
  o->data = other->data;
  o->dtype = other->dtype;
  memcpy(o->stride, q->out.stride, sizeof o->stride);
}

static weir_status enqueue_reduction(const reduction *r, weir_reduce *q, weir_tensor *out,
                                     weir_tensor *other)
{
  compute_target t;
  q->op = r->op;
  q->p = r->p;
  q->in.data = r->a->data;
  q->in.dtype = r->a->dtype;
  q->out.data = out->data;
  q->out.dtype = out->dtype;
  fill_reduce(q, r, out);
  fill_other(q, other);
  if (!q->outputs) return WEIR_OK;
  TRY(compute_target_of(&t, device_of_tensor(out)));
  if (!t.compute->reduce) return compute_target_lacks(&t, r->name);
  return compute_target_done(&t, t.compute->reduce(t.self, t.stream, q), r->name);
}

static __attribute__((cold)) weir_status record_reduction(weir_tensor **out, weir_tensor **other,
                                                          const reduction *r)
{
  record done = {.kind = RECORD_REDUCE,
                 .op = r->op,
                 .inputs = 1,
                 .in = &r->a,
                 .out = {*out, other ? *other : NULL},
                 .n = {r->mask, r->keepdim},
                 .p = {r->p}};
  weir_status st = record_made(out, &done, WEIR_OK);
  if (st && other) weir_tensor_drop(other);
  return st;
}

weir_status reduction_run(weir_tensor **out, weir_tensor **other, const reduction *r)
{
  weir_reduce q;
  weir_dtype result = WEIR_DTYPE_NONE;
  weir_device device = device_of_tensor(r->a);
  weir_shape shape = result_shape(r);
  weir_status st = dtypes(r, &q.compute, &result);
  if (!st) st = tensor_new(out, result, device, false, shape);
  if (!st && other)
    st = tensor_new(other, gives_mean(r->op) ? result : WEIR_INT64, device, false, shape);
  if (!st) st = enqueue_reduction(r, &q, *out, other ? *other : NULL);
  if (!st) return recorded(r->a) ? record_reduction(out, other, r) : st;
  weir_tensor_drop(out);
  if (other) weir_tensor_drop(other);
  return st;
}

/* ---- the functions --------------------------------------------------------------------------- */

static weir_status reduce_over(weir_reduce_op op, weir_tensor **out, const weir_tensor *a,
                               const int *dims, int count, bool keepdim)
{
  reduction r = {op, rules[op].name, a, 0, keepdim, !count, dims, count, 0};
  if (count < 0) return fail_invalid("%s: %d dimensions are asked for", r.name, count);
  weir_status st = check_dtype(&r);
  if (!st) st = reduction_mask(&r.mask, a, dims, count);
  return st ? st : reduction_run(out, NULL, &r);
}

/* sum and prod have a row of autocast. */
static weir_status reduce_cast(weir_reduce_op op, weir_tensor **out, const weir_tensor *a,
                               const int *dims, int count, bool keepdim)
{
  WEIR_OP_LEAF;
  if (op == WEIR_REDUCE_SUM) {
    WEIR_CASTS(SUM, a);
    return reduce_over(op, out, a, dims, count, keepdim);
  }
  WEIR_CASTS(PROD, a);
  return reduce_over(op, out, a, dims, count, keepdim);
}

static inline weir_status reduce_named(weir_reduce_op op, weir_tensor **out, const weir_tensor *a,
                                       const int *dims, int count, bool keepdim)
{
  bool cast =
      __builtin_expect(thread_autocast.on, 0) && (op == WEIR_REDUCE_SUM || op == WEIR_REDUCE_PROD);
  return cast ? reduce_cast(op, out, a, dims, count, keepdim)
              : reduce_over(op, out, a, dims, count, keepdim);
}

#define REDUCE(name, op)                                                                           \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a)                                 \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return reduce_named(WEIR_REDUCE_##op, out, a, NULL, 0, false);                                 \
  }                                                                                                \
  weir_status weir_##name##_dim(weir_tensor **out, const weir_tensor *a, int dim, bool keepdim)    \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return reduce_named(WEIR_REDUCE_##op, out, a, &dim, 1, keepdim);                               \
  }                                                                                                \
  weir_status weir_##name##_dims(weir_tensor **out, const weir_tensor *a, const int *dims,         \
                                 int count, bool keepdim)                                          \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    if (count > 0) WEIR_REQUIRE(dims);                                                             \
    return reduce_named(WEIR_REDUCE_##op, out, a, dims, count, keepdim);                           \
  }
WEIR_REDUCE_MAP(REDUCE)

/* max() and min() of all: amax and amin under another name. */
static weir_status extreme(weir_tensor **out, const weir_tensor *a, weir_reduce_op op,
                           const char *name)
{
  reduction r = {op, name, a, 0, false, true, NULL, 0, 0};
  r.mask = (1u << a->dims) - 1;
  if (a->dtype == WEIR_COMPLEX64 && a->numel)
    return not_implemented(op == WEIR_REDUCE_MAX ? "max_all" : "min_all", device_of_tensor(a),
                           WEIR_COMPLEX64);
  return reduction_run(out, NULL, &r);
}

static weir_status with_index(weir_reduce_op op, weir_tensor **values, weir_tensor **indices,
                              const weir_tensor *a, int dim, bool keepdim)
{
  reduction r = {op, rules[op].name, a, 0, keepdim, false, &dim, 1, 0};
  weir_status st = reduction_mask(&r.mask, a, &dim, 1);
  return st ? st : reduction_run(values, indices, &r);
}

#define EXTREME(name, op)                                                                          \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a)                                 \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    return extreme(out, a, WEIR_REDUCE_##op, #name);                                               \
  }                                                                                                \
  weir_status weir_arg##name(weir_tensor **out, const weir_tensor *a)                              \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return reduce_over(WEIR_REDUCE_ARG##op, out, a, NULL, 0, false);                               \
  }                                                                                                \
  weir_status weir_arg##name##_dim(weir_tensor **out, const weir_tensor *a, int dim, bool keepdim) \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return reduce_over(WEIR_REDUCE_ARG##op, out, a, &dim, 1, keepdim);                             \
  }                                                                                                \
  weir_status weir_##name##_dim(weir_tensor **values, weir_tensor **indices, const weir_tensor *a, \
                                int dim, bool keepdim)                                             \
  {                                                                                                \
    WEIR_REQUIRE_OUT(values);                                                                      \
    WEIR_REQUIRE_OUT(indices, a);                                                                  \
    return with_index(WEIR_REDUCE_##op##_INDEX, values, indices, a, dim, keepdim);                 \
  }
EXTREME(max, MAX)
EXTREME(min, MIN)

/* ---- softmax --------------------------------------------------------------------------------- */

/* a - the largest of each row; its exponentials' sums. float16 and bfloat16 in float32. */
static weir_status shifted(weir_tensor **out, weir_tensor **exps, weir_tensor **sums,
                           const weir_tensor *a, int dim)
{
  CALC(c);
  weir_tensor *largest = c_amax_dim(c, a, dim, true);
  c_do(c, weir_sub(out, a, largest));
  c_do(c, weir_exp(exps, *out));
  return c->st ? c->st : weir_sum_dim(sums, *exps, dim, true);
}

/* Of a device that has no request for it: the operations it is made of. */
static weir_status composed_softmax(weir_tensor **out, const weir_tensor *row_major, int dim,
                                    bool logarithm)
{
  CALC(c);
  WEIR_TENSOR wide = NULL, x = NULL, exps = NULL, sums = NULL;
  weir_dtype d = row_major->dtype;
  bool narrow = d == WEIR_FLOAT16 || d == WEIR_BFLOAT16;
  c->st = narrow ? weir_to_dtype(&wide, row_major, WEIR_FLOAT32) : WEIR_OK;
  c_do(c, shifted(&x, &exps, &sums, narrow ? wide : row_major, dim));
  if (logarithm) c_do(c, weir_log_(sums));
  weir_tensor *result = logarithm ? c_sub(c, x, sums) : c_div(c, exps, sums);
  if (narrow) c_do(c, weir_to_dtype(out, result, d));
  if (!c->st && !narrow) *out = weir_tensor_retain(result);
  return c->st;
}

/* The request over dimension `at` of `in`, contiguous; grad NULL: forward. */
static weir_status request_softmax(const compute_target *t, weir_tensor *out, const weir_tensor *in,
                                   const weir_tensor *grad, int at, bool logarithm)
{
  weir_softmax_request s = {.dtype = in->dtype,
                            .in = in->data,
                            .grad = grad ? grad->data : NULL,
                            .out = out->data,
                            .outer = 1,
                            .each = in->dims ? in->size[at] : 1,
                            .inner = 1,
                            .logarithm = logarithm};
  s.outer *= sizes_product(in->size, 0, at);
  s.inner *= sizes_product(in->size, at + 1, in->dims);
  return compute_target_done(t, t->compute->softmax(t->self, t->stream, &s),
                             logarithm ? "log_softmax" : "softmax");
}

static weir_status softmax(weir_tensor **out, const weir_tensor *a, int at, bool logarithm)
{
  CALC(c);
  compute_target t;
  c->st = compute_target_of(&t, device_of_tensor(a));
  weir_tensor *row_major = c_contiguous(c, a);
  if (c->st) return c->st;
  if (!t.compute->softmax) return composed_softmax(out, row_major, at, logarithm);
  c->st = tensor_new_beside(out, row_major, shape_of_tensor(a));
  c_do(c, request_softmax(&t, *out, row_major, NULL, at, logarithm));
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* Of a device that has no request for it, in float32 or float64: what the operations give. */
static weir_status composed_back(weir_tensor **out, const weir_tensor *grad,
                                 const weir_tensor *result, int dim, bool logarithm)
{
  CALC(c);
  WEIR_TENSOR product = NULL, part = NULL;
  c->st = logarithm ? weir_exp(&part, result) : weir_mul(&product, grad, result);
  weir_tensor *sums = c_call(c, weir_sum_dim, logarithm ? grad : product, dim, true);
  if (logarithm) c_do(c, weir_mul_(part, sums));
  if (!c->st && logarithm) return weir_sub(out, grad, part);
  c_do(c, weir_sub(&part, grad, sums));
  return c->st ? c->st : weir_mul(out, part, result);
}

static weir_status composed_backward(weir_tensor **out, const weir_tensor *grad,
                                     const weir_tensor *result, int dim, bool logarithm)
{
  CALC(c);
  weir_dtype d = result->dtype;
  if (d != WEIR_FLOAT16 && d != WEIR_BFLOAT16)
    return composed_back(out, grad, result, dim, logarithm);
  weir_tensor *wide_grad = c_to_dtype(c, grad, WEIR_FLOAT32);
  weir_tensor *wide_result = c_to_dtype(c, result, WEIR_FLOAT32);
  weir_tensor *back = c_call(c, composed_back, wide_grad, wide_result, dim, logarithm);
  return c->st ? c->st : weir_to_dtype(out, back, d);
}

weir_status softmax_backward(weir_tensor **out, const weir_tensor *grad, const weir_tensor *result,
                             int dim, bool logarithm)
{
  CALC(c);
  compute_target t;
  int at;
  c->st = dim_resolve(&at, dim, result->dims);
  c_do(c, compute_target_of(&t, device_of_tensor(result)));
  if (c->st) return c->st;
  weir_tensor *g = c_contiguous(c, grad);
  weir_tensor *y = c_contiguous(c, result);
  if (c->st) return c->st;
  if (y->numel && !t.compute->softmax) return composed_backward(out, g, y, at, logarithm);
  c->st = tensor_new_beside(out, y, shape_of_tensor(y));
  if (!c->st && y->numel) c->st = request_softmax(&t, *out, y, g, at, logarithm);
  if (c->st) weir_tensor_drop(out);
  return c->st;
}

/* torch's names, of the last dimension second. */
static const char *const softmax_kernels[2][2] = {
    {"softmax_kernel_impl", "softmax_lastdim_kernel_impl"},
    {"log_softmax_kernel_impl", "log_softmax_lastdim_kernel_impl"}};

static weir_status check_softmax(weir_tensor **out, const weir_tensor *a, int dim, bool logarithm)
{
  int at;
  TRY(dim_resolve(&at, dim, a->dims));
  if (a->numel && !dtype_is_floating(a->dtype))
    return not_implemented(softmax_kernels[logarithm][at >= a->dims - 1], device_of_tensor(a),
                           a->dtype);
  bool records = recorded(a);
  WEIR_UNRECORDED;
  weir_status st =
      a->numel ? softmax(out, a, at, logarithm) : tensor_new_beside(out, a, shape_of_tensor(a));
  if (st || !records) return st;
  return record_of(out, a, logarithm ? RECORD_LOG_SOFTMAX : RECORD_SOFTMAX, at, 0, 0, 0);
}

weir_status weir_softmax(weir_tensor **out, const weir_tensor *a, int dim)
{
  WEIR_OP(out, a);
  WEIR_CASTS(SOFTMAX, a);
  return check_softmax(out, a, dim, false);
}

weir_status weir_log_softmax(weir_tensor **out, const weir_tensor *a, int dim)
{
  WEIR_OP(out, a);
  WEIR_CASTS(SOFTMAX, a);
  return check_softmax(out, a, dim, true);
}
