/* graph.c: graphs: their life, their edges, what can be asked of them, and user objects.
 *
 * An edge has no data of its own here: data that is not zero is refused. That a graph has no cycle
 * is found when it is instantiated. */
#include "cuda/sim/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_arena sim_graphs = SIM_ARENA(struct CUgraph_st, SIM_GRAPH);
struct sim_arena sim_user_objects = SIM_ARENA(struct CUuserObject_st, SIM_USER_OBJECT);

static pthread_mutex_t graph_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static unsigned depth;      /* how often its holder has taken it */
static CUuserObject doomed; /* user objects whose last reference went */
static uint64_t next_id = 1;

/* ---- the lock -------------------------------------------------------------------------------- */

void sim_graph_enter(void)
{
  pthread_mutex_lock(&graph_lock);
  depth++;
}

static void destroy_users(CUuserObject list)
{
  struct sim_thread *t = sim_self;
  for (CUuserObject next; list; list = next) {
    next = list->next;
    uint32_t gate = t ? t->gate : 0;
    if (t) t->gate = SIM_GATE_CALLBACK; /* "Destructor callbacks cannot make CUDA API calls" */
    list->destroy(list->data);
    if (t) t->gate = gate;
    sim_arena_free(&sim_user_objects, list);
  }
}

void sim_graph_leave(void)
{
  CUuserObject list = NULL;
  if (!--depth) {
    list = doomed;
    doomed = NULL;
  }
  pthread_mutex_unlock(&graph_lock);
  destroy_users(list);
}

/* ---- user objects ---------------------------------------------------------------------------- */

static void user_unref(CUuserObject o, unsigned count)
{
  o->refs -= count;
  if (o->refs) return;
  o->next = doomed;
  doomed = o;
}

static CUresult user_ref(CUgraph g, CUuserObject o, unsigned count)
{
  struct sim_user_reference *r = g->users;
  while (r && r->object != o)
    r = r->next;
  if (!r) {
    r = calloc(1, sizeof *r);
    if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
    r->object = o;
    r->next = g->users;
    g->users = r;
  }
  r->count += count;
  o->refs += count;
  return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectCreate(CUuserObject *object, void *data, CUhostFn destroy,
                                unsigned int refs, unsigned int flags)
{
  if (!object || !destroy || !refs || refs > INT32_MAX ||
      flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  CUuserObject o = sim_arena_new(&sim_user_objects);
  if (!o) return CUDA_ERROR_OUT_OF_MEMORY;
  o->refs = refs;
  o->destroy = destroy;
  o->data = data;
  *object = o;
  return CUDA_SUCCESS;
}

static bool user_is(CUuserObject o, unsigned count)
{
  return sim_arena_has(&sim_user_objects, o) && o->refs && count && count <= INT32_MAX;
}

CUresult sim_cuUserObjectRetain(CUuserObject o, unsigned int count)
{
  SIM_GRAPH_HOLD();
  if (!user_is(o, count)) return CUDA_ERROR_INVALID_VALUE;
  o->refs += count;
  return CUDA_SUCCESS;
}

CUresult sim_cuUserObjectRelease(CUuserObject o, unsigned int count)
{
  SIM_GRAPH_HOLD();
  if (!user_is(o, count) || count > o->refs) return CUDA_ERROR_INVALID_VALUE;
  user_unref(o, count);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphRetainUserObject(CUgraph g, CUuserObject o, unsigned int count,
                                     unsigned int flags)
{
  SIM_GRAPH_HOLD();
  if (!sim_graph_is(g) || !user_is(o, count) || flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult error = user_ref(g, o, count);
  if (!error && flags) user_unref(o, count);
  return error;
}

CUresult sim_cuGraphReleaseUserObject(CUgraph g, CUuserObject o, unsigned int count)
{
  SIM_GRAPH_HOLD();
  struct sim_user_reference **r = sim_graph_is(g) ? &g->users : NULL;
  while (r && *r && (*r)->object != o)
    r = &(*r)->next;
  if (!r || !*r || !count || count > (*r)->count) return CUDA_ERROR_INVALID_VALUE;
  struct sim_user_reference *found = *r;
  found->count -= count;
  if (!found->count) {
    *r = found->next;
    free(found);
  }
  user_unref(o, count);
  return CUDA_SUCCESS;
}

/* ---- life ------------------------------------------------------------------------------------ */

CUgraph sim_graph_new(void)
{
  CUgraph g = sim_arena_new(&sim_graphs);
  if (!g) return NULL;
  g->id = next_id++;
  g->end = &g->first;
  sim_watch_resource(.event = WEIR_WATCH_GRAPH_CREATED, .graph = g);
  return g;
}

void sim_graph_end(CUgraph g)
{
  sim_watch_resource(.event = WEIR_WATCH_GRAPH_ENDS, .graph = g);
  while (g->first)
    sim_node_end(g->first);
  for (struct sim_user_reference *r = g->users, *next; r; r = next) {
    next = r->next;
    user_unref(r->object, r->count);
    free(r);
  }
  sim_conditions_end(g);
  sim_arena_free(&sim_graphs, g);
}

bool sim_graph_has_memory(CUgraph g)
{
  if (g->owns_memory) return true;
  for (CUgraphNode n = g->first; n; n = n->next)
    if (n->child && sim_graph_has_memory(n->child)) return true;
  return false;
}

/* n's dependencies, in the clone; clones are made in order, and numbered. */
static bool clone_edges(CUgraphNode from, CUgraphNode n, CUgraphNode *clones)
{
  for (size_t i = 0; i < from->after.count; i++)
    if (!sim_nodes_add(&n->after, clones[from->after.list[i]->index])) return false;
  return true;
}

static CUresult clone_into(CUgraph from, bool exec, CUgraph to, CUgraphNode *clones)
{
  uint32_t i = 0;
  CUresult error = CUDA_SUCCESS;
  for (CUgraphNode n = from->first; n && !error; n = n->next) {
    n->index = i;
    error = sim_node_clone(n, to, exec, &clones[i++]);
  }
  for (CUgraphNode n = from->first; n && !error; n = n->next)
    if (!clone_edges(n, clones[n->index], clones)) error = CUDA_ERROR_OUT_OF_MEMORY;
  for (struct sim_user_reference *r = from->users; r && !error; r = r->next)
    error = user_ref(to, r->object, r->count);
  return error;
}

CUresult sim_graph_clone(CUgraph from, bool exec, CUgraph *to)
{
  CUgraph g = sim_graph_new();
  CUgraphNode *clones = calloc(from->count + 1, sizeof(void *));
  CUresult error = g && clones ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  if (!error) {
    g->internal = exec;
    g->owns_memory = from->owns_memory;
    error = clone_into(from, exec, g, clones);
  }
  free(clones);
  if (error && g) sim_graph_end(g);
  if (!error) *to = g;
  if (!error)
    sim_watch_resource(.event = WEIR_WATCH_GRAPH_CLONED, .graph = g, .original_graph = from);
  return error;
}

CUresult sim_cuGraphCreate(CUgraph *graph, unsigned int flags)
{
  if (!graph || flags) return CUDA_ERROR_INVALID_VALUE;
  SIM_GRAPH_HOLD();
  CUgraph g = sim_graph_new();
  if (g) *graph = g;
  return g ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A child graph is its node's, and one that is captured into its stream's. */
CUresult sim_cuGraphDestroy(CUgraph g)
{
  SIM_GRAPH_HOLD();
  if (!sim_graph_is(g) || g->parent || g->capture) return CUDA_ERROR_INVALID_VALUE;
  sim_graph_end(g);
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphClone(CUgraph *clone, CUgraph from)
{
  SIM_GRAPH_HOLD();
  if (!clone || !sim_graph_is(from)) return CUDA_ERROR_INVALID_VALUE;
  if (sim_graph_has_memory(from) || sim_graph_has_conditions(from)) return CUDA_ERROR_NOT_SUPPORTED;
  return sim_graph_clone(from, false, clone);
}

static CUgraphNode clone_of(CUgraph g, CUgraphNode original)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->origin == original) return n;
    CUgraphNode inside = n->child ? clone_of(n->child, original) : NULL;
    if (inside) return inside;
  }
  return NULL;
}

CUresult sim_cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
  SIM_GRAPH_HOLD();
  CUgraphNode found = NULL;
  if (node && sim_node_is(original) && sim_graph_is(clone)) found = clone_of(clone, original);
  if (found) *node = found;
  return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- nodes and edges ------------------------------------------------------------------------- */

CUresult sim_cuGraphDestroyNode(CUgraphNode node)
{
  SIM_GRAPH_HOLD();
  if (!sim_node_is(node) || node->graph->capture) return CUDA_ERROR_INVALID_VALUE;
  if (node->graph->owns_memory) return CUDA_ERROR_NOT_SUPPORTED;
  for (CUgraphNode n = node->graph->first; n; n = n->next) {
    size_t kept = 0;
    for (size_t i = 0; i < n->after.count; i++)
      if (n->after.list[i] != node) n->after.list[kept++] = n->after.list[i];
    n->after.count = kept;
  }
  sim_node_end(node);
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuGraphNodeGetType, SIM_GRAPH_HOLD();
           SIM_NEED(type && sim_node_is(hNode)), *type, hNode->params.type)

/* A list as CUDA gives it: the first *count of `all`, the rest of the room NULL; the count becomes
 * what there was. */
struct out {
  CUgraphNode *list;
  size_t room, count;
};

static void put_node(struct out *o, CUgraphNode n)
{
  if (o->list && o->count < o->room) o->list[o->count] = n;
  o->count++;
}

static void put_end(struct out *o, size_t *count)
{
  for (size_t i = o->count; o->list && i < o->room; i++)
    o->list[i] = NULL;
  *count = o->list && o->count > o->room ? o->room : o->count;
}

static CUresult list_nodes(CUgraph g, CUgraphNode *nodes, size_t *count, bool roots)
{
  SIM_GRAPH_HOLD();
  if (!count || !sim_graph_is(g)) return CUDA_ERROR_INVALID_VALUE;
  struct out o = {nodes, *count, 0};
  for (CUgraphNode n = g->first; n; n = n->next)
    if (!roots || !n->after.count) put_node(&o, n);
  put_end(&o, count);
  return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphGetNodes, list_nodes(hGraph, nodes, numNodes, false))
SIM_ENTRY(cuGraphGetRootNodes, list_nodes(hGraph, rootNodes, numRootNodes, true))

static void clear_data(CUgraphEdgeData *data, size_t count)
{
  if (data) memset(data, 0, count * sizeof *data);
}

CUresult sim_cuGraphGetEdges_v2(CUgraph g, CUgraphNode *from, CUgraphNode *to,
                                CUgraphEdgeData *data, size_t *count)
{
  SIM_GRAPH_HOLD();
  if (!count || !sim_graph_is(g) || !from != !to || (data && !from))
    return CUDA_ERROR_INVALID_VALUE;
  struct out a = {from, *count, 0}, b = {to, *count, 0};
  for (CUgraphNode n = g->first; n; n = n->next)
    for (size_t i = 0; i < n->after.count; i++) {
      put_node(&a, n->after.list[i]);
      put_node(&b, n);
    }
  put_end(&a, count);
  put_end(&b, count);
  clear_data(data, *count);
  return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphGetEdges, sim_cuGraphGetEdges_v2(hGraph, from, to, NULL, numEdges))

CUresult sim_cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *list,
                                           CUgraphEdgeData *data, size_t *count)
{
  SIM_GRAPH_HOLD();
  if (!count || !sim_node_is(node) || (data && !list)) return CUDA_ERROR_INVALID_VALUE;
  struct out o = {list, *count, 0};
  for (size_t i = 0; i < node->after.count; i++)
    put_node(&o, node->after.list[i]);
  put_end(&o, count);
  clear_data(data, *count);
  return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphNodeGetDependencies,
          sim_cuGraphNodeGetDependencies_v2(hNode, dependencies, NULL, numDependencies))

CUresult sim_cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *list,
                                             CUgraphEdgeData *data, size_t *count)
{
  SIM_GRAPH_HOLD();
  if (!count || !sim_node_is(node) || (data && !list)) return CUDA_ERROR_INVALID_VALUE;
  struct out o = {list, *count, 0};
  for (CUgraphNode n = node->graph->first; n; n = n->next)
    if (sim_nodes_has(&n->after, node)) put_node(&o, n);
  put_end(&o, count);
  clear_data(data, *count);
  return CUDA_SUCCESS;
}

SIM_ENTRY(cuGraphNodeGetDependentNodes,
          sim_cuGraphNodeGetDependentNodes_v2(hNode, dependentNodes, NULL, numDependentNodes))

static bool data_is_plain(const CUgraphEdgeData *data, size_t count)
{
  static const CUgraphEdgeData none;
  for (size_t i = 0; data && i < count; i++)
    if (memcmp(&data[i], &none, sizeof none) != 0) return false;
  return true;
}

/* All edges must be sound before one is changed. */
static CUresult check_edges(CUgraph g, const CUgraphNode *from, const CUgraphNode *to, size_t count,
                            bool there)
{
  if (!sim_graph_is(g) || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    if (!sim_node_is(from[i]) || !sim_node_is(to[i]) || from[i]->graph != g || to[i]->graph != g ||
        from[i] == to[i] || sim_nodes_has(&to[i]->after, from[i]) != there)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphAddDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                       const CUgraphEdgeData *data, size_t count)
{
  if (!data_is_plain(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
  SIM_GRAPH_HOLD();
  CUresult error = check_edges(g, from, to, count, false);
  for (size_t i = 0; i < count && !error; i++)
    if (!sim_nodes_add(&to[i]->after, from[i])) error = CUDA_ERROR_OUT_OF_MEMORY;
  return error;
}

SIM_ENTRY(cuGraphAddDependencies,
          sim_cuGraphAddDependencies_v2(hGraph, from, to, NULL, numDependencies))

CUresult sim_cuGraphRemoveDependencies_v2(CUgraph g, const CUgraphNode *from, const CUgraphNode *to,
                                          const CUgraphEdgeData *data, size_t count)
{
  if (!data_is_plain(data, count)) return CUDA_ERROR_INVALID_VALUE; /* no such edge */
  SIM_GRAPH_HOLD();
  CUresult error = check_edges(g, from, to, count, true);
  if (!error && g->owns_memory) error = CUDA_ERROR_NOT_SUPPORTED;
  for (size_t i = 0; i < count && !error; i++) {
    struct sim_nodes *set = &to[i]->after;
    size_t at = 0;
    while (at < set->count && set->list[at] != from[i])
      at++;
    if (at < set->count)
      memmove(&set->list[at], &set->list[at + 1], (--set->count - at) * sizeof(void *));
  }
  return error;
}

SIM_ENTRY(cuGraphRemoveDependencies,
          sim_cuGraphRemoveDependencies_v2(hGraph, from, to, NULL, numDependencies))

/* ---- DOT ------------------------------------------------------------------------------------- */

static const char *const type_names[] = {
    "KERNEL",       "MEMCPY",       "MEMSET",           "HOST",           "GRAPH",     "EMPTY",
    "EVENT_WAIT",   "EVENT_RECORD", "EXT_SEMAS_SIGNAL", "EXT_SEMAS_WAIT", "MEM_ALLOC", "MEM_FREE",
    "BATCH_MEM_OP", "CONDITIONAL"};

static void dot_graph(FILE *f, CUgraph g)
{
  (void)fprintf(f, "subgraph cluster_%llu {\nlabel=\"graph_%llu\"\n", (unsigned long long)g->id,
                (unsigned long long)g->id);
  uint32_t i = 0;
  for (CUgraphNode n = g->first; n; n = n->next)
    n->index = i++;
  for (CUgraphNode n = g->first; n; n = n->next) {
    const char *name = NULL;
    if (n->function) sim_cuFuncGetName(&name, n->function);
    (void)fprintf(f, "\"graph_%llu_node_%u\" [shape=\"%s\" label=\"%u\\n%s%s%s\"]\n",
                  (unsigned long long)g->id, n->index, n->child ? "octagon" : "rectangle", n->index,
                  type_names[n->params.type], name ? "\\n" : "", name ? name : "");
    for (size_t d = 0; d < n->after.count; d++)
      (void)fprintf(f, "\"graph_%llu_node_%u\" -> \"graph_%llu_node_%u\"\n",
                    (unsigned long long)g->id, n->after.list[d]->index, (unsigned long long)g->id,
                    n->index);
    if (n->child) dot_graph(f, n->child);
  }
  (void)fprintf(f, "}\n");
}

/* What is asked for in detail by `flags` is left out but for the kernels' names. */
CUresult sim_cuGraphDebugDotPrint(CUgraph g, const char *path, unsigned int flags)
{
  (void)flags;
  SIM_GRAPH_HOLD();
  if (!sim_graph_is(g) || !path) return CUDA_ERROR_INVALID_VALUE;
  FILE *f = fopen(path, "we");
  if (!f) return CUDA_ERROR_OPERATING_SYSTEM;
  (void)fprintf(f, "digraph dot {\n");
  dot_graph(f, g);
  (void)fprintf(f, "}\n");
  return fclose(f) ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}
