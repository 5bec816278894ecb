/* test_agreement.c: what several outputs of weir print of one trace is one number:
 * tests/reports/agreement.py over traces of random programs and of ones with ranges and tensors,
 * which have all figures between them. */
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

static const char *const programs[] = {"e2e/random_caller 5 2 300 counts",
                                       "e2e/graph_caller random 1", "victims/nvtx/nests 3 3 100",
                                       "engine/tensors"};
enum { PROGRAMS = sizeof programs / sizeof *programs };

START_TEST(every_output_prints_one_number)
{
  sh_status(0,
            "$WEIR run --force --sim --hash=on -o t.db --device-times=all --"
            " $BUILD/tests/%s",
            programs[_i]);
  sh_status(0, "python3 $WEIR_SOURCE/tests/reports/agreement.py t.db $WEIR compared");
  sh_status(0, "python3 $WEIR_SOURCE/tests/reports/shape.py t.db $WEIR");
}
END_TEST

/* In one of the traces before; the figures that are listed are read off SCHEMA.md. */
START_TEST(every_figure_of_the_schema_was_compared)
{
  sh_status(0, "test $(wc -l <compared) = %d", (int)PROGRAMS);
  const outcome *o =
      sh_status(0, "python3 $WEIR_SOURCE/tests/reports/agreement.py --schema compared");
  ck_assert_int_gt(atoi(o->out), 200);
}
END_TEST

/* One that only the JSON prints is named. */
START_TEST(a_figure_that_is_not_compared_is_a_failure)
{
  sh_status(0, "(cat compared; echo '{\"waits.judged_calls\": 1}') >all;"
               " sed 's/\"waits.judged_calls\": [2-9]/\"waits.judged_calls\": 1/' all >less");
  const outcome *o = sh_status(1, "python3 $WEIR_SOURCE/tests/reports/agreement.py --schema less");
  ck_assert_msg(strstr(o->out, "SCHEMA.md lists waits.judged_calls"), "%s", o->out);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/agreement");
  TCase *t = tcase_create("agreement");
  tcase_set_timeout(t, 0);
  tcase_add_unchecked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, every_output_prints_one_number, 0, PROGRAMS);
  tcase_add_test(t, every_figure_of_the_schema_was_compared);
  tcase_add_test(t, a_figure_that_is_not_compared_is_a_failure);
  suite_add_tcase(s, t);
  return run_suite(s);
}
