/* vmm.c: pages of device memory (VMM): made, mapped, unmapped, left, spare.
 *
 * A page is mapped at one place of the address space, at two while it is lent (back.c), or at none:
 * then it is spare. What has no memory is a hole; a hole that is leaving is still mapped, for work
 * that may touch it, and settles when that is complete. */
#include <stdlib.h>
#include "core/memory/back.h"
#include "core/memory/history.h"

/* ---- pages ----------------------------------------------------------------------------------- */

void vmm_count(mem_pool *p, int64_t bytes, int64_t ranges)
{
  p->reserved += (uint64_t)bytes;
  p->segments += (uint64_t)ranges;
  stat_add(&p->reserved_stat, bytes);
  if ((uint64_t)llabs(bytes) >= p->config.max_split_bytes) stat_add(&p->oversize_segments, ranges);
  if (ranges) stat_add(&p->segment_stat, ranges);
  if (bytes > 0)
    p->device_allocs++;
  else
    p->device_frees++;
}

uint64_t *back_place(const mem_pool *p, uint64_t address)
{
  return &p->pages[(address - p->base) / p->backend->source.page_bytes];
}

/* Makes pages until `count` are spare. */
weir_status vmm_make(mem_pool *p, uint64_t count)
{
  const weir_source *s = &p->backend->source;
  weir_status st = WEIR_OK;
  while (p->spare_count < count) {
    if ((st = s->create(p->backend->self, &p->spare[p->spare_count]))) break;
    p->spare_count++;
    vmm_count(p, (int64_t)s->page_bytes, 1);
  }
  return st;
}

weir_status back_take_page(mem_pool *p, uint64_t *page)
{
  uint64_t bytes = p->backend->source.page_bytes, limit = pool_limit(p);
  if (!p->spare_count && (bytes > limit || p->reserved > limit - bytes)) return WEIR_ELIMIT;
  weir_status st = vmm_make(p, 1);
  if (!st) *page = p->spare[--p->spare_count];
  return st;
}

void back_give_page(mem_pool *p, uint64_t page)
{
  const weir_source *s = &p->backend->source;
  if (s->destroy(p->backend->self, page))
    p->spare[p->spare_count++] = page;
  else
    vmm_count(p, -(int64_t)s->page_bytes, -1);
}

/* Unmaps page by page; stops at the first failure. *done: bytes unmapped, from the left. A page
 * becomes spare, unless it was lent: then it has another place. */
static weir_status pages_unmap(mem_pool *p, uint64_t address, uint64_t bytes, uint64_t *done)
{
  const weir_source *s = &p->backend->source;
  for (*done = 0; *done < bytes; *done += s->page_bytes) {
    uint64_t *place = back_place(p, address + *done);
    TRY(s->unmap(p->backend->self, address + *done, s->page_bytes));
    if (*place) p->spare[p->spare_count++] = *place;
    *place = 0;
  }
  return WEIR_OK;
}

/* Whether the place has a page: one that is stuck in a hole, which ends here. */
bool vmm_stuck(mem_pool *p, uint64_t address)
{
  if (!p->stuck || !*back_place(p, address)) return false;
  p->stuck--;
  return true;
}

/* Maps spare pages from `address` on, at most `bytes`; *done grows by what was mapped. */
weir_status vmm_map_spare(mem_pool *p, uint64_t address, uint64_t bytes, uint64_t *done)
{
  const weir_source *s = &p->backend->source;
  for (uint64_t end = address + bytes; address < end; address += s->page_bytes) {
    if (!vmm_stuck(p, address)) {
      if (!p->spare_count) break;
      uint64_t page = p->spare[p->spare_count - 1];
      TRY(s->map(p->backend->self, address, page));
      *back_place(p, address) = page;
      p->spare_count--;
    }
    *done += s->page_bytes;
  }
  return WEIR_OK;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* A block that is in no heap becomes a hole that is still mapped, for the work of its heap up to
 * `stamp` that may touch it. */
void back_leave(mem_pool *p, block_id id, const mem_heap *h, uint64_t stamp)
{
  mem_block *b = block(id);
  block_set(b, BLOCK_HOLE);
  b->heap = h->number;
  b->stamp = stamp;
  b->next = p->leaving;
  p->leaving = id;
}

/* Makes the first `done` bytes of a leaving block a hole; what is left of it, 0: nothing. */
static block_id left_behind(mem_pool *p, block_id id, uint64_t done)
{
  mem_heap *holes = &p->common[HEAP_HOLE];
  uint16_t heap = block(id)->heap;
  block_id rest = 0;
  if (done < block(id)->bytes) {
    block_split(id, done, holes);
    rest = block(id)->right;
    heap_remove(holes, rest);
    block(rest)->heap = heap;
  }
  block(id)->stamp = 0;
  (void)block_give(holes, id);
  return rest;
}

/* What fails stays; the first failure is returned. */
weir_status back_settle(mem_pool *p)
{
  weir_status first = WEIR_OK;
  block_id id = p->leaving, kept = 0;
  for (block_id next; id; id = next) {
    const mem_block *b = block(id);
    uint64_t done = 0;
    next = b->next;
    if (b->stamp <= heap_table[b->heap]->done) {
      weir_status st = block_ensure(p, 1);
      if (!st) st = pages_unmap(p, b->address, b->bytes, &done);
      if (!first) first = st;
    }
    block_id rest = done ? left_behind(p, id, done) : id;
    if (!rest) continue;
    block(rest)->next = kept;
    kept = rest;
  }
  p->leaving = kept;
  return first;
}

/* ---- free blocks and holes ------------------------------------------------------------------- */

/* The whole pages in a free block. */
uint64_t vmm_whole(const mem_pool *p, const mem_block *b, uint64_t *from)
{
  uint64_t page = p->backend->source.page_bytes;
  *from = page_up(b->address, page);
  uint64_t to = (b->address + b->bytes) & ~(page - 1);
  return to > *from ? to - *from : 0;
}

/* Takes [from, from + bytes) out of a free block of h; it is in no heap. Records ensured. */
block_id back_cut(mem_heap *h, block_id id, uint64_t from, uint64_t bytes)
{
  heap_remove(h, id);
  if (from > block(id)->address) {
    block_split(id, from - block(id)->address, h);
    block_id piece = block(id)->right;
    heap_put(h, id);
    heap_remove(h, piece);
    id = piece;
  }
  block_split(id, bytes, h);
  return id;
}

/* Turns whole pages of an idle block into a hole, and makes them spare; fewer than asked for where
 * it fails half way. */
weir_status vmm_drop(mem_pool *p, block_id id, uint64_t from, uint64_t bytes)
{
  uint64_t done = 0;
  weir_status st = block_ensure(p, 2);
  if (!st) st = pages_unmap(p, from, bytes, &done);
  if (!done) return st;
  id = back_cut(&p->common[HEAP_IDLE], id, from, done);
  block(id)->stamp = 0;
  history_segment(p, ACTION_SEGMENT_UNMAP, id);
  (void)block_give(&p->common[HEAP_HOLE], id);
  return st;
}

weir_status vmm_destroy_spare(mem_pool *p)
{
  const weir_source *s = &p->backend->source;
  while (p->spare_count) {
    TRY(s->destroy(p->backend->self, p->spare[p->spare_count - 1]));
    p->spare_count--;
    vmm_count(p, -(int64_t)s->page_bytes, -1);
  }
  return WEIR_OK;
}

/* Unmaps what a failure once left in a hole. */
weir_status vmm_unstick(mem_pool *p)
{
  uint64_t page = p->backend->source.page_bytes, done;
  for (block_id id = p->stuck ? p->heads[0] : 0; id && p->stuck; id = block(id)->right) {
    const mem_block *b = block(id);
    for (uint64_t at = 0; block_state(b) == BLOCK_HOLE && at < b->bytes; at += page) {
      if (!p->pages[(b->address + at - p->base) / page]) continue;
      TRY(pages_unmap(p, b->address + at, page, &done));
      p->stuck--;
    }
  }
  return WEIR_OK;
}
