/* pools.c: what was in the driver's own memory pools, those of cudaMallocAsync, from the facts that
 * the library wrote down about each now and then (interpose/record/pools.h). A pool is known by its
 * handle until the program destroys it; another that gets the handle is another pool. */
#include <stdlib.h>
#include "reports/model/cache.h"
#include "core/base/map.h"
#include "reports/base/util.h"

typedef struct pass {
  wr_cache *c;
  const wr_db *db;
  hash_map by_handle; /* process and handle -> index in c->pools, plus 1 */
  size_t capacity;
} pass;

static void raise_peak(uint64_t *most, uint64_t now)
{
  if (now > *most) *most = now;
}

/* NULL: out of memory. */
static wr_pool *pool_of(pass *p, uint64_t process, uint64_t handle)
{
  wr_cache *c = p->c;
  uint64_t key = hash_mix(process, handle);
  const uint64_t *known = hash_map_get(&p->by_handle, key);
  if (known) return &c->pools[*known - 1];
  if (!wr_grow(&c->pools, &p->capacity, c->pool_count + 1, sizeof(wr_pool))) return NULL;
  uint64_t *place = hash_map_place(&p->by_handle, key, NULL);
  if (!place) return NULL;
  c->pools[c->pool_count] = (wr_pool){.handle = handle, .device = -1};
  *place = ++c->pool_count;
  return &c->pools[c->pool_count - 1];
}

static void take_level(wr_pool *x, sqlite3_stmt *q)
{
  x->used = (uint64_t)sqlite3_column_int64(q, 4);
  x->reserved = (uint64_t)sqlite3_column_int64(q, 5);
  x->threshold = (uint64_t)sqlite3_column_int64(q, 6);
  x->from_start = sqlite3_column_type(q, 8) != SQLITE_NULL;
  x->last_ns = sqlite3_column_int64(q, 9);
  if (!x->samples++) x->first_ns = x->last_ns;
  raise_peak(&x->used_peak, x->used);
  raise_peak(&x->reserved_peak, x->reserved);
}

/* process, pid, fact, handle, b, bytes, stream, device, src_device, time */
static weir_status take_pool_row(void *context, sqlite3_stmt *q)
{
  pass *p = context;
  uint64_t process = (uint64_t)sqlite3_column_int64(q, 0);
  uint64_t handle = (uint64_t)sqlite3_column_int64(q, 3);
  int fact = sqlite3_column_int(q, 2);
  if (fact == WEIR_CACHE_POOL_ENDED) {
    uint64_t key = hash_mix(process, handle);
    const uint64_t *known = hash_map_get(&p->by_handle, key);
    if (known) p->c->pools[*known - 1].ended = true;
    if (known) hash_map_remove(&p->by_handle, key);
    return WEIR_OK;
  }
  wr_pool *x = pool_of(p, process, handle);
  if (!x) return wr_db_out_of_memory(p->db);
  x->pid = sqlite3_column_int64(q, 1);
  if (sqlite3_column_type(q, 7) != SQLITE_NULL) x->device = sqlite3_column_int(q, 7);
  if (fact == WEIR_CACHE_POOL) {
    take_level(x, q);
  } else {
    raise_peak(&x->used_peak, (uint64_t)sqlite3_column_int64(q, 4));
    raise_peak(&x->reserved_peak, (uint64_t)sqlite3_column_int64(q, 5));
  }
  return WEIR_OK;
}

/* The ones that had most first. */
static int by_size(const void *a, const void *b)
{
  const wr_pool *x = a, *y = b;
  if (x->reserved_peak != y->reserved_peak) return x->reserved_peak < y->reserved_peak ? 1 : -1;
  return (x->first_ns > y->first_ns) - (x->first_ns < y->first_ns);
}

uint64_t wr_pool_keeps(const wr_pool *x)
{
  return x->threshold < x->reserved_peak ? x->threshold : x->reserved_peak;
}

weir_status wr_pools_load(wr_cache *c, const wr_db *db)
{
  pass p = {.c = c, .db = db};
  weir_status s = wr_db_each(db,
                             "SELECT e.process, p.pid, e.copy, e.a, e.b, e.bytes, e.stream,"
                             " e.device, e.src_device, e.\"end\" FROM rare_event e"
                             " JOIN process p ON p.id = e.process WHERE e.kind = 13"
                             " AND e.copy IN (6, 7, 8) ORDER BY e.\"end\", e.id",
                             take_pool_row, &p);
  hash_map_free(&p.by_handle);
  if (c->pool_count) qsort(c->pools, c->pool_count, sizeof(wr_pool), by_size);
  return s;
}
