/* back.c: how the pool gets memory and gives it back.
 *
 * With VMM the pool reserves address space once, four times the device, and all of it is blocks:
 * what has no memory is a hole. Growing turns the piece of a hole into a free block, preferably a
 * piece beside free memory so that only the difference is mapped. Trimming turns idle pages into
 * holes; a page that is mapped nowhere is kept for the next growth (that is stitching: pages from
 * many small free blocks become one large one), or destroyed. Without VMM a segment is a chain of
 * its own.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include "core/memory/history.h"

enum { SPACE_FACTOR = 4, HOLE_LOOKS = 64 };
#define SPACE_LIMIT (UINT64_C(1) << 39)

static bool vmm(const weir_pool *p)
{
  return p->space != 0;
}

static uint64_t up(uint64_t value, uint64_t align)
{
  return (value + align - 1) & ~(align - 1);
}

static void *host_array(uint64_t bytes)
{
  void *at =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

/* Room for one more range. */
static weir_status heads_ensure(weir_pool *p)
{
  const weir_source *s = &p->backend->source;
  if (p->head_count + p->head_spoken < p->head_room) return WEIR_OK;
  unsigned room = p->head_room ? 2 * p->head_room : 16;
  weir_status st =
      s->host_commit ? s->host_commit(p->backend->self, room * sizeof *p->heads) : WEIR_OK;
  if (st) return st;
  block_id *more = realloc(p->heads, room * sizeof *more);
  if (!more) return weir_fail(WEIR_ENOMEM, "no host memory for the pool's list of segments");
  p->heads = more;
  p->head_room = room;
  return WEIR_OK;
}

weir_status weir_back_speak(weir_pool *p)
{
  weir_status st = heads_ensure(p);
  p->head_spoken += !st;
  return st;
}

static void drop_arrays(weir_pool *p, uint64_t places)
{
  if (p->pages) munmap(p->pages, places * sizeof *p->pages);
  if (p->spare) munmap(p->spare, places * sizeof *p->spare);
  p->pages = p->spare = NULL;
}

weir_status weir_back_init(weir_pool *p)
{
  const weir_source *s = &p->backend->source;
  uint64_t free_bytes, page = s->page_bytes;
  weir_status st = s->mem_info(p->backend->self, &free_bytes, &p->total);
  if (st || !s->reserve || !page || !p->config.expandable || p->config.whole_block) return st;
  uint64_t bytes = up(p->total, page) * SPACE_FACTOR, places;
  if (bytes > SPACE_LIMIT) bytes = SPACE_LIMIT;
  places = bytes / page;
  p->pages = host_array(places * sizeof *p->pages);
  p->spare = host_array(places * sizeof *p->spare);
  if (!p->pages || !p->spare)
    st = weir_fail(WEIR_ENOMEM, "no host memory for the pool's list of %llu pages",
                   (unsigned long long)places);
  if (!st) st = heads_ensure(p);
  if (!st) st = weir_block_ensure(p, 1);
  if (!st) st = s->reserve(p->backend->self, bytes, &p->base);
  if (st) {
    drop_arrays(p, places);
    return st;
  }
  p->space = bytes;
  block_id id = weir_block_new();
  p->heads[p->head_count++] = id;
  block(id)->address = p->base;
  block(id)->bytes = bytes;
  weir_heap_put(&p->common[HEAP_HOLE], id);
  return WEIR_OK;
}

static void count_reserved(weir_pool *p, int64_t bytes, int64_t ranges)
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

/* ---- pages ------------------------------------------------------------------------------------
 */

static weir_status page_take(weir_pool *p, uint64_t *page)
{
  const weir_source *s = &p->backend->source;
  if (p->spare_count) {
    *page = p->spare[--p->spare_count];
    return WEIR_OK;
  }
  weir_status st = s->create(p->backend->self, page);
  if (!st) count_reserved(p, (int64_t)s->page_bytes, 1);
  return st;
}

/* Page by page; stops at the first failure. *done: bytes unmapped, from the left. */
weir_status weir_back_take_page(weir_pool *p, uint64_t *page)
{
  uint64_t bytes = p->backend->source.page_bytes, limit = weir_pool_limit(p);
  if (!p->spare_count && (bytes > limit || p->reserved > limit - bytes)) return WEIR_ELIMIT;
  return page_take(p, page);
}

void weir_back_give_page(weir_pool *p, uint64_t page)
{
  const weir_source *s = &p->backend->source;
  if (s->destroy(p->backend->self, page))
    p->spare[p->spare_count++] = page;
  else
    count_reserved(p, -(int64_t)s->page_bytes, -1);
}

static weir_status pages_unmap(weir_pool *p, uint64_t address, uint64_t bytes, uint64_t *done)
{
  const weir_source *s = &p->backend->source;
  for (*done = 0; *done < bytes; *done += s->page_bytes) {
    uint64_t at = address + *done, *place = &p->pages[(at - p->base) / s->page_bytes];
    weir_status st = s->unmap(p->backend->self, at, s->page_bytes);
    if (st) return st;
    p->spare[p->spare_count++] = *place;
    *place = 0;
  }
  return WEIR_OK;
}

static uint64_t pages_in(const weir_pool *p, uint64_t address, uint64_t bytes)
{
  uint64_t page = p->backend->source.page_bytes, count = 0;
  for (uint64_t at = address; at < address + bytes; at += page)
    count += p->pages[(at - p->base) / page] != 0;
  return count;
}

/* Maps [address, address + bytes). On failure all of it is unmapped again; where even that fails
 * the pages stay in their places, stuck, for the next mapping there or the next trim. */
static weir_status pages_map(weir_pool *p, uint64_t address, uint64_t bytes)
{
  const weir_source *s = &p->backend->source;
  uint64_t done = 0, undone, page;
  weir_status st = WEIR_OK;
  if (p->stuck) p->stuck -= pages_in(p, address, bytes);
  for (; done < bytes; done += s->page_bytes) {
    uint64_t *place = &p->pages[(address + done - p->base) / s->page_bytes];
    if (*place) continue;
    if ((st = page_take(p, &page))) break;
    if ((st = s->map(p->backend->self, address + done, page))) {
      p->spare[p->spare_count++] = page;
      break;
    }
    *place = page;
  }
  if (!st) st = s->access(p->backend->self, address, bytes);
  if (st) {
    (void)pages_unmap(p, address, done, &undone);
    p->stuck += pages_in(p, address, bytes);
  }
  return st;
}

/* ---- growing ----------------------------------------------------------------------------------
 */

typedef struct plan {
  block_id hole;   /* where to map, 0: nowhere */
  block_id beside; /* free block that the new memory extends, 0: none */
  uint64_t bytes;  /* to map */
  bool at_end;     /* of the hole: `beside` is its right neighbour */
} plan;

/* How much of a free neighbour serves heap h: its own blocks and idle ones. */
static uint64_t helps(const weir_heap *h, block_id id)
{
  if (!id || block_state(block(id)) != BLOCK_FREE) return 0;
  uint16_t n = block(id)->heap;
  return n == h->number || n == weir_idle_of(h)->number ? block(id)->bytes : 0;
}

static void consider(plan *best, const weir_heap *h, block_id hole, uint64_t bytes, uint64_t page)
{
  for (int end = 0; end < 2; end++) {
    block_id side = end ? block(hole)->right : block(hole)->left;
    uint64_t have = helps(h, side);
    uint64_t need = have < bytes ? up(bytes - have, page) : page;
    if (need <= block(hole)->bytes && (!best->hole || need < best->bytes))
      *best = (plan){hole, have ? side : 0, need, end};
  }
}

static plan make_plan(const weir_heap *h, uint64_t bytes)
{
  weir_pool *p = h->pool;
  const weir_heap *holes = &p->common[HEAP_HOLE];
  plan best = {0, 0, 0, false};
  uint64_t page = p->backend->source.page_bytes;
  int looks = 0;
  for (int f = 0; f < TLSF_FIRST; f++) {
    if (!(holes->first & 1u << f)) continue;
    for (uint32_t in = holes->second[f]; in; in &= in - 1)
      for (block_id id = holes->bins[f][__builtin_ctz(in)]; id && looks < HOLE_LOOKS;
           id = block(id)->next, looks++)
        consider(&best, h, id, bytes, page);
  }
  block_id any = best.hole ? 0 : weir_heap_find(holes, up(bytes, page));
  if (any) consider(&best, h, any, bytes, page);
  return best;
}

/* Cuts the planned piece out of its hole, in no heap. */
static block_id cut_hole(weir_pool *p, const plan *pl)
{
  weir_heap *holes = &p->common[HEAP_HOLE];
  block_id id = pl->hole;
  weir_heap_remove(holes, id);
  if (!pl->at_end || block(id)->bytes == pl->bytes) {
    weir_block_split(id, pl->bytes, holes);
    return id;
  }
  weir_block_split(id, block(id)->bytes - pl->bytes, holes);
  block_id piece = block(id)->right;
  weir_heap_remove(holes, piece);
  weir_heap_put(holes, id);
  return piece;
}

static weir_status grow_pages(weir_pool *p, weir_heap *h, uint64_t bytes, uint64_t limit)
{
  uint64_t page = p->backend->source.page_bytes;
  plan pl = make_plan(h, bytes);
  if (!pl.hole) return WEIR_EOOM;
  uint64_t fresh = pl.bytes / page > p->spare_count ? pl.bytes - p->spare_count * page : 0;
  if (fresh > limit || p->reserved > limit - fresh) return WEIR_ELIMIT;
  weir_status st = weir_block_ensure(p, 3);
  if (st) return st;
  block_id piece = cut_hole(p, &pl);
  st = pages_map(p, block(piece)->address, pl.bytes);
  if (st) {
    weir_block_give(&p->common[HEAP_HOLE], piece);
    return st;
  }
  if (pl.beside && block(pl.beside)->heap == weir_idle_of(h)->number) {
    weir_heap_remove(weir_idle_of(h), pl.beside);
    (void)weir_block_give(h, pl.beside);
  }
  weir_history_segment(p, ACTION_SEGMENT_MAP, piece);
  block(piece)->when = p->clock();
  weir_block_give(h, piece);
  return WEIR_OK;
}

/* PyTorch's sizes (c10/cuda/CUDACachingAllocator: kSmallBuffer, kLargeBuffer, kRoundLarge). */
static uint64_t segment_bytes(const weir_pool *p, uint64_t bytes)
{
  const uint64_t mib = 1 << 20;
  if (p->config.whole_block) return bytes;
  if (bytes <= mib) return 2 * mib;
  return bytes < 10 * mib ? 20 * mib : up(bytes, 2 * mib);
}

void weir_back_add(weir_pool *p, weir_heap *h, block_id id, uint64_t address, uint64_t bytes)
{
  p->heads[p->head_count++] = id;
  block(id)->address = address;
  block(id)->bytes = bytes;
  block(id)->when = p->clock();
  count_reserved(p, (int64_t)bytes, 1);
  weir_heap_put(h, id);
}

static weir_status grow_segment(weir_pool *p, weir_heap *h, uint64_t bytes, uint64_t limit)
{
  uint64_t ask = segment_bytes(p, bytes), address;
  if (ask > limit || p->reserved > limit - ask) ask = bytes;
  if (ask > limit || p->reserved > limit - ask) return WEIR_ELIMIT;
  weir_status st = weir_block_ensure(p, 2);
  if (!st) st = heads_ensure(p);
  if (!st) st = p->backend->source.segment_alloc(p->backend->self, ask, &address);
  if (st == WEIR_EOOM && ask > bytes)
    st = p->backend->source.segment_alloc(p->backend->self, ask = bytes, &address);
  if (st) return st;
  block_id id = weir_block_new();
  weir_back_add(p, h, id, address, ask);
  weir_history_segment(p, ACTION_SEGMENT_ALLOC, id);
  return WEIR_OK;
}

weir_status weir_back_grow(weir_pool *p, weir_heap *h, uint64_t bytes, uint64_t limit)
{
  if (p->host) return weir_host_grow(p, h, bytes);
  return vmm(p) ? grow_pages(p, h, bytes, limit) : grow_segment(p, h, bytes, limit);
}

/* ---- giving back ------------------------------------------------------------------------------
 */

/* Takes an idle range out of the books; its record stays. */
static void range_remove(weir_pool *p, block_id id)
{
  count_reserved(p, -(int64_t)block(id)->bytes, -1);
  weir_history_segment(p, ACTION_SEGMENT_FREE, id);
  weir_heap_remove(&p->common[HEAP_IDLE], id);
  unsigned i = 0;
  while (p->heads[i] != id)
    i++;
  p->heads[i] = p->heads[--p->head_count];
}

static weir_status segment_drop(weir_pool *p, block_id id)
{
  const weir_block *b = block(id);
  weir_status st = p->backend->source.segment_free(p->backend->self, b->address, b->bytes);
  if (st) return st;
  range_remove(p, id);
  weir_block_drop(id);
  return WEIR_OK;
}

/* Unlocking memory takes the machine milliseconds: nobody waits for the pool meanwhile. */
static weir_status chunk_drop(weir_pool *p, block_id id)
{
  uint64_t address = block(id)->address, bytes = block(id)->bytes;
  range_remove(p, id);
  p->head_spoken++;
  pthread_mutex_unlock(&p->lock);
  weir_status st = p->backend->source.segment_free(p->backend->self, address, bytes);
  pthread_mutex_lock(&p->lock);
  p->head_spoken--;
  if (st)
    weir_back_add(p, &p->common[HEAP_IDLE], id, address, bytes);
  else
    weir_block_drop(id);
  return st;
}

/* Turns whole pages of an idle block into a hole; fewer than asked for where it fails half way. */
static weir_status pages_drop(weir_pool *p, block_id id, uint64_t from, uint64_t bytes)
{
  weir_heap *idle = &p->common[HEAP_IDLE];
  uint64_t done = 0;
  weir_status st = weir_block_ensure(p, 2);
  if (!st) st = pages_unmap(p, from, bytes, &done);
  if (!done) return st;
  weir_heap_remove(idle, id);
  if (from > block(id)->address) {
    weir_block_split(id, from - block(id)->address, idle);
    block_id piece = block(id)->right;
    weir_heap_put(idle, id);
    weir_heap_remove(idle, piece);
    id = piece;
  }
  weir_block_split(id, done, idle);
  block(id)->stamp = 0;
  weir_history_segment(p, ACTION_SEGMENT_UNMAP, id);
  weir_block_give(&p->common[HEAP_HOLE], id);
  return st;
}

/* What of an idle block can be given back. */
static uint64_t droppable(const weir_pool *p, const weir_block *b, uint64_t *from)
{
  uint64_t page = p->backend->source.page_bytes;
  *from = b->address;
  if (!vmm(p)) return b->left || b->right ? 0 : b->bytes;
  *from = up(b->address, page);
  uint64_t to = (b->address + b->bytes) & ~(page - 1);
  return to > *from ? to - *from : 0;
}

static weir_status spare_destroy(weir_pool *p)
{
  const weir_source *s = &p->backend->source;
  while (p->spare_count) {
    weir_status st = s->destroy(p->backend->self, p->spare[p->spare_count - 1]);
    if (st) return st;
    p->spare_count--;
    count_reserved(p, -(int64_t)s->page_bytes, -1);
  }
  return WEIR_OK;
}

static weir_status trim_bin(weir_pool *p, block_id id, uint32_t before, uint64_t *bytes)
{
  uint64_t from;
  for (block_id next; id && *bytes; id = next) {
    next = block(id)->next;
    uint64_t some = droppable(p, block(id), &from);
    if (!some || (int32_t)(block(id)->when - before) > 0) continue;
    if (vmm(p) && some > *bytes) some = up(*bytes, p->backend->source.page_bytes);
    weir_status st = vmm(p) ? pages_drop(p, id, from, some) : segment_drop(p, id);
    if (st) return st;
    *bytes -= some < *bytes ? some : *bytes;
  }
  return WEIR_OK;
}

static block_id droppable_chunk(const weir_pool *p, uint32_t before)
{
  const weir_heap *idle = &p->common[HEAP_IDLE];
  uint64_t from;
  for (int f = TLSF_FIRST - 1; f >= 0; f--)
    for (int s = TLSF_SECOND - 1; s >= 0; s--)
      for (block_id id = idle->bins[f][s]; id; id = block(id)->next)
        if (droppable(p, block(id), &from) && (int32_t)(block(id)->when - before) <= 0) return id;
  return 0;
}

/* One chunk after the other, looked for anew because the lock is given back meanwhile. */
static weir_status trim_host(weir_pool *p, uint32_t before, uint64_t bytes)
{
  weir_status st = WEIR_OK;
  block_id id;
  while (!st && bytes && (id = droppable_chunk(p, before))) {
    bytes -= block(id)->bytes < bytes ? block(id)->bytes : bytes;
    st = chunk_drop(p, id);
  }
  return st;
}

/* Unmaps what a failure once left in a hole. */
static weir_status unstick(weir_pool *p)
{
  uint64_t page = p->backend->source.page_bytes, done;
  for (block_id id = p->stuck ? p->heads[0] : 0; id && p->stuck; id = block(id)->right) {
    const weir_block *b = block(id);
    for (uint64_t at = 0; block_state(b) == BLOCK_HOLE && at < b->bytes; at += page) {
      if (!p->pages[(b->address + at - p->base) / page]) continue;
      weir_status st = pages_unmap(p, b->address + at, page, &done);
      if (st) return st;
      p->stuck--;
    }
  }
  return WEIR_OK;
}

weir_status weir_back_trim(weir_pool *p, uint32_t before, uint64_t bytes, bool keep)
{
  const weir_heap *idle = &p->common[HEAP_IDLE];
  weir_status st = WEIR_OK;
  if (p->host) return trim_host(p, before, bytes);
  for (int f = TLSF_FIRST - 1; f >= 0 && !st; f--)
    for (int s = TLSF_SECOND - 1; s >= 0 && !st && bytes; s--)
      st = trim_bin(p, idle->bins[f][s], before, &bytes);
  if (!st && vmm(p)) st = unstick(p);
  return st || keep || !vmm(p) ? st : spare_destroy(p);
}

/* Pages may be stuck all the same. */
bool weir_back_empty(const weir_pool *p)
{
  if (!vmm(p)) return !p->reserved;
  const weir_block *all = block(p->heads[0]);
  return block_state(all) == BLOCK_HOLE && all->bytes == p->space;
}

weir_status weir_back_fini(weir_pool *p)
{
  if (!vmm(p)) return WEIR_OK;
  weir_status st = unstick(p);
  if (!st) st = spare_destroy(p);
  if (!st) st = p->backend->source.release(p->backend->self, p->base, p->space);
  if (st) return st;
  weir_heap_remove(&p->common[HEAP_HOLE], p->heads[0]);
  weir_block_drop(p->heads[0]);
  p->head_count = 0;
  drop_arrays(p, p->space / p->backend->source.page_bytes);
  p->space = 0;
  return WEIR_OK;
}
