/* test_async.c: what is enqueued and what is complete: non_blocking copies, page-locked memory, the
 * order of streams. Streams are held and let go, never waited for by time. */
#include <pthread.h>
#include <sched.h>
#include "tests/tensor/rig.h"

enum { N = 1024 };

static lane held;
static weir_stream *side; /* of cuda:0, held */

static weir_tensor *pinned(float value)
{
  weir_tensor *t;
  weir_options o = {.pin_memory = true};
  weir_ok(weir_full(&t, weir_shape(N), weir_float(value), &o));
  return t;
}

static void all_are(const weir_tensor *t, float value)
{
  float x[N];
  weir_ok(weir_tensor_read(x, sizeof x, WEIR_FLOAT32, t));
  for (int i = 0; i < N; i++)
    ck_assert_msg(x[i] == value, "element %d is %g, not %g", i, (double)x[i], (double)value);
}

static void hold_side_stream(void)
{
  devices(2);
  side = hold_stream(&held, cuda0);
}

static void let_go(void)
{
  gate_open_all(&held);
  weir_ok(weir_stream_synchronize(side));
}

START_TEST(to_a_device_from_page_locked_memory_is_only_enqueued)
{
  hold_side_stream();
  WEIR_TENSOR host = pinned(3);
  WEIR_TENSOR t = NULL;
  WEIR_WITH_STREAM(side) weir_ok(weir_cuda(&t, host, cuda0, true));
  ck_assert(!done(side));
  let_go();
  all_are(t, 3);
}
END_TEST

START_TEST(to_page_locked_memory_from_a_device_is_only_enqueued)
{
  hold_side_stream();
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR host = pinned(0);
  WEIR_TENSOR made = NULL;
  WEIR_TENSOR five = pinned(5);
  weir_options home = {.device = cpu, .non_blocking = true};
  weir_ok(weir_cuda(&t, five, cuda0, false));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_copy_(host, t, true));
    weir_ok(weir_to(&made, t, &home));
  }
  ck_assert(!done(side));
  ck_assert(weir_tensor_is_pinned(made));
  ck_assert(*(float *)weir_tensor_data(host) == 0);
  let_go();
  all_are(host, 5);
  all_are(made, 5);
}
END_TEST

START_TEST(from_pageable_memory_everything_has_been_read)
{
  devices(2);
  WEIR_TENSOR host = counting(weir_shape(N), WEIR_FLOAT32, cpu);
  WEIR_TENSOR t = NULL;
  weir_options o = on(cuda0);
  weir_ok(weir_zeros(&t, weir_shape(N), &o));
  weir_ok(weir_copy_(t, host, true));
  memset(weir_tensor_data(host), 0, N * sizeof(float));
  float x[N];
  weir_ok(weir_tensor_read(x, sizeof x, WEIR_FLOAT32, t));
  ck_assert(x[1] == 1 && x[N - 1] == N - 1);
}
END_TEST

/* ---- copies that wait ------------------------------------------------------------------------ */

typedef struct waiting {
  weir_tensor *to, *from;
  bool non_blocking;
  _Atomic bool opened, returned;
} waiting;

static void *copy_and_look(void *argument)
{
  waiting *w = argument;
  WEIR_WITH_STREAM(side) weir_ok(weir_copy_(w->to, w->from, w->non_blocking));
  atomic_store(&w->returned, true);
  ck_assert(atomic_load(&w->opened));
  ck_assert(done(side));
  return NULL;
}

/* The copy is in the stream's queue before the stream is let go. */
static void copy_in_a_thread(waiting *w, const char *call)
{
  pthread_t thread;
  uint64_t before = rig_simulated() ? rig_calls(call) : 0;
  ck_assert_int_eq(pthread_create(&thread, NULL, copy_and_look, w), 0);
  while (rig_simulated() && rig_calls(call) == before)
    (void)sched_yield();
  atomic_store(&w->opened, true);
  gate_open_all(&held);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

START_TEST(a_copy_that_may_block_is_complete_when_it_returns)
{
  hold_side_stream();
  WEIR_TENSOR host = pinned(2);
  WEIR_TENSOR back = pinned(0);
  WEIR_TENSOR t = NULL;
  weir_ok(weir_cuda(&t, back, cuda0, false));
  waiting to = {.to = t, .from = host};
  copy_in_a_thread(&to, "cuMemcpyHtoDAsync_v2");
  gate_add(&held);
  waiting from = {.to = back, .from = t};
  copy_in_a_thread(&from, "cuMemcpyDtoHAsync_v2");
  ck_assert(*(float *)weir_tensor_data(back) == 2);
}
END_TEST

START_TEST(pageable_memory_falls_back_to_waiting)
{
  hold_side_stream();
  WEIR_TENSOR host = counting(weir_shape(N), WEIR_FLOAT32, cpu);
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR other = pinned(1);
  weir_ok(weir_cuda(&t, other, cuda0, false));
  waiting from = {.to = host, .from = t, .non_blocking = true};
  copy_in_a_thread(&from, "cuMemcpyDtoHAsync_v2");
  ck_assert(*(float *)weir_tensor_data(host) == 1);
}
END_TEST

/* ---- memory that is still in use ------------------------------------------------------------- */

START_TEST(a_page_locked_block_is_not_reused_before_its_copy_is_done)
{
  hold_side_stream();
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR early = NULL;
  weir_tensor *host = pinned(7);
  const void *block = weir_tensor_data(host);
  weir_tensor_release(host);
  host = pinned(7); /* without a copy the block comes back at once */
  ck_assert_ptr_eq(weir_tensor_data(host), block);
  WEIR_WITH_STREAM(side) weir_ok(weir_cuda(&t, host, cuda0, true));
  weir_tensor_release(host);
  early = pinned(-1);
  ck_assert_ptr_ne(weir_tensor_data(early), block);
  let_go();
  all_are(t, 7);
}
END_TEST

START_TEST(a_page_locked_block_that_is_written_is_not_reused_before)
{
  hold_side_stream();
  WEIR_TENSOR one = pinned(1);
  WEIR_TENSOR t = NULL;
  weir_ok(weir_cuda(&t, one, cuda0, false));
  weir_tensor *host = pinned(0);
  const void *block = weir_tensor_data(host);
  WEIR_WITH_STREAM(side) weir_ok(weir_copy_(host, t, true));
  weir_tensor_release(host);
  WEIR_TENSOR early = pinned(4);
  ck_assert_ptr_ne(weir_tensor_data(early), block);
  let_go();
  all_are(early, 4);
}
END_TEST

START_TEST(a_block_of_the_device_is_kept_for_the_streams_that_were_named)
{
  hold_side_stream();
  WEIR_TENSOR one = pinned(1);
  WEIR_TENSOR copy = NULL;
  weir_tensor *t;
  weir_ok(weir_cuda(&t, one, cuda0, false));
  const void *block = weir_tensor_data(t);
  WEIR_WITH_STREAM(side) weir_ok(weir_clone(&copy, t));
  weir_ok(weir_tensor_record_stream(t, side));
  weir_tensor_release(t);
  WEIR_TENSOR next = NULL;
  WEIR_TENSOR nine = pinned(9);
  weir_ok(weir_cuda(&next, nine, cuda0, true));
  ck_assert_ptr_ne(weir_tensor_data(next), block);
  let_go();
  all_are(copy, 1);
  refused(WEIR_EINVAL, "weir_tensor_record_stream: stream is NULL",
          weir_tensor_record_stream(copy, NULL));
  WEIR_TENSOR host = counting(weir_shape(2), WEIR_FLOAT32, cpu);
  weir_ok(weir_tensor_record_stream(host, side)); /* nothing to keep */
}
END_TEST

/* ---- streams --------------------------------------------------------------------------------- */

START_TEST(work_on_the_current_stream_needs_no_care)
{
  devices(2);
  WEIR_TENSOR host = pinned(6);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_ok(weir_cuda(&a, host, cuda0, true));
  weir_ok(weir_clone(&b, a));
  all_are(b, 6);
}
END_TEST

/* The race of PyTorch's notes: a tensor is made on the default stream and read on another. */
START_TEST(a_side_stream_can_be_too_early_and_wait_stream_cures_it)
{
  devices(1);
  WEIR_TENSOR zero = pinned(0);
  WEIR_TENSOR one = pinned(1);
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR early = NULL;
  WEIR_TENSOR right = NULL;
  weir_stream *s, *plain;
  weir_ok(weir_cuda(&a, zero, cuda0, false));
  s = hold_stream(&held, cuda0); /* a stream with a gate; the default one waits for it */
  weir_ok(weir_default_stream(&plain, cuda0));
  weir_ok(weir_stream_wait_stream(plain, s));
  weir_ok(weir_copy_(a, one, true)); /* on the default stream: pending */
  weir_ok(weir_stream_create(&side, cuda0));
  WEIR_WITH_STREAM(side) weir_ok(weir_clone(&early, a));
  weir_ok(weir_stream_synchronize(side));
  weir_ok(weir_stream_wait_stream(side, plain));
  WEIR_WITH_STREAM(side) weir_ok(weir_clone(&right, a));
  ck_assert(!done(side));
  let_go();
  WEIR_WITH_STREAM(side)
  {
    all_are(early, 0);
    all_are(right, 1);
  }
}
END_TEST

START_TEST(a_copy_on_a_device_returns_while_it_is_pending)
{
  hold_side_stream();
  WEIR_TENSOR host = pinned(8);
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR c = NULL;
  weir_ok(weir_cuda(&t, host, cuda0, false));
  WEIR_WITH_STREAM(side) weir_ok(weir_clone(&c, t));
  ck_assert(!done(side));
  let_go();
  all_are(c, 8);
}
END_TEST

/* From cuda:0 to cuda:1: behind what is in the source's stream and before what comes there. */
START_TEST(a_copy_between_devices_is_ordered_in_both_streams)
{
  hold_side_stream();
  WEIR_TENSOR one = pinned(1);
  WEIR_TENSOR two = pinned(2);
  WEIR_TENSOR zero = pinned(0);
  WEIR_TENSOR from = NULL;
  WEIR_TENSOR to = NULL;
  weir_stream *other;
  weir_ok(weir_cuda(&from, zero, cuda0, false));
  weir_ok(weir_cuda(&to, zero, cuda1, false));
  weir_ok(weir_current_stream(&other, cuda1));
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_copy_(from, one, true)); /* held */
    weir_ok(weir_copy_(to, from, false)); /* of devices: returns */
    weir_ok(weir_copy_(from, two, true)); /* must not overtake */
  }
  ck_assert(!done(other));
  let_go();
  all_are(to, 1);
  all_are(from, 2);
}
END_TEST

START_TEST(a_destination_that_is_busy_holds_the_source_back)
{
  devices(2);
  WEIR_TENSOR one = pinned(1);
  WEIR_TENSOR two = pinned(2);
  WEIR_TENSOR from = NULL;
  WEIR_TENSOR to = NULL;
  weir_stream *plain;
  weir_ok(weir_cuda(&from, one, cuda0, false));
  weir_ok(weir_cuda(&to, two, cuda1, false));
  weir_ok(weir_default_stream(&plain, cuda0));
  side = hold_stream(&held, cuda1);
  WEIR_WITH_STREAM(side)
  {
    WEIR_WITH_DEVICE(cuda0)
    {
      weir_ok(weir_copy_(to, from, true));
      weir_ok(weir_copy_(from, two, true)); /* the default stream of cuda:0, behind the copy */
    }
  }
  ck_assert(!done(plain));
  let_go();
  all_are(to, 1);
  all_are(from, 2);
}
END_TEST

START_TEST(a_cast_of_page_locked_memory_is_made_on_the_device)
{
  hold_side_stream();
  WEIR_TENSOR host = pinned(3);
  WEIR_TENSOR t = NULL;
  weir_options o = {.dtype = WEIR_FLOAT16, .device = cuda0, .non_blocking = true};
  WEIR_WITH_STREAM(side) weir_ok(weir_to(&t, host, &o));
  ck_assert(!done(side));
  let_go();
  all_are(t, 3);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {to_a_device_from_page_locked_memory_is_only_enqueued,
                                to_page_locked_memory_from_a_device_is_only_enqueued,
                                from_pageable_memory_everything_has_been_read,
                                a_copy_that_may_block_is_complete_when_it_returns,
                                pageable_memory_falls_back_to_waiting,
                                a_page_locked_block_is_not_reused_before_its_copy_is_done,
                                a_page_locked_block_that_is_written_is_not_reused_before,
                                a_block_of_the_device_is_kept_for_the_streams_that_were_named,
                                work_on_the_current_stream_needs_no_care,
                                a_side_stream_can_be_too_early_and_wait_stream_cures_it,
                                a_copy_on_a_device_returns_while_it_is_pending,
                                a_copy_between_devices_is_ordered_in_both_streams,
                                a_destination_that_is_busy_holds_the_source_back,
                                a_cast_of_page_locked_memory_is_made_on_the_device,
                                NULL};
  return rig_run("tensor/async", tests, 1);
}
