/* ucx.c: a program with UCX's memory hooks, as UCX itself sets them: which allocations are
 * notified?
 *
 * `ucx hooks`: libucm and libucs are linked, and open their part for CUDA. Each function that
 * allocates device memory is called a few times; each call must be notified once, with the block's
 * address, and so must its free.
 *
 * `ucx patch UCM`: the functions are patched by ucm_bistro_patch() of the library UCM, for builds
 * without that part, each with a hook of our own: each call must come to it and go on to the
 * function.
 *
 * `ucx decode`: the decoder of the linked libucm moves what a jump of 5 and of 12 bytes would
 * cover of every function that libweir-preload.so exports. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 5, BYTES = 1 << 20 };

#define CODE(function) ((void *)(uintptr_t)(function))

/* Of UCX, without its headers: a linter needs none of them. */
enum { UCM_EVENT_MEM_TYPE_ALLOC = 1 << 20, UCM_EVENT_MEM_TYPE_FREE = 1 << 21 };
typedef struct block_event {
  void *address; /* first of the union's member for such events */
} block_event;
typedef void event_function(int type, block_event *event, void *arg);
int ucm_set_event_handler(int events, int priority, event_function *call, void *arg);

/* ---- ways to allocate ------------------------------------------------------------------------ */

static CUmemoryPool pool;

static int driver_status(CUresult r)
{
  return (int)r;
}

static int runtime_status(cudaError_t r)
{
  return (int)r;
}

/* X(name, status of the allocation of p, status of its free) */
#define WAYS(X)                                                                                    \
  X(cudaMalloc, runtime_status(cudaMalloc(&p, BYTES)), runtime_status(cudaFree(p)))                \
  X(cudaMallocManaged, runtime_status(cudaMallocManaged(&p, BYTES, cudaMemAttachGlobal)),          \
    runtime_status(cudaFree(p)))                                                                   \
  X(cudaMallocPitch, runtime_status(cudaMallocPitch(&p, &pitch, 1000, 100)),                       \
    runtime_status(cudaFree(p)))                                                                   \
  X(cudaMallocAsync, runtime_status(cudaMallocAsync(&p, BYTES, NULL)),                             \
    runtime_status(cudaFreeAsync(p, NULL)))                                                        \
  X(cuMemAlloc, driver_status(cuMemAlloc((CUdeviceptr *)&p, BYTES)),                               \
    driver_status(cuMemFree((CUdeviceptr)p)))                                                      \
  X(cuMemAllocManaged,                                                                             \
    driver_status(cuMemAllocManaged((CUdeviceptr *)&p, BYTES, CU_MEM_ATTACH_GLOBAL)),              \
    driver_status(cuMemFree((CUdeviceptr)p)))                                                      \
  X(cuMemAllocPitch, driver_status(cuMemAllocPitch((CUdeviceptr *)&p, &pitch, 1000, 100, 4)),      \
    driver_status(cuMemFree((CUdeviceptr)p)))                                                      \
  X(cuMemAllocAsync, driver_status(cuMemAllocAsync((CUdeviceptr *)&p, BYTES, NULL)),               \
    driver_status(cuMemFreeAsync((CUdeviceptr)p, NULL)))                                           \
  X(cuMemAllocFromPoolAsync,                                                                       \
    driver_status(cuMemAllocFromPoolAsync((CUdeviceptr *)&p, BYTES, pool, NULL)),                  \
    driver_status(cuMemFreeAsync((CUdeviceptr)p, NULL)))

#define WAY(name, allocate, release)                                                               \
  static int allocate_##name(void **out)                                                           \
  {                                                                                                \
    void *p = NULL;                                                                                \
    size_t pitch = 0;                                                                              \
    (void)pitch;                                                                                   \
    int status = allocate;                                                                         \
    *out = p;                                                                                      \
    return status;                                                                                 \
  }                                                                                                \
  static int release_##name(void *p)                                                               \
  {                                                                                                \
    return release;                                                                                \
  }
WAYS(WAY)

static const struct way {
  const char *name;
  int (*allocate)(void **p);
  int (*release)(void *p);
} ways[] = {
#define ROW(name, allocate, release) {#name, allocate_##name, release_##name},
    WAYS(ROW)
#undef ROW
};

enum { WAY_COUNT = sizeof ways / sizeof *ways };

/* ---- UCX's own hooks ------------------------------------------------------------------------- */

static void *last_allocated, *last_freed;
static unsigned allocations, frees;

static void on_event(int type, block_event *event, void *arg)
{
  (void)arg;
  if (type == UCM_EVENT_MEM_TYPE_ALLOC) last_allocated = event->address, allocations++;
  if (type == UCM_EVENT_MEM_TYPE_FREE) last_freed = event->address, frees++;
}

static bool call_each_way(void)
{
  bool all = true;
  for (int i = 0; i < WAY_COUNT; i++) {
    int allocated = 0, freed = 0, errors = 0;
    for (int k = 0; k < CALLS; k++) {
      void *p = NULL;
      allocations = frees = 0;
      errors += ways[i].allocate(&p) != 0;
      allocated += p && last_allocated == p && allocations == 1;
      errors += ways[i].release(p) != 0;
      freed += p && last_freed == p && frees == 1;
    }
    printf("%s: %d of %d allocations notified, %d of %d frees, %d errors\n", ways[i].name,
           allocated, CALLS, freed, CALLS, errors);
    all = all && allocated == CALLS && freed == CALLS && !errors;
  }
  return all;
}

static bool by_ucx(void)
{
  int status = ucm_set_event_handler(UCM_EVENT_MEM_TYPE_ALLOC | UCM_EVENT_MEM_TYPE_FREE, 1000,
                                     on_event, NULL);
  printf("the hooks are set: %d\n", status);
  return call_each_way() && status == 0;
}

/* ---- its patcher alone ----------------------------------------------------------------------- */

/* X(result, function, parameters, arguments): those that UCX's own module patches. */
#define PATCHED(X)                                                                                 \
  X(cudaError_t, cudaMalloc, (void **p, size_t n), (p, n))                                         \
  X(cudaError_t, cudaMallocManaged, (void **p, size_t n, unsigned f), (p, n, f))                   \
  X(cudaError_t, cudaMallocPitch, (void **p, size_t *pitch, size_t w, size_t h), (p, pitch, w, h)) \
  X(cudaError_t, cudaMallocAsync, (void **p, size_t n, cudaStream_t s), (p, n, s))                 \
  X(cudaError_t, cudaFree, (void *p), (p))                                                         \
  X(cudaError_t, cudaFreeAsync, (void *p, cudaStream_t s), (p, s))                                 \
  X(CUresult, cuMemAlloc_v2, (CUdeviceptr * p, size_t n), (p, n))                                  \
  X(CUresult, cuMemAllocManaged, (CUdeviceptr * p, size_t n, unsigned f), (p, n, f))               \
  X(CUresult, cuMemAllocPitch_v2,                                                                  \
    (CUdeviceptr * p, size_t * pitch, size_t w, size_t h, unsigned element),                       \
    (p, pitch, w, h, element))                                                                     \
  X(CUresult, cuMemAllocAsync, (CUdeviceptr * p, size_t n, CUstream s), (p, n, s))                 \
  X(CUresult, cuMemAllocFromPoolAsync, (CUdeviceptr * p, size_t n, CUmemoryPool o, CUstream s),    \
    (p, n, o, s))                                                                                  \
  X(CUresult, cuMemFree_v2, (CUdeviceptr p), (p))                                                  \
  X(CUresult, cuMemFreeAsync, (CUdeviceptr p, CUstream s), (p, s))

#define HOOK(result, function, parameters, arguments)                                              \
  static result(*goes_on_##function) parameters;                                                   \
  static int seen_##function;                                                                      \
  static result hook_##function parameters                                                         \
  {                                                                                                \
    seen_##function++;                                                                             \
    return goes_on_##function arguments;                                                           \
  }
PATCHED(HOOK)

typedef int patch_function(void *function, void *hook, const char *symbol, void **original,
                           void **restore_point);

static bool by_patch(const char *ucm)
{
  void *library = dlopen(ucm, RTLD_NOW), *moved;
  patch_function *patch =
      library ? (patch_function *)(uintptr_t)dlsym(library, "ucm_bistro_patch") : NULL;
  bool all = patch != NULL;
  int errors = 0, status;
  if (!patch) return printf("%s\n", dlerror()), false;
#define PATCH(result, function, parameters, arguments)                                             \
  moved = NULL;                                                                                    \
  status = patch(CODE(function), CODE(hook_##function), #function, &moved, NULL);                  \
  memcpy(&goes_on_##function, &moved, sizeof moved);                                               \
  if (status || !moved) printf("%s is not patched: %d\n", #function, status);
  PATCHED(PATCH)
#undef PATCH
  for (int i = 0; i < WAY_COUNT * CALLS; i++) {
    void *p = NULL;
    errors += ways[i % WAY_COUNT].allocate(&p) != 0;
    errors += ways[i % WAY_COUNT].release(p) != 0;
  }
#define SHOW(result, function, parameters, arguments)                                              \
  printf("%s: %s\n", #function,                                                                    \
         seen_##function >= CALLS ? "each call came" : "calls are missing");                       \
  all = all && seen_##function >= CALLS;
  PATCHED(SHOW)
#undef SHOW
  printf("%d errors\n", errors);
  return all && !errors;
}

/* ---- its decoder ----------------------------------------------------------------------------- */

typedef struct preload {
  const ElfW(Sym) * symbols;
  const char *names;
  size_t count; /* the names follow the symbols */
  uintptr_t base;
} preload;

static int find_preload(struct dl_phdr_info *info, size_t size, void *out)
{
  (void)size;
  preload *found = out;
  if (!strstr(info->dlpi_name, "libweir-preload.so")) return 0;
  found->base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const ElfW(Dyn) *d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    for (; d->d_tag != DT_NULL; d++) {
      if (d->d_tag == DT_SYMTAB) found->symbols = (const void *)d->d_un.d_ptr;
      if (d->d_tag == DT_STRTAB) found->names = (const void *)d->d_un.d_ptr;
    }
  }
  found->count = (size_t)(found->names - (const char *)found->symbols) / sizeof *found->symbols;
  return 1;
}

typedef int relocate_function(void *to, const void *from, size_t least, size_t room,
                              size_t *to_bytes, size_t *from_bytes, const char *symbol,
                              void *context);

static bool decode_all(void)
{
  static const size_t jumps[] = {5, 12};
  relocate_function *relocate =
      (relocate_function *)(uintptr_t)dlsym(RTLD_DEFAULT, "ucm_bistro_relocate_code");
  preload p = {0};
  unsigned functions = 0, moved = 0;
  if (!relocate) return puts("this libucm does not export its decoder"), false;
  if (!dl_iterate_phdr(find_preload, &p)) return puts("not under Weir"), true;
  for (size_t i = 0; i < p.count; i++) {
    const ElfW(Sym) *s = &p.symbols[i];
    if (!s->st_value || ELF64_ST_TYPE(s->st_info) != STT_FUNC) continue;
    for (size_t k = 0; k < sizeof jumps / sizeof *jumps; k++) {
      unsigned char room[256];
      uint64_t context[16];
      size_t to = 0, from = 0;
      functions++;
      moved += relocate(room, (const void *)(p.base + s->st_value), jumps[k], sizeof room, &to,
                        &from, p.names + s->st_name, context) == 0;
    }
  }
  printf("%u of %u moved\n", moved, functions);
  return moved == functions && functions > 0;
}

int main(int argc, char **argv)
{
  const char *what = argc > 1 ? argv[1] : "";
  CUdevice device;
  if (strcmp(what, "decode") == 0) return !decode_all();
  if (cudaFree(NULL) || cuDeviceGet(&device, 0) || cuDeviceGetDefaultMemPool(&pool, device))
    return 2;
  if (strcmp(what, "hooks") == 0) return !by_ucx();
  if (argc > 2 && strcmp(what, "patch") == 0) return !by_patch(argv[2]);
  return 2;
}
