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
  CUgraph g = create_graph();
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
  launch_and_wait(e);
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
  CUgraph g = create_graph();
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
  launch_and_wait(e);
  ok(cuGraphExecDestroy(e));
  ok(cuGraphDestroy(g));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), GRANULE);
  g = create_graph(); /* the pages of a graph that is gone serve the next */
  ok(cuGraphAddMemAllocNode(&a, g, NULL, 0, &params));
  ok(cuGraphAddMemFreeNode(&f, g, &a, 1, params.dptr));
  e = instance(g);
  launch_and_wait(e);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH), GRANULE);
  ok(cuGraphExecDestroy(e));
  ok(cuGraphDestroy(g));
  ok(cuDeviceGraphMemTrim(0));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0);
}
END_TEST

START_TEST(an_allocation_is_freed_once_by_its_graph_or_another)
{
  CUgraph g = create_graph(), other = create_graph();
  CUgraphNode a, f;
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(3 << 20);
  ok(cuGraphAddMemAllocNode(&a, g, NULL, 0, &params));
  ok(cuGraphAddMemFreeNode(&f, g, &a, 1, params.dptr));
  fails(cuGraphAddMemFreeNode(&f, g, &a, 1, params.dptr), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphAddMemFreeNode(&f, other, NULL, 0, params.dptr), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphAddMemFreeNode(&f, g, &a, 1, device_bytes(4)), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec e = instance(g);
  launch_and_wait(e);
  launch_and_wait(e);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 2 * GRANULE);
  CUgraph third = create_graph();
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
  CUgraph g = create_graph();
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

/* ---- addresses and pages --------------------------------------------------------------------- */

static CUgraphNode alloc_node(CUgraph g, CUgraphNode after, size_t bytes, CUdeviceptr *p)
{
  CUgraphNode n;
  CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(bytes);
  ok(cuGraphAddMemAllocNode(&n, g, &after, after ? 1 : 0, &params));
  *p = params.dptr;
  return n;
}

static CUgraphNode free_node(CUgraph g, CUgraphNode after, CUdeviceptr p)
{
  CUgraphNode n;
  ok(cuGraphAddMemFreeNode(&n, g, &after, 1, p));
  return n;
}

static CUgraphNode copy_word(CUgraph g, CUgraphNode after, unsigned *to, CUdeviceptr from)
{
  CUgraphNode n;
  CUDA_MEMCPY3D p = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                     .srcDevice = from,
                     .dstMemoryType = CU_MEMORYTYPE_HOST,
                     .dstHost = to,
                     .WidthInBytes = 4,
                     .Height = 1,
                     .Depth = 1};
  ok(cuGraphAddMemcpyNode(&n, g, &after, 1, &p, primary(0)));
  return n;
}

START_TEST(an_allocation_after_a_free_in_its_graph_has_its_addresses)
{
  CUgraph g = create_graph();
  CUdeviceptr a, b, c, d, e, f;
  unsigned seen[2] = {0, 0};
  CUgraphNode first = alloc_node(g, NULL, 3 * GRANULE, &a);
  CUgraphNode freed = free_node(g, copy_word(g, set_node(g, first, a, 4), &seen[0], a), a);
  alloc_node(g, NULL, 3 * GRANULE, &c); /* not after the free */
  ck_assert_uint_ne(c, a);
  alloc_node(g, freed, GRANULE, &d); /* of another size */
  ck_assert_uint_ne(d, a);
  CUgraphNode between, second;
  ok(cuGraphAddEmptyNode(&between, g, &freed, 1));
  second = alloc_node(g, between, 3 * GRANULE - 5, &b);
  ck_assert_uint_eq(b, a);
  alloc_node(g, between, 3 * GRANULE, &e); /* the other's now */
  ck_assert_uint_ne(e, a);
  freed = free_node(g, copy_word(g, set_node(g, second, b, 5), &seen[1], b), b);
  CUgraphNode again;
  fails(cuGraphAddMemFreeNode(&again, g, &freed, 1, a), CUDA_ERROR_INVALID_VALUE);
  alloc_node(g, freed, 3 * GRANULE, &f);
  ck_assert_uint_eq(f, a);
  launch_and_wait(instance(g));
  ck_assert_uint_eq(seen[0], 4);
  ck_assert_uint_eq(seen[1], 5);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 10 * GRANULE);
  ok(cuMemFree_v2(f)); /* the third is not freed by the graph */
  fails(cuMemFree_v2(f), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_captured_loop_of_allocations_has_one_address)
{
  CUstream s = stream();
  CUdeviceptr p[3];
  CUgraph g;
  ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < 3; i++) {
    ok(cuMemAllocAsync(&p[i], 400, s));
    ok(cuMemsetD32Async(p[i], 9, 100, s));
    ok(cuMemFreeAsync(p[i], s));
    ck_assert_uint_eq(p[i], p[0]);
  }
  ok(cuStreamEndCapture(s, &g));
  launch_and_wait(instance(g));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), GRANULE);
}
END_TEST

#define GRAPHS 8
#define PAGES  ((size_t)3)

/* A graph that allocates, writes its number into the memory's ends, reads them, and frees. */
struct user {
  CUgraphExec exec;
  CUdeviceptr p;
  unsigned number, seen[2];
};

static void make_user(struct user *u, unsigned number, bool frees)
{
  CUgraph g = create_graph();
  CUgraphNode n = alloc_node(g, NULL, PAGES * GRANULE, &u->p);
  CUdeviceptr last = u->p + PAGES * GRANULE - 4;
  u->number = number;
  n = set_node(g, set_node(g, n, u->p, number), last, number);
  n = copy_word(g, copy_word(g, n, &u->seen[0], u->p), &u->seen[1], last);
  if (frees) free_node(g, n, u->p);
  u->exec = instance(g);
  ok(cuGraphDestroy(g));
}

static void make_users(struct user *u, bool frees)
{
  for (unsigned i = 0; i < GRAPHS; i++)
    make_user(&u[i], i + 1, frees);
}

static void check_users(struct user *u)
{
  for (unsigned i = 0; i < GRAPHS; i++) {
    ck_assert_uint_eq(u[i].seen[0], u[i].number);
    ck_assert_uint_eq(u[i].seen[1], u[i].number);
    u[i].seen[0] = u[i].seen[1] = 0;
  }
}

static void footprint_is(size_t memories)
{
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), memories * PAGES * GRANULE);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT),
                    memories * PAGES * GRANULE);
}

START_TEST(graphs_launched_in_one_stream_share_pages)
{
  struct user u[GRAPHS];
  make_users(u, true);
  footprint_is(0);
  CUstream s = stream();
  ok(weir_sim_hold(s));
  for (int i = 0; i < GRAPHS; i++) {
    ok(cuGraphLaunch(u[i].exec, s));
    footprint_is(1);
  }
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  check_users(u);
  ok(cuGraphLaunch(u[0].exec, stream())); /* the others are over: in any stream */
  footprint_is(1);
  for (int i = 0; i < GRAPHS; i++)
    ok(cuGraphExecDestroy(u[i].exec));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 0);
  ok(cuDeviceGraphMemTrim(0));
  footprint_is(0);
}
END_TEST

START_TEST(graphs_that_run_at_once_have_pages_of_their_own)
{
  struct user u[GRAPHS];
  CUstream s[GRAPHS];
  make_users(u, true);
  for (int i = 0; i < GRAPHS; i++) {
    s[i] = stream();
    ok(weir_sim_hold(s[i]));
    ok(cuGraphLaunch(u[i].exec, s[i]));
    footprint_is((size_t)i + 1);
  }
  ok(cuDeviceGraphMemTrim(0)); /* all are in use */
  footprint_is(GRAPHS);
  for (int i = GRAPHS; i--;)
    ok(weir_sim_release(s[i]));
  ok(cuCtxSynchronize());
  check_users(u);
  ok(cuDeviceGraphMemTrim(0));
  footprint_is(0);
  for (int i = 0; i < GRAPHS; i++)
    ok(cuGraphLaunch(u[i].exec, s[0])); /* mapped anew, and shared */
  footprint_is(1);
  ok(cuStreamSynchronize(s[0]));
  check_users(u);
}
END_TEST

START_TEST(a_graph_moves_to_other_pages_when_its_own_are_in_use)
{
  struct user u[GRAPHS];
  make_users(u, true);
  CUstream busy = stream(), other = stream();
  for (int i = 0; i < GRAPHS; i++)
    ok(cuGraphLaunch(u[i].exec, busy));
  ok(cuStreamSynchronize(busy));
  check_users(u);
  ok(weir_sim_hold(busy));
  ok(cuGraphLaunch(u[0].exec, busy));
  footprint_is(1);
  for (int i = 1; i < GRAPHS; i++) {
    ok(cuGraphLaunch(u[i].exec, other));
    footprint_is(2);
  }
  ok(cuStreamSynchronize(other)); /* while the first is held */
  ok(weir_sim_release(busy));
  ok(cuStreamSynchronize(busy));
  check_users(u);
}
END_TEST

START_TEST(allocations_that_are_not_freed_keep_their_pages)
{
  struct user u[GRAPHS];
  make_users(u, false);
  CUstream s = stream();
  for (size_t i = 0; i < GRAPHS; i++) {
    ok(cuGraphLaunch(u[i].exec, s));
    footprint_is(i + 1);
  }
  ok(cuStreamSynchronize(s));
  ok(cuDeviceGraphMemTrim(0));
  footprint_is(GRAPHS);
  check_users(u);
  for (unsigned i = 0; i < GRAPHS; i++) {
    ck_assert_uint_eq(word_at(u[i].p), u[i].number); /* outlives its launch */
    ok(cuMemFree_v2(u[i].p));
    footprint_is(GRAPHS);
  }
  ok(cuDeviceGraphMemTrim(0)); /* though the graphs are there still */
  footprint_is(0);
  ok(cuGraphLaunch(u[3].exec, s));
  footprint_is(1);
  ok(cuMemFreeAsync(u[3].p, s));
  ok(cuGraphLaunch(u[4].exec, s)); /* after the free, in its stream */
  footprint_is(1);
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(word_at(u[4].p), 5);
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), GRAPHS * PAGES * GRANULE);
}
END_TEST

START_TEST(graphs_of_different_sizes_share_what_they_can)
{
  CUdeviceptr p;
  CUgraph large = create_graph(), small = create_graph();
  CUgraphNode n = alloc_node(large, NULL, 5 * GRANULE, &p);
  free_node(large, n, p);
  n = alloc_node(small, NULL, 2 * GRANULE, &p);
  free_node(small, n, p);
  CUstream s = stream();
  ok(cuGraphLaunch(instance(small), s));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 2 * GRANULE);
  ok(cuGraphLaunch(instance(large), s));
  ck_assert_uint_eq(graph_bytes(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 5 * GRANULE);
}
END_TEST

START_TEST(an_upload_gives_a_graph_its_pages)
{
  struct user u;
  make_user(&u, 7, true);
  CUstream s = stream();
  ok(cuGraphUpload(u.exec, s));
  footprint_is(1);
  ok(cuGraphLaunch(u.exec, s));
  footprint_is(1);
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(u.seen[0], 7);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {an_allocation_lives_from_its_launch_to_its_free,
                                memory_of_graphs_is_used_until_it_is_trimmed,
                                an_allocation_is_freed_once_by_its_graph_or_another,
                                a_launch_without_room_for_its_memory_fails,
                                an_allocation_after_a_free_in_its_graph_has_its_addresses,
                                a_captured_loop_of_allocations_has_one_address,
                                graphs_launched_in_one_stream_share_pages,
                                graphs_that_run_at_once_have_pages_of_their_own,
                                a_graph_moves_to_other_pages_when_its_own_are_in_use,
                                allocations_that_are_not_freed_keep_their_pages,
                                graphs_of_different_sizes_share_what_they_can,
                                an_upload_gives_a_graph_its_pages,
                                NULL};
  return run_tests("sim_graph_memory", tests, set_up_device0);
}
