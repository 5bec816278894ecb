/* waits.c: waits that had nothing to wait for, and waits for more than there was.
 *
 * What each had to wait for is in a resolved trace; of a shorter one it is made for the report. One
 * that came before any work is not counted: most such calls bring a context up. */
#include "reports/model/waits.h"
#include "reports/import/wait_log.h"

enum { JUDGED_EVENTS = 1000000 /* of a trace that is not resolved: about a second */ };

typedef struct wait_load {
  wr_model *m;
  wr_site_sums *sums;
  const wr_db *db;
} wait_load;

/* pending, narrower, stack, api, calls, ns; waits that were asked for. */
static weir_status take_waits(void *context, sqlite3_stmt *q)
{
  wait_load *l = context;
  wr_wait_truth *t = &l->m->waits;
  uint64_t calls = (uint64_t)sqlite3_column_int64(q, 4), ns = (uint64_t)sqlite3_column_int64(q, 5);
  bool known = sqlite3_column_type(q, 0) != SQLITE_NULL;
  if (!known) t->unknown_calls += calls;
  if (!known) return WEIR_OK;
  t->judged_calls += calls;
  if (sqlite3_column_type(q, 1) != SQLITE_NULL) t->wider_calls += calls, t->wider_ns += ns;
  if (sqlite3_column_int64(q, 0)) return WEIR_OK;
  wr_site_sum *s = wr_site_sum_of(l->sums, sqlite3_column_int64(q, 2),
                                  (uint32_t)sqlite3_column_int64(q, 3) & 0xffff, 0);
  if (!s) return wr_db_out_of_memory(l->db);
  t->redundant_calls += calls, t->redundant_ns += ns;
  s->redundant_calls += calls, s->redundant_ns += ns;
  return WEIR_OK;
}

/* `wait_detail` of the trace, or a temporary one. */
static weir_status find_details(const wait_load *l, bool *found)
{
  *found = l->db->schema >= 2 && l->m->finished;
  if (!*found || wr_db_has_table(l->db, "wait_detail")) return WEIR_OK;
  *found = l->m->total.events <= JUDGED_EVENTS;
  return *found ? wr_wait_write(l->db, true) : WEIR_OK;
}

weir_status wr_wait_truth_load(wr_model *m, wr_site_sums *sums, const wr_db *db)
{
  wait_load l = {m, sums, db};
  weir_status s = find_details(&l, &m->waits.judged);
  if (s || !m->waits.judged) return s;
  return wr_db_each(db,
                    "SELECT d.pending, d.narrower, t.stack, t.api, count(*), sum(e.duration)"
                    " FROM wait_detail d CROSS JOIN event_row e ON e.id = d.id"
                    " CROSS JOIN template t ON t.id = e.template"
                    " WHERE t.kind = 5 AND (d.pending IS NOT 0 OR d.covered_by IS NOT NULL)"
                    " GROUP BY 1, 2, 3, 4",
                    take_waits, &l);
}
