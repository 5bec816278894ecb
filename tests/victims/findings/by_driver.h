/* by_driver.h: the runtime's functions, called as the driver's: with it in front (-include), what is written for one makes
 * the calls of the other, in the same lines. What is not here stays the runtime's, on the same contexts. */
#ifndef WEIR_TESTS_BY_DRIVER_H
#define WEIR_TESTS_BY_DRIVER_H

#include <cuda.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include "tests/victims/findings/waster.h"

enum { DRIVER_DEVICES = 8 };

extern const char victim_ptx[]; /* kernels.cu */

static __thread int driver_device; /* from 1; 0: none yet */

static CUfunction driver_touch[DRIVER_DEVICES];

static inline CUresult driver_set(int device)
{
  CUcontext context;
  CUresult r = cuInit(0);
  if (!r) r = cuDevicePrimaryCtxRetain(&context, device);
  if (!r) r = cuCtxSetCurrent(context);
  driver_device = device + 1;
  return r;
}

/* Before the first launch on a device, and before a capture, in which it may not be. */
static inline CUresult driver_load(void)
{
  CUmodule module;
  CUfunction *f = &driver_touch[driver_device - 1];
  CUresult r = *f ? CUDA_SUCCESS : cuModuleLoadData(&module, victim_ptx);
  return r || *f ? r : cuModuleGetFunction(f, module, "victim_touch");
}

/* A thread's first call makes device 0 its own, as the runtime does. */
#define DRIVER_CALL(call)                                                                          \
  ((cudaError_t)(driver_device || !driver_set(0) ? (call) : CUDA_ERROR_NOT_INITIALIZED))
#define DRIVER_AT(p) ((CUdeviceptr)(uintptr_t)(p))

/* Expressions, not functions: the line is the caller's. */
#define DRIVER_COPY(A, t, f, n, k, ...)                                                            \
  ((k) == cudaMemcpyHostToDevice     ? cuMemcpyHtoD##A(DRIVER_AT(t), f, n __VA_ARGS__)             \
   : (k) == cudaMemcpyDeviceToHost   ? cuMemcpyDtoH##A(t, DRIVER_AT(f), n __VA_ARGS__)             \
   : (k) == cudaMemcpyDeviceToDevice ? cuMemcpyDtoD##A(DRIVER_AT(t), DRIVER_AT(f), n __VA_ARGS__)  \
                                     : cuMemcpy##A(DRIVER_AT(t), DRIVER_AT(f), n __VA_ARGS__))
#define DRIVER_COMMA ,

static inline CUresult driver_launch_touch(CUstream s, float *p, int n)
{
  CUdeviceptr at = DRIVER_AT(p);
  void *args[] = {&at, &n};
  CUresult r = driver_load();
  return r ? r
           : cuLaunchKernel(driver_touch[driver_device - 1], 2, 1, 1, 64, 1, 1, 0, s, args, NULL);
}

#define launch(s, p, n)                 CHECK(DRIVER_CALL(driver_launch_touch(s, p, n)))
#define cudaSetDevice(d)                ((cudaError_t)driver_set(d))
#define cudaMalloc(p, n)                DRIVER_CALL(cuMemAlloc((CUdeviceptr *)(p), n))
#define cudaMallocManaged(p, n, f)      DRIVER_CALL(cuMemAllocManaged((CUdeviceptr *)(p), n, f))
#define cudaMallocHost(p, n)            DRIVER_CALL(cuMemAllocHost(p, n))
#define cudaHostAlloc(p, n, f)          DRIVER_CALL(cuMemHostAlloc(p, n, f))
#define cudaFree(p)                     DRIVER_CALL((p) ? cuMemFree(DRIVER_AT(p)) : CUDA_SUCCESS)
#define cudaFreeHost(p)                 DRIVER_CALL(cuMemFreeHost(p))
#define cudaMemGetInfo(l, a)            DRIVER_CALL(cuMemGetInfo(l, a))
#define cudaMemcpy(t, f, n, k)          DRIVER_CALL(DRIVER_COPY(, t, f, n, k, ))
#define cudaMemcpyAsync(t, f, n, k, s)  DRIVER_CALL(DRIVER_COPY(Async, t, f, n, k, DRIVER_COMMA s))
#define cudaMemset(p, v, n)             DRIVER_CALL(cuMemsetD8(DRIVER_AT(p), v, n))
#define cudaMemsetAsync(p, v, n, s)     DRIVER_CALL(cuMemsetD8Async(DRIVER_AT(p), v, n, s))
#define cudaDeviceSynchronize()         DRIVER_CALL(cuCtxSynchronize())
#define cudaStreamCreate(s)             DRIVER_CALL(cuStreamCreate(s, CU_STREAM_DEFAULT))
#define cudaStreamCreateWithFlags(s, f) DRIVER_CALL(cuStreamCreate(s, f))
#define cudaStreamSynchronize(s)        DRIVER_CALL(cuStreamSynchronize(s))
#define cudaStreamDestroy(s)            DRIVER_CALL(cuStreamDestroy(s))
#define cudaEventCreate(e)              DRIVER_CALL(cuEventCreate(e, CU_EVENT_DEFAULT))
#define cudaEventCreateWithFlags(e, f)  DRIVER_CALL(cuEventCreate(e, f))
#define cudaEventRecord(e, s)           DRIVER_CALL(cuEventRecord(e, s))
#define cudaEventSynchronize(e)         DRIVER_CALL(cuEventSynchronize(e))
#define cudaEventDestroy(e)             DRIVER_CALL(cuEventDestroy(e))
#define cudaLaunchHostFunc(s, f, p)     DRIVER_CALL(cuLaunchHostFunc(s, f, p))
#define cudaStreamBeginCapture(s, m)                                                               \
  DRIVER_CALL(driver_load() ? CUDA_ERROR_NOT_INITIALIZED                                           \
                            : cuStreamBeginCapture(s, (CUstreamCaptureMode)(m)))
#define cudaStreamEndCapture(s, g)    DRIVER_CALL(cuStreamEndCapture(s, g))
#define cudaGraphInstantiate(e, g, f) DRIVER_CALL(cuGraphInstantiate(e, g, f))
#define cudaGraphLaunch(e, s)         DRIVER_CALL(cuGraphLaunch(e, s))
#define cudaGraphExecDestroy(e)       DRIVER_CALL(cuGraphExecDestroy(e))
#define cudaGraphDestroy(g)           DRIVER_CALL(cuGraphDestroy(g))
#define cudaMallocAsync(p, n, s)      DRIVER_CALL(cuMemAllocAsync((CUdeviceptr *)(p), n, s))
#define cudaFreeAsync(p, s)           DRIVER_CALL(cuMemFreeAsync(DRIVER_AT(p), s))

#endif
