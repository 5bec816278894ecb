/* reading.h: memory of the program, read without a fault, and its hash.
 *
 * No memory is read by a load. A copy that succeeded may have named memory that the program cannot
 * read: a small one is queued before anything looks at its source, and what was there at the call
 * may be closed or gone by now; and an address that the program called the host's may be a
 * device's. So the kernel reads it (process_vm_readv), a piece at a time, at three quarters of the
 * speed of loads, and what it cannot read is written to the trace as unreadable. Page-locked
 * memory that the driver has mapped may be closed to that call; it goes through a file in memory,
 * which lives as long as one hash takes. */
#ifndef WEIR_INTERPOSE_READING_H
#define WEIR_INTERPOSE_READING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct content_region {
  uint64_t at;            /* address of the first byte */
  uint64_t width, height; /* bytes a row, rows */
  uint64_t pitch;         /* bytes from row to row */
} content_region;

typedef struct content_digest {
  uint64_t hash[2]; /* low, high */
  bool uniform;     /* all bytes are equal */
} content_digest;

/* False: some of it cannot be read. Rows are hashed as if they lay one after the other. */
bool content_digest_of(const content_region *region, content_digest *out);

#endif
