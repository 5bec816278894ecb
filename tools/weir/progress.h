/* progress.h: one line on a terminal that tells how far an import is. */
#ifndef WEIR_TOOLS_PROGRESS_H
#define WEIR_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  bool allowed;      /* the line may be drawn now (no program of the user's owns the terminal) */
  bool drawn;        /* and it is there */
  uint64_t since_ns; /* CLOCK_MONOTONIC of the first call while allowed */
  uint64_t last_ns;  /* of the last drawing */
} progress;

/* For weir_importer_options.progress; `context` is a progress. Draws at most 5 times a second, and
 * not within the first second. */
void progress_report(void *context, uint64_t done, uint64_t total_guess);

/* Takes the line away. */
void progress_clear(progress *p);

#endif
