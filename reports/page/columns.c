/* columns.c: see columns.h. */
#include "reports/page/columns.h"
#include <stdlib.h>
#include <zlib.h>
#include "reports/base/util.h"

enum {
  PIECE = 3 << 14, /* bytes of gzip that become base64 at once */
  GZIP_LEVEL = 2,  /* level 4 takes 1.5 times as long for 3 % less, zlib's default 4 times */
  GZIP_WINDOW = 15 + 16,
  GZIP_MEMORY = 8,
  SAMPLE = 16 << 10,                 /* bytes of a column by which its strategy is chosen */
  MOST_PACKED = SAMPLE - SAMPLE / 8, /* bytes of it for which packing is not worth its time */
  FEWEST_TRIED = 64 << 10            /* bytes of a column from which on one is chosen */
};

int page_column_new(page_columns *c, page_encoding encoding)
{
  if (c->failed || !wr_grow(&c->column, &c->capacity, c->count + 1, sizeof(*c->column))) {
    c->failed = true;
    return -1;
  }
  c->column[c->count] = (page_column){.encoding = encoding};
  return (int)c->count++;
}

enum { LONGEST_CODE = 10 /* bytes of a LEB128 */ };

static inline unsigned char *put_code(unsigned char *to, uint64_t code)
{
  for (; code >= 128; code >>= 7)
    *to++ = (unsigned char)(code | 128);
  *to++ = (unsigned char)code;
  return to;
}

static inline int64_t bounded(int64_t value)
{
  if ((uint64_t)value <= (uint64_t)PAGE_MOST_VALUE) return value;
  return value < 0 ? 0 : PAGE_MOST_VALUE;
}

static inline int64_t bounded_below(int64_t value)
{
  return value < 0 ? -bounded(value < -PAGE_MOST_VALUE ? PAGE_MOST_VALUE : -value) : bounded(value);
}

static inline uint64_t zigzag(int64_t value)
{
  return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* Values as a column's encoding has them; what these return is the end of the bytes. */
static unsigned char *put_plain(unsigned char *to, const int64_t *value, size_t stride,
                                size_t count)
{
  for (; count; count--, value += stride)
    to = put_code(to, (uint64_t)bounded(*value));
  return to;
}

static unsigned char *put_signed(unsigned char *to, const int64_t *value, size_t stride,
                                 size_t count)
{
  for (; count; count--, value += stride)
    to = put_code(to, zigzag(bounded_below(*value)));
  return to;
}

/* The first value of a column is no difference. */
static unsigned char *put_differences(page_column *x, unsigned char *to, const int64_t *value,
                                      size_t stride, size_t count)
{
  int64_t last = x->last;
  if (!x->count) {
    last = bounded(*value);
    to = put_code(to, (uint64_t)last);
    value += stride, count--;
  }
  for (; count; count--, value += stride) {
    const int64_t now = bounded(*value);
    to = put_code(to, zigzag(now - last));
    last = now;
  }
  x->last = last;
  return to;
}

void page_put(page_columns *c, int column, const int64_t *values, size_t stride, size_t count)
{
  if (c->failed || !count) return;
  page_column *x = &c->column[column];
  if (!wr_grow(&x->bytes, &x->capacity, x->used + count * LONGEST_CODE, 1)) {
    c->failed = true;
    return;
  }
  unsigned char *to = x->bytes + x->used;
  to = x->encoding == PAGE_V    ? put_plain(to, values, stride, count)
       : x->encoding == PAGE_ZV ? put_signed(to, values, stride, count)
                                : put_differences(x, to, values, stride, count);
  x->used = (size_t)(to - x->bytes);
  x->count += count;
}

void page_rows_end(page_rows *r)
{
  for (int k = 0; k < r->columns; k++)
    page_put(r->to, r->column[k], &r->row[0][k], PAGE_ROW_COLUMNS, r->count);
  r->count = 0;
}

bool page_columns_failed(const page_columns *c)
{
  return c->failed;
}

void page_columns_describe(FILE *out, const page_columns *c)
{
  static const char *const names[] = {[PAGE_V] = "v", [PAGE_DV] = "dv", [PAGE_ZV] = "zv"};
  size_t offset = 0;
  (void)fputc('[', out);
  for (size_t i = 0; i < c->count; i++) {
    const page_column *x = &c->column[i];
    (void)fprintf(out, "%s{\"offset\":%zu,\"bytes\":%zu,\"count\":%llu,\"encoding\":\"%s\"}",
                  i ? ",\n" : "", offset, x->used, (unsigned long long)x->count,
                  names[x->encoding]);
    offset += x->used;
  }
  (void)fputc(']', out);
}

/* ---- gzip, base64 ---------------------------------------------------------------------------- */

typedef struct packer {
  FILE *out;
  z_stream z;
  z_stream trial; /* of samples */
  uint64_t packed;
  unsigned char piece[PIECE];
} packer;

static inline char *put_digits(char *to, uint32_t bits)
{
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  to[0] = digits[bits >> 18];
  to[1] = digits[bits >> 12 & 63];
  to[2] = digits[bits >> 6 & 63];
  to[3] = digits[bits & 63];
  return to + 4;
}

/* `count` is at most PIECE. */
static void put_base64(FILE *out, const unsigned char *from, size_t count)
{
  char text[(PIECE + 2) / 3 * 4], *to = text;
  const unsigned char *end = from + count - count % 3;
  for (; from < end; from += 3)
    to = put_digits(to, (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2]);
  if (count % 3) {
    to = put_digits(to, (uint32_t)from[0] << 16 | (count % 3 > 1 ? (uint32_t)from[1] << 8 : 0));
    to[-1] = '=';
    if (count % 3 == 1) to[-2] = '=';
  }
  (void)fwrite(text, 1, (size_t)(to - text), out);
}

/* Writes what the piece holds, which is free then. */
static void put_piece(packer *p)
{
  size_t made = PIECE - p->z.avail_out;
  put_base64(p->out, p->piece, made);
  p->packed += made;
  p->z.next_out = p->piece;
  p->z.avail_out = PIECE;
}

/* What `bytes` add; flush Z_FINISH: to the end. */
static void pack_bytes(packer *p, unsigned char *bytes, size_t count, int flush)
{
  int code = Z_OK;
  p->z.next_in = bytes;
  do {
    size_t now = count < (1U << 30) ? count : 1U << 30;
    p->z.avail_in = (uInt)now;
    count -= now;
    do {
      code = deflate(&p->z, count ? Z_NO_FLUSH : flush);
      if (p->z.avail_out && code != Z_STREAM_END) break;
      put_piece(p);
    } while (code == Z_OK);
  } while (count);
}

/* Bytes that some of a column become by itself. */
static uint64_t bytes_of_sample(z_stream *trial, unsigned char *sample, int strategy)
{
  unsigned char packed[SAMPLE + SAMPLE / 8];
  (void)deflateReset(trial);
  (void)deflateParams(trial, GZIP_LEVEL, strategy);
  trial->next_in = sample;
  trial->avail_in = SAMPLE;
  trial->next_out = packed;
  trial->avail_out = sizeof(packed);
  (void)deflate(trial, Z_FINISH);
  return trial->total_out;
}

typedef struct packing {
  int level, strategy;
} packing;

/* A column of numbers of which most are near no other alike is as small by runs and Huffman codes
 * alone, in less than half the time. One of a loop's calls is not. What neither makes much smaller
 * is left as it is. */
static packing choose_packing(packer *p, const page_column *x)
{
  const packing search = {GZIP_LEVEL, Z_DEFAULT_STRATEGY}, by_runs = {GZIP_LEVEL, Z_RLE};
  if (x->used < FEWEST_TRIED) return search;
  unsigned char *sample = x->bytes + (x->used - SAMPLE) / 2;
  uint64_t runs = bytes_of_sample(&p->trial, sample, Z_RLE);
  if (runs <= SAMPLE / 64) return by_runs;
  uint64_t repeated = bytes_of_sample(&p->trial, sample, Z_DEFAULT_STRATEGY);
  if (runs > MOST_PACKED && repeated > MOST_PACKED) return (packing){0, Z_DEFAULT_STRATEGY};
  return runs <= repeated + repeated / 32 ? by_runs : search;
}

static void pack_column(packer *p, const page_column *x)
{
  packing how = choose_packing(p, x);
  while (deflateParams(&p->z, how.level, how.strategy) == Z_BUF_ERROR)
    put_piece(p);
  if (!p->z.avail_out) put_piece(p);
  pack_bytes(p, x->bytes, x->used, Z_NO_FLUSH);
}

/* False: out of memory. */
static bool open_packer(packer *p, FILE *out)
{
  p->out = out;
  p->z.next_out = p->piece;
  p->z.avail_out = PIECE;
  if (deflateInit2(&p->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY))
    return false;
  if (!deflateInit2(&p->trial, GZIP_LEVEL, Z_DEFLATED, -15, GZIP_MEMORY, Z_DEFAULT_STRATEGY))
    return true;
  deflateEnd(&p->z);
  return false;
}

weir_status page_columns_write(FILE *out, const page_columns *c, uint64_t *packed)
{
  packer *p = calloc(1, sizeof(*p));
  if (!p || !open_packer(p, out)) {
    free(p);
    return weir_fail(WEIR_ENOMEM, "writing a page: out of host memory");
  }
  for (size_t i = 0; i < c->count; i++)
    if (c->column[i].used) pack_column(p, &c->column[i]);
  pack_bytes(p, p->piece, 0, Z_FINISH);
  *packed = p->packed;
  deflateEnd(&p->z);
  deflateEnd(&p->trial);
  free(p);
  return WEIR_OK;
}

void page_columns_free(page_columns *c)
{
  for (size_t i = 0; i < c->count; i++)
    free(c->column[i].bytes);
  free(c->column);
  *c = (page_columns){0};
}
