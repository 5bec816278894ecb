/* rmm.c: the policy "rmm-pool": a model of RAPIDS RMM's pool_memory_resource.
 *
 * Source: RMM's documentation of pool_memory_resource, and the behaviour described and shown in
 * github.com/rapidsai/rmm, include/rmm/mr/pool_memory_resource.hpp and
 * detail/{stream_ordered_memory_resource,coalescing_free_list}.hpp (26.04, whose pool `make
 * bench-peers` compares it with). What is modelled:
 *
 * - Sizes are rounded up to 256 bytes. Each stream has a list of free blocks, which are joined with
 *   free neighbours of the same list and the same upstream allocation as they come.
 * - A request looks in its own stream's list for the smallest block that fits, the lowest address
 *   first; then in the other streams' lists, one after the other, as they are; then it merges the
 *   other lists into its own one by one until a block fits; then the pool grows. To take a block of
 *   another list, or the list, the stream waits for that list's event. Lists are visited in the
 *   order of their events, taken here as the order of their creation (RMM orders them by handle).
 * - What is left of a block goes to the list it was taken from; of new memory, to the stream's own.
 *   A free records the stream's event and puts the block into the list of the stream it was freed
 *   on.
 * - Growth: with a maximum, half of what is left up to it; without, as much as the pool has, so it
 *   doubles; always at least the request. When the driver refuses, half as much is tried, down to
 *   the request. Nothing is given back before the end.
 * - The initial pool is by default none here; RMM's Python default is half of the device.
 *
 * Counted: a segment call for each upstream allocation, also those that fail; no sync. */
#include "tools/replay/policy.h"
#include "tools/replay/set.h"
#include "tools/replay/slab.h"

#define ALIGNMENT  256u
#define PER_THREAD 2u /* cudaStreamPerThread: another stream in every thread */

typedef struct block {
  rp_node by_place;       /* while it is free */
  rp_node by_fit;         /* the same */
  uint64_t address, size; /* bytes */
  bool head;              /* begins an upstream allocation: not joined with what is before it */
} block;

typedef struct list {
  rp_set place; /* free blocks by address */
  rp_set fit;   /* the same by size, then address */
  bool there;   /* false: merged into another and not yet begun anew */
} list;

typedef struct heap {
  rp_driver *driver;
  struct {
    list *list; /* owned */
  } * lists;    /* owned; in the order of their events */
  size_t count, capacity;
  hash_map list_of; /* stream -> place in lists */
  rp_slab blocks;
  uint64_t pool;    /* bytes taken from the driver */
  uint64_t maximum; /* bytes; 0: unset */
} heap;

static weir_status rmm_no_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
}

static int blocks_by_place(const rp_node *left, const rp_node *right)
{
  uint64_t a = RP_HOLDER(left, const block, by_place)->address;
  uint64_t b = RP_HOLDER(right, const block, by_place)->address;
  return a < b ? -1 : a > b;
}

static int by_fit(const rp_node *left, const rp_node *right)
{
  const block *a = RP_HOLDER(left, const block, by_fit), *b = RP_HOLDER(right, const block, by_fit);
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return a->address < b->address ? -1 : a->address > b->address;
}

/* The list of the operation's stream, with its event; NULL: out of memory. */
static list *list_of(heap *h, uint64_t stream, uint32_t thread)
{
  bool added;
  uint64_t key = stream == PER_THREAD ? (uint64_t)thread << 32 | PER_THREAD : stream;
  uint64_t *place = hash_map_place(&h->list_of, key, &added);
  if (!place) return NULL;
  if (!added) return h->lists[*place].list;
  *place = h->count;
  list *l = calloc(1, sizeof *l);
  if (!l || !wr_grow(&h->lists, &h->capacity, h->count + 1, sizeof *h->lists)) {
    hash_map_remove(&h->list_of, key);
    free(l);
    return NULL;
  }
  *l = (list){.place = {.order = blocks_by_place}, .fit = {.order = by_fit}};
  return h->lists[h->count++].list = l;
}

static void unlist(list *l, block *b)
{
  rp_set_remove(&l->place, &b->by_place);
  rp_set_remove(&l->fit, &b->by_fit);
}

/* Puts `b` into `l`, joined with its free neighbours there. */
static void insert(heap *h, list *l, block *b)
{
  rp_node *after = rp_set_after(&l->place, &b->by_place);
  rp_node *before = rp_set_before(&l->place, &b->by_place);
  block *next = after ? RP_HOLDER(after, block, by_place) : NULL;
  block *previous = before ? RP_HOLDER(before, block, by_place) : NULL;
  l->there = true;
  if (next && !next->head && b->address + b->size == next->address) {
    unlist(l, next);
    b->size += next->size;
    rp_slab_put(&h->blocks, next);
  }
  if (previous && !b->head && previous->address + previous->size == b->address) {
    unlist(l, previous);
    previous->size += b->size;
    rp_slab_put(&h->blocks, b);
    b = previous;
  }
  rp_set_add(&l->place, &b->by_place);
  rp_set_add(&l->fit, &b->by_fit);
}

/* Takes the smallest that fits out of `l`, or NULL. */
static block *take_fit(list *l, uint64_t size)
{
  const block key = {.size = size};
  rp_node *found = rp_set_from(&l->fit, &key.by_fit);
  if (!found) return NULL;
  block *b = RP_HOLDER(found, block, by_fit);
  unlist(l, b);
  return b;
}

/* All of `from` goes to `into`, whose stream waits for the event of `from`. */
static void merge_streams(heap *h, list *into, list *from)
{
  rp_node *first;
  h->driver->stream_waits++;
  while ((first = rp_set_first(&from->place))) {
    block *b = RP_HOLDER(first, block, by_place);
    unlist(from, b);
    insert(h, into, b);
  }
  from->there = false;
}

/* A block of another list; *from is the list that what is left of it goes to. */
static block *take_from_others(heap *h, list *own, uint64_t size, bool merge_first, list **from)
{
  own->there = true;
  for (size_t i = 0; i < h->count; i++) {
    list *other = h->lists[i].list;
    if (other == own || !other->there) continue;
    if (merge_first) merge_streams(h, own, other);
    *from = merge_first ? own : other;
    block *b = take_fit(*from, size);
    if (!b) continue;
    if (!merge_first) h->driver->stream_waits++;
    return b;
  }
  *from = own;
  return NULL;
}

/* ---- growth ---------------------------------------------------------------------------------- */

/* Bytes to ask the driver for; 0: the request does not fit below the maximum. */
static uint64_t size_to_grow(const heap *h, uint64_t size)
{
  if (!h->maximum) return size > h->pool ? size : h->pool;
  uint64_t left = rp_round(h->maximum - h->pool, ALIGNMENT);
  if (size > left) return 0;
  return size > left / 2 ? size : left / 2;
}

static weir_status expand_pool(heap *h, uint64_t wish, uint64_t least, block **out)
{
  block *b = rp_slab_take(&h->blocks);
  if (!b) return rmm_no_memory();
  for (; wish >= least; wish = wish / 2 > least ? wish / 2 : least) {
    h->driver->segment_calls++;
    *b = (block){.address = rp_driver_take(h->driver, wish), .size = wish, .head = true};
    if (b->address) {
      h->pool += wish;
      *out = b;
      return WEIR_OK;
    }
    if (wish == least) break;
  }
  rp_slab_put(&h->blocks, b);
  return WEIR_EOOM;
}

/* ---- the policy ------------------------------------------------------------------------------ */

static void rmm_close(void *at)
{
  heap *h = at;
  for (size_t i = 0; i < h->count; i++)
    free(h->lists[i].list);
  free(h->lists);
  hash_map_free(&h->list_of);
  rp_slab_free(&h->blocks);
  free(h);
}

static weir_status rmm_open(void **out, rp_driver *driver, const rp_options *o)
{
  heap *h = calloc(1, sizeof *h);
  uint64_t initial = rp_round(o->initial_pool_size, ALIGNMENT);
  block *b = NULL;
  if (!h) return rmm_no_memory();
  h->driver = driver;
  h->blocks.size = sizeof(block);
  h->maximum = o->maximum_pool_size / ALIGNMENT * ALIGNMENT;
  weir_status st = WEIR_OK;
  if (h->maximum && initial > h->maximum)
    st = weir_fail(WEIR_EINVAL, "rmm-pool: the initial pool size exceeds the maximum pool size");
  else if (initial)
    st = expand_pool(h, initial, initial, &b);
  if (st == WEIR_EOOM)
    st = weir_fail(WEIR_EOOM, "rmm-pool: an initial pool of %llu bytes does not fit",
                   (unsigned long long)initial);
  list *l = !st && b ? list_of(h, 0, 0) : NULL;
  if (!st && b && !l) st = rmm_no_memory();
  if (l) insert(h, l, b);
  if (st)
    rmm_close(h);
  else
    *out = h;
  return st;
}

static weir_status rmm_alloc(void *at, const rp_op *op, void **out, uint64_t *address)
{
  heap *h = at;
  uint64_t size = rp_round(op->bytes, ALIGNMENT);
  weir_status st = WEIR_OK;
  list *own = list_of(h, op->stream, op->thread), *from = own;
  block *rest = rp_slab_take(&h->blocks); /* first, so that nothing fails half-way */
  if (!own || !rest) return rmm_no_memory();
  block *b = take_fit(own, size);
  if (!b) b = take_from_others(h, own, size, false, &from);
  if (!b) b = take_from_others(h, own, size, true, &from);
  if (!b) st = expand_pool(h, size_to_grow(h, size), size, &b);
  if (st || b->size == size) {
    rp_slab_put(&h->blocks, rest);
  } else {
    *rest = (block){.address = b->address + size, .size = b->size - size};
    b->size = size;
    insert(h, from, rest);
  }
  if (st) return st;
  *out = b;
  *address = b->address;
  return WEIR_OK;
}

static weir_status rmm_free(void *at, const rp_op *op, void *one)
{
  heap *h = at;
  list *l = list_of(h, op->stream, op->thread);
  if (!l) return rmm_no_memory();
  h->driver->events++;
  insert(h, l, one);
  return WEIR_OK;
}

const rp_policy rp_rmm_pool = {
    "rmm-pool", "RMM's pool_memory_resource", rmm_open, rmm_alloc, rmm_free, rmm_close};
