/* test_capture.c: graphs of programs: captured copies and fills replayed, their pool, what cannot
 * be captured. Each test runs with VMM and with segments (_i). */
#include "tests/cuda/rig.h"

#include <pthread.h>
#include "core/stream/async_error.h"

enum { WORDS = 1 << 20, BYTES = WORDS * 4 };

static const weir_device cuda0 = WEIR_CUDA_INIT(0), cuda1 = WEIR_CUDA_INIT(1);
static const weir_backend *b0;
static weir_stream *plain, *side, *other;

#define refused(call, why, text)                                                                   \
  do {                                                                                             \
    ck_assert_int_eq((call), (why));                                                               \
    ck_assert_str_eq(weir_error_message(), (text));                                                \
  } while (0)

static void open_capture_streams(int way)
{
  CUdevice d;
  CUcontext c;
  if (way) ck_assert_int_eq(setenv("WEIR_ALLOC_CONF", "expandable_segments:False", 1), 0);
  weir_ok(device_open(0, &b0));
  weir_ok(weir_default_stream(&plain, cuda0));
  weir_ok(weir_stream_new(&side, cuda0, 0));
  weir_ok(weir_stream_new(&other, cuda0, 0));
  ok(cuDeviceGet(&d, 0));
  ok(cuDevicePrimaryCtxRetain(&c, d));
  ok(cuCtxSetCurrent(c));
}

static CUdeviceptr device_pointer(const void *p)
{
  return (CUdeviceptr)(uintptr_t)p;
}

static CUstream native_of(weir_stream *s)
{
  void *out;
  weir_ok(weir_stream_native(&out, s));
  return out;
}

static void *allocate_on_stream(weir_stream *s, size_t bytes)
{
  void *out;
  weir_ok(weir_malloc(&out, bytes, cuda0, s));
  return out;
}

static void fill_on_stream(weir_stream *s, void *p, unsigned value)
{
  ok(cuMemsetD32Async(device_pointer(p), value, WORDS, native_of(s)));
}

static void copy_on_stream(weir_stream *s, void *to, const void *from)
{
  weir_ok(b0->copy(b0->self, native_of(s), WEIR_COPY_WITHIN, to, from, BYTES));
}

static unsigned read_last_word(const void *p)
{
  unsigned out = 0;
  ok(cuMemcpyDtoH(&out, device_pointer(p) + BYTES - 4, 4));
  return out;
}

static weir_graph *graph_new(void)
{
  weir_graph *g;
  weir_ok(weir_graph_new(&g));
  return g;
}

static uint64_t graph_pool_uses(weir_graph_pool *pool)
{
  weir_graph_pool_stats s;
  weir_ok(weir_graph_pool_get_stats(&s, pool));
  return s.uses;
}

/* to = from, by way of memory that is allocated and freed in the capture. */
static void *capture_copy(weir_graph *g, weir_graph_pool *pool, void *from)
{
  void *to = NULL;
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(g, pool, WEIR_CAPTURE_GLOBAL));
    void *between = allocate_on_stream(NULL, BYTES);
    to = allocate_on_stream(NULL, BYTES);
    copy_on_stream(side, between, from);
    copy_on_stream(side, to, between);
    weir_ok(weir_free(between));
    weir_ok(weir_graph_capture_end(g));
  }
  return to;
}

START_TEST(a_graph_does_its_work_at_every_replay)
{
  open_capture_streams(_i);
  bool capturing = true;
  weir_graph *g = graph_new();
  void *in = allocate_on_stream(plain, BYTES);
  fill_on_stream(plain, in, 1);
  void *out = capture_copy(g, NULL, in);
  weir_ok(weir_stream_is_capturing(&capturing, side));
  ck_assert(!capturing);
  for (unsigned i = 2; i < 5; i++) {
    fill_on_stream(plain, in, i);
    weir_ok(weir_graph_replay(g)); /* in the default stream */
    weir_ok(weir_stream_synchronize(plain));
    ck_assert_uint_eq(read_last_word(out), i);
  }
  fill_on_stream(other, in, 9);
  WEIR_WITH_STREAM(other) weir_ok(weir_graph_replay(g));
  weir_ok(weir_stream_synchronize(other));
  ck_assert_uint_eq(read_last_word(out), 9);
  weir_graph_release(g);
  weir_ok(weir_free(out));
  weir_ok(weir_free(in));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(only_side_streams_are_captured_and_a_graph_once)
{
  open_capture_streams(_i);
  weir_graph *g = graph_new();
  weir_graph_pool *pool;
  refused(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL), WEIR_EINVAL,
          "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
          "to replay them on the default stream.)");
  refused(weir_graph_replay(g), WEIR_EINVAL,
          "Called CUDAGraph::replay without a preceding successful capture.");
  refused(weir_graph_memory(&pool, g), WEIR_EINVAL,
          "Called CUDAGraph::pool() without a preceding successful capture.");
  refused(weir_graph_capture_end(g), WEIR_EINVAL, "the graph is not being captured: begin first");
  weir_ok(weir_set_current_stream(side));
  weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
  refused(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL), WEIR_EINVAL,
          "the graph is being captured already");
  WEIR_WITH_STREAM(other)
  {
    refused(weir_graph_capture_end(g), WEIR_EINVAL,
            "Capture must end on the same stream it began on.");
  }
  weir_ok(weir_graph_capture_end(g));
  refused(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL), WEIR_EINVAL,
          "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a "
          "new instance, or reset it.");
  weir_ok(weir_graph_reset(g));
  weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_RELAXED));
  weir_ok(weir_graph_reset(g)); /* in the middle */
  bool capturing;
  weir_ok(weir_stream_is_capturing(&capturing, NULL));
  ck_assert(!capturing);
  weir_graph_release(g);
  weir_graph_release(NULL);
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(what_cannot_be_captured_is_refused_and_the_capture_goes_on)
{
  open_capture_streams(_i);
  bool out;
  weir_event *e;
  weir_graph *g = graph_new();
  void *p = allocate_on_stream(side, BYTES);
  char *plain_memory = calloc(1, BYTES);
  weir_ok(weir_event_new(&e, &(weir_event_options){.enable_timing = true}));
  weir_ok(weir_set_current_stream(side));
  weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
  weir_ok(weir_stream_is_capturing(&out, NULL));
  ck_assert(out);
  fill_on_stream(side, p, 3);
  refused(weir_stream_synchronize(NULL), WEIR_EINVAL,
          "stream_synchronize: operation not permitted when stream is capturing");
  refused(weir_stream_query(&out, NULL), WEIR_EINVAL,
          "stream_query: operation not permitted when stream is capturing");
  refused(weir_synchronize(cuda0), WEIR_EINVAL,
          "synchronize: operation not permitted when stream is capturing");
  refused(async_sync(side, "item"), WEIR_EINVAL,
          "item: operation not permitted when stream is capturing");
  ck_assert_int_eq(b0->copy(b0->self, native_of(side), WEIR_COPY_TO_HOST, plain_memory, p, BYTES),
                   WEIR_EINVAL);
  weir_ok(weir_event_record(e, NULL));
  refused(weir_event_query(&out, e), WEIR_EINVAL,
          "operation not permitted on an event last recorded in a capturing stream");
  refused(weir_event_synchronize(e), WEIR_EINVAL,
          "operation not permitted on an event last recorded in a capturing stream");
  weir_set_launch_blocking(true); /* nothing is waited for here */
  weir_ok(op_done(side, "fill_", WEIR_OK));
  weir_set_launch_blocking(false);
  weir_ok(weir_graph_capture_end(g));
  weir_ok(weir_graph_replay(g));
  weir_ok(weir_stream_synchronize(NULL));
  ck_assert_uint_eq(read_last_word(p), 3);
  weir_event_release(e);
  weir_graph_release(g);
  free(plain_memory);
}
END_TEST

START_TEST(a_capture_that_the_program_breaks_leaves_the_graph_as_new)
{
  open_capture_streams(_i);
  if (!rig_simulated()) return;
  weir_graph *g = graph_new();
  void *p = allocate_on_stream(side, BYTES);
  weir_ok(weir_set_current_stream(side));
  weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
  fill_on_stream(side, p, 1);
  ck_assert_int_ne(cuStreamSynchronize(native_of(side)), CUDA_SUCCESS);
  ck_assert_int_eq(weir_graph_capture_end(g), WEIR_ECUDA);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"));
  weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL)); /* and again */
  fill_on_stream(side, p, 2);
  weir_ok(weir_graph_capture_end(g));
  weir_ok(weir_graph_replay(g));
  weir_ok(weir_stream_synchronize(NULL));
  ck_assert_uint_eq(read_last_word(p), 2);
  weir_graph_release(g);
}
END_TEST

/* Another thread may not end a capture that is not relaxed. */
static void *end_elsewhere(void *graph)
{
  weir_ok(weir_set_current_stream(side));
  ck_assert_int_eq(weir_graph_capture_end(graph), WEIR_ECUDA);
  return NULL;
}

static void *end_here(void *graph)
{
  weir_ok(weir_set_current_stream(side));
  weir_ok(weir_graph_capture_end(graph));
  return NULL;
}

START_TEST(a_capture_ends_in_its_thread_unless_it_is_relaxed)
{
  pthread_t thread;
  open_capture_streams(_i);
  weir_graph *g = graph_new();
  weir_ok(weir_set_current_stream(side));
  weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_THREAD_LOCAL));
  ck_assert_int_eq(pthread_create(&thread, NULL, end_elsewhere, g), 0);
  pthread_join(thread, NULL);
  weir_ok(weir_graph_capture_end(g)); /* it went on */
  weir_ok(weir_graph_reset(g));
  weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_RELAXED));
  ck_assert_int_eq(pthread_create(&thread, NULL, end_here, g), 0);
  pthread_join(thread, NULL);
  weir_ok(weir_graph_replay(g));
  weir_graph_release(g);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

START_TEST(the_pool_lives_as_long_as_the_graph_and_its_blocks)
{
  open_capture_streams(_i);
  weir_graph_pool *pool;
  weir_graph *g = graph_new();
  void *in = allocate_on_stream(plain, BYTES);
  void *out = capture_copy(g, NULL, in);
  weir_ok(weir_graph_memory(&pool, g));
  ck_assert_uint_eq(graph_pool_uses(pool), 2);
  /* what was freed in the capture is given to nobody else, though all work is done */
  weir_ok(weir_synchronize(cuda0));
  void *many[8];
  for (int i = 0; i < 8; i++) {
    many[i] = allocate_on_stream(i % 2 ? side : plain, BYTES);
    fill_on_stream(i % 2 ? side : plain, many[i], 77);
  }
  weir_ok(weir_synchronize(cuda0));
  fill_on_stream(plain, in, 5);
  weir_ok(weir_graph_replay(g));
  weir_ok(weir_synchronize(cuda0));
  ck_assert_uint_eq(read_last_word(out), 5);
  for (int i = 0; i < 8; i++) {
    ck_assert_uint_eq(read_last_word(many[i]), 77);
    weir_ok(weir_free(many[i]));
  }
  weir_graph_release(g);
  ck_assert_uint_eq(read_last_word(out), 5); /* its block is still the program's */
  weir_ok(weir_free(out));
  weir_ok(weir_free(in));
  weir_ok(weir_memory_detach(cuda0)); /* nothing is left */
}
END_TEST

START_TEST(two_graphs_share_a_pool)
{
  open_capture_streams(_i);
  weir_graph_pool *pool, *same;
  weir_graph *one = graph_new(), *two = graph_new();
  void *in = allocate_on_stream(plain, BYTES);
  void *first = capture_copy(one, NULL, in);
  weir_ok(weir_graph_memory(&pool, one));
  void *second = capture_copy(two, pool, first);
  weir_ok(weir_graph_memory(&same, two));
  ck_assert_ptr_eq(pool, same);
  ck_assert_uint_eq(graph_pool_uses(pool), 3);
  fill_on_stream(plain, in, 6);
  weir_ok(weir_graph_replay(one));
  weir_ok(weir_graph_replay(two));
  weir_ok(weir_stream_synchronize(plain));
  ck_assert_uint_eq(read_last_word(second), 6);
  weir_graph_release(one); /* the pool is still the second's */
  ck_assert_uint_eq(graph_pool_uses(pool), 1);
  fill_on_stream(plain, first, 8);
  weir_ok(weir_graph_replay(two));
  weir_ok(weir_stream_synchronize(plain));
  ck_assert_uint_eq(read_last_word(second), 8);
  weir_graph_release(two);
  weir_ok(weir_free(first));
  weir_ok(weir_free(second));
  weir_ok(weir_free(in));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

/* A stream that waits for the capturing one is captured too, and so is what it allocates; by an
 * event or at once. */
START_TEST(streams_join_a_capture_by_waiting_and_allocate_in_its_pool)
{
  open_capture_streams(_i);
  weir_event *e;
  weir_graph_pool *pool;
  weir_graph_pool_stats stats;
  bool capturing;
  weir_ok(weir_event_new(&e, NULL));
  for (int by_event = 0; by_event < 2; by_event++) {
    weir_graph *g = graph_new();
    void *in = allocate_on_stream(plain, BYTES), *out = NULL;
    WEIR_WITH_STREAM(side)
    {
      weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
      if (by_event) {
        weir_ok(weir_event_record(e, side));
        weir_ok(weir_event_wait(e, other));
      } else {
        weir_ok(weir_stream_wait_stream(other, side));
      }
      weir_ok(weir_stream_is_capturing(&capturing, other));
      ck_assert(capturing);
      out = allocate_on_stream(other, BYTES);
      copy_on_stream(other, out, in);
      weir_ok(weir_stream_wait_stream(side, other));
      weir_ok(weir_graph_capture_end(g));
    }
    weir_ok(weir_graph_memory(&pool, g));
    weir_ok(weir_graph_pool_get_stats(&stats, pool));
    ck_assert_uint_eq(stats.allocated_bytes, BYTES);
    ck_assert_uint_eq(stats.uses, 2);
    void *after = allocate_on_stream(other, BYTES); /* it allocates as before */
    weir_ok(weir_graph_pool_get_stats(&stats, pool));
    ck_assert_uint_eq(stats.allocated_bytes, BYTES);
    fill_on_stream(plain, in, 4);
    weir_ok(weir_graph_replay(g));
    weir_ok(weir_stream_synchronize(plain));
    ck_assert_uint_eq(read_last_word(out), 4);
    weir_graph_release(g);
    weir_ok(weir_free(out));
    weir_ok(weir_free(in));
    weir_ok(weir_free(after));
  }
  weir_event_release(e);
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

/* A wait in a capture orders the graph's work, not what is live: blocks freed before it stay where
 * they are until their work is done. */
START_TEST(a_wait_that_was_captured_tells_the_allocator_nothing)
{
  open_capture_streams(_i);
  lane l = {.stream = NULL};
  if (!rig_simulated()) return;
  weir_graph *g = graph_new();
  void *a = allocate_on_stream(side, 32 << 20);
  l.stream = native_of(side);
  gate_add(&l);
  fill_on_stream(side, a, 1);
  weir_ok(weir_free(a));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL));
    weir_ok(weir_stream_wait_stream(other, side));
    weir_ok(weir_stream_wait_stream(side, other));
    weir_ok(weir_graph_capture_end(g));
  }
  void *b = allocate_on_stream(other, 32 << 20);
  ck_assert_ptr_ne(a, b);
  gate_open(&l);
  weir_graph_release(g);
  weir_ok(weir_free(b));
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(every_failure_of_the_driver_leaves_nothing_behind)
{
  static const char *const calls[] = {"cuStreamBeginCapture_v2:1=999", "cuStreamEndCapture:1=999",
                                      "cuGraphInstantiateWithFlags:1=2"};
  open_capture_streams(_i);
  if (!rig_simulated()) return;
  weir_ok(weir_set_current_stream(side));
  for (int i = 0; i < 3; i++) {
    weir_graph *g = graph_new();
    rig_fail(calls[i]);
    weir_status st = weir_graph_capture_begin(g, NULL, WEIR_CAPTURE_GLOBAL);
    if (!st) st = weir_graph_capture_end(g);
    ck_assert_int_ne(st, WEIR_OK);
    rig_fail(NULL);
    weir_graph_release(g);
    bool capturing;
    weir_ok(weir_stream_is_capturing(&capturing, NULL));
    ck_assert(!capturing);
  }
  weir_ok(weir_memory_detach(cuda0));
}
END_TEST

START_TEST(a_pool_of_another_device_is_refused)
{
  open_capture_streams(_i);
  int n;
  weir_ok(weir_cuda_device_count(&n));
  if (n < 2) return;
  weir_graph_pool *pool;
  weir_graph *g = graph_new();
  weir_ok(weir_graph_pool_create(&pool, cuda1));
  weir_ok(weir_set_current_stream(side));
  refused(weir_graph_capture_begin(g, pool, WEIR_CAPTURE_GLOBAL), WEIR_EINVAL,
          "the stream is not of the private pool's device");
  weir_ok(weir_graph_pool_release(pool));
  weir_graph_release(g);
}
END_TEST

int main(void)
{
  static const TTest *tests[16];
  int n = 0;
  tests[n++] = a_graph_does_its_work_at_every_replay;
  tests[n++] = only_side_streams_are_captured_and_a_graph_once;
  tests[n++] = what_cannot_be_captured_is_refused_and_the_capture_goes_on;
  tests[n++] = a_capture_that_the_program_breaks_leaves_the_graph_as_new;
  tests[n++] = a_capture_ends_in_its_thread_unless_it_is_relaxed;
  tests[n++] = the_pool_lives_as_long_as_the_graph_and_its_blocks;
  tests[n++] = two_graphs_share_a_pool;
  tests[n++] = streams_join_a_capture_by_waiting_and_allocate_in_its_pool;
  tests[n++] = a_wait_that_was_captured_tells_the_allocator_nothing;
  tests[n++] = every_failure_of_the_driver_leaves_nothing_behind;
  tests[n] = a_pool_of_another_device_is_refused;
  return rig_run("cuda/capture", tests, 2);
}
