/* test_asked.c: counts of calls that ask add up by place, find their event, and damaged ones count
 * for nothing; and how long they took is estimated as it is documented. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { OTHER = 1, PLACE = 0x4000, START = 100 };

static asked_info counts(uint64_t calls, uint32_t timed, uint64_t ticks, uint64_t typical)
{
  return (asked_info){.from = PLACE,
                      .calls = calls,
                      .launches = calls / 2,
                      .ticks = ticks,
                      .typical = typical,
                      .timed = timed,
                      .followed = timed / 2,
                      .api = synth_api("cudaMemGetInfo")};
}

static void write_asked(int thread, uint64_t event, asked_info info, size_t bytes)
{
  uint64_t zero = spool_current()->clock_first.ticks;
  trace_event head = {.start = zero + START, .a = event ? zero + event : 0};
  ck_assert(spool_writer_extended(synth_thread(thread), WEIR_EV_ASKED, &head, &info, bytes));
}

static void add_call(int thread, uint64_t start)
{
  trace_event e = {.kind = WEIR_EV_CALL, .api = synth_api("cudaMemGetInfo")};
  ck_assert(synth_event(thread, start, 5, e));
}

static const char *import_this(void)
{
  const char *one[] = {NULL, NULL};
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

START_TEST(records_of_a_place_add_up_to_its_row)
{
  synth_open(synth_dir());
  add_call(0, START);
  write_asked(0, START, counts(64, 9, 900, 500), sizeof(asked_info));
  add_call(0, START + 50);
  write_asked(0, 0, counts(640, 10, 400, 60), sizeof(asked_info));
  add_call(OTHER, START);
  write_asked(OTHER, START + 1, counts(70, 9, 90, 20), sizeof(asked_info)); /* of another event */
  const char *t = import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM asked"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM asked s JOIN event e ON e.id = s.event"
                                   " WHERE s.calls = 704 AND s.timed = 19 AND s.launches = 352"
                                   " AND s.followed = 9 AND e.thread = s.thread"
                                   " AND e.start = (SELECT min(start) FROM event)"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM asked WHERE calls = 70 AND event IS NULL"),
                   1);
  ck_assert_int_eq(
      synth_number(t, "SELECT max(abs(timed_ns - 1300)) FROM asked WHERE calls = 704") <= 1, 1);
}
END_TEST

START_TEST(damaged_counts_are_left_out)
{
  synth_open(synth_dir());
  add_call(0, START);
  asked_info good = counts(64, 9, 900, 500), bad[6];
  for (int i = 0; i < 6; i++)
    bad[i] = good;
  bad[0].calls = UINT64_C(1) << 60;
  bad[1].timed = 65;
  bad[2].followed = 10;
  bad[3].typical = UINT64_C(1) << 48;
  bad[4].api = 65535;
  bad[5].launches = UINT64_MAX;
  for (int i = 0; i < 6; i++)
    write_asked(0, START, bad[i], sizeof(asked_info));
  write_asked(0, START, good, sizeof(asked_info) / 2);
  write_asked(0, 0, good, sizeof(asked_info));
  const char *t = import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM asked"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT calls FROM asked WHERE event IS NULL"), 64);
}
END_TEST

/* Each record has its own typical time, whatever its sum is. */
START_TEST(the_time_of_all_calls_is_estimated_by_the_timed_ones)
{
  synth_open(synth_dir());
  add_call(0, START);
  write_asked(0, START, counts(64, 9, 900000, 5000), sizeof(asked_info));
  write_asked(0, 0, counts(100, 2, 9000000, 2000), sizeof(asked_info));
  json_t *report = synth_json(import_this());
  const json_t *asked = json_object_get(json_object_get(report, "sites"), "asked");
  ck_assert_uint_eq(json_array_size(asked), 1);
  const json_t *place = json_array_get(asked, 0);
  ck_assert_int_eq(json_integer_value(json_object_get(place, "calls")), 164);
  long long ns = json_integer_value(json_object_get(place, "ns")), want = 64 * 5000 + 100 * 2000;
  ck_assert_int_le(llabs(ns - want), want / 1000);
  json_decref(report);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("reports/asked");
  TCase *c = tcase_create("counts");
  tcase_add_checked_fixture(c, NULL, synth_clean);
  tcase_add_test(c, records_of_a_place_add_up_to_its_row);
  tcase_add_test(c, damaged_counts_are_left_out);
  tcase_add_test(c, the_time_of_all_calls_is_estimated_by_the_timed_ones);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
