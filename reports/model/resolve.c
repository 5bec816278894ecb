/* resolve.c: see resolve.h.
 *
 * The trace is an untrusted file that is written: its triggers do not run, and what is read of it
 * are tables. All rows are made anew, of what the symbolizer says, which prefers what the trace
 * has: so a second time, or where the program's files are not, changes nothing. They are made in
 * the WAL, where no reader has to wait meanwhile, and which a reader passes over when
 * this process is killed. Room in the file itself is reserved before the commit: what is committed
 * can also be folded in. */
#include "reports/model/resolve.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reports/base/util.h"
#include "reports/import/trace_file.h"
#include "reports/model/wait_log.h"
#include "reports/model/open.h"
#include "reports/model/sites.h"
#include "reports/symbols/symbolize.h"

#define LONGEST_TEXT (1 << 20) /* that is read of the trace */

typedef struct resolver {
  wr_db db;
  wr_trace_file file;
  wr_symbols *symbols;
  sqlite3_stmt *insert; /* into the table that is filled */
  const resolve_settings *options;
  resolve_counts *counts;
} resolver;

/* ---- rows ------------------------------------------------------------------------------------ */

/* id: a stack */
static weir_status add_site(void *context, sqlite3_stmt *stack)
{
  resolver *r = context;
  const wr_frame *frames = NULL;
  size_t count = 0;
  if (r->options->stop && *r->options->stop)
    return weir_fail(WEIR_EIO, "stopped: %s is as it was", r->db.path);
  weir_status s = wr_symbols_stack(r->symbols, sqlite3_column_int64(stack, 0), &frames, &count);
  if (s || !count) return s;
  const wr_frame *site = &frames[wr_site_at(frames, count)];
  sqlite3_bind_int64(r->insert, 1, sqlite3_column_int64(stack, 0));
  sqlite3_bind_int64(r->insert, 2, site->row);
  sqlite3_bind_int(r->insert, 3, site->inlined);
  return wr_db_run(&r->db, r->insert);
}

/* Text of an untrusted file, as a person may read it. */
static weir_status bind_name(const resolver *r, int at, const char *name)
{
  char *text = name ? wr_text(name, strlen(name), true) : NULL;
  if (name && !text) return wr_db_out_of_memory(&r->db);
  sqlite3_bind_text(r->insert, at, text, -1, free);
  return WEIR_OK;
}

static weir_status add_line(const resolver *r, const wr_frame *f)
{
  sqlite3_bind_int64(r->insert, 1, f->row);
  sqlite3_bind_int(r->insert, 2, f->inlined);
  weir_status s = bind_name(r, 3, f->function);
  if (!s) s = bind_name(r, 4, f->file);
  sqlite3_bind_int(r->insert, 5, f->line);
  if (!f->file || !f->line) sqlite3_bind_null(r->insert, 5);
  return s ? s : wr_db_run(&r->db, r->insert);
}

/* Those of an address, if anything is known of it. */
static weir_status add_lines(const resolver *r, const wr_frame *frames, size_t count)
{
  bool known = false;
  weir_status s = WEIR_OK;
  for (size_t i = 0; i < count; i++)
    known |= frames[i].function || frames[i].file;
  for (size_t i = 0; known && !s && i < count; i++)
    s = add_line(r, &frames[i]);
  r->counts->addresses++;
  r->counts->named += known;
  return s;
}

static weir_status fill_sites(resolver *r)
{
  weir_status s = wr_db_prepare(&r->db, "INSERT INTO main.site VALUES(?,?,?)", &r->insert);
  if (!s) s = wr_db_each(&r->db, "SELECT id FROM main.stack", add_site, r);
  sqlite3_finalize(r->insert);
  return s;
}

static weir_status fill_lines(resolver *r)
{
  const wr_frame *frames;
  size_t count;
  weir_status s =
      wr_db_prepare(&r->db, "INSERT INTO main.source_line VALUES(?,?,?,?,?)", &r->insert);
  for (size_t at = 0; !s && wr_symbols_resolved(r->symbols, &at, &frames, &count);)
    s = add_lines(r, frames, count);
  sqlite3_finalize(r->insert);
  return s;
}

/* ---- the trace ------------------------------------------------------------------------------- */

static weir_status fill_trace(resolver *r)
{
  bool has = wr_db_has_table(&r->db, "source_line") && wr_db_has_table(&r->db, "site");
  weir_status s = has ? wr_db_exec(&r->db, "DELETE FROM main.site") : wr_schema_add_places(&r->db);
  if (!s) s = wr_symbols_open(&r->symbols, &r->db);
  if (!s) s = fill_sites(r);
  if (!s) s = wr_db_exec(&r->db, "DELETE FROM main.source_line");
  if (!s) s = fill_lines(r);
  const char *path, *why;
  for (size_t at = 0; !s && wr_symbols_lacking(r->symbols, &at, &path, &why);)
    r->counts->files_lacking++;
  wr_symbols_close(r->symbols);
  if (!s && r->db.schema >= 2) s = wr_wait_write(&r->db, false, true);
  return s;
}

/* What the trace grows to, if it is committed. */
static weir_status reserve_room(const resolver *r)
{
  int64_t pages = 0, page_bytes = 0;
  weir_status s = wr_db_number(&r->db, "PRAGMA page_count", &pages);
  if (!s) s = wr_db_number(&r->db, "PRAGMA page_size", &page_bytes);
  if (s) return s;
  int code = posix_fallocate(r->file.fd, 0, pages * page_bytes);
  return code ? weir_fail_errno(code == ENOSPC ? WEIR_ENOSPC : WEIR_EIO, code, "writing %s",
                                r->db.path)
              : WEIR_OK;
}

/* After a failure the file is as long as it was, too. */
static weir_status change_trace(resolver *r)
{
  struct stat before;
  if (fstat(r->file.fd, &before))
    return weir_fail_errno(WEIR_EIO, errno, "cannot examine %s", r->db.path);
  weir_status s = wr_db_exec(&r->db, "BEGIN IMMEDIATE");
  if (s) return s;
  s = fill_trace(r);
  if (!s) s = reserve_room(r);
  if (!s) s = wr_db_exec(&r->db, "COMMIT");
  if (!s) return WEIR_OK;
  if (!sqlite3_get_autocommit(r->db.handle))
    sqlite3_exec(r->db.handle, "ROLLBACK", NULL, NULL, NULL);
  if (ftruncate(r->file.fd, before.st_size)) return s; /* longer, and the same trace */
  return s;
}

/* In WAL mode SQLite makes companions, which are looked at before anything is written. */
static weir_status resolve_in_wal(resolver *r)
{
  weir_status s = wr_finished_open(&r->db);
  if (!s) s = wr_trace_file_check(&r->file);
  if (s) return s;
  sqlite3_limit(r->db.handle, SQLITE_LIMIT_LENGTH, LONGEST_TEXT);
  s = wr_db_exec(&r->db, "PRAGMA wal_autocheckpoint = 0");
  return s ? s : change_trace(r);
}

static weir_status resolve_taken(resolver *r)
{
  bool entered = false;
  weir_status s = wr_finished_open(&r->db);
  if (!s) s = wr_trace_file_check(&r->file);
  if (!s) s = wr_trace_file_enter_wal(&r->db, &entered);
  if (!s) s = resolve_in_wal(r);
  if (!s)
    wr_trace_file_fold(&r->db, true);
  else if (entered)
    wr_trace_file_leave_wal(&r->db);
  sqlite3_close(r->db.handle);
  return s;
}

weir_status resolve_trace(const char *trace, const resolve_settings *options,
                          resolve_counts *counts)
{
  resolver r = {.options = options, .counts = counts};
  wr_file_kind kind = WR_FILE_OTHER;
  *counts = (resolve_counts){0};
  weir_status s = wr_file_look(trace, &kind);
  if (s) return s;
  if (kind == WR_FILE_SPOOL)
    return weir_fail(WEIR_EINVAL, "%s is a spool: 'weir import' makes a trace of it", trace);
  if (kind == WR_FILE_OTHER) return weir_fail(WEIR_ECORRUPT, "%s is no trace of Weir's", trace);
  s = wr_trace_file_take(&r.file, trace, WR_TRACE_CHANGE);
  if (s) return s;
  r.db = (wr_db){.path = r.file.path, .symbols = options->symbols, .want_lines = true};
  s = resolve_taken(&r);
  wr_trace_file_leave(&r.file, false);
  return s;
}
