/* wait_at.h: the rows of `wait_detail` and `wait_time` for judges: each by its event, and all of
 * them. They are read where they are packed (reports/model/wait_rows.h); those of a resolved trace
 * are packed first. */
#ifndef WEIR_REPORTS_WAIT_AT_H
#define WEIR_REPORTS_WAIT_AT_H

#include "reports/import/schema.h"
#include "reports/model/wait_rows.h"

typedef struct wr_wait_time_row {
  int64_t working, other, unknown; /* ns */
} wr_wait_time_row;

typedef struct wr_waits {
  const wr_db *db;            /* borrowed; NULL: not open */
  wr_wait_rows *own;          /* owned; of a resolved trace */
  char *file;                 /* owned: begin of the name of their file */
  wr_wait_reader found, walk; /* of wr_waits_find(), of wr_waits_next() */
  bool walks;
  const uint8_t *bits; /* borrowed: of each event below `ids`; NULL: they are looked for */
  size_t ids;
  sqlite3_stmt *time; /* owned; NULL: no wait's time is divided */
  weir_status status;
} wr_waits;

/* `w` is closed whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_waits_open(wr_waits *w, const wr_db *db);
void wr_waits_close(wr_waits *w);

/* The row of an event, which is quick where the events ascend; valid until the next one. NULL:
 * there is none, or w->status has gone wrong. */
const wr_wait_row *wr_waits_find(wr_waits *w, int64_t event);
bool wr_waits_time(wr_waits *w, int64_t event, wr_wait_time_row *row);

/* Its bits, WR_WAIT_*; 0: there is none, nothing is known, or w->status has gone wrong. */
unsigned wr_waits_bits(wr_waits *w, int64_t event);

/* The next, by id, of which those bits of the mask are set, valid until the next one; NULL: that
 * was the last one, and the next is the first again. */
const wr_wait_row *wr_waits_next(wr_waits *w, unsigned mask, unsigned bits);

#endif
