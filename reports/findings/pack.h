/* pack.h: rows of whole numbers, kept one behind the other, and read as often as wanted: each
 * number as its difference to the row before, mostly in four bytes. Beyond a limit they lie in a
 * file without a name in TMPDIR, so that memory is bounded however many there are. */
#ifndef WEIR_REPORTS_PACK_H
#define WEIR_REPORTS_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

enum {
  WR_PACK_COLUMNS = 10, /* at most */
  WR_PACK_BLOCK = 8192  /* bytes, at most, that are read alone */
};

typedef struct wr_pack_block {
  uint64_t offset; /* among all bytes */
  int64_t first;   /* number of its first row */
  size_t rows;
} wr_pack_block;

/* Zero-initialised but for `columns` and `keyed` it is empty. */
typedef struct wr_pack {
  int columns;
  bool keyed; /* single rows are looked for: fewer are read for each */
  uint64_t rows;
  int64_t last[WR_PACK_COLUMNS]; /* the row before, in this block */
  size_t limit;                  /* of `used`: beyond it the next row begins a block */
  unsigned char *bytes;          /* owned: those behind the file's */
  size_t used, capacity;
  uint64_t in_file;
  int file;             /* while in_file */
  wr_pack_block *block; /* owned */
  size_t blocks, block_capacity;
} wr_pack;

/* Errors: ENOMEM, EIO; then the row is not there. `beside`: begin of the file's path. */
weir_status wr_pack_add(wr_pack *p, const int64_t *row, const char *beside);
void wr_pack_free(wr_pack *p);

/* A walk over the rows of a pack that does not change meanwhile. Zero-initialised. */
typedef struct wr_pack_reader {
  const wr_pack *pack;
  size_t next_block;
  size_t left; /* rows of the block behind the one in `v` */
  const unsigned char *at;
  unsigned char *buffer; /* owned: a block of the file */
  int64_t v[WR_PACK_COLUMNS];
  bool over; /* there is no row in `v` */
} wr_pack_reader;

/* To the first row; and to the next. Errors: ENOMEM, EIO. */
weir_status wr_pack_first(wr_pack_reader *r, const wr_pack *p);
weir_status wr_pack_next(wr_pack_reader *r);

/* To the next, of which there is one in this block: r->left. */
void wr_pack_next_here(wr_pack_reader *r);

/* To the row whose first number is `key`, of a pack in which these ascend; none: over. */
weir_status wr_pack_find(wr_pack_reader *r, const wr_pack *p, int64_t key);
void wr_pack_reader_free(wr_pack_reader *r);

#endif
