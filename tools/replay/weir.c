/* weir.c: the policies "weir" and "weir-segments": not models, but the engine itself
 * (core/memory) over a device that only counts: with VMM, pages of 2 MiB in one reservation, and
 * with segments as from cudaMalloc.
 *
 * - A stream of the list is a stream of the pool; each thread of the list has its own identity
 *   among the engine's thread caches, so a block that one thread frees and another allocated goes
 * the same way as in a program with those threads. The list's order is the order of the calls.
 * - A block freed on another stream than its own gets weir_record_stream() for it first.
 * - The engine's clock is the list's, so memory decays as it would have.
 * - An event is complete at the next allocation after its record, not in the same call: an engine
 *   that records late finds out late.
 *
 * Counted, as of the peers: a segment call for each page mapped (made with it, or kept and mapped
 * again) and each page unmapped, each cudaMalloc and cudaFree; a sync for each wait of the host and
 * each cudaFree; stream waits and events. Pages the engine holds unmapped count as reserved.
 *
 * The map from addresses to blocks is the process's, so every pool has addresses of its own: they
 * are given out by a counter that begins anew when no pool is open. So do the classes of sizes that
 * were learned. */
#include <stdlib.h>
#include "core/memory/pool.h"
#include "tools/replay/policy.h"

#define PAGE        (2 * RP_MIB)
#define ADDRESS_END (UINT64_C(1) << 47)
#define PER_THREAD  2u /* cudaStreamPerThread: another stream in every thread */

typedef struct event {
  uint64_t moment; /* allocations before its record */
} event;

typedef struct heap {
  weir_backend backend;
  rp_driver *driver;
  mem_pool *pool;
  hash_map streams; /* stream -> mem_heap */
  hash_map threads; /* thread -> tcache_thread, where it is not the one that runs */
  uint64_t moment;  /* allocations so far */
  uint64_t key;     /* of `stream` */
  mem_heap *stream;
} heap;

static uint64_t next_address = PAGE;
static unsigned open_pools;
static uint32_t now; /* ms, of the list */
/* Whose identity this thread has: of no heap, its own. */
static struct {
  heap *heap;
  uint32_t thread;
  tcache_thread *own;
} playing;

static weir_status engine_no_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
}

static uint32_t model_clock_ms(void)
{
  return now;
}

/* ---- the device ------------------------------------------------------------------------------ */

static weir_status device_full(void)
{
  return WEIR_EOOM;
}

static weir_status take_addresses(uint64_t bytes, uint64_t *address)
{
  uint64_t size = rp_round(bytes, PAGE);
  if (size > ADDRESS_END - next_address)
    return weir_fail(WEIR_ELIMIT, "replaying: out of addresses after %llu bytes of them",
                     (unsigned long long)next_address);
  *address = next_address;
  next_address += size;
  return WEIR_OK;
}

static weir_status counted_mem_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
  const rp_driver *d = ((heap *)self)->driver;
  *free_bytes = d->capacity - d->reserved;
  *total_bytes = d->capacity;
  return WEIR_OK;
}

static weir_status counted_segment_alloc(void *self, uint64_t bytes, uint64_t *address)
{
  rp_driver *d = ((heap *)self)->driver;
  d->segment_calls++;
  if (bytes > d->capacity - d->reserved) return device_full();
  weir_status st = take_addresses(bytes, address);
  if (!st) d->reserved += bytes;
  return st;
}

static weir_status counted_segment_free(void *self, uint64_t address, uint64_t bytes)
{
  rp_driver *d = ((heap *)self)->driver;
  (void)address;
  d->segment_calls++;
  d->syncs++;
  rp_driver_give(d, bytes);
  return WEIR_OK;
}

static weir_status counted_reserve(void *self, uint64_t bytes, uint64_t *address)
{
  (void)self;
  return take_addresses(bytes, address);
}

static weir_status counted_release(void *self, uint64_t address, uint64_t bytes)
{
  (void)self, (void)address, (void)bytes;
  return WEIR_OK;
}

static weir_status counted_create(void *self, uint64_t *page)
{
  rp_driver *d = ((heap *)self)->driver;
  if (PAGE > d->capacity - d->reserved) return device_full();
  d->reserved += PAGE;
  *page = 1;
  return WEIR_OK;
}

static weir_status counted_destroy(void *self, uint64_t page)
{
  (void)page;
  rp_driver_give(((heap *)self)->driver, PAGE);
  return WEIR_OK;
}

static weir_status counted_map(void *self, uint64_t address, uint64_t page)
{
  (void)address, (void)page;
  ((heap *)self)->driver->segment_calls++;
  return WEIR_OK;
}

static weir_status unmap_range(void *self, uint64_t address, uint64_t bytes)
{
  (void)address;
  ((heap *)self)->driver->segment_calls += bytes / PAGE;
  return WEIR_OK;
}

static weir_status allow_access(void *self, uint64_t address, uint64_t bytes)
{
  (void)self, (void)address, (void)bytes;
  return WEIR_OK;
}

static weir_status counted_event_create(void *self, void **out)
{
  (void)self;
  return (*out = calloc(1, sizeof(event))) ? WEIR_OK : engine_no_memory();
}

static weir_status counted_event_destroy(void *self, void *one)
{
  (void)self;
  free(one);
  return WEIR_OK;
}

static weir_status counted_event_record(void *self, void *one, void *stream)
{
  heap *h = self;
  (void)stream;
  ((event *)one)->moment = h->moment;
  h->driver->events++;
  return WEIR_OK;
}

static weir_status counted_event_query(void *self, void *one, bool *complete)
{
  *complete = ((event *)one)->moment < ((heap *)self)->moment;
  return WEIR_OK;
}

static weir_status counted_event_wait(void *self, void *stream, void *one)
{
  (void)stream, (void)one;
  ((heap *)self)->driver->stream_waits++;
  return WEIR_OK;
}

static weir_status counted_event_sync(void *self, void *one)
{
  (void)one;
  ((heap *)self)->driver->syncs++;
  return WEIR_OK;
}

static const weir_backend device = {
    .name = "counting",
    .source = {.mem_info = counted_mem_info,
               .segment_alloc = counted_segment_alloc,
               .segment_free = counted_segment_free,
               .page_bytes = PAGE,
               .reserve = counted_reserve,
               .release = counted_release,
               .create = counted_create,
               .destroy = counted_destroy,
               .map = counted_map,
               .unmap = unmap_range,
               .access = allow_access},
    .event_create = counted_event_create,
    .event_destroy = counted_event_destroy,
    .event_record = counted_event_record,
    .event_query = counted_event_query,
    .event_wait = counted_event_wait,
    .event_sync = counted_event_sync,
};

/* ---- who calls ------------------------------------------------------------------------------- */

/* This thread becomes thread `thread` of heap h's list; h NULL: itself. */
static weir_status become_thread(heap *h, uint32_t thread)
{
  if (playing.heap == h && playing.thread == thread) return WEIR_OK;
  uint64_t *to = h ? hash_map_place(&h->threads, thread, NULL) : (uint64_t *)(void *)&playing.own;
  uint64_t *from = playing.heap ? hash_map_get(&playing.heap->threads, playing.thread)
                                : (uint64_t *)(void *)&playing.own;
  if (!to || !from) return engine_no_memory();
  tcache_thread *next =
      (tcache_thread *)*to; /* the map may have moved `from`, not what is in `to` */
  *from = (uint64_t)tcache_thread_switch(next);
  playing.heap = h;
  playing.thread = thread;
  return WEIR_OK;
}

static weir_status heap_of_stream(heap *h, const rp_op *op, mem_heap **out)
{
  uint64_t key = op->stream;
  if (key == PER_THREAD) key = (uint64_t)op->thread << 32 | PER_THREAD;
  if (h->stream && h->key == key) {
    *out = h->stream;
    return WEIR_OK;
  }
  bool added;
  uint64_t *place = hash_map_place(&h->streams, key, &added);
  if (!place) return engine_no_memory();
  weir_status st = added ? pool_heap(h->pool, (void *)key, out) : WEIR_OK;
  if (st) {
    hash_map_remove(&h->streams, key);
    return st;
  }
  if (added) *place = (uint64_t)*out;
  *out = h->stream = (mem_heap *)*place;
  h->key = key;
  return WEIR_OK;
}

/* ---- the policies ---------------------------------------------------------------------------- */

static weir_status open_as(void **out, rp_driver *driver, bool expandable)
{
  heap *h = calloc(1, sizeof *h);
  if (!h) return engine_no_memory();
  pool_config config = pool_config_default;
  config.expandable = expandable;
  h->driver = driver;
  h->backend = device;
  h->backend.self = h;
  weir_status st = pool_new(&h->pool, &h->backend, &config);
  if (st) {
    free(h);
    return st;
  }
  h->pool->clock = model_clock_ms;
  h->pool->decayed = now = 0;
  open_pools++;
  *out = h;
  return WEIR_OK;
}

static weir_status engine_open(void **out, rp_driver *driver, const rp_options *options)
{
  (void)options;
  return open_as(out, driver, true);
}

static weir_status engine_open_segments(void **out, rp_driver *driver, const rp_options *options)
{
  (void)options;
  return open_as(out, driver, false);
}

static weir_status engine_alloc(void *at, const rp_op *op, void **block, uint64_t *address)
{
  heap *h = at;
  mem_heap *stream = NULL;
  h->moment++;
  now = (uint32_t)(op->time / 1000000);
  weir_status st = become_thread(h, op->thread);
  if (!st) st = heap_of_stream(h, op, &stream);
  if (st) return st;
  st = weir_tcache_malloc(stream, op->bytes, block);
  *address = (uint64_t)*block;
  return st == WEIR_ELIMIT ? WEIR_EOOM : st;
}

static weir_status engine_free(void *at, const rp_op *op, void *block)
{
  heap *h = at;
  mem_heap *stream = NULL;
  now = (uint32_t)(op->time / 1000000);
  weir_status st = become_thread(h, op->thread);
  if (!st) st = heap_of_stream(h, op, &stream);
  if (!st) st = pool_use(block, stream);
  return st ? st : weir_tcache_free(block);
}

typedef struct some {
  void *block[256];
  size_t count;
} some;

static void collect_block(void *user, const mem_block *b)
{
  some *s = user;
  if (block_state(b) == BLOCK_LIVE && s->count < sizeof s->block / sizeof *s->block)
    s->block[s->count++] = (void *)b->address;
}

/* What the list never frees. */
static void free_rest(heap *h)
{
  for (some s = {.count = 1}; s.count;) {
    s.count = 0;
    pthread_mutex_lock(&h->pool->lock);
    pool_walk(h->pool, collect_block, &s);
    pthread_mutex_unlock(&h->pool->lock);
    for (size_t i = 0; i < s.count; i++)
      (void)weir_tcache_free(s.block[i]);
  }
}

static void end_threads(heap *h)
{
  uint64_t key, *thread;
  for (size_t at = 0; hash_map_next(&h->threads, &at, &key, &thread);)
    tcache_thread_end((tcache_thread *)*thread);
  hash_map_free(&h->threads);
}

static void engine_close(void *at)
{
  heap *h = at;
  (void)become_thread(NULL, 0);
  free_rest(h);
  (void)pool_free(h->pool);
  end_threads(h);
  hash_map_free(&h->streams);
  free(h);
  if (--open_pools) return;
  next_address = PAGE;
  class_forget();
}

const rp_policy rp_weir = {
    "weir", "Weir's engine with VMM pages", engine_open, engine_alloc, engine_free, engine_close};
const rp_policy rp_weir_segments = {"weir-segments",      "Weir's engine with segments",
                                    engine_open_segments, engine_alloc,
                                    engine_free,          engine_close};
