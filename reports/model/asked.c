/* asked.c: calls that ask, which a trace has as counts of places (SCHEMA.md: asked). How long they
 * took is an estimate. */
#include "reports/model/sites.h"

typedef struct loading {
  wr_model *m;
  wr_site_sums *sums;
  const wr_db *db;
} loading;

/* stack, api, calls, ns */
static weir_status take_asked(void *context, sqlite3_stmt *q)
{
  const loading *l = context;
  uint32_t api = (uint32_t)sqlite3_column_int64(q, 1);
  wr_site_sum *x = wr_site_sum_of(l->sums, sqlite3_column_int64(q, 0), api, 0);
  if (!x) return wr_db_out_of_memory(l->db);
  x->asked_calls += (uint64_t)sqlite3_column_int64(q, 2);
  x->asked_ns += (uint64_t)sqlite3_column_int64(q, 3);
  for (size_t i = 0; i < l->m->api_count; i++)
    if (l->m->apis[i].api == api) l->m->apis[i].counted = true;
  return WEIR_OK;
}

weir_status wr_asked_load(wr_model *m, wr_site_sums *sums, const wr_db *db)
{
  loading l = {m, sums, db};
  if (db->schema < 2 || !wr_db_has_table(db, "asked")) return WEIR_OK;
  return wr_db_each(db,
                    "SELECT max(t.stack, 0), t.api, max(s.calls, 0), max(s.about_ns, 0)"
                    " FROM main.asked s CROSS JOIN event_row e ON e.id = s.event"
                    " CROSS JOIN template t ON t.id = e.template",
                    take_asked, &l);
}
