/* arena.c: memory for the objects of handles, one arena a type.
 *
 * An arena's address space is reserved once and its pages are never given back: looking at a stale
 * handle is safe and finds magic 0. Freed slots rest for a while, and the oldest is used again
 * first, so that a stale handle is not soon another object's. */
#include "cuda/sim/internal.h"

#include <string.h>
#include <sys/mman.h>

struct sim_arena sim_contexts = SIM_ARENA(struct CUctx_st, SIM_CONTEXT);
struct sim_arena sim_streams = SIM_ARENA(struct CUstream_st, SIM_STREAM);
struct sim_arena sim_events = SIM_ARENA(struct CUevent_st, SIM_EVENT);
struct sim_arena sim_arrays = SIM_ARENA(struct CUarray_st, SIM_ARRAY);

struct slot {
  uint32_t magic;
  struct slot *next; /* in the free list */
};

#define REST     256     /* freed slots that stay unused while there are fresh ones */
#define REGISTER 0x10000 /* bytes that a leak checker is given at once: it reads them all */

/* Of the leak checker of a program that has one, as LSan documents it: what only an arena
 * leads to is no leak, and it does not look into mapped memory by itself. */
extern void __lsan_register_root_region(const void *p, size_t bytes) __attribute__((weak));

static bool arena_start(struct sim_arena *a)
{
  if (a->base) return true;
  void *p = mmap(NULL, SIM_ARENA_BYTES, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return false;
  __atomic_store_n(&a->base, p, __ATOMIC_RELEASE);
  return true;
}

/* Lock held. */
static void register_used(struct sim_arena *a)
{
  for (; __lsan_register_root_region && a->registered < a->used; a->registered += REGISTER)
    __lsan_register_root_region(a->base + a->registered, REGISTER);
}

void *sim_arena_new(struct sim_arena *a)
{
  struct slot *s = NULL;
  pthread_mutex_lock(&a->lock);
  bool fresh = arena_start(a) && a->used + a->size <= SIM_ARENA_BYTES;
  if (a->freed > (fresh ? REST : 0)) {
    s = a->free;
    a->free = s->next;
    a->freed--;
  } else if (fresh) {
    s = (struct slot *)(void *)(a->base + a->used);
    __atomic_store_n(&a->used, a->used + a->size, __ATOMIC_RELEASE);
    register_used(a);
  }
  pthread_mutex_unlock(&a->lock);
  if (!s) return NULL;
  memset((char *)s + sizeof s->magic, 0, a->size - sizeof s->magic);
  __atomic_store_n(&s->magic, a->magic, __ATOMIC_RELEASE);
  return s;
}

void sim_arena_free(struct sim_arena *a, void *object)
{
  struct slot *s = object;
  __atomic_store_n(&s->magic, 0, __ATOMIC_RELEASE);
  SIM_HOLD(a->lock);
  if (a->freed++)
    ((struct slot *)a->last)->next = s;
  else
    a->free = s;
  a->last = s;
}
