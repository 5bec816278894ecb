/* cube.h: sums by bin, site, class and direction: what a page's tables are made of, whatever part of the
 * run a brush chooses.
 *
 * Where there are too many, two bins become one, until they fit. */
#ifndef WEIR_REPORTS_PAGE_CUBE_H
#define WEIR_REPORTS_PAGE_CUBE_H

#include "core/base/map.h"
#include "reports/page/bins.h"
#include "reports/page/columns.h"

/* What a call is: number, name in the index. */
#define PAGE_CLASS_MAP(X)                                                                          \
  X(ALLOCATION, "allocation")                                                                      \
  X(FREE, "free")                                                                                  \
  X(TRANSFER, "transfer")                                                                          \
  X(MEMSET, "memset")                                                                              \
  X(LAUNCH, "launch")                                                                              \
  X(WAIT, "wait")                                                                                  \
  X(GRAPH, "graph")                                                                                \
  X(OTHER, "other")                                                                                \
  X(INIT, "initialisation")    /* host time that brought up a context, in no other class */        \
  X(IMPLICIT, "implicit wait") /* host time of calls that may wait, in their own class too */

typedef enum page_class {
#define PAGE_CLASS_ENUM(id, name) PAGE_##id,
  PAGE_CLASS_MAP(PAGE_CLASS_ENUM)
#undef PAGE_CLASS_ENUM
      PAGE_CLASSES
} page_class;

/* Of transfers where to; of allocations and frees whose memory. */
enum {
  PAGE_NO_DIRECTION = 0,
  PAGE_H2D,
  PAGE_D2H,
  PAGE_D2D,
  PAGE_P2P,
  PAGE_H2H,
  PAGE_OTHER_COPY,
  PAGE_HOST_MEMORY,
  PAGE_IMPORTED,
  PAGE_REGISTERED
};

typedef struct page_cell {
  uint64_t key;
  uint64_t count, bytes, host_ns, device_ns;
} page_cell;

typedef struct page_cube {
  page_bins bins;
  hash_map index;
  page_cell *cell; /* owned */
  size_t count, capacity;
  unsigned folded; /* times that two bins became one */
} page_cube;

/* A cell, made when new; valid until the next call. NULL: out of memory. */
page_cell *page_cell_of(page_cube *c, int64_t ns, uint32_t site, page_class of, uint32_t direction);

/* bin, site, class, direction, count, bytes, host_ns, device_ns; by bin. */
void page_cube_columns(page_cube *c, page_columns *to, int column[8]);

void page_cube_free(page_cube *c);

#endif
