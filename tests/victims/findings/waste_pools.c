/* waste_pools.c: wastes of memory over a program's life: pools, temporary blocks, blocks that
 * live too long; and ranks that do not share evenly. */
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 40 };

static void touch_memory(char *p)
{
  launch(NULL, (float *)(void *)p, 64);
  CHECK(cudaDeviceSynchronize());
}

/* ---- pool-gives-back ------------------------------------------------------------------------- */

static void take_and_give(int keep)
{
  cudaMemPool_t pool;
  cudaStream_t s;
  uint64_t all = UINT64_MAX;
  CHECK(cudaStreamCreate(&s));
  CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
  if (keep) CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
  for (int i = 0; i < TIMES; i++) {
    float *p;
    CHECK(cudaMallocAsync((void **)&p, BYTES, s)); /* WASTE pool-gives-back */
    launch(s, p, 64);
    CHECK(cudaFreeAsync(p, s));
    CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaStreamDestroy(s));
}

static void pool_gives_back(void)
{
  take_and_give(0);
}

static void pool_gives_back_twin(void)
{
  take_and_give(1);
}

/* ---- temporary-allocation -------------------------------------------------------------------- */

static void temporary_allocation(void)
{
  for (int i = 0; i < TIMES; i++) {
    char *p;
    CHECK(cudaMalloc((void **)&p, BYTES + (size_t)i * 4096)); /* WASTE temporary-allocation */
    touch_memory(p);
    CHECK(cudaFree(p));
  }
}

static void temporary_allocation_twin(void)
{
  char *p[TIMES];
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMalloc((void **)&p[i], BYTES + (size_t)i * 4096));
    touch_memory(p[i]);
  }
  for (int i = 0; i < TIMES; i++)
    CHECK(cudaFree(p[i]));
}

/* ---- early-allocation ------------------------------------------------------------------------ */

static void allocate_before_free(int early)
{
  char *first, *second = NULL;
  CHECK(cudaMalloc((void **)&first, BYTES));
  touch_memory(first);
  if (early) CHECK(cudaMalloc((void **)&second, BYTES)); /* WASTE early-allocation */
  CHECK(cudaFree(first));
  if (!early) CHECK(cudaMalloc((void **)&second, BYTES));
  touch_memory(second);
  CHECK(cudaFree(second));
}

static void early_allocation(void)
{
  allocate_before_free(1);
}

static void early_allocation_twin(void)
{
  allocate_before_free(0);
}

/* ---- late-free ------------------------------------------------------------------------------- */

static void free_behind_allocation(int late)
{
  char *first, *second;
  CHECK(cudaMalloc((void **)&first, BYTES));
  touch_memory(first);
  if (!late) CHECK(cudaFree(first));
  CHECK(cudaMalloc((void **)&second, BYTES));
  if (late) CHECK(cudaFree(first)); /* WASTE late-free */
  touch_memory(second);
  CHECK(cudaFree(second));
}

static void late_free(void)
{
  free_behind_allocation(1);
}

static void late_free_twin(void)
{
  free_behind_allocation(0);
}

/* ---- rank-skew ------------------------------------------------------------------------------- */

static void copy_share(int pieces)
{
  char *host = pinned_memory(BYTES), *p = device_memory(BYTES);
  for (int i = 0; i < pieces; i++) {
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE rank-skew */
    touch_memory(p);
  }
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void run_ranks(const int *pieces, int ranks)
{
  int status;
  for (int i = 0; i < ranks; i++)
    if (fork() == 0) {
      copy_share(pieces[i]);
      exit(0);
    }
  while (wait(&status) > 0)
    if (status) exit(1);
}

static void rank_skew(void)
{
  run_ranks((const int[]){10, 20, 10}, 3);
}

static void rank_skew_twin(void)
{
  run_ranks((const int[]){10, 11, 10}, 3);
}

const waster pool_wasters[] = {
    {"pool-gives-back", pool_gives_back, pool_gives_back_twin, NULL},
    {"temporary-allocation", temporary_allocation, temporary_allocation_twin, NULL},
    {"early-allocation", early_allocation, early_allocation_twin, NULL},
    {"late-free", late_free, late_free_twin, NULL},
    {"rank-skew", rank_skew, rank_skew_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
