/* copy.c: copies of tensors, in the order of a stream.
 *
 * Pageable memory. Of a copy between a device and pageable memory NVIDIA states only that it "might
 * be synchronous with respect to host" (CUDA Driver API, "API synchronization behavior"; up to CUDA
 * 11 a worker thread staged it, and a device that reads pageable memory itself needs no staging).
 * So the stream is waited for after it; one that is waited for in any case is not asked what
 * memory it is. A graph would read and write such memory at every replay: capturing the copy is
 * refused.
 *
 * Peers. cuMemcpyPeerAsync() copies between any two devices; where peer access has been enabled it
 * "no longer needs to be staged through the host" (CUDA C++ Programming Guide, "Peer-to-Peer Memory
 * Copy"). Each pair is asked once, at its first copy, both ways; a refusal (no link, too many
 * peers) leaves the staging.
 *
 * All of this is the program's own work, so the preload library sees it. */
#include <pthread.h>
#include "cuda/backend/device.h"

static pthread_mutex_t peers_lock = PTHREAD_MUTEX_INITIALIZER;

/* Memory that the driver has not locked is an error to it, and an answer here. Within the context.
 */
static bool is_locked(const void *host)
{
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)host;
  CUmemorytype type = 0;
  unsigned managed = 0;
  if (weir_cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) ||
      type != CU_MEMORYTYPE_HOST)
    return false;
  return !weir_cuda.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) &&
         !managed;
}

static bool captured(CUstream stream)
{
  CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
  return !weir_cuda.cuStreamIsCapturing(stream, &now) && now != CU_STREAM_CAPTURE_STATUS_NONE;
}

static const char *const words[] = {"from the host to", "to the host from", "within"};

static CUresult enqueue_cuda_copy(CUstream stream, enum weir_copy_way way, void *to,
                                  const void *from, uint64_t bytes)
{
  CUdeviceptr device_to = (CUdeviceptr)(uintptr_t)to, device_from = (CUdeviceptr)(uintptr_t)from;
  if (way == WEIR_COPY_WITHIN)
    return weir_cuda.cuMemcpyDtoDAsync(device_to, device_from, bytes, stream);
  return way == WEIR_COPY_TO_HOST ? weir_cuda.cuMemcpyDtoHAsync(to, device_from, bytes, stream)
                                  : weir_cuda.cuMemcpyHtoDAsync(device_to, from, bytes, stream);
}

static CUresult enqueue_and_wait(CUstream stream, enum weir_copy_way way, void *to,
                                 const void *from, uint64_t bytes)
{
  CUresult r = enqueue_cuda_copy(stream, way, to, from, bytes);
  return r ? r : weir_cuda.cuStreamSynchronize(stream);
}

/* Within the context. CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: pageable memory in a capture. */
static CUresult copy_now(CUstream stream, enum weir_copy_way way, void *to, const void *from,
                         uint64_t bytes)
{
  if (way == WEIR_COPY_WITHIN || is_locked(way == WEIR_COPY_TO_HOST ? to : from))
    return enqueue_cuda_copy(stream, way, to, from, bytes);
  if (captured(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return enqueue_and_wait(stream, way, to, from, bytes);
}

static weir_status copy_result(const cuda_device_state *d, CUresult r, enum weir_copy_way way,
                               uint64_t bytes)
{
  return driver_fail(r, "copying %llu bytes %s cuda:%d", (unsigned long long)bytes, words[way],
                     d->index);
}

weir_status cuda_copy(void *self, void *stream, enum weir_copy_way way, void *to, const void *from,
                      uint64_t bytes)
{
  if (!bytes) return WEIR_OK;
  WEIR_CUDA_CALL_SEEN(d, self, r, copy_now(stream, way, to, from, bytes));
  if (r == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && way != WEIR_COPY_WITHIN)
    return cuda_fail_as(WEIR_EINVAL,
                        "a copy %s cuda:%d with pageable memory cannot be captured into a "
                        "graph, whose replays would use that memory again: pin it",
                        words[way], d->index);
  return copy_result(d, r, way, bytes);
}

weir_status cuda_copy_done(void *self, void *stream, enum weir_copy_way way, void *to,
                           const void *from, uint64_t bytes)
{
  WEIR_CUDA_CALL_SEEN(d, self, r,
                      bytes ? enqueue_and_wait(stream, way, to, from, bytes)
                            : weir_cuda.cuStreamSynchronize(stream));
  return cuda_index_fault(d, copy_result(d, r, way, bytes));
}

/* ---- peers ----------------------------------------------------------------------------------- */

/* What comes of it shows in the copies' speed only. */
static void enable(cuda_device_state *d, cuda_device_state *peer)
{
  int can = 0;
  CUresult r = weir_cuda.cuDeviceCanAccessPeer(&can, d->device, peer->device);
  if (r || !can) return;
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuCtxEnablePeerAccess(peer->context, 0));
  if (!r || r == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) cuda_grant_access(peer, d->device);
}

static void enable_peers(cuda_device_state *a, cuda_device_state *b)
{
  if (atomic_load_explicit(&a->asked, memory_order_acquire) >> b->index & 1) return;
  pthread_mutex_lock(&peers_lock);
  if (!(atomic_load(&a->asked) >> b->index & 1)) {
    enable(a, b);
    enable(b, a);
    atomic_fetch_or(&a->asked, UINT64_C(1) << b->index);
    atomic_fetch_or(&b->asked, UINT64_C(1) << a->index);
  }
  pthread_mutex_unlock(&peers_lock);
}

void cuda_forget_peers(cuda_device_state *d, cuda_device_state *all, int count)
{
  cuda_revoke_access(d);
  pthread_mutex_lock(&peers_lock);
  atomic_store(&d->asked, 0);
  for (int i = 0; i < count; i++)
    atomic_fetch_and(&all[i].asked, ~(UINT64_C(1) << d->index));
  pthread_mutex_unlock(&peers_lock);
}

weir_status cuda_copy_peer(void *self, void *stream, void *to, const weir_backend *source,
                           const void *from, uint64_t bytes)
{
  cuda_device_state *d = self, *s = source->self;
  CUresult r;
  if (!bytes) return WEIR_OK;
  enable_peers(d, s);
  WEIR_CUDA_SEEN(d, r,
                 weir_cuda.cuMemcpyPeerAsync((CUdeviceptr)(uintptr_t)to, d->context,
                                             (CUdeviceptr)(uintptr_t)from, s->context, bytes,
                                             stream));
  return driver_fail(r, "copying %llu bytes from cuda:%d to cuda:%d", (unsigned long long)bytes,
                     s->index, d->index);
}
