/* elementwise.c: operations that calculate each element by itself.
 *
 * All forms of all operations are one request, elementwise_call, and one way through it: device,
 * dtype, shape, result, loop. What an operation accepts and gives is a row of `rules`. Operands
 * that need none of this (dense, of one dtype, shape and device: by far most) take a short way.
 *
 * Words. common dtype: as in ops.h. join: a tensor without dimensions on the cpu becomes a number
 * among CUDA operands. */
#include <string.h>
#include "core/ops/ops.h"

#define NO_NULL NULL
#define NO_NEGATES                                                                                 \
  "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "  \
  "mask, use the `~` or `logical_not()` operator instead."
#define NO_FLOOR "floor is not supported for complex inputs"
#define NO_CEIL  "ceil is not supported for complex inputs"
#define NO_TRUNC "trunc is not supported for complex inputs"
#define NO_SIGN                                                                                    \
  "Unlike NumPy, weir.sign is not intended to support complex numbers. Please use weir.sgn "       \
  "instead."
#define NO_SIGNBIT   "signbit is not implemented for complex tensors."
#define NO_FMAX      "fmax not implemented for complex tensors."
#define NO_FMIN      "fmin not implemented for complex tensors."
#define NO_HEAVISIDE "heaviside is not yet implemented for complex tensors."
#define NO_CLAMP     "clamp is not supported for complex types"
#define NO_MAXIMUM   "maximum not implemented for complex tensors."
#define NO_MINIMUM   "minimum not implemented for complex tensors."

static const struct rule {
  uint16_t dtypes;     /* common dtypes it is there for, before integers become floating point */
  bool truth;          /* gives bool */
  bool floating;       /* bool and integers become the default dtype */
  const char *kernel;  /* "abs_%s": torch's name of what is not there for other dtypes */
  const char *message; /* NULL, or the whole sentence in its place */
} rules[WEIR_OP_COUNT] = {
#define ROW(name, text, inputs, gives, takes, computes, keeps, host, device, absent, refusal)      \
  {WEIR_DTYPES_##takes, WEIR_GIVES_##gives == WEIR_GIVES_BOOL,                                     \
   WEIR_GIVES_##gives == WEIR_GIVES_FLOATING, absent, NO_##refusal},
    WEIR_OPS(ROW)
#undef ROW
};

/* ---- dtypes ---------------------------------------------------------------------------------- */

static weir_dtype operand_dtype(const elementwise_call *e, int i)
{
  return e->numbers >> i & 1 ? e->number[i].dtype : e->t[i]->dtype;
}

/* torch's sub_check(). */
static weir_status check_sub(const elementwise_call *e)
{
  bool a = operand_dtype(e, 0) == WEIR_BOOL, b = operand_dtype(e, 1) == WEIR_BOOL;
  if (!a && !b) return WEIR_OK;
  if (a && b)
    return fail_unsupported("Subtraction, the `-` operator, with two bool tensors is not "
                            "supported. Use the `^` or `logical_xor()` operator instead.");
  return fail_unsupported(
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
      "invert a mask, use the `~` or `logical_not()` operator instead.");
}

/* torch's alpha_check(). */
static weir_status check_alpha(weir_dtype common, weir_dtype alpha)
{
  if (alpha == WEIR_BOOL && common != WEIR_BOOL)
    return fail_invalid("Boolean alpha only supported for Boolean results.");
  if (dtype_is_integral_or_bool(common) && !dtype_is_integral_or_bool(alpha))
    return fail_invalid(
        "For integral input tensors, argument alpha must not be a floating point number.");
  if (alpha == WEIR_COMPLEX64 && common != WEIR_COMPLEX64)
    return fail_invalid(
        "For non-complex input tensors, argument alpha must not be a complex number.");
  return WEIR_OK;
}

/* As in torch an exponent that is a number must be one of the dtype: of integers and halves. */
static weir_status check_pow(const elementwise_call *e, weir_dtype common)
{
  weir_scalar unused, exponent = e->number[1];
  bool whole = dtype_is_integral(common), half = common == WEIR_FLOAT16 || common == WEIR_BFLOAT16;
  if (!(e->numbers & 2) || !(whole || half)) return WEIR_OK;
  if (whole && exponent.dtype == WEIR_INT64 && exponent.i < 0)
    return fail_invalid("Integers to negative integer powers are not allowed.");
  return scalar_for(&unused, exponent, common);
}

static weir_status check_relu(weir_dtype common)
{
  if (common == WEIR_BOOL) return fail_unsupported("Boolean inputs not supported for relu");
  return common == WEIR_COMPLEX64 ? fail_unsupported("clamp is not supported for complex types")
                                  : WEIR_OK;
}

/* Before anything else. A sentence is of bool, or, where complex numbers are refused, of these. */
static weir_status check_operands(const elementwise_call *e)
{
  const struct rule *r = &rules[e->op];
  bool complex = r->dtypes >> WEIR_COMPLEX64 & 1;
  if (e->op == WEIR_OP_SUB) return check_sub(e);
  for (int i = 0; r->message && i < e->count; i++) {
    weir_dtype dtype = operand_dtype(e, i);
    if (!(r->dtypes >> dtype & 1) && (complex || dtype == WEIR_COMPLEX64))
      return fail_unsupported("%s", r->message);
  }
  return WEIR_OK;
}

/* As torch the number is one of the dtype, but for what integers cut off. */
static weir_status check_value(const elementwise_call *e, weir_dtype common)
{
  weir_scalar unused;
  bool half = common == WEIR_FLOAT16 || common == WEIR_BFLOAT16;
  if (!(rules[e->op].dtypes >> common & 1)) return WEIR_OK;
  return scalar_for(&unused, e->p[0], half ? WEIR_FLOAT32 : common);
}

/* After shapes, devices and the dtype of the result: what an operation refuses. */
static weir_status check_operation(const elementwise_call *e, weir_dtype common, weir_device device)
{
  const struct rule *r = &rules[e->op];
  weir_status st = WEIR_OK;
  if (e->op == WEIR_OP_POW) st = check_pow(e, common);
  if (e->op == WEIR_OP_ABS && e->self && common == WEIR_COMPLEX64)
    return fail_unsupported("In-place abs is not supported for complex tensors.");
  if (e->op == WEIR_OP_RELU) st = check_relu(common);
  if (e->op == WEIR_OP_ADDCMUL || e->op == WEIR_OP_ADDCDIV) st = check_value(e, common);
  if (!st && e->has_alpha) st = check_alpha(common, e->alpha.dtype);
  if (st || r->dtypes >> common & 1) return st;
  if (e->op == WEIR_OP_POW && e->numbers & 2 && common == WEIR_BOOL) return WEIR_OK;
  bool by_number = e->op == WEIR_OP_LERP && e->numbers;
  return not_implemented(by_number ? "lerp_kernel_scalar" : r->kernel, device, common);
}

static weir_status common_dtype(weir_dtype *out, const elementwise_call *e)
{
  categories c = {0};
  weir_status st = WEIR_OK;
  for (int i = e->op == WEIR_OP_WHERE; i < e->count && !st; i++)
    st = e->numbers >> i & 1 ? categories_number(&c, e->number[i]) : categories_tensor(&c, e->t[i]);
  return st ? st : categories_result(out, &c);
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool joins(const elementwise_call *e, const weir_tensor *t)
{
  return !t->dims && t != e->self && device_of_tensor(t).type == WEIR_DEVICE_CPU;
}

/* The first CUDA device there is, else the cpu; all operands must be on it or join. */
static weir_status common_device(weir_device *out, const elementwise_call *e)
{
  char one[WEIR_DEVICE_TEXT], two[WEIR_DEVICE_TEXT];
  *out = WEIR_CPU;
  for (int i = e->count - 1; i >= 0; i--)
    if (!(e->numbers >> i & 1) && device_of_tensor(e->t[i]).type != WEIR_DEVICE_CPU)
      *out = device_of_tensor(e->t[i]);
  for (int i = 0; i < e->count; i++)
    if (!(e->numbers >> i & 1) && !weir_device_equal(device_of_tensor(e->t[i]), *out) &&
        !joins(e, e->t[i]))
      return fail_invalid("Expected all tensors to be on the same device, but found at least two "
                          "devices, %s and %s!",
                          device_format(one, *out), device_format(two, device_of_tensor(e->t[i])));
  return WEIR_OK;
}

/* ---- the long way ---------------------------------------------------------------------------- */

static weir_status loop_shape(weir_loop *l, const elementwise_call *e)
{
  weir_shape shape = {0, {0}};
  weir_status st = WEIR_OK;
  for (int i = 0; i < e->count && !st; i++)
    if (!(e->numbers >> i & 1)) st = shape_broadcast(&shape, e->t[i]->size, e->t[i]->dims);
  l->dims = shape.count;
  memcpy(l->size, shape.size, sizeof l->size);
  return st;
}

static void number_operand(weir_operand *o, const weir_loop *l, weir_scalar number)
{
  o->data = NULL;
  o->dtype = number.dtype;
  o->number = number;
  for (int i = 0; i < l->dims; i++)
    o->stride[i] = 0;
}

static weir_status loop_input(weir_loop *l, const elementwise_call *e, int i, weir_device device)
{
  weir_scalar number = e->number[i];
  if (!(e->numbers >> i & 1)) {
    if (weir_device_equal(device_of_tensor(e->t[i]), device)) {
      l->in[i] = operand_of(e->t[i], l);
      return WEIR_OK;
    }
    TRY(scalar_of(&number, e->t[i]));
  }
  number_operand(&l->in[i], l, number);
  return WEIR_OK;
}

/* In place: what torch refuses, and copies of operands whose memory is written. */
static weir_status check_self(const elementwise_call *e, const weir_loop *l, weir_dtype result,
                              weir_tensor *copies[3])
{
  text_buffer want, have;
  weir_tensor *self = e->self;
  weir_status st = WEIR_OK;
  if (self->dims != l->dims || memcmp(self->size, l->size, (size_t)l->dims * sizeof *l->size) != 0)
    return fail_invalid("output with shape %s doesn't match the broadcast shape %s",
                        shape_format(&have, shape_of_tensor(self)),
                        shape_format(&want, weir_shape_of(l->dims, l->size)));
  if (!rules[e->op].truth && !dtype_can_cast(result, self->dtype))
    return fail_invalid("result type %s can't be cast to the desired output type %s",
                        dtype_title(result), dtype_title(self->dtype));
  for (int i = 1; i < e->count && !st; i++) {
    bool copy = false;
    if (e->numbers >> i & 1) continue;
    st = overlap_check(&copy, self, e->t[i]);
    if (!st && copy) st = loop_dense(&copies[i], e->t[i]);
  }
  bool unused;
  return st ? st : overlap_check(&unused, self, NULL);
}

static void loop_params(weir_loop *l, const elementwise_call *e)
{
  l->op = e->op;
  l->has_alpha = e->has_alpha;
  if (e->has_alpha) l->alpha = e->alpha;
  if (e->has_p) memcpy(l->p, e->p, sizeof l->p);
}

/* What integers cannot do by zero. */
static inline bool divides(weir_op op)
{
  return op == WEIR_OP_FLOOR_DIV || op == WEIR_OP_REMAINDER || op == WEIR_OP_FMOD ||
         op == WEIR_OP_TRUNC_DIV;
}

/* On the cpu a zero among integers to divide by shows on the way: nothing may be changed then. */
static bool may_fail(const elementwise_call *e, const weir_loop *l, weir_device device)
{
  return divides(e->op) && dtype_is_integral(l->compute) && device.type == WEIR_DEVICE_CPU;
}

static weir_status run_apart(const elementwise_call *e, weir_loop *l, weir_dtype result,
                             weir_device device)
{
  CALC(c);
  weir_tensor *apart = c_call(c, loop_out, l, result, device);
  c_do(c, loop_run(device, l));
  return c->st ? c->st : loop_copy(e->self, apart);
}

static bool equals_number(weir_scalar s, double n)
{
  if (s.dtype == WEIR_BOOL || dtype_is_integral(s.dtype)) return (double)s.i == n;
  return s.f == n && (s.dtype != WEIR_COMPLEX64 || s.imag == 0);
}

/* torch does not calculate where the exponent is a number that is 0 or 1: 0 to the power of 0 is 1,
 * and infinity to that of 1 itself. Of real numbers pow() agrees. */
static void plain_power(weir_loop *l, const elementwise_call *e)
{
  if (e->op != WEIR_OP_POW || !(e->numbers & 2) || l->compute != WEIR_COMPLEX64) return;
  if (equals_number(e->number[1], 0)) {
    number_operand(&l->in[0], l, weir_int(1));
    number_operand(&l->in[1], l, weir_int(0));
  } else if (equals_number(e->number[1], 1)) {
    l->op = WEIR_OP_SUB;
    number_operand(&l->in[1], l, weir_int(0));
  }
}

static weir_status run_inputs(weir_tensor **out, const elementwise_call *e, weir_loop *l,
                              weir_dtype result, weir_device device)
{
  weir_tensor *copies[3] = {NULL, NULL, NULL};
  weir_status st = e->self ? check_self(e, l, result, copies) : WEIR_OK;
  if (!st) st = check_operation(e, l->compute, device);
  if (rules[e->op].floating && dtype_is_integral_or_bool(l->compute)) l->compute = result;
  for (int i = 0; i < e->count && !st; i++)
    st = loop_input(l, e, i, device);
  for (int i = 0; i < 3; i++)
    if (copies[i]) l->in[i] = operand_of(copies[i], l);
  plain_power(l, e);
  if (!st && e->self) l->out = operand_of(e->self, l);
  if (!st && !e->self) st = loop_out(out, l, result, device);
  if (!st)
    st = e->self && may_fail(e, l, device) ? run_apart(e, l, result, device) : loop_run(device, l);
  if (st && !e->self) weir_tensor_drop(out);
  for (int i = 0; i < 3; i++)
    weir_tensor_release(copies[i]);
  return st;
}

static weir_dtype result_of(const elementwise_call *e, weir_dtype common)
{
  const struct rule *r = &rules[e->op];
  if (r->truth) return WEIR_BOOL;
  if (e->op == WEIR_OP_ABS && common == WEIR_COMPLEX64) return WEIR_FLOAT32;
  return r->floating && dtype_is_integral_or_bool(common) ? weir_get_default_dtype() : common;
}

static weir_status run_long(weir_tensor **out, const elementwise_call *e)
{
  weir_loop l;
  weir_device device;
  TRY(check_operands(e));
  TRY(loop_shape(&l, e));
  TRY(common_device(&device, e));
  TRY(common_dtype(&l.compute, e));
  loop_params(&l, e);
  return run_inputs(out, e, &l, result_of(e, l.compute), device);
}

/* ---- the short way --------------------------------------------------------------------------- */

/* Whether a number changes nothing about the dtype of a tensor. */
static inline bool plain_number(weir_dtype tensor, weir_dtype number)
{
  return dtype_is_floating(tensor) ? number != WEIR_COMPLEX64 && number != WEIR_DTYPE_NONE
                                   : dtype_is_integral(tensor) && number == WEIR_INT64;
}

/* Operand i is as operand 0: dense, of the same dtype, shape and device; and not memory that is
 * written otherwise than in place. */
static inline bool plain_operand(const elementwise_call *e, int i)
{
  const weir_tensor *a = e->t[0], *t = e->t[i];
  if (e->numbers >> i & 1) return plain_number(a->dtype, e->number[i].dtype);
  if (t == a) return true;
  if (!t || !t->dense || t->dtype != a->dtype || t->dims != a->dims) return false;
  for (int d = 0; d < a->dims; d++)
    if (t->size[d] != a->size[d]) return false;
  return weir_device_equal(device_of_tensor(a), device_of_tensor(t)) &&
         (!e->self || t->storage != a->storage);
}

static inline bool is_plain(const elementwise_call *e)
{
  const weir_tensor *a = e->t[0];
  if (e->numbers & 1 || !a || !a->dense || e->has_alpha) return false;
  for (int i = 1; i < e->count; i++)
    if (!plain_operand(e, i)) return false;
  weir_dtype dtype = a->dtype;
  if (rules[e->op].floating && !dtype_is_floating(dtype)) return false;
  if (e->self && dtype_is_integral(dtype) && divides(e->op)) return false;
  if (e->op == WEIR_OP_POW || e->op == WEIR_OP_WHERE || dtype == WEIR_COMPLEX64) return false;
  if (e->op == WEIR_OP_ADDCMUL || e->op == WEIR_OP_ADDCDIV) return false;
  if (e->op == WEIR_OP_SUB && e->numbers && e->number[1].dtype == WEIR_BOOL) return false;
  return rules[e->op].dtypes >> dtype & 1;
}

static inline void plain_fill(weir_operand *o, const weir_tensor *t)
{
  o->data = t->data;
  o->dtype = t->dtype;
  o->stride[0] = 1;
}

static weir_status run_unrecorded(weir_tensor **out, const elementwise_call *e)
{
  weir_loop l;
  weir_tensor *to = e->self;
  weir_status st;
  if (!e->self) *out = NULL;
  if (!is_plain(e)) return run_long(out, e);
  const weir_tensor *a = e->t[0];
  weir_device device = device_of_tensor(a);
  if (!to) {
    TRY(tensor_new_as(&to, rules[e->op].truth ? WEIR_BOOL : a->dtype, a));
  }
  loop_params(&l, e);
  l.compute = a->dtype;
  l.dims = 1;
  l.size[0] = a->numel;
  plain_fill(&l.out, to);
  for (int i = 0; i < e->count; i++)
    if (e->numbers >> i & 1)
      number_operand(&l.in[i], &l, e->number[i]);
    else
      plain_fill(&l.in[i], e->t[i]);
  st = loop_run(device, &l);
  if (st && !e->self) weir_tensor_release(to);
  if (!st && !e->self) *out = to;
  return st;
}

/* ---- recorded -------------------------------------------------------------------------------- */

static inline bool has_recorded(const elementwise_call *e)
{
  for (int i = 0; i < e->count; i++)
    if (!(e->numbers >> i & 1) && recorded(e->t[i])) return true;
  return false;
}

static __attribute__((cold)) weir_status run_recorded(weir_tensor **out, const elementwise_call *e)
{
  const weir_tensor *in[3] = {NULL};
  grad_node *node;
  record r = {.kind = RECORD_ELEMENTWISE, .op = e->op, .inputs = e->count, .in = in};
  for (int i = 0; i < e->count; i++)
    if (e->numbers >> i & 1)
      r.number[i] = e->number[i];
    else
      in[i] = e->t[i];
  for (int i = 0; e->has_p && e->count == 1 && i < 3; i++)
    r.number[i] = e->p[i];
  r.alpha = e->has_alpha ? e->alpha : weir_int(1);
  if (e->has_p && e->count == 3) r.alpha = e->p[0];
  if (!e->self) return record_made(out, &r, run_unrecorded(out, e));
  r.in_place = true;
  r.out[0] = e->self;
  TRY(tensor_recorder->before(&node, &r));
  weir_status st = run_unrecorded(out, e);
  if (!st) tensor_changes(e->self);
  tensor_recorder->after(node, e->self, !st);
  return st;
}

/* The row of an operation on tensors, AUTOCAST_ROWS: none. */
static enum autocast_row autocast_row_of(weir_op op)
{
  switch ((int)op) {
  case WEIR_OP_ACOS:
  case WEIR_OP_ASIN:
  case WEIR_OP_COSH:
  case WEIR_OP_ERFINV:
  case WEIR_OP_EXP:
  case WEIR_OP_EXPM1:
  case WEIR_OP_LOG:
  case WEIR_OP_LOG10:
  case WEIR_OP_LOG2:
  case WEIR_OP_LOG1P:
  case WEIR_OP_RECIPROCAL:
  case WEIR_OP_RSQRT:
  case WEIR_OP_SINH:
  case WEIR_OP_TAN:
  case WEIR_OP_POW:
  case WEIR_OP_SOFTPLUS:
    return AUTOCAST_FUNCTION;
  case WEIR_OP_ADDCDIV:
    return AUTOCAST_ADDCDIV;
  case WEIR_OP_ADDCMUL:
    return AUTOCAST_ADDCMUL;
  case WEIR_OP_ATAN2:
    return AUTOCAST_ATAN2;
  default:
    return AUTOCAST_ROWS;
  }
}

/* elementwise_run() while autocast is on; another function that calls this one has had its
 * casts. */
static __attribute__((cold)) weir_status run_autocast(weir_tensor **out, const elementwise_call *e)
{
  elementwise_call c = *e;
  autocast_held held __attribute__((cleanup(autocast_end))) = {0};
  enum autocast_row row = autocast_row_of(e->op);
  weir_status st = WEIR_OK;
  for (int i = 0; i < e->count; i++)
    if (e->numbers >> i & 1) c.t[i] = NULL;
  if (row != AUTOCAST_ROWS) st = autocast_operands(&held, row, c.t, e->count);
  if (st) return st;
  return has_recorded(&c) ? run_recorded(out, &c) : run_unrecorded(out, &c);
}

weir_status elementwise_run(weir_tensor **out, const elementwise_call *e)
{
  if (__builtin_expect(thread_autocast.on, 0) && !e->self && !op_called)
    return run_autocast(out, e);
  if (has_recorded(e)) return run_recorded(out, e);
  weir_status st = run_unrecorded(out, e);
  if (e->self && !st) tensor_changes(e->self);
  return st;
}

/* ---- the functions --------------------------------------------------------------------------- */

static inline weir_status unary(weir_op op, weir_tensor **out, weir_tensor *self,
                                const weir_tensor *a)
{
  elementwise_call e;
  e.op = op, e.count = 1, e.numbers = 0, e.has_alpha = e.has_p = false;
  e.self = self, e.t[0] = a;
  return elementwise_run(out, &e);
}

#define UNARY(name, op)                                                                            \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a)                                 \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return unary(WEIR_OP_##op, out, NULL, a);                                                      \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *a)                                                       \
  {                                                                                                \
    WEIR_REQUIRE(a);                                                                               \
    return unary(WEIR_OP_##op, NULL, a, a);                                                        \
  }
WEIR_UNARY_MAP(UNARY)

weir_status weir_isfinite(weir_tensor **out, const weir_tensor *a)
{
  WEIR_REQUIRE_OUT(out, a);
  return unary(WEIR_OP_ISFINITE, out, NULL, a);
}

static inline weir_status tensors(weir_op op, weir_tensor **out, weir_tensor *self,
                                  const weir_tensor *a, const weir_tensor *b)
{
  elementwise_call e;
  e.op = op, e.count = 2, e.numbers = 0, e.has_alpha = e.has_p = false;
  e.self = self, e.t[0] = a, e.t[1] = b;
  return elementwise_run(out, &e);
}

static inline weir_status with_number(weir_op op, weir_tensor **out, weir_tensor *self,
                                      const weir_tensor *a, weir_scalar b)
{
  elementwise_call e;
  e.op = op, e.count = 2, e.numbers = 2, e.has_alpha = e.has_p = false;
  e.self = self, e.t[0] = a, e.t[1] = NULL, e.number[1] = b;
  return elementwise_run(out, &e);
}

static inline weir_status to_number(weir_op op, weir_tensor **out, weir_scalar a,
                                    const weir_tensor *b)
{
  elementwise_call e;
  e.op = op, e.count = 2, e.numbers = 1, e.has_alpha = e.has_p = false;
  e.self = NULL, e.t[0] = NULL, e.t[1] = b, e.number[0] = a;
  return elementwise_run(out, &e);
}

#define BINARY(name, op)                                                                           \
  weir_status weir_##name(weir_tensor **out, const weir_tensor *a, const weir_tensor *b)           \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a, b);                                                                   \
    return tensors(WEIR_OP_##op, out, NULL, a, b);                                                 \
  }                                                                                                \
  weir_status weir_##name##_scalar(weir_tensor **out, const weir_tensor *a, weir_scalar b)         \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    return with_number(WEIR_OP_##op, out, NULL, a, b);                                             \
  }                                                                                                \
  weir_status weir_scalar_##name(weir_tensor **out, weir_scalar a, const weir_tensor *b)           \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, b);                                                                      \
    return to_number(WEIR_OP_##op, out, a, b);                                                     \
  }                                                                                                \
  weir_status weir_##name##_(weir_tensor *a, const weir_tensor *b)                                 \
  {                                                                                                \
    WEIR_REQUIRE(a, b);                                                                            \
    return tensors(WEIR_OP_##op, NULL, a, a, b);                                                   \
  }                                                                                                \
  weir_status weir_##name##_scalar_(weir_tensor *a, weir_scalar b)                                 \
  {                                                                                                \
    WEIR_REQUIRE(a);                                                                               \
    return with_number(WEIR_OP_##op, NULL, a, a, b);                                               \
  }
WEIR_BINARY_MAP(BINARY)

static weir_status scaled_operand(weir_op op, weir_tensor **out, weir_tensor *self,
                                  const weir_tensor *a, const weir_tensor *b, weir_scalar alpha)
{
  elementwise_call e;
  e.op = op, e.count = 2, e.numbers = 0, e.has_alpha = true, e.has_p = false;
  e.self = self, e.t[0] = a, e.t[1] = b, e.alpha = alpha;
  return elementwise_run(out, &e);
}

#define SCALED(name, op)                                                                           \
  weir_status weir_##name##_alpha(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,   \
                                  weir_scalar alpha)                                               \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out, a, b);                                                                   \
    return scaled_operand(WEIR_OP_##op, out, NULL, a, b, alpha);                                   \
  }                                                                                                \
  weir_status weir_##name##_alpha_(weir_tensor *a, const weir_tensor *b, weir_scalar alpha)        \
  {                                                                                                \
    WEIR_REQUIRE(a, b);                                                                            \
    return scaled_operand(WEIR_OP_##op, NULL, a, a, b, alpha);                                     \
  }
SCALED(add, ADD)
SCALED(sub, SUB)
