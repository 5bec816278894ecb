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
 * Addresses are numbers below 2^48. The allocator never reads or writes what they point to.
 */
#ifndef WEIR_MEMORY_SEGMENT_H
#define WEIR_MEMORY_SEGMENT_H

#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct weir_source {
  uint64_t page_bytes; /* size and alignment of a VMM page, a power of two; 0: no VMM */

  /* Bytes the device has in all, and free for anybody now. */
  weir_status (*mem_info)(void *self, uint64_t *free_bytes, uint64_t *total_bytes);

  /* Segments; addresses are multiples of 512. */
  weir_status (*segment_alloc)(void *self, uint64_t bytes, uint64_t *address);
  weir_status (*segment_free)(void *self, uint64_t address, uint64_t bytes);

  /* VMM. Sizes and addresses are multiples of page_bytes; create makes one page. access makes a
   * mapped range readable and writable: without it nobody may touch the range. */
  weir_status (*reserve)(void *self, uint64_t bytes, uint64_t *address);
  weir_status (*release)(void *self, uint64_t address, uint64_t bytes);
  weir_status (*create)(void *self, uint64_t *page);
  weir_status (*destroy)(void *self, uint64_t page);
  weir_status (*map)(void *self, uint64_t address, uint64_t page);
  weir_status (*unmap)(void *self, uint64_t address, uint64_t bytes);
  weir_status (*access)(void *self, uint64_t address, uint64_t bytes);

  /* Page-locked host memory, optional (both NULL). */
  weir_status (*pinned_alloc)(void *self, uint64_t bytes, void **out);
  weir_status (*pinned_free)(void *self, void *memory, uint64_t bytes);

  /* Optional; asked before the allocator commits host memory of its own for records. A failure is
   * passed on. The fake fails here to try every metadata allocation. */
  weir_status (*host_commit)(void *self, uint64_t bytes);
} weir_source;

#endif
