/* waste_fixed.c: programs that waste, and the same work without the waste: how long the part that
 * wastes takes is printed, so that what a finding says is saved can be held against it. */
#include <time.h>
#include <unistd.h>
#include "tests/victims/findings/fixed.h"

enum { NODES = 4000 };

static int64_t now_ns(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void work_for(int64_t ns)
{
  for (int64_t end = now_ns() + ns; now_ns() < end;)
    ;
}

static int64_t began;

void begin_part(void)
{
  CHECK(cudaDeviceSynchronize());
  began = now_ns();
}

void end_part(void)
{
  CHECK(cudaDeviceSynchronize());
  printf("%lld\n", (long long)(now_ns() - began));
}

char *pageable_memory(size_t bytes, int uniform)
{
  char *p = malloc(bytes);
  unsigned x = 1;
  for (size_t i = 0; p && i < bytes; i++)
    p[i] = uniform ? 7 : (char)((x = x * 1664525 + 1013904223) >> 24);
  return p;
}

float *used_memory(size_t bytes)
{
  float *p = (float *)(void *)device_memory(bytes);
  CHECK(cudaMemset(p, 1, bytes));
  launch(NULL, p, 64);
  return p;
}

void duplicate_transfer(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0);
  float *p = used_memory(BYTES), *result = used_memory(4096);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, result, 64);
  }
  end_part();
  CHECK(cudaFree(p));
  CHECK(cudaFree(result));
  free(host);
}

void round_trip(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 0);
  float *p = used_memory(BYTES);
  CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, p + (size_t)64 * i, 64); /* what comes back is never what went */
    CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    if (!fixed) CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
  }
  end_part();
  CHECK(cudaFree(p));
  free(host);
}

void pageable_async(int fixed, int times)
{
  char *host = fixed ? pinned_memory(BYTES) : pageable_memory(BYTES, 0);
  float *p = used_memory(BYTES);
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  begin_part();
  for (int i = 0; i < times; i++) {
    host[i]++;
    CHECK(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, s));
    launch(s, p, 64);
    CHECK(cudaStreamSynchronize(s));
  }
  end_part();
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
  if (fixed)
    CHECK(cudaFreeHost(host));
  else
    free(host);
}

void blocking_copy(int fixed, int times)
{
  enum { MUCH = 16 << 20 };
  char *host = pinned_memory(MUCH);
  float *p = used_memory(MUCH);
  begin_part();
  for (int i = 0; i < times; i++) {
    host[i]++;
    if (fixed)
      CHECK(cudaMemcpyAsync(p, host, MUCH, cudaMemcpyHostToDevice, 0));
    else
      CHECK(cudaMemcpy(p, host, MUCH, cudaMemcpyHostToDevice));
    launch(NULL, p, 64);
    work_for(4000000);
    CHECK(cudaDeviceSynchronize());
  }
  end_part();
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

void tiny_copies(int fixed, int times)
{
  size_t all = (size_t)times * PIECE;
  char *host = pinned_memory(all);
  float *p = used_memory(all);
  begin_part();
  for (int i = 0; i < times && !fixed; i++) {
    size_t at = (size_t)(i * (i + 1) / 2 % times) * PIECE; /* no step twice: no matrix */
    CHECK(cudaMemcpy((char *)p + at, host + at, PIECE, cudaMemcpyHostToDevice));
  }
  if (fixed) CHECK(cudaMemcpy(p, host, all, cudaMemcpyHostToDevice));
  launch(NULL, p, 64);
  end_part();
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

void rows_one_by_one(int fixed, int times)
{
  size_t wide = (size_t)3 * ROW;
  char *host = pinned_memory(ROWS * wide);
  float *p = used_memory((size_t)ROWS * ROW);
  begin_part();
  for (int i = 0; i < times; i++) {
    for (size_t r = 0; r < ROWS && !fixed; r++)
      CHECK(cudaMemcpy((char *)p + r * ROW, host + r * wide, ROW, cudaMemcpyHostToDevice));
    if (fixed) CHECK(cudaMemcpy2D(p, ROW, host, wide, ROW, ROWS, cudaMemcpyHostToDevice));
    launch(NULL, p, 64);
  }
  end_part();
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void work_slowly(void *unused)
{
  (void)unused;
  (void)usleep(2000);
}

/* The host has less to work for than the device; what is freed in order needs no wait. */
void hidden_wait(int fixed, int times)
{
  float **p = calloc((size_t)times, sizeof(*p));
  for (int i = 0; p && i < times; i++)
    if (fixed)
      CHECK(cudaMallocAsync((void **)&p[i], (size_t)4096 * (size_t)(i + 1), NULL));
    else
      p[i] = used_memory((size_t)4096 * (size_t)(i + 1));
  begin_part();
  for (int i = 0; p && i < times; i++) {
    launch(NULL, p[i], 64);
    CHECK(cudaLaunchHostFunc(NULL, work_slowly, NULL));
    CHECK(fixed ? cudaFreeAsync(p[i], NULL) : cudaFree(p[i]));
    work_for(1500000);
  }
  end_part();
  free(p);
}

void repeated_allocation(int fixed, int times)
{
  float *p[BLOCKS];
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int k = 0; k < BLOCKS && (!fixed || i == 0); k++)
      CHECK(cudaMalloc((void **)&p[k], BYTES));
    launch(NULL, p[0], 64);
    CHECK(cudaStreamSynchronize(NULL));
    for (int k = 0; k < BLOCKS && (!fixed || i == times - 1); k++)
      CHECK(cudaFree(p[k]));
  }
  end_part();
}

void pinned_churn(int fixed, int times)
{
  char *p = NULL;
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) CHECK(cudaMallocHost((void **)&p, BYTES));
    p[i] = 1;
    if (!fixed || i == times - 1) CHECK(cudaFreeHost(p));
  }
  end_part();
}

void constant_payload(int fixed, int times)
{
  char *host = pageable_memory(BYTES, 1);
  float *p = used_memory(BYTES);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (fixed)
      CHECK(cudaMemset(p, 7, BYTES));
    else
      CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, p, 64);
  }
  end_part();
  CHECK(cudaFree(p));
  free(host);
}

/* A graph whose nodes are nearly all in a branch that is seldom taken: to launch it takes less than to instantiate it. */
void graph_made_anew(int fixed, int times)
{
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec = NULL;
  cudaStream_t s;
  float *p = used_memory(4096);
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  launch(s, p, 64);
  CHECK(cudaStreamEndCapture(s, &graph));
  struct cudaGraphNodeParams branch = {.type = cudaGraphNodeTypeConditional,
                                       .conditional = {.type = cudaGraphCondTypeIf, .size = 1}};
  CHECK(cudaGraphConditionalHandleCreate(&branch.conditional.handle, graph, 0,
                                         cudaGraphCondAssignDefault));
  CHECK(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &branch));
  for (int i = 1; i < NODES; i++)
    CHECK(cudaGraphAddEmptyNode(&node, branch.conditional.phGraph_out[0], NULL, 0));
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    if (!fixed || i == times - 1) CHECK(cudaGraphExecDestroy(exec));
    work_for(100000);
  }
  end_part();
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
}

/* A graph of the same shape in each round, whose kernels write memory of the round: made anew, or updated. */
void graph_of_new_memory(int fixed, int times)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec = NULL;
  cudaGraphExecUpdateResultInfo result;
  cudaStream_t s;
  float **p = calloc((size_t)times, sizeof(*p));
  for (int i = 0; i < times; i++)
    p[i] = used_memory(4096);
  CHECK(cudaStreamCreate(&s));
  begin_part();
  for (int i = 0; i < times; i++) {
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    for (int k = 0; k < BLOCKS; k++)
      launch(s, p[i], 64);
    CHECK(cudaStreamEndCapture(s, &graph));
    if (fixed && i)
      CHECK(cudaGraphExecUpdate(exec, graph, &result));
    else
      CHECK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    if (!fixed || i == times - 1) CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
    work_for(100000);
  }
  end_part();
  CHECK(cudaStreamDestroy(s));
  for (int i = 0; i < times; i++)
    CHECK(cudaFree(p[i]));
  free(p);
}

/* So many launches one by one, or as one graph. */
void launch_storm(int fixed, int times)
{
  enum { LAUNCHES = 32 };
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStream_t s;
  float *p = used_memory(4096);
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  for (int k = 0; k < LAUNCHES; k++)
    launch(s, p, 64);
  CHECK(cudaStreamEndCapture(s, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  begin_part();
  for (int i = 0; i < times; i++) {
    if (fixed) CHECK(cudaGraphLaunch(exec, s));
    for (int k = 0; k < LAUNCHES && !fixed; k++)
      launch(s, p, 64);
    CHECK(cudaStreamSynchronize(s));
    work_for(50000);
  }
  end_part();
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
}

void handle_churn(int fixed, int times)
{
  cudaStream_t s;
  cudaEvent_t e;
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) {
      CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
      CHECK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    }
    CHECK(cudaEventRecord(e, s));
    CHECK(cudaEventSynchronize(e));
    if (!fixed || i == times - 1) {
      CHECK(cudaEventDestroy(e));
      CHECK(cudaStreamDestroy(s));
    }
  }
  end_part();
}

void pool_gives_back(int fixed, int times)
{
  cudaMemPool_t pool;
  cudaStream_t s;
  uint64_t all = UINT64_MAX;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  if (fixed) CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  begin_part();
  for (int i = 0; i < times; i++) {
    float *p[BLOCKS];
    for (int k = 0; k < BLOCKS; k++)
      CHECK(cudaMallocAsync((void **)&p[k], BYTES, s));
    launch(s, p[0], 64);
    for (int k = 0; k < BLOCKS; k++)
      CHECK(cudaFreeAsync(p[k], s));
    CHECK(cudaStreamSynchronize(s));
  }
  end_part();
  CHECK(cudaStreamDestroy(s));
}

const repair repairs[] = {
#define SAVING(work, ...) {#work, work},
#include "tools/bench/savings.def"
    {NULL, NULL},
};
