/* release.c: a block that nobody holds any more goes back to its heap.
 *
 * A block that is freed while it is paused falls into pieces: its own pages become holes at once; a
 * piece of a page that other blocks share is dead (PENDING, with a USE record whose stamp is DEAD)
 * until the page is resumed, or all of the page is dead and becomes a hole. Where host memory for
 * the pieces' records is missing, the block waits whole, and is tried again with the next request.
 */
#include "core/memory/pause.h"

char pause_lost;

void pool_leave_tcache(mem_pool *p, mem_block *b)
{
  if (!b->tcache) return;
  p->tcache_bytes -= (int64_t)b->bytes;
  p->tcache_blocks--;
  b->tcache = 0;
}

/* ---- freed while paused ---------------------------------------------------------------------- */

/* Nobody wants the place's page back: it becomes a hole. */
static void end_pause(mem_pool *p, uint64_t address)
{
  if (page_is_gone(p, address))
    p->paused_bytes -= page_bytes(p);
  else
    p->stuck++;
  forget_copy(p, address);
}

enum { HERE, OWN, SHARED }; /* of a piece: has memory; its own pages, gone; of a page, gone */

static int kind_of_range(const mem_pool *p, uint64_t from, uint64_t to)
{
  if (!paused(p, from)) return HERE;
  return from == round_page_down(p, from) && to - from == page_bytes(p) ? OWN : SHARED;
}

/* Where the piece that begins at `from` ends. */
static uint64_t piece_end(const mem_pool *p, uint64_t from, uint64_t end, int *kind)
{
  uint64_t to = from, next;
  do {
    next = round_page_down(p, to) + page_bytes(p);
    if (next > end) next = end;
    int k = kind_of_range(p, to, next);
    if (to > from && (k != *kind || k == SHARED)) break;
    *kind = k;
    to = next;
  } while (to < end);
  return to;
}

static bool dead_piece(const mem_block *b)
{
  block_id u = b->uses;
  return block_state(b) == BLOCK_PENDING && u && block(u)->class == USE_PAUSE &&
         block(u)->stamp == DEAD && !block(u)->next;
}

/* A page of which every piece is dead becomes a hole. */
static void page_to_hole(mem_pool *p, block_id id)
{
  uint64_t from = round_page_down(p, block(id)->address), to = from + page_bytes(p);
  while (block(id)->address > from && block(id)->left && dead_piece(block(block(id)->left)))
    id = block(id)->left;
  if (block(id)->address != from) return;
  uint64_t reached = from;
  for (block_id at = id; at && reached < to && dead_piece(block(at)); at = block(at)->right)
    reached += block(at)->bytes;
  if (reached != to) return;
  end_pause(p, from);
  for (reached = from; reached < to;) {
    block_id right = block(id)->right;
    reached += block(id)->bytes;
    page_map_remove(id);
    pool_count_pending(p, block(id), -1);
    block_use_drop(block(id), block(id)->uses);
    (void)block_give(&p->common[HEAP_HOLE], id);
    id = right;
  }
}

static void mark_piece_dead(mem_pool *p, block_id id, uint32_t tag)
{
  mem_block *b = block(id);
  mem_block *use = block(block_use_add(b, USE_PAUSE, 0));
  use->when = tag;
  use->stamp = DEAD;
  b->class = NO_CLASS;
  block_set(b, BLOCK_PENDING);
  page_map_put(id);
  pool_count_pending(p, b, 1);
  page_to_hole(p, id);
}

static void place_piece(mem_pool *p, mem_heap *h, block_id id, int kind, uint32_t tag)
{
  mem_block *b = block(id);
  if (kind == SHARED) {
    b->heap = h->number;
    mark_piece_dead(p, id, tag);
    return;
  }
  for (uint64_t at = b->address; kind == OWN && at < b->address + b->bytes; at += page_bytes(p)) {
    end_pause(p, at);
  }
  if (kind == OWN) b->stamp = 0;
  (void)block_give(kind == OWN ? &p->common[HEAP_HOLE] : h, id);
}

static bool keep_paused(mem_pool *p, block_id id)
{
  mem_block *b = block(id);
  unsigned pieces = 0;
  int kind;
  for (uint64_t at = b->address, end = at + b->bytes; at < end; pieces++)
    at = piece_end(p, at, end, &kind);
  if (!block_ensure(p, 2 * pieces)) return false;
  pool_leave_tcache(p, b);
  block_set(b, BLOCK_PENDING);
  b->next = p->pending;
  p->pending = id;
  pool_count_pending(p, b, 1);
  return true;
}

static void free_paused(mem_pool *p, mem_heap *h, block_id id)
{
  uint64_t end = block(id)->address + block(id)->bytes;
  uint32_t tag = block(block(id)->uses)->when;
  block_use_drop(block(id), block(id)->uses);
  block_set(block(id), BLOCK_REMOTE);
  while (id) {
    mem_block *b = block(id);
    int kind = HERE;
    uint64_t to = piece_end(p, b->address, end, &kind);
    block_id rest = 0;
    if (to < end) {
      block_split(id, to - b->address, h);
      rest = b->right;
      heap_remove(h, rest);
      block_set(block(rest), BLOCK_REMOTE); /* in no heap: nobody's neighbour */
    }
    place_piece(p, h, id, kind, tag);
    id = rest;
  }
}

/* ---- released -------------------------------------------------------------------------------- */

/* A block of the private heap is freed: where it goes. */
static mem_heap *leave_graph(mem_heap *h)
{
  h->graph->live--;
  return h->graph->dead ? h->clock : h;
}

void pool_release(block_id id)
{
  pool_release_at(id, heap_table[block(id)->heap]->clock->epoch);
}

void pool_release_at(block_id id, uint64_t stamp)
{
  mem_block *b = block(id);
  mem_heap *h = heap_table[b->heap];
  if (b->uses && keep_paused(h->pool, id)) return;
  page_map_remove(id);
  pool_leave_tcache(h->pool, b);
  b->stamp = stamp = stamp > h->clock->done ? stamp : 0;
  if (stamp > h->clock->dirty) h->clock->dirty = stamp;
  h->pool->unmarked += b->bytes;
  if (h->graph) h = leave_graph(h);
  b->when = h->pool->clock();
  if (b->uses)
    free_paused(h->pool, h, id);
  else
    block_give(h, id);
}
