/* graph.h: graphs made by hand, as the suites about them make them. */
#ifndef WEIR_TESTS_SIM_GRAPH_H
#define WEIR_TESTS_SIM_GRAPH_H

#include "sim.h"

#define GRANULE ((size_t)2 << 20)

static UNUSED CUstream stream(void)
{
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  return s;
}

static UNUSED CUgraph create_graph(void)
{
  CUgraph g;
  ok(cuGraphCreate(&g, 0));
  return g;
}

static UNUSED CUgraphExec instance(CUgraph g)
{
  CUgraphExec e = NULL;
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  return e;
}

static UNUSED unsigned word_at(CUdeviceptr p)
{
  unsigned word = 0;
  ok(cuMemcpyDtoH_v2(&word, p, 4));
  return word;
}

static UNUSED CUDA_MEMSET_NODE_PARAMS memset_words_node(CUdeviceptr p, unsigned value, size_t count)
{
  return (CUDA_MEMSET_NODE_PARAMS){
      .dst = p, .value = value, .elementSize = 4, .width = count, .height = 1};
}

static UNUSED CUgraphNode set_node(CUgraph g, CUgraphNode after, CUdeviceptr p, unsigned value)
{
  CUgraphNode n;
  CUDA_MEMSET_NODE_PARAMS params = memset_words_node(p, value, 1);
  ok(cuGraphAddMemsetNode(&n, g, &after, after ? 1 : 0, &params, primary(0)));
  return n;
}

static UNUSED void launch_and_wait(CUgraphExec e)
{
  CUstream s = stream();
  ok(cuGraphLaunch(e, s));
  ok(cuStreamSynchronize(s));
  ok(cuStreamDestroy_v2(s));
}

#endif
