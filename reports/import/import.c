/* import.c: the importer's life: a trace is created, spools are added, polled, ended; then
 * finished.
 *
 * See import.h for the contract and importer.h for identity and time. */
#include "reports/import/import.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/clock.h"
#include "core/base/image.h"
#include "core/trace/api.h"
#include "core/weir.h"
#include "reports/import/importer.h"
#include "reports/import/resume.h"
#include "reports/import/window.h"

#define MOST_CLOCK_NS 10000.0 /* of a read: what takes longer was interrupted each time */
#define FIRST_STRING  100000  /* below: function numbers, which name themselves */

/* ---- opening --------------------------------------------------------------------------------- */

static weir_status open_database(trace_importer *im)
{
  static const char pragmas[] = "PRAGMA page_size = 8192; " WR_SET_ID WR_SET_WAL
                                "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384;"
                                "PRAGMA wal_autocheckpoint = 4096;";
  static const char later[] = "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -16384;";
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
  im->db.path = im->file.path;
  im->db.schema = WR_SCHEMA_VERSION;
  if (sqlite3_open_v2(im->file.path, &im->db.handle, flags, NULL) != SQLITE_OK)
    return wr_db_fail(&im->db, "opening");
  if (im->merging) wr_db_distrust(&im->db);
  sqlite3_busy_timeout(im->db.handle, 5000);
  /* One that is there is not touched before it is known to be the right one. */
  weir_status st = wr_db_exec(&im->db, im->merging ? later : pragmas);
  if (!st) st = wr_trace_file_check(&im->file);
  if (!st && im->merging) st = wr_resume_begun(im);
  if (!st) st = im->merging ? wr_resume_trace(im) : wr_schema_create(&im->db);
  if (!st && im->merging) st = wr_range_resume_names(im);
  if (!st) st = wr_batch_open(&im->batch, &im->db);
  return st;
}

static weir_status write_meta(trace_importer *im)
{
  return wr_db_run_of(&im->db,
                      "INSERT OR IGNORE INTO meta VALUES('weir_version','" WEIR_VERSION
                      "'),('command',?2),('finished',0)",
                      0, im->command);
}

static void free_spool(wr_spool *s)
{
  if (!s) return;
  hash_map *maps[] = {&s->threads, &s->local_stacks, &s->stacks, &s->frames,
                      &s->modules, &s->range_names,  &s->spans};
  spool_reader_close(s->reader);
  for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
    hash_map_free(maps[i]);
  for (size_t i = 0; i < s->thread_count; i++) {
    free(s->thread[i].correlation);
    free(s->thread[i].open);
  }
  free(s->thread);
  free(s->resume);
  free(s->calls);
  free(s->path);
  free(s);
}

static void close_without_commit(trace_importer *im, bool remove)
{
  for (size_t i = 0; i < im->spool_count; i++)
    free_spool(im->spools[i]);
  free(im->spools);
  hash_map_free(&im->odd_apis);
  hash_map_free(&im->texts);
  hash_map_free(&im->range_texts);
  wr_batch_close(&im->batch);
  wr_memory_drop(&im->memory);
  hash_map_free(&im->templates.known);
  sqlite3_close(im->db.handle);
  wr_trace_file_leave(&im->file, remove);
  free(im->command);
  free(im->no_driver);
  free(im->window.reason);
  free(im);
}

weir_status importer_open(trace_importer **out, const char *database,
                          const importer_options *options)
{
  static const importer_options none = {0};
  if (!options) options = &none;
  trace_importer *im = calloc(1, sizeof(*im));
  if (!im) return weir_fail(WEIR_ENOMEM, "creating %s: out of host memory", database);
  wr_trace_state there = WR_TRACE_FREE;
  weir_status st = options->merge ? wr_trace_file_look(database, &there) : WEIR_OK;
  im->merging = there == WR_TRACE_KEPT;
  if (!st)
    st = wr_trace_file_take(&im->file, database,
                            im->merging          ? WR_TRACE_EXTEND
                            : options->overwrite ? WR_TRACE_REPLACE
                                                 : WR_TRACE_NEW);
  if (st) {
    free(im);
    return st;
  }
  if (options->command) im->command = wr_text(options->command, strlen(options->command), false);
  if (options->command && !im->command) {
    st = weir_fail(WEIR_ENOMEM, "creating %s: out of host memory", database);
  } else {
    im->options = *options;
    im->strings = FIRST_STRING;
    st = open_database(im);
    im->memory = (wr_memory_log){.trace = im->file.path, .incomplete = im->merging};
    if (!st) st = write_meta(im);
  }
  if (st)
    close_without_commit(im, im->file.made);
  else
    *out = im;
  return st;
}

void importer_close(trace_importer *im)
{
  if (im) close_without_commit(im, false);
}

void importer_discard(trace_importer *im)
{
  if (im) close_without_commit(im, im->file.made);
}

void importer_read_too(trace_importer *im, void (*read)(void *context), void *context)
{
  im->read_too = read;
  im->read_too_context = context;
}

uint64_t importer_events_of(const trace_importer *im, uint32_t number)
{
  const wr_spool *s = number < im->spool_count ? im->spools[number] : NULL;
  return s ? s->events : 0;
}

uint64_t importer_events(const trace_importer *im)
{
  return im->written;
}

uint64_t importer_dropped(const trace_importer *im, int *why)
{
  uint64_t dropped = 0;
  sqlite3_stmt *q = NULL;
  static const char sql[] = "SELECT sum(dropped), drop_errno FROM process WHERE dropped > 0";
  if (sqlite3_prepare_v2(im->db.handle, sql, -1, &q, NULL) == SQLITE_OK &&
      sqlite3_step(q) == SQLITE_ROW) {
    dropped = (uint64_t)sqlite3_column_int64(q, 0);
    *why = sqlite3_column_int(q, 1);
  }
  sqlite3_finalize(q);
  return dropped;
}

bool importer_merges(const trace_importer *im)
{
  return im->merging;
}

bool importer_reached(const trace_importer *im)
{
  return im->reached;
}

void importer_no_driver(trace_importer *im, const char *why)
{
  free(im->no_driver);
  im->no_driver = wr_text(why, strlen(why), true);
}

/* ---- adding a spool -------------------------------------------------------------------------- */

/* A writer whose table of functions is not ours, or an older or newer version of ours. */
static weir_status check_table(trace_importer *im, const spool_header *h, const char *path)
{
  if (h->api_count > api_total) return WEIR_OK;
  if (h->api_count != im->api_count) im->api_hash = api_table_hash(h->api_count);
  im->api_count = h->api_count;
  if (im->api_hash == h->api_hash) return WEIR_OK;
  return weir_fail(WEIR_EVERSION,
                   "%s was written with another table of functions (%u functions): this is Weir %s",
                   path, h->api_count, WEIR_VERSION);
}

weir_status importer_add(trace_importer *im, const char *spool_path, bool live, uint32_t *number)
{
  if (im->spool_count >= UINT32_MAX) return weir_fail(WEIR_ELIMIT, "too many spools");
  if (!wr_grow(&im->spools, &im->spool_capacity, im->spool_count + 1, sizeof(wr_spool *)))
    return wr_out_of_memory(im);
  wr_spool *s = calloc(1, sizeof(*s));
  if (!s || !(s->path = wr_format("%s", spool_path))) {
    free(s);
    return wr_out_of_memory(im);
  }
  weir_status st = spool_reader_open(&s->reader, spool_path, live);
  if (!st) st = check_table(im, spool_reader_header(s->reader), spool_path);
  if (st) {
    free_spool(s);
    return st;
  }
  spool_reader_hold(s->reader); /* the program may overwrite only what is committed here */
  s->im = im;
  s->live = live;
  s->opening = spool_reader_opening(s->reader);
  bool known = false;
  if (im->merging) st = wr_resume_spool(s, &known);
  if (!st && known) st = wr_range_resume(s);
  if (!st) st = wr_window_look(s, known);
  if (st) {
    free_spool(s);
    return st;
  }
  if (!known) s->process = ++im->processes;
  if (number) *number = (uint32_t)im->spool_count;
  im->spools[im->spool_count++] = s;
  return WEIR_OK;
}

/* ---- process rows ---------------------------------------------------------------------------- */

/* The trace's origin, decided once: the earliest opening in the boot of the first spool. */
static void fix_origin(trace_importer *im)
{
  if (im->origin_known || !im->spool_count) return;
  const wr_spool *first = im->spools[0];
  memcpy(im->boot_id, spool_reader_header(first->reader)->boot_id, 16);
  im->origin = first->opening;
  im->origin_realtime = spool_reader_header(first->reader)->realtime_ns;
  for (size_t i = 1; i < im->spool_count; i++) {
    const spool_header *h = spool_reader_header(im->spools[i]->reader);
    if (memcmp(h->boot_id, im->boot_id, 16) != 0 || im->spools[i]->opening >= im->origin) continue;
    im->origin = im->spools[i]->opening;
    im->origin_realtime = h->realtime_ns;
  }
  im->origin_known = true;
}

/* The arguments, blank-separated, those with odd characters quoted for a shell. */
static char *command_line(const spool_header *h)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                              "%+,-./:=@_";
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  if (!f) return NULL;
  for (uint32_t at = 0; at < h->cmdline_bytes && at < sizeof(h->cmdline);) {
    const char *word = h->cmdline + at;
    size_t n = strnlen(word, h->cmdline_bytes - at);
    if (at) (void)fputc(' ', f);
    if (n && strspn(word, plain) >= n) {
      (void)fprintf(f, "%.*s", (int)n, word);
    } else {
      (void)fputc('\'', f);
      for (size_t i = 0; i < n; i++)
        word[i] == '\'' ? fputs("'\\''", f) : fputc(word[i], f);
      (void)fputc('\'', f);
    }
    at += (uint32_t)n + 1;
  }
  if (fclose(f)) return NULL;
  char *clean = wr_text(text, bytes, false);
  free(text);
  return clean;
}

static weir_status queue_origin(trace_importer *im)
{
  wr_op op = {.sql = "INSERT OR REPLACE INTO meta VALUES('start_realtime_ns',?1),"
                     "('start_monotonic_ns',?2)",
              WR_NUMBERS((int64_t)im->origin_realtime, (int64_t)im->origin)};
  return wr_batch_op(&im->batch, op);
}

/* Where a process runs on this machine and has its clock, what a read of it takes is measured here, and the program spends
 * no time on it. */
static weir_status queue_clock(wr_spool *s)
{
  trace_importer *im = s->im;
  const spool_header *h = spool_reader_header(s->reader);
  clock_init();
  if (!s->live || im->clock_known || h->clock_kind != (uint32_t)clock_source_in_use) return WEIR_OK;
  const clock_map map = clock_map_make(h->clock_first, clock_now(), h->clock_hint_hz);
  const double ns = clock_cost_ticks() * map.ns_per_tick;
  if (!(ns > 0 && ns < MOST_CLOCK_NS)) return WEIR_OK;
  im->clock_known = true;
  wr_op op = {.sql = "INSERT OR IGNORE INTO meta VALUES('clock_ns',?)",
              WR_NUMBERS((int64_t)(ns + 0.5))};
  return wr_batch_op(&im->batch, op);
}

/* Its mode by number, the parameter that is named. */
#define MODE(n)                                                                                    \
  "CASE " n " WHEN 0 THEN 'observe' WHEN 1 THEN 'strict' WHEN 2 THEN 'relaxed' ELSE 'unknown' END"

static weir_status start_process(wr_spool *s)
{
  trace_importer *im = s->im;
  const spool_header *h = spool_reader_header(s->reader);
  if (memcmp(h->boot_id, im->boot_id, 16) != 0)
    s->boot_shift = wr_between_boots(im, h->realtime_ns) - (int64_t)(s->opening - im->origin);
  struct stat file;
  int64_t uid = stat(s->path, &file) ? -1 : (int64_t)file.st_uid; /* who has made it */
  wr_op op = {.sql =
                  "INSERT INTO process(id, pid, ppid, start, events, mode, uid, rank,"
                  " exe, command, spool) VALUES(?,?,?,?,0," MODE("?5") ",NULLIF(?6,-1),"
                                                                       "NULLIF(?7,-1),?8,?9,?10)",
              WR_NUMBERS(s->process, h->pid, h->ppid, wr_time_of_mono(s, s->opening), h->mode, uid,
                         (int64_t)h->rank - 1),
              WR_TEXTS(wr_text(h->exe, sizeof(h->exe), false), command_line(h),
                       wr_text(s->path, strlen(s->path), false))};
  weir_status st = wr_batch_op(&im->batch, op);
  if (!st && s->process == 1) st = queue_origin(im);
  if (!st) st = queue_clock(s);
  if (!st) st = wr_resume_begin(s);
  wr_span(im, wr_time_of_mono(s, s->opening), wr_time_of_mono(s, s->opening));
  if (!st) s->started = true;
  return st;
}

static weir_status queue_load(wr_spool *s, const spool_header *h)
{
  uint64_t preempted = atomic_load(&h->preempted), starved = atomic_load(&h->starved_ns);
  if (preempted > INT64_MAX || starved > INT64_MAX) return WEIR_OK;
  wr_op op = {.sql = "UPDATE process SET preempted = ?2, starved_ns = ?3 WHERE id = ?1",
              WR_NUMBERS(s->process, (int64_t)preempted, (int64_t)starved)};
  return wr_batch_op(&s->im->batch, op);
}

/* What was lost, so that a trace has it even if its collector dies, and the mode, which a
 * debugger changes. */
static weir_status queue_changes(wr_spool *s)
{
  const spool_header *h = spool_reader_header(s->reader);
  spool_damage d = spool_reader_damage(s->reader);
  uint64_t dropped = atomic_load(&h->dropped), lookups = atomic_load(&h->unknown_lookups);
  uint64_t extended = atomic_load(&h->dropped_extended);
  uint64_t nested = atomic_load(&h->nested);
  uint64_t deep = atomic_load(&h->deep_ranges);
  uint64_t left_out = atomic_load(&h->unrecorded), spans = atomic_load(&h->unrecorded_spans);
  uint64_t sum = dropped + lookups + extended + nested + deep + atomic_load(&h->load_known) +
                 d.chunks + d.torn + d.bytes_cut + left_out + spans + 1;
  sum += (uint64_t)h->mode << 48;
  if (sum == s->seen_losses) return WEIR_OK;
  wr_op op = {.sql =
                  "UPDATE process SET dropped = ?2, drop_errno = NULLIF(?3, 0),"
                  " damaged_chunks = ?4, torn = ?5, bytes_cut = ?6, unknown_lookups = ?7,"
                  " dropped_extended = ?8, mode = " MODE("?9") ", unknown_name = NULLIF(?11, ''),"
                                                               " nested_calls = ?10 WHERE id = ?1",
              WR_NUMBERS(s->process, (int64_t)dropped, (int64_t)atomic_load(&h->drop_errno),
                         (int64_t)d.chunks, (int64_t)d.torn, (int64_t)d.bytes_cut, (int64_t)lookups,
                         (int64_t)extended, h->mode, (int64_t)nested),
              WR_TEXTS(wr_text(h->unknown_name, sizeof(h->unknown_name), false))};
  weir_status st = wr_batch_op(&s->im->batch, op);
  wr_op ranges = {.sql = "UPDATE process SET deep_ranges = ?2, unrecorded_calls = ?3,"
                         " unrecorded_spans = ?4 WHERE id = ?1",
                  WR_NUMBERS(s->process, (int64_t)deep, (int64_t)left_out, (int64_t)spans)};
  if (!st) st = wr_batch_op(&s->im->batch, ranges);
  if (!st && atomic_load(&h->load_known)) st = queue_load(s, h);
  if (!st) s->seen_losses = sum;
  return st;
}

static weir_status queue_unseen_row(trace_importer *im, int64_t id, int64_t process,
                                    const char *path, const char *why, uint64_t count)
{
  wr_op op = {.sql = "INSERT OR REPLACE INTO unseen(id, process, count, path, why)"
                     " VALUES(?1, NULLIF(?2, 0), ?3, ?4, ?5)",
              WR_NUMBERS(id, process, (int64_t)count),
              WR_TEXTS(wr_text(path, strlen(path), false), wr_format("%s", why))};
  return wr_batch_whole(&im->batch, op);
}

weir_status importer_add_usage(trace_importer *im, const importer_usage *u)
{
  fix_origin(im);
  if (!im->origin_known || im->merging) return WEIR_OK;
  wr_op op = {.sql = "INSERT INTO nvml_sample(time, total, used, reserved, of_run, of_others, bus)"
                     " VALUES(?1, ?2, ?3, NULLIF(?4, -1), NULLIF(?5, -1), NULLIF(?6, -1), ?7)",
              WR_NUMBERS((int64_t)(u->time - im->origin), (int64_t)u->total, (int64_t)u->used,
                         (int64_t)u->reserved, (int64_t)u->of_run, (int64_t)u->of_others),
              WR_TEXTS(wr_format("%s", u->bus))};
  return wr_batch_op(&im->batch, op);
}

weir_status importer_unseen(trace_importer *im, const char *path, const char *why)
{
  return queue_unseen_row(im, 1, 0, path, why, 1);
}

/* Programs that the process has started and that Weir was not in, when there are more. */
static weir_status queue_unseen(wr_spool *s)
{
  const spool_header *h = spool_reader_coverage(s->reader);
  uint64_t more = atomic_load(&h->unseen_more), sum = more;
  int64_t first = s->process * (WEIR_SPOOL_UNSEEN + 1) + 2;
  weir_status st = WEIR_OK;
  for (unsigned i = 0; i < WEIR_SPOOL_UNSEEN; i++)
    if (atomic_load(&h->unseen[i].state) == WEIR_UNSEEN_THERE)
      sum += atomic_load(&h->unseen[i].count);
  if (sum == s->seen_unseen) return WEIR_OK;
  for (unsigned i = 0; i < WEIR_SPOOL_UNSEEN && !st; i++) {
    const unseen_entry *e = &h->unseen[i];
    if (atomic_load(&e->state) == WEIR_UNSEEN_THERE)
      st = queue_unseen_row(s->im, first + i, s->process, e->path, unseen_words(e->why),
                            atomic_load(&e->count));
  }
  if (more && !st)
    st = queue_unseen_row(s->im, first + WEIR_SPOOL_UNSEEN, s->process, "", unseen_words(0), more);
  if (!st) s->seen_unseen = sum;
  return st;
}

/* ---- polling --------------------------------------------------------------------------------- */

static weir_status drain_spool(wr_spool *s, bool final)
{
  fix_origin(s->im);
  weir_status st = s->started ? WEIR_OK : start_process(s);
  if (st) return st;
  clock_map now = spool_reader_clock(s->reader);
  wr_timeline_poll(&s->line, &now);
  spool_visitor visitor = wr_take_visitor;
  visitor.context = s;
  st = wr_window_begin(s);
  if (!st) st = spool_drain(s->reader, &visitor, final);
  if (!st) st = queue_unseen(s); /* reads all of the header anew */
  if (!st) st = queue_changes(s);
  return st;
}

weir_status importer_poll(trace_importer *im, uint64_t *events)
{
  uint64_t before = im->written;
  weir_status first = WEIR_OK;
  for (size_t i = im->spools_ended; i < im->spool_count; i++) {
    wr_spool *s = im->spools[i];
    if (!s || s->drained) continue;
    weir_status st = drain_spool(s, false);
    if (st && !first) first = st;
    if (st == WEIR_ENOSPC || st == WEIR_ENOMEM) break; /* it is nobody's fault: later */
  }
  if (!first) first = wr_importer_flush(im);
  if (!first && im->read_too) im->read_too(im->read_too_context);
  for (size_t i = im->spools_ended; i < im->spool_count && !first; i++)
    if (im->spools[i] && !im->spools[i]->drained) spool_hand_back(im->spools[i]->reader);
  if (events) *events = im->written - before;
  return first;
}

/* ---- ending ---------------------------------------------------------------------------------- */

/* The first function from `api` on that was seen; WEIR_SPOOL_MAX_APIS: none. Of thousands few are,
 * so eight are looked at in one go. `h` is a copy of ours. */
static uint32_t next_covered(const spool_header *h, uint32_t api)
{
  uint64_t eight = 0;
  while (api < WEIR_SPOOL_MAX_APIS && !atomic_load(&h->coverage[api])) {
    api++;
    for (; api < WEIR_SPOOL_MAX_APIS && api % sizeof eight == 0; api += sizeof eight) {
      memcpy(&eight, (const void *)&h->coverage[api], sizeof eight);
      if (eight) break;
    }
  }
  return api;
}

static weir_status queue_coverage(wr_spool *s)
{
  const spool_header *h = spool_reader_coverage(s->reader);
  weir_status st = WEIR_OK;
  for (uint32_t i = next_covered(h, 1); !st && i < WEIR_SPOOL_MAX_APIS;
       i = next_covered(h, i + 1)) {
    unsigned seen = atomic_load(&h->coverage[i]);
    wr_op op = {.sql = "INSERT OR REPLACE INTO coverage VALUES(?,?,?,?,?)",
                WR_NUMBERS(s->process, i, !!(seen & WEIR_COVER_LOOKED_UP),
                           !!(seen & WEIR_COVER_PASSED), !!(seen & WEIR_COVER_CALLED))};
    st = wr_batch_op(&s->im->batch, op);
  }
  return st;
}

static weir_status queue_end(wr_spool *s)
{
  static const char *const reasons[] = {"unknown", "exit", "signal", "exec", "gone"};
  unsigned reason = (unsigned)s->reason <= WEIR_END_GONE ? (unsigned)s->reason : WEIR_END_UNKNOWN;
  const spool_header *h = spool_reader_header(s->reader);
  uint64_t last = atomic_load(&h->last_mono_ns), first = h->clock_first.mono_ns;
  int64_t end = wr_time_of_mono(s, s->opening + (last > first ? last - first : 0));
  for (size_t i = 0; i < s->thread_count; i++)
    if (s->thread[i].last_end > end) end = s->thread[i].last_end;
  wr_span(s->im, 0, end);
  wr_op op = {.sql = "UPDATE process SET \"end\" = ?2, end_detail = COALESCE(NULLIF(?3, -1), "
                     "end_detail), events = ?4,"
                     " end_reason = CASE WHEN ?5 = 'unknown' THEN COALESCE(end_reason, ?5)"
                     " ELSE ?5 END WHERE id = ?1",
              WR_NUMBERS(s->process, end, s->detail, (int64_t)s->events),
              WR_TEXTS(wr_format("%s", reasons[reason]))};
  weir_status st = wr_batch_op(&s->im->batch, op);
  return st ? st : queue_coverage(s);
}

weir_status importer_drain(trace_importer *im, uint32_t number, importer_end_reason reason,
                           int detail)
{
  if (number >= im->spool_count) return weir_fail(WEIR_EINVAL, "there is no spool %u", number);
  wr_spool *s = im->spools[number];
  if (!s || s->drained) return WEIR_OK;
  s->reason = reason;
  s->detail = detail;
  weir_status st = drain_spool(s, true);
  if (!st) st = queue_end(s);
  if (!st) s->drained = true;
  return st;
}

static bool is_drained(const wr_spool *s)
{
  return s && s->drained;
}

/* The shares of all that have ended go back to their folder's budget at once. */
static void repay_budget(trace_importer *im)
{
  spool_reader *any = NULL;
  uint64_t bytes = 0;
  for (size_t i = im->spools_ended; i < im->spool_count; i++) {
    if (!is_drained(im->spools[i])) continue;
    any = im->spools[i]->reader;
    bytes += spool_reader_owes(any);
  }
  if (any) spool_reader_repay(any, bytes);
}

/* Their ends are written: of thousands of short processes none takes memory any more. */
weir_status importer_commit(trace_importer *im)
{
  weir_status st = wr_importer_flush(im);
  if (st) return st;
  repay_budget(im);
  for (size_t i = im->spools_ended; i < im->spool_count; i++) {
    if (!is_drained(im->spools[i])) continue;
    free_spool(im->spools[i]);
    im->spools[i] = NULL;
  }
  while (im->spools_ended < im->spool_count && !im->spools[im->spools_ended])
    im->spools_ended++;
  return WEIR_OK;
}

weir_status importer_end(trace_importer *im, uint32_t number, importer_end_reason reason,
                         int detail)
{
  weir_status st = importer_drain(im, number, reason, detail);
  return st ? st : importer_commit(im);
}

weir_status importer_finish(trace_importer *im)
{
  if (im->finished) return WEIR_OK;
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; !st && i < im->spool_count; i++)
    st = importer_end(im, i, WEIR_END_UNKNOWN, -1);
  if (!st) st = wr_importer_flush(im);
  if (!st) st = wr_finish(im);
  if (!st) im->finished = true;
  return st;
}
