/* gzip.c: see gzip.h. */
#include "reports/export/gzip.h"
#include <string.h>

static void put_trailer_word(FILE *out, uint64_t value, int bytes)
{
  for (int i = 0; i < bytes; i++)
    (void)putc((int)(value >> 8 * i & 255), out);
}

static void put_block(gzip *g, int last)
{
  (void)putc(last, g->out);
  put_trailer_word(g->out, g->count, 2);
  put_trailer_word(g->out, ~(uint64_t)g->count, 2);
  (void)fwrite(g->block, 1, g->count, g->out);
  g->count = 0;
}

void gzip_begin(gzip *g, FILE *out)
{
  static const unsigned char head[10] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff};
  g->out = out;
  g->crc = UINT32_MAX;
  g->bytes = 0;
  g->count = 0;
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int bit = 0; bit < 8; bit++)
      c = c & 1 ? UINT32_C(0xedb88320) ^ c >> 1 : c >> 1;
    g->table[i] = c;
  }
  (void)fwrite(head, 1, sizeof head, out);
}

void gzip_write(gzip *g, const void *bytes, size_t count)
{
  const unsigned char *from = bytes;
  g->bytes += (uint32_t)count;
  for (size_t i = 0; i < count; i++)
    g->crc = g->table[(g->crc ^ from[i]) & 255] ^ g->crc >> 8;
  for (size_t n; count; from += n, count -= n) {
    if (g->count == GZIP_BLOCK) put_block(g, 0);
    n = count < GZIP_BLOCK - g->count ? count : GZIP_BLOCK - g->count;
    memcpy(g->block + g->count, from, n);
    g->count += n;
  }
}

void gzip_end(gzip *g)
{
  put_block(g, 1);
  put_trailer_word(g->out, ~g->crc & UINT32_MAX, 4);
  put_trailer_word(g->out, g->bytes, 4);
}
