/* report.h: two traces side by side, and a trace beside a budget, in print. */
#ifndef WEIR_REPORTS_DIFF_REPORT_H
#define WEIR_REPORTS_DIFF_REPORT_H

#include <stdio.h>
#include "reports/diff/diff.h"
#include "reports/tables/table.h"

typedef enum wr_diff_format {
  WR_DIFF_TEXT,
  WR_DIFF_MARKDOWN,
  WR_DIFF_JSON,  /* "weir-report/2" */
  WR_DIFF_JSON_1 /* "weir-diff/1"; a check has none */
} wr_diff_format;

typedef struct wr_diff_settings {
  wr_diff_format format;
  bool color; /* ANSI colours in text */
  int width;  /* columns of text; 0: as many as it takes */
  int top;    /* rows a list, 0: 5 */
} wr_diff_settings;

/* Errors: EIO, ENOMEM. */
weir_status wr_diff_render(FILE *out, const wr_diff *d, const wr_diff_settings *o);

/* A trace, a budget and what came of it. A limit is kept where its condition is met. */
typedef struct wr_checked {
  const char *budget; /* borrowed; its path, fit to print */
  const wr_figures *figures;
  const wr_verdicts *verdicts;
} wr_checked;

/* Text, Markdown or JSON. */
weir_status wr_check_render(FILE *out, const wr_checked *c, const wr_diff_settings *o);
/* JUnit's XML: a testcase a limit. */
weir_status wr_check_render_junit(FILE *out, const wr_checked *c);

/* Their tables, in `t`, which is all zero before (tables.c). `any_width`: the text has no limit,
 * and paths are whole. */
void wr_diff_tables(wr_tables *t, const wr_diff *d, int top, bool any_width);
void wr_check_tables(wr_tables *t, const wr_checked *c);
/* The same for programs (data.c). */
void wr_diff_data(wr_tables *t, const wr_diff *d);
void wr_check_data(wr_tables *t, const wr_checked *c);

#endif
