/* test_install.c: what is installed, bundled or moved still finds its siblings, and needs nothing
 * of the build tree or, in the bundle's case, of the machine but glibc. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/tools/command.h"

#define ALLOCS "SELECT count(*) FROM event WHERE kind = 1"

/* make, in the source tree, quietly; not a part of the make that runs the suites. */
#define MAKE "env -u MAKEFLAGS -u MAKELEVEL make -s -C $WEIR_SOURCE O=$BUILD "

START_TEST(installed_programs_find_their_siblings)
{
  sh_status(0, "BUILD=$BUILD; " MAKE "install PREFIX=/opt/weir DESTDIR=$PWD/root");
  sh_status(0, "mv root/opt/weir moved && moved/bin/weir run --sim -o t.db -- $VICTIM call");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
  sh_status(0, "moved/bin/weir report t.db >/dev/null");
  sh_status(0, "test -f moved/share/man/man1/weir.1 && test -f moved/lib/sim/libcuda.so.1");
}
END_TEST

START_TEST(an_installed_preload_library_finds_its_collector)
{
  sh_status(0, MAKE "install PREFIX=/opt/weir DESTDIR=$PWD/root");
  sh_status(0,
            "mkfifo over; exec 3<>over; : start; "
            "LD_PRELOAD=$PWD/root/opt/weir/lib/libweir-preload.so LD_LIBRARY_PATH=$BUILD/lib/sim "
            "WEIR_OUTPUT=$PWD/t.db $VICTIM call");
  /* the collector's last act on the trace is to finish it */
  sh_status(0, "until sqlite3 t.db \"SELECT 1 FROM meta WHERE key = 'finished' AND value = 1\" "
               "2>/dev/null | grep -q 1; "
               "do :; done");
  ck_assert_int_eq(ask("t.db", ALLOCS), 1);
}
END_TEST

START_TEST(a_program_is_built_against_what_is_installed)
{
  sh_status(0, MAKE "install PREFIX=$PWD/there");
  sh_status(0, "printf '#include <weir.h>\\n#include <stdio.h>\\nint main(void) { return "
               "puts(weir_version()) < 0; }\\n' >p.c");
  sh_status(
      0,
      "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig;"
      "cc -std=c99 -Wall -Wextra -Wpedantic -Werror p.c -o p $(pkg-config --cflags --libs weir) &&"
      "c++ -x c++ -Wall -Wextra -Werror p.c -o pp $(pkg-config --cflags --libs weir)");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib ./p");
  ck_assert_str_eq(o->out, sh_status(0, "$WEIR version | sed -n 's/^weir //p'")->out);
}
END_TEST

START_TEST(uninstall_leaves_nothing)
{
  sh_status(0, MAKE "install PREFIX=/usr DESTDIR=$PWD/root && " MAKE
                    "uninstall PREFIX=/usr DESTDIR=$PWD/root");
  ck_assert_str_eq(sh_status(0, "find root ! -type d")->out, "");
}
END_TEST

int main(void)
{ return "
               "puts(weir_version()) < 0; }\\n' >p.c");
  sh_status(
      0,
      "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig;"
      "cc -std=c99 -Wall -Wextra -Wpedantic -Werror p.c -o p $(pkg-config --cflags --libs weir) &&"
      "c++ -x c++ -Wall -Wextra -Werror p.c -o pp $(pkg-config --cflags --libs weir)");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib ./p");
  ck_assert_str_eq(o->out, sh_status(0, "$WEIR version | sed -n 's/^weir //p'")->out);
}
END_TEST

START_TEST(uninstall_leaves_nothing)
{
  sh_status(0, MAKE "install PREFIX=/usr DESTDIR=$PWD/root && " MAKE
                    "uninstall PREFIX=/usr DESTDIR=$PWD/root");
  ck_assert_str_eq(sh_status(0, "find root ! -type d")->out, "");
}
END_TEST

int main(void)
{ return "
               "puts(weir_version()) < 0; }\\n' >p.c");
  sh_status(
      0,
      "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig;"
      "cc -std=c99 -Wall -Wextra -Wpedantic -Werror p.c -o p $(pkg-config --cflags --libs weir) &&"
      "c++ -x c++ -Wall -Wextra -Werror p.c -o pp $(pkg-config --cflags --libs weir)");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib ./p");
  ck_assert_str_eq(o->out, sh_status(0, "$WEIR version | sed -n 's/^weir //p'")->out);
}
END_TEST

START_TEST(uninstall_leaves_nothing)
{
  sh_status(0, MAKE "install PREFIX=/usr DESTDIR=$PWD/root && " MAKE
                    "uninstall PREFIX=/usr DESTDIR=$PWD/root");
  ck_assert_str_eq(sh_status(0, "find root ! -type d")->out, "");
}
END_TEST

int main(void)
{ return "
               "puts(weir_version()) < 0; }\\n' >p.c");
  sh_status(
      0,
      "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig;"
      "cc -std=c99 -Wall -Wextra -Wpedantic -Werror p.c -o p $(pkg-config --cflags --libs weir) &&"
      "c++ -x c++ -Wall -Wextra -Werror p.c -o pp $(pkg-config --cflags --libs weir)");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib ./p");
  ck_assert_str_eq(o->out, sh_status(0, "$WEIR version | sed -n 's/^weir //p'")->out);
}
END_TEST

START_TEST(uninstall_leaves_nothing)
{
  sh_status(0, MAKE "install PREFIX=/usr DESTDIR=$PWD/root && " MAKE
                    "uninstall PREFIX=/usr DESTDIR=$PWD/root");
  ck_assert_str_eq(sh_status(0, "find root ! -type d")->out, "");
}
END_TEST

/* ---- bundle ------------------------------------------------------------------------------------
 */

static void unpack(void)
{
  if (sh("command -v patchelf >/dev/null")->status != 0) exit(0); /* make deps-all brings it */
  sh_status(0, MAKE "bundle && tar xzf $BUILD/weir-*.tar.gz && mv weir-*-* bundle");
}

START_TEST(a_bundle_needs_only_glibc_of_the_machine)
{
  unpack();
  outcome *o = sh_status(
      0, "for f in bundle/bin/weir bundle/lib/weir/* bundle/lib/*.so* bundle/lib/sim/*.so*; do "
         "LD_LIBRARY_PATH=bundle/lib/weir ldd $f | awk '/=>/ { print $1, $3 }'; done | sort -u |"
         " grep -vE '^(libc|libm|libdl|libpthread|librt)\\.so' | grep -v \" $PWD/bundle\" | grep "
         "-v ' bundle/' || true");
  ck_assert_str_eq(o->out, "");
}
END_TEST

START_TEST(a_bundle_runs_where_the_packages_are_not)
{
  unpack();
  /* the machine's own copies are hidden by a mount namespace where that is allowed */
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

int main(void)
{
  Suite *s = suite_create("tools/install");
  TCase *t = tcase_create("install");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, installed_programs_find_their_siblings);
  tcase_add_test(t, an_installed_preload_library_finds_its_collector);
  tcase_add_test(t, a_program_is_built_against_what_is_installed);
  tcase_add_test(t, uninstall_leaves_nothing);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
