/* schema.h: the trace's SQLite schema and the words its rows use. */
#ifndef WEIR_REPORTS_SCHEMA_H
#define WEIR_REPORTS_SCHEMA_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

#define WR_SCHEMA_VERSION 2                                     /* PRAGMA user_version */
#define WR_SCHEMA_OLDEST  1                                     /* that can be read */
#define WR_APPLICATION_ID 0x57454952                            /* PRAGMA application_id: "WEIR" */
#define WR_SET_ID         "PRAGMA application_id = 1464158546;" /* the same */
#define WR_SET_WAL        "PRAGMA journal_mode = WAL;"

#define WR_BEFORE_WINDOW "before_window" /* begins the names of a window's tables (window.h) */

/* The path of a database, and what is being done to it: all that a good error sentence needs. */
typedef struct wr_db {
  sqlite3 *handle;
  const char *path;     /* borrowed */
  const char *symbols;  /* folder in which symbols are looked for first, or NULL; borrowed */
  int schema;           /* version of the trace */
  bool innermost_sites; /* places may be a library's (reports/model/sites.h) */
  bool anew;            /* figures are of the events, whatever of them is kept (reports/whole) */
  bool want_lines;      /* names that the trace has, without a line, are looked for again */
} wr_db;

/* Words the last failure of `db` as a status: ENOSPC, EIO, ECORRUPT, ENOMEM. `doing`: "writing". */
weir_status wr_db_fail(const wr_db *db, const char *doing);

/* Runs SQL text (several statements). */
weir_status wr_db_exec(const wr_db *db, const char *sql);

/* Prepares one statement (*out new). */
weir_status wr_db_prepare(const wr_db *db, const char *sql, sqlite3_stmt **out);

/* Steps a statement that returns no row and resets it. */
weir_status wr_db_run(const wr_db *db, sqlite3_stmt *statement);

/* Runs a statement of ?1, a number, and ?2, a text (NULL: NULL). */
weir_status wr_db_run_of(const wr_db *db, const char *sql, int64_t number, const char *text);

/* Calls `row` for every row of `sql`; a status it returns ends the walk and is returned. */
weir_status wr_db_each(const wr_db *db, const char *sql,
                       weir_status (*row)(void *context, sqlite3_stmt *q), void *context);

/* The one number of a query; 0 for NULL and for no row. */
weir_status wr_db_number(const wr_db *db, const char *sql, int64_t *out);

/* Returns the same of a query of ?1, a number, and ?2, a text (NULL: NULL). */
weir_status wr_db_number_of(const wr_db *db, const char *sql, uint64_t number, const char *text,
                            int64_t *out);

/* A new copy of a column's text, printable. NULL: out of memory. */
char *wr_db_text(sqlite3_stmt *q, int column);

/* The failure of a report for want of memory. */
weir_status wr_db_out_of_memory(const wr_db *db);

/* Whether the trace has a table of that name, as SQLite has read it: no view, which in an
 * untrusted file could be anything, whatever its list of tables has. */
bool wr_db_has_table(const wr_db *db, const char *table);

/* For a file of somebody else's: what it asks to be done when it is read or written is not done. */
void wr_db_distrust(const wr_db *db);

/* Whether what has the name of a table of a trace is one, and no view, virtual table or table of
 * calculated columns, which have no end that the file's size sets. Errors: ECORRUPT. */
weir_status wr_schema_check(const wr_db *db);

/* Whether a table, no view, of the trace has a column: one of an older Weir may lack what came
 * later. */
bool wr_db_has_column(const wr_db *db, const char *table, const char *column);

/* Whether blocks can be a graph's (block_row.work), as in all but older traces. */
bool wr_schema_graph_memory(const wr_db *db);

/* Tables and columns of launched graphs (graph.h) in an older trace that has none. */
weir_status wr_schema_extend(const wr_db *db);

/* Empty temporary tables graph_work and graph_launch. */
weir_status wr_schema_graph_launches(const wr_db *db);

/* SQL: a row of device_work has times that can be: 2^61 ns to either side of the trace's beginning,
 * which are 73 years. */
#define WR_DEVICE_TIME                                                                             \
  "start BETWEEN -2305843009213693952 AND 2305843009213693952"                                     \
  " AND \"end\" BETWEEN start AND 2305843009213693952"

/* Makes wait_detail, wait_time, device_gap, device_idle, queue_full and idle_cause, empty, in
 * place of those that are there; or temporary ones. */
weir_status wr_schema_waits(const wr_db *db, bool temporary);

/* Tables, views, and the rows that every trace has (kinds, functions). */
weir_status wr_schema_create(const wr_db *db);

/* The tables source_line and site, and the views that show them, in a trace that has none. */
weir_status wr_schema_add_places(const wr_db *db);

/* What readers ask, in views of this connection alone, so that no view of an untrusted file's is:
 * `event` and `block`, as version 1 had them as tables, and `rare_event`, resets and cache facts,
 * quickly.
 */
weir_status wr_schema_reader_views(const wr_db *db);

/* An empty temporary table `block_row`, which the reader's view `block` then shows. */
weir_status wr_schema_blocks(const wr_db *db);

/* Nsight's names as temporary tables and views over the trace, all but StringIds. */
weir_status wr_schema_nsys_views(const wr_db *db);

/* Makes empty temporary tables in place of those that a trace of an older Weir has not. */
weir_status wr_schema_stand_ins(const wr_db *db);

/* The views by kind (copy, allocation, ...) as temporary ones over the trace, with the stand-ins; of
 * places they know nothing. */
weir_status wr_schema_kind_views(const wr_db *db);

/* The temporary view several_streams(process, device): where work is in more than one stream. A
 * wait for all of a device is wider than needed only there: of one stream alone, all is the same.
 * What counts as a wait that is too wide is the same everywhere: WR_WIDE_WAIT of wait_detail `d`
 * and template `t`. */
weir_status wr_schema_streams_view(const wr_db *db);

#define WR_WIDE_WAIT                                                                               \
  "(t.kind = 5 AND d.pending = 1 AND d.narrower = 3 AND"                                           \
  " (t.process, t.device) IN (SELECT process, device FROM several_streams))"

/* Function number `api` as a trace names it; "api #N" (in `buffer`) where the table lacks it. */
const char *wr_api_name(uint32_t api, char buffer[24]);

/* api_category as a word. */
const char *wr_api_category_name(uint32_t category);

#endif
