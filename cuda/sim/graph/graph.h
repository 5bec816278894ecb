/* graph.h: graphs, their nodes, what is instantiated of them, and capture, as node.c, graph.c,
 * graph_exec.c, graph_memory.c and capture.c share them.
 *
 * A node keeps its parameters in CUDA's own form (CUgraphNodeParams) with what they point to
 * copied; an operation of a stream is made from them anew at each launch. All under sim_graph_lock,
 * which is taken before every other lock. */
#ifndef WEIR_SIM_GRAPH_H
#define WEIR_SIM_GRAPH_H

#include "cuda/sim/internal.h"

struct sim_graph_memory; /* what an allocation node allocates; graph_memory.c */

struct sim_nodes { /* a set of nodes, in the order they came */
  CUgraphNode *list;
  size_t count, room;
};

struct CUgraphNode_st {
  uint32_t magic;
  uint32_t index; /* place in its graph while it is sorted or compared */
  uint64_t id;    /* never used again */
  CUgraph graph;
  CUgraphNode next, *link;            /* nodes of the graph, oldest first */
  CUgraphNode origin;                 /* that it was cloned from; may be dead */
  CUgraphNodeParams params;           /* type and all; kernel.func as the program gave it */
  CUfunction function;                /* of a kernel node */
  void *owned;                        /* copied arguments or access descriptors */
  CUgraph child;                      /* of a child graph node, owned */
  CUgraph *bodies;                    /* of a conditional node, owned; NULL: none */
  unsigned body_count;                /* of them */
  struct sim_condition *condition;    /* of a conditional node, referenced */
  struct sim_graph_memory *memory;    /* of an allocation or free node, referenced */
  CUlaunchAttributeValue *attributes; /* of a kernel node, by id; NULL: none set */
  struct sim_nodes after;             /* it depends on them, in the order of the edges */
  bool disabled;                      /* cuGraphNodeSetEnabled */
  bool reused;                        /* of a free node: a later allocation has the memory */
};

struct sim_user_reference {
  struct sim_user_reference *next;
  CUuserObject object;
  unsigned count;
};

struct CUgraph_st {
  uint32_t magic;
  uint32_t count; /* nodes */
  uint64_t id;
  CUgraphNode first, *end;          /* nodes; where the next goes */
  CUgraphNode parent;               /* the child graph node that owns it; NULL: the program's */
  struct sim_capture *capture;      /* that adds to it */
  bool owns_memory;                 /* has allocation or free nodes */
  bool internal;                    /* of an executable graph: no handle of the program's */
  uint32_t instances;               /* executable graphs made of it */
  struct sim_user_reference *users; /* objects it holds */
  struct sim_condition *conditions; /* handles made for it, referenced */
};

struct CUgraphExec_st {
  uint32_t magic;
  uint32_t refs; /* the handle, launches */
  CUgraph graph; /* a clone, its nodes in the order they run */
  CUgraph source;
  uint64_t source_id; /* of the graph it was made of, which may be gone */
  unsigned long long flags;
  struct sim_ticket last; /* end of the last launch; stream NULL: none */
};

struct CUuserObject_st {
  uint32_t magic;
  unsigned refs;
  CUhostFn destroy;
  void *data;
  CUuserObject next; /* to be destroyed */
};

extern struct sim_arena sim_graphs, sim_graph_nodes, sim_graph_execs, sim_user_objects;

/* Takes sim_graph_lock, which its holder may take again; giving back its last hold runs the
 * destructors of user objects that ended under it. */
void sim_graph_enter(void);
void sim_graph_leave(void);

/* Holds it until the function ends, what it returns worked out. */
#define SIM_GRAPH_HOLD()                                                                           \
  bool held_graphs __attribute__((cleanup(sim_graph_let_go), unused)) = (sim_graph_enter(), true)

static inline void sim_graph_let_go(bool *held)
{
  (void)held;
  sim_graph_leave();
}

bool sim_nodes_add(struct sim_nodes *set, CUgraphNode node); /* once; false: no memory */
bool sim_nodes_has(const struct sim_nodes *set, CUgraphNode node);
bool sim_nodes_copy(struct sim_nodes *to, const struct sim_nodes *from);
void sim_nodes_clear(struct sim_nodes *set);

/* graph.c */
CUgraph sim_graph_new(void);
void sim_graph_end(CUgraph graph);
/* `exec`: for an executable graph, which may share the memory of allocation nodes. */
CUresult sim_graph_clone(CUgraph from, bool exec, CUgraph *to);
bool sim_graph_has_memory(CUgraph graph); /* or a child has */
static inline bool sim_graph_is(CUgraph g)
{
  return sim_arena_has(&sim_graphs, g) && !g->internal;
}
bool sim_node_is(CUgraphNode n); /* a live node of a graph the program knows */

/* node.c */
CUresult sim_node_add(CUgraph graph, const struct sim_nodes *after, CUgraphNodeParams *params,
                      CUgraphNode *node);
/* Other parameters of the same type. */
CUresult sim_node_set(CUgraphNode node, const CUgraphNodeParams *params);
CUresult sim_node_clone(CUgraphNode from, CUgraph graph, bool exec, CUgraphNode *to);
void sim_node_end(CUgraphNode node);
/* What the node does, for a stream, unless it is of memory. Where it cannot be done, an op that
 * fails. NULL: no memory. */
struct sim_op *sim_node_op(CUgraphNode node);

/* graph_memory.c */
CUresult sim_graph_memory_new(struct sim_device *device, size_t bytes, CUdeviceptr *p,
                              struct sim_graph_memory **memory);
struct sim_graph_memory *sim_graph_memory_at(CUdeviceptr p);
void sim_graph_memory_ref(struct sim_graph_memory *memory);
void sim_graph_memory_unref(struct sim_graph_memory *memory);
/* A free node of `graph` frees it: not twice, not in two graphs. */
CUresult sim_graph_memory_freed_by(struct sim_graph_memory *memory, CUgraph graph);
void sim_graph_memory_owner(struct sim_graph_memory *memory, CUgraph graph);
/* The freed memory of that graph becomes another allocation's; false: it does not fit. */
bool sim_graph_memory_reuse(struct sim_graph_memory *memory, const struct sim_device *device,
                            size_t bytes, CUgraph graph, CUdeviceptr *p);
/* Pages for a launch, which has a number; kept until claimed() states that it is made, or given up.
 */
CUresult sim_graph_memory_claim(struct sim_graph_memory *memory, CUstream stream, uint64_t launch);
void sim_graph_memory_claimed(struct sim_graph_memory *memory, uint64_t launch);
/* Whether it is allocated now, in the order of the program; it is from now on. */
bool sim_graph_memory_is_held(const struct sim_graph_memory *memory);
void sim_graph_memory_hold(struct sim_graph_memory *memory, CUstream stream);
/* The op that maps what was claimed. NULL: no memory. */
struct sim_op *sim_graph_memory_map_op(struct sim_graph_memory *memory);
/* Freed in the order of the program; the op that frees it in its stream's. NULL: no memory. */
struct sim_op *sim_graph_memory_free_op(struct sim_graph_memory *memory, CUstream stream);

/* condition.c: conditional nodes, whose bodies are graphs. */
CUresult sim_condition_keep(CUgraphNode node, CUDA_CONDITIONAL_NODE_PARAMS *params);
CUresult sim_condition_clone(CUgraphNode from, CUgraphNode node, bool exec);
void sim_condition_take(CUgraphNode node, CUgraphNode from); /* the other's handle */
void sim_condition_let_go(CUgraphNode node);
void sim_conditions_end(CUgraph graph);       /* its handles end */
bool sim_graph_has_conditions(CUgraph graph); /* or a child has */
/* Whether such a node may be in the graph, which may be a body or in one. */
CUresult sim_body_allows(CUgraph graph, const CUgraphNodeParams *params);
struct sim_op *sim_condition_op(CUgraphNode node);         /* NULL: no memory */
struct sim_op *sim_condition_default_op(CUgraphNode node); /* its value at a launch */

#endif
