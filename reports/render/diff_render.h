/* diff_render.h: two traces side by side, and a trace beside a budget, in print. */
#ifndef WEIR_REPORTS_DIFF_RENDER_H
#define WEIR_REPORTS_DIFF_RENDER_H

#include "reports/diff/diff.h"
#include "reports/base/units.h"
#include "reports/write/grid.h"
#include "reports/write/sheet.h"

typedef enum wr_diff_format { WR_DIFF_TEXT, WR_DIFF_MARKDOWN, WR_DIFF_JSON } wr_diff_format;

typedef struct wr_diff_settings {
  wr_diff_format format;
  bool color; /* ANSI colours in text */
  int width;  /* columns of text; 0: as many as it takes */
  int top;    /* rows a list, 0: 5 */
} wr_diff_settings;

/* Errors: EIO, ENOMEM. */
weir_status wr_diff_render(FILE *out, const wr_diff *d, const wr_diff_settings *o);
weir_status wr_diff_render_json(FILE *out, const wr_diff *d); /* SCHEMA.md, "weir-diff/1" */

/* A trace, a budget and what came of it. A limit is kept where its condition is met. */
typedef struct wr_checked {
  const char *budget; /* borrowed; its path, fit to print */
  const wr_figures *figures;
  const wr_verdicts *verdicts;
} wr_checked;

/* Text or Markdown. */
weir_status wr_check_render(FILE *out, const wr_checked *c, const wr_diff_settings *o);
/* JUnit's XML: a testcase a limit. */
weir_status wr_check_render_junit(FILE *out, const wr_checked *c);

/* A value in the units of its metric: "12.0 MiB", "3", "1.50 ms". */
wr_word wr_in_unit(wr_metric m, uint64_t value);
/* What a value was compared with: "<= 12.0 GiB". */
wr_word wr_limit_words(const wr_verdict *v);

#endif
