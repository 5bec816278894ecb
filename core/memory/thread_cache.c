/* thread_cache.c: the hit path: what a thread keeps of a stream's blocks, by size class.
 *
 * malloc takes a block of the class from the thread cache's bin, free puts it back there: no lock,
 * no system call, no atomic read-modify-write. A free on another thread than the one the block came
 * through pushes it onto that thread cache's remote list (one compare-and-swap), which the owner
 * takes whole when a bin is empty.
 *
 * What a hit costs is the way from the pointer to the block and back to the next pointer: one load
 * of the page map, one of the record, and a few words of the thread cache, in one cache line and
 * one of the class. A pair counts `live`, `served` and the bytes asked for; all other figures
 * follow from these when somebody asks (stats.c). What is not plain leaves by a jump to a function
 * of its own, so that the plain case saves no registers. Among a million blocks the two loads are
 * misses of every cache, and they are all a free waits for. */
#include "core/backend/plugin.h"
#include "core/base/lock.h"
#include "core/memory/history.h"
#include "core/memory/thread_cache.h"

static inline void count_malloc(thread_cache *f, mem_block *b, unsigned class, uint64_t bytes)
{
  _Atomic uint64_t *served = &f->bins[class].served;
  b->requested = bytes;
  b->when = tag_now;
  atomic_store_explicit(served, atomic_load_explicit(served, memory_order_relaxed) + 1,
                        memory_order_relaxed);
  tcache_set(&f->requested_in, tcache_get(&f->requested_in) + (int64_t)bytes);
  int64_t live = tcache_get(&f->live) + live_of_class[class];
  tcache_set(&f->live, live);
  if (__builtin_expect(live_units(live) > tcache_get(&f->high), 0))
    tcache_set(&f->high, live_units(live));
}

static inline int64_t count_cache_free(thread_cache *f, const mem_block *b, unsigned class)
{
  int64_t live = tcache_get(&f->live) - live_of_class[class];
  tcache_set(&f->live, live);
  tcache_set(&f->requested_out, tcache_get(&f->requested_out) + (int64_t)b->requested);
  return live;
}

static void push_remote(thread_cache *f, block_id id)
{
  block_id head = atomic_load_explicit(&f->remote, memory_order_relaxed);
  do
    block(id)->next = head;
  while (!atomic_compare_exchange_weak_explicit(&f->remote, &head, id, memory_order_release,
                                                memory_order_relaxed));
}

/* The thread's cache of the heap where it was used lately; NULL: it has none, or must look. */
static inline thread_cache *tcache_seen(const mem_heap *h)
{
  thread_cache *f = tcache_thread_mine ? tcache_thread_mine->slots[h->number % THREAD_SLOTS] : NULL;
  if (__builtin_expect(f && atomic_load_explicit(&f->heap, memory_order_relaxed) == h &&
                           atomic_load_explicit(&f->owner, memory_order_relaxed) ==
                               tcache_thread_mine,
                       1))
    return f;
  return NULL;
}

static thread_cache *tcache_of(mem_heap *h)
{
  thread_cache *f = tcache_seen(h);
  return f ? f : tcache_find(h);
}

/* ---- malloc ---------------------------------------------------------------------------------- */

static inline bool by_tcache(const mem_heap *h, uint64_t bytes)
{
  return bytes <= CLASS_LIMIT && h->by_tcache;
}

static inline bool take_cached(thread_cache *f, const _Atomic uint8_t *class_of, uint64_t bytes,
                               void **out)
{
  unsigned class =
      atomic_load_explicit(&class_of[(bytes + UNIT - 1) >> UNIT_SHIFT], memory_order_relaxed);
  block_id id = f->bins[class].head;
  if (__builtin_expect(!id, 0)) return false;
  mem_block *b = block(id);
  *out = (void *)b->address;
  f->bins[class].head = b->next;
  block_set(b, BLOCK_LIVE);
  count_malloc(f, b, class, bytes);
  return true;
}

/* History knows the names of these two: it leaves them out of stacks. */
static __attribute__((noinline)) weir_status
weir_tcache_miss(mem_heap *h, const _Atomic uint8_t *class_of, uint64_t bytes, void **out)
{
  thread_cache *f = by_tcache(h, bytes) ? tcache_of(h) : NULL;
  if (f && tcache_enter(f)) {
    tcache_take_remote(f);
    bool now = take_cached(f, class_of, bytes, out);
    tcache_leave(f);
    if (now) return WEIR_OK;
  }
  uint64_t before = history_enter(h->pool, false);
  pthread_mutex_lock(&h->pool->lock);
  thread_cache *own = f ? f : tcache_seen(h);
  pool_peak(h->pool, own);
  if (own) tcache_set(&own->high, live_units(tcache_get(&own->live)));
  weir_status st = pool_alloc_slow(h, bytes, f, out);
  if (!st) {
    mem_block *b = block(page_map_find((uint64_t)*out));
    if (f && b->tcache) {
      tcache_shift_room(f, (int64_t)(b->bytes >> UNIT_SHIFT));
      count_malloc(f, b, b->class, bytes);
    }
  }
  pool_peak(h->pool, own);
  pthread_mutex_unlock(&h->pool->lock);
  history_leave(before);
  return st;
}

static inline weir_status tcache_malloc(mem_heap *h, const _Atomic uint8_t *class_of,
                                        uint64_t bytes, void **out)
{
  thread_cache *f = __builtin_expect(by_tcache(h, bytes), 1) ? tcache_seen(h) : NULL;
  if (__builtin_expect(f && tcache_enter(f), 1)) {
    bool now = take_cached(f, class_of, bytes, out);
    tcache_leave(f);
    if (__builtin_expect(now, 1)) return WEIR_OK;
  }
  return weir_tcache_miss(h, class_of, bytes, out);
}

weir_status weir_tcache_malloc(mem_heap *h, uint64_t bytes, void **out)
{
  return tcache_malloc(h, class_of_units, bytes, out);
}

weir_status weir_tcache_malloc_host(mem_heap *h, uint64_t bytes, void **out)
{
  return tcache_malloc(h, host_class_of_units, bytes, out);
}

/* ---- free ------------------------------------------------------------------------------------ */

static inline bool is_host(const mem_block *b)
{
  return b->heap >= HOST_HEAPS;
}

/* A block of a thread cache's that is freed where no thread cache can count it. Lock held. */
static void count_gone(mem_pool *p, const mem_block *b)
{
  p->gone.live -= live_of_class[b->class];
  p->gone.requested_out += (int64_t)b->requested;
}

/* Other streams use it: it waits for them. Lock held. */
static void suspend(mem_pool *p, block_id id)
{
  mem_block *b = block(id);
  mem_heap *own = heap_table[b->heap]->clock;
  pool_leave_tcache(p, b);
  block_set(b, BLOCK_PENDING);
  if (!p->host) b->stamp = own->dirty = own->epoch;
  for (block_id u = b->uses; u; u = block(u)->next)
    if (block(u)->class == USE_STREAM) epoch_use(p, u);
  b->next = p->pending;
  p->pending = id;
  pool_count_pending(p, b, 1);
  p->unmarked += b->bytes;
}

static bool has_event_use(const mem_block *b)
{
  block_id u = b->uses;
  while (u && block(u)->class == USE_PAUSE)
    u = block(u)->next;
  return u != 0;
}

/* A block other streams use, one that passes by the thread caches, or one no thread cache will
 * take. */
static __attribute__((noinline)) weir_status weir_tcache_free_slow(block_id id)
{
  mem_block *b = block(id);
  mem_pool *p = heap_table[b->heap]->pool;
  uint64_t before = history_enter(p, true);
  pthread_mutex_lock(&p->lock);
  pool_peak(p, NULL);
  history_free(p, id, false);
  if (b->tcache)
    count_gone(p, b);
  else
    pool_count_live(p, b, -1);
  if (has_event_use(b)) {
    suspend(p, id);
  } else {
    history_free(p, id, true);
    pool_release(id);
  }
  epoch_after_frees(p);
  pthread_mutex_unlock(&p->lock);
  history_leave(before);
  return WEIR_OK;
}

static __attribute__((noinline)) weir_status overflow(thread_cache *f)
{
  mem_pool *p = atomic_load_explicit(&f->heap, memory_order_relaxed)->pool;
  HOLD_LOCK(&p->lock);
  tcache_flush(f, TCACHE_ROOM - TCACHE_ROOM / 64); /* little by little: nobody waits long for it */
  return WEIR_OK;
}

static __attribute__((noinline)) weir_status not_ours(void *ptr, block_id id, bool host)
{
  if (device_forked()) return WEIR_ECUDA;
  if (id && block_state(block(id)) == BLOCK_LIVE && host != is_host(block(id)))
    return fail_invalid("%p is %s memory: free it with %s()", ptr, host ? "device" : "pinned host",
                        host ? "weir_free" : "weir_pinned_free");
  if (id) return fail_invalid("the block at %p has been freed before", ptr);
  return fail_invalid("%p is not the start of a block of this allocator", ptr);
}

/* The freeing thread's own count of the heap, or the block's owner's where it has none: sums over
 * all thread caches of a heap are right either way, and only owners write. */
static __attribute__((noinline)) weir_status free_remote(thread_cache *owner, block_id id)
{
  mem_heap *h = heap_table[block(id)->heap];
  thread_cache *f = tcache_of(h);
  if (!f || !tcache_enter(f)) return weir_tcache_free_slow(id);
  mem_block *b = block(id);
  if (b->uses) { /* looked at inside: whoever pauses blocks stops all thread caches */
    tcache_leave(f);
    return weir_tcache_free_slow(id);
  }
  (void)count_cache_free(f, b, b->class);
  tcache_shift_room(f, -(int64_t)(b->bytes >> UNIT_SHIFT));
  push_remote(owner, id);
  tcache_leave(f);
  return WEIR_OK;
}

/* Something else has the block, too. Two threads may free it at once; one of them gets an error. */
static __attribute__((noinline)) weir_status free_held(void *ptr, block_id id)
{
  uint8_t live = BLOCK_LIVE;
  if (!atomic_compare_exchange_strong(&block(id)->state, &live, BLOCK_REMOTE))
    return not_ours(ptr, id, is_host(block(id)));
  return weir_tcache_free_slow(id);
}

/* Into the bin of this thread's own thread cache, in which it is. */
static inline weir_status free_own(thread_cache *f, block_id id, unsigned class)
{
  mem_block *b = block(id);
  if (__builtin_expect(b->uses != 0, 0)) {
    tcache_leave(f);
    return free_held((void *)b->address, id);
  }
  block_set(b, BLOCK_CACHED);
  int64_t live = count_cache_free(f, b, class);
  tcache_put(f, id, class);
  bool full = live_units(live) < f->least;
  tcache_leave(f);
  return __builtin_expect(full, 0) ? overflow(f) : WEIR_OK;
}

/* Whatever is not the plain case of tcache_free(). */
static __attribute__((noinline)) weir_status free_other(void *ptr, bool host)
{
  block_id id = page_map_find((uint64_t)ptr);
  mem_block *b = block(id);
  uint8_t live = BLOCK_LIVE;
  if (!id || block_state(b) != BLOCK_LIVE || host != is_host(b)) return not_ours(ptr, id, host);
  thread_cache *f =
      b->tcache ? atomic_load_explicit(&tcache_table[b->tcache], memory_order_relaxed) : NULL;
  if (f && tcache_thread_mine &&
      atomic_load_explicit(&f->owner, memory_order_relaxed) == tcache_thread_mine) {
    tcache_thread_mine->recent[host] = f;
    if (tcache_enter(f)) return free_own(f, id, b->class);
  }
  /* Two threads may free the same block at once; one of them gets an error. */
  if (!atomic_compare_exchange_strong(&b->state, &live, BLOCK_REMOTE))
    return not_ours(ptr, id, host);
  return f ? free_remote(f, id) : weir_tcache_free_slow(id);
}

/* The plain case: the block came through the thread cache this thread freed to last. That it is
 * this one is a guess that the block's record confirms, so nothing waits for the record to come
 * from memory. */
static inline __attribute__((always_inline)) weir_status tcache_free(void *ptr, bool host)
{
  uint64_t entry = map_look((uint64_t)ptr);
  block_id id = map_block(entry);
  mem_block *b = block(id);
  tcache_thread *t = tcache_thread_mine;
  if (__builtin_expect(!id || !t, 0)) return free_other(ptr, host);
  thread_cache *f = t->recent[host];
  if (__builtin_expect(b->tcache == f->number && block_state(b) == BLOCK_LIVE &&
                           atomic_load_explicit(&f->owner, memory_order_relaxed) == t,
                       1) &&
      __builtin_expect(tcache_enter(f), 1))
    return free_own(f, id, map_class(entry));
  return free_other(ptr, host);
}

weir_status weir_tcache_free(void *ptr)
{
  return tcache_free(ptr, false);
}

weir_status weir_tcache_free_host(void *ptr)
{
  return tcache_free(ptr, true);
}
