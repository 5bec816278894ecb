/* waste_habits.c: what programs do at each step by habit, and need not. */
#include <pthread.h>
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { STEPS = 120 };

/* ---- handles-left ---------------------------------------------------------------------------------- */

/* An event for each job, that nobody destroys; or for all of them at the start. */
static void handles_left_work(int each)
{
  float *p = (float *)(void *)device_memory(4096);
  cudaEvent_t done[STEPS];
  for (int i = 0; !each && i < STEPS; i++)
    CHECK(cudaEventCreate(&done[i]));
  for (int i = 0; i < STEPS; i++) {
    launch(NULL, p, 64);
    if (each) CHECK(cudaEventCreate(&done[i])); /* WASTE handles-left */
    CHECK(cudaEventRecord(done[i], NULL));
    launch(NULL, p, 64);
    CHECK(cudaEventSynchronize(done[i]));
  }
  CHECK(cudaFree(p));
}

static void handles_left(void)
{
  handles_left_work(1);
}

static void handles_left_twin(void)
{
  handles_left_work(0);
}

/* ---- mapped-memory-again --------------------------------------------------------------------------- */

/* Two kernels in each step read a table of the host's, or one, before the host changes it. */
static void mapped_memory_again_work(int twice)
{
  float *table = (float *)(void *)pinned_memory(1 << 17);
  int n = 64;
  void *args[] = {&table, &n};
  const dim3 one = {1, 1, 1}, many = {64, 1, 1};
  const void *kernel = victim_kernel();
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaLaunchKernel(kernel, one, many, args, 0, NULL));
    if (twice)
      CHECK(cudaLaunchKernel(kernel, one, many, args, 0, NULL)); /* WASTE mapped-memory-again */
    CHECK(cudaDeviceSynchronize());
    table[i] = (float)i;
  }
  CHECK(cudaFreeHost(table));
}

static void mapped_memory_again(void)
{
  mapped_memory_again_work(1);
}

static void mapped_memory_again_twin(void)
{
  mapped_memory_again_work(0);
}

/* ---- prefetched-in-each-step ----------------------------------------------------------------------- */

/* Memory that stays on the device is prefetched in each step, or another part of it. */
static void prefetched_in_each_step_work(int again)
{
  enum { PART = 4096 };
  float *p;
  const struct cudaMemLocation there = {.type = cudaMemLocationTypeDevice};
  CHECK(cudaMallocManaged((void **)&p, (size_t)STEPS * PART, cudaMemAttachGlobal));
  for (int i = 0; i < STEPS; i++) {
    char *part = (char *)p + (size_t)(again ? 0 : i) * PART;
    CHECK(cudaMemPrefetchAsync(part, PART, there, 0, NULL)); /* WASTE prefetched-in-each-step */
    launch(NULL, (float *)(void *)part, 64);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

static void prefetched_in_each_step(void)
{
  prefetched_in_each_step_work(1);
}

static void prefetched_in_each_step_twin(void)
{
  prefetched_in_each_step_work(0);
}

/* ---- pool-trimmed ---------------------------------------------------------------------------------- */

/* At the end of each step, or of each phase of 16. */
static void pool_trimmed_work(int each)
{
  cudaMemPool_t pool;
  void *p;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaMallocAsync(&p, 1 << 20, NULL));
    launch(NULL, p, 64);
    CHECK(cudaFreeAsync(p, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    if (each || i % 16 == 0) CHECK(cudaMemPoolTrimTo(pool, 0)); /* WASTE pool-trimmed */
  }
}

static void pool_trimmed(void)
{
  pool_trimmed_work(1);
}

static void pool_trimmed_twin(void)
{
  pool_trimmed_work(0);
}

/* ---- context-made-anew ----------------------------------------------------------------------------- */

/* The device is reset after each job, or after the last. */
static void context_made_anew_work(int each)
{
  char result[64];
  for (int i = 0; i < 8; i++) {
    CHECK(cudaSetDevice(0));
    char *p = device_memory(4096);
    CHECK(cudaMemset(p, i, 4096));
    CHECK(cudaMemcpy(result, p, sizeof result, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(p));
    if (each || i == 7) CHECK(cudaDeviceReset()); /* WASTE context-made-anew */
  }
}

static void context_made_anew(void)
{
  context_made_anew_work(1);
}

static void context_made_anew_twin(void)
{
  context_made_anew_work(0);
}

/* ---- fails-again ----------------------------------------------------------------------------------- */

/* A buffer that is registered is registered again in each step, or in a few. */
static void fails_again_work(int each)
{
  char *buffer = malloc(1 << 16), *p = device_memory(1 << 16);
  CHECK(cudaHostRegister(buffer, 1 << 16, 0));
  for (int i = 0; i < STEPS; i++) {
    buffer[i] = (char)i;
    if (each || i % 16 == 0)
      if (cudaHostRegister(buffer, 1 << 16, 0)) (void)cudaGetLastError(); /* WASTE fails-again */
    CHECK(cudaMemcpyAsync(p, buffer, 1 << 16, cudaMemcpyHostToDevice, NULL));
    launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaStreamSynchronize(NULL));
  }
  CHECK(cudaHostUnregister(buffer));
  CHECK(cudaFree(p));
  free(buffer);
}

static void fails_again(void)
{
  fails_again_work(1);
}

static void fails_again_twin(void)
{
  fails_again_work(0);
}

/* ---- recorded-for-nothing -------------------------------------------------------------------------- */

/* An event is recorded after each launch, and never used, or another stream waits for it. */
static void recorded_for_nothing_work(int unused)
{
  float *p = (float *)(void *)device_memory(4096);
  cudaStream_t other;
  cudaEvent_t e;
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  CHECK(cudaEventCreate(&e));
  for (int i = 0; i < STEPS; i++) {
    launch(NULL, p, 64);
    CHECK(cudaEventRecord(e, NULL)); /* WASTE recorded-for-nothing */
    if (!unused && i == STEPS / 2) CHECK(cudaStreamWaitEvent(other, e, 0));
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaEventDestroy(e));
  CHECK(cudaStreamDestroy(other));
  CHECK(cudaFree(p));
}

static void recorded_for_nothing(void)
{
  recorded_for_nothing_work(1);
}

static void recorded_for_nothing_twin(void)
{
  recorded_for_nothing_work(0);
}

/* ---- waits-for-other-threads ----------------------------------------------------------------------- */

/* What takes a stream's time, and none of the host's. */
static void take_time(void *unused)
{
  (void)unused;
  (void)usleep(500);
}

/* A worker's stream: the default one, or its own. */
static void *work_in_stream(void *own)
{
  cudaStream_t s = NULL;
  float *p = (float *)(void *)device_memory(4096);
  if (*(int *)own) CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (int i = 0; i < STEPS; i++) {
    launch(s, p, 64);
    CHECK(cudaLaunchHostFunc(s, take_time, NULL));
    CHECK(cudaStreamSynchronize(s)); /* WASTE waits-for-other-threads */
  }
  if (s) CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
  return NULL;
}

/* Two workers by themselves, in one stream or in two. */
static void waits_for_other_threads_work(int shared)
{
  int own = !shared;
  pthread_t worker[2];
  for (int i = 0; i < 2; i++)
    if (pthread_create(&worker[i], NULL, work_in_stream, &own)) exit(1);
  for (int i = 0; i < 2; i++)
    (void)pthread_join(worker[i], NULL);
}

static void waits_for_other_threads(void)
{
  waits_for_other_threads_work(1);
}

static void waits_for_other_threads_twin(void)
{
  waits_for_other_threads_work(0);
}

/* ---- pinned-not-copied ----------------------------------------------------------------------------- */

/* A ring of which one slot is used, or all. */
static void pinned_not_copied_work(int one)
{
  enum { SLOTS = 3, SLOT = 1 << 20 };
  char *ring[SLOTS], *p = device_memory(SLOT);
  for (int k = 0; k < SLOTS; k++)
    CHECK(cudaMallocHost((void **)&ring[k], SLOT)); /* WASTE pinned-not-copied */
  for (int i = 0; i < STEPS; i++) {
    char *slot = ring[one ? 0 : i % SLOTS];
    slot[i] = (char)i;
    CHECK(cudaMemcpyAsync(p, slot, SLOT, cudaMemcpyHostToDevice, NULL));
    launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaStreamSynchronize(NULL));
  }
  for (int k = 0; k < SLOTS; k++)
    CHECK(cudaFreeHost(ring[k]));
  CHECK(cudaFree(p));
}

static void pinned_not_copied(void)
{
  pinned_not_copied_work(1);
}

static void pinned_not_copied_twin(void)
{
  pinned_not_copied_work(0);
}

const waster habit_wasters[] = {
    {"handles-left", handles_left, handles_left_twin, NULL},
    {"mapped-memory-again", mapped_memory_again, mapped_memory_again_twin, NULL},
    {"prefetched-in-each-step", prefetched_in_each_step, prefetched_in_each_step_twin, NULL},
    {"pool-trimmed", pool_trimmed, pool_trimmed_twin, NULL},
    {"context-made-anew", context_made_anew, context_made_anew_twin, NULL},
    {"fails-again", fails_again, fails_again_twin, NULL},
    {"recorded-for-nothing", recorded_for_nothing, recorded_for_nothing_twin, NULL},
    {"waits-for-other-threads", waits_for_other_threads, waits_for_other_threads_twin, NULL},
    {"pinned-not-copied", pinned_not_copied, pinned_not_copied_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
