/* blocks.c: see blocks.h. A row of block_row states its event, whose bytes and times are looked for by its number: blocks lie in
 * order of their ends, so that their events are near those of the blocks before. */
#include "reports/events/blocks.h"
#include <stdlib.h>
#include "reports/base/util.h"
#include "reports/events/rows.h"
#include "core/trace/event.h"
#include "reports/import/lifetime.h"
#include "reports/import/run_log.h"

enum { ROWS_AT_ONCE = 4096 /* of the walk back */ };

/* ---- events that were heard -------------------------------------------------------------------- */

typedef struct wr_heard_event {
  int64_t over; /* ns, when the call returned */
  uint64_t bytes;
  uint32_t at; /* template */
} wr_heard_event;

enum { MOST_EVENTS = 1 << 23 }; /* that may be heard: 32 MiB */

weir_status wr_blocks_listen(wr_blocks *x)
{
  int64_t first = 0, last = 0;
  if (!x->by_pages) return WEIR_OK;
  weir_status st = wr_db_number(x->events->db, "SELECT min(id) FROM main.event_row", &first);
  if (!st) st = wr_db_number(x->events->db, "SELECT max(id) FROM main.event_row", &last);
  if (st || first <= 0 || last - first >= MOST_EVENTS) return st;
  x->first_event = first;
  x->event_span = (uint64_t)(last - first) + 1;
  x->heard_at = calloc(x->event_span, sizeof(*x->heard_at));
  return x->heard_at ? WEIR_OK : wr_db_out_of_memory(x->events->db);
}

weir_status wr_blocks_hear(wr_blocks *x, const wr_event *e)
{
  uint64_t nth = (uint64_t)e->id - (uint64_t)x->first_event;
  if (!x->heard_at || nth >= x->event_span || !e->ns) return WEIR_OK; /* ns: may be below 0 */
  if (x->heard_count == x->heard_capacity &&
      !wr_grow(&x->heard, &x->heard_capacity, x->heard_count + 1, sizeof(*x->heard)))
    return wr_db_out_of_memory(x->events->db);
  int64_t over = (int64_t)((uint64_t)e->start + (uint64_t)e->ns);
  x->heard[x->heard_count++] = (wr_heard_event){over, e->bytes, (uint32_t)e->at};
  x->heard_at[nth] = (uint32_t)x->heard_count;
  return WEIR_OK;
}

static const wr_heard_event *heard_event(const wr_blocks *x, int64_t id)
{
  uint64_t nth = (uint64_t)id - (uint64_t)x->first_event;
  uint32_t at = x->heard_at && nth < x->event_span ? x->heard_at[nth] : 0;
  return at ? &x->heard[at - 1] : NULL;
}

/* ---- from the file's pages --------------------------------------------------------------------- */

enum { BLOCK_EVENT, BLOCK_HOW, BLOCK_LIFE, BLOCK_BORN, BLOCK_DIED_AFTER, BLOCK_VALUES };
enum { EVENT_TEMPLATE, EVENT_START, EVENT_DURATION, EVENT_BYTES, EVENT_VALUES };

typedef struct block_walk {
  const wr_blocks *x;
  wr_row_walk blocks, starts;
} block_walk;

static weir_status open_walk(block_walk *w, const wr_blocks *x)
{
  static const char *const block[] = {"id", "event", "how", "life", "born", "died_after"},
                           *const event[] = {"id", "template", "start", "duration", "bytes"};
  const wr_db *db = x->events->db;
  w->x = x;
  weir_status st = wr_rows_open(&w->blocks, db, "block_row", block, BLOCK_VALUES + 1);
  weir_status opened = wr_rows_open(&w->starts, db, "event_row", event, EVENT_VALUES + 1);
  return st ? st : opened;
}

static weir_status close_walk(block_walk *w)
{
  weir_status blocks = wr_rows_close(&w->blocks), starts = wr_rows_close(&w->starts);
  return blocks ? blocks : starts;
}

static int64_t place_of_death(const wr_row_walk *r)
{
  return (int64_t)((uint64_t)r->v[BLOCK_BORN] + (uint64_t)r->v[BLOCK_DIED_AFTER]);
}

/* Its event: of a block that was seen, as it would be heard; else when the free began. False: it is not there, or its
 * template. */
static bool find_event(block_walk *w, int64_t event, bool seen, wr_heard_event *found)
{
  const wr_heard_event *heard = seen ? heard_event(w->x, event) : NULL;
  if (heard) *found = *heard;
  if (heard) return true;
  if (!wr_rows_find(&w->starts, event)) return false;
  const int64_t *e = w->starts.v;
  size_t at = wr_events_template(w->x->events, e[EVENT_TEMPLATE]);
  uint64_t duration = seen ? (uint64_t)e[EVENT_DURATION] : 0;
  *found = (wr_heard_event){(int64_t)((uint64_t)e[EVENT_START] + duration),
                            (uint64_t)e[EVENT_BYTES], (uint32_t)at};
  return at != SIZE_MAX;
}

/* False: a damaged trace's, whose event or template is not there; the view has no such block either. */
static bool read_block(block_walk *w, wr_block *b)
{
  const int64_t *v = w->blocks.v;
  bool seen = v[BLOCK_HOW] != WR_BLOCK_UNKNOWN, dead = !(w->blocks.nulls >> BLOCK_DIED_AFTER & 1);
  wr_heard_event e;
  if (w->blocks.nulls >> BLOCK_EVENT & 1 || !find_event(w, v[BLOCK_EVENT], seen, &e)) return false;
  const wr_template *t = &w->x->events->templates[e.at];
  *b = (wr_block){.id = w->blocks.id,
                  .process = t->process,
                  .stack = seen ? t->stack : 0,
                  .how = v[BLOCK_HOW],
                  .born = v[BLOCK_BORN],
                  .died = dead ? place_of_death(&w->blocks) : 0,
                  .start = seen ? e.over : 0,
                  .end = seen ? (int64_t)((uint64_t)e.over + (uint64_t)v[BLOCK_LIFE]) : e.over,
                  .bytes = seen ? e.bytes : 0,
                  .device = (int)t->device,
                  .mem = (int)t->mem,
                  .dead = dead,
                  .ended = !seen || !(w->blocks.nulls >> BLOCK_LIFE & 1),
                  .registered = t->kind == WEIR_EV_HOSTREG,
                  .placed = !(w->blocks.nulls >> BLOCK_BORN & 1),
                  .t = t};
  if (!b->ended) b->end = 0;
  return true;
}

/* ---- walks ----------------------------------------------------------------------------------- */

static weir_status note_first(wr_blocks *x, int64_t id)
{
  if (!wr_grow(&x->first, &x->first_capacity, x->firsts + 1, sizeof(*x->first)))
    return wr_db_out_of_memory(x->events->db);
  x->first[x->firsts++] = id;
  return WEIR_OK;
}

static weir_status walk_blocks(wr_blocks *x, wr_block_fn take, void *context)
{
  block_walk w;
  wr_block b;
  weir_status st = open_walk(&w, x);
  x->firsts = 0;
  for (uint64_t rows = 0; !st && wr_rows_next(&w.blocks); rows++) {
    if (rows % ROWS_AT_ONCE == 0) st = note_first(x, w.blocks.id);
    if (!st && take && read_block(&w, &b)) st = take(context, &b);
    if (!st) st = w.starts.status;
  }
  weir_status closed = close_walk(&w);
  return st ? st : closed;
}

/* The blocks of rows from `first` to before `end`. */
static weir_status read_some(block_walk *w, int64_t first, int64_t end, wr_block *some,
                             size_t *count)
{
  *count = 0;
  wr_rows_seek(&w->blocks, first);
  while (*count < ROWS_AT_ONCE && wr_rows_next(&w->blocks) && w->blocks.id < end)
    *count += read_block(w, &some[*count]);
  return w->blocks.status ? w->blocks.status : w->starts.status;
}

static weir_status walk_back(const wr_blocks *x, wr_block_fn take, void *context)
{
  block_walk w;
  size_t count = 0;
  int64_t end = INT64_MAX;
  wr_block *some = calloc(ROWS_AT_ONCE, sizeof(*some));
  weir_status st = open_walk(&w, x);
  if (!some) st = wr_db_out_of_memory(x->events->db);
  for (size_t i = x->firsts; !st && i; i--) {
    st = read_some(&w, x->first[i - 1], end, some, &count);
    end = x->first[i - 1];
    while (!st && count)
      st = take(context, &some[--count]);
  }
  weir_status closed = close_walk(&w);
  free(some);
  return st ? st : closed;
}

/* ---- by their deaths --------------------------------------------------------------------------- */

enum { DEATHS_IN_MEMORY = (16 << 20) / sizeof(wr_logged) };

typedef struct death_walk {
  wr_run_log log; /* the last first: its time is the complement of where the block died */
  block_walk walk;
  wr_block_fn take;
  void *context;
} death_walk;

static weir_status keep_deaths(death_walk *d)
{
  wr_row_walk *r = &d->walk.blocks;
  while (wr_rows_next(r)) {
    int64_t died = place_of_death(r);
    const wr_logged one = {r->id, r->nulls >> BLOCK_DIED_AFTER & 1 ? INT64_MIN : ~died};
    wr_run_keep(&d->log, &one);
  }
  return r->status;
}

static weir_status take_death(void *context, const void *record)
{
  death_walk *d = context;
  wr_block b;
  const wr_logged *one = record;
  bool found = wr_rows_find(&d->walk.blocks, one->id) && read_block(&d->walk, &b);
  if (found) return d->take(d->context, &b);
  return d->walk.blocks.status ? d->walk.blocks.status : d->walk.starts.status;
}

/* *done: false: there is no room for the order. */
static weir_status walk_deaths(wr_blocks *x, wr_block_fn take, void *context, bool *done)
{
  char *beside = wr_run_path();
  death_walk d = {.take = take, .context = context};
  d.log = (wr_run_log){.trace = beside, .size = sizeof(wr_logged), .most = DEATHS_IN_MEMORY};
  if (!beside) return wr_db_out_of_memory(x->events->db);
  weir_status st = open_walk(&d.walk, x);
  if (!st) st = keep_deaths(&d);
  *done = st || !d.log.incomplete;
  if (!st && *done) st = wr_run_each(&d.log, take_death, &d);
  weir_status closed = close_walk(&d.walk);
  if (!st) st = closed;
  wr_run_drop(&d.log);
  free(beside);
  return st;
}

/* ---- from SQLite ------------------------------------------------------------------------------- */

#define BLOCKS_SQL                                                                                 \
  "SELECT id, process, stack, how, born, died, start, \"end\", bytes, device, mem, registered"     \
  " FROM block"

typedef struct row_taker {
  wr_block_fn take;
  void *context;
} row_taker;

static weir_status take_row(void *context, sqlite3_stmt *q)
{
  const row_taker *r = context;
  int64_t device = sqlite3_column_int64(q, 9);
  bool none = sqlite3_column_type(q, 9) == SQLITE_NULL || device < 0 || device >= WR_HOST;
  const wr_block b = {.id = sqlite3_column_int64(q, 0),
                      .process = sqlite3_column_int64(q, 1),
                      .stack = sqlite3_column_int64(q, 2),
                      .how = sqlite3_column_int64(q, 3),
                      .born = sqlite3_column_int64(q, 4),
                      .died = sqlite3_column_int64(q, 5),
                      .start = sqlite3_column_int64(q, 6),
                      .end = sqlite3_column_int64(q, 7),
                      .bytes = (uint64_t)sqlite3_column_int64(q, 8),
                      .device = none ? WR_HOST : (int)device,
                      .mem = sqlite3_column_int(q, 10),
                      .dead = sqlite3_column_type(q, 5) != SQLITE_NULL,
                      .ended = sqlite3_column_type(q, 7) != SQLITE_NULL,
                      .registered = sqlite3_column_int(q, 11) != 0,
                      .placed = sqlite3_column_type(q, 4) != SQLITE_NULL};
  return r->take(r->context, &b);
}

static weir_status ask_sqlite(const wr_blocks *x, const char *sql, wr_block_fn take, void *context)
{
  row_taker r = {take, context};
  return wr_db_each(x->events->db, sql, take_row, &r);
}

/* ---- either ------------------------------------------------------------------------------------ */

/* Some blocks are of no event of their own: what launches of graphs allocate. An unfinished trace's are in a temporary table. */
weir_status wr_blocks_open(wr_blocks *x, const wr_events *events)
{
  int64_t finished = 0, of_graphs = 0;
  const wr_db *db = events->db;
  *x = (wr_blocks){.events = events};
  if (db->schema < 2) return WEIR_OK;
  weir_status st = wr_db_number(db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!st && finished == 1 && wr_schema_graph_memory(db))
    st = wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM graph_work WHERE pointer <> 0)", &of_graphs);
  x->by_pages = finished == 1 && !of_graphs;
  return st;
}

void wr_blocks_close(wr_blocks *x)
{
  free(x->first);
  free(x->heard_at);
  free(x->heard);
  *x = (wr_blocks){0};
}

weir_status wr_blocks_each(wr_blocks *x, wr_block_fn take, void *context)
{
  return x->by_pages ? walk_blocks(x, take, context)
                     : ask_sqlite(x, BLOCKS_SQL " ORDER BY id", take, context);
}

weir_status wr_blocks_back(wr_blocks *x, wr_block_fn take, void *context)
{
  if (!x->by_pages) return ask_sqlite(x, BLOCKS_SQL " ORDER BY id DESC", take, context);
  weir_status st = x->firsts ? WEIR_OK : walk_blocks(x, NULL, NULL);
  return st ? st : walk_back(x, take, context);
}

weir_status wr_blocks_from_last_death(wr_blocks *x, wr_block_fn take, void *context)
{
  bool done = false;
  weir_status st = x->by_pages ? walk_deaths(x, take, context, &done) : WEIR_OK;
  if (st || done) return st;
  return ask_sqlite(x, BLOCKS_SQL " ORDER BY died IS NULL DESC, died DESC", take, context);
}
