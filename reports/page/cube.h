/* cube.h: sums by bin, site, class, direction and route: what a page's tables are made of, whatever
 * part of the run a brush chooses.
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

typedef struct page_key {
  uint32_t bin, site;
  uint32_t route; /* of copies: which of the matrix, from 1; 0: none */
  uint8_t of, direction;
} page_key;

typedef struct page_cell {
  page_key key;
  uint64_t count, bytes, host_ns, device_ns;
} page_cell;

/* What of its cells a cube writes, in this order. */
typedef enum page_cube_field {
  PAGE_CELL_BIN,
  PAGE_CELL_SITE,
  PAGE_CELL_CLASS,
  PAGE_CELL_DIRECTION,
  PAGE_CELL_ROUTE,
  PAGE_CELL_COUNT,
  PAGE_CELL_BYTES,
  PAGE_CELL_HOST_NS,
  PAGE_CELL_DEVICE_NS,
  PAGE_CELL_FIELDS
} page_cube_field;

enum { PAGE_MOST_CELLS = 400000 };

typedef struct page_cube {
  page_bins bins;
  page_bin_near near;
  uint32_t *slot;  /* owned: by hash, then on from there: a cell's place, plus 1; 0: free */
  size_t room;     /* slots there are */
  size_t mask;     /* slots in use - 1, 0 while there are none */
  size_t first;    /* cells from here on have slots: those of the last bin, while bins ascend */
  bool scattered;  /* they have not: all cells have slots */
  size_t latest;   /* the cell that was asked for last */
  page_cell *cell; /* owned */
  size_t count, capacity;
  unsigned folded; /* times that two bins became one */
} page_cube;

/* A cell, made when new; valid until the next call. `key` without its bin, which is that of `ns`.
 * NULL: out of memory. */
page_cell *page_cell_of(page_cube *c, int64_t ns, page_key key);

/* A cell that was found before, for who asks again for its key. Begins zeroed. */
typedef struct page_cell_near {
  uint32_t bin, folded, cell; /* cell: its place, plus 1; 0: none yet */
} page_cell_near;

/* As page_cell_of(), where `n` was always given with this key. */
static inline page_cell *page_cell_again(page_cube *c, page_cell_near *n, int64_t ns, page_key key)
{
  if (n->cell && n->folded == c->folded && c->count < PAGE_MOST_CELLS &&
      page_bin_again(&c->bins, &c->near, ns) == n->bin)
    return &c->cell[n->cell - 1];
  page_cell *cell = page_cell_of(c, ns, key);
  if (cell) *n = (page_cell_near){cell->key.bin, c->folded, (uint32_t)(cell - c->cell) + 1};
  return cell;
}

/* Routes get other numbers: `number` of each that a cell has. */
void page_cube_renumber(page_cube *c, const uint32_t number[]);

/* The columns of `count` fields; rows by bin. */
void page_cube_columns(page_cube *c, page_columns *to, const page_cube_field fields[], int column[],
                       int count);

void page_cube_free(page_cube *c);

#endif
