/* test_hooks_lookups.c: cuGetProcAddress and its kin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/api.h"
#include "interpose/record/cuda_headers.h"
#include "interpose/table/hooks.gen.h"
#include "interpose/table/rows.h"
#include "interpose/reroute/reroute.h"
#include "interpose/record/unwrapped.h"
#include "interpose/record/work.h"
#include "tests/interpose/hooks_rig.h"
#include "tests/interpose/movable.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define D(fn) ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_DRIVER, #fn))
#define R(fn) ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_RT13, #fn))

/* What a driver answers: the highest ABI not above the version; the per-thread spelling with flag 2
 * where there is one. The fake returns its own exported function of that name. */
static const char *symbol_for(const char *name, int version, uint64_t flags)
{
  const char *best = NULL;
  for (int ptds = (flags & 2) != 0; ptds >= 0 && !best; ptds--)
    for (uint32_t i = 0; i < hook_abi_count; i++) {
      const hook_abi *a = &hook_abis[i];
      if (strcmp(a->name, name) == 0 && a->per_thread == ptds && a->version <= (uint32_t)version)
        best = api_row(a->api)->name;
    }
  return best;
}

static void *resolve(const char *name, int version, uint64_t flags)
{
  const char *symbol = symbol_for(name, version, flags);
  return symbol ? rig_original(0, symbol) : NULL;
}

/* A driver newer than us: one function has a third ABI from 14000 on. */
static void *resolve_newer(const char *name, int version, uint64_t flags)
{
  if (strcmp(name, "cuMemAlloc") == 0 && version >= 14000) return rig_original(0, "cuGetErrorName");
  return resolve(name, version, flags);
}

static void set_up_resolving_fakes(void)
{
  rig_setup();
  for (int b = 0; b < WEIR_BANKS; b++)
    rig_fake[b]->resolve = resolve;
  rig_unknown = 0;
}

static void *driver_entry_point(const char *name, int version, uint64_t flags)
{
  void *p = NULL;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
  CUresult r = D(cuGetProcAddress_v2)(name, &p, version, flags, &status);
  if (r == CUDA_SUCCESS) ck_assert_int_eq(status, CU_GET_PROC_ADDRESS_SUCCESS);
  return p;
}

static void *wrapper(const char *symbol)
{
  const hook_row *row = hook_row_find(WEIR_BANK_DRIVER, symbol);
  return row ? row->wrapper : NULL;
}

START_TEST(all_that_cudart_looks_up_is_wrapped_or_passed_unchanged)
{
  FILE *f = fopen("tests/interpose/data/cudart-13.0-lookups.tsv", "r");
  ck_assert_ptr_nonnull(f);
  char line[256];
  unsigned lines = 0, wrapped = 0, passed = 0;
  while (fgets(line, sizeof line, f)) {
    char name[128] = "";
    int version = 0;
    unsigned flags = 0;
    if (line[0] == '\t') continue; /* the probe: below */
    ck_assert_int_eq(sscanf(line, "%127s %d %x", name, &version, &flags), 3);
    const char *symbol = symbol_for(name, version, flags);
    ck_assert_msg(symbol != NULL, "%s", name);
    const hook_name *n = hook_name_find(symbol);
    void *got = driver_entry_point(name, version, flags), *want = wrapper(symbol);
    ck_assert_msg(got == (want ? want : rig_original(0, symbol)), "%s %d %u", name, version, flags);
    ck_assert_msg(rig_covered[n->api] & (want ? WEIR_COVER_LOOKED_UP : WEIR_COVER_PASSED), "%s",
                  name);
    lines++, *(want ? &wrapped : &passed) += 1;
  }
  (void)fclose(f);
  ck_assert_uint_eq(lines, 439);
  ck_assert_uint_ge(wrapped, 263);
  ck_assert_uint_gt(passed, 0);
  ck_assert_uint_eq(rig_unknown, 0);
}
END_TEST

START_TEST(a_name_with_two_abis_gets_the_one_of_its_version)
{
  static const struct {
    const char *name;
    int version;
    unsigned flags;
    const char *symbol;
  } t[] = {
      {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
      {"cuMemAlloc", 3019, 0, "cuMemAlloc"},
      {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
      {"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
      {"cuMemcpyHtoD", 3020, 0, "cuMemcpyHtoD_v2"},
      {"cuMemcpyHtoD", 7000, 2, "cuMemcpyHtoD_v2_ptds"},
      {"cuMemcpyHtoD", 7000, 1, "cuMemcpyHtoD_v2"},
      {"cuMemcpyHtoD", 2000, 0, "cuMemcpyHtoD"},
      {"cuMemPrefetchAsync", 8000, 0, "cuMemPrefetchAsync"},
      {"cuMemPrefetchAsync", 12020, 0, "cuMemPrefetchAsync_v2"},
      {"cuMemPrefetchAsync", 12020, 2, "cuMemPrefetchAsync_v2_ptsz"},
      {"cuMemAdvise", 12010, 0, "cuMemAdvise"},
      {"cuMemAdvise", 12020, 0, "cuMemAdvise_v2"},
      {"cuCtxSynchronize", 2000, 0, "cuCtxSynchronize"},
      {"cuCtxSynchronize", 12999, 0, "cuCtxSynchronize"},
      {"cuCtxSynchronize", 13000, 0, "cuCtxSynchronize_v2"},
      {"cuStreamBeginCapture", 10000, 0, "cuStreamBeginCapture"},
      {"cuStreamBeginCapture", 10010, 2, "cuStreamBeginCapture_v2_ptsz"},
      {"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"},
      {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
      {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
      {"cuGetProcAddress", 13000, 2, "cuGetProcAddress_v2"},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++)
    ck_assert_msg(driver_entry_point(t[i].name, t[i].version, t[i].flags) == wrapper(t[i].symbol),
                  "%s %d", t[i].name, t[i].version);
}
END_TEST

START_TEST(the_old_look_up_hands_out_the_same)
{
  void *p = NULL;
  ck_assert_int_eq(D(cuGetProcAddress)("cuMemFree", &p, 11000, 0), CUDA_SUCCESS);
  ck_assert_ptr_eq(p, wrapper("cuMemFree_v2"));
  ck_assert_str_eq(rig_fake[0]->last, "cuGetProcAddress");
}
END_TEST

START_TEST(the_probe_and_failures_pass_untouched)
{
  void *p = (void *)&p;
  ck_assert_int_eq(D(cuGetProcAddress_v2)("", NULL, 0, 0, NULL), 500);
  ck_assert_int_eq(D(cuGetProcAddress_v2)("cuNoSuchThing", &p, 13000, 0, NULL), 500);
  rig_fake[0]->status = 3;
  p = (void *)&p;
  ck_assert_int_eq(D(cuGetProcAddress_v2)("cuMemAlloc", &p, 13000, 0, NULL), 3);
  ck_assert_ptr_eq(p, (void *)&p);
  ck_assert_uint_eq(rig_unknown, 0);
  ck_assert_uint_eq(rig_read()->events, 0);
}
END_TEST

static void *resolve_future(const char *name, int version, uint64_t flags)
{
  (void)version, (void)flags;
  return strcmp(name, "cuFutureThing") == 0 ? rig_original(0, "cuGetErrorName") : NULL;
}

START_TEST(a_name_nobody_knows_is_counted_and_passed)
{
  rig_fake[0]->resolve = resolve_future;
  ck_assert_ptr_eq(driver_entry_point("cuFutureThing", 14000, 0),
                   rig_original(0, "cuGetErrorName"));
  ck_assert_uint_eq(rig_unknown, 1);
  ck_assert_str_eq(rig_unknown_name, "cuFutureThing");
}
END_TEST

/* Which frees would otherwise not know of. */
START_TEST(the_call_of_a_function_nobody_knows_ends_frees_that_do_not_wait)
{
  typedef CUresult (*fn)(CUresult, const char **);
  void *streams[4];
  const char *text = NULL, *same = NULL;
  fn real = (fn)(uintptr_t)rig_original(0, "cuGetErrorName");
  rig_fake[0]->resolve = resolve_future;
  atomic_store(&process_mode, WEIR_RELAXED);
  fn watched = (fn)(uintptr_t)driver_entry_point("cuFutureThing", 14000, 0);
  ck_assert(watched != real);
  ck_assert(watched == (fn)(uintptr_t)driver_entry_point("cuFutureThing", 14000, 0));
  ck_assert_int_eq(work_list(1, streams, 4), 0);
  ck_assert_ptr_null(unwrapped_called());
  ck_assert_int_eq(watched(CUDA_SUCCESS, &text), real(CUDA_SUCCESS, &same));
  ck_assert_ptr_eq(text, same);
  ck_assert_str_eq(unwrapped_called(), "cuFutureThing");
  ck_assert_int_eq(work_list(1, streams, 4), -1);
}
END_TEST

START_TEST(a_green_context_ends_frees_that_do_not_wait)
{
  void *streams[4];
  CUcontext context = NULL;
  atomic_store(&process_mode, WEIR_RELAXED);
  ck_assert_int_eq(work_list(1, streams, 4), 0);
  ck_assert_int_eq(D(cuCtxFromGreenCtx)(&context, NULL), CUDA_SUCCESS);
  ck_assert_int_eq(work_list(1, streams, 4), -1);
}
END_TEST

START_TEST(more_functions_than_can_be_watched_end_them_too)
{
  static char functions[THUNKS + 1];
  void *streams[4];
  atomic_store(&process_mode, WEIR_RELAXED);
  for (int i = 0; i < THUNKS; i++)
    ck_assert_ptr_ne(unwrapped_watch("cuFuture", &functions[i]), &functions[i]);
  ck_assert_int_eq(work_list(1, streams, 4), 0);
  ck_assert_ptr_eq(unwrapped_watch("cuFuture", &functions[THUNKS]), &functions[THUNKS]);
  ck_assert_int_eq(work_list(1, streams, 4), -1);
}
END_TEST

START_TEST(a_version_above_all_known_is_ours_only_if_the_driver_has_no_newer_abi)
{
  rig_fake[0]->resolve = resolve_newer;
  ck_assert_ptr_eq(driver_entry_point("cuMemFree", 14000, 0), wrapper("cuMemFree_v2"));
  ck_assert_uint_eq(rig_unknown, 0);
  ck_assert_ptr_eq(driver_entry_point("cuMemAlloc", 13900, 0), wrapper("cuMemAlloc_v2"));
  ck_assert_ptr_eq(driver_entry_point("cuMemAlloc", 14000, 0), rig_original(0, "cuGetErrorName"));
  ck_assert_uint_eq(rig_unknown, 1);
}
END_TEST

START_TEST(the_runtimes_look_ups_hand_out_wrappers)
{
  void *p = NULL;
  enum cudaDriverEntryPointQueryResult q;
  ck_assert_int_eq(R(cudaGetDriverEntryPointByVersion)("cuMemAlloc", &p, 2000, 0, &q), cudaSuccess);
  ck_assert_ptr_eq(p, wrapper("cuMemAlloc"));
  ck_assert_int_eq(R(cudaGetDriverEntryPointByVersion_ptsz)("cuMemcpyHtoD", &p, 12000, 0, &q),
                   cudaSuccess);
  ck_assert_ptr_eq(p, wrapper("cuMemcpyHtoD_v2_ptds"));
  ck_assert_int_eq(R(cudaGetDriverEntryPoint)("cuMemcpyHtoD", &p, 0, &q), cudaSuccess);
  ck_assert_ptr_eq(p, wrapper("cuMemcpyHtoD_v2"));
  ck_assert_int_eq(R(cudaGetDriverEntryPointByVersion)("cuNoSuchThing", &p, 12000, 0, &q),
                   cudaSuccess);
  ck_assert_ptr_null(p);
}
END_TEST

START_TEST(a_wrapper_is_never_wrapped)
{
  const hook_row *row = hook_row_find(WEIR_BANK_DRIVER, "cuMemAlloc_v2");
  ck_assert_ptr_eq(hook_row_bind(row, row->wrapper), row->wrapper);
  ck_assert_ptr_ne(atomic_load(row->real), row->wrapper);
  ck_assert_ptr_null(hook_row_bind(row, NULL));
}
END_TEST

START_TEST(a_second_copy_of_a_library_is_not_taken_for_the_first)
{
  const hook_row *row = hook_row_find(WEIR_BANK_RT13, "cudaMalloc");
  void *first = rig_original(WEIR_BANK_RT13, "cudaMalloc"),
       *other = rig_original(WEIR_BANK_RT12, "cudaMalloc");
  ck_assert_ptr_eq(hook_row_bind(row, first), row->wrapper);
  ck_assert_ptr_eq(hook_row_bind(row, other), other);
  ck_assert_ptr_eq(atomic_load(row->real), first);
}
END_TEST

START_TEST(names_are_found_exactly)
{
  static const char *const not_ours[] = {"",
                                         "c",
                                         "cu",
                                         "cuda",
                                         "cublasCreate_v2",
                                         "cudnnCreate",
                                         "cufftPlan1d",
                                         "curl_easy_init",
                                         "cuMemAllo",
                                         "cuMemAlloc_v",
                                         "cuMemAlloc_v3",
                                         "cudaMallocX",
                                         "__cudaMalloc",
                                         "cuGetErrorName"};
  for (size_t i = 0; i < sizeof not_ours / sizeof *not_ours; i++)
    ck_assert_msg(!hook_name_is_wrapped(not_ours[i]), "%s", not_ours[i]);
  for (uint32_t i = 0; i < hook_row_count; i++) {
    ck_assert(hook_name_is_wrapped(hook_rows[i].name));
    ck_assert_ptr_eq(hook_row_find(hook_rows[i].bank, hook_rows[i].name), &hook_rows[i]);
    ck_assert_uint_eq(hook_api_find(hook_rows[i].name), hook_rows[i].api);
  }
  ck_assert_uint_ne(hook_api_find("cuGetErrorName"), 0);
  ck_assert_ptr_null(hook_row_find(WEIR_BANK_DRIVER, "cudaMalloc"));
  ck_assert_ptr_null(hook_row_find(WEIR_BANK_RT13, "cudaThreadSynchronize"));
  ck_assert_ptr_nonnull(hook_row_find(WEIR_BANK_RT12, "cudaThreadSynchronize"));
}
END_TEST

START_TEST(the_generated_files_are_what_the_table_gives)
{
  const char *cuda = getenv("CUDA_HOME");
  char command[512];
  (void)snprintf(command, sizeof command, "python3 interpose/table/gen.py --cuda '%s' --check",
                 cuda && *cuda ? cuda : "/usr/local/cuda");
  ck_assert_int_eq(system(command), 0);
}
END_TEST

/* As what is exported does: test_entries.c. */
START_TEST(what_is_handed_out_begins_with_what_any_patcher_can_move)
{
  static char function;
  atomic_store(&process_mode, WEIR_RELAXED);
  const void *watched = unwrapped_watch("cuFuture", &function);
  ck_assert_ptr_ne(watched, &function);
  ck_assert_uint_ge(movable_bytes(watched, 16), 16);
  for (uint32_t i = 0; i < hook_row_count; i++)
    ck_assert_msg(movable_bytes(hook_rows[i].wrapper, 16) >= 16, "%s", hook_rows[i].name);
}
END_TEST

#define TESTS(X)                                                                                   \
  X(all_that_cudart_looks_up_is_wrapped_or_passed_unchanged)                                       \
  X(a_name_with_two_abis_gets_the_one_of_its_version)                                              \
  X(the_old_look_up_hands_out_the_same)                                                            \
  X(the_probe_and_failures_pass_untouched)                                                         \
  X(the_call_of_a_function_nobody_knows_ends_frees_that_do_not_wait)                               \
  X(a_green_context_ends_frees_that_do_not_wait)                                                   \
  X(more_functions_than_can_be_watched_end_them_too)                                               \
  X(what_is_handed_out_begins_with_what_any_patcher_can_move)                                      \
  X(a_name_nobody_knows_is_counted_and_passed)                                                     \
  X(a_version_above_all_known_is_ours_only_if_the_driver_has_no_newer_abi)                         \
  X(the_runtimes_look_ups_hand_out_wrappers)                                                       \
  X(a_wrapper_is_never_wrapped)                                                                    \
  X(a_second_copy_of_a_library_is_not_taken_for_the_first)                                         \
  X(names_are_found_exactly)                                                                       \
  X(the_generated_files_are_what_the_table_gives)

int main(void)
{
  Suite *s = suite_create("look-ups");
  TCase *c = tcase_create("look-ups");
  tcase_set_timeout(c, 60);
  tcase_add_checked_fixture(c, set_up_resolving_fakes, rig_teardown);
#define ADD(test) tcase_add_test(c, test);
  TESTS(ADD)
  suite_add_tcase(s, c);
  return rig_run(s);
}
