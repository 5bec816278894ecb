/* poller.c: asks whether a stream and an event are ready, which they are not, and counts.
 *
 *   poller count N              N polls of an event in a row, by one line of code, then of the
 *                               stream, by turns, by two lines, and until it is ready
 *   poller exit N               N polls by another thread, which is still there when main() returns
 *   poller forever COUNTERS     until it is killed, counting in the shared file before and after
 *
 * Prints its count of calls by function, a line each. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/e2e/hold.h"
#include "tests/e2e/ticker.h"

static holder held;
static cudaStream_t stream;
static cudaEvent_t event;
static unsigned long events, streams;
static sem_t polled;

static void want(int got, int status)
{
  if (got == status) return;
  (void)fprintf(stderr, "poller: %d where %d was expected\n", got, status);
  exit(1);
}

static void poll_event(unsigned long n)
{
  for (unsigned long i = 0; i < n; i++, events++)
    want(cudaEventQuery(event), cudaErrorNotReady);
}

static void poll_by_turns(unsigned long n)
{
  for (unsigned long i = 0; i < n; i++, events++, streams++) {
    want(cudaEventQuery(event), cudaErrorNotReady);
    want(cudaStreamQuery(stream), cudaErrorNotReady);
  }
}

static void *poll_and_stay(void *n)
{
  poll_event(*(unsigned long *)n);
  (void)sem_post(&polled);
  for (;;)
    (void)pause();
  return NULL;
}

static void count(unsigned long n)
{
  poll_event(n);
  for (unsigned long i = 0; i < n; i++, streams++)
    want(cudaStreamQuery(stream), cudaErrorNotReady);
  poll_by_turns(10);
  want((int)hold_release(&held, stream), 0);
  want(cudaStreamSynchronize(stream), 0);
  want(cudaEventQuery(event), 0);
  events++;
}

static void until_killed(const char *file)
{
  int fd = open(file, O_RDWR);
  ticker_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) exit(1);
  for (;;) {
    atomic_fetch_add(&page->begun, 1);
    want(cudaEventQuery(event), cudaErrorNotReady);
    atomic_fetch_add(&page->done, 1);
  }
}

int main(int argc, char **argv)
{
  pthread_t t;
  void *p;
  if (argc != 3) return 2;
  unsigned long n = strtoul(argv[2], NULL, 10);
  want(cudaMalloc(&p, 64), 0);
  want(cudaStreamCreate(&stream), 0);
  want(cudaEventCreate(&event), 0);
  want((int)hold_open(&held, false), 0);
  want((int)hold_stream(&held, stream), 0);
  want(cudaMemsetAsync(p, 0, 64, stream), 0);
  want(cudaEventRecord(event, stream), 0);
  if (!strcmp(argv[1], "count")) count(n);
  if (!strcmp(argv[1], "forever")) until_killed(argv[2]);
  if (!strcmp(argv[1], "exit")) {
    if (sem_init(&polled, 0, 0) || pthread_create(&t, NULL, poll_and_stay, &n)) return 1;
    while (sem_wait(&polled))
      continue;
  }
  printf("cudaEventQuery %lu\ncudaStreamQuery %lu\n", events, streams);
  (void)fflush(stdout);
  if (!strcmp(argv[1], "exit")) _exit(0); /* the stream is held: nothing of it would end */
  return 0;
}
