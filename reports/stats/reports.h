/* reports.h: the table of reports.
 *
 * `columns` are the headings, each behind four characters: how a value is shown, where it comes from,
 * of which measure or label, and a blank.
 *   shown: i a whole number, 1 with one decimal, 3 bytes as MB with three, t a text, k a kernel's name
 *   from:  of a sum  L a label, p its share in % of all, t total, n how many, a mean, m median, l least,
 *                    h most, s standard deviation of a sample
 *          of a list its column, or # the number of the row
 * The SQL of a list has its columns. That of a sum has labels, then the measures v0, v1, … (NULL: not of
 * this one), then w, for how many alike the row stands: each has v / w. */
#ifndef WEIR_REPORTS_STATS_REPORTS_H
#define WEIR_REPORTS_STATS_REPORTS_H

typedef enum stats_needs {
  STATS_CALLS,  /* what every trace has */
  STATS_RANGES, /* ranges by NVTX */
  STATS_DEVICE, /* times of devices */
  STATS_NEVER,  /* `sql` says what Weir does not record */
  STATS_SKIPPED /* no trace has it, `sql`, and nsys stats goes on to the next report */
} stats_needs;

typedef struct stats_report {
  const char *name, *title;
  const char *columns, *sql;
  int labels, measures; /* of a sum; 0 and 0: a list */
  int rows;             /* shown unless asked; 0: all */
  stats_needs needs;
} stats_report;

extern const stats_report stats_reports[]; /* ends with a name NULL */

/* NULL: there is none. */
const stats_report *stats_report_named(const char *name);

/* The SQL of a report with the innermost range by NVTX ahead of each kernel's name, STATS_RANGE_MARK
 * between them: new. NULL: out of memory. */
#define STATS_RANGE_MARK '\x1f'
char *stats_sql_by_range(const char *sql);

#endif
