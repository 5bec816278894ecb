/* fact_table.h: what the pass over the calls has seen (facts.h), as temporary tables that rules ask.
 * Their rows lie in packs (pack.h), which SQLite reads as virtual tables: a row costs a few bytes and
 * nanoseconds, where one that is put into a table of SQLite's costs a microsecond. */
#ifndef WEIR_REPORTS_FACT_TABLE_H
#define WEIR_REPORTS_FACT_TABLE_H

#include "reports/findings/pack.h"
#include "reports/import/schema.h"

typedef enum wr_fact {
  WR_FACT_OVERWRITTEN,
  WR_FACT_UNREAD,
  WR_FACT_REREAD,
  WR_FACT_ROW_COPY,
  WR_FACT_ROW_MATRIX,
  WR_FACT_SMALL_COPY,
  WR_FACT_LARGE_COPY,
  WR_FACT_PAGEABLE_COPY,
  WR_FACT_BLOCKING_COPY,
  WR_FACT_HIDDEN_WAIT,
  WR_FACT_TURNED_COPY,
  WR_FACT_DEEP_LAUNCH,
  WR_FACT_UNTOUCHED,
  WR_FACT_EARLY_BLOCK,
  WR_FACT_LATE_FREE,
  WR_FACT_PAIR,
  WR_FACT_PAIR_GROUP,
  WR_FACT_REPEATED_COPY,
  WR_FACT_COPY_FAMILY,
  WR_FACT_SENT_BACK,
  WR_FACT_WAIT_AHEAD,
  WR_FACT_WAIT_COPY,
  WR_FACT_TIMED_WAIT,
  WR_FACT_GIVEN_BLOCK,
  WR_FACT_GIVEN_COPY,
  WR_FACT_TEMPLATE_USE,
  WR_FACT_STORM,
  WR_FACT_HANDLE_PAIR,
  WR_FACT_HANDLE_FAMILY,
  WR_FACT_COMBINED_READ,
  WR_FACTS
} wr_fact;

typedef struct wr_fact_tables {
  wr_pack pack[WR_FACTS];
  char *beside;  /* owned: begin of the names of their files */
  sqlite3 *made; /* the tables are there */
} wr_fact_tables;

/* Errors: ENOMEM. */
weir_status wr_fact_open(wr_fact_tables *t);
void wr_fact_close(wr_fact_tables *t);

/* A row: its columns in their order; a number for one that is NULL, too. Those of a table whose
 * first column is an id come in order of it. Errors: ENOMEM, EIO. */
weir_status wr_fact_add(wr_fact_tables *t, wr_fact table, const int64_t *row);
/* The column that can be NULL is. */
weir_status wr_fact_add_null(wr_fact_tables *t, wr_fact table, const int64_t *row);

/* Forgets all rows. */
void wr_fact_empty(wr_fact_tables *t);

/* Makes the temporary tables, once all rows are there; `t` stays where it is until they are closed.
 * Errors: ENOMEM, EIO. */
weir_status wr_fact_make_tables(wr_fact_tables *t, const wr_db *db);

#endif
