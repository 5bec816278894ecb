/* ranges.c: see ranges.h.
 *
 * A range knows the one that was its thread's innermost when it began, and so all that were open
 * then: a chain. One of them may have ended before a call that is still within the range (another
 * domain's pop), so a chain is walked with a moment. Rows are of an untrusted file: a parent comes
 * ahead of its child, which ends every chain. */
#include "reports/model/ranges.h"

#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/import/lifetime.h"
#include "reports/model/model.h"

enum { PUSH_POP = 1, MARK = 3 };

typedef struct range_node {
  int64_t id, start, end;
  size_t parent; /* index + 1, 0: none */
  size_t sum;    /* index of its name's */
  bool pushed;   /* not started: calls can be within it */
} range_node;

/* What one launch of a graph runs, of one content (graph_work). */
typedef struct content_sum {
  int64_t content;
  uint64_t copies, copy_bytes, kernels, allocs, alloc_bytes;
} content_sum;

typedef struct range_pass {
  wr_named_ranges *r;
  const wr_db *db;
  const wr_firsts *firsts;
  int64_t trace_end;
  range_node *node;
  size_t nodes, node_room, sum_room;
  hash_map by_name; /* hash of domain and text -> index of its sum, plus 1 */
  uint64_t walks;
  content_sum *content; /* ascending */
  size_t contents, content_room;
} range_pass;

static int64_t column(sqlite3_stmt *q, int i)
{
  return sqlite3_column_int64(q, i);
}

static uint64_t hash_column(uint64_t key, sqlite3_stmt *q, int i)
{
  const unsigned char *text = sqlite3_column_text(q, i);
  size_t bytes = text ? (size_t)sqlite3_column_bytes(q, i) : 0;
  key = hash_mix(key, bytes);
  for (size_t k = 0; k < bytes; k++)
    key = hash_mix(key, text[k]);
  return key;
}

/* ---- the ranges ------------------------------------------------------------------------------ */

/* The sum of the row's name, or SIZE_MAX. Columns: 4 domain, 5 text. */
static size_t sum_of(range_pass *p, sqlite3_stmt *q)
{
  wr_named_ranges *r = p->r;
  uint64_t *known = hash_map_place(&p->by_name, hash_column(hash_column(1, q, 4), q, 5), NULL);
  if (!known) return SIZE_MAX;
  if (*known) return (size_t)*known - 1;
  if (!wr_grow(&r->sum, &p->sum_room, r->count + 1, sizeof(*r->sum))) return SIZE_MAX;
  wr_range_sum sum = {.domain = wr_db_text(q, 4), .text = wr_db_text(q, 5)};
  r->sum[r->count++] = sum;
  if (!sum.domain || !sum.text) return SIZE_MAX;
  *known = r->count;
  return r->count - 1;
}

static range_node *find_node(const range_pass *p, int64_t id)
{
  size_t low = 0, high = p->nodes;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (p->node[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < p->nodes && p->node[low].id == id ? &p->node[low] : NULL;
}

/* Is a range of the same name around it, from end to end? */
static bool is_nested_in_itself(const range_pass *p, const range_node *n)
{
  for (size_t at = n->parent; at; at = p->node[at - 1].parent)
    if (p->node[at - 1].sum == n->sum && p->node[at - 1].end >= n->end) return true;
  return false;
}

/* id, parent, start, end, domain, text, kind; ascending ids */
static weir_status take_range(void *context, sqlite3_stmt *q)
{
  range_pass *p = context;
  bool open = sqlite3_column_type(q, 3) == SQLITE_NULL;
  size_t sum = sum_of(p, q);
  const range_node *parent = column(q, 1) ? find_node(p, column(q, 1)) : NULL;
  if (sum == SIZE_MAX || !wr_grow(&p->node, &p->node_room, p->nodes + 1, sizeof(*p->node)))
    return wr_db_out_of_memory(p->db);
  if (column(q, 1)) parent = find_node(p, column(q, 1)); /* they may have moved */
  range_node *n = &p->node[p->nodes];
  *n = (range_node){.id = column(q, 0),
                    .start = column(q, 2),
                    .end = open ? INT64_MAX : column(q, 3),
                    .parent = parent ? (size_t)(parent - p->node) + 1 : 0,
                    .sum = sum,
                    .pushed = column(q, 6) == PUSH_POP};
  p->nodes++;
  int64_t end = open ? p->trace_end : n->end;
  p->r->sum[sum].ranges++;
  p->r->sum[sum].open += open;
  if (end > n->start && !is_nested_in_itself(p, n))
    p->r->sum[sum].ns += (uint64_t)end - (uint64_t)n->start;
  return WEIR_OK;
}

/* ---- what is within them --------------------------------------------------------------------- */

/* Calls `add` once for each name that has a range around `moment` in the chain of range `id`. */
static void each_name(range_pass *p, int64_t id, int64_t moment,
                      void (*add)(wr_range_sum *sum, const void *what), const void *what)
{
  const range_node *n = find_node(p, id);
  p->walks++;
  while (n) {
    wr_range_sum *sum = &p->r->sum[n->sum];
    if (n->pushed && n->end >= moment && sum->seen != p->walks) {
      sum->seen = p->walks;
      add(sum, what);
    }
    n = n->parent ? &p->node[n->parent - 1] : NULL;
  }
}

typedef struct within { /* one call */
  int64_t kind, flags, copy;
  uint64_t bytes, ns;
  bool wait;
} within;

static void add_call(wr_range_sum *sum, const void *what)
{
  const within *w = what;
  sum->calls += !(w->flags & WEIR_EVF_BATCH);
  sum->launches += w->kind == WEIR_EV_LAUNCH;
  if (w->kind == WEIR_EV_COPY) sum->copies++, sum->copy_bytes += w->bytes;
  if (w->kind == WEIR_EV_ALLOC) sum->allocs++, sum->alloc_bytes += w->bytes;
  if (w->wait) sum->waits++, sum->wait_ns += w->ns;
}

/* As the totals have it: asked for, or implied by what the call does; not what brought up a context. */
static bool is_a_wait(const range_pass *p, const within *w, const wr_first_call *c)
{
  bool asked =
      w->kind == WEIR_EV_SYNC &&
      (w->copy == WEIR_SYNC_EVENT || w->copy == WEIR_SYNC_STREAM || w->copy == WEIR_SYNC_CONTEXT);
  bool implied =
      w->kind != WEIR_EV_SYNC && w->flags & WEIR_EVF_IMPLICIT_SYNC && !(w->flags & WEIR_EVF_BATCH);
  return (asked || implied) && !wr_firsts_made(p->firsts, c);
}

/* range, start, duration, bytes, kind, copy, flags, api, process, thread, context, device, mem */
static weir_status take_call(void *context, sqlite3_stmt *q)
{
  range_pass *p = context;
  within w = {.kind = column(q, 4),
              .flags = column(q, 6),
              .copy = column(q, 5),
              .bytes = (uint64_t)column(q, 3),
              .ns = column(q, 2) > 0 ? (uint64_t)column(q, 2) : 0};
  bool device = sqlite3_column_type(q, 11) != SQLITE_NULL;
  wr_first_call c = {.process = column(q, 8),
                     .thread = column(q, 9),
                     .context = column(q, 10),
                     .start = column(q, 1),
                     .end = (int64_t)((uint64_t)column(q, 1) + w.ns),
                     .api = (uint32_t)column(q, 7) & 0xffff,
                     .device = device ? (int)(column(q, 11) & 255) : WR_HOST,
                     .worked = true};
  w.wait = is_a_wait(p, &w, &c);
  if (w.kind == WEIR_EV_ALLOC && !wr_mem_device_side((int)column(q, 12))) w.kind = WEIR_EV_CALL;
  each_name(p, column(q, 0), c.start, add_call, &w);
  return WEIR_OK;
}

/* ---- what launches of graphs ran in them ----------------------------------------------------- */

/* CUgraphNodeType */
enum { NODE_KERNEL = 0, NODE_COPY = 1, NODE_ALLOC = 10 };

/* content, type, bytes, count, mem; ascending contents */
static weir_status take_content(void *context, sqlite3_stmt *q)
{
  range_pass *p = context;
  uint64_t bytes = (uint64_t)column(q, 2), count = (uint64_t)column(q, 3);
  if (!p->contents || p->content[p->contents - 1].content != column(q, 0)) {
    if (!wr_grow(&p->content, &p->content_room, p->contents + 1, sizeof(*p->content)))
      return wr_db_out_of_memory(p->db);
    p->content[p->contents++] = (content_sum){.content = column(q, 0)};
  }
  content_sum *sum = &p->content[p->contents - 1];
  int type = sqlite3_column_int(q, 1);
  if (type == NODE_KERNEL) sum->kernels += count;
  if (type == NODE_COPY) sum->copies += count, sum->copy_bytes += bytes * count;
  if (type == NODE_ALLOC && wr_mem_device_side((int)column(q, 4)))
    sum->allocs += count, sum->alloc_bytes += bytes * count;
  return WEIR_OK;
}

static void add_content(wr_range_sum *sum, const void *what)
{
  const content_sum *c = what;
  sum->launches += c->kernels;
  sum->copies += c->copies, sum->copy_bytes += c->copy_bytes;
  sum->allocs += c->allocs, sum->alloc_bytes += c->alloc_bytes;
}

static int by_content(const void *key, const void *element)
{
  int64_t content = *(const int64_t *)key, other = ((const content_sum *)element)->content;
  return content < other ? -1 : content > other;
}

/* range, start, content */
static weir_status take_graph_launch(void *context, sqlite3_stmt *q)
{
  range_pass *p = context;
  int64_t content = column(q, 2);
  const content_sum *sum =
      p->contents ? bsearch(&content, p->content, p->contents, sizeof(*sum), by_content) : NULL;
  if (sum) each_name(p, column(q, 0), column(q, 1), add_content, sum);
  return WEIR_OK;
}

/* `graph_work` and `graph_launch` are the reader's own in a trace that is not finished. */
static weir_status load_graph_work(range_pass *p)
{
  if (!wr_db_has_table(p->db, "graph_work") || !wr_db_has_table(p->db, "graph_launch"))
    return WEIR_OK; /* of an older Weir */
  weir_status s = wr_db_each(p->db,
                             "SELECT content, type, bytes, count, mem FROM graph_work"
                             " WHERE NOT conditional ORDER BY content",
                             take_content, p);
  if (s || !p->contents) return s;
  return wr_db_each(p->db,
                    "SELECT x.range, e.start, l.content FROM graph_launch l"
                    " CROSS JOIN main.event_range x ON x.event = l.event"
                    " CROSS JOIN main.event_row e ON e.id = l.event WHERE l.content IS NOT NULL",
                    take_graph_launch, p);
}

/* ---- what devices took for it ---------------------------------------------------------------- */

static void add_device_time(wr_range_sum *sum, const void *ns)
{
  sum->device_ns += *(const uint64_t *)ns;
}

/* range, start of the call, ns */
static weir_status take_device_work(void *context, sqlite3_stmt *q)
{
  range_pass *p = context;
  uint64_t ns = (uint64_t)column(q, 2);
  p->r->device_times = true;
  each_name(p, column(q, 0), column(q, 1), add_device_time, &ns);
  return WEIR_OK;
}

static weir_status load_device_work(range_pass *p)
{
  if (!wr_db_has_table(p->db, "device_work")) return WEIR_OK;
  return wr_db_each(
      p->db,
      "SELECT x.range, e.start, w.ns FROM (SELECT event, \"end\" - start AS ns"
      " FROM main.device_work WHERE event IS NOT NULL AND kind <> 5 AND " WR_DEVICE_TIME
      ") w CROSS JOIN main.event_range x ON x.event = w.event"
      " CROSS JOIN main.event_row e ON e.id = w.event",
      take_device_work, p);
}

/* ---- what is not the program's time ---------------------------------------------------------- */

static void add_hashing(wr_range_sum *sum, const void *ns)
{
  sum->hashing_ns += *(const uint64_t *)ns;
}

/* range, time, ns */
static weir_status take_hash(void *context, sqlite3_stmt *q)
{
  uint64_t ns = column(q, 2) > 0 ? (uint64_t)column(q, 2) : 0;
  each_name(context, column(q, 0), column(q, 1), add_hashing, &ns);
  return WEIR_OK;
}

static weir_status load_hashing(range_pass *p)
{
  if (!wr_db_has_table(p->db, "copy_hash")) return WEIR_OK;
  weir_status s = wr_db_each(
      p->db, "SELECT range, time, ns FROM main.copy_hash WHERE range IS NOT NULL", take_hash, p);
  for (size_t i = 0; i < p->r->count; i++) {
    wr_range_sum *sum = &p->r->sum[i];
    sum->ns -= sum->hashing_ns < sum->ns ? sum->hashing_ns : sum->ns;
  }
  return s;
}

/* ---- memory allocated in them ---------------------------------------------------------------- */

static void add_bytes(wr_range_sum *sum, const void *bytes)
{
  sum->live_bytes += *(const uint64_t *)bytes;
  if (sum->live_bytes > sum->peak_bytes) sum->peak_bytes = sum->live_bytes;
}

static void take_bytes(wr_range_sum *sum, const void *bytes)
{
  sum->live_bytes -= *(const uint64_t *)bytes;
}

/* range, start, bytes, whether it is the end, mem; in the order of lives */
static weir_status take_life(void *context, sqlite3_stmt *q)
{
  uint64_t bytes = (uint64_t)column(q, 2);
  if (wr_mem_device_side((int)column(q, 4)))
    each_name(context, column(q, 0), column(q, 1), column(q, 3) ? take_bytes : add_bytes, &bytes);
  return WEIR_OK;
}

static int by_time(const void *a, const void *b)
{
  const wr_range_sum *x = a, *y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? 1 : -1;
  int order = strcmp(x->domain, y->domain);
  return order ? order : strcmp(x->text, y->text);
}

static weir_status load_all(range_pass *p)
{
  weir_status s = wr_db_each(
      p->db,
      "SELECT r.id, r.parent, r.start, r.\"end\", n.domain, n.text, r.kind FROM main.range_row r"
      " LEFT JOIN main.range_name n ON n.id = r.name WHERE r.kind <> 3 ORDER BY r.id",
      take_range, p);
  if (s || !p->nodes) return s;
  s = wr_db_each(p->db,
                 "SELECT x.range, e.start, e.duration, e.bytes, t.kind, t.copy, t.flags, t.api,"
                 " t.process, t.thread, t.context, t.device, t.mem FROM main.event_range x"
                 " CROSS JOIN main.event_row e ON e.id = x.event"
                 " CROSS JOIN main.template t ON t.id = e.template"
                 " WHERE t.kind <> 13 AND t.status = 0 AND NOT (t.flags & 16)",
                 take_call, p);
  if (!s) s = load_graph_work(p);
  if (!s) s = load_device_work(p);
  if (!s) s = load_hashing(p);
  if (!s)
    s = wr_db_each(p->db,
                   "SELECT range, start, bytes, over, mem FROM (SELECT x.range AS range, b.start AS"
                   " start, b.bytes AS bytes, 0 AS over, b.mem AS mem, b.born AS place"
                   " FROM block b CROSS JOIN main.event_range x ON x.event = b.alloc"
                   " WHERE NOT b.registered UNION ALL SELECT x.range, b.start, b.bytes, 1, b.mem,"
                   " b.died FROM block b CROSS JOIN main.event_range x ON x.event = b.alloc"
                   " WHERE NOT b.registered AND b.died IS NOT NULL) ORDER BY place, over DESC",
                   take_life, p);
  return s;
}

weir_status wr_ranges_load(wr_named_ranges *r, const wr_db *db, const wr_firsts *firsts,
                           int64_t end)
{
  range_pass p = {.r = r, .db = db, .firsts = firsts, .trace_end = end};
  *r = (wr_named_ranges){0};
  if (!wr_db_has_table(db, "range_row") || !wr_db_has_table(db, "range_name") ||
      !wr_db_has_table(db, "event_range"))
    return WEIR_OK;
  weir_status s = load_all(&p);
  if (!s && r->count) qsort(r->sum, r->count, sizeof(*r->sum), by_time);
  free(p.node);
  free(p.content);
  hash_map_free(&p.by_name);
  return s;
}

void wr_ranges_free(wr_named_ranges *r)
{
  for (size_t i = 0; i < r->count; i++) {
    free(r->sum[i].domain);
    free(r->sum[i].text);
  }
  free(r->sum);
  *r = (wr_named_ranges){0};
}
