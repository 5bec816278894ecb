/* history.h: what the allocator does, written down: hooks, the trace, the stacks of what is live.
 *
 * Off, the slow path tests one flag and the hit path nothing. On, every thread cache is diverted:
 * all calls come down the slow path, under the pool's lock, where the hooks are.
 *
 * The trace is a ring that grows up to its limit. Where host memory is short it overwrites its
 * oldest entries instead of growing: it is always the end of the whole history, without gaps, so
 * that who goes back through it (memory_viz does) always finds what an entry speaks of. */
#ifndef WEIR_MEMORY_HISTORY_H
#define WEIR_MEMORY_HISTORY_H

#include "core/memory/callers.h"
#include "core/memory/pool.h"
#include "core/trace/notify.h"
#include "core/weir/history.h"

/* PyTorch's actions. X(identifier, name) */
#define WEIR_ACTIONS(X)                                                                            \
  X(ALLOC, "alloc")                                                                                \
  X(FREE_REQUESTED, "free_requested")                                                              \
  X(FREE_COMPLETED, "free_completed")                                                              \
  X(SEGMENT_ALLOC, "segment_alloc")                                                                \
  X(SEGMENT_FREE, "segment_free")                                                                  \
  X(SEGMENT_MAP, "segment_map")                                                                    \
  X(SEGMENT_UNMAP, "segment_unmap")                                                                \
  X(OOM, "oom")                                                                                    \
  X(SNAPSHOT, "snapshot")

enum history_action {
#define WEIR_ACTION_ENUM(id, name) ACTION_##id,
  WEIR_ACTIONS(WEIR_ACTION_ENUM)
#undef WEIR_ACTION_ENUM
};

typedef struct history_entry { /* 48 bytes */
  uint64_t time;               /* us since 1970 */
  uint64_t address;            /* OOM: bytes free on the device */
  uint64_t bytes;              /* as asked for; segments: as given */
  uint64_t stream;             /* the backend's handle */
  uint32_t stack;              /* callers.h; 0: none */
  uint8_t action;              /* enum history_action */
  uint8_t tag;                 /* of the thread */
  uint32_t pool_id;            /* of a private pool, 0: none */
} history_entry;

typedef struct history_note { /* an annotation */
  uint64_t time;              /* us since 1970 */
  char name[64];
  bool begin;
} history_note;

typedef struct history_ring {
  char *items;                      /* owned */
  uint32_t item;                    /* bytes of one */
  uint64_t room, count, next, most; /* items: had, used, the oldest once all are used, limit */
  uint64_t overwritten, lost;
} history_ring;

typedef struct pool_history {
  weir_history_mode mode;
  weir_history_context context;
  history_ring entries, notes;
  uint32_t *pages;     /* mapped; VMM: stack of each place's mapping; NULL: no host memory */
  uint64_t page_bytes; /* of that */
} pool_history;

/* The i-th of what is in the ring, the oldest first. */
const void *history_ring_at(const history_ring *r, uint64_t i);

extern __thread uint64_t callers_now __attribute__((tls_model("initial-exec"))); /* token */
uint64_t weir_history_capture(const mem_pool *p, bool is_free);

/* Around a call that takes the pool's lock and may leave something in the history: before the lock,
 * and after it. */
static inline uint64_t history_enter(mem_pool *p, bool is_free)
{
  uint64_t before = callers_now;
  if (__builtin_expect(atomic_load_explicit(&p->recording, memory_order_relaxed), 0))
    callers_now = weir_history_capture(p, is_free);
  return before;
}

static inline void history_leave(uint64_t before)
{
  callers_now = before;
}

/* Lock held, history on. */
void history_put(mem_pool *p, enum history_action action, uint64_t address, uint64_t bytes,
                 const mem_heap *h);
void history_put_alloc(mem_pool *p, block_id id);
void history_put_free(mem_pool *p, block_id id, bool completed);
void history_put_segment(mem_pool *p, enum history_action action, block_id id);

/* The hooks. Lock held. */
static inline void history_alloc(mem_pool *p, block_id id)
{
  if (__builtin_expect(p->history != NULL, 0)) history_put_alloc(p, id);
}

/* A free was asked for; the block can be used again. */
static inline void history_free(mem_pool *p, block_id id, bool completed)
{
  if (__builtin_expect(p->history != NULL, 0)) history_put_free(p, id, completed);
}

/* Block `id` is memory from the device now, or is about to be so no more. */
static inline void history_segment(mem_pool *p, enum history_action action, block_id id)
{
  if (__builtin_expect(p->history != NULL, 0)) history_put_segment(p, action, id);
  if (__builtin_expect(atomic_load_explicit(&memory_watch, memory_order_relaxed) != NULL, 0))
    notify_segment(p->host ? -1 : p->backend->index,
                   action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP,
                   block(id)->address, block(id)->bytes);
}

static inline void history_oom(const mem_heap *h, uint64_t bytes, uint64_t device_free)
{
  if (__builtin_expect(h->pool->history != NULL, 0))
    history_put(h->pool, ACTION_OOM, device_free, bytes, h);
}

/* Somebody listens: release(ptr), and the listener is notified of it as a call of `api`. */
weir_status notify_of_free(void *ptr, enum notice_api api, weir_status (*release)(void *ptr))
    __attribute__((noinline));

/* weir_memory_record_history(), weir_memory_annotate() and weir_memory_history_info() of a pool. */
weir_status history_set(mem_pool *p, weir_history_mode mode, weir_history_context context,
                        uint64_t max_entries);
void history_annotate(mem_pool *p, const char *name, bool begin);
void history_figures(mem_pool *p, weir_history_info *out);

void history_drop(mem_pool *p); /* the pool ends */

uint32_t history_pool_id(const mem_heap *h); /* of its private pool, 0: none */

/* The stack of a live block's allocation, and of a segment by its first block; 0: none. */
uint32_t history_block_stack(const mem_pool *p, block_id id);
uint32_t history_segment_stack(const mem_pool *p, block_id id);

/* Who owns the live bytes: the `most` stacks with the most, by falling bytes; returns how many.
 * Lock held, thread caches frozen. Blocks without a stack are nobody's. */
typedef struct history_owner {
  uint64_t bytes, blocks; /* live */
  uint32_t stack;         /* callers_text() */
} history_owner;
unsigned history_owners(const mem_pool *p, history_owner *out, unsigned most);

#endif
