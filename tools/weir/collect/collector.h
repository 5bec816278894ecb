/* collector.h: follows the spools of one folder until their processes are gone.
 *
 * `weir run` and `weir collect` drive it from their own loop: collector_wait(), then a turn. It
 * knows spools and the processes that write them; who those processes are to us (children or
 * strangers), signals and terminals are its caller's. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_COLLECTOR_H
#define WEIR_TOOLS_WEIR_COLLECT_COLLECTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "reports/import/import.h"
#include "tools/weir/collect/control.h"
#include "tools/weir/collect/live.h"
#include "tools/weir/collect/steer.h"

typedef struct collector collector;
struct recorder;

/* Asks the caller for the end of a process that is gone. Returns true and sets *reason, *detail
 * when it was a child (and is reaped now, or was before). A NULL function: no process is a
 * child. */
typedef bool (*collector_reap)(void *context, pid_t pid, uint64_t start_time,
                               importer_end_reason *reason, int *detail);

/* Makes a collector (new; NULL after a message). `dir`, absolute, exists and becomes its own: it is
 * locked while the collector lives, and removed by collector_remove(). `trace`: the path of the
 * trace. All are borrowed. */
collector *collector_new(const char *dir, const char *trace, trace_importer *importer,
                         collector_reap reap, void *context);

/* Waits until a turn is due: a new spool, an ended process, or time for a look at what was written;
 * while no spool is known, at most idle_ms (-1: for ever). Ends at once when `urgent` (a
 * descriptor, -1: none) is readable. */
void collector_wait(const collector *c, int urgent, int idle_ms);

/* Looks for new spools, imports what is new, ends the spools whose processes are gone. */
void collector_turn(collector *c);

/* Looks for new spools now. Before a child is reaped, so that its spools are known by then. */
void collector_scan(collector *c);

/* Whether the process of some spool lives. Those that were never found (gone before the first look,
 * or in another pid namespace) do not count. */
bool collector_live(const collector *c);

/* Whether a forked child lives that has not opened its spool yet, or is about to be announced. */
bool collector_expects_forks(collector *c);

/* Imports all that is there and ends every spool. Tries a few times when the disk is full.
 * Returns whether everything is in the trace. A process that lives, as one that has just opened
 * its spool may, is ended too with `abandon`; else *lives is set, its spool stays, and the
 * caller carries on. */
bool collector_finish(collector *c, bool abandon, bool *lives);

/* Removes the folder after collector_finish(). Returns false when a spool came meanwhile: the
 * caller carries on. */
bool collector_remove(collector *c);

/* Removes a folder in which nothing was recorded. */
void collector_discard(const char *dir);

/* Asks NVML, where there is one, from now on how much of each device is in use. */
void collector_ask_nvml(collector *c);

/* Serves spools from now on to processes below `ancestor` that cannot enter the folder, as another
 * user's cannot. */
void collector_serve(collector *c, pid_t ancestor);

/* In the place of an importer (NULL for collector_new()) records are kept by a recorder
 * (borrowed). Before the first turn. */
void collector_record(collector *c, struct recorder *r);

/* Where requests to the collector are registered (borrowed). NULL: nobody can ask. */
control *collector_control(collector *c);

/* From the first call on a tally of each process is led (borrowed; live.h): a tenth of what an
 * import costs. Before any program runs, it knows all; later, what was done since. NULL: out of
 * memory. */
live *collector_watch(collector *c);

/* What the programs record (borrowed; steer.h). */
steer *collector_steer(collector *c);

/* Dumps that a recorder has made; 0 where there is none. */
unsigned collector_dumps(const collector *c);

/* Reads on now, for who asks: the tallies of collector_watch(), and with `import` the trace, too. */
void collector_read_on(collector *c, bool import);

/* What a collector knows of a process that it follows; all is borrowed. */
typedef struct collector_process {
  pid_t pid; /* by its spool's name */
  const spool_header *header;
  uint64_t events, events_per_second; /* imported; of the last second or two */
} collector_process;

/* Shows each process that may still write. */
void collector_each(const collector *c, void (*show)(void *context, const collector_process *p),
                    void *context);

/* `serve` is called at the end of each turn, and a turn is due when `fd` is readable. One at a time;
 * NULL: no more. */
void collector_serve_too(collector *c, int fd, void (*serve)(void *context), void *context);

void collector_free(collector *c);

#endif
