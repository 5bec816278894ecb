/* oom.c: weir report oom: for a run that ended for want of memory: who had it, what was free, and
 * which blocks would have been enough to release.
 *
 * The moment is the first allocation of device memory that failed with "out of memory": what was
 * live then is what had to go; those after it, which a program may try again and again, are listed.
 * Where none failed, it is the end of the last process that SIGKILL ended, as the system's killer
 * of processes does. What is free is the driver's word (device_memory_sample), which is asked for
 * where memory has run out. */
#include <stdlib.h>
#include "reports/base/util.h"
#include "reports/import/lifetime.h"
#include "reports/base/units.h"
#include "reports/tables/build.h"
#include "reports/tables/memory_sweep.h"

/* An allocation that failed. */
typedef struct failure {
  int64_t start, duration;
  uint64_t asked;                              /* bytes */
  int64_t process, device, api, stack, thread; /* device -1: not known */
} failure;

typedef struct moment {
  const wr_scope *scope;
  const wr_db *db;
  bool found;   /* there is one */
  bool failed;  /* an allocation; else a process was killed */
  failure at;   /* it; of a process that was killed, which and when */
  failure *all; /* owned: those of device memory, in order of time */
  size_t failures, room;
  uint64_t host; /* allocations of page-locked memory that failed */
  bool known;    /* what is free */
  uint64_t total_bytes, free_bytes;
  uint64_t pools; /* bytes that the driver's pools keep unused */
} moment;

/* ---- the moment ------------------------------------------------------------------------------ */

/* Columns: 0 start, 1 duration, 2 bytes, 3 process, 4 device, 5 api, 6 stack, 7 thread, 8 mem. */
static weir_status take_failure(void *context, sqlite3_stmt *q)
{
  moment *m = context;
  if (!wr_scope_has(m->scope, sqlite3_column_int64(q, 3), sqlite3_column_int64(q, 0), 0))
    return WEIR_OK;
  if (!wr_mem_device_side(sqlite3_column_int(q, 8))) {
    m->host++;
    return WEIR_OK;
  }
  if (!wr_grow(&m->all, &m->room, m->failures + 1, sizeof(*m->all)))
    return wr_db_out_of_memory(m->db);
  int64_t asked = sqlite3_column_int64(q, 2);
  m->all[m->failures++] = (failure){
      .start = sqlite3_column_int64(q, 0),
      .duration = sqlite3_column_int64(q, 1),
      .asked = asked > 0 ? (uint64_t)asked : 0,
      .process = sqlite3_column_int64(q, 3),
      .device = sqlite3_column_type(q, 4) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, 4),
      .api = sqlite3_column_int64(q, 5),
      .stack = sqlite3_column_int64(q, 6),
      .thread = sqlite3_column_int64(q, 7)};
  m->at = m->all[0];
  m->failed = m->found = true;
  return WEIR_OK;
}

static weir_status take_killed(void *context, sqlite3_stmt *q)
{
  moment *m = context;
  if (!wr_scope_process(m->scope, sqlite3_column_int64(q, 0))) return WEIR_OK;
  m->at.process = sqlite3_column_int64(q, 0);
  m->at.start = sqlite3_column_int64(q, 1);
  m->found = true;
  return WEIR_OK;
}

static weir_status take_said(void *context, sqlite3_stmt *q)
{
  moment *m = context;
  int64_t total = sqlite3_column_int64(q, 0), unused = sqlite3_column_int64(q, 1);
  if (total <= 0 || unused < 0 || unused > total) return WEIR_OK;
  m->known = true;
  m->total_bytes = (uint64_t)total;
  m->free_bytes = (uint64_t)unused;
  return WEIR_OK;
}

static weir_status take_pool(void *context, sqlite3_stmt *q)
{
  moment *m = context;
  int64_t reserved = sqlite3_column_int64(q, 0), used = sqlite3_column_int64(q, 1);
  if (used >= 0 && reserved > used) m->pools += (uint64_t)(reserved - used);
  return WEIR_OK;
}

static weir_status each(const wr_db *db, const char *format, const moment *m,
                        weir_status (*row)(void *, sqlite3_stmt *), void *context)
{
  char *sql = wr_format(format, (long long)m->at.process, (long long)m->at.device,
                        (long long)m->at.start, (long long)m->at.duration);
  weir_status s = sql ? wr_db_each(db, sql, row, context) : wr_db_out_of_memory(db);
  free(sql);
  return s;
}

/* What the driver said of the device then, up to 1 ms behind the call that failed, where it is
 * asked; and of its pools. */
static weir_status find_said(const wr_db *db, moment *m)
{
  static const char said[] =
      "SELECT e.bytes, e.b FROM event_row e CROSS JOIN template t ON t.id = e.template"
      " WHERE e.template < 0 AND t.kind = 13 AND t.copy = 9 AND t.process = %lld"
      " AND t.device IS %lld AND e.start <= %lld + %lld + 1000000 ORDER BY e.start, e.id";
  static const char pools[] =
      "SELECT bytes, b, max(start) FROM (SELECT e.bytes, e.b, e.a, t.process, t.copy, e.start"
      " FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE e.template < 0"
      " AND t.kind = 13 AND t.copy IN (6, 8) AND t.process = %lld AND t.device IS %lld"
      " AND e.start <= %lld + %lld) GROUP BY process, a HAVING copy = 6";
  weir_status s = each(db, said, m, take_said, m);
  return s ? s : each(db, pools, m, take_pool, m);
}

static weir_status find_moment(const wr_build *b, moment *m)
{
  static const char failures[] =
      "SELECT e.start, e.duration, e.bytes, t.process, t.device, t.api, t.stack, t.thread,"
      " t.mem FROM event_row e CROSS JOIN template t ON t.id = e.template"
      " WHERE t.kind = 1 AND t.status = 2 ORDER BY e.start, e.id";
  static const char killed[] = "SELECT id, \"end\" FROM process WHERE end_reason = 'signal'"
                               " AND end_detail = 9 AND \"end\" IS NOT NULL ORDER BY \"end\"";
  *m = (moment){.scope = b->scope, .db = b->db, .at.device = -1};
  weir_status s = wr_db_each(b->db, failures, take_failure, m);
  if (!s && !m->failed) s = wr_db_each(b->db, killed, take_killed, m);
  if (!s && m->failed) s = find_said(b->db, m);
  return s;
}

/* ---- who had it ------------------------------------------------------------------------------ */

typedef struct owner {
  uint32_t group;
  uint64_t bytes, blocks;
} owner;

typedef struct held {
  uint64_t live, code, managed;
  owner *owner; /* owned; by group */
  size_t owners;
  const wr_swept_block **block; /* owned; live, of the device, the largest first */
  size_t blocks;
} held;

static int by_owner_bytes(const void *left, const void *right)
{
  const owner *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return a->group < b->group ? -1 : a->group > b->group;
}

static int by_block_bytes(const void *left, const void *right)
{
  const wr_swept_block *a = *(const wr_swept_block *const *)left;
  const wr_swept_block *b = *(const wr_swept_block *const *)right;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return a->born < b->born ? -1 : a->born > b->born;
}

static bool was_there(const wr_swept_block *k, const moment *m)
{
  return k->start <= m->at.start && k->gone >= m->at.start &&
         (m->at.device < 0 ? k->device != WR_HOST : k->device == m->at.device);
}

static void take_held_block(held *h, const wr_swept_block *k)
{
  if (wr_mem_taken(k->class)) h->code += k->bytes;
  if (k->class == WEIR_MEM_MANAGED) h->managed += k->bytes;
  if (!wr_mem_device_side(k->class) || k->class == WEIR_MEM_MANAGED) return;
  h->live += k->bytes;
  h->owner[k->group].bytes += k->bytes;
  h->owner[k->group].blocks++;
  h->block[h->blocks++] = k;
}

static weir_status find_held(const wr_db *db, held *h, const wr_memory_sweep *s, const moment *m)
{
  *h = (held){.owner = calloc(s->group_count + 1, sizeof *h->owner),
              .owners = s->group_count,
              .block = malloc((s->count + 1) * sizeof(wr_swept_block *))};
  if (!h->owner || !h->block) return wr_db_out_of_memory(db);
  for (size_t i = 0; i < h->owners; i++)
    h->owner[i].group = (uint32_t)i;
  for (size_t i = 0; i < s->count; i++)
    if (was_there(&s->block[i], m) && s->block[i].group < h->owners)
      take_held_block(h, &s->block[i]);
  qsort(h->owner, h->owners, sizeof *h->owner, by_owner_bytes);
  qsort(h->block, h->blocks, sizeof(wr_swept_block *), by_block_bytes);
  while (h->owners && !h->owner[h->owners - 1].blocks)
    h->owners--;
  return WEIR_OK;
}

static void free_held(held *h)
{
  free(h->owner);
  free(h->block);
}

/* The fewest blocks that have `need` bytes together, the last of them as small as it can be: their
 * number; the first ones of h->block, but the last, which is *last. 0: all of them have not. */
static size_t fewest(const held *h, uint64_t need, size_t *last)
{
  uint64_t had = 0;
  size_t n = 0;
  while (n < h->blocks && had < need)
    had += h->block[n++]->bytes;
  if (!n || had < need) return 0;
  had -= h->block[n - 1]->bytes;
  *last = n - 1;
  while (*last + 1 < h->blocks && had + h->block[*last + 1]->bytes >= need)
    ++*last;
  return n;
}

/* ---- the tables ------------------------------------------------------------------------------ */

#define ADD_TABLE(b, name, title, columns)                                                         \
  wr_tables_add((b)->t, name, title, columns, sizeof(columns) / sizeof *(columns))

static weir_status put_failure(wr_named_table *t, const failure *f, wr_groups *g)
{
  wr_frame_name place;
  weir_status s = wr_group_place(g, f->stack, &place);
  if (s) return s;
  wr_table_row(t);
  wr_table_put(t, f->asked);
  wr_table_put(t, f->start > 0 ? (uint64_t)f->start : 0);
  wr_table_put_text(t, wr_group_function(g, f->api));
  wr_table_put_text(t, wr_group_thread(g, f->thread));
  wr_put_device(t, f->device);
  wr_table_put_place(t, place.function, place.file, place.line);
  wr_frame_name_free(&place);
  return WEIR_OK;
}

static const wr_column failure_columns[] = {
    {"asked_bytes", "asked for", WR_COLUMN_BYTES, 0}, {"at_ns", "at", WR_COLUMN_MOMENT, 0},
    {"function", "function", WR_COLUMN_TEXT, 0},      {"thread", "thread", WR_COLUMN_TEXT, 3},
    {"device", "device", WR_COLUMN_TEXT, 2},          {"place", "in", WR_COLUMN_PLACE, 0}};

static weir_status add_request(const wr_build *b, const moment *m, wr_groups *g)
{
  wr_named_table *t = ADD_TABLE(b, "request", "The allocation that failed", failure_columns);
  if (m->failures > 1)
    wr_table_aside(t, "the first of %s", wr_counted(m->failures, "one", "that did").text);
  return put_failure(t, &m->at, g);
}

/* Behind all that is said of the first. */
static weir_status add_failures(const wr_build *b, const moment *m, wr_groups *g)
{
  size_t shown = b->top && (size_t)b->top < m->failures ? (size_t)b->top : m->failures;
  weir_status s = WEIR_OK;
  if (m->failures < 2) return WEIR_OK;
  wr_named_table *t = ADD_TABLE(b, "failures", "All allocations that failed", failure_columns);
  if (shown < m->failures) wr_table_aside(t, "the first %zu of %zu", shown, m->failures);
  for (size_t i = 0; !s && i < shown; i++)
    s = put_failure(t, &m->all[i], g);
  wr_tables_note(b->t, "What is said of the first is said of a later one with --from its time.");
  return s;
}

static void put_part(wr_named_table *t, const char *what, uint64_t bytes, uint64_t whole)
{
  wr_table_row(t);
  wr_table_put_text(t, what);
  wr_table_put(t, bytes);
  wr_table_put_share(t, bytes, whole);
}

static void add_held_parts(const wr_build *b, const moment *m, const held *h)
{
  static const wr_column columns[] = {{"what", "what", WR_COLUMN_TEXT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"share_of_device", "of the device", WR_COLUMN_SHARE, 0}};
  uint64_t known = h->live + h->code + m->pools, used = m->total_bytes - m->free_bytes;
  wr_named_table *t = ADD_TABLE(b, "device_memory", "Where the memory of the device was", columns);
  put_part(t, "live blocks of the run", h->live, m->total_bytes);
  if (h->code) put_part(t, "code and contexts, as measured", h->code, m->total_bytes);
  if (m->pools) put_part(t, "kept by the driver's pools, unused", m->pools, m->total_bytes);
  if (!m->known) return;
  if (used >= known)
    put_part(t, "the rest: driver, caches, other programs", used - known, m->total_bytes);
  else
    wr_tables_note(b->t,
                   "The live blocks are more than the driver says is in use: %s that not all"
                   " have memory of the device of their own.",
                   wr_bytes(known - used).text);
  put_part(t, "free", m->free_bytes, m->total_bytes);
}

static void add_held_owners(const wr_build *b, const held *h, const wr_groups *g)
{
  wr_column columns[5] = {{"bytes", "live bytes", WR_COLUMN_BYTES, 0},
                          {"blocks", "blocks", WR_COLUMN_COUNT, 0},
                          {"share_of_bytes", "of the live", WR_COLUMN_SHARE, 0}};
  size_t shown = b->top && (size_t)b->top < h->owners ? (size_t)b->top : h->owners;
  owner rest = {0};
  wr_named_table *t = wr_tables_add(b->t, "owners", "Who had the live blocks", columns,
                                    3 + wr_group_columns(g, columns + 3));
  for (size_t i = shown; i < h->owners; i++)
    rest.bytes += h->owner[i].bytes, rest.blocks += h->owner[i].blocks;
  for (size_t i = 0; i < shown + (shown < h->owners); i++) {
    const owner *o = i < shown ? &h->owner[i] : &rest;
    wr_table_row(t);
    wr_table_put(t, o->bytes);
    wr_table_put(t, o->blocks);
    wr_table_put_share(t, o->bytes, h->live);
    wr_group_put(g, t, i < shown ? &g->group[o->group] : NULL);
  }
  if (shown < h->owners) wr_table_aside(t, "the first %zu of %zu", shown, h->owners);
}

static void add_releases(const wr_build *b, const moment *m, const held *h, const wr_groups *g)
{
  wr_column columns[4] = {{"bytes", "bytes", WR_COLUMN_BYTES, 0},
                          {"allocated_at_ns", "allocated at", WR_COLUMN_MOMENT, 0}};
  uint64_t need = m->at.asked > m->free_bytes ? m->at.asked - m->free_bytes : 0;
  size_t last = 0, n = fewest(h, need, &last);
  if (!m->known || !m->at.asked) return;
  if (!need) {
    wr_tables_note(b->t, "As much was free: it is in pieces, or the driver keeps it for itself.");
    return;
  }
  if (!n) {
    wr_tables_note(b->t, "All live blocks together are less than the %s that were missing.",
                   wr_bytes(need).text);
    return;
  }
  wr_named_table *t = wr_tables_add(b->t, "releases", "The fewest blocks to release for it to fit",
                                    columns, 2 + wr_group_columns(g, columns + 2));
  wr_table_aside(t, "%s were missing", wr_bytes(need).text);
  for (size_t i = 0; i < n && i < 1000; i++) {
    const wr_swept_block *k = h->block[i + 1 < n ? i : last];
    wr_table_row(t);
    wr_table_put(t, k->bytes);
    wr_table_put(t, k->start > 0 ? (uint64_t)k->start : 0);
    wr_group_put(g, t, &g->group[k->group]);
  }
}

static void add_oom_notes(const wr_build *b, const moment *m, const held *h)
{
  if (!m->failed)
    wr_tables_note(b->t,
                   "No allocation of device memory failed; a process was ended by SIGKILL, as "
                   "a system without memory does: this is what was live then.");
  if (m->failed && !m->known)
    wr_tables_note(b->t, "What was free is not known: the driver was not asked.");
  if (m->host)
    wr_tables_note(b->t, "%s of page-locked host memory failed, too.",
                   wr_counted(m->host, "allocation", "allocations").text);
  if (h->managed)
    wr_tables_note(b->t, "Beside these, %s of managed memory were live, which may be anywhere.",
                   wr_bytes(h->managed).text);
}

static weir_status add_moment(const wr_build *b, const moment *m)
{
  wr_scope all = {.to = INT64_MAX};
  wr_memory_sweep s;
  held h = {0};
  weir_status st = wr_memory_sweep_load(&s, b->db, &all, b->o->by);
  if (st) return st;
  st = find_held(b->db, &h, &s, m);
  if (!st && m->failed) st = add_request(b, m, &s.groups);
  if (!st) {
    add_held_parts(b, m, &h);
    add_held_owners(b, &h, &s.groups);
    add_releases(b, m, &h, &s.groups);
    add_oom_notes(b, m, &h);
    st = add_failures(b, m, &s.groups);
  }
  free_held(&h);
  wr_memory_sweep_free(&s);
  return st;
}

weir_status wr_build_oom(const wr_build *b)
{
  moment m;
  weir_status s = find_moment(b, &m);
  if (!s && !m.found)
    wr_tables_note(b->t, "No allocation of device memory failed for want of memory, and no process "
                         "was killed.");
  if (!s && m.found) s = add_moment(b, &m);
  free(m.all);
  return s;
}
