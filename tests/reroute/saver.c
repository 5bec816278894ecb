/* saver.c: stand-ins for libraries that keep the program's memory themselves, as savers do, which
 * give it back while it is not needed. One source, made three times:
 *
 * SAVES_RUNTIME  cudaMalloc hands out mappings, whose memory saver_pause() takes away and
 *                saver_resume() gives back
 * SAVES_DRIVER   the same of cuMemAlloc
 * SAVES_ARENA    cudaMalloc hands out parts of one block, which saver_begin() allocates */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { BLOCKS = 16, GRANULE = 2 << 20, ARENA = 128 << 20 };

EXPORT void saver_begin(void), saver_pause(void), saver_resume(void);

static void next_function(void *out, const char *name)
{
  void *found = dlsym(RTLD_NEXT, name);
  memcpy(out, &found, sizeof found);
}

#ifdef SAVES_ARENA

static char *arena;
static size_t used;

EXPORT cudaError_t cudaMalloc(void **p, size_t bytes)
{
  if (!arena || used + bytes > ARENA) return cudaErrorMemoryAllocation;
  *p = arena + used;
  used += bytes;
  return cudaSuccess;
}

EXPORT cudaError_t cudaFree(void *p)
{
  cudaError_t (*next)(void *);
  next_function(&next, "cudaFree");
  bool of_arena = arena && (char *)p >= arena && (char *)p < arena + ARENA;
  return of_arena ? cudaSuccess : next ? next(p) : cudaErrorUnknown;
}

/* The program's first blocks begin behind the start of it. */
EXPORT void saver_begin(void)
{
  cudaError_t (*next)(void **, size_t);
  next_function(&next, "cudaMalloc");
  if (next && next((void **)&arena, ARENA) == cudaSuccess) used = GRANULE;
}

EXPORT void saver_pause(void) {}

EXPORT void saver_resume(void) {}

#else

static struct {
  CUdeviceptr at; /* 0: unused */
  size_t bytes;
  CUmemGenericAllocationHandle memory;
  bool there;
} blocks[BLOCKS];

static CUresult give(int i)
{
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
  CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult r = cuMemCreate(&blocks[i].memory, blocks[i].bytes, &prop, 0);
  if (!r) r = cuMemMap(blocks[i].at, blocks[i].bytes, 0, blocks[i].memory, 0);
  if (!r) r = cuMemSetAccess(blocks[i].at, blocks[i].bytes, &access, 1);
  blocks[i].there = r == CUDA_SUCCESS;
  return r;
}

static void take_away(int i)
{
  if (!blocks[i].there) return;
  (void)cuMemUnmap(blocks[i].at, blocks[i].bytes);
  (void)cuMemRelease(blocks[i].memory);
  blocks[i].there = false;
}

static CUresult get_block(CUdeviceptr *out, size_t bytes)
{
  int i = 0;
  while (i < BLOCKS && blocks[i].at)
    i++;
  if (i == BLOCKS) return CUDA_ERROR_OUT_OF_MEMORY;
  blocks[i].bytes = (bytes + GRANULE - 1) / GRANULE * GRANULE;
  CUresult r = cuMemAddressReserve(&blocks[i].at, blocks[i].bytes, 0, 0, 0);
  if (!r) r = give(i);
  *out = blocks[i].at;
  return r;
}

/* False: it is none of these. */
static bool return_block(CUdeviceptr at)
{
  for (int i = 0; at && i < BLOCKS; i++) {
    if (blocks[i].at != at) continue;
    take_away(i);
    (void)cuMemAddressFree(at, blocks[i].bytes);
    blocks[i].at = 0;
    return true;
  }
  return false;
}

#ifdef SAVES_RUNTIME
EXPORT cudaError_t cudaMalloc(void **p, size_t bytes)
{
  CUdeviceptr at = 0;
  cudaError_t r = cudaFree(NULL); /* a context */
  if (!r) r = (cudaError_t)get_block(&at, bytes);
  *p = (void *)(uintptr_t)at;
  return r;
}

EXPORT cudaError_t cudaFree(void *p)
{
  cudaError_t (*next)(void *);
  next_function(&next, "cudaFree");
  if (return_block((CUdeviceptr)(uintptr_t)p)) return cudaSuccess;
  return next ? next(p) : cudaErrorUnknown;
}
#else
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
  return get_block(p, bytes);
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr p)
{
  CUresult (*next)(CUdeviceptr);
  next_function(&next, "cuMemFree_v2");
  if (return_block(p)) return CUDA_SUCCESS;
  return next ? next(p) : CUDA_ERROR_UNKNOWN;
}
#endif

EXPORT void saver_begin(void) {}

EXPORT void saver_pause(void)
{
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i].at) take_away(i);
}

EXPORT void saver_resume(void)
{
  for (int i = 0; i < BLOCKS; i++)
    if (blocks[i].at) (void)give(i);
}

#endif
