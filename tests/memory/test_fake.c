/* test_fake.c: the scripted device does what the other suites rely on. */
#include <string.h>
#include "tests/memory/rig.h"

static fake f;

static void init_small_fake(void)
{
  fake_init(&f, 64 * MIB, 2 * MIB);
}

static void teardown(void)
{
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}

static void increment_int(void *n)
{
  ++*(int *)n;
}

START_TEST(a_held_stream_does_not_run)
{
  int ran = 0;
  fake_submit(&f, 1, increment_int, &ran);
  ck_assert_int_eq(ran, 1);
  fake_hold(&f, 1);
  fake_submit(&f, 1, increment_int, &ran);
  fake_submit(&f, 1, increment_int, &ran);
  ck_assert_int_eq(ran, 1);
  ck_assert(fake_step(&f, 1));
  ck_assert_int_eq(ran, 2);
  fake_release(&f, 1);
  ck_assert_int_eq(ran, 3);
  ck_assert(!fake_step(&f, 1));
}
END_TEST

START_TEST(a_waiting_stream_runs_after_the_record)
{
  int ran = 0;
  fake_hold(&f, 1);
  fake_submit(&f, 1, increment_int, &ran);
  fake_depend(&f, 2, 1);
  fake_submit(&f, 2, increment_int, &ran);
  ck_assert_int_eq(ran, 0);
  fake_release(&f, 1);
  ck_assert_int_eq(ran, 2);
}
END_TEST

START_TEST(an_event_is_complete_when_its_record_has_run_and_a_sync_runs_it)
{
  const weir_backend *b = &f.backend;
  void *e;
  bool done = true;
  int ran = 0;
  ck_assert_int_eq(b->event_create(&f, &e), WEIR_OK);
  fake_hold(&f, 3);
  fake_submit(&f, 3, increment_int, &ran);
  ck_assert_int_eq(b->event_record(&f, e, fake_handle(&f, 3)), WEIR_OK);
  ck_assert_int_eq(b->event_query(&f, e, &done), WEIR_OK);
  ck_assert(!done);
  ck_assert_int_eq(b->event_sync(&f, e), WEIR_OK);
  ck_assert_int_eq(ran, 1);
  ck_assert_int_eq(b->event_query(&f, e, &done), WEIR_OK);
  ck_assert(done);
  ck_assert_uint_eq(f.syncs, 1);
  ck_assert_int_eq(b->event_destroy(&f, e), WEIR_OK);
}
END_TEST

START_TEST(capacity_is_kept)
{
  const weir_source *s = &f.backend.source;
  uint64_t at, page;
  ck_assert_int_eq(s->segment_alloc(&f, 63 * MIB, &at), WEIR_OK);
  ck_assert_int_eq(s->create(&f, &page), WEIR_EOOM);
  ck_assert_int_eq(s->segment_free(&f, at, 63 * MIB), WEIR_OK);
  ck_assert_int_eq(s->create(&f, &page), WEIR_OK);
  ck_assert_int_eq(s->destroy(&f, page), WEIR_OK);
}
END_TEST

START_TEST(mapped_memory_can_be_touched)
{
  const weir_source *s = &f.backend.source;
  uint64_t at, page;
  ck_assert_int_eq(s->reserve(&f, 8 * MIB, &at), WEIR_OK);
  ck_assert_uint_eq(at % (2 * MIB), 0);
  ck_assert_int_eq(s->create(&f, &page), WEIR_OK);
  ck_assert_int_eq(s->map(&f, at + 2 * MIB, page), WEIR_OK);
  ck_assert_int_eq(s->access(&f, at + 2 * MIB, 2 * MIB), WEIR_OK);
  memset((void *)(at + 2 * MIB), 7, 2 * MIB);
  ck_assert_int_eq(s->unmap(&f, at + 2 * MIB, 2 * MIB), WEIR_OK);
  ck_assert_int_eq(s->destroy(&f, page), WEIR_OK);
  ck_assert_int_eq(s->release(&f, at, 8 * MIB), WEIR_OK);
}
END_TEST

START_TEST(the_nth_operation_fails_and_changes_nothing)
{
  const weir_source *s = &f.backend.source;
  uint64_t page;
  fake_fail(&f, 2, false, WEIR_ECUDA);
  ck_assert_int_eq(s->create(&f, &page), WEIR_OK);
  ck_assert_int_eq(s->destroy(&f, page), WEIR_ECUDA);
  ck_assert_uint_eq(f.pages, 1);
  ck_assert_int_eq(s->destroy(&f, page), WEIR_OK);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("fake");
  TCase *t = tcase_create("script");
  tcase_add_checked_fixture(t, init_small_fake, teardown);
  tcase_add_test(t, a_held_stream_does_not_run);
  tcase_add_test(t, a_waiting_stream_runs_after_the_record);
  tcase_add_test(t, an_event_is_complete_when_its_record_has_run_and_a_sync_runs_it);
  tcase_add_test(t, capacity_is_kept);
  tcase_add_test(t, mapped_memory_can_be_touched);
  tcase_add_test(t, the_nth_operation_fails_and_changes_nothing);
  suite_add_tcase(s, t);
  return rig_run(s);
}
