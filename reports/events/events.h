/* events.h: the events of a trace, each decoded once: what it has in common with others stands once, in its template, with
 * what that means.
 *
 * A walk is in the order of rows, in which each thread's calls are in order, or in order of time. For that no row is sorted:
 * rows lie as their threads' chunks were imported, so that a trace is some *runs* of rows that are in order, but for a few
 * places where a call stands after one that began later; a walk in order of time merges them, and reads as many as overlap.
 *
 * In a trace of version 1, which has no templates, they are made as events are read. */
#ifndef WEIR_REPORTS_EVENTS_H
#define WEIR_REPORTS_EVENTS_H

#include "core/base/map.h"
#include "reports/import/event_columns.h"
#include "reports/import/schema.h"

#define WR_HOST 256 /* the host, where a device number is meant */

typedef struct wr_template {
  int64_t id;
#define WR_TEMPLATE_FIELD(name, ...) int64_t name;
  WR_TEMPLATE_MAP(WR_TEMPLATE_FIELD) /* as the columns; NULL is 0, and WR_HOST of a device */
#undef WR_TEMPLATE_FIELD
  bool succeeded, captured; /* captured: it was put into a graph, and not run */
  bool done;                /* it succeeded, and was not captured */
  bool first;               /* of its call: no further item of a batch */
  bool asked;               /* a wait that the program asked for */
  bool implicit;            /* another call in which it may have waited */
  bool sized;               /* its bytes are bytes of memory */
  bool device_work;         /* a copy, memset or launch of a kernel or graph */
} wr_template;

/* Of a row that has the columns of WR_TEMPLATE_MAP from `at` on. */
wr_template wr_template_read(sqlite3_stmt *q, int at);

typedef struct wr_event {
  int64_t id, start, ns; /* ns: its duration, never negative */
  uint64_t a, b, bytes;
  const wr_template *t; /* borrowed until the next event, or batch of them */
  size_t at;            /* its place among the templates */
} wr_event;

typedef weir_status (*wr_event_fn)(void *context, const wr_event *e);

/* The next `count` events, of which there is one at least. */
typedef weir_status (*wr_events_fn)(void *context, const wr_event events[], size_t count);

typedef struct wr_events {
  const wr_db *db;        /* borrowed */
  wr_template *templates; /* owned, in order of id */
  size_t count, capacity;
  size_t base;      /* of the first id above 0, or of the last */
  size_t in_a_row;  /* templates from there on, if their ids have no gaps; else 0 */
  int64_t first_id; /* of the first of these */
  hash_map by_id;
  struct wr_event_run *runs; /* owned */
  size_t run_count, run_capacity;
  bool runs_known;
} wr_events;

/* Reads the templates; `x` is closed by wr_events_close() whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_events_open(wr_events *x, const wr_db *db);
void wr_events_close(wr_events *x);

/* The place of a template; SIZE_MAX: there is none. */
size_t wr_events_template(const wr_events *x, int64_t id);

/* All events in order of rows; a status of `take` ends the walk. One without a template is in no walk. */
weir_status wr_events_each(wr_events *x, wr_event_fn take, void *context);

/* In order of start, then of rows. Of version 2. */
weir_status wr_events_by_time(wr_events *x, wr_event_fn take, void *context);

/* Either, by batches. */
weir_status wr_events_some(wr_events *x, bool by_time, wr_events_fn take, void *context);

#endif
