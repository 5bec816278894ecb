/* test_counts.c: what a program counted for itself is what its trace says, exactly.
 *
 * WEIR_TEST_SEEDS=FIRST-LAST chooses the seeds; make test takes a few, test_counts_long 500. */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/api.h"
#include "tests/e2e/compare.h"
#include "tests/level.h"
#include "tests/tools/command.h"

#ifndef SEEDS
#define SEEDS AT_LEVEL(18, 60, 500)
#endif

/* Runs one seed under Weir and holds its tally against the report, and against what devices did. */
static void run_seed(const char *program, int seed, bool names)
{
  static const int threads[] = {1, 2, 4, 16};
  static const char *const modes[] = {"observe", "strict", "relaxed"};
  static const char *const times[] = {"copies", "all", "off"};
  int n = threads[seed % 4], seen = seed / 3 % 3;
  sh_status(0,
            "$WEIR run --force -o t.db --sim=%d --mode=%s --device-times=%s --stacks=%s --"
            " $BUILD/tests/e2e/%s %d %d %d tally.json",
            1 + seed / 2 % 2, modes[seed % 3], times[seen], seed % 2 ? "off" : "16", program, seed,
            n, 240 / n);
  sh_status(0, "$WEIR report --format json t.db > report.json");
  compare_tally("tally.json", "report.json", names);
  if (seen < 2) compare_device_work("tally.json", "t.db", seen == 1);
}

START_TEST(random_calls_are_in_the_trace_exactly)
{
  run_seed("random_caller", _i, true);
}
END_TEST

/* A program with the runtime linked in shows driver calls only; their sums are the same. */
START_TEST(random_calls_of_a_static_runtime_are_in_the_trace_exactly)
{
  run_seed("random_caller_static", SEEDS + _i, false);
}
END_TEST

/* Functions of the table that the random caller leaves out, and why. The suites of tests/interpose
 * call each of them, on a driver made for that. Beside these, all earlier ABIs of a function whose
 * later one is in the table: no header of today can call them. */
static const struct {
  const char *pattern, *why;
} left_out[] = {
    {"*Mipmapped*", "the software device has none yet"},
    {"*Capture*", "the programs of tests/reroute make captures"},
    {"cudaMem*_v2*", "gone from CUDA 13"},
    {"cu*GL[ISRUMC]*", "shared with GL, which is not at hand"},
    {"cu*EGL*", "shared with EGL, which is not at hand"},
    {"cu*VDPAU*", "shared with VDPAU, which is not at hand"},
    {"cuLaunch", "gone from CUDA 13"},
    {"cuLaunchGrid*", "gone from CUDA 13"},
    {"cuLaunchCooperativeKernelMultiDevice", "gone from CUDA 13"},
    {"cudaThread*", "gone from CUDA 13"},
    {"cuCtx[AD]?tach", "gone from CUDA 13"},
    {"cuCtxDetach", "gone from CUDA 13"},
    {"cuCtxSetSharedMemConfig", "gone from CUDA 13"},
    {"cuCtxSynchronize_v2", "needs a green context"},
    {"cuCtx*Event", "needs a green context"},
    {"cu*GreenCtxStreamCreate", "the software device has none"},
    {"cuCtxFromGreenCtx", "the software device has none"},
    {"__cuda[GR]*", "called by start-up code, not by the caller"},
    {"__cudaLaunchKernel_ptsz", "called by nvcc's code, built once"},
    {"cuInit", "called by the runtime"},
    {"*DriverEntryPoint*", "a look-up"},
    {"cuGetProcAddress*", "a look-up"},
    {"*Kernel*Function", "a look-up"},
    {"cu*LibraryGetKernel", "a look-up"},
    {"cuLibraryEnumerateKernels", "a look-up"},
    {"cudaGet*Kernel", "a look-up"},
    {"cudaGetFuncBySymbol", "a look-up"},
    {"cuMemGetInfo_v2", "a question: no event"},
    {"cuMemGetAddressRange_v2", "a question: no event"},
    {"cuMemHostGet*", "a question: no event"},
    {"cuPointerGetAttribute*", "a question: no event but for tokens"},
    {"cuGraph*[hpd]NodeSetParams", "as the functions of one kind of node each"},
    {"cuGraphNodeSetParams", "as the functions of one kind of node each"},
    {"cuGraphExecNodeSetParams", "as the functions of one kind of node each"},
    {"cuGraphInstantiate*", "the programs of tests/reroute make and launch graphs"},
    {"cu*IpcOpenMemHandle*", "needs another process"},
    {"cu*IpcCloseMemHandle", "needs another process"},
    {"cu*MemPoolImportPointer", "needs another process"},
    {"cu*ExternalMemory*", "the software device has none"},
    {"*ResetPersistingL2Cache", "changes the process for other threads"},
    {"cudaInitDevice", "changes the process for other threads"},
    {"cudaSet*Device*s", "changes the process for other threads"},
    {"cuDevicePrimaryCtx[RS]*set*", "changes the process for other threads"},
    {"cuDevicePrimaryCtxSetFlags*", "changes the process for other threads"},
    {"cuCtxSet[CFL]*[gst]", "changes the process for other threads"},
    {"cuCtx*PeerAccess", "changes the process for other threads"},
};

/* Of an earlier ABI: one whose later spelling, for the same default stream, is in the table. */
static bool later_abi_in_table(const char *name)
{
  char longer[80];
  const char *stream = strstr(name, "_pt");
  int n = (int)(stream ? (size_t)(stream - name) : strlen(name)), from = 2;
  if (n > 3 && strncmp(name + n - 3, "_v", 2) == 0) from = name[n - 1] - '0' + 1, n -= 3;
  for (int v = from; v <= 4; v++) {
    (void)snprintf(longer, sizeof longer, "%.*s_v%d%s", n, name, v, stream ? stream : "");
    uint32_t api = api_find_name(longer);
    if (api && api_row(api)->how == WEIR_API_WRAPPED) return true;
  }
  return false;
}

static bool excused(const char *name)
{
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (fnmatch(left_out[i].pattern, name, 0) == 0) return true;
  return later_abi_in_table(name);
}

START_TEST(the_random_caller_calls_every_function_of_the_table)
{
  char missing[8192] = "";
  size_t used = 0;
  for (int seed = 0; seed < 8; seed++) {
    sh_status(
        0,
        "$WEIR run --force -o t.db --sim=2 -- $BUILD/tests/e2e/random_caller %d 4 400 tally.json",
        seed);
    remember_names("tally.json");
  }
  for (uint32_t i = 1; i < api_total; i++) {
    const api_info *a = api_row(i);
    if (a->category == WEIR_API_QUERY) continue; /* counted, and no events: test_asked.c */
    if (a->how != WEIR_API_WRAPPED || excused(a->name) || remembered_name(a->name)) continue;
    used += (size_t)snprintf(missing + used, sizeof missing - used, " %s", a->name);
    if (used > sizeof missing - 128) break;
  }
  ck_assert_msg(used == 0, "never called:%s", missing);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("counts");
  TCase *t = tcase_create("exact");
  tcase_set_timeout(t, 600);
  tcase_add_checked_fixture(t, enter_scratch, leave_scratch);
  tcase_add_loop_test(t, random_calls_are_in_the_trace_exactly, 0, SEEDS);
  tcase_add_loop_test(t, random_calls_of_a_static_runtime_are_in_the_trace_exactly, 0, SEEDS);
  tcase_add_test(t, the_random_caller_calls_every_function_of_the_table);
  suite_add_tcase(s, t);
  return run_suite(s);
}
