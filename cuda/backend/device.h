/* device.h: one CUDA device as the engine's backend. */
#ifndef WEIR_CUDA_BACKEND_DEVICE_H
#define WEIR_CUDA_BACKEND_DEVICE_H

#include <stdatomic.h>
#include "cuda/backend/driver.h"

typedef struct cuda_device_state {
  weir_backend backend;
  int index;                 /* as in cuda:N */
  CUdevice device;           /* the driver's */
  CUcontext context;         /* the primary one, retained while the backend is open; NULL: closed */
  CUmemAllocationProp page;  /* VMM: what a page is made of */
  _Atomic uint64_t taken[2]; /* bytes had from the driver: of the device, page-locked */
  _Atomic uint64_t asked;    /* bit a device: peer access between the two was asked for */
  struct cuda_range *ranges; /* owned; VMM: what is reserved and mapped (vmm.c) */
  CUdevice guests[64];       /* VMM: devices that pages are given to, too */
  unsigned guest_count;
  _Atomic int processors;                /* its multiprocessors; 0: not asked yet */
  _Atomic(struct k_index_fault *) fault; /* owned; what kernels note; NULL: none had it yet */
} cuda_device_state;

/* What a call into the driver changes of its thread and gives back afterwards: the context that is
 * current, and how strictly calls are taken while somebody captures a graph. */
typedef struct cuda_scope {
  CUstreamCaptureMode mode; /* the thread's own */
  bool pushed;              /* ours was not the current context */
  bool suspended;           /* the preload library, if there is one, was asked to look away */
} cuda_scope;

/* scope.c */
CUresult cuda_enter_context(const cuda_device_state *d, cuda_scope *s);
void cuda_leave_context(const cuda_device_state *d, cuda_scope *s);

/* Whether a call that failed is worth another try: the device had no memory left, and the preload
 * library's caches have given some back. */
bool cuda_try_again(CUresult r);

#define WEIR_CUDA_DO(d, result, call, is_suspended)                                                \
  do {                                                                                             \
    cuda_scope scope_ = {.suspended = (is_suspended)};                                             \
    (result) = cuda_enter_context(d, &scope_);                                                     \
    if (!(result)) {                                                                               \
      (result) = (call);                                                                           \
      if (cuda_try_again(result)) (result) = (call);                                               \
      cuda_leave_context(d, &scope_);                                                              \
    }                                                                                              \
  } while (0)

/* result = call, within the device's context. The call is the engine's own business. */
#define WEIR_CUDA_WITHIN(d, result, call) WEIR_CUDA_DO(d, result, call, true)
/* The same, and others are to know of the call: it is the program's work, or makes or ends a
 * stream. */
#define WEIR_CUDA_SEEN(d, result, call) WEIR_CUDA_DO(d, result, call, false)
/* As the two above; declares d, the device that `self` is, and what came of the call. */
#define WEIR_CUDA_CALL_WITHIN(d, self, result, call)                                               \
  cuda_device_state *d = self;                                                                     \
  CUresult result;                                                                                 \
  WEIR_CUDA_WITHIN(d, result, call)
#define WEIR_CUDA_CALL_SEEN(d, self, result, call)                                                 \
  cuda_device_state *d = self;                                                                     \
  CUresult result;                                                                                 \
  WEIR_CUDA_SEEN(d, result, call)

/* What the engine takes from the driver, reported to who listens (notify.c). Gone: before the call.
 */
void cuda_notify_mapped(const cuda_device_state *d, CUresult r, uint64_t address, uint64_t bytes,
                        memory_kind mem);
void cuda_notify_unmapped(uint64_t address);
void cuda_notify_taken(cuda_device_state *d, CUresult r, memory_kind mem, int64_t bytes);

/* copy.c: copies for tensors. */
weir_status cuda_copy(void *self, void *stream, enum weir_copy_way way, void *to, const void *from,
                      uint64_t bytes);
weir_status cuda_copy_done(void *self, void *stream, enum weir_copy_way way, void *to,
                           const void *from, uint64_t bytes);
weir_status cuda_copy_peer(void *self, void *stream, void *to, const weir_backend *source,
                           const void *from, uint64_t bytes);
/* The device's context ends: what others may reach of it, and it of them, is to be asked anew. */
void cuda_forget_peers(cuda_device_state *d, cuda_device_state *all, int count);

/* index.c: after a wait that returned `st`: an index out of bounds that a kernel has met, EINVAL,
 * once. */
weir_status cuda_index_fault(cuda_device_state *d, weir_status st);
/* The context ends. */
void cuda_index_close(cuda_device_state *d);

/* stream.c: fills in streams by priority, waiting, and the events of programs. */
void cuda_streams(weir_backend *b);
/* graph.c: fills in captures and graphs. */
void cuda_graphs(weir_backend *b);

/* vmm.c: fills the source's VMM part where the device has virtual memory management that works. The
 * context is retained. */
weir_status cuda_vmm(cuda_device_state *d);
/* The peer may reach the device's pages, those to come as well; nobody may any more. */
void cuda_grant_access(cuda_device_state *d, CUdevice peer);
void cuda_revoke_access(cuda_device_state *d);

#endif
