/* open.c: opens what a person gives as a trace.
 *
 * The file is hostile until shown otherwise: it must say by its ids that it is a trace, hold our
 * tables as tables, and is read with SQLite's defences on. It is opened read-only, but for who
 * resolves it. */
#include "reports/model/open.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/trace/spool.h"
#include "reports/import/import.h"
#include "reports/base/util.h"

weir_status wr_file_look(const char *path, wr_file_kind *kind)
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
    *kind = WR_FILE_TRACE;
  else if (n >= 8 && !memcmp(magic, WEIR_SPOOL_MAGIC, 8))
    *kind = WR_FILE_SPOOL;
  else
    *kind = WR_FILE_OTHER;
  return WEIR_OK;
}

/* ---- opening a trace ------------------------------------------------------------------------- */

static weir_status check_ids(wr_db *db)
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
  else if (version < WR_SCHEMA_OLDEST || version > WR_SCHEMA_VERSION)
    s = weir_fail(WEIR_EVERSION, "%s has trace schema %d; this Weir reads schemas %d to %d",
                  db->path, version, WR_SCHEMA_OLDEST, WR_SCHEMA_VERSION);
  db->schema = version;
  sqlite3_finalize(q);
  return s;
}

static weir_status check_tables(const wr_db *db)
{
  const char *const needed[] = {"meta",
                                "process",
                                "thread",
                                "module",
                                "stack",
                                "stack_frame",
                                "frame",
                                "name",
                                "note",
                                "api",
                                "coverage",
                                "memory",
                                db->schema < 2 ? "event" : "event_row",
                                db->schema < 2 ? "event" : "template",
                                db->schema < 2 ? "block" : "block_row",
                                db->schema < 2 ? "event" : "batch_item"};
  weir_status s = wr_schema_check(db);
  for (size_t i = 0; !s && i < sizeof(needed) / sizeof(needed[0]); i++)
    if (!wr_db_has_table(db, needed[i]))
      s = weir_fail(WEIR_ECORRUPT, "%s is a damaged trace: it has no table %s", db->path,
                    needed[i]);
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
  if (sqlite3_open_v2(name, &db->handle, SQLITE_OPEN_NOMUTEX | flags, NULL))
    return wr_db_fail(db, "opening");
  wr_db_distrust(db);
  sqlite3_busy_timeout(db->handle, 5000);
  return check_ids(db);
}

/* `file`: where the trace is; db->path is what it is called in errors. */
static weir_status open_trace(wr_db *db, const char *file)
{
  weir_status s = open_with(db, file, SQLITE_OPEN_READONLY);
  /* A trace in WAL whose folder we may not write: what the file itself holds can still be read. */
  if (s == WEIR_EIO && (sqlite3_errcode(db->handle) & 0xff) == SQLITE_CANTOPEN) {
    char *uri = immutable_uri(file);
    if (uri) s = open_with(db, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
    free(uri);
  }
  if (!s) s = wr_db_exec(db, "PRAGMA cache_size = -65536");
  if (!s) s = wr_db_exec(db, "BEGIN"); /* all that is read is of one moment */
  if (!s) s = check_tables(db);
  if (!s) s = wr_schema_reader_views(db);
  return s;
}

weir_status wr_finished_open(wr_db *db)
{
  int64_t finished = 0;
  weir_status s = open_with(db, db->path, SQLITE_OPEN_READWRITE);
  if (!s) s = check_tables(db);
  if (!s) s = wr_db_number(db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!s && db->schema < WR_SCHEMA_VERSION)
    s = weir_fail(WEIR_EVERSION, "%s has trace schema %d, which nothing is added to", db->path,
                  db->schema);
  if (!s && finished != 1)
    s = weir_fail(WEIR_EIO, "%s is not complete: 'weir import' of its spools completes it",
                  db->path);
  return s;
}

/* ---- spools ---------------------------------------------------------------------------------- */

static weir_status import_one(const char *spool, const char *trace)
{
  trace_importer *im = NULL;
  weir_status s = importer_open(&im, trace, NULL);
  if (!s) s = importer_add(im, spool, false, NULL);
  if (!s) s = importer_finish(im);
  importer_close(im);
  return s;
}

static weir_status import_and_open(wr_input *in, const char *spool)
{
  const char *tmp = getenv("TMPDIR");
  in->folder = wr_format("%s/weir-report-XXXXXX", tmp && tmp[0] == '/' ? tmp : "/tmp");
  if (!in->folder) return weir_fail(WEIR_ENOMEM, "opening %s: out of host memory", spool);
  if (!mkdtemp(in->folder)) {
    weir_status s =
        weir_fail_errno(WEIR_EIO, errno, "cannot create a temporary trace %s", in->folder);
    free(in->folder);
    in->folder = NULL;
    return s;
  }
  char *trace = wr_format("%s/trace.db", in->folder);
  if (!trace) return weir_fail(WEIR_ENOMEM, "opening %s: out of host memory", spool);
  weir_status s = import_one(spool, trace);
  if (!s) s = open_trace(&in->db, trace);
  free(trace);
  return s;
}

static void remove_temporary(const char *folder)
{
  static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
  for (int i = 0; i < 4; i++) {
    char *path = wr_format("%s/trace.db%s", folder, ends[i]);
    if (path) unlink(path);
    free(path);
  }
  rmdir(folder);
}

weir_status wr_input_open(wr_input *in, const char *path)
{
  *in = (wr_input){.db = {.path = path}};
  wr_file_kind kind = WR_FILE_OTHER;
  weir_status s = wr_file_look(path, &kind);
  if (!s && kind == WR_FILE_OTHER)
    s = weir_fail(WEIR_ECORRUPT, "%s is neither a trace nor a spool", path);
  if (!s) s = kind == WR_FILE_SPOOL ? import_and_open(in, path) : open_trace(&in->db, path);
  if (s) wr_input_close(in);
  return s;
}

void wr_input_close(wr_input *in)
{
  sqlite3_close(in->db.handle);
  in->db.handle = NULL;
  if (in->folder) remove_temporary(in->folder);
  free(in->folder);
  in->folder = NULL;
}
