/* pools.h: memory with a life of its own: private pools of captured graphs. Included by weir.h.
 *
 * Semantics follow PyTorch's graph pools (torch.cuda.graph_pool_handle, MemPool):
 * beginAllocateToPool, endAllocateToPool and releasePool of its CUDACachingAllocator.
 */
#ifndef WEIR_POOLS_H
#define WEIR_POOLS_H

#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- private pools ----------------------------------------------------------------------------
 * What is allocated while a graph is captured must come from a private pool, which keeps the memory
 * as long as the graph may be replayed, also what is freed meanwhile. Several graphs may share a
 * pool when they are replayed one after the other in the order of their captures. A capture without
 * a pool is safe as long as every block that the graph touches stays allocated while the graph
 * lives. The allocator never records, nor waits, in a stream that is being captured.
 */

typedef struct weir_graph_pool weir_graph_pool;

/* *out is new, with one use: weir_graph_pool_release() it. Errors: EINVAL, ENOMEM, ELIMIT. */
WEIR_PUBLIC weir_status weir_graph_pool_create(weir_graph_pool **out, weir_device device);
/* From now on what `stream` allocates comes from the pool; NULL: what any stream of the device
 * allocates while it is captured. Adds a use, the graph's: released when the graph is destroyed.
 * Blocks freed are reused in the pool; one that another stream used (weir_record_stream) not before
 * that stream's capture has ended. Errors: EINVAL (has begun already, released), ELIMIT. */
WEIR_PUBLIC weir_status weir_graph_pool_begin(weir_graph_pool *pool, weir_stream *stream);
/* The stream allocates as before. The pool keeps its memory. Errors: EINVAL (was not begun). */
WEIR_PUBLIC weir_status weir_graph_pool_end(weir_graph_pool *pool, weir_stream *stream);
/* Takes a use away; with the last one steals the pool: when all work now in the device's streams is
 * complete, replays in streams the allocator knows included, its memory serves everybody. Blocks
 * that are still allocated stay so. Errors: EINVAL (released before, or its last use while
 * something allocates to it). */
WEIR_PUBLIC weir_status weir_graph_pool_release(weir_graph_pool *pool);

typedef struct weir_graph_pool_stats {
  uint64_t id;              /* never given twice in a process; as in snapshots */
  uint64_t uses;            /* the handle's and those of graphs */
  uint64_t reserved_bytes;  /* memory that serves the pool only */
  uint64_t allocated_bytes; /* of it, in blocks that are allocated */
  uint64_t free_bytes;      /* of it, free for the next capture */
} weir_graph_pool_stats;

WEIR_PUBLIC weir_status weir_graph_pool_get_stats(weir_graph_pool_stats *out,
                                                  weir_graph_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
