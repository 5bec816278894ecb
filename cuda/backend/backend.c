/* backend.c: a CUDA device as the engine's seam has it (core/backend/backend.h), by the driver API.
 *
 * Streams. NULL and CU_STREAM_LEGACY are one stream. CU_STREAM_PER_THREAD is one handle and a
 * stream of its own in every thread: "freed on that stream" would not state which, so it is
 * refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/backend/launch.h"

enum { DEVICES = 64, ADDRESS_UNIT = 512 };

static cuda_device_state devices[DEVICES];
static int device_count;

/* ---- memory ---------------------------------------------------------------------------------- */

static weir_status cuda_mem_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
  size_t free_now = 0, total = 0;
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuMemGetInfo(&free_now, &total));
  *free_bytes = free_now;
  *total_bytes = total;
  return driver_fail(r, "cuMemGetInfo on cuda:%d", d->index);
}

/* Calls that take memory and give it back, and those who listen are notified of which. Within the
 * context. */

static CUresult device_take(const cuda_device_state *d, CUdeviceptr *at, uint64_t bytes)
{
  CUresult r = weir_cuda.cuMemAlloc(at, bytes);
  cuda_notify_mapped(d, r, *at, bytes, WEIR_MEM_DEVICE);
  return r;
}

static CUresult device_give(const cuda_device_state *d, CUdeviceptr at, uint64_t bytes)
{
  cuda_notify_unmapped(at);
  CUresult r = weir_cuda.cuMemFree(at);
  if (r) cuda_notify_mapped(d, CUDA_SUCCESS, at, bytes, WEIR_MEM_DEVICE);
  return r;
}

/* For all devices, and mapped: with unified addressing cuMemHostAlloc()'s memory is so anyway, and
 * the runtime's cudaHostRegister() makes it so; the driver's registers for the context alone, which
 * to others is pageable. */
static CUresult host_lock(const cuda_device_state *d, void *at, uint64_t bytes, unsigned flags)
{
  flags |= CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
  CUresult r = weir_cuda.cuMemHostRegister(at, bytes, flags);
  cuda_notify_mapped(d, r, (uint64_t)(uintptr_t)at, bytes, WEIR_MEM_PINNED);
  return r;
}

static CUresult host_take(const cuda_device_state *d, void **at, uint64_t bytes, unsigned flags)
{
  CUresult r = weir_cuda.cuMemHostAlloc(at, bytes, flags);
  cuda_notify_mapped(d, r, r ? 0 : (uint64_t)(uintptr_t)*at, bytes, WEIR_MEM_PINNED);
  return r;
}

static CUresult host_give(const cuda_device_state *d, void *at, uint64_t bytes,
                          CUresult (*give)(void *))
{
  cuda_notify_unmapped((uint64_t)(uintptr_t)at);
  CUresult r = give(at);
  if (r) cuda_notify_mapped(d, CUDA_SUCCESS, (uint64_t)(uintptr_t)at, bytes, WEIR_MEM_PINNED);
  return r;
}

static weir_status cuda_segment_free(void *self, uint64_t address, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, device_give(d, address, bytes));
  cuda_notify_taken(d, r, WEIR_MEM_DEVICE, -(int64_t)bytes);
  return driver_fail(r, "cuMemFree of %llu bytes at 0x%llx on cuda:%d", (unsigned long long)bytes,
                     (unsigned long long)address, d->index);
}

static weir_status cuda_segment_alloc(void *self, uint64_t bytes, uint64_t *address)
{
  CUdeviceptr at = 0;
  WEIR_CUDA_CALL_WITHIN(d, self, r, device_take(d, &at, bytes));
  cuda_notify_taken(d, r, WEIR_MEM_DEVICE, (int64_t)bytes);
  if (r)
    return driver_fail(r, "cuMemAlloc of %llu bytes on cuda:%d", (unsigned long long)bytes,
                       d->index);
  *address = at;
  if (at % ADDRESS_UNIT == 0 && (at + bytes) >> 48 == 0) return WEIR_OK;
  (void)cuda_segment_free(self, at, bytes);
  return cuda_unsupported(
      "cuMemAlloc on cuda:%d gave 0x%llx, which is not a multiple of %d below 2^48", d->index,
      (unsigned long long)at, ADDRESS_UNIT);
}

_Static_assert(WEIR_HOST_PORTABLE == CU_MEMHOSTALLOC_PORTABLE &&
                   WEIR_HOST_MAPPED == CU_MEMHOSTALLOC_DEVICEMAP &&
                   WEIR_HOST_WRITE_COMBINED == CU_MEMHOSTALLOC_WRITECOMBINED,
               "the seam's flags are the driver's");
_Static_assert((WEIR_HOST_PORTABLE | WEIR_HOST_MAPPED) ==
                   (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP),
               "for both ways to lock memory");

static weir_status host_register(void *self, void *memory, uint64_t bytes, unsigned flags)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, host_lock(d, memory, bytes, flags));
  cuda_notify_taken(d, r, WEIR_MEM_PINNED, (int64_t)bytes);
  return driver_fail(r, "cuMemHostRegister of %llu bytes at %p for cuda:%d",
                     (unsigned long long)bytes, memory, d->index);
}

static weir_status host_unregister(void *self, void *memory, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, host_give(d, memory, bytes, weir_cuda.cuMemHostUnregister));
  cuda_notify_taken(d, r, WEIR_MEM_PINNED, -(int64_t)bytes);
  return driver_fail(r, "cuMemHostUnregister of %llu bytes at %p for cuda:%d",
                     (unsigned long long)bytes, memory, d->index);
}

static weir_status cuda_host_alloc(void *self, uint64_t bytes, unsigned flags, void **out)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, host_take(d, out, bytes, flags));
  cuda_notify_taken(d, r, WEIR_MEM_PINNED, (int64_t)bytes);
  return driver_fail(r, "cuMemHostAlloc of %llu bytes for cuda:%d", (unsigned long long)bytes,
                     d->index);
}

static weir_status cuda_host_free(void *self, void *memory, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, host_give(d, memory, bytes, weir_cuda.cuMemFreeHost));
  cuda_notify_taken(d, r, WEIR_MEM_PINNED, -(int64_t)bytes);
  return driver_fail(r, "cuMemFreeHost of %llu bytes at %p for cuda:%d", (unsigned long long)bytes,
                     memory, d->index);
}

/* Of memory that CUDA does not know it states CUDA_ERROR_INVALID_VALUE, which here is an answer.
 * Managed memory moves, so it is not locked. */
static weir_status host_is_pinned(void *self, const void *memory, bool *pinned)
{
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)memory;
  CUmemorytype type = 0;
  unsigned managed = 0;
  WEIR_CUDA_CALL_WITHIN(
      d, self, r, weir_cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
  *pinned = !r && type == CU_MEMORYTYPE_HOST;
  if (*pinned) {
    WEIR_CUDA_WITHIN(
        d, r, weir_cuda.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at));
    *pinned = !r && !managed;
  }
  return r == CUDA_ERROR_INVALID_VALUE
             ? WEIR_OK
             : driver_fail(r, "cuPointerGetAttribute of %p on cuda:%d", memory, d->index);
}

/* By the driver (since CUDA 12.2), else by what Linux knows of the PCI device. */
static int numa_node(void *self)
{
  const cuda_device_state *d = self;
  static const CUdevice_attribute place[] = {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID,
                                             CU_DEVICE_ATTRIBUTE_PCI_BUS_ID,
                                             CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID};
  int node = -1, at[3] = {0};
  char path[80];
  if (!weir_cuda.cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, d->device) &&
      node >= 0)
    return node;
  for (int i = 0; i < 3; i++)
    if (weir_cuda.cuDeviceGetAttribute(&at[i], place[i], d->device)) return -1;
  (void)snprintf(path, sizeof path, "/sys/bus/pci/devices/%04x:%02x:%02x.0/numa_node", at[0], at[1],
                 at[2]);
  FILE *f = fopen(path, "re");
  if (!f) return -1;
  char text[16] = "";
  char *line = fgets(text, sizeof text, f);
  (void)fclose(f);
  return line && text[0] >= '0' && text[0] <= '9' ? (int)strtol(text, NULL, 10) : -1;
}

/* ---- streams and events ---------------------------------------------------------------------- */

static weir_status cuda_event_create(void *self, void **event)
{
  CUevent e = NULL;
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  if (!r) *event = e;
  return driver_fail(r, "cuEventCreate on cuda:%d", d->index);
}

static weir_status cuda_event_destroy(void *self, void *event)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuEventDestroy(event));
  return driver_fail(r, "cuEventDestroy on cuda:%d", d->index);
}

static weir_status cuda_event_record(void *self, void *event, void *stream)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuEventRecord(event, stream));
  return driver_fail(r, "cuEventRecord in stream %p of cuda:%d", stream, d->index);
}

static weir_status cuda_event_query(void *self, void *event, bool *complete)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuEventQuery(event));
  *complete = r == CUDA_SUCCESS;
  return r == CUDA_ERROR_NOT_READY ? WEIR_OK : driver_fail(r, "cuEventQuery on cuda:%d", d->index);
}

static weir_status event_wait(void *self, void *stream, void *event)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r,
                        weir_cuda.cuStreamWaitEvent(stream, event, CU_EVENT_WAIT_DEFAULT));
  return driver_fail(r, "cuStreamWaitEvent in stream %p of cuda:%d", stream, d->index);
}

static weir_status event_sync(void *self, void *event)
{
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuEventSynchronize(event));
  return driver_fail(r, "cuEventSynchronize on cuda:%d", d->index);
}

/* Asking is always allowed. IMPLICIT: the stream is the legacy one, and a blocking stream of the
 * context captures; an event recorded now would end that capture. Any other error is for the record
 * that follows to meet and to word. */
static bool stream_capturing(void *self, void *stream)
{
  CUstreamCaptureStatus now = CU_STREAM_CAPTURE_STATUS_NONE;
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuStreamIsCapturing(stream, &now));
  return r ? r == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : now != CU_STREAM_CAPTURE_STATUS_NONE;
}

static weir_status stream_create(void *self, void **stream)
{
  CUstream s = NULL;
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  if (!r) *stream = s;
  return driver_fail(r, "cuStreamCreate on cuda:%d", d->index);
}

static weir_status stream_destroy(void *self, void *stream)
{
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuStreamDestroy(stream));
  return driver_fail(r, "cuStreamDestroy of %p on cuda:%d", stream, d->index);
}

static weir_status stream_adopt(void *self, void *native, void **stream)
{
  CUcontext of = NULL;
  *stream = native == CU_STREAM_LEGACY ? NULL : native;
  if (!*stream) return WEIR_OK;
  if (native == CU_STREAM_PER_THREAD)
    return cuda_fail_as(WEIR_EINVAL,
                        "the per-thread default stream (cudaStreamPerThread) is another "
                        "stream in every thread, so memory cannot be allocated for it; use a "
                        "stream of cudaStreamCreate, or NULL");
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuStreamGetCtx(native, &of));
  if (!r && of != d->context)
    return cuda_fail_as(WEIR_EINVAL,
                        "stream %p is not of cuda:%d's primary context, the one that the CUDA "
                        "runtime and Weir use: it is another device's, or of a context made "
                        "with cuCtxCreate",
                        native, d->index);
  return driver_fail(r, "cuStreamGetCtx of %p on cuda:%d", native, d->index);
}

/* A copy on a stream of its own, which waits for no other and no other for it. `to` or `from` is
 * the device's. Within the device's context. */
static CUresult copy_alone(void *host, CUdeviceptr at, uint64_t bytes, bool to_host)
{
  CUstream own;
  CUresult r = weir_cuda.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING);
  if (r) return r;
  r = to_host ? weir_cuda.cuMemcpyDtoHAsync(host, at, bytes, own)
              : weir_cuda.cuMemcpyHtoDAsync(at, host, bytes, own);
  CUresult waited = weir_cuda.cuStreamSynchronize(own);
  CUresult gone = weir_cuda.cuStreamDestroy(own);
  return r ? r : waited ? waited : gone;
}

static weir_status copy_to_host(void *self, void *to, uint64_t from, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, copy_alone(to, from, bytes, true));
  return driver_fail(r, "copying %llu bytes from cuda:%d to the host", (unsigned long long)bytes,
                     d->index);
}

static weir_status copy_to_device(void *self, uint64_t to, const void *from, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, copy_alone((void *)from, to, bytes, false));
  return driver_fail(r, "copying %llu bytes from the host to cuda:%d", (unsigned long long)bytes,
                     d->index);
}

/* As cudaSetDevice() does. An error is not worded: the next call into the driver meets it. */
static void make_current(void *self)
{
  const cuda_device_state *d = self;
  (void)weir_cuda.cuCtxSetCurrent(d->context);
}

static void *current(void *self)
{
  CUcontext now = NULL;
  (void)self;
  return weir_cuda.cuCtxGetCurrent(&now) ? NULL : now;
}

static void bring_context_back(void *self, void *context)
{
  (void)self;
  (void)weir_cuda.cuCtxSetCurrent(context);
}

/* ---- devices --------------------------------------------------------------------------------- */

static weir_status start_driver(const cuda_core *core, int *count)
{
  cuda_core_calls = core;
  weir_status st = driver_open();
  if (st) return st;
  CUresult r = weir_cuda.cuDeviceGetCount(&device_count);
  if (r) return driver_fail(r, "CUDA is not available: cuDeviceGetCount");
  if (!device_count) return cuda_unsupported("CUDA is not available: the driver has no device");
  if (device_count > DEVICES) device_count = DEVICES;
  *count = device_count;
  return WEIR_OK;
}

static weir_status properties(int index, weir_cuda_device_properties *out)
{
  static const struct figure {
    CUdevice_attribute attribute;
    size_t at;
  } figures[] = {
#define ROW(field, attribute)                                                                      \
  {CU_DEVICE_ATTRIBUTE_##attribute, offsetof(weir_cuda_device_properties, field)},
      WEIR_CUDA_PROPERTIES_MAP(ROW)
#undef ROW
  };
  CUdevice device;
  CUuuid uuid;
  size_t total = 0;
  memset(out, 0, sizeof *out);
  CUresult r = weir_cuda.cuDeviceGet(&device, index);
  if (!r) r = weir_cuda.cuDeviceGetName(out->name, sizeof out->name, device);
  if (!r) r = weir_cuda.cuDeviceGetUuid(&uuid, device);
  if (!r) r = weir_cuda.cuDeviceTotalMem(&total, device);
  for (size_t i = 0; i < sizeof figures / sizeof *figures && !r; i++)
    r = weir_cuda.cuDeviceGetAttribute((int *)((char *)out + figures[i].at), figures[i].attribute,
                                       device);
  if (r) return driver_fail(r, "asking for the properties of cuda:%d", index);
  memcpy(out->uuid, uuid.bytes, sizeof out->uuid);
  out->total_memory = total;
  return WEIR_OK;
}

static void fill_backend(cuda_device_state *d, int index)
{
  d->index = index;
  d->backend = (weir_backend){.name = "cuda",
                              .index = index,
                              .self = d,
                              .source = {.mem_info = cuda_mem_info,
                                         .segment_alloc = cuda_segment_alloc,
                                         .segment_free = cuda_segment_free,
                                         .host_register = host_register,
                                         .host_unregister = host_unregister,
                                         .host_alloc = cuda_host_alloc,
                                         .host_free = cuda_host_free,
                                         .host_is_pinned = host_is_pinned,
                                         .numa_node = numa_node},
                              .event_create = cuda_event_create,
                              .event_destroy = cuda_event_destroy,
                              .event_record = cuda_event_record,
                              .event_query = cuda_event_query,
                              .event_wait = event_wait,
                              .event_sync = event_sync,
                              .stream_capturing = stream_capturing,
                              .stream_adopt = stream_adopt,
                              .stream_create = stream_create,
                              .stream_destroy = stream_destroy,
                              .make_current = make_current,
                              .current = current,
                              .bring_back = bring_context_back,
                              .copy_to_host = copy_to_host,
                              .copy_to_device = copy_to_device,
                              .copy = cuda_copy,
                              .copy_done = cuda_copy_done,
                              .copy_peer = cuda_copy_peer,
                              .compute = &cuda_compute};
  cuda_streams(&d->backend);
  cuda_graphs(&d->backend);
}

static weir_status can_reach(int index, int peer, bool *can)
{
  CUdevice from, to;
  int answer = 0;
  CUresult r = weir_cuda.cuDeviceGet(&from, index);
  if (!r) r = weir_cuda.cuDeviceGet(&to, peer);
  if (!r) r = weir_cuda.cuDeviceCanAccessPeer(&answer, from, to);
  *can = !r && answer;
  return driver_fail(r, "asking whether cuda:%d can access cuda:%d", index, peer);
}

/* Where memory of the program's cannot be locked (Tegra, confidential computing) the pools take it
 * from cuMemHostAlloc(). */
static void see_registering(cuda_device_state *d)
{
  int can = 1;
  CUresult r =
      weir_cuda.cuDeviceGetAttribute(&can, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, d->device);
  if (r || can) return;
  d->backend.source.host_register = NULL;
  d->backend.source.host_unregister = NULL;
}

static weir_status open_device(int index, const weir_backend **out)
{
  cuda_device_state *d = &devices[index];
  fill_backend(d, index);
  CUresult r = weir_cuda.cuDeviceGet(&d->device, index);
  if (r) return driver_fail(r, "cuDeviceGet of cuda:%d", index);
  see_registering(d);
  r = weir_cuda.cuDevicePrimaryCtxRetain(&d->context, d->device);
  if (r) return driver_fail(r, "cuDevicePrimaryCtxRetain of cuda:%d", index);
  weir_status st = cuda_vmm(d);
  if (st) (void)weir_cuda.cuDevicePrimaryCtxRelease(d->device);
  *out = &d->backend;
  return st;
}

static weir_status close_device(int index)
{
  cuda_device_state *d = &devices[index];
  cuda_forget_peers(d, devices, DEVICES);
  cuda_blas_close(d);
  cuda_solver_close(d);
  cuda_dnn_close(d);
  cuda_index_close(d);
  CUresult r = weir_cuda.cuDevicePrimaryCtxRelease(d->device);
  return driver_fail(r, "cuDevicePrimaryCtxRelease of cuda:%d", index);
}

WEIR_PUBLIC const cuda_plugin *weir_cuda_plugin_open(void);
const cuda_plugin *weir_cuda_plugin_open(void)
{
  static const cuda_plugin plugin = {WEIR_VERSION_BUILD, start_driver, properties,
                                     can_reach,          open_device,  close_device};
  return &plugin;
}
