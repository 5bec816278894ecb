/* graph.c: captures and graphs. They are the program's own work, so the preload library sees them.
 *
 * A graph is made ready as torch does it: memory that its nodes allocate and leave is freed at the
 * next launch, and nodes keep the priority of the stream they were captured in. */
#include "cuda/backend/device.h"

_Static_assert(WEIR_CAPTURE_GLOBAL == (int)CU_STREAM_CAPTURE_MODE_GLOBAL &&
                   WEIR_CAPTURE_THREAD_LOCAL == (int)CU_STREAM_CAPTURE_MODE_THREAD_LOCAL &&
                   WEIR_CAPTURE_RELAXED == (int)CU_STREAM_CAPTURE_MODE_RELAXED,
               "the modes are the driver's");

static weir_status capture_begin(void *self, void *stream, enum weir_capture_mode mode)
{
  WEIR_CUDA_CALL_SEEN(d, self, r,
                      weir_cuda.cuStreamBeginCapture(stream, (CUstreamCaptureMode)mode));
  return driver_fail(r, "cuStreamBeginCapture of %p on cuda:%d", stream, d->index);
}

static weir_status capture_end(void *self, void *stream, void **graph)
{
  const unsigned long long how = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                 CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
  CUgraph recorded = NULL;
  CUgraphExec ready = NULL;
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuStreamEndCapture(stream, &recorded));
  if (r) return driver_fail(r, "cuStreamEndCapture of %p on cuda:%d", stream, d->index);
  WEIR_CUDA_SEEN(d, r, weir_cuda.cuGraphInstantiateWithFlags(&ready, recorded, how));
  CUresult gone;
  WEIR_CUDA_SEEN(d, gone, weir_cuda.cuGraphDestroy(recorded));
  (void)gone; /* what is left of it costs host memory only */
  if (!r) *graph = ready;
  return driver_fail(r, "cuGraphInstantiateWithFlags on cuda:%d", d->index);
}

static weir_status graph_launch(void *self, void *graph, void *stream)
{
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuGraphLaunch(graph, stream));
  return driver_fail(r, "cuGraphLaunch on cuda:%d", d->index);
}

static weir_status graph_destroy(void *self, void *graph)
{
  WEIR_CUDA_CALL_SEEN(d, self, r, weir_cuda.cuGraphExecDestroy(graph));
  return driver_fail(r, "cuGraphExecDestroy on cuda:%d", d->index);
}

void cuda_graphs(weir_backend *b)
{
  b->capture_begin = capture_begin;
  b->capture_end = capture_end;
  b->graph_launch = graph_launch;
  b->graph_destroy = graph_destroy;
}
