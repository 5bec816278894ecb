/* resume.c: see resume.h.
 *
 * A spool is known again by what its header has of its process, and of each of its threads the
 * trace knows the first record that it lacks: the number of its chunk among the thread's, and the
 * slot. That is committed with the rows before it, so however an importer ends, the next one adds
 * what is missing and nothing twice. The maps of a spool are made again from the rows; where rows
 * do not have, from this table. */
#include "reports/import/resume.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"

/* ---- keeping --------------------------------------------------------------------------------- */

static weir_status keep_value(trace_importer *im, int64_t process, int what, uint64_t key,
                              uint64_t value)
{
  wr_op op = {.sql = "INSERT OR REPLACE INTO resume VALUES(?,?,?,?)",
              WR_NUMBERS(process, what, (int64_t)key, (int64_t)value)};
  return wr_batch_op(&im->batch, op);
}

/* What is kept of a spool's maps is for who goes on with it: of one that ends before it is written,
 * as most of thousands of short processes do, nothing is. */
static weir_status keep_map_entry(wr_spool *s, wr_resume_row row)
{
  if (s->resume_count == s->resume_capacity) {
    size_t capacity = s->resume_capacity ? s->resume_capacity * 2 : 32;
    wr_resume_row *more = realloc(s->resume, capacity * sizeof *more);
    if (!more) return weir_fail(WEIR_ENOMEM, "no memory for what the trace knows of a spool");
    s->resume = more;
    s->resume_capacity = capacity;
  }
  s->resume[s->resume_count++] = row;
  return WEIR_OK;
}

weir_status wr_resume_keep(wr_spool *s, int what, uint64_t key, uint64_t value)
{
  return keep_map_entry(s, (wr_resume_row){what, key, value, false});
}

weir_status wr_resume_drop(wr_spool *s, int what, uint64_t key)
{
  return keep_map_entry(s, (wr_resume_row){what, key, 0, true});
}

static weir_status queue_row(const wr_spool *s, const wr_resume_row *r)
{
  if (!r->gone) return keep_value(s->im, s->process, r->what, r->key, r->value);
  wr_op op = {.sql = "DELETE FROM resume WHERE process = ? AND what = ? AND key = ?",
              WR_NUMBERS(s->process, r->what, (int64_t)r->key)};
  return wr_batch_op(&s->im->batch, op);
}

/* Whether a spool that has ended must be known by it: that it is in the trace, and how far. */
static bool outlives_spool(const wr_resume_row *r)
{
  return r->what == WR_RESUME_POSITION || (r->what == WR_RESUME_FACT && r->key == WR_FACT_IDENTITY);
}

static weir_status queue_rows(wr_spool *s)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; i < s->resume_count && !st; i++)
    if (!s->drained || outlives_spool(&s->resume[i])) st = queue_row(s, &s->resume[i]);
  if (!st) s->resume_count = 0;
  return st;
}

static uint64_t identity_of(const wr_spool *s)
{
  const spool_header *h = spool_reader_header(s->reader);
  uint64_t boot[2];
  memcpy(boot, h->boot_id, sizeof(boot));
  uint64_t hash = hash_mix(hash_mix(hash_mix(5, boot[0]), boot[1]), h->pid);
  return hash_mix(hash_mix(hash, h->start_time), h->clock_first.mono_ns);
}

weir_status wr_resume_begin(wr_spool *s)
{
  trace_importer *im = s->im;
  weir_status st = wr_resume_keep(s, WR_RESUME_FACT, WR_FACT_IDENTITY, identity_of(s));
  for (unsigned i = 0; i < 2 && !st && !im->boot_kept; i++) {
    uint64_t half;
    memcpy(&half, im->boot_id + 8 * i, sizeof(half));
    st = keep_value(im, 0, WR_RESUME_FACT, WR_FACT_BOOT + i, half);
  }
  im->boot_kept = true;
  return st;
}

static weir_status keep_position(void *context, uint32_t thread, uint64_t position)
{
  return wr_resume_keep(context, WR_RESUME_POSITION, thread, position);
}

static weir_status keep_asked(wr_spool *s)
{
  if (s->asked_kept == s->line.asked) return WEIR_OK;
  weir_status st = wr_resume_keep(s, WR_RESUME_FACT, WR_FACT_ASKED, (uint64_t)s->line.asked);
  if (!st)
    st = wr_resume_keep(s, WR_RESUME_FACT, WR_FACT_ASKED_NS,
                        (uint64_t)(int64_t)wr_timeline_at(&s->line, s->line.asked));
  s->asked_kept = s->line.asked;
  return st;
}

weir_status wr_resume_positions(trace_importer *im)
{
  weir_status st = WEIR_OK;
  for (size_t i = im->spools_ended; i < im->spool_count && !st; i++) {
    wr_spool *s = im->spools[i];
    if (!s || !s->started) continue;
    st = spool_reader_positions(s->reader, keep_position, s);
    if (!st) st = keep_asked(s);
    if (!st) st = queue_rows(s);
  }
  return st;
}

/* ---- a trace --------------------------------------------------------------------------------- */

weir_status wr_resume_begun(trace_importer *im)
{
  int64_t tables = 0;
  weir_status st = wr_db_number(&im->db, "SELECT count(*) FROM sqlite_schema", &tables);
  if (!st && !tables) {
    im->merging = false;
    st = wr_db_exec(&im->db, WR_SET_ID WR_SET_WAL);
  }
  return st;
}

static weir_status check_schema(const trace_importer *im)
{
  int64_t version = 0, there = 0;
  weir_status st = wr_db_number(&im->db, "PRAGMA user_version", &version);
  if (!st)
    st = wr_db_number(&im->db,
                      "SELECT count(*) FROM sqlite_schema WHERE type = 'table'"
                      " AND name IN ('resume', 'event_row', 'template', 'block_row', 'batch_item',"
                      " 'device_work', 'range_row')"
                      " AND sql NOT LIKE 'CREATE VIRTUAL%'",
                      &there);
  if (!st && (version != WR_SCHEMA_VERSION || there < 7))
    st =
        weir_fail(WEIR_EVERSION, "%s was written by another version of Weir: it cannot be added to",
                  im->file.path);
  return st ? st : wr_schema_check(&im->db);
}

weir_status wr_resume_write(trace_importer *im)
{
  if (!im->merging || im->unfinished) return WEIR_OK;
  weir_status st =
      wr_db_exec(&im->db, WR_SET_WAL "PRAGMA wal_autocheckpoint = 4096; BEGIN IMMEDIATE;"
                                     "UPDATE meta SET value = 0 WHERE key = 'finished';"
                                     "DELETE FROM block_row; DELETE FROM memory;"
                                     "DROP TABLE IF EXISTS kept;"
                                     "DROP TABLE IF EXISTS wait_detail;"
                                     "DROP TABLE IF EXISTS wait_time;"
                                     "DROP TABLE IF EXISTS device_gap;"
                                     "DROP TABLE IF EXISTS queue_full;"
                                     "DROP TABLE IF EXISTS device_idle;"
                                     "DROP TABLE IF EXISTS idle_cause;"
                                     "DELETE FROM module WHERE base IS NULL;");
  if (!st) st = wr_schema_extend(&im->db);
  if (!st) st = wr_db_exec(&im->db, "DELETE FROM graph_work; DELETE FROM graph_launch; COMMIT");
  if (st && !sqlite3_get_autocommit(im->db.handle))
    sqlite3_exec(im->db.handle, "ROLLBACK", NULL, NULL, NULL);
  im->unfinished = !st;
  return st;
}

static weir_status find_counters(trace_importer *im)
{
  const struct {
    const char *sql;
    int64_t *to;
  } counters[] = {
      {"SELECT max(id) FROM thread", &im->threads},
      {"SELECT max(id) FROM stack", &im->stacks},
      {"SELECT max(id) FROM frame", &im->frames},
      {"SELECT max(id) FROM module", &im->modules},
      {"SELECT max(id) FROM range_row", &im->ranges},
      {"SELECT max(id) FROM range_name", &im->range_names},
      {"SELECT max(id) FROM StringIds", &im->strings},
      {"SELECT max(id) FROM event_row", &im->events},
      {"SELECT max(abs(id)) FROM template", &im->templates.count},
      {"SELECT max(id) FROM process", &im->processes},
      {"SELECT min(m) FROM (SELECT min(start) AS m FROM event_row UNION ALL"
       " SELECT min(start) FROM process UNION ALL SELECT min(time) FROM tensor UNION ALL"
       " SELECT min(time) FROM device_fact UNION ALL"
       " SELECT min(start) FROM device_work UNION ALL"
       " SELECT min(start) FROM range_row)",
       &im->least},
      {"SELECT value FROM meta WHERE key = 'duration_ns'", &im->latest}};
  weir_status st = WEIR_OK;
  int64_t first_string = im->strings;
  for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]) && !st; i++)
    st = wr_db_number(&im->db, counters[i].sql, counters[i].to);
  if (!st && wr_db_has_table(&im->db, "graph_change")) /* else of an older Weir */
    st = wr_db_number(&im->db, "SELECT max(id) FROM graph_change", &im->graph_changes);
  if (im->strings < first_string) im->strings = first_string;
  if (im->least > 0) im->least = 0;
  im->latest += im->least;
  return st;
}

static weir_status find_origin(trace_importer *im)
{
  int64_t mono = 0, real = 0, boot[2] = {0, 0};
  weir_status st =
      wr_db_number(&im->db, "SELECT value FROM meta WHERE key = 'start_monotonic_ns'", &mono);
  if (!st)
    st = wr_db_number(&im->db, "SELECT value FROM meta WHERE key = 'start_realtime_ns'", &real);
  if (!st)
    st = wr_db_number(
        &im->db, "SELECT value FROM resume WHERE process = 0 AND what = 0 AND key = 6", &boot[0]);
  if (!st)
    st = wr_db_number(
        &im->db, "SELECT value FROM resume WHERE process = 0 AND what = 0 AND key = 7", &boot[1]);
  if (st || !im->processes) return st;
  im->origin_known = im->boot_kept = true;
  im->origin = (uint64_t)mono;
  im->origin_realtime = (uint64_t)real;
  memcpy(im->boot_id, boot, sizeof(boot));
  return st;
}

weir_status wr_resume_trace(trace_importer *im)
{
  weir_status st = check_schema(im);
  if (!st) st = wr_schema_reader_views(&im->db);
  if (!st) st = find_counters(im);
  if (!st) st = find_origin(im);
  return st;
}

/* ---- a spool --------------------------------------------------------------------------------- */

/* A query of the spool's process: ?1 its row, ?2 `from`. */
static weir_status each_row(wr_spool *s, const char *sql, int64_t from,
                            weir_status (*row)(wr_spool *s, sqlite3_stmt *q))
{
  const wr_db *db = &s->im->db;
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(db, sql, &q);
  int code = SQLITE_DONE;
  if (st) return st;
  sqlite3_bind_int64(q, 1, s->process);
  sqlite3_bind_int64(q, 2, from);
  while (!st && (code = sqlite3_step(q)) == SQLITE_ROW)
    st = row(s, q);
  if (!st && code != SQLITE_DONE) st = wr_db_fail(db, "reading");
  sqlite3_finalize(q);
  return st;
}

static weir_status put_map_value(wr_spool *s, hash_map *map, uint64_t key, uint64_t value)
{
  uint64_t *place = hash_map_place(map, key, NULL);
  if (!place) return wr_out_of_memory(s->im);
  *place = value;
  return WEIR_OK;
}

static weir_status take_fact(wr_spool *s, uint64_t key, int64_t value)
{
  switch (key) {
  case WR_FACT_UNLOADS:
    s->unloads = (uint64_t)value;
    break;
  case WR_FACT_FRAMES_FROM:
    s->frames_from = value;
    break;
  case WR_FACT_STACKS_FROM:
    s->stacks_from = value;
    break;
  case WR_FACT_ASKED:
    s->asked_kept = value;
    break;
  case WR_FACT_ASKED_NS:
    s->asked_ns = value;
    break;
  default:
    break;
  }
  return WEIR_OK;
}

/* what, key, value */
static weir_status take_kept(wr_spool *s, sqlite3_stmt *q)
{
  uint64_t key = (uint64_t)sqlite3_column_int64(q, 1);
  int64_t value = sqlite3_column_int64(q, 2);
  switch (sqlite3_column_int(q, 0)) {
  case WR_RESUME_FACT:
    return take_fact(s, key, value);
  case WR_RESUME_POSITION:
    return spool_reader_resume(s->reader, (uint32_t)key, (uint64_t)value);
  case WR_RESUME_RANGE_NAME:
    return put_map_value(s, &s->range_names, key, (uint64_t)value);
  case WR_RESUME_STACK:
    return put_map_value(s, &s->local_stacks, key, (uint64_t)value);
  default:
    return put_map_value(s, &s->modules, key, (uint64_t)value);
  }
}

/* id, serial */
static weir_status take_thread_row(wr_spool *s, sqlite3_stmt *q)
{
  if (!wr_grow(&s->thread, &s->thread_capacity, s->thread_count + 1, sizeof(wr_thread)))
    return wr_out_of_memory(s->im);
  s->thread[s->thread_count] = (wr_thread){.id = sqlite3_column_int64(q, 0), .last_end = INT64_MIN};
  return put_map_value(s, &s->threads, (uint64_t)sqlite3_column_int64(q, 1), s->thread_count++);
}

/* thread, events, last end, last call */
static weir_status take_last(wr_spool *s, sqlite3_stmt *q)
{
  s->events += (uint64_t)sqlite3_column_int64(q, 1);
  for (size_t i = 0; i < s->thread_count; i++) {
    if (s->thread[i].id != sqlite3_column_int64(q, 0)) continue;
    s->thread[i].last_end = sqlite3_column_int64(q, 2);
    s->thread[i].last_call = sqlite3_column_int64(q, 3);
  }
  return WEIR_OK;
}

/* id, address */
static weir_status take_frame_row(wr_spool *s, sqlite3_stmt *q)
{
  uint64_t address = (uint64_t)sqlite3_column_int64(q, 1);
  return put_map_value(s, &s->frames, wr_frame_key(s, address),
                       (uint64_t)sqlite3_column_int64(q, 0));
}

/* id, address; the frames of a stack in order */
static weir_status take_stack_row(wr_spool *s, sqlite3_stmt *q)
{
  int64_t id = sqlite3_column_int64(q, 0);
  if (id != s->hashing) s->hash = wr_stack_seed(s);
  s->hashing = id;
  s->hash = hash_mix(s->hash, (uint64_t)sqlite3_column_int64(q, 1));
  if (sqlite3_column_int(q, 2)) return WEIR_OK; /* not the last */
  return put_map_value(s, &s->stacks, s->hash, (uint64_t)id);
}

static void resume_timeline(wr_spool *s)
{
  clock_map now = spool_reader_clock(s->reader);
  wr_timeline_poll(&s->line, &now);
  if (s->asked_kept <= 0) return;
  s->line.piece[0].slope = (double)s->asked_ns / (double)s->asked_kept;
  s->line.asked = s->asked_kept;
}

static weir_status find_spool_process(wr_spool *s)
{
  return wr_db_number_of(&s->im->db,
                         "SELECT process FROM resume WHERE what = 0 AND key = 0 AND value = ?1"
                         " AND ?2 IS NULL",
                         identity_of(s), NULL, &s->process);
}

/* A spool that was never taken in, because its collector died or had no room, lies in the folder of
 * others that were. */
static weir_status same_folder(const trace_importer *im, const char *spool, int64_t *found)
{
  char *whole = realpath(spool, NULL);
  char *slash = whole ? strrchr(whole, '/') : NULL;
  weir_status st = WEIR_OK;
  if (slash) {
    slash[1] = '\0';
    st = wr_db_number_of(&im->db,
                         "SELECT id FROM process WHERE substr(spool, 1, length(?2)) = ?2 AND ?1 = 0"
                         " LIMIT 1",
                         0, whole, found);
  }
  free(whole);
  return st;
}

weir_status importer_knows(trace_importer *im, const char *spool_path, bool *known)
{
  wr_spool s = {.im = im};
  *known = !im->processes; /* a trace of nothing is anybody's */
  if (*known) return WEIR_OK;
  weir_status st = spool_reader_open(&s.reader, spool_path, false);
  if (st) return st;
  st = find_spool_process(&s);
  spool_reader_close(s.reader);
  if (!st && !s.process) st = same_folder(im, spool_path, &s.process);
  *known = s.process != 0;
  return st;
}

weir_status wr_resume_spool(wr_spool *s, bool *known)
{
  weir_status st = find_spool_process(s);
  *known = s->process != 0;
  if (st || !*known) return st;
  st = each_row(s, "SELECT what, key, value FROM resume WHERE process = ?1 AND ?2 = 0", 0,
                take_kept);
  if (!st)
    st = each_row(s, "SELECT id, serial FROM thread WHERE process = ?1 AND id > ?2", 0,
                  take_thread_row);
  if (!st) /* kind 13: what a cache did within a call */
    st = each_row(s,
                  "SELECT thread, count(*), max(\"end\"),"
                  " max(CASE WHEN call IS NULL AND kind <> 13 THEN id ELSE 0 END) FROM event"
                  " WHERE process = ?1 AND id > ?2 GROUP BY thread",
                  0, take_last);
  if (!st)
    st = each_row(s, "SELECT id, address FROM frame WHERE process = ?1 AND id > ?2", s->frames_from,
                  take_frame_row);
  if (!st)
    st = each_row(s,
                  "SELECT s.id, f.address, s.depth - 1 - x.depth FROM stack s"
                  " JOIN stack_frame x ON x.stack = s.id JOIN frame f ON f.id = x.frame"
                  " WHERE s.process = ?1 AND s.id > ?2 ORDER BY s.id, x.depth",
                  s->stacks_from, take_stack_row);
  if (!st) resume_timeline(s);
  const spool_header *h = spool_reader_header(s->reader);
  if (memcmp(h->boot_id, s->im->boot_id, 16) != 0)
    s->boot_shift = wr_between_boots(s->im, h->realtime_ns) - (int64_t)(s->opening - s->im->origin);
  s->started = true;
  return st;
}
