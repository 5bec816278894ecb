/* waste_kernels.c: wastes that show by what kernels may write of what they are handed. */
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 24, USED = 128 };

static float *filled_memory(unsigned seed)
{
  float *p = (float *)(void *)device_memory(BYTES);
  unsigned char *host = malloc(BYTES);
  for (int i = 0; host && i < BYTES; i++)
    host[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
  CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
  free(host);
  return p;
}

/* ---- repeated-launch ------------------------------------------------------------------------- */

static void halve_each_time(int change)
{
  float *table = filled_memory(1), *half = (float *)(void *)device_memory(BYTES);
  float *state = (float *)(void *)device_memory(BYTES), result[16], entry = 1;
  int n = USED;
  void *args[] = {&table, &half, &n};
  const dim3 one = {1, 1, 1}, many = {USED, 1, 1};
  const void *kernel = victim_halve_kernel();
  for (int i = 0; i < TIMES; i++) {
    entry += (float)change;
    if (change) CHECK(cudaMemcpy(table, &entry, sizeof entry, cudaMemcpyHostToDevice));
    CHECK(cudaLaunchKernel(kernel, one, many, args, 0, NULL)); /* WASTE repeated-launch */
    CHECK((cudaError_t)victim_halve_launch(NULL, half, state + i * USED, USED / 2));
    CHECK(cudaMemcpy(result, state + i * USED, sizeof result, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(table));
  CHECK(cudaFree(half));
  CHECK(cudaFree(state));
}

static void repeated_launch(void)
{
  halve_each_time(0);
}

static void repeated_launch_twin(void)
{
  halve_each_time(1);
}

/* ---- held-twice ------------------------------------------------------------------------------ */

static float *weights_of_one(unsigned seed)
{
  unsigned char *host = malloc(BYTES);
  float *p;
  for (int i = 0; host && i < BYTES; i++)
    host[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
  CHECK(cudaMalloc((void **)&p, BYTES)); /* WASTE held-twice */
  CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
  free(host);
  return p;
}

/* Two users of one table; written, one of them makes it its own. */
static void hold_two(int written)
{
  float *one = weights_of_one(7), *other = weights_of_one(7);
  float *out = (float *)(void *)device_memory(BYTES), result[16];
  for (int i = 0; i < TIMES; i++) {
    CHECK((cudaError_t)victim_halve_launch(NULL, one, out, USED - i));
    CHECK((cudaError_t)victim_halve_launch(NULL, other, out + USED, USED - i));
    if (written && i == TIMES / 2) CHECK((cudaError_t)victim_halve_launch(NULL, out, other, USED));
    CHECK(cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(one));
  CHECK(cudaFree(other));
  CHECK(cudaFree(out));
}

static void held_twice(void)
{
  hold_two(0);
}

static void held_twice_twin(void)
{
  hold_two(1);
}

const waster kernel_wasters[] = {
    {"repeated-launch", repeated_launch, repeated_launch_twin, NULL},
    {"held-twice", held_twice, held_twice_twin, "--hash=on"},
    {NULL, NULL, NULL, NULL},
};
