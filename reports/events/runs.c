/* runs.c: events in order of time, by their runs (run_finder.c); see events.h.
 *
 * Whoever holds as many rows of a run as the window has, and takes the earliest of them, has the next one: a later row that
 * began before it would have to be less than a window after each of those that are held. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/events/private.h"
#include "reports/import/run_log.h"

enum {
  OPEN_RUNS = 256, /* at once; of a trace with more the events are sorted */
  MOST_HELD = 2 * (WR_RUN_WINDOW + WR_ROWS_AT_ONCE)
};

static weir_status find_runs(wr_events *x)
{
  static const char *const columns[] = {"id", "start"};
  wr_row_walk r;
  int64_t rows[WR_ROWS_AT_ONCE][2];
  wr_run_finder finder = {.rows = 0};
  weir_status st = wr_rows_open(&r, x->db, "event_row", columns, 2);
  x->run_count = 0;
  for (size_t n; !st && (n = wr_rows_some(&r, rows[0], WR_ROWS_AT_ONCE)) != 0;)
    for (size_t i = 0; !st && i < n; i++)
      if (!wr_runs_note(x, &finder, rows[i][0], rows[i][1])) st = wr_db_out_of_memory(x->db);
  weir_status closed = wr_rows_close(&r);
  x->runs_known = !st && !closed;
  return st ? st : closed;
}

/* ---- merging --------------------------------------------------------------------------------- */

/* A run that is read: the rows of it that are held, in order. */
typedef struct run_source {
  wr_row_walk rows;
  const wr_event_run *run;
  bool over;     /* all its rows are, or were, held */
  uint32_t want; /* rows are read where fewer are held */
  uint32_t head, count;
  wr_event_slot held[MOST_HELD];
} run_source;

typedef struct run_place { /* of a source among others */
  int64_t start;           /* of its first event that is held */
  run_source *source;      /* owned */
} run_place;

typedef struct run_merge {
  const wr_events *x;
  run_place place[OPEN_RUNS]; /* the first `count` are a heap, then those that are unused */
  size_t count, made;
  size_t next; /* run */
} run_merge;

static bool is_earlier(const wr_event *a, const wr_event *b)
{
  return a->start != b->start ? a->start < b->start : a->id < b->id;
}

static inline bool is_before(const run_place *a, const run_place *b)
{
  const run_source *x = a->source, *y = b->source;
  if (a->start != b->start) return a->start < b->start;
  return x->held[x->head].event.id < y->held[y->head].event.id;
}

/* The row after the last that is held goes to its place among them. */
static void place_last(run_source *s)
{
  wr_event_slot *first = s->held + s->head, *at = first + s->count - 1, e = *at;
  for (; at > first && is_earlier(&e.event, &at[-1].event); at--)
    *at = at[-1];
  *at = e;
}

/* Holds the first rows of those read that are of the run; returns how many there were. */
static size_t hold_rows(const run_merge *m, run_source *s, size_t n)
{
  wr_event_slot *read = s->held + s->head + s->count;
  bool all = read[n - 1].event.id <= s->run->last;
  for (size_t i = 0; i < n; i++) {
    wr_event_slot *e = &s->held[s->head + s->count];
    if (!all && read[i].event.id > s->run->last) return i;
    if (!wr_event_make(m->x, &read[i])) continue;
    if (e != &read[i]) *e = read[i];
    if (s->count++ && s->run->disordered && is_earlier(&e->event, &e[-1].event)) place_last(s);
  }
  return n;
}

/* Reads on until as many rows are held as are needed to know the next. */
static weir_status fill_source(const run_merge *m, run_source *s)
{
  while (s->count < s->want && !s->over) {
    if (s->head + s->count + WR_ROWS_AT_ONCE > MOST_HELD) {
      memmove(s->held, s->held + s->head, s->count * sizeof(*s->held));
      s->head = 0;
    }
    size_t n =
        wr_rows_apart(&s->rows, s->held[s->head + s->count].row, WR_EVENT_STRIDE, WR_ROWS_AT_ONCE);
    s->over = !n || hold_rows(m, s, n) < n;
  }
  return s->rows.status;
}

static void raise_source(run_merge *m, size_t at, run_place moved)
{
  for (; at && is_before(&moved, &m->place[(at - 1) / 2]); at = (at - 1) / 2)
    m->place[at] = m->place[(at - 1) / 2];
  m->place[at] = moved;
}

/* The first source has another first event. Mostly it is now among the last of all: its place is looked for from the end. */
static void sink_first(run_merge *m)
{
  run_place moved = m->place[0];
  size_t at = 0, child;
  for (; (child = 2 * at + 2) < m->count; at = child) {
    child -= is_before(&m->place[child - 1], &m->place[child]);
    m->place[at] = m->place[child];
  }
  if (child == m->count) m->place[at] = m->place[child - 1], at = child - 1;
  raise_source(m, at, moved);
}

static weir_status make_source(run_merge *m)
{
  run_source *made = m->place[m->made].source = calloc(1, sizeof(*made));
  if (!made) return wr_db_out_of_memory(m->x->db);
  if (m->made++) return wr_rows_again(&made->rows, &m->place[0].source->rows);
  return wr_rows_open(&made->rows, m->x->db, "event_row", wr_event_columns, WR_EVENT_VALUES);
}

/* The next run is read from its first row on. */
static weir_status open_run(run_merge *m)
{
  weir_status st = m->count == m->made ? make_source(m) : WEIR_OK;
  run_source *s = m->place[m->count].source;
  if (st) return st;
  s->run = &m->x->runs[m->next++];
  s->over = false;
  s->want = s->run->disordered ? WR_RUN_WINDOW : 1;
  s->head = s->count = 0;
  wr_rows_seek(&s->rows, s->run->first);
  st = fill_source(m, s);
  if (st || !s->count) return st;
  raise_source(m, m->count++, (run_place){s->held[0].event.start, s});
  return st;
}

/* Events that begin before that come from the first source alone: when the first of another begins, or the next run. */
static int64_t begin_of_others(const run_merge *m)
{
  int64_t until = m->next < m->x->run_count ? m->x->runs[m->next].from : INT64_MAX;
  for (size_t i = 1; i < 3 && i < m->count; i++)
    if (m->place[i].start < until) until = m->place[i].start;
  return until;
}

/* The earliest event is taken, with those of its run that surely follow. */
static weir_status step_merge(run_merge *m, wr_event_fn take, void *context)
{
  run_source *s = m->place[0].source;
  int64_t until = begin_of_others(m);
  weir_status st;
  do {
    st = take(context, &s->held[s->head].event);
    s->head++, s->count--;
    if (!st && s->count < s->want) st = fill_source(m, s);
  } while (!st && s->count && s->held[s->head].event.start < until);
  if (s->count) {
    m->place[0].start = s->held[s->head].event.start;
  } else {
    m->place[0] = m->place[--m->count];
    m->place[m->count].source = s;
  }
  if (m->count > 1) sink_first(m);
  return st;
}

static weir_status merge_runs(wr_events *x, wr_event_fn take, void *context)
{
  run_merge m = {.x = x};
  weir_status st = WEIR_OK;
  while (!st && (m.count || m.next < x->run_count)) {
    if (m.next < x->run_count && (!m.count || x->runs[m.next].from <= m.place[0].start))
      st = open_run(&m);
    else
      st = step_merge(&m, take, context);
  }
  for (size_t i = 0; i < m.made; i++) {
    weir_status closed = wr_rows_close(&m.place[i].source->rows);
    if (!st) st = closed;
    free(m.place[i].source);
  }
  return st;
}

/* ---- sorting --------------------------------------------------------------------------------- */

typedef struct logged_event { /* as wr_logged */
  int64_t id, start, ns;
  uint64_t a, b, bytes;
  size_t at;
} logged_event;

typedef struct event_sort {
  const wr_events *x;
  wr_run_log log;
  wr_event_fn take;
  void *context;
} event_sort;

static weir_status log_event(void *context, const wr_event *e)
{
  event_sort *s = context;
  const logged_event one = {e->id, e->start, e->ns, e->a, e->b, e->bytes, e->at};
  wr_run_keep(&s->log, (const wr_logged *)(const void *)&one);
  return WEIR_OK;
}

static weir_status take_logged(void *context, const void *record)
{
  const event_sort *s = context;
  const logged_event *l = record;
  const wr_event e = {l->id, l->start, l->ns, l->a, l->b, l->bytes, &s->x->templates[l->at], l->at};
  return s->take(s->context, &e);
}

static weir_status sort_events(wr_events *x, wr_event_fn take, void *context)
{
  char *beside = wr_run_path();
  event_sort s = {x, {.trace = beside, .size = sizeof(logged_event)}, take, context};
  if (!beside) return wr_db_out_of_memory(x->db);
  weir_status st = wr_events_each(x, log_event, &s);
  if (!st && s.log.incomplete)
    st = weir_fail(WEIR_EIO, "no room for a temporary file: %s-runs", beside);
  if (!st) st = wr_run_each(&s.log, take_logged, &s);
  wr_run_drop(&s.log);
  free(beside);
  return st;
}

/* ---- either ---------------------------------------------------------------------------------- */

static int by_from(const void *left, const void *right)
{
  const wr_event_run *a = left, *b = right;
  return a->from != b->from ? (a->from > b->from) - (a->from < b->from)
                            : (a->first > b->first) - (a->first < b->first);
}

static int by_number(const void *left, const void *right)
{
  int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
  return (a > b) - (a < b);
}

/* Puts the runs in the order in which they begin. *most: of those that are read at one time. */
static weir_status order_runs(wr_events *x, size_t *most)
{
  int64_t *until = calloc(x->run_count + 1, sizeof(*until));
  if (!until) return wr_db_out_of_memory(x->db);
  for (size_t i = 0; i < x->run_count; i++)
    until[i] = x->runs[i].until;
  if (x->run_count) qsort(x->runs, x->run_count, sizeof(*x->runs), by_from);
  if (x->run_count) qsort(until, x->run_count, sizeof(*until), by_number);
  *most = 0;
  for (size_t i = 0, over = 0; i < x->run_count; i++) {
    while (until[over] < x->runs[i].from)
      over++;
    if (i + 1 - over > *most) *most = i + 1 - over;
  }
  free(until);
  return WEIR_OK;
}

weir_status wr_events_by_time(wr_events *x, wr_event_fn take, void *context)
{
  size_t most = 0;
  weir_status st = x->runs_known ? WEIR_OK : find_runs(x);
  if (!st) st = order_runs(x, &most);
  if (st) return st;
  if (x->run_count <= 1 && !(x->run_count && x->runs[0].disordered))
    return wr_events_each(x, take, context);
  return most <= OPEN_RUNS ? merge_runs(x, take, context) : sort_events(x, take, context);
}
