/* device.h: one CUDA device as the engine's backend. */
#ifndef WEIR_CUDA_DEVICE_H
#define WEIR_CUDA_DEVICE_H

#include "cuda/driver.h"

typedef struct weir_cuda_device {
  weir_backend backend;
  int index;                /* as in cuda:N */
  CUdevice device;          /* the driver's */
  CUcontext context;        /* the primary one, retained while the backend is open; NULL: closed */
  CUmemAllocationProp page; /* VMM: what a page is made of */
} weir_cuda_device;

/* What a call into the driver changes of its thread and gives back afterwards: the context that is
 * current, and how strictly calls are taken while somebody captures a graph. */
typedef struct weir_cuda_scope {
  CUstreamCaptureMode mode; /* the thread's own */
  bool pushed;              /* ours was not the current context */
} weir_cuda_scope;

CUresult weir_cuda_enter(const weir_cuda_device *d, weir_cuda_scope *s);
void weir_cuda_leave(const weir_cuda_device *d, weir_cuda_scope *s);

/* result = call, within the device's context. */
#define WEIR_CUDA_WITHIN(d, result, call)                                                          \
  do {                                                                                             \
    weir_cuda_scope scope_;                                                                        \
    (result) = weir_cuda_enter(d, &scope_);                                                        \
    if (!(result)) {                                                                               \
      (result) = (call);                                                                           \
      weir_cuda_leave(d, &scope_);                                                                 \
    }                                                                                              \
  } while (0)

/* vmm.c: fills the source's VMM part where the device has virtual memory management. */
weir_status weir_cuda_vmm(weir_cuda_device *d);

#endif
