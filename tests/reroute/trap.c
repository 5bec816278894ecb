/* trap.c: programs that rely on what a rerouted allocation could get wrong. `trap NAME` runs one
 * and prints what it saw: only facts that the documents promise, no address, no time.
 *
 * The suite runs each bare, observed, strict and relaxed and compares. A program waits for nothing
 * but CUDA; where it needs work that is still under way, a kernel takes its time. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/reroute/trap.h"

unsigned trap_wrong(const unsigned *p, unsigned n, unsigned value, cudaStream_t s)
{
  unsigned *host = malloc(n * sizeof *host), bad = 0;
  if (cudaMemcpyAsync(host, p, n * sizeof *host, cudaMemcpyDeviceToHost, s) ||
      cudaStreamSynchronize(s))
    bad = ~0u;
  for (unsigned i = 0; !bad && i < n; i++)
    bad += host[i] != value;
  free(host);
  return bad;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* cudaFree is the only wait before pinned memory is read: strict keeps it. */
static void free_waits(void)
{
  unsigned *p, *other, *pinned;
  cudaStream_t s;
  PRINT(cudaMalloc((void **)&p, MIB));
  PRINT(cudaMalloc((void **)&other, 2 * MIB));
  PRINT(cudaMallocHost((void **)&pinned, MIB));
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (unsigned round = 1; round < 4; round++) {
    PRINT(trap_launch_fill(s, p, MIB / 4, round, SLOW));
    PRINT(cudaMemcpyAsync(pinned, p, MIB, cudaMemcpyDeviceToHost, s));
    PRINT(cudaFree(other));
    printf("%u %u\n", pinned[0], pinned[MIB / 4 - 1]);
    PRINT(cudaMalloc((void **)&other, 2 * MIB));
  }
  PRINT(cudaFree(p));
  PRINT(cudaFreeHost(pinned));
}

/* A block is freed while another stream still writes it; who gets it next must not see that. */
static void reuse_while_written(void)
{
  cudaStream_t a, b;
  PRINT(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  PRINT(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  for (unsigned round = 0; round < 8; round++) {
    unsigned *p, *q;
    PRINT(cudaMalloc((void **)&p, 2 * MIB));
    PRINT(trap_launch_fill(a, p, MIB / 2, 100 + round, SLOW / 4));
    PRINT(cudaFree(p));
    PRINT(cudaMalloc((void **)&q, 2 * MIB));
    PRINT(trap_launch_fill(b, q, MIB / 2, 200 + round, 0));
    PRINT(cudaStreamSynchronize(b));
    PRINT(cudaStreamSynchronize(a));
    printf("wrong %u\n", trap_wrong(q, MIB / 2, 200 + round, b));
    PRINT(cudaFree(q));
  }
}

static void stream_ends_busy(void)
{
  unsigned *p, *q;
  cudaStream_t a, b;
  PRINT(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  for (unsigned round = 0; round < 4; round++) {
    PRINT(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    PRINT(cudaMalloc((void **)&p, 3 * MIB));
    PRINT(trap_launch_fill(a, p, MIB / 2, 7, SLOW / 2));
    PRINT(cudaStreamDestroy(a));
    PRINT(cudaFree(p));
    PRINT(cudaMalloc((void **)&q, 3 * MIB));
    PRINT(trap_launch_fill(b, q, MIB / 2, 9, 0));
    PRINT(cudaDeviceSynchronize());
    printf("wrong %u\n", trap_wrong(q, MIB / 2, 9, b));
    PRINT(cudaFree(q));
  }
}

static void per_thread_streams(void)
{
  for (unsigned round = 0; round < 6; round++) {
    unsigned *p, *q;
    PRINT(cudaMalloc((void **)&p, 2 * MIB));
    PRINT(trap_launch_fill(cudaStreamPerThread, p, MIB / 2, 1, SLOW / 4));
    PRINT(cudaFree(p));
    PRINT(cudaMalloc((void **)&q, 2 * MIB));
    PRINT(trap_launch_fill(cudaStreamLegacy, q, MIB / 2, 2, 0));
    PRINT(cudaDeviceSynchronize());
    printf("wrong %u\n", trap_wrong(q, MIB / 2, 2, cudaStreamLegacy));
    PRINT(cudaFree(q));
  }
}

/* ---- pointers -------------------------------------------------------------------------------- */

static void bad_frees(void)
{
  char *p, *q, host[64];
  PRINT(cudaFree(NULL));
  PRINT(cudaMalloc((void **)&p, 5000));
  PRINT(cudaMalloc((void **)&q, 3 * MIB));
  PRINT(cudaFree(p + 512));
  PRINT(cudaFree(q + 2 * MIB));
  PRINT(cudaFree(p));
  PRINT(cudaFree(p));
  PRINT(cudaFree(p + 256));
  PRINT(cudaGetLastError());
  PRINT(cudaGetLastError());
  PRINT(cudaFree(host));
  PRINT(cudaGetLastError());
  PRINT(cudaFree(q));
  PRINT(cudaFree(q));
  PRINT(cuMemFree((CUdeviceptr)q));
  PRINT(cuMemFree((CUdeviceptr)q + 512));
  PRINT(cudaGetLastError());
  PRINT(cudaPeekAtLastError());
}

static void sizes(void)
{
  static const size_t all[] = {0, 1, 511, 512, 513, 4096, MIB - 1, MIB, MIB + 1, 3 * MIB + 7};
  for (int round = 0; round < 2; round++)
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
      char *p = (char *)1;
      CUdeviceptr base = 0;
      size_t bytes = 0;
      PRINT(cudaMalloc((void **)&p, all[i]));
      printf("%zu: null %d aligned %d\n", all[i], !p, (uintptr_t)p % 256 == 0);
      if (!all[i]) continue;
      PRINT(cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)p + all[i] - 1));
      printf("base %d bytes %zu\n", base == (CUdeviceptr)p, bytes);
      PRINT(cudaMemset(p, 1, all[i]));
      PRINT(cudaFree(p));
    }
  PRINT(cudaMalloc(NULL, 100));
  PRINT(cudaGetLastError());
}

static void ask_pointer(const char *p, const char *at)
{
  struct cudaPointerAttributes a;
  CUdeviceptr base = 0;
  size_t bytes = 0, range = 0;
  CUresult r = cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)at);
  printf("range %d", (int)r);
  if (!r) printf(" offset %td bytes %zu", at - (char *)base, bytes);
  r = cuPointerGetAttribute(&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, (CUdeviceptr)at);
  printf(" attribute %d", (int)r);
  if (!r) printf(" %zu", range);
  r = cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (CUdeviceptr)at);
  printf(" start %d", (int)r);
  if (!r) printf(" offset %td", at - (char *)base);
  printf(" runtime %d", (int)cudaPointerGetAttributes(&a, at));
  printf(" type %d device %d\n", (int)a.type, a.type == cudaMemoryTypeDevice ? a.device : -9);
  (void)p;
}

/* As UCX and other caches of registrations look at memory. */
static void address_ranges(void)
{
  char *p, *q;
  for (int round = 0; round < 2; round++) {
    PRINT(cudaMalloc((void **)&p, 3 * MIB + 100));
    PRINT(cudaMalloc((void **)&q, 700));
    ask_pointer(p, p);
    ask_pointer(p, p + MIB);
    ask_pointer(p, p + 3 * MIB + 99);
    ask_pointer(q, q + 699);
    PRINT(cudaFree(p));
    PRINT(cudaFree(q));
    ask_pointer(p, p);
    ask_pointer(p, p + MIB);
    ask_pointer(q, q);
  }
  PRINT(cudaGetLastError());
}

static void pitches(void)
{
  for (int round = 0; round < 3; round++)
    for (size_t width = 1; width < 100000; width = width * 3 + 1) {
      char *p = NULL;
      size_t pitch = 0;
      CUdeviceptr d = 0;
      struct cudaPitchedPtr box;
      int r = cudaMallocPitch((void **)&p, &pitch, width, 7);
      printf("%d pitch %zu", r, pitch);
      printf(" set %d", (int)cudaMemset2D(p, pitch, 3, width, 7));
      r = cuMemAllocPitch(&d, &pitch, width, 5, 8);
      printf(" %d pitch %zu", r, pitch);
      r = cudaMalloc3D(&box, ((struct cudaExtent){width, 3, 2}));
      printf(" %d pitch %zu %zu %zu\n", r, box.pitch, box.xsize, box.ysize);
      PRINT(cudaMemset3D(box, 1, ((struct cudaExtent){width, 3, 2})));
      PRINT(cudaFree(p));
      PRINT(cuMemFree(d));
      PRINT(cudaFree(box.ptr));
    }
}

/* Page-locked memory: each way of getting it keeps to itself, and a copy is done before it is free.
 */
static void pinned(void)
{
  unsigned *p, *d;
  cudaStream_t s;
  PRINT(cudaMalloc((void **)&d, MIB));
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (unsigned round = 1; round < 6; round++)
    for (unsigned way = 0; way < 6; way++) {
      unsigned flags = 99;
      CUdeviceptr seen = 0;
      int r = way == 0   ? (int)cudaMallocHost((void **)&p, MIB)
              : way == 1 ? (int)cuMemAllocHost((void **)&p, MIB)
              : way == 2 ? (int)cuMemHostAlloc((void **)&p, MIB, CU_MEMHOSTALLOC_PORTABLE)
                         : (int)cudaHostAlloc((void **)&p, MIB,
                                              way == 3   ? cudaHostAllocDefault
                                              : way == 4 ? cudaHostAllocMapped
                                                         : cudaHostAllocWriteCombined);
      printf("way %u: %d aligned %d", way, r, (uintptr_t)p % 512 == 0);
      r = (int)cuMemHostGetFlags(&flags, p);
      printf(" flags %d %u", r, flags);
      r = (int)cuMemHostGetDevicePointer(&seen, p, 0);
      printf(" device %d %d\n", r, seen != 0);
      PRINT(trap_launch_fill(s, d, MIB / 4, round * 10 + way, SLOW / 20));
      PRINT(cudaMemcpyAsync(p, d, MIB, cudaMemcpyDeviceToHost, s));
      PRINT(way & 1 ? (int)cuMemFreeHost(p) : (int)cudaFreeHost(p));
      unsigned *q;
      PRINT(cudaMallocHost((void **)&q, MIB));
      for (unsigned i = 0; i < MIB / 4; i++)
        q[i] = 7;
      PRINT(cudaStreamSynchronize(s));
      unsigned bad = 0;
      for (unsigned i = 0; i < MIB / 4; i++)
        bad += q[i] != 7;
      printf("wrong %u\n", bad);
      PRINT(cudaFreeHost(q));
      PRINT(cuMemHostGetFlags(&flags, q));
      PRINT(cuMemHostGetDevicePointer(&seen, q, 0));
      PRINT(cudaHostGetFlags(&flags, q));
      PRINT(cudaFreeHost(q));
      PRINT(cudaFree(q));
      PRINT(cudaGetLastError());
    }
  PRINT(cudaMallocHost((void **)&p, 0));
  PRINT(cudaFreeHost(NULL));
  PRINT(cudaFreeHost(d));
  PRINT(cudaHostAlloc((void **)&p, MIB, 1000));
  PRINT(cudaGetLastError());
}

static unsigned checksum_bytes(const unsigned char *p, size_t n)
{
  unsigned s = 0;
  for (size_t i = 0; i < n; i++)
    s = s * 31 + p[i];
  return s;
}

/* Copies from and to memory that CUDA was not told of: the source may change, and the destination
 * be read, as soon as the call is back; order in the stream; errors copy nothing. */
enum {
  PAGEABLE_BYTES = 5 * MIB + 77,
  PAGEABLE_WIDTH = 3001,
  PAGEABLE_PITCH = 3500,
  PAGEABLE_ROWS = 1200
};

static void pageable_lines(unsigned char *host, unsigned char *back, cudaStream_t s)
{
  unsigned char *d;
  PRINT(cudaMalloc((void **)&d, PAGEABLE_BYTES));
  for (unsigned round = 0; round < 4; round++) {
    cudaStream_t t = round & 1 ? s : NULL;
    for (size_t i = 0; i < PAGEABLE_BYTES; i++)
      host[i] = (unsigned char)(i * 7 + round);
    if (round < 2)
      PRINT(cudaMemcpyAsync(d, host, PAGEABLE_BYTES, cudaMemcpyHostToDevice, t));
    else
      PRINT(cudaMemcpy(d, host, PAGEABLE_BYTES,
                       round == 2 ? cudaMemcpyHostToDevice : cudaMemcpyDefault));
    memset(host, 0, PAGEABLE_BYTES);
    PRINT(cudaMemsetAsync(d + 100, 9, 100, t));
    PRINT(cudaMemcpyAsync(back, d, PAGEABLE_BYTES, cudaMemcpyDeviceToHost, t));
    printf("%u\n", checksum_bytes(back, PAGEABLE_BYTES));
    PRINT(cudaMemcpy(back, d, PAGEABLE_BYTES, cudaMemcpyDeviceToHost));
    printf("%u\n", checksum_bytes(back, PAGEABLE_BYTES));
  }
  PRINT(cudaFree(d));
}

/* Copies in two dimensions, by the runtime and by the driver; `d` has rows of `pitch` bytes. */
static void pageable_rows(unsigned char *host, unsigned char *back, unsigned char *d, size_t pitch,
                          cudaStream_t s)
{
  for (size_t i = 0; i < PAGEABLE_PITCH * PAGEABLE_ROWS; i++)
    host[i] = (unsigned char)(i * 3);
  PRINT(cudaMemcpy2D(d, pitch, host, PAGEABLE_PITCH, PAGEABLE_WIDTH, PAGEABLE_ROWS,
                     cudaMemcpyHostToDevice));
  memset(back, 5, 2 * PAGEABLE_BYTES);
  PRINT(cudaMemcpy2DAsync(back, PAGEABLE_PITCH + 1, d, pitch, PAGEABLE_WIDTH, PAGEABLE_ROWS,
                          cudaMemcpyDeviceToHost, s));
  printf("%u\n", checksum_bytes(back, 2 * PAGEABLE_BYTES));
  CUDA_MEMCPY2D p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                     .srcDevice = (CUdeviceptr)d,
                     .srcPitch = pitch,
                     .srcXInBytes = 11,
                     .srcY = 3,
                     .dstMemoryType = CU_MEMORYTYPE_HOST,
                     .dstHost = back,
                     .dstXInBytes = 5,
                     .dstPitch = PAGEABLE_PITCH,
                     .dstY = 2,
                     .WidthInBytes = 2000,
                     .Height = 1000};
  memset(back, 6, 2 * PAGEABLE_BYTES);
  PRINT(cuMemcpy2D(&p));
  printf("%u\n", checksum_bytes(back, 2 * PAGEABLE_BYTES));
  p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_UNIFIED; /* what the addresses point to */
  p.dstDevice = (CUdeviceptr)(uintptr_t)back;
  memset(back, 7, 2 * PAGEABLE_BYTES);
  PRINT(cuMemcpy2D(&p));
  printf("%u\n", checksum_bytes(back, 2 * PAGEABLE_BYTES));
}

/* Copies that the driver refuses, and one that is none of a device's. Frees `d`. */
static void pageable_errors(unsigned char *host, unsigned char *back, unsigned char *d)
{
  PRINT(cudaMemcpy(back, d, 2 * MIB, (enum cudaMemcpyKind)7));
  PRINT(cudaMemcpy2D(back, 1, d, 2 * MIB, 2 * MIB, 1, cudaMemcpyDeviceToHost));
  PRINT(cudaGetLastError());
  PRINT(cudaMemcpy(d, host, 2 * PAGEABLE_BYTES, cudaMemcpyHostToDevice)); /* past the end */
  PRINT(cudaMemcpy(d, host, PAGEABLE_BYTES, cudaMemcpyDeviceToDevice));
  PRINT(cudaGetLastError());
  PRINT(cudaMemcpy(back, host, PAGEABLE_BYTES, cudaMemcpyDefault));
  printf("%d\n", memcmp(back, host, PAGEABLE_BYTES));
  PRINT(cudaFree(d));
  PRINT(cudaMemcpy(d, host, 2 * MIB, cudaMemcpyHostToDevice)); /* into what is gone */
  PRINT(cudaGetLastError());
}

static void pageable_copies(void)
{
  unsigned char *d, *host = malloc(2 * PAGEABLE_BYTES), *back = malloc(2 * PAGEABLE_BYTES);
  cudaStream_t s;
  size_t pitch;
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  pageable_lines(host, back, s);
  PRINT(cudaMallocPitch((void **)&d, &pitch, PAGEABLE_WIDTH, PAGEABLE_ROWS));
  pageable_rows(host, back, d, pitch, s);
  pageable_errors(host, back, d);
  free(host);
  free(back);
}

/* ---- how much there is ----------------------------------------------------------------------- */

static void memory_info(void)
{
  size_t before, after, total, total_after;
  void *p[8];
  PRINT(cudaFree(NULL));
  PRINT(cudaMemGetInfo(&before, &total));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 8; i++)
      PRINT(cudaMalloc(&p[i], (size_t)(i + 1) * 2 * MIB));
    PRINT(cudaMemGetInfo(&after, &total_after));
    printf("taken %zu\n", before - after);
    for (int i = 0; i < 8; i++)
      PRINT(cudaFree(p[i]));
    PRINT(cudaMemGetInfo(&after, &total_after));
    printf("same %d %d\n", before == after, total == total_after);
  }
  PRINT(cuMemGetInfo(NULL, &total));
  PRINT(cuMemGetInfo(&before, NULL));
}

enum { MIXED = 300 };

static size_t free_memory(void)
{
  size_t now = 0, total;
  (void)cudaMemGetInfo(&now, &total);
  return now;
}

/* Of all sizes from 512 bytes to 4 MiB, small ones the most. */
static size_t mixed_size(unsigned *seed)
{
  size_t most = (size_t)1024 << (unsigned)rand_r(seed) % 13;
  return most / 2 + (size_t)rand_r(seed) % (most / 2) + 1;
}

/* All but those that `keep` a number; then what lies between `least` and `most` is taken. */
static void mixed_round(unsigned seed, int keep, size_t before)
{
  void *p[MIXED];
  size_t bytes[MIXED], least = 0, most = 0;
  int failed = 0;
  for (int i = 0; i < MIXED; i++)
    failed += cudaMalloc(&p[i], bytes[i] = mixed_size(&seed)) != cudaSuccess;
  for (int k = 0; k < MIXED; k++) {
    int i = k * 7 % MIXED;
    bool large = bytes[i] > MIB;
    size_t pages = (bytes[i] + 2 * MIB - 1) / (2 * MIB) * 2 * MIB;
    if (keep && i % keep == 0)
      least += large ? pages : 0, most += pages;
    else
      failed += cudaFree(p[i]) != cudaSuccess;
  }
  size_t taken = before - free_memory();
  printf("failed %d, within a page a live block: %d\n", failed, taken >= least && taken <= most);
  for (int i = 0; keep && i < MIXED; i += keep)
    failed += cudaFree(p[i]) != cudaSuccess;
  printf("failed %d, as before: %d\n", failed, free_memory() == before);
}

/* Blocks that share the driver's pages, and what others do to the device meanwhile. */
static void memory_info_small(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *p;
  int (*capacity)(int, size_t) = NULL;
  if (driver) *(void **)&capacity = dlsym(driver, "weir_sim_set_memory");
  PRINT(cudaFree(NULL));
  size_t before = free_memory(), total;
  for (unsigned round = 0; round < 4; round++)
    mixed_round(round, round % 2 ? 10 : 0, before);
  for (size_t others = 0; capacity && others < 3; others++) { /* take memory, or give it back */
    size_t now;
    (void)capacity(0, (size_t)1024 * MIB - (others + 1) % 3 * 64 * MIB);
    PRINT(cudaMemGetInfo(&now, &total));
    printf("others' %zu\n", total - now);
  }
  PRINT(cudaMalloc(&p, MIB));
  printf("taken %zu\n", before - free_memory());
  PRINT(cudaFree(p));
  printf("as before: %d\n", free_memory() == before);
}

/* What another context of the device has cached is free as well. */
static void memory_info_contexts(void)
{
  CUcontext primary, other, popped;
  CUdeviceptr p[8];
  PRINT(cudaFree(NULL));
  PRINT(cuCtxGetCurrent(&primary));
  PRINT(cuCtxCreate(&other, NULL, 0, 0));
  size_t before = free_memory();
  for (int i = 0; i < 8; i++)
    PRINT(cuMemAlloc(&p[i], (size_t)(i + 1) * MIB / 2));
  for (int i = 0; i < 8; i++)
    PRINT(cuMemFree(p[i]));
  printf("as before: %d\n", free_memory() == before);
  PRINT(cuCtxPopCurrent(&popped));
  printf("as before, from another context: %d\n", free_memory() == before);
  PRINT(cuCtxDestroy(other));
}

/* All of a small device, again and again, in other pieces each time. */
static void out_of_memory(void)
{
  static const size_t pieces[] = {2 * MIB, 10 * MIB, 62 * MIB, 6 * MIB, 126 * MIB};
  enum { MOST = 64 };
  for (unsigned round = 0; round < 5; round++) {
    void *p[MOST];
    int n = 0;
    while (n < MOST && cudaMalloc(&p[n], pieces[round]) == cudaSuccess)
      n++;
    printf("%zu MiB: %d pieces, then %d\n", pieces[round] / MIB, n, (int)cudaGetLastError());
    for (int i = 0; i < n; i++)
      PRINT(cudaFree(p[i]));
  }
}

/* What was freed ahead of a capture, with work under way, is there again beside it. */
static void out_of_memory_in_capture(void)
{
  unsigned *p;
  void *most;
  cudaGraph_t graph;
  cudaStream_t busy, captured;
  PRINT(cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking));
  PRINT(cudaStreamCreateWithFlags(&captured, cudaStreamNonBlocking));
  for (int round = 0; round < 3; round++) {
    PRINT(cudaMalloc((void **)&p, 10 * MIB));
    PRINT(trap_launch_fill(busy, p, MIB / 4, 1, SLOW));
    PRINT(cudaFree(p));
    PRINT(cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed));
    PRINT(cudaMalloc(&most, 120 * MIB));
    PRINT(cudaStreamEndCapture(captured, &graph));
    PRINT(cudaGraphDestroy(graph));
    PRINT(cudaFree(most));
  }
}

/* What others of CUDA's allocators need is not in our way. */
static void other_allocators(void)
{
  void *p, *q;
  cudaArray_t array;
  struct cudaChannelFormatDesc d = {32, 0, 0, 0, cudaChannelFormatKindUnsigned};
  PRINT(cudaMalloc(&p, 100 * MIB));
  PRINT(cudaFree(p));
  PRINT(cudaMallocAsync(&q, 100 * MIB, NULL));
  PRINT(cudaFreeAsync(q, NULL));
  PRINT(cudaDeviceSynchronize());
  PRINT(cudaMalloc(&p, 10 * MIB));
  PRINT(cudaFree(p));
  PRINT(cudaMallocManaged(&q, 20 * MIB, cudaMemAttachGlobal));
  PRINT(cudaFree(q));
  PRINT(cudaMalloc(&p, 90 * MIB));
  PRINT(cudaFree(p));
  PRINT(cudaMallocArray(&array, &d, 4096, 4096, 0));
  PRINT(cudaFreeArray(array));
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void device_reset(void)
{
  void *p, *q;
  for (int round = 0; round < 3; round++) {
    PRINT(cudaMalloc(&p, 2 * MIB));
    PRINT(cudaMalloc(&q, 4 * MIB));
    PRINT(cudaFree(p));
    PRINT(cudaDeviceReset());
    PRINT(cudaFree(q));
    PRINT(cudaGetLastError());
    PRINT(cudaMalloc(&p, 2 * MIB));
    PRINT(cudaMemset(p, 0, 2 * MIB));
    PRINT(cudaFree(p));
  }
}

static void two_contexts(void)
{
  CUcontext a, b;
  CUdeviceptr p, q, r;
  PRINT(cuInit(0));
  for (int round = 0; round < 3; round++) {
    PRINT(cuCtxCreate(&a, NULL, 0, 0));
    PRINT(cuMemAlloc(&p, 2 * MIB));
    PRINT(cuCtxCreate(&b, NULL, 0, 0));
    PRINT(cuMemAlloc(&q, 2 * MIB));
    PRINT(cuMemFree(p));
    PRINT(cuMemAlloc(&r, 2 * MIB));
    PRINT(cuMemsetD8(r, 1, 2 * MIB));
    PRINT(cuMemFree(q));
    PRINT(cuCtxDestroy(b));
    PRINT(cuCtxSetCurrent(a));
    PRINT(cuMemFree(r));
    PRINT(cuMemAlloc(&p, 2 * MIB));
    PRINT(cuMemsetD8(p, 1, 2 * MIB));
    PRINT(cuCtxDestroy(a));
    PRINT(cuMemFree(p));
  }
}

static void two_devices(void)
{
  void *p[2];
  for (int round = 0; round < 4; round++) {
    for (int i = 0; i < 2; i++) {
      struct cudaPointerAttributes a;
      PRINT(cudaSetDevice(i));
      PRINT(cudaMalloc(&p[i], 2 * MIB));
      PRINT(cudaPointerGetAttributes(&a, p[i]));
      printf("on %d\n", a.device);
      PRINT(cudaMemset(p[i], i, 2 * MIB));
    }
    PRINT(cudaFree(p[0])); /* while the other is current */
    PRINT(cudaFree(p[1]));
  }
}

static void sticky_error(void)
{
  unsigned *p, *q;
  PRINT(cudaMalloc((void **)&p, 2 * MIB));
  PRINT(cudaMalloc((void **)&q, 2 * MIB));
  PRINT(cudaFree(q));
  PRINT(trap_launch_fill(NULL, (unsigned *)64, 1, 1, 0));
  PRINT(cudaDeviceSynchronize());
  PRINT(cudaFree(p));
  PRINT(cudaMalloc((void **)&q, 2 * MIB));
  PRINT(cudaGetLastError());
  PRINT(cudaDeviceReset());
  PRINT(cudaMalloc((void **)&q, 2 * MIB));
  PRINT(cudaFree(q));
}

static void error_found_by_free(void)
{
  unsigned *p;
  PRINT(cudaMalloc((void **)&p, 2 * MIB));
  PRINT(trap_launch_fill(NULL, (unsigned *)64, 1, 1, SLOW));
  PRINT(cudaFree(p));
  PRINT(cudaGetLastError());
}

static void fork_child(void)
{
  void *p;
  for (int i = 0; i < 3; i++) {
    PRINT(cudaMalloc(&p, 2 * MIB));
    PRINT(cudaFree(p));
  }
  PRINT(cudaMalloc(&p, 2 * MIB));
  (void)fflush(stdout);
  pid_t child = fork();
  if (!child) _exit(cudaFree(p) == cudaSuccess ? 1 : 0);
  int status;
  (void)waitpid(child, &status, 0);
  printf("child %d\n", WIFEXITED(status));
  PRINT(cudaMemset(p, 0, 2 * MIB));
  PRINT(cudaFree(p));
}

/* ---- captures -------------------------------------------------------------------------------- */

static void capture(void)
{
  void *p, *q, *r = NULL;
  cudaStream_t s;
  cudaGraph_t graph = NULL;
  PRINT(cudaMalloc(&p, 2 * MIB));
  PRINT(cudaMalloc(&q, 2 * MIB));
  PRINT(cudaFree(q));
  PRINT(cudaStreamCreate(&s));
  PRINT(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  PRINT(cudaMemsetAsync(p, 1, 2 * MIB, s));
  PRINT(cudaMalloc(&r, 2 * MIB));
  PRINT(cudaStreamEndCapture(s, &graph));
  printf("graph %d\n", graph != NULL);
  PRINT(cudaFree(r));
  PRINT(cudaFree(p));
  PRINT(cudaMalloc(&p, 2 * MIB));
  PRINT(cudaFree(p));
}

static void forbidden_in_capture(void)
{
  void *p, *q, *r = NULL;
  cudaStream_t s;
  cudaGraph_t graph = NULL;
  PRINT(cudaMalloc(&p, 2 * MIB));
  PRINT(cudaMalloc(&q, 2 * MIB));
  PRINT(cudaFree(q));
  PRINT(cudaStreamCreate(&s));
  PRINT(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  PRINT(cudaMemsetAsync(p, 1, 2 * MIB, s));
  PRINT(cudaMalloc(&r, 2 * MIB));
  PRINT(cudaStreamEndCapture(s, &graph));
  PRINT(cudaGetLastError());
  PRINT(cudaMalloc(&r, 2 * MIB));
  PRINT(cudaFree(r));
  PRINT(cudaFree(p));
}

/* A graph may be launched after what it touches was freed: the memory must not be anybody's then.
 */
static void graph_after_free(void)
{
  unsigned *p, *q;
  CUstream s;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  PRINT(cudaFree(NULL));
  PRINT(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  for (int round = 0; round < 3; round++) {
    PRINT(cudaMalloc((void **)&p, 4 * MIB));
    PRINT(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
    PRINT(cuMemsetD32Async((CUdeviceptr)p, 5, MIB, s));
    PRINT(cuStreamEndCapture(s, &graph));
    PRINT(cuGraphInstantiate(&exec, graph, 0));
    PRINT(cuGraphLaunch(exec, s));
    printf("wrong %u\n", trap_wrong(p, MIB, 5, s));
    PRINT(cudaFree(p));
    PRINT(cudaMalloc((void **)&q, 2 * MIB)); /* no neighbour of the same size */
    PRINT(cudaMemset(q, 0, 2 * MIB));
    PRINT(cuGraphExecDestroy(exec));
    PRINT(cuGraphDestroy(graph));
    PRINT(cudaDeviceSynchronize());
    printf("wrong %u\n", trap_wrong(q, MIB / 2, 0, s));
    PRINT(cudaFree(q));
  }
  PRINT(cudaMalloc((void **)&p, 4 * MIB));
  PRINT(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  PRINT(cuMemsetD32Async((CUdeviceptr)p, 5, MIB, s));
  PRINT(cuStreamEndCapture(s, &graph));
  PRINT(cuGraphInstantiate(&exec, graph, 0));
  PRINT(cudaFree(p));
  PRINT(cuGraphLaunch(exec, s)); /* into memory that is gone */
  PRINT(cuStreamSynchronize(s));
}

/* The same by explicit nodes, freed between making the node and instantiating the graph. */
static void graph_of_nodes(void)
{
  unsigned *p;
  CUstream s;
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUgraphNode node;
  CUcontext context;
  PRINT(cudaFree(NULL));
  PRINT(cuCtxGetCurrent(&context));
  PRINT(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  PRINT(cudaMalloc((void **)&p, 4 * MIB));
  CUDA_MEMSET_NODE_PARAMS set = {
      .dst = (CUdeviceptr)p, .value = 5, .elementSize = 4, .width = MIB, .height = 1};
  PRINT(cuGraphCreate(&graph, 0));
  PRINT(cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, context));
  PRINT(cudaFree(p));
  PRINT(cuGraphInstantiate(&exec, graph, 0));
  PRINT(cuGraphLaunch(exec, s));
  PRINT(cuStreamSynchronize(s));
}

/* ---- threads --------------------------------------------------------------------------------- */

typedef struct worker {
  unsigned number, wrong, failed;
} worker;

static void *run_trap_worker(void *argument)
{
  worker *w = argument;
  cudaStream_t s;
  w->failed += cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess;
  for (unsigned i = 0; i < 60; i++) {
    unsigned *p, *q, n = 256u << (i * 7 + w->number) % 5;
    w->failed += cudaMalloc((void **)&p, n * sizeof *p) != cudaSuccess;
    w->failed += cudaMalloc((void **)&q, n * sizeof *q) != cudaSuccess;
    unsigned value = w->number << 16 | i;
    w->failed += trap_launch_fill(s, p, n, value, 1000) != 0;
    w->failed += cudaMemcpyAsync(q, p, n * sizeof *p, cudaMemcpyDeviceToDevice, s) != cudaSuccess;
    w->wrong += trap_wrong(q, n, value, s);
    w->failed += trap_launch_fill(s, p, n, ~value, 1000) != 0;
    w->failed += cudaFree(p) != cudaSuccess;
    w->failed += cudaFree(q) != cudaSuccess;
  }
  w->failed += cudaStreamDestroy(s) != cudaSuccess;
  return NULL;
}

static void threads(void)
{
  pthread_t t[16];
  worker w[16];
  for (unsigned i = 0; i < 16; i++) {
    w[i] = (worker){.number = i};
    (void)pthread_create(&t[i], NULL, run_trap_worker, &w[i]);
  }
  for (unsigned i = 0; i < 16; i++) {
    (void)pthread_join(t[i], NULL);
    printf("thread %u: wrong %u failed %u\n", i, w[i].wrong, w[i].failed);
  }
}

static void *free_it(void *p)
{
  printf("freed elsewhere: %d\n", (int)cudaFree(p));
  return NULL;
}

static void free_elsewhere(void)
{
  for (int i = 0; i < 3; i++) {
    void *p;
    pthread_t t;
    PRINT(cudaMalloc(&p, 2 * MIB));
    (void)pthread_create(&t, NULL, free_it, p);
    (void)pthread_join(t, NULL);
    PRINT(cudaMalloc(&p, 2 * MIB));
    PRINT(cudaFree(p));
  }
}

static void layers_mixed(void)
{
  void *p;
  CUdeviceptr d;
  PRINT(cudaFree(NULL));
  for (int i = 0; i < 3; i++) {
    PRINT(cudaMalloc(&p, 2 * MIB));
    PRINT(cuMemFree((CUdeviceptr)p));
    PRINT(cuMemAlloc(&d, 2 * MIB));
    PRINT(cudaFree((void *)d));
    PRINT(cudaMalloc(&p, 2 * MIB));
    PRINT(cudaFreeAsync(p, NULL));
    PRINT(cudaDeviceSynchronize());
    PRINT(cudaGetLastError());
  }
}

static const trap traps[] = {
#define TRAP(name)                                                                                 \
  {                                                                                                \
#name, name                                                                                    \
  }
    TRAP(free_waits),
    {"reuse", reuse_while_written},
    TRAP(stream_ends_busy),
    TRAP(per_thread_streams),
    TRAP(bad_frees),
    TRAP(sizes),
    TRAP(address_ranges),
    TRAP(pitches),
    TRAP(memory_info),
    TRAP(memory_info_small),
    TRAP(memory_info_contexts),
    TRAP(out_of_memory),
    TRAP(out_of_memory_in_capture),
    TRAP(other_allocators),
    {"reset", device_reset},
    TRAP(two_contexts),
    TRAP(two_devices),
    TRAP(sticky_error),
    TRAP(error_found_by_free),
    TRAP(fork_child),
    TRAP(capture),
    TRAP(forbidden_in_capture),
    TRAP(threads),
    TRAP(free_elsewhere),
    TRAP(layers_mixed),
    TRAP(pinned),
    TRAP(pageable_copies),
    TRAP(graph_after_free),
    TRAP(graph_of_nodes),
};

static bool run_trap_named(const trap *t, const char *name)
{
  if (!name) printf("%s\n", t->name);
  if (!name || strcmp(name, t->name) != 0) return false;
  t->run();
  return true;
}

int main(int argc, char **argv)
{
  const char *name = argc > 1 ? argv[1] : NULL;
  if (name && !strcmp(name, "--other")) return trap_other();
  for (unsigned i = 0; i < sizeof traps / sizeof *traps; i++)
    if (run_trap_named(&traps[i], name)) return 0;
  for (const trap *t = trap_shared; t->name; t++)
    if (run_trap_named(t, name)) return 0;
  for (const trap *t = trap_bounds; t->name; t++)
    if (run_trap_named(t, name)) return 0;
  for (const trap *t = trap_fixes; t->name; t++)
    if (run_trap_named(t, name)) return 0;
  return name != NULL;
}
