/* waste_fixed_calls.c: as waste_fixed.c: of waits, allocations and other calls. */
#include <cuda.h>
#include <unistd.h>
#include "tests/victims/findings/fixed.h"

/* What takes a stream's time, and none of the host's. */
static void wait_a_moment(void *unused)
{
  (void)unused;
  (void)usleep(1000);
}

static void queue_work(cudaStream_t s)
{
  CHECK(cudaLaunchHostFunc(s, wait_a_moment, NULL));
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* A memset of page-locked memory waits for what is before it; the host could go on. */
void hidden_memset(int fixed, int times)
{
  char *host = pinned_memory(BYTES);
  begin_part();
  for (int i = 0; i < times; i++) {
    queue_work(NULL);
    CHECK(fixed ? cudaMemsetAsync(host, i, 4096, NULL) : cudaMemset(host, i, 4096));
    work_for(700000);
    CHECK(cudaDeviceSynchronize());
  }
  end_part();
  CHECK(cudaFreeHost(host));
}

/* The host has a little to do after each step, which it could do while the device works. */
void premature_wait(int fixed, int times)
{
  enum { PART = 1 << 18 };
  char *p = device_memory((size_t)2 * PART);
  begin_part();
  for (int i = 0; i < times; i++) {
    launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaMemcpyAsync(p + PART, p, PART, cudaMemcpyDeviceToDevice, NULL));
    if (!fixed) CHECK(cudaStreamSynchronize(NULL));
    work_for(40000);
  }
  end_part();
  CHECK(cudaFree(p));
}

void redundant_wait(int fixed, int times)
{
  float *p = used_memory(4096);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (i % 100 == 0) launch(NULL, p, 64);
    if (!fixed || i % 100 == 0) CHECK(cudaDeviceSynchronize());
  }
  launch(NULL, p, 64);
  end_part();
  CHECK(cudaFree(p));
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The free waits for the kernel; without it the host waits for it as well. */
void repeated_busy(int fixed, int times)
{
  float *p[BLOCKS];
  begin_part();
  for (int i = 0; i < times; i++) {
    for (int k = 0; k < BLOCKS && (!fixed || i == 0); k++)
      CHECK(cudaMalloc((void **)&p[k], BYTES));
    launch(NULL, p[0], 64);
    queue_work(NULL);
    if (fixed) CHECK(cudaStreamSynchronize(NULL));
    for (int k = 0; k < BLOCKS && (!fixed || i == times - 1); k++)
      CHECK(cudaFree(p[k]));
  }
  end_part();
}

void temporary_allocation(int fixed, int times)
{
  float *p = NULL;
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) CHECK(cudaMalloc((void **)&p, 4096 * (size_t)((fixed ? times : i) + 1)));
    launch(NULL, p, 64);
    CHECK(cudaStreamSynchronize(NULL));
    if (!fixed || i == times - 1) CHECK(cudaFree(p));
  }
  end_part();
}

void grown_by_copy(int fixed, int times)
{
  size_t step = 4096;
  char *p = device_memory(fixed ? step * (size_t)(times + 1) : step);
  begin_part();
  for (int i = 1; i <= times; i++) {
    char *old = p;
    if (!fixed) {
      p = device_memory(step * (size_t)(i + 1));
      CHECK(cudaMemcpy(p, old, step * (size_t)i, cudaMemcpyDeviceToDevice));
      CHECK(cudaFree(old));
    }
    launch(NULL, (float *)(void *)p, 64);
  }
  end_part();
  CHECK(cudaFree(p));
}

void registered_churn(int fixed, int times)
{
  char *p = pageable_memory(BYTES, 0);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) CHECK(cudaHostRegister(p, BYTES, cudaHostRegisterDefault));
    p[i] = 1;
    if (!fixed || i == times - 1) CHECK(cudaHostUnregister(p));
  }
  end_part();
  free(p);
}

/* ---- other calls ----------------------------------------------------------------------------- */

/* A kernel is looked up by its name for each of many items, of which a few have work for it. */
void named_in_a_loop(int fixed, int times)
{
  CUfunction function;
  CUmodule module;
  const char *name;
  float *p = used_memory(4096);
  int n = 64;
  void *arguments[] = {&p, &n};
  CHECK(cudaGetFuncBySymbol(&function, victim_kernel()));
  CHECK((cudaError_t)cuFuncGetModule(&module, function));
  CHECK((cudaError_t)cuFuncGetName(&name, function));
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) CHECK((cudaError_t)cuModuleGetFunction(&function, module, name));
    if (i % 64 == 0)
      CHECK((cudaError_t)cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, arguments, NULL));
  }
  end_part();
  CHECK(cudaFree(p));
}

void asked_in_a_loop(int fixed, int times)
{
  struct cudaDeviceProp of;
  float *p = used_memory(4096);
  int n = 0;
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || i == 0) {
      CHECK(cudaGetDeviceProperties(&of, 0));
      n = of.warpSize < 64 ? of.warpSize : 64;
    }
    launch(NULL, p, n);
  }
  end_part();
  CHECK(cudaFree(p));
}
