/* diff.h: two traces side by side, A before and B after.
 *
 * What is compared has a name: a device its number, a range its domain and text, a site its
 * function and file; lines and addresses may differ. Sites are paired by function and whole path
 * first; then, of those that are left, by function and the file's name, for a checkout
 * elsewhere. */
#ifndef WEIR_REPORTS_DIFF_H
#define WEIR_REPORTS_DIFF_H

#include "reports/diff/figures.h"
#include "reports/diff/judge.h"

typedef struct wr_pair { /* borrowed; one of them may be NULL */
  const wr_subject *a, *b;
} wr_pair;

typedef enum wr_fate {
  WR_GONE,    /* in A, not in B */
  WR_NEW,     /* in B, not in A */
  WR_STAYS,   /* in both */
  WR_UNJUDGED /* in one; of the other the rule could say nothing */
} wr_fate;

typedef struct wr_waste_pair { /* borrowed; one of them may be NULL */
  const wr_wasted *a, *b;
  wr_fate fate;
} wr_waste_pair;

typedef struct wr_diff {
  wr_figures a, b;
  wr_pair *pair; /* owned; the run first, then devices, sites, ranges */
  size_t count;
  wr_waste_pair *waste; /* owned; gone ones first, then new ones, then those that stay */
  size_t waste_count;
  wr_verdicts verdicts; /* of B, by A */
} wr_diff;

/* `conditions` must outlive the diff. Errors: those of wr_figures_load(), of either trace. */
weir_status wr_diff_load(wr_diff *d, const char *a, const char *b,
                         const wr_figures_settings *settings, const wr_conditions *conditions);
void wr_diff_free(wr_diff *d);

/* The value of a metric on one side of a pair, 0 where there is no such side. */
uint64_t wr_subject_value(const wr_subject *x, wr_metric m);

const char *wr_fate_name(wr_fate fate);

#endif
