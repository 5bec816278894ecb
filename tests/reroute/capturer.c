/* capturer.c: threads that capture work into graphs beside threads that allocate: nothing that the
 * latter do may break a capture, since bare nothing does.
 *
 * usage: capturer CAPTURING ALLOCATING global|local|relaxed CAPTURES
 *
 * Each of CAPTURING threads makes CAPTURES graphs: memsets in its stream and in one that joins the
 * capture by an event. It instantiates the graph, launches it twice and looks at what that wrote.
 * In mode relaxed it also allocates and frees while it captures. Meanwhile ALLOCATING threads
 * allocate, write in a stream of their own, and free, sometimes while that work is under way, until
 * the last capture is over. A thread whose calls may meet another's global capture is in mode local
 * itself: without that its calls would be forbidden bare, too
 * (cudaThreadExchangeStreamCaptureMode).
 *
 * Printed: "captures N broken N wrong N allocations N failed N". A capture is broken when any call
 * from its begin to its launch fails, wrong when the memory does not hold what the graph writes. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, HALF = 1024, BYTES = 2 * HALF };

typedef struct capturer {
  cudaStream_t stream, joined; /* non-blocking */
  cudaEvent_t fork, join;
  unsigned char *device; /* BYTES */
  unsigned char *host;   /* BYTES, page-locked */
} capturer;

static enum cudaStreamCaptureMode mode;
static long captures_each;
static _Atomic int capturing;
static _Atomic long captures, broken, wrong, allocations, failed;

static void require_success(cudaError_t r, const char *what)
{
  if (r == cudaSuccess) return;
  printf("%s: %s\n", what, cudaGetErrorName(r));
  exit(2);
}

static void be_local(void)
{
  enum cudaStreamCaptureMode mine = cudaStreamCaptureModeThreadLocal;
  require_success(cudaThreadExchangeStreamCaptureMode(&mine), "mode of the thread");
}

/* ---- capturing ------------------------------------------------------------------------------- */

static void capturer_make(capturer *c)
{
  require_success(cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking), "stream");
  require_success(cudaStreamCreateWithFlags(&c->joined, cudaStreamNonBlocking), "stream");
  require_success(cudaEventCreateWithFlags(&c->fork, cudaEventDisableTiming), "event");
  require_success(cudaEventCreateWithFlags(&c->join, cudaEventDisableTiming), "event");
  require_success(cudaMalloc((void **)&c->device, BYTES), "memory");
  require_success(cudaMallocHost((void **)&c->host, BYTES), "page-locked memory");
}

static cudaError_t allocate_within(void)
{
  void *p = NULL;
  cudaError_t r = cudaMalloc(&p, 4096);
  return r == cudaSuccess ? cudaFree(p) : r;
}

/* The work of one graph: half of the memory in each stream. */
static cudaError_t enqueue_graph_work(const capturer *c, int value)
{
  cudaError_t r = cudaMemsetAsync(c->device, value, HALF, c->stream);
  if (!r) r = cudaEventRecord(c->fork, c->stream);
  if (!r) r = cudaStreamWaitEvent(c->joined, c->fork, 0);
  if (!r) r = cudaMemsetAsync(c->device + HALF, value + 1, HALF, c->joined);
  if (!r && mode == cudaStreamCaptureModeRelaxed) r = allocate_within();
  if (!r) r = cudaEventRecord(c->join, c->joined);
  if (!r) r = cudaStreamWaitEvent(c->stream, c->join, 0);
  return r;
}

static cudaError_t capture(const capturer *c, int value, cudaGraph_t *graph)
{
  cudaError_t begun = cudaStreamBeginCapture(c->stream, mode);
  if (begun) return begun;
  cudaError_t r = enqueue_graph_work(c, value), ended = cudaStreamEndCapture(c->stream, graph);
  return r ? r : ended;
}

static cudaError_t launch(const capturer *c, cudaGraph_t graph)
{
  cudaGraphExec_t exec = NULL;
  cudaError_t r = cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 2 && !r; i++) {
    r = cudaMemsetAsync(c->device, 0, BYTES, c->stream);
    if (!r) r = cudaGraphLaunch(exec, c->stream);
    if (!r) r = cudaMemcpyAsync(c->host, c->device, BYTES, cudaMemcpyDeviceToHost, c->stream);
    if (!r) r = cudaStreamSynchronize(c->stream);
  }
  if (exec) (void)cudaGraphExecDestroy(exec);
  return r;
}

static bool memory_holds(const unsigned char *memory, int value)
{
  for (int i = 0; i < BYTES; i++)
    if (memory[i] != (unsigned char)(i < HALF ? value : value + 1)) return false;
  return true;
}

static void *capture_many(void *argument)
{
  capturer c;
  (void)argument;
  be_local();
  capturer_make(&c);
  for (long i = 0; i < captures_each; i++) {
    int value = 1 + (int)(i % 250);
    cudaGraph_t graph = NULL;
    cudaError_t r = capture(&c, value, &graph);
    if (!r) r = launch(&c, graph);
    atomic_fetch_add(&captures, 1);
    if (r)
      atomic_fetch_add(&broken, 1);
    else if (!memory_holds(c.host, value))
      atomic_fetch_add(&wrong, 1);
    if (graph) (void)cudaGraphDestroy(graph);
    if (r) (void)cudaGetLastError();
  }
  atomic_fetch_sub(&capturing, 1);
  return NULL;
}

/* ---- allocating ------------------------------------------------------------------------------ */

static cudaError_t use_and_free(cudaStream_t stream, unsigned char *host, size_t bytes, int value)
{
  unsigned char *p = NULL;
  cudaError_t r = cudaMalloc((void **)&p, bytes);
  if (r) return r;
  r = cudaMemsetAsync(p, value, bytes, stream);
  if (!r && value % 4 == 0) {
    r = cudaMemcpyAsync(host, p, 64, cudaMemcpyDeviceToHost, stream);
    if (!r) r = cudaStreamSynchronize(stream);
    for (int i = 0; !r && i < 64; i++)
      if (host[i] != (unsigned char)value) r = cudaErrorUnknown;
  }
  cudaError_t freed = cudaFree(p);
  return r ? r : freed;
}

static void *allocate_many(void *argument)
{
  cudaStream_t stream;
  unsigned char *host;
  (void)argument;
  be_local();
  require_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  require_success(cudaMallocHost((void **)&host, 64), "page-locked memory");
  long i = 0;
  do { /* once at least, whoever runs first */
    cudaError_t r = use_and_free(stream, host, (size_t)512 << i % 5, (int)(i % 256));
    atomic_fetch_add(&allocations, 1);
    if (r && atomic_fetch_add(&failed, 1) == 0)
      (void)fprintf(stderr, "an allocation: %s\n", cudaGetErrorName(r));
    i++;
  } while (atomic_load(&capturing) > 0);
  return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool mode_of(const char *name)
{
  static const char *const names[] = {"global", "local", "relaxed"};
  static const enum cudaStreamCaptureMode modes[] = {
      cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
  for (int i = 0; i < 3; i++) {
    if (strcmp(name, names[i]) != 0) continue;
    mode = modes[i];
    return true;
  }
  return false;
}

int main(int argc, char **argv)
{
  pthread_t thread[2 * THREADS];
  if (argc != 5 || !mode_of(argv[3])) return 1;
  int makers = atoi(argv[1]), allocators = atoi(argv[2]);
  captures_each = atol(argv[4]);
  if (makers < 1 || makers > THREADS || allocators < 0 || allocators > THREADS) return 1;
  require_success(cudaFree(NULL), "the device");
  atomic_store(&capturing, makers);
  for (int i = 0; i < makers + allocators; i++)
    if (pthread_create(&thread[i], NULL, i < makers ? capture_many : allocate_many, NULL)) return 1;
  for (int i = 0; i < makers + allocators; i++)
    (void)pthread_join(thread[i], NULL);
  printf("captures %ld broken %ld wrong %ld allocations %ld failed %ld\n", captures, broken, wrong,
         allocations, failed);
  return 0;
}
