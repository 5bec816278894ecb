/* threads.c: threads and the caches they own: made at a thread's first use, emptied at its end,
 * stopped and emptied by whoever runs out of memory.
 *
 * Stopping. A thread cache is its thread's alone, but whoever runs out of memory needs what idle
 * threads keep. The owner stores `busy`, then reads `stop`; the reclaimer stores `stop`, then reads
 * `busy`. One of them must see the other: the expensive half of that, a barrier on every processor
 * that runs the process, is the reclaimer's (membarrier), and the owner's half is two plain stores.
 * Where the kernel has no membarrier the owner pays for a fence. */
#include "core/memory/thread_cache.h"
#include "core/base/lock.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

thread_cache *_Atomic tcache_table[TCACHES];
__thread tcache_thread *tcache_thread_mine __attribute__((tls_model("initial-exec")));
bool tcache_fence_needed;

static thread_cache no_tcache = {.number = UINT32_MAX}; /* no block's */
static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* of the thread caches' numbers */
static uint32_t tcache_count = 1;

static uint64_t cached_bytes(const thread_cache *f)
{
  return (uint64_t)((f->least - live_units(tcache_get(&f->live))) >> (UNITS_SHIFT - UNIT_SHIFT)) +
         TCACHE_ROOM;
}

void tcache_flush(thread_cache *f, uint64_t keep)
{
  tcache_take_remote(f);
  for (int i = 0; i < CLASSES && cached_bytes(f) > keep; i++) {
    unsigned c = f->turn = (f->turn ? f->turn : CLASSES) - 1;
    while (f->bins[c].head && cached_bytes(f) > keep) {
      block_id id = f->bins[c].head;
      f->bins[c].head = block(id)->next;
      tcache_shift_room(f, -(int64_t)(block(id)->bytes >> UNIT_SHIFT));
      pool_release(id);
    }
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void end_pool_thread(void *thread)
{
  for (uint32_t i = 1;; i++) {
    pthread_mutex_lock(&list_lock);
    bool over = i >= tcache_count;
    pthread_mutex_unlock(&list_lock);
    if (over) break;
    thread_cache *f = atomic_load(&tcache_table[i]);
    if (!f || atomic_load(&f->owner) != thread) continue;
    mem_heap *h = atomic_load(&f->heap);
    if (h) {
      pthread_mutex_lock(&h->pool->lock);
      tcache_flush(f, 0);
      atomic_store(&f->owner, NULL);
      pthread_mutex_unlock(&h->pool->lock);
    }
  }
  free(thread);
  if (tcache_thread_mine == thread) tcache_thread_mine = NULL;
}

static void prepare_pool_threads(void)
{
  (void)pthread_key_create(&ended, end_pool_thread);
  tcache_fence_needed =
      syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

tcache_thread *tcache_thread_switch(tcache_thread *to)
{
  tcache_thread *from = tcache_thread_mine;
  pthread_once(&once, prepare_pool_threads);
  (void)pthread_setspecific(ended, tcache_thread_mine = to);
  return from;
}

void tcache_thread_end(tcache_thread *thread)
{
  if (thread) end_pool_thread(thread);
}

static tcache_thread *thread_make(void)
{
  pthread_once(&once, prepare_pool_threads);
  tcache_thread *t = calloc(1, sizeof *t);
  if (!t || pthread_setspecific(ended, t)) {
    free(t);
    return NULL;
  }
  t->recent[false] = t->recent[true] = &no_tcache;
  return tcache_thread_mine = t;
}

void tcache_forget(void)
{
  if (tcache_thread_mine) (void)pthread_setspecific(ended, NULL);
  tcache_thread_mine = NULL;
}

/* Whether a thread cache stays stopped: its stream's requests go elsewhere. Lock held. */
static bool diverted(const thread_cache *f)
{
  const mem_heap *h = atomic_load_explicit((mem_heap * _Atomic *)&f->heap, memory_order_relaxed);
  return h->diverted || h->pool->diverted;
}

/* A thread cache of the heap whose thread has ended, or a new one. Lock held. NULL: no memory. */
static thread_cache *tcache_make(mem_heap *h)
{
  for (thread_cache *f = h->pool->tcaches; f; f = f->next)
    if (atomic_load(&f->heap) == h && !atomic_load(&f->owner)) return f;
  thread_cache *f = NULL;
  HOLD_LOCK(&list_lock);
  for (uint32_t i = 1; i < tcache_count && !f; i++) {
    f = atomic_load(&tcache_table[i]);
    if (atomic_load(&f->heap)) f = NULL;
  }
  if (!f && tcache_count < TCACHES && (f = aligned_alloc(64, (sizeof *f + 63) & ~63ul))) {
    *f = (thread_cache){.number = tcache_count};
    atomic_store(&tcache_table[tcache_count++], f);
  }
  if (f) {
    atomic_store(&f->heap, h);
    atomic_store(&f->stop, diverted(f));
    f->least = -((int64_t)(TCACHE_ROOM >> UNIT_SHIFT) << UNITS_SHIFT);
    f->next = h->pool->tcaches;
    h->pool->tcaches = f;
    h->pool->tcache_count++;
  }
  return f;
}

thread_cache *tcache_find(mem_heap *h)
{
  tcache_thread *t = tcache_thread_mine ? tcache_thread_mine : thread_make();
  if (!t) return NULL;
  pthread_mutex_lock(&h->pool->lock);
  thread_cache *f = h->pool->tcaches;
  while (f && (atomic_load(&f->heap) != h || atomic_load(&f->owner) != t))
    f = f->next;
  if (!f && (f = tcache_make(h))) atomic_store(&f->owner, t);
  pthread_mutex_unlock(&h->pool->lock);
  if (f) t->slots[h->number % THREAD_SLOTS] = f;
  return f;
}

/* ---- stopping -------------------------------------------------------------------------------- */

static void barrier(void)
{
#if !WEIR_TSAN
  if (!tcache_fence_needed) (void)syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
#endif
  atomic_signal_fence(memory_order_seq_cst);
}

/* Lock held: nobody but the owner is in the thread cache, and the owner not until start(). */
static void stop_tcache(thread_cache *f)
{
  while (atomic_load_explicit(&f->busy, memory_order_acquire))
    sched_yield();
}

void tcache_freeze(mem_pool *p)
{
  for (thread_cache *f = p->tcaches; f; f = f->next)
    atomic_store(&f->stop, true);
  barrier();
  for (thread_cache *f = p->tcaches; f; f = f->next)
    stop_tcache(f);
}

void tcache_thaw(mem_pool *p)
{
  for (thread_cache *f = p->tcaches; f; f = f->next)
    atomic_store(&f->stop, diverted(f));
}

void tcache_divert(mem_pool *p, mem_heap *h, int by)
{
  tcache_freeze(p);
  if (h)
    h->diverted += (unsigned)by;
  else
    p->diverted += (unsigned)by;
  tcache_thaw(p);
}

void tcache_reclaim(mem_pool *p)
{
  tcache_freeze(p);
  for (thread_cache *f = p->tcaches; f; f = f->next)
    tcache_flush(f, 0);
  tcache_thaw(p);
}

void tcache_reset_high(mem_pool *p)
{
  tcache_freeze(p);
  for (thread_cache *f = p->tcaches; f; f = f->next)
    tcache_set(&f->high, live_units(tcache_get(&f->live)));
  tcache_thaw(p);
}

void tcache_detach(mem_pool *p)
{
  HOLD_LOCK(&list_lock);
  while (p->tcaches) {
    thread_cache *f = p->tcaches;
    p->tcaches = f->next;
    f->next = NULL;
    f->seen = (tcache_tally){0};
    tcache_set(&f->live, 0);
    tcache_set(&f->requested_in, 0);
    tcache_set(&f->requested_out, 0);
    tcache_set(&f->high, 0);
    for (int c = 0; c < CLASSES; c++)
      f->bins[c] = (tcache_bin){0};
    atomic_store(&f->owner, NULL);
    atomic_store(&f->heap, NULL);
  }
}
