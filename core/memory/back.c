/* back.c: how the pool gets memory and gives it back.
 *
 * With VMM the pool reserves address space once, four times the device (twice where the driver has
 * no more: WSL 2 refuses tens of GiB; where it has not even that, segments serve), and all of it is
 * blocks: what has no memory is a hole. Growing turns the piece of a hole into a free block,
 * preferably a piece next to free memory, or between two, so that only the difference is mapped.
 * Trimming turns idle pages into holes; a page that is mapped nowhere is spare, or destroyed.
 * Without VMM a segment is a chain of its own.
 *
 * Where pages come from when a heap grows, memory being made only when all others are used up:
 *   1 spare pages
 *   2 whole pages in idle blocks, unmapped where they are
 *   3 whole pages in the heap's own free blocks, whose work may be pending: they are lent, that is,
 *     mapped at the new place as well. New work of the stream comes after the old, through
 * whichever address (CUDA C++ Programming Guide, "Virtual Aliasing Support": what one mapping wrote
 * is seen through another once the writing operation is complete). The old place becomes a hole
 *     that is leaving: mapped until that work is complete, then unmapped. Nobody waits.
 *   4 new pages; where less than 1/8 of the limit is left, pieces of pages first (stitch.c)
 * So what is reserved exceeds what lives by pieces below a page and by what other streams have not
 * finished with. In a program that repeats itself the pieces fall into place and moving ends.
 * Memory of a captured graph's pool never moves: the graph knows its addresses. */
#include <stdlib.h>
#include <sys/mman.h>
#include "core/base/pages.h"
#include "core/memory/back.h"
#include "core/memory/history.h"

enum { SPACE_MOST = 4, SPACE_LEAST = 2 }; /* times the device */
enum { SHORT_SHARE = 8 };                 /* short: less than 1/8 of the limit is left */
#define SPACE_LIMIT (UINT64_C(1) << 39)

/* Room for one more range. */
static weir_status heads_ensure(mem_pool *p)
{
  const weir_source *s = &p->backend->source;
  if (p->head_count + p->head_spoken < p->head_room) return WEIR_OK;
  unsigned room = p->head_room ? 2 * p->head_room : 16;
  weir_status st =
      s->host_commit ? s->host_commit(p->backend->self, room * sizeof *p->heads) : WEIR_OK;
  if (st) return st;
  block_id *more = realloc(p->heads, room * sizeof *more);
  if (!more) return fail_memory("the pool's list of segments");
  p->heads = more;
  p->head_room = room;
  return WEIR_OK;
}

weir_status back_reserve_range(mem_pool *p)
{
  weir_status st = heads_ensure(p);
  p->head_spoken += !st;
  return st;
}

static void drop_arrays(mem_pool *p, uint64_t places)
{
  if (p->pages) munmap(p->pages, places * sizeof *p->pages);
  if (p->spare) munmap(p->spare, places * sizeof *p->spare);
  p->pages = p->spare = NULL;
}

/* Everything that reserving `bytes` takes but the address space. */
static weir_status make_arrays(mem_pool *p, uint64_t places)
{
  p->pages = pages_alloc(places * sizeof *p->pages);
  p->spare = pages_alloc(places * sizeof *p->spare);
  weir_status st = WEIR_OK;
  if (!p->pages || !p->spare)
    st = fail_memory("the pool's list of %llu pages", (unsigned long long)places);
  if (!st) st = heads_ensure(p);
  return st ? st : block_ensure(p, 1);
}

static weir_status reserve_back(mem_pool *p, uint64_t bytes)
{
  const weir_source *s = &p->backend->source;
  uint64_t places = bytes / s->page_bytes;
  weir_status st = make_arrays(p, places);
  if (!st) st = s->reserve(p->backend->self, bytes, &p->base);
  if (st) {
    drop_arrays(p, places);
    return st;
  }
  p->space = bytes;
  block_id id = block_new();
  p->heads[p->head_count++] = id;
  block(id)->address = p->base;
  block(id)->bytes = bytes;
  heap_put(&p->common[HEAP_HOLE], id);
  return WEIR_OK;
}

weir_status back_init(mem_pool *p)
{
  const weir_source *s = &p->backend->source;
  uint64_t free_bytes, page = s->page_bytes;
  weir_status st = s->mem_info(p->backend->self, &free_bytes, &p->total);
  if (st || !s->reserve || !page || !p->config.expandable || p->config.whole_block) return st;
  for (uint64_t times = SPACE_MOST; times >= SPACE_LEAST; times /= 2) {
    uint64_t bytes = page_up(p->total, page) * times;
    st = reserve_back(p, bytes < SPACE_LIMIT ? bytes : SPACE_LIMIT);
    if (st != WEIR_EOOM) return st;
  }
  return WEIR_OK;
}

/* ---- growing --------------------------------------------------------------------------------- */

/* How much of a free neighbour serves heap h: its own blocks and idle ones. */
uint64_t back_usable_bytes(const mem_heap *h, block_id id)
{
  if (!id || block_state(block(id)) != BLOCK_FREE) return 0;
  uint16_t n = block(id)->heap;
  return n == h->number || n == idle_of(h)->number ? block(id)->bytes : 0;
}

static void consider_growth(grow_plan *best, const mem_heap *h, block_id hole, uint64_t bytes,
                            uint64_t page)
{
  uint64_t l = back_usable_bytes(h, block(hole)->left),
           r = back_usable_bytes(h, block(hole)->right), all = block(hole)->bytes;
  if (l && r && l < bytes && r < bytes && l + r + all >= bytes &&
      (!best->hole || all < best->bytes))
    *best = (grow_plan){hole, block(hole)->left, block(hole)->right, all, false};
  for (int end = 0; end < 2; end++) {
    block_id side = end ? block(hole)->right : block(hole)->left;
    uint64_t have = back_usable_bytes(h, side);
    uint64_t need = have < bytes ? page_up(bytes - have, page) : page;
    if (need <= block(hole)->bytes && (!best->hole || need < best->bytes))
      *best = (grow_plan){hole, have ? side : 0, 0, need, end};
  }
}

static grow_plan make_release_plan(const mem_heap *h, uint64_t bytes)
{
  mem_pool *p = h->pool;
  const mem_heap *holes = &p->common[HEAP_HOLE];
  grow_plan best = {0, 0, 0, 0, false};
  uint64_t page = p->backend->source.page_bytes;
  int looks = 0;
  for (int f = 0; f < TLSF_FIRST; f++) {
    if (!(holes->first & 1u << f)) continue;
    for (uint32_t in = holes->second[f]; in; in &= in - 1)
      for (block_id id = holes->bins[f][__builtin_ctz(in)]; id && looks < HOLE_LOOKS;
           id = block(id)->next, looks++)
        consider_growth(&best, h, id, bytes, page);
  }
  block_id any = best.hole ? 0 : heap_find(holes, page_up(bytes, page));
  if (any) consider_growth(&best, h, any, bytes, page);
  return best;
}

/* Cuts the planned piece out of its hole, in no heap. */
static block_id cut_hole(mem_pool *p, const grow_plan *pl)
{
  mem_heap *holes = &p->common[HEAP_HOLE];
  block_id id = pl->hole;
  heap_remove(holes, id);
  if (!pl->at_end || block(id)->bytes == pl->bytes) {
    block_split(id, pl->bytes, holes);
    return id;
  }
  block_split(id, block(id)->bytes - pl->bytes, holes);
  block_id piece = block(id)->right;
  heap_remove(holes, piece);
  heap_put(holes, id);
  return piece;
}

/* The next free block of `h` from bin *at on that holds a whole page, the smallest first; 0: none.
 */
static block_id next_lender(const mem_heap *h, const grow_plan *except, int *at)
{
  const mem_pool *p = h->pool;
  uint64_t from;
  for (; *at < TLSF_FIRST * TLSF_SECOND; ++*at)
    for (block_id id = h->bins[*at / TLSF_SECOND][*at % TLSF_SECOND]; id; id = block(id)->next)
      if (id != except->beside && id != except->other && vmm_whole(p, block(id), &from)) return id;
  return 0;
}

/* Whole pages h can lend itself. A captured graph has the addresses of its pool: they stay. */
static uint64_t count_pages(const mem_heap *h, const grow_plan *except)
{
  uint64_t bytes = 0, from;
  if (h->graph) return 0;
  for (int f = 0; f < TLSF_FIRST; f++)
    for (uint32_t in = h->second[f]; in; in &= in - 1)
      for (block_id id = h->bins[f][__builtin_ctz(in)]; id; id = block(id)->next)
        if (id != except->beside && id != except->other)
          bytes += vmm_whole(h->pool, block(id), &from);
  return bytes;
}

/* Unmaps idle pages until `count` are spare, or none is left. */
static weir_status idle_to_spare(mem_pool *p, uint64_t count, const grow_plan *except)
{
  uint64_t page = p->backend->source.page_bytes, from;
  weir_status st = WEIR_OK;
  int at = 0;
  while (!st && p->spare_count < count) {
    block_id id = next_lender(&p->common[HEAP_IDLE], except, &at);
    if (!id) break;
    uint64_t bytes = vmm_whole(p, block(id), &from), want = (count - p->spare_count) * page;
    st = vmm_drop(p, id, from, bytes < want ? bytes : want);
  }
  return st;
}

/* Maps whole pages of h's own free blocks at `address` as well, and leaves where they were: the
 * stream's order lets its new work follow the old, through whichever address. */
static weir_status lend(mem_pool *p, mem_heap *h, const grow_plan *except, uint64_t address,
                        uint64_t bytes, uint64_t *done)
{
  const weir_source *s = &p->backend->source;
  weir_status st = WEIR_OK;
  int at = 0;
  while (!st && *done < bytes) {
    uint64_t from, moved = 0, have;
    block_id id = next_lender(h, except, &at);
    if (!id) break;
    if ((st = block_ensure(p, 2))) break;
    have = vmm_whole(p, block(id), &from);
    if (have > bytes - *done) have = bytes - *done;
    for (; moved < have && *done < bytes; moved += s->page_bytes) {
      for (; *done < bytes && vmm_stuck(p, address + *done);)
        *done += s->page_bytes;
      if (*done == bytes) break;
      uint64_t *place = back_place(p, from + moved);
      if ((st = s->map(p->backend->self, address + *done, *place))) break;
      *back_place(p, address + *done) = *place;
      *place = 0;
      *done += s->page_bytes;
    }
    if (!moved) continue;
    id = back_cut(h, id, from, moved);
    history_segment(p, ACTION_SEGMENT_UNMAP, id); /* the memory has gone, the mapping will */
    back_leave(p, id, h, h->epoch);
  }
  return st;
}

/* Gives h a piece of what was a hole, of which `done` bytes are mapped, and not for use where
 * `closed`; the rest is a hole again. */
static void hand_over(mem_pool *p, mem_heap *h, block_id piece, uint64_t done, uint64_t stamp,
                      bool closed)
{
  mem_heap *holes = &p->common[HEAP_HOLE];
  block_id rest = block(piece)->bytes > done ? piece : 0;
  if (rest && done) {
    block_split(piece, done, holes);
    rest = block(piece)->right;
    heap_remove(holes, rest);
  }
  block(piece)->stamp = stamp;
  block(piece)->when = p->clock();
  if (done && closed) {
    back_leave(p, piece, stamp ? h : &p->common[HEAP_IDLE], stamp);
  } else if (done) {
    history_segment(p, ACTION_SEGMENT_MAP, piece);
    (void)block_give(h, piece);
  }
  if (rest) (void)block_give(holes, rest);
}

/* Maps the planned piece of a hole for h, from spare pages and then h's own free ones. */
static weir_status map_plan(mem_pool *p, mem_heap *h, const grow_plan *pl)
{
  const weir_source *s = &p->backend->source;
  uint64_t done = 0;
  block_id piece = cut_hole(p, pl);
  weir_status st = vmm_map_spare(p, block(piece)->address, pl->bytes, &done);
  bool lent = !st && done < pl->bytes && !h->graph;
  if (lent) {
    p->stitches++;
    h->dirty = h->epoch;
    st = lend(p, h, pl, block(piece)->address, pl->bytes, &done);
  }
  if (!st && done < pl->bytes) st = WEIR_EOOM;
  weir_status open = done ? s->access(p->backend->self, block(piece)->address, done) : WEIR_OK;
  hand_over(p, h, piece, done, lent ? h->epoch : 0, open != WEIR_OK);
  if (open) (void)back_settle(p);
  return st ? st : open;
}

/* An idle block becomes h's, so that what is mapped next to it joins it. */
static void adopt_idle(mem_heap *h, block_id *id)
{
  mem_heap *idle = idle_of(h);
  if (!*id || block(*id)->heap != idle->number) return;
  heap_remove(idle, *id);
  *id = block_give(h, *id);
}

uint64_t back_fresh(const mem_heap *h, const grow_plan *pl)
{
  const mem_pool *p = h->pool;
  uint64_t have = p->spare_count * p->backend->source.page_bytes + count_pages(h, pl);
  return pl->bytes > have ? pl->bytes - have : 0;
}

weir_status back_fill(mem_heap *h, grow_plan *pl, uint64_t limit)
{
  mem_pool *p = h->pool;
  uint64_t fresh = back_fresh(h, pl);
  if (fresh > limit || p->reserved > limit - fresh) return WEIR_ELIMIT;
  weir_status st =
      fresh ? vmm_make(p, p->spare_count + fresh / p->backend->source.page_bytes) : WEIR_OK;
  if (!st) st = block_ensure(p, 3);
  if (st) return st;
  adopt_idle(h, &pl->beside);
  adopt_idle(h, &pl->other);
  return pl->bytes ? map_plan(p, h, pl) : WEIR_OK;
}

/* Where to grow, idle pages being spare by then. */
static weir_status plan_pages(mem_heap *h, uint64_t bytes, grow_plan *pl)
{
  mem_pool *p = h->pool;
  *pl = make_release_plan(h, bytes);
  if (!pl->hole) return WEIR_EOOM;
  weir_status st = idle_to_spare(p, pl->bytes / p->backend->source.page_bytes, pl);
  if (!st) *pl = make_release_plan(h, bytes); /* holes have come: as good, or better */
  return st;
}

/* Memory is short: pieces of pages are taken home where that helps, and put together. WEIR_EOOM:
 * neither does. */
static weir_status grow_by_pieces(mem_heap *h, uint64_t bytes, uint64_t fresh, uint64_t limit)
{
  mem_pool *p = h->pool;
  uint32_t now = p->clock();
  if (stitch_undo(p, h, now) + stitch_undo(p, NULL, now)) {
    grow_plan pl;
    if (heap_find(h, bytes)) return WEIR_OK;
    weir_status st = plan_pages(h, bytes, &pl);
    if (st || !(fresh = back_fresh(h, &pl))) return st ? st : WEIR_EOOM;
  }
  return stitch_grow(h, bytes, fresh, limit);
}

static weir_status grow_pages(mem_pool *p, mem_heap *h, uint64_t bytes, uint64_t limit)
{
  grow_plan pl;
  if (p->leaving) epoch_poll(p, true, NULL);
  (void)back_settle(p);
  weir_status st = plan_pages(h, bytes, &pl);
  uint64_t fresh = st ? 0 : back_fresh(h, &pl);
  if (fresh && !h->graph && p->reserved + fresh > limit - limit / SHORT_SHARE) {
    st = grow_by_pieces(h, bytes, fresh, limit);
    if (st != WEIR_EOOM) return st;
    st = plan_pages(h, bytes, &pl);
  }
  return st ? st : back_fill(h, &pl, limit);
}

/* PyTorch's sizes (c10/cuda/CUDACachingAllocator: kSmallBuffer, kLargeBuffer, kRoundLarge). */
static uint64_t segment_bytes(const mem_pool *p, uint64_t bytes)
{
  const uint64_t mib = 1 << 20;
  if (p->config.whole_block) return bytes;
  if (bytes <= mib) return 2 * mib;
  return bytes < 10 * mib ? 20 * mib : page_up(bytes, 2 * mib);
}

void back_add(mem_pool *p, mem_heap *h, block_id id, uint64_t address, uint64_t bytes)
{
  p->heads[p->head_count++] = id;
  block(id)->address = address;
  block(id)->bytes = bytes;
  block(id)->when = p->clock();
  vmm_count(p, (int64_t)bytes, 1);
  heap_put(h, id);
}

static weir_status grow_segment(mem_pool *p, mem_heap *h, uint64_t bytes, uint64_t limit)
{
  uint64_t ask = segment_bytes(p, bytes), address;
  if (ask > limit || p->reserved > limit - ask) ask = bytes;
  if (ask > limit || p->reserved > limit - ask) return WEIR_ELIMIT;
  weir_status st = block_ensure(p, 2);
  if (!st) st = heads_ensure(p);
  if (!st) st = p->backend->source.segment_alloc(p->backend->self, ask, &address);
  if (st == WEIR_EOOM && ask > bytes)
    st = p->backend->source.segment_alloc(p->backend->self, ask = bytes, &address);
  if (st) return st;
  block_id id = block_new();
  back_add(p, h, id, address, ask);
  history_segment(p, ACTION_SEGMENT_ALLOC, id);
  return WEIR_OK;
}

weir_status back_grow(mem_pool *p, mem_heap *h, uint64_t bytes, uint64_t limit)
{
  if (p->host) return p->host_calls->grow(p, h, bytes);
  return has_vmm(p) ? grow_pages(p, h, bytes, limit) : grow_segment(p, h, bytes, limit);
}

/* Whether no block has memory. */
bool back_empty(const mem_pool *p)
{
  if (!has_vmm(p)) return !p->reserved;
  for (block_id id = p->heads[0]; id; id = block(id)->right)
    if (block_state(block(id)) != BLOCK_HOLE) return false;
  return true;
}

weir_status back_fini(mem_pool *p)
{
  if (!has_vmm(p)) return WEIR_OK;
  weir_status st = back_settle(p);
  if (!st) st = vmm_unstick(p);
  if (!st && p->leaving) st = fail_invalid("work that is not complete may touch the pool's memory");
  if (!st) st = vmm_destroy_spare(p);
  if (!st) st = p->backend->source.release(p->backend->self, p->base, p->space);
  if (st) return st;
  heap_remove(&p->common[HEAP_HOLE], p->heads[0]);
  block_drop(p->heads[0]);
  p->head_count = 0;
  drop_arrays(p, p->space / p->backend->source.page_bytes);
  p->space = 0;
  return WEIR_OK;
}
