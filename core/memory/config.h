/* config.h: the allocator's options, as text in WEIR_ALLOC_CONF: "key:value,key:value".
 *
 * Keys that PyTorch has mean what they mean there; the rest are ours. A key that is not in the
 * table and a value that its key does not take are errors that name the valid ones. */
#ifndef WEIR_MEMORY_CONFIG_H
#define WEIR_MEMORY_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/require.h"

typedef struct pool_config {
  uint64_t max_split_bytes;   /* larger segments are never split (no VMM); UINT64_MAX: no bound */
  uint64_t roundup_divisions; /* sizes rounded up to 1/N of a power of two; 0: classes only */
  double gc_threshold; /* share of the limit above which idle memory is given back first; 0: off */
  bool expandable;     /* use VMM where the source has it */
  bool whole_block;    /* every block is one segment: no split, no coalescing, no VMM */
  uint64_t decay_ms;   /* idle memory older than this is given back; 0: never */
  uint64_t soft_limit_bytes;   /* above it reuse is tried harder before growing; 0: none */
  uint64_t limit_bytes;        /* most we reserve; 0: the device's size */
  uint64_t pinned_limit_bytes; /* most host memory the process pins; 0: no bound of ours */
  uint64_t pinned_threads;     /* that touch large pinned memory first; 0: as many as are good */
  bool pinned_register;        /* pin our own memory; else have the device make it */
  bool pinned_ahead;           /* pin some more in the background before it is asked for */
} pool_config;

extern const pool_config pool_config_default;

/* Applies `text` (NULL or "": nothing) onto *config. Errors: EINVAL, *config is untouched. */
weir_status pool_config_parse(pool_config *config, const char *name, const char *text);

#endif
