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

/* Leaves the longest PAGE_OPS of those that are held. */
static void drop_short_ops(page_lanes *x)
{
  if (x->ops <= PAGE_OPS) return;
  size_t lost = x->ops - PAGE_OPS, low = 0, high = x->ops;
  while (high - low > 1) {
    size_t at = part_ops(x->op, low, high);
    if (at == lost) break;
    if (at < lost)
      low = at + 1;
    else
      high = at;
  }
  for (size_t i = 0; i < lost; i++)
    if (x->op[i].ns >= x->shortest_ns) x->shortest_ns = x->op[i].ns + 1;
  memmove(x->op, x->op + lost, PAGE_OPS * sizeof(*x->op));
  x->ops = PAGE_OPS;
  x->some_lost = true;
  x->least = x->op[0];
  for (size_t i = 1; i < PAGE_OPS; i++)
    if (goes_before(&x->op[i], &x->least)) x->least = x->op[i];
}

/* What is shorter than all of as many as are kept is lost at once. */
static bool keep_op(page_lanes *x, const page_op *op)
{
  if (x->some_lost && goes_before(op, &x->least)) {
    if (op->ns >= x->shortest_ns) x->shortest_ns = op->ns + 1;
    return true;
  }
  if (x->ops == x->op_capacity && !wr_grow(&x->op, &x->op_capacity, x->ops + 1, sizeof(*x->op)))
    return false;
  x->op[x->ops++] = *op;
  if (x->ops == MOST_OPS) drop_short_ops(x);
  return true;
}

bool page_op_add(page_lanes *x, const page_op *op)
{
  page_op o = *op;
  if (o.start < 0) o.start = 0;
  int64_t end = o.ns > INT64_MAX - o.start ? INT64_MAX : o.start + o.ns, width = x->bins.width_ns;
  int64_t run = (int64_t)x->bins.count * width;
  int64_t from = o.start < run ? o.start : run, to = end < run ? end : run;
  struct page_lane_bin *bin = x->lane[o.lane].bin;
  uint32_t first = page_bin_again(&x->bins, &x->near, from);
  uint32_t last = page_bin_again(&x->bins, &x->near, to);
  x->all_ops++;
  bin[first].count++;
  if (first == last) {
    bin[first].busy_ns += (uint64_t)(to - from);
  } else {
    bin[first].busy_ns += (uint64_t)((int64_t)(first + 1) * width - from);
    bin[last].busy_ns += (uint64_t)(to - (int64_t)last * width);
    bin[first + 1].whole++, bin[last].whole--;
  }
  return keep_op(x, &o);
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

static int by_lane_and_start(const void *left, const void *right)
{
  const page_op *a = left, *b = right;
  if (a->lane != b->lane) return a->lane < b->lane ? -1 : 1;
  if (a->start != b->start) return a->start < b->start ? -1 : 1;
  return a->event < b->event ? -1 : a->event > b->event;
}

/* Of operations that began at one time the lower event comes first. */
static void order_events(page_lanes *x)
{
  for (size_t i = 0, end = 0; i < x->ops; i = end) {
    for (end = i + 1; end < x->ops && x->op[end].start == x->op[i].start;)
      end++;
    if (end - i > 1) qsort(x->op + i, end - i, sizeof(*x->op), by_lane_and_start);
  }
}

/* Those of each lane together, in the order that they have. False: out of memory. */
static bool part_lanes(page_lanes *x)
{
  page_op *parted = malloc((x->ops + 1) * sizeof(*parted));
  size_t *next = calloc(x->count + 1, sizeof(*next));
  bool good = parted && next;
  for (size_t i = 0; good && i < x->ops; i++)
    next[x->op[i].lane + 1]++;
  for (size_t i = 1; good && i < x->count; i++)
    next[i] += next[i - 1];
  for (size_t i = 0; good && i < x->ops; i++)
    parted[next[x->op[i].lane]++] = x->op[i];
  if (good) memcpy(x->op, parted, x->ops * sizeof(*parted));
  free(parted);
  free(next);
  return good;
}

void page_ops_sort(page_lanes *x)
{
  drop_short_ops(x);
  bool sorted = wr_sort_records(x->op, x->ops, sizeof(*x->op), offsetof(page_op, start));
  if (sorted) order_events(x);
  if (x->ops && !(sorted && part_lanes(x))) qsort(x->op, x->ops, sizeof(*x->op), by_lane_and_start);
}

void page_lane_columns(const page_lanes *x, page_columns *to, int column[4])
{
  for (int i = 0; i < 4; i++)
    column[i] = page_column_new(to, i < 2 ? PAGE_DV : PAGE_V);
  for (size_t i = 0; i < x->count; i++)
    for (uint32_t b = 0; b < x->bins.count; b++) {
      const struct page_lane_bin *bin = &x->lane[i].bin[b];
      if (!bin->busy_ns && !bin->count) continue;
      page_put(to, column[0], (int64_t)i);
      page_put(to, column[1], b);
      page_put(to, column[2], (int64_t)bin->busy_ns);
      page_put(to, column[3], (int64_t)bin->count);
    }
}

void page_lanes_free(page_lanes *x)
{
  for (size_t i = 0; i < x->count; i++)
    free(x->lane[i].bin);
  free(x->lane);
  free(x->op);
  hash_map_free(&x->index);
  *x = (page_lanes){0};
}
