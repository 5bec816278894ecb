/* blocks.c: see blocks.h. A row of block_row states its event, whose bytes and times are looked for by its number: blocks lie in
 * order of their ends, so that their events are near those of the blocks before. */
#include "reports/events/blocks.h"
#include <stddef.h>
#include <stdlib.h>
#include "reports/base/sort.h"
#include "reports/base/util.h"
#include "reports/events/rows.h"
#include "core/trace/event.h"
#include "reports/import/lifetime.h"
#include "reports/import/run_log.h"

enum { ROWS_AT_ONCE = 4096 /* of the walk back */ };

/* ---- from the file's pages --------------------------------------------------------------------- */

enum { BLOCK_EVENT, BLOCK_HOW, BLOCK_LIFE, BLOCK_BORN, BLOCK_DIED_AFTER, BLOCK_VALUES };
enum { EVENT_TEMPLATE, EVENT_START, EVENT_DURATION, EVENT_BYTES, EVENT_VALUES };

typedef struct block_walk {
  const wr_events *events;
  wr_row_walk blocks, starts;
} block_walk;

static weir_status open_walk(block_walk *w, const wr_events *events)
{
  static const char *const block[] = {"id", "event", "how", "life", "born", "died_after"},
                           *const event[] = {"id", "template", "start", "duration", "bytes"};
  w->events = events;
  weir_status st = wr_rows_open(&w->blocks, events->db, "block_row", block, BLOCK_VALUES + 1);
  weir_status opened = wr_rows_open(&w->starts, events->db, "event_row", event, EVENT_VALUES + 1);
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

/* False: a damaged trace's, whose event or template is not there; the view has no such block either. */
static bool read_block(block_walk *w, wr_block *b)
{
  const int64_t *v = w->blocks.v;
  if (w->blocks.nulls >> BLOCK_EVENT & 1 || !wr_rows_find(&w->starts, v[BLOCK_EVENT])) return false;
  const int64_t *e = w->starts.v;
  size_t at = wr_events_template(w->events, e[EVENT_TEMPLATE]);
  if (at == SIZE_MAX) return false;
  const wr_template *t = &w->events->templates[at];
  bool seen = v[BLOCK_HOW] != WR_BLOCK_UNKNOWN, dead = !(w->blocks.nulls >> BLOCK_DIED_AFTER & 1);
  uint64_t over = (uint64_t)e[EVENT_START] + (uint64_t)e[EVENT_DURATION];
  *b = (wr_block){.id = w->blocks.id,
                  .process = t->process,
                  .stack = seen ? t->stack : 0,
                  .how = v[BLOCK_HOW],
                  .born = v[BLOCK_BORN],
                  .died = dead ? place_of_death(&w->blocks) : 0,
                  .start = seen ? (int64_t)over : 0,
                  .end = seen ? (int64_t)(over + (uint64_t)v[BLOCK_LIFE]) : e[EVENT_START],
                  .bytes = seen ? (uint64_t)e[EVENT_BYTES] : 0,
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

/* ---- kept ------------------------------------------------------------------------------------ */

/* A block with what is not in its template. */
typedef struct wr_kept_block {
  int64_t died; /* of the living, a place after all others */
  int64_t id, born, start, end;
  uint64_t bytes;
  uint32_t at; /* template */
  uint8_t how;
  bool dead, ended, placed;
} wr_kept_block;

enum { MOST_KEPT = (24 << 20) / sizeof(wr_kept_block) };

void wr_blocks_keep(wr_blocks *x)
{
  x->keeps = x->by_pages;
}

static void forget_kept(wr_blocks *x)
{
  free(x->kept);
  x->kept = NULL;
  x->kept_count = x->kept_capacity = 0;
  x->keeps = false;
}

static void keep_block(wr_blocks *x, const wr_block *b)
{
  if (x->kept_count == MOST_KEPT ||
      !wr_grow(&x->kept, &x->kept_capacity, x->kept_count + 1, sizeof(*x->kept))) {
    forget_kept(x);
    return;
  }
  x->kept[x->kept_count++] = (wr_kept_block){.died = b->dead ? b->died : INT64_MAX,
                                             .id = b->id,
                                             .born = b->born,
                                             .start = b->start,
                                             .end = b->end,
                                             .bytes = b->bytes,
                                             .at = (uint32_t)(b->t - x->events->templates),
                                             .how = (uint8_t)b->how,
                                             .dead = b->dead,
                                             .ended = b->ended,
                                             .placed = b->placed};
}

static weir_status take_kept(const wr_blocks *x, const wr_kept_block *k, wr_block_fn take,
                             void *context)
{
  const wr_template *t = &x->events->templates[k->at];
  const wr_block b = {.id = k->id,
                      .process = t->process,
                      .stack = k->how != WR_BLOCK_UNKNOWN ? t->stack : 0,
                      .how = k->how,
                      .born = k->born,
                      .died = k->dead ? k->died : 0,
                      .start = k->start,
                      .end = k->end,
                      .bytes = k->bytes,
                      .device = (int)t->device,
                      .mem = (int)t->mem,
                      .dead = k->dead,
                      .ended = k->ended,
                      .registered = t->kind == WEIR_EV_HOSTREG,
                      .placed = k->placed,
                      .t = t};
  return take(context, &b);
}

/* Those that died at one place are in the order of their numbers. */
static weir_status walk_kept_deaths(const wr_blocks *x, wr_block_fn take, void *context)
{
  weir_status st = WEIR_OK;
  for (size_t first, end = x->kept_count; !st && end; end = first) {
    first = end - 1;
    while (first && x->kept[first - 1].died == x->kept[end - 1].died)
      first--;
    for (size_t i = first; !st && i < end; i++)
      st = take_kept(x, &x->kept[i], take, context);
  }
  return st;
}

/* In order of their deaths; the living, whose number would be too far from the others, are given
 * the place after them. */
static bool sort_kept(wr_blocks *x)
{
  int64_t last = INT64_MIN;
  for (size_t i = 0; i < x->kept_count; i++)
    if (x->kept[i].dead && x->kept[i].died > last) last = x->kept[i].died;
  for (size_t i = 0; last < INT64_MAX && i < x->kept_count; i++)
    if (!x->kept[i].dead) x->kept[i].died = last + 1;
  return last < INT64_MAX &&
         wr_sort_records(x->kept, x->kept_count, sizeof(*x->kept), offsetof(wr_kept_block, died));
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
  weir_status st = open_walk(&w, x->events);
  x->firsts = 0;
  for (uint64_t rows = 0; !st && wr_rows_next(&w.blocks); rows++) {
    if (rows % ROWS_AT_ONCE == 0) st = note_first(x, w.blocks.id);
    if (!st && take && read_block(&w, &b)) {
      if (x->keeps) keep_block(x, &b);
      st = take(context, &b);
    }
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
  weir_status st = open_walk(&w, x->events);
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
  weir_status st = open_walk(&d.walk, x->events);
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
  if (!st && wr_schema_graph_memory(db))
    st = wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM graph_work WHERE pointer <> 0)", &of_graphs);
  x->by_pages = finished == 1 && !of_graphs;
  return st;
}

void wr_blocks_close(wr_blocks *x)
{
  free(x->first);
  free(x->kept);
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
  if (x->keeps && x->kept_count) {
    weir_status st = WEIR_OK;
    for (size_t i = x->kept_count; !st && i; i--)
      st = take_kept(x, &x->kept[i - 1], take, context);
    return st;
  }
  weir_status st = x->firsts ? WEIR_OK : walk_blocks(x, NULL, NULL);
  return st ? st : walk_back(x, take, context);
}

weir_status wr_blocks_from_last_death(wr_blocks *x, wr_block_fn take, void *context)
{
  bool done = false;
  bool sorted = x->keeps && x->kept_count && sort_kept(x);
  if (sorted) {
    weir_status st = walk_kept_deaths(x, take, context);
    forget_kept(x);
    return st;
  }
  weir_status st = x->by_pages ? walk_deaths(x, take, context, &done) : WEIR_OK;
  if (st || done) return st;
  return ask_sqlite(x, BLOCKS_SQL " ORDER BY died IS NULL DESC, died DESC", take, context);
}
