/* wait_table.h: the rows of `wait_detail` (SCHEMA.md) in memory, and as a table that SQL finds by id: of a trace that is not
 * resolved they are made for the report, and written nowhere. */
#ifndef WEIR_REPORTS_WAIT_TABLE_H
#define WEIR_REPORTS_WAIT_TABLE_H

#include "reports/import/schema.h"
#include "reports/queues/queues.h"

typedef struct wr_wait_row {
  int64_t id;
  uint64_t operations, bytes, stream;
  int64_t other; /* pending: the youngest operation; else what showed that all is done, 0 none */
  uint32_t streams;
  bool known, pending, before_legacy;
  uint8_t narrower, host;
} wr_wait_row;

typedef struct wr_wait_rows {
  wr_wait_row *row; /* owned */
  size_t count, capacity;
} wr_wait_rows;

/* Adds what is known of a wait. False: out of memory. */
bool wr_wait_rows_add(wr_wait_rows *r, const wr_wait_verdict *v);

/* Makes temp.wait_detail of the rows, in place of the one that is there; the connection then owns them, and `r` is empty.
 * Errors: ENOMEM, EIO. */
weir_status wr_wait_rows_table(wr_wait_rows *r, const wr_db *db);

/* A column of the table, by its place there. False: it is NULL. */
bool wr_wait_row_value(const wr_wait_row *r, int column, int64_t *value);

#endif
