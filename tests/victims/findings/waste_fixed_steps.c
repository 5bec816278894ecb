/* waste_fixed_steps.c: as waste_fixed.c, of what a program does at each step (waste_steps.c). */
#include "tests/victims/findings/fixed.h"

enum { STATE = 4 << 20, NODES = 1000 };

void copied_instead_of_swapped(int fixed, int times)
{
  float *now = used_memory(STATE), *old = used_memory(STATE);
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, now, 64);
    if (!fixed) {
      CHECK(cudaMemcpyAsync(old, now, STATE, cudaMemcpyDeviceToDevice, NULL));
    } else {
      float *other = now;
      now = old, old = other;
    }
    CHECK(cudaStreamSynchronize(NULL));
  }
  end_part();
  CHECK(cudaFree(old));
  CHECK(cudaFree(now));
}

/* The second device is set for nothing, and the first one again. */
void device_ping_pong(int fixed, int times)
{
  int devices;
  CHECK(cudaGetDeviceCount(&devices));
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int k = 0; !fixed && k < 32; k++)
      CHECK(cudaSetDevice((k + 1) % devices));
    if (!fixed) CHECK(cudaSetDevice(0));
    CHECK(cudaDeviceSynchronize());
  }
  end_part();
}

/* Kept ready for a launch that comes now and then. */
void graph_updated_with_itself(int fixed, int times)
{
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  cudaGraphExecUpdateResultInfo info;
  cudaStream_t s;
  char *p = (char *)used_memory(BYTES), *host = pinned_memory(BYTES);
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  CHECK(cudaMemcpyAsync(p, host, 64, cudaMemcpyHostToDevice, s));
  CHECK(cudaStreamEndCapture(s, &graph));
  for (int i = 1; i < NODES; i++)
    CHECK(cudaGraphAddEmptyNode(&node, graph, NULL, 0));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed) CHECK(cudaGraphExecUpdate(exec, graph, &info));
    if (i % 16 == 0) CHECK(cudaGraphLaunch(exec, s)); /* which takes longer than an update */
  }
  end_part();
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

void array_for_a_scalar(int fixed, int times)
{
  float *p = used_memory(BYTES);
  char *host = pinned_memory(BYTES);
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, p, 64);
    CHECK(cudaMemcpy(host, p, fixed ? sizeof(float) : BYTES, cudaMemcpyDeviceToHost));
    if (host[0] == 99) break;
  }
  end_part();
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

/* All results are copied, asynchronously and with a wait, in each step or in each twentieth: those that the host reads. */
void results_each_step(int fixed, int times)
{
  float *p = used_memory(BYTES), *host = (float *)(void *)pinned_memory(BYTES);
  cudaStream_t s;
  double sum = 0;
  CHECK(cudaStreamCreate(&s));
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(s, p, 64);
    if (!fixed || i % 20 == 0) CHECK(cudaMemcpyAsync(host, p, BYTES, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
    for (size_t k = 0; i % 20 == 0 && k < BYTES / sizeof(float); k++)
      sum += host[k];
    if (sum < 0) break;
  }
  end_part();
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

/* It is asked in each step, or in each tenth, how far it has come. */
void number_in_each_step(int fixed, int times)
{
  float *p = used_memory(BYTES), left = 0;
  begin_part();
  for (int i = 1; i <= times; i++) {
    launch(NULL, p, 64);
    work_for(4000);
    if (!fixed || i % 10 == 0) CHECK(cudaMemcpy(&left, p, sizeof(left), cudaMemcpyDeviceToHost));
    if (left < 0) break;
  }
  end_part();
  CHECK(cudaFree(p));
}

/* Each round has a table of its own, which is uploaded once. */
void pinned_for_one_copy(int fixed, int times)
{
  const size_t bytes = (size_t)16 * BYTES;
  char *p = (char *)used_memory(bytes), *table = NULL;
  begin_part();
  for (int i = 0; i < times; i++) {
    if (fixed)
      table = malloc(bytes);
    else
      CHECK(cudaMallocHost((void **)&table, bytes));
    if (!table) exit(1);
    memset(table, i, bytes);
    CHECK(cudaMemcpy(p, table, bytes, cudaMemcpyHostToDevice));
    if (fixed)
      free(table);
    else
      CHECK(cudaFreeHost(table));
  }
  end_part();
  CHECK(cudaFree(p));
}

void resized_allocation(int fixed, int times)
{
  size_t most = 2 * (size_t)BYTES;
  float *list = used_memory(most), *a, *b;
  begin_part();
  for (int i = 0; i < times; i++) {
    CHECK(cudaMallocAsync((void **)&a, 4096, NULL));
    CHECK(cudaMallocAsync((void **)&b, 4096, NULL));
    if (!fixed) {
      CHECK(cudaFree(list));
      CHECK(cudaMalloc((void **)&list, most - (size_t)(i * 37 % times) * 4096));
    }
    launch(NULL, list, 64);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFreeAsync(b, NULL));
    CHECK(cudaFreeAsync(a, NULL));
  }
  end_part();
  CHECK(cudaFree(list));
}

/* The same launches captured and instantiated in each step, or once. */
void graph_captured_anew(int fixed, int times)
{
  enum { LAUNCHES = 64 };
  cudaGraph_t graph = NULL;
  cudaGraphExec_t exec = NULL;
  cudaStream_t s;
  float *p = used_memory(4096);
  CHECK(cudaStreamCreate(&s));
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) {
      CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
      for (int k = 0; k < LAUNCHES; k++)
        launch(s, p, 64);
      CHECK(cudaStreamEndCapture(s, &graph));
      CHECK(cudaGraphInstantiate(&exec, graph, 0));
    }
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    if (fixed && i < times - 1) continue;
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }
  end_part();
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
}

/* Twelve kernels from places of their own, for a stream or for a graph that is captured. */
static void launch_step(cudaStream_t s, float *p)
{
  launch(s, p, 64);
  launch(s, p + 64, 64);
  launch(s, p, 32);
  launch(s, p + 128, 64);
  launch(s, p + 64, 16);
  launch(s, p, 64);
  launch(s, p + 64, 64);
  launch(s, p, 32);
  launch(s, p + 128, 64);
  launch(s, p + 64, 16);
  launch(s, p, 64);
  launch(s, p + 64, 32);
}

void step_of_short_kernels(int fixed, int times)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStream_t s;
  float *p = used_memory(4096);
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  launch_step(s, p);
  CHECK(cudaStreamEndCapture(s, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  begin_part();
  for (int i = 0; i < times; i++) {
    if (fixed)
      CHECK(cudaGraphLaunch(exec, s));
    else
      launch_step(s, p);
    CHECK(cudaStreamSynchronize(s));
  }
  end_part();
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
}
