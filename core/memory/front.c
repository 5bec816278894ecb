/* front.c: the hit path: what a thread keeps of a stream's blocks, by size class.
 *
 * malloc takes a block of the class from the front's bin, free puts it back there: no lock, no
 * system call, no atomic read-modify-write. A free on another thread than the one the block came
 * through pushes it onto that front's remote list (one compare-and-swap), which the owner takes
 * whole when a bin is empty.
 *
 * Stopping. A front is its thread's alone, but whoever runs out of memory needs what idle threads
 * keep. The owner stores `busy`, then reads `stop`; the reclaimer stores `stop`, then reads `busy`.
 * One of them must see the other: the expensive half of that, a barrier on every processor that
 * runs the process, is the reclaimer's (membarrier), and the owner's half is two plain stores.
 * Where the kernel has no membarrier the owner pays for a fence.
 */
#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/memory/pool.h"

enum { FRONT_ROOM = 16 << 20 }; /* bytes a front keeps at most */

weir_heap *_Atomic weir_heaps[HEAPS];
weir_front *_Atomic weir_fronts[FRONTS];
__thread uint32_t weir_tag_now;

static __thread weir_thread *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* of the fronts' numbers */
static uint32_t front_count = 1;
static bool fence_needed;

#if defined(__SANITIZE_THREAD__)
#define ORDER_FIRST memory_order_seq_cst /* membarrier is nothing a race detector knows */
#else
#define ORDER_FIRST memory_order_relaxed
#endif

/* ---- entering ---------------------------------------------------------------------------------
 */

static inline void leave(weir_front *f)
{
  atomic_store_explicit(&f->busy, false, memory_order_release);
}

static inline bool enter(weir_front *f)
{
  atomic_store_explicit(&f->busy, true, ORDER_FIRST);
  atomic_signal_fence(memory_order_seq_cst);
#if !defined(__SANITIZE_THREAD__)
  if (__builtin_expect(fence_needed, 0)) atomic_thread_fence(memory_order_seq_cst);
  if (__builtin_expect(!atomic_load_explicit(&f->stop, memory_order_acquire), 1)) return true;
#else
  if (!atomic_load(&f->stop)) return true;
#endif
  leave(f);
  return false;
}

static void barrier(void)
{
#if !defined(__SANITIZE_THREAD__)
  if (!fence_needed) (void)syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
#endif
  atomic_signal_fence(memory_order_seq_cst);
}

/* Lock held: nobody but the owner is in the front, and the owner not until start(). */
static void stop(weir_front *f)
{
  while (atomic_load_explicit(&f->busy, memory_order_acquire))
    sched_yield();
}

static inline int64_t get(const _Atomic int64_t *n)
{
  return atomic_load_explicit((_Atomic int64_t *)n, memory_order_relaxed);
}

static inline void set(_Atomic int64_t *n, int64_t value)
{
  atomic_store_explicit(n, value, memory_order_relaxed);
}

/* ---- blocks in and out ------------------------------------------------------------------------
 */

static inline void put(weir_front *f, block_id id)
{
  weir_block *b = block(id);
  b->next = f->bins[b->class];
  f->bins[b->class] = id;
  f->cached += b->bytes;
}

static inline void count_malloc(weir_front *f, weir_block *b, uint64_t bytes)
{
  int64_t all = get(&f->allocated_bytes) + (int64_t)b->bytes;
  int64_t live = all - get(&f->freed_bytes);
  b->requested = bytes;
  b->when = weir_tag_now;
  set(&f->allocated_bytes, all);
  set(&f->allocated, get(&f->allocated) + 1);
  set(&f->requested, get(&f->requested) + (int64_t)bytes);
  if (live > get(&f->high)) set(&f->high, live);
}

static inline void count_free(weir_front *f, const weir_block *b)
{
  set(&f->freed_bytes, get(&f->freed_bytes) + (int64_t)b->bytes);
  set(&f->freed, get(&f->freed) + 1);
  set(&f->requested, get(&f->requested) - (int64_t)b->requested);
}

static void take_remote(weir_front *f)
{
  if (!atomic_load_explicit(&f->remote, memory_order_relaxed)) return;
  block_id id = atomic_exchange_explicit(&f->remote, 0, memory_order_acquire);
  for (block_id next; id; id = next) {
    next = block(id)->next;
    block_set(block(id), BLOCK_CACHED);
    put(f, id);
  }
}

static void push_remote(weir_front *f, block_id id)
{
  block_id head = atomic_load_explicit(&f->remote, memory_order_relaxed);
  do
    block(id)->next = head;
  while (!atomic_compare_exchange_weak_explicit(&f->remote, &head, id, memory_order_release,
                                                memory_order_relaxed));
}

/* Gives cached blocks back to the heap until at most `keep` bytes are left. Lock held, and in the
 * front alone. */
static void flush(weir_front *f, uint64_t keep)
{
  take_remote(f);
  for (int c = CLASSES - 1; c >= 0 && f->cached > keep; c--)
    while (f->bins[c] && f->cached > keep) {
      block_id id = f->bins[c];
      f->bins[c] = block(id)->next;
      f->cached -= block(id)->bytes;
      weir_pool_release(id);
    }
}

/* ---- threads ----------------------------------------------------------------------------------
 */

static void end_thread(void *thread)
{
  for (uint32_t i = 1;; i++) {
    pthread_mutex_lock(&list_lock);
    bool over = i >= front_count;
    pthread_mutex_unlock(&list_lock);
    if (over) break;
    weir_front *f = atomic_load(&weir_fronts[i]);
    if (!f || atomic_load(&f->owner) != thread) continue;
    weir_heap *h = atomic_load(&f->heap);
    if (h) {
      pthread_mutex_lock(&h->pool->lock);
      flush(f, 0);
      atomic_store(&f->owner, NULL);
      pthread_mutex_unlock(&h->pool->lock);
    }
  }
  free(thread);
  if (mine == thread) mine = NULL;
}

static void prepare(void)
{
  (void)pthread_key_create(&ended, end_thread);
  fence_needed = syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

weir_thread *weir_thread_switch(weir_thread *to)
{
  weir_thread *from = mine;
  pthread_once(&once, prepare);
  (void)pthread_setspecific(ended, mine = to);
  return from;
}

void weir_thread_end(weir_thread *thread)
{
  if (thread) end_thread(thread);
}

static weir_thread *thread_make(void)
{
  pthread_once(&once, prepare);
  weir_thread *t = calloc(1, sizeof *t);
  if (!t || pthread_setspecific(ended, t)) {
    free(t);
    return NULL;
  }
  return mine = t;
}

/* A front of the heap whose thread has ended, or a new one. Lock held. NULL: no memory. */
static weir_front *front_make(weir_heap *h)
{
  for (weir_front *f = h->pool->fronts; f; f = f->next)
    if (atomic_load(&f->heap) == h && !atomic_load(&f->owner)) return f;
  weir_front *f = NULL;
  pthread_mutex_lock(&list_lock);
  for (uint32_t i = 1; i < front_count && !f; i++) {
    f = atomic_load(&weir_fronts[i]);
    if (atomic_load(&f->heap)) f = NULL;
  }
  if (!f && front_count < FRONTS && (f = aligned_alloc(64, (sizeof *f + 63) & ~63ul))) {
    *f = (weir_front){.number = front_count};
    atomic_store(&weir_fronts[front_count++], f);
  }
  if (f) {
    atomic_store(&f->heap, h);
    f->room = FRONT_ROOM;
    f->next = h->pool->fronts;
    h->pool->fronts = f;
  }
  pthread_mutex_unlock(&list_lock);
  return f;
}

static weir_front *front_find(weir_heap *h)
{
  weir_thread *t = mine ? mine : thread_make();
  if (!t) return NULL;
  pthread_mutex_lock(&h->pool->lock);
  weir_front *f = h->pool->fronts;
  while (f && (atomic_load(&f->heap) != h || atomic_load(&f->owner) != t))
    f = f->next;
  if (!f && (f = front_make(h))) atomic_store(&f->owner, t);
  pthread_mutex_unlock(&h->pool->lock);
  if (f) t->slots[h->number % THREAD_SLOTS] = f;
  return f;
}

static inline weir_front *front_of(weir_heap *h)
{
  weir_front *f = mine ? mine->slots[h->number % THREAD_SLOTS] : NULL;
  if (__builtin_expect(f && atomic_load_explicit(&f->heap, memory_order_relaxed) == h &&
                           atomic_load_explicit(&f->owner, memory_order_relaxed) == mine,
                       1))
    return f;
  return front_find(h);
}

/* ---- malloc and free --------------------------------------------------------------------------
 */

static inline bool hit(weir_front *f, unsigned class, uint64_t bytes, void **out)
{
  block_id id = f->bins[class];
  if (!id) return false;
  weir_block *b = block(id);
  f->bins[class] = b->next;
  f->cached -= b->bytes;
  block_set(b, BLOCK_LIVE);
  count_malloc(f, b, bytes);
  *out = (void *)b->address;
  return true;
}

static __attribute__((noinline)) weir_status miss(weir_heap *h, weir_front *f, uint64_t bytes,
                                                  void **out)
{
  if (f && enter(f)) {
    take_remote(f);
    bool now = hit(f, weir_class_of[(bytes + UNIT - 1) >> UNIT_SHIFT], bytes, out);
    leave(f);
    if (now) return WEIR_OK;
  }
  pthread_mutex_lock(&h->pool->lock);
  weir_status st = weir_pool_alloc_slow(h, bytes, f, out);
  if (f) set(&f->high, get(&f->allocated_bytes) - get(&f->freed_bytes));
  if (!st) {
    weir_block *b = block(weir_page_map_find((uint64_t)*out));
    if (b->front) count_malloc(f, b, bytes);
  }
  pthread_mutex_unlock(&h->pool->lock);
  return st;
}

weir_status weir_front_malloc(weir_heap *h, uint64_t bytes, void **out)
{
  weir_front *f = NULL;
  if (__builtin_expect(bytes <= CLASS_LIMIT && h->by_front, 1)) {
    f = front_of(h);
    if (__builtin_expect(f && enter(f), 1)) {
      bool now = hit(f, weir_class_of[(bytes + UNIT - 1) >> UNIT_SHIFT], bytes, out);
      leave(f);
      if (__builtin_expect(now, 1)) return WEIR_OK;
    }
  }
  return miss(h, f, bytes, out);
}

static void free_large(weir_pool *p, block_id id)
{
  weir_block *b = block(id);
  stat_add(&p->large_bytes, -(int64_t)b->bytes);
  stat_add(&p->large_blocks, -1);
  p->large_requested -= (int64_t)b->requested;
}

/* A block other streams use, one that passes by the fronts, or a front that is full or stopped. */
static __attribute__((noinline)) weir_status free_slow(block_id id)
{
  weir_block *b = block(id);
  weir_pool *p = weir_heaps[b->heap]->pool;
  pthread_mutex_lock(&p->lock);
  weir_pool_peak(p);
  if (!b->front) free_large(p, id);
  if (b->uses) {
    weir_heap *own = weir_heaps[b->heap];
    block_set(b, BLOCK_PENDING);
    b->stamp = own->dirty = own->epoch;
    for (block_id u = b->uses; u; u = block(u)->next) {
      weir_heap *h = weir_heaps[block(u)->heap];
      block(u)->stamp = h->dirty = h->epoch;
    }
    b->next = p->pending;
    p->pending = id;
    p->pending_blocks++;
    p->pending_bytes += (int64_t)b->bytes;
    p->unmarked += b->bytes;
  } else {
    weir_pool_release(id);
  }
  weir_epoch_breathe(p);
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

static __attribute__((noinline)) void overflow(weir_front *f)
{
  weir_pool *p = atomic_load_explicit(&f->heap, memory_order_relaxed)->pool;
  pthread_mutex_lock(&p->lock);
  flush(f, f->room - f->room / 64); /* little by little: nobody waits long for it */
  pthread_mutex_unlock(&p->lock);
}

static __attribute__((noinline)) weir_status not_ours(void *ptr, block_id id)
{
  if (id) return weir_fail(WEIR_EINVAL, "the block at %p has been freed before", ptr);
  return weir_fail(WEIR_EINVAL, "%p is not the start of a block of this allocator", ptr);
}

/* The freeing thread's own count of the heap, or the block's owner's where it has none: sums over
 * all fronts of a heap are right either way, and only owners write. */
static __attribute__((noinline)) weir_status free_remote(weir_front *owner, block_id id)
{
  weir_heap *h = weir_heaps[block(id)->heap];
  weir_front *f = front_of(h);
  if (!f || !enter(f)) {
    weir_pool *p = h->pool;
    pthread_mutex_lock(&p->lock);
    p->gone_freed_bytes += (int64_t)block(id)->bytes;
    p->gone_freed++;
    p->gone_requested -= (int64_t)block(id)->requested;
    weir_pool_release(id);
    pthread_mutex_unlock(&p->lock);
    return WEIR_OK;
  }
  count_free(f, block(id));
  push_remote(owner, id);
  leave(f);
  return WEIR_OK;
}

weir_status weir_front_free(void *ptr)
{
  block_id id = weir_page_map_find((uint64_t)ptr);
  weir_block *b = block(id);
  uint8_t live = BLOCK_LIVE;
  if (__builtin_expect(!id || block_state(b) != BLOCK_LIVE, 0)) return not_ours(ptr, id);
  weir_front *f =
      b->front ? atomic_load_explicit(&weir_fronts[b->front], memory_order_relaxed) : NULL;
  bool own = f && mine && atomic_load_explicit(&f->owner, memory_order_relaxed) == mine;
  if (__builtin_expect(own && !b->uses, 1) && __builtin_expect(enter(f), 1)) {
    block_set(b, BLOCK_CACHED);
    count_free(f, b);
    put(f, id);
    bool full = f->cached > f->room;
    leave(f);
    if (__builtin_expect(full, 0)) overflow(f);
    return WEIR_OK;
  }
  /* Two threads may free the same block at once; one of them is told. */
  if (!atomic_compare_exchange_strong(&b->state, &live, BLOCK_REMOTE)) return not_ours(ptr, id);
  if (f && !b->uses) return free_remote(f, id);
  if (f) {
    pthread_mutex_lock(&weir_heaps[b->heap]->pool->lock);
    weir_heaps[b->heap]->pool->gone_freed_bytes += (int64_t)b->bytes;
    weir_heaps[b->heap]->pool->gone_freed++;
    weir_heaps[b->heap]->pool->gone_requested -= (int64_t)b->requested;
    pthread_mutex_unlock(&weir_heaps[b->heap]->pool->lock);
  }
  return free_slow(id);
}

/* ---- reclaiming -------------------------------------------------------------------------------
 */

void weir_front_freeze(weir_pool *p)
{
  for (weir_front *f = p->fronts; f; f = f->next)
    atomic_store(&f->stop, true);
  barrier();
  for (weir_front *f = p->fronts; f; f = f->next)
    stop(f);
}

void weir_front_thaw(weir_pool *p)
{
  for (weir_front *f = p->fronts; f; f = f->next)
    atomic_store(&f->stop, false);
}

void weir_front_reclaim(weir_pool *p)
{
  weir_front_freeze(p);
  for (weir_front *f = p->fronts; f; f = f->next)
    flush(f, 0);
  weir_front_thaw(p);
}

void weir_front_reset_high(weir_pool *p)
{
  weir_front_freeze(p);
  for (weir_front *f = p->fronts; f; f = f->next)
    set(&f->high, get(&f->allocated_bytes) - get(&f->freed_bytes));
  weir_front_thaw(p);
}

void weir_front_detach(weir_pool *p)
{
  pthread_mutex_lock(&list_lock);
  while (p->fronts) {
    weir_front *f = p->fronts;
    p->fronts = f->next;
    f->next = NULL;
    set(&f->allocated_bytes, 0);
    set(&f->freed_bytes, 0);
    set(&f->allocated, 0);
    set(&f->freed, 0);
    set(&f->requested, 0);
    set(&f->high, 0);
    atomic_store(&f->owner, NULL);
    atomic_store(&f->heap, NULL);
  }
  pthread_mutex_unlock(&list_lock);
}
