/* rows.c: see rows.h. */
#include "reports/events/rows.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SELECT of the columns from a number on (new, NULL: out of memory). */
static char *rows_sql(const char *table, const char *const columns[], int count)
{
  char *sql = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&sql, &bytes);
  if (!f) return NULL;
  for (int i = 0; i < count; i++)
    (void)fprintf(f, "%s\"%s\"", i ? ", " : "SELECT ", columns[i]);
  (void)fprintf(f, " FROM main.\"%s\" WHERE \"%s\" >= ? ORDER BY \"%s\"", table, columns[0],
                columns[0]);
  return fclose(f) ? NULL : sql;
}

static void ask_sqlite(wr_row_walk *r, int64_t id)
{
  r->by_pages = false;
  r->v = r->value;
  if (r->rest)
    sqlite3_reset(r->rest);
  else
    r->status = wr_db_prepare(r->db, r->sql, &r->rest);
  if (!r->status) sqlite3_bind_int64(r->rest, 1, id);
}

void wr_rows_seek(wr_row_walk *r, int64_t id)
{
  r->v = r->walk.v;
  r->sought = id;
  if (!r->by_pages || wr_btree_seek(&r->walk, id) != WR_BTREE_ROW) ask_sqlite(r, id);
}

weir_status wr_rows_open(wr_row_walk *r, const wr_db *db, const char *table,
                         const char *const columns[], int count)
{
  *r = (wr_row_walk){.db = db, .columns = count - 1, .sql = rows_sql(table, columns, count)};
  if (!r->sql) return r->status = wr_db_out_of_memory(db);
  r->by_pages = wr_btree_open(&r->table, db, table, columns, count);
  r->walk.table = &r->table;
  wr_rows_seek(r, INT64_MIN);
  return r->status;
}

weir_status wr_rows_again(wr_row_walk *r, const wr_row_walk *other)
{
  *r = (wr_row_walk){.db = other->db, .columns = other->columns, .sql = strdup(other->sql)};
  if (!r->sql) return r->status = wr_db_out_of_memory(r->db);
  r->by_pages = other->by_pages;
  r->table = other->table;
  r->walk.table = &r->table;
  wr_rows_seek(r, INT64_MIN);
  return r->status;
}

static bool next_of_sqlite(wr_row_walk *r)
{
  int code = r->status ? SQLITE_DONE : sqlite3_step(r->rest);
  if (code != SQLITE_ROW) {
    if (!r->status && code != SQLITE_DONE) r->status = wr_db_fail(r->db, "reading");
    return false;
  }
  r->id = sqlite3_column_int64(r->rest, 0);
  r->nulls = 0;
  for (int i = 0; i < r->columns; i++) {
    r->value[i] = sqlite3_column_int64(r->rest, i + 1);
    if (!r->value[i] && sqlite3_column_type(r->rest, i + 1) == SQLITE_NULL) r->nulls |= 1U << i;
  }
  return true;
}

bool wr_rows_next(wr_row_walk *r)
{
  if (!r->by_pages) return next_of_sqlite(r);
  bool begun = r->walk.begun;
  int64_t last = r->walk.id;
  wr_btree_step step = wr_btree_next(&r->walk);
  if (step == WR_BTREE_ROW) {
    r->id = r->walk.id;
    r->nulls = r->walk.nulls;
    return true;
  }
  if (step == WR_BTREE_END || (begun && last == INT64_MAX)) return false;
  ask_sqlite(r, begun ? last + 1 : r->sought);
  return next_of_sqlite(r);
}

size_t wr_rows_apart(wr_row_walk *r, int64_t *rows, size_t stride, size_t most)
{
  size_t count = r->by_pages ? wr_btree_some(&r->walk, rows, stride, most) : 0;
  if (count || !wr_rows_next(r)) return count;
  rows[0] = r->id;
  memcpy(rows + 1, r->v, (size_t)r->columns * sizeof(*rows));
  return 1;
}

size_t wr_rows_some(wr_row_walk *r, int64_t *rows, size_t most)
{
  return wr_rows_apart(r, rows, (size_t)r->columns + 1, most);
}

bool wr_rows_find(wr_row_walk *r, int64_t id)
{
  if (r->by_pages && !r->walk.here_and_there) { /* what opening it has read is kept otherwise */
    wr_btree_close(&r->walk);
    r->walk = (wr_btree_walk){.table = &r->table, .here_and_there = true};
  }
  if (r->status) return false;
  wr_btree_step step = r->by_pages ? wr_btree_find(&r->walk, id) : WR_BTREE_ODD;
  if (step == WR_BTREE_END) return false;
  if (step != WR_BTREE_ROW) {
    ask_sqlite(r, id);
    return next_of_sqlite(r) && r->id == id;
  }
  r->v = r->walk.v;
  r->id = r->walk.id;
  r->nulls = r->walk.nulls;
  return r->id == id;
}

weir_status wr_rows_close(wr_row_walk *r)
{
  weir_status st = r->status;
  wr_btree_close(&r->walk);
  sqlite3_finalize(r->rest);
  free(r->sql);
  r->rest = NULL;
  r->sql = NULL;
  return st;
}
