/* by_graph.h: launches of a kernel as launches of a graph that has it: with it in front (-include), what is written with
 * the one makes the calls of the other, in the same lines. A graph is made once for a kernel's memory and device. */
#ifndef WEIR_TESTS_BY_GRAPH_H
#define WEIR_TESTS_BY_GRAPH_H

#include <cuda_runtime.h>
#include "tests/victims/findings/waster.h"

enum { GRAPHS = 64 };

typedef struct kept_graph {
  float *p;
  int n, device;
  cudaGraphExec_t exec;
} kept_graph;

static __thread kept_graph kept_graphs[GRAPHS];
static __thread int kept_count;

static inline cudaGraphExec_t make_graph(float *p, int n)
{
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  void *args[] = {&p, &n};
  struct cudaKernelNodeParams how = {
      .func = (void *)victim_kernel(), .gridDim = {2, 1, 1}, .blockDim = {64, 1, 1}};
  how.kernelParams = args;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &how));
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphDestroy(graph));
  return exec;
}

/* NULL: there is no room for one more, or the stream is captured, which a launch becomes a node in. */
static inline cudaGraphExec_t graph_of(cudaStream_t s, float *p, int n)
{
  int device;
  enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
  if (s) CHECK(cudaStreamIsCapturing(s, &captured));
  if (captured != cudaStreamCaptureStatusNone) return NULL;
  CHECK(cudaGetDevice(&device));
  for (kept_graph *k = kept_graphs; k < kept_graphs + kept_count; k++)
    if (k->p == p && k->n == n && k->device == device) return k->exec;
  if (kept_count == GRAPHS) return NULL;
  kept_graph *k = &kept_graphs[kept_count++];
  *k = (kept_graph){p, n, device, make_graph(p, n)};
  return k->exec;
}

static inline cudaError_t launch_graph(cudaStream_t s, float *p, int n)
{
  cudaGraphExec_t exec = graph_of(s, p, n);
  return exec ? cudaGraphLaunch(exec, s) : (cudaError_t)victim_launch(s, p, n);
}

#define launch(s, p, n) CHECK(launch_graph(s, p, n))

#endif
