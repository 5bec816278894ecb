/* holder.c: memory, copies and waits of known sums, held until a line comes on stdin.
 *
 *   holder [ROUNDS]     prints "ready", reads a line, frees half, prints "half", reads a line, ends
 *
 * Each round copies 64 KiB to the device and 1 KiB back, and waits. One allocation fails. */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void require_success(cudaError_t status)
{
  if (status == cudaSuccess) return;
  (void)fprintf(stderr, "holder: %s\n", cudaGetErrorName(status));
  exit(3);
}

static void copy_rounds(int rounds, void *device)
{
  static char host[65536];
  for (int i = 0; i < rounds; i++) {
    require_success(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice));
    require_success(cudaMemcpy(host, device, 1024, cudaMemcpyDeviceToHost));
    require_success(cudaDeviceSynchronize());
  }
}

static void report_and_wait(const char *word)
{
  char line[16];
  puts(word);
  (void)fflush(stdout);
  if (!fgets(line, sizeof line, stdin)) exit(4);
}

int main(int argc, char **argv)
{
  void *a, *b, *pinned, *never;
  const int rounds = argc > 1 ? atoi(argv[1]) : 7;
  require_success(cudaMalloc(&a, 4 << 20));
  require_success(cudaMalloc(&b, 1 << 20));
  require_success(cudaMallocHost(&pinned, 1 << 20));
  if (cudaMalloc(&never, (size_t)1 << 50) == cudaSuccess) return 5;
  copy_rounds(rounds, a);
  report_and_wait("ready");
  copy_rounds(rounds, b);
  require_success(cudaFree(a));
  report_and_wait("half");
  return 0;
}
