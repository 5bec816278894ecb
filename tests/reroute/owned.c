/* owned.c: a library whose calls other libraries count and limit (owner.c). It is linked with
 * CUDA's alone, so that its references have the runtime's version; owned_main.c calls it, and
 * may be linked with such a library, too. Each kind of memory is allocated and freed, again and
 * again, and then allocated until it is refused; large pageable copies go both ways. Prints what
 * the calls said. */
#include "tests/reroute/owned.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 2 << 20, TURNS = 4, MOST = 10 };

static int device_alloc(void **p)
{
  return (int)cudaMalloc(p, BYTES);
}

static int device_free(void *p)
{
  return (int)cudaFree(p);
}

static int driver_alloc(void **p)
{
  CUdeviceptr at = 0;
  int r = (int)cuMemAlloc(&at, BYTES);
  *p = (void *)(uintptr_t)at;
  return r;
}

static int driver_free(void *p)
{
  return (int)cuMemFree((CUdeviceptr)(uintptr_t)p);
}

static int host_alloc(void **p)
{
  return (int)cudaMallocHost(p, BYTES);
}

static int host_alloc_flags(void **p)
{
  return (int)cudaHostAlloc(p, BYTES, cudaHostAllocPortable);
}

static int host_free(void *p)
{
  return (int)cudaFreeHost(p);
}

static int driver_host_alloc(void **p)
{
  return (int)cuMemHostAlloc(p, BYTES, 0);
}

static int driver_host_free(void *p)
{
  return (int)cuMemFreeHost(p);
}

static void use_memory(const char *name, int (*alloc)(void **), int (*free_it)(void *))
{
  void *p[MOST];
  int good = 0, freed = 0;
  for (int i = 0; i < TURNS; i++)
    if (alloc(&p[0]) == 0 && free_it(p[0]) == 0) good++;
  int many = 0;
  while (many < MOST && alloc(&p[many]) == 0)
    many++;
  for (int i = 0; i < many; i++)
    freed += free_it(p[i]) == 0;
  printf("%s: %d turns, %d at once, %d freed\n", name, good, many, freed);
}

static void copy_both_ways(void)
{
  enum { COPY = 8 << 20 };
  void *p = NULL;
  char *host = calloc(1, COPY);
  int to = -1, from = -1;
  if (host && cudaMalloc(&p, COPY) == cudaSuccess) {
    to = (int)cudaMemcpy(p, host, COPY, cudaMemcpyHostToDevice);
    from = (int)cudaMemcpy(host, p, COPY, cudaMemcpyDeviceToHost);
  }
  printf("copies: %d %d, %d\n", to, from, (int)cudaFree(p));
  free(host);
}

void owned_work(bool driver_first)
{
  CUcontext context;
  if (driver_first &&
      (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)))
    exit(1);
  use_memory("cudaMalloc", device_alloc, device_free);
  use_memory("cuMemAlloc", driver_alloc, driver_free);
  use_memory("cudaMallocHost", host_alloc, host_free);
  use_memory("cudaHostAlloc", host_alloc_flags, host_free);
  use_memory("cuMemHostAlloc", driver_host_alloc, driver_host_free);
  copy_both_ways();
  (void)fflush(stdout);
}
