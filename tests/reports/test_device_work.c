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

START_TEST(operations_find_the_event_that_began_at_their_number_s_tick)
{
  synth_open(synth_dir());
  device_operation o[] = {operation(7, 100, 150), operation(8, 200, 260), operation(8, 300, 310)};
  write_work(o, 3); /* ahead of the calls: another thread's chunk may be read first */
  correlate(0, 7, 10);
  synth_event(0, 12, 1, (trace_event){.kind = WEIR_EV_CACHE, .cache_fact = WEIR_CACHE_RESERVED});
  copy_at(10);
  copy_at(20);
  correlate(0, 8, 30);
  copy_at(30);
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_work WHERE event IS NOT NULL"), 3);
  ck_assert_int_eq(synth_number(t, "SELECT device_start_ns FROM copy WHERE start_ns = 10"), 100);
  ck_assert_int_eq(synth_number(t, "SELECT device_ns FROM copy WHERE start_ns = 10"), 50);
  ck_assert_int_eq(synth_number(t, "SELECT device_start_ns FROM copy WHERE start_ns = 30"), 200);
  ck_assert_int_eq(synth_number(t, "SELECT device_ns FROM copy WHERE start_ns = 30"), 70);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy WHERE device_ns IS NULL"), 1);
}
END_TEST

static uint32_t far_number(int i)
{
  return i ? 7 + (1u << i) : 7;
}

/* The importer keeps numbers by their low bits, and the first event of each. */
START_TEST(numbers_far_apart_are_not_taken_for_each_other)
{
  enum { NUMBERS = 25 };
  synth_open(synth_dir());
  for (int i = 0; i < NUMBERS; i++) {
    correlate(0, far_number(i), 10 + (uint64_t)i);
    copy_at(10 + (uint64_t)i);
  }
  correlate(0, far_number(1), 100);
  copy_at(100);
  for (int i = 0; i < NUMBERS; i++) {
    device_operation o = operation(far_number(i), 1000, 1001 + (uint64_t)i);
    write_work(&o, 1);
  }
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM copy WHERE device_ns = start_ns - 9"),
                   NUMBERS);
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
  const char *t = synth_import_this();
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
  const char *t = synth_import_this();
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
  const char *t = synth_import_this();
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
  const char *t = synth_import_this();
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
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM device_fact WHERE fact = 'observed'"
                                   " AND text = 'copies' AND count IS NULL"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count FROM device_fact WHERE fact = 'dropped'"
                                   " AND text IS NULL"),
                   12);
}
END_TEST

/* A device member of the report's, by name. */
static int64_t device_number(const json_t *report, const char *name)
{
  const json_t *d = json_array_get(json_object_get(report, "device_times"), 0);
  json_t *value = json_object_get(d, name);
  ck_assert_msg(json_is_integer(value), "%s", name);
  return json_integer_value(value);
}

/* Two copies that overlap from 200 to 250, a kernel from 240 to 400, another device's. */
static void write_overlapping_work(void)
{
  device_operation o[] = {operation(1, 100, 250), operation(2, 200, 300), operation(3, 240, 400),
                          operation(4, 500, 600), operation(5, 0, 0)};
  o[1].copy = WEIR_COPY_DTOH;
  o[2].kind = WEIR_DEVICE_KERNEL;
  o[3].device = 1;
  o[4].start = 0;
  write_work(o, 5);
}

START_TEST(overlapping_work_counts_once_in_each_sum)
{
  synth_open(synth_dir());
  copy_at(10);
  write_overlapping_work();
  json_t *j = synth_json(synth_import_this());
  ck_assert_int_eq(device_number(j, "span_ns"), 300);
  ck_assert_int_eq(device_number(j, "busy_ns"), 300);
  ck_assert_int_eq(device_number(j, "copy_ns"), 200);
  ck_assert_int_eq(device_number(j, "kernel_ns"), 160);
  ck_assert_int_eq(device_number(j, "overlap_ns"), 60);
  const json_t *d = json_array_get(json_object_get(j, "device_times"), 0);
  const json_t *h2d = json_object_get(json_object_get(d, "work"), "h2d");
  ck_assert_int_eq(json_integer_value(json_object_get(h2d, "operations")), 2);
  ck_assert_int_eq(json_integer_value(json_object_get(h2d, "timed_bytes")), 64);
  ck_assert_int_eq(json_integer_value(json_object_get(h2d, "busy_ns")), 150);
  ck_assert_uint_eq(json_array_size(json_object_get(j, "device_times")), 2);
  json_decref(j);
}
END_TEST

static void fact_at(uint64_t at, int fact, uint64_t count, const char *text)
{
  trace_event head = {
      .a = (uint64_t)fact, .b = count, .start = spool_current()->clock_first.ticks + at};
  ck_assert(
      spool_writer_extended(synth_thread(WRITER), WEIR_EV_DEVICE_FACT, &head, text, strlen(text)));
}

START_TEST(the_report_names_what_was_not_observed)
{
  synth_open(synth_dir());
  fact_at(10, WEIR_DEVICE_FACT_OBSERVED, 0, "copies, CUPTI 130001");
  fact_at(100, WEIR_DEVICE_FACT_YIELDED, 0, "");
  fact_at(400, WEIR_DEVICE_FACT_OBSERVED, 0, "copies, CUPTI 130001");
  fact_at(500, WEIR_DEVICE_FACT_DROPPED, 7, "");
  fact_at(500, WEIR_DEVICE_FACT_UNTIMED, 2, "");
  correlate(0, 77, 10);
  copy_at(10);
  write_overlapping_work();
  const char *t = synth_import_this();
  json_t *j = synth_json(t), *o = json_object_get(j, "device_observation");
  ck_assert_int_eq(json_integer_value(json_object_get(o, "yields")), 1);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "yielded_ns")), 300);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "dropped")), 7);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "untimed")), 2);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "unmatched")), 5);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "incomplete_processes")), 1);
  ck_assert_int_eq(json_integer_value(json_object_get(o, "lost_calls")), 1);
  json_decref(j);
  char *text = synth_text(t, 100);
  static const char *const said[] = {"copies, CUPTI 130001",
                                     "7 device operations lost",
                                     "2 device operations without times",
                                     "300 ns without",
                                     "kernels ran in 60 ns",
                                     "1 call without device operations: 1 process ended before"};
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
    ck_assert_msg(strstr(text, said[i]) != NULL, "%s is not in\n%s", said[i], text);
  free(text);
}
END_TEST

START_TEST(a_report_without_device_times_has_no_such_section)
{
  synth_open(synth_dir());
  copy_at(10);
  char *text = synth_text(synth_import_this(), 100);
  ck_assert_ptr_null(strstr(text, "Device time"));
  free(text);
}
END_TEST

/* As queries for Nsight's tables expect them. */
START_TEST(nsight_s_copies_are_the_device_s_where_it_was_observed)
{
  synth_open(synth_dir());
  correlate(0, 7, 10);
  copy_at(10);
  copy_at(20);
  device_operation o[] = {operation(7, 100, 150), operation(7, 200, 260)};
  write_work(o, 2);
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY"
                                   " WHERE start = 100 AND \"end\" = 260"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY"
                                   " WHERE start = 20 AND \"end\" = 25"),
                   1);
}
END_TEST

static void launch_at(uint64_t start, uint64_t handle, int32_t status, uint32_t flags)
{
  synth_event(0, start, 5,
              (trace_event){
                  .kind = WEIR_EV_LAUNCH, .a = handle, .status = status, .flags = (uint8_t)flags});
}

static void name_kernel(uint64_t handle, const char *name)
{
  synth_extended(0, WEIR_EV_NAME, handle, WEIR_NAME_KERNEL, name, strlen(name));
}

/* Launches that ran, by name: whatever handles a kernel has, and its device times where they are
 * known. */
START_TEST(kernels_are_summed_by_name)
{
  synth_open(synth_dir());
  name_kernel(0x55, "_Z5saxpyPf");
  name_kernel(0x56, "_Z5saxpyPf");
  name_kernel(0x57, "scale");
  correlate(0, 7, 10);
  launch_at(10, 0x55, 0, 0);
  correlate(0, 8, 20);
  launch_at(20, 0x56, 0, 0);
  launch_at(30, 0x55, 0, 0);
  launch_at(40, 0x57, 0, 0);
  launch_at(50, 0x57, 719, 0);
  launch_at(60, 0x57, 0, WEIR_EVF_CAPTURE);
  launch_at(70, 0x99, 0, 0);
  device_operation o[] = {operation(7, 100, 400), operation(8, 500, 600)};
  o[0].kind = o[1].kind = WEIR_DEVICE_KERNEL;
  write_work(o, 2);
  const char *t = synth_import_this();
  char *text = synth_text(t, 0);
  const char *section = strstr(text, "Kernels  by name");
  ck_assert_ptr_nonnull(section);
  static const char expected[] = "  saxpy(float*)         3       400 ns  200 ns   300 ns\n"
                                 "  scale                 1            -       -        -\n"
                                 "  (not known)           1            -       -        -\n";
  ck_assert_msg(strstr(section, expected) != NULL, "%s", section);
  free(text);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/device_work");
  TCase *t = tcase_create("device_work");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, operations_find_the_event_that_began_at_their_number_s_tick);
  tcase_add_test(t, numbers_far_apart_are_not_taken_for_each_other);
  tcase_add_test(t, a_call_may_have_many_numbers);
  tcase_add_test(t, a_number_without_its_event_is_of_none);
  tcase_add_test(t, times_that_cannot_be_are_none);
  tcase_add_test(t, a_hostile_spool_harms_nobody);
  tcase_add_test(t, facts_are_named);
  tcase_add_test(t, overlapping_work_counts_once_in_each_sum);
  tcase_add_test(t, the_report_names_what_was_not_observed);
  tcase_add_test(t, a_report_without_device_times_has_no_such_section);
  tcase_add_test(t, kernels_are_summed_by_name);
  tcase_add_test(t, nsight_s_copies_are_the_device_s_where_it_was_observed);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
