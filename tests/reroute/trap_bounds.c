/* trap_bounds.c: copies and fills of memory that the program does not have: freed, or beyond
 * what it asked for. Each form of a copy is tried at one end with each piece of memory; the
 * other end is good. What it prints is the error of each. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/reroute/trap.h"

enum { ROOM = 8 * MIB };

static char *host, *device; /* ROOM bytes each */
static cudaStream_t stream;

#define AT(p) ((CUdeviceptr)(uintptr_t)(p))

/* ---- one dimension --------------------------------------------------------------------------- */

/* A form: a copy or a fill of `n` bytes, of which `p` are the ones to be judged. */
#define FORM(name, ...)                                                                            \
  static int name(char *p, size_t n)                                                               \
  {                                                                                                \
    return (int)(__VA_ARGS__);                                                                     \
  }

FORM(to_device, cudaMemcpy(p, host, n, cudaMemcpyHostToDevice))
FORM(to_host, cudaMemcpy(host, p, n, cudaMemcpyDeviceToHost))
FORM(within_to, cudaMemcpy(p, device, n, cudaMemcpyDeviceToDevice))
FORM(within_from, cudaMemcpy(device, p, n, cudaMemcpyDeviceToDevice))
FORM(default_to, cudaMemcpy(p, host, n, cudaMemcpyDefault))
FORM(default_from, cudaMemcpy(host, p, n, cudaMemcpyDefault))
FORM(async_to, cudaMemcpyAsync(p, host, n, cudaMemcpyHostToDevice, stream))
FORM(async_from, cudaMemcpyAsync(host, p, n, cudaMemcpyDeviceToHost, stream))
FORM(async_default, cudaMemcpyAsync(p, device, n, cudaMemcpyDefault, stream))
FORM(peer_to, cudaMemcpyPeer(p, 0, device, 0, n))
FORM(peer_from, cudaMemcpyPeerAsync(device, 0, p, 0, n, stream))
FORM(fill, cudaMemset(p, 1, n))
FORM(fill_async, cudaMemsetAsync(p, 1, n, stream))
FORM(driver_to, cuMemcpyHtoD(AT(p), host, n))
FORM(driver_from, cuMemcpyDtoH(host, AT(p), n))
FORM(driver_within, cuMemcpyDtoD(AT(device), AT(p), n))
FORM(driver_any, cuMemcpy(AT(p), AT(device), n))
FORM(driver_any_async, cuMemcpyAsync(AT(device), AT(p), n, stream))
FORM(driver_to_async, cuMemcpyHtoDAsync(AT(p), host, n, stream))
FORM(driver_from_async, cuMemcpyDtoHAsync(host, AT(p), n, stream))
FORM(driver_within_async, cuMemcpyDtoDAsync(AT(p), AT(device), n, stream))
FORM(fill_8, cuMemsetD8(AT(p), 1, n))
FORM(fill_16, cuMemsetD16(AT(p), 1, n / 2))
FORM(fill_32, cuMemsetD32(AT(p), 1, n / 4))
FORM(fill_32_async, cuMemsetD32Async(AT(p), 1, n / 4, stream))

/* ---- two and three: `n` bytes from the first to the last ------------------------------------- */

enum { WIDTH = 4 };

FORM(rows_to, cudaMemcpy2D(p, n - WIDTH, host, WIDTH, WIDTH, 2, cudaMemcpyHostToDevice))
FORM(rows_from, cudaMemcpy2DAsync(host, WIDTH, p, n - WIDTH, WIDTH, 2, cudaMemcpyDefault, stream))
FORM(fill_rows, cudaMemset2D(p, n - WIDTH, 1, WIDTH, 2))
FORM(fill_rows_32, cuMemsetD2D32(AT(p), n - WIDTH, 1, 1, 2))

static int driver_rows(char *p, size_t n)
{
  CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                     .srcHost = host,
                     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                     .dstDevice = AT(p),
                     .dstPitch = n / 2,
                     .dstY = 1,
                     .dstXInBytes = n - n / 2 - WIDTH,
                     .WidthInBytes = WIDTH,
                     .Height = 1};
  return (int)cuMemcpy2D(&c);
}

/* The second slice begins behind `rows` rows of the first. */
static struct cudaPitchedPtr sliced(char *p, size_t n)
{
  return (struct cudaPitchedPtr){p, (n - WIDTH) / 2, WIDTH, 2};
}

static int box_to(char *p, size_t n)
{
  struct cudaMemcpy3DParms c = {.srcPtr = {host, WIDTH, WIDTH, 1},
                                .dstPtr = sliced(p, n),
                                .extent = {WIDTH, 1, 2},
                                .kind = cudaMemcpyHostToDevice};
  return (int)cudaMemcpy3D(&c);
}

static int box_peer(char *p, size_t n)
{
  struct cudaMemcpy3DPeerParms c = {
      .srcPtr = sliced(p, n), .dstPtr = {device, WIDTH, WIDTH, 1}, .extent = {WIDTH, 1, 2}};
  return (int)cudaMemcpy3DPeer(&c);
}

static int box_driver(char *p, size_t n)
{
  CUDA_MEMCPY3D c = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                     .srcDevice = AT(p),
                     .srcPitch = n - WIDTH,
                     .srcHeight = 1,
                     .srcZ = 1,
                     .dstMemoryType = CU_MEMORYTYPE_HOST,
                     .dstHost = host,
                     .WidthInBytes = WIDTH,
                     .Height = 1,
                     .Depth = 1};
  return (int)cuMemcpy3DAsync(&c, stream);
}

static int fill_box(char *p, size_t n)
{
  return (int)cudaMemset3D(sliced(p, n), 1, (struct cudaExtent){WIDTH, 1, 2});
}

/* ---- batches --------------------------------------------------------------------------------- */

#if CUDART_VERSION >= 13000
static int batch(char *p, size_t n)
{
  void *dst[] = {device, device + MIB};
  const void *src[] = {device + 2 * MIB, p};
  size_t sizes[] = {100, n}, first[] = {0};
  struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
  return (int)cudaMemcpyBatchAsync(dst, src, sizes, 2, &how, first, 1, stream);
}

static int batch_of_boxes(char *p, size_t n)
{
  CUDA_MEMCPY3D_BATCH_OP c = {
      .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = AT(device)}},
      .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER,
              .op.ptr = {.ptr = AT(p), .rowLength = n - WIDTH, .layerHeight = 1}},
      .extent = {WIDTH, 1, 2},
      .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  return (int)cuMemcpy3DBatchAsync(1, &c, 0, stream);
}
#define BATCHES                                                                                    \
  {"batch", batch},                                                                                \
  {                                                                                                \
    "batch_of_boxes", batch_of_boxes                                                               \
  }
#else
#define BATCHES                                                                                    \
  {                                                                                                \
    "fill", fill                                                                                   \
  }
#endif

#define NAMED(form)                                                                                \
  {                                                                                                \
#form, form                                                                                    \
  }

static const struct form {
  const char *name;
  int (*run)(char *p, size_t n);
} forms[] = {NAMED(to_device),
             NAMED(to_host),
             NAMED(within_to),
             NAMED(within_from),
             NAMED(default_to),
             NAMED(default_from),
             NAMED(async_to),
             NAMED(async_from),
             NAMED(async_default),
             NAMED(peer_to),
             NAMED(peer_from),
             NAMED(driver_to),
             NAMED(driver_from),
             NAMED(driver_within),
             NAMED(driver_any),
             NAMED(driver_any_async),
             NAMED(driver_to_async),
             NAMED(driver_from_async),
             NAMED(driver_within_async),
             NAMED(rows_to),
             NAMED(rows_from),
             NAMED(driver_rows),
             NAMED(box_to),
             NAMED(box_peer),
             NAMED(box_driver),
             BATCHES},
  fills[] = {NAMED(fill),      NAMED(fill_async),   NAMED(fill_8),
             NAMED(fill_16),   NAMED(fill_32),      NAMED(fill_32_async),
             NAMED(fill_rows), NAMED(fill_rows_32), NAMED(fill_box)};

enum { FORMS = sizeof forms / sizeof *forms, FILLS = sizeof fills / sizeof *fills };

/* ---- the pieces of memory -------------------------------------------------------------------- */

static void try_forms(const struct form *f, size_t count, const char *what, char *p, size_t n)
{
  for (size_t i = 0; i < count; i++) {
    int r = f[i].run(p, n);
    printf("%s %s: %d, %d, %d\n", what, f[i].name, r, (int)cudaStreamSynchronize(stream),
           (int)cudaGetLastError());
  }
}

static void try_pieces(const struct form *f, size_t count, char *p, size_t bytes, char *freed)
{
  size_t half = bytes / 8 * 4;
  try_forms(f, count, "all", p, bytes);
  try_forms(f, count, "inside", p + half, bytes - half);
  try_forms(f, count, "past the end", p, bytes + 4);
  try_forms(f, count, "inside, past the end", p + half, bytes - half + 4);
  try_forms(f, count, "far past the end", p, ROOM - MIB);
  try_forms(f, count, "behind the end", p + bytes, 8);
  try_forms(f, count, "freed", freed, 8);
  try_forms(f, count, "inside what is freed", freed + half, 8);
}

/* Memory that was another block's, and is larger than what is asked for now; and memory that is
 * freed and kept. */
static void bounds(void)
{
  static const size_t sizes[] = {100, 1000, 2 * MIB + 512 * 1024};
  host = calloc(1, ROOM);
  PRINT(cudaMalloc((void **)&device, ROOM));
  PRINT(cudaStreamCreate(&stream));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char *p, *freed;
    PRINT(cudaMalloc((void **)&p, sizes[i] + 12));
    PRINT(cudaMalloc((void **)&freed, sizes[i] + 12));
    PRINT(cudaFree(p));
    PRINT(cudaMalloc((void **)&p, sizes[i]));
    PRINT(cudaFree(freed));
    try_pieces(forms, FORMS, p, sizes[i], freed);
    try_pieces(fills, FILLS, p, sizes[i], freed);
    PRINT(cudaFree(p));
  }
  PRINT(cudaFree(device));
}

/* Memory that another process may open is the program's own from then on. */
static void bounds_shared(void)
{
  char *p;
  cudaIpcMemHandle_t handle;
  CUdeviceptr start = 0;
  size_t bytes = 0;
  PRINT(cudaFree(NULL)); /* the context is there: caches are its own */
  PRINT(cudaMalloc((void **)&p, 1012));
  PRINT(cudaFree(p));
  PRINT(cudaMalloc((void **)&p, 1000));
  PRINT(cudaIpcGetMemHandle(&handle, p));
  PRINT(cudaStreamCreate(&stream));
  for (int i = 0; i < 2; i++) {
    char *at = p + (size_t)i * 500;
    size_t left = 1000 - (size_t)i * 500;
    PRINT(cudaMemset(at, 1, left));
    PRINT(cudaMemset(at, 1, left + 4));
    PRINT(cudaMemsetAsync(at, 1, left + 4096, stream));
    PRINT(cuMemGetAddressRange(&start, &bytes, AT(at)));
    printf("%zu of %zu\n", (size_t)(AT(at) - start), bytes);
  }
  PRINT(cudaMemset(p + 1000, 1, 4));
  PRINT(cuMemGetAddressRange(&start, &bytes, AT(p + 1004)));
  PRINT(cudaFree(p));
  PRINT(cudaMemset(p, 1, 4));
}

/* Page-locked memory, where the call requires memory that the driver knows. */
static void bounds_pinned(void)
{
  char *p, *freed;
  PRINT(cudaFree(NULL)); /* the context is there: caches are its own */
  PRINT(cudaMallocHost((void **)&p, 1012));
  PRINT(cudaMallocHost((void **)&freed, 1012));
  PRINT(cudaStreamCreate(&stream));
  PRINT(cudaFreeHost(p));
  PRINT(cudaMallocHost((void **)&p, 1000));
  PRINT(cudaFreeHost(freed));
  try_pieces(fills, FILLS, p, 1000, freed);
  PRINT(cudaFreeHost(p));
}

/* While a stream is captured. */
static void bounds_in_capture(void)
{
  char *p, *freed;
  cudaGraph_t graph = NULL;
  PRINT(cudaMalloc((void **)&p, 1012));
  PRINT(cudaMalloc((void **)&freed, 1012));
  PRINT(cudaFree(p));
  PRINT(cudaMalloc((void **)&p, 1000));
  PRINT(cudaFree(freed));
  PRINT(cudaStreamCreate(&stream));
  PRINT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  PRINT(cudaMemsetAsync(p, 1, 1000, stream));
  PRINT(cudaMemsetAsync(p, 1, 1004, stream));
  PRINT(cudaMemsetAsync(freed, 1, 4, stream));
  PRINT(cudaStreamEndCapture(stream, &graph));
  PRINT(cudaGetLastError());
}

/* The host's end is not there, wholly or at its end, or may only be read. */
static void closed_memory(void)
{
  enum { BYTES = 4 * MIB, PAGE = 4096 };
  for (int i = 0; i < 4; i++) {
    size_t from = i % 2 ? 0 : BYTES - PAGE;
    bool to = i < 2;
    char *p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, BYTES);
    PRINT(mprotect(p + from, BYTES - from, to ? PROT_NONE : PROT_READ));
    PRINT(cudaMalloc((void **)&device, BYTES));
    if (to)
      PRINT(cudaMemcpy(device, p, BYTES, cudaMemcpyHostToDevice));
    else
      PRINT(cudaMemcpy(p, device, BYTES, cudaMemcpyDeviceToHost));
    PRINT(cudaDeviceReset());
    (void)munmap(p, BYTES);
  }
}

const trap trap_bounds[] = {{"bounds", bounds},
                            {"bounds_shared", bounds_shared},
                            {"bounds_pinned", bounds_pinned},
                            {"bounds_in_capture", bounds_in_capture},
                            {"closed_memory", closed_memory},
                            {NULL, NULL}};
