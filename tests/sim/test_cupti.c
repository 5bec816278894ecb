/* test_cupti.c: CUPTI of the software device: each piece of work has one record, whose times, order
 * and correlation are right. How it can be made to fail: test_cupti_faults.c. */
#include "cupti.h"

static CUmodule module;
static CUfunction kernel;

static _Atomic int launched;

static void run_kernel(void *const *arguments, const struct weir_twin_thread *t)
{
  (void)arguments, (void)t;
  atomic_fetch_add(&launched, 1);
}

EXPORT const struct weir_twin weir_twin_cupti_kernel = {
    .version = 1, .run = run_kernel, .name = "cupti_kernel"};

static CUstream new_cupti_stream(void)
{
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  return s;
}

static void load_kernel(void)
{
  static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
                            ".visible .entry cupti_kernel()\n{\n ret;\n}\n"
                            ".visible .entry without_a_twin()\n{\n ret;\n}\n";
  ok(cuModuleLoadData(&module, ptx));
  ok(cuModuleGetFunction(&kernel, module, "cupti_kernel"));
}

static void launch(CUfunction f, CUstream s)
{
  ok(cuLaunchKernel(f, 2, 3, 1, 4, 1, 1, 64, s, NULL, NULL));
}

/* ---- one record each ------------------------------------------------------------------------- */

START_TEST(each_operation_has_one_record_that_says_what_it_was)
{
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1 << 20), q = device_bytes(1 << 20), r = device_bytes(1 << 20);
  char *pinned = pinned_bytes(1 << 20), *pageable = malloc(1 << 20);
  uint32_t context, id;
  CUcontext here;
  ok(cuCtxGetCurrent(&here));
  fine(cuptiGetContextId(here, &context));
  fine(cuptiGetStreamId(here, s, &id));
  CLIENT(COPIES, FILLS, PEERS, KERNELS);
  pattern(pageable, 1 << 20, 1);
  ok(cuMemcpyHtoDAsync_v2(p, pinned, 1000, s));
  ok(cuMemcpyDtoHAsync_v2(pageable, p, 2000, s));
  ok(cuMemcpyDtoDAsync_v2(q, p, 3000, s));
  ok(cuStreamSynchronize(s)); /* the next is of another stream */
  ok(cuMemcpyHtoD_v2(r, pageable, 1 << 20));
  ok(cuMemsetD32Async(p, 7, 100, s));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(count_of(COPIES), 4);
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_eq(count_of(PEERS), 0);
  ck_assert_uint_eq(count_of(KERNELS), 0);
  static const struct {
    uint8_t kind, from, to;
    uint64_t bytes;
    bool async;
  } copies[] = {
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PINNED,
       CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 1000, true},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
       CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE, 2000, true},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOD, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE,
       CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 3000, true},
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
       CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, 1 << 20, false},
  };
  for (unsigned i = 0; i < 4; i++) {
    const CUpti_ActivityMemcpy6 *c = NULL;
    for (unsigned j = 0; j < 4; j++)
      if (nth(COPIES, j)->copy.bytes == copies[i].bytes) c = &nth(COPIES, j)->copy;
    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->copyKind, copies[i].kind);
    ck_assert_uint_eq(c->srcKind, copies[i].from);
    ck_assert_uint_eq(c->dstKind, copies[i].to);
    ck_assert_int_eq(c->flags == CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC, copies[i].async);
    ck_assert_uint_eq(c->contextId, context);
    ck_assert_uint_eq(c->deviceId, 0);
    ck_assert_uint_eq(c->graphNodeId, 0);
    ck_assert_int_eq(c->streamId == id, copies[i].async);
  }
  const CUpti_ActivityMemset4 *f = &nth(FILLS, 0)->fill;
  ck_assert_uint_eq(f->bytes, 400);
  ck_assert_uint_eq(f->value, 7);
  ck_assert_uint_eq(f->streamId, id);
  free(pageable);
}
END_TEST

START_TEST(a_copy_between_devices_is_a_record_of_its_own_kind)
{
  CUcontext here, there = primary(1);
  uint32_t here_id, there_id;
  ok(cuCtxGetCurrent(&here));
  CUdeviceptr p = device_bytes(5000);
  ok(cuCtxSetCurrent(there));
  CUdeviceptr q = device_bytes(5000);
  ok(cuCtxSetCurrent(here));
  fine(cuptiGetContextId(here, &here_id));
  fine(cuptiGetContextId(there, &there_id));
  CUstream s = new_cupti_stream();
  CLIENT(COPIES, PEERS);
  ok(cuMemcpyPeerAsync(q, there, p, here, 5000, s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(count_of(PEERS), 1);
  ck_assert_uint_eq(count_of(COPIES), 0);
  const CUpti_ActivityMemcpyPtoP4 *r = &nth(PEERS, 0)->peer;
  ck_assert_uint_eq(r->copyKind, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP);
  ck_assert_uint_eq(r->bytes, 5000);
  ck_assert_uint_eq(r->srcDeviceId, 0);
  ck_assert_uint_eq(r->dstDeviceId, 1);
  ck_assert_uint_eq(r->srcContextId, here_id);
  ck_assert_uint_eq(r->dstContextId, there_id);
}
END_TEST

START_TEST(a_kernel_has_a_record_with_its_name_and_shape_with_and_without_a_twin)
{
  load_kernel();
  CUfunction other;
  ok(cuModuleGetFunction(&other, module, "without_a_twin"));
  CUstream s = new_cupti_stream();
  CLIENT(KERNELS);
  launch(kernel, s);
  launch(other, s);
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(launched, 24);
  ck_assert_uint_eq(count_of(KERNELS), 2);
  const CUpti_ActivityKernel10 *r = &nth(KERNELS, 0)->kernel;
  ck_assert_str_eq(r->name, "cupti_kernel");
  ck_assert_str_eq(nth(KERNELS, 1)->kernel.name, "without_a_twin");
  ck_assert_int_eq(r->gridX, 2);
  ck_assert_int_eq(r->gridY, 3);
  ck_assert_int_eq(r->blockX, 4);
  ck_assert_int_eq(r->dynamicSharedMemory, 64);
  ok(cuModuleUnload(module));
  ck_assert_str_eq(r->name, "cupti_kernel");
}
END_TEST

/* The client's, when it registered none: what the documents say for Linux. */
static uint64_t real_time(void)
{
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

START_TEST(times_are_of_the_real_clock_where_the_client_has_none)
{
  CUdeviceptr p = device_bytes(1000);
  fine(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  fine(cuptiActivityEnable(FILLS));
  uint64_t before = real_time(), now;
  ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuCtxSynchronize());
  fine(cuptiGetTimestamp(&now));
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_ge(nth(FILLS, 0)->fill.start, before);
  ck_assert_uint_le(nth(FILLS, 0)->fill.end, now);
}
END_TEST

/* ---- times and order ------------------------------------------------------------------------- */

START_TEST(work_begins_after_its_call_and_ends_before_its_stream_is_waited_for)
{
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1 << 20);
  void *h = pinned_bytes(1 << 20);
  CLIENT(COPIES, FILLS);
  uint64_t calls[20], last = 0;
  for (int i = 0; i < 20; i++) {
    calls[i] = clock_now();
    ok(i % 2 ? cuMemsetD8Async(p, 1, 1 << 20, s) : cuMemcpyHtoDAsync_v2(p, h, 1 << 20, s));
  }
  ok(cuStreamSynchronize(s));
  uint64_t done = clock_now();
  ck_assert_uint_eq(count_of(COPIES), 10);
  ck_assert_uint_eq(count_of(FILLS), 10);
  for (unsigned i = 0; i < 20; i++) {
    const union record *r = nth(i % 2 ? FILLS : COPIES, i / 2);
    uint64_t start = i % 2 ? r->fill.start : r->copy.start;
    uint64_t end = i % 2 ? r->fill.end : r->copy.end;
    ck_assert_uint_ge(start, calls[i]);
    ck_assert_uint_ge(start, last); /* one after the other */
    ck_assert_uint_ge(end, start);
    ck_assert_uint_le(end, done);
    last = end;
  }
}
END_TEST

START_TEST(work_of_a_held_stream_has_no_record_before_the_release)
{
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1000);
  CLIENT(FILLS);
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(p, 1, 1000, s));
  ck_assert_uint_eq(count_of(FILLS), 0);
  uint64_t released = clock_now();
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_ge(nth(FILLS, 0)->fill.start, released);
}
END_TEST

START_TEST(a_copy_over_a_slow_link_lasts_as_long_as_the_link_says)
{
  CUstream s = new_cupti_stream(), t = new_cupti_stream();
  CUdeviceptr p = device_bytes(2 << 20);
  char *h = pinned_bytes(2 << 20);
  ok(weir_sim_set_link("h2d:1G:2ms"));
  CLIENT(COPIES);
  ok(cuMemcpyHtoDAsync_v2(p, h, 1 << 20, s));
  ok(cuMemcpyHtoDAsync_v2(p + (1 << 20), h + (1 << 20), 1 << 20, t));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(count_of(COPIES), 2);
  const CUpti_ActivityMemcpy6 *a = &nth(COPIES, 0)->copy, *b = &nth(COPIES, 1)->copy;
  ck_assert_uint_ge(a->end - a->start, 3000000);
  ck_assert_uint_ge(b->end - b->start, 3000000);
  /* the link carries one copy at a time: that which waits has not begun */
  ck_assert(a->start + 3000000 <= b->start || b->start + 3000000 <= a->start);
}
END_TEST

START_TEST(kernels_say_when_they_were_queued_if_asked)
{
  load_kernel();
  CUstream s = new_cupti_stream();
  fine(cuptiActivityEnableLatencyTimestamps(1));
  CLIENT(KERNELS);
  ok(weir_sim_hold(s));
  uint64_t before = clock_now();
  launch(kernel, s);
  uint64_t after = clock_now();
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(count_of(KERNELS), 1);
  const CUpti_ActivityKernel10 *r = &nth(KERNELS, 0)->kernel;
  ck_assert_uint_ge(r->queued, before);
  ck_assert_uint_le(r->queued, after);
  ck_assert_uint_ge(r->start, after);
}
END_TEST

START_TEST(launches_and_kernels_last_at_least_as_long_as_on_the_card)
{
  enum { TIMES = 20 };
  load_kernel();
  CUstream s = new_cupti_stream();
  CLIENT(KERNELS);
  ok(weir_sim_set_card("h100"));
  uint64_t before = clock_now();
  for (int i = 0; i < TIMES; i++)
    launch(kernel, s);
  uint64_t after = clock_now();
  ok(cuStreamSynchronize(s));
  ck_assert_uint_ge(after - before, TIMES * 5000);
  ck_assert_uint_eq(count_of(KERNELS), TIMES);
  for (unsigned i = 0; i < TIMES; i++)
    ck_assert_uint_ge(nth(KERNELS, i)->kernel.end - nth(KERNELS, i)->kernel.start, 900);
}
END_TEST

/* ---- correlation ----------------------------------------------------------------------------- */

START_TEST(work_has_the_correlation_that_the_callbacks_of_its_call_told)
{
  load_kernel();
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1000);
  char *h = pinned_bytes(1000);
  CLIENT(COPIES, FILLS, KERNELS, CALLS);
  CUpti_SubscriberHandle subscriber = subscribed(hear);
  ok(cuMemcpyHtoDAsync_v2(p, h, 1000, s));
  ok(cuMemcpyDtoHAsync_v2(h, p, 1000, s));
  ok(cuMemsetD8Async(p, 1, 1000, s));
  launch(kernel, s);
  ok(cuStreamSynchronize(s));
  fine(cuptiUnsubscribe(subscriber));
  ok(cuStreamQuery(s));
  ck_assert_uint_eq(count_of(COPIES), 2);
  uint32_t to = correlation_of(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2, 0);
  uint32_t from = correlation_of(CUPTI_DRIVER_TRACE_CBID_cuMemcpyDtoHAsync_v2, 0);
  ck_assert_uint_ne(to, from);
  ck_assert_uint_eq(nth(COPIES, 0)->copy.correlationId, to);
  ck_assert_uint_eq(nth(COPIES, 1)->copy.correlationId, from);
  ck_assert_uint_eq(nth(FILLS, 0)->fill.correlationId,
                    correlation_of(CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async, 0));
  ck_assert_uint_eq(nth(KERNELS, 0)->kernel.correlationId,
                    correlation_of(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, 0));
  unsigned heard_before = heard_count;
  ck_assert_uint_eq(heard_before, 10); /* after cuptiUnsubscribe: nothing more */
  ck_assert_uint_eq(count_of(CALLS), 6);
  const CUpti_ActivityAPI *call = &nth(CALLS, 0)->call;
  ck_assert_uint_eq(call->cbid, CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoDAsync_v2);
  ck_assert_uint_eq(call->correlationId, to);
  ck_assert_uint_le(call->start, call->end);
  ck_assert_uint_ge(nth(COPIES, 0)->copy.start, call->start);
}
END_TEST

static void CUPTIAPI keep_parameters(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                     const void *what)
{
  const CUpti_CallbackData *call = what;
  struct memset_parameters {
    CUdeviceptr to;
    unsigned char value;
    size_t bytes;
    CUstream stream;
  } *kept = data;
  (void)domain;
  if (id != CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async) return;
  if (call->callbackSite == CUPTI_API_ENTER) {
    ck_assert_str_eq(call->functionName, "cuMemsetD8Async");
    ck_assert_ptr_null(call->functionReturnValue);
    *call->correlationData = 77;
    *kept = *(const struct memset_parameters *)call->functionParams;
    ok(cuStreamQuery(NULL)); /* is no call of the program's */
  } else {
    ck_assert_uint_eq(*call->correlationData, 77);
    ck_assert_int_eq(*(CUresult *)call->functionReturnValue, CUDA_SUCCESS);
  }
}

START_TEST(callbacks_see_parameters_results_and_what_they_left)
{
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1000);
  struct {
    CUdeviceptr to;
    unsigned char value;
    size_t bytes;
    CUstream stream;
  } kept = {0};
  CUpti_SubscriberHandle subscriber;
  uint32_t on;
  fine(cuptiSubscribe(&subscriber, keep_parameters, &kept));
  fine(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                           CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async));
  fine(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                             CUPTI_DRIVER_TRACE_CBID_cuMemsetD8Async));
  ck_assert_uint_eq(on, 1);
  fine(cuptiGetCallbackState(&on, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                             CUPTI_DRIVER_TRACE_CBID_cuMemsetD16Async));
  ck_assert_uint_eq(on, 0);
  ok(cuMemsetD8Async(p, 3, 500, s));
  ok(cuStreamSynchronize(s));
  ck_assert(kept.to == p && kept.value == 3 && kept.bytes == 500 && kept.stream == s);
}
END_TEST

START_TEST(functions_have_the_names_and_numbers_of_the_headers)
{
  const char *name;
  fine(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuMemFree_v2,
                            &name));
  ck_assert_str_eq(name, "cuMemFree_v2");
  fine(cuptiGetCallbackName(CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_RUNTIME_TRACE_CBID_cudaMalloc_v3020,
                            &name));
  ck_assert_str_eq(name, "cudaMalloc_v3020");
  refused(cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, 100000, &name),
          CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(waits_have_records_of_what_they_waited_for)
{
  CUstream s = new_cupti_stream();
  CUevent e;
  uint32_t id;
  CUcontext c;
  ok(cuCtxGetCurrent(&c));
  ok(cuEventCreate(&e, 0));
  fine(cuptiGetStreamId(c, s, &id));
  CLIENT(WAITS);
  ok(cuStreamSynchronize(s));
  ok(cuCtxSynchronize());
  ok(cuEventSynchronize(e));
  ok(cuStreamWaitEvent(s, e, 0));
  ck_assert_uint_eq(count_of(WAITS), 4);
  static const CUpti_ActivitySynchronizationType types[] = {
      CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
      CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE,
      CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE,
      CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT};
  for (unsigned i = 0; i < 4; i++)
    ck_assert_int_eq(nth(WAITS, i)->wait.type, types[i]);
  ck_assert_uint_eq(nth(WAITS, 0)->wait.streamId, id);
  ck_assert_uint_eq(nth(WAITS, 1)->wait.streamId, CUPTI_SYNCHRONIZATION_INVALID_VALUE);
}
END_TEST

START_TEST(external_ids_precede_the_calls_made_under_them)
{
  uint64_t last = 0;
  CUpti_ExternalCorrelationKind kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  CLIENT(CALLS, EXTERNALS);
  fine(cuptiActivityPushExternalCorrelationId(kind, 41));
  fine(cuptiActivityPushExternalCorrelationId(kind, 42));
  ok(cuStreamQuery(NULL));
  fine(cuptiActivityPopExternalCorrelationId(kind, &last));
  ck_assert_uint_eq(last, 42);
  fine(cuptiActivityPopExternalCorrelationId(kind, NULL));
  refused(cuptiActivityPopExternalCorrelationId(kind, &last), CUPTI_ERROR_QUEUE_EMPTY);
  ok(cuStreamQuery(NULL));
  ck_assert_uint_eq(count_of(EXTERNALS), 1);
  ck_assert_uint_eq(count_of(CALLS), 2);
  ck_assert_int_eq(records[0].any.kind, EXTERNALS);
  ck_assert_uint_eq(records[0].external.externalId, 42);
  ck_assert_uint_eq(records[0].external.correlationId, records[1].call.correlationId);
}
END_TEST

/* ---- graphs ---------------------------------------------------------------------------------- */

static CUgraphExec captured(CUstream s, CUdeviceptr p, void *h)
{
  CUgraph g;
  CUgraphExec e;
  ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cuMemcpyHtoDAsync_v2(p, h, 1000, s));
  ok(cuMemsetD8Async(p, 1, 500, s));
  launch(kernel, s);
  ok(cuStreamEndCapture(s, &g));
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  return e;
}

START_TEST(nodes_of_a_graph_have_their_own_records_with_the_correlation_of_the_launch)
{
  load_kernel();
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1000);
  CUgraphExec e = captured(s, p, pinned_bytes(1000));
  uint32_t id;
  fine(cuptiGetGraphExecId(e, &id));
  CLIENT(COPIES, FILLS, KERNELS);
  (void)subscribed(hear);
  ok(cuGraphLaunch(e, s));
  ok(cuGraphLaunch(e, s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(count_of(COPIES), 2);
  ck_assert_uint_eq(count_of(FILLS), 2);
  ck_assert_uint_eq(count_of(KERNELS), 2);
  for (unsigned i = 0; i < 2; i++) {
    uint32_t launch_id = correlation_of(CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch, i);
    const CUpti_ActivityMemcpy6 *c = &nth(COPIES, i)->copy;
    ck_assert_uint_eq(c->correlationId, launch_id);
    ck_assert_uint_eq(nth(FILLS, i)->fill.correlationId, launch_id);
    ck_assert_uint_eq(nth(KERNELS, i)->kernel.correlationId, launch_id);
    ck_assert_uint_eq(c->graphId, id);
    ck_assert_uint_ne(c->graphNodeId, 0);
    ck_assert_uint_eq(c->graphNodeId, nth(COPIES, 0)->copy.graphNodeId);
    ck_assert_uint_ne(c->graphNodeId, nth(FILLS, i)->fill.graphNodeId);
  }
}
END_TEST

START_TEST(a_launch_is_one_record_where_graphs_are_traced_as_a_whole)
{
  load_kernel();
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1000);
  CUgraphExec e = captured(s, p, pinned_bytes(1000));
  uint32_t id;
  fine(cuptiGetGraphExecId(e, &id));
  CLIENT(GRAPHS, COPIES, FILLS, KERNELS);
  uint64_t before = clock_now();
  ok(cuGraphLaunch(e, s));
  ok(cuMemsetD8Async(p, 1, 100, s));
  ok(cuStreamSynchronize(s));
  uint64_t after = clock_now();
  ck_assert_uint_eq(count_of(GRAPHS), 1);
  ck_assert_uint_eq(count_of(COPIES), 0);
  ck_assert_uint_eq(count_of(KERNELS), 0);
  ck_assert_uint_eq(count_of(FILLS), 1); /* that of the stream's own */
  const CUpti_ActivityGraphTrace2 *g = &nth(GRAPHS, 0)->graph;
  ck_assert_uint_eq(g->graphId, id);
  ck_assert(before <= g->start && g->start <= g->end && g->end <= after);
}
END_TEST

static struct {
  uint64_t node[8], original[8];
  unsigned count;
} cloned;

static void CUPTIAPI note_clones(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *what)
{
  const CUpti_ResourceData *r = what;
  (void)data;
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || id != CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) return;
  const CUpti_GraphData *g = r->resourceDescriptor;
  fine(cuptiGetGraphNodeId(g->node, &cloned.node[cloned.count]));
  fine(cuptiGetGraphNodeId(g->originalNode, &cloned.original[cloned.count++]));
}

START_TEST(resource_callbacks_lead_from_a_node_that_ran_to_the_one_it_was_made_of)
{
  CUgraph g;
  CUgraphNode node;
  CUgraphExec e;
  CUcontext c;
  CUdeviceptr p = device_bytes(1000);
  uint64_t id;
  ok(cuCtxGetCurrent(&c));
  CUpti_SubscriberHandle subscriber;
  fine(cuptiSubscribe(&subscriber, note_clones, NULL));
  fine(cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE));
  CLIENT(FILLS);
  ok(cuGraphCreate(&g, 0));
  CUDA_MEMSET_NODE_PARAMS params = {
      .dst = p, .value = 1, .elementSize = 1, .width = 100, .height = 1};
  ok(cuGraphAddMemsetNode(&node, g, NULL, 0, &params, c));
  fine(cuptiGetGraphNodeId(node, &id));
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  ck_assert_uint_eq(cloned.count, 1);
  ck_assert_uint_eq(cloned.original[0], id);
  ok(cuGraphLaunch(e, NULL));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_eq(nth(FILLS, 0)->fill.graphNodeId, cloned.node[0]);
}
END_TEST

/* ---- buffers --------------------------------------------------------------------------------- */

START_TEST(buffers_hold_as_many_records_as_the_client_says_and_none_is_lost)
{
  CUdeviceptr p = device_bytes(1000);
  CUstream s = new_cupti_stream();
  buffer_most = 3;
  CLIENT(FILLS);
  for (int i = 0; i < 100; i++)
    ok(cuMemsetD8Async(p, 1, 1000, s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(count_of(FILLS), 100);
  ck_assert_uint_eq(buffers_asked, 34);
  ck_assert_uint_eq(buffers_out, 0);
  size_t dropped;
  fine(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
  ck_assert_uint_eq(dropped, 0);
}
END_TEST

START_TEST(full_buffers_come_back_without_a_flush)
{
  CUdeviceptr p = device_bytes(1000);
  buffer_most = 1;
  CLIENT(FILLS);
  for (int i = 0; i < 3; i++)
    ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuCtxSynchronize());
  unsigned n = 0;
  while (n < 2) { /* the third is not known to be the last */
    sched_yield();
    pthread_mutex_lock(&records_lock);
    n = record_count;
    pthread_mutex_unlock(&records_lock);
  }
  ck_assert_uint_eq(count_of(FILLS), 3);
}
END_TEST

START_TEST(records_without_a_buffer_are_counted_as_dropped)
{
  CUdeviceptr p = device_bytes(1000);
  size_t dropped;
  buffer_bytes = 0;
  CLIENT(FILLS);
  for (int i = 0; i < 5; i++)
    ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(count_of(FILLS), 0);
  fine(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
  ck_assert_uint_eq(dropped, 5);
  fine(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
  ck_assert_uint_eq(dropped, 0);
}
END_TEST

START_TEST(a_flush_before_the_callbacks_is_refused)
{
  refused(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
  refused(cuptiActivityRegisterCallbacks(NULL, take_buffer), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

/* ---- what is enabled ------------------------------------------------------------------------- */

START_TEST(kinds_can_be_of_one_context_alone)
{
  CUcontext here, there = primary(1);
  ok(cuCtxGetCurrent(&here));
  CUdeviceptr p = device_bytes(1000);
  fine(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  fine(cuptiActivityEnableContext(here, CALLS));
  ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuCtxSetCurrent(there));
  ok(cuStreamQuery(NULL));
  ok(cuCtxSetCurrent(here));
  fine(cuptiActivityDisableContext(here, CALLS));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(count_of(CALLS), 2); /* the memset, and what left this context */
  refused(cuptiActivityEnableContext(NULL, CALLS), CUPTI_ERROR_INVALID_CONTEXT);
}
END_TEST

START_TEST(what_was_queued_while_a_kind_was_enabled_has_its_record)
{
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1000);
  CLIENT(FILLS);
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(p, 1, 100, s));
  fine(cuptiActivityDisable(FILLS));
  ok(cuMemsetD8Async(p, 1, 200, s));
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_eq(nth(FILLS, 0)->fill.bytes, 100);
}
END_TEST

START_TEST(kinds_that_are_not_made_are_refused)
{
  refused(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_PC_SAMPLING), CUPTI_ERROR_INVALID_KIND);
  refused(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_INVALID), CUPTI_ERROR_INVALID_KIND);
}
END_TEST

START_TEST(attributes_keep_what_they_are_given)
{
  size_t value = 0, bytes = sizeof value;
  fine(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value));
  ck_assert_uint_gt(value, 0);
  value = 12345;
  fine(cuptiActivitySetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value));
  value = 0;
  fine(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value));
  ck_assert_uint_eq(value, 12345);
  bytes = 1;
  refused(cuptiActivityGetAttribute(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, &bytes, &value),
          CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT);
}
END_TEST

START_TEST(the_second_subscriber_is_refused_until_the_first_has_gone)
{
  CUpti_SubscriberHandle a, b;
  char old[CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN] = "";
  CUpti_SubscriberParams params = {.structSize = CUpti_SubscriberParams_STRUCT_SIZE,
                                   .subscriberName = "first"};
  fine(cuptiSubscribe_v2(&a, hear, NULL, &params));
  refused(cuptiSubscribe(&b, hear, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  params.oldSubscriberName = old;
  params.oldSubscriberSize = sizeof old;
  refused(cuptiSubscribe_v2(&b, hear, NULL, &params),
          CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  ck_assert_str_eq(old, "CUPTI for first");
  fine(cuptiUnsubscribe(a));
  refused(cuptiUnsubscribe(a), CUPTI_ERROR_INVALID_PARAMETER);
  fine(cuptiSubscribe(&b, hear, NULL));
  refused(cuptiSubscribe(NULL, hear, NULL), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

START_TEST(after_the_end_nothing_is_recorded_until_it_begins_again)
{
  CUdeviceptr p = device_bytes(1000);
  CLIENT(FILLS, CALLS);
  (void)subscribed(hear);
  fine(cuptiFinalize());
  ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuCtxSynchronize());
  refused(cuptiActivityFlushAll(0), CUPTI_ERROR_INVALID_OPERATION);
  ck_assert_uint_eq(heard_count, 0);
  CLIENT(FILLS);
  ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_eq(count_of(CALLS), 0);
}
END_TEST

/* ---- many threads ---------------------------------------------------------------------------- */

enum { THREADS = 4, EACH = 100 };

static void *fill_often(void *context)
{
  ok(cuCtxSetCurrent(context));
  CUstream s = new_cupti_stream();
  CUdeviceptr p = device_bytes(1000);
  for (int i = 0; i < EACH; i++)
    ok(cuMemsetD8Async(p, 1, 1000, s));
  ok(cuStreamSynchronize(s));
  return NULL;
}

START_TEST(work_of_many_threads_is_recorded_once_each_beside_flushes)
{
  pthread_t threads[THREADS];
  CUcontext c;
  ok(cuCtxGetCurrent(&c));
  buffer_most = 7;
  CLIENT(FILLS);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, fill_often, c), 0);
  for (int i = 0; i < 20; i++)
    fine(cuptiActivityFlushAll(0));
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  ck_assert_uint_eq(count_of(FILLS), THREADS * EACH);
  static bool seen[1 << 16];
  for (unsigned i = 0; i < record_count; i++) {
    uint32_t id = records[i].fill.correlationId;
    ck_assert(id < sizeof seen && !seen[id]);
    seen[id] = true;
  }
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {
      each_operation_has_one_record_that_says_what_it_was,
      a_copy_between_devices_is_a_record_of_its_own_kind,
      a_kernel_has_a_record_with_its_name_and_shape_with_and_without_a_twin,
      times_are_of_the_real_clock_where_the_client_has_none,
      work_begins_after_its_call_and_ends_before_its_stream_is_waited_for,
      work_of_a_held_stream_has_no_record_before_the_release,
      a_copy_over_a_slow_link_lasts_as_long_as_the_link_says,
      kernels_say_when_they_were_queued_if_asked,
      launches_and_kernels_last_at_least_as_long_as_on_the_card,
      work_has_the_correlation_that_the_callbacks_of_its_call_told,
      callbacks_see_parameters_results_and_what_they_left,
      functions_have_the_names_and_numbers_of_the_headers,
      waits_have_records_of_what_they_waited_for,
      external_ids_precede_the_calls_made_under_them,
      nodes_of_a_graph_have_their_own_records_with_the_correlation_of_the_launch,
      a_launch_is_one_record_where_graphs_are_traced_as_a_whole,
      resource_callbacks_lead_from_a_node_that_ran_to_the_one_it_was_made_of,
      buffers_hold_as_many_records_as_the_client_says_and_none_is_lost,
      full_buffers_come_back_without_a_flush,
      records_without_a_buffer_are_counted_as_dropped,
      a_flush_before_the_callbacks_is_refused,
      kinds_can_be_of_one_context_alone,
      what_was_queued_while_a_kind_was_enabled_has_its_record,
      kinds_that_are_not_made_are_refused,
      attributes_keep_what_they_are_given,
      the_second_subscriber_is_refused_until_the_first_has_gone,
      after_the_end_nothing_is_recorded_until_it_begins_again,
      work_of_many_threads_is_recorded_once_each_beside_flushes,
      NULL};
  return run_tests("sim_cupti", tests, set_up_device0);
}
