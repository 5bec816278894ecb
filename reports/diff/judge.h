/* judge.h: whether conditions hold of a trace. */
#ifndef WEIR_REPORTS_JUDGE_H
#define WEIR_REPORTS_JUDGE_H

#include "reports/diff/condition.h"
#include "reports/diff/figures.h"

typedef struct wr_verdict {
  const wr_condition *condition; /* borrowed */
  bool met;                      /* the comparison holds; false where it is not known */
  bool known;
  char *note;            /* owned: why it is not known, or what to know of it; or NULL */
  uint64_t value, other; /* of the trace; of the one it is relative to, else 0 */
  long double limit;     /* what the value was compared with */
} wr_verdict;

typedef struct wr_verdicts {
  wr_verdict *verdict; /* owned; one a condition, in their order */
  size_t count, met, unknown;
} wr_verdicts;

/* Judges the conditions of `f`. `other`: the trace that relative ones are relative to, or NULL. */
weir_status wr_judge(wr_verdicts *out, const wr_conditions *conditions, const wr_figures *f,
                     const wr_figures *other);
void wr_verdicts_free(wr_verdicts *v);

#endif
