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

static CUresult add(CUgraphNode *node, CUgraph g, const CUgraphNode *list, size_t count,
                    CUgraphNodeParams *p)
{
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  struct sim_nodes after = {0};
  sim_graph_enter();
  CUresult error = dependencies(g, list, count, &after);
  if (!error) error = sim_node_add(g, &after, p, node);
  sim_nodes_clear(&after);
  return sim_graph_result(error);
}

/* What a structure of the program's becomes; false: NULL. */
#define PARAMS(name, which, field, source)                                                         \
  CUgraphNodeParams name = {.type = CU_GRAPH_NODE_TYPE_##which};                                   \
  if (!(source)) return CUDA_ERROR_INVALID_VALUE;                                                  \
  memcpy(&(name).field, (source), sizeof *(source))

CUresult sim_cuGraphAddKernelNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                     size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
  PARAMS(p, KERNEL, kernel, params);
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddKernelNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                  size_t count, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
  PARAMS(p, KERNEL, kernel, params);
  return add(node, g, after, count, &p);
}

static CUgraphNodeParams memcpy_params(const CUDA_MEMCPY3D *copy, CUcontext context)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  p.memcpy.copyCtx = context;
  p.memcpy.copyParams = *copy;
  return p;
}

static CUgraphNodeParams memset_params(const CUDA_MEMSET_NODE_PARAMS *set, CUcontext context)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  memcpy(&p.memset, set, sizeof *set);
  p.memset.ctx = context;
  return p;
}

CUresult sim_cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                  size_t count, const CUDA_MEMCPY3D *copy, CUcontext context)
{
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = memcpy_params(copy, context);
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddMemsetNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                  size_t count, const CUDA_MEMSET_NODE_PARAMS *set,
                                  CUcontext context)
{
  if (!set) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = memset_params(set, context);
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddHostNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
  PARAMS(p, HOST, host, params);
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                      size_t count, CUgraph child)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
  p.graph = (CUDA_CHILD_GRAPH_NODE_PARAMS){child, CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE};
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddEmptyNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                 size_t count)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                       size_t count, CUevent event)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                     size_t count, CUevent event)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
  return add(node, g, after, count, &p);
}

CUresult sim_cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                    size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
  PARAMS(p, MEM_ALLOC, alloc, params);
  CUresult error = add(node, g, after, count, &p);
  if (!error) params->dptr = p.alloc.dptr;
  return error;
}

CUresult sim_cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                                   size_t count, CUdeviceptr p)
{
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {p}};
  return add(node, g, after, count, &params);
}

CUresult sim_cuGraphAddNode_v2(CUgraphNode *node, CUgraph g, const CUgraphNode *after,
                               const CUgraphEdgeData *data, size_t count, CUgraphNodeParams *params)
{
  static const CUgraphEdgeData none;
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; data && i < count; i++)
    if (memcmp(&data[i], &none, sizeof none) != 0) return CUDA_ERROR_NOT_SUPPORTED;
  CUgraphNodeParams p = *params;
  CUresult error = add(node, g, after, count, &p);
  if (!error && p.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) params->alloc.dptr = p.alloc.dptr;
  if (!error && p.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
    params->conditional.phGraph_out = p.conditional.phGraph_out;
  return error;
}

CUresult sim_cuGraphAddNode(CUgraphNode *node, CUgraph g, const CUgraphNode *after, size_t count,
                            CUgraphNodeParams *params)
{
  return sim_cuGraphAddNode_v2(node, g, after, NULL, count, params);
}

/* ---- getting --------------------------------------------------------------------------------- */

/* Copies `bytes` of the node's parameters out, if it is of that type. */
static CUresult get(CUgraphNode n, CUgraphNodeType type, size_t offset, void *out, size_t bytes)
{
  sim_graph_enter();
  if (!out || !sim_node_is(n) || n->params.type != type)
    return sim_graph_result(CUDA_ERROR_INVALID_VALUE);
  memcpy(out, (char *)&n->params + offset, bytes);
  return sim_graph_result(CUDA_SUCCESS);
}

CUresult sim_cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_KERNEL, offsetof(CUgraphNodeParams, kernel), out,
             sizeof *out);
}

CUresult sim_cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_KERNEL, offsetof(CUgraphNodeParams, kernel), out,
             sizeof *out);
}

CUresult sim_cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_MEMCPY, offsetof(CUgraphNodeParams, memcpy.copyParams), out,
             sizeof *out);
}

CUresult sim_cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_MEMSET, offsetof(CUgraphNodeParams, memset), out,
             sizeof *out);
}

CUresult sim_cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_HOST, offsetof(CUgraphNodeParams, host), out, sizeof *out);
}

CUresult sim_cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_GRAPH, offsetof(CUgraphNodeParams, graph.graph), out,
             sizeof(CUgraph));
}

CUresult sim_cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, offsetof(CUgraphNodeParams, eventRecord.event),
             out, sizeof(CUevent));
}

CUresult sim_cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, offsetof(CUgraphNodeParams, eventWait.event), out,
             sizeof(CUevent));
}

CUresult sim_cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, offsetof(CUgraphNodeParams, alloc), out,
             sizeof *out);
}

CUresult sim_cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *out)
{
  return get(node, CU_GRAPH_NODE_TYPE_MEM_FREE, offsetof(CUgraphNodeParams, free.dptr), out,
             sizeof *out);
}

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
static CUresult set(bool in_exec, CUgraphExec exec, CUgraphNode n, CUgraphNodeParams *p)
{
  sim_graph_enter();
  if (!sim_node_is(n) || (in_exec && !sim_arena_has(&sim_graph_execs, exec)))
    return sim_graph_result(CUDA_ERROR_INVALID_VALUE);
  CUgraphNode to = in_exec ? instance_of(exec->graph, n) : n;
  if (!to || to->params.type != p->type) return sim_graph_result(CUDA_ERROR_INVALID_VALUE);
  if (p->type == CU_GRAPH_NODE_TYPE_MEMSET && !p->memset.ctx) p->memset.ctx = to->params.memset.ctx;
  if (p->type == CU_GRAPH_NODE_TYPE_MEMCPY && !p->memcpy.copyCtx)
    p->memcpy.copyCtx = to->params.memcpy.copyCtx;
  if (p->type == CU_GRAPH_NODE_TYPE_KERNEL && !p->kernel.ctx) p->kernel.ctx = to->params.kernel.ctx;
  return sim_graph_result(sim_node_set(to, p));
}

CUresult sim_cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
  PARAMS(p, KERNEL, kernel, params);
  return set(false, NULL, node, &p);
}

CUresult sim_cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
  PARAMS(p, KERNEL, kernel, params);
  return set(false, NULL, node, &p);
}

CUresult sim_cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                               const CUDA_KERNEL_NODE_PARAMS *params)
{
  PARAMS(p, KERNEL, kernel, params);
  return set(true, exec, node, &p);
}

CUresult sim_cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
  PARAMS(p, KERNEL, kernel, params);
  return set(true, exec, node, &p);
}

CUresult sim_cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *copy)
{
  if (!copy) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = memcpy_params(copy, NULL);
  return set(false, NULL, node, &p);
}

/* "Both the instantiation-time memory operands and the memory operands in copyParams must be
 * 1-dimensional. Zero-length operations are not supported." */
CUresult sim_cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMCPY3D *copy, CUcontext context)
{
  if (!copy || copy->Height > 1 || copy->Depth > 1) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = memcpy_params(copy, context);
  return set(true, exec, node, &p);
}

CUresult sim_cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = memset_params(params, NULL);
  return set(false, NULL, node, &p);
}

CUresult sim_cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_MEMSET_NODE_PARAMS *params,
                                            CUcontext context)
{
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = memset_params(params, context);
  return set(true, exec, node, &p);
}

CUresult sim_cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
  PARAMS(p, HOST, host, params);
  return set(false, NULL, node, &p);
}

CUresult sim_cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                          const CUDA_HOST_NODE_PARAMS *params)
{
  PARAMS(p, HOST, host, params);
  return set(true, exec, node, &p);
}

CUresult sim_cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
  return set(false, NULL, node, &p);
}

CUresult sim_cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {event}};
  return set(true, exec, node, &p);
}

CUresult sim_cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
  return set(false, NULL, node, &p);
}

CUresult sim_cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {event}};
  return set(true, exec, node, &p);
}

CUresult sim_cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = *params;
  return set(false, NULL, node, &p);
}

CUresult sim_cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
  if (!params) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams p = *params;
  return set(true, exec, node, &p);
}

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
  sim_graph_enter();
  CUgraphNode n = switchable(exec, node);
  if (n) n->disabled = !enabled;
  return sim_graph_result(n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
  sim_graph_enter();
  CUgraphNode n = enabled ? switchable(exec, node) : NULL;
  if (n) *enabled = !n->disabled;
  return sim_graph_result(n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
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
  sim_graph_enter();
  if (!value || (unsigned)id >= CU_LAUNCH_ATTRIBUTE_MAX || !is_kernel(n))
    return sim_graph_result(CUDA_ERROR_INVALID_VALUE);
  memset(value, 0, sizeof *value);
  if (n->attributes) *value = n->attributes[id];
  return sim_graph_result(CUDA_SUCCESS);
}

CUresult sim_cuGraphKernelNodeSetAttribute(CUgraphNode n, CUkernelNodeAttrID id,
                                           const CUkernelNodeAttrValue *value)
{
  sim_graph_enter();
  if (!value || (unsigned)id >= CU_LAUNCH_ATTRIBUTE_MAX || !is_kernel(n))
    return sim_graph_result(CUDA_ERROR_INVALID_VALUE);
  if (!make_attributes(n)) return sim_graph_result(CUDA_ERROR_OUT_OF_MEMORY);
  n->attributes[id] = *value;
  return sim_graph_result(CUDA_SUCCESS);
}

CUresult sim_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
  sim_graph_enter();
  if (!is_kernel(dst) || !is_kernel(src)) return sim_graph_result(CUDA_ERROR_INVALID_VALUE);
  if (!make_attributes(dst)) return sim_graph_result(CUDA_ERROR_OUT_OF_MEMORY);
  size_t bytes = CU_LAUNCH_ATTRIBUTE_MAX * sizeof *dst->attributes;
  if (src->attributes)
    memmove(dst->attributes, src->attributes, bytes);
  else
    memset(dst->attributes, 0, bytes);
  return sim_graph_result(CUDA_SUCCESS);
}
