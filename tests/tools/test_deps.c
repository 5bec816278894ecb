/* test_deps.c: what a machine without a CUDA Toolkit gets: its pieces from PyPI (a pip of the
 * test's own stands in for the network here), and names of the driver's functions to link against,
 * whatever the Toolkit lacks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tools/command.h"

/* A python3 that has a pip: it notes how it was called, fails where the test says so, and unpacks
 * what wheels hold. */
static void stand_in_pip(void)
{
  sh_status(0, "mkdir bin && cat >bin/python3 <<'EOF'\n"
               "#!/bin/sh\n"
               "[ \"$1 $2 $3\" = '-m pip --version' ] && exit 0\n"
               "[ \"$1 $2 $3\" = '-m pip install' ] || exec /usr/bin/python3 \"$@\"\n"
               "echo \"$@\" >>calls\n"
               "[ ! -e refuse ] || { echo 'no network here' >&2; exit 1; }\n"
               "while [ \"$1\" != --target ]; do shift; done\n"
               "home=$2/nvidia/cu13\n"
               "mkdir -p $home/bin $home/include $home/lib\n"
               "touch $home/include/cuda.h $home/lib/libcudart.so.13 $home/lib/libcupti.so.13\n"
               "printf '#!/bin/sh\\n' >$home/bin/nvcc && chmod +x $home/bin/nvcc\n"
               "EOF\n"
               "chmod +x bin/python3");
}

#define DEPS "env -u CUDA_HOME PATH=$PWD/bin:$PATH $WEIR_SOURCE/tools/scripts/deps.sh "

START_TEST(a_toolkit_is_fetched_where_none_is)
{
  stand_in_pip();
  outcome *o = sh_status(0, DEPS "install build /nowhere $PWD/toolkit");
  ck_assert_ptr_nonnull(strstr(o->out, "no CUDA Toolkit found"));
  sh_status(0, "grep -q -e --require-hashes calls && grep -q scripts/toolkit.txt calls");
  sh_status(0, "cd toolkit/nvidia/cu13/lib64 && test -e libcudart.so && test -e libcupti.so");
  sh_status(0, DEPS "check cc $PWD/toolkit/nvidia/cu13");
}
END_TEST

START_TEST(a_fetched_toolkit_is_fetched_once)
{
  stand_in_pip();
  sh_status(0, DEPS "install build /nowhere $PWD/toolkit");
  outcome *o = sh_status(0, DEPS "install build /nowhere $PWD/toolkit");
  ck_assert_str_eq(o->out, "");
  o = sh_status(0, "wc -l <calls");
  ck_assert_int_eq(atoi(o->out), 1);
}
END_TEST

START_TEST(a_fetch_that_fails_says_why_then_is_tried_again)
{
  stand_in_pip();
  outcome *o = sh_status(1, "touch refuse; " DEPS "install build /nowhere $PWD/toolkit");
  ck_assert_ptr_nonnull(strstr(o->err, "no network here"));
  ck_assert_ptr_nonnull(strstr(o->err, "set CUDA_HOME to where one is"));
  sh_status(0, "rm refuse; " DEPS "install build /nowhere $PWD/toolkit");
}
END_TEST

START_TEST(a_toolkit_that_the_user_names_is_not_replaced)
{
  stand_in_pip();
  outcome *o =
      sh_status(1, "CUDA_HOME=/nowhere PATH=$PWD/bin:$PATH "
                   "$WEIR_SOURCE/tools/scripts/deps.sh install build /nowhere $PWD/toolkit");
  ck_assert_ptr_nonnull(strstr(o->err, "/nowhere, which CUDA_HOME says"));
  sh_status(1, "test -e toolkit");
}
END_TEST

START_TEST(a_missing_toolkit_ends_a_build_in_one_sentence)
{
  outcome *o =
      sh_status(1, "env -u CUDA_HOME $WEIR_SOURCE/tools/scripts/deps.sh check cc /nowhere");
  ck_assert_ptr_nonnull(strstr(o->err, "run 'make deps'"));
  ck_assert_ptr_eq(strchr(o->err, '\n'), o->err + strlen(o->err) - 1);
}
END_TEST

START_TEST(a_bundle_without_its_tool_is_refused_before_a_build)
{
  outcome *o =
      sh_status(2, "mkdir tools && for t in sh dash bash make awk cat sed nproc uname tr "
                   "grep readlink realpath find dirname; do ln -s $(command -v $t) tools/; "
                   "done; cd $WEIR_SOURCE && PATH=$OLDPWD/tools make O=$OLDPWD/none bundle");
  ck_assert_ptr_nonnull(strstr(o->err, "a bundle needs patchelf: run 'make deps-all' or install"));
  sh_status(1, "test -e none");
}
END_TEST

START_TEST(no_rule_names_a_variable_before_it_is_set)
{
  sh_status(0, "cd $WEIR_SOURCE && make lint-make");
}
END_TEST

START_TEST(a_bench_row_names_the_program_that_is_not_built)
{
  outcome *o = sh("$BUILD/bench/bench $PWD $PWD/out.json alloc-hit");
  ck_assert_ptr_nonnull(strstr(o->out, "bench/alloc cannot be run: is it built?"));
}
END_TEST

/* A Toolkit with neither stubs nor a libcudart.so, as wheels are. */
START_TEST(programs_link_where_a_toolkit_has_no_stubs)
{
  sh_status(0, "mkdir -p home/lib && ln -s ${CUDA_HOME:-/usr/local/cuda}/include home/include &&"
               " ln -s $BUILD/lib/sim/libcudart.so.13 home/lib/");
  sh_status(0, "$WEIR_SOURCE/tools/scripts/link-stubs.sh cc home home/lib stubs");
  sh_status(0, "cat >main.c <<'EOF'\n"
               "#include <cuda.h>\n#include <cudaProfiler.h>\n#include <cuda_runtime_api.h>\n"
               "int main(void)\n{\n  CUlinkState link;\n  CUdeviceptr p;\n  void *q;\n"
               "  return cuInit(0) || cuMemAlloc(&p, 1) || cuProfilerStop() ||\n"
               "         cuLinkCreate(0, 0, 0, &link) || cudaMalloc(&q, 1);\n}\nEOF\n"
               "cc -Ihome/include main.c -Lstubs -lcudart -lcuda -o main");
  sh_status(0, "readelf -d main | grep -q 'NEEDED.*libcuda.so.1' &&"
               " readelf -d main | grep -q 'NEEDED.*libcudart.so.13'");
}
END_TEST

START_TEST(no_link_asks_a_toolkit_for_its_stubs)
{
  outcome *o = sh("cd $WEIR_SOURCE && grep -rnE '/stubs +-lcuda|L\\$\\(CUDA_LIB\\)' --include=*.mk"
                  " cuda interpose reports tools tests");
  ck_assert_str_eq(o->out, "");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/deps");
  TCase *t = tcase_create("toolkit");
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, a_toolkit_is_fetched_where_none_is);
  tcase_add_test(t, a_fetched_toolkit_is_fetched_once);
  tcase_add_test(t, a_fetch_that_fails_says_why_then_is_tried_again);
  tcase_add_test(t, a_toolkit_that_the_user_names_is_not_replaced);
  tcase_add_test(t, a_missing_toolkit_ends_a_build_in_one_sentence);
  tcase_add_test(t, a_bundle_without_its_tool_is_refused_before_a_build);
  tcase_add_test(t, no_rule_names_a_variable_before_it_is_set);
  tcase_add_test(t, a_bench_row_names_the_program_that_is_not_built);
  tcase_add_test(t, programs_link_where_a_toolkit_has_no_stubs);
  tcase_add_test(t, no_link_asks_a_toolkit_for_its_stubs);
  suite_add_tcase(s, t);
  return run_suite(s);
}
