/* waste_fixed_kernels.c: as waste_fixed.c: of wastes that show by what kernels may write. */
#include "tests/victims/findings/fixed.h"

enum { USED = 128 };

static void halve(const float *from, float *to, int n)
{
  CHECK((cudaError_t)victim_halve_launch(NULL, from, to, n));
}

/* A table that is made of another one for each step; fixed, once. */
void repeated_launch(int fixed, int times)
{
  float *table = used_memory(BYTES), *out = used_memory(BYTES), *half;
  CHECK(cudaMalloc((void **)&half, BYTES));
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || !i) halve(table, half, USED);
    halve(half, out + i % USED, USED / 2);
  }
  CHECK(cudaDeviceSynchronize());
  end_part();
  CHECK(cudaFree(table));
  CHECK(cudaFree(half));
  CHECK(cudaFree(out));
}

/* A buffer is cleared, and filled before the first kernel is handed it. */
void cleared_between(int fixed, int times)
{
  float *p = used_memory(BYTES), *other = used_memory(BYTES), *out = used_memory(BYTES);
  char *host = pageable_memory(BYTES, 0);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed) CHECK(cudaMemset(p, 0, BYTES));
    halve(other, out, i % USED);
    host[i]++;
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    halve(p, out, i % USED);
  }
  end_part();
  CHECK(cudaFree(p));
  CHECK(cudaFree(other));
  CHECK(cudaFree(out));
  free(host);
}

/* A result is read in each step, though the kernels between only read it, too. */
void read_between(int fixed, int times)
{
  float *p = used_memory(BYTES), *out = used_memory(BYTES);
  char *host = pageable_memory(BYTES, 0);
  begin_part();
  for (int i = 0; i < times; i++) {
    if (!fixed || !i) CHECK(cudaMemcpy(host, p, BYTES, cudaMemcpyDeviceToHost));
    halve(p, out, i % USED);
  }
  CHECK(cudaDeviceSynchronize());
  end_part();
  CHECK(cudaFree(p));
  CHECK(cudaFree(out));
  free(host);
}

/* A mask is sent with each request, of which no kernel is handed it. */
void sent_for_none(int fixed, int times)
{
  float *p = used_memory(BYTES), *out = used_memory(BYTES);
  char *host = pageable_memory(BYTES, 0);
  begin_part();
  for (int i = 0; i < times; i++) {
    float *mask;
    CHECK(cudaMalloc((void **)&mask, BYTES));
    host[i]++;
    if (!fixed) CHECK(cudaMemcpy(mask, host, BYTES, cudaMemcpyHostToDevice));
    halve(p, out, i % USED);
    CHECK(cudaFree(mask));
  }
  end_part();
  CHECK(cudaFree(p));
  CHECK(cudaFree(out));
  free(host);
}
