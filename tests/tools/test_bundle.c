/* test_bundle.c: the relocatable archive needs nothing of the machine but glibc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define ALLOCS "SELECT count(*) FROM event WHERE kind = 1"
#define BUNDLE                                                                                     \
  "(cd $WEIR_SOURCE && tools/scripts/bundle.sh $BUILD 0.0 test ${CUDA_HOME:-/usr/local/cuda})"

static void unpack(void)
{
  sh_status(0, BUNDLE " && tar xzf $BUILD/weir-0.0-test.tar.gz && mv weir-0.0-test bundle && rm "
                      "$BUILD/weir-0.0-test.tar.gz");
}

START_TEST(a_bundle_needs_only_glibc_of_the_machine)
{
  unpack();
  outcome *o = sh_status(
      0, "for f in bundle/bin/weir bundle/lib/weir/*.so* bundle/lib/*.so* "
         "bundle/lib/weir/sim/*.so*; do "
         "LD_LIBRARY_PATH=bundle/lib/weir ldd $f | awk '/=>/ { print $1, $3 }'; done | sort -u |"
         " grep -vE '^(libc|libm|libdl|libpthread|librt)\\.so' | grep -v \" $PWD/bundle\" | grep "
         "-v ' bundle/' || true");
  ck_assert_str_eq(o->out, "");
}
END_TEST

/* The machine's own copies are hidden by a mount namespace, where making one is allowed. */
START_TEST(a_bundle_runs_where_the_packages_are_not)
{
  unpack();
  sh_status(0, "bundle/bin/weir run --sim -o t.db -- bundle/examples/train >/dev/null");
  outcome *o = sh("cat >hide.sh <<'EOF'\n"
                  "set -e\n"
                  "for f in $(ldconfig -p | awk "
                  "'/lib(sqlite3|jansson|dw|elf|unwind|lzma|bz2|zstd)\\.so/ { print $NF }'); do\n"
                  "  mount --bind /dev/null \"$(readlink -f $f)\"\n"
                  "done\n"
                  "bundle/bin/weir run --sim -o hidden.db -- bundle/examples/train >/dev/null\n"
                  "bundle/bin/weir report hidden.db\n"
                  "EOF\n"
                  "unshare -Urm true || exit 77; exec unshare -Urm sh hide.sh");
  if (o->status == 77 << 8) return;
  ck_assert_msg(o->status == 0, "%s%s", o->out, o->err);
  ck_assert_int_eq(ask("hidden.db", ALLOCS), ask("t.db", ALLOCS));
}
END_TEST

START_TEST(check_gpu_in_a_bundle_says_when_there_is_none)
{
  unpack();
  outcome *o = sh_status(0, "LD_LIBRARY_PATH= bundle/check-gpu.sh");
  ck_assert_msg(strstr(o->out, "no GPU here") || strstr(o->out, "0 differences"), "%s", o->out);
}
END_TEST

/* From another folder, by the bundle's own libraries alone; the software device in the GPU's place.
 */
START_TEST(check_gpu_in_a_bundle_walks_the_engines_rows)
{
  unpack();
  outcome *o = sh_status(
      0, "mkdir away && mv bundle away/b && cd / && WEIR_BLAS=builtin RESULTS=$OLDPWD/r.md "
         "WEIR_SIM_TRIAL=$OLDPWD/away/b/lib/weir/sim LD_LIBRARY_PATH= $OLDPWD/away/b/check-gpu.sh "
         "engine");
  ck_assert_msg(strstr(o->out, "35 passed, 0 failed") && strstr(o->out, "0 differences"), "%s",
                o->out);
  (void)sh_status(0, "grep -q '^| 35 allocator hooks | ok |' r.md && grep -q '^| pinned | ' r.md");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/bundle");
  TCase *t = tcase_create("bundle");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, a_bundle_needs_only_glibc_of_the_machine);
  tcase_add_test(t, a_bundle_runs_where_the_packages_are_not);
  tcase_add_test(t, check_gpu_in_a_bundle_says_when_there_is_none);
  tcase_add_test(t, check_gpu_in_a_bundle_walks_the_engines_rows);
  suite_add_tcase(s, t);
  return run_suite(s);
}
