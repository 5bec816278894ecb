/* idler.c: a random program that knows when its two devices are busy and when they are idle, and
 * what its waits are for, for sure; what it knows goes into a file.
 *
 *   idler SEED FILE
 *
 * A kernel that says that it runs, and goes on until it may end, keeps a device busy; a stream that
 * is held has work that does not begin; a host function keeps a stream from being complete while no
 * device works. What ends a phase is done by a second thread while the first one waits. Each phase
 * begins and ends with all complete. Times are of CLOCK_MONOTONIC, in ns. Lines of FILE:
 *
 *   busy DEVICE FROM TO            it works
 *   idle DEVICE CAUSE FROM TO      it does not, for that cause (table idle_cause)
 *   waiting DEVICE WAIT FROM TO    it does not since the host waits: in the WAITth wait, from 0 on
 *   part WAIT COLUMN FROM TO       what devices do meanwhile in that wait (table wait_time) */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int victim_gate_launch(cudaStream_t s, volatile int *flags); /* kernels.cu */

enum { DEVICES = 2, STREAMS = 2, PHASES = 40, BLOCK = 4096, LOCKED = 8 << 20 };

typedef struct device {
  void *memory;
  cudaStream_t stream[STREAMS];
  cudaEvent_t event;
} device;

static device devices[DEVICES];
static volatile int *flags; /* page-locked; two a gate */
static int gates, waits;    /* so far */
static void *pages;         /* to be page-locked */
static FILE *out;
static uint64_t rng;
static int (*hold)(void *), (*release)(void *);

static void check_call(int r, const char *what)
{
  if (!r) return;
  (void)fprintf(stderr, "%s: %d\n", what, r);
  exit(1);
}

#define CHECK(call) check_call((int)(call), #call)

static int random_below(int n)
{
  rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((rng >> 33) % (unsigned)n);
}

static long long now(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pass_until(long long time)
{
  while (now() < time)
    (void)sched_yield();
}

/* How long a phase lasts: 2 to 4 ms. */
static long long some_time(void)
{
  return 2000000 + 1000 * (long long)random_below(2000);
}

/* ---- the second thread ----------------------------------------------------------------------- */

static struct {
  sem_t go, gone;
  long long at, done; /* when it is to be done, and just before it was */
  cudaStream_t held;  /* is released, or ... */
  volatile int *flag; /* ... is set */
} ender;

static void *end_phases(void *nothing)
{
  (void)nothing;
  for (;;) {
    (void)sem_wait(&ender.go);
    if (!ender.at) return NULL;
    pass_until(ender.at);
    ender.done = now();
    if (ender.flag)
      *ender.flag = 1;
    else
      CHECK(release(ender.held));
    (void)sem_post(&ender.gone);
  }
}

static void end_later(cudaStream_t held, volatile int *flag)
{
  ender.held = held;
  ender.flag = flag;
  ender.at = now() + some_time();
  (void)sem_post(&ender.go);
}

/* When it had not been done yet. */
static long long was_ended(void)
{
  (void)sem_wait(&ender.gone);
  return ender.done;
}

/* ---- what phases are made of ----------------------------------------------------------------- */

static volatile int *new_flags(void)
{
  volatile int *f = flags + 2 * gates++;
  f[0] = f[1] = 0;
  return f;
}

/* A kernel that runs when this returns. */
static volatile int *begin_gate(int d, cudaStream_t s)
{
  volatile int *f = new_flags();
  CHECK(cudaSetDevice(d));
  CHECK(victim_gate_launch(s, f));
  while (!f[0])
    (void)sched_yield();
  return f;
}

static void begin_held(int d, cudaStream_t s)
{
  CHECK(hold(s));
  CHECK(cudaSetDevice(d));
  CHECK(cudaMemsetAsync(devices[d].memory, 1, BLOCK, s));
}

static int wait_stream(cudaStream_t s)
{
  CHECK(cudaStreamSynchronize(s));
  return waits++;
}

static void say_waiting(int d, int wait)
{
  (void)fprintf(out, "waiting %d %d %d %lld\n", d, wait, 0, INT64_MAX / 4LL);
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void no_call(void)
{
  long long from = now();
  pass_until(from + some_time());
  long long to = now();
  for (int d = 0; d < DEVICES; d++)
    (void)fprintf(out, "idle %d no_call %lld %lld\n", d, from, to);
}

/* Calls that take their time, and wait for no device. */
static void elsewhere(void)
{
  CHECK(cudaHostRegister(pages, LOCKED, 0));
  CHECK(cudaHostUnregister(pages));
}

static void spin(void *flag)
{
  while (!*(volatile int *)flag)
    (void)sched_yield();
}

static void host_function(int d, cudaStream_t s)
{
  volatile int *f = new_flags();
  CHECK(cudaSetDevice(d));
  CHECK(cudaLaunchHostFunc(s, spin, (void *)(uintptr_t)&f[1]));
  end_later(NULL, &f[1]);
  int wait = wait_stream(s);
  (void)was_ended();
  (void)fprintf(out, "part %d idle_ns 0 %lld\n", wait, INT64_MAX / 4LL);
  for (int i = 0; i < DEVICES; i++)
    say_waiting(i, wait);
}

static void held_and_no_call(int d, cudaStream_t s)
{
  begin_held(d, s);
  long long from = now();
  pass_until(from + some_time());
  long long to = now();
  CHECK(release(s));
  (void)wait_stream(s);
  (void)fprintf(out, "idle %d queued %lld %lld\n", d, from, to);
  (void)fprintf(out, "idle %d no_call %lld %lld\n", !d, from, to);
}

static void held_and_waited_for(int d, cudaStream_t s)
{
  begin_held(d, s);
  long long from = now();
  end_later(s, NULL);
  int wait = wait_stream(s);
  long long to = was_ended();
  (void)fprintf(out, "idle %d queued %lld %lld\n", d, from, to);
  (void)fprintf(out, "part %d idle_ns %lld %lld\n", wait, from, to);
  say_waiting(!d, wait);
}

static void busy_and_waited_for(int d, cudaStream_t s)
{
  volatile int *f = begin_gate(d, s);
  long long from = now();
  int how = random_below(3), wait = waits;
  if (how == 0) CHECK(cudaEventRecord(devices[d].event, s));
  end_later(NULL, &f[1]);
  if (how == 0)
    CHECK(cudaEventSynchronize(devices[d].event));
  else if (how == 1)
    CHECK(cudaDeviceSynchronize());
  else
    CHECK(cudaStreamSynchronize(s));
  waits++;
  long long to = was_ended();
  (void)fprintf(out, "busy %d %lld %lld\n", d, from, to);
  (void)fprintf(out, "part %d working_ns %lld %lld\n", wait, from, to);
  say_waiting(!d, wait);
}

/* One stream is waited for, which is held, while another is busy. */
static void busy_with_other_work(int d, int busy, cudaStream_t s, cudaStream_t other)
{
  volatile int *f = begin_gate(busy, other);
  long long from = now();
  begin_held(d, s);
  long long queued = now();
  end_later(s, NULL);
  int wait = wait_stream(s);
  long long to = was_ended();
  (void)fprintf(out, "busy %d %lld %lld\n", busy, from, now());
  (void)fprintf(out, "part %d %s %lld %lld\n", wait, busy == d ? "other_ns" : "idle_ns", queued,
                to);
  if (busy != d) (void)fprintf(out, "idle %d queued %lld %lld\n", d, queued, to);
  f[1] = 1;
  (void)wait_stream(other);
}

static void do_phase(void)
{
  int d = random_below(DEVICES), i = random_below(STREAMS);
  cudaStream_t s = devices[d].stream[i];
  switch (random_below(7)) {
  case 0:
    no_call();
    break;
  case 1:
    elsewhere();
    break;
  case 2:
    host_function(d, s);
    break;
  case 3:
    held_and_no_call(d, s);
    break;
  case 4:
    held_and_waited_for(d, s);
    break;
  case 5:
    busy_and_waited_for(d, s);
    break;
  default:
    if (random_below(2))
      busy_with_other_work(d, d, s, devices[d].stream[!i]);
    else
      busy_with_other_work(d, !d, s, devices[!d].stream[i]);
    break;
  }
}

/* ---- the program ----------------------------------------------------------------------------- */

/* What is ahead of a device's first operation, or behind its last one, is no idle time. */
static void work_a_little(int d)
{
  CHECK(cudaSetDevice(d));
  CHECK(cudaMemsetAsync(devices[d].memory, 0, BLOCK, devices[d].stream[0]));
  (void)wait_stream(devices[d].stream[0]);
}

static void begin_device(int d)
{
  CHECK(cudaSetDevice(d));
  CHECK(cudaMalloc(&devices[d].memory, BLOCK));
  for (int i = 0; i < STREAMS; i++)
    CHECK(cudaStreamCreateWithFlags(&devices[d].stream[i], cudaStreamNonBlocking));
  CHECK(cudaEventCreateWithFlags(&devices[d].event, cudaEventDisableTiming));
}

int main(int argc, char **argv)
{
  pthread_t thread;
  void *memory = NULL;
  if (argc != 3) return 2;
  rng = strtoull(argv[1], NULL, 10) * UINT64_C(0x9e3779b97f4a7c15) + 1;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  hold = driver ? (int (*)(void *))(uintptr_t)dlsym(driver, "weir_sim_hold") : NULL;
  release = driver ? (int (*)(void *))(uintptr_t)dlsym(driver, "weir_sim_release") : NULL;
  out = fopen(argv[2], "w");
  if (!hold || !release || !out) return 2;
  (void)sem_init(&ender.go, 0, 0);
  (void)sem_init(&ender.gone, 0, 0);
  if (pthread_create(&thread, NULL, end_phases, NULL)) return 2;
  for (int d = 0; d < DEVICES; d++)
    begin_device(d);
  CHECK(cudaMallocHost(&memory, (size_t)PHASES * 2 * sizeof(int)));
  flags = memory;
  pages = aligned_alloc(4096, LOCKED);
  if (!pages) return 2;
  memset(pages, 1, LOCKED);
  for (int d = 0; d < DEVICES; d++)
    work_a_little(d);
  for (int i = 0; i < PHASES; i++)
    do_phase();
  for (int d = 0; d < DEVICES; d++)
    work_a_little(d);
  ender.at = 0;
  (void)sem_post(&ender.go);
  (void)pthread_join(thread, NULL);
  free(pages);
  return fclose(out) ? 1 : 0;
}
