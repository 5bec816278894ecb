/* context_cache.h: what the files that implement reroute.h share: the caches, the moments at which
 * they learn that work is complete, and what an allocation or a free records of itself. */
#ifndef WEIR_INTERPOSE_REROUTE_CONTEXT_CACHE_H
#define WEIR_INTERPOSE_REROUTE_CONTEXT_CACHE_H

#include "interpose/reroute/block_cache.h"
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/record/pointers.h"
#include "interpose/reroute/reroute.h"
#include "interpose/reroute/device.h"

/* ---- caches (cache.c) ------------------------------------------------------------------------ */

/* Page-locked memory is got by four functions with three flags; what one of them gave is handed out
 * by the same with the same flags only. */
enum host_kind {
  WEIR_HOST_RT_PLAIN,
  WEIR_HOST_RT_FLAGS,
  WEIR_HOST_PLAIN,
  WEIR_HOST_FLAGS,
  WEIR_HOST_KINDS
};
enum { WEIR_CACHES = 256, WEIR_HOST_VALUES = 8, WEIR_HOSTS = WEIR_HOST_KINDS * WEIR_HOST_VALUES };

typedef struct context_cache {
  reroute_device device;
  block_cache *cache; /* NULL: none yet */
} context_cache;

extern context_cache context_caches[WEIR_CACHES]; /* device memory, by number of context */
extern context_cache host_caches[WEIR_CACHES][WEIR_HOSTS];
extern _Atomic uint64_t tainted_serial;  /* blocks with a serial up to this are never cached */
extern _Atomic bool peer_access_enabled; /* kernels of one device may touch memory of another */

/* Most bytes that a context keeps (UINT64_MAX: min(10 % of the device, 4 GiB)), and how long. */
void context_caches_start(uint64_t keep_bytes, uint64_t decay_ms);

/* The thread's context has none of that kind yet; false: none can be had. */
bool context_cache_make(context_cache *k, const thread_state *t, int host);

/* The cache of the thread's context (`host`: of page-locked memory got in that way, -1: of device
 * memory); NULL: none can be had. */
WEIR_INLINE context_cache *context_cache_for(int host)
{
  thread_state *t = &thread_self;
  context_refresh(t);
  unsigned n = t->last_context_number;
  if (__builtin_expect(!n || n >= WEIR_CACHES - 1, 0)) return NULL;
  context_cache *k = host < 0 ? &context_caches[n] : &host_caches[n][host];
  if (__builtin_expect(__atomic_load_n(&k->cache, __ATOMIC_ACQUIRE) != NULL, 1)) return k;
  return context_cache_make(k, t, host) ? k : NULL;
}

WEIR_INLINE context_cache *context_cache_here(void)
{
  return context_cache_for(-1);
}

/* Whose block it is, NULL: nobody's. A cache's device is its first member. */
WEIR_INLINE context_cache *context_cache_of(const block_cache_block *b)
{
  return b->state == BLOCK_CACHE_NONE ? NULL : b->backend->self;
}

/* What the pointer map holds of a cache's memory. */
WEIR_INLINE block_tag context_cache_tag(const context_cache *k)
{
  return block_tag_make(k->device.host ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                        (unsigned)k->device.backend.index, k->device.number);
}

/* Work that is pending in other contexts may use the cache's memory, and a free here waits for its
 * own context only: device memory once peer access was enabled, page-locked memory, which every
 * device can reach, once there are two. Copies from one to the other are seen block by block. */
WEIR_INLINE bool context_cache_reached(const context_cache *k)
{
  return k->device.host ? context_many_devices()
                        : atomic_load_explicit(&peer_access_enabled, memory_order_relaxed);
}

/* The program has waited for the context: what its caches have had for too long goes back. */
void context_caches_age(unsigned number);

/* A stream of the context, with work under way or not, is about to end: all caches of the context
 * mark it. */
weir_status context_caches_stream_ends(unsigned number, void *stream, bool busy);

/* ---- waiting for the device (cache.c) -------------------------------------------------------- */

/* What was freed before a wait for a context began, for all caches of the context. */
typedef struct wait_mark {
  unsigned number;
  uint32_t age, made; /* made: bitmap of `host` */
  uint64_t clock, host[WEIR_HOSTS];
} wait_mark;

/* Around a wait for a context, where anything waits in its caches. */
void wait_mark_begin(wait_mark *m, unsigned number);
void wait_mark_end(const wait_mark *m);

/* Waits for all work of the cache's context and informs the caches, where anything in them waits;
 * the driver's answer. */
CUresult context_cache_wait(const context_cache *k);

/* ---- allocations and frees (alloc.c) --------------------------------------------------------- */

/* A call is left to the driver: why; false. */
WEIR_INLINE bool leave_to_original(hook_call *c, reroute_reason why)
{
  c->why = (uint8_t)why;
  return false;
}

/* Why the hands are off. */
reroute_reason hands_off_reason(void);
/* Why a block that was got just now had to be. */
uint8_t block_miss_reason(uint64_t address);

/* A runtime before 12 makes the device that was chosen current at its next call only. */
bool old_runtime_is_elsewhere(void);
WEIR_INLINE bool runtime_is_elsewhere(const hook_call *c)
{
  return c->bank == WEIR_BANK_RT11 && old_runtime_is_elsewhere();
}

/* An allocation by the original that has failed for want of memory is made again for as long as
 * caches have given some back, unless memory of that kind (`family`) is left to another library. */
#define WEIR_WITH_RELIEF(c, r, family, call)                                                       \
  for ((r) = (call); (r) != 0 && reroute_should_retry((int)(r)) && !process_left_have(family);)    \
    if (((r) = (call)) == 0) reroute_retry_succeeded((c)->bank)

typedef enum free_outcome {
  FREE_KEPT,    /* in the cache: the program's free has succeeded */
  FREE_REAL,    /* the original frees it */
  FREE_FOREIGN, /* not ours */
  FREE_TWICE    /* the program has freed it before */
} free_outcome;

/* A free of device memory, or of page-locked memory (`host`): into the cache it is of. *b: what was
 * found at the address. */
free_outcome free_to_cache(hook_call *c, uint64_t address, bool host, block_cache_block *b);
/* What the original is given. */
uint64_t free_address(free_outcome f, uint64_t address);
/* Whether it did. */
void free_finished(free_outcome f, const block_cache_block *b, int error);

#endif
