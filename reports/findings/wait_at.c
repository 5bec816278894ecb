/* wait_at.c: see wait_at.h. */
#include "reports/findings/wait_at.h"
#include <stdlib.h>
#include "reports/events/rows.h"
#include "reports/import/run_log.h"
#include "reports/model/wait_table.h"

enum {
  ID,
  PENDING,
  OPERATIONS,
  BYTES,
  STREAMS,
  STREAM,
  YOUNGEST,
  NARROWER,
  COVERED_BY,
  HOST,
  BEFORE_LEGACY,
  COLUMNS
};
static const char *const columns[COLUMNS] = {"id",         "pending", "operations",   "bytes",
                                             "streams",    "stream",  "youngest",     "narrower",
                                             "covered_by", "host",    "before_legacy"};

/* What is NULL is 0. */
static wr_wait_row row_of(const wr_row_walk *r)
{
  const int64_t *v = r->v - 1;
  bool pending = v[PENDING] != 0;
  return (wr_wait_row){.id = r->id,
                       .operations = (uint64_t)v[OPERATIONS],
                       .bytes = (uint64_t)v[BYTES],
                       .stream = (uint64_t)v[STREAM],
                       .other = pending ? v[YOUNGEST] : v[COVERED_BY],
                       .streams = (uint32_t)v[STREAMS],
                       .known = !(r->nulls & 1),
                       .pending = pending,
                       .before_legacy = v[BEFORE_LEGACY] != 0,
                       .narrower = (uint8_t)v[NARROWER],
                       .host = (uint8_t)v[HOST]};
}

/* Those of a resolved trace. */
static weir_status read_rows(wr_waits *w)
{
  wr_row_walk r;
  int64_t last = 0;
  weir_status s = wr_db_number(w->db, "SELECT max(id) FROM wait_detail", &last);
  if (s) return s;
  w->file = wr_run_path();
  w->own = w->file ? wr_wait_rows_new(w->file, last) : NULL;
  if (!w->own) return wr_db_out_of_memory(w->db);
  s = wr_rows_open(&r, w->db, "wait_detail", columns, COLUMNS);
  while (!s && wr_rows_next(&r)) {
    wr_wait_row row = row_of(&r);
    s = wr_wait_rows_add(w->own, 0, &row);
  }
  weir_status closed = wr_rows_close(&r);
  if (!s) s = closed;
  return s ? s : wr_wait_rows_order(w->own);
}

weir_status wr_waits_open(wr_waits *w, const wr_db *db)
{
  int64_t timed = 0;
  *w = (wr_waits){.db = db};
  const wr_wait_rows *rows = wr_wait_rows_of(db);
  if (!rows) w->status = read_rows(w);
  w->found.rows = w->walk.rows = rows ? rows : w->own;
  if (!w->status) w->bits = wr_wait_rows_bits(w->found.rows, &w->ids);
  if (!w->status) w->status = wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM wait_time)", &timed);
  if (!w->status && timed)
    w->status = wr_db_prepare(
        db, "SELECT working_ns, other_ns, unknown_ns FROM wait_time WHERE id = ?", &w->time);
  return w->status;
}

void wr_waits_close(wr_waits *w)
{
  sqlite3_finalize(w->time);
  wr_wait_reader_free(&w->found);
  wr_wait_reader_free(&w->walk);
  wr_wait_rows_free(w->own);
  free(w->file);
  *w = (wr_waits){0};
}

const wr_wait_row *wr_waits_find(wr_waits *w, int64_t event)
{
  if (!w->status) w->status = wr_wait_find(&w->found, event);
  return w->status || w->found.over ? NULL : &w->found.row;
}

bool wr_waits_time(wr_waits *w, int64_t event, wr_wait_time_row *row)
{
  if (w->status || !w->time) return false;
  sqlite3_bind_int64(w->time, 1, event);
  int code = sqlite3_step(w->time);
  *row = (wr_wait_time_row){sqlite3_column_int64(w->time, 0), sqlite3_column_int64(w->time, 1),
                            sqlite3_column_int64(w->time, 2)};
  (void)sqlite3_reset(w->time);
  if (code != SQLITE_ROW && code != SQLITE_DONE) w->status = wr_db_fail(w->db, "reading");
  return code == SQLITE_ROW;
}

unsigned wr_waits_bits(wr_waits *w, int64_t event)
{
  unsigned bits = 0;
  if (!w->status) w->status = wr_wait_bits(&w->found, event, &bits);
  return w->status ? 0 : bits;
}

const wr_wait_row *wr_waits_next(wr_waits *w, unsigned mask, unsigned bits)
{
  if (!w->status) w->status = wr_wait_next_of(&w->walk, mask, bits, !w->walks);
  w->walks = !w->status && !w->walk.over;
  return w->walks ? &w->walk.row : NULL;
}
