/* waste_copies.c: wastes of copies. */
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 20 };

static void copy_async(char *host, int times)
{
  float *p;
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaMalloc((void **)&p, BYTES));
  for (int i = 0; i < times; i++) {
    host[i]++;
    cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, s); /* WASTE pageable-async */
    launch(s, p, 64);
    CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaFree(p));
  CHECK(cudaStreamDestroy(s));
}

static void pageable_async(void)
{
  char *host = calloc(1, BYTES);
  copy_async(host, TIMES);
  free(host);
}

static void pageable_async_twin(void)
{
  char *host;
  CHECK(cudaMallocHost((void **)&host, BYTES));
  memset(host, 0, BYTES);
  copy_async(host, TIMES);
  CHECK(cudaFreeHost(host));
}

const waster copy_wasters[] = {
    {"pageable-async", pageable_async, pageable_async_twin},
    {0},
};
