/* graph.c: stream capture and graphs: what is the driver's call of the same name. What nodes do,
 * and so structures that differ, is graph_node.c. */
#include "cuda/sim/runtime/rt.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "same structure");
_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "same");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo),
               "same structure");

#define EDGES(p)       ((CUgraphEdgeData *)(p))
#define CONST_EDGES(p) ((const CUgraphEdgeData *)(p))

/* ---- capture --------------------------------------------------------------------------------- */

RT_CALL_BOTH(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
             StreamBeginCapture(stream, (CUstreamCaptureMode)mode))
RT_CALL_BOTH(cudaStreamBeginCaptureToGraph, _ptsz,
             (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *after,
              const cudaGraphEdgeData *data, size_t count, enum cudaStreamCaptureMode mode),
             StreamBeginCaptureToGraph(stream, graph, after, CONST_EDGES(data), count,
                                       (CUstreamCaptureMode)mode))
RT_CALL_BOTH(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph),
             StreamEndCapture(stream, graph))
RT_CALL_BOTH(cudaStreamGetCaptureInfo, _ptsz,
             (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
              cudaGraph_t *graph, const cudaGraphNode_t **after, const cudaGraphEdgeData **data,
              size_t *count),
             StreamGetCaptureInfo(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph,
                                  after, (const CUgraphEdgeData **)data, count))
RT_CALL_BOTH(cudaStreamUpdateCaptureDependencies, _ptsz,
             (cudaStream_t stream, cudaGraphNode_t *after, const cudaGraphEdgeData *data,
              size_t count, unsigned int flags),
             StreamUpdateCaptureDependencies(stream, after, CONST_EDGES(data), count, flags))

/* ---- graphs ---------------------------------------------------------------------------------- */

RT_CALL(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), GraphCreate(graph, flags))
RT_CALL(cudaGraphDestroy, (cudaGraph_t graph), GraphDestroy(graph))
RT_CALL(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), GraphClone(clone, graph))
RT_CALL(cudaGraphNodeFindInClone,
        (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone),
        GraphNodeFindInClone(node, original, clone))
RT_CALL(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type),
        GraphNodeGetType(node, (CUgraphNodeType *)type))
RT_CALL(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
        GraphGetNodes(graph, nodes, count))
RT_CALL(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
        GraphGetRootNodes(graph, nodes, count))
RT_CALL(cudaGraphGetEdges,
        (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data,
         size_t *count),
        GraphGetEdges(graph, from, to, EDGES(data), count))
RT_CALL(cudaGraphNodeGetDependencies,
        (cudaGraphNode_t node, cudaGraphNode_t *list, cudaGraphEdgeData *data, size_t *count),
        GraphNodeGetDependencies(node, list, EDGES(data), count))
RT_CALL(cudaGraphNodeGetDependentNodes,
        (cudaGraphNode_t node, cudaGraphNode_t *list, cudaGraphEdgeData *data, size_t *count),
        GraphNodeGetDependentNodes(node, list, EDGES(data), count))
RT_CALL(cudaGraphAddDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
         const cudaGraphEdgeData *data, size_t count),
        GraphAddDependencies(graph, from, to, CONST_EDGES(data), count))
RT_CALL(cudaGraphRemoveDependencies,
        (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
         const cudaGraphEdgeData *data, size_t count),
        GraphRemoveDependencies(graph, from, to, CONST_EDGES(data), count))
RT_CALL(cudaGraphDestroyNode, (cudaGraphNode_t node), GraphDestroyNode(node))
RT_CALL(cudaGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned int flags),
        GraphDebugDotPrint(graph, path, flags))

/* ---- executable graphs ----------------------------------------------------------------------- */

RT_CALL(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        GraphInstantiateWithFlags(exec, graph, flags))
RT_CALL(cudaGraphInstantiateWithFlags,
        (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
        GraphInstantiateWithFlags(exec, graph, flags))
RT_CALL_BOTH(cudaGraphInstantiateWithParams, _ptsz,
             (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params),
             GraphInstantiateWithParams(exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params))
RT_CALL(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags),
        GraphExecGetFlags(exec, (cuuint64_t *)flags))
RT_CALL(cudaGraphExecDestroy, (cudaGraphExec_t exec), GraphExecDestroy(exec))
RT_CALL(cudaGraphExecUpdate,
        (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
        GraphExecUpdate(exec, graph, (CUgraphExecUpdateResultInfo *)info))
RT_CALL(cudaGraphNodeSetEnabled, (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int enabled),
        GraphNodeSetEnabled(exec, node, enabled))
RT_CALL(cudaGraphNodeGetEnabled,
        (cudaGraphExec_t exec, cudaGraphNode_t node, unsigned int *enabled),
        GraphNodeGetEnabled(exec, node, enabled))
RT_CALL_BOTH(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
             GraphUpload(exec, stream))
RT_CALL_BOTH(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
             GraphLaunch(exec, stream))

/* ---- user objects, and the memory of graphs -------------------------------------------------- */

RT_CALL(cudaUserObjectCreate,
        (cudaUserObject_t * object, void *data, cudaHostFn_t destroy, unsigned int refs,
         unsigned int flags),
        UserObjectCreate(object, data, destroy, refs, flags))
RT_CALL(cudaUserObjectRetain, (cudaUserObject_t object, unsigned int count),
        UserObjectRetain(object, count))
RT_CALL(cudaUserObjectRelease, (cudaUserObject_t object, unsigned int count),
        UserObjectRelease(object, count))
RT_CALL(cudaGraphRetainUserObject,
        (cudaGraph_t graph, cudaUserObject_t object, unsigned int count, unsigned int flags),
        GraphRetainUserObject(graph, object, count, flags))
RT_CALL(cudaGraphReleaseUserObject,
        (cudaGraph_t graph, cudaUserObject_t object, unsigned int count),
        GraphReleaseUserObject(graph, object, count))

static cudaError_t trim(int device)
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

RT_BODY(cudaDeviceGraphMemTrim, (int device), trim(device))
RT_BODY(cudaDeviceGetGraphMemAttribute,
        (int device, enum cudaGraphMemAttributeType attribute, void *value),
        memory_attribute(device, attribute, value, false))
RT_BODY(cudaDeviceSetGraphMemAttribute,
        (int device, enum cudaGraphMemAttributeType attribute, void *value),
        memory_attribute(device, attribute, value, true))
