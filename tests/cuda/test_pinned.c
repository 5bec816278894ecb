/* test_pinned.c: pinned host memory through the driver: a block is copied from and to as a whole,
 * what the driver says of it, streams that hold it, and a parent whose pages stay its own when it
 * forks. Each test runs with memory that is registered and with memory the driver makes (_i). */
#include <sys/wait.h>
#include <unistd.h>
#include "tests/cuda/rig.h"

static const weir_device cuda0 = WEIR_CUDA_INIT(0);
static const char *const ways[] = {"", "pinned_use_cuda_host_register:off"};

static rig r;

static void attach_pinned_rig(int way)
{
  rig_open(&r);
  weir_ok(weir_memory_attach(r.real, ways[way]));
  rig_lanes(&r, 3);
}

static void detach_pinned_rig(void)
{
  for (int i = 1; i < 3; i++)
    gate_open_all(&r.lanes[i]);
  weir_ok(weir_memory_detach(cuda0));
}

static unsigned char *allocate_pinned(size_t bytes)
{
  void *out;
  weir_ok(weir_pinned_malloc(&out, bytes));
  return out;
}

static void free_pinned(void *ptr)
{
  weir_ok(weir_pinned_free(ptr));
}

static void record_lane_use(void *ptr, int lane)
{
  weir_stream *s;
  weir_ok(weir_stream_from_native(&s, cuda0, r.lanes[lane].stream));
  weir_ok(weir_record_stream(ptr, s));
}

static bool pinned(const void *ptr)
{
  bool is;
  weir_ok(weir_is_pinned(&is, ptr));
  return is;
}

/* To the device and back, in one copy each. */
static void round_trip(unsigned char *from, unsigned char *to, size_t bytes)
{
  CUdeviceptr d;
  ok(cuMemAlloc(&d, bytes));
  ok(cuMemcpyHtoDAsync(d, from, bytes, r.lanes[1].stream));
  ok(cuMemcpyDtoHAsync(to, d, bytes, r.lanes[1].stream));
  ok(cuStreamSynchronize(r.lanes[1].stream));
  ok(cuMemFree(d));
  ck_assert_int_eq(memcmp(from, to, bytes), 0);
}

START_TEST(a_block_is_copied_as_a_whole)
{
  static const size_t sizes[] = {1,       1000,    4096,     65537,    (1 << 20) + 1,
                                 3 << 20, 3 << 20, 17 << 20, 33 << 20, (65 << 20) + 5};
  enum { N = sizeof sizes / sizeof *sizes };
  unsigned char *from[N], *to[N];
  attach_pinned_rig(_i);
  for (int i = 0; i < N; i++) {
    from[i] = allocate_pinned(sizes[i]);
    to[i] = allocate_pinned(sizes[i]);
    for (size_t k = 0; k < sizes[i]; k += 509)
      from[i][k] = (unsigned char)(k / 509 + (size_t)i);
    from[i][sizes[i] - 1] = 0x5a;
    to[i][sizes[i] - 1] = 0;
  }
  for (int i = 0; i < N; i++)
    round_trip(from[i], to[i], sizes[i]);
  for (int i = 0; i < N; i++) {
    free_pinned(from[i]);
    free_pinned(to[i]);
  }
  detach_pinned_rig();
}
END_TEST

START_TEST(the_driver_says_that_it_is_pinned)
{
  attach_pinned_rig(_i);
  unsigned char *p = allocate_pinned(5 << 20);
  unsigned type = 0;
  ok(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)p));
  ck_assert_uint_eq(type, CU_MEMORYTYPE_HOST);
  ck_assert(pinned(p) && pinned(p + (5 << 20) - 1) && !pinned(&r));
  void *theirs;
  ok(cuMemHostAlloc(&theirs, 4096, 0));
  ck_assert(pinned(theirs));
  ok(cuMemFreeHost(theirs));
  free_pinned(p);
  weir_ok(weir_pinned_empty_cache());
  detach_pinned_rig();
}
END_TEST

START_TEST(write_combined_memory_reaches_the_device)
{
  attach_pinned_rig(_i);
  void *out;
  weir_ok(weir_pinned_malloc_flags(&out, 1 << 20, cuda0, WEIR_PINNED_WRITE_COMBINED));
  memset(out, 0x33, 1 << 20);
  unsigned flags = 0;
  ok(cuMemHostGetFlags(&flags, out));
  ck_assert(flags & CU_MEMHOSTALLOC_WRITECOMBINED);
  unsigned char *back = allocate_pinned(1 << 20);
  round_trip(out, back, 1 << 20);
  free_pinned(back);
  free_pinned(out);
  detach_pinned_rig();
}
END_TEST

START_TEST(a_held_stream_keeps_what_it_copies)
{
  enum { BYTES = 3 << 20 };
  attach_pinned_rig(_i);
  CUdeviceptr d;
  ok(cuMemAlloc(&d, BYTES));
  unsigned char *p = allocate_pinned(BYTES), *other[20];
  memset(p, 1, BYTES);
  gate_add(&r.lanes[1]);
  ok(cuMemcpyHtoDAsync(d, p, BYTES, r.lanes[1].stream));
  record_lane_use(p, 1);
  gate_add(&r.lanes[2]);
  record_lane_use(p, 2);
  free_pinned(p);
  for (int i = 0; i < 20; i++) {
    if (i == 10) gate_open(&r.lanes[2]);
    other[i] = allocate_pinned(BYTES);
    ck_assert_ptr_ne(other[i], p);
    memset(other[i], 2, BYTES);
  }
  gate_open(&r.lanes[1]);
  ok(cuStreamSynchronize(r.lanes[1].stream));
  ok(cuStreamSynchronize(r.lanes[2].stream));
  unsigned char *seen = allocate_pinned(BYTES);
  ok(cuMemcpyDtoH(seen, d, BYTES));
  ck_assert(seen[0] == 1 && memcmp(seen, seen + 1, BYTES - 1) == 0);
  for (int i = 0; i < 20; i++)
    free_pinned(other[i]);
  free_pinned(seen);
  ok(cuMemFree(d));
  detach_pinned_rig();
}
END_TEST

/* What the parent writes after a fork is what the device reads, while the child lives. */
START_TEST(a_forks_parent_keeps_the_pages_the_device_reads)
{
  enum { BYTES = 3 << 20 };
  int hold[2];
  char c;
  attach_pinned_rig(_i);
  unsigned char *p = allocate_pinned(BYTES), *back = allocate_pinned(BYTES);
  memset(p, 1, BYTES);
  ck_assert_int_eq(pipe(hold), 0);
  pid_t child = fork();
  if (!child) {
    void *out;
    (void)close(hold[1]);
    bool refused = weir_pinned_malloc(&out, 1000) && !weir_pinned_free(p);
    _exit(read(hold[0], &c, 1) == 0 && refused ? 0 : 1);
  }
  memset(p, 2, BYTES);
  memset(back, 0, BYTES);
  round_trip(p, back, BYTES);
  (void)close(hold[0]);
  (void)close(hold[1]);
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "status 0x%x", (unsigned)status);
  free_pinned(p);
  free_pinned(back);
  detach_pinned_rig();
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {a_block_is_copied_as_a_whole,
                                the_driver_says_that_it_is_pinned,
                                write_combined_memory_reaches_the_device,
                                a_held_stream_keeps_what_it_copies,
                                a_forks_parent_keeps_the_pages_the_device_reads,
                                NULL};
  return rig_run("CUDA: pinned memory", tests, 2);
}
