/* dump.h: dumps: what a recorder has kept becomes a trace, while programs go on.
 *
 * A dump is a copy of the spools and the states next to them in a folder of its own, next to the
 * trace that comes of it, and a child that imports that folder: 'weir import'. The copy is made
 * while nothing is taken from the spools; what programs write meanwhile goes into the room that a
 * recorder leaves them. For -o NAME.db the traces are NAME.0001.db, NAME.0002.db, ...: the first
 * number for which there is neither a trace nor a folder. Nothing is ever replaced. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_DUMP_H
#define WEIR_TOOLS_WEIR_COLLECT_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/weir/collect/collector.h"

#define DUMP_WINDOW ".window" /* in the folder: lines "key value": reason, requested_ns, ... */

#define DUMP_LOG ".log" /* in it: what the import has to complain about */

typedef struct dumper dumper;

typedef enum dump_state { DUMP_RUNS, DUMP_MADE, DUMP_FAILED } dump_state;

typedef struct dump_request {
  const char *reason;        /* one line; borrowed */
  uint64_t requested_ns;     /* CLOCK_MONOTONIC */
  const char *const *spools; /* paths; borrowed during the call */
  unsigned count;
  bool ended; /* the spools stay until the dump is made: of one that fails nothing is
                                 left; else its folder is */
} dump_request;

/* New. `output`, absolute: -o. `reap` as for collector_new(). */
dumper *dumper_new(const char *output, collector_reap reap, void *context);

/* Copies, and starts the import. Returns the dump's number, from 1; 0 after a message about why
 * not, with nothing left. */
unsigned dumper_begin(dumper *d, const dump_request *r);

/* Notes which imports have ended; there is a message about each. `wait`: all of them. */
void dumper_look(dumper *d, bool wait);

dump_state dumper_state(const dumper *d, unsigned number);

/* The same by the name of its trace. */
dump_state dumper_state_of(const dumper *d, const char *trace);
unsigned dumper_running(const dumper *d);
unsigned dumper_made(const dumper *d);

/* Returns the name of the dump's trace (borrowed). */
const char *dumper_trace(const dumper *d, unsigned number);

/* Waits for imports that run. */
void dumper_free(dumper *d); /* may be NULL */

/* Makes the trace of a folder whose collector is gone, there where it lies, and waits for it. Returns
 * its name (new); NULL after a message. */
char *dump_folder(const char *folder, const char *output, const char *reason);

#endif
