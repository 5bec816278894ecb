/* resolve.h: weir resolve: what a report finds out about the places in a program goes into the
 * trace, so that its views have them, and the report also where the program's files are not. */
#ifndef WEIR_REPORTS_RESOLVE_H
#define WEIR_REPORTS_RESOLVE_H

#include <signal.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct resolve_settings {
  const char *symbols; /* absolute; folder in which symbols are looked for first, or NULL */
  const volatile sig_atomic_t *stop; /* not 0: to be left as it was; or NULL */
} resolve_settings;

typedef struct resolve_counts {
  uint64_t addresses, named; /* of the trace; of these, those with a function or a line */
  uint64_t files_lacking;    /* changed or removed since the run */
} resolve_counts;

/* Fills source_line, site and wait_detail of a complete trace, in one transaction: after a failure it says what
 * it said before. Errors: ENOENT, EIO (one that is written, another's, incomplete, stopped),
 * ECORRUPT, EVERSION, ENOSPC, ENOMEM. */
weir_status resolve_trace(const char *trace, const resolve_settings *options,
                          resolve_counts *counts);

#endif
