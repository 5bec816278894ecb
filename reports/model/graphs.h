/* graphs.h: launches of graphs, by the place that launches and the place that the graph is from. */
#ifndef WEIR_REPORTS_GRAPHS_H
#define WEIR_REPORTS_GRAPHS_H

#include "core/base/map.h"
#include "reports/base/util.h"
#include "reports/import/schema.h"

/* What a node of a graph is, as graph_work has it: CUgraphNodeType. */
enum wr_node {
  WR_NODE_KERNEL = 0,
  WR_NODE_COPY = 1,
  WR_NODE_MEMSET = 2,
  WR_NODE_HOST = 3,
  WR_NODE_EMPTY = 5,
  WR_NODE_EVENT_WAIT = 6,
  WR_NODE_EVENT_RECORD = 7,
  WR_NODE_ALLOC = 10,
  WR_NODE_FREE = 11
};

/* Graphs that were captured in one place, made executable in one, and launched from one. */
typedef struct wr_graph_sum {
  size_t captured, made, launched; /* of wr_graphs.place; captured 0: node by node, or not seen */
  uint64_t graphs, updates;        /* executable ones; changes of them after they were made */
  uint64_t launches, unknown;      /* of them, those of which it is not known what they ran */
  uint64_t copies, copy_bytes, memsets, kernels;
  uint64_t maybe; /* nodes in bodies of conditional nodes: ran or not, once or often */
} wr_graph_sum;

typedef struct wr_graphs {
  wr_graph_sum *sum; /* owned; those with the most launches first */
  size_t count;
  char **place; /* owned, of each; in words. 0: NULL */
  size_t places;
} wr_graphs;

/* graph_launch and graph_work must be there where the trace has changes of graphs. */
weir_status wr_graphs_load(wr_graphs *g, const wr_db *db);
void wr_graphs_free(wr_graphs *g);

/* Adds the ids of launches of graphs whose work stays on the devices to `launches`: none of it is the host's, or copies to or from
 * memory of the host. When such a graph is done the host has nothing to look at, and nothing to write again. Errors: ENOMEM, EIO. */
weir_status wr_graphs_inside(const wr_db *db, hash_map *launches);

#endif
