/* graphs.c: see graphs.h.
 *
 * An executable graph is from the capture of its graph that ended last before it was made. That is
 * found in one pass over ends of captures and changes in order of time; handles are used again. */
#include "reports/model/graphs.h"

#include <stdlib.h>
#include "core/base/map.h"
#include "reports/model/sites.h"
#include "reports/symbols/symbolize.h"

enum { CAPTURED = 0, MADE = 1 }; /* MADE and above: graph_fact */

/* One executable graph. */
typedef struct exec_origin {
  int64_t captured, made; /* stacks */
  uint64_t updates;
} exec_origin;

/* What one launch runs, of one content (graph_work). */
typedef struct graph_content {
  uint64_t kernels, copies, copy_bytes, memsets, maybe;
} graph_content;

typedef struct graph_pass {
  wr_graphs *g;
  const wr_db *db;
  wr_symbols *symbols;
  size_t room, place_room;
  hash_map captures;  /* process and graph -> stack of the capture's end */
  hash_map execs;     /* process and handle -> index in origin, plus 1 */
  hash_map changes;   /* row of graph_change that made one -> index in origin, plus 1 */
  hash_map by_places; /* -> index of the sum, plus 1 */
  hash_map by_stack;  /* stack -> its place */
  hash_map by_words;  /* hash of a place's words -> the place */
  hash_map counted;   /* an executable graph in a sum */
  hash_map contents;  /* content -> index, plus 1 */
  graph_content *content;
  size_t content_count, content_room;
  exec_origin *origin;
  size_t origins, origin_room;
} graph_pass;

static int64_t column(sqlite3_stmt *q, int i)
{
  return sqlite3_column_int64(q, i);
}

static uint64_t key_of(int64_t process, int64_t handle)
{
  return hash_mix(hash_mix(1, (uint64_t)process), (uint64_t)handle);
}

static uint64_t found(const hash_map *map, uint64_t key)
{
  const uint64_t *at = hash_map_get(map, key);
  return at ? *at : 0;
}

/* ---- where executable graphs are from -------------------------------------------------------- */

static weir_status take_made(graph_pass *p, sqlite3_stmt *q)
{
  if (!wr_grow(&p->origin, &p->origin_room, p->origins + 1, sizeof(*p->origin)))
    return wr_db_out_of_memory(p->db);
  p->origin[p->origins++] =
      (exec_origin){.captured = (int64_t)found(&p->captures, key_of(column(q, 1), column(q, 3))),
                    .made = column(q, 5)};
  uint64_t *exec = hash_map_place(&p->execs, key_of(column(q, 1), column(q, 2)), NULL);
  if (!exec) return wr_db_out_of_memory(p->db);
  *exec = p->origins;
  uint64_t *change = hash_map_place(&p->changes, key_of(0, column(q, 4)), NULL);
  if (!change) return wr_db_out_of_memory(p->db);
  *change = p->origins;
  return WEIR_OK;
}

/* what, process, exec, graph, change, stack; in order of time */
static weir_status take_change(void *context, sqlite3_stmt *q)
{
  graph_pass *p = context;
  if (column(q, 0) == MADE) return take_made(p, q);
  if (column(q, 0) == CAPTURED) {
    uint64_t *stack = hash_map_place(&p->captures, key_of(column(q, 1), column(q, 3)), NULL);
    if (!stack) return wr_db_out_of_memory(p->db);
    *stack = (uint64_t)column(q, 5);
    return WEIR_OK;
  }
  uint64_t exec = found(&p->execs, key_of(column(q, 1), column(q, 2)));
  if (exec) p->origin[exec - 1].updates++;
  return WEIR_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* A place by its words, which become the pass's. SIZE_MAX: out of memory. */
static size_t intern_place(graph_pass *p, char *words)
{
  uint64_t hash = 7;
  for (const char *c = words; *c; c++)
    hash = hash_mix(hash, (unsigned char)*c);
  uint64_t *known = hash_map_place(&p->by_words, hash, NULL);
  if (known && *known) return free(words), (size_t)*known;
  if (!known || !wr_grow(&p->g->place, &p->place_room, p->g->places + 2, sizeof(char *)))
    return free(words), SIZE_MAX;
  p->g->place[0] = NULL;
  p->g->place[++p->g->places] = words;
  *known = p->g->places;
  return p->g->places;
}

/* The place of a stack. */
static weir_status place_of(graph_pass *p, int64_t stack, size_t *out)
{
  char *words = NULL;
  uint64_t *known = hash_map_place(&p->by_stack, (uint64_t)stack, NULL);
  if (!known) return wr_db_out_of_memory(p->db);
  if (!*known) {
    weir_status s = wr_site_words(p->symbols, stack, &words);
    if (s) return s;
    *known = intern_place(p, words);
  }
  *out = (size_t)*known;
  return *out == SIZE_MAX ? wr_db_out_of_memory(p->db) : WEIR_OK;
}

/* ---- what was launched ----------------------------------------------------------------------- */

/* content, type, bytes, count, conditional */
static weir_status take_content(void *context, sqlite3_stmt *q)
{
  graph_pass *p = context;
  uint64_t *at = hash_map_place(&p->contents, (uint64_t)column(q, 0), NULL);
  uint64_t count = (uint64_t)column(q, 3);
  if (!at) return wr_db_out_of_memory(p->db);
  if (!*at) {
    if (!wr_grow(&p->content, &p->content_room, p->content_count + 1, sizeof(*p->content)))
      return wr_db_out_of_memory(p->db);
    p->content[p->content_count++] = (graph_content){0};
    *at = p->content_count;
  }
  graph_content *c = &p->content[*at - 1];
  int type = sqlite3_column_int(q, 1);
  if (sqlite3_column_int(q, 4))
    c->maybe += count;
  else if (type == WR_NODE_KERNEL)
    c->kernels += count;
  else if (type == WR_NODE_COPY)
    c->copies += count, c->copy_bytes += (uint64_t)column(q, 2) * count;
  else if (type == WR_NODE_MEMSET)
    c->memsets += count;
  return WEIR_OK;
}

static weir_status find_sum(graph_pass *p, const exec_origin *o, int64_t stack, wr_graph_sum **out)
{
  wr_graph_sum want = {0};
  weir_status s = o->captured ? place_of(p, o->captured, &want.captured) : WEIR_OK;
  if (!s) s = place_of(p, o->made, &want.made);
  if (!s) s = place_of(p, stack, &want.launched);
  if (s) return s;
  uint64_t key = hash_mix(hash_mix(hash_mix(1, want.captured), want.made), want.launched);
  uint64_t *known = hash_map_place(&p->by_places, key, NULL);
  if (!known) return wr_db_out_of_memory(p->db);
  if (!*known) {
    if (!wr_grow(&p->g->sum, &p->room, p->g->count + 1, sizeof(wr_graph_sum)))
      return wr_db_out_of_memory(p->db);
    p->g->sum[p->g->count++] = want;
    *known = p->g->count;
  }
  *out = &p->g->sum[*known - 1];
  return WEIR_OK;
}

static void add_launches(wr_graph_sum *sum, const graph_content *c, uint64_t launches)
{
  sum->launches += launches;
  if (!c) sum->unknown += launches;
  if (!c) return;
  sum->kernels += launches * c->kernels;
  sum->copies += launches * c->copies;
  sum->copy_bytes += launches * c->copy_bytes;
  sum->memsets += launches * c->memsets;
  sum->maybe += launches * c->maybe;
}

/* change, content, stack, launches */
static weir_status take_launches(void *context, sqlite3_stmt *q)
{
  graph_pass *p = context;
  const exec_origin unseen = {0};
  wr_graph_sum *sum = NULL;
  bool counted = true;
  uint64_t at = found(&p->changes, key_of(0, column(q, 0)));
  const exec_origin *o = at ? &p->origin[at - 1] : &unseen;
  weir_status s = find_sum(p, o, column(q, 2), &sum);
  if (s) return s;
  uint64_t content = found(&p->contents, (uint64_t)column(q, 1));
  const graph_content none = {0}; /* of no node that is known to run */
  bool known = sqlite3_column_type(q, 1) != SQLITE_NULL;
  add_launches(sum,
               content ? &p->content[content - 1]
               : known ? &none
                       : NULL,
               (uint64_t)column(q, 3));
  if (at && !hash_map_place(&p->counted, key_of((int64_t)at, sum - p->g->sum), &counted))
    return wr_db_out_of_memory(p->db);
  if (at && counted) sum->graphs++, sum->updates += o->updates;
  return WEIR_OK;
}

static int by_launches(const void *a, const void *b)
{
  const wr_graph_sum *x = a, *y = b;
  if (x->launches != y->launches) return x->launches < y->launches ? 1 : -1;
  if (x->launched != y->launched) return x->launched < y->launched ? -1 : 1;
  return x->made < y->made ? -1 : x->made > y->made;
}

#define CHANGES                                                                                    \
  "SELECT what, process, exec, graph, change, stack FROM (SELECT c.time AS time, c.id AS id,"      \
  " c.fact AS what, c.process AS process, c.exec AS exec, c.graph AS graph, c.id AS change,"       \
  " ifnull(t.stack, 0) AS stack FROM main.graph_change c LEFT JOIN main.event_row e"               \
  " ON e.id = c.event LEFT JOIN main.template t ON t.id = e.template WHERE c.fact >= 1"            \
  " UNION ALL SELECT e.start + e.duration, 0, 0, t.process, 0, e.a, 0, ifnull(t.stack, 0)"         \
  " FROM main.event_row e CROSS JOIN main.template t ON t.id = e.template WHERE t.status = 0"      \
  " AND t.api IN (SELECT id FROM main.api WHERE name LIKE 'cu%StreamEndCapture%'))"                \
  " ORDER BY time, id"

#define LAUNCHES                                                                                   \
  "SELECT l.change, l.content, ifnull(t.stack, 0) AS stack, count(*) FROM graph_launch l"          \
  " CROSS JOIN main.event_row e ON e.id = l.event CROSS JOIN main.template t"                      \
  " ON t.id = e.template GROUP BY 1, 2, 3"

static weir_status load_all(graph_pass *p)
{
  weir_status s = wr_db_each(p->db, CHANGES, take_change, p);
  if (!s)
    s = wr_db_each(p->db, "SELECT content, type, bytes, count, conditional FROM graph_work",
                   take_content, p);
  if (!s) s = wr_symbols_open(&p->symbols, p->db);
  if (!s) s = wr_db_each(p->db, LAUNCHES, take_launches, p);
  wr_symbols_close(p->symbols);
  if (!s && p->g->count) qsort(p->g->sum, p->g->count, sizeof(*p->g->sum), by_launches);
  return s;
}

static void free_pass(graph_pass *p)
{
  hash_map *maps[] = {&p->captures, &p->execs,    &p->changes, &p->by_places,
                      &p->by_stack, &p->by_words, &p->counted, &p->contents};
  for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
    hash_map_free(maps[i]);
  free(p->origin);
  free(p->content);
}

weir_status wr_graphs_load(wr_graphs *g, const wr_db *db)
{
  static const char *const tables[] = {"graph_change", "graph_node", "graph_work", "graph_launch"};
  graph_pass p = {.g = g, .db = db};
  int64_t any = 0;
  *g = (wr_graphs){0};
  for (int i = 0; i < 4; i++) /* else of an older Weir */
    if (db->schema < 2 || !wr_db_has_table(db, tables[i])) return WEIR_OK;
  weir_status s = wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM graph_launch)", &any);
  if (!s && any) s = load_all(&p);
  free_pass(&p);
  return s;
}

void wr_graphs_free(wr_graphs *g)
{
  for (size_t i = 0; g->place && i <= g->places; i++)
    free(g->place[i]);
  free(g->place);
  free(g->sum);
  *g = (wr_graphs){0};
}

/* ---- what stays on the devices --------------------------------------------------------------- */

static bool of_device(int mem)
{
  return mem == WEIR_MEM_DEVICE || mem == WEIR_MEM_ARRAY;
}

/* content, type, mem, src_mem */
static weir_status take_outside(void *context, sqlite3_stmt *q)
{
  int type = sqlite3_column_int(q, 1);
  bool to = of_device(sqlite3_column_int(q, 2)), from = of_device(sqlite3_column_int(q, 3));
  bool set = type == WR_NODE_MEMSET && to, copy = type == WR_NODE_COPY && to && from;
  bool nothing = type >= WR_NODE_EMPTY && type <= WR_NODE_EVENT_RECORD;
  bool memory = type == WR_NODE_ALLOC || type == WR_NODE_FREE;
  uint64_t *outside = hash_map_place(context, (uint64_t)column(q, 0), NULL);
  if (!outside) return weir_fail(WEIR_ENOMEM, "reading graphs: out of host memory");
  *outside |= !(type == WR_NODE_KERNEL || set || copy || nothing || memory);
  return WEIR_OK;
}

typedef struct inside_pass {
  hash_map *launches;
  hash_map contents; /* content -> 1 if some of it is outside */
} inside_pass;

/* event, content */
static weir_status take_launch_inside(void *context, sqlite3_stmt *q)
{
  inside_pass *p = context;
  const uint64_t *outside = hash_map_get(&p->contents, (uint64_t)column(q, 1));
  if (!outside || *outside) return WEIR_OK;
  bool full = hash_map_put(p->launches, (uint64_t)column(q, 0), 1);
  return full ? weir_fail(WEIR_ENOMEM, "reading graphs: out of host memory") : WEIR_OK;
}

weir_status wr_graphs_inside(const wr_db *db, hash_map *launches)
{
  inside_pass p = {.launches = launches};
  if (!wr_db_has_table(db, "graph_launch")) return WEIR_OK;
  weir_status st = wr_db_each(db, "SELECT content, type, mem, src_mem FROM main.graph_work",
                              take_outside, &p.contents);
  if (!st && p.contents.count)
    st = wr_db_each(db, "SELECT event, content FROM main.graph_launch WHERE content IS NOT NULL",
                    take_launch_inside, &p);
  hash_map_free(&p.contents);
  return st;
}
