/* in_use.c: see in_use.h. */
#include "reports/model/in_use.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/import/lifetime.h"
#include "reports/model/sites.h"

uint64_t wr_in_use_known(const wr_moment *m)
{
  return m->live + m->cached + m->pools + m->engine + m->graphs + m->code + m->contexts;
}

int64_t wr_in_use_unexplained(const wr_in_use *u, const wr_moment *m)
{
  return (int64_t)(m->used - wr_in_use_known(m) - u->before - (uint64_t)m->others);
}

/* ---- samples --------------------------------------------------------------------------------- */

typedef struct sampler {
  wr_in_use_sums *s;
  wr_in_use *(*of)(void *context, int device);
  void *context;
  int sayer;
  int64_t ended;       /* when the last process had */
  wr_moment most[256]; /* so far */
} sampler;

static int by_time(const void *left, const void *right)
{
  const wr_moment *a = left, *b = right;
  return (a->at > b->at) - (a->at < b->at);
}

/* Moments that are one stand once. */
static void join_moments(wr_in_use *u)
{
  size_t all = u->moments;
  if (all) qsort(u->moment, all, sizeof *u->moment, by_time);
  u->moments = all ? 1 : 0;
  for (size_t i = 1; i < all; i++)
    if (u->moment[i].at != u->moment[u->moments - 1].at) u->moment[u->moments++] = u->moment[i];
}

/* The driver's: the first, the greatest, the last so far stand in their places; of NVML's the
 * greatest and the last have the last two. Columns: device, total, free, time, of others, place,
 * how many. */
static void place_moment(sampler *p, wr_in_use *u, int device, const wr_moment *now, int64_t place,
                         int64_t count)
{
  const size_t spread = p->sayer == WR_BY_NVML ? WR_SPREAD : 1;
  int64_t step = count / (int64_t)spread + 1;
  bool first = !u->samples++;
  if (first || now->used > p->most[device].used) p->most[device] = *now;
  if ((first || place % step == 0) && u->moments < spread) u->moment[u->moments++] = *now;
  u->moment[spread] = p->most[device];
  u->moment[spread + 1] = *now;
}

/* Before the driver was first asked there was no context: what that took would be unexplained. */
static bool is_ahead(const sampler *p, int device, int64_t at)
{
  const wr_in_use *driver = p->s->device[WR_BY_DRIVER][device];
  return p->sayer == WR_BY_NVML && driver && at < driver->moment[0].at;
}

static weir_status take_sample(void *context, sqlite3_stmt *q)
{
  sampler *p = context;
  int64_t device = sqlite3_column_int64(q, 0);
  uint64_t total = (uint64_t)sqlite3_column_int64(q, 1);
  uint64_t free_bytes = (uint64_t)sqlite3_column_int64(q, 2);
  if (device < 0 || device >= WR_NO_DEVICE || free_bytes > total) return WEIR_OK;
  wr_in_use *u = p->of(p->context, (int)device) + p->sayer;
  wr_moment now = {.at = sqlite3_column_int64(q, 3), .used = total - free_bytes};
  bool known = sqlite3_column_type(q, 4) != SQLITE_NULL;
  int64_t others = known ? sqlite3_column_int64(q, 4) : -1;
  if (!u->samples) u->after = -1, u->first_others = others;
  if (is_ahead(p, (int)device, now.at)) {
    u->ahead = now.used;
    u->has_ahead = true;
    return WEIR_OK;
  }
  if (now.at > p->ended) {
    u->after = (int64_t)now.used;
    return WEIR_OK;
  }
  if (known && u->first_others >= 0)
    now.others = (int64_t)((uint64_t)others - (uint64_t)u->first_others);
  place_moment(p, u, (int)device, &now, sqlite3_column_int64(q, 5), sqlite3_column_int64(q, 6));
  u->total = total;
  p->s->device[p->sayer][device] = u;
  p->s->any = true;
  return WEIR_OK;
}

static const char *const samples_sql[WR_SAYERS] = {
    [WR_BY_DRIVER] = "SELECT device, bytes, b, \"end\", NULL, 0, 1 FROM rare_event WHERE kind = 13"
                     " AND copy = 9 AND device IS NOT NULL ORDER BY \"end\", id",
    [WR_BY_NVML] = "SELECT device, total_bytes, total_bytes - used_bytes, time_ns, of_others_bytes,"
                   " row_number() OVER (PARTITION BY device ORDER BY time_ns, id) - 1,"
                   " count(*) OVER (PARTITION BY device) FROM device_usage ORDER BY time_ns, id"};

/* Whether NVML means what the driver means: not where the driver has a part of it only. */
static bool is_same_device(const wr_in_use *driver, const wr_in_use *nvml)
{
  return !driver || (driver->total <= nvml->total && driver->total >= nvml->total / 8 * 7);
}

static void close_samples(wr_in_use_sums *s, int sayer)
{
  for (int i = 0; i < 256; i++) {
    wr_in_use *u = s->device[sayer][i];
    if (!u) continue;
    if (sayer == WR_BY_NVML && !is_same_device(s->device[WR_BY_DRIVER][i], u)) {
      *u = (wr_in_use){.samples = 0};
      s->device[sayer][i] = NULL;
      continue;
    }
    size_t spread = sayer == WR_BY_NVML ? WR_SPREAD : 1;
    u->moment[u->moments] = u->moment[spread];
    u->moment[u->moments + 1] = u->moment[spread + 1];
    u->moments += 2;
    join_moments(u);
  }
}

static weir_status load_samples(wr_in_use_sums *s, int sayer,
                                wr_in_use *(*of)(void *context, int device), void *context,
                                const wr_db *db)
{
  if (sayer == WR_BY_NVML && !wr_db_has_table(db, "nvml_sample")) return WEIR_OK;
  sampler *p = calloc(1, sizeof *p);
  int64_t living = 0;
  if (!p) return weir_fail(WEIR_ENOMEM, "adding up what is in use: out of host memory");
  *p = (sampler){.s = s, .of = of, .context = context, .sayer = sayer, .ended = INT64_MAX};
  weir_status status = WEIR_OK;
  if (sayer == WR_BY_NVML)
    status = wr_db_number(db, "SELECT count(*) FROM process WHERE \"end\" IS NULL", &living);
  if (!status && sayer == WR_BY_NVML && !living)
    status = wr_db_number(db, "SELECT max(\"end\") FROM process", &p->ended);
  if (!status) status = wr_db_each(db, samples_sql[sayer], take_sample, p);
  free(p);
  close_samples(s, sayer);
  return status;
}

static weir_status take_process_end(void *context, sqlite3_stmt *q)
{
  wr_in_use_sums *s = context;
  uint64_t *end = hash_map_place(&s->ends, (uint64_t)sqlite3_column_int64(q, 0), NULL);
  if (!end) return weir_fail(WEIR_ENOMEM, "adding up what is in use: out of host memory");
  *end = (uint64_t)sqlite3_column_int64(q, 1) + 1;
  return WEIR_OK;
}

/* ---- what calls took ------------------------------------------------------------------------- */

/* Of a process, what a reset gives back: of a device all, of a context its code and itself. */
static void take_reset(wr_in_use_sums *s, sqlite3_stmt *q)
{
  int64_t process = sqlite3_column_int64(q, 1), handle = sqlite3_column_int64(q, 7);
  bool whole = sqlite3_column_int64(q, 5) != 1;
  for (size_t i = 0; i < s->take_count; i++) {
    wr_take *x = &s->take[i];
    if (x->process != process || x->until != INT64_MAX) continue;
    bool of_context = x->by == WEIR_TAKEN_CONTEXT ? x->handle == handle
                                                  : x->context == sqlite3_column_int64(q, 9);
    if (whole ? x->device == sqlite3_column_int(q, 2) : of_context)
      x->until = sqlite3_column_int64(q, 3);
  }
}

/* What a module takes or gives back later is of its own context, whichever is current. Its handle may
 * be another's once it was unloaded. */
static int64_t context_of(const wr_in_use_sums *s, const wr_take *x)
{
  for (size_t i = s->take_count; x->by == WEIR_TAKEN_CODE && i-- > 0;) {
    const wr_take *last = &s->take[i];
    if (last->process != x->process || last->handle != x->handle || last->by != x->by) continue;
    return last->bytes > 0 && last->until == INT64_MAX ? last->context : x->context;
  }
  return x->context;
}

/* Columns: kind, process, device, start, end, bytes, b, a, stack, context. */
static weir_status take_taken(void *context, sqlite3_stmt *q)
{
  wr_in_use_sums *s = context;
  if (sqlite3_column_int(q, 0) == WEIR_EV_RESET) {
    take_reset(s, q);
    return WEIR_OK;
  }
  if (!wr_grow(&s->take, &s->take_capacity, s->take_count + 1, sizeof(wr_take)))
    return weir_fail(WEIR_ENOMEM, "adding up what is in use: out of host memory");
  wr_take x = {.process = sqlite3_column_int64(q, 1),
               .device = sqlite3_column_int(q, 2),
               .start = sqlite3_column_int64(q, 3),
               .end = sqlite3_column_int64(q, 4),
               .bytes = sqlite3_column_int64(q, 5),
               .by = sqlite3_column_int(q, 6),
               .handle = sqlite3_column_int64(q, 7),
               .stack = sqlite3_column_int64(q, 8),
               .context = sqlite3_column_int64(q, 9),
               .until = INT64_MAX};
  x.context = context_of(s, &x);
  s->take[s->take_count++] = x;
  return WEIR_OK;
}

static int by_start(const void *left, const void *right)
{
  const wr_take *a = left, *b = right;
  return (a->start > b->start) - (a->start < b->start);
}

static weir_status load_taken(wr_in_use_sums *s, const wr_db *db)
{
  weir_status status =
      wr_db_each(db,
                 "SELECT kind, process, device, start, \"end\", bytes, b, a, stack, context FROM"
                 " rare_event WHERE (kind = 10 AND status = 0) OR (kind = 13 AND copy = 11 AND"
                 " device IS NOT NULL) ORDER BY CASE kind WHEN 10 THEN start ELSE \"end\" END, id",
                 take_taken, s);
  if (s->take_count) qsort(s->take, s->take_count, sizeof(wr_take), by_start);
  for (size_t i = 0; i < s->take_count; i++) {
    wr_take *x = &s->take[i];
    x->latest = i && x[-1].latest > x->end ? x[-1].latest : x->end;
  }
  return status;
}

/* A block of the device begins or ends: what was measured around it is not known. */
static void mix_taken(wr_in_use_sums *s, int device, int64_t at)
{
  size_t low = 0, high = s->take_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (s->take[middle].start <= at)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low && s->take[low - 1].latest >= at; low--)
    if (s->take[low - 1].device == device && s->take[low - 1].end >= at)
      s->take[low - 1].mixed = true;
}

weir_status wr_in_use_open(wr_in_use_sums *s, wr_in_use *(*of)(void *context, int device),
                           void *context, const wr_db *db)
{
  weir_status status = load_samples(s, WR_BY_DRIVER, of, context, db);
  if (!status) status = load_samples(s, WR_BY_NVML, of, context, db);
  if (!status && s->any) status = load_taken(s, db);
  if (status || !s->any) return status;
  return wr_db_each(db, "SELECT id, \"end\" FROM process WHERE \"end\" IS NOT NULL",
                    take_process_end, s);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool add_to_sum(wr_in_use_sums *s, const wr_in_use_block *b, wr_moment *moment)
{
  bool added;
  uint64_t where = (uint64_t)(uintptr_t)moment;
  uint64_t *at =
      hash_map_place(&s->index, hash_mix(hash_mix(9, (uint64_t)b->stack), where), &added);
  if (!at) return false;
  if (added) {
    if (!wr_grow(&s->sum, &s->capacity, s->count + 1, sizeof *s->sum)) return false;
    *at = s->count++;
    s->sum[*at] = (struct wr_in_use_sum){.stack = b->stack, .moment = moment};
  }
  s->sum[*at].bytes += b->bytes;
  return true;
}

/* What a process has not freed goes with it. */
static int64_t end_within(wr_in_use_sums *s, int64_t process, int64_t until)
{
  const uint64_t *end = hash_map_get(&s->ends, (uint64_t)process);
  int64_t of_process = end ? (int64_t)(*end - 1) : INT64_MAX;
  return until < of_process ? until : of_process;
}

static bool add_to_moments(wr_in_use_sums *s, wr_in_use *u, const wr_in_use_block *b, int64_t end)
{
  for (size_t i = 0; i < u->moments; i++) {
    wr_moment *m = &u->moment[i];
    if (b->start > m->at || end <= m->at) continue;
    if (b->mem == WEIR_MEM_MANAGED)
      m->managed += b->bytes;
    else if (m->live += b->bytes, !add_to_sum(s, b, m))
      return false;
  }
  return true;
}

weir_status wr_in_use_add(wr_in_use_sums *s, const wr_in_use_block *b, const wr_db *db)
{
  if (b->device < 0 || b->device >= 256 || !wr_mem_device_side(b->mem)) return WEIR_OK;
  int64_t end = end_within(s, b->process, b->end);
  if (s->take_count) mix_taken(s, b->device, b->start);
  if (s->take_count) mix_taken(s, b->device, b->end);
  for (int k = 0; k < WR_SAYERS; k++)
    if (s->device[k][b->device] && !add_to_moments(s, s->device[k][b->device], b, end))
      return wr_db_out_of_memory(db);
  return WEIR_OK;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* CUDA's own driver and runtime, and Weir's. */
static bool is_foreign(const char *name)
{
  return !strncmp(name, "libcuda.so", 10) || !strncmp(name, "libcudart.so", 12) ||
         !strncmp(name, "libweir", 7);
}

static const char *file_name(sqlite3_stmt *q, int column)
{
  const char *path = (const char *)sqlite3_column_text(q, column);
  const char *slash = path ? strrchr(path, '/') : NULL;
  return slash ? slash + 1 : path;
}

/* Who asks through libffi is not libffi, but who called it. What asks from an interpreter is the script,
 * where its frames are known, else the interpreter, and not a library that it calls through. */
static bool replaces(const char *name, const char *next)
{
  return !name || wr_is_interpreter(next) || !strncmp(name, "libffi", 6);
}

/* The module that asked (new, NULL: out of memory): of the stack's innermost frame that is neither
 * CUDA's nor Weir's. `q`: of the frames of stack ?1, the innermost first, the paths of their modules,
 * and of scripts. */
static char *owner_of(sqlite3_stmt *q, int64_t stack)
{
  char *name = NULL;
  bool more = true;
  sqlite3_bind_int64(q, 1, stack);
  while (more && sqlite3_step(q) == SQLITE_ROW) {
    const char *script = file_name(q, 1), *base = script ? script : file_name(q, 0);
    if (!base || is_foreign(base) || (!script && !replaces(name, base))) continue;
    free(name);
    name = wr_text(base, strlen(base), true);
    more = name && !script && wr_is_interpreter(base);
  }
  sqlite3_reset(q);
  return name ? name : wr_text("(unknown)", 9, true);
}

static bool add_owner(wr_owners *list, char *module, uint64_t bytes)
{
  for (size_t i = 0; module && i < list->count; i++) {
    if (strcmp(list->owner[i].module, module) != 0) continue;
    list->owner[i].bytes += bytes;
    free(module);
    return true;
  }
  wr_owner *more = module ? reallocarray(list->owner, list->count + 1, sizeof *more) : NULL;
  if (!more) {
    free(module);
    return false;
  }
  list->owner = more;
  list->owner[list->count++] = (wr_owner){module, bytes};
  return true;
}

static int by_bytes(const void *left, const void *right)
{
  const wr_owner *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return strcmp(a->module, b->module);
}

/* More was given back than was seen taken: of that owner nothing is known. */
static void sort_owners(wr_owners *list)
{
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++) {
    if ((int64_t)list->owner[i].bytes > 0)
      list->owner[kept++] = list->owner[i];
    else
      free(list->owner[i].module);
  }
  list->count = kept;
  if (kept) qsort(list->owner, kept, sizeof *list->owner, by_bytes);
}

static bool is_taken_at(wr_in_use_sums *s, const wr_take *x, int64_t at)
{
  return !x->mixed && x->start <= at && end_within(s, x->process, x->until) > at;
}

static weir_status add_taken(wr_in_use_sums *s, sqlite3_stmt *q, int device, wr_moment *m)
{
  int64_t contexts = 0;
  for (size_t i = 0; i < s->take_count; i++) {
    const wr_take *x = &s->take[i];
    if (x->device != device || !is_taken_at(s, x, m->at)) continue;
    if (x->by == WEIR_TAKEN_CONTEXT)
      contexts = (int64_t)((uint64_t)contexts + (uint64_t)x->bytes);
    else if (!add_owner(&m->of_code, owner_of(q, x->stack), (uint64_t)x->bytes))
      return weir_fail(WEIR_ENOMEM, "adding up what is in use: out of host memory");
  }
  m->contexts = contexts > 0 ? (uint64_t)contexts : 0;
  sort_owners(&m->of_code);
  for (size_t i = 0; i < m->of_code.count; i++)
    m->code += m->of_code.owner[i].bytes;
  return WEIR_OK;
}

static weir_status name_owners(wr_in_use_sums *s, const wr_db *db)
{
  sqlite3_stmt *q = NULL;
  static const char *const frames_sql[2] = {
      "SELECT m.path, NULL FROM stack_frame s JOIN frame f ON f.id = s.frame"
      " JOIN module m ON m.id = f.module WHERE s.stack = ?1 ORDER BY s.depth",
      "SELECT m.path, p.file FROM stack_frame s JOIN frame f ON f.id = s.frame"
      " LEFT JOIN module m ON m.id = f.module"
      " LEFT JOIN python_frame p ON p.process = f.process AND p.address = f.address"
      " WHERE s.stack = ?1 ORDER BY s.depth"};
  weir_status status = wr_db_prepare(db, frames_sql[wr_db_has_table(db, "python_frame")], &q);
  for (size_t i = 0; !status && i < s->count; i++) {
    const struct wr_in_use_sum *x = &s->sum[i];
    if (!add_owner(&x->moment->of_live, owner_of(q, x->stack), x->bytes))
      status = wr_db_out_of_memory(db);
  }
  for (int i = 0; i < WR_SAYERS * 256; i++) {
    wr_in_use *u = s->device[i / 256][i % 256];
    for (size_t k = 0; !status && u && k < u->moments; k++) {
      sort_owners(&u->moment[k].of_live);
      status = add_taken(s, q, i % 256, &u->moment[k]);
    }
  }
  sqlite3_finalize(q);
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

static const char graphs_sql[] =
    "SELECT sum(bytes) FROM (SELECT e.bytes, max(e.id) FROM rare_event e"
    " JOIN process p ON p.id = e.process WHERE e.kind = 13 AND e.copy = 10"
    " AND e.device = ?1 AND e.\"end\" <= ?2 AND ifnull(p.\"end\" > ?2, 1) GROUP BY e.process)";
static const char graph_blocks_sql[] =
    "SELECT sum(b.bytes) FROM block_row r JOIN block b ON b.id = r.id JOIN process p"
    " ON p.id = b.process WHERE r.work IS NOT NULL AND b.device = ?1 AND b.start <= ?2"
    " AND ifnull(b.\"end\" > ?2, ifnull(p.\"end\" > ?2, 1))";

/* Reserved, less what blocks take of it. */
static weir_status add_idle(uint64_t *idle, const char *sql, const char *blocks_sql, int device,
                            int64_t at, const wr_db *db)
{
  uint64_t in_use = 0;
  weir_status status = sum_at(db, sql, device, at, idle);
  if (status || !*idle) return status;
  status = sum_at(db, blocks_sql, device, at, &in_use);
  *idle -= in_use < *idle ? in_use : *idle;
  return status;
}

static weir_status add_reserved(wr_moment *m, int device, const wr_db *db)
{
  weir_status status = sum_at(db, pools_sql, device, m->at, &m->pools);
  if (!status) status = add_idle(&m->engine, engine_sql, engine_blocks_sql, device, m->at, db);
  if (status || !wr_schema_graph_memory(db)) return status;
  return add_idle(&m->graphs, graphs_sql, graph_blocks_sql, device, m->at, db);
}

weir_status wr_in_use_finish(wr_in_use_sums *s, const wr_db *db)
{
  weir_status status = s->any ? name_owners(s, db) : WEIR_OK;
  for (int i = 0; i < WR_SAYERS * 256; i++) {
    wr_in_use *u = s->device[i / 256][i % 256];
    if (!u) continue;
    for (size_t k = 0; !status && k < u->moments; k++)
      status = add_reserved(&u->moment[k], i % 256, db);
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
  free(s->take);
  *s = (wr_in_use_sums){0};
}

static void free_owners(wr_owners *list)
{
  for (size_t i = 0; i < list->count; i++)
    free(list->owner[i].module);
  free(list->owner);
}

void wr_in_use_free(wr_in_use *u)
{
  for (int k = 0; k < WR_SAYERS; k++) {
    for (size_t i = 0; i < WR_MOMENTS; i++) {
      free_owners(&u[k].moment[i].of_live);
      free_owners(&u[k].moment[i].of_code);
    }
    u[k] = (wr_in_use){0};
  }
}
