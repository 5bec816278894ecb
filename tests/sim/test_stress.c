/* test_stress.c: many threads, many streams, all of it at once; for the sanitizers above all.
 *
 * Every thread does a seeded walk over allocations, mappings, copies, memsets, events, launches,
 * captures and their graphs, host functions and stream life on two devices, and keeps a model of
 * what its memory must hold; the memory is compared at the end of each walk. */
#include "sim.h"

#define SLOTS 8
#define BYTES 3000

static void add_one(void *const *arg, const struct weir_twin_thread *t)
{
  (*(unsigned char **)arg[0])[t->block_index[0] * t->block[0] + t->thread_index[0]]++;
}
static const uint32_t add_sizes[] = {8};
EXPORT const struct weir_twin weir_twin_add_one = {1, 1, add_sizes, add_one, "add_one", NULL, 0};

static const char ptx[] =
    ".version 8.0\n.target sm_80\n.visible .entry add_one(.param .u64 p) { ret; }\n";

struct slot {
  CUdeviceptr memory;
  unsigned char model[BYTES];
  enum { PLAIN, POOLED, MAPPED } kind;
};

#define GRANULE ((size_t)2 << 20)

struct walker {
  unsigned seed;
  int steps;
  int device;
  CUstream stream;
  CUevent event;
  CUfunction function;
  struct slot slot[SLOTS];
  unsigned char *pinned;
  _Atomic int calls;
  int called;
};

static unsigned next_walker_random(struct walker *w)
{
  return w->seed = w->seed * 1103515245u + 12345u, w->seed >> 8;
}

static void count_host_call(void *calls)
{
  atomic_fetch_add((_Atomic int *)calls, 1);
}

static CUdeviceptr map_memory(int device)
{
  CUdeviceptr p;
  CUmemGenericAllocationHandle h;
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
  CUmemAccessDesc to = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  ok(cuMemAddressReserve(&p, GRANULE, 0, 0, 0));
  ok(cuMemCreate(&h, GRANULE, &prop, 0));
  ok(cuMemMap(p, GRANULE, 0, h, 0));
  ok(cuMemRelease(h));
  ok(cuMemSetAccess(p, GRANULE, &to, 1));
  return p;
}

static struct slot *allocated_slot(struct walker *w)
{
  struct slot *s = &w->slot[next_walker_random(w) % SLOTS];
  if (s->memory) return s;
  s->kind = next_walker_random(w) % 3;
  if (s->kind == POOLED)
    ok(cuMemAllocAsync(&s->memory, BYTES, w->stream));
  else if (s->kind == PLAIN)
    ok(cuMemAlloc_v2(&s->memory, BYTES));
  else
    s->memory = map_memory(w->device);
  ok(cuMemsetD8Async(s->memory, 0, BYTES, w->stream));
  memset(s->model, 0, BYTES);
  return s;
}

static void end_slot(struct walker *w, struct slot *s)
{
  if (s->kind == POOLED) {
    ok(cuMemFreeAsync(s->memory, w->stream));
  } else if (s->kind == PLAIN) {
    ok(cuMemFree_v2(s->memory));
  } else {
    ok(cuStreamSynchronize(w->stream)); /* unmapping waits for nothing */
    ok(cuMemUnmap(s->memory, GRANULE));
    ok(cuMemAddressFree(s->memory, GRANULE));
  }
  s->memory = 0;
}

/* A capture in this stream and one that joins it, and some launches of what came of it. What is
 * written comes through memory of the graph, whose pages other threads' graphs share. */
static void capture_and_launch(struct walker *w, struct slot *s, unsigned char value)
{
  CUgraph g;
  CUgraphExec e;
  CUstream joins;
  CUdeviceptr own;
  void *arguments[] = {&s->memory};
  int times = (int)(next_walker_random(w) % 3);
  ok(cuStreamCreate(&joins, CU_STREAM_NON_BLOCKING));
  ok(cuStreamBeginCapture_v2(w->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ok(cuMemAllocAsync(&own, BYTES, w->stream));
  ok(cuMemsetD8Async(own, value, BYTES, w->stream));
  ok(cuMemcpyDtoDAsync_v2(s->memory, own, BYTES, w->stream));
  ok(cuMemFreeAsync(own, w->stream));
  ok(cuEventRecord(w->event, w->stream));
  ok(cuStreamWaitEvent(joins, w->event, 0));
  ok(cuLaunchKernel(w->function, BYTES / 100, 1, 1, 100, 1, 1, 0, joins, arguments, NULL));
  ok(cuEventRecord(w->event, joins));
  ok(cuLaunchHostFunc(w->stream, count_host_call, &w->calls));
  ok(cuStreamWaitEvent(w->stream, w->event, 0));
  ok(cuStreamEndCapture(w->stream, &g));
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  for (int i = 0; i < times; i++)
    ok(cuGraphLaunch(e, w->stream));
  ok(cuGraphExecDestroy(e));
  ok(cuGraphDestroy(g));
  ok(cuStreamDestroy_v2(joins));
  w->called += times;
  if (times) memset(s->model, (unsigned char)(value + 1), BYTES);
}

static void compare(struct walker *w, struct slot *s)
{
  unsigned char got[BYTES];
  ok(cuMemcpyDtoHAsync_v2(got, s->memory, BYTES, w->stream));
  ck_assert_mem_eq(got, s->model, BYTES);
}

static void step_walker(struct walker *w)
{
  struct slot *s = allocated_slot(w), *t;
  size_t at = next_walker_random(w) % BYTES, n = next_walker_random(w) % (BYTES - at) + 1;
  unsigned char value = (unsigned char)next_walker_random(w);
  switch (next_walker_random(w) % 11) {
  case 0:
    ok(cuMemsetD8Async(s->memory + at, value, n, w->stream));
    memset(s->model + at, value, n);
    break;
  case 1: { /* staged: the buffer is changed at once */
    unsigned char buffer[BYTES];
    memset(buffer, value, n);
    ok(cuMemcpyHtoDAsync_v2(s->memory + at, buffer, n, w->stream));
    memset(buffer, 0x55, n);
    memset(s->model + at, value, n);
    break;
  }
  case 2:
    t = allocated_slot(w);
    if (t == s) break;
    ok(cuMemcpyDtoDAsync_v2(t->memory + at, s->memory + at, n, w->stream));
    memcpy(t->model + at, s->model + at, n);
    break;
  case 3: {
    void *arguments[] = {&s->memory};
    ok(cuLaunchKernel(w->function, BYTES / 100, 1, 1, 100, 1, 1, 0, w->stream, arguments, NULL));
    for (size_t i = 0; i < BYTES; i++)
      s->model[i]++;
    break;
  }
  case 4: /* over to a stream made after the event */
    ok(cuEventRecord(w->event, w->stream));
    ok(cuStreamDestroy_v2(w->stream));
    ok(cuStreamCreate(&w->stream, next_walker_random(w) % 2 ? CU_STREAM_NON_BLOCKING : 0));
    ok(cuStreamWaitEvent(w->stream, w->event, 0));
    break;
  case 5:
    ok(cuLaunchHostFunc(w->stream, count_host_call, &w->calls));
    w->called++;
    break;
  case 6:
    end_slot(w, s);
    break;
  case 7:
    compare(w, s);
    break;
  case 8:
    ok(cuMemcpyDtoHAsync_v2(w->pinned, s->memory, BYTES, w->stream));
    ok(cuStreamSynchronize(w->stream));
    ck_assert_mem_eq(w->pinned, s->model, BYTES);
    break;
  case 9:
    capture_and_launch(w, s, value);
    break;
  default: {
    CUresult q = cuStreamQuery(w->stream);
    ck_assert(q == CUDA_SUCCESS || q == CUDA_ERROR_NOT_READY);
  }
  }
}

static void *run_walker(void *p)
{
  struct walker *w = p;
  CUmodule m;
  ok(cuCtxSetCurrent(primary(w->device)));
  ok(cuModuleLoadData(&m, ptx));
  ok(cuModuleGetFunction(&w->function, m, "add_one"));
  ok(cuStreamCreate(&w->stream, 0));
  ok(cuEventCreate(&w->event, CU_EVENT_DISABLE_TIMING));
  w->pinned = pinned_bytes(BYTES);
  for (int i = 0; i < w->steps; i++)
    step_walker(w);
  for (int i = 0; i < SLOTS; i++)
    if (w->slot[i].memory) compare(w, &w->slot[i]);
  ok(cuStreamSynchronize(w->stream));
  ck_assert_int_eq(w->calls, w->called);
  for (int i = 0; i < SLOTS; i++)
    if (w->slot[i].memory) end_slot(w, &w->slot[i]);
  ok(cuMemFreeHost(w->pinned));
  ok(cuEventDestroy_v2(w->event));
  ok(cuStreamDestroy_v2(w->stream));
  ok(cuModuleUnload(m));
  return NULL;
}

static void walks(int threads, int steps, unsigned seed)
{
  struct walker *w = calloc((size_t)threads, sizeof *w);
  pthread_t thread[16];
  for (int i = 0; i < threads; i++) {
    w[i].seed = seed + (unsigned)i * 7919u;
    w[i].steps = steps;
    w[i].device = i % 2;
    ck_assert_int_eq(pthread_create(&thread[i], NULL, run_walker, &w[i]), 0);
  }
  for (int i = 0; i < threads; i++)
    pthread_join(thread[i], NULL);
  free(w);
}

static void nothing_is_left(void)
{
  for (int d = 0; d < 2; d++) {
    size_t free_bytes, total;
    ok(cuCtxSetCurrent(primary(d)));
    ok(cuCtxSynchronize());
    ok(cuDeviceGraphMemTrim(d));
    ok(cuMemGetInfo_v2(&free_bytes, &total));
    ck_assert_uint_eq(free_bytes, total);
  }
}

START_TEST(one_thread_long)
{
  walks(1, 3000, 1);
  nothing_is_left();
}
END_TEST

START_TEST(many_threads)
{
  for (unsigned seed = 1; seed <= 3; seed++)
    walks(12, 400, seed * 1000);
  nothing_is_left();
}
END_TEST

static void *use_default_streams(void *p)
{
  CUdeviceptr memory = (CUdeviceptr)(uintptr_t)p;
  ok(cuCtxSetCurrent(primary(0)));
  for (int i = 0; i < 200; i++) {
    ok(cuMemsetD8Async_ptsz(memory, 1, 100, NULL));
    ok(cuMemsetD8_v2(memory + 100, 2, 100));
    if (i % 20 == 0) ok(cuStreamSynchronize_ptsz(NULL));
    if (i % 50 == 0) ok(cuCtxSynchronize());
  }
  return NULL;
}

START_TEST(legacy_and_per_thread_default_streams_of_many_threads)
{
  pthread_t thread[8];
  for (int i = 0; i < 8; i++)
    pthread_create(&thread[i], NULL, use_default_streams, (void *)device_bytes(200));
  for (int i = 0; i < 8; i++)
    pthread_join(thread[i], NULL);
  ok(cuCtxSynchronize());
}
END_TEST

START_TEST(contexts_come_and_go_under_other_threads)
{
  pthread_t thread;
  struct walker w = {.seed = 5, .steps = 500, .device = 1};
  pthread_create(&thread, NULL, run_walker, &w);
  for (int i = 0; i < 30; i++) {
    CUcontext c;
    CUstream s;
    ok(cuCtxCreate_v2(&c, 0, 0));
    CUdeviceptr p = device_bytes(5 << 20);
    ok(cuStreamCreate(&s, 0));
    ok(cuMemsetD8Async(p, 1, 5 << 20, s));
    ok(cuMemsetD8Async(p, 2, 5 << 20, NULL));
    ok(cuCtxDestroy_v2(c));
  }
  pthread_join(thread, NULL);
  nothing_is_left();
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {one_thread_long, many_threads,
                                legacy_and_per_thread_default_streams_of_many_threads,
                                contexts_come_and_go_under_other_threads, NULL};
  return run_tests("sim_stress", tests, set_up_device0);
}
