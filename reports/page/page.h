/* page.h: a trace in, an HTML file out (README.md). */
#ifndef WEIR_REPORTS_PAGE_PAGE_H
#define WEIR_REPORTS_PAGE_PAGE_H

#include <stdio.h>
#include "core/base/status.h"
#include "reports/findings/findings.h"

typedef struct page_settings {
  const char *symbols;  /* absolute; folder in which symbols are looked for first, or NULL */
  bool innermost_sites; /* a place is the innermost frame that is not CUDA's, a library's too */
  bool anew;            /* of the events, whatever of them is kept */
  wr_findings_settings findings; /* which are in the page */
  /* What is being done, and how much of it is; or NULL. */
  void (*progress)(void *context, const char *doing, uint64_t done, uint64_t all);
  void *context;
} page_settings;

/* Writes the page of `trace`, a trace or a spool, to `out`. Errors: those of wr_input_open(),
 * EVERSION (a trace of schema 1), ENOSPC, EIO, ENOMEM. */
weir_status page_write(FILE *out, const char *trace, const page_settings *settings);

#endif
