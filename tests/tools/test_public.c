/* test_public.c: the public headers, in every language a program may be in. */
#include <string.h>
#include "tests/tools/command.h"

/* Each header alone, and all together, in the languages a program may be in. */
START_TEST(every_header_is_pedantic_c_and_cxx)
{
  static const char *const languages[] = {"cc -x c -std=c99", "cc -x c -std=c11",
                                          "c++ -x c++ -std=c++17"};
  sh_status(
      0,
      "cd $WEIR_SOURCE && for h in core/weir.h core/weir/*.h; do\n"
      "  echo \"#include \\\"$h\\\"\" | %s -Wall -Wextra -Wpedantic -Werror -I. -fsyntax-only - "
      "|| { echo $h; exit 1; }\n"
      "done",
      languages[_i]);
}
END_TEST

/* A program in C++ calls functions of C. */
START_TEST(cxx_links_with_the_library)
{
  static const char *const compilers[] = {"c++ -std=c++11", "c++ -std=c++17", "c++ -std=c++20"};
  sh_status(0,
            "cat >p.cc <<'EOF'\n"
            "#include \"core/weir.h\"\n"
            "int main() {\n"
            "  weir_tensor *t;\n"
            "  if (weir_zeros(&t, weir_shape_of(0, nullptr), nullptr)) return 1;\n"
            "  weir_tensor_release(t);\n"
            "  int64_t rows = 3;\n"
            "  size_t columns = 2;\n"
            "  WEIR_TENSOR owned = nullptr, other = nullptr;\n"
            "  WEIR_EVENT event = nullptr;\n"
            "  WEIR_BATCH batch = {};\n"
            "  if (weir_zeros(&owned, weir_shape(2, rows, columns), nullptr) || other) return 4;\n"
            "  if (weir_tensor_numel(owned) != 12 || weir_tensor_dim(owned) != 3) return 5;\n"
            "  if (weir_event_new(&event, nullptr) || batch.count) return 6;\n"
            "  static const weir_device second = WEIR_CUDA_AT(1), last = WEIR_CUDA_INIT(3);\n"
            "  weir_options there{};\n"
            "  there.device.type = WEIR_DEVICE_CUDA;\n"
            "  if (!weir_device_equal(there.device, WEIR_CUDA)) return 2;\n"
            "  if (weir_device_index(second) != 1 || weir_device_index(last) != 3) return 3;\n"
            "}\n"
            "EOF\n"
            "%s -Wall -Wextra -Wpedantic -Werror -I$WEIR_SOURCE p.cc -o p -L$BUILD/lib "
            "-lweir && LD_LIBRARY_PATH=$BUILD/lib ./p",
            compilers[_i]);
}
END_TEST

/* glibc has about 1.6 KiB of thread-local memory for all the libraries that a program opens late.
 */
START_TEST(a_program_that_opens_others_first_can_open_the_library_too)
{
  sh_status(0, "cat >other.c <<'EOF'\n"
               "__thread char kept[768] __attribute__((tls_model(\"initial-exec\")));\n"
               "char *other(int i) { return kept + i; }\n"
               "EOF\n"
               "cat >opens.c <<'EOF'\n"
               "#include <dlfcn.h>\n"
               "#include <stdio.h>\n"
               "int main(int n, char **names) {\n"
               "  for (int i = 1; i < n; i++)\n"
               "    if (!dlopen(names[i], RTLD_NOW)) return puts(dlerror()), 1;\n"
               "  return 0;\n"
               "}\n"
               "EOF\n"
               "cc -shared -fPIC other.c -o other.so && cc opens.c -o opens -ldl && "
               "./opens ./other.so $BUILD/lib/libweir.so");
}
END_TEST

/* Each pointer of each function, in a process of its own; on the software device. */
START_TEST(no_function_ends_the_program_for_a_null)
{
  const outcome *o =
      sh("ulimit -c 0; LD_LIBRARY_PATH=$BUILD/lib/sim PYTHONDONTWRITEBYTECODE=1 "
         "python3 $WEIR_SOURCE/tests/tools/nulls.py $BUILD/lib/libweir.so $WEIR_SOURCE");
  ck_assert_msg(o->status == 0, "%s%s", o->out, o->err);
  ck_assert_ptr_nonnull(strstr(o->out, ", 0 bad"));
}
END_TEST

/* Each tensor of each function requires a gradient, alone. */
START_TEST(no_function_drops_a_gradient_silently)
{
  const outcome *o =
      sh("ulimit -c 0; LD_LIBRARY_PATH=$BUILD/lib/sim PYTHONDONTWRITEBYTECODE=1 "
         "python3 $WEIR_SOURCE/tests/tools/grads.py $BUILD/lib/libweir.so $WEIR_SOURCE");
  ck_assert_msg(o->status == 0, "%s%s", o->out, o->err);
  ck_assert_ptr_nonnull(strstr(o->out, ", 0 bad"));
}
END_TEST

/* A method of Tensor's is a function of tensors, a class makes what it is of; all with good
 * arguments. */
START_TEST(each_of_pytorchs_names_has_a_function_that_works_on_what_it_is_of)
{
  const outcome *o =
      sh("ulimit -c 0; LD_LIBRARY_PATH=$BUILD/lib/sim PYTHONDONTWRITEBYTECODE=1 "
         "python3 $WEIR_SOURCE/tests/tools/porting_use.py $BUILD/lib/libweir.so $WEIR_SOURCE");
  ck_assert_msg(o->status == 0, "%s%s", o->out, o->err);
  ck_assert_ptr_nonnull(strstr(o->out, ", 0 bad"));
}
END_TEST

/* What is exported is declared, and what is declared is exported; of the static library, too. */
START_TEST(the_headers_and_the_libraries_agree)
{
  sh_status(
      0,
      "(cd $WEIR_SOURCE && tools/scripts/public-names.sh) >declared\n"
      "nm -D --defined-only $BUILD/lib/libweir.so | sed -n 's/.* T \\([^@]*\\)@@WEIR_0$/\\1/p' | "
      "LC_ALL=C sort -u >exported\n"
      "nm --defined-only --extern-only $BUILD/lib/libweir.a | awk 'NF == 3 { print $3 }' | "
      "LC_ALL=C sort -u >global\n"
      "test $(wc -l <declared) -gt 300 && diff declared exported && diff declared global");
}
END_TEST

/* The table of what the engine promises names functions and tests that are there. */
START_TEST(the_table_of_promises_is_true)
{
  sh_status(0,
            "cd $WEIR_SOURCE && python3 tests/tools/semantics.py . $(make -s O=$BUILD print-TESTS "
            "print-TESTS_ALL | tr ' ' '\\n' | sed 's|.*/\\(tests/.*\\)|\\1|')");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("tools/public");
  TCase *t = tcase_create("public");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, every_header_is_pedantic_c_and_cxx, 0, 3);
  tcase_add_loop_test(t, cxx_links_with_the_library, 0, 3);
  tcase_add_test(t, a_program_that_opens_others_first_can_open_the_library_too);
  tcase_add_test(t, no_function_ends_the_program_for_a_null);
  tcase_add_test(t, no_function_drops_a_gradient_silently);
  tcase_add_test(t, each_of_pytorchs_names_has_a_function_that_works_on_what_it_is_of);
  tcase_add_test(t, the_headers_and_the_libraries_agree);
  tcase_add_test(t, the_table_of_promises_is_true);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
