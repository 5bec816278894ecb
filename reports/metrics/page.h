/* page.h: figures of processes as a page for Prometheus and what reads its formats.
 *
 * OpenMetrics 1.0 (ends with "# EOF", a counter's family has no _total in its name) or Prometheus's
 * text format 0.0.4. Labels: job, rank, pid, device, memory, direction, cause, site; one without a
 * value is left out. Names from outside are escaped, what is no UTF-8 in them is U+FFFD, and they
 * are cut. A page has at most WR_PAGE_SERIES series; weir_series_left_out is how many there would
 * be more. */
#ifndef WEIR_REPORTS_METRICS_PAGE_H
#define WEIR_REPORTS_METRICS_PAGE_H

#include <stdio.h>
#include "reports/metrics/figures.h"

enum { WR_PAGE_SERIES = 500 };

#define WR_OPENMETRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define WR_PROMETHEUS_TYPE  "text/plain; version=0.0.4; charset=utf-8"

typedef struct wr_page_process {
  const wr_figures *figures; /* borrowed */
  uint32_t pid;              /* 0: several that have ended */
  uint32_t rank;             /* and 1; 0: none */
  bool ended;                /* it has no memory any more */
  uint64_t dropped;          /* events that it could not record */
} wr_page_process;

typedef struct wr_page {
  const char *job; /* of every series, NULL: none; borrowed */
  const wr_page_process *process;
  unsigned count;
  double own_seconds; /* of a processor, that the collector took */
  uint64_t dumps;
  double since; /* seconds since 1970 from which on is counted; 0: from the beginning */
} wr_page;

void wr_page_write(FILE *out, const wr_page *page, bool open_metrics);

#endif
