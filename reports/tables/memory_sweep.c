/* memory_sweep.c: see memory_sweep.h. */
#include "reports/tables/memory_sweep.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/events/blocks.h"
#include "reports/import/event_columns.h"
#include "reports/import/lifetime.h"
#include "reports/model/model.h"

enum { PLACES = WR_HOST + 1 };

typedef struct memory_change { /* a block begins or ends */
  int64_t place;
  uint32_t block;
  bool begins;
} memory_change;

typedef struct memory_pass {
  wr_memory_sweep *s;
  const wr_db *db;
  const wr_scope *scope;
  hash_map ends; /* process -> end */
  int64_t from, to;
  int64_t peak_place;
} memory_pass;

static bool device_side(const wr_swept_block *b)
{
  return b->class != WR_REGISTERED && wr_mem_device_side(b->class);
}

static bool host_side(const wr_swept_block *b)
{
  return b->class == WR_REGISTERED || b->class == WEIR_MEM_PINNED || b->class == WEIR_MEM_HOST ||
         b->class == WEIR_MEM_PAGEABLE;
}

static wr_held *held_of_kind(const wr_memory_sweep *s, const wr_swept_block *b)
{
  return &s->kind[(size_t)b->device * WR_MEMORY_CLASSES + b->class];
}

/* ---- the blocks ------------------------------------------------------------------------------ */

static weir_status take_end_of_process(void *context, sqlite3_stmt *q)
{
  memory_pass *p = context;
  return hash_map_put(&p->ends, (uint64_t)sqlite3_column_int64(q, 0),
                      (uint64_t)sqlite3_column_int64(q, 1))
             ? wr_db_out_of_memory(p->db)
             : WEIR_OK;
}

enum { BY_A_GRAPH = 5 /* block.how: a launch of a graph ended it */ };

static wr_swept_block swept_block(const memory_pass *p, const wr_block *from)
{
  int mem = from->mem;
  wr_swept_block b = {.bytes = from->bytes,
                      .born = from->born,
                      .died = from->dead ? from->died : INT64_MAX,
                      .start = from->start,
                      .end = from->ended ? from->end : INT64_MAX,
                      .class = (uint8_t)(from->registered        ? WR_REGISTERED
                                         : mem >= 0 && mem <= 10 ? mem
                                                                 : WEIR_MEM_UNKNOWN)};
  bool of_device = device_side(&b) || wr_mem_taken(b.class);
  const uint64_t *end = hash_map_get(&p->ends, (uint64_t)from->process);
  b.device = (uint16_t)(of_device ? from->device : WR_HOST);
  b.in_launch = from->how == BY_A_GRAPH && b.end <= b.start;
  b.gone = from->ended ? b.end : from->dead && end ? (int64_t)*end : INT64_MAX;
  return b;
}

/* `t`: what its event has in common with others; `range`: of its event, and `name` that one's, 0:
 * none. */
static weir_status sweep_block(memory_pass *p, const wr_block *from, const wr_template *t,
                               int64_t range, int64_t name)
{
  wr_memory_sweep *s = p->s;
  wr_template c = *t;
  const wr_scope *x = p->scope;
  if (!wr_scope_process(x, c.process)) return WEIR_OK;
  if (x->by_range && !(range && hash_map_get(&x->ranges, (uint64_t)range))) return WEIR_OK;
  wr_swept_block b = swept_block(p, from);
  if (b.start >= p->to) return WEIR_OK;
  c.kind = WEIR_EV_ALLOC, c.device = b.device;
  size_t group = 0;
  weir_status st = wr_group_of(&s->groups, &c, name, &group);
  if (st) return st;
  b.group = (uint32_t)group;
  if (s->count >= UINT32_MAX / 2 || !wr_grow(&s->block, &s->capacity, s->count + 1, sizeof(b)))
    return wr_db_out_of_memory(p->db);
  s->block[s->count++] = b;
  return WEIR_OK;
}

static weir_status take_listed_block(void *context, const wr_block *b)
{
  return b->how != WR_BLOCK_UNKNOWN && b->placed ? sweep_block(context, b, b->t, 0, 0) : WEIR_OK;
}

enum { HOW, DEVICE, MEM, REGISTERED, BORN, DIED, START, END, BYTES, RANGE, RANGE_NAME, COMMON };

static weir_status take_row(void *context, sqlite3_stmt *q)
{
  wr_template t = wr_template_read(q, COMMON);
  int64_t device = sqlite3_column_int64(q, DEVICE);
  bool none = sqlite3_column_type(q, DEVICE) == SQLITE_NULL || device < 0 || device >= WR_HOST;
  const wr_block b = {.process = t.process,
                      .how = sqlite3_column_int64(q, HOW),
                      .device = none ? WR_HOST : (int)device,
                      .mem = sqlite3_column_int(q, MEM),
                      .registered = sqlite3_column_int(q, REGISTERED) != 0,
                      .born = sqlite3_column_int64(q, BORN),
                      .died = sqlite3_column_int64(q, DIED),
                      .dead = sqlite3_column_type(q, DIED) != SQLITE_NULL,
                      .start = sqlite3_column_int64(q, START),
                      .end = sqlite3_column_int64(q, END),
                      .ended = sqlite3_column_type(q, END) != SQLITE_NULL,
                      .bytes = (uint64_t)sqlite3_column_int64(q, BYTES)};
  return sweep_block(context, &b, &t, sqlite3_column_int64(q, RANGE),
                     sqlite3_column_int64(q, RANGE_NAME));
}

#define COMMON_COLUMN(name, ...) ", t." #name
#define BLOCKS_SQL(range, join)                                                                    \
  "SELECT b.how, b.device, b.mem, b.registered, b.born, b.died, b.start, b.\"end\", "              \
  "b.bytes, " range                                                                                \
  WR_TEMPLATE_MAP(COMMON_COLUMN) " FROM block b CROSS JOIN event_row e ON e.id = b.alloc"          \
                                 " CROSS JOIN template t ON t.id = e.template" join                \
                                 " WHERE b.how <> 4 AND b.born IS NOT NULL"

/* Where none is asked for its ranges. */
static weir_status take_blocks_in_order(memory_pass *p)
{
  wr_events events;
  wr_blocks blocks = {0};
  weir_status st = wr_events_open(&events, p->db);
  if (!st) st = wr_blocks_open(&blocks, &events);
  if (!st && blocks.by_pages)
    st = wr_blocks_each(&blocks, take_listed_block, p);
  else if (!st)
    st = wr_db_each(p->db, BLOCKS_SQL("0, 0", ""), take_row, p);
  wr_blocks_close(&blocks);
  wr_events_close(&events);
  return st;
}

static weir_status load_blocks(memory_pass *p)
{
  bool ranges = (p->scope->by_range || p->s->groups.by == WEIR_BY_RANGE) &&
                wr_db_has_table(p->db, "event_range") && wr_db_has_table(p->db, "range_row");
  int64_t finished = 0;
  weir_status s = wr_db_number(p->db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!s && finished != 1 && !wr_temporary_table(p->db, "block_row"))
    s = wr_lifetimes_temporary(p->db);
  if (!s)
    s = wr_db_each(p->db, "SELECT id, \"end\" FROM process WHERE \"end\" IS NOT NULL",
                   take_end_of_process, p);
  if (s) return s;
  return ranges ? wr_db_each(p->db,
                             BLOCKS_SQL("r.range, (SELECT x.name FROM range_row x"
                                        " WHERE x.id = r.range)",
                                        " LEFT JOIN event_range r ON r.event = e.id"),
                             take_row, p)
                : take_blocks_in_order(p);
}

/* ---- what is not of a moment ----------------------------------------------------------------- */

static void count_held(wr_held *h, const wr_swept_block *b, bool begun, bool at_end)
{
  if (begun) {
    h->blocks++, h->bytes += b->bytes;
    h->freed += b->end != INT64_MAX && !at_end;
  }
  if (at_end) h->end_blocks++, h->end_bytes += b->bytes;
}

static int lifetime_class(const wr_swept_block *b)
{
  if (b->end == INT64_MAX) return WR_NEVER_FREED;
  if (b->in_launch) return WR_IN_A_LAUNCH;
  uint64_t ns = b->end > b->start ? (uint64_t)b->end - (uint64_t)b->start : 0, limit = 1000;
  int i = 0;
  for (; i < WR_LIFETIMES - 1 && ns >= limit; i++)
    limit *= 10;
  return i;
}

static void count_blocks(memory_pass *p)
{
  wr_memory_sweep *s = p->s;
  for (size_t i = 0; i < s->count; i++) {
    const wr_swept_block *b = &s->block[i];
    bool begun = b->start >= p->from, at_end = b->end >= p->to || b->end == INT64_MAX;
    count_held(held_of_kind(s, b), b, begun, at_end);
    if (host_side(b)) count_held(&s->host_group[b->group], b, begun, at_end);
    if (!device_side(b)) continue;
    count_held(&s->all, b, begun, at_end);
    count_held(&s->device[b->device], b, begun, at_end);
    count_held(&s->group[b->group], b, begun, at_end);
    if (!begun) continue;
    int lived = lifetime_class(b);
    s->lived_blocks[lived]++, s->lived_bytes[lived] += b->bytes;
  }
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static int by_change_place(const void *left, const void *right)
{
  const memory_change *a = left, *b = right;
  if (a->place != b->place) return a->place < b->place ? -1 : 1;
  if (a->begins != b->begins)
    return a->begins ? 1 : -1; /* what takes another's place is after it */
  return a->block < b->block ? -1 : a->block > b->block;
}

static bool change_held(wr_held *h, const wr_swept_block *b, bool begins, bool counts)
{
  if (!begins) {
    h->live -= b->bytes < h->live ? b->bytes : h->live;
    return false;
  }
  h->live += b->bytes;
  if (!counts || h->live <= h->peak) return false;
  h->peak = h->live;
  h->peak_at = b->start > 0 ? (uint64_t)b->start : 0;
  return true;
}

/* What is live when the times begin is the most so far. */
static void begin_times(memory_pass *p, int64_t place)
{
  wr_memory_sweep *s = p->s;
  uint64_t at = p->from > 0 ? (uint64_t)p->from : 0;
#define BEGIN(held) (held).peak = (held).live, (held).peak_at = at
  BEGIN(s->all);
  for (size_t i = 0; i < PLACES; i++)
    BEGIN(s->device[i]);
  for (size_t i = 0; i < (size_t)PLACES * WR_MEMORY_CLASSES; i++)
    BEGIN(s->kind[i]);
  for (size_t i = 0; i < s->group_count; i++) {
    BEGIN(s->group[i]);
    BEGIN(s->host_group[i]);
    s->group[i].before = s->group[i].live;
  }
#undef BEGIN
  s->began = s->all.live;
  p->peak_place = place;
}

static uint64_t live_of_class(const wr_memory_sweep *s, int class)
{
  uint64_t sum = 0;
  for (size_t d = 0; d < PLACES; d++)
    sum += s->kind[d * WR_MEMORY_CLASSES + (size_t) class].live;
  return sum;
}

static void end_slice(wr_memory_sweep *s, int at)
{
  wr_slice *x = &s->slice[at];
  x->device = s->all.live;
  x->managed = live_of_class(s, WEIR_MEM_MANAGED);
  x->pinned = live_of_class(s, WEIR_MEM_PINNED);
  x->registered = live_of_class(s, WR_REGISTERED);
  x->imported = live_of_class(s, WEIR_MEM_IMPORTED);
  for (size_t i = 0; i < s->group_count; i++) {
    s->group[i].grew += s->group[i].live > s->group[i].before;
    s->group[i].before = s->group[i].live;
  }
  if (at + 1 < WR_SLICES) s->slice[at + 1].most = s->all.live;
}

static void apply_change(memory_pass *p, const memory_change *c, int slice, bool counts)
{
  wr_memory_sweep *s = p->s;
  const wr_swept_block *b = &s->block[c->block];
  change_held(held_of_kind(s, b), b, c->begins, counts);
  if (host_side(b)) change_held(&s->host_group[b->group], b, c->begins, counts);
  if (!device_side(b)) return;
  if (change_held(&s->all, b, c->begins, counts)) p->peak_place = c->place;
  change_held(&s->device[b->device], b, c->begins, counts);
  change_held(&s->group[b->group], b, c->begins, counts);
  if (!counts) return;
  wr_slice *x = &s->slice[slice];
  if (c->begins) x->allocated_blocks++, x->allocated_bytes += b->bytes;
  if (s->all.live > x->most) x->most = s->all.live;
}

static void set_slices(memory_pass *p)
{
  int64_t from = p->from > 0 ? p->from : 0,
          to = p->to < p->scope->duration ? p->to : p->scope->duration;
  if (to < from) to = from;
  for (int i = 0; i < WR_SLICES; i++) {
    p->s->slice[i].from = from + (int64_t)((double)(to - from) * i / WR_SLICES);
    p->s->slice[i].to =
        i + 1 == WR_SLICES ? to : from + (int64_t)((double)(to - from) * (i + 1) / WR_SLICES);
  }
}

static void sweep_changes(memory_pass *p, const memory_change *change, size_t count)
{
  wr_memory_sweep *s = p->s;
  bool counts = p->from == INT64_MIN;
  int slice = 0;
  for (size_t i = 0; i < count; i++) {
    const memory_change *c = &change[i];
    const wr_swept_block *b = &s->block[c->block];
    int64_t time = c->begins ? b->start : b->gone;
    if (time >= p->to) continue;
    if (!counts && time >= p->from) {
      begin_times(p, i ? change[i - 1].place : 0);
      s->slice[0].most = s->all.live;
      counts = true;
    }
    for (; counts && slice + 1 < WR_SLICES && time >= s->slice[slice].to; slice++)
      end_slice(s, slice);
    apply_change(p, c, slice, counts);
  }
  if (!counts) {
    begin_times(p, count ? change[count - 1].place : 0);
    s->slice[0].most = s->all.live;
  }
  for (; slice < WR_SLICES; slice++)
    end_slice(s, slice);
}

static void count_at_peak(memory_pass *p)
{
  wr_memory_sweep *s = p->s;
  if (!s->all.peak) return;
  for (size_t i = 0; i < s->count; i++) {
    const wr_swept_block *b = &s->block[i];
    if (!device_side(b) || b->born > p->peak_place || b->died <= p->peak_place) continue;
    s->group[b->group].at_peak += b->bytes;
    s->group[b->group].blocks_at_peak++;
  }
}

/* A block whose address was handed out again before its free was seen was gone by then, though the
 * free is later: nothing is gone after what came behind it. */
static void settle_ends(memory_pass *p, const memory_change *change, size_t count)
{
  int64_t next = INT64_MAX;
  for (size_t i = count; i--;) {
    wr_swept_block *b = &p->s->block[change[i].block];
    if (!change[i].begins && b->gone > next) b->gone = next;
    if (!change[i].begins && b->end != INT64_MAX) b->end = b->gone;
    int64_t time = change[i].begins ? b->start : b->gone;
    if (time < next) next = time;
  }
}

static weir_status sweep_blocks(memory_pass *p)
{
  wr_memory_sweep *s = p->s;
  memory_change *change = calloc(2 * s->count + 1, sizeof(*change));
  size_t count = 0;
  if (!change) return wr_db_out_of_memory(p->db);
  for (size_t i = 0; i < s->count; i++) {
    const wr_swept_block *b = &s->block[i];
    change[count++] = (memory_change){b->born, (uint32_t)i, true};
    if (b->died != INT64_MAX) change[count++] = (memory_change){b->died, (uint32_t)i, false};
  }
  qsort(change, count, sizeof(*change), by_change_place);
  settle_ends(p, change, count);
  count_blocks(p);
  set_slices(p);
  sweep_changes(p, change, count);
  count_at_peak(p);
  free(change);
  return WEIR_OK;
}

weir_status wr_memory_sweep_load(wr_memory_sweep *s, const wr_db *db, const wr_scope *scope,
                                 report_by by)
{
  memory_pass p = {.s = s, .db = db, .scope = scope, .from = scope->from, .to = scope->to};
  *s = (wr_memory_sweep){0};
  if (db->schema < 2)
    return weir_fail(WEIR_EVERSION, "%s is of an older Weir: only its summary and caches are known",
                     db->path);
  weir_status st = wr_groups_open(&s->groups, db, by);
  if (!st) st = load_blocks(&p);
  s->group_count = s->groups.count;
  s->device = calloc(PLACES, sizeof(wr_held));
  s->kind = calloc((size_t)PLACES * WR_MEMORY_CLASSES, sizeof(wr_held));
  s->group = calloc(s->group_count + 1, sizeof(wr_held));
  s->host_group = calloc(s->group_count + 1, sizeof(wr_held));
  if (!st && (!s->device || !s->kind || !s->group || !s->host_group)) st = wr_db_out_of_memory(db);
  if (!st) st = sweep_blocks(&p);
  hash_map_free(&p.ends);
  if (st) wr_memory_sweep_free(s);
  return st;
}

void wr_memory_sweep_free(wr_memory_sweep *s)
{
  wr_groups_close(&s->groups);
  free(s->block);
  free(s->device);
  free(s->kind);
  free(s->group);
  free(s->host_group);
  *s = (wr_memory_sweep){0};
}
