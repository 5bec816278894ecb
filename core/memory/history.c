/* history.c: see history.h. */
#include "core/base/pages.h"
#include "core/base/lock.h"
#include "core/memory/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
  USUAL_ENTRIES = 1 << 20,
  MOST_NOTES = 1 << 14,
  FIRST_ROOM = 256,
  RECORDS = 1 << 26, /* as meta.c has */
  STEP = 1 << 14     /* records whose stacks are committed at a time */
};

/* The stacks of records: of a live block, and of the segment that begins with it. One array for all
 * pools, as the records are; a pool's entries are touched under its lock. */
typedef struct mark {
  uint32_t block, segment;
} mark;

static mark *marks;             /* mapped */
static _Atomic uint32_t marked; /* committed */
static _Atomic uint64_t marks_lost;
static pthread_mutex_t marks_lock = PTHREAD_MUTEX_INITIALIZER;

__thread uint64_t callers_now;

/* ---- the ring -------------------------------------------------------------------------------- */

const void *history_ring_at(const history_ring *r, uint64_t i)
{
  uint64_t at = r->next + i;
  return r->items + (at >= r->room ? at - r->room : at) * r->item;
}

/* Moves the newest into room for `room` items. */
static bool ring_resize(const mem_pool *p, history_ring *r, uint64_t room)
{
  uint64_t kept = r->count < room ? r->count : room;
  char *items = may_commit(p, room * r->item) ? malloc(room * r->item) : NULL;
  if (!items) return false;
  for (uint64_t i = 0; i < kept; i++)
    memcpy(items + i * r->item, history_ring_at(r, r->count - kept + i), r->item);
  free(r->items);
  r->items = items;
  r->overwritten += r->count - kept;
  r->room = room;
  r->count = kept;
  r->next = 0;
  return true;
}

/* Where the next item goes; NULL: nowhere. */
static void *ring_next(const mem_pool *p, history_ring *r)
{
  uint64_t room = r->room ? 2 * r->room : FIRST_ROOM;
  if (!r->most) return NULL;
  if (r->count == r->room && r->room < r->most &&
      !ring_resize(p, r, room < r->most ? room : r->most))
    r->lost++;
  if (!r->room) return NULL;
  if (r->count < r->room) return (char *)history_ring_at(r, r->count++);
  char *oldest = r->items + r->next * r->item;
  r->next = r->next + 1 == r->room ? 0 : r->next + 1;
  r->overwritten++;
  return oldest;
}

static void ring_empty(history_ring *r)
{
  free(r->items);
  *r = (history_ring){.item = r->item, .most = r->most};
}

/* ---- the stacks of what is live -------------------------------------------------------------- */

/* Makes sure that record `id` has a mark. */
static bool mark_ensure(const mem_pool *p, block_id id)
{
  if (id < atomic_load(&marked)) return true;
  pthread_mutex_lock(&marks_lock);
  if (!marks) marks = pages_reserve((uint64_t)RECORDS * sizeof *marks);
  uint32_t have = atomic_load(&marked);
  uint32_t want = (id / STEP + 1) * STEP;
  uint64_t more = want > have ? (uint64_t)(want - have) * sizeof *marks : 0;
  bool done =
      marks &&
      (!more || (may_commit(p, more) && !mprotect(marks + have, more, PROT_READ | PROT_WRITE)));
  if (done && more) atomic_store(&marked, want);
  pthread_mutex_unlock(&marks_lock);
  if (!done) atomic_fetch_add(&marks_lost, 1);
  return done;
}

uint32_t history_block_stack(const mem_pool *p, block_id id)
{
  return p->history && id < atomic_load(&marked) ? marks[id].block : 0;
}

uint32_t history_segment_stack(const mem_pool *p, block_id id)
{
  if (!p->history) return 0;
  if (!p->space) return id < atomic_load(&marked) ? marks[id].segment : 0;
  uint64_t place = (block(id)->address - p->base) / p->backend->source.page_bytes;
  return p->history->pages ? p->history->pages[place] : 0;
}

static void unmark(void *user, const mem_block *b)
{
  block_id id = (block_id)(b - block_records);
  (void)user;
  if (id < atomic_load(&marked)) marks[id] = (mark){0, 0};
}

/* ---- hooks ----------------------------------------------------------------------------------- */

uint64_t weir_history_capture(const mem_pool *p, bool is_free)
{
  unsigned context = atomic_load_explicit(&p->recording, memory_order_relaxed);
  unsigned least = 1 + (is_free ? WEIR_CONTEXT_ALL : WEIR_CONTEXT_STATE);
  return context >= least ? weir_callers_capture(p) : 0;
}

static uint64_t now_us(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void record_entry(mem_pool *p, history_entry e, uint32_t stack)
{
  history_entry *at = ring_next(p, &p->history->entries);
  if (!at) return;
  e.time = now_us();
  e.stack = p->history->context >= WEIR_CONTEXT_ALLOC ? stack : 0;
  e.tag = (uint8_t)tag_now;
  *at = e;
}

uint32_t history_pool_id(const mem_heap *h)
{
  return h->graph ? (uint32_t)h->graph->id : 0;
}

static uint64_t handle(const mem_heap *h)
{
  return (uint64_t)(uintptr_t)h->stream;
}

void history_put(mem_pool *p, enum history_action action, uint64_t address, uint64_t bytes,
                 const mem_heap *h)
{
  record_entry(p,
               (history_entry){.address = address,
                               .bytes = bytes,
                               .stream = h ? handle(h) : 0,
                               .pool_id = h ? history_pool_id(h) : 0,
                               .action = (uint8_t)action},
               callers_id(callers_now));
}

static history_entry history_entry_of(const mem_block *b, enum history_action action)
{
  return (history_entry){.address = b->address,
                         .bytes = b->requested,
                         .stream = handle(heap_table[b->heap]),
                         .pool_id = history_pool_id(heap_table[b->heap]),
                         .action = (uint8_t)action};
}

void history_put_alloc(mem_pool *p, block_id id)
{
  uint32_t stack = callers_id(callers_now);
  if (mark_ensure(p, id)) marks[id].block = stack;
  record_entry(p, history_entry_of(block(id), ACTION_ALLOC), stack);
}

void history_put_free(mem_pool *p, block_id id, bool completed)
{
  bool own = p->history->context == WEIR_CONTEXT_ALL && block_state(block(id)) != BLOCK_PENDING;
  uint32_t stack = own ? callers_id(callers_now) : 0; /* not of who found it complete */
  record_entry(
      p, history_entry_of(block(id), completed ? ACTION_FREE_COMPLETED : ACTION_FREE_REQUESTED),
      stack ? stack : history_block_stack(p, id));
}

void history_put_segment(mem_pool *p, enum history_action action, block_id id)
{
  const mem_block *b = block(id);
  uint32_t stack = callers_id(callers_now);
  uint64_t page = p->backend->source.page_bytes;
  history_entry e = history_entry_of(b, action);
  e.bytes = b->bytes;
  if (p->space) e.stream = 0; /* pages are everybody's */
  if (action == ACTION_SEGMENT_ALLOC && mark_ensure(p, id)) marks[id] = (mark){0, stack};
  if (action == ACTION_SEGMENT_MAP && p->history->pages)
    for (uint64_t at = b->address; at < b->address + b->bytes; at += page)
      p->history->pages[(at - p->base) / page] = stack;
  record_entry(p, e, stack);
}

static block_notice notice_of_free(const void *ptr)
{
  block_notice what = {.address = (uint64_t)(uintptr_t)ptr, .device = -1};
  block_id id = page_map_find(what.address);
  if (!id || block_state(block(id)) != BLOCK_LIVE) return what;
  const mem_heap *h = heap_table[block(id)->heap];
  what.freed = block(id)->requested;
  what.stream = (uint64_t)(uintptr_t)h->stream;
  if (!h->pool->host) what.device = h->pool->backend->index;
  return what;
}

weir_status notify_of_free(void *ptr, enum notice_api api, weir_status (*release)(void *ptr))
{
  const engine_listener *l = active_listener;
  engine_notice call;
  block_notice what = notice_of_free(ptr);
  bool notified = l && l->begin(&call);
  weir_status st = release(ptr);
  what.api = api;
  what.status = notify_status(st);
  if (notified) l->end(&call, &what);
  return st;
}

/* ---- on and off ------------------------------------------------------------------------------ */

static void destroy_history(pool_history *h)
{
  if (!h) return;
  free(h->entries.items);
  free(h->notes.items);
  if (h->pages) munmap(h->pages, h->page_bytes);
  free(h);
  callers_release();
}

static pool_history *create_history(const mem_pool *p)
{
  pool_history *h = may_commit(p, sizeof *h) ? calloc(1, sizeof *h) : NULL;
  if (!h) return NULL;
  h->entries.item = sizeof(history_entry);
  h->notes.item = sizeof(history_note);
  if (p->space) {
    h->page_bytes = p->space / p->backend->source.page_bytes * sizeof *h->pages;
    h->pages = may_commit(p, h->page_bytes) ? pages_alloc(h->page_bytes) : NULL;
  }
  callers_hold();
  return h;
}

/* Takes the history from the pool; threads use their own caches again. Lock held. */
static pool_history *stop_recording(mem_pool *p)
{
  pool_history *h = p->history;
  p->history = NULL;
  atomic_store(&p->recording, 0);
  if (h) tcache_divert(p, NULL, -1);
  return h;
}

void history_drop(mem_pool *p)
{
  destroy_history(stop_recording(p));
}

static void configure(mem_pool *p, weir_history_mode mode, weir_history_context context,
                      uint64_t most)
{
  pool_history *h = p->history;
  h->mode = mode;
  h->context = context;
  h->entries.most = mode == WEIR_HISTORY_ALL ? most : 0;
  h->notes.most = mode == WEIR_HISTORY_ALL ? MOST_NOTES : 0;
  if (mode != WEIR_HISTORY_ALL) {
    ring_empty(&h->entries);
    ring_empty(&h->notes);
  } else if (h->entries.room > most && !ring_resize(p, &h->entries, most)) {
    ring_empty(&h->entries); /* no host memory to keep the newest of them */
  }
  atomic_store(&p->recording, (uint8_t)(1 + context));
}

/* *h is taken where the pool has none yet. Lock held. */
static void start_recording(mem_pool *p, pool_history **h)
{
  if (p->history) return;
  p->history = *h;
  *h = NULL;
  tcache_divert(p, NULL, 1);
  tcache_reclaim(p);
  pool_walk(p, unmark, NULL);
}

weir_status history_set(mem_pool *p, weir_history_mode mode, weir_history_context context,
                        uint64_t max_entries)
{
  pool_history *h = NULL;
  if ((unsigned)mode > WEIR_HISTORY_ALL)
    return fail_invalid("history has the modes off (0), state (1) and all (2), not %d", (int)mode);
  if ((unsigned)context > WEIR_CONTEXT_ALL)
    return fail_invalid("history has the contexts none (0), state (1), alloc (2), all (3), not %d",
                        (int)context);
  if (max_entries >> 40)
    return fail_invalid("%llu entries are more than any history has",
                        (unsigned long long)max_entries);
  if (mode && !(h = create_history(p))) return fail_memory("a history");
  pthread_mutex_lock(&p->lock);
  if (mode) {
    start_recording(p, &h);
    configure(p, mode, context, max_entries ? max_entries : USUAL_ENTRIES);
  } else {
    h = stop_recording(p);
  }
  pthread_mutex_unlock(&p->lock);
  destroy_history(h);
  return WEIR_OK;
}

void history_annotate(mem_pool *p, const char *name, bool begin)
{
  HOLD_LOCK(&p->lock);
  history_note *at = p->history ? ring_next(p, &p->history->notes) : NULL;
  if (at) {
    *at = (history_note){.time = now_us(), .begin = begin};
    strncpy(at->name, name, sizeof at->name - 1);
  }
}

void history_figures(mem_pool *p, weir_history_info *out)
{
  callers_figures c = callers_count();
  *out = (weir_history_info){.stacks = c.stacks,
                             .stacks_lost = c.lost + atomic_load(&marks_lost),
                             .bytes = c.bytes + (uint64_t)atomic_load(&marked) * sizeof *marks,
                             .unwinder = c.unwinder};
  HOLD_LOCK(&p->lock);
  const pool_history *h = p->history;
  if (h) {
    out->mode = h->mode;
    out->context = h->context;
    out->entries = h->entries.count;
    out->overwritten = h->entries.overwritten;
    out->lost = h->entries.lost;
    out->bytes += h->entries.room * sizeof(history_entry) + h->notes.room * sizeof(history_note) +
                  (h->pages ? h->page_bytes : 0);
  }
}

/* ---- owners ---------------------------------------------------------------------------------- */

typedef struct owners {
  history_owner *table; /* owned; by stack, stack 0: empty */
  uint64_t mask;
} owners;

static void count_owner(void *user, const mem_block *b)
{
  const owners *o = user;
  block_id id = (block_id)(b - block_records);
  if (block_state(b) != BLOCK_LIVE || id >= atomic_load(&marked) || !marks[id].block) return;
  uint64_t at = marks[id].block * UINT64_C(0x9fb21c651e98df25) >> 20;
  while (o->table[at & o->mask].stack && o->table[at & o->mask].stack != marks[id].block)
    at++;
  history_owner *owner = &o->table[at & o->mask];
  owner->stack = marks[id].block;
  owner->bytes += b->bytes;
  owner->blocks++;
}

static int by_history_bytes(const void *a, const void *b)
{
  const history_owner *x = a, *y = b;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

unsigned history_owners(const mem_pool *p, history_owner *out, unsigned most)
{
  uint64_t size = 64, found = 0;
  if (!p->history) return 0;
  while (size < 2 * callers_count().stacks + 2)
    size *= 2;
  owners o = {calloc(size, sizeof *o.table), size - 1};
  if (!o.table) return 0;
  pool_walk(p, count_owner, &o);
  qsort(o.table, size, sizeof *o.table, by_history_bytes);
  for (; found < most && found < size && o.table[found].stack; found++)
    out[found] = o.table[found];
  free(o.table);
  return (unsigned)found;
}
