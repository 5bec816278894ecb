/* named.c: see named.h. */
#include "reports/model/named.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "reports/import/lifetime.h"

typedef struct naming {
  wr_named *n;
  const wr_db *db;
  size_t room;
  hash_map by_name; /* hash of name, memory and device -> index of its sum, plus 1 */
} naming;

weir_status wr_named_blocks(const wr_db *db)
{
  weir_status s = wr_db_exec(db, "CREATE TEMP TABLE IF NOT EXISTS named_block(block INTEGER "
                                 "PRIMARY KEY, event INTEGER, name TEXT)");
  int64_t any = 0;
  if (s || !wr_db_has_table(db, "name") || !wr_db_has_column(db, "name", "time")) return s;
  s = wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM main.name WHERE kind IN ('heap', 'region'))",
                   &any);
  if (s || !any) return s;
  return wr_db_exec(db,
                    "INSERT OR REPLACE INTO temp.named_block SELECT b.id, b.alloc, n.name FROM"
                    " block b CROSS JOIN main.name n ON n.process = b.process AND n.kind IN"
                    " ('heap', 'region') AND n.handle = b.pointer AND n.time >= b.start AND"
                    " (b.\"end\" IS NULL OR n.time <= b.\"end\") WHERE b.pointer <> 0"
                    " AND NOT b.registered AND b.mem < 9 ORDER BY n.time, n.rowid;"
                    "CREATE INDEX IF NOT EXISTS temp.named_block_by_event ON named_block(event)");
}

/* name, mem, device, bytes, whether it is the end, how it ended; in the order of lives */
static wr_named_sum *sum_of(naming *w, sqlite3_stmt *q)
{
  const unsigned char *text = sqlite3_column_text(q, 0);
  bool host = sqlite3_column_type(q, 2) == SQLITE_NULL;
  int mem = sqlite3_column_int(q, 1), device = host ? -1 : sqlite3_column_int(q, 2);
  uint64_t key = hash_mix(hash_mix(1, (uint64_t)mem), (uint64_t)(int64_t)device);
  for (; text && *text; text++)
    key = hash_mix(key, *text);
  uint64_t *known = hash_map_place(&w->by_name, key, NULL);
  if (!known) return NULL;
  if (*known) return &w->n->sum[*known - 1];
  if (!wr_grow(&w->n->sum, &w->room, w->n->count + 1, sizeof(wr_named_sum))) return NULL;
  wr_named_sum *sum = &w->n->sum[w->n->count];
  *sum = (wr_named_sum){.name = wr_db_text(q, 0), .mem = mem, .device = device};
  if (!sum->name) return NULL;
  *known = ++w->n->count;
  return sum;
}

static weir_status take_life(void *context, sqlite3_stmt *q)
{
  naming *w = context;
  wr_named_sum *sum = sum_of(w, q);
  uint64_t bytes = (uint64_t)sqlite3_column_int64(q, 3);
  if (!sum) return wr_db_out_of_memory(w->db);
  if (sqlite3_column_int(q, 4)) {
    sum->now_bytes -= bytes;
    return WEIR_OK;
  }
  sum->blocks++;
  sum->bytes += bytes;
  sum->now_bytes += bytes;
  if (sqlite3_column_int(q, 5) == WR_BLOCK_LIVE) sum->live_bytes += bytes;
  if (sum->now_bytes > sum->peak_bytes) sum->peak_bytes = sum->now_bytes;
  return WEIR_OK;
}

static int by_peak(const void *a, const void *b)
{
  const wr_named_sum *x = a, *y = b;
  if (x->peak_bytes != y->peak_bytes) return x->peak_bytes < y->peak_bytes ? 1 : -1;
  int order = strcmp(x->name, y->name);
  return order ? order : x->device != y->device ? x->device - y->device : x->mem - y->mem;
}

weir_status wr_named_load(wr_named *n, const wr_db *db)
{
  naming w = {.n = n, .db = db};
  *n = (wr_named){0};
  weir_status s = wr_named_blocks(db);
  if (!s)
    s = wr_db_each(db,
                   "SELECT name, mem, device, bytes, over, how FROM (SELECT n.name AS name, b.mem"
                   " AS mem, b.device AS device, b.bytes AS bytes, 0 AS over, b.born AS place,"
                   " b.how AS how FROM temp.named_block n CROSS JOIN block b ON b.id = n.block"
                   " UNION ALL SELECT n.name, b.mem, b.device, b.bytes, 1, b.died, b.how"
                   " FROM temp.named_block n CROSS JOIN block b ON b.id = n.block"
                   " WHERE b.died IS NOT NULL) ORDER BY place, over DESC",
                   take_life, &w);
  if (n->count) qsort(n->sum, n->count, sizeof(*n->sum), by_peak);
  hash_map_free(&w.by_name);
  return s;
}

void wr_named_free(wr_named *n)
{
  for (size_t i = 0; i < n->count; i++)
    free(n->sum[i].name);
  free(n->sum);
  *n = (wr_named){0};
}
