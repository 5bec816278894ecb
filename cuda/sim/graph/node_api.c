/* node_api.c: adding nodes to a graph, and their parameters got and set, in the graph and in what
 * is instantiated of it. Each type's functions only put its parameters into CUDA's common form
 * (CUgraphNodeParams) and out again; node.c knows what they mean. */
#include "cuda/sim/graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- adding ---------------------------------------------------------------------------------- */

/* "dependencies may not have any duplicate entries", and all are of this graph. */
static CUresult dependencies(CUgraph g, const CUgraphNode *list, size_t count,
                             struct sim_nodes *out)
{
  if (!sim_graph_is(g) || (count && !list)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    if (!sim_node_is(list[i]) || list[i]->graph != g || sim_nodes_has(out, list[i]))
      return CUDA_ERROR_INVALID_VALUE;
    if (!sim_nodes_add(out, list[i])) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

static CUresult add_node(CUgraphNode *node, CUgraph g, const CUgraphNode *list, size_t count,
                         CUgraphNodeParams *p)
{
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  struct sim_nodes after = {0};
  SIM_GRAPH_HOLD();
  CUresult error = dependencies(g, list, count, &after);
  if (!error) error = sim_node_add(g, &after, p, node);
  sim_nodes_clear(&after);
  return error;
}

/* The parameters at `source`, as the union in CUgraphNodeParams has them. */
static CUresult params_from(CUgraphNodeParams *p, CUgraphNodeType type, const void *source,
                            size_t bytes)
{
  *p = (CUgraphNodeParams){.type = type};
  if (!source) return CUDA_ERROR_INVALID_VALUE;
  memcpy(p->reserved1, source, bytes);
  return CUDA_SUCCESS;
}

static CUDA_MEMSET_NODE_PARAMS_v2 memset_in(const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
  CUDA_MEMSET_NODE_PARAMS_v2 p;
  memcpy(&p, set, sizeof *set);
  p.ctx = context;
  return p;
}

/* A node of these parameters: fields of CUgraphNodeParams. */
#define ADD(which, ...)                                                                            \
  add_node(phGraphNode, hGraph, dependencies, numDependencies,                                     \
           &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_##which, __VA_ARGS__})

static CUresult add_from(CUgraphNode *node, CUgraph g, const CUgraphNode *list, size_t count,
                         CUgraphNodeType type, const void *source, size_t bytes)
{
  CUgraphNodeParams p;
  CUresult error = params_from(&p, type, source, bytes);
  return error ? error : add_node(node, g, list, count, &p);
}

#define ADD_FROM(which, source)                                                                    \
  add_from(phGraphNode, hGraph, dependencies, numDependencies, CU_GRAPH_NODE_TYPE_##which, source, \
           sizeof *(source))
#define NEED(sound, call) ((sound) ? (call) : CUDA_ERROR_INVALID_VALUE)

SIM_ENTRY(cuGraphAddKernelNode_v2, ADD_FROM(KERNEL, nodeParams))
SIM_ENTRY(cuGraphAddKernelNode, ADD_FROM(KERNEL, nodeParams))
SIM_ENTRY(cuGraphAddHostNode, ADD_FROM(HOST, nodeParams))
SIM_ENTRY(cuGraphAddMemcpyNode,
          NEED(copyParams, ADD(MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *copyParams})))
SIM_ENTRY(cuGraphAddMemsetNode,
          NEED(memsetParams, ADD(MEMSET, .memset = memset_in(memsetParams, ctx))))
SIM_ENTRY(cuGraphAddChildGraphNode,
          ADD(GRAPH, .graph = {childGraph, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE}))
SIM_ENTRY(cuGraphAddEmptyNode, ADD(EMPTY, ))
SIM_ENTRY(cuGraphAddEventRecordNode, ADD(EVENT_RECORD, .eventRecord = {event}))
SIM_ENTRY(cuGraphAddEventWaitNode, ADD(WAIT_EVENT, .eventWait = {event}))
SIM_ENTRY(cuGraphAddMemFreeNode, ADD(MEM_FREE, .free = {dptr}))

CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                    size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
  CUgraphNodeParams p;
  CUresult error = params_from(&p, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params, sizeof *params);
  if (!error) error = add_node(node, g, after, count, &p);
  if (!error) params->dptr = p.alloc.dptr;
  return error;
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                               const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
  static const CUgraphEdgeData none;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; data && i < count; i++)
    if (memcmp(&data[i], &none, sizeof none) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  CUgraphNodeParams p = *params;
  CUresult error = add_node(node, g, after, count, &p);
  if (!error && p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) params->alloc.dptr = p.alloc.dptr;
  if (!error && p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    params->conditional.phGraph_out = p.conditional.phGraph_out;
  return error;
}

SIM_ENTRY(cuGraphAddNode, sim_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL,
                                                numDependencies, nodeParams))

/* ---- getting --------------------------------------------------------------------------------- */

/* Copies `bytes` of the node's parameters out, if it is of that type. */
static CUresult get_params(CUgraphNode n, CUgraphNodeType type, void *out, size_t bytes)
{
  SIM_GRAPH_HOLD();
  if (!out || !sim_node_is(n) || n->params.type != type) return CUDA_ERROR_INVALID_VALUE;
  const CUgraphNodeParams *p = &n->params;
  const void *from =
      type == CU_GRAPH_NODE_TYPE_MEMCPY ? &p->memcpy.copyParams : (void *)p->reserved1;
  memcpy(out, from, bytes);
  return CUDA_SUCCESS;
}

#define GET(which, out)                                                                            \
  get_params(hNode, CU_GRAPH_NODE_TYPE_##which, out, sizeof(__typeof__(*(out))))

SIM_ENTRY(cuGraphKernelNodeGetParams_v2, GET(KERNEL, nodeParams))
SIM_ENTRY(cuGraphKernelNodeGetParams, GET(KERNEL, nodeParams))
SIM_ENTRY(cuGraphMemcpyNodeGetParams, GET(MEMCPY, nodeParams))
SIM_ENTRY(cuGraphMemsetNodeGetParams, GET(MEMSET, nodeParams))
SIM_ENTRY(cuGraphHostNodeGetParams, GET(HOST, nodeParams))
SIM_ENTRY(cuGraphChildGraphNodeGetGraph, GET(GRAPH, phGraph))
SIM_ENTRY(cuGraphEventRecordNodeGetEvent, GET(EVENT_RECORD, event_out))
SIM_ENTRY(cuGraphEventWaitNodeGetEvent, GET(WAIT_EVENT, event_out))
SIM_ENTRY(cuGraphMemAllocNodeGetParams, GET(MEM_ALLOC, params_out))
SIM_ENTRY(cuGraphMemFreeNodeGetParams, GET(MEM_FREE, dptr_out))

/* ---- setting --------------------------------------------------------------------------------- */

/* The node of an executable graph that was made of `original`. */
static CUgraphNode instance_of(CUgraph g, CUgraphNode original)
{
  for (CUgraphNode n = g->first; n; n = n->next) {
    if (n->origin == original) return n;
    CUgraphNode inside = n->child ? instance_of(n->child, original) : NULL;
    for (unsigned i = 0; i < n->body_count && !inside; i++)
      inside = instance_of(n->bodies[i], original);
    if (inside) return inside;
  }
  return NULL;
}

/* In the graph, or in `exec` if `in_exec`. Contexts that are not given stay. */
static CUresult set_params(bool in_exec, CUgraphExec exec, CUgraphNode n, CUgraphNodeParams *p)
{
  SIM_GRAPH_HOLD();
  if (!sim_node_is(n) || (in_exec && !sim_arena_has(&sim_graph_execs, exec)))
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNode to = in_exec ? instance_of(exec->graph, n) : n;
  if (!to || to->params.type != p->type) return CUDA_ERROR_INVALID_VALUE;
  if (p->type == CU_GRAPH_NODE_TYPE_MEMSET && !p->memset.ctx) p->memset.ctx = to->params.memset.ctx;
  if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY && !p->memcpy.copyCtx)
    p->memcpy.copyCtx = to->params.memcpy.copyCtx;
  if (p->type == CU_GRAPH_NODE_TYPE_KERNEL && !p->kernel.ctx) p->kernel.ctx = to->params.kernel.ctx;
  return sim_node_set(to, p);
}

static CUresult set_from(bool in_exec, CUgraphExec exec, CUgraphNode n, CUgraphNodeType type,
                         const void *source, size_t bytes)
{
  CUgraphNodeParams p;
  CUresult error = params_from(&p, type, source, bytes);
  return error ? error : set_params(in_exec, exec, n, &p);
}

static CUresult set_copy_of(bool in_exec, CUgraphExec exec, CUgraphNode n,
                            const CUgraphNodeParams *params)
{
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = *params;
  return set_params(in_exec, exec, n, &p);
}

#define IN_GRAPH false, NULL, hNode
#define IN_EXEC  true, hGraphExec, hNode
#define SET(where, which, ...)                                                                     \
  set_params(where, &(CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_##which, __VA_ARGS__})
#define SET_FROM(where, which, source)                                                             \
  set_from(where, CU_GRAPH_NODE_TYPE_##which, source, sizeof *(source))

SIM_ENTRY(cuGraphKernelNodeSetParams_v2, SET_FROM(IN_GRAPH, KERNEL, nodeParams))
SIM_ENTRY(cuGraphKernelNodeSetParams, SET_FROM(IN_GRAPH, KERNEL, nodeParams))
SIM_ENTRY(cuGraphExecKernelNodeSetParams_v2, SET_FROM(IN_EXEC, KERNEL, nodeParams))
SIM_ENTRY(cuGraphExecKernelNodeSetParams, SET_FROM(IN_EXEC, KERNEL, nodeParams))
SIM_ENTRY(cuGraphMemcpyNodeSetParams,
          NEED(nodeParams, SET(IN_GRAPH, MEMCPY, .memcpy = {.copyParams = *nodeParams})))
/* "Both the instantiation-time memory operands and the memory operands in copyParams must be
 * 1-dimensional. Zero-length operations are not supported." */
SIM_ENTRY(cuGraphExecMemcpyNodeSetParams,
          NEED(copyParams && copyParams->Height <= 1 && copyParams->Depth <= 1,
               SET(IN_EXEC, MEMCPY, .memcpy = {.copyCtx = ctx, .copyParams = *copyParams})))
SIM_ENTRY(cuGraphMemsetNodeSetParams,
          NEED(nodeParams, SET(IN_GRAPH, MEMSET, .memset = memset_in(nodeParams, NULL))))
SIM_ENTRY(cuGraphExecMemsetNodeSetParams,
          NEED(memsetParams, SET(IN_EXEC, MEMSET, .memset = memset_in(memsetParams, ctx))))
SIM_ENTRY(cuGraphHostNodeSetParams, SET_FROM(IN_GRAPH, HOST, nodeParams))
SIM_ENTRY(cuGraphExecHostNodeSetParams, SET_FROM(IN_EXEC, HOST, nodeParams))
SIM_ENTRY(cuGraphEventRecordNodeSetEvent, SET(IN_GRAPH, EVENT_RECORD, .eventRecord = {event}))
SIM_ENTRY(cuGraphExecEventRecordNodeSetEvent, SET(IN_EXEC, EVENT_RECORD, .eventRecord = {event}))
SIM_ENTRY(cuGraphEventWaitNodeSetEvent, SET(IN_GRAPH, WAIT_EVENT, .eventWait = {event}))
SIM_ENTRY(cuGraphExecEventWaitNodeSetEvent, SET(IN_EXEC, WAIT_EVENT, .eventWait = {event}))
SIM_ENTRY(cuGraphNodeSetParams, set_copy_of(IN_GRAPH, nodeParams))
SIM_ENTRY(cuGraphExecNodeSetParams, set_copy_of(IN_EXEC, nodeParams))

/* ---- whether a node runs --------------------------------------------------------------------- */

/* "Only kernel, memset and memcpy nodes are supported." */
static CUgraphNode switchable(CUgraphExec exec, CUgraphNode node)
{
  if (!sim_arena_has(&sim_graph_execs, exec) || !sim_node_is(node)) return NULL;
  CUgraphNode n = instance_of(exec->graph, node);
  return n && n->params.type <= CU_GRAPH_NODE_TYPE_MEMSET ? n : NULL;
}

CUresult sim_cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
  SIM_GRAPH_HOLD();
  CUgraphNode n = switchable(exec, node);
  if (n) n->disabled = !enabled;
  return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
  SIM_GRAPH_HOLD();
  CUgraphNode n = enabled ? switchable(exec, node) : NULL;
  if (n) *enabled = !n->disabled;
  return n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- a kernel node's attributes -------------------------------------------------------------- */

static bool is_kernel(CUgraphNode n)
{
  return sim_node_is(n) && n->params.type == CU_GRAPH_NODE_TYPE_KERNEL;
}

static bool make_attributes(CUgraphNode n)
{
  if (!n->attributes) n->attributes = calloc(CU_LAUNCH_ATTRIBUTE_MAX, sizeof *n->attributes);
  return n->attributes != NULL;
}

CUresult sim_cuGraphKernelNodeGetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
                                           CUkernelNodeAttrValue *value)
{
  SIM_GRAPH_HOLD();
  if (!value || (unsigned)id >= CU_LAUNCH_ATTRIBUTE_MAX || !is_kernel(n))
    return CUDA_ERROR_INVALID_VALUE;
  memset(value, 0, sizeof *value);
  if (n->attributes) *value = n->attributes[id];
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeSetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
                                           const CUkernelNodeAttrValue *value)
{
  SIM_GRAPH_HOLD();
  if (!value || (unsigned)id >= CU_LAUNCH_ATTRIBUTE_MAX || !is_kernel(n))
    return CUDA_ERROR_INVALID_VALUE;
  if (!make_attributes(n)) return CUDA_ERROR_OUT_OF_MEMORY;
  n->attributes[id] = *value;
  return CUDA_SUCCESS;
}

CUresult sim_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
  SIM_GRAPH_HOLD();
  if (!is_kernel(dst) || !is_kernel(src)) return CUDA_ERROR_INVALID_VALUE;
  if (!make_attributes(dst)) return CUDA_ERROR_OUT_OF_MEMORY;
  size_t bytes = CU_LAUNCH_ATTRIBUTE_MAX * sizeof *dst->attributes;
  if (src->attributes)
    memmove(dst->attributes, src->attributes, bytes);
  else
    memset(dst->attributes, 0, bytes);
  return CUDA_SUCCESS;
}
