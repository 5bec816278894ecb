/* finish.c: what can only be known when all rows are in.
 *
 * One transaction, so that a failed finish leaves the trace as it was and can be tried again. It is
 * made in the WAL, where no reader has to wait. */
#include <stdlib.h>
#include "reports/base/elf_facts.h"
#include "reports/import/graph.h"
#include "reports/import/importer.h"
#include "reports/import/kernel_types.h"
#include "reports/import/lifetime.h"
#include "reports/import/window.h"

/* Times count from the earliest opening or event; what was before the origin moves it. */
static weir_status shift_times(const trace_importer *im)
{
  const wr_db *db = &im->db;
  weir_status st = WEIR_OK;
  if (!im->least) return st;
  static const char *const updates[] = {
      "UPDATE event_row SET start = start - ?1",
      "UPDATE process SET start = start - ?1, \"end\" = \"end\" - ?1",
      "UPDATE module SET loaded = loaded - ?1, unloaded = unloaded - ?1",
      "UPDATE stack SET first = first - ?1",
      "UPDATE frame SET first = first - ?1",
      "UPDATE note SET time = time - ?1",
      "UPDATE name SET time = time - ?1",
      "UPDATE tensor SET time = time - ?1",
      "UPDATE range_row SET start = start - ?1, \"end\" = \"end\" - ?1",
      "UPDATE device_work SET start = start - ?1, \"end\" = \"end\" - ?1, queued = queued - ?1",
      "UPDATE device_fact SET time = time - ?1",
      "UPDATE recording SET time = time - ?1",
      "UPDATE copy_hash SET time = time - ?1",
      "UPDATE graph_change SET time = time - ?1",
      "UPDATE nvml_sample SET time = time - ?1",
      "UPDATE meta SET value = value + ?1 WHERE key LIKE 'start_%_ns'"};
  for (size_t i = 0; !st && i < sizeof(updates) / sizeof(updates[0]); i++)
    st = wr_db_run_of(db, updates[i], im->least, NULL);
  return st;
}

/* Of a machine's devices only those that the programs used are their business. */
static weir_status drop_other_devices(const trace_importer *im)
{
  return wr_db_exec(&im->db, "DELETE FROM nvml_sample WHERE bus NOT IN"
                             " (SELECT upper(name) FROM name WHERE kind = 'device_bus')");
}

static weir_status write_duration(const trace_importer *im)
{
  return wr_db_run_of(&im->db, "INSERT OR REPLACE INTO meta VALUES('duration_ns', ?1)",
                      im->latest - im->least, NULL);
}

static weir_status write_no_gpu(const trace_importer *im)
{
  char *why = importer_no_gpu(im);
  if (!why) return WEIR_OK;
  weir_status st =
      wr_db_run_of(&im->db, "INSERT OR REPLACE INTO meta VALUES('no_gpu', ?2)", 0, why);
  free(why);
  return st;
}

/* What NVTX calls a thread comes with its number in the kernel, perhaps before its first call. */
static weir_status name_threads(const wr_db *db)
{
  return wr_db_exec(db, "UPDATE thread SET name = (SELECT n.name FROM name n"
                        " WHERE n.process = thread.process AND n.kind = 'os_thread'"
                        " AND n.handle = thread.tid ORDER BY n.rowid DESC LIMIT 1)"
                        " WHERE EXISTS (SELECT 1 FROM name n WHERE n.process = thread.process"
                        " AND n.kind = 'os_thread' AND n.handle = thread.tid)");
}

/* The program itself is a module too, also where no stack was taken. */
static weir_status add_programs(const wr_db *db)
{
  return wr_db_exec(db, "INSERT INTO module(process, path) SELECT p.id, p.exe FROM process p"
                        " WHERE p.exe <> '' AND NOT EXISTS (SELECT 1 FROM module m"
                        " WHERE m.process = p.id AND m.path = p.exe)");
}

/* The module of a frame: the one whose code holds the byte before the return address, loaded when
 * the frame was first met; records of several threads may cross, so the nearest load serves as
 * well. */
static weir_status place_frames(const wr_db *db)
{
  return wr_db_exec(db,
                    "UPDATE frame SET module = (SELECT id FROM (SELECT m.id AS id,"
                    " m.loaded <= frame.first AND (m.unloaded IS NULL OR m.unloaded >= frame.first)"
                    " AS there, abs(m.loaded - frame.first) AS apart FROM module m"
                    " WHERE m.process = frame.process AND m.start < frame.address"
                    " AND m.\"end\" >= frame.address) ORDER BY there DESC, apart, id LIMIT 1)");
}

/* Both look the modules of one process up: a tree has as many as it has processes. */
static weir_status relate_modules(const wr_db *db)
{
  weir_status st = wr_db_exec(db, "CREATE INDEX module_by_start ON module(process, start)");
  if (!st) st = add_programs(db);
  if (!st) st = place_frames(db);
  return st ? st : wr_db_exec(db, "DROP INDEX module_by_start");
}

static weir_status look_at_modules(const wr_db *db)
{
  sqlite3_stmt *paths = NULL, *update = NULL;
  weir_status st = wr_db_prepare(db, "SELECT DISTINCT path FROM module WHERE path <> ''", &paths);
  if (!st)
    st = wr_db_prepare(db, "UPDATE module SET embeds_cuda = ?2, needs_cudart = ?3 WHERE path = ?1",
                       &update);
  int code = SQLITE_DONE;
  while (!st && (code = sqlite3_step(paths)) == SQLITE_ROW) {
    const char *path = (const char *)sqlite3_column_text(paths, 0);
    wr_elf_facts facts = wr_elf_facts_of(path);
    if (!facts.readable) continue;
    sqlite3_bind_text(update, 1, path, -1, SQLITE_TRANSIENT);
    sqlite3_bind_int(update, 2, facts.embeds_cuda);
    sqlite3_bind_int(update, 3, facts.needs_cudart);
    st = wr_db_run(db, update);
  }
  if (!st && code != SQLITE_DONE) st = wr_db_fail(db, "reading");
  sqlite3_finalize(paths);
  sqlite3_finalize(update);
  return st;
}

static weir_status complete_trace(trace_importer *im)
{
  const wr_db *db = &im->db;
  weir_status st = shift_times(im);
  if (!st) st = drop_other_devices(im);
  if (!st) st = write_duration(im);
  if (!st) st = write_no_gpu(im);
  if (!st) st = wr_window_finish(im);
  if (!st) st = wr_finish_device_work(db);
  if (!st) st = wr_finish_copy_hashes(db);
  if (!st) st = name_threads(db);
  if (!st) st = relate_modules(db);
  if (!st) st = look_at_modules(db);
  if (!st) st = wr_finish_kernel_types(db);
  if (!st) st = wr_graph_launches(&im->batch);
  if (!st) st = wr_batch_flush(&im->batch, true);
  if (!st) st = wr_lifetimes(&im->batch, &im->memory, im->least);
  if (!st) st = wr_batch_flush(&im->batch, true);
  if (!st) st = wr_db_exec(db, "UPDATE meta SET value = 1 WHERE key = 'finished'");
  return st;
}

weir_status wr_finish(trace_importer *im)
{
  wr_trace_file_fold(&im->db, false);
  weir_status st = wr_db_exec(&im->db, "BEGIN IMMEDIATE");
  if (st) return st;
  st = complete_trace(im);
  if (!st) st = wr_db_exec(&im->db, "COMMIT");
  if (st) {
    if (!sqlite3_get_autocommit(im->db.handle))
      sqlite3_exec(im->db.handle, "ROLLBACK", NULL, NULL, NULL);
    im->batch.rows[WR_TABLE_BLOCK].count = 0; /* they are made anew */
    im->batch.rows[WR_TABLE_GRAPH_WORK].count = im->batch.rows[WR_TABLE_GRAPH_LAUNCH].count = 0;
    return st;
  }
  wr_trace_file_fold(&im->db, true);
  return WEIR_OK;
}
