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
  bool over; /* all its rows are, or were, held */
  uint32_t leaf;
  uint32_t want; /* rows are read where fewer are held */
  uint32_t head, count;
  wr_event_slot held[MOST_HELD];
} run_source;

typedef struct run_place {
  int64_t start;      /* of the first event that is held */
  run_source *source; /* NULL: there is none */
} run_place;

/* Sources are the leaves of a tree of matches, which the earlier wins. Each place has the one that lost there, so that the
 * winner's next event plays against those on its way up alone. */
typedef struct run_merge {
  const wr_events *x;
  wr_batch *batch;
  run_source *source[OPEN_RUNS]; /* owned: `made` of them, by leaf */
  run_source *spare[OPEN_RUNS];  /* those that read no run */
  size_t made, spares;
  size_t leaves; /* a power of two */
  size_t next;   /* run */
  run_place first;
  run_place
      lost[OPEN_RUNS]; /* from 1; those below `i` are 2 i and 2 i + 1, leaves from `leaves` on */
} run_merge;

static bool is_earlier(const wr_event *a, const wr_event *b)
{
  return a->start != b->start ? a->start < b->start : a->id < b->id;
}

/* Of those that begin at one time the first row is earlier. */
static bool has_less(const run_source *a, const run_source *b)
{
  return a && (!b || a->held[a->head].event.id < b->held[b->head].event.id);
}

/* The row after the last that is held goes to its place among them. */
static void place_last(run_source *s)
{
  wr_event_slot *first = s->held + s->head, *at = first + s->count - 1, e = *at;
  for (; at > first && is_earlier(&e.event, &at[-1].event); at--)
    *at = at[-1];
  *at = e;
}

/* Of `n` rows that ascend, those up to `last`. */
static size_t rows_until(const wr_event_slot *read, size_t n, int64_t last)
{
  while (n && read[n - 1].event.id > last)
    n--;
  return n;
}

/* Holds the first rows of those read that are of the run; returns how many there were. Rows that all have templates and are
 * in order stay where they were read. */
static size_t hold_rows(const run_merge *m, run_source *s, size_t n)
{
  wr_event_slot *read = s->held + s->head + s->count, *e = read;
  const bool ordered = !s->run->disordered;
  size_t i = 0;
  n = rows_until(read, n, s->run->last);
  while (ordered && i < n && wr_event_make(m->x, &read[i]))
    i++;
  e += i, s->count += (uint32_t)i;
  for (; i < n; i++) {
    if (!wr_event_make(m->x, &read[i])) continue;
    if (e != &read[i]) *e = read[i];
    if (s->count++ && !ordered && is_earlier(&e->event, &e[-1].event)) place_last(s);
    e++;
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

static inline run_place place_of(run_source *s)
{
  return s->count ? (run_place){s->held[s->head].event.start, s} : (run_place){INT64_MAX, NULL};
}

static inline bool is_first(const run_place *a, const run_place *b)
{
  return a->start < b->start || (a->start == b->start && has_less(a->source, b->source));
}

/* All matches anew. */
static void play_all(run_merge *m)
{
  run_place won[2 * OPEN_RUNS];
  for (size_t i = 0; i < m->leaves; i++)
    won[m->leaves + i] = i < m->made ? place_of(m->source[i]) : (run_place){INT64_MAX, NULL};
  for (size_t i = m->leaves - 1; i; i--) {
    bool second = is_first(&won[2 * i + 1], &won[2 * i]);
    won[i] = won[2 * i + second];
    m->lost[i] = won[2 * i + !second];
  }
  m->first = won[1];
}

/* Those of the source that was the first, and has gone on. */
static inline void play_on(run_merge *m, run_source *s)
{
  run_place first = place_of(s);
  for (size_t at = (m->leaves + s->leaf) / 2; at; at /= 2) {
    run_place *lost = &m->lost[at];
    if (!is_first(lost, &first)) continue;
    const run_place winner = *lost;
    *lost = first;
    first = winner;
  }
  m->first = first;
}

/* NULL: an error, of which there is a message, *st. */
static run_source *make_source(run_merge *m, weir_status *st)
{
  run_source *s = calloc(1, sizeof(*s));
  if (!s) *st = wr_db_out_of_memory(m->x->db);
  if (!s) return NULL;
  if (m->made == m->leaves) m->leaves = m->leaves ? 2 * m->leaves : 1;
  s->leaf = (uint32_t)m->made;
  m->source[m->made++] = s;
  *st = s->leaf ? wr_rows_again(&s->rows, &m->source[0]->rows)
                : wr_rows_open(&s->rows, m->x->db, "event_row", wr_event_columns, WR_EVENT_VALUES);
  return *st ? NULL : s;
}

/* The next run is read from its first row on. */
static weir_status open_run(run_merge *m)
{
  weir_status st = WEIR_OK;
  run_source *s = m->spares ? m->spare[--m->spares] : make_source(m, &st);
  if (!s) return st;
  s->run = &m->x->runs[m->next++];
  s->over = false;
  s->want = s->run->disordered ? WR_RUN_WINDOW : 1;
  s->head = s->count = 0;
  wr_rows_seek(&s->rows, s->run->first);
  st = fill_source(m, s);
  if (!st) play_all(m);
  if (!st && !s->count) m->spare[m->spares++] = s;
  return st;
}

/* Takes the earliest events, those that begin before the next run does; all of them, where there is no other run. */
static weir_status take_earliest(run_merge *m)
{
  weir_status st = WEIR_OK;
  const bool last = m->next == m->x->run_count;
  const int64_t until = last ? INT64_MAX : m->x->runs[m->next].from;
  run_source *s = m->first.source;
  while (!st && s && (last || m->first.start < until)) {
    st = wr_batch_add(m->batch, &s->held[s->head].event);
    s->head++, s->count--;
    if (!st && s->count < s->want) st = fill_source(m, s);
    play_on(m, s);
    if (!s->count) m->spare[m->spares++] = s;
    s = m->first.source;
  }
  return st;
}

static weir_status merge_runs(wr_events *x, wr_batch *batch)
{
  run_merge *m = calloc(1, sizeof(*m));
  weir_status st = WEIR_OK;
  if (!m) return wr_db_out_of_memory(x->db);
  m->x = x;
  m->batch = batch;
  while (!st && m->next < x->run_count) {
    st = open_run(m);
    if (!st) st = take_earliest(m);
  }
  for (size_t i = 0; i < m->made; i++) {
    weir_status closed = wr_rows_close(&m->source[i]->rows);
    if (!st) st = closed;
    free(m->source[i]);
  }
  free(m);
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
  wr_batch *batch;
} event_sort;

static weir_status log_events(void *context, const wr_event events[], size_t count)
{
  event_sort *s = context;
  for (size_t i = 0; i < count; i++) {
    const wr_event *e = &events[i];
    const logged_event one = {e->id, e->start, e->ns, e->a, e->b, e->bytes, e->at};
    wr_run_keep(&s->log, (const wr_logged *)(const void *)&one);
  }
  return WEIR_OK;
}

static weir_status take_logged(void *context, const void *record)
{
  const event_sort *s = context;
  const logged_event *l = record;
  const wr_event e = {l->id, l->start, l->ns, l->a, l->b, l->bytes, &s->x->templates[l->at], l->at};
  return wr_batch_add(s->batch, &e);
}

static weir_status sort_events(wr_events *x, wr_batch *batch)
{
  char *beside = wr_run_path();
  event_sort s = {x, {.trace = beside, .size = sizeof(logged_event)}, batch};
  if (!beside) return wr_db_out_of_memory(x->db);
  wr_batch rows = {.take = log_events, .context = &s};
  weir_status st = wr_batch_rows(x, &rows);
  if (!st) st = wr_batch_end(&rows);
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

weir_status wr_batch_by_time(wr_events *x, wr_batch *b)
{
  size_t most = 0;
  weir_status st = x->runs_known ? WEIR_OK : find_runs(x);
  if (!st) st = order_runs(x, &most);
  if (st) return st;
  if (x->run_count <= 1 && !(x->run_count && x->runs[0].disordered)) return wr_batch_rows(x, b);
  return most <= OPEN_RUNS ? merge_runs(x, b) : sort_events(x, b);
}
