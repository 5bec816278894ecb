/* wait_table.c: see wait_table.h. */
#include "reports/model/wait_table.h"
#include <string.h>

#define MODULE   "weir_wait"
#define FINDER   "weir_wait_rows" /* a function of SQL that stores where the rows are */
#define PLACE_OF "wait rows"      /* the type of the pointer that it is given */
enum { WAIT_BY_ID = 1 };

bool wr_wait_row_value(const wr_wait_row *r, int column, int64_t *value)
{
  const struct {
    bool there;
    int64_t value;
  } columns[] = {{true, r->id},
                 {r->known, r->pending},
                 {r->known, (int64_t)r->operations},
                 {r->known, (int64_t)r->bytes},
                 {r->known, r->streams},
                 {r->known && r->streams == 1, (int64_t)r->stream},
                 {r->known && r->pending, r->other},
                 {r->known && r->narrower, r->narrower},
                 {r->known && !r->pending && r->other, r->other},
                 {r->known && r->pending, r->host},
                 {r->known && r->pending, r->before_legacy}};
  *value = columns[column].value;
  return columns[column].there;
}

/* ---- as SQLite sees them --------------------------------------------------------------------- */

typedef struct wait_table {
  sqlite3_vtab base;
  const wr_wait_rows *rows;
} wait_table;

typedef struct wait_cursor {
  sqlite3_vtab_cursor base;
  wr_wait_reader reader;
  bool one; /* only the row that was found */
} wait_cursor;

static int connect_waits(sqlite3 *db, void *rows, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **error)
{
  if (argc != 3 || strcmp(argv[1], "temp") != 0) {
    *error = sqlite3_mprintf("waits of no trace");
    return SQLITE_ERROR;
  }
  int code = sqlite3_declare_vtab(
      db, "CREATE TABLE x(id INTEGER, pending INTEGER, operations INTEGER, bytes INTEGER,"
          " streams INTEGER, stream INTEGER, youngest INTEGER, narrower INTEGER,"
          " covered_by INTEGER, host INTEGER, before_legacy INTEGER)");
  wait_table *t = code ? NULL : sqlite3_malloc(sizeof(*t));
  if (!t) return code ? code : SQLITE_NOMEM;
  *t = (wait_table){.rows = rows};
  *out = &t->base;
  return SQLITE_OK;
}

static int disconnect_waits(sqlite3_vtab *table)
{
  sqlite3_free(table);
  return SQLITE_OK;
}

static int plan_waits(sqlite3_vtab *table, sqlite3_index_info *info)
{
  uint64_t rows = wr_wait_rows_count(((const wait_table *)table)->rows);
  info->estimatedRows = (sqlite3_int64)rows;
  info->estimatedCost = (double)rows + 1;
  for (int i = 0; i < info->nConstraint; i++) {
    if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn > 0 ||
        info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ)
      continue;
    info->aConstraintUsage[i].argvIndex = 1;
    info->idxNum = WAIT_BY_ID;
    info->idxFlags = SQLITE_INDEX_SCAN_UNIQUE;
    info->estimatedRows = 1;
    info->estimatedCost = 2;
    break;
  }
  return SQLITE_OK;
}

static int open_waits(sqlite3_vtab *table, sqlite3_vtab_cursor **out)
{
  wait_cursor *c = sqlite3_malloc(sizeof(*c));
  if (!c) return SQLITE_NOMEM;
  *c = (wait_cursor){.reader = {.rows = ((const wait_table *)table)->rows, .over = true}};
  *out = &c->base;
  return SQLITE_OK;
}

static int close_waits(sqlite3_vtab_cursor *cursor)
{
  wr_wait_reader_free(&((wait_cursor *)cursor)->reader);
  sqlite3_free(cursor);
  return SQLITE_OK;
}

static int fail_waits(sqlite3_vtab_cursor *cursor, weir_status st)
{
  sqlite3_free(cursor->pVtab->zErrMsg);
  cursor->pVtab->zErrMsg = sqlite3_mprintf("%s", weir_error_message());
  return st == WEIR_ENOMEM ? SQLITE_NOMEM : SQLITE_IOERR;
}

/* SQLite compares the id again: of a value that is no whole number all rows are looked at. */
static int filter_waits(sqlite3_vtab_cursor *cursor, int number, const char *name, int argc,
                        sqlite3_value **argv)
{
  (void)name;
  wait_cursor *c = (wait_cursor *)cursor;
  c->one = number == WAIT_BY_ID && argc == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER;
  weir_status st =
      c->one ? wr_wait_find(&c->reader, sqlite3_value_int64(argv[0])) : wr_wait_first(&c->reader);
  return st ? fail_waits(cursor, st) : SQLITE_OK;
}

static int next_wait(sqlite3_vtab_cursor *cursor)
{
  wait_cursor *c = (wait_cursor *)cursor;
  weir_status st = WEIR_OK;
  if (c->one)
    c->reader.over = true;
  else
    st = wr_wait_next(&c->reader);
  return st ? fail_waits(cursor, st) : SQLITE_OK;
}

static int end_of_waits(sqlite3_vtab_cursor *cursor)
{
  return ((const wait_cursor *)cursor)->reader.over;
}

static const wr_wait_row *wait_at(sqlite3_vtab_cursor *cursor)
{
  return &((const wait_cursor *)cursor)->reader.row;
}

static int wait_column(sqlite3_vtab_cursor *cursor, sqlite3_context *result, int column)
{
  int64_t value;
  if (wr_wait_row_value(wait_at(cursor), column, &value)) sqlite3_result_int64(result, value);
  return SQLITE_OK;
}

static int wait_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *rowid)
{
  *rowid = wait_at(cursor)->id;
  return SQLITE_OK;
}

static const sqlite3_module waits_module = {.xCreate = connect_waits,
                                            .xConnect = connect_waits,
                                            .xBestIndex = plan_waits,
                                            .xDisconnect = disconnect_waits,
                                            .xDestroy = disconnect_waits,
                                            .xOpen = open_waits,
                                            .xClose = close_waits,
                                            .xFilter = filter_waits,
                                            .xNext = next_wait,
                                            .xEof = end_of_waits,
                                            .xColumn = wait_column,
                                            .xRowid = wait_rowid};

static void free_waits(void *rows)
{
  wr_wait_rows_free(rows);
}

/* Stores where the rows are, or of a table that is made anew, that there are none. */
static void find_rows(sqlite3_context *call, int argc, sqlite3_value **argv)
{
  const wr_wait_rows **out = argc == 1 ? sqlite3_value_pointer(argv[0], PLACE_OF) : NULL;
  if (out) *out = sqlite3_user_data(call);
}

weir_status wr_wait_rows_table(wr_wait_rows *r, const wr_db *db)
{
  static const char drop[] = "DROP TABLE IF EXISTS temp.wait_detail";
  static const char make[] = "CREATE VIRTUAL TABLE temp.wait_detail USING " MODULE;
  weir_status st = wr_db_exec(db, drop);
  if (st) {
    wr_wait_rows_free(r);
    return st;
  }
  if (sqlite3_create_module_v2(db->handle, MODULE, &waits_module, r, free_waits) ||
      sqlite3_create_function(db->handle, FINDER, 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, r, find_rows,
                              NULL, NULL))
    return wr_db_fail(db, "opening");
  return wr_db_exec(db, make);
}

const wr_wait_rows *wr_wait_rows_of(const wr_db *db)
{
  const wr_wait_rows *rows = NULL;
  sqlite3_stmt *q = NULL;
  if (!sqlite3_prepare_v2(db->handle, "SELECT " FINDER "(?1)", -1, &q, NULL) &&
      !sqlite3_bind_pointer(q, 1, &rows, PLACE_OF, NULL))
    (void)sqlite3_step(q);
  sqlite3_finalize(q);
  return rows;
}
