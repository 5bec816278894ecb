/* files.c: see files.h. */
#include "reports/whole/files.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/map.h"
#include "reports/base/util.h"

enum { MOST_FILES = 1 << 16 };

typedef struct hashing {
  uint64_t hash;
  size_t files;
} hashing;

/* `path` is taken; NULL: out of memory. */
static weir_status add_file(hashing *h, char *path)
{
  struct stat file;
  if (!path || ++h->files > MOST_FILES) {
    free(path);
    return WEIR_ENOMEM;
  }
  h->hash = wr_hash_text(h->hash, path);
  if (stat(path, &file)) {
    h->hash = hash_mix(h->hash, 0);
  } else {
    const uint64_t facts[] = {1,
                              (uint64_t)file.st_dev,
                              (uint64_t)file.st_ino,
                              (uint64_t)file.st_size,
                              (uint64_t)file.st_mtim.tv_sec,
                              (uint64_t)file.st_mtim.tv_nsec,
                              file.st_mode,
                              access(path, R_OK) == 0};
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
      h->hash = hash_mix(h->hash, facts[i]);
  }
  free(path);
  return WEIR_OK;
}

/* path, build_id: the module's file, and where distributions and `objcopy --only-keep-debug` put
 * its debug information (reports/symbols/debug_files.c). */
static weir_status add_module(void *context, sqlite3_stmt *q)
{
  hashing *h = context;
  const char *path = (const char *)sqlite3_column_text(q, 0);
  const char *id = (const char *)sqlite3_column_text(q, 1);
  if (!path || path[0] != '/') return WEIR_OK;
  const int folder = (int)(strrchr(path, '/') - path);
  const char *name = path + folder + 1;
  weir_status s = add_file(h, wr_format("%s", path));
  if (!s) s = add_file(h, wr_format("%s.debug", path));
  if (!s) s = add_file(h, wr_format("%.*s/.debug/%s", folder, path, name));
  if (!s) s = add_file(h, wr_format("%.*s/.debug/%s.debug", folder, path, name));
  if (!s) s = add_file(h, wr_format("/usr/lib/debug%s", path));
  if (!s) s = add_file(h, wr_format("/usr/lib/debug%s.debug", path));
  if (!s && id && strlen(id) > 2)
    s = add_file(h, wr_format("/usr/lib/debug/.build-id/%.2s/%s.debug", id, id + 2));
  return s;
}

/* pid: what code that it made itself is called. */
static weir_status add_process(void *context, sqlite3_stmt *q)
{
  const long long pid = sqlite3_column_int64(q, 0);
  weir_status s = add_file(context, wr_format("/tmp/perf-%lld.map", pid));
  return s ? s : add_file(context, wr_format("/tmp/jit-%lld.dump", pid));
}

bool wr_module_files_hash(const wr_db *db, uint64_t *hash)
{
  hashing h = {.hash = 11};
  weir_status s = wr_db_each(db, "SELECT DISTINCT path, build_id FROM main.module ORDER BY 1, 2",
                             add_module, &h);
  if (!s) s = wr_db_each(db, "SELECT DISTINCT pid FROM main.process ORDER BY 1", add_process, &h);
  *hash = h.hash;
  return !s;
}
