/* graph.c: private pools: memory that captured graphs keep.
 *
 * A captured graph holds addresses, and a replay may touch them at any time, also those that were
 * freed while it was captured. So what is allocated during a capture comes from a private pool, and
 * its memory serves nobody else as long as a graph may use it.
 *
 * A private pool has a heap for each stream that allocates in it, and an idle heap, in addition to
 * those of the device's pool. Blocks of different heaps never merge, growing takes whole pages or
 * segments, and trimming looks at the common idle heap only: that is all it takes to keep the
 * memory apart. A private heap has no epochs: its stream's ordinary heap is its `clock`, and states
 * when what was freed is complete. Until then a block is reused by its own stream only, afterwards
 * by all streams of the pool.
 *
 * Uses. One for the handle, one for each capture begun: a graph's. When the last is released the
 * pool is dying: replays may still run, in any stream. Every stream's epoch is noted, and when all
 * of them are done the pool is dead: its blocks become ordinary ones. It is forgotten when nothing
 * of it is live.
 *
 * While something allocates to a private pool, the thread caches of its streams are stopped, so
 * that every request passes graph_route(). */
#include <stdlib.h>
#include "core/base/lock.h"
#include "core/backend/plugin.h"
#include "core/memory/devices.h"
#include "core/weir/pools.h"

static _Atomic uint64_t ids; /* given so far */

/* ---- routing --------------------------------------------------------------------------------- */

static weir_status heap_new(weir_graph_pool *g, mem_heap *clock, mem_heap **out)
{
  mem_heap *h = calloc(1, sizeof *h);
  weir_status st = h ? heap_number(h, g->pool) : fail_memory("a heap of a private pool");
  if (!h || st) {
    free(h);
    return st;
  }
  h->clock = clock;
  h->stream = clock->stream;
  h->graph = g;
  h->next = g->heaps;
  *out = g->heaps = h;
  return WEIR_OK;
}

weir_status graph_route(mem_heap **h)
{
  mem_pool *p = (*h)->pool;
  weir_graph_pool *g = NULL;
  for (unsigned i = 0; i < p->capture_count && !g; i++)
    if (p->captures[i].stream == *h) g = p->captures[i].graph;
  for (unsigned i = 0; i < p->capture_count && !g; i++)
    if (!p->captures[i].stream && epoch_capturing(*h)) g = p->captures[i].graph;
  if (!g) return WEIR_OK;
  for (mem_heap *own = g->heaps; own; own = own->next)
    if (own->clock == *h) {
      *h = own;
      return WEIR_OK;
    }
  return heap_new(g, *h, h);
}

/* ---- retiring -------------------------------------------------------------------------------- */

/* Moves what is complete to `idle`, and the rest to `rest` (NULL: it stays). */
static void sort_bin(mem_heap *h, block_id id, mem_heap *idle, mem_heap *rest)
{
  uint64_t done = h->clock ? h->clock->done : UINT64_MAX;
  for (block_id next; id; id = next) {
    next = block(id)->next;
    bool complete = block(id)->stamp <= done;
    if (!complete && !rest) continue;
    heap_remove(h, id);
    if (complete) block(id)->stamp = 0;
    block_give(complete ? idle : rest, id);
  }
}

static void sort_heap(mem_heap *h, mem_heap *idle, mem_heap *rest)
{
  for (int f = 0; f < TLSF_FIRST && h->free_blocks; f++)
    for (uint32_t in = h->second[f]; in; in &= in - 1)
      sort_bin(h, h->bins[f][__builtin_ctz(in)], idle, rest);
}

/* Whether the work of every stream at the time of the last release is complete. */
static bool work_is_over(const weir_graph_pool *g)
{
  const mem_pool *p = g->pool;
  for (unsigned i = 0; i < p->heap_count; i++)
    if (g->stamps[p->numbers[i]] > heap_table[p->numbers[i]]->done) return false;
  return true;
}

static void drop_graph_pool(weir_graph_pool *g)
{
  for (mem_heap *h = g->heaps, *next; h; h = next) {
    next = h->next;
    heap_unnumber(h);
    free(h);
  }
  heap_unnumber(&g->idle);
  free(g->stamps);
  free(g);
}

static void retire(weir_graph_pool *g)
{
  mem_heap *common = &g->pool->common[HEAP_IDLE];
  g->dead = g->dead || (!g->uses && work_is_over(g));
  for (mem_heap *h = g->heaps; h; h = h->next)
    sort_heap(h, g->dead ? common : &g->idle, g->dead ? h->clock : NULL);
  if (g->dead) sort_heap(&g->idle, common, NULL);
}

void graph_retire(mem_pool *p)
{
  for (weir_graph_pool **at = &p->graphs; *at;) {
    weir_graph_pool *g = *at;
    retire(g);
    if (g->dead && !g->live) {
      *at = g->next;
      drop_graph_pool(g);
    } else {
      at = &g->next;
    }
  }
}

void graph_forget_pools(mem_pool *p)
{
  for (weir_graph_pool *g = p->graphs, *next; g; g = next) {
    next = g->next;
    drop_graph_pool(g);
  }
  p->graphs = NULL;
}

/* ---- the public side ------------------------------------------------------------------------- */

weir_status graph_pool_new(mem_pool *p, weir_graph_pool **out)
{
  weir_graph_pool *g = calloc(1, sizeof *g);
  uint64_t *stamps = calloc(HEAPS, sizeof *stamps);
  weir_status st = g && stamps ? heap_number(&g->idle, p) : fail_memory("a private pool");
  if (!g || st) {
    free(stamps);
    free(g);
    return st;
  }
  g->pool = p;
  g->id = ++ids;
  g->idle.graph = g;
  g->stamps = stamps;
  g->uses = 1;
  g->next = p->graphs;
  p->graphs = g;
  *out = g;
  return WEIR_OK;
}

/* Where the allocating to a pool is noted; CAPTURES: nowhere. */
static unsigned find_capture(const mem_pool *p, const weir_graph_pool *g, const mem_heap *stream)
{
  unsigned i = 0;
  while (i < p->capture_count &&
         (p->captures[i].stream != stream || (g && p->captures[i].graph != g)))
    i++;
  return i < p->capture_count ? i : CAPTURES;
}

static weir_status begin_capture(weir_graph_pool *g, mem_heap *stream)
{
  mem_pool *p = g->pool;
  if (!g->uses)
    return fail_invalid("private pool %llu has been released", (unsigned long long)g->id);
  if (stream && stream->left) return fail_invalid("the stream has been released");
  if (find_capture(p, NULL, stream) != CAPTURES)
    return fail_invalid("%s allocates to a private pool already",
                        stream ? "the stream" : "every capture of the device");
  if (p->capture_count == CAPTURES)
    return weir_fail(WEIR_ELIMIT, "%d captures are underway, the most there can be", CAPTURES);
  p->captures[p->capture_count++] = (pool_capture){.graph = g, .stream = stream};
  g->uses++;
  tcache_divert(p, stream, 1);
  return WEIR_OK;
}

weir_status weir_graph_pool_begin(weir_graph_pool *pool, weir_stream *stream)
{
  WEIR_REQUIRE(pool);
  mem_heap *h = (mem_heap *)stream;
  if (h && h->pool != pool->pool)
    return fail_invalid("the stream is not of the private pool's device");
  if (device_forked()) return WEIR_ECUDA;
  HOLD_LOCK(&pool->pool->lock);
  return begin_capture(pool, h);
}

/* Takes the i-th away, and those that joined it. */
static void end_captures(mem_pool *p, unsigned i)
{
  mem_heap *leader = p->captures[i].stream;
  for (unsigned k = p->capture_count; k-- > 0;) {
    pool_capture c = p->captures[k];
    if (k != i && (!leader || c.leader != leader)) continue;
    p->captures[k] = p->captures[--p->capture_count];
    if (i == p->capture_count) i = k;
    tcache_divert(p, c.stream, -1);
  }
}

weir_status graph_join(mem_heap *waiter, const mem_heap *waited)
{
  mem_pool *p = waiter->pool;
  weir_status st = WEIR_OK;
  if (p != waited->pool || waiter == waited) return WEIR_OK;
  HOLD_LOCK(&p->lock);
  unsigned i = find_capture(p, NULL, waited);
  if (i < CAPTURES && find_capture(p, NULL, waiter) == CAPTURES) {
    pool_capture c = p->captures[i];
    st = begin_capture(c.graph, waiter);
    if (!st) c.graph->uses--; /* the graph has one already */
    if (!st) p->captures[p->capture_count - 1].leader = c.leader ? c.leader : c.stream;
  }
  return st;
}

mem_heap *graph_leader(mem_heap *h)
{
  mem_pool *p = h->pool;
  mem_heap *leader = NULL;
  HOLD_LOCK(&p->lock);
  unsigned i = find_capture(p, NULL, h);
  if (i < CAPTURES) leader = p->captures[i].leader ? p->captures[i].leader : h;
  return leader;
}

weir_status weir_graph_pool_end(weir_graph_pool *pool, weir_stream *stream)
{
  WEIR_REQUIRE(pool);
  mem_pool *p = pool->pool;
  weir_status st = WEIR_OK;
  if (device_forked()) return WEIR_ECUDA;
  HOLD_LOCK(&p->lock);
  unsigned i = find_capture(p, pool, (mem_heap *)stream);
  if (i == CAPTURES) {
    st = fail_invalid("nothing of that stream allocates to private pool %llu",
                      (unsigned long long)pool->id);
  } else {
    end_captures(p, i);
  }
  return st;
}

static bool underway(const weir_graph_pool *g)
{
  for (unsigned i = 0; i < g->pool->capture_count; i++)
    if (g->pool->captures[i].graph == g) return true;
  return false;
}

static weir_status release_graph_pool(weir_graph_pool *g)
{
  mem_pool *p = g->pool;
  if (!g->uses || (g->uses == 1 && underway(g)))
    return fail_invalid("private pool %llu %s", (unsigned long long)g->id,
                        g->uses ? "is being allocated to" : "has been released before");
  if (--g->uses) return WEIR_OK;
  for (unsigned i = 0; i < p->heap_count; i++) {
    mem_heap *h = heap_table[p->numbers[i]];
    g->stamps[h->number] = h->dirty = h->epoch;
  }
  epoch_poll(p, true, NULL);
  graph_retire(p);
  return WEIR_OK;
}

weir_status weir_graph_pool_release(weir_graph_pool *pool)
{
  WEIR_REQUIRE(pool);
  mem_pool *p = pool->pool;
  if (device_forked()) return WEIR_ECUDA;
  HOLD_LOCK(&p->lock);
  return release_graph_pool(pool);
}

static void add_block(void *user, const mem_block *b)
{
  weir_graph_pool_stats *s = user;
  const weir_graph_pool *g = heap_table[b->heap]->graph;
  if (!g || g->dead || g->id != s->id) return;
  s->reserved_bytes += b->bytes;
  if (block_state(b) == BLOCK_LIVE) s->allocated_bytes += b->bytes;
  if (block_state(b) == BLOCK_FREE) s->free_bytes += b->bytes;
}

weir_status weir_graph_pool_get_stats(weir_graph_pool_stats *out, weir_graph_pool *pool)
{
  WEIR_REQUIRE(out, pool);
  *out = (weir_graph_pool_stats){.id = pool->id};
  if (device_forked()) return WEIR_ECUDA;
  HOLD_LOCK(&pool->pool->lock);
  out->uses = pool->uses;
  pool_walk(pool->pool, add_block, out);
  return WEIR_OK;
}
