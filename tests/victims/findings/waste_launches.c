/* waste_launches.c: launches, objects, memory that cost more than what they are for. */
#include "tests/victims/findings/waster.h"

enum { STORMS = 200, LAUNCHES = 16, TIMES = 40, BYTES = 1 << 14 };

static float *some_memory(size_t bytes)
{
  return (float *)(void *)device_memory(bytes);
}

/* ---- launch-storm ---------------------------------------------------------------------------- */

/* A short kernel, so often at two places in turn with nothing between, each time for the next part of the memory. */
static void launch_often(int at_once)
{
  float *p = some_memory(4096), host[16];
  int n = 64;
  float *part;
  void *args[] = {&part, &n};
  const dim3 one = {1, 1, 1}, many = {64, 1, 1}, more = {128, 1, 1};
  const void *kernel = victim_kernel();
  for (int i = 0; i < STORMS; i++) {
    for (int k = 0; k < LAUNCHES; k++) {
      part = p + k;
      if (k % 2)
        CHECK(cudaLaunchKernel(kernel, one, many, args, 0, NULL)); /* WASTE launch-storm */
      else
        CHECK(cudaLaunchKernel(kernel, one, more, args, 0, NULL)); /* WASTE launch-storm */
      if (k % at_once == at_once - 1) CHECK(cudaMemsetAsync(p + 64, 0, 64, NULL));
    }
    CHECK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(p));
}

static void launch_storm(void)
{
  launch_often(LAUNCHES);
}

static void launch_storm_twin(void)
{
  launch_often(4);
}

/* ---- step-of-short-kernels ------------------------------------------------------------------- */

/* The launches of a step, which all of its kernels have in common. */
static NOINLINE void launch_push(float *p, unsigned blocks)
{
  int n = 64;
  void *args[] = {&p, &n};
  const dim3 grid = {blocks, 1, 1}, block = {64, 1, 1};
  const void *kernel = victim_kernel();
  CHECK(cudaLaunchKernel(kernel, grid, block, args, 0, NULL)); /* WASTE step-of-short-kernels */
}

/* Nine launches from nine places, or six and three. */
static void launch_steps(int at_once)
{
  float *p = some_memory(4096), host[16];
  for (int i = 0; i < STORMS; i++) {
    launch_push(p, 1);
    launch_push(p, 2);
    launch_push(p, 3);
    launch_push(p + 64, 2);
    launch_push(p + 128, 1);
    launch_push(p + 64, 3);
    if (!at_once) CHECK(cudaMemsetAsync(p + 256, 0, 64, NULL));
    launch_push(p, 2);
    launch_push(p + 128, 2);
    launch_push(p + 64, 1);
    CHECK(cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(p));
}

static void step_of_short_kernels(void)
{
  launch_steps(1);
}

static void step_of_short_kernels_twin(void)
{
  launch_steps(0);
}

/* ---- handle-churn ---------------------------------------------------------------------------- */

static void use_stream(cudaStream_t s, float *p)
{
  launch(s, p, 64);
  CHECK(cudaStreamSynchronize(s));
}

static void handle_churn(void)
{
  float *p = some_memory(4096);
  for (int i = 0; i < TIMES; i++) {
    cudaStream_t s;
    CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)); /* WASTE handle-churn */
    use_stream(s, p);
    CHECK(cudaStreamDestroy(s));
  }
  CHECK(cudaFree(p));
}

/* As many streams, and all of them at one time. */
static void handle_churn_twin(void)
{
  float *p = some_memory(4096);
  cudaStream_t s[TIMES];
  for (int i = 0; i < TIMES; i++)
    CHECK(cudaStreamCreateWithFlags(&s[i], cudaStreamNonBlocking));
  for (int i = 0; i < TIMES; i++)
    use_stream(s[i], p);
  for (int i = 0; i < TIMES; i++)
    CHECK(cudaStreamDestroy(s[i]));
  CHECK(cudaFree(p));
}

/* ---- asked-in-a-loop ------------------------------------------------------------------------- */

static void launch_with_room(int ask_each_time)
{
  float *p = some_memory(4096);
  size_t available = 0, total;
  for (int i = 0; i < STORMS; i++) {
    if (ask_each_time || i == 0)
      CHECK(cudaMemGetInfo(&available, &total)); /* WASTE asked-in-a-loop */
    launch(NULL, p, available > 256 ? 64 : 32);
    CHECK(cudaMemsetAsync(p + 64, 0, 64, NULL));
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
}

static void asked_in_a_loop(void)
{
  launch_with_room(1);
}

static void asked_in_a_loop_twin(void)
{
  launch_with_room(0);
}

/* ---- write-combined-read --------------------------------------------------------------------- */

/* What is written for the device is in write-combined memory, and what the host reads, or not. */
static void copy_back(unsigned flags)
{
  float *p = some_memory(BYTES), *up, *back;
  CHECK(cudaHostAlloc((void **)&up, BYTES, cudaHostAllocWriteCombined));
  CHECK(cudaHostAlloc((void **)&back, BYTES, flags));
  for (int i = 0; i < TIMES; i++) {
    up[0] = (float)i;
    CHECK(cudaMemcpy(p, up, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, p, 64);
    CHECK(cudaMemcpy(back, p, BYTES, cudaMemcpyDeviceToHost)); /* WASTE write-combined-read */
  }
  CHECK(cudaFreeHost(back));
  CHECK(cudaFreeHost(up));
  CHECK(cudaFree(p));
}

static void write_combined_read(void)
{
  copy_back(cudaHostAllocWriteCombined);
}

static void write_combined_read_twin(void)
{
  copy_back(cudaHostAllocDefault);
}

/* ---- grown-by-copy --------------------------------------------------------------------------- */

/* So many bytes at last, by steps of one size or by doubling. */
static void grow(int doubles)
{
  size_t size = 4096;
  char *p = device_memory(size);
  while (size < 64 * 4096) {
    size_t larger = doubles ? 2 * size : size + 4096;
    char *old = p;
    p = device_memory(larger);
    CHECK(cudaMemcpy(p, old, size, cudaMemcpyDeviceToDevice)); /* WASTE grown-by-copy */
    CHECK(cudaFree(old));
    launch(NULL, (float *)(void *)p, 64);
    size = larger;
  }
  CHECK(cudaFree(p));
}

static void grown_by_copy(void)
{
  grow(0);
}

static void grown_by_copy_twin(void)
{
  grow(1);
}

const waster launch_wasters[] = {
    {"grown-by-copy", grown_by_copy, grown_by_copy_twin, NULL},
    {"step-of-short-kernels", step_of_short_kernels, step_of_short_kernels_twin, NULL},
    {"launch-storm", launch_storm, launch_storm_twin, NULL},
    {"handle-churn", handle_churn, handle_churn_twin, NULL},
    {"asked-in-a-loop", asked_in_a_loop, asked_in_a_loop_twin, NULL},
    {"write-combined-read", write_combined_read, write_combined_read_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
