/* wait_rows.c: see wait_rows.h.
 *
 * A *block* is some rows whose ids ascend and are near each other. A *writer* is where a block
 * grows: each row goes to the writer whose last id is a little less than its own, which mostly is
 * the one that its thread's row before went to, since a thread's events lie in long runs of rows.
 * So there are few blocks more than are full, and blocks in order of their first ids are rows in
 * order, without one of them being moved. Where blocks overlap all the same, their rows are sorted.
 *
 * Blocks lie in *segments*, one of each writer's at a time: the first so many in memory, the others
 * in the file. */
#include "reports/model/wait_rows.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/sort.h"
#include "reports/base/util.h"
#include "reports/import/run_log.h"
#include "reports/queues/queues.h"

enum {
  SEGMENT = 4096,   /* bytes */
  ROW = 64,         /* bytes of a row, at most */
  ROWS = 32,        /* of a block, at most */
  NEAR = 16,        /* from one id to the next of the same thread: no other writer is looked at */
  FAR = 127,        /* from one id to the next of a block, at most */
  IN_MEMORY = 2048, /* segments */
  WRITERS = 4096
};

enum {
  SHORT = 128 /* in the second byte of a row, besides how far its id is from the one before */
};

enum {
  COUNTS = 64 /* in the first byte of a row, besides WR_WAIT_*: it has operations, bytes, streams */
};

enum {
  MOST_IDS =
      1 << 27 /* of which the bits are kept; 128 MiB, of which only what is written takes memory */
};

_Static_assert(WR_WAIT_RESULT == WR_HOST_RESULT * 8 && WR_WAIT_SOURCE == WR_HOST_SOURCE * 8,
               "the bits of what the host may look at are next to each other");
_Static_assert((WR_HOST_RESULT | WR_HOST_SOURCE) == 3, "what the host may look at has two bits");
_Static_assert((ROWS - 1) * FAR < 1 << 14, "a block's ids span 14 bits");

typedef struct block {
  int64_t first;
  uint32_t segment;
  unsigned at : 12;   /* in the segment */
  unsigned rows : 6;  /* from 1 */
  unsigned span : 14; /* from the first id to the last one */
} block;

typedef struct writer {
  uint8_t *bytes;   /* owned; of the segment that grows */
  uint32_t segment; /* its number */
  size_t used;
  size_t block;  /* the block that grows, from 1; 0 none */
  unsigned rows; /* of that block; it has them, and where they end, when it is whole */
  unsigned room; /* rows for which it has room */
  uint64_t stream;
} writer;

struct wr_wait_rows {
  const char *path;
  uint64_t count;
  block *blocks; /* owned */
  size_t block_count, block_capacity;
  uint8_t **segments;                     /* owned; those in memory that are whole */
  size_t segment_count, segment_capacity; /* segment_count: of all that are begun */
  int file;                               /* -1: none yet */
  size_t writer_count;
  uint32_t *writer_of; /* owned; by thread, from 1; 0 none */
  size_t threads, thread_capacity;
  uint8_t
      *bits; /* owned; by id, up to `ids`: WR_WAIT_* of its row, 0 none; NULL: some are beyond */
  size_t ids;
  int64_t last[WRITERS]; /* id of each writer's */
  writer writers[WRITERS];
};

static weir_status no_memory_for_rows(void)
{
  return weir_fail(WEIR_ENOMEM, "keeping what waits had to wait for: out of host memory");
}

wr_wait_rows *wr_wait_rows_new(const char *path, int64_t last)
{
  wr_wait_rows *r = calloc(1, sizeof(*r));
  if (!r) return NULL;
  r->ids = last >= 0 && last < MOST_IDS ? (size_t)last + 1 : 1;
  r->bits = calloc(r->ids, sizeof(*r->bits));
  if (!r->bits) r->ids = 0;
  r->path = path;
  r->file = -1;
  return r;
}

void wr_wait_rows_free(wr_wait_rows *r)
{
  if (!r) return;
  for (size_t i = 0; i < r->writer_count; i++)
    free(r->writers[i].bytes);
  for (size_t i = 0; i < r->segment_count && i < IN_MEMORY; i++)
    free(r->segments[i]);
  if (r->file >= 0) (void)close(r->file);
  free(r->segments);
  free(r->bits);
  free(r->blocks);
  free(r->writer_of);
  free(r);
}

uint64_t wr_wait_rows_count(const wr_wait_rows *r)
{
  return r->count;
}

/* ---- rows as bytes --------------------------------------------------------------------------- */

static inline uint8_t *put_number(uint8_t *at, uint64_t n)
{
  for (; n > 127; n >>= 7)
    *at++ = (uint8_t)(n | 128);
  *at++ = (uint8_t)n;
  return at;
}

/* Returns the place after it. A number is written here, and has an end. */
static const uint8_t *get_number(const uint8_t *at, uint64_t *n)
{
  uint64_t value = *at & 127;
  for (int shift = 7; *at++ > 127; shift += 7)
    value |= (uint64_t)(*at & 127) << shift;
  *n = value;
  return at;
}

static uint64_t fold_difference(uint64_t a, uint64_t b)
{
  uint64_t far = a - b;
  return far << 1 ^ (far >> 63 ? UINT64_MAX : 0);
}

static uint64_t unfold_difference(uint64_t folded, uint64_t b)
{
  return b + (folded >> 1 ^ (folded & 1 ? UINT64_MAX : 0));
}

static inline uint8_t bits_of(const wr_wait_row *v)
{
  bool counts = v->operations | v->bytes | v->streams;
  if (!v->known) return 0;
  return (uint8_t)(WR_WAIT_KNOWN | (unsigned)v->pending * WR_WAIT_PENDING |
                   (unsigned)v->before_legacy * WR_WAIT_BEFORE_LEGACY |
                   (v->host & 3) * WR_WAIT_RESULT | (v->narrower ? WR_WAIT_NARROWER : 0) |
                   (unsigned)counts * COUNTS | (v->other ? WR_WAIT_OTHER : 0));
}

/* A row whose numbers are small lies in 12 bytes, which are read at once: the two that each row
 * begins with, operations (2 bytes), bytes (4), streams (1), and the difference of `other` and the
 * id (3). Its stream, where that is the only one, is that of the row before. */
static inline bool is_short(const wr_wait_row *v, uint8_t bits, uint64_t other, uint64_t stream)
{
  bool small = (v->operations | v->bytes >> 16) < 1 << 16 && v->streams < 256 && other < 1 << 24;
  return small && bits & COUNTS && (v->streams != 1 || v->stream == stream);
}

static inline uint8_t *put_short(uint8_t *at, const wr_wait_row *v, uint8_t bits, unsigned far,
                                 uint64_t other)
{
  uint64_t first = bits | (far | SHORT) << 8 | v->operations << 16 | v->bytes << 32;
  uint32_t rest = v->streams | (uint32_t)other << 8;
  memcpy(at, &first, sizeof(first));
  memcpy(at + sizeof(first), &rest, sizeof(rest));
  return at + sizeof(first) + sizeof(rest);
}

static const uint8_t *get_short(const uint8_t *at, wr_wait_row *v)
{
  uint64_t first;
  uint32_t rest;
  memcpy(&first, at, sizeof(first));
  memcpy(&rest, at + sizeof(first), sizeof(rest));
  v->operations = first >> 16 & 65535;
  v->bytes = first >> 32;
  v->streams = rest & 255;
  if (first & WR_WAIT_OTHER) v->other = (int64_t)unfold_difference(rest >> 8, (uint64_t)v->id);
  return at + sizeof(first) + sizeof(rest);
}

static uint8_t *put_long(uint8_t *at, const wr_wait_row *v, uint8_t bits, unsigned far,
                         uint64_t other, uint64_t *stream)
{
  bool counts = bits & COUNTS;
  *at++ = bits;
  *at++ = (uint8_t)far;
  if (counts) {
    at = put_number(at, v->operations);
    at = put_number(at, v->bytes);
    at = put_number(at, v->streams);
  }
  if (counts && v->streams == 1) {
    at = put_number(at, fold_difference(v->stream, *stream));
    *stream = v->stream;
  }
  return bits & WR_WAIT_OTHER ? put_number(at, other) : at;
}

/* `far`: from the id of the row before, FAR at most. */
static inline uint8_t *put_row(uint8_t *at, const wr_wait_row *v, uint8_t bits, unsigned far,
                               uint64_t *stream)
{
  uint64_t other = fold_difference((uint64_t)v->other, (uint64_t)v->id);
  if (!v->other) other = 0;
  return is_short(v, bits, other, *stream) ? put_short(at, v, bits, far, other)
                                           : put_long(at, v, bits, far, other, stream);
}

static const uint8_t *get_long(const uint8_t *at, wr_wait_row *v, uint8_t bits, uint64_t *stream)
{
  uint64_t n;
  at += 2;
  if (bits & COUNTS) {
    at = get_number(at, &v->operations);
    at = get_number(at, &v->bytes);
    at = get_number(at, &n);
    v->streams = (uint32_t)n;
  }
  if (v->streams == 1) {
    at = get_number(at, &n);
    *stream = unfold_difference(n, *stream);
  }
  if (!(bits & WR_WAIT_OTHER)) return at;
  at = get_number(at, &n);
  v->other = (int64_t)unfold_difference(n, (uint64_t)v->id);
  return at;
}

static const uint8_t *get_row(const uint8_t *at, wr_wait_row *v, int64_t before, uint64_t *stream)
{
  uint8_t bits = at[0];
  *v = (wr_wait_row){.id = (int64_t)((uint64_t)before + (at[1] & (SHORT - 1u))),
                     .known = bits & WR_WAIT_KNOWN,
                     .pending = bits & WR_WAIT_PENDING,
                     .before_legacy = bits & WR_WAIT_BEFORE_LEGACY,
                     .host = bits / WR_WAIT_RESULT & 3,
                     .narrower = bits & WR_WAIT_NARROWER ? WR_NARROWER_STREAM : 0};
  at = at[1] & SHORT ? get_short(at, v) : get_long(at, v, bits, stream);
  if (v->streams == 1) v->stream = *stream;
  return at;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The writer's block is whole. */
static void end_block(wr_wait_rows *r, writer *w)
{
  if (!w->block) return;
  block *b = &r->blocks[w->block - 1];
  b->rows = w->rows & 63;
  b->span = ((uint64_t)r->last[w - r->writers] - (uint64_t)b->first) & ((1u << 14) - 1);
  w->block = w->rows = w->room = 0;
}

/* The writer's segment is whole. */
static weir_status put_segment(wr_wait_rows *r, writer *w)
{
  uint8_t *bytes = w->bytes;
  end_block(r, w);
  if (!bytes) return WEIR_OK;
  if (w->segment < IN_MEMORY) {
    r->segments[w->segment] = bytes;
    w->bytes = NULL;
    return WEIR_OK;
  }
  if (r->file < 0 && (r->file = wr_run_file(r->path)) < 0)
    return weir_fail_errno(WEIR_EIO, errno, "making a temporary file %s-runs", r->path);
  int wrong = wr_run_write(r->file, bytes, SEGMENT, (uint64_t)(w->segment - IN_MEMORY) * SEGMENT);
  return wrong ? weir_fail_errno(WEIR_EIO, wrong, "writing a temporary file %s-runs", r->path)
               : WEIR_OK;
}

static weir_status begin_segment(wr_wait_rows *r, writer *w)
{
  weir_status st = put_segment(r, w);
  if (st) return st;
  if (r->segment_count == UINT32_MAX - 1) return no_memory_for_rows();
  if (r->segment_count < IN_MEMORY) {
    if (!wr_grow(&r->segments, &r->segment_capacity, r->segment_count + 1, sizeof(*r->segments)))
      return no_memory_for_rows();
    r->segments[r->segment_count] = NULL;
  }
  if (!w->bytes && !(w->bytes = malloc(SEGMENT))) return no_memory_for_rows();
  w->segment = (uint32_t)r->segment_count++;
  w->used = 0;
  return WEIR_OK;
}

/* The next row begins a block. */
static weir_status begin_block(wr_wait_rows *r, writer *w, int64_t first)
{
  weir_status st = WEIR_OK;
  end_block(r, w);
  if (!w->bytes || w->used > SEGMENT - ROW) st = begin_segment(r, w);
  if (st) return st;
  if (!wr_grow(&r->blocks, &r->block_capacity, r->block_count + 1, sizeof(*r->blocks)))
    return no_memory_for_rows();
  r->blocks[r->block_count++] =
      (block){.first = first, .segment = w->segment, .at = (unsigned)w->used & (SEGMENT - 1)};
  w->block = r->block_count;
  w->room = ROWS;
  w->stream = 0;
  return WEIR_OK;
}

static bool follows(int64_t id, int64_t before, int most)
{
  return id > before && (uint64_t)id - (uint64_t)before <= (uint64_t)most;
}

/* The writer whose last id is the nearest one before that; WRITERS: none is near. */
static size_t nearest_writer(const wr_wait_rows *r, int64_t id)
{
  size_t nearest = WRITERS;
  for (size_t i = 0; i < r->writer_count; i++)
    if (follows(id, r->last[i], FAR) && (nearest == WRITERS || r->last[i] > r->last[nearest]))
      nearest = i;
  return nearest;
}

/* A thread whose ids are far on takes its writer along. */
static weir_status find_writer(wr_wait_rows *r, uint32_t thread, int64_t id, size_t *at)
{
  if (thread >= r->threads) {
    if (!wr_grow(&r->writer_of, &r->thread_capacity, (size_t)thread + 1, sizeof(*r->writer_of)))
      return no_memory_for_rows();
    while (r->threads <= thread)
      r->writer_of[r->threads++] = 0;
  }
  uint32_t *of = &r->writer_of[thread];
  *at = *of ? *of - 1u : WRITERS;
  if (*of && follows(id, r->last[*at], NEAR)) return WEIR_OK;
  size_t nearest = nearest_writer(r, id);
  if (nearest < WRITERS)
    *at = nearest;
  else if (*at == WRITERS)
    *at = r->writer_count < WRITERS ? r->writer_count++ : thread % WRITERS;
  *of = (uint32_t)*at + 1;
  return WEIR_OK;
}

/* Adds to a writer whose block has room. `far`: from the id of the row before. */
static inline __attribute__((always_inline)) void add_to_block(wr_wait_rows *r, writer *w,
                                                               int64_t *last,
                                                               const wr_wait_row *row, uint8_t bits,
                                                               uint64_t far)
{
  uint8_t *end = put_row(w->bytes + w->used, row, bits, (unsigned)far, &w->stream);
  w->used = (size_t)(end - w->bytes);
  w->rows++;
  w->room = w->used > SEGMENT - ROW ? 0 : w->room - 1;
  *last = row->id;
  r->count++;
}

static weir_status add_to_writer(wr_wait_rows *r, size_t at, const wr_wait_row *row, uint8_t bits)
{
  uint64_t far = (uint64_t)row->id - (uint64_t)r->last[at];
  if (!r->writers[at].room || !follows(row->id, r->last[at], FAR)) {
    weir_status st = begin_block(r, &r->writers[at], row->id);
    if (st) return st;
    far = 0;
  }
  add_to_block(r, &r->writers[at], &r->last[at], row, bits, far);
  return WEIR_OK;
}

/* An id is beyond those of which the bits are kept: rows are looked for. */
static void drop_bits(wr_wait_rows *r)
{
  free(r->bits);
  r->bits = NULL;
  r->ids = 0;
}

static __attribute__((noinline)) weir_status add_elsewhere(wr_wait_rows *r, uint32_t thread,
                                                           const wr_wait_row *row, uint8_t bits)
{
  size_t at = 0;
  weir_status st = find_writer(r, thread, row->id, &at);
  return st ? st : add_to_writer(r, at, row, bits);
}

weir_status wr_wait_rows_add(wr_wait_rows *r, uint32_t thread, const wr_wait_row *row)
{
  uint8_t bits = bits_of(row);
  uint32_t of = thread < r->threads ? r->writer_of[thread] : 0;
  if ((uint64_t)row->id < r->ids)
    r->bits[row->id] = bits;
  else
    drop_bits(r);
  if (!of) return add_elsewhere(r, thread, row, bits);
  writer *w = &r->writers[of - 1];
  int64_t *last = &r->last[of - 1];
  uint64_t far = (uint64_t)row->id - (uint64_t)*last;
  if (far - 1 >= NEAR || !w->room) return add_elsewhere(r, thread, row, bits);
  add_to_block(r, w, last, row, bits, far);
  return WEIR_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int64_t last_of(const block *b)
{
  return (int64_t)((uint64_t)b->first + b->span);
}

/* The bytes of a segment that is whole. */
static weir_status open_segment(wr_wait_reader *x, uint32_t segment, const uint8_t **bytes)
{
  const wr_wait_rows *r = x->rows;
  *bytes = segment < IN_MEMORY ? r->segments[segment] : x->buffer;
  if (segment < IN_MEMORY || x->segment == segment + 1) return WEIR_OK;
  if (!x->buffer && !(x->buffer = malloc(SEGMENT))) return no_memory_for_rows();
  *bytes = x->buffer;
  x->segment = 0;
  int wrong = wr_run_read(r->file, x->buffer, SEGMENT, (uint64_t)(segment - IN_MEMORY) * SEGMENT);
  if (wrong) return weir_fail_errno(WEIR_EIO, wrong, "reading what waits had to wait for");
  x->segment = segment + 1;
  return WEIR_OK;
}

static void read_row(wr_wait_reader *x, int64_t before)
{
  x->at = get_row(x->at, &x->row, before, &x->stream);
  x->before = before;
  x->left--;
}

/* To the first row of a block, of which there is one. */
static weir_status open_block(wr_wait_reader *x, size_t number)
{
  const block *b = &x->rows->blocks[number];
  const uint8_t *bytes;
  weir_status st = open_segment(x, b->segment, &bytes);
  x->over = st != WEIR_OK;
  x->next_block = st ? 0 : number + 1;
  if (st) return st;
  x->at = bytes + b->at;
  x->left = b->rows;
  x->stream = 0;
  read_row(x, b->first);
  return WEIR_OK;
}

weir_status wr_wait_next(wr_wait_reader *x)
{
  if (x->left) {
    read_row(x, x->row.id);
    return WEIR_OK;
  }
  x->over = x->next_block >= x->rows->block_count;
  return x->over ? WEIR_OK : open_block(x, x->next_block);
}

weir_status wr_wait_first(wr_wait_reader *x)
{
  x->next_block = 0;
  x->left = 0;
  return wr_wait_next(x);
}

/* The last block that begins with no more than that id. */
static size_t block_of(const wr_wait_rows *r, int64_t id)
{
  size_t low = 0, high = r->block_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (r->blocks[middle].first <= id)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? low - 1 : 0;
}

static bool in_block(const wr_wait_rows *r, size_t number, int64_t id)
{
  return number < r->block_count && r->blocks[number].first <= id &&
         last_of(&r->blocks[number]) >= id;
}

/* No row has that id, as the row at hand and its block show. */
static bool between_rows(const wr_wait_reader *x, int64_t id)
{
  const block *b = x->next_block ? &x->rows->blocks[x->next_block - 1] : NULL;
  if (!b || id <= x->before) return false;
  if (id < x->row.id) return true;
  return id > last_of(b) && (x->next_block == x->rows->block_count || id < b[1].first);
}

weir_status wr_wait_find(wr_wait_reader *x, int64_t id)
{
  const wr_wait_rows *r = x->rows;
  weir_status st = WEIR_OK;
  x->over = !r->block_count || between_rows(x, id);
  bool here = x->next_block && x->row.id <= id && in_block(r, x->next_block - 1, id);
  if (!here && !x->over)
    st = open_block(x, in_block(r, x->next_block, id) ? x->next_block : block_of(r, id));
  while (!st && !x->over && x->row.id < id && x->left)
    read_row(x, x->row.id);
  x->over = st || x->over || x->row.id != id;
  return st;
}

const uint8_t *wr_wait_rows_bits(const wr_wait_rows *r, size_t *ids)
{
  *ids = r->bits ? (size_t)r->ids : 0;
  return r->bits;
}

weir_status wr_wait_bits(wr_wait_reader *x, int64_t id, unsigned *bits)
{
  const wr_wait_rows *r = x->rows;
  *bits = r->bits && (uint64_t)id < r->ids ? r->bits[id] : 0;
  if (r->bits) return WEIR_OK;
  weir_status st = wr_wait_find(x, id);
  if (!st && !x->over) *bits = bits_of(&x->row);
  return st;
}

weir_status wr_wait_next_of(wr_wait_reader *x, unsigned mask, unsigned bits, bool first)
{
  const wr_wait_rows *r = x->rows;
  weir_status st = WEIR_OK;
  if (!r->bits) {
    for (st = first ? wr_wait_first(x) : wr_wait_next(x);
         !st && !x->over && (bits_of(&x->row) & mask) != bits;)
      st = wr_wait_next(x);
    return st;
  }
  size_t id = first ? 0 : (size_t)x->row.id + 1;
  while (id < r->ids && (r->bits[id] & mask) != bits)
    id++;
  x->over = id >= r->ids;
  return x->over ? WEIR_OK : wr_wait_find(x, (int64_t)id);
}

void wr_wait_reader_free(wr_wait_reader *x)
{
  free(x->buffer);
  *x = (wr_wait_reader){.rows = x->rows};
}

/* ---- order ----------------------------------------------------------------------------------- */

static int by_first(const void *left, const void *right)
{
  int64_t a = ((const block *)left)->first, b = ((const block *)right)->first;
  return (a > b) - (a < b);
}

static int by_id(const void *left, const void *right)
{
  int64_t a = ((const wr_wait_row *)left)->id, b = ((const wr_wait_row *)right)->id;
  return (a > b) - (a < b);
}

static void sort_blocks(wr_wait_rows *r)
{
  if (!wr_sort_records(r->blocks, r->block_count, sizeof(block), offsetof(block, first)) &&
      r->block_count)
    qsort(r->blocks, r->block_count, sizeof(block), by_first);
}

typedef struct few_rows {
  wr_wait_row *row; /* owned */
  size_t count, capacity;
} few_rows;

/* Rows of the blocks from `at` up to `end`. */
static weir_status read_blocks(const wr_wait_rows *r, size_t at, size_t end, few_rows *all)
{
  wr_wait_reader x = {.rows = r};
  weir_status st = WEIR_OK;
  all->count = 0;
  for (; !st && at < end; at++) {
    st = open_block(&x, at);
    for (bool more = !st; more; more = x.left && (read_row(&x, x.row.id), true)) {
      if (!wr_grow(&all->row, &all->capacity, all->count + 1, sizeof(*all->row)))
        return wr_wait_reader_free(&x), no_memory_for_rows();
      all->row[all->count++] = x.row;
    }
  }
  wr_wait_reader_free(&x);
  return st;
}

/* Blocks from `at` up to `end` overlap: their rows become new ones, at the end of the list. */
static weir_status part_blocks(wr_wait_rows *r, size_t at, size_t end, few_rows *all)
{
  weir_status st = read_blocks(r, at, end, all);
  if (st) return st;
  if (!wr_sort_records(all->row, all->count, sizeof(*all->row), offsetof(wr_wait_row, id)))
    qsort(all->row, all->count, sizeof(*all->row), by_id);
  for (; at < end; at++)
    r->blocks[at].rows = 0;
  end_block(r, &r->writers[0]);
  r->count -= all->count;
  for (size_t i = 0; !st && i < all->count; i++)
    st = add_to_writer(r, 0, &all->row[i], bits_of(&all->row[i]));
  return st;
}

static weir_status part_all(wr_wait_rows *r, bool *any)
{
  size_t count = r->block_count;
  few_rows all = {0};
  weir_status st = WEIR_OK;
  *any = false;
  for (size_t at = 0, end; !st && at < count; at = end) {
    int64_t last = last_of(&r->blocks[at]);
    for (end = at + 1; end < count && r->blocks[end].first <= last; end++)
      if (last_of(&r->blocks[end]) > last) last = last_of(&r->blocks[end]);
    if (end - at < 2) continue;
    *any = true;
    st = part_blocks(r, at, end, &all);
  }
  free(all.row);
  return st ? st : put_segment(r, &r->writers[0]);
}

static void drop_empty_blocks(wr_wait_rows *r)
{
  size_t kept = 0;
  for (size_t i = 0; i < r->block_count; i++)
    if (r->blocks[i].rows) r->blocks[kept++] = r->blocks[i];
  r->block_count = kept;
}

weir_status wr_wait_rows_order(wr_wait_rows *r)
{
  bool any = false;
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < r->writer_count; i++) {
    st = put_segment(r, &r->writers[i]);
    free(r->writers[i].bytes);
    r->writers[i].bytes = NULL;
  }
  if (st) return st;
  sort_blocks(r);
  st = part_all(r, &any);
  if (st || !any) return st;
  drop_empty_blocks(r);
  sort_blocks(r);
  return WEIR_OK;
}
