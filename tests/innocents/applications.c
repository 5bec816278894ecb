/* applications.c: programs as they are deployed: pipelines, services, trainings, tools. What most
 * of them have, a job makes: a stream, a page-locked buffer and two blocks on the device. */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <sched.h>
#include <stdint.h>
#include <unistd.h>
#include "tests/innocents/innocents.h"

typedef struct job {
  float *host, *a, *b;
  cudaStream_t s;
} job;

static job new_job(void)
{
  return (job){pinned_floats(FLOATS), device_floats(FLOATS), device_floats(FLOATS), new_stream()};
}

static void end_job(job *j)
{
  CHECK(cudaStreamDestroy(j->s));
  CHECK(cudaFree(j->a));
  CHECK(cudaFree(j->b));
  CHECK(cudaFreeHost(j->host));
}

static void upload(const job *j, size_t bytes)
{
  fill(j->host, bytes);
  CHECK(cudaMemcpyAsync(j->a, j->host, bytes, cudaMemcpyHostToDevice, j->s));
}

static void download(const job *j, const float *from, size_t bytes)
{
  CHECK(cudaMemcpyAsync(j->host, from, bytes, cudaMemcpyDeviceToHost, j->s));
  CHECK(cudaStreamSynchronize(j->s));
  look(j->host, bytes);
}

static void step_some(const job *j, int n)
{
  CHECK((cudaError_t)innocent_launch_step(j->s, j->a, j->b, n));
}

#define DRIVER(call) require_success((cudaError_t)(call), #call)

typedef struct driver {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction step;
  CUstream s;
  CUdeviceptr a[2], b[2];
  void *host[2];
} driver;

static void open_driver(driver *d)
{
  DRIVER(cuInit(0));
  DRIVER(cuDeviceGet(&d->device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&d->context, d->device));
  DRIVER(cuCtxSetCurrent(d->context));
  DRIVER(cuModuleLoadData(&d->module, innocent_ptx));
  DRIVER(cuModuleGetFunction(&d->step, d->module, "innocent_step"));
  DRIVER(cuStreamCreate(&d->s, CU_STREAM_NON_BLOCKING));
  for (int k = 0; k < 2; k++) {
    DRIVER(cuMemAllocHost(&d->host[k], FLOATS));
    DRIVER(cuMemAlloc(&d->a[k], FLOATS));
    DRIVER(cuMemAlloc(&d->b[k], FLOATS));
    fill(d->host[k], FLOATS);
  }
}

static void close_driver(driver *d)
{
  for (int k = 0; k < 2; k++) {
    DRIVER(cuMemFree(d->a[k]));
    DRIVER(cuMemFree(d->b[k]));
    DRIVER(cuMemFreeHost(d->host[k]));
  }
  DRIVER(cuStreamDestroy(d->s));
  DRIVER(cuModuleUnload(d->module));
  DRIVER(cuDevicePrimaryCtxRelease(d->device));
}

static void queue_driver(driver *d, int k)
{
  int n = ELEMENTS;
  void *args[] = {&d->a[k], &d->b[k], &n};
  DRIVER(cuMemcpyHtoDAsync(d->a[k], d->host[k], FLOATS, d->s));
  DRIVER(cuLaunchKernel(d->step, 4, 1, 1, 64, 1, 1, 0, d->s, args, NULL));
  DRIVER(cuMemcpyDtoHAsync(d->host[k], d->b[k], FLOATS, d->s));
}

/* Two slots by the driver's functions: the one is filled while the other is under way. */
static void driver_pipeline(void)
{
  driver d;
  CUevent done[2];
  open_driver(&d);
  for (int k = 0; k < 2; k++)
    DRIVER(cuEventCreate(&done[k], CU_EVENT_DISABLE_TIMING));
  for (int i = 0; i < STEPS; i++) {
    DRIVER(cuEventSynchronize(done[i % 2]));
    look(d.host[i % 2], FLOATS);
    fill(d.host[i % 2], FLOATS);
    queue_driver(&d, i % 2);
    DRIVER(cuEventRecord(done[i % 2], d.s));
  }
  DRIVER(cuStreamSynchronize(d.s));
  for (int k = 0; k < 2; k++) {
    look(d.host[k], FLOATS);
    DRIVER(cuEventDestroy(done[k]));
  }
  close_driver(&d);
}

/* Captured once by the driver's functions, launched for each input. */
static void driver_graph(void)
{
  driver d;
  CUgraph graph;
  CUgraphExec exec;
  open_driver(&d);
  DRIVER(cuStreamBeginCapture(d.s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  queue_driver(&d, 0);
  DRIVER(cuStreamEndCapture(d.s, &graph));
  DRIVER(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < STEPS; i++) {
    fill(d.host[0], FLOATS);
    DRIVER(cuGraphLaunch(exec, d.s));
    DRIVER(cuStreamSynchronize(d.s));
    look(d.host[0], FLOATS);
  }
  DRIVER(cuGraphExecDestroy(exec));
  DRIVER(cuGraphDestroy(graph));
  close_driver(&d);
}

/* A graph for each of three batch sizes, captured at start. */
static void graph_by_shape(void)
{
  enum { SHAPES = 3 };
  job j = new_job();
  cudaGraph_t graph;
  cudaGraphExec_t exec[SHAPES];
  for (int k = 0; k < SHAPES; k++) {
    CHECK(cudaStreamBeginCapture(j.s, cudaStreamCaptureModeThreadLocal));
    step_some(&j, ELEMENTS >> k);
    CHECK((cudaError_t)innocent_launch_step(j.s, j.b, j.a, ELEMENTS >> k));
    CHECK(cudaStreamEndCapture(j.s, &graph));
    CHECK(cudaGraphInstantiate(&exec[k], graph, 0));
    CHECK(cudaGraphDestroy(graph));
  }
  for (int i = 0; i < STEPS; i++) {
    size_t bytes = FLOATS >> (i % SHAPES);
    upload(&j, bytes);
    CHECK(cudaGraphLaunch(exec[i % SHAPES], j.s));
    download(&j, j.a, bytes);
  }
  for (int k = 0; k < SHAPES; k++)
    CHECK(cudaGraphExecDestroy(exec[k]));
  end_job(&j);
}

/* Requests of a queue, which three threads answer, each in its own stream. Each has had one before
 * any has a second: a thread without requests would have memory that nothing uses. */
typedef struct requests {
  pthread_mutex_t lock;
  int next, last;
  pthread_barrier_t *first; /* NULL: there is one thread */
} requests;

static void *take_requests(void *arg)
{
  requests *q = arg;
  job j = new_job();
  for (bool first = true;; first = false) {
    (void)pthread_mutex_lock(&q->lock);
    int i = q->next < q->last ? q->next++ : -1;
    (void)pthread_mutex_unlock(&q->lock);
    if (i < 0) break;
    if (first && q->first) (void)pthread_barrier_wait(q->first);
    int n = 1024 + i * 331 % (ELEMENTS - 1024);
    upload(&j, (size_t)n * 4);
    step_some(&j, n);
    download(&j, j.b, (size_t)n * 4);
  }
  end_job(&j);
  return NULL;
}

static void run_side_by_side(void *(*run)(void *), void *arg, int count)
{
  pthread_t threads[16];
  for (int i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, run, arg)) exit(1);
  for (int i = 0; i < count; i++)
    (void)pthread_join(threads[i], NULL);
}

static void request_queue(void)
{
  pthread_barrier_t first;
  requests q = {PTHREAD_MUTEX_INITIALIZER, 0, 2 * STEPS, &first};
  if (pthread_barrier_init(&first, NULL, 3)) exit(1);
  run_side_by_side(take_requests, &q, 3);
  (void)pthread_barrier_destroy(&first);
}

/* As many workers as processors: twelve, of which each has five requests of its own. */
static void *take_few(void *arg)
{
  (void)arg;
  requests q = {PTHREAD_MUTEX_INITIALIZER, 0, STEPS / 12, NULL};
  return take_requests(&q);
}

static void many_workers(void)
{
  run_side_by_side(take_few, NULL, 12);
}

/* What comes together is a batch: of one to sixteen requests. */
static void dynamic_batches(void)
{
  job j = new_job();
  for (int i = 0; i < 2 * STEPS; i++) {
    int n = (1 + i * 7 % 16) * (ELEMENTS / 16);
    upload(&j, (size_t)n * 4);
    step_some(&j, n);
    CHECK((cudaError_t)innocent_launch_add(j.s, j.a, j.b, j.a, n));
    download(&j, j.a, (size_t)n * 4);
  }
  end_job(&j);
}

/* Copies in one stream, kernels in another, two buffers between them. */
static void copy_and_work(void)
{
  job j[2] = {new_job(), new_job()};
  cudaStream_t work = new_stream();
  cudaEvent_t came[2], used[2];
  float *total = device_floats(4), last;
  for (int k = 0; k < 2; k++)
    came[k] = new_event(), used[k] = new_event();
  for (int i = 0; i < STEPS; i++) {
    int k = i % 2;
    CHECK(cudaEventSynchronize(came[k]));
    CHECK(cudaStreamWaitEvent(j[0].s, used[k], 0));
    fill(j[k].host, FLOATS);
    CHECK(cudaMemcpyAsync(j[k].a, j[k].host, FLOATS, cudaMemcpyHostToDevice, j[0].s));
    CHECK(cudaEventRecord(came[k], j[0].s));
    CHECK(cudaStreamWaitEvent(work, came[k], 0));
    step(work, j[k].a, j[k].b);
    sum(work, j[k].b, total);
    CHECK(cudaEventRecord(used[k], work));
  }
  CHECK(cudaMemcpyAsync(&last, total, 4, cudaMemcpyDeviceToHost, work));
  CHECK(cudaStreamSynchronize(work));
  look(&last, 4);
  for (int k = 0; k < 2; k++) {
    CHECK(cudaEventDestroy(came[k]));
    CHECK(cudaEventDestroy(used[k]));
    end_job(&j[k]);
  }
  CHECK(cudaStreamDestroy(work));
  CHECK(cudaFree(total));
}

/* Slopes of four small batches are added up before each update; now and then all is judged, and
 * the weights are saved. */
static void accumulated_gradients(void)
{
  job j[2] = {new_job(), new_job()};
  cudaEvent_t read[2] = {new_event(), new_event()};
  float *weight = device_floats(FLOATS), *slope = device_floats(FLOATS), *loss = device_floats(4),
        *saved = pinned_floats(FLOATS), *seen = pinned_floats(4);
  cudaStream_t s = j[0].s;
  CHECK(cudaMemsetAsync(weight, 0, FLOATS, s));
  for (int i = 1; i <= 4 * STEPS; i++) {
    const job *x = &j[i % 2];
    CHECK(cudaEventSynchronize(read[i % 2]));
    fill(x->host, FLOATS);
    if (i % 4 == 1) CHECK(cudaMemsetAsync(slope, 0, FLOATS, s));
    CHECK(cudaMemcpyAsync(x->a, x->host, FLOATS, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(read[i % 2], s));
    add(s, x->a, weight, x->b);
    add(s, slope, x->b, slope);
    if (i % 4 == 0) add(s, weight, slope, weight);
    if (i % 80 == 0) {
      sum(s, x->b, loss);
      CHECK(cudaMemcpyAsync(seen, loss, 4, cudaMemcpyDeviceToHost, s));
      CHECK(cudaMemcpyAsync(saved, weight, FLOATS, cudaMemcpyDeviceToHost, s));
      CHECK(cudaStreamSynchronize(s));
      look(seen, 4);
      look(saved, FLOATS);
    }
  }
  CHECK(cudaStreamSynchronize(s));
  for (int k = 0; k < 2; k++) {
    CHECK(cudaEventDestroy(read[k]));
    end_job(&j[k]);
  }
  CHECK(cudaFree(weight));
  CHECK(cudaFree(slope));
  CHECK(cudaFree(loss));
  CHECK(cudaFreeHost(saved));
  CHECK(cudaFreeHost(seen));
}

/* Whether it has converged is asked each fifty sweeps, of two kernels each. */
static void checks_seldom(void)
{
  job j = new_job();
  float *left = device_floats(4), host;
  upload(&j, FLOATS);
  for (int i = 1; i <= 500; i++) {
    step(j.s, j.a, j.b);
    step(j.s, j.b, j.a);
    if (i % 50) continue;
    sum(j.s, j.a, left);
    CHECK(cudaMemcpyAsync(&host, left, 4, cudaMemcpyDeviceToHost, j.s));
    CHECK(cudaStreamSynchronize(j.s));
    look(&host, 4);
  }
  download(&j, j.a, FLOATS);
  CHECK(cudaFree(left));
  end_job(&j);
}

/* Three slots; the host takes whichever is done. */
static void frames_in_slots(void)
{
  enum { SLOTS = 3 };
  job j[SLOTS];
  cudaEvent_t done[SLOTS];
  int busy[SLOTS] = {0};
  for (int k = 0; k < SLOTS; k++)
    j[k] = new_job(), done[k] = new_event();
  for (int i = 0, k = 0; i < STEPS; k = (k + 1) % SLOTS) {
    if (busy[k] && cudaEventQuery(done[k]) == cudaErrorNotReady) continue;
    (void)cudaGetLastError();
    if (busy[k]) look(j[k].host, FLOATS);
    upload(&j[k], FLOATS);
    step(j[k].s, j[k].a, j[k].b);
    CHECK(cudaMemcpyAsync(j[k].host, j[k].b, FLOATS, cudaMemcpyDeviceToHost, j[k].s));
    CHECK(cudaEventRecord(done[k], j[k].s));
    busy[k] = 1, i++;
  }
  for (int k = 0; k < SLOTS; k++) {
    CHECK(cudaEventSynchronize(done[k]));
    look(j[k].host, FLOATS);
    CHECK(cudaEventDestroy(done[k]));
    end_job(&j[k]);
  }
}

/* Each device sends its block on to the next one, in two buffers. */
static void ring_of_devices(void)
{
  int devices = 0;
  float *own[2][2];
  job j[2];
  cudaEvent_t sent[2];
  CHECK(cudaGetDeviceCount(&devices));
  if (devices > 2) devices = 2;
  for (int d = 0; d < devices; d++) {
    CHECK(cudaSetDevice(d));
    if (devices > 1 && cudaDeviceEnablePeerAccess(1 - d, 0) != cudaSuccess)
      (void)cudaGetLastError();
    j[d] = new_job(), sent[d] = new_event();
    own[d][0] = j[d].a, own[d][1] = j[d].b;
    upload(&j[d], FLOATS);
    CHECK(cudaEventRecord(sent[d], j[d].s));
  }
  for (int i = 0; i < STEPS; i++)
    for (int d = 0; d < devices; d++) {
      int to = (d + 1) % devices;
      CHECK(cudaSetDevice(d));
      CHECK(cudaStreamWaitEvent(j[d].s, sent[to], 0));
      step(j[d].s, own[d][i % 2], own[d][i % 2]);
      CHECK(cudaMemcpyPeerAsync(own[to][(i + 1) % 2], to, own[d][i % 2], d, FLOATS, j[d].s));
      CHECK(cudaEventRecord(sent[d], j[d].s));
    }
  for (int d = 0; d < devices; d++) {
    CHECK(cudaSetDevice(d));
    download(&j[d], j[d].a, FLOATS);
    CHECK(cudaEventDestroy(sent[d]));
    end_job(&j[d]);
  }
}

/* The host writes managed memory, prefetches it, reads what comes back, in phases. */
static void managed_phases(void)
{
  float *a, *b;
  cudaStream_t s = new_stream();
  struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0},
                         host = {cudaMemLocationTypeHost, 0};
  CHECK(cudaMallocManaged((void **)&a, FLOATS, cudaMemAttachGlobal));
  CHECK(cudaMallocManaged((void **)&b, FLOATS, cudaMemAttachGlobal));
  for (int phase = 0; phase < 6; phase++) {
    fill(a, FLOATS);
    CHECK(cudaMemPrefetchAsync(a, FLOATS, device, 0, s));
    for (int i = 0; i < 20; i++)
      step(s, i % 2 ? b : a, i % 2 ? a : b);
    CHECK(cudaMemPrefetchAsync(a, FLOATS, host, 0, s));
    CHECK(cudaStreamSynchronize(s));
    look(a, FLOATS);
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

/* A pool of the program's own that keeps what it has; sizes vary. */
static void own_pool(void)
{
  cudaMemPool_t pool;
  uint64_t all = UINT64_MAX;
  float *t;
  job j = new_job();
  struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                   .location = {cudaMemLocationTypeDevice, 0}};
  CHECK(cudaMemPoolCreate(&pool, &props));
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  for (int i = 0; i < STEPS; i++) {
    int n = ELEMENTS / 2 + i * 53 % (ELEMENTS / 2);
    upload(&j, (size_t)n * 4);
    CHECK(cudaMallocFromPoolAsync((void **)&t, (size_t)n * 4, pool, j.s));
    CHECK((cudaError_t)innocent_launch_step(j.s, j.a, t, n));
    CHECK((cudaError_t)innocent_launch_add(j.s, t, j.a, j.b, n));
    CHECK(cudaFreeAsync(t, j.s));
    download(&j, j.b, (size_t)n * 4);
  }
  end_job(&j);
  CHECK(cudaMemPoolDestroy(pool));
}

/* A library: its handle has a stream, an event and room to work in. */
typedef struct library {
  cudaStream_t s;
  cudaEvent_t ready;
  float *room;
} library;

static void call_library(library *l, cudaStream_t caller, const float *in, float *out)
{
  CHECK(cudaEventRecord(l->ready, caller));
  CHECK(cudaStreamWaitEvent(l->s, l->ready, 0));
  step(l->s, in, l->room);
  step(l->s, l->room, out);
  CHECK(cudaEventRecord(l->ready, l->s));
  CHECK(cudaStreamWaitEvent(caller, l->ready, 0));
}

static void library_handle(void)
{
  job j = new_job();
  library l = {new_stream(), new_event(), device_floats(FLOATS)};
  for (int i = 0; i < STEPS; i++) {
    upload(&j, FLOATS);
    call_library(&l, j.s, j.a, j.b);
    add(j.s, j.a, j.b, j.a);
    call_library(&l, j.s, j.a, j.b);
    download(&j, j.b, FLOATS);
  }
  CHECK(cudaStreamDestroy(l.s));
  CHECK(cudaEventDestroy(l.ready));
  CHECK(cudaFree(l.room));
  end_job(&j);
}

/* A kernel writes a number into mapped memory, at which the host looks until it is there. */
static void mapped_polling(void)
{
  job j = new_job();
  float *flag, *flag_there;
  volatile float *seen;
  CHECK(cudaHostAlloc((void **)&flag, 64, cudaHostAllocMapped));
  CHECK(cudaHostGetDevicePointer((void **)&flag_there, flag, 0));
  seen = flag;
  for (int i = 0; i < STEPS; i++) {
    *seen = -1;
    upload(&j, 4096);
    CHECK((cudaError_t)innocent_launch_sum(j.s, j.a, flag_there, 1024));
    while (*seen < 0)
      (void)sched_yield();
  }
  CHECK(cudaStreamSynchronize(j.s));
  CHECK(cudaFreeHost(flag));
  end_job(&j);
}

/* Some rounds to warm up, each waited for, then many between two events. */
static void warm_up(void)
{
  job j = new_job();
  cudaEvent_t begin, end;
  float ms;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  upload(&j, FLOATS);
  for (int i = 0; i < 5; i++) {
    step(j.s, j.a, j.b);
    CHECK(cudaStreamSynchronize(j.s));
  }
  CHECK(cudaEventRecord(begin, j.s));
  for (int i = 0; i < 2 * STEPS; i++)
    step(j.s, i % 2 ? j.b : j.a, i % 2 ? j.a : j.b);
  CHECK(cudaEventRecord(end, j.s));
  CHECK(cudaEventSynchronize(end));
  CHECK(cudaEventElapsedTime(&ms, begin, end));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  end_job(&j);
}

/* A few calls, and no end of what it has taken: the process ends. */
static void short_tool(void)
{
  float *host = host_floats(4096), *a = device_floats(4096), *b = device_floats(4096);
  CHECK(cudaMemcpy(a, host, 4096, cudaMemcpyHostToDevice));
  CHECK((cudaError_t)innocent_launch_step(NULL, a, b, 1024));
  CHECK(cudaMemcpy(host, b, 4096, cudaMemcpyDeviceToHost));
  look(host, 4096);
  free(host);
}

/* Something to do at each tick of a clock, nothing between. */
static void long_idle(void)
{
  job j = new_job();
  for (int i = 0; i < 10; i++) {
    (void)usleep(10000);
    upload(&j, FLOATS);
    step(j.s, j.a, j.b);
    download(&j, j.b, FLOATS);
  }
  end_job(&j);
}

/* A list that doubles when it is full. */
static void doubling_list(void)
{
  job j = new_job();
  size_t room = 4096, used = 0;
  float *list = device_floats(room);
  for (int i = 0; i < 4 * STEPS; i++) {
    if (used + 4096 > room) {
      float *larger = device_floats(2 * room);
      CHECK(cudaMemcpyAsync(larger, list, used, cudaMemcpyDeviceToDevice, j.s));
      CHECK(cudaStreamSynchronize(j.s));
      CHECK(cudaFree(list));
      list = larger, room *= 2;
    }
    upload(&j, 4096);
    CHECK((cudaError_t)innocent_launch_step(j.s, j.a, list + used / 4, 1024));
    used += 4096;
    CHECK(cudaStreamSynchronize(j.s));
  }
  CHECK(cudaMemcpy(j.host, list, 4096, cudaMemcpyDeviceToHost));
  look(j.host, 4096);
  CHECK(cudaFree(list));
  end_job(&j);
}

/* It asks for more than there is, and makes do with less. */
static void makes_do(void)
{
  job j = new_job();
  float *all = NULL;
  size_t bytes = (size_t)1 << 46;
  while (cudaMalloc((void **)&all, bytes) != cudaSuccess && bytes > FLOATS) {
    (void)cudaGetLastError();
    bytes >>= 8;
  }
  if (!all) all = device_floats(FLOATS);
  for (int i = 0; i < STEPS; i++) {
    upload(&j, FLOATS);
    step(j.s, j.a, all);
    add(j.s, j.a, all, j.b);
    download(&j, j.b, FLOATS);
  }
  CHECK(cudaFree(all));
  end_job(&j);
}

/* How large a launch is to be is asked at start. */
static void asks_at_start(void)
{
  job j = new_job();
  int blocks = 0, processors = 0;
  struct cudaFuncAttributes of;
  CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  CHECK(cudaFuncGetAttributes(&of, innocent_step_kernel()));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, innocent_step_kernel(), 64, 0));
  if (blocks < 1 || processors < 1) exit(1);
  for (int i = 0; i < STEPS; i++) {
    upload(&j, FLOATS);
    step(j.s, j.a, j.b);
    download(&j, j.b, FLOATS);
  }
  end_job(&j);
}

/* Weights are saved by a stream of its own from a copy on the device, while the work goes on. */
static void saves_aside(void)
{
  job j = new_job();
  float *kept = device_floats(FLOATS), *saved = pinned_floats(FLOATS);
  cudaStream_t aside = new_stream();
  cudaEvent_t ready = new_event(), done = new_event();
  upload(&j, FLOATS);
  for (int i = 1; i <= 4 * STEPS; i++) {
    step(j.s, j.a, j.b);
    add(j.s, j.a, j.b, j.a);
    if (i % STEPS) continue;
    CHECK(cudaEventSynchronize(done));
    CHECK(cudaMemcpyAsync(kept, j.a, FLOATS, cudaMemcpyDeviceToDevice, j.s));
    CHECK(cudaEventRecord(ready, j.s));
    CHECK(cudaStreamWaitEvent(aside, ready, 0));
    CHECK(cudaMemcpyAsync(saved, kept, FLOATS, cudaMemcpyDeviceToHost, aside));
    CHECK(cudaEventRecord(done, aside));
    CHECK(cudaStreamWaitEvent(j.s, done, 0));
  }
  CHECK(cudaStreamSynchronize(aside));
  look(saved, FLOATS);
  CHECK(cudaStreamSynchronize(j.s));
  CHECK(cudaEventDestroy(ready));
  CHECK(cudaEventDestroy(done));
  CHECK(cudaStreamDestroy(aside));
  CHECK(cudaFree(kept));
  CHECK(cudaFreeHost(saved));
  end_job(&j);
}

/* Threads that begin with each phase, as those of OpenMP: each has a part of what all use. */
typedef struct part {
  float *in, *out;
  pthread_mutex_t lock;
  int next;
} part;

static void *work_on_part(void *arg)
{
  enum { PART = ELEMENTS / 4 };
  part *p = arg;
  (void)pthread_mutex_lock(&p->lock);
  int at = p->next++ % 4 * PART;
  (void)pthread_mutex_unlock(&p->lock);
  for (int i = 0; i < 10; i++)
    CHECK((cudaError_t)innocent_launch_step(cudaStreamPerThread, p->in + at, p->out + at, PART));
  CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  return NULL;
}

static void threads_by_phase(void)
{
  float *host = pinned_floats(FLOATS);
  part p = {device_floats(FLOATS), device_floats(FLOATS), PTHREAD_MUTEX_INITIALIZER, 0};
  for (int phase = 0; phase < 8; phase++) {
    fill(host, FLOATS);
    CHECK(cudaMemcpy(p.in, host, FLOATS, cudaMemcpyHostToDevice));
    run_side_by_side(work_on_part, &p, 4);
    CHECK(cudaMemcpy(host, p.out, FLOATS, cudaMemcpyDeviceToHost));
    look(host, FLOATS);
  }
  CHECK(cudaFree(p.in));
  CHECK(cudaFree(p.out));
  CHECK(cudaFreeHost(host));
}

/* A simulation of which somebody looks at a frame now and then. */
static void looked_at(void)
{
  job j = new_job();
  upload(&j, FLOATS);
  for (int i = 1; i <= 3 * STEPS; i++) {
    step(j.s, j.a, j.b);
    add(j.s, j.a, j.b, j.a);
    if (i % 7 == 0) download(&j, j.a, FLOATS);
  }
  CHECK(cudaStreamSynchronize(j.s));
  end_job(&j);
}

/* What is urgent has a stream of higher priority. */
static void urgent_requests(void)
{
  job j = new_job(), urgent = new_job();
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(cudaStreamDestroy(urgent.s));
  CHECK(cudaStreamCreateWithPriority(&urgent.s, cudaStreamNonBlocking, greatest));
  upload(&j, FLOATS);
  for (int i = 0; i < STEPS; i++) {
    step(j.s, j.a, j.b);
    step(j.s, j.b, j.a);
    if (i % 4) continue;
    upload(&urgent, 4096);
    step_some(&urgent, 1024);
    download(&urgent, urgent.b, 4096);
  }
  download(&j, j.a, FLOATS);
  end_job(&urgent);
  end_job(&j);
}

const program applications[] = {{"driver-pipeline", driver_pipeline},
                                {"driver-graph", driver_graph},
                                {"graph-by-shape", graph_by_shape},
                                {"request-queue", request_queue},
                                {"many-workers", many_workers},
                                {"dynamic-batches", dynamic_batches},
                                {"copy-and-work", copy_and_work},
                                {"accumulated-gradients", accumulated_gradients},
                                {"checks-seldom", checks_seldom},
                                {"frames-in-slots", frames_in_slots},
                                {"ring-of-devices", ring_of_devices},
                                {"managed-phases", managed_phases},
                                {"own-pool", own_pool},
                                {"library-handle", library_handle},
                                {"mapped-polling", mapped_polling},
                                {"warm-up", warm_up},
                                {"short-tool", short_tool},
                                {"long-idle", long_idle},
                                {"doubling-list", doubling_list},
                                {"makes-do", makes_do},
                                {"asks-at-start", asks_at_start},
                                {"saves-aside", saves_aside},
                                {"threads-by-phase", threads_by_phase},
                                {"looked-at", looked_at},
                                {"urgent-requests", urgent_requests},
                                {NULL, NULL}};
