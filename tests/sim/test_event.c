/* test_event.c: events: recorded, asked, waited for, timed. */
#include "sim.h"

static CUstream new_stream(void)
{
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  return s;
}

static CUevent create_event_with(unsigned flags)
{
  CUevent e;
  ok(cuEventCreate(&e, flags));
  return e;
}

static CUresult wait_for(void *e)
{
  return cuEventSynchronize(e);
}

START_TEST(an_event_never_recorded_is_done)
{
  CUevent e = create_event_with(0);
  ok(cuEventQuery(e));
  ok(cuEventSynchronize(e));
  CUstream s = new_stream();
  ok(cuStreamWaitEvent(s, e, 0));
  ok(cuStreamQuery(s));
}
END_TEST

START_TEST(an_event_is_done_when_its_stream_is_there)
{
  CUstream s = new_stream();
  CUevent e = create_event_with(0);
  struct call waits;
  ok(weir_sim_hold(s));
  ok(cuEventRecord(e, s));
  fails(cuEventQuery(e), CUDA_ERROR_NOT_READY);
  call_blocked(&waits, "cuEventSynchronize", wait_for, e);
  ok(weir_sim_release(s));
  ok(call_end(&waits));
  ok(cuEventQuery(e));
}
END_TEST

/* What is queued later is no part of it. */
START_TEST(an_event_of_a_context_is_done_when_all_its_streams_are_there)
{
  CUstream s = new_stream(), t = new_stream(), later = new_stream();
  CUevent e = create_event_with(CU_EVENT_DISABLE_TIMING);
  CUcontext context;
  struct call waits;
  ok(cuCtxGetCurrent(&context));
  ok(cuCtxRecordEvent(context, e));
  ok(cuEventQuery(e));
  ok(weir_sim_hold(s));
  ok(weir_sim_hold(t));
  ok(cuCtxRecordEvent(context, e));
  ok(weir_sim_hold(later));
  fails(cuEventQuery(e), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  fails(cuEventQuery(e), CUDA_ERROR_NOT_READY);
  call_blocked(&waits, "cuEventSynchronize", wait_for, e);
  ok(weir_sim_release(t));
  ok(call_end(&waits));
  fails(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(later));
  fails(cuCtxRecordEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(recording_again_forgets_the_first)
{
  CUstream s = new_stream(), t = new_stream(), waiter = new_stream();
  CUevent e = create_event_with(0);
  ok(weir_sim_hold(s));
  ok(cuEventRecord(e, s));
  ok(cuStreamWaitEvent(waiter, e, 0)); /* of the first recording, for good */
  ok(cuEventRecord(e, t));
  ok(cuEventSynchronize(e));
  fails(cuStreamQuery(waiter), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(waiter));
}
END_TEST

START_TEST(a_stream_waits_for_an_event_of_another_device)
{
  CUdeviceptr p = device_bytes(1000);
  ok(cuMemsetD8_v2(p, 0, 1000));
  ok(cuCtxSynchronize());
  CUstream s = new_stream();
  CUevent e = create_event_with(CU_EVENT_DISABLE_TIMING);
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(p, 7, 1000, s));
  ok(cuEventRecord(e, s));
  ok(cuCtxSetCurrent(primary(1)));
  CUstream t = new_stream();
  CUdeviceptr q = device_bytes(1000);
  ok(cuStreamWaitEvent(t, e, 0));
  ok(cuMemcpyDtoDAsync_v2(q, p, 1000, t));
  fails(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(t));
  unsigned char last;
  ok(cuMemcpyDtoH_v2(&last, q + 999, 1));
  ck_assert_uint_eq(last, 7);
}
END_TEST

START_TEST(elapsed_time_wants_two_recorded_timed_done_events)
{
  CUstream s = new_stream();
  CUevent a = create_event_with(0), b = create_event_with(0),
          untimed = create_event_with(CU_EVENT_DISABLE_TIMING);
  float ms;
  fails(cuEventElapsedTime_v2(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
  ok(cuEventRecord(a, s));
  fails(cuEventElapsedTime_v2(&ms, a, b), CUDA_ERROR_INVALID_HANDLE);
  ok(cuEventRecord(untimed, s));
  fails(cuEventElapsedTime_v2(&ms, a, untimed), CUDA_ERROR_INVALID_HANDLE);
  ok(weir_sim_hold(s));
  ok(cuEventRecord(b, s));
  fails(cuEventElapsedTime_v2(&ms, a, b), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuEventSynchronize(b));
  ok(cuEventElapsedTime(&ms, a, b));
  ck_assert(ms > 0);
  ok(cuEventElapsedTime_v2(&ms, b, a));
  ck_assert(ms < 0);
  fails(cuEventElapsedTime_v2(NULL, a, b), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_slow_link_is_seen_by_the_events)
{
  CUstream s = new_stream();
  CUevent a = create_event_with(0), b = create_event_with(0);
  CUdeviceptr p = device_bytes(1 << 20);
  void *h = pinned_bytes(1 << 20);
  ok(weir_sim_set_link("h2d:1G:2ms"));
  ok(cuEventRecord(a, s));
  ok(cuMemcpyHtoDAsync_v2(p, h, 1 << 20, s)); /* 1.05 ms and 2 ms */
  ok(cuEventRecord(b, s));
  ok(cuEventSynchronize(b));
  float ms;
  ok(cuEventElapsedTime_v2(&ms, a, b));
  ck_assert(ms >= 3.0f);
}
END_TEST

START_TEST(bad_events_are_refused)
{
  CUevent e;
  fails(cuEventCreate(&e, 0x100), CUDA_ERROR_INVALID_VALUE);
  fails(cuEventCreate(&e, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
  fails(cuEventCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  e = create_event_with(0);
  CUstream s = new_stream();
  ok(cuEventDestroy_v2(e));
  fails(cuEventDestroy_v2(e), CUDA_ERROR_INVALID_HANDLE);
  fails(cuEventQuery(e), CUDA_ERROR_INVALID_HANDLE);
  fails(cuEventRecord(e, s), CUDA_ERROR_INVALID_HANDLE);
  fails(cuStreamWaitEvent(s, e, 0), CUDA_ERROR_INVALID_HANDLE);
  fails(cuEventSynchronize((CUevent)s), CUDA_ERROR_INVALID_HANDLE);
  CUevent other;
  ok(cuCtxSetCurrent(primary(1)));
  other = create_event_with(0);
  fails(cuEventRecord(other, s), CUDA_ERROR_INVALID_HANDLE); /* a stream of another context */
}
END_TEST

START_TEST(an_event_may_die_before_it_is_done)
{
  CUstream s = new_stream(), t = new_stream();
  CUevent e = create_event_with(0);
  ok(weir_sim_hold(s));
  ok(cuEventRecord(e, s));
  ok(cuStreamWaitEvent(t, e, 0));
  ok(cuEventDestroy_v2(e));
  fails(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(t));
}
END_TEST

START_TEST(an_event_outlives_its_stream)
{
  CUstream s = new_stream();
  CUevent e = create_event_with(0);
  ok(cuEventRecord(e, s));
  ok(cuStreamDestroy_v2(s));
  ok(cuEventSynchronize(e));
  ok(cuEventQuery(e));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {an_event_never_recorded_is_done,
                                an_event_is_done_when_its_stream_is_there,
                                an_event_of_a_context_is_done_when_all_its_streams_are_there,
                                recording_again_forgets_the_first,
                                a_stream_waits_for_an_event_of_another_device,
                                elapsed_time_wants_two_recorded_timed_done_events,
                                a_slow_link_is_seen_by_the_events,
                                bad_events_are_refused,
                                an_event_may_die_before_it_is_done,
                                an_event_outlives_its_stream,
                                NULL};
  return run_tests("sim_event", tests, set_up_device0);
}
