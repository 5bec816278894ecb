/* test_import_faults.c: disks that are full or broken, files in the way, damaged spools, a
 * collector that is killed. Nothing is lost that the spool still had, nothing is there twice.
 *
 * A failing disk is an SQLite VFS of ours that refuses writes while it is armed; the same is tried
 * on a real small tmpfs where this user may mount one. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "reports/model/resolve.h"
#include "tests/reports/synth.h"

/* ---- a VFS that can fail --------------------------------------------------------------------- */

static struct {
  sqlite3_vfs vfs, *real;
  int code;    /* SQLITE_OK, or what writes return */
  long after;  /* writes that still succeed */
  long writes; /* so far */
  long last;   /* the process is killed at the write after so many; 0: never */
  bool locked; /* a file was asked for a lock under which nobody can read */
} disk;

typedef struct disk_file {
  sqlite3_file base;
  sqlite3_file *real;
} disk_file;

#define REAL(f) (((disk_file *)(f))->real)

static int d_close(sqlite3_file *f)
{
  return REAL(f)->pMethods->xClose(REAL(f));
}
static int d_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
  return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int d_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
  if (++disk.writes == disk.last) (void)raise(SIGKILL);
  if (disk.code && disk.after-- <= 0) return disk.code;
  return REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
}
static int d_truncate(sqlite3_file *f, sqlite3_int64 n)
{
  return REAL(f)->pMethods->xTruncate(REAL(f), n);
}
static int d_sync(sqlite3_file *f, int flags)
{
  return REAL(f)->pMethods->xSync(REAL(f), flags);
}
static int d_size(sqlite3_file *f, sqlite3_int64 *n)
{
  return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int d_lock(sqlite3_file *f, int n)
{
  if (n >= SQLITE_LOCK_PENDING) disk.locked = true;
  return REAL(f)->pMethods->xLock(REAL(f), n);
}
static int d_unlock(sqlite3_file *f, int n)
{
  return REAL(f)->pMethods->xUnlock(REAL(f), n);
}
static int d_reserved(sqlite3_file *f, int *n)
{
  return REAL(f)->pMethods->xCheckReservedLock(REAL(f), n);
}
static int d_control(sqlite3_file *f, int op, void *arg)
{
  return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int d_sector(sqlite3_file *f)
{
  return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int d_traits(sqlite3_file *f)
{
  return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int d_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **p)
{
  return REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, p);
}
static int d_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
  return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void d_shm_barrier(sqlite3_file *f)
{
  REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int d_shm_unmap(sqlite3_file *f, int drop)
{
  return REAL(f)->pMethods->xShmUnmap(REAL(f), drop);
}

static const sqlite3_io_methods disk_methods = {
    2,          d_close,       d_read,      d_write,   d_truncate, d_sync,   d_size,
    d_lock,     d_unlock,      d_reserved,  d_control, d_sector,   d_traits, d_shm_map,
    d_shm_lock, d_shm_barrier, d_shm_unmap, NULL,      NULL};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
  (void)vfs;
  disk_file *d = (disk_file *)f;
  d->real = (sqlite3_file *)(d + 1);
  d->base.pMethods = NULL;
  int code = disk.real->xOpen(disk.real, name, d->real, flags, out);
  if (d->real->pMethods) d->base.pMethods = &disk_methods;
  return code;
}

static void disk_install(void)
{
  disk.real = sqlite3_vfs_find(NULL);
  disk.vfs = *disk.real;
  disk.vfs.zName = "failing";
  disk.vfs.szOsFile += (int)sizeof(disk_file);
  disk.vfs.xOpen = disk_open;
  disk.vfs.pNext = NULL;
  ck_assert_int_eq(sqlite3_vfs_register(&disk.vfs, 1), SQLITE_OK);
}

static void disk_fail(int code, long after)
{
  disk.code = code;
  disk.after = after;
}

/* ---- helpers --------------------------------------------------------------------------------- */

#define EVENTS 60000

static void write_spool(void)
{
  const uint64_t frames[] = {0x1010, 0x2010, 0x1020};
  synth_open(synth_dir());
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/lib/one.so", NULL, 0);
  for (uint32_t i = 0; i < EVENTS; i++) {
    int n = (int)(i & 1);
    if (i % 1000 < 2) synth_stack(n, i / 1000 + 1, frames, 1 + i / 1000 % 3);
    synth_event(n, i * 100, 50, (trace_event){.kind = WEIR_EV_CALL, .a = i, .stack = i / 1000 + 1});
  }
  synth_close();
}

static void expect_whole(const char *trace)
{
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM event"), EVENTS);
  ck_assert_int_eq(synth_number(trace, "SELECT count(DISTINCT a) FROM event"), EVENTS);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM event WHERE stack IS NOT NULL"),
                   EVENTS);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM stack"), 3);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM stack_frame"), 6);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM thread"), 2);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM process WHERE events=60000"), 1);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM pragma_integrity_check"
                                       " WHERE integrity_check='ok'"),
                   1);
}

static const char *trace_path(void)
{
  static char path[512];
  (void)snprintf(path, sizeof(path), "%s/t.db", synth_dir());
  return path;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Every write in turn is the first that fails, for a while; then the disk works again. */
START_TEST(whichever_write_fails_the_next_try_completes_the_trace)
{
  static const struct {
    int code;
    weir_status status;
  } kinds[] = {{SQLITE_FULL, WEIR_ENOSPC}, {SQLITE_IOERR_WRITE, WEIR_EIO}};
  int failures = 0;
  disk_install();
  write_spool();
  for (long after = 0; after < 12000; after = after * 3 / 2 + 40) {
    trace_importer *im = NULL;
    importer_options o = {.overwrite = true};
    int code = kinds[_i].code;
    disk_fail(SQLITE_OK, 0);
    ck_assert_int_eq(importer_open(&im, trace_path(), &o), WEIR_OK);
    ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
    disk_fail(code, after);
    weir_status s = importer_poll(im, NULL);
    if (!s) s = importer_finish(im);
    if (s) {
      failures++;
      ck_assert_int_eq(s, kinds[_i].status);
      ck_assert_ptr_nonnull(strstr(weir_error_message(), trace_path()));
      ck_assert_int_eq(importer_finish(im), kinds[_i].status); /* still broken: still said */
      disk_fail(SQLITE_OK, 0);
      ck_assert_int_eq(synth_number(trace_path(), "SELECT count(*) FROM event"),
                       (int64_t)importer_events(im));
      ck_assert_msg(importer_finish(im) == WEIR_OK, "%s", weir_error_message());
    }
    disk_fail(SQLITE_OK, 0);
    ck_assert_uint_eq(importer_events(im), EVENTS);
    importer_close(im);
    expect_whole(trace_path());
  }
  ck_assert_int_gt(failures, 5);
}
END_TEST

START_TEST(a_trace_that_cannot_be_created_leaves_no_file)
{
  disk_install();
  for (long after = 0; after < 30; after += 3) {
    trace_importer *im = NULL;
    disk_fail(SQLITE_FULL, after);
    weir_status s = importer_open(&im, trace_path(), NULL);
    disk_fail(SQLITE_OK, 0);
    if (!s) {
      importer_close(im);
      ck_assert_int_eq(unlink(trace_path()), 0);
      continue;
    }
    ck_assert_int_eq(s, WEIR_ENOSPC);
    ck_assert_int_ne(access(trace_path(), F_OK), 0);
  }
}
END_TEST

/* A real full disk; a user who may not mount one has the VFS above. */
START_TEST(a_full_tmpfs_is_an_error_and_goes_on_when_there_is_room)
{
  char mount_point[512], trace[600], ballast[600];
  uid_t uid = getuid();
  (void)snprintf(mount_point, sizeof(mount_point), "%s/small", synth_dir());
  write_spool();
  ck_assert_int_eq(mkdir(mount_point, 0700), 0);
  if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0))) return;
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return;
  if (mount("tmpfs", mount_point, "tmpfs", 0, "size=12m")) return;
  (void)snprintf(trace, sizeof(trace), "%s/t.db", mount_point);
  (void)snprintf(ballast, sizeof(ballast), "%s/ballast", mount_point);
  int fd = open(ballast, O_CREAT | O_WRONLY, 0600);
  ck_assert_int_eq(posix_fallocate(fd, 0, 11 << 20), 0);
  close(fd);
  trace_importer *im = NULL;
  ck_assert_int_eq(importer_open(&im, trace, NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(importer_poll(im, NULL), WEIR_ENOSPC);
    ck_assert_ptr_nonnull(strstr(weir_error_message(), "no space left"));
  }
  ck_assert_uint_lt(importer_events(im), EVENTS);
  ck_assert_int_eq(unlink(ballast), 0);
  ck_assert_msg(importer_finish(im) == WEIR_OK, "%s", weir_error_message());
  importer_close(im);
  expect_whole(trace);
  umount(mount_point);
}
END_TEST

START_TEST(what_is_in_the_way_is_said_and_left_alone)
{
  trace_importer *im = NULL;
  importer_options replace = {.overwrite = true};
  char folder[512], absent[600];
  (void)snprintf(folder, sizeof(folder), "%s/folder", synth_dir());
  (void)snprintf(absent, sizeof(absent), "%s/no/such/t.db", synth_dir());
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  FILE *f = fopen(trace_path(), "w");
  (void)fputs("somebody's", f);
  (void)fclose(f);
  ck_assert_int_eq(importer_open(&im, trace_path(), NULL), WEIR_EIO);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "it exists"));
  struct stat file;
  ck_assert_int_eq(stat(trace_path(), &file), 0);
  ck_assert_int_eq(file.st_size, 10);
  ck_assert_int_eq(importer_open(&im, folder, &replace), WEIR_EIO);
  ck_assert_int_eq(access(folder, F_OK), 0);
  ck_assert_int_eq(importer_open(&im, absent, &replace), WEIR_EIO);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), absent));
  ck_assert_int_eq(importer_open(&im, "/dev/null", &replace), WEIR_EIO);
  ck_assert_int_eq(access("/dev/null", F_OK), 0);
  ck_assert_int_eq(importer_open(&im, trace_path(), &replace), WEIR_OK);
  importer_close(im);
}
END_TEST

START_TEST(spools_that_are_none_are_refused_and_others_go_on)
{
  trace_importer *im = NULL;
  char junk[512], absent[512];
  uint32_t number = 7;
  (void)snprintf(junk, sizeof(junk), "%s/junk", synth_dir());
  (void)snprintf(absent, sizeof(absent), "%s/absent", synth_dir());
  FILE *f = fopen(junk, "w");
  for (int i = 0; i < 100000; i++)
    (void)fputc(i & 0xff, f);
  (void)fclose(f);
  write_spool();
  ck_assert_int_eq(importer_open(&im, trace_path(), NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, junk, false, NULL), WEIR_ECORRUPT);
  ck_assert_int_eq(importer_add(im, absent, false, NULL), WEIR_ENOENT);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, &number), WEIR_OK);
  ck_assert_uint_eq(number, 0);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  expect_whole(trace_path());
}
END_TEST

START_TEST(another_table_of_functions_is_a_version_error)
{
  trace_importer *im = NULL;
  synth_open(synth_dir());
  spool_current()->api_hash ^= 1;
  synth_close();
  ck_assert_int_eq(importer_open(&im, trace_path(), NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_EVERSION);
  importer_close(im);
}
END_TEST

START_TEST(a_newer_writers_functions_and_kinds_get_a_number_for_a_name)
{
  const char *one[] = {NULL, NULL};
  synth_open(synth_dir());
  spool_current()->api_count = api_total + 5;
  synth_event(0, 10, 5, (trace_event){.kind = WEIR_EV_CALL, .api = (uint16_t)(api_total + 2)});
  synth_close();
  one[0] = synth_spool();
  const char *t = synth_import("t.db", one);
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s"
                      " ON s.id=r.nameId WHERE s.value LIKE 'api #%'"),
      1);
  json_t *j = synth_json(t);
  ck_assert_int_eq(synth_total(j, "events"), 1);
  json_decref(j);
}
END_TEST

START_TEST(damage_is_counted_and_the_rest_imported)
{
  const char *one[] = {NULL, NULL};
  synth_open(synth_dir());
  for (int i = 0; i < 20000; i++) /* more than a chunk */
    synth_event(0, (uint64_t)i, 1, (trace_event){.kind = WEIR_EV_CALL, .a = (uint64_t)i});
  synth_close();
  int fd = open(synth_spool(), O_RDWR);
  char junk[64];
  memset(junk, 0xee, sizeof(junk));
  ck_assert_int_eq(pwrite(fd, junk, sizeof(junk), WEIR_SPOOL_HEADER + 64 * 100), 64);
  close(fd);
  one[0] = synth_spool();
  const char *t = synth_import("t.db", one);
  ck_assert_int_eq(synth_number(t, "SELECT damaged_chunks FROM process"), 1);
  int64_t events = synth_number(t, "SELECT count(*) FROM event");
  ck_assert_int_eq(events, 19999);
  char *text = synth_text(t, 100);
  ck_assert_ptr_nonnull(strstr(text, "damaged and skipped"));
  free(text);
}
END_TEST

/* The collector dies in the middle of polling: what it committed is there, and a report is made. */
START_TEST(a_killed_collector_leaves_a_readable_trace)
{
  int told[2], status;
  uint64_t events = 0;
  write_spool();
  ck_assert_int_eq(pipe(told), 0);
  pid_t child = fork();
  if (child == 0) {
    trace_importer *im = NULL;
    if (importer_open(&im, trace_path(), NULL)) _exit(1);
    if (importer_add(im, synth_spool(), true, NULL)) _exit(2);
    if (importer_poll(im, NULL)) _exit(3);
    events = importer_events(im);
    if (write(told[1], &events, sizeof(events)) != sizeof(events)) _exit(4);
    (void)raise(SIGKILL);
    _exit(5);
  }
  ck_assert_int_eq(read(told[0], &events, sizeof(events)), sizeof(events));
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status));
  ck_assert_uint_eq(events, EVENTS);
  json_t *j = synth_json(trace_path());
  ck_assert_int_eq(synth_total(j, "events"), (int64_t)events);
  ck_assert(json_is_false(json_object_get(j, "complete")));
  json_decref(j);
  char *text = synth_text(trace_path(), 100);
  ck_assert_ptr_nonnull(strstr(text, "unfinished"));
  free(text);
}
END_TEST

/* Rows that wait for a disk are in memory; were their chunks handed back, a killed collector would
 * take them along. */
START_TEST(what_is_not_committed_is_still_in_the_spool)
{
  trace_importer *im = NULL;
  importer_options o = {.overwrite = true};
  disk_install();
  write_spool();
  ck_assert_int_eq(importer_open(&im, trace_path(), NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, NULL), WEIR_OK);
  disk_fail(SQLITE_FULL, 0);
  ck_assert_int_eq(importer_poll(im, NULL), WEIR_ENOSPC);
  ck_assert_uint_eq(importer_events(im), 0);
  importer_close(im); /* as good as killed: nothing is written any more */
  disk_fail(SQLITE_OK, 0);
  ck_assert_int_eq(importer_open(&im, trace_path(), &o), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, NULL), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  expect_whole(trace_path());
}
END_TEST

/* A reader is told "database is locked" while somebody has such a lock. */
START_TEST(a_finish_locks_nobody_out)
{
  trace_importer *im = NULL;
  char side[600];
  disk_install();
  write_spool();
  ck_assert_int_eq(importer_open(&im, trace_path(), NULL), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, NULL), WEIR_OK);
  disk.locked = false; /* the empty file was nobody's to read */
  ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert(!disk.locked);
  (void)snprintf(side, sizeof(side), "%s-wal", trace_path());
  ck_assert_int_ne(access(side, F_OK), 0);
  ck_assert_int_eq(synth_number(trace_path(), "SELECT count(*) FROM pragma_journal_mode"
                                              " WHERE journal_mode='delete'"),
                   1);
  expect_whole(trace_path());
}
END_TEST

/* ---- going on where another was killed ------------------------------------------------------- */

/* A process whose importer is killed at its `last`-th write to the disk; false: it lived to finish.
 * A live one hands its chunks back to the program. */
static bool import_until_killed(const char *trace, long last, bool live)
{
  int status;
  pid_t child = fork();
  if (child == 0) {
    trace_importer *im = NULL;
    importer_options o = {.merge = true};
    disk.writes = 0;
    disk.last = last;
    if (importer_open(&im, trace, &o)) _exit(1);
    if (importer_add(im, synth_spool(), live, NULL)) _exit(2);
    if (live && importer_poll(im, NULL)) _exit(3);
    if (importer_finish(im)) _exit(4);
    importer_close(im);
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(status == 0 || WIFSIGNALED(status), "%#x", (unsigned)status);
  return status != 0;
}

/* Rows of one trace that the other lacks, over all tables that are of the run. */
static void expect_same_rows(const char *trace, const char *other, long last)
{
  static const char *const parts[] = {
      "pid, ppid, start, \"end\", end_reason, events, dropped, torn FROM %s.process",
      "pid, damaged_chunks FROM %s.process",
      "id, process, serial, tid, name FROM %s.thread",
      "id, process, path, base, start, loaded, unloaded FROM %s.module",
      "id, process, depth, first FROM %s.stack",
      "stack, depth, frame FROM %s.stack_frame",
      "id, process, address, first, module FROM %s.frame",
      "process, kind, handle, name, bytes FROM %s.name",
      "process, thread, time, text FROM %s.note",
      "id, process, thread, kind, start, \"end\", stack, a, b, bytes, call FROM %s.event",
      "id, pointer, bytes, alloc, free, start, \"end\", stack FROM %s.block",
      "device, mem, allocs, bytes, peak, peak_at, live FROM %s.memory",
      "key, value FROM %s.meta"};
  sqlite3 *db = NULL;
  char sql[2600];
  ck_assert_int_eq(sqlite3_open(trace, &db), SQLITE_OK);
  (void)snprintf(sql, sizeof(sql), "ATTACH '%s' AS other", other);
  ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
    sqlite3_stmt *q = NULL;
    char mine[300], theirs[300];
    (void)snprintf(mine, sizeof(mine), parts[i], "main");
    (void)snprintf(theirs, sizeof(theirs), parts[i], "other");
    (void)snprintf(sql, sizeof(sql),
                   "SELECT (SELECT count(*) FROM (SELECT %s EXCEPT SELECT %s)),"
                   " (SELECT count(*) FROM (SELECT %s EXCEPT SELECT %s)),"
                   " (SELECT count(*) FROM (SELECT %s)) - (SELECT count(*) FROM (SELECT %s))",
                   mine, theirs, theirs, mine, mine, theirs);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
    for (int c = 0; c < 3; c++)
      ck_assert_msg(sqlite3_column_int(q, c) == 0, "killed at write %ld: %d: %d rows: %s", last, c,
                    sqlite3_column_int(q, c), parts[i]);
    sqlite3_finalize(q);
  }
  sqlite3_close(db);
}

/* More than the other spool: a module that goes and another in its place, names, notes, blocks. */
static void write_rich_spool(void)
{
  const uint64_t frames[] = {0x1010, 0x2010, 0x1020};
  synth_open(synth_dir());
  for (uint32_t i = 0; i < 20000; i++) {
    int n = (int)(i % 3);
    if (i % 2000 == 0) synth_module(n, 0x1000, 0x1000, 0x2fff, i / 2000 & 1 ? "/b" : "/a", NULL, 0);
    if (i % 500 < 3) synth_stack(n, i / 500 + 1, frames, 1 + i / 500 % 3);
    if (i % 1000 == 0) synth_extended(n, WEIR_EV_NOTE, 0, 0, "a note", 6);
    if (i % 10 < 2)
      synth_alloc(n, i * 100, 50, 0x10000 + (uint64_t)i / 10 * 512, 256, 0, WEIR_MEM_DEVICE);
    else
      synth_event(n, i * 100, 50,
                  (trace_event){.kind = WEIR_EV_CALL, .a = i, .stack = i / 500 + 1});
  }
  synth_close();
}

/* 0: chunks stay, as for weir import; 1: they are handed back, as by a collector. */
START_TEST(killed_at_any_write_an_importer_is_gone_on_with)
{
  char whole[600], broken[600];
  long last, kills = 0;
  (void)snprintf(whole, sizeof(whole), "%s/whole.db", synth_dir());
  (void)snprintf(broken, sizeof(broken), "%s/broken.db", synth_dir());
  disk_install();
  write_rich_spool();
  ck_assert(!import_until_killed(whole, 0, false));
  char *spool = strdup(synth_spool()), copy[800];
  (void)snprintf(copy, sizeof(copy), "cp --sparse=always %s %s/kept", spool, synth_dir());
  ck_assert_int_eq(system(copy), 0);
  for (last = 1;; last += 1 + last / 2) {
    if (!import_until_killed(broken, last, _i)) break;
    kills++;
    if (last & 1) (void)import_until_killed(broken, last / 2 + 1, false); /* and again */
    ck_assert(!import_until_killed(broken, 0, false));
    expect_same_rows(whole, broken, last);
    (void)unlink(broken);
    (void)snprintf(copy, sizeof(copy), "cp --sparse=always %s/kept %s", synth_dir(), spool);
    ck_assert_int_eq(system(copy), 0);
  }
  ck_assert_int_gt(kills, 7);
  ck_assert(!import_until_killed(broken, 0, false)); /* what is whole stays as it is */
  expect_same_rows(whole, broken, last);
  free(spool);
}
END_TEST

/* ---- resolving ------------------------------------------------------------------------------- */

/* Three stacks, whose module is nowhere: their sites are rows, and nothing has a name. */
static const char *trace_to_resolve(void)
{
  const uint64_t frames[] = {0x1010, 0x2010, 0x1020};
  const char *one[] = {NULL, NULL};
  synth_open(synth_dir());
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/lib/one.so", NULL, 0);
  for (uint32_t i = 0; i < 3; i++) {
    synth_stack(0, i + 1, frames, 1 + i);
    synth_event(0, i * 100, 50, (trace_event){.kind = WEIR_EV_CALL, .a = i, .stack = i + 1});
  }
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

static weir_status resolve(const char *trace)
{
  resolve_counts n;
  resolve_settings o = {0};
  return resolve_trace(trace, &o, &n);
}

/* Whole, and not resolved or wholly. */
static void expect_resolved(const char *trace, bool resolved)
{
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM pragma_integrity_check"
                                       " WHERE integrity_check = 'ok'"),
                   1);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM sqlite_schema"
                                       " WHERE name IN ('site', 'source_line', 'call_site')"),
                   resolved ? 3 : 0);
  ck_assert_int_eq(synth_number(trace, "SELECT count(caller) FROM call"), 0);
  if (resolved) ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM site"), 3);
  json_decref(synth_json(trace));
}

START_TEST(whichever_write_fails_a_trace_is_as_it_was)
{
  static const int codes[] = {SQLITE_FULL, SQLITE_IOERR_WRITE};
  long failures = 0;
  disk_install();
  const char *t = trace_to_resolve();
  for (long after = 0;; after++) {
    disk_fail(codes[_i], after);
    weir_status s = resolve(t);
    disk_fail(SQLITE_OK, 0);
    expect_resolved(t, s == WEIR_OK);
    if (!s) break;
    ck_assert_ptr_nonnull(strstr(weir_error_message(), t));
    ck_assert_msg(++failures < 1000, "%s", weir_error_message());
  }
  ck_assert_int_gt(failures, 5);
}
END_TEST

START_TEST(killed_at_any_write_a_resolve_leaves_all_or_nothing)
{
  long kills = 0;
  disk_install();
  for (;; kills++) {
    int status;
    ck_assert_int_lt(kills, 1000);
    const char *t = trace_to_resolve();
    pid_t child = fork();
    if (child == 0) {
      disk.writes = 0;
      disk.last = kills + 1;
      _exit(resolve(t) ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0 || WIFSIGNALED(status), "%#x", (unsigned)status);
    json_decref(synth_json(t)); /* by who may not write */
    expect_resolved(t, synth_number(t, "SELECT count(*) FROM sqlite_schema WHERE name = 'site'"));
    ck_assert_msg(resolve(t) == WEIR_OK, "%s", weir_error_message());
    expect_resolved(t, true);
    if (!status) break;
  }
  ck_assert_int_gt(kills, 5);
}
END_TEST

/* A real full disk, as above: what could be committed and not be folded in is not committed. */
START_TEST(on_a_full_tmpfs_a_trace_is_as_it_was)
{
  char mount_point[512], trace[600], ballast[600], copy[1300];
  uid_t uid = getuid();
  (void)snprintf(mount_point, sizeof(mount_point), "%s/small", synth_dir());
  (void)snprintf(trace, sizeof(trace), "%s/t.db", mount_point);
  (void)snprintf(ballast, sizeof(ballast), "%s/ballast", mount_point);
  (void)snprintf(copy, sizeof(copy), "cp %s %s", trace_to_resolve(), trace);
  ck_assert_int_eq(mkdir(mount_point, 0700), 0);
  if (unshare(CLONE_NEWNS | (uid ? CLONE_NEWUSER : 0))) return;
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL)) return;
  if (mount("tmpfs", mount_point, "tmpfs", 0, "size=4m")) return;
  ck_assert_int_eq(system(copy), 0);
  int fd = open(ballast, O_CREAT | O_WRONLY, 0600), failures = 0;
  off_t bytes = 0;
  while (!posix_fallocate(fd, bytes, 4096))
    bytes += 4096;
  for (; resolve(trace); failures++) { /* a page more room each time */
    ck_assert_msg(bytes > 0, "%s", weir_error_message());
    ck_assert_ptr_nonnull(strstr(weir_error_message(), trace));
    expect_resolved(trace, false);
    ck_assert_int_eq(ftruncate(fd, bytes -= 4096), 0);
  }
  close(fd);
  expect_resolved(trace, true);
  ck_assert_int_gt(failures, 2);
  umount(mount_point);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/import_faults");
  TCase *t = tcase_create("faults");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, whichever_write_fails_the_next_try_completes_the_trace, 0, 2);
  tcase_add_loop_test(t, killed_at_any_write_an_importer_is_gone_on_with, 0, 2);
  tcase_add_test(t, a_trace_that_cannot_be_created_leaves_no_file);
  tcase_add_test(t, a_full_tmpfs_is_an_error_and_goes_on_when_there_is_room);
  tcase_add_test(t, what_is_in_the_way_is_said_and_left_alone);
  tcase_add_test(t, spools_that_are_none_are_refused_and_others_go_on);
  tcase_add_test(t, another_table_of_functions_is_a_version_error);
  tcase_add_test(t, a_newer_writers_functions_and_kinds_get_a_number_for_a_name);
  tcase_add_test(t, damage_is_counted_and_the_rest_imported);
  tcase_add_test(t, a_killed_collector_leaves_a_readable_trace);
  tcase_add_test(t, what_is_not_committed_is_still_in_the_spool);
  tcase_add_test(t, a_finish_locks_nobody_out);
  suite_add_tcase(s, t);
  t = tcase_create("resolve");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, whichever_write_fails_a_trace_is_as_it_was, 0, 2);
  tcase_add_test(t, killed_at_any_write_a_resolve_leaves_all_or_nothing);
  tcase_add_test(t, on_a_full_tmpfs_a_trace_is_as_it_was);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
