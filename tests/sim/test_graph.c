/* test_graph.c: graphs made by hand: nodes, edges, instances, launches, updates. */
#include "graph.h"

#include <unistd.h>

static CUDA_MEMCPY3D line_copy_node(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
  return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                         .srcDevice = from,
                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                         .dstDevice = to,
                         .WidthInBytes = bytes,
                         .Height = 1,
                         .Depth = 1};
}

/* ---- a kernel -------------------------------------------------------------------------------- */

static void bump(void *const *arg, const struct weir_twin_thread *t)
{
  (void)t;
  **(unsigned **)arg[0] += *(unsigned *)arg[1];
}
static const uint32_t bump_sizes[] = {8, 4};
EXPORT const struct weir_twin weir_twin_bump = {1, 2, bump_sizes, bump, "bump", NULL, 0};

static CUfunction bump_function(void)
{
  CUmodule m;
  CUfunction f;
  ok(cuModuleLoadData(&m, ".version 8.0\n.target sm_80\n.address_size 64\n"
                          ".visible .entry bump(.param .u64 p, .param .u32 n) { ret; }\n"));
  ok(cuModuleGetFunction(&f, m, "bump"));
  return f;
}

START_TEST(a_kernel_node_keeps_its_arguments_and_takes_new_ones)
{
  CUdeviceptr p = device_bytes(4);
  unsigned by = 3;
  void *arguments[] = {&p, &by};
  CUDA_KERNEL_NODE_PARAMS params = {.func = bump_function(),
                                    .gridDimX = 2,
                                    .gridDimY = 1,
                                    .gridDimZ = 1,
                                    .blockDimX = 1,
                                    .blockDimY = 1,
                                    .blockDimZ = 1,
                                    .kernelParams = arguments};
  CUgraph g = create_graph();
  CUgraphNode n;
  ok(cuMemsetD32_v2(p, 0, 1));
  ok(cuCtxSynchronize());
  ok(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &params));
  by = 100; /* copied when the node was made */
  CUgraphExec e = instance(g);
  launch_and_wait(e);
  ck_assert_uint_eq(word_at(p), 6);
  ok(cuGraphExecKernelNodeSetParams_v2(e, n, &params));
  launch_and_wait(e);
  ck_assert_uint_eq(word_at(p), 206);
  CUDA_KERNEL_NODE_PARAMS got;
  ok(cuGraphKernelNodeGetParams_v2(n, &got));
  ck_assert_uint_eq(got.gridDimX, 2);
  ck_assert_uint_eq(*(unsigned *)got.kernelParams[1], 3);
  ck_assert(got.func == params.func);
  params.gridDimX = 0;
  fails(cuGraphAddKernelNode_v2(&n, g, NULL, 0, &params), CUDA_ERROR_INVALID_VALUE);
  CUkernelNodeAttrValue value = {.priority = -2}, back;
  ok(cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  ok(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &back));
  ck_assert_int_eq(back.priority, -2);
  ok(cuGraphNodeSetEnabled(e, n, 0));
  launch_and_wait(e);
  ck_assert_uint_eq(word_at(p), 206);
}
END_TEST

/* ---- structure ------------------------------------------------------------------------------- */

START_TEST(edges_say_what_runs_first)
{
  CUdeviceptr p = device_bytes(8);
  CUgraph g = create_graph();
  CUgraphNode last = set_node(g, NULL, p, 1), first = set_node(g, NULL, p, 2), copy;
  CUDA_MEMCPY3D to = line_copy_node(p + 4, p, 4);
  ok(cuGraphAddMemcpyNode(&copy, g, NULL, 0, &to, primary(0)));
  CUgraphNode from[] = {first, copy}, into[] = {copy, last};
  ok(cuGraphAddDependencies(g, from, into, 2));
  fails(cuGraphAddDependencies(g, from, into, 1), CUDA_ERROR_INVALID_VALUE);
  launch_and_wait(instance(g));
  ck_assert_uint_eq(word_at(p), 1);
  ck_assert_uint_eq(word_at(p + 4), 2);
  CUgraphNode list[4], roots[4];
  size_t n = 4, r = 4;
  ok(cuGraphGetNodes(g, list, &n));
  ok(cuGraphGetRootNodes(g, roots, &r));
  ck_assert_uint_eq(n, 3);
  ck_assert_ptr_null(list[3]);
  ck_assert_uint_eq(r, 1);
  ck_assert(roots[0] == first);
  n = 4;
  ok(cuGraphNodeGetDependencies(last, list, &n));
  ck_assert_uint_eq(n, 1);
  ck_assert(list[0] == copy);
  ok(cuGraphNodeGetDependentNodes(first, list, &n));
  ck_assert(list[0] == copy);
  n = 1;
  ok(cuGraphGetEdges(g, list, roots, &n));
  ck_assert_uint_eq(n, 1);
  ok(cuGraphRemoveDependencies(g, from, into, 1));
  fails(cuGraphRemoveDependencies(g, from, into, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cuGraphDestroyNode(copy));
  fails(cuGraphDestroyNode(copy), CUDA_ERROR_INVALID_VALUE);
  n = 0;
  ok(cuGraphNodeGetDependencies(last, NULL, &n));
  ck_assert_uint_eq(n, 0);
}
END_TEST

START_TEST(a_cycle_is_not_instantiated)
{
  CUdeviceptr p = device_bytes(4);
  CUgraph g = create_graph();
  CUgraphNode a = set_node(g, NULL, p, 1), b = set_node(g, a, p, 2), bad = NULL;
  ok(cuGraphAddDependencies(g, &b, &a, 1));
  CUgraphExec e;
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};
  fails(cuGraphInstantiateWithParams(&e, g, &params), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  ck_assert(params.hErrNode_out == a || params.hErrNode_out == b);
  fails(cuGraphInstantiate_v2(&e, g, &bad, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  ck_assert_ptr_nonnull(bad);
  fails(cuGraphAddDependencies(g, &a, &a, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cuGraphRemoveDependencies(g, &b, &a, 1));
  ok(cuGraphInstantiateWithParams(&e, g, &params));
  ck_assert_int_eq(params.result_out, CUDA_GRAPH_INSTANTIATE_SUCCESS);
}
END_TEST

START_TEST(bad_nodes_and_handles_are_refused)
{
  CUdeviceptr p = device_bytes(4);
  CUgraph g = create_graph(), other = create_graph();
  CUgraphNode n = set_node(g, NULL, p, 1), m;
  CUgraphNode twice[] = {n, n};
  fails(cuGraphAddEmptyNode(&m, g, twice, 2), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphAddEmptyNode(&m, other, &n, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphAddEmptyNode(&m, (CUgraph)&g, NULL, 0), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMSET_NODE_PARAMS params = memset_words_node(p, 0, 4);
  fails(cuGraphAddMemsetNode(&m, g, NULL, 0, &params, primary(0)), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY3D outside = line_copy_node(p, p + 4, 4);
  fails(cuGraphAddMemcpyNode(&m, g, NULL, 0, &outside, primary(0)), CUDA_ERROR_INVALID_VALUE);
  CUDA_HOST_NODE_PARAMS host = {0};
  fails(cuGraphAddHostNode(&m, g, NULL, 0, &host), CUDA_ERROR_INVALID_VALUE);
  ok(cuGraphDestroy(g));
  fails(cuGraphDestroy(g), CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeType type;
  fails(cuGraphNodeGetType(n, &type), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec e = instance(other);
  ok(cuGraphExecDestroy(e));
  fails(cuGraphLaunch(e, stream()), CUDA_ERROR_INVALID_VALUE);
  CUgraphNodeParams condition = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  fails(cuGraphAddNode_v2(&m, other, NULL, NULL, 0, &condition), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_clone_is_a_graph_of_its_own)
{
  CUdeviceptr p = device_bytes(8);
  CUgraph g = create_graph(), inner = create_graph(), copy, child;
  CUgraphNode a = set_node(g, NULL, p, 1), b, found;
  set_node(inner, NULL, p + 4, 5);
  ok(cuGraphAddChildGraphNode(&b, g, &a, 1, inner));
  ok(cuGraphDestroy(inner));
  ok(cuGraphClone(&copy, g));
  ok(cuGraphNodeFindInClone(&found, a, copy));
  ck_assert(found != a);
  CUDA_MEMSET_NODE_PARAMS params = memset_words_node(p, 2, 1);
  ok(cuGraphMemsetNodeSetParams(found, &params));
  ok(cuGraphChildGraphNodeGetGraph(b, &child));
  fails(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
  ok(cuGraphDestroy(g));
  fails(cuGraphNodeFindInClone(&found, a, copy), CUDA_ERROR_INVALID_VALUE);
  launch_and_wait(instance(copy));
  ck_assert_uint_eq(word_at(p), 2);
  ck_assert_uint_eq(word_at(p + 4), 5);
}
END_TEST

/* ---- launches -------------------------------------------------------------------------------- */

START_TEST(launches_of_one_instance_run_one_after_the_other)
{
  CUdeviceptr p = device_bytes(8);
  CUstream a = stream(), b = stream();
  CUgraph g = create_graph();
  CUgraphNode n = set_node(g, NULL, p, 1);
  CUgraphExec e = instance(g);
  ok(weir_sim_hold(a));
  ok(cuGraphLaunch(e, a));
  CUDA_MEMSET_NODE_PARAMS params = memset_words_node(p, 2, 1);
  ok(cuGraphExecMemsetNodeSetParams(e, n, &params, primary(0)));
  ok(cuGraphLaunch(e, b)); /* after the first, though its stream is free */
  fails(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  ok(cuGraphExecDestroy(e)); /* launches are done all the same */
  ok(cuGraphDestroy(g));
  ok(weir_sim_release(a));
  ok(cuStreamSynchronize(b));
  ck_assert_uint_eq(word_at(p), 2);
}
END_TEST

START_TEST(a_graph_takes_its_place_in_the_stream)
{
  CUdeviceptr p = device_bytes(8);
  CUstream s = stream();
  CUgraph g = create_graph();
  CUDA_MEMCPY3D copy = line_copy_node(p + 4, p, 4);
  CUgraphNode n;
  ok(cuGraphAddMemcpyNode(&n, g, NULL, 0, &copy, primary(0)));
  CUgraphExec e = instance(g);
  ok(cuGraphUpload(e, s));
  ok(weir_sim_hold(s));
  ok(cuMemsetD32Async(p, 1, 1, s));
  ok(cuGraphLaunch(e, s));
  ok(cuMemsetD32Async(p, 2, 1, s));
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(word_at(p + 4), 1);
  ck_assert_uint_eq(word_at(p), 2);
}
END_TEST

static void note_refused_alloc(void *data)
{
  int *calls = data;
  CUdeviceptr p;
  *calls += cuMemAlloc_v2(&p, 4) == CUDA_ERROR_NOT_PERMITTED ? 1 : 100;
}

START_TEST(host_and_event_nodes_run_in_their_place)
{
  static int calls;
  CUstream s = stream();
  CUevent go, done;
  ok(cuEventCreate(&go, CU_EVENT_DISABLE_TIMING));
  ok(cuEventCreate(&done, CU_EVENT_DISABLE_TIMING));
  CUgraph g = create_graph();
  CUgraphNode a, b, c;
  CUDA_HOST_NODE_PARAMS host = {note_refused_alloc, &calls};
  ok(cuGraphAddEventWaitNode(&a, g, NULL, 0, go));
  ok(cuGraphAddHostNode(&b, g, &a, 1, &host));
  ok(cuGraphAddEventRecordNode(&c, g, &b, 1, done));
  CUevent got;
  ok(cuGraphEventRecordNodeGetEvent(c, &got));
  ck_assert(got == done);
  fails(cuGraphEventWaitNodeGetEvent(c, &got), CUDA_ERROR_INVALID_VALUE);
  CUgraphExec e = instance(g);
  ok(weir_sim_hold(s));
  ok(cuEventRecord(go, s));
  CUstream t = stream();
  ok(cuGraphLaunch(e, t));
  fails(cuEventQuery(done), CUDA_ERROR_NOT_READY);
  ck_assert_int_eq(calls, 0);
  ok(weir_sim_release(s));
  ok(cuEventSynchronize(done));
  ck_assert_int_eq(calls, 1);
}
END_TEST

START_TEST(memory_freed_since_is_an_illegal_address)
{
  CUdeviceptr p = device_bytes(4 << 20);
  CUgraph g = create_graph();
  set_node(g, NULL, p, 1);
  CUgraphExec e = instance(g);
  ok(cuMemFree_v2(p));
  CUstream s = stream();
  ok(cuGraphLaunch(e, s));
  fails(cuStreamSynchronize(s), CUDA_ERROR_ILLEGAL_ADDRESS);
}
END_TEST

START_TEST(an_instance_is_updated_from_a_graph_of_the_same_shape)
{
  CUdeviceptr p = device_bytes(8);
  CUgraph g = create_graph(), same = create_graph(), other = create_graph(),
          longer = create_graph();
  set_node(g, set_node(g, NULL, p, 1), p + 4, 2);
  set_node(same, set_node(same, NULL, p, 3), p + 4, 4);
  CUgraphNode n, m;
  ok(cuGraphAddEmptyNode(&n, other, NULL, 0));
  set_node(other, n, p, 9);
  ok(cuGraphAddEmptyNode(&m, longer, NULL, 0));
  CUgraphExec e = instance(g);
  CUgraphExecUpdateResultInfo info;
  ok(cuGraphExecUpdate_v2(e, same, &info));
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch_and_wait(e);
  ck_assert_uint_eq(word_at(p), 3);
  ck_assert_uint_eq(word_at(p + 4), 4);
  fails(cuGraphExecUpdate_v2(e, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  ck_assert(info.errorNode == n);
  fails(cuGraphExecUpdate_v2(e, longer, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  ck_assert_int_eq(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  ck_assert_ptr_null(info.errorNode);
}
END_TEST

/* ---- user objects ---------------------------------------------------------------------------- */

START_TEST(a_user_object_ends_with_its_last_reference)
{
  static int calls;
  CUuserObject o;
  CUgraph g = create_graph(), copy;
  fails(cuUserObjectCreate(&o, &calls, note_refused_alloc, 1, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cuUserObjectCreate(&o, &calls, note_refused_alloc, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  ok(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
  ok(cuGraphClone(&copy, g));
  CUgraphExec e = instance(g);
  CUstream s = stream();
  ok(weir_sim_hold(s));
  ok(cuGraphLaunch(e, s));
  ok(cuGraphDestroy(g));
  ok(cuGraphDestroy(copy));
  ok(cuGraphExecDestroy(e));
  ck_assert_int_eq(calls, 0); /* the launch still has it */
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(calls, 1);
  fails(cuUserObjectRelease(o, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_graph_is_drawn_with_its_kernels_names)
{
  CUdeviceptr p = device_bytes(4);
  CUgraph g = create_graph();
  set_node(g, set_node(g, NULL, p, 1), p, 2);
  char path[] = "/tmp/weir-graph-XXXXXX";
  int file = mkstemp(path);
  ok(cuGraphDebugDotPrint(g, path, 0));
  char text[1000] = "";
  ck_assert_int_gt((int)read(file, text, sizeof text - 1), 0);
  close(file);
  unlink(path);
  ck_assert(strstr(text, "digraph") && strstr(text, "MEMSET") && strstr(text, "->"));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {a_kernel_node_keeps_its_arguments_and_takes_new_ones,
                                edges_say_what_runs_first,
                                a_cycle_is_not_instantiated,
                                bad_nodes_and_handles_are_refused,
                                a_clone_is_a_graph_of_its_own,
                                launches_of_one_instance_run_one_after_the_other,
                                a_graph_takes_its_place_in_the_stream,
                                host_and_event_nodes_run_in_their_place,
                                memory_freed_since_is_an_illegal_address,
                                an_instance_is_updated_from_a_graph_of_the_same_shape,
                                a_user_object_ends_with_its_last_reference,
                                a_graph_is_drawn_with_its_kernels_names,
                                NULL};
  return run_tests("sim_graph", tests, set_up_device0);
}
