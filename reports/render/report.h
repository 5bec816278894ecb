/* report.h: a trace in, a report out. */
#ifndef WEIR_REPORTS_REPORT_H
#define WEIR_REPORTS_REPORT_H

#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"

typedef enum weir_report_format { WEIR_REPORT_TEXT, WEIR_REPORT_JSON } weir_report_format;

typedef struct weir_report_options {
  weir_report_format format;
  int color;           /* 1: ANSI colours in text */
  int width;           /* columns of text, at least 40; 0: as many as it takes, nothing is cut */
  int top;             /* call sites a list, 0: 5 in text, 20 in JSON */
  int depth;           /* levels of callers below a call site in text, 0: 2; -1: none */
  const char *symbols; /* absolute; folder in which symbols are looked for first, or NULL */
} weir_report_options;

/* Writes the summary of `trace` (a trace, or a spool, which is imported to a temporary one first)
 * to `out`. Errors: ENOENT, EIO, ECORRUPT ("... is neither a trace nor a spool"), EVERSION. */
weir_status weir_report_summary(FILE *out, const char *trace, const weir_report_options *options);

/* The same of what the caches of a rerouted run did. */
weir_status weir_report_cache(FILE *out, const char *trace, const weir_report_options *options);

/* What two runs of a program are compared by. */
typedef struct weir_figures {
  uint64_t duration_ns;
  uint64_t waits, wait_ns; /* explicit and implicit ones */
  uint64_t peak_bytes;     /* most device memory held at one moment: live and cached */
  uint64_t hits, misses;   /* of the caches */
  uint64_t events, failed_calls, dropped;
} weir_figures;

/* Errors: as weir_report_summary(). */
weir_status weir_report_figures(weir_figures *out, const char *trace);

#endif
