/* test_named.c: what a program calls its things by NVTX is beside them in lists and reports. */
#include <jansson.h>
#include <string.h>
#include "tests/tools/command.h"

static const char *listed(const char *options)
{
  return sh_status(0, "$WEIR trace --format jsonl %s t.db", options)->out;
}

static int occurrences(const char *text, const char *what)
{
  int n = 0;
  for (; (text = strstr(text, what)); text++)
    n++;
  return n;
}

START_TEST(every_event_has_the_names_that_its_things_had)
{
  (void)sh_status(0, "$WEIR run --mode=observe --force -o t.db --sim -- $BUILD/tests/e2e/namer");
  const char *text = listed("--kind alloc");
  ck_assert_int_eq(occurrences(text, "\"memory_name\":\"weights\""), 2);
  ck_assert_int_eq(occurrences(text, "\"memory_name\":\"gradients\""), 1);
  text = listed("--kind copy");
  ck_assert_int_eq(occurrences(text, "\"memory_name\":\"weights\""), 2);
  ck_assert_int_eq(occurrences(text, "\"memory_name\":\"gradients\""), 1);
  ck_assert_int_eq(occurrences(text, "\"stream_name\":\"uploads\""), 3);
  ck_assert_int_eq(occurrences(text, "\"device_name\":\"left card\""), 3);
  ck_assert_int_eq(occurrences(text, "\"thread_name\":\"main loop\""), 3);
  text = sh_status(0, "$WEIR trace --kind free t.db")->out;
  ck_assert_int_eq(occurrences(text, "(weights)"), 2);
  ck_assert_int_eq(occurrences(text, "(gradients)"), 1);
}
END_TEST

static void check_sum(const json_t *named, const char *name, int blocks, int peak, int live)
{
  size_t i;
  const json_t *o;
  json_array_foreach(named, i, o)
  {
    if (strcmp(json_string_value(json_object_get(o, "name")), name) != 0) continue;
    ck_assert_int_eq(json_integer_value(json_object_get(o, "blocks")), blocks);
    ck_assert_int_eq(json_integer_value(json_object_get(o, "peak_bytes")), peak);
    ck_assert_int_eq(json_integer_value(json_object_get(o, "live_at_exit_bytes")), live);
    ck_assert_int_eq(json_integer_value(json_object_get(o, "device")), 0);
    return;
  }
  ck_abort_msg("no memory is called %s", name);
}

START_TEST(a_report_sums_memory_by_its_names)
{
  (void)sh_status(0,
                  "$WEIR run --mode=observe --force -o t.db --sim -- $BUILD/tests/e2e/namer keep");
  (void)sh_status(0, "$WEIR report --format json t.db > report.json");
  json_t *report = json_load_file("report.json", 0, NULL);
  const json_t *named = json_object_get(report, "named_memory");
  ck_assert_uint_eq(json_array_size(named), 2);
  check_sum(named, "weights", 2, 1 << 20, 1 << 20);
  check_sum(named, "gradients", 1, 1 << 20, 0);
  json_decref(report);
  const char *text = sh_status(0, "$WEIR report t.db")->out;
  ck_assert_ptr_nonnull(strstr(text, "Named memory"));
  ck_assert_ptr_nonnull(strstr(text, "(left card)"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("named");
  TCase *t = tcase_create("named");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, every_event_has_the_names_that_its_things_had);
  tcase_add_test(t, a_report_sums_memory_by_its_names);
  suite_add_tcase(s, t);
  return run_suite(s);
}
