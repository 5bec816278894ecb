/* wait_table.h: the rows of `wait_detail` (wait_rows.h) as a table that SQL finds by id: of a trace
 * that is not resolved they are made for the report, and written nowhere. */
#ifndef WEIR_REPORTS_WAIT_TABLE_H
#define WEIR_REPORTS_WAIT_TABLE_H

#include "reports/import/schema.h"
#include "reports/model/wait_rows.h"

/* Makes temp.wait_detail of rows that are in order, in place of the one that is there. The
 * connection owns them then, and frees them where this fails. Errors: ENOMEM, EIO. */
weir_status wr_wait_rows_table(wr_wait_rows *r, const wr_db *db);

/* The rows of the connection's temp.wait_detail, to be read without SQL, valid until it is made
 * again or the connection is closed; NULL: it has none. */
const wr_wait_rows *wr_wait_rows_of(const wr_db *db);

/* A column of the table, by its place there. False: it is NULL. */
bool wr_wait_row_value(const wr_wait_row *r, int column, int64_t *value);

#endif
