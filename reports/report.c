/* report.c: opens what a person gives as a trace, and reports on it.
 *
 * The file is hostile until shown otherwise: it must say by its ids that it is a trace, hold our
 * tables as tables, and is read with SQLite's defences on. It is opened read-only; what an
 * unfinished trace lacks is made in temporary tables.
 */
#include "reports/report.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/trace/spool.h"
#include "reports/import.h"
#include "reports/render.h"

#define TOP_TEXT 5
#define TOP_JSON 20

typedef enum file_kind { FILE_TRACE, FILE_SPOOL } file_kind;

static weir_status look(const char *path, file_kind *kind)
{
  char magic[16] = {0};
  struct stat file;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return weir_fail_errno(errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, errno, "cannot open %s", path);
  bool regular = !fstat(fd, &file) && S_ISREG(file.st_mode);
  ssize_t n = regular ? pread(fd, magic, sizeof(magic), 0) : 0;
  close(fd);
  if (n == 16 && !memcmp(magic, "SQLite format 3", 16))
    *kind = FILE_TRACE;
  else if (n >= 8 && !memcmp(magic, WEIR_SPOOL_MAGIC, 8))
    *kind = FILE_SPOOL;
  else
    return weir_fail(WEIR_ECORRUPT, "%s is neither a trace nor a spool", path);
  return WEIR_OK;
}

/* ---- opening a trace ------------------------------------------------------------------------- */

static weir_status check_ids(const wr_db *db)
{
  sqlite3_stmt *q = NULL;
  static const char sql[] = "SELECT a.application_id, u.user_version"
                            " FROM pragma_application_id a, pragma_user_version u";
  weir_status s = wr_db_prepare(db, sql, &q);
  if (s) return s;
  int code = sqlite3_step(q);
  int id = sqlite3_column_int(q, 0), version = sqlite3_column_int(q, 1);
  if (code != SQLITE_ROW)
    s = wr_db_fail(db, "reading");
  else if (id != WR_APPLICATION_ID)
    s = weir_fail(WEIR_ECORRUPT, "%s is an SQLite file, and no trace of Weir's", db->path);
  else if (version != WR_SCHEMA_VERSION)
    s = weir_fail(WEIR_EVERSION, "%s has trace schema %d; this Weir reads schema %d", db->path,
                  version, WR_SCHEMA_VERSION);
  sqlite3_finalize(q);
  return s;
}

/* A view of that name could be anything, for ever: what is read must be tables. */
static weir_status check_tables(const wr_db *db)
{
  static const char *const needed[] = {"meta",        "process", "thread", "module", "stack",
                                       "stack_frame", "frame",   "name",   "note",   "api",
                                       "coverage",    "event",   "block",  "memory"};
  sqlite3_stmt *q = NULL;
  weir_status s = wr_db_prepare(db,
                                "SELECT 1 FROM sqlite_schema WHERE name = ? AND type = 'table'"
                                " AND sql NOT LIKE 'CREATE VIRTUAL%'",
                                &q);
  for (size_t i = 0; !s && i < sizeof(needed) / sizeof(needed[0]); i++) {
    sqlite3_bind_text(q, 1, needed[i], -1, SQLITE_STATIC);
    int code = sqlite3_step(q);
    if (code == SQLITE_DONE)
      s = weir_fail(WEIR_ECORRUPT, "%s is a damaged trace: it has no table %s", db->path,
                    needed[i]);
    else if (code != SQLITE_ROW)
      s = wr_db_fail(db, "reading");
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  return s;
}

/* The path as a URI that tells SQLite that nobody else has the file (new). */
static char *immutable_uri(const char *path)
{
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-";
  char *uri = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&uri, &bytes);
  if (!f) return NULL;
  (void)fputs("file:", f);
  for (; *path; path++)
    strchr(plain, *path) ? fprintf(f, "%c", *path) : fprintf(f, "%%%02X", (unsigned char)*path);
  (void)fputs("?immutable=1", f);
  return fclose(f) ? NULL : uri;
}

static weir_status open_with(wr_db *db, const char *name, int flags)
{
  sqlite3_close(db->handle);
  db->handle = NULL;
  if (sqlite3_open_v2(name, &db->handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | flags, NULL))
    return wr_db_fail(db, "opening");
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  sqlite3_busy_timeout(db->handle, 5000);
  return check_ids(db);
}

static weir_status open_trace(wr_db *db)
{
  weir_status s = open_with(db, db->path, 0);
  /* A trace in WAL whose folder we may not write: what the file itself holds can still be read. */
  if (s == WEIR_EIO && (sqlite3_errcode(db->handle) & 0xff) == SQLITE_CANTOPEN) {
    char *uri = immutable_uri(db->path);
    if (uri) s = open_with(db, uri, SQLITE_OPEN_URI);
    free(uri);
  }
  if (!s) s = wr_db_exec(db, "PRAGMA cache_size = -65536");
  if (!s) s = check_tables(db);
  return s;
}

static weir_status summarize(FILE *out, const char *path, const char *shown,
                             const weir_report_options *o)
{
  wr_db db = {.path = path};
  wr_model m = {0};
  int top = o->top > 0 ? o->top : o->format == WEIR_REPORT_JSON ? TOP_JSON : TOP_TEXT;
  weir_status s = open_trace(&db);
  if (!s) s = wr_model_load(&m, &db, top);
  sqlite3_close(db.handle);
  if (s) return s;
  if (path != shown) {
    free(m.path);
    m.path = wr_text(shown, strlen(shown), true);
    if (!m.path) s = weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", shown);
  }
  if (!s) s = o->format == WEIR_REPORT_JSON ? wr_render_json(out, &m) : wr_render_text(out, &m, o);
  wr_model_free(&m);
  return s;
}

/* ---- spools ---------------------------------------------------------------------------------- */

static weir_status import_one(const char *spool, const char *trace)
{
  weir_importer *im = NULL;
  weir_status s = weir_importer_open(&im, trace, NULL);
  if (!s) s = weir_importer_add(im, spool, false, NULL);
  if (!s) s = weir_importer_finish(im);
  weir_importer_close(im);
  return s;
}

static weir_status summarize_spool(FILE *out, const char *spool, const weir_report_options *o)
{
  const char *tmp = getenv("TMPDIR");
  char *folder = wr_format("%s/weir-report-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
  if (!folder) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", spool);
  if (!mkdtemp(folder)) {
    weir_status s = weir_fail_errno(WEIR_EIO, errno, "cannot create a temporary trace %s", folder);
    free(folder);
    return s;
  }
  char *trace = wr_format("%s/trace.db", folder);
  weir_status s = trace ? import_one(spool, trace) : weir_fail(WEIR_ENOMEM, "out of host memory");
  if (!s) s = summarize(out, trace, spool, o);
  static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
  for (int i = 0; trace && i < 4; i++) {
    char *path = wr_format("%s%s", trace, ends[i]);
    if (path) unlink(path);
    free(path);
  }
  rmdir(folder);
  free(trace);
  free(folder);
  return s;
}

weir_status weir_report_summary(FILE *out, const char *trace, const weir_report_options *options)
{
  static const weir_report_options plain = {0};
  file_kind kind = FILE_TRACE;
  if (!options) options = &plain;
  weir_status s = look(trace, &kind);
  if (s) return s;
  return kind == FILE_SPOOL ? summarize_spool(out, trace, options)
                            : summarize(out, trace, trace, options);
}
