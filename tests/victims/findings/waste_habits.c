/* waste_habits.c: what programs do at each step by habit, and need not. */
#include "tests/victims/findings/waster.h"

enum { STEPS = 120 };

/* ---- handles-left ---------------------------------------------------------------------------------- */

/* An event for each job, that nobody destroys; or for all of them at the start. */
static void handles_left_work(int each)
{
  float *p = (float *)(void *)device_memory(4096);
  cudaEvent_t done[STEPS];
  for (int i = 0; !each && i < STEPS; i++)
    CHECK(cudaEventCreate(&done[i]));
  for (int i = 0; i < STEPS; i++) {
    launch(NULL, p, 64);
    if (each) CHECK(cudaEventCreate(&done[i])); /* WASTE handles-left */
    CHECK(cudaEventRecord(done[i], NULL));
    launch(NULL, p, 64);
    CHECK(cudaEventSynchronize(done[i]));
  }
  CHECK(cudaFree(p));
}

static void handles_left(void)
{
  handles_left_work(1);
}

static void handles_left_twin(void)
{
  handles_left_work(0);
}

/* ---- mapped-memory-again --------------------------------------------------------------------------- */

/* Two kernels in each step read a table of the host's, or one, before the host changes it. */
static void mapped_memory_again_work(int twice)
{
  float *table = (float *)(void *)pinned_memory(1 << 17);
  int n = 64;
  void *args[] = {&table, &n};
  const dim3 one = {1, 1, 1}, many = {64, 1, 1};
  const void *kernel = victim_kernel();
  for (int i = 0; i < STEPS; i++) {
    CHECK(cudaLaunchKernel(kernel, one, many, args, 0, NULL));
    if (twice)
      CHECK(cudaLaunchKernel(kernel, one, many, args, 0, NULL)); /* WASTE mapped-memory-again */
    CHECK(cudaDeviceSynchronize());
    table[i] = (float)i;
  }
  CHECK(cudaFreeHost(table));
}

static void mapped_memory_again(void)
{
  mapped_memory_again_work(1);
}

static void mapped_memory_again_twin(void)
{
  mapped_memory_again_work(0);
}

const waster habit_wasters[] = {
    {"handles-left", handles_left, handles_left_twin, NULL},
    {"mapped-memory-again", mapped_memory_again, mapped_memory_again_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
