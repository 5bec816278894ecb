/* big_blocks.h: the largest blocks of device memory, and in the walk over all events what becomes of
 * each: when it is used first and last, and the longest time in which no call names it. Rules 21 and
 * 22 judge by that (judge_blocks.c).
 *
 * A block is *named* by a copy, memset or other call with an address in it, and by a launch that is
 * known to be handed it (access_facts.h), up to the wait of the host that covers it; *work* is what may use any memory: launches, other calls,
 * and what is captured into a graph. Those that live are followed; of those that have ended the
 * largest are kept. Where calls alone do not show when blocks end (resets of a device, memory of
 * graphs), none is followed. */
#ifndef WEIR_REPORTS_BIG_BLOCKS_H
#define WEIR_REPORTS_BIG_BLOCKS_H

#include "reports/events/events.h"
#include "reports/findings/access_facts.h"

enum { WR_BIG_LISTS = 2, WR_BIG_LIST = 32, WR_BIG_BLOCKS = WR_BIG_LISTS * WR_BIG_LIST };

typedef struct wr_big_limit { /* a rule's; all 0: no block */
  int64_t min_bytes, percent; /* of the device's peak */
  int64_t share;              /* percent of the run for which it has to live */
} wr_big_limit;

typedef struct wr_idle_time { /* in which no call names a block */
  int64_t since, next;        /* ns */
  bool upload;                /* it begins with a copy of the host's memory */
  uint64_t operations;        /* copies, memsets, launches and calls of the process meanwhile */
  /* of them, launches and calls of its device, or of any that may use it, that may use the block */
  uint64_t launches;
  uint64_t others;  /* launches that are handed other memory, of kernels that had been handed it */
  uint64_t strange; /* private: such launches of kernels that had not: they are in `launches` */
} wr_idle_time;

enum { WR_BIG_KERNELS = 16 }; /* of a block, that are kept */

typedef struct wr_big_block {
  int64_t alloc, process; /* event, row */
  int64_t start, until;   /* ns; until: of one that lives, the process's end */
  int64_t peak, peak_at;  /* of its device's memory */
  uint64_t address, bytes;
  int device;
  int64_t first_use, last_use; /* ns; first_use > last_use: none */
  wr_idle_time longest;
  uint64_t handed; /* launches that are known to be handed it */
  bool reached;    /* a texture or a tensor map was made of it */
  /* private */
  wr_idle_time now; /* `operations`, `launches`: of the process, when it began */
  int64_t now_from; /* when the call began with which it begins */
  bool pending;     /* handed to a launch that the host has not waited for */
  int64_t pending_stream, pending_thread; /* whose; 0: of several */
  bool begun, counted, worked, replaced;
  size_t kernels;                  /* functions that were handed it, the first of them */
  uint64_t kernel[WR_BIG_KERNELS]; /* handles */
} wr_big_block;

typedef struct wr_big_blocks {
  wr_big_block block[WR_BIG_BLOCKS]; /* at the end: the largest first, then by alloc */
  size_t count;
  bool known; /* they are followed */
  /* private */
  const wr_events *events; /* borrowed */
  int64_t duration;
  wr_big_limit limits[WR_BIG_LISTS];
  struct wr_big_state *state; /* owned */
} wr_big_blocks;

/* Follows the blocks within a limit, of a run of `duration` ns. Closed by wr_big_blocks_close()
 * whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_big_blocks_open(wr_big_blocks *x, const wr_events *events, int64_t duration,
                               const wr_big_limit limits[WR_BIG_LISTS]);
void wr_big_blocks_close(wr_big_blocks *x);

/* All events, in order of start, some at a time; then the end. */
void wr_big_blocks_take(wr_big_blocks *x, const wr_event events[], size_t count);
void wr_big_blocks_end(wr_big_blocks *x);

/* Whether it is within the limit. */
bool wr_big_block_within(const wr_big_block *b, const wr_big_limit *limit, int64_t duration);

#endif
