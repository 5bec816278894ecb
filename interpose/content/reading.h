/* reading.h: memory of the program, read without a fault, and its hash.
 *
 * While the call of a copy lasts, its memory in the host is there, and is read as it lies. Else the
 * memory may be gone by now, and an address that the program called the host's may be a device's:
 * then the kernel reads it (process_vm_readv, some 2 us a page), a piece at a time, and what it cannot
 * read is said. Page-locked memory that the driver has mapped may be closed to that call; it goes
 * through a file in memory, which lives as long as one hash takes. */
#ifndef WEIR_INTERPOSE_READING_H
#define WEIR_INTERPOSE_READING_H

#include <stdbool.h>
#include <stdint.h>

typedef struct content_region {
  uint64_t at;            /* address of the first byte */
  uint64_t width, height; /* bytes a row, rows */
  uint64_t pitch;         /* bytes from row to row */
  bool open;              /* it is the host's, and there as long as the call lasts that we are in */
} content_region;

typedef struct content_digest {
  uint64_t hash[2]; /* low, high */
  bool uniform;     /* all bytes are equal */
} content_digest;

/* False: some of it cannot be read. Rows are hashed as if they lay one behind the other. */
bool content_digest_of(const content_region *region, content_digest *out);

#endif
