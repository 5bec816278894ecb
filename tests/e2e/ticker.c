/* ticker.c: COUNTERS CALLS. Threads that make one CUDA call after another and count each in a
 * shared file before and after, so that whoever kills the program knows what its trace must hold.
 *
 * CALLS a thread, 0: until killed. Prints the number of calls at the end. */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/e2e/ticker.h"

static ticker_page *page;
static unsigned long calls;

static void *tick(void *device_memory)
{
  for (unsigned long i = 0; calls == 0 || i < calls; i++) {
    atomic_fetch_add(&page->begun, 1);
    if (cudaMemset(device_memory, (int)i, 64) != cudaSuccess) exit(3);
    atomic_fetch_add(&page->done, 1);
  }
  return NULL;
}

int main(int argc, char **argv)
{
  if (argc != 3) return fprintf(stderr, "usage: ticker COUNTERS CALLS\n"), 2;
  int fd = open(argv[1], O_RDWR);
  if (fd < 0) return perror(argv[1]), 1;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return perror("mmap"), 1;
  calls = strtoul(argv[2], NULL, 10);
  pthread_t t[TICKER_THREADS];
  for (int i = 0; i < TICKER_THREADS; i++) {
    void *p = NULL;
    if (cudaMalloc(&p, 64) != cudaSuccess || pthread_create(&t[i], NULL, tick, p) != 0) return 1;
  }
  for (int i = 0; i < TICKER_THREADS; i++)
    (void)pthread_join(t[i], NULL);
  printf("%lu\n", calls * TICKER_THREADS);
  return 0;
}
