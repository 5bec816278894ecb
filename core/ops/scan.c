/* scan.c: running reductions, and differences of neighbours, which undo a running sum. */
#include "core/ops/ops.h"

/* torch's names of the kernels that some dtypes have not. */
static const char *const scan_absent[WEIR_SCAN_COUNT] = {[WEIR_SCAN_CUMSUM] = "cumsum_out_%s",
                                                         [WEIR_SCAN_CUMPROD] = "cumprod_out_%s",
                                                         [WEIR_SCAN_LOGCUMSUMEXP] =
                                                             "logcumsumexp_out_%s",
                                                         [WEIR_SCAN_CUMMAX] = "cummax_%s",
                                                         [WEIR_SCAN_CUMMIN] = "cummin_%s"};

static const struct scan_rule {
  const char *name;  /* torch's */
  uint32_t computes; /* the set of dtypes */
} scan_rules[WEIR_SCAN_COUNT] = {
#define ROW(name, text, computes, ...) {text, computes},
    WEIR_SCAN_OPS(ROW)
#undef ROW
};

static const enum record_kind scan_kinds[WEIR_SCAN_COUNT] = {[WEIR_SCAN_CUMSUM] = RECORD_CUMSUM,
                                                             [WEIR_SCAN_CUMPROD] = RECORD_CUMPROD,
                                                             [WEIR_SCAN_LOGCUMSUMEXP] =
                                                                 RECORD_LOGCUMSUMEXP,
                                                             [WEIR_SCAN_CUMMAX] = RECORD_CUMMAX,
                                                             [WEIR_SCAN_CUMMIN] = RECORD_CUMMIN};

dim_lines lines_of(const weir_tensor *t, int dim)
{
  dim_lines l = {0, 0, 0};
  if (!t->numel) return l;
  l.inner = l.length = 1;
  if (t->dims) l.length = t->size[dim];
  if (t->dims && l.length > 1) l.inner = t->stride[dim];
  l.outer = t->numel / (l.length * l.inner);
  return l;
}

static weir_status scan_enqueue(weir_scan_op op, const weir_tensor *a, weir_tensor *out,
                                weir_tensor *index, int dim)
{
  compute_target t;
  dim_lines l = lines_of(a, dim);
  weir_scan s = {.op = op,
                 .dtype = a->dtype,
                 .in = a->data,
                 .out = out->data,
                 .index = index ? (void *)index->data : NULL,
                 .outer = l.outer,
                 .length = l.length,
                 .inner = l.inner};
  if (!out->numel) return WEIR_OK;
  TRY(compute_target_of(&t, device_of_tensor(out)));
  if (!t.compute->scan) return compute_target_lacks(&t, scan_rules[op].name);
  return compute_target_done(&t, t.compute->scan(t.self, t.stream, &s), scan_rules[op].name);
}

static weir_status scan_run(weir_tensor **out, weir_tensor **index, weir_scan_op op,
                            const weir_tensor *a, int dim)
{
  CALC(c);
  int at;
  weir_dtype d = a->dtype;
  bool widens = (op == WEIR_SCAN_CUMSUM || op == WEIR_SCAN_CUMPROD) && dtype_is_integral_or_bool(d);
  TRY(dim_resolve(&at, dim, a->dims));
  if (widens) d = WEIR_INT64;
  bool nothing = index && (!a->dims || !a->numel); /* there torch asks for no kernel */
  if (!nothing && !(scan_rules[op].computes >> d & 1))
    return not_implemented(scan_absent[op], device_of_tensor(a), d);
  weir_tensor *rows = c_contiguous(c, c_to_dtype(c, a, d));
  c_do(c, tensor_new_beside(out, rows, weir_tensor_shape(rows)));
  if (index)
    c_do(c, tensor_new(index, WEIR_INT64, device_of_tensor(a), false, weir_tensor_shape(rows)));
  if (!c->st && nothing) {
    c->st = weir_copy_(*out, rows, false);
    c_do(c, weir_zero_(*index));
  } else if (!c->st) {
    c->st = scan_enqueue(op, rows, *out, index ? *index : NULL, at);
  }
  c_do(c, record_choice(out, c->st, scan_kinds[op], a, NULL, index ? *index : NULL, at, 0));
  if (!c->st) return WEIR_OK;
  weir_tensor_drop(out);
  if (index) weir_tensor_drop(index);
  return c->st;
}

static weir_status scan_in_place(weir_tensor *a, weir_scan_op op, int dim)
{
  CALC(c);
  int at;
  c->st = dim_resolve(&at, dim, a->dims);
  if (!c->st && a->dtype == WEIR_BOOL && a->dims && a->numel)
    return not_implemented(scan_absent[op], device_of_tensor(a), WEIR_BOOL);
  weir_tensor *before =
      !c->st && recorded(a) ? c_clone(c, a) : NULL; /* a derivative may need what a was */
  weir_tensor *result = c_call(c, scan_run, NULL, op, before ? before : a, dim);
  return c->st ? c->st : weir_copy_(a, result, false);
}

#define SCAN_ONE(name, op)                                                                         \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, int dim)                        \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    return scan_run(out, NULL, WEIR_SCAN_##op, a, dim);                                            \
  }
/* The same under autocast. */
#define SCAN_CAST(name, op)                                                                        \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, int dim)                        \
  {                                                                                                \
    WEIR_OP(out, a);                                                                               \
    WEIR_CASTS(CUMULATIVE, a);                                                                     \
    return scan_run(out, NULL, WEIR_SCAN_##op, a, dim);                                            \
  }
#define SCAN_IN_PLACE(name, op)                                                                    \
  weir_status weir_##name##_(weir_tensor *a, int dim)                                              \
  {                                                                                                \
    WEIR_OP_ON(a);                                                                                 \
    return scan_in_place(a, WEIR_SCAN_##op, dim);                                                  \
  }
#define SCAN_BOTH(name, op)                                                                        \
  weir_status weir_##name(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,       \
                          int dim)                                                                 \
  {                                                                                                \
    WEIR_OP_BOTH(values, indices, a);                                                              \
    return scan_run(values, indices, WEIR_SCAN_##op, a, dim);                                      \
  }
SCAN_CAST(cumsum, CUMSUM)
SCAN_IN_PLACE(cumsum, CUMSUM)
SCAN_CAST(cumprod, CUMPROD)
SCAN_IN_PLACE(cumprod, CUMPROD)
SCAN_ONE(logcumsumexp, LOGCUMSUMEXP)
SCAN_BOTH(cummax, CUMMAX)
SCAN_BOTH(cummin, CUMMIN)

/* ---- differences ----------------------------------------------------------------------------- */

static weir_status one_difference(weir_tensor **out, const weir_tensor *a, int dim)
{
  CALC(c);
  int64_t n = a->size[dim];
  weir_tensor *after = c_narrow(c, a, dim, n > 0, n > 0 ? n - 1 : 0);
  weir_tensor *before = c_narrow(c, a, dim, 0, n > 0 ? n - 1 : 0);
  if (c->st) return c->st;
  return a->dtype == WEIR_BOOL ? weir_ne(out, after, before) : weir_sub(out, after, before);
}

weir_status weir_diff(weir_tensor **out, const weir_tensor *a, int64_t n, int dim)
{
  WEIR_OP(out, a);
  int at;
  WEIR_TENSOR now = NULL;
  if (!a->dims) return fail_invalid("diff expects input to be at least one-dimensional");
  if (n < 0) return fail_invalid("order must be non-negative but got %lld", (long long)n);
  if (!n) return weir_clone(out, a);
  weir_status st = dim_resolve(&at, dim, a->dims);
  if (st) return st;
  if (n > a->size[at]) n = a->size[at] ? a->size[at] : 1;
  now = weir_tensor_retain((weir_tensor *)a);
  for (int64_t i = 0; i < n; i++) {
    WEIR_TENSOR next = NULL;
    if ((st = one_difference(&next, now, at))) return st;
    weir_tensor *was = now;
    now = next;
    next = was;
  }
  *out = weir_tensor_retain(now);
  return WEIR_OK;
}
