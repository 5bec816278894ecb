/* steer.h: what the programs of a folder record, at the wish of `weir start` and `weir stop`, and by
 * the clock (--delay, --duration). A word in each spool's header says it (core/trace/spool.h); the
 * program sees it at its next call. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_STEER_H
#define WEIR_TOOLS_WEIR_COLLECT_STEER_H

#include "core/trace/spool.h"
#include "tools/weir/collect/control.h"

typedef struct steer steer;

/* Shows each spool of a program that is there: its pid, as this process has it, and its path. */
typedef void steer_spools(void *context, void (*show)(void *to, pid_t pid, const char *path),
                          void *to);

/* Serves the verbs start and stop (`c` may be NULL: nobody can ask). New. `each` is asked for the
 * spools, with its context. */
steer *steer_new(control *c, steer_spools *each, void *context);
void steer_free(steer *s); /* may be NULL */

/* From `delay_ns` from now on, for `duration_ns` (0: for good), all calls are recorded, and before
 * and after that only what is live. */
void steer_window(steer *s, uint64_t delay_ns, uint64_t duration_ns);

/* A spool has come: it is steered as all are, where somebody has asked for that. */
void steer_take(const steer *s, const char *path);

/* Does what is due by the clock; when that is, CLOCK_MONOTONIC ns, UINT64_MAX: nothing will be. */
void steer_turn(steer *s);
uint64_t steer_due(const steer *s);

#endif
