/* physical.h: memory without an address (cuMemCreate), and where the program has mapped it.
 *
 * *Physical memory* is live from its creation until it has neither a reference of the program's
 * (create, retain, import: each ends with a release) nor a mapping. It is one allocation, named by
 * its handle, however often it is mapped. A *mapping* makes an address range of its memory's kind
 * and device in the pointer map.
 *
 * A release finds which memory it is of before the real call, since the handle can come back to
 * another thread at once; addresses are the program's own, and cannot. Under a lock: the driver's
 * side of each of these calls takes microseconds. */
#ifndef WEIR_INTERPOSE_PHYSICAL_H
#define WEIR_INTERPOSE_PHYSICAL_H

#include "interpose/record/pointers.h"

typedef struct physical_memory {
  uint64_t handle, bytes; /* bytes 0: imported, and not mapped yet: only a mapping shows it */
  block_tag tag;          /* kind and device of its mappings */
  bool imported;          /* of another process or API */
} physical_memory;

void physical_created(const physical_memory *m);

/* A reference more, under what may be another handle, of the memory that is mapped at `address`. */
void physical_retained(uint64_t handle, uint64_t address);

/* Around a release. begin: which memory it is of, 0: not known. end: true when it was the last of
 * all, and what has ended. */
uint32_t physical_release_begin(uint64_t handle);
bool physical_release_end(uint32_t which, uint64_t handle, bool released, physical_memory *ended);

/* Memory has been mapped. True: it is imported, and this is its first mapping, which shows its
 * size: *first. */
bool physical_mapped(uint64_t address, uint64_t bytes, uint64_t handle, physical_memory *first);

/* The mappings that begin in [address, address + bytes) are gone. What ends with them is a list:
 * its first, 0 none; next: takes that off, and returns the one after it. */
uint32_t physical_unmapped(uint64_t address, uint64_t bytes);
uint32_t physical_next_ended(uint32_t which, physical_memory *ended);

/* A reset of their device took the marks of all that is on it: physical memory outlives it. */
void physical_mark_again(unsigned device);

/* In a forked child: nothing is known, and nobody holds the lock. */
void physical_forked(void);

#endif
