/* reading.h: memory of the program, read without a fault, and its hash.
 *
 * The memory of a copy is the program's: another thread may unmap it while it is read here, and an
 * address that the program called the host's may be a device's. So the kernel reads it
 * (process_vm_readv), a piece at a time, and what it cannot read is said. Page-locked memory that
 * the driver has mapped may be closed to that call; it goes through a file in memory, which lives as
 * long as one hash takes. */
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

/* False: some of it cannot be read. Rows are hashed as if they lay one behind the other. */
bool content_digest_of(const content_region *region, content_digest *out);

#endif
