/* lanes.c: see lanes.h. */
#include "reports/page/lanes.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/sort.h"
#include "reports/base/util.h"

enum { MOST_OPS = PAGE_OPS + PAGE_OPS / 2 /* that are held at once */ };

int page_lane_of(page_lanes *x, const page_lane *lane)
{
  uint64_t key = hash_mix(hash_mix(7, lane->device), (uint64_t)lane->process);
  key = hash_mix(hash_mix(key, (uint64_t)lane->thread), (uint64_t)lane->ordinal);
  key = hash_mix(hash_mix(key, (uint64_t)lane->context), (uint64_t)lane->stream);
  bool added, full = x->of_kind[lane->device] >= PAGE_LANES;
  const uint64_t *known = hash_map_get(&x->index, key);
  if (known) return (int)*known;
  if (full) key = lane->device;
  uint64_t *number = hash_map_place(&x->index, key, &added);
  if (!number || !wr_grow(&x->lane, &x->capacity, x->count + 1, sizeof(*x->lane))) return -1;
  if (!added) return (int)*number;
  page_lane *to = &x->lane[x->count];
  *to = *lane;
  to->several = full;
  to->bin = calloc(PAGE_BINS + 1, sizeof(*to->bin));
  if (!to->bin) {
    hash_map_remove(&x->index, key);
    return -1;
  }
  x->of_kind[lane->device] += !full;
  *number = x->count;
  return (int)x->count++;
}

/* Whether a goes before b: the shorter one; of two alike the later one. */
static bool goes_before(const page_op *a, const page_op *b)
{
  return a->ns != b->ns ? a->ns < b->ns : a->event > b->event;
}

static void swap_ops(page_op *a, page_op *b)
{
  page_op moved = *a;
  *a = *b;
  *b = moved;
}

/* Puts one of them where it belongs in order, with those before it before it; returns its place. */
static size_t part_ops(page_op *op, size_t low, size_t high)
{
  size_t middle = low + (high - low) / 2, last = high - 1, to = low;
  if (goes_before(&op[middle], &op[low])) swap_ops(&op[middle], &op[low]);
  if (goes_before(&op[last], &op[low])) swap_ops(&op[last], &op[low]);
  if (goes_before(&op[middle], &op[last])) swap_ops(&op[middle], &op[last]);
  for (size_t i = low; i < last; i++)
    if (goes_before(&op[i], &op[last])) swap_ops(&op[i], &op[to++]);
  swap_ops(&op[to], &op[last]);
  return to;
}

/* The one that would be at place `nth`, were they in order; they are moved. */
static page_op nth_op(page_op *op, size_t count, size_t nth)
{
  size_t low = 0, high = count;
  while (high - low > 1) {
    size_t at = part_ops(op, low, high);
    if (at == nth) break;
    if (at < nth)
      low = at + 1;
    else
      high = at;
  }
  return op[nth];
}

enum { WIDTH_BITS = 6, WIDTHS = 64 << WIDTH_BITS };

/* Durations in parts that are the wider the longer they are: by its leading bits. */
static unsigned width_of(int64_t ns)
{
  uint64_t n = ns > 0 ? (uint64_t)ns : 0;
  if (n >> WIDTH_BITS == 0) return (unsigned)n;
  int bits = 63 - __builtin_clzll(n);
  return (unsigned)(bits - WIDTH_BITS + 1) << WIDTH_BITS |
         (unsigned)(n >> (bits - WIDTH_BITS) & ((1U << WIDTH_BITS) - 1));
}

/* Finds the shortest of the longest PAGE_OPS: among those alike. False: out of memory. */
static bool find_least(const page_lanes *x, page_op *least)
{
  size_t of[WIDTHS] = {0}, lost = x->ops - PAGE_OPS, count = 0;
  unsigned width = 0;
  for (size_t i = 0; i < x->ops; i++)
    of[width_of(x->op[i].ns)]++;
  for (; lost >= of[width]; width++)
    lost -= of[width];
  page_op *alike = malloc(of[width] * sizeof(*alike));
  if (!alike) return false;
  for (size_t i = 0; i < x->ops; i++)
    if (width_of(x->op[i].ns) == width) alike[count++] = x->op[i];
  *least = nth_op(alike, count, lost);
  free(alike);
  return true;
}

/* Leaves the longest PAGE_OPS of those that are held, in their order. */
static bool drop_short_ops(page_lanes *x)
{
  size_t kept = 0;
  if (x->ops <= PAGE_OPS) return true;
  if (!find_least(x, &x->least)) return false;
  for (size_t i = 0; i < x->ops; i++) {
    if (!goes_before(&x->op[i], &x->least))
      x->op[kept++] = x->op[i];
    else if (x->op[i].ns >= x->shortest_ns)
      x->shortest_ns = x->op[i].ns + 1;
  }
  x->ops = kept;
  x->some_lost = true;
  return true;
}

bool page_op_make_room(page_lanes *x)
{
  return wr_grow(&x->op, &x->op_capacity, x->ops + 1, sizeof(*x->op));
}

/* What is shorter than all of as many as are kept is lost at once. */
static inline bool keep_op(page_lanes *x, const page_op *op)
{
  if (x->some_lost && goes_before(op, &x->least)) {
    if (op->ns >= x->shortest_ns) x->shortest_ns = op->ns + 1;
    return true;
  }
  return ++x->ops < MOST_OPS || drop_short_ops(x);
}

bool page_op_added(page_lanes *x)
{
  page_op *op = &x->op[x->ops];
  if (op->start < 0) op->start = 0;
  int64_t end = op->ns > INT64_MAX - op->start ? INT64_MAX : op->start + op->ns;
  int64_t width = x->bins.width_ns, run = (int64_t)x->bins.count * width;
  int64_t from = op->start < run ? op->start : run, to = end < run ? end : run;
  struct page_lane_bin *bin = x->lane[op->lane].bin;
  uint32_t first = page_bin_again(&x->bins, &x->near, from);
  uint32_t last = to < x->near.until ? first : page_bin_of(&x->bins, to);
  x->all_ops++;
  bin[first].count++;
  if (first == last) {
    bin[first].busy_ns += (uint64_t)(to - from);
  } else {
    bin[first].busy_ns += (uint64_t)((int64_t)(first + 1) * width - from);
    bin[last].busy_ns += (uint64_t)(to - (int64_t)last * width);
    bin[first + 1].whole++, bin[last].whole--;
  }
  return keep_op(x, op);
}

/* Sums of bins that an operation fills are made of `whole`, once, before bins are put together. */
static void fill_whole(page_lanes *x)
{
  for (size_t i = 0; i < x->count; i++) {
    int64_t whole = 0;
    for (uint32_t b = 0; b < x->bins.count; b++) {
      struct page_lane_bin *bin = &x->lane[i].bin[b];
      whole += bin->whole;
      bin->whole = 0;
      bin->busy_ns += (uint64_t)whole * (uint64_t)x->bins.width_ns;
    }
  }
}

void page_lanes_fold(page_lanes *x, const page_bins *bins)
{
  fill_whole(x);
  x->near = (page_bin_near){0};
  for (; x->bins.width_ns < bins->width_ns; x->bins.count /= 2, x->bins.width_ns *= 2)
    for (size_t i = 0; i < x->count; i++) {
      struct page_lane_bin *bin = x->lane[i].bin;
      for (uint32_t b = 0; b < x->bins.count / 2; b++)
        bin[b] = (struct page_lane_bin){.busy_ns = bin[2 * b].busy_ns + bin[2 * b + 1].busy_ns,
                                        .count = bin[2 * b].count + bin[2 * b + 1].count};
    }
}

static int by_event(const void *left, const void *right)
{
  const page_op *a = left, *b = right;
  return (a->event > b->event) - (a->event < b->event);
}

static int by_start(const void *left, const void *right)
{
  const page_op *a = left, *b = right;
  return a->start != b->start ? (a->start > b->start) - (a->start < b->start)
                              : by_event(left, right);
}

/* Of operations that began at one time the lower event comes first. */
static void order_events(page_op *op, size_t count)
{
  for (size_t i = 0, end = 0; i < count; i = end) {
    for (end = i + 1; end < count && op[end].start == op[i].start;)
      end++;
    if (end - i > 1) qsort(op + i, end - i, sizeof(*op), by_event);
  }
}

static bool is_in_order(const page_lanes *x, const uint32_t *at, size_t count)
{
  for (size_t i = 1; i < count; i++)
    if (by_start(&x->op[at[i - 1]], &x->op[at[i]]) > 0) return false;
  return true;
}

/* Puts the operations of one lane, which are at the places `at`, in order of their starts there. A
 * thread's are so already, and most streams' too. False: out of memory. */
static bool order_lane(page_lanes *x, const uint32_t *at, size_t count)
{
  if (is_in_order(x, at, count)) return true;
  page_op *op = malloc(count * sizeof(*op));
  if (!op) return false;
  for (size_t i = 0; i < count; i++)
    op[i] = x->op[at[i]];
  if (wr_sort_records(op, count, sizeof(*op), offsetof(page_op, start)))
    order_events(op, count);
  else
    qsort(op, count, sizeof(*op), by_start);
  for (size_t i = 0; i < count; i++)
    x->op[at[i]] = op[i];
  free(op);
  return true;
}

/* `end`: of each lane and the one after it, zeros; becomes where the places of each lane end. */
static bool order_lanes(page_lanes *x, size_t *end)
{
  for (size_t i = 0; i < x->ops; i++)
    end[x->op[i].lane + 1]++;
  for (size_t i = 1; i < x->count; i++)
    end[i] += end[i - 1];
  for (size_t i = 0; i < x->ops; i++)
    x->order[end[x->op[i].lane]++] = (uint32_t)i;
  for (size_t i = 0, from = 0; i < x->count; from = end[i++])
    if (!order_lane(x, x->order + from, end[i] - from)) return false;
  return true;
}

bool page_ops_sort(page_lanes *x)
{
  size_t *end = calloc(x->count + 1, sizeof(*end));
  bool good = end && drop_short_ops(x);
  if (good) x->order = malloc((x->ops + 1) * sizeof(*x->order));
  good = good && x->order && order_lanes(x, end);
  free(end);
  return good;
}

void page_lane_columns(const page_lanes *x, page_columns *to, int column[4])
{
  for (int i = 0; i < 4; i++)
    column[i] = page_column_new(to, i < 2 ? PAGE_DV : PAGE_V);
  page_rows rows = {.to = to, .column = column, .columns = 4};
  for (size_t i = 0; i < x->count; i++)
    for (uint32_t b = 0; b < x->bins.count; b++) {
      const struct page_lane_bin *bin = &x->lane[i].bin[b];
      if (!bin->busy_ns && !bin->count) continue;
      int64_t *row = page_row(&rows);
      row[0] = (int64_t)i, row[1] = b;
      row[2] = (int64_t)bin->busy_ns, row[3] = (int64_t)bin->count;
    }
  page_rows_end(&rows);
}

void page_lanes_free(page_lanes *x)
{
  for (size_t i = 0; i < x->count; i++)
    free(x->lane[i].bin);
  free(x->lane);
  free(x->op);
  free(x->order);
  hash_map_free(&x->index);
  *x = (page_lanes){0};
}
