/* test_memory.c: allocations, registrations and what is known of a pointer. */
#include "sim.h"

#define GRANULE ((size_t)2 << 20)

START_TEST(allocations_are_aligned_apart_and_writable)
{
  CUdeviceptr p[64];
  for (int i = 0; i < 64; i++) {
    p[i] = device_bytes(1 + (size_t)i * 1000);
    ck_assert_uint_eq(p[i] % 512, 0);
    ok(cuMemsetD8_v2(p[i], (unsigned char)i, 1 + (size_t)i * 1000));
  }
  for (int i = 0; i < 64; i++) {
    unsigned char last;
    ok(cuMemcpyDtoH_v2(&last, p[i] + (CUdeviceptr)i * 1000, 1));
    ck_assert_uint_eq(last, (unsigned)i);
    ok(cuMemFree_v2(p[i]));
  }
}
END_TEST

START_TEST(devices_share_no_granule)
{
  CUdeviceptr a = device_bytes(100), big = device_bytes(3 << 20);
  ok(cuCtxSetCurrent(primary(1)));
  CUdeviceptr b = device_bytes(100);
  ck_assert_uint_ne(a / GRANULE, b / GRANULE);
  ck_assert_uint_ne(big / GRANULE, b / GRANULE);
  ck_assert_uint_eq(big % GRANULE, 0);
  void *host = pinned_bytes(4096);
  ck_assert_uint_ne((uintptr_t)host / GRANULE, a / GRANULE);
}
END_TEST

START_TEST(bad_allocations_and_frees_are_refused)
{
  CUdeviceptr p;
  fails(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAlloc_v2(NULL, 100), CUDA_ERROR_INVALID_VALUE);
  p = device_bytes(1000);
  fails(cuMemFree_v2(p + 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemFreeHost((void *)p), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemFree_v2(p));
  fails(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemFree_v2((CUdeviceptr)(uintptr_t)&p), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemFree_v2(0));
  void *h = pinned_bytes(100);
  fails(cuMemFree_v2((CUdeviceptr)(uintptr_t)h), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemFreeHost(h));
  fails(cuMemFreeHost(h), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(capacity_is_a_limit_and_memory_comes_back)
{
  size_t total, free_bytes;
  ok(weir_sim_set_memory(0, 64 << 20));
  ok(cuMemGetInfo_v2(&free_bytes, &total));
  ck_assert_uint_eq(total, 64 << 20);
  ck_assert_uint_eq(free_bytes, 64 << 20);
  CUdeviceptr a = device_bytes(40 << 20), b;
  fails(cuMemAlloc_v2(&b, 30 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  b = device_bytes(24 << 20);
  CUdeviceptr c;
  fails(cuMemAlloc_v2(&c, 1), CUDA_ERROR_OUT_OF_MEMORY);
  fails(cuMemAlloc_v2(&c, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
  fails(cuMemAlloc_v2(&c, SIZE_MAX / 2), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cuMemGetInfo_v2(&free_bytes, NULL));
  ck_assert_uint_eq(free_bytes, 0);
  ok(cuMemFree_v2(a));
  c = device_bytes(40 << 20);
  ok(cuMemFree_v2(b));
  ok(cuMemFree_v2(c));
  ok(cuMemGetInfo_v2(&free_bytes, NULL));
  ck_assert_uint_eq(free_bytes, 64 << 20);
  ok(cuCtxSetCurrent(primary(1))); /* the others keep theirs */
  ok(cuMemGetInfo_v2(NULL, &total));
  ck_assert_uint_eq(total, (size_t)8 << 30);
}
END_TEST

START_TEST(small_allocations_fill_granules_and_empty_them)
{
  enum { N = 3000 };
  static CUdeviceptr p[N];
  size_t before, after;
  ok(cuMemGetInfo_v2(&before, NULL));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < N; i++)
      p[i] = device_bytes((size_t)(i * 37 % 5000 + 1));
    for (int i = 0; i < N; i++)
      ok(cuMemFree_v2(p[(i * 7 + 3) % N]));
  }
  ok(cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(after, before);
}
END_TEST

START_TEST(pitched_memory_has_whole_rows)
{
  CUdeviceptr p;
  size_t pitch;
  ok(cuMemAllocPitch_v2(&p, &pitch, 1000, 50, 4));
  ck_assert_uint_ge(pitch, 1000);
  ck_assert_uint_eq(pitch % 512, 0);
  ok(cuMemsetD2D8_v2(p, pitch, 1, 1000, 50));
  fails(cuMemsetD2D8_v2(p, pitch, 1, 1000, 52), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAllocPitch_v2(&p, &pitch, 1000, 50, 3), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemAllocPitch_v2(&p, &pitch, 0, 50, 4), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(an_address_knows_its_range)
{
  CUdeviceptr p = device_bytes(100000), base;
  size_t bytes;
  ok(cuMemGetAddressRange_v2(&base, &bytes, p + 99999));
  ck_assert_uint_eq(base, p);
  ck_assert_uint_eq(bytes, 100000);
  ok(cuMemGetAddressRange_v2(NULL, &bytes, p));
  ok(cuMemGetAddressRange_v2(&base, NULL, p));
  fails(cuMemGetAddressRange_v2(&base, &bytes, p + 100000), CUDA_ERROR_NOT_FOUND);
  ok(cuMemFree_v2(p));
  fails(cuMemGetAddressRange_v2(&base, &bytes, p), CUDA_ERROR_NOT_FOUND);
}
END_TEST

static unsigned memory_type(const void *p)
{
  unsigned type = 99;
  ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)p));
  return type;
}

START_TEST(a_pointer_says_what_it_is)
{
  ok(cuCtxSetCurrent(primary(2)));
  CUdeviceptr p = device_bytes(100), managed;
  void *host = pinned_bytes(100);
  ok(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
  ck_assert_uint_eq(memory_type((void *)p), CU_MEMORYTYPE_DEVICE);
  ck_assert_uint_eq(memory_type(host), CU_MEMORYTYPE_HOST);
  ck_assert_uint_eq(memory_type((void *)managed), CU_MEMORYTYPE_DEVICE);
  int ordinal;
  ok(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p + 50));
  ck_assert_int_eq(ordinal, 2);
  CUcontext c;
  ok(cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p));
  ck_assert_ptr_eq(c, primary(2));
  unsigned is_managed;
  ok(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
  ck_assert_uint_eq(is_managed, 1);
  void *same;
  ok(cuPointerGetAttribute(&same, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)(uintptr_t)host));
  ck_assert_ptr_eq(same, host);
  unsigned long long id, other;
  ok(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
  ok(cuMemFree_v2(p));
  CUdeviceptr again = device_bytes(100);
  ok(cuPointerGetAttribute(&other, CU_POINTER_ATTRIBUTE_BUFFER_ID, again));
  ck_assert_uint_ne(id, other); /* though the address may be the same */
  fails(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, again + 100),
        CUDA_ERROR_INVALID_VALUE);
}
END_TEST

START_TEST(several_attributes_of_an_unknown_pointer_are_defaults)
{
  int local;
  unsigned type = 7;
  int ordinal = 7;
  CUcontext c = (CUcontext)7;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT};
  void *out[] = {&type, &ordinal, &c};
  ok(cuPointerGetAttributes(3, which, out, (CUdeviceptr)(uintptr_t)&local));
  ck_assert_uint_eq(type, 0);
  ck_assert_int_eq(ordinal, -2);
  ck_assert_ptr_null(c);
  fails(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                              (CUdeviceptr)(uintptr_t)&local),
        CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr p = device_bytes(10);
  ok(cuPointerGetAttributes(3, which, out, p));
  ck_assert_uint_eq(type, CU_MEMORYTYPE_DEVICE);
  ck_assert_int_eq(ordinal, 0);
}
END_TEST

START_TEST(host_memory_is_registered_once)
{
  char *p = malloc(100000);
  CUdeviceptr d;
  unsigned flags;
  fails(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  fails(cuMemHostGetDevicePointer_v2(&d, p, 0), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemHostRegister_v2(p, 100000, CU_MEMHOSTREGISTER_PORTABLE));
  fails(cuMemHostRegister_v2(p, 100000, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  fails(cuMemHostRegister_v2(p + 50000, 100, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  ok(cuMemHostGetDevicePointer_v2(&d, p + 10, 0));
  ck_assert_uint_eq(d, (uintptr_t)p + 10);
  ok(cuMemHostGetFlags(&flags, p));
  ck_assert_uint_eq(flags, CU_MEMHOSTREGISTER_PORTABLE);
  ck_assert_uint_eq(memory_type(p), CU_MEMORYTYPE_HOST);
  fails(cuMemHostUnregister(p + 1), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  ok(cuMemHostUnregister(p));
  fails(cuMemHostUnregister(p), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  fails(cuMemHostRegister_v2(NULL, 10, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemHostRegister_v2(p, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemHostRegister_v2(p, 10, 0x100), CUDA_ERROR_INVALID_VALUE);
  void *pinned = pinned_bytes(100);
  fails(cuMemHostRegister_v2(pinned, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  free(p);
}
END_TEST

START_TEST(managed_memory_is_one_for_both)
{
  CUdeviceptr p;
  ok(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
  memset((void *)p, 5, 4096);
  unsigned char back[4096];
  ok(cuMemcpyDtoH_v2(back, p, 4096));
  ck_assert_uint_eq(back[4095], 5);
  ok(cuMemsetD8_v2(p, 6, 4096));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(((unsigned char *)p)[17], 6);
  CUmemLocation here = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  ok(cuMemAdvise_v2(p, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, here));
  ok(cuMemPrefetchAsync_v2(p, 4096, here, 0, NULL));
  CUdeviceptr device = device_bytes(4096);
  fails(cuMemPrefetchAsync_v2(device, 4096, here, 0, NULL), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemFree_v2(p));
  fails(cuMemAllocManaged(&p, 4096, 0), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static CUresult free_it(void *p)
{
  return cuMemFree_v2((CUdeviceptr)(uintptr_t)p);
}
static CUresult free_host(void *p)
{
  return cuMemFreeHost(p);
}

START_TEST(freeing_waits_for_the_device)
{
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUdeviceptr p = device_bytes(1 << 20), q = device_bytes(1 << 20);
  void *h = pinned_bytes(4096);
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(q, 1, 1 << 20, s));
  struct call frees, frees_host;
  call_blocked(&frees, "cuMemFree_v2", free_it, (void *)p);
  call_blocked(&frees_host, "cuMemFreeHost", free_host, h);
  ok(weir_sim_release(s));
  ok(call_end(&frees));
  ok(call_end(&frees_host));
}
END_TEST

START_TEST(old_entry_points_for_32_bit_addresses_say_they_are_not_supported)
{
  CUdeviceptr_v1 p;
  fails(cuMemAlloc(&p, 100), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuMemFree(p), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {allocations_are_aligned_apart_and_writable,
                                devices_share_no_granule,
                                bad_allocations_and_frees_are_refused,
                                capacity_is_a_limit_and_memory_comes_back,
                                small_allocations_fill_granules_and_empty_them,
                                pitched_memory_has_whole_rows,
                                an_address_knows_its_range,
                                a_pointer_says_what_it_is,
                                several_attributes_of_an_unknown_pointer_are_defaults,
                                host_memory_is_registered_once,
                                managed_memory_is_one_for_both,
                                freeing_waits_for_the_device,
                                old_entry_points_for_32_bit_addresses_say_they_are_not_supported,
                                NULL};
  return run_tests("sim_memory", tests, set_up_device0);
}
