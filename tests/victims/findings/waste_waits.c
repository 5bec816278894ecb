/* waste_waits.c: waits that nothing needs. */
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { TIMES = 40, SLOW_TIMES = 10, SLOW_US = 2000 };

static float *some_memory(size_t bytes)
{
  float *p;
  CHECK(cudaMalloc((void **)&p, bytes));
  return p;
}

/* ---- redundant-wait -------------------------------------------------------------------------- */

static void wait_for_kernels(int twice)
{
  float *p = some_memory(4096);
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, p, 64);
    CHECK(cudaDeviceSynchronize());
    if (twice) CHECK(cudaDeviceSynchronize()); /* WASTE redundant-wait */
  }
  CHECK(cudaFree(p));
}

/* The stream's wait is needed after a copy that may return early, though that of pageable memory does not. */
static void read_back(int twice)
{
  static float result[64];
  float *p = some_memory(4096);
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, p, 64);
    CHECK(cudaMemcpyAsync(result, p, sizeof result, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    if (twice) CHECK(cudaDeviceSynchronize()); /* WASTE redundant-wait */
  }
  CHECK(cudaFree(p));
}

static void redundant_wait(void)
{
  wait_for_kernels(1);
  read_back(1);
}

static void redundant_wait_twin(void)
{
  wait_for_kernels(0);
  read_back(0);
}

/* ---- wide-wait ------------------------------------------------------------------------------- */

/* What takes a stream's time, and none of the host's. */
static void work_slowly(void *unused)
{
  (void)unused;
  (void)usleep(SLOW_US);
}

/* Kernels in one stream, or in two, and a wait for all. */
static void wait_for_all(int both)
{
  float *p = some_memory(4096);
  cudaStream_t a, b;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  for (int i = 0; i < SLOW_TIMES; i++) {
    launch(b, p, 64);
    if (!both) CHECK(cudaStreamSynchronize(b));
    CHECK(cudaLaunchHostFunc(a, work_slowly, NULL));
    launch(a, p, 64);
    CHECK(cudaDeviceSynchronize()); /* WASTE wide-wait */
  }
  CHECK(cudaStreamDestroy(a));
  CHECK(cudaStreamDestroy(b));
  CHECK(cudaFree(p));
}

static void wide_wait(void)
{
  wait_for_all(0);
}

static void wide_wait_twin(void)
{
  wait_for_all(1);
}

/* ---- hidden-wait ----------------------------------------------------------------------------- */

static void free_behind_work(int wait)
{
  for (int i = 0; i < SLOW_TIMES; i++) {
    float *p = some_memory((size_t)4096 * (i + 1));
    launch(NULL, p, 64);
    CHECK(cudaLaunchHostFunc(NULL, work_slowly, NULL));
    if (wait) CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(p)); /* WASTE hidden-wait */
  }
}

static void hidden_wait(void)
{
  free_behind_work(0);
}

static void hidden_wait_twin(void)
{
  free_behind_work(1);
}

/* ---- premature-wait -------------------------------------------------------------------------- */

/* The host looks at what each kernel has made, or at what all have. */
static void wait_for_each(int look)
{
  float *p = some_memory(4096), *host;
  CHECK(cudaMallocHost((void **)&host, 4096));
  CHECK(cudaMemcpy(p, host, 4096, cudaMemcpyHostToDevice));
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, p, 64);
    if (look) CHECK(cudaMemcpyAsync(host, p, 4096, cudaMemcpyDeviceToHost, NULL));
    CHECK(cudaDeviceSynchronize()); /* WASTE premature-wait */
  }
  CHECK(cudaMemcpy(host, p, 4096, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void premature_wait(void)
{
  wait_for_each(0);
}

static void premature_wait_twin(void)
{
  wait_for_each(1);
}

/* ---- wait-before-copy ------------------------------------------------------------------------ */

/* The copy waits for the kernel by itself; or it is in a stream that does not wait for it. */
static void wait_and_copy(int apart)
{
  float *p = some_memory(4096), host[16];
  cudaStream_t s = NULL;
  if (apart) CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (int i = 0; i < TIMES; i++) {
    launch(s, p, 64);
    CHECK(cudaStreamSynchronize(s)); /* WASTE wait-before-copy */
    CHECK(cudaMemcpy(host, p, sizeof(host), cudaMemcpyDeviceToHost));
  }
  if (apart) CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
}

static void wait_before_copy(void)
{
  wait_and_copy(0);
}

static void wait_before_copy_twin(void)
{
  wait_and_copy(1);
}

/* ---- polled-in-a-loop ------------------------------------------------------------------------ */

/* On a busy machine the thread has its processor for a few ms of each. */
enum { POLLED_TIMES = 40, POLLED_US = 20000, WORDS = 4096 };

static void work_for_long(void *unused)
{
  (void)unused;
  (void)usleep(POLLED_US);
}

/* Whether the work is complete is asked again at once, or after other work. */
static void ask_until_complete(int work)
{
  static volatile int words[WORDS];
  float *p = some_memory(4096);
  cudaEvent_t done;
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  for (int i = 0; i < POLLED_TIMES; i++) {
    launch(NULL, p, 64);
    CHECK(cudaLaunchHostFunc(NULL, work_for_long, NULL));
    CHECK(cudaEventRecord(done, NULL));
    while (cudaEventQuery(done) == cudaErrorNotReady) /* WASTE polled-in-a-loop */
      for (int k = 0; work && k < WORDS; k++)
        words[k]++;
    (void)cudaGetLastError();
  }
  CHECK(cudaEventDestroy(done));
  CHECK(cudaFree(p));
}

static void polled_in_a_loop(void)
{
  ask_until_complete(0);
}

static void polled_in_a_loop_twin(void)
{
  ask_until_complete(1);
}

/* ---- polled-with-pauses ---------------------------------------------------------------------- */

enum { PAUSE_US = 200, ASKED_US = 1500 };

static void work_for_some_pauses(void *unused)
{
  (void)unused;
  (void)usleep(ASKED_US);
}

/* Some ms and more, whatever else the machine does. */
static void count_up(void)
{
  static volatile int words[WORDS];
  for (int k = 0; k < WORDS * 512; k++)
    words[k % WORDS]++;
}

/* What a loop of questions does but pause; all but the first are no waste. */
enum between { NOTHING, COUNTS, LAUNCHES, QUEUED };

static void ask_with_pauses(enum between what)
{
  float *p = some_memory(4096);
  cudaEvent_t done;
  cudaStream_t s, other;
  CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  for (int i = 0; i < TIMES; i++) {
    launch(s, p, 64);
    CHECK(cudaLaunchHostFunc(s, work_for_some_pauses, NULL));
    CHECK(cudaEventRecord(done, s));
    if (what == QUEUED) launch(s, p, 64);
    while (cudaEventQuery(done) == cudaErrorNotReady) { /* WASTE polled-with-pauses */
      (void)cudaGetLastError();
      if (what == COUNTS) count_up();
      if (what == LAUNCHES) launch(other, p + 64, 64);
      (void)usleep(PAUSE_US);
    }
  }
  CHECK(cudaStreamSynchronize(other));
  CHECK(cudaStreamSynchronize(s));
  CHECK(cudaStreamDestroy(other));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaEventDestroy(done));
  CHECK(cudaFree(p));
}

static void polled_with_pauses(void)
{
  ask_with_pauses(NOTHING);
}

static void polled_with_pauses_twin(void)
{
  ask_with_pauses(COUNTS);
  ask_with_pauses(LAUNCHES);
  ask_with_pauses(QUEUED);
}

/* ---- number-in-each-step --------------------------------------------------------------------- */

/* Each step has an input of its own and two launches of one place; how far it has come is asked after each, or after some. */
static void ask_each_step(int steps)
{
  float *p = some_memory(4096), *input = (float *)(void *)pinned_memory(4096), left = 0;
  for (int i = 1; i <= TIMES * steps; i++) {
    CHECK(cudaStreamSynchronize(NULL)); /* the input has been uploaded */
    input[0]++;
    CHECK(cudaMemcpyAsync(p, input, 4096, cudaMemcpyHostToDevice, NULL));
    for (int k = 0; k < 2; k++)
      launch(NULL, p, 64);
    if (i % steps) continue;
    cudaMemcpyAsync(&left, p, 4, cudaMemcpyDeviceToHost, NULL); /* WASTE number-in-each-step */
    CHECK(cudaStreamSynchronize(NULL));
    if (left < 0) break;
  }
  CHECK(cudaFreeHost(input));
  CHECK(cudaFree(p));
}

/* The steps of a solver, which have no input. */
static void ask_each_tenth_step(void)
{
  float *p = some_memory(4096), left = 0;
  for (int i = 1; i <= TIMES * 10 && left >= 0; i++) {
    launch(NULL, p, 64);
    if (i % 10 == 0) CHECK(cudaMemcpy(&left, p, 4, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(p));
}

static void number_in_each_step(void)
{
  ask_each_step(1);
}

static void number_in_each_step_twin(void)
{
  ask_each_step(10);
  ask_each_tenth_step();
}

/* ---- host-and-device-in-turn ------------------------------------------------------------------ */

enum { TURNS = 60, RESULT = 1 << 20, RESULT_US = 400 };

/* The host works on each result: before the next is queued, or while the device works on it. */
static void take_results(int in_turn)
{
  char *p = device_memory(RESULT), *host = pinned_memory((size_t)2 * RESULT);
  cudaEvent_t done[2];
  cudaStream_t s;
  set_link("d2h:3G");
  CHECK(cudaStreamCreate(&s));
  for (int k = 0; k < 2; k++)
    CHECK(cudaEventCreateWithFlags(&done[k], cudaEventDisableTiming));
  for (int i = 0; i <= TURNS; i++) {
    if (i < TURNS) {
      launch(s, (float *)(void *)p, 64 + i);
      CHECK(cudaMemcpyAsync(host + i % 2 * RESULT, p, RESULT, cudaMemcpyDeviceToHost, s));
      CHECK(cudaEventRecord(done[i % 2], s));
    }
    if (in_turn) CHECK(cudaStreamSynchronize(s)); /* WASTE host-and-device-in-turn */
    if (!in_turn && i) CHECK(cudaEventSynchronize(done[(i - 1) % 2]));
    if (in_turn || i) (void)usleep(RESULT_US);
  }
  for (int k = 0; k < 2; k++)
    CHECK(cudaEventDestroy(done[k]));
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

/* The same by copies that wait: the host works after each, or before it, while the device does. */
static void fetch_results(int in_turn)
{
  static char host[RESULT];
  char *p = device_memory((size_t)2 * RESULT);
  set_link("d2h:3G,d2d:3G");
  for (int i = 0; i < TURNS; i++) {
    launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaMemcpyAsync(p + RESULT, p, RESULT, cudaMemcpyDeviceToDevice, NULL));
    if (!in_turn) (void)usleep(RESULT_US);
    CHECK(cudaMemcpy(host, p, RESULT, cudaMemcpyDeviceToHost)); /* WASTE host-and-device-in-turn */
    if (in_turn) (void)usleep(RESULT_US);
  }
  CHECK(cudaFree(p));
}

static void host_and_device_in_turn(void)
{
  take_results(1);
  fetch_results(1);
}

static void host_and_device_in_turn_twin(void)
{
  take_results(0);
  fetch_results(0);
}

/* ---- streams-in-turn -------------------------------------------------------------------------- */

enum { IN_TURN = 3, ROUNDS = 30 };

/* Each stream has a part of the work: it is waited for before the next one has its part, or all of them have. */
static void use_streams(int in_turn)
{
  cudaStream_t s[IN_TURN];
  char *p = device_memory((size_t)IN_TURN * RESULT),
       *host = pinned_memory((size_t)IN_TURN * RESULT);
  set_link("h2d:10G,d2h:10G");
  for (int k = 0; k < IN_TURN; k++)
    CHECK(cudaStreamCreateWithFlags(&s[k], cudaStreamNonBlocking));
  for (int i = 0; i < ROUNDS; i++) {
    for (int k = 0; k < IN_TURN; k++) {
      size_t at = (size_t)k * RESULT;
      host[at] = (char)i;
      CHECK(cudaMemcpyAsync(p + at, host + at, RESULT, cudaMemcpyHostToDevice, s[k]));
      launch(s[k], (float *)(void *)(p + at), 64);
      CHECK(cudaMemcpyAsync(host + at, p + at, RESULT, cudaMemcpyDeviceToHost, s[k]));
      if (in_turn) CHECK(cudaStreamSynchronize(s[k])); /* WASTE streams-in-turn */
    }
    for (int k = 0; !in_turn && k < IN_TURN; k++)
      CHECK(cudaStreamSynchronize(s[k]));
    (void)usleep(RESULT_US);
  }
  for (int k = 0; k < IN_TURN; k++)
    CHECK(cudaStreamDestroy(s[k]));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

static void streams_in_turn(void)
{
  use_streams(1);
}

static void streams_in_turn_twin(void)
{
  use_streams(0);
}

const waster wait_wasters[] = {
    {"streams-in-turn", streams_in_turn, streams_in_turn_twin, NULL},
    {"host-and-device-in-turn", host_and_device_in_turn, host_and_device_in_turn_twin, NULL},
    {"premature-wait", premature_wait, premature_wait_twin, NULL},
    {"wait-before-copy", wait_before_copy, wait_before_copy_twin, NULL},
    {"redundant-wait", redundant_wait, redundant_wait_twin, NULL},
    {"wide-wait", wide_wait, wide_wait_twin, NULL},
    {"hidden-wait", hidden_wait, hidden_wait_twin, NULL},
    {"polled-in-a-loop", polled_in_a_loop, polled_in_a_loop_twin, NULL},
    {"polled-with-pauses", polled_with_pauses, polled_with_pauses_twin, NULL},
    {"number-in-each-step", number_in_each_step, number_in_each_step_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
