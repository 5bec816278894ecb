/* trace_file.c: the files of a trace that is to be written.
 *
 * A trace may lie in a folder that others may write in, such as /tmp. SQLite opens what it finds by
 * the names of a trace's companions (-wal, -shm, -journal) and believes it, so all of them are made
 * here, by O_EXCL and O_NOFOLLOW, before SQLite looks: where the folder is sticky, nobody can put
 * something else in their place. What is there already must be a plain file of ours with one name.
 * The journal alone is SQLite's to make and to remove: a foreign one is refused, before and after.
 *
 * The lock. Whoever writes a trace holds an open-file-description lock on one byte far after those
 * that SQLite locks: it goes with its holder, however that ends, works on NFS as SQLite's own locks
 * do, and no reader asks for it. A file system without locks has no protection, and no SQLite. */
#include "reports/import/trace_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reports/import/schema.h"
#include "reports/base/util.h"

#define LOCK_BYTE 0x40100000 /* SQLite's end at 0x400001ff */

enum { JOURNAL = WR_COMPANIONS - 1 };
static const char *const companions[WR_COMPANIONS] = {"-wal", "-shm", "-journal"};

/* ---- locks ----------------------------------------------------------------------------------- */

static struct flock lock_range(void)
{
  return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
}

/* False: somebody else has it. */
static bool lock_file(int fd)
{
  struct flock l = lock_range();
  return fcntl(fd, F_OFD_SETLK, &l) == 0 || (errno != EAGAIN && errno != EACCES);
}

static bool is_locked(int fd)
{
  struct flock l = lock_range();
  return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_own_regular_file(const struct stat *file)
{
  return S_ISREG(file->st_mode) && file->st_uid == geteuid() && file->st_nlink == 1;
}

/* By its application id, which is in the file itself from the first. */
static bool is_trace(int fd)
{
  unsigned char head[72];
  static const unsigned char id[4] = {WR_APPLICATION_ID >> 24, WR_APPLICATION_ID >> 16 & 255,
                                      WR_APPLICATION_ID >> 8 & 255, WR_APPLICATION_ID & 255};
  return pread(fd, head, sizeof(head), 0) == sizeof(head) && !memcmp(head, "SQLite format 3", 16) &&
         !memcmp(head + 68, id, 4);
}

weir_status wr_trace_file_look(const char *path, wr_trace_state *state)
{
  struct stat file;
  *state = WR_TRACE_OTHER;
  if (lstat(path, &file)) {
    if (errno != ENOENT) return weir_fail_errno(WEIR_EIO, errno, "cannot write %s", path);
    *state = WR_TRACE_FREE; /* what else is wrong, creating it will show */
    return WEIR_OK;
  }
  if (!S_ISREG(file.st_mode)) return WEIR_OK;
  if (!is_own_regular_file(&file)) {
    *state = WR_TRACE_FOREIGN;
    return WEIR_OK;
  }
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return weir_fail_errno(WEIR_EIO, errno, "cannot write %s", path);
  if (is_locked(fd))
    *state = WR_TRACE_LIVE;
  else if (is_trace(fd))
    *state = WR_TRACE_KEPT;
  else if (file.st_size == 0)
    *state = WR_TRACE_FREE;
  close(fd);
  return WEIR_OK;
}

/* ---- companions ------------------------------------------------------------------------------ */

static weir_status create_file(const char *path, int *fd)
{
  *fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (*fd >= 0) return WEIR_OK;
  return weir_fail_errno(errno == ENOSPC || errno == EDQUOT ? WEIR_ENOSPC : WEIR_EIO, errno,
                         "cannot create %s", path);
}

/* One that is there is kept where the trace is written on (`keep`), else removed: it was left by a
 * collector that was killed. */
static weir_status take_companion(const char *path, bool keep, bool make, ino_t *inode)
{
  struct stat file;
  if (!lstat(path, &file)) {
    if (!is_own_regular_file(&file))
      return weir_fail(WEIR_EIO, "%s is in the way: it is not a plain file of ours", path);
    *inode = file.st_ino;
    if (keep) return WEIR_OK;
    if (unlink(path)) return weir_fail_errno(WEIR_EIO, errno, "cannot replace %s", path);
  }
  *inode = 0;
  if (!make) return WEIR_OK;
  int fd;
  weir_status st = create_file(path, &fd);
  if (st) return st;
  st = fstat(fd, &file) ? weir_fail_errno(WEIR_EIO, errno, "cannot examine %s", path) : WEIR_OK;
  *inode = file.st_ino;
  close(fd);
  return st;
}

static weir_status take_companions(wr_trace_file *t, wr_trace_use use)
{
  bool keep = use == WR_TRACE_EXTEND || use == WR_TRACE_CHANGE;
  weir_status st = WEIR_OK;
  for (int i = 0; !st && i < WR_COMPANIONS; i++) {
    char *path = wr_format("%s%s", t->path, companions[i]);
    st = path ? take_companion(path, keep, i != JOURNAL && use != WR_TRACE_CHANGE, &t->inode[i])
              : weir_fail(WEIR_ENOMEM, "creating %s: out of host memory", t->path);
    if (use == WR_TRACE_CHANGE) t->inode[i] = 0; /* SQLite makes them anew */
    free(path);
  }
  return st;
}

/* ---- the trace itself ------------------------------------------------------------------------ */

/* Opens and locks a file of ours that is there. The name must mean it still once it is locked. */
static weir_status open_and_lock(const char *path, int *fd)
{
  struct stat file, named;
  *fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (*fd < 0) return weir_fail_errno(WEIR_EIO, errno, "cannot write %s", path);
  weir_status st = WEIR_OK;
  if (fstat(*fd, &file))
    st = weir_fail_errno(WEIR_EIO, errno, "cannot examine %s", path);
  else if (!is_own_regular_file(&file))
    st = weir_fail(WEIR_EIO, "%s is not a plain file of ours: it is left alone", path);
  else if (!lock_file(*fd) || lstat(path, &named) || named.st_ino != file.st_ino ||
           named.st_dev != file.st_dev)
    st = weir_fail(WEIR_EIO, "%s is being written by another run", path);
  if (st) {
    close(*fd);
    *fd = -1;
  }
  return st;
}

static bool is_empty(int fd)
{
  struct stat file;
  return fstat(fd, &file) == 0 && file.st_size == 0;
}

static weir_status take_trace(wr_trace_file *t, wr_trace_use use)
{
  struct stat file;
  int old = -1;
  if (use == WR_TRACE_EXTEND || use == WR_TRACE_CHANGE) return open_and_lock(t->path, &t->fd);
  if (!lstat(t->path, &file)) {
    bool link = S_ISLNK(file.st_mode) && use == WR_TRACE_REPLACE; /* it goes, not its file */
    if (!link && !S_ISREG(file.st_mode))
      return weir_fail(WEIR_EIO, "cannot replace %s: it is not a regular file", t->path);
    weir_status st = link ? WEIR_OK : open_and_lock(t->path, &old);
    if (st) return st;
    if (use == WR_TRACE_NEW && is_empty(old)) {
      t->fd = old;
      (void)fchmod(old, 0600);
      return WEIR_OK;
    }
    if (use == WR_TRACE_NEW)
      st = weir_fail(WEIR_EIO, "cannot create %s: it exists", t->path);
    else if (unlink(t->path))
      st = weir_fail_errno(WEIR_EIO, errno, "cannot replace %s", t->path);
    if (old >= 0) close(old);
    if (st) return st;
  }
  weir_status st = create_file(t->path, &t->fd);
  if (st || lock_file(t->fd)) return st;
  close(t->fd);
  t->fd = -1;
  return weir_fail(WEIR_EIO, "%s is being written by another run", t->path);
}

weir_status wr_trace_file_take(wr_trace_file *t, const char *path, wr_trace_use use)
{
  *t = (wr_trace_file){.fd = -1, .path = wr_format("%s", path)};
  if (!t->path) return weir_fail(WEIR_ENOMEM, "creating %s: out of host memory", path);
  weir_status st = take_trace(t, use);
  t->made = !st && (use == WR_TRACE_NEW || use == WR_TRACE_REPLACE);
  if (!st) st = take_companions(t, use);
  if (st) wr_trace_file_leave(t, t->made);
  return st;
}

static weir_status file_changed(const char *path)
{
  return weir_fail(WEIR_EIO, "%s was replaced while it was opened: it is left alone", path);
}

static bool companion_sound(const wr_trace_file *t, int i, const char *path)
{
  struct stat named;
  bool any = i == JOURNAL || !t->inode[i]; /* whichever SQLite makes, or none */
  if (lstat(path, &named)) return any && errno == ENOENT;
  return is_own_regular_file(&named) && (any || named.st_ino == t->inode[i]);
}

weir_status wr_trace_file_check(const wr_trace_file *t)
{
  struct stat file, named;
  if (fstat(t->fd, &file) || lstat(t->path, &named) || file.st_ino != named.st_ino ||
      file.st_dev != named.st_dev)
    return file_changed(t->path);
  weir_status st = WEIR_OK;
  for (int i = 0; !st && i < WR_COMPANIONS; i++) {
    char *path = wr_format("%s%s", t->path, companions[i]);
    if (!path) return weir_fail(WEIR_ENOMEM, "opening %s: out of host memory", t->path);
    if (!companion_sound(t, i, path)) st = file_changed(path);
    free(path);
  }
  return st;
}

static void remove_companions(const wr_trace_file *t, bool all)
{
  struct stat named;
  for (int i = 0; i < WR_COMPANIONS; i++) {
    char *path = wr_format("%s%s", t->path, companions[i]);
    if (path && !lstat(path, &named) && is_own_regular_file(&named) &&
        (i == JOURNAL || named.st_ino == t->inode[i]) && (all || named.st_size == 0))
      unlink(path);
    free(path);
  }
}

void wr_trace_file_leave(wr_trace_file *t, bool remove)
{
  if (t->fd >= 0 && remove) unlink(t->path);
  if (t->fd >= 0) remove_companions(t, remove);
  if (t->fd >= 0) close(t->fd);
  free(t->path);
  *t = (wr_trace_file){.fd = -1};
}

/* ---- the WAL --------------------------------------------------------------------------------- */

/* The header of a database has in these two bytes whether it is in WAL mode (SQLite's "Database
 * File Format", 1.3.3: 1 legacy, 2 WAL). */
enum { VERSIONS_AT = 18, VERSION_LEGACY = 1, VERSION_WAL = 2 };

/* SQLite changes the mode through a journal, and a process that is killed then leaves one, with
 * which a read-only reader is locked out. All that is to be changed are these two bytes. */
static bool set_versions(const wr_db *db, unsigned char from, unsigned char to)
{
  unsigned char versions[2] = {0}, changed[2] = {to, to};
  sqlite3_file *file = NULL;
  if (sqlite3_file_control(db->handle, NULL, SQLITE_FCNTL_FILE_POINTER, &file) || !file ||
      !file->pMethods || file->pMethods->xRead(file, versions, 2, VERSIONS_AT) ||
      versions[0] != from || versions[1] != from)
    return false;
  return !file->pMethods->xWrite(file, changed, 2, VERSIONS_AT) &&
         !file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
}

weir_status wr_trace_file_enter_wal(const wr_db *db, bool *entered)
{
  int64_t wal = 0;
  *entered = false;
  weir_status st = wr_db_exec(db, "BEGIN EXCLUSIVE");
  if (st) return st;
  st = wr_db_number(db, "SELECT journal_mode = 'wal' FROM pragma_journal_mode", &wal);
  *entered = !st && !wal;
  if (*entered && !set_versions(db, VERSION_LEGACY, VERSION_WAL))
    st = weir_fail(WEIR_EIO, "writing %s failed", db->path);
  weir_status ended = wr_db_exec(db, "COMMIT");
  return st ? st : ended;
}

void wr_trace_file_leave_wal(const wr_db *db)
{
  static const char *const ends[] = {"-wal", "-shm"};
  if (!set_versions(db, VERSION_WAL, VERSION_LEGACY)) return;
  sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL); /* it would lock */
  for (int i = 0; i < 2; i++) { /* empty; who has them open goes on with what he has */
    char *path = wr_format("%s%s", db->path, ends[i]);
    if (path) unlink(path);
    free(path);
  }
}

void wr_trace_file_fold(const wr_db *db, bool for_good)
{
  int left = -1;
  sqlite3_busy_timeout(db->handle, 200);
  int code = sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_TRUNCATE, &left, NULL);
  sqlite3_busy_timeout(db->handle, 5000);
  /* SQLite would ask for an exclusive lock, and readers get "database is locked". */
  if (for_good && !code && !left) wr_trace_file_leave_wal(db);
}
