/* reading.h: memory of the program, read without a fault, and its hash.
 *
 * No memory is read by a load. A copy that succeeded may have named memory that the program cannot
 * read: a small one is queued before anything looks at its source, and what was there at the call
 * may be closed or gone by now; and an address that the program called the host's may be a
 * device's. So the kernel reads it (process_vm_readv), a piece at a time, at three quarters of the
 * speed of loads, and what it cannot read is written to the trace as unreadable. Page-locked
 * memory that the driver has mapped may be closed to that call; it goes through a file in memory,
 * which lives as long as one hash takes, and so does all memory where that call is forbidden.
 *
 * System calls are made as such: a sanitizer looks at the arguments of the C library's functions,
 * and would take the reading for the program's own. */
#ifndef WEIR_INTERPOSE_READING_H
#define WEIR_INTERPOSE_READING_H

#include <stdbool.h>
#include <stdint.h>
#include "interpose/content/spans.h"

typedef struct content_region {
  uint64_t at;            /* address of the first byte */
  uint64_t width, height; /* bytes a row, rows */
  uint64_t pitch;         /* bytes from row to row */
  bool mapped;            /* the driver has mapped it for the program */
} content_region;

/* Bytes of the pieces that a print is of, at most, and of one. */
enum { CONTENT_PRINT_BYTES = 66 << 10, CONTENT_PRINT_PIECE = 2 << 10 };

typedef struct content_digest {
  uint64_t hash[2]; /* low, high */
  bool uniform;     /* all bytes are equal */
} content_digest;

/* False: some of it cannot be read. Rows are hashed as if they lay one after the other. `spans` is
 * NULL, or becomes what the region is cut to, if it has enough bytes that lie in a row. */
bool content_digest_of(const content_region *region, content_digest *out, content_spans *spans);

/* A hash of the first bytes of each of its 17 to 32 spans, which are kept there, and of its last
 * bytes. False as above. */
bool content_print_of(const content_region *region, uint64_t *out, content_spans *spans);

/* In a forked child: no other thread is reading. */
void content_reading_forked(void);

#endif
