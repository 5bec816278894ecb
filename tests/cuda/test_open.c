/* test_open.c: CUDA at its first use: found, missing, broken, raced for, and in forked children. */
#include <stdio.h>
#include <string.h>
#include "tests/tools/command.h"

#define PROBE  "$BUILD/tests/cuda/probe "
#define SIM(n) "LD_LIBRARY_PATH=$BUILD/lib/sim WEIR_SIM_DEVICES=" #n " "

/* Output of a shell line that must succeed holds every one of these texts. */
#define SAYS(line, ...) check_output_says(line, (const char *const[]){__VA_ARGS__, NULL})

static void check_output_says(const char *line, const char *const *texts)
{
  const outcome *o = sh_status(0, "%s", line);
  for (; *texts; texts++)
    ck_assert_msg(strstr(o->out, *texts) != NULL, "'%s' is not in what '%s' says:\n%s%s", *texts,
                  line, o->out, o->err);
}

START_TEST(a_device_that_is_there_is_used)
{
  SAYS(SIM(2) PROBE "available count properties malloc second detach malloc",
       "1 \n0 2 \n0 8589934592 \n", "Weir Software Device, capability 8.0",
       "1 99 invalid device ordinal: cuda:99 was asked for, there are 2\n",
       "1 -1 invalid device ordinal: cuda:-1", "\n0 3145728 \n0 3145728 \n0 0 \n0 3145728 \n");
  SAYS(SIM(1) PROBE "malloc second", "0 3145728 \n",
       "1 3145728 invalid device ordinal: cuda:1 was asked for, there is 1\n");
}
END_TEST

START_TEST(cuda_is_opened_by_name_or_by_its_first_use)
{
  SAYS(SIM(1) PROBE "init available init", "0 0 0 1\n1 \n1 0 0 1\n");
  SAYS(SIM(0) PROBE "init", "0 8 8 0\n");
}
END_TEST

START_TEST(devices_say_which_others_they_reach)
{
  SAYS(SIM(3) PROBE "peers", "011\n101\n110\n", "1 0 invalid device ordinal: cuda:99 was asked");
  SAYS(SIM(1) PROBE "peers", "0\n1 0 invalid device ordinal");
}
END_TEST

START_TEST(the_driver_says_which_devices_there_are)
{
  SAYS("CUDA_VISIBLE_DEVICES=3,1 " SIM(4) PROBE "count second", "0 2 \n0 3145728 \n");
  SAYS(SIM(0) PROBE "available count malloc", "0 CUDA is not available: the driver has no device",
       "\n0 0 \n", "8 3145728 CUDA is not available: the driver has no device");
}
END_TEST

START_TEST(what_is_visible_is_what_the_environment_lets_through)
{
  static const char *const invalid[] = {"0,1,9,2", "0,1,x,2", "0,1,-1,2", "0,1,,2"};
  char line[200];
  SAYS(SIM(4) PROBE "uuids", "4 devices\n");
  /* order renumbers */
  SAYS("CUDA_VISIBLE_DEVICES=2,0 " SIM(4) PROBE "uuids", "2 devices\n");
  SAYS("a=$(" SIM(4) PROBE "uuids | sed -n 4p); b=$(CUDA_VISIBLE_DEVICES=2,0 " SIM(4) PROBE
       "uuids | sed -n 2p); [ -n \"$a\" ] && [ \"$a\" = \"$b\" ] && echo same",
       "same");
  /* the first that is invalid hides the rest */
  for (size_t i = 0; i < sizeof invalid / sizeof *invalid; i++) {
    (void)snprintf(line, sizeof line, "CUDA_VISIBLE_DEVICES=%s " SIM(4) PROBE "uuids", invalid[i]);
    SAYS(line, "2 devices\n");
  }
  /* the empty list hides everything */
  SAYS("CUDA_VISIBLE_DEVICES= " SIM(4) PROBE "uuids available", "0 devices\n",
       "0 CUDA is not available: the driver has no device");
  SAYS("CUDA_VISIBLE_DEVICES=-1 " SIM(4) PROBE "uuids", "0 devices\n");
  /* a UUID, or enough of its beginning */
  SAYS("u=$(" SIM(4) PROBE "uuids | sed -n 4p); CUDA_VISIBLE_DEVICES=GPU-$u " SIM(4) PROBE "uuids",
       "1 devices\n");
  SAYS("u=$(" SIM(1) PROBE "uuids | sed -n 2p); CUDA_VISIBLE_DEVICES=GPU-${u%????} " SIM(1) PROBE
       "uuids",
       "1 devices\n");
  SAYS("u=$(" SIM(4) PROBE "uuids | sed -n 4p); CUDA_VISIBLE_DEVICES=GPU-${u%????} " SIM(4) PROBE
       "uuids",
       "0 devices\n"); /* it fits several */
}
END_TEST

START_TEST(without_a_driver_it_is_said)
{
  if (sh("ldconfig -p | grep -q libcuda.so.1")->status)
    SAYS("LD_LIBRARY_PATH= " PROBE "available count malloc",
         "0 CUDA is not available: Found no NVIDIA driver on your system: libcuda.so.1", "\n0 0 \n",
         "\n8 3145728 CUDA");
  sh_status(0, ": >libcuda.so.1");
  SAYS("LD_LIBRARY_PATH=$PWD " PROBE "available",
       "Found no NVIDIA driver on your system: ", "file too short");
}
END_TEST

START_TEST(a_driver_that_is_too_old_is_said_to_be)
{
  sh_status(0, "echo 'int cuInit(int f) { return f; }' | cc -shared -fPIC -x c - -o libcuda.so.1");
  SAYS("LD_LIBRARY_PATH=$PWD " PROBE "available malloc", "older than CUDA 12.0", "8 3145728 ");
  sh_status(0, "echo 'int cuGetProcAddress_v2(const char *s, void **f, int v, long x, int *r)"
               "{ *f = 0; *r = v > 7000; return x; }' | cc -shared -fPIC -x c - -o libcuda.so.1");
  SAYS("LD_LIBRARY_PATH=$PWD " PROBE "available",
       "the driver has no cuInit of version 2000 (error 0)");
}
END_TEST

START_TEST(a_driver_that_will_not_start_is_quoted)
{
  SAYS("WEIR_SIM_FAIL=cuInit:1=999 " SIM(1) PROBE "available count malloc",
       "0 CUDA is not available: cuInit: CUDA_ERROR_UNKNOWN (999)", "\n0 0 \n",
       "\n9 3145728 CUDA is not available: cuInit");
  SAYS("WEIR_SIM_FAIL=cuInit:1=34 " SIM(1) PROBE "available", "(34); the libcuda.so.1 that was "
                                                              "found is the Toolkit's stub");
  SAYS("WEIR_SIM_FAIL=cuDeviceGetCount:1=802 " SIM(1) PROBE "available",
       "cuDeviceGetCount: CUDA_ERROR_SYSTEM_NOT_READY (802)");
}
END_TEST

START_TEST(the_backend_is_found_beside_or_by_the_loader_or_said_to_be_missing)
{
  sh_status(0, "mkdir a b && cp $BUILD/lib/libweir.so.0 a");
  SAYS("LD_LIBRARY_PATH=$PWD/a:$BUILD/lib/sim " PROBE "available malloc",
       "libweir-cuda.so, looked for beside libweir (", "/a/libweir-cuda.so) and by the loader",
       "8 3145728 CUDA is not available");
  sh_status(0, "cp $BUILD/lib/libweir-cuda.so b");
  SAYS("LD_LIBRARY_PATH=$PWD/a:$PWD/b:$BUILD/lib/sim " PROBE "malloc", "0 3145728 \n");
  sh_status(0, "mv b/libweir-cuda.so a");
  SAYS("LD_LIBRARY_PATH=$PWD/a:$BUILD/lib/sim " PROBE "malloc", "0 3145728 \n");
}
END_TEST

START_TEST(a_backend_of_another_build_is_refused)
{
  sh_status(0, "cp $BUILD/lib/libweir.so.0 . && echo 'int x;' | cc -shared -fPIC -x c - -o "
               "libweir-cuda.so");
  SAYS("LD_LIBRARY_PATH=$PWD:$BUILD/lib/sim " PROBE "malloc",
       "7 3145728 libweir-cuda.so has no weir_cuda_plugin_open");
  sh_status(0,
            "echo 'void *p[] = {\"0.0.7\"}; void *weir_cuda_plugin_open(void) { return p; }' | cc "
            "-shared -fPIC -x c - -o libweir-cuda.so");
  SAYS("LD_LIBRARY_PATH=$PWD:$BUILD/lib/sim " PROBE "malloc",
       "7 3145728 libweir-cuda.so is of version 0.0.7, libweir of");
}
END_TEST

START_TEST(a_library_loaded_for_itself_finds_its_backend)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return; /* an instrumented library is not for a program that is not */
#endif
  sh_status(0, "cat >p.py <<'EOF'\nimport ctypes, sys\nw = ctypes.CDLL(sys.argv[1])\n"
               "n = ctypes.c_int()\nassert w.weir_cuda_device_count(ctypes.byref(n)) == 0\n"
               "assert n.value == 3\nEOF\n" SIM(3) "python3 p.py $BUILD/lib/libweir.so");
}
END_TEST

START_TEST(bad_options_are_told_at_the_first_use_and_can_be_mended)
{
  SAYS("WEIR_ALLOC_CONF=decay:1 " SIM(1) PROBE "available malloc malloc", "1 \n1 3145728 ",
       "WEIR_ALLOC_CONF");
  SAYS("WEIR_ALLOC_CONF=expandable_segments:False " SIM(1) PROBE "malloc detach",
       "0 3145728 \n0 0");
}
END_TEST

START_TEST(many_threads_may_be_the_first)
{
  for (int i = 0; i < 20; i++)
    SAYS(SIM(1) PROBE "race", "0 0 \n");
}
END_TEST

START_TEST(a_forked_child_is_told_and_never_hangs)
{
  /* what the parent's other threads hold in the middle of a call is nobody's in the child */
  SAYS("ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 " SIM(2) PROBE "fork malloc",
       "0 3145728 \n0 0 \n0 3145728 \n");
}
END_TEST

START_TEST(a_child_may_be_the_first_and_its_parent_goes_on)
{
  SAYS(SIM(1) PROBE "child malloc", "0 3145728 \n0 0 \n0 3145728 \n");
  SAYS(SIM(1) PROBE "available child malloc",
       "9 3145728 Cannot re-initialize CUDA in forked subprocess: process ", "\n0 3145728 \n");
  SAYS(SIM(0) PROBE "available child", "8 3145728 CUDA is not available: the driver has no device");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cuda/open");
  TCase *t = tcase_create("open");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_test(t, a_device_that_is_there_is_used);
  tcase_add_test(t, cuda_is_opened_by_name_or_by_its_first_use);
  tcase_add_test(t, devices_say_which_others_they_reach);
  tcase_add_test(t, the_driver_says_which_devices_there_are);
  tcase_add_test(t, what_is_visible_is_what_the_environment_lets_through);
  tcase_add_test(t, without_a_driver_it_is_said);
  tcase_add_test(t, a_driver_that_is_too_old_is_said_to_be);
  tcase_add_test(t, a_driver_that_will_not_start_is_quoted);
  tcase_add_test(t, the_backend_is_found_beside_or_by_the_loader_or_said_to_be_missing);
  tcase_add_test(t, a_backend_of_another_build_is_refused);
  tcase_add_test(t, a_library_loaded_for_itself_finds_its_backend);
  tcase_add_test(t, bad_options_are_told_at_the_first_use_and_can_be_mended);
  tcase_add_test(t, many_threads_may_be_the_first);
  tcase_add_test(t, a_forked_child_is_told_and_never_hangs);
  tcase_add_test(t, a_child_may_be_the_first_and_its_parent_goes_on);
  suite_add_tcase(s, t);
  return run_suite(s);
}
