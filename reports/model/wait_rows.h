/* wait_rows.h: the rows of `wait_detail` (SCHEMA.md), packed, found by id.
 *
 * They come in order of time, in which each thread's ids ascend but the threads' ids do not. A row
 * takes two to some twenty bytes, and beyond a limit they lie in a file without a name in TMPDIR,
 * so that memory is bounded however many there are. */
#ifndef WEIR_REPORTS_WAIT_ROWS_H
#define WEIR_REPORTS_WAIT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "reports/queues/queues.h"

/* What a row is but for its numbers, as bits; 0: nothing is known. */
enum {
  WR_WAIT_KNOWN = 1,
  WR_WAIT_PENDING = 2,
  WR_WAIT_BEFORE_LEGACY = 4,
  WR_WAIT_RESULT = 8,  /* `host`: WR_HOST_RESULT, */
  WR_WAIT_SOURCE = 16, /* WR_HOST_SOURCE */
  WR_WAIT_NARROWER = 32,
  WR_WAIT_OTHER = 128 /* `other` is not 0 */
};

typedef struct wr_wait_rows wr_wait_rows;

/* New; `path`: begin of a file's path, borrowed until the rows are put in order; `last`: the
 * highest id there may be, as far as is known: with others rows are found in more time. NULL:
 * out of memory. */
wr_wait_rows *wr_wait_rows_new(const char *path, int64_t last);
void wr_wait_rows_free(wr_wait_rows *r);

/* Adds a row. `thread`: of the caller's, from 0. Errors: ENOMEM, EIO. */
weir_status wr_wait_rows_add(wr_wait_rows *r, uint32_t thread, const wr_wait_row *row);

/* There are no more: they can be read now. Errors: ENOMEM, EIO. */
weir_status wr_wait_rows_order(wr_wait_rows *r);
uint64_t wr_wait_rows_count(const wr_wait_rows *r);

/* Of each id below *ids its row's bits, 0 where there is none (borrowed); NULL: they are not kept so. Of rows in order. */
const uint8_t *wr_wait_rows_bits(const wr_wait_rows *r, size_t *ids);

/* A walk over rows that are in order. Begins zeroed but for `rows`. */
typedef struct wr_wait_reader {
  const wr_wait_rows *rows; /* borrowed */
  wr_wait_row row;          /* the one at hand */
  bool over;                /* there is none */
  /* private */
  size_t next_block; /* after the one that is read, from 1; 0: none is */
  unsigned left;     /* rows of this one after the one at hand */
  int64_t before;    /* id of the row before it, of the block's first row its own */
  const uint8_t *at;
  uint64_t stream;  /* the last one that was not 0 */
  uint8_t *buffer;  /* owned: a segment of the file */
  uint32_t segment; /* which, from 1; 0 none */
} wr_wait_reader;

/* To the first row; to the next; to the row of that id, which is quick where ids ascend. None:
 * `over`. Errors: ENOMEM, EIO. */
weir_status wr_wait_first(wr_wait_reader *x);
weir_status wr_wait_next(wr_wait_reader *x);
weir_status wr_wait_find(wr_wait_reader *x, int64_t id);

/* The bits of an id's row; 0: there is none, or nothing is known. No row need be read for it:
 * mostly a byte an id is kept. Errors: ENOMEM, EIO. */
weir_status wr_wait_bits(wr_wait_reader *x, int64_t id, unsigned *bits);

/* To the first row of which those bits of the mask are set, not 0 all of them; or to the next
 * after the one at hand, which was such a row. None: `over`. Errors: ENOMEM, EIO. */
weir_status wr_wait_next_of(wr_wait_reader *x, unsigned mask, unsigned bits, bool first);

void wr_wait_reader_free(wr_wait_reader *x);

#endif
