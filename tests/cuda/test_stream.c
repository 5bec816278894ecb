/* test_stream.c: streams and events of programs, and errors that come late, on CUDA's driver API.
 */
#include "tests/cuda/rig.h"

#include <pthread.h>
#include "core/stream/async_error.h"

enum { WORDS = 1 << 18, BYTES = WORDS * 4, SIDES = 32 };

static const weir_device cuda0 = WEIR_CUDA_INIT(0), cuda1 = WEIR_CUDA_INIT(1),
                         any = WEIR_CUDA_INIT(-1);
static weir_stream *plain;
static lane held; /* a side stream of cuda:0 */
static weir_stream *side;

#define refused(call, why, text)                                                                   \
  do {                                                                                             \
    ck_assert_int_eq((call), (why));                                                               \
    ck_assert_str_eq(weir_error_message(), (text));                                                \
  } while (0)

static CUcontext primary(int index)
{
  CUcontext c;
  CUdevice d;
  ok(cuDeviceGet(&d, index));
  ok(cuDevicePrimaryCtxRetain(&c, d));
  return c;
}

static bool open_held_streams(const char *devices)
{
  if (rig_simulated()) ck_assert_int_eq(setenv("WEIR_SIM_DEVICES", devices, 1), 0);
  weir_ok(weir_default_stream(&plain, cuda0));
  weir_ok(weir_stream_create(&side, cuda0));
  held = (lane){.stream = NULL};
  void *native;
  weir_ok(weir_stream_native(&native, side));
  held.stream = native;
  ok(cuCtxSetCurrent(primary(0)));
  if (!rig_simulated()) {
    ok(cuMemHostAlloc((void **)&held.word, sizeof *held.word, CU_MEMHOSTALLOC_DEVICEMAP));
    *held.word = 0;
  }
  int n;
  weir_ok(weir_cuda_device_count(&n));
  return n >= atoi(devices);
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

static void *allocate_words(weir_device device)
{
  void *out;
  weir_ok(weir_malloc(&out, BYTES, device, NULL));
  return out;
}

static bool stream_is_done(weir_stream *s)
{
  bool out;
  weir_ok(weir_stream_query(&out, s));
  return out;
}

static bool reached(weir_event *e)
{
  bool out;
  weir_ok(weir_event_query(&out, e));
  return out;
}

/* ---- streams --------------------------------------------------------------------------------- */

START_TEST(side_streams_are_given_in_turn_by_priority)
{
  weir_stream *first[SIDES], *again, *high, *own;
  int least, greatest, priority;
  (void)open_held_streams("2");
  for (int i = 0; i < SIDES; i++) {
    weir_ok(weir_stream_new(&first[i], cuda0, 0));
    for (int k = 0; k < i; k++)
      ck_assert_ptr_ne(first[i], first[k]);
    ck_assert_ptr_ne(native_of(first[i]), NULL);
  }
  weir_ok(weir_stream_new(&again, cuda0, 0));
  ck_assert_ptr_eq(again, first[0]);
  weir_ok(weir_stream_priority_range(&least, &greatest, cuda0));
  ck_assert_int_eq(least, 0);
  ck_assert_int_lt(greatest, 0);
  weir_ok(weir_stream_new(&high, cuda0, -1));
  weir_ok(weir_stream_priority(&priority, high));
  ck_assert_int_eq(priority, -1);
  weir_ok(weir_stream_new(&high, cuda0, -100));
  weir_ok(weir_stream_priority(&priority, high));
  ck_assert_int_eq(priority, greatest);
  weir_ok(weir_stream_priority(&priority, plain));
  ck_assert_int_eq(priority, 0);
  refused(weir_stream_new(&high, cuda0, 1), WEIR_EINVAL,
          "Expected cuda stream priority to be less than or equal to 0, got 1");
  ck_assert_int_eq(weir_stream_release(first[0]), WEIR_EINVAL);
  weir_ok(weir_stream_create(&own, cuda0));
  weir_ok(weir_stream_release(own));
}
END_TEST

START_TEST(side_streams_are_made_anew_for_a_device_that_was_detached)
{
  weir_stream *one, *two;
  weir_device d;
  (void)open_held_streams("2");
  weir_ok(weir_stream_new(&one, any, 0));
  weir_ok(weir_memory_detach(cuda0));
  for (int i = 0; i < SIDES; i++) {
    weir_ok(weir_stream_new(&two, cuda0, 0));
    weir_ok(weir_stream_device(&d, two));
    ck_assert(weir_device_equal(d, cuda0));
    weir_ok(weir_stream_synchronize(two));
  }
}
END_TEST

START_TEST(a_failure_to_make_a_stream_is_told_and_the_next_try_may_succeed)
{
  weir_stream *s;
  (void)open_held_streams("2");
  if (!rig_simulated()) return;
  rig_fail("cuStreamCreateWithPriority:1=2,cuStreamCreate:1=2");
  ck_assert_int_eq(weir_stream_new(&s, cuda0, -1), WEIR_EOOM);
  ck_assert_int_eq(weir_stream_new(&s, cuda0, 0), WEIR_EOOM);
  weir_ok(weir_stream_new(&s, cuda0, -1));
  weir_ok(weir_stream_new(&s, cuda0, 0));
}
END_TEST

START_TEST(a_stream_says_whether_it_is_done_and_can_be_waited_for)
{
  (void)open_held_streams("2");
  void *p = allocate_words(cuda0);
  ck_assert(stream_is_done(side));
  gate_add(&held);
  ok(cuMemsetD32Async(device_pointer(p), 1, WORDS, held.stream));
  ck_assert(!stream_is_done(side));
  ck_assert(
      stream_is_done(plain)); /* side streams and the default one do not wait for each other */
  weir_ok(weir_stream_synchronize(NULL));
  gate_open(&held);
  weir_ok(weir_stream_synchronize(side));
  ck_assert(stream_is_done(side));
  WEIR_WITH_STREAM(side) ck_assert(stream_is_done(NULL));
}
END_TEST

static void *open_once_called(void *before)
{
  while (rig_calls("cuCtxSynchronize") == *(uint64_t *)before)
    sched_yield();
  gate_open(&held);
  return NULL;
}

START_TEST(a_device_is_waited_for_with_all_its_streams)
{
  pthread_t thread;
  (void)open_held_streams("2");
  void *p = allocate_words(cuda0);
  weir_ok(weir_synchronize(WEIR_CPU));
  weir_ok(weir_synchronize((weir_device){0}));
  if (!rig_simulated()) return;
  uint64_t before = rig_calls("cuCtxSynchronize");
  gate_add(&held);
  ok(cuMemsetD32Async(device_pointer(p), 1, WORDS, held.stream));
  ck_assert_int_eq(pthread_create(&thread, NULL, open_once_called, &before), 0);
  weir_ok(weir_synchronize(cuda0));
  ck_assert(stream_is_done(side));
  pthread_join(thread, NULL);
}
END_TEST

/* ---- waiting ----------------------------------------------------------------------------------
 * The race of PyTorch's notes: what one stream makes and another reads without waiting for it. */

static unsigned read_word(const void *p)
{
  unsigned word = 0;
  ok(cuMemcpyDtoH(&word, device_pointer(p), 4));
  return word;
}

static unsigned read_raced_word(bool cured)
{
  unsigned seen;
  void *a = allocate_words(cuda0), *b = allocate_words(cuda0);
  ok(cuMemsetD32(device_pointer(a), 1, WORDS));
  weir_ok(weir_synchronize(cuda0));
  weir_stream *reader;
  weir_ok(weir_stream_new(&reader, cuda0, 0));
  gate_add(&held);
  ok(cuMemsetD32Async(device_pointer(a), 2, WORDS, held.stream)); /* made in `side` */
  if (cured) weir_ok(weir_stream_wait_stream(reader, side));
  ok(cuMemcpyDtoDAsync(device_pointer(b), device_pointer(a), BYTES, native_of(reader)));
  if (!cured) weir_ok(weir_stream_synchronize(reader));
  if (cured) ck_assert(!stream_is_done(reader));
  gate_open(&held);
  weir_ok(weir_synchronize(cuda0));
  seen = read_word(b);
  weir_ok(weir_free(a));
  weir_ok(weir_free(b));
  return seen;
}

START_TEST(a_race_between_streams_can_be_seen_and_wait_stream_cures_it)
{
  (void)open_held_streams("2");
  ck_assert_uint_eq(read_raced_word(false), 1);
  ck_assert_uint_eq(read_raced_word(true), 2);
}
END_TEST

START_TEST(a_stream_waits_for_another_devices)
{
  weir_stream *far;
  if (!open_held_streams("2")) return;
  void *a = allocate_words(cuda0), *b = allocate_words(cuda1);
  weir_ok(weir_stream_new(&far, cuda1, 0));
  gate_add(&held);
  ok(cuMemsetD32Async(device_pointer(a), 7, WORDS, held.stream));
  weir_ok(weir_stream_wait_stream(far, side));
  ok(cuCtxSetCurrent(primary(1)));
  ok(cuMemcpyPeerAsync(device_pointer(b), primary(1), device_pointer(a), primary(0), BYTES,
                       native_of(far)));
  ck_assert(!stream_is_done(far));
  gate_open(&held);
  weir_ok(weir_stream_synchronize(far));
  ck_assert_uint_eq(read_word(b), 7);
}
END_TEST

START_TEST(waiting_for_itself_is_nothing_and_null_is_the_current_stream)
{
  (void)open_held_streams("2");
  weir_ok(weir_stream_wait_stream(side, side));
  weir_ok(weir_stream_wait_stream(NULL, NULL));
  gate_add(&held);
  WEIR_WITH_STREAM(side)
  {
    weir_ok(weir_stream_wait_stream(plain, NULL));
  }
  ck_assert(!stream_is_done(plain));
  gate_open(&held);
  weir_ok(weir_stream_synchronize(plain));
}
END_TEST

START_TEST(a_wait_gives_the_freed_memory_to_the_waiter)
{
  weir_stream *reader;
  void *a, *b;
  (void)open_held_streams("2");
  weir_ok(weir_stream_new(&reader, cuda0, 0));
  gate_add(&held);
  weir_ok(weir_malloc(&a, 32 << 20, cuda0, side));
  ok(cuMemsetD32Async(device_pointer(a), 1, 8 << 20, held.stream));
  weir_ok(weir_free(a));
  weir_ok(weir_stream_wait_stream(reader, side));
  weir_ok(weir_malloc(&b, 32 << 20, cuda0, reader));
  ck_assert_ptr_eq(a, b);
  gate_open(&held);
  weir_ok(weir_free(b));
}
END_TEST

/* ---- events ---------------------------------------------------------------------------------- */

START_TEST(an_event_is_complete_when_the_work_before_it_is)
{
  weir_event *e, *sleeper;
  weir_device d;
  (void)open_held_streams("2");
  weir_ok(weir_event_new(&e, NULL));
  weir_ok(weir_event_new(&sleeper, &(weir_event_options){.blocking = true}));
  gate_add(&held);
  weir_ok(weir_event_record(e, side));
  weir_ok(weir_event_record(sleeper, side));
  ck_assert(!reached(e));
  weir_ok(weir_event_wait(e, plain));
  ck_assert(!stream_is_done(plain));
  gate_open(&held);
  weir_ok(weir_event_synchronize(e));
  weir_ok(weir_event_synchronize(sleeper));
  ck_assert(reached(e));
  weir_ok(weir_stream_synchronize(plain));
  weir_ok(weir_event_device(&d, e));
  ck_assert(weir_device_equal(d, cuda0));
  gate_add(&held);
  weir_ok(weir_event_record(e, side)); /* again: the latest counts */
  ck_assert(!reached(e));
  gate_open(&held);
  weir_event_release(e);
  weir_event_release(sleeper);
}
END_TEST

START_TEST(an_event_is_of_the_device_of_its_first_record)
{
  weir_event *e, *other;
  weir_stream *far;
  double ms;
  weir_event_options timed = {.enable_timing = true};
  if (!open_held_streams("2")) return;
  weir_ok(weir_default_stream(&far, cuda1));
  weir_ok(weir_event_new(&e, &timed));
  weir_ok(weir_event_new(&other, &timed));
  weir_ok(weir_event_record(e, NULL));
  refused(weir_event_record(e, far), WEIR_EINVAL,
          "Event device 0 does not match recording stream's device 1.");
  weir_ok(weir_event_wait(e, far));
  weir_ok(weir_event_record(other, far));
  weir_ok(weir_event_synchronize(other));
  refused(weir_event_elapsed_time(&ms, e, other), WEIR_EINVAL,
          "Both events must be on the same device, but they are on cuda:0 and cuda:1");
  weir_event_release(e);
  weir_event_release(other);
}
END_TEST

START_TEST(events_measure_time_where_they_were_asked_to)
{
  weir_event *start, *end, *plain_event;
  double ms = -1;
  weir_event_options timed = {.enable_timing = true};
  (void)open_held_streams("2");
  weir_ok(weir_event_new(&start, &timed));
  weir_ok(weir_event_new(&end, &timed));
  weir_ok(weir_event_new(&plain_event, NULL));
  weir_ok(weir_event_record(plain_event, side));
  refused(weir_event_elapsed_time(&ms, start, plain_event), WEIR_EINVAL,
          "Both events must be created with timing enabled (weir_event_options.enable_timing)");
  weir_ok(weir_event_record(start, side));
  refused(weir_event_elapsed_time(&ms, start, end), WEIR_EINVAL,
          "Both events must be recorded before calculating elapsed time.");
  gate_add(&held);
  weir_ok(weir_event_record(end, side));
  refused(weir_event_elapsed_time(&ms, start, end), WEIR_EINVAL,
          "Both events must be completed before calculating elapsed time.");
  gate_open(&held);
  weir_ok(weir_event_synchronize(end));
  weir_ok(weir_event_elapsed_time(&ms, start, end));
  ck_assert(ms > 0);
  double back;
  weir_ok(weir_event_elapsed_time(&back, end, start));
  ck_assert(back == -ms);
  weir_event_release(start);
  weir_event_release(end);
  weir_event_release(plain_event);
}
END_TEST

/* ---- what is current ------------------------------------------------------------------------- */

static void expect_device(int index)
{
  weir_device d;
  CUcontext now;
  weir_ok(weir_current_device(&d));
  ck_assert_int_eq(weir_device_index(d), index);
  ok(cuCtxGetCurrent(&now));
  ck_assert_ptr_eq(now, primary(index)); /* the runtime's current device follows */
}

/* One guard in another, down to the last device, and back by an early return. */
static int nest(int depth, int devices)
{
  WEIR_WITH_DEVICE(WEIR_CUDA_AT(depth))
  {
    weir_stream *s;
    expect_device(depth);
    weir_ok(weir_stream_new(&s, any, 0));
    WEIR_WITH_STREAM(s)
    {
      weir_stream *now;
      if (depth + 1 < devices) (void)nest(depth + 1, devices);
      expect_device(depth);
      weir_ok(weir_current_stream(&now, any));
      ck_assert_ptr_eq(now, s);
      return depth;
    }
  }
  return -1;
}

static void *nest_in_thread(void *devices)
{
  weir_device first;
  weir_ok(weir_current_device(&first)); /* whatever the thread that started it has */
  ck_assert(weir_device_equal(first, cuda0));
  weir_ok(weir_set_device(cuda0));
  ck_assert_int_eq(nest(1, *(int *)devices), 1);
  expect_device(0);
  return NULL;
}

START_TEST(guards_nest_over_eight_devices_in_every_thread)
{
  pthread_t ids[4];
  int n;
  (void)open_held_streams("8");
  weir_ok(weir_cuda_device_count(&n));
  for (int i = 0; i < n; i++) {
    weir_stream *s;
    weir_ok(weir_default_stream(&s, WEIR_CUDA_AT(i))); /* opens it */
  }
  weir_ok(weir_set_device(cuda0));
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&ids[i], NULL, nest_in_thread, &n), 0);
  ck_assert_int_eq(nest(0, n), 0);
  expect_device(0);
  for (int i = 0; i < 4; i++)
    pthread_join(ids[i], NULL);
}
END_TEST

START_TEST(a_device_that_is_not_there_shows_at_its_use)
{
  weir_device missing = WEIR_CUDA_AT(63);
  weir_stream *s;
  (void)open_held_streams("2");
  int n;
  weir_ok(weir_cuda_device_count(&n));
  char text[100];
  (void)snprintf(text, sizeof text, "invalid device ordinal: cuda:63 was asked for, there are %d",
                 n);
  weir_ok(weir_set_device(missing));
  refused(weir_current_stream(&s, any), WEIR_EINVAL, text);
  refused(weir_stream_new(&s, missing, 0), WEIR_EINVAL, text);
  refused(weir_synchronize(any), WEIR_EINVAL, text);
  refused(weir_stream_synchronize(NULL), WEIR_EINVAL, text);
}
END_TEST

/* ---- all at once ----------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 100 };

static void *use_everything(void *number)
{
  int me = *(int *)number;
  weir_device d = me % 2 ? cuda1 : cuda0;
  weir_stream *mine, *theirs;
  weir_event *e;
  bool out;
  weir_ok(weir_event_new(&e, NULL));
  for (int i = 0; i < ROUNDS; i++) {
    weir_ok(weir_stream_new(&mine, d, -(i % 3)));
    weir_ok(weir_stream_new(&theirs, i % 5 ? d : cuda0, 0));
    WEIR_WITH_STREAM(mine)
    {
      void *p;
      weir_ok(weir_malloc(&p, BYTES, d, NULL));
      weir_ok(op_done(mine, "empty", WEIR_OK));
      weir_ok(weir_event_record(e, NULL));
      weir_ok(weir_free(p));
    }
    weir_ok(weir_event_wait(e, theirs));
    weir_ok(weir_stream_wait_stream(mine, theirs));
    weir_ok(weir_stream_query(&out, theirs));
    weir_ok(weir_event_query(&out, e));
    if (i % 10 == me) weir_ok(weir_stream_synchronize(mine));
    if (i % 50 == me) weir_ok(weir_synchronize(d));
  }
  weir_event_release(e);
  return NULL;
}

START_TEST(threads_use_streams_and_events_at_once)
{
  pthread_t ids[THREADS];
  int numbers[THREADS];
  if (!open_held_streams("2")) return;
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    ck_assert_int_eq(pthread_create(&ids[i], NULL, use_everything, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(ids[i], NULL);
  weir_ok(weir_memory_detach(cuda0));
  weir_ok(weir_memory_detach(cuda1));
}
END_TEST

/* ---- errors that come late ------------------------------------------------------------------- */

/* Notes an operation as the tensor layer does. */
static weir_status op(weir_stream *s, const char *name)
{
  return op_done(s, name, WEIR_OK);
}

static bool error_message_has(const char *text)
{
  return strstr(weir_error_message(), text) != NULL;
}

START_TEST(a_late_error_lists_what_was_enqueued_since_the_last_sync)
{
  (void)open_held_streams("2");
  if (!rig_simulated()) return;
  weir_ok(op(plain, "randn"));
  weir_ok(weir_stream_synchronize(plain));
  weir_ok(op(plain, "add"));
  weir_ok(op(plain, "add"));
  weir_ok(op(side, "copy_"));
  weir_ok(op(plain, "matmul"));
  rig_fail("cuStreamSynchronize:1=700");
  ck_assert_int_eq(weir_stream_synchronize(plain), WEIR_ECUDA);
  ck_assert_msg(
      error_message_has("CUDA_ERROR_ILLEGAL_ADDRESS (700)") &&
          error_message_has(
              "(asynchronous error, first seen at stream_synchronize; work enqueued since the "
              "last sync: add x2, copy_, matmul; CUDA_LAUNCH_BLOCKING=1 makes it local)"),
      "%s", weir_error_message());
  /* it stays, and where it was first seen is still said */
  ck_assert_int_eq(op_done(plain, "relu", weir_stream_synchronize(side)), WEIR_ECUDA);
  ck_assert_msg(error_message_has(
                    "first seen at stream_synchronize; work enqueued since the last sync: add x2"),
                "%s", weir_error_message());
}
END_TEST

START_TEST(work_of_a_stream_that_was_waited_for_is_not_listed)
{
  weir_event *e;
  (void)open_held_streams("2");
  if (!rig_simulated()) return;
  weir_ok(weir_event_new(&e, NULL));
  weir_ok(op(side, "mul"));
  weir_ok(op(plain, "sum"));
  weir_ok(weir_event_record(e, side));
  weir_ok(op(side, "neg"));
  weir_ok(weir_event_synchronize(e));
  rig_fail("cuEventQuery:1=719");
  bool out;
  ck_assert_int_eq(weir_event_query(&out, e), WEIR_ECUDA);
  ck_assert_msg(error_message_has("last sync: sum, neg;"), "%s", weir_error_message());
  weir_event_release(e);
}
END_TEST

START_TEST(a_long_list_is_cut)
{
  (void)open_held_streams("2");
  if (!rig_simulated()) return;
  for (int i = 0; i < 200; i++)
    weir_ok(op(plain, i % 2 ? "a_name_of_some_length" : "another_name"));
  rig_fail("cuStreamSynchronize:1=700");
  ck_assert_int_eq(weir_stream_synchronize(plain), WEIR_ECUDA);
  ck_assert_msg(error_message_has(", ...; CUDA_LAUNCH_BLOCKING=1"), "%s", weir_error_message());
}
END_TEST

START_TEST(an_error_of_the_call_itself_is_not_called_late)
{
  (void)open_held_streams("2");
  if (!rig_simulated()) return;
  weir_ok(op(plain, "add"));
  rig_fail("cuStreamSynchronize:1=1");
  ck_assert_int_eq(weir_stream_synchronize(plain), WEIR_ECUDA);
  refused(weir_stream_synchronize((rig_fail("cuStreamSynchronize:1=1"), plain)), WEIR_ECUDA,
          "waiting for a stream of cuda:0: CUDA_ERROR_INVALID_VALUE (1): invalid argument");
  weir_ok(weir_stream_synchronize(plain));
}
END_TEST

START_TEST(launch_blocking_waits_and_names_the_operation)
{
  (void)open_held_streams("2");
  ck_assert(!weir_launch_blocking());
  weir_set_launch_blocking(true);
  ck_assert(weir_launch_blocking());
  if (!rig_simulated()) return;
  uint64_t before = rig_calls("cuStreamSynchronize");
  weir_ok(op(plain, "add"));
  ck_assert_uint_eq(rig_calls("cuStreamSynchronize"), before + 1);
  rig_fail("cuStreamSynchronize:1=700");
  ck_assert_int_eq(op(plain, "mul"), WEIR_ECUDA);
  ck_assert_msg(strncmp(weir_error_message(), "mul: ", 5) == 0 && error_message_has("(700)") &&
                    error_message_has("(launch blocking: the error is of this operation)"),
                "%s", weir_error_message());
  ck_assert_int_eq(op_done(plain, "exp", weir_fail(WEIR_ECUDA, "refused")), WEIR_ECUDA);
  ck_assert_str_eq(weir_error_message(),
                   "exp: refused (launch blocking: the error is of this operation)");
  weir_set_launch_blocking(false);
  ck_assert(!weir_launch_blocking());
}
END_TEST

START_TEST(the_environment_turns_launch_blocking_on)
{
  static const char *const values[] = {"1", "0", ""};
  ck_assert_int_eq(setenv("CUDA_LAUNCH_BLOCKING", values[_i % 3], 1), 0);
  ck_assert_int_eq(weir_launch_blocking(), _i % 3 == 0);
}
END_TEST

int main(void)
{
  static const TTest *tests[24];
  int n = 0;
  tests[n++] = side_streams_are_given_in_turn_by_priority;
  tests[n++] = side_streams_are_made_anew_for_a_device_that_was_detached;
  tests[n++] = a_failure_to_make_a_stream_is_told_and_the_next_try_may_succeed;
  tests[n++] = a_stream_says_whether_it_is_done_and_can_be_waited_for;
  tests[n++] = a_device_is_waited_for_with_all_its_streams;
  tests[n++] = a_race_between_streams_can_be_seen_and_wait_stream_cures_it;
  tests[n++] = a_stream_waits_for_another_devices;
  tests[n++] = waiting_for_itself_is_nothing_and_null_is_the_current_stream;
  tests[n++] = a_wait_gives_the_freed_memory_to_the_waiter;
  tests[n++] = an_event_is_complete_when_the_work_before_it_is;
  tests[n++] = an_event_is_of_the_device_of_its_first_record;
  tests[n++] = events_measure_time_where_they_were_asked_to;
  tests[n++] = guards_nest_over_eight_devices_in_every_thread;
  tests[n++] = a_device_that_is_not_there_shows_at_its_use;
  tests[n++] = threads_use_streams_and_events_at_once;
  tests[n++] = a_late_error_lists_what_was_enqueued_since_the_last_sync;
  tests[n++] = work_of_a_stream_that_was_waited_for_is_not_listed;
  tests[n++] = a_long_list_is_cut;
  tests[n++] = an_error_of_the_call_itself_is_not_called_late;
  tests[n++] = launch_blocking_waits_and_names_the_operation;
  tests[n] = the_environment_turns_launch_blocking_on;
  return rig_run("cuda/stream", tests, 3);
}
