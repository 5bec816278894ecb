/* rules.c: which rule an operation has: the table that is made of rules.def. */
#include "core/grad/tape.h"

enum {
  ROW_OP = RECORD_KINDS,
  ROW_REDUCE = ROW_OP + WEIR_OP_COUNT,
  ROWS = ROW_REDUCE + WEIR_REDUCE_COUNT
};
#define ROW_OF_OP(row)     ROW_OP + WEIR_OP_##row
#define ROW_OF_REDUCE(row) ROW_REDUCE + WEIR_REDUCE_##row
#define ROW_OF_KIND(row)   RECORD_##row

enum complex_derivative { COMPLEX_NO, COMPLEX_YES, COMPLEX_ALPHA, COMPLEX_POWER };

#define A  KEEP_A
#define B  KEEP_B
#define C  KEEP_C
#define D  KEEP_D
#define R  KEEP_OUT
#define R2 KEEP_OTHER
#define R3 KEEP_THIRD

static const grad_rule rules[ROWS] = {
#define RULE(family, row, name, function, complex, a, b, c)                                        \
  [ROW_OF_##family(row)] = {name, function, {a, b, c}, COMPLEX_##complex},
#define AGAIN                   RULE
#define NONE(family, row, name) [ROW_OF_##family(row)] = {name, NULL, {0}, COMPLEX_YES},
#include "core/grad/rules.def"
#undef RULE
#undef AGAIN
#undef NONE
};

/* Sums and means need no elements. */
static const grad_rule scatter_sum = {
    "ScatterReduceBackward0", scatter_reduce_back, {C, C}, COMPLEX_NO};

const grad_rule *rule_of(const record *r)
{
  int row = r->kind == RECORD_ELEMENTWISE ? ROW_OP + r->op
            : r->kind == RECORD_REDUCE    ? ROW_REDUCE + r->op
                                          : (int)r->kind;
  if (r->kind == RECORD_SCATTER_REDUCE &&
      (r->n[1] == WEIR_SCATTER_SUM || r->n[1] == WEIR_SCATTER_MEAN))
    return &scatter_sum;
  return rules[row].name ? &rules[row] : NULL;
}

bool rule_lacks_complex(const grad_rule *rule, const record *r)
{
  bool any = is_complex(r->out[0]);
  for (int i = 0; i < r->inputs; i++)
    any |= is_complex(r->in[i]);
  if (!any) return false;
  switch ((enum complex_derivative)rule->complex) {
  case COMPLEX_YES:
    return false;
  case COMPLEX_ALPHA:
    return r->alpha.dtype == WEIR_COMPLEX64;
  case COMPLEX_POWER:
    return r->in[1] || r->number[1].dtype == WEIR_COMPLEX64;
  default:
    return true;
  }
}
