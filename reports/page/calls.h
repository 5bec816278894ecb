/* calls.h: the calls of a trace, in one pass, as a page has them: the cube, lanes and operations,
 * what each stack cost, and what was copied from where to where. What counts is what counts in the
 * totals of a report (model.c). */
#ifndef WEIR_REPORTS_PAGE_CALLS_H
#define WEIR_REPORTS_PAGE_CALLS_H

#include "reports/events/blocks.h"
#include "reports/events/listen.h"
#include "reports/model/first.h"
#include "reports/page/cube.h"
#include "reports/page/lanes.h"
#include "reports/page/places.h"

typedef struct page_flame { /* of a stack */
  uint64_t peak_bytes, alloc_count, alloc_bytes, wait_ns;
  uint64_t transfer_bytes, transfer_ns, transfer_device_ns;
} page_flame;

typedef struct page_route { /* copies of one direction, between two places and kinds of memory */
  uint32_t direction;
  int src, dst, src_mem, mem; /* WR_HOST: the host */
  uint64_t count, bytes, host_ns, device_ns;
  uint32_t number; /* in the page, from 1; 0: nothing was copied on it */
  int64_t first;   /* row of the first call that copied on it */
} page_route;

struct page_kind;
struct page_undecided;

typedef struct page_calls {
  const wr_db *db;     /* borrowed */
  page_places *places; /* borrowed */
  page_cube cube;
  page_lanes lanes;
  page_flame *flame; /* owned; by stack of `places` */
  size_t flames, flame_capacity;
  page_route *route; /* owned */
  size_t routes, route_capacity;
  uint32_t numbered; /* routes */
  hash_map by_route;
  hash_map by_node; /* content of a graph and direction -> route of its copies; 0: of several */
  const wr_events *calls; /* borrowed */
  wr_blocks *blocks;      /* borrowed; hears the events that blocks are of */
  struct page_kind *kind; /* owned; what events have in common, by template */
  size_t kinds;
  struct page_undecided *undecided; /* owned; calls that may have made a context */
  size_t undecided_count, undecided_capacity;
  wr_firsts firsts;
  hash_map by_kernel; /* process and handle -> text, plus 1 */
  uint32_t graph_launch[4];
  bool all_passed;   /* all events, so that routes have their numbers */
  bool device_times; /* there are any */
  void (*progress)(void *context, uint64_t events);
  void *context;
  uint64_t events;
} page_calls;

/* Begin, the walk over all calls with the listener, end. `bins`: to begin with. */
weir_status page_calls_begin(page_calls *c, const wr_events *calls, page_places *places,
                             page_bins bins);
wr_listener page_calls_listener(page_calls *c);
weir_status page_calls_end(page_calls *c);

/* That of a stack. NULL: out of memory. */
page_flame *page_flame_of(page_calls *c, uint32_t stack);

/* The kernel that an operation ran: a text of `places`, 0: none, or not known. */
uint32_t page_kernel_of(const page_calls *c, const page_op *op);

void page_calls_free(page_calls *c);

#endif
