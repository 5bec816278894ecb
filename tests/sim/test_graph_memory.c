/* test_graph_memory.c: what the allocation nodes of graphs allocate: when, where, and from which
 * pages. A stream is held where launches shall run at the same time, or all be queued. */
#include "graph.h"

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(size_t bytes)
{
  CUDA_MEM_ALLOC_NODE_PARAMS p = {.bytesize = bytes};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return p;
}

static cuuint64_t graph_bytes(CUgraphMem_attribute a)
{
  cuuint64_t bytes = 0;
  ok(cuDeviceGetGraphMemAttribute(0, a, &bytes));
  return bytes;
}

START_TEST(an_allocation_lives_from_its_launch_to_its_free)
{
  CUgraph g = graph();
  CUgraphNode a;
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(100);
  ok(cuGraphAddMemAllocNode(&a, g, NULL, 0, &params));
  set_node(g, a, params.dptr, 7);
  size_t before, after;
  ok(cuMemGetInfo_v2(&before, NULL));
  CUgraphExec e = instance(g), second;
  fails(cuGraphInstantiateWithFlags(&second, g, 0), CUDA_ERROR_NOT_SUPPORTED);
  CUgraph clone;
  fails(cuGraphClone(&clone, g), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuGraphDestroyNode(a), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuMemFree_v2(params.dptr), CUDA_ERROR_INVALID_VALUE);
  run(e);
  ck_assert_uint_eq(word_at(params.dptr), 7);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), GRANULE);
  CUstream s = stream();
  fails(cuGraphLaunch(e, s), CUDA_ERROR_INVALID_VALUE); /* not freed yet */
  ok(cuMemFreeAsync(params.dptr, s));
  fails(cuMemFreeAsync(params.dptr, s), CUDA_ERROR_INVALID_VALUE);
  ok(cuGraphLaunch(e, s));
  ok(cuStreamSynchronize(s));
  ok(cuMemFree_v2(params.dptr));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), GRANULE);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), GRANULE);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), GRANULE);
  ok(cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(after, before - GRANULE);
  ok(cuDeviceGraphMemTrim(0));
  ok(cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(after, before);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
  ok(cuGraphExecDestroy(e));
  ok(cuGraphDestroy(g));
}
END_TEST

/* What a program reads after a launch is the same whether the stream has come to the free or not.
 */
START_TEST(memory_of_graphs_is_used_until_it_is_trimmed)
{
  CUgraph g = graph();
  CUgraphNode a, f;
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(GRANULE);
  ok(cuGraphAddMemAllocNode(&a, g, NULL, 0, &params));
  ok(cuGraphAddMemFreeNode(&f, g, &a, 1, params.dptr));
  CUgraphExec e = instance(g);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
  CUstream s = stream();
  ok((CUresult)weir_sim_hold(s));
  ok(cuGraphLaunch(e, s));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), GRANULE);
  ok((CUresult)weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), GRANULE);
  ok(cuDeviceGraphMemTrim(0));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
  run(e);
  ok(cuGraphExecDestroy(e));
  ok(cuGraphDestroy(g));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), GRANULE);
  g = graph(); /* the pages of a graph that is gone serve the next */
  ok(cuGraphAddMemAllocNode(&a, g, NULL, 0, &params));
  ok(cuGraphAddMemFreeNode(&f, g, &a, 1, params.dptr));
  e = instance(g);
  run(e);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), GRANULE);
  ok(cuGraphExecDestroy(e));
  ok(cuGraphDestroy(g));
  ok(cuDeviceGraphMemTrim(0));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
}
END_TEST

START_TEST(an_allocation_is_freed_once_by_its_graph_or_another)
{
  CUgraph g = graph(), other = graph();
  CUgraphNode a, f;
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(3 << 20);
  ok(cuGraphAddMemAllocNode(&a, g, NULL, 0, &params));
  ok(cuGraphAddMemFreeNode(&f, g, &a, 1, params.dptr));
  fails(cuGraphAddMemFreeNode(&f, g, &a, 1, params.dptr), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphAddMemFreeNode(&f, other, NULL, 0, params.dptr), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphAddMemFreeNode(&f, g, &a, 1, device_bytes(4)), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec e = instance(g);
  run(e);
  run(e);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 2 * GRANULE);
  CUgraph third = graph();
  CUDA_MEM_ALLOC_NODE_PARAMS kept = alloc_params(4);
  ok(cuGraphAddMemAllocNode(&a, third, NULL, 0, &kept));
  ok(cuGraphAddMemFreeNode(&f, other, NULL, 0, kept.dptr));
  CUgraphExec makes = instance(third), frees = instance(other);
  CUstream s = stream();
  fails(cuGraphLaunch(frees, s), CUDA_ERROR_INVALID_VALUE);
  ok(cuGraphLaunch(makes, s));
  ok(cuGraphLaunch(frees, s));
  ok(cuGraphLaunch(makes, s));
  ok(cuStreamSynchronize(s));
  CUgraphExec automatic;
  ok(cuGraphExecDestroy(makes));
  ok(cuGraphInstantiateWithFlags(&automatic, third,
                                 CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  ok(cuGraphLaunch(automatic, s));
  ok(cuGraphLaunch(automatic, s));
  ok(cuStreamSynchronize(s));
}
END_TEST

START_TEST(a_launch_without_room_for_its_memory_fails)
{
  CUgraph g = graph();
  CUgraphNode a;
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(20 * GRANULE);
  ok(cuGraphAddMemAllocNode(&a, g, NULL, 0, &params));
  CUgraphExec e = instance(g);
  ok(weir_sim_set_memory(0, 10 * GRANULE));
  CUstream s = stream();
  fails(cuGraphLaunch(e, s), CUDA_ERROR_OUT_OF_MEMORY);
  ok(weir_sim_set_memory(0, 21 * GRANULE));
  ok(cuGraphLaunch(e, s));
  ok(cuMemFreeAsync(params.dptr, s));
  ok(cuStreamSynchronize(s));
  ok(cuMemFree_v2(device_bytes(20 * GRANULE))); /* what the graph keeps is given up for it */
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {an_allocation_lives_from_its_launch_to_its_free,
                                memory_of_graphs_is_used_until_it_is_trimmed,
                                an_allocation_is_freed_once_by_its_graph_or_another,
                                a_launch_without_room_for_its_memory_fails,
                                NULL};
  return run_tests("sim_graph_memory", tests, start);
}
