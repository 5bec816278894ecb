/* graph_launch.c: which work every launch of a graph did; see graph.h.
 *
 * One pass over changes and launches in order of time. An executable graph is its nodes, each a
 * handle and the number of what it does (a *key*: all that two nodes have in common that are
 * counted together). A launch after a change counts the nodes by key: that is the content. */
#include <stdlib.h>
#include <string.h>
#include "reports/import/graph.h"

/* CUgraphNodeType */
enum {
  NODE_COPY = 1,
  NODE_MEMSET = 2,
  NODE_GRAPH = 4,
  NODE_EMPTY = 5,
  NODE_ALLOC = 10,
  NODE_FREE = 11
};

enum { KEY_COLUMNS = 10, KEY_DEVICE = 6, KEY_SRC_DEVICE = 7, KEY_ACCESS = 9, MOST_ROWS = 65536 };

/* Columns of graph_work after the key's. */
enum { WORK_COUNT = 11, WORK_POINTER, WORK_ACCESS, WORK_TARGET, WORK_SOURCE };

/* Type, kernel, bytes, copy, mem, src_mem, device, src_device (-1: none), conditional, access set (0:
 * not known). */
typedef struct work_key {
  int64_t v[KEY_COLUMNS];
  int64_t pointer, node;  /* of nodes that allocate and free: each is its own; else 0 */
  int64_t target, source; /* addresses of a copy; target: of a memset; else 0 */
} work_key;

typedef struct exec_node {
  int64_t node, parent; /* handles */
  uint32_t key;         /* index */
  bool disabled;
} exec_node;

typedef struct exec_graph {
  int64_t made;    /* the change that made it */
  int64_t content; /* of a launch now; 0: to be found */
  bool known;      /* it is all that is in `node` */
  exec_node *node; /* owned */
  size_t count, capacity;
} exec_graph;

typedef struct pass {
  const wr_db *db;
  wr_batch *batch;
  sqlite3_stmt *nodes; /* of a change */
  hash_map execs;      /* hash of process and handle -> index */
  exec_graph *exec;
  size_t exec_count, exec_capacity;
  hash_map keys; /* hash -> index */
  work_key *key;
  size_t key_count, key_capacity;
  int64_t *times; /* of each key in the content that is made; else 0 */
  uint32_t *used; /* the keys that are in it */
  size_t times_capacity, used_capacity;
  hash_map contents; /* hash -> number */
  int64_t content_count;
} pass;

/* ---- keys ------------------------------------------------------------------------------------ */

static weir_status find_key(pass *p, const work_key *key, uint32_t *out)
{
  uint64_t hash = 11;
  bool added = false;
  for (int i = 0; i < KEY_COLUMNS; i++)
    hash = hash_mix(hash, (uint64_t)key->v[i]);
  hash = hash_mix(hash_mix(hash, (uint64_t)key->pointer), (uint64_t)key->node);
  hash = hash_mix(hash_mix(hash, (uint64_t)key->target), (uint64_t)key->source);
  for (;; hash++) {
    uint64_t *at = hash_map_place(&p->keys, hash, &added);
    if (!at) return wr_db_out_of_memory(p->db);
    if (added) {
      if (!wr_grow(&p->key, &p->key_capacity, p->key_count + 1, sizeof(work_key)))
        return wr_db_out_of_memory(p->db);
      *at = p->key_count;
      p->key[p->key_count++] = *key;
    }
    *out = (uint32_t)*at;
    if (!memcmp(&p->key[*at], key, sizeof(*key))) return WEIR_OK;
  }
}

static bool is_memory(int64_t type)
{
  return type == NODE_ALLOC || type == NODE_FREE;
}

/* Columns of p->nodes: node, parent, type, a, bytes, copy, mem, src_mem, device, src_device,
 * conditional, access, b. Kernels are counted by their handle, whatever their grid. */
static weir_status read_node(pass *p, exec_node *out)
{
  sqlite3_stmt *q = p->nodes;
  work_key k = {.v = {sqlite3_column_int64(q, 2)}};
  bool kernel = k.v[0] == 0, memory = is_memory(k.v[0]);
  if (memory) k.pointer = sqlite3_column_int64(q, 3), k.node = sqlite3_column_int64(q, 0);
  if (k.v[0] == NODE_COPY || k.v[0] == NODE_MEMSET) k.target = sqlite3_column_int64(q, 3);
  if (k.v[0] == NODE_COPY) k.source = sqlite3_column_int64(q, 12);
  if (kernel) k.v[1] = sqlite3_column_int64(q, 3);
  if (!kernel) k.v[2] = sqlite3_column_int64(q, 4);
  for (int i = 3; i < KEY_COLUMNS; i++) {
    bool none = sqlite3_column_type(q, i + 2) == SQLITE_NULL;
    k.v[i] = none ? -1 : sqlite3_column_int64(q, i + 2);
  }
  *out = (exec_node){.node = sqlite3_column_int64(q, 0), .parent = sqlite3_column_int64(q, 1)};
  return find_key(p, &k, &out->key);
}

static int64_t node_type(const pass *p, const exec_node *n)
{
  return p->key[n->key].v[0];
}

/* ---- executable graphs ----------------------------------------------------------------------- */

static exec_graph *find_exec(pass *p, int64_t process, int64_t handle)
{
  bool added = false;
  uint64_t key = hash_mix(hash_mix(12, (uint64_t)process), (uint64_t)handle);
  uint64_t *at = hash_map_place(&p->execs, key, &added);
  if (!at) return NULL;
  if (added) {
    if (!wr_grow(&p->exec, &p->exec_capacity, p->exec_count + 1, sizeof(exec_graph))) return NULL;
    *at = p->exec_count++;
    p->exec[*at] = (exec_graph){0};
  }
  return &p->exec[*at];
}

/* The nodes of a change, after what is there. */
static weir_status append_nodes(pass *p, exec_graph *g, int64_t change)
{
  weir_status st = WEIR_OK;
  int code = SQLITE_DONE;
  sqlite3_bind_int64(p->nodes, 1, change);
  while (!st && (code = sqlite3_step(p->nodes)) == SQLITE_ROW) {
    if (!wr_grow(&g->node, &g->capacity, g->count + 1, sizeof(exec_node)))
      st = wr_db_out_of_memory(p->db);
    else
      st = read_node(p, &g->node[g->count]);
    if (!st) g->count++;
  }
  if (!st && code != SQLITE_DONE) st = wr_db_fail(p->db, "reading");
  sqlite3_reset(p->nodes);
  return st;
}

/* Nodes from `from` on take the place of the `old` ones: pairwise, where their types agree, with
 * the handles and the state of those. */
static void take_handles(const pass *p, exec_graph *g, const exec_node *old, size_t count,
                         size_t from)
{
  bool alike = g->count - from == count;
  for (size_t i = 0; alike && i < count; i++)
    alike = node_type(p, &old[i]) == node_type(p, &g->node[from + i]);
  for (size_t i = 0; alike && i < count; i++) {
    g->node[from + i].node = old[i].node;
    g->node[from + i].parent = old[i].parent;
    g->node[from + i].disabled = old[i].disabled;
  }
}

static weir_status update_exec(pass *p, exec_graph *g, int64_t change)
{
  size_t count = g->count;
  weir_status st = append_nodes(p, g, change);
  if (st) return st;
  take_handles(p, g, g->node, count, count);
  if (g->count > count) memmove(g->node, g->node + count, (g->count - count) * sizeof(exec_node));
  g->count -= count;
  g->known = true;
  return WEIR_OK;
}

static exec_node *find_node(exec_graph *g, int64_t handle)
{
  for (size_t i = 0; i < g->count; i++)
    if (g->node[i].node == handle) return &g->node[i];
  return NULL;
}

/* How many of the nodes between `at` and `most` are in it: a node stands after what it is in. */
static size_t nodes_within(const exec_graph *g, size_t at, size_t most)
{
  hash_map within = {0};
  size_t end = at + 1;
  bool room = hash_map_put(&within, (uint64_t)g->node[at].node, 1) == WEIR_OK;
  while (room && end < most && hash_map_get(&within, (uint64_t)g->node[end].parent))
    room = hash_map_put(&within, (uint64_t)g->node[end++].node, 1) == WEIR_OK;
  hash_map_free(&within);
  return end - at - 1;
}

/* A node is something else now; a child graph with all that is in it. */
static weir_status set_node(pass *p, exec_graph *g, int64_t change, int64_t handle)
{
  size_t had = g->count;
  exec_node *n = find_node(g, handle);
  weir_status st = append_nodes(p, g, change);
  if (st) return st;
  n = n ? find_node(g, handle) : NULL; /* it may have moved */
  if (!n || g->count == had) {
    g->known = false;
    return WEIR_OK;
  }
  size_t at = (size_t)(n - g->node), old = nodes_within(g, at, had), fresh = g->count - had;
  if (node_type(p, n) != NODE_GRAPH) old = 0;
  n->key = g->node[had].key;
  take_handles(p, g, n + 1, old, had + 1);
  /* the fresh ones but for the first go where the old ones were */
  exec_node *moved = malloc(fresh * sizeof(exec_node));
  if (!moved) return wr_db_out_of_memory(p->db);
  memcpy(moved, g->node + had + 1, (fresh - 1) * sizeof(exec_node));
  memmove(n + fresh, n + 1 + old, (had - at - 1 - old) * sizeof(exec_node));
  memcpy(n + 1, moved, (fresh - 1) * sizeof(exec_node));
  free(moved);
  g->count = had - old + fresh - 1;
  return WEIR_OK;
}

/* Columns: process, time, launch, id, exec, fact, graph, nodes. */
static weir_status take_graph_change(pass *p, sqlite3_stmt *q)
{
  int64_t id = sqlite3_column_int64(q, 3), about = sqlite3_column_int64(q, 6);
  bool whole = sqlite3_column_type(q, 7) != SQLITE_NULL;
  exec_graph *g = find_exec(p, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 4));
  exec_node *n;
  if (!g) return wr_db_out_of_memory(p->db);
  g->content = 0;
  switch (sqlite3_column_int(q, 5)) {
  case WEIR_GRAPH_MADE:
    g->made = id;
    g->count = 0;
    g->known = whole;
    return whole ? append_nodes(p, g, id) : WEIR_OK;
  case WEIR_GRAPH_UPDATED:
    if (whole) return update_exec(p, g, id);
    g->known = false;
    return WEIR_OK;
  case WEIR_GRAPH_SET:
    if (whole && g->known) return set_node(p, g, id, about);
    g->known = false;
    return WEIR_OK;
  default:
    n = find_node(g, about);
    if (n) n->disabled = sqlite3_column_int(q, 5) == WEIR_GRAPH_DISABLED;
    if (!n) g->known = false;
    return WEIR_OK;
  }
}

/* ---- launches -------------------------------------------------------------------------------- */

static weir_status add_content(pass *p, size_t used)
{
  p->content_count++;
  for (size_t i = 0; i < used; i++) {
    const work_key *k = &p->key[p->used[i]];
    wr_row *row = wr_batch_row(p->batch, WR_TABLE_GRAPH_WORK);
    if (!row) return wr_db_out_of_memory(p->db);
    row->v[0] = p->content_count;
    row->v[1] = (int64_t)i;
    memcpy(&row->v[2], k->v, KEY_ACCESS * sizeof(k->v[0]));
    row->v[WORK_COUNT] = p->times[p->used[i]];
    row->v[WORK_POINTER] = k->pointer;
    row->v[WORK_ACCESS] = k->v[KEY_ACCESS];
    row->v[WORK_TARGET] = k->target, row->v[WORK_SOURCE] = k->source;
    if (!k->target) row->nulls |= 1u << WORK_TARGET;
    if (!k->source) row->nulls |= 1u << WORK_SOURCE;
    if (!is_memory(k->v[0])) row->nulls |= 1u << WORK_POINTER;
    if (!k->v[KEY_ACCESS]) row->nulls |= 1u << WORK_ACCESS;
    if (k->v[KEY_DEVICE] < 0) row->nulls |= 1u << (2 + KEY_DEVICE);
    if (k->v[KEY_SRC_DEVICE] < 0) row->nulls |= 1u << (2 + KEY_SRC_DEVICE);
  }
  return WEIR_OK;
}

/* Counts the nodes into p->times, the keys met into p->used; all is put back by the caller. A node
 * within a disabled one does not run. */
static size_t count_nodes(pass *p, const exec_graph *g)
{
  size_t used = 0;
  for (size_t i = 0; i < g->count; i++) {
    const exec_node *n = &g->node[i];
    if (n->disabled) {
      if (node_type(p, n) == NODE_GRAPH) i += nodes_within(g, i, g->count);
      continue;
    }
    if (node_type(p, n) == NODE_GRAPH || node_type(p, n) == NODE_EMPTY) continue;
    if (!p->times[n->key]++) p->used[used++] = n->key;
  }
  return used;
}

static weir_status find_content(pass *p, exec_graph *g)
{
  bool added = false;
  uint64_t hash = 13;
  size_t had = p->times_capacity;
  if (!wr_grow(&p->times, &p->times_capacity, p->key_count + 1, sizeof(int64_t)) ||
      !wr_grow(&p->used, &p->used_capacity, p->key_count + 1, sizeof(uint32_t)))
    return wr_db_out_of_memory(p->db);
  memset(p->times + had, 0, (p->times_capacity - had) * sizeof(int64_t));
  weir_status st = WEIR_OK;
  size_t used = count_nodes(p, g);
  for (size_t i = 0; i < used; i++) /* in any order */
    hash += hash_mix(hash_mix(14, p->used[i]), (uint64_t)p->times[p->used[i]]);
  uint64_t *at = hash_map_place(&p->contents, hash, &added);
  if (at && added) {
    st = add_content(p, used);
    *at = (uint64_t)p->content_count;
  }
  if (at) g->content = (int64_t)*at;
  for (size_t i = 0; i < used; i++)
    p->times[p->used[i]] = 0;
  return at ? st : wr_db_out_of_memory(p->db);
}

static weir_status take_launch(pass *p, sqlite3_stmt *q)
{
  exec_graph *g = find_exec(p, sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 4));
  if (!g) return wr_db_out_of_memory(p->db);
  weir_status st = g->known && !g->content ? find_content(p, g) : WEIR_OK;
  if (st) return st;
  wr_row *row = wr_batch_row(p->batch, WR_TABLE_GRAPH_LAUNCH);
  if (!row) return wr_db_out_of_memory(p->db);
  *row = (wr_row){.v = {sqlite3_column_int64(q, 3), g->made, g->content}};
  if (!g->made) row->nulls |= 1u << 1;
  if (!g->known) row->nulls |= 1u << 2;
  if (p->batch->rows[WR_TABLE_GRAPH_LAUNCH].count < MOST_ROWS) return WEIR_OK;
  return wr_batch_flush(p->batch, true);
}

static weir_status take_launch_row(void *context, sqlite3_stmt *q)
{
  return sqlite3_column_int(q, 2) ? take_launch(context, q) : take_graph_change(context, q);
}

static void close_pass(pass *p)
{
  sqlite3_finalize(p->nodes);
  for (size_t i = 0; i < p->exec_count; i++)
    free(p->exec[i].node);
  free(p->exec);
  free(p->key);
  free(p->times);
  free(p->used);
  hash_map_free(&p->execs);
  hash_map_free(&p->keys);
  hash_map_free(&p->contents);
}

/* At equal times a change was first: a launch begins after the call that changed the graph. */
#define IN_ORDER                                                                                   \
  "SELECT process, time, 0, id, exec, fact, graph, nodes FROM graph_change"                        \
  " UNION ALL SELECT (SELECT t.process FROM template t WHERE t.id = e.template), e.start, 1, "     \
  "e.id,"                                                                                          \
  " e.a, NULL, NULL, NULL FROM event_row e WHERE e.template IN (SELECT t.id FROM template t"       \
  " WHERE t.status = 0 AND NOT t.flags & 16 AND t.api IN (SELECT a.id FROM api a WHERE a.name IN"  \
  " ('cuGraphLaunch', 'cuGraphLaunch_ptsz', 'cudaGraphLaunch', 'cudaGraphLaunch_ptsz'))) ORDER BY" \
  " 1, 2, 3, 4"

weir_status wr_graph_launches_temporary(const wr_db *db)
{
  wr_batch batch = {0};
  weir_status st = wr_schema_graph_launches(db);
  if (!st) st = wr_batch_open(&batch, db);
  if (!st) st = wr_graph_launches(&batch);
  if (!st) st = wr_batch_flush(&batch, true); /* in the reader's transaction */
  wr_batch_close(&batch);
  return st;
}

weir_status wr_graph_launches(wr_batch *batch)
{
  pass p = {.db = &batch->db, .batch = batch};
  int64_t launches = 0;
  weir_status st = wr_db_number(p.db,
                                "SELECT count(*) FROM template t JOIN api a ON a.id = t.api"
                                " WHERE a.name LIKE 'cu%GraphLaunch%'",
                                &launches);
  if (st || !launches) return st;
  st = wr_db_prepare(
      p.db,
      "SELECT node, parent, type, a, bytes, copy, mem, src_mem, device, src_device,"
      " conditional, ifnull(access, 0), b FROM graph_node WHERE change = ? ORDER BY position",
      &p.nodes);
  if (!st) st = wr_db_each(p.db, IN_ORDER, take_launch_row, &p);
  close_pass(&p);
  return st;
}
