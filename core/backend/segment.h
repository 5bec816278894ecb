/* segment.h: where the allocator's memory comes from: the segment source.
 *
 * A source is one struct of functions over one device. The CUDA backend, the cpu backend and the
 * tests' fake fill the same struct. Two ways to get memory:
 *   segments  malloc-like: one call, one address, freed whole. Always there.
 *   VMM       optional (reserve is NULL where it is missing; then all six are): address space is
 *             reserved once, pages of `page_bytes` are created, mapped anywhere in it, unmapped and
 *             mapped elsewhere.
 * Every function may fail. WEIR_EOOM means that the device has no more to give, and the allocator
 * then goes on down its reuse order; any other status is passed to the user with its sentence. A
 * function that failed has changed nothing.
 *
 * Addresses are numbers below 2^48. The allocator never reads or writes what they point to. */
#ifndef WEIR_BACKEND_SEGMENT_H
#define WEIR_BACKEND_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

/* How host memory is locked; values as in cudaHostAlloc, cuMemHostAlloc and (the first two)
 * cuMemHostRegister. PORTABLE: pinned for every context, not only that of the device. MAPPED: has
 * an address on the device. WRITE_COMBINED: bypasses the processor's caches. */
enum weir_host_flags { WEIR_HOST_PORTABLE = 1, WEIR_HOST_MAPPED = 2, WEIR_HOST_WRITE_COMBINED = 4 };

typedef struct weir_source {
  uint64_t page_bytes; /* size and alignment of a VMM page, a power of two; 0: no VMM */

  /* Bytes the device has in all, and free for anybody now. */
  weir_status (*mem_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

  /* Segments; addresses are multiples of 512. */
  weir_status (*segment_alloc)(void *self, uint64_t bytes, uint64_t *address);
  weir_status (*segment_free)(void *self, uint64_t address, uint64_t bytes);

  /* VMM. Sizes and addresses are multiples of page_bytes; create makes one page, unmap takes away
   * what one or more maps mapped side by side. A page may be mapped at several addresses at once
   * and is the same memory at all of them, for work that is ordered. access makes a range of mapped
   * pages readable and writable: without it nobody may touch the range. */
  weir_status (*reserve)(void *self, uint64_t bytes, uint64_t *address);
  weir_status (*release)(void *self, uint64_t address, uint64_t bytes);
  weir_status (*create)(void *self, uint64_t *page);
  weir_status (*destroy)(void *self, uint64_t page);
  weir_status (*map)(void *self, uint64_t address, uint64_t page);
  weir_status (*unmap)(void *self, uint64_t address, uint64_t bytes);
  weir_status (*access)(void *self, uint64_t address, uint64_t bytes);

  /* Page-locked host memory for the pinned pools. `flags` are bits of weir_host_flags.
   *   host_register  locks and maps [memory, memory + bytes), which is the pool's own: anonymous
   *                  private memory, 2 MiB aligned, every page touched. Never with WRITE_COMBINED.
   *                  The pool never asks for a range that overlaps another, and hands out no block
   *                  that lies in two ranges: a copy of a block meets one registration.
   *   host_unregister  undoes one host_register, by its start; all copies from and to it are over.
   *   host_alloc     memory of the device's own making, locked and mapped, a multiple of 4096: the
   *                  only way to write-combined memory. host_free gives it back.
   * Optional, each pair both or none (NULL). Without host_register the pools take plain memory from
   * host_alloc too; without host_alloc write-combined memory is not supported; without both there
   * is no pinned memory. WEIR_EOOM: no more can be locked; the allocator then gives back what is
   * idle and tries again. */
  weir_status (*host_register)(void *self, void *memory, uint64_t bytes, unsigned flags);
  weir_status (*host_unregister)(void *self, void *memory, uint64_t bytes);
  weir_status (*host_alloc)(void *self, uint64_t bytes, unsigned flags, void **out);
  weir_status (*host_free)(void *self, void *memory, uint64_t bytes);
  /* Optional: whether host memory that is not ours is page-locked, for weir_is_pinned(). NULL: what
   * is not ours counts as not pinned. */
  weir_status (*host_is_pinned)(void *self, const void *memory, bool *pinned);
  /* Optional: the number of the memory node nearest to the device, -1: not known. NULL: not known;
   * memory is then taken near the processor that asks. */
  int (*numa_node)(void *self);

  /* Optional; asked before the allocator commits host memory of its own for records. A failure is
   * passed on. The fake fails here to try every metadata allocation. */
  weir_status (*host_commit)(void *self, uint64_t bytes);
} weir_source;

#endif
