/* shortage.c: a program that a device has not enough memory for, with what it holds when it sees
 * so.
 *
 *   shortage MIB[,MIB...] [kill]
 *
 * Weights of 100 MiB and three caches of 50, 40 and 30 MiB live, a buffer of 60 MiB is freed,
 * then a batch of MIB is asked for, and another; with `kill`, it is not, and the program is
 * killed as it stands. Prints the answer. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/e2e/driver.h"

#define MIB ((size_t)1 << 20)

static CUresult last;
static CUdeviceptr at, kept[8];
static unsigned count;

/* In whose function it stands: the place that owns it. */
#define ALLOCATE(mib)                                                                              \
  do {                                                                                             \
    last = cuMemAlloc(&at, (mib)*MIB);                                                             \
    kept[count++] = at;                                                                            \
  } while (0)

__attribute__((noinline)) static void load_weights(void)
{
  ALLOCATE(100);
}

__attribute__((noinline)) static void fill_caches(void)
{
  static const size_t mib[] = {40, 50, 30};
  for (int i = 0; i < 3; i++)
    ALLOCATE(mib[i]);
}

__attribute__((noinline)) static void use_buffer(void)
{
  ALLOCATE(60);
  (void)cuMemFree(at);
}

__attribute__((noinline)) static void load_batch(size_t mib)
{
  ALLOCATE(mib);
  printf("%d\n", (int)last);
}

int main(int argc, char **argv)
{
  CUdevice device;
  CUcontext context;
  if (argc < 2 || cuInit(0) || cuDeviceGet(&device, 0) ||
      cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
    return 2;
  load_weights();
  fill_caches();
  use_buffer();
  if (argc > 2) (void)raise(SIGKILL);
  for (char *at = argv[1], *next; *at && count < sizeof kept / sizeof *kept;
       at = next + (*next == ',')) {
    load_batch(strtoul(at, &next, 10));
    if (next == at) return 2;
  }
  return 0;
}
