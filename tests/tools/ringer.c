/* ringer.c: a program whose allocations are numbered, so that a trace shows which of them it lacks.
 *
 *   ringer FILE THREADS CALLS FAST [WORD]...
 *
 * Each of THREADS makes CALLS allocations (0: without end), the i-th of i + 1 bytes, and frees each:
 * FAST of them as fast as it can, the others with a pause after every 20. FILE is mapped: its t-th
 * word is the number of allocations that thread t has made, as far as it knows; the last is its pid.
 * Then, in order: `mend` has an allocation fail and asks for as much again after a free; `fail` has
 * one fail and goes on; `abort`, `exit` (with 3) end it; `wait` waits for the end of stdin. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/e2e/driver.h"

#define MIB ((size_t)1 << 20)

enum { MOST_THREADS = 16 };

static _Atomic unsigned long long *made;
static unsigned long long calls, fast;
static CUcontext context;

static void *call_along(void *thread)
{
  _Atomic unsigned long long *own = &made[(uintptr_t)thread];
  CUdeviceptr at;
  if (cuCtxSetCurrent(context)) exit(9);
  for (unsigned long long i = 0; !calls || i < calls; i++) {
    if (cuMemAlloc(&at, i + 1) || cuMemFree(at)) exit(9);
    atomic_store(own, i + 1);
    if (i >= fast && i % 20 == 0) (void)usleep(1000);
  }
  return NULL;
}

static void open_ring(const char *path)
{
  CUdevice device;
  int fd = open(path, O_RDWR | O_CREAT, 0600);
  if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
      cuCtxSetCurrent(context) || fd < 0 || ftruncate(fd, MOST_THREADS * sizeof *made))
    exit(9);
  made = mmap(NULL, MOST_THREADS * sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (made == MAP_FAILED) exit(9);
  made[MOST_THREADS - 1] = (unsigned long long)getpid();
}

/* 100 MiB are held, 250 asked for, of 300. */
static void fail_to_allocate(int mend)
{
  CUdeviceptr held, more;
  if (cuMemAlloc(&held, 100 * MIB) || !cuMemAlloc(&more, 250 * MIB)) exit(9);
  if (mend && (cuMemFree(held) || cuMemAlloc(&more, 250 * MIB) || cuMemFree(more))) exit(9);
}

static void do_as(const char *word)
{
  char byte;
  if (!strcmp(word, "mend")) fail_to_allocate(1);
  if (!strcmp(word, "fail")) fail_to_allocate(0);
  if (!strcmp(word, "abort")) abort();
  if (!strcmp(word, "exit")) exit(3);
  while (!strcmp(word, "wait") && read(STDIN_FILENO, &byte, 1) > 0)
    continue;
}

int main(int argc, char **argv)
{
  pthread_t threads[MOST_THREADS];
  if (argc < 5) return 9;
  open_ring(argv[1]);
  const int count = atoi(argv[2]);
  calls = strtoull(argv[3], NULL, 10);
  fast = strtoull(argv[4], NULL, 10);
  for (int i = 0; i < count; i++)
    if (pthread_create(&threads[i], NULL, call_along, (void *)(uintptr_t)i)) return 9;
  for (int i = 0; i < count; i++)
    (void)pthread_join(threads[i], NULL);
  for (int i = 5; i < argc; i++)
    do_as(argv[i]);
  return 0;
}
