/* change.c: see change.h.
 *
 * The trace is an untrusted file that is written: its triggers do not run, and what is read of it
 * are tables. The change is made in the WAL, where no reader has to wait meanwhile, and which a
 * reader passes over when this process is killed. Room in the file itself is reserved before the
 * commit: what is committed can also be folded in. */
#include "reports/model/change.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reports/import/trace_file.h"
#include "reports/model/open.h"

typedef struct changing {
  const wr_change *how;
  wr_db db;
  wr_trace_file file;
} changing;

/* What the trace grows to, if it is committed. */
static weir_status reserve_room(const changing *x)
{
  int64_t pages = 0, page_bytes = 0;
  weir_status s = wr_db_number(&x->db, "PRAGMA page_count", &pages);
  if (!s) s = wr_db_number(&x->db, "PRAGMA page_size", &page_bytes);
  if (s) return s;
  int code = posix_fallocate(x->file.fd, 0, pages * page_bytes);
  return code ? weir_fail_errno(code == ENOSPC ? WEIR_ENOSPC : WEIR_EIO, code, "writing %s",
                                x->db.path)
              : WEIR_OK;
}

/* After a failure the file is as long as it was, too. */
static weir_status change_rows(const changing *x)
{
  struct stat before;
  if (fstat(x->file.fd, &before))
    return weir_fail_errno(WEIR_EIO, errno, "cannot examine %s", x->db.path);
  weir_status s = wr_db_exec(&x->db, "BEGIN IMMEDIATE");
  if (s) return s;
  s = x->how->make(x->how->context, &x->db);
  if (!s) s = reserve_room(x);
  if (!s) s = wr_db_exec(&x->db, "COMMIT");
  if (!s) return WEIR_OK;
  if (!sqlite3_get_autocommit(x->db.handle))
    sqlite3_exec(x->db.handle, "ROLLBACK", NULL, NULL, NULL);
  if (ftruncate(x->file.fd, before.st_size)) return s; /* longer, and the same trace */
  return s;
}

/* In WAL mode SQLite makes companions, which are looked at before anything is written. */
static weir_status change_in_wal(changing *x)
{
  weir_status s = wr_finished_open(&x->db);
  if (!s) s = wr_trace_file_check(&x->file);
  if (s) return s;
  sqlite3_limit(x->db.handle, SQLITE_LIMIT_LENGTH, x->how->longest);
  sqlite3_busy_timeout(x->db.handle, x->how->patience_ms);
  s = wr_db_exec(&x->db, "PRAGMA wal_autocheckpoint = 0");
  return s ? s : change_rows(x);
}

static weir_status change_taken(changing *x)
{
  bool entered = false;
  weir_status s = wr_finished_open(&x->db);
  if (!s) s = wr_trace_file_check(&x->file);
  if (!s) sqlite3_busy_timeout(x->db.handle, x->how->patience_ms);
  if (!s) s = wr_trace_file_enter_wal(&x->db, &entered);
  if (!s) s = change_in_wal(x);
  if (!s)
    wr_trace_file_fold(&x->db, true);
  else if (entered)
    wr_trace_file_leave_wal(&x->db);
  sqlite3_close(x->db.handle);
  return s;
}

weir_status wr_change_trace(const wr_change *c)
{
  changing x = {.how = c};
  weir_status s = wr_trace_file_take(&x.file, c->trace, WR_TRACE_CHANGE);
  if (s) return s;
  x.db = (wr_db){.path = x.file.path, .symbols = c->symbols, .want_lines = c->want_lines};
  s = change_taken(&x);
  wr_trace_file_leave(&x.file, false);
  return s;
}
