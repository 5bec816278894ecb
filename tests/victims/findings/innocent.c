/* innocent.c: what looks like a waste of some rule, and is none, in a way that its twin does not
 * show: memory that others may use, waits that guard memory of the host or a time, results that
 * are looked at one after the other, copies that take long for what comes before them. */
#include <cuda.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { TIMES = 40, SLOW_TIMES = 8, SLOW_US = 2000, BYTES = 1 << 16, SLOTS = 4, PAGE = 4096 };

static void require(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS) return;
  (void)fprintf(stderr, "%s: %d\n", what, (int)r);
  exit(1);
}

#define DRIVER(call) require(call, #call)

static float *as_floats(void *p)
{
  return p;
}

/* Bytes that are not all alike, and others for each seed. */
static void fill_bytes(char *host, size_t bytes, int seed)
{
  for (size_t i = 0; i < bytes; i++)
    host[i] = (char)((size_t)seed * 37 + i * 7 + i / 256);
}

/* ---- memory that others may use -------------------------------------------------------------- */

/* What nobody else could have read, or written, this would be a waste of: written three times, read
 * back three times, and freed. */
static void use_for_others(void *p)
{
  static char host[BYTES];
  static int fills;
  for (int i = 0; i < 3; i++) {
    CHECK(cudaMemset(p, 0, BYTES));
    fill_bytes(host, BYTES, ++fills);
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
  }
  for (int i = 0; i < 3; i++)
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
}

static void given_by_handle(void)
{
  cudaIpcMemHandle_t handle;
  for (int i = 0; i < 2 * SLOW_TIMES; i++) {
    char *p = device_memory(BYTES);
    CHECK(cudaIpcGetMemHandle(&handle, p));
    if (i % 2) use_for_others(p);
    CHECK(cudaFree(p));
  }
}

static void given_by_attribute(void)
{
  unsigned on = 1;
  char *p = device_memory(BYTES);
  DRIVER(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)p));
  use_for_others(p);
  CHECK(cudaFree(p));
}

static void given_physical(void)
{
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle;
  CUdeviceptr p;
  size_t bytes = 2 << 20;
  int file = -1;
  CHECK(cudaFree(NULL));
  DRIVER(cuMemCreate(&handle, bytes, &prop, 0));
  DRIVER(cuMemAddressReserve(&p, bytes, 0, 0, 0));
  DRIVER(cuMemMap(p, bytes, 0, handle, 0));
  DRIVER(cuMemSetAccess(p, bytes, &access, 1));
  DRIVER(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  use_for_others((void *)(uintptr_t)p);
  DRIVER(cuMemUnmap(p, bytes));
  DRIVER(cuMemRelease(handle));
  DRIVER(cuMemAddressFree(p, bytes));
  (void)close(file);
}

static void given_pool(void)
{
  struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                   .handleTypes = cudaMemHandleTypePosixFileDescriptor,
                                   .location = {cudaMemLocationTypeDevice, 0}};
  cudaMemPool_t pool;
  int file = -1;
  void *p;
  CHECK(cudaMemPoolCreate(&pool, &props));
  CHECK(cudaMemPoolExportToShareableHandle(&file, pool, cudaMemHandleTypePosixFileDescriptor, 0));
  CHECK(cudaMallocFromPoolAsync(&p, BYTES, pool, NULL));
  use_for_others(p);
  CHECK(cudaFreeAsync(p, NULL));
  CHECK(cudaMemPoolDestroy(pool));
  (void)close(file);
}

/* The other side: what is written into memory of the parent is for the parent. */
static int use_of_parent(int from, int to)
{
  cudaIpcMemHandle_t handle;
  void *p;
  if (read(from, &handle, sizeof handle) != sizeof handle) return 1;
  CHECK(cudaIpcOpenMemHandle(&p, handle, cudaIpcMemLazyEnablePeerAccess));
  use_for_others(p);
  CHECK(cudaIpcCloseMemHandle(p));
  return write(to, "", 1) != 1;
}

static void taken_from_another(void)
{
  int there[2], back[2], status = 1;
  char done;
  if (pipe(there) || pipe(back)) exit(1);
  pid_t child = fork();
  if (!child) exit(use_of_parent(there[0], back[1]));
  cudaIpcMemHandle_t handle;
  char *p = device_memory(BYTES);
  CHECK(cudaIpcGetMemHandle(&handle, p));
  if (write(there[1], &handle, sizeof handle) != sizeof handle || read(back[0], &done, 1) != 1)
    exit(1);
  CHECK(cudaFree(p));
  if (child < 0 || waitpid(child, &status, 0) != child || status) exit(1);
}

/* ---- waits that guard ------------------------------------------------------------------------ */

static void look_behind_kernels(float *p)
{
  float sum = 0;
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, p, 64);
    CHECK(cudaStreamSynchronize(NULL));
    sum += ((volatile float *)p)[i];
  }
  if (sum < 0) (void)printf("%g\n", (double)sum);
}

static void look_at_managed(void)
{
  float *p;
  CHECK(cudaMallocManaged((void **)&p, BYTES, cudaMemAttachGlobal));
  memset(p, 0, BYTES);
  look_behind_kernels(p);
  CHECK(cudaFree(p));
}

static void look_at_pinned(void)
{
  char *p = pinned_memory(BYTES);
  look_behind_kernels(as_floats(p));
  CHECK(cudaFreeHost(p));
}

static void look_at_registered(void)
{
  void *p = aligned_alloc(PAGE, BYTES);
  memset(p, 0, BYTES);
  CHECK(cudaHostRegister(p, BYTES, cudaHostRegisterMapped));
  look_behind_kernels(p);
  CHECK(cudaHostUnregister(p));
  free(p);
}

/* The buffer is written again as soon as it has been read. */
static void refill(void)
{
  char *host = pinned_memory(BYTES), *p = device_memory(BYTES);
  for (int i = 0; i < TIMES; i++) {
    fill_bytes(host, BYTES, i);
    CHECK(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, NULL));
    launch(NULL, as_floats(p), 64);
    CHECK(cudaStreamSynchronize(NULL));
  }
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

/* Of an event that has not come the time is not known. */
static void take_times(void)
{
  char *p = device_memory(BYTES);
  cudaEvent_t begin, end;
  float ms;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaEventRecord(begin, NULL));
    launch(NULL, as_floats(p), 64);
    CHECK(cudaEventRecord(end, NULL));
    if (i % 2)
      CHECK(cudaEventSynchronize(end));
    else
      CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventElapsedTime(&ms, begin, end));
  }
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFree(p));
}

typedef struct watched {
  cudaEvent_t done;
  atomic_bool over;
} watched;

/* Asks as a watchdog does, and queues nothing. */
static void *ask_now_and_then(void *context)
{
  watched *w = context;
  while (!atomic_load(&w->over)) {
    (void)cudaEventQuery(w->done);
    (void)usleep(100);
  }
  return NULL;
}

static void wait_some_time(void *unused)
{
  (void)unused;
  (void)usleep(SLOW_US);
}

/* One thread queues and waits; another looks now and then how far that is. */
static void watched_by_another(void)
{
  char *p = device_memory(BYTES);
  watched w = {.over = false};
  pthread_t other;
  CHECK(cudaEventCreateWithFlags(&w.done, cudaEventDisableTiming));
  if (pthread_create(&other, NULL, ask_now_and_then, &w)) exit(1);
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, as_floats(p), 64);
    CHECK(cudaLaunchHostFunc(NULL, wait_some_time, NULL));
    CHECK(cudaEventRecord(w.done, NULL));
    CHECK(cudaEventSynchronize(w.done));
  }
  atomic_store(&w.over, true);
  (void)pthread_join(other, NULL);
  CHECK(cudaEventDestroy(w.done));
  CHECK(cudaFree(p));
}

/* Each slot's result is looked at behind its own event, and the slot is used again. */
static void drain(void)
{
  char *p[SLOTS], *host[SLOTS];
  cudaStream_t s[SLOTS];
  cudaEvent_t e[SLOTS];
  int sum = 0;
  for (int k = 0; k < SLOTS; k++) {
    p[k] = device_memory(BYTES), host[k] = pinned_memory(BYTES);
    CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&e[k], cudaEventDisableTiming));
  }
  for (int i = 0; i < TIMES; i++) {
    for (int k = 0; k < SLOTS; k++) {
      launch(s[k], as_floats(p[k]), 64);
      CHECK(cudaMemcpyAsync(host[k], p[k], BYTES, cudaMemcpyDeviceToHost, s[k]));
      CHECK(cudaEventRecord(e[k], s[k]));
    }
    for (int k = 0; k < SLOTS; k++) {
      CHECK(cudaEventSynchronize(e[k]));
      sum += host[k][i];
      CHECK(cudaMemsetAsync(p[k], sum & 1, BYTES, s[k]));
    }
  }
  CHECK(cudaDeviceSynchronize());
  for (int k = 0; k < SLOTS; k++) {
    CHECK(cudaFree(p[k]));
    CHECK(cudaFreeHost(host[k]));
    CHECK(cudaStreamDestroy(s[k]));
    CHECK(cudaEventDestroy(e[k]));
  }
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void work_slowly(void *unused)
{
  (void)unused;
  (void)usleep(SLOW_US);
}

/* The copy takes as long as what comes before it: pinned memory would shorten its own part
 * alone. */
static void copy_behind_work(void)
{
  char *host = malloc(2 * BYTES), *p = device_memory(2 * BYTES);
  for (int i = 0; i < SLOW_TIMES; i++) {
    CHECK(cudaLaunchHostFunc(NULL, work_slowly, NULL));
    CHECK(cudaMemcpyAsync(host, p, 2 * BYTES, cudaMemcpyDeviceToHost, NULL));
    launch(NULL, as_floats(p), 64);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
  free(host);
}

/* Without the wait the free would wait. */
static void wait_then_free(void)
{
  char *p[TIMES], *results = device_memory(BYTES), *host = malloc(BYTES);
  for (int i = 0; i < TIMES; i++) {
    p[i] = device_memory(BYTES);
    launch(NULL, as_floats(p[i]), 64);
  }
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, as_floats(results), 64);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(p[i]));
    CHECK(cudaMemcpy(host, results, BYTES, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(results));
  free(host);
}

/* The same buffer each time, with other bytes. */
static void upload(char *host)
{
  static int bytes;
  char *p = device_memory(BYTES);
  for (int i = 0; i < TIMES; i++) {
    memset(host, ++bytes, BYTES);
    host[0] = (char)~bytes;
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, as_floats(p), 64);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

static void upload_changed(void)
{
  char *host = malloc(BYTES), *pinned = pinned_memory(BYTES);
  upload(host);
  upload(pinned);
  CHECK(cudaFreeHost(pinned));
  free(host);
}

enum { PICTURE = 1 << 18 };

/* Changes a byte of each so many, another one each time. */
static void change_all_over(unsigned char *p, int apart, int time)
{
  for (int at = time % apart; at < PICTURE; at += apart)
    p[at] = (unsigned char)(p[at] * 5 + 3);
}

/* To so many buffers in turn, of which each gets what has no part in common with what it had; the first is of zeros. */
static void upload_pictures(int slots, int apart)
{
  unsigned char *host[SLOTS];
  char *p[SLOTS];
  for (int i = 0; i < slots; i++) {
    host[i] = calloc(1, PICTURE);
    p[i] = device_memory(PICTURE);
  }
  for (int i = 0; i < slots * 2 * TIMES; i++) {
    unsigned char *of = host[i % slots];
    CHECK(cudaMemcpy(p[i % slots], of, PICTURE, cudaMemcpyHostToDevice));
    launch(NULL, as_floats(p[i % slots]), 64);
    change_all_over(of, apart, i);
    if (i < slots) change_all_over(of, 1, i);
  }
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < slots; i++) {
    CHECK(cudaFree(p[i]));
    free(host[i]);
  }
}

/* Pictures that differ a little all over; entries of a table, a few in each part; slots of a ring; buffers in turn. */
static void uploads_differ(void)
{
  upload_pictures(1, 64);
  upload_pictures(1, 4096);
  upload_pictures(2, 1024);
  upload_pictures(SLOTS, 512);
}

/* A table of which a few entries change goes into memory that something else has filled since. */
static void uploads_restore(void)
{
  unsigned char *host = calloc(1, PICTURE);
  char *p = device_memory(PICTURE), *other = device_memory(PICTURE);
  CHECK(cudaMemset(other, 1, PICTURE));
  for (int i = 0; host && i < PICTURE; i++)
    host[i] = (unsigned char)(i * 2654435761u >> 13);
  for (int i = 0; host && i < 2 * TIMES; i++) {
    host[i * 64]++;
    CHECK(cudaMemcpy(p, host, PICTURE, cudaMemcpyHostToDevice));
    launch(NULL, as_floats(p), 64);
    CHECK(cudaMemcpyAsync(p, other, PICTURE, cudaMemcpyDeviceToDevice, NULL));
    launch(NULL, as_floats(p), 64);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
  CHECK(cudaFree(other));
  free(host);
}

/* A small state that the host brings up to date between: of its bytes one is another one each time. */
static void state_changed(void)
{
  enum { STATE = 256 };
  unsigned char *state = (unsigned char *)pinned_memory(STATE),
                *p = (unsigned char *)device_memory(STATE);
  for (int i = 0; i < STATE; i++)
    state[i] = (unsigned char)i;
  for (int i = 0; i < 2 * TIMES; i++) {
    CHECK(cudaMemcpyAsync(p, state, STATE, cudaMemcpyHostToDevice, NULL));
    launch(NULL, as_floats(p), STATE / sizeof(float));
    CHECK(cudaMemcpy(state, p, STATE, cudaMemcpyDeviceToHost));
    state[i % STATE]++;
  }
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(state));
}

/* Returns a graph (new) that writes a buffer, with so many memsets between. */
static cudaGraphExec_t captured_graph(cudaStream_t s, float *p, int memsets)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  launch(s, p, 64);
  for (int i = 0; i < memsets; i++)
    CHECK(cudaMemsetAsync(p + 64, 0, 64, s));
  launch(s, p, 64);
  CHECK(cudaStreamEndCapture(s, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaGraphLaunch(exec, s));
  return exec;
}

/* Graphs of one shape, each for a buffer of its own, are kept and launched again; of others, each has another shape than
 * the one before. */
static void graphs_of_buffers(void)
{
  enum { KEPT = 16 };
  cudaGraphExec_t kept[KEPT];
  float *p[KEPT];
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < KEPT; i++)
    p[i] = as_floats(device_memory(PAGE));
  for (int i = 0; i < KEPT; i++)
    kept[i] = captured_graph(s, p[i], 1);
  for (int i = 0; i < 4 * KEPT; i++)
    CHECK(cudaGraphLaunch(kept[i % KEPT], s));
  for (int i = 0; i < KEPT; i++)
    CHECK(cudaGraphExecDestroy(kept[i]));
  for (int i = 0; i < KEPT; i++)
    CHECK(cudaGraphExecDestroy(captured_graph(s, p[i], i % 2)));
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaStreamDestroy(s));
  for (int i = 0; i < KEPT; i++)
    CHECK(cudaFree(p[i]));
}

static void interrupt(int number)
{
  (void)number;
  (void)usleep(60);
}

/* Launches some of which are interrupted: first with a copy between that waits for them, then of
 * more than a queue holds elsewhere. None waits for room. */
static void interrupted_launches(void)
{
  struct sigaction act = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
  struct itimerval often = {{0, 400}, {0, 400}}, never = {{0, 0}, {0, 0}};
  char host[16], *p = device_memory(4096);
  CHECK((cudaError_t)(sigaction(SIGALRM, &act, NULL) || setitimer(ITIMER_REAL, &often, NULL)));
  for (int i = 0; i < 6000; i++) {
    launch(NULL, as_floats(p), 64);
    if (i < 3000 && i % 50 == 49) CHECK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
  }
  CHECK((cudaError_t)setitimer(ITIMER_REAL, &never, NULL));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

/* Asks for each attribute once, and then, again and again, what has another answer each time. */
static void asks_for_each(void)
{
  enum { ATTRIBUTES = 100 };
  char *p = device_memory(4096);
  cudaEvent_t event;
  int known = 0, value, device;
  for (int i = 1; i <= ATTRIBUTES; i++)
    known += cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)i, 0) == cudaSuccess;
  (void)cudaGetLastError(); /* of those that there are not */
  CHECK((cudaError_t)(known < ATTRIBUTES / 2));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int i = 0; i < 2 * TIMES; i++) {
    CHECK(cudaGetDevice(&device));
    launch(NULL, as_floats(p), 64);
    CHECK(cudaMemsetAsync(p + 1024, device, 64, NULL));
    CHECK(cudaEventRecord(event, NULL));
    while (cudaEventQuery(event) == cudaErrorNotReady)
      (void)cudaGetLastError();
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(p));
}

/* A step's end: a moment, a memset, and the host looks until the work is done. */
static void end_step(cudaEvent_t event, char *p, int i)
{
  (void)usleep(SLOW_US);
  CHECK(cudaMemsetAsync(p + 1024, i, 64, NULL));
  CHECK(cudaEventRecord(event, NULL));
  while (cudaEventQuery(event) == cudaErrorNotReady)
    (void)cudaGetLastError();
}

/* State that kernels alone use, step by step, as an optimizer's: no call but the first names it. */
static void used_by_kernels(void)
{
  const size_t bytes = (size_t)64 << 20;
  char *state = device_memory(bytes), *p;
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaMemset(state, 0, bytes));
  p = device_memory(4096);
  for (int i = 0; i < 2 * TIMES; i++) {
    launch(NULL, as_floats(state + (size_t)i * 4096), 64);
    end_step(event, p, i);
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(p));
  CHECK(cudaFree(state));
}

/* So many steps that a busy machine's start of the program is less than half of the run. */
enum { STATE = 8 << 20, IDLE_STEPS = 8 * TIMES };

/* A block that two launches are handed, which the host waits for. */
static float *used_state(void)
{
  char *state = device_memory(STATE);
  CHECK(cudaMemset(state, 0, STATE));
  for (int i = 0; i < 2; i++)
    launch(NULL, as_floats(state), 64);
  CHECK(cudaDeviceSynchronize());
  return as_floats(state);
}

/* The kernel goes on with other memory, and nothing uses the block again: it is freed first, or
 * last. */
static void hand_no_more(int freed)
{
  float *state = used_state();
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  if (freed) CHECK(cudaFree(state));
  char *p = device_memory(4096);
  for (int i = 0; i < IDLE_STEPS; i++) {
    launch(NULL, as_floats(p), 64);
    end_step(event, p, i);
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(p));
  if (!freed) CHECK(cudaFree(state));
}

/* A graph of the launch, with other memory copied within the device after it. */
static cudaGraphExec_t graph_of_step(float *handed, char *to, const char *from)
{
  cudaStream_t s;
  cudaGraph_t graph;
  cudaGraphExec_t step;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  launch(s, handed, 64);
  CHECK(cudaMemcpyAsync(to, from, 4096, cudaMemcpyDeviceToDevice, s));
  CHECK(cudaMemsetAsync(to + 4096, 0, 4096, s));
  CHECK(cudaStreamEndCapture(s, &graph));
  CHECK(cudaGraphInstantiate(&step, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(s));
  return step;
}

/* Two launches of a graph have the block in their kernel; those of another one copy a page of it, or of other memory. */
static void hand_no_more_in_graphs(int copied)
{
  char *state = device_memory(STATE), *p = device_memory(STATE / 16);
  cudaGraphExec_t first = graph_of_step(as_floats(state), p, p + 8192),
                  then = graph_of_step(as_floats(p), p + 16384, copied ? state : p + 8192);
  cudaEvent_t event;
  CHECK(cudaMemset(state, 0, STATE));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  for (int i = 0; i < 2; i++)
    CHECK(cudaGraphLaunch(first, NULL));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < IDLE_STEPS; i++) {
    CHECK(cudaGraphLaunch(then, NULL));
    end_step(event, p, i);
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaGraphExecDestroy(first));
  CHECK(cudaGraphExecDestroy(then));
  CHECK(cudaFree(p));
  CHECK(cudaFree(state));
}

static void handed_no_more_in_graphs(void)
{
  hand_no_more_in_graphs(0);
}

static void copied_in_graphs(void)
{
  hand_no_more_in_graphs(1);
}

static void handed_no_more(void)
{
  hand_no_more(0);
}

static void handed_then_freed(void)
{
  hand_no_more(1);
}

/* One kernel is handed it, once, and others with other memory follow. */
static void hand_once(size_t bytes)
{
  char *state = device_memory(bytes), *p = device_memory(4096);
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaMemset(state, 0, bytes));
  launch(NULL, as_floats(state), 64);
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < IDLE_STEPS; i++) {
    launch(NULL, as_floats(p), 64);
    end_step(event, p, i);
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(p));
  CHECK(cudaFree(state));
}

static void handed_once(void)
{
  hand_once((size_t)8 << 20);
}

static void small_handed_once(void)
{
  hand_once((size_t)2 << 20);
}

/* From then on its address is in a table alone, which was uploaded after the last launch. */
static void used_by_table(void)
{
  float *state = used_state();
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  char *p = device_memory(4096);
  CHECK(cudaMemcpy(p, (const void *)&state, sizeof(state), cudaMemcpyHostToDevice));
  for (int i = 0; i < IDLE_STEPS; i++) {
    CHECK((cudaError_t)victim_follow_launch(NULL, (float *const *)(void *)p, 64));
    end_step(event, p, i);
  }
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(p));
  CHECK(cudaFree(state));
}

/* It is copied once, and read by kernels where it is. */
static void copied_then_read(void)
{
  const size_t bytes = (size_t)64 << 20;
  char *host = pinned_memory(bytes), *p = device_memory(bytes);
  CHECK(cudaMemcpy(p, host, bytes, cudaMemcpyHostToDevice));
  for (int i = 0; i < TIMES; i++)
    launch(NULL, as_floats(host), 64);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

/* The device's memory is at its peak before; then a block waits, and most of the device is free. */
static void idle_below_the_peak(void)
{
  char *much = device_memory((size_t)64 << 20);
  launch(NULL, as_floats(much), 64);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(much));
  char *state = device_memory((size_t)16 << 20), *p = device_memory(2 * BYTES);
  CHECK(cudaMemset(state, 0, BYTES));
  for (int i = 0; i < 2 * TIMES; i++) {
    (void)usleep(SLOW_US);
    CHECK(cudaMemcpy(p, p + BYTES, BYTES, cudaMemcpyDeviceToDevice));
  }
  CHECK(cudaFree(p));
  CHECK(cudaFree(state));
}

static cudaTextureObject_t texture_of(void *p, size_t bytes)
{
  cudaTextureObject_t texture;
  struct cudaTextureDesc how = {.readMode = cudaReadModeElementType};
  struct cudaResourceDesc of = {.resType = cudaResourceTypeLinear};
  of.res.linear.devPtr = p;
  of.res.linear.sizeInBytes = bytes;
  of.res.linear.desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  CHECK(cudaCreateTextureObject(&texture, &of, &how, NULL));
  return texture;
}

/* The kernel that wrote the block reads it from then on: as a texture, whose handle it is handed. */
static void used_by_texture(void)
{
  char *state = device_memory(STATE), *p = device_memory(4096), *out;
  cudaTextureObject_t first = texture_of(p, 1024), rest = texture_of(state, STATE);
  cudaEvent_t event;
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  CHECK(cudaMemset(p, 0, 4096));
  for (int i = 0; i < 2; i++)
    CHECK((cudaError_t)victim_fetch_launch(NULL, first, as_floats(state), 64));
  CHECK(cudaDeviceSynchronize());
  out = device_memory(4096);
  for (int i = 0; i < 2 * TIMES; i++) {
    CHECK((cudaError_t)victim_fetch_launch(NULL, rest, as_floats(out), 64));
    end_step(event, out, i);
  }
  CHECK(cudaDestroyTextureObject(first));
  CHECK(cudaDestroyTextureObject(rest));
  CHECK(cudaEventDestroy(event));
  CHECK(cudaFree(p));
  CHECK(cudaFree(out));
  CHECK(cudaFree(state));
}

/* A quota refuses memory of which the driver has enough: nothing was freed, so nothing is in
 * pieces. */
static void refused_by_quota(void)
{
  void *held[3] = {NULL}, *refused = NULL;
  size_t left, all;
  CHECK((cudaError_t)setenv("WEIR_SIM_FAIL",
                            "cuMemAlloc_v2:4=2,cuMemAlloc_v2:5=2,cuMemAlloc_v2:6=2,"
                            "cuMemAlloc_v2:7=2,cuMemAlloc_v2:8=2",
                            1));
  for (int i = 0; i < 3; i++)
    held[i] = device_memory(10 << 20);
  for (int i = 0; i < 6; i++)
    launch(NULL, as_floats(held[i % 3]), 64);
  if (cudaMalloc(&refused, 10 << 20) != cudaErrorMemoryAllocation) abort();
  CHECK(cudaMemGetInfo(&left, &all));
  CHECK(cudaDeviceSynchronize());
  for (int i = 0; i < 3; i++)
    CHECK(cudaFree(held[i]));
}

const innocent innocents[] = {{"given-by-handle", given_by_handle},
                              {"given-by-attribute", given_by_attribute},
                              {"given-physical", given_physical},
                              {"given-pool", given_pool},
                              {"taken-from-another", taken_from_another},
                              {"look-at-managed", look_at_managed},
                              {"look-at-pinned", look_at_pinned},
                              {"look-at-registered", look_at_registered},
                              {"refill", refill},
                              {"take-times", take_times},
                              {"watched-by-another", watched_by_another},
                              {"drain", drain},
                              {"copy-behind-work", copy_behind_work},
                              {"wait-then-free", wait_then_free},
                              {"upload-changed", upload_changed},
                              {"uploads-differ", uploads_differ},
                              {"uploads-restore", uploads_restore},
                              {"state-changed", state_changed},
                              {"graphs-of-buffers", graphs_of_buffers},
                              {"interrupted-launches", interrupted_launches},
                              {"asks-for-each", asks_for_each},
                              {"used-by-kernels", used_by_kernels},
                              {"handed-no-more", handed_no_more},
                              {"handed-no-more-in-graphs", handed_no_more_in_graphs},
                              {"copied-in-graphs", copied_in_graphs},
                              {"handed-then-freed", handed_then_freed},
                              {"handed-once", handed_once},
                              {"small-handed-once", small_handed_once},
                              {"used-by-table", used_by_table},
                              {"used-by-texture", used_by_texture},
                              {"copied-then-read", copied_then_read},
                              {"idle-below-the-peak", idle_below_the_peak},
                              {"refused-by-quota", refused_by_quota},
                              {"order-of-a-pipeline", order_of_a_pipeline},
                              {"order-of-two-buffers", order_of_two_buffers},
                              {"order-of-a-cache", order_of_a_cache},
                              {"order-of-a-ring", order_of_a_ring},
                              {"order-of-a-join", order_of_a_join},
                              {"order-of-a-host-function", order_of_a_host_function},
                              {"order-of-a-table", order_of_a_table},
                              {"order-of-a-pool", order_of_a_pool},
                              {"order-now-and-then", order_now_and_then},
                              {"chunks-in-streams", chunks_in_streams},
                              {NULL, NULL}};
