/* pool.h: the inside of the device allocator. One pool is one device's memory.
 *
 * Words. block: a piece of address space with a record (mem_block) of its own; blocks of a range
 * are chained by address. heap: the free blocks that belong to one stream, as a TLSF index; the
 * pool's idle heap holds free blocks no work may touch any more, for anybody to take, and its hole
 * heap the address space that has no memory. lend: to map a page at a second place, for later work
 * of the same stream; leaving: the first place, until the work before is complete. stitch: to map a
 * page a second time for a free piece of it; away, foreign: stitch.c. thread cache: what one thread
 * keeps of one heap, by size class. stamp: the epoch of its heap in which a block was freed; the
 * work that may touch it was submitted to the heap's stream before that epoch's marker. 0: none.
 *
 * Who may touch what. A pool's lock guards its heaps, blocks' chains, pages and counters. A thread
 * cache belongs to its thread, which sets `busy` while it is in it and takes no lock; whoever
 * holds the pool's lock may stop all thread caches (tcache_reclaim). A live block belongs to its
 * user, whose free finds it by the page map without a lock. The records and the page map are shared
 * by all pools and guarded by a lock of their own, taken last and never held across a call. A pool
 * of host memory (host.h) may be held when a device's pool is taken, never the other way round.
 *
 * Invariants (check.c proves them in the tests): neighbours touch; no two neighbours are free in
 * the same heap; every free block is in exactly one heap, in the bin of its size; the page map
 * knows exactly the blocks that are neither free nor holes; the counters equal what a walk
 * finds. */
#ifndef WEIR_MEMORY_POOL_H
#define WEIR_MEMORY_POOL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/backend/backend.h"
#include "core/memory/config.h"
#include "core/weir/memory.h"

typedef uint32_t block_id; /* 0: none */

/* All of this is inside the library, and reached without its table of addresses. */
#pragma GCC visibility push(hidden)

enum {
  UNIT_SHIFT = 9, /* blocks are multiples of 512 bytes, the driver's alignment */
  UNIT = 1 << UNIT_SHIFT,
  CLASS_LIMIT = 1 << 20, /* bytes; larger blocks pass by the thread caches */
  CLASSES = 255,         /* at most; 168 are fixed, the others learn theirs (heap.c) */
  NO_CLASS = 255,
  TLSF_FIRST = 27, /* first levels; the top one takes blocks up to 512 GiB */
  TLSF_SECOND = 32,
  HEAPS = 4096,
  MARKERS = 4,       /* of a stream on their way */
  HOST_HEAPS = 3840, /* heaps numbered from here on are of host pools */
  TCACHES = 65536,
  CAPTURES = 64, /* underway at once on a device */
  THREAD_SLOTS = 64,
  HEAP_IDLE = 0, /* of pool->common */
  HEAP_HOLE = 1,
};

enum block_state {
  BLOCK_SPARE,   /* an unused record */
  BLOCK_HOLE,    /* address space without memory; of a stream: still mapped, p->leaving */
  BLOCK_FREE,    /* in a heap */
  BLOCK_LIVE,    /* a user's */
  BLOCK_CACHED,  /* in a thread cache */
  BLOCK_REMOTE,  /* freed by a thread that is not its thread cache's: on the thread cache's remote
                    list */
  BLOCK_PENDING, /* freed, but other streams' work may touch it */
  BLOCK_AWAY,    /* address space whose memory serves elsewhere, or is somebody else's: stitch.c */
  BLOCK_USE      /* no memory: what holds a block back (enum use_kind) */
};

enum use_kind {             /* a USE record's `class` */
                USE_STREAM, /* the stream of its `heap` may touch the block */
                USE_EXPORT, /* exported `requested` times */
                USE_PAUSE /* its memory is paused; `when`: tag, `requested`: saved, `stamp`: pause.c
                           */
};

typedef struct mem_block { /* 64 bytes, one cache line */
  uint64_t address;
  uint64_t bytes;     /* multiple of UNIT */
  uint64_t requested; /* bytes the user asked for, LIVE */
  uint64_t stamp;     /* FREE, PENDING, USE: epoch of its heap; 0: nothing in flight */
  block_id next;      /* of the list its state puts it in */
  block_id prev;      /* of a heap's bin */
  block_id left;      /* neighbour at the lower address, 0: none */
  block_id right;
  _Atomic uint8_t state;
  uint8_t class;   /* of `bytes`, NO_CLASS: passes by the thread caches */
  uint16_t heap;   /* number of the heap it belongs to (heap_table) */
  uint32_t tcache; /* number of the thread cache it came through, 0: none */
  block_id uses;   /* LIVE, PENDING: first USE record */
  uint32_t when;   /* FREE: ms at which it was freed; LIVE: its tag */
} mem_block;

typedef struct epoch_marker {
  void *event;    /* the backend's, NULL: none yet */
  uint64_t epoch; /* it covers this one and all before */
} epoch_marker;

typedef struct mem_heap {
  struct mem_pool *pool;
  uint16_t number;               /* in heap_table */
  uint64_t serial;               /* never given twice */
  bool by_tcache;                /* small blocks go through the thread caches */
  void *stream;                  /* the backend's */
  bool own;                      /* the stream is ours to destroy */
  struct mem_heap *clock;        /* whose epochs stamp its blocks: itself, NULL: none has */
  struct weir_graph_pool *graph; /* private pool it belongs to, NULL: none */
  struct mem_heap *next;         /* of the private pool */
  bool left;                     /* its stream was released: no marker can be recorded any more */
  unsigned diverted; /* requests to route its mallocs elsewhere: its thread caches are stopped */
  uint64_t epoch;    /* current, from 1 */
  uint64_t dirty;    /* latest epoch a block was freed or used in */
  uint64_t marked;   /* epoch the latest marker covers, 0: never recorded */
  uint64_t done;     /* all work of epochs <= done is complete */
  epoch_marker markers[MARKERS]; /* a ring */
  unsigned oldest, flying;       /* of the ring: the first that may not be complete; how many */
  uint64_t *known; /* owned; known[n]: this stream runs after heap n's work of epochs <= that */
  bool retirable;  /* may have blocks whose work is complete: for epoch_retire() */
  bool side;       /* one of weir_stream_new()'s, which many share */
  void *mark;      /* owned; the backend's event for others to wait by, NULL: none */
  _Atomic uint64_t good; /* operations noted before this one are complete: async_error.h */
  uint64_t free_bytes, free_blocks;
  uint32_t first;                         /* bitmap of levels with a block */
  uint32_t second[TLSF_FIRST];            /* bitmaps of bins with a block */
  block_id bins[TLSF_FIRST][TLSF_SECOND]; /* heads */
} mem_heap;

/* One class of a thread cache. */
typedef struct tcache_bin {
  block_id head;           /* CACHED blocks, linked by `next` */
  uint32_t unused;         /* 0 */
  _Atomic uint64_t served; /* blocks handed out since the thread cache was made */
} tcache_bin;

/* What went through thread caches. `live` as a thread cache's. */
typedef struct tcache_tally {
  int64_t live, requested_in, requested_out;
  int64_t fell; /* units that `live` fell since its highest, in all thread caches */
} tcache_tally;

/* What a thread has of a heap. `live` is what it allocated less what it freed, whosever the blocks
 * were: LIVE_ONE a block, plus their units. It may be below 0; the sum over all thread caches and
 * the pool is what lives. What the bins hold is the units that came to the thread cache and did not
 * leave, less `live`: `least` states how low `live` may fall before they hold more than they
 * may. */
typedef struct thread_cache {
  _Atomic bool busy;                     /* its thread is inside */
  _Atomic bool stop;                     /* its thread shall take the pool's lock */
  uint32_t number;                       /* in tcache_table */
  _Atomic(struct mem_heap *) heap;       /* NULL: unused */
  _Atomic(struct tcache_thread *) owner; /* NULL: its thread has ended */
  /* Written by the owner, read by anybody: */
  _Atomic int64_t live; /* LIVE_ONE a block + units */
  _Atomic int64_t high; /* most units live since the last look, shifted as in live_units() */
  _Atomic int64_t requested_in, requested_out; /* bytes asked for, in all and of what was freed */
  int64_t least;                               /* of live's units before a flush, shifted */
  _Alignas(64) tcache_bin bins[CLASSES];
  struct thread_cache *next;            /* of the pool */
  tcache_tally seen;                    /* its part of the pool's `seen` */
  unsigned turn;                        /* class that was flushed last */
  _Alignas(64) _Atomic uint32_t remote; /* blocks freed elsewhere, by id */
} thread_cache;

#define LIVE_SHIFT 36 /* units below, blocks above */
#define LIVE_ONE   (INT64_C(1) << LIVE_SHIFT)

typedef struct tcache_thread {
  thread_cache
      *recent[2]; /* the ones it freed device's and host pools' blocks to last; never NULL */
  thread_cache *slots[THREAD_SLOTS]; /* last used, by heap number */
} tcache_thread;

/* One figure: now, its highest, and the sums of what came and went. */
typedef struct pool_stat {
  int64_t current, peak, allocated, freed;
} pool_stat;

/* A private pool: graph.c. */
typedef struct weir_graph_pool {
  struct mem_pool *pool;
  struct weir_graph_pool *next; /* of the pool */
  uint64_t id;                  /* from 1, never given twice */
  uint64_t uses;                /* the handle's and the graphs'; 0: released */
  bool dead;                    /* released and its work complete: what is freed is ordinary */
  uint64_t live;                /* blocks LIVE or PENDING */
  uint64_t *stamps;             /* owned; epochs, by heap, that must be done before it is dead */
  mem_heap *heaps;              /* owned; one a stream */
  mem_heap idle;
} weir_graph_pool;

typedef struct pool_capture {
  weir_graph_pool *graph;
  mem_heap *stream; /* NULL: all that are being captured */
  mem_heap *leader; /* the stream that this one joined; NULL: it was begun itself */
} pool_capture;

/* What a host pool does and a device's does not: slab.c and pinned.c. Pool's lock held. */
struct mem_pool;
struct host_census;
typedef struct host_pool_calls {
  /* Like back_grow; gives the lock back while memory is being locked. */
  weir_status (*grow)(struct mem_pool *p, const mem_heap *h, uint64_t bytes);
  void (*used)(struct mem_pool *p, uint64_t address); /* a block was handed out there */
  /* Words the failure. */
  weir_status (*oom)(const struct mem_pool *p, uint64_t bytes, const struct host_census *c);
} host_pool_calls;

enum { WEIR_METRICS = 9 }; /* of WEIR_MEMORY_METRICS, in their order */

typedef struct mem_pool {
  pthread_mutex_t lock;
  const weir_backend *backend;       /* borrowed */
  struct host_pool *host;            /* borrowed; NULL: the pool is of a device's memory */
  const host_pool_calls *host_calls; /* static; with `host` */
  pool_config config;
  mem_heap common[2];      /* idle, holes */
  uint16_t numbers[HEAPS]; /* this pool's stream heaps */
  unsigned heap_count;
  thread_cache *tcaches;   /* all of this pool */
  block_id pending;        /* blocks that wait for other streams */
  weir_graph_pool *graphs; /* owned */
  pool_capture captures[CAPTURES];
  unsigned capture_count;
  unsigned diverted; /* requests to stop all thread caches */
  block_id *heads;   /* owned: the first block of every range */
  unsigned head_count, head_room, head_spoken;
  bool last_resort;      /* host: no more to be had, so large idle chunks are cut too */
  uint64_t base, space;  /* VMM: the reservation */
  uint64_t *pages;       /* VMM: page of each place, 0: none */
  uint64_t *spare;       /* VMM: pages that are mapped nowhere */
  void **copies;         /* VMM: by place, what pause.c knows of its page; NULL: never paused */
  uint64_t paused_bytes; /* of pages given back while their blocks live */
  uint64_t saved_bytes;  /* of host memory with their contents */
  uint64_t spare_count;
  uint64_t stuck;          /* VMM: pages that an ended pause left in holes, for trim to unmap */
  block_id leaving;        /* VMM: holes that are mapped until old work is complete, in no heap */
  block_id stitched;       /* VMM: the foreign pieces next to memory that serves away from home */
  uint64_t alert;          /* bytes of frees for which epoch_after_frees() goes on */
  uint64_t unmarked;       /* bytes freed since the last epoch_after_frees() */
  uint64_t total;          /* bytes of the device */
  uint64_t reserved;       /* bytes the source gave and has not got back */
  uint64_t segments;       /* mapped ranges (segments, or VMM pages) */
  uint32_t decayed;        /* ms of the last decay */
  uint32_t (*clock)(void); /* ms; tests put their own here */
  double fraction;         /* of `total` we may reserve */
  /* Figures (stats.c). [0]: blocks up to CLASS_LIMIT, [1]: larger ones. */
  pool_stat by_bytes[2], by_blocks[2],
      by_requested[2];                       /* live blocks that pass by the thread caches */
  pool_stat inactive[2], inactive_blocks[2]; /* free in heaps, and not all of a segment */
  int64_t pending_bytes[2], pending_blocks[2];
  pool_stat reserved_stat, segment_stat, oversize, oversize_segments;
  int64_t tcache_bytes,
      tcache_blocks;             /* blocks that belong to thread caches: live, cached, remote */
  tcache_tally gone;             /* what no thread cache counted */
  tcache_tally seen;             /* sum of the thread caches' when each was last looked at */
  unsigned tcache_count;         /* thread caches in the list */
  unsigned unseen;               /* looks since all were looked at */
  int64_t peak[WEIR_METRICS][3]; /* seen; all, small, large */
  weir_memory_stats reset;       /* sums when they were last reset */
  uint64_t retries, ooms, syncs, device_allocs, device_frees, waits, stitches;
  struct pool_history *history;            /* owned; what is recorded (history.h); NULL: nothing */
  _Atomic uint8_t recording;               /* its context + 1, 0: none; read without the lock */
  bool (*oom)(void *user, uint64_t bytes); /* called without the lock; true: try again */
  void *oom_user;
} mem_pool;

extern mem_block *block_records; /* all records; [0] is never used */
extern mem_heap *_Atomic heap_table[HEAPS];
extern thread_cache *_Atomic tcache_table[TCACHES];
/* The class that serves so many units. Of a size that is learned (heap.c) it changes once, without
 * a lock; who loads it with acquire may read the class's bytes, and so may who got a block of it.
 */
extern _Atomic uint8_t class_of_units[CLASS_LIMIT / UNIT + 1];
extern _Atomic uint8_t host_class_of_units[CLASS_LIMIT / UNIT + 1]; /* fixed, 8 a doubling */
extern uint32_t bytes_of_class[CLASSES];
extern int64_t
    live_of_class[CLASSES]; /* what one block of the class adds to a thread cache's `live` */

/* meta.c: records and the page map. */
weir_status meta_init(void);
/* Makes sure that the next `count` block_new() and page_map_put() succeed until the
 * caller gives the lock back. */
weir_status block_ensure(mem_pool *p, unsigned count);
block_id block_new(void);
void block_drop(block_id id);
/* Puts a block whose class is known; it was ensured. */
void page_map_put(block_id id);
void page_map_remove(block_id id);
void meta_forget(void); /* in a forked child: the page map knows no block any more */
block_id page_map_find(uint64_t address); /* of a block that is not free; 0: none */
uint64_t meta_bytes(void);                /* host bytes in records and page map in use */

/* heap.c: TLSF, splitting and coalescing. Pool's lock held. */
void heap_put(mem_heap *h, block_id id);
void heap_remove(mem_heap *h, block_id id);
/* A block of >= bytes; among several, of the smallest bin that surely fits. */
block_id heap_find(const mem_heap *h, uint64_t bytes);
/* One with stamp <= limit, or exactly `bytes`. Looks at a bounded number of blocks. */
block_id heap_find_stamp(const mem_heap *h, uint64_t bytes, uint64_t limit);
block_id heap_find_exact(const mem_heap *h, uint64_t bytes);
/* Cuts `bytes` off the front of a block that is in no heap; the rest goes to `rest`. */
void block_split(block_id id, uint64_t bytes, mem_heap *rest);
/* Puts a block that is in no heap into `h`, merged with its neighbours there; the merged block. */
block_id block_give(mem_heap *h, block_id id);
void block_join(block_id left, block_id right); /* takes right into left; both in no heap */
uint64_t heap_largest(const mem_heap *h);       /* bytes of the largest block, 0: none */
uint64_t round_request(const mem_pool *p, uint64_t bytes);
/* A request of `bytes` has come here: a size that often does gets a class of its own. */
void class_learn(const mem_pool *p, uint64_t bytes);
void class_forget(void); /* all that was learned; no pool is open */

/* back.c: memory from the source and to it. Pool's lock held. */
weir_status back_init(mem_pool *p);
weir_status back_fini(mem_pool *p);
/* Unmaps what no work can touch any more; a failure is reported, and tried again. */
weir_status back_settle(mem_pool *p);
bool back_empty(const mem_pool *p); /* no block has memory */
/* Adds a free block of >= bytes to `h`. WEIR_EOOM or WEIR_ELIMIT: no more below `limit` bytes. */
weir_status back_grow(mem_pool *p, mem_heap *h, uint64_t bytes, uint64_t limit);
/* Makes room for one more range, which stays spoken for (head_spoken) when the lock is given back.
 */
weir_status back_reserve_range(mem_pool *p);
/* Adds a range; its record was made and its place spoken for before. */
void back_add(mem_pool *p, mem_heap *h, block_id id, uint64_t address, uint64_t bytes);
/* Gives idle memory freed before `before` (ms; wrap-safe) back; at most `bytes`. `keep`: VMM pages
 * stay ours, mapped nowhere. A host pool's lock is given back meanwhile. */
weir_status back_trim(mem_pool *p, uint32_t before, uint64_t bytes, bool keep);

/* A page, mapped nowhere. WEIR_EOOM or WEIR_ELIMIT: there is none. Given back it is destroyed, or
 * spare where that fails. */
weir_status back_take_page(mem_pool *p, uint64_t *page);
void back_give_page(mem_pool *p, uint64_t page);

/* epoch.c: what work is complete. Pool's lock held. */
void epoch_poll(mem_pool *p, bool mark, const mem_heap *except);
weir_status epoch_sync(mem_pool *p);
void epoch_retire(mem_pool *p, const mem_heap *except);     /* complete blocks to the idle heap */
weir_status epoch_wait(mem_heap *waiter, mem_heap *waited); /* inserts a wait */
void epoch_depend(mem_heap *waiter, mem_heap *waited);      /* the user inserted one */
/* The same in two steps, for waits of ours: the epoch that covers all now freed in the stream,
 * before what is waited for is recorded; and that the wait was inserted, at once (ordered: then
 * also after all that `waited` waits for) or later. */
uint64_t epoch_close(mem_heap *h);
void epoch_learn(mem_heap *waiter, const mem_heap *waited, uint64_t epoch, bool ordered);
void epoch_pending(mem_pool *p);
/* The three in turn: all that is known to be free after asking the device is. */
void epoch_collect(mem_pool *p);
/* After frees: marks and asks when enough was freed that nobody has asked about, but only while it
 * helps: until as much as is reserved was freed since somebody last ran short (alert). */
void epoch_after_frees(mem_pool *p);
void epoch_alert(mem_pool *p);
void epoch_use(mem_pool *p, block_id use); /* a freed block's USE: what now may touch it */
bool epoch_capturing(const mem_heap *h);
weir_status epoch_leave(mem_heap *h);         /* its stream is about to be destroyed */
bool epoch_return(mem_heap *h, void *stream); /* serves another, if it can */

/* graph.c: private pools. Pool's lock held. */
weir_status graph_route(mem_heap **h); /* to the private heap that serves it now, if one does */
void graph_retire(mem_pool *p);
/* Without the lock: `waiter` is about to wait for `waited`, which is being captured, and joins: it
 * allocates where that does until that ends. */
weir_status graph_join(mem_heap *waiter, const mem_heap *waited);
/* Without the lock: the stream whose capture h is or has joined; NULL: none that is known. */
mem_heap *graph_leader(mem_heap *h);
weir_status graph_pool_new(mem_pool *p, weir_graph_pool **out);
void graph_forget_pools(mem_pool *p); /* all; none holds memory */

/* thread_cache.c, threads.c: what threads keep. */
weir_status weir_tcache_malloc(mem_heap *h, uint64_t bytes, void **out);
weir_status weir_tcache_malloc_host(mem_heap *h, uint64_t bytes, void **out); /* its classes */
weir_status weir_tcache_free(void *ptr);                                      /* a device's block */
weir_status weir_tcache_free_host(void *ptr);                                 /* a host pool's */
void tcache_reclaim(mem_pool *p); /* all threads' caches back into the heaps; lock held */
void tcache_freeze(mem_pool *p);  /* no thread in any thread cache until thawed; lock held */
void tcache_thaw(mem_pool *p);
/* Adds `by` to the requests that the thread caches of `h` (NULL: all) stay stopped; lock held. */
void tcache_divert(mem_pool *p, mem_heap *h, int by);
void tcache_reset_high(mem_pool *p); /* peaks begin anew; lock held */
void tcache_forget(void);            /* in a forked child: its thread keeps nothing */
void tcache_detach(mem_pool *p);     /* the pool ends; lock held */
/* One thread may play several, one at a time: whose thread caches it uses from now on. NULL: a new
 * one's, made at the first use. Returns whom it played before, to be played again or ended. */
tcache_thread *tcache_thread_switch(tcache_thread *to);
void tcache_thread_end(tcache_thread *thread); /* not the one being played; NULL is nothing */
extern __thread uint32_t tag_now __attribute__((tls_model("initial-exec")));

/* pool.c: the slow path and the life of a pool. */
weir_status pool_new(mem_pool **out, const weir_backend *backend, const pool_config *config);
weir_status pool_new_host(mem_pool **out, const weir_backend *seam, const pool_config *config,
                          struct host_pool *host, const host_pool_calls *calls);
weir_status pool_free(mem_pool *p);
weir_status pool_heap(mem_pool *p, void *stream, mem_heap **out);
weir_status heap_number(mem_heap *h, mem_pool *p); /* a number of its own among all heaps */
void heap_unnumber(const mem_heap *h);
uint64_t heap_serial(void); /* never given before */
weir_status pool_alloc_slow(mem_heap *h, uint64_t bytes, thread_cache *f, void **out);
void pool_release(block_id id); /* a block that nobody holds any more; lock held */
void pool_release_at(block_id id, uint64_t stamp);
void pool_leave_tcache(mem_pool *p, mem_block *b); /* it will not come back there */
weir_status pool_trim(mem_pool *p, uint64_t keep); /* to `keep` bytes, as far as can be */
weir_status weir_pool_empty(mem_pool *p);
/* Whether a free block may serve a request of `bytes`; it has as many. */
bool pool_may_take(const mem_pool *p, block_id id, uint64_t bytes);
/* Drops the USE records of this host pool's blocks that name heaps in `gone` (a bit each). */
void pool_forget(mem_pool *p, const uint64_t *gone);

/* stats.c. Lock held. */
void pool_stats(mem_pool *p, weir_memory_stats *out);
void pool_reset_peak(mem_pool *p);
/* Takes what is now, and the thread caches' highest, into the peaks; `own`: the calling thread's
 * thread cache that may have changed, or NULL. */
void pool_peak(mem_pool *p, thread_cache *own);
void pool_count_live(mem_pool *p, const mem_block *b, int sign); /* passes by the thread caches */

/* api.c: the pool of an attached device. Errors: EINVAL. */
weir_status pool_of_device(weir_device device, mem_pool **out);

/* export.c: what holds a block back. Lock held, but for pool_use. */
weir_status pool_use(void *ptr, mem_heap *h);
block_id block_use_find(const mem_block *b, unsigned kind, uint16_t heap);
block_id block_use_add(mem_block *b, unsigned kind, uint16_t heap); /* ensured */
void block_use_drop(mem_block *b, block_id use);

/* pause.c. Lock held. Tags from WEIR_TAGS on: all. */
weir_status pool_pause(mem_pool *p, unsigned tag, bool save);
weir_status pool_resume(mem_pool *p, unsigned tag, uint64_t *lost_bytes);
void pool_pause_fini(mem_pool *p);

/* report.c */
weir_status pool_oom(mem_heap *h, uint64_t bytes, weir_status why); /* lock held; words it */
/* Calls visit for every block in address order, range by range. Lock held. */
typedef void (*block_visit)(void *user, const mem_block *b);
void pool_walk(const mem_pool *p, block_visit visit, void *user);

/* check.c: NULL when all invariants hold, else which does not (static). Takes the lock. */
const char *pool_check(mem_pool *p);

/* Where the blocks are that a heap may take besides its own. */
static inline mem_heap *idle_of(const mem_heap *h)
{
  return h->graph ? &h->graph->idle : &h->pool->common[HEAP_IDLE];
}

static inline mem_block *block(block_id id)
{
  return &block_records[id];
}

/* The page map: see meta.c. */
enum {
  MAP_SLOTS = 512,     /* of a segment: 4 KiB */
  MAP_LINE = 8,        /* of a cache line */
  MAP_SEGMENT_AT = 32, /* bits of the hash, from its better half */
  MAP_SLOT_AT = 55,
  MAP_TAG_AT = 34, /* in the hash and in an entry */
  MAP_CLASS_AT = 26,
};
#define MAP_HASH UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / the golden ratio, odd */
#define MAP_ID   ((UINT64_C(1) << MAP_CLASS_AT) - 1)

typedef _Atomic uint64_t map_entry; /* tag of the hash, class, block; 0: empty */

extern map_entry *_Atomic page_map_entries; /* segments, one after the other */
/* How many segments there are (low half), and the mask of the bits that name one (high half). */
extern _Atomic uint64_t page_map_shape;

static inline uint64_t map_hash(uint64_t address)
{
  return address * MAP_HASH;
}

/* The segment of a hash: by the mask's bits, or one less where that segment is not there yet. Which
 * of the two is as good as random, so there shall be no branch to guess. */
static inline map_entry *map_segment(uint64_t hash)
{
  uint64_t shape = atomic_load_explicit(&page_map_shape, memory_order_acquire);
  uint64_t mask = shape >> 32, at = hash >> MAP_SEGMENT_AT & mask, low = at & mask >> 1;
  at = __builtin_expect_with_probability(at < (uint32_t)shape, 1, 0.5) ? at : low;
  return atomic_load_explicit(&page_map_entries, memory_order_relaxed) + at * MAP_SLOTS;
}

static inline block_id map_block(uint64_t entry)
{
  return (block_id)(entry & MAP_ID);
}

static inline unsigned map_class(uint64_t entry)
{
  return (uint8_t)(entry >> MAP_CLASS_AT);
}

/* The i-th place in its segment where an entry may be: all of one cache line first. */
static inline unsigned map_slot(uint64_t hash, unsigned i)
{
  unsigned first = (unsigned)(hash >> MAP_SLOT_AT), line = (first + i - i % MAP_LINE) / MAP_LINE;
  return (line * MAP_LINE + (first + i) % MAP_LINE) % MAP_SLOTS;
}

/* The entry of the block that starts at `address` and is not free; 0: none was met, and who must
 * know asks page_map_find(). Any thread, no lock. */
static inline uint64_t map_look(uint64_t address)
{
  uint64_t hash = map_hash(address);
  const map_entry *segment = map_segment(hash), *at = &segment[hash >> MAP_SLOT_AT];
  for (unsigned i = 0;; at = &segment[map_slot(hash, i)]) {
    uint64_t e = atomic_load_explicit((map_entry *)at, memory_order_acquire);
    if (__builtin_expect(!((e ^ hash) >> MAP_TAG_AT), 1) &&
        __builtin_expect(block(map_block(e))->address == address, 1))
      return e;
    if (++i == MAP_SLOTS) return 0;
  }
}

/* Bytes the pool may reserve. */
static inline uint64_t pool_limit(const mem_pool *p)
{
  uint64_t limit = (uint64_t)((double)p->total * p->fraction);
  return p->config.limit_bytes && p->config.limit_bytes < limit ? p->config.limit_bytes : limit;
}

static inline uint8_t block_state(const mem_block *b)
{
  return atomic_load_explicit(&b->state, memory_order_relaxed);
}

static inline void block_set(mem_block *b, uint8_t state)
{
  atomic_store_explicit(&b->state, state, memory_order_relaxed);
}

/* The units in a `live`, times 2^28: good to be compared with its like. */
static inline int64_t live_units(int64_t live)
{
  return (int64_t)((uint64_t)live << (64 - LIVE_SHIFT));
}

static inline int64_t live_bytes(int64_t live)
{
  return live_units(live) >> (64 - LIVE_SHIFT - UNIT_SHIFT);
}

static inline int64_t live_blocks(int64_t live)
{
  return (live - (live_units(live) >> (64 - LIVE_SHIFT))) >> LIVE_SHIFT;
}

static inline void stat_add(pool_stat *s, int64_t by)
{
  s->current += by;
  if (by > 0)
    s->allocated += by;
  else
    s->freed -= by;
  if (s->current > s->peak) s->peak = s->current;
}

/* A block waits, freed, for something (sign 1), or has waited (-1). */
static inline void pool_count_pending(mem_pool *p, const mem_block *b, int sign)
{
  bool large = b->bytes > CLASS_LIMIT;
  p->pending_blocks[large] += sign;
  p->pending_bytes[large] += sign * (int64_t)b->bytes;
}

#pragma GCC visibility pop

static inline double to_mib(uint64_t bytes)
{
  return (double)bytes / (1 << 20);
}

/* Whether the device's host allows `bytes` more of our own memory. */
static inline bool may_commit(const mem_pool *p, uint64_t bytes)
{
  const weir_source *s = &p->backend->source;
  return !s->host_commit || s->host_commit(p->backend->self, bytes) == WEIR_OK;
}

#endif
