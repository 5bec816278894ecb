/* block_cache.h: a cache of whole blocks, of memory that belongs to no stream. It takes memory
 * from a backend (core) and knows nothing else of CUDA.
 *
 * A program that calls cudaMalloc holds the start of one real allocation, may use it in any
 * stream, and may give it to anything that looks at allocations. So a cache of such memory never
 * splits, joins or moves a block, and a block that was freed is handed out again only when the
 * work that may touch it is complete: order alone is not enough here.
 *
 * Words. live: the program's. waiting: freed, but work named at the free may still touch it. idle:
 * complete, to be handed out. cached: waiting or idle.
 *
 * The policy is that of core/memory/pool.h for whole blocks; here are the operations that it
 * takes, and the index that finds a block of any cache by its address, in every state. Any thread.
 * Sizes are bytes. */
#ifndef WEIR_INTERPOSE_REROUTE_BLOCK_CACHE_H
#define WEIR_INTERPOSE_REROUTE_BLOCK_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/backend/backend.h"

/* Blocks above half of it are whole pages of the device, and those up to it share some. */
#define BLOCK_CACHE_PAGE (UINT64_C(2) << 20)

typedef struct block_cache block_cache; /* one device context's cache */

typedef enum block_cache_reason { /* why a block's memory was new, or why it was given back */
                                  BLOCK_CACHE_HIT = 0,    /* it was not */
                                  BLOCK_CACHE_FIRST,      /* no block of its size was ever there */
                                  BLOCK_CACHE_IN_USE,     /* all of its size were live */
                                  BLOCK_CACHE_WAITED_FOR, /* one of its size was waiting */
                                  BLOCK_CACHE_LIMIT,      /* one was given back: the limit */
                                  BLOCK_CACHE_DECAY,      /* one was given back: idle too long */
                                  BLOCK_CACHE_TRIM /* one was given back: for lack of memory */
} block_cache_reason;

typedef struct block_cache_freed { /* a block that went back to the device */
  uint64_t address, bytes;
  uint64_t start; /* clock_ticks() before the device's free */
  block_cache_reason why;
} block_cache_freed;

typedef struct block_cache_options {
  uint64_t keep_bytes; /* most bytes cached; 0: none */
  uint64_t decay_ms;   /* idle memory older than this is given back; 0: never */
  /* Notified of each block after it went back, with the backend's self, no lock held; NULL:
   * nobody. */
  void (*on_given)(void *self, const block_cache_freed *given);
} block_cache_options;

typedef enum block_cache_state {
  BLOCK_CACHE_NONE = 0, /* not of a cache */
  BLOCK_CACHE_LIVE,
  BLOCK_CACHE_WAITING,
  BLOCK_CACHE_IDLE
} block_cache_state;

typedef struct block_cache_block {
  block_cache_state state;
  const weir_backend *backend; /* of its cache; borrowed, outlives the cache */
  uint64_t address;            /* start */
  uint64_t requested;          /* bytes the program asked for; LIVE */
  uint64_t bytes;              /* bytes it has */
  uint64_t serial;             /* of the allocation, from 1, over all caches; LIVE */
  block_cache_reason why;      /* LIVE: why this allocation's memory was new */
  uint32_t record;             /* the cache's own word for it */
} block_cache_block;

typedef struct block_cache_counters {
  uint64_t hits, misses;                /* allocations from the cache, and from the device */
  uint64_t live_bytes;                  /* bytes of live blocks */
  uint64_t idle_bytes;                  /* complete and cached */
  uint64_t waiting_bytes;               /* cached, work pending */
  uint64_t live, idle, waiting;         /* blocks */
  uint64_t given_back;                  /* bytes given back by decay, the bound and trims */
  uint64_t device_allocs, device_frees; /* calls */
} block_cache_counters;

/* A cache over `backend` (borrowed; who still has a block_cache_block may look at it). Errors:
 * ENOMEM, and the backend's status. */
weir_status block_cache_open(block_cache **out, const weir_backend *backend,
                             const block_cache_options *options);
/* The context is gone and its memory with it: the records are dropped, the device is not called. */
void block_cache_abandon(block_cache *cache);

/* A block of at least `bytes`, idle or new. *hit: it was in the cache. Errors: EOOM once nothing
 * idle is left to give back (the caller may wait for what is waiting and try again), and what the
 * backend returns. */
weir_status block_cache_malloc(block_cache *cache, uint64_t bytes, uint64_t *address, bool *hit);
/* The two halves of it, for memory that the caller gets in its own way: an idle block, or false;
 * and new memory of block_cache_round(`asked`) bytes at `address`, live from here on. Errors:
 * ENOMEM. */
bool block_cache_reuse(block_cache *cache, uint64_t asked, uint64_t *address);
weir_status block_cache_adopt(block_cache *cache, uint64_t asked, uint64_t address);
uint64_t block_cache_round(uint64_t bytes);
/* Into the cache; not handed out again before the work now in each of the `count` streams is
 * complete. *full: more is waiting than may be kept, so that the caller should wait for the device
 * and call block_cache_complete(). Errors: EINVAL (not live), ENOMEM, ELIMIT: nothing has
 * changed. */
weir_status block_cache_free(uint64_t address, void *const *streams, unsigned count, bool *full);
/* The same for a block that block_cache_find() has just found LIVE, at clock_ticks() `now` (0: not
 * read): nothing is looked up, and hardly ever a clock. EINVAL too when it is not that allocation
 * any more. */
weir_status block_cache_release(const block_cache_block *block, void *const *streams,
                                unsigned count, uint64_t now, bool *full);
/* The program or the driver freed the block, or will: its record is dropped. False: not live. */
bool block_cache_forget(uint64_t address);
/* The device has handed the address out past the caches: whatever record there is of it is of
 * memory that went with its context, and is dropped. */
void block_cache_forget_stale(uint64_t address);
/* The same for a block that was found LIVE, before a free by the driver, which may hand its
 * address out again at once; and its record again, where that free has failed. */
bool block_cache_detach(const block_cache_block *block);
void block_cache_reattach(block_cache *cache, const block_cache_block *block);

/* The block that starts at `address`; state NONE when there is none. */
block_cache_block block_cache_find(uint64_t address);
/* The serial that the next allocation gets. */
uint64_t block_cache_serial(void);

/* All work of all streams is complete: waiting blocks are idle from here on. `before` is what
 * block_cache_clock() returned before the wait: frees after it are left waiting. */
uint64_t block_cache_clock(block_cache *cache);
void block_cache_complete(block_cache *cache, uint64_t before);
/* The program has waited for the device: what has been idle for too long goes back now. It also
 * does in a free, and never in an allocation: the device's own free may wait for work that the
 * program does not wait for there. */
void block_cache_age(block_cache *cache);
/* The stream is about to end and its handle may come to mean another. `busy`: it may have work,
 * which is marked now, as it cannot be later, and which all frees to come wait for as well. */
weir_status block_cache_stream_ends(block_cache *cache, void *stream, bool busy);

/* Idle memory goes back until at most `keep` bytes of it are left. */
weir_status block_cache_trim(block_cache *cache, uint64_t keep);
/* What is waiting goes back as well, and the device's free waits for the work. */
weir_status block_cache_trim_waiting(block_cache *cache);
/* Blocks that all caches have given back or handed out so far: while it stays, what was cached is,
 * and an allocation that failed will again. */
uint64_t block_cache_move_count(void);
/* A block is in no cache any more, and the device's free of it has not returned. */
bool block_cache_is_freeing(void);
void block_cache_get_stats(block_cache *cache, block_cache_counters *out);

#endif
