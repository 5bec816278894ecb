/* test_queues.c: what a wait had to wait for, rule by rule, on traces made by hand. Each case names
 * the page of CUDA's documentation that it follows. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/model/resolve.h"
#include "tests/reports/synth.h"

enum { LEGACY = 1, PER_THREAD = 2, A = 0x1000, B = 0x2000, N = 0x3000, E = 0x50, F = 0x60 };
enum { PENDING = 1, REDUNDANT = 0, UNKNOWN = -1, NO_ROW = -2 };

static uint64_t now;   /* ns since the opening: each call comes after the one before */
static int thread;     /* that calls */
static uint32_t where; /* context */

static void record_call(const char *api, trace_event e)
{
  e.api = synth_api(api);
  e.stack = where << 24;
  now += 100;
  ck_assert(synth_event(thread, now, 10, e));
}

static void begin_program(void)
{
  now = 0;
  thread = 0;
  where = 1;
  synth_open(synth_dir());
}

/* ---- the program's calls --------------------------------------------------------------------- */

static void create_stream(uint64_t stream, bool non_blocking)
{
  record_call("cudaStreamCreateWithFlags",
              (trace_event){.kind = WEIR_EV_STREAM, .a = 1, .b = non_blocking, .stream = stream});
}

static void launch(uint64_t stream)
{
  record_call("cudaLaunchKernel", (trace_event){.kind = WEIR_EV_LAUNCH, .stream = stream});
}

static void create_event(uint64_t event, unsigned flags)
{
  record_call("cudaEventCreateWithFlags",
              (trace_event){.kind = WEIR_EV_EVENT, .a = event, .b = flags});
}

static void record(uint64_t event, uint64_t stream)
{
  record_call("cudaEventRecord",
              (trace_event){.kind = WEIR_EV_EVENT, .a = event, .stream = stream});
}

static void stream_wait(uint64_t stream, uint64_t event)
{
  record_call("cudaStreamWaitEvent", (trace_event){.kind = WEIR_EV_SYNC,
                                                   .sync_type = WEIR_SYNC_STREAM_WAIT,
                                                   .a = event,
                                                   .stream = stream});
}

static void sync_stream(uint64_t stream)
{
  record_call("cudaStreamSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_STREAM, .stream = stream});
}

static void sync_event(uint64_t event)
{
  record_call("cudaEventSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_EVENT, .a = event});
}

static void sync_device(void)
{
  record_call("cudaDeviceSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_CONTEXT});
}

static void query_stream(uint64_t stream, unsigned status)
{
  record_call("cudaStreamQuery", (trace_event){.kind = WEIR_EV_SYNC,
                                               .sync_type = WEIR_SYNC_QUERY,
                                               .stream = stream,
                                               .status = (uint16_t)status});
}

static void query_event(uint64_t event, unsigned status)
{
  record_call("cudaEventQuery", (trace_event){.kind = WEIR_EV_SYNC,
                                              .sync_type = WEIR_SYNC_QUERY,
                                              .a = event,
                                              .status = (uint16_t)status});
}

static void copy(const char *api, int direction, unsigned host, unsigned flags, uint64_t stream)
{
  bool out = direction == WEIR_COPY_DTOH;
  unsigned mem = out ? host | WEIR_MEM_DEVICE << 4 : WEIR_MEM_DEVICE | host << 4;
  record_call(api, (trace_event){.kind = WEIR_EV_COPY,
                                 .copy_kind = (uint8_t)direction,
                                 .mem = (uint8_t)mem,
                                 .bytes = 1000,
                                 .flags = (uint8_t)flags,
                                 .stream = stream});
}

/* ---- what the trace says of it --------------------------------------------------------------- */

static const char *trace;

static void resolve(void)
{
  const resolve_settings settings = {0};
  resolve_counts counts;
  ck_assert_msg(resolve_trace(trace, &settings, &counts) == WEIR_OK, "%s", weir_error_message());
}

static void finish(void)
{
  const char *one[] = {synth_spool(), NULL};
  synth_close();
  trace = synth_import("t.db", one);
  resolve();
}

/* A number of the nth row of wait_detail, from 0. */
static int64_t detail(int n, const char *column)
{
  char sql[200];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT coalesce((SELECT ifnull(%s, -1) FROM wait_detail ORDER BY id LIMIT 1"
                 " OFFSET %d), -2)",
                 column, n);
  return synth_number(trace, sql);
}

#define IS(n, verdict) ck_assert_int_eq(detail(n, "pending"), verdict)

/* ---- waits ----------------------------------------------------------------------------------- */

/* Runtime API, cudaDeviceSynchronize: "Blocks until the device has completed all preceding
 * requested tasks." */
START_TEST(a_device_wait_with_nothing_queued_since_the_last_is_redundant)
{
  begin_program();
  sync_device();
  launch(LEGACY);
  sync_device();
  sync_device();
  launch(LEGACY);
  sync_device();
  finish();
  IS(0, REDUNDANT);
  ck_assert_int_eq(detail(0, "covered_by"), -1);
  IS(1, PENDING);
  IS(2, REDUNDANT);
  ck_assert_int_eq(detail(2, "covered_by"), detail(1, "id"));
  IS(3, PENDING);
}
END_TEST

/* cudaStreamSynchronize: "Blocks until stream has completed all operations." */
START_TEST(a_stream_wait_is_for_its_own_stream)
{
  begin_program();
  create_stream(A, true);
  create_stream(B, true);
  launch(A);
  sync_stream(B);
  sync_stream(A);
  sync_stream(A);
  sync_device();
  finish();
  IS(0, REDUNDANT);
  IS(1, PENDING);
  IS(2, REDUNDANT);
  IS(3, REDUNDANT);
}
END_TEST

START_TEST(what_is_waited_for_is_counted_and_named)
{
  begin_program();
  create_stream(A, true);
  create_stream(B, true);
  launch(A);
  copy("cudaMemcpyAsync", WEIR_COPY_HTOD, WEIR_MEM_PINNED, WEIR_EVF_ASYNC, A);
  sync_device();
  launch(A);
  launch(B);
  sync_device();
  launch(B);
  sync_stream(B);
  finish();
  ck_assert_int_eq(detail(0, "operations"), 2);
  ck_assert_int_eq(detail(0, "bytes"), 1000);
  ck_assert_int_eq(detail(0, "streams"), 1);
  ck_assert_int_eq(detail(0, "stream"), A);
  ck_assert_int_eq(detail(0, "narrower"), 3);
  ck_assert_int_eq(synth_number(trace, "SELECT kind FROM event WHERE id = (SELECT youngest FROM"
                                       " wait_detail ORDER BY id LIMIT 1)"),
                   WEIR_EV_COPY);
  ck_assert_int_eq(detail(1, "operations"), 2);
  ck_assert_int_eq(detail(1, "bytes"), 0);
  ck_assert_int_eq(detail(1, "streams"), 2);
  ck_assert_int_eq(detail(1, "stream"), -1);
  ck_assert_int_eq(detail(1, "narrower"), -1);
  ck_assert_int_eq(detail(2, "narrower"), -1);
}
END_TEST

/* Of what each wait covers, whoever has waited for other things before: an event's own stream,
 * up to where it was recorded. A copy that the host waits in has brought its result by itself. */
START_TEST(what_the_host_may_look_at_or_change_is_of_what_the_wait_covers)
{
  enum { RESULT = 1, SOURCE = 2 };
  begin_program();
  create_stream(A, true);
  create_stream(B, true);
  create_event(E, 0);
  create_event(F, 0);
  launch(A);
  record(E, A);
  copy("cudaMemcpyAsync", WEIR_COPY_DTOH, WEIR_MEM_PINNED, WEIR_EVF_ASYNC, A);
  copy("cudaMemcpyAsync", WEIR_COPY_DTOH, WEIR_MEM_PINNED, WEIR_EVF_ASYNC, B);
  record(F, B);
  sync_event(E); /* 0: the kernel alone */
  sync_event(F);
  sync_stream(A);
  copy("cudaMemcpyAsync", WEIR_COPY_HTOD, WEIR_MEM_PINNED, WEIR_EVF_ASYNC, A);
  sync_device(); /* 3 */
  copy("cudaMemcpyAsync", WEIR_COPY_HTOD, WEIR_MEM_PAGEABLE, WEIR_EVF_ASYNC, A);
  sync_device();
  copy("cudaMemcpy", WEIR_COPY_DTOH, WEIR_MEM_PAGEABLE, WEIR_EVF_IMPLICIT_SYNC, A);
  launch(A);
  sync_stream(A); /* 6: behind the copy's own */
  sync_device();
  finish();
  static const int host[] = {0, RESULT, RESULT, SOURCE, 0, -1, 0, -1};
  for (int i = 0; i < 8; i++)
    ck_assert_msg(detail(i, "host") == host[i], "wait %d: %d", i, (int)detail(i, "host"));
}
END_TEST

/* Runtime API, "Stream synchronization behavior": the legacy default stream waits for blocking
 * streams, and for no others. */
START_TEST(what_comes_before_the_legacy_stream_is_in_it_or_in_blocking_streams)
{
  begin_program();
  create_stream(A, false);
  create_stream(N, true);
  launch(LEGACY);
  sync_device();
  launch(A);
  sync_device();
  launch(N);
  sync_device();
  launch(A);
  launch(N);
  sync_device();
  sync_device();
  finish();
  static const int before[] = {1, 1, 0, 0, -1};
  for (int i = 0; i < 5; i++)
    ck_assert_msg(detail(i, "before_legacy") == before[i], "wait %d", i);
}
END_TEST

/* cudaStreamDestroy: "In case the device is still doing work in the stream ... the function will
 * return immediately and the resources associated with stream will be released automatically once
 * the device has completed all work." */
START_TEST(work_of_a_destroyed_stream_is_still_waited_for)
{
  begin_program();
  create_stream(A, true);
  launch(A);
  record_call("cudaStreamDestroy", (trace_event){.kind = WEIR_EV_STREAM, .stream = A});
  create_stream(A, true);
  sync_stream(A);
  sync_device();
  finish();
  IS(0, REDUNDANT);
  IS(1, PENDING);
}
END_TEST

/* cudaStreamQuery: "Returns cudaSuccess if all operations in stream have completed". */
START_TEST(a_query_that_succeeded_has_said_that_all_is_complete)
{
  begin_program();
  create_stream(A, true);
  launch(A);
  query_stream(A, 600);
  sync_stream(A);
  launch(A);
  query_stream(A, 0);
  sync_stream(A);
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
}
END_TEST

START_TEST(a_wait_that_failed_has_said_nothing)
{
  begin_program();
  launch(LEGACY);
  record_call("cudaDeviceSynchronize",
              (trace_event){.kind = WEIR_EV_SYNC, .sync_type = WEIR_SYNC_CONTEXT, .status = 700});
  sync_device();
  finish();
  IS(0, PENDING);
  IS(1, NO_ROW);
}
END_TEST

/* ---- events ---------------------------------------------------------------------------------- */

/* cudaEventSynchronize: "Waits until the completion of all work currently captured in event." */
START_TEST(an_event_is_complete_with_the_work_ahead_of_it)
{
  begin_program();
  create_stream(A, true);
  create_event(E, 2);
  launch(A);
  record(E, A);
  launch(A);
  sync_event(E);
  sync_event(E);
  sync_stream(A);
  finish();
  IS(0, PENDING);
  ck_assert_int_eq(detail(0, "operations"), 1);
  IS(1, REDUNDANT);
  IS(2, PENDING);
  ck_assert_int_eq(detail(2, "operations"), 1);
}
END_TEST

/* cudaEventSynchronize and cudaStreamWaitEvent: "If cudaEventRecord() has not been called on event,
 * this function returns immediately"; "this call acts as a no-op". */
START_TEST(an_event_never_recorded_is_waited_for_by_nobody)
{
  begin_program();
  create_stream(A, true);
  create_event(E, 2);
  launch(LEGACY);
  sync_event(E);
  stream_wait(A, E);
  sync_stream(A);
  finish();
  IS(0, REDUNDANT);
  IS(1, REDUNDANT);
}
END_TEST

/* cudaEventRecord: "This call overwrites any previously captured state in event." */
START_TEST(an_event_recorded_again_is_the_later_recording)
{
  begin_program();
  create_stream(A, true);
  create_stream(B, true);
  create_event(E, 2);
  launch(A);
  record(E, A);
  record(E, B);
  sync_event(E);
  record(E, A);
  sync_event(E);
  launch(A);
  record(E, A);
  sync_event(E);
  finish();
  IS(0, REDUNDANT);
  IS(1, PENDING);
  IS(2, PENDING);
}
END_TEST

/* cudaStreamWaitEvent: "Makes all future work submitted to stream wait for all work captured in
 * event ... Future calls to cudaEventRecord() do not affect" what was waited for. */
START_TEST(a_stream_that_waits_for_an_event_carries_its_work_on)
{
  begin_program();
  create_stream(A, true);
  create_stream(B, true);
  create_event(E, 2);
  launch(A);
  record(E, A);
  stream_wait(B, E);
  launch(B);
  launch(A);
  record(E, A);
  sync_stream(B);
  sync_stream(A);
  finish();
  IS(0, PENDING);
  ck_assert_int_eq(detail(0, "operations"), 2);
  ck_assert_int_eq(detail(0, "streams"), 2);
  IS(1, PENDING);
  ck_assert_int_eq(detail(1, "operations"), 1);
}
END_TEST

START_TEST(an_event_carries_what_its_stream_waited_for)
{
  begin_program();
  create_stream(A, true);
  create_stream(B, true);
  create_event(E, 2);
  create_event(F, 2);
  launch(A);
  record(E, A);
  stream_wait(B, E);
  record(F, B);
  sync_event(F);
  sync_stream(A);
  sync_device();
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
  IS(2, REDUNDANT);
}
END_TEST

/* cudaEventElapsedTime: "If cudaEventQuery() would return cudaErrorNotReady on at least one of the
 * events ... the function returns cudaErrorNotReady". */
START_TEST(a_time_between_events_says_that_both_are_complete)
{
  begin_program();
  create_stream(A, true);
  create_event(E, 0);
  create_event(F, 0);
  record(E, A);
  launch(A);
  record(F, A);
  record_call("cudaEventElapsedTime", (trace_event){.kind = WEIR_EV_EVENT, .a = E, .b = F});
  sync_stream(A);
  finish();
  IS(0, REDUNDANT);
}
END_TEST

START_TEST(a_query_of_an_event_says_what_it_captured)
{
  begin_program();
  create_stream(A, true);
  create_event(E, 2);
  launch(A);
  record(E, A);
  query_event(E, 600);
  sync_event(E);
  launch(A);
  record(E, A);
  query_event(E, 0);
  sync_stream(A);
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
}
END_TEST

/* Interprocess events are recorded by whoever has them. */
START_TEST(an_event_of_several_processes_is_not_judged)
{
  begin_program();
  create_event(E, 4 | 2);
  sync_event(E);
  sync_event(F); /* its creation was not seen */
  finish();
  IS(0, UNKNOWN);
  IS(1, UNKNOWN);
}
END_TEST

/* ---- default streams: Runtime API, "Stream synchronization behavior" ------------------------- */

/* "the legacy stream first waits on all blocking streams, the action is queued in the legacy
 * stream, and then all blocking streams wait on the legacy stream" */
START_TEST(an_action_in_the_legacy_stream_waits_for_blocking_streams)
{
  begin_program();
  create_stream(A, false);
  create_event(E, 2);
  launch(A);
  record(E, LEGACY);
  sync_event(E);
  sync_stream(A);
  sync_device();
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
  IS(2, REDUNDANT);
}
END_TEST

START_TEST(blocking_streams_wait_for_the_legacy_stream)
{
  begin_program();
  create_stream(A, false);
  launch(LEGACY);
  launch(A);
  sync_stream(A);
  sync_stream(LEGACY);
  finish();
  IS(0, PENDING);
  ck_assert_int_eq(detail(0, "operations"), 2);
  IS(1, REDUNDANT);
}
END_TEST

/* "Non-blocking streams ... do not synchronize with the legacy stream." */
START_TEST(non_blocking_streams_and_the_legacy_stream_are_apart)
{
  begin_program();
  create_stream(N, true);
  launch(N);
  launch(LEGACY);
  launch(N);
  sync_stream(LEGACY);
  sync_stream(N);
  launch(LEGACY);
  sync_stream(N);
  finish();
  ck_assert_int_eq(detail(0, "operations"), 1);
  IS(1, PENDING);
  ck_assert_int_eq(detail(1, "operations"), 2);
  IS(2, REDUNDANT);
}
END_TEST

/* Whether a blocking stream with no action of its own since waits, the page leaves open: it may. */
START_TEST(what_a_wait_may_not_have_covered_stays_pending)
{
  begin_program();
  create_stream(A, false);
  launch(LEGACY);
  sync_stream(A);
  sync_stream(LEGACY);
  launch(A);
  sync_stream(LEGACY);
  sync_stream(A);
  finish();
  IS(0, PENDING);
  IS(1, PENDING);
  IS(2, PENDING);
  IS(3, PENDING);
}
END_TEST

/* "The per-thread default stream is an implicit stream local to both the thread and the CUcontext,
 * and which does not synchronize with other streams ... is not a non-blocking stream and will
 * synchronize with the legacy default stream if both are used in a program." */
START_TEST(per_thread_default_streams_are_one_a_thread)
{
  begin_program();
  launch(PER_THREAD);
  thread = 1;
  sync_stream(PER_THREAD);
  thread = 0;
  sync_stream(PER_THREAD);
  thread = 1;
  launch(PER_THREAD);
  thread = 0;
  sync_stream(PER_THREAD);
  launch(LEGACY);
  sync_stream(LEGACY);
  finish();
  ck_assert_int_eq(synth_number(trace, "SELECT pending FROM wait_detail d JOIN event e USING(id)"
                                       " ORDER BY e.start LIMIT 1"),
                   0);
  ck_assert_int_eq(synth_number(trace, "SELECT sum(pending) FROM wait_detail"), 2);
  ck_assert_int_eq(synth_number(trace, "SELECT operations FROM wait_detail d JOIN event e"
                                       " USING(id) WHERE e.stream = 1"),
                   2);
}
END_TEST

/* ---- copies and memsets: "API synchronization behavior" -------------------------------------- */

/* "a stream sync is performed before the copy is initiated ... the DMA to final destination may not
 * have completed"; "from pinned host memory to device memory, synchronous with respect to the
 * host"; "from device to host, returns only once the copy has completed" */
START_TEST(a_copy_that_waits_says_what_is_complete)
{
  const unsigned waits = WEIR_EVF_IMPLICIT_SYNC;
  begin_program();
  launch(LEGACY);
  copy("cudaMemcpy", WEIR_COPY_HTOD, WEIR_MEM_PAGEABLE, waits, LEGACY);
  sync_device(); /* for the copy itself */
  launch(LEGACY);
  copy("cudaMemcpy", WEIR_COPY_HTOD, WEIR_MEM_PINNED, waits, LEGACY);
  sync_device();
  launch(LEGACY);
  copy("cudaMemcpy", WEIR_COPY_DTOH, WEIR_MEM_PAGEABLE, waits, LEGACY);
  sync_device();
  copy("cudaMemcpy", WEIR_COPY_DTOH, WEIR_MEM_PAGEABLE, waits, LEGACY);
  finish();
  IS(0, PENDING);
  IS(1, PENDING);
  ck_assert_int_eq(detail(1, "operations"), 1);
  IS(2, PENDING);
  IS(3, REDUNDANT);
  IS(4, PENDING);
  IS(5, REDUNDANT);
  IS(6, REDUNDANT);
}
END_TEST

/* Weir keeps what is complete when a call returns: what has come to the host is there, what goes to a device may be on its way. */
START_TEST(a_staged_copy_to_the_host_is_complete_when_it_returns)
{
  const unsigned staged = WEIR_EVF_IMPLICIT_SYNC | WEIR_EVF_STAGED;
  begin_program();
  launch(LEGACY);
  copy("cudaMemcpy", WEIR_COPY_DTOH, WEIR_MEM_PAGEABLE, staged, LEGACY);
  sync_device();
  copy("cudaMemcpy", WEIR_COPY_HTOD, WEIR_MEM_PAGEABLE, staged, LEGACY);
  sync_device();
  copy("cudaMemcpyAsync", WEIR_COPY_DTOH, WEIR_MEM_PAGEABLE, staged | WEIR_EVF_ASYNC, LEGACY);
  sync_device();
  finish();
  IS(1, REDUNDANT);
  IS(3, PENDING);
  IS(5, PENDING);
}
END_TEST

/* "For transfers from device memory to device memory, no host-side synchronization is
 * performed." */
START_TEST(a_copy_on_the_device_stays_pending)
{
  begin_program();
  record_call("cudaMemcpy", (trace_event){.kind = WEIR_EV_COPY,
                                          .copy_kind = WEIR_COPY_DTOD,
                                          .mem = WEIR_MEM_DEVICE | WEIR_MEM_DEVICE << 4,
                                          .bytes = 64,
                                          .stream = LEGACY});
  sync_device();
  finish();
  IS(0, PENDING);
  ck_assert_int_eq(detail(0, "bytes"), 64);
}
END_TEST

/* Asynchronous: "device memory to pageable host memory: returns only once the copy has completed";
 * pageable to device "might be synchronous". */
START_TEST(asynchronous_copies_of_pageable_memory_wait_one_way_only)
{
  const unsigned waits = WEIR_EVF_IMPLICIT_SYNC | WEIR_EVF_ASYNC;
  begin_program();
  create_stream(A, true);
  launch(A);
  copy("cudaMemcpyAsync", WEIR_COPY_DTOH, WEIR_MEM_PAGEABLE, waits, A);
  sync_stream(A);
  copy("cudaMemcpyAsync", WEIR_COPY_HTOD, WEIR_MEM_PAGEABLE, waits, A);
  sync_stream(A);
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
  IS(2, REDUNDANT);
  IS(3, PENDING);
}
END_TEST

/* "The synchronous memset functions are asynchronous with respect to the host except when the
 * target is pinned host memory or a Unified Memory region, in which case they are fully
 * synchronous." */
START_TEST(a_memset_waits_for_memory_that_the_host_sees)
{
  trace_event set = {.kind = WEIR_EV_MEMSET, .mem = WEIR_MEM_DEVICE, .bytes = 8, .stream = LEGACY};
  begin_program();
  record_call("cudaMemset", set);
  sync_device();
  set.mem = WEIR_MEM_PINNED;
  set.flags = WEIR_EVF_IMPLICIT_SYNC;
  record_call("cudaMemset", set);
  sync_device();
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
  IS(2, REDUNDANT);
}
END_TEST

/* Programming guide, "Implicit Synchronization", and cudaFree: "may perform implicit
 * synchronization": it may wait for all of the device, and promises nothing. */
START_TEST(a_free_may_wait_and_promises_nothing)
{
  begin_program();
  create_stream(N, true);
  launch(N);
  record_call("cudaFree",
              (trace_event){.kind = WEIR_EV_FREE, .a = 64, .flags = WEIR_EVF_IMPLICIT_SYNC});
  sync_device();
  finish();
  IS(0, PENDING);
  IS(1, PENDING);
}
END_TEST

/* ---- graphs, host functions, contexts -------------------------------------------------------- */

/* cudaStreamBeginCapture: operations pushed into the stream "will not be executed, but will instead
 * be captured into a graph". */
START_TEST(captured_work_is_not_pending_and_a_graph_launch_is)
{
  begin_program();
  create_stream(A, true);
  record_call("cudaStreamBeginCapture", (trace_event){.kind = WEIR_EV_CALL, .stream = A});
  record_call("cudaLaunchKernel",
              (trace_event){.kind = WEIR_EV_LAUNCH, .stream = A, .flags = WEIR_EVF_CAPTURE});
  record_call("cudaStreamEndCapture", (trace_event){.kind = WEIR_EV_CALL, .stream = A});
  sync_stream(A);
  record_call("cuGraphLaunch", (trace_event){.kind = WEIR_EV_CALL, .stream = A});
  sync_stream(A);
  record_call("cudaLaunchHostFunc", (trace_event){.kind = WEIR_EV_CALL, .stream = A});
  sync_stream(A);
  finish();
  IS(0, REDUNDANT);
  IS(1, PENDING);
  IS(2, PENDING);
}
END_TEST

/* cuCtxSynchronize: "Blocks until the current context has completed all preceding requested
 * tasks." */
START_TEST(a_context_is_waited_for_alone)
{
  begin_program();
  launch(LEGACY);
  where = 2;
  launch(LEGACY);
  sync_device();
  where = 1;
  sync_stream(LEGACY);
  finish();
  ck_assert_int_eq(detail(0, "operations"), 1);
  IS(1, PENDING);
}
END_TEST

START_TEST(a_reset_leaves_nothing_pending)
{
  begin_program();
  launch(LEGACY);
  sync_device();
  launch(LEGACY);
  record_call("cudaDeviceReset", (trace_event){.kind = WEIR_EV_RESET});
  sync_device();
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
}
END_TEST

/* B had no work, and what it waited for was complete before the reset. */
START_TEST(a_reset_shows_nothing_of_a_stream_that_was_idle)
{
  begin_program();
  create_stream(A, false);
  create_stream(B, false);
  launch(A);
  record(E, A);
  stream_wait(B, E);
  sync_stream(A);
  record_call("cudaDeviceReset", (trace_event){.kind = WEIR_EV_RESET});
  sync_stream(B);
  finish();
  IS(1, REDUNDANT);
  ck_assert_int_eq(detail(1, "covered_by"), -1);
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

static void call_for(int n, uint64_t at, uint64_t ns, trace_event e)
{
  e.stack = 1u << 24;
  ck_assert(synth_event(n, at, ns, e));
}

/* Thread 1's launch may have come ahead of thread 0's wait or behind it. */
START_TEST(work_that_overlaps_a_wait_may_be_pending_before_and_after)
{
  const trace_event work = {
      .kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel"), .stream = LEGACY};
  const trace_event wait = {.kind = WEIR_EV_SYNC,
                            .api = synth_api("cudaDeviceSynchronize"),
                            .sync_type = WEIR_SYNC_CONTEXT};
  begin_program();
  call_for(1, 100, 500, work);
  call_for(0, 200, 1000, wait);
  call_for(0, 2000, 10, wait);
  call_for(0, 3000, 10, wait);
  finish();
  ck_assert_int_eq(synth_number(trace, "SELECT group_concat(pending) = '1,1,0' FROM (SELECT"
                                       " d.pending FROM wait_detail d JOIN event e USING(id)"
                                       " ORDER BY e.start)"),
                   1);
}
END_TEST

/* What a wait says is known when it returns: another thread's that begins before is none the
 * wiser. */
START_TEST(two_threads_that_wait_at_once_both_wait)
{
  const trace_event work = {
      .kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel"), .stream = LEGACY};
  const trace_event wait = {.kind = WEIR_EV_SYNC,
                            .api = synth_api("cudaDeviceSynchronize"),
                            .sync_type = WEIR_SYNC_CONTEXT};
  begin_program();
  call_for(0, 100, 10, work);
  call_for(0, 200, 1000, wait);
  call_for(1, 300, 1000, wait);
  call_for(1, 1400, 10, wait);
  finish();
  ck_assert_int_eq(synth_number(trace, "SELECT group_concat(pending) = '1,1,0' FROM (SELECT"
                                       " d.pending FROM wait_detail d JOIN event e USING(id)"
                                       " ORDER BY e.start)"),
                   1);
}
END_TEST

/* Thread 1's stream may wait for the recording that began meanwhile, though it has no work. */
START_TEST(a_stream_whose_event_is_recorded_meanwhile_may_wait_for_anything)
{
  const trace_event work = {
      .kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel"), .stream = A};
  const trace_event mark = {
      .kind = WEIR_EV_EVENT, .api = synth_api("cudaEventRecord"), .a = E, .stream = A};
  const trace_event follow = {.kind = WEIR_EV_SYNC,
                              .api = synth_api("cudaStreamWaitEvent"),
                              .sync_type = WEIR_SYNC_STREAM_WAIT,
                              .a = E,
                              .stream = B};
  const trace_event wait = {.kind = WEIR_EV_SYNC,
                            .api = synth_api("cudaDeviceSynchronize"),
                            .sync_type = WEIR_SYNC_CONTEXT};
  begin_program();
  call_for(0, 100, 10, mark);
  call_for(1, 200, 1000, follow);
  call_for(0, 300, 10, work);
  call_for(0, 400, 10, mark);
  call_for(0, 500, 10, wait);
  finish();
  IS(0, UNKNOWN);
}
END_TEST

/* ---- traces ---------------------------------------------------------------------------------- */

START_TEST(a_process_that_lacks_events_is_not_judged)
{
  now = 0, thread = 0, where = 1;
  synth_open_limited(synth_dir(), 8 << 20);
  trace_event e = {.kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel"), .stream = LEGACY};
  sync_device();
  for (bool room = true; room;)
    room = synth_event(0, now += 100, 10, e);
  finish();
  ck_assert_int_gt(synth_number(trace, "SELECT dropped FROM process"), 0);
  IS(0, UNKNOWN);
}
END_TEST

START_TEST(a_trace_that_is_added_to_is_judged_anew)
{
  begin_program();
  launch(LEGACY);
  sync_device();
  sync_device();
  finish();
  IS(0, PENDING);
  IS(1, REDUNDANT);
  begin_program();
  launch(LEGACY);
  sync_device();
  synth_close();
  trace_importer *im = NULL;
  ck_assert_int_eq(importer_open(&im, trace, &(importer_options){.merge = true}), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(
      synth_number(trace, "SELECT count(*) FROM sqlite_schema WHERE name = 'wait_detail'"), 0);
  resolve();
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM wait_detail"), 3);
  ck_assert_int_eq(synth_number(trace, "SELECT sum(pending) FROM wait_detail"), 2);
}
END_TEST

/* ---- reports --------------------------------------------------------------------------------- */

static void redundant_program(void)
{
  begin_program();
  sync_device(); /* ahead of any work: not counted */
  launch(LEGACY);
  sync_device();
  sync_device();
  launch(LEGACY);
  launch(LEGACY);
  sync_stream(LEGACY);
  sync_device();
}

static void check_report(void)
{
  json_t *report = synth_json(trace), *waits = json_object_get(report, "waits");
  const json_t *sites = json_object_get(json_object_get(report, "sites"), "redundant_waits");
  char *text = synth_text(trace, 0);
  ck_assert_int_eq(json_integer_value(json_object_get(waits, "judged_calls")), 4);
  ck_assert_int_eq(json_integer_value(json_object_get(waits, "unknown_calls")), 0);
  ck_assert_int_eq(json_integer_value(json_object_get(waits, "redundant_calls")), 2);
  ck_assert_int_eq(json_integer_value(json_object_get(waits, "redundant_ns")), 20);
  ck_assert_int_eq(json_integer_value(json_object_get(waits, "wider_calls")), 0);
  ck_assert_int_eq(json_array_size(sites), 1);
  ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(sites, 0), "calls")), 2);
  ck_assert_ptr_nonnull(strstr(text, "Waits that an earlier one had covered"));
  ck_assert_ptr_nonnull(strstr(text, "2 of 4 waits"));
  free(text);
  json_decref(report);
}

START_TEST(a_report_says_which_waits_an_earlier_one_had_covered)
{
  const char *one[] = {NULL, NULL};
  redundant_program();
  synth_close();
  one[0] = synth_spool();
  trace = synth_import("t.db", one);
  check_report();
  resolve();
  check_report();
}
END_TEST

static void add_tests(TCase *t)
{
  tcase_add_test(t, a_device_wait_with_nothing_queued_since_the_last_is_redundant);
  tcase_add_test(t, a_stream_wait_is_for_its_own_stream);
  tcase_add_test(t, what_is_waited_for_is_counted_and_named);
  tcase_add_test(t, what_the_host_may_look_at_or_change_is_of_what_the_wait_covers);
  tcase_add_test(t, what_comes_before_the_legacy_stream_is_in_it_or_in_blocking_streams);
  tcase_add_test(t, work_of_a_destroyed_stream_is_still_waited_for);
  tcase_add_test(t, a_query_that_succeeded_has_said_that_all_is_complete);
  tcase_add_test(t, a_wait_that_failed_has_said_nothing);
  tcase_add_test(t, an_event_is_complete_with_the_work_ahead_of_it);
  tcase_add_test(t, an_event_never_recorded_is_waited_for_by_nobody);
  tcase_add_test(t, an_event_recorded_again_is_the_later_recording);
  tcase_add_test(t, a_stream_that_waits_for_an_event_carries_its_work_on);
  tcase_add_test(t, an_event_carries_what_its_stream_waited_for);
  tcase_add_test(t, a_time_between_events_says_that_both_are_complete);
  tcase_add_test(t, a_query_of_an_event_says_what_it_captured);
  tcase_add_test(t, an_event_of_several_processes_is_not_judged);
  tcase_add_test(t, an_action_in_the_legacy_stream_waits_for_blocking_streams);
  tcase_add_test(t, blocking_streams_wait_for_the_legacy_stream);
  tcase_add_test(t, non_blocking_streams_and_the_legacy_stream_are_apart);
  tcase_add_test(t, what_a_wait_may_not_have_covered_stays_pending);
  tcase_add_test(t, per_thread_default_streams_are_one_a_thread);
  tcase_add_test(t, a_copy_that_waits_says_what_is_complete);
  tcase_add_test(t, a_staged_copy_to_the_host_is_complete_when_it_returns);
  tcase_add_test(t, a_copy_on_the_device_stays_pending);
  tcase_add_test(t, asynchronous_copies_of_pageable_memory_wait_one_way_only);
  tcase_add_test(t, a_memset_waits_for_memory_that_the_host_sees);
  tcase_add_test(t, a_free_may_wait_and_promises_nothing);
  tcase_add_test(t, captured_work_is_not_pending_and_a_graph_launch_is);
  tcase_add_test(t, a_context_is_waited_for_alone);
  tcase_add_test(t, a_reset_leaves_nothing_pending);
  tcase_add_test(t, a_reset_shows_nothing_of_a_stream_that_was_idle);
  tcase_add_test(t, work_that_overlaps_a_wait_may_be_pending_before_and_after);
  tcase_add_test(t, two_threads_that_wait_at_once_both_wait);
  tcase_add_test(t, a_stream_whose_event_is_recorded_meanwhile_may_wait_for_anything);
  tcase_add_test(t, a_process_that_lacks_events_is_not_judged);
  tcase_add_test(t, a_trace_that_is_added_to_is_judged_anew);
  tcase_add_test(t, a_report_says_which_waits_an_earlier_one_had_covered);
}

int main(void)
{
  Suite *s = suite_create("reports/queues");
  TCase *t = tcase_create("queues");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  add_tests(t);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
