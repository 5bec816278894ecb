/* live.h: what the programs of a folder hold and have called until now: a tally of each spool that
 * is led by the newest record, for whoever shows it while they run.
 *
 * It only reads: no state is written, no chunk handed back. So whoever hands chunks back (an
 * importer, a recorder) has it take each spool just before. A tally begins with the process where
 * it is made before the process records, and with the state that a recorder has written; else it
 * begins in the middle, and `whole` is false: what was allocated before is not known. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_LIVE_H
#define WEIR_TOOLS_WEIR_COLLECT_LIVE_H

#include <stdbool.h>
#include <sys/types.h>
#include "reports/tally/tally.h"

typedef struct live live;

/* What is shown of one process; all is borrowed until the next call. */
typedef struct live_process {
  pid_t pid;                   /* by the spool's header: in the process's pid namespace */
  const char *spool;           /* path */
  const spool_header *header;  /* a fresh copy: drops, coverage, program */
  const wr_tally_state *state; /* times are ticks of `clock` */
  clock_map clock;             /* to CLOCK_MONOTONIC ns of this machine */
  bool whole;                  /* nothing was handed back before the tally began */
  bool ended;                  /* its writer is gone, and all of it is taken */
} live_process;

/* New; NULL: out of memory. */
live *live_new(void);
void live_free(live *l); /* may be NULL */

/* Takes what was committed to a spool since the last time; its tally is made at the first call.
 * Returns false where it cannot be read (weir_error_message()): it is left out then. */
bool live_take(live *l, const char *spool);

/* The same for the last time: its writer is gone. The process is shown to `ended` of live_on_end(),
 * then dropped. */
void live_end(live *l, const char *spool);
void live_on_end(live *l, void (*ended)(void *context, const live_process *p), void *context);

/* Shows each process, as of the last live_take(). */
void live_each(live *l, void (*show)(void *context, const live_process *p), void *context);

#endif
