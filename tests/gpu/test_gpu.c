/* test_gpu.c: the programs that make check-gpu runs on a real GPU, tried on the software device in
 * its place, so that on the day there is a GPU it is the engine that is tried and not they. */
#include "tests/tools/command.h"

#include <stdlib.h>
#include <string.h>

#define SIM "LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_BLAS=builtin "
#define GPU "$BUILD/tests/gpu/"

START_TEST(every_row_holds_on_one_device_and_on_two)
{
  outcome *o = sh_status(0, SIM "WEIR_SIM_DEVICES=1 " GPU "engine");
  ck_assert_msg(strstr(o->out, "\n35 passed, 0 failed\n") != NULL, "%s", o->out);
  o = sh_status(0, SIM "WEIR_SIM_DEVICES=2 " GPU "engine 3 4 5 6 7 27 28");
  ck_assert_msg(strstr(o->out, "\n7 passed, 0 failed\n") != NULL, "%s", o->out);
  ck_assert_ptr_null(strstr(o->out, "one device"));
}
END_TEST

START_TEST(a_row_that_fails_or_hangs_is_told_and_the_others_go_on)
{
  outcome *o = sh_status(1, SIM "WEIR_SIM_FAIL='cuMemcpyDtoHAsync_v2:1=1,cuMemcpyDtoH_v2:1=1' " GPU
                                "engine 5 30 1");
  ck_assert_msg(strstr(o->out, "FAIL") && strstr(o->out, "0 passed, 3 failed"), "%s", o->out);
  o = sh_status(1, SIM "WEIR_ROW_SECONDS=0.000001 " GPU "engine 26");
  ck_assert_msg(strstr(o->out, "(ended after") != NULL, "%s", o->out);
}
END_TEST

START_TEST(without_a_device_each_says_so_in_a_line)
{
  static const char *const programs[] = {GPU "engine", GPU "overlap pinned", "$BUILD/bench/gpu all",
                                         "$BUILD/bench/gpu_tensor all"};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    outcome *o = sh_status(3, SIM "WEIR_SIM_DEVICES=0 %s", programs[i]);
    ck_assert_msg(strstr(o->err, ": no GPU: ") && strchr(o->err, '\n') == strrchr(o->err, '\n'),
                  "%s: %s", programs[i], o->err);
    ck_assert_str_eq(o->out, "");
  }
}
END_TEST

START_TEST(figures_are_taken_and_put_beside_others)
{
  outcome *o = sh_status(0, SIM "$BUILD/bench/gpu_tensor -s 512 all >ours && wc -l <ours");
  ck_assert_int_ge(atoi(o->out), 28);
  o = sh_status(0,
                "printf 'hit 20 ns\\nadd 50 GB/s\\n' >a && printf 'hit 80 ns\\nadd 40 GB/s\\n' >b "
                "&& $WEIR_SOURCE/tests/gpu/figures.py a b");
  ck_assert_str_eq(o->out, "| hit | ns | 20 | 80 | 4.00 |\n| add | GB/s | 50 | 40 | 1.25 |\n");
}
END_TEST

START_TEST(overlap_is_counted_from_activities)
{
  (void)sh_status(0, SIM GPU "overlap pinned 64 1 >host");
  outcome *o =
      sh_status(0, "printf 'kernel 1000 9000 7 x\\nkernel 8000 9000 7 x\\nHtoD 2000 4000 8 1\\n"
                   "DtoH 3000 12000 9 1\\n' >activities && "
                   "$WEIR_SOURCE/tests/gpu/overlap.py pinned activities host");
  ck_assert_msg(!strncmp(o->out, "| pinned | 8 | 2 | 9 | 2 | 6 | 1 | ", 35), "%s", o->out);
  o = sh("printf 'kernel 1 2 7 x\\nHtoD 3 4 8 1\\n' >apart && "
         "$WEIR_SOURCE/tests/gpu/overlap.py pinned apart host");
  ck_assert_int_ne(o->status, 0);
}
END_TEST

START_TEST(memory_in_use_is_explained_and_a_wrong_account_is_found)
{
  (void)sh_status(0,
                  "LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_SIM_DEVICES=1 $WEIR run --mode=observe -o "
                  "t.db -- " GPU "memory >account && $WEIR report --format json t.db >r.json");
  outcome *o = sh_status(0, "$WEIR_SOURCE/tests/gpu/memory.py r.json account 0");
  ck_assert_msg(strstr(o->out, "EQUAL: the driver: at most 0.0 MiB unexplained of 448") == o->out,
                "%s", o->out);
  (void)sh_status(1, "sed 's/cuMemCreate 402653184/cuMemCreate 902653184/' account >wrong && "
                     "$WEIR_SOURCE/tests/gpu/memory.py r.json wrong 0");
  o = sh_status(1, "sed 's/\"unexplained_bytes\": 0/\"unexplained_bytes\": 7/' r.json >w.json && "
                   "$WEIR_SOURCE/tests/gpu/memory.py w.json account 6");
  ck_assert_ptr_nonnull(strstr(o->out, "7 bytes that the driver says"));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("gpu/gpu");
  TCase *t = tcase_create("on the software device");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, every_row_holds_on_one_device_and_on_two);
  tcase_add_test(t, a_row_that_fails_or_hangs_is_told_and_the_others_go_on);
  tcase_add_test(t, without_a_device_each_says_so_in_a_line);
  tcase_add_test(t, figures_are_taken_and_put_beside_others);
  tcase_add_test(t, overlap_is_counted_from_activities);
  tcase_add_test(t, memory_in_use_is_explained_and_a_wrong_account_is_found);
  suite_add_tcase(s, t);
  return run_suite(s);
}
