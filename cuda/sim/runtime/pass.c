/* pass.c: the entry points that are the driver's call of the same parameters, which gen.py finds.
 *
 * The runtime's handles, enumerations and structures are the driver's by other names, the options
 * of a library too: what a structure's pointer is cast to must be the same bytes. */
#include <cuda_profiler_api.h>
#include "cuda/sim/runtime/rt.h"

#define SAME(runtime, driver) _Static_assert(sizeof(runtime) == sizeof(driver), "same structure")

SAME(struct cudaMemPoolProps, CUmemPoolProps);
SAME(struct cudaMemAccessDesc, CUmemAccessDesc);
SAME(struct cudaMemLocation, CUmemLocation);
SAME(struct cudaMemPoolPtrExportData, CUmemPoolPtrExportData);
SAME(struct cudaMemcpyAttributes, CUmemcpyAttributes);
SAME(struct cudaMemcpy3DBatchOp, CUDA_MEMCPY3D_BATCH_OP);
_Static_assert(offsetof(struct cudaMemcpy3DBatchOp, extent) ==
                   offsetof(CUDA_MEMCPY3D_BATCH_OP, extent),
               "same structure");
SAME(cudaGraphEdgeData, CUgraphEdgeData);
SAME(cudaGraphInstantiateParams, CUDA_GRAPH_INSTANTIATE_PARAMS);
SAME(cudaGraphExecUpdateResultInfo, CUgraphExecUpdateResultInfo);
SAME(struct cudaMemAllocNodeParams, CUDA_MEM_ALLOC_NODE_PARAMS);
_Static_assert(offsetof(struct cudaMemAllocNodeParams, dptr) ==
                   offsetof(CUDA_MEM_ALLOC_NODE_PARAMS, dptr),
               "same structure");
SAME(struct cudaMemsetParams, CUDA_MEMSET_NODE_PARAMS);
SAME(struct cudaHostNodeParams, CUDA_HOST_NODE_PARAMS);
SAME(cudaLaunchAttributeValue, CUlaunchAttributeValue);
SAME(cudaIpcMemHandle_t, CUipcMemHandle);
SAME(cudaIpcEventHandle_t, CUipcEventHandle);

#include "pass.gen.h"
