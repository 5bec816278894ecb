/* condition.c: conditional nodes: bodies that run or do not, by a value that kernels set.
 *
 * A *condition* is what a CUgraphConditionalHandle names: its address is the handle, and twins set
 * its value through it (twin.h), as kernels do with cudaGraphSetConditional(). The nodes of a body
 * become operations when the graph is launched, as all nodes do, but these stay with the
 * conditional node's own operation, which runs them on its stream, as often as the value states.
 *
 * A `while` whose body has kernels without twins may have lost the one that would end it: it goes
 * on only as long as somebody sets the value. */
#include "cuda/sim/graph/graph.h"

#include <stdlib.h>

struct sim_condition {
  struct weir_condition is;   /* first: its magic is the arena's */
  _Atomic uint32_t refs;      /* the graph, nodes, operations */
  struct sim_condition *next; /* of the graph */
  CUgraph graph;              /* it was made for; only compared */
  CUcontext context;
  uint32_t initial; /* at each launch, with `assign` */
  bool assign;
  bool used; /* has its node */
};

static struct sim_arena conditions = SIM_ARENA(struct sim_condition, SIM_CONDITION);
_Static_assert((int)SIM_CONDITION == (int)WEIR_CONDITION_MAGIC, "twins know it by its magic");

static void condition_unref(struct sim_condition *c)
{
  if (c && atomic_fetch_sub(&c->refs, 1) == 1) sim_arena_free(&conditions, c);
}

static uint32_t condition_value(const struct sim_condition *c)
{
  return __atomic_load_n(&c->is.value, __ATOMIC_RELAXED);
}

void sim_conditions_end(CUgraph g)
{
  for (struct sim_condition *c = g->conditions, *next; c; c = next) {
    next = c->next;
    condition_unref(c);
  }
  g->conditions = NULL;
}

CUresult sim_cuGraphConditionalHandleCreate(CUgraphConditionalHandle *handle, CUgraph g,
                                            CUcontext context, unsigned int initial,
                                            unsigned int flags)
{
  if (!handle || flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  if (!context) context = sim_current();
  if (!context || sim_context_check(context)) return CUDA_ERROR_INVALID_VALUE;
  SIM_GRAPH_HOLD();
  if (!sim_graph_is(g)) return CUDA_ERROR_INVALID_VALUE;
  struct sim_condition *c = sim_arena_new(&conditions);
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_store(&c->refs, 1);
  c->graph = g;
  c->context = context;
  c->initial = initial;
  c->assign = flags != 0;
  c->next = g->conditions;
  g->conditions = c;
  *handle = (CUgraphConditionalHandle)(uintptr_t)c;
  return CUDA_SUCCESS;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool allowed_type(CUgraphNodeType type)
{
  return type <= CU_GRAPH_NODE_TYPE_MEMSET || type == CU_GRAPH_NODE_TYPE_GRAPH ||
         type == CU_GRAPH_NODE_TYPE_EMPTY || type == CU_GRAPH_NODE_TYPE_CONDITIONAL;
}

static bool all_allowed(CUgraph g)
{
  for (CUgraphNode n = g->first; n; n = n->next)
    if (!allowed_type(n->params.type) || (n->child && !all_allowed(n->child))) return false;
  return true;
}

/* "Allowed node types are kernel nodes, empty nodes, child graphs, memsets, memcopies, and
 * conditionals. This applies recursively to child graphs and conditional bodies." */
CUresult sim_body_allows(CUgraph g, const CUgraphNodeParams *p)
{
  while (g->parent && !g->parent->bodies)
    g = g->parent->graph;
  if (!g->parent) return CUDA_SUCCESS;
  bool good = allowed_type(p->type);
  if (good && p->type == CU_GRAPH_NODE_TYPE_GRAPH && sim_graph_is(p->graph.graph))
    good = all_allowed(p->graph.graph);
  return good ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

bool sim_graph_has_conditions(CUgraph g)
{
  for (CUgraphNode n = g->first; n; n = n->next)
    if (n->bodies || (n->child && sim_graph_has_conditions(n->child))) return true;
  return false;
}

static bool size_is_legal(const CUDA_CONDITIONAL_NODE_PARAMS *p)
{
  switch ((int)p->type) {
  case CU_GRAPH_COND_TYPE_IF:
    return p->size == 1 || p->size == 2;
  case CU_GRAPH_COND_TYPE_WHILE:
    return p->size == 1;
  case CU_GRAPH_COND_TYPE_SWITCH:
    return p->size > 0 && p->size <= 1 << 20;
  default:
    return false;
  }
}

/* "must be associated with a conditional node in this graph or one of its children" */
static struct sim_condition *condition_for(CUgraph g, CUgraphConditionalHandle handle)
{
  struct sim_condition *c = (struct sim_condition *)(uintptr_t)handle;
  if (!sim_arena_has(&conditions, c) || c->used) return NULL;
  while (g != c->graph && g->parent)
    g = g->parent->graph;
  return g == c->graph ? c : NULL;
}

/* Room for the node's bodies, none there yet. */
static CUresult bodies_new(CUgraphNode n, struct sim_condition *c, unsigned count)
{
  n->bodies = calloc(count, sizeof(void *));
  if (!n->bodies) return CUDA_ERROR_OUT_OF_MEMORY;
  n->body_count = count;
  n->condition = c;
  atomic_fetch_add(&c->refs, 1);
  n->params.conditional.phGraph_out = n->bodies;
  return CUDA_SUCCESS;
}

CUresult sim_condition_keep(CUgraphNode n, CUDA_CONDITIONAL_NODE_PARAMS *p)
{
  struct sim_condition *c = condition_for(n->graph, p->handle);
  if (!c || !size_is_legal(p) || (p->ctx && p->ctx != c->context)) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = bodies_new(n, c, p->size);
  for (unsigned i = 0; i < p->size && !error; i++) {
    n->bodies[i] = sim_graph_new();
    if (n->bodies[i])
      n->bodies[i]->parent = n;
    else
      error = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (error) return error;
  c->used = true;
  p->ctx = n->params.conditional.ctx = c->context;
  p->phGraph_out = n->bodies;
  return CUDA_SUCCESS;
}

CUresult sim_condition_clone(CUgraphNode from, CUgraphNode n, bool exec)
{
  if (!exec) return CUDA_ERROR_NOT_SUPPORTED; /* two graphs would share a handle */
  CUresult error = bodies_new(n, from->condition, from->body_count);
  for (unsigned i = 0; i < n->body_count && !error; i++) {
    error = sim_graph_clone(from->bodies[i], exec, &n->bodies[i]);
    if (!error) n->bodies[i]->parent = n;
  }
  return error;
}

/* "Conditional handle flags and default values are updated as part of the graph update." */
void sim_condition_take(CUgraphNode n, CUgraphNode from)
{
  atomic_fetch_add(&from->condition->refs, 1);
  condition_unref(n->condition);
  n->condition = from->condition;
  n->params.conditional.handle = from->params.conditional.handle;
}

void sim_condition_let_go(CUgraphNode n)
{
  for (unsigned i = 0; i < n->body_count; i++)
    if (n->bodies[i]) {
      n->bodies[i]->parent = NULL;
      sim_graph_end(n->bodies[i]);
    }
  free(n->bodies);
  condition_unref(n->condition);
  n->bodies = NULL;
  n->body_count = 0;
  n->condition = NULL;
}

/* ---- running --------------------------------------------------------------------------------- */

struct body {
  struct sim_op *first, **end;
  bool skips; /* a kernel in it has no twin */
};

struct condition_op {
  struct sim_op op;
  struct sim_condition *condition; /* referenced */
  CUgraphConditionalNodeType type;
  unsigned count;
  struct body *bodies;
};

static bool goes_on(CUstream s)
{
  return !atomic_load(&s->context->error);
}

static void run_body(struct body *b, CUstream s)
{
  for (struct sim_op *op = b->first; op && goes_on(s); op = op->next)
    sim_run_op(op, s);
}

static void run_while(struct condition_op *w, CUstream s)
{
  static _Atomic bool reported;
  struct sim_condition *c = w->condition;
  while (condition_value(c) && goes_on(s)) {
    uint32_t sets = __atomic_load_n(&c->is.sets, __ATOMIC_RELAXED);
    run_body(w->bodies, s);
    if (!w->bodies->skips || sets != __atomic_load_n(&c->is.sets, __ATOMIC_RELAXED)) continue;
    sim_print_once(&reported,
                   "weir sim: a graph's while loop lost kernels that have no host twin, and "
                   "nobody set its condition: ended");
    return;
  }
}

static void run_condition(struct sim_op *op, CUstream s)
{
  struct condition_op *c = (struct condition_op *)op;
  uint32_t value = condition_value(c->condition);
  if (c->type == CU_GRAPH_COND_TYPE_WHILE)
    run_while(c, s);
  else if (c->type == CU_GRAPH_COND_TYPE_SWITCH && value < c->count)
    run_body(&c->bodies[value], s);
  else if (c->type == CU_GRAPH_COND_TYPE_IF && (value || c->count == 2))
    run_body(&c->bodies[value ? 0 : 1], s);
}

static void drop_condition(struct sim_op *op)
{
  struct condition_op *c = (struct condition_op *)op;
  for (unsigned i = 0; i < c->count; i++)
    for (struct sim_op *o = c->bodies[i].first, *next; o; o = next) {
      next = o->next;
      sim_op_free(o);
    }
  free(c->bodies);
  condition_unref(c->condition);
}

static bool fill_body(struct body *b, CUgraph g)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->child) {
      if (!fill_body(b, n->child)) return false;
      continue;
    }
    struct sim_op *op = sim_node_op(n);
    if (!op) return false;
    *b->end = op;
    b->end = &op->next;
    if (n->params.type == CU_GRAPH_NODE_TYPE_KERNEL && !n->disabled) b->skips |= !op->run;
    for (unsigned i = 0; i < n->body_count; i++)
      b->skips |= ((struct condition_op *)op)->bodies[i].skips;
  }
  return true;
}

struct sim_op *sim_condition_op(CUgraphNode n)
{
  struct condition_op *c = sim_op_new(sizeof *c, run_condition);
  if (!c) return NULL;
  c->op.drop = drop_condition;
  c->condition = n->condition;
  atomic_fetch_add(&c->condition->refs, 1);
  c->type = n->params.conditional.type;
  c->bodies = calloc(n->body_count, sizeof *c->bodies);
  bool whole = c->bodies != NULL;
  for (unsigned i = 0; i < n->body_count && whole; i++) {
    c->bodies[i].end = &c->bodies[i].first;
    c->count = i + 1;
    whole = fill_body(&c->bodies[i], n->bodies[i]);
  }
  if (whole) return &c->op;
  sim_op_free(&c->op);
  return NULL;
}

/* ---- default values, at the beginning of a launch -------------------------------------------- */

struct defaults_op {
  struct sim_op op;
  struct sim_condition *condition; /* referenced */
};

static void run_default(struct sim_op *op, CUstream s)
{
  struct sim_condition *c = ((struct defaults_op *)op)->condition;
  (void)s;
  __atomic_store_n(&c->is.value, c->initial, __ATOMIC_RELAXED);
}

static void drop_default(struct sim_op *op)
{
  condition_unref(((struct defaults_op *)op)->condition);
}

struct sim_op *sim_condition_default_op(CUgraphNode n)
{
  struct defaults_op *op = sim_op_new(sizeof *op, n->condition->assign ? run_default : NULL);
  if (!op) return NULL;
  op->condition = n->condition;
  atomic_fetch_add(&n->condition->refs, 1);
  op->op.drop = drop_default;
  return &op->op;
}
