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
  uint32_t site;
  uint32_t route; /* of copies: which of the matrix, from 1; 0: none */
  uint8_t of, direction;
} page_key;

/* The cells of one key, of which the one that was asked for last is at hand. */
typedef struct page_line {
  page_key key;
  uint32_t bin, cell; /* cell: its place, plus 1; 0: none is at hand */
} page_line;

typedef struct page_cell {
  uint32_t bin, line;
  uint64_t count, bytes, host_ns, device_ns;
} page_cell;

/* The cells of some bins of a line that follow one another, which a thread's calls ask for one after
 * the other. */
enum { PAGE_BUCKET_BINS = 8 };
typedef struct page_bucket {
  uint64_t key;                    /* the line, plus 1, and the bins; 0: free */
  uint32_t cell[PAGE_BUCKET_BINS]; /* a cell's place, plus 1; 0: there is none */
} page_bucket;

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
  hash_map by_key; /* hash of a key -> its line, plus 1 */
  page_line *line; /* owned */
  size_t lines, line_capacity;
  page_cell *cell; /* owned */
  size_t count, capacity;
  bool scattered;      /* bins did not ascend, so that cells are looked for by their buckets: */
  page_bucket *bucket; /* owned: by hash of the key, then on from there */
  size_t buckets;      /* that are used */
  size_t mask;         /* those there are - 1, 0 while there are none */
} page_cube;

#define PAGE_NO_LINE UINT32_MAX

/* The number of a key's line, made when new. PAGE_NO_LINE: out of memory. */
uint32_t page_line_of(page_cube *c, page_key key);

/* As page_cell_of(), for all cells. */
page_cell *page_cell_find(page_cube *c, int64_t ns, uint32_t line);

/* The cell of a line and of the bin of a time, made when new; valid until the next call. NULL: out
 * of memory. */
static inline page_cell *page_cell_of(page_cube *c, int64_t ns, uint32_t line)
{
  const page_line *x = &c->line[line];
  if (x->cell && c->count < PAGE_MOST_CELLS && x->bin == page_bin_again(&c->bins, &c->near, ns))
    return &c->cell[x->cell - 1];
  return page_cell_find(c, ns, line);
}

/* Routes get other numbers: `number` of each that a key has. False: out of memory. */
bool page_cube_renumber(page_cube *c, const uint32_t number[]);

/* The columns of `count` fields; rows by bin, then in order of keys. */
void page_cube_columns(const page_cube *c, page_columns *to, const page_cube_field fields[],
                       int column[], int count);

void page_cube_free(page_cube *c);

#endif
