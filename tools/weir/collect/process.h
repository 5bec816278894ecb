/* process.h: is the process that wrote a spool still the one that has this pid? */
#ifndef WEIR_TOOLS_WEIR_COLLECT_PROCESS_H
#define WEIR_TOOLS_WEIR_COLLECT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns field 22 of /proc/PID/stat: when the process started, in clock ticks since boot. 0: there
 * is no such process. */
uint64_t process_start_time(pid_t pid);

/* Returns the parent of a process. 0: it has none that can be seen, or is no more. */
pid_t process_parent(pid_t pid);

/* Returns the state letter of a process (field 3). 0: there is no such process. */
char process_state(pid_t pid);

/* Opens a pidfd, close-on-exec. Returns -1 with errno where it cannot (ENOSYS on kernels before
 * 5.3). */
int process_pidfd(pid_t pid);

/* Whether a process has not ended: it is there, with this start time, and no zombie. */
bool process_alive(pid_t pid, uint64_t start_time);

#endif
