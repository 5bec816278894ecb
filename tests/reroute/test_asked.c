/* test_asked.c: what a user may ask of the caches, and what the presence of other tools asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

#define RUN     "$WEIR run -o t.db --sim "
#define SUBJECT "$BUILD/tests/reroute/subject "
#define HITS    "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64"

static unsigned times(const char *text, const char *part)
{
  unsigned n = 0;
  for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
    n++;
  return n;
}

/* ---- other tools ------------------------------------------------------------------------------
 */

static const struct tool {
  const char *with, *tool; /* NULL: none that matters */
} tools[] = {
    {"CUDA_INJECTION64_PATH=/opt/cuda/compute-sanitizer/libsanitizer-collection.so",
     "compute-sanitizer"},
    {"NV_SANITIZER_INJECTION_PORT_BASE=49152", "compute-sanitizer"},
    {"CUDA_MEMCHECK=1", "cuda-memcheck"},
    {"CUDA_INJECTION64_PATH=/opt/sanitizer-results/libcupti_trace.so", NULL},
    {"NV_COMPUTE_SANITIZER_LOCAL_CONNECTION_OVERRIDE=uds", NULL},
};

START_TEST(under_a_tool_that_watches_memory_all_is_observed_only)
{
  const struct tool *t = &tools[_i];
  char sentence[128];
  const outcome *o = sh_status(0, "%s " RUN "--mode=strict -- " SUBJECT "churn", t->with);
  ck_assert_str_eq(o->out, "done\n");
  (void)snprintf(sentence, sizeof sentence, "%s is at work in this process: it is observed only",
                 t->tool ? t->tool : "");
  ck_assert_uint_eq(times(o->err, sentence), t->tool != NULL);
  ck_assert_int_eq(ask("t.db", HITS), t->tool ? 0 : 3);
  char query[256];
  (void)snprintf(query, sizeof query, "SELECT count(*) FROM note WHERE text = '%s'", sentence);
  ck_assert_int_eq(ask("t.db", query), t->tool != NULL);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM process WHERE mode = 'strict'"), !t->tool);
}
END_TEST

START_TEST(who_only_observes_is_told_of_no_tool)
{
  const outcome *o = sh_status(0, "CUDA_MEMCHECK=1 " RUN "--mode=observe -- " SUBJECT "churn");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM note"), 0);
}
END_TEST

START_TEST(under_cuda_gdb_all_is_observed_only)
{
  const outcome *o =
      sh_status(0, RUN "--mode=relaxed -- $BUILD/tests/reroute/tracer cuda-gdb " SUBJECT "churn");
  ck_assert_uint_eq(times(o->err, "cuda-gdb is at work"), 1);
  ck_assert_int_eq(ask("t.db", HITS), 0);
  o = sh_status(0, RUN "--mode=relaxed -- $BUILD/tests/reroute/tracer gdb " SUBJECT "churn");
  ck_assert_str_eq(o->err, "");
  ck_assert_int_eq(ask("t.db", HITS), 3);
}
END_TEST

START_TEST(a_debugger_that_told_the_driver_is_noticed_before_the_first_cache)
{
  const outcome *o = sh_status(0, RUN "--mode=strict -- " SUBJECT "debugged");
  ck_assert_uint_eq(times(o->err, "cuda-gdb is at work"), 1);
  ck_assert_int_eq(ask("t.db", HITS), 0);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM note"), 1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/asked");
  TCase *c = tcase_create("asked");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, under_a_tool_that_watches_memory_all_is_observed_only, 0,
                      (int)(sizeof tools / sizeof *tools));
  tcase_add_test(c, who_only_observes_is_told_of_no_tool);
  tcase_add_test(c, under_cuda_gdb_all_is_observed_only);
  tcase_add_test(c, a_debugger_that_told_the_driver_is_noticed_before_the_first_cache);
  suite_add_tcase(s, c);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
