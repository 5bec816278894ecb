/* process.h: the traced process: its messages to its user and its trace, its spool, its start and
 * end. */
#ifndef WEIR_INTERPOSE_PROCESS_H
#define WEIR_INTERPOSE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/spool.h"

/* At the end of a process: reports what its trace lacks (losses.c). `automatic`: without `weir
 * run`. */
void process_print_losses(const char *directory, bool automatic);

/* At the end of a process: what the machine's other work did to it (load.c). */
void process_note_load(void);

/* Reads the options and prepares for threads and forks (process.c). Idempotent; before main. */
void process_set_up(void);

/* Starts `program` as `weir collect` for a folder of spools, detached, following process `pid`
 * (collector_start.c). `output` may be "". Returns 0 or an errno. */
int process_start_collector(const char *program, const char *directory, const char *output,
                            int pid);

/* Writes one sentence on the program's stderr, for what a user must know. Keeps errno; no malloc.
 */
void process_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Remembers the stderr that the process was started with. */
void process_say_start(void);

/* A remark in the trace; any program may call it (process.c). */
__attribute__((visibility("default"))) void weir_note(const char *text);

/* Whether this image has a spool, or is a forked child's that will have one when there is
 * something to report; and the spool's header, opened now where it is not, NULL when that can't
 * be. Both may be called in a vfork()ed child, whose image is its parent's. Keep errno. */
bool process_has_spool(void);
spool_header *process_spool(void);

/* The program has opened a library in a namespace of its own, where we see nothing:
 * goes into the trace, now or with its first event. */
void process_note_namespace(void);

/* Coverage bits of an api (WEIR_COVER_*), kept in the process and copied to every spool it opens,
 * so that look-ups before the first event count too. Any thread, no lock. */
void coverage_add(uint16_t api, uint8_t bits);

/* A new spool hears of the look-ups that came before it. A child keeps its parent's look-ups, since
 * it holds the pointers too, and not its calls. */
void process_publish_coverage(spool_header *h);

/* Counts a look-up of a cu* name or version nobody knows; the first name is kept. */
void coverage_add_unknown(const char *name);

#endif
