/* waste_copies.c: wastes of copies. */
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 20, PIECES = 200, PIECE = 1024 };

static char *device_memory(size_t bytes)
{
  char *p;
  CHECK(cudaMalloc((void **)&p, bytes));
  return p;
}

static char *pinned_memory(size_t bytes)
{
  char *p;
  CHECK(cudaMallocHost((void **)&p, bytes));
  memset(p, 0, bytes);
  return p;
}

/* ---- pageable-async -------------------------------------------------------------------------- */

static void copy_async(char *host, int times)
{
  float *p = (float *)(void *)device_memory(BYTES);
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
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
  char *host = pinned_memory(BYTES);
  copy_async(host, TIMES);
  CHECK(cudaFreeHost(host));
}

/* ---- tiny-copies ----------------------------------------------------------------------------- */

/* The second `every` copies a kernel reads what has come. */
static void copy_pieces(int every)
{
  char *host = pinned_memory((size_t)2 * PIECES * PIECE), *p = device_memory(PIECES * PIECE);
  for (int i = 0; i < PIECES; i++) {
    char *from = host + (i * 37 % PIECES) * 2 * PIECE;
    cudaMemcpyAsync(p + i * PIECE, from, PIECE, cudaMemcpyHostToDevice, 0); /* WASTE tiny-copies */
    if (i % every == 0) launch(NULL, (float *)(void *)p, 64);
  }
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void tiny_copies(void)
{
  copy_pieces(PIECES);
}

static void tiny_copies_twin(void)
{
  copy_pieces(4);
}

/* ---- rows-one-by-one ------------------------------------------------------------------------- */

/* Rows of a matrix that is wider than what is copied of it, in the order that `step` gives. */
static void copy_rows(int step)
{
  enum { ROWS = 64, ROW = 1 << 16, WIDTH = 3 * ROW };
  char *host = pinned_memory((size_t)ROWS * WIDTH), *p = device_memory((size_t)ROWS * ROW);
  for (int i = 0; i < ROWS; i++) {
    int r = step == 1 ? i : i * i * step % ROWS;
    char *row = host + (size_t)r * WIDTH;
    cudaMemcpy(p + (size_t)i * ROW, row, ROW, cudaMemcpyHostToDevice); /* WASTE rows-one-by-one */
  }
  launch(NULL, (float *)(void *)p, 64);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void rows_one_by_one(void)
{
  copy_rows(1);
}

static void rows_one_by_one_twin(void)
{
  copy_rows(5);
}

/* ---- unused-transfer, dead-write ------------------------------------------------------------- */

static void copy_and_free(int use)
{
  char *host = pinned_memory(BYTES);
  for (int i = 0; i < TIMES; i++) {
    char *p = device_memory(BYTES);
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE unused-transfer */
    if (use) launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaFree(p));
  }
  CHECK(cudaFreeHost(host));
}

static void unused_transfer(void)
{
  copy_and_free(0);
}

static void unused_transfer_twin(void)
{
  copy_and_free(1);
}

static void set_and_copy(int use)
{
  char *host = pinned_memory(BYTES), *p = device_memory(BYTES);
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMemset(p, 0, BYTES)); /* WASTE dead-write */
    if (use) launch(NULL, (float *)(void *)p, 64);
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice));
    launch(NULL, (float *)(void *)p, 64);
  }
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void dead_write(void)
{
  set_and_copy(0);
}

static void dead_write_twin(void)
{
  set_and_copy(1);
}

const waster copy_wasters[] = {
    {"unused-transfer", unused_transfer, unused_transfer_twin},
    {"pageable-async", pageable_async, pageable_async_twin},
    {"tiny-copies", tiny_copies, tiny_copies_twin},
    {"rows-one-by-one", rows_one_by_one, rows_one_by_one_twin},
    {"dead-write", dead_write, dead_write_twin},
    {0},
};
