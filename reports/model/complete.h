/* complete.h: whether a trace has all calls of its programs. */
#ifndef WEIR_REPORTS_COMPLETE_H
#define WEIR_REPORTS_COMPLETE_H

#include <sqlite3.h>
#include "reports/import/schema.h"

/* Each process (column 0: its row) of which calls may be missing: what its memory was used for, and
 * what its waits waited for, is not known. */
weir_status wr_incomplete_processes(const wr_db *db, weir_status (*row)(void *, sqlite3_stmt *),
                                    void *context);

/* *out: of some process calls were left out on purpose (SCHEMA.md, `recording`). */
weir_status wr_trace_is_partial(const wr_db *db, bool *out);

#endif
