/* profile.c: see profile.h. */
#include "reports/export/profile.h"
#include <stdlib.h>
#include "reports/base/util.h"

const profile_weight_name profile_weights[PROFILE_WEIGHTS] = {
    [PROFILE_CALLS] = {"calls", "count"},
    [PROFILE_HOST_TIME] = {"host-time", "nanoseconds"},
    [PROFILE_ALLOCATED] = {"allocated", "bytes"},
    [PROFILE_COPIED] = {"copied", "bytes"},
    [PROFILE_LIVE_AT_PEAK] = {"live-at-peak", "bytes"}};

/* A batched call is one call, its time its first item's. Facts about caches are no calls. */
static const char calls_sql[] =
    "SELECT e.stack, e.api, NOT (e.flags & 32) * CASE WHEN e.kind = 5 AND e.status = 600"
    " THEN e.bytes + 1 ELSE 1 END, CASE WHEN e.flags & 32 THEN 0 ELSE e.\"end\" - e.start END,"
    " CASE WHEN e.kind = 1 AND e.status = 0 AND NOT (e.flags & 16) AND e.mem NOT IN (1, 2, 6, 8)"
    " THEN e.bytes END,"
    " CASE WHEN e.kind = 3 AND e.status = 0 AND NOT (e.flags & 16) THEN e.bytes END, NULL"
    " FROM event e WHERE e.kind <> 13";

/* What launches of graphs copied. */
static const char graphs_sql[] =
    "SELECT e.stack, e.api, NULL, NULL, NULL, w.bytes * w.count, NULL FROM graph_launch l"
    " CROSS JOIN event e ON e.id = l.event CROSS JOIN graph_work w ON w.content = l.content"
    " WHERE w.type = 1 AND NOT w.conditional AND e.status = 0";

static const char live_sql[] =
    "SELECT b.stack, (SELECT e.api FROM event e WHERE e.id = b.alloc), NULL, NULL, NULL, NULL,"
    " b.bytes FROM block b, (SELECT peak_place AS place FROM memory WHERE device IS NULL AND mem"
    " IS NULL AND NOT registered LIMIT 1) WHERE b.born <= place AND (b.died IS NULL OR b.died >"
    " place) AND b.how <> 4 AND NOT b.registered AND b.mem NOT IN (1, 2, 6, 8, 9, 10)";

static int64_t sum_saturated(int64_t a, int64_t b)
{
  int64_t sum;
  if (b < 0) return a;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* q: stack, api, and what to add of each weight */
static weir_status add_profile_row(void *context, sqlite3_stmt *q)
{
  bool added;
  profile *p = context;
  int64_t stack = sqlite3_column_int64(q, 0), api = sqlite3_column_int64(q, 1);
  uint64_t *at =
      hash_map_place(&p->index, hash_mix(hash_mix(5, (uint64_t)stack), (uint64_t)api), &added);
  if (!at) return export_out_of_memory();
  if (added) {
    if (!wr_grow(&p->sum, &p->capacity, p->count + 1, sizeof *p->sum))
      return export_out_of_memory();
    *at = p->count++;
    p->sum[*at] = (profile_sum){.stack = stack, .api = api};
  }
  for (int i = 0; i < PROFILE_WEIGHTS; i++)
    p->sum[*at].weight[i] = sum_saturated(p->sum[*at].weight[i], sqlite3_column_int64(q, i + 2));
  return WEIR_OK;
}

weir_status profile_open(profile *p, const char *trace)
{
  *p = (profile){0};
  weir_status st = export_input_open(&p->input, trace);
  const wr_db *db = &p->input.in.db;
  if (!st) st = wr_db_each(db, calls_sql, add_profile_row, p);
  if (!st && wr_schema_graph_memory(db)) st = wr_db_each(db, graphs_sql, add_profile_row, p);
  if (!st) st = wr_db_each(db, live_sql, add_profile_row, p);
  if (!st) st = wr_db_number(db, "SELECT value FROM meta WHERE key = 'duration_ns'", &p->duration);
  if (!st)
    st = wr_db_number(db, "SELECT value FROM meta WHERE key = 'start_realtime_ns'", &p->began);
  return st ? st : wr_db_prepare(db, "SELECT name FROM main.api WHERE id = ?1", &p->api_name);
}

void profile_close(profile *p)
{
  sqlite3_finalize(p->api_name);
  export_input_close(&p->input);
  hash_map_free(&p->index);
  free(p->sum);
  *p = (profile){0};
}

weir_status profile_each(profile *p,
                         weir_status (*take)(void *context, const profile_sample *sample),
                         void *context)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; i < p->count && !st; i++) {
    profile_sample x = {.weight = p->sum[i].weight};
    st = export_frames(&p->input, p->sum[i].stack, &x.frames, &x.count);
    if (st) break;
    sqlite3_bind_int64(p->api_name, 1, p->sum[i].api);
    if (sqlite3_step(p->api_name) == SQLITE_ROW)
      x.function = (const char *)sqlite3_column_text(p->api_name, 0);
    if (!x.function) x.function = "(no function)";
    st = take(context, &x);
    sqlite3_reset(p->api_name);
  }
  return st;
}
