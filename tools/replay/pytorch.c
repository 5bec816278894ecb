/* pytorch.c: the policies "pytorch" and "pytorch-expandable": a model of PyTorch's native caching
 * allocator, with the default settings and with expandable_segments:True.
 *
 * Source: the CUDA semantics notes ("Memory management", "Optimizing memory usage with
 * PYTORCH_CUDA_ALLOC_CONF") and the behaviour described and shown in github.com/pytorch/pytorch,
 * c10/cuda/CUDACachingAllocator.cpp (2.5). What is modelled:
 *
 * - Sizes are rounded up to 512 bytes. Up to 1 MiB a request is of the small pool, else of the
 *   large one. A pool is a set of free blocks ordered by (stream, size, address); the first that is
 *   of the stream and not smaller serves (best fit).
 * - Otherwise a segment comes from the driver: 2 MiB for a small request, 20 MiB for less than
 *   10 MiB, else the request rounded up to 2 MiB.
 * - What is left is split off where it is 512 bytes or more (small), or more than 1 MiB (large,
 *   for requests below max_split_size). Neighbours of a segment are joined at the free.
 * - max_split_size: a smaller request takes no block of that size or more; one of that size or
 *   more takes none that is 20 MiB larger or beyond.
 * - When the driver refuses: with max_split_size, as many oversize blocks of the stream are given
 *   back as make up the request; then every whole cached segment; each time the driver is asked
 *   again.
 * - garbage_collection_threshold: before the driver is asked, when more than this part of the
 *   capacity is reserved, whole large segments not used for longer than the average go, until the
 *   excess is gone. PyTorch 2.15 does so only where per_process_memory_fraction is below 1, of
 * which the capacity is then taken.
 * - A block freed on another stream than its own counts as one with record_stream(): an event is
 *   recorded and the block is free when the event has passed, seen at the next allocation.
 * - expandable: a segment is address space for 9/8 of the device, one at first for each stream and
 *   pool, with memory in pages of 2 MiB (small) or 20 MiB (large). Memory is mapped at the lowest
 *   place where the request fits into free and unmapped space; 512 bytes are enough to split in
 *   either pool; a block in front of unmapped space counts, for best fit, as large as it could
 *   become. When the driver refuses, free whole pages are unmapped.
 *
 * Left out: private pools of captured graphs, rounding to divisions of powers of two, and
 * max_split_size together with expandable segments when the driver refuses.
 *
 * Counted: a segment call for each cudaMalloc and cudaFree, each page mapped or unmapped; a sync
 * for each cudaFree and each unmapping of a block. */
#include "tools/replay/policy.h"
#include "tools/replay/set.h"
#include "tools/replay/slab.h"

#define MIN_BLOCK       512u
#define SMALL_SIZE      RP_MIB
#define SMALL_BUFFER    (2 * RP_MIB)
#define LARGE_BUFFER    (20 * RP_MIB)
#define MIN_LARGE_ALLOC (10 * RP_MIB)
#define ROUND_LARGE     (2 * RP_MIB)
/* Address space of an expandable segment on a device nobody limits. */
#define WIDE (UINT64_C(1) << 44)

typedef struct segment { /* expandable only */
  uint64_t address;      /* where its pages are counted from */
} segment;

typedef struct block {
  rp_node node; /* in its pool's `free` or `unmapped` while it is neither used nor awaited */
  struct block *prev, *next; /* neighbours in its segment; NULL at its ends */
  struct block *waiting;     /* next in the list of those that wait for an event */
  segment *segment;          /* NULL: of cudaMalloc */
  uint64_t stream;
  uint64_t address, size; /* bytes */
  uint64_t since;         /* searches of the pool when it became free, for garbage collection */
  bool small;             /* its pool */
  bool unmapped;          /* address space without memory */
  bool used;              /* by the program, or waiting for an event */
} block;

typedef struct pool {
  rp_set free;       /* by stream, size, address */
  rp_set unmapped;   /* by stream, address */
  uint64_t searches; /* so far */
  uint64_t page;     /* bytes, expandable only */
  bool small;
} pool;

typedef struct heap {
  rp_driver *driver;
  pool large, small;
  uint64_t max_split_size; /* bytes; UINT64_MAX: unlimited */
  double gc_threshold;     /* of the capacity; 0: off */
  bool expandable;
  block *waiting, **last_waiting; /* freed, their event not seen to have passed; oldest first */
  rp_slab blocks, segments;
  bool no_memory; /* a block could not be made: the replay ends */
} heap;

static const block *holder(const rp_node *node)
{
  return RP_HOLDER(node, const block, node);
}

static block *block_holding(rp_node *node)
{
  return node ? RP_HOLDER(node, block, node) : NULL;
}

static int piece_by_place(const rp_node *left, const rp_node *right)
{
  const block *a = holder(left), *b = holder(right);
  if (a->stream != b->stream) return a->stream < b->stream ? -1 : 1;
  return a->address < b->address ? -1 : a->address > b->address;
}

static int piece_by_size(const rp_node *left, const rp_node *right)
{
  const block *a = holder(left), *b = holder(right);
  if (a->stream != b->stream) return a->stream < b->stream ? -1 : 1;
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return a->address < b->address ? -1 : a->address > b->address;
}

static pool *pool_of_size(heap *h, const block *b)
{
  return b->small ? &h->small : &h->large;
}

/* NULL: out of memory, which the heap remembers. */
static block *new_block(heap *h, block like)
{
  block *b = rp_slab_take(&h->blocks);
  if (b)
    *b = like;
  else
    h->no_memory = true;
  return b;
}

static void make_free(heap *h, block *b)
{
  pool *p = pool_of_size(h, b);
  b->since = p->searches;
  rp_set_add(&p->free, &b->node);
}

static void put_between(block *b, block *prev, block *next)
{
  b->prev = prev;
  b->next = next;
  if (prev) prev->next = b;
  if (next) next->prev = b;
}

/* Takes a free neighbour of the same kind, mapped or not, into `b`, which is in no set. */
static void merge_neighbour(heap *h, block *b, block *other)
{
  if (!other || other->used || other->unmapped != b->unmapped) return;
  pool *p = pool_of_size(h, b);
  rp_set_remove(other->unmapped ? &p->unmapped : &p->free, &other->node);
  if (b->prev == other) {
    b->address = other->address;
    b->prev = other->prev;
    if (b->prev) b->prev->next = b;
  } else {
    b->next = other->next;
    if (b->next) b->next->prev = b;
  }
  b->size += other->size;
  rp_slab_put(&h->blocks, other);
}

static void give_block_back(heap *h, block *b)
{
  b->used = false;
  merge_neighbour(h, b, b->prev);
  merge_neighbour(h, b, b->next);
  make_free(h, b);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Their events have passed: see policy.h on time. */
static void free_waiting(heap *h)
{
  while (h->waiting) {
    block *b = h->waiting;
    h->waiting = b->waiting;
    give_block_back(h, b);
  }
  h->last_waiting = &h->waiting;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static void release_segment(heap *h, block *b)
{
  rp_set_remove(&pool_of_size(h, b)->free, &b->node);
  rp_driver_give(h->driver, b->size);
  h->driver->segment_calls++;
  h->driver->syncs++;
  rp_slab_put(&h->blocks, b);
}

/* Gives back the whole pages within a free block of an expandable segment. */
static void unmap_pages(heap *h, block *b)
{
  pool *p = pool_of_size(h, b);
  uint64_t base = b->segment->address, end = b->address + b->size;
  uint64_t first = base + rp_round(b->address - base, p->page);
  uint64_t last = base + (end - base) / p->page * p->page;
  block *before = NULL, *after = NULL;
  if (first >= last) return;
  block like = {.segment = b->segment, .stream = b->stream, .small = b->small};
  if (first > b->address) before = new_block(h, like);
  if (end > last) after = new_block(h, like);
  if (h->no_memory) return;
  rp_set_remove(&p->free, &b->node);
  if (before) {
    before->address = b->address;
    before->size = first - b->address;
    put_between(before, b->prev, b);
    make_free(h, before);
  }
  if (after) {
    after->address = last;
    after->size = end - last;
    put_between(after, b, b->next);
    make_free(h, after);
  }
  b->address = first;
  b->size = last - first;
  b->unmapped = true;
  rp_driver_give(h->driver, b->size);
  h->driver->segment_calls += b->size / p->page;
  h->driver->syncs++;
  merge_neighbour(h, b, b->prev);
  merge_neighbour(h, b, b->next);
  if (b->prev || b->next) {
    rp_set_add(&p->unmapped, &b->node);
  } else { /* the segment is empty: its address space goes too */
    rp_slab_put(&h->segments, b->segment);
    rp_slab_put(&h->blocks, b);
  }
}

/* Every whole segment, or page, of a pool that nobody uses. Unmapping one free block neither makes
 * nor ends another that was there before: what it leaves at its ends is less than a page. */
static void release_pool(heap *h, pool *p)
{
  rp_node *next;
  for (rp_node *at = rp_set_first(&p->free); at; at = next) {
    block *b = block_holding(at), was = *b;
    next = rp_set_after(&p->free, at);
    if (b->segment) {
      unmap_pages(h, b);
      next = rp_set_after(&p->free, &was.node);
    } else if (!b->prev && !b->next) {
      release_segment(h, b);
    }
  }
}

/* PyTorch first waits for the events of blocks freed on other streams: here they have passed. */
static void release_cached(heap *h)
{
  release_pool(h, &h->large);
  release_pool(h, &h->small);
}

/* As many oversize blocks of the stream as make up the request. False: there are not enough. */
static bool release_oversize(heap *h, pool *p, const block *key)
{
  block wanted = *key;
  uint64_t released = 0;
  if (h->max_split_size == UINT64_MAX || h->expandable) return false;
  if (wanted.size < h->max_split_size) wanted.size = h->max_split_size;
  block *b = block_holding(rp_set_from(&p->free, &wanted.node));
  if (b && b->stream == wanted.stream) {
    release_segment(h, b);
    return true;
  }
  b = block_holding(rp_set_before(&p->free, &wanted.node));
  while (b && released < wanted.size && b->size >= h->max_split_size &&
         b->stream == wanted.stream) {
    block *smaller = block_holding(rp_set_before(&p->free, &b->node));
    released += b->size;
    release_segment(h, b);
    b = smaller;
  }
  return released >= wanted.size;
}

static void collect_garbage(heap *h)
{
  uint64_t limit = (uint64_t)(h->gc_threshold * (double)h->driver->capacity);
  uint64_t age = 0, count = 0, reclaimed = 0;
  if (h->driver->reserved <= limit) return;
  const uint64_t target = h->driver->reserved - limit;
  const pool *p = &h->large;
  for (rp_node *at = rp_set_first(&p->free); at; at = rp_set_after(&p->free, at))
    if (!holder(at)->prev && !holder(at)->next && !holder(at)->segment) {
      age += p->searches - holder(at)->since;
      count++;
    }
  for (bool freed = true; reclaimed < target && freed && count;) {
    double least = (double)age / (double)count;
    rp_node *next;
    freed = false;
    for (rp_node *at = rp_set_first(&p->free); at; at = next) {
      block *b = block_holding(at);
      next = rp_set_after(&p->free, at);
      if (b->prev || b->next || b->segment || (double)(p->searches - b->since) < least) continue;
      freed = true;
      reclaimed += b->size;
      age -= p->searches - b->since;
      count--;
      release_segment(h, b);
    }
  }
}

/* ---- expandable segments --------------------------------------------------------------------- */

static bool room_from(const block *b, uint64_t size)
{
  uint64_t bytes = 0;
  for (; b && !b->used && bytes < size; b = b->next)
    bytes += b->size;
  return bytes >= size;
}

/* The lowest place of the stream where `size` fits, in a new segment if need be. */
static block *find_room(heap *h, pool *p, uint64_t stream, uint64_t size)
{
  const block key = {.stream = stream};
  rp_node *at = rp_set_from(&p->unmapped, &key.node);
  for (; at && holder(at)->stream == stream; at = rp_set_after(&p->unmapped, at)) {
    block *b = block_holding(at);
    if (b->prev && !b->prev->used) b = b->prev;
    if (room_from(b, size)) return b;
  }
  uint64_t device = h->driver->capacity;
  uint64_t space = rp_round(device == RP_UNLIMITED ? WIDE : device + device / 8, p->page);
  uint64_t address = size <= space ? rp_driver_reserve(h->driver, space) : 0;
  if (!address) return NULL;
  segment *s = rp_slab_take(&h->segments);
  block *b = new_block(h, (block){.segment = s,
                                  .stream = stream,
                                  .address = address,
                                  .size = space,
                                  .small = p->small,
                                  .unmapped = true});
  if (!s || !b) {
    h->no_memory = true;
    return NULL;
  }
  s->address = address;
  rp_set_add(&p->unmapped, &b->node);
  return b;
}

/* Maps `size` bytes, rounded up to pages, at the beginning of an unmapped block. */
static bool map_pages(heap *h, pool *p, block *b, uint64_t size)
{
  uint64_t mapped = rp_round(size, p->page);
  block *rest = NULL;
  if (mapped > h->driver->capacity - h->driver->reserved) return false;
  if (mapped < b->size) {
    rest = new_block(h, *b);
    if (!rest) return false;
  }
  h->driver->reserved += mapped;
  h->driver->segment_calls += mapped / p->page;
  rp_set_remove(&p->unmapped, &b->node);
  b->unmapped = false;
  if (rest) {
    rest->address = b->address + mapped;
    rest->size = b->size - mapped;
    b->size = mapped;
    put_between(rest, b, b->next);
    rp_set_add(&p->unmapped, &rest->node);
  }
  merge_neighbour(h, b, b->prev);
  merge_neighbour(h, b, b->next);
  make_free(h, b);
  return true;
}

static block *take_expandable(heap *h, pool *p, const block *key)
{
  block *b = find_room(h, p, key->stream, key->size);
  if (!b) return NULL;
  if (b->unmapped && !map_pages(h, p, b, key->size < b->size ? key->size : b->size)) return NULL;
  while (b->size < key->size) { /* free, then unmapped space */
    block *next = b->next;
    uint64_t more = key->size - b->size;
    if (!map_pages(h, p, next, more < next->size ? more : next->size)) return NULL;
    b = next; /* which took b in */
  }
  rp_set_remove(&p->free, &b->node);
  return b;
}

/* ---- allocation ------------------------------------------------------------------------------ */

static uint64_t could_fit(const block *b)
{
  return b->size + (b->next && b->next->unmapped ? b->next->size : 0);
}

static block *find_free(heap *h, pool *p, const block *key)
{
  p->searches++;
  block *b = block_holding(rp_set_from(&p->free, &key->node));
  if (!b || b->stream != key->stream) return NULL;
  while (b->segment) {
    block *next = block_holding(rp_set_after(&p->free, &b->node));
    if (!next || next->stream != key->stream || could_fit(next) >= could_fit(b)) break;
    b = next;
  }
  if (key->size < h->max_split_size && b->size >= h->max_split_size) return NULL;
  if (key->size >= h->max_split_size && b->size >= key->size + LARGE_BUFFER) return NULL;
  rp_set_remove(&p->free, &b->node);
  return b;
}

static uint64_t segment_size(uint64_t size)
{
  if (size <= SMALL_SIZE) return SMALL_BUFFER;
  return size < MIN_LARGE_ALLOC ? LARGE_BUFFER : rp_round(size, ROUND_LARGE);
}

static block *take_segment(heap *h, pool *p, const block *key)
{
  if (h->no_memory) return NULL;
  if (h->expandable) return take_expandable(h, p, key);
  block *b = new_block(h, (block){.stream = key->stream, .small = p->small});
  if (!b) return NULL;
  b->size = segment_size(key->size);
  b->address = rp_driver_take(h->driver, b->size);
  h->driver->segment_calls++;
  if (b->address) return b;
  rp_slab_put(&h->blocks, b);
  return NULL;
}

static bool should_split(const heap *h, const block *b, uint64_t size)
{
  uint64_t rest = b->size - size;
  if (b->small || h->expandable) return rest >= MIN_BLOCK;
  return size < h->max_split_size && rest > SMALL_SIZE;
}

static block *find_block(heap *h, pool *p, const block *key)
{
  block *b = find_free(h, p, key);
  if (b) return b;
  if (h->gc_threshold > 0) collect_garbage(h);
  b = take_segment(h, p, key);
  if (!b && release_oversize(h, p, key)) b = take_segment(h, p, key);
  if (b || h->no_memory) return b;
  release_cached(h);
  return take_segment(h, p, key);
}

static weir_status pt_alloc(void *at, const rp_op *op, void **out, uint64_t *address)
{
  heap *h = at;
  const block key = {.stream = op->stream, .size = rp_round(op->bytes, MIN_BLOCK)};
  pool *p = key.size <= SMALL_SIZE ? &h->small : &h->large;
  free_waiting(h);
  block *b = find_block(h, p, &key);
  if (b && should_split(h, b, key.size)) {
    block *rest = new_block(h, *b);
    if (rest) {
      rest->address += key.size;
      rest->size -= key.size;
      b->size = key.size;
      put_between(rest, b, b->next);
      make_free(h, rest);
    }
  }
  if (h->no_memory) return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
  if (!b) return WEIR_EOOM;
  b->used = true;
  *out = b;
  *address = b->address;
  return WEIR_OK;
}

static weir_status pt_free(void *at, const rp_op *op, void *one)
{
  heap *h = at;
  block *b = one;
  if (op->stream == b->stream) {
    give_block_back(h, b);
    return WEIR_OK;
  }
  h->driver->events++;
  b->waiting = NULL;
  *h->last_waiting = b;
  h->last_waiting = &b->waiting;
  return WEIR_OK;
}

/* ---- the policies ---------------------------------------------------------------------------- */

static weir_status open_as(void **out, rp_driver *driver, const rp_options *o, bool expandable)
{
  if (o->max_split_size && o->max_split_size <= LARGE_BUFFER)
    return weir_fail(WEIR_EINVAL, "max_split_size is %llu bytes; pytorch wants more than 20 MiB",
                     (unsigned long long)o->max_split_size);
  heap *h = calloc(1, sizeof *h);
  if (!h) return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
  *h = (heap){.driver = driver,
              .large = {.page = LARGE_BUFFER},
              .small = {.page = SMALL_BUFFER, .small = true},
              .max_split_size = o->max_split_size ? o->max_split_size : UINT64_MAX,
              .gc_threshold = o->capacity ? o->gc_threshold : 0,
              .expandable = expandable,
              .blocks = {.size = sizeof(block)},
              .segments = {.size = sizeof(segment)}};
  h->large.free.order = h->small.free.order = piece_by_size;
  h->large.unmapped.order = h->small.unmapped.order = piece_by_place;
  h->last_waiting = &h->waiting;
  *out = h;
  return WEIR_OK;
}

static weir_status pt_open(void **heap, rp_driver *driver, const rp_options *options)
{
  return open_as(heap, driver, options, false);
}

static weir_status pt_open_expandable(void **heap, rp_driver *driver, const rp_options *options)
{
  return open_as(heap, driver, options, true);
}

static void pt_close(void *at)
{
  heap *h = at;
  rp_slab_free(&h->blocks);
  rp_slab_free(&h->segments);
  free(h);
}

const rp_policy rp_pytorch = {"pytorch", "PyTorch's caching allocator", pt_open, pt_alloc, pt_free,
                              pt_close};

const rp_policy rp_pytorch_expandable = {"pytorch-expandable",
                                         "the same with expandable_segments:True",
                                         pt_open_expandable,
                                         pt_alloc,
                                         pt_free,
                                         pt_close};
