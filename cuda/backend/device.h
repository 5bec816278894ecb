/* device.h: one CUDA device as the engine's backend. */
#ifndef WEIR_CUDA_DEVICE_H
#define WEIR_CUDA_DEVICE_H

#include <stdatomic.h>
#include "cuda/backend/driver.h"

typedef struct weir_cuda_device {
  weir_backend backend;
  int index;                 /* as in cuda:N */
  CUdevice device;           /* the driver's */
  CUcontext context;         /* the primary one, retained while the backend is open; NULL: closed */
  CUmemAllocationProp page;  /* VMM: what a page is made of */
  _Atomic uint64_t taken[2]; /* bytes had from the driver: of the device, page-locked */
  _Atomic uint64_t asked;    /* bit a device: peer access between the two was asked for */
  struct weir_cuda_range *ranges; /* owned; VMM: what is reserved and mapped (vmm.c) */
  CUdevice guests[64];            /* VMM: devices that pages are given to, too */
  unsigned guest_count;
  _Atomic int processors; /* its multiprocessors; 0: not asked yet */
} weir_cuda_device;

/* What a call into the driver changes of its thread and gives back afterwards: the context that is
 * current, and how strictly calls are taken while somebody captures a graph. */
typedef struct weir_cuda_scope {
  CUstreamCaptureMode mode; /* the thread's own */
  bool pushed;              /* ours was not the current context */
  bool hushed;              /* the preload library, if there is one, was asked to look away */
} weir_cuda_scope;

/* scope.c */
CUresult weir_cuda_enter(const weir_cuda_device *d, weir_cuda_scope *s);
void weir_cuda_leave(const weir_cuda_device *d, weir_cuda_scope *s);

/* Whether a call that failed is worth another try: the device had no memory left, and the preload
 * library's caches have given some back. */
bool weir_cuda_again(CUresult r);

#define WEIR_CUDA_DO(d, result, call, is_hushed)                                                   \
  do {                                                                                             \
    weir_cuda_scope scope_ = {.hushed = (is_hushed)};                                              \
    (result) = weir_cuda_enter(d, &scope_);                                                        \
    if (!(result)) {                                                                               \
      (result) = (call);                                                                           \
      if (weir_cuda_again(result)) (result) = (call);                                              \
      weir_cuda_leave(d, &scope_);                                                                 \
    }                                                                                              \
  } while (0)

/* result = call, within the device's context. The call is the engine's own business. */
#define WEIR_CUDA_WITHIN(d, result, call) WEIR_CUDA_DO(d, result, call, true)
/* The same, and others are to know of the call: it is the program's work, or makes or ends a
 * stream. */
#define WEIR_CUDA_SEEN(d, result, call) WEIR_CUDA_DO(d, result, call, false)
/* As the two above; declares d, the device that `self` is, and what came of the call. */
#define WEIR_CUDA_CALL_WITHIN(d, self, result, call)                                               \
  weir_cuda_device *d = self;                                                                      \
  CUresult result;                                                                                 \
  WEIR_CUDA_WITHIN(d, result, call)
#define WEIR_CUDA_CALL_SEEN(d, self, result, call)                                                 \
  weir_cuda_device *d = self;                                                                      \
  CUresult result;                                                                                 \
  WEIR_CUDA_SEEN(d, result, call)

/* What the engine takes from the driver, said to who listens (notify.c). Gone: ahead of the call.
 */
void weir_cuda_notify_mapped(const weir_cuda_device *d, CUresult r, uint64_t address,
                             uint64_t bytes, weir_mem mem);
void weir_cuda_notify_unmapped(uint64_t address);
void weir_cuda_notify_taken(weir_cuda_device *d, CUresult r, weir_mem mem, int64_t bytes);

/* copy.c: copies for tensors. */
weir_status weir_cuda_copy(void *self, void *stream, enum weir_copy_way way, void *to,
                           const void *from, uint64_t bytes);
weir_status weir_cuda_copy_done(void *self, void *stream, enum weir_copy_way way, void *to,
                                const void *from, uint64_t bytes);
weir_status weir_cuda_copy_peer(void *self, void *stream, void *to, const weir_backend *source,
                                const void *from, uint64_t bytes);
/* The device's context ends: what others may reach of it, and it of them, is to be asked anew. */
void weir_cuda_forget_peers(weir_cuda_device *d, weir_cuda_device *all, int count);

/* stream.c: fills in streams by priority, waiting, and the events of programs. */
void weir_cuda_streams(weir_backend *b);
/* graph.c: fills in captures and graphs. */
void weir_cuda_graphs(weir_backend *b);

/* vmm.c: fills the source's VMM part where the device has virtual memory management that works. The
 * context is retained. */
weir_status weir_cuda_vmm(weir_cuda_device *d);
/* The peer may reach the device's pages, those to come as well; nobody may any more. */
void weir_cuda_let_in(weir_cuda_device *d, CUdevice peer);
void weir_cuda_let_out(weir_cuda_device *d);

#endif
