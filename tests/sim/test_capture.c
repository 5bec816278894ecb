/* test_capture.c: stream capture: what becomes a node, who joins, and what is not allowed. */
#include "sim.h"

#define GLOBAL       CU_STREAM_CAPTURE_MODE_GLOBAL
#define THREAD_LOCAL CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
#define RELAXED      CU_STREAM_CAPTURE_MODE_RELAXED

static CUstream stream_with(unsigned flags)
{
  CUstream s;
  ok(cuStreamCreate(&s, flags));
  return s;
}

static CUevent create_untimed_event(void)
{
  CUevent e;
  ok(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  return e;
}

static CUstream begin_capture_stream(unsigned flags, CUstreamCaptureMode mode)
{
  CUstream s = stream_with(flags);
  ok(cuStreamBeginCapture_v2(s, mode));
  return s;
}

static CUstreamCaptureStatus status_of(CUstream s)
{
  CUstreamCaptureStatus status;
  ok(cuStreamIsCapturing(s, &status));
  return status;
}

/* The capture is spoiled, and ends so. */
static void is_spoiled(CUstream s)
{
  CUgraph g = (CUgraph)1;
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  fails(cuMemsetD8Async(1, 0, 1, s), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  fails(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ck_assert_ptr_null(g);
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
}

static CUgraph end_stream_capture(CUstream s)
{
  CUgraph g = NULL;
  ok(cuStreamEndCapture(s, &g));
  ck_assert_ptr_nonnull(g);
  return g;
}

static void run_once(CUgraph g)
{
  CUgraphExec e;
  CUstream s = stream_with(CU_STREAM_NON_BLOCKING);
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  ok(cuGraphLaunch(e, s));
  ok(cuStreamSynchronize(s));
  ok(cuGraphExecDestroy(e));
  ok(cuStreamDestroy_v2(s));
}

static size_t nodes_of(CUgraph g)
{
  size_t n = 0;
  ok(cuGraphGetNodes(g, NULL, &n));
  return n;
}

/* ---- what is captured ------------------------------------------------------------------------ */

static void increment_int(void *data)
{
  ++*(int *)data;
}

START_TEST(what_is_captured_happens_at_each_launch_and_not_before)
{
  static int calls;
  unsigned *host = pinned_bytes(400);
  CUdeviceptr a = device_bytes(400), b = device_bytes(400);
  CUstream s = begin_capture_stream(CU_STREAM_NON_BLOCKING, GLOBAL);
  memset(host, 0, 400);
  ok(cuMemsetD32Async(a, 5, 100, s));
  ok(cuMemcpyDtoDAsync_v2(b, a, 400, s));
  ok(cuMemcpyDtoHAsync_v2(host, b, 400, s));
  ok(cuLaunchHostFunc(s, increment_int, &calls));
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph g = end_stream_capture(s);
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_NONE);
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(calls, 0);
  ck_assert_uint_eq(host[99], 0);
  ck_assert_uint_eq(nodes_of(g), 4);
  run_once(g);
  ck_assert_uint_eq(host[99], 5);
  memset(host, 0, 400);
  run_once(g);
  ck_assert_uint_eq(host[99], 5);
  ck_assert_int_eq(calls, 2);
  ok(cuGraphDestroy(g));
}
END_TEST

START_TEST(work_queued_before_a_capture_stays_out_of_it)
{
  CUdeviceptr a = device_bytes(4);
  CUstream s = stream_with(0);
  ok(weir_sim_hold(s));
  ok(cuMemsetD32Async(a, 1, 1, s));
  ok(cuStreamBeginCapture_v2(s, GLOBAL));
  ok(cuMemsetD32Async(a, 2, 1, s));
  CUgraph g = end_stream_capture(s);
  ck_assert_uint_eq(nodes_of(g), 1);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  unsigned word = 0;
  ok(cuMemcpyDtoH_v2(&word, a, 4));
  ck_assert_uint_eq(word, 1);
}
END_TEST

START_TEST(other_streams_join_by_events_and_must_come_back)
{
  CUdeviceptr a = device_bytes(8);
  CUstream s = begin_capture_stream(0, GLOBAL), other = stream_with(CU_STREAM_NON_BLOCKING);
  CUevent fork = create_untimed_event(), join = create_untimed_event();
  ok(cuMemsetD32Async(a, 1, 1, s));
  ok(cuEventRecord(fork, s));
  ok(cuStreamWaitEvent(other, fork, 0));
  ck_assert_int_eq(status_of(other), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ok(cuMemsetD32Async(a + 4, 2, 1, other));
  ok(cuMemsetD32Async(a, 3, 1, s));
  ok(cuEventRecord(join, other));
  ok(cuStreamWaitEvent(s, join, 0));
  const CUgraphNode *after = NULL;
  size_t n = 0;
  cuuint64_t id = 0, other_id = 1;
  CUstreamCaptureStatus status;
  CUgraph graph = NULL;
  ok(cuStreamGetCaptureInfo_v2(s, &status, &id, &graph, &after, &n));
  ok(cuStreamGetCaptureInfo(other, &status, &other_id));
  ck_assert_uint_eq(id, other_id);
  ck_assert_uint_eq(n, 2);
  ck_assert_uint_eq(nodes_of(graph), 3);
  fails(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphDestroyNode(after[0]), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemsetD32Async(a, 4, 2, s));
  CUgraph g = end_stream_capture(s);
  ck_assert(g == graph);
  ck_assert_int_eq(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
  size_t edges = 0;
  ok(cuGraphGetEdges(g, NULL, NULL, &edges));
  ck_assert_uint_eq(edges, 4);
  run_once(g);
}
END_TEST

START_TEST(a_fork_that_is_not_joined_fails_the_capture)
{
  CUdeviceptr a = device_bytes(8);
  CUstream s = begin_capture_stream(0, GLOBAL), other = stream_with(0);
  CUevent fork = create_untimed_event();
  ok(cuEventRecord(fork, s));
  ok(cuStreamWaitEvent(other, fork, 0));
  ok(cuMemsetD32Async(a, 1, 1, other));
  CUgraph g = (CUgraph)1;
  fails(cuStreamEndCapture(s, &g), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  ck_assert_ptr_null(g);
  ck_assert_int_eq(status_of(other), CU_STREAM_CAPTURE_STATUS_NONE);
  ok(cuMemsetD32Async(a, 1, 1, other));
  ok(cuStreamSynchronize(other));
}
END_TEST

START_TEST(external_events_become_nodes)
{
  CUstream s = begin_capture_stream(0, GLOBAL), other = stream_with(CU_STREAM_NON_BLOCKING);
  CUevent go = create_untimed_event(), done = create_untimed_event();
  ok(cuStreamWaitEvent(s, go, CU_EVENT_WAIT_EXTERNAL));
  ok(cuEventRecordWithFlags(done, s, CU_EVENT_RECORD_EXTERNAL));
  CUgraph g = end_stream_capture(s);
  CUgraphNode list[2];
  size_t n = 2;
  CUgraphNodeType type;
  ok(cuGraphGetNodes(g, list, &n));
  ok(cuGraphNodeGetType(list[0], &type));
  ck_assert_int_eq(type, CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  ok(cuGraphNodeGetType(list[1], &type));
  ck_assert_int_eq(type, CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  CUgraphExec e;
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  ok(weir_sim_hold(other));
  ok(cuEventRecord(go, other));
  ok(cuGraphLaunch(e, s));
  fails(cuEventQuery(done), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(other));
  ok(cuEventSynchronize(done));
  fails(cuEventRecordWithFlags(done, s, CU_EVENT_RECORD_EXTERNAL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_launch_that_is_captured_is_a_child_graph)
{
  CUdeviceptr a = device_bytes(4);
  CUstream s = begin_capture_stream(0, GLOBAL);
  ok(cuMemsetD32Async(a, 7, 1, s));
  CUgraph inner = end_stream_capture(s);
  CUgraphExec e;
  ok(cuGraphInstantiateWithFlags(&e, inner, 0));
  ok(cuStreamBeginCapture_v2(s, GLOBAL));
  ok(cuGraphLaunch(e, s));
  CUgraph outer = end_stream_capture(s), child;
  CUgraphNode node;
  size_t n = 1;
  ok(cuGraphGetNodes(outer, &node, &n));
  ok(cuGraphChildGraphNodeGetGraph(node, &child));
  ck_assert_uint_eq(nodes_of(child), 1);
  ok(cuGraphExecDestroy(e));
  ok(cuGraphDestroy(inner));
  run_once(outer);
  unsigned word = 0;
  ok(cuMemcpyDtoH_v2(&word, a, 4));
  ck_assert_uint_eq(word, 7);
}
END_TEST

START_TEST(a_capture_can_add_to_a_graph_and_change_what_it_follows)
{
  CUdeviceptr a = device_bytes(4);
  CUgraph g, got;
  CUgraphNode first, second;
  ok(cuGraphCreate(&g, 0));
  ok(cuGraphAddEmptyNode(&first, g, NULL, 0));
  CUstream s = stream_with(0);
  ok(cuStreamBeginCaptureToGraph(s, g, &first, NULL, 1, GLOBAL));
  CUgraphExec e;
  fails(cuGraphInstantiateWithFlags(&e, g, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemsetD32Async(a, 7, 1, s));
  ok(cuGraphAddEmptyNode(&second, g, NULL, 0));
  ok(cuStreamUpdateCaptureDependencies(s, &second, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
  ok(cuMemsetD32Async(a, 8, 1, s));
  ok(cuStreamUpdateCaptureDependencies(s, &first, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  ok(cuStreamEndCapture(s, &got));
  ck_assert(got == g);
  size_t edges = 0;
  ok(cuGraphGetEdges(g, NULL, NULL, &edges));
  ck_assert_uint_eq(edges, 3);
  fails(cuStreamUpdateCaptureDependencies(s, &first, 1, 0), CUDA_ERROR_ILLEGAL_STATE);
  run_once(g);
}
END_TEST

/* ---- what is not allowed --------------------------------------------------------------------- */

START_TEST(a_capture_begins_and_ends_in_one_stream_and_thread)
{
  CUstream s = stream_with(0), other = stream_with(0);
  CUgraph g;
  fails(cuStreamBeginCapture_v2(NULL, GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  fails(cuStreamBeginCapture_v2(s, 3), CUDA_ERROR_INVALID_VALUE);
  fails(cuStreamEndCapture(s, &g), CUDA_ERROR_ILLEGAL_STATE);
  ok(cuStreamBeginCapture_v2(s, GLOBAL));
  fails(cuStreamBeginCapture_v2(s, GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  fails(cuStreamEndCapture(s, NULL), CUDA_ERROR_INVALID_VALUE);
  CUevent e = create_untimed_event();
  ok(cuEventRecord(e, s));
  ok(cuStreamWaitEvent(other, e, 0));
  fails(cuStreamEndCapture(other, &g), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  is_spoiled(s);
}
END_TEST

static CUresult end_capture(void *s)
{
  CUgraph g;
  return cuStreamEndCapture(s, &g);
}

START_TEST(only_a_relaxed_capture_ends_in_another_thread)
{
  struct call c;
  CUstream s = begin_capture_stream(0, THREAD_LOCAL);
  call_start(&c, end_capture, s);
  fails(call_end(&c), CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  end_stream_capture(s);
  s = begin_capture_stream(0, RELAXED);
  call_start(&c, end_capture, s);
  ok(call_end(&c));
}
END_TEST

START_TEST(a_captured_stream_cannot_be_waited_for)
{
  CUstream s = begin_capture_stream(0, RELAXED);
  fails(cuStreamSynchronize(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  fails(cuStreamQuery(s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  fails(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  CUcontext context;
  CUevent e = create_untimed_event();
  ok(cuCtxGetCurrent(&context));
  fails(cuCtxRecordEvent(context, e), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  is_spoiled(s);
  ok(cuStreamSynchronize(s));
  ok(cuCtxSynchronize());
  ok(cuCtxRecordEvent(context, e));
  ok(cuEventSynchronize(e));
}
END_TEST

START_TEST(the_legacy_stream_rests_while_a_blocking_stream_is_captured)
{
  CUdeviceptr a = device_bytes(4);
  CUstream s = begin_capture_stream(0, RELAXED);
  CUstreamCaptureStatus status;
  fails(cuStreamIsCapturing(NULL, &status), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  fails(cuMemsetD8Async(a, 0, 4, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  unsigned word;
  fails(cuMemcpyDtoH_v2(&word, a, 4), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  fails(cuEventRecord(create_untimed_event(), NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
  is_spoiled(s);
  s = begin_capture_stream(CU_STREAM_NON_BLOCKING, RELAXED);
  ok(cuMemsetD8Async(a, 0, 4, NULL));
  ok(cuMemcpyDtoH_v2(&word, a, 4));
  end_stream_capture(s);
}
END_TEST

START_TEST(unsafe_calls_are_barred_by_the_modes)
{
  CUdeviceptr p, kept = device_bytes(4);
  CUevent e = create_untimed_event();
  CUstreamCaptureMode mode = RELAXED;
  const CUstreamCaptureMode strict[] = {GLOBAL, THREAD_LOCAL};
  for (int i = 0; i < 2; i++) {
    CUstream s = begin_capture_stream(CU_STREAM_NON_BLOCKING, strict[i]);
    fails(cuMemAlloc_v2(&p, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    is_spoiled(s);
    ok(cuStreamBeginCapture_v2(s, strict[i]));
    fails(cuMemFree_v2(kept), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    is_spoiled(s);
    ok(cuStreamBeginCapture_v2(s, strict[i]));
    fails(cuEventQuery(e), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    is_spoiled(s);
    ok(cuStreamBeginCapture_v2(s, strict[i]));
    unsigned word;
    fails(cuMemcpyDtoH_v2(&word, kept, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    is_spoiled(s);
    ok(cuStreamBeginCapture_v2(s, strict[i]));
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, GLOBAL);
    ok(cuMemAlloc_v2(&p, 4));
    ok(cuEventQuery(e));
    ok(cuMemFree_v2(p));
    ok(cuThreadExchangeStreamCaptureMode(&mode));
    ck_assert_int_eq(mode, RELAXED);
    end_stream_capture(s);
  }
  CUstream s = begin_capture_stream(CU_STREAM_NON_BLOCKING, RELAXED);
  ok(cuMemAlloc_v2(&p, 4));
  end_stream_capture(s);
}
END_TEST

static CUresult allocate(void *mode)
{
  CUdeviceptr p;
  cuThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){*(CUstreamCaptureMode *)mode});
  return cuMemAlloc_v2(&p, 4);
}

static CUresult allocate_in(CUstreamCaptureMode mode)
{
  struct call c;
  call_start(&c, allocate, &mode);
  return call_end(&c);
}

START_TEST(another_threads_capture_bars_if_both_are_global)
{
  CUstream s = begin_capture_stream(CU_STREAM_NON_BLOCKING, GLOBAL);
  ok(allocate_in(THREAD_LOCAL));
  ok(allocate_in(RELAXED));
  fails(allocate_in(GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, THREAD_LOCAL));
  ok(allocate_in(GLOBAL));
  end_stream_capture(s);
}
END_TEST

START_TEST(events_do_not_cross_the_border_of_a_capture)
{
  CUstream s = stream_with(0), other = stream_with(CU_STREAM_NON_BLOCKING);
  CUevent outside = create_untimed_event(), inside = create_untimed_event(),
          never = create_untimed_event();
  ok(cuEventRecord(outside, other));
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  ok(cuStreamWaitEvent(s, never, 0));
  fails(cuStreamWaitEvent(s, outside, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  ok(cuEventRecord(inside, s));
  fails(cuEventQuery(inside), CUDA_ERROR_CAPTURED_EVENT);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  ok(cuEventRecord(inside, s));
  fails(cuEventSynchronize(inside), CUDA_ERROR_CAPTURED_EVENT);
  is_spoiled(s);
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  ok(cuEventRecord(inside, s));
  end_stream_capture(s);
  fails(cuStreamWaitEvent(other, inside, 0), CUDA_ERROR_CAPTURED_EVENT);
  ok(cuEventRecord(inside, other)); /* an event as any other again */
  ok(cuEventSynchronize(inside));
}
END_TEST

START_TEST(two_captures_do_not_merge)
{
  CUstream a = begin_capture_stream(0, RELAXED), b = begin_capture_stream(0, RELAXED);
  CUevent e = create_untimed_event();
  ok(cuEventRecord(e, a));
  fails(cuStreamWaitEvent(b, e, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  is_spoiled(a);
  is_spoiled(b);
}
END_TEST

static void called(CUstream s, CUresult error, void *data)
{
  (void)s, (void)error, (void)data;
}

START_TEST(what_no_node_can_be_spoils_the_capture)
{
  CUstream s = begin_capture_stream(0, RELAXED);
  fails(cuStreamAddCallback(s, called, NULL, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  is_spoiled(s);
  CUdeviceptr p;
  ok(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
  ok(cuStreamBeginCapture_v2(s, RELAXED));
  fails(cuMemPrefetchAsync(p, 4096, 0, s), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  is_spoiled(s);
}
END_TEST

START_TEST(a_stream_that_ends_takes_along_what_it_began)
{
  CUdeviceptr a = device_bytes(4);
  CUstream s = begin_capture_stream(0, GLOBAL), third = stream_with(0);
  CUevent e = create_untimed_event();
  ok(cuEventRecord(e, s));
  ok(cuStreamWaitEvent(third, e, 0));
  ok(cuStreamDestroy_v2(s));
  ck_assert_int_eq(status_of(third), CU_STREAM_CAPTURE_STATUS_NONE);
  ok(cuMemsetD8Async(a, 0, 4, NULL));
  ok(cuCtxSynchronize());
}
END_TEST

/* As NVIDIA's sample graphMemoryNodes does it. */
START_TEST(a_joined_stream_may_end_before_the_capture)
{
  CUdeviceptr a = device_bytes(8);
  CUstream s = begin_capture_stream(0, GLOBAL), side = stream_with(CU_STREAM_NON_BLOCKING);
  CUevent fork = create_untimed_event(), join = create_untimed_event();
  ok(cuEventRecord(fork, s));
  ok(cuStreamWaitEvent(side, fork, 0));
  ok(cuMemsetD32Async(a, 7, 1, side));
  ok(cuEventRecord(join, side));
  ok(cuStreamWaitEvent(s, join, 0));
  ok(cuStreamDestroy_v2(side));
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  ok(cuMemcpyDtoDAsync_v2(a + 4, a, 4, s));
  run_once(end_stream_capture(s));
  unsigned word = 0;
  ok(cuMemcpyDtoH_v2(&word, a + 4, 4));
  ck_assert_uint_eq(word, 7);
}
END_TEST

START_TEST(what_a_destroyed_stream_left_has_to_be_joined)
{
  CUdeviceptr a = device_bytes(8);
  CUevent fork = create_untimed_event(), join = create_untimed_event();
  for (int joins = 0; joins < 2; joins++) {
    CUstream s = begin_capture_stream(0, GLOBAL), side = stream_with(0);
    ok(cuEventRecord(fork, s));
    ok(cuStreamWaitEvent(side, fork, 0));
    ok(cuMemsetD32Async(a, 7, 1, side));
    ok(cuEventRecord(join, side));
    ok(cuStreamDestroy_v2(side));
    if (joins) ok(cuStreamWaitEvent(s, join, 0)); /* the event still has what it took */
    CUgraph g = (CUgraph)1;
    fails(cuStreamEndCapture(s, &g), joins ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
    ck_assert_int_eq(g != NULL, joins);
  }
}
END_TEST

START_TEST(a_wrong_call_does_not_spoil_a_capture)
{
  CUstream s = begin_capture_stream(0, GLOBAL);
  fails(cuMemsetD8Async(1, 0, 1, s), CUDA_ERROR_INVALID_VALUE);
  ck_assert_int_eq(status_of(s), CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CUgraph g = end_stream_capture(s);
  ck_assert_uint_eq(nodes_of(g), 0);
  run_once(g);
}
END_TEST

START_TEST(allocations_in_a_capture_are_the_graphs)
{
  CUstream s = begin_capture_stream(0, GLOBAL);
  CUdeviceptr p = 0;
  unsigned word = 0;
  ok(cuMemAllocAsync(&p, 400, s));
  ok(cuMemsetD32Async(p, 9, 100, s));
  ok(cuMemcpyDtoHAsync_v2(&word, p + 396, 4, s));
  ok(cuMemFreeAsync(p, s));
  fails(cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
  CUgraph g = end_stream_capture(s);
  fails(cuMemcpyDtoH_v2(&word, p, 4), CUDA_ERROR_INVALID_VALUE);
  run_once(g);
  ck_assert_uint_eq(word, 9);
  fails(cuMemcpyDtoH_v2(&word, p, 4), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {what_is_captured_happens_at_each_launch_and_not_before,
                                work_queued_before_a_capture_stays_out_of_it,
                                other_streams_join_by_events_and_must_come_back,
                                a_fork_that_is_not_joined_fails_the_capture,
                                external_events_become_nodes,
                                a_launch_that_is_captured_is_a_child_graph,
                                a_capture_can_add_to_a_graph_and_change_what_it_follows,
                                a_capture_begins_and_ends_in_one_stream_and_thread,
                                only_a_relaxed_capture_ends_in_another_thread,
                                a_captured_stream_cannot_be_waited_for,
                                the_legacy_stream_rests_while_a_blocking_stream_is_captured,
                                unsafe_calls_are_barred_by_the_modes,
                                another_threads_capture_bars_if_both_are_global,
                                events_do_not_cross_the_border_of_a_capture,
                                two_captures_do_not_merge,
                                what_no_node_can_be_spoils_the_capture,
                                a_stream_that_ends_takes_along_what_it_began,
                                a_joined_stream_may_end_before_the_capture,
                                what_a_destroyed_stream_left_has_to_be_joined,
                                a_wrong_call_does_not_spoil_a_capture,
                                allocations_in_a_capture_are_the_graphs,
                                NULL};
  return run_tests("sim_capture", tests, set_up_device0);
}
