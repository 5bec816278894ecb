/* reserved.c: what libweir's own allocator had from the driver (core/trace/listener.h). Its blocks
 * are the program's allocations, and are counted as such; the memory they are cut from is counted
 * here and nowhere else. Each fact is a level: bytes in all, of one process and device. A process
 * that ends has none. */
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/model/model.h"

typedef struct pass {
  wr_model *m;
  hash_map level;             /* of process, kind of memory and device -> bytes */
  uint64_t device[WR_PLACES]; /* bytes now */
  uint64_t sum[2];            /* of all devices, of what is page-locked */
} pass;

static void raise_peak(uint64_t *peak, uint64_t now)
{
  if (now > *peak) *peak = now;
}

static void change_level(pass *p, bool pinned, int device, uint64_t by)
{
  p->sum[pinned] += by;
  if (!pinned) p->device[device] += by;
}

static void end_process(pass *p, uint64_t process)
{
  size_t at = 0;
  uint64_t key, *level;
  while (hash_map_next(&p->level, &at, &key, &level)) {
    if (key >> 10 != process) continue;
    change_level(p, key & 1, (int)(key >> 1 & 511), -*level);
    *level = 0;
  }
}

/* process, device, mem, bytes, whether it is the process's end */
static weir_status take_block_row(void *context, sqlite3_stmt *q)
{
  pass *p = context;
  bool pinned = sqlite3_column_int(q, 2) == WEIR_MEM_PINNED;
  int device = sqlite3_column_type(q, 1) == SQLITE_NULL ? WR_HOST : sqlite3_column_int(q, 1);
  uint64_t process = (uint64_t)sqlite3_column_int64(q, 0);
  uint64_t bytes = (uint64_t)sqlite3_column_int64(q, 3);
  if (sqlite3_column_int(q, 4)) {
    end_process(p, process);
    return WEIR_OK;
  }
  if (device < 0 || device > WR_HOST) return WEIR_OK;
  uint64_t *was = hash_map_place(&p->level, process << 10 | (unsigned)device << 1 | pinned, NULL);
  if (!was) return weir_fail(WEIR_ENOMEM, "adding up reserved memory: out of host memory");
  change_level(p, pinned, device, bytes - *was);
  *was = bytes;
  raise_peak(pinned ? &p->m->total.weir_pinned_reserved_peak_bytes
                    : &p->m->total.weir_reserved_peak_bytes,
             p->sum[pinned]);
  if (!pinned && device != WR_HOST)
    raise_peak(&p->m->devices[device].total.weir_reserved_peak_bytes, p->device[device]);
  return WEIR_OK;
}

weir_status wr_reserved_load(wr_model *m, const wr_db *db)
{
  pass p = {.m = m};
  weir_status s = wr_db_each(db,
                             "SELECT process, device, mem, bytes, 0 AS ends, \"end\" AS t, id"
                             " FROM rare_event WHERE kind = 13 AND copy = 5 UNION ALL"
                             " SELECT id, NULL, 0, 0, 1, \"end\", 0 FROM process"
                             " WHERE \"end\" IS NOT NULL ORDER BY t, ends, id",
                             take_block_row, &p);
  hash_map_free(&p.level);
  return s;
}
