/* test_context.c: contexts, the current one of a thread, peers, errors that stick. */
#include "sim.h"

START_TEST(calls_that_need_a_context_say_so)
{
  ok(cuCtxSetCurrent(NULL));
  CUdeviceptr p;
  CUstream s;
  CUevent e;
  CUdevice d;
  fails(cuMemAlloc_v2(&p, 1), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuStreamCreate(&s, 0), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuEventCreate(&e, 0), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuCtxGetDevice(&d), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
  CUcontext c = (CUcontext)1;
  ok(cuCtxGetCurrent(&c));
  ck_assert_ptr_null(c);
  fails(cuCtxPopCurrent_v2(&c), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuCtxSetCurrent((CUcontext)&c), CUDA_ERROR_INVALID_CONTEXT);
}
END_TEST

START_TEST(created_contexts_stack_and_are_destroyed)
{
  CUcontext base, a, b, now;
  ok(cuCtxGetCurrent(&base));
  ok(cuCtxCreate_v2(&a, CU_CTX_SCHED_YIELD, 1));
  ok(cuCtxCreate_v4(&b, NULL, 0, 2));
  CUdevice d;
  ok(cuCtxGetDevice(&d));
  ck_assert_int_eq(d, 2);
  ok(cuCtxPopCurrent_v2(&now));
  ck_assert_ptr_eq(now, b);
  ok(cuCtxGetCurrent(&now));
  ck_assert_ptr_eq(now, a);
  unsigned flags;
  ok(cuCtxGetFlags(&flags));
  ck_assert_uint_eq(flags, CU_CTX_SCHED_YIELD);
  ok(cuCtxPushCurrent_v2(b));
  ok(cuCtxDestroy_v2(b)); /* current: popped too */
  ok(cuCtxGetCurrent(&now));
  ck_assert_ptr_eq(now, a);
  fails(cuCtxPushCurrent_v2(b), CUDA_ERROR_INVALID_CONTEXT);
  ok(cuCtxSetCurrent(base));
  ok(cuCtxDestroy_v2(a));
  fails(cuCtxDestroy_v2(a), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuCtxCreate_v2(&a, 0x1000, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuCtxCreate_v2(&a, 0, 17), CUDA_ERROR_INVALID_DEVICE);
}
END_TEST

static CUresult use_destroyed(void *unused)
{
  (void)unused;
  CUdeviceptr p;
  CUcontext c;
  CUresult error = cuMemAlloc_v2(&p, 100);
  return cuCtxGetCurrent(&c) ? CUDA_ERROR_UNKNOWN : error;
}

START_TEST(a_context_destroyed_elsewhere_answers_so)
{
  CUcontext c, base;
  ok(cuCtxGetCurrent(&base));
  ok(cuCtxCreate_v2(&c, 0, 1));
  ok(cuCtxPushCurrent_v2(c));
  ok(cuCtxPopCurrent_v2(NULL));
  ok(cuCtxPushCurrent_v2(base));
  ok(cuCtxDestroy_v2(c));
  ok(cuCtxPopCurrent_v2(NULL)); /* base off: c is current, destroyed */
  fails(use_destroyed(NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ok(cuCtxSetCurrent(base));
  device_bytes(100);
}
END_TEST

static size_t free_now(void)
{
  size_t bytes;
  ok(cuMemGetInfo_v2(&bytes, NULL));
  return bytes;
}

START_TEST(contexts_of_one_device_have_their_own_and_take_it_along)
{
  CUcontext base, a, b, of;
  ok(cuCtxGetCurrent(&base));
  size_t before = free_now();
  ok(cuCtxCreate_v3(&a, NULL, 0, 0, 0));
  CUdeviceptr in_a = device_bytes(4 << 20);
  CUstream stream_a;
  CUevent event_a;
  ok(cuStreamCreate(&stream_a, 0));
  ok(cuEventCreate(&event_a, 0));
  ok(cuCtxCreate_v4(&b, NULL, 0, 0));
  CUdeviceptr in_b = device_bytes(4 << 20);
  CUstream stream_b;
  ok(cuStreamCreate(&stream_b, 0));
  ok(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, in_a + 5));
  ck_assert_ptr_eq(of, a);
  ok(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, in_b));
  ck_assert_ptr_eq(of, b);
  ok(cuStreamGetCtx(stream_a, &of));
  ck_assert_ptr_eq(of, a);
  fails(cuEventRecord(event_a, stream_b), CUDA_ERROR_INVALID_HANDLE);
  ok(cuMemsetD8Async(in_a, 1, 100, stream_a)); /* the stream says in which context */
  ok(cuMemFree_v2(in_a));                      /* so does the address */
  ck_assert_uint_eq(free_now(), before - (4 << 20));
  ok(weir_sim_hold(stream_a));
  fails(cuStreamQuery(stream_a), CUDA_ERROR_NOT_READY);
  ok(cuCtxSynchronize()); /* of b only */
  ok(cuCtxDestroy_v2(a));
  fails(cuStreamQuery(stream_a), CUDA_ERROR_INVALID_HANDLE);
  ok(cuMemsetD8_v2(in_b, 1, 100));
  ok(cuCtxDestroy_v2(b));
  ok(cuCtxSetCurrent(base));
  fails(cuMemsetD8_v2(in_b, 1, 100), CUDA_ERROR_INVALID_VALUE);
  fails(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, in_b), CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(free_now(), before);
}
END_TEST

START_TEST(a_reset_in_mid_run_takes_all_but_host_memory_of_the_program)
{
  CUstream s;
  CUgraph g;
  CUdeviceptr p = device_bytes(4 << 20);
  void *pinned = pinned_bytes(4096), *own = malloc(4096);
  ok(cuMemHostRegister_v2(own, 4096, 0));
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(p, 1, 4 << 20, s));
  ok(cuStreamBeginCapture_v2(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cuDevicePrimaryCtxReset_v2(0));
  ok(cuCtxSetCurrent(primary(0)));
  fails(cuStreamQuery(s), CUDA_ERROR_INVALID_HANDLE);
  fails(cuStreamEndCapture(s, &g), CUDA_ERROR_INVALID_HANDLE);
  fails(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE); /* and no capture bars it */
  fails(cuMemFreeHost(pinned), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  free(own);
  ok(cuMemFree_v2(device_bytes(4 << 20)));
}
END_TEST

START_TEST(a_primary_context_lives_by_its_retains)
{
  unsigned flags;
  int active;
  ok(cuDevicePrimaryCtxSetFlags_v2(2, CU_CTX_SCHED_BLOCKING_SYNC));
  ok(cuDevicePrimaryCtxGetState(2, &flags, &active));
  ck_assert_int_eq(active, 0);
  ck_assert_uint_eq(flags, CU_CTX_SCHED_BLOCKING_SYNC);
  CUcontext a = primary(2), b = primary(2);
  ck_assert_ptr_eq(a, b);
  ok(cuDevicePrimaryCtxGetState(2, &flags, &active));
  ck_assert_int_eq(active, 1);
  ok(cuCtxSetCurrent(a));
  CUdeviceptr p = device_bytes(100);
  ok(cuDevicePrimaryCtxRelease_v2(2));
  ok(cuMemsetD8_v2(p, 0, 100));
  ok(cuDevicePrimaryCtxRelease_v2(2));
  ok(cuDevicePrimaryCtxGetState(2, NULL, &active));
  ck_assert_int_eq(active, 0);
  fails(cuMemsetD8_v2(p, 0, 100), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  fails(cuDevicePrimaryCtxRelease_v2(2), CUDA_ERROR_INVALID_CONTEXT);
  ck_assert_ptr_eq(primary(2), a); /* the same handle lives again, its memory does not */
  fails(cuMemsetD8_v2(p, 0, 100), CUDA_ERROR_INVALID_VALUE);
  device_bytes(100);
}
END_TEST

START_TEST(a_reset_frees_all_of_the_device)
{
  size_t before, during, after;
  ok(cuMemGetInfo_v2(&before, NULL));
  CUdeviceptr p = device_bytes(64 << 20);
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  ok(weir_sim_hold(s)); /* a held stream does not make the reset wait for ever */
  ok(cuMemsetD8Async(p, 1, 100, s));
  ok(cuMemGetInfo_v2(&during, NULL));
  ck_assert_uint_eq(before - during, 64 << 20);
  ok(cuDevicePrimaryCtxReset_v2(0));
  fails(cuMemGetInfo_v2(&after, NULL), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  ok(cuCtxSetCurrent(primary(0)));
  ok(cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(after, before);
  fails(cuStreamSynchronize(s), CUDA_ERROR_INVALID_HANDLE);
  fails(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_context_says_what_it_is)
{
  int least, greatest;
  ok(cuCtxGetStreamPriorityRange(&least, &greatest));
  ck_assert_int_gt(least, greatest);
  ok(cuCtxGetStreamPriorityRange(NULL, NULL));
  size_t v;
  ok(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
  ok(cuCtxGetLimit(&v, CU_LIMIT_STACK_SIZE));
  ck_assert_uint_eq(v, 4096);
  fails(cuCtxSetLimit((CUlimit)99, 1), CUDA_ERROR_UNSUPPORTED_LIMIT);
  CUcontext c;
  ok(cuCtxGetCurrent(&c));
  unsigned version;
  ok(cuCtxGetApiVersion(c, &version));
  ck_assert_uint_gt(version, 0);
  unsigned long long id, other;
  ok(cuCtxGetId(c, &id));
  ok(cuCtxGetId(primary(1), &other));
  ck_assert_uint_ne(id, other);
}
END_TEST

START_TEST(peer_access_is_enabled_once_and_disabled_once)
{
  CUcontext peer = primary(1), self = primary(0);
  fails(cuCtxDisablePeerAccess(peer), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  fails(cuCtxEnablePeerAccess(peer, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuCtxEnablePeerAccess(self, 0), CUDA_ERROR_INVALID_DEVICE);
  fails(cuCtxEnablePeerAccess(NULL, 0), CUDA_ERROR_INVALID_CONTEXT);
  ok(cuCtxEnablePeerAccess(peer, 0));
  fails(cuCtxEnablePeerAccess(peer, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  ok(cuCtxDisablePeerAccess(peer));
  fails(cuCtxDisablePeerAccess(peer), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
}
END_TEST

/* ---- errors that stick ---- */

START_TEST(an_injected_sticky_error_stays_until_the_context_ends)
{
  CUdeviceptr p = device_bytes(100);
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  ok(weir_sim_set_fail("cuMemsetD8_v2:2=700"));
  ok(cuMemsetD8_v2(p, 0, 100));
  fails(cuMemsetD8_v2(p, 0, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
  fails(cuMemsetD8_v2(p, 0, 100), CUDA_ERROR_ILLEGAL_ADDRESS);
  fails(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  fails(cuMemFree_v2(p), CUDA_ERROR_ILLEGAL_ADDRESS);
  fails(cuStreamQuery(s), CUDA_ERROR_ILLEGAL_ADDRESS);
  CUdevice d;
  CUcontext c;
  ok(cuCtxGetDevice(&d)); /* what leads out of it still works */
  ok(cuCtxGetCurrent(&c));
  ok(cuCtxSetCurrent(primary(1))); /* other contexts are not touched */
  device_bytes(100);
  ok(cuDevicePrimaryCtxReset_v2(0));
  ok(cuCtxSetCurrent(primary(0)));
  device_bytes(100);
  ok(cuCtxSynchronize());
}
END_TEST

START_TEST(an_ordinary_injected_error_does_not_stick)
{
  CUdeviceptr p;
  ok(weir_sim_set_fail("cuMemAlloc_v2:1=2,cuMemAlloc_v2:3=2"));
  fails(cuMemAlloc_v2(&p, 100), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cuMemAlloc_v2(&p, 100));
  fails(cuMemAlloc_v2(&p, 100), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cuMemAlloc_v2(&p, 100));
}
END_TEST

START_TEST(the_part_of_the_cache_that_persists_is_limited)
{
  int most = 0, window = 0;
  ok(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
  ok(cuDeviceGetAttribute(&window, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0));
  ck_assert_int_gt(most, 0);
  ck_assert_int_gt(window, 0);
  size_t v = 0;
  ok(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 1 << 20));
  ok(cuCtxGetLimit(&v, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
  ck_assert_uint_eq(v, 1 << 20);
  ok(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, SIZE_MAX)); /* "clamped" */
  ok(cuCtxGetLimit(&v, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
  ck_assert_uint_eq(v, (size_t)most);
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  CUlaunchAttributeValue a, got;
  memset(&a, 0, sizeof a);
  a.accessPolicyWindow.base_ptr = (void *)(uintptr_t)device_bytes(1 << 20);
  a.accessPolicyWindow.num_bytes = 1 << 20;
  a.accessPolicyWindow.hitRatio = 0.5f;
  a.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
  ok(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &a));
  ok(cuStreamGetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &got));
  ck_assert_mem_eq(&got, &a, sizeof a);
  a.accessPolicyWindow.num_bytes = (size_t)window + 1;
  fails(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &a),
        CUDA_ERROR_INVALID_VALUE);
  a.accessPolicyWindow.num_bytes = 1;
  a.accessPolicyWindow.hitRatio = 2;
  fails(cuStreamSetAttribute(s, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &a),
        CUDA_ERROR_INVALID_VALUE);
  ok(cuCtxResetPersistingL2Cache());
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {calls_that_need_a_context_say_so,
                                created_contexts_stack_and_are_destroyed,
                                a_context_destroyed_elsewhere_answers_so,
                                contexts_of_one_device_have_their_own_and_take_it_along,
                                a_reset_in_mid_run_takes_all_but_host_memory_of_the_program,
                                a_primary_context_lives_by_its_retains,
                                a_reset_frees_all_of_the_device,
                                a_context_says_what_it_is,
                                peer_access_is_enabled_once_and_disabled_once,
                                an_injected_sticky_error_stays_until_the_context_ends,
                                an_ordinary_injected_error_does_not_stick,
                                the_part_of_the_cache_that_persists_is_limited,
                                NULL};
  return run_tests("sim_context", tests, set_up_device0);
}
