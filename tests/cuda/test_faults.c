/* test_faults.c: every Nth call of every driver function the backend makes fails, for all N, and
 * all calls from the Nth on for a while: the call that met it says so with CUDA's name, the figures
 * and the invariants hold, the thread's context is as it was, and the allocator goes on.
 *
 * Needs the software device: a GPU's driver cannot be told to fail. */
#include "tests/cuda/rig.h"
#include "tests/level.h"
#include "tests/memory/give_back.h"

enum { SLOTS = 6, STEPS = 60 };

/* Lane 2 does not run at first: waits for it are inserted; with little memory, the host waits. */
static const char *const ways[] = {
    "soft_limit_mb:8,decay_ms:0", "soft_limit_mb:8,decay_ms:0,limit_mb:36",
    "soft_limit_mb:8,decay_ms:0,expandable_segments:False",
    "soft_limit_mb:8,decay_ms:0,limit_mb:60,expandable_segments:False"};

enum { WAYS = sizeof ways / sizeof *ways };

/* Exported names of the functions, and the longest stride between the calls that are tried. */
static const struct function {
  const char *name;
  unsigned stride;
} functions[] = {{"cuMemAlloc_v2", 1},
                 {"cuMemFree_v2", 1},
                 {"cuMemAddressReserve", 1},
                 {"cuMemCreate", 1},
                 {"cuMemRelease", 1},
                 {"cuMemMap", 1},
                 {"cuMemUnmap", 1},
                 {"cuMemSetAccess", 1},
                 {"cuMemGetInfo_v2", 1},
                 {"cuEventCreate", 1},
                 {"cuEventRecord", 1},
                 {"cuEventQuery", 1},
                 {"cuEventSynchronize", 1},
                 {"cuStreamWaitEvent", 1},
                 {"cuStreamIsCapturing", 1},
                 {"cuCtxGetCurrent", 5},
                 {"cuCtxPushCurrent_v2", 5},
                 {"cuCtxPopCurrent_v2", 5},
                 {"cuThreadExchangeStreamCaptureMode", 7}};

enum { FUNCTIONS = sizeof functions / sizeof *functions };

enum { ERRORS = TEST_LEVEL == 0 ? 1 : 2 }; /* 2: each call fails in either way */

/* Not sticky, so that the context lives on. */
static const int errors[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN};

static rig r;

/* A failure is told with CUDA's name, or is the allocator's own of being out of memory. */
static int count_expected_failure(weir_status st, weir_status expected)
{
  if (st && st != WEIR_EOOM) {
    ck_assert_int_eq(st, expected);
    ck_assert_msg(strstr(weir_error_message(), "CUDA_ERROR_UNKNOWN (999)") != NULL, "%s",
                  weir_error_message());
  }
  return st != WEIR_OK;
}

/* Pieces freed on two streams, one of which does not run, are wanted as one by a third: where there
 * is no other memory, only a wait of the host gives them. */
static int pieces(weir_status expected)
{
  uint64_t most = r.p->config.limit_bytes,
           bytes = most ? (most - 2 * MIB) / (8 * MIB) * 8 * MIB : 32 * MIB;
  void *at[4] = {0}, *all = NULL;
  int failed = 0;
  for (int i = 0; i < 4; i++)
    failed += count_expected_failure(weir_tcache_malloc(r.lanes[1 + i % 2].heap, bytes / 4, &at[i]),
                                     expected);
  for (int i = 0; i < 4; i++)
    if (at[i]) weir_ok(weir_tcache_free(at[i]));
  failed += count_expected_failure(weir_tcache_malloc(r.lanes[0].heap, bytes, &all), expected);
  if (all) weir_ok(weir_tcache_free(all));
  return failed;
}

static void let_all_run(void)
{
  gate_open_all(&r.lanes[2]);
  for (int s = 1; s < 3; s++)
    ok(cuStreamSynchronize(r.lanes[s].stream));
}

static void one_step(void **at, int i, uint64_t *seed, int *failed, weir_status expected)
{
  int k = (int)(rig_random(seed) % SLOTS), s = (int)(rig_random(seed) % 3);
  if (at[k]) {
    if (i % 3 == 0) *failed += count_expected_failure(pool_use(at[k], r.lanes[s].heap), expected);
    weir_ok(weir_tcache_free(at[k]));
    at[k] = NULL;
    return;
  }
  uint64_t bytes = 1 + rig_random(seed) % (i % 4 ? 5 * MIB : 40 * KIB);
  void *out = NULL;
  *failed += count_expected_failure(weir_tcache_malloc(r.lanes[s].heap, bytes, &out), expected);
  at[k] = out;
}

/* How many calls failed. */
static int program(uint64_t seed, weir_status expected)
{
  void *at[SLOTS] = {0};
  int failed = pieces(expected);
  for (int i = 0; i < STEPS; i++) {
    if (i == STEPS / 2) let_all_run();
    one_step(at, i, &seed, &failed, expected);
    if (i % 20 == 19) {
      bool waits = i > STEPS / 2; /* before, streams do not run: memory stays behind their work */
      failed +=
          count_expected_failure(waits ? weir_pool_empty(r.p) : give_back_unawaited(r.p), expected);
    }
    if (i % 4 == 0) rig_check(&r);
  }
  for (int k = 0; k < SLOTS; k++)
    if (at[k]) weir_ok(weir_tcache_free(at[k]));
  failed += count_expected_failure(weir_pool_empty(r.p), expected);
  rig_check(&r);
  return failed;
}

/* The pool, and all its figures, are as new after a program that meets no failure. */
static void well_again(void)
{
  rig_fail(NULL);
  let_all_run();
  for (int i = 0; i < 2; i++) { /* the first marks, the second finds it complete */
    weir_ok(weir_pool_empty(r.p));
    ok(cuCtxSynchronize());
  }
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 0);
  ck_assert_int_eq(program(9, WEIR_OK), 0);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, requested_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 0);
}

static void expect_context(void)
{
  CUcontext now;
  ok(cuCtxGetCurrent(&now));
  ck_assert_ptr_eq(now, NULL);
  ok(cuCtxSetCurrent(r.context));
}

/* Fails call n of a function, or that and the next 40. */
static void fail_nth(const char *name, unsigned n, int error, bool and_after)
{
  char list[4096];
  size_t used = 0;
  for (unsigned i = n; i < n + (and_after ? 40 : 1); i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s:%u=%d", i == n ? "" : ",", name,
                             i, error);
  ck_assert_uint_lt(used, sizeof list);
  rig_fail(list);
}

static weir_status try_pool_and_heaps(const char *conf)
{
  weir_status st = rig_try_pool(&r, conf);
  for (int s = 0; s < 3 && !st; s++)
    weir_ok(pool_heap(r.p, r.lanes[s].stream, &r.lanes[s].heap));
  return st;
}

/* The whole life with call n failing; false: there was no such call. */
static bool run_life_failing_call(const char *conf, const char *name, unsigned n, int error,
                                  bool and_after)
{
  weir_status expected = error == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_EOOM : WEIR_ECUDA;
  gate_add(&r.lanes[2]);
  ok(cuCtxSetCurrent(NULL));
  uint64_t before = rig_calls(name);
  fail_nth(name, n, error, and_after);
  weir_status st = try_pool_and_heaps(conf);
  if (!st) (void)program(5, expected);
  bool met = rig_calls(name) - before >= n;
  rig_fail(NULL);
  if (st) {
    ck_assert(st == expected && met);
    weir_ok(try_pool_and_heaps(conf));
  }
  if (!and_after) expect_context();
  ok(cuCtxSetCurrent(r.context));
  well_again();
  weir_ok(pool_free(r.p));
  return met;
}

/* Whoever waits for work lets it go first; cuMemFree() waits for all there is on the device. */
static weir_status free_released(void *self, uint64_t address, uint64_t bytes)
{
  gate_open_all(&r.lanes[2]);
  return r.real->source.segment_free(self, address, bytes);
}

static weir_status sync_released(void *self, void *event)
{
  gate_open_all(&r.lanes[2]);
  return r.real->event_sync(self, event);
}

static void open_three_lanes(void)
{
  rig_open(&r);
  rig_lanes(&r, 3);
  r.backend.event_sync = sync_released;
  r.backend.source.segment_free = free_released;
}

/* All that is the device's is given back at the end of every life. */
static uint64_t free_now(void)
{
  size_t free_bytes, total;
  ok(cuMemGetInfo(&free_bytes, &total));
  return free_bytes;
}

static void every(int i, bool and_after)
{
  const struct function *f = &functions[i % FUNCTIONS];
  unsigned most = 0;
  if (!rig_simulated()) return;
  open_three_lanes();
  uint64_t whole = free_now();
  for (int way = 0; way < WAYS; way++)
    for (unsigned e = 0; e < ERRORS; e++)
      for (unsigned n = 1;
           run_life_failing_call(ways[way], f->name, n, errors[(e + n) % 2], and_after);
           n += f->stride * (and_after ? 7 : 1)) {
        ck_assert_uint_eq(free_now(), whole);
        if (n > most) most = n;
      }
  ck_assert_msg(most > 0, "%s is never called", f->name);
}

START_TEST(every_nth_failure_leaves_a_working_allocator)
{
  if (WEIR_TSAN && _i % 3) return; /* the same threads meet in all */
  every(_i, false);
}
END_TEST

START_TEST(a_device_that_fails_for_a_while_leaves_a_working_allocator)
{
  every(_i, true);
}
END_TEST

/* A pool whose end fails can be ended again. */
START_TEST(ending_can_be_tried_again)
{
  static const char *const ends[] = {"cuMemUnmap", "cuMemRelease", "cuMemAddressFree",
                                     "cuMemFree_v2", "cuEventDestroy_v2"};
  if (!rig_simulated()) return;
  if (_i >= (int)(2 * sizeof ends / sizeof *ends)) return;
  open_three_lanes();
  uint64_t whole = free_now();
  bool met = true;
  for (unsigned n = 1; met; n++) {
    char list[64];
    rig_pool(&r, ways[_i % 2 * 2]);
    rig_free(&r, rig_malloc(&r, 1, 3 * MIB));
    rig_free(&r, rig_malloc(&r, 0, 1000));
    (void)snprintf(list, sizeof list, "%s:%u=999", ends[_i / 2], n);
    rig_fail(list);
    met = pool_free(r.p) != WEIR_OK;
    rig_fail(NULL);
    if (met) weir_ok(pool_free(r.p));
    ck_assert_uint_eq(free_now(), whole);
  }
}
END_TEST

/* What opening a device asks for. */
START_TEST(a_device_that_cannot_be_opened_can_be_later)
{
  static const char *const asks[] = {"cuDeviceGet:1", "cuDevicePrimaryCtxRetain:1",
                                     "cuMemGetAllocationGranularity:1", "cuMemGetInfo_v2:1",
                                     "cuMemAddressReserve:2"}; /* the first is a trial */
  void *out;
  if (!rig_simulated() || _i >= (int)(sizeof asks / sizeof *asks)) return;
  ck_assert(weir_cuda_is_available());
  char list[64];
  (void)snprintf(list, sizeof list, "%s=999", asks[_i]);
  rig_fail(list);
  ck_assert_int_eq(weir_malloc(&out, 8, WEIR_CUDA_AT(0), NULL), WEIR_ECUDA);
  ck_assert_msg(strstr(weir_error_message(), "CUDA_ERROR_UNKNOWN (999)") != NULL, "%s",
                weir_error_message());
  weir_ok(weir_malloc(&out, 8, WEIR_CUDA_AT(0), NULL));
  weir_ok(weir_free(out));
  weir_ok(weir_memory_detach(WEIR_CUDA_AT(0)));
  unsigned flags;
  int active;
  CUdevice d;
  ok(cuDeviceGet(&d, 0));
  ok(cuDevicePrimaryCtxGetState(d, &flags, &active));
  ck_assert_int_eq(active, 0);
}
END_TEST

/* ---- page-locked memory ---------------------------------------------------------------------- */

/* How many calls failed. */
static int pinned_program(weir_status expected)
{
  static const size_t sizes[] = {4096, 5 << 20, 34 << 20};
  enum { N = sizeof sizes / sizeof *sizes };
  weir_device cuda0 = WEIR_CUDA_AT(0);
  void *at[2 * N];
  int failed = 0;
  for (int i = 0; i < 2 * N; i++) {
    unsigned flags = i < N ? WEIR_PINNED_PORTABLE : WEIR_PINNED_WRITE_COMBINED;
    at[i] = NULL;
    weir_status st = weir_pinned_malloc_flags(&at[i], sizes[i % N], cuda0, flags);
    failed += count_expected_failure(st, expected);
    if (st) at[i] = NULL;
    if (at[i]) memset(at[i], i, sizes[i % N]);
  }
  for (int i = 0; i < 2 * N; i++) {
    ck_assert(!at[i] || (((char *)at[i])[0] == i && ((char *)at[i])[sizes[i % N] - 1] == i));
    weir_ok(weir_pinned_free(at[i]));
  }
  failed += count_expected_failure(weir_pinned_empty_cache(), expected);
  return failed;
}

/* The driver's count goes on in the background: there a failure is nobody's. */
START_TEST(every_nth_registration_that_fails_leaves_working_pools)
{
  static const char *const names[] = {"cuMemHostRegister_v2", "cuMemHostUnregister",
                                      "cuMemHostAlloc", "cuMemFreeHost"};
  if (!rig_simulated() || _i >= 8) return;
  const char *name = names[_i / 2];
  int error = errors[_i % 2];
  bool met = true;
  unsigned n = 0;
  while (met) {
    ck_assert(weir_cuda_is_available());
    uint64_t before = rig_calls(name);
    fail_nth(name, ++n, error, false);
    (void)pinned_program(error == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_EOOM : WEIR_ECUDA);
    met = rig_calls(name) - before >= n;
    rig_fail(NULL);
    ck_assert_int_eq(pinned_program(WEIR_OK), 0);
    weir_pinned_stats now;
    weir_ok(weir_pinned_get_stats(&now));
    ck_assert(now.active_bytes == 0 && now.requested_bytes == 0 && now.active_requests == 0);
    weir_ok(weir_memory_detach(WEIR_CUDA_AT(0)));
  }
  ck_assert_msg(n > 1, "%s is never called", name);
}
END_TEST

int main(void)
{
  static const TTest *tests[6];
  tests[0] = every_nth_failure_leaves_a_working_allocator;
  tests[1] = a_device_that_fails_for_a_while_leaves_a_working_allocator;
  tests[2] = ending_can_be_tried_again;
  tests[3] = a_device_that_cannot_be_opened_can_be_later;
  tests[4] = every_nth_registration_that_fails_leaves_working_pools;
  return rig_run("cuda/faults", tests, FUNCTIONS);
}
