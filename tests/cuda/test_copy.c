/* test_copy.c: the backend's copies for tensors: what has happened when they return, in which order
 * they are done, and between devices. Each test runs with VMM and with segments (_i). */
#include "tests/cuda/rig.h"

enum { BYTES = 3 << 20 };

static const weir_device cuda0 = WEIR_CUDA_INIT(0);
static const weir_backend *b0;

static void open_copy_devices(int way, const char *devices)
{
  if (way) ck_assert_int_eq(setenv("WEIR_ALLOC_CONF", "expandable_segments:False", 1), 0);
  if (rig_simulated()) ck_assert_int_eq(setenv("WEIR_SIM_DEVICES", devices, 1), 0);
  weir_ok(device_open(0, &b0));
}

static weir_device cuda_device(int index)
{
  return WEIR_CUDA_AT(index);
}

static void *allocate_on_device(weir_device device, size_t bytes)
{
  void *out;
  weir_ok(weir_malloc(&out, bytes, device, NULL));
  return out;
}

static unsigned char *pinned(int fill)
{
  void *out;
  weir_ok(weir_pinned_malloc(&out, BYTES));
  return memset(out, fill, BYTES);
}

static lane lane_make(void)
{
  lane l = {.stream = NULL};
  void *s;
  weir_ok(b0->stream_create(b0->self, &s));
  l.stream = s;
  if (!rig_simulated()) {
    CUcontext popped, context;
    CUdevice device;
    ok(cuDeviceGet(&device, 0));
    ok(cuDevicePrimaryCtxRetain(&context, device));
    ok(cuCtxPushCurrent(context));
    ok(cuMemHostAlloc((void **)&l.word, sizeof *l.word, CU_MEMHOSTALLOC_DEVICEMAP));
    *l.word = 0;
    ok(cuCtxPopCurrent(&popped));
  }
  return l;
}

static bool complete(const lane *l)
{
  bool done;
  weir_ok(b0->stream_query(b0->self, l->stream, &done));
  return done;
}

static bool all_are(const unsigned char *p, int value)
{
  return p[0] == value && memcmp(p, p + 1, BYTES - 1) == 0;
}

START_TEST(copies_of_locked_memory_return_at_once_and_keep_the_streams_order)
{
  open_copy_devices(_i, "2");
  lane l = lane_make();
  unsigned char *from = pinned(1), *to = pinned(2);
  void *a = allocate_on_device(cuda0, BYTES), *b = allocate_on_device(cuda0, BYTES);
  gate_add(&l);
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_DEVICE, a, from, BYTES));
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_WITHIN, b, a, BYTES));
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_HOST, to, b, BYTES));
  ck_assert(!complete(&l));
  ck_assert(all_are(to, 2));
  memset(from, 3, BYTES); /* not read yet */
  gate_open(&l);
  weir_ok(b0->stream_sync(b0->self, l.stream));
  ck_assert(complete(&l));
  ck_assert(all_are(to, 3));
}
END_TEST

/* Whichever device's pool it is of. */
START_TEST(memory_locked_for_one_device_is_locked_for_all)
{
  open_copy_devices(_i, "2");
  int n;
  const weir_backend *b1;
  weir_ok(weir_cuda_device_count(&n));
  if (n < 2 || !rig_simulated()) return;
  weir_ok(device_open(1, &b1));
  lane l = lane_make();
  unsigned char *to = NULL;
  weir_ok(weir_pinned_malloc_flags((void **)&to, BYTES, cuda_device(1), 0));
  memset(to, 2, BYTES);
  void *a = allocate_on_device(cuda0, BYTES);
  unsigned flags;
  CUcontext context;
  ok(cuDevicePrimaryCtxRetain(&context, 0));
  ok(cuCtxSetCurrent(context));
  ok(cuMemHostGetFlags(&flags, to));
  ck_assert(flags & CU_MEMHOSTREGISTER_PORTABLE);
  gate_add(&l);
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_DEVICE, a, pinned(1), BYTES));
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_HOST, to, a, BYTES));
  ck_assert(all_are(to, 2));
  gate_open(&l);
  weir_ok(b0->stream_sync(b0->self, l.stream));
  ck_assert(all_are(to, 1));
}
END_TEST

START_TEST(pageable_memory_has_been_read_or_written_when_a_copy_returns)
{
  open_copy_devices(_i, "2");
  lane l = lane_make();
  unsigned char *host = malloc(BYTES);
  void *a = allocate_on_device(cuda0, BYTES);
  for (int i = 0; i < 20; i++) {
    memset(host, i, BYTES);
    weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_DEVICE, a, host, BYTES));
    memset(host, 0xff, BYTES);
    weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_HOST, host, a, BYTES));
    ck_assert(all_are(host, i));
    ck_assert(complete(&l));
  }
  free(host);
}
END_TEST

/* Whatever memory it is: nobody asks. */
START_TEST(a_copy_that_is_waited_for_costs_one_wait)
{
  open_copy_devices(_i, "2");
  lane l = lane_make();
  unsigned char *host[] = {malloc(BYTES), pinned(0)};
  void *a = allocate_on_device(cuda0, BYTES);
  for (int i = 0; i < 20; i++) {
    unsigned char *h = host[i % 2];
    memset(h, i, BYTES);
    uint64_t waits = rig_simulated() ? rig_calls("cuStreamSynchronize") : 0,
             asked = rig_simulated() ? rig_calls("cuPointerGetAttribute") : 0;
    weir_ok(b0->copy_done(b0->self, l.stream, WEIR_COPY_TO_DEVICE, a, h, BYTES));
    memset(h, 0xff, BYTES);
    weir_ok(b0->copy_done(b0->self, l.stream, WEIR_COPY_TO_HOST, h, a, BYTES));
    ck_assert(all_are(h, i));
    ck_assert(complete(&l));
    if (!rig_simulated()) continue;
    ck_assert_uint_eq(rig_calls("cuStreamSynchronize") - waits, 2);
    ck_assert_uint_eq(rig_calls("cuPointerGetAttribute") - asked, 0);
  }
  weir_ok(b0->copy_done(b0->self, l.stream, WEIR_COPY_TO_HOST, NULL, a, 0));
  free(host[0]);
}
END_TEST

START_TEST(nothing_is_a_copy_of_no_bytes)
{
  open_copy_devices(_i, "2");
  void *a = allocate_on_device(cuda0, 8);
  weir_ok(b0->copy(b0->self, NULL, WEIR_COPY_TO_DEVICE, a, NULL, 0));
  weir_ok(b0->copy_peer(b0->self, NULL, a, b0, NULL, 0));
}
END_TEST

START_TEST(a_failed_copy_says_what_it_was)
{
  open_copy_devices(_i, "2");
  void *a = allocate_on_device(cuda0, BYTES);
  unsigned char *host = pinned(0);
  if (!rig_simulated()) return;
  rig_fail("cuMemcpyDtoHAsync_v2:1=1,cuStreamSynchronize:1=700");
  ck_assert_int_eq(b0->copy(b0->self, NULL, WEIR_COPY_TO_HOST, host, a, BYTES), WEIR_ECUDA);
  ck_assert_str_eq(weir_error_message(), "copying 3145728 bytes to the host from cuda:0: "
                                         "CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  ck_assert_int_eq(b0->stream_sync(b0->self, NULL), WEIR_ECUDA);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
}
END_TEST

START_TEST(pageable_memory_is_not_captured)
{
  open_copy_devices(_i, "2");
  CUgraph graph;
  size_t nodes = 0;
  lane l = lane_make();
  void *a = allocate_on_device(cuda0, BYTES);
  unsigned char *host = pinned(1), *plain = malloc(BYTES);
  ok(cuStreamBeginCapture(l.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_DEVICE, a, host, BYTES));
  ck_assert_int_eq(b0->copy(b0->self, l.stream, WEIR_COPY_TO_HOST, plain, a, BYTES), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(),
                   "a copy to the host from cuda:0 with pageable memory cannot be captured into a "
                   "graph, whose replays would use that memory again: pin it");
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_HOST, host, a, BYTES));
  ok(cuStreamEndCapture(l.stream, &graph));
  ok(cuGraphGetNodes(graph, NULL, &nodes));
  ck_assert_uint_eq(nodes, 2);
  ok(cuGraphDestroy(graph));
  free(plain);
}
END_TEST

/* ---- between devices ------------------------------------------------------------------------- */

static int open_all(const weir_backend **of, void **block)
{
  int n;
  weir_ok(weir_cuda_device_count(&n));
  if (n > 8) n = 8;
  for (int i = 0; i < n; i++) {
    weir_ok(device_open(i, &of[i]));
    block[i] = allocate_on_device(cuda_device(i), BYTES);
  }
  return n;
}

START_TEST(every_device_copies_to_every_other)
{
  const weir_backend *of[8];
  void *block[8];
  open_copy_devices(_i, "8");
  int n = open_all(of, block);
  if (rig_simulated()) ck_assert_int_eq(n, 8);
  unsigned char *host = pinned(0);
  for (int from = 0; from < n; from++)
    for (int to = 0; to < n; to++) {
      if (from == to) continue;
      memset(host, from * n + to, BYTES);
      weir_ok(of[from]->copy(of[from]->self, NULL, WEIR_COPY_TO_DEVICE, block[from], host, BYTES));
      weir_ok(of[from]->stream_sync(of[from]->self, NULL));
      weir_ok(of[to]->copy_peer(of[to]->self, NULL, block[to], of[from], block[from], BYTES));
      memset(host, 0xff, BYTES);
      weir_ok(of[to]->copy(of[to]->self, NULL, WEIR_COPY_TO_HOST, host, block[to], BYTES));
      weir_ok(of[to]->stream_sync(of[to]->self, NULL));
      ck_assert(all_are(host, from * n + to));
    }
  if (rig_simulated()) /* once a pair, both ways */
    ck_assert_uint_eq(rig_calls("cuCtxEnablePeerAccess"), 8 * 7);
}
END_TEST

static bool may_write(const void *block, int device)
{
  unsigned long long flags = 0;
  CUmemLocation where = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device};
  ok(cuMemGetAccess(&flags, &where, (CUdeviceptr)(uintptr_t)block));
  return flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

START_TEST(a_copy_lets_its_two_devices_reach_each_others_pages)
{
  const weir_backend *of[8];
  void *block[8];
  open_copy_devices(_i, "3");
  if (_i || open_all(of, block) < 3) return;
  bool can;
  weir_ok(weir_can_access_peer(&can, cuda_device(0), cuda_device(1)));
  if (!can) return;
  ck_assert(may_write(block[1], 1));
  ck_assert(!may_write(block[1], 0));
  weir_ok(b0->copy_peer(b0->self, NULL, block[0], of[1], block[1], BYTES));
  void *later = allocate_on_device(cuda_device(1), 64 << 20);
  ck_assert(may_write(block[1], 0));
  ck_assert(may_write(later, 0));
  ck_assert(may_write(block[0], 1));
  ck_assert(!may_write(block[0], 2));
  weir_ok(weir_free(later));
  weir_ok(weir_memory_empty_cache(cuda_device(1)));
  if (!rig_simulated()) return;
  rig_fail("cuMemSetAccess:1=801"); /* without the peer it is tried again */
  later = allocate_on_device(cuda_device(1), 64 << 20);
  ck_assert(may_write((char *)later + (32 << 20), 1));
  ck_assert(!may_write((char *)later + (32 << 20), 0));
}
END_TEST

/* Pages that a pause took away in one run are no pages to let a peer in to. */
START_TEST(a_peer_is_let_in_to_what_is_left_after_a_pause)
{
  const weir_backend *of[8];
  void *block[8];
  open_copy_devices(_i, "2");
  if (_i || open_all(of, block) < 2) return;
  bool can;
  weir_ok(weir_can_access_peer(&can, cuda_device(0), cuda_device(1)));
  if (!can) return;
  (void)allocate_on_device(cuda_device(1), 64 << 20);
  weir_ok(weir_memory_pause(cuda_device(1), NULL, false));
  void *fresh = allocate_on_device(cuda_device(1), BYTES);
  weir_ok(b0->copy_peer(b0->self, NULL, block[0], of[1], fresh, BYTES));
  ck_assert(may_write(fresh, 0));
  weir_ok(weir_memory_resume(cuda_device(1), NULL, NULL));
  ck_assert(may_write(block[1], 0));
}
END_TEST

START_TEST(a_copy_from_a_peer_is_in_the_order_of_its_stream)
{
  const weir_backend *of[8];
  void *block[8];
  open_copy_devices(_i, "2");
  if (open_all(of, block) < 2) return;
  lane l = lane_make();
  unsigned char *host = pinned(5);
  gate_add(&l);
  weir_ok(b0->copy_peer(b0->self, l.stream, block[0], of[1], block[1], BYTES));
  weir_ok(b0->copy(b0->self, l.stream, WEIR_COPY_TO_HOST, host, block[0], BYTES));
  unsigned char *late = pinned(6);
  weir_ok(of[1]->copy(of[1]->self, NULL, WEIR_COPY_TO_DEVICE, block[1], late, BYTES));
  weir_ok(of[1]->stream_sync(of[1]->self, NULL));
  ck_assert(!complete(&l));
  gate_open(&l);
  weir_ok(b0->stream_sync(b0->self, l.stream));
  ck_assert(all_are(host, 6));
}
END_TEST

START_TEST(without_peer_access_copies_are_staged)
{
  const weir_backend *of[8];
  void *block[8];
  open_copy_devices(_i, "2");
  if (!rig_simulated() || open_all(of, block) < 2) return;
  unsigned char *host = pinned(7);
  rig_fail("cuCtxEnablePeerAccess:*=217");
  weir_ok(of[1]->copy(of[1]->self, NULL, WEIR_COPY_TO_DEVICE, block[1], host, BYTES));
  weir_ok(of[1]->stream_sync(of[1]->self, NULL));
  for (int i = 0; i < 2; i++)
    weir_ok(b0->copy_peer(b0->self, NULL, block[0], of[1], block[1], BYTES));
  ck_assert_uint_eq(rig_calls("cuCtxEnablePeerAccess"), 2);
  memset(host, 0, BYTES);
  weir_ok(b0->copy(b0->self, NULL, WEIR_COPY_TO_HOST, host, block[0], BYTES));
  weir_ok(b0->stream_sync(b0->self, NULL));
  ck_assert(all_are(host, 7));
}
END_TEST

START_TEST(a_device_that_was_closed_is_asked_again)
{
  const weir_backend *of[8];
  void *block[8];
  open_copy_devices(_i, "2");
  if (!rig_simulated() || open_all(of, block) < 2) return;
  weir_ok(b0->copy_peer(b0->self, NULL, block[0], of[1], block[1], BYTES));
  weir_ok(b0->stream_sync(b0->self, NULL)); /* its memory goes */
  ck_assert_uint_eq(rig_calls("cuCtxEnablePeerAccess"), 2);
  weir_ok(device_close(1));
  weir_ok(weir_free(block[1]));
  weir_ok(weir_memory_detach(cuda_device(1)));
  weir_ok(device_open(1, &of[1]));
  block[1] = allocate_on_device(cuda_device(1), BYTES);
  weir_ok(b0->copy_peer(b0->self, NULL, block[0], of[1], block[1], BYTES));
  ck_assert_uint_eq(rig_calls("cuCtxEnablePeerAccess"), 4);
}
END_TEST

int main(void)
{
  static const TTest *tests[14];
  int n = 0;
  tests[n++] = copies_of_locked_memory_return_at_once_and_keep_the_streams_order;
  tests[n++] = memory_locked_for_one_device_is_locked_for_all;
  tests[n++] = pageable_memory_has_been_read_or_written_when_a_copy_returns;
  tests[n++] = a_copy_that_is_waited_for_costs_one_wait;
  tests[n++] = nothing_is_a_copy_of_no_bytes;
  tests[n++] = a_failed_copy_says_what_it_was;
  tests[n++] = pageable_memory_is_not_captured;
  tests[n++] = every_device_copies_to_every_other;
  tests[n++] = a_copy_lets_its_two_devices_reach_each_others_pages;
  tests[n++] = a_peer_is_let_in_to_what_is_left_after_a_pause;
  tests[n++] = a_copy_from_a_peer_is_in_the_order_of_its_stream;
  tests[n++] = without_peer_access_copies_are_staged;
  tests[n] = a_device_that_was_closed_is_asked_again;
  return rig_run("cuda/copy", tests, 2);
}
