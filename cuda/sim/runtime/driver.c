/* driver.c: finds the driver the way NVIDIA's runtime does.
 *
 * dlopen("libcuda.so.1", RTLD_NOW), one dlsym for cuGetProcAddress_v2, the probe ("", 0, 0, NULL),
 * then every function through it by (name, version, flags): flags 0, and flags 2 for those that
 * have a per-thread default stream. A driver too old for cuGetProcAddress_v2 (before CUDA 12) is
 * refused.
 *
 * The library is never closed: kernels, callbacks and handles of the driver live as long as the
 * process. */
#include <dlfcn.h>
#include <pthread.h>
#include "cuda/sim/runtime/rt.h"

struct rt_driver rt_drv[RT_FLAVOURS];

static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library;           /* libcuda.so.1 */
static cudaError_t init_result; /* of load_driver(), the same for every caller */

/* Stands for a function the driver does not have: whatever the arguments, its answer is an error
 * that the runtime passes on. */
static CUresult absent(void)
{
  return (CUresult)cudaErrorCallRequiresNewerDriver;
}

static void look_up_driver(PFN_cuGetProcAddress_v12000 get, const char *name, int version,
                           cuuint64_t flags, void *slot)
{
  CUresult (*fallback)(void) = absent;
  void *p = NULL;
  if (get(name, &p, version, flags, NULL) != CUDA_SUCCESS || !p)
    __builtin_memcpy(&p, &fallback, sizeof p);
  __builtin_memcpy(slot, &p, sizeof p);
}

static cudaError_t load_driver(void)
{
  PFN_cuGetProcAddress_v12000 get = NULL;
  library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return cudaErrorInsufficientDriver;
  void *p = dlsym(library, "cuGetProcAddress_v2");
  if (!p) return cudaErrorInsufficientDriver;
  __builtin_memcpy(&get, &p, sizeof p);
  get("", &p, 0, 0, NULL);
#define D(name, version, per_thread)                                                               \
  look_up_driver(get, "cu" #name, version, CU_GET_PROC_ADDRESS_DEFAULT, &rt_drv[RT_LEGACY].name);  \
  rt_drv[RT_PER_THREAD].name = rt_drv[RT_LEGACY].name;                                             \
  if (per_thread)                                                                                  \
    look_up_driver(get, "cu" #name, per_thread, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,     \
                   &rt_drv[RT_PER_THREAD].name);
#include "driver.gen.h"
#undef D
  rt_watch_start();
  return rt_result(rt_drv[RT_LEGACY].Init(0));
}

static void load_once(void)
{
  init_result = load_driver();
}

cudaError_t rt_init(void)
{
  pthread_once(&once, load_once);
  return init_result;
}

void *rt_driver_symbol(const char *name)
{
  return library ? dlsym(library, name) : NULL;
}

RT_API cudaError_t CUDARTAPI cudaDriverGetVersion(int *version)
{
  if (!version) return rt_note(cudaErrorInvalidValue);
  *version = 0; /* documented: no driver is version 0, and no error */
  cudaError_t e = rt_init();
  if (e && (!library || e == cudaErrorInsufficientDriver)) return cudaSuccess;
  return rt_note(rt_result(rt_drv[RT_LEGACY].DriverGetVersion(version)));
}

RT_API cudaError_t CUDARTAPI cudaRuntimeGetVersion(int *version)
{
  if (!version) return rt_note(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

static cudaError_t entry_point(int flavour, const char *symbol, void **function, int version,
                               unsigned long long flags,
                               enum cudaDriverEntryPointQueryResult *status)
{
  cudaError_t e = rt_init();
  if (e) return e;
  if (!symbol || !function || flags > cudaEnablePerThreadDefaultStream)
    return cudaErrorInvalidValue;
  if (flags == cudaEnableDefault && flavour == RT_PER_THREAD)
    flags = cudaEnablePerThreadDefaultStream;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  *function = NULL;
  e = rt_result(rt_drv[RT_LEGACY].GetProcAddress(symbol, function, version, flags, &found));
  if (status) *status = (enum cudaDriverEntryPointQueryResult)found;
  return e == cudaErrorSymbolNotFound ? cudaSuccess : e; /* the answer is the NULL and the status */
}

#define ENTRY_POINT(suffix, flavour)                                                               \
  RT_API cudaError_t CUDARTAPI cudaGetDriverEntryPoint##suffix(                                    \
      const char *symbol, void **function, unsigned long long flags,                               \
      enum cudaDriverEntryPointQueryResult *status);                                               \
  RT_API cudaError_t CUDARTAPI cudaGetDriverEntryPoint##suffix(                                    \
      const char *symbol, void **function, unsigned long long flags,                               \
      enum cudaDriverEntryPointQueryResult *status)                                                \
  {                                                                                                \
    return rt_note(entry_point(flavour, symbol, function, CUDART_VERSION, flags, status));         \
  }                                                                                                \
  RT_API cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion##suffix(                           \
      const char *symbol, void **function, unsigned int version, unsigned long long flags,         \
      enum cudaDriverEntryPointQueryResult *status);                                               \
  RT_API cudaError_t CUDARTAPI cudaGetDriverEntryPointByVersion##suffix(                           \
      const char *symbol, void **function, unsigned int version, unsigned long long flags,         \
      enum cudaDriverEntryPointQueryResult *status)                                                \
  {                                                                                                \
    return rt_note(entry_point(flavour, symbol, function, (int)version, flags, status));           \
  }

ENTRY_POINT(, RT_LEGACY)
ENTRY_POINT(_ptsz, RT_PER_THREAD)
