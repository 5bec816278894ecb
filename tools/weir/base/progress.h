/* progress.h: one line about how far an import or a report is: on a terminal as it goes on,
 * elsewhere once where much is left. */
#ifndef WEIR_TOOLS_WEIR_BASE_PROGRESS_H
#define WEIR_TOOLS_WEIR_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
  const char *trace; /* what is written; borrowed */
  bool allowed;      /* the line may be drawn now (no program of the user's owns the terminal) */
  bool drawn;        /* and it is there */
  bool printed;      /* where stderr is no terminal: the line was printed */
  uint64_t since_ns; /* CLOCK_MONOTONIC of the first call while allowed */
  uint64_t last_ns;  /* of the last drawing */
} progress;

/* For importer_options.progress; `context` is a progress. On a terminal it draws
 * at most 5 times a second, and not within the first second; elsewhere (a pipe, --log) one sentence
 * prints how much is left when that takes about a second or more. */
void progress_report(void *context, uint64_t done, uint64_t total_guess);

/* For wr_findings_settings.progress; `context` is a progress. Draws on a terminal alone. */
void progress_findings(void *context, const char *what, uint64_t done, uint64_t all);

/* Erases the line. */
void progress_clear(progress *p);

#endif
