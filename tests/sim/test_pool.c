/* test_pool.c: stream-ordered memory. */
#include "sim.h"

static CUstream new_stream(void)
{
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  return s;
}

static CUmemoryPool create_device_pool(void)
{
  CUmemoryPool p;
  CUmemPoolProps props;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  ok(cuMemPoolCreate(&p, &props));
  return p;
}

static cuuint64_t attribute(CUmemoryPool p, CUmemPool_attribute a)
{
  cuuint64_t v;
  ok(cuMemPoolGetAttribute(p, a, &v));
  return v;
}

START_TEST(memory_is_usable_in_stream_order)
{
  CUstream s = new_stream();
  CUdeviceptr p;
  unsigned char *h = pinned_bytes(1000);
  ok(cuMemAllocAsync(&p, 1000, s));
  ok(cuMemsetD8Async(p, 3, 1000, s));
  ok(cuMemcpyDtoHAsync_v2(h, p, 1000, s));
  ok(cuMemFreeAsync(p, s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(h[999], 3);
  fails(cuMemFreeAsync(p, s), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAllocAsync(&p, 0, s), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemAllocAsync_ptsz(&p, 1000, NULL));
  ok(cuMemFreeAsync_ptsz(p, NULL));
}
END_TEST

START_TEST(a_free_takes_effect_when_the_stream_reaches_it)
{
  CUstream s = new_stream();
  CUdeviceptr p;
  size_t before, during, after;
  ok(cuMemGetInfo_v2(&before, NULL));
  ok(cuMemAllocAsync(&p, 8 << 20, s));
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(p, 1, 8 << 20, s));
  ok(cuMemFreeAsync(p, s));
  fails(cuMemcpyHtoD_v2(p, &p, 8), CUDA_ERROR_INVALID_VALUE); /* the program's no more */
  ok(cuMemGetInfo_v2(&during, NULL));
  ck_assert_uint_eq(before - during, 8 << 20);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ok(cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(after, before);
}
END_TEST

START_TEST(the_same_stream_may_use_a_block_again_at_once)
{
  CUstream s = new_stream(), t = new_stream();
  CUdeviceptr p, q, r;
  ok(cuMemAllocAsync(&p, 4 << 20, s));
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(p, 1, 4 << 20, s));
  ok(cuMemFreeAsync(p, s));
  ok(cuMemAllocAsync(&r, 4 << 20, t)); /* another stream gets other memory */
  ck_assert_uint_ne(p, r);
  ok(cuMemAllocAsync(&q, 4 << 20, s));
  ck_assert_uint_eq(p, q);
  ok(cuMemsetD8Async(q, 2, 4 << 20, s));
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  unsigned char last;
  ok(cuMemcpyDtoH_v2(&last, q + (4 << 20) - 1, 1));
  ck_assert_uint_eq(last, 2);
  ok(cuMemFree_v2(q));
  ok(cuMemFree_v2(r));
  CUmemoryPool d;
  ok(cuDeviceGetDefaultMemPool(&d, 0));
  ck_assert_uint_eq(attribute(d, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
  ck_assert_uint_eq(attribute(d, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
}
END_TEST

START_TEST(when_memory_is_short_a_stream_waits_for_a_free_of_another)
{
  CUstream s = new_stream(), t = new_stream();
  CUdeviceptr p, q;
  ok(weir_sim_set_memory(0, 8 << 20));
  ok(cuMemAllocAsync(&p, 6 << 20, s));
  fails(cuMemAllocAsync(&q, 6 << 20, t), CUDA_ERROR_OUT_OF_MEMORY);
  ok(weir_sim_hold(s));
  ok(cuMemFreeAsync(p, s));
  ok(cuMemAllocAsync(&q, 6 << 20, t));
  ck_assert_uint_eq(p, q);
  fails(cuStreamQuery(t), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(t));
  CUmemoryPool d;
  int no = 0;
  ok(cuDeviceGetDefaultMemPool(&d, 0));
  ok(cuMemPoolSetAttribute(d, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
  ok(weir_sim_hold(t));
  ok(cuMemFreeAsync(q, t));
  fails(cuMemAllocAsync(&p, 6 << 20, s), CUDA_ERROR_OUT_OF_MEMORY);
  ok(weir_sim_release(t));
}
END_TEST

START_TEST(a_pool_keeps_up_to_its_threshold)
{
  CUstream s = new_stream();
  CUmemoryPool p = create_device_pool();
  cuuint64_t threshold = 100 << 20, zero = 0;
  CUdeviceptr a, b;
  ok(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  ok(cuMemAllocFromPoolAsync(&a, 4 << 20, p, s));
  CUmemoryPool of;
  ok(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, a));
  ck_assert_ptr_eq(of, p);
  ck_assert_uint_eq(attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 4 << 20);
  ok(cuMemFreeAsync(a, s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
  ck_assert_uint_eq(attribute(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 4 << 20);
  ck_assert_uint_eq(attribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 4 << 20);
  ok(cuMemAllocFromPoolAsync(&b, 4 << 20, p, s));
  ck_assert_uint_eq(a, b);
  ok(cuMemFreeAsync(b, s));
  ok(cuStreamSynchronize(s));
  ok(cuMemPoolTrimTo(p, 0));
  ck_assert_uint_eq(attribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
  ok(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
  ck_assert_uint_eq(attribute(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
  fails(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &threshold),
        CUDA_ERROR_INVALID_VALUE);
  fails(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &zero),
        CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(what_a_pool_keeps_is_given_back_before_memory_runs_out)
{
  CUstream s = new_stream();
  CUmemoryPool p = create_device_pool();
  cuuint64_t all = UINT64_MAX;
  CUdeviceptr a;
  ok(weir_sim_set_memory(0, 8 << 20));
  ok(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  ok(cuMemAllocFromPoolAsync(&a, 6 << 20, p, s));
  ok(cuMemFreeAsync(a, s));
  ok(cuStreamSynchronize(s));
  CUdeviceptr b = device_bytes(8 << 20);
  ok(cuMemFree_v2(b));
}
END_TEST

START_TEST(a_device_has_a_default_pool_and_a_current_one)
{
  CUmemoryPool d, c, mine = create_device_pool();
  ok(cuDeviceGetDefaultMemPool(&d, 0));
  ok(cuDeviceGetMemPool(&c, 0));
  ck_assert_ptr_eq(d, c);
  ok(cuDeviceSetMemPool(0, mine));
  ok(cuDeviceGetMemPool(&c, 0));
  ck_assert_ptr_eq(c, mine);
  fails(cuDeviceSetMemPool(1, mine), CUDA_ERROR_INVALID_VALUE);
  CUstream s = new_stream();
  CUdeviceptr p;
  ok(cuMemAllocAsync(&p, 1000, s));
  ck_assert_uint_eq(attribute(mine, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024);
  ok(cuMemPoolDestroy(mine)); /* while one lives */
  fails(cuMemPoolDestroy(mine), CUDA_ERROR_INVALID_VALUE);
  ok(cuDeviceGetMemPool(&c, 0));
  ck_assert_ptr_eq(c, d);
  ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuMemFreeAsync(p, s));
  ok(cuStreamSynchronize(s));
  fails(cuMemPoolDestroy(d), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(memory_of_the_two_allocators_mixes)
{
  CUstream s = new_stream();
  size_t before, after;
  ok(cuMemGetInfo_v2(&before, NULL));
  CUdeviceptr a = device_bytes(4 << 20), b;
  ok(cuMemFreeAsync(a, s));
  ok(cuMemAllocAsync(&b, 4 << 20, s));
  ok(cuMemFree_v2(b));
  ok(cuStreamSynchronize(s));
  ok(cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(after, before);
}
END_TEST

START_TEST(a_devices_pool_is_found_by_its_place)
{
  CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, host = {CU_MEM_LOCATION_TYPE_HOST, 0},
                nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 9};
  CUmemoryPool a, b, mine;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
  ok(cuMemGetDefaultMemPool(&a, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  ok(cuDeviceGetDefaultMemPool(&b, 0));
  ck_assert_ptr_eq(a, b);
  ok(cuMemPoolCreate(&mine, &props));
  ok(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
  ok(cuMemGetMemPool(&a, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
  ck_assert_ptr_eq(a, mine);
  fails(cuMemGetMemPool(&a, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_DEVICE);
  CUmemLocation node = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  ok(cuMemGetDefaultMemPool(&a, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
  ok(cuMemGetMemPool(&b, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
  ck_assert_ptr_eq(a, b);
  fails(cuMemPoolDestroy(a), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemGetDefaultMemPool(&b, &node, CU_MEM_ALLOCATION_TYPE_PINNED));
  ck_assert_ptr_ne(a, b);
  fails(cuMemSetMemPool(&node, CU_MEM_ALLOCATION_TYPE_PINNED, a), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemSetMemPool(&node, CU_MEM_ALLOCATION_TYPE_PINNED, mine), CUDA_ERROR_INVALID_VALUE);
  props.location = node;
  ok(cuMemPoolCreate(&mine, &props));
  ok(cuMemSetMemPool(&node, CU_MEM_ALLOCATION_TYPE_PINNED, mine));
  ok(cuMemPoolDestroy(mine));
  ok(cuMemGetMemPool(&a, &node, CU_MEM_ALLOCATION_TYPE_PINNED));
  ck_assert_ptr_eq(a, b); /* the default again */
  fails(cuMemGetMemPool(&a, &here, CU_MEM_ALLOCATION_TYPE_INVALID), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemGetMemPool(&a, NULL, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static CUmemoryPool pool_at(CUmemLocationType type, int id, size_t most)
{
  CUmemPoolProps props = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}, .maxSize = most};
  CUmemoryPool p;
  ok(cuMemPoolCreate(&p, &props));
  return p;
}

START_TEST(a_pool_of_the_host_is_memory_of_the_host)
{
  static const CUmemLocationType types[] = {CU_MEM_LOCATION_TYPE_HOST,
                                            CU_MEM_LOCATION_TYPE_HOST_NUMA};
  CUstream s = new_stream();
  size_t before, after;
  ok(cuMemGetInfo_v2(&before, NULL));
  for (int i = 0; i < 2; i++) {
    CUmemoryPool p = pool_at(types[i], 0, 0);
    CUdeviceptr a, b;
    ok(cuMemAllocFromPoolAsync(&a, 10000, p, s));
    ok(cuMemsetD8Async(a, 9, 10000, s));
    ok(cuStreamSynchronize(s));
    ck_assert_uint_eq(((unsigned char *)a)[9999], 9); /* the host's own */
    unsigned type = 0;
    ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    ck_assert_uint_eq(type, CU_MEMORYTYPE_HOST);
    ok(cuMemGetInfo_v2(&after, NULL));
    ck_assert_uint_eq(after, before);
    ck_assert_uint_ge(attribute(p, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 10000);
    CUmemAccess_flags flags;
    CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0}, device = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    ok(cuMemPoolGetAccess(&flags, p, &host));
    ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    ok(cuMemPoolGetAccess(&flags, p, &device));
    ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    CUmemAccessDesc map = {device, CU_MEM_ACCESS_FLAGS_PROT_READ};
    ok(cuMemPoolSetAccess(p, &map, 1));
    ok(cuMemPoolGetAccess(&flags, p, &device));
    ck_assert_int_eq(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    fails(cuMemFreeHost((void *)a), CUDA_ERROR_INVALID_VALUE);
    ok(cuMemFreeAsync(a, s));
    ok(cuMemAllocFromPoolAsync(&b, 10000, p, s));
    ok(cuMemFree_v2(b));
    ok(cuStreamSynchronize(s));
    ck_assert_uint_eq(attribute(p, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
    ok(cuMemAllocFromPoolAsync(&a, 10000, p, s));
    ok(cuMemPoolDestroy(p));
    memset((void *)a, 1, 10000);
    ok(cuMemFree_v2(a));
  }
  CUmemoryPool p;
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0}};
  fails(cuMemPoolCreate(&p, &props), CUDA_ERROR_INVALID_VALUE);
  props.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST_NUMA, 63};
  fails(cuMemPoolCreate(&p, &props), CUDA_ERROR_INVALID_VALUE);
  props.location.type = CU_MEM_LOCATION_TYPE_HOST;
  props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  fails(cuMemPoolCreate(&p, &props), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(a_pool_holds_no_more_than_its_maximum)
{
  CUstream s = new_stream();
  CUmemoryPool p = pool_at(CU_MEM_LOCATION_TYPE_DEVICE, 0, 4 << 20);
  cuuint64_t all = UINT64_MAX;
  ok(cuMemPoolSetAttribute(p, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  CUdeviceptr a, b;
  fails(cuMemAllocFromPoolAsync(&a, 6 << 20, p, s), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cuMemAllocFromPoolAsync(&a, 2 << 20, p, s));
  fails(cuMemAllocFromPoolAsync(&b, 4 << 20, p, s), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cuMemFreeAsync(a, s));
  ok(cuStreamSynchronize(s));
  ok(cuMemAllocFromPoolAsync(&b, 4 << 20, p, s)); /* what it kept has gone */
  ok(cuMemFreeAsync(b, s));
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {memory_is_usable_in_stream_order,
                                a_free_takes_effect_when_the_stream_reaches_it,
                                the_same_stream_may_use_a_block_again_at_once,
                                when_memory_is_short_a_stream_waits_for_a_free_of_another,
                                a_pool_keeps_up_to_its_threshold,
                                what_a_pool_keeps_is_given_back_before_memory_runs_out,
                                a_device_has_a_default_pool_and_a_current_one,
                                memory_of_the_two_allocators_mixes,
                                a_devices_pool_is_found_by_its_place,
                                a_pool_of_the_host_is_memory_of_the_host,
                                a_pool_holds_no_more_than_its_maximum,
                                NULL};
  return run_tests("sim_pool", tests, set_up_device0);
}
