/* graphs.c: executable graphs: which nodes each has now, as import/graph_launch.c has it from rows;
 * what a launch allocates and frees. */
#include <stdlib.h>
#include <string.h>
#include "reports/tally/private.h"

/* CUgraphNodeType */
enum { NODE_GRAPH = 4, NODE_ALLOC = 10, NODE_FREE = 11 };

static wr_node *nodes_from(const wr_tally *t, uint32_t first)
{
  return wr_table_at(&t->s.node, first);
}

/* Fresh nodes that are pairwise of the old ones' types have their handles and their state. */
static void keep_handles(wr_node *fresh, uint32_t fresh_count, const wr_node *old, uint32_t count)
{
  bool alike = fresh_count == count;
  for (uint32_t i = 0; alike && i < count; i++)
    alike = old[i].info.type == fresh[i].info.type;
  for (uint32_t i = 0; alike && i < count; i++) {
    fresh[i].info.node = old[i].info.node;
    fresh[i].info.parent = old[i].info.parent;
    fresh[i].disabled = old[i].disabled;
  }
}

static wr_node *find_graph_node(const wr_tally *t, const wr_tally_graph *g, uint64_t handle)
{
  wr_node *nodes = nodes_from(t, g->first);
  for (uint32_t i = 0; i < g->count; i++)
    if (nodes[i].info.node == handle) return &nodes[i];
  return NULL;
}

/* How many of `count` nodes after the first are in it: a node stands after what it is in. */
static uint32_t count_within(const wr_node *first, uint32_t count)
{
  hash_map within = {0};
  uint32_t end = 1;
  bool room = hash_map_put(&within, first->info.node, 1) == WEIR_OK;
  while (room && end < count && hash_map_get(&within, first[end].info.parent))
    room = hash_map_put(&within, first[end++].info.node, 1) == WEIR_OK;
  hash_map_free(&within);
  return end - 1;
}

/* A node is the first of the change's now; a child graph with all that is in it. The list is
 * written anew behind all others. */
static weir_status set_graph_node(wr_tally *t, wr_tally_graph *g, const wr_pending *p)
{
  wr_node *n = find_graph_node(t, g, p->about);
  if (!n || !p->count) {
    g->known = 0;
    return WEIR_OK;
  }
  const uint32_t at = (uint32_t)(n - nodes_from(t, g->first));
  const uint32_t old = n->info.type == NODE_GRAPH ? count_within(n, g->count - at) : 0;
  const uint32_t rest = g->count - at - 1 - old, first = t->s.node.count;
  if (!wr_array_room(&t->s.node, g->count + p->count)) return wr_tally_no_memory(t);
  wr_node *from = nodes_from(t, g->first), *fresh = nodes_from(t, p->first),
          *to = nodes_from(t, first);
  memcpy(to, from, (at + 1) * sizeof *to);
  keep_handles(fresh + 1, p->count - 1, from + at + 1, old);
  to[at].info = fresh->info;
  to[at].info.node = from[at].info.node;
  to[at].info.parent = from[at].info.parent;
  memcpy(to + at + 1, fresh + 1, (p->count - 1) * sizeof *to);
  memcpy(to + at + p->count, from + at + 1 + old, rest * sizeof *to);
  g->first = first;
  g->count = at + p->count + rest;
  t->s.node.count += g->count;
  return WEIR_OK;
}

weir_status wr_graph_change(wr_tally *t, const wr_pending *p)
{
  bool added;
  if (!wr_table_room(&t->s.graph, 1)) return wr_tally_no_memory(t);
  wr_tally_graph *g = wr_table_place(&t->s.graph, wr_key_of_one(WR_OF_GRAPH, p->address), &added);
  g->exec = p->address;
  g->changed = p->time;
  g->thread = p->thread;
  wr_node *n;
  switch (p->detail) {
  case WEIR_GRAPH_UPDATED:
    if (p->complete)
      keep_handles(nodes_from(t, p->first), p->count, nodes_from(t, g->first), g->count);
    /* fall through */
  case WEIR_GRAPH_MADE:
    g->known = p->complete;
    if (!p->complete && p->detail == WEIR_GRAPH_UPDATED) return WEIR_OK;
    g->graph = p->about;
    g->first = p->first;
    g->count = p->complete ? p->count : 0;
    return WEIR_OK;
  case WEIR_GRAPH_SET:
    if (p->complete && g->known) return set_graph_node(t, g, p);
    g->known = 0;
    return WEIR_OK;
  default: /* enabled, disabled */
    n = find_graph_node(t, g, p->about);
    if (n) n->disabled = p->detail == WEIR_GRAPH_DISABLED;
    if (!n) g->known = 0;
    return WEIR_OK;
  }
}

void wr_graph_destroyed(wr_tally *t, uint64_t exec)
{
  wr_tally_graph *g = wr_table_find(&t->s.graph, wr_key_of_one(WR_OF_GRAPH, exec));
  if (g) wr_table_remove(&t->s.graph, g);
}

/* Nodes in the order in which the graph lists them, as if one ran after the other; one within a
 * disabled child graph does not run. */
static weir_status walk_launch(wr_tally *t, const wr_tally_graph *g, const wr_pending *p,
                               bool again,
                               weir_status (*take)(wr_tally *t, const wr_pending *launch,
                                                   const graph_node_info *node, bool free))
{
  const wr_node *nodes = nodes_from(t, g->first);
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; i < g->count && !st; i++) {
    const graph_node_info *n = &nodes[i].info;
    if (nodes[i].disabled) {
      if (n->type == NODE_GRAPH) i += count_within(&nodes[i], g->count - i);
      continue;
    }
    bool allocates = n->type == NODE_ALLOC, frees = n->type == NODE_FREE && !again;
    if ((allocates || frees) && !n->conditional && n->a) st = take(t, p, n, again || frees);
  }
  return st;
}

/* What it frees because it allocates it again comes first ("auto free on launch"; without it the
 * driver launches no graph whose memory was not freed). */
weir_status wr_graph_launched(wr_tally *t, const wr_pending *p,
                              weir_status (*take)(wr_tally *t, const wr_pending *launch,
                                                  const graph_node_info *node, bool free))
{
  const wr_tally_graph *g = wr_table_find(&t->s.graph, wr_key_of_one(WR_OF_GRAPH, p->address));
  if (!g || !g->known) return WEIR_OK;
  weir_status st = walk_launch(t, g, p, true, take);
  return st ? st : walk_launch(t, g, p, false, take);
}
