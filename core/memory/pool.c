/* pool.c: the slow path: the reuse order, and a pool's life.
 *
 * A request that no thread cache serves goes down these steps until one gives a block; each is
 * tried only when all before it have nothing:
 *
 *   1  the stream's own free blocks: the order of the stream makes them safe
 *   2  idle blocks, whose work is known to be complete
 *   3  blocks of other streams whose work this stream already runs after
 *   4  grow, below the soft limit
 *   5  insert a wait for another stream that has enough
 *   6  grow, up to the limit
 *   7  trim and stitch: idle pieces become one (pieces below a page from 7/8 of the limit on)
 *   8  wait for all streams, then 2 and 7 again
 *   9  the out-of-memory callback, then all of it again; else an error that gives the reason
 *
 * What threads keep in their thread caches is taken back before anything costs a call to the
 * device. */
#include <stdlib.h>
#include "core/base/clock.h"
#include "core/memory/history.h"
#include "core/memory/host.h"

enum { LARGE_FREE = 8 << 20 }; /* bytes of a free block from which small ones keep to its end */

/* ---- blocks out and in ----------------------------------------------------------------------- */

static bool may_split(const mem_pool *p)
{
  return !p->config.whole_block;
}

/* PyTorch's rule for segments larger than max_split_size: whole, and only to requests near their
 * size. */
static bool too_large(const mem_pool *p, const mem_block *b, uint64_t bytes)
{
  /* A large idle chunk of a host pool could not go back while something small lives in it. */
  if (p->host) return !p->last_resort && b->bytes > HOST_CHUNK && bytes < b->bytes / 16;
  uint64_t most = p->config.max_split_bytes;
  return !p->space && b->bytes > most && (bytes <= most || b->bytes - bytes >= (20u << 20));
}

bool pool_may_take(const mem_pool *p, block_id id, uint64_t bytes)
{
  return !too_large(p, block(id), bytes);
}

/* The class of a block that has its size; NO_CLASS where the thread caches have no bin for it. */
static uint8_t class_of(const mem_block *b)
{
  if (b->bytes > CLASS_LIMIT) return NO_CLASS;
  uint8_t class =
      atomic_load_explicit(&class_of_units[b->bytes >> UNIT_SHIFT], memory_order_acquire);
  return bytes_of_class[class] == b->bytes ? class : NO_CLASS;
}

/* Cuts `bytes` off a block that is in no heap. Small blocks are cut off the end of a large one:
 * there they gather, and the rest stays one piece. */
static block_id cut_block(mem_heap *from, block_id id, uint64_t bytes)
{
  if (bytes > CLASS_LIMIT || block(id)->bytes <= LARGE_FREE) {
    block_split(id, bytes, from);
    return id;
  }
  block_split(id, block(id)->bytes - bytes, from);
  block_id right = block(id)->right;
  heap_remove(from, right);
  heap_put(from, id);
  return right;
}

/* Takes a free block out of heap `from` for heap h: `bytes` of it, the rest stays. Records ensured.
 */
static weir_status take_free_block(mem_heap *from, mem_heap *h, block_id id, uint64_t bytes,
                                   block_id *out)
{
  mem_pool *p = h->pool;
  mem_block *b = block(id);
  if (!id || too_large(p, b, bytes)) return WEIR_EOOM;
  heap_remove(from, id);
  if (may_split(p) && !(b->bytes > p->config.max_split_bytes && !p->space))
    id = cut_block(from, id, bytes);
  b = block(id);
  b->heap = h->number;
  b->stamp = 0;
  b->class = class_of(b);
  page_map_put(id);
  *out = id;
  return WEIR_OK;
}

static weir_status take_from(mem_heap *from, mem_heap *h, uint64_t bytes, block_id *out)
{
  block_id id = may_split(h->pool) ? heap_find(from, bytes) : heap_find_exact(from, bytes);
  return take_free_block(from, h, id, bytes, out);
}

/* ---- the reuse order ------------------------------------------------------------------------- */

/* Small requests fill small pieces, else they take from the largest. */
static block_id find_fit(const mem_heap *h, uint64_t bytes)
{
  block_id id = heap_find(h, bytes);
  if (!id || bytes > CLASS_LIMIT || block(id)->bytes <= LARGE_FREE) return id;
  int f = 31 - __builtin_clz(h->first);
  return h->bins[f][31 - __builtin_clz(h->second[f])];
}

/* Steps 1 and 2 without asking the device anything: the better fit of both. */
static weir_status reuse_block(mem_heap *h, uint64_t bytes, block_id *out)
{
  mem_heap *idle = idle_of(h);
  if (!may_split(h->pool)) {
    weir_status st = take_from(h, h, bytes, out);
    return st == WEIR_EOOM ? take_from(idle, h, bytes, out) : st;
  }
  block_id own = find_fit(h, bytes), other = find_fit(idle, bytes);
  bool first = own && (!other || block(own)->bytes <= block(other)->bytes);
  weir_status st = take_free_block(first ? h : idle, h, first ? own : other, bytes, out);
  return st == WEIR_EOOM ? take_free_block(first ? idle : h, h, first ? other : own, bytes, out)
                         : st;
}

/* Steps 2 and 3 with all that is known after asking. */
static weir_status reuse_known(mem_heap *h, uint64_t bytes, block_id *out)
{
  mem_pool *p = h->pool;
  epoch_poll(p, true, p->pending ? NULL : h);
  epoch_pending(p);
  epoch_retire(p, h);
  weir_status st = reuse_block(h, bytes, out);
  for (unsigned i = 0; i < p->heap_count && st == WEIR_EOOM && !h->graph; i++) {
    mem_heap *from = heap_table[p->numbers[i]];
    if (from == h || !h->known[from->number] || !may_split(p)) continue;
    st = take_free_block(from, h, heap_find_stamp(from, bytes, h->known[from->number]), bytes, out);
  }
  return st;
}

/* Takes what threads keep and cannot be had otherwise. */
static weir_status reuse_tcaches(mem_heap *h, uint64_t bytes, block_id *out)
{
  tcache_reclaim(h->pool);
  weir_status st = reuse_block(h, bytes, out);
  return st == WEIR_EOOM ? reuse_known(h, bytes, out) : st;
}

static weir_status grow_heap(mem_heap *h, uint64_t bytes, uint64_t limit, block_id *out)
{
  weir_status st = back_grow(h->pool, h, bytes, limit);
  epoch_alert(h->pool);
  return st ? st : take_from(h, h, bytes, out);
}

static bool exhausted(weir_status st)
{
  return st == WEIR_EOOM || st == WEIR_ELIMIT;
}

/* Step 5. */
static weir_status reuse_after_wait(mem_heap *h, uint64_t bytes, block_id *out)
{
  mem_pool *p = h->pool;
  weir_status st = WEIR_EOOM;
  for (unsigned i = 0; i < p->heap_count && st == WEIR_EOOM && !h->graph; i++) {
    mem_heap *from = heap_table[p->numbers[i]];
    block_id id = from == h || !may_split(p) ? 0 : heap_find(from, bytes);
    if (!id || too_large(p, block(id), bytes) || epoch_wait(h, from)) continue;
    st = take_free_block(from, h, id, bytes, out);
  }
  return st;
}

/* Step 7: idle memory is given back, or its pages are moved together, and we grow into the room.
 */
static weir_status reuse_pages(mem_heap *h, uint64_t bytes, block_id *out)
{
  mem_pool *p = h->pool;
  p->last_resort = true;
  epoch_collect(p);
  weir_status st = reuse_block(h, bytes, out);
  if (st != WEIR_EOOM) return st;
  p->stitches += p->space != 0;
  st = back_trim(p, p->clock(), bytes, true);
  if (!st) st = grow_heap(h, bytes, pool_limit(p), out);
  if (!exhausted(st) || p->space) return st;
  st = back_trim(p, p->clock(), UINT64_MAX, false);
  return st ? st : grow_heap(h, bytes, pool_limit(p), out);
}

static weir_status reuse_synced(mem_heap *h, uint64_t bytes, block_id *out)
{
  weir_status st = epoch_sync(h->pool);
  return st ? st : reuse_pages(h, bytes, out);
}

/* Idle memory that nobody has wanted for decay_ms goes back; asks the device, never waits for it.
 */
static void decay(mem_pool *p)
{
  uint32_t now = p->clock(), after = (uint32_t)p->config.decay_ms;
  if (!after || now - p->decayed < after / 4 + 1) return;
  p->decayed = now;
  epoch_collect(p);
  (void)back_trim(p, now - after, UINT64_MAX, false);
}

static weir_status collect_above(mem_heap *h, uint64_t bytes)
{
  mem_pool *p = h->pool;
  double share = p->config.gc_threshold;
  if (share <= 0 || (double)(p->reserved + bytes) <= share * (double)pool_limit(p)) return WEIR_OK;
  epoch_poll(p, true, NULL);
  epoch_retire(p, NULL);
  return back_trim(p, p->clock(), bytes, false);
}

static weir_status find_free_block(mem_heap *h, uint64_t bytes, block_id *out)
{
  mem_pool *p = h->pool;
  uint64_t limit = pool_limit(p), soft = p->config.soft_limit_bytes;
  p->last_resort = false;
  weir_status st = block_ensure(p, 8);
  if (!st) st = reuse_block(h, bytes, out);
  if (st != WEIR_EOOM) return st;
  decay(p);
  if (p->host && (st = block_ensure(p, 8))) return st; /* decay gave the lock back */
  st = reuse_known(h, bytes, out);
  if (!st && p->heap_count > 1) epoch_alert(p);
  if (st != WEIR_EOOM) return st;
  if ((st = reuse_tcaches(h, bytes, out)) != WEIR_EOOM) return st;
  if ((st = collect_above(h, bytes))) return st;
  st = grow_heap(h, bytes, soft && soft < limit ? soft : limit, out);
  if (!exhausted(st)) return st;
  p->retries++;
  if ((st = reuse_after_wait(h, bytes, out)) != WEIR_EOOM) return st;
  if (soft && soft < limit && !exhausted(st = grow_heap(h, bytes, limit, out))) return st;
  if (!exhausted(st = reuse_pages(h, bytes, out))) return st;
  return reuse_synced(h, bytes, out);
}

static weir_status find_or_ask(mem_heap *h, uint64_t bytes, block_id *out)
{
  mem_pool *p = h->pool;
  weir_status st;
  while (exhausted(st = find_free_block(h, bytes, out)) && p->oom) {
    bool (*ask)(void *, uint64_t) = p->oom;
    void *user = p->oom_user;
    pthread_mutex_unlock(&p->lock);
    bool again = ask(user, bytes);
    pthread_mutex_lock(&p->lock);
    if (!again) break;
  }
  return st;
}

weir_status pool_alloc_slow(mem_heap *h, uint64_t bytes, thread_cache *f, void **out)
{
  mem_pool *p = h->pool;
  block_id id = 0;
  class_learn(p, bytes);
  uint64_t size = bytes >> 39 ? bytes : round_request(p, bytes);
  weir_status st = p->capture_count ? graph_route(&h) : WEIR_OK;
  if (h->left) return fail_invalid("the stream has been released");
  if (!st) st = bytes >> 39 ? WEIR_EOOM : find_or_ask(h, size, &id);
  if (exhausted(st)) return pool_oom(h, bytes, st);
  if (st) return st;
  mem_block *b = block(id);
  b->tcache = f && !h->graph && b->class != NO_CLASS ? f->number : 0;
  b->uses = 0;
  if (h->graph) h->graph->live++;
  b->requested = bytes;
  b->when = tag_now;
  block_set(b, BLOCK_LIVE);
  *out = (void *)b->address;
  if (b->tcache) {
    p->tcache_bytes += (int64_t)b->bytes;
    p->tcache_blocks++;
  } else {
    pool_count_live(p, b, 1);
  }
  if (p->host) p->host_calls->used(p, b->address);
  history_alloc(p, id);
  return WEIR_OK;
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The only heap of a host pool: no stream's work is ever after what is in it. */
static void make_host_heap(mem_heap *idle)
{
  idle->clock = idle;
  idle->by_tcache = true;
  idle->done = UINT64_MAX;
}

weir_status pool_new(mem_pool **out, const weir_backend *backend, const pool_config *config)
{
  return pool_new_host(out, backend, config, NULL, NULL);
}

weir_status pool_new_host(mem_pool **out, const weir_backend *backend, const pool_config *config,
                          struct host_pool *host, const host_pool_calls *calls)
{
  weir_status st = meta_init();
  if (st) return st;
  mem_pool *p = calloc(1, sizeof *p);
  if (!p) return fail_memory("a pool");
  pthread_mutex_init(&p->lock, NULL);
  p->backend = backend;
  p->host = host;
  p->host_calls = calls;
  if (host) make_host_heap(&p->common[HEAP_IDLE]);
  p->config = config ? *config : pool_config_default;
  p->clock = clock_coarse_ms;
  p->decayed = clock_coarse_ms();
  p->fraction = 1;
  if (!(st = heap_number(&p->common[HEAP_IDLE], p)) &&
      !(st = heap_number(&p->common[HEAP_HOLE], p)))
    st = back_init(p);
  if (!st) {
    *out = p;
    return WEIR_OK;
  }
  for (int i = 0; i < 2; i++)
    if (p->common[i].number) heap_unnumber(&p->common[i]);
  pthread_mutex_destroy(&p->lock);
  free(p->heads);
  free(p);
  return st;
}

/* The stream's heap, or one whose stream is gone that serves it from now on. Lock held. */
static mem_heap *heap_of_stream(const mem_pool *p, void *stream)
{
  for (unsigned i = 0; i < p->heap_count; i++) {
    mem_heap *h = heap_table[p->numbers[i]];
    if (h->stream == stream && !h->left) return h;
  }
  for (unsigned i = 0; i < p->heap_count; i++)
    if (epoch_return(heap_table[p->numbers[i]], stream)) return heap_table[p->numbers[i]];
  return NULL;
}

weir_status pool_heap(mem_pool *p, void *stream, mem_heap **out)
{
  pthread_mutex_lock(&p->lock);
  if ((*out = heap_of_stream(p, stream))) {
    pthread_mutex_unlock(&p->lock);
    return WEIR_OK;
  }
  mem_heap *h = calloc(1, sizeof *h);
  uint64_t *known = calloc(HEAPS, sizeof *known);
  weir_status st = h && known ? heap_number(h, p) : fail_memory("a heap");
  if (h && !st) {
    h->stream = stream;
    h->clock = h;
    h->by_tcache = !p->config.whole_block && !p->config.roundup_divisions;
    h->known = known;
    p->numbers[p->heap_count++] = h->number;
    *out = h;
  } else {
    free(h);
    free(known);
  }
  pthread_mutex_unlock(&p->lock);
  return st;
}

/* Waits for the work that may touch freed memory. */
static weir_status await_freed(mem_pool *p)
{
  weir_status st = epoch_sync(p);
  if (st) return st;
  epoch_pending(p);
  if ((st = epoch_sync(p))) return st;
  epoch_retire(p, NULL);
  return WEIR_OK;
}

static weir_status trim_to(mem_pool *p, uint64_t keep)
{
  uint64_t more = !keep ? UINT64_MAX : p->reserved > keep ? p->reserved - keep : 0;
  return more ? back_trim(p, p->clock(), more, false) : WEIR_OK;
}

/* Freed memory that queued work may touch is waited for where the rest does not do: PyTorch's
 * callers free a tensor, empty the cache and expect the memory to be the device's. Not during a
 * capture, which a wait would end; and pinned memory is kept, as PyTorch keeps it. */
weir_status pool_trim(mem_pool *p, uint64_t keep)
{
  uint64_t before = history_enter(p, false);
  pthread_mutex_lock(&p->lock);
  tcache_reclaim(p);
  epoch_collect(p);
  weir_status st = trim_to(p, keep);
  if (!st && !p->host && !p->capture_count && p->reserved > keep) {
    st = await_freed(p);
    if (!st) st = trim_to(p, keep);
  }
  pthread_mutex_unlock(&p->lock);
  history_leave(before);
  return st;
}

weir_status weir_pool_empty(mem_pool *p)
{
  return pool_trim(p, 0);
}

static weir_status drain_pool(mem_pool *p)
{
  tcache_reclaim(p);
  weir_status st = await_freed(p);
  return st ? st : trim_to(p, 0);
}

static weir_status drop_markers(const mem_pool *p, mem_heap *h)
{
  const weir_backend *b = p->backend;
  for (int i = 0; i < MARKERS; i++) {
    void **event = &h->markers[i].event;
    TRY(*event ? b->event_destroy(b->self, *event) : WEIR_OK);
    *event = NULL;
  }
  weir_status st = h->mark ? b->event_destroy(b->self, h->mark) : WEIR_OK;
  if (!st) h->mark = NULL;
  return st;
}

static weir_status drop_heaps(mem_pool *p)
{
  while (p->heap_count) {
    mem_heap *h = heap_table[p->numbers[p->heap_count - 1]];
    weir_status st = drop_markers(p, h);
    if (!st && h->own) st = p->backend->stream_destroy(p->backend->self, h->stream);
    if (st) return st;
    heap_unnumber(h);
    free(h->known);
    free(h);
    p->heap_count--;
  }
  return WEIR_OK;
}

weir_status pool_free(mem_pool *p)
{
  pthread_mutex_lock(&p->lock);
  weir_status st = drain_pool(p);
  unsigned graphs = 0;
  for (const weir_graph_pool *g = p->graphs; g; g = g->next)
    graphs += g->uses != 0;
  if (!st && graphs) st = fail_invalid("%u private pools of graphs were not released", graphs);
  unsigned long long left = p->reserved + p->paused_bytes;
  if (!st && !back_empty(p))
    st = fail_invalid("the pool has %llu bytes in blocks that were not freed", left);
  if (!st) pool_pause_fini(p);
  if (!st) st = back_fini(p);
  if (!st) {
    history_drop(p);
    tcache_detach(p);
    graph_forget_pools(p);
    st = drop_heaps(p);
  }
  pthread_mutex_unlock(&p->lock);
  if (st) return st;
  heap_unnumber(&p->common[HEAP_IDLE]);
  heap_unnumber(&p->common[HEAP_HOLE]);
  pthread_mutex_destroy(&p->lock);
  free(p->heads);
  free(p);
  return WEIR_OK;
}
