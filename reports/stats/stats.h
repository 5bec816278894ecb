/* stats.h: the reports of `nsys stats` and the rules of `nsys analyze`, made of a trace. */
#ifndef WEIR_REPORTS_STATS_H
#define WEIR_REPORTS_STATS_H

#include "reports/stats/reports.h"
#include "reports/write/rows.h"

/* How a report names kernels. */
typedef enum stats_names { STATS_WHOLE, STATS_BASE, STATS_MANGLED } stats_names;

typedef enum stats_unit { STATS_NS, STATS_US, STATS_MS, STATS_S } stats_unit;

typedef struct stats_settings {
  wr_rows_format format;
  int64_t rows; /* at most so many; 0: all; negative: as many as the report has by itself */
  stats_names names;
  bool ranges;     /* a kernel's name begins with its innermost range */
  stats_unit unit; /* of times */
} stats_settings;

/* Writes a report of `trace` (a trace, complete or not, or a spool) to `out`. Errors: those of
 * export_input_open(), ENOTSUP for what the trace, or every trace, has nothing for
 * (STATS_SKIPPED: the sentence is nsys'); EIO. */
weir_status stats_write(FILE *out, const char *trace, const stats_report *report,
                        const stats_settings *settings);

#endif
