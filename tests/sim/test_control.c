/* test_control.c: what tests may do to the software device: faults, links, counters; and what it
 * does by its environment. */
#include "sim.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

START_TEST(any_call_of_any_function_can_fail)
{
  CUdeviceptr p = device_bytes(100);
  CUstream s;
  ok(weir_sim_set_fail("cuStreamCreate:*=2,cuMemcpyHtoD_v2:2=1,cuStreamSynchronize_ptsz:1=999"));
  fails(cuStreamCreate(&s, 0), CUDA_ERROR_OUT_OF_MEMORY);
  fails(cuStreamCreate(&s, 0), CUDA_ERROR_OUT_OF_MEMORY);
  ok(cuMemcpyHtoD_v2(p, &s, 8));
  fails(cuMemcpyHtoD_v2(p, &s, 8), CUDA_ERROR_INVALID_VALUE);
  ok(cuMemcpyHtoD_v2(p, &s, 8));
  ok(cuMemcpyHtoD_v2_ptds(p, &s, 8)); /* another function */
  ok(cuStreamSynchronize(NULL));
  fails(cuStreamSynchronize_ptsz(NULL), CUDA_ERROR_UNKNOWN);
  ok(weir_sim_set_fail(NULL));
  ok(cuStreamCreate(&s, 0));
}
END_TEST

START_TEST(a_failed_call_does_nothing)
{
  size_t before, after;
  CUdeviceptr p = 77;
  ok(cuMemGetInfo_v2(&before, NULL));
  ok(weir_sim_set_fail("cuMemAlloc_v2:1=2"));
  fails(cuMemAlloc_v2(&p, 4 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  ck_assert_uint_eq(p, 77);
  ok(cuMemGetInfo_v2(&after, NULL));
  ck_assert_uint_eq(before, after);
}
END_TEST

START_TEST(lists_that_cannot_be_read_are_errors)
{
  static const char *const faults[] = {
      "cuMemAlloc_v2",     "cuMemAlloc_v2:1",  "cuNoSuch:1=2",      "cuMemAlloc_v2:0=2",
      "cuMemAlloc_v2:x=2", "cuMemAlloc_v2:1=", "cuMemAlloc_v2:1=-3"};
  static const char *const links[] = {"h2d", "up:1G", "h2d:1G:5", "h2d:1G:5parsec", "h2d:xG:1us"};
  int null = open("/dev/null", 1), old = dup(2);
  dup2(null, 2);
  int wrong = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    wrong += weir_sim_set_fail(faults[i]) != CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    wrong += weir_sim_set_link(links[i]) != CUDA_ERROR_INVALID_VALUE;
  dup2(old, 2);
  ck_assert_int_eq(wrong, 0);
  ok(weir_sim_set_fail("cuMemAlloc_v2:1=2,,"));
  ok(weir_sim_set_link("h2d:12G:5us,d2h:500M,p2p:0:1ms"));
  ok(weir_sim_set_link(""));
}
END_TEST

START_TEST(calls_from_outside_are_counted_by_name)
{
  uint64_t before = weir_sim_count("cuMemAlloc_v2"), host = weir_sim_count("cuMemHostAlloc");
  CUdeviceptr p;
  size_t pitch;
  void *h;
  ok(cuMemAlloc_v2(&p, 100));
  fails(cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE); /* failed ones too */
  ok(cuMemAllocPitch_v2(&p, &pitch, 100, 2, 4));         /* which uses the first inside */
  ok(cuMemAllocHost_v2(&h, 100));
  ck_assert_uint_eq(weir_sim_count("cuMemAlloc_v2") - before, 2);
  ck_assert_uint_eq(weir_sim_count("cuMemAllocPitch_v2"), 1);
  ck_assert_uint_eq(weir_sim_count("cuMemHostAlloc") - host, 0);
  ck_assert_uint_eq(weir_sim_count("cuNoSuch"), 0);
}
END_TEST

static void *count_on_a_thread(void *p)
{
  CUcontext c;
  for (int i = 0; i < 1000; i++)
    cuCtxGetCurrent(&c);
  return p;
}

START_TEST(threads_that_have_ended_are_counted)
{
  pthread_t t[4];
  for (int i = 0; i < 4; i++)
    pthread_create(&t[i], NULL, count_on_a_thread, NULL);
  for (int i = 0; i < 4; i++)
    pthread_join(t[i], NULL);
  ck_assert_uint_eq(weir_sim_count("cuCtxGetCurrent"), 4000);
}
END_TEST

/* ---- by environment: in a child that has not initialised ------------------------------------- */

static int run_in_child(void (*body)(void))
{
  pid_t pid = fork();
  if (!pid) {
    body();
    exit(0);
  }
  int status;
  waitpid(pid, &status, 0);
  return status;
}

static char counts[64];

static void count_a_little(void)
{
  setenv("WEIR_SIM_COUNTS", counts, 1);
  set_up_device0();
  CUdeviceptr p = device_bytes(100);
  for (int i = 0; i < 5; i++)
    ok(cuMemsetD8_v2(p, 0, 100));
  ok(cuCtxSynchronize());
}

START_TEST(counts_are_written_at_exit)
{
  char line[100], path[80], folder[] = "/tmp/weir-counts-XXXXXX";
  ck_assert_ptr_nonnull(mkdtemp(folder));
  ck_assert_int_lt(snprintf(counts, sizeof counts, "%s/%%p.txt", folder), (int)sizeof counts);
  pid_t pid = fork();
  if (!pid) {
    count_a_little();
    exit(0);
  }
  int status, sets = 0;
  waitpid(pid, &status, 0);
  ck_assert_int_eq(status, 0);
  (void)snprintf(path, sizeof path, "%s/%ld.txt", folder, (long)pid);
  FILE *f = fopen(path, "r");
  ck_assert_ptr_nonnull(f);
  while (fgets(line, sizeof line, f)) {
    ck_assert_ptr_null(strstr(line, " 0\n"));
    if (sscanf(line, "cuMemsetD8_v2 %d", &sets) == 1) continue;
  }
  ck_assert_int_eq(fclose(f), 0);
  unlink(path);
  rmdir(folder);
  ck_assert_int_eq(sets, 5);
}
END_TEST

static void small_memory(void)
{
  setenv("WEIR_SIM_MEMORY", "32M", 1);
  setenv("WEIR_SIM_FAIL", "cuInit:1=999", 1);
  if (cuInit(0) != CUDA_ERROR_UNKNOWN) _exit(1);
  set_up_device0();
  size_t total;
  CUdeviceptr p;
  if (cuMemGetInfo_v2(NULL, &total) || total != 32 << 20) _exit(2);
  if (cuMemAlloc_v2(&p, 33 << 20) != CUDA_ERROR_OUT_OF_MEMORY) _exit(3);
  if (cuMemAlloc_v2(&p, 32 << 20)) _exit(4);
}

START_TEST(memory_and_faults_come_from_the_environment)
{
  ck_assert_int_eq(run_in_child(small_memory), 0);
}
END_TEST

/* ---- links ----------------------------------------------------------------------------------- */

static double seconds(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

START_TEST(a_link_is_as_slow_as_it_is_told)
{
  CUdeviceptr p = device_bytes(1 << 20), q = device_bytes(1 << 20);
  void *h = pinned_bytes(1 << 20);
  ok(weir_sim_set_link("d2h:100M:5ms"));
  double begin = seconds();
  ok(cuMemcpyDtoH_v2(h, p, 1 << 20));
  ck_assert(seconds() - begin >= 0.0154);
  begin = seconds();
  ok(cuMemcpyHtoDAsync_v2(p, h, 1 << 20, NULL)); /* other directions are not */
  ok(cuMemcpyDtoD_v2(q, p, 1 << 20));
  ok(cuMemcpyDtoHAsync_v2(h, q, 1 << 20, NULL)); /* returns early all the same */
  ok(cuStreamSynchronize(NULL));
  ck_assert(seconds() - begin >= 0.0154);
}
END_TEST

START_TEST(pageable_copies_are_as_slow_as_the_host)
{
  CUdeviceptr p = device_bytes(1 << 20);
  void *pinned = pinned_bytes(1 << 20), *pageable = malloc(1 << 20);
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  ok(weir_sim_set_link("h2d:1G,d2h:1G,pageable:50M"));
  double begin = seconds();
  ok(cuMemcpyHtoDAsync_v2(p, pageable, 1 << 20, s));
  ok(cuStreamSynchronize(s));
  ck_assert(seconds() - begin >= 0.0209);
  begin = seconds();
  ok(cuMemcpyDtoHAsync_v2(pageable, p, 1 << 20, s));
  ok(cuStreamSynchronize(s));
  ck_assert(seconds() - begin >= 0.0209);
  ok(weir_sim_set_link("h2d:1G,pageable:1M:5ms"));
  ok(weir_sim_hold(s));
  begin = seconds();
  ok(cuMemcpyHtoDAsync_v2(p, pageable, 10000, s)); /* staged by the call */
  ck_assert(seconds() - begin >= 0.0149);
  ok(cuMemcpyHtoDAsync_v2(p, pinned, 1 << 20, s)); /* no host in it */
  ok(weir_sim_release(s));
  ok(cuStreamSynchronize(s));
  free(pageable);
}
END_TEST

START_TEST(copies_of_one_direction_share_the_link)
{
  CUdeviceptr p = device_bytes(1 << 20);
  void *h = pinned_bytes(1 << 20);
  CUstream s[3];
  ok(weir_sim_set_link("h2d:200M:0ns"));
  for (int i = 0; i < 3; i++)
    ok(cuStreamCreate(&s[i], CU_STREAM_NON_BLOCKING));
  double begin = seconds();
  for (int i = 0; i < 3; i++)
    ok(cuMemcpyHtoDAsync_v2(p, h, 1 << 20, s[i]));
  ok(cuCtxSynchronize());
  ck_assert(seconds() - begin >= 3 * 0.0052);
}
END_TEST

/* ---- costs of a card ------------------------------------------------------------------------- */

START_TEST(calls_take_as_long_as_they_cost_on_the_card)
{
  enum { TIMES = 20 };
  CUdeviceptr p[TIMES];
  void *h;
  ok(weir_sim_set_card("h100"));
  double begin = seconds();
  for (int i = 0; i < TIMES; i++)
    p[i] = device_bytes(1000);
  ck_assert(seconds() - begin >= TIMES * 13.9e-6);
  begin = seconds();
  for (int i = 0; i < TIMES; i++)
    ok(cuMemFree_v2(p[i]));
  ck_assert(seconds() - begin >= TIMES * 46.7e-6);
  begin = seconds();
  h = pinned_bytes(8 << 20);
  ck_assert(seconds() - begin >= 8 * 362e-6);
  begin = seconds();
  ok(cuMemFreeHost(h));
  ck_assert(seconds() - begin >= 8 * 225e-6);
  ok(weir_sim_set_card(NULL));
}
END_TEST

static CUgraphExec graph_of_a_memset(CUdeviceptr p)
{
  CUgraph g;
  CUgraphNode node;
  CUgraphExec e;
  CUcontext c;
  CUDA_MEMSET_NODE_PARAMS params = {.dst = p, .elementSize = 1, .width = 100, .height = 1};
  ok(cuCtxGetCurrent(&c));
  ok(cuGraphCreate(&g, 0));
  ok(cuGraphAddMemsetNode(&node, g, NULL, 0, &params, c));
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  return e;
}

START_TEST(graphs_and_events_take_as_long_as_they_cost_on_the_card)
{
  enum { TIMES = 100 };
  static const unsigned flags[] = {CU_EVENT_DEFAULT, CU_EVENT_DISABLE_TIMING};
  static const double costs[] = {2.5e-6, 0.25e-6};
  CUgraphExec e = graph_of_a_memset(device_bytes(1000));
  ok(weir_sim_set_card("h100"));
  double begin = seconds();
  for (int i = 0; i < TIMES; i++)
    ok(cuGraphLaunch(e, NULL));
  ck_assert(seconds() - begin >= TIMES * 3.5e-6);
  for (int f = 0; f < 2; f++) {
    CUevent event;
    ok(cuEventCreate(&event, flags[f]));
    begin = seconds();
    for (int i = 0; i < TIMES; i++)
      ok(cuEventRecord(event, NULL));
    ck_assert(seconds() - begin >= TIMES * costs[f]);
  }
  ok(cuCtxSynchronize());
}
END_TEST

/* By the number of allocations in the range. */
START_TEST(access_to_mappings_takes_as_long_as_it_costs_on_the_card)
{
  enum { CHUNKS = 20 };
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle;
  CUdeviceptr p;
  size_t chunk;
  ok(cuMemGetAllocationGranularity(&chunk, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  ok(cuMemAddressReserve(&p, CHUNKS * chunk, 0, 0, 0));
  for (int i = 0; i < CHUNKS; i++) {
    ok(cuMemCreate(&handle, chunk, &prop, 0));
    ok(cuMemMap(p + (size_t)i * chunk, chunk, 0, handle, 0));
  }
  ok(weir_sim_set_card("a100"));
  double begin = seconds();
  ok(cuMemSetAccess(p, CHUNKS * chunk, &access, 1));
  ck_assert(seconds() - begin >= CHUNKS * 40e-6);
  fails(cuMemSetAccess(p + CHUNKS * chunk, chunk, &access, 1), CUDA_ERROR_INVALID_VALUE);
}
END_TEST

static float elapsed(CUstream s, CUresult (*work)(CUdeviceptr, void *, CUstream), CUdeviceptr p,
                     void *h)
{
  CUevent a, b;
  float ms;
  ok(cuEventCreate(&a, 0));
  ok(cuEventCreate(&b, 0));
  ok(cuEventRecord(a, s));
  ok(work(p, h, s));
  ok(cuEventRecord(b, s));
  ok(cuEventSynchronize(b));
  ok(cuEventElapsedTime_v2(&ms, a, b));
  return ms;
}

enum { CARD_BYTES = 64 << 20 };

static CUresult copy_in(CUdeviceptr p, void *h, CUstream s)
{
  return cuMemcpyHtoDAsync_v2(p, h, CARD_BYTES, s);
}

static CUresult copy_within(CUdeviceptr p, void *h, CUstream s)
{
  (void)h;
  return cuMemcpyDtoDAsync_v2(p, p + CARD_BYTES / 2, CARD_BYTES / 2, s);
}

static CUresult fill_bytes(CUdeviceptr p, void *h, CUstream s)
{
  (void)h;
  return cuMemsetD8Async(p, 1, CARD_BYTES, s);
}

START_TEST(the_devices_clock_sees_the_cards_bandwidths)
{
  CUdeviceptr p = device_bytes(CARD_BYTES);
  void *pinned = pinned_bytes(CARD_BYTES), *pageable = malloc(CARD_BYTES);
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  ok(weir_sim_set_card("a100"));
  ck_assert(elapsed(s, copy_in, p, pinned) >= (float)(CARD_BYTES / 25.13e6));
  ck_assert(elapsed(s, copy_in, p, pageable) >= (float)(CARD_BYTES / 6e6));
  ck_assert(elapsed(s, copy_within, p, NULL) >= (float)(CARD_BYTES / 2.0 / 1019.5e6));
  ck_assert(elapsed(s, fill_bytes, p, NULL) >= (float)(CARD_BYTES / 2039e6));
  free(pageable);
}
END_TEST

START_TEST(links_that_are_asked_for_go_before_the_cards)
{
  CUdeviceptr p = device_bytes(CARD_BYTES);
  void *pinned = pinned_bytes(CARD_BYTES);
  CUstream s;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  ok(weir_sim_set_card("h100"));
  ok(weir_sim_set_link("h2d:1G"));
  ck_assert(elapsed(s, copy_in, p, pinned) >= (float)(CARD_BYTES / 1e6));
  fails(weir_sim_set_card("no such card"), CUDA_ERROR_INVALID_VALUE);
  ok(weir_sim_set_card(""));
}
END_TEST

int main(void)
{
  const TTest *const with_context[] = {any_call_of_any_function_can_fail,
                                       a_failed_call_does_nothing,
                                       lists_that_cannot_be_read_are_errors,
                                       calls_from_outside_are_counted_by_name,
                                       a_link_is_as_slow_as_it_is_told,
                                       pageable_copies_are_as_slow_as_the_host,
                                       copies_of_one_direction_share_the_link,
                                       calls_take_as_long_as_they_cost_on_the_card,
                                       graphs_and_events_take_as_long_as_they_cost_on_the_card,
                                       access_to_mappings_takes_as_long_as_it_costs_on_the_card,
                                       the_devices_clock_sees_the_cards_bandwidths,
                                       links_that_are_asked_for_go_before_the_cards,
                                       NULL};
  const TTest *const without[] = {threads_that_have_ended_are_counted, counts_are_written_at_exit,
                                  memory_and_faults_come_from_the_environment, NULL};
  return run_groups("sim_control", with_context, set_up_device0, without);
}
