/* launch_facts.c: see launch_facts.h. Of a kernel with a set it is found once what each of its words may be used for; the
 * blocks that these point into are looked for anew only after blocks have come or gone. */
#include "reports/findings/launch_facts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/given.h"
#include "reports/findings/kernel_params.h"
#include "reports/model/complete.h"

enum {
  MOST_LIVE = 1 << 14,    /* blocks of a process */
  MOST_KERNELS = 1 << 16, /* names that are read */
  MOST_FORMS = 1 << 18,   /* kernels with a set */
  HANDED_OVER = 2,        /* launches that are handed a block, from which on all that use it are */
  MOST_RUNS = 1 << 20,
  MOST_HASHES = 1 << 20,
  TABLE_BYTES = 65536, /* of a copy that may bring a table of pointers, at most */
  SOLID_BYTES = 4096   /* of a copy whose bytes are not all one: fewer may be equal by accident */
};

enum act { NOTHING, ENDS, ANY, ALLOCATES, FREES, MOVES, LAUNCHES };

/* Numbers of contents. */
#define FRESH     UINT64_C(0x51ed270b27a1c3f5)
#define UNWRITTEN UINT64_C(0x2545f4914f6cdd1d)
#define PURE      UINT64_C(0x7f4a7c159e3779b9)

typedef struct held_block {
  uint64_t at, bytes;
  int64_t alloc, template, device;
  uint64_t content, written; /* number; when, by the process's steps */
  bool solid;                /* a copy brought it, and its bytes are not all one */
  uint64_t pure;     /* what wrote it first of all, and nothing but memsets since; 0: others have */
  uint64_t launched; /* when a launch was handed it last */
  uint64_t handed;   /* launches that were handed it */
  uint64_t owner;    /* the launch that wrote it last, with its grid; 0: not known */
  uint64_t foreign;  /* when it was written by another one, or by a copy */
  bool pointers;     /* a copy may have brought some */
  /* the last write of all that nothing may have used since; 0: none */
  int64_t write, write_ns;
  const wr_template *write_template;
  uint64_t write_at, write_bytes;
  int64_t read; /* the last copy of `read_bytes` from `read_at` to the host, since it was written */
  uint64_t read_at, read_bytes, read_when;
  int64_t twin; /* the allocation of another block of that content; 0: none */
  uint64_t twin_since;
  bool twinned; /* it is another one's twin */
} held_block;

typedef struct use { /* of a word by a kernel */
  held_block *block; /* NULL: not known */
  wr_param how;
} use;

typedef struct form { /* a kernel with a set */
  uint64_t key;
  uint32_t first, count; /* of `uses` */
  bool known;            /* what each of its words is used for */
  bool leads;            /* by its types it may reach other memory */
  bool steady;           /* all its launches have the same bytes in their parameters */
  uint64_t found;        /* the blocks are those of that change; 0: of none */
} form;

typedef struct last_run { /* of a form with a grid */
  uint64_t result, when, launches;
  int64_t event, family;
} last_run;

typedef struct launch_process {
  int64_t id;
  bool off;
  held_block **block; /* owned, and each: by address */
  size_t blocks, block_capacity;
  uint64_t steps;     /* so far */
  uint64_t any_since; /* when something last may have written any memory */
  uint64_t beyond;    /* when memory was last written that is in no block */
  uint64_t changes;   /* of blocks, from 1 */
  uint64_t launched;  /* when something was launched last */
  uint64_t launches;  /* so far */
  bool tables;        /* a copy may have brought pointers into memory that is in no block */
} launch_process;

typedef struct kernel {
  wr_params params;
} kernel;

typedef struct wr_launch_state {
  const wr_events *events; /* borrowed */
  wr_fact_tables *tables;  /* borrowed */
  wr_access access;
  wr_demangler demangler;
  uint8_t *act;            /* owned; by template */
  hash_map at;             /* process -> from 1 */
  launch_process *process; /* owned */
  size_t processes, process_capacity;
  hash_map kernel_at; /* process and handle -> from 1; 0: it has two names */
  kernel *kernels;    /* owned */
  size_t kernel_count, kernel_capacity;
  hash_map varying; /* process, set and kernel */
  hash_map
      hash; /* event -> number of its bytes, of which the lowest bit is whether they are all one */
  hash_map form_at; /* set and kernel -> from 1 */
  form *forms;      /* owned */
  size_t form_count, form_capacity;
  use *uses; /* owned */
  size_t use_count, use_capacity;
  hash_map run_at; /* form and grid -> from 1 */
  last_run *runs;  /* owned */
  size_t run_count, run_capacity;
  int64_t families;
} state;

#define ADD(x, fact, ...) wr_fact_add((x)->tables, WR_FACT_##fact, (const int64_t[]){__VA_ARGS__})

static weir_status launch_memory(const state *x)
{
  return wr_db_out_of_memory(x->events->db);
}

/* ---- templates ------------------------------------------------------------------------------- */

/* By a part of their names: what they make may be reached by work that is not seen, or by other processes. */
static const char *const strange[] = {"Ipc",        "ExportTo", "ExportPointer", "Import",
                                      "External",   "Tex",      "Surf",          "TensorMap",
                                      "Multicast",  "MemMap",   "Graphics",      "CtxWaitEvent",
                                      "BatchMemOp", "MemAdvise"};

static bool is_strange(const char *name)
{
  size_t i = 0;
  while (i < sizeof(strange) / sizeof(*strange) && !strstr(name, strange[i]))
    i++;
  return i < sizeof(strange) / sizeof(*strange);
}

static enum act act_of_call(const wr_template *t, const char *name)
{
  bool asks = strstr(name, "StreamGet") || strstr(name, "StreamSet") || strstr(name, "StreamCopy");
  if (wr_giving_of(name) != WR_GIVES_NOTHING) return ENDS;
  return t->device_work || (t->stream && !asks) ? ANY : NOTHING;
}

static enum act act_of(const wr_template *t, const char *name)
{
  const bool works = t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET ||
                     t->kind == WEIR_EV_LAUNCH || t->kind == WEIR_EV_CALL;
  if (!t->done) return t->succeeded || !works ? NOTHING : ANY; /* it may have begun */
  if (t->kind != WEIR_EV_CACHE && is_strange(name)) return ENDS;
  switch (t->kind) {
  case WEIR_EV_ALLOC:
    return t->mem == WEIR_MEM_DEVICE ? ALLOCATES : NOTHING;
  case WEIR_EV_FREE:
    return FREES;
  case WEIR_EV_COPY:
  case WEIR_EV_MEMSET:
    return MOVES;
  case WEIR_EV_LAUNCH:
    return LAUNCHES;
  case WEIR_EV_RESET:
    return ENDS;
  case WEIR_EV_CALL:
    return act_of_call(t, name);
  default:
    return NOTHING;
  }
}

static weir_status read_acts(state *x, bool *any)
{
  sqlite3_stmt *q = NULL;
  x->act = calloc(x->events->count + 1, sizeof(*x->act));
  if (!x->act) return launch_memory(x);
  weir_status st = wr_db_prepare(x->events->db, "SELECT name FROM main.api WHERE id = ?", &q);
  for (size_t i = 0; !st && i < x->events->count; i++) {
    const wr_template *t = &x->events->templates[i];
    sqlite3_bind_int64(q, 1, t->api);
    const char *name =
        sqlite3_step(q) == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    x->act[i] = (uint8_t)act_of(t, name ? name : "");
    *any |= x->act[i] == MOVES;
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  return st;
}

/* ---- what is read beforehand ----------------------------------------------------------------- */

/* The place of the process that is known by its row, from 1; 0: out of memory. */
static size_t place_of_process(state *x, int64_t id)
{
  bool added;
  uint64_t *at = hash_map_place(&x->at, (uint64_t)id, &added);
  if (!at || !wr_grow(&x->process, &x->process_capacity, x->processes + 1, sizeof(*x->process)))
    return 0;
  if (added) {
    x->process[x->processes++] = (launch_process){.id = id, .changes = 1, .steps = 1};
    *at = x->processes;
  }
  return (size_t)*at;
}

/* Calls of it are missing. */
static weir_status take_incomplete(void *context, sqlite3_stmt *q)
{
  state *x = context;
  size_t place = place_of_process(x, sqlite3_column_int64(q, 0));
  if (!place) return launch_memory(x);
  x->process[place - 1].off = true;
  return WEIR_OK;
}

static uint64_t key_of_kernel(int64_t process, uint64_t handle)
{
  return hash_mix(hash_mix(67, (uint64_t)process), handle);
}

/* process, handle, name */
static weir_status take_name(void *context, sqlite3_stmt *q)
{
  state *x = context;
  bool added;
  if (x->kernel_count >= MOST_KERNELS) return WEIR_OK;
  uint64_t key = key_of_kernel(sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
  uint64_t *at = hash_map_place(&x->kernel_at, key, &added);
  if (!at || !wr_grow(&x->kernels, &x->kernel_capacity, x->kernel_count + 1, sizeof(*x->kernels)))
    return launch_memory(x);
  if (!added) return WEIR_OK;
  const char *name = (const char *)sqlite3_column_text(q, 2);
  x->kernels[x->kernel_count++] =
      (kernel){name ? wr_params_of(&x->demangler, name) : (wr_params){.count = -1}};
  *at = x->kernel_count;
  return WEIR_OK;
}

/* A handle that came back for another kernel: process, handle */
static weir_status take_reused(void *context, sqlite3_stmt *q)
{
  state *x = context;
  hash_map_remove(&x->kernel_at,
                  key_of_kernel(sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1)));
  return WEIR_OK;
}

static uint64_t key_of_form(int64_t process, int64_t set, uint64_t kernel)
{
  return hash_mix(hash_mix(hash_mix(71, (uint64_t)process), (uint64_t)set), kernel);
}

/* process, number, kernel */
static weir_status take_varying(void *context, sqlite3_stmt *q)
{
  state *x = context;
  uint64_t key = key_of_form(sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
                             (uint64_t)sqlite3_column_int64(q, 2));
  return hash_map_put(&x->varying, key, 1) ? launch_memory(x) : WEIR_OK;
}

/* event, hash, uniform */
static weir_status take_hash(void *context, sqlite3_stmt *q)
{
  state *x = context;
  if (x->hash.count >= MOST_HASHES) return WEIR_OK;
  uint64_t number = hash_mix(hash_mix(73, (uint64_t)sqlite3_column_int64(q, 1)),
                             (uint64_t)sqlite3_column_int64(q, 2));
  number = (number & ~UINT64_C(1)) | (sqlite3_column_int(q, 3) != 0);
  uint64_t event = (uint64_t)sqlite3_column_int64(q, 0);
  return hash_map_put(&x->hash, event, number) ? launch_memory(x) : WEIR_OK;
}

static weir_status read_hashes(state *x)
{
  char sql[192];
  if (!wr_db_has_column(x->events->db, "copy_hash", "uniform")) return WEIR_OK;
  (void)snprintf(sql, sizeof(sql),
                 "SELECT event, hash_low, hash_high, uniform FROM main.copy_hash NOT INDEXED"
                 " WHERE event IS NOT NULL AND outcome = %d",
                 WEIR_HASH_HASHED);
  return wr_db_each(x->events->db, sql, take_hash, x);
}

static weir_status read_all(state *x, bool *any)
{
  const wr_db *db = x->events->db;
  weir_status st = wr_access_open(&x->access, x->events);
  if (!st) st = read_acts(x, any);
  *any &= wr_access_any(&x->access);
  if (st || !*any) return st;
  st = wr_db_each(db,
                  "SELECT DISTINCT process, handle, name FROM main.name WHERE (kind = 'kernel'"
                  " AND name GLOB '_Z*') OR kind = 'kernel_types'",
                  take_name, x);
  if (!st)
    st = wr_db_each(db,
                    "SELECT process, handle FROM main.name WHERE kind = 'kernel' GROUP BY process,"
                    " handle HAVING count(DISTINCT name) > 1",
                    take_reused, x);
  if (!st && wr_db_has_table(db, "access_varying"))
    st = wr_db_each(db, "SELECT process, number, kernel FROM access_varying", take_varying, x);
  if (!st) st = read_hashes(x);
  if (st) return st;
  return wr_incomplete_processes(db, take_incomplete, x);
}

weir_status wr_launch_open(wr_launch_facts *x, const wr_events *events, wr_fact_tables *tables)
{
  bool any = false;
  *x = (wr_launch_facts){0};
  if (events->db->schema < 2) return WEIR_OK;
  state *s = x->state = calloc(1, sizeof(*s));
  if (!s) return wr_db_out_of_memory(events->db);
  s->events = events, s->tables = tables;
  wr_demangler_open(&s->demangler);
  weir_status st = read_all(s, &any);
  if (!st && !any) wr_launch_close(x);
  return st;
}

static void free_process(launch_process *p)
{
  for (size_t i = 0; i < p->blocks; i++)
    free(p->block[i]);
  free(p->block);
}

void wr_launch_close(wr_launch_facts *x)
{
  state *s = x->state;
  if (!s) return;
  for (size_t i = 0; i < s->processes; i++)
    free_process(&s->process[i]);
  wr_access_close(&s->access);
  wr_demangler_close(&s->demangler);
  hash_map_free(&s->at);
  hash_map_free(&s->kernel_at);
  hash_map_free(&s->varying);
  hash_map_free(&s->hash);
  hash_map_free(&s->form_at);
  hash_map_free(&s->run_at);
  free(s->act);
  free(s->process);
  free(s->kernels);
  free(s->forms);
  free(s->uses);
  free(s->runs);
  free(s);
  *x = (wr_launch_facts){0};
}

/* ---- contents -------------------------------------------------------------------------------- */

/* A content that nothing else has. */
static uint64_t new_content(const launch_process *p, const held_block *b)
{
  return hash_mix(hash_mix(FRESH, p->steps), (uint64_t)b->alloc);
}

/* Since something may have written any memory each block is another one. */
static uint64_t content_of(const launch_process *p, const held_block *b)
{
  return b->written > p->any_since
             ? b->content
             : hash_mix(hash_mix(b->content, p->any_since), (uint64_t)b->alloc);
}

static void write_content(const launch_process *p, held_block *b, uint64_t content, bool solid)
{
  b->content = content;
  b->written = p->steps;
  b->solid = solid;
  b->read = 0;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The first block that begins after the address. */
static size_t block_after(const launch_process *p, uint64_t address)
{
  size_t low = 0, high = p->blocks;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (p->block[middle]->at <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static held_block *block_at(const launch_process *p, uint64_t address)
{
  size_t after = block_after(p, address);
  held_block *b = after ? p->block[after - 1] : NULL;
  return b && address - b->at < b->bytes ? b : NULL;
}

/* Both still hold what they did when one was found to be the other's twin, and launches have used both since. */
static weir_status see_twins(const state *x, const launch_process *p, const held_block *b,
                             const held_block *twin)
{
  bool same = twin->alloc == b->twin && content_of(p, twin) == content_of(p, b) && b->solid;
  bool used = b->launched > b->twin_since && twin->launched > b->twin_since;
  if (!same || !used) return WEIR_OK;
  return ADD(x, HELD_TWICE, b->alloc, twin->alloc, b->template,
             (int64_t)(b->bytes < twin->bytes ? b->bytes : twin->bytes));
}

/* Its own twin, and those whose twin it is, have none from now on. `ends`: it is freed, or the run ends; else it is
 * written, and is its own. */
static weir_status end_twins(const state *x, const launch_process *p, held_block *b, bool ends)
{
  weir_status st = WEIR_OK;
  if (!b->twin && !b->twinned) return st;
  for (size_t i = 0; !st && i < p->blocks; i++) {
    held_block *o = p->block[i];
    bool other = o->twin && o->twin == b->alloc;
    if (ends && b->twin && o->alloc == b->twin) st = see_twins(x, p, b, o);
    if (ends && !st && other) st = see_twins(x, p, o, b);
    if (other) o->twin = 0;
  }
  b->twin = 0, b->twinned = false;
  return st;
}

/* ---- copies and memsets ---------------------------------------------------------------------- */

static bool is_whole(const held_block *b, const wr_event *e)
{
  return e->a == b->at && e->bytes == b->bytes;
}

/* What a write of all of a block puts into it; 0: not known. */
static uint64_t content_of_write(const state *x, const launch_process *p, const wr_event *e,
                                 const held_block *from)
{
  if (e->t->kind == WEIR_EV_MEMSET) return hash_mix(hash_mix(79, e->b), (uint64_t)e->t->api);
  if (from) return from->at == e->b && from->bytes == e->bytes ? content_of(p, from) : 0;
  const uint64_t *number = hash_map_get(&x->hash, (uint64_t)e->id);
  return number ? hash_mix(*number, e->bytes) : 0;
}

static bool is_solid(const state *x, const wr_event *e, const held_block *from)
{
  if (e->t->kind == WEIR_EV_MEMSET || e->bytes < SOLID_BYTES) return false;
  if (from) return from->solid;
  const uint64_t *number = hash_map_get(&x->hash, (uint64_t)e->id);
  return number && !(*number & 1);
}

static void find_twin(const launch_process *p, held_block *b)
{
  const uint64_t content = content_of(p, b);
  for (size_t i = 0; i < p->blocks; i++) {
    held_block *o = p->block[i];
    if (o == b || !o->solid || o->device != b->device || content_of(p, o) != content) continue;
    b->twin = o->alloc, b->twin_since = p->steps;
    o->twinned = true;
    return;
  }
}

/* A launch may reach the block though it is not handed it: by an address in the device's memory. */
static bool is_reachable(const launch_process *p, const held_block *b)
{
  return p->tables && b->handed < HANDED_OVER;
}

/* The last write of the block is one that nothing can have used, though launches came since. */
static bool is_unused(const launch_process *p, const held_block *b)
{
  bool unused = b->write && b->written > p->any_since && p->launched > b->written;
  return unused && !is_reachable(p, b);
}

/* It is written again. What no launch was ever handed may be used in another way. */
static weir_status see_over(const state *x, const launch_process *p, const held_block *b,
                            const wr_event *e)
{
  if (b->handed < HANDED_OVER || !is_unused(p, b) || b->write_at != e->a ||
      b->write_bytes != e->bytes)
    return WEIR_OK;
  const wr_template *t = b->write_template;
  bool same = t->stream == e->t->stream && t->thread == e->t->thread;
  return ADD(x, WRITTEN_OVER, b->write, e->id, same, t->id, b->write_ns, (int64_t)e->bytes);
}

/* It is freed. */
static weir_status see_unused(const state *x, const launch_process *p, const held_block *b,
                              int64_t free)
{
  if (!is_unused(p, b) || b->write_template->copy != WEIR_COPY_HTOD) return WEIR_OK;
  return ADD(x, UPLOADED_FOR_NONE, b->write, free, b->write_template->id, b->write_ns,
             (int64_t)b->write_bytes);
}

static bool brings_pointers(const wr_event *e, const held_block *from)
{
  if (from) return from->pointers;
  return e->bytes <= TABLE_BYTES && e->bytes % sizeof(uint64_t) == 0;
}

static weir_status write_block(const state *x, const launch_process *p, const wr_event *e,
                               held_block *b, held_block *from)
{
  bool whole = is_whole(b, e), memset = e->t->kind == WEIR_EV_MEMSET;
  uint64_t content = whole ? content_of_write(x, p, e, from) : 0;
  bool solid = content && is_solid(x, e, from);
  weir_status st = see_over(x, p, b, e);
  if (!st) st = end_twins(x, p, b, false);
  if (st) return st;
  write_content(p, b, content ? content : new_content(p, b), solid);
  if (!memset || !whole || b->pure == UNWRITTEN) b->pure = 0;
  if (!memset || !whole) b->owner = 0, b->foreign = p->steps;
  if (!memset) b->pointers |= brings_pointers(e, from);
  b->write = e->id, b->write_template = e->t, b->write_ns = e->ns;
  b->write_at = e->a, b->write_bytes = e->bytes;
  if (solid) find_twin(p, b);
  return st;
}

/* A copy from a block to the host, or to another one. */
static weir_status read_block(const state *x, const launch_process *p, const wr_event *e,
                              held_block *b)
{
  b->write = 0;
  if (e->t->copy != WEIR_COPY_DTOH) return WEIR_OK;
  bool again =
      b->read && b->read_at == e->b && b->read_bytes == e->bytes && b->read_when > p->any_since;
  int64_t earlier = b->read;
  const uint64_t when = b->read_when;
  b->read = e->id, b->read_at = e->b, b->read_bytes = e->bytes, b->read_when = p->steps;
  again &= !is_reachable(p, b) && p->launched > when;
  return again ? ADD(x, READ_AGAIN, e->id, earlier, e->t->id, e->ns, (int64_t)e->bytes) : WEIR_OK;
}

static bool is_of_host(int64_t mem)
{
  return mem == WEIR_MEM_PAGEABLE || mem == WEIR_MEM_PINNED || mem == WEIR_MEM_HOST;
}

static weir_status take_move(const state *x, launch_process *p, const wr_event *e)
{
  const bool copy = e->t->kind == WEIR_EV_COPY;
  held_block *from = copy ? block_at(p, e->b) : NULL, *to = block_at(p, e->a);
  weir_status st = from ? read_block(x, p, e, from) : WEIR_OK;
  if (!to && !is_of_host(e->t->mem)) {
    p->beyond = p->steps;
    p->tables |= brings_pointers(e, from);
  }
  if (copy && !from && !is_of_host(e->t->src_mem)) p->beyond = p->steps;
  return to && !st ? write_block(x, p, e, to, from) : st;
}

/* ---- allocations and frees ------------------------------------------------------------------- */

static weir_status drop_block(const state *x, launch_process *p, const wr_event *e)
{
  size_t after = block_after(p, e->a);
  held_block *b = after ? p->block[after - 1] : NULL;
  if (!b || b->at != e->a) return WEIR_OK;
  weir_status st = e->t->kind == WEIR_EV_FREE ? see_unused(x, p, b, e->id) : WEIR_OK;
  if (!st) st = end_twins(x, p, b, true);
  memmove(&p->block[after - 1], &p->block[after], (p->blocks - after) * sizeof(void *));
  p->blocks--;
  p->changes++;
  free(b);
  return st;
}

static weir_status add_block(const state *x, launch_process *p, const wr_event *e)
{
  weir_status st = drop_block(x, p, e);
  if (st || !e->bytes) return st;
  p->off |= p->blocks >= MOST_LIVE;
  held_block *b = malloc(sizeof(*b));
  if (!b || !wr_grow(&p->block, &p->block_capacity, p->blocks + 1, sizeof(void *))) {
    free(b);
    return launch_memory(x);
  }
  *b = (held_block){.at = e->a,
                    .bytes = e->bytes,
                    .alloc = e->id,
                    .template = e->t->id,
                    .device = e->t->device,
                    .written = p->steps};
  b->content = hash_mix(UNWRITTEN, (uint64_t)e->id);
  b->pure = UNWRITTEN, b->foreign = p->steps;
  size_t at = block_after(p, e->a);
  memmove(&p->block[at + 1], &p->block[at], (p->blocks++ - at) * sizeof(void *));
  p->block[at] = b;
  p->changes++;
  return st;
}

/* ---- launches -------------------------------------------------------------------------------- */

/* What the kernel does with the words of the set, where each is all of a parameter. */
static void read_form(state *x, form *f, const wr_access_set *s, const wr_params *params)
{
  f->known = params && params->plain && params->count == s->parameters;
  f->leads = params && params->count >= 0 && !f->known;
  for (size_t i = 0; i < s->count; i++) {
    const wr_access_place *w = &x->access.where[s->first + i];
    bool placed = f->known && w->part == 0 && w->parameter >= 0 && w->parameter < params->count;
    wr_param how = placed ? (wr_param)params->of[w->parameter] : WR_PARAM_UNKNOWN;
    f->known &= how == WR_PARAM_READS || how == WR_PARAM_WRITES;
    x->uses[f->first + i] = (use){.how = how};
  }
}

/* The form of a launch, from 1; 0: there are too many, or out of memory. */
static size_t form_of(state *x, const wr_event *e, const wr_access_set *s)
{
  bool added;
  uint64_t key = key_of_form(e->t->process, s->number, e->a);
  uint64_t *at = hash_map_place(&x->form_at, key, &added);
  if (!at) return 0;
  if (!added) return (size_t)*at;
  if (x->form_count >= MOST_FORMS ||
      !wr_grow(&x->forms, &x->form_capacity, x->form_count + 1, sizeof(*x->forms)) ||
      !wr_grow(&x->uses, &x->use_capacity, x->use_count + s->count, sizeof(*x->uses)))
    return 0;
  const uint64_t *k = hash_map_get(&x->kernel_at, key_of_kernel(e->t->process, e->a));
  form *f = &x->forms[x->form_count++];
  *f = (form){.key = key,
              .first = (uint32_t)x->use_count,
              .count = (uint32_t)s->count,
              .steady = !hash_map_get(&x->varying, key)};
  x->use_count += s->count;
  read_form(x, f, s, k && *k ? &x->kernels[*k - 1].params : NULL);
  *at = x->form_count;
  return x->form_count;
}

/* False: one of the words is in no block. */
static bool find_blocks(const state *x, const launch_process *p, form *f, const uint64_t *word)
{
  bool all = true;
  for (uint32_t i = 0; i < f->count; i++) {
    use *u = &x->uses[f->first + i];
    if (f->found != p->changes) u->block = block_at(p, word[i]);
    all &= u->block != NULL;
  }
  f->found = p->changes;
  return all;
}

/* It is not known which of its blocks the kernel writes; *any: it may reach others by pointers in them. */
static weir_status write_all(const state *x, const launch_process *p, const form *f, bool *any)
{
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; !st && i < f->count; i++) {
    held_block *b = x->uses[f->first + i].block;
    if (!b) continue;
    *any |= b->pointers;
    st = end_twins(x, p, b, false);
    write_content(p, b, new_content(p, b), false);
    b->write = 0, b->pure = 0, b->launched = p->steps, b->handed++;
    b->owner = 0, b->foreign = p->steps;
  }
  return st;
}

static bool is_read_too(const use *u, uint32_t count, const held_block *b)
{
  uint32_t i = 0;
  while (i < count && !(u[i].block == b && u[i].how == WR_PARAM_READS))
    i++;
  return i < count;
}

/* What the kernel makes of its parameters and of what the blocks hold; *inputs: those it reads alone that something has
 * written, *outputs: blocks that it may write. */
static uint64_t result_of(const state *x, const launch_process *p, const form *f, uint64_t run,
                          uint32_t *inputs, uint32_t *outputs)
{
  const use *u = &x->uses[f->first];
  uint64_t result = hash_mix(run, p->beyond);
  *inputs = *outputs = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    const held_block *b = u[i].block;
    bool writes = u[i].how == WR_PARAM_WRITES;
    bool pure = writes && (b->pure == UNWRITTEN || b->pure == run) && b->written > p->any_since &&
                !is_read_too(u, f->count, b);
    *outputs += writes;
    *inputs += !writes && b->pure != UNWRITTEN;
    result = hash_mix(result, pure ? PURE : content_of(p, b));
  }
  return result;
}

/* Nothing but memsets and this very launch has written the blocks since. */
static bool has_outputs_alone(const state *x, const form *f, uint64_t when)
{
  for (uint32_t i = 0; i < f->count; i++) {
    const use *u = &x->uses[f->first + i];
    if (u->how == WR_PARAM_WRITES && u->block->foreign > when) return false;
  }
  return true;
}

static weir_status write_results(const state *x, const launch_process *p, const form *f,
                                 uint64_t run, uint64_t result)
{
  weir_status st = WEIR_OK;
  const use *u = &x->uses[f->first];
  for (uint32_t i = 0; !st && i < f->count; i++) {
    held_block *b = u[i].block;
    if (!b) continue;
    b->write = 0, b->launched = p->steps, b->handed++;
    if (u[i].how != WR_PARAM_WRITES) continue;
    bool pure = run && (b->pure == UNWRITTEN || b->pure == run) && !is_read_too(u, f->count, b);
    st = end_twins(x, p, b, false);
    write_content(p, b, hash_mix(result, i), false);
    b->pure = pure ? run : 0;
    if (b->owner != run || !run) b->foreign = p->steps;
    b->owner = run;
  }
  return st;
}

/* The launch is compared with the last of its kernel, set, parameters and grid. */
static weir_status see_run(state *x, launch_process *p, const form *f, const wr_event *e,
                           uint64_t run)
{
  bool added;
  uint32_t inputs, outputs;
  uint64_t result = result_of(x, p, f, run, &inputs, &outputs);
  uint64_t *at = hash_map_place(&x->run_at, run, &added);
  if (!at || !wr_grow(&x->runs, &x->run_capacity, x->run_count + 1, sizeof(*x->runs)))
    return launch_memory(x);
  if (added) x->runs[x->run_count++] = (last_run){0}, *at = x->run_count;
  last_run *r = &x->runs[*at - 1];
  weir_status st = WEIR_OK;
  if (r->event && r->result == result && inputs && outputs && has_outputs_alone(x, f, r->when)) {
    if (!r->family) r->family = ++x->families;
    st = ADD(x, REPEATED_LAUNCH, e->id, r->event, r->family,
             (int64_t)(p->launches - r->launches - 1), e->t->id, e->ns);
  }
  r->result = result, r->when = p->steps, r->event = e->id, r->launches = p->launches;
  return st ? st : write_results(x, p, f, run, result);
}

static weir_status take_launch(state *x, launch_process *p, const wr_event *e)
{
  const wr_access_set *s = wr_access_set_of(&x->access, e);
  size_t place = s ? form_of(x, e, s) : 0;
  p->launched = p->steps, p->launches++;
  if (!place) {
    p->any_since = p->steps;
    return WEIR_OK;
  }
  form *f = &x->forms[place - 1];
  bool any = f->leads, all = find_blocks(x, p, f, &x->access.word[s->first]);
  if (!f->known) {
    weir_status st = write_all(x, p, f, &any);
    if (any) p->any_since = p->steps;
    return st;
  }
  uint64_t run = hash_mix(hash_mix(f->key, e->b), e->bytes);
  run = hash_mix(hash_mix(run, (uint64_t)e->t->device), (uint64_t)e->t->context);
  if (all && f->steady && x->run_count < MOST_RUNS) return see_run(x, p, f, e, run);
  return write_results(x, p, f, 0, hash_mix(hash_mix(FRESH, p->steps), run));
}

/* ---- the walk -------------------------------------------------------------------------------- */

static weir_status end_blocks(state *x, launch_process *p)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < p->blocks; i++)
    st = end_twins(x, p, p->block[i], true);
  return st;
}

static weir_status take_one(state *x, const wr_event *e, enum act act)
{
  size_t place = place_of_process(x, e->t->process);
  if (!place) return launch_memory(x);
  launch_process *p = &x->process[place - 1];
  if (p->off) return WEIR_OK;
  p->steps++;
  switch (act) {
  case ALLOCATES:
    return add_block(x, p, e);
  case FREES:
    return drop_block(x, p, e);
  case MOVES:
    return take_move(x, p, e);
  case LAUNCHES:
    return take_launch(x, p, e);
  case ENDS:
    p->off = true;
    return WEIR_OK;
  default:
    p->any_since = p->steps;
    return WEIR_OK;
  }
}

weir_status wr_launch_take(wr_launch_facts *x, const wr_event events[], size_t count)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; x->state && !st && i < count; i++) {
    enum act act = (enum act)x->state->act[events[i].at];
    if (act != NOTHING) st = take_one(x->state, &events[i], act);
  }
  return st;
}

weir_status wr_launch_end(wr_launch_facts *x)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; x->state && !st && i < x->state->processes; i++)
    if (!x->state->process[i].off) st = end_blocks(x->state, &x->state->process[i]);
  return st;
}
