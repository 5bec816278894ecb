/* samples.c: what samples and courses show, done well: one subject each. */
#include <cuda.h>
#include <stdint.h>
#include "tests/innocents/innocents.h"

static void vector_add(void)
{
  float *x = host_floats(FLOATS), *y = host_floats(FLOATS), *z = host_floats(FLOATS);
  float *a = device_floats(FLOATS), *b = device_floats(FLOATS), *c = device_floats(FLOATS);
  CHECK(cudaMemcpy(a, x, FLOATS, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, y, FLOATS, cudaMemcpyHostToDevice));
  add(NULL, a, b, c);
  CHECK(cudaMemcpy(z, c, FLOATS, cudaMemcpyDeviceToHost));
  look(z, FLOATS);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  free(x), free(y), free(z);
}

/* A kernel next to one of a library, each timed over many launches after one to warm up. */
static void matrix_product(void)
{
  float *x = host_floats(FLOATS), *y = host_floats(FLOATS), *a = device_floats(FLOATS),
        *b = device_floats(FLOATS), *c = device_floats(FLOATS), *d = device_floats(FLOATS), ms;
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaMemcpy(a, x, FLOATS, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(b, y, FLOATS, cudaMemcpyHostToDevice));
  for (int library = 0; library < 2; library++) {
    float *to = library ? d : c;
    add(NULL, a, b, to);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaEventRecord(begin, NULL));
    for (int i = 0; i < 5 * STEPS; i++)
      add(NULL, a, b, to);
    CHECK(cudaEventRecord(end, NULL));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&ms, begin, end));
  }
  CHECK(cudaMemcpy(x, c, FLOATS, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(y, d, FLOATS, cudaMemcpyDeviceToHost));
  for (int i = 0; i < ELEMENTS; i++)
    if (x[i] < y[i] || x[i] > y[i]) exit(1);
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
  CHECK(cudaFree(d));
  free(x), free(y);
}

/* In two steps, of arrays that come one after the other. */
static void reduction(void)
{
  float *host = pinned_floats(FLOATS), *total = pinned_floats(4), *in = device_floats(FLOATS),
        *part = device_floats(FLOATS), *out = device_floats(4);
  for (int i = 0; i < STEPS; i++) {
    fill(host, FLOATS);
    CHECK(cudaMemcpyAsync(in, host, FLOATS, cudaMemcpyHostToDevice, NULL));
    step(NULL, in, part);
    sum(NULL, part, out);
    CHECK(cudaMemcpyAsync(total, out, 4, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    look(total, 4);
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(part));
  CHECK(cudaFree(out));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFreeHost(total));
}

/* An array in parts, each in a stream of its own: up, kernel, down. */
static void overlapping_streams(void)
{
  enum { PARTS = 4 };
  float *host = pinned_floats(PARTS * FLOATS), *in = device_floats(PARTS * FLOATS),
        *out = device_floats(PARTS * FLOATS);
  cudaStream_t s[PARTS];
  for (int k = 0; k < PARTS; k++)
    s[k] = new_stream();
  for (int i = 0; i < STEPS / 4; i++) {
    fill(host, PARTS * FLOATS);
    for (int k = 0; k < PARTS; k++) {
      size_t at = (size_t)k * ELEMENTS;
      CHECK(cudaMemcpyAsync(in + at, host + at, FLOATS, cudaMemcpyHostToDevice, s[k]));
      step(s[k], in + at, out + at);
      CHECK(cudaMemcpyAsync(host + at, out + at, FLOATS, cudaMemcpyDeviceToHost, s[k]));
    }
    CHECK(cudaDeviceSynchronize());
    look(host, PARTS * FLOATS);
  }
  for (int k = 0; k < PARTS; k++)
    CHECK(cudaStreamDestroy(s[k]));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaFreeHost(host));
}

/* Breadth first: all copies, then all kernels, then all copies back. */
static void breadth_first_streams(void)
{
  enum { PARTS = 8 };
  float *host = pinned_floats(PARTS * FLOATS), *in = device_floats(PARTS * FLOATS),
        *out = device_floats(PARTS * FLOATS);
  cudaStream_t s[PARTS];
  for (int k = 0; k < PARTS; k++)
    s[k] = new_stream();
  for (int i = 0; i < 8; i++) {
    fill(host, PARTS * FLOATS);
    for (size_t k = 0; k < PARTS; k++)
      CHECK(cudaMemcpyAsync(in + k * ELEMENTS, host + k * ELEMENTS, FLOATS, cudaMemcpyHostToDevice,
                            s[k]));
    for (size_t k = 0; k < PARTS; k++)
      step(s[k], in + k * ELEMENTS, out + k * ELEMENTS);
    for (size_t k = 0; k < PARTS; k++)
      CHECK(cudaMemcpyAsync(host + k * ELEMENTS, out + k * ELEMENTS, FLOATS, cudaMemcpyDeviceToHost,
                            s[k]));
    for (size_t k = 0; k < PARTS; k++)
      CHECK(cudaStreamSynchronize(s[k]));
    look(host, PARTS * FLOATS);
  }
  for (int k = 0; k < PARTS; k++)
    CHECK(cudaStreamDestroy(s[k]));
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  CHECK(cudaFreeHost(host));
}

static void graph_replay(void)
{
  float *host = pinned_floats(FLOATS), *a = device_floats(FLOATS), *b = device_floats(FLOATS);
  cudaStream_t s = new_stream();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(a, host, FLOATS, cudaMemcpyHostToDevice, s));
  for (int i = 0; i < 10; i++)
    step(s, i % 2 ? b : a, i % 2 ? a : b);
  CHECK(cudaMemcpyAsync(host, a, FLOATS, cudaMemcpyDeviceToHost, s));
  CHECK(cudaStreamEndCapture(s, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    look(host, FLOATS);
    fill(host, FLOATS);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(host));
}

/* One executable graph, of which each step changes what it reads. */
static void graph_changed(void)
{
  float *in[4], *out = device_floats(FLOATS), *host = pinned_floats(FLOATS);
  cudaStream_t s = new_stream();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  int n = ELEMENTS;
  CHECK(cudaGraphCreate(&graph, 0));
  for (int k = 0; k < 4; k++) {
    in[k] = device_floats(FLOATS);
    CHECK(cudaMemcpyAsync(in[k], host, FLOATS, cudaMemcpyHostToDevice, s));
    CHECK(cudaStreamSynchronize(s));
    fill(host, FLOATS);
  }
  void *args[] = {&in[0], &out, &n};
  struct cudaKernelNodeParams params = {.func = (void *)innocent_step_kernel(),
                                        .gridDim = {4, 1, 1},
                                        .blockDim = {64, 1, 1},
                                        .kernelParams = args};
  CHECK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < STEPS; i++) {
    args[0] = &in[i % 4];
    CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &params));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaMemcpyAsync(host, out, FLOATS, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(host, FLOATS);
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  for (int k = 0; k < 4; k++)
    CHECK(cudaFree(in[k]));
  CHECK(cudaFree(out));
  CHECK(cudaFreeHost(host));
  CHECK(cudaStreamDestroy(s));
}

/* Written by the host once, prefetched, calculated with, prefetched back, read. */
static void managed_memory(void)
{
  float *a, *b;
  struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0},
                         host = {cudaMemLocationTypeHost, 0};
  CHECK(cudaMallocManaged((void **)&a, FLOATS, cudaMemAttachGlobal));
  CHECK(cudaMallocManaged((void **)&b, FLOATS, cudaMemAttachGlobal));
  fill(a, FLOATS);
  CHECK(cudaMemPrefetchAsync(a, FLOATS, device, 0, NULL));
  CHECK(cudaMemPrefetchAsync(b, FLOATS, device, 0, NULL));
  for (int i = 0; i < STEPS; i += 2) {
    step(NULL, a, b);
    step(NULL, b, a);
  }
  CHECK(cudaMemPrefetchAsync(a, FLOATS, host, 0, NULL));
  CHECK(cudaDeviceSynchronize());
  look(a, FLOATS);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

/* While one buffer is copied and used, the host fills the other. */
static void double_buffering(void)
{
  float *host[2], *in[2], *out = device_floats(FLOATS), *total = device_floats(4), last;
  cudaEvent_t done[2];
  cudaStream_t s = new_stream();
  for (int k = 0; k < 2; k++) {
    host[k] = pinned_floats(FLOATS), in[k] = device_floats(FLOATS), done[k] = new_event();
  }
  for (int i = 0; i < STEPS; i++) {
    int k = i % 2;
    CHECK(cudaEventSynchronize(done[k]));
    fill(host[k], FLOATS);
    CHECK(cudaMemcpyAsync(in[k], host[k], FLOATS, cudaMemcpyHostToDevice, s));
    CHECK(cudaEventRecord(done[k], s));
    step(s, in[k], out);
    sum(s, out, total);
  }
  CHECK(cudaMemcpyAsync(&last, total, 4, cudaMemcpyDeviceToHost, s));
  CHECK(cudaStreamSynchronize(s));
  look(&last, 4);
  for (int k = 0; k < 2; k++) {
    CHECK(cudaEventDestroy(done[k]));
    CHECK(cudaFree(in[k]));
    CHECK(cudaFreeHost(host[k]));
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(out));
  CHECK(cudaFree(total));
}

/* Each size: once to warm up, a wait, many, a wait, with the host's clock around them. */
static void host_clock(void)
{
  float *a = device_floats(FLOATS), *b = device_floats(FLOATS);
  CHECK(cudaMemset(a, 0, FLOATS));
  for (int size = 10; size <= 14; size++) {
    CHECK((cudaError_t)innocent_launch_step(NULL, a, b, 1 << size));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < STEPS; i++)
      CHECK((cudaError_t)innocent_launch_step(NULL, a, b, 1 << size));
    CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
}

static void consume(void *p)
{
  look(p, FLOATS);
}

/* Results are taken by a function of the host's in the stream. */
static void host_functions(void)
{
  float *host[2] = {pinned_floats(FLOATS), pinned_floats(FLOATS)}, *a = device_floats(FLOATS),
        *b = device_floats(FLOATS);
  cudaStream_t s = new_stream();
  CHECK(cudaMemsetAsync(a, 0, FLOATS, s));
  for (int i = 0; i < STEPS; i++) {
    step(s, i % 2 ? b : a, i % 2 ? a : b);
    CHECK(cudaMemcpyAsync(host[i % 2], i % 2 ? a : b, FLOATS, cudaMemcpyDeviceToHost, s));
    CHECK(cudaLaunchHostFunc(s, consume, host[i % 2]));
  }
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(host[0]));
  CHECK(cudaFreeHost(host[1]));
}

/* Temporary memory of a pool that keeps what it has. */
static void memory_pool(void)
{
  cudaMemPool_t pool;
  uint64_t all = UINT64_MAX;
  float *a = device_floats(FLOATS), *b = device_floats(FLOATS), *t, *host = pinned_floats(FLOATS);
  cudaStream_t s = new_stream();
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  CHECK(cudaMemcpyAsync(a, host, FLOATS, cudaMemcpyHostToDevice, s));
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaMallocAsync((void **)&t, FLOATS, s));
    step(s, a, t);
    add(s, a, t, b);
    CHECK(cudaFreeAsync(t, s));
    step(s, b, a);
    if (i % 10) continue;
    CHECK(cudaMemcpyAsync(host, a, FLOATS, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    look(host, FLOATS);
  }
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(host));
}

/* The part of a picture that is asked for, at its pitch. */
static void picture_2d(void)
{
  enum { WIDTH = 256, HEIGHT = 64 };
  size_t pitch;
  float *host = pinned_floats((size_t)WIDTH * HEIGHT * 8), *p, *q;
  CHECK(cudaMallocPitch((void **)&p, &pitch, WIDTH * 4, HEIGHT));
  CHECK(cudaMallocPitch((void **)&q, &pitch, WIDTH * 4, HEIGHT));
  for (int i = 0; i < STEPS; i++) {
    fill(host, (size_t)WIDTH * HEIGHT * 4);
    CHECK(cudaMemcpy2DAsync(p, pitch, host, WIDTH * 8, WIDTH * 4, HEIGHT, cudaMemcpyHostToDevice,
                            NULL));
    step(NULL, p, q);
    CHECK(cudaMemcpy2DAsync(host, WIDTH * 8, q, pitch, WIDTH * 4, HEIGHT, cudaMemcpyDeviceToHost,
                            NULL));
    CHECK(cudaStreamSynchronize(NULL));
    look(host, (size_t)WIDTH * HEIGHT * 8);
  }
  CHECK(cudaFree(p));
  CHECK(cudaFree(q));
  CHECK(cudaFreeHost(host));
}

/* Kernels write a flag and results where the host reads them without a copy. */
static void mapped_results(void)
{
  float *results, *a = device_floats(FLOATS), *b = device_floats(FLOATS);
  cudaEvent_t done = new_event();
  CHECK(cudaHostAlloc((void **)&results, FLOATS, cudaHostAllocMapped));
  CHECK(cudaMemset(a, 0, FLOATS));
  for (int i = 0; i < STEPS; i++) {
    step(NULL, a, b);
    step(NULL, b, a);
    sum(NULL, a, results + i);
    CHECK(cudaEventRecord(done, NULL));
    CHECK(cudaEventSynchronize(done));
    look(results + i, 4);
  }
  CHECK(cudaEventDestroy(done));
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(results));
}

#define DRIVER(call) require_success((cudaError_t)(call), #call)

/* The driver's functions alone: module, function, launch by parameters. */
static void driver_module(void)
{
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction f;
  CUstream s;
  CUdeviceptr a, b;
  int n = ELEMENTS;
  void *host, *args[] = {&a, &b, &n};
  DRIVER(cuInit(0));
  DRIVER(cuDeviceGet(&device, 0));
  DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  DRIVER(cuCtxSetCurrent(context));
  DRIVER(cuModuleLoadData(&module, innocent_ptx));
  DRIVER(cuModuleGetFunction(&f, module, "innocent_step"));
  DRIVER(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  DRIVER(cuMemAllocHost(&host, FLOATS));
  DRIVER(cuMemAlloc(&a, FLOATS));
  DRIVER(cuMemAlloc(&b, FLOATS));
  for (int i = 0; i < STEPS; i++) {
    fill(host, FLOATS);
    DRIVER(cuMemcpyHtoDAsync(a, host, FLOATS, s));
    DRIVER(cuLaunchKernel(f, 4, 1, 1, 64, 1, 1, 0, s, args, NULL));
    DRIVER(cuMemcpyDtoHAsync(host, b, FLOATS, s));
    DRIVER(cuStreamSynchronize(s));
    look(host, FLOATS);
  }
  DRIVER(cuMemFree(a));
  DRIVER(cuMemFree(b));
  DRIVER(cuMemFreeHost(host));
  DRIVER(cuStreamDestroy(s));
  DRIVER(cuModuleUnload(module));
  DRIVER(cuDevicePrimaryCtxRelease(device));
}

const program samples[] = {{"vector-add", vector_add},
                           {"matrix-product", matrix_product},
                           {"reduction", reduction},
                           {"overlapping-streams", overlapping_streams},
                           {"breadth-first-streams", breadth_first_streams},
                           {"graph-replay", graph_replay},
                           {"graph-changed", graph_changed},
                           {"managed-memory", managed_memory},
                           {"double-buffering", double_buffering},
                           {"host-clock", host_clock},
                           {"host-functions", host_functions},
                           {"memory-pool", memory_pool},
                           {"picture-2d", picture_2d},
                           {"mapped-results", mapped_results},
                           {"driver-module", driver_module},
                           {NULL, NULL}};
