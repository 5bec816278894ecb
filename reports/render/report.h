/* report.h: a trace in, a report out. */
#ifndef WEIR_REPORTS_REPORT_H
#define WEIR_REPORTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"
#include "reports/findings/findings.h"

typedef enum report_format {
  WEIR_REPORT_TEXT,
  WEIR_REPORT_JSON,
  WEIR_REPORT_CSV,
  WEIR_REPORT_MARKDOWN
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
  int color;           /* 1: ANSI colours in text */
  int width;           /* columns of text, at least 40; 0: as many as it takes, nothing is cut */
  int top;             /* call sites a list, 0: 5 in text, 20 in JSON */
  int depth;           /* levels of callers below a call site in text, 0: 2; -1: none */
  const char *symbols; /* absolute; folder in which symbols are looked for first, or NULL */
  wr_findings_settings findings; /* of the findings, in text and by themselves */
  bool possible;                 /* in text those that are possible in full, too */
  /* of the reports in tables (reports/tables/tables.h) */
  report_by by;
  const char *table;    /* print this one alone, or NULL */
  report_time from, to; /* what began in [from, to) */
  long process;         /* what this pid did; 0: any */
  const char *range;    /* what was done within NVTX ranges of this text, or NULL: anything */
} report_settings;

/* Writes the summary of `trace` (a trace, or a spool, which is imported to a temporary one first)
 * to `out`. Errors: ENOENT, EIO, ECORRUPT ("... is neither a trace nor a spool"), EVERSION. */
weir_status report_summary(FILE *out, const char *trace, const report_settings *options);

/* The same of what the caches of a rerouted run did. */
weir_status report_cache(FILE *out, const char *trace, const report_settings *options);

/* The findings alone: text, or JSON ("weir-findings/1", SCHEMA.md). Errors: as above, and those of
 * wr_findings_load(). */
weir_status report_findings(FILE *out, const char *trace, const report_settings *options);

/* What two runs of a program are compared by. */
typedef struct run_figures {
  uint64_t duration_ns;
  uint64_t waits, wait_ns; /* explicit and implicit ones */
  uint64_t peak_bytes;     /* most device memory held at one moment: live and cached */
  uint64_t hits, misses;   /* of the caches */
  uint64_t rerouted; /* calls that Weir did otherwise: served, kept, staged; and peers, pools */
  uint64_t events, failed_calls, dropped;
} run_figures;

/* Errors: as report_summary(). */
weir_status report_figures(run_figures *out, const char *trace);

#endif
