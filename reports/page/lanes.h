/* lanes.h: what happened when, one lane a thread or a stream of a device: the longest operations
 * one by one, and of all of them, by bin, how long and how many. */
#ifndef WEIR_REPORTS_PAGE_LANES_H
#define WEIR_REPORTS_PAGE_LANES_H

#include "core/base/map.h"
#include "reports/page/bins.h"
#include "reports/page/columns.h"

enum {
  PAGE_LANES = 512,  /* of each kind; what is on further ones is on the last */
  PAGE_OPS = 400000, /* operations that are kept */
  PAGE_OPS_COLUMNS = 8
};

typedef struct page_lane {
  bool device; /* a stream of a device; else a thread */
  bool several;
  int64_t process, thread;          /* rows */
  int64_t ordinal, context, stream; /* of the device */
  struct page_lane_bin {
    uint64_t busy_ns, count;
    int64_t whole; /* change in how many operations fill the bin */
  } * bin;         /* owned: [PAGE_BINS + 1] */
} page_lane;

typedef struct page_op {
  int64_t start, ns, event;
  uint64_t bytes; /* of a launch: the kernel's handle */
  uint32_t site;
  uint16_t lane;
  uint8_t of; /* page_class */
} page_op;

typedef struct page_lanes {
  page_bins bins; /* of the lanes' sums */
  page_bin_near near;
  hash_map index;
  page_lane *lane; /* owned */
  size_t count, capacity, of_kind[2];
  page_op *op; /* owned; as they were added */
  size_t ops, op_capacity;
  uint32_t *order; /* owned; of page_ops_sort() */
  page_op least;   /* the shortest of those that were kept, when some were lost */
  bool some_lost;
  uint64_t all_ops;
  int64_t shortest_ns; /* all that are as long are kept; 0: all */
} page_lanes;

/* The lane of a thread, or of a stream; -1: out of memory. `lane->bin` does not count. */
int page_lane_of(page_lanes *x, const page_lane *lane);

/* Room for an operation, which page_op_added() takes once it is filled. NULL: out of memory. */
bool page_op_make_room(page_lanes *x);

static inline page_op *page_op_next(page_lanes *x)
{
  return x->ops < x->op_capacity || page_op_make_room(x) ? &x->op[x->ops] : NULL;
}

/* False: out of memory. */
bool page_op_added(page_lanes *x);

/* Until the sums' bins are as wide. */
void page_lanes_fold(page_lanes *x, const page_bins *bins);

/* Finds what is kept of all that were added, and its `order` by lane and start. False: out of memory. */
bool page_ops_sort(page_lanes *x);

/* lane, bin, busy_ns, count */
void page_lane_columns(const page_lanes *x, page_columns *to, int column[4]);

void page_lanes_free(page_lanes *x);

#endif
