/* memory.c: allocations, their frees, and what can be asked of a pointer. */
#include <string.h>
#include "cuda/sim/runtime/rt.h"

#define DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))

/* The driver writes addresses as CUdeviceptr, the runtime's callers hold pointers: one width. */
_Static_assert(sizeof(CUdeviceptr) == sizeof(void *), "a device address fits a pointer");

/* Hands an address to the caller where `result` is a success. The call that writes *address is an
 * argument of this one: hence the pointer. */
static cudaError_t give(CUresult result, const CUdeviceptr *address, void **out)
{
  if (result == CUDA_SUCCESS) *out = (void *)(uintptr_t)*address;
  return rt_result(result);
}

/* ---- device memory --------------------------------------------------------------------------- */

/* Zero bytes are no allocation and no error, unlike in the driver API. */
static cudaError_t allocate(void **out, size_t bytes)
{
  CUdeviceptr p = 0;
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? give(rt_drv->MemAlloc(&p, bytes), &p, out) : cudaSuccess;
}

static cudaError_t allocate_pitch(void **out, size_t *pitch, size_t width, size_t height)
{
  CUdeviceptr p = 0;
  if (!out || !pitch) return cudaErrorInvalidValue;
  *out = NULL;
  *pitch = 0;
  if (width == 0 || height == 0) return cudaSuccess;
  /* The widest element asks for the strictest alignment, and so suits every program. */
  return give(rt_drv->MemAllocPitch(&p, pitch, width, height, 16), &p, out);
}

static cudaError_t allocate_3d(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
  size_t rows, pitch;
  void *p = NULL;
  if (!out) return cudaErrorInvalidValue;
  if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) return cudaErrorMemoryAllocation;
  cudaError_t e = allocate_pitch(&p, &pitch, extent.width, rows);
  if (!e)
    *out = (struct cudaPitchedPtr){
        .ptr = p, .pitch = pitch, .xsize = extent.width, .ysize = extent.height};
  return e;
}

static cudaError_t allocate_managed(void **out, size_t bytes, unsigned int flags)
{
  CUdeviceptr p = 0;
  if (!out || bytes == 0) return cudaErrorInvalidValue;
  return give(rt_drv->MemAllocManaged(&p, bytes, flags), &p, out);
}

static cudaError_t release(void *p)
{
  return p ? rt_result(rt_drv->MemFree(DEVICE(p))) : cudaSuccess;
}

RT_BODY(cudaMalloc, (void **out, size_t bytes), allocate(out, bytes))
RT_BODY(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
        allocate_pitch(out, pitch, width, height))
RT_BODY(cudaMalloc3D, (struct cudaPitchedPtr * out, struct cudaExtent extent),
        allocate_3d(out, extent))
RT_BODY(cudaMallocManaged, (void **out, size_t bytes, unsigned int flags),
        allocate_managed(out, bytes, flags))
RT_BODY(cudaFree, (void *p), release(p)) /* of NULL: only initialises */

/* ---- host memory ----------------------------------------------------------------------------- */

static cudaError_t allocate_host(void **out, size_t bytes, unsigned int flags)
{
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? rt_result(rt_drv->MemHostAlloc(out, bytes, flags)) : cudaSuccess;
}

static cudaError_t host_address(void **out, void *host, unsigned int flags)
{
  CUdeviceptr p = 0;
  if (!out || !host) return cudaErrorInvalidValue;
  return give(rt_drv->MemHostGetDevicePointer(&p, host, flags), &p, out);
}

RT_BODY(cudaMallocHost, (void **out, size_t bytes), allocate_host(out, bytes, 0))
RT_BODY(cudaHostAlloc, (void **out, size_t bytes, unsigned int flags),
        allocate_host(out, bytes, flags))
RT_BODY(cudaFreeHost, (void *p), p ? rt_result(rt_drv->MemFreeHost(p)) : cudaSuccess)
/* "On a system with unified virtual addressing, the memory will be both mapped and portable", of
 * cudaHostRegisterDefault. */
RT_CALL(cudaHostRegister, (void *p, size_t bytes, unsigned int flags),
        MemHostRegister(p, bytes,
                        flags | CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
RT_CALL(cudaHostUnregister, (void *p), MemHostUnregister(p))
RT_BODY(cudaHostGetDevicePointer, (void **out, void *host, unsigned int flags),
        host_address(out, host, flags))
RT_CALL(cudaHostGetFlags, (unsigned int *flags, void *host), MemHostGetFlags(flags, host))

/* ---- stream-ordered memory ------------------------------------------------------------------- */

static cudaError_t allocate_async(const struct rt_driver *d, void **out, size_t bytes,
                                  cudaStream_t stream)
{
  CUdeviceptr p = 0;
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? give(d->MemAllocAsync(&p, bytes, stream), &p, out) : cudaSuccess;
}

static cudaError_t allocate_from(const struct rt_driver *d, void **out, size_t bytes,
                                 cudaMemPool_t pool, cudaStream_t stream)
{
  CUdeviceptr p = 0;
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? give(d->MemAllocFromPoolAsync(&p, bytes, pool, stream), &p, out) : cudaSuccess;
}

RT_BODY_BOTH(cudaMallocAsync, _ptsz, (void **out, size_t bytes, cudaStream_t stream),
             allocate_async(d, out, bytes, stream))
RT_BODY_BOTH(cudaMallocFromPoolAsync, _ptsz,
             (void **out, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
             allocate_from(d, out, bytes, pool, stream))
RT_BODY_BOTH(cudaFreeAsync, _ptsz, (void *p, cudaStream_t stream),
             p ? rt_result(d->MemFreeAsync(DEVICE(p), stream)) : cudaSuccess)

/* The runtime's structures about pools are the driver's with other names. */
_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "same structure");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc), "same structure");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "same structure");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData), "same");

RT_CALL(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *props),
        MemPoolCreate(pool, (const CUmemPoolProps *)props))
RT_CALL(cudaMemPoolDestroy, (cudaMemPool_t pool), MemPoolDestroy(pool))
RT_CALL(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t keep), MemPoolTrimTo(pool, keep))
RT_CALL(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value),
        MemPoolSetAttribute(pool, (CUmemPool_attribute)a, value))
RT_CALL(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr a, void *value),
        MemPoolGetAttribute(pool, (CUmemPool_attribute)a, value))
RT_CALL(cudaMemPoolSetAccess,
        (cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count),
        MemPoolSetAccess(pool, (const CUmemAccessDesc *)list, count))
RT_CALL(cudaMemPoolGetAccess,
        (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation *location),
        MemPoolGetAccess((CUmemAccess_flags *)flags, pool, (CUmemLocation *)location))
RT_CALL(cudaMemPoolExportToShareableHandle,
        (void *handle, cudaMemPool_t pool, enum cudaMemAllocationHandleType type,
         unsigned int flags),
        MemPoolExportToShareableHandle(handle, pool, (CUmemAllocationHandleType)type, flags))
RT_CALL(cudaMemPoolImportFromShareableHandle,
        (cudaMemPool_t * pool, void *handle, enum cudaMemAllocationHandleType type,
         unsigned int flags),
        MemPoolImportFromShareableHandle(pool, handle, (CUmemAllocationHandleType)type, flags))
RT_CALL(cudaMemPoolExportPointer, (struct cudaMemPoolPtrExportData * data, void *p),
        MemPoolExportPointer((CUmemPoolPtrExportData *)data, DEVICE(p)))
RT_CALL(cudaMemPoolImportPointer,
        (void **out, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data),
        MemPoolImportPointer((CUdeviceptr *)out, pool, (CUmemPoolPtrExportData *)data))
RT_CALL(cudaMemGetDefaultMemPool,
        (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
        MemGetDefaultMemPool(pool, (CUmemLocation *)location, (CUmemAllocationType)type))
RT_CALL(cudaMemGetMemPool,
        (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
        MemGetMemPool(pool, (CUmemLocation *)location, (CUmemAllocationType)type))
RT_CALL(cudaMemSetMemPool,
        (struct cudaMemLocation * location, enum cudaMemAllocationType type, cudaMemPool_t pool),
        MemSetMemPool((CUmemLocation *)location, (CUmemAllocationType)type, pool))

#define DEVICE_POOL(name, params, call)                                                            \
  RT_API cudaError_t CUDARTAPI name params                                                         \
  {                                                                                                \
    CUdevice handle;                                                                               \
    cudaError_t e = rt_handle(device, &handle);                                                    \
    return rt_note(e ? e : rt_result(rt_drv->call));                                               \
  }

DEVICE_POOL(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
            DeviceGetDefaultMemPool(pool, handle))
DEVICE_POOL(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device),
            DeviceGetMemPool(pool, handle))
DEVICE_POOL(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool), DeviceSetMemPool(handle, pool))

/* ---- managed memory -------------------------------------------------------------------------- */

static CUmemLocation place(struct cudaMemLocation location)
{
  return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

RT_CALL(cudaMemAdvise,
        (const void *p, size_t bytes, enum cudaMemoryAdvise advice,
         struct cudaMemLocation location),
        MemAdvise(DEVICE(p), bytes, (CUmem_advise)advice, place(location)))
RT_CALL_BOTH(cudaMemPrefetchAsync, _ptsz,
             (const void *p, size_t bytes, struct cudaMemLocation location, unsigned int flags,
              cudaStream_t stream),
             MemPrefetchAsync(DEVICE(p), bytes, place(location), flags, stream))
RT_CALL(cudaMemRangeGetAttribute,
        (void *data, size_t bytes, enum cudaMemRangeAttribute attribute, const void *p,
         size_t count),
        MemRangeGetAttribute(data, bytes, (CUmem_range_attribute)attribute, DEVICE(p), count))
RT_CALL(cudaMemRangeGetAttributes,
        (void **data, size_t *bytes, enum cudaMemRangeAttribute *attributes, size_t n,
         const void *p, size_t count),
        MemRangeGetAttributes(data, bytes, (CUmem_range_attribute *)attributes, n, DEVICE(p),
                              count))
RT_CALL_BOTH(cudaStreamAttachMemAsync, _ptsz,
             (cudaStream_t stream, void *p, size_t bytes, unsigned int flags),
             StreamAttachMemAsync(stream, DEVICE(p), bytes, flags))

/* ---- between processes ----------------------------------------------------------------------- */

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "same bytes");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "same bytes");

static CUipcMemHandle ipc_memory(cudaIpcMemHandle_t handle)
{
  CUipcMemHandle h;
  memcpy(&h, &handle, sizeof h);
  return h;
}

static CUipcEventHandle ipc_event(cudaIpcEventHandle_t handle)
{
  CUipcEventHandle h;
  memcpy(&h, &handle, sizeof h);
  return h;
}

RT_CALL(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *p),
        IpcGetMemHandle((CUipcMemHandle *)handle, DEVICE(p)))
RT_CALL(cudaIpcOpenMemHandle, (void **out, cudaIpcMemHandle_t handle, unsigned int flags),
        IpcOpenMemHandle((CUdeviceptr *)out, ipc_memory(handle), flags))
RT_CALL(cudaIpcCloseMemHandle, (void *p), IpcCloseMemHandle(DEVICE(p)))
RT_CALL(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
        IpcGetEventHandle((CUipcEventHandle *)handle, event))
RT_CALL(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
        IpcOpenEventHandle(event, ipc_event(handle)))

/* ---- questions ------------------------------------------------------------------------------- */

static cudaError_t memory_info(size_t *free_bytes, size_t *total)
{
  size_t a, b;
  cudaError_t e = rt_result(rt_drv->MemGetInfo(&a, &b));
  if (!e && free_bytes) *free_bytes = a;
  if (!e && total) *total = b;
  return e;
}

/* The driver answers zeros for a pointer it does not know: host memory that CUDA was not told of.
 */
static cudaError_t pointer_attributes(struct cudaPointerAttributes *out, const void *p)
{
  unsigned int type = 0, managed = 0;
  int ordinal = cudaInvalidDeviceId;
  CUdeviceptr device = 0;
  void *host = NULL;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                 CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                 CU_POINTER_ATTRIBUTE_HOST_POINTER};
  void *data[] = {&type, &managed, &ordinal, &device, &host};
  if (!out || !p) return cudaErrorInvalidValue;
  cudaError_t e = rt_result(
      rt_drv->PointerGetAttributes(sizeof which / sizeof which[0], which, data, DEVICE(p)));
  if (e) return e;
  memset(out, 0, sizeof *out);
  if (type == 0) {
    out->type = cudaMemoryTypeUnregistered;
    out->device = cudaInvalidDeviceId;
    out->hostPointer = (void *)(uintptr_t)p;
    return cudaSuccess;
  }
  out->type = managed                      ? cudaMemoryTypeManaged
              : type == CU_MEMORYTYPE_HOST ? cudaMemoryTypeHost
                                           : cudaMemoryTypeDevice;
  out->device = ordinal;
  out->devicePointer = (void *)(uintptr_t)device;
  out->hostPointer = out->type == cudaMemoryTypeDevice ? NULL : host;
  return cudaSuccess;
}

RT_BODY(cudaMemGetInfo, (size_t * free_bytes, size_t *total), memory_info(free_bytes, total))
RT_BODY(cudaPointerGetAttributes, (struct cudaPointerAttributes * out, const void *p),
        pointer_attributes(out, p))
