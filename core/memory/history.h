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

enum weir_action {
#define WEIR_ACTION_ENUM(id, name) ACTION_##id,
  WEIR_ACTIONS(WEIR_ACTION_ENUM)
#undef WEIR_ACTION_ENUM
};

typedef struct weir_entry { /* 48 bytes */
  uint64_t time;            /* us since 1970 */
  uint64_t address;         /* OOM: bytes free on the device */
  uint64_t bytes;           /* as asked for; segments: as given */
  uint64_t stream;          /* the backend's handle */
  uint32_t stack;           /* callers.h; 0: none */
  uint8_t action;           /* enum weir_action */
  uint8_t tag;              /* of the thread */
  uint32_t pool_id;         /* of a private pool, 0: none */
} weir_entry;

typedef struct weir_note { /* an annotation */
  uint64_t time;           /* us since 1970 */
  char name[64];
  bool begin;
} weir_note;

typedef struct weir_ring {
  char *items;                      /* owned */
  uint32_t item;                    /* bytes of one */
  uint64_t room, count, next, most; /* items: had, used, the oldest once all are used, limit */
  uint64_t overwritten, lost;
} weir_ring;

typedef struct weir_history {
  weir_history_mode mode;
  weir_history_context context;
  weir_ring entries, notes;
  uint32_t *pages;     /* mapped; VMM: stack of each place's mapping; NULL: no host memory */
  uint64_t page_bytes; /* of that */
} weir_history;

/* The i-th of what is in the ring, the oldest first. */
const void *weir_ring_at(const weir_ring *r, uint64_t i);

extern __thread uint64_t weir_callers_now __attribute__((tls_model("initial-exec"))); /* token */
uint64_t weir_history_capture(const weir_pool *p, bool is_free);

/* Around a call that takes the pool's lock and may leave something in the history: before the lock,
 * and after it. */
static inline uint64_t weir_history_enter(weir_pool *p, bool is_free)
{
  uint64_t before = weir_callers_now;
  if (__builtin_expect(atomic_load_explicit(&p->recording, memory_order_relaxed), 0))
    weir_callers_now = weir_history_capture(p, is_free);
  return before;
}

static inline void weir_history_leave(uint64_t before)
{
  weir_callers_now = before;
}

/* Lock held, history on. */
void weir_history_put(weir_pool *p, enum weir_action action, uint64_t address, uint64_t bytes,
                      const weir_heap *h);
void weir_history_put_alloc(weir_pool *p, block_id id);
void weir_history_put_free(weir_pool *p, block_id id, bool completed);
void weir_history_put_segment(weir_pool *p, enum weir_action action, block_id id);

/* The hooks. Lock held. */
static inline void weir_history_alloc(weir_pool *p, block_id id)
{
  if (__builtin_expect(p->history != NULL, 0)) weir_history_put_alloc(p, id);
}

/* A free was asked for; the block can be used again. */
static inline void weir_history_free(weir_pool *p, block_id id, bool completed)
{
  if (__builtin_expect(p->history != NULL, 0)) weir_history_put_free(p, id, completed);
}

/* Block `id` is memory from the device now, or is about to be so no more. */
static inline void weir_history_segment(weir_pool *p, enum weir_action action, block_id id)
{
  if (__builtin_expect(p->history != NULL, 0)) weir_history_put_segment(p, action, id);
  if (__builtin_expect(atomic_load_explicit(&weir_memory_watch, memory_order_relaxed) != NULL, 0))
    weir_watch_segment(p->host ? -1 : p->backend->index,
                       action == ACTION_SEGMENT_ALLOC || action == ACTION_SEGMENT_MAP,
                       block(id)->address, block(id)->bytes);
}

static inline void weir_history_oom(const weir_heap *h, uint64_t bytes, uint64_t device_free)
{
  if (__builtin_expect(h->pool->history != NULL, 0))
    weir_history_put(h->pool, ACTION_OOM, device_free, bytes, h);
}

/* Somebody listens: release(ptr), and the listener is notified of it as a call of `api`. */
weir_status notify_of_free(void *ptr, enum weir_notice_api api, weir_status (*release)(void *ptr))
    __attribute__((noinline));

/* weir_memory_record_history(), weir_memory_annotate() and weir_memory_history_info() of a pool. */
weir_status weir_history_set(weir_pool *p, weir_history_mode mode, weir_history_context context,
                             uint64_t max_entries);
void weir_history_annotate(weir_pool *p, const char *name, bool begin);
void weir_history_figures(weir_pool *p, weir_history_info *out);

void weir_history_drop(weir_pool *p); /* the pool ends */

uint32_t weir_history_pool_id(const weir_heap *h); /* of its private pool, 0: none */

/* The stack of a live block's allocation, and of a segment by its first block; 0: none. */
uint32_t weir_history_block_stack(const weir_pool *p, block_id id);
uint32_t weir_history_segment_stack(const weir_pool *p, block_id id);

/* Who owns the live bytes: the `most` stacks with the most, by falling bytes; returns how many.
 * Lock held, thread caches frozen. Blocks without a stack are nobody's. */
typedef struct weir_owner {
  uint64_t bytes, blocks; /* live */
  uint32_t stack;         /* weir_callers_text() */
} weir_owner;
unsigned weir_history_owners(const weir_pool *p, weir_owner *out, unsigned most);
/* The three largest in words: "40.00 MiB in 10 by f (prog+0x12) < g (prog+0x34); ...", cut at
 * `room`;
 * "" where none are known. Returns its length. Reads the symbols of loaded objects: slow. */
size_t weir_history_owners_text(const weir_pool *p, char *out, size_t room);

#endif
