/* private.h: what the sources of this folder share. */
#ifndef WEIR_REPORTS_EVENTS_PRIVATE_H
#define WEIR_REPORTS_EVENTS_PRIVATE_H

#include "reports/events/events.h"
#include "reports/events/rows.h"

enum {
  WR_RUN_WINDOW = 64, /* a row of a run is at most as many rows after one that began later */
  WR_EVENT_VALUES = 7,
  WR_ROWS_AT_ONCE = 64 /* that are decoded before the first of them is taken */
};

/* The columns of event_row, in the order in which wr_event_read() takes them. */
extern const char *const wr_event_columns[WR_EVENT_VALUES];

/* A row as wr_rows_some() has it. False: it has no template. */
bool wr_event_read(const wr_events *x, const int64_t row[WR_EVENT_VALUES], wr_event *e);

/* Rows that are in order of time, but for rows within the window. */
typedef struct wr_event_run {
  int64_t first, last; /* rows */
  int64_t from, until; /* the least and the greatest start */
  bool disordered;     /* some rows are after one that began later */
} wr_event_run;

/* Finds the runs, row by row. */
typedef struct wr_run_finder {
  int64_t latest
      [WR_RUN_WINDOW]; /* a ring: the greatest start of the run, up to each of its last rows */
  uint64_t rows;       /* of the run */
} wr_run_finder;

/* False: out of memory. */
bool wr_runs_add(wr_events *x, wr_run_finder *f, int64_t id, int64_t start);

#endif
