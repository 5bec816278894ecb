/* memory.c: allocations, their frees, and what can be asked of a pointer. */
#include <string.h>
#include "cuda/sim/runtime/rt.h"

#define DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))

/* The driver writes addresses as CUdeviceptr, the runtime's callers hold pointers: one width. */
_Static_assert(sizeof(CUdeviceptr) == sizeof(void *), "a device address fits a pointer");

/* Hands an address to the caller where `result` is a success. The call that writes *address is an
 * argument of this one: hence the pointer. */
static cudaError_t give_address(CUresult result, const CUdeviceptr *address, void **out)
{
  if (result == CUDA_SUCCESS) *out = (void *)(uintptr_t)*address;
  return rt_result(result);
}

/* ---- device memory --------------------------------------------------------------------------- */

/* Zero bytes are no allocation and no error, unlike in the driver API. */
static cudaError_t allocate_memory(void **out, size_t bytes)
{
  CUdeviceptr p = 0;
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? give_address(rt_drv->MemAlloc(&p, bytes), &p, out) : cudaSuccess;
}

static cudaError_t allocate_pitch(void **out, size_t *pitch, size_t width, size_t height)
{
  CUdeviceptr p = 0;
  if (!out || !pitch) return cudaErrorInvalidValue;
  *out = NULL;
  *pitch = 0;
  if (width == 0 || height == 0) return cudaSuccess;
  /* The widest element asks for the strictest alignment, and so suits every program. */
  return give_address(rt_drv->MemAllocPitch(&p, pitch, width, height, 16), &p, out);
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
  return give_address(rt_drv->MemAllocManaged(&p, bytes, flags), &p, out);
}

static cudaError_t release_memory(void *p)
{
  return p ? rt_result(rt_drv->MemFree(DEVICE(p))) : cudaSuccess;
}

RT_BODY(cudaMalloc, allocate_memory(devPtr, size))
RT_BODY(cudaMallocPitch, allocate_pitch(devPtr, pitch, width, height))
RT_BODY(cudaMalloc3D, allocate_3d(pitchedDevPtr, extent))
RT_BODY(cudaMallocManaged, allocate_managed(devPtr, size, flags))
RT_BODY(cudaFree, release_memory(devPtr)) /* of NULL: only initialises */

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
  return give_address(rt_drv->MemHostGetDevicePointer(&p, host, flags), &p, out);
}

RT_BODY(cudaMallocHost, allocate_host(ptr, size, 0))
RT_BODY(cudaHostAlloc, allocate_host(pHost, size, flags))
RT_BODY(cudaFreeHost, ptr ? rt_result(rt_drv->MemFreeHost(ptr)) : cudaSuccess)
/* "On a system with unified virtual addressing, the memory will be both mapped and portable", of
 * cudaHostRegisterDefault. */
RT_CALL(cudaHostRegister,
        MemHostRegister(ptr, size,
                        flags | CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
RT_BODY(cudaHostGetDevicePointer, host_address(pDevice, pHost, flags))

/* ---- stream-ordered memory ------------------------------------------------------------------- */

static cudaError_t allocate_async(const struct rt_driver *d, void **out, size_t bytes,
                                  cudaStream_t stream)
{
  CUdeviceptr p = 0;
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? give_address(d->MemAllocAsync(&p, bytes, stream), &p, out) : cudaSuccess;
}

static cudaError_t allocate_from(const struct rt_driver *d, void **out, size_t bytes,
                                 cudaMemPool_t pool, cudaStream_t stream)
{
  CUdeviceptr p = 0;
  if (!out) return cudaErrorInvalidValue;
  *out = NULL;
  return bytes ? give_address(d->MemAllocFromPoolAsync(&p, bytes, pool, stream), &p, out)
               : cudaSuccess;
}

RT_BODY_BOTH(cudaMallocAsync, _ptsz, allocate_async(d, devPtr, size, hStream))
RT_BODY_BOTH(cudaMallocFromPoolAsync, _ptsz, allocate_from(d, ptr, size, memPool, stream))
RT_BODY_BOTH(cudaFreeAsync, _ptsz,
             devPtr ? rt_result(d->MemFreeAsync(DEVICE(devPtr), hStream)) : cudaSuccess)

/* ---- managed memory -------------------------------------------------------------------------- */

static CUmemLocation driver_location(struct cudaMemLocation location)
{
  return (CUmemLocation){.type = (CUmemLocationType)location.type, .id = location.id};
}

RT_CALL(cudaMemAdvise,
        MemAdvise(DEVICE(devPtr), count, (CUmem_advise)advice, driver_location(location)))
RT_CALL_BOTH(cudaMemPrefetchAsync, _ptsz,
             MemPrefetchAsync(DEVICE(devPtr), count, driver_location(location), flags, stream))

/* ---- between processes ----------------------------------------------------------------------- */

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

RT_CALL(cudaIpcOpenMemHandle, IpcOpenMemHandle((CUdeviceptr *)devPtr, ipc_memory(handle), flags))
RT_CALL(cudaIpcOpenEventHandle, IpcOpenEventHandle(event, ipc_event(handle)))

/* ---- questions ------------------------------------------------------------------------------- */

static cudaError_t memory_info(size_t *free_bytes, size_t *total)
{
  size_t a, b;
  cudaError_t e = rt_result(rt_drv->MemGetInfo(&a, &b));
  if (!e && free_bytes) *free_bytes = a;
  if (!e && total) *total = b;
  return e;
}

/* The driver answers zeros for a pointer it does not know: host memory that CUDA was not notified
 * of. */
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

RT_BODY(cudaMemGetInfo, memory_info(free, total))
RT_BODY(cudaPointerGetAttributes, pointer_attributes(attributes, ptr))
