/* content.h: what the files of this folder share. */
#ifndef WEIR_INTERPOSE_CONTENT_H
#define WEIR_INTERPOSE_CONTENT_H

#include "core/trace/event.h"
#include "interpose/content/reading.h"
#include "interpose/process/thread.h"

/* A copy's hash is known now, or why there is none: goes into the thread's spool. `number`: what
 * the copy was announced as; 0: its event comes next, and began at `start`. */
void content_write(thread_state *t, uint64_t number, uint64_t start, hash_outcome outcome,
                   const copy_hash_info *info, bool uniform);

/* A copy that is to be hashed. */
typedef struct content_copy {
  uint64_t number;   /* as above, the next too */
  uint64_t start;    /* ticks */
  uint64_t dst, src; /* addresses, as in its event */
  unsigned site;     /* record/copy_sites.h */
  bool upload;       /* to a device: its parts are compared (spans.h) */
  bool print;        /* only if a print of it was seen before (sample.h) */
} content_copy;

/* Hashes the region and writes the record. */
void content_hash(thread_state *t, const content_copy *copy, const content_region *region);

#endif
