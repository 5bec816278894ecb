/* events.c: see events.h. */
#include "reports/events/events.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/events/private.h"

const char *const wr_event_columns[WR_EVENT_VALUES] = {
    [WR_OF_ID] = "id",       [WR_OF_TEMPLATE] = "template",
    [WR_OF_START] = "start", [WR_OF_DURATION] = "duration",
    [WR_OF_A] = "a",         [WR_OF_B] = "b",
    [WR_OF_BYTES] = "bytes"};

/* ---- templates ------------------------------------------------------------------------------- */

static void say_what_it_is(wr_template *t)
{
  t->succeeded = !t->status;
  t->captured = t->flags & WEIR_EVF_CAPTURE;
  t->done = t->succeeded && !t->captured;
  t->first = !(t->flags & WEIR_EVF_BATCH);
  t->asked =
      t->kind == WEIR_EV_SYNC &&
      (t->copy == WEIR_SYNC_EVENT || t->copy == WEIR_SYNC_STREAM || t->copy == WEIR_SYNC_CONTEXT);
  t->implicit = !t->asked && t->flags & WEIR_EVF_IMPLICIT_SYNC && t->first;
  t->device_work =
      t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET || t->kind == WEIR_EV_LAUNCH;
  t->sized = t->kind == WEIR_EV_ALLOC || t->kind == WEIR_EV_COPY || t->kind == WEIR_EV_MEMSET ||
             t->kind == WEIR_EV_HOSTREG;
}

/* What follows from the columns; `host`, `src_host`: it has no such device. */
static void complete_template(wr_template *t, bool host, bool src_host)
{
  t->api &= 0xffff;
  if (host || t->device < 0 || t->device >= WR_HOST) t->device = WR_HOST;
  if (src_host || t->src_device < 0 || t->src_device >= WR_HOST) t->src_device = WR_HOST;
  say_what_it_is(t);
}

wr_template wr_template_read(sqlite3_stmt *q, int at)
{
#define READ(name, ...) .name = sqlite3_column_int64(q, at - 1 + WR_TEMPLATE_##name),
  wr_template t = {WR_TEMPLATE_MAP(READ)};
#undef READ
  complete_template(&t, sqlite3_column_type(q, at - 1 + WR_TEMPLATE_device) == SQLITE_NULL,
                    sqlite3_column_type(q, at - 1 + WR_TEMPLATE_src_device) == SQLITE_NULL);
  return t;
}

/* Of the row at hand, of all columns. */
static wr_template template_of_row(const wr_row_walk *r)
{
#define TAKE(name, ...) .name = r->v[WR_TEMPLATE_##name - 1],
  wr_template t = {.id = r->id, WR_TEMPLATE_MAP(TAKE)};
#undef TAKE
  complete_template(&t, r->nulls >> (WR_TEMPLATE_device - 1) & 1,
                    r->nulls >> (WR_TEMPLATE_src_device - 1) & 1);
  return t;
}

static wr_template *add_template(wr_events *x, const wr_template *t)
{
  if (!wr_grow(&x->templates, &x->capacity, x->count + 1, sizeof(*t))) return NULL;
  if (x->count && x->templates[x->count - 1].id <= 0) x->base = x->count;
  x->templates[x->count] = *t;
  return &x->templates[x->count++];
}

static weir_status read_templates(wr_events *x)
{
#define NAME(name, ...) #name,
  static const char *const columns[] = {"id", WR_TEMPLATE_MAP(NAME)};
#undef NAME
  wr_row_walk r;
  weir_status st = wr_rows_open(&r, x->db, "template", columns, WR_TEMPLATE_COLUMNS);
  while (!st && wr_rows_next(&r)) {
    const wr_template t = template_of_row(&r);
    if (!add_template(x, &t)) st = wr_db_out_of_memory(x->db);
  }
  weir_status closed = wr_rows_close(&r);
  return st ? st : closed;
}

#define COMMON_COLUMN(name, ...) ", " #name

/* Launches of graphs are calls of no kind of their own. */
static weir_status take_graph_launch(void *context, sqlite3_stmt *q)
{
  wr_events *x = context;
  int64_t api = sqlite3_column_int64(q, 0);
  for (wr_template *t = x->templates; t < x->templates + x->count; t++)
    t->device_work |= t->kind == WEIR_EV_CALL && t->api == api;
  return WEIR_OK;
}

/* Whether ids have gaps: where they have none, an id is a place. */
static void look_for_gaps(wr_events *x)
{
  size_t at = x->base;
  if (!x->count) return;
  x->first_id = x->templates[at].id;
  while (at < x->count && (uint64_t)x->templates[at].id == (uint64_t)x->first_id + (at - x->base))
    at++;
  if (at == x->count) x->in_a_row = x->count - x->base;
}

/* Where an id is no place it is looked for. */
static weir_status number_templates(wr_events *x)
{
  if (x->in_a_row == x->count) return WEIR_OK;
  for (size_t i = 0; i < x->count; i++)
    if (hash_map_put(&x->by_id, (uint64_t)x->templates[i].id, i)) return wr_db_out_of_memory(x->db);
  return WEIR_OK;
}

weir_status wr_events_open(wr_events *x, const wr_db *db)
{
  *x = (wr_events){.db = db};
  if (db->schema < 2) return WEIR_OK;
  weir_status st = read_templates(x);
  look_for_gaps(x);
  if (!st) st = number_templates(x);
  if (st) return st;
  return wr_db_each(db, "SELECT id FROM main.api WHERE name GLOB '*GraphLaunch*'",
                    take_graph_launch, x);
}

void wr_events_close(wr_events *x)
{
  free(x->templates);
  free(x->runs);
  hash_map_free(&x->by_id);
  *x = (wr_events){0};
}

/* Ids above 0 mostly have no gaps, so that no search is needed. */
size_t wr_events_template(const wr_events *x, int64_t id)
{
  uint64_t guess = x->count ? x->base + ((uint64_t)id - (uint64_t)x->templates[x->base].id) : 0;
  if (guess < x->count && x->templates[guess].id == id) return (size_t)guess;
  const uint64_t *at = hash_map_get(&x->by_id, (uint64_t)id);
  return at ? (size_t)*at : SIZE_MAX;
}

/* ---- in order of rows ------------------------------------------------------------------------ */

static weir_status walk_rows(wr_events *x, wr_batch *b)
{
  wr_row_walk r;
  wr_event_slot slots[WR_ROWS_AT_ONCE];
  wr_run_finder finder = {.rows = 0};
  weir_status st = wr_rows_open(&r, x->db, "event_row", wr_event_columns, WR_EVENT_VALUES);
  for (size_t n;
       !st && (n = wr_rows_apart(&r, slots[0].row, WR_EVENT_STRIDE, WR_ROWS_AT_ONCE)) != 0;)
    for (size_t i = 0; !st && i < n; i++) {
      const wr_event *e = &slots[i].event;
      if (!x->runs_known && !wr_runs_note(x, &finder, e->id, e->start))
        st = wr_db_out_of_memory(x->db);
      else if (wr_event_make(x, &slots[i]))
        st = wr_batch_add(b, e);
    }
  weir_status closed = wr_rows_close(&r);
  x->runs_known |= !st && !closed;
  return st ? st : closed;
}

/* ---- version 1 ------------------------------------------------------------------------------- */

typedef struct whole_walk {
  wr_events *x;
  wr_batch *batch;
} whole_walk;

static uint64_t hash_template(const wr_template *t)
{
  uint64_t hash = t->first;
#define MIX(name, ...) hash = hash_mix(hash, (uint64_t)t->name);
  WR_TEMPLATE_MAP(MIX)
#undef MIX
  return hash;
}

/* id, the template's, start, duration, a, b, bytes, call */
static weir_status take_whole(void *context, sqlite3_stmt *q)
{
  whole_walk *w = context;
  wr_events *x = w->x;
  bool added;
  wr_template t = wr_template_read(q, 1);
  const int own = WR_TEMPLATE_COLUMNS;
  t.first = sqlite3_column_type(q, own + 5) == SQLITE_NULL;
  t.implicit = !t.asked && t.flags & WEIR_EVF_IMPLICIT_SYNC && t.first;
  uint64_t *at = hash_map_place(&x->by_id, hash_template(&t), &added);
  if (!at) return wr_db_out_of_memory(x->db);
  if (added) *at = x->count;
  if (added && !add_template(x, &t)) return wr_db_out_of_memory(x->db);
  int64_t ns = sqlite3_column_int64(q, own + 1);
  wr_event e = {.id = sqlite3_column_int64(q, 0),
                .start = sqlite3_column_int64(q, own),
                .ns = ns > 0 ? ns : 0,
                .a = (uint64_t)sqlite3_column_int64(q, own + 2),
                .b = (uint64_t)sqlite3_column_int64(q, own + 3),
                .bytes = (uint64_t)sqlite3_column_int64(q, own + 4),
                .t = &x->templates[*at],
                .at = (size_t)*at};
  return wr_batch_add(w->batch, &e);
}

/* Templates may have moved since an event was added: those of version 1 are made on the way. */
typedef struct whole_batch {
  const wr_events *x;
  wr_events_fn take;
  void *context;
} whole_batch;

static weir_status take_moved(void *context, const wr_event events[], size_t count)
{
  const whole_batch *w = context;
  wr_event moved[WR_BATCH];
  for (size_t i = 0; i < count; i++) {
    moved[i] = events[i];
    moved[i].t = &w->x->templates[moved[i].at];
  }
  return w->take(w->context, moved, count);
}

static weir_status walk_whole(wr_events *x, wr_batch *b)
{
  whole_batch moved = {x, b->take, b->context};
  whole_walk w = {x, b};
  b->take = take_moved;
  b->context = &moved;
  weir_status st =
      wr_db_each(x->db,
                 "SELECT id" WR_TEMPLATE_MAP(
                     COMMON_COLUMN) ", start, \"end\" - start, a, b, bytes, call FROM main.event",
                 take_whole, &w);
  if (!st) st = wr_batch_end(b);
  b->take = moved.take;
  b->context = moved.context;
  return st;
}

/* ---- either ---------------------------------------------------------------------------------- */

weir_status wr_batch_rows(wr_events *x, wr_batch *b)
{
  return x->db->schema >= 2 ? walk_rows(x, b) : walk_whole(x, b);
}
