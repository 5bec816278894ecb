/* bandwidth.c: how fast copies between host and device are, GB/s: page-locked and pageable memory,
 * to the device and back; and a cudaMalloc + cudaFree pair beside cudaMallocAsync + cudaFreeAsync,
 * ns. A line a figure: NAME VALUE, the best of some rounds. check-gpu.sh runs it alone and
 * rerouted. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES ((size_t)256 << 20)

enum { ROUNDS = 12, PAIRS = 1000 };

static void check_cuda_call(cudaError_t error, const char *what)
{
  if (error == cudaSuccess) return;
  (void)fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  exit(1);
}

static double now_nanoseconds(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void copies(const char *name, void *to, const void *from, enum cudaMemcpyKind kind)
{
  double best = 1e30;
  for (int i = 0; i < ROUNDS; i++) {
    check_cuda_call(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    double start = now_nanoseconds();
    check_cuda_call(cudaMemcpy(to, from, BYTES, kind), "cudaMemcpy");
    check_cuda_call(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    double taken = now_nanoseconds() - start;
    if (taken < best) best = taken;
  }
  printf("%s %.2f\n", name, (double)BYTES / best);
}

static void time_alloc_free_pairs(const char *name, cudaStream_t stream)
{
  double best = 1e30;
  for (int round = 0; round < ROUNDS; round++) {
    double start = now_nanoseconds();
    for (int i = 0; i < PAIRS; i++) {
      void *p = NULL;
      check_cuda_call(stream ? cudaMallocAsync(&p, 1 << 20, stream) : cudaMalloc(&p, 1 << 20),
                      name);
      check_cuda_call(stream ? cudaFreeAsync(p, stream) : cudaFree(p), name);
    }
    double taken = (now_nanoseconds() - start) / PAIRS;
    if (taken < best) best = taken;
  }
  printf("%s %.0f\n", name, best);
}

int main(void)
{
  void *device = NULL, *pinned = NULL, *pageable = malloc(BYTES);
  cudaStream_t stream = NULL;
  check_cuda_call(cudaMalloc(&device, BYTES), "cudaMalloc");
  check_cuda_call(cudaMallocHost(&pinned, BYTES), "cudaMallocHost");
  if (!pageable) return 1;
  memset(pageable, 1, BYTES);
  memset(pinned, 2, BYTES);
  copies("pinned-to-device", device, pinned, cudaMemcpyHostToDevice);
  copies("pinned-to-host", pinned, device, cudaMemcpyDeviceToHost);
  copies("pageable-to-device", device, pageable, cudaMemcpyHostToDevice);
  copies("pageable-to-host", pageable, device, cudaMemcpyDeviceToHost);
  time_alloc_free_pairs("malloc-free-pair", NULL);
  check_cuda_call(cudaStreamCreate(&stream), "cudaStreamCreate");
  time_alloc_free_pairs("async-malloc-free-pair", stream);
  check_cuda_call(cudaStreamDestroy(stream), "cudaStreamDestroy");
  check_cuda_call(cudaFreeHost(pinned), "cudaFreeHost");
  check_cuda_call(cudaFree(device), "cudaFree");
  free(pageable);
  return 0;
}
