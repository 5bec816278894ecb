/* test_device.c: devices as text, and streams and events where a device has few or none. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "core/stream/async_error.h"
#include "core/weir.h"
#include "tests/memory/fake.h"

static const weir_device cpu = {.type = WEIR_DEVICE_CPU}, cuda0 = WEIR_CUDA_INIT(0);

#define weir_ok(call)                                                                              \
  ck_assert_msg((call) == WEIR_OK, "%s:%d: %s", __FILE__, __LINE__, weir_error_message())
#define refused(call, why, text)                                                                   \
  do {                                                                                             \
    ck_assert_int_eq((call), (why));                                                               \
    ck_assert_str_eq(weir_error_message(), (text));                                                \
  } while (0)

/* ---- names ----------------------------------------------------------------------------------- */

START_TEST(devices_are_parsed_and_printed)
{
  static const struct {
    const char *text;
    weir_device is;
  } good[] = {{"cpu", {.type = WEIR_DEVICE_CPU}}, {"cpu:0", {WEIR_DEVICE_CPU, {1}}},
              {"cuda", WEIR_CUDA_INIT(-1)},       {"cuda:0", WEIR_CUDA_INIT(0)},
              {"cuda:7", WEIR_CUDA_INIT(7)},      {"cuda:10", WEIR_CUDA_INIT(10)},
              {"cuda:127", WEIR_CUDA_INIT(127)}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    weir_device d = {WEIR_DEVICE_UNSET, {99}};
    weir_ok(weir_device_parse(&d, good[i].text));
    ck_assert_msg(weir_device_equal(d, good[i].is), "%s", good[i].text);
    ck_assert_str_eq(weir_device_name(d), good[i].text);
  }
  ck_assert_str_eq(weir_device_name((weir_device){0}), "no device");
}
END_TEST

START_TEST(what_is_no_device_is_refused_in_torchs_words)
{
  static const char *const bad[][2] = {
      {"", "Device string must not be empty"},
      {"cuda:01", "Invalid device string: 'cuda:01'"},
      {"cuda:", "Invalid device string: 'cuda:'"},
      {"cuda:-1", "Invalid device string: 'cuda:-1'"},
      {"cuda:1x", "Invalid device string: 'cuda:1x'"},
      {"cuda: 1", "Invalid device string: 'cuda: 1'"},
      {"cuda1", "Invalid device string: 'cuda1'"},
      {":1", "Invalid device string: ':1'"},
      {"x", "Expected one of cpu, cuda device type at start of device string: x"},
      {"gpu:0", "Expected one of cpu, cuda device type at start of device string: gpu"},
      {"cud", "Expected one of cpu, cuda device type at start of device string: cud"},
      {"CUDA", "Expected one of cpu, cuda device type at start of device string: CUDA"},
      {"cuda:128", "Could not parse device index '128' in device string 'cuda:128'"},
      {"cuda:18446744073709551616",
       "Could not parse device index '18446744073709551616' in device string "
       "'cuda:18446744073709551616'"},
      {"cpu:1", "CPU device index must be -1 or zero, got 1"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    weir_device d = cuda0;
    refused(weir_device_parse(&d, bad[i][0]), WEIR_EINVAL, bad[i][1]);
    ck_assert(weir_device_equal(d, cuda0));
  }
  weir_device d;
  refused(weir_device_parse(&d, NULL), WEIR_EINVAL, "weir_device_parse: text is NULL");
}
END_TEST

START_TEST(devices_are_equal_by_type_and_index)
{
  weir_device first = {WEIR_DEVICE_CPU, {1}}, any = WEIR_CUDA_INIT(-1);
  ck_assert(weir_device_equal(cpu, cpu));
  ck_assert(!weir_device_equal(cpu, first)); /* as torch.device("cpu") != torch.device("cpu:0") */
  ck_assert(!weir_device_equal(any, cuda0));
  ck_assert(weir_device_equal(any, WEIR_CUDA_AT(-7)));
  ck_assert(weir_device_equal(any, WEIR_CUDA));
  ck_assert(weir_device_equal(any, (weir_device){.type = WEIR_DEVICE_CUDA}));
  ck_assert(weir_device_equal(cuda0, WEIR_CUDA_AT(0)));
  ck_assert(!weir_device_equal(cuda0, WEIR_CUDA_AT(1)));
  ck_assert_int_eq(weir_device_index(any), -1);
  ck_assert_int_eq(weir_device_index(WEIR_CUDA_AT(-7)), -1);
  ck_assert_int_eq(weir_device_index(cuda0), 0);
  ck_assert_int_eq(weir_device_index(first), 0);
  ck_assert_int_eq(weir_device_index(cpu), -1);
  ck_assert(!weir_device_equal(first, cuda0));
}
END_TEST

/* ---- the cpu --------------------------------------------------------------------------------- */

START_TEST(the_cpu_has_no_streams_and_nothing_to_wait_for)
{
  static const char none[] = "the cpu has no streams: its work is done when a call returns";
  weir_stream *s;
  int a, b;
  bool can;
  weir_ok(weir_synchronize(cpu));
  refused(weir_stream_new(&s, cpu, 0), WEIR_EINVAL, none);
  refused(weir_stream_create(&s, cpu), WEIR_EINVAL, none);
  refused(weir_default_stream(&s, cpu), WEIR_EINVAL, none);
  refused(weir_stream_from_native(&s, cpu, NULL), WEIR_EINVAL, none);
  refused(weir_stream_priority_range(&a, &b, cpu), WEIR_EINVAL, none);
  refused(weir_can_access_peer(&can, cuda0, cpu), WEIR_EINVAL,
          "only cuda devices can access each other, not cuda:0 and cpu");
  weir_ok(op_done(NULL, "add", WEIR_OK));
  ck_assert_int_eq(op_done(NULL, "add", WEIR_ENOMEM), WEIR_ENOMEM);
  weir_ok(async_sync(NULL, "item"));
}
END_TEST

START_TEST(an_event_that_was_never_recorded_is_complete)
{
  weir_event *e, *timed;
  weir_device d;
  bool done;
  double ms;
  weir_ok(weir_event_new(&e, NULL));
  weir_ok(weir_event_new(&timed, &(weir_event_options){.enable_timing = true}));
  weir_ok(weir_event_query(&done, e));
  ck_assert(done);
  weir_ok(weir_event_synchronize(e));
  refused(weir_event_elapsed_time(&ms, timed, e), WEIR_EINVAL,
          "Both events must be created with timing enabled (weir_event_options.enable_timing)");
  refused(weir_event_elapsed_time(&ms, timed, timed), WEIR_EINVAL,
          "Both events must be recorded before calculating elapsed time.");
  ck_assert_int_eq(weir_event_device(&d, e), WEIR_EINVAL);
  weir_event_release(e);
  weir_event_release(timed);
  weir_event_release(NULL);
}
END_TEST

/* ---- a device that has the least there can be ------------------------------------------------ */

static fake f;
static weir_stream *plain, *side;

static void attach_fake_device(void)
{
  fake_init(&f, 64 << 20, 2 << 20);
  weir_ok(weir_memory_attach(&f.backend, NULL));
  weir_ok(weir_default_stream(&plain, cuda0));
  weir_ok(weir_stream_new(&side, cuda0, 0));
}

static void detach_fake_device(void)
{
  weir_ok(weir_memory_detach(cuda0));
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}

START_TEST(what_a_backend_does_not_have_is_said)
{
  weir_event *timed;
  int priority;
  bool done;
  attach_fake_device();
  refused(weir_stream_priority(&priority, plain), WEIR_ENOTSUP,
          "streams of the fake backend have no priorities");
  refused(weir_stream_query(&done, plain), WEIR_ENOTSUP,
          "streams of the fake backend cannot be asked");
  refused(weir_stream_synchronize(plain), WEIR_ENOTSUP, "the fake backend waits for no stream");
  refused(weir_synchronize(cuda0), WEIR_ENOTSUP, "the fake backend waits for no stream");
  weir_ok(weir_event_new(&timed, &(weir_event_options){.enable_timing = true}));
  refused(weir_event_record(timed, plain), WEIR_ENOTSUP,
          "events of the fake backend neither measure time nor sleep");
  weir_event_release(timed);
  detach_fake_device();
}
END_TEST

START_TEST(every_failure_of_the_device_is_passed_on_and_leaves_things_as_they_were)
{
  weir_event *e;
  bool done;
  attach_fake_device();
  weir_ok(weir_event_new(&e, NULL));
  for (int i = 1; i <= 2; i++) { /* it is made, recorded */
    fake_fail(&f, (uint64_t)i, false, WEIR_ECUDA);
    ck_assert_int_eq(weir_event_record(e, side), WEIR_ECUDA);
    fake_fail(&f, 0, false, WEIR_OK);
    weir_ok(weir_event_query(&done, e));
    ck_assert(done);
  }
  static const uint64_t nth[] = {1, 2, 2}; /* the mark is made, recorded; and then waited for */
  for (int i = 0; i < 3; i++) {
    fake_fail(&f, nth[i], false, WEIR_ECUDA);
    ck_assert_int_eq(weir_stream_wait_stream(plain, side), WEIR_ECUDA);
    fake_fail(&f, 0, false, WEIR_OK);
  }
  weir_ok(weir_stream_wait_stream(plain, side));
  weir_event_release(e);
  detach_fake_device();
}
END_TEST

static void increment_int(void *number)
{
  ++*(int *)number;
}

START_TEST(the_allocator_learns_of_waits)
{
  enum { BYTES = 8 << 20 };
  void *a, *b;
  int ran = 0;
  weir_event *e;
  for (int by_event = 0; by_event < 2; by_event++) {
    weir_stream *one;
    attach_fake_device();
    weir_ok(weir_stream_from_native(&one, cuda0, fake_handle(&f, 40)));
    fake_hold(&f, 40);
    weir_ok(weir_malloc(&a, BYTES, cuda0, one));
    fake_submit(&f, 40, increment_int, &ran);
    weir_ok(weir_free(a));
    if (by_event) {
      weir_ok(weir_event_new(&e, NULL));
      weir_ok(weir_event_record(e, one));
      weir_ok(weir_event_wait(e, plain));
      weir_event_release(e);
    } else {
      weir_ok(weir_stream_wait_stream(plain, one));
    }
    ck_assert_int_eq(ran, by_event);
    weir_ok(weir_malloc(&b, BYTES, cuda0, plain)); /* ordered behind the work on a */
    ck_assert_ptr_eq(a, b);
    weir_ok(weir_free(b));
    fake_release(&f, 40);
    detach_fake_device();
  }
}
END_TEST

START_TEST(a_free_after_an_events_record_is_not_covered_by_it)
{
  enum { BYTES = 8 << 20 };
  void *a, *b;
  int ran = 0;
  weir_event *e;
  weir_stream *one;
  attach_fake_device();
  weir_ok(weir_stream_from_native(&one, cuda0, fake_handle(&f, 40)));
  fake_hold(&f, 40);
  weir_ok(weir_event_new(&e, NULL));
  weir_ok(weir_event_record(e, one));
  weir_ok(weir_malloc(&a, BYTES, cuda0, one));
  fake_submit(&f, 40, increment_int, &ran);
  weir_ok(weir_free(a));
  weir_ok(weir_event_wait(e, plain));
  weir_ok(weir_malloc(&b, BYTES, cuda0, plain));
  ck_assert_ptr_ne(a, b);
  weir_ok(weir_free(b));
  weir_event_release(e);
  fake_release(&f, 40);
  detach_fake_device();
}
END_TEST

START_TEST(an_event_outlives_its_device)
{
  weir_event *e;
  weir_device d;
  bool done;
  weir_ok(weir_event_new(&e, NULL));
  attach_fake_device();
  weir_ok(weir_event_record(e, NULL));
  weir_ok(weir_event_device(&d, e));
  ck_assert(weir_device_equal(d, cuda0));
  weir_ok(weir_memory_detach(cuda0));
  weir_ok(weir_event_query(&done, e)); /* its record is gone */
  ck_assert(done);
  weir_event_release(e);
  fake_fini(&f);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("device");
  TCase *t = tcase_create("names, streams, events");
  tcase_add_test(t, devices_are_parsed_and_printed);
  tcase_add_test(t, what_is_no_device_is_refused_in_torchs_words);
  tcase_add_test(t, devices_are_equal_by_type_and_index);
  tcase_add_test(t, the_cpu_has_no_streams_and_nothing_to_wait_for);
  tcase_add_test(t, an_event_that_was_never_recorded_is_complete);
  tcase_add_test(t, what_a_backend_does_not_have_is_said);
  tcase_add_test(t, every_failure_of_the_device_is_passed_on_and_leaves_things_as_they_were);
  tcase_add_test(t, the_allocator_learns_of_waits);
  tcase_add_test(t, a_free_after_an_events_record_is_not_covered_by_it);
  tcase_add_test(t, an_event_outlives_its_device);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
