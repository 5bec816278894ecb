/* lifetime.h: which free ends which allocation, and how much was live when.
 *
 * One pass over the memory events of a trace in the order in which the program can have seen them:
 * an allocation counts from its return, a free from its call. So a free and a later allocation
 * that got the same address on another thread are never taken for each other: the address can be
 * handed out again only after the free was called and before the new allocation returned. Failed
 * and captured calls change nothing.
 *
 * What launches of graphs allocate and free is of their contents (graph.h): all of a launch is at
 * its return, what it frees because it allocates it again first, then its nodes as the graph lists
 * them, as if one ran after the other.
 *
 * An importer hands over what it kept of the events (memory_log.h); for a trace of another's, and
 * where there was no room, the rows are read, and memory is the live set and what SQLite's sorter
 * takes.
 *
 * Device side: device, managed and array memory, and memory of unknown kind. Code and contexts are
 * of a device, and apart. Host side: the rest. */
#ifndef WEIR_REPORTS_LIFETIME_H
#define WEIR_REPORTS_LIFETIME_H

#include "reports/import/memory_log.h"

/* How a block ended: block.how. */
enum {
  WR_BLOCK_LIVE = 0,     /* never: live at exit */
  WR_BLOCK_FREED = 1,    /* by a free (or unregister) */
  WR_BLOCK_RESET = 2,    /* with its device or context */
  WR_BLOCK_REPLACED = 3, /* its address was handed out again: the free was not seen */
  WR_BLOCK_UNKNOWN = 4,  /* no block: a free whose allocation was not seen */
  WR_BLOCK_BY_GRAPH = 5  /* by a launch of a graph */
};

/* True for memory that counts as the device's. `mem`: memory_kind. */
bool wr_mem_device_side(int mem);

/* True for what calls took of a device besides: code and contexts (taken.h). In no sum of the
 * device side. */
bool wr_mem_taken(int mem);

/* Fills `block` and `memory` of the database `batch` was opened for; the rows are written by nested
 * flushes, the last by the caller. Main or temp tables are found by their names alone. `log`: what
 * was kept, or NULL: the rows are read; `shift`: what its times have that the rows have no more. */
weir_status wr_lifetimes(wr_batch *batch, wr_memory_log *log, int64_t shift);

/* An unfinished trace has no lifetimes yet: makes them in temporary tables of the same names. */
weir_status wr_lifetimes_temporary(const wr_db *db);

#endif
