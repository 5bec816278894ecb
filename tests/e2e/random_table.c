/* random_table.c: the random caller's operations on the rarer part of the table: batches, graphs
 * while they are made, pools, attributes, green contexts, links (see random.h).
 *
 * What a device may not have is called with ANY: whatever it answers, the call is in the trace with
 * that status. BELOW is a call of the runtime's that Weir sees as the driver's that it makes. */
#include <unistd.h>
#include "tests/e2e/random.h"

#define ANY(fn, ...)           (void)tally_call(c->sums, TALLY_NAME(fn), (int)fn(__VA_ARGS__))
#define BELOW(driver, fn, ...) expect(c, __func__, TALLY_NAME(driver), 0, (int)fn(__VA_ARGS__))

static void CUDART_CB nothing_to_do(void *data)
{
  (void)data;
}

static CUstream own_stream(caller *c)
{
  return c->stream[caller_random_below(c, STREAMS)];
}

/* ---- many at once ---------------------------------------------------------------------------- */

enum { ITEMS = 4 };

typedef struct batch {
  CUdeviceptr dst[ITEMS], src[ITEMS];
  size_t bytes[ITEMS];
  size_t count;
} batch;

/* Some copies within what is the caller's own, summed up. */
static batch draw_batch(caller *c)
{
  batch b = {.count = 1 + caller_random_below(c, ITEMS)};
  for (size_t i = 0; i < b.count; i++) {
    CUdeviceptr device = (CUdeviceptr)(uintptr_t)c->dev[c->device][caller_random_below(c, BUFFERS)];
    CUdeviceptr host = (CUdeviceptr)(uintptr_t)c->pinned[caller_random_below(c, BUFFERS)];
    size_t n = 1 + caller_random_below(c, BUFFER_BYTES / 2);
    uint32_t way = caller_random_below(c, 3);
    b.dst[i] = way == 1 ? host : device;
    b.src[i] = way == 0 ? host : way == 1 ? device : device + BUFFER_BYTES / 2;
    b.bytes[i] = n;
    if (way == 0) TALLY_MOVED(c->sums, h2d, n);
    if (way == 1) TALLY_MOVED(c->sums, d2h, n);
    if (way == 2) TALLY_MOVED(c->sums, d2d, n);
  }
  return b;
}

static void copy_batches(caller *c)
{
  CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  struct cudaMemcpyAttributes rt = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
  size_t first = 0;
  batch b = draw_batch(c);
  CALL(cuMemcpyBatchAsync, b.dst, b.src, b.bytes, b.count, &how, &first, 1, own_stream(c));
  b = draw_batch(c);
  BELOW(cuMemcpyBatchAsync, cudaMemcpyBatchAsync, (void *const *)b.dst, (const void *const *)b.src,
        b.bytes, b.count, &rt, &first, 1, own_stream(c));
}

static void copy_batch_3d(caller *c)
{
  batch b = draw_batch(c);
  CUDA_MEMCPY3D_BATCH_OP op[ITEMS];
  memset(op, 0, sizeof op);
  for (size_t i = 0; i < b.count; i++) {
    op[i].src.type = op[i].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    op[i].src.op.ptr.ptr = b.src[i];
    op[i].dst.op.ptr.ptr = b.dst[i];
    op[i].extent = (CUextent3D){b.bytes[i], 1, 1};
    op[i].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  }
  CALL(cuMemcpy3DBatchAsync, b.count, op, 0, own_stream(c));
}

/* A stream that waits for what it has written itself. */
static void values(caller *c)
{
  CUdeviceptr p = 0;
  CUstream s = own_stream(c);
  CUstreamBatchMemOpParams op[2];
  memset(op, 0, sizeof op);
  CALL(cuMemAlloc, &p, 64);
  c->sums->alloc_calls++, c->sums->alloc_bytes += 64;
  CALL(cuStreamWriteValue32, s, p, 7, 0);
  CALL(cuStreamWaitValue32, s, p, 7, CU_STREAM_WAIT_VALUE_EQ);
  CALL(cuStreamWriteValue64, s, p + 8, 9, 0);
  CALL(cuStreamWaitValue64, s, p + 8, 9, CU_STREAM_WAIT_VALUE_GEQ);
  op[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  op[0].writeValue.address = p + 16;
  op[0].writeValue.value = 3;
  op[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  op[1].waitValue.address = p + 16;
  op[1].waitValue.value = 3;
  op[1].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  CALL(cuStreamBatchMemOp, s, 2, op, 0);
  CALL(cuStreamSynchronize, s);
  c->sums->sync_explicit_calls++;
  CALL(cuMemFree, p);
  c->sums->free_calls++;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Its nodes move nothing: what a launch is made of is counted elsewhere. */
static void graph_without_copies(caller *c)
{
  CUgraph g = NULL, twin = NULL;
  CUgraphExec x = NULL;
  CUgraphNode first = NULL, host = NULL, record = NULL, wait = NULL, late = NULL;
  CUDA_HOST_NODE_PARAMS run = {nothing_to_do, NULL};
  CUstream s = own_stream(c);
  CALL(cuGraphCreate, &g, 0);
  CALL(cuGraphAddEmptyNode, &first, g, NULL, 0);
  CALL(cuGraphAddHostNode, &host, g, &first, 1, &run);
  CALL(cuGraphAddEventRecordNode, &record, g, &host, 1, c->event[0]);
  CALL(cuGraphAddEventWaitNode, &wait, g, NULL, 0, c->event[1]);
  CALL(cuGraphAddEmptyNode, &late, g, NULL, 0);
  CALL(cuGraphAddDependencies, g, &wait, &late, NULL, 1);
  CALL(cuGraphRemoveDependencies, g, &wait, &late, NULL, 1);
  CALL(cuGraphDestroyNode, late);
  CALL(cuGraphHostNodeSetParams, host, &run);
  CALL(cuGraphEventRecordNodeSetEvent, record, c->event[1]);
  CALL(cuGraphEventWaitNodeSetEvent, wait, c->event[0]);
  CALL(cuGraphClone, &twin, g);
  CALL(cuGraphInstantiateWithFlags, &x, g, 0);
  CALL(cuGraphExecHostNodeSetParams, x, host, &run);
  CALL(cuGraphExecEventRecordNodeSetEvent, x, record, c->event[0]);
  CALL(cuGraphExecEventWaitNodeSetEvent, x, wait, c->event[1]);
  CALL(cuGraphUpload, x, s);
  CALL(cuGraphLaunch, x, s);
  CALL(cuStreamSynchronize, s);
  c->sums->sync_explicit_calls++;
  CALL(cuGraphExecDestroy, x);
  CALL(cuGraphDestroy, twin);
  CALL(cuGraphDestroy, g);
}

/* Never launched. */
static void graph_of_work(caller *c)
{
  CUgraph g = NULL;
  CUgraphExec x = NULL;
  CUgraphNode set = NULL, copy = NULL, kernel = NULL, made = NULL, freed = NULL;
  int n = 8;
  CUdeviceptr p = (CUdeviceptr)(uintptr_t)c->dev[c->device][0];
  void *arguments[] = {&p, &n};
  CUDA_MEMSET_NODE_PARAMS zero = {
      .dst = p, .pitch = 64, .value = 0, .elementSize = 4, .width = 8, .height = 1};
  CUDA_MEMCPY3D across = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                          .srcDevice = p,
                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                          .dstDevice = p + 4096,
                          .WidthInBytes = 64,
                          .Height = 1,
                          .Depth = 1};
  CUDA_KERNEL_NODE_PARAMS launch = {.func = c->function,
                                    .gridDimX = 1,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 8,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = arguments};
  CUDA_MEM_ALLOC_NODE_PARAMS block = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device}},
      .bytesize = 4096};
  CALL(cuGraphCreate, &g, 0);
  CALL(cuGraphAddMemsetNode, &set, g, NULL, 0, &zero, c->context[c->device]);
  CALL(cuGraphAddKernelNode, &kernel, g, &set, 1, &launch);
  CALL(cuGraphAddMemcpyNode, &copy, g, &set, 1, &across, c->context[c->device]);
  CALL(cuGraphMemsetNodeSetParams, set, &zero);
  CALL(cuGraphMemcpyNodeSetParams, copy, &across);
  CALL(cuGraphKernelNodeSetParams, kernel, &launch);
  CALL(cuGraphInstantiateWithFlags, &x, g, 0);
  CALL(cuGraphExecMemsetNodeSetParams, x, set, &zero, c->context[c->device]);
  CALL(cuGraphExecMemcpyNodeSetParams, x, copy, &across, c->context[c->device]);
  CALL(cuGraphExecKernelNodeSetParams, x, kernel, &launch);
  CALL(cuGraphNodeSetEnabled, x, kernel, 0);
  CALL(cuGraphExecDestroy, x);
  CALL(cuGraphAddMemAllocNode, &made, g, &kernel, 1, &block);
  CALL(cuGraphAddMemFreeNode, &freed, g, &made, 1, block.dptr);
  CALL(cuGraphDestroy, g);
}

static void graph_things(caller *c)
{
  CUgraph g = NULL, child = NULL;
  CUgraphExec x = NULL;
  CUgraphNode node = NULL, kernel[2] = {NULL, NULL};
  CUuserObject object = NULL;
  CUgraphConditionalHandle condition = 0;
  CUgraphExecUpdateResultInfo how;
  CUgraphMem_attribute high = CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
  CUlaunchAttributeValue priority = {.priority = 0};
  CUgraphNodeParams empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
  cuuint64_t reset = 0;
  CALL(cuGraphCreate, &g, 0);
  BELOW(cuGraphCreate, cudaGraphCreate, &child, 0);
  CALL(cuGraphAddChildGraphNode, &node, g, NULL, 0, child);
  ANY(cuGraphAddNode, &node, g, NULL, NULL, 0, &empty);
  ANY(cuGraphAddBatchMemOpNode, &node, g, NULL, 0, NULL);
  ANY(cuGraphAddExternalSemaphoresSignalNode, &node, g, NULL, 0, NULL);
  ANY(cuGraphAddExternalSemaphoresWaitNode, &node, g, NULL, 0, NULL);
  ANY(cuGraphExternalSemaphoresSignalNodeSetParams, NULL, NULL);
  ANY(cuGraphExternalSemaphoresWaitNodeSetParams, NULL, NULL);
  ANY(cuGraphExecExternalSemaphoresSignalNodeSetParams, NULL, NULL, NULL);
  ANY(cuGraphExecExternalSemaphoresWaitNodeSetParams, NULL, NULL, NULL);
  ANY(cuGraphKernelNodeCopyAttributes, kernel[0], kernel[1]);
  ANY(cuGraphKernelNodeSetAttribute, kernel[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &priority);
  ANY(cuGraphConditionalHandleCreate, &condition, g, c->context[c->device], 0, 0);
  CALL(cuGraphInstantiateWithFlags, &x, g, 0);
  CALL(cuGraphExecUpdate, x, g, &how);
  CALL(cuGraphExecDestroy, x);
  CALL(cuUserObjectCreate, &object, &reset, nothing_to_do, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  CALL(cuUserObjectRetain, object, 1);
  CALL(cuUserObjectRelease, object, 1);
  CALL(cuGraphRetainUserObject, g, object, 1, 0);
  CALL(cuGraphReleaseUserObject, g, object, 1);
  CALL(cuUserObjectRelease, object, 1);
  CALL(cuDeviceSetGraphMemAttribute, c->device, high, &reset);
  CALL(cuDeviceGraphMemTrim, c->device);
  CALL(cuGraphDestroy, child);
  BELOW(cuGraphDestroy, cudaGraphDestroy, g);
}

/* ---- pools, attributes ----------------------------------------------------------------------- */

static void pools(caller *c)
{
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device}};
  CUmemAccessDesc access = {props.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemoryPool pool = NULL, other = NULL;
  CUmemPoolPtrExportData shared;
  cuuint64_t keep = 1 << 20;
  int handle = -1;
  CALL(cuMemPoolCreate, &pool, &props);
  CALL(cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
  BELOW(cuMemPoolSetAttribute, cudaMemPoolSetAttribute, pool, cudaMemPoolAttrReleaseThreshold,
        &keep);
  CALL(cuMemPoolSetAccess, pool, &access, 1);
  ANY(cuMemPoolExportToShareableHandle, &handle, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  ANY(cuMemPoolImportFromShareableHandle, &other, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
      0);
  ANY(cuMemPoolExportPointer, &shared, 0);
  CALL(cuMemPoolDestroy, pool);
}

static void attributes(caller *c)
{
  CUstreamAttrValue v;
  memset(&v, 0, sizeof v);
  ANY(cuStreamSetAttribute, c->stream[0], CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &v);
  ANY(cuStreamCopyAttributes, c->stream[0], c->stream[2]);
  ANY(cuFlushGPUDirectRDMAWrites, CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
      CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
}

static void managed_hints(caller *c)
{
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)c->managed;
  CUmemLocation to = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device};
  struct cudaMemLocation rt = {cudaMemLocationTypeDevice, c->device};
  ANY(cuMemPrefetchAsync, at, 4096, to, 0, c->stream[1]);
  ANY(cudaMemPrefetchAsync, c->managed, 4096, rt, 0, c->stream[1]);
  ANY(cuMemAdvise, at, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, to);
  ANY(cudaMemAdvise, c->managed, 4096, cudaMemAdviseUnsetReadMostly, rt);
  ANY(cuStreamAttachMemAsync, c->stream[1], at, 0, CU_MEM_ATTACH_GLOBAL);
  ANY(cudaStreamAttachMemAsync, c->stream[1], c->managed, 0, cudaMemAttachGlobal);
}

static void managed_batches(caller *c)
{
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)c->managed;
  size_t bytes = 4096, first = 0;
  CUmemLocation to = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device};
  ANY(cuMemPrefetchBatchAsync, &at, &bytes, 1, &to, &first, 1, 0, c->stream[1]);
  ANY(cuMemDiscardAndPrefetchBatchAsync, &at, &bytes, 1, &to, &first, 1, 0, c->stream[1]);
  ANY(cuMemDiscardBatchAsync, &at, &bytes, 1, 0, c->stream[1]);
}

/* Of nothing: each is refused. */
static void bad_textures(caller *c)
{
  CUtensorMap map;
  size_t offset;
  ANY(cuTexRefSetAddress, &offset, NULL, 0, 0);
  ANY(cuTexRefSetAddress2D, NULL, NULL, 0, 0);
  ANY(cuTensorMapEncodeTiled, &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 0, NULL, NULL, NULL, NULL, NULL,
      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  ANY(cuTensorMapEncodeIm2col, &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 0, NULL, NULL, NULL, NULL, NULL,
      0, 0, NULL, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  ANY(cuTensorMapEncodeIm2colWide, &map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 0, NULL, NULL, NULL, 0, 0,
      0, 0, NULL, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_IM2COL_WIDE_MODE_W,
      CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  ANY(cuTensorMapReplaceAddress, &map, NULL);
}

static void textures(caller *c)
{
  void *at = c->dev[c->device][0];
  CUDA_RESOURCE_DESC of = {.resType = CU_RESOURCE_TYPE_LINEAR,
                           .res.linear = {.devPtr = (CUdeviceptr)(uintptr_t)at,
                                          .format = CU_AD_FORMAT_FLOAT,
                                          .numChannels = 1,
                                          .sizeInBytes = 4096}};
  struct cudaResourceDesc rt = {
      .resType = cudaResourceTypeLinear,
      .res.linear = {.devPtr = at,
                     .desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat),
                     .sizeInBytes = 4096}};
  CUDA_TEXTURE_DESC how = {.flags = CU_TRSF_READ_AS_INTEGER};
  struct cudaTextureDesc rt_how = {.readMode = cudaReadModeElementType};
  CUtexObject made = 0;
  cudaTextureObject_t rt_made = 0;
  CALL(cuTexObjectCreate, &made, &of, &how, NULL);
  (void)cuTexObjectDestroy(made);
  BELOW(cuTexObjectCreate, cudaCreateTextureObject, &rt_made, &rt, &rt_how, NULL);
  (void)cudaDestroyTextureObject(rt_made);
}

/* ---- what a device may not have -------------------------------------------------------------- */

/* A block of the caller's that another process or device could use from now on. */
static void hand_over(caller *c)
{
  static const int on = 1;
  CUdeviceptr p = (CUdeviceptr)(uintptr_t)c->dev[c->device][0];
  CUipcMemHandle handle;
  cudaIpcMemHandle_t rt;
  int fd = -1;
  ANY(cuIpcGetMemHandle, &handle, p);
  BELOW(cuIpcGetMemHandle, cudaIpcGetMemHandle, &rt, c->dev[c->device][0]);
  ANY(cuMemGetHandleForAddressRange, &fd, p, 4096, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  if (fd >= 0) (void)close(fd);
  ANY(cuPointerSetAttribute, &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
}

static void shared_with_others(caller *c)
{
  CUexternalSemaphore semaphore = NULL;
  CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC none;
  CUipcEventHandle exported;
  CUevent event = NULL, opened = NULL;
  memset(&none, 0, sizeof none);
  ANY(cuImportExternalSemaphore, &semaphore, &none);
  ANY(cuSignalExternalSemaphoresAsync, NULL, NULL, 0, c->stream[0]);
  ANY(cuWaitExternalSemaphoresAsync, NULL, NULL, 0, c->stream[0]);
  ANY(cuDestroyExternalSemaphore, semaphore);
  CALL(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
  CALL(cuIpcGetEventHandle, &exported, event);
  ANY(cuIpcOpenEventHandle, &opened, exported); /* one's own: an error of its kind */
  if (opened) CALL(cuEventDestroy, opened);
  CALL(cuEventDestroy, event);
}

static void multicast(caller *c)
{
  CUmemGenericAllocationHandle all = 0;
  CUmulticastObjectProp props = {.numDevices = 0, .size = 2 << 20};
  ANY(cuMulticastCreate, &all, &props);
  ANY(cuMulticastAddDevice, all, c->device);
  ANY(cuMulticastBindMem, all, 0, 0, 0, 2 << 20, 0);
  ANY(cuMulticastBindAddr, all, 0, 0, 2 << 20, 0);
  ANY(cuMulticastUnbind, all, c->device, 0, 2 << 20);
}

static void green_contexts(caller *c)
{
  CUgreenCtx green = NULL;
  ANY(cuGreenCtxCreate, &green, NULL, c->device, 0);
  ANY(cuGreenCtxRecordEvent, green, c->event[0]);
  ANY(cuGreenCtxWaitEvent, green, c->event[0]);
  ANY(cuGreenCtxDestroy, green);
}

static void graphics(caller *c)
{
  CUgraphicsResource resource = NULL;
  CUdeviceptr at = 0;
  size_t bytes = 0;
  CUarray array = NULL;
  CUmipmappedArray levels = NULL;
  ANY(cuGraphicsResourceSetMapFlags, resource, 0);
  ANY(cuGraphicsMapResources, 0, &resource, c->stream[0]);
  ANY(cuGraphicsResourceGetMappedPointer, &at, &bytes, resource);
  ANY(cuGraphicsSubResourceGetMappedArray, &array, resource, 0, 0);
  ANY(cuGraphicsResourceGetMappedMipmappedArray, &levels, resource);
  ANY(cuGraphicsUnmapResources, 0, &resource, c->stream[0]);
  ANY(cuGraphicsUnregisterResource, resource);
}

static void packed(caller *c)
{
  CUmemDecompressParams none;
  memset(&none, 0, sizeof none);
  ANY(cuMemBatchDecompressAsync, &none, 1, 0, NULL, c->stream[0]);
  ANY(cuMemMapArrayAsync, NULL, 0, c->stream[0]);
}

static void code(caller *c)
{
  CUmodule module = NULL;
  CUlibrary library = NULL;
  CUmipmappedArray levels = NULL;
  CUdeviceptr variable = 0;
  size_t bytes = 0;
  CALL(cuModuleLoadData, &module, victim_ptx);
  ANY(cuModuleGetGlobal, &variable, &bytes, module, "none");
  CALL(cuModuleUnload, module);
  CALL(cuModuleLoadDataEx, &module, victim_ptx, 0, NULL, NULL);
  CALL(cuModuleUnload, module);
  ANY(cuModuleLoad, &module, "/nowhere");
  ANY(cuModuleLoadFatBinary, &module, NULL);
  CALL(cuLibraryLoadData, &library, victim_ptx, NULL, NULL, 0, NULL, NULL, 0);
  ANY(cuLibraryGetGlobal, &variable, &bytes, library, "none");
  (void)cuLibraryUnload(library); /* not recorded */
  ANY(cuLibraryLoadFromFile, &library, "/nowhere", NULL, NULL, 0, NULL, NULL, 0);
  ANY(cuExternalMemoryGetMappedMipmappedArray, &levels, NULL, NULL);
}

static void links(caller *c)
{
  CUlinkState state = NULL;
  void *image = NULL;
  size_t bytes = 0;
  ANY(cuLinkCreate, 0, NULL, NULL, &state);
  ANY(cuLinkAddData, state, CU_JIT_INPUT_PTX, NULL, 0, "none", 0, NULL, NULL);
  ANY(cuLinkAddFile, state, CU_JIT_INPUT_PTX, "none", 0, NULL, NULL);
  ANY(cuLinkComplete, state, &image, &bytes);
  ANY(cuLinkDestroy, state);
}

/* Of no process. */
static void checkpoints(caller *c)
{
  ANY(cuCheckpointProcessLock, -1, NULL);
  ANY(cuCheckpointProcessCheckpoint, -1, NULL);
  ANY(cuCheckpointProcessRestore, -1, NULL);
  ANY(cuCheckpointProcessUnlock, -1, NULL);
  ANY(cuProfilerStart);
  ANY(cuProfilerStop);
}

const operation HALF(table_operations)[] = {
    copy_batches,         copy_batch_3d,      values,       managed_hints,  packed,     code,
    graph_without_copies, graph_of_work,      graph_things, pools,          attributes, hand_over,
    managed_batches,      shared_with_others, multicast,    green_contexts, graphics,   links,
    checkpoints,          textures,           bad_textures};
const unsigned HALF(table_operation_count) = sizeof HALF(table_operations) /
                                             sizeof *HALF(table_operations);
