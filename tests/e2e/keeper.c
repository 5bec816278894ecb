/* keeper.c: memory of every kind, made and dropped by several threads, and an account of it.
 *
 *   keeper SEED THREADS STEPS each|together leave|drop|reset
 *
 * What one thread made another may drop. each: one call of all threads at a time, so that the
 * account is exact; together: as they come, and peaks are known to lie between two figures. *low*
 * counts memory from after the call that made it to before the one that dropped it, *high* from
 * before to after. At the end what is left is left, dropped, or reset with its device. Prints
 * lines, of each kind on each device (- none), S the device side of one device, T of all:
 *
 *   KIND DEVICE allocations bytes live-blocks live low-peak high-peak
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 24, DEVICES = 2, HOST = DEVICES /* no device */, PLACES };
#define PAGE ((size_t)2 << 20)

enum kind { PINNED, REGISTERED, DEVICE, MANAGED, ARRAY, PHYSICAL, IMPORTED, SUM, KINDS };
static const char *const kind_names[] = {"2", "R", "3", "4", "5", "7", "8", "S"};

static void fail_call(int status, const char *what)
{
  if (!status) return;
  (void)fprintf(stderr, "keeper: %s: %d\n", what, status);
  _exit(1);
}

#define CHECK(call) fail_call((int)(call), #call)

/* ---- the account ----------------------------------------------------------------------------- */

typedef struct account {
  unsigned long long allocs, bytes, blocks, low, high, low_peak, high_peak;
} account;

static account accounts[KINDS][PLACES], total;
static pthread_mutex_t books = PTHREAD_MUTEX_INITIALIZER, turn = PTHREAD_MUTEX_INITIALIZER;
static bool one_by_one;

typedef void (*entry)(account *a, size_t bytes);

static void expect_bytes(account *a, size_t n)
{
  a->high += n;
  if (a->high > a->high_peak) a->high_peak = a->high;
}

static void enter_bytes(account *a, size_t n)
{
  a->allocs++, a->blocks++, a->bytes += n, a->low += n;
  if (a->low > a->low_peak) a->low_peak = a->low;
}

/* Of a launch that allocates and frees: there is no moment after it at which it is live. */
static void enter_passing(account *a, size_t n)
{
  a->allocs++, a->bytes += n;
  if (one_by_one && a->low + n > a->low_peak) a->low_peak = a->low + n;
}

static void remove_bytes(account *a, size_t n)
{
  a->blocks--, a->low -= n;
}

static void forget_bytes(account *a, size_t n)
{
  a->high -= n;
}

static void book(entry what, enum kind kind, int device, size_t bytes)
{
  bool on_device = kind >= DEVICE && kind <= PHYSICAL;
  pthread_mutex_lock(&books);
  what(&accounts[kind][on_device ? device : HOST], bytes);
  if (on_device) what(&accounts[SUM][device], bytes), what(&total, bytes);
  pthread_mutex_unlock(&books);
}

static void begin_turn(void)
{
  if (one_by_one) pthread_mutex_lock(&turn);
}

static void end_turn(void)
{
  if (one_by_one) pthread_mutex_unlock(&turn);
}

/* A call that makes, or drops, these bytes. */
#define MAKE(kind, device, bytes, call)                                                            \
  (begin_turn(), book(expect_bytes, kind, device, bytes), CHECK(call),                             \
   book(enter_bytes, kind, device, bytes), end_turn())
#define DROP(kind, device, bytes, call)                                                            \
  (begin_turn(), book(remove_bytes, kind, device, bytes), CHECK(call),                             \
   book(forget_bytes, kind, device, bytes), end_turn())

/* ---- blocks ---------------------------------------------------------------------------------- */

struct way;

typedef struct block {
  const struct way *way; /* NULL: none */
  int device;
  size_t bytes;
  void *p;
  cudaArray_t array;
  CUarray driver_array;
  CUcontext context;
  CUgraph graph;
  CUgraphExec exec;
  CUmemGenericAllocationHandle handle, imported;
} block;

typedef struct way { /* how it is made and dropped */
  enum kind kind;
  void (*make)(block *b);
  void (*drop)(block *b);
} way;

typedef struct worker {
  uint64_t rng;
  unsigned steps;
  pthread_t thread;
} worker;

static block blocks[SLOTS];
static pthread_mutex_t slots[SLOTS];
static CUmemoryPool pools[DEVICES];
static int devices;
static _Thread_local worker *self;
static _Thread_local cudaStream_t streams[DEVICES];

static size_t random_below(size_t n)
{
  self->rng = self->rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (size_t)(self->rng >> 33) % n;
}

static CUdeviceptr address(const block *b)
{
  return (CUdeviceptr)(uintptr_t)b->p;
}

static void make_malloc(block *b)
{
  MAKE(DEVICE, b->device, b->bytes, cudaMalloc(&b->p, b->bytes));
  CHECK(cudaMemset(b->p, 1, b->bytes));
}

static void drop_malloc(block *b)
{
  DROP(b->way->kind, b->device, b->bytes, cudaFree(b->p));
}

static void make_driver(block *b)
{
  MAKE(DEVICE, b->device, b->bytes, cuMemAlloc((CUdeviceptr *)&b->p, b->bytes));
  CHECK(cuMemsetD8Async(address(b), 1, b->bytes, streams[b->device]));
}

static void drop_driver(block *b)
{
  DROP(b->way->kind, b->device, b->bytes, cuMemFree(address(b)));
}

/* Rows as wide as the driver would make them. */
static void make_pitched(block *b)
{
  size_t width = 512 * (1 + random_below(8)), rows = 1 + random_below(500), pitch = 0;
  b->bytes = width * rows;
  MAKE(DEVICE, b->device, b->bytes, cudaMallocPitch(&b->p, &pitch, width, rows));
  if (pitch != width) fail_call((int)pitch, "bytes from row to row");
}

static void make_managed(block *b)
{
  MAKE(MANAGED, b->device, b->bytes, cudaMallocManaged(&b->p, b->bytes, cudaMemAttachGlobal));
}

static void make_driver_managed(block *b)
{
  MAKE(MANAGED, b->device, b->bytes,
       cuMemAllocManaged((CUdeviceptr *)&b->p, b->bytes, CU_MEM_ATTACH_GLOBAL));
}

static void make_pinned(block *b)
{
  MAKE(PINNED, HOST, b->bytes, cudaHostAlloc(&b->p, b->bytes, cudaHostAllocPortable));
}

static void drop_pinned(block *b)
{
  DROP(PINNED, HOST, b->bytes, cudaFreeHost(b->p));
}

static void make_driver_pinned(block *b)
{
  MAKE(PINNED, HOST, b->bytes, cuMemHostAlloc(&b->p, b->bytes, CU_MEMHOSTALLOC_PORTABLE));
}

static void drop_driver_pinned(block *b)
{
  DROP(PINNED, HOST, b->bytes, cuMemFreeHost(b->p));
}

static void make_registered(block *b)
{
  b->bytes = (b->bytes + 4095) & ~(size_t)4095;
  b->p = aligned_alloc(4096, b->bytes);
  if (!b->p) fail_call(1, "aligned_alloc");
  MAKE(REGISTERED, HOST, b->bytes, cudaHostRegister(b->p, b->bytes, cudaHostRegisterPortable));
}

static void drop_registered(block *b)
{
  DROP(REGISTERED, HOST, b->bytes, cudaHostUnregister(b->p));
  free(b->p);
}

/* In stream order, and there before another thread has it. */
static void make_ordered(block *b)
{
  cudaStream_t s = streams[b->device];
  MAKE(DEVICE, b->device, b->bytes, cudaMallocAsync(&b->p, b->bytes, s));
  CHECK(cudaStreamSynchronize(s));
}

static void drop_ordered(block *b)
{
  DROP(DEVICE, b->device, b->bytes, cudaFreeAsync(b->p, streams[b->device]));
}

static void make_pooled(block *b)
{
  CUstream s = streams[b->device];
  MAKE(DEVICE, b->device, b->bytes,
       cuMemAllocFromPoolAsync((CUdeviceptr *)&b->p, b->bytes, pools[b->device], s));
  CHECK(cuStreamSynchronize(s));
}

static void make_array(block *b)
{
  struct cudaChannelFormatDesc f = {32, 0, 0, 0, cudaChannelFormatKindFloat};
  size_t rows = 1 + random_below(300);
  b->bytes = 4 * 64 * rows;
  MAKE(ARRAY, b->device, b->bytes, cudaMallocArray(&b->array, &f, 64, rows, 0));
}

static void drop_array(block *b)
{
  DROP(ARRAY, b->device, b->bytes, cudaFreeArray(b->array));
}

static void make_driver_array(block *b)
{
  CUDA_ARRAY3D_DESCRIPTOR d = {32, 16, 1 + random_below(30), CU_AD_FORMAT_FLOAT, 1, 0};
  b->bytes = 4 * d.Width * d.Height * d.Depth;
  MAKE(ARRAY, b->device, b->bytes, cuArray3DCreate(&b->driver_array, &d));
}

static void drop_driver_array(block *b)
{
  DROP(ARRAY, b->device, b->bytes, cuArrayDestroy(b->driver_array));
}

/* ---- physical memory ------------------------------------------------------------------------- */

static CUmemAllocationProp on_device(const block *b)
{
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = b->device}};
}

static void open_access(const block *b, CUdeviceptr at)
{
  CUmemAllocationProp prop = on_device(b);
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CHECK(cuMemSetAccess(at, b->bytes, &access, 1));
}

static void make_physical(block *b)
{
  CUmemAllocationProp prop = on_device(b);
  b->bytes = PAGE * (1 + random_below(2));
  MAKE(PHYSICAL, b->device, b->bytes, cuMemCreate(&b->handle, b->bytes, &prop, 0));
  CHECK(cuMemAddressReserve((CUdeviceptr *)&b->p, b->bytes, 0, 0, 0));
  CHECK(cuMemMap(address(b), b->bytes, 0, b->handle, 0));
  open_access(b, address(b));
}

/* It lives until both its handle and its mapping are gone. */
static void drop_physical(block *b)
{
  if (random_below(2)) {
    CHECK(cuMemUnmap(address(b), b->bytes));
    DROP(PHYSICAL, b->device, b->bytes, cuMemRelease(b->handle));
  } else {
    CHECK(cuMemRelease(b->handle));
    DROP(PHYSICAL, b->device, b->bytes, cuMemUnmap(address(b), b->bytes));
  }
  CHECK(cuMemAddressFree(address(b), b->bytes));
}

/* The same memory again, by a handle as another process would get it. */
static void make_imported(block *b)
{
  CUmemAllocationProp prop = on_device(b);
  int fd = -1;
  b->bytes = PAGE;
  MAKE(PHYSICAL, b->device, b->bytes, cuMemCreate(&b->handle, b->bytes, &prop, 0));
  CHECK(cuMemExportToShareableHandle(&fd, b->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CHECK(cuMemImportFromShareableHandle(&b->imported, (void *)(intptr_t)fd,
                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  (void)close(fd);
  CHECK(cuMemAddressReserve((CUdeviceptr *)&b->p, b->bytes, 0, 0, 0));
  MAKE(IMPORTED, HOST, b->bytes, cuMemMap(address(b), b->bytes, 0, b->imported, 0));
  open_access(b, address(b));
}

static void drop_imported(block *b)
{
  CHECK(cuMemUnmap(address(b), b->bytes));
  DROP(IMPORTED, HOST, b->bytes, cuMemRelease(b->imported));
  DROP(PHYSICAL, b->device, b->bytes, cuMemRelease(b->handle));
  CHECK(cuMemAddressFree(address(b), b->bytes));
}

/* ---- graphs, contexts ------------------------------------------------------------------------ */

static CUgraphNode add_allocation(block *b)
{
  CUgraphNode node = NULL;
  CUDA_MEM_ALLOC_NODE_PARAMS p = {
      .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                    .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = b->device}},
      .bytesize = b->bytes};
  CHECK(cuGraphCreate(&b->graph, 0));
  CHECK(cuGraphAddMemAllocNode(&node, b->graph, NULL, 0, &p));
  b->p = (void *)(uintptr_t)p.dptr;
  return node;
}

static void end_graph(block *b)
{
  CHECK(cuStreamSynchronize(streams[b->device]));
  CHECK(cuGraphExecDestroy(b->exec));
  CHECK(cuGraphDestroy(b->graph));
}

/* A block that a launch leaves. */
static void make_by_graph(block *b)
{
  (void)add_allocation(b);
  CHECK(cuGraphInstantiate(&b->exec, b->graph, 0));
  MAKE(DEVICE, b->device, b->bytes, cuGraphLaunch(b->exec, streams[b->device]));
  CHECK(cuStreamSynchronize(streams[b->device]));
}

static void drop_by_graph(block *b)
{
  if (random_below(2))
    DROP(DEVICE, b->device, b->bytes, cuMemFree(address(b)));
  else
    DROP(DEVICE, b->device, b->bytes, cuMemFreeAsync(address(b), streams[b->device]));
  end_graph(b);
}

/* A block that a launch makes and drops; the slot stays empty. */
static void make_within_graph(block *b)
{
  CUgraphNode node = add_allocation(b), gone = NULL;
  CHECK(cuGraphAddMemFreeNode(&gone, b->graph, &node, 1, address(b)));
  CHECK(cuGraphInstantiate(&b->exec, b->graph, 0));
  begin_turn();
  book(expect_bytes, DEVICE, b->device, b->bytes);
  CHECK(cuGraphLaunch(b->exec, streams[b->device]));
  book(enter_passing, DEVICE, b->device, b->bytes);
  book(forget_bytes, DEVICE, b->device, b->bytes);
  end_turn();
  end_graph(b);
}

static void make_in_context(block *b)
{
  CUcontext popped = NULL;
  CHECK(cuCtxCreate(&b->context, NULL, 0, b->device));
  MAKE(DEVICE, b->device, b->bytes, cuMemAlloc((CUdeviceptr *)&b->p, b->bytes));
  CHECK(cuCtxPopCurrent(&popped));
}

static void drop_context(block *b)
{
  DROP(DEVICE, b->device, b->bytes, cuCtxDestroy(b->context));
}

static const way ways[] = {{DEVICE, make_malloc, drop_malloc},
                           {DEVICE, make_driver, drop_driver},
                           {DEVICE, make_pitched, drop_malloc},
                           {DEVICE, make_driver, drop_malloc},
                           {MANAGED, make_managed, drop_malloc},
                           {MANAGED, make_driver_managed, drop_driver},
                           {PINNED, make_pinned, drop_pinned},
                           {PINNED, make_driver_pinned, drop_driver_pinned},
                           {REGISTERED, make_registered, drop_registered},
                           {DEVICE, make_ordered, drop_ordered},
                           {DEVICE, make_ordered, drop_malloc},
                           {DEVICE, make_pooled, drop_ordered},
                           {ARRAY, make_array, drop_array},
                           {ARRAY, make_driver_array, drop_driver_array},
                           {PHYSICAL, make_physical, drop_physical},
                           {PHYSICAL, make_physical, drop_physical},
                           {IMPORTED, make_imported, drop_imported},
                           {DEVICE, make_by_graph, drop_by_graph},
                           {DEVICE, make_within_graph, NULL},
                           {DEVICE, make_in_context, drop_context}};

/* ---- threads --------------------------------------------------------------------------------- */

static void drop_block(block *b)
{
  CHECK(cudaSetDevice(b->device));
  b->way->drop(b);
  *b = (block){0};
}

static void make_block(block *b)
{
  *b = (block){.way = &ways[random_below(sizeof ways / sizeof *ways)],
               .device = (int)random_below((size_t)devices),
               .bytes = 1 + random_below(random_below(4) ? 100000 : 3000000)};
  CHECK(cudaSetDevice(b->device));
  b->way->make(b);
  if (!b->way->drop) *b = (block){0};
}

static void *keep_blocks(void *data)
{
  self = data;
  for (int i = 0; i < devices; i++) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  }
  for (unsigned i = 0; i < self->steps; i++) {
    size_t at = random_below(SLOTS);
    if (pthread_mutex_trylock(&slots[at])) continue;
    (blocks[at].way ? drop_block : make_block)(&blocks[at]);
    pthread_mutex_unlock(&slots[at]);
  }
  for (int i = 0; i < devices; i++) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaStreamSynchronize(streams[i]));
    CHECK(cudaStreamDestroy(streams[i]));
  }
  return NULL;
}

/* What a reset ends: all but physical memory, which handles keep, and contexts of the program's
 * own. */
static void reset_devices(void)
{
  for (int i = 0; i < SLOTS; i++) {
    block *b = &blocks[i];
    if (!b->way || b->way->kind == PHYSICAL || b->way->kind == IMPORTED || b->context) continue;
    bool host = b->way->kind == PINNED || b->way->kind == REGISTERED;
    book(remove_bytes, b->way->kind, host ? HOST : b->device, b->bytes);
  }
  for (int i = 0; i < devices; i++) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaDeviceReset());
  }
}

static void end_blocks(const char *how)
{
  static worker last = {.rng = 1};
  self = &last;
  if (strcmp(how, "reset") == 0) reset_devices();
  if (strcmp(how, "drop") != 0) return;
  for (int i = 0; i < devices; i++) {
    CHECK(cudaSetDevice(i));
    CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
  }
  for (int i = 0; i < SLOTS; i++)
    if (blocks[i].way) drop_block(&blocks[i]);
}

static void print_account(const char *kind, int device, const account *a)
{
  char place[8] = "-";
  if (!a->allocs) return;
  if (device != HOST) (void)snprintf(place, sizeof place, "%d", device);
  (void)printf("%s %s %llu %llu %llu %llu %llu %llu\n", kind, place, a->allocs, a->bytes, a->blocks,
               a->low, a->low_peak, a->high_peak);
}

static void begin_devices(void)
{
  CHECK(cudaGetDeviceCount(&devices));
  if (devices > DEVICES) devices = DEVICES;
  for (int i = devices; i-- > 0;) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i}};
    CHECK(cudaSetDevice(i));
    CHECK(cudaFree(NULL));
    CHECK(cuMemPoolCreate(&pools[i], &props));
  }
  for (int i = 0; i < SLOTS; i++)
    (void)pthread_mutex_init(&slots[i], NULL);
}

int main(int argc, char **argv)
{
  static worker workers[64];
  if (argc != 6) return 2;
  unsigned count = (unsigned)strtoul(argv[2], NULL, 10);
  if (!count || count > 64) return 2;
  one_by_one = strcmp(argv[4], "each") == 0;
  begin_devices();
  for (unsigned i = 0; i < count; i++) {
    worker *w = &workers[i];
    *w = (worker){.rng = strtoull(argv[1], NULL, 10) * 1000003 + i,
                  .steps = (unsigned)strtoul(argv[3], NULL, 10)};
    if (pthread_create(&w->thread, NULL, keep_blocks, w)) return 1;
  }
  for (unsigned i = 0; i < count; i++)
    (void)pthread_join(workers[i].thread, NULL);
  end_blocks(argv[5]);
  for (int k = 0; k < KINDS; k++)
    for (int d = 0; d < PLACES; d++)
      print_account(kind_names[k], d, &accounts[k][d]);
  print_account("T", HOST, &total);
  return 0;
}
