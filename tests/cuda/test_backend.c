/* test_backend.c: the CUDA backend under the public API: memory, contexts, streams, errors, two
 * devices. Each test runs with VMM and with segments (_i). */
#include "tests/cuda/rig.h"

static const weir_device cuda0 = WEIR_CUDA_INIT(0), cuda1 = WEIR_CUDA_INIT(1);

/* How many devices there are; the tests of two are nothing where there is one. */
static int device_count(void)
{
  int n;
  weir_ok(weir_cuda_device_count(&n));
  return n;
}

static void require_cuda(int way)
{
  if (way) ck_assert_int_eq(setenv("WEIR_ALLOC_CONF", "expandable_segments:False", 1), 0);
  ck_assert_msg(weir_cuda_is_available(), "%s", weir_error_message());
}

static CUcontext primary(int index)
{
  CUcontext c;
  CUdevice d;
  ok(cuDeviceGet(&d, index));
  ok(cuDevicePrimaryCtxRetain(&c, d));
  return c;
}

static CUcontext current_context(void)
{
  CUcontext c;
  ok(cuCtxGetCurrent(&c));
  return c;
}

static void *allocate_for_stream(size_t bytes, weir_device device, weir_stream *stream)
{
  void *out = NULL;
  weir_ok(weir_malloc(&out, bytes, device, stream));
  return out;
}

static CUdeviceptr device_pointer(void *p)
{
  return (CUdeviceptr)(uintptr_t)p;
}

/* Writes a word all over a block and finds it at both ends. */
static void fill_and_check_block(void *p, size_t bytes, unsigned value)
{
  unsigned ends[2] = {0, 0};
  ok(cuMemsetD32(device_pointer(p), value, bytes / 4));
  ok(cuMemcpyDtoH(&ends[0], device_pointer(p), 4));
  ok(cuMemcpyDtoH(&ends[1], device_pointer(p) + bytes / 4 * 4 - 4, 4));
  ck_assert(ends[0] == value && ends[1] == value);
}

START_TEST(memory_can_be_used_from_its_first_byte_to_its_last)
{
  static const size_t sizes[] = {1,     4,       512,           1000,    4096,
                                 65537, 1 << 20, (1 << 20) + 1, 3 << 20, 41 << 20};
  enum { N = sizeof sizes / sizeof *sizes };
  void *p[N];
  require_cuda(_i);
  for (int i = 0; i < N; i++)
    p[i] = allocate_for_stream(sizes[i], cuda0, NULL);
  ok(cuCtxSetCurrent(primary(0)));
  for (int i = 0; i < N; i++) {
    ck_assert_uint_eq(device_pointer(p[i]) % 512, 0);
    if (sizes[i] >= 4) fill_and_check_block(p[i], sizes[i], 0x1000u + (unsigned)i);
  }
  for (int i = 0; i < N; i++)
    weir_ok(weir_free(p[i]));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(what_is_freed_goes_back_to_the_device)
{
  require_cuda(_i);
  ok(cuInit(0));
  ok(cuCtxSetCurrent(primary(0)));
  size_t before, during, after, total;
  ok(cuMemGetInfo(&before, &total));
  void *p = allocate_for_stream(64 << 20, cuda0, NULL);
  ok(cuMemGetInfo(&during, &total));
  ck_assert_uint_ge(before - during, 64 << 20); /* the driver may need some for itself */
  if (rig_simulated()) ck_assert_uint_eq(before - during, 64 << 20);
  weir_ok(weir_free(p));
  weir_ok(weir_memory_empty_cache(cuda0));
  ok(cuMemGetInfo(&after, &total));
  ck_assert_uint_ge(after - during, 64 << 20);
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(the_context_lives_as_long_as_something_needs_it)
{
  unsigned flags;
  int active;
  CUdevice d;
  require_cuda(_i);
  ok(cuDeviceGet(&d, 0));
  ok(cuDevicePrimaryCtxGetState(d, &flags, &active));
  ck_assert_int_eq(active, 0); /* asking for devices makes no context */
  void *p = allocate_for_stream(1000, cuda0, NULL);
  ok(cuDevicePrimaryCtxGetState(d, &flags, &active));
  ck_assert_int_eq(active, 1);
  ck_assert_int_eq(weir_memory_detach(cuda0), WEIR_EINVAL);
  ok(cuDevicePrimaryCtxGetState(d, &flags, &active));
  ck_assert_int_eq(active, 1);
  weir_ok(weir_free(p));
  weir_ok(weir_memory_detach(cuda0));
  ok(cuDevicePrimaryCtxGetState(d, &flags, &active));
  ck_assert_int_eq(active, 0);
  weir_ok(weir_free(allocate_for_stream(1000, cuda0, NULL))); /* and it can be had again */
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

/* Everything that calls the driver. */
static void all_calls(void)
{
  uint64_t largest;
  weir_memory_stats stats;
  weir_stream *side;
  CUstream native;
  CUcontext before = current_context(), popped;
  ok(cuCtxPushCurrent(primary(0)));
  ok(cuStreamCreate(&native, CU_STREAM_NON_BLOCKING));
  ok(cuCtxPopCurrent(&popped));
  weir_ok(weir_stream_from_native(&side, cuda0, native));
  void *a = allocate_for_stream(5 << 20, cuda0, NULL), *b = allocate_for_stream(700, cuda0, side);
  weir_ok(weir_record_stream(a, side));
  weir_ok(weir_free(a));
  weir_ok(weir_free(b));
  weir_ok(weir_memory_largest_free_block(&largest, cuda0, side));
  weir_ok(weir_free(allocate_for_stream(6 << 20, cuda0, side)));
  weir_ok(weir_memory_get_stats(&stats, cuda0));
  weir_ok(weir_memory_empty_cache(cuda0));
  weir_ok(weir_memory_detach(cuda0));
  ck_assert_ptr_eq(current_context(), before);
}

START_TEST(a_thread_keeps_its_context_and_its_capture_mode)
{
  require_cuda(_i);
  CUcontext own, popped;
  CUdevice d;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  ok(cuThreadExchangeStreamCaptureMode(&mode));
  all_calls(); /* nothing current */
  ok(cuDeviceGet(&d, 0));
  ok(cuCtxCreate(&own, NULL, 0, d));
  ok(cuCtxPushCurrent(primary(0)));
  ok(cuCtxPushCurrent(own));
  all_calls(); /* another context of the same device, on top of a stack */
  ok(cuCtxPopCurrent(&popped));
  ck_assert_ptr_eq(popped, own);
  all_calls(); /* the right one already */
  ok(cuCtxPopCurrent(&popped));
  ck_assert_ptr_eq(popped, primary(0));
  ck_assert_ptr_eq(current_context(), own);
  ok(cuThreadExchangeStreamCaptureMode(&mode));
  ck_assert_int_eq(mode, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}
END_TEST

START_TEST(setting_the_device_sets_the_runtimes_too)
{
  require_cuda(_i);
  weir_ok(weir_free(allocate_for_stream(8, cuda0, NULL)));
  weir_ok(weir_set_device(cuda0));
  ck_assert_ptr_eq(current_context(), primary(0));
  if (device_count() < 2) return;
  weir_ok(weir_free(allocate_for_stream(8, cuda1, NULL)));
  WEIR_WITH_DEVICE(cuda1)
  {
    ck_assert_ptr_eq(current_context(), primary(1));
  }
  ck_assert_ptr_eq(current_context(), primary(0));
}
END_TEST

/* A context of the program's own, and none at all. */
START_TEST(a_guard_brings_back_what_the_program_had_made_current)
{
  require_cuda(_i);
  CUcontext own;
  CUdevice d;
  weir_stream *side;
  weir_ok(weir_free(allocate_for_stream(8, cuda0, NULL)));
  weir_ok(weir_stream_new(&side, cuda0, 0));
  ck_assert_ptr_null(current_context());
  WEIR_WITH_DEVICE(cuda0)
  {
    ck_assert_ptr_eq(current_context(), primary(0));
  }
  ck_assert_ptr_null(current_context());
  ok(cuDeviceGet(&d, 0));
  ok(cuCtxCreate(&own, NULL, 0, d));
  WEIR_WITH_STREAM(side)
  {
    ck_assert_ptr_eq(current_context(), primary(0));
  }
  ck_assert_ptr_eq(current_context(), own);
  ok(cuCtxDestroy(own));
}
END_TEST

START_TEST(the_default_stream_has_one_name_and_per_thread_streams_are_refused)
{
  require_cuda(_i);
  weir_stream *zero, *legacy, *each;
  weir_ok(weir_stream_from_native(&zero, cuda0, NULL));
  weir_ok(weir_stream_from_native(&legacy, cuda0, CU_STREAM_LEGACY));
  ck_assert_ptr_eq(zero, legacy);
  ck_assert_int_eq(weir_stream_from_native(&each, cuda0, CU_STREAM_PER_THREAD), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "cudaStreamPerThread"));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(streams_of_other_contexts_are_refused)
{
  require_cuda(_i);
  weir_stream *s;
  CUcontext own;
  CUdevice d;
  CUstream foreign;
  ok(cuDeviceGet(&d, 0));
  ok(cuCtxCreate(&own, NULL, 0, d));
  ok(cuStreamCreate(&foreign, CU_STREAM_DEFAULT));
  ck_assert_int_eq(weir_stream_from_native(&s, cuda0, foreign), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "not of cuda:0's primary context"));
  if (device_count() < 2) return;
  ok(cuCtxSetCurrent(primary(1)));
  ok(cuStreamCreate(&foreign, CU_STREAM_DEFAULT));
  ck_assert_int_eq(weir_stream_from_native(&s, cuda0, foreign), WEIR_EINVAL);
  weir_ok(weir_stream_from_native(&s, cuda1, foreign));
  void *out;
  ck_assert_int_eq(weir_malloc(&out, 8, cuda0, s), WEIR_EINVAL);
}
END_TEST

START_TEST(two_devices_are_two_pools)
{
  require_cuda(_i);
  if (device_count() < 2) return;
  void *a = allocate_for_stream(3 << 20, cuda0, NULL),
       *b = allocate_for_stream(5 << 20, cuda1, NULL);
  int of;
  ok(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device_pointer(a)));
  ck_assert_int_eq(of, 0);
  ok(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, device_pointer(b)));
  ck_assert_int_eq(of, 1);
  int64_t live;
  weir_ok(weir_memory_stat(&live, cuda0, "allocated_bytes.all.current"));
  ck_assert_int_eq(live, 3 << 20);
  weir_ok(weir_memory_stat(&live, cuda1, "allocated_bytes.all.current"));
  ck_assert_int_eq(live, 5 << 20);
  ok(cuCtxSetCurrent(primary(1)));
  fill_and_check_block(b, 5 << 20, 77);
  weir_stream *one;
  weir_ok(weir_stream_from_native(&one, cuda1, NULL));
  ck_assert_int_eq(weir_record_stream(a, one), WEIR_EINVAL);
  weir_ok(weir_free(a));
  weir_ok(weir_free(b));
  weir_ok(weir_memory_detach(cuda0));
  weir_ok(weir_memory_detach(cuda1));
}
END_TEST

START_TEST(out_of_memory_is_told_with_the_figures_and_the_rest_still_serves)
{
  require_cuda(_i);
  weir_cuda_device_properties p;
  void *out;
  weir_ok(weir_cuda_get_device_properties(&p, 0));
  ck_assert_int_eq(weir_malloc(&out, p.total_memory + MIB, cuda0, NULL), WEIR_EOOM);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "out of memory"));
  if (rig_simulated()) { /* all there is, where nobody else has any of it */
    void *all = allocate_for_stream(p.total_memory / 100 * 98, cuda0, NULL);
    ck_assert_int_eq(weir_malloc(&out, p.total_memory / 20, cuda0, NULL), WEIR_EOOM);
    weir_ok(weir_free(all));
  }
  weir_ok(weir_free(allocate_for_stream(64 << 20, cuda0, NULL)));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

/* A kernel's or a copy's fault stays with the context: "the process must be terminated and
 * relaunched" to use CUDA again. Until then every call says so. */
START_TEST(a_sticky_error_is_a_status_with_cudas_own_words)
{
  require_cuda(_i);
  if (!rig_simulated()) return; /* it would end the other tests' context, too */
  void *small = allocate_for_stream(1000, cuda0, NULL),
       *large = allocate_for_stream(8 << 20, cuda0, NULL), *out;
  ok(cuCtxSetCurrent(primary(0)));
  ok(cuMemsetD32Async(device_pointer(large), 1, 1, NULL));
  rig_fail("cuEventRecord:1=700");
  weir_stream *side;
  CUstream native;
  ok(cuStreamCreate(&native, CU_STREAM_NON_BLOCKING));
  weir_ok(weir_stream_from_native(&side, cuda0, native));
  weir_ok(weir_free(large));
  ck_assert_int_eq(weir_malloc(&out, 9 << 20, cuda0, side), WEIR_ECUDA);
  ck_assert_msg(strstr(weir_error_message(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)") != NULL, "%s",
                weir_error_message());
  weir_ok(weir_free(small)); /* needs no call */
  weir_ok(weir_free(allocate_for_stream(1000, cuda0, NULL)));
  ck_assert_int_eq(weir_memory_detach(cuda0), WEIR_ECUDA);
  int64_t live;
  weir_ok(weir_memory_stat(&live, cuda0, "allocated_bytes.all.current"));
  ck_assert_int_eq(live, 0);
}
END_TEST

START_TEST(host_memory_is_locked_and_let_go)
{
  require_cuda(_i);
  const weir_backend *b;
  weir_ok(device_open(0, &b));
  const weir_source *s = &b->source;
  size_t bytes = 4 << 20;
  void *memory = aligned_alloc(2 << 20, bytes), *out;
  unsigned flags;
  ck_assert_ptr_nonnull(memory);
  memset(memory, 1, bytes);
  weir_ok(s->host_register(b->self, memory, bytes, WEIR_HOST_PORTABLE | WEIR_HOST_MAPPED));
  ok(cuCtxSetCurrent(primary(0)));
  ok(cuMemHostGetFlags(&flags, memory));
  ck_assert_int_eq(s->host_register(b->self, memory, bytes, 0), WEIR_ECUDA);
  ck_assert_ptr_nonnull(
      strstr(weir_error_message(), "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)"));
  weir_ok(s->host_unregister(b->self, memory, bytes));
  ck_assert_int_eq(s->host_unregister(b->self, memory, bytes), WEIR_ECUDA);
  free(memory);
  weir_ok(s->host_alloc(b->self, bytes, WEIR_HOST_WRITE_COMBINED | WEIR_HOST_PORTABLE, &out));
  ok(cuMemHostGetFlags(&flags, out));
  ck_assert_uint_eq(flags & (CU_MEMHOSTALLOC_WRITECOMBINED | CU_MEMHOSTALLOC_PORTABLE),
                    CU_MEMHOSTALLOC_WRITECOMBINED | CU_MEMHOSTALLOC_PORTABLE);
  memset(out, 2, bytes);
  weir_ok(s->host_free(b->self, out, bytes));
  ck_assert_int_ge(s->numa_node(b->self), -1);
  weir_ok(device_close(0));
}
END_TEST

START_TEST(pinned_memory_is_locked_for_the_device)
{
  void *p, *other, *plain = malloc(4096);
  bool pinned;
  unsigned flags;
  require_cuda(_i);
  weir_ok(weir_pinned_malloc(&p, 10 << 20));
  ok(cuCtxSetCurrent(primary(0)));
  ok(cuMemHostGetFlags(&flags, p));
  weir_ok(weir_is_pinned(&pinned, p));
  ck_assert(pinned);
  weir_ok(weir_is_pinned(&pinned, plain));
  ck_assert(!pinned);
  ok(cuMemHostAlloc(&other, 4096, 0));
  weir_ok(weir_is_pinned(&pinned, other)); /* not ours, but locked */
  ck_assert(pinned);
  ok(cuMemFreeHost(other));
  CUdeviceptr managed;
  ok(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
  weir_ok(weir_is_pinned(&pinned, (void *)(uintptr_t)managed));
  ck_assert(!pinned);
  ok(cuMemFree(managed));
  void *block = allocate_for_stream(10 << 20, cuda0, NULL);
  memset(p, 0x5a, 10 << 20);
  ok(cuMemcpyHtoDAsync(device_pointer(block), p, 10 << 20, NULL));
  memset(plain, 0, 4096);
  ok(cuMemcpyDtoH(plain, device_pointer(block) + (10 << 20) - 4096, 4096));
  ck_assert_int_eq(((char *)plain)[4095], 0x5a);
  free(plain);
  weir_ok(weir_free(block));
  weir_ok(weir_pinned_free(p));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

/* What saving paused memory needs: copies that neither wait for the program's streams nor are
 * waited for. */
START_TEST(copies_of_our_own_pass_by_what_is_held)
{
  static rig r;
  static char host[1 << 20], back[1 << 20];
  require_cuda(_i);
  rig_open(&r);
  rig_pool(&r, _i ? "expandable_segments:False" : NULL);
  rig_lanes(&r, 2);
  void *a = rig_malloc(&r, 1, 4 * MIB);
  const weir_backend *b = r.real;
  memset(host, 0x33, sizeof host);
  gate_add(&r.lanes[1]);
  ok(cuMemsetD32Async(device_pointer(a) + MIB, 1, 8, r.lanes[1].stream));
  weir_ok(b->copy_to_device(b->self, device_pointer(a) + 512, host, sizeof host - 512));
  weir_ok(b->copy_to_host(b->self, back, device_pointer(a) + 512, sizeof back - 512));
  ck_assert_int_eq(memcmp(host, back, sizeof host - 512), 0);
  ck_assert_int_eq(cuStreamQuery(r.lanes[1].stream), CUDA_ERROR_NOT_READY);
  gate_open(&r.lanes[1]);
  rig_free(&r, a);
  rig_end(&r);
}
END_TEST

START_TEST(another_streams_block_waits_for_its_work)
{
  static rig r;
  require_cuda(_i);
  rig_open(&r);
  rig_pool(&r, _i ? "expandable_segments:False" : NULL);
  rig_lanes(&r, 3);
  gate_add(&r.lanes[1]);
  void *a = rig_malloc(&r, 1, 32 * MIB);
  ok(cuMemsetD32Async(device_pointer(a), 1, 8 * MIB, r.lanes[1].stream));
  rig_free(&r, a);
  void *b = rig_malloc(&r, 2, 32 * MIB);
  ck_assert_ptr_ne(a, b);
  gate_open(&r.lanes[1]);
  ok(cuStreamSynchronize(r.lanes[1].stream));
  ck_assert_ptr_eq(rig_malloc(&r, 2, 32 * MIB), a);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_check(&r);
  rig_end(&r);
}
END_TEST

/* What a program captures is its own: the allocator goes on beside it, with calls that are "unsafe"
 * during a capture, on this thread and on others, and the capture ends well. */
static void *use_beside(void *stream)
{
  CUcontext mine = NULL;
  void *a = allocate_for_stream(30 << 20, cuda0, stream),
       *b = allocate_for_stream(900, cuda0, NULL);
  weir_ok(weir_free(a));
  weir_ok(weir_free(b));
  weir_ok(weir_free(allocate_for_stream(31 << 20, cuda0, NULL)));
  weir_ok(weir_memory_empty_cache(cuda0));
  weir_ok(weir_free(allocate_for_stream(29 << 20, cuda0, stream)));
  ok(cuCtxGetCurrent(&mine));
  return mine;
}

/* `flags` of the captured stream: a blocking one makes the legacy stream untouchable. */
static void capture_beside(unsigned flags, weir_stream *side)
{
  CUstream captured;
  CUgraph graph = NULL;
  CUdeviceptr p;
  size_t nodes = 0;
  pthread_t thread;
  void *text = allocate_for_stream(4096, cuda0, NULL);
  ok(cuStreamCreate(&captured, flags));
  ok(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cuMemsetD32Async(device_pointer(text), 1, 8, captured));
  (void)use_beside(side);
  ck_assert_int_eq(pthread_create(&thread, NULL, use_beside, side), 0);
  pthread_join(thread, NULL);
  ok(cuMemsetD32Async(device_pointer(text), 2, 8, captured));
  ok(cuStreamEndCapture(captured, &graph));
  ok(cuGraphGetNodes(graph, NULL, &nodes));
  ck_assert_uint_eq(nodes, 2);
  ok(cuGraphDestroy(graph));
  /* the same call outside of the allocator does end a capture */
  ok(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ck_assert_int_eq(cuMemAlloc(&p, 4096), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ck_assert_int_ne(cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
  ok(cuStreamDestroy(captured));
  weir_ok(weir_free(text));
}

START_TEST(a_capture_beside_the_allocator_ends_well)
{
  weir_stream *side;
  require_cuda(_i);
  ok(cuCtxSetCurrent(primary(0)));
  weir_ok(weir_stream_create(&side, cuda0));
  capture_beside(CU_STREAM_NON_BLOCKING, side);
  capture_beside(CU_STREAM_DEFAULT, side);
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(what_a_captured_stream_freed_is_nobody_elses_until_it_is_complete)
{
  weir_stream *one, *two;
  CUstream native;
  CUgraph graph;
  require_cuda(_i);
  ok(cuCtxSetCurrent(primary(0)));
  ok(cuStreamCreate(&native, CU_STREAM_NON_BLOCKING));
  weir_ok(weir_stream_from_native(&one, cuda0, native));
  weir_ok(weir_stream_create(&two, cuda0));
  void *a = allocate_for_stream(32 << 20, cuda0, one);
  ok(cuStreamBeginCapture(native, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  weir_ok(weir_free(a));
  void *b = allocate_for_stream(32 << 20, cuda0, two);
  ck_assert_ptr_ne(a, b);
  ok(cuStreamEndCapture(native, &graph));
  ok(cuGraphDestroy(graph));
  void *c = allocate_for_stream(32 << 20, cuda0,
                                two); /* marks; the device is idle, so the next finds it complete */
  ok(cuCtxSynchronize());
  void *d = allocate_for_stream(32 << 20, cuda0, two);
  ck_assert(c == a || d == a);
  weir_ok(weir_free(b));
  weir_ok(weir_free(c));
  weir_ok(weir_free(d));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

/* ---- what live memory goes through ----------------------------------------------------------- */

static size_t device_free(void)
{
  size_t free_bytes, total;
  ok(cuMemGetInfo(&free_bytes, &total));
  return free_bytes;
}

static unsigned word_at(void *p, size_t offset)
{
  unsigned word = 0;
  ok(cuMemcpyDtoH(&word, device_pointer(p) + offset, 4));
  return word;
}

START_TEST(live_memory_is_paused_and_comes_back_with_its_contents)
{
  enum { BYTES = 40 << 20 };
  uint64_t lost = 1;
  require_cuda(_i);
  ok(cuCtxSetCurrent(primary(0)));
  void *p = allocate_for_stream(BYTES, cuda0, NULL);
  fill_and_check_block(p, BYTES, 0xabcd1234u);
  size_t before = device_free();
  weir_status st = weir_memory_pause(cuda0, NULL, true);
  if (_i) {
    ck_assert_int_eq(st, WEIR_ENOTSUP);
  } else {
    weir_ok(st);
    if (rig_simulated()) ck_assert_uint_eq(device_free() - before, BYTES);
    weir_ok(weir_memory_resume(cuda0, NULL, &lost));
    ck_assert_uint_eq(lost, 0);
    for (size_t i = 0; i < BYTES; i += 1 << 20)
      ck_assert_uint_eq(word_at(p, i), 0xabcd1234u);
  }
  weir_ok(weir_free(p));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

/* Allocates, frees and fills while the stream is really captured, then replays after the free. */
START_TEST(a_graph_keeps_what_it_was_captured_with)
{
  enum { BYTES = 8 << 20 };
  require_cuda(_i);
  ok(cuCtxSetCurrent(primary(0)));
  CUstream s;
  CUgraph graph;
  CUgraphExec exec;
  weir_stream *stream;
  weir_graph_pool *pool;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  weir_ok(weir_stream_from_native(&stream, cuda0, s));
  weir_ok(weir_graph_pool_create(&pool, cuda0));
  weir_ok(weir_free(allocate_for_stream(BYTES, cuda0, stream)));
  weir_ok(weir_graph_pool_begin(pool, stream));
  ok(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  void *a = allocate_for_stream(BYTES, cuda0, stream);
  ok(cuMemsetD32Async(device_pointer(a), 7, BYTES / 4, s));
  weir_ok(weir_free(a));
  void *other =
      allocate_for_stream(64 << 20, cuda0, NULL); /* asks about the other streams meanwhile */
  ok(cuStreamEndCapture(s, &graph));
  weir_ok(weir_graph_pool_end(pool, stream));
  ok(cuGraphInstantiate(&exec, graph, 0));
  void *p = allocate_for_stream(BYTES, cuda0, stream);
  ck_assert_ptr_ne(p, a);
  fill_and_check_block(p, BYTES, 9);
  ok(cuGraphLaunch(exec, s));
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(word_at(p, 0), 9);
  ck_assert_uint_eq(word_at(a, BYTES - 4), 7);
  ok(cuGraphExecDestroy(exec));
  ok(cuGraphDestroy(graph));
  weir_ok(weir_graph_pool_release(pool));
  weir_ok(weir_graph_pool_release(pool));
  weir_ok(weir_free(p));
  weir_ok(weir_free(other));
  weir_ok(weir_stream_release(stream));
  ok(cuStreamDestroy(s));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

static void say_of_devices(CUdevice_attribute attribute, int value)
{
  char text[32];
  (void)snprintf(text, sizeof text, "%d:%d", (int)attribute, value);
  ck_assert_int_eq(setenv("WEIR_SIM_ATTRIBUTES", text, 1), 0);
}

/* 0: memory that network cards may be given cannot be opened; 1: no memory can. */
START_TEST(what_a_driver_says_it_can_is_tried_before_it_is_relied_on)
{
  if (!rig_simulated()) return;
  if (!_i) say_of_devices(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1);
  require_cuda(0);
  rig_fail("cuMemSetAccess:1=999");
  uint64_t pages = rig_calls("cuMemCreate"), segments = rig_calls("cuMemAlloc_v2");
  void *p = allocate_for_stream(6 << 20, cuda0, NULL);
  ck_assert_uint_eq(rig_calls("cuMemCreate") - pages, _i ? 1 : 2 + 3);
  ck_assert_uint_eq(rig_calls("cuMemAlloc_v2") - segments, _i ? 1 : 0);
  ok(cuCtxSetCurrent(primary(0)));
  fill_and_check_block(p, 6 << 20, 5);
  weir_ok(weir_free(p));
  weir_ok(weir_memory_detach(cuda0));
  size_t now_free, total;
  ok(cuMemGetInfo(&now_free, &total));
  ck_assert_uint_eq(now_free, total);
}
END_TEST

START_TEST(where_memory_cannot_be_registered_the_driver_makes_it)
{
  if (!rig_simulated() || _i) return;
  say_of_devices(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 0);
  require_cuda(0);
  void *p;
  bool pinned = false;
  weir_ok(weir_pinned_malloc_flags(&p, 1 << 20, cuda0, 0));
  memset(p, 1, 1 << 20);
  weir_ok(weir_is_pinned(&pinned, p));
  ck_assert(pinned);
  ck_assert_uint_eq(rig_calls("cuMemHostRegister_v2"), 0);
  ck_assert_uint_ge(rig_calls("cuMemHostAlloc"), 1);
  weir_ok(weir_pinned_free(p));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

int main(void)
{
  static const TTest *tests[22];
  int n = 0;
  tests[n++] = memory_can_be_used_from_its_first_byte_to_its_last;
  tests[n++] = what_is_freed_goes_back_to_the_device;
  tests[n++] = the_context_lives_as_long_as_something_needs_it;
  tests[n++] = a_thread_keeps_its_context_and_its_capture_mode;
  tests[n++] = setting_the_device_sets_the_runtimes_too;
  tests[n++] = a_guard_brings_back_what_the_program_had_made_current;
  tests[n++] = the_default_stream_has_one_name_and_per_thread_streams_are_refused;
  tests[n++] = streams_of_other_contexts_are_refused;
  tests[n++] = two_devices_are_two_pools;
  tests[n++] = out_of_memory_is_told_with_the_figures_and_the_rest_still_serves;
  tests[n++] = a_sticky_error_is_a_status_with_cudas_own_words;
  tests[n++] = host_memory_is_locked_and_let_go;
  tests[n++] = pinned_memory_is_locked_for_the_device;
  tests[n++] = copies_of_our_own_pass_by_what_is_held;
  tests[n++] = another_streams_block_waits_for_its_work;
  tests[n++] = a_capture_beside_the_allocator_ends_well;
  tests[n++] = what_a_captured_stream_freed_is_nobody_elses_until_it_is_complete;
  tests[n++] = live_memory_is_paused_and_comes_back_with_its_contents;
  tests[n++] = what_a_driver_says_it_can_is_tried_before_it_is_relied_on;
  tests[n++] = where_memory_cannot_be_registered_the_driver_makes_it;
  tests[n] = a_graph_keeps_what_it_was_captured_with;
  return rig_run("cuda/backend", tests, 2);
}
