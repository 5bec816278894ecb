/* stitch.c: pieces of pages put together.
 *
 * Only whole pages move (back.c), so what is free in a page next to something live would be lost to
 * whatever does not fit there. But a page may be mapped at a second place as well, for such a piece
 * only: one that begins a page (low) may follow free memory that ends with a page, one that ends a
 * page (high) may precede free memory that begins with one. So a request that would need another
 * page for its last bytes finds them in a piece, and two pieces serve a small request that neither
 * can. It costs the calls that making the page would have. But blocks that are born and die
 * together no longer lie together then, and leave more pieces: so it is done only where memory is
 * short. (Done always, it takes 1.013 of what lives where whole pages take 1.004: corpus, serving.)
 *
 *   home place:    | live |  away  |     a page: its high piece was free
 *   second place:  | foreign | free ->   more free memory
 *
 * The piece's own address is `away` while it serves at the second place, and what else that place
 * shows is `foreign`: address space that is nobody's, in state AWAY, both. Each byte of the page is
 * used through one address at a time; the work before a move is ordered before the work after it,
 * being of the same stream or complete (as in back.c). The page itself belongs to its home place:
 * with a piece away it is not wholly free there, so it cannot move, and the second place has no
 * page of its own (pages[] is 0). The piece comes home when it is free again and that makes a page
 * whole, or when idle memory is trimmed; the second place leaves like one whose page was lent.
 * Pieces of a second place do not move on, nor do those of captured graphs.
 *
 * A foreign block's `next` chains pool->stitched, its `prev` is the away block, whose `prev` is the
 * foreign one. */
#include "core/memory/back.h"
#include "core/memory/history.h"

typedef struct piece {
  block_id id;   /* the free block it is part of, 0: none */
  uint64_t from; /* address */
  uint64_t bytes;
} piece;

/* What of a free block begins a page and ends before it, and what begins in a page and ends it. */
static piece low_piece(const mem_pool *p, block_id id)
{
  const mem_block *b = block(id);
  uint64_t end = b->address + b->bytes, from = end & ~(p->backend->source.page_bytes - 1);
  return from == end || from < b->address ? (piece){0} : (piece){id, from, end - from};
}

static piece high_piece(const mem_pool *p, block_id id)
{
  const mem_block *b = block(id);
  uint64_t to = page_up(b->address, p->backend->source.page_bytes);
  return to == b->address || to > b->address + b->bytes ? (piece){0}
                                                        : (piece){id, b->address, to - b->address};
}

/* The smallest piece of >= bytes in the heap, if it is better than *best; bytes 0: the largest. */
static void search_heap(const mem_heap *h, bool high, uint64_t bytes, piece *best)
{
  const mem_pool *p = h->pool;
  for (int f = 0; f < TLSF_FIRST; f++)
    for (uint32_t in = h->second[f]; in; in &= in - 1)
      for (block_id id = h->bins[f][__builtin_ctz(in)]; id; id = block(id)->next) {
        piece x = high ? high_piece(p, id) : low_piece(p, id);
        if (!x.id || x.bytes < bytes || !*back_place(p, x.from)) continue;
        if (!best->id || (bytes ? x.bytes < best->bytes : x.bytes > best->bytes)) *best = x;
      }
}

/* Of what h may use: its own, and idle. */
static piece find_piece(const mem_heap *h, bool high, uint64_t bytes)
{
  piece best = {0};
  search_heap(h, high, bytes, &best);
  search_heap(idle_of(h), high, bytes, &best);
  return best;
}

/* ---- there and back -------------------------------------------------------------------------- */

/* Cuts a page out of its hole, opened for use; *out is in no heap. */
static weir_status open_place(mem_pool *p, block_id hole, uint64_t at, uint64_t page, block_id *out)
{
  const weir_source *s = &p->backend->source;
  TRY(s->map(p->backend->self, at, page));
  *out = back_cut(&p->common[HEAP_HOLE], hole, at, s->page_bytes);
  weir_status st = s->access(p->backend->self, at, s->page_bytes);
  if (!st) return WEIR_OK;
  back_leave(p, *out, &p->common[HEAP_IDLE], 0);
  (void)back_settle(p);
  return st;
}

static void set_away(mem_pool *p, block_id id)
{
  block_set(block(id), BLOCK_AWAY);
  block(id)->heap = p->common[HEAP_IDLE].number;
}

/* The piece x serves at the page `at` of a hole, as free memory of h. */
static weir_status move_piece(mem_heap *h, block_id hole, uint64_t at, const piece *x, bool high)
{
  mem_pool *p = h->pool;
  mem_heap *holes = &p->common[HEAP_HOLE];
  uint64_t page = p->backend->source.page_bytes;
  block_id there;
  TRY(block_ensure(p, 6));
  TRY(open_place(p, hole, at, *back_place(p, x->from), &there));
  block_id away = back_cut(heap_table[block(x->id)->heap], x->id, x->from, x->bytes);
  history_segment(p, ACTION_SEGMENT_UNMAP, away);
  block_split(there, high ? page - x->bytes : x->bytes, holes);
  block_id right = block(there)->right, serves = high ? right : there;
  block_id foreign = high ? there : right;
  heap_remove(holes, right);
  set_away(p, away);
  set_away(p, foreign);
  block(foreign)->prev = away;
  block(away)->prev = foreign;
  block(foreign)->next = p->stitched;
  p->stitched = foreign;
  block(serves)->stamp = block(away)->stamp;
  block(serves)->when = block(away)->when;
  history_segment(p, ACTION_SEGMENT_MAP, serves);
  (void)block_give(h, serves);
  p->stitches++;
  return WEIR_OK;
}

/* The free block that holds what serves next to a foreign block; 0: it is in use. */
static block_id serving(const mem_pool *p, block_id foreign, uint64_t *from, uint64_t *bytes)
{
  const mem_block *f = block(foreign);
  uint64_t page = p->backend->source.page_bytes, at = f->address & ~(page - 1);
  bool high = f->address == at; /* it is foreign that is low */
  block_id id = high ? f->right : f->left;
  *from = high ? f->address + f->bytes : at;
  *bytes = page - f->bytes;
  const mem_block *b = block(id);
  bool free = block_state(b) == BLOCK_FREE && b->address <= *from &&
              b->address + b->bytes >= *from + *bytes && !heap_table[b->heap]->graph;
  return free ? id : 0;
}

/* How much of the memory at one side of an away block is free in heap `number`. */
static uint64_t free_side(block_id id, uint16_t number)
{
  return id && block_state(block(id)) == BLOCK_FREE && block(id)->heap == number ? block(id)->bytes
                                                                                 : 0;
}

static bool makes_page(const mem_pool *p, block_id away, uint16_t number)
{
  const mem_block *a = block(away);
  uint64_t page = p->backend->source.page_bytes, at = a->address & ~(page - 1);
  return a->address - free_side(a->left, number) <= at &&
         a->address + a->bytes + free_side(a->right, number) >= at + page;
}

/* Records ensured. */
static void come_home(mem_pool *p, block_id foreign, block_id id, uint64_t from, uint64_t bytes)
{
  block_id away = block(foreign)->prev;
  mem_heap *h = heap_table[block(id)->heap];
  block_id served = back_cut(h, id, from, bytes);
  uint64_t stamp = block(served)->stamp;
  bool left = block(foreign)->right == served;
  history_segment(p, ACTION_SEGMENT_UNMAP, served);
  block(away)->stamp = stamp;
  block(away)->when = block(served)->when;
  block(away)->prev = 0;
  block_join(left ? foreign : served, left ? served : foreign);
  back_leave(p, left ? foreign : served, h, stamp);
  history_segment(p, ACTION_SEGMENT_MAP, away);
  (void)block_give(h, away);
}

unsigned stitch_undo(mem_pool *p, const mem_heap *h, uint32_t before)
{
  unsigned count = 0;
  uint16_t idle = p->common[HEAP_IDLE].number;
  block_id kept = 0, id = p->stitched;
  for (block_id next; id; id = next) {
    uint64_t from, bytes;
    next = block(id)->next;
    block_id at = serving(p, id, &from, &bytes);
    uint16_t number = at ? block(at)->heap : 0;
    bool may = at && (number == idle || (h && number == h->number)) &&
               (int32_t)(block(at)->when - before) <= 0 &&
               (!h || makes_page(p, block(id)->prev, number)) && !block_ensure(p, 2);
    if (may) {
      come_home(p, id, at, from, bytes);
      count++;
    } else {
      block(id)->next = kept;
      kept = id;
    }
  }
  p->stitched = kept;
  return count;
}

/* ---- growing --------------------------------------------------------------------------------- */

/* A way to grow: whole pages next to a free block, or at an end of a hole, and then a piece. */
typedef struct way {
  grow_plan plan;
  uint64_t piece; /* bytes that a piece must have; its place follows the pages */
} way;

/* What the largest pieces have. */
typedef struct most {
  uint64_t low, high;
} most;

static void consider_hole(way *best, const mem_heap *h, block_id hole, uint64_t bytes,
                          const most *m)
{
  uint64_t page = h->pool->backend->source.page_bytes;
  for (int end = 0; end < 2; end++) {
    block_id side = end ? block(hole)->right : block(hole)->left;
    uint64_t have = back_usable_bytes(h, side);
    if (have >= bytes) continue;
    uint64_t pages = (bytes - have) & ~(page - 1), rest = bytes - have - pages;
    if (!rest || rest > (end ? m->high : m->low) || pages + page > block(hole)->bytes) continue;
    if (best->plan.hole &&
        (pages > best->plan.bytes || (pages == best->plan.bytes && rest >= best->piece)))
      continue;
    *best = (way){{hole, have ? side : 0, 0, pages, end}, rest};
  }
}

static way find_way(const mem_heap *h, uint64_t bytes, const most *m)
{
  const mem_heap *holes = &h->pool->common[HEAP_HOLE];
  way best = {0};
  int looks = 0;
  for (int f = 0; f < TLSF_FIRST; f++)
    for (uint32_t in = holes->second[f]; in; in &= in - 1)
      for (block_id id = holes->bins[f][__builtin_ctz(in)]; id && looks < HOLE_LOOKS;
           id = block(id)->next, looks++)
        consider_hole(&best, h, id, bytes, m);
  block_id any = heap_find(holes, page_up(bytes, h->pool->backend->source.page_bytes));
  if (any) consider_hole(&best, h, any, bytes, m);
  return best;
}

/* Where the piece's place is. */
static uint64_t place_after(const way *w, uint64_t page)
{
  const mem_block *hole = block(w->plan.hole);
  return w->plan.at_end ? hole->address + hole->bytes - w->plan.bytes - page
                        : hole->address + w->plan.bytes;
}

static block_id hole_at(const mem_pool *p, uint64_t at)
{
  const mem_heap *holes = &p->common[HEAP_HOLE];
  for (int f = 0; f < TLSF_FIRST; f++)
    for (uint32_t in = holes->second[f]; in; in &= in - 1)
      for (block_id id = holes->bins[f][__builtin_ctz(in)]; id; id = block(id)->next)
        if (at - block(id)->address < block(id)->bytes) return id;
  return 0;
}

/* A place where a page failed to leave once is not to be mapped over. */
static bool usable(const mem_pool *p, uint64_t at)
{
  return !p->stuck || !*back_place(p, at);
}

static weir_status go(mem_heap *h, way *w, uint64_t limit)
{
  const mem_pool *p = h->pool;
  uint64_t at = place_after(w, p->backend->source.page_bytes);
  if (!usable(p, at)) return WEIR_EOOM;
  TRY(back_fill(h, &w->plan, limit));
  piece x = find_piece(h, w->plan.at_end, w->piece);
  block_id hole = hole_at(p, at);
  if (!x.id || !hole) return WEIR_EOOM;
  if (w->plan.at_end) x.from += x.bytes - w->piece;
  x.bytes = w->piece;
  return move_piece(h, hole, at, &x, w->plan.at_end);
}

/* A high piece first, at the beginning of a hole; then it is free memory like other. The plan
 * states where the pages come: after the piece's place. bytes 0: pieces are of no use. */
static way two_pieces(const mem_heap *h, uint64_t bytes, const most *m)
{
  const mem_pool *p = h->pool;
  const mem_heap *holes = &p->common[HEAP_HOLE];
  uint64_t page = p->backend->source.page_bytes, both = m->low + m->high;
  if (!m->low || !m->high || bytes <= m->high) return (way){0};
  uint64_t pages = bytes > both ? page_up(bytes - both, page) : 0;
  block_id hole = heap_find(holes, pages + 2 * page);
  if (!hole || bytes <= m->high + pages) return (way){0};
  return (way){{hole, 0, 0, pages, false}, bytes - m->high - pages};
}

static weir_status go_twice(mem_heap *h, way *w, uint64_t limit)
{
  const mem_pool *p = h->pool;
  uint64_t page = p->backend->source.page_bytes, at = block(w->plan.hole)->address;
  piece x = find_piece(h, true, 0);
  if (!usable(p, at) || w->plan.bytes > limit) return WEIR_EOOM;
  TRY(move_piece(h, w->plan.hole, at, &x, true));
  w->plan.hole = hole_at(p, at + page);
  w->plan.beside = block(w->plan.hole)->left;
  return go(h, w, limit);
}

weir_status stitch_grow(mem_heap *h, uint64_t bytes, uint64_t fresh, uint64_t limit)
{
  most m = {find_piece(h, false, 0).bytes, find_piece(h, true, 0).bytes};
  if (!m.low && !m.high) return WEIR_EOOM;
  way one = find_way(h, bytes, &m), two = two_pieces(h, bytes, &m);
  uint64_t of_one = one.plan.hole ? back_fresh(h, &one.plan) : fresh;
  uint64_t of_two = two.plan.hole ? back_fresh(h, &two.plan) : fresh;
  if (of_one < fresh && of_one <= of_two) return go(h, &one, limit);
  return of_two < fresh ? go_twice(h, &two, limit) : WEIR_EOOM;
}
