/* waste_steps.c: what a program does at each of its steps, and need not: copies, turns from device
 * to device, updates, memory of other sizes, code that is loaded in the first of them. */
#include <cuda.h>
#include "tests/victims/findings/waster.h"

enum { STEPS = 80, BYTES = 1 << 16, FLOATS = BYTES / sizeof(float), NODES = 4 };
enum { ATTACH = cudaMemAttachGlobal };

static void require(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS) return;
  (void)fprintf(stderr, "%s: %d\n", what, (int)r);
  exit(1);
}

#define DRIVER(call) require(call, #call)

static float *filled(size_t bytes)
{
  float *p = (float *)(void *)device_memory(bytes);
  CHECK(cudaMemset(p, 1, bytes));
  return p;
}

/* ---- copied-instead-of-swapped --------------------------------------------------------------- */

static void copied_instead_of_swapped(void)
{
  float *now = filled(BYTES), *old = filled(BYTES);
  for (int i = 0; i < STEPS; i++) {
    launch(NULL, now, 64);
    CHECK(cudaMemcpy(old, now, BYTES, cudaMemcpyDefault)); /* WASTE copied-instead-of-swapped */
  }
  CHECK(cudaFree(old));
  CHECK(cudaFree(now));
}

/* What is copied is a snapshot, which goes out while the work goes on; and half a block. */
static void copied_instead_of_swapped_twin(void)
{
  float *now = filled(BYTES), *snapshot = filled(BYTES);
  char *out = pinned_memory(BYTES);
  for (int i = 0; i < STEPS; i++) {
    launch(NULL, now, 64);
    CHECK(cudaMemcpy(snapshot, now, BYTES, cudaMemcpyDeviceToDevice));
    CHECK(cudaMemcpyAsync(out, snapshot, BYTES, cudaMemcpyDeviceToHost, NULL));
    launch(NULL, now, 64);
    CHECK(cudaMemcpy(now + FLOATS / 2, now, BYTES / 2, cudaMemcpyDeviceToDevice));
    CHECK(cudaDeviceSynchronize());
    out[i]++;
  }
  CHECK(cudaFreeHost(out));
  CHECK(cudaFree(snapshot));
  CHECK(cudaFree(now));
}

/* ---- device-ping-pong ------------------------------------------------------------------------ */

static void device_ping_pong(void)
{
  float *p = filled(4096);
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaSetDevice(1)); /* WASTE device-ping-pong */
    CHECK(cudaSetDevice(0)); /* WASTE device-ping-pong */
    launch(NULL, p, 64);
  }
  CHECK(cudaFree(p));
}

/* Each device is made current for what is recorded, or asked, there. */
static void device_ping_pong_twin(void)
{
  cudaEvent_t e;
  size_t available, total;
  CHECK(cudaSetDevice(1));
  CHECK(cudaEventCreate(&e));
  CHECK(cudaSetDevice(0));
  float *p = filled(4096);
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaSetDevice(1));
    CHECK(cudaEventRecord(e, NULL));
    CHECK(cudaSetDevice(0));
    launch(NULL, p, 64);
  }
  for (int i = 0; i < 2 * STEPS; i++) {
    CHECK(cudaSetDevice(i % 2));
    CHECK(cudaMemGetInfo(&available, &total));
  }
  CHECK(cudaFree(p));
}

/* ---- graph-updated-with-itself --------------------------------------------------------------- */

/* A graph of copies is captured for each step: of the same memory, or further on by `pace`. */
static void update_graphs(int pace)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec = NULL;
  cudaGraphExecUpdateResultInfo info;
  cudaStream_t s;
  char *p = (char *)filled(BYTES), *host = pinned_memory(BYTES);
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < NODES; k++)
      CHECK(cudaMemcpyAsync(p + (size_t)k * 4096 + (size_t)i * pace, host + (size_t)k * 4096, 2048,
                            cudaMemcpyHostToDevice, s));
    CHECK(cudaStreamEndCapture(s, &graph));
    if (!exec)
      CHECK(cudaGraphInstantiate(&exec, graph, 0));
    else
      CHECK(cudaGraphExecUpdate(exec, graph, &info)); /* WASTE graph-updated-with-itself */
    CHECK(cudaGraphDestroy(graph));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    host[i]++;
  }
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

static void graph_updated_with_itself(void)
{
  update_graphs(0);
}

static void graph_updated_with_itself_twin(void)
{
  update_graphs(8);
}

/* ---- array-for-a-scalar ---------------------------------------------------------------------- */

static void array_for_a_scalar(void)
{
  float *p = filled(BYTES), *host = malloc(BYTES);
  for (int i = 0; host && i < STEPS; i++) {
    launch(NULL, p, 64);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost)); /* WASTE array-for-a-scalar */
    if (host[0] < 0) break;
  }
  free(host);
  CHECK(cudaFree(p));
}

/* The host reads all of it, or hands it on to another device. */
static void array_for_a_scalar_twin(void)
{
  float *p = filled(BYTES), *host = malloc(BYTES), *other = malloc(BYTES), sum = 0;
  CHECK(cudaSetDevice(1));
  float *q = filled(BYTES);
  for (int i = 0; host && other && i < STEPS; i++) {
    CHECK(cudaSetDevice(0));
    launch(NULL, p, 64);
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    for (int k = 0; k < FLOATS; k++)
      sum += host[k];
    CHECK(cudaMemcpy(other, p, BYTES, cudaMemcpyDeviceToHost));
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemcpy(q, other, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, q, 64);
  }
  if (sum < 0) puts("negative");
  free(host);
  free(other);
  CHECK(cudaFree(q));
  CHECK(cudaFree(p));
}

/* ---- loaded-in-a-request --------------------------------------------------------------------- */

static const char image[] = ".version 7.0\n.target sm_50\n.address_size 64\n";

static CUmodule module;

NOINLINE static void load_module(void)
{
  if (module) return;
  DRIVER(cuModuleLoadData(&module, image)); /* WASTE loaded-in-a-request */
}

NOINLINE static void answer(float *p, float *host, int loads)
{
  if (loads) load_module();
  launch(NULL, p, 64);
  CHECK(cudaMemcpy(host, p, 4096, cudaMemcpyDeviceToHost));
}

/* Requests, each answered in a function of its own. */
NOINLINE static void serve(float *p, int loads)
{
  static float host[1024];
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaMemset(p, i, 64));
    answer(p, host, loads);
  }
}

static void loaded_in_a_request(void)
{
  float *p = filled(4096);
  serve(p, 1);
  DRIVER(cuModuleUnload(module));
  CHECK(cudaFree(p));
}

/* It is loaded before the first of them, by the same function, in a step of its own. */
static void loaded_in_a_request_twin(void)
{
  static float host[1024];
  float *p = filled(4096);
  answer(p, host, 1);
  serve(p, 1);
  DRIVER(cuModuleUnload(module));
  CHECK(cudaFree(p));
}

/* ---- managed-for-the-device ------------------------------------------------------------------ */

enum { MUCH = 4 << 20 };

static void use_managed(int by_pointer)
{
  char *p, *host = malloc(MUCH);
  float *result = filled(4096), sums[16];
  CHECK(cudaMallocManaged((void **)&p, MUCH, ATTACH)); /* WASTE managed-for-the-device */
  if (host) memset(host, 1, MUCH);
  for (int i = 0; host && i < STEPS / 8; i++) {
    if (by_pointer)
      memset(p, i, MUCH);
    else
      CHECK(cudaMemcpy(p, host, MUCH, cudaMemcpyHostToDevice));
    launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaMemcpy(sums, result, sizeof sums, cudaMemcpyDeviceToHost));
    host[i]++;
  }
  free(host);
  CHECK(cudaFree(p));
  CHECK(cudaFree(result));
}

static void managed_for_the_device(void)
{
  use_managed(0);
}

static void managed_for_the_device_twin(void)
{
  use_managed(1);
}

/* ---- resized-allocation ---------------------------------------------------------------------- */

/* A list is as long as it has to be; each step keeps memory of its own, of which some is allocated
 * between the free of the list and its next allocation, or not. */
static void resize(int between, size_t least, size_t most)
{
  float *kept[2 * STEPS], *list = filled(least);
  for (size_t i = 0; i < STEPS; i++) {
    kept[2 * i] = filled(4096 + i * 256);
    if (!between) kept[2 * i + 1] = filled(8192 + i * 256);
    size_t bytes = least + (most - least) * ((i * 37) % STEPS) / STEPS;
    CHECK(cudaFree(list));
    if (between) kept[2 * i + 1] = filled(8192 + i * 256);
    CHECK(cudaMalloc((void **)&list, bytes)); /* WASTE resized-allocation */
    launch(NULL, list, 64);
  }
  for (int i = 0; i < 2 * STEPS; i++)
    CHECK(cudaFree(kept[i]));
  CHECK(cudaFree(list));
}

static void resized_allocation(void)
{
  resize(0, 1 << 20, 2 << 20);
}

static void resized_allocation_twin(void)
{
  resize(1, 1 << 20, 2 << 20);
}

/* ---- default-stream-between ------------------------------------------------------------------ */

/* Two chains of work, and work in the default stream, on `third`, after each of their steps. */
static void work_in_three_streams(unsigned flags, float *third)
{
  cudaStream_t s[2];
  float *own[2];
  for (int k = 0; k < 2; k++) {
    CHECK(cudaStreamCreateWithFlags(&s[k], flags));
    own[k] = filled(BYTES);
  }
  for (int i = 0; i < STEPS; i++) {
    launch(s[0], own[0], 64);
    launch(s[1], own[1], 64);
    if (third)
      CHECK(cudaMemsetAsync(third, 0, 64, NULL)); /* WASTE default-stream-between */
    else
      CHECK(cudaMemcpyAsync(own[1], own[0], 64, cudaMemcpyDeviceToDevice, NULL));
    if (i % 16 == 15) CHECK(cudaDeviceSynchronize());
  }
  for (int k = 0; k < 2; k++) {
    CHECK(cudaStreamDestroy(s[k]));
    CHECK(cudaFree(own[k]));
  }
}

/* Two lanes, whose work goes on in the default stream before its end: with what the one lane has, or with both lanes'. */
static void work_in_lanes(int lanes, int both)
{
  cudaStream_t s[2];
  float *own[2];
  for (int k = 0; k < lanes; k++) {
    CHECK(cudaStreamCreate(&s[k]));
    own[k] = filled(BYTES);
  }
  for (int i = 0; i < STEPS; i++) {
    int k = i % lanes;
    CHECK(cudaStreamSynchronize(s[k]));
    launch(s[k], own[k], 64);
    if (both)
      CHECK(cudaMemcpyAsync(own[1 - k], own[k], 64, cudaMemcpyDeviceToDevice, NULL));
    else
      launch(NULL, own[k], 64);
    launch(s[k], own[k], 64);
  }
  for (int k = 0; k < lanes; k++) {
    CHECK(cudaStreamDestroy(s[k]));
    CHECK(cudaFree(own[k]));
  }
}

static void default_stream_between(void)
{
  float *third = filled(BYTES);
  work_in_three_streams(cudaStreamDefault, third);
  work_in_lanes(2, 0);
  CHECK(cudaFree(third));
}

/* Streams that need not wait; work that goes on with what both of them made; that of one stream; and when all is done. */
static void default_stream_between_twin(void)
{
  cudaStream_t s;
  float *third = filled(BYTES), *own = filled(BYTES);
  work_in_three_streams(cudaStreamNonBlocking, third);
  work_in_three_streams(cudaStreamDefault, NULL);
  work_in_lanes(2, 1);
  work_in_lanes(1, 0);
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < STEPS; i++) {
    launch(s, own, 64);
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaMemsetAsync(third, 0, 64, NULL));
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(own));
  CHECK(cudaFree(third));
}

const waster step_wasters[] = {
    {"copied-instead-of-swapped", copied_instead_of_swapped, copied_instead_of_swapped_twin, NULL},
    {"device-ping-pong", device_ping_pong, device_ping_pong_twin, NULL},
    {"graph-updated-with-itself", graph_updated_with_itself, graph_updated_with_itself_twin, NULL},
    {"array-for-a-scalar", array_for_a_scalar, array_for_a_scalar_twin, NULL},
    {"loaded-in-a-request", loaded_in_a_request, loaded_in_a_request_twin, NULL},
    {"managed-for-the-device", managed_for_the_device, managed_for_the_device_twin, NULL},
    {"resized-allocation", resized_allocation, resized_allocation_twin, NULL},
    {"default-stream-between", default_stream_between, default_stream_between_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
