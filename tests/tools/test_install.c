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
  sh_status(0, "test -f moved/share/man/man1/weir.1 && test -f moved/lib/weir/sim/libcuda.so.1");
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
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib:there/lib/weir/sim ./memory");
  ck_assert_str_eq(o->out, "as it should be: CUDA out of memory.\n0 MiB live, 64 MiB cached\n");
  o = sh("rm there/lib/libweir-cuda.so && LD_LIBRARY_PATH=there/lib:there/lib/weir/sim ./memory");
  ck_assert_int_eq(o->status, 1 << 8);
  ck_assert_ptr_nonnull(strstr(o->err, "no CUDA: CUDA is not available: libweir-cuda.so"));
}
END_TEST

/* A 2 x 2 matrix of float64: 1 2 3 4. */
#define MATRIX                                                                                     \
  "python3 -c 'import struct, sys\n"                                                               \
  "h = b\"{\\x27descr\\x27: \\x27<f8\\x27, \\x27fortran_order\\x27: False, \\x27shape\\x27: (2, "  \
  "2), }\"\n"                                                                                      \
  "sys.stdout.buffer.write(b\"\\x93NUMPY\\x01\\x00\" + struct.pack(\"<H\", len(h)) + h +"          \
  " struct.pack(\"<4d\", 1, 2, 3, 4))' >m.npy"

#define ANSWER "the sum is 54, row 0 is 7 10\n"

static void build_newcomer(const char *how)
{
  sh_status(0, INSTALL "$here/there ''" VERSION);
  sh_status(0, MATRIX);
  sh_status(0,
            "cp $WEIR_SOURCE/tools/examples/newcomer.c prog.c && test $(wc -l <prog.c) -le 40 && "
            "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig && cc prog.c %s",
            how);
}

START_TEST(a_newcomers_program_runs_with_and_without_a_gpu)
{
  build_newcomer("$(pkg-config --cflags --libs weir)");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=there/lib ./a.out m.npy");
  ck_assert_ptr_nonnull(strstr(o->out, ANSWER));
  o = sh_status(0, "LD_LIBRARY_PATH=there/lib:there/lib/weir/sim ./a.out m.npy");
  ck_assert_ptr_nonnull(strstr(o->out, "on cuda: " ANSWER));
  o = sh_status(1, "LD_LIBRARY_PATH=there/lib ./a.out none.npy");
  ck_assert_str_eq(o->err, "cannot open none.npy: No such file or directory\n");
  o = sh_status(1, "head -c 140 m.npy >cut.npy; LD_LIBRARY_PATH=there/lib ./a.out m.npy extra");
  ck_assert_ptr_nonnull(strstr(o->err, "usage"));
  o = sh_status(1, "head -c 90 m.npy >cut.npy; LD_LIBRARY_PATH=there/lib ./a.out cut.npy");
  ck_assert_ptr_nonnull(strstr(o->err, "its header says 32"));
}
END_TEST

START_TEST(the_static_library_is_enough_for_a_program)
{
  build_newcomer("$(pkg-config --cflags weir) there/lib/libweir.a $(pkg-config --static --libs "
                 "weir | sed 's/-lweir//') && rm there/lib/libweir.so*");
  outcome *o = sh_status(0, "LD_LIBRARY_PATH=/nowhere ./a.out m.npy");
  ck_assert_ptr_nonnull(strstr(o->out, ANSWER));
  sh_status(0, "test -z \"$(nm -g --defined-only there/lib/libweir.a | awk 'NF == 3 && $3 !~ "
               "/^weir_/')\"");
}
END_TEST

START_TEST(each_pages_example_is_built_and_run)
{
  sh_status(0, INSTALL "$here/there ''" VERSION);
  outcome *o = sh_status(
      0,
      "export PKG_CONFIG_PATH=$PWD/there/lib/pkgconfig; n=0\n"
      "for page in there/share/man/man3/*.3; do\n"
      "  [ ! -L $page ] || continue\n"
      "  name=$(basename $page .3); mkdir $name\n"
      "  sed -n '/^\\.SH EXAMPLE/,/^\\.fi/p' $page | sed -e '/^\\.nf/,/^\\.fi/!d' -e '/^\\.[nf]/d' "
      "    -e 's/^\\\\&//' -e 's/\\\\-/-/g' -e 's/\\\\e/\\\\/g' >$name/example.c\n"
      "  test -s $name/example.c || { echo \"$name has no example\"; exit 1; }\n"
      "  cc -std=c99 -Wall -Wextra -Wpedantic -Werror $name/example.c -o $name/example "
      "    $(pkg-config --cflags --libs weir) || { echo \"$name: not built\"; exit 1; }\n"
      "  for sim in '' :there/lib/weir/sim :../there/lib/weir/sim; do\n"
      "    (cd $name && rm -f *.spool && LD_LIBRARY_PATH=../there/lib$sim ./example >out 2>&1) || "
      "      { echo \"$name$sim:\"; cat $name/out; exit 1; }\n"
      "  done; n=$((n + 1))\n"
      "done; echo $n pages");
  ck_assert_msg(strstr(o->out, "12 pages") != NULL, "%s", o->out);
}
END_TEST

START_TEST(every_function_of_the_library_has_a_page)
{
  sh_status(0, INSTALL "$here/there ''" VERSION);
  outcome *o = sh_status(
      0, "cd there/share/man/man3; n=0\n"
         "for f in $(nm -D --defined-only ../../../lib/libweir.so | awk '$2 == \"T\" { sub(/@.*/, "
         "\"\", $3); print $3 }'); do\n"
         "  test -f $f.3 || { echo \"$f has no page\"; continue; }\n"
         "  grep -q \"$f(\" $f.3 || echo \"$f is not "
         "in $page\"\n"
         "  n=$((n + 1))\n"
         "done; test $n -gt 300 || echo only $n");
  ck_assert_str_eq(o->out, "");
}
END_TEST

START_TEST(every_macro_of_the_headers_has_a_page)
{
  sh_status(0, INSTALL "$here/there ''" VERSION);
  outcome *o = sh_status(
      0, "n=0\n"
         "for m in $(sed -nE 's/^#define (WEIR_[A-Z0-9_]*[A-Z0-9]|weir_[a-z_]*[a-z])\\b.*/\\1/p' "
         "$WEIR_SOURCE/core/weir/*.h | grep -vE '_(H|MAP|DECLARE|ENUM|FIELD)$|WEIR_PUBLIC'); do\n"
         "  test -f there/share/man/man3/$m.3 || echo \"$m has no page\"\n"
         "  n=$((n + 1))\n"
         "done; test $n -gt 30 || echo only $n");
  ck_assert_str_eq(o->out, "");
}
END_TEST

/* lib/x86_64-linux-gnu as a distribution of several architectures has it. What the loader finds
 * by its name is Weir's by its name, and no more than is of use; all else is in lib/weir. */
START_TEST(a_folder_that_others_search_gets_only_what_is_weirs)
{
  static const char *const folders[] = {"lib", "lib64", "lib/x86_64-linux-gnu"};
  adopt_collectors();
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char *folder = folders[i];
    sh_status(0, INSTALL "/usr $here/root $($WEIR version | sed -n 's/^weir //p') /usr/%s", folder);
    outcome *o =
        sh_status(0, "cd root/usr/%s && for f in *.so* *.a; do echo $f; done | sort", folder);
    ck_assert_str_eq(o->out, "libweir-cuda.so\nlibweir-preload.so\nlibweir.a\nlibweir.so\n"
                             "libweir.so.0\n");
    sh_status(
        0,
        "test $(stat -c %%s root/usr/%s/libweir.so.0) -lt $(stat -c %%s $BUILD/lib/libweir.so.0)"
        " || ! command -v strip",
        folder);
    sh_status(0, "grep -qx 'libdir=${prefix}/%s' root/usr/%s/pkgconfig/weir.pc", folder, folder);
    sh_status(0, "root/usr/bin/weir run --sim --force -o run.db -- $VICTIM call");
    ck_assert_int_eq(ask("run.db", ALLOCS), 1);
    sh_status(0,
              "rm -f own.db; LD_PRELOAD=$PWD/root/usr/%s/libweir-preload.so WEIR_OUTPUT=$PWD/own.db"
              " LD_LIBRARY_PATH=$PWD/root/usr/lib/weir/sim $VICTIM call",
              folder);
    wait_for_collectors();
    ck_assert_int_eq(ask("own.db", ALLOCS), 1);
    sh_status(0, "$WEIR_SOURCE/tools/scripts/install.sh --remove /usr $PWD/root");
    ck_assert_str_eq(sh_status(0, "find root ! -type d; find root -path '*weir*'")->out, "");
  }
  sh_status(1, INSTALL "/usr $here/root 0.0 /elsewhere/lib");
}
END_TEST

START_TEST(what_was_installed_elsewhere_before_is_removed)
{
  sh_status(
      0, "mkdir -p root/usr/lib/sim root/usr/share/weir && cd root/usr && touch lib/libunwind.so.8"
         " lib/sim/libcuda.so.1 lib/kept && printf 'lib/libunwind.so.8\\nlib/sim/libcuda.so.1\\n'"
         " >share/weir/installed");
  sh_status(0, INSTALL "/usr $here/root" VERSION);
  sh_status(0, "test ! -e root/usr/lib/libunwind.so.8 && test ! -e root/usr/lib/sim && test -e "
               "root/usr/lib/kept");
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
  tcase_add_test(t, a_newcomers_program_runs_with_and_without_a_gpu);
  tcase_add_test(t, the_static_library_is_enough_for_a_program);
  tcase_add_test(t, each_pages_example_is_built_and_run);
  tcase_add_test(t, every_function_of_the_library_has_a_page);
  tcase_add_test(t, every_macro_of_the_headers_has_a_page);
  tcase_add_test(t, a_folder_that_others_search_gets_only_what_is_weirs);
  tcase_add_test(t, what_was_installed_elsewhere_before_is_removed);
  tcase_add_test(t, uninstall_leaves_nothing);
  suite_add_tcase(s, t);
  return run_suite(s);
}
