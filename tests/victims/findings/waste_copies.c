/* waste_copies.c: wastes of copies. */
#include <time.h>
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 20, PIECES = 200, PIECE = 1024, SMALL = 16384, SMALL_TIMES = 40 };

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

/* Results that are small, and waited for in the copy where the memory is pageable. */
static void copy_back_async(char *host)
{
  float *p = (float *)(void *)device_memory(SMALL);
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < SMALL_TIMES; i++) {
    launch(s, p, 64);
    CHECK(cudaMemcpyAsync(host, p, SMALL, cudaMemcpyDeviceToHost, s));
    CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaFree(p));
  CHECK(cudaStreamDestroy(s));
}

static void pageable_async(void)
{
  char *host = calloc(1, BYTES);
  copy_async(host, TIMES);
  copy_back_async(host);
  free(host);
}

static void pageable_async_twin(void)
{
  char *host = pinned_memory(BYTES);
  copy_async(host, TIMES);
  copy_back_async(host);
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
    char *p = device_memory(BYTES + (size_t)i * 4096);
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

/* ---- blocking-copy --------------------------------------------------------------------------- */

/* Keeps the host busy. */
static unsigned work_of_hosts(void)
{
  volatile unsigned sum = 0;
  for (unsigned i = 0; i < 2000000; i++)
    sum = sum + i;
  return sum;
}

static void copy_and_work(int asynchronous)
{
  enum { MUCH = 16 << 20 };
  char *host = pinned_memory(MUCH), *p = device_memory(MUCH);
  for (int i = 0; i < 5; i++) {
    host[i]++;
    if (asynchronous)
      CHECK(cudaMemcpyAsync(p, host, MUCH, cudaMemcpyHostToDevice, 0));
    else
      CHECK(cudaMemcpy(p, host, MUCH, cudaMemcpyHostToDevice)); /* WASTE blocking-copy */
    launch(NULL, (float *)(void *)p, 64);
    (void)work_of_hosts();
    CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void blocking_copy(void)
{
  copy_and_work(0);
}

static void blocking_copy_twin(void)
{
  copy_and_work(1);
}

/* ---- staged-peer ----------------------------------------------------------------------------- */

static void copy_to_peer(int enable)
{
  CHECK(cudaSetDevice(1));
  char *there = device_memory(BYTES);
  CHECK(cudaSetDevice(0));
  char *here = device_memory(BYTES);
  if (enable) CHECK(cudaDeviceEnablePeerAccess(1, 0));
  for (int i = 0; i < TIMES; i++) {
    launch(NULL, (float *)(void *)here, 64);
    CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, BYTES, 0)); /* WASTE staged-peer */
    CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaFree(here));
  CHECK(cudaFree(there));
}

static void staged_peer(void)
{
  copy_to_peer(0);
}

static void staged_peer_twin(void)
{
  copy_to_peer(1);
}

/* ---- serialised-copies ----------------------------------------------------------------------- */

/* One half of the memory goes up and the other down; or the same. */
static void copy_both_ways(int same)
{
  char *host = pinned_memory(2 * BYTES), *p = device_memory(2 * BYTES);
  char *back = same ? p : p + BYTES, *to = host + BYTES;
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMemcpyAsync(p, host, BYTES, cudaMemcpyHostToDevice, s));
    cudaMemcpyAsync(to, back, BYTES, cudaMemcpyDeviceToHost, s); /* WASTE serialised-copies */
    launch(s, (float *)(void *)p, 64);
    CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(host));
}

static void serialised_copies(void)
{
  copy_both_ways(0);
}

static void serialised_copies_twin(void)
{
  copy_both_ways(1);
}

/* ---- large-upload-again ---------------------------------------------------------------------- */

enum { MODEL = 66 << 20, MODELS = 3 };

/* A model for each of some workers: the same, or one of its own. */
static void load_models(int own)
{
  int *host = malloc(MODEL);
  void *model[MODELS];
  if (!host) exit(1);
  for (int k = 0; k < MODELS; k++) {
    for (int i = 0; i < MODEL / (int)sizeof *host; i++)
      host[i] = i + own * k;
    CHECK(cudaMalloc(&model[k], MODEL));
    CHECK(cudaMemcpy(model[k], host, MODEL, cudaMemcpyHostToDevice)); /* WASTE large-upload-again */
    launch(NULL, model[k], 64);
  }
  for (int k = 0; k < MODELS; k++)
    CHECK(cudaFree(model[k]));
  free(host);
}

static void large_upload_again(void)
{
  load_models(0);
}

static void large_upload_again_twin(void)
{
  load_models(1);
}

/* ---- sampled-upload-again -------------------------------------------------------------------- */

enum { TABLE = 1 << 19, UPLOADS = 500, WORK_US = 1000 };

static void work_a_while(void)
{
  struct timespec from, now;
  CHECK((cudaError_t)clock_gettime(CLOCK_MONOTONIC, &from));
  do
    CHECK((cudaError_t)clock_gettime(CLOCK_MONOTONIC, &now));
  while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < WORK_US);
}

/* A table goes to the device in each step: it is constant, or another in each. More of it than is hashed. */
static void upload_table(int changes)
{
  int *table = (int *)(void *)pinned_memory(TABLE);
  char *p = device_memory(TABLE);
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < TABLE / (int)sizeof *table; i++)
    table[i] = i;
  for (int i = 0; i < UPLOADS; i++) {
    table[i] += changes;
    cudaMemcpyAsync(p, table, TABLE, cudaMemcpyHostToDevice, s); /* WASTE sampled-upload-again */
    launch(s, (float *)(void *)p, 64);
    work_a_while();
    CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(table));
}

static void sampled_upload_again(void)
{
  upload_table(0);
}

static void sampled_upload_again_twin(void)
{
  upload_table(1);
}

/* ---- needless-double ------------------------------------------------------------------------- */

/* What becomes of the doubles: all but the first are no waste. */
enum doubles { NARROWED, HALVED, READ_TWICE, COPIED_BACK };

/* The data is others each time. */
static void upload_doubles(enum doubles what)
{
  double *host = calloc(BYTES, 1), *p = (double *)(void *)device_memory(BYTES), back;
  float *slim = (float *)(void *)device_memory(BYTES / 2), sum;
  if (!host) exit(1);
  for (int i = 0; i < TIMES; i++) {
    host[i] += i + 1 + 100 * (int)what;
    CHECK(cudaMemcpy(p, host, BYTES, cudaMemcpyHostToDevice)); /* WASTE needless-double */
    if (what == HALVED)
      CHECK((cudaError_t)victim_halve_launch(NULL, (float *)(void *)p, slim, 64));
    else
      CHECK((cudaError_t)victim_narrow_launch(NULL, p, slim, 64));
    if (what == READ_TWICE) CHECK((cudaError_t)victim_narrow_launch(NULL, p, slim, 32));
    if (what == COPIED_BACK) CHECK(cudaMemcpy(&back, p + i, 8, cudaMemcpyDeviceToHost));
    launch(NULL, slim, 64);
    CHECK(cudaMemcpy(&sum, slim + i, 4, cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(slim));
  CHECK(cudaFree(p));
  free(host);
}

static void needless_double(void)
{
  upload_doubles(NARROWED);
}

static void needless_double_twin(void)
{
  upload_doubles(HALVED);
  upload_doubles(READ_TWICE);
  upload_doubles(COPIED_BACK);
}

/* ---- small-copies-in-a-step ------------------------------------------------------------------ */

enum { MEMBERS = 4, STEPS = 60 };

/* The members of a structure of arrays lie at places of their own, on the host and on the device. */
static void copy_members(char *p, const char *host, cudaStream_t s)
{
  static const size_t size[MEMBERS] = {1024, 512, 2048, 256};
  const enum cudaMemcpyKind up = cudaMemcpyHostToDevice;
  CHECK(cudaMemcpyAsync(p, host, size[0], up, s)); /* WASTE small-copies-in-a-step */
  for (int k = 1; k < MEMBERS; k++)
    CHECK(cudaMemcpyAsync(p + k * 4096, host + k * 8192, size[k], up, s));
}

/* In each step, or in one block. */
static void upload_members(int apart)
{
  char *p = device_memory(SMALL), *host = pinned_memory((size_t)MEMBERS * 8192);
  cudaStream_t s;
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < STEPS; i++) {
    for (int k = 0; k < MEMBERS; k++)
      host[k * 8192 + i] = (char)(i + 1);
    if (apart)
      copy_members(p, host, s);
    else
      CHECK(cudaMemcpyAsync(p, host, SMALL, cudaMemcpyHostToDevice, s));
    launch(s, (float *)(void *)p, 64 + i);
    CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFreeHost(host));
  CHECK(cudaFree(p));
}

static void small_copies_in_a_step(void)
{
  upload_members(1);
}

static void small_copies_in_a_step_twin(void)
{
  upload_members(0);
}

const waster copy_wasters[] = {
    {"small-copies-in-a-step", small_copies_in_a_step, small_copies_in_a_step_twin, NULL},
    {"sampled-upload-again", sampled_upload_again, sampled_upload_again_twin, "--hash=auto"},
    {"large-upload-again", large_upload_again, large_upload_again_twin, "--hash=auto"},
    {"blocking-copy", blocking_copy, blocking_copy_twin, NULL},
    {"staged-peer", staged_peer, staged_peer_twin, NULL},
    {"serialised-copies", serialised_copies, serialised_copies_twin, NULL},
    {"unused-transfer", unused_transfer, unused_transfer_twin, NULL},
    {"pageable-async", pageable_async, pageable_async_twin, NULL},
    {"tiny-copies", tiny_copies, tiny_copies_twin, NULL},
    {"rows-one-by-one", rows_one_by_one, rows_one_by_one_twin, NULL},
    {"needless-double", needless_double, needless_double_twin, NULL},
    {"dead-write", dead_write, dead_write_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
