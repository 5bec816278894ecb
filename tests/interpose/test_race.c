/* test_race.c: the interposer's own logic under many threads, for ThreadSanitizer above all:
 * caches, pending work, memory short, staging, peer copies, the driver's pools, taint, questions,
 * captures.
 *
 * The hooks' objects are linked in (hooks_rig.c), over the software device as the driver, which is
 * instrumented where the test is. Each thread calls wrappers as a program's thread would, on memory
 * of its own, and checks every answer and every byte; contexts, caches, rings and lists are shared.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/reroute/block_cache.h"
#include "interpose/record/context.h"
#include "interpose/record/cuda_headers.h"
#include "interpose/reroute/reroute.h"
#include "tests/interpose/hooks_rig.h"

enum { MIB = 1 << 20, THREADS = 12, DEVICES = 2, TURNS = 30 };

/* X(function, type): what the threads call, each by its wrapper. */
#define CALLS(X)                                                                                   \
  X(cuInit, PFN_cuInit_v2000)                                                                      \
  X(cuDevicePrimaryCtxRetain, PFN_cuDevicePrimaryCtxRetain_v7000)                                  \
  X(cuCtxSetCurrent, PFN_cuCtxSetCurrent_v4000)                                                    \
  X(cuCtxCreate_v2, PFN_cuCtxCreate_v3020)                                                         \
  X(cuCtxDestroy_v2, PFN_cuCtxDestroy_v4000)                                                       \
  X(cuMemAllocPitch_v2, PFN_cuMemAllocPitch_v3020)                                                 \
  X(cuCtxSynchronize, PFN_cuCtxSynchronize_v2000)                                                  \
  X(cuMemAlloc_v2, PFN_cuMemAlloc_v3020)                                                           \
  X(cuMemFree_v2, PFN_cuMemFree_v3020)                                                             \
  X(cuMemHostAlloc, PFN_cuMemHostAlloc_v2020)                                                      \
  X(cuMemFreeHost, PFN_cuMemFreeHost_v2000)                                                        \
  X(cuMemGetInfo_v2, PFN_cuMemGetInfo_v3020)                                                       \
  X(cuMemGetAddressRange_v2, PFN_cuMemGetAddressRange_v3020)                                       \
  X(cuPointerGetAttribute, PFN_cuPointerGetAttribute_v4000)                                        \
  X(cuIpcGetMemHandle, PFN_cuIpcGetMemHandle_v4010)                                                \
  X(cuMemsetD32Async, PFN_cuMemsetD32Async_v3020)                                                  \
  X(cuMemcpyHtoDAsync_v2, PFN_cuMemcpyHtoDAsync_v3020)                                             \
  X(cuMemcpyDtoHAsync_v2, PFN_cuMemcpyDtoHAsync_v3020)                                             \
  X(cuMemcpyPeerAsync, PFN_cuMemcpyPeerAsync_v4000)                                                \
  X(cuMemcpyPeer, PFN_cuMemcpyPeer_v4000)                                                          \
  X(cuMemAllocAsync, PFN_cuMemAllocAsync_v11020)                                                   \
  X(cuMemAllocFromPoolAsync, PFN_cuMemAllocFromPoolAsync_v11020)                                   \
  X(cuMemFreeAsync, PFN_cuMemFreeAsync_v11020)                                                     \
  X(cuMemPoolTrimTo, PFN_cuMemPoolTrimTo_v11020)                                                   \
  X(cuMemPoolDestroy, PFN_cuMemPoolDestroy_v11020)                                                 \
  X(cuStreamCreate, PFN_cuStreamCreate_v2000)                                                      \
  X(cuStreamDestroy_v2, PFN_cuStreamDestroy_v4000)                                                 \
  X(cuStreamSynchronize, PFN_cuStreamSynchronize_v2000)                                            \
  X(cuStreamBeginCapture_v2, PFN_cuStreamBeginCapture_v10010)                                      \
  X(cuStreamEndCapture, PFN_cuStreamEndCapture_v10000)

static struct {
#define MEMBER(name, type) type name;
  CALLS(MEMBER)
#undef MEMBER
} call;

static CUcontext contexts[DEVICES];

typedef struct worker {
  uint64_t state;
  unsigned number, failed, wrong;
  CUstream stream;
  unsigned *host;
} worker;

#define DO(expression) (w->failed += (expression) != CUDA_SUCCESS)

static uint64_t next_random_word(worker *w)
{
  uint64_t z = (w->state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  return z ^ z >> 31;
}

static void check_device_words(worker *w, CUdeviceptr p, unsigned n, unsigned value)
{
  memset(w->host, 0, n * sizeof *w->host);
  DO(call.cuMemcpyDtoHAsync_v2(w->host, p, n * sizeof *w->host, w->stream));
  DO(call.cuStreamSynchronize(w->stream));
  for (unsigned i = 0; i < n; i++)
    w->wrong += w->host[i] != value;
}

/* ---- what a thread does ---------------------------------------------------------------------- */

static void fill_and_free(worker *w, unsigned n, unsigned value)
{
  CUdeviceptr p, q;
  DO(call.cuMemAlloc_v2(&p, n * sizeof value));
  DO(call.cuMemsetD32Async(p, value, n, w->stream));
  check_device_words(w, p, n, value);
  DO(call.cuMemsetD32Async(p, ~value, n, w->stream)); /* under way when it is freed */
  DO(call.cuMemFree_v2(p));
  DO(call.cuMemAlloc_v2(&q, n * sizeof value));
  for (unsigned i = 0; i < n; i++)
    w->host[i] = value + 1;
  DO(call.cuMemcpyHtoDAsync_v2(q, w->host, n * sizeof value, w->stream));
  check_device_words(w, q, n, value + 1);
  DO(call.cuMemFree_v2(q));
}

static void pinned(worker *w, unsigned n, unsigned value)
{
  CUdeviceptr p;
  unsigned *host = NULL;
  DO(call.cuMemAlloc_v2(&p, n * sizeof value));
  DO(call.cuMemHostAlloc((void **)&host, n * sizeof value, CU_MEMHOSTALLOC_PORTABLE));
  DO(call.cuMemsetD32Async(p, value, n, w->stream));
  DO(call.cuMemcpyDtoHAsync_v2(host, p, n * sizeof value, w->stream));
  DO(call.cuStreamSynchronize(w->stream));
  for (unsigned i = 0; host && i < n; i++)
    w->wrong += host[i] != value;
  DO(call.cuMemFreeHost(host));
  DO(call.cuMemFree_v2(p));
}

static void questions(worker *w, unsigned n)
{
  CUdeviceptr p, base = 0;
  size_t bytes = 0, free_now = 0, total = 0;
  unsigned long long id = 0;
  CUipcMemHandle handle;
  DO(call.cuMemAlloc_v2(&p, n * sizeof n));
  DO(call.cuMemGetAddressRange_v2(&base, &bytes, p + n));
  w->wrong += base != p || bytes != n * sizeof n;
  DO(call.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
  DO(call.cuMemGetInfo_v2(&free_now, &total));
  w->wrong += free_now > total;
  if (next_random_word(w) % 4 == 0) DO(call.cuIpcGetMemHandle(&handle, p));
  DO(call.cuMemFree_v2(p));
  w->wrong += call.cuMemFree_v2(p + 512) == CUDA_SUCCESS;
}

static void to_the_other_device(worker *w, unsigned n, unsigned value)
{
  CUdeviceptr p[2];
  for (unsigned i = 0; i < 2; i++) {
    DO(call.cuCtxSetCurrent(contexts[(w->number + !i) % DEVICES]));
    DO(call.cuMemAlloc_v2(&p[i], n * sizeof value));
  }
  DO(call.cuMemsetD32Async(p[1], value, n, w->stream));
  CUcontext to = contexts[(w->number + 1) % DEVICES], from = contexts[w->number % DEVICES];
  if (next_random_word(w) % 2)
    DO(call.cuMemcpyPeerAsync(p[0], to, p[1], from, n * sizeof value, w->stream));
  else /* behind the memset all the same, and ahead of what follows */
    DO(call.cuMemcpyPeer(p[0], to, p[1], from, n * sizeof value));
  if (next_random_word(w) % 2) DO(call.cuStreamSynchronize(w->stream));
  DO(call.cuMemFree_v2(p[1]));
  DO(call.cuCtxSetCurrent(contexts[(w->number + 1) % DEVICES]));
  check_device_words(w, p[0], n, value);
  DO(call.cuMemFree_v2(p[0]));
  DO(call.cuCtxSetCurrent(contexts[w->number % DEVICES]));
}

/* The device's pool, and one that comes and goes while others ask what is in all of them. */
static void use_two_pools(worker *w, unsigned n, unsigned value)
{
  PFN_cuMemPoolCreate_v11020 create =
      (PFN_cuMemPoolCreate_v11020)(uintptr_t)rig_original(WEIR_BANK_DRIVER, "cuMemPoolCreate");
  CUmemPoolProps props = {
      .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = (int)(w->number % DEVICES)}};
  CUmemoryPool pool = NULL;
  CUdeviceptr p = 0, q = 0;
  DO(create(&pool, &props));
  DO(call.cuMemAllocFromPoolAsync(&p, n * sizeof value, pool, w->stream));
  DO(call.cuMemAllocAsync(&q, n * sizeof value, w->stream));
  DO(call.cuMemsetD32Async(p, value, n, w->stream));
  DO(call.cuMemsetD32Async(q, ~value, n, w->stream));
  check_device_words(w, p, n, value);
  check_device_words(w, q, n, ~value);
  DO(call.cuMemFreeAsync(p, w->stream));
  DO(call.cuMemFreeAsync(q, w->stream));
  DO(call.cuMemPoolTrimTo(pool, 0));
  DO(call.cuMemPoolDestroy(pool));
}

static void stream_anew(worker *w)
{
  DO(call.cuStreamDestroy_v2(w->stream)); /* perhaps with work */
  DO(call.cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
  if (next_random_word(w) % 2) DO(call.cuCtxSynchronize());
}

static void capture(worker *w)
{
  CUgraph graph = NULL;
  CUdeviceptr p;
  DO(call.cuMemAlloc_v2(&p, MIB));
  DO(call.cuStreamBeginCapture_v2(w->stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  DO(call.cuMemsetD32Async(p, 1, MIB / 4, w->stream));
  DO(call.cuStreamEndCapture(w->stream, &graph));
  PFN_cuGraphDestroy_v10000 destroy =
      (PFN_cuGraphDestroy_v10000)(uintptr_t)rig_original(WEIR_BANK_DRIVER, "cuGraphDestroy");
  if (graph) DO(destroy(graph));
  DO(call.cuMemFree_v2(p));
}

/* More than there is: everything idle of all caches goes back first. */
static void too_much(worker *w)
{
  CUdeviceptr p;
  w->wrong += call.cuMemAlloc_v2(&p, (size_t)1 << 40) != CUDA_ERROR_OUT_OF_MEMORY;
}

static void run_random_turn(worker *w)
{
  uint64_t x = next_random_word(w);
  unsigned n = 256u << (x >> 8) % 12, value = (unsigned)(x >> 32);
  switch (x % 16) {
  case 0:
    stream_anew(w);
    break;
  case 1:
    if (w->number == 0) capture(w);
    break;
  case 2:
    if (w->number < 2) too_much(w);
    break;
  case 3:
  case 4:
    questions(w, n);
    break;
  case 5:
  case 6:
    pinned(w, n, value);
    break;
  case 7:
  case 8:
    to_the_other_device(w, n, value);
    break;
  case 9:
  case 10:
    use_two_pools(w, n, value);
    break;
  default:
    fill_and_free(w, n, value);
  }
}

static void *run_race_worker(void *argument)
{
  worker *w = argument;
  w->host = malloc(sizeof *w->host << 20);
  DO(call.cuCtxSetCurrent(contexts[w->number % DEVICES]));
  DO(call.cuStreamCreate(&w->stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < TURNS; i++)
    run_random_turn(w);
  DO(call.cuStreamDestroy_v2(w->stream));
  free(w->host);
  spool_writer_release(&thread_self.writer);
  return NULL;
}

/* ---- the suite ------------------------------------------------------------------------------- */

static void set_up_real_driver(void)
{
  static char device[512];
  const char *build = getenv("WEIR_BUILD");
  (void)snprintf(device, sizeof device, "%s/lib/sim/libcuda.so.1", build ? build : "build");
  setenv("WEIR_SIM_DEVICES", "2", 1);
  setenv("WEIR_SIM_MEMORY", "512M", 1);
  rig_driver = device;
  rig_setup();
#define FIND(name, type) call.name = (type)(uintptr_t)rig_wrapper(WEIR_BANK_DRIVER, #name);
  CALLS(FIND)
#undef FIND
}

/* ---- contexts that come and go --------------------------------------------------------------- */

enum { MEETINGS = 4000 };
static _Atomic bool meetings_over;

/* Contexts of two devices take the same number in turns. */
static void *meet_in_turns(void *unused)
{
  (void)unused;
  for (int i = 0; !atomic_load(&meetings_over); i++) {
    CUcontext c = contexts[i % DEVICES];
    (void)call.cuCtxSetCurrent(c);
    context_add(&thread_self, c);
    context_forget((uint64_t)(uintptr_t)c);
  }
  return NULL;
}

START_TEST(a_context_that_is_found_is_on_its_own_device)
{
  pthread_t other;
  unsigned wrong = 0, found = 0;
  reroute_start(
      &(reroute_options){.mode = WEIR_STRICT, .reroutes = REROUTE_DEFAULT, .keep_bytes = 64 * MIB});
  ck_assert_int_eq(call.cuInit(0), CUDA_SUCCESS);
  for (int i = 0; i < DEVICES; i++)
    ck_assert_int_eq(call.cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
  atomic_store(&meetings_over, false);
  ck_assert_int_eq(pthread_create(&other, NULL, meet_in_turns, NULL), 0);
  while (found < MEETINGS && !wrong)
    for (unsigned i = 0; i < DEVICES; i++) {
      unsigned device = context_device((uint64_t)(uintptr_t)contexts[i]);
      found += device == i;
      wrong += device != i && device != WEIR_DEVICE_NONE;
    }
  atomic_store(&meetings_over, true);
  ck_assert_int_eq(pthread_join(other, NULL), 0);
  ck_assert_uint_eq(wrong, 0);
}
END_TEST

/* A context that is destroyed frees its memory before anybody can be told. */
static void *destroy_full_contexts(void *failed)
{
  for (int i = 0; i < MEETINGS / 4; i++) {
    CUcontext own;
    CUdeviceptr p;
    *(bool *)failed |= call.cuCtxCreate_v2(&own, 0, 0) || call.cuMemAlloc_v2(&p, 4096) ||
                       call.cuCtxDestroy_v2(own);
  }
  atomic_store(&meetings_over, true);
  return NULL;
}

START_TEST(memory_of_a_destroyed_context_comes_again_as_another_s)
{
  pthread_t other;
  bool failed = false;
  unsigned wrong = 0;
  reroute_start(
      &(reroute_options){.mode = WEIR_STRICT, .reroutes = REROUTE_DEFAULT, .keep_bytes = 64 * MIB});
  ck_assert_int_eq(call.cuInit(0), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuDevicePrimaryCtxRetain(&contexts[0], 0), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
  atomic_store(&meetings_over, false);
  ck_assert_int_eq(pthread_create(&other, NULL, destroy_full_contexts, &failed), 0);
  for (size_t width = 1; !atomic_load(&meetings_over); width++) { /* new ones: the driver's own */
    CUdeviceptr p;
    size_t pitch;
    ck_assert_int_eq(call.cuMemAllocPitch_v2(&p, &pitch, width % 4096 + 1, 1, 4), CUDA_SUCCESS);
    wrong += call.cuMemFree_v2(p) != CUDA_SUCCESS;
  }
  ck_assert_int_eq(pthread_join(other, NULL), 0);
  ck_assert(!failed);
  ck_assert_uint_eq(wrong, 0);
}
END_TEST

START_TEST(threads_share_caches_rings_and_lists)
{
  static const enum process_mode modes[] = {WEIR_STRICT, WEIR_RELAXED};
  static worker w[THREADS];
  pthread_t t[THREADS];
  reroute_start(&(reroute_options){.mode = modes[_i],
                                   .reroutes = REROUTE_DEFAULT,
                                   .keep_bytes = 24 * MIB,
                                   .decay_ms = 5,
                                   .stage = {.use = WEIR_STAGE_ON, .threads = 3}});
  ck_assert_int_eq(call.cuInit(0), CUDA_SUCCESS);
  for (int i = 0; i < DEVICES; i++)
    ck_assert_int_eq(call.cuDevicePrimaryCtxRetain(&contexts[i], i), CUDA_SUCCESS);
  for (unsigned i = 0; i < THREADS; i++) {
    w[i] = (worker){.state = i, .number = i};
    ck_assert_int_eq(pthread_create(&t[i], NULL, run_race_worker, &w[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(t[i], NULL), 0);
    ck_assert_msg(!w[i].failed && !w[i].wrong, "thread %u: %u calls failed, %u answers wrong", i,
                  w[i].failed, w[i].wrong);
  }
}
END_TEST

/* ---- out of memory, while another thread gives back what there is ---------------------------- */

enum { CAPACITY = 512, CACHED = 20 }; /* MiB */

static uint64_t (*sim_count)(const char *);
static int (*sim_hold)(void *), (*sim_release)(void *);
static CUstream held;

/* Gives all back, and the driver's free waits for the work in the stream that is held. */
static void *give_all_back(void *result)
{
  CUdeviceptr p;
  (void)call.cuCtxSetCurrent(contexts[0]);
  *(CUresult *)result = call.cuMemAlloc_v2(&p, (size_t)1 << 40);
  spool_writer_release(&thread_self.writer);
  return NULL;
}

/* Lets it go on when the allocation has been refused twice. */
static void *release_later(void *before)
{
  while (sim_count("cuMemAlloc_v2") < *(const uint64_t *)before + 2)
    (void)sched_yield();
  (void)sim_release(held);
  return NULL;
}

START_TEST(an_allocation_waits_for_what_another_thread_is_giving_back)
{
  pthread_t giver, releaser;
  CUdeviceptr rest, cached, p;
  CUresult far_too_much = CUDA_SUCCESS;
  void *driver = dlopen(rig_driver, RTLD_NOW);
  *(void **)&sim_count = dlsym(driver, "weir_sim_count");
  *(void **)&sim_hold = dlsym(driver, "weir_sim_hold");
  *(void **)&sim_release = dlsym(driver, "weir_sim_release");
  reroute_start(&(reroute_options){
      .mode = WEIR_RELAXED, .reroutes = REROUTE_DEFAULT, .keep_bytes = 64 * MIB});
  ck_assert_int_eq(call.cuInit(0), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuDevicePrimaryCtxRetain(&contexts[0], 0), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuStreamCreate(&held, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuMemAlloc_v2(&cached, (size_t)CACHED * MIB), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuMemAlloc_v2(&rest, (size_t)(CAPACITY - CACHED) * MIB), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuMemFree_v2(cached), CUDA_SUCCESS);
  (void)sim_hold(held);
  ck_assert_int_eq(call.cuMemsetD32Async(rest, 1, 256, held), CUDA_SUCCESS);
  ck_assert_int_eq(pthread_create(&giver, NULL, give_all_back, &far_too_much), 0);
  while (!block_cache_is_freeing())
    (void)sched_yield();
  uint64_t before = sim_count("cuMemAlloc_v2");
  ck_assert_int_eq(pthread_create(&releaser, NULL, release_later, &before), 0);
  ck_assert_int_eq(call.cuMemAlloc_v2(&p, (size_t)(CACHED - 4) * MIB), CUDA_SUCCESS);
  ck_assert_int_eq(pthread_join(releaser, NULL), 0);
  ck_assert_int_eq(pthread_join(giver, NULL), 0);
  ck_assert_int_eq(far_too_much, CUDA_ERROR_OUT_OF_MEMORY);
  ck_assert_int_eq(call.cuMemFree_v2(p), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuMemFree_v2(rest), CUDA_SUCCESS);
}
END_TEST

/* Between a try and what is given back for the next, another thread frees one block, takes another
 * out of its cache: there is nothing to give back any more, and all the same there is memory. */
START_TEST(an_allocation_is_tried_again_when_a_block_left_a_cache_meanwhile)
{
  CUdeviceptr p;
  reroute_start(&(reroute_options){
      .mode = WEIR_RELAXED, .reroutes = REROUTE_DEFAULT, .keep_bytes = 64 * MIB});
  ck_assert_int_eq(call.cuInit(0), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuDevicePrimaryCtxRetain(&contexts[0], 0), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuCtxSetCurrent(contexts[0]), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuMemAlloc_v2(&p, 4 * MIB), CUDA_SUCCESS);
  while (reroute_release_cached())
    ;
  ck_assert_int_eq(call.cuMemFree_v2(p), CUDA_SUCCESS);
  ck_assert_int_eq(call.cuMemAlloc_v2(&p, 4 * MIB), CUDA_SUCCESS);
  ck_assert(reroute_release_cached());
  ck_assert(!reroute_release_cached());
  ck_assert_int_eq(call.cuMemFree_v2(p), CUDA_SUCCESS);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("interpose/race");
  TCase *c = tcase_create("race");
  tcase_add_checked_fixture(c, set_up_real_driver, rig_teardown);
  tcase_set_timeout(c, 0);
  tcase_add_test(c, a_context_that_is_found_is_on_its_own_device);
  tcase_add_test(c, memory_of_a_destroyed_context_comes_again_as_another_s);
  tcase_add_test(c, an_allocation_waits_for_what_another_thread_is_giving_back);
  tcase_add_test(c, an_allocation_is_tried_again_when_a_block_left_a_cache_meanwhile);
  tcase_add_loop_test(c, threads_share_caches_rings_and_lists, 0, 2);
  suite_add_tcase(s, c);
  return rig_run(s);
}
