/* report.h: a trace in, a report in tables out. */
#ifndef WEIR_REPORTS_WRITE_REPORT_H
#define WEIR_REPORTS_WRITE_REPORT_H

#include <stdio.h>
#include "core/base/status.h"
#include "reports/tables/settings.h"

/* Writes the report of that name (reports/tables/tables.h) on `trace`, a trace, or a spool, which is imported to
 * a temporary one first. Errors: ENOENT, EIO, ECORRUPT ("... is neither a trace nor a spool"), EVERSION; EINVAL
 * (a filter or table that the trace has not). */
weir_status report_tables(FILE *out, const char *name, const char *trace,
                          const report_settings *options);

#endif
