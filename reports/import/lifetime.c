/* lifetime.c: see lifetime.h.
 *
 * Two processors' clocks agree to within a tremor, and an allocator can hand memory on within less.
 * So an address that is allocated while it is live was most likely freed just before, by a thread
 * whose free is still to come in the pass: its block is kept *replaced* for a while, and a free of
 * another thread's that soon is its own.
 *
 * What a process has not freed goes with it: its end takes its blocks off the live sums, so that a
 * tree's peak is what its processes had at one moment. They are live at exit none the less. */
#include "reports/import/lifetime.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "core/base/map.h"
#include "reports/base/util.h"
#include "reports/import/taken.h"

#define DEVICES    256 /* ordinals, and one for "none" */
#define NO_DEVICE  WR_NO_DEVICE
#define REGISTERED WR_MEM_KINDS /* the classes before it are memory_kind */
#define SUM        12           /* the device side of one device */
#define CLASSES    13
#define TREMOR_NS  10000000

typedef struct live_block {
  wr_memory_event alloc;
  int64_t born;    /* place of the allocation in the pass, 0: this slot is unused */
  size_t next;     /* free list */
  size_t replaced; /* slot + 1 of the block that was there before, its free not seen; 0: none */
  int64_t died;    /* of a replaced block: place of the allocation that took its place; else 0 */
  size_t older, newer; /* slot + 1 of its process's live blocks before and after it; 0: none */
} live_block;

typedef struct process_end {
  int64_t process, time;
} process_end;

typedef struct account {
  uint64_t allocs, bytes, live, peak; /* live: now, in processes that run */
  uint64_t left, left_blocks;         /* never freed, in whatever process */
  int64_t peak_at, peak_place;
} account;

typedef struct pass {
  wr_batch *batch;
  hash_map by_pointer; /* key of process, pointer and class -> slot of `blocks` */
  live_block *blocks;
  size_t block_count, block_capacity, unused; /* unused: head of the free list, slot + 1 */
  hash_map
      per_device; /* process and device -> live blocks, so that a reset need not look in vain */
  hash_map context_device; /* process and context number -> device, as its allocations show */
  hash_map newest;         /* process -> slot + 1 of its newest live block, the head of its list */
  account *accounts;       /* [DEVICES][CLASSES] */
  account total;           /* the device side of all devices */
  int64_t place;           /* memory operations so far */
  int64_t shift;           /* of the log's times */
  process_end *ends;       /* by time */
  size_t end_count, end_capacity, ended; /* ended: those the pass has come by */
  sqlite3_stmt *graphs;                  /* what launches allocate and free; NULL: nothing more */
  wr_memory_event of_graph;              /* its row */
  wr_taken_list taken;                   /* code and contexts, with the unloads of code */
  size_t taken_at;                       /* the first that the pass has not come by */
  size_t *code;                          /* slots of live code, and of some that is no more */
  size_t code_count, code_capacity;
} pass;

/* What a block does to the sums: it is there; it is no more; its process has ended. */
enum change { BEGUN, GONE, LEFT };

bool wr_mem_device_side(int mem)
{
  return mem != WEIR_MEM_PAGEABLE && mem != WEIR_MEM_PINNED && mem != WEIR_MEM_HOST &&
         mem != WEIR_MEM_IMPORTED && !wr_mem_taken(mem);
}

bool wr_mem_taken(int mem)
{
  return mem == WEIR_MEM_CODE || mem == WEIR_MEM_CONTEXT;
}

static bool is_registration(const wr_memory_event *e)
{
  return e->kind == WEIR_EV_HOSTREG;
}

/* What a block's pointer is a name among: handles of arrays and of physical memory are not
 * addresses, and registering memory doesn't allocate it. What was taken may be several of a
 * handle. */
enum space { ADDRESS, ARRAY, REGISTRATION, PHYSICAL, TAKEN };

static enum space space_of(const wr_memory_event *e)
{
  if (is_registration(e)) return REGISTRATION;
  if (wr_mem_taken(e->mem)) return TAKEN;
  if (e->mem == WEIR_MEM_PHYSICAL) return PHYSICAL;
  return e->mem == WEIR_MEM_ARRAY ? ARRAY : ADDRESS;
}

static uint64_t block_key(const wr_memory_event *e, enum space space)
{
  int64_t name = space == TAKEN ? e->id : e->pointer;
  return hash_mix(hash_mix((uint64_t)e->process << 3 | space, 0), (uint64_t)name);
}

static uint64_t device_key(int64_t process, int device)
{
  return (uint64_t)process << 9 | (uint64_t)device;
}

static void account_change(account *a, const pass *p, uint64_t bytes, enum change what,
                           int64_t time)
{
  if (what != BEGUN) {
    a->live -= bytes;
    if (what == LEFT) a->left += bytes, a->left_blocks++;
    return;
  }
  a->allocs++;
  a->bytes += bytes;
  a->live += bytes;
  if (a->live <= a->peak) return;
  a->peak = a->live;
  a->peak_at = time;
  a->peak_place = p->place;
}

static void count_block_lifetime(pass *p, const wr_memory_event *e, enum change what, int64_t time)
{
  bool device_side = wr_mem_device_side(e->mem);
  bool has_device = (device_side && !is_registration(e)) || wr_mem_taken(e->mem);
  int device = has_device ? e->device : NO_DEVICE;
  int class = is_registration(e) ? REGISTERED : e->mem;
  uint64_t bytes = (uint64_t)e->bytes;
  account_change(&p->accounts[device * CLASSES + class], p, bytes, what, time);
  if (!device_side || is_registration(e)) return;
  account_change(&p->accounts[device * CLASSES + SUM], p, bytes, what, time);
  account_change(&p->total, p, bytes, what, time);
}

static void set_column(wr_row *row, int column, bool known, int64_t value)
{
  row->v[column] = value;
  if (!known) row->nulls |= 1u << column;
}

/* The row of one block. `end`: what ended it, NULL while it lives. `alloc` NULL: only a free known.
 * `place`: where in the pass it is no more live, 0: nowhere. */
static weir_status emit_at(pass *p, const wr_memory_event *alloc, int64_t born,
                           const wr_memory_event *end, int how, int64_t place)
{
  wr_row *row = wr_batch_row(p->batch, WR_TABLE_BLOCK);
  if (!row) return weir_fail(WEIR_ENOMEM, "matching frees with allocations: out of host memory");
  const wr_memory_event *of = alloc ? alloc : end;
  bool freed =
      alloc && (how == WR_BLOCK_FREED || how == WR_BLOCK_RESET || how == WR_BLOCK_BY_GRAPH);
  set_column(row, 0, true, of->id);
  set_column(row, 1, true, how);
  set_column(row, 2, freed, freed ? end->id - of->id : 0);
  set_column(row, 3, alloc && end, end ? end->time - of->time : 0);
  set_column(row, 4, alloc, born);
  set_column(row, 5, place, alloc ? place - born : place);
  set_column(row, 6, of->work, of->work - 1);
  if (p->batch->rows[WR_TABLE_BLOCK].count < WR_BATCH_EVENTS) return WEIR_OK;
  return wr_batch_flush(p->batch, true);
}

static weir_status emit_row(pass *p, const wr_memory_event *alloc, int64_t born,
                            const wr_memory_event *end, int how)
{
  return emit_at(p, alloc, born, end, how, p->place);
}

static weir_status no_memory_to_match(void)
{
  return weir_fail(WEIR_ENOMEM, "matching frees with allocations: out of host memory");
}

/* The block that `b` replaced has its row, and its slot is free: ended by `end`, or, NULL, by b. */
static weir_status end_replaced(pass *p, live_block *b, const wr_memory_event *end)
{
  if (!b->replaced) return WEIR_OK;
  live_block *old = &p->blocks[b->replaced - 1];
  live_block was = *old;
  *old = (live_block){.next = p->unused};
  p->unused = b->replaced;
  b->replaced = 0;
  return emit_at(p, &was.alloc, was.born, end ? end : &b->alloc,
                 end ? WR_BLOCK_FREED : WR_BLOCK_REPLACED, was.died);
}

/* The lists of live blocks by process. */
static bool link_block(pass *p, size_t slot)
{
  live_block *b = &p->blocks[slot];
  uint64_t *newest = hash_map_place(&p->newest, (uint64_t)b->alloc.process, NULL);
  if (!newest) return false;
  b->older = (size_t)*newest;
  b->newer = 0;
  if (b->older) p->blocks[b->older - 1].newer = slot + 1;
  *newest = slot + 1;
  return true;
}

static void unlink_block(pass *p, const live_block *b)
{
  uint64_t *newest = hash_map_get(&p->newest, (uint64_t)b->alloc.process);
  if (b->older) p->blocks[b->older - 1].newer = b->newer;
  if (b->newer)
    p->blocks[b->newer - 1].older = b->older;
  else if (newest)
    *newest = b->older;
}

/* The block is no more live from `time` on. */
static void retire_block(pass *p, const live_block *b, enum change what, int64_t time)
{
  uint64_t *live = hash_map_get(&p->per_device, device_key(b->alloc.process, b->alloc.device));
  if (live && *live) --*live;
  unlink_block(p, b);
  count_block_lifetime(p, &b->alloc, what, time);
}

/* Takes the block in `slot` out of the live set. */
static weir_status end_block(pass *p, size_t slot, const wr_memory_event *end, int how)
{
  if (!p->blocks) return WEIR_OK; /* nothing was ever live */
  weir_status st = end_replaced(p, &p->blocks[slot], NULL);
  live_block *b = &p->blocks[slot];
  wr_memory_event alloc = b->alloc;
  int64_t born = b->born;
  hash_map_remove(&p->by_pointer, block_key(&alloc, space_of(&alloc)));
  retire_block(p, b, GONE, end->time);
  *b = (live_block){.next = p->unused};
  p->unused = slot + 1;
  return st ? st : emit_row(p, &alloc, born, end, how);
}

/* The block outlives its process, which ended at `time`; 0: not seen to end. */
static weir_status leave_block(pass *p, size_t slot, int64_t place, int64_t time)
{
  weir_status st = end_replaced(p, &p->blocks[slot], NULL);
  live_block *b = &p->blocks[slot];
  wr_memory_event alloc = b->alloc;
  int64_t born = b->born;
  hash_map_remove(&p->by_pointer, block_key(&alloc, space_of(&alloc)));
  retire_block(p, b, LEFT, time);
  *b = (live_block){.next = p->unused};
  p->unused = slot + 1;
  return st ? st : emit_at(p, &alloc, born, NULL, WR_BLOCK_LIVE, place);
}

static weir_status end_process_blocks(pass *p, int64_t process, int64_t place, int64_t time)
{
  const uint64_t *newest = hash_map_get(&p->newest, (uint64_t)process);
  weir_status st = WEIR_OK;
  while (!st && newest && *newest)
    st = leave_block(p, (size_t)*newest - 1, place, time);
  return st;
}

/* The processes that ended before `time`. */
static weir_status end_processes(pass *p, int64_t time)
{
  weir_status st = WEIR_OK;
  for (; !st && p->ended < p->end_count && p->ends[p->ended].time < time; p->ended++) {
    const process_end *x = &p->ends[p->ended];
    const uint64_t *newest = hash_map_get(&p->newest, (uint64_t)x->process);
    if (newest && *newest) st = end_process_blocks(p, x->process, ++p->place, x->time);
  }
  return st;
}

static weir_status begin_lifetime(pass *p, const wr_memory_event *e)
{
  uint64_t key = block_key(e, space_of(e));
  uint64_t *known = hash_map_get(&p->by_pointer, key);
  size_t replaced = known && p->blocks ? (size_t)*known + 1 : 0;
  if (replaced) {
    live_block *old = &p->blocks[replaced - 1];
    weir_status st = end_replaced(p, old, NULL);
    if (st) return st;
    retire_block(p, old, GONE, e->time);
    old->died = p->place;
  }
  size_t slot = p->unused ? p->unused - 1 : p->block_count;
  if (!wr_grow(&p->blocks, &p->block_capacity, slot + 1, sizeof(live_block)))
    return no_memory_to_match();
  uint64_t *entry = hash_map_place(&p->by_pointer, key, NULL);
  uint64_t *live = hash_map_place(&p->per_device, device_key(e->process, e->device), NULL);
  if (!entry || !live) return no_memory_to_match();
  if (p->unused)
    p->unused = p->blocks[slot].next;
  else
    p->block_count++;
  p->blocks[slot] = (live_block){.alloc = *e, .born = p->place, .replaced = replaced};
  if (e->device != NO_DEVICE && e->context) {
    uint64_t *home =
        hash_map_place(&p->context_device, device_key(e->process, (int)(e->context & 255)), NULL);
    if (!home) return no_memory_to_match();
    *home = (uint64_t)e->device;
  }
  *entry = slot;
  ++*live;
  count_block_lifetime(p, e, BEGUN, e->time);
  return link_block(p, slot) ? WEIR_OK : no_memory_to_match();
}

static weir_status free_block(pass *p, const wr_memory_event *e)
{
  enum space space = space_of(e);
  uint64_t *slot = hash_map_get(&p->by_pointer, block_key(e, space));
  if (!slot && (space == ADDRESS || space == ARRAY))
    slot = hash_map_get(&p->by_pointer, block_key(e, space == ARRAY ? ADDRESS : ARRAY));
  live_block *b = slot ? &p->blocks[*slot] : NULL;
  if (b && b->replaced && e->thread != b->alloc.thread && e->time - b->alloc.time < TREMOR_NS)
    return end_replaced(p, b, e);
  if (slot) return end_block(p, (size_t)*slot, e, WR_BLOCK_FREED);
  return emit_row(p, NULL, 0, e, WR_BLOCK_UNKNOWN);
}

static uint64_t keep_replaced(const pass *p, int64_t process, int device)
{
  const uint64_t *live = hash_map_get(&p->per_device, device_key(process, device));
  return live ? *live : 0;
}

/* Pinned memory has no device of its own: it goes with its context's. */
static int home_of(const pass *p, const wr_memory_event *e)
{
  const uint64_t *known = NULL;
  if (e->device == NO_DEVICE && e->context)
    known = hash_map_get(&p->context_device, device_key(e->process, (int)(e->context & 255)));
  return known ? (int)*known : e->device;
}

/* What cuMemCreate made, or a shareable handle brought, is of no context, and outlives them. */
static bool outlives_contexts(const wr_memory_event *e)
{
  return e->mem == WEIR_MEM_PHYSICAL || (e->mem == WEIR_MEM_IMPORTED && !e->context);
}

/* A reset takes the blocks of one context, or those of a device in its primary context; where it is
 * not known which that is, or of what context a block is, those of the device. */
static bool goes_with_reset(const pass *p, const wr_memory_event *block, const wr_memory_event *e)
{
  if (outlives_contexts(block)) return false;
  if (e->bytes == 1) return e->context && block->context == e->context;
  bool primary =
      !e->pointer || !block->context || block->context == UINT8_MAX || block->context == e->pointer;
  return primary && e->device != NO_DEVICE && home_of(p, block) == e->device;
}

static weir_status reset_device(pass *p, const wr_memory_event *e)
{
  weir_status st = WEIR_OK;
  if (!keep_replaced(p, e->process, e->device) && !keep_replaced(p, e->process, NO_DEVICE))
    return st;
  for (size_t i = 0; !st && i < p->block_count; i++) {
    const live_block *b = &p->blocks[i];
    if (!b->born || b->died || b->alloc.process != e->process) continue;
    if (goes_with_reset(p, &b->alloc, e)) st = end_block(p, i, e, WR_BLOCK_RESET);
  }
  return st;
}

static weir_status take_memory_event(pass *p, const wr_memory_event *e)
{
  if (e->kind == WEIR_EV_RESET) {
    p->place++;
    return reset_device(p, e);
  }
  if (!e->pointer) return WEIR_OK; /* cudaFree(NULL) frees nothing */
  p->place++;
  bool begins = e->kind == WEIR_EV_ALLOC || (is_registration(e) && e->bytes);
  return begins ? begin_lifetime(p, e) : free_block(p, e);
}

static void load_event(sqlite3_stmt *q, wr_memory_event *e)
{
  int64_t device = sqlite3_column_int64(q, 4), mem = sqlite3_column_int64(q, 5);
  bool no_device = sqlite3_column_type(q, 4) == SQLITE_NULL || device < 0 || device >= NO_DEVICE;
  *e =
      (wr_memory_event){.id = sqlite3_column_int64(q, 0),
                        .process = sqlite3_column_int(q, 1),
                        .kind = (uint8_t)sqlite3_column_int(q, 2),
                        .time = sqlite3_column_int64(q, 3),
                        .device = no_device ? NO_DEVICE : (uint8_t)device,
                        .mem = mem < 0 || mem > WEIR_MEM_IMPORTED ? WEIR_MEM_UNKNOWN : (uint8_t)mem,
                        .pointer = sqlite3_column_int64(q, 6),
                        .bytes = sqlite3_column_int64(q, 7),
                        .context = (uint8_t)sqlite3_column_int(q, 8),
                        .thread = sqlite3_column_int(q, 9)};
}

static int by_end(const void *left, const void *right)
{
  const process_end *a = left, *b = right;
  return a->time != b->time ? (a->time > b->time) - (a->time < b->time)
                            : (a->process > b->process) - (a->process < b->process);
}

static weir_status take_end(void *context, sqlite3_stmt *q)
{
  pass *p = context;
  if (!wr_grow(&p->ends, &p->end_capacity, p->end_count + 1, sizeof(process_end)))
    return no_memory_to_match();
  p->ends[p->end_count++] = (process_end){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
  return WEIR_OK;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* All of a launch at its return: what it frees because it allocates it again comes first ("auto
 * free on launch"; without it the driver launches no graph whose memory was not freed), then its
 * nodes as the graph lists them, as if they ran one after the other. */
static const char graphs_sql[] =
    "WITH part(again, type) AS (VALUES(1, 10), (0, 10), (0, 11))"
    " SELECT l.event, t.process, CASE WHEN x.again OR w.type = 11 THEN 2 ELSE 1 END,"
    " e.start + e.duration AS over, w.device, w.mem, w.pointer, w.bytes, t.context, t.thread,"
    " w.position FROM graph_launch l CROSS JOIN graph_work w ON w.content = l.content"
    " CROSS JOIN part x ON x.type = w.type CROSS JOIN event_row e ON e.id = l.event"
    " CROSS JOIN template t ON t.id = e.template WHERE NOT w.conditional AND w.pointer <> 0"
    " AND l.content IN (SELECT content FROM graph_work WHERE type IN (10, 11))"
    " ORDER BY over, l.event, x.again DESC, w.position";

static weir_status next_of_graphs(pass *p)
{
  int code = sqlite3_step(p->graphs);
  if (code == SQLITE_ROW) {
    load_event(p->graphs, &p->of_graph);
    p->of_graph.work = sqlite3_column_int(p->graphs, 10) + 1;
    return WEIR_OK;
  }
  weir_status st = code == SQLITE_DONE ? WEIR_OK : wr_db_fail(&p->batch->db, "reading");
  sqlite3_finalize(p->graphs);
  p->graphs = NULL;
  return st;
}

static weir_status open_graphs(pass *p)
{
  if (!wr_schema_graph_memory(&p->batch->db)) return WEIR_OK;
  weir_status st = wr_db_prepare(&p->batch->db, graphs_sql, &p->graphs);
  return st ? st : next_of_graphs(p);
}

/* A free of what no launch is known to have allocated is none. */
static weir_status take_of_graph(pass *p, const wr_memory_event *e)
{
  weir_status st = end_processes(p, e->time);
  if (st) return st;
  const uint64_t *slot = hash_map_get(&p->by_pointer, block_key(e, ADDRESS));
  p->place++;
  if (e->kind == WEIR_EV_ALLOC) return begin_lifetime(p, e);
  if (!slot || !p->blocks[*slot].alloc.work) return WEIR_OK;
  return end_block(p, (size_t)*slot, e, WR_BLOCK_BY_GRAPH);
}

/* What launches did before the event `id` at `time`. */
static weir_status take_graphs(pass *p, int64_t time, int64_t id)
{
  weir_status st = WEIR_OK;
  while (!st && p->graphs &&
         (p->of_graph.time < time || (p->of_graph.time == time && p->of_graph.id < id))) {
    wr_memory_event e = p->of_graph;
    st = take_of_graph(p, &e);
    if (!st) st = next_of_graphs(p);
  }
  return st;
}

/* ---- code and contexts ----------------------------------------------------------------------- */

static bool is_same_code(const live_block *b, const wr_memory_event *e)
{
  return b->born && b->alloc.mem == WEIR_MEM_CODE && b->alloc.process == e->process &&
         b->alloc.pointer == e->pointer;
}

/* More of a module is of its own context, whichever is current. */
static weir_status begin_code(pass *p, wr_memory_event *e)
{
  for (size_t i = 0; e->mem == WEIR_MEM_CODE && i < p->code_count; i++)
    if (is_same_code(&p->blocks[p->code[i]], e)) e->context = p->blocks[p->code[i]].alloc.context;
  weir_status st = begin_lifetime(p, e);
  const uint64_t *slot = st ? NULL : hash_map_get(&p->by_pointer, block_key(e, TAKEN));
  if (!slot || e->mem != WEIR_MEM_CODE) return st;
  if (!wr_grow(&p->code, &p->code_capacity, p->code_count + 1, sizeof *p->code))
    return no_memory_to_match();
  p->code[p->code_count++] = (size_t)*slot;
  return WEIR_OK;
}

/* What was measured around the calls of its module ends. A slot may be another block's by now. */
static weir_status unload_code(pass *p, const wr_memory_event *e)
{
  size_t kept = 0;
  weir_status st = WEIR_OK;
  for (size_t i = 0; i < p->code_count; i++) {
    const live_block *b = &p->blocks[p->code[i]];
    if (!b->born || b->alloc.mem != WEIR_MEM_CODE) continue;
    if (!st && is_same_code(b, e))
      st = end_block(p, p->code[i], e, WR_BLOCK_FREED);
    else
      p->code[kept++] = p->code[i];
  }
  p->code_count = kept;
  return st;
}

/* What was taken, and unloaded, before the event `id` at `time`. */
static weir_status take_taken(pass *p, int64_t time, int64_t id)
{
  weir_status st = WEIR_OK;
  for (; !st && p->taken_at < p->taken.count; p->taken_at++) {
    wr_memory_event *e = &p->taken.event[p->taken_at].e;
    if (e->time > time || (e->time == time && e->id > id)) break;
    st = end_processes(p, e->time);
    p->place++;
    if (!st) st = e->kind == WEIR_EV_ALLOC ? begin_code(p, e) : unload_code(p, e);
  }
  return st;
}

static weir_status open_taken(pass *p)
{
  const wr_db *db = &p->batch->db;
  return db->schema < 2 ? WEIR_OK : wr_taken_load(&p->taken, db);
}

static weir_status step_event(pass *p, const wr_memory_event *e)
{
  weir_status st = take_graphs(p, e->time, e->id);
  if (!st) st = take_taken(p, e->time, e->id);
  if (!st) st = end_processes(p, e->time);
  return st ? st : take_memory_event(p, e);
}

static weir_status walk_rows(pass *p)
{
  /* 1 alloc, 2 free, 10 reset, 11 host registration (bytes 0: its end); flag 16: captured, not run;
   * as wr_memory_keep() has it */
  static const char sql[] =
      "SELECT id, process, kind,"
      " CASE WHEN kind = 1 OR (kind = 11 AND bytes <> 0) THEN \"end\" ELSE start END AS t,"
      " device, mem, a, bytes, context, thread FROM event"
      " WHERE kind IN (1, 2, 10, 11) AND status = 0 AND NOT (flags & 16) ORDER BY t, id";
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(&p->batch->db, sql, &q);
  int code = SQLITE_DONE;
  while (!st && (code = sqlite3_step(q)) == SQLITE_ROW) {
    wr_memory_event e;
    load_event(q, &e);
    st = step_event(p, &e);
  }
  if (!st && code != SQLITE_DONE) st = wr_db_fail(&p->batch->db, "reading");
  sqlite3_finalize(q);
  return st;
}

/* Of a log; its time has what the rows have no more. */
static weir_status take_kept(void *context, const void *kept)
{
  pass *p = context;
  wr_memory_event e = *(const wr_memory_event *)kept;
  e.time -= p->shift;
  return step_event(p, &e);
}

/* Columns: process, number of a context, device: as allocations showed that a trace of a window has
 * no more. */
static weir_status take_home(void *context, sqlite3_stmt *q)
{
  pass *p = context;
  const int64_t device = sqlite3_column_int64(q, 2);
  if (device < 0 || device >= NO_DEVICE) return WEIR_OK;
  uint64_t *home = hash_map_place(
      &p->context_device,
      device_key(sqlite3_column_int64(q, 0), (int)(sqlite3_column_int64(q, 1) & 255)), NULL);
  if (!home) return no_memory_to_match();
  *home = (uint64_t)device;
  return WEIR_OK;
}

static weir_status load_homes(pass *p)
{
  const wr_db *db = &p->batch->db;
  if (!wr_db_has_table(db, "before_window_context")) return WEIR_OK;
  return wr_db_each(db, "SELECT process, context, device FROM before_window_context", take_home, p);
}

static weir_status walk_events(pass *p, wr_memory_log *log)
{
  weir_status st = wr_db_each(
      &p->batch->db, "SELECT id, \"end\" FROM process WHERE \"end\" IS NOT NULL", take_end, p);
  if (p->end_count) qsort(p->ends, p->end_count, sizeof(process_end), by_end);
  bool kept = log && !log->incomplete;
  if (!st) st = load_homes(p);
  if (!st) st = open_graphs(p);
  if (!st) st = open_taken(p);
  if (!st) st = kept ? wr_memory_each(log, take_kept, p) : walk_rows(p);
  if (!st) st = take_graphs(p, INT64_MAX, INT64_MAX);
  if (!st) st = take_taken(p, INT64_MAX, INT64_MAX);
  if (!st) st = end_processes(p, INT64_MAX);
  for (size_t i = 0; !st && i < p->block_count; i++) /* of processes that still run */
    if (p->blocks[i].born && !p->blocks[i].died) st = leave_block(p, i, 0, 0);
  return st;
}

/* device and mem -1: NULL, the sum over all. */
static weir_status write_account(sqlite3_stmt *q, const wr_db *db, const account *a, int device,
                                 int class)
{
  if (!a->allocs) return WEIR_OK;
  sqlite3_clear_bindings(q);
  if (device != NO_DEVICE) sqlite3_bind_int(q, 1, device);
  if (class < SUM) sqlite3_bind_int(q, 2, class == REGISTERED ? WEIR_MEM_PINNED : class);
  sqlite3_bind_int(q, 3, class == REGISTERED);
  const int64_t values[] = {
      (int64_t)a->allocs, (int64_t)a->bytes, (int64_t)a->peak,       a->peak_at,
      a->peak_place,      (int64_t)a->left,  (int64_t)a->left_blocks};
  for (int i = 0; i < 7; i++)
    sqlite3_bind_int64(q, 4 + i, values[i]);
  return wr_db_run(db, q);
}

static weir_status write_accounts(pass *p)
{
  const wr_db *db = &p->batch->db;
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(db, "INSERT INTO memory VALUES(?,?,?,?,?,?,?,?,?,?)", &q);
  for (int i = 0; !st && i < DEVICES * CLASSES; i++) {
    if (i / CLASSES == NO_DEVICE && i % CLASSES == SUM) continue; /* only part of the total */
    st = write_account(q, db, &p->accounts[i], i / CLASSES, i % CLASSES);
  }
  if (!st) st = write_account(q, db, &p->total, NO_DEVICE, SUM);
  sqlite3_finalize(q);
  return st;
}

weir_status wr_lifetimes(wr_batch *batch, wr_memory_log *log, int64_t shift)
{
  pass p = {.batch = batch, .shift = shift, .accounts = calloc(DEVICES * CLASSES, sizeof(account))};
  if (!p.accounts) return no_memory_to_match();
  weir_status st = walk_events(&p, log);
  if (!st) st = write_accounts(&p);
  hash_map_free(&p.by_pointer);
  hash_map_free(&p.per_device);
  hash_map_free(&p.context_device);
  hash_map_free(&p.newest);
  sqlite3_finalize(p.graphs);
  wr_taken_free(&p.taken);
  free(p.code);
  free(p.ends);
  free(p.blocks);
  free(p.accounts);
  return st;
}

weir_status wr_lifetimes_temporary(const wr_db *db)
{
  wr_batch batch = {0};
  weir_status st = wr_db_exec(db, "CREATE TEMP TABLE memory AS SELECT * FROM main.memory WHERE 0");
  if (!st) st = wr_schema_blocks(db);
  if (!st) st = wr_batch_open(&batch, db);
  if (!st) st = wr_lifetimes(&batch, NULL, 0);
  if (!st) st = wr_batch_flush(&batch, true); /* in the reader's transaction */
  wr_batch_close(&batch);
  return st;
}
