/* test_tensors.c: memory by tensor and module, from facts written as programs write them. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/tensor_record.h"
#include "core/weir/dtype.h"
#include "tests/reports/synth.h"

/* A fact on thread n at `at` ns. */
static void record_tensor_fact(int n, uint64_t at, tensor_notice what)
{
  trace_event head = {.start = spool_current()->clock_first.ticks + at};
  ck_assert(tensor_record(synth_thread(n), &head, &what));
}

static void record_tensor_made(int n, uint64_t at, uint64_t storage, uint64_t bytes, int device,
                               const char *module)
{
  static const int64_t size[] = {4, 2};
  record_tensor_fact(n, at,
                     (tensor_notice){.fact = WEIR_TENSOR_MADE,
                                     .storage = storage,
                                     .address = storage + 64,
                                     .bytes = bytes,
                                     .mem = device < 0 ? WEIR_MEM_PAGEABLE : WEIR_MEM_DEVICE,
                                     .device = device,
                                     .dtype = WEIR_FLOAT32,
                                     .dims = 2,
                                     .size = size,
                                     .module = module});
}

static void name(int n, uint64_t at, uint64_t storage, const char *text)
{
  record_tensor_fact(
      n, at,
      (tensor_notice){.fact = WEIR_TENSOR_NAMED, .storage = storage, .device = -1, .name = text});
}

static void record_tensor_gone(int n, uint64_t at, uint64_t storage)
{
  record_tensor_fact(n, at,
                     (tensor_notice){.fact = WEIR_TENSOR_GONE, .storage = storage, .device = -1});
}

static void begin_tensor_spool(void)
{
  synth_open(synth_dir());
}

static const char *close_and_import(void)
{
  const char *one[] = {NULL, NULL};
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

static json_t *tensor_place(json_t *report, size_t n)
{
  json_t *o = json_array_get(json_object_get(report, "tensors"), n);
  ck_assert_ptr_nonnull(o);
  return o;
}

static long long number(const json_t *o, const char *member)
{
  const json_t *n = json_object_get(o, member);
  ck_assert_msg(json_is_integer(n), "%s is no number", member);
  return json_integer_value(n);
}

static const char *member_text(const json_t *o, const char *member)
{
  const char *s = json_string_value(json_object_get(o, member));
  ck_assert_msg(s != NULL, "%s is no text", member);
  return s;
}

START_TEST(the_peak_is_told_by_module_and_by_tensor)
{
  begin_tensor_spool();
  record_tensor_made(0, 100, 1, 1000, 0, "");
  name(0, 110, 1, "net.conv1.weight");
  record_tensor_made(0, 200, 2, 300, 0, "net.fc");
  record_tensor_made(0, 210, 3, 300, 0, "net.fc");
  record_tensor_made(0, 220, 4, 50, -1, ""); /* another place */
  record_tensor_gone(0, 300, 3);
  record_tensor_made(0, 400, 5, 200, 0, "loss"); /* below the peak */
  record_tensor_gone(0, 500, 2);
  record_tensor_gone(0, 510, 5);
  json_t *r = synth_json(close_and_import());
  const json_t *gpu = tensor_place(r, 0), *host = tensor_place(r, 1);
  ck_assert_int_eq(number(gpu, "device"), 0);
  ck_assert_int_eq(number(gpu, "made"), 4);
  ck_assert_int_eq(number(gpu, "made_bytes"), 1800);
  ck_assert_int_eq(number(gpu, "peak_bytes"), 1600);
  ck_assert_int_eq(number(gpu, "peak_tensors"), 3);
  ck_assert_int_eq(number(gpu, "live_at_exit_bytes"), 1000);
  ck_assert_int_eq(number(gpu, "live_at_exit_tensors"), 1);
  const json_t *modules = json_object_get(gpu, "modules"), *by = json_object_get(gpu, "by_tensor");
  ck_assert_uint_eq(json_array_size(modules), 2);
  ck_assert_str_eq(member_text(json_array_get(modules, 0), "module"), "net.conv1");
  ck_assert_int_eq(number(json_array_get(modules, 0), "bytes"), 1000);
  ck_assert_str_eq(member_text(json_array_get(modules, 1), "module"), "net.fc");
  ck_assert_int_eq(number(json_array_get(modules, 1), "tensors"), 2);
  ck_assert_int_eq(number(json_array_get(modules, 1), "bytes"), 600);
  ck_assert_str_eq(member_text(json_array_get(by, 0), "name"), "net.conv1.weight");
  ck_assert_str_eq(member_text(json_array_get(by, 1), "dtype"), "float32");
  ck_assert_str_eq(member_text(json_array_get(by, 1), "shape"), "[4, 2]");
  ck_assert_int_eq(number(json_array_get(by, 1), "tensors"), 2);
  ck_assert(json_is_null(json_object_get(host, "device")));
  ck_assert_int_eq(number(host, "peak_bytes"), 50);
  json_decref(r);
}
END_TEST

START_TEST(a_tensor_may_go_with_another_thread)
{
  begin_tensor_spool();
  record_tensor_made(1, 100, 7, 10, 0, "a");
  record_tensor_gone(0, 200, 7); /* thread 0's records may be read first */
  record_tensor_made(2, 300, 7, 20, 0, "b");
  json_t *r = synth_json(close_and_import());
  ck_assert_int_eq(number(tensor_place(r, 0), "peak_bytes"), 20);
  ck_assert_int_eq(number(tensor_place(r, 0), "live_at_exit_bytes"), 20);
  json_decref(r);
}
END_TEST

START_TEST(an_end_that_went_unseen_is_one_all_the_same)
{
  begin_tensor_spool();
  record_tensor_gone(0, 50, 9); /* made before the trace */
  name(0, 60, 9, "x");
  record_tensor_made(0, 100, 9, 10, 0, "a");
  record_tensor_made(0, 200, 9, 30, 0, "a");
  json_t *r = synth_json(close_and_import());
  ck_assert_int_eq(number(tensor_place(r, 0), "peak_bytes"), 30);
  ck_assert_int_eq(number(tensor_place(r, 0), "made"), 2);
  json_decref(r);
}
END_TEST

START_TEST(text_has_the_section_also_without_a_cuda_call)
{
  begin_tensor_spool();
  record_tensor_made(0, 100, 1, 1 << 20, -1, "net.fc");
  char *t = synth_text(close_and_import(), 100);
  ck_assert_ptr_nonnull(strstr(t, "Memory by tensor / module"));
  ck_assert_ptr_nonnull(strstr(t, "net.fc"));
  ck_assert_ptr_nonnull(strstr(t, "1.00 MiB"));
  free(t);
}
END_TEST

START_TEST(a_trace_without_tensors_has_no_section)
{
  begin_tensor_spool();
  synth_alloc(0, 10, 5, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  const char *trace = close_and_import();
  synth_change(trace, "DROP TABLE tensor"); /* older */
  char *t = synth_text(trace, 100);
  ck_assert_ptr_null(strstr(t, "Memory by tensor"));
  free(t);
}
END_TEST

START_TEST(a_payload_that_is_wrong_is_left_out)
{
  tensor_info info = {.fact = WEIR_TENSOR_MADE, .dtype = 200, .dims = 200, .bytes = 5};
  begin_tensor_spool();
  ck_assert(synth_extended(0, WEIR_EV_TENSOR, 1, 0, &info, sizeof info - 1));
  info.name_bytes = 500;
  ck_assert(synth_extended(0, WEIR_EV_TENSOR, 2, 0, &info, sizeof info));
  info.name_bytes = 0;
  ck_assert(synth_extended(0, WEIR_EV_TENSOR, 3, 0, &info, sizeof info));
  const char *trace = close_and_import();
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM tensor"), 1);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM tensor WHERE dtype = 'unknown'"), 1);
  char *t = synth_text(trace, 100);
  ck_assert_ptr_nonnull(t);
  free(t);
}
END_TEST

START_TEST(tensors_of_a_process_go_with_it)
{
  char first[512];
  begin_tensor_spool();
  record_tensor_made(0, 100, 1, 1000, 0, "net");
  synth_close();
  (void)snprintf(first, sizeof first, "%s", synth_spool());
  begin_tensor_spool();
  record_tensor_made(0, 100, 1, 700, 0, "net");
  synth_close();
  const char *both[] = {first, synth_spool(), NULL};
  json_t *report = synth_json(synth_import("t.db", both)), *gpu = tensor_place(report, 0);
  ck_assert_int_eq(number(gpu, "peak_bytes"), 1000);
  ck_assert_int_eq(number(gpu, "peak_tensors"), 1);
  ck_assert_int_eq(number(gpu, "live_at_exit_bytes"), 1700);
  ck_assert_int_eq(number(gpu, "live_at_exit_tensors"), 2);
  json_decref(report);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/tensors");
  TCase *c = tcase_create("tensors");
  tcase_add_checked_fixture(c, NULL, synth_clean);
  tcase_add_test(c, the_peak_is_told_by_module_and_by_tensor);
  tcase_add_test(c, a_tensor_may_go_with_another_thread);
  tcase_add_test(c, an_end_that_went_unseen_is_one_all_the_same);
  tcase_add_test(c, text_has_the_section_also_without_a_cuda_call);
  tcase_add_test(c, a_trace_without_tensors_has_no_section);
  tcase_add_test(c, tensors_of_a_process_go_with_it);
  tcase_add_test(c, a_payload_that_is_wrong_is_left_out);
  suite_add_tcase(s, c);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
