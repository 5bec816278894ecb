/* waste_memory.c: wastes of memory and of the time that it takes to have it. */
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 40 };

static void repeated_allocation(void)
{
  for (int i = 0; i < TIMES; i++) {
    float *p;
    CHECK(cudaMalloc((void **)&p, BYTES)); /* WASTE repeated-allocation */
    launch(NULL, p, 64);
    CHECK(cudaFree(p));
  }
}

/* Sizes that differ, each once. */
static void repeated_allocation_twin(void)
{
  for (int i = 0; i < TIMES; i++) {
    float *p;
    CHECK(cudaMalloc((void **)&p, BYTES + (size_t)i * 4096));
    launch(NULL, p, 64);
    CHECK(cudaFree(p));
  }
}

const waster memory_wasters[] = {
    {"repeated-allocation", repeated_allocation, repeated_allocation_twin},
    {0},
};
