/* reroutes.h: what Weir can do for a program, each by itself: the words of WEIR_REROUTE and of
 * `weir run --reroute`. The first four are what the modes strict and relaxed do by default; the
 * others change what a program can ask CUDA for, and are done where they are named. */
#ifndef WEIR_BASE_REROUTES_H
#define WEIR_BASE_REROUTES_H

#include <stddef.h>
#include "core/base/options.h"

enum {
  REROUTE_DEVICE = 1 << 0,  /* device memory out of caches */
  REROUTE_PINNED = 1 << 1,  /* page-locked memory out of caches */
  REROUTE_STAGING = 1 << 2, /* large copies of pageable memory, through page-locked memory */
  REROUTE_PEER = 1 << 3,   /* large copies between devices that cannot reach each other, likewise */
  REROUTE_ACCESS = 1 << 4, /* peer access, at the first copy between two devices */
  REROUTE_POOL = 1 << 5,   /* release thresholds of pools that have none */
  REROUTE_DEFAULT = REROUTE_DEVICE | REROUTE_PINNED | REROUTE_STAGING | REROUTE_PEER
};

/* Before the remark in a trace that peer access was enabled, that a pool keeps its memory. */
#define REROUTE_NOTE "done by Weir: "

/* "device,pool": *out is the union. Errors: EINVAL, which states what would be right. */
static inline weir_status reroutes_read(unsigned *out, const char *name, const char *text)
{
  static const char *const words[] = {"device", "pinned", "staging", "peer",
                                      "access", "pool",   NULL};
  return option_choices(out, name, text, words);
}

#endif
