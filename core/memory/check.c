/* check.c: the invariants of pool.h, proved by a walk. For tests and for people who debug. */
#include "core/memory/pool.h"
#include "core/base/lock.h"

#define REQUIRE(what, condition)                                                                   \
  if (!(condition)) return what

typedef struct tally {
  uint64_t free_bytes, free_blocks, mapped, chained, leaving, away;
  int64_t inactive[2], tcache_bytes, tcache_blocks, pending[2];
} tally;

static bool in_heap(uint8_t state)
{
  return state == BLOCK_FREE || state == BLOCK_HOLE;
}

/* Address space without memory of its own. */
static bool bare(uint8_t state)
{
  return state == BLOCK_HOLE || state == BLOCK_AWAY;
}

static const char *check_block(const mem_pool *p, block_id id, tally *t)
{
  const mem_block *b = block(id);
  uint8_t state = block_state(b);
  REQUIRE("a block is no multiple of 512 bytes",
          b->bytes && !(b->bytes % UNIT) && !(b->address % UNIT));
  REQUIRE("a spare record is in a chain", state != BLOCK_SPARE && state != BLOCK_USE);
  REQUIRE("a block belongs to another pool's heap",
          heap_table[b->heap] && heap_table[b->heap]->pool == p);
  block_id found = page_map_find(b->address);
  bool known = !bare(state) && state != BLOCK_FREE;
  REQUIRE("the page map knows a free block", known || found != id);
  REQUIRE("the page map does not know a block", !known || found == id);
  bool hole = b->heap == p->common[HEAP_HOLE].number;
  REQUIRE("a block with memory is in the heap of holes", !hole || state == BLOCK_HOLE);
  if (state == BLOCK_HOLE && !hole) t->leaving++;
  if (state == BLOCK_FREE) {
    t->free_bytes += b->bytes;
    t->free_blocks++;
  }
  if (!bare(state)) t->mapped += b->bytes;
  t->away += state == BLOCK_AWAY;
  bool large = b->bytes > CLASS_LIMIT;
  if (state == BLOCK_FREE && (b->left || b->right)) t->inactive[large] += (int64_t)b->bytes;
  if (state == BLOCK_PENDING) t->pending[large] += (int64_t)b->bytes;
  REQUIRE("a free block belongs to a thread cache", !in_heap(state) || !b->tcache);
  t->tcache_bytes += b->tcache ? (int64_t)b->bytes : 0;
  t->tcache_blocks += b->tcache != 0;
  t->chained++;
  if (!b->right) return NULL;
  const mem_block *r = block(b->right);
  REQUIRE("neighbours do not touch", r->left == id && b->address + b->bytes == r->address);
  REQUIRE("free neighbours of one heap were not joined",
          !in_heap(state) || (state == BLOCK_HOLE && !hole) || block_state(r) != state ||
              r->heap != b->heap);
  return NULL;
}

static const char *check_heap(const mem_heap *h, uint64_t *bytes, uint64_t *blocks)
{
  uint64_t own_bytes = 0, own_blocks = 0;
  for (int f = 0; f < TLSF_FIRST; f++) {
    REQUIRE("a heap's first bitmap is wrong", !(h->first & 1u << f) == !h->second[f]);
    for (int s = 0; s < TLSF_SECOND; s++) {
      block_id id = h->bins[f][s];
      REQUIRE("a heap's second bitmap is wrong", !(h->second[f] & 1u << s) == !id);
      for (block_id before = 0; id; before = id, id = block(id)->next) {
        REQUIRE("a bin's list is broken", block(id)->prev == before);
        REQUIRE("a block in a heap is not free", in_heap(block_state(block(id))));
        REQUIRE("a block is in another's heap", block(id)->heap == h->number);
        own_bytes += block(id)->bytes;
        own_blocks++;
      }
    }
  }
  REQUIRE("a heap's counts are wrong", own_bytes == h->free_bytes && own_blocks == h->free_blocks);
  *bytes += own_bytes;
  *blocks += own_blocks;
  return NULL;
}

typedef struct owned {
  const weir_graph_pool *graph;
  uint64_t live;
} owned;

static void count_owned(void *user, const mem_block *b)
{
  owned *o = user;
  if (heap_table[b->heap]->graph == o->graph && block_state(b) != BLOCK_FREE) o->live++;
}

static const char *check_graph(const weir_graph_pool *g, uint64_t *bytes, uint64_t *blocks)
{
  owned o = {g, 0};
  const char *wrong = check_heap(&g->idle, bytes, blocks);
  for (const mem_heap *h = g->heaps; h && !wrong; h = h->next)
    wrong = check_heap(h, bytes, blocks);
  pool_walk(g->pool, count_owned, &o);
  REQUIRE("a private pool's count of live blocks is wrong", wrong || o.live == g->live);
  return wrong;
}

/* Pages in places of [address, address + bytes), in bytes. */
static uint64_t given_bytes(const mem_pool *p, uint64_t address, uint64_t bytes)
{
  uint64_t page = p->backend->source.page_bytes, places = 0;
  for (uint64_t at = address - p->base; at < address - p->base + bytes; at += page)
    places += p->pages[at / page] != 0;
  return places * page;
}

static uint64_t paused_bytes(const mem_pool *p)
{
  uint64_t page = p->backend->source.page_bytes, places = 0;
  for (uint64_t i = 0; p->copies && i < p->space / page; i++)
    places += p->copies[i] && !p->pages[i];
  return places * page;
}

/* What is leaving has pages of its own only where a mapping failed. */
static const char *check_pages(const mem_pool *p, uint64_t mapped, uint64_t leaving)
{
  uint64_t given = p->space ? given_bytes(p, p->base, p->space) : mapped;
  for (block_id id = p->leaving; id; id = block(id)->next, leaving--)
    mapped += given_bytes(p, block(id)->address, block(id)->bytes);
  mapped += p->stuck * p->backend->source.page_bytes;
  REQUIRE("the count of paused bytes is wrong", p->paused_bytes == paused_bytes(p));
  REQUIRE("a hole of a stream is not leaving", !leaving);
  REQUIRE("a block has no memory, or a hole has some that is not counted",
          given + p->paused_bytes == mapped);
  REQUIRE("the count of reserved bytes is wrong",
          p->reserved == given + (p->space ? p->spare_count * p->backend->source.page_bytes : 0));
  return NULL;
}

/* Every piece away serves in one place, next to a foreign piece of the same page. */
static const char *check_stitched(const mem_pool *p, uint64_t away)
{
  uint64_t page = p->backend->source.page_bytes;
  for (block_id id = p->stitched; id; id = block(id)->next, away -= 2) {
    const mem_block *f = block(id), *a = block(f->prev);
    REQUIRE("a piece away has no place",
            block_state(f) == BLOCK_AWAY && block_state(a) == BLOCK_AWAY && block(a->prev) == f);
    REQUIRE("a piece does not fill its place",
            a->bytes + f->bytes == page && ((f->address + f->bytes) % page == a->address % page ||
                                            f->address % page == a->bytes));
    REQUIRE("a piece's page has two homes, or none",
            !p->pages[(f->address - p->base) / page] && p->pages[(a->address - p->base) / page]);
  }
  REQUIRE("a piece away is in no list", !away);
  return NULL;
}

static const char *check_all(const mem_pool *p)
{
  tally t = {0};
  uint64_t bytes = 0, blocks = 0;
  for (unsigned i = 0; i < p->head_count; i++) {
    REQUIRE("a range does not begin with its first block", !block(p->heads[i])->left);
    for (block_id id = p->heads[i]; id; id = block(id)->right) {
      const char *wrong = check_block(p, id, &t);
      if (wrong) return wrong;
    }
  }
  for (unsigned i = 0; i <= p->heap_count; i++) {
    const char *wrong =
        check_heap(i ? heap_table[p->numbers[i - 1]] : &p->common[HEAP_IDLE], &bytes, &blocks);
    if (wrong) return wrong;
  }
  for (const weir_graph_pool *g = p->graphs; g; g = g->next) {
    const char *wrong = check_graph(g, &bytes, &blocks);
    if (wrong) return wrong;
  }
  REQUIRE("a free block is in no heap", bytes == t.free_bytes && blocks == t.free_blocks);
  REQUIRE("the count of inactive bytes is wrong",
          p->inactive[0].current == t.inactive[0] && p->inactive[1].current == t.inactive[1]);
  REQUIRE("the count of pending bytes is wrong",
          p->pending_bytes[0] == t.pending[0] && p->pending_bytes[1] == t.pending[1]);
  REQUIRE("the count of the thread caches' blocks is wrong",
          p->tcache_bytes == t.tcache_bytes && p->tcache_blocks == t.tcache_blocks);
  bytes = blocks = 0;
  const char *wrong = check_pages(p, t.mapped, t.leaving);
  if (!wrong) wrong = check_stitched(p, t.away);
  return wrong ? wrong : check_heap(&p->common[HEAP_HOLE], &bytes, &blocks);
}

const char *pool_check(mem_pool *p)
{
  HOLD_LOCK(&p->lock);
  tcache_freeze(p);
  const char *wrong = check_all(p);
  tcache_thaw(p);
  return wrong;
}
