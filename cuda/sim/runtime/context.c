/* context.c: which device and which context a call works on.
 *
 * A thread starts on device 0. cudaSetDevice() makes the device's primary context current at once;
 * otherwise the first call that needs a context does. A context the program made current by the
 * driver API is used as it is. cudaDeviceReset() destroys what the primary context holds; the next
 * call that needs it brings it back.
 *
 * Invariant: a primary context is retained once by us while `live`, and `context` is only read
 * then. */
#include <pthread.h>
#include "cuda/sim/runtime/rt.h"

enum { MAX_DEVICES = 64 };

static struct rt_primary_context {
  _Atomic bool live; /* retained by us, not reset since */
  CUcontext context; /* written under `lock`, before `live` */
} primaries[MAX_DEVICES];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of primaries */
static __thread int chosen;                              /* by cudaSetDevice() */
_Atomic unsigned rt_resets;

cudaError_t rt_handle(int device, CUdevice *handle)
{
  int count = 0;
  cudaError_t e = rt_init();
  if (!e) e = rt_result(rt_drv->DeviceGetCount(&count));
  if (e) return e;
  if (count == 0) return cudaErrorNoDevice;
  if (device < 0 || device >= count || device >= MAX_DEVICES) return cudaErrorInvalidDevice;
  return rt_result(rt_drv->DeviceGet(handle, device));
}

cudaError_t rt_primary(int device, CUcontext *context)
{
  CUdevice handle;
  struct rt_primary_context *p = NULL;
  if (device >= 0 && device < MAX_DEVICES && atomic_load(&primaries[device].live)) {
    *context = primaries[device].context;
    return cudaSuccess;
  }
  cudaError_t e = rt_handle(device, &handle);
  if (e) return e;
  p = &primaries[device];
  pthread_mutex_lock(&lock);
  if (!atomic_load(&p->live)) {
    e = rt_result(rt_drv->DevicePrimaryCtxRetain(&p->context, handle));
    if (!e) atomic_store(&p->live, true);
  }
  *context = p->context;
  pthread_mutex_unlock(&lock);
  return e;
}

/* True if `c` is a primary context that has been reset since: its handle is still current in
 * threads that used it, and means nothing until it is retained again. */
static bool stale(CUcontext c)
{
  if (primaries[chosen].context == c)
    return !atomic_load(&primaries[chosen].live); /* nearly always */
  for (int i = 0; i < MAX_DEVICES; i++)
    if (primaries[i].context == c) return !atomic_load(&primaries[i].live);
  return false;
}

cudaError_t rt_context(void)
{
  CUcontext c = NULL;
  cudaError_t e = rt_init();
  if (!e) e = rt_result(rt_drv->CtxGetCurrent(&c));
  if (e || (c && !stale(c))) return e;
  e = rt_primary(chosen, &c);
  return e ? e : rt_result(rt_drv->CtxSetCurrent(c));
}

cudaError_t rt_device(int *device)
{
  CUcontext c = NULL;
  CUdevice d;
  *device = chosen;
  cudaError_t e = rt_init();
  if (e) return e;
  if (rt_drv->CtxGetCurrent(&c) != CUDA_SUCCESS || !c || stale(c)) return cudaSuccess;
  if (rt_drv->CtxGetDevice(&d) == CUDA_SUCCESS) *device = (int)d;
  return cudaSuccess;
}

RT_API cudaError_t CUDARTAPI cudaGetDevice(int *device)
{
  return rt_note(device ? rt_device(device) : cudaErrorInvalidValue);
}

RT_API cudaError_t CUDARTAPI cudaSetDevice(int device)
{
  CUcontext c;
  cudaError_t e = rt_primary(device, &c);
  if (!e) e = rt_result(rt_drv->CtxSetCurrent(c));
  if (!e) chosen = device;
  return rt_note(e);
}

RT_API cudaError_t CUDARTAPI cudaGetDeviceCount(int *count)
{
  if (!count) return rt_note(cudaErrorInvalidValue);
  *count = 0;
  cudaError_t e = rt_init();
  if (!e) e = rt_result(rt_drv->DeviceGetCount(count));
  if (!e && *count == 0) e = cudaErrorNoDevice;
  return rt_note(e);
}

static cudaError_t set_flags(int device, unsigned int flags)
{
  CUdevice handle;
  unsigned int known = cudaDeviceMask;
  cudaError_t e = rt_handle(device, &handle);
  if (e) return e;
  if (flags & ~known) return cudaErrorInvalidValue;
  return rt_result(rt_drv->DevicePrimaryCtxSetFlags(handle, flags & ~(unsigned)cudaDeviceMapHost));
}

RT_API cudaError_t CUDARTAPI cudaSetDeviceFlags(unsigned int flags)
{
  int device;
  cudaError_t e = rt_device(&device);
  return rt_note(e ? e : set_flags(device, flags));
}

RT_API cudaError_t CUDARTAPI cudaGetDeviceFlags(unsigned int *flags)
{
  CUdevice handle;
  int device, active;
  if (!flags) return rt_note(cudaErrorInvalidValue);
  cudaError_t e = rt_device(&device);
  if (!e) e = rt_handle(device, &handle);
  if (!e) e = rt_result(rt_drv->DevicePrimaryCtxGetState(handle, flags, &active));
  if (!e) *flags |= cudaDeviceMapHost; /* always on where addresses are unified */
  return rt_note(e);
}

RT_API cudaError_t CUDARTAPI cudaInitDevice(int device, unsigned int device_flags,
                                            unsigned int flags)
{
  CUcontext c;
  cudaError_t e = cudaSuccess;
  if (flags & ~(unsigned)cudaInitDeviceFlagsAreValid) return rt_note(cudaErrorInvalidValue);
  if (flags & cudaInitDeviceFlagsAreValid) e = set_flags(device, device_flags);
  return rt_note(e ? e : rt_primary(device, &c));
}

RT_API cudaError_t CUDARTAPI cudaDeviceReset(void)
{
  int device;
  CUdevice handle;
  cudaError_t e = rt_device(&device);
  if (!e) e = rt_handle(device, &handle);
  if (e) return rt_note(e);
  pthread_mutex_lock(&lock);
  e = rt_result(rt_drv->DevicePrimaryCtxReset(handle));
  if (!e && atomic_exchange(&primaries[device].live, false))
    rt_drv->DevicePrimaryCtxRelease(handle); /* the retain is taken anew; nothing is left to lose */
  pthread_mutex_unlock(&lock);
  if (!e) {
    atomic_fetch_add(&rt_resets, 1);
    rt_forget();
  }
  return rt_note(e);
}

RT_API cudaError_t CUDARTAPI cudaSetValidDevices(int *devices, int count)
{
  int present = 0;
  cudaError_t e = rt_init();
  if (!e) e = rt_result(rt_drv->DeviceGetCount(&present));
  if (!e && (count < 0 || count > present || (count && !devices))) e = cudaErrorInvalidValue;
  for (int i = 0; !e && i < count; i++)
    if (devices[i] < 0 || devices[i] >= present) e = cudaErrorInvalidDevice;
  if (!e && count) chosen = devices[0]; /* the first that can be used; all of ours can */
  return rt_note(e);
}

/* ---- peers ----------------------------------------------------------------------------------- */

RT_API cudaError_t CUDARTAPI cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
  CUdevice a, b;
  if (!can) return rt_note(cudaErrorInvalidValue);
  cudaError_t e = rt_handle(device, &a);
  if (!e) e = rt_handle(peer, &b);
  if (!e && a == b)
    *can = 0;
  else if (!e)
    e = rt_result(rt_drv->DeviceCanAccessPeer(can, a, b));
  return rt_note(e);
}

RT_API cudaError_t CUDARTAPI cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
  CUcontext c;
  cudaError_t e = flags ? cudaErrorInvalidValue : rt_context();
  if (!e) e = rt_primary(peer, &c);
  return rt_note(e ? e : rt_result(rt_drv->CtxEnablePeerAccess(c, flags)));
}

RT_API cudaError_t CUDARTAPI cudaDeviceDisablePeerAccess(int peer)
{
  CUcontext c;
  cudaError_t e = rt_context();
  if (!e) e = rt_primary(peer, &c);
  return rt_note(e ? e : rt_result(rt_drv->CtxDisablePeerAccess(c)));
}

RT_API cudaError_t CUDARTAPI cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attribute,
                                                       int device, int peer)
{
  CUdevice a, b;
  if (!value) return rt_note(cudaErrorInvalidValue);
  cudaError_t e = rt_handle(device, &a);
  if (!e) e = rt_handle(peer, &b);
  if (!e && a == b) e = cudaErrorInvalidDevice;
  return rt_note(
      e ? e
        : rt_result(rt_drv->DeviceGetP2PAttribute(value, (CUdevice_P2PAttribute)attribute, a, b)));
}
