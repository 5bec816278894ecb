/* behind.c: a program that runs behind another interposer (interposer.c): `behind CASE` makes one
 * call its first, and prints what it and the next ones said.
 *
 * "first" prints the names of calls; "first NAME": that call is the program's first.
 * "capture": while the driver has begun a capture and the call that asked for it has not returned,
 * another thread allocates and frees.
 * "signal": a handler makes CUDA calls in the middle of another one, on each kind of stack.
 * "wait": a global capture begins while another thread's free waits for an event, if it does. */
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

#define PRINT(call) printf("%s %d\n", #call, (int)(call))

enum { BYTES = 1 << 20 };

static CUcontext context;

static CUresult allocate_and_free(void)
{
  CUdeviceptr p;
  CUresult r = cuMemAlloc(&p, BYTES);
  return r == CUDA_SUCCESS ? cuMemFree(p) : r;
}

static void *others_work(void *unused)
{
  (void)unused;
  PRINT(cuCtxSetCurrent(context));
  for (int i = 0; i < 3; i++)
    PRINT(allocate_and_free());
  return NULL;
}

static void work_in_another_thread(void)
{
  pthread_t other;
  if (pthread_create(&other, NULL, others_work, NULL) == 0) (void)pthread_join(other, NULL);
}

typedef void (*callback)(void);

static callback *hook_of(const char *name)
{
  callback *hook = NULL;
  void *found = dlsym(RTLD_DEFAULT, name);
  memcpy(&hook, &found, sizeof found);
  if (!hook) exit(1);
  return hook;
}

static void be_ready(CUdeviceptr *p)
{
  PRINT(cuInit(0));
  PRINT(cuDevicePrimaryCtxRetain(&context, 0));
  PRINT(cuCtxSetCurrent(context));
  PRINT(cuMemAlloc(p, BYTES));
}

static void capture(void)
{
  CUdeviceptr p;
  CUstream stream;
  CUgraph graph = NULL;
  callback *hook = hook_of("interposer_begun");
  be_ready(&p);
  PRINT(allocate_and_free());
  PRINT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < 2; i++) {
    *hook = work_in_another_thread;
    PRINT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    *hook = NULL;
    PRINT(cuMemsetD8Async(p, 1, BYTES, stream));
    PRINT(cuStreamEndCapture(stream, &graph));
    PRINT(allocate_and_free());
  }
}

/* ---- a capture that begins beside a wait ----------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static enum { ALLOCATING, WAITING_OR_DONE, CAPTURING } stage;

static void go_to(int next)
{
  pthread_mutex_lock(&lock);
  if ((int)stage < next) stage = next;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

static void wait_until(int reached)
{
  pthread_mutex_lock(&lock);
  while ((int)stage < reached)
    pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

/* In the other thread, inside of its free. */
static void wait_until_capturing(void)
{
  go_to(WAITING_OR_DONE);
  wait_until(CAPTURING);
}

static void *free_one(void *unused)
{
  (void)unused;
  CUresult r = cuCtxSetCurrent(context);
  if (r == CUDA_SUCCESS) r = allocate_and_free();
  go_to(WAITING_OR_DONE);
  return r == CUDA_SUCCESS ? &stage : NULL;
}

static void begin_beside_a_wait(void)
{
  CUdeviceptr p;
  CUstream stream;
  CUgraph graph = NULL;
  pthread_t other;
  void *good = NULL;
  callback *hook = hook_of("interposer_waits");
  be_ready(&p);
  PRINT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  PRINT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  PRINT(cuStreamEndCapture(stream, &graph));
  *hook = wait_until_capturing;
  if (pthread_create(&other, NULL, free_one, NULL)) exit(1);
  wait_until(WAITING_OR_DONE);
  PRINT(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  go_to(CAPTURING);
  (void)pthread_join(other, &good);
  PRINT(good == NULL);
  PRINT(cuMemsetD8Async(p, 1, BYTES, stream));
  PRINT(cuStreamEndCapture(stream, &graph));
}

/* ---- calls by a signal handler --------------------------------------------------------------- */

static void handler(int number)
{
  CUdeviceptr p = 0;
  void *q = NULL;
  (void)number;
  if (cuMemAlloc(&p, BYTES) || cuMemFree(p) || cudaMalloc(&q, BYTES) || cudaFree(q)) abort();
}

static void interrupt(void)
{
  (void)raise(SIGUSR1);
}

static void calls_by_a_handler(void)
{
  static char room[1 << 16];
  stack_t own = {.ss_sp = room, .ss_size = sizeof room};
  CUdeviceptr p;
  CUevent event;
  callback *hook = hook_of("interposer_waits");
  be_ready(&p);
  PRINT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  PRINT(sigaltstack(&own, NULL));
  for (int flags = 0; flags < 2; flags++) {
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags ? SA_ONSTACK : 0};
    PRINT(sigaction(SIGUSR1, &act, NULL));
    PRINT(raise(SIGUSR1)); /* within no call: these are events */
    *hook = interrupt;
    PRINT(cuEventSynchronize(event));
    *hook = NULL;
    PRINT(cudaDeviceSynchronize());
  }
}

/* ---- a first call ---------------------------------------------------------------------------- */

#define FIRST(name, call)                                                                          \
  static void first_##name(void)                                                                   \
  {                                                                                                \
    void *p = NULL;                                                                                \
    size_t n = 0, m = 0;                                                                           \
    char byte = 0;                                                                                 \
    (void)p, (void)n, (void)m, (void)byte;                                                         \
    printf(#name " %d\n", (int)(call));                                                            \
  }
#define DEVICE(p) ((CUdeviceptr)(uintptr_t)(p))

/* X(name, call): the driver's are refused ahead of cuInit. */
#define FIRSTS(X)                                                                                  \
  X(cudaMalloc, cudaMalloc(&p, BYTES))                                                             \
  X(cudaMallocPitch, cudaMallocPitch(&p, &n, 100, 100))                                            \
  X(cudaMallocHost, cudaMallocHost(&p, BYTES))                                                     \
  X(cudaMallocManaged, cudaMallocManaged(&p, BYTES, cudaMemAttachGlobal))                          \
  X(cudaMallocAsync, cudaMallocAsync(&p, BYTES, NULL))                                             \
  X(cudaFree, cudaFree(NULL))                                                                      \
  X(cudaFreeHost, cudaFreeHost(NULL))                                                              \
  X(cudaMemcpy, cudaMemcpy(&byte, &byte, 1, cudaMemcpyDefault))                                    \
  X(cudaMemset, cudaMemset(&byte, 0, 0))                                                           \
  X(cudaMemGetInfo, cudaMemGetInfo(&n, &m))                                                        \
  X(cudaHostRegister, cudaHostRegister(&first_page, sizeof first_page, 0))                         \
  X(cudaStreamCreate, cudaStreamCreate((cudaStream_t *)&p))                                        \
  X(cudaEventCreate, cudaEventCreate((cudaEvent_t *)&p))                                           \
  X(cudaDeviceSynchronize, cudaDeviceSynchronize())                                                \
  X(cudaDeviceReset, cudaDeviceReset())                                                            \
  X(cudaSetDevice, cudaSetDevice(0))                                                               \
  X(cudaDriverGetVersion, cudaDriverGetVersion((int *)&n))                                         \
  X(cuMemHostAlloc, cuMemHostAlloc(&p, BYTES, 0))                                                  \
  X(cuMemAllocPitch, cuMemAllocPitch((CUdeviceptr *)&p, &n, 100, 100, 4))                          \
  X(cuMemFreeHost, cuMemFreeHost(p))                                                               \
  X(cuMemcpyHtoD, cuMemcpyHtoD(DEVICE(p), &byte, 1))                                               \
  X(cuMemcpyDtoH, cuMemcpyDtoH(&byte, DEVICE(p), 1))                                               \
  X(cuMemcpy, cuMemcpy(DEVICE(&byte), DEVICE(&byte), 1))                                           \
  X(cuMemsetD8, cuMemsetD8(DEVICE(p), 0, 1))                                                       \
  X(cuStreamCreate, cuStreamCreate((CUstream *)&p, 0))                                             \
  X(cuStreamDestroy, cuStreamDestroy(NULL))                                                        \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease(0))                                       \
  X(cuModuleLoad, cuModuleLoad((CUmodule *)&p, "none"))

static char first_page[4096] __attribute__((aligned(4096)));
FIRSTS(FIRST)

/* The first call, the driver's initialisation, and what shows that all works since. */
static bool first(const char *name)
{
  static const struct {
    const char *name;
    void (*run)(void);
  } all[] = {
#define ROW(name, call) {#name, first_##name},
      FIRSTS(ROW)
#undef ROW
  };
  unsigned char *p, byte = 0;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (name && strcmp(all[i].name, name) != 0) continue;
    if (!name) puts(all[i].name);
    if (!name) continue;
    all[i].run();
    for (int turn = 0; turn < 2; turn++) {
      PRINT(cudaMalloc((void **)&p, BYTES));
      PRINT(cudaMemset(p, 7, BYTES));
      PRINT(cudaMemcpy(&byte, p, 1, cudaMemcpyDeviceToHost));
      PRINT(cudaFree(p));
      PRINT(byte);
    }
    return true;
  }
  return !name;
}

int main(int argc, char **argv)
{
  if (argc > 2 && strcmp(argv[1], "first") == 0) return !first(argv[2]);
  if (argc > 1 && strcmp(argv[1], "first") == 0) return !first(NULL);
  if (argc > 1 && strcmp(argv[1], "signal") == 0) calls_by_a_handler();
  if (argc > 1 && strcmp(argv[1], "wait") == 0) begin_beside_a_wait();
  if (argc > 1 && strcmp(argv[1], "capture") == 0) capture();
  return argc < 2;
}
