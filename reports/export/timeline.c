/* timeline.c: see timeline.h. */
#include "reports/export/timeline.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/demangle.h"
#include "reports/base/util.h"
#include "reports/events/events.h"

enum { MOST_LANES = 1024 /* operations of one stream, or ranges of a thread, at once */ };

/* Numbers of tracks, of each kind in its own part. */
#define TRACK(kind, number) ((uint64_t)(number) << 3 | (uint64_t)(kind) | UINT64_C(4))

/* Rows of a call each, in the order of calls, which events come in, too. */
typedef struct call_rows {
  sqlite3_stmt *q; /* owned; its first column is the call */
  bool more;       /* it stands at a row */
} call_rows;

typedef struct timeline {
  const wr_db *db;
  timeline_take *take;
  void *context;
  hash_map devices; /* ordinal -> bytes live */
  hash_map lanes;   /* hash of a stream and which lane of it -> number, from 1 on */
  int64_t *ends;    /* owned; of the last operation on a lane, by number less 1 */
  size_t capacity;
  hash_map numbers; /* hash of PID or TID and a row -> the number */
  hash_map named;   /* hash of API, KIND or KERNEL and what it is of -> place in `names` */
  char **names;     /* owned, and each */
  size_t name_count, name_capacity;
  call_rows items, worked; /* bytes of the items of a batch; calls of which work is there */
  wr_demangler cxx;
} timeline;

enum { PID, TID, API, KIND, KERNEL };

static const char *text_at(sqlite3_stmt *q, int column)
{
  return (const char *)sqlite3_column_text(q, column);
}

static int64_t device_at(sqlite3_stmt *q, int column)
{
  return sqlite3_column_type(q, column) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, column);
}

/* A time as a timeline can have it: what is before the trace is at its beginning. */
static int64_t time_of(int64_t ns)
{
  return ns < 0 ? 0 : ns;
}

static int64_t slice_end(int64_t start, int64_t duration)
{
  int64_t end;
  if (duration < 0) duration = 0;
  return __builtin_add_overflow(start, duration, &end) ? INT64_MAX : end;
}

/* ---- names and numbers of rows ---------------------------------------------------------------- */

/* A kernel's handle can be given again: its first name is all's. */
static const char names_sql[] =
    "SELECT 2, id, 0, name FROM main.api UNION ALL SELECT 3, id, 0, name FROM main.event_kind"
    " UNION ALL SELECT 4, process, handle, name FROM main.name WHERE kind = 'kernel'";

static uint64_t name_key(int of, int64_t row, uint64_t handle)
{
  return hash_mix(hash_mix(hash_mix(11, (uint64_t)of), (uint64_t)row), handle);
}

static weir_status keep_name(void *context, sqlite3_stmt *q)
{
  timeline *x = context;
  bool added;
  int of = sqlite3_column_int(q, 0);
  const char *text = text_at(q, 3);
  uint64_t *at = hash_map_place(
      &x->named, name_key(of, sqlite3_column_int64(q, 1), (uint64_t)sqlite3_column_int64(q, 2)),
      &added);
  if (!at || !wr_grow(&x->names, &x->name_capacity, x->name_count + 1, sizeof *x->names))
    return export_out_of_memory();
  if (!added) return WEIR_OK;
  char *plain = text && of == KERNEL ? wr_demangle(&x->cxx, text) : NULL;
  if (text && !plain && !(plain = strdup(text))) return export_out_of_memory();
  *at = x->name_count;
  x->names[x->name_count++] = plain;
  return WEIR_OK;
}

/* NULL: it has none. */
static const char *name_of_row(const timeline *x, int of, int64_t row, uint64_t handle)
{
  const uint64_t *at = hash_map_get(&x->named, name_key(of, row, handle));
  return at ? x->names[*at] : NULL;
}

static weir_status keep_number(timeline *x, int of, int64_t row, int64_t number)
{
  return hash_map_put(&x->numbers, name_key(of, row, 0), (uint64_t)number) ? export_out_of_memory()
                                                                           : WEIR_OK;
}

static int64_t number_of_row(const timeline *x, int of, int64_t row)
{
  const uint64_t *number = hash_map_get(&x->numbers, name_key(of, row, 0));
  return number ? (int64_t)*number : 0;
}

/* ---- groups and tracks ----------------------------------------------------------------------- */

static const char processes_sql[] = "SELECT id, pid, exe FROM main.process";
static const char threads_sql[] =
    "SELECT t.id, t.process, p.pid, t.tid, t.name FROM main.thread t CROSS JOIN main.process p"
    " ON p.id = t.process";

static weir_status add_process_track(void *context, sqlite3_stmt *q)
{
  timeline *x = context;
  timeline_item item = {.kind = TIMELINE_PROCESS,
                        .track = TRACK(TIMELINE_PROCESS, sqlite3_column_int64(q, 0)),
                        .pid = sqlite3_column_int64(q, 1),
                        .name = text_at(q, 2)};
  weir_status st = keep_number(x, PID, sqlite3_column_int64(q, 0), item.pid);
  return st ? st : x->take(x->context, &item);
}

static weir_status add_thread_track(void *context, sqlite3_stmt *q)
{
  timeline *x = context;
  timeline_item item = {.kind = TIMELINE_THREAD,
                        .track = TRACK(TIMELINE_THREAD, sqlite3_column_int64(q, 0)),
                        .group = TRACK(TIMELINE_PROCESS, sqlite3_column_int64(q, 1)),
                        .pid = sqlite3_column_int64(q, 2),
                        .tid = sqlite3_column_int64(q, 3),
                        .name = text_at(q, 4)};
  weir_status st = keep_number(x, TID, sqlite3_column_int64(q, 0), item.tid);
  return st ? st : x->take(x->context, &item);
}

/* The bytes live of a device, which is announced when it is first met; *live is valid until the
 * next is. */
static weir_status live_bytes_of_device(timeline *x, int64_t device, uint64_t **live)
{
  bool added;
  *live = hash_map_place(&x->devices, (uint64_t)device, &added);
  if (!*live) return export_out_of_memory();
  timeline_item item = {
      .kind = TIMELINE_DEVICE, .track = TRACK(TIMELINE_DEVICE, device), .device = device};
  return added ? x->take(x->context, &item) : WEIR_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Items of a batched call are one with it. */
static const char batches_sql[] =
    "CREATE TEMP TABLE export_batch(call INTEGER PRIMARY KEY, bytes INTEGER);"
    "CREATE TEMP TABLE export_worked(call INTEGER PRIMARY KEY);"
    "INSERT OR IGNORE INTO export_batch SELECT i.call, sum(e.bytes) FROM batch_item i"
    " CROSS JOIN event e ON e.id = i.id WHERE i.call IS NOT NULL GROUP BY i.call;";
/* As an older trace has them. */
static const char old_batches_sql[] =
    "CREATE TEMP TABLE batch_item(id INTEGER PRIMARY KEY, call INTEGER);"
    "INSERT OR IGNORE INTO temp.batch_item SELECT e.id, e.call FROM event e"
    " WHERE e.call IS NOT NULL;";
static const char worked_sql[] =
    "INSERT OR IGNORE INTO export_worked SELECT ifnull(i.call, d.event) FROM main.device_work d"
    " LEFT JOIN batch_item i ON i.id = d.event WHERE d.event IS NOT NULL AND d.kind <> 5"
    " AND " WR_DEVICE_TIME;

static weir_status call_rows_next(const timeline *x, call_rows *r)
{
  int rc = sqlite3_step(r->q);
  r->more = rc == SQLITE_ROW;
  return r->more || rc == SQLITE_DONE ? WEIR_OK : wr_db_fail(x->db, "reading");
}

static weir_status call_rows_begin(const timeline *x, call_rows *r, const char *sql)
{
  weir_status st = wr_db_prepare(x->db, sql, &r->q);
  return st ? st : call_rows_next(x, r);
}

/* To the row of this call; *there: it has one. */
static weir_status call_rows_to(const timeline *x, call_rows *r, int64_t call, bool *there)
{
  weir_status st = WEIR_OK;
  while (!st && r->more && sqlite3_column_int64(r->q, 0) < call)
    st = call_rows_next(x, r);
  *there = !st && r->more && sqlite3_column_int64(r->q, 0) == call;
  return st;
}

static weir_status add_call_slice(void *context, const wr_event *e)
{
  timeline *x = context;
  const wr_template *t = e->t;
  bool batch, worked;
  if (t->kind == WEIR_EV_CACHE || t->flags & WEIR_EVF_BATCH) return WEIR_OK;
  weir_status st = call_rows_to(x, &x->items, e->id, &batch);
  if (!st) st = call_rows_to(x, &x->worked, e->id, &worked);
  if (st) return st;
  timeline_item item = {
      .kind = TIMELINE_CALL,
      .call = e->id,
      .track = TRACK(TIMELINE_THREAD, t->thread),
      .pid = number_of_row(x, PID, t->process),
      .tid = number_of_row(x, TID, t->thread),
      .start = time_of(e->start),
      .name = name_of_row(x, API, t->api, 0),
      .category = name_of_row(x, KIND, t->kind, 0),
      .status = t->status,
      .stack = t->stack,
      .sized = t->sized,
      .bytes = t->sized ? (int64_t)e->bytes + (batch ? sqlite3_column_int64(x->items.q, 1) : 0) : 0,
      .kernel = t->kind == WEIR_EV_LAUNCH ? name_of_row(x, KERNEL, t->process, e->a) : NULL,
      .works = worked};
  item.end = slice_end(item.start, e->ns);
  return x->take(x->context, &item);
}

static weir_status walk_calls(timeline *x)
{
  wr_events events;
  weir_status st = wr_db_each(x->db, names_sql, keep_name, x);
  if (!st) st = call_rows_begin(x, &x->items, "SELECT call, bytes FROM export_batch ORDER BY call");
  if (!st) st = call_rows_begin(x, &x->worked, "SELECT call FROM export_worked ORDER BY call");
  if (st) return st;
  st = wr_events_open(&events, x->db);
  if (!st) st = wr_events_each(&events, add_call_slice, x);
  wr_events_close(&events);
  return st;
}

/* ---- what overlaps: a track becomes several -------------------------------------------------- */

/* The first lane of what has this key on which nothing is under way at `item->start`. */
static weir_status lane_of(timeline *x, uint64_t key, timeline_kind kind, timeline_item *item)
{
  for (uint64_t lane = 0; lane < MOST_LANES; lane++) {
    bool added;
    uint64_t number = export_number(&x->lanes, hash_mix(key, lane), &added);
    if (!number || !wr_grow(&x->ends, &x->capacity, number, sizeof *x->ends))
      return export_out_of_memory();
    item->track = TRACK(TIMELINE_STREAM, number);
    timeline_item track = *item;
    track.kind = kind;
    track.name = NULL;
    weir_status st = added ? x->take(x->context, &track) : WEIR_OK;
    if (st) return st;
    if (!added && x->ends[number - 1] > item->start) continue;
    x->ends[number - 1] = item->end;
    return WEIR_OK;
  }
  return weir_fail(WEIR_ECORRUPT, "%s is a damaged trace: more than %d %s at once", x->db->path,
                   MOST_LANES,
                   kind == TIMELINE_STREAM ? "operations of one stream" : "ranges of one thread");
}

/* ---- what devices did ------------------------------------------------------------------------ */

static const char work_sql[] =
    "SELECT d.process, d.device, d.context, d.stream, d.start, d.\"end\", ifnull((SELECT i.call "
    "FROM"
    " batch_item i WHERE i.id = d.event), d.event), CASE d.kind WHEN 1 THEN 'copy ' || "
    "ifnull((SELECT"
    " replace(name, '_', ' ') FROM main.copy_direction x WHERE x.id = d.copy), '') WHEN 2 THEN"
    " 'memset' WHEN 3 THEN 'kernel' ELSE 'graph' END,"
    " CASE WHEN d.kind IN (1, 2) THEN d.bytes END,"
    " CASE WHEN d.kind = 3 THEN (SELECT n.name FROM main.name n WHERE n.process = d.process AND"
    " n.kind = 'kernel' AND n.handle = (SELECT e.a FROM event e WHERE e.id = d.event AND e.kind = "
    "6))"
    " END FROM main.device_work d WHERE d.kind BETWEEN 1 AND 4 AND " WR_DEVICE_TIME
    " ORDER BY d.start, d.id";

static weir_status add_device_slice(void *context, sqlite3_stmt *q)
{
  timeline *x = context;
  uint64_t *live, stream = 9;
  const char *kernel = text_at(q, 9);
  timeline_item item = {.kind = TIMELINE_WORK,
                        .device = device_at(q, 1),
                        .context = sqlite3_column_int64(q, 2),
                        .stream = sqlite3_column_int64(q, 3),
                        .start = time_of(sqlite3_column_int64(q, 4)),
                        .end = time_of(sqlite3_column_int64(q, 5)),
                        .call = sqlite3_column_int64(q, 6),
                        .category = "device",
                        .sized = sqlite3_column_type(q, 8) != SQLITE_NULL,
                        .bytes = sqlite3_column_int64(q, 8)};
  weir_status st = live_bytes_of_device(x, item.device, &live);
  item.group = TRACK(TIMELINE_DEVICE, item.device);
  for (int i = 0; i < 4; i++)
    stream = hash_mix(stream, (uint64_t)sqlite3_column_int64(q, i));
  if (!st) st = lane_of(x, stream, TIMELINE_STREAM, &item);
  if (st) return st;
  char *plain = kernel ? wr_demangle(&x->cxx, kernel) : NULL;
  item.name = plain ? plain : kernel ? kernel : text_at(q, 7);
  st = x->take(x->context, &item);
  free(plain);
  return st;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* One that never ended lasts as long as its process. */
static const char ranges_of_threads[] =
    "SELECT r.process, r.thread, p.pid, (SELECT tid FROM main.thread x WHERE x.id = r.thread),"
    " r.start, max(r.start, coalesce(r.\"end\", p.\"end\", r.start)),"
    " (SELECT text FROM main.range_name n WHERE n.id = r.name)"
    " FROM main.range_row r CROSS JOIN main.process p ON p.id = r.process"
    " WHERE r.start IS NOT NULL ORDER BY r.start, r.id";

static weir_status add_range_slice(void *context, sqlite3_stmt *q)
{
  timeline *x = context;
  int64_t process = sqlite3_column_int64(q, 0), thread = sqlite3_column_int64(q, 1);
  timeline_item item = {.kind = TIMELINE_RANGE,
                        .group = TRACK(TIMELINE_PROCESS, process),
                        .pid = sqlite3_column_int64(q, 2),
                        .tid = sqlite3_column_int64(q, 3),
                        .start = time_of(sqlite3_column_int64(q, 4)),
                        .end = time_of(sqlite3_column_int64(q, 5)),
                        .category = "nvtx"};
  uint64_t key = hash_mix(hash_mix(10, (uint64_t)process), (uint64_t)thread);
  weir_status st = lane_of(x, key, TIMELINE_RANGES, &item);
  item.name = text_at(q, 6);
  return st ? st : x->take(x->context, &item);
}

/* ---- memory ---------------------------------------------------------------------------------- */

#define DEVICE_SIDE "b.how <> 4 AND NOT b.registered AND b.mem NOT IN (1, 2, 6, 8, 9, 10)"
static const char live_of_devices[] =
    "SELECT device, at, change FROM (SELECT b.device AS device, b.born AS place, b.start AS at,"
    " b.bytes AS change FROM block b WHERE " DEVICE_SIDE " UNION ALL SELECT b.device, b.died,"
    " ifnull(b.\"end\", (SELECT p.\"end\" FROM main.process p WHERE p.id = b.process)), -b.bytes"
    " FROM block b WHERE " DEVICE_SIDE " AND b.died IS NOT NULL) WHERE at IS NOT NULL"
    " ORDER BY place, change";

static weir_status take_live(void *context, sqlite3_stmt *q)
{
  timeline *x = context;
  uint64_t *live;
  int64_t device = device_at(q, 0);
  weir_status st = live_bytes_of_device(x, device, &live);
  if (st) return st;
  *live += (uint64_t)sqlite3_column_int64(q, 2);
  timeline_item item = {.kind = TIMELINE_LIVE,
                        .track = TRACK(TIMELINE_DEVICE, device),
                        .device = device,
                        .start = time_of(sqlite3_column_int64(q, 1)),
                        .sized = true,
                        .bytes = (int64_t)*live};
  return x->take(x->context, &item);
}

static weir_status walk_tracks(timeline *x)
{
  bool work =
      wr_db_has_table(x->db, "device_work") && wr_db_has_column(x->db, "device_work", "graph_node");
  bool ranges = wr_db_has_table(x->db, "range_row") && wr_db_has_table(x->db, "range_name");
  weir_status st = wr_db_each(x->db, processes_sql, add_process_track, x);
  if (!st) st = wr_db_each(x->db, threads_sql, add_thread_track, x);
  if (!st && x->db->schema < 2) st = wr_db_exec(x->db, old_batches_sql);
  if (!st) st = wr_db_exec(x->db, batches_sql);
  if (!st && work) st = wr_db_exec(x->db, worked_sql);
  if (!st) st = walk_calls(x);
  if (!st && work) st = wr_db_each(x->db, work_sql, add_device_slice, x);
  if (!st && ranges) st = wr_db_each(x->db, ranges_of_threads, add_range_slice, x);
  return st ? st : wr_db_each(x->db, live_of_devices, take_live, x);
}

weir_status timeline_walk(const wr_db *db, timeline_take *take, void *context)
{
  timeline x = {.db = db, .take = take, .context = context};
  wr_demangler_open(&x.cxx);
  weir_status st = walk_tracks(&x);
  wr_demangler_close(&x.cxx);
  sqlite3_finalize(x.items.q);
  sqlite3_finalize(x.worked.q);
  for (size_t i = 0; i < x.name_count; i++)
    free(x.names[i]);
  free(x.names);
  hash_map_free(&x.named);
  hash_map_free(&x.numbers);
  hash_map_free(&x.devices);
  hash_map_free(&x.lanes);
  free(x.ends);
  return st;
}
