/* reports.h: the table of reports. The SQL of each is a view of its name in reports.sql, whose
 * columns are the headings of a list; a sum has its labels as they are there, and the headings
 * of its measures. */
#ifndef WEIR_REPORTS_STATS_REPORTS_H
#define WEIR_REPORTS_STATS_REPORTS_H

typedef enum stats_needs {
  STATS_CALLS,  /* what every trace has */
  STATS_RANGES, /* ranges by NVTX */
  STATS_DEVICE, /* times of devices */
  STATS_NEVER,  /* `title` names what Weir does not record */
  STATS_SKIPPED /* no trace has it, `title`, and nsys stats goes on to the next report */
} stats_needs;

typedef enum stats_shape {
  STATS_LIST,
  STATS_TIMES, /* a sum of times, before its labels */
  STATS_SIZES, /* a sum of bytes, before its labels */
  STATS_PHASES /* four measures of times, between the first three labels and the others */
} stats_shape;

typedef struct stats_report {
  const char *name, *title;
  stats_needs needs;
  stats_shape shape;
  const char *count; /* of a sum of times: the heading of how many there are */
  int labels;        /* of a sum */
  int kernel;        /* the column of the view, from 1, that has names of kernels; 0: none */
  int rows;          /* shown unless asked; 0: all */
} stats_report;

extern const stats_report stats_reports[]; /* ends with a name NULL */

/* NULL: there is none. */
const stats_report *stats_report_named(const char *name);

/* reports.sql */
extern const char stats_sql[];

#endif
