/* private.h: what the sources of this folder share. */
#ifndef WEIR_REPORTS_EVENTS_PRIVATE_H
#define WEIR_REPORTS_EVENTS_PRIVATE_H

#include <stddef.h>
#include "reports/events/events.h"
#include "reports/events/rows.h"

enum {
  WR_RUN_WINDOW = 64,  /* a row of a run is at most as many rows after one that began later */
  WR_ROWS_AT_ONCE = 64 /* that are decoded before the first of them is taken */
};

/* The columns of event_row, in the order in which they are read: as an event has them. */
enum {
  WR_OF_ID,
  WR_OF_START,
  WR_OF_DURATION,
  WR_OF_A,
  WR_OF_B,
  WR_OF_BYTES,
  WR_OF_TEMPLATE,
  WR_EVENT_VALUES
};
extern const char *const wr_event_columns[WR_EVENT_VALUES];

/* A row is read to where its event will be. */
typedef union wr_event_slot {
  wr_event event;
  int64_t row[sizeof(wr_event) / sizeof(int64_t)];
} wr_event_slot;
#define WR_EVENT_STRIDE (sizeof(wr_event_slot) / sizeof(int64_t)) /* of slots in a row */
_Static_assert(offsetof(wr_event, start) == WR_OF_START * sizeof(int64_t), "columns of an event");
_Static_assert(offsetof(wr_event, ns) == WR_OF_DURATION * sizeof(int64_t), "columns of an event");
_Static_assert(offsetof(wr_event, a) == WR_OF_A * sizeof(int64_t), "columns of an event");
_Static_assert(offsetof(wr_event, b) == WR_OF_B * sizeof(int64_t), "columns of an event");
_Static_assert(offsetof(wr_event, bytes) == WR_OF_BYTES * sizeof(int64_t), "columns of an event");
_Static_assert(WR_EVENT_STRIDE >= WR_EVENT_VALUES, "a row has room where its event will be");

/* Events on their way to who takes them. */
enum { WR_BATCH = 256 };
typedef struct wr_batch {
  wr_events_fn take;
  void *context;
  size_t count;
  wr_event event[WR_BATCH];
} wr_batch;

static inline weir_status wr_batch_end(wr_batch *b)
{
  size_t count = b->count;
  b->count = 0;
  return count ? b->take(b->context, b->event, count) : WEIR_OK;
}

static inline weir_status wr_batch_add(wr_batch *b, const wr_event *e)
{
  b->event[b->count++] = *e;
  return b->count < WR_BATCH ? WEIR_OK : wr_batch_end(b);
}

/* All events in order of rows; of time. */
weir_status wr_batch_rows(wr_events *x, wr_batch *b);
weir_status wr_batch_by_time(wr_events *x, wr_batch *b);

/* Makes an event of the row. False: it has no template: of a damaged trace, whose view `event` has no such event either. */
static inline bool wr_event_make(const wr_events *x, wr_event_slot *slot)
{
  int64_t id = slot->row[WR_OF_TEMPLATE];
  uint64_t nth = (uint64_t)id - (uint64_t)x->first_id;
  size_t at = nth < x->in_a_row ? x->base + (size_t)nth : wr_events_template(x, id);
  if (at == SIZE_MAX) return false;
  wr_event *e = &slot->event;
  if (e->ns < 0) e->ns = 0;
  e->t = &x->templates[at];
  e->at = at;
  return true;
}

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

/* The same. A row that began no sooner than all of its run, as most did, surely fits the run. */
static inline bool wr_runs_note(wr_events *x, wr_run_finder *f, int64_t id, int64_t start)
{
  wr_event_run *run = x->run_count ? &x->runs[x->run_count - 1] : NULL;
  if (!run || start < run->until) return wr_runs_add(x, f, id, start);
  run->last = id;
  run->until = start;
  f->latest[f->rows++ % WR_RUN_WINDOW] = start;
  return true;
}

#endif
