/* settings.h: what is asked of a report: of which part of a run, in which rows, in which format. */
#ifndef WEIR_REPORTS_SETTINGS_H
#define WEIR_REPORTS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>
#include "reports/findings/findings.h"

typedef enum report_format {
  WEIR_REPORT_TEXT,
  WEIR_REPORT_JSON, /* "weir-report/2" */
  WEIR_REPORT_CSV,
  WEIR_REPORT_MARKDOWN,
  WEIR_REPORT_JSON_1 /* as before: "weir-report/1", "weir-findings/1", "weir-tables/1" */
} report_format;

/* What the main table of a report has a row of. */
typedef enum report_by {
  WEIR_BY_NONE, /* not said */
  WEIR_BY_SITE,
  WEIR_BY_STACK,
  WEIR_BY_MODULE,
  WEIR_BY_RANGE,
  WEIR_BY_STREAM,
  WEIR_BY_DEVICE,
  WEIR_BY_THREAD,
  WEIR_BY_PROCESS,
  WEIR_BY_RANK,
  WEIR_BY_FUNCTION
} report_by;

typedef struct report_time { /* since the run began */
  bool set, percent;         /* `at` is a percentage of the run; else ns */
  double at;
} report_time;

typedef struct report_settings {
  report_format format;
  int color;            /* 1: ANSI colours in text */
  int width;            /* columns of text, at least 40; 0: as many as it takes, nothing is cut */
  int top;              /* call sites a list, 0: 5 in text, 20 in JSON */
  int depth;            /* levels of callers below a call site in text, 0: 2; -1: none */
  const char *symbols;  /* absolute; folder in which symbols are looked for first, or NULL */
  bool innermost_sites; /* a place is the innermost frame that is not CUDA's, a library's too */
  bool anew;            /* of the events, whatever of them is kept (reports/whole/whole.h) */
  wr_findings_settings findings; /* of the findings, in text and by themselves */
  bool possible;                 /* in text those that are possible in full, too */
  /* of the reports in tables (reports/tables/tables.h) */
  report_by by;
  const char *table;    /* print this one alone, or NULL */
  report_time from, to; /* what began in [from, to) */
  long process;         /* what this pid did; 0: any */
  const char *range;    /* what was done within NVTX ranges of this text, or NULL: anything */
} report_settings;

#endif
