/* thread_cache.h: what thread_cache.c and threads.c share: going into a thread's cache, and blocks
 * in and out of it. */
#ifndef WEIR_MEMORY_THREAD_CACHE_H
#define WEIR_MEMORY_THREAD_CACHE_H

#include "core/base/compiler.h"
#include "core/memory/pool.h"

enum { TCACHE_ROOM = 16 << 20 };      /* bytes a thread cache keeps at most */
#define UNITS_SHIFT (64 - LIVE_SHIFT) /* of live_units() */

#pragma GCC visibility push(hidden)

extern __thread tcache_thread *tcache_thread_mine __attribute__((tls_model("initial-exec")));
extern bool tcache_fence_needed;

/* The calling thread's cache of the heap, looked for and made; NULL: no memory. */
thread_cache *tcache_find(mem_heap *h);
/* Gives cached blocks back to the heap until at most `keep` bytes are left. Lock held, and in the
 * thread cache alone. */
void tcache_flush(thread_cache *f, uint64_t keep);

#if WEIR_TSAN
#define ORDER_FIRST memory_order_seq_cst /* membarrier is nothing a race detector knows */
#else
#define ORDER_FIRST memory_order_relaxed
#endif

/* ---- entering -------------------------------------------------------------------------------- */

static inline void tcache_leave(thread_cache *f)
{
  atomic_store_explicit(&f->busy, false, memory_order_release);
}

static inline bool tcache_enter(thread_cache *f)
{
  atomic_store_explicit(&f->busy, true, ORDER_FIRST);
  atomic_signal_fence(memory_order_seq_cst);
#if !WEIR_TSAN
  if (__builtin_expect(tcache_fence_needed, 0)) atomic_thread_fence(memory_order_seq_cst);
  if (__builtin_expect(!atomic_load_explicit(&f->stop, memory_order_acquire), 1)) return true;
#else
  if (!atomic_load(&f->stop)) return true;
#endif
  tcache_leave(f);
  return false;
}

static inline int64_t tcache_get(const _Atomic int64_t *n)
{
  return atomic_load_explicit((_Atomic int64_t *)n, memory_order_relaxed);
}

static inline void tcache_set(_Atomic int64_t *n, int64_t value)
{
  atomic_store_explicit(n, value, memory_order_relaxed);
}

/* ---- blocks in and out ----------------------------------------------------------------------- */

/* Units come to the bins, or leave them, otherwise than by the owner's malloc and free. */
static inline void tcache_shift_room(thread_cache *f, int64_t units)
{
  f->least += (int64_t)((uint64_t)units << UNITS_SHIFT);
}

static inline void tcache_put(thread_cache *f, block_id id, unsigned class)
{
  block(id)->next = f->bins[class].head;
  f->bins[class].head = id;
}

static inline void tcache_take_remote(thread_cache *f)
{
  if (!atomic_load_explicit(&f->remote, memory_order_relaxed)) return;
  block_id id = atomic_exchange_explicit(&f->remote, 0, memory_order_acquire);
  for (block_id next; id; id = next) {
    mem_block *b = block(id);
    next = b->next;
    block_set(b, BLOCK_CACHED);
    tcache_put(f, id, b->class);
    tcache_shift_room(f, (int64_t)(b->bytes >> UNIT_SHIFT));
  }
}

#pragma GCC visibility pop

#endif
