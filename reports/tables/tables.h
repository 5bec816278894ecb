/* tables.h: reports in tables: transfers, memory, waits and the others, each in text, JSON, CSV and
 * Markdown, by whatever is asked for, of the whole run or a part. */
#ifndef WEIR_REPORTS_TABLES_H
#define WEIR_REPORTS_TABLES_H

#include "reports/render/report.h"

/* Whether there is a report of that name; by which the next ones are called. */
bool report_tables_has(const char *name);
/* Whether its rows can be by this and that (--by). */
bool report_tables_by(const char *name);

/* "site", "stream", ...; false: there is no such grouping. */
bool report_by_read(const char *name, report_by *out);

/* Writes it. Errors: those of report_summary(); EINVAL (a filter or table that the trace has not). */
weir_status report_tables(FILE *out, const char *name, const char *trace,
                          const report_settings *options);

#endif
