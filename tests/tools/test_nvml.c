/* test_nvml.c: when NVML is asked, what of its answers is kept, and whose memory it is.
 *
 * The sampler alone, on the stand-in of tests/e2e/nvml.c, which is loaded here ahead of it and so
 * found by its name; time is a number of the test's, and the importer a list. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/tools/command.h"
#include "tools/weir/collect/nvml.h"

#define SECOND UINT64_C(1000000000)

static importer_usage last_kept;
static unsigned kept;
static weir_status importer_says;

static weir_status keep_usage(void *context, const importer_usage *u)
{
  (void)context;
  if (!importer_says) last_kept = *u, kept++;
  return importer_says;
}

static bool is_pid_7(void *context, unsigned pid)
{
  (void)context;
  return pid == 7;
}

static void write_answer(const char *text)
{
  FILE *f = fopen("answer", "w");
  ck_assert_ptr_nonnull(f);
  ck_assert_int_ge(fputs(text, f), 0);
  ck_assert_int_eq(fclose(f), 0);
}

static nvml_sampler *new_sampler(const char *answer)
{
  char path[4096];
  kept = 0;
  importer_says = WEIR_OK;
  write_answer(answer);
  ck_assert_int_eq(setenv("WEIR_TEST_NVML", "answer", 1), 0);
  (void)snprintf(path, sizeof path, "%s/tests/e2e/nvml/libnvidia-ml.so.1", getenv("WEIR_BUILD"));
  ck_assert_msg(dlopen(path, RTLD_NOW | RTLD_LOCAL) != NULL, "%s", dlerror());
  nvml_sampler *n = nvml_sampler_new();
  ck_assert_ptr_nonnull(n);
  return n;
}

static weir_status ask_at(nvml_sampler *n, uint64_t now, bool last)
{
  return nvml_sampler_ask(n, keep_usage, now, last, is_pid_7, NULL);
}

START_TEST(samples_are_a_second_apart_and_further_behind_1024)
{
  nvml_sampler *n = new_sampler("0 3b 0 1000 10 20");
  uint64_t now = 5, week = 7 * 24 * 3600 * SECOND;
  unsigned asked = 0;
  while (now < week) {
    ck_assert_int_eq(ask_at(n, now, false), WEIR_OK);
    uint64_t due = nvml_sampler_due(n);
    asked++;
    if (asked <= 1024) ck_assert_uint_eq(due - now, SECOND);
    if (asked == 1025) ck_assert_uint_eq(due - now, 2 * SECOND);
    ck_assert_uint_gt(due, now);
    now = due;
  }
  ck_assert_uint_lt(asked, 8000);
  ck_assert_uint_eq(kept, 1); /* it was always the same */
  nvml_sampler_free(n);
}
END_TEST

START_TEST(what_changed_is_kept_and_the_last_in_any_case)
{
  nvml_sampler *n = new_sampler("0 3b 0 1000 10 20\n1 1a 2 5000 0 1");
  (void)ask_at(n, 1, false);
  ck_assert_uint_eq(kept, 2);
  ck_assert_str_eq(last_kept.bus, "0001:1A:02.0");
  ck_assert_uint_eq(last_kept.total, 5000);
  write_answer("0 3b 0 1000 10 21\n1 1a 2 5000 0 1");
  (void)ask_at(n, 2, false);
  ck_assert_uint_eq(kept, 3);
  ck_assert_str_eq(last_kept.bus, "0000:3B:00.0");
  ck_assert_uint_eq(last_kept.used, 21);
  ck_assert_uint_eq(last_kept.reserved, 10);
  ck_assert_uint_eq(last_kept.time, 2);
  (void)ask_at(n, 3, false);
  ck_assert_uint_eq(kept, 3);
  (void)ask_at(n, 4, true);
  ck_assert_uint_eq(kept, 5);
  nvml_sampler_free(n);
}
END_TEST

START_TEST(what_could_not_be_kept_is_tried_again)
{
  nvml_sampler *n = new_sampler("0 3b 0 1000 10 20");
  importer_says = WEIR_ENOMEM;
  ck_assert_int_eq(ask_at(n, 1, false), WEIR_ENOMEM);
  importer_says = WEIR_OK;
  ck_assert_int_eq(ask_at(n, 2, false), WEIR_OK);
  ck_assert_uint_eq(kept, 1);
  nvml_sampler_free(n);
}
END_TEST

/* Before one of ours is among them their numbers may be another pid namespace's. */
START_TEST(processes_are_told_apart_once_one_of_ours_was_among_them)
{
  nvml_sampler *n = new_sampler("0 3b 0 1000 10 20 99 5");
  (void)ask_at(n, 1, false);
  ck_assert_uint_eq(last_kept.of_run, WEIR_USAGE_UNKNOWN);
  ck_assert_uint_eq(last_kept.of_others, WEIR_USAGE_UNKNOWN);
  write_answer("0 3b 0 1000 10 20 99 5 7 8 98 2");
  (void)ask_at(n, 2, false);
  ck_assert_uint_eq(last_kept.of_run, 8);
  ck_assert_uint_eq(last_kept.of_others, 7);
  write_answer("0 3b 0 1000 10 12 99 5 98 2");
  (void)ask_at(n, 3, false);
  ck_assert_uint_eq(last_kept.of_run, 0);
  ck_assert_uint_eq(last_kept.of_others, 7);
  write_answer("0 3b 0 1000 10 12 99 5 98 18446744073709551615"); /* NVML does not say */
  (void)ask_at(n, 4, false);
  ck_assert_uint_eq(last_kept.of_others, WEIR_USAGE_UNKNOWN);
  nvml_sampler_free(n);
}
END_TEST

START_TEST(off_and_a_library_that_fails_are_asked_nothing)
{
  nvml_sampler *n = new_sampler(""); /* nvmlInit fails */
  (void)ask_at(n, 1, false);
  ck_assert_uint_eq(nvml_sampler_due(n), UINT64_MAX);
  nvml_sampler_free(n);
  ck_assert_int_eq(setenv("WEIR_NVML", "off", 1), 0);
  n = new_sampler("0 3b 0 1000 10 20");
  ck_assert_uint_eq(nvml_sampler_due(n), UINT64_MAX);
  (void)ask_at(n, 1, true);
  ck_assert_uint_eq(kept, 0);
  nvml_sampler_free(n);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("nvml");
  TCase *t = tcase_create("samples");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, samples_are_a_second_apart_and_further_behind_1024);
  tcase_add_test(t, what_changed_is_kept_and_the_last_in_any_case);
  tcase_add_test(t, what_could_not_be_kept_is_tried_again);
  tcase_add_test(t, processes_are_told_apart_once_one_of_ours_was_among_them);
  tcase_add_test(t, off_and_a_library_that_fails_are_asked_nothing);
  suite_add_tcase(s, t);
  return run_suite(s);
}
