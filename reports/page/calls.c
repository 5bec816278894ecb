/* calls.c: see calls.h. Events have most in common with others of their template: what that means
 * is worked out once for each. */
#include "reports/page/calls.h"
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/base/demangle.h"
#include "reports/base/util.h"
#include "reports/import/lifetime.h"
#include "reports/model/model.h"

/* What is done with an event of a kind, and what was: of calls that were run, all but what their time may
 * be of. What every event needs comes first, so that it is in one or two lines of a cache. */
typedef struct page_kind {
  int64_t context;
  uint32_t of_thread; /* wr_firsts_thread(), 0: not known yet */
  uint32_t own, wait; /* lines of the cube: its own, and of what it may have waited */
  uint32_t site;
  uint16_t lane;
  uint8_t of;
  bool listed;             /* it is a call */
  bool done, first, sized; /* done: returned success, and was run, not captured */
  bool waits, implicit, copy;
  bool named; /* it may have made a context by its name */
  bool launch, registers;
  bool begins;               /* a block */
  uint64_t count, bytes, ns; /* of calls that were run */
  int64_t earliest;          /* of copies: row of one of them */
  int64_t process, thread;
  uint32_t api, stack, route; /* route: index plus 1, 0 none */
  int device;
  uint8_t direction;
  bool alloc; /* of device memory */
  bool good;  /* returned success */
} page_kind;

typedef struct page_undecided {
  size_t kind;
  int64_t start, ns;
} page_undecided;

enum { EVENTS_A_LOOK = 1 << 16, EVENTS_AHEAD = 6 };

static uint32_t direction_of(int64_t copy)
{
  switch (copy) {
  case WEIR_COPY_HTOD:
    return PAGE_H2D;
  case WEIR_COPY_DTOH:
    return PAGE_D2H;
  case WEIR_COPY_DTOD:
    return PAGE_D2D;
  case WEIR_COPY_PTOP:
    return PAGE_P2P;
  case WEIR_COPY_HTOH:
    return PAGE_H2H;
  default:
    return PAGE_OTHER_COPY;
  }
}

static int ordinal_of(sqlite3_stmt *q, int column)
{
  int64_t d = sqlite3_column_int64(q, column);
  return sqlite3_column_type(q, column) == SQLITE_NULL || d < 0 || d >= WR_HOST ? WR_HOST : (int)d;
}

page_flame *page_flame_of(page_calls *c, uint32_t stack)
{
  if (stack < c->flames) return &c->flame[stack];
  if (!wr_grow(&c->flame, &c->flame_capacity, (size_t)stack + 1, sizeof(*c->flame))) return NULL;
  for (; c->flames <= stack; c->flames++)
    c->flame[c->flames] = (page_flame){0};
  return &c->flame[stack];
}

/* ---- routes ---------------------------------------------------------------------------------- */

static weir_status route_of(page_calls *c, page_route r, uint32_t *out)
{
  if (r.direction == PAGE_H2D || r.direction == PAGE_H2H) r.src = WR_HOST;
  if (r.direction == PAGE_D2H || r.direction == PAGE_H2H) r.dst = WR_HOST;
  if (r.direction == PAGE_D2D && r.src == WR_HOST) r.src = r.dst;
  uint64_t key = (uint64_t)r.direction << 32 | (uint64_t)r.src << 20 | (uint64_t)r.dst << 8 |
                 (uint64_t)r.src_mem << 4 | (uint64_t)r.mem;
  bool added;
  uint64_t *at = hash_map_place(&c->by_route, key, &added);
  if (!at || !wr_grow(&c->route, &c->route_capacity, c->routes + 1, sizeof(r)))
    return wr_db_out_of_memory(c->db);
  if (added) {
    c->route[c->routes++] = r;
    *at = c->routes;
  }
  *out = (uint32_t)*at;
  return WEIR_OK;
}

/* `event`: a row, which names the route's first where rows come in any order. */
static weir_status add_copies(page_calls *c, uint32_t route, uint32_t stack, int64_t event,
                              uint64_t count, uint64_t bytes)
{
  page_flame *f = page_flame_of(c, stack);
  if (!f) return wr_db_out_of_memory(c->db);
  page_route *r = &c->route[route - 1];
  f->transfer_bytes += bytes;
  if (!r->number || event < r->first) r->first = event;
  if (!r->number) r->number = ++c->numbered;
  r->count += count;
  r->bytes += bytes;
  return WEIR_OK;
}

/* ---- templates ------------------------------------------------------------------------------- */

static bool is_graph_launch(const page_calls *c, uint32_t api)
{
  for (int i = 0; i < 4; i++)
    if (api && api == c->graph_launch[i]) return true;
  return false;
}

static uint8_t memory_direction(int64_t mem)
{
  if (mem == WEIR_MEM_IMPORTED) return PAGE_IMPORTED;
  return wr_mem_device_side((int)mem) ? PAGE_NO_DIRECTION : PAGE_HOST_MEMORY;
}

/* What a call of this kind is; `copy`, `mem`: as in a template. */
static void classify(const page_calls *c, page_kind *k, int64_t kind, int64_t copy, int64_t mem)
{
  k->of = PAGE_OTHER;
  switch (kind) {
  case WEIR_EV_ALLOC:
    k->of = PAGE_ALLOCATION, k->direction = memory_direction(mem);
    k->alloc = k->direction == PAGE_NO_DIRECTION;
    break;
  case WEIR_EV_FREE:
    k->of = PAGE_FREE, k->direction = memory_direction(mem);
    break;
  case WEIR_EV_COPY:
    k->of = PAGE_TRANSFER, k->direction = (uint8_t)direction_of(copy), k->copy = true;
    break;
  case WEIR_EV_MEMSET:
    k->of = PAGE_MEMSET;
    break;
  case WEIR_EV_LAUNCH:
    k->of = PAGE_LAUNCH, k->launch = true;
    break;
  case WEIR_EV_HOSTREG:
    k->of = PAGE_ALLOCATION, k->direction = PAGE_REGISTERED, k->registers = true;
    break;
  case WEIR_EV_SYNC:
    k->waits = copy == WEIR_SYNC_EVENT || copy == WEIR_SYNC_STREAM || copy == WEIR_SYNC_CONTEXT;
    k->of = k->waits ? PAGE_WAIT : PAGE_OTHER;
    break;
  default:
    if (is_graph_launch(c, k->api)) k->of = PAGE_GRAPH;
    break;
  }
  k->sized = kind == WEIR_EV_ALLOC || kind == WEIR_EV_COPY || kind == WEIR_EV_MEMSET ||
             kind == WEIR_EV_HOSTREG;
  k->begins = kind == WEIR_EV_ALLOC || kind == WEIR_EV_HOSTREG;
}

static weir_status make_kind(page_calls *c, const wr_template *t, page_kind *k)
{
  *k = (page_kind){.process = t->process,
                   .thread = t->thread,
                   .context = t->context,
                   .api = (uint32_t)t->api,
                   .own = PAGE_NO_LINE,
                   .wait = PAGE_NO_LINE,
                   .earliest = INT64_MAX,
                   .device = (int)t->device,
                   .good = t->succeeded,
                   .done = t->done,
                   .first = t->first,
                   .listed = t->kind != WEIR_EV_CACHE};
  if (!k->listed) return WEIR_OK;
  k->named = wr_firsts_named(&c->firsts, k->api);
  classify(c, k, t->kind, t->copy, t->mem);
  k->implicit = t->implicit;
  weir_status s = page_site_of(c->places, t->stack, k->api, &k->site);
  if (s) return s;
  k->stack = c->places->site[k->site].stack;
  const page_route route = {.direction = k->direction,
                            .src = (int)t->src_device,
                            .dst = k->device,
                            .src_mem = (int)(t->src_mem & 15),
                            .mem = (int)(t->mem & 15)};
  if (k->copy) s = route_of(c, route, &k->route);
  int lane = page_lane_of(&c->lanes, &(page_lane){.process = k->process, .thread = k->thread});
  k->lane = (uint16_t)lane;
  return s ? s : lane < 0 ? wr_db_out_of_memory(c->db) : WEIR_OK;
}

static weir_status make_kinds(page_calls *c)
{
  weir_status s = WEIR_OK;
  c->kind = calloc(c->calls->count + 1, sizeof(*c->kind));
  if (!c->kind) return wr_db_out_of_memory(c->db);
  for (; !s && c->kinds < c->calls->count; c->kinds++)
    s = make_kind(c, &c->calls->templates[c->kinds], &c->kind[c->kinds]);
  return s;
}

/* What events of a row of `template` are; NULL: there is none. */
static const page_kind *page_kind_of(const page_calls *c, int64_t template)
{
  size_t at = wr_events_template(c->calls, template);
  return at < c->kinds ? &c->kind[at] : NULL;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* The line of a kind's own class. While events pass a route is known by its index: it gets its number after them. */
static uint32_t own_line(page_calls *c, const page_kind *k)
{
  uint32_t route = k->route && c->all_passed ? c->route[k->route - 1].number : k->route;
  return page_line_of(
      &c->cube,
      (page_key){.site = k->site, .of = k->of, .direction = k->direction, .route = route});
}

static weir_status add_to_cell(page_calls *c, uint32_t line, int64_t start, page_cell by)
{
  page_cell *cell = line == PAGE_NO_LINE ? NULL : page_cell_of(&c->cube, start, line);
  if (!cell) return wr_db_out_of_memory(c->db);
  cell->count += by.count, cell->bytes += by.bytes;
  cell->host_ns += by.host_ns, cell->device_ns += by.device_ns;
  return WEIR_OK;
}

/* In the class of its kind. */
static weir_status add_own(page_calls *c, page_kind *k, int64_t start, page_cell by)
{
  if (k->own == PAGE_NO_LINE) k->own = own_line(c, k);
  return add_to_cell(c, k->own, start, by);
}

static weir_status add_wait(page_calls *c, page_kind *k, int64_t start, int64_t ns)
{
  if (k->wait == PAGE_NO_LINE)
    k->wait = page_line_of(&c->cube, (page_key){.site = k->site, .of = PAGE_IMPLICIT});
  return add_to_cell(c, k->wait, start, (page_cell){.count = 1, .host_ns = (uint64_t)ns});
}

/* The time of a call that brought up a context: it is no time of what it did. */
static weir_status add_init(page_calls *c, const page_kind *k, int64_t start, int64_t ns)
{
  if (!k->first) return WEIR_OK;
  uint32_t line = page_line_of(&c->cube, (page_key){.site = k->site, .of = PAGE_INIT});
  return add_to_cell(c, line, start, (page_cell){.count = 1, .host_ns = (uint64_t)ns});
}

/* The time of another that was run. */
static weir_status add_time(page_calls *c, page_kind *k, int64_t start, int64_t ns)
{
  k->ns += (uint64_t)ns;
  if (k->waits) return add_own(c, k, start, (page_cell){.count = 1, .host_ns = (uint64_t)ns});
  weir_status s = k->implicit ? add_wait(c, k, start, ns) : WEIR_OK;
  if (s || !k->first) return s;
  return add_own(c, k, start, (page_cell){.host_ns = (uint64_t)ns});
}

/* What one that was run did, however long that took. */
static weir_status add_count(page_calls *c, page_kind *k, const wr_event *e)
{
  k->count++, k->bytes += e->bytes;
  if (k->copy && e->id < k->earliest) k->earliest = e->id;
  if (k->waits || (k->registers && !e->bytes)) return WEIR_OK;
  return add_own(c, k, e->start, (page_cell){.count = 1, .bytes = k->sized ? e->bytes : 0});
}

/* Both at once. */
static weir_status add_call(page_calls *c, page_kind *k, const wr_event *e)
{
  if (k->registers && !e->bytes) {
    weir_status s = add_count(c, k, e);
    return s ? s : add_time(c, k, e->start, e->ns);
  }
  k->count++, k->bytes += e->bytes, k->ns += (uint64_t)e->ns;
  if (k->copy && e->id < k->earliest) k->earliest = e->id;
  if (k->own == PAGE_NO_LINE && (k->own = own_line(c, k)) == PAGE_NO_LINE)
    return wr_db_out_of_memory(c->db);
  page_cell *cell = page_cell_of(&c->cube, e->start, k->own);
  if (!cell) return wr_db_out_of_memory(c->db);
  cell->count++;
  if (k->sized) cell->bytes += e->bytes;
  if (k->first || k->waits) cell->host_ns += (uint64_t)e->ns;
  return k->implicit ? add_wait(c, k, e->start, e->ns) : WEIR_OK;
}

/* What the calls of a kind come to for their stack and, of copies, their route. */
static weir_status fold_kind(page_calls *c, const page_kind *k)
{
  if (!k->count) return WEIR_OK;
  weir_status s =
      k->copy ? add_copies(c, k->route, k->stack, k->earliest, k->count, k->bytes) : WEIR_OK;
  page_flame *f = page_flame_of(c, k->stack);
  if (s || !f) return s ? s : wr_db_out_of_memory(c->db);
  if (k->alloc) f->alloc_count += k->count, f->alloc_bytes += k->bytes;
  return WEIR_OK;
}

/* The same of their time, once that is known. */
static weir_status fold_time(page_calls *c, const page_kind *k)
{
  page_flame *f = k->ns ? page_flame_of(c, k->stack) : NULL;
  if (!f) return k->ns ? wr_db_out_of_memory(c->db) : WEIR_OK;
  if (k->waits || k->implicit) f->wait_ns += k->ns;
  if (k->copy && k->first) f->transfer_ns += k->ns, c->route[k->route - 1].host_ns += k->ns;
  return WEIR_OK;
}

static weir_status keep_undecided(page_calls *c, size_t kind, int64_t start, int64_t ns)
{
  if (!wr_grow(&c->undecided, &c->undecided_capacity, c->undecided_count + 1,
               sizeof(page_undecided)))
    return wr_db_out_of_memory(c->db);
  c->undecided[c->undecided_count++] = (page_undecided){kind, start, ns};
  return WEIR_OK;
}

static wr_first_call first_call_of_page(const page_kind *k, int64_t start, int64_t ns)
{
  return (wr_first_call){.process = k->process,
                         .thread = k->thread,
                         .context = k->context,
                         .start = start,
                         .end = (int64_t)((uint64_t)start + (uint64_t)ns),
                         .api = k->api,
                         .device = k->device,
                         .worked = k->good};
}

/* *maybe: it may have made a context. False: out of memory. */
static bool take_first(page_calls *c, page_kind *k, const wr_event *e, bool *maybe)
{
  int64_t end = (int64_t)((uint64_t)e->start + (uint64_t)e->ns);
  if (!k->named && wr_firsts_go_on(&c->firsts, k->of_thread, k->context, e->start, end))
    return true;
  wr_first_call call = first_call_of_page(k, e->start, e->ns);
  bool taken = wr_firsts_take(&c->firsts, &call, maybe);
  k->of_thread = taken ? wr_firsts_thread(&c->firsts) : 0;
  return taken;
}

static weir_status add_event(page_calls *c, page_kind *k, const wr_event *e)
{
  bool maybe = false;
  if (!take_first(c, k, e, &maybe)) return wr_db_out_of_memory(c->db);
  if (!maybe) return k->done ? add_call(c, k, e) : WEIR_OK;
  weir_status s = k->done ? add_count(c, k, e) : WEIR_OK;
  return s ? s : keep_undecided(c, e->at, e->start, e->ns);
}

static inline weir_status take_event(page_calls *c, const wr_event *e)
{
  page_kind *k = &c->kind[e->at];
  if (!k->listed) return WEIR_OK;
  weir_status s = k->begins ? wr_blocks_hear(c->blocks, e) : WEIR_OK;
  if (!s) s = add_event(c, k, e);
  if (s || !k->first) return s;
  page_op *op = page_op_next(&c->lanes);
  if (!op) return wr_db_out_of_memory(c->db);
  op->start = e->start, op->ns = e->ns, op->event = e->id;
  op->bytes = k->launch ? e->a : k->sized ? e->bytes : 0;
  op->site = k->site, op->lane = k->lane, op->of = k->of;
  return page_op_added(&c->lanes) ? WEIR_OK : wr_db_out_of_memory(c->db);
}

/* Kinds are here and there. */
static inline void fetch_kind(const page_calls *c, const wr_event *e)
{
  __builtin_prefetch(&c->kind[e->at]);
  __builtin_prefetch(&c->kind[e->at].earliest);
}

static weir_status take_events(void *context, const wr_event events[], size_t count)
{
  page_calls *c = context;
  weir_status s = WEIR_OK;
  uint64_t looks = c->events / EVENTS_A_LOOK;
  c->events += count;
  if (c->progress && c->events / EVENTS_A_LOOK != looks) c->progress(c->context, c->events);
  for (size_t i = 0; !s && i < count; i++) {
    if (i + EVENTS_AHEAD < count) fetch_kind(c, &events[i + EVENTS_AHEAD]);
    s = take_event(c, &events[i]);
  }
  return s;
}

static weir_status decide(page_calls *c)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < c->undecided_count; i++) {
    const page_undecided *u = &c->undecided[i];
    page_kind *k = &c->kind[u->kind];
    wr_first_call call = first_call_of_page(k, u->start, u->ns);
    if (wr_firsts_made(&c->firsts, &call))
      s = add_init(c, k, u->start, u->ns);
    else if (k->done)
      s = add_time(c, k, u->start, u->ns);
  }
  return s;
}

/* ---- what launches of graphs ran ------------------------------------------------------------- */

/* template, start, launches, type, bytes, copy, mem, src_mem, device, src_device, count */
static weir_status take_graph(void *context, sqlite3_stmt *q)
{
  page_calls *c = context;
  const page_kind *of = page_kind_of(c, sqlite3_column_int64(q, 0));
  uint64_t times = (uint64_t)sqlite3_column_int64(q, 2) * (uint64_t)sqlite3_column_int64(q, 10);
  uint64_t bytes = (uint64_t)sqlite3_column_int64(q, 4) * times;
  if (!of) return WEIR_OK;
  page_kind k = {.site = of->site, .stack = of->stack, .own = PAGE_NO_LINE};
  weir_status s = WEIR_OK;
  switch (sqlite3_column_int(q, 3)) {
  case WR_NODE_KERNEL:
    k.of = PAGE_LAUNCH, bytes = 0;
    break;
  case WR_NODE_MEMSET:
    k.of = PAGE_MEMSET;
    break;
  case WR_NODE_COPY:
    k.of = PAGE_TRANSFER, k.direction = (uint8_t)direction_of(sqlite3_column_int64(q, 5));
    s = route_of(c,
                 (page_route){.direction = k.direction,
                              .mem = sqlite3_column_int(q, 6) & 15,
                              .src_mem = sqlite3_column_int(q, 7) & 15,
                              .dst = ordinal_of(q, 8),
                              .src = ordinal_of(q, 9)},
                 &k.route);
    if (!s) s = add_copies(c, k.route, k.stack, INT64_MAX, times, bytes);
    break;
  default:
    return WEIR_OK;
  }
  const page_cell did = {.count = times, .bytes = bytes};
  return s ? s : add_own(c, &k, sqlite3_column_int64(q, 1), did);
}

static uint64_t node_key(int64_t content, int64_t copy)
{
  return hash_mix(hash_mix(13, (uint64_t)content), (uint64_t)copy);
}

/* content, copy, mem, src_mem, device, src_device */
static weir_status take_copy_node(void *context, sqlite3_stmt *q)
{
  page_calls *c = context;
  uint32_t route;
  const page_route r = {.direction = direction_of(sqlite3_column_int(q, 1)),
                        .mem = sqlite3_column_int(q, 2) & 15,
                        .src_mem = sqlite3_column_int(q, 3) & 15,
                        .dst = ordinal_of(q, 4),
                        .src = ordinal_of(q, 5)};
  bool added;
  weir_status s = route_of(c, r, &route);
  if (s) return s;
  uint64_t key = node_key(sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1));
  uint64_t *known = hash_map_place(&c->by_node, key, &added);
  if (!known) return wr_db_out_of_memory(c->db);
  *known = added || *known == route ? route : 0;
  return WEIR_OK;
}

static bool has_graphs(const page_calls *c)
{
  static const char *const tables[] = {"graph_change", "graph_node", "graph_work", "graph_launch"};
  for (int i = 0; i < 4; i++) /* else of an older Weir */
    if (!wr_db_has_table(c->db, tables[i])) return false;
  return true;
}

static weir_status load_graphs(page_calls *c)
{
  if (!has_graphs(c)) return WEIR_OK;
  char *sql =
      wr_format("SELECT g.template, g.bin * %lld, g.launches, w.type, w.bytes, w.copy, w.mem,"
                " w.src_mem, w.device, w.src_device, w.count FROM (SELECT e.template,"
                " max(e.start, 0) / %lld AS bin, l.content, count(*) AS launches"
                " FROM graph_launch l CROSS JOIN event_row e ON e.id = l.event"
                " WHERE l.content IS NOT NULL GROUP BY 1, 2, 3) g"
                " CROSS JOIN graph_work w ON w.content = g.content"
                " WHERE NOT ifnull(w.conditional, 0)",
                (long long)c->cube.bins.width_ns, (long long)c->cube.bins.width_ns);
  weir_status s = sql ? wr_db_each(c->db, sql, take_graph, c) : wr_db_out_of_memory(c->db);
  free(sql);
  if (s) return s;
  return wr_db_each(c->db,
                    "SELECT content, copy, mem, src_mem, device, src_device FROM graph_work"
                    " WHERE type = 1",
                    take_copy_node, c);
}

/* ---- what devices did ------------------------------------------------------------------------ */

#define GRAPH_CONTENT                                                                              \
  "CASE WHEN d.graph_node IS NOT NULL THEN (SELECT l.content FROM graph_launch l"                  \
  " WHERE l.event = d.event) END"

#define DEVICE_SQL(content)                                                                        \
  "SELECT d.id, d.process, d.kind, d.copy, d.device, d.context, d.stream, d.start, d.\"end\","     \
  " d.bytes, d.event, e.template, e.start, e.a, " content                                          \
  " FROM (SELECT * FROM main.device_work WHERE kind"                                               \
  " BETWEEN 1 AND 4 AND " WR_DEVICE_TIME ") d LEFT JOIN main.event_row e ON e.id = d.event"

/* The kind of an operation of a device's whose call is `of`, or not known. */
static page_kind kind_of_work(const page_kind *of, int work, int64_t copy)
{
  static const uint8_t classes[] = {0, PAGE_TRANSFER, PAGE_MEMSET, PAGE_LAUNCH, PAGE_GRAPH};
  page_kind k = {.of = classes[work], .own = PAGE_NO_LINE};
  if (of) k.site = of->site, k.stack = of->stack;
  if (of && of->of == k.of)
    k.direction = of->direction, k.route = of->route;
  else if (work == 1)
    k.direction = (uint8_t)direction_of(copy);
  return k;
}

static weir_status add_device_time(page_calls *c, page_kind *k, int64_t start, int64_t ns)
{
  page_flame *f = page_flame_of(c, k->stack);
  if (!f) return wr_db_out_of_memory(c->db);
  if (k->of == PAGE_TRANSFER) f->transfer_device_ns += (uint64_t)ns;
  if (k->route) c->route[k->route - 1].device_ns += (uint64_t)ns;
  return add_own(c, k, start, (page_cell){.device_ns = (uint64_t)ns});
}

static weir_status take_work(void *context, sqlite3_stmt *q)
{
  page_calls *c = context;
  int work = sqlite3_column_int(q, 2);
  bool of_call = sqlite3_column_type(q, 11) != SQLITE_NULL;
  const page_kind *of = of_call ? page_kind_of(c, sqlite3_column_int64(q, 11)) : NULL;
  page_kind k = kind_of_work(of, work, sqlite3_column_int64(q, 3));
  if (work == 1 && !k.route && sqlite3_column_type(q, 14) != SQLITE_NULL) {
    uint64_t key = node_key(sqlite3_column_int64(q, 14), sqlite3_column_int64(q, 3));
    const uint64_t *route = hash_map_get(&c->by_node, key);
    k.route = route ? (uint32_t)*route : 0;
  }
  int64_t start = sqlite3_column_int64(q, 7), ns = sqlite3_column_int64(q, 8) - start;
  const page_lane lane = {.device = true,
                          .process = sqlite3_column_int64(q, 1),
                          .ordinal = sqlite3_column_int64(q, 4),
                          .context = sqlite3_column_int64(q, 5),
                          .stream = sqlite3_column_int64(q, 6)};
  int number = page_lane_of(&c->lanes, &lane);
  bool sized = work < 3;
  uint64_t kernel = work == 3 && of ? (uint64_t)sqlite3_column_int64(q, 13) : 0;
  page_op *op = number < 0 ? NULL : page_op_next(&c->lanes);
  if (!op) return wr_db_out_of_memory(c->db);
  *op = (page_op){.start = start,
                  .ns = ns,
                  .event = sqlite3_column_int64(q, 10),
                  .bytes = sized ? (uint64_t)sqlite3_column_int64(q, 9) : kernel,
                  .site = k.site,
                  .lane = (uint16_t)number,
                  .of = k.of};
  c->device_times = true;
  if (!page_op_added(&c->lanes)) return wr_db_out_of_memory(c->db);
  return add_device_time(c, &k, of ? sqlite3_column_int64(q, 12) : start, ns);
}

/* ---- names of kernels ------------------------------------------------------------------------ */

typedef struct kernel_names {
  page_calls *c;
  wr_demangler cxx;
} kernel_names;

static uint64_t kernel_key(int64_t process, uint64_t handle)
{
  return hash_mix(hash_mix(11, (uint64_t)process), handle);
}

static weir_status take_kernel(void *context, sqlite3_stmt *q)
{
  kernel_names *x = context;
  const char *name = (const char *)sqlite3_column_text(q, 2);
  uint32_t text = 0;
  if (!name) return WEIR_OK;
  char *plain = wr_demangle(&x->cxx, name);
  weir_status s = page_text_of(x->c->places, plain ? plain : name, &text);
  free(plain);
  uint64_t key = kernel_key(sqlite3_column_int64(q, 0), (uint64_t)sqlite3_column_int64(q, 1));
  return s ? s : hash_map_put(&x->c->by_kernel, key, text);
}

uint32_t page_kernel_of(const page_calls *c, const page_op *op)
{
  if (op->of != PAGE_LAUNCH || !op->bytes) return 0;
  const uint64_t *text =
      hash_map_get(&c->by_kernel, kernel_key(c->lanes.lane[op->lane].process, op->bytes));
  return text ? (uint32_t)*text : 0;
}

static weir_status load_kernels(page_calls *c)
{
  kernel_names x = {.c = c};
  wr_demangler_open(&x.cxx);
  weir_status s = wr_db_each(c->db,
                             "SELECT process, handle, name FROM main.name WHERE kind = 'kernel'"
                             " ORDER BY rowid",
                             take_kernel, &x);
  wr_demangler_close(&x.cxx);
  return s;
}

/* ---- the whole ------------------------------------------------------------------------------- */

weir_status page_calls_begin(page_calls *c, const wr_events *calls, page_places *places,
                             page_bins bins)
{
  static const char *const launches[] = {"cuGraphLaunch", "cuGraphLaunch_ptsz", "cudaGraphLaunch",
                                         "cudaGraphLaunch_ptsz"};
  c->db = calls->db, c->calls = calls, c->places = places;
  c->cube.bins = bins, c->lanes.bins = bins;
  for (int i = 0; i < 4; i++)
    c->graph_launch[i] = api_find_name(launches[i]);
  weir_status s = wr_firsts_open(&c->firsts, c->db);
  return s ? s : make_kinds(c);
}

wr_listener page_calls_listener(page_calls *c)
{
  return (wr_listener){.take_some = take_events, .context = c};
}

static int by_first_row(const void *left, const void *right)
{
  const page_route *a = *(page_route *const *)left, *b = *(page_route *const *)right;
  return (a->first > b->first) - (a->first < b->first);
}

/* Whatever order calls came in, routes are numbered in the order of rows. */
static weir_status number_routes(page_calls *c)
{
  page_route **route = calloc(c->routes + 1, sizeof(void *));
  uint32_t *number = calloc(c->routes + 1, sizeof(*number)), count = 0;
  for (size_t i = 0; route && i < c->routes; i++)
    if (c->route[i].number) route[count++] = &c->route[i];
  bool made = route && number;
  if (made && count) qsort(route, count, sizeof(void *), by_first_row);
  for (uint32_t i = 0; made && i < count; i++) {
    number[route[i] - c->route + 1] = i + 1; /* the cube has their indices until here */
    route[i]->number = i + 1;
  }
  c->all_passed = true;
  made = made && page_cube_renumber(&c->cube, number);
  free(route);
  free(number);
  return made ? WEIR_OK : wr_db_out_of_memory(c->db);
}

weir_status page_calls_end(page_calls *c)
{
  const wr_db *db = c->db;
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < c->kinds; i++)
    s = fold_kind(c, &c->kind[i]);
  if (!s) s = number_routes(c);
  if (!s) s = load_graphs(c);
  if (!s) s = decide(c);
  for (size_t i = 0; !s && i < c->kinds; i++)
    s = fold_time(c, &c->kind[i]);
  if (!s && wr_db_has_table(db, "device_work") && wr_db_has_column(db, "device_work", "graph_node"))
    s = wr_db_each(db, has_graphs(c) ? DEVICE_SQL(GRAPH_CONTENT) : DEVICE_SQL("NULL"), take_work,
                   c);
  if (!s) s = load_kernels(c);
  page_lanes_fold(&c->lanes, &c->cube.bins);
  return s;
}

void page_calls_free(page_calls *c)
{
  page_cube_free(&c->cube);
  page_lanes_free(&c->lanes);
  wr_firsts_close(&c->firsts);
  hash_map_free(&c->by_route);
  hash_map_free(&c->by_node);
  hash_map_free(&c->by_kernel);
  free(c->flame);
  free(c->route);
  free(c->kind);
  free(c->undecided);
  *c = (page_calls){0};
}
