/* grouped.h: the main table of a report: a row a group, and in each column a measure of what the
 * group did. Rows beyond the most that are wanted are one, so that the sum over the rows is always
 * that of all. */
#ifndef WEIR_REPORTS_GROUPED_H
#define WEIR_REPORTS_GROUPED_H

#include "reports/tables/group.h"

typedef enum wr_measure_kind {
  WR_MEASURE_SUM,        /* of a */
  WR_MEASURE_SHARE,      /* of a, of all groups' */
  WR_MEASURE_SPEED,      /* a bytes in b ns */
  WR_MEASURE_LONGEST,    /* single wait */
  WR_MEASURE_BEST_HOST,  /* speed of a single copy, as the call's time says */
  WR_MEASURE_BEST_DEVICE /* and as the device's says */
} wr_measure_kind;

typedef bool (*wr_cell_takes)(const wr_activity_cell *cell);

typedef struct wr_measure {
  wr_column column;
  wr_measure_kind kind;
  wr_cell_takes takes; /* cells that it is of */
  size_t a, b;         /* offsets in wr_activity_sums */
  bool unknown;        /* of this trace: the column is empty */
} wr_measure;

#define WR_SUM_OF(name) offsetof(wr_activity_sums, name)

enum { WR_MEASURES = 24 };

/* By the groups of `g`; sorted by the first measure, that of most first; `top` rows, 0: all. */
weir_status wr_grouped_table(wr_tables *t, const char *name, const char *title, wr_groups *g,
                             const wr_activity *a, const wr_measure *measures, size_t count,
                             int top);

#endif
