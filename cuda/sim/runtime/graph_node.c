/* graph_node.c: what a graph's nodes do: the runtime's structures made the driver's and back.
 *
 * A kernel is a host stub here and a handle there; a copy has pitched pointers here and plain
 * fields there; the context of a copy or memset is the current one. The rest is the same bytes by
 * another name, which the compiler checks. */
#include <string.h>
#include "cuda/sim/runtime/rt.h"

#define DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))

_Static_assert(sizeof(struct cudaMemAllocNodeParams) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS), "same");
_Static_assert(offsetof(struct cudaMemAllocNodeParams, dptr) ==
                   offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr),
               "same structure");
_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "same");
_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS), "same");
_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue), "same");

static CUcontext context(void)
{
  CUcontext c = NULL;
  rt_drv->CtxGetCurrent(&c);
  return c;
}

/* Where a node is added: to a graph, behind others. */
struct place {
  cudaGraphNode_t *node;
  cudaGraph_t graph;
  const cudaGraphNode_t *after;
  size_t count;
};
#define PLACE cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count
#define AT    ((struct place){node, graph, after, count})

/* Whose parameters are set: a node's, or those it has in an executable graph. */
struct whose {
  bool in_exec;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
};
#define OF_NODE ((struct whose){.node = node})
#define OF_EXEC ((struct whose){true, exec, node})

/* ---- kernels --------------------------------------------------------------------------------- */

static cudaError_t kernel_params(const void *function, dim3 grid, dim3 block, unsigned int shared,
                                 void **arguments, void **extra, CUDA_KERNEL_NODE_PARAMS *out)
{
  CUkernel kernel;
  cudaError_t e = rt_kernel(function, &kernel);
  if (e) return e;
  *out = (CUDA_KERNEL_NODE_PARAMS){.func = (CUfunction)kernel, /* documented: either */
                                   .gridDimX = grid.x,
                                   .gridDimY = grid.y,
                                   .gridDimZ = grid.z,
                                   .blockDimX = block.x,
                                   .blockDimY = block.y,
                                   .blockDimZ = block.z,
                                   .sharedMemBytes = shared,
                                   .kernelParams = arguments,
                                   .extra = extra};
  return cudaSuccess;
}

#define KERNEL_PARAMS(p, out)                                                                      \
  kernel_params((p)->func, (p)->gridDim, (p)->blockDim, (p)->sharedMemBytes, (p)->kernelParams,    \
                (p)->extra, out)

static cudaError_t add_kernel(struct place at, const struct cudaKernelNodeParams *p)
{
  CUDA_KERNEL_NODE_PARAMS k;
  cudaError_t e = p ? KERNEL_PARAMS(p, &k) : cudaErrorInvalidValue;
  return e ? e : rt_result(rt_drv->GraphAddKernelNode(at.node, at.graph, at.after, at.count, &k));
}

static cudaError_t set_kernel(struct whose w, const struct cudaKernelNodeParams *p)
{
  CUDA_KERNEL_NODE_PARAMS k;
  cudaError_t e = p ? KERNEL_PARAMS(p, &k) : cudaErrorInvalidValue;
  if (e) return e;
  return rt_result(w.in_exec ? rt_drv->GraphExecKernelNodeSetParams(w.exec, w.node, &k)
                             : rt_drv->GraphKernelNodeSetParams(w.node, &k));
}

static cudaError_t get_kernel(cudaGraphNode_t node, struct cudaKernelNodeParams *p)
{
  CUDA_KERNEL_NODE_PARAMS k;
  if (!p) return cudaErrorInvalidValue;
  cudaError_t e = rt_result(rt_drv->GraphKernelNodeGetParams(node, &k));
  if (e) return e;
  *p = (struct cudaKernelNodeParams){.func = rt_stub_of((CUkernel)k.func),
                                     .gridDim = {k.gridDimX, k.gridDimY, k.gridDimZ},
                                     .blockDim = {k.blockDimX, k.blockDimY, k.blockDimZ},
                                     .sharedMemBytes = k.sharedMemBytes,
                                     .kernelParams = k.kernelParams,
                                     .extra = k.extra};
  return cudaSuccess;
}

RT_BODY(cudaGraphAddKernelNode, (PLACE, const struct cudaKernelNodeParams *p), add_kernel(AT, p))
RT_BODY(cudaGraphKernelNodeGetParams, (cudaGraphNode_t node, struct cudaKernelNodeParams *p),
        get_kernel(node, p))
RT_BODY(cudaGraphKernelNodeSetParams, (cudaGraphNode_t node, const struct cudaKernelNodeParams *p),
        set_kernel(OF_NODE, p))
RT_BODY(cudaGraphExecKernelNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *p),
        set_kernel(OF_EXEC, p))
RT_CALL(cudaGraphKernelNodeCopyAttributes, (cudaGraphNode_t dst, cudaGraphNode_t src),
        GraphKernelNodeCopyAttributes(dst, src))
RT_CALL(cudaGraphKernelNodeGetAttribute,
        (cudaGraphNode_t node, cudaLaunchAttributeID id, cudaLaunchAttributeValue *value),
        GraphKernelNodeGetAttribute(node, (CUkernelNodeAttrID)id, (CUkernelNodeAttrValue *)value))
RT_CALL(cudaGraphKernelNodeSetAttribute,
        (cudaGraphNode_t node, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value),
        GraphKernelNodeSetAttribute(node, (CUkernelNodeAttrID)id,
                                    (const CUkernelNodeAttrValue *)value))

/* ---- copies ---------------------------------------------------------------------------------- */

static cudaError_t add_copy(struct place at, const struct cudaMemcpy3DParms *p)
{
  CUDA_MEMCPY3D c;
  cudaError_t e = rt_copy_params(p, &c);
  if (e) return e;
  return rt_result(
      rt_drv->GraphAddMemcpyNode(at.node, at.graph, at.after, at.count, &c, context()));
}

static cudaError_t set_copy(struct whose w, const struct cudaMemcpy3DParms *p)
{
  CUDA_MEMCPY3D c;
  cudaError_t e = rt_copy_params(p, &c);
  if (e) return e;
  return rt_result(w.in_exec ? rt_drv->GraphExecMemcpyNodeSetParams(w.exec, w.node, &c, context())
                             : rt_drv->GraphMemcpyNodeSetParams(w.node, &c));
}

static cudaError_t get_copy(cudaGraphNode_t node, struct cudaMemcpy3DParms *p)
{
  CUDA_MEMCPY3D c;
  if (!p) return cudaErrorInvalidValue;
  cudaError_t e = rt_result(rt_drv->GraphMemcpyNodeGetParams(node, &c));
  if (!e) rt_copy_params_of(&c, p);
  return e;
}

static struct cudaMemcpy3DParms line(void *dst, const void *src, size_t n, enum cudaMemcpyKind kind)
{
  return (struct cudaMemcpy3DParms){.srcPtr = {(void *)(uintptr_t)src, n, n, 1},
                                    .dstPtr = {dst, n, n, 1},
                                    .extent = {n, 1, 1},
                                    .kind = kind};
}

static cudaError_t add_line(struct place at, void *dst, const void *src, size_t n,
                            enum cudaMemcpyKind kind)
{
  struct cudaMemcpy3DParms p = line(dst, src, n, kind);
  return add_copy(at, &p);
}

static cudaError_t set_line(struct whose w, void *dst, const void *src, size_t n,
                            enum cudaMemcpyKind kind)
{
  struct cudaMemcpy3DParms p = line(dst, src, n, kind);
  return set_copy(w, &p);
}

/* A copy to or from a variable is one to or from its address. */
#define WITH_SYMBOL(call)                                                                          \
  void *p;                                                                                         \
  cudaError_t e = rt_symbol_range(symbol, n, offset, &p);                                          \
  return e ? e : (call)

static cudaError_t add_to(struct place at, const void *symbol, const void *src, size_t n,
                          size_t offset, enum cudaMemcpyKind kind)
{
  WITH_SYMBOL(add_line(at, p, src, n, kind));
}

static cudaError_t add_from(struct place at, void *dst, const void *symbol, size_t n, size_t offset,
                            enum cudaMemcpyKind kind)
{
  WITH_SYMBOL(add_line(at, dst, p, n, kind));
}

static cudaError_t set_to(struct whose w, const void *symbol, const void *src, size_t n,
                          size_t offset, enum cudaMemcpyKind kind)
{
  WITH_SYMBOL(set_line(w, p, src, n, kind));
}

static cudaError_t set_from(struct whose w, void *dst, const void *symbol, size_t n, size_t offset,
                            enum cudaMemcpyKind kind)
{
  WITH_SYMBOL(set_line(w, dst, p, n, kind));
}

RT_BODY(cudaGraphAddMemcpyNode, (PLACE, const struct cudaMemcpy3DParms *p), add_copy(AT, p))
RT_BODY(cudaGraphAddMemcpyNode1D,
        (PLACE, void *dst, const void *src, size_t n, enum cudaMemcpyKind kind),
        add_line(AT, dst, src, n, kind))
RT_BODY(cudaGraphAddMemcpyNodeToSymbol,
        (PLACE, const void *symbol, const void *src, size_t n, size_t offset,
         enum cudaMemcpyKind kind),
        add_to(AT, symbol, src, n, offset, kind))
RT_BODY(cudaGraphAddMemcpyNodeFromSymbol,
        (PLACE, void *dst, const void *symbol, size_t n, size_t offset, enum cudaMemcpyKind kind),
        add_from(AT, dst, symbol, n, offset, kind))
RT_BODY(cudaGraphMemcpyNodeGetParams, (cudaGraphNode_t node, struct cudaMemcpy3DParms *p),
        get_copy(node, p))
RT_BODY(cudaGraphMemcpyNodeSetParams, (cudaGraphNode_t node, const struct cudaMemcpy3DParms *p),
        set_copy(OF_NODE, p))
RT_BODY(cudaGraphMemcpyNodeSetParams1D,
        (cudaGraphNode_t node, void *dst, const void *src, size_t n, enum cudaMemcpyKind kind),
        set_line(OF_NODE, dst, src, n, kind))
RT_BODY(cudaGraphMemcpyNodeSetParamsToSymbol,
        (cudaGraphNode_t node, const void *symbol, const void *src, size_t n, size_t offset,
         enum cudaMemcpyKind kind),
        set_to(OF_NODE, symbol, src, n, offset, kind))
RT_BODY(cudaGraphMemcpyNodeSetParamsFromSymbol,
        (cudaGraphNode_t node, void *dst, const void *symbol, size_t n, size_t offset,
         enum cudaMemcpyKind kind),
        set_from(OF_NODE, dst, symbol, n, offset, kind))
RT_BODY(cudaGraphExecMemcpyNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *p),
        set_copy(OF_EXEC, p))
RT_BODY(cudaGraphExecMemcpyNodeSetParams1D,
        (cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *src, size_t n,
         enum cudaMemcpyKind kind),
        set_line(OF_EXEC, dst, src, n, kind))
RT_BODY(cudaGraphExecMemcpyNodeSetParamsToSymbol,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const void *symbol, const void *src, size_t n,
         size_t offset, enum cudaMemcpyKind kind),
        set_to(OF_EXEC, symbol, src, n, offset, kind))
RT_BODY(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
        (cudaGraphExec_t exec, cudaGraphNode_t node, void *dst, const void *symbol, size_t n,
         size_t offset, enum cudaMemcpyKind kind),
        set_from(OF_EXEC, dst, symbol, n, offset, kind))

/* ---- the same bytes -------------------------------------------------------------------------- */

RT_CALL(cudaGraphAddMemsetNode, (PLACE, const struct cudaMemsetParams *p),
        GraphAddMemsetNode(node, graph, after, count, (const CUDA_MEMSET_NODE_PARAMS *)p,
                           context()))
RT_CALL(cudaGraphMemsetNodeGetParams, (cudaGraphNode_t node, struct cudaMemsetParams *p),
        GraphMemsetNodeGetParams(node, (CUDA_MEMSET_NODE_PARAMS *)p))
RT_CALL(cudaGraphMemsetNodeSetParams, (cudaGraphNode_t node, const struct cudaMemsetParams *p),
        GraphMemsetNodeSetParams(node, (const CUDA_MEMSET_NODE_PARAMS *)p))
RT_CALL(cudaGraphExecMemsetNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemsetParams *p),
        GraphExecMemsetNodeSetParams(exec, node, (const CUDA_MEMSET_NODE_PARAMS *)p, context()))
RT_CALL(cudaGraphAddHostNode, (PLACE, const struct cudaHostNodeParams *p),
        GraphAddHostNode(node, graph, after, count, (const CUDA_HOST_NODE_PARAMS *)p))
RT_CALL(cudaGraphHostNodeGetParams, (cudaGraphNode_t node, struct cudaHostNodeParams *p),
        GraphHostNodeGetParams(node, (CUDA_HOST_NODE_PARAMS *)p))
RT_CALL(cudaGraphHostNodeSetParams, (cudaGraphNode_t node, const struct cudaHostNodeParams *p),
        GraphHostNodeSetParams(node, (const CUDA_HOST_NODE_PARAMS *)p))
RT_CALL(cudaGraphExecHostNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaHostNodeParams *p),
        GraphExecHostNodeSetParams(exec, node, (const CUDA_HOST_NODE_PARAMS *)p))
RT_CALL(cudaGraphAddChildGraphNode, (PLACE, cudaGraph_t child),
        GraphAddChildGraphNode(node, graph, after, count, child))
RT_CALL(cudaGraphChildGraphNodeGetGraph, (cudaGraphNode_t node, cudaGraph_t *child),
        GraphChildGraphNodeGetGraph(node, child))
RT_CALL(cudaGraphExecChildGraphNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, cudaGraph_t child),
        GraphExecChildGraphNodeSetParams(exec, node, child))
RT_CALL(cudaGraphAddEmptyNode, (PLACE), GraphAddEmptyNode(node, graph, after, count))
RT_CALL(cudaGraphAddEventRecordNode, (PLACE, cudaEvent_t event),
        GraphAddEventRecordNode(node, graph, after, count, event))
RT_CALL(cudaGraphEventRecordNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
        GraphEventRecordNodeGetEvent(node, event))
RT_CALL(cudaGraphEventRecordNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        GraphEventRecordNodeSetEvent(node, event))
RT_CALL(cudaGraphExecEventRecordNodeSetEvent,
        (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
        GraphExecEventRecordNodeSetEvent(exec, node, event))
RT_CALL(cudaGraphAddEventWaitNode, (PLACE, cudaEvent_t event),
        GraphAddEventWaitNode(node, graph, after, count, event))
RT_CALL(cudaGraphEventWaitNodeGetEvent, (cudaGraphNode_t node, cudaEvent_t *event),
        GraphEventWaitNodeGetEvent(node, event))
RT_CALL(cudaGraphEventWaitNodeSetEvent, (cudaGraphNode_t node, cudaEvent_t event),
        GraphEventWaitNodeSetEvent(node, event))
RT_CALL(cudaGraphExecEventWaitNodeSetEvent,
        (cudaGraphExec_t exec, cudaGraphNode_t node, cudaEvent_t event),
        GraphExecEventWaitNodeSetEvent(exec, node, event))
RT_CALL(cudaGraphAddMemAllocNode, (PLACE, struct cudaMemAllocNodeParams *p),
        GraphAddMemAllocNode(node, graph, after, count, (CUDA_MEM_ALLOC_NODE_PARAMS *)p))
RT_CALL(cudaGraphMemAllocNodeGetParams, (cudaGraphNode_t node, struct cudaMemAllocNodeParams *p),
        GraphMemAllocNodeGetParams(node, (CUDA_MEM_ALLOC_NODE_PARAMS *)p))
RT_CALL(cudaGraphAddMemFreeNode, (PLACE, void *p),
        GraphAddMemFreeNode(node, graph, after, count, DEVICE(p)))
RT_CALL(cudaGraphMemFreeNodeGetParams, (cudaGraphNode_t node, void *out),
        GraphMemFreeNodeGetParams(node, (CUdeviceptr *)out))

/* ---- any type -------------------------------------------------------------------------------- */

static cudaError_t any_params(const struct cudaGraphNodeParams *p, CUgraphNodeParams *out)
{
  CUDA_KERNEL_NODE_PARAMS kernel;
  cudaError_t e;
  *out = (CUgraphNodeParams){.type = (CUgraphNodeType)p->type};
  switch (p->type) {
  case cudaGraphNodeTypeKernel:
    e = KERNEL_PARAMS(&p->kernel, &kernel);
    if (!e) memcpy(&out->kernel, &kernel, sizeof kernel); /* the same structure by another name */
    return e;
  case cudaGraphNodeTypeMemcpy:
    out->memcpy.copyCtx = context();
    return rt_copy_params(&p->memcpy.copyParams, &out->memcpy.copyParams);
  case cudaGraphNodeTypeMemset:
    memcpy(&out->memset, &p->memset, sizeof p->memset);
    out->memset.ctx = context();
    return cudaSuccess;
  default:
    memcpy(out->reserved1, p->reserved1, sizeof p->reserved1);
    return cudaSuccess;
  }
}

static cudaError_t add_any(struct place at, const cudaGraphEdgeData *data,
                           struct cudaGraphNodeParams *p)
{
  CUgraphNodeParams c;
  cudaError_t e = p ? any_params(p, &c) : cudaErrorInvalidValue;
  if (e) return e;
  e = rt_result(rt_drv->GraphAddNode(at.node, at.graph, at.after, (const CUgraphEdgeData *)data,
                                     at.count, &c));
  if (!e && p->type == cudaGraphNodeTypeConditional)
    p->conditional.phGraph_out = (cudaGraph_t *)c.conditional.phGraph_out;
  if (!e && p->type == cudaGraphNodeTypeMemAlloc) p->alloc.dptr = (void *)(uintptr_t)c.alloc.dptr;
  return e;
}

static cudaError_t set_any(struct whose w, struct cudaGraphNodeParams *p)
{
  CUgraphNodeParams c;
  cudaError_t e = p ? any_params(p, &c) : cudaErrorInvalidValue;
  if (e) return e;
  return rt_result(w.in_exec ? rt_drv->GraphExecNodeSetParams(w.exec, w.node, &c)
                             : rt_drv->GraphNodeSetParams(w.node, &c));
}

/* In the thread's current context. */
static cudaError_t condition(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                             unsigned int initial, unsigned int flags)
{
  CUgraphConditionalHandle made = 0;
  cudaError_t e = rt_result(
      rt_drv->GraphConditionalHandleCreate(&made, (CUgraph)graph, context(), initial, flags));
  if (!e) *handle = made;
  return e;
}

RT_BODY(cudaGraphConditionalHandleCreate,
        (cudaGraphConditionalHandle * handle, cudaGraph_t graph, unsigned int initial,
         unsigned int flags),
        handle ? condition(handle, graph, initial, flags) : cudaErrorInvalidValue)

RT_BODY(cudaGraphAddNode,
        (cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after,
         const cudaGraphEdgeData *data, size_t count, struct cudaGraphNodeParams *p),
        add_any(AT, data, p))
RT_BODY(cudaGraphNodeSetParams, (cudaGraphNode_t node, struct cudaGraphNodeParams *p),
        set_any(OF_NODE, p))
RT_BODY(cudaGraphExecNodeSetParams,
        (cudaGraphExec_t exec, cudaGraphNode_t node, struct cudaGraphNodeParams *p),
        set_any(OF_EXEC, p))
