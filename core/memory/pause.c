/* pause.c: memory of live blocks goes back to the device while their addresses stay.
 *
 * What can be paused is a VMM page that lies wholly in paused blocks; a page shared with anything
 * else stays. A paused block has a USE record of that kind, which states its tag and whether its
 * contents are saved. pool->copies states of each place of the address space whether its page is
 * paused (pause.h): NULL: no; &pause_lost: yes, its contents are gone; else yes, and there is
 * its copy (owned).
 *
 * A pause first waits for the work of all streams, since any may touch a live block. Then it
 * copies, unmaps, and only then destroys pages, so that it can still be undone; resuming maps,
 * copies, and only then forgets the copies. All under the pool's lock, with all threads out of
 * their thread caches.
 *
 * What becomes of a block that is freed while it is paused: release.c. */
#include <sys/mman.h>
#include "core/base/pages.h"
#include "core/memory/pause.h"

/* The page of a place that leaves it, or comes back. */
static uint64_t take_page(mem_pool *p, uint64_t address)
{
  uint64_t *place = &p->pages[page_place_of(p, address)], page = *place;
  *place = 0;
  p->paused_bytes += page_bytes(p);
  return page;
}

static void put_page(mem_pool *p, uint64_t address, uint64_t page)
{
  p->pages[page_place_of(p, address)] = page;
  p->paused_bytes -= page_bytes(p);
}

/* ---- which blocks, which pages --------------------------------------------------------------- */

static bool may_pause(const mem_block *b, unsigned tag)
{
  return block_state(b) == BLOCK_LIVE && (tag >= ALL_TAGS || b->when % WEIR_TAGS == tag) &&
         !heap_table[b->heap]->graph && !block_use_find(b, USE_EXPORT, 0) && !pause_of(b);
}

static bool resumes(const mem_block *b, unsigned tag)
{
  block_id u = pause_of(b);
  return u && (block_state(b) != BLOCK_PENDING || block(u)->stamp == DEAD) &&
         (tag >= ALL_TAGS || block(u)->when % WEIR_TAGS == tag);
}

/* Calls for every paused place of the blocks that resuming the tag resumes, once and in order. */
static weir_status over_pages(mem_pool *p, unsigned tag,
                              weir_status (*each)(mem_pool *, uint64_t at, uint64_t *sum),
                              uint64_t *sum)
{
  uint64_t next = 0;
  weir_status st = WEIR_OK;
  for (block_id id = p->heads[0]; id && !st; id = block(id)->right) {
    if (!resumes(block(id), tag)) continue;
    uint64_t at = round_page_down(p, block(id)->address),
             end = block(id)->address + block(id)->bytes;
    for (at = at < next ? next : at; at < end && !st; at += page_bytes(p)) {
      if (paused(p, at)) st = each(p, at, sum);
      next = at + page_bytes(p);
    }
  }
  return st;
}

/* Takes the page from its place again. */
static weir_status send_back(mem_pool *p, uint64_t at, uint64_t *unused)
{
  (void)unused;
  if (page_is_gone(p, at)) return WEIR_OK;
  weir_status st = p->backend->source.unmap(p->backend->self, at, page_bytes(p));
  if (!st) back_give_page(p, take_page(p, at));
  return st;
}

/* The same; where it fails the page stays, and is found there by the next resume or pause. */
static weir_status send_back_if(mem_pool *p, uint64_t at, uint64_t *unused)
{
  (void)send_back(p, at, unused);
  return WEIR_OK;
}

/* What a step does with the places [from, to), all in paused blocks. */
typedef struct walk {
  mem_pool *pool;
  weir_status (*step)(struct walk *w, uint64_t from, uint64_t to);
  block_id first; /* of the run */
  uint64_t until; /* unmapping came up to here */
} walk;

/* Calls the step for every run of pages that lie wholly in paused blocks. */
static weir_status over_runs(walk *w)
{
  const mem_pool *p = w->pool;
  weir_status st = WEIR_OK;
  uint64_t from = 0, to = 0;
  for (block_id id = p->heads[0]; !st; id = block(id)->right) {
    const mem_block *b = block(id);
    if (id && pause_of(b)) {
      if (to != b->address) {
        from = b->address;
        w->first = id;
      }
      to = b->address + b->bytes;
      continue;
    }
    if (to && round_page_down(p, to) > round_page_up(p, from))
      st = w->step(w, round_page_up(p, from), round_page_down(p, to));
    to = 0;
    if (!id) break;
  }
  return st;
}

/* ---- pausing --------------------------------------------------------------------------------- */

static weir_status save_page(mem_pool *p, uint64_t at)
{
  const weir_backend *b = p->backend;
  uint64_t page = page_bytes(p);
  void *copy = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED)
    return weir_fail(WEIR_ENOMEM, "no host memory to save a page of %llu bytes, after %llu",
                     (unsigned long long)page, (unsigned long long)p->saved_bytes);
  weir_status st = b->source.host_commit ? b->source.host_commit(b->self, page) : WEIR_OK;
  if (!st) st = b->copy_to_host(b->self, copy, at, page);
  if (st) {
    (void)munmap(copy, page);
    return st;
  }
  p->copies[page_place_of(p, at)] = copy;
  p->saved_bytes += page;
  return WEIR_OK;
}

/* Whether one of the blocks in [from, to) wants its contents back; *id: one that begins before. */
static bool pause_wanted(block_id *id, uint64_t from, uint64_t to)
{
  bool save = false;
  while (block(*id)->address + block(*id)->bytes <= from)
    *id = block(*id)->right;
  for (block_id at = *id; at && block(at)->address < to; at = block(at)->right)
    save = save || block(pause_of(block(at)))->requested;
  return save;
}

/* Of the pages that are still there. */
static weir_status step_save(walk *w, uint64_t from, uint64_t to)
{
  mem_pool *p = w->pool;
  block_id id = w->first;
  weir_status st = WEIR_OK;
  for (uint64_t at = from; at < to && !st; at += page_bytes(p)) {
    if (!p->pages[page_place_of(p, at)]) continue;
    if (pause_wanted(&id, at, at + page_bytes(p)))
      st = save_page(p, at);
    else
      p->copies[page_place_of(p, at)] = &pause_lost;
  }
  return st;
}

/* The pages stay in their places' entries until they are destroyed. */
static weir_status step_unmap(walk *w, uint64_t from, uint64_t to)
{
  const mem_pool *p = w->pool;
  const weir_source *s = &p->backend->source;
  for (uint64_t at = from, next; at < to; at = next) {
    bool there = p->pages[page_place_of(p, at)] != 0;
    for (next = at; next < to && (p->pages[page_place_of(p, next)] != 0) == there;)
      next += page_bytes(p);
    TRY(there ? s->unmap(p->backend->self, at, next - at) : WEIR_OK);
    w->until = next;
  }
  return WEIR_OK;
}

static weir_status step_destroy(walk *w, uint64_t from, uint64_t to)
{
  mem_pool *p = w->pool;
  for (uint64_t at = from; at < to; at += page_bytes(p))
    if (p->pages[page_place_of(p, at)]) back_give_page(p, take_page(p, at));
  return WEIR_OK;
}

/* After unmapping got to w->until: the pages go back to where they were. One that cannot stays
 * paused. */
static weir_status step_undo(walk *w, uint64_t from, uint64_t to)
{
  mem_pool *p = w->pool;
  const weir_source *s = &p->backend->source;
  for (uint64_t at = from; at < to; at += page_bytes(p)) {
    uint64_t page = p->pages[page_place_of(p, at)];
    if (!page) continue;
    if (at < w->until && s->map(p->backend->self, at, page))
      back_give_page(p, take_page(p, at));
    else if (at >= w->until || !s->access(p->backend->self, at, page_bytes(p)))
      forget_copy(p, at);
  }
  return WEIR_OK;
}

/* Ends the pause's own USE records: dropped where it failed, and the block has all its memory. */
static void settle_fresh(mem_pool *p, bool failed)
{
  for (block_id id = p->heads[0]; id; id = block(id)->right) {
    mem_block *b = block(id);
    block_id u = pause_of(b);
    if (!u || block(u)->stamp != FRESH) continue;
    bool whole = failed;
    for (uint64_t at = round_page_down(p, b->address); at < b->address + b->bytes && whole;
         at += page_bytes(p))
      whole = !paused(p, at);
    block(u)->stamp = 0;
    if (whole) block_use_drop(b, u);
  }
}

static weir_status run_walk(walk *w, weir_status (*step)(walk *, uint64_t, uint64_t))
{
  w->step = step;
  return over_runs(w);
}

static weir_status move_out(mem_pool *p)
{
  walk w = {.pool = p, .until = 0};
  weir_status st = run_walk(&w, step_save);
  if (!st) st = run_walk(&w, step_unmap);
  (void)run_walk(&w, st ? step_undo : step_destroy);
  return st;
}

/* All work of all streams is complete when this succeeds. */
static weir_status wait_for_all(mem_pool *p)
{
  for (unsigned i = 0; i < p->heap_count; i++)
    heap_table[p->numbers[i]]->dirty = heap_table[p->numbers[i]]->epoch;
  weir_status st = epoch_sync(p);
  for (unsigned i = 0; i < p->heap_count && !st; i++)
    if (heap_table[p->numbers[i]]->dirty > heap_table[p->numbers[i]]->done)
      st = fail_invalid("memory cannot be paused while a stream is being captured");
  return st ? st : back_settle(p); /* a page that is mapped twice would not go */
}

static weir_status mark_blocks(mem_pool *p, unsigned tag, bool save)
{
  unsigned count = 0;
  for (block_id id = p->heads[0]; id; id = block(id)->right)
    count += may_pause(block(id), tag);
  weir_status st = block_ensure(p, count);
  for (block_id id = p->heads[0]; id && !st; id = block(id)->right) {
    if (!may_pause(block(id), tag)) continue;
    mem_block *use = block(block_use_add(block(id), USE_PAUSE, 0));
    use->when = block(id)->when;
    use->stamp = FRESH;
    use->requested = save;
  }
  return st;
}

static weir_status can_pause(mem_pool *p, bool save)
{
  if (!p->space)
    return fail_unsupported("pausing memory needs virtual memory management: the allocator of "
                            "device %d works with whole segments (%s)",
                            p->backend->index,
                            !p->backend->source.reserve ? "the device has none"
                            : p->config.expandable && !p->config.whole_block
                                ? "no address space for pages"
                                : "options expandable_segments, whole_block");
  if (save && !p->backend->copy_to_host)
    return fail_unsupported("the backend %s cannot copy to the host: pause without saving",
                            p->backend->name);
  uint64_t bytes = p->space / page_bytes(p) * sizeof *p->copies;
  if (p->copies) return WEIR_OK;
  p->copies = pages_alloc(bytes);
  return p->copies ? WEIR_OK : weir_fail(WEIR_ENOMEM, "no host memory to note what is paused");
}

weir_status pool_pause(mem_pool *p, unsigned tag, bool save)
{
  TRY(can_pause(p, save));
  TRY(wait_for_all(p));
  tcache_freeze(p);
  weir_status st = over_pages(p, ALL_TAGS, send_back, NULL);
  if (!st) st = mark_blocks(p, tag, save);
  if (!st) {
    st = move_out(p);
    settle_fresh(p, st != WEIR_OK);
  }
  tcache_thaw(p);
  return st;
}

/* ---- resuming -------------------------------------------------------------------------------- */

/* A page for a place, when need be one of idle memory. */
static weir_status page_for(mem_pool *p, uint64_t *page)
{
  weir_status st = back_take_page(p, page);
  for (int try = 0; try < 2 && (st == WEIR_EOOM || st == WEIR_ELIMIT); try++) {
    tcache_thaw(p);
    tcache_reclaim(p);
    if (try) (void)epoch_sync(p);
    epoch_collect(p);
    st = back_trim(p, p->clock(), page_bytes(p), true);
    tcache_freeze(p);
    if (!st) st = back_take_page(p, page);
  }
  return st;
}

static weir_status bring_pool_back(mem_pool *p, uint64_t at, uint64_t *unused)
{
  const weir_source *s = &p->backend->source;
  const void *copy = p->copies[page_place_of(p, at)];
  uint64_t page;
  weir_status st = WEIR_OK;
  (void)unused;
  if (page_is_gone(p, at)) {
    if ((st = page_for(p, &page))) return st;
    if ((st = s->map(p->backend->self, at, page))) {
      back_give_page(p, page);
      return st;
    }
    put_page(p, at, page);
  }
  st = s->access(p->backend->self, at, page_bytes(p));
  if (!st && copy != &pause_lost)
    st = p->backend->copy_to_device(p->backend->self, at, copy, page_bytes(p));
  return st;
}

static weir_status keep_page(mem_pool *p, uint64_t at, uint64_t *lost_bytes)
{
  if (p->copies[page_place_of(p, at)] == &pause_lost) *lost_bytes += page_bytes(p);
  forget_copy(p, at);
  return WEIR_OK;
}

/* Not paused any more; what was freed meanwhile is free. */
static void settle_resumed(mem_pool *p, unsigned tag)
{
  block_id dead = 0;
  for (block_id id = p->heads[0]; id; id = block(id)->right) {
    mem_block *b = block(id);
    block_id u = pause_of(b);
    bool freed = u && block(u)->stamp == DEAD;
    if (freed ? paused(p, b->address) : !resumes(b, tag)) continue;
    if (freed) {
      b->next = dead;
      dead = id;
    }
    block_use_drop(b, u);
  }
  for (block_id next; dead; dead = next) {
    next = block(dead)->next;
    pool_count_pending(p, block(dead), -1);
    pool_release(dead);
  }
}

static weir_status no_room(const mem_pool *p, weir_status st)
{
  uint64_t device_free = 0, total;
  if (st != WEIR_EOOM && st != WEIR_ELIMIT) return st;
  if (p->backend->source.mem_info(p->backend->self, &device_free, &total)) device_free = 0;
  return weir_fail(WEIR_EOOM,
                   "CUDA out of memory. Paused memory of device %d cannot be resumed: %.2f MiB are "
                   "paused, %.2f MiB are free on the device, %.2f MiB of at most %.2f MiB reserved",
                   p->backend->index, to_mib(p->paused_bytes), to_mib(device_free),
                   to_mib(p->reserved), to_mib(pool_limit(p)));
}

weir_status pool_resume(mem_pool *p, unsigned tag, uint64_t *lost_bytes)
{
  *lost_bytes = 0;
  if (!p->copies) return WEIR_OK;
  tcache_freeze(p);
  weir_status st = over_pages(p, tag, bring_pool_back, NULL);
  if (st) {
    (void)over_pages(p, tag, send_back_if, NULL);
    st = no_room(p, st);
  } else {
    (void)over_pages(p, tag, keep_page, lost_bytes);
    settle_resumed(p, tag);
  }
  tcache_thaw(p);
  return st;
}

void pool_pause_fini(mem_pool *p)
{
  if (p->copies) (void)munmap(p->copies, p->space / page_bytes(p) * sizeof *p->copies);
  p->copies = NULL;
}
