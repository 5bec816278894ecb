/* replay.h: the records that make a tally's state again.
 *
 * A recorder leaves a spool that has the last records alone, and a tally of all that came before
 * them. Whoever reads the spool takes first what is delivered here, then the spool from the tally's
 * positions on: the dictionaries, the changes that made each graph what it is, and each call that
 * is still of account when the window begins, with its own times: of live blocks their allocations,
 * of streams, contexts, pools and open ranges what made them, and what waited for older events.
 *
 * A call that is delivered is in no total: so each call of the program is once in the records, here
 * or in the spool, or once in a total. A total that lost its stack, because so many had others, may
 * lack a call that another had: the sums of both together are right.
 *
 * What launches of graphs allocated comes with the launch, of a graph that has the nodes of these
 * blocks alone. Not there: what a tally does not keep (tally.h). */
#ifndef WEIR_REPORTS_TALLY_REPLAY_H
#define WEIR_REPORTS_TALLY_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/spool.h"

/* Calls that have all this in common, and no record. One of forgotten stacks may have bytes and
 * ticks of calls that others count, and then no count. */
typedef struct wr_replay_total {
  uint64_t count, bytes, ticks;
  uint64_t longest;       /* ticks; of those with a record, too */
  uint32_t thread, stack; /* a thread, and what it calls the stack they have; stack 0: none */
  bool forgotten;         /* they have one, which is not known any more */
  uint16_t api, status;
  uint8_t kind, flags, detail, mem, device, src_device; /* flags: those of WR_TOTAL_FLAGS */
} wr_replay_total;

/* Memory of a device and kind until the window begins. */
typedef struct wr_replay_account {
  uint64_t allocs, bytes;       /* blocks that have no record */
  uint64_t peak, peak_ticks;    /* the most that was live at once, all blocks counted; since when */
  uint64_t live, live_blocks;   /* at the window's begin; these have records */
  bool all_devices, registered; /* registered host memory */
  bool device_side;             /* the whole of it; else of memory_kind `mem` */
  uint8_t device, mem;          /* WEIR_DEVICE_NONE: the host's */
} wr_replay_account;

typedef struct wr_replay_visitor {
  spool_visitor records; /* its context is that of all */
  weir_status (*total)(void *context, const wr_replay_total *total);
  weir_status (*account)(void *context, const wr_replay_account *account);
  /* A context's number is of this device: pinned memory goes with it. */
  weir_status (*home)(void *context, uint8_t number, uint8_t device);
} wr_replay_visitor;

/* Whether there is a tally next to a spool, or what stands in its place. */
bool wr_replay_there(const char *spool);

/* Delivers the state next to the spool that `reader` reads, and moves the reader to where it ends.
 * Before the first drain. *latest: ticks, when the latest call or range began that it has; 0: none.
 * Errors: ECORRUPT, EVERSION, EIO, ENOMEM, those of the visitor. */
weir_status wr_replay_state(spool_reader *reader, const char *spool,
                            const wr_replay_visitor *visitor, uint64_t *latest);

#endif
