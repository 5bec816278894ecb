/* gpu.c: what the allocator costs on a real device, and what the driver's own ways cost.
 *
 *   gpu WHAT...    a number a line, in ns: the median of bursts, that many calls or pairs each
 *   gpu all        every one of them as "WHAT NS"; gpu name: the device's name
 *
 * hit: weir_malloc + weir_free of 1 KiB. large: the same of 32 MiB, which passes by the threads'
 * caches. malloc: cuMemAlloc + cuMemFree of 32 MiB, on an idle device. async: cuMemAllocAsync +
 * cuMemFreeAsync of 1 KiB from a pool that keeps what it has. create, map, access, unmap, release:
 * a 2 MiB page's way in and out. pinned: weir_pinned_malloc + free of 64 KiB. hostalloc:
 * cuMemHostAlloc + cuMemFreeHost of the same. marker: cuEventRecord + cuEventQuery.
 *
 * Without a device it prints "no GPU" and the reason on stderr, and ends with 3. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cudaTypedefs.h>
#include "core/weir.h"
#include "tools/bench/timing.h"

enum { BURSTS = 2000, BURST = 64, SLOW_BURSTS = 50, SLOW_BURST = 8, NO_GPU = 3 };

/* X(exported name, type). */
#define CALLS(X)                                                                                   \
  X(cuDevicePrimaryCtxRetain, PFN_cuDevicePrimaryCtxRetain_v7000)                                  \
  X(cuCtxSetCurrent, PFN_cuCtxSetCurrent_v4000)                                                    \
  X(cuMemAlloc_v2, PFN_cuMemAlloc_v3020)                                                           \
  X(cuMemFree_v2, PFN_cuMemFree_v3020)                                                             \
  X(cuMemAllocAsync, PFN_cuMemAllocAsync_v11020)                                                   \
  X(cuMemFreeAsync, PFN_cuMemFreeAsync_v11020)                                                     \
  X(cuDeviceGetDefaultMemPool, PFN_cuDeviceGetDefaultMemPool_v11020)                               \
  X(cuMemPoolSetAttribute, PFN_cuMemPoolSetAttribute_v11020)                                       \
  X(cuMemAddressReserve, PFN_cuMemAddressReserve_v10020)                                           \
  X(cuMemCreate, PFN_cuMemCreate_v10020)                                                           \
  X(cuMemMap, PFN_cuMemMap_v10020)                                                                 \
  X(cuMemSetAccess, PFN_cuMemSetAccess_v10020)                                                     \
  X(cuMemUnmap, PFN_cuMemUnmap_v10020)                                                             \
  X(cuMemRelease, PFN_cuMemRelease_v10020)                                                         \
  X(cuMemHostAlloc, PFN_cuMemHostAlloc_v2020)                                                      \
  X(cuMemFreeHost, PFN_cuMemFreeHost_v2000)                                                        \
  X(cuStreamCreate, PFN_cuStreamCreate_v2000)                                                      \
  X(cuEventCreate, PFN_cuEventCreate_v2000)                                                        \
  X(cuEventRecord, PFN_cuEventRecord_v2000)                                                        \
  X(cuEventQuery, PFN_cuEventQuery_v2000)

static struct {
#define MEMBER(name, type) type name##_;
  CALLS(MEMBER)
#undef MEMBER
} driver;

static const weir_device gpu = WEIR_CUDA_INIT(0);
static CUstream stream;
static CUevent event;
static CUdeviceptr space;
static CUmemGenericAllocationHandle pages[SLOW_BURST];
static CUmemAllocationProp page = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                   .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
static const size_t page_bytes = 2 << 20;

static void check_result(int result, const char *what)
{
  if (!result) return;
  (void)fprintf(stderr, "gpu: %s: %d: %s\n", what, result, weir_error_message());
  exit(1);
}
#define DRIVER(name, ...) check_result((int)driver.name##_(__VA_ARGS__), #name)

/* ---- what is measured: one call, pair, or step of a page's way ------------------------------- */

static void weir_pair(size_t bytes)
{
  void *p;
  check_result(weir_malloc(&p, bytes, gpu, NULL), "weir_malloc");
  check_result(weir_free(p), "weir_free");
}

static void cached_pair(int i)
{
  (void)i;
  weir_pair(1024);
}

static void large_pair(int i)
{
  (void)i;
  weir_pair(32 << 20);
}

static void driver_pair(int i)
{
  CUdeviceptr p;
  (void)i;
  DRIVER(cuMemAlloc_v2, &p, 32 << 20);
  DRIVER(cuMemFree_v2, p);
}

static void async_pair(int i)
{
  CUdeviceptr p;
  (void)i;
  DRIVER(cuMemAllocAsync, &p, 1024, stream);
  DRIVER(cuMemFreeAsync, p, stream);
}

static void create_page(int i)
{
  DRIVER(cuMemCreate, &pages[i], page_bytes, &page, 0);
}

static void map_one_page(int i)
{
  DRIVER(cuMemMap, space + (size_t)i * page_bytes, page_bytes, 0, pages[i], 0);
}

static void access_page(int i)
{
  CUmemAccessDesc all = {.location = page.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  DRIVER(cuMemSetAccess, space + (size_t)i * page_bytes, page_bytes, &all, 1);
}

static void unmap_page(int i)
{
  DRIVER(cuMemUnmap, space + (size_t)i * page_bytes, page_bytes);
}

static void release_page(int i)
{
  DRIVER(cuMemRelease, pages[i]);
}

static void pinned_pair(int i)
{
  void *p;
  (void)i;
  check_result(weir_pinned_malloc(&p, 64 << 10), "weir_pinned_malloc");
  check_result(weir_pinned_free(p), "weir_pinned_free");
}

static void alloc_on_host(int i)
{
  void *p;
  (void)i;
  DRIVER(cuMemHostAlloc, &p, 64 << 10, CU_MEMHOSTALLOC_PORTABLE);
  DRIVER(cuMemFreeHost, p);
}

static void record_and_query(int i)
{
  (void)i;
  DRIVER(cuEventRecord, event, stream);
  CUresult r = driver.cuEventQuery_(event);
  check_result(r == CUDA_ERROR_NOT_READY ? 0 : (int)r, "cuEventQuery");
}

/* ---- measuring ------------------------------------------------------------------------------- */

static double ns_a_call(void (*one)(int), int count)
{
  double begin = now_ns();
  for (int i = 0; i < count; i++)
    one(i);
  return (now_ns() - begin) / count;
}

static double ns_a_pair(void (*one)(int), bool slow)
{
  static double each[BURSTS];
  int bursts = slow ? SLOW_BURSTS : BURSTS;
  (void)ns_a_call(one, SLOW_BURST); /* the first pays for what is kept afterwards */
  for (int b = 0; b < bursts; b++)
    each[b] = ns_a_call(one, slow ? SLOW_BURST : BURST);
  return median_of(each, (size_t)bursts);
}

/* One step of the pages' way, which is gone whole every time. */
static double step_of_page(void (*wanted)(int))
{
  static void (*const way[])(int) = {create_page, map_one_page, access_page, unmap_page,
                                     release_page};
  double each[SLOW_BURSTS];
  for (int b = 0; b < SLOW_BURSTS; b++)
    for (size_t s = 0; s < sizeof way / sizeof *way; s++) {
      double ns = ns_a_call(way[s], SLOW_BURST);
      if (way[s] == wanted) each[b] = ns;
    }
  return median_of(each, SLOW_BURSTS);
}

static const struct what {
  const char *name;
  void (*one)(int);
  enum { FAST, SLOW, PAGE } how;
} whats[] = {{"hit", cached_pair, FAST},         {"large", large_pair, FAST},
             {"malloc", driver_pair, SLOW},      {"async", async_pair, FAST},
             {"create", create_page, PAGE},      {"map", map_one_page, PAGE},
             {"access", access_page, PAGE},      {"unmap", unmap_page, PAGE},
             {"release", release_page, PAGE},    {"pinned", pinned_pair, FAST},
             {"hostalloc", alloc_on_host, SLOW}, {"marker", record_and_query, FAST}};

static double measure_gpu(const struct what *w)
{
  return w->how == PAGE ? step_of_page(w->one) : ns_a_pair(w->one, w->how == SLOW);
}

static void set_up_gpu(void)
{
  CUcontext context;
  CUmemoryPool keeps;
  cuuint64_t all = UINT64_MAX;
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) exit(NO_GPU);
#define FIND(name, type)                                                                           \
  *(void **)&driver.name##_ = dlsym(library, #name);                                               \
  check_result(!driver.name##_, #name);
  CALLS(FIND)
#undef FIND
  DRIVER(cuDevicePrimaryCtxRetain, &context, 0);
  DRIVER(cuCtxSetCurrent, context);
  DRIVER(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  DRIVER(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING);
  DRIVER(cuDeviceGetDefaultMemPool, &keeps, 0);
  DRIVER(cuMemPoolSetAttribute, keeps, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
  DRIVER(cuMemAddressReserve, &space, SLOW_BURST * page_bytes, 0, 0, 0);
}

static void print_values(const char *name)
{
  weir_cuda_device_properties p;
  bool all = !strcmp(name, "all");
  if (!strcmp(name, "name")) {
    check_result(weir_cuda_get_device_properties(&p, 0), "properties");
    printf("%s\n", p.name);
    return;
  }
  for (size_t i = 0; i < sizeof whats / sizeof *whats; i++) {
    if (all) printf("%s ", whats[i].name);
    if (all || !strcmp(name, whats[i].name)) printf("%.1f\n", measure_gpu(&whats[i]));
  }
}

int main(int argc, char **argv)
{
  if (!weir_cuda_is_available()) {
    (void)fprintf(stderr, "gpu: no GPU: %s\n", weir_error_message());
    return NO_GPU;
  }
  set_up_gpu();
  for (int i = 1; i < argc; i++)
    print_values(argv[i]);
  return 0;
}
