/* pools.h: memory with a life of its own: private pools of captured graphs. Included by weir.h.
 *
 * Semantics follow PyTorch's graph pools (torch.cuda.graph_pool_handle, MemPool):
 * beginAllocateToPool, endAllocateToPool and releasePool of its CUDACachingAllocator. */
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
 * lives. The allocator never records, nor waits, in a stream that is being captured. */

typedef struct weir_graph_pool weir_graph_pool;

/* *out is new, with one use: weir_graph_pool_release() it. Errors: EINVAL, ENOMEM, ELIMIT. */
WEIR_PUBLIC weir_status weir_graph_pool_create(weir_graph_pool **out, weir_device device);
/* From now on what `stream` allocates comes from the pool; NULL: what any stream of the device
 * allocates while it is captured. Adds a use, the graph's: released when the graph is destroyed.
 * Blocks freed are reused in the pool; one that another stream used (weir_record_stream) not before
 * that stream's capture has ended. Errors: EINVAL (has begun already, released), ELIMIT. */
WEIR_PUBLIC weir_status weir_graph_pool_begin(weir_graph_pool *pool, weir_stream *stream);
/* The stream, and those that joined its capture (graph.h), allocate as before. The pool keeps its
 * memory. Errors: EINVAL (was not begun). */
WEIR_PUBLIC weir_status weir_graph_pool_end(weir_graph_pool *pool, weir_stream *stream);
/* Takes a use away; with the last one steals the pool: when all work now in the device's streams is
 * complete, replays in streams the allocator knows included, its memory serves everybody; a stream
 * that allocates to a private pool meanwhile is waited for, too. Blocks
 * that are still allocated stay so. Errors: EINVAL (released before, or its last use while
 * something allocates to it). */
WEIR_PUBLIC weir_status weir_graph_pool_release(weir_graph_pool *pool);
/* WEIR_GRAPH_POOL pool = NULL; is released at the end of its block. */
typedef weir_graph_pool *weir_graph_pool_owned;
static inline void weir_graph_pool_drop(weir_graph_pool **pool)
{
  if (*pool) (void)weir_graph_pool_release(*pool);
  *pool = NULL;
}
#define WEIR_GRAPH_POOL __attribute__((cleanup(weir_graph_pool_drop))) weir_graph_pool_owned

typedef struct weir_graph_pool_stats {
  uint64_t id;              /* never given twice in a process; as in snapshots */
  uint64_t uses;            /* the handle's and those of graphs */
  uint64_t reserved_bytes;  /* memory that serves the pool only */
  uint64_t allocated_bytes; /* of it, in blocks that are allocated */
  uint64_t free_bytes;      /* of it, free for the next capture */
} weir_graph_pool_stats;

WEIR_PUBLIC weir_status weir_graph_pool_get_stats(weir_graph_pool_stats *out,
                                                  weir_graph_pool *pool);

/* ---- exports --------------------------------------------------------------------------------- */

/* Somebody outside holds the memory of the live block at ptr (IPC, DLPack, a registration): until
 * as many weir_memory_unexport() the block is not given out again, even when it is freed, and its
 * memory is neither moved, unmapped, paused nor given back. Errors: EINVAL, ENOMEM. */
WEIR_PUBLIC weir_status weir_memory_export(void *ptr);
/* Also after weir_free(ptr). Errors: EINVAL (not exported). */
WEIR_PUBLIC weir_status weir_memory_unexport(void *ptr);

/* ---- pause and resume -------------------------------------------------------------------------
 * As vLLM's sleep mode and torch_memory_saver: memory goes back to the device while its blocks stay
 * allocated at their addresses, which nobody may use meanwhile. Needs virtual memory management. */

/* Waits for the work of all streams of the device, then gives back the memory of the blocks that
 * were allocated under `tag` (weir_memory_set_tag; NULL: of all blocks), as far as whole pages hold
 * nothing else. Blocks of private pools and exported ones stay. save: the contents are kept in host
 * memory, else they are lost. Streams that the allocator does not know must be idle. A page that
 * the device would not take back is kept, and tried again by weir_memory_empty_cache(). Errors:
 * ENOTSUP (no virtual memory management; saving where the backend cannot copy), EINVAL (no such
 * tag, a capture is underway), ENOMEM, the device's: nothing is paused. */
WEIR_PUBLIC weir_status weir_memory_pause(weir_device device, const char *tag, bool save);
/* Gives the paused blocks of the tag (NULL: all) memory at their addresses again, and their
 * contents where they were saved. *lost_bytes (may be NULL): bytes that came back without. Errors:
 * EOOM, EINVAL, the device's: all stays paused. */
WEIR_PUBLIC weir_status weir_memory_resume(weir_device device, const char *tag,
                                           uint64_t *lost_bytes);

#ifdef __cplusplus
}
#endif

#endif
