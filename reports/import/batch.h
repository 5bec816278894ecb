/* batch.h: rows waiting to be one transaction.
 *
 * A reader hands every record over once. So rows wait here, in memory, until the transaction that
 * writes them is committed; where it fails it is rolled back, the rows stay, and the next flush
 * writes the same rows again: nothing is lost and nothing doubled.
 *
 * Number rows go in by one INSERT ... SELECT a table from the virtual table `weir_feed`, which
 * reads this memory: 1.5 times as fast as binding and stepping a statement a row. The few rows with
 * text are bound. */
#ifndef WEIR_REPORTS_BATCH_H
#define WEIR_REPORTS_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "reports/import/event_columns.h"
#include "reports/import/schema.h"

enum { WR_COLUMNS = 16 }; /* of the widest number row, which is graph_work's */
_Static_assert(WR_TEMPLATE_COLUMNS <= (int)WR_COLUMNS, "a template is a row");

#define WR_BATCH_EVENTS 16384 /* events a transaction */

/* One row a table fed with numbers: identifier, columns, INSERT ... of the SELECT list. Columns are
 * fed in order; where the id is made by SQLite it is a leading NULL. */
#define WR_TABLE_MAP(X)                                                                            \
  X(TEMPLATE, WR_TEMPLATE_COLUMNS, "template", false)                                              \
  X(EVENT, WR_EVENT_COLUMNS, "event_row", true)                                                    \
  X(BATCH_ITEM, 2, "batch_item", false)                                                            \
  X(THREAD, 5, "thread", false)                                                                    \
  X(FRAME, 5, "frame", false)                                                                      \
  X(STACK, 4, "stack", false)                                                                      \
  X(STACK_FRAME, 3, "stack_frame", false)                                                          \
  X(RANGE, 11, "range_row", false)                                                                 \
  X(EVENT_RANGE, 2, "event_range", false)                                                          \
  X(DEVICE_CALL, 3, "device_call", false)                                                          \
  X(DEVICE_WORK, 13, "device_work", true)                                                          \
  X(COPY_HASH, 11, "copy_hash", true)                                                              \
  X(COPY_HASH_CALL, 3, "copy_hash_call", false)                                                    \
  X(COPY_PART, 7, "copy_part", false)                                                              \
  X(BLOCK, 7, "block_row", true)                                                                   \
  X(GRAPH_CHANGE, 9, "graph_change", false)                                                        \
  X(ACCESS_SET, 4, "access_set", false)                                                            \
  X(ACCESS_WORD, 5, "access_word", false)                                                          \
  X(ACCESS_VARYING, 3, "access_varying", false)                                                    \
  X(TEMPLATE_ACCESS, 2, "template_access", false)                                                  \
  X(GRAPH_NODE, 15, "graph_node", false)                                                           \
  X(GRAPH_WORK, 16, "graph_work", false)                                                           \
  X(GRAPH_LAUNCH, 3, "graph_launch", false)                                                        \
  X(WAIT_DETAIL, 11, "wait_detail", false)                                                         \
  X(WAIT_TIME, 5, "wait_time", false)                                                              \
  X(DEVICE_GAP, 11, "device_gap", true)                                                            \
  X(DEVICE_IDLE, 4, "device_idle", false)                                                          \
  X(QUEUE_FULL, 3, "queue_full", false)                                                            \
  X(BEFORE_WINDOW, 15, "before_window", false)                                                     \
  X(BEFORE_WINDOW_MEMORY, 10, "before_window_memory", false)                                       \
  X(BEFORE_WINDOW_CONTEXT, 3, "before_window_context", false)

typedef enum wr_table {
#define WR_TABLE_ENUM(id, columns, name, numbered) WR_TABLE_##id,
  WR_TABLE_MAP(WR_TABLE_ENUM)
#undef WR_TABLE_ENUM
      WR_TABLE_COUNT
} wr_table;

typedef struct wr_row {
  int64_t v[WR_COLUMNS];
  uint32_t nulls; /* bit i: column i is NULL; WR_REAL(i): it is a double's bits */
} wr_row;

#define WR_REAL(column) (0x10000u << (column))

typedef struct wr_batch_rows {
  wr_row *row;
  size_t count, capacity;
} wr_batch_rows;

/* A statement to run with values: rows with text, and updates. */
typedef struct wr_op {
  const char *sql; /* static text, also the key of its prepared statement */
  int64_t v[10];   /* ?1.. */
  uint8_t numbers; /* of them */
  uint8_t texts;   /* bound after the numbers */
  char *text[4];   /* owned, NULL binds NULL */
} wr_op;

/* What a wr_op binds, as members of it. */
#define WR_NUMBERS(...)                                                                            \
  .v = {__VA_ARGS__}, .numbers = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define WR_TEXTS(...)                                                                              \
  .text = {__VA_ARGS__}, .texts = sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)

typedef struct wr_batch {
  wr_db db;
  wr_batch_rows rows[WR_TABLE_COUNT];
  wr_op *ops;
  size_t op_count, op_capacity;
  sqlite3_stmt *insert[WR_TABLE_COUNT];
  struct wr_feed *feed; /* what weir_feed shows now */
  struct {
    const char *sql;
    sqlite3_stmt *statement;
  } cached[48];
} wr_batch;

/* Readies `b` for a database that has the schema. */
weir_status wr_batch_open(wr_batch *b, const wr_db *db);
void wr_batch_close(wr_batch *b);

/* A new zeroed row of `table`, or NULL (out of memory). */
wr_row *wr_batch_row(wr_batch *b, wr_table table);

/* Queues `op`, whose texts become the batch's, also on failure; the second one all of whose texts
 * could be made. Errors: ENOMEM. */
weir_status wr_batch_op(wr_batch *b, wr_op op);
weir_status wr_batch_whole(wr_batch *b, wr_op op);

/* Writes what waits in one transaction (or, `nested`, in the one that is open) and forgets it. On
 * failure it is rolled back and everything still waits. */
weir_status wr_batch_flush(wr_batch *b, bool nested);

#endif
