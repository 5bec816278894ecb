/* random_ops.c: the operations of the random caller, one half (see random.h).
 *
 * Each function is one operation: it draws its sizes and pointers, calls, and adds to the sums what
 * the documentation says the call does. Rows of the table at the end are the whole choice. */
#include <stdbool.h>
#include <unistd.h>
#include "tests/e2e/random.h"

#define SUM(field, n) (c->sums->field##_calls++, c->sums->field##_bytes += (n))
#define MOVED(way, n) TALLY_MOVED(c->sums, way, n)

/* ---- drawing --------------------------------------------------------------------------------- */

enum side { DEV, PIN, PAGE, SIDES };

typedef struct spot {
  char *p; /* BUFFER_BYTES from here are ours */
  enum side side;
  int device; /* DEV only */
} spot;

static spot draw_spot(caller *c, enum side side)
{
  spot s = {NULL, side, 0};
  uint32_t i = caller_random_below(c, BUFFERS);
  if (side == DEV) {
    s.device = (int)caller_random_below(c, (uint32_t)c->devices);
    s.p = c->dev[s.device][i];
  } else {
    s.p = side == PIN ? c->pinned[i] : c->pageable[i];
  }
  return s;
}

static spot draw_host(caller *c)
{
  return draw_spot(c, caller_random_below(c, 2) ? PIN : PAGE);
}

static spot draw_here(caller *c)
{
  spot s = draw_spot(c, DEV);
  s.p = c->dev[c->device][caller_random_below(c, BUFFERS)];
  s.device = c->device;
  return s;
}

static spot draw_any(caller *c)
{
  return draw_spot(c, (enum side)caller_random_below(c, SIDES));
}

/* Up to BUFFER_BYTES; small, large and 0 all come up. */
static size_t draw_bytes(caller *c)
{
  switch (caller_random_below(c, 8)) {
  case 0:
    return 0;
  case 1:
    return BUFFER_BYTES;
  case 2:
    return 1 + caller_random_below(c, 64);
  default:
    return 1 + caller_random_below(c, (uint32_t)BUFFER_BYTES);
  }
}

static cudaStream_t draw_stream(caller *c)
{
  uint32_t i = caller_random_below(c, STREAMS + 3);
  if (i == STREAMS) return cudaStreamLegacy;
  if (i == STREAMS + 1) return cudaStreamPerThread;
  return i < STREAMS ? c->stream[i] : NULL;
}

/* Two spots that do not overlap. */
static void draw_pair(caller *c, spot *dst, spot *src)
{
  *dst = draw_any(c);
  do
    *src = draw_any(c);
  while (src->p == dst->p);
}

static void sum_copy(caller *c, const spot *dst, const spot *src, size_t bytes)
{
  if (dst->side == DEV && src->side == DEV) {
    if (dst->device == src->device)
      MOVED(d2d, bytes);
    else
      MOVED(p2p, bytes);
  } else if (dst->side == DEV) {
    MOVED(h2d, bytes);
  } else if (src->side == DEV) {
    MOVED(d2h, bytes);
  } else {
    MOVED(h2h, bytes);
  }
}

static enum cudaMemcpyKind kind_of(caller *c, const spot *dst, const spot *src)
{
  if (caller_random_below(c, 2)) return cudaMemcpyDefault;
  if (dst->side == DEV) return src->side == DEV ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
  return src->side == DEV ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

#define DP(s) ((CUdeviceptr)(uintptr_t)(s).p)

/* ---- allocation ------------------------------------------------------------------------------ */

static void runtime_malloc(caller *c)
{
  size_t n = 1 + caller_random_below(c, 3u << 20);
  void *p = NULL;
  CALL(cudaMalloc, &p, n);
  SUM(alloc, n);
  CALL(cudaFree, p);
  c->sums->free_calls++;
}

static void driver_malloc(caller *c)
{
  size_t n = 1 + caller_random_below(c, 3u << 20);
  CUdeviceptr p = 0;
  CALL(cuMemAlloc, &p, n);
  SUM(alloc, n);
  CALL(cuMemFree, p);
  c->sums->free_calls++;
}

static void pitch(caller *c)
{
  size_t w = 1 + caller_random_below(c, 1000), h = 1 + caller_random_below(c, 50), pitch_bytes = 0;
  void *p = NULL;
  CALL(cudaMallocPitch, &p, &pitch_bytes, w, h);
  SUM(alloc, pitch_bytes * h);
  CALL(cudaMemset2D, p, pitch_bytes, 7, w, h);
  MOVED(memset, w * h);
  CALL(cudaMemset2DAsync, p, pitch_bytes, 7, w, h, draw_stream(c));
  MOVED(memset, w * h);
  CALL(cudaFree, p);
  c->sums->free_calls++;
  CUdeviceptr d = 0;
  CALL(cuMemAllocPitch, &d, &pitch_bytes, w, h, 4);
  SUM(alloc, pitch_bytes * h);
  CALL(cuMemFree, d);
  c->sums->free_calls++;
}

static void malloc_3d(caller *c)
{
  struct cudaExtent e = {4 + 4 * caller_random_below(c, 100), 1 + caller_random_below(c, 10),
                         1 + caller_random_below(c, 5)};
  struct cudaPitchedPtr p = {0};
  CALL(cudaMalloc3D, &p, e);
  SUM(alloc, p.pitch * e.height * e.depth);
  CALL(cudaMemset3D, p, 1, e);
  MOVED(memset, e.width * e.height * e.depth);
  CALL(cudaMemset3DAsync, p, 1, e, draw_stream(c));
  MOVED(memset, e.width * e.height * e.depth);
  CALL(cudaFree, p.ptr);
  c->sums->free_calls++;
}

static void managed(caller *c)
{
  size_t n = 1 + caller_random_below(c, 1u << 20);
  void *p = NULL;
  CALL(cudaMallocManaged, &p, n, cudaMemAttachGlobal);
  SUM(alloc, n);
  CALL(cudaFree, p);
  c->sums->free_calls++;
  CUdeviceptr d = 0;
  CALL(cuMemAllocManaged, &d, n, CU_MEM_ATTACH_GLOBAL);
  SUM(alloc, n);
  CALL(cuMemFree, d);
  c->sums->free_calls++;
}

static void pinned(caller *c)
{
  size_t n = 1 + caller_random_below(c, 1u << 18);
  void *p = NULL;
  CALL(cudaMallocHost, &p, n);
  CALL(cudaFreeHost, p);
  CALL(cudaHostAlloc, &p, n, cudaHostAllocPortable);
  CALL(cudaFreeHost, p);
  CALL(cuMemAllocHost, &p, n);
  CALL(cuMemFreeHost, p);
  CALL(cuMemHostAlloc, &p, n, CU_MEMHOSTALLOC_PORTABLE);
  CALL(cuMemFreeHost, p);
}

/* Memory the program owns changes its kind by being registered: copies around it must follow. */
static void registered(caller *c)
{
  void *p = NULL;
  if (posix_memalign(&p, 4096, 65536) != 0) return;
  spot host = {p, PAGE, 0}, dev = draw_here(c);
  CALL(cudaHostRegister, p, 65536, cudaHostRegisterDefault);
  CALL(cudaMemcpy, dev.p, p, 5000, cudaMemcpyDefault);
  sum_copy(c, &dev, &host, 5000);
  CALL(cudaHostUnregister, p);
  CALL(cuMemHostRegister, p, 65536, 0);
  CALL(cuMemHostUnregister, p);
  CALL(cudaMemcpy, p, dev.p, 5000, cudaMemcpyDefault);
  sum_copy(c, &host, &dev, 5000);
  free(p);
}

static void async_malloc(caller *c)
{
  size_t n = 1 + caller_random_below(c, 1u << 20);
  void *p = NULL;
  cudaStream_t s = draw_stream(c);
  CALL(cudaMallocAsync, &p, n, s);
  SUM(alloc, n);
  CALL(cudaMemsetAsync, p, 1, n, s);
  MOVED(memset, n);
  CALL(cudaFreeAsync, p, s);
  c->sums->free_calls++;
  CUdeviceptr d = 0;
  CALL(cuMemAllocAsync, &d, n, s);
  SUM(alloc, n);
  CALL(cuMemFreeAsync, d, s);
  c->sums->free_calls++;
}

static void pool_malloc(caller *c)
{
  size_t n = 1 + caller_random_below(c, 1u << 20);
  void *p = NULL;
  cudaMemPool_t pool = NULL;
  cudaStream_t s = c->stream[caller_random_below(c, STREAMS)];
  if (cudaDeviceGetDefaultMemPool(&pool, c->device) != cudaSuccess) {
    c->failed = "cudaDeviceGetDefaultMemPool";
    return;
  }
  CALL(cudaMallocFromPoolAsync, &p, n, pool, s);
  SUM(alloc, n);
  CALL(cudaFreeAsync, p, s);
  c->sums->free_calls++;
  CUdeviceptr d = 0;
  CALL(cuMemAllocFromPoolAsync, &d, n, pool, s);
  SUM(alloc, n);
  CALL(cuMemFreeAsync, d, s);
  c->sums->free_calls++;
  CALL(cudaDeviceSetMemPool, c->device, pool);
  CALL(cuDeviceSetMemPool, c->device, pool);
  CALL(cudaMemPoolTrimTo, pool, 1 << 20);
  CALL(cuMemPoolTrimTo, pool, 0);
}

static void own_pool(caller *c)
{
  struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                   .location = {cudaMemLocationTypeDevice, c->device}};
  cudaMemPool_t pool[2] = {NULL, NULL};
  void *p = NULL;
  cudaStream_t s = c->stream[caller_random_below(c, STREAMS)];
  for (int i = 0; i < 2; i++) /* seen as the driver's */
    if (expect(c, __func__, "cuMemPoolCreate", 0, (int)cudaMemPoolCreate(&pool[i], &props))) return;
  CALL(cudaMallocFromPoolAsync, &p, 4096, pool[0], s);
  SUM(alloc, 4096);
  CALL(cudaFreeAsync, p, s);
  c->sums->free_calls++;
  CALL(cudaMemPoolDestroy, pool[0]);
  CALL(cuMemPoolDestroy, pool[1]);
}

static void default_pool_by_place(caller *c)
{
  cudaMemPool_t pool = NULL;
  struct cudaMemLocation here = {cudaMemLocationTypeDevice, c->device};
  CUmemLocation there = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device};
  if (cudaDeviceGetDefaultMemPool(&pool, c->device) != cudaSuccess) return;
  CALL(cudaMemSetMemPool, &here, cudaMemAllocationTypePinned, pool);
  CALL(cuMemSetMemPool, &there, CU_MEM_ALLOCATION_TYPE_PINNED, pool);
}

static CUmemAllocationProp physical_here(const caller *c)
{
  CUmemAllocationProp p = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                           .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device}};
  if (c->rng & 1024) p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

/* What is copied to and from mapped addresses is the device's. */
static void use_mapped(caller *c, CUdeviceptr one, CUdeviceptr other)
{
  size_t n = 1 + caller_random_below(c, (uint32_t)BUFFER_BYTES);
  CALL(cuMemcpyHtoD, one + 4096, c->pageable[0], n);
  MOVED(h2d, n);
  CALL(cuMemcpyDtoD, other, one, 4096);
  MOVED(d2d, 4096);
  CALL(cudaMemcpy, c->pinned[0], (void *)(uintptr_t)other, n, cudaMemcpyDefault);
  MOVED(d2h, n);
}

/* Mapped twice, it is one allocation, which ends with the last of handles and mappings. */
static void physical_mapped(caller *c)
{
  size_t n = (size_t)(1 + caller_random_below(c, 3)) << 21;
  CUmemAllocationProp props = physical_here(c);
  CUmemAccessDesc access = {props.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0, again = 0;
  CUdeviceptr p = 0;
  bool early = caller_random_below(c, 2), apart = caller_random_below(c, 2);
  CALL(cuMemCreate, &handle, n, &props, 0);
  SUM(alloc, n);
  CALL(cuMemAddressReserve, &p, 2 * n, 0, 0, 0);
  CALL(cuMemMap, p, n, 0, handle, 0);
  CALL(cuMemMap, p + n, n, 0, handle, 0);
  if (early) CALL(cuMemRelease, handle);
  CALL(cuMemSetAccess, p, 2 * n, &access, 1);
  use_mapped(c, p, p + n);
  CALL(cuMemRetainAllocationHandle, &again, (void *)(uintptr_t)(p + n + 12345));
  if (apart) CALL(cuMemUnmap, p + n, n);
  CALL(cuMemUnmap, p, apart ? n : 2 * n);
  CALL(cuMemRelease, again);
  if (!early) CALL(cuMemRelease, handle);
  c->sums->free_calls++;
  CALL(cuMemAddressFree, p, 2 * n);
}

/* What came from another, here the program itself, is not counted again. */
static void physical_shared(caller *c)
{
  CUmemAllocationProp props = physical_here(c);
  props.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUmemAccessDesc access = {props.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0, imported = 0;
  CUdeviceptr p = 0;
  int fd = -1;
  CALL(cuMemCreate, &handle, 2u << 20, &props, 0);
  SUM(alloc, 2u << 20);
  CALL(cuMemExportToShareableHandle, &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  CALL(cuMemImportFromShareableHandle, &imported, (void *)(intptr_t)fd,
       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  (void)close(fd);
  CALL(cuMemAddressReserve, &p, 4u << 20, 0, 0, 0);
  CALL(cuMemMap, p, 2u << 20, 0, imported, 0);
  CALL(cuMemMap, p + (2u << 20), 2u << 20, 0, handle, 0);
  CALL(cuMemSetAccess, p, 4u << 20, &access, 1);
  SUM(imported, 2u << 20);
  use_mapped(c, p, p + (2u << 20));
  CALL(cuMemRelease, imported);
  CALL(cuMemRelease, handle);
  CALL(cuMemUnmap, p, 4u << 20);
  c->sums->free_calls++;
  CALL(cuMemAddressFree, p, 4u << 20);
}

static void physical_left(caller *c)
{
  CUmemAllocationProp props = physical_here(c);
  CUmemGenericAllocationHandle handle = 0;
  CALL(cuMemCreate, &handle, 2u << 20, &props, 0);
  SUM(alloc, 2u << 20);
  if (c->sums->live_at_exit_bytes) {
    CALL(cuMemRelease, handle);
    c->sums->free_calls++;
  } else {
    c->sums->live_at_exit_bytes += 2u << 20;
  }
}

static void wrong_calls(caller *c)
{
  void *p = NULL;
  spot d = draw_here(c);
  EXPECT(cudaErrorInvalidValue, cudaMalloc, NULL, 64);
  EXPECT(cudaErrorMemoryAllocation, cudaMalloc, &p, (size_t)1 << 60);
  EXPECT(cudaErrorInvalidMemcpyDirection, cudaMemcpy, d.p, d.p, 16, (enum cudaMemcpyKind)77);
  EXPECT(cudaErrorInvalidValue, cudaFree, (void *)(uintptr_t)0x1234560);
  EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemFree, 0x1234560);
  EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc, NULL, 64);
  CALL(cudaFree, NULL);
  (void)cudaGetLastError();
}

/* ---- 1-D copies ------------------------------------------------------------------------------ */

static void memcpy_runtime(caller *c)
{
  spot d, s;
  size_t n = draw_bytes(c);
  draw_pair(c, &d, &s);
  CALL(cudaMemcpy, d.p, s.p, n, kind_of(c, &d, &s));
  sum_copy(c, &d, &s, n);
  n = draw_bytes(c);
  draw_pair(c, &d, &s);
  CALL(cudaMemcpyAsync, d.p, s.p, n, kind_of(c, &d, &s), draw_stream(c));
  sum_copy(c, &d, &s, n);
}

static void memcpy_unified(caller *c)
{
  spot d, s;
  size_t n = draw_bytes(c);
  draw_pair(c, &d, &s);
  CALL(cuMemcpy, DP(d), DP(s), n);
  sum_copy(c, &d, &s, n);
  draw_pair(c, &d, &s);
  CALL(cuMemcpyAsync, DP(d), DP(s), n, draw_stream(c));
  sum_copy(c, &d, &s, n);
}

static void memcpy_directed(caller *c)
{
  size_t n = draw_bytes(c);
  spot d = draw_spot(c, DEV), h = draw_host(c);
  CALL(cuMemcpyHtoD, DP(d), h.p, n);
  sum_copy(c, &d, &h, n);
  CALL(cuMemcpyHtoDAsync, DP(d), h.p, n, draw_stream(c));
  sum_copy(c, &d, &h, n);
  CALL(cuMemcpyDtoH, h.p, DP(d), n);
  sum_copy(c, &h, &d, n);
  CALL(cuMemcpyDtoHAsync, h.p, DP(d), n, draw_stream(c));
  sum_copy(c, &h, &d, n);
}

static void memcpy_on_device(caller *c)
{
  size_t n = draw_bytes(c);
  spot d = {c->dev[c->device][0], DEV, c->device}, s = {c->dev[c->device][1], DEV, c->device};
  CALL(cuMemcpyDtoD, DP(d), DP(s), n);
  sum_copy(c, &d, &s, n);
  CALL(cuMemcpyDtoDAsync, DP(s), DP(d), n, draw_stream(c));
  sum_copy(c, &d, &s, n);
}

static void memcpy_peer(caller *c)
{
  size_t n = draw_bytes(c);
  int to = (int)caller_random_below(c, (uint32_t)c->devices),
      from = (int)caller_random_below(c, (uint32_t)c->devices);
  spot d = {c->dev[to][0], DEV, to}, s = {c->dev[from][1], DEV, from};
  CALL(cudaMemcpyPeer, d.p, to, s.p, from, n);
  sum_copy(c, &d, &s, n);
  CALL(cudaMemcpyPeerAsync, d.p, to, s.p, from, n, c->stream[0]);
  sum_copy(c, &d, &s, n);
  CALL(cuMemcpyPeer, DP(d), c->context[to], DP(s), c->context[from], n);
  sum_copy(c, &d, &s, n);
  CALL(cuMemcpyPeerAsync, DP(d), c->context[to], DP(s), c->context[from], n, c->stream[0]);
  sum_copy(c, &d, &s, n);
}

static void memcpy_symbol(caller *c)
{
  size_t n = caller_random_below(c, 4097);
  spot h = draw_host(c), d = {NULL, DEV, c->device}, s = draw_here(c);
  CALL(cudaMemcpyToSymbol, victim_symbol(), h.p, n, 0, cudaMemcpyHostToDevice);
  sum_copy(c, &d, &h, n);
  CALL(cudaMemcpyToSymbolAsync, victim_symbol(), s.p, n, 0, cudaMemcpyDeviceToDevice,
       draw_stream(c));
  sum_copy(c, &d, &s, n);
  CALL(cudaMemcpyFromSymbol, h.p, victim_symbol(), n, 0, cudaMemcpyDefault);
  sum_copy(c, &h, &d, n);
  CALL(cudaMemcpyFromSymbolAsync, h.p, victim_symbol(), n, 0, cudaMemcpyDeviceToHost,
       draw_stream(c));
  sum_copy(c, &h, &d, n);
}

/* ---- 2-D and 3-D copies ---------------------------------------------------------------------- */

typedef struct plane {
  size_t width, height, dpitch, spitch;
} plane;

static plane draw_plane(caller *c)
{
  plane p = {1 + caller_random_below(c, 900), 1 + caller_random_below(c, 64), 0, 0};
  p.dpitch = p.width + caller_random_below(c, 100);
  p.spitch = p.width + caller_random_below(c, 100);
  return p;
}

static void memcpy_2d(caller *c)
{
  spot d, s;
  plane p = draw_plane(c);
  draw_pair(c, &d, &s);
  CALL(cudaMemcpy2D, d.p, p.dpitch, s.p, p.spitch, p.width, p.height, kind_of(c, &d, &s));
  sum_copy(c, &d, &s, p.width * p.height);
  draw_pair(c, &d, &s);
  CALL(cudaMemcpy2DAsync, d.p, p.dpitch, s.p, p.spitch, p.width, p.height, kind_of(c, &d, &s),
       draw_stream(c));
  sum_copy(c, &d, &s, p.width * p.height);
}

static CUmemorytype type_of(caller *c, const spot *s)
{
  if (caller_random_below(c, 2)) return CU_MEMORYTYPE_UNIFIED;
  return s->side == DEV ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
}

static CUDA_MEMCPY2D plane_2d(caller *c, const plane *p, spot *d, spot *s)
{
  CUDA_MEMCPY2D m = {0};
  draw_pair(c, d, s);
  m.srcMemoryType = type_of(c, s);
  m.srcHost = s->p;
  m.srcDevice = DP(*s);
  m.srcPitch = p->spitch;
  m.dstMemoryType = type_of(c, d);
  m.dstHost = d->p;
  m.dstDevice = DP(*d);
  m.dstPitch = p->dpitch;
  m.WidthInBytes = p->width;
  m.Height = p->height;
  return m;
}

static void memcpy_2d_driver(caller *c)
{
  spot d, s;
  plane p = draw_plane(c);
  CUDA_MEMCPY2D m = plane_2d(c, &p, &d, &s);
  CALL(cuMemcpy2D, &m);
  sum_copy(c, &d, &s, p.width * p.height);
  m = plane_2d(c, &p, &d, &s);
  CALL(cuMemcpy2DUnaligned, &m);
  sum_copy(c, &d, &s, p.width * p.height);
  m = plane_2d(c, &p, &d, &s);
  CALL(cuMemcpy2DAsync, &m, draw_stream(c));
  sum_copy(c, &d, &s, p.width * p.height);
}

static void memcpy_3d(caller *c)
{
  spot d, s;
  struct cudaMemcpy3DParms m = {0};
  size_t w = 1 + caller_random_below(c, 100), h = 1 + caller_random_below(c, 16),
         z = 1 + caller_random_below(c, 8);
  draw_pair(c, &d, &s);
  m.srcPtr = (struct cudaPitchedPtr){s.p, w + 16, w, h};
  m.dstPtr = (struct cudaPitchedPtr){d.p, w + 32, w, h};
  m.extent = (struct cudaExtent){w, h, z};
  m.kind = kind_of(c, &d, &s);
  CALL(cudaMemcpy3D, &m);
  sum_copy(c, &d, &s, w * h * z);
  CALL(cudaMemcpy3DAsync, &m, draw_stream(c));
  sum_copy(c, &d, &s, w * h * z);
}

static CUDA_MEMCPY3D volume(caller *c, spot *d, spot *s, size_t w, size_t h, size_t z)
{
  CUDA_MEMCPY3D m = {0};
  draw_pair(c, d, s);
  m.srcMemoryType = type_of(c, s);
  m.srcHost = s->p;
  m.srcDevice = DP(*s);
  m.srcPitch = w + 16;
  m.srcHeight = h;
  m.dstMemoryType = type_of(c, d);
  m.dstHost = d->p;
  m.dstDevice = DP(*d);
  m.dstPitch = w + 32;
  m.dstHeight = h;
  m.WidthInBytes = w;
  m.Height = h;
  m.Depth = z;
  return m;
}

static void memcpy_3d_driver(caller *c)
{
  spot d, s;
  size_t w = 1 + caller_random_below(c, 100), h = 1 + caller_random_below(c, 16),
         z = 1 + caller_random_below(c, 8);
  CUDA_MEMCPY3D m = volume(c, &d, &s, w, h, z);
  CALL(cuMemcpy3D, &m);
  sum_copy(c, &d, &s, w * h * z);
  m = volume(c, &d, &s, w, h, z);
  CALL(cuMemcpy3DAsync, &m, draw_stream(c));
  sum_copy(c, &d, &s, w * h * z);
}

static void memcpy_3d_peer(caller *c)
{
  int to = (int)caller_random_below(c, (uint32_t)c->devices),
      from = (int)caller_random_below(c, (uint32_t)c->devices);
  spot d = {c->dev[to][0], DEV, to}, s = {c->dev[from][1], DEV, from};
  size_t w = 1 + caller_random_below(c, 100), h = 1 + caller_random_below(c, 16),
         z = 1 + caller_random_below(c, 8);
  struct cudaMemcpy3DPeerParms m = {0};
  m.srcPtr = (struct cudaPitchedPtr){s.p, w, w, h};
  m.srcDevice = from;
  m.dstPtr = (struct cudaPitchedPtr){d.p, w, w, h};
  m.dstDevice = to;
  m.extent = (struct cudaExtent){w, h, z};
  CALL(cudaMemcpy3DPeer, &m);
  sum_copy(c, &d, &s, w * h * z);
  CALL(cudaMemcpy3DPeerAsync, &m, c->stream[0]);
  sum_copy(c, &d, &s, w * h * z);
  CUDA_MEMCPY3D_PEER q = {0};
  q.srcMemoryType = q.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  q.srcDevice = DP(s);
  q.srcContext = c->context[from];
  q.srcPitch = q.dstPitch = q.WidthInBytes = w;
  q.srcHeight = q.dstHeight = q.Height = h;
  q.dstDevice = DP(d);
  q.dstContext = c->context[to];
  q.Depth = z;
  CALL(cuMemcpy3DPeer, &q);
  sum_copy(c, &d, &s, w * h * z);
  CALL(cuMemcpy3DPeerAsync, &q, c->stream[0]);
  sum_copy(c, &d, &s, w * h * z);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static void array_runtime(caller *c)
{
  spot h = draw_host(c), a = {NULL, DEV, c->device}, d = draw_here(c);
  size_t w = 4 * (1 + caller_random_below(c, ARRAY_W)), n = 1 + caller_random_below(c, ARRAY_H);
  CALL(cudaMemcpy2DToArray, c->array, 0, 0, h.p, w, w, n, cudaMemcpyHostToDevice);
  sum_copy(c, &a, &h, w * n);
  CALL(cudaMemcpy2DToArrayAsync, c->array, 0, 0, d.p, w, w, n, cudaMemcpyDeviceToDevice,
       draw_stream(c));
  sum_copy(c, &a, &d, w * n);
  CALL(cudaMemcpy2DFromArray, h.p, w, c->array, 0, 0, w, n, cudaMemcpyDeviceToHost);
  sum_copy(c, &h, &a, w * n);
  CALL(cudaMemcpy2DFromArrayAsync, h.p, w, c->array, 0, 0, w, n, cudaMemcpyDefault, draw_stream(c));
  sum_copy(c, &h, &a, w * n);
  w = 4 * (1 + caller_random_below(c, ARRAY_W));
  CALL(cudaMemcpyToArray, c->array, 0, 0, h.p, w, cudaMemcpyHostToDevice);
  sum_copy(c, &a, &h, w);
  CALL(cudaMemcpyToArrayAsync, c->array, 0, 0, h.p, w, cudaMemcpyHostToDevice, draw_stream(c));
  sum_copy(c, &a, &h, w);
  CALL(cudaMemcpyFromArray, h.p, c->array, 0, 0, w, cudaMemcpyDeviceToHost);
  sum_copy(c, &h, &a, w);
  CALL(cudaMemcpyFromArrayAsync, h.p, c->array, 0, 0, w, cudaMemcpyDeviceToHost, draw_stream(c));
  sum_copy(c, &h, &a, w);
}

static void array_to_array(caller *c)
{
  struct cudaChannelFormatDesc f = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  cudaArray_t other = NULL;
  spot a = {NULL, DEV, c->device};
  size_t w = 4 * (1 + caller_random_below(c, ARRAY_W)), n = 1 + caller_random_below(c, ARRAY_H);
  CALL(cudaMallocArray, &other, &f, ARRAY_W, ARRAY_H, 0);
  SUM(alloc, (size_t)4 * ARRAY_W * ARRAY_H);
  CALL(cudaMemcpy2DArrayToArray, other, 0, 0, c->array, 0, 0, w, n, cudaMemcpyDeviceToDevice);
  sum_copy(c, &a, &a, w * n);
  CALL(cudaMemcpyArrayToArray, other, 0, 0, c->array, 0, 0, w, cudaMemcpyDeviceToDevice);
  sum_copy(c, &a, &a, w);
  CALL(cudaFreeArray, other);
  c->sums->free_calls++;
}

static void array_3d(caller *c)
{
  spot h = draw_host(c), a = {NULL, DEV, c->device};
  struct cudaMemcpy3DParms m = {0};
  m.srcPtr = (struct cudaPitchedPtr){h.p, (size_t)4 * ARRAY_W, ARRAY_W, ARRAY_H};
  m.dstArray = c->array3;
  m.extent =
      (struct cudaExtent){1 + caller_random_below(c, ARRAY_W), 1 + caller_random_below(c, ARRAY_H),
                          1 + caller_random_below(c, ARRAY_D)};
  m.kind = cudaMemcpyHostToDevice;
  CALL(cudaMemcpy3D, &m);
  sum_copy(c, &a, &h, 4 * m.extent.width * m.extent.height * m.extent.depth);
}

static void array_driver(caller *c)
{
  CUDA_ARRAY_DESCRIPTOR desc = {ARRAY_W, ARRAY_H, CU_AD_FORMAT_FLOAT, 1};
  CUDA_ARRAY3D_DESCRIPTOR desc3 = {ARRAY_W, ARRAY_H, 0, CU_AD_FORMAT_FLOAT, 1, 0};
  CUarray x = NULL, y = NULL;
  spot h = draw_host(c), a = {NULL, DEV, c->device}, d = draw_here(c);
  size_t n = 4 * (1 + caller_random_below(c, ARRAY_W));
  CALL(cuArrayCreate, &x, &desc);
  SUM(alloc, (size_t)4 * ARRAY_W * ARRAY_H);
  CALL(cuArray3DCreate, &y, &desc3);
  SUM(alloc, (size_t)4 * ARRAY_W * ARRAY_H);
  CALL(cuMemcpyHtoA, x, 0, h.p, n);
  sum_copy(c, &a, &h, n);
  CALL(cuMemcpyHtoAAsync, x, 0, h.p, n, draw_stream(c));
  sum_copy(c, &a, &h, n);
  CALL(cuMemcpyDtoA, x, 0, DP(d), n);
  sum_copy(c, &a, &d, n);
  CALL(cuMemcpyAtoD, DP(d), x, 0, n);
  sum_copy(c, &d, &a, n);
  CALL(cuMemcpyAtoA, y, 0, x, 0, n);
  sum_copy(c, &a, &a, n);
  CALL(cuMemcpyAtoH, h.p, y, 0, n);
  sum_copy(c, &h, &a, n);
  CALL(cuMemcpyAtoHAsync, h.p, y, 0, n, draw_stream(c));
  sum_copy(c, &h, &a, n);
  CALL(cuArrayDestroy, x);
  CALL(cuArrayDestroy, y);
  c->sums->free_calls += 2;
}

/* ---- memsets --------------------------------------------------------------------------------- */

static void memset_runtime(caller *c)
{
  spot d = draw_here(c);
  size_t n = draw_bytes(c);
  CALL(cudaMemset, d.p, 1, n);
  MOVED(memset, n);
  CALL(cudaMemsetAsync, d.p, 1, n, draw_stream(c));
  MOVED(memset, n);
}

static void memset_driver(caller *c)
{
  spot d = draw_here(c);
  size_t n = draw_bytes(c) / 4;
  CALL(cuMemsetD8, DP(d), 1, n);
  MOVED(memset, n);
  CALL(cuMemsetD16, DP(d), 1, n);
  MOVED(memset, 2 * n);
  CALL(cuMemsetD32, DP(d), 1, n);
  MOVED(memset, 4 * n);
  CALL(cuMemsetD8Async, DP(d), 1, n, draw_stream(c));
  MOVED(memset, n);
  CALL(cuMemsetD16Async, DP(d), 1, n, draw_stream(c));
  MOVED(memset, 2 * n);
  CALL(cuMemsetD32Async, DP(d), 1, n, draw_stream(c));
  MOVED(memset, 4 * n);
}

static void memset_2d_driver(caller *c)
{
  spot d = draw_here(c);
  size_t w = 1 + caller_random_below(c, 200), h = 1 + caller_random_below(c, 50),
         pitch_bytes = 1024;
  CALL(cuMemsetD2D8, DP(d), pitch_bytes, 1, w, h);
  MOVED(memset, w * h);
  CALL(cuMemsetD2D16, DP(d), pitch_bytes, 1, w, h);
  MOVED(memset, 2 * w * h);
  CALL(cuMemsetD2D32, DP(d), pitch_bytes, 1, w, h);
  MOVED(memset, 4 * w * h);
  CALL(cuMemsetD2D8Async, DP(d), pitch_bytes, 1, w, h, draw_stream(c));
  MOVED(memset, w * h);
  CALL(cuMemsetD2D16Async, DP(d), pitch_bytes, 1, w, h, draw_stream(c));
  MOVED(memset, 2 * w * h);
  CALL(cuMemsetD2D32Async, DP(d), pitch_bytes, 1, w, h, draw_stream(c));
  MOVED(memset, 4 * w * h);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void wait_runtime(caller *c)
{
  uint32_t e = caller_random_below(c, EVENTS);
  cudaStream_t s = draw_stream(c);
  CALL(cudaEventRecord, c->event[e], s);
  CALL(cudaEventRecordWithFlags, c->event[e], s, cudaEventRecordDefault);
  CALL(cudaStreamWaitEvent, draw_stream(c), c->event[e], 0);
  CALL(cudaEventSynchronize, c->event[e]);
  CALL(cudaEventQuery, c->event[e]);
  CALL(cudaStreamSynchronize, s);
  CALL(cudaStreamSynchronize, c->stream[e]);
  CALL(cudaStreamQuery, c->stream[e]); /* nobody else's: it is done now */
  CALL(cudaDeviceSynchronize);
  c->sums->sync_explicit_calls += 4;
}

static void wait_driver(caller *c)
{
  uint32_t e = caller_random_below(c, EVENTS);
  cudaStream_t s = draw_stream(c);
  CALL(cuEventRecord, c->event[e], s);
  CALL(cuEventRecordWithFlags, c->event[e], s, CU_EVENT_RECORD_DEFAULT);
  CALL(cuStreamWaitEvent, draw_stream(c), c->event[e], 0);
  CALL(cuEventSynchronize, c->event[e]);
  CALL(cuEventQuery, c->event[e]);
  CALL(cuStreamSynchronize, s);
  CALL(cuStreamSynchronize, c->stream[e]);
  CALL(cuStreamQuery, c->stream[e]); /* nobody else's: it is done now */
  CALL(cuCtxSynchronize);
  c->sums->sync_explicit_calls += 4;
}

/* ---- streams, events, contexts --------------------------------------------------------------- */

static void streams_and_events(caller *c)
{
  cudaStream_t s = NULL;
  cudaEvent_t e = NULL;
  CUstream cs = NULL;
  CUevent ce = NULL;
  CALL(cudaStreamCreate, &s);
  CALL(cudaStreamDestroy, s);
  CALL(cudaStreamCreateWithFlags, &s, cudaStreamNonBlocking);
  CALL(cudaStreamDestroy, s);
  CALL(cudaStreamCreateWithPriority, &s, cudaStreamDefault, 0);
  CALL(cudaStreamDestroy, s);
  CALL(cuStreamCreate, &cs, CU_STREAM_NON_BLOCKING);
  CALL(cuStreamDestroy, cs);
  CALL(cuStreamCreateWithPriority, &cs, CU_STREAM_DEFAULT, 0);
  CALL(cuStreamDestroy, cs);
  CALL(cudaEventCreate, &e);
  CALL(cudaEventDestroy, e);
  CALL(cudaEventCreateWithFlags, &e, cudaEventDisableTiming);
  CALL(cudaEventDestroy, e);
  CALL(cuEventCreate, &ce, CU_EVENT_DEFAULT);
  CALL(cuEventDestroy, ce);
}

static void contexts(caller *c)
{
  int device = -1;
  CUcontext now = NULL, popped = NULL;
  CUdevice d = -1;
  CALL(cudaSetDevice, c->device);
  (void)cudaGetDevice(&device); /* questions are not events: not tallied either */
  (void)cuCtxGetCurrent(&now);
  CALL(cuCtxPushCurrent, c->context[c->device]);
  (void)cuCtxGetDevice(&d);
  CALL(cuCtxPopCurrent, &popped);
  CALL(cuCtxSetCurrent, c->context[c->device]);
  if (device != c->device || d != c->device || now != c->context[c->device] || popped != now)
    c->failed = "contexts: the current device is not ours";
}

/* A context of its own, destroyed with a block in it: an implicit free, tallied as none. */
static void own_context(caller *c)
{
  CUcontext own = NULL;
  CUdeviceptr p = 0;
  CALL(cuCtxCreate, &own, NULL, 0, c->device);
  CALL(cuMemAlloc, &p, 4096);
  SUM(alloc, 4096);
  CALL(cuMemsetD8, p, 1, 4096);
  MOVED(memset, 4096);
  CALL(cuCtxDestroy, own);
  CALL(cuCtxSetCurrent, c->context[c->device]);
}

static void elapsed(caller *c)
{
  float ms = -1;
  CALL(cudaEventRecord, c->event[0], c->stream[0]);
  CALL(cudaEventRecord, c->event[1], c->stream[0]);
  CALL(cudaStreamSynchronize, c->stream[0]);
  c->sums->sync_explicit_calls++;
  CALL(cudaEventElapsedTime, &ms, c->event[0], c->event[1]);
  CALL(cuEventElapsedTime, &ms, c->event[0], c->event[1]);
  if (ms < 0) c->failed = "elapsed: time went backwards";
}

/* ---- launches -------------------------------------------------------------------------------- */

static void CUDART_CB host_function(void *data)
{
  __atomic_fetch_add((int *)data, 1, __ATOMIC_RELAXED);
}

static void CUDART_CB stream_callback(cudaStream_t s, cudaError_t status, void *data)
{
  (void)s, (void)status;
  host_function(data);
}

static void launch_runtime(caller *c)
{
  float *p = (float *)(void *)c->dev[c->device][2];
  int n = (int)caller_random_below(c, 1000);
  void *arguments[] = {&p, &n};
  dim3 grid = {1 + caller_random_below(c, 4), 1, 1}, block = {64, 1, 1};
  cudaLaunchConfig_t config = {0};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = draw_stream(c);
  CALL(cudaLaunchKernel, victim_kernel(), grid, block, arguments, 0, draw_stream(c));
  CALL(cudaLaunchKernelExC, &config, victim_kernel(), arguments);
  CALL(cudaLaunchCooperativeKernel, victim_kernel(), grid, block, arguments, 0, draw_stream(c));
  expect(c, __func__, "__cudaLaunchKernel", 0, victim_launch(c->stream[0], p, n));
  c->sums->launches += 4;
}

static void launch_driver(caller *c)
{
  CUdeviceptr p = (CUdeviceptr)(uintptr_t)c->dev[c->device][2];
  int n = (int)caller_random_below(c, 1000);
  void *arguments[] = {&p, &n};
  CUlaunchConfig config = {0};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
  config.hStream = draw_stream(c);
  CALL(cuLaunchKernel, c->function, 1 + caller_random_below(c, 4), 1, 1, 64, 1, 1, 0,
       draw_stream(c), arguments, NULL);
  CALL(cuLaunchKernelEx, &config, c->function, arguments, NULL);
  CALL(cuLaunchCooperativeKernel, c->function, 1, 1, 1, 64, 1, 1, 0, draw_stream(c), arguments);
  c->sums->launches += 3;
}

static void host_functions(caller *c)
{
  static int ran; /* shared by all threads: only its address matters */
  CALL(cudaLaunchHostFunc, draw_stream(c), host_function, &ran);
  CALL(cuLaunchHostFunc, draw_stream(c), host_function, &ran);
  CALL(cudaStreamAddCallback, c->stream[0], stream_callback, &ran, 0);
  CALL(cuStreamAddCallback, c->stream[1], (CUstreamCallback)stream_callback, &ran, 0);
}

/* ---- the table ------------------------------------------------------------------------------- */

const operation HALF(operations)[] = {runtime_malloc,
                                      driver_malloc,
                                      pitch,
                                      malloc_3d,
                                      managed,
                                      pinned,
                                      registered,
                                      async_malloc,
                                      pool_malloc,
                                      own_pool,
                                      default_pool_by_place,
                                      physical_mapped,
                                      physical_shared,
                                      physical_left,
                                      wrong_calls,
                                      memcpy_runtime,
                                      memcpy_unified,
                                      memcpy_directed,
                                      memcpy_on_device,
                                      memcpy_peer,
                                      memcpy_symbol,
                                      memcpy_2d,
                                      memcpy_2d_driver,
                                      memcpy_3d,
                                      memcpy_3d_driver,
                                      memcpy_3d_peer,
                                      array_runtime,
                                      array_to_array,
                                      array_3d,
                                      array_driver,
                                      memset_runtime,
                                      memset_driver,
                                      memset_2d_driver,
                                      wait_runtime,
                                      wait_driver,
                                      streams_and_events,
                                      contexts,
                                      own_context,
                                      elapsed,
                                      launch_runtime,
                                      launch_driver,
                                      host_functions,
                                      memcpy_runtime,
                                      memcpy_unified,
                                      memcpy_directed,
                                      memcpy_2d,
                                      memcpy_runtime};
const unsigned HALF(operation_count) = sizeof HALF(operations) / sizeof *HALF(operations);

#ifndef CUDA_API_PER_THREAD_DEFAULT_STREAM

static void open_memory(caller *c)
{
  struct cudaChannelFormatDesc f = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  for (int i = 0; i < BUFFERS; i++) {
    CALL(cudaHostAlloc, (void **)&c->pinned[i], BUFFER_BYTES, 0);
    if (posix_memalign((void **)&c->pageable[i], 4096, BUFFER_BYTES) != 0) abort();
    memset(c->pageable[i], i, BUFFER_BYTES);
  }
  CALL(cudaMallocManaged, (void **)&c->managed, BUFFER_BYTES, cudaMemAttachGlobal);
  SUM(alloc, BUFFER_BYTES);
  CALL(cudaMallocArray, &c->array, &f, ARRAY_W, ARRAY_H, 0);
  SUM(alloc, (size_t)4 * ARRAY_W * ARRAY_H);
  struct cudaExtent e = {ARRAY_W, ARRAY_H, ARRAY_D};
  CALL(cudaMalloc3DArray, &c->array3, &f, e, 0);
  SUM(alloc, (size_t)4 * ARRAY_W * ARRAY_H * ARRAY_D);
}

void caller_open(caller *c)
{
  for (int d = c->devices; d-- > 0;) {
    CALL(cudaSetDevice, d);
    for (int i = 0; i < BUFFERS; i++) {
      CALL(cudaMalloc, (void **)&c->dev[d][i], BUFFER_BYTES);
      SUM(alloc, BUFFER_BYTES);
    }
    CALL(cuDevicePrimaryCtxRetain, &c->context[d], d);
  }
  CALL(cudaSetDevice, c->device);
  open_memory(c);
  CALL(cudaStreamCreate, &c->stream[0]);
  CALL(cudaStreamCreateWithFlags, &c->stream[1], cudaStreamNonBlocking);
  CALL(cudaStreamCreateWithPriority, &c->stream[2], cudaStreamNonBlocking, -1);
  for (int i = 0; i < EVENTS; i++)
    CALL(cudaEventCreate, &c->event[i]);
  CALL(cuModuleLoadData, &c->module, victim_ptx);
  CALL(cuModuleGetFunction, &c->function, c->module, "victim_touch");
}

void caller_close(caller *c)
{
  CALL(cudaDeviceSynchronize);
  c->sums->sync_explicit_calls++;
  for (int i = 0; i < STREAMS; i++)
    CALL(cudaStreamDestroy, c->stream[i]);
  for (int i = 0; i < EVENTS; i++)
    CALL(cudaEventDestroy, c->event[i]);
  CALL(cudaFreeArray, c->array);
  CALL(cudaFreeArray, c->array3);
  CALL(cudaFree, c->managed);
  c->sums->free_calls += 3;
  for (int i = 0; i < BUFFERS; i++) {
    CALL(cudaFreeHost, c->pinned[i]);
    free(c->pageable[i]);
  }
  for (int d = 0; d < c->devices; d++) {
    for (int i = 0; i < BUFFERS; i++) {
      CALL(cudaFree, c->dev[d][i]);
      c->sums->free_calls++;
    }
    CALL(cuDevicePrimaryCtxRelease, d);
  }
}

#endif
