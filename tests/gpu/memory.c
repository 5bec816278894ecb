/* memory.c: takes memory of device 0 by several ways, one after the other, and keeps account of it.
 *
 *   memory [SECONDS]     how long each level is held: NVML is asked once a second
 *
 * For each level a line "NAME BYTES USED": what the program has by its own account, and what of the
 * device is in use by the driver's word. It ends with nothing left. All sizes are whole pages, so
 * that what the driver rounds up is nothing. Without a device it says so: 3. */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MIB ((size_t)1 << 20)
enum { PLAIN = 4 };

static size_t live;
static unsigned waits, level;
static double hold;

static void require_success(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS) return;
  (void)fprintf(stderr, "memory: %s: %d\n", what, (int)r);
  exit(1);
}
#define MUST(call) require_success((call), #call)

/* Weir asks the driver at a thread's 1st, 2nd, 4th, 8th ... wait: each level has one of these. */
static void hold_level(const char *name)
{
  size_t free_now, total;
  struct timespec t = {(time_t)hold, (long)((hold - (double)(time_t)hold) * 1e9)};
  for (level++; waits < 1u << level; waits++)
    MUST(cuCtxSynchronize());
  MUST(cuMemGetInfo(&free_now, &total));
  (void)printf("%s %zu %zu\n", name, live, total - free_now);
  (void)fflush(stdout);
  if (hold > 0) (void)nanosleep(&t, NULL);
}

static CUdeviceptr map_memory(size_t bytes, CUmemGenericAllocationHandle *memory)
{
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at;
  MUST(cuMemAddressReserve(&at, bytes, 0, 0, 0));
  MUST(cuMemCreate(memory, bytes, &prop, 0));
  MUST(cuMemMap(at, bytes, 0, *memory, 0));
  MUST(cuMemSetAccess(at, bytes, &access, 1));
  return at;
}

static void run_levels(void)
{
  CUdeviceptr plain[PLAIN], mapped, ordered;
  CUmemGenericAllocationHandle memory;
  hold_level("context");
  for (int i = 0; i < PLAIN; i++)
    MUST(cuMemAlloc(&plain[i], 64 * MIB));
  live += PLAIN * 64 * MIB;
  hold_level("cuMemAlloc");
  mapped = map_memory(128 * MIB, &memory);
  live += 128 * MIB;
  hold_level("cuMemCreate");
  MUST(cuMemAllocAsync(&ordered, 64 * MIB, NULL));
  live += 64 * MIB;
  hold_level("cuMemAllocAsync");
  MUST(cuMemFreeAsync(ordered, NULL));
  MUST(cuMemUnmap(mapped, 128 * MIB));
  MUST(cuMemRelease(memory));
  MUST(cuMemAddressFree(mapped, 128 * MIB));
  for (int i = 0; i < PLAIN; i++)
    MUST(cuMemFree(plain[i]));
  live = 0;
  hold_level("freed");
}

int main(int argc, char **argv)
{
  CUdevice device;
  CUcontext context;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&device, 0) != CUDA_SUCCESS) {
    (void)fputs("memory: no GPU: no driver, or no device\n", stderr);
    return 3;
  }
  hold = argc > 1 ? strtod(argv[1], NULL) : 0;
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  run_levels();
  return 0;
}
