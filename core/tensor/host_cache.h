/* host_cache.h: blocks of host memory that are not in use, kept for the next request.
 *
 * New memory costs a fault for each of its pages, and the system clears them first: for a result of
 * 100 MB that is as long as the work, and for one of 1 MB ten times as long. The C library keeps no
 * more than 128 KiB of what is free at the end of its heap, at first. Sizes are whole grains: eight
 * for each doubling, from HOST_BLOCK_LARGE on HOST_BLOCK_GRAIN; a block is used again for its own
 * size only. Kept are at most so many bytes (weir_host_cache_set_limit), and none longer than STALE
 * blocks that came after it. Nothing is kept under AddressSanitizer or valgrind, which could not
 * see uses of what was released. */
#ifndef WEIR_TENSOR_HOST_CACHE_H
#define WEIR_TENSOR_HOST_CACHE_H

#include <stdint.h>

enum {
  HOST_BLOCK_LEAST = 32 << 10,
  HOST_BLOCK_LARGE = 4 << 20,
  HOST_BLOCK_GRAIN = 512 << 10 /* bytes */
};

/* A block of at least `bytes`, which is HOST_BLOCK_LEAST or more, aligned to pages, to huge ones
 * from HOST_BLOCK_LARGE on: for host_block_give(). What is in it: anything. NULL: no memory. */
void *host_block_take(uint64_t bytes);
void host_block_give(void *block, uint64_t bytes); /* steals it; bytes as it was taken with */

#endif
