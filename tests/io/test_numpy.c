/* test_numpy.c: files that NumPy writes are read, and files of ours are what NumPy reads; so with
 * the safetensors package where there is one. By the library itself, from Python. */
#include <string.h>
#include "tests/tools/command.h"

/* A Python that has NumPy: the one on the path, or Debian's (make deps-all). */
#define PYTHON                                                                                     \
  "$(for p in python3 /usr/bin/python3; do $p -c 'import numpy' 2>/dev/null && echo $p && break; " \
  "done)"

START_TEST(numpy_reads_ours_and_we_read_numpys)
{
  const outcome *o = sh_status(
      0, "python=" PYTHON "; test -n \"$python\" || { echo no NumPy: make deps-all >&2; exit 1; }\n"
         "PYTHONDONTWRITEBYTECODE=1 $python $WEIR_SOURCE/tests/io/numpy_files.py "
         "$BUILD/lib/libweir.so .");
  ck_assert_ptr_nonnull(strstr(o->out, "npy: 80 of ours, 1200 of theirs"));
  ck_assert_ptr_nonnull(strstr(o->out, "safetensors: "));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/numpy");
  TCase *t = tcase_create("numpy");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, numpy_reads_ours_and_we_read_numpys);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
