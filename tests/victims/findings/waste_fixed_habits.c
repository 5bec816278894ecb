/* waste_fixed_habits.c: as waste_fixed.c: of what programs do at each step by habit. */
#include "tests/victims/findings/fixed.h"

/* An event for each step, or one for all. */
void handles_left(int fixed, int times)
{
  float *p = used_memory(4096);
  cudaEvent_t e;
  begin_part();
  for (int i = 0; i < 8 * times; i++) {
    if (!fixed || !i) CHECK(cudaEventCreate(&e));
    CHECK(cudaEventRecord(e, NULL));
    launch(NULL, p, 64);
    CHECK(cudaEventSynchronize(e));
  }
  end_part();
  CHECK(cudaFree(p));
}

/* In each step, or once. */
void prefetched_in_each_step(int fixed, int times)
{
  float *p;
  const struct cudaMemLocation there = {.type = cudaMemLocationTypeDevice};
  CHECK(cudaMallocManaged((void **)&p, BYTES, cudaMemAttachGlobal));
  begin_part();
  for (int i = 0; i < 4 * times; i++) {
    if (!fixed || !i) CHECK(cudaMemPrefetchAsync(p, BYTES, there, 0, NULL));
    launch(NULL, p, 64);
  }
  CHECK(cudaDeviceSynchronize());
  end_part();
  CHECK(cudaFree(p));
}

/* After each step, or after all. */
void pool_trimmed(int fixed, int times)
{
  cudaMemPool_t pool;
  void *p;
  uint64_t all = UINT64_MAX;
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  begin_part();
  for (int i = 0; i < 2 * times; i++) {
    CHECK(cudaMallocAsync(&p, BYTES, NULL));
    launch(NULL, p, 64);
    CHECK(cudaFreeAsync(p, NULL));
    CHECK(cudaStreamSynchronize(NULL));
    if (!fixed || i == 2 * times - 1) CHECK(cudaMemPoolTrimTo(pool, 0));
  }
  end_part();
}

/* After each job, or after all. */
void context_made_anew(int fixed, int times)
{
  begin_part();
  for (int i = 0; i < times; i++) {
    char *p = device_memory(4096);
    CHECK(cudaMemset(p, i, 4096));
    CHECK(cudaFree(p));
    if (!fixed) CHECK(cudaDeviceReset());
  }
  end_part();
}

/* A buffer is registered in each step, though it is. */
void fails_again(int fixed, int times)
{
  char *buffer = pageable_memory(BYTES, 1);
  CHECK(cudaHostRegister(buffer, BYTES, 0));
  begin_part();
  for (int i = 0; !fixed && i < 8 * times; i++)
    if (cudaHostRegister(buffer, BYTES, 0)) (void)cudaGetLastError();
  end_part();
  CHECK(cudaHostUnregister(buffer));
  free(buffer);
}

/* With events around each launch, or without. */
void recorded_for_nothing(int fixed, int times)
{
  float *p = used_memory(4096);
  cudaEvent_t e;
  CHECK(cudaEventCreate(&e));
  begin_part();
  for (int i = 0; i < 8 * times; i++) {
    launch(NULL, p, 64);
    if (!fixed) CHECK(cudaEventRecord(e, NULL));
  }
  end_part();
  CHECK(cudaEventDestroy(e));
  CHECK(cudaFree(p));
}
