/* kept.c: see kept.h.
 *
 * The rows are written in WAL mode, which the trace enters and leaves for it (reports/model/change.h):
 * whoever is killed meanwhile leaves a trace that can be read. There SQLite counts a transaction that
 * changes the first page, as one that makes a table does; the number that the row holds is the one
 * before, plus 1. */
#include "reports/whole/kept.h"
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "core/base/build_id.h"
#include "core/base/map.h"
#include "core/weir.h"
#include "reports/base/util.h"
#include "reports/findings/rule.h"
#include "reports/model/change.h"
#include "reports/whole/files.h"
#include "reports/whole/shapes.h"

enum { HEADER_BYTES = 100, LONGEST_ID = 64 };

static const char *const names[WR_KEPTS] = {"model", "findings"};

/* ---- what it has to be ----------------------------------------------------------------------- */

/* Of the executable, which the loader lists first. */
static int hash_build_id(struct dl_phdr_info *info, size_t size, void *context)
{
  uint64_t *hash = context;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uint32_t length = 0;
    if (p->p_type != PT_NOTE) continue;
    const uint8_t *note = (const uint8_t *)info->dlpi_addr + p->p_vaddr;
    const uint8_t *id = build_id_in_note(note, p->p_memsz, LONGEST_ID, &length);
    for (uint32_t k = 0; id && k < length; k++)
      *hash = hash_mix(*hash, id[k]);
  }
  return 1;
}

static uint64_t find_stamp(void)
{
  static uint64_t stamp;
  uint64_t known = __atomic_load_n(&stamp, __ATOMIC_RELAXED);
  if (known) return known;
  uint64_t hash = wr_hash_text(9, weir_version());
  dl_iterate_phdr(hash_build_id, &hash);
  hash = wr_rules_hash(hash);
  hash = wr_shape_hash(wr_shape_hash(hash, &wr_model_shape), &wr_findings_shape) | 1;
  __atomic_store_n(&stamp, hash, __ATOMIC_RELAXED);
  return hash;
}

static uint32_t big_endian(const unsigned char *p)
{
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The change counter of the file itself, and whether it is in WAL mode. False: it is none. */
static bool read_header(const wr_db *db, uint32_t *change, bool *wal)
{
  unsigned char head[HEADER_BYTES];
  sqlite3_file *file = NULL;
  if (sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_FILE_POINTER, &file) || !file ||
      !file->pMethods || file->pMethods->xRead(file, head, sizeof(head), 0) ||
      memcmp(head, "SQLite format 3", 16) != 0)
    return false;
  *change = big_endian(head + 24);
  *wal = head[18] != 1 || head[19] != 1;
  return true;
}

bool wr_kept_any(const wr_db *db)
{
  uint32_t change;
  bool wal;
  return db->schema == WR_SCHEMA_VERSION && !db->anew && !db->symbols && !db->innermost_sites &&
         wr_db_has_table(db, "kept") && read_header(db, &change, &wal) && !wal;
}

bool wr_kept_find_now(const wr_db *db, wr_kept_of *now)
{
  bool wal = true;
  *now = (wr_kept_of){.stamp = find_stamp()};
  return db->schema == WR_SCHEMA_VERSION && read_header(db, &now->change, &wal) && !wal &&
         wr_module_files_hash(db, &now->files);
}

bool wr_kept_is_in_wal(const wr_db *db)
{
  uint32_t change;
  bool wal = false;
  return read_header(db, &change, &wal) && wal;
}

size_t wr_kept_most(const wr_db *db)
{
  int64_t pages = 0, page_bytes = 0;
  if (wr_db_number(db, "PRAGMA main.page_count", &pages) ||
      wr_db_number(db, "PRAGMA main.page_size", &page_bytes))
    return WR_KEPT_LEAST_MOST;
  int64_t share = pages * page_bytes / WR_KEPT_SHARE;
  if (share > WR_KEPT_MOST) return WR_KEPT_MOST;
  return share < WR_KEPT_LEAST_MOST ? WR_KEPT_LEAST_MOST : (size_t)share;
}

uint64_t wr_kept_sum(const unsigned char *bytes, size_t count)
{
  uint64_t sum = hash_mix(10, count), word;
  for (; count >= sizeof(word); bytes += sizeof(word), count -= sizeof(word)) {
    memcpy(&word, bytes, sizeof(word));
    sum = hash_mix(sum, word);
  }
  word = 0;
  memcpy(&word, bytes, count);
  return hash_mix(sum, word);
}

/* ---- reading --------------------------------------------------------------------------------- */

enum { COLUMN_STAMP, COLUMN_CHANGE, COLUMN_FILES, COLUMN_SUM, COLUMN_VALUE };

static uint64_t number_of(sqlite3_stmt *q, int column)
{
  return (uint64_t)sqlite3_column_int64(q, column);
}

static bool is_of_now(const wr_db *db, sqlite3_stmt *q)
{
  wr_kept_of now;
  return wr_kept_find_now(db, &now) && number_of(q, COLUMN_STAMP) == now.stamp &&
         number_of(q, COLUMN_CHANGE) == now.change && number_of(q, COLUMN_FILES) == now.files;
}

static bool read_row(const wr_db *db, sqlite3_stmt *q, const wr_shape *shape, void *root)
{
  int count = sqlite3_column_bytes(q, COLUMN_VALUE);
  const unsigned char *bytes = sqlite3_column_blob(q, COLUMN_VALUE);
  return bytes && wr_kept_sum(bytes, (size_t)count) == number_of(q, COLUMN_SUM) &&
         is_of_now(db, q) && wr_shape_read(bytes, (size_t)count, shape, root);
}

bool wr_kept_read(const wr_db *db, int which, const wr_shape *shape, void *root)
{
  sqlite3_stmt *q = NULL;
  if (!wr_kept_any(db)) return false;
  if (sqlite3_prepare_v2(db->handle,
                         "SELECT stamp, change, files, sum, value FROM main.kept WHERE what = ?1"
                         " AND typeof(value) = 'blob' AND length(value) <= ?2",
                         -1, &q, NULL))
    return false;
  sqlite3_bind_text(q, 1, names[which], -1, SQLITE_STATIC);
  sqlite3_bind_int(q, 2, WR_KEPT_MOST);
  bool good = sqlite3_step(q) == SQLITE_ROW && read_row(db, q, shape, root);
  sqlite3_finalize(q);
  return good;
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct writing {
  const wr_kept_of *of;
  const wr_shape_bytes *rows;
} writing;

/* Between then and now the trace was not changed, by a journal or in a WAL that somebody else began. */
static weir_status expect_unchanged(const wr_db *db, uint32_t then)
{
  uint32_t change = 0;
  bool wal = false;
  struct stat file;
  char *name = wr_format("%s-wal", db->path);
  bool good = name && read_header(db, &change, &wal) && wal && change == then &&
              (stat(name, &file) || !file.st_size);
  free(name);
  return good ? WEIR_OK : weir_fail(WEIR_EIO, "%s was changed while it was reported on", db->path);
}

static weir_status insert_row(const wr_db *db, const writing *w, int which, sqlite3_stmt *insert)
{
  const wr_shape_bytes *row = &w->rows[which];
  if (!row->count) return WEIR_OK;
  sqlite3_bind_text(insert, 1, names[which], -1, SQLITE_STATIC);
  sqlite3_bind_int64(insert, 2, (sqlite3_int64)w->of->stamp);
  sqlite3_bind_int64(insert, 3, (uint32_t)(w->of->change + 1));
  sqlite3_bind_int64(insert, 4, (sqlite3_int64)w->of->files);
  sqlite3_bind_int64(insert, 5, (sqlite3_int64)wr_kept_sum(row->data, row->count));
  sqlite3_bind_blob64(insert, 6, row->data, row->count, SQLITE_STATIC);
  return wr_db_run(db, insert);
}

static weir_status write_rows(void *context, const wr_db *db)
{
  const writing *w = context;
  sqlite3_stmt *insert = NULL;
  weir_status s = expect_unchanged(db, w->of->change);
  if (!s)
    s = wr_db_exec(db, "DROP TABLE IF EXISTS main.kept;"
                       "CREATE TABLE main.kept(what TEXT PRIMARY KEY, stamp INTEGER NOT NULL,"
                       " change INTEGER NOT NULL, files INTEGER NOT NULL, sum INTEGER NOT NULL,"
                       " value BLOB NOT NULL)");
  if (!s) s = wr_db_prepare(db, "INSERT INTO main.kept VALUES(?,?,?,?,?,?)", &insert);
  for (int i = 0; !s && i < WR_KEPTS; i++)
    s = insert_row(db, w, i, insert);
  sqlite3_finalize(insert);
  return s;
}

weir_status wr_kept_write(const char *trace, const wr_kept_of *of,
                          const wr_shape_bytes rows[WR_KEPTS])
{
  writing w = {of, rows};
  return wr_change_trace(&(wr_change){.trace = trace,
                                      .longest = 2 * WR_KEPT_MOST,
                                      .patience_ms = 200,
                                      .make = write_rows,
                                      .context = &w});
}

static weir_status change_nothing(void *context, const wr_db *db)
{
  (void)context, (void)db;
  return WEIR_OK;
}

weir_status wr_kept_leave_wal(const char *trace)
{
  return wr_change_trace(&(wr_change){
      .trace = trace, .longest = WR_KEPT_MOST, .patience_ms = 200, .make = change_nothing});
}
