/* thread_cache.c: the hit path: what a thread keeps of a stream's blocks, by size class.
 *
 * malloc takes a block of the class from the front's bin, free puts it back there: no lock, no
 * system call, no atomic read-modify-write. A free on another thread than the one the block came
 * through pushes it onto that front's remote list (one compare-and-swap), which the owner takes
 * whole when a bin is empty.
 *
 * What a hit costs is the way from the pointer to the block and back to the next pointer: one load
 * of the page map, one of the record, and a few words of the front, in one cache line and one of
 * the class. A pair counts `live`, `served` and the bytes asked for; all other figures follow from
 * these when somebody asks (stats.c). What is not plain leaves by a jump to a function of its own,
 * so that the plain case saves no registers. Among a million blocks the two loads are misses of
 * every cache, and they are all a free waits for.
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
#include "core/base/compiler.h"
#include "core/backend/plugin.h"
#include "core/memory/history.h"

enum { FRONT_ROOM = 16 << 20 };       /* bytes a front keeps at most */
#define UNITS_SHIFT (64 - LIVE_SHIFT) /* of live_units() */

weir_heap *_Atomic weir_heaps[HEAPS];
weir_front *_Atomic weir_fronts[FRONTS];

static weir_front nobody = {.number = UINT32_MAX}; /* no block's */
static __thread weir_thread *mine __attribute__((tls_model("initial-exec")));
static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* of the fronts' numbers */
static uint32_t front_count = 1;
static bool fence_needed;

#if WEIR_TSAN
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
#if !WEIR_TSAN
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
#if !WEIR_TSAN
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

/* Units come to the bins, or leave them, otherwise than by the owner's malloc and free. */
static inline void shift_room(weir_front *f, int64_t units)
{
  f->least += (int64_t)((uint64_t)units << UNITS_SHIFT);
}

static uint64_t cached_bytes(const weir_front *f)
{
  return (uint64_t)((f->least - live_units(get(&f->live))) >> (UNITS_SHIFT - UNIT_SHIFT)) +
         FRONT_ROOM;
}

static inline void put(weir_front *f, block_id id, unsigned class)
{
  block(id)->next = f->bins[class].head;
  f->bins[class].head = id;
}

static inline void count_malloc(weir_front *f, weir_block *b, unsigned class, uint64_t bytes)
{
  _Atomic uint64_t *served = &f->bins[class].served;
  b->requested = bytes;
  b->when = weir_tag_now;
  atomic_store_explicit(served, atomic_load_explicit(served, memory_order_relaxed) + 1,
                        memory_order_relaxed);
  set(&f->requested_in, get(&f->requested_in) + (int64_t)bytes);
  int64_t live = get(&f->live) + weir_class_live[class];
  set(&f->live, live);
  if (__builtin_expect(live_units(live) > get(&f->high), 0)) set(&f->high, live_units(live));
}

static inline int64_t count_free(weir_front *f, const weir_block *b, unsigned class)
{
  int64_t live = get(&f->live) - weir_class_live[class];
  set(&f->live, live);
  set(&f->requested_out, get(&f->requested_out) + (int64_t)b->requested);
  return live;
}

static void take_remote(weir_front *f)
{
  if (!atomic_load_explicit(&f->remote, memory_order_relaxed)) return;
  block_id id = atomic_exchange_explicit(&f->remote, 0, memory_order_acquire);
  for (block_id next; id; id = next) {
    weir_block *b = block(id);
    next = b->next;
    block_set(b, BLOCK_CACHED);
    put(f, id, b->class);
    shift_room(f, (int64_t)(b->bytes >> UNIT_SHIFT));
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
  for (int i = 0; i < CLASSES && cached_bytes(f) > keep; i++) {
    unsigned c = f->turn = (f->turn ? f->turn : CLASSES) - 1;
    while (f->bins[c].head && cached_bytes(f) > keep) {
      block_id id = f->bins[c].head;
      f->bins[c].head = block(id)->next;
      shift_room(f, -(int64_t)(block(id)->bytes >> UNIT_SHIFT));
      weir_pool_release(id);
    }
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
  t->recent[false] = t->recent[true] = &nobody;
  return mine = t;
}

void weir_front_forget(void)
{
  if (mine) (void)pthread_setspecific(ended, NULL);
  mine = NULL;
}

/* Whether a front stays stopped: its stream's requests go elsewhere. Lock held. */
static bool diverted(const weir_front *f)
{
  const weir_heap *h = atomic_load_explicit((weir_heap * _Atomic *)&f->heap, memory_order_relaxed);
  return h->diverted || h->pool->diverted;
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
    atomic_store(&f->stop, diverted(f));
    f->least = -((int64_t)(FRONT_ROOM >> UNIT_SHIFT) << UNITS_SHIFT);
    f->next = h->pool->fronts;
    h->pool->fronts = f;
    h->pool->front_count++;
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

/* The thread's front of the heap where it was used lately; NULL: it has none, or must look. */
static inline weir_front *front_seen(const weir_heap *h)
{
  weir_front *f = mine ? mine->slots[h->number % THREAD_SLOTS] : NULL;
  if (__builtin_expect(f && atomic_load_explicit(&f->heap, memory_order_relaxed) == h &&
                           atomic_load_explicit(&f->owner, memory_order_relaxed) == mine,
                       1))
    return f;
  return NULL;
}

static weir_front *front_of(weir_heap *h)
{
  weir_front *f = front_seen(h);
  return f ? f : front_find(h);
}

/* ---- malloc -----------------------------------------------------------------------------------
 */

static inline bool by_front(const weir_heap *h, uint64_t bytes)
{
  return bytes <= CLASS_LIMIT && h->by_front;
}

static inline bool hit(weir_front *f, const _Atomic uint8_t *class_of, uint64_t bytes, void **out)
{
  unsigned class =
      atomic_load_explicit(&class_of[(bytes + UNIT - 1) >> UNIT_SHIFT], memory_order_relaxed);
  block_id id = f->bins[class].head;
  if (__builtin_expect(!id, 0)) return false;
  weir_block *b = block(id);
  *out = (void *)b->address;
  f->bins[class].head = b->next;
  block_set(b, BLOCK_LIVE);
  count_malloc(f, b, class, bytes);
  return true;
}

/* History knows the names of these two: it leaves them out of stacks. */
static __attribute__((noinline)) weir_status
weir_front_miss(weir_heap *h, const _Atomic uint8_t *class_of, uint64_t bytes, void **out)
{
  weir_front *f = by_front(h, bytes) ? front_of(h) : NULL;
  if (f && enter(f)) {
    take_remote(f);
    bool now = hit(f, class_of, bytes, out);
    leave(f);
    if (now) return WEIR_OK;
  }
  uint64_t before = weir_history_enter(h->pool, false);
  pthread_mutex_lock(&h->pool->lock);
  weir_front *own = f ? f : front_seen(h);
  weir_pool_peak(h->pool, own);
  if (own) set(&own->high, live_units(get(&own->live)));
  weir_status st = weir_pool_alloc_slow(h, bytes, f, out);
  if (!st) {
    weir_block *b = block(weir_page_map_find((uint64_t)*out));
    if (f && b->front) {
      shift_room(f, (int64_t)(b->bytes >> UNIT_SHIFT));
      count_malloc(f, b, b->class, bytes);
    }
  }
  weir_pool_peak(h->pool, own);
  pthread_mutex_unlock(&h->pool->lock);
  weir_history_leave(before);
  return st;
}

static inline weir_status front_malloc(weir_heap *h, const _Atomic uint8_t *class_of,
                                       uint64_t bytes, void **out)
{
  weir_front *f = __builtin_expect(by_front(h, bytes), 1) ? front_seen(h) : NULL;
  if (__builtin_expect(f && enter(f), 1)) {
    bool now = hit(f, class_of, bytes, out);
    leave(f);
    if (__builtin_expect(now, 1)) return WEIR_OK;
  }
  return weir_front_miss(h, class_of, bytes, out);
}

weir_status weir_front_malloc(weir_heap *h, uint64_t bytes, void **out)
{
  return front_malloc(h, weir_class_of, bytes, out);
}

weir_status weir_front_malloc_host(weir_heap *h, uint64_t bytes, void **out)
{
  return front_malloc(h, weir_host_class_of, bytes, out);
}

/* ---- free -------------------------------------------------------------------------------------
 */

static inline bool is_host(const weir_block *b)
{
  return b->heap >= HOST_HEAPS;
}

/* A block of a front's that is freed where no front can count it. Lock held. */
static void count_gone(weir_pool *p, const weir_block *b)
{
  p->gone.live -= weir_class_live[b->class];
  p->gone.requested_out += (int64_t)b->requested;
}

/* Other streams use it: it waits for them. Lock held. */
static void suspend(weir_pool *p, block_id id)
{
  weir_block *b = block(id);
  weir_heap *own = weir_heaps[b->heap]->clock;
  weir_pool_leave_front(p, b);
  block_set(b, BLOCK_PENDING);
  if (!p->host) b->stamp = own->dirty = own->epoch;
  for (block_id u = b->uses; u; u = block(u)->next)
    if (block(u)->class == USE_STREAM) weir_epoch_use(p, u);
  b->next = p->pending;
  p->pending = id;
  weir_pool_count_pending(p, b, 1);
  p->unmarked += b->bytes;
}

static bool waits(const weir_block *b)
{
  block_id u = b->uses;
  while (u && block(u)->class == USE_PAUSE)
    u = block(u)->next;
  return u != 0;
}

/* A block other streams use, one that passes by the fronts, or one no front will take. */
static __attribute__((noinline)) weir_status weir_front_free_slow(block_id id)
{
  weir_block *b = block(id);
  weir_pool *p = weir_heaps[b->heap]->pool;
  uint64_t before = weir_history_enter(p, true);
  pthread_mutex_lock(&p->lock);
  weir_pool_peak(p, NULL);
  weir_history_free(p, id, false);
  if (b->front)
    count_gone(p, b);
  else
    weir_pool_count_live(p, b, -1);
  if (waits(b)) {
    suspend(p, id);
  } else {
    weir_history_free(p, id, true);
    weir_pool_release(id);
  }
  weir_epoch_breathe(p);
  pthread_mutex_unlock(&p->lock);
  weir_history_leave(before);
  return WEIR_OK;
}

static __attribute__((noinline)) weir_status overflow(weir_front *f)
{
  weir_pool *p = atomic_load_explicit(&f->heap, memory_order_relaxed)->pool;
  pthread_mutex_lock(&p->lock);
  flush(f, FRONT_ROOM - FRONT_ROOM / 64); /* little by little: nobody waits long for it */
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

static __attribute__((noinline)) weir_status not_ours(void *ptr, block_id id, bool host)
{
  if (weir_device_forked()) return WEIR_ECUDA;
  if (id && block_state(block(id)) == BLOCK_LIVE && host != is_host(block(id)))
    return weir_fail(WEIR_EINVAL, "%p is %s memory: free it with %s()", ptr,
                     host ? "device" : "pinned host", host ? "weir_free" : "weir_pinned_free");
  if (id) return weir_fail(WEIR_EINVAL, "the block at %p has been freed before", ptr);
  return weir_fail(WEIR_EINVAL, "%p is not the start of a block of this allocator", ptr);
}

/* The freeing thread's own count of the heap, or the block's owner's where it has none: sums over
 * all fronts of a heap are right either way, and only owners write. */
static __attribute__((noinline)) weir_status free_remote(weir_front *owner, block_id id)
{
  weir_heap *h = weir_heaps[block(id)->heap];
  weir_front *f = front_of(h);
  if (!f || !enter(f)) return weir_front_free_slow(id);
  weir_block *b = block(id);
  if (b->uses) { /* looked at inside: whoever pauses blocks stops all fronts */
    leave(f);
    return weir_front_free_slow(id);
  }
  (void)count_free(f, b, b->class);
  shift_room(f, -(int64_t)(b->bytes >> UNIT_SHIFT));
  push_remote(owner, id);
  leave(f);
  return WEIR_OK;
}

/* Something else has the block, too. Two threads may free it at once; one of them is told. */
static __attribute__((noinline)) weir_status free_held(void *ptr, block_id id)
{
  uint8_t live = BLOCK_LIVE;
  if (!atomic_compare_exchange_strong(&block(id)->state, &live, BLOCK_REMOTE))
    return not_ours(ptr, id, is_host(block(id)));
  return weir_front_free_slow(id);
}

/* Into the bin of this thread's own front, in which it is. */
static inline weir_status free_own(weir_front *f, block_id id, unsigned class)
{
  weir_block *b = block(id);
  if (__builtin_expect(b->uses != 0, 0)) {
    leave(f);
    return free_held((void *)b->address, id);
  }
  block_set(b, BLOCK_CACHED);
  int64_t live = count_free(f, b, class);
  put(f, id, class);
  bool full = live_units(live) < f->least;
  leave(f);
  return __builtin_expect(full, 0) ? overflow(f) : WEIR_OK;
}

/* Whatever is not the plain case of front_free(). */
static __attribute__((noinline)) weir_status free_other(void *ptr, bool host)
{
  block_id id = weir_page_map_find((uint64_t)ptr);
  weir_block *b = block(id);
  uint8_t live = BLOCK_LIVE;
  if (!id || block_state(b) != BLOCK_LIVE || host != is_host(b)) return not_ours(ptr, id, host);
  weir_front *f =
      b->front ? atomic_load_explicit(&weir_fronts[b->front], memory_order_relaxed) : NULL;
  if (f && mine && atomic_load_explicit(&f->owner, memory_order_relaxed) == mine) {
    mine->recent[host] = f;
    if (enter(f)) return free_own(f, id, b->class);
  }
  /* Two threads may free the same block at once; one of them is told. */
  if (!atomic_compare_exchange_strong(&b->state, &live, BLOCK_REMOTE))
    return not_ours(ptr, id, host);
  return f ? free_remote(f, id) : weir_front_free_slow(id);
}

/* The plain case: the block came through the front this thread freed to last. That it is this one
 * is a guess that the block's record confirms, so nothing waits for the record to come from memory.
 */
static inline __attribute__((always_inline)) weir_status front_free(void *ptr, bool host)
{
  uint64_t entry = map_look((uint64_t)ptr);
  block_id id = map_block(entry);
  weir_block *b = block(id);
  weir_thread *t = mine;
  if (__builtin_expect(!id || !t, 0)) return free_other(ptr, host);
  weir_front *f = t->recent[host];
  if (__builtin_expect(b->front == f->number && block_state(b) == BLOCK_LIVE &&
                           atomic_load_explicit(&f->owner, memory_order_relaxed) == t,
                       1) &&
      __builtin_expect(enter(f), 1))
    return free_own(f, id, map_class(entry));
  return free_other(ptr, host);
}

weir_status weir_front_free(void *ptr)
{
  return front_free(ptr, false);
}

weir_status weir_front_free_host(void *ptr)
{
  return front_free(ptr, true);
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
    atomic_store(&f->stop, diverted(f));
}

void weir_front_divert(weir_pool *p, weir_heap *h, int by)
{
  weir_front_freeze(p);
  if (h)
    h->diverted += (unsigned)by;
  else
    p->diverted += (unsigned)by;
  weir_front_thaw(p);
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
    set(&f->high, live_units(get(&f->live)));
  weir_front_thaw(p);
}

void weir_front_detach(weir_pool *p)
{
  pthread_mutex_lock(&list_lock);
  while (p->fronts) {
    weir_front *f = p->fronts;
    p->fronts = f->next;
    f->next = NULL;
    f->seen = (weir_tally){0};
    set(&f->live, 0);
    set(&f->requested_in, 0);
    set(&f->requested_out, 0);
    set(&f->high, 0);
    for (int c = 0; c < CLASSES; c++)
      f->bins[c] = (weir_bin){0};
    atomic_store(&f->owner, NULL);
    atomic_store(&f->heap, NULL);
  }
  pthread_mutex_unlock(&list_lock);
}
