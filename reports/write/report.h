/* report.h: a trace in, a report out. */
#ifndef WEIR_REPORTS_REPORT_H
#define WEIR_REPORTS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"
#include "reports/tables/settings.h"

/* Writes the summary of `trace` (a trace, or a spool, which is imported to a temporary one first)
 * to `out`. Errors: ENOENT, EIO, ECORRUPT ("... is neither a trace nor a spool"), EVERSION. */
weir_status report_summary(FILE *out, const char *trace, const report_settings *options);

/* The same of what the caches of a rerouted run did. */
weir_status report_cache(FILE *out, const char *trace, const report_settings *options);

/* The findings alone: text, or JSON as it was ("weir-findings/1", SCHEMA.md). Errors: as above,
 * and those of wr_findings_load(). */
weir_status report_findings(FILE *out, const char *trace, const report_settings *options);

/* Writes the report of that name (reports/tables/tables.h) . Errors: as report_summary(); EINVAL
 * (a filter or table that the trace has not). */
weir_status report_tables(FILE *out, const char *name, const char *trace,
                          const report_settings *options);

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
