/* context.h: which context and device the calling thread is on, and the driver's own functions that
 * the hooks ask (never through a wrapper; always with the thread's depth raised).
 *
 * A context gets a small *number* when it is first met, since an event has 8 bits for it: 1-254,
 * 255 for all further ones, 0 for none. A destroyed context's number can be given again. */
#ifndef WEIR_INTERPOSE_CONTEXT_H
#define WEIR_INTERPOSE_CONTEXT_H

#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"

/* X(exported symbol, its type) */
#define WEIR_HELPERS(X)                                                                            \
  X(cuCtxGetCurrent, PFN_cuCtxGetCurrent_v4000)                                                    \
  X(cuCtxGetDevice, PFN_cuCtxGetDevice_v2000)                                                      \
  X(cuDeviceGetAttribute, PFN_cuDeviceGetAttribute_v2000)                                          \
  X(cuDeviceGetName, PFN_cuDeviceGetName_v2000)                                                    \
  X(cuDriverGetVersion, PFN_cuDriverGetVersion_v2020)                                              \
  X(cuDeviceGetPCIBusId, PFN_cuDeviceGetPCIBusId_v4010)                                            \
  X(cuDeviceTotalMem_v2, PFN_cuDeviceTotalMem_v3020)                                               \
  X(cuDevicePrimaryCtxGetState, PFN_cuDevicePrimaryCtxGetState_v7000)                              \
  X(cuPointerGetAttribute, PFN_cuPointerGetAttribute_v4000)                                        \
  X(cuCtxPushCurrent_v2, PFN_cuCtxPushCurrent_v4000)                                               \
  X(cuCtxPopCurrent_v2, PFN_cuCtxPopCurrent_v4000)                                                 \
  X(cuCtxSynchronize, PFN_cuCtxSynchronize_v2000)                                                  \
  X(cuCtxRecordEvent, PFN_cuCtxRecordEvent_v12050)                                                 \
  X(cuThreadExchangeStreamCaptureMode, PFN_cuThreadExchangeStreamCaptureMode_v10010)               \
  X(cuMemAlloc_v2, PFN_cuMemAlloc_v3020)                                                           \
  X(cuMemFree_v2, PFN_cuMemFree_v3020)                                                             \
  X(cuMemFreeHost, PFN_cuMemFreeHost_v2000)                                                        \
  X(cuMemHostAlloc, PFN_cuMemHostAlloc_v2020)                                                      \
  X(cuMemHostGetFlags, PFN_cuMemHostGetFlags_v2030)                                                \
  X(cuStreamCreate, PFN_cuStreamCreate_v2000)                                                      \
  X(cuStreamDestroy_v2, PFN_cuStreamDestroy_v4000)                                                 \
  X(cuMemcpyHtoDAsync_v2, PFN_cuMemcpyHtoDAsync_v3020)                                             \
  X(cuMemcpyDtoHAsync_v2, PFN_cuMemcpyDtoHAsync_v3020)                                             \
  X(cuMemcpy2DAsync_v2, PFN_cuMemcpy2DAsync_v3020)                                                 \
  X(cuMemcpyDtoDAsync_v2, PFN_cuMemcpyDtoDAsync_v3020)                                             \
  X(cuMemsetD8Async, PFN_cuMemsetD8Async_v3020)                                                    \
  X(cuEventSynchronize, PFN_cuEventSynchronize_v2000)                                              \
  X(cuStreamSynchronize, PFN_cuStreamSynchronize_v2000)                                            \
  X(cuMemGetInfo_v2, PFN_cuMemGetInfo_v3020)                                                       \
  X(cuMemGetAddressRange_v2, PFN_cuMemGetAddressRange_v3020)                                       \
  X(cuDeviceGetGraphMemAttribute, PFN_cuDeviceGetGraphMemAttribute_v11040)                         \
  X(cuEventCreate, PFN_cuEventCreate_v2000)                                                        \
  X(cuEventDestroy_v2, PFN_cuEventDestroy_v4000)                                                   \
  X(cuEventRecord, PFN_cuEventRecord_v2000)                                                        \
  X(cuEventQuery, PFN_cuEventQuery_v2000)                                                          \
  X(cuStreamIsCapturing, PFN_cuStreamIsCapturing_v10000)                                           \
  X(cuStreamGetCtx, PFN_cuStreamGetCtx_v9020)                                                      \
  X(cuStreamQuery, PFN_cuStreamQuery_v2000)                                                        \
  X(cuStreamGetFlags, PFN_cuStreamGetFlags_v5050)                                                  \
  X(cuStreamWaitEvent, PFN_cuStreamWaitEvent_v3020)                                                \
  X(cuMemcpyPeer, PFN_cuMemcpyPeer_v4000)                                                          \
  X(cuMemcpyPeer_ptds, PFN_cuMemcpyPeer_v7000_ptds)                                                \
  X(cuMemcpyPeerAsync, PFN_cuMemcpyPeerAsync_v4000)                                                \
  X(cuMemGetAllocationPropertiesFromHandle, PFN_cuMemGetAllocationPropertiesFromHandle_v10020)     \
  X(cuMemPoolGetAttribute, PFN_cuMemPoolGetAttribute_v11020)                                       \
  X(cuMemPoolSetAttribute, PFN_cuMemPoolSetAttribute_v11020)                                       \
  X(cuMemPoolTrimTo, PFN_cuMemPoolTrimTo_v11020)                                                   \
  X(cuDeviceCanAccessPeer, PFN_cuDeviceCanAccessPeer_v4000)                                        \
  X(cuCtxEnablePeerAccess, PFN_cuCtxEnablePeerAccess_v4000)                                        \
  X(cuMemPoolCreate, PFN_cuMemPoolCreate_v11020)                                                   \
  X(cuMemPoolDestroy, PFN_cuMemPoolDestroy_v11020)                                                 \
  X(cuMemAllocFromPoolAsync, PFN_cuMemAllocFromPoolAsync_v11020)                                   \
  X(cuMemFreeAsync, PFN_cuMemFreeAsync_v11020)                                                     \
  X(cuDeviceGetMemPool, PFN_cuDeviceGetMemPool_v11020)                                             \
  X(cuDeviceGetDefaultMemPool, PFN_cuDeviceGetDefaultMemPool_v11020)                               \
  X(cuArray3DGetDescriptor_v2, PFN_cuArray3DGetDescriptor_v3020)                                   \
  X(cuGraphGetNodes, PFN_cuGraphGetNodes_v10000)                                                   \
  X(cuGraphNodeGetType, PFN_cuGraphNodeGetType_v10000)                                             \
  X(cuGraphKernelNodeGetParams, PFN_cuGraphKernelNodeGetParams_v10000)                             \
  X(cuGraphKernelNodeGetParams_v2, PFN_cuGraphKernelNodeGetParams_v12000)                          \
  X(cuGraphMemcpyNodeGetParams, PFN_cuGraphMemcpyNodeGetParams_v10000)                             \
  X(cuGraphMemsetNodeGetParams, PFN_cuGraphMemsetNodeGetParams_v10000)                             \
  X(cuGraphChildGraphNodeGetGraph, PFN_cuGraphChildGraphNodeGetGraph_v10000)                       \
  X(cuGraphMemAllocNodeGetParams, PFN_cuGraphMemAllocNodeGetParams_v11040)                         \
  X(cuGraphMemFreeNodeGetParams, PFN_cuGraphMemFreeNodeGetParams_v11040)                           \
  X(cuFuncGetName, PFN_cuFuncGetName_v12030)                                                       \
  X(cuFuncGetParamInfo, PFN_cuFuncGetParamInfo_v12040)                                             \
  X(cuKernelGetParamInfo, PFN_cuKernelGetParamInfo_v12040)                                         \
  X(cuKernelGetName, PFN_cuKernelGetName_v12030)

enum driver_helper {
#define WEIR_HELPER_ENUM(symbol, type) WEIR_H_##symbol,
  WEIR_HELPERS(WEIR_HELPER_ENUM)
#undef WEIR_HELPER_ENUM
      WEIR_HELPER_COUNT
};

#define WEIR_HELPER_TYPE(symbol, type) typedef type helper_##symbol;
WEIR_HELPERS(WEIR_HELPER_TYPE)
#undef WEIR_HELPER_TYPE

/* The program has initialised the driver. Until then it is asked for nothing: it would refuse, and
 * another interposer, whose functions we may find in its place, may have nothing yet to call. */
extern _Atomic bool driver_ready;

/* What cuInit returned, whoever called it. */
void driver_initialised(uint32_t status);

/* NULL: not looked for yet, or the driver is not ready; 1: looked for in vain. */
extern _Atomic(void *) driver_helpers[WEIR_HELPER_COUNT];
void *driver_helper_find(enum driver_helper which);

/* Helpers looked for in vain may be there now: a driver has come. */
void driver_helpers_retry(void);

/* Forgets the addresses of the helpers: to be called after a dlclose() that unloaded something.
 * They are found again at the next need. */
void driver_helpers_forget(void);

WEIR_INLINE void *driver_helper(enum driver_helper which)
{
  void *p = atomic_load_explicit(&driver_helpers[which], memory_order_acquire);
  return __builtin_expect((uintptr_t)p > 1, 1) ? p : driver_helper_find(which);
}

/* The driver has all of these. */
static inline bool weir_helpers_there(const enum driver_helper *needed, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (!driver_helper(needed[i])) return false;
  return true;
}

/* The driver's function, or NULL while no driver is loaded and initialised, or where it is too old
 * to have it. */
#define WEIR_HELPER(symbol) ((helper_##symbol)(uintptr_t)driver_helper(WEIR_H_##symbol))

/* Goes up whenever a context handle may come to mean another context. From 1. */
extern _Atomic uint32_t context_age;

/* Slow path: gives `context` a number, asks for its device, names the device in the spool. */
void context_add(thread_state *t, CUcontext context);

#define WEIR_CONTEXT_TRUST 16 /* see context_refresh_trusted() */

/* Makes t->last_* those of the thread's current context. Before a slot is taken: may write a NAME.
 */
WEIR_INLINE void context_refresh(thread_state *t)
{
  CUcontext now = NULL;
  PFN_cuCtxGetCurrent_v4000 ask = WEIR_HELPER(cuCtxGetCurrent);
  if (ask && ask(&now) != CUDA_SUCCESS) now = NULL;
  t->context_trust = WEIR_CONTEXT_TRUST;
  if ((uint64_t)(uintptr_t)now == t->last_context &&
      t->context_age == atomic_load_explicit(&context_age, memory_order_relaxed))
    return;
  context_add(t, now);
}

/* Asking costs as much as the rest of a frequent event. A thread's context changes only by calls
 * that are wrapped, at whatever depth, and each of them takes the trust away (gen.py, CONTEXT
 * rows); the limit is for what may go round them inside NVIDIA's own libraries. */
WEIR_INLINE void context_refresh_trusted(thread_state *t)
{
  if (t->context_trust && t->last_context &&
      t->context_age == atomic_load_explicit(&context_age, memory_order_relaxed))
    t->context_trust--;
  else
    context_refresh(t);
}

/* Number and device of a context met before; 0 and WEIR_DEVICE_NONE when it was not. */
unsigned context_number(uint64_t context);
unsigned context_device(uint64_t context);

/* The context with the number; 0: none now. */
uint64_t context_handle(unsigned number);

/* There is one that was met. */
bool context_any(void);

/* Work on more than one device has been seen. */
bool context_many_devices(void);

/* The program made the context itself: it is not the device's primary one. */
void context_set_own(uint64_t context);

/* Number of the device's primary context, as far as that is known: the only one met there that the
 * program has not made. 0: none, or several. */
unsigned context_primary(unsigned device);

/* The context is gone; or all of the device's but the program's own. */
void context_forget(uint64_t context);
void context_forget_device(unsigned device);

#endif
