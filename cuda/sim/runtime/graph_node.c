/* graph_node.c: what a graph's nodes do: the runtime's structures made the driver's and back.
 *
 * A kernel is a host stub here and a handle there; a copy has pitched pointers here and plain
 * fields there; the context of a copy or memset is the current one. The rest is the same bytes by
 * another name, which the compiler checks. */
#include <string.h>
#include "cuda/sim/runtime/rt.h"

static CUcontext context(void)
{
  CUcontext c = NULL;
  rt_drv->CtxGetCurrent(&c);
  return c;
}

/* What is given parameters: a node to be, after others of a graph; a node; what was made of a node
 * in an executable graph. */
struct target {
  enum { NEW, MADE, IN_EXEC } what;
  cudaGraphNode_t *out; /* NEW, as the next three */
  cudaGraph_t graph;
  const cudaGraphNode_t *after;
  size_t count;
  cudaGraphExec_t exec; /* IN_EXEC */
  cudaGraphNode_t node; /* MADE, IN_EXEC */
};
#define A_NEW                                                                                      \
  ((struct target){                                                                                \
      .out = pGraphNode, .graph = graph, .after = pDependencies, .count = numDependencies})
#define THE_NODE       ((struct target){MADE, .node = node})
#define THE_ONE(exec_) ((struct target){IN_EXEC, .exec = (exec_), .node = node})

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

static cudaError_t put_kernel(struct target t, const struct cudaKernelNodeParams *p)
{
  CUDA_KERNEL_NODE_PARAMS k;
  cudaError_t e = p ? KERNEL_PARAMS(p, &k) : cudaErrorInvalidValue;
  if (e) return e;
  return rt_result(t.what == NEW ? rt_drv->GraphAddKernelNode(t.out, t.graph, t.after, t.count, &k)
                   : t.what == MADE ? rt_drv->GraphKernelNodeSetParams(t.node, &k)
                                    : rt_drv->GraphExecKernelNodeSetParams(t.exec, t.node, &k));
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

RT_BODY(cudaGraphAddKernelNode, put_kernel(A_NEW, pNodeParams))
RT_BODY(cudaGraphKernelNodeGetParams, get_kernel(node, pNodeParams))
RT_BODY(cudaGraphKernelNodeSetParams, put_kernel(THE_NODE, pNodeParams))
RT_BODY(cudaGraphExecKernelNodeSetParams, put_kernel(THE_ONE(hGraphExec), pNodeParams))

/* ---- copies ---------------------------------------------------------------------------------- */

static cudaError_t put_copy_node(struct target t, const struct cudaMemcpy3DParms *p)
{
  CUDA_MEMCPY3D c;
  cudaError_t e = rt_copy_params(p, &c);
  if (e) return e;
  return rt_result(
      t.what == NEW    ? rt_drv->GraphAddMemcpyNode(t.out, t.graph, t.after, t.count, &c, context())
      : t.what == MADE ? rt_drv->GraphMemcpyNodeSetParams(t.node, &c)
                       : rt_drv->GraphExecMemcpyNodeSetParams(t.exec, t.node, &c, context()));
}

static cudaError_t get_copy(cudaGraphNode_t node, struct cudaMemcpy3DParms *p)
{
  CUDA_MEMCPY3D c;
  if (!p) return cudaErrorInvalidValue;
  cudaError_t e = rt_result(rt_drv->GraphMemcpyNodeGetParams(node, &c));
  if (!e) rt_copy_params_of(&c, p);
  return e;
}

static cudaError_t put_line(struct target t, void *dst, const void *src, size_t n,
                            enum cudaMemcpyKind kind)
{
  struct cudaMemcpy3DParms p = {.srcPtr = {(void *)(uintptr_t)src, n, n, 1},
                                .dstPtr = {dst, n, n, 1},
                                .extent = {n, 1, 1},
                                .kind = kind};
  return put_copy_node(t, &p);
}

/* A copy to or from a variable is one to or from its address. */
static cudaError_t put_to(struct target t, const void *symbol, const void *src, size_t n,
                          size_t offset, enum cudaMemcpyKind kind)
{
  void *dst;
  cudaError_t e = rt_symbol_range(symbol, n, offset, &dst);
  return e ? e : put_line(t, dst, src, n, kind);
}

static cudaError_t put_from(struct target t, void *dst, const void *symbol, size_t n, size_t offset,
                            enum cudaMemcpyKind kind)
{
  void *src;
  cudaError_t e = rt_symbol_range(symbol, n, offset, &src);
  return e ? e : put_line(t, dst, src, n, kind);
}

RT_BODY(cudaGraphAddMemcpyNode, put_copy_node(A_NEW, pCopyParams))
RT_BODY(cudaGraphAddMemcpyNode1D, put_line(A_NEW, dst, src, count, kind))
RT_BODY(cudaGraphAddMemcpyNodeToSymbol, put_to(A_NEW, symbol, src, count, offset, kind))
RT_BODY(cudaGraphAddMemcpyNodeFromSymbol, put_from(A_NEW, dst, symbol, count, offset, kind))
RT_BODY(cudaGraphMemcpyNodeGetParams, get_copy(node, pNodeParams))
RT_BODY(cudaGraphMemcpyNodeSetParams, put_copy_node(THE_NODE, pNodeParams))
RT_BODY(cudaGraphMemcpyNodeSetParams1D, put_line(THE_NODE, dst, src, count, kind))
RT_BODY(cudaGraphMemcpyNodeSetParamsToSymbol, put_to(THE_NODE, symbol, src, count, offset, kind))
RT_BODY(cudaGraphMemcpyNodeSetParamsFromSymbol,
        put_from(THE_NODE, dst, symbol, count, offset, kind))
RT_BODY(cudaGraphExecMemcpyNodeSetParams, put_copy_node(THE_ONE(hGraphExec), pNodeParams))
RT_BODY(cudaGraphExecMemcpyNodeSetParams1D, put_line(THE_ONE(hGraphExec), dst, src, count, kind))
RT_BODY(cudaGraphExecMemcpyNodeSetParamsToSymbol,
        put_to(THE_ONE(hGraphExec), symbol, src, count, offset, kind))
RT_BODY(cudaGraphExecMemcpyNodeSetParamsFromSymbol,
        put_from(THE_ONE(hGraphExec), dst, symbol, count, offset, kind))

/* ---- the same bytes -------------------------------------------------------------------------- */

RT_CALL(cudaGraphAddMemsetNode,
        GraphAddMemsetNode(pGraphNode, graph, pDependencies, numDependencies,
                           (const CUDA_MEMSET_NODE_PARAMS *)pMemsetParams, context()))
RT_CALL(cudaGraphExecMemsetNodeSetParams,
        GraphExecMemsetNodeSetParams(hGraphExec, node, (const CUDA_MEMSET_NODE_PARAMS *)pNodeParams,
                                     context()))

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

static cudaError_t put_any(struct target t, const cudaGraphEdgeData *data,
                           struct cudaGraphNodeParams *p)
{
  CUgraphNodeParams c;
  cudaError_t e = p ? any_params(p, &c) : cudaErrorInvalidValue;
  if (e) return e;
  if (t.what != NEW)
    return rt_result(t.what == MADE ? rt_drv->GraphNodeSetParams(t.node, &c)
                                    : rt_drv->GraphExecNodeSetParams(t.exec, t.node, &c));
  e = rt_result(
      rt_drv->GraphAddNode(t.out, t.graph, t.after, (const CUgraphEdgeData *)data, t.count, &c));
  if (!e && p->type == cudaGraphNodeTypeConditional)
    p->conditional.phGraph_out = (cudaGraph_t *)c.conditional.phGraph_out;
  if (!e && p->type == cudaGraphNodeTypeMemAlloc) p->alloc.dptr = (void *)(uintptr_t)c.alloc.dptr;
  return e;
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
        pHandle_out ? condition(pHandle_out, graph, defaultLaunchValue, flags)
                    : cudaErrorInvalidValue)

RT_BODY(cudaGraphAddNode, put_any(A_NEW, dependencyData, nodeParams))
RT_BODY(cudaGraphNodeSetParams, put_any(THE_NODE, NULL, nodeParams))
RT_BODY(cudaGraphExecNodeSetParams, put_any(THE_ONE(graphExec), NULL, nodeParams))

/* ---- the memory of graphs -------------------------------------------------------------------- */

static cudaError_t trim_graph_memory(int device)
{
  CUdevice handle;
  cudaError_t e = rt_handle(device, &handle);
  return e ? e : rt_result(rt_drv->DeviceGraphMemTrim(handle));
}

static cudaError_t memory_attribute(int device, enum cudaGraphMemAttributeType attribute,
                                    void *value, bool set)
{
  CUdevice handle;
  cudaError_t e = rt_handle(device, &handle);
  if (e) return e;
  CUgraphMem_attribute a = (CUgraphMem_attribute)attribute;
  return rt_result(set ? rt_drv->DeviceSetGraphMemAttribute(handle, a, value)
                       : rt_drv->DeviceGetGraphMemAttribute(handle, a, value));
}

RT_BODY(cudaDeviceGraphMemTrim, trim_graph_memory(device))
RT_BODY(cudaDeviceGetGraphMemAttribute, memory_attribute(device, attr, value, false))
RT_BODY(cudaDeviceSetGraphMemAttribute, memory_attribute(device, attr, value, true))
