/* test_loader_lookup.c: every way a program comes to a CUDA function is seen, and no look-up gives
 * the program another answer than it had without us. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/loader_run.h"

static void assert_same(const outcome *a, const outcome *b)
{
  ck_assert_int_eq(a->status, b->status);
  ck_assert_str_eq(a->out, b->out);
  ck_assert_str_eq(a->err, b->err);
}

/* Runs argv with and without; they must agree; returns what was recorded. */
static tally run_with_and_without(const char *const *argv, const char *const *env)
{
  outcome plain = run(WITHOUT, argv, env), watched = run(WITH, argv, env);
  tally t = count_spools("cudaMalloc");

  assert_same(&plain, &watched);
  ck_assert_int_eq(plain.status, 0);
  ck_assert_uint_eq(t.dropped, 0);
  ck_assert_uint_eq(t.damage, 0);
  ck_assert_uint_ge(t.spools, 1); /* python3 may be a script that finds the real one */
  return t;
}

static tally run_lookup_victim(const char *mode)
{
  const char *const argv[] = {built("tests/victims/loader/look"), mode, NULL};
  return run_with_and_without(argv, NULL);
}

static const char *const linked[] = {"calls-lazy", "calls-now", "calls-noplt", "calls-nopie",
                                     "calls-12"};

START_TEST(test_linked_calls_and_pointers_are_seen)
{
  char path[256];
  const char *const argv[] = {path, NULL};

  (void)snprintf(path, sizeof path, "%s/%s", built("tests/victims/loader"), linked[_i]);
  ck_assert_uint_eq(run_with_and_without(argv, NULL).events, 5);
}
END_TEST

START_TEST(test_linked_calls_are_seen_when_bound_at_start)
{
  const char *const argv[] = {built("tests/victims/loader/calls-lazy"), NULL};
  const char *const env[] = {"LD_BIND_NOW=1", NULL};

  ck_assert_uint_eq(run_with_and_without(argv, env).events, 5);
}
END_TEST

START_TEST(test_answers_by_handle_are_wrapped_and_misses_keep_their_message)
{
  tally t = run_lookup_victim("handle");

  ck_assert_uint_eq(t.events, 2);
  ck_assert_uint_eq(t.other, 1); /* cuMemAlloc_v2 */
}
END_TEST

START_TEST(test_ctypes_calls_are_seen)
{
  char script[1024];
  const char *const argv[] = {"python3", "-c", script, NULL};

  (void)snprintf(
      script, sizeof script,
      "import ctypes\n"
      "rt = ctypes.CDLL('%s')\n"
      "p = ctypes.c_void_p()\n"
      "for i in range(3): print(rt.cudaMalloc(ctypes.byref(p), ctypes.c_size_t(16)), p.value)\n"
      "print(hasattr(rt, 'cudaNoSuchThing'))\n",
      built("tests/victims/loader/libcudart.so.13"));
  ck_assert_uint_eq(run_with_and_without(argv, NULL).events, 3);
}
END_TEST

START_TEST(test_python_is_not_told_of_functions_that_are_not_there)
{
  const char *const argv[] = {
      "python3", "-c",
      "import ctypes\nn = ctypes.CDLL(None)\n"
      "for f in 'cudaMalloc', 'cuInit', 'cuGetProcAddress_v2', '__cudaLaunchKernel':"
      " print(f, hasattr(n, f))\n"
      "try: n.cudaMalloc\nexcept AttributeError as e: print(e)\n",
      NULL};
  outcome o;

  ck_assert_uint_eq(run_with_and_without(argv, NULL).events, 0);
  o = run(WITH, argv, NULL);
  ck_assert_ptr_nonnull(strstr(o.out, "cudaMalloc False"));
}
END_TEST

START_TEST(test_nothing_is_found_where_nothing_is)
{
  tally t = run_lookup_victim("nothing");

  ck_assert_uint_eq(t.events + t.other, 0);
}
END_TEST

START_TEST(test_answers_in_the_global_scope_are_wrapped)
{
  tally t = run_lookup_victim("global");

  ck_assert_uint_eq(t.events, 2);
  ck_assert_uint_eq(t.other, 1);
}
END_TEST

START_TEST(test_a_local_library_is_not_found_by_default)
{
  tally t = run_lookup_victim("local");

  ck_assert_uint_eq(t.events + t.other, 0);
}
END_TEST

START_TEST(test_two_runtimes_keep_their_own_functions)
{
  ck_assert_uint_eq(run_lookup_victim("both").events, 3);
}
END_TEST

START_TEST(test_versioned_look_ups_are_wrapped)
{
  ck_assert_uint_eq(run_lookup_victim("version").events, 2);
}
END_TEST

START_TEST(test_dlsym_found_by_dlsym_is_ours)
{
  ck_assert_uint_eq(run_lookup_victim("self").events, 3);
}
END_TEST

START_TEST(test_odd_names_and_failures_are_as_without_us)
{
  ck_assert_uint_eq(run_lookup_victim("odd").events, 0);
}
END_TEST

START_TEST(test_a_local_plugin_is_seen_by_name_and_by_look_up)
{
  ck_assert_uint_eq(run_lookup_victim("plugin").events, 3);
}
END_TEST

START_TEST(test_a_deepbind_plugin_is_seen)
{
  ck_assert_uint_eq(run_lookup_victim("deepbind").events, 3);
}
END_TEST

START_TEST(test_deepbind_can_be_kept)
{
  const char *const argv[] = {built("tests/victims/loader/look"), "deepbind", NULL};
  const char *const env[] = {"WEIR_DEEPBIND=keep", NULL};

  ck_assert_uint_lt(run_with_and_without(argv, env).events, 3);
}
END_TEST

START_TEST(test_a_plugin_loaded_again_elsewhere_is_seen_again)
{
  ck_assert_uint_eq(run_lookup_victim("reload").events, 6);
}
END_TEST

START_TEST(test_a_plugins_runpath_counts_for_what_it_opens)
{
  ck_assert_uint_eq(run_lookup_victim("runpath").events, 0);
}
END_TEST

START_TEST(test_a_namespace_works_and_is_said_to_be_unseen)
{
  tally t = run_lookup_victim("namespace");

  ck_assert_uint_eq(t.events, 1); /* the one in the base namespace */
  ck_assert_uint_eq(t.notes, 1);
}
END_TEST

START_TEST(test_a_runtime_packed_under_another_name_is_seen)
{
  ck_assert_uint_eq(run_lookup_victim("packed").events, 3);
}
END_TEST

/* Of each plug-in's three calls two are by name. Once there are two copies, looked-up functions are
 * passed as they are. */
START_TEST(test_two_copies_of_one_runtime_keep_to_their_own)
{
  ck_assert_uint_eq(run_lookup_victim("copies").events, 3 + 2 + 2);
}
END_TEST

START_TEST(test_copies_that_go_and_come_again_are_told_apart_at_every_call)
{
  run_lookup_victim("copies_again");
}
END_TEST

START_TEST(test_calls_before_our_constructor_are_seen)
{
  const char *const argv[] = {built("tests/victims/loader/calls-early"), NULL};

  ck_assert_uint_eq(run_with_and_without(argv, NULL).events, 5 + 3);
}
END_TEST

START_TEST(test_a_library_with_a_runtime_inside_keeps_its_own)
{
  ck_assert_uint_eq(run_lookup_victim("embed").events, 0);
}
END_TEST

START_TEST(test_64_threads_look_up_at_once)
{
  ck_assert_uint_eq(run_lookup_victim("threads").events, 64 * 500);
}
END_TEST

/* A program linked with a shim in front of the runtime calls the shim without a version, so it goes
 * to the shim, and what the shim calls by RTLD_NEXT is seen in the driver only. */
START_TEST(test_a_linked_shim_is_called_as_without_us)
{
  const char *const argv[] = {built("tests/victims/loader/calls-shim"), NULL};

  ck_assert_uint_eq(run_with_and_without(argv, NULL).events, 0);
}
END_TEST

static const char *const orders[] = {
    "%s/tests/victims/loader/libshim.so:%s/lib/libweir-preload.so",
    "%s/lib/libweir-preload.so:%s/tests/victims/loader/libshim.so"};

/* A preloaded shim before us calls the runtime by RTLD_NEXT, which passes untouched: its calls are
 * seen in the driver only. After us, we are called first. */
START_TEST(test_a_preloaded_shim_works_before_and_after_us)
{
  const char *const argv[] = {built("tests/victims/loader/calls-lazy"), NULL};
  char both[1024] = "LD_PRELOAD=", shim[512], spools[512];
  const char *const without[] = {shim, NULL}, *const with[] = {both, spools, NULL};
  const char *build = getenv("WEIR_BUILD");
  outcome a, b;

  (void)snprintf(both + 11, sizeof both - 11, _i == 0 ? orders[0] : orders[1], build, build);
  (void)snprintf(shim, sizeof shim, "LD_PRELOAD=%s/tests/victims/loader/libshim.so", build);
  (void)snprintf(spools, sizeof spools, "WEIR_SPOOL_DIR=%s", scratch("spools"));
  a = run(WITHOUT, argv, without);
  b = run(WITHOUT, argv, with);
  assert_same(&a, &b);
  ck_assert_ptr_nonnull(strstr(b.out, "shim\n0 0xd000002\n"));
  ck_assert_uint_eq(count_spools("cudaMalloc").events, _i == 0 ? 0 : 5);
}
END_TEST

/* Its references lead to us, and the driver comes with its first call. */
START_TEST(test_a_library_that_loads_the_driver_at_its_first_call_works_and_is_seen)
{
  ck_assert_uint_eq(run_lookup_victim("stub").other, 4);
}
END_TEST

START_TEST(test_variables_of_the_functions_names_are_no_shims)
{
  const char *const argv[] = {built("tests/victims/loader/pointers"), NULL};

  ck_assert_uint_eq(run_with_and_without(argv, NULL).other, 2);
}
END_TEST

/* A library preloaded behind us hands out its own functions for the driver's: they are called, and
 * the calls are seen. */
START_TEST(test_a_preloaded_library_that_hooks_look_ups_is_used_and_seen)
{
  char both[1024], alone[512], spools[512];
  const char *const argv[] = {built("tests/victims/loader/look"), "handle", NULL};
  const char *const without[] = {alone, NULL}, *const with[] = {both, spools, NULL};
  const char *build = getenv("WEIR_BUILD");
  outcome a, b;
  tally t;

  (void)snprintf(alone, sizeof alone, "LD_PRELOAD=%s/tests/victims/loader/libhooker.so", build);
  (void)snprintf(both, sizeof both,
                 "LD_PRELOAD=%s/lib/libweir-preload.so:%s/tests/victims/loader/libhooker.so", build,
                 build);
  (void)snprintf(spools, sizeof spools, "WEIR_SPOOL_DIR=%s", scratch("spools"));
  a = run(WITHOUT, argv, without);
  b = run(WITHOUT, argv, with);
  assert_same(&a, &b);
  ck_assert_ptr_nonnull(strstr(b.out, "c0000011"));
  t = count_spools("cuMemAlloc_v2");
  ck_assert_uint_eq(t.events, 2);
  ck_assert_uint_eq(t.other, 2); /* cudaMalloc */
}
END_TEST

static Suite *loader_lookup_suite(void)
{
  Suite *s = suite_create("loader: look-up");
  TCase *t = tcase_create("look-up");

  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, scratch_begin, scratch_end);
  tcase_add_loop_test(t, test_linked_calls_and_pointers_are_seen, 0,
                      sizeof linked / sizeof *linked);
  tcase_add_test(t, test_linked_calls_are_seen_when_bound_at_start);
  tcase_add_test(t, test_answers_by_handle_are_wrapped_and_misses_keep_their_message);
  tcase_add_test(t, test_ctypes_calls_are_seen);
  tcase_add_test(t, test_python_is_not_told_of_functions_that_are_not_there);
  tcase_add_test(t, test_nothing_is_found_where_nothing_is);
  tcase_add_test(t, test_answers_in_the_global_scope_are_wrapped);
  tcase_add_test(t, test_a_local_library_is_not_found_by_default);
  tcase_add_test(t, test_two_runtimes_keep_their_own_functions);
  tcase_add_test(t, test_versioned_look_ups_are_wrapped);
  tcase_add_test(t, test_dlsym_found_by_dlsym_is_ours);
  tcase_add_test(t, test_odd_names_and_failures_are_as_without_us);
  tcase_add_test(t, test_a_local_plugin_is_seen_by_name_and_by_look_up);
  tcase_add_test(t, test_a_deepbind_plugin_is_seen);
  tcase_add_test(t, test_deepbind_can_be_kept);
  tcase_add_test(t, test_a_plugin_loaded_again_elsewhere_is_seen_again);
  tcase_add_test(t, test_a_plugins_runpath_counts_for_what_it_opens);
  tcase_add_test(t, test_a_namespace_works_and_is_said_to_be_unseen);
  tcase_add_test(t, test_a_runtime_packed_under_another_name_is_seen);
  tcase_add_test(t, test_two_copies_of_one_runtime_keep_to_their_own);
  tcase_add_test(t, test_copies_that_go_and_come_again_are_told_apart_at_every_call);
  tcase_add_test(t, test_calls_before_our_constructor_are_seen);
  tcase_add_test(t, test_a_library_with_a_runtime_inside_keeps_its_own);
  tcase_add_test(t, test_64_threads_look_up_at_once);
  tcase_add_test(t, test_a_linked_shim_is_called_as_without_us);
  tcase_add_loop_test(t, test_a_preloaded_shim_works_before_and_after_us, 0, 2);
  tcase_add_test(t, test_a_library_that_loads_the_driver_at_its_first_call_works_and_is_seen);
  tcase_add_test(t, test_variables_of_the_functions_names_are_no_shims);
  tcase_add_test(t, test_a_preloaded_library_that_hooks_look_ups_is_used_and_seen);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  SRunner *r = srunner_create(loader_lookup_suite());
  int failed;

  srunner_run_all(r, CK_ENV);
  failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
