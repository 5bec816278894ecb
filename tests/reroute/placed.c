/* placed.c: the same calls made at several places, which differ in their sizes: what fixes at places
 * are tried on. `placed PLUGIN`. */
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>

enum { TIMES = 10 };
#define MIB ((size_t)1 << 20)

static int failures;

static __attribute__((noinline)) void take_and_free(size_t bytes)
{
  void *p = NULL;
  failures += cudaMalloc(&p, bytes) != cudaSuccess;
  failures += cudaFree(p) != cudaSuccess;
  __asm__ volatile("");
}

static __attribute__((noinline)) void first_caller(void)
{
  take_and_free(2 * MIB);
  __asm__ volatile("");
}

static __attribute__((noinline)) void second_caller(void)
{
  take_and_free(4 * MIB);
  __asm__ volatile("");
}

static __attribute__((noinline)) void third_place(cudaStream_t stream)
{
  void *p = NULL;
  failures += cudaMalloc(&p, 6 * MIB) != cudaSuccess;
  failures += cudaMemsetAsync(p, 1, 6 * MIB, stream) != cudaSuccess;
  failures += cudaFree(p) != cudaSuccess;
  __asm__ volatile("");
}

static __attribute__((noinline)) void pinned_place(void)
{
  void *p = NULL;
  failures += cudaMallocHost(&p, 8 * MIB) != cudaSuccess;
  failures += cudaFreeHost(p) != cudaSuccess;
  __asm__ volatile("");
}

static __attribute__((noinline)) void pool_place(cudaStream_t stream)
{
  void *p = NULL;
  failures += cudaMallocAsync(&p, 10 * MIB, stream) != cudaSuccess;
  failures += cudaFreeAsync(p, stream) != cudaSuccess;
  __asm__ volatile("");
}

static size_t free_bytes(void)
{
  size_t now = 0, total;
  failures += cudaMemGetInfo(&now, &total) != cudaSuccess;
  return now;
}

/* Small blocks that the driver puts into one page: what is free is counted in pages. */
static __attribute__((noinline)) void beside_a_neighbour(void)
{
  void *neighbour = NULL, *p = NULL;
  size_t before = free_bytes();
  failures += cudaMalloc(&neighbour, MIB / 16) != cudaSuccess;
  failures += cudaMalloc(&p, MIB / 8) != cudaSuccess;
  failures += cudaFree(p) != cudaSuccess;
  failures += before - free_bytes() != 2 * MIB;
  failures += cudaFree(neighbour) != cudaSuccess;
  failures += free_bytes() != before;
}

int main(int argc, char **argv)
{
  cudaStream_t stream;
  void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  int (*churn)(void) = NULL;
  if (plugin) *(void **)&churn = dlsym(plugin, "churn_there");
  failures += cudaStreamCreate(&stream) != cudaSuccess;
  for (int i = 0; i < TIMES; i++) {
    first_caller();
    second_caller();
    third_place(stream);
    pinned_place();
    pool_place(stream);
    beside_a_neighbour();
    if (churn) failures += churn();
  }
  printf("%d failures, %d from the plug-in\n", failures, churn != NULL);
  return failures != 0;
}
