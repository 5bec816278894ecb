/* within.h: what the files behind reroute.h share: the caches, the moments at which they
 * learn that work is complete, and what an allocation or a free says of itself. */
#ifndef WEIR_INTERPOSE_REROUTE_WITHIN_H
#define WEIR_INTERPOSE_REROUTE_WITHIN_H

#include "interpose/reroute/whole.h"
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/record/pointers.h"
#include "interpose/reroute/reroute.h"
#include "interpose/reroute/device.h"

/* ---- caches (cache.c) ------------------------------------------------------------------------ */

/* Page-locked memory is got by four functions with three flags; what one of them gave is handed out
 * by the same with the same flags only. */
enum weir_host_kind {
  WEIR_HOST_RT_PLAIN,
  WEIR_HOST_RT_FLAGS,
  WEIR_HOST_PLAIN,
  WEIR_HOST_FLAGS,
  WEIR_HOST_KINDS
};
enum { WEIR_CACHES = 256, WEIR_HOST_VALUES = 8, WEIR_HOSTS = WEIR_HOST_KINDS * WEIR_HOST_VALUES };

typedef struct weir_cache {
  weir_route_device device;
  weir_whole *whole; /* NULL: none yet */
} weir_cache;

extern weir_cache weir_caches[WEIR_CACHES]; /* device memory, by number of context */
extern weir_cache weir_host_caches[WEIR_CACHES][WEIR_HOSTS];
extern _Atomic uint64_t weir_tainted; /* blocks with a serial up to this are never cached */
extern _Atomic bool weir_peers;       /* kernels of one device may touch memory of another */

/* Most bytes that a context keeps (UINT64_MAX: min(10 % of the device, 4 GiB)), and how long. */
void weir_caches_start(uint64_t keep_bytes, uint64_t decay_ms);

/* The thread's context has none of that kind yet; false: none can be had. */
bool weir_cache_make(weir_cache *k, const weir_thread *t, int host);

/* The cache of the thread's context (`host`: of page-locked memory got in that way, -1: of device
 * memory); NULL: none can be had. */
WEIR_INLINE weir_cache *weir_cache_for(int host)
{
  weir_thread *t = &weir_self;
  weir_context_refresh(t);
  unsigned n = t->last_context_number;
  if (__builtin_expect(!n || n >= WEIR_CACHES - 1, 0)) return NULL;
  weir_cache *k = host < 0 ? &weir_caches[n] : &weir_host_caches[n][host];
  if (__builtin_expect(__atomic_load_n(&k->whole, __ATOMIC_ACQUIRE) != NULL, 1)) return k;
  return weir_cache_make(k, t, host) ? k : NULL;
}

WEIR_INLINE weir_cache *weir_cache_here(void)
{
  return weir_cache_for(-1);
}

/* Whose block it is, NULL: nobody's. A cache's device is its first member. */
WEIR_INLINE weir_cache *weir_cache_of(const weir_whole_block *b)
{
  return b->state == WEIR_WHOLE_NONE ? NULL : b->backend->self;
}

/* What the pointer map says of a cache's memory. */
WEIR_INLINE weir_tag weir_cache_tag(const weir_cache *k)
{
  return weir_tag_make(k->device.host ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                       (unsigned)k->device.backend.index, k->device.number);
}

/* Work that is pending in other contexts may use the cache's memory, and a free here waits for its
 * own context only: device memory once peer access was enabled, page-locked memory, which every
 * device can reach, once there are two. Copies from one to the other are seen block by block. */
WEIR_INLINE bool weir_cache_reached(const weir_cache *k)
{
  return k->device.host ? weir_many_devices()
                        : atomic_load_explicit(&weir_peers, memory_order_relaxed);
}

/* The program has waited for the context: what its caches have had for too long goes back. */
void weir_caches_age(unsigned number);

/* A stream of the context, with work under way or not, is about to end: all caches of the context
 * mark it. */
weir_status weir_caches_stream_ends(unsigned number, void *stream, bool busy);

/* ---- waiting for the device (cache.c) -------------------------------------------------------- */

/* What was freed before a wait for a context began, for all caches of the context. */
typedef struct weir_moment {
  unsigned number;
  uint32_t age, made; /* made: bitmap of `host` */
  uint64_t clock, host[WEIR_HOSTS];
} weir_moment;

/* Around a wait for a context, where anything waits in its caches. */
void weir_moment_begin(weir_moment *m, unsigned number);
void weir_moment_over(const weir_moment *m);

/* Waits for all work of the cache's context and tells the caches, where anything in them waits; the
 * driver's answer. */
CUresult weir_cache_wait(const weir_cache *k);

/* ---- allocations and frees (alloc.c) --------------------------------------------------------- */

/* A call is left to the driver: why; false. */
WEIR_INLINE bool weir_left(weir_call *c, weir_reason why)
{
  c->why = (uint8_t)why;
  return false;
}

/* Why the hands are off. */
weir_reason weir_hands_off_why(void);
/* Why a block that was got just now had to be. */
uint8_t weir_why_missed(uint64_t address);

/* A runtime before 12 makes the device that was chosen current at its next call only. */
bool weir_old_runtime_is_elsewhere(void);
WEIR_INLINE bool weir_runtime_is_elsewhere(const weir_call *c)
{
  return c->bank == WEIR_BANK_RT11 && weir_old_runtime_is_elsewhere();
}

/* An allocation by the original that has failed for want of memory is made again for as long as
 * caches have given some back. */
#define WEIR_WITH_RELIEF(c, r, call)                                                               \
  for ((r) = (call); (r) != 0 && weir_route_failed((int)(r));)                                     \
    if (((r) = (call)) == 0) weir_route_error_gone((c)->bank)

typedef enum weir_fate {
  WEIR_FATE_KEPT,    /* in the cache: the program's free has succeeded */
  WEIR_FATE_REAL,    /* the original frees it */
  WEIR_FATE_FOREIGN, /* not ours */
  WEIR_FATE_TWICE    /* the program has freed it before */
} weir_fate;

/* A free of device memory, or of page-locked memory (`host`): into the cache it is of. *b: what was
 * found at the address. */
weir_fate weir_keep(weir_call *c, uint64_t address, bool host, weir_whole_block *b);
/* What the original is given. */
uint64_t weir_to_free(weir_fate f, uint64_t address);
/* Whether it did. */
void weir_freed(weir_fate f, const weir_whole_block *b, int error);

#endif
