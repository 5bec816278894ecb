/* idle.c: why devices were idle, and the longest times in which they were. Nothing is made here: the
 * sums and the gaps are the tables `device_idle` and `device_gap` (SCHEMA.md). */
#include <stdio.h>
#include <stdlib.h>
#include "reports/model/device_times.h"

typedef struct idle_load {
  wr_device_times *t;
  const wr_db *db;
} idle_load;

static wr_device_time *device_of(const wr_device_times *t, int device)
{
  for (size_t i = 0; i < t->count; i++)
    if (t->device[i].device == device) return &t->device[i];
  return NULL;
}

static uint64_t positive(int64_t ns)
{
  return ns > 0 ? (uint64_t)ns : 0;
}

/* A function's name; false: out of memory. */
static bool read_function(sqlite3_stmt *q, int column, char **out)
{
  *out = NULL;
  if (sqlite3_column_type(q, column) != SQLITE_TEXT) return true;
  *out = wr_db_text(q, column);
  return *out != NULL;
}

/* device, cause, name of the function, ns; the largest first */
static weir_status take_part(void *context, sqlite3_stmt *q)
{
  const idle_load *l = context;
  wr_device_time *d = device_of(l->t, sqlite3_column_int(q, 0));
  int cause = sqlite3_column_int(q, 1);
  int64_t ns = sqlite3_column_int64(q, 3);
  if (!d || cause < 0 || cause >= WR_IDLE_CAUSES || ns <= 0) return WEIR_OK;
  wr_idle_part part = {.cause = (wr_idle_cause)cause, .ns = (uint64_t)ns};
  if (!wr_grow(&d->idle, &d->idle_capacity, d->idle_count + 1, sizeof(part)) ||
      !read_function(q, 2, &part.function))
    return wr_db_out_of_memory(l->db);
  d->idle[d->idle_count++] = part;
  return WEIR_OK;
}

/* device, name of the function, ns; the largest first */
static weir_status take_full(void *context, sqlite3_stmt *q)
{
  const idle_load *l = context;
  wr_device_time *d = device_of(l->t, sqlite3_column_int(q, 0));
  uint64_t ns = positive(sqlite3_column_int64(q, 2));
  if (!d || !ns) return WEIR_OK;
  d->full_ns += ns;
  if (d->full_function || read_function(q, 1, &d->full_function)) return WEIR_OK;
  return wr_db_out_of_memory(l->db);
}

/* device, start, end, ns of each cause, name of the function; of a device the longest first */
static weir_status take_gap(void *context, sqlite3_stmt *q)
{
  const idle_load *l = context;
  wr_device_time *d = device_of(l->t, sqlite3_column_int(q, 0));
  if (!d || d->gap_count == WR_GAPS) return WEIR_OK;
  wr_idle_gap *g = &d->gap[d->gap_count];
  g->start = sqlite3_column_int64(q, 1);
  g->end = sqlite3_column_int64(q, 2);
  for (int i = 0; i < WR_IDLE_CAUSES; i++)
    g->ns[i] = positive(sqlite3_column_int64(q, 3 + i));
  if (g->end <= g->start) return WEIR_OK;
  if (!read_function(q, 3 + WR_IDLE_CAUSES, &g->function)) return wr_db_out_of_memory(l->db);
  d->gap_count++;
  return WEIR_OK;
}

weir_status wr_idle_load(wr_device_times *t, const wr_db *db)
{
  idle_load l = {t, db};
  weir_status s = wr_db_each(db,
                             "SELECT i.device, i.cause, a.name, i.ns FROM device_idle i"
                             " LEFT JOIN api a ON a.id = i.api ORDER BY i.ns DESC, i.cause, i.api",
                             take_part, &l);
  if (!s)
    s = wr_db_each(db,
                   "SELECT f.device, a.name, f.ns FROM queue_full f LEFT JOIN api a ON a.id = f.api"
                   " ORDER BY f.ns DESC, f.api",
                   take_full, &l);
  for (size_t i = 0; !s && i < t->count; i++) {
    char sql[400];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT g.device, g.start, g.\"end\", g.unknown_ns, g.queued_ns,"
                   " g.host_waiting_ns, g.host_elsewhere_ns, g.no_call_ns, g.queue_full_ns, a.name"
                   " FROM device_gap g LEFT JOIN api a ON a.id = g.api WHERE g.device = %d"
                   " AND g.\"end\" > g.start ORDER BY g.\"end\" - g.start DESC, g.id LIMIT %d",
                   t->device[i].device, WR_GAPS);
    s = wr_db_each(db, sql, take_gap, &l);
  }
  return s;
}

void wr_idle_free(wr_device_time *d)
{
  for (size_t i = 0; i < d->idle_count; i++)
    free(d->idle[i].function);
  for (size_t i = 0; i < d->gap_count; i++)
    free(d->gap[i].function);
  free(d->idle);
  free(d->full_function);
  d->full_function = NULL;
  d->idle = NULL;
  d->idle_count = d->idle_capacity = d->gap_count = 0;
}
