/* test_runtime.c: the runtime stand-in as a C program sees it: what its calls do, what they refuse,
 * and which driver calls they make. Built three times: on the shared library, on the static
 * archive, and with per-thread default streams (PTDS), where every entry point below is the _ptds
 * or _ptsz one.
 *
 * Every test runs in a process of its own, so each begins before CUDA is initialised. */
#include <check.h>
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/sim_rt/sim.h"

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define PTDS     1
#define SUITE    "runtime stand-in, per-thread default streams"
#define _P(name) name "_ptds"
#define _Z(name) name "_ptsz"
#else
#define PTDS     0
#define SUITE    "runtime stand-in"
#define _P(name) name
#define _Z(name) name
#endif

#define ok(call)        ck_assert_int_eq((call), cudaSuccess)
#define is(call, error) ck_assert_int_eq((call), (error))
#define KB              1024u

/* ---- devices --------------------------------------------------------------------------------- */

START_TEST(devices_are_counted_chosen_and_refused)
{
  int n = 0, d = -1;
  setenv("WEIR_SIM_DEVICES", "3", 1);
  ok(cudaGetDeviceCount(&n));
  ck_assert_int_eq(n, 3);
  ok(cudaGetDevice(&d));
  ck_assert_int_eq(d, 0);
  ok(cudaSetDevice(2));
  ok(cudaGetDevice(&d));
  ck_assert_int_eq(d, 2);
  is(cudaSetDevice(3), cudaErrorInvalidDevice);
  is(cudaSetDevice(-1), cudaErrorInvalidDevice);
  ok(cudaGetDevice(&d));
  ck_assert_int_eq(d, 2);
  is(cudaGetDevice(NULL), cudaErrorInvalidValue);
  is(cudaGetDeviceCount(NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(no_device_is_an_error_of_its_own)
{
  int n = 7;
  void *p;
  setenv("WEIR_SIM_DEVICES", "0", 1);
  is(cudaGetDeviceCount(&n), cudaErrorNoDevice);
  ck_assert_int_eq(n, 0);
  is(cudaMalloc(&p, 1), cudaErrorNoDevice);
}
END_TEST

START_TEST(versions_are_the_toolkits_and_the_drivers)
{
  int runtime = 0, driver = 0;
  ok(cudaRuntimeGetVersion(&runtime));
  ck_assert_int_eq(runtime, CUDART_VERSION);
  ok(cudaDriverGetVersion(&driver));
  ck_assert_int_ge(driver, CUDART_VERSION);
  is(cudaRuntimeGetVersion(NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(properties_and_attributes_agree)
{
  struct cudaDeviceProp p;
  int warp, major;
  size_t free_bytes, total;
  ok(cudaGetDeviceProperties(&p, 0));
  ok(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0));
  ok(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  ok(cudaMemGetInfo(&free_bytes, &total));
  ck_assert_int_eq(p.warpSize, warp);
  ck_assert_int_eq(p.major, major);
  ck_assert_uint_eq(p.totalGlobalMem, total);
  ck_assert_int_gt(p.maxThreadsPerBlock, 0);
  ck_assert_uint_gt(strlen(p.name), 0);
  is(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
  is(cudaGetDeviceProperties(&p, 9), cudaErrorInvalidDevice);
  is(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 9), cudaErrorInvalidDevice);
  ok(cudaMemGetInfo(NULL, NULL));
}
END_TEST

static int primary_active(void)
{
  unsigned int flags;
  int active = -1;
  CUresult (*state)(CUdevice, unsigned int *, int *) =
      SIM(CUresult(*)(CUdevice, unsigned int *, int *), cuDevicePrimaryCtxGetState);
  ck_assert_int_eq(state(0, &flags, &active), 0);
  return active;
}

START_TEST(a_context_begins_with_the_first_call_that_needs_it)
{
  int n;
  ok(cudaGetDeviceCount(&n));
  ok(cudaGetDevice(&n));
  ck_assert_int_eq(primary_active(), 0);
  ok(cudaFree(NULL));
  ck_assert_int_eq(primary_active(), 1);
}
END_TEST

START_TEST(setting_a_device_begins_its_context)
{
  ok(cudaSetDevice(0));
  ck_assert_int_eq(primary_active(), 1);
}
END_TEST

START_TEST(a_reset_frees_everything_and_the_next_call_begins_anew)
{
  void *p, *q;
  size_t before, held, after, total;
  ok(cudaMemGetInfo(&before, &total));
  ok(cudaMalloc(&p, 64 << 20));
  ok(cudaMemGetInfo(&held, &total));
  ck_assert_uint_lt(held, before);
  ok(cudaDeviceReset());
  ck_assert_int_eq(primary_active(), 0);
  ok(cudaMemGetInfo(&after, &total));
  ck_assert_uint_eq(after, before);
  is(cudaFree(p), cudaErrorInvalidValue);
  ok(cudaMalloc(&q, 1));
  ok(cudaMemset(q, 0, 1));
  ok(cudaFree(q));
}
END_TEST

static void *use_after_reset(void *p)
{
  pthread_barrier_t *b = p;
  void *q;
  ok(cudaFree(NULL));
  pthread_barrier_wait(b);
  pthread_barrier_wait(b); /* reset by the other thread in between */
  ok(cudaMalloc(&q, 16));
  ok(cudaFree(q));
  return NULL;
}

START_TEST(a_reset_reaches_threads_that_hold_the_context)
{
  pthread_t t;
  pthread_barrier_t b;
  pthread_barrier_init(&b, NULL, 2);
  pthread_create(&t, NULL, use_after_reset, &b);
  pthread_barrier_wait(&b);
  ok(cudaDeviceReset());
  pthread_barrier_wait(&b);
  pthread_join(t, NULL);
}
END_TEST

START_TEST(a_context_of_the_driver_api_is_used_as_it_is)
{
  CUcontext c;
  int d = -1;
  setenv("WEIR_SIM_DEVICES", "2", 1);
  ok(cudaFree(NULL));
  ck_assert_int_eq(SIM(CUresult(*)(CUcontext *, CUdevice), cuDevicePrimaryCtxRetain)(&c, 1), 0);
  ck_assert_int_eq(SIM(CUresult(*)(CUcontext), cuCtxSetCurrent)(c), 0);
  ok(cudaGetDevice(&d));
  ck_assert_int_eq(d, 1);
}
END_TEST

static void *chosen_device(void *out)
{
  ok(cudaGetDevice(out));
  return NULL;
}

START_TEST(the_device_and_the_last_error_are_the_threads_own)
{
  pthread_t t;
  int d = -1;
  setenv("WEIR_SIM_DEVICES", "2", 1);
  ok(cudaSetDevice(1));
  is(cudaSetDevice(5), cudaErrorInvalidDevice);
  pthread_create(&t, NULL, chosen_device, &d);
  pthread_join(t, NULL);
  ck_assert_int_eq(d, 0);
  is(cudaGetLastError(), cudaErrorInvalidDevice);
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

START_TEST(the_last_error_is_kept_until_it_is_taken)
{
  void *p;
  is(cudaGetLastError(), cudaSuccess);
  is(cudaSetDevice(77), cudaErrorInvalidDevice);
  ok(cudaMalloc(&p, 1));
  is(cudaPeekAtLastError(), cudaErrorInvalidDevice);
  is(cudaGetLastError(), cudaErrorInvalidDevice);
  is(cudaGetLastError(), cudaSuccess);
  ok(cudaFree(p));
}
END_TEST

START_TEST(a_broken_context_stays_broken_until_the_reset)
{
  void *p, *q;
  char host[4] = "abc";
  ok(cudaMalloc(&p, 4));
  char fail[64];
  (void)snprintf(fail, sizeof fail, "%s:1=700", _P("cuMemcpyHtoD_v2"));
  ck_assert_int_eq(sim_fail(fail), 0);
  is(cudaMemcpy(p, host, 4, cudaMemcpyHostToDevice), cudaErrorIllegalAddress);
  is(cudaMalloc(&q, 4), cudaErrorIllegalAddress);
  is(cudaGetLastError(), cudaErrorIllegalAddress);
  is(cudaGetLastError(), cudaErrorIllegalAddress);
  is(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  ok(cudaDeviceReset());
  is(cudaGetLastError(), cudaSuccess);
  ok(cudaMalloc(&q, 4));
}
END_TEST

START_TEST(out_of_memory_is_said_and_passes)
{
  void *p;
  setenv("WEIR_SIM_MEMORY", "64M", 1);
  is(cudaMalloc(&p, 256 << 20), cudaErrorMemoryAllocation);
  is(cudaGetLastError(), cudaErrorMemoryAllocation);
  ok(cudaMalloc(&p, 1 << 20));
  ok(cudaFree(p));
}
END_TEST

START_TEST(errors_have_their_names_and_sentences)
{
  ck_assert_str_eq(cudaGetErrorName(cudaSuccess), "cudaSuccess");
  ck_assert_str_eq(cudaGetErrorString(cudaSuccess), "no error");
  ck_assert_str_eq(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue");
  ck_assert_str_eq(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
  ck_assert_str_eq(cudaGetErrorName(cudaErrorUnknown), "cudaErrorUnknown");
  ck_assert_str_eq(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
  ck_assert_str_eq(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(allocations_and_frees_answer_as_documented)
{
  void *p = (void *)1, *h;
  int local;
  size_t pitch;
  is(cudaMalloc(NULL, 4), cudaErrorInvalidValue);
  ok(cudaMalloc(&p, 0));
  ck_assert_ptr_null(p);
  ok(cudaFree(NULL));
  ok(cudaMalloc(&p, 100));
  is(cudaFree((char *)p + 1), cudaErrorInvalidValue);
  is(cudaFree(&local), cudaErrorInvalidValue);
  ok(cudaFree(p));
  is(cudaFree(p), cudaErrorInvalidValue);
  ok(cudaMallocPitch(&p, &pitch, 100, 3));
  ck_assert_uint_ge(pitch, 100);
  ok(cudaFree(p));
  ok(cudaMallocHost(&h, 100));
  memset(h, 1, 100);
  ok(cudaFreeHost(h));
  is(cudaFreeHost(&local), cudaErrorInvalidValue);
  ok(cudaFreeHost(NULL));
  ok(cudaMallocManaged(&p, 64, cudaMemAttachGlobal));
  memset(p, 2, 64);
  ok(cudaFree(p));
  is(cudaMallocManaged(&p, 0, cudaMemAttachGlobal), cudaErrorInvalidValue);
}
END_TEST

START_TEST(pointers_say_what_they_are)
{
  struct cudaPointerAttributes a;
  static char plain[64];
  void *d, *h, *m, *seen;
  ok(cudaMalloc(&d, 64));
  ok(cudaHostAlloc(&h, 64, cudaHostAllocMapped));
  ok(cudaMallocManaged(&m, 64, cudaMemAttachGlobal));
  ok(cudaPointerGetAttributes(&a, d));
  ck_assert_int_eq(a.type, cudaMemoryTypeDevice);
  ck_assert_int_eq(a.device, 0);
  ck_assert_ptr_eq(a.devicePointer, d);
  ck_assert_ptr_null(a.hostPointer);
  ok(cudaPointerGetAttributes(&a, h));
  ck_assert_int_eq(a.type, cudaMemoryTypeHost);
  ck_assert_ptr_eq(a.hostPointer, h);
  ok(cudaPointerGetAttributes(&a, m));
  ck_assert_int_eq(a.type, cudaMemoryTypeManaged);
  ok(cudaPointerGetAttributes(&a, plain));
  ck_assert_int_eq(a.type, cudaMemoryTypeUnregistered);
  ok(cudaHostGetDevicePointer(&seen, h, 0));
  ck_assert_ptr_nonnull(seen);
  is(cudaPointerGetAttributes(NULL, d), cudaErrorInvalidValue);
}
END_TEST

START_TEST(host_memory_is_registered_once)
{
  size_t n = 64 * KB;
  void *p = aligned_alloc(4096, n);
  struct cudaPointerAttributes a;
  ok(cudaHostRegister(p, n, cudaHostRegisterDefault));
  is(cudaHostRegister(p, n, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
  ok(cudaPointerGetAttributes(&a, p));
  ck_assert_int_eq(a.type, cudaMemoryTypeHost);
  ok(cudaHostUnregister(p));
  is(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
  free(p);
}
END_TEST

START_TEST(pools_give_and_take_in_the_order_of_a_stream)
{
  cudaMemPool_t pool;
  cudaStream_t s;
  void *p;
  unsigned char back[64];
  ok(cudaStreamCreate(&s));
  ok(cudaDeviceGetDefaultMemPool(&pool, 0));
  ok(cudaMallocAsync(&p, 64, s));
  ok(cudaMemsetAsync(p, 0x11, 64, s));
  ok(cudaMemcpyAsync(back, p, 64, cudaMemcpyDeviceToHost, s));
  ok(cudaFreeAsync(p, s));
  ok(cudaStreamSynchronize(s));
  for (int i = 0; i < 64; i++)
    ck_assert_int_eq(back[i], 0x11);
  ok(cudaMallocFromPoolAsync(&p, 64, pool, s));
  ok(cudaFreeAsync(p, s));
  ok(cudaMemPoolTrimTo(pool, 0));
  ok(cudaStreamDestroy(s));
}
END_TEST

/* ---- copies ---------------------------------------------------------------------------------- */

static unsigned char pattern[4096], back[4096];

static void fill_pattern(void)
{
  for (unsigned i = 0; i < sizeof pattern; i++)
    pattern[i] = (unsigned char)(i * 7 + 1);
  memset(back, 0, sizeof back);
}

START_TEST(copies_go_every_way)
{
  void *a, *b;
  fill_pattern();
  ok(cudaMalloc(&a, 4096));
  ok(cudaMalloc(&b, 4096));
  ok(cudaMemcpy(a, pattern, 4096, cudaMemcpyHostToDevice));
  ok(cudaMemcpy(b, a, 4096, cudaMemcpyDeviceToDevice));
  ok(cudaMemcpy(back, b, 4096, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(back, pattern, 4096);
  memset(back, 0, sizeof back);
  ok(cudaMemcpy(back, pattern, 4096, cudaMemcpyHostToHost));
  ck_assert_mem_eq(back, pattern, 4096);
  memset(back, 0, sizeof back);
  ok(cudaMemcpy(back, a, 4096, cudaMemcpyDefault));
  ck_assert_mem_eq(back, pattern, 4096);
  ok(cudaMemset(a, 0x2A, 10));
  ok(cudaMemcpy(back, a, 20, cudaMemcpyDefault));
  ck_assert_int_eq(back[9], 0x2A);
  ck_assert_int_eq(back[10], pattern[10]);
  ok(cudaMemcpy(a, pattern, 0, cudaMemcpyHostToDevice));
}
END_TEST

START_TEST(copies_that_cannot_be_are_refused)
{
  void *a;
  ok(cudaMalloc(&a, 4096));
  is(cudaMemcpy(a, pattern, 4, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
  is(cudaMemcpyAsync(a, pattern, 4, (enum cudaMemcpyKind) - 1, 0), cudaErrorInvalidMemcpyDirection);
  is(cudaMemcpy(NULL, pattern, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  is(cudaMemcpy(back, pattern, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  is(cudaMemcpy(a, pattern, 5000, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  is(cudaMemset(back, 0, 4), cudaErrorInvalidValue);
  is(cudaMemcpy2D(a, 8, pattern, 16, 12, 2, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  is(cudaMemcpy2D(a, 8, pattern, 8, 8, 2, (enum cudaMemcpyKind)5), cudaErrorInvalidMemcpyDirection);
  is(cudaMemcpy3D(NULL), cudaErrorInvalidValue);
}
END_TEST

START_TEST(rectangles_keep_their_pitches)
{
  void *a;
  size_t pitch;
  fill_pattern();
  ok(cudaMallocPitch(&a, &pitch, 30, 5));
  ok(cudaMemset2D(a, pitch, 0xEE, 30, 5));
  ok(cudaMemcpy2D(a, pitch, pattern, 40, 20, 4, cudaMemcpyHostToDevice));
  ok(cudaMemcpy2D(back, 32, a, pitch, 30, 5, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 5; y++)
    for (int x = 0; x < 30; x++)
      ck_assert_int_eq(back[y * 32 + x], x < 20 && y < 4 ? pattern[y * 40 + x] : 0xEE);
  ck_assert_int_eq(back[30], 0); /* between the rows */
}
END_TEST

START_TEST(boxes_keep_their_pitches_and_positions)
{
  struct cudaPitchedPtr box;
  struct cudaExtent extent = {16, 6, 4};
  fill_pattern();
  ok(cudaMalloc3D(&box, extent));
  ck_assert_uint_eq(box.xsize, 16);
  ck_assert_uint_eq(box.ysize, 6);
  ok(cudaMemset3D(box, 0x77, extent));
  struct cudaMemcpy3DParms p = {.srcPtr = {pattern, 16, 16, 6},
                                .dstPtr = box,
                                .dstPos = {4, 2, 1},
                                .extent = {8, 3, 2},
                                .kind = cudaMemcpyHostToDevice};
  ok(cudaMemcpy3D(&p));
  struct cudaMemcpy3DParms q = {
      .srcPtr = box, .dstPtr = {back, 16, 16, 6}, .extent = extent, .kind = cudaMemcpyDeviceToHost};
  ok(cudaMemcpy3D(&q));
  for (int z = 0; z < 4; z++)
    for (int y = 0; y < 6; y++)
      for (int x = 0; x < 16; x++) {
        int inside = x >= 4 && x < 12 && y >= 2 && y < 5 && z >= 1 && z < 3;
        int want = inside ? pattern[((z - 1) * 6 + y - 2) * 16 + x - 4] : 0x77;
        ck_assert_int_eq(back[(z * 6 + y) * 16 + x], want);
      }
  p.srcPtr.ptr = NULL; /* no source at all */
  is(cudaMemcpy3D(&p), cudaErrorInvalidValue);
}
END_TEST

START_TEST(arrays_are_made_described_and_copied)
{
  struct cudaChannelFormatDesc floats =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  struct cudaChannelFormatDesc got,
      odd = cudaCreateChannelDesc(32, 8, 0, 0, cudaChannelFormatKindFloat);
  struct cudaExtent extent;
  unsigned int flags;
  cudaArray_t a;
  fill_pattern();
  is(cudaMallocArray(&a, &odd, 8, 8, 0), cudaErrorInvalidChannelDescriptor);
  ok(cudaMallocArray(&a, &floats, 8, 6, cudaArrayDefault));
  ok(cudaArrayGetInfo(&got, &extent, &flags, a));
  ck_assert_int_eq(got.x, 32);
  ck_assert_int_eq(got.y, 0);
  ck_assert_int_eq(got.f, cudaChannelFormatKindFloat);
  ck_assert_uint_eq(extent.width, 8);
  ck_assert_uint_eq(extent.height, 6);
  ok(cudaMemcpy2DToArray(a, 0, 0, pattern, 32, 32, 6, cudaMemcpyHostToDevice));
  ok(cudaMemcpy2DFromArray(back, 16, a, 8, 2, 16, 3, cudaMemcpyDeviceToHost));
  for (int y = 0; y < 3; y++)
    ck_assert_mem_eq(back + y * 16, pattern + (y + 2) * 32 + 8, 16);
  is(cudaMemcpy2DToArray(a, 0, 0, pattern, 32, 32, 6, cudaMemcpyDeviceToHost),
     cudaErrorInvalidMemcpyDirection);
  ok(cudaFreeArray(a));
  ok(cudaFreeArray(NULL));
}
END_TEST

/* The deprecated run of bytes through the rows of an array: it wraps. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
START_TEST(a_run_of_bytes_wraps_through_an_array)
{
  struct cudaChannelFormatDesc bytes =
      cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
  cudaArray_t a, b;
  fill_pattern();
  ok(cudaMallocArray(&a, &bytes, 16, 8, cudaArrayDefault));
  ok(cudaMallocArray(&b, &bytes, 10, 12, cudaArrayDefault));
  ok(cudaMemcpyToArray(a, 5, 1, pattern, 60, cudaMemcpyHostToDevice));
  ok(cudaMemcpyFromArray(back, a, 5, 1, 60, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(back, pattern, 60);
  ok(cudaMemcpyArrayToArray(b, 3, 0, a, 5, 1, 60, cudaMemcpyDeviceToDevice));
  memset(back, 0, sizeof back);
  ok(cudaMemcpyFromArray(back, b, 3, 0, 60, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(back, pattern, 60);
}
END_TEST
#pragma GCC diagnostic pop

START_TEST(a_3d_copy_with_an_array_counts_elements)
{
  struct cudaChannelFormatDesc floats =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaArray_t a;
  fill_pattern();
  ok(cudaMalloc3DArray(&a, &floats, (struct cudaExtent){8, 4, 2}, cudaArrayDefault));
  struct cudaMemcpy3DParms up = {.srcPtr = {pattern, 32, 8, 4},
                                 .dstArray = a,
                                 .extent = {8, 4, 2},
                                 .kind = cudaMemcpyHostToDevice};
  struct cudaMemcpy3DParms down = {.srcArray = a,
                                   .srcPos = {2, 1, 1},
                                   .dstPtr = {back, 16, 4, 2},
                                   .extent = {4, 2, 1},
                                   .kind = cudaMemcpyDeviceToHost};
  ok(cudaMemcpy3D(&up));
  ok(cudaMemcpy3D(&down));
  for (int y = 0; y < 2; y++)
    ck_assert_mem_eq(back + y * 16, pattern + (4 + y + 1) * 32 + 8, 16);
}
END_TEST

START_TEST(peers_copy_to_each_other)
{
  void *a, *b;
  int can = 0;
  setenv("WEIR_SIM_DEVICES", "2", 1);
  fill_pattern();
  ok(cudaDeviceCanAccessPeer(&can, 0, 1));
  ck_assert_int_eq(can, 1);
  ok(cudaDeviceCanAccessPeer(&can, 0, 0));
  ck_assert_int_eq(can, 0);
  ok(cudaMalloc(&a, 4096));
  ok(cudaSetDevice(1));
  ok(cudaMalloc(&b, 4096));
  ok(cudaDeviceEnablePeerAccess(0, 0));
  is(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  is(cudaDeviceEnablePeerAccess(1, 0), cudaErrorInvalidDevice);
  is(cudaDeviceEnablePeerAccess(0, 1), cudaErrorInvalidValue);
  ok(cudaMemcpy(a, pattern, 4096, cudaMemcpyHostToDevice));
  ok(cudaMemcpyPeer(b, 1, a, 0, 4096));
  ok(cudaMemcpy(back, b, 4096, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(back, pattern, 4096);
  ok(cudaMemset(b, 0, 4096));
  ok(cudaMemcpyPeerAsync(b, 1, a, 0, 4096, 0));
  ok(cudaDeviceSynchronize());
  ok(cudaMemcpy(back, b, 4096, cudaMemcpyDeviceToHost));
  ck_assert_mem_eq(back, pattern, 4096);
  ok(cudaDeviceDisablePeerAccess(0));
  is(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  is(cudaMemcpyPeer(b, 2, a, 0, 4096), cudaErrorInvalidDevice);
}
END_TEST

/* ---- streams and events ---------------------------------------------------------------------- */

START_TEST(asynchronous_work_waits_in_its_stream)
{
  cudaStream_t s;
  cudaEvent_t e;
  unsigned char *h;
  void *d;
  fill_pattern();
  ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  ok(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  ok(cudaMallocHost((void **)&h, 4096));
  ok(cudaMalloc(&d, 4096));
  memcpy(h, pattern, 4096);
  ck_assert_int_eq(sim_hold(s), 0);
  ok(cudaMemcpyAsync(d, h, 4096, cudaMemcpyHostToDevice, s));
  ok(cudaMemsetAsync(d, 0x33, 16, s));
  ok(cudaMemcpyAsync(h, d, 4096, cudaMemcpyDeviceToHost, s));
  ok(cudaEventRecord(e, s));
  is(cudaStreamQuery(s), cudaErrorNotReady);
  is(cudaEventQuery(e), cudaErrorNotReady);
  ck_assert_int_eq(h[0], pattern[0]); /* nothing has arrived */
  ck_assert_int_eq(sim_release(s), 0);
  ok(cudaEventSynchronize(e));
  ok(cudaStreamQuery(s));
  ck_assert_int_eq(h[0], 0x33);
  ck_assert_int_eq(h[16], pattern[16]);
  ok(cudaStreamDestroy(s));
}
END_TEST

/* The legacy default stream waits for blocking streams; a per-thread default stream is like one of
 * them and waits for no other. */
START_TEST(the_default_stream_is_the_flavours_own)
{
  cudaStream_t s;
  cudaEvent_t e;
  void *d;
  ok(cudaStreamCreate(&s));
  ok(cudaEventCreate(&e));
  ok(cudaMalloc(&d, 16));
  ck_assert_int_eq(sim_hold(s), 0);
  ok(cudaMemsetAsync(d, 1, 16, s));
  ok(cudaMemsetAsync(d, 2, 16, 0));
  ok(cudaEventRecord(e, 0));
#if PTDS
  ok(cudaEventSynchronize(e));
#else
  is(cudaEventQuery(e), cudaErrorNotReady);
#endif
  ck_assert_int_eq(sim_release(s), 0);
  ok(cudaDeviceSynchronize());
  ok(cudaEventQuery(e));
}
END_TEST

START_TEST(events_order_streams_and_measure)
{
  cudaStream_t a, b;
  cudaEvent_t begin, end, plain;
  float ms = -1;
  unsigned char *h;
  ok(cudaMallocHost((void **)&h, 1));
  *h = 9;
  ok(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  ok(cudaStreamCreateWithPriority(&b, cudaStreamNonBlocking, 0));
  ok(cudaEventCreate(&begin));
  ok(cudaEventCreate(&end));
  ok(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
  ck_assert_int_eq(sim_hold(a), 0);
  ok(cudaEventRecord(begin, a));
  ok(cudaStreamWaitEvent(b, begin, 0));
  ok(cudaEventRecord(end, b));
  is(cudaEventQuery(end), cudaErrorNotReady);
  is(cudaEventElapsedTime(&ms, begin, end), cudaErrorNotReady);
  ck_assert_int_eq(sim_release(a), 0);
  ok(cudaEventSynchronize(end));
  ok(cudaEventElapsedTime(&ms, begin, end));
  ck_assert(ms >= 0);
  ok(cudaEventRecord(plain, a));
  ok(cudaEventSynchronize(plain));
  is(cudaEventElapsedTime(&ms, begin, plain), cudaErrorInvalidResourceHandle);
}
END_TEST

START_TEST(handles_nobody_made_are_refused)
{
  cudaStream_t s = 0;
  float ms;
  is(cudaStreamCreate(NULL), cudaErrorInvalidValue);
  is(cudaEventCreate(NULL), cudaErrorInvalidValue);
  is(cudaStreamDestroy(s), cudaErrorInvalidResourceHandle);
  is(cudaStreamDestroy(cudaStreamLegacy), cudaErrorInvalidResourceHandle);
  is(cudaEventDestroy(NULL), cudaErrorInvalidResourceHandle);
  is(cudaEventRecord(NULL, s), cudaErrorInvalidResourceHandle);
  is(cudaEventSynchronize(NULL), cudaErrorInvalidResourceHandle);
  is(cudaEventElapsedTime(&ms, NULL, NULL), cudaErrorInvalidResourceHandle);
  is(cudaStreamWaitEvent(s, NULL, 0), cudaErrorInvalidResourceHandle);
  is(cudaLaunchHostFunc(s, NULL, NULL), cudaErrorInvalidValue);
  is(cudaStreamAddCallback(s, NULL, NULL, 0), cudaErrorInvalidValue);
}
END_TEST

static atomic_int order;

static void CUDART_CB host_function(void *seen)
{
  *(int *)seen = atomic_fetch_add(&order, 1) + 1;
}

static void CUDART_CB stream_callback(cudaStream_t stream, cudaError_t status, void *seen)
{
  (void)stream;
  *(int *)seen = status == cudaSuccess ? atomic_fetch_add(&order, 1) + 1 : -1;
}

START_TEST(callbacks_run_in_the_streams_order)
{
  cudaStream_t s;
  int first = 0, second = 0;
  ok(cudaStreamCreate(&s));
  ck_assert_int_eq(sim_hold(s), 0);
  ok(cudaLaunchHostFunc(s, host_function, &first));
  ok(cudaStreamAddCallback(s, stream_callback, &second, 0));
  ck_assert_int_eq(atomic_load(&order), 0);
  ck_assert_int_eq(sim_release(s), 0);
  ok(cudaStreamSynchronize(s));
  ck_assert_int_eq(first, 1);
  ck_assert_int_eq(second, 2);
}
END_TEST

/* ---- the driver beneath ---------------------------------------------------------------------- */

START_TEST(entry_points_are_the_drivers)
{
  void *p = NULL;
  enum cudaDriverEntryPointQueryResult status;
  ok(cudaGetDriverEntryPointByVersion("cuMemAlloc", &p, 3020, cudaEnableDefault, &status));
  ck_assert_int_eq(status, cudaDriverEntryPointSuccess);
  ck_assert_ptr_eq(p, sim_symbol("cuMemAlloc_v2"));
  ok(cudaGetDriverEntryPointByVersion("cuStreamQuery", &p, 12000, cudaEnableDefault, &status));
  ck_assert_ptr_eq(p, sim_symbol(_Z("cuStreamQuery")));
  ok(cudaGetDriverEntryPointByVersion("cuStreamQuery", &p, 12000, cudaEnablePerThreadDefaultStream,
                                      &status));
  ck_assert_ptr_eq(p, sim_symbol("cuStreamQuery_ptsz"));
  ok(cudaGetDriverEntryPointByVersion("cuNoSuchThing", &p, 12000, cudaEnableDefault, &status));
  ck_assert_ptr_null(p);
  ck_assert_int_eq(status, cudaDriverEntryPointSymbolNotFound);
  is(cudaGetDriverEntryPointByVersion(NULL, &p, 12000, cudaEnableDefault, &status),
     cudaErrorInvalidValue);
}
END_TEST

/* Driver functions of the counted kinds, both flavours of those that have them. */
#define FLAVOURS(name) name, name "_ptds", name "_ptsz"
static const char *const counted[] = {"cuMemAlloc_v2",
                                      "cuMemAllocPitch_v2",
                                      "cuMemAllocManaged",
                                      "cuMemHostAlloc",
                                      "cuArrayCreate_v2",
                                      "cuArray3DCreate_v2",
                                      FLAVOURS("cuMemAllocAsync"),
                                      "cuMemFree_v2",
                                      "cuMemFreeHost",
                                      "cuArrayDestroy",
                                      FLAVOURS("cuMemFreeAsync"),
                                      FLAVOURS("cuMemcpy"),
                                      FLAVOURS("cuMemcpyAsync"),
                                      FLAVOURS("cuMemcpyHtoD_v2"),
                                      FLAVOURS("cuMemcpyHtoDAsync_v2"),
                                      FLAVOURS("cuMemcpyDtoH_v2"),
                                      FLAVOURS("cuMemcpyDtoHAsync_v2"),
                                      FLAVOURS("cuMemcpyDtoD_v2"),
                                      FLAVOURS("cuMemcpyDtoDAsync_v2"),
                                      FLAVOURS("cuMemcpy2D_v2"),
                                      FLAVOURS("cuMemcpy2DUnaligned_v2"),
                                      FLAVOURS("cuMemcpy2DAsync_v2"),
                                      FLAVOURS("cuMemcpy3D_v2"),
                                      FLAVOURS("cuMemcpy3DAsync_v2"),
                                      FLAVOURS("cuMemcpyPeer"),
                                      FLAVOURS("cuMemcpyPeerAsync"),
                                      FLAVOURS("cuMemsetD8_v2"),
                                      FLAVOURS("cuMemsetD8Async"),
                                      FLAVOURS("cuMemsetD2D8_v2"),
                                      FLAVOURS("cuMemsetD2D8Async"),
                                      "cuCtxSynchronize",
                                      FLAVOURS("cuStreamSynchronize"),
                                      FLAVOURS("cuStreamQuery"),
                                      "cuEventSynchronize",
                                      "cuEventQuery",
                                      FLAVOURS("cuStreamWaitEvent"),
                                      NULL};

/* `call` makes one call of the driver that counts, and that call is one of `name`. What was queued
 * before is done then: the calls use the same memory on different streams. */
#define ONE(call, name)                                                                            \
  do {                                                                                             \
    ok(cudaDeviceSynchronize());                                                                   \
    uint64_t all_ = sim_count_all(counted), own_ = sim_count(name);                                \
    ok(call);                                                                                      \
    ck_assert_msg(sim_count(name) == own_ + 1, "%s did not call %s once", #call, name);            \
    ck_assert_msg(sim_count_all(counted) == all_ + 1, "%s made %d counted calls", #call,           \
                  (int)(sim_count_all(counted) - all_));                                           \
  } while (0)

START_TEST(one_runtime_call_is_one_driver_call)
{
  struct cudaChannelFormatDesc floats =
      cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
  struct cudaPitchedPtr box;
  void *a, *b, *h, *m, *q;
  size_t pitch;
  cudaArray_t array;
  cudaStream_t s;
  cudaEvent_t e;
  ok(cudaStreamCreate(&s));
  ok(cudaEventCreate(&e));
  ONE(cudaMalloc(&a, 4096), "cuMemAlloc_v2");
  ONE(cudaMallocPitch(&b, &pitch, 64, 8), "cuMemAllocPitch_v2");
  ONE(cudaMalloc3D(&box, (struct cudaExtent){16, 4, 2}), "cuMemAllocPitch_v2");
  ONE(cudaMallocHost(&h, 4096), "cuMemHostAlloc");
  ONE(cudaMallocManaged(&m, 64, cudaMemAttachGlobal), "cuMemAllocManaged");
  ONE(cudaMallocArray(&array, &floats, 4, 4, 0), "cuArrayCreate_v2");
  ONE(cudaMallocAsync(&q, 64, s), _Z("cuMemAllocAsync"));
  ONE(cudaMemcpy(a, h, 64, cudaMemcpyHostToDevice), _P("cuMemcpyHtoD_v2"));
  ONE(cudaMemcpy(h, a, 64, cudaMemcpyDeviceToHost), _P("cuMemcpyDtoH_v2"));
  ONE(cudaMemcpy(a, b, 64, cudaMemcpyDeviceToDevice), _P("cuMemcpyDtoD_v2"));
  ONE(cudaMemcpy(a, h, 64, cudaMemcpyDefault), _P("cuMemcpy"));
  ONE(cudaMemcpyAsync(a, h, 64, cudaMemcpyHostToDevice, s), _Z("cuMemcpyHtoDAsync_v2"));
  ONE(cudaMemcpyAsync(h, a, 64, cudaMemcpyDeviceToHost, s), _Z("cuMemcpyDtoHAsync_v2"));
  ONE(cudaMemcpyAsync(b, a, 64, cudaMemcpyDeviceToDevice, s), _Z("cuMemcpyDtoDAsync_v2"));
  ONE(cudaMemcpyAsync(b, a, 64, cudaMemcpyDefault, s), _Z("cuMemcpyAsync"));
  ONE(cudaMemcpy2D(b, pitch, h, 64, 64, 4, cudaMemcpyHostToDevice), _P("cuMemcpy2DUnaligned_v2"));
  ONE(cudaMemcpy2DAsync(b, pitch, h, 64, 64, 4, cudaMemcpyHostToDevice, s),
      _Z("cuMemcpy2DAsync_v2"));
  ONE(cudaMemcpy2DToArray(array, 0, 0, h, 16, 16, 4, cudaMemcpyHostToDevice),
      _P("cuMemcpy2DUnaligned_v2"));
  struct cudaMemcpy3DParms p = {.srcPtr = {h, 16, 16, 4},
                                .dstPtr = box,
                                .extent = {16, 4, 2},
                                .kind = cudaMemcpyHostToDevice};
  ONE(cudaMemcpy3D(&p), _P("cuMemcpy3D_v2"));
  ONE(cudaMemcpy3DAsync(&p, s), _Z("cuMemcpy3DAsync_v2"));
  ONE(cudaMemcpyPeer(a, 0, b, 0, 64), "cuMemcpyPeer");
  ONE(cudaMemcpyPeerAsync(a, 0, b, 0, 64, s), "cuMemcpyPeerAsync");
  ONE(cudaMemset(a, 0, 64), _P("cuMemsetD8_v2"));
  ONE(cudaMemsetAsync(a, 0, 64, s), _Z("cuMemsetD8Async"));
  ONE(cudaMemset2D(b, pitch, 0, 64, 4), _P("cuMemsetD2D8_v2"));
  ONE(cudaMemset2DAsync(b, pitch, 0, 64, 4, s), _Z("cuMemsetD2D8Async"));
  ONE(cudaMemset3D(box, 0, (struct cudaExtent){16, 4, 2}), _P("cuMemsetD2D8_v2"));
  ONE(cudaStreamSynchronize(s), _Z("cuStreamSynchronize"));
  ONE(cudaStreamQuery(s), _Z("cuStreamQuery"));
  ok(cudaEventRecord(e, s));
  ONE(cudaStreamWaitEvent(s, e, 0), _Z("cuStreamWaitEvent"));
  ONE(cudaEventSynchronize(e), "cuEventSynchronize");
  ONE(cudaEventQuery(e), "cuEventQuery");
  ONE(cudaDeviceSynchronize(), "cuCtxSynchronize");
  ONE(cudaFreeAsync(q, s), _Z("cuMemFreeAsync"));
  ONE(cudaFreeArray(array), "cuArrayDestroy");
  ONE(cudaFree(m), "cuMemFree_v2");
  ONE(cudaFreeHost(h), "cuMemFreeHost");
  ONE(cudaFree(box.ptr), "cuMemFree_v2");
  ONE(cudaFree(a), "cuMemFree_v2");
}
END_TEST

START_TEST(a_batch_is_several_copies)
{
  cudaStream_t stream;
  char *p, host[8] = "abcdefg", back[8] = "";
  ok(cudaStreamCreate(&stream));
  ok(cudaMalloc((void **)&p, 8));
  void *dst[] = {p, p + 4};
  const void *src[] = {host + 4, host};
  size_t sizes[] = {4, 4}, first = 0;
  struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall};
  ok(cudaMemcpyBatchAsync(dst, src, sizes, 2, &how, &first, 1, stream));
  memset(host, 0, sizeof host);
  ok(cudaMemcpyAsync(back, p, 8, cudaMemcpyDeviceToHost, stream));
  ok(cudaStreamSynchronize(stream));
  ck_assert_mem_eq(back, "efg\0abcd", 8);
  is(cudaMemcpyBatchAsync(dst, src, sizes, 2, &how, &first, 0, stream), cudaErrorInvalidValue);
  is(cudaMemcpy3DBatchAsync(1, NULL, 0, stream), cudaErrorInvalidValue);
}
END_TEST

/* ---- other processes ------------------------------------------------------------------------- */

static int opens(int in)
{
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
  cudaEvent_t e;
  int *p, word = 0;
  if (read(in, &memory, sizeof memory) != (ssize_t)sizeof memory) return 1;
  if (read(in, &event, sizeof event) != (ssize_t)sizeof event) return 2;
  if (cudaIpcOpenMemHandle((void **)&p, memory, cudaIpcMemLazyEnablePeerAccess)) return 3;
  if (cudaIpcOpenEventHandle(&e, event) || cudaEventSynchronize(e)) return 4;
  if (cudaMemcpy(&word, p, sizeof word, cudaMemcpyDeviceToHost) || word != 0x07070707) return 5;
  return cudaIpcCloseMemHandle(p) || cudaEventDestroy(e) ? 6 : 0;
}

START_TEST(a_conditional_node_runs_its_body)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t node;
  cudaGraphConditionalHandle handle;
  char *p, back[2] = {0, 0};
  ok(cudaMalloc((void **)&p, 2));
  ok(cudaMemset(p, 0, 2));
  ok(cudaGraphCreate(&graph, 0));
  is(cudaGraphConditionalHandleCreate(NULL, graph, 1, 0), cudaErrorInvalidValue);
  for (unsigned value = 0; value < 2; value++) {
    ok(cudaGraphConditionalHandleCreate(&handle, graph, value, cudaGraphCondAssignDefault));
    struct cudaGraphNodeParams params = {.type = cudaGraphNodeTypeConditional};
    params.conditional.handle = handle;
    params.conditional.type = cudaGraphCondTypeIf;
    params.conditional.size = 1;
    ok(cudaGraphAddNode(&node, graph, NULL, NULL, 0, &params));
    struct cudaMemsetParams set = {
        .dst = p + value, .value = 9, .elementSize = 1, .width = 1, .height = 1};
    ok(cudaGraphAddMemsetNode(&node, params.conditional.phGraph_out[0], NULL, 0, &set));
  }
  ok(cudaGraphInstantiate(&exec, graph, 0));
  ok(cudaGraphLaunch(exec, NULL));
  ok(cudaMemcpy(back, p, 2, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(back[0], 0);
  ck_assert_int_eq(back[1], 9);
}
END_TEST

START_TEST(memory_and_events_are_opened_in_another_process)
{
  int ends[2], status;
  ck_assert_int_eq(pipe(ends), 0);
  pid_t child = fork();
  if (!child) _exit(opens(ends[0]));
  void *p, *mine;
  cudaEvent_t e;
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
  ok(cudaMalloc(&p, 4 * KB));
  ok(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
  ok(cudaMemsetAsync(p, 7, 4 * KB, 0));
  ok(cudaEventRecord(e, 0));
  ok(cudaIpcGetMemHandle(&memory, p));
  ok(cudaIpcGetEventHandle(&event, e));
  is(cudaIpcOpenMemHandle(&mine, memory, cudaIpcMemLazyEnablePeerAccess),
     cudaErrorDeviceUninitialized);
  ck_assert_int_eq((int)write(ends[1], &memory, sizeof memory), (int)sizeof memory);
  ck_assert_int_eq((int)write(ends[1], &event, sizeof event), (int)sizeof event);
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create(SUITE);
  TCase *c = tcase_create("all");
  tcase_add_test(c, devices_are_counted_chosen_and_refused);
  tcase_add_test(c, no_device_is_an_error_of_its_own);
  tcase_add_test(c, versions_are_the_toolkits_and_the_drivers);
  tcase_add_test(c, properties_and_attributes_agree);
  tcase_add_test(c, a_context_begins_with_the_first_call_that_needs_it);
  tcase_add_test(c, setting_a_device_begins_its_context);
  tcase_add_test(c, a_reset_frees_everything_and_the_next_call_begins_anew);
  tcase_add_test(c, a_reset_reaches_threads_that_hold_the_context);
  tcase_add_test(c, a_context_of_the_driver_api_is_used_as_it_is);
  tcase_add_test(c, the_device_and_the_last_error_are_the_threads_own);
  tcase_add_test(c, the_last_error_is_kept_until_it_is_taken);
  tcase_add_test(c, a_broken_context_stays_broken_until_the_reset);
  tcase_add_test(c, out_of_memory_is_said_and_passes);
  tcase_add_test(c, errors_have_their_names_and_sentences);
  tcase_add_test(c, allocations_and_frees_answer_as_documented);
  tcase_add_test(c, pointers_say_what_they_are);
  tcase_add_test(c, host_memory_is_registered_once);
  tcase_add_test(c, pools_give_and_take_in_the_order_of_a_stream);
  tcase_add_test(c, copies_go_every_way);
  tcase_add_test(c, copies_that_cannot_be_are_refused);
  tcase_add_test(c, rectangles_keep_their_pitches);
  tcase_add_test(c, boxes_keep_their_pitches_and_positions);
  tcase_add_test(c, arrays_are_made_described_and_copied);
  tcase_add_test(c, a_run_of_bytes_wraps_through_an_array);
  tcase_add_test(c, a_3d_copy_with_an_array_counts_elements);
  tcase_add_test(c, peers_copy_to_each_other);
  tcase_add_test(c, asynchronous_work_waits_in_its_stream);
  tcase_add_test(c, the_default_stream_is_the_flavours_own);
  tcase_add_test(c, events_order_streams_and_measure);
  tcase_add_test(c, handles_nobody_made_are_refused);
  tcase_add_test(c, callbacks_run_in_the_streams_order);
  tcase_add_test(c, entry_points_are_the_drivers);
  tcase_add_test(c, one_runtime_call_is_one_driver_call);
  tcase_add_test(c, a_batch_is_several_copies);
  tcase_add_test(c, a_conditional_node_runs_its_body);
  tcase_add_test(c, memory_and_events_are_opened_in_another_process);
  tcase_set_timeout(c, 60);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
