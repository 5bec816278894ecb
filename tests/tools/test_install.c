/* test_install.c: what is installed, and then moved, still finds its siblings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define ALLOCS "SELECT count(*) FROM event WHERE kind = 1"

/* What make install and make bundle run, after a build: PREFIX and DESTDIR follow. Not make itself,
 * which would build again beside the suites. */
#define INSTALL "here=$PWD; cd $WEIR_SOURCE; tools/scripts/install.sh $BUILD "
#define VERSION " $($WEIR version | sed -n 's/^weir //p') && cd $here"

START_TEST(installed_programs_find_their_siblings)
{
  sh_status(0, INSTALL "/opt/weir $here/root" VERSION);
  sh_status(0, "mv root/opt/weir moved && moved/bin/weir run --sim -o t.db -- $VICTIM call");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  sh_status(0, "moved/bin/weir report t.db >/dev/null");
  sh_status(0, "test -f moved/share/man/man1/weir.1 && test -f moved/lib/sim/libcuda.so.1");
}
END_TEST

START_TEST(an_installed_preload_library_finds_its_collector)
{
  sh_status(0, INSTALL "/opt/weir $here/root" VERSION);
  adopt_collectors();
  sh_status(0,
            "LD_PRELOAD=$PWD/root/opt/weir/lib/libweir-preload.so LD_LIBRARY_PATH=$BUILD/lib/sim "
            "WEIR_OUTPUT=$PWD/t.db $VICTIM call");
  wait_for_collectors();
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
}
END_TEST

START_TEST(a_program_is_built_against_what_is_installed)
{
  sh_status(0, INSTALL "$here/there ''" VERSION);
  sh_status(
      0,
      "cat >p.c <<'EOF'\n"
      "#include <weir.h>\n"
      "#include <stdio.h>\n"
      "int main(void) { return puts(weir_version()) < 0; }\n"
      "EOF\n"
      "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig;"
      "cc -std=c99 -Wall -Wextra -Wpedantic -Werror p.c -o p $(pkg-config --cflags --libs weir) &&"
      "c++ -x c++ -Wall -Wextra -Werror p.c -o pp $(pkg-config --cflags --libs weir)");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib ./p");
  ck_assert_str_eq(o->out, sh_status(0, "$WEIR version | sed -n 's/^weir //p'")->out);
}
END_TEST

START_TEST(the_allocator_example_is_built_against_what_is_installed)
{
  sh_status(0, INSTALL "$here/there ''" VERSION);
  sh_status(0,
            "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig;"
            "cc -std=c99 -Wall -Wextra -Wpedantic -Werror $WEIR_SOURCE/tools/examples/memory.c -o "
            "memory $(pkg-config --cflags --libs weir)");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib:there/lib/sim ./memory");
  ck_assert_str_eq(o->out, "as it should be: CUDA out of memory.\n0 MiB live, 64 MiB cached\n");
  o = sh("rm there/lib/libweir-cuda.so && LD_LIBRARY_PATH=there/lib:there/lib/sim ./memory");
  ck_assert_int_eq(o->status, 1 << 8);
  ck_assert_ptr_nonnull(strstr(o->err, "no CUDA: CUDA is not available: libweir-cuda.so"));
}
END_TEST

START_TEST(uninstall_leaves_nothing)
{
  sh_status(0, INSTALL "/usr $here/root" VERSION
                       " && $WEIR_SOURCE/tools/scripts/install.sh --remove /usr $PWD/root");
  ck_assert_str_eq(sh_status(0, "find root ! -type d")->out, "");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/install");
  TCase *t = tcase_create("install");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, installed_programs_find_their_siblings);
  tcase_add_test(t, an_installed_preload_library_finds_its_collector);
  tcase_add_test(t, a_program_is_built_against_what_is_installed);
  tcase_add_test(t, the_allocator_example_is_built_against_what_is_installed);
  tcase_add_test(t, uninstall_leaves_nothing);
  suite_add_tcase(s, t);
  return run_suite(s);
}
