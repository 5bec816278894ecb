/* report.h: a trace in, a report out. */
#ifndef WEIR_REPORTS_REPORT_H
#define WEIR_REPORTS_REPORT_H

#include <stdio.h>
#include "core/base/status.h"

typedef enum weir_report_format { WEIR_REPORT_TEXT, WEIR_REPORT_JSON } weir_report_format;

typedef struct weir_report_options {
  weir_report_format format;
  int color; /* 1: ANSI colours in text */
  int width; /* columns of text, 0: 100 */
  int top;   /* call sites a list, 0: 5 */
} weir_report_options;

/* Writes the summary of `trace` (a trace, or a spool, which is imported to a temporary one first)
 * to `out`. Errors: ENOENT, EIO, ECORRUPT ("... is neither a trace nor a spool"), EVERSION. */
weir_status weir_report_summary(FILE *out, const char *trace, const weir_report_options *options);

#endif
