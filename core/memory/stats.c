/* stats.c: the allocator's figures, with PyTorch's names.
 *
 * Nothing is counted here that is not counted anyway: what goes through a front the front's owner
 * counts (in, out, and the highest live bytes), what passes by the fronts and what the device gave
 * is counted under the pool's lock. A figure is their sum, of all fronts when somebody asks; peaks
 * between, of what was last seen of them. Words: a tally is what went through fronts; a level is a
 * figure's current value; metric, pool and kind are memory.h's, in its order, so that
 * weir_memory_stats is also an array.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/given.h"
#include "core/memory/devices.h"

enum { ALL, SMALL, LARGE, POOLS };
enum { LOOK = 16 }; /* fronts */
enum { CURRENT, PEAK, ALLOCATED, FREED, KINDS };

enum metric {
#define METRIC(name) METRIC_##name,
  WEIR_MEMORY_METRICS(METRIC)
#undef METRIC
};

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

/* ---- counting ---------------------------------------------------------------------------------
 */

static int64_t get(const _Atomic int64_t *n)
{
  return atomic_load_explicit((_Atomic int64_t *)n, memory_order_relaxed);
}

static void add(weir_tally *sum, const weir_tally *t, int sign)
{
  sum->live += sign * t->live;
  sum->requested_in += sign * t->requested_in;
  sum->requested_out += sign * t->requested_out;
  sum->fell += sign * t->fell;
}

/* What the front has now counts from now on. */
static void see(weir_pool *p, weir_front *f)
{
  int64_t live = get(&f->live), fell = get(&f->high) - live_units(live);
  add(&p->seen, &f->seen, -1);
  f->seen = (weir_tally){live, get(&f->requested_in), get(&f->requested_out),
                         fell > 0 ? fell >> (64 - LIVE_SHIFT) : 0};
  add(&p->seen, &f->seen, 1);
}

static weir_tally sum_seen(const weir_pool *p)
{
  weir_tally t = p->gone;
  add(&t, &p->seen, 1);
  return t;
}

static weir_tally sum_fronts(weir_pool *p)
{
  for (weir_front *f = p->fronts; f; f = f->next)
    see(p, f);
  p->unseen = 0;
  return sum_seen(p);
}

/* What the fronts handed out since they were made. */
static void sum_served(const weir_pool *p, int64_t *blocks, int64_t *bytes)
{
  *blocks = *bytes = 0;
  for (const weir_front *f = p->fronts; f; f = f->next)
    for (int c = 0; c < CLASSES; c++) {
      uint64_t served =
          atomic_load_explicit((_Atomic uint64_t *)&f->bins[c].served, memory_order_relaxed);
      if (!served) continue; /* the class may not be made yet */
      *blocks += (int64_t)served;
      *bytes += (int64_t)(served * weir_class_bytes[c]);
    }
}

void weir_pool_count_live(weir_pool *p, const weir_block *b, int sign)
{
  bool large = b->bytes > CLASS_LIMIT;
  stat_add(&p->by_bytes[large], sign * (int64_t)b->bytes);
  stat_add(&p->by_blocks[large], sign);
  stat_add(&p->by_requested[large], sign * (int64_t)b->requested);
  if (b->bytes >= p->config.max_split_bytes) stat_add(&p->oversize, sign);
}

typedef int64_t levels[WEIR_METRICS][POOLS];

static void put(levels l, enum metric m, int64_t small, int64_t large)
{
  l[m][ALL] = small + large;
  l[m][SMALL] = small;
  l[m][LARGE] = large;
}

static void find_levels(const weir_pool *p, const weir_tally *t, levels l)
{
  int64_t bytes = live_bytes(t->live), blocks = live_blocks(t->live);
  int64_t small = bytes + p->by_bytes[0].current, large = p->by_bytes[1].current;
  put(l, METRIC_allocated_bytes, small, large);
  put(l, METRIC_active_bytes, small + p->pending_bytes[0], large + p->pending_bytes[1]);
  put(l, METRIC_inactive_split_bytes, p->inactive[0].current + p->front_bytes - bytes,
      p->inactive[1].current);
  small = blocks + p->by_blocks[0].current, large = p->by_blocks[1].current;
  put(l, METRIC_allocation, small, large);
  put(l, METRIC_active, small + p->pending_blocks[0], large + p->pending_blocks[1]);
  put(l, METRIC_inactive_split, p->inactive_blocks[0].current + p->front_blocks - blocks,
      p->inactive_blocks[1].current);
  put(l, METRIC_requested_bytes, t->requested_in - t->requested_out + p->by_requested[0].current,
      p->by_requested[1].current);
  put(l, METRIC_segment, 0, p->segment_stat.current);
  put(l, METRIC_reserved_bytes, 0, p->reserved_stat.current);
}

static inline void raise(weir_pool *p, enum metric m, int64_t small, int64_t large)
{
  if (small > p->peak[m][SMALL]) p->peak[m][SMALL] = small;
  if (small + large > p->peak[m][ALL]) p->peak[m][ALL] = small + large;
}

/* A metric whose large blocks' count rises and falls within a call (a new segment is all free, and
 * then its rest is): looked at where the call ends, like the sum. */
static inline void raise_both(weir_pool *p, enum metric m, int64_t small, int64_t large)
{
  raise(p, m, small, large);
  if (large > p->peak[m][LARGE]) p->peak[m][LARGE] = large;
}

/* Active blocks are those allocated and those that wait; mostly none do, and then their peaks are
 * the same. */
static void raise_active(weir_pool *p, int64_t small_blocks, int64_t small_bytes)
{
  int64_t large_blocks = p->by_blocks[1].current + p->pending_blocks[1];
  int64_t large_bytes = p->by_bytes[1].current + p->pending_bytes[1];
  raise_both(p, METRIC_active, small_blocks + p->pending_blocks[0], large_blocks);
  raise_both(p, METRIC_active_bytes, small_bytes + p->pending_bytes[0], large_bytes);
}

static void raise_all(weir_pool *p, const weir_tally *t)
{
  int64_t front_bytes = live_bytes(t->live), front_blocks = live_blocks(t->live);
  int64_t bytes = front_bytes + p->by_bytes[0].current;
  int64_t blocks = front_blocks + p->by_blocks[0].current;
  raise(p, METRIC_allocated_bytes, bytes + (t->fell << UNIT_SHIFT), p->by_bytes[1].current);
  raise(p, METRIC_allocation, blocks, p->by_blocks[1].current);
  raise(p, METRIC_requested_bytes, t->requested_in - t->requested_out + p->by_requested[0].current,
        p->by_requested[1].current);
  raise_both(p, METRIC_inactive_split_bytes, p->inactive[0].current + p->front_bytes - front_bytes,
             p->inactive[1].current);
  raise_both(p, METRIC_inactive_split,
             p->inactive_blocks[0].current + p->front_blocks - front_blocks,
             p->inactive_blocks[1].current);
  if (p->pending) raise_active(p, blocks, bytes);
}

/* On every slow path: large blocks' peaks are their counts' own (weir_stat), and only what the
 * fronts have a part in is looked at here. With many fronts not all are looked at each time: LOOK
 * of them a call on the average. Of the others their latest counts, which their threads' own calls
 * renew. */
void weir_pool_peak(weir_pool *p, weir_front *own)
{
  if (++p->unseen >= p->front_count / LOOK)
    (void)sum_fronts(p);
  else if (own)
    see(p, own);
  weir_tally t = sum_seen(p);
  raise_all(p, &t);
}

static int64_t most(int64_t a, int64_t b)
{
  return a > b ? a : b;
}

/* All peaks, from what was seen and what was counted. */
static void find_peaks(const weir_pool *p, levels l)
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

/* ---- figures ----------------------------------------------------------------------------------
 */

typedef int64_t sums[POOLS][KINDS];

/* All figures by name and as the array they are. */
typedef union figures_all {
  weir_memory_stats named;
  struct {
    sums metric[WEIR_METRICS];
    int64_t oversize[2][KINDS]; /* allocations, segments */
  };
} figures_all;

static void put_sums(sums s, int64_t small, int64_t large, int kind)
{
  s[ALL][kind] = small + large;
  s[SMALL][kind] = small;
  s[LARGE][kind] = large;
}

/* What comes to the fronts' blocks, and what was counted beside. */
static void put_both(sums s, int64_t in, int64_t out, const weir_stat *by)
{
  put_sums(s, in + by[0].allocated, by[1].allocated, ALLOCATED);
  put_sums(s, out + by[0].freed, by[1].freed, FREED);
}

static void find_sums(const weir_pool *p, const weir_tally *t, sums *s)
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
  /* Every free through a front makes a block inactive; what is so no more was taken again. */
  put_both(s[METRIC_inactive_split], blocks - live, blocks - p->front_blocks, p->inactive_blocks);
  put_both(s[METRIC_inactive_split_bytes], bytes - live_in, bytes - p->front_bytes, p->inactive);
  put_sums(s[METRIC_segment], 0, p->segment_stat.allocated, ALLOCATED);
  put_sums(s[METRIC_segment], 0, p->segment_stat.freed, FREED);
  put_sums(s[METRIC_reserved_bytes], 0, p->reserved_stat.allocated, ALLOCATED);
  put_sums(s[METRIC_reserved_bytes], 0, p->reserved_stat.freed, FREED);
}

static void put_stat(int64_t *at, const weir_stat *s)
{
  at[CURRENT] = s->current;
  at[PEAK] = s->peak;
  at[ALLOCATED] = s->allocated;
  at[FREED] = s->freed;
}

/* All figures, the sums from the pool's beginning. */
static void find_all(weir_pool *p, figures_all *o)
{
  levels l, peaks;
  weir_tally t = sum_fronts(p);
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
                                 .metadata_bytes = (int64_t)weir_meta_bytes()};
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

static int64_t *at(weir_memory_stats *s, const struct figure *f)
{
  return (int64_t *)(void *)((char *)s + f->offset);
}

void weir_pool_stats(weir_pool *p, weir_memory_stats *out)
{
  figures_all all;
  find_all(p, &all);
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    *at(&all.named, &figures[i]) -= *at(&p->reset, &figures[i]);
  *out = all.named;
}

weir_status weir_memory_get_stats(weir_memory_stats *out, weir_device device)
{
  WEIR_GIVEN(out);
  weir_pool *p;
  weir_status st = weir_pool_of(device, &p);
  if (st) return st;
  pthread_mutex_lock(&p->lock);
  weir_pool_stats(p, out);
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

weir_status weir_memory_stat(int64_t *out, weir_device device, const char *name)
{
  WEIR_GIVEN(out);
  WEIR_GIVEN(name);
  weir_memory_stats all;
  weir_status st = weir_memory_get_stats(&all, device);
  if (st) return st;
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (!strcmp(figures[i].name, name)) {
      *out = *at(&all, &figures[i]);
      return WEIR_OK;
    }
  return weir_fail(WEIR_EINVAL, "there is no figure called %s, as in allocated_bytes.all.current",
                   name);
}

void weir_pool_reset_peak(weir_pool *p)
{
  weir_front_reset_high(p);
  memset(p->peak, 0, sizeof p->peak);
  for (int i = 0; i < 2; i++) {
    weir_stat *own[] = {&p->by_bytes[i], &p->by_blocks[i], &p->by_requested[i]};
    for (int k = 0; k < 3; k++)
      own[k]->peak = own[k]->current;
  }
  weir_tally t = sum_fronts(p);
  raise_all(p, &t);
  p->reserved_stat.peak = p->reserved_stat.current;
  p->segment_stat.peak = p->segment_stat.current;
  p->oversize.peak = p->oversize.current;
  p->oversize_segments.peak = p->oversize_segments.current;
}

weir_status weir_memory_reset_peak(weir_device device)
{
  weir_pool *p;
  weir_status st = weir_pool_of(device, &p);
  if (st) return st;
  pthread_mutex_lock(&p->lock);
  weir_pool_reset_peak(p);
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

weir_status weir_memory_reset_accumulated(weir_device device)
{
  figures_all now;
  weir_pool *p;
  weir_status st = weir_pool_of(device, &p);
  if (st) return st;
  pthread_mutex_lock(&p->lock);
  find_all(p, &now);
  for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
    if (accumulates(figures[i].name)) *at(&p->reset, &figures[i]) = *at(&now.named, &figures[i]);
  pthread_mutex_unlock(&p->lock);
  return WEIR_OK;
}

/* ---- PyTorch's short ways ---------------------------------------------------------------------
 */

static uint64_t figure_or_0(weir_device device, const char *name)
{
  int64_t value = 0;
  if (!weir_attached_of(device)) return 0; /* asking uses no device */
  return weir_memory_stat(&value, device, name) ? 0 : (uint64_t)value;
}

uint64_t weir_memory_allocated(weir_device device)
{
  return figure_or_0(device, "allocated_bytes.all.current");
}

uint64_t weir_max_memory_allocated(weir_device device)
{
  return figure_or_0(device, "allocated_bytes.all.peak");
}

uint64_t weir_memory_reserved(weir_device device)
{
  return figure_or_0(device, "reserved_bytes.all.current");
}

uint64_t weir_max_memory_reserved(weir_device device)
{
  return figure_or_0(device, "reserved_bytes.all.peak");
}

uint64_t weir_memory_cached(weir_device device)
{
  return weir_memory_reserved(device);
}

uint64_t weir_max_memory_cached(weir_device device)
{
  return weir_max_memory_reserved(device);
}

weir_status weir_mem_get_info(uint64_t *free_bytes, uint64_t *total_bytes, weir_device device)
{
  WEIR_GIVEN(free_bytes);
  WEIR_GIVEN(total_bytes);
  weir_pool *p;
  weir_status st = weir_pool_of(device, &p);
  return st ? st : p->backend->source.mem_info(p->backend->self, free_bytes, total_bytes);
}

/* ---- the table --------------------------------------------------------------------------------
 * As torch.cuda.memory_summary() lays it out: 75 columns between bars; a line's unit is chosen by
 * its metric's first line, the next one from 768 of it on (bytes, KiB, ...) or 750 (K, M).
 */

enum { WIDTH = 75 };

static const struct table_row {
  enum metric metric;
  const char *name;
  bool bytes;
} table_rows[] = {{METRIC_allocated_bytes, "Allocated memory", true},
                  {METRIC_active_bytes, "Active memory", true},
                  {METRIC_requested_bytes, "Requested memory", true},
                  {METRIC_reserved_bytes, "GPU reserved memory", true},
                  {METRIC_inactive_split_bytes, "Non-releasable memory", true},
                  {METRIC_allocation, "Allocations", false},
                  {METRIC_active, "Active allocs", false},
                  {METRIC_segment, "GPU reserved segments", false},
                  {METRIC_inactive_split, "Non-releasable allocs", false}};

static void rule(FILE *f, char c)
{
  (void)fputc('|', f);
  for (int i = 0; i < WIDTH; i++)
    (void)fputc(c, f);
  (void)fputs("|\n", f);
}

/* In the unit that suits `by`. */
static void cell(FILE *f, int64_t value, int64_t by, bool bytes)
{
  static const char *const units[] = {"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static const char counts[] = " KM";
  const int64_t step = bytes ? 1024 : 1000, most = bytes ? 768 * 1024 : 750 * 1000;
  int unit = 0;
  for (; by >= most && unit < (bytes ? 5 : 2); unit++, by /= step)
    value /= step;
  if (bytes)
    (void)fprintf(f, " | %6lld %s", (long long)value, units[unit]);
  else
    (void)fprintf(f, " | %7lld %c ", (long long)value, counts[unit]);
}

static void line(FILE *f, const char *name, const int64_t v[KINDS], const int64_t by[KINDS],
                 bool bytes)
{
  (void)fprintf(f, "| %-21s", name);
  for (int i = 0; i < KINDS; i++)
    cell(f, v[i], by[i], bytes);
  (void)fputs(" |\n", f);
}

static void print_table(FILE *f, int device, const figures_all *all, bool abbreviated)
{
  const sums *s = all->metric;
  rule(f, '=');
  (void)fprintf(f, "|%17s Weir CUDA memory summary, device ID %-20d |\n", "", device);
  rule(f, '-');
  (void)fprintf(f, "|  %9s CUDA OOMs: %-12lld | %6s cudaMalloc retries: %-8lld  |\n", "",
                (long long)all->named.num_ooms, "", (long long)all->named.num_alloc_retries);
  rule(f, '=');
  (void)fputs("|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n", f);
  for (size_t i = 0; i < sizeof table_rows / sizeof *table_rows; i++) {
    const struct table_row *r = &table_rows[i];
    rule(f, '-');
    line(f, r->name, s[r->metric][ALL], s[r->metric][ALL], r->bytes);
    if (abbreviated) continue;
    line(f, "      from large pool", s[r->metric][LARGE], s[r->metric][ALL], r->bytes);
    line(f, "      from small pool", s[r->metric][SMALL], s[r->metric][ALL], r->bytes);
  }
  rule(f, '-');
  line(f, "Oversize allocations", all->oversize[0], all->oversize[0], false);
  rule(f, '-');
  line(f, "Oversize GPU segments", all->oversize[1], all->oversize[1], false);
  rule(f, '=');
}

weir_status weir_memory_summary(char **out, weir_device device, bool abbreviated)
{
  WEIR_GIVEN(out);
  figures_all all;
  size_t bytes;
  weir_status st = weir_memory_get_stats(&all.named, device);
  if (st) return st;
  FILE *f = open_memstream(out, &bytes);
  if (!f) return weir_fail(WEIR_ENOMEM, "no memory for the table");
  print_table(f, (int)weir_device_at(device), &all, abbreviated);
  return fclose(f) ? weir_fail(WEIR_ENOMEM, "no memory for the table") : WEIR_OK;
}
