/* memory.h: memory over time as a page has it: what was live by device and kind, by place in the
 * program around each device's peak, the largest blocks, what was never freed, and what became live
 * and ceased to be, by place.
 *
 * Blocks are walked in the order of their ends, from the last one back, so that what is kept in
 * memory is what was live at one moment. */
#ifndef WEIR_REPORTS_PAGE_MEMORY_H
#define WEIR_REPORTS_PAGE_MEMORY_H

#include "reports/events/blocks.h"
#include "reports/model/model.h"
#include "reports/page/calls.h"

enum { PAGE_AREAS = 24, PAGE_BLOCKS = 20000, PAGE_ALL_KINDS = -1 };

typedef struct page_level { /* bytes live in a bin */
  int64_t least, most, end;
} page_level;

typedef struct page_series {
  int device, mem; /* WR_HOST; memory_kind or PAGE_ALL_KINDS of the device side */
  bool registered;
  int64_t now;
  uint32_t bin;      /* that is being filled */
  page_level *level; /* owned: by bin */
  int64_t peak, peak_ns;
} page_series;

typedef struct page_area {
  uint32_t site, place; /* the site that has most of it; frame of `places` */
  int64_t now, bytes;   /* bytes: at the peak */
  uint32_t bin;
  int64_t *end; /* owned: by bin; at the peak's, what was live then */
} page_area;

typedef struct page_peak { /* of a device */
  int device;
  int64_t place, at_ns; /* in the order of memory operations */
  uint64_t bytes;
  page_area area[PAGE_AREAS + 1]; /* the last: all further places */
  size_t areas;
  bool seen; /* in the walk back */
} page_peak;

typedef struct page_block {
  int64_t start, end;
  uint64_t bytes;
  uint32_t site;
  int device;
} page_block;

struct page_live;
struct page_life;
struct page_block_use;

typedef struct page_memory {
  const wr_db *db; /* all borrowed */
  page_calls *calls;
  const wr_model *model;
  page_bins bins;
  page_bin_near near;
  struct page_block_use *use; /* owned; by template */
  page_series *series;        /* owned */
  size_t series_count, series_capacity;
  page_peak *peak; /* owned */
  size_t peaks, peak_capacity;
  hash_map at_peak; /* device and place -> bytes */
  hash_map site_of; /* device and place -> a site, plus 1 */
  page_cube
      changes; /* of the device side: allocations, and frees where what they free was allocated */
  hash_map site_of_place; /* a site, plus 1 */
  page_block *block;      /* owned: a heap, the smallest first */
  size_t blocks, block_capacity;
  uint64_t all_blocks, all_bytes;
  struct page_live *live; /* owned: a heap, the last born first */
  size_t live_count, live_capacity;
  bool keeps;             /* blocks are few enough that what the walk back needs is kept: */
  struct page_life *life; /* owned */
  size_t lives, life_capacity;
  uint32_t
      *birth; /* owned: place of the block that was born there, plus 1; 0: none. NULL: two were */
  int64_t first_birth, last_birth, next_birth; /* next: down to which births are undone */
  int64_t last_died, last_ns;
  bool disordered;
  wr_blocks rows;
  hash_map process_end; /* process -> ns, of those that have ended */
} page_memory;

/* Before the walk over all calls; then, after page_calls_end(), the rest. */
weir_status page_memory_begin(page_memory *m, page_calls *calls);
weir_status page_memory_load(page_memory *m, const wr_model *model);

/* By device, the bytes of one of its areas at each bin; sorts what is kept. */
void page_memory_finish(page_memory *m);

void page_memory_free(page_memory *m);

#endif
