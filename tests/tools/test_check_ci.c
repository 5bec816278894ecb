/* test_check_ci.c: the examples of tools/examples/ci, as they are: pytest's, or plain python's
 * where pytest is missing, and the steps of the workflow. */
#include <stdio.h>
#include <string.h>

#include "tests/tools/command.h"

static void expect(const char *text, const char *words)
{
  ck_assert_msg(strstr(text, words) != NULL, "'%s' is not in\n%.3000s", words, text);
}

START_TEST(the_pytest_example_passes_for_the_mended_loop_alone)
{
  const char *example =
      "cp $WEIR_SOURCE/tools/examples/ci/* .; export WEIR;"
      " if python3 -c 'import pytest' 2>err; then set -- -m pytest -q; else set --; fi;"
      " PROGRAM=\"$BUILD/examples/%s 3\" python3 \"$@\" test_memory.py";
  sh_status(0, example, "fixed/train");
  outcome *o = sh_status(1, example, "train");
  expect(o->out, "EXCEEDED");
}
END_TEST

START_TEST(the_workflow_passes_for_the_mended_loop_alone)
{
  const char *job =
      "mkdir -p base bin; cp $WEIR_SOURCE/tools/examples/ci/* .;"
      " ln -sf $BUILD/examples/%s train; ln -sf $BUILD/examples/%s base/train;"
      " export PATH=${WEIR%%/*}:$PATH GITHUB_STEP_SUMMARY=summary; rm -f *.db summary;"
      " python3 check.py steps github.yml Trace Budget 'Against the base' Summary >job"
      " && sh job";
  sh_status(0, "cp $WEIR_SOURCE/tests/tools/check.py .");
  sh_status(0, job, "fixed/train", "train");
  sh_status(0, "python3 check.py junit weir.xml && grep -q '^## weir check' summary &&"
               " grep -q '^## weir diff' summary");
  outcome *o = sh_status(1, job, "train", "fixed/train");
  expect(o->out, "failed: Budget\n");
  expect(o->out, "failed: Against the base\n");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/check_ci");
  TCase *t = tcase_create("ci");
  tcase_set_timeout(t, 240);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, the_pytest_example_passes_for_the_mended_loop_alone);
  tcase_add_test(t, the_workflow_passes_for_the_mended_loop_alone);
  suite_add_tcase(s, t);
  return run_suite(s);
}
