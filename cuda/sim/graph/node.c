/* node.c: the nodes of a graph: their parameters, checked and kept, and what they do when run. */
#include "cuda/sim/graph/graph.h"
#include "cuda/sim/module/module.h"

#include <stdlib.h>
#include <string.h>

struct sim_arena sim_graph_nodes = SIM_ARENA(struct CUgraphNode_st, SIM_GRAPH_NODE);

/* ---- sets of nodes --------------------------------------------------------------------------- */

bool sim_nodes_has(const struct sim_nodes *set, CUgraphNode n)
{
  for (size_t i = 0; i < set->count; i++)
    if (set->list[i] == n) return true;
  return false;
}

bool sim_nodes_add(struct sim_nodes *set, CUgraphNode n)
{
  if (sim_nodes_has(set, n)) return true;
  if (set->count == set->room) {
    size_t room = set->room ? 2 * set->room : 2;
    CUgraphNode *more = realloc(set->list, room * sizeof(void *));
    if (!more) return false;
    set->list = more;
    set->room = room;
  }
  set->list[set->count++] = n;
  return true;
}

bool sim_nodes_copy(struct sim_nodes *to, const struct sim_nodes *from)
{
  bool all = true;
  for (size_t i = 0; i < from->count; i++)
    all &= sim_nodes_add(to, from->list[i]);
  return all;
}

void sim_nodes_clear(struct sim_nodes *set)
{
  free(set->list);
  *set = (struct sim_nodes){0};
}

/* ---- parameters ------------------------------------------------------------------------------ */

bool sim_node_is(CUgraphNode n)
{
  return sim_arena_has(&sim_graph_nodes, n) && !n->graph->internal;
}

/* A copy or memset that is none when asked today is none at a launch. */
static CUresult check_op(CUresult error, struct sim_op *op)
{
  if (op) sim_op_free(op);
  return error;
}

static CUresult check_memcpy(const CUDA_MEMCPY_NODE_PARAMS *p)
{
  struct sim_op *op = NULL;
  CUresult error = sim_context_check(p->copyCtx);
  if (!error) error = sim_copy_node_op(p, true, &op);
  return check_op(error, op);
}

static CUresult check_memset(const CUDA_MEMSET_NODE_PARAMS_v2 *p)
{
  struct sim_op *op = NULL;
  CUresult error = sim_context_check(p->ctx);
  if (!error) error = sim_fill_node_op(p, true, &op);
  return check_op(error, op);
}

static CUresult check_event(CUevent e)
{
  return sim_arena_has(&sim_events, e) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult keep_child(CUgraphNode n, const CUDA_CHILD_GRAPH_NODE_PARAMS *p)
{
  CUgraph from = p->graph;
  if (!sim_graph_is(from) || from == n->graph || from->capture) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  if (p->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    if (from->parent || from->instances) return CUDA_ERROR_INVALID_VALUE;
    n->child = from;
  } else if (p->ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) {
    error = CUDA_ERROR_INVALID_VALUE;
  } else if (sim_graph_has_memory(from) || sim_graph_has_conditions(from)) {
    error = CUDA_ERROR_NOT_SUPPORTED;
  } else {
    error = sim_graph_clone(from, false, &n->child);
  }
  if (error) return error;
  n->child->parent = n;
  n->params.graph.graph = n->child;
  return CUDA_SUCCESS;
}

/* Marks (index 1) the nodes of its graph that n comes after; false: no memory. */
static bool mark_earlier(CUgraphNode n)
{
  CUgraphNode *stack = malloc((n->graph->count + 1) * sizeof(void *)), at = n;
  size_t depth = 0;
  if (!stack) return false;
  for (CUgraphNode other = n->graph->first; other; other = other->next)
    other->index = 0;
  for (;;) {
    for (size_t i = 0; i < at->after.count; i++) {
      CUgraphNode before = at->after.list[i];
      if (before->index) continue;
      before->index = 1;
      stack[depth++] = before;
    }
    if (!depth) break;
    at = stack[--depth];
  }
  free(stack);
  return true;
}

/* "CUDA may reuse memory within a graph by assigning the same virtual address ranges to different
 * allocations whose lifetimes do not overlap": memory freed by a node that n comes after. */
static bool reuse_memory(CUgraphNode n, const struct sim_device *d,
                         CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p)
{
  if (!n->graph->owns_memory || !mark_earlier(n)) return false;
  for (CUgraphNode f = n->graph->first; f; f = f->next) {
    if (f->params.type != CU_GRAPH_NODE_TYPE_MEM_FREE || !f->index || f->reused) continue;
    if (!sim_graph_memory_reuse(f->memory, d, p->bytesize, n->graph, &p->dptr)) continue;
    f->reused = true;
    n->memory = f->memory;
    return true;
  }
  return false;
}

static CUresult keep_alloc(CUgraphNode n, CUDA_MEM_ALLOC_NODE_PARAMS_v2 *p)
{
  const CUmemPoolProps *props = &p->poolProps;
  if (props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || !p->bytesize ||
      props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || props->handleTypes)
    return CUDA_ERROR_INVALID_VALUE;
  struct sim_device *d = sim_device(props->location.id);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  for (size_t i = 0; i < p->accessDescCount; i++)
    if (!p->accessDescs || !sim_device(p->accessDescs[i].location.id))
      return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = p->accessDescCount * sizeof *p->accessDescs;
  n->owned = bytes ? malloc(bytes) : NULL;
  if (bytes && !n->owned) return CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes) memcpy(n->owned, p->accessDescs, bytes);
  if (!reuse_memory(n, d, p)) {
    CUresult error = sim_graph_memory_new(d, p->bytesize, &p->dptr, &n->memory);
    if (error) return error;
    sim_graph_memory_owner(n->memory, n->graph);
  }
  n->params.alloc = *p;
  n->params.alloc.accessDescs = n->owned;
  n->graph->owns_memory = true;
  return CUDA_SUCCESS;
}

static CUresult keep_free(CUgraphNode n, const CUDA_MEM_FREE_NODE_PARAMS *p)
{
  struct sim_graph_memory *m = sim_graph_memory_at(p->dptr);
  CUresult error = m ? sim_graph_memory_freed_by(m, n->graph) : CUDA_ERROR_INVALID_VALUE;
  if (error) return error;
  sim_graph_memory_ref(m);
  n->memory = m;
  n->graph->owns_memory = true;
  return CUDA_SUCCESS;
}

/* Checks the parameters and takes over what they point to; n->params is `p` already. */
static CUresult keep_params(CUgraphNode n, CUgraphNodeParams *p)
{
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return sim_launch_keep(&n->params.kernel, &n->function, &n->owned);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return check_memcpy(&p->memcpy);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return check_memset(&p->memset);
  case CU_GRAPH_NODE_TYPE_HOST:
    return p->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return keep_child(n, &p->graph);
  case CU_GRAPH_NODE_TYPE_EMPTY:
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return check_event(p->eventWait.event);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return check_event(p->eventRecord.event);
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    return keep_alloc(n, &p->alloc);
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    return keep_free(n, &p->free);
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return sim_condition_keep(n, &p->conditional);
  default: /* semaphores, batches of memory operations */
    return (unsigned)p->type <= CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_NOT_SUPPORTED
                                                               : CUDA_ERROR_INVALID_VALUE;
  }
}

/* Gives back what keep_params() took. */
static void let_go_of_node(CUgraphNode n)
{
  if (n->child) {
    n->child->parent = NULL;
    sim_graph_end(n->child);
  }
  if (n->bodies) sim_condition_let_go(n);
  if (n->memory) sim_graph_memory_unref(n->memory);
  free(n->owned);
  n->child = NULL;
  n->memory = NULL;
  n->owned = NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static CUgraphNode node_new(CUgraph graph, const CUgraphNodeParams *p)
{
  static uint64_t ids;
  CUgraphNode n = sim_arena_new(&sim_graph_nodes);
  if (!n) return NULL;
  n->id = ++ids;
  n->graph = graph;
  n->params = *p;
  return n;
}

static void link_node(CUgraphNode n)
{
  CUgraph g = n->graph;
  n->link = g->end;
  *g->end = n;
  g->end = &n->next;
  g->count++;
}

CUresult sim_node_add(CUgraph graph, const struct sim_nodes *after, CUgraphNodeParams *params,
                      CUgraphNode *node)
{
  CUresult error = sim_body_allows(graph, params);
  CUgraphNode n = error ? NULL : node_new(graph, params);
  if (!n) return error ? error : CUDA_ERROR_OUT_OF_MEMORY;
  error = sim_nodes_copy(&n->after, after) ? keep_params(n, params) : CUDA_ERROR_OUT_OF_MEMORY;
  if (!error) {
    link_node(n);
    sim_watch_resource(.event = WEIR_WATCH_NODE_CREATED, .graph = graph, .node = n,
                       .node_type = (uint32_t)params->type);
    *node = n;
    return CUDA_SUCCESS;
  }
  let_go_of_node(n);
  sim_nodes_clear(&n->after);
  sim_arena_free(&sim_graph_nodes, n);
  return error;
}

void sim_node_end(CUgraphNode n)
{
  CUgraph g = n->graph;
  sim_watch_resource(.event = WEIR_WATCH_NODE_ENDS, .graph = g, .node = n,
                     .node_type = (uint32_t)n->params.type);
  *n->link = n->next;
  if (n->next)
    n->next->link = n->link;
  else
    g->end = n->link;
  g->count--;
  let_go_of_node(n);
  free(n->attributes);
  sim_nodes_clear(&n->after);
  sim_arena_free(&sim_graph_nodes, n);
}

CUresult sim_node_set(CUgraphNode n, const CUgraphNodeParams *p)
{
  if (p->type != n->params.type) return CUDA_ERROR_INVALID_VALUE;
  /* an allocation is what it is, and so is a condition */
  if (n->memory || n->bodies) return CUDA_ERROR_NOT_SUPPORTED;
  struct CUgraphNode_st fresh = {.graph = n->graph, .params = *p};
  CUgraphNodeParams copy = *p;
  CUresult error = keep_params(&fresh, &copy);
  if (error) {
    let_go_of_node(&fresh);
    return error;
  }
  let_go_of_node(n);
  n->params = fresh.params;
  n->function = fresh.function;
  n->owned = fresh.owned;
  n->child = fresh.child;
  if (n->child) n->child->parent = n;
  return CUDA_SUCCESS;
}

static CUresult clone_memory(CUgraphNode from, CUgraphNode n, bool exec)
{
  if (!exec) return CUDA_ERROR_NOT_SUPPORTED; /* "The graph cannot be cloned" */
  n->memory = from->memory;
  sim_graph_memory_ref(n->memory);
  return CUDA_SUCCESS;
}

static CUresult clone_attributes(CUgraphNode from, CUgraphNode n)
{
  size_t bytes = CU_LAUNCH_ATTRIBUTE_MAX * sizeof *n->attributes;
  if (!from->attributes) return CUDA_SUCCESS;
  n->attributes = malloc(bytes);
  if (!n->attributes) return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(n->attributes, from->attributes, bytes);
  return CUDA_SUCCESS;
}

/* Without its dependencies, which are the cloner's to make. A kernel's arguments are copied once
 * more, from the copy. */
CUresult sim_node_clone(CUgraphNode from, CUgraph graph, bool exec, CUgraphNode *to)
{
  CUgraphNode n = node_new(graph, &from->params);
  if (!n) return CUDA_ERROR_OUT_OF_MEMORY;
  n->origin = from;
  n->disabled = from->disabled;
  n->function = from->function;
  link_node(n);
  CUresult error = clone_attributes(from, n);
  if (!error && from->memory) error = clone_memory(from, n, exec);
  if (!error && from->bodies) error = sim_condition_clone(from, n, exec);
  if (!error && from->child) {
    error = sim_graph_clone(from->child, exec, &n->child);
    if (!error) n->child->parent = n;
    n->params.graph.graph = n->child;
  }
  if (!error && n->params.type == CU_GRAPH_NODE_TYPE_KERNEL && from->owned) {
    n->params.kernel.func = from->function;
    error = sim_launch_keep(&n->params.kernel, &n->function, &n->owned);
    n->params.kernel.func = from->params.kernel.func;
  }
  if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) n->params.alloc.accessDescs = NULL;
  sim_watch_resource(.event = WEIR_WATCH_NODE_CLONED, .graph = graph, .node = n,
                     .original_graph = from->graph, .original_node = from,
                     .node_type = (uint32_t)n->params.type);
  *to = n;
  return error;
}

/* ---- running --------------------------------------------------------------------------------- */

/* What a node has become that was right when it was made: its memory is gone, or its code. */
static void run_broken(struct sim_op *op, CUstream s)
{
  (void)op;
  sim_context_fail(s->context, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static struct sim_op *node_op(CUgraphNode n)
{
  struct sim_op *op = NULL;
  CUresult error = CUDA_SUCCESS;
  const CUgraphNodeParams *p = &n->params;
  if (n->disabled) return sim_op_new(sizeof *op, NULL);
  switch (p->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    error = sim_launch_node_op(n->function, &p->kernel, &op);
    break;
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    error = sim_copy_node_op(&p->memcpy, false, &op);
    break;
  case CU_GRAPH_NODE_TYPE_MEMSET:
    error = sim_fill_node_op(&p->memset, false, &op);
    break;
  case CU_GRAPH_NODE_TYPE_HOST:
    return sim_host_node_op(&p->host);
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    op = sim_wait_op(p->eventWait.event, &error);
    break;
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    op = sim_record_op(p->eventRecord.event, &error);
    break;
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return sim_condition_op(n);
  default:
    return sim_op_new(sizeof *op, NULL);
  }
  if (error && error != CUDA_ERROR_OUT_OF_MEMORY) return sim_op_new(sizeof *op, run_broken);
  return op;
}

/* Of the executable graph that is launched, whose child or body it may be in. */
static uint32_t root_id(CUgraph g)
{
  while (g->parent)
    g = g->parent->graph;
  return (uint32_t)g->id;
}

struct sim_op *sim_node_op(CUgraphNode n)
{
  struct sim_op *op = node_op(n);
  if (!op || likely(!op->watched)) return op;
  op->node_id = n->id;
  op->graph_id = root_id(n->graph);
  if (op->watched & WEIR_WATCH_GRAPHS) op->watched &= ~SIM_WATCH_WORK;
  return op;
}

__attribute__((visibility("default"))) uint64_t weir_sim_node_id(void *node)
{
  return sim_arena_has(&sim_graph_nodes, node) ? ((CUgraphNode)node)->id : 0;
}

__attribute__((visibility("default"))) uint32_t weir_sim_graph_id(void *graph)
{
  return sim_arena_has(&sim_graphs, graph) ? (uint32_t)((CUgraph)graph)->id : 0;
}

__attribute__((visibility("default"))) uint32_t weir_sim_exec_id(void *exec)
{
  return sim_arena_has(&sim_graph_execs, exec) ? (uint32_t)((CUgraphExec)exec)->graph->id : 0;
}
