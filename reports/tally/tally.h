/* tally.h: what a program holds and has called, kept up as its spool is read, in bounded memory.
 *
 * An importer writes every event into a trace and matches frees with allocations when the program
 * is over. A tally keeps no event: it reads the same records in order and holds what they come to
 * (state.h has the list). It costs about a tenth of an import, and its memory does not grow
 * with time.
 *
 * Order. The reader delivers threads side by side by time (spool_drain_by_time()). Events that
 * change the live set wait until none can be older, then count as in a trace: an allocation from
 * its return, a free from its call, a launch of a graph with all that it allocates and frees at its
 * return. What comes later than that, because a free lasts until after the next drain, is still
 * applied to the right block; the most that was ever live then is too high by its bytes, for as
 * long as the free lasted. It is exact where the whole spool is drained at once.
 *
 * The file, PID-N.tally next to PID-N.spool, is the state as of the last commit, with the reader's
 * position in every thread. It is written whole under another name and takes the old one's place by
 * rename(), and only then are chunks handed back to the program. So a kill of the collector is safe
 * at every point: before the rename the old state is there and so are all chunks that it lacks;
 * after it the new one is, and the chunks that were not handed back are before its positions. Each
 * record is counted once. (That a machine loses power is not provided for: the spool is lost then,
 * too.) The working state is private memory, not a mapping of the file: a file that somebody cuts
 * would end the collector by SIGBUS, and a half-changed table would be the successor's. A state
 * that was cut or changed fails its check word.
 *
 * A recorder keeps the newest records in the spool and takes only the oldest. State and spool are
 * then all that there was, at each of these points: the state is what came before the window.
 *
 * One tally is of one spool, which is one process; a forked child has its own. Not kept: what code
 * and contexts took of a device, whose certainty only all processes of a run together show
 * (import/taken.h); tensors, device work, hashes, counts of calls that ask, access sets. */
#ifndef WEIR_REPORTS_TALLY_H
#define WEIR_REPORTS_TALLY_H

#include "core/trace/spool.h"
#include "reports/tally/state.h"

#define WR_TALLY_SUFFIX ".tally"

typedef struct wr_tally wr_tally;

/* Steps of a commit. */
typedef enum wr_tally_step {
  WR_TALLY_BEGUN,   /* nothing is written */
  WR_TALLY_HALF,    /* half of the new file is */
  WR_TALLY_WRITTEN, /* all of it, under the other name */
  WR_TALLY_RENAMED, /* it is the state; no chunk is handed back */
  WR_TALLY_DONE
} wr_tally_step;

typedef struct wr_tally_options {
  uint32_t most_totals;  /* 0: 65,536 */
  uint32_t most_names;   /* 0: 65,536 */
  uint32_t most_modules; /* that are unloaded; 0: 1,024 */
  uint64_t keep_from;    /* ticks: what was used since is kept beyond these bounds */
  bool anew;             /* a state that is there is not gone on with */
  bool in_memory;        /* no state is written, no chunk is handed back: for a second
                            reader of the spool, next to the one that does */
  void (*step)(void *context, wr_tally_step step); /* called at each; NULL: not */
  void *step_context;
} wr_tally_options;

/* A tally of the spool at `path` (*out new), which `reader` reads (borrowed until the close) and
 * nobody has drained. A state that is there is gone on with. Chunks are handed back by commits
 * alone, or, in_memory, by whoever else reads. Errors: ECORRUPT, EVERSION (the state; its file
 * stays as it is), EIO, ENOMEM. */
weir_status wr_tally_open(wr_tally **out, spool_reader *reader, const char *path,
                          const wr_tally_options *options);

/* Takes what was committed to the spool since the last time; `final`: its writer is gone. */
weir_status wr_tally_drain(wr_tally *t, bool final);

/* What of a spool stays in it when the oldest records are taken. */
typedef struct wr_tally_window {
  uint64_t bytes; /* of chunks that were handed over, at most */
  uint64_t from;  /* ticks: what began before is taken though there is room; 0: none is */
} wr_tally_window;

/* Takes the oldest records alone, so that the state is what was before those that stay: they are
 * the window of a recorder. What it takes of each thread ends where others go on, to about
 * WEIR_SPOOL_TURN records. Chunks stay the program's until the commit. *taken: some were (NULL: not
 * asked). */
weir_status wr_tally_take_oldest(wr_tally *t, const wr_tally_window *window, bool *taken);

/* Drops what is beyond the bounds, writes the state, hands chunks back. After a failure (ENOSPC,
 * EIO) the old state is there and the spool holds what it lacks: the next commit may succeed. */
weir_status wr_tally_commit(wr_tally *t);

/* What was used since `ticks` is kept, whatever the bounds. */
void wr_tally_keep_from(wr_tally *t, uint64_t ticks);

/* Borrowed, until the next call. Entries are in no order. */
const wr_tally_state *wr_tally_look(const wr_tally *t);

/* Does not commit. The file stays. */
void wr_tally_close(wr_tally *t);

#endif
