/* subject.c: a program for what a user may ask of the caches: `subject WHAT` allocates, copies and
 * frees as WHAT says, and prints what it saw: return codes and contents, no address, no time. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* What fails ends the program. */
#define MUST(call)                                                                                 \
  do {                                                                                             \
    int must_ = (int)(call);                                                                       \
    if (must_) {                                                                                   \
      (void)fprintf(stderr, "%s: %d\n", #call, must_);                                             \
      exit(9);                                                                                     \
    }                                                                                              \
  } while (0)

static void *allocate_or_exit(size_t bytes)
{
  void *p = NULL;
  MUST(cudaMalloc(&p, bytes));
  return p;
}

/* Allocates and frees a few times. */
static void allocate_a_few_times(void)
{
  for (int i = 0; i < 4; i++)
    MUST(cudaFree(allocate_or_exit(2 * MIB)));
  printf("done\n");
}

/* The same, with a debugger that announces itself to the driver now. */
static void debugged(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  uint32_t *flag = driver ? dlsym(driver, "cudbgIpcFlag") : NULL;
  if (!flag) exit(8);
  *flag = 1;
  allocate_a_few_times();
}

int trap_launch_fill(cudaStream_t s, unsigned *p, unsigned n, unsigned value, unsigned turns);

/* Of what a copy brought back: "zero", or how many bytes are not. */
static void say_bytes(const char *what, const unsigned char *p, size_t bytes)
{
  size_t other = 0;
  for (size_t i = 0; i < bytes; i++)
    other += p[i] != 0;
  printf("%s: %zu of %zu not zero\n", what, other, bytes);
}

/* Blocks that come back from a cache, dirty: what is in them when they are handed out again, read
 * in three streams, of which two wait for nobody. */
static void recycled(void)
{
  static unsigned char host[3 * MIB];
  cudaStream_t streams[3] = {NULL, cudaStreamPerThread, NULL};
  MUST(cudaStreamCreateWithFlags(&streams[2], cudaStreamNonBlocking));
  for (int i = 0; i < 3; i++) {
    unsigned *p = allocate_or_exit(sizeof host), *small = allocate_or_exit(1000), *pinned;
    MUST(cudaMallocHost((void **)&pinned, MIB));
    say_bytes("pinned", (unsigned char *)pinned, MIB);
    MUST(cudaMemcpyAsync(host, p, sizeof host, cudaMemcpyDeviceToHost, streams[i]));
    say_bytes("large", host, sizeof host);
    MUST(cudaMemcpyAsync(host, small, 1000, cudaMemcpyDeviceToHost, streams[i]));
    say_bytes("small", host, 1000);
    MUST(trap_launch_fill(streams[i], p, sizeof host / 4, 0x01010101, 0));
    MUST(trap_launch_fill(streams[i], small, 250, 0x01010101, 0));
    memset(pinned, 1, MIB);
    MUST(cudaFree(p));
    MUST(cudaFree(small));
    MUST(cudaFreeHost(pinned));
    MUST(cudaDeviceSynchronize());
  }
}

/* Everything is written before it is read: by a memset, a copy, a kernel. */
static void initialised(void)
{
  static unsigned char host[64 << 10];
  for (int i = 0; i < 3; i++) {
    unsigned *p = allocate_or_exit(MIB);
    MUST(cudaMemset(p, i, MIB / 2));
    MUST(trap_launch_fill(NULL, p + MIB / 8, MIB / 8, 0x01010101, 0));
    MUST(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
    say_bytes("set", host, sizeof host);
    MUST(cudaMemcpy(host, (char *)p + MIB / 2, sizeof host, cudaMemcpyDeviceToHost));
    say_bytes("filled", host, sizeof host);
    memset(host, 3, sizeof host);
    MUST(cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
    say_bytes("copied", host, sizeof host);
    MUST(cudaFree(p));
  }
}

/* Reads back 40 KiB of which the last 8 KiB were never written, in the way that is asked for. */
enum { ALL = 40 << 10, WRITTEN = 32 << 10 };

static char *partly(void)
{
  char *p = allocate_or_exit(MIB);
  MUST(cudaMemset(p, 0, WRITTEN));
  MUST(cudaDeviceSynchronize());
  return p;
}

static void unwritten_sync(void)
{
  static char host[ALL + 4];
  char *p = partly();
  MUST(cudaMemcpy(host, p, ALL, cudaMemcpyDeviceToHost));
  MUST(cudaMemcpy(host, p + 4, ALL - 4, cudaMemcpyDefault)); /* not at a whole word */
  MUST(cuMemcpyDtoH(host, (CUdeviceptr)p, ALL));
  MUST(cudaFree(p));
}

static void unwritten_async(void)
{
  static char pageable[ALL];
  char *p = partly(), *pinned;
  cudaStream_t s;
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  MUST(cudaMallocHost((void **)&pinned, 2 * ALL));
  MUST(cudaMemcpyAsync(pageable, p, ALL, cudaMemcpyDeviceToHost, s));
  MUST(cudaMemcpyAsync(pinned, p, ALL, cudaMemcpyDeviceToHost, s));
  MUST(cudaMemcpyAsync(pinned + ALL, p, ALL, cudaMemcpyDeviceToHost, cudaStreamPerThread));
  MUST(cudaStreamSynchronize(s));
  MUST(cudaStreamSynchronize(cudaStreamPerThread));
  MUST(cudaFree(p));
}

/* Nothing but the process's end comes after the copy. */
static void unwritten_last(void)
{
  char *p = partly(), *pinned;
  MUST(cudaMallocHost((void **)&pinned, ALL));
  MUST(cudaMemcpyAsync(pinned, p, ALL, cudaMemcpyDeviceToHost, NULL));
  MUST(cudaStreamSynchronize(NULL));
}

/* Rows of 1000 bytes, the last five of 40 never written. */
static void unwritten_rows(void)
{
  static char host[40][1024];
  char *p;
  size_t pitch;
  for (int i = 0; i < 2; i++) {
    MUST(cudaMallocPitch((void **)&p, &pitch, 1000, 40));
    MUST(cudaMemset2D(p, pitch, 0, 1000, 35));
    MUST(cudaMemcpy2D(host, 1024, p, pitch, 1000, 40, cudaMemcpyDeviceToHost));
    MUST(cudaFree(p));
  }
}

static void unwritten_staged(void)
{
  size_t bytes = 5 * MIB;
  char *p = allocate_or_exit(2 * bytes), *host = malloc(bytes);
  MUST(cudaMemset(p, 0, bytes - ALL));
  MUST(cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost));
  MUST(cudaFree(p));
  free(host);
}

static void unwritten_scalars(void)
{
  double host[3];
  double *p = allocate_or_exit(sizeof host);
  MUST(cudaMemset(p, 0, sizeof *p));
  for (int i = 0; i < 3; i++)
    MUST(cudaMemcpy(&host[i], &p[i], sizeof *host, cudaMemcpyDeviceToHost));
  MUST(cudaFree(p));
}

/* A capture is live: memory is the driver's, and nothing is filled. */
static void captured(void)
{
  cudaStream_t s;
  cudaGraph_t graph;
  void *p = allocate_or_exit(2 * MIB), *q;
  MUST(cudaFree(p));
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
  q = allocate_or_exit(2 * MIB);
  MUST(cudaMemsetAsync(q, 1, MIB, s));
  MUST(cudaStreamEndCapture(s, &graph));
  MUST(cudaGraphDestroy(graph));
  MUST(cudaFree(q));
  printf("done\n");
}

/* A capture that ends in the error of a stream that did not join; then all is as before. */
static void unjoined(void)
{
  cudaStream_t s, other;
  cudaEvent_t event;
  cudaGraph_t graph;
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  MUST(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  unsigned *p = allocate_or_exit(MIB);
  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  MUST(cudaEventRecord(event, s));
  MUST(cudaStreamWaitEvent(other, event, 0));
  MUST(trap_launch_fill(other, p, MIB / 4, 1, 0));
  printf("unjoined: %d\n", (int)cudaStreamEndCapture(s, &graph));
  (void)cudaGetLastError();
  allocate_a_few_times();
}

/* Sizes on both sides of a bound, from two functions. */
static __attribute__((noinline)) void small_then_large(void)
{
  for (int i = 0; i < 3; i++) {
    void *small = allocate_or_exit(MIB), *large = allocate_or_exit(8 * MIB);
    MUST(cudaFree(large));
    MUST(cudaFree(small));
  }
}

/* Its own calls, so that it is the caller. */
__attribute__((noinline)) void load_batch(void);

void load_batch(void)
{
  static char host[4 * MIB];
  for (int i = 0; i < 3; i++) {
    void *p = NULL;
    MUST(cudaMalloc(&p, sizeof host));
    MUST(cudaMemcpy(p, host, sizeof host, cudaMemcpyHostToDevice));
    MUST(cudaFree(p));
  }
}

static void allocate_at_sites(void)
{
  small_then_large();
  load_batch();
  void *plugin = dlopen(getenv("SUBJECT_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  int (*churn_there)(void) = plugin ? (int (*)(void))(uintptr_t)dlsym(plugin, "churn_there") : NULL;
  if (!churn_there || churn_there()) exit(7);
  MUST(dlclose(plugin));
  printf("done\n");
}

/* ---- pressure: as much memory as there is ---------------------------------------------------- */

static uint64_t state;

static unsigned draw_below(unsigned n)
{
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(state >> 33) % n;
}

static size_t draw_bytes(bool small)
{
  static const size_t sizes[] = {2 * MIB, 3 * MIB, 7 * MIB, 20 * MIB, 33 * MIB, 64 * MIB};
  if (small && draw_below(4)) return 512 + draw_below(MIB - 512);
  return draw_below(3) ? sizes[draw_below(6)] : MIB + 1 + draw_below(40 * MIB);
}

/* Allocates and frees blocks of random sizes near the device's capacity, with work under way, and
 * prints which allocations failed. What the device itself saw in use at most goes to stderr. */
static void press(bool small, unsigned steps)
{
  enum { BLOCKS = 64 };
  void *block[BLOCKS] = {0};
  cudaStream_t s[2];
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  size_t (*peak)(int) = driver ? (size_t(*)(int))(uintptr_t)dlsym(driver, "weir_sim_peak") : NULL;
  for (int i = 0; i < 2; i++)
    MUST(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
  const char *seed = getenv("SEED");
  state = seed ? (uint64_t)atoi(seed) : 1;
  for (unsigned i = 0; i < steps; i++) {
    void **b = &block[draw_below(BLOCKS)];
    size_t bytes = draw_bytes(small);
    if (*b) {
      MUST(cudaFree(*b));
      *b = NULL;
    } else if (cudaMalloc(b, bytes)) {
      printf("step %u: none of %zu: %d\n", i, bytes, (int)cudaGetLastError());
      *b = NULL;
    } else if (!draw_below(4)) {
      MUST(trap_launch_fill(s[draw_below(2)], *b, 128, i, 200000));
    }
  }
  (void)fprintf(stderr, "%zu\n", peak ? peak(0) : 0);
  printf("done\n");
}

#define PRINT(call) printf("%s: %d\n", #call, (int)(call))

/* 100 MiB that the program has freed, in the one context that there is or the other; with `work`
 * under way on it where a free does not wait. */
static void leave_cached(bool work)
{
  cudaStream_t s;
  void *p = allocate_or_exit(100 * MIB);
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  if (work) MUST(trap_launch_fill(s, p, 1024, 1, 20000000));
  MUST(cudaFree(p));
}

/* What is cached is in nobody's way, whichever function asks for memory, with 128 MiB in all. */
static void relief(void)
{
  for (int work = 0; work < 2; work++) {
    void *p;
    size_t pitch;
    cudaGraph_t graph;
    cudaStream_t s;
    cudaArray_t array;
    CUcontext first, other;
    CUmemGenericAllocationHandle physical = 0;
    CUmemAllocationProp props = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    struct cudaChannelFormatDesc d = {32, 0, 0, 0, cudaChannelFormatKindUnsigned};
    leave_cached(work);
    PRINT(cudaMallocPitch(&p, &pitch, (size_t)(900 + work) << 10, 100));
    PRINT(cudaFree(p));
    leave_cached(work);
    PRINT(cudaMallocArray(&array, &d, 4096, 5000, 0));
    PRINT(cudaFreeArray(array));
    leave_cached(work);
    PRINT(cuMemCreate(&physical, 90 * MIB, &props, 0));
    PRINT(cuMemRelease(physical));
    leave_cached(work);
    PRINT(cudaMallocAsync(&p, 90 * MIB, NULL));
    PRINT(cudaFreeAsync(p, NULL));
    PRINT(cudaDeviceSynchronize());
    leave_cached(false);
    MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    PRINT(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed));
    PRINT(cudaMalloc(&p, 90 * MIB));
    PRINT(cudaStreamEndCapture(s, &graph));
    PRINT(cudaFree(p));
    leave_cached(work);
    MUST(cuCtxGetCurrent(&first));
    MUST(cuCtxCreate(&other, NULL, 0, 0));
    PRINT(cudaMalloc(&p, 90 * MIB));
    PRINT(cudaFree(p));
    leave_cached(work);
    MUST(cuCtxSetCurrent(first));
    PRINT(cudaMalloc(&p, 80 * MIB));
    PRINT(cudaFree(p));
    MUST(cuCtxDestroy(other));
    PRINT(cudaGetLastError());
  }
}

/* ---- the driver's own pools ------------------------------------------------------------------ */

/* Pools by handle, since that is how a trace knows them: what the driver says of one now. */
static void say_pool(const char *what, cudaMemPool_t pool)
{
  static const enum cudaMemPoolAttr attributes[] = {
      cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrReservedMemHigh,
      cudaMemPoolAttrUsedMemCurrent, cudaMemPoolAttrUsedMemHigh, cudaMemPoolAttrReleaseThreshold};
  printf("%s %llu", what, (unsigned long long)(uintptr_t)pool);
  for (int i = 0; i < 5; i++) {
    uint64_t n = 0;
    MUST(cudaMemPoolGetAttribute(pool, attributes[i], &n));
    printf(" %llu", (unsigned long long)n);
  }
  printf("\n");
}

static cudaMemPool_t pool_with(uint64_t threshold)
{
  struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                   .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
  cudaMemPool_t pool;
  MUST(cudaMemPoolCreate(&pool, &props));
  MUST(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  return pool;
}

/* Three at once, of which one is destroyed while it has memory, and one is the device's for a
 * while. */
static void use_three_pools(void)
{
  cudaMemPool_t first, kept = pool_with(8 * MIB), brief = pool_with(UINT64_MAX);
  cudaStream_t s;
  void *p[6], *q[2];
  MUST(cudaDeviceGetDefaultMemPool(&first, 0));
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (int i = 0; i < 6; i++) /* 21 MiB */
    MUST(cudaMallocAsync(&p[i], (size_t)(i + 1) * MIB, s));
  for (int i = 0; i < 2; i++)
    MUST(cudaMallocFromPoolAsync(&q[i], 30 * MIB, brief, s));
  MUST(cudaDeviceSetMemPool(0, kept));
  for (int i = 3; i < 6; i++) {
    MUST(cudaFreeAsync(p[i], s));
    MUST(cudaMallocAsync(&p[i], 5 * MIB, s));
  }
  MUST(cudaFreeAsync(p[4], s));
  MUST(cudaFreeAsync(q[0], s));
  MUST(cudaDeviceSynchronize());
  say_pool("default", first);
  say_pool("own", kept);
  say_pool("destroyed", brief);
  MUST(cudaMemPoolDestroy(brief));
}

static uint64_t (*sim_count)(const char *);

/* How often the driver is asked what is in its pools: by nobody while a stream is captured, and
 * next to never in between. */
static void pools_asked(void)
{
  static const char name[] = "cuMemPoolGetAttribute";
  void *driver = dlopen("libcuda.so.1", RTLD_NOW), *p;
  cudaGraph_t graph;
  cudaStream_t s;
  *(void **)&sim_count = driver ? dlsym(driver, "weir_sim_count") : NULL;
  if (!sim_count) exit(8);
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (int i = 0; i < 20000; i++) {
    MUST(cudaMallocAsync(&p, MIB, s));
    MUST(cudaFreeAsync(p, s));
  }
  uint64_t asked = sim_count(name);
  printf("seldom: %d\n", asked < 2000);
  MUST(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 100; i++) {
    MUST(cudaMallocAsync(&p, MIB, s));
    MUST(cudaFreeAsync(p, s));
  }
  MUST(cudaStreamEndCapture(s, &graph));
  printf("while captured: %d\n", (int)(sim_count(name) - asked));
}

/* A copy that is not complete when its thread ends. */
static void *copy_and_end(void *pinned)
{
  cudaStream_t s;
  unsigned *p = allocate_or_exit(MIB);
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  MUST(trap_launch_fill(s, p, MIB / 4, 1, 20000000));
  MUST(cudaMemcpyAsync(pinned, p, MIB, cudaMemcpyDeviceToHost, s));
  return NULL;
}

/* What the driver has made for the hooks is given back, whichever thread it was for. */
static void threads_end(void)
{
  enum { THREADS = 4 };
  pthread_t t[THREADS];
  char *pinned;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  *(void **)&sim_count = driver ? dlsym(driver, "weir_sim_count") : NULL;
  if (!sim_count) exit(8);
  MUST(cudaMallocHost((void **)&pinned, THREADS * MIB));
  for (int i = 0; i < THREADS; i++)
    MUST(pthread_create(&t[i], NULL, copy_and_end, pinned + i * MIB));
  for (int i = 0; i < THREADS; i++)
    MUST(pthread_join(t[i], NULL));
  MUST(cudaDeviceSynchronize());
  printf("events: %d of %d left\n",
         (int)(sim_count("cuEventCreate") - sim_count("cuEventDestroy_v2")),
         (int)sim_count("cuEventCreate"));
}

/* A copy between devices that is too large for the first ring, twice, and what arrived: each page
 * begins with a number of its own. */
static void large_peer(void)
{
  enum { PAGE = 4096 };
  static const size_t bytes = ((size_t)1100 << 20) + 3 * PAGE;
  char *p[2], *host;
  size_t wrong = 0;
  for (int i = 1; i >= 0; i--) {
    MUST(cudaSetDevice(i));
    p[i] = allocate_or_exit(bytes);
  }
  MUST(cudaMallocHost((void **)&host, bytes / PAGE * sizeof(size_t)));
  for (size_t i = 0; i < bytes / PAGE; i++)
    memcpy(host + i * sizeof i, &i, sizeof i);
  MUST(cudaMemset(p[0], 0, bytes));
  MUST(cudaMemcpy2D(p[0], PAGE, host, sizeof(size_t), sizeof(size_t), bytes / PAGE,
                    cudaMemcpyHostToDevice));
  for (int round = 0; round < 2; round++) {
    cudaStream_t s;
    MUST(cudaStreamCreate(&s));
    MUST(round ? cudaMemcpyPeer(p[1], 1, p[0], 0, bytes)
               : cudaMemcpyPeerAsync(p[1], 1, p[0], 0, bytes, s));
    MUST(cudaDeviceSynchronize());
    memset(host, 0xff, bytes / PAGE * sizeof(size_t));
    MUST(cudaSetDevice(1));
    MUST(cudaMemcpy2D(host, sizeof(size_t), p[1], PAGE, sizeof(size_t), bytes / PAGE,
                      cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < bytes / PAGE; i++)
      wrong += memcmp(host + i * sizeof i, &i, sizeof i) != 0;
    MUST(cudaMemset(p[1], 0, bytes));
    MUST(cudaSetDevice(0));
  }
  printf("wrong: %zu\n", wrong);
}

/* ---- work that waits for this thread --------------------------------------------------------- */

static int (*sim_hold)(void *), (*sim_release)(void *);

/* Work in a stream of its own that does not go on before sim_release(). */
static cudaStream_t hold_work(void)
{
  cudaStream_t s;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  *(void **)&sim_hold = driver ? dlsym(driver, "weir_sim_hold") : NULL;
  *(void **)&sim_release = driver ? dlsym(driver, "weir_sim_release") : NULL;
  if (!sim_hold || !sim_release) exit(8);
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  unsigned *p = allocate_or_exit(MIB);
  MUST(sim_hold(s));
  MUST(trap_launch_fill(s, p, MIB / 4, 1, 0));
  return s;
}

/* Pageable copies in another stream, the first of the process. */
static void held_copies(void)
{
  enum { BYTES = 4 * MIB };
  cudaStream_t s;
  char *host = malloc(BYTES), *p = allocate_or_exit(BYTES);
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  memset(host, 1, BYTES);
  cudaStream_t held = hold_work();
  MUST(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, s));
  MUST(cudaMemcpyAsync(host, p, BYTES, cudaMemcpyDeviceToHost, s));
  printf("done\n");
  MUST(sim_release(held));
  MUST(cudaDeviceSynchronize());
  free(host);
}

/* The same from one device to another. */
static void held_peers(void)
{
  enum { BYTES = 4 * MIB };
  cudaStream_t s;
  MUST(cudaSetDevice(1));
  char *p = allocate_or_exit(BYTES);
  MUST(cudaSetDevice(0));
  char *q = allocate_or_exit(BYTES);
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  cudaStream_t held = hold_work();
  MUST(cudaMemcpyPeerAsync(p, 1, q, 0, BYTES, s));
  printf("done\n");
  MUST(sim_release(held));
  MUST(cudaDeviceSynchronize());
}

/* Allocations after blocks of other sizes were freed, and have been idle for long enough to go
 * back; they do when the program waits. */
static void held_allocations(void)
{
  void *pinned;
  struct timespec now, start;
  MUST(cudaMallocHost(&pinned, 2 * MIB));
  MUST(cudaFree(allocate_or_exit(2 * MIB)));
  MUST(cudaFreeHost(pinned));
  cudaStream_t held = hold_work();
  (void)clock_gettime(CLOCK_MONOTONIC, &start);
  do /* until they are old: WEIR_CACHE_DECAY_MS is 1, and the coarse clock's step 10 at most */
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 25000000);
  (void)allocate_or_exit(4 * MIB);
  MUST(cudaMallocHost(&pinned, 4 * MIB));
  printf("done\n");
  MUST(sim_release(held));
  MUST(cudaDeviceSynchronize());
}

/* ---- memory whose faults the program mends --------------------------------------------------- */

enum { FAULTY = 8 * MIB, PAGE = 4096 };
static char *faulty;
static _Atomic unsigned faults;

static void on_fault(int signal, siginfo_t *info, void *unused)
{
  size_t at = (size_t)((char *)info->si_addr - faulty);
  (void)signal, (void)unused;
  if (at >= FAULTY) _exit(7);
  faults++;
  if (mprotect(faulty + at / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE)) _exit(6);
}

/* A pageable buffer that is made accessible page by page, as it is touched; a copy of one that is
 * closed at an end is left to the driver. */
static void faulting(void)
{
  struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  char *p = allocate_or_exit(FAULTY);
  faulty = mmap(NULL, FAULTY, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (faulty == MAP_FAILED) exit(5);
  MUST(sigaction(SIGSEGV, &act, NULL));
  for (int to = 1; to >= 0; to--) {
    memset(faulty, to ? 1 : 0, FAULTY);
    MUST(mprotect(faulty + PAGE, FAULTY - 2 * PAGE, PROT_NONE));
    MUST(cudaMemcpy(to ? p : faulty, to ? faulty : p, FAULTY,
                    to ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost));
  }
  size_t wrong = 0;
  for (size_t i = 0; i < FAULTY; i++)
    wrong += faulty[i] != 1;
  printf("wrong: %zu, faults: %d\n", wrong, faults >= 2 * (FAULTY / PAGE - 2));
}

static void pressure(void)
{
  press(false, 3000);
}

static void pressure_small(void)
{
  press(true, 3000);
}

static const struct what {
  const char *name;
  void (*run)(void);
} whats[] = {
    {"churn", allocate_a_few_times},
    {"debugged", debugged},
    {"recycled", recycled},
    {"initialised", initialised},
    {"unwritten_sync", unwritten_sync},
    {"unwritten_async", unwritten_async},
    {"unwritten_last", unwritten_last},
    {"unwritten_rows", unwritten_rows},
    {"unwritten_staged", unwritten_staged},
    {"unwritten_scalars", unwritten_scalars},
    {"captured", captured},
    {"unjoined", unjoined},
    {"sites", allocate_at_sites},
    {"relief", relief},
    {"large_peer", large_peer},
    {"threads_end", threads_end},
    {"pools", use_three_pools},
    {"pools_asked", pools_asked},
    {"held_copies", held_copies},
    {"held_peers", held_peers},
    {"held_allocations", held_allocations},
    {"faulting", faulting},
    {"pressure", pressure},
    {"pressure_small", pressure_small},
};

/* Workers are forked before anything calls CUDA, as servers do; then one by a worker that has. */
static void workers(int depth)
{
  for (int i = 0; i < 2; i++) {
    int status;
    pid_t pid = fork();
    if (pid) {
      if (waitpid(pid, &status, 0) != pid || status) exit(4);
      continue;
    }
    if (depth == 0) {
      allocate_a_few_times();
      (void)fflush(stdout);
      workers(1);
    } else {
      (void)cudaFree(NULL); /* fails behind a fork, and is recorded */
    }
    (void)fflush(stdout);
    _exit(0);
  }
}

int main(int argc, char **argv)
{
  if (argc == 2 && !strcmp(argv[1], "workers")) {
    workers(0);
    return 0;
  }
  for (unsigned i = 0; i < sizeof whats / sizeof *whats; i++)
    if (argc == 2 && !strcmp(argv[1], whats[i].name)) {
      MUST(cudaFree(NULL)); /* the context is there */
      whats[i].run();
      return 0;
    }
  return 2;
}
