/* tables.h: reports in tables: transfers, memory, waits and the others, by whatever is asked for,
 * of the whole run or a part. reports/write writes them. */
#ifndef WEIR_REPORTS_TABLES_H
#define WEIR_REPORTS_TABLES_H

#include "reports/import/schema.h"
#include "reports/tables/table.h"

/* Whether there is a report of that name; by which the next ones are called. */
bool report_tables_has(const char *name);
/* Whether its rows can be by this and that (--by). */
bool report_tables_by(const char *name);

/* "site", "stream", ...; false: there is no such grouping. */
bool report_by_read(const char *name, report_by *out);

/* Makes it of an open trace; to be freed whatever comes of it. Errors: EINVAL (there is no such
 * report, or a filter that the trace has not), ENOMEM, those of reading. */
weir_status wr_tables_build(wr_tables *t, const char *name, const wr_db *db,
                            const report_settings *options);

#endif
