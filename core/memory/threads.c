/* threads.c: threads and the caches they own: made at a thread's first use, emptied at its end,
 * stopped and emptied by whoever runs out of memory.
 *
 * Stopping. A thread cache is its thread's alone, but whoever runs out of memory needs what idle
 * threads keep. The owner stores `busy`, then reads `stop`; the reclaimer stores `stop`, then reads
 * `busy`. One of them must see the other: the expensive half of that, a barrier on every processor
 * that runs the process, is the reclaimer's (membarrier), and the owner's half is two plain stores.
 * Where the kernel has no membarrier the owner pays for a fence. */
#include "core/memory/thread_cache.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

weir_tcache *_Atomic weir_tcaches[TCACHES];
__thread weir_thread *weir_thread_mine __attribute__((tls_model("initial-exec")));
bool weir_fence_needed;

static weir_tcache no_tcache = {.number = UINT32_MAX}; /* no block's */
static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* of the thread caches' numbers */
static uint32_t tcache_count = 1;

static uint64_t cached_bytes(const weir_tcache *f)
{
  return (uint64_t)((f->least - live_units(tcache_get(&f->live))) >> (UNITS_SHIFT - UNIT_SHIFT)) +
         TCACHE_ROOM;
}

void weir_tcache_flush(weir_tcache *f, uint64_t keep)
{
  tcache_take_remote(f);
  for (int i = 0; i < CLASSES && cached_bytes(f) > keep; i++) {
    unsigned c = f->turn = (f->turn ? f->turn : CLASSES) - 1;
    while (f->bins[c].head && cached_bytes(f) > keep) {
      block_id id = f->bins[c].head;
      f->bins[c].head = block(id)->next;
      tcache_shift_room(f, -(int64_t)(block(id)->bytes >> UNIT_SHIFT));
      weir_pool_release(id);
    }
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

static void end_thread(void *thread)
{
  for (uint32_t i = 1;; i++) {
    pthread_mutex_lock(&list_lock);
    bool over = i >= tcache_count;
    pthread_mutex_unlock(&list_lock);
    if (over) break;
    weir_tcache *f = atomic_load(&weir_tcaches[i]);
    if (!f || atomic_load(&f->owner) != thread) continue;
    weir_heap *h = atomic_load(&f->heap);
    if (h) {
      pthread_mutex_lock(&h->pool->lock);
      weir_tcache_flush(f, 0);
      atomic_store(&f->owner, NULL);
      pthread_mutex_unlock(&h->pool->lock);
    }
  }
  free(thread);
  if (weir_thread_mine == thread) weir_thread_mine = NULL;
}

static void prepare(void)
{
  (void)pthread_key_create(&ended, end_thread);
  weir_fence_needed =
      syscall(__NR_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0;
}

weir_thread *weir_thread_switch(weir_thread *to)
{
  weir_thread *from = weir_thread_mine;
  pthread_once(&once, prepare);
  (void)pthread_setspecific(ended, weir_thread_mine = to);
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
  t->recent[false] = t->recent[true] = &no_tcache;
  return weir_thread_mine = t;
}

void weir_tcache_forget(void)
{
  if (weir_thread_mine) (void)pthread_setspecific(ended, NULL);
  weir_thread_mine = NULL;
}

/* Whether a thread cache stays stopped: its stream's requests go elsewhere. Lock held. */
static bool diverted(const weir_tcache *f)
{
  const weir_heap *h = atomic_load_explicit((weir_heap * _Atomic *)&f->heap, memory_order_relaxed);
  return h->diverted || h->pool->diverted;
}

/* A thread cache of the heap whose thread has ended, or a new one. Lock held. NULL: no memory. */
static weir_tcache *tcache_make(weir_heap *h)
{
  for (weir_tcache *f = h->pool->tcaches; f; f = f->next)
    if (atomic_load(&f->heap) == h && !atomic_load(&f->owner)) return f;
  weir_tcache *f = NULL;
  pthread_mutex_lock(&list_lock);
  for (uint32_t i = 1; i < tcache_count && !f; i++) {
    f = atomic_load(&weir_tcaches[i]);
    if (atomic_load(&f->heap)) f = NULL;
  }
  if (!f && tcache_count < TCACHES && (f = aligned_alloc(64, (sizeof *f + 63) & ~63ul))) {
    *f = (weir_tcache){.number = tcache_count};
    atomic_store(&weir_tcaches[tcache_count++], f);
  }
  if (f) {
    atomic_store(&f->heap, h);
    atomic_store(&f->stop, diverted(f));
    f->least = -((int64_t)(TCACHE_ROOM >> UNIT_SHIFT) << UNITS_SHIFT);
    f->next = h->pool->tcaches;
    h->pool->tcaches = f;
    h->pool->tcache_count++;
  }
  pthread_mutex_unlock(&list_lock);
  return f;
}

weir_tcache *weir_tcache_find(weir_heap *h)
{
  weir_thread *t = weir_thread_mine ? weir_thread_mine : thread_make();
  if (!t) return NULL;
  pthread_mutex_lock(&h->pool->lock);
  weir_tcache *f = h->pool->tcaches;
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
  if (!weir_fence_needed) (void)syscall(__NR_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
#endif
  atomic_signal_fence(memory_order_seq_cst);
}

/* Lock held: nobody but the owner is in the thread cache, and the owner not until start(). */
static void stop(weir_tcache *f)
{
  while (atomic_load_explicit(&f->busy, memory_order_acquire))
    sched_yield();
}

void weir_tcache_freeze(weir_pool *p)
{
  for (weir_tcache *f = p->tcaches; f; f = f->next)
    atomic_store(&f->stop, true);
  barrier();
  for (weir_tcache *f = p->tcaches; f; f = f->next)
    stop(f);
}

void weir_tcache_thaw(weir_pool *p)
{
  for (weir_tcache *f = p->tcaches; f; f = f->next)
    atomic_store(&f->stop, diverted(f));
}

void weir_tcache_divert(weir_pool *p, weir_heap *h, int by)
{
  weir_tcache_freeze(p);
  if (h)
    h->diverted += (unsigned)by;
  else
    p->diverted += (unsigned)by;
  weir_tcache_thaw(p);
}

void weir_tcache_reclaim(weir_pool *p)
{
  weir_tcache_freeze(p);
  for (weir_tcache *f = p->tcaches; f; f = f->next)
    weir_tcache_flush(f, 0);
  weir_tcache_thaw(p);
}

void weir_tcache_reset_high(weir_pool *p)
{
  weir_tcache_freeze(p);
  for (weir_tcache *f = p->tcaches; f; f = f->next)
    tcache_set(&f->high, live_units(tcache_get(&f->live)));
  weir_tcache_thaw(p);
}

void weir_tcache_detach(weir_pool *p)
{
  pthread_mutex_lock(&list_lock);
  while (p->tcaches) {
    weir_tcache *f = p->tcaches;
    p->tcaches = f->next;
    f->next = NULL;
    f->seen = (weir_tally){0};
    tcache_set(&f->live, 0);
    tcache_set(&f->requested_in, 0);
    tcache_set(&f->requested_out, 0);
    tcache_set(&f->high, 0);
    for (int c = 0; c < CLASSES; c++)
      f->bins[c] = (weir_bin){0};
    atomic_store(&f->owner, NULL);
    atomic_store(&f->heap, NULL);
  }
  pthread_mutex_unlock(&list_lock);
}
