/* test_patched.c: a program that patches our functions (patched.c) finds them to be as any
 * patcher wants them, sees each call, and its memory and its trace are as without the patches. */
#include <string.h>
#include "tests/tools/command.h"

static const char *const modes[] = {"observe", "strict", "relaxed"};
static const char *const jumps[] = {"near", "far"};

enum { RUNS = 6, NOT_ALLOWED = 77 };

START_TEST(a_patched_function_notifies_its_hook_of_each_call)
{
  const char *mode = modes[_i / 2];
  const outcome *o = sh("WEIR_SIM_MEMORY=1G $WEIR run -o t.db --sim --mode=%s -- "
                        "$BUILD/tests/reroute/patched %s",
                        mode, jumps[_i % 2]);
  if (o->status == NOT_ALLOWED << 8) return;
  ck_assert_msg(o->status == 0, "ended with %x: %s%s", o->status, o->out, o->err);
  ck_assert_str_eq(o->out, "cudaMalloc 5\ncudaMallocManaged 5\ncudaMallocAsync 5\ncudaFreeAsync 5\n"
                           "cudaFree 10\ncuMemAlloc_v2 5\ncuMemAllocManaged 5\ncuMemFree_v2 10\n"
                           "dlsym 5\nmemory right, errors 0\n");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 1"), 25);
  long long cached = ask("t.db", "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64");
  ck_assert_int_eq(cached > 0, strcmp(mode, "observe") != 0);
}
END_TEST

/* What patches the driver's functions alone counts on the runtime's calls of them: a block out
 * of a cache is none that it may miss, nor is a copy that could be staged. */
START_TEST(a_patched_function_of_the_driver_is_notified_of_the_runtimes_calls)
{
  const char *mode = modes[_i / 2];
  const outcome *o = sh("WEIR_STAGING=on WEIR_SIM_MEMORY=1G $WEIR run -o t.db --sim --mode=%s -- "
                        "$BUILD/tests/reroute/patched %s driver",
                        mode, jumps[_i % 2]);
  if (o->status == NOT_ALLOWED << 8) return;
  ck_assert_msg(o->status == 0, "ended with %x: %s%s", o->status, o->out, o->err);
  ck_assert_str_eq(o->out, "cuMemAlloc_v2 10\ncuMemAllocPitch_v2 5\ncuMemHostAlloc 5\n"
                           "cuMemcpyHtoD_v2 5\ncuMemcpyDtoH_v2 5\ncuMemFreeHost 5\n"
                           "cuMemFree_v2 15\nmemory right, errors 0\n");
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event WHERE kind = 1"), 20);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM event e JOIN api a ON a.id = e.api"
                               " WHERE kind IN (1, 2) AND a.name NOT LIKE 'cuda%%'"),
                   0);
  long long cached = ask("t.db", "SELECT count(*) FROM event WHERE kind = 1 AND flags & 64");
  if (strcmp(mode, "observe") == 0)
    ck_assert_int_eq(cached, 0);
  else
    ck_assert_int_ge(cached, 15); /* all but the first of each kind, and the pitch to be learnt */
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reroute/patched");
  TCase *c = tcase_create("patched");
  tcase_add_checked_fixture(c, enter_scratch, leave_scratch);
  tcase_set_timeout(c, 0);
  tcase_add_loop_test(c, a_patched_function_notifies_its_hook_of_each_call, 0, RUNS);
  tcase_add_loop_test(c, a_patched_function_of_the_driver_is_notified_of_the_runtimes_calls, 0,
                      RUNS);
  suite_add_tcase(s, c);
  return run_suite(s);
}
