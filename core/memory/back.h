/* back.h: what back.c, vmm.c, trim.c and stitch.c know of each other. All with the pool's lock
 * held. */
#ifndef WEIR_MEMORY_BACK_H
#define WEIR_MEMORY_BACK_H

#include "core/memory/pool.h"

enum { HOLE_LOOKS = 1024 }; /* holes that a plan compares */

/* How to grow: the piece of a hole to map. */
typedef struct grow_plan {
  block_id hole;   /* where to map, 0: nowhere */
  block_id beside; /* free block that the new memory extends, 0: none */
  block_id other;  /* free block on the other side, where the whole hole is filled */
  uint64_t bytes;  /* to map */
  bool at_end;     /* of the hole: `beside` is its right neighbour */
} grow_plan;

static inline uint64_t page_up(uint64_t value, uint64_t page)
{
  return (value + page - 1) & ~(page - 1);
}

static inline bool has_vmm(const mem_pool *p)
{
  return p->space != 0;
}

/* vmm.c. What the device gave in `ranges` pieces, below 0: what it has again. */
void vmm_count(mem_pool *p, int64_t bytes, int64_t ranges);
/* Makes pages until `count` are spare. */
weir_status vmm_make(mem_pool *p, uint64_t count);
/* Maps spare pages from `address` on, at most `bytes`; *done grows by what was mapped. */
weir_status vmm_map_spare(mem_pool *p, uint64_t address, uint64_t bytes, uint64_t *done);
/* Whether the place has a page: one that is stuck in a hole, which ends here. */
bool vmm_stuck(mem_pool *p, uint64_t address);
/* The whole pages in a free block: bytes, and where they begin. */
uint64_t vmm_whole(const mem_pool *p, const mem_block *b, uint64_t *from);
/* Turns whole pages of an idle block into a hole, and makes them spare; fewer than asked for where
 * it fails half way. */
weir_status vmm_drop(mem_pool *p, block_id id, uint64_t from, uint64_t bytes);
weir_status vmm_destroy_spare(mem_pool *p);
/* Unmaps what a failure once left in a hole. */
weir_status vmm_unstick(mem_pool *p);
uint64_t *back_place(const mem_pool *p, uint64_t address); /* its entry in p->pages */
/* Takes [from, from + bytes) out of a free block of h, or a hole; it is in no heap. Two records
 * ensured. */
block_id back_cut(mem_heap *h, block_id id, uint64_t from, uint64_t bytes);
/* A block that is in no heap becomes a hole that is still mapped, for the work of its heap up to
 * `stamp` that may touch it. */
void back_leave(mem_pool *p, block_id id, const mem_heap *h, uint64_t stamp);

/* back.c. */
/* How much of a free neighbour serves heap h: its own blocks and idle ones. */
uint64_t back_usable_bytes(const mem_heap *h, block_id id);
/* Bytes of new pages that the plan takes: what is neither spare nor can be lent. */
uint64_t back_fresh(const mem_heap *h, const grow_plan *pl);
/* Maps as planned (bytes 0: nothing). WEIR_ELIMIT: not below `limit` bytes. */
weir_status back_fill(mem_heap *h, grow_plan *pl, uint64_t limit);

/* stitch.c. Grows h to a free block of >= `bytes` with fewer new pages than `fresh` bytes, by
 * pieces of pages. WEIR_EOOM: there are no such pieces, and nothing has changed. */
weir_status stitch_grow(mem_heap *h, uint64_t bytes, uint64_t fresh, uint64_t limit);
/* Takes pieces home that are free where they serve, since `before` (ms; wrap-safe): all that are
 * idle, or (h not NULL) only those, of h or idle, that make a whole page free. How many. */
unsigned stitch_undo(mem_pool *p, const mem_heap *h, uint32_t before);

#endif
