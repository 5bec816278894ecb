/* timeline.c: see timeline.h. */
#include "reports/export/timeline.h"
#include <stdlib.h>
#include "reports/base/demangle.h"
#include "reports/base/util.h"

enum { MOST_LANES = 1024 /* operations of one stream, or ranges of a thread, at once */ };

/* Numbers of tracks, of each kind in its own part. */
#define TRACK(kind, number) ((uint64_t)(number) << 3 | (uint64_t)(kind) | UINT64_C(4))

typedef struct timeline {
  const wr_db *db;
  timeline_take *take;
  void *context;
  hash_map devices; /* ordinal -> bytes live */
  hash_map lanes;   /* hash of a stream and which lane of it -> number, from 1 on */
  int64_t *ends;    /* owned; of the last operation on a lane, by number less 1 */
  size_t capacity;
  wr_demangler cxx;
} timeline;

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
  return x->take(x->context, &item);
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
  return x->take(x->context, &item);
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
static const char calls_of_threads[] =
    "SELECT e.id, e.thread, (SELECT pid FROM main.process x WHERE x.id = e.process),"
    " (SELECT tid FROM main.thread x WHERE x.id = e.thread), e.start, e.\"end\" - e.start,"
    " (SELECT name FROM main.api x WHERE x.id = e.api),"
    " (SELECT name FROM main.event_kind x WHERE x.id = e.kind), e.status, e.stack,"
    " CASE WHEN e.kind IN (1, 3, 4, 11) THEN e.bytes +"
    " ifnull((SELECT bytes FROM export_batch b WHERE b.call = e.id), 0) END,"
    " CASE WHEN e.kind = 6 THEN (SELECT n.name FROM main.name n WHERE n.process = e.process"
    " AND n.kind = 'kernel' AND n.handle = e.a) END,"
    " EXISTS(SELECT 1 FROM export_worked w WHERE w.call = e.id)"
    " FROM event e WHERE e.kind <> 13 AND NOT (e.flags & 32)";

static weir_status add_call_slice(void *context, sqlite3_stmt *q)
{
  timeline *x = context;
  const char *kernel = text_at(q, 11);
  char *plain = kernel ? wr_demangle(&x->cxx, kernel) : NULL;
  timeline_item item = {.kind = TIMELINE_CALL,
                        .call = sqlite3_column_int64(q, 0),
                        .track = TRACK(TIMELINE_THREAD, sqlite3_column_int64(q, 1)),
                        .pid = sqlite3_column_int64(q, 2),
                        .tid = sqlite3_column_int64(q, 3),
                        .start = time_of(sqlite3_column_int64(q, 4)),
                        .name = text_at(q, 6),
                        .category = text_at(q, 7),
                        .status = sqlite3_column_int64(q, 8),
                        .stack = sqlite3_column_int64(q, 9),
                        .sized = sqlite3_column_type(q, 10) != SQLITE_NULL,
                        .bytes = sqlite3_column_int64(q, 10),
                        .kernel = plain ? plain : kernel,
                        .works = sqlite3_column_int(q, 12) != 0};
  item.end = slice_end(item.start, sqlite3_column_int64(q, 5));
  weir_status st = x->take(x->context, &item);
  free(plain);
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
  if (!st) st = wr_db_each(x->db, calls_of_threads, add_call_slice, x);
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
  hash_map_free(&x.devices);
  hash_map_free(&x.lanes);
  free(x.ends);
  return st;
}
