/* wait_table.c: see wait_table.h. */
#include "reports/model/wait_table.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/sort.h"
#include "reports/base/util.h"

#define MODULE "weir_wait"
enum { WAIT_BY_ID = 1 };

bool wr_wait_rows_add(wr_wait_rows *r, const wr_wait_verdict *v)
{
  if (!wr_grow(&r->row, &r->capacity, r->count + 1, sizeof(*r->row))) return false;
  r->row[r->count++] = (wr_wait_row){.id = v->id,
                                     .operations = v->operations,
                                     .bytes = v->bytes,
                                     .stream = v->stream,
                                     .other = v->pending ? v->youngest : v->covered_by,
                                     .streams = v->streams,
                                     .known = v->known,
                                     .pending = v->pending,
                                     .before_legacy = v->before_legacy,
                                     .narrower = (uint8_t)v->narrower,
                                     .host = v->host};
  return true;
}

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
  size_t at, end; /* rows */
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
  const wr_wait_rows *rows = ((const wait_table *)table)->rows;
  info->estimatedRows = (sqlite3_int64)rows->count;
  info->estimatedCost = (double)rows->count + 1;
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
  (void)table;
  wait_cursor *c = sqlite3_malloc(sizeof(*c));
  if (!c) return SQLITE_NOMEM;
  *c = (wait_cursor){0};
  *out = &c->base;
  return SQLITE_OK;
}

static int close_waits(sqlite3_vtab_cursor *cursor)
{
  sqlite3_free(cursor);
  return SQLITE_OK;
}

/* The first row whose id is at least that. */
static size_t find_wait(const wr_wait_rows *rows, int64_t id)
{
  size_t low = 0, high = rows->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (rows->row[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* SQLite compares the id again: of a value that is no whole number all rows are looked at. */
static int filter_waits(sqlite3_vtab_cursor *cursor, int number, const char *name, int argc,
                        sqlite3_value **argv)
{
  (void)name;
  wait_cursor *c = (wait_cursor *)cursor;
  const wr_wait_rows *rows = ((wait_table *)cursor->pVtab)->rows;
  bool one = number == WAIT_BY_ID && argc == 1 && sqlite3_value_type(argv[0]) == SQLITE_INTEGER;
  int64_t id = one ? sqlite3_value_int64(argv[0]) : 0;
  c->at = one ? find_wait(rows, id) : 0;
  c->end = !one                                               ? rows->count
           : c->at < rows->count && rows->row[c->at].id == id ? c->at + 1
                                                              : c->at;
  return SQLITE_OK;
}

static int next_wait(sqlite3_vtab_cursor *cursor)
{
  ((wait_cursor *)cursor)->at++;
  return SQLITE_OK;
}

static int end_of_waits(sqlite3_vtab_cursor *cursor)
{
  const wait_cursor *c = (const wait_cursor *)cursor;
  return c->at >= c->end;
}

static const wr_wait_row *wait_at(sqlite3_vtab_cursor *cursor)
{
  return &((const wait_table *)cursor->pVtab)->rows->row[((const wait_cursor *)cursor)->at];
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
  free(((wr_wait_rows *)rows)->row);
  free(rows);
}

static int by_wait(const void *left, const void *right)
{
  int64_t a = ((const wr_wait_row *)left)->id, b = ((const wr_wait_row *)right)->id;
  return (a > b) - (a < b);
}

/* By id: they come in order of time, as their threads' rows do not lie. */
static void sort_waits(wr_wait_rows *r)
{
  bool ordered = true;
  for (size_t i = 1; ordered && i < r->count; i++)
    ordered = r->row[i - 1].id < r->row[i].id;
  if (!ordered && !wr_sort_records(r->row, r->count, sizeof(*r->row), offsetof(wr_wait_row, id)))
    qsort(r->row, r->count, sizeof(*r->row), by_wait);
}

weir_status wr_wait_rows_table(wr_wait_rows *r, const wr_db *db)
{
  wr_wait_rows *rows = calloc(1, sizeof(*rows));
  if (!rows) return wr_db_out_of_memory(db);
  *rows = *r;
  *r = (wr_wait_rows){0};
  sort_waits(rows);
  if (sqlite3_create_module_v2(db->handle, MODULE, &waits_module, rows, free_waits))
    return wr_db_fail(db, "opening");
  return wr_db_exec(db, "DROP TABLE IF EXISTS temp.wait_detail;"
                        "CREATE VIRTUAL TABLE temp.wait_detail USING " MODULE);
}
