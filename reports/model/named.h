/* named.h: memory that the program has given names to by NVTX's memory extension.
 *
 * A name is a block's where it was said of the block's first byte while it was live; of several the
 * last counts. */
#ifndef WEIR_REPORTS_NAMED_H
#define WEIR_REPORTS_NAMED_H

#include "reports/base/util.h"
#include "reports/import/schema.h"

/* All blocks of one name, kind of memory and device. */
typedef struct wr_named_sum {
  char *name;                      /* owned */
  int mem, device;                 /* mem_kind; ordinal, -1 the host */
  uint64_t blocks, bytes;          /* in all */
  uint64_t live_bytes, peak_bytes; /* never freed; most at one moment */
  uint64_t now_bytes;              /* while summing */
} wr_named_sum;

typedef struct wr_named {
  wr_named_sum *sum; /* owned; the largest peak first */
  size_t count;
} wr_named;

/* Makes the temporary table named_block(block, event, name): blocks with a name, and the events that
 * allocated them. A trace from before memory had names has none. */
weir_status wr_named_blocks(const wr_db *db);

/* Calls wr_named_blocks. */
weir_status wr_named_load(wr_named *n, const wr_db *db);
void wr_named_free(wr_named *n);

#endif
