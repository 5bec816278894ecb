/* batch.c: see batch.h. */
#include "reports/import/batch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

/* ---- weir_feed: rows in memory as a virtual table -------------------------------------------- */

struct wr_feed {
  const wr_batch_rows *rows;
};

typedef struct feed_table {
  sqlite3_vtab base;
  struct wr_feed *feed;
} feed_table;

typedef struct feed_cursor {
  sqlite3_vtab_cursor base;
  const wr_row *at, *end;
} feed_cursor;

static int feed_connect(sqlite3 *db, void *feed, int argc, const char *const *argv,
                        sqlite3_vtab **out, char **error)
{
  (void)argc, (void)argv, (void)error;
  char sql[32 + WR_COLUMNS * 5] = "CREATE TABLE x(c0";
  for (int i = 1; i < WR_COLUMNS; i++)
    (void)snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), ",c%d", i);
  (void)snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), ")");
  int code = sqlite3_declare_vtab(db, sql);
  if (code != SQLITE_OK) return code;
  feed_table *t = sqlite3_malloc(sizeof(*t));
  if (!t) return SQLITE_NOMEM;
  *t = (feed_table){.feed = feed};
  *out = &t->base;
  return SQLITE_OK;
}

static int feed_disconnect(sqlite3_vtab *table)
{
  sqlite3_free(table);
  return SQLITE_OK;
}

static int feed_best_index(sqlite3_vtab *table, sqlite3_index_info *info)
{
  (void)table;
  info->estimatedCost = 1e6;
  return SQLITE_OK;
}

static int feed_open(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
  (void)table;
  feed_cursor *c = sqlite3_malloc(sizeof(*c));
  if (!c) return SQLITE_NOMEM;
  *c = (feed_cursor){0};
  *out = &c->base;
  return SQLITE_OK;
}

static int feed_close(sqlite3_vtab_cursor *cursor)
{
  sqlite3_free(cursor);
  return SQLITE_OK;
}

static int feed_filter(sqlite3_vtab_cursor *cursor, int number, const char *name, int argc,
                       sqlite3_value **argv)
{
  (void)number, (void)name, (void)argc, (void)argv;
  feed_cursor *c = (feed_cursor *)cursor;
  const wr_batch_rows *rows = ((feed_table *)cursor->pVtab)->feed->rows;
  c->at = rows ? rows->row : NULL;
  c->end = rows ? rows->row + rows->count : NULL;
  return SQLITE_OK;
}

static int feed_next(sqlite3_vtab_cursor *cursor)
{
  ((feed_cursor *)cursor)->at++;
  return SQLITE_OK;
}

static int feed_eof(sqlite3_vtab_cursor *cursor)
{
  const feed_cursor *c = (const feed_cursor *)cursor;
  return c->at >= c->end;
}

static int feed_column(sqlite3_vtab_cursor *cursor, sqlite3_context *result, int column)
{
  const wr_row *row = ((feed_cursor *)cursor)->at;
  unsigned how = row->nulls >> column & 0x10001;
  if (!how) {
    sqlite3_result_int64(result, row->v[column]);
  } else if (how & 0x10000) {
    double value;
    memcpy(&value, &row->v[column], sizeof(value));
    sqlite3_result_double(result, value);
  }
  return SQLITE_OK;
}

static int feed_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
  *rowid = (sqlite3_int64)(intptr_t)((feed_cursor *)cursor)->at;
  return SQLITE_OK;
}

static const sqlite3_module feed_module = {.xConnect = feed_connect,
                                           .xDisconnect = feed_disconnect,
                                           .xDestroy = feed_disconnect,
                                           .xBestIndex = feed_best_index,
                                           .xOpen = feed_open,
                                           .xClose = feed_close,
                                           .xFilter = feed_filter,
                                           .xNext = feed_next,
                                           .xEof = feed_eof,
                                           .xColumn = feed_column,
                                           .xRowid = feed_rowid};

/* ---- the batch ------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  int columns;
  bool numbered;
} tables[WR_TABLE_COUNT] = {
#define TABLE(id, columns, name, numbered) [WR_TABLE_##id] = {name, columns, numbered},
    WR_TABLE_MAP(TABLE)
#undef TABLE
};

static weir_status prepare_insert(wr_batch *b, wr_table table)
{
  char sql[256];
  (void)snprintf(sql, sizeof(sql), "INSERT INTO %s SELECT %sc0", tables[table].name,
                 tables[table].numbered ? "NULL," : "");
  for (int i = 1; i < tables[table].columns; i++)
    (void)snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), ",c%d", i);
  (void)snprintf(sql + strlen(sql), sizeof(sql) - strlen(sql), " FROM weir_feed");
  return wr_db_prepare(&b->db, sql, &b->insert[table]);
}

weir_status wr_batch_open(wr_batch *b, const wr_db *db)
{
  *b = (wr_batch){.db = *db};
  b->feed = calloc(1, sizeof(*b->feed));
  if (!b->feed) return weir_fail(WEIR_ENOMEM, "importing into %s: out of host memory", db->path);
  if (sqlite3_create_module(db->handle, "weir_feed", &feed_module, b->feed) != SQLITE_OK)
    return wr_db_fail(db, "opening");
  return WEIR_OK;
}

static void forget_ops(wr_batch *b)
{
  for (size_t i = 0; i < b->op_count; i++)
    for (int t = 0; t < b->ops[i].texts; t++)
      free(b->ops[i].text[t]);
  b->op_count = 0;
}

void wr_batch_close(wr_batch *b)
{
  for (int t = 0; t < WR_TABLE_COUNT; t++) {
    sqlite3_finalize(b->insert[t]);
    free(b->rows[t].row);
  }
  for (size_t i = 0; i < sizeof(b->cached) / sizeof(b->cached[0]); i++)
    sqlite3_finalize(b->cached[i].statement);
  forget_ops(b);
  free(b->ops);
  free(b->feed);
  *b = (wr_batch){0};
}

wr_row *wr_batch_row(wr_batch *b, wr_table table)
{
  wr_batch_rows *rows = &b->rows[table];
  if (!wr_grow(&rows->row, &rows->capacity, rows->count + 1, sizeof(wr_row))) return NULL;
  wr_row *row = &rows->row[rows->count++];
  *row = (wr_row){0};
  return row;
}

static weir_status drop_op(const wr_batch *b, const wr_op *op)
{
  for (int t = 0; t < op->texts; t++)
    free(op->text[t]);
  return weir_fail(WEIR_ENOMEM, "importing into %s: out of host memory", b->db.path);
}

weir_status wr_batch_op(wr_batch *b, wr_op op)
{
  if (!wr_grow(&b->ops, &b->op_capacity, b->op_count + 1, sizeof(wr_op))) return drop_op(b, &op);
  b->ops[b->op_count++] = op;
  return WEIR_OK;
}

weir_status wr_batch_whole(wr_batch *b, wr_op op)
{
  for (int t = 0; t < op.texts; t++)
    if (!op.text[t]) return drop_op(b, &op);
  return wr_batch_op(b, op);
}

/* Whether no row and no operation waits. */
static bool wr_batch_empty(const wr_batch *b)
{
  for (int t = 0; t < WR_TABLE_COUNT; t++)
    if (b->rows[t].count) return false;
  return b->op_count == 0;
}

static weir_status cached_statement(wr_batch *b, const char *sql, sqlite3_stmt **out)
{
  size_t count = sizeof(b->cached) / sizeof(b->cached[0]);
  for (size_t i = 0; i < count; i++) {
    if (b->cached[i].sql && b->cached[i].sql != sql) continue;
    weir_status st = WEIR_OK;
    if (!b->cached[i].sql) st = wr_db_prepare(&b->db, sql, &b->cached[i].statement);
    if (!st) b->cached[i].sql = sql;
    *out = b->cached[i].statement;
    return st;
  }
  return weir_fail(WEIR_EINTERNAL, "more kinds of row than a batch has room for");
}

static weir_status run_batch_op(wr_batch *b, const wr_op *op)
{
  sqlite3_stmt *statement = NULL;
  weir_status st = cached_statement(b, op->sql, &statement);
  if (st) return st;
  for (int i = 0; i < op->numbers; i++)
    sqlite3_bind_int64(statement, i + 1, op->v[i]);
  for (int t = 0; t < op->texts; t++)
    sqlite3_bind_text(statement, op->numbers + t + 1, op->text[t], -1, SQLITE_STATIC);
  st = wr_db_run(&b->db, statement);
  sqlite3_clear_bindings(statement);
  return st;
}

static weir_status write_batch_ops(wr_batch *b)
{
  weir_status st = WEIR_OK;
  for (int t = 0; !st && t < WR_TABLE_COUNT; t++) {
    if (!b->rows[t].count) continue;
    b->feed->rows = &b->rows[t];
    if (!b->insert[t]) st = prepare_insert(b, (wr_table)t);
    if (!st) st = wr_db_run(&b->db, b->insert[t]);
    b->feed->rows = NULL;
  }
  for (size_t i = 0; !st && i < b->op_count; i++)
    st = run_batch_op(b, &b->ops[i]);
  return st;
}

weir_status wr_batch_flush(wr_batch *b, bool nested)
{
  if (wr_batch_empty(b)) return WEIR_OK;
  weir_status st = nested ? WEIR_OK : wr_db_exec(&b->db, "BEGIN IMMEDIATE");
  if (st) return st;
  st = write_batch_ops(b);
  if (!st && !nested) st = wr_db_exec(&b->db, "COMMIT");
  if (st) { /* its message is kept; after some failures SQLite has rolled back already */
    if (!nested && !sqlite3_get_autocommit(b->db.handle))
      sqlite3_exec(b->db.handle, "ROLLBACK", NULL, NULL, NULL);
    return st;
  }
  for (int t = 0; t < WR_TABLE_COUNT; t++)
    b->rows[t].count = 0;
  forget_ops(b);
  return WEIR_OK;
}
