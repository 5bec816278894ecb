/* block_cache.c: see block_cache.h.
 *
 * Everything is guarded by one lock, which is never held across a call that takes or gives memory:
 * such a call may take a millisecond, and a thread that needs no memory shall not wait for it. The
 * event calls are made under it: they only look. Nothing here waits for the device; who must, does
 * it outside and reports it (block_cache_complete). The lock is biased (core/base/bias.h): a
 * thread that allocates alone takes it with two plain stores.
 *
 * A block is a record, and a record is one cache line. Records are numbered, live in one array
 * that grows by whole mappings, and are found by address through an open-addressed index. An idle
 * block is on two lists: the bin of its size, newest first, and the list of all idle ones by age,
 * from which decay takes the oldest. A waiting block is on the waiting list, with a chain of uses:
 * a stream and the epoch of it that must be complete. As in core/memory/epoch.c a marker recorded
 * in the stream closes an epoch, only when somebody needs to know, and covers all frees before
 * it. */
#include "core/base/pages.h"
#include "interpose/reroute/block_cache.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/bias.h"
#include "core/base/clock.h"

typedef uint32_t rec_id; /* 0: none */

#define HOT static inline __attribute__((always_inline)) /* on the way of a hit */

enum {
  SMALL_LIMIT = BLOCK_CACHE_PAGE / 2, /* bytes; up to here sizes are exact to SMALL_UNIT */
  SMALL_UNIT = 512,
  LARGE_UNIT = BLOCK_CACHE_PAGE, /* the driver's */
  SMALL_BINS = SMALL_LIMIT / SMALL_UNIT,
  LARGE_BINS = 4096, /* above, all sizes share the last */
  BINS = SMALL_BINS + LARGE_BINS + 1,
  RECORDS = 1 << 24, /* most there can be; address space only */
  COMMIT = 1 << 12,
  STREAMS = 1024, /* a cache can distinguish at once */
};

enum { REC_SPARE = 8, REC_USE = 9 }; /* in addition to block_cache_state */

typedef struct rec { /* one cache line */
  uint64_t address;
  uint64_t bytes;
  uint64_t serial; /* LIVE; cached: the clock at the free; a use: the epoch */
  block_cache *cache;
  union {
    uint64_t requested; /* LIVE: bytes */
    struct {
      rec_id newer, older; /* IDLE: by age */
    };
  };
  rec_id next, prev; /* of its bin, of the waiting list, of spare records, of uses */
  rec_id uses;       /* WAITING: first use */
  uint32_t when;     /* IDLE: ms at which it became so */
  uint32_t bin;      /* of its size */
  uint16_t stream;   /* a use: number in the cache */
  uint8_t state;
  uint8_t why; /* LIVE: block_cache_reason */
} rec;

_Static_assert(sizeof(rec) == 64, "a block's record is one cache line");

typedef struct stream {
  void *handle;
  bool used, ended; /* ended: the handle may mean another stream by now */
  uint64_t epoch;   /* current, from 1 */
  uint64_t dirty;   /* latest epoch a use was stamped with */
  uint64_t marked;  /* epoch the marker covers */
  uint64_t done;    /* epochs complete */
  uint32_t uses;    /* waiting blocks that name it */
  void *marker;     /* the backend's event, NULL: none yet */
} stream;

struct block_cache { /* what a hit touches comes first */
  const weir_backend *backend;
  block_cache_options options;
  block_cache_counters stats;
  uint64_t clock;             /* frees so far */
  rec_id newest, oldest;      /* idle */
  rec_id waiting;             /* newest first */
  unsigned ended;             /* streams that ended and are not forgotten */
  unsigned stream_count;      /* slots ever used */
  rec_id bins[BINS];          /* idle, newest first */
  uint32_t in_bin[BINS];      /* waiting blocks of the bin's sizes */
  uint32_t freed_count[BINS]; /* blocks given back that no miss was blamed on yet */
  uint8_t why[BINS]; /* block_cache_reason of the last one given back; FIRST: none ever made */
  stream streams[STREAMS];
};

static biased_lock lock = WEIR_BIAS_INITIALIZER;

HOT void let_lock_go(biased_lock *const *held)
{
  bias_unlock(*held);
}

/* The lock, until the function returns. */
#define HOLD_LOCK                                                                                  \
  biased_lock *const held __attribute__((cleanup(let_lock_go))) = &lock;                           \
  bias_lock(held)

static rec *recs;
static uint32_t recs_end = 1, recs_committed;
static rec_id spare;
static struct {
  rec_id *slots; /* power of two; 0: empty */
  uint32_t mask, count;
} map;
/* What is read without the lock, to see that there is no record of an address: blocks in the index,
 * and where they have been so far. Who has an address was handed it by an allocation that was
 * counted before it returned. */
static struct {
  _Atomic uint64_t count, low, high;
} known_blocks = {.low = UINT64_MAX};
static uint64_t serial;
static _Atomic uint64_t freed_so_far; /* blocks, by all caches */
static _Atomic uint32_t freeing;      /* blocks that the device is asked to take back */
static struct {
  uint64_t ticks; /* clock_ticks() when `ms` was read, or a little earlier */
  uint32_t ms;    /* the time last read: all times here come from it, so that none is later */
} clock_read;

__attribute__((noinline)) static uint32_t time_now(void)
{
  return clock_read.ms = clock_coarse_ms();
}

/* The time by ticks that the caller has read anyhow (0: none). How long a tick is need not be
 * known: for as long as they have hardly moved on, the answer is the last one. */
HOT uint32_t time_at(uint64_t ticks)
{
  enum { HARDLY = 1 << 20 }; /* half a millisecond of a TSC */
  if (ticks && ticks - clock_read.ticks < HARDLY) return clock_read.ms;
  clock_read.ticks = ticks;
  return time_now();
}

/* ---- records --------------------------------------------------------------------------------- */

static weir_status no_record_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "no host memory for the records of the cache");
}

static rec_id rec_new(void)
{
  rec_id id = spare;
  if (id) {
    spare = recs[id].next;
  } else {
    if (!recs && !(recs = pages_reserve((uint64_t)RECORDS * sizeof *recs))) return 0;
    if (recs_end >= recs_committed) {
      if (recs_committed + COMMIT > RECORDS ||
          mprotect(recs + recs_committed, COMMIT * sizeof *recs, PROT_READ | PROT_WRITE))
        return 0;
      recs_committed += COMMIT;
    }
    id = recs_end++;
  }
  memset(&recs[id], 0, sizeof *recs);
  return id;
}

static void rec_drop(rec_id id)
{
  recs[id].state = REC_SPARE;
  recs[id].next = spare;
  spare = id;
}

/* ---- the index ------------------------------------------------------------------------------- */

HOT uint32_t slot_of_stream(uint64_t address)
{
  return (uint32_t)((address >> 9) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & map.mask;
}

HOT uint32_t map_at(uint64_t address)
{
  uint32_t at = slot_of_stream(address);
  while (map.slots[at] && recs[map.slots[at]].address != address)
    at = (at + 1) & map.mask;
  return at;
}

HOT rec_id map_find(uint64_t address)
{
  return map.slots ? map.slots[map_at(address)] : 0;
}

static void map_put(rec_id id)
{
  map.slots[map_at(recs[id].address)] = id;
  map.count++;
}

/* Room for one more: at most half of the slots are taken. */
static bool map_ensure(void)
{
  if (map.slots && 2 * (map.count + 1) <= map.mask + 1) return true;
  uint32_t old = map.slots ? map.mask + 1 : 0, room = old ? 2 * old : 4096;
  rec_id *was = map.slots, *slots = pages_alloc(room * sizeof *slots);
  if (!slots) return false;
  map.slots = slots;
  map.mask = room - 1;
  map.count = 0;
  for (uint32_t i = 0; i < old; i++)
    if (was[i]) map_put(was[i]);
  if (was) (void)munmap(was, old * sizeof *was);
  return true;
}

/* Linear probing without tombstones: what was pushed on by the one that goes moves back. */
static void map_remove(rec_id id)
{
  uint32_t hole = map_at(recs[id].address);
  map.slots[hole] = 0;
  map.count--;
  for (uint32_t at = (hole + 1) & map.mask; map.slots[at]; at = (at + 1) & map.mask) {
    uint32_t home = slot_of_stream(recs[map.slots[at]].address);
    if (((at - home) & map.mask) < ((at - hole) & map.mask)) continue;
    map.slots[hole] = map.slots[at];
    map.slots[at] = 0;
    hole = at;
  }
}

/* Lock held. */
static void know_block(uint64_t address)
{
  if (address < atomic_load_explicit(&known_blocks.low, memory_order_relaxed))
    atomic_store_explicit(&known_blocks.low, address, memory_order_relaxed);
  if (address > atomic_load_explicit(&known_blocks.high, memory_order_relaxed))
    atomic_store_explicit(&known_blocks.high, address, memory_order_relaxed);
  atomic_fetch_add_explicit(&known_blocks.count, 1, memory_order_relaxed);
}

/* Needs no lock. False: no cache has a block at the address. */
HOT bool may_be_known(uint64_t address)
{
  return atomic_load_explicit(&known_blocks.count, memory_order_relaxed) &&
         address >= atomic_load_explicit(&known_blocks.low, memory_order_relaxed) &&
         address <= atomic_load_explicit(&known_blocks.high, memory_order_relaxed);
}

/* ---- lists ----------------------------------------------------------------------------------- */

HOT uint64_t round_up(uint64_t bytes)
{
  uint64_t unit = bytes <= SMALL_LIMIT ? SMALL_UNIT : LARGE_UNIT;
  return (bytes + unit - 1) / unit * unit;
}

HOT unsigned bin_of(uint64_t bytes)
{
  if (bytes <= SMALL_LIMIT) return (unsigned)(bytes / SMALL_UNIT) - 1;
  uint64_t n = SMALL_BINS + bytes / LARGE_UNIT - 1;
  return n < BINS - 1 ? (unsigned)n : BINS - 1;
}

HOT void push(rec_id *head, rec_id id)
{
  recs[id].prev = 0;
  recs[id].next = *head;
  if (*head) recs[*head].prev = id;
  *head = id;
}

HOT void pull(rec_id *head, rec_id id)
{
  rec *r = &recs[id];
  *(r->prev ? &recs[r->prev].next : head) = r->next;
  if (r->next) recs[r->next].prev = r->prev;
}

HOT void idle_in(block_cache *w, rec_id id, uint32_t now)
{
  rec *r = &recs[id];
  r->state = BLOCK_CACHE_IDLE;
  r->when = now;
  push(&w->bins[r->bin], id);
  r->newer = 0;
  r->older = w->newest;
  *(w->newest ? &recs[w->newest].newer : &w->oldest) = id;
  w->newest = id;
  w->stats.idle++;
  w->stats.idle_bytes += r->bytes;
}

HOT void idle_out(block_cache *w, rec_id id)
{
  rec *r = &recs[id];
  pull(&w->bins[r->bin], id);
  *(r->newer ? &recs[r->newer].older : &w->newest) = r->older;
  *(r->older ? &recs[r->older].newer : &w->oldest) = r->newer;
  w->stats.idle--;
  w->stats.idle_bytes -= r->bytes;
}

static void waiting_in(block_cache *w, rec_id id)
{
  recs[id].state = BLOCK_CACHE_WAITING;
  push(&w->waiting, id);
  w->in_bin[recs[id].bin]++;
  w->stats.waiting++;
  w->stats.waiting_bytes += recs[id].bytes;
}

/* An ended stream that nothing waits for and whose work is complete is forgotten. */
static void release_waiting(block_cache *w, stream *s)
{
  if (!s->ended || s->uses || s->marked > s->done) return;
  if (s->marker) (void)w->backend->event_destroy(w->backend->self, s->marker);
  *s = (stream){.used = false};
  w->ended--;
}

static void uses_drop(block_cache *w, rec_id id)
{
  for (rec_id u = recs[id].uses, next; u; u = next) {
    next = recs[u].next;
    stream *s = &w->streams[recs[u].stream];
    s->uses--;
    release_waiting(w, s);
    rec_drop(u);
  }
  recs[id].uses = 0;
}

static void waiting_out(block_cache *w, rec_id id)
{
  pull(&w->waiting, id);
  uses_drop(w, id);
  w->in_bin[recs[id].bin]--;
  w->stats.waiting--;
  w->stats.waiting_bytes -= recs[id].bytes;
}

/* Out of whatever list its state puts it in, and no more known. */
static void remove_block(rec_id id)
{
  block_cache *w = recs[id].cache;
  if (recs[id].state == BLOCK_CACHE_IDLE) idle_out(w, id);
  if (recs[id].state == BLOCK_CACHE_WAITING) waiting_out(w, id);
  if (recs[id].state == BLOCK_CACHE_LIVE) {
    w->stats.live--;
    w->stats.live_bytes -= recs[id].bytes;
  }
  map_remove(id);
  atomic_fetch_sub_explicit(&known_blocks.count, 1, memory_order_relaxed);
  rec_drop(id);
}

/* ---- streams --------------------------------------------------------------------------------- */

static stream *stream_known(block_cache *w, void *handle)
{
  for (unsigned i = 0; i < w->stream_count; i++) {
    stream *s = &w->streams[i];
    if (s->used && !s->ended && s->handle == handle) return s;
  }
  return NULL;
}

/* The same, or a slot for it; NULL: all are taken. */
static stream *stream_of_handle(block_cache *w, void *handle)
{
  stream *none = stream_known(w, handle);
  if (none) return none;
  for (unsigned i = 0; i < w->stream_count && !none; i++)
    if (!w->streams[i].used) none = &w->streams[i];
  if (!none && w->stream_count < STREAMS) none = &w->streams[w->stream_count++];
  if (none) *none = (stream){.handle = handle, .used = true, .epoch = 1};
  return none;
}

static bool capturing(const block_cache *w, const stream *s)
{
  const weir_backend *b = w->backend;
  return b->stream_capturing && b->stream_capturing(b->self, s->handle);
}

static weir_status mark_stream(block_cache *w, stream *s)
{
  const weir_backend *b = w->backend;
  weir_status st = WEIR_OK;
  if (capturing(w, s)) return weir_fail(WEIR_ENOTSUP, "a stream capture is live");
  if (!s->marker) st = b->event_create(b->self, &s->marker);
  if (!st) st = b->event_record(b->self, s->marker, s->handle);
  if (!st) s->marked = s->epoch++;
  return st;
}

/* Brings `done` up to date; marks what no marker covers yet. */
static void query_stream(block_cache *w, stream *s)
{
  const weir_backend *b = w->backend;
  for (int i = 0; i < 2; i++) {
    bool complete = false;
    if (s->marked > s->done) {
      if (capturing(w, s) || b->event_query(b->self, s->marker, &complete) || !complete) return;
      s->done = s->marked;
    }
    if (i || s->ended || s->dirty <= s->done || mark_stream(w, s)) return;
  }
}

static bool uses_complete(const block_cache *w, rec_id id)
{
  for (rec_id u = recs[id].uses; u; u = recs[u].next)
    if (recs[u].serial > w->streams[recs[u].stream].done) return false;
  return true;
}

/* Waiting blocks whose work is complete become idle. */
static void settle_waiting(block_cache *w)
{
  uint32_t now = time_now();
  for (rec_id id = w->waiting, next; id; id = next) {
    next = recs[id].next;
    if (!uses_complete(w, id)) continue;
    waiting_out(w, id);
    idle_in(w, id, now);
  }
}

static void poll_streams(block_cache *w)
{
  if (!w->waiting) return;
  for (unsigned i = 0; i < w->stream_count; i++)
    if (w->streams[i].uses) query_stream(w, &w->streams[i]);
  settle_waiting(w);
}

/* ---- giving back ----------------------------------------------------------------------------- */

/* A block goes back. The lock is let go for the call: the block is in no list then, and the index
 * forgets it before the device can hand out its address again. */
static weir_status free_to_device(block_cache *w, rec_id id, block_cache_reason why)
{
  const weir_backend *b = w->backend;
  block_cache_freed g = {recs[id].address, recs[id].bytes, 0, why};
  unsigned bin = bin_of(g.bytes);
  remove_block(id);
  w->freed_count[bin]++;
  w->why[bin] = (uint8_t)why;
  atomic_fetch_add(&freeing, 1);
  bias_unlock(&lock);
  g.start = clock_ticks();
  weir_status st = b->source.segment_free(b->self, g.address, g.bytes);
  atomic_fetch_add(&freed_so_far, 1);
  atomic_fetch_sub(&freeing, 1);
  if (w->options.on_given) w->options.on_given(b->self, &g);
  bias_lock(&lock);
  w->stats.device_frees++;
  w->stats.given_back += g.bytes;
  return st;
}

static weir_status trim_idle(block_cache *w, uint64_t keep, block_cache_reason why)
{
  weir_status st = WEIR_OK;
  while (!st && w->oldest && w->stats.idle_bytes > keep)
    st = free_to_device(w, w->oldest, why);
  return st;
}

HOT bool aged(const block_cache *w, uint32_t now)
{
  return w->oldest && w->options.decay_ms &&
         now - recs[w->oldest].when >= (uint32_t)w->options.decay_ms;
}

__attribute__((noinline)) static void free_some(block_cache *w, uint32_t now)
{
  uint64_t most = w->options.keep_bytes;
  if (w->stats.idle_bytes + w->stats.waiting_bytes > most) {
    poll_streams(w);
    (void)trim_idle(w, w->stats.waiting_bytes < most ? most - w->stats.waiting_bytes : 0,
                    BLOCK_CACHE_LIMIT);
  }
  while (aged(w, now))
    if (free_to_device(w, w->oldest, BLOCK_CACHE_DECAY)) return;
}

/* What is cached keeps below the bound, as far as it is complete, and what is old goes. */
HOT void decay_idle(block_cache *w, uint32_t now)
{
  if (w->stats.idle_bytes + w->stats.waiting_bytes > w->options.keep_bytes || aged(w, now))
    free_some(w, now);
}

/* ---- blocks out and in ----------------------------------------------------------------------- */

HOT void live_in(block_cache *w, rec_id id, uint64_t requested)
{
  recs[id].state = BLOCK_CACHE_LIVE;
  recs[id].requested = requested;
  recs[id].serial = ++serial;
  w->stats.live++;
  w->stats.live_bytes += recs[id].bytes;
}

HOT rec_id find_idle(const block_cache *w, unsigned bin, uint64_t bytes)
{
  rec_id id = w->bins[bin];
  while (id && recs[id].bytes != bytes) /* only in the last bin */
    id = recs[id].next;
  return id;
}

/* New memory. Lock held, let go for the calls to the device. */
static weir_status from_device(block_cache *w, uint64_t bytes, uint64_t *address)
{
  const weir_backend *b = w->backend;
  for (int tries = 0;; tries++) {
    bias_unlock(&lock);
    weir_status st = b->source.segment_alloc(b->self, bytes, address);
    bias_lock(&lock);
    w->stats.device_allocs++;
    if (st != WEIR_EOOM || tries) return st;
    poll_streams(w);
    (void)trim_idle(w, 0, BLOCK_CACHE_TRIM);
  }
}

/* Why a block of this size had to be made; each block given back is blamed once. */
static block_cache_reason miss_reason(block_cache *w, uint64_t bytes)
{
  unsigned bin = bin_of(bytes);
  block_cache_reason last = (block_cache_reason)w->why[bin];
  if (w->in_bin[bin]) return BLOCK_CACHE_WAITED_FOR;
  if (w->freed_count[bin]) {
    w->freed_count[bin]--;
    return last;
  }
  if (last) return BLOCK_CACHE_IN_USE;
  w->why[bin] = BLOCK_CACHE_FIRST;
  return BLOCK_CACHE_FIRST;
}

/* A live block, found by its address from here on; 0: no memory for it. Lock held. */
static rec_id rec_live(block_cache *w, uint64_t asked, uint64_t bytes, uint64_t address)
{
  rec_id id = map_ensure() ? rec_new() : 0;
  if (!id) return 0;
  recs[id].address = address;
  recs[id].bytes = bytes;
  recs[id].bin = bin_of(bytes);
  recs[id].cache = w;
  map_put(id);
  know_block(address);
  live_in(w, id, asked);
  return id;
}

/* Lock held. */
static weir_status adopt_block(block_cache *w, uint64_t asked, uint64_t bytes, uint64_t address)
{
  /* The device gives an address that we have: it was freed without our knowledge. */
  rec_id id = map_find(address);
  if (id) remove_block(id);
  id = rec_live(w, asked, bytes, address);
  if (!id) return no_record_memory();
  recs[id].why = (uint8_t)miss_reason(w, bytes);
  w->stats.misses++;
  return WEIR_OK;
}

static weir_status alloc_missed(block_cache *w, uint64_t asked, uint64_t bytes, uint64_t *address)
{
  weir_status st = from_device(w, bytes, address);
  if (st) return st;
  st = adopt_block(w, asked, bytes, *address);
  if (st) (void)w->backend->source.segment_free(w->backend->self, *address, bytes);
  return st;
}

/* Lock held. */
HOT bool reuse(block_cache *w, uint64_t asked, uint64_t bytes, uint64_t *address)
{
  unsigned bin = bin_of(bytes);
  rec_id id = find_idle(w, bin, bytes);
  if (!id && w->in_bin[bin]) {
    poll_streams(w);
    id = find_idle(w, bin, bytes);
  }
  if (!id) return false;
  idle_out(w, id);
  live_in(w, id, asked);
  recs[id].why = BLOCK_CACHE_HIT;
  *address = recs[id].address;
  w->stats.hits++;
  return true;
}

HOT bool sane(uint64_t asked)
{
  return asked && asked <= UINT64_MAX - LARGE_UNIT;
}

weir_status block_cache_malloc(block_cache *w, uint64_t asked, uint64_t *address, bool *hit)
{
  if (!sane(asked))
    return weir_fail(WEIR_EOOM, "%llu bytes are none a device has", (unsigned long long)asked);
  uint64_t bytes = round_up(asked);
  HOLD_LOCK;
  *hit = reuse(w, asked, bytes, address);
  return *hit ? WEIR_OK : alloc_missed(w, asked, bytes, address);
}

bool block_cache_reuse(block_cache *w, uint64_t asked, uint64_t *address)
{
  HOLD_LOCK;
  return sane(asked) && reuse(w, asked, round_up(asked), address);
}

weir_status block_cache_adopt(block_cache *w, uint64_t asked, uint64_t address)
{
  HOLD_LOCK;
  return adopt_block(w, asked, round_up(asked), address);
}

uint64_t block_cache_round(uint64_t bytes)
{
  return sane(bytes) ? round_up(bytes) : bytes;
}

static weir_status add_use(rec_id id, block_cache *w, stream *s)
{
  if (!s)
    return weir_fail(WEIR_ELIMIT, "more than %d streams have work that a cached block waits for",
                     STREAMS);
  rec_id u = rec_new();
  if (!u) return no_record_memory();
  recs[u].state = REC_USE;
  recs[u].stream = (uint16_t)(s - w->streams);
  recs[u].serial = s->ended ? s->marked : s->epoch;
  if (!s->ended) s->dirty = s->epoch;
  recs[u].next = recs[id].uses;
  recs[id].uses = u;
  s->uses++;
  return WEIR_OK;
}

/* All uses of a block that is freed, or none: the streams named and those that ended busy. */
__attribute__((noinline)) static weir_status uses_make(block_cache *w, rec_id id,
                                                       void *const *streams, unsigned count)
{
  weir_status st = WEIR_OK;
  for (unsigned i = 0; i < count && !st; i++)
    st = add_use(id, w, stream_of_handle(w, streams[i]));
  for (unsigned i = 0; i < w->stream_count && !st; i++) {
    stream *s = &w->streams[i];
    if (!s->used || !s->ended) continue;
    query_stream(w, s);
    if (s->marked > s->done)
      st = add_use(id, w, s);
    else
      release_waiting(w, s);
  }
  if (st) uses_drop(w, id);
  return st;
}

static weir_status fail_not_live(uint64_t address)
{
  return weir_fail(WEIR_EINVAL, "0x%llx is not a live block of a cache",
                   (unsigned long long)address);
}

/* Lock held. The live block goes into its cache. */
HOT weir_status put_block_back(rec_id id, void *const *streams, unsigned count, uint32_t now,
                               bool *full)
{
  block_cache *w = recs[id].cache;
  weir_status st = count || w->ended ? uses_make(w, id, streams, count) : WEIR_OK;
  if (st) return st;
  w->stats.live--;
  w->stats.live_bytes -= recs[id].bytes;
  recs[id].serial = ++w->clock;
  if (recs[id].uses)
    waiting_in(w, id);
  else
    idle_in(w, id, now);
  decay_idle(w, now);
  *full = w->stats.waiting_bytes > w->options.keep_bytes;
  return WEIR_OK;
}

/* Lock held. */
static rec_id live_at(uint64_t address)
{
  rec_id id = map_find(address);
  return id && recs[id].state == BLOCK_CACHE_LIVE ? id : 0;
}

weir_status block_cache_free(uint64_t address, void *const *streams, unsigned count, bool *full)
{
  HOLD_LOCK;
  rec_id id = live_at(address);
  return id ? put_block_back(id, streams, count, time_now(), full) : fail_not_live(address);
}

/* Lock held. */
HOT bool still(const block_cache_block *b)
{
  const rec *r = &recs[b->record];
  return b->record && r->state == BLOCK_CACHE_LIVE && r->address == b->address &&
         r->serial == b->serial;
}

weir_status block_cache_release(const block_cache_block *b, void *const *streams, unsigned count,
                                uint64_t ticks, bool *full)
{
  HOLD_LOCK;
  if (!still(b)) return fail_not_live(b->address);
  return put_block_back(b->record, streams, count, time_at(ticks), full);
}

bool block_cache_forget(uint64_t address)
{
  HOLD_LOCK;
  rec_id id = live_at(address);
  if (id) remove_block(id);
  return id != 0;
}

void block_cache_forget_stale(uint64_t address)
{
  if (!may_be_known(address)) return;
  HOLD_LOCK;
  rec_id id = map_find(address);
  if (id) remove_block(id);
}

bool block_cache_detach(const block_cache_block *b)
{
  HOLD_LOCK;
  bool live = still(b);
  if (live) remove_block(b->record);
  return live;
}

/* Without memory for a record the block is the driver's from here on. */
void block_cache_reattach(block_cache *w, const block_cache_block *b)
{
  HOLD_LOCK;
  rec_id id = map_find(b->address) ? 0 : rec_live(w, b->requested, b->bytes, b->address);
  if (!id) return;
  recs[id].serial = b->serial;
  recs[id].why = (uint8_t)b->why;
}

block_cache_block block_cache_find(uint64_t address)
{
  if (!may_be_known(address)) return (block_cache_block){.state = BLOCK_CACHE_NONE};
  HOLD_LOCK;
  rec_id id = map_find(address);
  if (!id) return (block_cache_block){.state = BLOCK_CACHE_NONE};
  const rec *r = &recs[id];
  return (block_cache_block){(block_cache_state)r->state,
                             r->cache->backend,
                             r->address,
                             r->state == BLOCK_CACHE_LIVE ? r->requested : 0,
                             r->bytes,
                             r->serial,
                             (block_cache_reason)r->why,
                             id};
}

uint64_t block_cache_serial(void)
{
  HOLD_LOCK;
  return serial + 1;
}

/* ---- what the program did -------------------------------------------------------------------- */

uint64_t block_cache_clock(block_cache *w)
{
  HOLD_LOCK;
  return w->clock;
}

void block_cache_complete(block_cache *w, uint64_t before)
{
  HOLD_LOCK;
  uint32_t now = time_now();
  for (rec_id id = w->waiting, next; id; id = next) {
    next = recs[id].next;
    if (recs[id].serial > before) continue;
    waiting_out(w, id);
    idle_in(w, id, now);
  }
  decay_idle(w, now);
}

void block_cache_age(block_cache *w)
{
  HOLD_LOCK;
  decay_idle(w, time_now());
}

weir_status block_cache_stream_ends(block_cache *w, void *handle, bool busy)
{
  HOLD_LOCK;
  stream *s = stream_known(w, handle);
  if (!s && busy && !(s = stream_of_handle(w, handle)))
    return weir_fail(WEIR_ELIMIT, "more than %d streams have work", STREAMS);
  weir_status st = s && (busy || s->uses) ? mark_stream(w, s) : WEIR_OK;
  if (!s || st) return st;
  s->ended = true;
  w->ended++;
  release_waiting(w, s);
  return WEIR_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

weir_status block_cache_trim(block_cache *w, uint64_t keep)
{
  HOLD_LOCK;
  poll_streams(w);
  return trim_idle(w, keep, BLOCK_CACHE_TRIM);
}

weir_status block_cache_trim_waiting(block_cache *w)
{
  HOLD_LOCK;
  weir_status st = WEIR_OK;
  while (!st && w->waiting)
    st = free_to_device(w, w->waiting, BLOCK_CACHE_TRIM);
  return st;
}

uint64_t block_cache_move_count(void)
{
  HOLD_LOCK;
  return atomic_load(&freed_so_far) + serial;
}

bool block_cache_is_freeing(void)
{
  return atomic_load(&freeing) != 0;
}

void block_cache_get_stats(block_cache *w, block_cache_counters *out)
{
  HOLD_LOCK;
  poll_streams(w);
  *out = w->stats;
}

weir_status block_cache_open(block_cache **out, const weir_backend *backend,
                             const block_cache_options *options)
{
  block_cache *w = pages_alloc(sizeof *w);
  if (!w) return no_record_memory();
  w->backend = backend;
  w->options = *options;
  *out = w;
  return WEIR_OK;
}

void block_cache_abandon(block_cache *w)
{
  bias_lock(&lock);
  for (rec_id id = 1; id < recs_end; id++)
    if (recs[id].cache == w && recs[id].state <= BLOCK_CACHE_IDLE && recs[id].state) {
      for (unsigned i = 0; i < w->stream_count; i++)
        w->streams[i].marker = NULL; /* gone with the context */
      remove_block(id);
    }
  bias_unlock(&lock);
  (void)munmap(w, sizeof *w);
}
