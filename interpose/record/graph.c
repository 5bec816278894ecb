/* graph.c: see graph.h. A *walk* reads a graph and writes its nodes as GRAPH records, a buffer at
 * a time; a child graph's nodes, and those of a conditional node's bodies, follow the node that
 * they are in. What could not be read has no last record: the trace then records that the graph's
 * contents are not known, instead of too little. */
#include "interpose/record/graph.h"

#include "core/base/pages.h"
#include "interpose/record/access.h"
#include "interpose/record/device_memory.h"
#include "interpose/record/extract.h"
#include "interpose/record/hash_table.h"
#include "interpose/record/names.h"
#include "interpose/record/subscriber.h"

enum { BUFFERED = 32, DEEPEST = 32 };

typedef struct graph_walk {
  hook_call *call;
  uint64_t exec, graph;
  graph_fact fact;  /* of the next record */
  uint64_t written; /* nodes in records before */
  unsigned count;   /* nodes that wait */
  unsigned depth;   /* of graphs within graphs */
  bool failed;      /* something could not be read, or not be written */
  bool conditional; /* in a body */
  graph_node_info node[BUFFERED];
} graph_walk;

/* Conditional nodes: x, the driver's array of their bodies, y: how many and, from bit 32 on, the
 * age. It is the driver's only word on them (CUDA_CONDITIONAL_NODE_PARAMS), and holds as long as
 * the node: nobody reports when that goes with its graph, so that every end of one begins a new
 * age, in which no array of an earlier one is looked into. */
static hash_table conditionals;
static _Atomic uint32_t conditional_age;

static void walk_graph(graph_walk *w, CUgraph graph, uint64_t parent);

/* ---- records --------------------------------------------------------------------------------- */

static void write_nodes(graph_walk *w, bool last)
{
  bool first = w->fact != WEIR_GRAPH_MORE;
  trace_event head = {.start = w->call->end,
                      .a = w->exec,
                      .b = first ? w->graph : w->written,
                      .graph_fact = (uint8_t)w->fact,
                      .mem = last && !w->failed};
  if (!w->failed && !spool_writer_extended(&w->call->thread->writer, WEIR_EV_GRAPH, &head, w->node,
                                           w->count * sizeof w->node[0]))
    w->failed = true;
  w->fact = WEIR_GRAPH_MORE;
  w->written += w->count;
  w->count = 0;
}

static void add_node(graph_walk *w, uint64_t node, uint64_t parent, unsigned type,
                     const event_fields *e)
{
  if (w->count == BUFFERED) write_nodes(w, false);
  w->node[w->count++] = (graph_node_info){.node = node,
                                          .parent = parent,
                                          .a = e->a,
                                          .b = e->b,
                                          .bytes = e->bytes,
                                          .type = (uint8_t)type,
                                          .copy = (uint8_t)event_get_copy_kind(e),
                                          .mem = (uint8_t)e->mem,
                                          .device = (uint8_t)e->device,
                                          .src_device = (uint8_t)e->src_device,
                                          .conditional = w->conditional};
}

/* ---- one node -------------------------------------------------------------------------------- */

static void describe_kernel(hook_call *c, const CUDA_KERNEL_NODE_PARAMS_v2 *k, event_fields *e)
{
  uint64_t threads = (uint64_t)k->blockDimX * k->blockDimY * k->blockDimZ;
  e->a = (uint64_t)(uintptr_t)k->func;
  if (k->func)
    kernel_name_launch(c, e->a);
  else
    kernel_name_of_kernel(c, e->a = (uint64_t)(uintptr_t)k->kern, (uint64_t)(uintptr_t)k->kern);
  e->b =
      k->gridDimX | (uint64_t)(k->gridDimY & 0xffff) << 32 | (uint64_t)(k->gridDimZ & 0xffff) << 48;
  e->bytes = (uint64_t)k->gridDimX * k->gridDimY * k->gridDimZ * threads;
  e->device = c->thread->last_device;
  event_set_access(e, access_find_node_set(c, k));
}

static CUDA_KERNEL_NODE_PARAMS_v2 kernel_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *k)
{
  return (CUDA_KERNEL_NODE_PARAMS_v2){.func = k->func,
                                      .gridDimX = k->gridDimX,
                                      .gridDimY = k->gridDimY,
                                      .gridDimZ = k->gridDimZ,
                                      .blockDimX = k->blockDimX,
                                      .blockDimY = k->blockDimY,
                                      .blockDimZ = k->blockDimZ,
                                      .kernelParams = k->kernelParams,
                                      .extra = k->extra};
}

static void describe_copy(const hook_call *c, const CUDA_MEMCPY3D *p, event_fields *e)
{
  copy_args a = copy_args_3d(p, 0, false);
  copy_describe(c, &a, e);
}

static void describe_memset(const hook_call *c, const CUDA_MEMSET_NODE_PARAMS *p, event_fields *e)
{
  uint64_t rows = p->height ? p->height : 1;
  memset_describe(c, p->dst, (uint64_t)p->elementSize * p->width * rows, e);
  e->b = p->value;
}

static void describe_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS *p, event_fields *e)
{
  const CUmemLocation *where = &p->poolProps.location;
  bool known = where->type == CU_MEM_LOCATION_TYPE_DEVICE && where->id >= 0 &&
               where->id < (int)WEIR_DEVICE_NONE;
  e->a = p->dptr;
  e->bytes = p->bytesize;
  e->mem = WEIR_MEM_DEVICE;
  e->device = known ? (uint8_t)where->id : WEIR_DEVICE_NONE;
}

static event_fields plain_node(void)
{
  return (event_fields){.device = WEIR_DEVICE_NONE, .src_device = WEIR_DEVICE_NONE};
}

/* Whether the driver has the function and it succeeds: it writes a node's parameters to *out. */
#define ASK_NODE(symbol, node, out)                                                                \
  (WEIR_HELPER(symbol) && WEIR_HELPER(symbol)(node, out) == CUDA_SUCCESS)

/* Each fills the event of a node of that type; false: the driver does not answer. */
static bool ask_kernel(hook_call *c, CUgraphNode n, event_fields *e)
{
  CUDA_KERNEL_NODE_PARAMS_v2 k = {0};
  CUDA_KERNEL_NODE_PARAMS_v1 old = {0};
  if (!ASK_NODE(cuGraphKernelNodeGetParams_v2, n, &k)) {
    if (!ASK_NODE(cuGraphKernelNodeGetParams, n, &old)) return false;
    k = kernel_of_v1(&old);
  }
  describe_kernel(c, &k, e);
  return true;
}

static bool ask_copy(const hook_call *c, CUgraphNode n, event_fields *e)
{
  CUDA_MEMCPY3D p = {0};
  if (!ASK_NODE(cuGraphMemcpyNodeGetParams, n, &p)) return false;
  describe_copy(c, &p, e);
  return true;
}

static bool ask_memset(const hook_call *c, CUgraphNode n, event_fields *e)
{
  CUDA_MEMSET_NODE_PARAMS p = {0};
  if (!ASK_NODE(cuGraphMemsetNodeGetParams, n, &p)) return false;
  describe_memset(c, &p, e);
  return true;
}

static bool ask_alloc(CUgraphNode n, event_fields *e)
{
  CUDA_MEM_ALLOC_NODE_PARAMS p = {0};
  if (!ASK_NODE(cuGraphMemAllocNodeGetParams, n, &p)) return false;
  describe_alloc(&p, e);
  device_memory_has_graphs();
  return true;
}

static bool ask_free(CUgraphNode n, event_fields *e)
{
  CUdeviceptr at = 0;
  if (!ASK_NODE(cuGraphMemFreeNodeGetParams, n, &at)) return false;
  e->a = at;
  return true;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static bool walk_child(graph_walk *w, CUgraphNode n)
{
  CUgraph child = NULL;
  if (!ASK_NODE(cuGraphChildGraphNodeGetGraph, n, &child)) return false;
  walk_graph(w, child, (uint64_t)(uintptr_t)n);
  return true;
}

/* The bodies of a node that was not seen being made stay unknown: the node itself is counted. */
static void walk_bodies(graph_walk *w, CUgraphNode n)
{
  const hash_entry *known = hash_table_find(&conditionals, (uint64_t)(uintptr_t)n);
  bool outer = w->conditional;
  uint64_t made = known ? atomic_load_explicit(&known->y, memory_order_acquire) : 0;
  uint64_t count = made >> 32 == atomic_load(&conditional_age) ? (uint32_t)made : 0;
  CUgraph *body = count ? (CUgraph *)(uintptr_t)atomic_load(&known->x) : NULL;
  w->conditional = true;
  for (uint64_t i = 0; body && i < count; i++)
    walk_graph(w, body[i], (uint64_t)(uintptr_t)n);
  w->conditional = outer;
}

static bool describe_node(graph_walk *w, CUgraphNode n, CUgraphNodeType type, event_fields *e)
{
  switch (type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return ask_kernel(w->call, n, e);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return ask_copy(w->call, n, e);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return ask_memset(w->call, n, e);
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    return ask_alloc(n, e);
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    return ask_free(n, e);
  default:
    return true;
  }
}

static bool walk_node(graph_walk *w, CUgraphNode n, uint64_t parent)
{
  PFN_cuGraphNodeGetType_v10000 ask = WEIR_HELPER(cuGraphNodeGetType);
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  event_fields e = plain_node();
  if (!ask || ask(n, &type) != CUDA_SUCCESS || !describe_node(w, n, type, &e)) return false;
  add_node(w, (uint64_t)(uintptr_t)n, parent, (unsigned)type, &e);
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) return walk_child(w, n);
  if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) walk_bodies(w, n);
  return true;
}

static void walk_graph(graph_walk *w, CUgraph graph, uint64_t parent)
{
  PFN_cuGraphGetNodes_v10000 ask = WEIR_HELPER(cuGraphGetNodes);
  size_t count = 0, room;
  if (!ask || !graph || ++w->depth > DEEPEST || ask(graph, NULL, &count) != CUDA_SUCCESS)
    w->failed = true;
  if (w->failed || !count) {
    w->depth--;
    return;
  }
  CUgraphNode *node = pages_alloc(count * sizeof(CUgraphNode));
  room = count;
  if (!node || ask(graph, node, &count) != CUDA_SUCCESS || count > room) w->failed = true;
  for (size_t i = 0; !w->failed && i < count; i++)
    if (!walk_node(w, node[i], parent)) w->failed = true;
  if (node) (void)munmap(node, room * sizeof(CUgraphNode));
  w->depth--;
}

/* The calls have committed their event: what follows is no part of its time. */
static void record_graph(hook_call *c, graph_fact fact, uint64_t exec, uint64_t graph)
{
  graph_walk w;
  w.call = c, w.exec = exec, w.graph = graph, w.fact = fact;
  w.written = 0, w.count = 0, w.depth = 0, w.failed = false, w.conditional = false;
  capture_relaxed mode = {0};
  if (graph && capture_live()) mode = capture_relax();
  walk_graph(&w, (CUgraph)(uintptr_t)graph, 0);
  if (mode.changed) capture_relax_end(&mode);
  write_nodes(&w, true);
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* What the graph does may touch any memory that is live now. */
void extract_graph(hook_call *c, extract_word graph, extract_word other)
{
  if (c->status == 0) record_subscriber_now()->graph_made(true);
  extract_call(c, graph, other, 0, WEIR_NO_STREAM);
}

void extract_graph_add(hook_call *c, extract_word graph, extract_word node,
                       const CUgraphNodeParams *params)
{
  extract_graph(c, graph, node);
  if (c->status || !node || !params || params->type != CU_GRAPH_NODE_TYPE_CONDITIONAL) return;
  const CUDA_CONDITIONAL_NODE_PARAMS *p = &params->conditional;
  hash_table_put(&conditionals, node, (uint64_t)(uintptr_t)p->phGraph_out,
                 (uint64_t)atomic_load(&conditional_age) << 32 | p->size);
}

/* Before the end of a graph or a node: from then on its handles may be others'. */
void extract_graph_end_before(hook_call *c, extract_word graph)
{
  (void)c, (void)graph;
  atomic_fetch_add(&conditional_age, 1);
}

void extract_graph_end(hook_call *c, extract_word graph)
{
  extract_call(c, graph, 0, 0, WEIR_NO_STREAM);
}

void extract_graph_instantiate(hook_call *c, extract_word graph, extract_word exec)
{
  extract_graph(c, graph, exec);
  if (exec) record_graph(c, WEIR_GRAPH_MADE, exec, graph);
}

void extract_graph_update(hook_call *c, extract_word exec, extract_word graph)
{
  extract_graph(c, exec, graph);
  if (c->status == 0) record_graph(c, WEIR_GRAPH_UPDATED, exec, graph);
}

static void record_fact(hook_call *c, graph_fact fact, uint64_t exec, uint64_t node)
{
  trace_event head = {.start = c->end, .a = exec, .b = node, .graph_fact = (uint8_t)fact, .mem = 1};
  (void)spool_writer_extended(&c->thread->writer, WEIR_EV_GRAPH, &head, NULL, 0);
}

void extract_graph_enable(hook_call *c, extract_word exec, extract_word node, extract_word enabled)
{
  extract_graph(c, exec, node);
  if (c->status == 0)
    record_fact(c, enabled ? WEIR_GRAPH_ENABLED : WEIR_GRAPH_DISABLED, exec, node);
}

static void record_set(hook_call *c, uint64_t exec, uint64_t node, unsigned type,
                       const event_fields *e)
{
  graph_node_info info = {.node = node,
                          .a = e->a,
                          .b = e->b,
                          .bytes = e->bytes,
                          .type = (uint8_t)type,
                          .copy = (uint8_t)event_get_copy_kind(e),
                          .mem = (uint8_t)e->mem,
                          .device = (uint8_t)e->device,
                          .src_device = (uint8_t)e->src_device};
  trace_event head = {
      .start = c->end, .a = exec, .b = node, .graph_fact = WEIR_GRAPH_SET, .mem = 1};
  (void)spool_writer_extended(&c->thread->writer, WEIR_EV_GRAPH, &head, &info, sizeof info);
}

/* The call is recorded, and there is something to read. */
static bool node_set(hook_call *c, uint64_t exec, uint64_t node, const void *params)
{
  extract_graph(c, exec, node);
  return c->status == 0 && params;
}

void extract_graph_set_kernel(hook_call *c, extract_word exec, extract_word node,
                              const CUDA_KERNEL_NODE_PARAMS_v2 *kernel)
{
  event_fields e = plain_node();
  if (!node_set(c, exec, node, kernel)) return;
  describe_kernel(c, kernel, &e);
  record_set(c, exec, node, CU_GRAPH_NODE_TYPE_KERNEL, &e);
}

void extract_graph_set_kernel_v1(hook_call *c, extract_word exec, extract_word node,
                                 const CUDA_KERNEL_NODE_PARAMS_v1 *kernel_v1)
{
  CUDA_KERNEL_NODE_PARAMS_v2 k = {0};
  if (kernel_v1) k = kernel_of_v1(kernel_v1);
  extract_graph_set_kernel(c, exec, node, kernel_v1 ? &k : NULL);
}

void extract_graph_set_copy(hook_call *c, extract_word exec, extract_word node,
                            const CUDA_MEMCPY3D *copy)
{
  event_fields e = plain_node();
  if (!node_set(c, exec, node, copy)) return;
  describe_copy(c, copy, &e);
  record_set(c, exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, &e);
}

void extract_graph_set_memset(hook_call *c, extract_word exec, extract_word node,
                              const CUDA_MEMSET_NODE_PARAMS *memset)
{
  event_fields e = plain_node();
  if (!node_set(c, exec, node, memset)) return;
  describe_memset(c, memset, &e);
  record_set(c, exec, node, CU_GRAPH_NODE_TYPE_MEMSET, &e);
}

void extract_graph_set_child(hook_call *c, extract_word exec, extract_word node, extract_word child)
{
  graph_walk w;
  event_fields e = plain_node();
  extract_graph(c, exec, node);
  if (c->status) return;
  w.call = c, w.exec = exec, w.graph = node, w.fact = WEIR_GRAPH_SET;
  w.written = 0, w.count = 0, w.depth = 0, w.failed = false, w.conditional = false;
  add_node(&w, node, 0, CU_GRAPH_NODE_TYPE_GRAPH, &e);
  walk_graph(&w, (CUgraph)(uintptr_t)child, node);
  write_nodes(&w, true);
}

/* "The type of the node cannot be changed" (cuGraphExecNodeSetParams). */
void extract_graph_set(hook_call *c, extract_word exec, extract_word node,
                       const CUgraphNodeParams *params)
{
  unsigned type = params ? (unsigned)params->type : CU_GRAPH_NODE_TYPE_EMPTY;
  event_fields e = plain_node();
  if (type == CU_GRAPH_NODE_TYPE_GRAPH) {
    extract_graph_set_child(c, exec, node, (uint64_t)(uintptr_t)params->graph.graph);
    return;
  }
  if (!node_set(c, exec, node, params)) return;
  if (type == CU_GRAPH_NODE_TYPE_KERNEL) {
    CUDA_KERNEL_NODE_PARAMS_v2 k = {.func = params->kernel.func,
                                    .kern = params->kernel.kern,
                                    .kernelParams = params->kernel.kernelParams,
                                    .extra = params->kernel.extra};
    k.gridDimX = params->kernel.gridDimX, k.blockDimX = params->kernel.blockDimX;
    k.gridDimY = params->kernel.gridDimY, k.blockDimY = params->kernel.blockDimY;
    k.gridDimZ = params->kernel.gridDimZ, k.blockDimZ = params->kernel.blockDimZ;
    describe_kernel(c, &k, &e);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMCPY) {
    describe_copy(c, &params->memcpy.copyParams, &e);
  } else if (type == CU_GRAPH_NODE_TYPE_MEMSET) {
    const CUDA_MEMSET_NODE_PARAMS_v2 *m = &params->memset;
    memset_describe(c, m->dst, (uint64_t)m->elementSize * m->width * (m->height ? m->height : 1),
                    &e);
  } else {
    return; /* what it is counted as stays */
  }
  record_set(c, exec, node, type, &e);
}
