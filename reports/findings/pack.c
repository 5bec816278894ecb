/* pack.c: see pack.h. A row is a byte, and its numbers as differences to those of the row before, which wrap around so that no
 * number of a trace is too large: in four bytes each where all of a row fit, which is mostly so, and else in eight. So a row is
 * written and read with one branch, but for that by its columns. */
#include "reports/findings/pack.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/util.h"
#include "reports/import/run_log.h"

enum {
  IN_MEMORY = 2 << 20,
  KEYED_ROWS = 16, /* of a block, where rows are looked for */
  NARROW = 4,      /* bytes of a number */
  WIDE = 8,
  ROW = 1 + WR_PACK_COLUMNS * WIDE /* bytes of one, at most */
};

/* ---- keeping --------------------------------------------------------------------------------- */

/* Returns the end of the row. Where `columns` is a constant, its loop is none. */
static inline __attribute__((always_inline)) unsigned char *
put_row(unsigned char *at, int64_t *last, const int64_t *row, int columns)
{
  uint64_t far[WR_PACK_COLUMNS], too_far = 0;
  unsigned char *number = at + 1;
#pragma GCC unroll 9
  for (int i = 0; i < columns; i++, number += NARROW) {
    far[i] = (uint64_t)row[i] - (uint64_t)last[i];
    last[i] = row[i];
    memcpy(number, &(uint32_t){(uint32_t)far[i]}, NARROW);
    too_far |= far[i] + (UINT64_C(1) << 31);
  }
  bool wide = too_far >> 32;
  *at = wide ? WIDE : NARROW;
  if (!wide) return number;
  memcpy(at + 1, far, (size_t)columns * WIDE);
  return at + 1 + columns * WIDE;
}

/* What is done with a row, for each number of columns that many packs have. */
#define BY_COLUMNS(columns, DO)                                                                    \
  switch (columns) {                                                                               \
  case 4:                                                                                          \
    DO(4);                                                                                         \
    break;                                                                                         \
  case 5:                                                                                          \
    DO(5);                                                                                         \
    break;                                                                                         \
  case 6:                                                                                          \
    DO(6);                                                                                         \
    break;                                                                                         \
  case 8:                                                                                          \
    DO(8);                                                                                         \
    break;                                                                                         \
  default:                                                                                         \
    DO(columns);                                                                                   \
  }

static weir_status write_all(wr_pack *p, const char *beside)
{
  if (!p->in_file && (p->file = wr_run_file(beside)) < 0)
    return weir_fail_errno(WEIR_EIO, errno, "making a temporary file %s-runs", beside);
  int wrong = wr_run_write(p->file, p->bytes, p->used, p->in_file);
  if (wrong) {
    if (!p->in_file) (void)close(p->file);
    return weir_fail_errno(WEIR_EIO, wrong, "writing a temporary file %s-runs", beside);
  }
  p->in_file += p->used;
  p->used = 0;
  return WEIR_OK;
}

/* The next row begins a block. */
static weir_status begin_block(wr_pack *p, int64_t first, const char *beside)
{
  weir_status s = p->used + WR_PACK_BLOCK > IN_MEMORY ? write_all(p, beside) : WEIR_OK;
  if (s) return s;
  if (!wr_grow(&p->block, &p->block_capacity, p->blocks + 1, sizeof(*p->block)) ||
      !wr_grow(&p->bytes, &p->capacity, p->used + WR_PACK_BLOCK, 1))
    return weir_fail(WEIR_ENOMEM, "keeping rows of findings: out of host memory");
  p->block[p->blocks++] = (wr_pack_block){.offset = p->in_file + p->used, .first = first};
  memset(p->last, 0, sizeof(p->last));
  p->limit = p->used + WR_PACK_BLOCK - ROW;
  return WEIR_OK;
}

weir_status wr_pack_add(wr_pack *p, const int64_t *row, const char *beside)
{
  if (!p->blocks || p->used > p->limit ||
      (p->keyed && p->block[p->blocks - 1].rows == KEYED_ROWS)) {
    weir_status st = begin_block(p, row[0], beside);
    if (st) return st;
  }
  unsigned char *at = p->bytes + p->used;
#define PUT(columns) at = put_row(at, p->last, row, columns)
  BY_COLUMNS(p->columns, PUT)
#undef PUT
  p->used = (size_t)(at - p->bytes);
  p->block[p->blocks - 1].rows++;
  p->rows++;
  return WEIR_OK;
}

void wr_pack_free(wr_pack *p)
{
  if (p->in_file) (void)close(p->file);
  free(p->bytes);
  free(p->block);
  *p = (wr_pack){.columns = p->columns, .keyed = p->keyed};
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Adds the differences of a row to `v`. Returns the end of the row. */
static inline __attribute__((always_inline)) const unsigned char *take_row(const unsigned char *at,
                                                                           int64_t *v, int columns)
{
  bool narrow = *at++ == NARROW;
  if (narrow)
#pragma GCC unroll 9
    for (int i = 0; i < columns; i++, at += NARROW) {
      int32_t far;
      memcpy(&far, at, NARROW);
      v[i] = (int64_t)((uint64_t)v[i] + (uint64_t)(int64_t)far);
    }
  for (int i = 0; !narrow && i < columns; i++, at += WIDE) {
    uint64_t far;
    memcpy(&far, at, WIDE);
    v[i] = (int64_t)((uint64_t)v[i] + far);
  }
  return at;
}

void wr_pack_next_here(wr_pack_reader *r)
{
#define TAKE(columns) r->at = take_row(r->at, r->v, columns)
  BY_COLUMNS(r->pack->columns, TAKE)
#undef TAKE
  r->left--;
}

static weir_status read_file(wr_pack_reader *r, uint64_t offset, size_t bytes)
{
  if (!r->buffer && !(r->buffer = malloc(WR_PACK_BLOCK)))
    return weir_fail(WEIR_ENOMEM, "reading rows of findings: out of host memory");
  int wrong = wr_run_read(r->pack->file, r->buffer, bytes, offset);
  if (wrong) return weir_fail_errno(WEIR_EIO, wrong, "reading rows of findings back");
  r->at = r->buffer;
  return WEIR_OK;
}

/* The first row of a block, of which there is one. */
static weir_status open_block(wr_pack_reader *r, size_t number)
{
  const wr_pack *p = r->pack;
  const wr_pack_block *b = &p->block[number];
  uint64_t end = number + 1 < p->blocks ? b[1].offset : p->in_file + p->used;
  size_t bytes = (size_t)(end - b->offset);
  weir_status s = WEIR_OK;
  if (b->offset < p->in_file)
    s = read_file(r, b->offset, bytes);
  else
    r->at = p->bytes + (b->offset - p->in_file);
  r->over = s != WEIR_OK;
  if (s) return s;
  r->left = b->rows;
  r->next_block = number + 1;
  memset(r->v, 0, sizeof(r->v));
  wr_pack_next_here(r);
  return s;
}

weir_status wr_pack_next(wr_pack_reader *r)
{
  if (r->left) {
    wr_pack_next_here(r);
    return WEIR_OK;
  }
  r->over = r->next_block >= r->pack->blocks;
  return r->over ? WEIR_OK : open_block(r, r->next_block);
}

weir_status wr_pack_first(wr_pack_reader *r, const wr_pack *p)
{
  r->pack = p;
  r->left = r->next_block = 0;
  return wr_pack_next(r);
}

/* The last block that begins with no more than the key. */
static size_t block_of(const wr_pack *p, int64_t key)
{
  size_t low = 0, high = p->blocks;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (p->block[middle].first <= key)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? low - 1 : 0;
}

weir_status wr_pack_find(wr_pack_reader *r, const wr_pack *p, int64_t key)
{
  weir_status s = WEIR_OK;
  bool here = r->pack == p && !r->over && r->next_block && r->v[0] <= key &&
              (r->next_block >= p->blocks || p->block[r->next_block].first > key);
  r->pack = p;
  r->over = !p->blocks;
  if (!here && !r->over) s = open_block(r, block_of(p, key));
  while (!s && !r->over && r->v[0] < key)
    s = wr_pack_next(r);
  if (!s && !r->over && r->v[0] != key) r->over = true;
  return s;
}

void wr_pack_reader_free(wr_pack_reader *r)
{
  free(r->buffer);
  *r = (wr_pack_reader){0};
}
