/* activity.c: see activity.h. */
#include "reports/tables/activity.h"
#include <stdio.h>
#include <stdlib.h>
#include "core/trace/api.h"
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/events/events.h"
#include "reports/events/rows.h"
#include "reports/import/graph.h"
#include "reports/model/wait_log.h"
#include "reports/model/first.h"
#include "reports/model/model.h"

enum {
  SMALL_UPLOAD = 65536, /* as the model has it: an upload this small does not last until its end */
  LARGE_COPY = 1 << 20,
  GRAPH_KERNEL = 0, /* CUgraphNodeType, as graph_work has it */
  GRAPH_COPY = 1,
  GRAPH_MEMSET = 2,
  WORK_COPY = 1, /* device_operation */
  WORK_MEMSET = 2,
};

const char *const wr_direction_names[WR_DIRECTIONS] = {"h2d", "d2h", "d2d", "p2p", "h2h", "other"};

int wr_direction_index(int64_t copy)
{
  switch (copy) {
  case WEIR_COPY_HTOD:
    return 0;
  case WEIR_COPY_DTOH:
    return 1;
  case WEIR_COPY_DTOD:
    return 2;
  case WEIR_COPY_PTOP:
    return 3;
  case WEIR_COPY_HTOH:
    return 4;
  default:
    return 5;
  }
}

typedef struct one_event { /* what the pass reads of an event, beside its template */
  int64_t start, ns, range;
  uint64_t bytes;
} one_event;

typedef struct undecided_wait { /* a call that may have made a context */
  uint32_t template;
  one_event e;
} undecided_wait;

typedef struct graph_node_row { /* of graph_work */
  int64_t content, next;        /* next: row + 1 of the same content, 0 none */
  int64_t type, copy, mem, src_mem, device, src_device;
  uint64_t bytes, count;
  bool conditional;
} graph_node_row;

typedef struct activity_pass {
  wr_activity *a;
  const wr_db *db;
  const wr_scope *scope;
  const wr_activity_wants *wants;
  bool ranges; /* events have a range in the queries */
  wr_events events;
  wr_row_walk in_ranges; /* of event_range, while events are walked over; where there are ranges */
  bool more_ranges;      /* it is at a row */
  size_t *cells_of;      /* owned; template -> cell + 1, of those without a range */
  hash_map by_cell;      /* key -> cell */
  hash_map range_names;  /* row of range_row -> row of range_name */
  hash_map contents;     /* content -> row + 1 of `nodes` */
  graph_node_row *nodes; /* owned */
  size_t node_count, node_capacity;
  wr_firsts firsts;
  undecided_wait *undecided; /* owned */
  size_t undecided_count, undecided_capacity;
} activity_pass;

/* ---- cells ----------------------------------------------------------------------------------- */

static uint64_t cell_key(uint32_t template, int64_t range, bool graph, const wr_template *c)
{
  uint64_t key = hash_mix(hash_mix(graph ? 21 : 22, template), (uint64_t)range);
  if (!graph) return key;
  key = hash_mix(hash_mix(key, (uint64_t)c->kind), (uint64_t)c->copy);
  key = hash_mix(key, (uint64_t)c->mem << 8 | (uint64_t)c->src_mem);
  return hash_mix(key, (uint64_t)c->device << 16 | (uint64_t)c->src_device);
}

/* The cell; `common` NULL: the template's own. NULL: out of memory. Valid until the next call. */
static wr_activity_cell *cell_of(activity_pass *p, uint32_t template, int64_t range,
                                 const wr_template *common)
{
  wr_activity *a = p->a;
  bool added, plain = !range && !common;
  if (plain && p->cells_of[template]) return &a->cell[p->cells_of[template] - 1];
  const wr_template *c = common ? common : &p->events.templates[template];
  uint64_t *at = hash_map_place(&p->by_cell, cell_key(template, range, common != NULL, c), &added);
  if (!at) return NULL;
  if (added) {
    if (!wr_grow(&a->cell, &a->capacity, a->count + 1, sizeof(*a->cell))) return NULL;
    *at = a->count;
    a->cell[a->count++] = (wr_activity_cell){.common = *c, .range = range, .graph = common != NULL};
  }
  if (plain) p->cells_of[template] = (size_t)*at + 1;
  return &a->cell[*at];
}

void wr_activity_add(wr_activity_sums *to, const wr_activity_sums *from)
{
#define ADD(name) to->name += from->name;
  WR_ACTIVITY_MAP(ADD)
#undef ADD
  if (from->longest_ns > to->longest_ns) to->longest_ns = from->longest_ns;
  if (from->best_host > to->best_host) to->best_host = from->best_host;
  if (from->best_device > to->best_device) to->best_device = from->best_device;
}

/* The name of the range that an event is in, where cells are by range. */
static int64_t name_of_range(const activity_pass *p, int64_t range)
{
  if (!p->wants->ranges || !range) return 0;
  const uint64_t *name = hash_map_get(&p->range_names, (uint64_t)range);
  return name ? (int64_t)*name : 0;
}

/* ---- templates ------------------------------------------------------------------------------- */

static int64_t node_device(sqlite3_stmt *q, int column)
{
  int64_t d = sqlite3_column_int64(q, column);
  return sqlite3_column_type(q, column) == SQLITE_NULL || d < 0 || d >= WR_HOST ? WR_HOST : d;
}

static weir_status load_templates(activity_pass *p)
{
  weir_status s = wr_events_open(&p->events, p->db);
  p->cells_of = calloc(p->events.count + 1, sizeof(*p->cells_of));
  return s || p->cells_of ? s : wr_db_out_of_memory(p->db);
}

static weir_status take_range_name(void *context, sqlite3_stmt *q)
{
  activity_pass *p = context;
  return hash_map_put(&p->range_names, (uint64_t)sqlite3_column_int64(q, 0),
                      (uint64_t)sqlite3_column_int64(q, 1))
             ? wr_db_out_of_memory(p->db)
             : WEIR_OK;
}

static weir_status load_range_names(activity_pass *p)
{
  bool has = wr_db_has_table(p->db, "event_range") && wr_db_has_table(p->db, "range_row") &&
             wr_db_has_table(p->db, "range_name");
  p->ranges = has && (p->wants->ranges || p->scope->by_range);
  if (!p->ranges || !p->wants->ranges) return WEIR_OK;
  return wr_db_each(p->db, "SELECT id, name FROM range_row", take_range_name, p);
}

/* ---- the pass over the events ---------------------------------------------------------------- */

/* Whether the call lasts until its copy is done. */
static bool lasts(const wr_template *c, const one_event *e)
{
  if (c->flags & (WEIR_EVF_ASYNC | WEIR_EVF_BATCH) || !(c->flags & WEIR_EVF_IMPLICIT_SYNC))
    return false;
  return e->ns && c->copy != WEIR_COPY_UNKNOWN &&
         !(c->copy == WEIR_COPY_HTOD && e->bytes <= SMALL_UPLOAD);
}

static int size_class(uint64_t bytes)
{
  int n = 0;
  for (; bytes; bytes >>= 1)
    n++;
  return n;
}

static void count_size(wr_activity *a, int64_t copy, uint64_t bytes, uint64_t times)
{
  int d = wr_direction_index(copy), size = size_class(bytes);
  a->size_calls[d][size] += times;
  a->size_bytes[d][size] += bytes * times;
}

static void count_operation(activity_pass *p, wr_activity_cell *cell, const one_event *e)
{
  const wr_template *c = &cell->common;
  wr_activity_sums *s = &cell->sums;
  s->calls++;
  if (c->sized) s->bytes += e->bytes;
  s->async_calls += (c->flags & WEIR_EVF_ASYNC) != 0;
  if (c->kind != WEIR_EV_COPY) return;
  count_size(p->a, c->copy, e->bytes, 1);
  if (!lasts(c, e)) return;
  s->timed_bytes += e->bytes, s->timed_ns += (uint64_t)e->ns;
  double rate = (double)e->bytes / (double)e->ns;
  if (e->bytes >= LARGE_COPY && rate > s->best_host) s->best_host = rate;
}

static void keep_wait(wr_activity *a, const wr_template *c, const one_event *e, bool implicit)
{
  if (!a->most_waits || (a->waits == a->most_waits && (uint64_t)e->ns <= a->wait[a->waits - 1].ns))
    return;
  size_t at = a->waits < a->most_waits ? a->waits++ : a->waits - 1;
  for (; at && a->wait[at - 1].ns < (uint64_t)e->ns; at--)
    a->wait[at] = a->wait[at - 1];
  a->wait[at] = (wr_long_wait){*c, e->start, (uint64_t)e->ns, implicit};
}

static void count_wait(activity_pass *p, wr_activity_cell *cell, const one_event *e)
{
  const wr_template *c = &cell->common;
  wr_activity_sums *s = &cell->sums;
  uint64_t ns = (uint64_t)e->ns;
  bool asked = c->asked, implicit = c->implicit;
  if (asked) s->explicit_calls++, s->explicit_ns += ns;
  if (implicit) s->implicit_calls++, s->implicit_ns += ns;
  if ((asked || implicit) && ns > s->longest_ns) s->longest_ns = ns;
  if (asked || implicit) keep_wait(p->a, c, e, implicit);
}

static wr_first_call first_call_of_event(const wr_template *c, const one_event *e)
{
  return (wr_first_call){.process = c->process,
                         .thread = c->thread,
                         .context = c->context,
                         .start = e->start,
                         .end = (int64_t)((uint64_t)e->start + (uint64_t)e->ns),
                         .api = (uint32_t)c->api,
                         .device = (int)c->device,
                         .worked = !c->status};
}

/* All that is the call's own time only where it did not bring up a context. */
static weir_status count_time(activity_pass *p, uint32_t template, const one_event *e, bool init)
{
  const wr_template *c = &p->events.templates[template];
  if (!wr_scope_has(p->scope, c->process, e->start, e->range)) return WEIR_OK;
  if (init && c->first) p->a->init_calls++, p->a->init_ns += (uint64_t)e->ns;
  if (init || !c->done) return WEIR_OK;
  wr_activity_cell *cell = cell_of(p, template, name_of_range(p, e->range), NULL);
  if (!cell) return wr_db_out_of_memory(p->db);
  if (c->first) cell->sums.host_ns += (uint64_t)e->ns;
  count_wait(p, cell, e);
  return WEIR_OK;
}

static weir_status take_time(activity_pass *p, uint32_t template, const one_event *e)
{
  wr_first_call call = first_call_of_event(&p->events.templates[template], e);
  bool maybe = false;
  if (!wr_firsts_take(&p->firsts, &call, &maybe)) return wr_db_out_of_memory(p->db);
  if (!maybe) return count_time(p, template, e, false);
  if (!wr_grow(&p->undecided, &p->undecided_capacity, p->undecided_count + 1,
               sizeof(*p->undecided)))
    return wr_db_out_of_memory(p->db);
  p->undecided[p->undecided_count++] = (undecided_wait){template, *e};
  return WEIR_OK;
}

static one_event read_event(sqlite3_stmt *q, int column)
{
  one_event e = {.start = sqlite3_column_int64(q, column),
                 .ns = sqlite3_column_int64(q, column + 1),
                 .bytes = (uint64_t)sqlite3_column_int64(q, column + 2),
                 .range = sqlite3_column_int64(q, column + 4)};
  if (e.ns < 0) e.ns = 0;
  return e;
}

/* The range that the event is in; they are in the same order. 0: none. */
static int64_t range_of_event(activity_pass *p, int64_t event)
{
  while (p->more_ranges && p->in_ranges.id < event)
    p->more_ranges = wr_rows_next(&p->in_ranges);
  return p->more_ranges && p->in_ranges.id == event ? p->in_ranges.v[0] : 0;
}

static weir_status take_event(void *context, const wr_event *x)
{
  activity_pass *p = context;
  uint32_t template = (uint32_t)x->at;
  const wr_template *c = x->t;
  if (c->kind == WEIR_EV_CACHE) return WEIR_OK; /* no call */
  one_event e = {.start = x->start, .ns = x->ns, .bytes = x->bytes};
  if (p->ranges) e.range = range_of_event(p, x->id);
  if (c->done && wr_scope_has(p->scope, c->process, e.start, e.range)) {
    wr_activity_cell *cell = cell_of(p, template, name_of_range(p, e.range), NULL);
    if (!cell) return wr_db_out_of_memory(p->db);
    count_operation(p, cell, &e);
  }
  return take_time(p, template, &e); /* all calls tell which one made a context */
}

/* Columns of an event `e`, with the range it is in where ranges matter: from, and the join. */
#define EVENT_COLUMNS(range) "e.start, e.duration, e.bytes, e.template, " range
#define NO_RANGE             EVENT_COLUMNS("0")
#define WITH_RANGE           EVENT_COLUMNS("r.range")
#define JOIN_RANGE           " LEFT JOIN event_range r ON r.event = e.id"

static weir_status walk_events(activity_pass *p)
{
  static const char *const columns[] = {"event", "range"};
  if (!p->ranges) return wr_events_each(&p->events, take_event, p);
  weir_status s = wr_rows_open(&p->in_ranges, p->db, "event_range", columns, 2);
  p->more_ranges = !s && wr_rows_next(&p->in_ranges);
  if (!s) s = wr_events_each(&p->events, take_event, p);
  weir_status closed = wr_rows_close(&p->in_ranges);
  return s ? s : closed;
}

static weir_status load_events(activity_pass *p)
{
  weir_status s = walk_events(p);
  for (size_t i = 0; !s && i < p->undecided_count; i++) {
    const undecided_wait *u = &p->undecided[i];
    wr_first_call call = first_call_of_event(&p->events.templates[u->template], &u->e);
    s = count_time(p, u->template, &u->e, wr_firsts_made(&p->firsts, &call));
  }
  return s;
}

bool wr_temporary_table(const wr_db *db, const char *name)
{
  return !sqlite3_table_column_metadata(db->handle, "temp", name, NULL, NULL, NULL, NULL, NULL,
                                        NULL);
}

/* ---- what launches of graphs ran ------------------------------------------------------------- */

/* content, type, bytes, copy, mem, src_mem, device, src_device, conditional, count */
static weir_status take_node(void *context, sqlite3_stmt *q)
{
  activity_pass *p = context;
  graph_node_row n = {.content = sqlite3_column_int64(q, 0),
                      .type = sqlite3_column_int64(q, 1),
                      .bytes = (uint64_t)sqlite3_column_int64(q, 2),
                      .copy = sqlite3_column_int64(q, 3),
                      .mem = sqlite3_column_int64(q, 4),
                      .src_mem = sqlite3_column_int64(q, 5),
                      .device = node_device(q, 6),
                      .src_device = node_device(q, 7),
                      .conditional = sqlite3_column_int(q, 8) != 0,
                      .count = (uint64_t)sqlite3_column_int64(q, 9)};
  uint64_t *head = hash_map_place(&p->contents, (uint64_t)n.content, NULL);
  if (!head || !wr_grow(&p->nodes, &p->node_capacity, p->node_count + 1, sizeof(n)))
    return wr_db_out_of_memory(p->db);
  n.next = (int64_t)*head;
  p->nodes[p->node_count++] = n;
  *head = p->node_count;
  return WEIR_OK;
}

static wr_template node_common(const activity_pass *p, uint32_t template, const graph_node_row *n)
{
  wr_template c = p->events.templates[template];
  c.kind = n->type == GRAPH_KERNEL ? WEIR_EV_LAUNCH
           : n->type == GRAPH_COPY ? WEIR_EV_COPY
                                   : WEIR_EV_MEMSET;
  c.copy = n->copy, c.mem = n->mem, c.src_mem = n->src_mem;
  c.device = n->device, c.src_device = n->src_device;
  c.flags = WEIR_EVF_ASYNC;
  return c;
}

static weir_status count_node(activity_pass *p, uint32_t template, int64_t range,
                              const graph_node_row *n)
{
  if (n->type != GRAPH_KERNEL && n->type != GRAPH_COPY && n->type != GRAPH_MEMSET) return WEIR_OK;
  if (n->conditional) {
    p->a->conditional += n->count;
    return WEIR_OK;
  }
  wr_template c = node_common(p, template, n);
  wr_activity_cell *cell = cell_of(p, template, range, &c);
  if (!cell) return wr_db_out_of_memory(p->db);
  cell->sums.calls += n->count;
  cell->sums.async_calls += n->count;
  if (n->type != GRAPH_KERNEL) cell->sums.bytes += n->bytes * n->count;
  if (n->type == GRAPH_COPY) count_size(p->a, n->copy, n->bytes, n->count);
  return WEIR_OK;
}

/* start, duration, bytes, template, range, content */
static weir_status take_launch(void *context, sqlite3_stmt *q)
{
  activity_pass *p = context;
  size_t at = wr_events_template(&p->events, sqlite3_column_int64(q, 3));
  one_event e = read_event(q, 0);
  weir_status s = WEIR_OK;
  if (at == SIZE_MAX || !wr_scope_has(p->scope, p->events.templates[at].process, e.start, e.range))
    return WEIR_OK;
  if (sqlite3_column_type(q, 5) == SQLITE_NULL) {
    p->a->unknown_launches++;
    return WEIR_OK;
  }
  const uint64_t *head = hash_map_get(&p->contents, (uint64_t)sqlite3_column_int64(q, 5));
  for (size_t n = head ? (size_t)*head : 0; !s && n; n = (size_t)p->nodes[n - 1].next)
    s = count_node(p, (uint32_t)at, name_of_range(p, e.range), &p->nodes[n - 1]);
  return s;
}

static weir_status load_graph_launches(activity_pass *p)
{
  static const char *const tables[] = {"graph_change", "graph_node", "graph_work", "graph_launch"};
  int64_t finished = 0;
  for (int i = 0; i < 4; i++) /* else of an older Weir */
    if (!wr_db_has_table(p->db, tables[i])) return WEIR_OK;
  weir_status s = wr_db_number(p->db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!s && finished != 1 && !wr_temporary_table(p->db, "graph_launch"))
    s = wr_graph_launches_temporary(p->db);
  if (!s)
    s = wr_db_each(p->db,
                   "SELECT content, type, bytes, copy, mem, src_mem, device, src_device,"
                   " conditional, count FROM graph_work",
                   take_node, p);
  if (s) return s;
  return wr_db_each(p->db,
                    p->ranges ? "SELECT " WITH_RANGE ", l.content FROM graph_launch l"
                                " CROSS JOIN event_row e ON e.id = l.event" JOIN_RANGE
                              : "SELECT " NO_RANGE ", l.content FROM graph_launch l"
                                " CROSS JOIN event_row e ON e.id = l.event",
                    take_launch, p);
}

/* ---- what devices were seen doing ------------------------------------------------------------ */

/* The node of a graph that an operation of that kind was: the one that all such nodes of the graph
 * are like, or one of which only the direction is known. */
static wr_template node_seen(const activity_pass *p, uint32_t template, int64_t content, int kind,
                             int64_t copy)
{
  int64_t type = kind == WORK_COPY ? GRAPH_COPY : kind == WORK_MEMSET ? GRAPH_MEMSET : GRAPH_KERNEL;
  graph_node_row found = {.type = type,
                          .copy = type == GRAPH_COPY ? copy : 0,
                          .device = WR_HOST,
                          .src_device = WR_HOST};
  const uint64_t *head = hash_map_get(&p->contents, (uint64_t)content);
  bool first = true;
  for (size_t n = head ? (size_t)*head : 0; n; n = (size_t)p->nodes[n - 1].next) {
    const graph_node_row *x = &p->nodes[n - 1];
    if (x->type != type || (type == GRAPH_COPY && x->copy != copy)) continue;
    bool same = x->mem == found.mem && x->src_mem == found.src_mem && x->device == found.device &&
                x->src_device == found.src_device;
    if (first) found = *x;
    if (!first && !same)
      found.mem = found.src_mem = WEIR_MEM_UNKNOWN, found.device = found.src_device = WR_HOST;
    first = false;
  }
  return node_common(p, template, &found);
}

/* start, duration, bytes, template, range; kind, copy, bytes, start and end of the operation;
 * content */
static weir_status take_operation(void *context, sqlite3_stmt *q)
{
  activity_pass *p = context;
  size_t at = wr_events_template(&p->events, sqlite3_column_int64(q, 3));
  one_event e = read_event(q, 0);
  if (at == SIZE_MAX || !wr_scope_has(p->scope, p->events.templates[at].process, e.start, e.range))
    return WEIR_OK;
  uint32_t template = (uint32_t)at;
  int kind = sqlite3_column_int(q, 5);
  uint64_t bytes = (uint64_t)sqlite3_column_int64(q, 7);
  uint64_t ns = (uint64_t)sqlite3_column_int64(q, 9) - (uint64_t)sqlite3_column_int64(q, 8);
  bool node = p->events.templates[template].kind == WEIR_EV_CALL && kind >= 1 && kind <= 3;
  wr_template c;
  if (node)
    c = node_seen(p, template, sqlite3_column_int64(q, 10), kind, sqlite3_column_int64(q, 6));
  wr_activity_cell *cell = cell_of(p, template, name_of_range(p, e.range), node ? &c : NULL);
  if (!cell) return wr_db_out_of_memory(p->db);
  wr_activity_sums *s = &cell->sums;
  p->a->device_times = true;
  s->device_operations++, s->device_ns += ns;
  if (kind != WORK_COPY && kind != WORK_MEMSET) return WEIR_OK;
  s->device_bytes += bytes;
  double rate = ns ? (double)bytes / (double)ns : 0;
  if (kind == WORK_COPY && bytes >= LARGE_COPY && rate > s->best_device) s->best_device = rate;
  return WEIR_OK;
}

static weir_status load_operations(activity_pass *p)
{
#define OPERATIONS(event, join)                                                                    \
  "SELECT " event ", d.kind, d.copy, d.bytes, d.start, d.\"end\","                                 \
  " (SELECT l.content FROM graph_launch l WHERE l.event = d.event AND d.graph)"                    \
  " FROM (SELECT event, kind, copy, bytes, start, \"end\", graph_node IS NOT NULL AS graph"        \
  " FROM device_work WHERE event IS NOT NULL AND " WR_DEVICE_TIME ") d"                            \
  " CROSS JOIN event_row e ON e.id = d.event" join
  if (!wr_db_has_table(p->db, "device_work") || !wr_db_has_table(p->db, "graph_launch"))
    return WEIR_OK;
  return wr_db_each(p->db,
                    p->ranges ? OPERATIONS(WITH_RANGE, JOIN_RANGE) : OPERATIONS(NO_RANGE, ""),
                    take_operation, p);
#undef OPERATIONS
}

/* ---- what waits had to wait for -------------------------------------------------------------- */

static uint64_t not_negative(sqlite3_stmt *q, int column)
{
  int64_t n = sqlite3_column_int64(q, column);
  return n > 0 ? (uint64_t)n : 0;
}

static void count_judged(wr_activity_cell *cell, const one_event *e, bool pending, bool wider)
{
  wr_activity_sums *s = &cell->sums;
  if (!pending)
    s->redundant_calls++, s->redundant_ns += (uint64_t)e->ns;
  else if (wider)
    s->wider_calls++, s->wider_ns += (uint64_t)e->ns;
}

/* start, duration, bytes, template, range; pending, too wide, working, other, idle, unknown */
static weir_status take_judged(void *context, sqlite3_stmt *q)
{
  activity_pass *p = context;
  size_t at = wr_events_template(&p->events, sqlite3_column_int64(q, 3));
  one_event e = read_event(q, 0);
  if (at == SIZE_MAX || !wr_scope_has(p->scope, p->events.templates[at].process, e.start, e.range))
    return WEIR_OK;
  wr_activity_cell *cell = cell_of(p, (uint32_t)at, name_of_range(p, e.range), NULL);
  if (!cell) return wr_db_out_of_memory(p->db);
  bool known = sqlite3_column_type(q, 5) != SQLITE_NULL, asked = cell->common.kind == WEIR_EV_SYNC;
  if (asked && known)
    count_judged(cell, &e, sqlite3_column_int64(q, 5) != 0, sqlite3_column_int(q, 6) != 0);
  if (asked && !known) p->a->unjudged_calls++;
  wr_activity_sums *s = &cell->sums;
  s->working_ns += not_negative(q, 7), s->other_ns += not_negative(q, 8);
  s->idle_ns += not_negative(q, 9), s->unknown_ns += not_negative(q, 10);
  return WEIR_OK;
}

/* A resolved trace has it; of another it is made for the report. */
static weir_status find_details(activity_pass *p)
{
  int64_t finished = 0, work = 0;
  bool resolved = wr_db_has_table(p->db, "wait_detail");
  weir_status s = wr_db_number(p->db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!s && wr_db_has_table(p->db, "device_work") && wr_db_has_table(p->db, "device_fact"))
    s = wr_db_number(p->db, "SELECT EXISTS(SELECT 1 FROM device_work)", &work);
  if (s || finished != 1) return s;
  p->a->judged = true;
  p->a->divided = work && (!resolved || wr_db_has_table(p->db, "wait_time"));
  return resolved || wr_temporary_table(p->db, "wait_detail")
             ? WEIR_OK
             : wr_wait_write(p->db, true, p->a->divided);
}

static weir_status load_judged(activity_pass *p)
{
  char sql[1000];
  weir_status s = find_details(p);
  if (!s && p->a->judged) s = wr_schema_streams_view(p->db);
  if (s || !p->a->judged) return s;
  (void)snprintf(sql, sizeof(sql),
                 "SELECT %s, d.pending, " WR_WIDE_WAIT ", %s FROM wait_detail d"
                 " CROSS JOIN event_row e ON e.id = d.id"
                 " CROSS JOIN template t ON t.id = e.template%s%s"
                 " WHERE d.pending IS NOT 0 OR d.covered_by IS NOT NULL",
                 p->ranges ? WITH_RANGE : NO_RANGE,
                 p->a->divided ? "w.working_ns, w.other_ns, w.idle_ns, w.unknown_ns" : "0, 0, 0, 0",
                 p->a->divided ? " LEFT JOIN wait_time w ON w.id = d.id" : "",
                 p->ranges ? JOIN_RANGE : "");
  return wr_db_each(p->db, sql, take_judged, p);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static weir_status load_activity(activity_pass *p)
{
  weir_status s = load_range_names(p);
  if (!s) s = load_templates(p);
  if (!s) s = wr_firsts_open(&p->firsts, p->db);
  if (!s) s = load_events(p);
  if (!s) s = load_graph_launches(p);
  if (!s) s = load_operations(p);
  if (!s && p->wants->waits) s = load_judged(p);
  return s;
}

weir_status wr_activity_load(wr_activity *a, const wr_db *db, const wr_scope *scope,
                             const wr_activity_wants *wants)
{
  activity_pass p = {.a = a, .db = db, .scope = scope, .wants = wants};
  *a = (wr_activity){.most_waits = wants->longest > 0 ? (size_t)wants->longest : 0};
  weir_status s = WEIR_OK;
  if (db->schema < 2)
    return weir_fail(WEIR_EVERSION, "%s is of an older Weir: only its summary and caches are known",
                     db->path);
  a->wait = calloc(a->most_waits + 1, sizeof(*a->wait));
  s = a->wait ? load_activity(&p) : wr_db_out_of_memory(db);
  wr_events_close(&p.events);
  free(p.cells_of);
  free(p.nodes);
  free(p.undecided);
  hash_map_free(&p.by_cell);
  hash_map_free(&p.range_names);
  hash_map_free(&p.contents);
  wr_firsts_close(&p.firsts);
  if (s) wr_activity_free(a);
  return s;
}

void wr_activity_free(wr_activity *a)
{
  free(a->cell);
  free(a->wait);
  *a = (wr_activity){0};
}
