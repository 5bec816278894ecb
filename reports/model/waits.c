/* waits.c: waits that had nothing to wait for, waits for more than there was, and what devices did
 * while the host waited.
 *
 * What each had to wait for, and how its time divides, is in a resolved trace; of another it is made
 * for the report. One that came before any work is not counted: most such calls bring a
 * context up. */
#include "reports/model/waits.h"
#include <stdio.h>
#include <stdlib.h>
#include "reports/model/wait_log.h"

typedef struct wait_load {
  wr_model *m;
  wr_site_sums *sums;
  const wr_events *events;
  const wr_db *db;
} wait_load;

/* Waits of one place, that were asked for. */
static weir_status add_waits(wait_load *l, int64_t stack, int64_t api, const wr_wait_sum *x)
{
  wr_wait_truth *t = &l->m->waits;
  t->unknown_calls += x->unknown;
  t->judged_calls += x->judged;
  if (!x->redundant && !x->wider) return WEIR_OK;
  wr_site_sum *s = wr_site_sum_of(l->sums, stack, (uint32_t)api & 0xffff, 0);
  if (!s) return wr_db_out_of_memory(l->db);
  t->wider_calls += x->wider, t->wider_ns += x->wider_ns;
  s->wider_calls += x->wider, s->wider_ns += x->wider_ns;
  t->redundant_calls += x->redundant, t->redundant_ns += x->redundant_ns;
  s->redundant_calls += x->redundant, s->redundant_ns += x->redundant_ns;
  return WEIR_OK;
}

/* pending, too wide, stack, api, calls, ns */
static weir_status take_waits(void *context, sqlite3_stmt *q)
{
  uint64_t calls = (uint64_t)sqlite3_column_int64(q, 4), ns = (uint64_t)sqlite3_column_int64(q, 5);
  bool known = sqlite3_column_type(q, 0) != SQLITE_NULL;
  bool wider = sqlite3_column_int(q, 1), pending = sqlite3_column_int64(q, 0) != 0;
  wr_wait_sum x = {.judged = known ? calls : 0, .unknown = known ? 0 : calls};
  if (known && !pending) x.redundant = calls, x.redundant_ns = ns;
  if (known && pending && wider) x.wider = calls, x.wider_ns = ns;
  return add_waits(context, sqlite3_column_int64(q, 2), sqlite3_column_int64(q, 3), &x);
}

/* Of a resolved trace. */
static weir_status judge_waits(wait_load *l)
{
  weir_status s = wr_schema_streams_view(l->db);
  return s ? s
           : wr_db_each(l->db,
                        "SELECT d.pending, " WR_WIDE_WAIT ", t.stack, t.api, count(*),"
                        " CAST(total(e.duration) AS INTEGER)"
                        " FROM wait_detail d CROSS JOIN event_row e ON e.id = d.id"
                        " CROSS JOIN template t ON t.id = e.template"
                        " WHERE t.kind = 5 AND (d.pending IS NOT 0 OR d.covered_by IS NOT NULL)"
                        " GROUP BY 1, 2, 3, 4",
                        take_waits, l);
}

/* ---- how their time divides ------------------------------------------------------------------ */

static void add_part(wr_wait_part *to, const wr_wait_part *x)
{
  to->calls += x->calls;
  to->working_ns += x->working_ns, to->other_ns += x->other_ns;
  to->idle_ns += x->idle_ns, to->unknown_ns += x->unknown_ns;
}

/* function, calls, working, other, idle, unknown */
static weir_status take_part(void *context, sqlite3_stmt *q)
{
  const wait_load *l = context;
  wr_wait_truth *t = &l->m->waits;
  uint64_t v[5];
  for (int i = 0; i < 5; i++) {
    int64_t n = sqlite3_column_int64(q, 1 + i);
    v[i] = n > 0 ? (uint64_t)n : 0;
  }
  wr_wait_part x = {wr_db_text(q, 0), v[0], v[1], v[2], v[3], v[4]};
  if (!x.function || !wr_grow(&t->part, &t->part_capacity, t->part_count + 1, sizeof(x))) {
    free(x.function);
    return wr_db_out_of_memory(l->db);
  }
  add_part(&t->all, &x);
  t->part[t->part_count++] = x;
  return WEIR_OK;
}

static weir_status divide_waits(wait_load *l)
{
#define SUM(column) "CAST(total(w." column ") AS INTEGER)"
  return wr_db_each(
      l->db,
      "SELECT (SELECT name FROM api a WHERE a.id = t.api), count(*)," SUM("working_ns") "," SUM(
          "other_ns") "," SUM("idle_ns") "," SUM("unknown_ns") " FROM wait_time w CROSS JOIN "
                                                               "wait_detail d ON d.id = w.id"
                                                               " CROSS JOIN event_row e ON e.id = "
                                                               "w.id"
                                                               " CROSS JOIN template t ON t.id = "
                                                               "e.template"
                                                               " WHERE d.pending IS NOT 0 OR "
                                                               "d.covered_by IS NOT NULL GROUP BY "
                                                               "t.api ORDER BY"
                                                               " total(w.working_ns + w.other_ns + "
                                                               "w.idle_ns + w.unknown_ns) DESC, "
                                                               "t.api",
      take_part, l);
#undef SUM
}

/* ---- finding it, or making it ---------------------------------------------------------------- */

static weir_status count_work(const wr_db *db, int64_t *count)
{
  char sql[96];
  *count = 0;
  if (!wr_db_has_table(db, "device_work") || !wr_db_has_table(db, "device_fact")) return WEIR_OK;
  (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM (SELECT 1 FROM main.device_work LIMIT %d)",
                 WR_JUDGED_WORK + 1);
  return wr_db_number(db, sql, count);
}

/* Whether the trace has all that the division of a resolved one is made of. */
static bool has_division(const wr_db *db)
{
  return wr_db_has_table(db, "wait_time") && wr_db_has_table(db, "device_idle") &&
         wr_db_has_table(db, "queue_full") && wr_db_has_column(db, "device_gap", "queue_full_ns");
}

weir_status wr_wait_truth_begin(wr_model *m, const wr_events *events, wr_wait_pass **pass)
{
  const wr_db *db = events->db;
  wr_wait_truth *t = &m->waits;
  int64_t work = 0;
  *pass = NULL;
  t->why = db->schema < 2 ? WR_UNJUDGED_VERSION : !m->finished ? WR_UNJUDGED_UNFINISHED : WR_JUDGED;
  t->why_undivided = t->why;
  if (t->why) return WEIR_OK;
  weir_status s = count_work(db, &work);
  if (s) return s;
  if (wr_db_has_table(db, "wait_detail")) {
    t->divided = work && has_division(db);
    if (!t->divided) t->why_undivided = WR_UNJUDGED_RESOLVED;
    return WEIR_OK;
  }
  t->divided = work && work <= WR_JUDGED_WORK;
  if (work > WR_JUDGED_WORK) t->why_undivided = WR_UNJUDGED_WORK;
  return wr_wait_begin(pass, events, true, t->divided);
}

/* `wait_detail` and what belongs to it, temporary ones. */
static weir_status make_details(wait_load *l, wr_wait_pass *pass)
{
  weir_status s = wr_wait_end(pass);
  for (size_t i = 0; !s && i < l->events->count; i++) {
    const wr_template *t = &l->events->templates[i];
    s = add_waits(l, t->stack, t->api, &wr_wait_sums(pass)[i]);
  }
  return s;
}

weir_status wr_wait_truth_load(wr_model *m, wr_site_sums *sums, const wr_events *events,
                               wr_wait_pass *pass)
{
  const wr_db *db = events->db;
  wait_load l = {m, sums, events, db};
  if (m->waits.why) return WEIR_OK;
  weir_status s = pass ? make_details(&l, pass) : judge_waits(&l);
  m->waits.judged = !s;
  if (!s && m->waits.divided) s = divide_waits(&l);
  if (!s && m->waits.divided) s = wr_idle_load(&m->device_times, db);
  return s;
}

void wr_wait_truth_free(wr_wait_truth *t)
{
  for (size_t i = 0; i < t->part_count; i++)
    free(t->part[i].function);
  free(t->part);
  *t = (wr_wait_truth){0};
}
