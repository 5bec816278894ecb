/* test_copy.c: every copy and memset: the right bytes, the right bounds, the right waiting. */
#include <pthread.h>
#include "sim.h"

#define N ((size_t)200000)

static unsigned char a[N], b[N];

static void cleared(void)
{
  memset(b, 0xee, N);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

START_TEST(linear_copies_carry_the_bytes)
{
  CUdeviceptr p = device_bytes(N), q = device_bytes(N);
  pattern(a, N, 1);
  cleared();
  ok(cuMemcpyHtoD_v2(p, a, N));
  ok(cuMemcpyDtoD_v2(q, p, N));
  ok(cuMemcpyDtoH_v2(b, q, N));
  ck_assert_mem_eq(a, b, N);
  cleared();
  ok(cuMemcpy((CUdeviceptr)(uintptr_t)b, q, N)); /* any side may be anything */
  ck_assert_mem_eq(a, b, N);
  ok(cuMemcpyDtoH_v2(b, q + 1000, 10));
  ck_assert_mem_eq(a + 1000, b, 10);
}
END_TEST

START_TEST(asynchronous_and_per_thread_forms_carry_the_bytes)
{
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUdeviceptr p = device_bytes(N), q = device_bytes(N);
  unsigned char *h = pinned_bytes(N);
  pattern(h, N, 2);
  cleared();
  ok(cuMemcpyHtoDAsync_v2(p, h, N, s));
  ok(cuMemcpyDtoDAsync_v2(q, p, N, s));
  ok(cuMemcpyDtoHAsync_v2(b, q, N, s));
  ok(cuStreamSynchronize(s));
  ck_assert_mem_eq(h, b, N);
  pattern(a, N, 3);
  cleared();
  ok(cuMemcpyHtoD_v2_ptds(p, a, N));
  ok(cuMemcpyAsync_ptsz(q, p, N, NULL));
  ok(cuMemcpyDtoHAsync_v2_ptsz(b, q, N, NULL));
  ok(cuStreamSynchronize_ptsz(NULL));
  ck_assert_mem_eq(a, b, N);
}
END_TEST

static CUDA_MEMCPY2D empty_copy_2d(void)
{
  CUDA_MEMCPY2D c;
  memset(&c, 0, sizeof c);
  return c;
}

START_TEST(two_dimensional_copies_move_a_window)
{
  enum { W = 40, H = 9, PITCH = 64 };
  CUdeviceptr p = device_bytes(512 * 20);
  pattern(a, PITCH * 30, 4);
  CUDA_MEMCPY2D c = empty_copy_2d();
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = a;
  c.srcPitch = PITCH;
  c.srcXInBytes = 5;
  c.srcY = 3;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = p;
  c.dstPitch = 512;
  c.dstXInBytes = 7;
  c.dstY = 2;
  c.WidthInBytes = W;
  c.Height = H;
  ok(cuMemcpy2D_v2(&c));
  for (int y = 0; y < H; y++) {
    ok(cuMemcpyDtoH_v2(b, p + (CUdeviceptr)((y + 2) * 512 + 7), W));
    ck_assert_mem_eq(b, a + (y + 3) * PITCH + 5, W);
  }
  CUDA_MEMCPY2D back = empty_copy_2d();
  back.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  back.srcDevice = p;
  back.srcPitch = 512;
  back.srcXInBytes = 7;
  back.srcY = 2;
  back.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  back.dstDevice = (CUdeviceptr)(uintptr_t)b;
  back.dstPitch = W;
  back.WidthInBytes = W;
  back.Height = H;
  cleared();
  ok(cuMemcpy2DUnaligned_v2(&back));
  for (int y = 0; y < H; y++)
    ck_assert_mem_eq(b + y * W, a + (y + 3) * PITCH + 5, W);
  ck_assert_uint_eq(b[W * H], 0xee);
}
END_TEST

START_TEST(three_dimensional_copies_move_a_box)
{
  enum { W = 16, H = 5, D = 4 };
  CUdeviceptr p = device_bytes(32 * 8 * 6);
  ok(cuMemsetD8_v2(p, 0xcc, 32 * 8 * 6));
  pattern(a, W * H * D, 5);
  CUDA_MEMCPY3D c;
  memset(&c, 0, sizeof c);
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = a;
  c.srcPitch = W;
  c.srcHeight = H;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = p;
  c.dstPitch = 32;
  c.dstHeight = 8;
  c.dstXInBytes = 3;
  c.dstY = 2;
  c.dstZ = 1;
  c.WidthInBytes = W;
  c.Height = H;
  c.Depth = D;
  ok(cuMemcpy3D_v2(&c));
  ok(cuMemcpyDtoH_v2(b, p, 32 * 8 * 6));
  size_t hits = 0;
  for (int z = 0; z < 6; z++)
    for (int y = 0; y < 8; y++)
      for (int x = 0; x < 32; x++) {
        bool in = z >= 1 && z < 1 + D && y >= 2 && y < 2 + H && x >= 3 && x < 3 + W;
        unsigned want = in ? a[((z - 1) * H + (y - 2)) * W + (x - 3)] : 0xcc;
        ck_assert_uint_eq(b[(z * 8 + y) * 32 + x], want);
        hits += in;
      }
  ck_assert_uint_eq(hits, W * H * D);
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  c.Depth = 6; /* two planes too many at z = 1 */
  fails(cuMemcpy3DAsync_v2(&c, s), CUDA_ERROR_INVALID_VALUE);
  c.Depth = 0;
  ok(cuMemcpy3DAsync_v2(&c, s));
}
END_TEST

START_TEST(arrays_are_copied_by_offset_and_by_window)
{
  CUarray line, plane;
  CUDA_ARRAY_DESCRIPTOR d = {
      .Width = 100, .Height = 0, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
  ok(cuArrayCreate_v2(&line, &d));
  d = (CUDA_ARRAY_DESCRIPTOR){
      .Width = 10, .Height = 6, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 4};
  ok(cuArrayCreate_v2(&plane, &d));
  CUDA_ARRAY_DESCRIPTOR got;
  ok(cuArrayGetDescriptor_v2(&got, plane));
  ck_assert_uint_eq(got.Width, 10);
  ck_assert_uint_eq(got.NumChannels, 4);
  pattern(a, 400, 6);
  cleared();
  CUdeviceptr p = device_bytes(400);
  ok(cuMemcpyHtoA_v2(line, 40, a, 360));
  fails(cuMemcpyHtoA_v2(line, 41, a, 360), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemcpyAtoD_v2(p, line, 40, 360));
  ok(cuMemcpyDtoA_v2(line, 0, p, 360));
  ok(cuMemcpyAtoH_v2(b, line, 0, 360));
  ck_assert_mem_eq(a, b, 360);
  CUDA_MEMCPY2D c = empty_copy_2d();
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = a;
  c.srcPitch = 40;
  c.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  c.dstArray = plane;
  c.WidthInBytes = 40;
  c.Height = 6;
  ok(cuMemcpy2D_v2(&c));
  c.Height = 7;
  fails(cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY2D back = empty_copy_2d();
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = plane;
  back.srcXInBytes = 8;
  back.srcY = 1;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = b;
  back.dstPitch = 16;
  back.WidthInBytes = 16;
  back.Height = 3;
  ok(cuMemcpy2D_v2(&back));
  for (int y = 0; y < 3; y++)
    ck_assert_mem_eq(b + y * 16, a + (y + 1) * 40 + 8, 16);
  ok(cuArrayDestroy(line));
  fails(cuArrayDestroy(line), CUDA_ERROR_INVALID_HANDLE);
}
END_TEST

START_TEST(memsets_write_elements_and_nothing_else)
{
  CUdeviceptr p = device_bytes(4096);
  ok(cuMemsetD8_v2(p, 0, 4096));
  ok(cuMemsetD16_v2(p + 2, 0x1234, 10));
  ok(cuMemsetD32_v2(p + 100, 0xdeadbeef, 3));
  ok(cuMemsetD2D32_v2(p + 1024, 64, 0x01020304, 4, 5));
  ok(cuMemcpyDtoH_v2(b, p, 4096));
  uint16_t h;
  uint32_t w;
  memcpy(&h, b + 20, 2);
  ck_assert_uint_eq(h, 0x1234);
  memcpy(&h, b + 22, 2);
  ck_assert_uint_eq(h, 0);
  memcpy(&w, b + 108, 4);
  ck_assert_uint_eq(w, 0xdeadbeef);
  ck_assert_uint_eq(b[112], 0);
  for (int y = 0; y < 6; y++)
    for (int x = 0; x < 16; x++) {
      memcpy(&w, b + 1024 + y * 64 + x * 4, 4);
      ck_assert_uint_eq(w, y < 5 && x < 4 ? 0x01020304 : 0);
    }
  fails(cuMemsetD16_v2(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemsetD32_v2(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemsetD8_v2(p, 0, 4097), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemsetD2D8_v2(p, 10, 0, 11, 2), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemsetD8_v2((CUdeviceptr)(uintptr_t)b, 0, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemsetD32_v2(p, 0, SIZE_MAX / 2), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemsetD8_v2(p, 0, 0));
}
END_TEST

START_TEST(copies_outside_an_allocation_are_refused)
{
  CUdeviceptr p = device_bytes(1000), q = device_bytes(1000);
  fails(cuMemcpyHtoD_v2(p, a, 1001), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyHtoD_v2(p + 999, a, 2), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyHtoD_v2(p - 1, a, 2), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyDtoH_v2(a, p, 1001), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyDtoD_v2(q, p + 500, 501), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyHtoD_v2(0, a, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyHtoD_v2(p, NULL, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyHtoD_v2((CUdeviceptr)(uintptr_t)b, a, 1), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyHtoD_v2(p, a, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyDtoH_v2(a, p + 100, SIZE_MAX - 50), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpy(p + 1000, (CUdeviceptr)(uintptr_t)a, 1), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemcpyHtoD_v2(p, a, 0));
  ok(cuMemFree_v2(p));
  fails(cuMemcpyHtoD_v2(p, a, 1), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY2D c = empty_copy_2d();
  c.srcMemoryType = CU_MEMORYTYPE_HOST;
  c.srcHost = a;
  c.srcPitch = 10;
  c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.dstDevice = q;
  c.dstPitch = 20;
  c.WidthInBytes = 11;
  c.Height = 2;
  fails(cuMemcpy2D_v2(&c), CUDA_ERROR_INVALID_VALUE); /* wider than the pitch */
  c.WidthInBytes = 10;
  c.dstPitch = SIZE_MAX / 2;
  c.Height = 100;
  fails(cuMemcpy2DUnaligned_v2(&c), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpy2D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

/* ---- between devices ------------------------------------------------------------------------- */

START_TEST(peer_copies_work_with_and_without_access)
{
  CUcontext c0 = primary(0), c1 = primary(1);
  CUdeviceptr p = device_bytes(N);
  ok(cuCtxSetCurrent(c1));
  CUdeviceptr q = device_bytes(N);
  ok(cuCtxSetCurrent(c0));
  pattern(a, N, 7);
  ok(cuMemcpyHtoD_v2(p, a, N));
  for (int round = 0; round < 2; round++) {
    cleared();
    ok(cuMemcpyPeer(q, c1, p, c0, N));
    ok(cuMemcpyDtoH_v2(b, q, N));
    ck_assert_mem_eq(a, b, N);
    ok(cuMemsetD8_v2(q, 0, N));
    CUstream s;
    ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
    ok(cuCtxSynchronize());
    ok(cuMemcpyPeerAsync(q, c1, p, c0, N, s));
    ok(cuStreamSynchronize(s));
    ok(cuMemcpyDtoH_v2(b, q, N));
    ck_assert_mem_eq(a, b, N);
    if (!round) ok(cuCtxEnablePeerAccess(c1, 0));
  }
  fails(cuMemcpyPeer(q, NULL, p, c0, N), CUDA_ERROR_INVALID_CONTEXT);
  fails(cuMemcpyPeer(q, c1, p, c0, N + 1), CUDA_ERROR_INVALID_VALUE);
  CUDA_MEMCPY3D_PEER box;
  memset(&box, 0, sizeof box);
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = q;
  box.srcContext = c1;
  box.srcPitch = box.dstPitch = 100;
  box.srcHeight = box.dstHeight = 10;
  box.dstDevice = p;
  box.dstContext = c0;
  box.WidthInBytes = 50;
  box.Height = 10;
  box.Depth = 2;
  ok(cuMemsetD8_v2(p, 9, N));
  ok(cuMemcpy3DPeer(&box));
  ok(cuMemcpyDtoH_v2(b, p, 2000));
  ck_assert_mem_eq(b + 1000 + 300, a + 1000 + 300, 50);
  ck_assert_uint_eq(b[1000 + 300 + 50], 9);
}
END_TEST

START_TEST(a_peer_copy_is_ordered_with_all_three_contexts)
{
  CUcontext c0 = primary(0), c1 = primary(1);
  CUstream s1, after;
  ok(cuCtxSetCurrent(c1));
  CUdeviceptr q = device_bytes(1000);
  ok(cuStreamCreate(&s1, CU_STREAM_NON_BLOCKING));
  ok(cuStreamCreate(&after, CU_STREAM_NON_BLOCKING));
  ok(cuMemsetD8_v2(q, 0, 1000));
  ok(cuCtxSynchronize());
  ok(weir_sim_hold(s1));
  ok(cuMemsetD8Async(q, 5, 1000, s1));
  ok(cuCtxSetCurrent(c0));
  CUdeviceptr p = device_bytes(1000);
  ok(cuMemcpyPeer(p, c0, q, c1, 1000)); /* returns: asynchronous to the host ... */
  give_way();
  fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
  ok(cuCtxSetCurrent(c1));
  ok(cuMemsetD8Async(q, 6, 1000, after)); /* ... and later work waits for it */
  give_way();
  fails(cuStreamQuery(after), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(s1));
  ok(cuCtxSynchronize());
  ok(cuCtxSetCurrent(c0));
  ok(cuMemcpyDtoH_v2(b, p, 1000));
  ck_assert_uint_eq(b[0], 5);
  ck_assert_uint_eq(b[999], 5);
}
END_TEST

enum { PEER_THREADS = 8, PEER_COPIES = 2000, PEER_WORDS = 16 };

/* On memory and streams of its own, in contexts that all threads share. Returns how many copies the
 * next work in another stream did not wait for; what a copy waits for is held until then. */
static void *copy_to_the_other_device(void *number)
{
  unsigned own = (unsigned)(uintptr_t)number, here = own % 2;
  uintptr_t early = 0;
  CUcontext of[2] = {primary(0), primary(1)};
  CUdeviceptr p[2];
  CUstream s, after;
  uint32_t *host;
  for (unsigned i = 2; i-- > 0;) {
    ok(cuCtxSetCurrent(of[here ^ i]));
    ok(cuMemAlloc_v2(&p[i], PEER_WORDS * sizeof *host));
  }
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  ok(cuStreamCreate(&after, CU_STREAM_NON_BLOCKING));
  ok(cuMemAllocHost_v2((void **)&host, PEER_WORDS * sizeof *host));
  for (uint32_t i = 1; i <= PEER_COPIES; i++) {
    ok(weir_sim_hold(s));
    ok(cuMemsetD32Async(p[0], i, PEER_WORDS, s));
    ok(cuMemcpyPeer(p[1], of[!here], p[0], of[here], PEER_WORDS * sizeof *host));
    ok(cuMemcpyDtoHAsync_v2(host, p[1], PEER_WORDS * sizeof *host, after));
    ok(weir_sim_release(s));
    ok(cuStreamSynchronize(after));
    early += host[0] != i || host[PEER_WORDS - 1] != i;
  }
  return (void *)early;
}

START_TEST(peer_copies_of_many_threads_are_each_waited_for)
{
  pthread_t threads[PEER_THREADS];
  (void)primary(1);
  for (uintptr_t i = 0; i < PEER_THREADS; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, copy_to_the_other_device, (void *)i), 0);
  for (unsigned i = 0; i < PEER_THREADS; i++) {
    void *early;
    ck_assert_int_eq(pthread_join(threads[i], &early), 0);
    ck_assert_uint_eq((uintptr_t)early, 0);
  }
}
END_TEST

/* ---- waiting --------------------------------------------------------------------------------- */

struct copy_call {
  CUdeviceptr device;
  void *host;
  size_t bytes;
  CUstream stream;
};

static CUresult d2h(void *p)
{
  struct copy_call *c = p;
  return cuMemcpyDtoH_v2(c->host, c->device, c->bytes);
}
static CUresult d2h_async(void *p)
{
  struct copy_call *c = p;
  return cuMemcpyDtoHAsync_v2(c->host, c->device, c->bytes, c->stream);
}
static CUresult h2d(void *p)
{
  struct copy_call *c = p;
  return cuMemcpyHtoD_v2(c->device, c->host, c->bytes);
}
static CUresult h2d_async(void *p)
{
  struct copy_call *c = p;
  return cuMemcpyHtoDAsync_v2(c->device, c->host, c->bytes, c->stream);
}
static CUresult memset_host(void *p)
{
  struct copy_call *c = p;
  return cuMemsetD8_v2((CUdeviceptr)(uintptr_t)c->host, 3, c->bytes);
}

START_TEST(synchronous_device_to_host_waits)
{
  struct call call;
  struct copy_call c = {device_bytes(N), b, N, NULL};
  ok(weir_sim_hold(NULL));
  ok(cuMemsetD8Async(c.device, 4, N, NULL));
  call_blocked(&call, "cuMemcpyDtoH_v2", d2h, &c);
  ok(weir_sim_release(NULL));
  ok(call_end(&call));
  ck_assert_uint_eq(b[N - 1], 4);
}
END_TEST

START_TEST(asynchronous_device_to_pageable_waits_and_to_pinned_does_not)
{
  struct call call;
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  struct copy_call c = {device_bytes(N), b, N, s};
  unsigned char *h = pinned_bytes(N);
  h[0] = 1;
  ok(weir_sim_hold(s));
  ok(cuMemsetD8Async(c.device, 4, N, s));
  ok(cuMemcpyDtoHAsync_v2(h, c.device, N, s)); /* back while held */
  ck_assert_uint_eq(h[0], 1);
  call_blocked(&call, "cuMemcpyDtoHAsync_v2", d2h_async, &c);
  ok(weir_sim_release(s));
  ok(call_end(&call));
  ck_assert_uint_eq(b[0], 4);
  ck_assert_uint_eq(h[N - 1], 4);
}
END_TEST

START_TEST(pageable_host_to_device_up_to_64_KiB_is_staged_and_returns)
{
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  CUdeviceptr p = device_bytes(65536), q = device_bytes(65536);
  memset(a, 1, 65536);
  ok(weir_sim_hold(s));
  ok(cuMemcpyHtoDAsync_v2(p, a, 65536, s));
  memset(a, 2, 65536); /* may be changed at once */
  ok(weir_sim_hold(NULL));
  ok(cuMemcpyHtoD_v2(q, a, 65536));
  memset(a, 3, 65536);
  ok(weir_sim_release(NULL));
  ok(weir_sim_release(s));
  ok(cuCtxSynchronize());
  ok(cuMemcpyDtoH_v2(b, p, 65536));
  ck_assert_uint_eq(b[65535], 1);
  ok(cuMemcpyDtoH_v2(b, q, 65536));
  ck_assert_uint_eq(b[65535], 2);
}
END_TEST

START_TEST(more_pageable_bytes_wait_for_the_stream)
{
  struct call one, two;
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  struct copy_call c = {device_bytes(65537), a, 65537, s},
                   d = {device_bytes(65537), a, 65537, NULL};
  ok(weir_sim_hold(s));
  ok(weir_sim_hold(NULL));
  call_blocked(&one, "cuMemcpyHtoDAsync_v2", h2d_async, &c);
  call_blocked(&two, "cuMemcpyHtoD_v2", h2d, &d);
  ok(weir_sim_release(s));
  ok(weir_sim_release(NULL));
  ok(call_end(&one));
  ok(call_end(&two));
}
END_TEST

START_TEST(pinned_host_to_device_waits_only_when_synchronous)
{
  struct call call;
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  unsigned char *h = pinned_bytes(N), *r = malloc(N);
  ok(cuMemHostRegister_v2(r, N, 0));
  CUdeviceptr p = device_bytes(N), q = device_bytes(N);
  memset(h, 1, N);
  memset(r, 1, N);
  ok(weir_sim_hold(s));
  ok(cuMemcpyHtoDAsync_v2(p, h, N, s));
  ok(cuMemcpyHtoDAsync_v2(q, r, N, s)); /* registered is pinned */
  memset(h, 2, N);                      /* too soon: the copy sees it */
  memset(r, 2, N);
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  ok(cuMemcpyDtoH_v2(b, p, N));
  ck_assert_uint_eq(b[0], 2);
  ok(cuMemcpyDtoH_v2(b, q, N));
  ck_assert_uint_eq(b[0], 2);
  struct copy_call c = {p, h, 16, NULL};
  ok(weir_sim_hold(NULL));
  call_blocked(&call, "cuMemcpyHtoD_v2", h2d, &c);
  ok(weir_sim_release(NULL));
  ok(call_end(&call));
  ok(cuMemHostUnregister(r));
  free(r);
}
END_TEST

START_TEST(device_to_device_and_memset_never_wait)
{
  CUdeviceptr p = device_bytes(N), q = device_bytes(N);
  ok(cuMemsetD8_v2(q, 0, N));
  ok(weir_sim_hold(NULL));
  ok(cuMemsetD8_v2(p, 8, N));
  ok(cuMemcpyDtoD_v2(q, p, N));
  fails(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
  ok(weir_sim_release(NULL));
  ok(cuMemcpyDtoH_v2(b, q, N));
  ck_assert_uint_eq(b[N - 1], 8);
}
END_TEST

START_TEST(memset_of_pinned_memory_waits_when_synchronous)
{
  struct call call;
  struct copy_call c = {0, pinned_bytes(100), 100, NULL};
  ok(weir_sim_hold(NULL));
  ok(cuMemsetD8Async((CUdeviceptr)(uintptr_t)c.host, 2, 100, NULL));
  call_blocked(&call, "cuMemsetD8_v2", memset_host, &c);
  ok(weir_sim_release(NULL));
  ok(call_end(&call));
  ck_assert_uint_eq(((unsigned char *)c.host)[99], 3);
}
END_TEST

static CUresult h2h(void *p)
{
  struct copy_call *c = p;
  return cuMemcpyAsync((CUdeviceptr)(uintptr_t)c->host, c->device, c->bytes, c->stream);
}

START_TEST(host_to_host_always_waits)
{
  struct call call;
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  unsigned char *from = pinned_bytes(100), *to = pinned_bytes(100);
  pattern(from, 100, 3);
  struct copy_call c = {(CUdeviceptr)(uintptr_t)from, to, 100, s};
  ok(weir_sim_hold(s));
  call_blocked(&call, "cuMemcpyAsync", h2h, &c);
  ok(weir_sim_release(s));
  ok(call_end(&call));
  ck_assert_mem_eq(from, to, 100);
}
END_TEST

/* ---- batches --------------------------------------------------------------------------------- */

START_TEST(a_batch_copies_all_in_the_streams_order)
{
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUdeviceptr a = device_bytes(300), b = device_bytes(300);
  char *from = pinned_bytes(300), *to = pinned_bytes(300), small[100];
  pattern(from, 300, 1);
  memset(small, 9, sizeof small);
  CUdeviceptr dst[] = {a, a + 100, a + 200};
  CUdeviceptr src[] = {(CUdeviceptr)(uintptr_t)from, (CUdeviceptr)(uintptr_t)small,
                       (CUdeviceptr)(uintptr_t)from};
  size_t sizes[] = {100, 100, 100}, index[] = {0, 1}, failed = 7;
  CUmemcpyAttributes how[] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
                              {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL}};
  ok(weir_sim_hold(s));
  ok(cuMemcpyBatchAsync_v2(dst, src, sizes, 3, how, index, 2, s));
  memset(small, 0, sizeof small); /* read during the call */
  memset(from + 50, 5, 50);       /* not read before the stream is there */
  ok(weir_sim_release(s));
  ok(cuMemcpyDtoDAsync_v2(b, a, 300, s));
  ok(cuMemcpyDtoHAsync_v2(to, b, 300, s));
  ok(cuStreamSynchronize(s));
  ck_assert_int_eq(to[60], 5);
  ck_assert_int_eq(to[199], 9);
  ck_assert_int_eq(to[200], from[0]);
  fails(cuMemcpyBatchAsync_v2(dst, src, sizes, 3, how, index, 2, NULL), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpyBatchAsync_v2(dst, src, sizes, 3, how, index + 1, 1, s), CUDA_ERROR_INVALID_VALUE);
  sizes[1] = 101 + 100; /* beyond the allocation */
  dst[1] = a + 200;
  fails(cuMemcpyBatchAsync(dst, src, sizes, 3, how, index, 2, &failed, s),
        CUDA_ERROR_INVALID_VALUE);
  ck_assert_uint_eq(failed, 1);
}
END_TEST

START_TEST(a_batch_of_boxes_has_pitches_and_arrays)
{
  CUstream s;
  CUarray array;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  CUDA_ARRAY_DESCRIPTOR shape = {
      .Width = 8, .Height = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
  ok(cuArrayCreate_v2(&array, &shape));
  uint32_t *from = pinned_bytes(128), *to = pinned_bytes(128);
  for (uint32_t i = 0; i < 32; i++)
    from[i] = i;
  memset(to, 0, 128);
  CUDA_MEMCPY3D_BATCH_OP in = {.extent = {8, 4, 1},
                               .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
  in.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  in.src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)from;
  in.dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  in.dst.op.array.array = array;
  ok(cuMemcpy3DBatchAsync_v2(1, &in, 0, s));
  CUDA_MEMCPY3D_BATCH_OP out = {.extent = {2, 3, 1},
                                .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY};
  out.src = in.dst;
  out.src.op.array.offset = (CUoffset3D){4, 1, 0};
  out.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  out.dst.op.ptr.ptr = (CUdeviceptr)(uintptr_t)to;
  out.dst.op.ptr.rowLength = 8;
  ok(cuMemcpy3DBatchAsync_v2(1, &out, 0, s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(to[0], 12);
  ck_assert_uint_eq(to[17], 29);
  ck_assert_uint_eq(to[2], 0);
  size_t failed = 0;
  out.dst.op.ptr.rowLength = 1;
  fails(cuMemcpy3DBatchAsync(1, &out, &failed, 0, s), CUDA_ERROR_INVALID_VALUE);
  out.dst.op.ptr.rowLength = 0;
  out.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  fails(cuMemcpy3DBatchAsync(1, &out, &failed, 0, s), CUDA_ERROR_INVALID_VALUE);
  fails(cuMemcpy3DBatchAsync_v2(1, &in, 1, s), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {linear_copies_carry_the_bytes,
                                asynchronous_and_per_thread_forms_carry_the_bytes,
                                two_dimensional_copies_move_a_window,
                                three_dimensional_copies_move_a_box,
                                arrays_are_copied_by_offset_and_by_window,
                                memsets_write_elements_and_nothing_else,
                                copies_outside_an_allocation_are_refused,
                                peer_copies_work_with_and_without_access,
                                a_peer_copy_is_ordered_with_all_three_contexts,
                                peer_copies_of_many_threads_are_each_waited_for,
                                synchronous_device_to_host_waits,
                                asynchronous_device_to_pageable_waits_and_to_pinned_does_not,
                                pageable_host_to_device_up_to_64_KiB_is_staged_and_returns,
                                more_pageable_bytes_wait_for_the_stream,
                                pinned_host_to_device_waits_only_when_synchronous,
                                device_to_device_and_memset_never_wait,
                                memset_of_pinned_memory_waits_when_synchronous,
                                host_to_host_always_waits,
                                a_batch_copies_all_in_the_streams_order,
                                a_batch_of_boxes_has_pitches_and_arrays,
                                NULL};
  return run_tests("sim_copy", tests, set_up_device0);
}
