/* taken.c: see taken.h. A trace without such measurements costs one look into the index of the
 * rare; one with them a pass over the events that were around them, where there is more than a
 * thread. */
#include "reports/import/taken.h"
#include <stdlib.h>
#include "reports/base/util.h"

/* Kept until modules are unloaded: all rows are gone through only where some module is. */
static const char taken_sql[] =
    "SELECT e.id, t.process, 1, e.start + e.duration, t.device, t.mem, e.a, e.bytes, t.context,"
    " t.thread, e.start FROM event_row e CROSS JOIN template t ON t.id = e.template"
    " WHERE e.template < 0 AND t.kind = 13 AND t.copy = 11 AND t.mem IN (9, 10) AND e.bytes > 0"
    " AND t.device IS NOT NULL";
static const char unloads_sql[] =
    "SELECT e.id, t.process, 2, e.start, t.device, 9, e.a, 0, t.context, t.thread, e.start"
    " FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE e.template IN"
    " (SELECT x.id FROM template x JOIN api a ON a.id = x.api WHERE a.name = 'cuModuleUnload'"
    " AND x.kind = 12 AND x.status = 0)";
static const char others_sql[] =
    "SELECT e.start, e.start + e.duration, t.process, t.thread, t.device FROM event_row e"
    " CROSS JOIN template t ON t.id = e.template WHERE e.start <= ?2"
    " AND e.start + e.duration >= ?1 AND t.kind <> 13";

static weir_status take_code_event(void *context, sqlite3_stmt *q)
{
  wr_taken_list *list = context;
  int64_t device = sqlite3_column_int64(q, 4);
  bool known = sqlite3_column_type(q, 4) != SQLITE_NULL && device >= 0 && device < WR_NO_DEVICE;
  if (!wr_grow(&list->event, &list->capacity, list->count + 1, sizeof *list->event))
    return weir_fail(WEIR_ENOMEM, "matching code with its unload: out of host memory");
  list->event[list->count++] =
      (wr_taken_event){.e = {.id = sqlite3_column_int64(q, 0),
                             .process = sqlite3_column_int(q, 1),
                             .kind = (uint8_t)sqlite3_column_int(q, 2),
                             .time = sqlite3_column_int64(q, 3),
                             .device = known ? (uint8_t)device : WR_NO_DEVICE,
                             .mem = (uint8_t)sqlite3_column_int(q, 5),
                             .pointer = sqlite3_column_int64(q, 6),
                             .bytes = sqlite3_column_int64(q, 7),
                             .context = (uint8_t)sqlite3_column_int(q, 8),
                             .thread = sqlite3_column_int(q, 9)},
                       .start = sqlite3_column_int64(q, 10)};
  return WEIR_OK;
}

static int by_load_time(const void *left, const void *right)
{
  const wr_memory_event *a = &((const wr_taken_event *)left)->e,
                        *b = &((const wr_taken_event *)right)->e;
  return a->time != b->time ? (a->time > b->time) - (a->time < b->time)
                            : (a->id > b->id) - (a->id < b->id);
}

/* Columns: start, end, process, thread, device. */
static void mix_event(wr_taken_list *list, sqlite3_stmt *q)
{
  int64_t start = sqlite3_column_int64(q, 0), end = sqlite3_column_int64(q, 1);
  size_t low = 0, high = list->count; /* the first that ends at or after `start` */
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (list->event[middle].e.time < start)
      low = middle + 1;
    else
      high = middle;
  }
  bool has_device = sqlite3_column_type(q, 4) != SQLITE_NULL;
  for (; low < list->count && list->event[low].least <= end; low++) {
    wr_taken_event *x = &list->event[low];
    if (x->start > end || x->e.thread == sqlite3_column_int(q, 3)) continue;
    if (x->e.process == sqlite3_column_int(q, 2) ||
        (has_device && x->e.device == sqlite3_column_int64(q, 4)))
      x->mixed = true;
  }
}

static weir_status mix_events(wr_taken_list *list, const wr_db *db)
{
  int64_t threads = 0, first = INT64_MAX; /* `start` of them all */
  weir_status st = wr_db_number(db, "SELECT count(*) FROM thread", &threads);
  sqlite3_stmt *q = NULL;
  if (st || threads < 2) return st;
  for (size_t i = list->count; i-- > 0;) {
    first = list->event[i].start < first ? list->event[i].start : first;
    list->event[i].least = first;
  }
  st = wr_db_prepare(db, others_sql, &q);
  if (st) return st;
  sqlite3_bind_int64(q, 1, first);
  sqlite3_bind_int64(q, 2, list->event[list->count - 1].e.time);
  int code;
  while ((code = sqlite3_step(q)) == SQLITE_ROW)
    mix_event(list, q);
  if (code != SQLITE_DONE) st = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  return st;
}

static void sort_events(wr_taken_list *list)
{
  if (list->count) qsort(list->event, list->count, sizeof *list->event, by_load_time);
}

weir_status wr_taken_load(wr_taken_list *list, const wr_db *db)
{
  size_t kept = 0;
  weir_status st = wr_db_each(db, taken_sql, take_code_event, list);
  if (st || !list->count) return st;
  sort_events(list);
  st = mix_events(list, db);
  for (size_t i = 0; i < list->count; i++)
    if (!list->event[i].mixed) list->event[kept++] = list->event[i];
  list->count = kept;
  if (st || !kept) return st;
  st = wr_db_each(db, unloads_sql, take_code_event, list);
  sort_events(list);
  return st;
}

void wr_taken_free(wr_taken_list *list)
{
  free(list->event);
  *list = (wr_taken_list){0};
}
