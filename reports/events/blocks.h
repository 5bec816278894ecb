/* blocks.h: the blocks of memory of a trace, as the view `block` has them: from the pages of the file where that can be, and
 * else from SQLite. */
#ifndef WEIR_REPORTS_BLOCKS_H
#define WEIR_REPORTS_BLOCKS_H

#include "reports/events/events.h"

typedef struct wr_block {
  int64_t id, process, stack; /* stack 0: none, or not known */
  int64_t how;                /* WR_BLOCK_*, lifetime.h */
  int64_t born, died;         /* places among the memory events; died: meaningful if `dead` */
  int64_t start,
      end; /* ns; start 0 and bytes 0 of a free whose block was not seen; end: if `ended` */
  uint64_t bytes;
  int device, mem; /* device WR_HOST: none */
  bool dead, ended, registered;
  bool placed; /* it was born at some place */
  const wr_template
      *t; /* of its event, borrowed from the events; NULL: of SQLite's rows, not at hand */
} wr_block;

typedef weir_status (*wr_block_fn)(void *context, const wr_block *b);

typedef struct wr_blocks {
  const wr_events *events; /* borrowed */
  bool by_pages;
  int64_t *
      first; /* owned: numbers of rows, for the walk back: of each row of some that are read at once */
  size_t firsts, first_capacity;
  uint32_t *heard_at; /* owned: by event, from `first_event` on: place in `heard`, plus 1; NULL:
                                 none is heard */
  int64_t first_event;
  uint64_t event_span;          /* events from there on */
  struct wr_heard_event *heard; /* owned */
  size_t heard_count, heard_capacity;
} wr_blocks;

/* Looks for how they are read. An unfinished trace's lifetimes must be there (wr_lifetimes_temporary()). Closed by
 * wr_blocks_close() whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_blocks_open(wr_blocks *x, const wr_events *events);
void wr_blocks_close(wr_blocks *x);

/* For a walk over the events before: what wr_blocks_hear() was given of them is not looked for again. Does nothing for a
 * trace of many events, or one that is not read by pages. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_blocks_listen(wr_blocks *x);

/* An event of which a block may be. Errors: ENOMEM. */
weir_status wr_blocks_hear(wr_blocks *x, const wr_event *e);

/* All of them in order of their numbers; a status of `take` ends it. */
weir_status wr_blocks_each(wr_blocks *x, wr_block_fn take, void *context);

/* The same, the last one first, which may be asked for after wr_blocks_each(). */
weir_status wr_blocks_back(wr_blocks *x, wr_block_fn take, void *context);

/* By where they died: the living, then the last that died. Beyond 16 MiB their order is kept in TMPDIR. */
weir_status wr_blocks_from_last_death(wr_blocks *x, wr_block_fn take, void *context);

#endif
