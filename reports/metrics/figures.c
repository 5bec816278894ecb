/* figures.c: see figures.h. */
#include "reports/metrics/figures.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"

/* Places are looked for of the stacks with the most live memory alone. */
enum { MOST_PLACED = 400 };

const char *wr_wait_cause_name(int cause)
{
  static const char *const names[] = {"event", "stream", "device", "copy", "free", "other"};
  return cause >= 0 && cause < WR_WAIT_CAUSES ? names[cause] : "other";
}

const char *wr_figure_direction(int copy_kind)
{
  switch (copy_kind) {
  case WEIR_COPY_HTOD:
    return "h2d";
  case WEIR_COPY_DTOH:
    return "d2h";
  case WEIR_COPY_DTOD:
    return "d2d";
  case WEIR_COPY_HTOH:
    return "h2h";
  case WEIR_COPY_PTOP:
    return "p2p";
  default:
    return "unknown";
  }
}

const char *wr_memory_class_name(int class)
{
  static const char *const names[] = {"unknown",  "pageable", "pinned",  "device",
                                      "managed",  "array",    "host",    "physical",
                                      "imported", "code",     "context", "registered"};
  return class >= 0 && class < (int)(sizeof names / sizeof *names) ? names[class] : "unknown";
}

/* ---- lists ----------------------------------------------------------------------------------- */

static wr_figure *figure_row(wr_figures *f, wr_figure_list *l, uint16_t device, uint8_t what)
{
  for (unsigned i = 0; i < l->count; i++)
    if (l->row[i].device == device && l->row[i].what == what) return &l->row[i];
  if (l->count == WR_FIGURE_ROWS) {
    f->left_out++;
    return NULL;
  }
  l->row[l->count] = (wr_figure){.device = device, .what = what};
  return &l->row[l->count++];
}

static void add_figure(wr_figures *f, wr_figure_list *l, const wr_figure *x)
{
  wr_figure *row = figure_row(f, l, x->device, x->what);
  if (!row) return;
  row->count += x->count;
  row->bytes += x->bytes;
  row->ns += x->ns;
}

/* ---- totals ---------------------------------------------------------------------------------- */

static bool of_device(uint8_t mem)
{
  return mem != WEIR_MEM_PAGEABLE && mem != WEIR_MEM_PINNED && mem != WEIR_MEM_HOST;
}

static int cause_of(const wr_tally_total *x)
{
  if (x->kind == WEIR_EV_SYNC) {
    if (x->detail == WEIR_SYNC_EVENT) return WR_WAIT_EVENT;
    if (x->detail == WEIR_SYNC_STREAM) return WR_WAIT_STREAM;
    return x->detail == WEIR_SYNC_CONTEXT ? WR_WAIT_DEVICE : WR_WAIT_CAUSES;
  }
  if (!(x->flags & WEIR_EVF_IMPLICIT_SYNC)) return WR_WAIT_CAUSES;
  if (x->kind == WEIR_EV_COPY || x->kind == WEIR_EV_MEMSET) return WR_WAIT_COPY;
  return x->kind == WEIR_EV_FREE ? WR_WAIT_FREE : WR_WAIT_OTHER;
}

static void add_alloc(wr_figures *f, const wr_tally_total *x, wr_figure row)
{
  row.what = x->mem & 15;
  if (!of_device(row.what)) row.device = WEIR_DEVICE_NONE;
  if (x->status) {
    add_figure(f, &f->failures, &row);
  } else if (x->flags & WEIR_EVF_CACHED) {
    add_figure(f, &f->hits, &row);
    wr_figure taken = row;
    taken.bytes = -row.bytes;
    add_figure(f, &f->cached, &taken);
  } else if (x->detail && x->detail < WEIR_WHY_CAPTURE) {
    add_figure(f, &f->misses, &row);
  }
}

/* What went into a cache, or back from it to the driver. */
static void add_cached(wr_figures *f, const wr_tally_total *x, wr_figure row)
{
  row.what = x->mem & 15;
  if (!of_device(row.what)) row.device = WEIR_DEVICE_NONE;
  if (x->kind == WEIR_EV_CACHE) row.bytes = -row.bytes;
  add_figure(f, &f->cached, &row);
}

static void add_total(wr_figures *f, const wr_tally_total *x, double ns_per_tick)
{
  const wr_figure row = {.device = x->device,
                         .count = x->count,
                         .bytes = x->bytes,
                         .ns = (uint64_t)((double)x->ticks * ns_per_tick)};
  if (x->flags & WEIR_EVF_CAPTURE) return;
  if (x->kind == WEIR_EV_ALLOC) add_alloc(f, x, row);
  if (x->status) return;
  if (x->kind == WEIR_EV_COPY) {
    wr_figure copy = row;
    copy.what = x->detail;
    if (x->detail == WEIR_COPY_DTOH) copy.device = x->src_device;
    add_figure(f, &f->copies, &copy);
  }
  const bool freed = x->kind == WEIR_EV_FREE && x->flags & WEIR_EVF_CACHED;
  if (freed || (x->kind == WEIR_EV_CACHE && x->detail == WEIR_CACHE_GIVEN_BACK))
    add_cached(f, x, row);
  const int cause = cause_of(x);
  if (cause == WR_WAIT_CAUSES) return;
  f->waits[cause].count += row.count;
  f->waits[cause].ns += row.ns;
}

static void add_gauge(wr_figures *f, const wr_tally_gauge *x)
{
  wr_figure row = {.device = x->device, .what = x->mem, .count = 1};
  row.bytes = x->bytes > x->b ? x->bytes - x->b : 0;
  if (x->fact == WEIR_CACHE_DEVICE) add_figure(f, &f->used, &row);
  if (x->fact == WEIR_CACHE_POOL) add_figure(f, &f->pooled, &row);
}

static void add_account(wr_figures *f, const wr_tally_account *x)
{
  if (x->device == WR_ALL_DEVICES) {
    f->live = x->live;
    f->peak = x->peak;
  } else if (x->class == WR_ACCOUNT_DEVICE_SIDE) {
    return;
  } else if (f->memory_count == WR_FIGURE_ROWS) {
    f->left_out++;
  } else {
    f->memory[f->memory_count++] =
        (wr_live_figure){x->device, x->class, x->live, x->blocks, x->peak};
  }
}

/* ---- places ---------------------------------------------------------------------------------- */

typedef struct stack_sum {
  uint64_t stack, live, blocks;
} stack_sum;

static int most_live_first(const void *a, const void *b)
{
  const uint64_t x = ((const stack_sum *)a)->live, y = ((const stack_sum *)b)->live;
  return (x < y) - (x > y);
}

static int most_live_site_first(const void *a, const void *b)
{
  const wr_site_figure *x = a, *y = b;
  if (x->live != y->live) return x->live < y->live ? 1 : -1;
  return strcmp(x->place, y->place);
}

/* Live device memory by stack (new), *count of them; NULL: no memory, or there is none. */
static stack_sum *sum_stacks(const wr_tally_state *s, size_t *count)
{
  hash_map by_stack = {0};
  stack_sum *sums = s->block.count ? calloc(s->block.count, sizeof *sums) : NULL;
  *count = 0;
  for (uint32_t i = 0; sums && i < s->block.count; i++) {
    const wr_tally_block *b = wr_table_at(&s->block, i);
    bool added;
    if (b->kind == WEIR_EV_HOSTREG || !of_device(b->mem) || b->mem == WEIR_MEM_IMPORTED) continue;
    uint64_t *at = hash_map_place(&by_stack, b->stack, &added);
    if (!at) break;
    if (added) {
      sums[*count] = (stack_sum){.stack = b->stack};
      *at = (*count)++;
    }
    sums[*at].live += b->bytes;
    sums[*at].blocks++;
  }
  hash_map_free(&by_stack);
  return sums;
}

/* Stacks of one place are one site; those beyond MOST_PLACED are no place's. */
static size_t sum_sites(wr_figures *f, wr_places *places, const stack_sum *sums, size_t count,
                        wr_site_figure *sites)
{
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    char place[WR_PLACE_BYTES] = "";
    size_t k = 0;
    if (i < MOST_PLACED) wr_place_of(places, sums[i].stack, place);
    while (i < MOST_PLACED && k < n && strcmp(sites[k].place, place) != 0)
      k++;
    if (i >= MOST_PLACED) {
      f->other_live += sums[i].live;
      f->other_blocks += sums[i].blocks;
      continue;
    }
    if (k == n) memcpy(sites[n++].place, place, sizeof place);
    sites[k].live += sums[i].live;
    sites[k].blocks += sums[i].blocks;
  }
  return n;
}

static void add_sites(wr_figures *f, wr_places *places)
{
  size_t count;
  stack_sum *sums = sum_stacks(places->state, &count);
  wr_site_figure *sites = calloc(MOST_PLACED, sizeof *sites);
  if (sums && sites) {
    qsort(sums, count, sizeof *sums, most_live_first);
    const size_t n = sum_sites(f, places, sums, count, sites);
    qsort(sites, n, sizeof *sites, most_live_site_first);
    f->site_count = n < WR_FIGURE_SITES ? (unsigned)n : WR_FIGURE_SITES;
    memcpy(f->site, sites, f->site_count * sizeof *sites);
    for (size_t i = f->site_count; i < n; i++) {
      f->other_live += sites[i].live;
      f->other_blocks += sites[i].blocks;
    }
  }
  free(sums);
  free(sites);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* A cache's blocks have sizes of its own, and a reset takes them all: the sum is no less than
 * nothing. */
static void keep_above_zero(wr_figure_list *l)
{
  for (unsigned i = 0; i < l->count; i++)
    if ((int64_t)l->row[i].bytes < 0) l->row[i].bytes = 0;
}

void wr_figures_of(wr_figures *out, const wr_tally_state *s, double ns_per_tick,
                   wr_place_namer namer, void *namer_context)
{
  wr_places places = {.state = s, .name = namer, .name_context = namer_context};
  memset(out, 0, sizeof *out);
  if (s->facts.count) out->events = ((const wr_tally_facts *)wr_table_at(&s->facts, 0))->events;
  for (uint32_t i = 0; i < s->total.count; i++)
    add_total(out, wr_table_at(&s->total, i), ns_per_tick);
  for (uint32_t i = 0; i < s->account.count; i++)
    add_account(out, wr_table_at(&s->account, i));
  for (uint32_t i = 0; i < s->gauge.count; i++)
    add_gauge(out, wr_table_at(&s->gauge, i));
  keep_above_zero(&out->cached);
  add_sites(out, &places);
  wr_places_clear(&places);
}

static void add_list(wr_figures *f, wr_figure_list *to, const wr_figure_list *from)
{
  for (unsigned i = 0; i < from->count; i++)
    add_figure(f, to, &from->row[i]);
}

static void keep_peak(wr_figures *to, const wr_live_figure *x)
{
  for (unsigned i = 0; i < to->memory_count; i++) {
    wr_live_figure *row = &to->memory[i];
    if (row->device != x->device || row->class != x->class) continue;
    if (x->peak > row->peak) row->peak = x->peak;
    return;
  }
  if (to->memory_count == WR_FIGURE_ROWS)
    to->left_out++;
  else
    to->memory[to->memory_count++] = (wr_live_figure){x->device, x->class, 0, 0, x->peak};
}

void wr_figures_add_ended(wr_figures *to, const wr_figures *ended)
{
  to->events += ended->events;
  if (ended->peak > to->peak) to->peak = ended->peak;
  for (unsigned i = 0; i < ended->memory_count; i++)
    keep_peak(to, &ended->memory[i]);
  add_list(to, &to->copies, &ended->copies);
  add_list(to, &to->hits, &ended->hits);
  add_list(to, &to->misses, &ended->misses);
  add_list(to, &to->failures, &ended->failures);
  for (int i = 0; i < WR_WAIT_CAUSES; i++) {
    to->waits[i].count += ended->waits[i].count;
    to->waits[i].ns += ended->waits[i].ns;
  }
  to->left_out += ended->left_out;
}
