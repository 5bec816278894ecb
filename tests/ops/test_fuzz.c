/* test_fuzz.c: random operations are what NumPy calculates in a wider dtype (fuzz.py says to which
 * bounds): 5,000 cases on the cpu and 5,000 on the software device, always the same ones; another
 * seed in WEIR_FUZZ_SEED. */
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

/* A Python that has NumPy: the one on the path, or Debian's (make deps-all). */
#define PYTHON                                                                                     \
  "$(for p in python3 /usr/bin/python3; do $p -c 'import numpy' 2>/dev/null && echo $p && break; " \
  "done)"

START_TEST(random_operations_are_what_numpy_calculates)
{
  const char *device = _i ? "cuda" : "cpu", *seed = getenv("WEIR_FUZZ_SEED");
  const outcome *o =
      sh("python=" PYTHON "; test -n \"$python\" || { echo no NumPy: make deps-all; exit 1; }\n"
         "%s PYTHONDONTWRITEBYTECODE=1 $python $WEIR_SOURCE/tests/ops/fuzz.py "
         "$BUILD/lib/libweir.so --device %s --cases 5000 --seed %d",
         _i ? "LD_LIBRARY_PATH=$BUILD/lib/sim" : "", device, seed ? atoi(seed) : 1);
  ck_assert_msg(o->status == 0, "%s%s", o->out, o->err);
  ck_assert_ptr_nonnull(strstr(o->out, "572 promotions and 5000 cases, 0 differ"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("ops/fuzz");
  TCase *t = tcase_create("fuzz");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, random_operations_are_what_numpy_calculates, 0, 2);
  suite_add_tcase(s, t);
  return run_suite(s);
}
