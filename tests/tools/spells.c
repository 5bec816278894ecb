/* spells.c: a program that does what its arguments say, in order, and has itself recorded or not in
 * between, so that a test knows which of its calls are in the trace. Its last line is what it did:
 * calls that work or wait, all of them, and blocks that it holds.
 *
 *   work N           N times four calls: a copy, a fill, an event recorded, a wait
 *   hold N, drop N   N blocks more, N fewer
 *   pinned N         N page-locked blocks more, which are never freed
 *   push NAME, pop   a range of NVTX
 *   profiler 0|1     cudaProfilerStop(), cudaProfilerStart()
 *   await all|memory works until the spool's header has it
 *   start, stop      "$WEIR start PID", "$WEIR stop PID", and waits for its end
 *   threads T N      N work in each of T threads, which end
 *   stay T N         the same in T threads, which live until the program's end
 *   fork N           N work in a child
 *   past N           the same in a child made past libc
 *   exec ...         becomes this program with the arguments that follow */
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/trace/spool.h"
#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
static int nvtxRangePushA(const char *text)
{
  return text == NULL;
}

static int nvtxRangePop(void)
{
  return 0;
}
#endif

enum { MOST_HELD = 4096, BYTES = 4096, MOST_THREADS = 64 };

static _Atomic long calls;
static void *held[MOST_HELD];
static int holding;
static pthread_barrier_t stay;

static void must_succeed(cudaError_t error)
{
  if (error == cudaSuccess) return;
  (void)fprintf(stderr, "spells: %s\n", cudaGetErrorString(error));
  exit(99);
}

static void call_all(long n)
{
  static _Thread_local char host[64];
  static _Thread_local void *device;
  static _Thread_local cudaEvent_t event;
  if (!device) {
    must_succeed(cudaMalloc(&device, sizeof host));
    must_succeed(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    atomic_fetch_add(&calls, 1);
  }
  for (long i = 0; i < n; i++) {
    must_succeed(
        cudaMemcpyAsync(device, host, sizeof host, cudaMemcpyHostToDevice, cudaStreamPerThread));
    must_succeed(cudaMemsetAsync(device, (int)i, sizeof host, cudaStreamPerThread));
    must_succeed(cudaEventRecord(event, cudaStreamPerThread));
    must_succeed(cudaStreamSynchronize(cudaStreamPerThread));
  }
  atomic_fetch_add(&calls, 4 * n);
}

static void hold_blocks(long n)
{
  for (; n > 0 && holding < MOST_HELD; n--)
    must_succeed(cudaMalloc(&held[holding++], BYTES));
  for (; n < 0 && holding; n++)
    must_succeed(cudaFree(held[--holding]));
}

static void pin(long n)
{
  void *p;
  for (; n > 0; n--)
    must_succeed(cudaMallocHost(&p, BYTES));
}

static void steer_itself(const char *verb)
{
  char line[256];
  (void)snprintf(line, sizeof line, "\"$WEIR\" %s %d >/dev/null", verb, (int)getpid());
  if (system(line) != 0) exit(98);
}

/* The word by which this process is steered: of its spool, which is its first. */
static uint32_t steered_by(void)
{
  char path[4096];
  uint32_t word = UINT32_MAX;
  (void)snprintf(path, sizeof path, "%s/%d-0" WEIR_SPOOL_SUFFIX, getenv("WEIR_SPOOL_DIR"),
                 (int)getpid());
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || pread(fd, &word, sizeof word, offsetof(spool_header, steering.recording)) < 0)
    exit(94);
  close(fd);
  return word;
}

static void await(const char *what)
{
  const uint32_t wanted = strcmp(what, "all") ? WEIR_RECORD_MEMORY : WEIR_RECORD_ALL;
  do
    call_all(1);
  while (steered_by() != wanted);
}

static void *work_and_end(void *n)
{
  call_all(*(long *)n);
  return NULL;
}

static void *work_and_stay(void *n)
{
  call_all(*(long *)n);
  (void)pthread_barrier_wait(&stay);
  while (pause() < 0) {
  }
  return NULL;
}

static void in_threads(int count, long n, bool ends)
{
  pthread_t thread[MOST_THREADS];
  if (!ends) (void)pthread_barrier_init(&stay, NULL, (unsigned)count + 1);
  for (int i = 0; i < count; i++)
    if (pthread_create(&thread[i], NULL, ends ? work_and_end : work_and_stay, &n)) exit(97);
  if (!ends) (void)pthread_barrier_wait(&stay);
  for (int i = 0; ends && i < count; i++)
    (void)pthread_join(thread[i], NULL);
}

/* A child has no context of its own until it makes one; what it calls fails here and in CUDA. */
static void in_child(long n, bool by_libc)
{
  int status;
  pid_t child = by_libc ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    for (long i = 0; i < n; i++)
      (void)cudaStreamSynchronize(cudaStreamPerThread);
    exit(0);
  }
  (void)waitpid(child, &status, 0);
  if (status) exit(96);
}

static long number(const char *text)
{
  return text ? strtol(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
  for (int i = 1; i < argc; i++) {
    const char *what = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(what, "work")) call_all(number(argv[++i]));
    if (!strcmp(what, "hold")) hold_blocks(number(argv[++i]));
    if (!strcmp(what, "drop")) hold_blocks(-number(argv[++i]));
    if (!strcmp(what, "pinned")) pin(number(argv[++i]));
    if (!strcmp(what, "push") && next) nvtxRangePushA(argv[++i]);
    if (!strcmp(what, "pop")) nvtxRangePop();
    if (!strcmp(what, "profiler"))
      must_succeed(number(argv[++i]) ? cudaProfilerStart() : cudaProfilerStop());
    if (!strcmp(what, "await") && next) await(argv[++i]);
    if (!strcmp(what, "start") || !strcmp(what, "stop")) steer_itself(what);
    if (!strcmp(what, "threads") || !strcmp(what, "stay")) {
      in_threads((int)number(argv[i + 1]), number(argv[i + 2]), *what == 't');
      i += 2;
    }
    if (!strcmp(what, "fork") || !strcmp(what, "past")) in_child(number(argv[++i]), *what == 'f');
    if (!strcmp(what, "exec")) {
      argv[i] = argv[0];
      execv(argv[0], argv + i);
      return 95;
    }
  }
  printf("calls %ld held %d\n", atomic_load(&calls), holding);
  return 0;
}
