/* signals.h: how signals reach the program when weir stands between it and its parent. */
#ifndef WEIR_TOOLS_WEIR_RUN_SIGNALS_H
#define WEIR_TOOLS_WEIR_RUN_SIGNALS_H

#include <stdbool.h>
#include <sys/types.h>

/* Keeps signals off both sides, before the fork, until each has its own way with them. */
void signals_hold(void);

/* Restores, in the child, the mask weir was started with. Dispositions were not touched yet. */
void signals_in_child(void);

/* Sends signals that are meant for the program on from now on, in the parent. Returns false after a
 * message. */
bool signals_begin(pid_t program);

/* Returns a descriptor that is readable after a signal, and emptied by signals_handled(). */
int signals_fd(void);
void signals_handled(void);

/* Between these two nothing is sent on. */
void signals_pause(void);
void signals_resume(void);

/* The program is reaped: nothing is sent on any more; interrupts now are for weir, and counted. */
void signals_program_ended(void);
unsigned signals_interrupts(void);

/* The program was stopped by this signal: when that is job control, weir stops as well, so that the
 * shell sees the job stopped. Returns after both were continued. */
void signals_stop_too(int signal);

/* The trace is being completed: a second interrupt from here on ends weir at once. */
void signals_finishing(void);

/* Ends weir by this signal, if it can be. */
void signals_die_of(int signal);

#endif
