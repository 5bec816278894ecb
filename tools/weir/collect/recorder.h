/* recorder.h: the last records of each process are kept, and become a trace when something happens.
 *
 * In the place of an importer: no trace is written while programs run. Records stay in the spools,
 * which so are rings; the oldest are taken into a tally next to each (tally.h), whose state is what
 * came before those that are left. A second reader looks at each record as it comes.
 *
 * A dump (dump.h) is made when
 *   - a process ends by a signal, with a failure's status, or without an end (SIGKILL)
 *   - an allocation failed for want of memory, and its thread was not given as much within MEND_NS:
 *     an allocator that empties its cache and asks again has had no accident
 *   - a device is in use beyond a part of its memory, once until it is well below again
 *   - somebody asks for one (control.h)
 * At most so many by themselves, and APART_NS between two. An end waits for its time, with its
 * spool, at the longest until all is over: what it leaves is not there again. What else comes too
 * early is left out; the newest that was is reported at the end. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_RECORDER_H
#define WEIR_TOOLS_WEIR_COLLECT_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/keep.h"
#include "reports/import/import.h"
#include "tools/weir/collect/collector.h"
#include "tools/weir/collect/dump.h"

#define RECORDER_MARK ".keep" /* in a folder whose spools are rings */

typedef struct recorder recorder;
typedef struct ring ring; /* of one process */

typedef struct recorder_options {
  keep_size keep;
  unsigned dumps;   /* by themselves, at the most */
  unsigned dump_at; /* percent of a device's memory; 0: at none */
  bool at_exit;     /* at a normal exit, too */
} recorder_options;

/* What is asked for: by options, where they are given (NULL, -1: not), else by WEIR_KEEP, WEIR_DUMPS and
 * WEIR_DUMP_AT, of which there is a message where one is wrong. Returns whether records are to be
 * kept. */
bool recorder_asked(recorder_options *o, const char *keep, int dumps, const char *dump_at);

/* What --dump-at and WEIR_DUMP_AT take: N%, exit, or both with a comma. Errors: EINVAL. */
weir_status recorder_read_dump_at(recorder_options *o, const char *name, const char *text);

/* New; NULL after a message. `output`, absolute: what dumps are named after. */
recorder *recorder_new(const char *dir, const char *output, const recorder_options *o,
                       collector_reap reap, void *context);

/* Keeps what the process of this spool writes from now on (*out new). */
weir_status recorder_add(recorder *r, const char *spool, ring **out);

/* Looks at what was written, takes what is too old, makes the dumps that are due. *events: how many
 * were new. After an error nothing is lost, and the next poll tries again. */
weir_status recorder_poll(recorder *r, uint64_t *events);

/* Events of the process so far. */
uint64_t recorder_events_of(const ring *x);

/* How soon the next poll is due after the last; 0: there is time. */
int recorder_pause_ms(const recorder *r);

/* The process has ended. Then, in each turn, what becomes of its spool. */
void recorder_end(recorder *r, ring *x, importer_end_reason reason, int detail);

typedef enum ring_end {
  RING_WAITS, /* for its dump */
  RING_GOES,  /* all is done: the spool and its state may be removed */
  RING_STAYS  /* its dump could not be made */
} ring_end;
ring_end recorder_end_of(recorder *r, const ring *x);
void recorder_drop(recorder *r, ring *x);

/* NVML's count of a device. */
weir_status recorder_usage(recorder *r, const importer_usage *u);

/* Makes the dump that `weir dump` asks for. Returns its trace (borrowed); NULL after a message. */
const char *recorder_ask(recorder *r);

/* How many dumps are complete. */
unsigned recorder_dumps(recorder *r);

/* What has become of the dump whose trace has this name. */
dump_state recorder_dump_state(recorder *r, const char *trace);

/* All is over: dumps that wait are due now, and those that run are waited for. */
void recorder_finish(recorder *r);

/* Prints what was dumped, what was not, and how much programs had to leave out. */
void recorder_report(recorder *r);

/* Whether an import runs, a child of ours that is no program's. */
bool recorder_busy(const recorder *r);

void recorder_free(recorder *r); /* may be NULL */

#endif
