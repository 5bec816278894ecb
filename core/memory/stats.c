/* stats.c: the allocator's figures, with PyTorch's names.
 *
 * Nothing is counted here that is not counted anyway: what goes through a thread cache the thread
 * cache's owner counts (in, out, and the highest live bytes), what passes by the thread caches and
 * what the device gave is counted under the pool's lock. A figure is their sum, of all thread
 * caches when somebody asks; peaks between, of what was last seen of them. Words: a tally is what
 * went through thread caches; a level is a figure's current value; metric, pool and kind are
 * memory.h's, in its order, so that weir_memory_stats is also an array. */
#include "core/memory/stats.h"

#include <string.h>

enum { LOOK = 16 }; /* thread caches */
static const struct figure {
  const char *name;
  size_t offset;
} figures[] = {
#define ROW(name, field) {name, offsetof(weir_memory_stats, field)},
    WEIR_MEMORY_STATS_MAP(ROW)
#undef ROW
};

_Static_assert(offsetof(weir_memory_stats, oversize_allocations) ==
                   WEIR_METRICS * POOLS * KINDS * sizeof(int64_t),
               "the metrics come first, by pool and kind");

/* ---- counting -------------------------------------------------------------------------------- */

static int64_t get_relaxed(const _Atomic int64_t *n)
{
  return atomic_load_explicit((_Atomic int64_t *)n, memory_order_relaxed);
}

static void add_tally(tcache_tally *sum, const tcache_tally *t, int sign)
{
  sum->live += sign * t->live;
  sum->requested_in += sign * t->requested_in;
  sum->requested_out += sign * t->requested_out;
  sum->fell += sign * t->fell;
}

/* What the thread cache has now counts from now on. */
static void see_tcache(mem_pool *p, thread_cache *f)
{
  int64_t live = get_relaxed(&f->live), fell = get_relaxed(&f->high) - live_units(live);
  add_tally(&p->seen, &f->seen, -1);
  f->seen = (tcache_tally){live, get_relaxed(&f->requested_in), get_relaxed(&f->requested_out),
                           fell > 0 ? fell >> (64 - LIVE_SHIFT) : 0};
  add_tally(&p->seen, &f->seen, 1);
}

static tcache_tally sum_seen(const mem_pool *p)
{
  tcache_tally t = p->gone;
  add_tally(&t, &p->seen, 1);
  return t;
}

static tcache_tally sum_tcaches(mem_pool *p)
{
  for (thread_cache *f = p->tcaches; f; f = f->next)
    see_tcache(p, f);
  p->unseen = 0;
  return sum_seen(p);
}

/* What the thread caches handed out since they were made. */
static void sum_served(const mem_pool *p, int64_t *blocks, int64_t *bytes)
{
  *blocks = *bytes = 0;
  for (const thread_cache *f = p->tcaches; f; f = f->next)
    for (int c = 0; c < CLASSES; c++) {
      uint64_t served =
          atomic_load_explicit((_Atomic uint64_t *)&f->bins[c].served, memory_order_relaxed);
      if (!served) continue; /* the class may not be made yet */
      *blocks += (int64_t)served;
      *bytes += (int64_t)(served * bytes_of_class[c]);
    }
}

void pool_count_live(mem_pool *p, const mem_block *b, int sign)
{
  bool large = b->bytes > CLASS_LIMIT;
  stat_add(&p->by_bytes[large], sign * (int64_t)b->bytes);
  stat_add(&p->by_blocks[large], sign);
  stat_add(&p->by_requested[large], sign * (int64_t)b->requested);
  if (b->bytes >= p->config.max_split_bytes) stat_add(&p->oversize, sign);
}

typedef int64_t levels[WEIR_METRICS][POOLS];

static void put_figure(levels l, enum metric m, int64_t small, int64_t large)
{
  l[m][ALL] = small + large;
  l[m][SMALL] = small;
  l[m][LARGE] = large;
}

static void find_levels(const mem_pool *p, const tcache_tally *t, levels l)
{
  int64_t bytes = live_bytes(t->live), blocks = live_blocks(t->live);
  int64_t small = bytes + p->by_bytes[0].current, large = p->by_bytes[1].current;
  put_figure(l, METRIC_allocated_bytes, small, large);
  put_figure(l, METRIC_active_bytes, small + p->pending_bytes[0], large + p->pending_bytes[1]);
  put_figure(l, METRIC_inactive_split_bytes, p->inactive[0].current + p->tcache_bytes - bytes,
             p->inactive[1].current);
  small = blocks + p->by_blocks[0].current, large = p->by_blocks[1].current;
  put_figure(l, METRIC_allocation, small, large);
  put_figure(l, METRIC_active, small + p->pending_blocks[0], large + p->pending_blocks[1]);
  put_figure(l, METRIC_inactive_split, p->inactive_blocks[0].current + p->tcache_blocks - blocks,
             p->inactive_blocks[1].current);
  put_figure(l, METRIC_requested_bytes,
             t->requested_in - t->requested_out + p->by_requested[0].current,
             p->by_requested[1].current);
  put_figure(l, METRIC_segment, 0, p->segment_stat.current);
  put_figure(l, METRIC_reserved_bytes, 0, p->reserved_stat.current);
}

static inline void raise_stat_peak(mem_pool *p, enum metric m, int64_t small, int64_t large)
{
  if (small > p->peak[m][SMALL]) p->peak[m][SMALL] = small;
  if (small + large > p->peak[m][ALL]) p->peak[m][ALL] = small + large;
}

/* A metric whose large blocks' count rises and falls within a call (a new segment is all free, and
 * then its rest is): looked at where the call ends, like the sum. */
static inline void raise_both(mem_pool *p, enum metric m, int64_t small, int64_t large)
{
  raise_stat_peak(p, m, small, large);
  if (large > p->peak[m][LARGE]) p->peak[m][LARGE] = large;
}

/* Active blocks are those allocated and those that wait; mostly none do, and then their peaks are
 * the same. */
static void raise_active(mem_pool *p, int64_t small_blocks, int64_t small_bytes)
{
  int64_t large_blocks = p->by_blocks[1].current + p->pending_blocks[1];
  int64_t large_bytes = p->by_bytes[1].current + p->pending_bytes[1];
  raise_both(p, METRIC_active, small_blocks + p->pending_blocks[0], large_blocks);
  raise_both(p, METRIC_active_bytes, small_bytes + p->pending_bytes[0], large_bytes);
}

static void raise_all(mem_pool *p, const tcache_tally *t)
{
  int64_t tcache_bytes = live_bytes(t->live), tcache_blocks = live_blocks(t->live);
  int64_t bytes = tcache_bytes + p->by_bytes[0].current;
  int64_t blocks = tcache_blocks + p->by_blocks[0].current;
  raise_stat_peak(p, METRIC_allocated_bytes, bytes + (t->fell << UNIT_SHIFT),
                  p->by_bytes[1].current);
  raise_stat_peak(p, METRIC_allocation, blocks, p->by_blocks[1].current);
  raise_stat_peak(p, METRIC_requested_bytes,
                  t->requested_in - t->requested_out + p->by_requested[0].current,
                  p->by_requested[1].current);
  raise_both(p, METRIC_inactive_split_bytes,
             p->inactive[0].current + p->tcache_bytes - tcache_bytes, p->inactive[1].current);
  raise_both(p, METRIC_inactive_split,
             p->inactive_blocks[0].current + p->tcache_blocks - tcache_blocks,
             p->inactive_blocks[1].current);
  if (p->pending) raise_active(p, blocks, bytes);
}

/* On every slow path: large blocks' peaks are their counts' own (pool_stat), and only what the
 * thread caches have a part in is looked at here. With many thread caches not all are looked at
 * each time: LOOK of them a call on the average. Of the others their latest counts, which their
 * threads' own calls renew. */
void pool_peak(mem_pool *p, thread_cache *own)
{
  if (++p->unseen >= p->tcache_count / LOOK)
    (void)sum_tcaches(p);
  else if (own)
    see_tcache(p, own);
  tcache_tally t = sum_seen(p);
  raise_all(p, &t);
}

static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* All peaks, from what was seen and what was counted. */
static void find_peaks(const mem_pool *p, levels l)
{
  memcpy(l, p->peak, sizeof p->peak);
  l[METRIC_allocated_bytes][LARGE] = p->by_bytes[1].peak;
  l[METRIC_allocation][LARGE] = p->by_blocks[1].peak;
  l[METRIC_requested_bytes][LARGE] = p->by_requested[1].peak;
  for (int i = 0; i < POOLS; i++) {
    l[METRIC_active][i] = most(l[METRIC_active][i], l[METRIC_allocation][i]);
    l[METRIC_active_bytes][i] = most(l[METRIC_active_bytes][i], l[METRIC_allocated_bytes][i]);
  }
  for (int i = 0; i < POOLS; i += LARGE) { /* these also rise and fall within a call */
    l[METRIC_segment][i] = p->segment_stat.peak;
    l[METRIC_reserved_bytes][i] = p->reserved_stat.peak;
  }
}

/* ---- figures --------------------------------------------------------------------------------- */

static void put_stat_sums(sums s, int64_t small, int64_t large, int kind)
{
  s[ALL][kind] = small + large;
  s[SMALL][kind] = small;
  s[LARGE][kind] = large;
}

/* What comes to the thread caches' blocks, and what was counted separately. */
static void put_both(sums s, int64_t in, int64_t out, const pool_stat *by)
{
  put_stat_sums(s, in + by[0].allocated, by[1].allocated, ALLOCATED);
  put_stat_sums(s, out + by[0].freed, by[1].freed, FREED);
}

static void find_sums(const mem_pool *p, const tcache_tally *t, sums *s)
{
  int64_t blocks, bytes, live = live_blocks(t->live), live_in = live_bytes(t->live);
  sum_served(p, &blocks, &bytes);
  put_both(s[METRIC_allocation], blocks, blocks - live, p->by_blocks);
  put_both(s[METRIC_allocated_bytes], bytes, bytes - live_in, p->by_bytes);
  put_both(s[METRIC_requested_bytes], t->requested_in, t->requested_out, p->by_requested);
  put_both(s[METRIC_active], blocks, blocks - live - p->pending_blocks[0], p->by_blocks);
  put_both(s[METRIC_active_bytes], bytes, bytes - live_in - p->pending_bytes[0], p->by_bytes);
  s[METRIC_active][LARGE][FREED] -= p->pending_blocks[1];
  s[METRIC_active][ALL][FREED] -= p->pending_blocks[1];
  s[METRIC_active_bytes][LARGE][FREED] -= p->pending_bytes[1];
  s[METRIC_active_bytes][ALL][FREED] -= p->pending_bytes[1];
  /* Every free through a thread cache makes a block inactive; what is so no more was taken again.
   */
  put_both(s[METRIC_inactive_split], blocks - live, blocks - p->tcache_blocks, p->inactive_blocks);
  put_both(s[METRIC_inactive_split_bytes], bytes - live_in, bytes - p->tcache_bytes, p->inactive);
  put_stat_sums(s[METRIC_segment], 0, p->segment_stat.allocated, ALLOCATED);
  put_stat_sums(s[METRIC_segment], 0, p->segment_stat.freed, FREED);
  put_stat_sums(s[METRIC_reserved_bytes], 0, p->reserved_stat.allocated, ALLOCATED);
  put_stat_sums(s[METRIC_reserved_bytes], 0, p->reserved_stat.freed, FREED);
}

static void put_stat(int64_t *at, const pool_stat *s)
{
  at[CURRENT] = s->current;
  at[PEAK] = s->peak;
  at[ALLOCATED] = s->allocated;
  at[FREED] = s->freed;
}

/* All figures, the sums from the pool's beginning. */
static void find_all(mem_pool *p, figures_all *o)
{
  levels l, peaks;
  tcache_tally t = sum_tcaches(p);
  raise_all(p, &t);
  o->named = (weir_memory_stats){.max_split_size = (int64_t)p->config.max_split_bytes,
                                 .num_alloc_retries = (int64_t)p->retries,
                                 .num_ooms = (int64_t)p->ooms,
                                 .num_sync_all_streams = (int64_t)p->syncs,
                                 .num_device_alloc = (int64_t)p->device_allocs,
                                 .num_device_free = (int64_t)p->device_frees,
                                 .num_stream_waits = (int64_t)p->waits,
                                 .num_stitches = (int64_t)p->stitches,
                                 .paused_bytes = (int64_t)p->paused_bytes,
                                 .paused_saved_bytes = (int64_t)p->saved_bytes,
                                 .metadata_bytes = (int64_t)meta_bytes()};
  sums *s = o->metric;
  find_levels(p, &t, l);
  find_peaks(p, peaks);
  find_sums(p, &t, s);
  for (int m = 0; m < WEIR_METRICS; m++)
    for (int i = 0; i < POOLS; i++) {
      s[m][i][CURRENT] = l[m][i];
      s[m][i][PEAK] = peaks[m][i];
    }
  put_stat(o->oversize[0], &p->oversize);
  put_stat(o->oversize[1], &p->oversize_segments);
}

/* Whether it is a sum: what reset_accumulated begins anew. */
static bool accumulates(const char *name)
{
  const char *dot = strrchr(name, '.');
  return dot ? !strcmp(dot, ".allocated") || !strcmp(dot, ".freed") : !strncmp(name, "num_", 4);
}

static int64_t *figure_at(weir_memory_stats *s, const struct figure *f)
{
  return (int64_t *)(void *)((char *)s + f->offset);
}

void pool_stats(mem_pool *p, weir_memory_stats *out)
{
  figures_all all;
  find_all(p, &all);
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    *figure_at(&all.named, &figures[i]) -= *figure_at(&p->reset, &figures[i]);
  *out = all.named;
}

void pool_reset_peak(mem_pool *p)
{
  tcache_reset_high(p);
  memset(p->peak, 0, sizeof p->peak);
  for (int i = 0; i < 2; i++) {
    pool_stat *own[] = {&p->by_bytes[i], &p->by_blocks[i], &p->by_requested[i]};
    for (int k = 0; k < 3; k++)
      own[k]->peak = own[k]->current;
  }
  tcache_tally t = sum_tcaches(p);
  raise_all(p, &t);
  p->reserved_stat.peak = p->reserved_stat.current;
  p->segment_stat.peak = p->segment_stat.current;
  p->oversize.peak = p->oversize.current;
  p->oversize_segments.peak = p->oversize_segments.current;
}

void pool_reset_sums(mem_pool *p)
{
  figures_all now;
  find_all(p, &now);
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (accumulates(figures[i].name))
      *figure_at(&p->reset, &figures[i]) = *figure_at(&now.named, &figures[i]);
}

const int64_t *stats_find(const weir_memory_stats *s, const char *name)
{
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (!strcmp(figures[i].name, name))
      return (const int64_t *)(const void *)((const char *)s + figures[i].offset);
  return NULL;
}
