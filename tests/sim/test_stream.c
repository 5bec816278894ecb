/* test_stream.c: streams: order, independence, the default streams' rules, host functions. */
#include "sim.h"

static CUstream stream_with(unsigned flags)
{
  CUstream s;
  ok(cuStreamCreate(&s, flags));
  return s;
}

/* A host function that leaves its number in a list. */
static _Atomic int order[64], orders;

static void leave_number(void *n)
{
  atomic_store(&order[atomic_fetch_add(&orders, 1)], (int)(intptr_t)n);
}

static void number(CUstream s, int n)
{
  ok(cuLaunchHostFunc(s, leave_number, (void *)(intptr_t)n));
}

static CUresult sync_stream(void *s)
{
  return cuStreamSynchronize(s);
}
static CUresult sync_context(void *unused)
{
  (void)unused;
  return cuCtxSynchronize();
}

/* ---- order ----------------------------------------------------------------------------------- */

START_TEST(a_stream_runs_in_order)
{
  CUstream s = stream_with(0);
  ok(weir_sim_hold(s));
  for (int i = 0; i < 20; i++)
    number(s, i);
  ck_assert_int_eq(orders, 0);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(orders, 20);
  for (int i = 0; i < 20; i++)
    ck_assert_int_eq(order[i], i);
}
END_TEST

START_TEST(streams_do_not_wait_for_each_other)
{
  CUstream s = stream_with(0), t = stream_with(0);
  ok(weir_sim_hold(s));
  number(s, 1);
  number(t, 2);
  ok(cuStreamSynchronize(t));
  ck_assert_int_eq(orders, 1);
  ck_assert_int_eq(order[0], 2);
  fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  ok(cuStreamQuery(t));
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ok(cuStreamQuery(s));
}
END_TEST

START_TEST(synchronising_waits)
{
  CUstream s = stream_with(CU_STREAM_NON_BLOCKING);
  struct call one, all;
  ok(weir_sim_hold(s));
  number(s, 1);
  call_blocked(&one, "cuStreamSynchronize", sync_stream, s);
  call_blocked(&all, "cuCtxSynchronize", sync_context, NULL);
  ok(weir_sim_release(s));
  ok(call_end(&one));
  ok(call_end(&all));
  ck_assert_int_eq(orders, 1);
}
END_TEST

START_TEST(holds_nest_and_are_released_one_by_one)
{
  CUstream s = stream_with(0);
  fails(weir_sim_release(s), CUDA_ERROR_INVALID_VALUE);
  ok(weir_sim_hold(s));
  number(s, 1);
  CUevent between;
  ok(cuEventCreate(&between, 0));
  ok(cuEventRecord(between, s));
  ok(weir_sim_hold(s));
  number(s, 2);
  ok(weir_sim_release(s));
  ok(cuEventSynchronize(between));
  ck_assert_int_eq(orders, 1);
  fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(orders, 2);
}
END_TEST

/* ---- the legacy default stream --------------------------------------------------------------- */

START_TEST(the_legacy_stream_waits_for_blocking_streams)
{
  CUstream s = stream_with(0);
  ok(weir_sim_hold(s));
  number(s, 1);
  number(NULL, 2);
  fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
  fails(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(NULL));
  ck_assert_int_eq(order[0], 1);
  ck_assert_int_eq(order[1], 2);
}
END_TEST

START_TEST(blocking_streams_wait_for_the_legacy_stream)
{
  CUstream s = stream_with(0), t = stream_with(0);
  ok(weir_sim_hold(NULL));
  number(NULL, 1);
  number(s, 2);
  fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  ok(cuStreamQuery(t)); /* nothing queued in it */
  ok(weir_sim_release(NULL));
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(order[0], 1);
  ck_assert_int_eq(order[1], 2);
}
END_TEST

START_TEST(non_blocking_streams_ignore_the_legacy_stream)
{
  CUstream s = stream_with(CU_STREAM_NON_BLOCKING);
  ok(weir_sim_hold(NULL));
  number(NULL, 1);
  number(s, 2);
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(orders, 1);
  ok(weir_sim_release(NULL));
  ok(cuStreamSynchronize(NULL));
  ok(weir_sim_hold(s));
  number(s, 3);
  number(NULL, 4);
  ok(cuStreamSynchronize(NULL));
  ck_assert_int_eq(orders, 3);
  ck_assert_int_eq(order[2], 4);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
}
END_TEST

START_TEST(the_legacy_stream_stands_between_two_blocking_streams)
{
  CUstream s = stream_with(0), t = stream_with(0);
  ok(weir_sim_hold(s));
  number(s, 1);
  number(NULL, 2);
  number(t, 3);
  fails(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuCtxSynchronize());
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(order[i], i + 1);
}
END_TEST

START_TEST(devices_have_legacy_streams_of_their_own)
{
  ok(weir_sim_hold(NULL));
  number(NULL, 1);
  ok(cuCtxSetCurrent(primary(1)));
  number(NULL, 2);
  ok(cuStreamSynchronize(NULL));
  ck_assert_int_eq(orders, 1);
  ck_assert_int_eq(order[0], 2);
  ok(cuCtxSetCurrent(primary(0)));
  ok(weir_sim_release(NULL));
  ok(cuCtxSynchronize());
}
END_TEST

/* ---- per-thread default streams -------------------------------------------------------------- */

START_TEST(the_per_thread_stream_is_blocking)
{
  ok(weir_sim_hold(NULL));
  number(NULL, 1);
  ok(cuLaunchHostFunc_ptsz(NULL, leave_number, (void *)2));
  fails(cuStreamQuery_ptsz(NULL), CUDA_ERROR_NOT_READY);
  fails(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(NULL));
  ok(cuStreamSynchronize_ptsz(NULL));
  ck_assert_int_eq(orders, 2);
}
END_TEST

static CUresult own_default_stream(void *unused)
{
  (void)unused;
  CUresult error = cuLaunchHostFunc_ptsz(NULL, leave_number, (void *)7);
  return error ? error : cuStreamSynchronize_ptsz(NULL);
}

START_TEST(threads_have_default_streams_of_their_own)
{
  struct call other;
  ok(weir_sim_hold(CU_STREAM_PER_THREAD));
  ok(cuLaunchHostFunc(CU_STREAM_PER_THREAD, leave_number, (void *)1));
  call_start(&other, own_default_stream, NULL);
  ok(call_end(&other)); /* did not wait for ours */
  ck_assert_int_eq(orders, 1);
  ck_assert_int_eq(order[0], 7);
  ok(weir_sim_release(CU_STREAM_PER_THREAD));
  ok(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  unsigned long long mine, legacy;
  ok(cuStreamGetId(CU_STREAM_PER_THREAD, &mine));
  ok(cuStreamGetId(NULL, &legacy));
  ck_assert_uint_ne(mine, legacy);
}
END_TEST

static CUresult leave_work_behind(void *p)
{
  return cuMemsetD8Async_ptsz((CUdeviceptr)(uintptr_t)p, 9, 1000, NULL);
}

START_TEST(work_of_an_ended_thread_is_done)
{
  enum { THREADS = 50 };
  CUdeviceptr p =
      device_bytes(THREADS * 1000); /* their streams are not ordered: bytes of its own each */
  for (int i = 0; i < THREADS; i++) {
    struct call other;
    call_start(&other, leave_work_behind, (void *)(p + (CUdeviceptr)i * 1000));
    ok(call_end(&other));
  }
  ok(cuCtxSynchronize());
  for (int i = 0; i < THREADS; i++) {
    unsigned char last;
    ok(cuMemcpyDtoH_v2(&last, p + (CUdeviceptr)i * 1000 + 999, 1));
    ck_assert_uint_eq(last, 9);
  }
}
END_TEST

/* ---- life and properties --------------------------------------------------------------------- */

START_TEST(a_destroyed_stream_finishes_its_work)
{
  CUstream s = stream_with(0);
  number(s, 1);
  number(s, 2);
  ok(cuStreamDestroy_v2(s));
  fails(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  fails(cuStreamDestroy_v2(s), CUDA_ERROR_INVALID_HANDLE);
  ok(cuCtxSynchronize());
  ck_assert_int_eq(orders, 2);
}
END_TEST

START_TEST(bad_streams_are_refused)
{
  CUstream s;
  fails(cuStreamCreate(&s, 8), CUDA_ERROR_INVALID_VALUE);
  fails(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
  fails(cuStreamDestroy_v2(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_HANDLE);
  fails(cuStreamSynchronize((CUstream)&s), CUDA_ERROR_INVALID_HANDLE);
  CUevent e;
  ok(cuEventCreate(&e, 0));
  fails(cuStreamSynchronize((CUstream)e), CUDA_ERROR_INVALID_HANDLE);
  fails(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_stream_says_what_it_is)
{
  CUstream s;
  int priority;
  ok(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -3));
  ok(cuStreamGetPriority(s, &priority));
  ck_assert_int_eq(priority, -3);
  CUstream t;
  ok(cuStreamCreateWithPriority(&t, 0, -100)); /* clamped */
  ok(cuStreamGetPriority(t, &priority));
  ck_assert_int_eq(priority, -5);
  unsigned flags;
  ok(cuStreamGetFlags(s, &flags));
  ck_assert_uint_eq(flags, CU_STREAM_NON_BLOCKING);
  CUcontext c;
  ok(cuStreamGetCtx(s, &c));
  ck_assert_ptr_eq(c, primary(0));
  CUdevice d;
  ok(cuCtxSetCurrent(primary(3)));
  ok(cuStreamGetDevice(s, &d));
  ck_assert_int_eq(d, 0);
  ok(cuStreamGetDevice(NULL, &d));
  ck_assert_int_eq(d, 3);
  CUstreamCaptureStatus status;
  ok(cuStreamIsCapturing(s, &status));
  ck_assert_int_eq(status, CU_STREAM_CAPTURE_STATUS_NONE);
}
END_TEST

/* ---- host functions -------------------------------------------------------------------------- */

static _Atomic int seen_error = -1;

static void call_the_api(void *unused)
{
  (void)unused;
  CUdeviceptr p;
  atomic_store(&seen_error, (int)cuMemAlloc_v2(&p, 100));
}

START_TEST(a_host_function_may_not_call_cuda)
{
  ok(cuLaunchHostFunc(NULL, call_the_api, NULL));
  ok(cuCtxSynchronize());
  ck_assert_int_eq(seen_error, CUDA_ERROR_NOT_PERMITTED);
}
END_TEST

static CUstream callback_stream;

static void callback(CUstream s, CUresult status, void *data)
{
  callback_stream = s;
  leave_number(data);
  atomic_store(&seen_error, (int)status);
}

START_TEST(a_callback_gets_its_stream_and_status)
{
  CUstream s = stream_with(0);
  ok(weir_sim_hold(s));
  ok(cuStreamAddCallback(s, callback, (void *)5, 0));
  ck_assert_int_eq(orders, 0);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ck_assert_ptr_eq(callback_stream, s);
  ck_assert_int_eq(order[0], 5);
  ck_assert_int_eq(seen_error, CUDA_SUCCESS);
  fails(cuStreamAddCallback(s, callback, NULL, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- memory operations ----------------------------------------------------------------------- */

START_TEST(a_stream_waits_for_a_value_another_writes)
{
  CUstream a, b;
  CUdeviceptr flag = device_bytes(8), data = device_bytes(4);
  ok(cuMemsetD8_v2(flag, 0, 8));
  ok(cuMemsetD8_v2(data, 0, 4));
  ok(cuCtxSynchronize());
  ok(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  ok(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  ok(cuStreamWaitValue32_v2(a, flag, 5, CU_STREAM_WAIT_VALUE_GEQ));
  ok(cuMemsetD32Async(data, 1, 1, a));
  ok(cuStreamWriteValue32_v2(b, flag, 4, 0));
  ok(cuStreamSynchronize(b));
  give_way();
  fails(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
  ok(cuStreamWriteValue64_v2(b, flag, 6, 0));
  ok(cuStreamSynchronize(a));
  unsigned word = 0;
  ok(cuMemcpyDtoH_v2(&word, data, 4));
  ck_assert_uint_eq(word, 1);
  ok(cuStreamWaitValue64_v2(a, flag, 6, CU_STREAM_WAIT_VALUE_EQ));
  ok(cuStreamWaitValue32_v2(a, flag, 2, CU_STREAM_WAIT_VALUE_AND));
  ok(cuStreamWaitValue32_v2(a, flag, 1, CU_STREAM_WAIT_VALUE_NOR));
  ok(cuStreamWaitValue32_v2(a, flag, (cuuint32_t)-5, CU_STREAM_WAIT_VALUE_GEQ)); /* cyclic */
  ok(cuStreamSynchronize(a));
}
END_TEST

START_TEST(a_batch_of_memory_operations_runs_in_its_order)
{
  CUstream s;
  uint32_t *flag = pinned_bytes(4);
  CUdeviceptr p = (CUdeviceptr)(uintptr_t)flag, managed;
  *flag = 0;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUstreamBatchMemOpParams list[3] = {{.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32},
                                      {.operation = CU_STREAM_MEM_OP_BARRIER},
                                      {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32}};
  list[0].waitValue.address = list[2].writeValue.address = p;
  list[0].waitValue.value = 1;
  list[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  list[2].writeValue.value = 7;
  ok(cuStreamBatchMemOp_v2(s, 3, list, 0));
  fails(cuStreamQuery(s), CUDA_ERROR_NOT_READY);
  __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST); /* the host may write it too */
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(*flag, 7);
  fails(cuStreamBatchMemOp_v2(s, 0, list, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuStreamBatchMemOp_v2(s, 256, list, 0), CUDA_ERROR_INVALID_VALUE);
  list[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  fails(cuStreamBatchMemOp_v2(s, 3, list, 0), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuStreamWriteValue32_v2(s, p + 1, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuStreamWriteValue32_v2(s, p, 0, 2), CUDA_ERROR_INVALID_VALUE);
  fails(cuStreamWaitValue32_v2(s, p, 0, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
  ok(cuMemAllocManaged(&managed, 4, CU_MEM_ATTACH_GLOBAL));
  fails(cuStreamWriteValue32_v2(s, managed, 0, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_RELAXED));
  fails(cuStreamWriteValue32_v2(s, p, 0, 0), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {a_stream_runs_in_order,
                                streams_do_not_wait_for_each_other,
                                synchronising_waits,
                                holds_nest_and_are_released_one_by_one,
                                the_legacy_stream_waits_for_blocking_streams,
                                blocking_streams_wait_for_the_legacy_stream,
                                non_blocking_streams_ignore_the_legacy_stream,
                                the_legacy_stream_stands_between_two_blocking_streams,
                                devices_have_legacy_streams_of_their_own,
                                the_per_thread_stream_is_blocking,
                                threads_have_default_streams_of_their_own,
                                work_of_an_ended_thread_is_done,
                                a_destroyed_stream_finishes_its_work,
                                bad_streams_are_refused,
                                a_stream_says_what_it_is,
                                a_host_function_may_not_call_cuda,
                                a_callback_gets_its_stream_and_status,
                                a_stream_waits_for_a_value_another_writes,
                                a_batch_of_memory_operations_runs_in_its_order,
                                NULL};
  return run_tests("sim_stream", tests, set_up_device0);
}
