/* in_use.c: see in_use.h. */
#include "reports/model/in_use.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/import/lifetime.h"

uint64_t wr_in_use_known(const wr_moment *m)
{
  return m->live + m->cached + m->pools + m->engine;
}

int64_t wr_in_use_unexplained(const wr_in_use *u, const wr_moment *m)
{
  return (int64_t)(m->used - wr_in_use_known(m) - u->before);
}

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct sampler {
  wr_in_use_sums *s;
  wr_in_use *(*of)(void *context, int device);
  void *context;
} sampler;

/* The first, the greatest and the last so far stand in their places. Columns: device, total, free,
 * time. */
static weir_status take_sample(void *context, sqlite3_stmt *q)
{
  sampler *p = context;
  int64_t device = sqlite3_column_int64(q, 0);
  uint64_t total = (uint64_t)sqlite3_column_int64(q, 1);
  uint64_t free_bytes = (uint64_t)sqlite3_column_int64(q, 2);
  if (device < 0 || device >= WR_NO_DEVICE || free_bytes > total) return WEIR_OK;
  wr_in_use *u = p->of(p->context, (int)device);
  wr_moment now = {.at = sqlite3_column_int64(q, 3), .used = total - free_bytes};
  if (!u->samples++) u->moment[0] = u->moment[1] = now;
  if (now.used > u->moment[1].used) u->moment[1] = now;
  u->moment[2] = now;
  u->total = total;
  p->s->device[device] = u;
  p->s->any = true;
  return WEIR_OK;
}

/* Moments that are one stand once. */
static void join_moments(wr_in_use *u)
{
  u->moments = 1;
  for (int i = 1; i < WR_MOMENTS; i++)
    if (u->moment[i].at != u->moment[u->moments - 1].at) u->moment[u->moments++] = u->moment[i];
}

static weir_status take_process_end(void *context, sqlite3_stmt *q)
{
  wr_in_use_sums *s = context;
  uint64_t *end = hash_map_place(&s->ends, (uint64_t)sqlite3_column_int64(q, 0), NULL);
  if (!end) return weir_fail(WEIR_ENOMEM, "adding up what is in use: out of host memory");
  *end = (uint64_t)sqlite3_column_int64(q, 1) + 1;
  return WEIR_OK;
}

weir_status wr_in_use_open(wr_in_use_sums *s, wr_in_use *(*of)(void *context, int device),
                           void *context, const wr_db *db)
{
  sampler p = {s, of, context};
  weir_status status = wr_db_each(db,
                                  "SELECT device, bytes, b, \"end\" FROM rare_event WHERE kind = 13"
                                  " AND copy = 9 AND device IS NOT NULL ORDER BY \"end\", id",
                                  take_sample, &p);
  for (int i = 0; i < 256; i++)
    if (s->device[i]) join_moments(s->device[i]);
  if (status || !s->any) return status;
  return wr_db_each(db, "SELECT id, \"end\" FROM process WHERE \"end\" IS NOT NULL",
                    take_process_end, s);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool add_to_sum(wr_in_use_sums *s, const wr_in_use_block *b, int moment)
{
  bool added;
  uint64_t where = (uint64_t)b->device << 2 | (unsigned)moment;
  uint64_t *at =
      hash_map_place(&s->index, hash_mix(hash_mix(9, (uint64_t)b->stack), where), &added);
  if (!at) return false;
  if (added) {
    if (!wr_grow(&s->sum, &s->capacity, s->count + 1, sizeof *s->sum)) return false;
    *at = s->count++;
    s->sum[*at] = (struct wr_in_use_sum){.stack = b->stack, .device = b->device, .moment = moment};
  }
  s->sum[*at].bytes += b->bytes;
  return true;
}

/* What a process has not freed goes with it. */
static int64_t end_of(wr_in_use_sums *s, const wr_in_use_block *b)
{
  const uint64_t *end = hash_map_get(&s->ends, (uint64_t)b->process);
  int64_t of_process = end ? (int64_t)(*end - 1) : INT64_MAX;
  return b->end < of_process ? b->end : of_process;
}

weir_status wr_in_use_add(wr_in_use_sums *s, const wr_in_use_block *b, const wr_db *db)
{
  wr_in_use *u = b->device >= 0 && b->device < 256 ? s->device[b->device] : NULL;
  if (!u || !wr_mem_device_side(b->mem)) return WEIR_OK;
  int64_t end = end_of(s, b);
  for (size_t i = 0; i < u->moments; i++) {
    wr_moment *m = &u->moment[i];
    if (b->start > m->at || end <= m->at) continue;
    if (b->mem == WEIR_MEM_MANAGED)
      m->managed += b->bytes;
    else if (m->live += b->bytes, !add_to_sum(s, b, (int)i))
      return wr_db_out_of_memory(db);
  }
  return WEIR_OK;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* CUDA's own driver and runtime, and Weir's. */
static bool is_foreign(const char *name)
{
  return !strncmp(name, "libcuda.so", 10) || !strncmp(name, "libcudart.so", 12) ||
         !strncmp(name, "libweir", 7);
}

/* The module that asked (new, NULL: out of memory): of the stack's innermost frame that is neither
 * CUDA's nor Weir's. `q`: paths of the modules of stack ?1, the innermost frame first. */
static char *owner_of(sqlite3_stmt *q, int64_t stack)
{
  char *name = NULL;
  sqlite3_bind_int64(q, 1, stack);
  while (!name && sqlite3_step(q) == SQLITE_ROW) {
    const char *path = (const char *)sqlite3_column_text(q, 0);
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *base = slash ? slash + 1 : path;
    if (base && !is_foreign(base)) name = wr_text(base, strlen(base), true);
  }
  sqlite3_reset(q);
  return name ? name : wr_text("(unknown)", 9, true);
}

static bool add_owner(wr_moment *m, char *module, uint64_t bytes)
{
  for (size_t i = 0; module && i < m->owner_count; i++) {
    if (strcmp(m->owners[i].module, module) != 0) continue;
    m->owners[i].bytes += bytes;
    free(module);
    return true;
  }
  wr_owner *more = module ? reallocarray(m->owners, m->owner_count + 1, sizeof *more) : NULL;
  if (!more) {
    free(module);
    return false;
  }
  m->owners = more;
  m->owners[m->owner_count++] = (wr_owner){module, bytes};
  return true;
}

static int by_bytes(const void *left, const void *right)
{
  const wr_owner *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return strcmp(a->module, b->module);
}

static weir_status name_owners(wr_in_use_sums *s, const wr_db *db)
{
  sqlite3_stmt *q = NULL;
  weir_status status =
      wr_db_prepare(db,
                    "SELECT m.path FROM stack_frame s JOIN frame f ON f.id = s.frame JOIN module m"
                    " ON m.id = f.module WHERE s.stack = ?1 ORDER BY s.depth",
                    &q);
  for (size_t i = 0; !status && i < s->count; i++) {
    const struct wr_in_use_sum *x = &s->sum[i];
    wr_moment *m = &s->device[x->device]->moment[x->moment];
    if (!add_owner(m, owner_of(q, x->stack), x->bytes)) status = wr_db_out_of_memory(db);
  }
  sqlite3_finalize(q);
  for (int d = 0; d < 256; d++)
    for (size_t i = 0; s->device[d] && i < s->device[d]->moments; i++) {
      wr_moment *m = &s->device[d]->moment[i];
      if (m->owner_count) qsort(m->owners, m->owner_count, sizeof *m->owners, by_bytes);
    }
  return status;
}

/* ---- what is reserved and not in use --------------------------------------------------------- */

/* The sum that `sql` answers with for device ?1 at time ?2. */
static weir_status sum_at(const wr_db *db, const char *sql, int device, int64_t at, uint64_t *out)
{
  sqlite3_stmt *q = NULL;
  weir_status status = wr_db_prepare(db, sql, &q);
  if (status) return status;
  sqlite3_bind_int(q, 1, device);
  sqlite3_bind_int64(q, 2, at);
  int64_t n = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
  *out = n > 0 ? (uint64_t)n : 0;
  sqlite3_finalize(q);
  return WEIR_OK;
}

/* Of each pool, and of each process's libweir, the last fact until then; SQLite takes bare columns
 * from the row of the maximum. */
static const char pools_sql[] =
    "SELECT sum(bytes - b) FROM (SELECT e.copy AS fact, e.bytes, e.b, max(e.id) FROM rare_event e"
    " JOIN process p ON p.id = e.process WHERE e.kind = 13 AND e.copy IN (6, 8)"
    " AND (e.device = ?1 OR e.copy = 8) AND e.\"end\" <= ?2 AND ifnull(p.\"end\" > ?2, 1)"
    " GROUP BY e.process, e.a) WHERE fact = 6";
static const char engine_sql[] =
    "SELECT sum(bytes) FROM (SELECT e.bytes, max(e.id) FROM rare_event e"
    " JOIN process p ON p.id = e.process WHERE e.kind = 13 AND e.copy = 5 AND e.mem = 3"
    " AND e.device = ?1 AND e.\"end\" <= ?2 AND ifnull(p.\"end\" > ?2, 1) GROUP BY e.process)";
static const char engine_blocks_sql[] =
    "SELECT sum(b.bytes) FROM block b JOIN event e ON e.id = b.alloc JOIN api a ON a.id = e.api"
    " JOIN process p ON p.id = b.process WHERE a.layer = 'weir' AND b.device = ?1 AND b.mem = 3"
    " AND b.start <= ?2 AND ifnull(b.\"end\" > ?2, ifnull(p.\"end\" > ?2, 1))";

static weir_status add_reserved(wr_moment *m, int device, const wr_db *db)
{
  uint64_t in_use = 0;
  weir_status status = sum_at(db, pools_sql, device, m->at, &m->pools);
  if (!status) status = sum_at(db, engine_sql, device, m->at, &m->engine);
  if (status || !m->engine) return status;
  status = sum_at(db, engine_blocks_sql, device, m->at, &in_use);
  m->engine -= in_use < m->engine ? in_use : m->engine;
  return status;
}

weir_status wr_in_use_finish(wr_in_use_sums *s, const wr_db *db)
{
  weir_status status = s->any ? name_owners(s, db) : WEIR_OK;
  for (int d = 0; d < 256; d++) {
    wr_in_use *u = s->device[d];
    for (size_t i = 0; !status && u && i < u->moments; i++)
      status = add_reserved(&u->moment[i], d, db);
    if (!u) continue;
    uint64_t known = wr_in_use_known(&u->moment[0]);
    u->before = u->moment[0].used > known ? u->moment[0].used - known : 0;
  }
  return status;
}

void wr_in_use_sums_free(wr_in_use_sums *s)
{
  hash_map_free(&s->ends);
  hash_map_free(&s->index);
  free(s->sum);
  *s = (wr_in_use_sums){0};
}

void wr_in_use_free(wr_in_use *u)
{
  for (size_t i = 0; i < WR_MOMENTS; i++) {
    for (size_t k = 0; k < u->moment[i].owner_count; k++)
      free(u->moment[i].owners[k].module);
    free(u->moment[i].owners);
  }
  *u = (wr_in_use){0};
}
