/* test_sanitizers.c: a program that was built with a sanitizer and is without fault runs under us,
 * in each mode, as without us: nothing is found in it, and its stacks are recorded. Where the
 * machine lacks the compiler or its sanitizer there is nothing to try. One program has no
 * sanitizer, but functions in the place of the unwinder's.
 *
 * What the software device does with its memory is no race of the program's or ours, as a GPU's is
 * none; so ThreadSanitizer is not to look into that library. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tools/command.h"

/* Builds the program as `name`; false: that cannot be done here. */
static bool build_program(const char *compiler, const char *how, const char *name)
{
  return sh("%s -g %s " CUDA_FLAGS " $WEIR_SOURCE/tests/victims/sanitizers/threads.c -o %s "
            "$BUILD/lib/sim/libcuda.so.1 -pthread",
            compiler, how, name)
             ->status == 0;
}

static void enter_sanitized(void)
{
  enter_scratch();
  sh_status(0, "echo called_from_lib:libcuda.so.1 >suppressions");
  ck_assert_int_eq(setenv("TSAN_OPTIONS", "suppressions=suppressions", 1), 0);
}

static void leave_sanitized(void)
{
  (void)unsetenv("TSAN_OPTIONS");
  leave_scratch();
}

static void run_as_without_us(const char *before, const char *options, bool stacks)
{
  outcome *o = sh("%s $WEIR run --sim --force -o t.db %s -- ./program", before, options);
  ck_assert_msg(o->status == 0, "%s: %d: %.2000s", options, o->status, o->err);
  ck_assert_str_eq(o->out, "done 1\n");
  ck_assert_ptr_null(strstr(o->err, "WARNING"));
  ck_assert_ptr_null(strstr(o->err, "ERROR"));
  ck_assert_int_eq(ask("t.db", "SELECT count(*) FROM copy"), 3 * (4 * 2 * 20 + 2));
  ck_assert_int_eq(ask("t.db", "SELECT count(*) > 0 FROM stack"), stacks);
}

static const struct {
  const char *compiler, *how, *options;
} programs[] = {{"gcc", "-fsanitize=thread", "--mode=observe"},
                {"gcc", "-fsanitize=thread", "--mode=strict --device-times=all"},
                {"gcc", "-fsanitize=thread", "--mode=relaxed"},
                {"clang", "-fsanitize=thread", "--mode=strict"},
                {"gcc", "-fsanitize=address,undefined", "--mode=observe"},
                {"gcc", "-fsanitize=address,undefined", "--mode=relaxed --device-times=all"},
                {"clang", "-fsanitize=address,undefined", "--mode=strict"},
                {"gcc", "-fsanitize=leak", "--mode=relaxed"}};

START_TEST(a_sanitizer_finds_nothing_in_a_program_without_fault)
{
  if (build_program(programs[_i].compiler, programs[_i].how, "program"))
    run_as_without_us("", programs[_i].options, true);
}
END_TEST

START_TEST(a_sanitizer_that_is_preloaded_does_no_harm)
{
  if (build_program("gcc", "", "program") && build_program("gcc", "-fsanitize=thread", "probe"))
    run_as_without_us("LD_PRELOAD=$(gcc -print-file-name=libtsan.so)", "", true);
}
END_TEST

/* Its functions are bound to the sanitizer's before we come. */
START_TEST(a_program_with_a_sanitizer_and_a_libunwind_goes_without_stacks)
{
  if (!build_program("gcc", "-fsanitize=thread -Wl,--no-as-needed -l:libunwind.so.8", "program"))
    return;
  run_as_without_us("", "", false);
  ck_assert_int_eq(
      ask("t.db", "SELECT count(*) FROM note WHERE text LIKE 'no stacks are taken: Thread%'"), 1);
}
END_TEST

/* Needs no sanitizer: the program's exported functions come before those of a library opened
 * later. */
START_TEST(a_program_that_exports_another_libunwind_has_its_stacks)
{
  if (!build_program("gcc", "-rdynamic $WEIR_SOURCE/tests/victims/sanitizers/unwinder.c",
                     "program"))
    return;
  run_as_without_us("", "", true);
  ck_assert_int_eq(ask("t.db", "SELECT count(*) > 0 AND min(depth) > 1 FROM"
                               " (SELECT count(*) AS depth FROM stack_frame GROUP BY stack)"),
                   1);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("sanitizers");
  TCase *t = tcase_create("sanitizers");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_sanitized, leave_sanitized);
  tcase_add_loop_test(t, a_sanitizer_finds_nothing_in_a_program_without_fault, 0,
                      (int)(sizeof programs / sizeof *programs));
  tcase_add_test(t, a_sanitizer_that_is_preloaded_does_no_harm);
  tcase_add_test(t, a_program_with_a_sanitizer_and_a_libunwind_goes_without_stacks);
  tcase_add_test(t, a_program_that_exports_another_libunwind_has_its_stacks);
  suite_add_tcase(s, t);
  return run_suite(s);
}
