/* waste_waits.c: waits that nothing needs. */
#include "tests/victims/findings/waster.h"

enum { TIMES = 40 };

static void wait_for_kernels(int twice)
{
  float *p;
  CHECK(cudaMalloc((void **)&p, 4096));
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, p, 64);
    CHECK(cudaDeviceSynchronize());
    if (twice) CHECK(cudaDeviceSynchronize()); /* WASTE redundant-wait */
  }
  CHECK(cudaFree(p));
}

static void redundant_wait(void)
{
  wait_for_kernels(1);
}

static void redundant_wait_twin(void)
{
  wait_for_kernels(0);
}

const waster wait_wasters[] = {
    {"redundant-wait", redundant_wait, redundant_wait_twin},
    {0},
};
