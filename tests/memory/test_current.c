/* test_current.c: the current device and the current stream of a thread, and their guards. */
#include <pthread.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

enum { DEVICES = 2 };

static fake f[DEVICES];
static weir_stream *side[DEVICES], *plain[DEVICES]; /* stream 1, and the default stream */
static int told;                                    /* times a backend was made current */
static const weir_device any = WEIR_CUDA_INIT(-1), cpu = {.type = WEIR_DEVICE_CPU};

static weir_device cuda_device(int index)
{
  return WEIR_CUDA_AT(index);
}

static void count_current(void *self)
{
  (void)self;
  told++;
}

static void attach_all_fakes(void)
{
  for (int i = 0; i < DEVICES; i++) {
    fake_init(&f[i], 64 * MIB, 2 * MIB);
    f[i].backend.index = i;
    f[i].backend.make_current = count_current;
    ck_assert_int_eq(weir_memory_attach(&f[i].backend, NULL), WEIR_OK);
    ck_assert_int_eq(weir_stream_from_native(&side[i], cuda_device(i), fake_handle(&f[i], 1)),
                     WEIR_OK);
    ck_assert_int_eq(weir_stream_from_native(&plain[i], cuda_device(i), NULL), WEIR_OK);
  }
}

static void detach_all_fakes(void)
{
  for (int i = 0; i < DEVICES; i++) {
    ck_assert_msg(weir_memory_detach(cuda_device(i)) == WEIR_OK, "%s", weir_error_message());
    ck_assert(fake_clean(&f[i]));
    fake_fini(&f[i]);
  }
}

static int device_now(void)
{
  weir_device d;
  ck_assert_int_eq(weir_current_device(&d), WEIR_OK);
  ck_assert_int_eq(d.type, WEIR_DEVICE_CUDA);
  return weir_device_index(d);
}

static weir_stream *stream_now(weir_device d)
{
  weir_stream *s = NULL;
  ck_assert_int_eq(weir_current_stream(&s, d), WEIR_OK);
  return s;
}

/* The device and stream that a call without either goes to. */
static void expect_home(int device, weir_stream *stream)
{
  void *out;
  ck_assert_int_eq(weir_malloc(&out, 3 * MIB, any, NULL), WEIR_OK);
  const mem_block *b = block(page_map_find((uint64_t)out));
  ck_assert_ptr_eq(heap_table[b->heap], (mem_heap *)stream);
  ck_assert_ptr_eq(heap_table[b->heap]->pool->backend, &f[device].backend);
  ck_assert_int_eq(weir_free(out), WEIR_OK);
}

START_TEST(a_thread_starts_on_device_0_and_the_default_streams)
{
  attach_all_fakes();
  ck_assert_int_eq(device_now(), 0);
  ck_assert_ptr_eq(stream_now(cuda_device(0)), plain[0]);
  ck_assert_ptr_eq(stream_now(cuda_device(1)), plain[1]);
  ck_assert_ptr_eq(stream_now(any), plain[0]);
  expect_home(0, plain[0]);
  detach_all_fakes();
}
END_TEST

START_TEST(an_index_of_minus_one_means_the_current_device)
{
  attach_all_fakes();
  ck_assert_int_eq(weir_set_device(cuda_device(1)), WEIR_OK);
  ck_assert_int_eq(told, 1);
  expect_home(1, plain[1]);
  ck_assert_int_eq(weir_set_device(any), WEIR_OK); /* negative: nothing */
  ck_assert_int_eq(device_now(), 1);
  weir_memory_stats now;
  ck_assert_int_eq(weir_memory_get_stats(&now, any), WEIR_OK);
  ck_assert_int_eq(now.allocation_allocated, 1);
  detach_all_fakes();
}
END_TEST

START_TEST(bad_devices_are_refused_at_once_and_missing_ones_at_their_use)
{
  attach_all_fakes();
  void *out;
  ck_assert_int_eq(weir_set_device(cpu), WEIR_EINVAL);
  ck_assert_int_eq(weir_set_device(cuda_device(64)), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(),
                   "invalid device ordinal: cuda:64, the highest there can be is 63");
  ck_assert_int_eq(device_now(), 0);
  ck_assert_int_eq(weir_set_device(cuda_device(7)), WEIR_OK);
  /* what was attached by hand is not asked: CUDA itself is, and may be missing altogether */
  ck_assert_int_ne(weir_malloc(&out, 8, any, NULL), WEIR_OK);
  const char *text = weir_error_message();
  ck_assert_msg(strstr(text, "invalid device ordinal: cuda:7") ||
                    strstr(text, "CUDA is not available"),
                "%s", text);
  weir_stream *s;
  ck_assert_int_ne(weir_current_stream(&s, any), WEIR_OK);
  WEIR_WITH_DEVICE(cuda_device(1000))
  {
    ck_assert_int_ne(weir_malloc(&out, 8, any, NULL), WEIR_OK);
  }
  ck_assert_int_eq(device_now(), 7);
  detach_all_fakes();
}
END_TEST

START_TEST(setting_a_stream_sets_its_device_too)
{
  attach_all_fakes();
  ck_assert_int_eq(weir_set_current_stream(side[1]), WEIR_OK);
  ck_assert_int_eq(device_now(), 1);
  expect_home(1, side[1]);
  ck_assert_int_eq(weir_set_current_stream(NULL), WEIR_OK);
  ck_assert_ptr_eq(stream_now(any), side[1]);
  ck_assert_int_eq(weir_set_device(cuda_device(0)), WEIR_OK);
  ck_assert_ptr_eq(stream_now(any), plain[0]);
  ck_assert_ptr_eq(stream_now(cuda_device(1)), side[1]);
  ck_assert_int_eq(weir_set_current_stream(plain[1]), WEIR_OK);
  expect_home(1, plain[1]);
  detach_all_fakes();
}
END_TEST

static int leave_early(void)
{
  WEIR_WITH_STREAM(side[1])
  {
    WEIR_WITH_DEVICE(cuda_device(0)) return device_now();
  }
  return -1;
}

START_TEST(guards_nest_and_restore_however_they_are_left)
{
  attach_all_fakes();
  WEIR_WITH_DEVICE(cuda_device(1))
  {
    expect_home(1, plain[1]);
    WEIR_WITH_STREAM(side[0])
    {
      expect_home(0, side[0]);
      WEIR_WITH_STREAM(side[1]) expect_home(1, side[1]);
      expect_home(0, side[0]);
    }
    expect_home(1, plain[1]);
    ck_assert_ptr_eq(stream_now(cuda_device(0)), plain[0]);
  }
  expect_home(0, plain[0]);
  ck_assert_int_eq(leave_early(), 0);
  expect_home(0, plain[0]);
  for (int i = 0; i < 3; i++) {
    WEIR_WITH_STREAM(side[1])
    {
      if (i == 1) break;
      expect_home(1, side[1]);
    }
    expect_home(0, plain[0]);
  }
  detach_all_fakes();
}
END_TEST

START_TEST(a_guard_of_nothing_changes_nothing)
{
  attach_all_fakes();
  int runs = 0;
  ck_assert_int_eq(weir_set_current_stream(side[1]), WEIR_OK);
  WEIR_WITH_DEVICE(any) runs += device_now() == 1;
  WEIR_WITH_DEVICE(cpu) runs += device_now() == 1;
  WEIR_WITH_STREAM(NULL) runs += stream_now(any) == side[1];
  ck_assert_int_eq(runs, 3);
  weir_guard g;
  weir_device_enter(&g, cuda_device(0));
  weir_guard_leave(&g);
  ck_assert_int_eq(weir_set_device(cuda_device(0)), WEIR_OK);
  weir_guard_leave(&g); /* a second time is nothing */
  ck_assert_int_eq(device_now(), 0);
  detach_all_fakes();
}
END_TEST

START_TEST(a_guard_brings_back_the_streams_that_its_block_changed)
{
  attach_all_fakes();
  ck_assert_int_eq(weir_set_current_stream(side[0]), WEIR_OK);
  weir_guard g;
  ck_assert_int_eq(weir_stream_enter(&g, side[1]), WEIR_OK);
  ck_assert_int_eq(weir_set_current_stream(plain[0]), WEIR_OK);
  ck_assert_int_eq(weir_set_current_stream(plain[1]), WEIR_OK);
  weir_guard_leave(&g);
  expect_home(0, side[0]);
  ck_assert_ptr_eq(stream_now(cuda_device(1)), plain[1]);
  detach_all_fakes();
}
END_TEST

static void *other_thread(void *argument)
{
  (void)argument;
  ck_assert_int_eq(device_now(), 0);
  ck_assert_ptr_eq(stream_now(cuda_device(0)), plain[0]);
  ck_assert_int_eq(weir_set_current_stream(side[0]), WEIR_OK);
  expect_home(0, side[0]);
  return NULL;
}

START_TEST(every_thread_has_its_own)
{
  attach_all_fakes();
  pthread_t thread;
  ck_assert_int_eq(weir_set_current_stream(side[1]), WEIR_OK);
  ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  expect_home(1, side[1]);
  ck_assert_ptr_eq(stream_now(cuda_device(0)), plain[0]);
  detach_all_fakes();
}
END_TEST

START_TEST(the_stream_of_a_device_that_was_detached_is_forgotten)
{
  attach_all_fakes();
  ck_assert_int_eq(weir_set_current_stream(side[1]), WEIR_OK);
  weir_guard g;
  ck_assert_int_eq(weir_stream_enter(&g, side[0]), WEIR_OK);
  detach_all_fakes();
  attach_all_fakes();
  weir_guard_leave(&g);
  ck_assert_int_eq(device_now(), 1);
  expect_home(1, plain[1]);
  ck_assert_ptr_eq(stream_now(cuda_device(0)), plain[0]);
  detach_all_fakes();
}
END_TEST

START_TEST(a_stream_that_is_released_is_current_no_more_and_destroyed)
{
  attach_all_fakes();
  void *kept[3 * FAKE_STREAMS];
  for (int i = 0; i < 3 * FAKE_STREAMS; i++) { /* more than the device has at once */
    weir_stream *s;
    ck_assert_msg(weir_stream_create(&s, cuda_device(1)) == WEIR_OK, "%s", weir_error_message());
    ck_assert_int_eq(weir_set_current_stream(s), WEIR_OK);
    ck_assert_int_eq(weir_malloc(&kept[i], 1000, any, NULL), WEIR_OK);
    ck_assert_int_eq(weir_stream_release(s), WEIR_OK);
    ck_assert_ptr_eq(stream_now(any), plain[1]);
    expect_home(1, plain[1]);
  }
  for (int i = 0; i < 3 * FAKE_STREAMS; i++)
    ck_assert_int_eq(weir_free(kept[i]), WEIR_OK);
  detach_all_fakes();
}
END_TEST

int main(void)
{
  Suite *s = suite_create("current");
  TCase *t = tcase_create("device and stream");
  tcase_add_test(t, a_thread_starts_on_device_0_and_the_default_streams);
  tcase_add_test(t, an_index_of_minus_one_means_the_current_device);
  tcase_add_test(t, bad_devices_are_refused_at_once_and_missing_ones_at_their_use);
  tcase_add_test(t, setting_a_stream_sets_its_device_too);
  tcase_add_test(t, guards_nest_and_restore_however_they_are_left);
  tcase_add_test(t, a_guard_of_nothing_changes_nothing);
  tcase_add_test(t, a_guard_brings_back_the_streams_that_its_block_changed);
  tcase_add_test(t, every_thread_has_its_own);
  tcase_add_test(t, the_stream_of_a_device_that_was_detached_is_forgotten);
  tcase_add_test(t, a_stream_that_is_released_is_current_no_more_and_destroyed);
  suite_add_tcase(s, t);
  return rig_run(s);
}
