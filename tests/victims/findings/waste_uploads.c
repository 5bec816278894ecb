/* waste_uploads.c: uploads of which most is there already, or is padding. */
#include "tests/victims/findings/waster.h"

enum { BATCH = 1 << 18, TABLE = 1 << 19, UPLOADS = 24, USED = BATCH / 10 * 4, LINE = 1024 };

static unsigned char next_byte(void)
{
  static unsigned x = 1;
  x = x * 1664525 + 1013904223;
  return (unsigned char)(x >> 24);
}

static void fill_bytes(unsigned char *p, size_t bytes)
{
  for (size_t i = 0; i < bytes; i++)
    p[i] = next_byte();
}

/* ---- mostly-padding -------------------------------------------------------------------------- */

/* A batch of which so many bytes are used; what is behind them has been the same from the start. */
static void upload_batches(size_t used)
{
  unsigned char *batch = calloc(1, BATCH);
  char *p = device_memory(BATCH);
  for (int i = 0; batch && i < UPLOADS; i++) {
    fill_bytes(batch, used);
    CHECK(cudaMemcpy(p, batch, BATCH, cudaMemcpyHostToDevice)); /* WASTE mostly-padding */
    launch(NULL, (float *)(void *)p, 64);
  }
  CHECK(cudaFree(p));
  free(batch);
}

static void mostly_padding(void)
{
  upload_batches(USED);
}

static void mostly_padding_twin(void)
{
  upload_batches(BATCH - USED);
}

/* ---- mostly-unchanged-upload ----------------------------------------------------------------- */

/* A table of which in each step an entry changes every so many bytes. */
static void upload_table(size_t apart)
{
  unsigned char *table = malloc(TABLE);
  char *p = device_memory(TABLE);
  if (table) fill_bytes(table, TABLE);
  for (int i = 0; table && i < UPLOADS; i++) {
    for (size_t at = 64 * (size_t)i; at < TABLE; at += apart)
      table[at]++;
    CHECK(cudaMemcpy(p, table, TABLE, cudaMemcpyHostToDevice)); /* WASTE mostly-unchanged-upload */
    launch(NULL, (float *)(void *)p, 64);
  }
  CHECK(cudaFree(p));
  free(table);
}

static void mostly_unchanged_upload(void)
{
  upload_table(TABLE / 2);
}

static void mostly_unchanged_upload_twin(void)
{
  upload_table(LINE);
}

const waster upload_wasters[] = {
    {"mostly-padding", mostly_padding, mostly_padding_twin, "--hash=on"},
    {"mostly-unchanged-upload", mostly_unchanged_upload, mostly_unchanged_upload_twin, "--hash=on"},
    {NULL, NULL, NULL, NULL}};
