/* malloc.c: the policy "malloc": every allocation is a cudaMalloc, every free a cudaFree.
 *
 * What the driver does with them, as one sees it with cudaMemGetInfo (NVIDIA documents only the
 * alignment of 256 bytes and that cudaFree may wait for the device; CUDA C++ Programming Guide,
 * "Device Memory", and the runtime API's page on cudaFree): it takes memory in pages of 2 MiB; more
 * than 1 MiB has pages of its own, less shares pages in pieces of 512 bytes, and a page with no
 * piece in use is given back. Pieces are found by best fit, then lowest address.
 *
 * Counted: a segment call for each cudaMalloc and cudaFree, a sync for each cudaFree. */
#include "tools/replay/policy.h"
#include "tools/replay/set.h"
#include "tools/replay/slab.h"

#define PAGE  (2 * RP_MIB)
#define PIECE 512u

typedef struct piece {
  rp_node node;              /* in `unused` while it is free */
  struct piece *prev, *next; /* neighbours in its page; NULL at its ends */
  uint64_t address, size;    /* bytes */
  bool used;
} piece;

typedef struct heap {
  rp_driver *driver;
  rp_set unused; /* free pieces of shared pages, by size, then address */
  rp_slab pieces;
} heap;

static int page_by_size(const rp_node *left, const rp_node *right)
{
  const piece *a = RP_HOLDER(left, const piece, node), *b = RP_HOLDER(right, const piece, node);
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return a->address < b->address ? -1 : a->address > b->address;
}

static weir_status malloc_open(void **out, rp_driver *driver, const rp_options *options)
{
  heap *h = calloc(1, sizeof *h);
  (void)options;
  if (!h) return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
  *h = (heap){
      .driver = driver, .unused = {.order = page_by_size}, .pieces = {.size = sizeof(piece)}};
  *out = h;
  return WEIR_OK;
}

/* A new free piece over all of `size` bytes from the driver; *out stays as it is on failure. */
static weir_status take_pages(heap *h, uint64_t size, piece **out)
{
  piece *p = rp_slab_take(&h->pieces);
  if (!p) return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
  *p = (piece){.address = rp_driver_take(h->driver, size), .size = size};
  if (!p->address) {
    rp_slab_put(&h->pieces, p);
    return WEIR_EOOM;
  }
  *out = p;
  return WEIR_OK;
}

static weir_status malloc_alloc(void *at, const rp_op *op, void **block, uint64_t *address)
{
  heap *h = at;
  bool shared = op->bytes <= RP_MIB;
  uint64_t size = rp_round(op->bytes, shared ? PIECE : PAGE);
  const piece key = {.size = size};
  rp_node *found = shared ? rp_set_from(&h->unused, &key.node) : NULL;
  piece *p = found ? RP_HOLDER(found, piece, node) : NULL;
  h->driver->segment_calls++;
  if (p) {
    rp_set_remove(&h->unused, &p->node);
  } else {
    weir_status st = take_pages(h, shared ? PAGE : size, &p);
    if (!p) return st;
  }
  if (p->size > size) {
    piece *rest = rp_slab_take(&h->pieces);
    if (!rest) return weir_fail(WEIR_ENOMEM, "replaying: out of host memory");
    *rest =
        (piece){.prev = p, .next = p->next, .address = p->address + size, .size = p->size - size};
    if (rest->next) rest->next->prev = rest;
    p->next = rest;
    p->size = size;
    rp_set_add(&h->unused, &rest->node);
  }
  p->used = true;
  *block = p;
  *address = p->address;
  return WEIR_OK;
}

/* `p` takes in its right neighbour. */
static void merge_right(heap *h, piece *p, piece *right)
{
  p->size += right->size;
  p->next = right->next;
  if (p->next) p->next->prev = p;
  rp_slab_put(&h->pieces, right);
}

static weir_status malloc_free(void *at, const rp_op *op, void *block)
{
  heap *h = at;
  piece *p = block;
  (void)op;
  h->driver->segment_calls++;
  h->driver->syncs++;
  p->used = false;
  if (p->next && !p->next->used) {
    rp_set_remove(&h->unused, &p->next->node);
    merge_right(h, p, p->next);
  }
  if (p->prev && !p->prev->used) {
    piece *left = p->prev;
    rp_set_remove(&h->unused, &left->node);
    merge_right(h, left, p);
    p = left;
  }
  if (p->prev || p->next) {
    rp_set_add(&h->unused, &p->node);
  } else {
    rp_driver_give(h->driver, p->size);
    rp_slab_put(&h->pieces, p);
  }
  return WEIR_OK;
}

static void malloc_close(void *at)
{
  heap *h = at;
  rp_slab_free(&h->pieces);
  free(h);
}

const rp_policy rp_malloc = {"malloc",    "cudaMalloc and cudaFree, nothing kept",
                             malloc_open, malloc_alloc,
                             malloc_free, malloc_close};
