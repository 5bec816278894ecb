/* keep.h: how much of what a program does a recorder keeps, as WEIR_KEEP and --keep have it.
 *
 * SIZE, TIME or SIZE,TIME: the records that a process wrote last, as much as fits in SIZE (64M
 * without one), and of these no older than TIME. A time has a unit, ms, s, min or h: 5m would be
 * taken for five minutes by half of all readers, and for five MiB by the others. */
#ifndef WEIR_BASE_KEEP_H
#define WEIR_BASE_KEEP_H

#include <stdint.h>
#include "core/base/status.h"

#define KEEP_USUAL (UINT64_C(64) << 20)
#define KEEP_LEAST (UINT64_C(1) << 20)
#define KEEP_MOST  (UINT64_C(2) << 30) /* a spool's file ends at twice as much */

typedef struct keep_size {
  uint64_t bytes; /* a process; 0: no recorder is asked for */
  uint64_t ns;    /* 0: of any age */
} keep_size;

/* Reads `text` ("off": none), as the parsers of options.h do. */
weir_status keep_read(keep_size *out, const char *name, const char *text);

#endif
