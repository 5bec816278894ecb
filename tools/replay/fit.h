/* fit.h: whether a list of operations fits on a device of a size, and what size it needs. */
#ifndef WEIR_TOOLS_REPLAY_FIT_H
#define WEIR_TOOLS_REPLAY_FIT_H

#include <stdio.h>
#include "tools/replay/replay.h"

typedef struct rp_fit {
  const rp_policy *policy;
  uint64_t capacity; /* bytes, of each heap's device */
  bool fits;
  uint64_t
      needs; /* bytes of the smallest device tried that it fits on; to 1 part in 256 or 2 MiB */
  /* Where it does not fit: the first allocation that failed. */
  size_t op;        /* in the list */
  uint64_t number;  /* among the record's allocations, from 1; 0: a block from before it */
  bool request;     /* it failed when it was recorded, too */
  uint64_t at_ns;   /* since the list's first operation */
  uint64_t bytes;   /* asked for */
  uint64_t live;    /* bytes of its heap that the program held then */
  uint64_t largest; /* bytes of the largest allocation that would have fitted in its place */
} rp_fit;

/* Tries `policy` on devices of options->capacity, which is not 0, and, where that is too small, of
 * more until it fits. Errors: as rp_replay(). */
weir_status rp_fit_try(rp_fit *out, const rp_ops *ops, const rp_policy *policy,
                       const rp_options *options);

/* A sentence for each; the place of an allocation is named where the list has stacks. */
weir_status rp_fit_show_text(FILE *out, const rp_ops *ops, const rp_fit *fits, size_t count);

#endif
