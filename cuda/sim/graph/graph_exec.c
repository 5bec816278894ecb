/* graph_exec.c: graphs instantiated, launched and updated.
 *
 * An executable graph is a clone whose nodes stand in an order in which they can run. A launch puts
 * one operation a node into the stream, in that order and with nothing between them: branches run
 * one after the other, which every program must allow. The last operation of a launch is its end:
 * the next launch waits for it, and it keeps the executable graph alive. */
#include "cuda/sim/graph/graph.h"

#include <stdlib.h>

struct sim_arena sim_graph_execs = SIM_ARENA(struct CUgraphExec_st, SIM_GRAPH_EXEC);

struct end_op {
  struct sim_op op;
  CUgraphExec exec;
  uint64_t began_ns; /* the launch, where launches are watched */
};

/* The first operation of a launch that is watched as a whole. */
struct begin_op {
  struct sim_op op;
  struct end_op *end; /* of the same launch */
};

/* ---- order ----------------------------------------------------------------------------------- */

/* Puts the graph's nodes into an order that keeps its edges, the oldest first; false: a cycle, one
 * of whose nodes is *bad. */
static bool sort_nodes(CUgraph g, CUgraphNode *bad)
{
  CUgraphNode waiting = g->first, *end = &g->first;
  for (CUgraphNode n = waiting; n; n = n->next)
    n->index = 0; /* 1: in its place */
  while (waiting) {
    CUgraphNode *at = &waiting;
    bool some = false;
    while (*at) {
      CUgraphNode n = *at;
      bool ready = true;
      for (size_t i = 0; i < n->after.count && ready; i++)
        ready = n->after.list[i]->index != 0;
      if (!ready) {
        at = &n->next;
        continue;
      }
      *at = n->next;
      n->index = 1;
      n->link = end;
      *end = n;
      end = &n->next;
      some = true;
    }
    if (some) continue;
    *bad = waiting;
    *end = waiting; /* all are in the list still, for the graph to end */
    for (CUgraphNode n = waiting; n; n = n->next) {
      n->link = end;
      end = &n->next;
    }
    g->end = end;
    return false;
  }
  *end = NULL;
  g->end = end;
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->child && !sort_nodes(n->child, bad)) return false;
    for (unsigned i = 0; i < n->body_count; i++)
      if (!sort_nodes(n->bodies[i], bad)) return false;
  }
  return true;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void exec_unref(CUgraphExec e)
{
  if (--e->refs) return;
  if (e->last.stream) sim_stream_unref(e->last.stream);
  sim_graph_end(e->graph);
  if (sim_arena_has(&sim_graphs, e->source) && e->source->id == e->source_id)
    e->source->instances--;
  sim_arena_free(&sim_graph_execs, e);
}

static CUresult check_instantiate(CUgraph g, unsigned long long flags)
{
  const unsigned long long known =
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
      CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  if (!sim_graph_is(g) || flags & ~known || g->capture) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) return CUDA_ERROR_NOT_SUPPORTED;
  /* "Only one instantiation of the graph may exist at any point in time" */
  if (g->instances && sim_graph_has_memory(g)) return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

static CUresult instantiate(CUgraphExec *exec, CUgraph g, unsigned long long flags,
                            CUgraphNode *bad)
{
  *bad = NULL;
  if (!exec) return CUDA_ERROR_INVALID_VALUE;
  SIM_GRAPH_HOLD();
  CUresult error = check_instantiate(g, flags);
  if (error) return error;
  CUgraphExec e = sim_arena_new(&sim_graph_execs);
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  error = sim_graph_clone(g, true, &e->graph);
  if (!error && !sort_nodes(e->graph, bad)) {
    error = CUDA_ERROR_INVALID_VALUE;
    *bad = (*bad)->origin;
    sim_graph_end(e->graph);
  }
  if (error) {
    sim_arena_free(&sim_graph_execs, e);
    return error;
  }
  e->refs = 1;
  e->source = g;
  e->source_id = g->id;
  e->flags = flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
  g->instances++;
  sim_watch_resource(.event = WEIR_WATCH_EXEC_CREATED, .graph = g, .exec = e);
  *exec = e;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph g, unsigned long long flags)
{
  CUgraphNode bad;
  return instantiate(exec, g, flags, &bad);
}

CUresult sim_cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph g, CUgraphNode *bad, char *log,
                                   size_t bytes)
{
  CUgraphNode node;
  CUresult error = instantiate(exec, g, 0, &node);
  if (bad) *bad = node;
  if (log && bytes) *log = 0;
  return error;
}

CUresult sim_cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph g,
                                          CUDA_GRAPH_INSTANTIATE_PARAMS *p, CUstream default_stream)
{
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNode bad;
  CUresult error = instantiate(exec, g, p->flags, &bad);
  p->hErrNode_out = bad;
  p->result_out = !error ? CUDA_GRAPH_INSTANTIATE_SUCCESS
                  : bad  ? CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE
                         : CUDA_GRAPH_INSTANTIATE_ERROR;
  if (error || !(p->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)) return error;
  return sim_cuGraphUpload(*exec, p->hUploadStream ? p->hUploadStream : default_stream);
}

#define NEED_EXEC(e) SIM_NEED(sim_arena_has(&sim_graph_execs, e))

/* Launches that are queued are done all the same. */
CUresult sim_cuGraphExecDestroy(CUgraphExec e)
{
  SIM_GRAPH_HOLD();
  NEED_EXEC(e);
  sim_watch_resource(.event = WEIR_WATCH_EXEC_ENDS, .exec = e);
  __atomic_store_n(&e->magic, 0, __ATOMIC_RELEASE);
  exec_unref(e);
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuGraphExecGetFlags, SIM_GRAPH_HOLD(); NEED_EXEC(hGraphExec);
           SIM_NEED(flags), *flags, hGraphExec->flags)

/* ---- launching ------------------------------------------------------------------------------- */

struct chain { /* operations in the making */
  struct sim_op *first, **end;
};

static bool chain_add(struct chain *c, struct sim_op *op)
{
  if (!op) return false;
  *c->end = op;
  c->end = &op->next;
  return true;
}

static bool allocates(CUgraph g, const struct sim_graph_memory *m)
{
  for (CUgraphNode n = g->first; n; n = n->next)
    if ((n->memory == m && n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) ||
        (n->child && allocates(n->child, m)))
      return true;
  return false;
}

/* Whether the launch can be: nothing allocated or freed twice. */
static CUresult check_memory(CUgraph g, CUgraph whole, bool auto_free)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    CUresult error = n->child ? check_memory(n->child, whole, auto_free) : CUDA_SUCCESS;
    if (error) return error;
    if (!n->memory) continue;
    bool held = sim_graph_memory_is_held(n->memory);
    bool good = n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC
                    ? !held || auto_free
                    : held || allocates(whole, n->memory);
    if (!good) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/* Pages for what it allocates. */
static CUresult claim_memory(CUgraph g, CUstream s, uint64_t number)
{
  CUresult error = CUDA_SUCCESS;
  for (CUgraphNode n = g->first; n && !error; n = n->next) {
    if (n->child) error = claim_memory(n->child, s, number);
    if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
      error = sim_graph_memory_claim(n->memory, s, number);
  }
  return error;
}

static void memory_claimed(CUgraph g, uint64_t number)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->child) memory_claimed(n->child, number);
    if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) sim_graph_memory_claimed(n->memory, number);
  }
}

/* What AUTO_FREE_ON_LAUNCH frees comes before all else. */
static bool add_auto_frees(struct chain *c, CUgraph g, CUstream s)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->child && !add_auto_frees(c, n->child, s)) return false;
    if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC && sim_graph_memory_is_held(n->memory) &&
        !chain_add(c, sim_graph_memory_free_op(n->memory, s)))
      return false;
  }
  return true;
}

/* "Applied at the beginning of each graph execution" */
static bool add_defaults(struct chain *c, CUgraph g)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->child && !add_defaults(c, n->child)) return false;
    if (n->bodies && !chain_add(c, sim_condition_default_op(n))) return false;
    for (unsigned i = 0; n->bodies && i < n->body_count; i++)
      if (!add_defaults(c, n->bodies[i])) return false;
  }
  return true;
}

static struct sim_op *node_op(CUgraphNode n, CUstream s)
{
  if (!n->memory) return sim_node_op(n);
  if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE) return sim_graph_memory_free_op(n->memory, s);
  sim_graph_memory_hold(n->memory, s);
  return sim_graph_memory_map_op(n->memory);
}

static bool add_nodes(struct chain *c, CUgraph g, CUstream s)
{
  for (CUgraphNode n = g->first; n; n = n->next)
    if (n->child ? !add_nodes(c, n->child, s) : !chain_add(c, node_op(n, s))) return false;
  return true;
}

/* For an upload. */
static bool add_maps(struct chain *c, CUgraph g)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->child && !add_maps(c, n->child)) return false;
    if (n->params.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
        !chain_add(c, sim_graph_memory_map_op(n->memory)))
      return false;
  }
  return true;
}

static void drop_end(struct sim_op *op)
{
  SIM_GRAPH_HOLD();
  exec_unref(((struct end_op *)op)->exec);
}

static void describe_graph(const struct sim_op *op, CUstream s, struct weir_watch_work *w)
{
  (void)s;
  w->kind = WEIR_WATCH_GRAPHS;
  w->graph = (uint32_t)((const struct end_op *)op)->exec->graph->id;
  w->began = ((const struct end_op *)op)->began_ns;
}

static void run_begin(struct sim_op *op, CUstream s)
{
  (void)s;
  sim_op_begins(op);
  ((struct begin_op *)op)->end->began_ns = op->began_ns;
}

/* Before all others. */
static bool add_begin(struct chain *c, struct end_op *end)
{
  struct begin_op *op = sim_op_new(sizeof *op, run_begin);
  if (!op) return false;
  op->end = end;
  op->op.next = c->first;
  c->first = &op->op;
  end->op.describe = describe_graph;
  return true;
}

static bool add_end(struct chain *c, CUgraphExec e, bool only_maps)
{
  struct end_op *op = sim_op_new(sizeof *op, NULL);
  if (!op) return false;
  op->exec = e;
  op->op.drop = drop_end;
  e->refs++;
  if (!chain_add(c, &op->op)) return false;
  bool whole = op->op.watched & WEIR_WATCH_GRAPHS && !only_maps;
  return !whole || add_begin(c, op);
}

/* What the graph does, queued; or only what gives it its memory. */
static CUresult queue_graph(CUgraphExec e, CUstream s, bool only_maps)
{
  struct chain c = {NULL, &c.first};
  CUgraph g = e->graph;
  bool made = only_maps ? add_maps(&c, g)
                        : add_auto_frees(&c, g, s) && add_defaults(&c, g) && add_nodes(&c, g, s);
  if (!made || !add_end(&c, e, only_maps)) {
    for (struct sim_op *op = c.first, *next; op; op = next) {
      next = op->next;
      sim_op_free(op);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  uint64_t seq;
  CUresult error = sim_submit_all(s, c.first, &e->last, &seq);
  if (error) return error;
  if (e->last.stream) sim_stream_unref(e->last.stream);
  sim_stream_ref(s);
  e->last = (struct sim_ticket){s, seq};
  return CUDA_SUCCESS;
}

static CUresult launch_exec(CUgraphExec e, CUstream s, bool only_maps)
{
  static uint64_t launches;
  bool auto_free = e->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  CUresult error = sim_queue_barred(s);
  if (!error && !only_maps) error = check_memory(e->graph, e->graph, auto_free);
  if (error) return error;
  uint64_t number = ++launches;
  error = claim_memory(e->graph, s, number);
  if (!error) error = queue_graph(e, s, only_maps);
  memory_claimed(e->graph, number);
  return error;
}

/* In a stream that is captured the graph becomes a child of the one that is made. */
static CUresult capture_launch(CUgraphExec e, CUstream s)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
  if (sim_graph_has_memory(e->graph) || sim_graph_has_conditions(e->graph))
    return CUDA_ERROR_NOT_SUPPORTED;
  CUresult error = sim_graph_clone(e->graph, false, &p.graph.graph);
  if (error) return error;
  p.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  error = sim_capture_add(s, &p);
  if (error) sim_graph_end(p.graph.graph);
  return error;
}

CUresult sim_cuGraphLaunch(CUgraphExec e, CUstream stream)
{
  SIM_FIND_STREAM(s, stream);
  if (!sim_capturing(s)) sim_spend(SIM_COST_GRAPH, 0);
  SIM_GRAPH_HOLD();
  NEED_EXEC(e);
  return sim_capturing(s) ? capture_launch(e, s) : launch_exec(e, s, false);
}

/* All an upload does here is to give the graph its memory. */
CUresult sim_cuGraphUpload(CUgraphExec e, CUstream stream)
{
  SIM_FIND_STREAM(s, stream);
  SIM_GRAPH_HOLD();
  NEED_EXEC(e);
  return launch_exec(e, s, true);
}

/* ---- updating -------------------------------------------------------------------------------- */

/* The same edges, once every node of the graph has its pair in the executable one. */
static bool same_edges(CUgraphNode mine, CUgraphNode other, CUgraphNode *pairs)
{
  if (mine->after.count != other->after.count) return false;
  for (size_t i = 0; i < other->after.count; i++)
    if (!sim_nodes_has(&mine->after, pairs[other->after.list[i]->index])) return false;
  return true;
}

struct update {
  CUgraphExecUpdateResult result;
  CUgraphNode node; /* of the graph, that does not fit */
};

/* Pairs the nodes of `g` with those of `exec`, in an order that keeps both graphs' edges. */
static bool pair_nodes(CUgraph exec, CUgraph g, CUgraphNode *pairs, struct update *u)
{
  CUgraphNode bad;
  u->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  u->node = NULL;
  CUgraph copy = NULL;
  if (exec->count != g->count) return false;
  if (sim_graph_clone(g, true, &copy)) {
    u->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return false;
  }
  bool fits = sort_nodes(copy, &bad);
  CUgraphNode mine = exec->first;
  for (CUgraphNode n = copy->first; n && fits; n = n->next, mine = mine->next)
    pairs[n->origin->index] = mine; /* indices of g are places: sim_graph_clone numbers them */
  for (CUgraphNode n = g->first; n && fits; n = n->next) {
    CUgraphNode pair = pairs[n->index];
    fits = pair->params.type == n->params.type;
    if (!fits) u->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (fits) fits = same_edges(pair, n, pairs);
    if (!fits) u->node = n;
  }
  sim_graph_end(copy);
  return fits;
}

static bool update(CUgraph exec, CUgraph g, struct update *u);

/* A condition's kind stays; its handle and what is in its bodies may be others. */
static bool update_bodies(CUgraphNode mine, CUgraphNode n, struct update *u)
{
  const CUDA_CONDITIONAL_NODE_PARAMS *a = &mine->params.conditional, *b = &n->params.conditional;
  if (a->type != b->type || a->size != b->size || a->ctx != b->ctx) return false;
  for (unsigned i = 0; i < n->body_count; i++)
    if (!update(mine->bodies[i], n->bodies[i], u)) return false;
  sim_condition_take(mine, n);
  return true;
}

static bool update_node(CUgraphNode mine, CUgraphNode n, struct update *u)
{
  u->node = n;
  u->result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  if (n->child) return update(mine->child, n->child, u);
  if (n->bodies) return update_bodies(mine, n, u);
  if (n->memory) return mine->memory == n->memory; /* an allocation is what it is */
  if (n->params.type == CU_GRAPH_NODE_TYPE_KERNEL &&
      n->params.kernel.ctx != mine->params.kernel.ctx) {
    u->result = CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    return false;
  }
  CUgraphNodeParams p = n->params;
  if (n->function) p.kernel.func = n->function;
  return !sim_node_set(mine, &p);
}

static bool update(CUgraph exec, CUgraph g, struct update *u)
{
  CUgraphNode *pairs = calloc(g->count + 1, sizeof(void *));
  u->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  u->node = NULL;
  if (!pairs) return false;
  bool fits = pair_nodes(exec, g, pairs, u);
  for (CUgraphNode n = g->first; n && fits; n = n->next)
    fits = update_node(pairs[n->index], n, u);
  free(pairs);
  return fits;
}

CUresult sim_cuGraphExecUpdate_v2(CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo *info)
{
  SIM_GRAPH_HOLD();
  NEED_EXEC(e);
  if (!sim_graph_is(g) || !info || g->capture) return CUDA_ERROR_INVALID_VALUE;
  struct update u = {0};
  bool fits = update(e->graph, g, &u);
  *info = (CUgraphExecUpdateResultInfo){0};
  if (!fits) {
    info->result = u.result;
    info->errorNode = u.node;
  }
  return fits ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

CUresult sim_cuGraphExecUpdate(CUgraphExec e, CUgraph g, CUgraphNode *bad,
                               CUgraphExecUpdateResult *result)
{
  CUgraphExecUpdateResultInfo info = {CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL};
  CUresult error = sim_cuGraphExecUpdate_v2(e, g, &info);
  if (bad) *bad = info.errorNode;
  if (result) *result = info.result;
  return error;
}

CUresult sim_cuGraphExecChildGraphNodeSetParams(CUgraphExec e, CUgraphNode node, CUgraph child)
{
  SIM_GRAPH_HOLD();
  NEED_EXEC(e);
  if (!sim_node_is(node) || !node->child || !sim_graph_is(child)) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNode mine = e->graph->first;
  while (mine && mine->origin != node)
    mine = mine->next;
  struct update u;
  if (!mine || !update(mine->child, child, &u)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}
