/* rt.h: the inside of the runtime stand-in (libcudart.so.13 of the software device).
 *
 * The runtime is a thin layer on the documented driver API, and knows the driver only as NVIDIA's
 * runtime does: dlopen("libcuda.so.1"), one dlsym("cuGetProcAddress_v2"), and look-ups by name,
 * version and flags. It works on any driver that answers these, the software device's first of all.
 *
 * Rules every entry point keeps:
 * - what maps onto one driver call of a counted kind (allocation, free, copy, memset, wait, launch)
 *   makes exactly that one call, so that a trace of driver calls and one of runtime calls agree;
 * - a failure is noted as the thread's last error, by rt_note(), and returned;
 * - nothing of CUDA starts before the first call that needs it (lazy initialisation).
 *
 * Words: primary context: the one context per device that the runtime uses; flavour: an entry point
 * with the legacy default stream (no suffix) or the per-thread one (_ptds, _ptsz). */
#ifndef WEIR_SIM_RUNTIME_RT_H
#define WEIR_SIM_RUNTIME_RT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cudaProfilerTypedefs.h>
#include <cuda_runtime_api.h>
#include "rt.gen.h"

#define RT_API __attribute__((visibility("default")))

/* ---- the driver (driver.c) ------------------------------------------------------------------- */

enum { RT_LEGACY, RT_PER_THREAD, RT_FLAVOURS };

/* The driver's functions as one flavour of entry points calls them: driver.gen.h, a field a row. A
 * function the driver lacks is one that returns cudaErrorCallRequiresNewerDriver. */
struct rt_driver {
#define D(name, version, per_thread) PFN_cu##name##_v##version name;
#include "driver.gen.h"
#undef D
};

extern struct rt_driver rt_drv[RT_FLAVOURS]; /* valid after rt_init() returned cudaSuccess */

/* A function of the driver library that is no CUDA function (the software device's control.h); NULL
 * when the driver is another one. */
void *rt_driver_symbol(const char *name);

/* The driver is there: its watcher hears of calls from now on (watching.c). */
void rt_watch_start(void);

/* A call begins; something for rt_call_ends() where there is a watcher, else NULL. */
void *rt_call_begins(const char *name, const void *params);
/* It ends with this error, which is returned. */
cudaError_t rt_call_ends(void *call, cudaError_t error);

/* Loads the driver and calls cuInit(), once a process; its error is what every later call returns.
 */
cudaError_t rt_init(void);

/* ---- devices and contexts (context.c) -------------------------------------------------------- */

/* rt_init(), and the thread has a current context: its own (driver API), or the primary one of its
 * device, which is created if need be. */
cudaError_t rt_context(void);

/* The primary context of a device, created if need be. Does not make it current. */
cudaError_t rt_primary(int device, CUcontext *context);

/* The device of the thread's current context, or else the one cudaSetDevice() chose. */
cudaError_t rt_device(int *device);

/* A device's driver handle; cudaErrorInvalidDevice when there is none of that number. */
cudaError_t rt_handle(int device, CUdevice *handle);

/* Grows by one with each cudaDeviceReset(): what was stated of a device before is void. */
extern _Atomic unsigned rt_resets;

/* ---- errors (error.c) ------------------------------------------------------------------------ */

/* The runtime's number for a driver error. */
cudaError_t rt_result(CUresult result);

/* Notes a failure as the thread's last error and returns it; success changes nothing. */
cudaError_t rt_note(cudaError_t error);

/* Forgets the thread's last error, a sticky one too. */
void rt_forget(void);

/* ---- code: kernels and variables (register.c) ------------------------------------------------ */

/* The kernel of `function`: the host stub of a kernel, or a handle the runtime gave out. Loads
 * its binary into the driver if need be. */
cudaError_t rt_kernel(const void *function, CUkernel *kernel);

/* Address and size, on the current device, of the variable of a host symbol. */
cudaError_t rt_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes);

/* The range [offset, offset + n) of it. */
cudaError_t rt_symbol_range(const void *symbol, size_t n, size_t offset, void **address);

/* The host stub of a kernel, or the kernel itself where there is none. */
void *rt_stub_of(CUkernel kernel);

/* ---- a copy's parameters, both ways (copy.c) ------------------------------------------------- */

cudaError_t rt_copy_params(const struct cudaMemcpy3DParms *p, CUDA_MEMCPY3D *c);
void rt_copy_params_of(const CUDA_MEMCPY3D *c, struct cudaMemcpy3DParms *p);

/* ---- a channel description, both ways: format and channels of a descriptor (array.c) --------- */

cudaError_t rt_channels_to_driver(const struct cudaChannelFormatDesc *c,
                                  CUDA_ARRAY3D_DESCRIPTOR *a);
cudaError_t rt_channels_of_driver(const CUDA_ARRAY3D_DESCRIPTOR *a,
                                  struct cudaChannelFormatDesc *c);

/* ---- shapes of entry points ------------------------------------------------------------------ */

/* Parameters are those that the Toolkit's headers declare, by the names that they have there. */

/* An entry point whose body is an expression of type cudaError_t, on the current context. */
#define RT_BODY(name, call) RT_BODY_OF(name, RT_PARAMS_##name, call)
#define RT_BODY_OF(name, params, call)                                                             \
  RT_API cudaError_t CUDARTAPI name params                                                         \
  {                                                                                                \
    cudaError_t e = rt_context();                                                                  \
    return rt_note(e ? e : call);                                                                  \
  }

/* The same in both flavours; the expression finds the flavour's driver functions in `d`. */
#define RT_BODY_BOTH(name, suffix, call) RT_BODY_BOTH_OF(name, suffix, RT_PARAMS_##name, call)
#define RT_BODY_BOTH_OF(name, suffix, params, call)                                                \
  RT_FLAVOUR(name, params, RT_LEGACY, call)                                                        \
  RT_API cudaError_t CUDARTAPI name##suffix params;                                                \
  RT_FLAVOUR(name##suffix, params, RT_PER_THREAD, call)
#define RT_FLAVOUR(name, params, flavour, call)                                                    \
  RT_API cudaError_t CUDARTAPI name params                                                         \
  {                                                                                                \
    const struct rt_driver *d = &rt_drv[flavour];                                                  \
    cudaError_t e = rt_context();                                                                  \
    return rt_note(e ? e : call);                                                                  \
  }

/* One that is one driver call. gen.py writes those whose arguments are the driver's in order. */
#define RT_CALL(name, call)              RT_BODY(name, rt_result(rt_drv[RT_LEGACY].call))
#define RT_CALL_BOTH(name, suffix, call) RT_BODY_BOTH(name, suffix, rt_result(d->call))

/* One that is a driver call about `device`, whose handle is `handle`. */
#define RT_DEVICE_CALL(name, call)                                                                 \
  RT_API cudaError_t CUDARTAPI name RT_PARAMS_##name                                               \
  {                                                                                                \
    CUdevice handle;                                                                               \
    cudaError_t e = rt_handle(device, &handle);                                                    \
    return rt_note(e ? e : rt_result(rt_drv->call));                                               \
  }

#endif
