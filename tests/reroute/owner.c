/* owner.c: stand-ins for other libraries that have functions of CUDA's names: quotas, savers,
 * loggers. They count the program's calls, say at the end how many there were, and refuse the
 * allocation after the first EIGHT live blocks, as a quota does. One source, made several times:
 *
 * OWN_RUNTIME  functions of the runtime, which call the next definition
 * OWN_HOST     the same for page-locked memory
 * OWN_COPIES   the same for copies
 * OWN_DRIVER   functions of the driver, which call the next definition or the driver's
 * OWN_LOOKUPS  the same, and what dlsym and cuGetProcAddress answer for them, as HAMi-core does;
 * OWN_HIDDEN   with it: its functions have no names that others could see */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#undef cuGetProcAddress
#undef cuMemAlloc
#undef cuMemFree

#define EXPORT __attribute__((visibility("default")))
#ifdef OWN_HIDDEN
#define DRIVER __attribute__((visibility("hidden")))
#else
#define DRIVER EXPORT
#endif
#define CODE(function) ((void *)(uintptr_t)(function))

enum { EIGHT = 8 };
static unsigned live;

typedef void *dlsym_function(void *, const char *);

static void *next_dlsym(void *library, const char *name)
{
  static dlsym_function *next;
  if (!next) next = (dlsym_function *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  if (!next) next = (dlsym_function *)(uintptr_t)dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.17");
  return next ? next(library, name) : NULL;
}

static void find_next(void *out, const char *name)
{
  void *found = strncmp(name, "cuda", 4) ? NULL : next_dlsym(RTLD_NEXT, name);
  void *library = found ? NULL : dlopen("libcuda.so.1", RTLD_NOW);
  if (library) found = next_dlsym(library, name);
  memcpy(out, &found, sizeof found);
}

/* X(function, its type's result, parameters, arguments, how many blocks more are live) */
#define RUNTIME(X)                                                                                 \
  X(cudaMalloc, cudaError_t, (void **p, size_t bytes), (p, bytes), 1)                              \
  X(cudaFree, cudaError_t, (void *p), (p), -1)
#define HOST(X)                                                                                    \
  X(cudaMallocHost, cudaError_t, (void **p, size_t bytes), (p, bytes), 1)                          \
  X(cudaHostAlloc, cudaError_t, (void **p, size_t bytes, unsigned flags), (p, bytes, flags), 1)    \
  X(cudaFreeHost, cudaError_t, (void *p), (p), -1)
#define COPIES(X)                                                                                  \
  X(cudaMemcpy, cudaError_t, (void *to, const void *from, size_t n, enum cudaMemcpyKind kind),     \
    (to, from, n, kind), 0)
#define DRIVERS(X)                                                                                 \
  X(cuMemAlloc_v2, CUresult, (CUdeviceptr * p, size_t bytes), (p, bytes), 1)                       \
  X(cuMemFree_v2, CUresult, (CUdeviceptr p), (p), -1)                                              \
  X(cuMemHostAlloc, CUresult, (void **p, size_t bytes, unsigned flags), (p, bytes, flags), 1)      \
  X(cuMemFreeHost, CUresult, (void *p), (p), -1)

#define DEFINE_AS(how, name, result, parameters, arguments, blocks)                                \
  static unsigned n_##name;                                                                        \
  how result name parameters                                                                       \
  {                                                                                                \
    result(*next) parameters;                                                                      \
    n_##name++;                                                                                    \
    if ((blocks) > 0 && live >= EIGHT) return (result)CUDA_ERROR_OUT_OF_MEMORY;                    \
    find_next(&next, #name);                                                                       \
    result r = next ? next arguments : (result)WEIR_NONE;                                          \
    if (r == (result)0) live += (unsigned)(blocks);                                                \
    return r;                                                                                      \
  }
#define WEIR_NONE                  999
#define DEFINE(name, r, p, a, b)   DEFINE_AS(EXPORT, name, r, p, a, b)
#define DEFINE_D(name, r, p, a, b) DEFINE_AS(DRIVER, name, r, p, a, b)

#if defined OWN_RUNTIME
#define ALL RUNTIME
RUNTIME(DEFINE)
#elif defined OWN_HOST
#define ALL HOST
HOST(DEFINE)
#elif defined OWN_COPIES
#define ALL COPIES
COPIES(DEFINE)
#else
#define ALL DRIVERS
DRIVERS(DEFINE_D)
#endif

#ifdef OWN_LOOKUPS
static bool names_function(const char *function, const char *name)
{
  size_t n = strlen(name);
  return !strncmp(function, name, n) && (!function[n] || !strcmp(function + n, "_v2"));
}

static void *own_function(const char *name)
{
#define OWN(function, r, p, a, b)                                                                  \
  if (names_function(#function, name)) return CODE(function);
  DRIVERS(OWN)
  return NULL;
}

DRIVER CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
  CUresult (*real)(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
  find_next(&real, "cuGetProcAddress_v2");
  if (!real) return CUDA_ERROR_NO_DEVICE;
  CUresult r = real(name, out, version, flags, status);
  void *mine = r == CUDA_SUCCESS && out && *out && *name ? own_function(name) : NULL;
  if (mine) *out = mine;
  return r;
}

EXPORT void *dlsym(void *library, const char *name)
{
  void *real = next_dlsym(library, name);
  void *mine = strcmp(name, "cuGetProcAddress_v2") ? NULL : CODE(cuGetProcAddress_v2);
  if (!mine && !strncmp(name, "cuMem", 5) && name[5]) mine = own_function(name);
  return real && mine ? mine : real;
}
#endif

/* Nothing in a process that has not called. */
__attribute__((destructor)) static void print_counts(void)
{
#define PRINT(name, r, p, a, b)                                                                    \
  if (n_##name) dprintf(STDOUT_FILENO, #name " %u\n", n_##name);
  ALL(PRINT)
}
