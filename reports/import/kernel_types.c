/* kernel_types.c: see kernel_types.h. Kernels that have a C name are few, and so are the modules with device
 * code: their stubs are read, once a file, and only where some kernel has such a name. */
#include "reports/import/kernel_types.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "reports/base/kernel_stubs.h"
#include "reports/base/util.h"

typedef struct typed_kernels {
  const wr_db *db;
  sqlite3_stmt *add;
  hash_map
      wanted; /* C names -> 0; or the place of their text in `text`, from 1; UINT64_MAX: of several types */
  char **text; /* owned, and each: names with their types */
  size_t count, capacity;
} typed_kernels;

static uint64_t key_of(const char *name, size_t length)
{
  uint64_t key = 83;
  for (size_t i = 0; i < length; i++)
    key = hash_mix(key, (unsigned char)name[i]);
  return key;
}

/* name */
static weir_status want_name(void *context, sqlite3_stmt *q)
{
  typed_kernels *k = context;
  const char *name = (const char *)sqlite3_column_text(q, 0);
  if (!name || !*name) return WEIR_OK;
  return hash_map_put(&k->wanted, key_of(name, strlen(name)), 0) ? wr_db_out_of_memory(k->db)
                                                                 : WEIR_OK;
}

static weir_status take_stub(void *context, const char *name)
{
  size_t length;
  typed_kernels *k = context;
  const char *plain = wr_stub_plain_name(name, &length);
  uint64_t *at = plain ? hash_map_get(&k->wanted, key_of(plain, length)) : NULL;
  if (!at || *at == UINT64_MAX) return WEIR_OK;
  if (*at) {
    if (strcmp(k->text[*at - 1], name) != 0) *at = UINT64_MAX;
    return WEIR_OK;
  }
  char *own = strdup(name);
  if (!own || !wr_grow(&k->text, &k->capacity, k->count + 1, sizeof(*k->text))) {
    free(own);
    return wr_db_out_of_memory(k->db);
  }
  k->text[k->count++] = own;
  *at = k->count;
  return WEIR_OK;
}

/* path */
static weir_status take_module(void *context, sqlite3_stmt *q)
{
  return wr_kernel_stubs_each((const char *)sqlite3_column_text(q, 0), take_stub, context);
}

/* process, handle, name */
static weir_status type_kernel(void *context, sqlite3_stmt *q)
{
  typed_kernels *k = context;
  const char *name = (const char *)sqlite3_column_text(q, 2);
  const uint64_t *at = name ? hash_map_get(&k->wanted, key_of(name, strlen(name))) : NULL;
  if (!at || !*at || *at == UINT64_MAX) return WEIR_OK;
  sqlite3_bind_int64(k->add, 1, sqlite3_column_int64(q, 0));
  sqlite3_bind_int64(k->add, 2, sqlite3_column_int64(q, 1));
  sqlite3_bind_text(k->add, 3, k->text[*at - 1], -1, SQLITE_STATIC);
  return wr_db_run(k->db, k->add);
}

/* Kernels of a C name, as the processes name them: all of a trace, since processes of a run share their files. */
#define C_NAMED " FROM name WHERE kind = 'kernel' AND name NOT GLOB '_Z*'"

weir_status wr_finish_kernel_types(const wr_db *db)
{
  typed_kernels k = {.db = db};
  weir_status st = wr_db_each(db, "SELECT DISTINCT name" C_NAMED, want_name, &k);
  if (!st && k.wanted.count)
    st = wr_db_each(db, "SELECT DISTINCT path FROM module WHERE embeds_cuda", take_module, &k);
  if (!st && k.count)
    st = wr_db_prepare(db,
                       "INSERT INTO name(process, kind, handle, name, bytes, time)"
                       " VALUES(?1, 'kernel_types', ?2, ?3, 0, 0)",
                       &k.add);
  if (!st && k.count) st = wr_db_each(db, "SELECT process, handle, name" C_NAMED, type_kernel, &k);
  sqlite3_finalize(k.add);
  for (size_t i = 0; i < k.count; i++)
    free(k.text[i]);
  free(k.text);
  hash_map_free(&k.wanted);
  return st;
}
