/* resolve.c: see resolve.h.
 *
 * All rows are made anew, of what the symbolizer says, which prefers what the trace has: so a second
 * time, or where the program's files are not, changes nothing. What a report has kept is of the names
 * before, and goes (reports/whole). */
#include "reports/model/resolve.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/model/change.h"
#include "reports/model/wait_log.h"
#include "reports/model/open.h"
#include "reports/model/sites.h"
#include "reports/symbols/symbolize.h"

#define LONGEST_TEXT (1 << 20) /* that is read of the trace */

typedef struct resolver {
  wr_db db;
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
  weir_status dropped = wr_db_exec(&r->db, "DROP TABLE IF EXISTS main.kept");
  if (dropped) return dropped;
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

static weir_status fill_places(void *context, const wr_db *db)
{
  resolver *r = context;
  r->db = *db;
  return fill_trace(r);
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
  return wr_change_trace(&(wr_change){.trace = trace,
                                      .symbols = options->symbols,
                                      .want_lines = true,
                                      .longest = LONGEST_TEXT,
                                      .patience_ms = 5000,
                                      .make = fill_places,
                                      .context = &r});
}
