/* test_device_work.c: operations of devices find the calls that asked for them, wherever their
 * records lie. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { WRITER = 1 }; /* the thread that writes what devices did */

static void correlate(int thread, uint64_t number, uint64_t start)
{
  uint64_t tick = spool_current()->clock_first.ticks + start;
  ck_assert(synth_extended(thread, WEIR_EV_CORRELATION, number, tick, "", 0));
}

static void copy_at(uint64_t start)
{
  synth_copy(0, start, 5, WEIR_COPY_HTOD, 64, 0, (int)WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
             WEIR_MEM_PINNED, WEIR_EVF_ASYNC);
}

static device_operation operation(uint32_t number, uint64_t start, uint64_t end)
{
  uint64_t zero = spool_current()->clock_first.mono_ns;
  return (device_operation){.kind = WEIR_DEVICE_COPY,
                            .copy = WEIR_COPY_HTOD,
                            .bytes = 64,
                            .correlation = number,
                            .start = zero + start,
                            .end = zero + end};
}

static void write_work(const device_operation *o, size_t count)
{
  ck_assert(synth_extended(WRITER, WEIR_EV_DEVICE_WORK, 0, 0, o, count * sizeof(*o)));
}

static const char *import_this(void)
{
  const char *one[] = {NULL, NULL};
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

START_TEST(operations_find_the_event_that_began_at_their_number_s_tick)
{
  synth_open(synth_dir());
  device_operation o[] = {operation(7, 100, 150), operation(8, 200, 260), operation(8, 300, 310)};
  write_work(o, 3); /* ahead of the calls: another thread's chunk may be read first */
  correlate(0, 7, 10);
  copy_at(10);
  copy_at(20);
  correlate(0, 8, 30);
  copy_at(30);
  const char *t = import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_work WHERE event IS NOT NULL"), 3);
  ck_assert_int_eq(synth_number(t, "SELECT device_start_ns FROM copy WHERE start_ns = 10"), 100);
  ck_assert_int_eq(synth_number(t, "SELECT device_ns FROM copy WHERE start_ns = 10"), 50);
  ck_assert_int_eq(synth_number(t, "SELECT device_start_ns FROM copy WHERE start_ns = 30"), 200);
  ck_assert_int_eq(synth_number(t, "SELECT device_ns FROM copy WHERE start_ns = 30"), 70);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy WHERE device_ns IS NULL"), 1);
}
END_TEST

START_TEST(a_call_may_have_many_numbers)
{
  synth_open(synth_dir());
  for (uint32_t i = 1; i <= 300; i++)
    correlate(0, i, 10);
  copy_at(10);
  for (uint32_t i = 1; i <= 300; i++) {
    device_operation o = operation(i, 100, 101);
    write_work(&o, 1);
  }
  const char *t = import_this();
  ck_assert_int_eq(synth_number(t, "SELECT device_ns FROM copy"), 300);
}
END_TEST

/* The event of 7 was dropped: its operation is of none, least of all of the next event. */
START_TEST(a_number_without_its_event_is_of_none)
{
  synth_open(synth_dir());
  correlate(0, 7, 10);
  copy_at(20);
  correlate(0, 8, 25);
  correlate(0, 9, 30);
  copy_at(30);
  device_operation o[] = {operation(7, 100, 150), operation(8, 100, 150), operation(9, 100, 150),
                          operation(0, 100, 150), operation(99, 100, 150)};
  write_work(o, 5);
  const char *t = import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_work"), 5);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_work WHERE event IS NOT NULL"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT device_ns FROM copy WHERE start_ns = 30"), 50);
}
END_TEST

START_TEST(times_that_cannot_be_are_none)
{
  synth_open(synth_dir());
  for (uint32_t i = 1; i <= 3; i++)
    correlate(0, i, 10);
  copy_at(10);
  device_operation o[] = {operation(1, 0, 0), operation(2, 150, 100), operation(3, 100, 150)};
  o[0].start = 0;
  write_work(o, 3);
  const char *t = import_this();
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM device_work WHERE start IS NULL AND \"end\" IS NULL"),
      2);
  ck_assert_int_eq(synth_number(t, "SELECT device_ns FROM copy"), 50);
}
END_TEST

/* Nothing of a spool is believed: kinds, numbers, sizes, text. */
START_TEST(a_hostile_spool_harms_nobody)
{
  synth_open(synth_dir());
  device_operation o[] = {operation(7, 1, 2), operation(7, 1, 2), operation(7, 1, 2)};
  memset(&o[0], 0xff, sizeof(o[0]));
  o[1].kind = 0;
  o[2].start = UINT64_MAX - 1, o[2].end = UINT64_MAX, o[2].queued = UINT64_MAX / 2;
  ck_assert(synth_extended(WRITER, WEIR_EV_DEVICE_WORK, 0, 0, o, sizeof(o) - 1)); /* two and more */
  write_work(&o[2], 1);
  write_work(o, 0);
  correlate(0, UINT64_MAX, 10);
  correlate(0, 0, 10);
  copy_at(10);
  for (int i = 0; i < 70000; i++)
    correlate(0, 5, 20);
  copy_at(20);
  synth_extended(0, WEIR_EV_DEVICE_FACT, 99, UINT64_MAX, "\xff\xfe\0x", 4);
  const char *t = import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_work"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_call"), 65536);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_fact WHERE fact = 'unknown'"), 1);
}
END_TEST

START_TEST(facts_are_named)
{
  synth_open(synth_dir());
  synth_extended(0, WEIR_EV_DEVICE_FACT, WEIR_DEVICE_FACT_OBSERVED, 0, "copies", 6);
  synth_extended(0, WEIR_EV_DEVICE_FACT, WEIR_DEVICE_FACT_DROPPED, 12, "", 0);
  const char *t = import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_fact WHERE fact = 'observed'"
                                   " AND text = 'copies' AND count IS NULL"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count FROM device_fact WHERE fact = 'dropped'"
                                   " AND text IS NULL"),
                   12);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/device_work");
  TCase *t = tcase_create("device_work");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, operations_find_the_event_that_began_at_their_number_s_tick);
  tcase_add_test(t, a_call_may_have_many_numbers);
  tcase_add_test(t, a_number_without_its_event_is_of_none);
  tcase_add_test(t, times_that_cannot_be_are_none);
  tcase_add_test(t, a_hostile_spool_harms_nobody);
  tcase_add_test(t, facts_are_named);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
