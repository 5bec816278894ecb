/* pool.h: the inside of the device allocator. One pool is one device's memory.
 *
 * Words. block: a piece of address space with a record (weir_block) of its own; blocks of a range
 * are chained by address. heap: the free blocks that belong to one stream, as a TLSF index; the
 * pool's idle heap holds free blocks no work may touch any more, for anybody to take, and its hole
 * heap the address space that has no memory. front: what one thread keeps of one heap, by size
 * class. stamp: the epoch of its heap in which a block was freed; the work that may touch it was
 * submitted to the heap's stream before that epoch's marker. 0: none.
 *
 * Who may touch what. A pool's lock guards its heaps, blocks' chains, pages and counters. A front
 * belongs to its thread, which says `busy` while it is in it and takes no lock; whoever holds the
 * pool's lock may stop all fronts (weir_front_reclaim). A live block belongs to its user, whose
 * free finds it by the page map without a lock. The records and the page map are shared by all
 * pools and guarded by a lock of their own, taken last and never held across a call.
 *
 * Invariants (check.c proves them in the tests): neighbours touch; no two neighbours are free in
 * the same heap; every free block is in exactly one heap, in the bin of its size; the page map
 * knows exactly the blocks that are neither free nor holes; the counters equal what a walk finds.
 */
#ifndef WEIR_MEMORY_POOL_H
#define WEIR_MEMORY_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/device/backend.h"
#include "core/memory/config.h"

typedef uint32_t block_id; /* 0: none */

enum {
  UNIT_SHIFT = 9, /* blocks are multiples of 512 bytes, the driver's alignment */
  UNIT = 1 << UNIT_SHIFT,
  CLASS_LIMIT = 1 << 20, /* bytes; larger blocks pass by the fronts */
  CLASSES = 168,
  NO_CLASS = 255,
  TLSF_FIRST = 27, /* first levels; the top one takes blocks up to 512 GiB */
  TLSF_SECOND = 32,
  HEAPS = 4096,
  FRONTS = 65536,
  THREAD_SLOTS = 64,
  HEAP_IDLE = 0, /* of pool->common */
  HEAP_HOLE = 1,
};

enum block_state {
  BLOCK_SPARE,   /* an unused record */
  BLOCK_HOLE,    /* address space without memory; of a stream: still mapped, p->leaving */
  BLOCK_FREE,    /* in a heap */
  BLOCK_LIVE,    /* a user's */
  BLOCK_CACHED,  /* in a front */
  BLOCK_REMOTE,  /* freed by a thread that is not its front's: on the front's remote list */
  BLOCK_PENDING, /* freed, but other streams' work may touch it */
  BLOCK_USE      /* no memory: a record_stream entry of a block */
};

typedef struct weir_block { /* 64 bytes, one cache line */
  uint64_t address;
  uint64_t bytes;     /* multiple of UNIT */
  uint64_t requested; /* bytes the user asked for, LIVE */
  uint64_t stamp;     /* FREE, PENDING, USE: epoch of its heap; 0: nothing in flight */
  block_id next;      /* of the list its state puts it in */
  block_id prev;      /* of a heap's bin */
  block_id left;      /* neighbour at the lower address, 0: none */
  block_id right;
  _Atomic uint8_t state;
  uint8_t class;  /* of `bytes`, NO_CLASS: passes by the fronts */
  uint16_t heap;  /* number of the heap it belongs to (weir_heaps) */
  uint32_t front; /* number of the front it came through, 0: none */
  block_id uses;  /* LIVE, PENDING: first USE record */
  uint32_t when;  /* FREE: ms at which it was freed; LIVE: its tag */
} weir_block;

typedef struct weir_heap {
  struct weir_pool *pool;
  uint16_t number; /* in weir_heaps */
  bool by_front;   /* small blocks go through the threads' fronts */
  void *stream;    /* the backend's */
  uint64_t epoch;  /* current, from 1 */
  uint64_t dirty;  /* latest epoch a block was freed or used in */
  uint64_t marked; /* epoch the marker covers, 0: never recorded */
  uint64_t done;   /* all work of epochs <= done is complete */
  void *marker;    /* the backend's event, NULL: none yet */
  uint64_t *known; /* owned; known[n]: this stream runs after heap n's work of epochs <= that */
  uint64_t free_bytes, free_blocks;
  uint32_t first;                         /* bitmap of levels with a block */
  uint32_t second[TLSF_FIRST];            /* bitmaps of bins with a block */
  block_id bins[TLSF_FIRST][TLSF_SECOND]; /* heads */
} weir_heap;

typedef struct weir_front {
  _Atomic bool busy;                   /* its thread is inside */
  _Atomic bool stop;                   /* its thread shall take the pool's lock */
  _Atomic(struct weir_heap *) heap;    /* NULL: unused */
  _Atomic(struct weir_thread *) owner; /* NULL: its thread has ended */
  uint32_t number;                     /* in weir_fronts */
  uint64_t cached;                     /* bytes in the bins */
  uint64_t room;                       /* most bytes to keep there */
  /* Written by the owner, read by anybody: */
  _Atomic int64_t allocated_bytes, freed_bytes, allocated, freed; /* since the front was made */
  _Atomic int64_t requested,
      high; /* bytes asked for and live; highest live bytes since the last look */
  block_id bins[CLASSES];
  struct weir_front *next;              /* of the pool */
  _Alignas(64) _Atomic uint32_t remote; /* blocks freed elsewhere, by id */
} weir_front;

typedef struct weir_thread {
  weir_front *slots[THREAD_SLOTS]; /* last used, by heap number */
} weir_thread;

/* One figure: now, its highest, and the sums of what came and went. */
typedef struct weir_stat {
  int64_t current, peak, allocated, freed;
} weir_stat;

typedef struct weir_pool {
  pthread_mutex_t lock;
  const weir_backend *backend; /* borrowed */
  weir_config config;
  weir_heap common[2];     /* idle, holes */
  uint16_t numbers[HEAPS]; /* this pool's stream heaps */
  unsigned heap_count;
  weir_front *fronts; /* all of this pool */
  block_id pending;   /* blocks that wait for other streams */
  block_id *heads;    /* owned: the first block of every range */
  unsigned head_count, head_room;
  uint64_t base, space; /* VMM: the reservation */
  uint64_t *pages;      /* VMM: page of each place, 0: none */
  uint64_t *spare;      /* VMM: pages that are mapped nowhere */
  uint64_t spare_count;
  block_id leaving;        /* VMM: holes that are mapped until old work is complete, in no heap */
  uint64_t total;          /* bytes of the device */
  uint64_t alert;          /* bytes of frees for which weir_epoch_breathe() goes on */
  uint64_t unmarked;       /* bytes freed since the last weir_epoch_breathe() */
  uint64_t reserved;       /* bytes the source gave and has not got back */
  uint64_t segments;       /* mapped ranges (segments, or VMM pages) */
  uint32_t decayed;        /* ms of the last decay */
  uint32_t (*clock)(void); /* ms; tests put their own here */
  double fraction;         /* of `total` we may reserve */
  weir_stat large_bytes, large_blocks; /* blocks that pass by the fronts */
  weir_stat reserved_stat, segment_stat, inactive, inactive_blocks;
  int64_t large_requested, pending_bytes, pending_blocks;
  int64_t gone_allocated_bytes, gone_freed_bytes, gone_allocated, gone_freed, gone_requested;
  int64_t peak_bytes; /* highest live bytes seen */
  int64_t peak_small, peak_count;
  uint64_t retries, ooms, syncs, device_allocs, device_frees, waits, stitches;
  bool (*oom)(void *user, uint64_t bytes); /* called without the lock; true: try again */
  void *oom_user;
} weir_pool;

extern weir_block *weir_blocks; /* all records; [0] is never used */
extern weir_heap *_Atomic weir_heaps[HEAPS];
extern weir_front *_Atomic weir_fronts[FRONTS];
extern uint8_t weir_class_of[CLASS_LIMIT / UNIT + 1]; /* by units */
extern uint32_t weir_class_bytes[CLASSES];

/* meta.c: records and the page map. */
weir_status weir_meta_init(void);
/* Makes sure that the next `count` weir_block_new() succeed until the caller gives the lock back.
 */
weir_status weir_block_ensure(weir_pool *p, unsigned count);
block_id weir_block_new(void);
void weir_block_drop(block_id id);
weir_status weir_page_map_put(weir_pool *p, block_id id);
void weir_page_map_remove(block_id id);
uint64_t weir_meta_bytes(void); /* host bytes in records and page map in use */

/* heap.c: TLSF, splitting and coalescing. Pool's lock held. */
void weir_heap_put(weir_heap *h, block_id id);
void weir_heap_remove(weir_heap *h, block_id id);
/* A block of >= bytes; among several, of the smallest bin that surely fits. */
block_id weir_heap_find(const weir_heap *h, uint64_t bytes);
/* One with stamp <= limit, or exactly `bytes`. Looks at a bounded number of blocks. */
block_id weir_heap_find_stamp(const weir_heap *h, uint64_t bytes, uint64_t limit);
block_id weir_heap_find_exact(const weir_heap *h, uint64_t bytes);
/* Cuts `bytes` off the front of a block that is in no heap; the rest goes to `rest`. */
void weir_block_split(block_id id, uint64_t bytes, weir_heap *rest);
/* Puts a block that is in no heap into `h`, merged with its neighbours there; the merged block. */
block_id weir_block_give(weir_heap *h, block_id id);
uint64_t weir_round(const weir_pool *p, uint64_t bytes);

/* back.c: memory from the source and to it. Pool's lock held. */
weir_status weir_back_init(weir_pool *p);
weir_status weir_back_fini(weir_pool *p);
/* Adds a free block of >= bytes to `h`. WEIR_EOOM or WEIR_ELIMIT: no more below `limit` bytes. */
weir_status weir_back_grow(weir_pool *p, weir_heap *h, uint64_t bytes, uint64_t limit);
/* Gives idle memory freed before `before` (ms; wrap-safe) back; at most `bytes`. `keep`: VMM pages
 * stay ours, mapped nowhere. */
weir_status weir_back_trim(weir_pool *p, uint32_t before, uint64_t bytes, bool keep);

/* epoch.c: what work is complete. Pool's lock held. */
void weir_epoch_poll(weir_pool *p, bool mark, const weir_heap *except);
weir_status weir_epoch_sync(weir_pool *p);
void weir_epoch_retire(weir_pool *p,
                       const weir_heap *except); /* complete blocks to the idle heap */
weir_status weir_epoch_wait(weir_heap *waiter, weir_heap *waited); /* inserts a wait */
void weir_epoch_depend(weir_heap *waiter, weir_heap *waited);      /* the user inserted one */
void weir_epoch_pending(weir_pool *p);
/* After frees: marks and asks when enough was freed that nobody has asked about, but only while it
 * helps: until as much as is reserved was freed since somebody last ran short (alert). */
void weir_epoch_breathe(weir_pool *p);
void weir_epoch_alert(weir_pool *p);

/* front.c: what threads keep. */
weir_status weir_front_malloc(weir_heap *h, uint64_t bytes, void **out);
weir_status weir_front_free(void *ptr);
void weir_front_reclaim(weir_pool *p); /* all threads' caches back into the heaps; lock held */
void weir_front_freeze(weir_pool *p);  /* no thread in any front until thawed; lock held */
void weir_front_thaw(weir_pool *p);
void weir_front_reset_high(weir_pool *p); /* peaks begin anew; lock held */
void weir_front_detach(weir_pool *p);     /* the pool ends; lock held */
/* One thread may play several, one at a time: whose fronts it uses from now on. NULL: a new one's,
 * made at the first use. Returns whom it played before, to be played again or ended. */
weir_thread *weir_thread_switch(weir_thread *to);
void weir_thread_end(weir_thread *thread); /* not the one being played; NULL is nothing */
extern __thread uint32_t weir_tag_now __attribute__((tls_model("initial-exec")));

/* pool.c: the slow path and the life of a pool. */
weir_status weir_pool_new(weir_pool **out, const weir_backend *backend, const weir_config *config);
weir_status weir_pool_free(weir_pool *p);
weir_status weir_pool_heap(weir_pool *p, void *stream, weir_heap **out);
weir_status weir_pool_alloc_slow(weir_heap *h, uint64_t bytes, weir_front *f, void **out);
void weir_pool_release(block_id id); /* a block that nobody holds any more; lock held */
void weir_pool_release_at(block_id id, uint64_t stamp);
weir_status weir_pool_use(void *ptr, weir_heap *h);
weir_status weir_pool_empty(weir_pool *p);
uint64_t weir_pool_limit(const weir_pool *p);

/* report.c */
typedef struct weir_memory_stats weir_memory_stats;
void weir_pool_stats(weir_pool *p, weir_memory_stats *out);               /* lock held */
weir_status weir_pool_oom(weir_heap *h, uint64_t bytes, weir_status why); /* lock held; words it */
void weir_pool_peak(weir_pool *p); /* takes the fronts' highest into the peak; lock held */
/* Calls visit for every block in address order, range by range. Lock held. */
typedef void (*weir_visit)(void *user, const weir_block *b);
void weir_pool_walk(const weir_pool *p, weir_visit visit, void *user);

/* check.c: NULL when all invariants hold, else which does not (static). Takes the lock. */
const char *weir_pool_check(weir_pool *p);

static inline weir_block *block(block_id id)
{
  return &weir_blocks[id];
}

/* The page map: see meta.c. */
enum { MAP_FAN = 8, MAP_LEVELS = 4, MAP_TABLE_BITS = 11 };
#define MAP_NODE_BIT 0x80000000u

typedef _Atomic uint32_t map_entry; /* 0, a block, or a node */
typedef struct map_node {
  map_entry at[MAP_FAN];
} map_node;

extern map_node *weir_map_nodes;
extern map_entry *_Atomic weir_map_root[65536]; /* tables, by address bits 32-47 */

static inline unsigned map_at_level(uint64_t address, int level)
{
  return (unsigned)(address >> (18 - 3 * level)) & (MAP_FAN - 1);
}

static inline map_entry *map_first(map_entry *table, uint64_t address)
{
  return &table[(address >> 21) & ((1 << MAP_TABLE_BITS) - 1)];
}

/* The block that starts at `address` and is not free; 0: none. Any thread, no lock. */
static inline block_id weir_page_map_find(uint64_t address)
{
  if (__builtin_expect(address >> 48 != 0, 0)) return 0;
  map_entry *table = atomic_load_explicit(&weir_map_root[address >> 32], memory_order_acquire);
  if (__builtin_expect(!table, 0)) return 0;
  uint32_t e = atomic_load_explicit(map_first(table, address), memory_order_acquire);
  for (int level = 0; e & MAP_NODE_BIT; level++)
    e = atomic_load_explicit(&weir_map_nodes[e & ~MAP_NODE_BIT].at[map_at_level(address, level)],
                             memory_order_acquire);
  return e && block(e)->address == address ? e : 0;
}

static inline uint8_t block_state(const weir_block *b)
{
  return atomic_load_explicit(&b->state, memory_order_relaxed);
}

static inline void block_set(weir_block *b, uint8_t state)
{
  atomic_store_explicit(&b->state, state, memory_order_relaxed);
}

static inline void stat_add(weir_stat *s, int64_t by)
{
  s->current += by;
  if (by > 0)
    s->allocated += by;
  else
    s->freed -= by;
  if (s->current > s->peak) s->peak = s->current;
}

#endif
