/* driver.h: NVIDIA's driver, opened at run time.
 *
 * libweir-cuda.so links against libc only. The driver's entry points come from libcuda.so.1 by
 * cuGetProcAddress, by name and by the version whose signature we use (cudaTypedefs.h has the
 * types), with the legacy meaning of stream 0. All of them are in every driver since CUDA 12.0,
 * the oldest we take: what is missing is stated by name. */
#ifndef WEIR_CUDA_BACKEND_DRIVER_H
#define WEIR_CUDA_BACKEND_DRIVER_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include "core/backend/plugin.h"

/* X(function, version of the signature). */
#define WEIR_CUDA_CALLS(X)                                                                         \
  X(cuInit, 2000)                                                                                  \
  X(cuDriverGetVersion, 2020)                                                                      \
  X(cuGetErrorName, 6000)                                                                          \
  X(cuGetErrorString, 6000)                                                                        \
  X(cuDeviceGetCount, 2000)                                                                        \
  X(cuDeviceGet, 2000)                                                                             \
  X(cuDeviceGetName, 2000)                                                                         \
  X(cuDeviceGetUuid, 11040)                                                                        \
  X(cuDeviceGetAttribute, 2000)                                                                    \
  X(cuDeviceTotalMem, 3020)                                                                        \
  X(cuDeviceCanAccessPeer, 4000)                                                                   \
  X(cuDevicePrimaryCtxRetain, 7000)                                                                \
  X(cuDevicePrimaryCtxRelease, 11000)                                                              \
  X(cuCtxGetCurrent, 4000)                                                                         \
  X(cuCtxSetCurrent, 4000)                                                                         \
  X(cuCtxPushCurrent, 4000)                                                                        \
  X(cuCtxPopCurrent, 4000)                                                                         \
  X(cuCtxSynchronize, 2000)                                                                        \
  X(cuCtxGetStreamPriorityRange, 5050)                                                             \
  X(cuCtxEnablePeerAccess, 4000)                                                                   \
  X(cuThreadExchangeStreamCaptureMode, 10010)                                                      \
  X(cuMemGetInfo, 3020)                                                                            \
  X(cuMemAlloc, 3020)                                                                              \
  X(cuMemFree, 3020)                                                                               \
  X(cuMemHostRegister, 6050)                                                                       \
  X(cuMemHostUnregister, 4000)                                                                     \
  X(cuMemHostAlloc, 2020)                                                                          \
  X(cuMemFreeHost, 2000)                                                                           \
  X(cuMemGetAllocationGranularity, 10020)                                                          \
  X(cuMemAddressReserve, 10020)                                                                    \
  X(cuMemAddressFree, 10020)                                                                       \
  X(cuMemCreate, 10020)                                                                            \
  X(cuMemRelease, 10020)                                                                           \
  X(cuMemMap, 10020)                                                                               \
  X(cuMemUnmap, 10020)                                                                             \
  X(cuMemSetAccess, 10020)                                                                         \
  X(cuPointerGetAttribute, 4000)                                                                   \
  X(cuMemcpyDtoHAsync, 3020)                                                                       \
  X(cuMemcpyHtoDAsync, 3020)                                                                       \
  X(cuMemcpyDtoDAsync, 3020)                                                                       \
  X(cuMemcpyPeerAsync, 4000)                                                                       \
  X(cuLibraryLoadData, 12000)                                                                      \
  X(cuLibraryGetKernel, 12000)                                                                     \
  X(cuLaunchKernel, 4000)                                                                          \
  X(cuStreamCreate, 2000)                                                                          \
  X(cuStreamCreateWithPriority, 5050)                                                              \
  X(cuStreamGetPriority, 5050)                                                                     \
  X(cuStreamDestroy, 4000)                                                                         \
  X(cuStreamSynchronize, 2000)                                                                     \
  X(cuStreamQuery, 2000)                                                                           \
  X(cuStreamGetCtx, 9020)                                                                          \
  X(cuStreamIsCapturing, 10000)                                                                    \
  X(cuStreamWaitEvent, 3020)                                                                       \
  X(cuStreamBeginCapture, 10010)                                                                   \
  X(cuStreamEndCapture, 10000)                                                                     \
  X(cuGraphInstantiateWithFlags, 11040)                                                            \
  X(cuGraphDestroy, 10000)                                                                         \
  X(cuGraphLaunch, 10000)                                                                          \
  X(cuGraphExecDestroy, 10000)                                                                     \
  X(cuEventCreate, 2000)                                                                           \
  X(cuEventDestroy, 4000)                                                                          \
  X(cuEventRecord, 2000)                                                                           \
  X(cuEventQuery, 2000)                                                                            \
  X(cuEventElapsedTime, 2000)                                                                      \
  X(cuEventSynchronize, 2000)

typedef struct weir_driver {
#define WEIR_CUDA_MEMBER(name, version) PFN_##name##_v##version name;
  WEIR_CUDA_CALLS(WEIR_CUDA_MEMBER)
#undef WEIR_CUDA_MEMBER
} weir_driver;

extern weir_driver weir_cuda; /* whole once driver_open() has succeeded */
extern const cuda_core *cuda_core_calls;

#define cuda_fail_as          cuda_core_calls->fail
#define cuda_unsupported(...) cuda_fail_as(WEIR_ENOTSUP, __VA_ARGS__)

/* Opens and initialises the driver. Errors: ENOTSUP, ECUDA. */
weir_status driver_open(void);

/* Words a driver error: what was done (a format), then CUDA's name, number and text.
 * CUDA_ERROR_OUT_OF_MEMORY is WEIR_EOOM, anything else WEIR_ECUDA; CUDA_SUCCESS words nothing. */
weir_status driver_fail(CUresult result, const char *what, ...)
    __attribute__((format(printf, 2, 3)));

#endif
