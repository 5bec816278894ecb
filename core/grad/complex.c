/* complex.c: derivatives of complex numbers: which operations have them, and what is the same for all.
 *
 * The gradient of a complex number is that of its real part plus i times that of its imaginary part,
 * as torch's (conjugate Wirtinger): of an analytic function the conjugate of its derivative times the
 * gradient of the result. So the rules of the others files conjugate what they multiply by; a real
 * operand beside complex ones takes the real part, when its gradient is made its dtype. */
#include "core/grad/tape.h"

#define G (k->g[0])

static bool is_complex(const weir_tensor *t)
{
  return t && t->dtype == WEIR_COMPLEX64;
}

const weir_tensor *c_conj(calc *c, const weir_tensor *t)
{
  if (c->st || !is_complex(t)) return t;
  return c_call(c, weir_conj, t);
}

static void as_real_back(rule_run *k)
{
  const weir_tensor *g = c_contiguous(k->c, G);
  give(k, 0, c_call(k->c, weir_view_as_complex, g));
}

static void as_complex_back(rule_run *k)
{
  const weir_tensor *g = c_contiguous(k->c, G);
  give(k, 0, c_call(k->c, weir_view_as_real, g));
}

static const grad_rule as_real = {"ViewAsRealBackward0", as_real_back, {0}};
static const grad_rule as_complex = {"ViewAsComplexBackward0", as_complex_back, {0}};

const grad_rule *complex_rule(const record *r)
{
  return r->kind == RECORD_VIEW_AS_REAL      ? &as_real
         : r->kind == RECORD_VIEW_AS_COMPLEX ? &as_complex
                                             : NULL;
}

/* ---- which have them ------------------------------------------------------------------------- */

bool record_is_complex(const record *r)
{
  bool any = is_complex(r->out[0]);
  for (int i = 0; i < r->inputs; i++)
    any |= is_complex(r->in[i]);
  return any;
}

static bool elementwise_of_complex(const record *r)
{
  switch (r->op) {
  case WEIR_OP_NEG:
  case WEIR_OP_ABS:
  case WEIR_OP_EXP:
  case WEIR_OP_LOG:
  case WEIR_OP_SQRT:
  case WEIR_OP_RSQRT:
  case WEIR_OP_SIN:
  case WEIR_OP_COS:
  case WEIR_OP_TANH:
  case WEIR_OP_SIGMOID:
  case WEIR_OP_RECIPROCAL:
  case WEIR_OP_MUL:
  case WEIR_OP_DIV:
  case WEIR_OP_WHERE:
    return true;
  case WEIR_OP_ADD:
  case WEIR_OP_SUB:
    return r->alpha.dtype != WEIR_COMPLEX64;
  case WEIR_OP_POW:
    return !r->in[1] && r->number[1].dtype != WEIR_COMPLEX64;
  default:
    return false;
  }
}

bool complex_has_rule(const record *r)
{
  if (r->kind == RECORD_ELEMENTWISE) return elementwise_of_complex(r);
  if (r->kind == RECORD_REDUCE) return r->op == WEIR_REDUCE_SUM || r->op == WEIR_REDUCE_MEAN;
  switch (r->kind) {
  case RECORD_MATMUL:
  case RECORD_CAT:
  case RECORD_STACK:
  case RECORD_FLIP:
  case RECORD_ROLL:
  case RECORD_REPEAT:
  case RECORD_TRIANGLE:
  case RECORD_DIAG_EMBED:
  case RECORD_PAD:
  case RECORD_INDEX_SELECT:
  case RECORD_GATHER:
  case RECORD_TAKE:
  case RECORD_MASKED_FILL:
  case RECORD_CUMSUM:
    return true;
  default:
    return r->kind <= RECORD_FILL || (r->kind >= RECORD_STRIDED && r->kind <= RECORD_DIAGONAL_BACK);
  }
}
