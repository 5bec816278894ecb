/* spots.c: see spots.h. Everything is read from the trace's own tables; symbols are looked for in
 * the recorded run alone. */
#include "tools/weir/prove/spots.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/reroutes.h"
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/model/open.h"
#include "reports/model/sites.h"
#include "tools/weir/base/cmd.h"

enum {
  PARTS = 1024,     /* the steps are cut into, at most */
  PART_CALLS = 4,   /* of a part, at least: what comes at each few of them is in each part */
  LEAST_CALLS = 32, /* that repeat */
  DONE_FLAGS = WEIR_EVF_CACHED | WEIR_EVF_STAGED
};

static bool trace_fails(weir_status st)
{
  if (st) cmd_message("%s.", weir_error_message());
  return st != WEIR_OK;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
  return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* False: it is no build-id, or one that is too long. */
static bool read_build_id(rule_frame *f, const char *text)
{
  f->id_bytes = 0;
  for (; text && text[0]; text += 2) {
    int high = hex_digit(text[0]), low = high < 0 ? -1 : hex_digit(text[1]);
    if (low < 0 || f->id_bytes == WEIR_RULE_ID) return false;
    f->id[f->id_bytes++] = (uint8_t)(high << 4 | low);
  }
  return f->id_bytes > 0;
}

/* Reads the frame at hand of a query that has build_id and offset in columns 0 and 1. */
static bool read_run_frame(rule_frame *f, sqlite3_stmt *q)
{
  f->offset = (uint64_t)sqlite3_column_int64(q, 1);
  return sqlite3_column_type(q, 1) == SQLITE_INTEGER &&
         read_build_id(f, (const char *)sqlite3_column_text(q, 0));
}

#define FRAMES_OF                                                                                  \
  "SELECT lower(m.build_id), f.address - m.base, f.id, m.path FROM stack_frame s"                  \
  " CROSS JOIN frame f ON f.id = s.frame LEFT JOIN module m ON m.id = f.module"                    \
  " WHERE s.stack = ? ORDER BY s.depth"

/* Loads the frames of a spot from the innermost to row `last`. */
static weir_status load_frames(spot *s, const wr_db *db, int64_t last)
{
  sqlite3_stmt *q = NULL;
  weir_status st = wr_db_prepare(db, FRAMES_OF, &q);
  bool good = true, found = false;
  if (st) return st;
  sqlite3_bind_int64(q, 1, s->stack);
  while (good && !found && sqlite3_step(q) == SQLITE_ROW) {
    const char *path = (const char *)sqlite3_column_text(q, 3), *slash;
    good = s->frames < WEIR_RULE_FRAMES && read_run_frame(&s->frame[s->frames], q);
    if (good && !s->frames++)
      s->module = cmd_format("%s", path && (slash = strrchr(path, '/')) ? slash + 1 : path);
    found = sqlite3_column_int64(q, 2) == last;
  }
  if (!good || !found) s->frames = 0;
  (void)sqlite3_finalize(q);
  return WEIR_OK;
}

/* ---- spots ----------------------------------------------------------------------------------- */

static spot *spot_of(spots *s, int64_t stack)
{
  for (unsigned i = 0; i < s->count; i++)
    if (s->spot[i].stack == stack) return &s->spot[i];
  s->spot = cmd_grow(s->spot, &s->room, s->count, sizeof *s->spot);
  s->spot[s->count] = (spot){.stack = stack};
  return &s->spot[s->count++];
}

static weir_status take_template(void *context, sqlite3_stmt *q)
{
  spot *s = spot_of(context, sqlite3_column_int64(q, 0));
  int kind = sqlite3_column_int(q, 1);
  const char *api = (const char *)sqlite3_column_text(q, 2);
  if (kind >= 0 && kind < 32) s->kinds |= 1U << kind;
  s->takes_from_pool |= kind == WEIR_EV_ALLOC && api && strstr(api, "Async");
  if (!s->api && api) s->api = cmd_format("%s", api);
  return WEIR_OK;
}

static weir_status take_pair(void *context, sqlite3_stmt *q)
{
  spots *s = context;
  s->pair = cmd_grow(s->pair, &s->pair_room, s->pairs, sizeof *s->pair);
  s->pair[s->pairs++] = (spot_pair){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1)};
  return WEIR_OK;
}

static weir_status take_card(void *context, sqlite3_stmt *q)
{
  spots *s = context;
  if (!s->card) s->card = wr_db_text(q, 0);
  return WEIR_OK;
}

static weir_status name_spot(spot *s, const wr_db *db, wr_symbols *symbols)
{
  wr_frame_name name;
  const wr_frame *frames = NULL;
  size_t count = 0;
  weir_status st = wr_site_place(symbols, s->stack, &name);
  if (st) return st;
  s->function = cmd_format("%s", name.function ? name.function : "");
  s->file = name.file ? cmd_format("%s", name.file) : NULL;
  s->line = name.file ? name.line : 0;
  wr_frame_name_free(&name);
  st = wr_symbols_stack(symbols, s->stack, &frames, &count);
  if (st || !count) return st;
  return load_frames(s, db, frames[wr_site_at(frames, count)].row);
}

bool spots_load(spots *s, const wr_db *db)
{
  wr_symbols *symbols = NULL;
  weir_status st = wr_db_each(
      db,
      "SELECT DISTINCT t.stack, t.kind, x.name FROM template t JOIN api x ON x.id = t.api"
      " WHERE t.stack IS NOT NULL ORDER BY 1, 2, 3",
      take_template, s);
  if (!st)
    st = wr_db_each(
        db,
        "SELECT DISTINCT t.stack, u.stack FROM block_row b"
        " CROSS JOIN event_row e ON e.id = b.event CROSS JOIN template t ON t.id = e.template"
        " CROSS JOIN event_row f ON f.id = b.event + b.free_after"
        " CROSS JOIN template u ON u.id = f.template"
        " WHERE b.how = 1 AND t.stack IS NOT NULL AND u.stack IS NOT NULL",
        take_pair, s);
  if (!st)
    st =
        wr_db_each(db, "SELECT name FROM name WHERE kind = 'device' ORDER BY handle", take_card, s);
  if (!st) st = wr_symbols_open(&symbols, db);
  for (unsigned i = 0; !st && i < s->count; i++)
    st = name_spot(&s->spot[i], db, symbols);
  if (symbols) wr_symbols_close(symbols);
  return !trace_fails(st);
}

void spots_free(spots *s)
{
  for (unsigned i = 0; i < s->count; i++) {
    free(s->spot[i].api);
    free(s->spot[i].function);
    free(s->spot[i].file);
    free(s->spot[i].module);
  }
  free(s->spot);
  free(s->pair);
  free(s->card);
  *s = (spots){0};
}

/* ---- measuring a run ------------------------------------------------------------------------- */

typedef struct run_stack {
  int64_t row;
  spot_place at; /* its first frames; 0: one of them has no build-id */
} run_stack;

typedef struct run_view {
  wr_db *db;
  run_stack *stack; /* owned */
  unsigned count, room;
  uint64_t notes; /* of Weir on pools and peers */
} run_view;

static weir_status take_run_frame(void *context, sqlite3_stmt *q)
{
  run_view *v = context;
  int64_t row = sqlite3_column_int64(q, 2);
  if (!v->count || v->stack[v->count - 1].row != row) {
    v->stack = cmd_grow(v->stack, &v->room, v->count, sizeof *v->stack);
    v->stack[v->count++] = (run_stack){.row = row};
  }
  spot_place *p = &v->stack[v->count - 1].at;
  if (p->frames == (unsigned)sqlite3_column_int(q, 3) && read_run_frame(&p->frame[p->frames], q))
    p->frames++;
  return WEIR_OK;
}

static bool begins_with(const spot_place *stack, const spot_place *place)
{
  return place->frames && stack->frames >= place->frames &&
         rule_frames_same(stack->frame, place->frame, place->frames);
}

/* Writes ", 3, 7" of the stacks that the places are the beginning of, from the second byte on. New.
 */
static char *list_stacks(const run_view *v, const spot_place *places, unsigned count)
{
  char *list = cmd_format("NULL");
  for (unsigned i = 0; i < v->count; i++)
    for (unsigned k = 0; k < count; k++) {
      if (!begins_with(&v->stack[i].at, &places[k])) continue;
      char *longer = cmd_format("%s, %lld", list, (long long)v->stack[i].row);
      free(list);
      list = longer;
      break;
    }
  return list;
}

static int by_time(const void *left, const void *right)
{
  uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
  return (a > b) - (a < b);
}

/* From the first start to the last, had all parts been as quick as a quarter of them is. Others on
 * the machine stretch a run by bursts: three parts of four may be hit, and it stays. */
static uint64_t steps_of(const uint64_t *starts, unsigned count)
{
  uint64_t part[PARTS];
  if (count < LEAST_CALLS) return 0;
  size_t laps = count - 1, parts = laps / PART_CALLS < PARTS ? laps / PART_CALLS : PARTS;
  for (size_t i = 0; i < parts; i++)
    part[i] = starts[(i + 1) * laps / parts] - starts[i * laps / parts];
  qsort(part, parts, sizeof *part, by_time);
  return part[parts / 4] * parts;
}

typedef struct start_list {
  uint64_t *at; /* owned */
  unsigned count, room;
  uint64_t last_ns, calls_ns; /* of the last call; of those before it */
} start_list;

static weir_status take_start(void *context, sqlite3_stmt *q)
{
  start_list *l = context;
  l->at = cmd_grow(l->at, &l->room, l->count, sizeof *l->at);
  l->at[l->count++] = (uint64_t)sqlite3_column_int64(q, 0);
  l->calls_ns += l->last_ns;
  l->last_ns = (uint64_t)sqlite3_column_int64(q, 1);
  return WEIR_OK;
}

/* The range (NVTX) that a step is: what the calls are in, as a part of the program has it. */
typedef struct step_range {
  int64_t thread, name; /* name 0: there is none */
  char *text;           /* owned */
} step_range;

static weir_status take_range(void *context, sqlite3_stmt *q)
{
  step_range *r = context;
  const char *text = (const char *)sqlite3_column_text(q, 2);
  r->thread = sqlite3_column_int64(q, 0);
  r->name = sqlite3_column_int64(q, 1);
  free(r->text);
  r->text = text ? wr_text(text, strlen(text), true) : NULL;
  return WEIR_OK;
}

/* Cut where a character begins. */
static void keep_text(char to[SPOT_RANGE_BYTES], const char *text)
{
  size_t n = text ? strlen(text) : 0;
  if (n >= SPOT_RANGE_BYTES)
    for (n = SPOT_RANGE_BYTES - 1; n && ((unsigned char)text[n] & 0xc0) == 0x80;)
      n--;
  if (n) memcpy(to, text, n);
  to[n] = '\0';
}

static weir_status take_sums(void *context, sqlite3_stmt *q)
{
  spot_figures *f = context;
  f->calls = (uint64_t)sqlite3_column_int64(q, 0);
  f->ns = (uint64_t)sqlite3_column_int64(q, 1);
  f->applied = (uint64_t)sqlite3_column_int64(q, 2);
  return WEIR_OK;
}

#define CALLS_OF                                                                                   \
  " FROM event_row e CROSS JOIN template t ON t.id = e.template WHERE t.stack IN (%s)"

#define MOST_CALLS                                                                                 \
  "WITH RECURSIVE most AS (SELECT t.stack, t.thread" CALLS_OF                                      \
  " GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2 LIMIT 1)"

/* Of the ranges of the thread with the most calls whose name has nearly all of its calls within, and comes often enough, the
 * name that comes least often: the outermost step. */
#define RANGE_OF                                                                                   \
  MOST_CALLS                                                                                       \
  ", own AS (SELECT r.range, count(*) AS calls FROM event_row e CROSS JOIN template t"             \
  " ON t.id = e.template LEFT JOIN event_range r ON r.event = e.id"                                \
  " WHERE t.stack IN (%s) AND t.thread = (SELECT thread FROM most) GROUP BY 1),"                   \
  " chain(range, calls) AS (SELECT range, calls FROM own WHERE range IS NOT NULL UNION ALL"        \
  " SELECT p.parent, c.calls FROM chain c CROSS JOIN range_row p ON p.id = c.range"                \
  " WHERE p.parent IS NOT NULL),"                                                                  \
  " named AS (SELECT r.name FROM chain c CROSS JOIN range_row r ON r.id = c.range GROUP BY 1"      \
  " HAVING sum(c.calls) * 10 >= (SELECT sum(calls) * 9 FROM own))"                                 \
  " SELECT r.thread, r.name, n.text FROM range_row r CROSS JOIN range_name n ON n.id = r.name"     \
  " WHERE r.kind = 1 AND r.thread = (SELECT thread FROM most) AND r.name IN named"                 \
  " GROUP BY r.name HAVING count(*) >= %d ORDER BY count(*), r.name LIMIT 1"

static weir_status find_range(step_range *r, const run_view *v, const char *list)
{
  int64_t any = 0;
  weir_status st = wr_db_number(v->db, "SELECT EXISTS(SELECT 1 FROM range_row)", &any);
  if (st || !any) return st;
  char *query = cmd_format(RANGE_OF, list, list, LEAST_CALLS);
  st = wr_db_each(v->db, query, take_range, r);
  free(query);
  return st;
}

/* The starts of a thread's ranges of one name, and what the calls between the first and the last of them took. */
static weir_status start_of_ranges(start_list *starts, const run_view *v, const step_range *r,
                                   const char *list)
{
  int64_t ns = 0;
  char *times = cmd_format(
      "SELECT start, 0 FROM range_row WHERE kind = 1 AND thread = %lld AND name = %lld ORDER BY 1",
      (long long)r->thread, (long long)r->name);
  weir_status st = wr_db_each(v->db, times, take_start, starts);
  free(times);
  if (st || !starts->count) return st;
  char *within = cmd_format("SELECT ifnull(sum(e.duration), 0)" CALLS_OF
                            " AND t.thread = %lld AND e.start >= %llu AND e.start < %llu",
                            list, (long long)r->thread, (unsigned long long)starts->at[0],
                            (unsigned long long)starts->at[starts->count - 1]);
  st = wr_db_number(v->db, within, &ns);
  starts->calls_ns = (uint64_t)ns;
  free(within);
  return st;
}

/* The starts of the calls of the stack and thread with the most. */
static weir_status start_of_calls(start_list *starts, const run_view *v, const char *list)
{
  char *times = cmd_format(
      MOST_CALLS " SELECT e.start, e.duration FROM most o CROSS JOIN template t ON t.stack ="
                 " o.stack AND t.thread = o.thread CROSS JOIN event_row e ON e.template = t.id"
                 " ORDER BY e.start",
      list);
  weir_status st = wr_db_each(v->db, times, take_start, starts);
  free(times);
  return st;
}

/* The steps are ranges of the program's, where it has such; else they go from call to call. */
static weir_status measure_set(spot_figures *f, const run_view *v, const spot_place *places,
                               unsigned count)
{
  start_list starts = {0};
  step_range range = {0};
  char *list = list_stacks(v, places, count);
  char *sums = cmd_format("SELECT count(*), ifnull(sum(e.duration), 0),"
                          " ifnull(sum(t.flags & %d <> 0), 0)" CALLS_OF,
                          DONE_FLAGS, list);
  weir_status st = wr_db_each(v->db, sums, take_sums, f);
  if (!st && f->calls) st = find_range(&range, v, list);
  if (!st)
    st = range.name ? start_of_ranges(&starts, v, &range, list) : start_of_calls(&starts, v, list);
  f->applied += v->notes;
  f->steps_ns = steps_of(starts.at, starts.count);
  f->least_ns = starts.calls_ns;
  keep_text(f->range, range.text);
  free(range.text);
  free(starts.at), free(sums), free(list);
  return st;
}

static weir_status load_view(run_view *v)
{
  int64_t notes = 0;
  weir_status st =
      wr_db_each(v->db,
                 "SELECT lower(m.build_id), f.address - m.base, s.stack, s.depth FROM stack_frame s"
                 " CROSS JOIN frame f ON f.id = s.frame LEFT JOIN module m ON m.id = f.module"
                 " WHERE s.depth < 8 ORDER BY s.stack, s.depth",
                 take_run_frame, v);
  if (!st)
    st = wr_db_number(v->db, "SELECT count(*) FROM note WHERE text LIKE '" REROUTE_NOTE "%'",
                      &notes);
  v->notes = (uint64_t)notes;
  return st;
}

/* From the run's start to the end of its last process. */
static weir_status measure_run(uint64_t *ns, const wr_db *db)
{
  int64_t n = 0;
  weir_status st = wr_db_number(db,
                                "SELECT max((SELECT value FROM meta WHERE key = 'duration_ns'),"
                                " (SELECT ifnull(max(\"end\"), 0) FROM process))",
                                &n);
  *ns = (uint64_t)n;
  return st;
}

bool spots_measure(spot_figures *out, uint64_t *run_ns, const char *trace,
                   const spot_place *const *sets, const unsigned *lengths, unsigned count)
{
  wr_input in;
  if (trace_fails(wr_input_open(&in, trace))) return false;
  run_view v = {.db = &in.db};
  weir_status st = load_view(&v);
  if (!st) st = measure_run(run_ns, v.db);
  for (unsigned i = 0; !st && i < count; i++)
    st = measure_set(&out[i], &v, sets[i], lengths[i]);
  bool good = !trace_fails(st);
  free(v.stack);
  wr_input_close(&in);
  return good;
}

/* ---- what was done --------------------------------------------------------------------------- */

static weir_status take_kind(void *context, sqlite3_stmt *q)
{
  int kind = sqlite3_column_int(q, 0);
  if (kind >= 0 && kind < 32) *(unsigned *)context |= 1U << kind;
  return WEIR_OK;
}

bool spots_done(unsigned *kinds, const char *trace, const spot_place *places, unsigned count)
{
  wr_input in;
  if (trace_fails(wr_input_open(&in, trace))) return false;
  run_view v = {.db = &in.db};
  weir_status st = load_view(&v);
  char *list = list_stacks(&v, places, count);
  char *done =
      cmd_format("SELECT DISTINCT t.kind FROM template t WHERE t.stack IN (%s) AND t.flags & %d",
                 list, DONE_FLAGS);
  if (!st) st = wr_db_each(v.db, done, take_kind, kinds);
  free(done), free(list), free(v.stack);
  wr_input_close(&in);
  return !trace_fails(st);
}
