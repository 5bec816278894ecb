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
  wr_event held[MOST_HELD];
} run_source;

typedef struct run_merge {
  const wr_events *x;
  run_source
      *source[OPEN_RUNS]; /* owned; the first `count` are a heap, then those that are unused */
  size_t count, made;
  size_t next; /* run */
} run_merge;

static bool is_earlier(const wr_event *a, const wr_event *b)
{
  return a->start != b->start ? a->start < b->start : a->id < b->id;
}

/* The row after the last that is held goes to its place among them. */
static void place_last(run_source *s)
{
  wr_event *first = s->held + s->head, *at = first + s->count - 1, e = *at;
  for (; at > first && is_earlier(&e, at - 1); at--)
    *at = at[-1];
  *at = e;
}

/* Holds the first rows of those read that are of the run; returns how many there were. */
static size_t hold_rows(const run_merge *m, run_source *s,
                        int64_t rows[WR_ROWS_AT_ONCE][WR_EVENT_VALUES], size_t n)
{
  if (s->head + s->count + n > MOST_HELD) {
    memmove(s->held, s->held + s->head, s->count * sizeof(*s->held));
    s->head = 0;
  }
  for (size_t i = 0; i < n; i++) {
    wr_event *e = &s->held[s->head + s->count];
    if (rows[i][0] > s->run->last) return i;
    if (!wr_event_read(m->x, rows[i], e)) continue;
    if (s->count++ && is_earlier(e, e - 1)) place_last(s);
  }
  return n;
}

/* Reads on until as many rows are held as are needed to know the next. */
static weir_status fill_source(const run_merge *m, run_source *s)
{
  int64_t rows[WR_ROWS_AT_ONCE][WR_EVENT_VALUES];
  while (s->count < s->want && !s->over) {
    size_t n = wr_rows_some(&s->rows, rows[0], WR_ROWS_AT_ONCE);
    s->over = !n || hold_rows(m, s, rows, n) < n;
  }
  return s->rows.status;
}

static void sink_source(run_merge *m, size_t at)
{
  run_source *moved = m->source[at];
  for (size_t child; (child = 2 * at + 1) < m->count; at = child) {
    if (child + 1 < m->count && is_earlier(&m->source[child + 1]->held[m->source[child + 1]->head],
                                           &m->source[child]->held[m->source[child]->head]))
      child++;
    if (!is_earlier(&m->source[child]->held[m->source[child]->head], &moved->held[moved->head]))
      break;
    m->source[at] = m->source[child];
  }
  m->source[at] = moved;
}

static void raise_source(run_merge *m, size_t at)
{
  run_source *moved = m->source[at];
  for (; at; at = (at - 1) / 2) {
    run_source *parent = m->source[(at - 1) / 2];
    if (!is_earlier(&moved->held[moved->head], &parent->held[parent->head])) break;
    m->source[at] = parent;
  }
  m->source[at] = moved;
}

/* The next run is read from its first row on. */
static weir_status open_run(run_merge *m)
{
  weir_status st = WEIR_OK;
  if (m->count == m->made) {
    run_source *made = m->source[m->made] = calloc(1, sizeof(*made));
    if (!made) return wr_db_out_of_memory(m->x->db);
    m->made++;
    st = wr_rows_open(&made->rows, m->x->db, "event_row", wr_event_columns, WR_EVENT_VALUES);
  }
  run_source *s = m->source[m->count];
  s->run = &m->x->runs[m->next++];
  s->over = false;
  s->want = s->run->disordered ? WR_RUN_WINDOW : 1;
  s->head = s->count = 0;
  if (st) return st;
  wr_rows_seek(&s->rows, s->run->first);
  st = fill_source(m, s);
  if (!st && s->count) raise_source(m, m->count++);
  return st;
}

/* The event up to which the first source can be read: of the others the earliest; NULL: there is
 * none. */
static const wr_event *next_of_others(const run_merge *m)
{
  const wr_event *next = NULL;
  for (size_t i = 1; i < 3 && i < m->count; i++) {
    const wr_event *e = &m->source[i]->held[m->source[i]->head];
    if (!next || is_earlier(e, next)) next = e;
  }
  return next;
}

/* The earliest events are taken, all of one run, up to that of another or to where the next run
 * begins. */
static weir_status step_merge(run_merge *m, wr_event_fn take, void *context)
{
  run_source *s = m->source[0];
  const wr_event *others = next_of_others(m);
  bool more = m->next < m->x->run_count;
  int64_t until = more ? m->x->runs[m->next].from : 0;
  weir_status st;
  do {
    st = take(context, &s->held[s->head]);
    s->head++, s->count--;
    if (!st && s->count < s->want) st = fill_source(m, s);
  } while (!st && s->count && (!more || s->held[s->head].start < until) &&
           (!others || is_earlier(&s->held[s->head], others)));
  if (!s->count) {
    m->source[0] = m->source[--m->count];
    m->source[m->count] = s;
  }
  if (m->count) sink_source(m, 0);
  return st;
}

static weir_status merge_runs(wr_events *x, wr_event_fn take, void *context)
{
  run_merge m = {.x = x};
  weir_status st = WEIR_OK;
  while (!st && (m.count || m.next < x->run_count)) {
    const run_source *first = m.count ? m.source[0] : NULL;
    if (m.next < x->run_count && (!first || x->runs[m.next].from <= first->held[first->head].start))
      st = open_run(&m);
    else
      st = step_merge(&m, take, context);
  }
  for (size_t i = 0; i < m.made; i++) {
    weir_status closed = wr_rows_close(&m.source[i]->rows);
    if (!st) st = closed;
    free(m.source[i]);
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
