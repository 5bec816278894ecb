/* interposer.c: a stand-in for another library that stands between programs and the driver, as
 * those do that share a GPU among containers: it exports functions of the driver, and has the
 * driver's own in a table that it fills when the program calls cuInit. Before that its functions
 * have nothing to call. Who looks the driver up gets its functions, too. Memory is not among them
 * (owner.c), so that caches are in use beside it. It is preloaded behind ours.
 *
 * `interposer_begun`, where a program has set it, is called when the driver has begun a capture and
 * before the program knows; `interposer_waits` ahead of each wait of the host for an event. */
#include <cuda.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef cuStreamBeginCapture
#undef cuGetProcAddress

/* A function as a look-up gives it. */
#define CODE(function) ((void *)(uintptr_t)(function))
#define EXPORT         __attribute__((visibility("default")))

EXPORT extern void (*interposer_begun)(void), (*interposer_waits)(void);
void (*interposer_begun)(void), (*interposer_waits)(void);

/* X(function, parameters, arguments) */
#define FUNCTIONS(X)                                                                               \
  X(cuCtxGetCurrent, (CUcontext * context), (context))                                             \
  X(cuCtxGetDevice, (CUdevice * device), (device))                                                 \
  X(cuCtxPushCurrent_v2, (CUcontext context), (context))                                           \
  X(cuCtxPopCurrent_v2, (CUcontext * context), (context))                                          \
  X(cuCtxSynchronize, (void), ())                                                                  \
  X(cuDeviceGetName, (char *name, int length, CUdevice device), (name, length, device))            \
  X(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device), (bytes, device))                       \
  X(cuMemGetInfo_v2, (size_t * free_bytes, size_t * total), (free_bytes, total))                   \
  X(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t * bytes, CUdeviceptr p),                  \
    (base, bytes, p))                                                                              \
  X(cuPointerGetAttribute, (void *data, CUpointer_attribute what, CUdeviceptr p), (data, what, p)) \
  X(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus * status), (stream, status))      \
  X(cuEventCreate, (CUevent * event, unsigned flags), (event, flags))                              \
  X(cuEventRecord, (CUevent event, CUstream stream), (event, stream))                              \
  X(cuEventQuery, (CUevent event), (event))                                                        \
  X(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active),                   \
    (device, flags, active))                                                                       \
  X(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device), (pool, device))

static struct {
  CUresult (*cuInit)(unsigned);
  CUresult (*cuStreamBeginCapture_v2)(CUstream, CUstreamCaptureMode);
  CUresult (*cuEventSynchronize)(CUevent);
#define MEMBER(name, parameters, arguments) CUresult(*name) parameters;
  FUNCTIONS(MEMBER)
#undef MEMBER
} drivers;

#define DEFINE(name, parameters, arguments)                                                        \
  EXPORT CUresult name parameters                                                                  \
  {                                                                                                \
    return drivers.name arguments;                                                                 \
  }
FUNCTIONS(DEFINE)

/* ---- the driver's own ------------------------------------------------------------------------ */

typedef void *dlsym_function(void *, const char *);

static void *next_dlsym(void *library, const char *name)
{
  static dlsym_function *next;
  if (!next) next = (dlsym_function *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (!next) next = (dlsym_function *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
  return next ? next(library, name) : NULL;
}

static void find_driver_function(void *out, const char *name)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  *(void **)out = library ? next_dlsym(library, name) : NULL;
}

EXPORT CUresult cuInit(unsigned flags)
{
  find_driver_function(&drivers.cuInit, "cuInit");
  find_driver_function(&drivers.cuStreamBeginCapture_v2, "cuStreamBeginCapture_v2");
  find_driver_function(&drivers.cuEventSynchronize, "cuEventSynchronize");
#define FIND(name, parameters, arguments) find_driver_function(&drivers.name, #name);
  FUNCTIONS(FIND)
#undef FIND
  return drivers.cuInit ? drivers.cuInit(flags) : CUDA_ERROR_NO_DEVICE;
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
  CUresult r = drivers.cuStreamBeginCapture_v2(stream, mode);
  if (r == CUDA_SUCCESS && interposer_begun) interposer_begun();
  return r;
}

EXPORT CUresult cuEventSynchronize(CUevent event)
{
  if (interposer_waits) interposer_waits();
  return drivers.cuEventSynchronize(event);
}

/* With INTERPOSER_OLD set the driver is one from before 12.5. */
EXPORT CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
  CUresult (*real)(CUcontext, CUevent);
  find_driver_function(&real, "cuCtxRecordEvent");
  return real && !getenv("INTERPOSER_OLD") ? real(context, event) : CUDA_ERROR_NOT_SUPPORTED;
}

/* ---- look-ups -------------------------------------------------------------------------------- */

static void *own_function(const char *name)
{
  static const struct {
    const char *name;
    void *function;
  } all[] = {{"cuInit", CODE(cuInit)},
             {"cuStreamBeginCapture", CODE(cuStreamBeginCapture_v2)},
             {"cuEventSynchronize", CODE(cuEventSynchronize)},
             {"cuGetProcAddress", CODE(cuGetProcAddress_v2)},
#define OWN(name, parameters, arguments) {#name, CODE(name)},
             FUNCTIONS(OWN)
#undef OWN
  };
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    size_t n = strlen(name);
    if (!strncmp(all[i].name, name, n) && (!all[i].name[n] || !strcmp(all[i].name + n, "_v2")))
      return all[i].function;
  }
  return NULL;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
  CUresult (*real)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
  find_driver_function(&real, "cuGetProcAddress_v2");
  if (!real) return CUDA_ERROR_NO_DEVICE;
  CUresult r = real(name, out, version, flags, status);
  void *mine = r == CUDA_SUCCESS && out && *out && *name ? own_function(name) : NULL;
  if (mine) *out = mine;
  return r;
}

EXPORT void *dlsym(void *library, const char *name)
{
  void *real = next_dlsym(library, name);
  void *mine = !strcmp(name, "cuGetProcAddress_v2") ? CODE(cuGetProcAddress_v2) : NULL;
  return real && mine ? mine : real;
}
