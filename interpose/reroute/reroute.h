/* reroute.h: strict and relaxed: memory of the program out of our caches.
 *
 * A routed row's wrapper calls its handler (weir_r_NAME) instead of the original, which the handler
 * gets and calls wherever it has nothing better: what we can't do exactly as the driver does, the
 * driver does. Pure questions whose answer depends on what is cached (weir_s_NAME) record no event.
 *
 * Every pointer the program holds is the start of one real allocation. A block in a cache is real
 * memory that the program believes freed, so that questions about it get the answer the driver has
 * for an address that is nobody's, and the driver's own memory never seems smaller than without us.
 *
 * strict: a free waits for the context's work, as cudaFree does; the block is reusable at once.
 * relaxed: a free does not wait; the block is reusable when the work of the streams that were busy
 * is complete (work.h). */
#ifndef WEIR_INTERPOSE_REROUTE_H
#define WEIR_INTERPOSE_REROUTE_H

#include "core/base/rules.h"
#include "interpose/process/mode.h"
#include "interpose/record/cuda_headers.h"
#include "interpose/record/record.h"
#include "interpose/reroute/fill.h"
#include "interpose/staging/staging.h"

typedef struct weir_route_options {
  enum weir_mode mode;
  uint64_t
      keep_bytes; /* most cached bytes of a context; UINT64_MAX: min(10 % of the device, 4 GiB) */
  uint64_t decay_ms;
  const weir_rules *rules; /* borrowed for the start only; NULL: none */
  weir_filling fill;       /* of blocks (fill.h) */
  weir_stage_options stage;
} weir_route_options;

void weir_route_start(const weir_route_options *options);
/* The original has handed this address out: no cache has it, whatever its records say. A context
 * that is destroyed takes its memory with it, and its caches' records go a moment later. */
void weir_route_handed_out(uint64_t address);

/* Nothing is routed or filled any more: where nothing is recorded, since what is not recorded is
 * not seen: contexts that end, captures, peer access. */
void weir_route_end(void);
/* In a fork's child: the same, unless the parent had no context. Then there is nothing that the
 * child lost, and all of CUDA may be ahead of it (a server that forks its workers first). */
void weir_route_forked(void);

/* A call has failed with a CUresult or cudaError_t (their numbers agree where it matters). True:
 * the device has no memory and caches, this thread or another by them, have given some back since
 * this thread last asked, so that the call is worth another try; and so is each that fails then. */
bool weir_route_failed(int error);

/* Such another try has succeeded. */
void weir_route_error_gone(int bank);

/* The same look at an error, for a call that is not tried again. */
void weir_route_saw(int error);

/* All that is cached goes back. True as above. */
bool weir_route_relieve(void);

/* The context, or all of a device's, is gone and its memory with it. */
void weir_route_context_gone(unsigned number);
/* Peer access was enabled: from now on no free of device memory is kept. */
void weir_route_peers(void);
/* A graph was made of work that may use any live block: none of these is cached from now on.
 * `tell`: the trace, too. */
void weir_route_taint_all(bool tell);

/* ---- handlers: allocations (alloc.c, host.c) ------------------------------------------------- */

cudaError_t weir_r_cudaMalloc(weir_call *c, cudaError_t (*real)(void **, size_t), void **out,
                              size_t bytes);
cudaError_t weir_r_cudaMallocPitch(weir_call *c,
                                   cudaError_t (*real)(void **, size_t *, size_t, size_t),
                                   void **out, size_t *pitch, size_t width, size_t height);
cudaError_t weir_r_cudaMalloc3D(weir_call *c,
                                cudaError_t (*real)(struct cudaPitchedPtr *, struct cudaExtent),
                                struct cudaPitchedPtr *out, struct cudaExtent extent);
cudaError_t weir_r_cudaFree(weir_call *c, cudaError_t (*real)(void *), void *ptr);
cudaError_t weir_r_cudaFreeAsync(weir_call *c, cudaError_t (*real)(void *, cudaStream_t), void *ptr,
                                 cudaStream_t stream);
CUresult weir_r_cuMemAlloc(weir_call *c, CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *out,
                           size_t bytes);
CUresult weir_r_cuMemAllocPitch(weir_call *c,
                                CUresult (*real)(CUdeviceptr *, size_t *, size_t, size_t, unsigned),
                                CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                unsigned element);
CUresult weir_r_cuMemFree(weir_call *c, CUresult (*real)(CUdeviceptr), CUdeviceptr ptr);
CUresult weir_r_cuMemFreeAsync(weir_call *c, CUresult (*real)(CUdeviceptr, CUstream),
                               CUdeviceptr ptr, CUstream stream);

cudaError_t weir_r_cudaMallocHost(weir_call *c, cudaError_t (*real)(void **, size_t), void **out,
                                  size_t bytes);
cudaError_t weir_r_cudaHostAlloc(weir_call *c, cudaError_t (*real)(void **, size_t, unsigned),
                                 void **out, size_t bytes, unsigned flags);
cudaError_t weir_r_cudaFreeHost(weir_call *c, cudaError_t (*real)(void *), void *ptr);
CUresult weir_r_cuMemAllocHost(weir_call *c, CUresult (*real)(void **, size_t), void **out,
                               size_t bytes);
CUresult weir_r_cuMemHostAlloc(weir_call *c, CUresult (*real)(void **, size_t, unsigned),
                               void **out, size_t bytes, unsigned flags);
CUresult weir_r_cuMemFreeHost(weir_call *c, CUresult (*real)(void *), void *ptr);

/* ---- handlers: waits and ends of streams (stream.c) ------------------------------------------ */

cudaError_t weir_r_sync_rt(weir_call *c, cudaError_t (*real)(void));
CUresult weir_r_sync(weir_call *c, CUresult (*real)(void));
cudaError_t weir_r_cudaStreamDestroy(weir_call *c, cudaError_t (*real)(cudaStream_t),
                                     cudaStream_t stream);
CUresult weir_r_cuGreenCtxStreamCreate(weir_call *c,
                                       CUresult (*real)(CUstream *, CUgreenCtx, unsigned, int),
                                       CUstream *stream, CUgreenCtx green, unsigned flags,
                                       int priority);
CUresult weir_r_cuCtxFromGreenCtx(weir_call *c, CUresult (*real)(CUcontext *, CUgreenCtx),
                                  CUcontext *context, CUgreenCtx green);
CUresult weir_r_cuStreamDestroy(weir_call *c, CUresult (*real)(CUstream), CUstream stream);

/* ---- handlers: copies (copy.c) --------------------------------------------------------------- */

cudaError_t weir_r_cudaMemcpy(weir_call *c,
                              cudaError_t (*real)(void *, const void *, size_t,
                                                  enum cudaMemcpyKind),
                              void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t weir_r_cudaMemcpyAsync(weir_call *c,
                                   cudaError_t (*real)(void *, const void *, size_t,
                                                       enum cudaMemcpyKind, cudaStream_t),
                                   void *dst, const void *src, size_t bytes,
                                   enum cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t weir_r_cudaMemcpy2D(weir_call *c,
                                cudaError_t (*real)(void *, size_t, const void *, size_t, size_t,
                                                    size_t, enum cudaMemcpyKind),
                                void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                size_t width, size_t rows, enum cudaMemcpyKind kind);
cudaError_t
weir_r_cudaMemcpy2DAsync(weir_call *c,
                         cudaError_t (*real)(void *, size_t, const void *, size_t, size_t, size_t,
                                             enum cudaMemcpyKind, cudaStream_t),
                         void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                         size_t width, size_t rows, enum cudaMemcpyKind kind, cudaStream_t stream);
CUresult weir_r_cuMemcpy(weir_call *c, CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t),
                         CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult weir_r_cuMemcpyAsync(weir_call *c,
                              CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t, CUstream),
                              CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult weir_r_cuMemcpyDtoD(weir_call *c, CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t),
                             CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult weir_r_cuMemcpyDtoDAsync(weir_call *c,
                                  CUresult (*real)(CUdeviceptr, CUdeviceptr, size_t, CUstream),
                                  CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult weir_r_cuMemcpyHtoD(weir_call *c, CUresult (*real)(CUdeviceptr, const void *, size_t),
                             CUdeviceptr dst, const void *src, size_t bytes);
CUresult weir_r_cuMemcpyHtoDAsync(weir_call *c,
                                  CUresult (*real)(CUdeviceptr, const void *, size_t, CUstream),
                                  CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
CUresult weir_r_cuMemcpyDtoH(weir_call *c, CUresult (*real)(void *, CUdeviceptr, size_t), void *dst,
                             CUdeviceptr src, size_t bytes);
CUresult weir_r_cuMemcpyDtoHAsync(weir_call *c,
                                  CUresult (*real)(void *, CUdeviceptr, size_t, CUstream),
                                  void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult weir_r_cuMemcpy2D(weir_call *c, CUresult (*real)(const CUDA_MEMCPY2D *),
                           const CUDA_MEMCPY2D *p);
CUresult weir_r_cuMemcpy2DAsync(weir_call *c, CUresult (*real)(const CUDA_MEMCPY2D *, CUstream),
                                const CUDA_MEMCPY2D *p, CUstream stream);

cudaError_t weir_r_cudaMemcpyPeer(weir_call *c,
                                  cudaError_t (*real)(void *, int, const void *, int, size_t),
                                  void *dst, int dst_device, const void *src, int src_device,
                                  size_t bytes);
CUresult weir_r_cuMemcpyPeer(
    weir_call *c, CUresult (*real)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t),
    CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context, size_t bytes);
cudaError_t weir_r_cudaMemcpyPeerAsync(
    weir_call *c, cudaError_t (*real)(void *, int, const void *, int, size_t, cudaStream_t),
    void *dst, int dst_device, const void *src, int src_device, size_t bytes, cudaStream_t stream);
CUresult weir_r_cuMemcpyPeerAsync(weir_call *c,
                                  CUresult (*real)(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext,
                                                   size_t, CUstream),
                                  CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                  CUcontext src_context, size_t bytes, CUstream stream);

/* ---- questions (query.c) --------------------------------------------------------------------- */

CUresult weir_s_cuMemGetInfo_v2(int bank, bool per_thread, CUresult (*real)(size_t *, size_t *),
                                size_t *free_bytes, size_t *total_bytes);
CUresult weir_s_cuMemGetAddressRange_v2(int bank, bool per_thread,
                                        CUresult (*real)(CUdeviceptr *, size_t *, CUdeviceptr),
                                        CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr);
CUresult weir_s_cuPointerGetAttribute(int bank, bool per_thread,
                                      CUresult (*real)(void *, CUpointer_attribute, CUdeviceptr),
                                      void *data, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult weir_s_cuPointerGetAttributes(int bank, bool per_thread,
                                       CUresult (*real)(unsigned, CUpointer_attribute *, void **,
                                                        CUdeviceptr),
                                       unsigned count, CUpointer_attribute *attributes, void **data,
                                       CUdeviceptr ptr);
CUresult
weir_s_cuPointerSetAttribute(int bank, bool per_thread,
                             CUresult (*real)(const void *, CUpointer_attribute, CUdeviceptr),
                             const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult weir_s_cuMemGetHandleForAddressRange(int bank, bool per_thread,
                                              CUresult (*real)(void *, CUdeviceptr, size_t,
                                                               CUmemRangeHandleType,
                                                               unsigned long long),
                                              void *handle, CUdeviceptr ptr, size_t bytes,
                                              CUmemRangeHandleType type, unsigned long long flags);
CUresult weir_s_cuIpcGetMemHandle(int bank, bool per_thread,
                                  CUresult (*real)(CUipcMemHandle *, CUdeviceptr),
                                  CUipcMemHandle *handle, CUdeviceptr ptr);

/* ---- within (defined in cache.c and query.c) ------------------------------------------------- */

/* What no allocation of the program can be: asked about, the driver says what it says of memory
 * that was freed. */
#define WEIR_NOBODYS ((uint64_t)16)

typedef struct weir_routed { /* what an address is */
  enum { WEIR_ROUTED_NOT, WEIR_ROUTED_LIVE, WEIR_ROUTED_CACHED } what;
  uint64_t base, requested; /* LIVE: start and bytes that the program knows of */
  uint64_t again;           /* LIVE, and its memory was another block's before: the allocation's
                               number, from 1; else 0 */
} weir_routed;

/* Any address, also inside a block. Asks the driver; not for hot paths. */
weir_routed weir_route_look(uint64_t address);
/* The live block's memory has been shared: its free shall be a real one. */
void weir_route_taint(uint64_t address, weir_reason why);
/* A capture is live or a context has an error that stays: everything is the driver's. */
bool weir_route_hands_off(void);
/* A debugger is at work, now that the program makes use of the device: all is the driver's. */
bool weir_route_watched(void);

#endif
